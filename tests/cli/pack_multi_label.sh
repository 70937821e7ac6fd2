#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_multi_label.sh - images with several labels, out of tables and archives, as numbers
# and as 0 and 1
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
export PYTHONPATH=$ROOT/tests/cli

"$PYTHON" - <<'PY'
import csv, io, json, os, random, tarfile
from PIL import Image
draw = random.Random(7)
names = ["bird", "cat", "dog", "two words", "z"]
os.makedirs("img")
rows = []
for i in range(12):
    image = io.BytesIO()
    Image.new("RGB", (20, 20), (i, 2 * i, 250 - i)).save(image, "PNG")
    open("img/%02d.png" % i, "wb").write(image.getvalue())
    labels = draw.sample(names, i % 5)
    rows.append({"path": "img/%02d.png" % i, "label": labels, "png": image.getvalue()})
with open("t.jsonl", "w") as f:
    for r in rows:
        f.write(json.dumps({k: v for k, v in r.items() if k != "png"}) + "\n")
for name, text in (("array.csv", json.dumps), ("bar.csv", "|".join), ("spaced.csv", " | ".join)):
    with open(name, "w", newline="") as f:
        csv.writer(f).writerows([["path", "label"]] + [[r["path"], text(r["label"])] for r in rows])
for name, suffix, text in (("cls.tar", "cls", "\n".join), ("json.tar", "json", lambda v: json.dumps({"tags": v}))):
    with tarfile.open(name, "w") as tar:
        for i, r in enumerate(rows):
            for part, data in (("png", r["png"]), (suffix, text(r["label"]).encode())):
                info = tarfile.TarInfo("%02d.%s" % (i, part))
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
json.dump([[names.index(n) for n in r["label"]] for r in rows], open("want.json", "w"))
PY
cat >check.py <<'PY'
import json, sys
import numpy, records
got, want = records.read(sys.argv[1]), json.load(open("want.json"))
if sys.argv[2] == "hot":
    label = numpy.array([[k in w for k in range(5)] for w in want], "u1")
    assert "label_length" not in got
else:
    label = numpy.array([w + [0] * (4 - len(w)) for w in want], "<i8")
    records.same(got["label_length"], numpy.array([[len(w)] for w in want], "<u4"), "lengths")
records.same(got["label"], label, sys.argv[1])
text = open(sys.argv[1] + "/dataset.manifest").read()
assert "class 3 two%20words\n" in text and "class 5" not in text and "stat classes" not in text, text
PY

ARGS=(--resize 16 --crop 16 --order source -q)
for how in 4 hot; do
	MANY=(--multi-label "$how")
	run 0 "$PACK" images t.jsonl -o "$how.jsonl" "${ARGS[@]}" "${MANY[@]}"
	run 0 "$PACK" images array.csv -o "$how.array" "${ARGS[@]}" "${MANY[@]}"
	run 0 "$PACK" images bar.csv -o "$how.bar" "${ARGS[@]}" "${MANY[@]}" --label-separator '|'
	run 0 "$PACK" images spaced.csv -o "$how.spaced" "${ARGS[@]}" "${MANY[@]}" --label-separator '|'
	run 0 "$PACK" images cls.tar -o "$how.cls" "${ARGS[@]}" "${MANY[@]}"
	run 0 "$PACK" images json.tar -o "$how.json" "${ARGS[@]}" "${MANY[@]}" --label-key tags
	run 0 "$PACK" images t.jsonl -o "$how.area" --resize 16 --fit area --order source -q "${MANY[@]}"
	for source in jsonl array bar spaced cls json area; do "$PYTHON" check.py "$how.$source" "$how"; done
	same "$how.jsonl" "$how.bar"
	run 0 "$CAT" verify "$how.jsonl" -q
	run 0 "$CAT" info "$how.jsonl"
	printed "  1     cat"
	run 0 "$CAT" list "$how.jsonl" --count 1
	run 0 "$CAT" stats "$how.jsonl"
	run 0 "$CAT" show "$how.jsonl" --out "$how.png"
	run 2 "$CAT" select "$how.jsonl" --where label=cat --out no
	said "shardcat: --where label=cat: label has several numbers in each record; must be a scalar or a string"
	# the same bytes, however they are made
	SMALL=(--resize 16 --crop 16 --shard-records 5 --seed 3 -q "${MANY[@]}")
	run 0 "$PACK" images t.jsonl -o "$how.once" "${SMALL[@]}" -j 1
	run 0 "$PACK" plan images t.jsonl -o "$how.parts" "${SMALL[@]}"
	for part in 1/3 2/3 0/3; do run 0 "$PACK" build "$how.parts" --part $part -q -j 3; done
	run 0 "$PACK" seal "$how.parts" -q
	same "$how.once" "$how.parts"
done

