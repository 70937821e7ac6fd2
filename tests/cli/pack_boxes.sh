#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_boxes.sh - one set of boxes in every format and scale, from every source, against
# NumPy's float32; and the text files of YOLO, with classes beside the boxes
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
need_pillow
export PYTHONPATH=$ROOT/tests/cli:$ROOT/tests/twin

# img/a/NN.png, and the boxes of each as xyxy, xywh, cxcywh, uxyxy ... of unit scale: in tables, in
# more/NN.FORM.npy, and as YOLO in labels/a/NN.txt.  want.npz: those of the record, by NumPy.
"$PYTHON" - <<'PY'
import csv, json, os, random
import boxes, numpy
from PIL import Image

F32, rng = numpy.float32, random.Random(7)
os.makedirs("img/a"), os.makedirs("labels/a"), os.makedirs("more/a")


def corners(form, rows):
    out = numpy.array(rows, F32).reshape(-1, 4)
    if form.endswith("cxcywh"):
        out[:, :2] -= out[:, 2:] / F32(2)
    if form.endswith("wh"):
        out[:, 2:] += out[:, :2]
    return out


table, want = [], {}
for i in range(9):
    w, h = rng.randint(20, 90), rng.randint(20, 90)
    name = f"a/{i:02}"
    Image.new("RGB", (w, h), (i, 2 * i, 3 * i)).save(f"img/{name}.png")
    row, count = {"path": f"img/{name}.png", "label": 0}, i % 4
    xyxy = []
    for _ in range(count):
        x1, x2 = sorted(rng.uniform(0, w) for _ in "ab")
        y1, y2 = sorted(rng.uniform(0, h) for _ in "ab")
        xyxy.append([x1, y1, x2, y2])
    classes = [rng.randrange(80) for _ in range(count)]
    forms = {"xyxy": xyxy,
             "xywh": [[a, b, c - a, d - b] for a, b, c, d in xyxy],
             "cxcywh": [[(a + c) / 2, (b + d) / 2, c - a, d - b] for a, b, c, d in xyxy]}
    for form in list(forms):
        forms["u" + form] = [[v / (w, h)[k % 2] for k, v in enumerate(box)] for box in forms[form]]
    with open(f"labels/{name}.txt", "w") as f:
        for k, box in zip(classes, forms["ucxcywh"]):
            f.write(f"{k} " + " ".join(f"{v:.6f}" for v in box) + "\r\n" * (i % 2) + "\n")
    forms["yolo"] = [[float(f"{v:.6f}") for v in box] for box in forms["ucxcywh"]]
    for form, rows in forms.items():
        got = corners("cxcywh" if form == "yolo" else form, rows)
        if form[0] in "uy" and form != "xyxy":
            got = got * numpy.array([w, h, w, h], F32)
        out = numpy.zeros((4, 4), F32)
        for k, box in enumerate(got):
            out[k] = boxes.moved(box, (w, h), 24, 16, boxes.SHORT, 0)
        want.setdefault(form, []).append(out)
        row[form] = json.dumps(rows)
        numpy.save(f"more/{name}.{form}.npy", numpy.array(rows, "f4").reshape(-1, 4))
    want.setdefault("length", []).append([count])
    want.setdefault("classes", []).append(classes + [0] * (4 - count))
    table.append(row)
with open("t.csv", "w", newline="") as f:
    out = csv.DictWriter(f, list(table[0]))
    out.writeheader()
    out.writerows(table)
with open("t.jsonl", "w") as f:
    for row in table:
        f.write(json.dumps({k: json.loads(v) if k not in ("path", "label") else v for k, v in row.items()}) + "\n")
