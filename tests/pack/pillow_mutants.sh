#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# pillow_mutants.sh - of 2,000 damaged and odd JPEGs and PNGs, shardpack takes and refuses what
# Pillow does, but for what pillow_mutants.py lists and proves, and what it takes has the same
# pixels
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
"$PYTHON" -c 'import PIL, numpy' 2>/dev/null ||
	skip "no Python with Pillow and NumPy (Debian: python3-pil python3-numpy)"
pixels_of_pillow
export PYTHONPATH=$ROOT/tests/cli:$ROOT/tests/twin

count=2000
[ -z "${VARIANT-}" ] || count=300
"$PYTHON" "$ROOT/tests/pack/pillow_mutants.py" make src "$count"
run 0 "$PACK" images src -o whole.ds --crop 112 --order source --on-error skip --report whole.json -q
run 0 "$PACK" images src -o small.ds "${LIKE[@]}" \
	--resize 64 --crop 56 --order source --on-error skip --report small.json -q
"$CAT" list whole.ds --json >whole.list
"$CAT" list small.ds --json >small.list
"$PYTHON" "$ROOT/tests/pack/pillow_mutants.py" check src "$count" "$BUILD/tests/pack/dump_jpeg_warnings"
