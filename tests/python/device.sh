#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/device.sh - device="cuda": on a driver without a GPU, and on a machine without a
# driver
. "${0%/*}/lib.sh"
twins() { # LIBRARY FLAG...: the kernels of libshard as C, which the driver then has
	out=$1
	shift
	${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O2 -shared -fPIC -ffp-contract=off "$@" -I"$ROOT" -I"$ROOT/include" \
		"$ROOT/tests/cuda/twins.c" \
		-o "$out" -pthread -ldl -lm
}
twins twins.so
${CC:-cc} -shared -fPIC -O1 -D_GNU_SOURCE -o gate.so "$ROOT/tests/python/gate.c" -ldl
export LD_LIBRARY_PATH=$BUILD/tests/cuda/full FAKE_DRIVER=1
GATE=1 PRELOAD=$PWD/gate.so TWINS=$PWD/twins.so python "$ROOT/tests/python/device.py"
TWINS=$PWD/twins.so python "$ROOT/tests/python/device.py" \
	Device.test_records_of_64_kib_come_out_of_the_page_cache

# Pools that take the wrong rows would be seen.
mkdir -p broken/libshard/gpu
sed 's/inside = row % call/inside = (row ^ 1) % call/' "$ROOT/libshard/gpu/gather.cu" >broken/libshard/gpu/gather.cu
twins broken.so -Ibroken
TWINS=$PWD/broken.so BROKEN_TWIN=1 python "$ROOT/tests/python/device.py" \
	Device.test_batches_of_a_pool_are_those_of_the_cpu

unset FAKE_DRIVER
mkdir none
echo "no library" >none/libcuda.so.1 # in front of one that the machine may have
LD_LIBRARY_PATH=$PWD/none python "$ROOT/tests/python/device.py"
