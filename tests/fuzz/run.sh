#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/fuzz/run.sh SECONDS TARGET... - let libFuzzer search each target in turn, starting from what
# we know
#
# What it finds new goes below $BUILD/corpus; an input that breaks a target is left in $BUILD and
# named.  Once fixed, copy that input to tests/fuzz/corpus/NAME/, under a name that tells the story:
# `make check` replays it from then on.
set -eu
seconds=$1
shift
[ $# -gt 0 ] || { echo "tests/fuzz has no fuzz_*.c" >&2 && exit 1; }
ran=0
for target in "$@"; do
	name=$(basename "$target")
	case $name in *"${T-}"*) ;; *) continue ;; esac
	mkdir -p "$BUILD/corpus/$name"
	set -- "$BUILD/corpus/$name"
	for known in "tests/fuzz/corpus/$name" format/golden format/bad; do
		[ ! -d "$known" ] || set -- "$@" "$known"
	done
	echo "== $name, $seconds s"
	"$target" -max_total_time="$seconds" -max_len=1048576 -print_final_stats=1 -artifact_prefix="$BUILD/$name-" "$@"
	ran=$((ran + 1))
done
[ $ran -gt 0 ] || { echo "no fuzz target is called like '${T-}'" >&2 && exit 1; }
echo "$ran targets, $seconds s each, nothing found"
