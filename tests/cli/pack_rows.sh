#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_rows.sh - the same image in several rows of a table, each of which is a record
# TAKES: 15
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
export PYTHONPATH=$ROOT/tests/cli
ARGS=(--resize 16 --crop 16 --order source)
CAPTION=(--field caption:kind=text,max=32)

make_images src 12 2
# Image i of 12 stands in 1 + i % 3 rows, with captions and labels of their own.  In other.csv each
# row has a copy of the image as its own file, so its records show what those of the rows must be.
"$PYTHON" - <<'PY'
import csv
import glob
import os
import shutil

images = sorted(glob.glob("src/*/*"))
rows = [(p, k, "%s of %d" % ("abc"[k], i), "label %d" % ((i + k) % 2))
        for k in range(3) for i, p in enumerate(images) if k <= i % 3]
os.mkdir("copies")
with open("rows.csv", "w", newline="") as f, open("other.csv", "w", newline="") as g:
    rows_csv, other = csv.writer(f), csv.writer(g)
    for w in (rows_csv, other):
        w.writerow(["path", "label", "caption"])
    for n, (p, k, caption, label) in enumerate(rows):
        copy = "copies/%02d.%s" % (n, p.rsplit(".", 1)[1])
        shutil.copy(p, copy)
        rows_csv.writerow([("./" if k else "") + p, label, caption])
        other.writerow([copy, label, caption])
open("keys", "w").write("".join(p + ("#%d" % (k + 1) if k else "") + "\n" for p, k, c, l in rows))
PY

run 0 "$PACK" images rows.csv -o ds "${ARGS[@]}" "${CAPTION[@]}"
said "shardpack: 8 images stand in several rows, 20 rows in all; each row is an input, and the second one of an \
image has a key such as '$(sed -n 2p keys)#2'"
differ="8 images stand in several rows with different labels; each row is a record with its own (the first is \
'$(sed -n 2p keys)', with 'label 1' and 'label 0')"
said "shardpack: warning: $differ"
said "shardpack: 24 inputs = 24 written + 0 skipped + 0 quarantined + 0 failed"
run 0 "$CAT" verify ds -q
run 0 "$CAT" list ds
[ "$(cut -f 4 out)" = "$(cat keys)" ] || die "keys: $(cat out)"
[ "$(cut -f 4 out | sort -u | wc -l)" = 24 ] || die "a key is there twice"
run 0 "$PACK" images other.csv -o other "${ARGS[@]}" "${CAPTION[@]}"
! grep -q "several rows" err || die "no image is there twice"
"$PYTHON" -c 'import records
got, want = records.read("ds"), records.read("other")
assert list(got) == list(want)
for name in want:
    records.same(got[name], want[name], name)'

# any -j, parts, a kill in the middle
run 0 "$PACK" images rows.csv -o j1 "${ARGS[@]}" "${CAPTION[@]}" -j 1 --shard-records 5 -q
run 0 "$PACK" images rows.csv -o j3 "${ARGS[@]}" "${CAPTION[@]}" -j 3 --shard-records 5 -q
same j1 j3
run 0 "$PACK" plan images rows.csv -o parts "${ARGS[@]}" "${CAPTION[@]}" --shard-records 5 -q
grep -q "^input 12 0 [0-9]* $(sed -n 13p keys) " parts/.shardpack/plan || die "the plan does not number rows"
run 0 "$PACK" build parts --part 1/2 -q
run 0 "$PACK" build parts --part 0/2 -q
run 0 "$PACK" build parts --again -q
run 0 "$PACK" seal parts -q
same j1 parts
run 0 "$PACK" plan images rows.csv -o going "${ARGS[@]}" "${CAPTION[@]}" --shard-records 5 -q
run 0 "$PACK" build going --part 2/5 -q
run 0 "$PACK" images rows.csv -o going "${ARGS[@]}" "${CAPTION[@]}" --shard-records 5 -q
same j1 going
run 0 "$PACK" images rows.csv -o going "${ARGS[@]}" "${CAPTION[@]}" --shard-records 5
grep -q "nothing to do" err || die "$(cat err)"

