#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_coco.sh - JSON of COCO: boxes, classes, masks, captions and numbers against Python,
# in every layout of files; and what is refused
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
need_pillow
export PYTHONPATH=$ROOT/tests/cli:$ROOT/tests/twin

# coco/train2017/*, coco/annotations/instances.json and captions.json; want.npz has the images in
# their order
"$PYTHON" - <<'PY'
import json, os, random
import boxes, coco, numpy, pillow
from PIL import Image

F32, rng, MAX = numpy.float32, random.Random(17), 6
CATEGORIES = [(90, "tooth brush"), (1, "person"), (18, "d\u00f6g"), (3, "car")]
CLASS = {k: i for i, k in enumerate(sorted(k for k, _ in CATEGORIES))}
os.makedirs("coco/train2017/more"), os.makedirs("coco/annotations")
images, annotations, captions, want = [], [], [], {}
for i in range(14):
    w, h = rng.randint(20, 90), rng.randint(20, 90)
    name = f"{'more/' * (i % 3 == 0)}{i:012}.png"
    Image.frombytes("RGB", (w, h), rng.randbytes(3 * w * h)).save("coco/train2017/" + name)
    image = {"license": 3, "file_name": name, "coco_url": "http://x/\u00e9", "id": 5000 - 7 * i, "width": w, "height": h}
    if i == 5:
        del image["width"], image["height"]
    images.append(image)
    mine = []
    for k in range(i % (MAX + 1)):
        x, y = rng.uniform(-1, w - 2), rng.uniform(0, h - 2)
        mine.append({"segmentation": coco.random_object(rng, w, h), "area": round(rng.uniform(0, w * h), 4),
                     "iscrowd": k % 2, "image_id": image["id"], "category_id": rng.choice(CATEGORIES)[0],
                     "bbox": [x, y, rng.uniform(0, w - x), rng.randint(0, h)], "id": 100 * i + k})
    annotations += mine
    for k in range(i % 3):
        captions.append({"image_id": image["id"], "id": 10 * i + k, "caption": f"{k} \"of\" {i} \U0001f408"})
    rows = {"boxes": numpy.zeros((MAX, 4), F32), "classes": numpy.zeros(MAX, "i8"), "iscrowd": numpy.zeros(MAX, "u1"),
            "area": numpy.zeros(MAX, F32), "length": [len(mine)], "id": image["id"],
            "caption": f"0 \"of\" {i} \U0001f408" if i % 3 else ""}
    for k, a in enumerate(mine):
        box = numpy.array(a["bbox"], F32)
        box[2:] += box[:2]
        rows["boxes"][k] = boxes.moved(box, (w, h), 24, 16, boxes.SHORT, 0)
        rows["classes"][k], rows["iscrowd"][k], rows["area"][k] = CLASS[a["category_id"]], a["iscrowd"], a["area"]
    mask = coco.picture([(a["segmentation"], CLASS[a["category_id"]] + 1) for a in mine], w, h)
    mask = Image.fromarray(mask.astype("u1"))
    rows["mask"] = numpy.asarray(pillow.transform(mask, 24, 16, Image.NEAREST))
    for key, value in rows.items():
        want.setdefault(key, []).append(value)
# An annotation stands anywhere in the list, but those of one image in their order.
places = rng.sample(range(1000), len(annotations))
for image in images:
    mine = [k for k, a in enumerate(annotations) if a["image_id"] == image["id"]]
    for k, at in zip(mine, sorted(places[k] for k in mine)):
        places[k] = at
annotations = [a for _, a in sorted(zip(places, annotations), key=lambda p: p[0])]
categories = [{"supercategory": "x", "id": k, "name": n} for k, n in CATEGORIES]
info = {"info": {"year": 2017, "deep": [[[{}]]]}, "licenses": [{"id": 1}]}
with open("coco/annotations/instances.json", "w") as f:
    json.dump({**info, "images": images, "annotations": annotations, "categories": categories}, f)