numpy.savez("want.npz", **{k: numpy.array(v, {"classes": "i8", "length": "u4"}.get(k, "f4")) for k, v in want.items()})
PY
check() { # check DS FIELD FORM
	"$PYTHON" -c 'import sys, numpy, records
got, want = records.read(sys.argv[1]), numpy.load("want.npz")
form = sys.argv[3]
records.same(got[sys.argv[2]], want[form], " ".join(sys.argv[1:]))
records.same(got[sys.argv[2] + "_length"], want["length"], "lengths")
assert want[form].any()' "$@"
}
ARGS=(--resize 24 --crop 16 --order source -q)
BOXES=boxes:kind=boxes,max=4
for form in xyxy xywh cxcywh; do
	for unit in '' u; do
		scale=${unit:+,scale=unit}
		for t in csv jsonl; do
			run 0 "$PACK" images t.$t -o ds.$unit$form.$t "${ARGS[@]}" \
				--field "$BOXES,from=$unit$form,format=$form$scale"
			check ds.$unit$form.$t boxes $unit$form
		done
		run 0 "$PACK" images img --root . -o ds.$unit$form.npy "${ARGS[@]}" \
			--field "$BOXES,from=more/{}.$unit$form.npy,format=$form$scale"
		check ds.$unit$form.npy boxes $unit$form
	done
done
run 0 "$PACK" images t.csv -o said "${ARGS[@]}" --field "$BOXES,from=xyxy,format=xyxy,scale=pixels"
same said ds.xyxy.csv # what is the default needs no words in the plan

# ---- YOLO ----

CLASSES=classes:kind=ragged,dtype=i64,max=4
YOLO=(--field "$BOXES,from=labels/{}.txt,format=yolo" --field "$CLASSES,from=labels/{}.txt,format=yolo")
run 0 "$PACK" images img --root . -o ds.yolo "${ARGS[@]}" "${YOLO[@]}" -j 1
check ds.yolo boxes yolo
check ds.yolo classes classes
run 0 "$PACK" images img --root . -o ds.again "${ARGS[@]}" "${YOLO[@]}" -j 3
same ds.yolo ds.again
rm labels/a/00.txt # an image of the background, which has no lines
run 1 "$PACK" images img --root . -o no "${ARGS[@]}" "${YOLO[@]}"
rm -rf no
run 0 "$PACK" images img --root . -o ds.some "${ARGS[@]}" "${YOLO[@]/%yolo/yolo,optional}"
check ds.some boxes yolo
check ds.some classes classes
: >labels/a/00.txt

# bad LINES WHAT: the text of the second image
bad() {
	printf -- "$1" >labels/a/01.txt
	run 1 "$PACK" images img --root . -o no "${ARGS[@]}" "${YOLO[@]}"
	grep -qF -- "field boxes, labels/a/01.txt: $2" err || { cat err >&2 && die "expected: $2"; }
	run 0 "$PACK" images img --root . -o skipped "${ARGS[@]}" "${YOLO[@]}" --on-error skip
	[ "$("$CAT" list skipped | grep -c .)" -ge 8 ] || die "others are there"
	rm -r skipped
}
FORM="; must be class, middle x and y, width and height"
bad '0 .5 .5 .1\n' "line 1 has less than 5 numbers$FORM"
bad '0 .5 .5 .1 .1\n\n0 .5 .5 .1 .1 .9\n' "line 3 has more than 5 numbers$FORM"
bad '0 .1 .1 .9 .1 .9 .9\n' "line 1 is a polygon; only boxes are supported$FORM"
bad '0.5 .5 .5 .1 .1\n' "line 1 has a class that is not a whole number, 0 or more$FORM"
bad '-1 .5 .5 .1 .1\n' "line 1 has a class that is not a whole number, 0 or more$FORM"
bad 'cat .5 .5 .1 .1\n' "line 1 has a word that is not a number$FORM"
bad '0 .5 nan .1 .1\n' "line 1 has a word that is not a number$FORM"
bad '0 .5 .5 .1 .1\0 7\n' "line 1 has a word that is not a number$FORM"
bad '0 50 50 10 10\n' \
	"box 0 is [50, 50, 10, 10] (middle x and y, width, height): numbers of scale=unit must be from 0 to 1"
bad '0 .5 .5 .1 -.1\n' "box 0 is [0.5, 0.5, 0.100000001, -0.100000001] (middle x and y, width, height): numbers of"
bad "$(printf '0 .5 .5 .1 .1\\n%.0s' 1 2 3 4 5)" "5 of them; the limit is max=4, raise it"
