#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_help.sh - one line per source; each help has at most 80 columns, one option on a line,
# and ends with an example, whose options exist; each option stands in one topic, and in the manual
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

sources="images array raw tokens cifar mnist"
run 0 "$PACK" --help
for word in $sources build status seal merge split append decode demo; do
	[ "$(grep -c "^  $word  " out)" = 1 ] || die "--help has not one line for $word"
done
[ "$(grep -c '^  plan \.\.\. ' out)" = 1 ] || die "the verbs that plan are one line"
n=0
for verb in '' $sources build status seal merge split append decode demo $(printf 'plan/%s ' $sources); do
	# shellcheck disable=SC2086
	run 0 "$PACK" ${verb/\// } --help
	[ "$(wc -L <out)" -le 80 ] || die "$verb: $(wc -L <out) columns do not fit a screen"
	tail -n 1 out | grep -q "^  shardpack " || die "$verb: does not end with an example"
	[ ! -s err ] || die "$verb: $(cat err)"
	[ -n "$verb" ] || continue
	# shellcheck disable=SC2086
	run 0 "$PACK" ${verb/\// } --help=all
	sed '/^Examples*:/,$d' out >options
	{ sed -n '/^Examples*:/,$p' out | grep -o -- ' --[a-z-]*' || :; } | sort -u | while read -r option; do
		grep -q -- "$option" options || die "$verb: $option is not an option"
	done
	n=$((n + 1))
done
"$PACK" --print-man >pack.man
"$PACK" --complete plan "" >offers
for verb in $sources; do
	grep -q "^shardpack plan $verb " pack.man || die "the man page has no plan $verb"
	grep -q "^$verb" offers || die "completion does not know $verb"
done

# Names of the options that help explains, one on a line.
options_of() { grep -o -- '^  \(-., \|    \)--[a-z0-9-]*' | grep -o -- '--[a-z0-9-]*$'; }
for verb in $sources; do
	"$PACK" --complete "$verb" - | grep -o -- '^--[a-z0-9-]*' | sort >offered
	"$PACK" "$verb" --help=all | options_of | sort >all
	cmp offered all || die "$verb: --help=all has not every option once: $(diff offered all)"
	"$PACK" "$verb" --help | sed -n 's/^  --help=\([a-z-]*\) .*/\1/p' >topics
	[ "$(tail -n 1 topics)" = all ] || die "$verb: the short help names no topics: $(cat topics)"
	sed '$d' topics | while read -r topic; do
		run 0 "$PACK" "$verb" "--help=$topic"
		[ "$(wc -L <out)" -le 80 ] || die "$verb: $topic: wider than a screen"
		options_of <out
	done >by_topic
	printf '%s\n' --help --quiet --verbose >>by_topic
	sort by_topic | cmp - all || die "$verb: not every option has one topic: $(sort by_topic | diff - all)"
done
# The short help shows the options that most people need, and no other.
each_has="--order --on-error --jobs --report --dry-run --quiet --verbose --help"
while read -r verb often; do
	"$PACK" "$verb" --help | options_of | tr '\n' ' ' >shown
	[ "$(cat shown)" = "--out $often $each_has " ] || die "$verb: the short help shows $(cat shown)"
done <<'EOF'
images --resize --fit --crop --labels --no-label --classes --field
array --numbered --classes
raw --schema --skip-bytes --classes
tokens --seq-len --overlap --documents --pack --dtype
cifar --split --labels
mnist --split --classes
EOF
run 0 "$PACK" images --help=fields
for key in 'kind=mask' 'from=' 'max=' 'decode-scale='; do
	grep -q "^        $key" out || die "--help=fields does not explain $key"
done
run 2 "$PACK" images --help=feilds
grep -q "the topics are input, images, labels, fields, output, bad-input, run and all; did you mean 'fields'?" err ||
	die "$(cat err)"
run 2 "$PACK" status --help=fields
run 0 "$PACK" status --help=all
run 0 "$PACK" plan --help=fields
run 0 "$PACK" --version
grep -q "libjpeg-turbo [0-9.]*, libpng [0-9.]*, libwebp [0-9.]*\(, giflib [0-9.]*\)\?\(, libtiff [0-9.]*\)\?\(, libavif .*\)\?$" out || die "$(cat out)"
grep -Eqx "zlib [0-9.]+, zstd [0-9.]+, jansson [0-9.]+(, libarchive [0-9.]+( [^ ]+/[^ ]+)*)?" out || die "$(cat out)"
for lacks in giflib:GIF libtiff:TIFF libavif:AVIF libarchive:.bz2; do # each is named, or what it reads is
	! { grep -q "${lacks%:*}" out && grep -q "^this shardpack does not read.* ${lacks#*:}" out; } || die "$(cat out)"
	grep -q "${lacks%:*}" out || grep -q "^this shardpack does not read.* ${lacks#*:}" out || die "$(cat out)"
done
run 2 "$PACK" imges x -o y
grep -q "did you mean 'images'" err || die "$(cat err)"
echo "$n verbs, one line per source"
