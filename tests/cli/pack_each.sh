#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_each.sh - pick=each: a record for each text of a list
# TAKES: 8
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
export PYTHONPATH=$ROOT/tests/cli

# Eight images.  Image i has i % 4 captions in two languages; 4 has one that is no list, and 0 none.
# flat.jsonl has a row for each text instead: its records are what those of the lists must be.
"$PYTHON" - <<'PY'
import csv, json, os
from PIL import Image
os.mkdir("img")
rows, images, notes = [], [], []
for i in range(8):
    name = "img/%d.png" % i
    Image.new("RGB", (20, 20), (30 * i, 9, 250 - 30 * i)).save(name)
    en, fr = (["%s %d \u00e9\n\"%d\"" % (lang, i, k) for k in range(i % 4)] for lang in ("en", "fr"))
    rows.append({"path": name, "label": "c%d" % (i % 3), "en": en, "fr": fr, "n": i})
rows[4]["en"] = "alone"
rows[4]["fr"] = ["seul"]
with open("t.jsonl", "w") as f:
    f.write("".join(json.dumps(r) + "\n" for r in rows))
with open("t.csv", "w", newline="") as f:
    table = csv.writer(f)
    table.writerow(rows[0])
    for r in rows:
        table.writerow([r["path"], r["label"], json.dumps(r["en"]), json.dumps(r["fr"], ensure_ascii=False), r["n"]])
with open("flat.jsonl", "w") as f, open("keys", "w") as keys:
    for r in rows:
        en = [r["en"]] if isinstance(r["en"], str) else r["en"]
        for k in range(max(1, len(en))):
            texts = {"en": en[k], "fr": r["fr"][k]} if en else {"en": "", "fr": ""}
            f.write(json.dumps(dict(r, **texts)) + "\n")
            keys.write(r["path"] + ("#%d" % (k + 1) if k else "") + "\n")
def coco(name, rows):
    json.dump({"images": [{"id": i, "file_name": os.path.basename(r["path"])} for i, r in enumerate(rows)],
               "annotations": [{"id": 10 * i + k, "image_id": i, "caption": t} for i, r in enumerate(rows)
                               for k, t in enumerate(r["fr"])]}, open(name, "w"))
coco("coco.json", rows)
coco("twice.json", [rows[2], rows[3], rows[2]])
coco("long.json", [dict(rows[3], fr=["a", "b" * 41, "c"])])
PY

ARGS=(--resize 16 -q)
EACH=(--field en:kind=text,max=40,optional,pick=each --field fr:kind=text,max=40,optional,pick=each --columns n:u8)
PLAIN=(--field en:kind=text,max=40,optional --field fr:kind=text,max=40,optional --columns n:u8)
cat >check.py <<'PY'
import sys
import records
got, want = records.read(sys.argv[1]), records.read(sys.argv[2])
names = sys.argv[3:] or list(want)
assert sys.argv[3:] or list(got) == names
for name in names:
    records.same(got[name], want[name], name)
PY

run 0 "$PACK" images flat.jsonl -o flat --order source "${ARGS[@]}" "${PLAIN[@]}"
for table in t.jsonl t.csv; do
	run 0 "$PACK" images $table -o ds.$table --order source --resize 16 "${EACH[@]}"
	said "shardpack: 4 images have several texts, 10 texts in all; each text is an input, and the second one of an \
image has a key such as 'img/2.png#2'"
	said "shardpack: 14 inputs = 14 written + 0 skipped + 0 quarantined + 0 failed"
	"$PYTHON" check.py ds.$table flat || die "$table"
	run 0 "$CAT" list ds.$table
	[ "$(cut -f 4 out)" = "$(cat keys)" ] || die "keys: $(cat out)"
	run 0 "$CAT" verify ds.$table -q
done
same ds.t.jsonl ds.t.csv
# a list alone, and beside it one that is packed whole
run 0 "$PACK" images t.jsonl -o one --order source "${ARGS[@]}" --field en:kind=text,max=40,optional,pick=each \
	--field fr:kind=text,max=40,optional,pick=all,count=3
"$PYTHON" check.py one flat en image
run 0 "$CAT" get one 5 --field fr
printed '  fr   u8[3,40]: ["fr 3 é\n\"0\"", "fr 3 é\n\"1\"", "fr 3 é\n\"2\""]'

# COCO's captions: the same records
run 0 "$PACK" images coco.json --root img -o coco --order source "${ARGS[@]}" \
	--field fr:kind=text,max=40,optional,pick=each
"$PYTHON" check.py coco flat fr image
run 0 "$CAT" list coco
[ "$(cut -f 4 out)" = "$(cat keys)" ] || die "keys: $(cat out)"

# any -j, parts, --again, a resume
SMALL=("${ARGS[@]}" "${EACH[@]}" --shard-records 4 --seed 3)
run 0 "$PACK" images t.csv -o j1 "${SMALL[@]}" -j 1
run 0 "$PACK" images t.csv -o j3 "${SMALL[@]}" -j 3
same j1 j3
run 0 "$PACK" plan images t.csv -o parts "${SMALL[@]}"
grep -q '^field en u8 string none text \[40\] .* kind=text,from=en,optional,pick=each,max=40$' parts/.shardpack/plan ||
	die "the field of a plan: $(grep ^field parts/.shardpack/plan)"
for part in 2/4 0/4; do run 0 "$PACK" build parts --part $part -q; done
run 0 "$PACK" images t.csv -o parts "${SMALL[@]}"
same j1 parts

