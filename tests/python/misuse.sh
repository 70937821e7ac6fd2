#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/misuse.sh - whatever is given to a public call, the answer is a sentence of ours
. "${0%/*}/lib.sh"
python "$ROOT/tests/python/misuse.py"
