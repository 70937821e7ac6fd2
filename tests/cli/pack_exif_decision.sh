#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_exif_decision.sh - beside an image that lies on its side, somebody has to say with
# --exif what boxes and masks were made for: asked early, only where it matters, and nothing is lost
# TAKES: 8
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
need_pillow

"$PYTHON" - <<'PY'
import csv
import json
import numpy as np
from PIL import Image

rng = np.random.default_rng(3)
turned = Image.Exif()
turned[0x112] = 3
for name, exif in (("up", None), ("turned", turned)):
    Image.fromarray(rng.integers(0, 256, (8, 8, 3), np.uint8)).save(f"{name}.png", exif=exif)
Image.new("L", (8, 8), 1).save("mask.png")
box = [[1, 1, 5, 5]]
columns = {"path": None, "label": 0, "boxes": box, "none": [], "mask": "mask.png", "twin": "turned.png"}
def table(name, paths, **others):
    with open(name, "w", newline="") as f:
        csv.writer(f).writerows([list(columns)] + [[p, *list({**columns, **others}.values())[1:]] for p in paths])
table("up.csv", ["up.png"] * 3)
table("turned.csv", ["up.png", "turned.png", "up.png"])
table("nothing.csv", ["up.png", "turned.png", "up.png"], boxes=[], mask="")
# Of 2,000 inputs in this order, each second one is looked at.
table("late.csv", ["up.png"] * 1999 + ["turned.png"])
table("seen.csv", ["up.png"] * 1998 + ["turned.png", "up.png"])
for name, boxes in (("coco.json", [1]), ("coco_none.json", [0])):
    with open(name, "w") as f:
        json.dump({"images": [{"id": i, "file_name": n, "width": 8, "height": 8}
                              for i, n in enumerate(("up.png", "turned.png"))],
                   "annotations": [{"id": i, "image_id": i, "category_id": 1, "bbox": [1, 1, 4, 4], "area": 16,
                                    "iscrowd": 0, "segmentation": [[1, 1, 5, 1, 5, 5]]} for i in boxes],
                   "categories": [{"id": 1, "name": "cat"}]}, f)
PY
SIZE=(--crop 8 --order source -q)
STATES="states in EXIF or XMP that it is to be turned, and the field"
EARLY="type --exif ignore if the field was made for the pixels as they lie in the file, or --exif apply to turn both"
LATE="repeat the command that made the plan, with --exif ignore if the field was made for the pixels as they lie in \
the file (finished shards are kept), or with --exif apply to turn both (all shards are made again)"

# ---- which records it matters for: TABLE, FIELD that is named or -, options ----

n=0
while read -r table names options; do
	for sandbox in "" --sandbox; do
		rm -rf ds
		# shellcheck disable=SC2086 # words
		{
			command=(images "$table" -o ds "${SIZE[@]}" $sandbox $options)
			if [ "$names" = - ]; then
				run 0 "$PACK" "${command[@]}"
			else
				for how in --dry-run --read-back=yes; do
					run 2 "$PACK" "${command[@]}" $how
					said_only "shardpack: ./turned.png: $STATES $names belongs to its pixels; $EARLY"
					[ ! -e ds ] || die "a refusal left $(find ds)"
				done
				run 2 "$PACK" plan "${command[@]}"
				[ ! -e ds ] || die "a refused plan left $(find ds)"
				run 0 "$PACK" "${command[@]}" --exif ignore
			fi
		}
		n=$((n + 1))
	done
done <<'ROWS'
turned.csv boxes --field boxes:kind=boxes,max=2
turned.csv mask --field mask:kind=mask
turned.csv mask --field none:kind=boxes,max=2 --field mask:kind=mask --field boxes:kind=boxes,max=2
seen.csv boxes --field boxes:kind=boxes,max=2
coco.json boxes --field boxes:kind=boxes,max=2
coco.json mask --field mask:kind=mask,from=segmentation
up.csv - --field boxes:kind=boxes,max=2 --field mask:kind=mask
up.csv - --field boxes:kind=boxes,max=2 --field twin:kind=image,crop=8
turned.csv - --field none:kind=boxes,max=2
turned.csv - --field twin:kind=image,crop=8
coco_none.json - --field boxes:kind=boxes,max=2
coco_none.json - --field mask:kind=mask,from=segmentation
ROWS
[ "$n" = 24 ] || die "$n rows"
run 0 "$PACK" images nothing.csv -o nothing "${SIZE[@]}" --exif ignore --field boxes:kind=boxes,max=2

# ---- what was typed once is known ----

BOXES=("${SIZE[@]}" --field boxes:kind=boxes,max=2)
run 0 "$PACK" images turned.csv -o ds "${BOXES[@]}" --exif ignore --replace
run 0 "$PACK" images turned.csv -o ds "${BOXES[@]}"
run 0 "$PACK" plan images turned.csv -o planned "${BOXES[@]}" --exif ignore
run 0 "$PACK" images turned.csv -o planned "${BOXES[@]}"
same planned ds

# ---- an image that no look has found: finished shards are kept ----

cut=(--shard-records 400)
run 2 "$PACK" images late.csv -o late "${BOXES[@]}" "${cut[@]}" -j1
said_only "shardpack: ./turned.png: $STATES boxes belongs to its pixels; $LATE"
stat -c '%n %i %Y' late/*.shard >before
[ "$(wc -l <before)" -ge 1 ] || die "no shard was finished: $(ls late)"
# Who builds a plan cannot type it; the plan, and so each byte, is the same with and without it.
run 0 "$PACK" plan images late.csv -o decided "${BOXES[@]}" "${cut[@]}"
run 2 "$PACK" build decided -j1
said "shardpack: $PWD/turned.png: $STATES boxes belongs to its pixels; $LATE"
cp decided/.shardpack/plan undecided.plan
run 0 "$PACK" plan images late.csv -o decided "${BOXES[@]}" "${cut[@]}" --exif ignore
cmp decided/.shardpack/plan undecided.plan
run 0 "$PACK" build decided -q
run 0 "$PACK" seal decided -q
run 0 "$PACK" images late.csv -o late "${BOXES[@]}" "${cut[@]}" --exif ignore
stat -c '%n %i %Y' late/*.shard | grep -cxFf before | grep -qx "$(wc -l <before)" || die "a finished shard was made again"
same late decided