with open("other.json", "w", encoding="utf-8-sig") as f:  # lists in another order, blanks, no escapes, a mark
    json.dump({"categories": categories, "annotations": annotations, "images": images}, f, indent=2, ensure_ascii=False)
with open("coco/annotations/captions.json", "w") as f:
    json.dump({**info, "images": images, "annotations": captions}, f)
numpy.savez("want.npz", **{k: numpy.array(v) for k, v in want.items()})
PY
check() { # check DS FIELD...: these fields are those of want.npz, there is no label, and classes have names
	"$PYTHON" -c 'import sys, numpy, records
got, want = records.read(sys.argv[1]), numpy.load("want.npz")
assert "label" not in got
for name in sys.argv[2:]:
    if name == "caption":
        texts = [bytes(t[:n]).decode() for t, (n,) in zip(got[name], got[name + "_length"])]
        assert texts == list(want[name]) and any(texts), texts
        continue
    assert want[name].any(), name
    records.same(got[name], want[name].astype({"id": "i8"}.get(name, want[name].dtype)), name)
    if name + "_length" in got:
        records.same(got[name + "_length"], want["length"].astype("u4"), name)' "$@"
	[ "$(sed -n 's/^class //p' "$1/dataset.manifest" | tr '\n' ,)" = "0 person,1 car,2 d%C3%B6g,3 tooth%20brush," ] ||
		die "classes of $1"
}

SIZE=(--resize 24 --crop 16) ARGS=(--resize 24 --crop 16 --order source -q)
BOXES=(--field boxes:kind=boxes,max=6 --field classes:kind=ragged,dtype=i64,max=6,from=category)
ALL=("${BOXES[@]}" --field mask:kind=mask --field iscrowd:kind=ragged,dtype=u8,max=6
	--field area:kind=ragged,dtype=f32,max=6 --field id:kind=tensor,dtype=i64,from=image_id)
NAMES=(boxes classes mask iscrowd area id)
JSON=coco/annotations/instances.json

# ---- the same records, wherever files lie and however the JSON is written ----

run 0 "$PACK" images $JSON --root coco/train2017 -o ds "${ARGS[@]}" "${ALL[@]}"
check ds "${NAMES[@]}"
run 0 "$CAT" verify ds -q
cp $JSON coco/train2017/here.json
run 0 "$PACK" images coco/train2017/here.json -o ds.here "${ARGS[@]}" "${ALL[@]}" --no-label
check ds.here "${NAMES[@]}"
run 0 "$PACK" images coco/train2017/here.json --root coco/train2017 -o ds.root "${ARGS[@]}" "${ALL[@]}"
same ds.here ds.root
packed=(gz)
! grep -q /unpack_archive.o "$BUILD/parts" || packed+=(bz2 xz)
for e in "${packed[@]}"; do
	"$PYTHON" -c 'import bz2, gzip, lzma, sys
pack = {"gz": gzip, "bz2": bz2, "xz": lzma}[sys.argv[1]].compress
open("coco/train2017/here.json." + sys.argv[1], "wb").write(pack(open("coco/train2017/here.json", "rb").read()))' "$e"
	run 0 "$PACK" images "coco/train2017/here.json.$e" -o "ds.$e" "${ARGS[@]}" "${ALL[@]}"
	check "ds.$e" "${NAMES[@]}"
done
run 0 "$PACK" images other.json --root coco/train2017 -o ds.other "${ARGS[@]}" "${ALL[@]}"
check ds.other boxes classes iscrowd area id mask
run 0 "$PACK" images $JSON --root coco/train2017 -o ds.boxes "${ARGS[@]}" "${BOXES[@]}"
check ds.boxes boxes classes
run 0 "$PACK" images coco/annotations/captions.json --root coco/train2017 -o ds.captions "${ARGS[@]}" \
	--field caption:kind=text,max=99,optional,pick=first
run 0 "$PACK" images coco/annotations/captions.json --root coco/train2017 -o ds.all "${ARGS[@]}" \
	--field caption:kind=text,max=40,optional,pick=all,count=2
run 1 "$PACK" images coco/annotations/captions.json --root coco/train2017 -o no "${ARGS[@]}" \
	--field caption:kind=text,max=99,optional
