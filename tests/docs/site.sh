#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/docs/site.sh - the pages that `make site` gives to MkDocs are complete, and what pages load is found
set -eu
cd "$ROOT"
exec "$PYTHON" tests/docs/site.py "$BUILD" "$TMPDIR"
