#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/twin/_pillows.sh - 2,000 drawn images, as many transformed rows, as many files with an
# orientation, as many TIFFs, 1,000 images of 16 bits a sample, and 600 AVIFs, have the pixels of
# each Pillow in $PILLOWS, and not those of the others; make check-pillow makes their environments
# TIMEOUT: 1800
set -u
: "${BUILD:=build}" "${SEED:=17}"
export SEED

avifs() { # PYTHON: if shardpack reads them
	! grep -q /decode_avif.o "$BUILD/parts" || "$1" tests/twin/avif.py "$BUILD/tests/pack/dump_transform" 600
}

compare() { # VERSION
	local python=$BUILD/venv/pillow-$1/bin/python
	"$python" -c 'import PIL, numpy' || return
	[ "$1" = newest ] || [ "$("$python" -c 'import PIL; print(PIL.__version__)')" = "$1" ] || return
	"$python" tests/twin/pillow.py "$BUILD/tests/pack/dump_transform" 2000 &&
		"$python" tests/twin/transform.py "$BUILD/tests/twin/dump_transform" 2000 &&
		"$python" tests/twin/orientation.py "$BUILD/tests/pack/dump_transform" 2000 &&
		"$python" tests/twin/tiff.py "$BUILD/tests/pack/dump_transform" 2000 &&
		"$python" tests/twin/wide.py "$BUILD/tests/pack/dump_transform" 1000 &&
		avifs "$python"
}

count=0
for version in $PILLOWS; do
	compare "$version" >"$TMPDIR/$version" 2>&1 && echo held >>"$TMPDIR/$version.verdict" &
	count=$((count + 1))
done
wait
cat "$TMPDIR"/[0-9n]*[0-9t]
held=$(cat "$TMPDIR"/*.verdict 2>/dev/null | wc -l)
echo "$held of $count Pillows agree, SEED=$SEED"
[ "$held" = "$count" ] && [ "$count" -gt 0 ]