grep -qF "captions.json: has 2 texts called caption; say pick=first for its first text, pick=all,count=N" err ||
	die "several captions: $(cat err)"
rm -rf no
"$PYTHON" -c 'import numpy, records
got, want = records.read("ds.captions"), numpy.load("want.npz")
assert [bytes(t[:n]).decode() for t, (n,) in zip(got["caption"], got["caption_length"])] == list(want["caption"])
got = records.read("ds.all")
for i, (rows, (count,)) in enumerate(zip(got["caption"], got["caption_length"])):
    texts = [bytes(row).rstrip(b"\0").decode() for row in rows]
    assert texts == [f"{k} \"of\" {i} \U0001f408" for k in range(i % 3)] + [""] * (2 - i % 3), texts
    assert count == i % 3'
run 0 "$PACK" images $JSON --root coco/train2017 -o ds.wide "${ARGS[@]}" --field mask:kind=mask,dtype=u16,fill=9
"$PYTHON" -c 'import numpy, records
got, want = records.read("ds.wide")["mask"], numpy.load("want.npz")["mask"]
assert got.dtype == "u2" and (got == want).all()'

# ---- the same bytes, however they are made ----

SPLIT=("${SIZE[@]}" "${ALL[@]}" --shard-records 4 -q)
run 0 "$PACK" images $JSON --root coco/train2017 -o once "${SPLIT[@]}" -j 1
run 0 "$PACK" images $JSON --root coco/train2017 -o again "${SPLIT[@]}" -j 3
same once again
run 0 "$PACK" plan images $JSON --root coco/train2017 -o planned "${SPLIT[@]}"
for part in 2/3 0/3 1/3; do run 0 "$PACK" build planned --part $part -q; done
run 0 "$PACK" seal planned -q
same once planned
run 0 "$PACK" plan images $JSON --root coco/train2017 -o resumed "${SPLIT[@]}"
run 0 "$PACK" build resumed --part 1/4 -q
run 0 "$PACK" images $JSON --root coco/train2017 -o resumed "${SPLIT[@]}"
same once resumed
run 0 "$PACK" images $JSON --root coco/train2017 -o none "${SPLIT[@]}" --dry-run
[ ! -e none ] && grep -qF 'class 3 tooth brush' out || die "--dry-run"
for report in json html; do
	run 0 "$PACK" images $JSON --root coco/train2017 -o ds.$report "${SPLIT[@]}" --report r.$report
	grep -qF 'tooth brush' r.$report || die "--report"
done
# The JSON is a source like others: a change between plan and build is seen.
run 0 "$PACK" plan images $JSON --root coco/train2017 -o changed "${SPLIT[@]}"
cp -p $JSON kept.json && sed 's/"iscrowd": 1/"iscrowd": 0/' kept.json >$JSON
run 5 "$PACK" build changed -q
cp -p kept.json $JSON

# ---- orientation ----

"$PYTHON" - <<'PY'
import json
from PIL import Image
exif = Image.Exif()
exif[0x112] = 6
Image.new("RGB", (30, 20)).save("turned.jpg", exif=exif)
objects = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 15, 6], "segmentation": [[0, 0, 15, 0, 15, 6, 0, 6]]}
for name, (w, h) in (("lies", (30, 20)), ("stands", (20, 30))):
    json.dump({"images": [{"id": 1, "file_name": "turned.jpg", "width": w, "height": h}], "annotations": [objects],
               "categories": [{"id": 1, "name": "a"}]}, open(name + ".json", "w"))
PY
TURN=(--exif apply --resize 20 --crop 20 -q)
# corner WHERE: the mask's 1s and the box are in this corner of the record
corner() {
	"$PYTHON" -c 'import numpy, records, sys
got = records.read("turned")
ys, xs = numpy.nonzero(got["mask"][0])
box = got["boxes"][0][0].tolist()
assert [xs.min(), ys.min(), xs.max() + 1, ys.max() + 1] == box, (xs.min(), ys.min(), xs.max(), ys.max(), box)
assert (box[0] == 0) == (sys.argv[1] == "left"), box' "$1"
	rm -r turned
}
run 0 "$PACK" images lies.json -o turned "${TURN[@]}" --field boxes:kind=boxes,max=1,turn=image \
	--field mask:kind=mask,turn=image --fit stretch
