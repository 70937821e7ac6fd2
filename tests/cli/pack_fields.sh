#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_fields.sh - several fields per record, out of every source: what Pillow and NumPy
# make of the same samples
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
export PYTHONPATH=$ROOT/tests/cli

# check DS FIELD...: image, label and these fields of DS are those of want.npz, in its order, and
# there are no others
check() {
	"$PYTHON" -c 'import sys, numpy, records
got, want = records.read(sys.argv[1]), numpy.load("want.npz")
names = ["image", "label"]
for f in sys.argv[2:]:
    names += [f] + [f + "_length"] * (f + "_length" in want)
assert sorted(got) == sorted(names), sorted(got)
for name in names:
    records.same(got[name], want[name], sys.argv[1] + ", " + name)' "$@"
}

MASK=mask:kind=mask,fill=255 DEPTH=depth:kind=image,fit=short,resize=20,crop=16,filter=bicubic,layout=chw
IDS=ids:kind=ragged,dtype=i32,max=16 MAT=mat:kind=tensor,dtype=f32,shape=2x2 CAPTION=caption:kind=text,max=96
BOXES=boxes:kind=boxes,max=5 SCORE=score:kind=tensor,dtype=f64

# ---- every fit: tables, files, archives ----

pixels_of_pillow
for fit in short:24:16 short:40:33 long:24:16 stretch:20:15 pad:24:24; do
	IFS=: read -r how resize crop <<<"$fit"
	rm -rf img mask depth text more ds.*
	"$PYTHON" "$ROOT/tests/cli/make_fields.py" "$resize" "$crop" "$how"
	ARGS=("${LIKE[@]}" --resize "$resize" --crop "$crop" --fit "$how" --order source -q)
	run 0 "$PACK" images t.csv -o ds.csv "${ARGS[@]}" --field $CAPTION --field $MASK,from=seg --field $DEPTH \
		--columns age:u16 --field $IDS --field $BOXES --field $MAT --field $SCORE
	check ds.csv age caption mask depth ids boxes mat score
	run 0 "$PACK" images t.jsonl -o ds.jsonl "${ARGS[@]}" --field $CAPTION --field $MASK,from=seg --field $DEPTH \
		--columns age:u16 --field $IDS --field $BOXES --field $MAT --field $SCORE
	same ds.csv ds.jsonl
	run 0 "$PACK" images img --root . -o ds.files "${ARGS[@]}" --field $MASK,from='mask/{}.png' \
		--field $DEPTH,from='depth/{}.png' --field $CAPTION,from='text/{}.txt' \
		--field $IDS,from='more/{}.ids.npy' --field $MAT,from='more/{}.mat.json' \
		--field $BOXES,from='more/{}.boxes.npy'
	check ds.files mask depth caption ids mat boxes
	for a in tar zip; do
		run 0 "$PACK" images wds.$a -o ds.$a "${ARGS[@]}" --field $MASK,from=seg.png \
			--field $DEPTH,from=depth.png --field $CAPTION,from=txt \
			--field $IDS,from=ids.npy --field $BOXES,from=json:boxes,format=xywh --field $MAT \
			--field $SCORE,from=json:score --field blob:kind=bytes,max=8,from=bin
		check ds.$a mask depth caption ids boxes mat score blob
	done
done

# ---- the image's own options, in both spellings ----

FIELDS=("--field=$CAPTION" "--field=$MASK,from=seg" "--field=$DEPTH" "--field=$IDS" "--field=$BOXES" \
	--columns "age:u16")
run 0 "$PACK" images t.csv -o flat --resize 32 --crop 24 --layout chw --dtype f16 --mean 0.5,0.25,0.5 \
	--std 1,0.25,0.5 -q
run 0 "$PACK" images t.csv -o field -q \
	--field image:resize=32,crop=24,layout=chw,dtype=f16,mean=0.5/0.25/0.5,std=1/0.25/0.5
