#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/twin/transform.sh - transformed rows are Pillow's crops and NumPy's numbers to the last bit,
# and draws are those of docs/TRANSFORM.md
set -eu
: "${BUILD:=build}"

for python in "${PYTHON-}" python3 /usr/bin/python3; do
	[ -n "$python" ] && "$python" -c 'import numpy, PIL' 2>/dev/null &&
		exec "$python" tests/twin/transform.py "$BUILD/tests/twin/dump_transform"
done
[ "${CI:-}" != true ] || { echo "no Python with NumPy and Pillow (Debian: python3-numpy, python3-pil)" && exit 1; }
echo "no Python with NumPy and Pillow (Debian: python3-numpy, python3-pil)"
exit 77
