#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libshard/cuda/make_gather_ptx.sh - gather.cu becomes gather_ptx.c: PTX for compute capability 7.5 and later, as text
#
# Who changes the kernel runs this, and needs nvcc (CUDA 13.0 made what is checked in).  `.version` is lowered to 6.3, which
# all that is in the text has been in since CUDA 10.0, so that older drivers take it too; ptxas checks that.
#
# make_gather_ptx.sh [OUT]
set -eu
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
nvcc -std=c++17 -O3 -I. -arch=compute_75 -ptx -o "$dir/full.ptx" libshard/cuda/gather.cu
grep -v '^//' "$dir/full.ptx" | sed 's/^\.version .*/.version 6.3/; /^$/d' >"$dir/gather.ptx"
ptxas -arch=sm_75 -o "$dir/cubin" "$dir/gather.ptx"
sha() { cat libshard/cuda/gather.cu libshard/cuda/gather.h | sha256sum | cut -d ' ' -f 1; }
{
	echo '/* SPDX-License-Identifier: Apache-2.0 */'
	echo '/*'
	echo ' * gather_ptx.c - gather.cu as PTX.  Written by make_gather_ptx.sh; tests/cuda/gather_ptx.sh says when that is due'
	echo ' *'
	echo " * source SHA-256 $(sha) (gather.cu and gather.h)"
	echo " * nvcc $(nvcc --version | sed -n 's/.*, V//p')"
	echo ' */'
	echo '#include "libshard/cuda/gather.h"'
	echo
	echo 'const char gather_ptx[] ='
	sed 's/\\/\\\\/g; s/"/\\"/g; s/\t/ /g; s/.*/\t"&\\n"/; $s/$/;/' "$dir/gather.ptx"
} >"${1:-libshard/cuda/gather_ptx.c}"