corner right
run 0 "$PACK" images stands.json -o turned "${TURN[@]}" --field boxes:kind=boxes,max=1,turn=none \
	--field mask:kind=mask,turn=none --fit stretch
corner left
run 1 "$PACK" images lies.json -o no "${TURN[@]}" --field mask:kind=mask
grep -qF "has no orientation in EXIF or XMP, and its image has 6; with --exif apply, say turn=image" err || die "no word of turn="
run 1 "$PACK" images stands.json -o no "${TURN[@]}" --field boxes:kind=boxes,max=1,turn=image
grep -qF "field boxes: belongs to an image of 20 x 30, and its image has 30 x 20" err || die "$(cat err)"

# ---- what is refused ----

VERB=(images one.json) ARGS=("${SIZE[@]}" --field boxes:kind=boxes,max=2 --field mask:kind=mask)
cp coco/train2017/000000000001.png a.png
read -r W H < <("$PYTHON" -c 'from PIL import Image; print(*Image.open("a.png").size)')
IMAGE="{\"id\":1,\"file_name\":\"a.png\",\"width\":$W,\"height\":$H}"
NOTE='{"id":1,"image_id":1,"category_id":1,"bbox":[1,2,3,4],"segmentation":[[1,1,5,1,5,5]]}'
CATS='{"id":1,"name":"a"}'
# one IMAGES ANNOTATIONS CATEGORIES
one() { printf '{"images":[%s],"annotations":[%s],"categories":[%s]}' "$1" "$2" "$3" >one.json; }
one "$IMAGE" "$NOTE" "$CATS"
run 0 "$PACK" "${VERB[@]}" -o good "${ARGS[@]}" -q # what follows breaks one thing each
json_bad() { refused 1 "./one.json: $1"; }
at() { grep -obF -- "$1" one.json | head -n 1 | cut -d : -f 1; } # where it begins
odd() { # odd EDIT WHAT: the file with this edit
	one "$IMAGE" "$NOTE" "$CATS"
	sed -i "$1" one.json
	json_bad "$2"
}
# bad_image NAME WHAT: the file that is there has two images, of which this one is bad input
bad_image() {
	run 1 "$PACK" "${VERB[@]}" -o no "${ARGS[@]}"
	said "shardpack: warning: ./$1: $2"
	run 0 "$PACK" "${VERB[@]}" -o some "${ARGS[@]}" --on-error skip
	said "shardpack: 2 inputs = 1 written + 1 skipped + 0 quarantined + 0 failed"
	rm -rf some no
	n=$((n + 1))
}
SECOND='{"id":2,"file_name":"b.png"}'
cp a.png b.png
note() { # note EDIT WHAT: the annotation with this edit
	one "$IMAGE,$SECOND" "$(sed "$1" <<<"$NOTE")" "$CATS"
	bad_image a.png "one.json, annotation at byte $(at '{"id":1,"image_id"'): $2"
}
GOOD=$(wc -c <one.json) NOTE_AT=$(at '{"id":1,"image_id"')
HELP="; is it JSON of COCO, and complete?"
odd 's/}$//' "byte $((GOOD - 1)): the document ends within an array or object$HELP"
odd 's/$/x/' "byte $GOOD: something follows the end of the document$HELP"
odd 's/"images"/"pictures"/' "has no images; JSON must be that of COCO, and other lists of images .jsonl"
odd 's/"annotations"/"images"/' "has images twice"
odd 's/"annotations"/"notes"/' "has no annotations, and field boxes comes from them"
odd 's/{"images/[{"images/; s/$/]/' "is an array, such as the results of a detector; must be an object with images, \
annotations and categories, as COCO has it; if it is a table of paths and labels, make a .jsonl of it with jq -c '.[]'"
odd 's/"file_name":"a.png",//' "the image at byte 11 must have a file_name, a text of UTF-8"
odd 's/"a.png"/7/' "the image at byte 11 must have a file_name, a text of UTF-8"
odd 's/"id":1,"file_name"/"id":"1","file_name"/' "the image at byte 11 must have one id, a whole number"
odd 's/"width":[0-9]*,//' "the image at byte 11 must have both width and height, or none of them"
odd 's/"width":[0-9]*,/"width":0,/' "the image at byte 11 must have one width, a number of pixels"
odd 's/"image_id":1/"image_id":2/' \
	"the annotation at byte $NOTE_AT belongs to image 2, which is not among its images"
