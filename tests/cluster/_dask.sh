#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/cluster/_dask.sh - tasks of Dask, three workers, each with a nanny
# TIMEOUT: 1800
exec "$ROOT/tests/cluster/_ray.sh" dask