# Numbers keep their numbers, and --classes names others.
printf '{"path": "img/00.png", "label": [2, 0]}\n{"path": "img/01.png", "label": [1]}\n' >numbers.jsonl
run 0 "$PACK" images numbers.jsonl -o numbers "${ARGS[@]}" --multi-label 2
run 0 "$CAT" get numbers 0 --field label
printed "  label  i64[2]: [2, 0]"
printf 'path,label\nimg/00.png,z cat\n' >blank.csv
printf '%s\n' z dog cat >list
run 0 "$PACK" images blank.csv -o listed "${ARGS[@]}" --multi-label hot --label-separator ' ' --classes list
run 0 "$CAT" get listed 0 --field label
printed "  label  u8[3]: [1, 0, 1]"

# ---- what is refused ----

VERB=(images)
wrong() { # wrong CELL WHAT ARGUMENT...
	printf 'path,label\nimg/00.png,"%s"\nimg/01.png,"[""z""]"\n' "$1" >bad.csv
	run 1 "$PACK" images bad.csv -o no "${ARGS[@]}" "${@:3}"
	grep -qF -- "bad.csv: line 2: $2" err || die "$(cat err)"
	[ ! -e no ] || die "made for nothing: $*"
	n=$((n + 1))
}
wrong 'a b' "labels 'a b' are not a list in JSON; say what separates them with --label-separator, such as ' ' or '|'" \
	--multi-label 3
wrong '[""a"", ""b"", ""a""]' "label 'a' is there twice" --multi-label 3
wrong '[""a"", ""b"", ""c""]' "more labels than --multi-label 2 has room for; raise it" --multi-label 2
wrong "[$(seq -s, 10001)]" "more labels than the limit of 10000 for an image" --multi-label 20000
wrong '[""a"", 1.5]' "element 1 of the labels is 1.5; a label must be a whole number or a text" --multi-label 3
wrong '[""a"", [1]]' \
	"element 1 of the labels is a list of 1; a label must be a whole number or a text" --multi-label hot
wrong '[""a""' "labels '[\"a\"' are not a list in JSON" --multi-label hot
wrong 'a||b' "label '' must be UTF-8 of 1 to 1024 bytes; it has 0; no label is an empty list" --multi-label 3 \
	--label-separator '|'
run 0 "$PACK" images bad.csv -o some "${ARGS[@]}" --multi-label 3 --label-separator '|' --on-error skip
run 0 "$CAT" get some 0 --field label
printed "  label  i64[1]: [0]"
run 1 "$PACK" images t.jsonl -o no "${ARGS[@]}"
grep -qF "label is a list; --multi-label takes several labels" err || die "$(cat err)"
printf 'path,label\nimg/00.png,\n' >none.csv
for room in hot 3; do
	run 1 "$PACK" images none.csv -o no "${ARGS[@]}" --multi-label $room
	said "shardpack: .: no image has a label; if texts have several, say with --label-separator what is \
between them; or name the classes with --classes FILE, or say --no-label"
done
printf 'cat\ndog\nemu\n' >names # which is a word for what is empty
run 0 "$PACK" images none.csv -o unnamed "${ARGS[@]}" --multi-label 3 --classes names
said "shardpack: warning: --classes names: 3 of 3 classes have no image; the first of these is 'cat'"
for option in "--labels x.csv" "--label-regex (x)" --no-label; do
	# shellcheck disable=SC2086 # two words
	run 2 "$PACK" images t.jsonl -o no --multi-label 2 $option
	said "shardpack: --multi-label and ${option% *} exclude each other"
done
run 2 "$PACK" images t.jsonl -o no --label-separator '|'
said "shardpack: --label-separator needs --multi-label"
run 2 "$PACK" images t.jsonl -o no --multi-label many
said "shardpack: --multi-label many: must be the most labels of an image, such as 8, or hot"
run 2 "$PACK" images img -o no --multi-label 2
grep -q "multi-label takes labels from a table, or from members .cls or .json of an archive" err || die "$(cat err)"

# A plan that somebody changed: a class that there is not, too many, and room for fewer.
"$PYTHON" - <<'PY'
import hashlib, os, subprocess
for how in "2", "hot":
    subprocess.run([os.environ["PACK"], "plan", "images", "numbers.jsonl", "-o", "bad" + how, "--resize", "16", "-q",
                    "--multi-label", how], check=True, stderr=subprocess.DEVNULL)
    path = "bad" + how + "/.shardpack/plan"
    good = open(path, "rb").read().rsplit(b"end ", 1)[0]
    assert b"input 0 2,0 " in good
    wrongs = [(b"input 0 2,0 ", b"input 0 " + t + b" ") for t in (b"3", b"0,1,2,0", b"2,", b",2", b"02", b"2,x", b"+1")]
    wrongs.append((b"label-room %d" % (3 if how == "hot" else 2), b"label-room 1"))
    for old, new in [(b"input 0", b"input 0")] + wrongs:
        text = good.replace(old, new)
        open(path, "wb").write(text + b"end " + hashlib.sha256(text).hexdigest().encode() + b"\n")
        command = [os.environ["PACK"], "build", "bad" + how, "--part", "0/2"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == (0 if old == new else 1), (how, new, done)
PY
