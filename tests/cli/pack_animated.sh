#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_animated.sh - the first frame of animated GIF, WebP and PNG: Pillow's pixels; it is
# said how many there are, and which
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
need_pillow
export PYTHONPATH=$ROOT/tests/cli:$ROOT/tests/twin
needs_part decode_gif "giflib (Debian: libgif-dev)"

cat >make.py <<'PY'
import io, os, random, struct
import numpy as np
from PIL import Image
from pillow import center_crop, photo_like

rng, dice = np.random.default_rng(3), random.Random(4)
for folder in "good/a", "bad/a", "still/a":
    os.makedirs(folder)

def saved(image, form, **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()

def noise(width, height, colours=9):
    image = Image.fromarray(rng.integers(0, colours, (height, width), np.uint8), "P")
    image.putpalette(rng.integers(0, 256, 768, np.uint8).tobytes())
    return image

def chunk(name, data):
    return name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)

def u24(*values):
    return b"".join(v.to_bytes(3, "little") for v in values)

def payload(image, **options):
    """The chunks of the picture alone: ALPH, VP8 and VP8L."""
    data, at, out = saved(image, "WEBP", **options), 12, b""
    while at < len(data):
        size = struct.unpack("<I", data[at + 4:at + 8])[0]
        if data[at:at + 4] in (b"ALPH", b"VP8 ", b"VP8L"):
            out += data[at:at + 8 + size + size % 2]
        at += 8 + size + size % 2
    return out