same flat field
run 0 "$PACK" images t.csv -o both --resize 32 --layout chw --mean 0.5,0.25,0.5 \
	--field image:kind=image,resize=32,crop=24,dtype=f16,mean=0.5/0.25/0.5,std=1/0.25/0.5 -q
same flat both
# Another image is as the first one, but for what is said of it: sizes both or none.
run 0 "$PACK" plan images t.csv -o heirs --resize 32 --crop 24 --layout chw --dtype f16 --mean 0.5,0.25,0.5 \
	--std 1,0.25,0.5 -q \
	--field a:kind=image,from=depth --field b:kind=image,from=depth,resize=16 \
	--field c:kind=image,from=depth,dtype=u8,fit=stretch
floats=dtype=f16,mean=0.5/0.25/0.5,std=1/0.25/0.5
sed -n 's/^field //p' heirs/.shardpack/plan | diff - <(cat <<END
a f16 tensor chw image [3,24,24] 0 0 \
kind=image,from=depth,resize=32,fit=short,crop=24,filter=bilinear,layout=chw,$floats
b f16 tensor chw image [3,16,16] 0 0 \
kind=image,from=depth,resize=16,fit=short,crop=16,filter=bilinear,layout=chw,$floats
c u8 tensor chw image [3,24,24] 0 0 \
kind=image,from=depth,resize=32,fit=stretch,crop=24,filter=bilinear,layout=chw,dtype=u8
END
) >&2 || die "what other images inherit"

# ---- the same bytes, however they are made ----

SMALL=(--resize 24 --crop 16 --shard-records 4 --seed 3)
run 0 "$PACK" images t.csv -o once "${SMALL[@]}" "${FIELDS[@]}" -j 1 -q
run 0 "$PACK" images t.csv -o again "${SMALL[@]}" "${FIELDS[@]}" -j 3 -q
same once again
run 0 "$PACK" plan images t.csv -o planned "${SMALL[@]}" "${FIELDS[@]}" -q
for part in 2/3 0/3 1/3; do run 0 "$PACK" build planned --part $part -q; done
run 0 "$PACK" seal planned -q
same once planned
run 0 "$PACK" plan images t.csv -o resumed "${SMALL[@]}" "${FIELDS[@]}" -q
run 0 "$PACK" build resumed --part 1/4 -q
run 0 "$PACK" images t.csv -o resumed "${SMALL[@]}" "${FIELDS[@]}"
said "shardpack: resumed: 1 of 4 shards is there already; continuing"
same once resumed
run 0 "$PACK" images t.csv -o packed "${SMALL[@]}" "${FIELDS[@]}" --compress lz4 -q
"$PYTHON" -c 'import records
raw, packed = records.read("once"), records.read("packed")
for name in raw:
    records.same(packed[name], raw[name], name)'

# ---- folders of classes, and classes that are folders of an archive: {} is the path below SRC ----

# Files beside the images that are fields are no inputs, whatever they are called.
mkdir tree
cp -r img/* tree && cp -r text/* tree
for f in mask/*/*; do cp "$f" "tree/${f:5:4}_mask.png"; done
run 0 "$PACK" images tree -o ds.tree "${ARGS[@]}" --field "$CAPTION,from={}.txt" --field "$MASK,from={}_mask.png"
check ds.tree caption mask
run 0 "$PACK" images folders.tar -o ds.folders "${ARGS[@]}" --field $CAPTION,from=txt
check ds.folders caption
[ "$(sed -n 's/^class //p' ds.folders/dataset.manifest | tr '\n' ,)" = "0 a,1 b," ] || die "class names"

# ---- what is optional ----

