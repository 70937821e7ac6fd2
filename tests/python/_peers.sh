#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/_peers.sh - the harness of bench/peers, before `make bench-peers` measures with it
. "${0%/*}/lib.sh"
"$PYTHON" -W error "$ROOT/bench/peers/check.py"
