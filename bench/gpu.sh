#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/gpu.sh [FOLDER] - run the rows that need a GPU and keep them: a file in FOLDER and a line in
# its README.md
#
#   BUILD=DIR      where `make bench-gpu` put bench/gpu
#   BENCH=pattern  a part of row names, or a wildcard that matches all of one; all rows otherwise
#   RUNS=N         runs of each side; 7 otherwise
#   TMPDIR=DIR     a folder on a disk, with 4 GB to spare; /var/tmp otherwise
#   COMMIT=ID      what is measured, where git does not say
#   PYTHON=PYTHON  one that has PyTorch with CUDA; python3 otherwise, and without one a row says so
#
# FOLDER is bench/results otherwise.  Each row is there as soon as it is measured: in rows-PID.part
# while this runs, and in the file that is kept when it ends, is stopped, or fails.  If it is
# killed, the rows stay in rows-PID.part.
#
# bench/gpu.sh keep FOLDER ROWS COMMAND [WHY] - keep in the same way what bench/gpu wrote to a file
# ROWS, of several processes, as bench/gpu_all.sh runs it; WHY it is not complete
set -eu
cd "$(dirname "$0")/.."
: "${BUILD:=$PWD/build}" "${BENCH:=}" "${RUNS:=}"
: "${COMMIT:=$(git describe --always --dirty --abbrev=7 2>/dev/null || echo unknown)}"

child=
command="make bench-gpu${BENCH:+ BENCH='$BENCH'}${RUNS:+ RUNS=$RUNS}"
said() { # KEY: the text that the program gave it
	sed -n "s/.*\"$1\": \"\([^\"]*\)\".*/\1/p" "$rows" | head -n 1
}

keep() { # [WHY]: the rows that were measured, of a run that is not complete because of WHY
	why=${1-}
	count=$(grep -c '^{"bench": .*}$' "$rows") || { rm -f "$rows" && return 0; }
	gpu=$(said gpu) date=$(said date)
	[ -n "$gpu" ] || { echo "bench-gpu: $BUILD/bench/gpu does not say what it ran on; see $rows" >&2 && exit 1; }
	name=$date-gpu-$(echo "$gpu" | tr ' /' '-' | tr '[:upper:]' '[:lower:]')
	new=$name.json n=1
	while [ -e "$folder/$new" ]; do
		n=$((n + 1)) new=$name-$n.json
	done
	{
		# Each process tells where it ran.
		grep -m 1 '^{"machine": .*}$' "$rows"
		grep -m 1 '^{"gpu": .*}$' "$rows"
		echo "{\"commit\": \"$COMMIT\", \"command\": \"$command\"${why:+, \"incomplete\": \"$why\"}}"
		grep '^{"bench": .*}$' "$rows" # a last line may be half a row
	} >"$folder/$new"
	echo "| \`$new\` | $gpu, driver for CUDA $(said driver); $(said cpu), $(said kernel) | \`$COMMIT\` | $date | \`$command\`${why:+, incomplete: $why} |" >>"$folder/README.md"
	rm -f "$rows"
	echo "kept as $folder/$new: $count rows${why:+; incomplete: $why}" >&2
}

if [ "${1-}" = keep ]; then
	folder=$2 rows=$3 command=$4
	keep "${5-}"
	exit
fi
folder=${1:-bench/results}
rows=$folder/rows-$$.part

stop() { # EXIT-STATUS
	trap '' INT TERM
	if [ -n "$child" ]; then
		kill "$child" 2>/dev/null || :
		wait "$child" || :
	fi
	keep "stopped"
	exit "$1"
}

dir=$(mktemp -d "${TMPDIR:-/var/tmp}/libshard-bench.XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'stop 130' INT
trap 'stop 143' TERM

: "${PYTHON:=python3}"
"$PYTHON" -c 'import torch' 2>/dev/null || PYTHON=
export PYTHON

rc=0
"$BUILD/bench/gpu" --dir "$dir" --only "$BENCH" ${RUNS:+--runs "$RUNS"} >"$rows" &
child=$!
wait "$child" || rc=$?
if [ $rc = 0 ]; then keep; else keep "exit status $rc"; fi
exit $rc