# ---- bad input ----

# One text alone is bad: the others of its row are packed, and keep their keys.
"$PYTHON" - <<'PY'
import json
def table(name, rows):
    open(name, "w").write("".join(json.dumps(r) + "\n" for r in rows))
good = {"path": "img/1.png", "en": ["x"], "n": 1}
table("bad.jsonl", [{"path": "img/2.png", "en": ["a", "b" * 41, ["c"], 7, "e"], "n": None}, good])
table("gone.jsonl", [{"path": "gone.png", "en": ["a", "b"]}, good])
table("empty.jsonl", [{"path": "img/2.png", "en": []}, good])
table("unequal.jsonl", [{"path": "img/2.png", "en": ["a", "b"], "fr": ["c"]}, dict(good, fr="y")])
table("none.jsonl", [{"path": "img/2.png", "en": ["a", "b"], "fr": None}, dict(good, fr=[]),
                     dict(good, fr=["c"])])
table("many.jsonl", [{"path": "img/2.png", "en": ["a"] * 10001}, good])
open("no.csv", "w").write("path,en\nimg/1.png,no list\n")
PY
ONE=(--no-label --order source --field en:kind=text,max=40,pick=each)
run 0 "$PACK" images bad.jsonl -o bad --resize 16 "${ONE[@]}" --columns n:u8:default=9 --on-error skip --report r.json
said "shardpack: ./bad.jsonl: 1 empty cell in column n: packed as 9"
said "shardpack: 6 inputs = 3 written + 3 skipped + 0 quarantined + 0 failed"
run 0 "$CAT" list bad
[ "$(cut -f 4 out | tr '\n' ' ')" = "img/2.png img/2.png#5 img/1.png " ] || die "$(cat out)"
json r.json '"\n".join(b["input"] + " " + b["message"] for b in d["bad_inputs"])' >out
cat >want <<'END'
img/2.png#2 bad.jsonl: line 1, text 2 of 5: column en, field en: 41 bytes; the limit is max=40, raise it or shorten
img/2.png#3 bad.jsonl: line 1, text 3 of 5: column en, field en: a list within the list, and no text
img/2.png#4 bad.jsonl: line 1, text 4 of 5: column en, field en: neither a text nor a list of texts
END
sed -i 's/ the text$//' out
diff want out || die "what is said of bad texts"

VERB=(images) ARGS=(--resize 16 --crop 16)
bad_input "gone.jsonl: line 1: 'gone.png': No such file or directory" gone.jsonl "${ONE[@]}"
[ "$(grep -c ^shardpack:\ warning: err)" = 1 ] || die "an image that is missing is one bad input: $(cat err)"
bad_input "empty.jsonl: line 1: column en, field en: a list without a text; add one, or say optional" \
	empty.jsonl "${ONE[@]}"
bad_input "unequal.jsonl: line 1: en has 2 texts and fr has 1; with pick=each for both, text k of each goes to one \
record, so correct one of the lists" unequal.jsonl "${ONE[@]}" --field fr:kind=text,max=40,pick=each
bad_input "many.jsonl: line 1: en has 10001 texts; the limit of pick=each is 10000, shorten the list" \
	many.jsonl "${ONE[@]}"
bad_input "no.csv: line 2: column en, field en: no list of texts in JSON, at byte " no.csv "${ONE[@]}"
bad_input "long.json, text 2 of 3: caption, field caption: 41 bytes; the limit is max=40, raise it" \
	long.json --root img --field caption:kind=text,max=40,pick=each
# of an optional field, no list is no text in each record
run 0 "$PACK" images none.jsonl -o none -q "${ARGS[@]}" "${ONE[@]}" --field fr:kind=text,max=40,optional,pick=each
run 0 "$CAT" get none 1
printed '  fr         u8[0]: ""'
# a bad image is as many bad inputs as it has texts
: >img/3.png
run 0 "$PACK" images t.csv -o three "${ARGS[@]}" "${EACH[@]}" --on-error skip
said "shardpack: 14 inputs = 11 written + 3 skipped + 0 quarantined + 0 failed"

# ---- refused ----

refused 1 "$PWD/img/2.png: appears twice; each image must appear once, unless in rows of a table" \
	twice.json --root img --field caption:kind=text,max=40,pick=each
FROM=--field=c:kind=text,max=9,pick=each,from
TAIL="pick=each is for tables: .csv, .tsv or .jsonl, and for COCO; of other sources say pick=first, or pick=all,count=N"
refused 2 "img: $TAIL" img --no-label "$FROM={}.txt"
tar cf a.tar img && mkdir tars && cp a.tar tars
refused 2 "./a.tar: $TAIL" a.tar --no-label "$FROM=json:c"
refused 2 "tars: $TAIL" tars --no-label "$FROM=json:c"
refused 2 "$PWD/img/1.png: $TAIL" img/1.png t.csv --no-label "$FROM=en"
run 2 "$PACK" images t.csv -o no --field c:kind=text,max=9,pick=each,count=3
said "shardpack: --field c:kind=text,max=9,pick=each,count=3: count=N belongs to pick=all"
run 2 "$PACK" images t.csv -o no --field c:kind=text,max=9,pick=one
said "shardpack: --field c:kind=text,max=9,pick=one: pick=one: must be first, each or all"
echo "14 records of 8 images, out of 2 tables and COCO, by -j, parts and a resume; $n that are bad or refused"
