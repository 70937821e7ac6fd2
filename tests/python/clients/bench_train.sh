#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/bench_train.sh - what `make bench-train` measures, here on the CPU: each side
# delivers the images that it claims, and one that does not is refused
# TAKES: 30
. "${0%/*}/lib.sh"
python "$ROOT/tests/python/clients/bench_train.py"
