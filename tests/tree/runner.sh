#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/runner.sh - tests/run.sh notices a test that fails, and one that is lost
#
# Runs a copy of it over tests of our own: a script, a program of 3 cases, and one that is skipped.
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
plant tests/a/script.sh 'echo "9 tests, FLOOR is ${FLOOR-unset}"' # a script has no cases, whatever it prints
plant build/tests/a/t_three 'echo 3 tests'
plant build/tests/a/t_skips 'echo 2 tests' 'echo no disk here' 'exit 77'
touch tests/a/t_three.c tests/a/t_skips.c
script=tests/a/script.sh three=$copy/build/tests/a/t_three skips=$copy/build/tests/a/t_skips
floor() {
	printf '%s\n' '# a comment' "$@" >tests/FLOOR
}
expect() { # STORY STATUS TEXT WORDS...: with these words run.sh ends so, and prints the text
	story=$1 want=$2 text=$3 status=0
	shift 3
	stories=$((stories + 1))
	env -u CI -u VARIANT TMPDIR="$TMPDIR/tmp" BUILD="$copy/build" JOBS=1 FLOOR= T= "$@" >"$TMPDIR/log" 2>&1 ||
		status=$?
	if [ $status != "$want" ] || ! grep -qF -- "$text" "$TMPDIR/log"; then
		echo "$story: exit $status, want $want and '$text'; printed:" && cat "$TMPDIR/log" && exit 1
	fi
}

floor "plain 3 5" "plainer 9 9"
expect "as many as there must be" 0 "2 passed, 0 failed, 1 skipped" FLOOR=plain tests/run.sh $script "$three" "$skips"
! grep -q "Write" "$TMPDIR/log" || { echo "it asks for what is there:" && cat "$TMPDIR/log" && exit 1; }
grep -q "FLOOR is unset" "$TMPDIR/log" || { echo "tests see FLOOR" && exit 1; }
expect "a lost script" 1 "write there: plain 2 5" FLOOR=plain tests/run.sh "$three" "$skips"
expect "a lost program" 1 "2 tests ran with 2 cases, and tests/FLOOR asks for 3 with 5" FLOOR=plain tests/run.sh \
	$script "$skips"
expect "some of them" 0 "1 passed" FLOOR=plain T=three tests/run.sh $script "$three" "$skips"
expect "without a floor" 0 "1 passed" tests/run.sh $script
expect "a floor without a number" 1 "asks for no number" FLOOR=asan tests/run.sh $script
plant build/tests/a/t_three 'echo 2 tests'
expect "a lost case" 1 "write there: plain 3 4" FLOOR=plain tests/run.sh $script "$three" "$skips"
floor "plain 2 4"
expect "one more than there must be" 0 "Write in tests/FLOOR: plain 3 4" FLOOR=plain tests/run.sh $script "$three" \
	"$skips"
expect "a skip where none may be" 1 "tests/SKIPS does not allow it" CI=true tests/run.sh "$skips"
plant build/tests/a/t_three 'echo it is broken' 'seq 20' 'echo 3 tests' 'exit 1'
expect "a test that fails" 1 "failed: a/t_three" FLOOR=plain tests/run.sh $script "$three" "$skips"
tail -n 15 "$TMPDIR/log" | tr -d '\n' | grep -q "failed: a/t_three .*| it is broken .*exit status 1" ||
	{ echo "its reason is not at the end" && exit 1; }
expect "a pattern without a test" 1 "no test is called like 'four'" T=four tests/run.sh $script
[ -z "$(ls "$TMPDIR/tmp")" ] || { echo "run.sh left $(ls "$TMPDIR/tmp")" && exit 1; }
echo "$stories stories"
