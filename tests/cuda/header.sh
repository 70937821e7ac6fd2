#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/cuda/header.sh - what we declare of the driver is what NVIDIA's headers declare:
# libshard/gpu/api.h, and the fake
#
# Skips where no cudaTypedefs.h is found: in $CUDA_HOME/include, where the compiler looks, in
# /usr/local/cuda, and beside the Python packages that bring it.  Parameters agree if both are
# pointers, or both numbers of one size.  Functions that are newer than the headers are left out.
set -eu
command -v g++ >/dev/null || { echo "g++ is not there" && exit 77; }

found=
for dir in ${CUDA_HOME:+"$CUDA_HOME/include"} /usr/include /usr/local/cuda/include \
	"$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null)"/nvidia/*/include; do
	[ -n "$found" ] || [ ! -f "$dir/cudaTypedefs.h" ] || found=$dir
done
[ -n "$found" ] || { echo "CUDA's headers are not here: cudaTypedefs.h" && exit 77; }

version=$(sed -n 's/^#define CUDA_VERSION *//p' "$found/cuda.h")

rows() { # FILE: "name version parameters", a line each; a row may go over several lines
	{ sed -n '/^#define [A-Z]*_CALLS(X)/,/[^\\]$/p' "$1" | sed 's/^#define.*/\tX(/' | tr -d '\\\n' && echo; } |
		sed 's/\tX(/\nX(/g' |
		sed -n 's/^X(\(cu[A-Za-z0-9]*\), \([0-9]*\), \(INT_MAX, \|[0-9]*, \)*\((.*)\))[ \t]*$/\1 \2 \4/p'
}

program() { # FILE: asserts that each of its rows is NVIDIA's
	cat <<-'HEAD'
		#define __CUDA_API_VERSION_INTERNAL
		#include <cstddef>
		#include <cstdint>
		#include <type_traits>
		#include <cuda.h>
		#include <cudaTypedefs.h>
		struct cu_context;
		struct cu_stream;
		struct cu_event;
		struct cu_module;
		struct cu_function;
		struct cu_copy_attributes;
		template <class A, class B> constexpr bool same()
		{
			return std::is_pointer<A>::value ? std::is_pointer<B>::value
							 : !std::is_pointer<B>::value && sizeof(A) == sizeof(B);
		}
		template <class R, class... A, class S, class... B> constexpr bool alike(R (*)(A...), S (*)(B...))
		{
			if constexpr (sizeof...(A) == sizeof...(B))
				return same<R, S>() && (same<A, B>() && ...);
			return false;
		}
	HEAD
	rows "$1" | while read -r name since parameters; do
		[ "$since" -le "$version" ] || continue
		echo "typedef int (*ours_$name)$parameters;"
		echo "static_assert(alike(ours_$name(), PFN_${name}_v$since()), \"$name\");"
	done
}

numbers() { # our enumerators, and NVIDIA's for each
	echo "namespace ours {"
	sed -n '/^enum {$/,/^};$/p' libshard/gpu/api.h
	echo "}"
	while read -r ours theirs; do
		echo "static_assert(ours::$ours == (int)$theirs, \"$ours\");"
	done <<-'END'
		CU_SUCCESS CUDA_SUCCESS
		CU_OUT_OF_MEMORY CUDA_ERROR_OUT_OF_MEMORY
		CU_NOT_INITIALIZED CUDA_ERROR_NOT_INITIALIZED
		CU_STUB_LIBRARY CUDA_ERROR_STUB_LIBRARY
		CU_NO_DEVICE CUDA_ERROR_NO_DEVICE
		CU_NOT_READY CUDA_ERROR_NOT_READY
		CU_CAPTURE_FIRST CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
		CU_CAPTURE_IMPLICIT CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
		CU_CAPTURE_LAST CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD
		CU_FIND_LEGACY_STREAM CU_GET_PROC_ADDRESS_LEGACY_STREAM
		CU_FIND_SUCCESS CU_GET_PROC_ADDRESS_SUCCESS
		CU_STREAM_NON_BLOCKING ::CU_STREAM_NON_BLOCKING
		CU_EVENT_BLOCKING_SYNC ::CU_EVENT_BLOCKING_SYNC
		CU_EVENT_DISABLE_TIMING ::CU_EVENT_DISABLE_TIMING
		CU_REGISTER_PORTABLE CU_MEMHOSTREGISTER_PORTABLE
		CU_REGISTER_READ_ONLY CU_MEMHOSTREGISTER_READ_ONLY
		CU_ATTRIBUTE_CONTEXT CU_POINTER_ATTRIBUTE_CONTEXT
		CU_ATTRIBUTE_MEMORY_TYPE CU_POINTER_ATTRIBUTE_MEMORY_TYPE
		CU_MEMORY_HOST CU_MEMORYTYPE_HOST
		CU_DEVICE_CAPABILITY_MAJOR CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
		CU_DEVICE_CAPABILITY_MINOR CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
		CU_DEVICE_HOST_ADDRESSES CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
		CU_DEVICE_SHARED_OPTIN CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
		CU_DEVICE_MULTIPROCESSORS CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
		CU_FUNCTION_SHARED_BYTES CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
		CU_NOT_CAPTURING CU_STREAM_CAPTURE_STATUS_NONE
		CU_CAPTURE_RELAXED CU_STREAM_CAPTURE_MODE_RELAXED
		CU_JIT_ERROR_LOG CU_JIT_ERROR_LOG_BUFFER
		CU_JIT_ERROR_LOG_BYTES CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
	END
}

