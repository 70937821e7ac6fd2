#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/run.sh TEST... - run test programs and scripts, several at a time, and sum up
#
# A test exits 0 (passed), 77 (skipped; the last line it prints is the reason) or anything else
# (failed).  It runs in the root of the tree with an empty directory of its own in $TMPDIR and no
# standard input, and shares nothing with other tests.  It has 300 seconds unless a comment near its
# top says `TIMEOUT: seconds`.  Its last line is shown when it passes (the count of what it did);
# everything it printed is shown when it fails.  `cpu` stands behind the seconds of CPU time.
#
# The caller may set BUILD, JOBS, T (run only tests whose name contains it), VARIANT (asan or tsan:
# a heavy script may then do less, and says so in its last line), PYTHON, and CI=true: a skip is
# then a failure unless tests/SKIPS names it.  Tests see these, and ROOT; BUILD and ROOT are
# absolute.
#
# LATE names a library that is preloaded into each test, which then has four times as long.
#
# What a test draws in each run, it draws by DRAW.  The number is printed; SEED=number repeats
# it.
set -eu

name_of() { # the path below tests/, wherever the program was built
	echo "${1##*tests/}"
}

source_of() {
	case $1 in *.sh) echo "$1" ;; *) echo "tests/$(name_of "$1").c" ;; esac
}

said_of() { # WORD TEST: the number behind it near the test's top, or nothing
	sed -n "1,40s,^[ /*#]*$1: *\([0-9][0-9]*\).*,\1,p" "$(source_of "$2")" | head -n 1
}

