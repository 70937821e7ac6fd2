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
# which is BUILD/lent/results otherwise.  The rows that matter most come first.  Each part is a
# process with a time of its own, so that one that fails or hangs costs no other.  What a part said
# is in FOLDER/PART.log, and how it ended in FOLDER/parts.txt, which is printed at the end.  Exit
# status: 0, or that of the first part that failed.  A part that was skipped did not fail.
#
#   PYTHON=PYTHON  one that has PyTorch with CUDA; python3 otherwise
#   RUNS=N         runs of each row; 3 otherwise
#   TRAIN=OPTIONS  more options for bench/gpu_train.py
set -u
absolute() { # PATH, or nothing
	[ -z "$1" ] || realpath -m "$1"
}
what=${1-} build=$(absolute "${2-}") results=$(absolute "${3-}")
cd -P "$(dirname "$0")/.." || exit
: "${build:=$PWD/build}"
lent=$build/lent
: "${results:=$lent/results}" "${PYTHON:=python3}" "${RUNS:=3}" "${TRAIN:=}" "${TMPDIR:=/var/tmp}"
status=0 failed='' child='' work=''
end=$(($(date +%s) + 520)) # what hangs is killed 10 s later than it should have ended

# Its standard output goes to OUT, or to its log if that is -.
part() { # OUT SECONDS NAME COMMAND...
	out=$1 seconds=$2 name=$3 rc=0
	shift 3
	log=$results/$(echo "$name" | tr '/ ' '--').log
	[ "$out" != - ] || out=$log
	begin=$(date +%s)
	if [ "$seconds" -gt $((end - begin)) ]; then
		seconds=$((end - begin))
	fi
	if [ "$seconds" -lt 5 ]; then
		how="not run: no time was left" rc=124
	else
		: >"$log"
		# Behind it, so that this shell can be stopped meanwhile.
		timeout --kill-after=10 "$seconds" "$@" >>"$out" 2>>"$log" </dev/null &
		child=$!
		wait "$child" || rc=$?
		child=
		tail -n 20 "$log" >&2
		case $rc in
		0) how=passed ;;
		77) how="skipped: $(tail -n 1 "$log" | cut -c 1-200)" ;;
		124 | 137) how="FAILED: no end within $seconds s" ;;
		*)
			how=$(tail -n 1 "$log" | cut -c 1-200)
			how="FAILED: exit status $rc${how:+; $how}"
			;;
		esac
	fi
	printf '%-52s %4d s  %s\n' "$name" $(($(date +%s) - begin)) "$how" | tee -a "$results/parts.txt" >&2
	[ $rc != 77 ] || return 0
	[ $rc = 0 ] || failed="$failed${failed:+, }$name"
	[ $status != 0 ] || status=$rc
}

finish() { # [WHY]
	keep "${1-}"
	printf '\n%s: how each part ended\n' "$what" >&2
	cat "$results/parts.txt" >&2
	exit $status
}

stop() { # EXIT-STATUS
	trap '' INT TERM
	if [ -n "$child" ]; then
		kill "$child" 2>/dev/null
		wait "$child"
	fi
	status=$1
	finish stopped
}

unpack() {
	mkdir -p "$results" || return
	[ -d "$lent/python" ] || "$PYTHON" -m pip install -q --no-index --no-deps --target "$lent/python" "$lent"/*.whl || return
	mkdir -p "$lent/bin" && cp "$lent/python/bin/shardpack" "$lent/bin" || return
	work=$(mktemp -d "$TMPDIR/libshard-lent.XXXXXX") || return
	trap 'rm -rf "$work"' EXIT
	trap 'stop 130' INT
	trap 'stop 143' TERM
	export LD_LIBRARY_PATH="$lent${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" TMPDIR="$work" PYTHON RUNS
	export PYTHONPATH="$lent/python" BUILD="$lent" ROOT="$PWD"
	: >"$results/parts.txt"
	rows=$results/rows-$$.part
}

# Rows are in one file, of all processes, which is kept as that of `make bench-gpu`.
bench() { # SECONDS PATTERN
	mkdir -p "$work/data"
	# What a process left that failed is not to be measured by another one; the photos are, if complete.
	find "$work/data" -mindepth 1 -maxdepth 1 ! -name photos -exec rm -rf {} +
	[ -e "$work/data/photos/dataset.manifest" ] || rm -rf "$work/data/photos"
	part "$rows" "$1" "$2" "$lent/bench/gpu" --dir "$work/data" --only "$2" --runs "$RUNS"
	echo >>"$rows" # behind what may be half a line
}

keep() { # [WHY]
	[ -s "$rows" ] || return 0
	bench/gpu.sh keep "$results" "$rows" "bench/gpu_all.sh measure" "${1:-${failed:+failed: $failed}}" && return
	[ $status != 0 ] || status=1
}

real() { # TEST
	mkdir "$work/$1" && part - 30 "t_real/$1" env TMPDIR="$work/$1" "$lent/t_real" "$1"
}

measure() {
	for test in $(sed -n 's/^TEST(\(.*\))$/\1/p' tests/cuda/t_real.c); do
		real "$test"
	done
	bench 90 gpu/stream/150528
	bench 80 gpu/pool
	bench 40 gpu/stream/4096
	bench 40 gpu/stream/64
	bench 60 gpu/idle
	bench 40 gpu/beside-compute
	bench 50 gpu/transform
	bench 30 gpu/first-batch
	bench 30 gpu/copy-engine
	bench 50 gpu/streams
	part - 90 package tests/python/clients/_gpu.sh
	bench 90 gpu/torch
}

train() { # SECONDS NAME OPTION...
	seconds=$1 name=$2
	shift 2
	# shellcheck disable=SC2086 # words
	part "$results/train.json" "$seconds" "train/$name" "$PYTHON" bench/gpu_train.py "$@" --folder "$lent/train" $TRAIN
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
	measure
	finish
	;;
train)
	unpack || exit
	train 300 resnet50 --runs 3 --model resnet50 --only synthetic,libshard # makes the images, too
	train 150 resnet18 --runs 3 --model resnet18 --only synthetic,libshard
	train 520 all-sides --runs 1
	finish
	;;
*)
	sed -n 's/^#   \(bench.*\)/\1/p' "$0" >&2
	exit 2
	;;
esac
