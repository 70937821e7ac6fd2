#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/twin/masks.sh - masks are Pillow's values, resized by its nearest pixel
set -eu
: "${BUILD:=build}"

for python in "${PYTHON-}" python3 /usr/bin/python3; do
	[ -n "$python" ] && "$python" -c 'import PIL, numpy' 2>/dev/null &&
		exec "$python" tests/twin/masks.py "$BUILD/tests/pack/dump_mask"
done
echo "no Python with Pillow and NumPy (Debian: python3-pil python3-numpy); tests/pack has cases chosen by hand"
exit 77
