#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/export.sh - datasets as tars that shardpack packs again, and what cannot be exported
. "${0%/*}/lib.sh"
python "$ROOT/tests/python/export.py"
