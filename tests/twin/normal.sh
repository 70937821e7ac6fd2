#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/twin/normal.sh - normalised samples are NumPy's, all 3 x 256 of them, for many means and
# deviations
set -eu
: "${BUILD:=build}"

for python in "${PYTHON-}" python3 /usr/bin/python3; do
	[ -n "$python" ] && "$python" -c 'import numpy' 2>/dev/null &&
		exec "$python" tests/twin/normal.py "$BUILD/tests/pack/dump_normal"
done
[ "${CI:-}" != true ] || { echo "no Python with NumPy (Debian: python3-numpy)" && exit 1; }
echo "no Python with NumPy (Debian: python3-numpy)"
exit 77
