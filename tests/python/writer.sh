#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/writer.sh - datasets that Python writes: what shardpack writes, byte for byte; and what goes wrong
# TIMEOUT: 600
. "${0%/*}/lib.sh"
"$PYTHON" "$ROOT/tests/cli/make_images.py" photos 60 4
python "$ROOT/tests/python/writer.py"
