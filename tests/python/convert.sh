#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/convert.sh - the formats of other loaders, written by their layout: packed as a folder
# of the same images is, and damaged
# TAKES: 60
. "${0%/*}/lib.sh"
python "$ROOT/tests/python/convert.py"
