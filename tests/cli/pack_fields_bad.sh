#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_fields_bad.sh - fields that cannot be: options, tables, archives, files, and plans
# that somebody changed
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
export PYTHONPATH=$ROOT/tests/cli

"$PYTHON" "$ROOT/tests/cli/make_fields.py" 24 16 short
IMG=img/a/00.png SMALL=(--resize 24 --crop 16)

# ---- the command line ----

n=0
misused() { # misused LINE ARGUMENT...
	local line=$1
	shift
	run 2 "$PACK" images t.csv -o no "$@"
	said_only "shardpack: $line
try 'shardpack images --help'"
	[ ! -e no ] || die "made for nothing: $*"
	n=$((n + 1))
}
wrong() { # wrong FIELD LINE
	misused "--field $1: $2" --field "$1" "${SMALL[@]}"
}
KINDS="needs kind=tensor, ragged, text, bytes, boxes, image or mask"
wrong caption "$KINDS"
wrong caption:max=3 "$KINDS"
wrong caption:kind=txt "kind=txt: must be tensor, ragged, text, bytes, boxes, image or mask"
wrong caption:kind=text "kind=text needs max=N, the room in each record"
wrong caption:kind=text,max=0 "max=0: must be 1 to 8 whole numbers above 0 with x between them, such as 16 or 4x4"
wrong caption:kind=text,max=4x4 "max of kind=text must be one number"
wrong caption:kind=text,max=4,max=5 "max is given twice"
wrong caption:kind=text,max "max needs a value"
wrong caption:kind=text,max=4,optional=1 "optional=1: must be optional, or optional=all if no input has a value"
wrong caption:kind=text,max=4,pick=all "pick=all needs count=N, the room for that many texts in each record"
wrong caption:kind=text,max=4,count=2 "count=N belongs to pick=all"
wrong caption:kind=text,max=4,pick=first,count=2 "count=N belongs to pick=all"
wrong caption:kind=text,max=4,pick=all,count=0 "count=0: must be a whole number, 1 to 4294967295"
wrong caption:kind=text,max=4,pick=last "pick=last: must be first, each or all"
wrong blob:kind=bytes,max=4,pick=first "pick does not belong to kind=bytes"
wrong caption:kind=text,max=4,shape=4 "shape does not belong to kind=text"
options="kind, from, optional, fill, format, scale, turn, pick, count, dtype, shape, max, resize, fit, crop, filter, \
layout, mean, std, decode-scale or map"
wrong caption:kind=text,max=4,maximum=4 "'maximum=4' is not an option; must be $options"
wrong caption:kind=text,max=4,from= "from=: must be UTF-8 of 1 to 255 bytes; it has 0"
wrong 1st:kind=text,max=4 \
	"'1st' cannot be the name of a field: must be 1 to 47 letters, digits, _ . or -, and begin with a letter or _"
wrong :kind=text,max=4 \
	"'' cannot be the name of a field: must be 1 to 47 letters, digits, _ . or -, and begin with a letter or _"
wrong label:kind=text,max=4 \
	"the field label comes from --label-key, --labels, --label-regex or the source's folders, not from --field"
wrong image:kind=mask "the field image is the input itself; must be kind=image"
wrong image:from=x "the field image is the input itself; leave from out"
wrong image:max=3 "max does not belong to kind=image"
wrong ids:kind=ragged,max=4 "kind=ragged needs dtype=TYPE"
wrong ids:kind=ragged,max=4,dtype=int \
	"dtype=int: must be u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32, f64 or bool"
misused "--field ids: dtype=f16: must be u8 to i64, f32, f64 or bool for numbers" \
	--field ids:kind=ragged,max=4,dtype=f16 "${SMALL[@]}"
wrong mask:kind=mask,fill=256 "fill=256: must be a whole number, 0 to 255"
wrong boxes:kind=boxes,max=4,format=yxyx "format=yxyx: must be xyxy, xywh, cxcywh or yolo"
wrong boxes:kind=boxes,max=4,scale=percent "scale=percent: must be pixels or unit"
wrong boxes:kind=boxes,max=4,format=yolo,scale=unit "format=yolo has a scale of its own, unit; leave scale out"
wrong ids:kind=ragged,max=4,dtype=i64,format=xyxy \
	"of kind=ragged, format= must be yolo, which gives one number for each box, so max=N"
