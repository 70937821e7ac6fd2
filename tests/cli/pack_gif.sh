#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_gif.sh - GIFs: Pillow's pixels; what is refused, and that a plan names
# the format
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
need_pillow
export PYTHONPATH=$ROOT/tests/cli:$ROOT/tests/twin
needs_part decode_gif "giflib (Debian: libgif-dev)"

"$PYTHON" - <<'PY'
import io, os, random, struct
import numpy as np
from PIL import Image
from pillow import center_crop, photo_like

rng, dice = np.random.default_rng(3), random.Random(4)
for folder in "good/a", "bad/a", "named/a":
    os.makedirs(folder)

def gif(image, **options):
    out = io.BytesIO()
    image.save(out, "GIF", **options)
    return out.getvalue()

def descriptor(data):
    """Where the frame is described: behind the head, the palette, and the extensions."""
    at = 13 + (3 << (data[10] & 7) + 1) * (data[10] >> 7)
    while data[at] == 0x21:
        at += 2
        while data[at]:
            at += data[at] + 1
        at += 1
    assert data[at] == 0x2c
    return at

def moved(data, screen, corner):
    """The same frame elsewhere on a screen of another size."""
    data, at = bytearray(data), descriptor(data)
    data[6:10] = struct.pack("<HH", *screen)
    data[at + 1:at + 5] = struct.pack("<HH", *corner)
    return bytes(data)

def local(data):
    """The palette of all frames becomes that of the frame."""
    at, count = descriptor(data), 3 << (data[10] & 7) + 1
    frame = bytearray(data[at:at + 10])
    frame[9] |= 0x80 | data[10] & 7
    head = bytearray(data[:13])
    head[10] &= 0x7f
    return bytes(head) + data[13 + count:at] + bytes(frame) + data[13:13 + count] + data[at + 10:]

def noise(width, height, colours):
    image = Image.fromarray(rng.integers(0, colours, (height, width), np.uint8), "P")
    image.putpalette(rng.integers(0, 256, 768, np.uint8).tobytes())
    return image

files = {}
for i, (width, height) in enumerate([(1, 1), (7, 3), (64, 48), (33, 64), (5, 64), (64, 1), (61, 59), (16, 9)]):
    photo = photo_like(dice, width, height)
    for interlaced in 0, 1:
        name = "%d.%d" % (i, interlaced)
        files["photo." + name] = gif(photo, interlace=interlaced)
        files["gray." + name] = gif(photo.convert("L"), interlace=interlaced)
        files["two." + name] = gif(photo.convert("1"), interlace=interlaced)
        files["noise." + name] = gif(noise(width, height, 256), interlace=interlaced)
        files["four." + name] = gif(noise(width, height, 4), interlace=interlaced, transparency=2)
        whole = gif(noise(width, height, 256), interlace=interlaced, transparency=9, comment=b"hello" * 99)
        files["clear." + name] = whole
        files["local." + name] = local(whole)
        screen = width + 3, height + 9
        files["corner." + name] = moved(whole, screen, (2, 5))
        files["index0." + name] = moved(gif(noise(width, height, 256), interlace=interlaced), screen, (1, 0))
        files["beyond." + name] = moved(whole, (1, 1), (3, 2))
        files["grayer." + name] = moved(gif(photo.convert("L"), interlace=interlaced), screen, (3, 9))
want = []
for name, data in sorted(files.items()):
    open("good/a/%s.gif" % name, "wb").write(data)
    want.append(np.asarray(center_crop(Image.open(io.BytesIO(data)).convert("RGB"), 73)))
np.save("want.npy", np.stack(want))

