#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/sources.sh - what datasets, h5py and zarr wrote becomes datasets, or one sentence
# says why not
. "${0%/*}/lib.sh"
python -W error -W ignore::DeprecationWarning "$ROOT/tests/python/clients/sources.py"
