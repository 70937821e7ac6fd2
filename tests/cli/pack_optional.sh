#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_optional.sh - fields that an input may lack: refused if all inputs lack them,
# counted if some do, or if all may lack them, for every kind of source; and fields that say the same
# in all records
# TAKES: 15
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
need_pillow
ARGS=(--resize 16 --crop 16) VERB=(images)

"$PYTHON" - <<'PY'
import json, os, tarfile
from PIL import Image
for folder in "img", "root/images/train", "root/labels/train", "root/mask", "one", "half", "none":
    os.makedirs(folder)
images, notes = [], []
for i in range(3):
    image = Image.new("RGB", (40, 30), (i * 50, 9, 9))
    for name in "img/%d.png", "root/images/train/%d.png", "one/%d.png", "half/%d.png", "none/%d.png":
        image.save(name % i)
    with open("root/labels/train/%d.txt" % i, "w") as f:
        f.write("0 0.5 0.5 0.25 0.5\n")
    images.append({"id": i, "file_name": "img/%d.png" % i})
    notes.append({"id": i, "image_id": i, "category_id": 1, "bbox": [1, 2, 3, 4]})
    for folder in "half", "none":
        with open("%s/%d.json" % (folder, i), "w") as f:
            json.dump({"caption": "c"} if folder == "half" and i == 1 else {"other": 1, "caption": None}, f)
Image.new("L", (40, 30), 3).save("root/mask/1.png")
with open("half/1.txt", "w") as f:
    f.write("text")
with open("none/1.text.txt", "w") as f:
    f.write("text")
for folder in "half", "none":
    with tarfile.open(folder + ".tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(os.listdir(folder)):
            tar.add(folder + "/" + name, name)
SHAPE = [[1, 1, 9, 1, 9, 9]]
for name, change in ("half", {"segmentation": SHAPE, "caption": "c"}), ("none", {}):
    with open(name + ".coco.json", "w") as f:
        json.dump({"images": images, "annotations": [notes[0], {**notes[1], **change}, notes[2]],
                   "categories": [{"id": 1, "name": "a"}]}, f)
    with open(name + ".captions.json", "w") as f:
        json.dump({"images": images, "annotations": [{"id": 1, "image_id": 1, **change}] if change else []}, f)
for name in "half", "none":
    with open(name + ".jsonl", "w") as f:
        for i in range(3):
            row = {"path": "img/%d.png" % i, "objects": {"bbox": []}, "empty": None}
            json.dump({**row, "caption": "c", "boxes": [[1, 2, 9, 9]]} if name == "half" and i == 1 else row, f)
            f.write("\n")
    with open(name + ".csv", "w") as f:
        f.write("path,caption,boxes\n")
        for i in range(3):
            f.write("img/%d.png,%s\n" % (i, 'c,"[[1,2,9,9]]"' if name == "half" and i == 1 else ","))
PY

# ---- a source that no input has is refused, when the plan is made, and nothing is written ----

no=("${ARGS[@]}") ARGS=("${no[@]}" --no-label)
nowhere() { # nowhere FIELD FROM OPTIONS WHERE SOURCE...
	local line="--field $1: from=$2: no input has it, so the field would be empty in all records; \
the first input: $4"
	local field=$1:$3,from=$2,optional
	shift 4
	refused 1 "$line" "$@" --field "$field"
	refused 1 "$line" "$@" --field "$field" --on-error skip
	run 1 "$PACK" plan images "$@" --field "$field" -o no "${ARGS[@]}"
	said_only "shardpack: $line"
	[ ! -e no ] || die "planned for nothing: $*"
	n=$((n + 1))
	accepted "${field%%:*}" --field "$field=all" "$@"
}

# With the word that the sentence names: the same schema, and all records are counted.
accepted() { # accepted FIELD ARGUMENT...
	local field=$1
	shift
	rm -rf all
	run 0 "$PACK" images "$@" -o all "${ARGS[@]}"
	said "shardpack: 3 of 3 records have no value for field $field: the first is $("$CAT" list all | cut -f 4 |
		sort | head -n 1)"
	! grep -q "warning: field" err || die "asked about what was said: $(cat err)"
	run 0 "$CAT" info -v all
	grep -q "^  field $field .* kind=.*,optional" out || die "$(cat out)"
	! grep -q "optional=" out || die "the recipe has it: $(cat out)"
	n=$((n + 1))
}
LEAVE="; correct from=, or leave the field out; if no input should have it, say optional=all"
YOLO=kind=boxes,max=8,format=yolo
nowhere b 'lables/{}.txt' $YOLO "root/lables/train/0.txt is not there$LEAVE" root/images --root root
nowhere b 'labels/{}.txt' $YOLO "root/labels/0.txt is not there, but labels/train/0.txt is; say \
from=labels/train/{}.txt" root/images/train --root root
nowhere m 'masks/{}.png' kind=mask "root/masks/0.png is not there$LEAVE" root/images/train --root root
THERE="the keys are 'path' 'objects' 'empty'"
nowhere c captoin kind=text,max=9 "./none.jsonl: line 1: no key is called captoin; $THERE$LEAVE" none.jsonl
nowhere b bbox kind=boxes,max=9 \
	"./none.jsonl: line 1: no key is called bbox; $THERE, and objects.bbox is there$LEAVE" none.jsonl