wrong ids:kind=ragged,max=4x2,dtype=i64,format=yolo \
	"of kind=ragged, format= must be yolo, which gives one number for each box, so max=N"
wrong ids:kind=ragged,max=4,dtype=i64,scale=unit "scale does not belong to kind=ragged"
misused "--field boxes: from=json:boxes: format=yolo is for files of text; must be cxcywh, with scale=unit" \
	--field boxes:kind=boxes,max=4,from=json:boxes,format=yolo "${SMALL[@]}"
wrong mask:kind=mask,turn=left "turn=left: must be image, own or none"
wrong caption:kind=text,max=4,turn=none "turn does not belong to kind=text"
wrong boxes:kind=boxes,max=4,turn=own \
	"turn=own does not belong to kind=boxes, which have no EXIF data; must be image or none"
wrong image:turn=none "the field image is turned by --exif; leave turn out"
misused "--field mask: turn=image needs --exif apply; without it only TIFFs are turned" --field \
	mask:kind=mask,turn=image "${SMALL[@]}"
misused "--field mask: from=json:mask: an image or a mask cannot come from JSON" --field mask:kind=mask,from=json:mask \
	"${SMALL[@]}"
misused "--field depth: dtype=i8: must be u8, u16, f16, bf16 or f32 for an image" --field depth:kind=image,dtype=i8 \
	"${SMALL[@]}"
misused "--field depth: crop 32 is larger than resize 16" --field depth:kind=image,resize=16,crop=32 "${SMALL[@]}"
misused "--field depth: std needs dtype f16, bf16 or f32; u8 samples are not normalised" \
	--field depth:kind=image,std=1/1/1 "${SMALL[@]}"
misused "--field depth: std 1/0/1: 0 must be above 0, because samples are divided by it" \
	--field depth:kind=image,dtype=f32,std=1/0/1 "${SMALL[@]}"
misused "--field age: there is a field age already" --columns age:u16 --field age:kind=tensor,dtype=u8 "${SMALL[@]}"
misused "--field a: there is a field a_length already" --field a_length:kind=tensor,dtype=u8 --field a:kind=text,max=4 \
	"${SMALL[@]}"
long=$(printf 'a%.0s' {1..41})
misused "--field $long: the field of its lengths would be called ${long}_length, which is too long; \
use a shorter name" --field "$long:kind=text,max=4" "${SMALL[@]}"
many=()
for i in {1..12}; do many+=(--field "f$i:kind=text,max=4"); done
misused "--field f12: more than the limit of 22 fields beside image and label; fields of lengths count too" \
	"${many[@]}" "${SMALL[@]}"
misused "--field image is given twice" --field image:crop=16 --field image:crop=16
misused "--crop and --field image:crop= differ; give one of them" --crop 16 --field image:crop=17
misused "--mean and --field image:mean= differ; give one of them" --crop 16 --dtype f32 --mean 0,0,0 \
	--field image:mean=0/0/1
misused "--crop 32 is larger than --resize 16" --resize 16 --field image:crop=32
misused "--field image: dtype: must be u8, u16, f16, bf16 or f32" --field image:dtype=i8

# ---- tables ----

