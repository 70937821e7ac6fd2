#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/twin/wide.sh - images of 16 bits a sample become what Pillow makes of them as I;16, or what
# wide.py says that it makes of them, if this Pillow is too old to resample them
set -eu
: "${BUILD:=build}"

grep -q /decode_tiff.o "$BUILD/parts" || { echo "this shardpack was built without libtiff" && exit 77; }
for python in "${PYTHON-}" python3 /usr/bin/python3; do
	[ -n "$python" ] && "$python" -c 'import PIL, numpy' 2>/dev/null &&
		exec "$python" tests/twin/wide.py "$BUILD/tests/pack/dump_transform" ${VARIANT:+60}
done
echo "no Python with Pillow and NumPy (Debian: python3-pil python3-numpy)"
exit 77
