#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/example_language_model.sh - examples/python/language_model.py learns from
# context, and only from that
# TIMEOUT: 900
. "${0%/*}/lib.sh"
python -W error "$ROOT/tests/python/clients/example_language_model.py"
