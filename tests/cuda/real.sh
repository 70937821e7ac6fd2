#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cuda/real.sh - the test for a real GPU passes on the fake driver, and fails if a kernel or a
# copy is wrong
# shellcheck disable=SC1091
. "$ROOT/tests/cuda/lib.sh"
real=$BUILD/tests/cuda/t_real
# The address sanitizer wants to be first, which it need not be for these.
export ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0"

twins() { # LIBRARY FLAG...
	local out=$1
	shift
	gcc -std=gnu11 -D_GNU_SOURCE -ffp-contract=off -shared -fPIC "$@" "${host_flags[@]}" \
		"$ROOT/tests/cuda/twins.c" -o "$out" -pthread -ldl -lm
}

# SOURCE SCRIPT TEST: with this done to a kernel's source, that test fails, and says where.
fails() {
	rm -rf broken
	mkdir -p "broken/$(dirname "$1")"
	sed "$2" "$ROOT/$1" >"broken/$1"
	! cmp -s "$ROOT/$1" "broken/$1" || die "nothing was broken: $2"
	twins broken.so -Ibroken
	! (cd "$ROOT" && LD_PRELOAD=$TMPDIR/broken.so "$real" "$3") >out 2>&1 || die "went unnoticed: $2"
	grep -q "byte [0-9]* of [0-9]* is .. on the GPU, not .." out || die "$(cat out)"
}

twins twins.so
(cd "$ROOT" && LD_PRELOAD=$TMPDIR/twins.so "$real") || die "fails on the fake driver"
fails libshard/gpu/gather.cu 's/inside = row % call/inside = (row ^ 1) % call/' batches
fails libshard/gpu/kernel_put.h 's/& TRANSFORM_FLIP/\& 0/' transforms
fails tests/cuda/check_twin.h 's/, call->bytes)/, call->bytes - (call->bytes == 4999))/' hashes

mkdir none
echo "no library" >none/libcuda.so.1 # in front of one that the machine may have
rc=0
(cd "$ROOT" && LD_LIBRARY_PATH=$TMPDIR/none "$real") >out 2>&1 || rc=$?
[ $rc = 77 ] || die "without a driver: exit status $rc; $(cat out)"
echo "3 kinds of faults are seen"
