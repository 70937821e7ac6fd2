#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/writer_bad.sh - what writers in Python refuse: no dataset, and words that say why
# TIMEOUT: 600
. "${0%/*}/lib.sh"
python "$ROOT/tests/python/writer_bad.py"
