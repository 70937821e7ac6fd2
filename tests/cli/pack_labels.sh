#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_labels.sh - images without labels, from each kind of source
# TAKES: 20
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
export PYTHONPATH=$ROOT/tests/cli
ARGS=(--resize 16 --crop 16 --order source)

make_images src 30 3
run 0 "$PACK" images src -o ref "${ARGS[@]}" -q
"$PYTHON" - <<'PY'
import csv
import glob
import io
import json
import os
import shutil
import tarfile
import zipfile

images = sorted(glob.glob("src/*/*"))
caption = {p: "caption %d, \u00e4" % i for i, p in enumerate(images)}

def wds(path, rows):
    with tarfile.open(path, "w") as tar:
        for name, data in rows:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))

def sample(i, p):
    key = "%09d" % i
    return [(key + "." + p.rsplit(".", 1)[1], open(p, "rb").read()),
            (key + ".json", json.dumps({"caption": caption[p], "url": "x", "width": 1}).encode()),
            (key + ".txt", caption[p].encode())]

for folder in ("flat", "i2d", "hf"):
    os.mkdir(folder)
for i, p in enumerate(images):
    shutil.copy(p, "flat/%02d.%s" % (i, p.rsplit(".", 1)[1]))
    shutil.copy(p, "hf/%02d.%s" % (i, p.rsplit(".", 1)[1]))
for k in range(2):
    wds("i2d/%05d.tar" % k, sum([sample(i, p) for i, p in enumerate(images)][15 * k:15 * k + 15], []))
    open("i2d/%05d.parquet" % k, "w").write("PAR1")
    open("i2d/%05d_stats.json" % k, "w").write("{}")
wds("plain.tar", [("%02d.%s" % (i, p.rsplit(".", 1)[1]), open(p, "rb").read()) for i, p in enumerate(images)])
with zipfile.ZipFile("plain.zip", "w") as z:
    for i, p in enumerate(images):
        z.write(p, "%02d.%s" % (i, p.rsplit(".", 1)[1]))
names = sorted(os.listdir("hf"))
open("hf/metadata.jsonl", "w").write("".join(
    json.dumps({"file_name": n, "text": caption[p]}) + "\n" for n, p in zip(names, images)))
with open("hf/metadata.csv", "w", newline="") as f:
    w = csv.writer(f)
    w.writerow(["file_name", "text"])
    w.writerows([n, caption[p]] for n, p in zip(names, images))
open("names", "w").write("".join(p + "\n" for p in images))
PY

# unlabelled DS [CAPTION]: the images of ref in its order, no label and no class; and the captions
unlabelled() {
	"$PYTHON" - "$@" <<'PY'
import sys
import records
ref, got = records.read("ref"), records.read(sys.argv[1])
records.same(got["image"], ref["image"], sys.argv[1])
caption = sys.argv[2:]
assert list(got) == ["image"] + caption + [c + "_length" for c in caption], list(got)
for c in caption:
    text = [bytes(row[:n]).decode() for row, n in zip(got[c], got[c + "_length"].ravel())]
    assert text == ["caption %d, \u00e4" % i for i in range(30)], text
PY
	run 0 "$CAT" verify "$1" -q
	run 0 "$CAT" manifest "$1"
	! grep -q '^class' out || die "$1 has classes"
	run 0 "$CAT" list "$1" --count 1
	[ "$(cut -f 2,3 out)" = "-	-" ] || die "a label: $(cat out)"
}

# ---- every kind of source ----

kinds=0
for source in src flat plain.tar plain.zip hf/metadata.jsonl hf/metadata.csv i2d; do
	rm -rf ds
	run 0 "$PACK" images $source -o ds "${ARGS[@]}" --no-label
	cp err last
	unlabelled ds
	kinds=$((kinds + 1))
done
cp last err && grep -q "^shardpack: 64 other files in the source: ignored (.json 32, .txt 30, .parquet 2)$" err || die "$(cat err)"
rm -rf ds
"$PACK" images - -o ds "${ARGS[@]}" --no-label -q <names
unlabelled ds
for source in i2d hf/metadata.jsonl hf/metadata.csv; do
	rm -rf ds
	from=text && [ $source != i2d ] || from=txt
	run 0 "$PACK" images $source -o ds "${ARGS[@]}" --no-label --field caption:kind=text,max=64,from=$from
	unlabelled ds caption
	kinds=$((kinds + 1))
done
rm -rf ds
run 0 "$PACK" images i2d -o ds "${ARGS[@]}" --no-label --field caption:kind=text,max=64,from=json:caption
grep -q "^shardpack: 34 other files in the source: ignored (.txt 30, .json 2, .parquet 2)$" err || die "$(cat err)"
unlabelled ds caption

