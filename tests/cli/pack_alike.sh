#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_alike.sh - names of classes that people cannot tell apart: a warning with both
# counts, in the report as well, and --strict-classes
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
ARGS=(--resize 8 --crop 8 --order source -q)

# pairs.txt has a line for each story: what differs, and the two names as they are shown.
"$PYTHON" - <<'PY'
import io, json, os, tarfile
from PIL import Image

BLANKS = "blanks or characters that are not shown"
FORM = "the encoding of letters with accents (NFC and NFD)"
CASE = "upper and lower case"
MANY = "blanks, case or the encoding of letters"
pairs = [(BLANKS, "cat", "cat "), (BLANKS, "cat", " cat"), (BLANKS, "a b", "a  b"), (BLANKS, "a b", "a\u00a0b"),
         (BLANKS, "cat", "cat\u200b"), (BLANKS, "cat", "\ufeffcat"), (BLANKS, "cat", "c\u00adat"),
         (BLANKS, "cat", "cat\t"), (BLANKS, "cat", "\u3000cat"), (BLANKS, "\u2764", "\u2764\ufe0f"),
         (CASE, "Cat", "cat"), (CASE, "\u00c4rger", "\u00e4rger"), (CASE, "\u0416", "\u0436"),
         (CASE, "\u03a3", "\u03c3"), (CASE, "\u0141", "\u0142"), (CASE, "\u0531", "\u0561"),
         (CASE, "\u1e9c\u00d8", "\u1e9c\u00f8"),
         (FORM, "caf\u00e9", "cafe\u0301"), (FORM, "\u1ec7", "e\u0323\u0302"), (FORM, "\u1ec7", "e\u0302\u0323"),
         (FORM, "\u304c", "\u304b\u3099"), (FORM, "\u0439", "\u0438\u0306"), (FORM, "\uac01", "\u1100\u1161\u11a8"),
         (FORM, "\u212b", "\u00c5"), (FORM, "\u0622", "\u0627\u0653"),
         (MANY, "Cat", "cat "), (MANY, "\u00c9", " e\u0301")]
others = [("cafe", "caf\u00e9"), ("a b", "ab"), ("xo", "x0"), ("x1", "x01"), ("\u0430", "a"), ("\u0131", "i")]

def shown(name, why):  # each character that must be, or all of them, by its number
    every = why in (FORM, MANY)
    return "".join("\\t" if c == "\t" else "\\u%04x" % ord(c)
                   if c > "\x7f" and (every or c in "\xa0\xad\u200b\ufeff\u3000\ufe0f") else c for c in name)

def png(i):
    out = io.BytesIO()
    Image.new("RGB", (9, 9), (i, 0, 0)).save(out, "PNG")
    return out.getvalue()

for i in range(3):
    open("%d.png" % i, "wb").write(png(i))
def write(path, text):
    open(path, "w", newline="").write(text)
with open("pairs.txt", "w") as f:
    for k, (why, a, b) in enumerate(pairs + [("", *o) for o in others]):
        one, two = sorted([a, b])
        f.write("%d|%s|%s|%s\n" % (k, why, shown(one, why), shown(two, why)))
        os.mkdir("%d" % k)
        labels = [one, two, two]
        quote = lambda s: '"%s"' % s
        write("%d/t.csv" % k, "path,label\n" + "".join('%d.png,"%s"\n' % x for x in enumerate(labels)))
        write("%d/t.jsonl" % k, "".join(json.dumps({"path": "%d.png" % i, "label": l}) + "\n"
                                       for i, l in enumerate(labels)))
        write("%d/list.txt" % k, one + "\n" + two + "\n")
        os.mkdir("%d/src" % k)
        for i, l in enumerate(labels):
            os.makedirs("%d/src/%s" % (k, l), exist_ok=True)
            open("%d/src/%s/%d.png" % (k, l, i), "wb").write(png(i))
PY