# plans that say something else
run 0 "$PACK" plan images rows.csv -o planned "${ARGS[@]}" "${CAPTION[@]}" -q
for change in 's/#2 / /;s/#3 /#1 /' 's/#2 /#02 /' 's/#2 /#x /' 's/#2 /# /' 's/#3 /#0 /' 's/#3 /#1073741824 /' \
	's/#2 /#2#2 /' 's/ src\(.*\)#2 / #2 /'; do
	rm -rf spoilt
	replan "$change" planned spoilt
	run 1 "$PACK" build spoilt
	grep -q "not a path below the source; this is not a plan that shardpack wrote$" err || die "$change: $(cat err)"
done
rm -rf spoilt && replan s/x/x/ planned spoilt
run 0 "$PACK" build spoilt -q

# one bad image in three rows: three bad inputs, one copy of the file
bad=$(sed -n 3p keys)
cp -r src kept && : >"$bad"
run 1 "$PACK" images rows.csv -o none "${ARGS[@]}" "${CAPTION[@]}"
[ "$(grep -c "^shardpack: warning: ./$bad\(#[23]\)\?: " err)" = 3 ] || die "not each row is named: $(cat err)"
run 0 "$PACK" images rows.csv -o good "${ARGS[@]}" "${CAPTION[@]}" --on-error quarantine --quarantine out.of \
	--report r.json
said "shardpack: 24 inputs = 21 written + 0 skipped + 3 quarantined + 0 failed"
[ "$(find out.of -type f | sort | tr '\n' ' ')" = "out.of/quarantine.jsonl out.of/$bad " ] || die "$(find out.of)"
named=$(json r.json '" ".join(sorted(b["input"] for b in d["bad_inputs"]))')
[ "$named" = "$bad $bad#2 $bad#3" ] || die "$named"
grep -q "\"input\": \"$bad#3\"" out.of/quarantine.jsonl || die "$(cat out.of/quarantine.jsonl)"
run 0 "$CAT" verify good -q
rm -r src && mv kept src

# the same with a file that is not there: bad when it is listed
printf 'path\n%s\ngone.jpg\n%s\ngone.jpg\n' "$(sed -n 1p keys)" "$(sed -n 1p keys)" >gone.csv
run 0 "$PACK" images gone.csv -o gone "${ARGS[@]}" --no-label --on-error skip --report gone.json
said "shardpack: 4 inputs = 2 written + 2 skipped + 0 quarantined + 0 failed"
[ "$(json gone.json '" ".join(b["input"] for b in d["bad_inputs"])')" = "gone.jpg gone.jpg#2" ] || die "$(cat gone.json)"
run 0 "$CAT" verify gone -q
# a plan's report lists them, too
GONE=(images gone.csv "${ARGS[@]}" --no-label --report plan.json)
planned() { # planned OUTCOME SKIPPED NOT_DONE FAILED_BAD
	[ "$(json plan.json 'd["outcome"], d["inputs"], d["skipped"], d["failed_because"]["not_published"], \
d["failed_because"]["bad"], " ".join(b["input"] + " " + b["reason"] for b in d["bad_inputs"])')" = \
		"('$1', 4, $2, $3, $4, 'gone.jpg missing gone.jpg#2 missing')" ] || die "$1: $(cat plan.json)"
	rm plan.json
}
run 1 "$PACK" plan "${GONE[@]}" -o plan.fail && planned failed 0 2 2
run 0 "$PACK" plan "${GONE[@]}" -o plan.skip --on-error skip && planned planned 2 2 0
run 1 "$PACK" "${GONE[@]}" -o plan.dry --dry-run && planned failed 0 2 2
run 0 "$PACK" "${GONE[@]}" -o plan.dry --on-error skip --dry-run && planned planned 2 2 0
run 0 "$PACK" plan "${GONE[@]}" -o gone --on-error skip && planned sealed 2 0 0

# labels from a list, or none
cut -d , -f 1,3 rows.csv >bare.csv
{ echo path,label && cut -d , -f 1 rows.csv | tail -n +2 | sort -u | sed 's/$/,a/'; } >list.csv
run 0 "$PACK" images bare.csv -o listed "${ARGS[@]}" --labels list.csv
said "shardpack: 24 inputs = 24 written + 0 skipped + 0 quarantined + 0 failed"
run 0 "$PACK" images bare.csv -o bare "${ARGS[@]}" "${CAPTION[@]}" --no-label --report r.html
run 0 "$CAT" list bare
[ "$(cut -f 4 out)" = "$(cat keys)" ] || die "keys: $(cat out)"
# two tables with the same images; a path with a mark of its own
cp rows.csv again.csv
run 0 "$PACK" images rows.csv again.csv -o both "${ARGS[@]}" --no-label
said "shardpack: 12 images stand in several rows, 48 rows in all; each row is an input, and the second one of an \
image has a key such as '$(sed -n 1p keys)#2'"
I=$(sed -n 1p keys) && cp "$I" 'src/a#2.jpg' && cp "$I" src/a
printf 'path\nsrc/a#2.jpg\nsrc/a#2.jpg\nsrc/a\n' >marks.csv
run 0 "$PACK" images marks.csv -o marks "${ARGS[@]}" --no-label
run 0 "$CAT" list marks
[ "$(cut -f 4 out | tr '\n' ' ')" = "src/a#2.jpg src/a#2.jpg#2 src/a " ] || die "$(cat out)"

# ---- rows that do not say the same of an image ----

mkdir same && cp "$(sed -n 1p keys)" same/0.jpg && cp "$(sed -n 1p keys)" same/1.jpg
NUMBERS=(--no-label --columns n:f32) BOXES=(--no-label --field boxes:kind=boxes,max=2)
MANY=(--multi-label 3 --label-separator '|') TEXT=(--no-label --field text:kind=text,max=9)
first="(the first is 'same/0.jpg', "
labels="1 image stands in several rows with different labels; each row is a record with its own $first"
fields="1 image stands in several rows that differ in fields $first"
alike=0
# tell STORY LINE TABLE WORD...: a table of these lines says that line, a warning or a note; or with
# an empty one neither
tell() {
	local story=$1 line=$2 name=$3
	shift 3
	cat >"$name"
	rm -rf told
	run 0 "$PACK" images "$name" -o told "${ARGS[@]}" "$@" --report told.json
	alike=$((alike + 1))
	if [ -z "$line" ]; then
		! grep -q 'different labels\|differ in fields' err || die "$story: $(cat err)"
		return
	fi
	said "$line"
	line=${line#shardpack: }
	[ "$(json told.json 'd["notes"][-1] if "differ in" in d["notes"][-1] else "warning: " + d["warnings"][-1]')" = \
		"$line" ] || die "$story: not in the report"
	rm -rf told
	run 0 "$PACK" images "$name" -o told "${ARGS[@]}" "$@" --report told.html
	line=${line#warning: }
	grep -qF "<p>$(sed "s/'/\&#39;/g" <<<"$line")</p>" told.html || die "$story: not in the report in HTML"
}
tell "one path, other labels" "shardpack: warning: ${labels}with 'cat' and 'dog')" t.csv <<<'path,label
same/0.jpg,cat
same/1.jpg,dog
same/0.jpg,cat
same/0.jpg,dog'
for path in ./same/0.jpg same//0.jpg same/./0.jpg same/../same/0.jpg "$PWD/same/0.jpg"; do
	tell "$path" "shardpack: warning: ${labels}with 'cat' and 'dog')" t.csv <<<"path,label
same/0.jpg,cat
$path,dog"
done
tell "rows that repeat" "" t.csv <<<'path,label
same/0.jpg,cat
./same/0.jpg,cat
same/1.jpg,dog'
tell "JSON lines" "shardpack: warning: ${labels}with '0' and '1')" t.jsonl <<<'{"path": "same/0.jpg", "label": 0}
{"path": "./same/0.jpg", "label": 1}'
tell "another list of labels" "shardpack: warning: ${labels}with 'a','b' and 'a')" t.csv "${MANY[@]}" <<<'path,label
same/0.jpg,a|b
same/0.jpg,a'
tell "no label" "shardpack: warning: ${labels}with 'a' and no label)" t.csv "${MANY[@]}" <<<'path,label
same/0.jpg,a
same/0.jpg,'
tell "the same labels in another order" "" t.csv "${MANY[@]}" <<<'path,label
same/0.jpg,a|b
same/0.jpg,b|a'
tell "another number" "shardpack: ${fields}in n)" t.csv "${NUMBERS[@]}" <<<'path,n
same/0.jpg,1
same/0.jpg,2'
tell "the same number" "" t.csv "${NUMBERS[@]}" <<<'path,n
same/0.jpg,1
same/0.jpg,1.0'
tell "other boxes" "shardpack: ${fields}in boxes)" t.csv "${BOXES[@]}" <<<'path,boxes
same/0.jpg,"[[1,2,3,4]]"
same/0.jpg,"[[1,2,3,5]]"'
tell "other captions are meant" "" t.csv "${TEXT[@]}" <<<'path,text
same/0.jpg,one
same/0.jpg,two'
tell "texts of one row" "" t.csv --field text:kind=text,max=9,pick=each <<<'path,label,text
same/0.jpg,cat,"[""one"",""two""]"'
tell "a caption and a number" "shardpack: ${fields}in n)" t.csv "${TEXT[@]}" --columns n:u8,m:u8 <<<'path,text,n,m
same/0.jpg,one,1,1
same/0.jpg,two,2,1'
tell "a bad row is none" "" t.csv --on-error skip <<<'path,label
same/0.jpg,cat
same/0.jpg,'
printf 'path,label\nsame/0.jpg,dog\n' >other.csv
printf 'path,label\nsame/0.jpg,cat\n' >one.csv
run 0 "$PACK" images one.csv other.csv -o two.tables "${ARGS[@]}" -q
said_only "shardpack: warning: ${labels}with 'cat' and 'dog')"

# ---- refused ----

VERB=(images)
cp "$I" 'src/a#2'
printf 'path\nsrc/a\nsrc/a#2\nsrc/a\n' >clash.csv
refused 1 "./src/a: is in several rows, and 'src/a#2', the key of one of them, is the path of another image; rename \
that" clash.csv --no-label
# so it is if what comes last of src/a.png is no row, but a bad file
cp "$I" src/a.png && cp "$I" 'src/a.png#2'
printf 'path,cap/{}.txt\nsrc/a.png,x\nsrc/a.png,y\nsrc/a.png#2,z\n' >last.csv
refused 1 "$PWD/src/a.png: is in several rows, and 'src/a.png#2', the key of one of them, is the path of another \
image; rename that" last.csv src/a.png --no-label --on-error skip --field 'cap:kind=text,max=9,from=cap/{}.txt'
rm src/a.png*
printf 'path\n%s\n' "$I" >one.csv
refused 1 "$PWD/$I: appears twice; each image must appear once, unless in rows of a table" one.csv "$I" --no-label
printf '%s\n%s\n' "$I" "$I" >names
code=0
"$PACK" images - -o no "${ARGS[@]}" --no-label <names 2>err || code=$?
[ $code = 2 ] || die "exit code $code"
said_only "shardpack: $I: given twice"
echo "24 rows of 12 images, by -j, parts and resume; a bad one, 8 spoilt plans, 4 refusals, $alike tables"
