#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_skip.sh - inputs that are bad when they are listed: all are found in one run, and
# --on-error skip and quarantine leave them out; each is counted and named, on the terminal, in the
# report, in the shards and in quarantine.jsonl
# TAKES: 25
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
need_pillow

make_images src 24 2
"$PYTHON" "$ROOT/tests/cli/make_bad.py" src
SMALL=(--resize 16 --crop 16 --shard-records 5)

# reasons REPORT: the path and the reason of each bad input in it, in byte order
reasons() {
	json "$1" '"\n".join(sorted(x["input"] + " " + x["reason"] for x in d["bad_inputs"]))'
}
# adds_up REPORT: every input of it is in the sum
adds_up() {
	[ "$(json "$1" 'd["inputs"] == d["written"] + d["skipped"] + d["quarantined"] + d["failed"]')" = True ] ||
		die "$1 does not add up"
}
# check NAME SOURCE OPTION...
check() {
	local name=$1 src=$2 bad good how
	shift 2
	bad=$(wc -l <"$name.bad") good=$(wc -l <"$name.good")
	# By default: exit 1, all of them, nothing made; the plan alone, too, and a dry run.
	run 1 "$PACK" images "$src" -o "$name.ds" "${SMALL[@]}" "$@" --report "$name.json"
	[ ! -e "$name.ds" ] || die "$name: something was made"
	reasons "$name.json" | diff "$name.bad" - >&2 || die "$name: these are not the bad inputs"
	adds_up "$name.json"
	[ "$(json "$name.json" 'd["failed_because"]')" = "{'bad': $bad, 'unreadable': 0, 'not_published': $good}" ] ||
		die "$name: $(json "$name.json" 'd["failed_because"]')"
	while read -r path _; do
		grep -qF "/$path: " err || die "$name: the terminal does not name $path: $(cat err)"
	done <"$name.bad"
	said "to leave bad inputs out, add --on-error skip, or --on-error quarantine --quarantine DIR"
	run 1 "$PACK" plan images "$src" -o "$name.ds" "${SMALL[@]}" "$@"
	[ ! -e "$name.ds" ] || die "$name: a plan was made"
	said "shardpack: $bad of $((bad + good)) inputs are bad"
	run 1 "$PACK" images "$src" -o "$name.ds" "${SMALL[@]}" "$@" --dry-run
	# Left out: the others are there, each once, for any number of threads and in parts.
	for how in 1 3; do
		run 0 "$PACK" images "$src" -o "$name.$how" "${SMALL[@]}" "$@" --on-error skip -j $how \
			--report "$name.json"
		said "shardpack: $((bad + good)) inputs = $good written + $bad skipped + 0 quarantined + 0 failed"
		reasons "$name.json" | diff "$name.bad" - >&2 || die "$name: skip: these are not the bad inputs"
		adds_up "$name.json"
	done
	same "$name.1" "$name.3"
	run 0 "$CAT" verify "$name.1" -q
	run 0 "$CAT" list "$name.1"
	cut -f 4 out | sort | diff "$name.good" - >&2 || die "$name: these are not the good ones"
	run 0 "$PACK" plan images "$src" -o "$name.parts" "${SMALL[@]}" "$@" --on-error skip
	for how in 1 0 2; do
		run 0 "$PACK" build "$name.parts" --part $how/3
		! [ -e "$name.parts/0000$how.shard" ] || lose_receipt "$name.parts" $how # the shard and the plan say the same
	done
	run 0 "$PACK" seal "$name.parts" --report "$name.json"
	reasons "$name.json" | diff "$name.bad" - >&2 || die "$name: seal: these are not the bad inputs"
	same "$name.1" "$name.parts"
	run 0 "$PACK" images "$src" -o "$name.1" "${SMALL[@]}" "$@" --on-error skip # there already
	said "shardpack: $((bad + good)) inputs = $good written + $bad skipped + 0 quarantined + 0 failed"
	# The files of bad inputs, as far as there are any, lie in quarantine.
	run 0 "$PACK" images "$src" -o "$name.kept" "${SMALL[@]}" "$@" --on-error quarantine --quarantine "$name.q"
	said "shardpack: $((bad + good)) inputs = $good written + 0 skipped + $bad quarantined + 0 failed"
	"$PYTHON" -c 'import json, sys
for line in open(sys.argv[1]): print(json.loads(line)["input"], json.loads(line)["reason"])' \
		"$name.q/quarantine.jsonl" | sort | diff "$name.bad" - >&2 || die "$name: quarantine.jsonl"
	# --max-bad counts them.
	run 1 "$PACK" images "$src" -o "$name.max" "${SMALL[@]}" "$@" --on-error skip --max-bad $((bad - 1))
	grep -q "^shardpack: --max-bad allows $((bad - 1)) bad input" err || die "$(cat err)"
	run 1 "$PACK" images "$src" -o "$name.max2" "${SMALL[@]}" "$@" --max-bad 0
	grep -q "^shardpack: --max-bad allows 0 bad inputs, and there are $bad;" err || die "$(cat err)"
	run 0 "$PACK" images "$src" -o "$name.max3" "${SMALL[@]}" "$@" --on-error skip --max-bad "$bad"
	n=$((n + bad))
}
check table table.csv --field boxes:kind=boxes,max=3
check lines lines.jsonl --field text:kind=text,max=5
check folder folder
check tars tars --field meta:kind=text,max=99,from=json