# Run one test in a subprocess of xargs and print its line at once; the verdict goes to
# $WORK/results.
run_one() {
	test=$1
	name=$(name_of "$test")
	dir=$WORK/$(echo "$name" | tr / .)
	log=$dir.log
	seconds=$(said_of TIMEOUT "$test")
	seconds=$((${seconds:-300} * (${LATE:+3} + 1)))
	mkdir "$dir"
	case $test in /*) path=$test ;; *) path=./$test ;; esac

	begin=$(date +%s%N)
	status=0
	# A command put in the background ignores ^C; a test of ^C must not inherit that.
	# shellcheck disable=SC2086 # LAUNCH is a command and its option
	TMPDIR=$dir timeout -k 10 "$seconds" env --default-signal=INT,QUIT $LAUNCH "$path" >"$log" 2>&1 </dev/null &
	child=$!
	trap 'kill "$child" 2>/dev/null; exit 130' INT TERM
	wait "$child" || status=$?
	took=$((($(date +%s%N) - begin) / 100000000))
	took=$((took / 10)).$((took % 10))
	times >"$dir.cpu" # of this shell, and of all that it waited for
	cpu=$(awk -F '[ms ]+' 'NR == 2 {printf "%.1f", 60 * ($1 + $3) + $2 + $4}' "$dir.cpu")
	chmod -R u+rwX "$dir" 2>/dev/null || :
	rm -rf "$dir"

	last=$(tail -n 1 "$log" | cut -c 1-160)
	verdict=pass
	case $status in
	0) ;;
	77)
		verdict=skip
		if [ "${CI-}" = true ] && ! grep -q "^$name: ." tests/SKIPS; then
			verdict=FAIL
			echo "skipped, and tests/SKIPS does not allow it under CI=true" >>"$log"
		fi
		;;
	124 | 137) verdict=FAIL && echo "no result after $seconds s (exit status $status)" >>"$log" ;;
	*) verdict=FAIL && echo "exit status $status" >>"$log" ;;
	esac

	if [ $verdict = FAIL ]; then
		sed -i 's/^/        | /' "$log"
		text=$(printf '%-5s %6s s %6s cpu  %s\n' FAIL "$took" "$cpu" "$name" && tail -n 200 "$log")
		# Once more at the very end, where it is found among what hundreds of tests print.
		{
			echo "failed: $name"
			head -n 6 "$log"
			[ "$(wc -l <"$log")" -lt 13 ] || echo "        | [...]"
			sed 1,6d "$log" | tail -n 6
		} | cut -c 1-200 >"$dir.failed"
	else
		text=$(printf '%-5s %6s s %6s cpu  %-32s %s' $verdict "$took" "$cpu" "$name" "$last")
	fi
	printf '%s\n' "$text"
	echo "$verdict $took $name" >>"$WORK/results"
}

if [ "${1-}" = --one ]; then
	run_one "$2"
	exit 0
fi

cd "$(dirname "$0")/.."
ROOT=$PWD
BUILD=$(realpath -m "${BUILD:-build}")
# Only the variables of a calling make are handed on, so that a test which calls make gets the same
# compiler; not its job server, which ends here.
case ${MAKEFLAGS-} in *"-- "*) MAKEFLAGS="-- ${MAKEFLAGS#*-- }" ;; *) MAKEFLAGS= ;; esac
unset MAKELEVEL MFLAGS MAKEOVERRIDES
for p in "${PYTHON-}" python3 /usr/bin/python3; do
	[ -n "$p" ] && "$p" -c 'import PIL, numpy' 2>/dev/null && PYTHON=$p && break
	PYTHON=python3
done
# Newer kernels spread addresses further than the thread sanitizer of older compilers can follow.
LAUNCH=
[ "${VARIANT-}" = tsan ] && setarch -R true 2>/dev/null && LAUNCH="setarch -R"
[ -z "${LATE-}" ] || LAUNCH="env LD_PRELOAD=$LATE" # see tests/fault/late.c
ASAN_OPTIONS=${ASAN_OPTIONS-allocator_may_return_null=1:detect_stack_use_after_return=1}
UBSAN_OPTIONS=${UBSAN_OPTIONS-print_stacktrace=1}
TSAN_OPTIONS=${TSAN_OPTIONS-allocator_may_return_null=1:second_deadlock_stack=1:die_after_fork=0}
TSAN_OPTIONS="$TSAN_OPTIONS suppressions='$ROOT/docs/libshard.tsan'" # rings of io_uring: no races
LC_ALL=C
PYTHONDONTWRITEBYTECODE=1 # the tree stays as it is
WORK=$(mktemp -d "${TMPDIR:-/tmp}/shard-tests.XXXXXX")
VARIANT=${VARIANT-}
DRAW=${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
[ -n "${SEED-}" ] || echo "seed $DRAW: SEED=$DRAW draws the same"
export ROOT BUILD PYTHON VARIANT LAUNCH ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS LC_ALL PYTHONDONTWRITEBYTECODE
export WORK MAKEFLAGS DRAW
# shellcheck disable=SC3045 # dash and bash both have it
ulimit -c 0
trap 'chmod -R u+rwX "$WORK" 2>/dev/null || :; rm -rf "$WORK"' EXIT
trap 'exit 130' INT TERM

# The longest go first, or the last ones would have one CPU while others idle: as long as last time,
# or in the plain build (of which a sanitizer's is a folder), or as they say near their top
# (`TAKES: seconds`, who takes more than most), or 1 s.
times=$BUILD/test-times
touch "$WORK/results" "$WORK/list" "$WORK/times"
for known in "$times" "${BUILD%/*}/test-times"; do
	[ -s "$WORK/times" ] || [ ! -f "$known" ] || cp "$known" "$WORK/times"
done
for test in "$@"; do
	name=$(name_of "$test")
	case $name in *"${T-}"*) ;; *) continue ;; esac
	known=$(awk -v n="$name" '$2 == n {print $1}' "$WORK/times")
	known=${known:-$(said_of TAKES "$test")}
	echo "${known:-1} $test" >>"$WORK/list"
done
[ -s "$WORK/list" ] || { echo "no test is called like '${T-}'" >&2 && exit 1; }

sort -rn "$WORK/list" | cut -d ' ' -f 2- | tr '\n' '\0' |
	xargs -0 -P "${JOBS:-$(nproc)}" -n 1 tests/run.sh --one || : # it leaves a test without a result

if [ -z "${T-}" ] && [ -d "$BUILD" ]; then
	awk '{print $2, $3}' "$WORK/results" >"$times"
fi
find "$WORK" -maxdepth 1 -name '*.failed' -exec cat {} +
count() { grep -c "^$1 " "$WORK/results" || :; }
status=0
[ "$(count FAIL)" = 0 ] || status=1
# A test that was started and left no result is lost, for example because its shell was killed.
lost=$(while read -r _ test; do
	name=$(name_of "$test")
	awk -v n="$name" '$3 == n {found = 1} END {exit !found}' "$WORK/results" || echo "no result: $name"
done <"$WORK/list")
[ -z "$lost" ] || { echo "$lost" && status=1; }
echo "$(count pass) passed, $(count FAIL) failed, $(count skip) skipped"
exit $status