nowhere b objects.box kind=boxes,max=9 "./none.jsonl: line 1: no key is called objects.box; $THERE$LEAVE" \
	none.jsonl
nowhere c empty kind=text,max=9 "./none.jsonl: line 1: empty is null$LEAVE" none.jsonl
nowhere c caption kind=text,max=9 "./none.csv: line 2: column caption is empty$LEAVE" none.csv
nowhere b boxes kind=boxes,max=9 "./none.csv: line 2: column boxes is empty$LEAVE" none.csv
nowhere c json:captoin kind=text,max=9 "./half.tar: '0.json' at offset 512: no key is called captoin; the keys \
are 'other' 'caption'$LEAVE" half.tar
nowhere c json:caption kind=text,max=9 "./none.tar: '0.json' at offset 512: caption is null$LEAVE" none.tar
nowhere c json:objects.caption kind=text,max=9 "./none.tar: '0.json' at offset 512: no key is called \
objects.caption; the keys are 'other' 'caption'$LEAVE" none.tar
nowhere c text kind=text,max=9 "./half.tar: sample '0' has no .text; its members are .json .png$LEAVE" half.tar
nowhere m seg.png kind=mask "./half.tar: sample '0' has no .seg.png; its members are .json .png$LEAVE" half.tar
ARGS=("${no[@]}")
nowhere m segmentation kind=mask "./none.coco.json: image 0 has no annotation with a segmentation$LEAVE" \
	none.coco.json
nowhere c caption kind=text,max=9 "./none.captions.json: image 0 has no annotation with a caption$LEAVE" \
	none.captions.json
ARGS=("${no[@]}" --no-label)

# the same of numbers with a default
said_of_default() { # COLUMN WHY SOURCE
	run 1 "$PACK" images "$3" -o no "${ARGS[@]}" --columns "$1:u16:default=7"
	said "shardpack: --columns $1: no row has a value, so all would be packed as 7; the first row: $2; if that is \
right, say $1:u16:default=7:all"
	[ ! -e no ] || die "made for nothing: $1"
	rm -rf all
	run 0 "$PACK" images "$3" -o all "${ARGS[@]}" --columns "$1:u16:default=7:all"
	said "shardpack: ./$3: 3 empty cells in column $1: packed as 7"
	n=$((n + 2))
}
said_of_default size "./half.jsonl: line 1: no key is called size; $THERE" half.jsonl
said_of_default empty "./half.jsonl: line 1: empty is null" half.jsonl
said_of_default caption "./none.csv: line 2: column caption is empty" none.csv

# a column that a table does not have at all
COLUMNS="the columns are 'path' 'caption' 'boxes'"
refused 1 "./none.csv: line 1: no column is called area, which --field c needs; $COLUMNS; if no row should have it, say \
optional=all" none.csv --field c:kind=text,max=9,from=area,optional
accepted c none.csv --field c:kind=text,max=9,from=area,optional=all
refused 1 "./none.csv: line 1: no column is called area, which --columns needs; $COLUMNS; if no row should have it, say \
:all behind its default" none.csv --columns area:f32:default=7
run 0 "$PACK" images none.csv -o area "${ARGS[@]}" --columns area:f32:default=-1:all
said "shardpack: ./none.csv: 3 empty cells in column area: packed as -1"
refused 1 "./none.csv: line 1: no column is called area, which --columns needs; $COLUMNS" none.csv --columns area:f32

# the split with values and the one without have one schema and one recipe, so they are one dataset
for name in half none; do
	run 0 "$PACK" images $name.csv -o $name.ds "${ARGS[@]}" --field caption:kind=text,max=9,optional=all
done
run 0 "$PACK" merge half.ds none.ds -o both --duplicates keep
rm -rf half.ds none.ds

# other words
for word in ALL 1 '' none; do
	run 2 "$PACK" images none.csv -o no "${ARGS[@]}" --field "c:kind=text,max=9,optional=$word"
	said "shardpack: --field c:kind=text,max=9,optional=$word: optional=$word: must be optional, or optional=all if \
no input has a value"
	n=$((n + 1))
done
for column in default=:all default=7:al default=7all all default=7:all:all; do
	run 2 "$PACK" images none.csv -o no "${ARGS[@]}" --columns "size:u16:$column"
done
run 0 "$PACK" plan images none.csv -o planned "${ARGS[@]}" --field caption:kind=text,max=9,optional=all
run 0 "$PACK" build planned
grep -raq "from=caption,optional,max" planned/.shardpack || die "no plan"
! grep -raq "optional=" planned/.shardpack || die "a plan has the word"

