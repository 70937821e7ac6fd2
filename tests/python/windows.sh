#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/windows.sh - windows over neighbouring records, compared with a slow twin
. "${0%/*}/lib.sh"
python "$ROOT/tests/python/windows.py"
