#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libshard/gpu/make_ptx.sh [NAME [FILE]] - compile NAME.cu to NAME.ptx, or to FILE
#
# NAME is transform, gather or check; without it all are compiled.  Run this after a change of the kernels
# or of the headers with their parameters.  It needs nvcc (NVCC), and ptxas to prove that the PTX
# assembles.
#
# The PTX is for compute capability 7.5, so every GPU from Turing on can run it.  The file names its
# compiler and its source; the same compiler and source make the same file.
#
# nvcc stamps the newest PTX version that it knows, which older drivers refuse.  These kernels need
# only 6.3, the first version with compute capability 7.5, except for a hint about the bytes of a
# load that are used.  The script takes that out.
set -eu
cd "$(dirname "$0")/../.."
nvcc=${NVCC:-nvcc}
ptxas=$(dirname "$(command -v "$nvcc")")/ptxas
[ -x "$ptxas" ] || ptxas=ptxas

[ $# != 0 ] || { "$0" transform && "$0" gather && exec "$0" check; }
name=$1
case $name in
transform)
	sources="libshard/gpu/transform.cu libshard/gpu/kernel_lines.h libshard/gpu/kernel_resize.h"
	sources="$sources libshard/gpu/kernel_put.h libshard/transform/call.h"
	;;
gather) sources="libshard/gpu/gather.cu libshard/gpu/gather.h" ;;
check) sources="libshard/gpu/check.cu libshard/gpu/check.h" ;;
*) echo "make_ptx.sh: there are no kernels '$name'" >&2 && exit 2 ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck disable=SC2086 # our file names hold no blanks
sha256=$(cat $sources | sha256sum | cut -d ' ' -f 1)
version=$("$nvcc" --version | sed -n 's/.*release.*, V\([0-9.]*\)$/\1/p')
"$nvcc" -I. -ptx -arch=compute_75 -O3 -fmad=false -o "$work/raw.ptx" "libshard/gpu/$name.cu"

# Comments, blanks and the hint out; the version down.
sed -e 's,//.*,,; s/[ \t][ \t]*/ /g; s/^ //; s/ $//' -e '/^\.pragma "used_bytes_mask/d; /^$/d' \
	-e 's/^\.version .*/.version 6.3/' "$work/raw.ptx" >"$work/made.ptx"

# Fused or unrounded arithmetic would differ from a CPU's, and spilled registers would be slow.
if grep -nE '^(@%p[0-9]+ )?(fma|mad)\.[a-z.]*f(32|64)|^(@%p[0-9]+ )?(mul|add|sub|div)\.f(32|64)|\.local' \
	"$work/made.ptx"; then
	echo "make_ptx.sh: these instructions must not be there" >&2 && exit 1
fi

{
	echo '// SPDX-License-Identifier: Apache-2.0'
	echo '//'
	echo "// ${name}.ptx - written by libshard/gpu/make_ptx.sh; do not edit"
	echo '//'
	echo "// compiler: nvcc $version"
	echo "// sources:  $sources"
	echo "// SHA-256:  $sha256"
	cat "$work/made.ptx"
} >"$work/whole.ptx"
"$ptxas" -arch=sm_75 -o /dev/null "$work/whole.ptx"
cp "$work/whole.ptx" "${2:-libshard/gpu/${name}.ptx}"