while IFS='|' read -r k why one two; do
	for source in t.csv src; do
		where=()
		[ $source = src ] || where=(--root "$PWD")
		run 0 "$PACK" images "$k/$source" -o "$k/ds.$source" "${ARGS[@]}" "${where[@]}"
		if [ -z "$why" ]; then
			! grep -q 'differ only in' err || die "$one and $two: $(cat err)"
			run 0 "$PACK" images "$k/$source" -o "$k/s.$source" "${ARGS[@]}" "${where[@]}" --strict-classes
			continue
		fi
		a="'$one' (1 image)" b="'$two' (2 images)"
		said "shardpack: warning: classes $a and $b differ only in $why, and are packed as two; \
if they are one, give them one name"
		run 1 "$PACK" images "$k/$source" -o no "${ARGS[@]}" "${where[@]}" --strict-classes
		said_only "shardpack: classes $a and $b differ only in $why; give them one name, or leave out \
--strict-classes"
		[ ! -e no ] || die "refused, and made"
	done
	n=$((n + 1))
done <pairs.txt

# The other sources, and the reports.
tell="classes 'cat' (1 image) and 'cat ' (2 images) differ only in blanks or characters that are not shown, and are \
packed as two; if they are one, give them one name"
bare="classes 'cat' and 'cat ' differ only in blanks or characters that are not shown, and are packed as two; if they \
are one, give them one name"
run 0 "$PACK" images 0/t.jsonl -o jsonl "${ARGS[@]}" --root "$PWD" --report r.json
said_only "shardpack: warning: $tell"
[ "$(json r.json 'd["warnings"]')" = "[\"$tell\"]" ] || die "$(json r.json 'd["warnings"]')"
run 0 "$PACK" images 0/t.jsonl -o html "${ARGS[@]}" --root "$PWD" --report r.html
grep -qxF "<p>$(sed "s/'/\&#39;/g" <<<"$tell")</p>" r.html || die "no warning in the report in HTML"
run 0 "$PACK" images 0/t.jsonl -o listed "${ARGS[@]}" --root "$PWD" --classes 0/list.txt
said_only "shardpack: warning: $tell"
run 0 "$PACK" plan images 0/t.jsonl -o planned "${ARGS[@]}" --root "$PWD"
said_only "shardpack: warning: $tell"
run 0 "$PACK" images 0/t.csv -o many "${ARGS[@]}" --root "$PWD" --multi-label 2 --label-separator '|'
! grep -q differ err || die "labels of --multi-label have no blanks at their ends"
sed 's/"cat "/Cat/' 0/t.csv >0/m.csv
run 0 "$PACK" images 0/m.csv -o some "${ARGS[@]}" --root "$PWD" --multi-label 2 --label-separator '|'
said_only "shardpack: warning: classes 'Cat' (2 images) and 'cat' (1 image) differ only in upper and lower case, and \
are packed as two; if they are one, give them one name"
"$PYTHON" - <<'PY'
import io, json, tarfile
import numpy
with tarfile.open("wds.tar", "w") as tar:
    for i, label in enumerate(["caf\u00e9", "cafe\u0301", "cafe\u0301"]):
        for suffix, data in (("png", open("%d.png" % i, "rb").read()), ("cls", label.encode())):
            info = tarfile.TarInfo("%d.%s" % (i, suffix))
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
numpy.save("image.npy", numpy.zeros((3, 2, 2, 3), "u1"))
numpy.save("label.npy", numpy.array([0, 1, 1]))
numpy.zeros((3, 1), "u1").tofile("label.bin")
json.dump({"images": [{"id": 1, "file_name": "0.png"}], "annotations": [],
           "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "cat "}]}, open("coco.json", "w"))
PY
run 0 "$PACK" images wds.tar -o wds "${ARGS[@]}"
said_only "shardpack: warning: classes 'cafe\\u0301' (2 images) and 'caf\\u00e9' (1 image) differ only in the encoding \
of letters with accents (NFC and NFD), and are packed as two; if they are one, give them one name"
run 0 "$PACK" array image.npy label.npy -o array --classes 0/list.txt -q
said_only "shardpack: warning: $bare"
run 1 "$PACK" array image.npy label.npy -o no --classes 0/list.txt -q --strict-classes
run 0 "$PACK" raw label.bin --schema label:u8 -o raw --classes 0/list.txt -q
said_only "shardpack: warning: $bare"
run 0 "$PACK" images coco.json -o coco "${ARGS[@]}" --field c:kind=ragged,dtype=i64,max=2,from=category
said_only "shardpack: warning: $bare"
run 1 "$PACK" images coco.json -o no "${ARGS[@]}" --field c:kind=ragged,dtype=i64,max=2,from=category --strict-classes
run 2 "$PACK" images 0/src -o no "${ARGS[@]}" --no-label --strict-classes

# Names of which nothing is shown: a label that was forgotten, most likely.
while IFS='|' read -r name shown; do
	printf 'path,label\n0.png,"%b"\n1.png,cat\n2.png,"%b"\n' "$name" "$name" >unseen.csv
	rm -rf unseen
	run 0 "$PACK" images unseen.csv -o unseen "${ARGS[@]}"
	said_only "shardpack: warning: the name of class '$shown' (2 images) has only blanks or characters that are not \
shown, and is packed as a class; if its label was forgotten, write it"
	run 1 "$PACK" images unseen.csv -o no "${ARGS[@]}" --strict-classes
	said_only "shardpack: the name of class '$shown' (2 images) has only blanks or characters that are not shown; give it a \
name, or leave out --strict-classes"
done <<'END'
   |   
\xc2\xa0|\u00a0
\xe2\x80\x8b |\u200b 
END

# Several pairs: one warning, which names the first ones.  The reports have all of them.
"$PYTHON" - <<'PY'
import string
def write(name, pairs):
    with open(name, "w") as f:
        f.write("path,label\n" + "".join("%d.png,%s\n" % (i % 2, label)
                                         for pair in pairs for i, label in enumerate([*pair, pair[1]])))
write("letters.csv", zip(string.ascii_uppercase, string.ascii_lowercase))
write("three.csv", [("A", "a"), ("B", "b"), ("C", "c")])
write("mixed.csv", [("A", "a"), ("b", "b\u200b")])
PY
one_warning() { # the only one of names
	said "shardpack: warning: $1"
	[ "$(grep -c 'differ only in' err)" = 1 ] || die "$(cat err)"
}
pair() { echo "'$1' (1 image) and '$2' (2 images)"; }
ALL="and are packed as two each; where two are one, give them one name"
THREE="$(pair A a), $(pair B b), $(pair C c)"
letters="26 pairs of classes differ only in upper and lower case, $ALL: $THREE, and 23 more (--report FILE lists them)"
run 0 "$PACK" images letters.csv -o letters "${ARGS[@]}" --report r.json
one_warning "$letters"
[ "$(json r.json 'len(d["warnings"]), d["warnings"][-1]')" = "(27, \"classes $(pair Z z) differ only in upper and \
lower case, and are packed as two; if they are one, give them one name\")" ] || die "$(json r.json 'd["warnings"]')"
run 0 "$PACK" images three.csv -o three "${ARGS[@]}" --report r.html
one_warning "3 pairs of classes differ only in upper and lower case, $ALL: $THREE"
[ "$(grep -c 'differ only in' r.html)" = 3 ] || die "$(grep 'differ only in' r.html)"
run 0 "$PACK" images mixed.csv -o mixed "${ARGS[@]}"
one_warning "2 pairs of classes differ only in blanks, case or the encoding of letters, $ALL: \
$(pair A a), $(pair b 'b\u200b')"
run 1 "$PACK" images letters.csv -o no "${ARGS[@]}" --strict-classes
said "shardpack: classes $(pair A a) differ only in upper and lower case; give them one name, or leave out \
--strict-classes"
echo "$n pairs of names"
