#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_tiff.sh - TIFFs: Pillow's pixels, which way up, pages; what is refused, cut and
# spoilt files, and that a plan names the format
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
need_pillow
export PYTHONPATH=$ROOT/tests/cli:$ROOT/tests/twin
needs_part decode_tiff "libtiff (Debian: libtiff-dev)"

"$PYTHON" - <<'PY'
import io, os, random, struct
import numpy as np
from PIL import Image
from pillow import center_crop
import tiff

rng = random.Random(5)
for folder in "good/a", "kinds/a", "bad/a", "named/a", "cuts/a", "wild/a":
    os.makedirs(folder)
want, several = [], 0
for i in range(150):
    data, traits = tiff.make_file(rng)
    open("good/a/%03d.%s" % (i, rng.choice(["tif", "tiff", "TIF"])), "wb").write(data)
    image = Image.open(io.BytesIO(data))
    several += image.n_frames > 1
    image.seek(0)
    want.append(np.asarray(center_crop(image.convert("RGB"), 131)))
np.save("want.npy", np.stack(want))
open("several", "w").write(str(several))
for i, (data, story) in enumerate(tiff.refusals(rng)):
    open("kinds/a/%02d.tif" % i, "wb").write(data)

def plain(parts=(b"abcd",), big=False, pages=1, **changed):
    tags = {"width": (256, 3, [2]), "height": (257, 3, [2]), "bits": (258, 3, [8]), "colours": (262, 3, [1]),
            "samples": (277, 3, [1]), "rows": (278, 3, [2]), **changed}
    return tiff.file_of(rng, [tag for tag in tags.values() if tag], list(parts), big, pages)

circle = bytearray(plain(pages=2))
circle[-4:] = circle[4:8]
beyond = bytearray(plain())
beyond[-4:] = struct.pack("<I", 99999)
strip = bytearray(plain())
strip[4:8] = struct.pack("<I", 8)
bad = {"circle": circle, "beyond": beyond, "head": plain()[:7], "tags": plain()[:-1], "nopage": b"II*\0" + bytes(4),
       "entries": strip, "large": plain(width=(256, 4, [70000])), "pixels": plain(width=(256, 4, [60000]),
       height=(257, 4, [60000])), "tile": plain(rows=None, w=(322, 4, [65536]), h=(323, 4, [65536])),
       "lzw": plain([b"\xff\xff\xff"], c=(259, 3, [5])), "none": plain(width=None), "big": b"II+\0" + bytes(40),
       "short": plain([b"abc"]), "fax": plain([b"\x12\x34\x56"], c=(259, 3, [4]), bits=(258, 3, [1]))}
for name, data in bad.items():
    open("bad/a/%s.tif" % name, "wb").write(data)
open("good.tif", "wb").write(plain(pages=3))
open("named/a/x.png", "wb").write(plain())
Image.new("RGB", (8, 8)).save("named/a/y.png")

# Every cut of one, and some files with a few other bytes, mostly in their tags.
out = io.BytesIO()
Image.fromarray(np.random.default_rng(1).integers(0, 256, (20, 20, 3), np.uint8)).save(out, "TIFF")
data = out.getvalue()
for n in range(4, len(data), 11):
    open("cuts/a/%05d.tif" % n, "wb").write(data[:n])
for i in range(400):
    data = bytearray(tiff.make_file(rng)[0])
    begins = struct.unpack(">I" if data[0] == 77 else "<I", data[4:8])[0] if rng.random() < 0.7 else 4
    for _ in range(rng.randint(1, 4)):
        at = min(rng.randrange(begins, max(len(data), begins + 1)), len(data) - 1)
        data[at] = rng.choice([0, 1, 255, rng.randrange(256)])
    open("wild/a/%03d.tif" % i, "wb").write(data)
PY

# ---- the pixels, which way up, and how many pages ----

ARGS=(--crop 131 --order source)
for exif in ignore apply; do
	rm -rf ds
	run 0 "$PACK" images good -o ds "${ARGS[@]}" --exif $exif --report r.json
	"$PYTHON" -c 'import numpy, os, records
got, want = records.read("ds")["image"], numpy.load("want.npy")
names = sorted(os.listdir("good/a"))
assert len(names) == len(got) == 150
for name, g, w in zip(names, got, want):
    records.same(g, w, name)'
done
said "shardpack: warning: $(cat several) inputs have more frames, pages or pictures than one: the first is packed; \
--report FILE lists them"
json r.json 'd["first_of_several"][0]["message"]' | grep -qx 'TIFF has [25] pages: the first one is packed' ||
	die "$(cat r.json)"
run 0 "$PACK" images good -o one "${ARGS[@]}" --exif apply -j 1 --sandbox -q
same ds one

# ---- a plan says that it reads TIFFs ----

