#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/any.sh - the Python package and what hypothesis thinks of: 4,000 cases with the
# address sanitizer, 2,000 without; by hand: make asan T=python/any ANY_CASES=100000
# TIMEOUT: 1800
. "${0%/*}/lib.sh"
cases=2000
[ "${VARIANT-}" != asan ] || cases=4000
python -W default "$ROOT/tests/python/any.py" "${ANY_CASES:-$cases}"
