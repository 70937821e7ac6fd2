#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_formats.sh - WebP, BMP, PGM and PPM as Pillow writes and reads them, and damaged
# ones
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
export PYTHONPATH=$ROOT/tests/cli
"$PYTHON" -c 'from PIL import features; assert features.check("webp")' || die "Pillow without WebP"

"$PYTHON" - <<'PY'
import os
import random
import struct
from PIL import Image

rng = random.Random(5)
os.makedirs("good/c")
os.makedirs("bad/c")

def noise(mode, w, h):
    return Image.frombytes(mode, (w, h), rng.randbytes(w * h * len(Image.new(mode, (1, 1)).tobytes())))

def save(name, image, **options):
    image.save("good/c/" + name, **options)

for i, (w, h) in enumerate([(40, 40), (41, 45), (47, 40), (43, 43)]):
    save("lossy%d.webp" % i, noise("RGB", w, h).resize((w, h)), quality=60)
    save("lossless%d.webp" % i, noise("RGB", w, h), lossless=True)
    save("alpha%d.webp" % i, noise("RGBA", w, h), quality=80)
    save("alpha_lossless%d.webp" % i, noise("RGBA", w, h), lossless=True, exact=True)
    save("rgb%d.bmp" % i, noise("RGB", w, h))
    save("rgba%d.bmp" % i, noise("RGBA", w, h))
    save("gray%d.bmp" % i, noise("L", w, h))
    save("palette%d.bmp" % i, noise("RGB", w, h).quantize(200))
    save("bits%d.bmp" % i, noise("L", w, h).convert("1"))
    save("rgb%d.ppm" % i, noise("RGB", w, h))
    save("gray%d.pgm" % i, noise("L", w, h))
    low = bytes(b % 201 for b in rng.randbytes(w * h * 3))
    open("good/c/low%d.ppm" % i, "wb").write(b"P6 # comment\n%d\t%d\n#x\n200\n" % (w, h) + low)

def bmp(w, h, bits, rows, compression=0, masks=b"", palette=b"", colors=0, sign=1):
    at = 54 + len(masks) + len(palette)
    head = struct.pack("<IiiHHIIiiII", 40, w, sign * h, 1, bits, compression, 0, 0, 0, colors, 0)
    return b"BM" + struct.pack("<IHHI", at + len(rows), 0, 0, at) + head + masks + palette + rows

w, h = 43, 40
stride = lambda bits: (w * bits + 31) // 32 * 4
for bits in 16, 24, 32:
    open("good/c/down%d.bmp" % bits, "wb").write(bmp(w, h, bits, rng.randbytes(stride(bits) * h), sign=-1))
for name, bits, masks in (("565", 16, (0xf800, 0x7e0, 0x1f)), ("555", 16, (0x7c00, 0x3e0, 0x1f)),
                          ("masks", 32, (0xff0000, 0xff00, 0xff))):
    rows = rng.randbytes(stride(bits) * h)
    open("good/c/%s.bmp" % name, "wb").write(bmp(w, h, bits, rows, 3, struct.pack("<3I", *masks)))
open("good/c/four.bmp", "wb").write(bmp(w, h, 4, rng.randbytes(stride(4) * h), palette=rng.randbytes(64)))
core = struct.pack("<IHHHH", 12, w, h, 1, 24)
head = b"BM" + struct.pack("<IHHI", 26 + stride(24) * h, 0, 0, 26)
open("good/c/os2.bmp", "wb").write(head + core + rng.randbytes(stride(24) * h))

good = open("good/c/rgb0.bmp", "rb").read()
webp = open("good/c/lossy0.webp", "rb").read()
def put(name, data):
    open("bad/c/" + name, "wb").write(data)
put("cut.bmp", good[:-1])
put("head.bmp", good[:30])
put("rle.bmp", bmp(4, 4, 8, bytes(16), 1, palette=bytes(1024)))
put("index.bmp", bmp(4, 4, 8, b"\1" * 15 + b"\7", palette=bytes(8), colors=2))
put("masks.bmp", bmp(4, 4, 16, bytes(32), 3, struct.pack("<3I", 0xf000, 0xf00, 0xf0)))
put("bits.bmp", bmp(4, 4, 7, bytes(32)))
put("side.bmp", bmp(70000, 1, 24, bytes(210000)))
put("within.bmp", good[:10] + bytes(4) + good[14:])
put("none.bmp", bmp(0, 4, 24, b""))
put("cut.webp", webp[:-1])
put("half.webp", webp[:4] + struct.pack("<I", len(webp) // 2 // 2 * 2) + webp[8:len(webp) // 2 + 10])
put("bytes.webp", webp[:21] + bytes(b ^ 0xff for b in webp[21:26]) + webp[26:])
put("cut.ppm", open("good/c/rgb0.ppm", "rb").read()[:-1])
put("wide.pgm", b"P5 4 4 65535\n" + bytes(32))
put("text.ppm", b"P3\n1 1 255\n1 2 3\n")
put("head.ppm", b"P6\n4 x\n")
put("zero.ppm", b"P6\n0 4 255\n")
PY

run 0 "$PACK" images good -o good.ds --crop 40 --order source -q
"$CAT" list good.ds --json >list.json
"$PYTHON" - <<'PY'
import json
import numpy as np
from PIL import Image
import records
got = records.read("good.ds")["image"]
rows = json.load(open("list.json"))["records"]
assert len(rows) == 56, len(rows)
for r in rows:
    image = Image.open("good/" + r["key"]).convert("RGB")
    left, top = round((image.size[0] - 40) / 2), round((image.size[1] - 40) / 2)
    assert (got[r["index"]] == np.array(image.crop((left, top, left + 40, top + 40)))).all(), r["key"]
PY
run 1 "$PACK" images bad -o bad.ds --crop 40 --on-error skip --report bad.json # there is no good one
n=0
while IFS='|' read -r file reason words; do
	json bad.json "[b['reason'] + ': ' + b['message'] for b in d['bad_inputs'] if b['input'] == 'c/$file'][0]" >is
	grep -qF "$reason: $words" is || die "$file: $(cat is)"
	n=$((n + 1))
done <<'ROWS'
cut.bmp|truncated|BMP data ends early: has
head.bmp|truncated|BMP data ends early: within its head
rle.bmp|unsupported|BMP with compression 1: save it without
index.bmp|damaged|BMP data is damaged: palette index 7, but the palette ends at 1
masks.bmp|unsupported|BMP of 16 bits with masks 0000f000 00000f00 000000f0: convert it to 24 bits
bits.bmp|unsupported|BMP of 7 bits; 1, 4, 8, 16, 24 and 32 are known
side.bmp|over a limit|is 70000 x 1 pixels: a side is longer than the limit of 65500
within.bmp|damaged|BMP data is damaged: its pixels begin at 0, within the head of 54 bytes
none.bmp|decoder failed|BMP has no pixels
cut.webp|truncated|WebP data ends early: has
half.webp|decoder failed|WebP data is damaged
bytes.webp|decoder failed|WebP data is damaged
cut.ppm|truncated|PPM data ends early: has 4799 bytes of 4800
wide.pgm|unsupported|PGM has samples up to 65535: convert it to 8 bits
text.ppm|unsupported|starts with 50 33 (P3): PPM is not supported
head.ppm|decoder failed|PPM has a head without width, height and largest value
zero.ppm|decoder failed|PPM has a head without width, height and largest value
ROWS
[ "$(json bad.json 'len(d["bad_inputs"])')" = $n ] || die "$(json bad.json 'd["bad_inputs"]')"
echo "56 images as Pillow reads them, $n that are refused"
