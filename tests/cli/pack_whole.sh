#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_whole.sh - --fit area: whole images, each with a size of its own, are those of
# Pillow out of every source; threads, parts and plans; refusals; converters that are wrong
# TIMEOUT: 900
# TAKES: 30
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
need_pillow
pixels_of_pillow
export PYTHONPATH=$ROOT/tests/cli

# check DS: it holds the images of want.npz
check() {
	"$PYTHON" - "$1" <<'PY'
import sys, numpy, records
got, want = records.read(sys.argv[1]), numpy.load("want.npz")
assert list(got)[:4] == ["image", "image_length", "image_size", "label"], list(got)
for name in ("image", "image_length", "image_size"):
    records.same(got[name], want[name], f"{sys.argv[1]}, {name}")
PY
}

# ---- the pixels, of many shapes and kinds; images that are too long ----

n=0
for words in 40:bilinear 41:bicubic 17:lanczos 56:box 1:bilinear 3:bilinear; do
	IFS=: read -r side filter <<<"$words"
	rm -rf src ds
	"$PYTHON" "$ROOT/tests/cli/make_whole.py" "$side" "$filter"
	WHOLE=(--fit area --resize "$side" --filter "$filter" --exif apply --order source "${LIKE[@]}" -q)
	run 0 "$PACK" images src -o ds "${WHOLE[@]}" --on-error skip --report r.json
	check ds
	run 0 "$CAT" verify ds
	"$PYTHON" - <<'PY' || die "the report names other bad inputs: $(cat r.json)"
import json, numpy
d, bad = json.load(open("r.json")), list(numpy.load("want.npz")["bad"])
assert bad and [b["input"] for b in d["bad_inputs"]] == bad, bad
assert {b["reason"] for b in d["bad_inputs"]} == {"over a limit"}
assert d["recipe"]["fit"] == "area" and d["recipe"]["crop"] is None
PY
	n=$((n + 1))
done

rm -rf src one
"$PYTHON" "$ROOT/tests/cli/make_whole.py" 40 bilinear
WHOLE=(--fit area --resize 40 --exif apply "${LIKE[@]}" -q)
mkdir -p one/a
"$PYTHON" -c 'from PIL import Image
Image.new("RGB", (161, 1)).save("one/a/x.png")'
run 1 "$PACK" images one -o no "${WHOLE[@]}"
said "shardpack: warning: one/a/x.png: is 161 x 1 pixels: no whole image of this shape has at most 1600 pixels and \
sides of at most 160; crop it, or use another fit than area"
rm -rf no
"$PYTHON" -c 'import numpy
for name in numpy.load("want.npz")["bad"]:
    print("src/" + name)' | xargs rm

# Pixels of other Pillows are others, so what was compared above is these.
for pixels in rows-first pillow-12 pillow-13; do
	run 0 "$PACK" images src -o "$pixels" --fit area --resize 40 --pixels $pixels --order source -q
done
[ "$(for d in rows-first pillow-12 pillow-13; do "$CAT" get $d 6 --field image --raw | sha256sum; done | sort -u |
	wc -l)" -gt 1 ] || die "all Pillows give the same pixels"