odd 's/"image_id":1,//' \
	"the annotation at byte $NOTE_AT must have one image_id, a whole number"
odd 's/"bbox"/"segments_info":[],"bbox"/' "is of panoptic segmentation, whose masks are PNG files; name them in a \
table, with --field NAME:kind=mask,dtype=u32"
one "$IMAGE,$IMAGE" "" "$CATS"
json_bad "two of its images have the id 1; an id must be that of one"
one "$IMAGE" "$NOTE,$NOTE" "$CATS"
json_bad "two of its annotations have the id 1; an id must be that of one"
one "$IMAGE" "$NOTE" "$CATS,{\"id\":1,\"name\":\"b\"}"
json_bad "two of its categories have the id 1; an id must be that of one"
one "$SECOND,{\"id\":3,\"file_name\":\"../a.png\"}" "" "$CATS"
bad_image one.json#2 "one.json: file_name '../a.png' must be a path below ."
NO_CATEGORY="category 7 is not among the categories; correct category_id, or add the category to the file"
WITH_MASK=("${ARGS[@]}") BOXES_ALONE=("${SIZE[@]}" --field boxes:kind=boxes,max=2)
note 's/"category_id":1,//' "has no category_id, a whole number"
for packed in boxes_alone nothing with_mask; do # ids are compared whatever is packed
	case $packed in
	with_mask) ARGS=("${WITH_MASK[@]}") ;;
	boxes_alone) ARGS=("${BOXES_ALONE[@]}") ;;
	nothing) ARGS=("${SIZE[@]}") ;;
	esac
	note 's/"category_id":1/"category_id":7/' "$NO_CATEGORY"
	note 's/"category_id":1/"category_id":"1"/' "category_id is \"1\", and must be a whole number"
	note 's/"category_id":1/"category_id":1.0/' "category_id is 1.0, and must be a whole number"
done
ARGS=("${BOXES_ALONE[@]}")
for edit in s/x/x/ 's/"category_id":1,//' 's/"category_id":1/"category_id":null/' \
	's/,"categories".*/}/; s/"category_id":1/"category_id":7/'; do # boxes need no category
	one "$IMAGE" "$NOTE" "$CATS"
	sed -i "$edit" one.json
	run 0 "$PACK" "${VERB[@]}" -o boxes "${ARGS[@]}" -q
	rm -r boxes