run 0 "$PACK" plan images good -o planned "${ARGS[@]}" -q
grep -q '^formats tiff$' planned/.shardpack/plan && grep -q '^version libtiff [0-9.]*$' planned/.shardpack/plan ||
	die "the plan does not name TIFF: $(grep -a -e ^formats -e ^version planned/.shardpack/plan)"
replan 's/^version libtiff .*/version libtiff 1.0.0/' planned spoilt
run 5 "$PACK" build spoilt
mkdir -p called/a && cp named/a/y.png called/a && cp named/a/x.png called/a/x.tif
run 0 "$PACK" images named -o misnamed --crop 8 -q
run 0 "$PACK" images called -o called.ds --crop 8 -q
same_images misnamed called.ds

# ---- it is turned without --exif apply, and what lies beside it is not ----

"$PYTHON" - <<'PY'
from PIL import Image
Image.new("RGB", (20, 30)).save("lies.tif", tiffinfo={274: 6})
Image.new("L", (20, 30)).save("lies.png")
PY
printf 'path,mask,boxes\nlies.tif,lies.png,"[[0,0,9,9]]"\n' >lies.csv
LIES=(lies.csv --no-label --crop 16 --resize 16)
TURN="with --exif apply, say turn=image if"
run 1 "$PACK" images "${LIES[@]}" -o none --field mask:kind=mask
said "shardpack: warning: ./lies.tif: field mask, lies.png: has no orientation that is read without --exif apply, and \
its image has 6; $TURN it lies as that file does, or turn=none if it is upright"
run 1 "$PACK" images "${LIES[@]}" -o none --field boxes:kind=boxes,max=1
said "shardpack: warning: ./lies.tif: field boxes: its image has orientation 6; $TURN the boxes lie as that file does, \
or turn=none if they are upright"
run 0 "$PACK" images "${LIES[@]}" -o lies --exif apply --field mask:kind=mask,turn=image \
	--field boxes:kind=boxes,max=1,turn=image -q

# ---- what is refused: libtiff prints nothing itself ----

quiet() { # all lines are ours
	! grep -v '^shardpack: ' err || die "$(cat err)"
}
run 1 "$PACK" images kinds -o none "${ARGS[@]}" --on-error skip
quiet
[ "$(grep -c '^shardpack: warning: kinds/a/.*: TIFF ' err)" = 20 ] || die "$(cat err)"
run 1 "$PACK" images bad -o none "${ARGS[@]}" --on-error skip
quiet
while IFS='|' read -r name sentence; do
	said "shardpack: warning: bad/a/$name.tif: $sentence"
done <<'END'
circle|TIFF data is damaged: its pages go in a circle
beyond|TIFF data ends early: within the tags of page 2
head|TIFF data ends early: within the tags of page 1
tags|TIFF data ends early: within the tags of page 1
entries|TIFF data ends early: within the tags of page 1
nopage|TIFF has no page
large|is 70000 x 2 pixels: a side is longer than the limit of 65500
pixels|is 60000 x 60000 = 3600000000 pixels: more than the limit of 89478485; --limit pixels=3600000000 takes it
tile|has tiles of 65536 x 65536 pixels: more than the limit of 89478485
big|starts with 49 49 (II): BigTIFF is not supported, convert it to JPEG or PNG
END
for name in lzw none short fax; do
	grep -q "^shardpack: warning: bad/a/$name.tif: TIFF cannot be decoded: " err || die "$name: $(cat err)"
done
run 1 "$PACK" images cuts -o none "${ARGS[@]}" --on-error skip
grep -q "all [0-9]* inputs are bad, so no dataset was made" err || die "a cut TIFF was packed: $(cat err)"
for how in "" --sandbox; do
	# shellcheck disable=SC2086 # one word or none
	run 0 "$PACK" images wild -o "read$how" "${ARGS[@]}" --on-error skip --report "read$how.json" $how
	quiet
	! grep -q "its decoder" err || die "$(cat err)"
done
same read read--sandbox
mkdir -p pages/a && cp good.tif pages/a
run 1 "$PACK" images pages -o none --crop 8 --limit frames=2
said "shardpack: warning: pages/a/good.tif: TIFF has 3 pages: more than the limit of 2; --limit frames=3 packs the \
first one"

# ---- a build without libtiff ----

without_pack TIFF tools/shardpack/images/formats.c
! ./without --version | grep -q libtiff || die "a build without libtiff names it"
run 1 ./without images pages -o none --crop 8
said "shardpack: warning: pages/a/good.tif: is a TIFF, and this shardpack was built without libtiff; install that and \
build again, use the shardpack of libshard's wheel, or convert it to PNG"
run 5 ./without build planned
echo "150 TIFFs as Pillow reads them, and every cut of one; of 400 that were spoilt \
$(json read.json 'd["written"]') are read"
