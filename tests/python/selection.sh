#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/selection.sh - selections of the Python package against NumPy
. "${0%/*}/lib.sh"
python "$ROOT/tests/python/selection.py"
