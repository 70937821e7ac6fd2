#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_fit.sh - images that are enlarged or get a border, and boxes of which the crop
# leaves nothing or next to nothing, are counted: by each verb, however the work is shared out
# Values that are NaN or infinite are counted likewise.
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
need_pillow

"$PYTHON" - <<'PY'
import json
from PIL import Image
# In a record of --resize 32 --crop 32: 64 x 32 loses 16 columns at each side.
rows = [("wide.png", (64, 32), [[0, 0, 16, 9], [8, 0, 16.5, 9], [20, 2, 30, 8], [5, 5, 5, 9]]),
        ("small.png", (10, 20), [[0, 0, 10, 20]]), ("even.png", (32, 32), []),
        ("large.png", (320, 320), [[0, 0, 9, 100], [0, 0, 10, 10]])]
with open("boxes.jsonl", "w") as f:
    for name, size, boxes in rows:
        Image.new("RGB", size).save(name)
        f.write(json.dumps({"path": name, "boxes": boxes}) + "\n")
PY
ARGS=(images boxes.jsonl --no-label --resize 32 --crop 32 --field boxes:kind=boxes,max=4 --shard-records 1)
counts() { # counts REPORT IMAGES ENLARGED PADDED BOXES EMPTY NARROW UNKNOWN
	local got
	got=$(json "$1" '" ".join(str(n) for n in d["fit"].values())')
	[ "$got" = "${*:2}" ] || die "$1: $got, not ${*:2}"
}
boxes="2 of 7 boxes have no area in their records, because they lie outside of the image or of the crop, or had \
none; 2 more are less than a pixel wide or high"

run 0 "$PACK" "${ARGS[@]}" -o one -j 1 --report one.json
said "shardpack: 1 of 4 images was enlarged: smaller than --resize 32"
said "shardpack: $boxes"
counts one.json 4 1 0 7 2 2 0
run 0 "$PACK" "${ARGS[@]}" -o three -j 3 --report three.json
counts three.json 4 1 0 7 2 2 0
same one three

# parts, and a run that continues
run 0 "$PACK" plan "${ARGS[@]}" -o parts
run 0 "$PACK" build parts --part 0/2 --report part.json
cp -r parts resumed
run 0 "$PACK" build parts --part 1/2
run 0 "$PACK" seal parts --report parts.json
said "shardpack: $boxes"
counts parts.json 4 1 0 7 2 2 0
run 0 "$PACK" "${ARGS[@]}" -o resumed --report resumed.json
counts resumed.json 4 1 0 7 2 2 0
same one resumed

# a build that lost a receipt, or finds a dataset, does not know
run 0 "$PACK" plan "${ARGS[@]}" -o lost
run 0 "$PACK" build lost
for shard in 0 1 2 3; do
	! receipt lost $shard | grep -q '^fit 1 [01] 0 [1-9]' || { lose_receipt lost $shard && break; }
done
run 0 "$PACK" seal lost --report lost.json
[ "$(json lost.json 'd["fit"]["images"], d["fit"]["records_not_counted"]')" = "(3, 1)" ] || die "$(grep fit lost.json)"
said "shardpack: 1 record of shards that were there before is not among these"
run 0 "$PACK" "${ARGS[@]}" -o one --report again.json
counts again.json 0 0 0 0 0 0 4

# a border of zeros: counted always, and said where nobody asked for it
run 0 "$PACK" images wide.png small.png even.png large.png -o border --no-label --crop 32 --report border.html
said "shardpack: 1 of 4 images has a border of zeros: smaller than --crop 32"
grep -q '<td>of these with a border of zeros</td><td class="n">1</td>' border.html || die "the page does not say it"
run 0 "$PACK" images wide.png small.png even.png large.png -o pad --no-label --resize 32 --fit pad --report pad.json
! grep -q border err || die "that is what --fit pad is for: $(cat err)"
counts pad.json 4 1 2 0 0 0 0