refused() { # refused CODE LINE ARGUMENT...
	local code=$1 line=$2
	shift 2
	run "$code" "$PACK" images "$@" -o no "${SMALL[@]}"
	said_only "shardpack: $line"
	[ ! -e no ] || die "made for nothing: $*"
	n=$((n + 1))
}
bad_input() { # bad_input WHY ARGUMENT...
	local why=$1
	shift
	run 1 "$PACK" images "$@" -o no "${SMALL[@]}"
	said_of_one "$why"
	[ ! -e no ] || die "made for nothing: $*"
	n=$((n + 1))
}
cell() { # cell FIELD VALUE WHAT: the value, in the column x of a JSON line and of a CSV
	"$PYTHON" - "$IMG" "$2" <<'PY'
import csv, json, sys
row = {"path": sys.argv[1], "label": 0, "x": sys.argv[2]}
with open("t1.csv", "w", newline="") as f:
    csv.writer(f).writerows([list(row), list(row.values())])
PY
	bad_input "t1.csv: line 2: column x, field x: $3" t1.csv --field "x:$1"
}
cell kind=text,max=5 'hällo' "6 bytes; the limit is max=5, raise it or shorten the value"
ALL=kind=text,max=5,pick=all,count=2
cell $ALL '["a","b","c"]' "3 texts; the limit is count=2, raise it"
cell $ALL '["a","hällo"]' "text 1 has 6 bytes; the limit is max=5, raise it or shorten the text"
cell $ALL '["a",null]' "element 1 of the list is not a text"
cell $ALL '["a",["b"]]' "element 1 of the list is not a text"
cell $ALL '{"a":"b"}' "neither a text nor a list of texts"
cell $ALL "['a','b']" "no list of texts in JSON, at byte 2: invalid token near '''"
cell $ALL 'on a mat' "no list of texts in JSON, at byte 2: invalid token near 'on'"
cell kind=text,max=5,pick=first '[]' "a list without a text; add one, or say optional"
cell kind=text,max=5,pick=first '["hällo","a"]' "text 0 has 6 bytes; the limit is max=5, raise it or shorten the text"
cell kind=text,max=5,pick=first '["a",5]' "element 1 of the list is not a text"
cell kind=ragged,dtype=i32,max=2 '[1,2,3]' "3 of them; the limit is max=2, raise it"
cell kind=ragged,dtype=i32,max=2 '1' "axis 0 is 1 and must be a list; the field has 1 axes"
cell kind=ragged,dtype=i32,max=2 '[1,[2]]' "element 1 is a list of 1 and must be a number"
cell kind=ragged,dtype=i32,max=2 '[1,2.0]' "number 1, 2, does not fit i32; choose a dtype that holds it"
cell kind=ragged,dtype=i32,max=2 '[1,2147483648]' "number 1, 2147483648, does not fit i32; choose a dtype that holds it"
cell kind=ragged,dtype=u8,max=2 '[-1]' "number 0, -1, does not fit u8; choose a dtype that holds it"
cell kind=ragged,dtype=bool,max=3 '[true,1,2]' "number 2, 2, does not fit bool; choose a dtype that holds it"
cell kind=ragged,dtype=u8,max=2 '[true]' "number 0, true, does not fit u8; choose a dtype that holds it"
cell kind=ragged,dtype=f32,max=2 '[3.4e38,3.5e38]' "number 1, 3.5e+38, does not fit f32; choose a dtype that holds it"
cell kind=ragged,dtype=f32,max=2 '[NaN]' "no JSON, at byte 4: invalid token near 'NaN'"
cell kind=ragged,dtype=f32,max=2 '[1e999]' "no JSON, at byte 6: real number overflow near '1e999'"
cell kind=ragged,dtype=f32,max=2 '[1,' "no JSON, at byte 3: ']' expected near end of file"
cell kind=ragged,dtype=f32,max=2 '{"a":1,"a":2}' "no JSON, at byte 10: duplicate object key near '\"a\"'"
cell kind=tensor,dtype=i64,shape=2x2 '[[1,2],[3]]' "axis 1 has 1 elements; the field has 2"
cell kind=tensor,dtype=i64,shape=2x2 '[[1,2]]' "axis 0 has 1 elements; the field has 2"
cell kind=tensor,dtype=i64 '[1]' "element 0 is a list of 1 and must be a number"
cell kind=boxes,max=2 '[[1,2,3,4],[5,1,4,2]]' \
	"box 1 is [5, 1, 4, 2] (x1, y1, x2, y2): its right side is left of its left side"
cell kind=boxes,max=2,format=xywh '[[1,2,3,-4]]' "box 0 is [1, 2, 3, -4] (x, y, width, height): its height is below 0"
cell kind=boxes,max=2 '[[1,2,3]]' "axis 1 has 3 elements; the field has 4"
cell kind=boxes,max=1 '[[1,2,3,4],[1,2,3,4]]' "2 of them; the limit is max=1, raise it"
printf 'path,label,x\n%s,0,\n' $IMG >t1.csv
bad_input "t1.csv: line 2: column x is empty, and field x comes from it" t1.csv --field x:kind=boxes,max=1
bad_input "t1.csv: line 2: column x is empty, and field x comes from it" t1.csv --field x:kind=mask
refused 1 "./t1.csv: line 1: no column is called y, which --field y needs; \
the columns are 'path' 'label' 'x'" t1.csv --field y:kind=text,max=1
printf 'path,label,x\n%s,0,\377\n' $IMG >t1.csv
bad_input "t1.csv: line 2: column x, field x: not UTF-8 at byte 0; kind=bytes takes any" t1.csv \
	--field x:kind=text,max=5