attributes() { # of copies in a batch: our struct, and NVIDIA's
	[ "$version" -ge 12080 ] || return 0
	echo "namespace ours {"
	sed -n '/^struct cu_copy_attributes {$/,/^};$/p' libshard/gpu/api.h
	echo "typedef struct cu_copy_attributes attributes;"
	echo "}"
	echo "static_assert(sizeof(ours::attributes) == sizeof(CUmemcpyAttributes), \"its size\");"
	while read -r ours theirs; do
		echo "static_assert(offsetof(ours::attributes, $ours) == offsetof(CUmemcpyAttributes, $theirs), \"$ours\");"
	done <<-'END'
		order srcAccessOrder
		from_hint srcLocHint
		to_hint dstLocHint
		flags flags
	END
	echo "static_assert(ours::CU_COPY_IN_STREAM_ORDER == (int)CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, \"the order\");"
}

compiles() {
	g++ -std=c++17 -w -isystem "$found" -fsyntax-only -x c++ "$1"
}

count=0
for file in libshard/gpu/api.h tests/cuda/fake_calls.h; do
	program "$file" >"$TMPDIR/check.cc"
	count=$((count + $(grep -c '^static_assert' "$TMPDIR/check.cc")))
	[ "$(rows "$file" | wc -l)" = "$(grep -c '^	X(cu' "$file")" ] ||
		{ echo "$file has rows that are not read" && exit 1; }
	compiles "$TMPDIR/check.cc" || { echo "$file differs from $found/cudaTypedefs.h" && exit 1; }
done
program libshard/gpu/api.h >"$TMPDIR/check.cc"
numbers >>"$TMPDIR/check.cc"
attributes >>"$TMPDIR/check.cc"
compiles "$TMPDIR/check.cc" || { echo "a number in libshard/gpu/api.h differs from $found/cuda.h" && exit 1; }

grep -q '^#define CU_STREAM_PER_THREAD *((CUstream)0x2)' "$found/cuda.h" &&
	grep -q 'CU_STREAM_SPECIAL_MAX = 2,' libshard/gpu/api.h ||
	{ echo "the special streams are not 0 to 2 any more" && exit 1; }

# It sees what it looks for: a parameter too many, a length too short, a version that is another
# form, a wrong number.
for sin in 's/(uint64_t \*memory, size_t bytes)/(uint64_t *memory, size_t bytes, int flags)/' \
	's/(uint64_t \*memory, size_t bytes)/(uint64_t *memory, unsigned bytes)/' \
	's/cuStreamGetCtx, 9020/cuStreamGetCtx, 12050/' \
	's/cuMemcpyBatchAsync, 12080/cuMemcpyBatchAsync, 13000/'; do
	since=$(echo "$sin" | sed -n 's/.*, \([0-9]*\)\/$/\1/p')
	[ "${since:-0}" -le "$version" ] || continue # would be left out
	sed "$sin" libshard/gpu/api.h >"$TMPDIR/sin.h"
	program "$TMPDIR/sin.h" >"$TMPDIR/sin.cc"
	! compiles "$TMPDIR/sin.cc" 2>/dev/null || { echo "went unnoticed: $sin" && exit 1; }
done
sed 's/CU_NO_DEVICE = 100/CU_NO_DEVICE = 101/' "$TMPDIR/check.cc" >"$TMPDIR/sin.cc"
! compiles "$TMPDIR/sin.cc" 2>/dev/null || { echo "a wrong number went unnoticed" && exit 1; }
if [ "$version" -ge 12080 ]; then
	sed 's/int from_hint\[2\], to_hint\[2\];/int from_hint[2];/' "$TMPDIR/check.cc" >"$TMPDIR/sin.cc"
	! compiles "$TMPDIR/sin.cc" 2>/dev/null || { echo "a struct that is too short went unnoticed" && exit 1; }
fi
echo "$count declarations agree with those of CUDA $version"
