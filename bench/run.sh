#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/run.sh - every row that BENCH asks for: JSON on standard output, a table on standard error
#
#   BUILD=DIR      where `make all` put things
#   BENCH=pattern  a part of row names (`verify`), or a wildcard that matches all of one
#                  (`*/hot/*`); all rows otherwise
#   RUNS=N         runs of each side; each row's own default otherwise
#   PROCESSES=N    measure all of it by N processes, one after the other; at the end, print the
#                  medians and ranges over them; 1 otherwise
#   WAIT=SECONDS   how long a row waits for a quiet machine; not at all otherwise
#   COMMIT=ID      what is measured, where git does not say
#   TMPDIR=DIR     a folder on the disk to be measured, with 8 GB to spare; /var/tmp otherwise
#
# A target that is missed is marked in the table and does not fail the run: anyone who reads the
# figures judges them.
set -eu
cd "$(dirname "$0")/.."
: "${BUILD:=$PWD/build}" "${BENCH:=}" "${RUNS:=}" "${PROCESSES:=1}" "${WAIT:=}"
: "${COMMIT:=$(git describe --always --dirty --abbrev=7 2>/dev/null || echo unknown)}"
# shellcheck disable=SC2016 # the quotes become a part of the text
command="make bench${BENCH:+ BENCH='$BENCH'}${RUNS:+ RUNS=$RUNS} PROCESSES=$PROCESSES${WAIT:+ WAIT=$WAIT}"

dir=$(mktemp -d "${TMPDIR:-/var/tmp}/libshard-bench.XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The first Python that has Pillow and NumPy; without one the rows of pack are skipped.
corpus=
for python in "${PYTHON:-}" python3 /usr/bin/python3; do
	case ${BENCH:-pack} in *pack* | *images* | *pillow* | *resize* | *portable* | *\**) ;; *) break ;; esac
	if [ -z "$python" ] || ! "$python" -c 'import PIL, numpy' 2>/dev/null; then continue; fi
	export PYTHON="$python"
	corpus=$("$python" bench/corpus.py)
	break
done

echo "{\"commit\": \"$COMMIT\", \"command\": \"$command\"}" | tee "$dir/all.json"
process=1
while [ "$process" -le "$PROCESSES" ]; do
	machine=
	for program in open verify resize pack pack_records order select mix loader windows loader_packed loader_life \
		loader_cold hash transform python_package; do
		{
			"$BUILD/bench/$program" --dir "$dir" --corpus "$corpus" --only "$BENCH" --process "$process" \
				${RUNS:+--runs "$RUNS"} ${WAIT:+--wait "$WAIT"} $machine && : >"$dir/done"
		} | tee -a "$dir/all.json"
		rm "$dir/done" # there is none if the program failed
		machine=--no-machine
	done
	process=$((process + 1))
done
if ! grep -q '"bench"' "$dir/all.json"; then
	echo "bench: no row has '$BENCH' in its name, or, if that is a wildcard, as its name" >&2
	exit 2
fi
[ "$PROCESSES" = 1 ] || python3 bench/processes.py "$dir/all.json" >&2
