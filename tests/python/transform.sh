#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/transform.sh - images that a loader transforms, against NumPy and against each other
. "${0%/*}/lib.sh"
python "$ROOT/tests/python/transform.py"
