#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/cuda/gather_ptx.sh - gather_ptx.c was made of the gather.cu that is here; where there is a compiler, that very text
set -eu
made=libshard/cuda/gather_ptx.c
sha() { cat libshard/cuda/gather.cu libshard/cuda/gather.h | sha256sum | cut -d ' ' -f 1; }
grep -q "^ \* source SHA-256 $(sha) " $made || { echo "$made is of another gather.cu or gather.h: libshard/cuda/make_gather_ptx.sh makes it" && exit 1; }

# The text as the driver gets it: for compute capability 7.5, and of a version that drivers of CUDA 10.0 take.
sed -n 's/^\t"\(.*\)\\n";*$/\1/p' $made | sed 's/\\"/"/g' >"$TMPDIR/gather.ptx"
grep -qx '.version 6.3' "$TMPDIR/gather.ptx" && grep -qx '.target sm_75' "$TMPDIR/gather.ptx" && grep -q '^.visible .entry gather_rows(' "$TMPDIR/gather.ptx" ||
	{ echo "$made is not that text" && exit 1; }
command -v ptxas >/dev/null || { echo "its SHA-256 is right; no ptxas here to assemble it" && exit 0; }
count=0
for arch in 75 80 86 90 100 120; do
	ptxas --help | grep -q "sm_$arch\b" || continue
	ptxas -arch=sm_$arch -o "$TMPDIR/cubin" "$TMPDIR/gather.ptx" || { echo "it does not assemble for sm_$arch" && exit 1; }
	count=$((count + 1))
done
if command -v nvcc >/dev/null && grep -q "^ \* nvcc $(nvcc --version | sed -n 's/.*, V//p')\$" $made; then
	libshard/cuda/make_gather_ptx.sh "$TMPDIR/again.c"
	cmp "$TMPDIR/again.c" $made || { echo "the same compiler makes another text" && exit 1; }
	echo "assembled for $count GPUs; the compiler that made it makes it again"
	exit 0
fi
echo "assembled for $count GPUs"
