# SPDX-License-Identifier: Apache-2.0
# lib.sh - for tests of programs that use the runtime API: build them for the host, with the fake
# driver behind them
#
# Their calls become those of the fake driver, and kernels loops on the host (host_runtime.h).
# shellcheck shell=bash disable=SC2034
set -eu
die() {
	printf '%s\n' "$*"
	exit 1
}
command -v g++ >/dev/null || die "g++ is not there: 'make deps' installs it"
export LD_LIBRARY_PATH=$BUILD/tests/cuda/full
cd "$TMPDIR"
mkdir include
for header in cuda_runtime.h cuda_runtime_api.h; do
	echo '#include "tests/cuda/host_runtime.h"' >"include/$header"
done
san=
case ${VARIANT-} in asan) san=-fsanitize=address,undefined ;; tsan) san=-fsanitize=thread ;; esac
# shellcheck disable=SC2206 # words
host_flags=(-g -O2 $san -Wall -Wextra -Wno-unused-function -Iinclude -I"$ROOT/include" -I"$ROOT")
# shellcheck disable=SC2207 # words
host_libs=("$BUILD/libshard.a" -pthread $(pkg-config --libs liblz4)
	$(pkg-config --silence-errors --libs liburing) -ldl -lm)

# libshard's own kernels, for programs whose driver is to run them.
host_twins() { # prints the object
	gcc -std=gnu11 -D_GNU_SOURCE -ffp-contract=off "${host_flags[@]}" -c "$ROOT/tests/cuda/twins.c" -o twins.o
	echo "$PWD/twins.o"
}

# A program of CUDA C as one for the host, with sed's SCRIPT done to each of its SOURCES before.
host_build() { # PROGRAM SOURCES SCRIPT [FLAG OR OBJECT]...
	local program=$1 sources=$2 script=$3 source made=()
	local launch='s/([a-z_]+)<<<(.*), ([^,]*), (0), ([a-z>-]*)>>>\(/HOST_LAUNCH(\1, (\2), \3, \4, \5)(/'
	shift 3
	for source in $sources; do
		made+=("$program.$(basename "$source").cc")
		sed -E "$script; $launch" "$source" >"${made[-1]}"
	done
	! grep '<<<' "${made[@]}" || die "a launch was not understood"
	g++ -std=c++17 -ffp-contract=off "${host_flags[@]}" "${made[@]}" "$@" "${host_libs[@]}" -o "$program"
}

nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) || nvcc=
[ -z "$san" ] || nvcc= # what is compiled for a GPU knows no sanitizer
