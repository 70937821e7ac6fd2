#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/cluster.sh - packing with Ray, Dask and submitit, as far as it needs none of them
# TIMEOUT: 600
. "${0%/*}/lib.sh"
python "$ROOT/tests/python/cluster.py"
