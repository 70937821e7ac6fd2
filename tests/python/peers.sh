#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/peers.sh - the harness of bench/peers, with peers made up here: none is installed,
# nor libshard's package
# TAKES: 30
. "${0%/*}/lib.sh"
"$PYTHON" -W error "$ROOT/tests/python/peers.py" "$ROOT"
