#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/cuda/ptx.sh - the PTX in the library is of the sources that are here; made again by the same
# compiler it is the same text; and NVIDIA's assembler takes it for every GPU that it knows
#
# The first of these always holds.  Where ptxas or that very nvcc is missing, the others are left
# out, and the test says so by a skip.
set -eu

fresh() { # FILE: is it of the sources as they are?
	# shellcheck disable=SC2046 # our file names hold no blanks
	[ "$(sed -n 's,^// SHA-256: *,,p' "$1")" = \
		"$(cat $(sed -n 's,^// sources: *,,p' "$1") | sha256sum | cut -d ' ' -f 1)" ]
}

find_tool() { # NAME
	for dir in ${CUDA_HOME:+"$CUDA_HOME/bin"} /usr/local/cuda/bin; do
		[ ! -x "$dir/$1" ] || { echo "$dir/$1" && return; }
	done
	command -v "$1" || :
}

names=$(ls libshard/gpu/*.cu | sed 's,.*/,,; s/\.cu$//')
for name in $names; do
	ptx=libshard/gpu/$name.ptx
	fresh $ptx || { echo "$ptx is not of its sources as they are: run libshard/gpu/make_ptx.sh $name" && exit 1; }
	sed 's,^\(// SHA-256: *\)..,\100,' $ptx >"$TMPDIR/stale.ptx"
	! fresh "$TMPDIR/stale.ptx" || { echo "a stale file went unnoticed" && exit 1; }
	[ "$(grep -v '^//' $ptx | head -n 2 | tr '\n' ' ')" = ".version 6.3 .target sm_75 " ] ||
		{ echo "$ptx is for other drivers" && exit 1; }
	count=$(grep -cE '^KERNEL\(|^__global__ .*\) *[a-z_]*\(.*\)$' "libshard/gpu/$name.cu")
	[ "$(grep -c '^\.visible \.entry ' $ptx)" = "$count" ] ||
		{ echo "$ptx has not $count kernels, as $name.cu has" && exit 1; }
done

ptxas=$(find_tool ptxas)
[ -n "$ptxas" ] || { echo "sources are as recorded; NVIDIA's ptxas is not here to assemble them" && exit 77; }
count=0
for arch in $("$ptxas" --help | grep -oE "'sm_[0-9]+'" | tr -d "'" | sort -u); do
	[ "${arch#sm_}" -ge 75 ] || continue
	for name in $names; do
		"$ptxas" -arch="$arch" -o "$TMPDIR/cubin" "libshard/gpu/$name.ptx" ||
			{ echo "ptxas refuses $name for $arch" && exit 1; }
	done
	count=$((count + 1))
done
[ $count -ge 3 ] || { echo "ptxas knows only $count GPUs" && exit 1; }
sed 's/div\.rn\.f64/div.rm.f99/' libshard/gpu/transform.ptx >"$TMPDIR/broken.ptx"
! "$ptxas" -arch=sm_75 -o "$TMPDIR/cubin" "$TMPDIR/broken.ptx" 2>/dev/null || { echo "ptxas takes anything" && exit 1; }

nvcc=$(find_tool nvcc)
have=$([ -z "$nvcc" ] || "$nvcc" --version | sed -n 's/.*release.*, V\([0-9.]*\)$/\1/p')
for name in $names; do
	ptx=libshard/gpu/$name.ptx
	wanted=$(sed -n 's,^// compiler: nvcc ,,p' $ptx)
	[ "$have" = "$wanted" ] || {
		echo "sources are as recorded, and $count GPUs take the PTX; $name made by nvcc $wanted," \
			"and here is ${have:-none}"
		exit 77
	}
	NVCC=$nvcc libshard/gpu/make_ptx.sh "$name" "$TMPDIR/again.ptx"
	cmp "$TMPDIR/again.ptx" $ptx || { echo "nvcc $have makes another text of the same sources" && exit 1; }
done
echo "made again by nvcc $have, the same; assembled for $count GPUs"
