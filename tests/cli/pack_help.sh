#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_help.sh - one line per source, each help has at most 80 columns and ends with an
# example, whose options exist
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

sources="images array raw tokens cifar mnist"
run 0 "$PACK" --help
for word in $sources build status seal merge split append; do
	[ "$(grep -c "^  $word  " out)" = 1 ] || die "--help has not one line for $word"
done
[ "$(grep -c '^  plan \.\.\. ' out)" = 1 ] || die "the verbs that plan are one line"
n=0
for verb in '' $sources build status seal merge split append $(printf 'plan/%s ' $sources); do
	# shellcheck disable=SC2086
	run 0 "$PACK" ${verb/\// } --help
	[ "$(wc -L <out)" -le 80 ] || die "$verb: $(wc -L <out) columns do not fit a screen"
	tail -n 1 out | grep -q "^  shardpack " || die "$verb: does not end with an example"
	[ ! -s err ] || die "$verb: $(cat err)"
	[ -n "$verb" ] || continue
	{ sed -n '/^Examples*:/,$p' out | grep -o -- ' --[a-z-]*' || :; } | sort -u | while read -r option; do
		sed '/^Examples*:/,$d' out | grep -q -- "$option" || die "$verb: $option is no option"
	done
	n=$((n + 1))
done
"$PACK" --print-man >pack.man
"$PACK" --complete plan "" >offers
for verb in $sources; do
	grep -q "^shardpack plan $verb " pack.man || die "the man page has no plan $verb"
	grep -q "^$verb" offers || die "completion does not know $verb"
done
run 0 "$PACK" --version
grep -q "libjpeg-turbo [0-9.]*, libpng [0-9.]*, libwebp [0-9.]*\(, giflib [0-9.]*\)\?\(, libtiff [0-9.]*\)\?\(, libavif .*\)\?$" out || die "$(cat out)"
run 2 "$PACK" imges x -o y
grep -q "did you mean 'images'" err || die "$(cat err)"
echo "$n verbs, one line per source"