good = gif(noise(20, 20, 200))
short = bytearray(gif(noise(20, 20, 4)))     # a palette of 4, of which it now has 2
assert short[10] & 7 == 1
at = descriptor(short)
short = bytes(short[:10]) + bytes([short[10] & 0xf8]) + bytes(short[11:19]) + bytes(short[25:])
bad = {"short": short, "head": good[:13], "palette": good[:300],
       "noframe": good[:descriptor(good)] + b";", "noend": good[:-1], "half": good[:len(good) // 2],
       "large": moved(good, (65535, 65535), (0, 0)), "long": moved(good, (65535, 20), (0, 0)),
       "type": good[:descriptor(good)] + b"?" + good[descriptor(good) + 1:]}
for name, data in bad.items():
    open("bad/a/%s.gif" % name, "wb").write(data)
open("named/a/x.png", "wb").write(good)
Image.new("RGB", (8, 8)).save("named/a/y.png")
PY

# ---- the pixels ----

ARGS=(--crop 73 --order source -q)
run 0 "$PACK" images good -o ds "${ARGS[@]}"
"$PYTHON" -c 'import numpy, os, records
got, want = records.read("ds")["image"], numpy.load("want.npy")
names = sorted(os.listdir("good/a"))
assert len(names) == len(got) == 176
for name, g, w in zip(names, got, want):
    records.same(g, w, name)'
run 0 "$PACK" images good -o one "${ARGS[@]}" -j 1
same ds one
(cd good && tar --sort=name -cf ../good.tar a)
run 0 "$PACK" images good.tar -o tar "${ARGS[@]}"
[ "$("$CAT" get tar 99 | tail -n +3)" = "$("$CAT" get ds 99 | tail -n +3)" ] || die "another record of the tar"

# ---- a plan says that it reads GIFs, and others do not ----

mkdir mixed && cp -r "$PHOTOS/train/cat" mixed/cat && cp good/a/photo.2.0.gif mixed/cat/x.GIF
run 0 "$PACK" plan images mixed -o planned "${ARGS[@]}"
grep -q '^formats gif$' planned/.shardpack/plan && grep -q '^version giflib [0-9.]*$' planned/.shardpack/plan ||
	die "the plan does not name GIF: $(grep -a -e ^formats -e ^version planned/.shardpack/plan)"
for edit in 's/^formats gif$/formats/' 's/^formats gif$/formats gif /' 's/^formats gif$/formats fig/' \
	's/^formats gif$/formats gif gif/'; do
	rm -rf spoilt
	replan "$edit" planned spoilt
	run 1 "$PACK" build spoilt
	grep -q "this is not a plan that shardpack wrote$" err || die "$edit: $(cat err)"
done
rm -rf spoilt
replan 's/^version giflib .*/version giflib 1.0.0/' planned spoilt
run 5 "$PACK" build spoilt
replan s/x/x/ planned same
run 0 "$PACK" build same -q
rm mixed/cat/x.GIF
run 0 "$PACK" plan images mixed -o plain "${ARGS[@]}"
! grep -q -a -e ^formats -e giflib plain/.shardpack/plan || die "a plan without GIFs names them"

# ---- what is refused ----

run 1 "$PACK" images bad -o none "${ARGS[@]}" --on-error skip
while IFS='|' read -r name sentence; do
	said "shardpack: warning: bad/a/$name.gif: $sentence"
done <<'END'
half|GIF data ends early
head|GIF data ends early
large|is 65535 x 65535 pixels: a side is longer than the limit of 65500
long|is 65535 x 20 pixels: a side is longer than the limit of 65500
noend|GIF data ends early
noframe|GIF has no frame
palette|GIF data ends early
short|GIF data is damaged: palette index 2, but the palette ends at 1
type|GIF cannot be decoded: Wrong record type detected
END
# Its content decides, as that of PNG, WebP and BMP does: crawlers name files as servers call them.
mkdir -p called/a && cp named/a/y.png called/a && cp named/a/x.png called/a/x.gif
run 0 "$PACK" images named -o misnamed "${ARGS[@]}"
run 0 "$PACK" images called -o called.ds "${ARGS[@]}"
same_images misnamed called.ds
# The plan does not know it, so what lies beside the plan does: a worker with another giflib, or with
# none, would pack something else.
run 0 "$PACK" plan images named -o shared "${ARGS[@]}"
! grep -q -a -e ^formats shared/.shardpack/plan || die "a plan names a format by content"
version=$(sed -n 's/^gif //p' shared/.shardpack/decoders)
for there in none 'giflib 1.2.3'; do
	sed -i "s/^gif .*/gif $there/" shared/.shardpack/decoders
	run 5 "$PACK" build shared --part 0/2
	run 5 "$PACK" build shared
	said "shardpack: $PWD/named/a/x.png: is a GIF by its content, for which this shardpack has the library '$version', \
and the one that made the plan has '$there'; let all processes that pack this plan run the same build"
	run 5 "$PACK" images named -o shared "${ARGS[@]}"
done
sed -i 's/^tiff .*/tiff none/' shared/.shardpack/decoders # there is none
sed -i "s/^gif .*/gif $version/" shared/.shardpack/decoders
run 0 "$PACK" build shared && run 0 "$PACK" seal shared
same shared misnamed
printf 'path,label,m\nnamed/a/y.png,0,good/a/photo.0.0.gif\n' >t.csv
run 1 "$PACK" images t.csv -o none "${ARGS[@]}" --field m:kind=mask
said "shardpack: warning: ./named/a/y.png: field m, good/a/photo.0.0.gif: starts with 47 49 46 38 (GIF8): \
a mask is not read from a GIF, convert it to PNG"
sed -i 's,photo.0.0,photo.2.0,' t.csv
run 0 "$PACK" images t.csv -o further "${ARGS[@]}" --field m:kind=image
# Every cut is refused, and nothing is read beyond an end.
"$PYTHON" - <<'PY'
import os
data = open("good/a/local.6.1.gif", "rb").read()
os.makedirs("cuts/a")
for n in range(6, len(data), 7):
    open("cuts/a/%05d.gif" % n, "wb").write(data[:n])
print(len(os.listdir("cuts/a")))
PY
run 1 "$PACK" images cuts -o none "${ARGS[@]}" --on-error skip
grep -q "all [0-9]* inputs are bad, so no dataset was made" err || die "a cut GIF was packed: $(cat err)"

# ---- a build without giflib ----

without_pack GIF tools/shardpack/images/formats.c
! ./without --version | grep -q giflib || die "a build without giflib names it"
run 1 ./without images named -o none "${ARGS[@]}"
said "shardpack: warning: named/a/x.png: is a GIF, and this shardpack was built without giflib; install that and build \
again, use the shardpack of libshard's wheel, or convert it to PNG"
mkdir mixed/dog && cp good/a/photo.2.0.gif mixed/cat/x.gif && cp "$PHOTOS"/train/rocket/* mixed/dog
run 0 ./without images mixed -o ignored "${ARGS[@]}"
said "shardpack: warning: 1 ignored file is an image of a kind that is not read: .gif 1"
run 5 ./without build planned
echo "176 GIFs as Pillow reads them, and every cut of one"
