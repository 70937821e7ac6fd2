#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/tables.sh - tables of pandas, Polars and Arrow, and files of Parquet and Arrow
. "${0%/*}/lib.sh"
python -W error "$ROOT/tests/python/clients/tables.py"
