#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cluster/_dask.sh - tasks of Dask: one of three workers is killed, again and again
# TIMEOUT: 1800
# shellcheck disable=SC1091
. "$ROOT/tests/cluster/lib_python.sh"
build_on dask
