#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_pixels.sh - --fit, --exif and --dtype: what Pillow, torchvision and NumPy make of
# images; refusals
# TAKES: 15
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
need_pillow
pixels_of_pillow

# Shapes whose sides, halves and offsets round in every way; the last ones would have a side below 1
# pixel.
"$PYTHON" - <<'PY'
import os
import numpy as np
from PIL import Image
rng = np.random.default_rng(3)
sizes = [(64, 64), (64, 63), (63, 64), (100, 37), (37, 100), (41, 40), (40, 41), (7, 5), (5, 7), (90, 60),
         (60, 91), (33, 20), (20, 33), (128, 3), (3, 128), (1, 1), (2, 1), (40, 1), (1, 40)]
os.makedirs("src/a")
for i, (w, h) in enumerate(sizes):
    Image.fromarray(rng.integers(0, 256, (h, w, 3), dtype=np.uint8)).save(f"src/a/{i:02}.png")
PY

n=0
while read -r fit resize crop filter; do
	run 0 "$PACK" images src "${LIKE[@]}" -o "ds$n" --order source --fit "$fit" --resize "$resize" --crop "$crop" \
		--filter "$filter" --report r.json -q
	[ "$(json r.json 'd["recipe"]["fit"]')" = "$fit" ] || die "the report says nothing of --fit $fit"
	run 0 "$CAT" verify "ds$n"
	"$PYTHON" - "$CAT" "ds$n" "$fit" "$resize" "$crop" "$filter" <<'PY'
import glob, subprocess, sys
from PIL import Image, ImageOps
cat, ds, fit, n, crop, name = sys.argv[1:]
n, crop, how = int(n), int(crop), getattr(Image, name.upper())

