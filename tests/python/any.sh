#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/any.sh - the Python package and what hypothesis thinks of: 20,000 cases with the address sanitizer, 2,000 without
# TIMEOUT: 900
. "${0%/*}/lib.sh"
if [ "${VARIANT-}" = asan ]; then cases=20000; else cases=2000; fi
python -W default "$ROOT/tests/python/any.py" "$cases"
