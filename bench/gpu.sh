#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/gpu.sh [FOLDER] - run the rows that need a GPU and keep them: a file in FOLDER and a line in
# its README.md
#
#   BUILD=DIR      where `make bench-gpu` put bench/gpu
#   BENCH=pattern  a part of row names, or a wildcard that matches all of one; all rows otherwise
#   RUNS=N         runs of each side; 7 otherwise
#   TMPDIR=DIR     a folder on a disk, with 3 GB to spare; /var/tmp otherwise
#   COMMIT=ID      what is measured, where git does not say
#   PYTHON=PYTHON  one that has PyTorch with CUDA; python3 otherwise, and without one a row says so
#
# FOLDER is bench/results otherwise.  Where something fails nothing is kept.
set -eu
cd "$(dirname "$0")/.."
: "${BUILD:=$PWD/build}" "${BENCH:=}" "${RUNS:=}"
folder=${1:-bench/results}
: "${COMMIT:=$(git describe --always --dirty --abbrev=7 2>/dev/null || echo unknown)}"

dir=$(mktemp -d "${TMPDIR:-/var/tmp}/libshard-bench.XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

: "${PYTHON:=python3}"
"$PYTHON" -c 'import torch' 2>/dev/null || PYTHON=
export PYTHON

"$BUILD/bench/gpu" --dir "$dir" --only "$BENCH" ${RUNS:+--runs "$RUNS"} >"$dir/rows.json"
command="make bench-gpu${BENCH:+ BENCH='$BENCH'}${RUNS:+ RUNS=$RUNS}"
said() { # KEY: the text that the program gave it
	sed -n "s/.*\"$1\": \"\([^\"]*\)\".*/\1/p" "$dir/rows.json" | head -n 1
}
gpu=$(said gpu) date=$(said date)
[ -n "$gpu" ] || { echo "bench-gpu: $BUILD/bench/gpu does not say what it ran on" >&2 && exit 1; }
name=$date-gpu-$(echo "$gpu" | tr ' /A-Z' '--a-z')
new=$name.json n=1
while [ -e "$folder/$new" ]; do
	n=$((n + 1)) new=$name-$n.json
done
{
	head -n 2 "$dir/rows.json"
	echo "{\"commit\": \"$COMMIT\", \"command\": \"$command\"}"
	tail -n +3 "$dir/rows.json"
} >"$dir/$new"
mv "$dir/$new" "$folder/$new"
echo "| \`$new\` | $gpu, driver for CUDA $(said driver); $(said cpu), $(said kernel) | \`$COMMIT\` | $date | \`$command\` |" >>"$folder/README.md"
echo "kept as $folder/$new" >&2
