#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_texts.sh - lists of captions: the first, or all of one record, out of every source,
# as JSON has them
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
export PYTHONPATH=$ROOT/tests/cli

# Twelve images.  Lists of 0 to 5 texts, empty ones, of several bytes a letter, as long as max=, one
# text that is no list; a list that is missing and one that is null.
"$PYTHON" - <<'PY'
import csv, io, json, os, random, tarfile
from PIL import Image
draw = random.Random(4)
os.makedirs("img/a")
os.makedirs("text/a")
rows = []
for i in range(12):
    image = io.BytesIO()
    Image.new("RGB", (20, 20), (i, 2 * i, 250 - i)).save(image, "PNG")
    open("img/a/%02d.png" % i, "wb").write(image.getvalue())
    words = ["".join(draw.choice("ab é𝄞\n\"',[]") for _ in range(draw.randrange(7))) for _ in range(i % 6)]
    if i == 5:
        words[2] = "x" * 28
    rows.append({"path": "img/a/%02d.png" % i, "label": i % 3, "caption": words, "png": image.getvalue()})
rows[7]["caption"] = "alone"
rows[8].pop("caption")
rows[9]["caption"] = None
with open("t.jsonl", "w") as f:
    for r in rows:
        f.write(json.dumps({k: v for k, v in r.items() if k != "png"}) + "\n")
with open("t.csv", "w", newline="") as f:
    table = csv.writer(f)
    table.writerow(["path", "label", "caption"])
    for r in rows:
        cell = r.get("caption")
        table.writerow([r["path"], r["label"], "" if cell is None else json.dumps(cell, ensure_ascii=False)])
with tarfile.open("wds.tar", "w") as tar:
    for i, r in enumerate(rows):
        parts = {"png": r["png"], "cls": b"%d" % r["label"],
                 "json": json.dumps({k: v for k, v in r.items() if k == "caption"}).encode()}
        if r.get("caption") is not None:
            parts["texts"] = json.dumps(r["caption"]).encode()
            open("text/a/%02d.json" % i, "wb").write(parts["texts"])
        for suffix, data in parts.items():
            info = tarfile.TarInfo("%02d.%s" % (i, suffix))
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
json.dump([[] if r.get("caption") is None else [r["caption"]] if r["caption"] == "alone" else r["caption"]
           for r in rows], open("want.json", "w"))
PY

cat >check.py <<'PY'
import json, sys
import numpy, records
got, want = records.read(sys.argv[1]), json.load(open("want.json"))
if sys.argv[2] == "all":
    texts, lengths = numpy.zeros((12, 5, 28), "u1"), numpy.array([[len(w)] for w in want], "<u4")
else:
    want = [w[:1] or [""] for w in want]
    texts, lengths = numpy.zeros((12, 1, 28), "u1"), numpy.array([[len(w[0].encode())] for w in want], "<u4")
for i, row in enumerate(want):
    for k, text in enumerate(row):
        texts[i, k, :len(text.encode())] = numpy.frombuffer(text.encode(), "u1")
records.same(got["caption"], texts if sys.argv[2] == "all" else texts[:, 0], "caption")
records.same(got["caption_length"], lengths, "lengths")
PY

ARGS=(--resize 16 --order source -q)
for pick in all,count=5 first; do
	FIELD=caption:kind=text,max=28,optional,pick=$pick
	name=${pick%%,*}
	run 0 "$PACK" images t.jsonl -o "$name.jsonl" "${ARGS[@]}" --field $FIELD
	run 0 "$PACK" images t.csv -o "$name.csv" "${ARGS[@]}" --field $FIELD
	run 0 "$PACK" images wds.tar -o "$name.key" "${ARGS[@]}" --field $FIELD,from=json:caption
	run 0 "$PACK" images wds.tar -o "$name.member" "${ARGS[@]}" --field $FIELD,from=texts
	run 0 "$PACK" images img --root . -o "$name.files" "${ARGS[@]}" --field "$FIELD,from=text/{}.json"
	for source in jsonl csv key member files; do "$PYTHON" check.py "$name.$source" "$name" || die "$name.$source"; done
	same "$name.jsonl" "$name.csv"
	run 0 "$CAT" verify "$name.jsonl" -q
