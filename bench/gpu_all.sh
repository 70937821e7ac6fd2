#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/gpu_all.sh - all that wants a GPU, on a machine that is lent for half an hour and has no
# libraries to build with
#
#   bench/gpu_all.sh pack [BUILD]              where libshard is built: what the other machine lacks
#   bench/gpu_all.sh measure [BUILD [FOLDER]]  there: t_real, the rows of `make bench-gpu`, and the
#                                              Python package; 9 minutes at most
#   bench/gpu_all.sh train [BUILD [FOLDER]]    there: rows of `make bench-train`; 9 minutes at most
#
# What was packed is in BUILD/lent, and nothing else of BUILD is needed.  Results come to FOLDER,
# which is BUILD/lent/results otherwise.  The rows that matter most come first, and rows that were
# measured are kept when the time is over.  Exit status: 0, or that of the first part that failed.
#
#   PYTHON=PYTHON  one that has PyTorch with CUDA; python3 otherwise
#   RUNS=N         runs of each row; 3 otherwise
#   TRAIN=OPTIONS  more options for bench/gpu_train.py
set -u
cd "$(dirname "$0")/.." || exit
what=${1-} build=${2:-$PWD/build}
lent=$build/lent
results=${3:-$lent/results}
: "${PYTHON:=python3}" "${RUNS:=3}" "${TRAIN:=}" "${TMPDIR:=/var/tmp}"
status=0

part() { # SECONDS NAME COMMAND...
	seconds=$1 name=$2 rc=0
	shift 2
	begin=$(date +%s)
	timeout --kill-after=10 "$seconds" "$@" || rc=$?
	echo "$name: exit status $rc after $(($(date +%s) - begin)) s" | tee -a "$results/parts.txt" >&2
	[ $status != 0 ] || status=$rc
}

unpack() {
	mkdir -p "$results" || return
	[ -d "$lent/python" ] || "$PYTHON" -m pip install -q --no-index --no-deps --target "$lent/python" "$lent"/*.whl || return
	mkdir -p "$lent/bin" && cp "$lent/python/bin/shardpack" "$lent/bin" || return
	work=$(mktemp -d "$TMPDIR/libshard-lent.XXXXXX") || return
	trap 'rm -rf "$work"' EXIT
	export LD_LIBRARY_PATH="$lent${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" TMPDIR="$work" PYTHON RUNS
	export PYTHONPATH="$lent/python" BUILD="$lent" ROOT="$PWD"
}

case $what in
pack)
	make all tests wheel BUILD="$build" && make "${build#"$PWD"/}/bench/gpu" BUILD="$build" || exit
	rm -rf "$lent" && mkdir -p "$lent/bench" || exit
	# The other machine has the rest: libc, libstdc++ and a driver.
	ldd "$build/bench/gpu" "$build/tests/cuda/t_real" | sed -n 's/.* => \(.*\/lib\(lz4\|uring\|xxhash\)\.so[^ ]*\) .*/\1/p' |
		sort -u | xargs -I{} cp -L {} "$lent" || exit
	cp "$build"/bench/gpu "$lent/bench" && cp "$build/tests/cuda/t_real" "$build"/wheel/*.whl "$lent" || exit
	du -sh "$lent"
	;;
measure)
	unpack || exit
	part 120 t_real "$lent/t_real"
	part 330 bench-gpu bench/gpu.sh "$results"
	part 90 package tests/python/clients/_gpu.sh
	exit $status
	;;
train)
	unpack || exit
	# shellcheck disable=SC2016,SC2086 # the other shell expands it; words
	part 540 bench-train sh -eu -c '
		"$PYTHON" bench/gpu_train.py --runs 3 --model resnet50 --only synthetic,libshard "$@"
		"$PYTHON" bench/gpu_train.py --runs 3 --model resnet18 --only synthetic,libshard "$@"
		"$PYTHON" bench/gpu_train.py --runs 1 "$@"' train --folder "$lent/train" $TRAIN >>"$results/train.json"
	exit $status
	;;
*)
	sed -n 's/^#   \(bench.*\)/\1/p' "$0" >&2
	exit 2
	;;
esac
