#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_help.sh - each verb's help has at most 80 columns and ends with an example; mistyped commands are
# answered
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

verbs="info list get verify stats manifest show order prove-order doctor"
run 0 "$CAT" --help
for verb in $verbs; do
	grep -q "^  $verb " out || die "--help does not name $verb"
done
for verb in '' $verbs; do
	# shellcheck disable=SC2086
	run 0 "$CAT" $verb --help
	[ "$(wc -L <out)" -le 80 ] || die "$verb: does not fit a screen"
	tail -n 1 out | grep -q "^  shardcat " || die "$verb: does not end with an example"
	[ ! -s err ] || die "$verb: $(cat err)"
done
run 0 "$CAT" --version
head -n 1 out | grep -qx "shardcat $(sed -n 's/^libshard //p' out)" || die "versions: $(cat out)"
grep -q '^format 1' out && grep -q '^libpng ' out || die "versions: $(cat out)"

run 2 "$CAT" inof ds
grep -q "did you mean 'info'" err || die "no suggestion: $(cat err)"
run 2 "$CAT" info ds --jsno
grep -q "did you mean '--json'" err || die "no suggestion: $(cat err)"
run 2 "$CAT" info
run 2 "$CAT" get ds minus
run 2 "$CAT" get ds -1
run 2 "$CAT" order ds --world 0
run 2 "$CAT" verify ds -j 0

# What the examples in the help say can be typed: every option in them is one.
for verb in $verbs; do
	"$CAT" "$verb" --help | sed -n '/^Examples*:/,$p' | grep -o -- '--[a-z0-9]*' | sort -u |
		while read -r option; do
			# grep counts, and so reads all: with -q the others might have nobody to write to.
			[ "$("$CAT" "$verb" --help | sed '/^Examples*:/,$d' | grep -c -- "$option")" != 0 ] ||
				die "$verb: $option is no option"
		done
done
echo "11 screens"
