#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_hostile.sh - shardcat on every file of format/bad: the exit code, one line that names the
# rule, no crash
#
# All other verbs must survive these files too: they end with 0 (the rule is not theirs to check) or
# a code of part 1, never by a signal, and never with a control character in what they print.  Under
# a sanitizer these are tried on every other file.
# TAKES: 20
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

# What makes a file "for a newer reader" instead of damaged; D rules are mismatches.
code_of() {
	case $1 in
	D*) echo 5 ;;
	I10_* | I11_* | I12_* | I21_* | I34_* | I07_major_* | M04_* | M09_codec*) echo 4 ;;
	*) echo 1 ;;
	esac
}

# The rule as messages write it.  M9 stands for the rules of schemas, and it is those that are
# named.
number_of() {
	case $1 in
	M09_codec*) echo I21 ;;
	M09_same_field_name*) echo I24 ;;
	M09_overlap*) echo I31 ;;
	*) echo "$1" | sed 's/^\([A-Z]\)0*\([1-9][0-9]*\)_.*/\1\2/' ;;
	esac
}

others() {
	local verb
	for verb in "info -v" "info --json" "list" "get 0" "show --out sheet.png" "order" "prove-order -q" \
		"stats"; do
		code=0
		# shellcheck disable=SC2086
		timeout 120 "$CAT" ${verb%% *} "$1" ${verb#"${verb%% *}"} >out 2>err </dev/null || code=$?
		[ "$code" -le 5 ] || die "$name: shardcat $verb: exit code $code: $(cat err)"
		[ "$(wc -l <err)" -le 3 ] || die "$name: shardcat $verb: $(cat err)"
		[ "$(cat out err | tr -d '\11\12\40-\176\200-\377' | wc -c)" = 0 ] ||
			die "$name: shardcat $verb: control characters"
	done
}

bad=0
for path in "$ROOT"/format/bad/*; do
	name=$(basename "$path")
	case $name in
	*.shard) cp "$path" "$name" && target=$name ;;
	*.manifest)
		target=${name%.manifest}
		mkdir "$target" && cp "$path" "$target/dataset.manifest"
		;;
	[DM]*) cp -r "$path" . && target=$name ;;
	*) continue ;;
	esac
	sha256=--sha256
	[ -d "$target" ] || sha256=
	number=$(number_of "$name")
	# shellcheck disable=SC2086
	run "$(code_of "$name")" "$CAT" verify "$target" $sha256
	[ ! -s out ] || die "$name: stdout: $(cat out)"
	grep -q "^shardcat: $target.*: $number: " err || die "$name: $number is not named: $(cat err)"
	# One flaw is one line, unless it shows in several units: then each is one, and their count
	# the last.
	[ "$(wc -l <err)" = 1 ] || [ "$(grep -vc ": $number: " err)" = 1 ] || die "$name: $(cat err)"
	[ -n "${VARIANT-}" ] && [ $((bad % 2)) != 0 ] || others "$target"
	rm -rf "$target"
	bad=$((bad + 1))
done

good=0
for path in "$ROOT"/format/golden/*.shard "$ROOT"/format/golden/dataset*/; do
	run 0 "$CAT" verify "$path"
	grep -q '^ok: ' out || die "$path: $(cat out)"
	name=$path others "$path"
	good=$((good + 1))
done
[ $bad -ge 100 ] && [ $good -ge 8 ] || die "only $bad bad and $good golden files were found"
echo "$bad bad files, $good golden ones"