# where every input is bad, nothing is known of the field
printf '{"path": "gone.png"}\n' >gone.jsonl
run 1 "$PACK" images gone.jsonl -o no "${ARGS[@]}" --field c:kind=text,max=9,optional
said_of_one "gone.jsonl: line 1: 'gone.png': No such file or directory"

# ---- a source that some inputs lack is counted, and the first of these is named ----

some() { # some FIELD FIRST ARGUMENT...: 2 of 3 records have none
	local field=$1 first=$2
	shift 2
	rm -rf ds shards
	run 0 "$PACK" images "$@" -o ds "${ARGS[@]}" --report r.json
	said "shardpack: 2 of 3 records have no value for field $field: the first is $first"
	json r.json 'd["field_values"]' >values
	grep -qF "{'field': '$field', 'records': 3, 'without_value': 2, 'first_without': '$first', 'least'" values ||
		die "$(cat values)"
	# the rule and the counts hold over all parts of a plan
	run 0 "$PACK" plan images "$@" -o shards "${ARGS[@]}" --shard-records 1 -q
	for part in 0 1 2; do run 0 "$PACK" build shards --part $part/3 -q; done
	run 0 "$PACK" seal shards --report r.html
	said "shardpack: 2 of 3 records have no value for field $field: the first is $first"
	grep -qF "<tr><td>$field</td><td class=\"n\">2</td><td class=\"n\">3</td><td>$first</td></tr>" r.html ||
		die "$(grep -A5 'Records without a value' r.html)"
	# what is made already does not say it
	run 0 "$PACK" images "$@" -o ds "${ARGS[@]}" --report r.json
	[ "$(json r.json 'd["field_values"]')" = None ] || die "counted: $(json r.json 'd["field_values"]')"
	n=$((n + 1))
}
rm root/labels/train/{0,2}.txt
some b images/train/0.png root/images --root root --field "b:$YOLO,from=labels/{}.txt,optional"
some m images/train/0.png root/images/train --root root --field 'm:kind=mask,from=mask/{}.png,optional'
some c img/0.png half.jsonl --field c:kind=text,max=9,from=caption,optional
some boxes img/0.png half.jsonl --field boxes:kind=boxes,max=9,optional
some caption img/0.png half.csv --field caption:kind=text,max=9,optional
some boxes img/0.png half.csv --field boxes:kind=boxes,max=9,optional
some c half.tar/0.png half.tar --field c:kind=text,max=9,from=json:caption,optional
some c half.tar/0.png half.tar --field c:kind=text,max=9,from=txt,optional
ARGS=("${no[@]}")
some m img/0.png half.coco.json --field m:kind=mask,optional
grep -q "half.coco.json: 2 of 3 annotations have no segmentation; field m leaves them out (the first is at byte" \
	<("$PACK" images half.coco.json -o other "${ARGS[@]}" --field m:kind=mask,optional 2>&1) ||
	die "annotations that are left out are not counted"
some c img/0.png half.captions.json --field c:kind=text,max=9,from=caption,optional
ARGS=("${no[@]}" --no-label)

# an input that is left out is not counted, and none that has a value says nothing
printf '{"path": "gone.png"}\n{"path": "img/0.png", "c": "x"}\n{"path": "img/1.png", "c": ""}\n' >left.jsonl
rm -rf ds
run 0 "$PACK" images left.jsonl -o ds "${ARGS[@]}" --field c:kind=text,max=9,optional --on-error skip
said "shardpack: 1 of 2 records has no value for field c: the first is img/1.png"
rm -rf ds
run 0 "$PACK" images half.jsonl -o ds "${ARGS[@]}" --field b:kind=boxes,max=9,from=objects.bbox,optional
! grep -q "no value" err || die "an empty list is a value: $(cat err)"

# ---- a field that says the same in all records ----

said "shardpack: warning: field b: is empty in all 3 records; does from=objects.bbox name what was meant?"
"$PYTHON" - <<'PY'
from PIL import Image
for i in 0, 2:
    Image.new("L", (40, 30), 3).save("root/mask/%d.png" % i)
PY
MASKED=(root/images/train --root root --field 'm:kind=mask,from=mask/{}.png')
rm -rf ds
run 0 "$PACK" images "${MASKED[@]}" -o ds "${ARGS[@]}"
said "shardpack: warning: field m: all pixels of its 3 masks are 3; does from=mask/{}.png name what was meant?"
"$PYTHON" -c 'from PIL import Image; Image.new("L", (40, 30), 4).save("root/mask/2.png")'
rm -rf ds
run 0 "$PACK" images "${MASKED[@]}" -o ds "${ARGS[@]}" # the good twin
! grep -q warning err || die "$(cat err)"
echo "$n sources that inputs lack"
