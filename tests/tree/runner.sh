#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/runner.sh - tests/run.sh notices a test that fails, and one that is lost
#
# Runs a copy of it over tests of our own: a script, a program, one that is skipped, and one that
# ends the shell which waits for it.
# shellcheck disable=SC2016 # what stands in single quotes is for those tests to expand
set -eu
copy=$TMPDIR/copy stories=0
mkdir -p "$copy/tests/a" "$copy/build/tests/a" "$TMPDIR/tmp"
cp tests/run.sh "$copy/tests"
cd "$copy"
plant() { # FILE LINE...: a test that is these lines of sh
	file=$1
	shift
	printf '%s\n' '#!/bin/sh' "$@" >"$file"
	chmod +x "$file"
}
plant tests/a/script.sh 'echo 9 tests'
plant build/tests/a/t_three 'echo 3 tests'
plant build/tests/a/t_skips 'echo 2 tests' 'echo no disk here' 'exit 77'
touch tests/a/t_three.c tests/a/t_skips.c
script=tests/a/script.sh three=$copy/build/tests/a/t_three skips=$copy/build/tests/a/t_skips
expect() { # STORY STATUS TEXT WORDS...: with these words run.sh ends so, and prints the text
	story=$1 want=$2 text=$3 status=0
	shift 3
	stories=$((stories + 1))
	env -u CI -u VARIANT TMPDIR="$TMPDIR/tmp" BUILD="$copy/build" JOBS=1 T= "$@" >"$TMPDIR/log" 2>&1 ||
		status=$?
	if [ $status != "$want" ] || ! grep -qF -- "$text" "$TMPDIR/log"; then
		echo "$story: exit $status, want $want and '$text'; printed:" && cat "$TMPDIR/log" && exit 1
	fi
}

expect "all of them" 0 "2 passed, 0 failed, 1 skipped" tests/run.sh $script "$three" "$skips"
expect "some of them" 0 "1 passed" T=three tests/run.sh $script "$three" "$skips"
expect "a skip where none may be" 1 "tests/SKIPS does not allow it" CI=true tests/run.sh "$skips"
plant build/tests/a/t_three 'kill -9 "$(cut -d " " -f 4 "/proc/$PPID/stat")"'
expect "a test that is lost" 1 "no result: a/t_three" tests/run.sh $script "$three" "$skips"
plant build/tests/a/t_three 'echo it is broken' 'seq 20' 'echo 3 tests' 'exit 1'
expect "a test that fails" 1 "failed: a/t_three" tests/run.sh $script "$three" "$skips"
tail -n 15 "$TMPDIR/log" | tr -d '\n' | grep -q "failed: a/t_three .*| it is broken .*exit status 1" ||
	{ echo "its reason is not at the end" && exit 1; }
expect "a pattern without a test" 1 "no test is called like 'four'" T=four tests/run.sh $script
[ -z "$(ls "$TMPDIR/tmp")" ] || { echo "run.sh left $(ls "$TMPDIR/tmp")" && exit 1; }
echo "$stories stories"