done
ARGS=("${WITH_MASK[@]}")
note 's/"bbox":[^]]*],//' "has no bbox, and field boxes comes from it"
note 's/"bbox"/"bbox":[],"bbox"/' "has bbox twice"
note 's/,"segmentation":.*/}/' "has no segmentation; with optional, field mask leaves it out"
note 's/"segmentation":.*/"segmentation":[ ]}/' "has no segmentation; with optional, field mask leaves it out"
one "$IMAGE,$SECOND" "${NOTE/3,4/3,-4}" "$CATS"
bad_image a.png "one.json: bbox, field boxes: box 0 is [1, 2, 3, -4] (x, y, width, height): its height is below 0"
one "$IMAGE,$SECOND" "${NOTE/3,4/3}" "$CATS"
bad_image a.png "one.json: bbox, field boxes: axis 1 has 3 elements; the field has 4"
one "$IMAGE,$SECOND" "$NOTE,${NOTE/1/2},${NOTE/1/3}" "$CATS"
bad_image a.png "one.json: bbox, field boxes: 3 of them; the limit is max=2, raise it"
one "${IMAGE/a.png/gone.png},$SECOND" "$NOTE" "$CATS"
bad_image gone.png "one.json: names this file, which does not exist; name the folder of its images with --root"
one "$SECOND,{\"id\":3,\"file_name\":\"/a.png\"}" "" "$CATS"
bad_image one.json#2 "one.json: file_name '/a.png' must be a path below ."
for bad in "[[1,1,5,1]]|outline 0 has 4 numbers; must be x and y of three points or more" \
	"{\"counts\":\"0\",\"size\":[1,1]}|its runs are of a picture of 1 x 1, and its image has $W x $H" \
	"{\"counts\":[1],\"size\":[$H,$W]}|its runs have 1 pixels, and $W x $H are $((W * H))"; do
	one "$IMAGE,$SECOND" "${NOTE/"[[1,1,5,1,5,5]]"/${bad%|*}}" "$CATS"
	bad_image a.png "field mask, segmentation at byte $(at "${bad%|*}") of one.json: ${bad#*|}"
done
one "${IMAGE/:$W,/:1$W,},$SECOND" "$NOTE" "$CATS"
bad_image a.png "field boxes: belongs to an image of 1$W x $H, and its image has $W x $H"
one "$IMAGE,$SECOND" "$NOTE" "$CATS"
run 0 "$PACK" "${VERB[@]}" -o both "${ARGS[@]}" # the good twin of all of these

# ---- the command line ----

one "$IMAGE" "$NOTE" "$CATS"
misused() { # misused WHAT ARGUMENT...
	local line=$1
	shift
	run 2 "$PACK" images one.json -o no "${SIZE[@]}" "$@"
	[ "$(head -n 1 err)" = "shardpack: $line" ] || die "expected: $line; $(cat err)"
	n=$((n + 1))
}
for option in --labels --label-regex --label-key --path-key --classes --columns; do
	misused "images of COCO have no label: leave $option out; their classes are a field, such as --field \
classes:kind=ragged,dtype=i64,max=100,from=category" $option a:u8
done
misused "--field b: from=coco:bbox: must be a key of the annotations, without coco:" \
	--field b:kind=boxes,max=2,from=coco:bbox
misused "--field b: from=area: of COCO, kind=boxes must come from bbox" --field b:kind=boxes,max=2,from=area
misused "--field b: bbox of COCO is format=xywh, in pixels; leave format and scale out" \
	--field b:kind=boxes,max=2,format=cxcywh
misused "--field b: from=bbox: numbers do not follow the image through resize and crop; boxes and masks do" \
	--field b:kind=ragged,dtype=f32,max=2x4,from=bbox
misused "--field b: kind=bytes is not in annotations of COCO" --field b:kind=bytes,max=2
misused "--field b: an image has any number of annotations, so kind must be ragged; kind=tensor is for \
from=image_id alone" \
	--field b:kind=tensor,dtype=i64
misused "./one.json: JSON of COCO must be the only input" a.png
run 0 "$PACK" images one.json -o plain "${SIZE[@]}"
said "shardpack: warning: ./one.json: its annotations are not packed; --field boxes:kind=boxes,max=100 packs boxes"

# ---- a plan that somebody changed ----

run 0 "$PACK" plan images one.json -o plan "${SIZE[@]}" "${ARGS[@]:4}" -q
replan s/x/x/ plan same.plan && run 0 "$PACK" build same.plan -q
for edit in "s/,[0-9]*,1\$/,99999,1/" "s/,1\$/,256/" "s/ ${W}x${H}@0,/ ${W}x${H}@1,/" "s/@0/@/" \
	"s/ ${W}x${H}=/ ${W}x0=/" \
	's/coco%3Asegmentation/segmentation/'; do
	rm -rf bent
	replan "$edit" plan bent
	run 1 "$PACK" build bent -q
	grep -q "this is not a plan that shardpack wrote" err || die "$edit: $(cat err)"
done
echo "$n refusals"
