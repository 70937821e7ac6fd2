#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_wide.sh - images with 16 bits a sample as u16 and as numbers: all their bits, or a
# sentence
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
need_pillow
export PYTHONPATH=$ROOT/tests/cli:$ROOT/tests/twin

"$PYTHON" - <<'PY'
import os, random
import numpy as np
from PIL import Image
from wide import GRAY, GRAY_ALPHA, RGB, RGBA, by_python, png, turned

rng = np.random.default_rng(6)
os.makedirs("good/a")
os.makedirs("other")
os.makedirs("bad/a")
want, wide = [], []
for i, (colour, count) in enumerate([(GRAY, 1), (RGB, 3), (GRAY_ALPHA, 2), (RGBA, 4)] * 2):
    samples = rng.integers(0, 65536, (30 + i, 50 - i, count))
    orientation = i % 4 + 1
    open("good/a/%d.png" % i, "wb").write(png(samples, colour, 0, orientation))
    open("other/%d.png" % i, "wb").write(png(samples[:20, :20], colour, 0, 1))
    channels = [samples[..., 0 if count < 3 else c].astype(np.uint16) for c in range(3)]
    height, width = channels[0].shape
    size = (24 * width // height, 24)
    want.append(np.stack([by_python(c, (size, 20, 3, 0), 2) for c in channels], 2))
    wide.append(np.stack([turned(c, orientation)[:12, :12] for c in channels], 2))
np.savez("want.npz", image=np.array(want))
image = Image.fromarray(rng.integers(0, 256, (40, 40, 3), np.uint8))
for name in "x.jpg", "x.png", "x.webp", "x.bmp", "x.ppm":
    image.save("bad/a/" + name)
image.quantize(9).save("bad/a/palette.png")
image.convert("L").save("bad/a/gray.png")
image.convert("1").save("bad/a/bit.png")
open("bad/a/deep.pgm", "wb").write(b"P5\n2 2\n65535\n" + bytes(8))
with open("t.csv", "w") as f:
    print("path,label,other", *("good/a/%d.png,0,other/%d.png" % (i, i) for i in range(8)), sep="\n", file=f)
PY

# ---- u16: the samples of wide.py, which a twin compares with Pillow ----

SIZE=(--resize 24 --crop 20 --filter lanczos --order source)
run 0 "$PACK" images good -o ds "${SIZE[@]}" --dtype u16 --report r.json
! grep -q "bits a sample" err || die "$(cat err)"
said "shardpack: 4 of 8 images have an alpha channel or a transparent colour, which is left out (the first is a/2.png)"
[ "$(json r.json 'd["recipe"]["dtype"], d["recipe"]["bits"], d["mean"]')" = "('u16', 16, None)" ] || die "$(cat r.json)"
"$PYTHON" -c 'import numpy, records
got, want = records.read("ds")["image"], numpy.load("want.npz")["image"]
assert got.dtype == numpy.uint16, got.dtype
records.same(got, want, "u16")'
for more in "-j 1" --sandbox; do
	rm -rf one
	# shellcheck disable=SC2086
	run 0 "$PACK" images good -o one "${SIZE[@]}" --dtype u16 $more -q
	same ds one
done
run 0 "$PACK" plan images good -o planned "${SIZE[@]}" --dtype u16 -q
grep -q '^dtype u16$' planned/.shardpack/plan && ! grep -q -e '^bits' -e '^mean' planned/.shardpack/plan ||
	die "$(head -20 planned/.shardpack/plan)"
run 0 "$PACK" build planned -q
run 0 "$PACK" seal planned -q
same ds planned

# ---- numbers: (x / 65535 - mean) / std ----

for type in f16 f32; do
	NUMBERS=("${SIZE[@]}" --dtype $type --bits 16 --mean 0.5,0.25,0.1 --std 0.5,0.2,0.3 -q)
	run 0 "$PACK" images good -o "$type" "${NUMBERS[@]}"
	run 0 "$PACK" images good -o "$type.chw" "${NUMBERS[@]}" --layout chw
	TYPE=$type "$PYTHON" -c 'import numpy, os, records
type, want = os.environ["TYPE"], numpy.load("want.npz")["image"]
want = ((want / 65535.0 - [0.5, 0.25, 0.1]) / [0.5, 0.2, 0.3]).astype(dict(f16="f2", f32="f4")[type])
records.same(records.read(type)["image"], want, type)
records.same(records.read(type + ".chw")["image"], want.transpose(0, 3, 1, 2), type)'
done
# Without --bits a type of numbers reads 8 bits, as before: the upper ones of RGB.
run 1 "$PACK" images good -o none "${SIZE[@]}" --dtype f32 --on-error fail
said "shardpack: warning: good/a/0.png: PNG is gray with 16 bits: --dtype u16 packs them all; or convert it to 8 bits"

# ---- further images, and orientation ----

run 0 "$PACK" images t.csv -o fields --crop 12 --order source --exif apply --dtype u16 \
	--field other:kind=image,crop=8 --field number:kind=image,from=other,crop=8,dtype=f32,bits=16 \
	--field again:kind=image,from=other,crop=8,dtype=u16,layout=chw -q
"$PYTHON" -c 'import numpy, records
all = records.read("fields")
assert all["other"].dtype == numpy.uint16
records.same(all["again"], all["other"].transpose(0, 3, 1, 2), "again")
records.same(all["number"], (all["other"] / 65535.0).astype("f4"), "number")'
run 0 "$PACK" images t.csv -o lies --crop 12 --order source --exif ignore --dtype u16 -q
"$PYTHON" -c 'import numpy, records
upright, lies = records.read("fields")["image"], records.read("lies")["image"]
for i in 0, 4:
    records.same(upright[i], lies[i], "as it lies")
for i in 2, 6:  # upside down; their sides are even, so the crop is in the middle of both
    records.same(upright[i], lies[i][::-1, ::-1], "upside down")'
run 0 "$PACK" plan images t.csv -o planned2 --crop 12 --order source --exif apply --dtype u16 \
	--field number:kind=image,from=other,crop=8,dtype=f32,bits=16 -q
run 0 "$PACK" build planned2 -q

# ---- what is seen of it ----

run 0 "$CAT" get ds 1 --png --out one.png
run 0 "$CAT" get f32 1 --png --out eight.png
run 0 "$CAT" show ds --out sheet.png
"$PYTHON" - <<'PY'
import struct, zlib
import numpy as np
from PIL import Image

want = np.load("want.npz")["image"][1]
data, at, body = open("one.png", "rb").read(), 8, b""
assert data[24:26] == b"\x10\x02", "16 bits of RGB"
image = np.asarray(Image.open("one.png").convert("RGB"))  # Pillow keeps the upper 8
assert np.array_equal(image, want >> 8)
low = np.asarray(Image.open("eight.png")).astype(int)
assert np.abs(low - want / 257).max() <= 0.51, np.abs(low - want / 257).max()
assert Image.open("sheet.png").mode == "RGB"
PY

# ---- what is refused ----

run 1 "$PACK" images bad -o none --crop 8 --dtype u16
THEN="and 16 are asked for: pack it into a dataset of its own with --dtype u8, or save it as PNG or TIFF with 16 bits"
while IFS='|' read -r name what; do
	said "shardpack: warning: bad/a/$name: $what, $THEN"
done <<'END'
x.jpg|JPEG has 8 bits a sample
x.png|PNG has 8 bits a sample
x.webp|WebP has 8 bits a sample
x.bmp|BMP has 8 bits a sample
x.ppm|PPM has samples that are read as 8 bits
gray.png|PNG has 8 bits a sample
bit.png|PNG has 1 bit a sample
palette.png|PNG has a palette of 8 bits
deep.pgm|PGM has samples that are read as 8 bits
END
VERB=(images) ARGS=(--crop 8)
misused() { # SENTENCE ARGUMENT...
	local sentence=$1
	shift
	run 2 "$PACK" images good -o no --crop 8 "$@"
	said "shardpack: $sentence"
	[ ! -e no ] || die "made for nothing: $*"
}
misused "--bits 16: u8 holds 8 bits; give --dtype u16, or f16, bf16 or f32" --bits 16
misused "--bits 8: --dtype u16 is for samples of 16 bits; leave --bits out" --bits 8 --dtype u16
misused "--mean needs --dtype f16, bf16 or f32; u16 samples are not normalised" --mean 0,0,0 --dtype u16
misused "--field other: bits=9: must be 8 or 16" --field other:kind=image,dtype=f32,bits=9
misused "--field other: bits=16: u8 holds 8 bits; give dtype=u16, or f16, bf16 or f32" --field other:kind=image,bits=16
misused "--bits and --field image:bits= differ; give one of them" --dtype f32 --bits 16 --field image:bits=8
misused "--std 65535,65535,65535: samples are from 0 to 1, so these must be at most 1; divide by 65535: --std 1,1,1" \
	--dtype f32 --bits 16 --std 65535,65535,65535
misused "--field other: decode-scale=2 is for JPEG, and 16 bits a sample are read from PNG and TIFF; leave it out" \
	--field other:kind=image,dtype=u16,resize=9,decode-scale=2
run 2 "$PACK" images good -o no --fit area --dtype u16
said "shardpack: --dtype u16: --fit area needs u8; give another fit"
echo "u16, f16 and f32 of 16 bits a sample"