printf 'path,label,x\n%s,0,gone.png\n' $IMG >t1.csv
bad_input "t1.csv: line 2: 'gone.png': No such file or directory" t1.csv --field x:kind=mask
printf 'path,label,x\n%s,0,../gone.png\n' $IMG >t1.csv
refused 1 "./t1.csv: line 2: '../gone.png' lies outside of .; name a folder that holds all images with --root" t1.csv \
	--field x:kind=image
printf '{"path": "%s", "label": 0, "x": 5}\n' $IMG >t1.jsonl
bad_input "t1.jsonl: line 1: x is 5, and --field x needs a text: write it in quotes, or pack it with \
kind=tensor,dtype=TYPE" t1.jsonl --field x:kind=text,max=5
printf '{"path": "%s", "label": 0, "x": ["a", "b"]}\n' $IMG >t1.jsonl
bad_input "t1.jsonl: line 1: x is a list, and --field x is one text; say pick=first for its first text, \
pick=all,count=N for all of them in one record, or, of tables and COCO, pick=each for a record of each" \
	t1.jsonl --field x:kind=text,max=5
bad_input "t1.jsonl: line 1: no key is called y; the keys are 'path' 'label' 'x'; field y comes from it; \
with optional, the field is empty" t1.jsonl --field y:kind=text,max=5

# ---- files and archives, when they are listed ----

refused 2 "--field mask: from= must be a path below img that contains {}, which stands for the image's path \
without extension, such as from=mask/{}.png" img --field mask:kind=mask
bad_input "field mask, mask/a/00.jpg: No such file or directory" img --root . \
	--field 'mask:kind=mask,from=mask/{}.jpg'
refused 1 "img/a/00.png: --field mask: from=../mask/{}.png does not lead to a path below img" img \
	--field 'mask:kind=mask,from=../mask/{}.png'
bad_input "sample '0000' at offset 2048 has no .seg.jpg, which --field mask needs; its members are" wds.tar \
	--field mask:kind=mask,from=seg.jpg

# what is there is said: lines of YOLO, an object, a name with a dot too many
mkdir yolo && cp $IMG yolo/0.png && echo "3 0.5 0.5 0.25 0.5" >yolo/0.txt && echo "12.5 abc" >yolo/0.not
LINES="not JSON, but lines of a class and a box, as YOLO has them: say format=yolo"
YOLO=(yolo --no-label)
bad_input "field x, 0.txt: $LINES" "${YOLO[@]}" --field 'x:kind=boxes,max=2,from={}.txt'
bad_input "field x, 0.txt: $LINES" "${YOLO[@]}" --field 'x:kind=ragged,dtype=i64,max=2,from={}.txt'
bad_input "field x, 0.not: no JSON, at byte 8: end of file expected near 'abc'" "${YOLO[@]}" --field \
	'x:kind=boxes,max=2,from={}.not'
cell kind=boxes,max=2 '{"bbox":[[1,2,3,4]],"categories":[0]}' "axis 0 is an object with the keys 'bbox' 'categories' \
and must be a list; the field has 2 axes; a nested key is written with a dot"
printf '{"path": "%s", "label": 0, "o": {"bbox": [[1, 2, 3, 4]], "t": 5}}\n' $IMG >t1.jsonl
bad_input "t1.jsonl: line 1: no key is called bbox; the keys are 'path' 'label' 'o', and o.bbox is there; field bbox \
comes from it; with optional, the field is empty" t1.jsonl --field bbox:kind=boxes,max=2
bad_input "t1.jsonl: line 1: o.t is 5, and --field x needs a text: write it in quotes, or pack it with \
kind=tensor,dtype=TYPE" t1.jsonl --field x:kind=text,max=5,from=o.t
bad_input "t1.jsonl: line 1: o is an object with the keys 'bbox' 't', and --field x needs a text" t1.jsonl \
	--field x:kind=text,max=5,from=o