# Quarantine keeps the image of a row and the member of a sample, and nothing of what is not there.
cmp "$(sed -n 's/ incomplete$//p' table.bad | head -n 1)" "table.q/$(sed -n 's/ incomplete$//p' table.bad | head -n 1)"
cmp tars.q/0.tar/noimage.cls <(printf 1)
[ ! -e table.q/src/gone.jpg ] || die "a file that is not there is in quarantine"

# A class of which all images are bad keeps its number: labels of bad rows count.
head -n 1 table.csv >classes.csv
sed -n '2,3p' table.csv | sed 's/,[0-9],/,x,/' >>classes.csv
printf 'src/none.jpg,m,"[]"\n' >>classes.csv
run 0 "$PACK" images classes.csv -o classes "${SMALL[@]}" --on-error skip --report classes.json
[ "$(json classes.json '[(c["name"], c["inputs"], c["records"]) for c in d["classes"]]')" = \
	"[('m', 1, 0), ('x', 2, 2)]" ] || die "$(cat classes.json)"

# A list on standard input, and lines of --labels, may name files that are not there.
find src -name '*1.jpg' | sort >list && sed -i '2i src/class_00/gone.jpg\nsrc/gone.tar' list
good=$(($(wc -l <list) - 2))
"$PACK" images - -o listed "${SMALL[@]}" --on-error skip --report listed.json <list >out 2>err || die "$(cat err)"
said "shardpack: $((good + 2)) inputs = $good written + 2 skipped + 0 quarantined + 0 failed"
[ "$(reasons listed.json | tr '\n' ' ')" = "class_00/gone.jpg missing gone.tar missing " ] || die "$(reasons listed.json)"
bare=class_01/$(find src/class_01 -name '*.jpg' ! -name '*1.jpg' -printf '%f\n' | sort | head -n 1) # has no label
{ echo path,label && sed 's,^src/\(.*\),\1,; s/$/,1/' list && echo "$bare,"; } | grep -v tar >labels.csv
run 1 "$PACK" images src -o labelled "${SMALL[@]}" --labels labels.csv --report labels.json
reasons labels.json >left
grep -qx "class_00/gone.jpg missing" left && grep -qx "$bare incomplete" left || die "$(cat left)"
[ "$(grep -c incomplete left)" = $((24 - good)) ] || die "images without a line are not all there: $(cat left)"

# More than 20: these are shown, the others counted, and all are in the report.
{ head -n 2 table.csv && for i in $(seq 60); do echo "src/none$i.jpg,1,[]"; done; } >many.csv
run 1 "$PACK" images many.csv -o many "${SMALL[@]}" --report many.json
[ "$(grep -c '^shardpack: warning: ./src/none' err)" = 20 ] || die "$(cat err)"
said "shardpack: warning: more than 20 such inputs; the others are only counted; --report FILE lists them"
[ "$(json many.json 'len(d["bad_inputs"])')" = 60 ] || die "not all are in the report"
# Bad bytes beside them are found in the same run.
head -c 300 src/class_00/00000.jpg >cut.jpg && printf 'cut.jpg,1,[]\n' >>many.csv
run 1 "$PACK" images many.csv -o many "${SMALL[@]}" --report many.json
[ "$(json many.json 'sum(x["reason"] == "truncated" for x in d["bad_inputs"])')" = 1 ] || die "the cut image is not found"
# Nothing but bad ones: no dataset, with any policy.
sed -i 2d many.csv
run 1 "$PACK" images many.csv -o many "${SMALL[@]}" --on-error skip
[ ! -e many ] || die "a dataset of nothing"

# Plans that somebody changed: a line of a bad input is checked like any other.
ln -s nowhere src/class_00/x.jpg
run 0 "$PACK" plan images src -o told "${SMALL[@]}" --on-error skip -q
grep -q '^input [0-9]* 0 0 class_00/x.jpg !missing a%20link%20to' told/.shardpack/plan || die "not as plan.h has it"
for edit in 's/ !missing / !nosuch /' 's/ !missing / !vanished /' 's/ !missing .*/ !missing/' 's/ !missing / !/' \
	's/ !missing .*/ !missing a b/' 's/ !missing / !missing %zz/' 's/^\(input 3 \)[0-9]/\1-/' \
	's/^\(input [0-9]* \)0\( .* !missing\)/\19\2/' "s/ !missing .*/ !missing $(printf 'x%.0s' $(seq 400))/"; do
	rm -rf spoilt && replan "$edit" told spoilt
	run 1 "$PACK" build spoilt
	grep -q "; this is not a plan that shardpack wrote$" err || die "$edit: $(cat err)"
done
rm -rf spoilt && replan s/x/x/ told spoilt
run 0 "$PACK" build spoilt
rm src/class_00/x.jpg

# Negative controls: a build that forgets an input that the plan knows to be bad, and one that reads
# it as if it were good, are noticed.
break_pack build.c \
	's/^\taccount_add(job->account, &p);$/\tif (reason == SHARD_MISS_MISSING)\n\t\treturn EXIT_DONE;\n&/'
code=0
./broken images table.csv -o control "${SMALL[@]}" --on-error skip >out 2>err </dev/null || code=$?
[ $code != 0 ] || die "an input that is in no count is not noticed"
break_pack plan.c 's/out->bad_reason = .*/out->bad_reason = 0;/'
code=0
./broken images table.csv -o control2 "${SMALL[@]}" --on-error skip >out 2>err </dev/null || code=$?
[ $code != 0 ] || die "a bad input that is read is not noticed"

echo "$n bad inputs of four sources: fail, skip, quarantine, parts, --max-bad; two controls are caught"
