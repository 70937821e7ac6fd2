#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/writer_publish.sh - progress of packing in Python, when its files appear, and writers
# that are dropped, forked or interrupted
# TIMEOUT: 600
. "${0%/*}/lib.sh"
python "$ROOT/tests/python/writer_publish.py"