# Recorded sums would count the zeros behind an image; stats reads the images themselves.
! grep "^stat moments" rows-first/dataset.manifest || die "moments of whole images"
run 0 "$CAT" stats rows-first
grep -q "^image, u8 (from the records)$" out || die "$(cat out)"
for c in 0 1 2; do
	[ "$(sed -n "s/ values.*//; s/^  channel $c//p" out | tr -d ' ,')" = "$("$PYTHON" -c 'import numpy
print(int(numpy.load("want.npz")["image_length"].sum()))')" ] || die "stats counts other values: $(cat out)"
done

# ---- sources ----

run 0 "$PACK" images src -o ds.folder "${WHOLE[@]}" --order source
check ds.folder
tar --sort=name -C src -cf images.tar a
(cd src && "$PYTHON" -c 'import glob, zipfile
with zipfile.ZipFile("../images.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for path in sorted(glob.glob("a/*")):
        z.write(path)')
{ echo path,label,boxes,second,age && find src -type f | sort | sed 's/.*/&,a,"[[-5,1,900,6],[1,2,2,3]]",&,7/'; } >t.csv
run 0 "$PACK" images images.tar -o ds.tar "${WHOLE[@]}" --order source
run 0 "$PACK" images images.zip -o ds.zip "${WHOLE[@]}" --order source
find src -type f | sort | "$PACK" images - --root src -o ds.list "${WHOLE[@]}" --order source
for source in tar zip list; do check ds.$source; done

# Fields beside whole images: boxes follow, other images are cropped as they say.
FIELDS=(--field boxes:kind=boxes,max=3,turn=none --columns age:u8 --accept eoi
	--field "second:kind=image,fit=short,resize=9,crop=8")
run 0 "$PACK" images t.csv -o ds.table "${WHOLE[@]}" --order source "${FIELDS[@]}"
check ds.table
run 0 "$PACK" images t.csv -o ds.cropped --exif apply "${LIKE[@]}" --resize 9 --crop 8 --order source -q
"$PYTHON" - <<'PY'
import glob, numpy, records
from PIL import Image
got, cropped = records.read("ds.table"), records.read("ds.cropped")
assert list(got)[4:] == ["boxes", "boxes_length", "second", "age", "damage"] or sorted(list(got)[4:]) == \
    ["age", "boxes", "boxes_length", "damage", "second"], list(got)
assert (got["second"] == cropped["image"]).all() and (got["age"] == 7).all() and not got["damage"].any()
assert (got["boxes_length"] == 2).all()
for path, (height, width), boxes in zip(sorted(glob.glob("src/a/*")), got["image_size"], got["boxes"], strict=True):
    image = Image.open(path)
    w, h = image.size[::-1] if image.getexif().get(0x112, 1) >= 5 else image.size
    ratio = numpy.array([width / w, height / h] * 2).astype("f4")
    most = numpy.array([width, height] * 2, "f4")
    for box, given in zip(boxes, ([-5, 1, 900, 6], [1, 2, 2, 3])):
        assert (box == numpy.clip(numpy.array(given, "f4") * ratio, 0, most)).all(), (path, box)
    assert not boxes[2].any()
PY

# ---- the same bytes, however they are made ----

SMALL=("${WHOLE[@]}" --shard-records 9 --seed 3)
run 0 "$PACK" images src -o j1 "${SMALL[@]}" -j 1
run 0 "$PACK" images src -o j8 "${SMALL[@]}" -j 8
same j1 j8
run 0 "$PACK" plan images src -o parts "${SMALL[@]}"
for part in 2/3 0/3 1/3; do run 0 "$PACK" build parts --part $part -q; done
run 0 "$PACK" seal parts -q
same j1 parts
run 0 "$PACK" plan images src -o resumed "${SMALL[@]}"
run 0 "$PACK" build resumed --part 1/4 -q
run 0 "$PACK" images src -o resumed "${SMALL[@]}"
same j1 resumed
run 0 "$PACK" images src -o replaced --resize 20 -q
run 0 "$PACK" images src -o replaced "${SMALL[@]}" --replace
same j1 replaced
run 0 "$PACK" images src -o packed "${SMALL[@]}" --compress lz4
"$PYTHON" -c 'import records
raw, packed = records.read("j1"), records.read("packed")
for name in raw:
    records.same(packed[name], raw[name], name)'

# ---- what people see ----

run 0 "$PACK" images src -o seen "${WHOLE[@]}" --order source --report seen.html
"$PYTHON" - "$CAT" <<'PY'
import io, re, subprocess, sys
import numpy
from PIL import Image
want = numpy.load("want.npz")
page = open("seen.html").read()
shown = re.findall('<img alt="record ([0-9]+)" title="[^"]*" width="([0-9]+)" height="([0-9]+)"', page)
assert len(shown) == 4, shown
for record, width, height in shown:
    h, w = map(int, want["image_size"][int(record)])
    step = -(-max(h, w) // 64)
    assert (int(width), int(height)) == (-(-w // step), -(-h // step)), (record, width, height)
for i in (0, 5, 13, 40):
    png = subprocess.run([sys.argv[1], "get", "seen", str(i), "--png"], capture_output=True, check=True).stdout
    got = numpy.asarray(Image.open(io.BytesIO(png)))
    h, w = want["image_size"][i]
    assert (got == want["image"][i][:h * w].reshape(h, w, 3)).all(), i
PY
# A sheet has them as it has the same pictures in records of their shape.
mkdir -p shape/a
"$PYTHON" -c 'import numpy
from PIL import Image
x = numpy.random.default_rng(2).integers(0, 256, (16, 64, 3), "u1")
Image.fromarray(x).save("shape/a/x.png")
numpy.save("image.npy", x[None])'
run 0 "$PACK" images shape -o ds.shape --fit area --resize 32 -q
run 0 "$PACK" array image.npy -o ds.array -q
run 0 "$CAT" show ds.shape --out shape.png
run 0 "$CAT" show ds.array --out array.png
"$PYTHON" -c 'import numpy
from PIL import Image
a, b = (numpy.asarray(Image.open(p))[100:228] for p in ("shape.png", "array.png"))
assert a.shape == b.shape and (a == b).all() and a.std() > 10, (a.shape, b.shape, a.std())'

# ---- the plan: its lines stay these ----

run 0 "$PACK" images src -o x --fit area --resize 40 --pixels rows-first --order source --shard-records 100 --dry-run -q
recipe="source images resize 40 fit area filter bilinear layout hwc compress none align 0 order source seed 0 "
recipe+="on-error fail shard-records 100 "
[ "$(sed '/^bytes-version/,$d' out | tr '\n' ' ')" = "$recipe" ] || die "the recipe: $(cat out)"
printed "record 4800 bytes image, 32 bytes image_length and image_size and label"
run 0 "$PACK" images src -o x --field image:fit=area,resize=40 --pixels rows-first --order source --shard-records 100 \
	--dry-run -q
[ "$(sed '/^bytes-version/,$d' out | tr '\n' ' ')" = "$recipe" ] || die "the recipe of --field: $(cat out)"
run 0 "$PACK" images src -o x --fit area --dry-run
printed "resize 256"
said "shardpack: no size was given: --resize 256"
run 0 "$PACK" plan images t.csv -o plan "${WHOLE[@]}" "${FIELDS[@]}"
for edit in s/x/x/ '/^fit/a crop 40' 's/^layout hwc/layout chw/' 's/^layout hwc/&\ndtype f16\nmean 0 0 0\nstd 1 1 1/' \
	's/^resize 40/resize 0/' 's/^field boxes \(.*\)2 /field boxes \15 /' \
	's/^field second .*/field image_size u32 tensor none none [] 0 0/'; do
	replan "$edit" plan "p$n"
	run "$([ "$edit" = s/x/x/ ]; echo $?)" "$PACK" build "p$n"
	[ "$edit" = s/x/x/ ] || grep -q "this is not a plan that shardpack wrote$\|both named 'image_size'" err ||
		die "$edit: $(cat err)"
	n=$((n + 1))
done

# ---- refusals ----

misused() { # MESSAGE ARGUMENT...
	local message=$1
	shift
	run 2 "$PACK" images t.csv -o no "$@"
	said "shardpack: $message"
	n=$((n + 1))
}
misused "--crop 20: --fit area keeps images whole; leave --crop out" --fit area --resize 40 --crop 20
misused "--crop 20: --fit area keeps images whole; leave --crop out" --fit area --crop 20
misused "--dtype f16: --fit area needs u8; let the trainer normalise" --fit area --resize 40 --dtype f16
misused "--layout chw: --fit area needs hwc; let the trainer make planes" --fit area --resize 40 --layout chw
misused "--field m: a mask has the one size of cropped images; with fit area leave it out" --fit area \
	--field m:kind=mask,from=second
misused "--field b: fit=area is for the field image alone; give another fit=, and resize=" --fit area \
	--field b:kind=image,from=second
misused "--field b: fit=area is for the field image alone; give another fit=, and resize=" \
	--field b:kind=image,fit=area,resize=20,from=second
for name in image_size image_length; do
	misused "--field $name: whole images (--fit area) have a field of that name; rename yours" --fit area \
		--field $name:kind=tensor,dtype=u8,from=age
done
many() { # COUNT: so many numbers
	seq -f 'n%.0f:u8' "$1" | paste -sd,
}
misused "--columns n21: more than the limit of 20 fields beside image and label; fields of lengths count too" \
	--fit area --columns "$(many 21)"
misused "--accept eoi adds a field damage, which makes more than the limit of 20 fields beside image and label; fields \
of lengths count too" --fit area --columns "$(many 20)" --accept eoi
run 1 "$PACK" images t.csv -o no --fit area --columns "$(many 20)"
grep -q "n1" err || die "20 columns are too many: $(cat err)"

# ---- converters that are wrong ----

same_as_pillow() {
	rm -rf ds
	run 0 "$PACK" images src -o ds "${WHOLE[@]}" --order source
	check ds
}
breaks=0
# finds FILE SED: with FILE edited so, the images are not those of Pillow; by the plain build
finds() {
	[ -z "${VARIANT-}" ] || return 0
	break_pack "$1" "$2"
	if (PACK=$PWD/broken && same_as_pillow) >found 2>&1; then
		[ "$2" = s/x/x/ ] || die "not found: $2"
	else
		[ "$2" != s/x/x/ ] || die "found where nothing is broken: $(cat found err)"
	fi
	breaks=$((breaks + 1))
}
finds transform_image.c s/x/x/
finds transform_image.c 's/s \* side <= (uint64_t)n \* n/s * side < (uint64_t)n * n/'
finds transform_image.c 's/ && side <= AREA_SIDE_MAX(n)//'
finds transform_image.c 's/define AREA_SIDE_MAX(n) (4/define AREA_SIDE_MAX(n) (3/'
finds transform_image.c 's/above = n + 1/above = n/'
finds transform_image.c 's/= t->opt.fit == FIT_AREA ? g.width : crop/= crop/'
finds transform_image.c 's/memset(t->resized + g.height \* row_bytes, 0, /memset(t->resized + g.height * row_bytes, 1, /'
finds converter.c 's/size\[0\] = g.height/size[0] = g.width/; s/size\[1\] = g.width/size[1] = g.height/'
finds converter.c 's/pixels = g.width \* g.height/pixels = t->crop * t->crop/'
echo "$n packs, plans and refusals; $((breaks > 0 ? breaks - 1 : 0)) broken converters found out"