def center_crop(image):  # torchvision's CenterCrop
    w, h = image.size
    padded = Image.new("RGB", (max(w, crop), max(h, crop)))
    padded.paste(image, (max(crop - w, 0) // 2, max(crop - h, 0) // 2))
    left, top = int(round((padded.width - crop) / 2.0)), int(round((padded.height - crop) / 2.0))
    return padded.crop((left, top, left + crop, top + crop))

for i, path in enumerate(sorted(glob.glob("src/a/*.png"))):
    image = Image.open(path).convert("RGB")
    w, h = image.size
    short, long = min(w, h), max(w, h)
    if fit == "pad":
        if round(short / long * n) == 0:
            continue  # Pillow refuses
        want = ImageOps.pad(image, (n, n), how)
    else:
        a, b = {"short": (n, int(n * long / short)), "long": (max(int(n * short / long), 1), n), "stretch": (n, n)}[fit]
        want = center_crop(image.resize((a, b) if w <= h else (b, a), how))
    raw = subprocess.run([cat, "get", ds, str(i), "--field", "image", "--raw"], capture_output=True, check=True).stdout
    assert raw == want.tobytes(), (fit, n, crop, name, path, image.size)
PY
	n=$((n + 1))
done <<"END"
short 40 40 bilinear
short 40 31 bicubic
long 40 40 bilinear
long 41 41 lanczos
long 40 17 bicubic
stretch 40 40 bilinear
stretch 33 20 box
pad 40 40 bilinear
pad 41 41 bicubic
pad 64 64 lanczos
END

# ---- EXIF: eight orientations, in three formats, in both byte orders; and what is none ----

"$PYTHON" - <<'PY'
import os, struct
import numpy as np
from PIL import Image
rng = np.random.default_rng(5)
os.makedirs("turned/a")

def tiff(value, order="<", tag=0x112, kind=3, count=1, entries=1):
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "IH", 8, entries)
    entry = struct.pack(order + "HHI", tag, kind, count)
    entry += struct.pack(order + "HH", value, 0) if kind == 3 else struct.pack(order + "I", value)
    return head + entry + struct.pack(order + "I", 0)

def picture():
    w, h = rng.integers(20, 70, 2)
    small = Image.fromarray(rng.integers(0, 256, (6, 7, 3), dtype=np.uint8))
    return small.resize((int(w), int(h)), Image.BICUBIC)

def save(name, exif, **options):
    if exif is not None:
        options["exif"] = exif if exif.startswith(b"Exif") or not name.endswith("jpg") else b"Exif\0\0" + exif
    picture().save(f"turned/a/{name}", **options)

for i in range(1, 9):
    for order in "<>":
        side = "le" if order == "<" else "be"
        save(f"{i}{side}.jpg", tiff(i, order), quality=90)
        save(f"{i}{side}p.jpg", tiff(i, order, kind=4), quality=90, progressive=True)
        save(f"{i}{side}.png", tiff(i, order))
        save(f"{i}{side}.webp", tiff(i, order), lossless=True)
save("none.jpg", None)
save("zero.jpg", tiff(0))
save("nine.jpg", tiff(9))
save("two_values.jpg", tiff(6, count=2))
save("three_values.jpg", tiff(26, count=3) + struct.pack("<HHH", 3, 8, 8))
save("values_nowhere.jpg", tiff(226, count=3))
save("another_tag.jpg", tiff(6, tag=0x111))
save("few_entries.jpg", tiff(6, entries=3))
save("gray.jpg", None)
Image.open("turned/a/6le.jpg").convert("L").save("turned/a/gray.jpg", exif=b"Exif\0\0" + tiff(8))
Image.open("turned/a/6le.jpg").convert("CMYK").save("turned/a/cmyk.jpg", exif=b"Exif\0\0" + tiff(5))
# Behind another segment, and the second of two: the first counts.
data = open("turned/a/none.jpg", "rb").read()
def segment(payload):
    return b"\xff\xe1" + struct.pack(">H", len(payload) + 2) + payload
xmp = segment(b"http://ns.adobe.com/xap/1.0/\0<x/>")
open("turned/a/behind.jpg", "wb").write(data[:2] + xmp + segment(b"Exif\0\0" + tiff(7)) + data[2:])
# Pillow refuses these; here they have no orientation.
os.makedirs("broken/a")
bad = {"magic": b"XX*\0" + tiff(6)[4:], "short": tiff(6)[:6],
       "offset": tiff(6)[:4] + b"\xff\xff\xff\xff" + tiff(6)[8:], "empty": b""}
for name, exif in bad.items():
    open(f"broken/a/{name}.jpg", "wb").write(data[:2] + segment(b"Exif\0\0" + exif) + data[2:])
open("broken/a/none.jpg", "wb").write(data)
PY

for exif in apply ignore; do
	run 0 "$PACK" images turned "${LIKE[@]}" -o "exif_$exif" --order source --exif $exif --fit long --resize 48 -q \
		--report r.json
	[ "$(json r.json 'd["recipe"]["exif"]')" = "$exif" ] || die "the report says nothing of --exif $exif"
	"$PYTHON" - "$CAT" $exif <<'PY'
import glob, subprocess, sys, warnings
from PIL import Image, ImageOps
warnings.simplefilter("ignore")
cat, exif = sys.argv[1:]
paths = sorted(glob.glob("turned/a/*"))
turned = 0
for i, path in enumerate(paths):
    image = Image.open(path)
    before = image.size
    if exif == "apply":
        image = ImageOps.exif_transpose(image)
        turned += image.getexif().get(0x112) is None and Image.open(path).getexif().get(0x112, 1) in range(2, 9)
    image = image.convert("RGB")
    w, h = image.size
    w, h = (max(48 * w // h, 1), 48) if w <= h else (48, max(48 * h // w, 1))
    want = Image.new("RGB", (48, 48))
    want.paste(image.resize((w, h), Image.BILINEAR), ((48 - w) // 2, (48 - h) // 2))
    get = [cat, "get", f"exif_{exif}", str(i), "--field", "image", "--raw"]
    raw = subprocess.run(get, capture_output=True, check=True).stdout
    assert raw == want.tobytes(), path
assert exif == "ignore" or turned == 7 * 8 + 6, turned
print(len(paths), "files,", turned, "turned")
PY
done
run 0 "$PACK" images turned "${LIKE[@]}" -o exif_default --order source --fit long --resize 48 -q
same exif_default exif_ignore
run 0 "$PACK" images broken -o exif_broken --order source --exif apply --resize 16 -q
for i in 0 1 2 3; do
	cmp <("$CAT" get exif_broken $i --field image --raw) <("$CAT" get exif_broken 4 --field image --raw)
done
# Old Pillows follow XMP in a PNG only, so an image with XMP is compared with its twin with EXIF.
"$PYTHON" - <<'PY'
import os, re, struct, zlib
os.makedirs("by_xmp/a"), os.makedirs("by_exif/a")
def said(k):
    return b'<rdf:Description tiff:Orientation="%d"/>' % k if k % 2 else b"<tiff:Orientation>%d</tiff:Orientation>" % k
def with_xmp(form, data, k):
    """The file with XMP in the place of its EXIF data, or beside it."""
    if form == "jpg":
        payload = b"http://ns.adobe.com/xap/1.0/\0" + said(k)
        return data[:2] + b"\xff\xe1" + struct.pack(">H", len(payload) + 2) + payload + data[2:]
    if form == "png":
        chunk = b"iTXtXML:com.adobe.xmp\0\0\0\0\0" + said(k)
        chunk = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
        return data[:33] + chunk + data[33:]
    data = data[:20] + bytes([data[20] | 4]) + data[21:] + b"XMP " + struct.pack("<I", len(said(k))) + said(k)
    data += bytes(len(data) % 2)
    return data[:4] + struct.pack("<I", len(data) - 8) + data[8:]
def without_exif(form, data):
    """The data are still there, under a name that nobody reads."""
    return data.replace(*{"jpg": (b"Exif\0\0", b"None\0\0"), "png": (b"eXIf", b"noNe"),
                          "webp": (b"EXIF", b"NONE")}[form])
for form in "jpg", "png", "webp":
    for k in range(1, 9):
        data = open(f"turned/a/{k}le.{form}", "rb").read()
        bare = without_exif(form, data)
        if form == "png":
            at = bare.index(b"noNe")
            length = struct.unpack(">I", bare[at - 4:at])[0]
            bare = bare[:at + 4 + length] + struct.pack(">I", zlib.crc32(bare[at:at + 4 + length])) + \
                bare[at + 8 + length:]
        open(f"by_exif/a/{k}.{form}", "wb").write(data)
        open(f"by_xmp/a/{k}.{form}", "wb").write(with_xmp(form, bare, k))
        # EXIF goes before XMP, even where it says that the image is upright.
        open(f"by_exif/a/{k}.both.{form}", "wb").write(data)
        open(f"by_xmp/a/{k}.both.{form}", "wb").write(with_xmp(form, data, k % 8 + 1))
PY
for by in exif xmp; do
	run 0 "$PACK" images by_$by -o turned_$by --order source --exif apply --fit long --resize 48 -q
	for i in $(seq 0 47); do "$CAT" get turned_$by "$i" --field image --raw; done >$by.raw
done
cmp exif.raw xmp.raw || die "an orientation in XMP does not turn as one in EXIF"
[ "$(stat -c %s xmp.raw)" = $((48 * 48 * 48 * 3)) ] || die "not 48 images"
run 0 "$PACK" images turned "${LIKE[@]}" -o x --exif apply --dry-run -q
printed "exif apply"

# ---- floats: NumPy's of the u8 samples, and back again for people ----

IMAGENET=(--mean "0.485,0.456,0.406" --std "0.229,0.224,0.225")
OPTIONS=(--order source --fit long --resize 40)
for layout in hwc chw; do
	run 0 "$PACK" images src "${LIKE[@]}" -o "u8_$layout" "${OPTIONS[@]}" --layout $layout -q
	for dtype in f16 bf16 f32; do
		run 0 "$PACK" images src "${LIKE[@]}" -o "${dtype}_$layout" \
			"${OPTIONS[@]}" --layout $layout --dtype $dtype \
			"${IMAGENET[@]}" --report r.json -q
		[ "$(json r.json '[d["recipe"][k] for k in ("dtype", "mean", "std")]')" = \
			"['$dtype', [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]]" ] ||
			die "the report has another recipe"
		run 0 "$CAT" verify ${dtype}_$layout
		for i in 0 3 17; do
			"$CAT" get ${dtype}_$layout $i --field image --raw >got
			"$CAT" get u8_$layout $i --field image --raw >u8
			"$PYTHON" - $dtype $layout <<'PY'
import sys
import numpy as np
dtype, layout = sys.argv[1:]
mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
if layout == "chw":
    mean, std = mean[:, None, None], std[:, None, None]
x = np.fromfile("u8", np.uint8).reshape((3, 40, 40) if layout == "chw" else (40, 40, 3))
want = (x / 255.0 - mean) / std
if dtype == "bf16":  # no value of this table lies so near the middle of two that rounding to f32 first matters
    bits = want.astype(np.float32).view(np.uint32).astype(np.uint64)
    want = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
else:
    want = want.astype(np.dtype(dtype.replace("f", "float")))
assert want.std() > 0.1 and open("got", "rb").read() == want.tobytes()
PY
			# What people see is what was there before.
			cmp <("$CAT" get ${dtype}_$layout $i --png) <("$CAT" get u8_$layout $i --png) ||
				die "$dtype $layout: another picture"
		done
	done
	run 0 "$CAT" show f16_$layout --count 6 --out f16.png
	run 0 "$CAT" show u8_$layout --count 6 --out u8.png
	"$PYTHON" - <<'PY'
import numpy as np
from PIL import Image
a, b = (np.asarray(Image.open(p))[120:] for p in ("f16.png", "u8.png"))  # below the header, which names the type
assert a.shape == b.shape and (a == b).all() and a.std() > 10
PY
done
run 0 "$PACK" images src "${LIKE[@]}" -o unit "${OPTIONS[@]}" --dtype f32 -q
cmp <("$CAT" get unit 0 --png) <("$CAT" get u8_hwc 0 --png)
run 0 "$CAT" info unit
! grep -q "mean" out || die "statistics of floats: $(cat out)"
run 0 "$PACK" plan images src "${LIKE[@]}" -o float_parts "${OPTIONS[@]}" --layout chw --dtype bf16 "${IMAGENET[@]}" -q
run 0 "$PACK" build float_parts --part 0/1 -q
run 0 "$PACK" seal float_parts -q
same float_parts bf16_chw

# Other floats are scaled from their least to their greatest number; what is none is black.
"$PYTHON" - <<'PY'
import numpy as np
x = np.zeros((3, 8, 8, 3), np.float32)
x[0] = np.linspace(-7, 30, 192).reshape(8, 8, 3)
x[1, 2, 2], x[1, 3, 3], x[1, 4, 4], x[1, 5, 5] = np.nan, np.inf, 5, -np.inf
np.save("image.npy", x)
PY
run 0 "$PACK" array image.npy -o other --order source -q
for i in 0 1 2; do
	run 0 "$CAT" get other $i --field image --png --out other$i.png
done
"$PYTHON" - <<'PY'
import numpy as np
from PIL import Image
x = np.load("image.npy").astype(np.float64)
got = [np.asarray(Image.open(f"other{i}.png")).astype(int) for i in range(3)]
assert np.abs(got[0] - (x[0] + 7) / 37 * 255).max() <= 0.5
assert got[0].min() == 0 and got[0].max() == 255
want = np.zeros((8, 8, 3), int)
want[3, 3] = want[4, 4] = 255
assert (got[1] == want).all() and not got[2].any()
PY

# ---- the recipe ----

# Rows first has the plan that it had before the options: same lines, same digest, same dataset.
run 0 "$PACK" images src -o plain "${LIKE[@]}" --order source --resize 40 --crop 40 -q
same plain ds0
run 0 "$PACK" images src -o x --pixels rows-first --order source --resize 40 --shard-records 100 --dry-run
recipe="source images resize 40 crop 40 filter bilinear layout hwc compress none align 0 order source seed 0 "
recipe+="on-error fail shard-records 100 "
[ "$(sed '/^bytes-version/,$d' out | tr '\n' ' ')" = "$recipe" ] ||
	die "the recipe has other lines than before the option: $(sed '/^bytes-version/,$d' out)"
for pixels in pillow-12 pillow-13; do
	run 0 "$PACK" images src -o x --pixels $pixels --order source --resize 40 --shard-records 100 --dry-run
	[ "$(sed '/^bytes-version/,$d' out | tr '\n' ' ')" = "${recipe/bilinear/bilinear pixels $pixels}" ] ||
		die "the recipe does not name its pixels: $(cat out)"
done
for pixels in rows-first pillow-12 pillow-13; do
	run 0 "$PACK" images src -o $pixels.ds --pixels $pixels --order source --resize 40 -q
	run 0 "$CAT" info $pixels.ds
	grep -qx "pixels    $pixels" out || die "info does not name the pixels: $(cat out)"
	run 0 "$CAT" info $pixels.ds/00000.shard --json
	[ "$(json out 'd["pixels"]')" = $pixels ] || die "info --json does not name the pixels: $(cat out)"
done
run 0 "$PACK" images src -o default.ds --order source --resize 40 -q
same default.ds pillow-13.ds
run 0 "$PACK" images src -o x --order source --resize 40 --fit pad --dry-run
printed "pixels pillow-13"
printed "fit pad"
run 0 "$PACK" images src -o x --fit long -q --dry-run
printed "resize 224"
printed "crop 224"

# A plan is made with the option and built without it.
run 0 "$PACK" plan images src "${LIKE[@]}" -o parts --order source --resize 41 --fit pad --filter bicubic -q
run 0 "$PACK" build parts --part 0/1 -q
run 0 "$PACK" seal parts -q
same parts ds8

run 2 "$PACK" images src -o x --fit long --crop 20
said "shardpack: --fit long needs --resize N"
run 2 "$PACK" images src -o x --fit pad --crop 20 --resize 30
said "shardpack: --crop 20: --fit pad fills the whole square of --resize 30, so nothing is cropped; leave --crop out"
run 2 "$PACK" images src -o x --fit cover --resize 30
said "shardpack: --fit cover: must be short, long, stretch, pad or area"
run 2 "$PACK" images src -o x --exif auto --resize 30
said "shardpack: --exif auto: must be ignore or apply"
run 2 "$PACK" images src -o x --resize 30 --mean 0.5,0.5,0.5
said "shardpack: --mean needs --dtype f16, bf16 or f32; u8 samples are not normalised"
for bad in 0.5 0.5,0.5 0.5,0.5,0.5,0.5 "0.5,0.5,0.5," a,b,c 0x1,0,0 nan,0,0 1e999,0,0 0.5,,0.5 "0.5, 0.5,0.5"; do
	run 2 "$PACK" images src -o x --resize 30 --dtype f32 --mean "$bad"
	said "shardpack: --mean $bad: must be three numbers, for red, green and blue: 0.5,0.5,0.5"
done
# The mean and std of samples from 0 to 255 would make every image nearly one number.
large() { # large SAID BETTER OPTION...
	run 2 "$PACK" images src -o x --resize 30 --dtype f32 "${@:3}"
	case $1 in *std*) range="at most 1" ;; *) range="from -1 to 1" ;; esac
	said "shardpack: $1: samples are from 0 to 1, so these must be $range; divide by 255: $2"
}
large "--mean 123.675,116.28,103.53" "--mean 0.485,0.456,0.406 --std 0.229,0.224,0.225" \
	--mean 123.675,116.28,103.53 --std 58.395,57.12,57.375
large "--mean 0.5,0.5,127.5" "--mean 0.00196078,0.00196078,0.5" --mean 0.5,0.5,127.5 --std 0.5,0.5,0.5
large "--std 127.5,127.5,127.5" "--std 0.5,0.5,0.5" --std 127.5,127.5,127.5
large "--mean -2,0,0" "--mean -0.00784314,0,0" --mean -2,0,0
run 2 "$PACK" images src -o x --resize 30 \
	--field 'b:kind=image,from=src/{}.jpg,dtype=f16,mean=104/117/124'
said "shardpack: --field b: mean 104/117/124: samples are from 0 to 1, so these must be from -1 to 1; \
divide by 255: mean 0.407843/0.458824/0.486275"
run 0 "$PACK" images src -o x --resize 30 --dtype f32 --mean 1,-1,0 --std 1,1,0.00392157 --dry-run # the limits
run 2 "$PACK" images src -o x --resize 30 --dtype f32 --std 1,0,1
said "shardpack: --std 1,0,1: 0 must be above 0, because samples are divided by it"
run 2 "$PACK" images src -o x --resize 30 --dtype f16 --std 1,0.00001,1
said "shardpack: --dtype f16: (x / 255 - mean) / std of channel 1 exceeds 65,504, the largest value of f16; \
give the mean and std of samples from 0 to 1"
[ ! -e x ] || die "a refusal left something"
echo "$n transforms as Pillow's"
