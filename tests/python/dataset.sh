#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/dataset.sh - datasets of the Python package against what NumPy wrote
. "${0%/*}/lib.sh"
python "$ROOT/tests/python/dataset.py"
