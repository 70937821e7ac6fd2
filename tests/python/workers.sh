#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/workers.sh - libshard.pack(workers=N): the same dataset for any number of workers, also
# after kills; samples that are left out; sources that cannot be divided.  KILLS=50 kills at 50 moments
# TIMEOUT: 900
. "${0%/*}/lib.sh"
python "$ROOT/tests/python/workers.py"