printf '{"path": "%s", "label": 0, "o": [{"bbox": [[1, 2, 3, 4]]}]}\n' $IMG >t1.jsonl
bad_input "t1.jsonl: line 1: no key is called o.bbox, because o is a list of 1; field x comes from it; with optional, \
the field is empty" t1.jsonl --field x:kind=boxes,max=2,from=o.bbox
mkdir dots && cp $IMG dots/7.png && cp $IMG dots/8.b.png && echo 0 >dots/7.cls && echo 0 >dots/8.cls
echo text >dots/7.a.txt
tar -cf dots.tar --format=ustar -C dots 7.png 7.cls 7.a.txt && tar -cf dots2.tar --format=ustar -C dots 8.b.png 8.cls
bad_input "sample '7' at offset 512 has no .txt, which --field x needs; its members are .png .cls .a.txt; a key ends \
at the first dot, so '.a.txt' is one suffix: rename the members, or say from=a.txt" dots.tar --field \
	x:kind=text,max=5,from=txt
run 0 "$PACK" images dots.tar -o dotted "${SMALL[@]}" --field x:kind=text,max=5,from=a.txt -q
bad_input "sample '8' at offset 512 has no image; its members are .b.png .cls; a key ends at the first dot, so \
'.b.png' is one suffix: rename the members" dots2.tar

# ---- what is in them is a verdict on the sample ----

"$PYTHON" - <<'PY'
import io, json, tarfile
import numpy as np
from PIL import Image
from make_fields import npy, png

rng = np.random.default_rng(3)
good = {"png": png(Image.fromarray(rng.integers(0, 256, (40, 30, 3), dtype=np.uint8))), "cls": b"0", "txt": b"fine",
        "seg.png": png(Image.fromarray(np.zeros((40, 30), np.uint8))), "npy": npy(np.arange(3)),
        "json": b'{"boxes": [[1, 2, 3, 4]]}'}
jpeg = io.BytesIO()
Image.new("L", (30, 40)).save(jpeg, "JPEG")
array = good["npy"]
bad = [
    ("txt", b"x" * 9, "9 bytes; the limit is max=8, raise it or shorten the value"),
    ("txt", b"ab\xff", "not UTF-8 at byte 2; kind=bytes takes any"),
    ("npy", npy(np.arange(5)), "5 of them; the limit is max=4, raise it"),
    ("npy", npy(np.zeros((2, 2))), "an array of NumPy with 2 axes; the field has 1"),
    ("npy", npy(np.array([1.5])), "number 0, 1.5, does not fit i32; choose a dtype that holds it"),
    ("npy", npy(np.array([2**63], "<u8")), "number 0, 9223372036854775808, does not fit i32; choose a dtype that holds it"),
    ("npy", npy(np.array([1], "<f2")), "an array of NumPy: dtype f2; save it as f4"),
    ("npy", array[:-1], "an array of NumPy: its shape asks for 24 bytes, and 23 follow its head"),
    ("npy", array + b"x", "an array of NumPy: its shape asks for 24 bytes, and 25 follow its head"),
    ("npy", array[:60], "an array of NumPy: offset 8: a head of 118 bytes, but the file ends before"),
    ("npy", b"[1, 2", "no JSON, at byte 5: ']' expected near end of file"),
    ("json", b'{"boxes": [[1, 2, 3]]}', "axis 1 has 3 elements; the field has 4"),
    ("json", b'{"boxes": [[3, 2, 1, 4]]}',
     "box 0 is [3, 2, 1, 4] (x1, y1, x2, y2): its right side is left of its left side"),
    ("json", b'{"other": 1}', "no key is called boxes; the keys are 'other'; add it, or say optional"),
    ("json", b'[1]', "no key is called boxes; there are none; add it, or say optional"),
    ("json", b'{"boxes": [], "one": ["a"]}', "a list; say pick=first for its first text, pick=all,count=N for all of "
     "them in one record, or, of tables and COCO, pick=each for a record of each"),
    ("json", b'{"boxes": [], "all": ["a", "b", "c"]}', "3 texts; the limit is count=2, raise it"),
    ("json", b'{', "no JSON, at byte 1: string or '}' expected near end of file"),
    ("seg.png", png(Image.new("L", (40, 30))),
     "a mask of 40 x 30, and its image has 30 x 40; they must be of one size"),
    ("seg.png", good["png"], None),
    ("seg.png", good["seg.png"][:-20], None),
    ("seg.png", jpeg.getvalue(), None),
    ("seg.png", b"", None),
]
members, want = [], []
for i, (suffix, data, line) in enumerate([("", b"", "")] + bad):
    members += [("%04d.%s" % (i, k), data if k == suffix else v) for k, v in good.items()]
