#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/show.sh - datasets in a notebook: pictures as Pillow reads them, HTML that is
# well-formed, and no names that become tags
. "${0%/*}/lib.sh"
python "$ROOT/tests/python/show.py"
