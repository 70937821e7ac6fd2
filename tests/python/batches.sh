#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/batches.sh - what a batch of the Python package has besides its fields
. "${0%/*}/lib.sh"
python "$ROOT/tests/python/batches.py"