with tarfile.open("bad.tar", "w") as tar:
    for name, data in members:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
with tarfile.open("bad.tar") as tar:
    at = {m.name: (m.offset_data, m.size) for m in tar}
fields = {"txt": "caption", "npy": "ids", "json": "boxes", "seg.png": "mask"}
with open("want", "w") as f:
    for i, (suffix, data, line) in enumerate(bad, 1):
        field = "one" if b'"one"' in data else "all" if b'"all"' in data else fields[suffix]
        offset, size = at["%04d.%s" % (i, suffix)]
        f.write("%04d.png: field %s, %d bytes at offset %d of bad.tar: %s\n" % (i, field, size, offset, line or "*"))
PY
FIELDS=("--field=caption:kind=text,max=8,from=txt" "--field=ids:kind=ragged,dtype=i32,max=4,from=npy" \
	"--field=boxes:kind=boxes,max=3,from=json:boxes" "--field=mask:kind=mask,from=seg.png" \
	"--field=one:kind=text,max=4,from=json:one,optional" "--field=all:$ALL,from=json:all,optional")
run 1 "$PACK" images bad.tar -o no "${SMALL[@]}" "${FIELDS[@]}" --order source
[ ! -e no ] || die "a dataset with bad samples"
run 0 "$PACK" images bad.tar -o kept "${SMALL[@]}" "${FIELDS[@]}" --order source --on-error quarantine \
	--quarantine away --report kept.json
said "shardpack: 24 inputs = 1 written + 0 skipped + 23 quarantined + 0 failed"
"$PYTHON" - <<'PY'
import io, json, os, tarfile
want = [line.rstrip("\n") for line in open("want")]
got = [json.loads(line) for line in open("away/quarantine.jsonl")]
assert len(got) == len(want), (len(got), len(want))
for g, w in zip(got, want):
    line = "%s: %s" % (g["input"][len("bad.tar/"):], g["message"])
    assert line == w or (w.endswith("*") and line.startswith(w[:-1]) and len(line) > len(w) + 10), (line, w)
    print(line)
with tarfile.open("bad.tar") as tar: # all members of a bad sample are kept, as they are
    for m in tar:
        path, bad = os.path.join("away/bad.tar", m.name), not m.name.startswith("0000.")
        named = not m.name.endswith(".cls")
        assert os.path.exists(path) == (bad and named), path
        assert not (bad and named) or open(path, "rb").read() == tar.extractfile(m).read(), path
PY
run 0 "$PACK" images bad.tar -o skipped "${SMALL[@]}" "${FIELDS[@]}" --order source --on-error skip -q
run 0 "$CAT" verify skipped

# ---- files that changed since the plan ----

TABLE=("--field=seg:kind=mask" "--field=caption:kind=text,max=96" "--field=boxes:kind=boxes,max=5" \
	"--field=depth:kind=image")
run 0 "$PACK" plan images t.csv -o changed "${SMALL[@]}" "${TABLE[@]}" -q
bytes=$(stat -c %s mask/a/02.png)
echo >>mask/a/02.png && rm depth/b/09.png
run 3 "$PACK" build changed
changed="changed since the plan was made: $bytes bytes then, $((bytes + 1)) now"
said "shardpack: warning: $PWD/img/a/02.png: field seg, mask/a/02.png: $changed"
said "shardpack: warning: $PWD/img/b/09.png: field depth, depth/b/09.png: No such file or directory"

# ---- plans that somebody changed ----

rm -rf img mask depth text more changed
"$PYTHON" "$ROOT/tests/cli/make_fields.py" 24 16 short
run 0 "$PACK" plan images t.csv -o planned "${SMALL[@]}" "${TABLE[@]}" --columns age:u16 -q
run 0 "$PACK" plan images wds.tar -o tarred "${SMALL[@]}" --field x:kind=text,max=96,from=txt,optional \
	--field y:kind=bytes,max=8,from=bin -q
