#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_scale.sh - decode-scale: the pixels of Pillow's draft() and resize(box=), of
# libjpeg's own scales; what it leaves as it is: masks, boxes, limits, other formats; refusals
# TAKES: 25
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
need_pillow
pixels_of_pillow
export PYTHONPATH=$ROOT/tests/cli:$ROOT/tests/twin DUMP=$BUILD/tests/pack/dump_jpeg_warnings

# Sides that 8, 4 and 2 divide and that they do not, all samplings, colours and codings, all
# orientations; and what is no JPEG.
"$PYTHON" - <<'PY'
import os, random
from PIL import Image
from pillow import photo_like
rng = random.Random(11)
os.makedirs("src/a")
sizes = [(320, 240), (320, 243), (317, 240), (321, 255), (256, 256), (163, 97), (97, 163), (161, 161), (80, 81),
         (40, 40), (41, 39), (39, 500), (500, 81), (33, 20), (640, 480), (327, 649)]
for i, (w, h) in enumerate(sizes):
    image = photo_like(rng, w, h)
    exif = Image.Exif()
    exif[0x0112] = i % 8 + 1
    image = image.convert("L") if i % 5 == 4 else image.convert("CMYK") if i % 7 == 6 else image
    image.save(f"src/a/{i:02}.jpg", quality=85, subsampling=i % 3, progressive=i % 4 == 3, exif=exif)
for i, kind in enumerate(["png", "webp", "bmp", "ppm"]):
    photo_like(rng, 333, 251).save(f"src/a/{90 + i}.{kind}", **({"lossless": True} if kind == "webp" else {}))
for o in range(1, 9):       # the partly filled column and row at every edge
    exif[0x0112] = o
    photo_like(rng, 253, 187).save(f"src/a/{20 + o}.jpg", exif=exif)
PY

cat >twin.py <<'PY'
"""twin.py DS SCALE FIT RESIZE CROP FILTER EXIF: is it what Pillow makes of src?

Prints how many images had which scale.
"""
import collections, glob, os, subprocess, sys
import numpy as np
from PIL import Image, ImageOps
import records
from pillow import center_crop
ds, asked, fit, n, crop, name, exif = sys.argv[1:]
n, crop, how = int(n), int(crop), getattr(Image, name.upper())

def target(w, h):
    short, long = min(w, h), max(w, h)
    if fit == "pad":
        a, b = max(round(short / long * n), 1), n
    else:
        a, b = {"short": (n, int(n * long / short)), "long": (max(int(n * short / long), 1), n), "stretch": (n, n)}[fit]
    return (a, b) if w <= h else (b, a)

def libjpeg(path, scale):
    """djpeg's pixels, which draft() cannot be asked for."""
    dump = [os.environ["DUMP"], str(scale)]
    out = subprocess.run(dump, input=path.encode() + b"\n", capture_output=True, check=True).stdout
    size, samples = out.split(b"\n", 2)[1:]
    return Image.frombytes("RGB", tuple(map(int, size.split())), samples)

