#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/example_classifier.sh - examples/python/classifier.py learns, and is resumed
# bit for bit
. "${0%/*}/lib.sh"
python -W error "$ROOT/tests/python/clients/example_classifier.py"