# a folder with folders in folders, all below it
mkdir -p deep/a/b deep/c && cp src/*00/* deep/a/b && cp src/*01/* deep/c && cp src/*02/* deep
run 0 "$PACK" images deep -o deep.ds "${ARGS[@]}" --no-label
run 0 "$CAT" list deep.ds
[ "$(cut -f 4 out)" = "$(cd deep && find . -type f | sed 's,^\./,,' | sort)" ] || die "not all images: $(cat out)"

# ---- tables as others write them ----

# Excel where numbers have a comma: semicolons, quotes, a mark of UTF-8; and Kaggle's names
"$PYTHON" - <<'PY'
import csv
rows = list(csv.reader(open("hf/metadata.csv", encoding="utf-8")))[1:]
with open("hf/excel.csv", "w", newline="", encoding="utf-8-sig") as f:
    w = csv.writer(f, delimiter=";")
    w.writerow(["Nr.", "Path", "note", "caption"])
    w.writerows([i, n, 'x;"y",', text] for i, (n, text) in enumerate(rows))
with open("hf/kaggle.csv", "w", newline="", encoding="utf-8") as f:
    w = csv.writer(f)
    w.writerow(["filename", "class", "caption"])
    w.writerows([n, "a", text] for n, text in rows)
PY
for table in excel.csv:Path kaggle.csv:filename; do
	rm -rf ds
	run 0 "$PACK" images hf/${table%:*} -o ds "${ARGS[@]}" --no-label --path-key ${table#*:} \
		--field caption:kind=text,max=64
	[ $table != excel.csv:Path ] ||
		said "shardpack: hf/excel.csv: columns are separated by semicolons, because the first line has no comma"
	unlabelled ds caption
	kinds=$((kinds + 1))
done
# The labels of a list are found by the same option.
run 0 "$PACK" images hf -o listed "${ARGS[@]}" --labels hf/kaggle.csv --path-key filename --label-key class -q
run 0 "$CAT" verify listed -q
# A comma within quotes separates nothing; one outside of quotes does.
printf '"path";"a, b"\n%s;"1;""2"""\n' "$(head -n 1 names)" >quoted.csv
run 1 "$PACK" images quoted.csv -o no "${ARGS[@]}" --no-label --columns n:u8
grep -qF "the columns are 'path' 'a, b'" err || die "$(cat err)"
printf 'path,"a;b"\n%s,x\n' "$(head -n 1 names)" >commas.csv
run 0 "$PACK" images commas.csv -o commas "${ARGS[@]}" --no-label

# ---- what it leaves ----

run 0 "$PACK" plan images src -o planned "${ARGS[@]}" --no-label --shard-records 7
grep -qx 'label none' planned/.shardpack/plan || die "the plan does not say so"
grep -qx 'classes 0' planned/.shardpack/plan || die "classes without labels"
grep -q '^input 0 - [0-9]* [^ ]*$' planned/.shardpack/plan || die "a class in an input"
run 0 "$PACK" plan images src -o labelled "${ARGS[@]}" --shard-records 7
! grep -q '^label' labelled/.shardpack/plan || die "a plan with labels has a new line"
for change in 's/^\(input 3\) -/\1 0/' 's/^label none/label class/' '/^label none/d' \
	's/^classes 0/class 0 a\nclasses 1/'; do
	rm -rf spoilt
	replan "$change" planned spoilt
	run 1 "$PACK" build spoilt
	grep -q "this is not a plan that shardpack wrote$" err || die "$change: $(cat err)"
done
run 0 "$PACK" build planned --part 1/2 -j 1 -q
run 0 "$PACK" build planned --part 0/2 -j 3 -q
run 0 "$PACK" seal planned -q
run 0 "$PACK" images src -o single "${ARGS[@]}" --no-label --shard-records 7 -q
same planned single
run 0 "$PACK" images src -o single "${ARGS[@]}" --no-label --shard-records 7
said "shardpack: single: the same dataset is there already (same names, sizes, times and options); \
nothing to do"
run 2 "$PACK" images src -o single "${ARGS[@]}" --shard-records 7
run 0 "$PACK" images src -o dry "${ARGS[@]}" --no-label --dry-run
printed "label none"
printed "record 0 $(head -n 1 names | sed 's,^src/,,')"

# bad inputs, in quarantine and reports
cp -r flat dirty && : >dirty/00a.jpg
run 0 "$PACK" images dirty -o clean "${ARGS[@]}" --no-label --on-error quarantine --quarantine rejected --report r.json
said "shardpack: 31 inputs = 30 written + 0 skipped + 1 quarantined + 0 failed"
unlabelled clean
[ "$(json r.json '[d["recipe"]["label"], d["classes"], d["bad_inputs"][0]["class"]]')" = "['none', [], None]" ] ||
	die "$(cat r.json)"
"$PYTHON" -c 'import json
line = json.loads(open("rejected/quarantine.jsonl").read())
assert line["input"] == "00a.jpg" and line["class"] is None, line'
run 0 "$PACK" images dirty -o html "${ARGS[@]}" --no-label --on-error skip --report r.html
grep -q '00a.jpg' r.html || die "the report does not name the bad input"

# with whole images, with damage, with fields of numbers: all without a label before them
sed '1s/\r$/,age/; 1!s/\r$/,7/' hf/metadata.csv >hf/aged.csv
run 0 "$PACK" images hf/aged.csv -o whole --fit area --resize 16 --order source --no-label --accept eoi \
	--columns age:u8 --field text:kind=text,max=64 -q
run 0 "$CAT" verify whole -q
"$PYTHON" -c 'import records
got = records.read("whole")
assert list(got) == ["image", "image_length", "image_size", "age", "text", "text_length", "damage"], list(got)
assert set(got["age"]) == {7} and not got["damage"].any() and got["image_length"].all()'
run 0 "$CAT" stats whole
run 0 "$CAT" show whole --out sheet.png
run 0 "$CAT" get whole 0

# ---- what is refused, and what names the option ----

run 2 "$PACK" images src -o no --no-label --labels hf/metadata.csv
grep -qx "shardpack: --no-label and --labels exclude each other" err || die "$(cat err)"
for option in "--label-regex (x)" "--label-key x" "--classes names"; do
	# shellcheck disable=SC2086 # two words
	run 2 "$PACK" images src -o no --no-label $option
	grep -qx "shardpack: --no-label and ${option% *} exclude each other" err || die "$(cat err)"
done
VERB=(images)
refused 1 "i2d/00000.tar/000000000.$(ls src/* | sed -n "2s/.*\.//p"): is in no class folder; give labels with --labels FILE, \
--label-key NAME (a key of the .json members) or --label-regex RE, or pack without labels with --no-label" i2d
refused 1 "hf/metadata.jsonl: line 1: no text or whole number is called label; say which one holds the labels with \
--label-key NAME, or pack without labels with --no-label; the keys are 'file_name' 'text'" hf/metadata.jsonl
refused 1 "hf/metadata.csv: line 1: no column is called label; say which one holds the labels with --label-key NAME, \
or pack without labels with --no-label; the columns are 'file_name' 'text'" hf/metadata.csv

# numbers that are no classes: each up to the largest would be one, with a name in the manifest
two=$(cd hf && ls 01.*) && one=$(cd hf && ls 00.*)
numbers() { printf 'path,label\n%s,%s\n%s,%s\n' "$one" "$1" "$two" "$2" >hf/numbers.csv; }
numbers 16777215 3
refused 1 "hf/$one: label 16777215 would make 16777216 classes, and only 2 of them have an image; if it is an id or a \
measure, pack it as a field: --no-label --field id:kind=tensor,dtype=i64,from=label; if it is a class, name all of \
them with --classes FILE" hf/numbers.csv
run 0 "$PACK" images hf/numbers.csv -o ids "${ARGS[@]}" --no-label --field id:kind=tensor,dtype=i64,from=label
run 0 "$CAT" get ids 0 --field id
grep -q 'i64: 16777215$' out || die "$(cat out)"
refused 1 "hf/$one: label 16777215 would make 16777216 classes, and only 2 of them have an image; if it is a class, \
name all of them with --classes FILE" hf/"$one" hf/"$two" --labels hf/numbers.csv
numbers 65536 65535
refused 1 "hf/$one: label 65536 would make 65537 classes, and only 2 of them have an image; if it is an id or a \
measure, pack it as a field: --no-label --field id:kind=tensor,dtype=i64,from=label; if it is a class, name all of \
them with --classes FILE" hf/numbers.csv
seq 0 65536 >names
run 0 "$PACK" images hf/numbers.csv -o by.list "${ARGS[@]}" --classes names
numbers 65535 7
run 0 "$PACK" images hf/numbers.csv -o holes "${ARGS[@]}"
grep -q "65534 of 65536 classes have no image" err || die "$(cat err)"

# what lies in a folder and is not taken
run 0 "$PACK" images hf -o aside "${ARGS[@]}" --no-label
said "shardpack: warning: hf/metadata.jsonl: is not read, because the folder is packed; to pack the images that it \
names, and its columns, give it in the place of the folder"
unlabelled aside
run 0 "$PACK" images hf -o asked "${ARGS[@]}" --labels hf/metadata.jsonl --label-key text
! grep -q "is not read" err || die "the list of labels is not read: $(cat err)"
mkdir mixed && cp i2d/00000.tar flat/0[01].* mixed
run 0 "$PACK" images mixed -o beside "${ARGS[@]}" --no-label
grep -q "^shardpack: warning: mixed: 2 images lie beside the archives: ignored (the first is '00\.[a-z]*'); move the \
archives to a folder of their own, or name them$" err || die "$(cat err)"
echo "$kinds sources without labels, $n refusals"
