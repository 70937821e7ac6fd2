#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/docs/pages.sh - every sh, c and python block of the documents runs
#
# Blocks that need PyTorch or pip are named here, and run by `make check-python`; so are those that
# need a scheduler, by `make check-cluster`.
# TIMEOUT: 600
# TAKES: 60
set -eu
. "$ROOT/tests/docs/lib.sh"
use_python "$PYTHON"
PYTHONPATH=$BUILD/python
export PYTHONPATH
run_pages ""
