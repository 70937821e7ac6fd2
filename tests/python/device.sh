#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/device.sh - device="cuda": on a driver without a GPU, and on a machine without a driver
. "${0%/*}/lib.sh"
LD_LIBRARY_PATH=$BUILD/tests/cuda/full FAKE_DRIVER=1 python "$ROOT/tests/python/device.py"
mkdir none
echo "no library" >none/libcuda.so.1 # in front of one that the machine may have
LD_LIBRARY_PATH=$PWD/none python "$ROOT/tests/python/device.py"