for edit in 's/^field seg u8/field seg i8/' 's/^field seg/field image/' \
	's/\[16,16\] 0 0 kind=mask/[16,15] 0 0 kind=mask/' 's/ kind=mask,from=seg$//' \
	's/kind=mask,from=seg$/&,fill=0/' 's/kind=mask,from=seg$/&,turn=none/' \
	's/kind=mask,from=seg$/&,optional/;s/^\(input 3 .*\) [0-9]*,mask[^ ]*/\1 -x/' \
	's/kind=mask,from=seg$/from=seg,kind=mask/' \
	's/^field caption_length u32/field caption_length i32/' '/^field caption_length/d' \
	's/^field caption_length/field caption_size/' \
	's/^\(field caption .*\) 1 3 /\1 1 2 /' 's/kind=text,from=caption/kind=text,from=capti%6Fn/' \
	's/kind=text/kind=bytes/' 's/max=96/max=95/' \
	's/format=xyxy/format=yxyx/' '/^field boxes_length/d' 's/,resize=24,fit/,resize=024,fit/' \
	's/,dtype=u8$/,dtype=u8,mean=0\/0\/0/' \
	's/^\(field age .*\) 0 0$/\1 0 0 kind=column,from=age/' 's/^field age .*$/& /' \
	's,mask/a/,../a/,' 's/^\(input 3 .*\) =[0-9a-f]* /\1 /' \
	's/^\(input 3 .* [0-9]*,mask[^ ]*\) =[0-9a-f]* /\1 - /' \
	's/^\(input 3 .* [0-9]*,mask[^ ]*\) =\([0-9a-f]*\) /\1 =\2f /' \
	's/^\(input 3 .* [0-9]*,mask[^ ]* =[0-9a-f]*\) =[0-9a-f]* /\1 =00000000 /' \
	's/^\(input 3 .*\) [0-9]*,mask[^ ]*/\1 =00/' 's/^\(input 3 .*\) [0-9]*,depth[^ ]*$/\1/' \
	's/^\(input 3 .* \)[0-9]*,depth[^ ]*$/\11,2,3/' \
	's/^\(input 3 .* \)[0-9]*,depth[^ ]*$/\1x,depth/' 's/^\(input 3 .*\)$/\1 -/'; do
	n=$((n + 1))
	replan "$edit" planned "t$n"
	run 1 "$PACK" build "t$n"
	grep -q "^shardpack: t$n/.shardpack/plan: line [0-9]*: .*; this is not a plan that shardpack wrote$" err ||
		die "$edit: $(cat err)"
	[ "$(wc -l <err)" = 1 ] || die "$edit: $(cat err)"
done
for edit in 's/^\(input 3 .*\) [0-9]*,[0-9]*,0$/\1 -/' 's/^\(input 3 .* \)[0-9]*,[0-9]*,0$/\199999999,1,0/' \
	's/^\(input 3 .*\),0$/\1,1/' \
	's/^\(input 3 .*,[0-9]*,0 [0-9]*\),[0-9]*,0$/\1,9999999,0/' \
	's/^\(field x .*\),optional/\1/;s/^\(input 3 .*\) [0-9]*,[0-9]*,0 /\1 - /'; do
	n=$((n + 1))
	replan "$edit" tarred "t$n"
	run 1 "$PACK" build "t$n"
	grep -q "^shardpack: t$n/.shardpack/plan: line [0-9]*: .*; this is not a plan that shardpack wrote$" err ||
		die "$edit: $(cat err)"
done
# Boxes that no table could give, in hex of the right length: a verdict, when they are moved.
replan 's/^\(input 3 .* [0-9]*,mask[^ ]* =[0-9a-f]*\) =[0-9a-f]* /\1 =0000c07f000000000000000000000000 /' planned nan
run 1 "$PACK" build nan
grep -q 'box 0 is \[nan, 0, 0, 0\] (x1, y1, x2, y2): its numbers must be finite$' err || die "$(cat err)"
# The edit that changes nothing shows that the others failed for what they changed.
replan s/x/x/ planned same
run 0 "$PACK" build same -q && run 0 "$PACK" seal same -q
echo "$n refusals and spoilt plans, 23 verdicts on samples"
