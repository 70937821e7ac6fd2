#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/concat.sh - loaders of a concatenation, against its records by number and against one
# dataset of the same records
. "${0%/*}/lib.sh"
python "$ROOT/tests/python/concat.py"