# negative control: boxes that are counted where they lie in the image
break_pack converter.c 's/^\tboxes_move(.*$//'
run 0 ./broken "${ARGS[@]}" -o broken.ds --report broken.json
[ "$(json broken.json 'd["fit"]["boxes_without_area"]')" = 1 ] || die "the control counts boxes of records"

# Values that are NaN or infinite are counted likewise: of each source. cat_not_finite.sh has the rest.
"$PYTHON" - <<'PY'
import struct
infinite, nan = float("inf"), float("nan")
rows = [[1.5, 2, nan, 3], [infinite, -infinite, 0, 65504], [nan, nan, 1, 1]] + [[0.0] * 4] * 7
for name, code in (("half", "e"), ("single", "f"), ("double", "d")):
    with open(name, "wb") as f:
        f.write(b"".join(struct.pack(f"<4{code}", *row) for row in rows))
with open("bfloat", "wb") as f:  # the upper halves of f32
    f.write(b"".join(struct.pack("<f", v)[2:] for row in rows for v in row))
with open("nan.csv", "w") as f:
    f.write("path,v\nwide.png,nan\nsmall.png,-inf\neven.png,1\n")
PY
FOUND="has 3 NaN and 2 infinite values; they are stored as they are"
floats() { # floats REPORT FIELD NAN INFINITE UNKNOWN
	local got
	got=$(json "$1" '(*(tuple(f.values()) for f in d["not_finite"]["fields"]),
		d["not_finite"]["records_not_counted"])')
	[ "$got" = "(('$2', $3, $4), $5)" ] || die "$1: $got"
}
for row in half:f16 bfloat:bf16 single:f32 double:f64; do
	name=${row%:*}
	run 0 "$PACK" raw "$name" --schema "x:${row#*:}[2],y:${row#*:}[2]" -o "raw.$name" --report raw.json
	said "shardpack: warning: field x has 2 NaN and 2 infinite values; they are stored as they are"
	said "shardpack: warning: field y has 1 NaN and 0 infinite values; they are stored as they are"
done
run 0 "$PACK" images nan.csv --no-label --resize 32 --crop 32 --columns v:f32 -o columns --report columns.json
said "shardpack: warning: field v has 1 NaN and 1 infinite values; they are stored as they are"
floats columns.json v 1 1 0
RAW=(raw single --schema "x:f32[4]" --shard-records 4)
run 0 "$PACK" "${RAW[@]}" -o floats --report floats.json
said "shardpack: warning: field x $FOUND"
floats floats.json x 3 2 0
run 0 "$PACK" "${RAW[@]}" -o page --report floats.html
grep -q "Field x has 3 NaN and 2 infinite values" floats.html || die "the HTML report does not say it"
run 0 "$PACK" plan "${RAW[@]}" -o apart
for part in 1/3 0/3 2/3; do run 0 "$PACK" build apart --part $part; done
run 0 "$PACK" seal apart --report apart.json
said "shardpack: warning: field x $FOUND"
floats apart.json x 3 2 0
same floats apart
run 0 "$PACK" plan "${RAW[@]}" -o forgot
run 0 "$PACK" build forgot
lose_receipt forgot 1
run 0 "$PACK" seal forgot --report forgot.json
said "shardpack: 4 records of shards that were there before are not looked through for NaN and infinite values; \
\`shardcat stats\` counts them"
floats forgot.json x 3 2 4
for ds in floats apart page forgot; do
	run 0 "$CAT" info $ds
	printed "NaN, inf  3 NaN and 2 infinite values in x"
done
run 0 "$CAT" info one # its boxes are f32
grep -q "^NaN, inf  none is recorded in 4 of 4 shards" out || die "$(cat out)"
run 0 "$CAT" stats floats
grep -q "3 NaN  2 infinite$" out || die "$(cat out)"
run 0 "$PACK" raw single --schema "x:u32[4]" -o integers --report integers.json
[ "$(json integers.json 'd["not_finite"]["fields"]')" = "[]" ] || die "integers are not finite"
echo "4 images, 7 boxes; by -j, parts, resume and a lost receipt; values of 4 dtypes"
