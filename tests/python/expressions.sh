#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/expressions.sh - arrays in expressions, pickled and copied, with NumPy and without it
. "${0%/*}/lib.sh"
python "$ROOT/tests/python/expressions.py"