done

# ---- as people see them ----

printf '%s\n' '{"path": "img/a/00.png", "label": 0, "caption": ["a \"b\"", "", "line\nend"]}' >one.jsonl
run 0 "$PACK" images one.jsonl -o one "${ARGS[@]}" --field caption:kind=text,max=9,pick=all,count=4
run 0 "$CAT" get one 0 --field caption
printed '  caption  u8[3,9]: ["a \"b\"", "", "line\nend"]'

# Without pick= a list in a CSV is a text like any other, with a warning.
printf 'path,label,caption\nimg/a/00.png,0,"[""a"", ""b""]"\nimg/a/01.png,0,"[""c""]"\n' >brackets.csv
run 0 "$PACK" images brackets.csv -o brackets "${ARGS[@]}" --field caption:kind=text,max=12
said_only "shardpack: warning: ./brackets.csv: line 2: column caption looks like a list, and is packed as one text \
with its brackets; to read lists, say pick=first for its first text, pick=all,count=N for all of them in one record, \
or, of tables and COCO, pick=each for a record of each"
run 0 "$CAT" get brackets 0 --field caption
printed '  caption  u8[10]: "["a", "b"]"'

# ---- the same bytes, however they are made ----

SMALL=(--resize 16 --shard-records 4 --seed 3 -q --field caption:kind=text,max=28,optional,pick=all,count=5)
run 0 "$PACK" images t.csv -o once "${SMALL[@]}" -j 1
run 0 "$PACK" images t.csv -o again "${SMALL[@]}" -j 3
same once again
run 0 "$PACK" plan images t.csv -o planned "${SMALL[@]}"
grep -q '^field caption u8 ragged none text \[5,28\] 1 1 kind=text,from=caption,optional,pick=all,count=5,max=28$' \
	planned/.shardpack/plan || die "the field of a plan"
for part in 2/3 0/3 1/3; do run 0 "$PACK" build planned --part $part -q; done
run 0 "$PACK" seal planned -q
same once planned

# A plan that somebody changed: too many texts, one that is too long, one that does not end.
"$PYTHON" - <<'PY'
import hashlib, os, shutil, subprocess
shutil.rmtree("bad", ignore_errors=True)
subprocess.run([os.environ["PACK"], "plan", "images", "one.jsonl", "-o", "bad", "--resize", "16", "-q",
                "--field", "caption:kind=text,max=9,pick=all,count=4"], check=True)
good = open("bad/.shardpack/plan", "rb").read().rsplit(b"end ", 1)[0]
at = good.index(b" =") + 1
token = good[at:good.index(b"\n", at)]
assert token == b"=" + b"".join(t.hex().encode() + b"00" for t in (b'a "b"', b"", b"line\nend")), token
def build(token_of):
    text = good.replace(token, token_of)
    with open("bad/.shardpack/plan", "wb") as f:
        f.write(text + b"end " + hashlib.sha256(text).hexdigest().encode() + b"\n")
    done = subprocess.run([os.environ["PACK"], "build", "bad"], capture_output=True, text=True)
    return done.returncode, done.stderr
for wrong in (b"=" + b"6100" * 5, b"=" + b"61" * 10 + b"00", b"=61", b"=6100" + b"61", b"=6"):
    code, said = build(wrong)
    assert code == 1 and "not a " in said, (wrong, code, said)
for right in (b"=", b"=" + b"6100" * 4, b"=" + b"61" * 9 + b"00", token):
    code, said = build(right)
    assert code == 0 or "not a " not in said, (right, code, said)
PY