def expect(path):
    image = Image.open(path)
    w, h = image.size
    o = image.getexif().get(0x112, 1) if exif == "apply" else 1
    upright = (h, w) if o >= 5 else (w, h)
    size = target(*upright)
    file_size = size[::-1] if o >= 5 else size
    scale = 1
    if image.format == "JPEG" and asked == "auto":
        image.draft(None, file_size)
        scale = next(s for s in (1, 2, 4, 8) if image.size == (-(-w // s), -(-h // s)))
        scales[scale] += 1
    elif image.format == "JPEG":
        scale = int(asked)
        if w < file_size[0] * scale or h < file_size[1] * scale:
            return None
        cmyk, image = image.mode == "CMYK", image
        if cmyk:
            image.draft(None, (w // scale, h // scale))
            assert image.size == (-(-w // scale), -(-h // scale)), "choose another size for CMYK"
        else:
            image = libjpeg(path, scale)
        scales[scale] += 1
    image = image.convert("RGB")
    transposed = {2: Image.FLIP_LEFT_RIGHT, 3: Image.ROTATE_180, 4: Image.FLIP_TOP_BOTTOM, 5: Image.TRANSPOSE,
                  6: Image.ROTATE_270, 7: Image.TRANSVERSE, 8: Image.ROTATE_90}.get(o)
    image = image if transposed is None else image.transpose(transposed)
    bw, bh = upright[0] / scale, upright[1] / scale
    left = image.width - bw if o in (2, 3, 6, 7) else 0      # where the last column of the file is now the first
    top = image.height - bh if o in (3, 4, 7, 8) else 0
    image = image.resize(size, how, box=(left, top, left + bw, top + bh))
    if fit != "pad":
        return center_crop(image, crop)
    out = Image.new("RGB", (n, n))
    out.paste(image, (round((n - size[0]) / 2), round((n - size[1]) / 2)))
    return out

scales = collections.Counter()
images, i = records.read(ds)["image"], 0
for path in sorted(glob.glob("src/a/*")):
    want = expect(path)
    if want is not None:
        assert (images[i] == np.asarray(want)).all(), (path, Image.open(path).size)
        i += 1
assert i == len(images), (i, len(images))
print(dict(sorted(scales.items())))
PY

threads=
same_as_pillow() { # SCALE FIT RESIZE CROP FILTER EXIF; by $threads threads
	local crop=(--crop "$4")
	[ "$2" != pad ] || crop=()
	rm -rf ds
	run 0 "$PACK" images src -o ds "${LIKE[@]}" --order source \
		--fit "$2" --resize "$3" "${crop[@]}" --filter "$5" --exif "$6" \
		--field "image:decode-scale=$1" --on-error skip --report r.json -q ${threads:+-j "$threads"}
	"$PYTHON" twin.py ds "$@" >scales || die "not as Pillow: $*"
	[ "$(json r.json 'd["recipe"]["decode_scale"]')" = "$1" ] || die "the report says nothing of decode-scale"
	echo "$*: $(cat scales)"
	n=$((n + 1))
}
same_as_pillow auto short 40 40 bilinear ignore
[ "$(cat scales)" = "{1: 4, 2: 4, 4: 14, 8: 2}" ] || die "not all scales are tried: $(cat scales)"
while read -r words; do
	# shellcheck disable=SC2086
	same_as_pillow $words
done <<'END'
auto short 40 40 bilinear apply
auto short 23 20 bicubic apply
auto short 11 11 lanczos ignore
auto long 40 31 box apply
auto stretch 31 30 bilinear apply
auto pad 37 37 lanczos apply
2 short 40 33 bilinear ignore
2 stretch 40 40 bicubic apply
4 long 40 40 lanczos apply
4 short 20 20 bilinear apply
8 short 20 20 bilinear ignore
8 pad 19 19 box apply
END

# ---- what does not change: masks and boxes, other formats, limits ----

mkdir -p fields/masks
"$PYTHON" - <<'PY'
import json, os, random, shutil
import numpy as np
from PIL import Image
rng = random.Random(4)
rows = ["path,label,mask,boxes,right"]
for i, name in enumerate(sorted(os.listdir("src/a"))):
    shutil.copy("src/a/" + name, "fields/" + name)
    image = Image.open("src/a/" + name)
    w, h = image.size
    if image.getexif().get(0x112, 1) >= 5:
        w, h = h, w
    Image.fromarray(np.random.default_rng(i).integers(0, 256, (h, w), np.uint8)).save(f"fields/masks/{i}.png")
    boxes = [sorted(rng.uniform(0, w) for _ in range(2)) + sorted(rng.uniform(0, h) for _ in range(2))
             for _ in range(3)]
    boxes = [[a, c, b, d] for a, b, c, d in boxes]
    rows.append(f'{name},0,masks/{i}.png,"{json.dumps(boxes)}",{name}')
open("fields/t.csv", "w").write("\n".join(rows) + "\n")
PY
FIELDS=(--field mask:kind=mask,turn=none --field boxes:kind=boxes,max=4,turn=none --exif apply --resize 40 --crop 33
	--order source -q)
run 0 "$PACK" images fields/t.csv -o whole "${FIELDS[@]}" --field right:kind=image,resize=20,crop=20
run 0 "$PACK" images fields/t.csv -o auto "${FIELDS[@]}" --field image:decode-scale=auto \
	--field right:kind=image,resize=20,crop=20,decode-scale=1
run 0 "$PACK" images fields/t.csv -o both "${FIELDS[@]}" --field image:decode-scale=auto \
	--field right:kind=image,resize=20,crop=20
run 0 "$PACK" images fields/t.csv -o right "${FIELDS[@]}" --field right:kind=image,resize=20,crop=20,decode-scale=auto
"$PYTHON" - <<'PY'
import records
whole, auto, both, right = (records.read(d) for d in ("whole", "auto", "both", "right"))
for name in ("mask", "boxes", "boxes_length", "label"):
    for other in (auto, both, right):
        assert (whole[name] == other[name]).all(), name
changed = lambda a, b, name: [i for i in range(len(a[name])) if (a[name][i] != b[name][i]).any()]
for a, b, name in ((whole, right, "image"), (auto, both, "image"), (whole, auto, "right"), (both, right, "right")):
    assert changed(a, b, name) == [], name
assert 15 < len(changed(whole, auto, "image")) < 28 and 15 < len(changed(whole, right, "right")) <= 24
assert not any(i >= 24 for i in changed(whole, auto, "image")), "other formats are decoded whole"
PY
# A mask has the size of the file, not of what was decoded.
"$PYTHON" -c 'from PIL import Image
Image.new("RGB", (321, 255), (1, 2, 3)).save("fields/x.jpg")
Image.new("L", (81, 64)).save("fields/x.png")
Image.new("L", (321, 255)).save("fields/y.png")'
for mask in x y; do
	printf 'path,label,mask\nx.jpg,0,%s.png\n' $mask >fields/one.csv
	code=$([ $mask = y ]; echo $?)
	run "$code" "$PACK" images fields/one.csv -o one --field mask:kind=mask --resize 32 --crop 32 \
		--field image:decode-scale=4 -q
	[ $code = 0 ] || said "shardpack: warning: fields/x.jpg: field mask, x.png: a mask of 81 x 64, \
and its image has 321 x 255; they must be of one size"
done
mkdir -p one.src/a && cp fields/x.jpg one.src/a
run 0 "$PACK" images one.src -o yes --resize 20 --field image:decode-scale=auto --limit pixels=80K -q
run 1 "$PACK" images one.src -o no --resize 20 --field image:decode-scale=auto --limit pixels=20K -q
said "shardpack: warning: one.src/a/x.jpg: is 321 x 255 = 81855 pixels: more than the limit of 20480; \
--limit pixels=81855 takes it"

# ---- where it would make images larger ----

larger() { # SCALE RESIZE MESSAGE: at RESIZE it is refused, and at one less it is not
	rm -rf no yes
	run 1 "$PACK" images one.src -o no --resize "$2" --field "image:decode-scale=$1" -q
	said "shardpack: warning: one.src/a/x.jpg: is 321 x 255 pixels: \
decode-scale=$1 leaves $3 that it is resized to; decode-scale=auto takes it"
	run 0 "$PACK" images one.src -o yes --resize $(($2 - 1)) --field "image:decode-scale=$1" -q
	run 0 "$PACK" images one.src -o no --resize "$2" --field image:decode-scale=auto -q
	n=$((n + 1))
}
larger 2 128 "160.5 x 127.5, less than the 161 x 128"
larger 4 64 "80.25 x 63.75, less than the 80 x 64"
larger 8 32 "40.125 x 31.875, less than the 40 x 32"
rm -rf no
run 0 "$PACK" images src -o no --resize 100 --field image:decode-scale=4 --on-error skip --report r.json -q
[ "$(json r.json '{b["reason"] for b in d["bad_inputs"]}')" = "{'unsupported'}" ] &&
	[ "$(json r.json 'd["skipped"]')" -gt 9 ] || die "$(cat r.json)"

# ---- plans, threads, parts; usage ----

ARGS=(--resize 40 --crop 33 --shard-records 7 -q --field image:decode-scale=auto)
run 0 "$PACK" images src -o j1 "${ARGS[@]}" -j 1
run 0 "$PACK" images src -o j3 "${ARGS[@]}" -j 3
same j1 j3
run 0 "$PACK" plan images src -o parts "${ARGS[@]}"
[ "$(sed -n '/^source/,/^crop/p' parts/.shardpack/plan | tr '\n' ,)" = \
	"source images,decode-scale auto,resize 40,crop 33," ] || die "$(cat parts/.shardpack/plan)"
run 0 "$PACK" build parts --part 1/2 -q
run 0 "$PACK" build parts --part 0/2 -q
run 0 "$PACK" seal parts -q
same j1 parts
run 0 "$PACK" plan images fields/t.csv -o fieldplan "${FIELDS[@]}" --field image:decode-scale=8 \
	--field right:kind=image,resize=20
grep -q "^field right .* kind=image,from=right,resize=20,fit=short,.*,dtype=u8,decode-scale=8$" \
	fieldplan/.shardpack/plan || die "$(grep ^field fieldplan/.shardpack/plan)"
run 0 "$PACK" plan images src -o default --resize 40 --crop 33 --shard-records 7 -q
run 0 "$PACK" plan images src -o one_said --resize 40 --crop 33 --shard-records 7 -q --field image:decode-scale=1
cmp default/.shardpack/plan one_said/.shardpack/plan
for edit in 's/^resize/decode-scale 1\n&/' 's/^resize/decode-scale 3\n&/' 's/^crop/decode-scale 2\n&/' \
	's/^resize.*/decode-scale 2\nresize 0/'; do
	replan "$edit" default "p$n"
	run 1 "$PACK" build "p$n"
	grep -q "this is not a plan that shardpack wrote$" err || die "$edit: $(cat err)"
	n=$((n + 1))
done
misused() { # MESSAGE ARGUMENT...
	local message=$1
	shift
	run 2 "$PACK" images src -o no2 "$@"
	[ "$(head -n 1 err)" = "shardpack: $message" ] || die "$(cat err)"
	n=$((n + 1))
}
misused "--field image:decode-scale=3: decode-scale=3: must be 1, 2, 4, 8 or auto" --field image:decode-scale=3
misused "--field x:kind=mask,decode-scale=2: decode-scale does not belong to kind=mask" \
	--field x:kind=mask,decode-scale=2
misused "decode-scale=auto needs --resize N: a crop alone uses the image at its own size" --crop 8 \
	--field image:decode-scale=auto
misused "--field right: decode-scale=2 needs resize N: a crop alone uses the image at its own size" \
	--field right:kind=image,crop=8,decode-scale=2 --resize 9 --crop 9

# ---- converters that are wrong ----

# By one thread: which tables a thread finds kept from earlier images then depends on nothing else.
breaks=0 threads=1
# finds FILE SED WORDS: with FILE edited so, what WORDS ask for is not what Pillow makes; which is
# shown by the plain build
finds() {
	[ -z "${VARIANT-}" ] || return 0
	break_pack "$1" "$2"
	if (PACK=$PWD/broken && same_as_pillow $3) >found 2>&1; then
		[ "$2" = s/x/x/ ] || die "not found: $2"
	else
		[ "$2" != s/x/x/ ] || die "found where nothing is broken: $(cat found err)"
	fi
	breaks=$((breaks + 1))
}
finds transform_image.c s/x/x/ "auto short 40 40 bilinear apply"
finds transform_image.c 's/\.cut_left = .*/.cut_left = false,/' "auto short 40 40 bilinear apply"
finds transform_image.c 's/\.cut_top = .*/.cut_top = false};/' "auto short 40 40 bilinear apply"
finds transform_image.c 's/(double)size->width/(double)image_columns(size) *  size->scale/' \
	"auto short 40 40 bilinear ignore"
finds transform_image.c 's/^\(.*while.*\) || height .*/\1))/' "auto stretch 31 30 bilinear ignore"
finds resize.c 's/ && a->box.length == axis->box.length//' "auto short 40 40 bilinear ignore"
echo "$n transforms, refusals and plans; $((breaks > 0 ? breaks - 1 : 0)) broken converters found out"
