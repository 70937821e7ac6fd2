#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/whole.sh - whole images: each row of a batch has one of its own size
. "${0%/*}/lib.sh"
python "$ROOT/tests/python/whole.py"
