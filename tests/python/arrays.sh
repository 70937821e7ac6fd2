#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/arrays.sh - arrays of the Python package as NumPy, the buffer protocol and DLPack see
# them
. "${0%/*}/lib.sh"
python "$ROOT/tests/python/arrays.py"
