#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/cuda/drivers.sh - drivers that are there, too old, broken or not there: each is named, and
# told what to do about
set -eu
open=$BUILD/tests/cuda/prog_open
mkdir "$TMPDIR/none"
echo "no library" >"$TMPDIR/none/libcuda.so.1" # in front of one that the machine may have

says() { # WHERE WANTED [ARGUMENT]...: both lines that are printed
	where=$1 wanted=$2
	shift 2
	got=$(LD_LIBRARY_PATH=$where "$open" "$@") || { echo "$open $* with $where: exit status $?" && exit 1; }
	first=$(echo "$got" | head -n 1)
	[ "$first" = "$wanted" ] ||
		{ printf 'prog_open %s\n  says   %s\n  wanted %s\n' "$*" "$first" "$wanted" && exit 1; }
}

full=$BUILD/tests/cuda/full old=$BUILD/tests/cuda/old bare=$BUILD/tests/cuda/bare
without="batches in host memory need no GPU"
update="update NVIDIA's driver; $without"
says "$full" "0 0 "
says "$old" "0 0 "
says "$TMPDIR/none" "-5 0 no GPU driver: $TMPDIR/none/libcuda.so.1: file too short; install NVIDIA's driver, \
or in a container pass in the host's driver libraries; $without"
says "$bare" "-5 0 libcuda.so.1 has no cuGetProcAddress: it is older than CUDA 11.3; $update"
says "$full" "-5 0 libcuda.so.1 does not have cuLaunchHostFunc (CUDA 10.0), cuMemHostRegister (CUDA 6.5); $update" \
	hide cuMemHostRegister hide cuLaunchHostFunc
says "$old" "-5 0 libcuda.so.1 does not have cuStreamGetCtx (CUDA 9.2); $update" hide cuStreamGetCtx
says "$full" "-5 100 cuInit: CUDA_ERROR_NO_DEVICE" fail cuInit 100
says "$full" "-8 999 cuInit: error 999 of the GPU driver, which has no name for it" fail cuInit 999
forked="was the driver used before this process was forked? use it only after the fork"
says "$full" "-8 3 cuInit ($forked): CUDA_ERROR_NOT_INITIALIZED" fail cuInit 3
says "$full" "-8 2 retaining the primary context of GPU 0: CUDA_ERROR_OUT_OF_MEMORY (out of memory)" \
	fail cuDevicePrimaryCtxRetain 2
says "$full" "-8 1 cuCtxGetCurrent: CUDA_ERROR_INVALID_VALUE" fail cuCtxGetCurrent 1

# The tables ask for each function by itself.  Whichever is missing of those that loaders call is
# named; without the others a loader works, and the doctor says what it lacks.
rows() { # TABLE
	sed -n "/^#define $1(X)/,/[^\\\\]\$/s/^\tX(\(cu[A-Za-z0-9]*\),.*/\1/p" libshard/gpu/api.h
}
count=0
for call in $(rows CUDA_CALLS); do
	LD_LIBRARY_PATH=$full "$open" hide "$call" | head -n 1 |
		grep -q "^-5 0 libcuda.so.1 does not have $call (CUDA" ||
		{ echo "$call can be missing without being missed" && exit 1; }
	count=$((count + 1))
done
[ $count -gt 20 ] || { echo "found only $count functions in api.h" && exit 1; }
probes=0
lacking="3 has all functions that loaders need, but cannot list the GPUs: it lacks"
for call in $(rows PROBE_CALLS); do
	for driver in "$full" "$old"; do
		says "$driver" "0 0 " hide "$call"
		says "$driver" "0 0 " hide "$call" doctor
		echo "$got" | grep -q "^$lacking $call (CUDA [0-9.]*)\$" && echo "$got" | grep -q "^0 works; " ||
			{ echo "without $call the doctor says: $got" && exit 1; }
	done
	probes=$((probes + 1))
done
[ $probes -ge 6 ] || { echo "found only $probes functions that tell of GPUs" && exit 1; }
says "$old" "0 0 " hide cuDeviceGetName hide cuDriverGetVersion doctor
echo "$got" | grep -q "^3 .*: it lacks cuDriverGetVersion (CUDA 2.2), cuDeviceGetName (CUDA 2.0)\$" ||
	{ echo "$got" && exit 1; }
says "$old" "0 0 " doctor
echo "$got" | grep -q "^0 for CUDA 12.9, with all functions that libshard needs; 2 devices\$" ||
	{ echo "$got" && exit 1; }

# What is optional is not missed.
optional=0
for call in $(rows OPTIONAL_CALLS); do
	for driver in "$full" "$old"; do
		says "$driver" "0 0 " hide "$call" doctor
		echo "$got" | grep -q "^0 for CUDA 12.9, with all functions that libshard needs; 2 devices\$" ||
			{ echo "without $call the doctor says: $got" && exit 1; }
	done
	optional=$((optional + 1))
done
says "$full" "0 0 " hide cuMemcpyBatchAsync hide cuDeviceGetName doctor
echo "$got" | grep -q "^1 the driver has no call for many copies, which CUDA 12.8 brought\$" ||
	{ echo "without batches and names the doctor says: $got" && exit 1; }
[ $optional -ge 1 ] || { echo "found no optional function in api.h" && exit 1; }

# Who uses no GPU never opens the driver; and nobody is linked with it.
for object in "$BUILD"/libshard.so "$open"; do
	if objdump -p "$object" | grep 'NEEDED.*cuda'; then
		echo "$object needs libcuda" && exit 1
	fi
done
echo "$((count + 2 * probes + 2 * optional + 13)) drivers"
