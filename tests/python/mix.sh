#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/mix.sh - mixtures of the Python package against format/shardorder.py
. "${0%/*}/lib.sh"
python "$ROOT/tests/python/mix.py"
