#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/loader.sh - loaders of the Python package: order, resume, memory that is lent, forks
# and signals
# TIMEOUT: 600
. "${0%/*}/lib.sh"
# Reads that stand still while the file "gate" is there: how else would a wait be long enough to
# interrupt?
${CC:-cc} -shared -fPIC -O1 -D_GNU_SOURCE -o "$TMPDIR/gate.so" "$ROOT/tests/python/gate.c" -ldl
PRELOAD=$TMPDIR/gate.so python "$ROOT/tests/python/loader.py"
