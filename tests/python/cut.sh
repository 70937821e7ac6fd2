#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/cut.sh - shards that are cut under an open dataset: each way to read a record that
# was read before
. "${0%/*}/lib.sh"
python "$ROOT/tests/python/cut.py"
