#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/twin/pillow.sh - decode and transform give the bytes of Pillow, asked here and now
set -eu
: "${BUILD:=build}"

for python in "${PYTHON-}" python3 /usr/bin/python3; do
	[ -n "$python" ] && "$python" -c 'import PIL, numpy' 2>/dev/null &&
		exec "$python" tests/twin/pillow.py "$BUILD/tests/pack/dump_transform" ${VARIANT:+120}
done
echo "no Python with Pillow and NumPy (Debian: python3-pil python3-numpy); tests/pack compares stored hashes"
exit 77
