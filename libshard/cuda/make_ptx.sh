#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libshard/cuda/make_ptx.sh [NAME [FILE]] - compile NAME.cu, finish or gather, and write NAME_ptx.c, or FILE; without a name, both
#
# For whoever changes kernels, or the headers with their parameters: needs nvcc (NVCC), and ptxas to prove that what comes out
# assembles.  The PTX is for compute capability 7.5, so that every GPU from Turing on can run it.  The file says of which
# compiler and of which source it is; the same two give the same file.
#
# nvcc stamps the newest PTX version that it knows, which older drivers refuse.  Nothing here needs more than 6.3, the first
# one that has compute capability 7.5, but for a hint about which bytes of a load are used; it is taken out.
set -eu
cd "$(dirname "$0")/../.."
nvcc=${NVCC:-nvcc}
ptxas=$(dirname "$(command -v "$nvcc")")/ptxas
[ -x "$ptxas" ] || ptxas=ptxas

[ $# != 0 ] || { "$0" finish && exec "$0" gather; }
name=$1
case $name in
finish) sources="libshard/cuda/finish.cu libshard/transform/call.h" ;;
gather) sources="libshard/cuda/gather.cu libshard/cuda/gather.h" ;;
*) echo "make_ptx.sh: there are no kernels '$name'" >&2 && exit 2 ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck disable=SC2086 # our file names hold no blanks
sha256=$(cat $sources | sha256sum | cut -d ' ' -f 1)
version=$("$nvcc" --version | sed -n 's/.*release.*, V\([0-9.]*\)$/\1/p')
"$nvcc" -I. -ptx -arch=compute_75 -O3 -fmad=false -o "$work/raw.ptx" "libshard/cuda/$name.cu"

# Comments, blanks and the hint out; the version down.
sed -e 's,//.*,,; s/[ \t][ \t]*/ /g; s/^ //; s/ $//' -e '/^\.pragma "used_bytes_mask/d; /^$/d' \
	-e 's/^\.version .*/.version 6.3/' "$work/raw.ptx" >"$work/made.ptx"

# What would differ from a CPU, or be slow, is no result: fused or unrounded arithmetic, spilled memory.
if grep -nE '^(@%p[0-9]+ )?(fma|mad)\.[a-z.]*f(32|64)|^(@%p[0-9]+ )?(mul|add|sub|div)\.f(32|64)|\.local' "$work/made.ptx"; then
	echo "make_ptx.sh: these instructions must not be there" >&2 && exit 1
fi
"$ptxas" -arch=sm_75 -o /dev/null "$work/made.ptx"

{
	echo '/* SPDX-License-Identifier: Apache-2.0 */'
	echo '/*'
	echo " * ${name}_ptx.c - written by libshard/cuda/make_ptx.sh; do not edit"
	echo ' *'
	echo " * compiler: nvcc $version"
	echo " * sources:  $sources"
	echo " * SHA-256:  $sha256"
	echo ' */'
	echo '#include "libshard/cuda/ptx.h"'
	echo
	echo "const char ${name}_ptx[] ="
	sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/	"&\\n"/; $s/$/;/' "$work/made.ptx"
} >"$work/made.c"
cp "$work/made.c" "${2:-libshard/cuda/${name}_ptx.c}"