def webp(canvas, frames, background=0, flags=0x02, exif=b""):
    """frames: (x, y, image, flags of the frame, options)"""
    body = b"WEBP" + chunk(b"VP8X", bytes([flags | (0x10 if any(f[2].mode == "RGBA" for f in frames) else 0), 0, 0, 0])
                           + u24(canvas[0] - 1, canvas[1] - 1))
    body += chunk(b"ANIM", struct.pack("<IH", background, 0))
    for x, y, image, how, options in frames:
        body += chunk(b"ANMF", u24(x // 2, y // 2, image.width - 1, image.height - 1, 100) + bytes([how]) +
                      payload(image, **options))
    return b"RIFF" + struct.pack("<I", len(body)) + body

def clear(image):
    image = image.convert("RGBA")
    image.putalpha(Image.fromarray(rng.integers(0, 3, (image.height, image.width), np.uint8) * 127))
    return image

files = {}
for i, (width, height) in enumerate([(8, 8), (31, 17), (64, 48), (5, 64), (72, 3)]):
    for disposal in 0, 1, 2, 3:
        still = noise(width, height)
        more = [noise(width, height, 99) for _ in range(1 + i)]
        files["%d.%d.gif" % (i, disposal)] = saved(still, "GIF", save_all=True, append_images=more, disposal=disposal,
                                                   transparency=2, background=disposal, loop=0)
    for lossless in False, True:
        still, photo = dict(lossless=lossless, quality=70, exact=True), photo_like(dice, width, height)
        more = [(0, 0, photo_like(dice, width, height), 0, still) for _ in range(1 + i)]
        name = "%d.%s.%%s.webp" % (i, "lossy" if not lossless else "lossless")
        files[name % "whole"] = webp((width, height), [(0, 0, photo, 0, still), *more])
        files[name % "alpha"] = webp((width, height), [(0, 0, clear(photo), 0, still), *more], 0x80ff8040)
        files[name % "corner"] = webp((width + 9, height + 5), [(4, 2, photo, 2, still), *more], 0xff1020e0)
        files[name % "alone"] = webp((width + 9, height + 5), [(6, 4, clear(photo), 3, still)], 0xff1020e0)
        files[name % "pillow"] = saved(photo, "WEBP", save_all=True, append_images=[m[2] for m in more], **still)
    for default in False, True:
        files["%d.%d.png" % (i, default)] = saved(photo, "PNG", save_all=True, append_images=[m[2] for m in more],
                                                  default_image=default)
want, several = [], 0
for name, data in sorted(files.items()):
    open("good/a/" + name, "wb").write(data)
    image = Image.open(io.BytesIO(data))
    several += image.n_frames > 1
    want.append(np.asarray(center_crop(image.convert("RGB"), 90)))
np.save("want.npy", np.stack(want))
open("several", "w").write(str(several))

photo, still = photo_like(dice, 20, 20), dict(lossless=True)
good = webp((24, 24), [(2, 2, photo, 0, still), (0, 0, photo, 0, still), (4, 4, photo, 0, still)])
gif = files["2.1.gif"]
second = gif.index(b"\x2c", len(gif) // 3)
bad = {"beyond.webp": webp((20, 20), [(4, 0, photo, 0, still)]), "none.webp": webp((20, 20), []),
       "lacks.webp": webp((24, 24), [(2, 2, photo, 0, still), (0, 0, photo, 0, still)])[:-40],
       "cut.webp": good[:-9], "cut.gif": gif[:-9], "noend.gif": gif[:-1],
       "odd.gif": gif[:-1] + b"?;", "first.gif": gif[:len(gif) // 6]}
bad["lacks.webp"] = b"RIFF" + struct.pack("<I", len(bad["lacks.webp"]) - 8) + bad["lacks.webp"][8:]
for name, data in bad.items():
    open("bad/a/" + name, "wb").write(data)
open("one.webp", "wb").write(good)
open("one.gif", "wb").write(gif)
for i in range(6):
    photo_like(dice, 30, 30).save("still/a/%d.png" % i)
PY
"$PYTHON" make.py

# ---- the pixels ----

ARGS=(--crop 90 --order source)
SAID="shardpack: warning: $(cat several) inputs have more frames, pages or pictures than one: the first is packed; \
--report FILE lists them"
run 0 "$PACK" images good -o ds "${ARGS[@]}" --report r.json
said "$SAID"
"$PYTHON" -c 'import numpy, os, records
got, want = records.read("ds")["image"], numpy.load("want.npy")
names = sorted(os.listdir("good/a"))
assert len(names) == len(got) == 80
for name, g, w in zip(names, got, want):
    records.same(g, w, name)'
[ "$(json r.json 'len(d["first_of_several"])')" = "$(cat several)" ] || die "$(cat r.json)"
[ "$(json r.json '[(e["input"], e["message"], e["how"]) for e in d["first_of_several"] if "4.2.g" in e["input"]]')" = \
	"[('a/4.2.gif', 'GIF has 6 frames: the first one is packed', 'first')]" ] || die "$(cat r.json)"
[ "$(json r.json '[e["message"] for e in d["first_of_several"] if ".1.png" in e["input"]][4]')" = \
	"PNG has 6 frames: the first one is packed" ] || die "$(cat r.json)"
[ "$(json r.json '[e for e in d["first_of_several"] if "alone" in e["input"]]')" = "[]" ] || die "$(cat r.json)"
run 0 "$PACK" images good -o one "${ARGS[@]}" -j 1 --sandbox --report r.html
said "$SAID"
same ds one
grep -q 'WebP has 6 frames: the first one is packed' r.html || die "$(cat r.html)"
# A dataset that is there already does not say it.
run 0 "$PACK" images good -o ds "${ARGS[@]}" --report r.json
[ "$(json r.json 'd["first_of_several"]')" = None ] || die "$(cat r.json)"

# ---- it is said by the command that seals, of shards that others built, and without receipts ----

run 0 "$PACK" plan images good -o planned "${ARGS[@]}" --shard-records 20
run 0 "$PACK" build planned -q
run 0 "$PACK" seal planned --report r.json
said "$SAID"
[ "$(json r.json 'len(d["first_of_several"])')" = "$(cat several)" ] || die "$(cat r.json)"
run 0 "$PACK" plan images good -o lost "${ARGS[@]}" --shard-records 20
run 0 "$PACK" build lost -q
lose_receipt lost 1
run 0 "$PACK" build lost -q
run 0 "$PACK" seal lost
said "$SAID"
same planned lost
# without the source a lost receipt cannot be made again in full, and the report does not claim none
run 0 "$PACK" plan images good -o blind "${ARGS[@]}" --shard-records 20
run 0 "$PACK" build blind -q
lose_receipt blind 1
edit_receipt blind 2 '1s/.*/receipt 3/'
mv good away
run 0 "$PACK" seal blind --report r.json -v
grep -q "receipts-\*: the receipt of shard 2 is of another version; making it again from the shard" err || die "$(cat err)"
[ "$(json r.json 'd["first_of_several"]')" = None ] || die "$(cat r.json)"
mv away good
same planned blind

# ---- of a further field it is said, too; of still pictures it is not ----

{
	echo path,label,other
	for i in 0 1 2; do echo "still/a/$i.png,0,one.$([ $i = 1 ] && echo gif || echo webp)"; done
} >t.csv
run 0 "$PACK" images t.csv -o further --crop 8 --field other:kind=image --report r.json
said "shardpack: warning: 3 inputs have more frames, pages or pictures than one: the first is packed; \
--report FILE lists them"
[ "$(json r.json '[e["message"] for e in d["first_of_several"] if "1.png" in e["input"]]')" = \
	"['field other, one.gif: GIF has 4 frames: the first one is packed']" ] || die "$(cat r.json)"
run 0 "$PACK" images still -o stills --crop 8
! grep -q frames err || die "$(cat err)"

# ---- a JPEG of several pictures, as phones write them; a thumbnail is none of its own ----

"$PYTHON" - <<'PY'
import io, os, struct
from PIL import Image

def jpeg(width, height, colour):
    out = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(out, "JPEG")
    return out.getvalue()

def mpo(kinds, order="<", lost=0, moved=0):
    """A JPEG, an index in the byte order, and further pictures of these kinds; the last `lost` are not there."""
    first, more = jpeg(40, 30, (9, 8, 7)), [jpeg(20, 15 + i, "red") for i in range(len(kinds))]
    head = 2 + 4 + 4  # where offsets count from: SOI, marker and length, MPF
    size = 8 + 2 + 3 * 12 + 4 + 16 * (1 + len(kinds))
    entries, at = struct.pack(order + "IIIHH", 0x20030000, len(first), 0, 0, 0), len(first) + 8 + size
    for kind, data in zip(kinds, more):
        entries += struct.pack(order + "IIIHH", kind, len(data), at - head + moved, 0, 0)
        at += len(data)
    tags = ((0xb000, 7, 4, b"0100"), (0xb001, 4, 1, struct.pack(order + "I", 1 + len(kinds))),
            (0xb002, 7, len(entries), struct.pack(order + "I", 8 + 2 + 3 * 12 + 4)))
    index = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "IH", 8, len(tags))
    index += b"".join(struct.pack(order + "HHI", *t[:3]) + t[3] for t in tags) + bytes(4) + entries
    assert len(index) == size
    segment = b"\xff\xe2" + struct.pack(">H", 2 + 4 + size) + b"MPF\0" + index
    return first[:2] + segment + first[2:] + b"".join(more[:len(more) - lost])

os.makedirs("phone/a")
files = {"still": jpeg(40, 30, (9, 8, 7)), "two": mpo([0]), "three": mpo([0x20002, 0x20002], ">"),
         "view": mpo([0x20003, 0x10001]), "thumbnails": mpo([0x10001, 0x10002]), "lost": mpo([0], lost=1),
         "moved": mpo([0], moved=3), "beyond": mpo([0], moved=1 << 31)}
assert Image.open(io.BytesIO(files["two"])).n_frames == 2
assert Image.open(io.BytesIO(files["three"])).n_frames == 3
for name, data in files.items():
    open("phone/a/%s.jpg" % name, "wb").write(data)
PY
run 0 "$PACK" images phone -o phone.ds --crop 8 --report r.json
said "shardpack: warning: 3 inputs have more frames, pages or pictures than one: the first is packed; \
--report FILE lists them"
[ "$(json r.json '[(e["input"][2:], e["message"]) for e in d["first_of_several"]]')" = \
	"[('three.jpg', 'JPEG has 3 pictures: the first one is packed'), \
('two.jpg', 'JPEG has 2 pictures: the first one is packed'), \
('view.jpg', 'JPEG has 2 pictures: the first one is packed')]" ] || die "$(cat r.json)"
run 1 "$PACK" images phone -o none --crop 8 --limit frames=2
said "shardpack: warning: phone/a/three.jpg: JPEG has 3 pictures: more than the limit of 2; --limit frames=3 packs the \
first one"

# ---- what is refused ----

run 1 "$PACK" images bad -o none "${ARGS[@]}" --on-error skip
while IFS='|' read -r name sentence; do
	said "shardpack: warning: bad/a/$name: $sentence"
done <<'END'
beyond.webp|WebP data is damaged: its frames are not an animation
none.webp|WebP data is damaged: its frames are not an animation
lacks.webp|WebP data is damaged: its frames are not an animation
cut.gif|GIF data ends early
noend.gif|GIF data ends early
first.gif|GIF data ends early
odd.gif|GIF cannot be decoded: 0x3f does not begin a frame, an extension or the end
END
said_of_one "WebP data ends early: has "
mkdir -p two/a && cp one.gif one.webp still/a/0.png two/a
run 1 "$PACK" images two -o none --crop 8 --limit frames=1
said "shardpack: warning: two/a/one.gif: GIF has 4 frames: more than the limit of 1; --limit frames=4 packs the \
first one"
said "shardpack: warning: two/a/one.webp: WebP has 3 frames: more than the limit of 1; --limit frames=3 packs the \
first one"
run 0 "$PACK" images two -o skipped --crop 8 --limit frames=1 --on-error skip
grep -q "3 inputs = 1 written + 2 skipped" err || die "$(cat err)"
echo "80 pictures as Pillow reads them"
