#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/hints.sh - type hints of the Python package: complete, and as the extension module
# really is
. "${0%/*}/lib.sh"
python "$ROOT/tests/python/hints.py"