sed 's/"seg": "[^"]*04.png", //; s/"seg": "[^"]*02.png"/"seg": null/; s/"boxes": \[\[/"gone": [[/
	4s/^{/{"none": "yes", /' t.jsonl >some.jsonl
run 0 "$PACK" images some.jsonl -o some "${ARGS[@]}" --field $MASK,from=seg,optional --field $BOXES,optional \
	--field none:kind=text,max=4,optional
"$PYTHON" - <<'PY'
import json
import numpy, records
got, want, rows = records.read("some"), dict(numpy.load("want.npz")), [json.loads(line) for line in open("some.jsonl")]
assert sum("boxes" not in r for r in rows) > 5
for i, r in enumerate(rows):
    if r.get("seg") is None:
        want["mask"][i] = 255
    if "boxes" not in r:
        want["boxes"][i], want["boxes_length"][i] = 0, 0
for name in "mask", "boxes", "boxes_length":
    records.same(got[name], want[name], name)
assert bytes(got["none"][3]) == b"yes\0" and got["none_length"].sum() == 3
PY

# ---- an image that lies on its side: what says how its mask, boxes and further images lie ----

# Files: the image, which EXIF turns; masks with the pixels as they are stored, with and without
# EXIF, and upright ones, without EXIF and with one that is wrong; a twin of the image without EXIF.
# A mask and a twin state their orientation in XMP alone.

"$PYTHON" - <<'PY'
import csv
import io
import json
import os
import tarfile
import numpy as np
from PIL import Image, ImageOps, PngImagePlugin
os.makedirs("lies")
kinds = ["mask", "stored", "upright", "wrong", "twin", "twin.upright", "xmp", "twin.xmp"]
rng = np.random.default_rng(5)
rows, want = [], {"image": [], "mask": [], "boxes": []}
for k in range(1, 9):
    marked = np.zeros((48, 32), np.uint8)
    x1, y1, x2, y2 = 4 * rng.integers(0, 3), 4 * rng.integers(0, 5), 4 * rng.integers(4, 8), 4 * rng.integers(6, 12)
    marked[y1:y2, x1:x2] = 7
    image = Image.fromarray(np.stack([marked * 9, 255 - marked, marked], 2))
    mask, exif = Image.fromarray(marked), Image.Exif()
    exif[274] = k
    image.save("lies/%d.png" % k, exif=exif)
    mask.save("lies/%d.mask.png" % k, exif=exif)
    mask.save("lies/%d.stored.png" % k)
    image.save("lies/%d.twin.png" % k)
    xmp = PngImagePlugin.PngInfo()
    xmp.add_itxt("XML:com.adobe.xmp", '<rdf:Description tiff:Orientation="%d"/>' % k, zip=k % 2 == 0)
    mask.save("lies/%d.xmp.png" % k, pnginfo=xmp)
    image.save("lies/%d.twin.xmp.png" % k, pnginfo=xmp)
    upright = ImageOps.exif_transpose(Image.open("lies/%d.mask.png" % k))
    upright.save("lies/%d.upright.png" % k, exif=b"")
    exif[274] = k % 8 + 1
    upright.save("lies/%d.wrong.png" % k, exif=exif)
    ImageOps.exif_transpose(Image.open("lies/%d.png" % k)).save("lies/%d.twin.upright.png" % k, exif=b"")
    scaled = upright.resize((24, 36) if upright.width < upright.height else (36, 24), Image.NEAREST)
    edge = max(scaled.size) // 2 - 12
    box = (0, edge, 24, edge + 24) if scaled.width < scaled.height else (edge, 0, edge + 24, 24)
    crop = np.asarray(scaled.crop(box))
    at = np.argwhere(crop == 7)
    want["mask"].append(crop)
    want["boxes"].append([[at[:, 1].min(), at[:, 0].min(), at[:, 1].max() + 1, at[:, 0].max() + 1]])
    at = np.argwhere(np.asarray(upright) == 7)
    rows.append(["lies/%d.png" % k, 0] + ["lies/%d.%s.png" % (k, s) for s in kinds] + [
        [[int(v) for v in (x1, y1, x2, y2)]],
        [[int(v) for v in (at[:, 1].min(), at[:, 0].min(), at[:, 1].max() + 1, at[:, 0].max() + 1)]],
        []])
with open("lies.csv", "w", newline="") as f:
    csv.writer(f).writerows([["path", "label"] + kinds + ["boxes", "boxes.upright", "nothing"]] + rows)
with tarfile.open("lies.tar", "w") as tar:
    for row in rows:
        for name in row[:1] + row[2:5]:
            tar.add(name)
        info = tarfile.TarInfo(row[0][:-4] + ".json")
        data = json.dumps({"label": 0, "boxes": row[-3], "upright": row[-2]}).encode()
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
np.savez("lies.npz", mask=np.array(want["mask"]), boxes=np.array(want["boxes"], "<f4"))
PY
LIES=(--resize 24 --crop 24 --order source --exif apply)
run 0 "$PACK" images lies.csv -o lies.ds "${LIES[@]}" --field mask:kind=mask \
	--field a:kind=mask,from=mask,turn=own --field b:kind=mask,from=stored,turn=image \
	--field c:kind=mask,from=upright,turn=none --field d:kind=mask,from=upright,turn=own \
	--field e:kind=mask,from=wrong,turn=none --field f:kind=mask,from=mask,turn=image \
	--field boxes:kind=boxes,max=1,turn=image --field g:kind=boxes,from=boxes.upright,max=1,turn=none \
	--field h:kind=image,from=path --field i:kind=image,from=twin,turn=image \
	--field j:kind=image,from=twin.upright,turn=none --field none:kind=boxes,from=nothing,max=1 \
	--field k:kind=mask,from=xmp --field l:kind=mask,from=xmp,turn=own --field m:kind=image,from=twin.xmp -q
run 0 "$PACK" images lies.tar -o lies.tar.ds "${LIES[@]}" --label-key label --field mask:kind=mask,from=mask.png \
	--field b:kind=mask,from=stored.png,turn=image --field c:kind=mask,from=upright.png,turn=none \
	--field boxes:kind=boxes,max=1,from=json:boxes,turn=image \
	--field g:kind=boxes,max=1,from=json:upright,turn=none -q
"$PYTHON" -c 'import numpy, records
want = numpy.load("lies.npz")
for ds, masks in ("lies.ds", "abcdefkl"), ("lies.tar.ds", "bc"):
    got = records.read(ds)
    for name in "mask", *masks:
        records.same(got[name], want["mask"], name)
    for name in "boxes", "g":
        records.same(got[name], want["boxes"], name)
got = records.read("lies.ds")
for name in "hijm":
    records.same(got[name], got["image"], name)'
# A plan says what was said, and no more; it can be built in parts.
run 0 "$PACK" plan images lies.csv -o lies.plan "${LIES[@]}" --field b:kind=mask,from=stored,turn=image \
	--field boxes:kind=boxes,max=1,turn=image --field mask:kind=mask --shard-records 3 -q
sed -n 's/^field.* \(kind=[^ ]*\)$/\1/p' lies.plan/.shardpack/plan | diff - <(printf '%s\n' \
	kind=mask,from=stored,turn=image kind=boxes,from=boxes,format=xyxy,turn=image,max=1 kind=mask,from=mask)
run 0 "$PACK" build lies.plan --part 1/2 -q && run 0 "$PACK" build lies.plan -q && run 0 "$PACK" seal lies.plan -q
"$PYTHON" -c 'import numpy, records
records.same(records.read("lies.plan")["b"], numpy.load("lies.npz")["mask"], "in parts")'
# What nothing says is bad input: of 8 orientations all but the first.
unsaid() { # unsaid LINE FIELD...: with K for the orientation
	local args=()
	for f in "${@:2}"; do args+=(--field "$f"); done
	rm -rf unsaid.ds
	run 0 "$PACK" images lies.csv -o unsaid.ds "${LIES[@]}" "${args[@]}" --on-error skip
	said "shardpack: 8 inputs = 1 written + 7 skipped + 0 quarantined + 0 failed"
	for k in 2 3 4 5 6 7 8; do said "shardpack: warning: ./lies/$k.png: ${1//K/$k}"; done
	run 1 "$PACK" images lies.csv -o unsaid "${LIES[@]}" "${args[@]}"
	[ ! -e unsaid ] || die "made for nothing"
}
frame="has no orientation in EXIF or XMP, and its image has K; with --exif apply, say turn=image if it lies as \
that file does, or turn=none if it is upright"
unsaid "field stored, lies/K.stored.png: $frame" stored:kind=mask
unsaid "field upright, lies/K.upright.png: $frame" upright:kind=mask
unsaid "field twin, lies/K.twin.png: $frame" twin:kind=image
unsaid "field boxes: its image has orientation K; with --exif apply, say turn=image if the boxes lie as that file \
does, or turn=none if they are upright" boxes:kind=boxes,max=1 mask:kind=mask

# ---- what shardcat says of them ----

IFS= read -r -d '' lines <<'EOT' || :
  caption         u8[34]: "caption 3, "quoted",\nof é猫 🐈"
  caption_length  u32[1]: [34]
EOT
run 0 "$CAT" get ds.csv 8
[ "$(grep '^  caption' out)" = "${lines%$'\n'}" ] || {
	cat out
	die "a caption as text"
}
run 0 "$CAT" get ds.csv 8 --field mask --png --out mask.png
run 0 "$CAT" get ds.csv 8 --field boxes --npy --out boxes.npy
run 0 "$CAT" get ds.csv 8 --field caption --raw --out caption.txt
"$PYTHON" - <<'PY'
import numpy as np
from PIL import Image
want = np.load("want.npz")
mask = Image.open("mask.png")
assert mask.mode == "L" and (np.asarray(mask) == want["mask"][8]).all()
boxes, count = np.load("boxes.npy"), int(want["boxes_length"][8])
assert 0 < count < 5 and boxes.shape == (count, 4) and (boxes == want["boxes"][8][:count]).all()
assert open("caption.txt", "rb").read() == want["caption"][8][:int(want["caption_length"][8])].tobytes()
PY
# Each image of floats is drawn by its own mean and std.
run 0 "$PACK" images t.csv -o floats "${ARGS[@]}" --dtype f32 --mean 0.25,0.5,0.5 --std 1,0.5,0.25 \
	--field $DEPTH,dtype=f32,mean=0.5/0.4/0.3,std=0.1/0.2/0.3 \
	--field u8:kind=image,from=depth,resize=20,crop=16,fit=short,filter=bicubic,dtype=u8
for f in depth u8; do run 0 "$CAT" get floats 3 --field $f --png --out $f.png; done
cmp depth.png u8.png || die "a second image of floats, drawn"
run 0 "$PACK" images t.csv -o foretold --resize 24 --crop 16 "${FIELDS[@]}" --dry-run
printed "field mask u8 tensor none mask [16,16] 0 0 kind=mask,from=seg,fill=255"
printed "field boxes f32 ragged none boxes [5,4] 1 8 kind=boxes,from=boxes,format=xyxy,max=5"
printed "record 2048 bytes image and caption and mask and depth and ids and boxes, \
32 bytes label and age and caption_length and ids_length and boxes_length"
[ ! -e foretold ] || die "--dry-run wrote"
said=$(sed -n 's/^shards .* \([0-9]*\) bytes in all$/\1/p' out)
run 0 "$PACK" images t.csv -o foretold --resize 24 --crop 16 "${FIELDS[@]}" -q
[ "$(cat foretold/*.shard | wc -c)" = "$said" ] || die "foretold $said bytes, found $(cat foretold/*.shard | wc -c)"
# ---- numbers that look like boxes or masks stay as they are, and it is said ----

"$PYTHON" - <<'PY'
import json
row = {"path": "img.png", "label": "a", "one": [1, 2, 3, 4], "some": [[1, 2, 3, 4]] * 2, "three": [1, 2, 3],
       "seg": [[1] * 16] * 16, "ids": [1, 2]}
open("numbers.jsonl", "w").write(json.dumps(row) + "\n")
from PIL import Image
Image.new("RGB", (30, 20)).save("img.png")
PY
run 0 "$PACK" images numbers.jsonl -o numbers --resize 24 --crop 16 -q \
	--field one:kind=tensor,dtype=f32,shape=4 --field some:kind=tensor,dtype=f32,shape=2x4 \
	--field three:kind=tensor,dtype=f32,shape=3 --field seg:kind=tensor,dtype=u8,shape=16x16 \
	--field ids:kind=ragged,dtype=i64,max=4
STAY="which stay as they are when the image is resized or cropped; if they are boxes, pack them with"
said_only "shardpack: warning: field one has rows of 4 numbers, $STAY --field one:kind=boxes,max=1
shardpack: warning: field some has rows of 4 numbers, $STAY --field some:kind=boxes,max=2
shardpack: warning: field seg has the image's height and width, and stays as it is when the image is resized or \
cropped; if it is a mask, pack it with --field seg:kind=mask"

# ---- keys within keys, as Hugging Face's column of objects; one that has the dot comes first ----

"$PYTHON" - <<'PY'
import json, os, shutil, tarfile
os.makedirs("nested")
images, notes = [], []
for i in range(3):
    shutil.copy("img/a/00.png", "nested/%d.png" % i)
    objects = {"bbox": [[1, 2, 8, 8]] * i, "deep": {"text": "t%d" % i}}
    row = {"path": "nested/%d.png" % i, "objects": objects, **({"objects.bbox": [[0, 0, 4, 4]]} if i == 2 else {})}
    with open("nested.jsonl", "a") as f:
        f.write(json.dumps(row) + "\n")
    with open("nested/%d.json" % i, "w") as f:
        json.dump(row, f)
    images.append({"id": i, "file_name": "nested/%d.png" % i})
    notes.append({"id": i, "image_id": i, "bbox": [1, 2, 8, 8], "objects": {"deep": {"number": i}},
                  **({"objects.deep.number": 9} if i == 2 else {})})
with open("nested.json", "w") as f:
    json.dump({"images": images, "annotations": notes}, f)
with tarfile.open("nested.tar", "w") as tar:
    for name in sorted(os.listdir("nested")):
        tar.add("nested/" + name, name)
PY
OBJECTS=(--resize 16 --crop 16 --no-label --order source -q)
BOX=kind=boxes,max=3,format=xywh TEXT=kind=text,max=4
run 0 "$PACK" images nested.jsonl -o nest.jsonl "${OBJECTS[@]}" --field b:$BOX,from=objects.bbox \
	--field t:$TEXT,from=objects.deep.text
run 0 "$PACK" images nested.tar -o nest.tar "${OBJECTS[@]}" --field b:$BOX,from=json:objects.bbox \
	--field t:$TEXT,from=json:objects.deep.text
run 0 "$PACK" images nested.json -o nest.coco "${OBJECTS[@]}" \
	--field n:kind=ragged,dtype=i64,max=1,from=objects.deep.number
"$PYTHON" - <<'PY'
import numpy, records
for name in "nest.jsonl", "nest.tar":
    got = records.read(name)
    assert got["b_length"][:, 0].tolist() == [0, 1, 1], (name, got["b_length"])
    assert (got["b"][1][0] != got["b"][2][0]).any(), name
    assert [bytes(t[:2]) for t in got["t"]] == [b"t0", b"t1", b"t2"], name
assert records.read("nest.coco")["n"][:, 0].tolist() == [0, 1, 9], records.read("nest.coco")["n"]
PY
echo "tables, files, archives; 5 fits; parts, options, orientations; keys within keys"
