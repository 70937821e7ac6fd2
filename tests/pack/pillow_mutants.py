# SPDX-License-Identifier: Apache-2.0
"""Mutated images, and what Pillow says of them beside what shardpack did with them; run by
pillow_mutants.sh.

    pillow_mutants.py make SRC COUNT
        write SRC/c/00000.jpg and so on, the same ones each time
    pillow_mutants.py check SRC COUNT DUMP_JPEG_WARNINGS
        compare whole.* and small.* in this folder with Pillow

What shardpack takes, Pillow takes with the same pixels.  What shardpack refuses Pillow refuses, but
for the kinds in documented(), where shardpack is the stricter one.  Whether a file is of its kind
is not shardpack's word: libjpeg is asked by a program of its own, and a PNG is held against the
specification here.  So what is damaged by that measure may not be taken either.
"""
import io
import json
import os
import random
import struct
import subprocess
import sys
import warnings
import zlib
from collections import Counter

import numpy as np
import PIL
from PIL import Image

import records
from pillow import photo_like, transform

SEED = 41
WIDTH, HEIGHT = 93, 71
warnings.simplefilter("ignore")
Image.MAX_IMAGE_PIXELS = 89478485 // 2      # Pillow refuses what has twice as many: shardpack's limit


# ---- the formats, as lists of parts ----

def jpeg_parts(data):
    """SOI, each segment, each segment's entropy-coded data, EOI: joined they are the file."""
    parts, at = [data[:2]], 2
    while at < len(data):
        if data[at + 1] == 0xD9:
            parts.append(data[at:])
            break
        end = at + 2 + struct.unpack(">H", data[at + 2:at + 4])[0]
        parts.append(data[at:end])
        if data[at + 1] == 0xDA:
            at = end
            while data[end] != 0xFF or data[end + 1] == 0 or 0xD0 <= data[end + 1] <= 0xD7:
                end += 1
            parts.append(data[at:end])
        at = end
    return parts


def png_parts(data):
    parts, at = [data[:8]], 8
    while at < len(data):
        end = at + 12 + struct.unpack(">I", data[at:at + 4])[0]
        parts.append(data[at:end])
        at = end
    return parts


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


# ---- valid files ----

def saved(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def png16(image, color_type):
    """Samples of 16 bits, which Pillow does not write for colours."""
    samples = np.asarray(image).astype(">u2") * 257 ^ 0x35
    rows = samples.reshape(HEIGHT, -1)
    body = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 16, color_type, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def interlaced(image):
    """Adam7, which Pillow does not write."""
    pixels, body = np.asarray(image), b""
    for x, y, dx, dy in (
        (0, 0, 8, 8),
        (4, 0, 8, 8),
        (0, 4, 4, 8),
        (2, 0, 4, 4),
        (0, 2, 2, 4),
        (1, 0, 2, 2),
        (0, 1, 1, 2),
    ):
        for row in pixels[y::dy, x::dx]:
            body += b"\0" + row.tobytes()
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(body)) + chunk(b"IEND", b"")


def bases(rng):
    image = photo_like(rng, WIDTH, HEIGHT)
    gray, alpha = image.convert("L"), image.copy()
    alpha.putalpha(gray)
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "a picture of waves"
    jpeg = [saved(image, "JPEG", quality=q, **o) for q, o in [
        (80, {"subsampling": 2}), (90, {"subsampling": 0}), (70, {"subsampling": 1, "exif": exif}),
        (80, {"subsampling": 2, "progressive": True}), (60, {"subsampling": 0, "progressive": True, "dpi": (72, 72)}),
        (50, {"optimize": True, "icc_profile": b"not a profile" * 20}), (75, {"comment": b"hello"})]]
    jpeg += [saved(gray, "JPEG", quality=85), saved(gray, "JPEG", quality=85, progressive=True),
             saved(image.convert("CMYK"), "JPEG", quality=80)]
    png = [saved(image, "PNG"), saved(alpha, "PNG"), saved(gray, "PNG"), saved(alpha.convert("LA"), "PNG"),
           saved(image.quantize(100), "PNG"), saved(image.quantize(9), "PNG", transparency=1),
           saved(gray.convert("1"), "PNG"), saved(image, "PNG", dpi=(72, 72), icc_profile=b"no profile" * 9),
           png16(gray, 0), png16(image, 2), interlaced(image)]
    text = chunk(b"tEXt", b"Title\0waves") + chunk(b"gAMA", struct.pack(">I", 45455)) + chunk(b"tIME", bytes(7))
    png += [png[0][:33] + text + png[0][33:], png[2][:-12] + text[:23] + png[2][-12:]]
    return jpeg, png


# ---- mutations: of a file's bytes, of its parts, and of what only makes sense in one format ----

def flip_bits(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def overwrite(rng, data):
    at, count = rng.randrange(len(data)), rng.choice([1, 2, 4, 16, 64])
    run = rng.choice([bytes(count), b"\xff" * count, rng.randbytes(count)])
    return data[:at] + run + data[at + count:]


def remove(rng, data):
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.choice([1, 2, 16, 200]):]


def insert(rng, data):
    at = rng.randrange(len(data))
    return data[:at] + rng.randbytes(rng.choice([1, 2, 16, 200])) + data[at:]


def truncate(rng, data):
    return data[:-rng.choice([1, 2, 4, 12, 16, rng.randrange(1, len(data) - 8), rng.randrange(1, len(data) - 8)])]


def append(rng, data):
    return data + rng.choice([bytes(50), rng.randbytes(50), data])


def swap(rng, parts):
    a, b = rng.randrange(1, len(parts)), rng.randrange(1, len(parts))
    parts[a], parts[b] = parts[b], parts[a]


def duplicate(rng, parts):
    parts.insert(rng.randrange(1, len(parts) + 1), rng.choice(parts[1:]))


def drop(rng, parts):
    del parts[rng.randrange(1, len(parts))]


def change_length(rng, parts, form):
    i = rng.randrange(1, len(parts))
    at, size = (2, 2) if form == ">H" else (0, 4)
    if len(parts[i]) < at + size:
        return
    old = struct.unpack(form, parts[i][at:at + size])[0]
    new = rng.choice([0, 1, old + 1, max(old - 1, 0), old * 2, 0xFFFF]) & 0xFFFF
    parts[i] = parts[i][:at] + struct.pack(form, new) + parts[i][at + size:]


def new_side(rng, old):
    return rng.choice([0, 1, old - 1, old + 1, old + 8, old * 2, rng.randrange(1, 300), rng.randrange(1, 9000), 65535])


def jpeg_head(rng, parts):
    """Another size, samplings or numbers in a frame head, or a changed segment that stays one."""
    i = rng.choice([k for k, p in enumerate(parts) if p[:1] == b"\xff" and len(p) > 5])
    if rng.random() < 0.6:
        i = next(k for k, p in enumerate(parts) if p[:1] == b"\xff" and p[1] in (0xC0, 0xC1, 0xC2))
    body = bytearray(parts[i])
    if body[1] in (0xC0, 0xC1, 0xC2) and rng.random() < 0.6:
        at = rng.choice([5, 7])
        body[at:at + 2] = struct.pack(">H", new_side(rng, struct.unpack(">H", body[at:at + 2])[0]))
    else:
        body[rng.randrange(4, len(body))] = rng.choice(
            [0, 1, 2, 3, 4, 8, 12, 0x11, 0x22, 0x31, 0xFF, rng.randrange(256)]
        )
    parts[i] = bytes(body)


def png_head(rng, parts):
    """A changed chunk whose checksum is right, often the head."""
    i = rng.choice([1, rng.randrange(1, len(parts))])
    body = bytearray(parts[i][8:-4])
    if parts[i][4:8] == b"IHDR" and rng.random() < 0.6:
        at = rng.choice([0, 4])
        body[at:at + 4] = struct.pack(">I", rng.choice([new_side(rng, WIDTH), 1 << 31, 1 << 20]))
    elif body:
        body[rng.randrange(len(body))] = rng.choice([0, 1, 2, 3, 4, 6, 8, 16, 255, rng.randrange(256)])
    parts[i] = chunk(parts[i][4:8], bytes(body))


def png_data(rng, parts):
    """Other filtered rows, packed again: impossible filters, too few, too many, several chunks."""
    rows = bytearray(zlib.decompress(b"".join(p[8:-4] for p in parts if p[4:8] == b"IDAT")))
    how = rng.randrange(5)
    if how == 0:
        rows[rng.randrange(len(rows))] = rng.choice([0, 1, 4, 5, 255])
    elif how == 1:
        rows = rows[:-rng.choice([1, 100])]
    elif how == 2:
        rows += bytes(rng.choice([1, 100]))
    elif how == 3:
        rows[0] = rng.choice([5, 64, 255])
    packed = zlib.compress(bytes(rows), rng.choice([0, 1, 9]))
    cut = rng.randrange(1, len(packed))
    first = next(k for k, p in enumerate(parts) if p[4:8] == b"IDAT")
    rest = [p for p in parts if p[4:8] != b"IDAT"]
    parts[:] = rest[:first] + [chunk(b"IDAT", packed[:cut]), chunk(b"IDAT", packed[cut:])] + rest[first:]


BYTES = [flip_bits, flip_bits, flip_bits, overwrite, remove, insert, truncate, append]
PARTS = [swap, duplicate, drop]


def mutate(rng, data):
    is_jpeg = data[:2] == b"\xff\xd8"
    how = rng.randrange(10)
    if how < 5:
        return rng.choice(BYTES)(rng, data)
    parts = (jpeg_parts if is_jpeg else png_parts)(data)
    if how < 7:
        rng.choice(PARTS)(rng, parts)
    elif how < 8:
        change_length(rng, parts, ">H" if is_jpeg else ">I")
    elif is_jpeg:
        jpeg_head(rng, parts)
    else:
        rng.choice([png_head, png_data])(rng, parts)
    return b"".join(parts)


def make(folder, count):
    rng = random.Random(SEED)
    jpeg, png = bases(rng)
    whole = jpeg + png
    for data in whole:
        assert b"".join((jpeg_parts if data in jpeg else png_parts)(data)) == data
    os.makedirs(folder + "/c")
    for i in range(count):
        data = whole[i] if i < len(whole) else mutate(rng, rng.choice(jpeg if i % 2 else png))
        with open("%s/c/%05d.%s" % (folder, i, "jpg" if data[:1] == b"\xff" else "png"), "wb") as out:
            out.write(data)


# ---- what Pillow says ----

def pillow(data):
    """The image, or None and the words of the refusal."""
    try:
        image = Image.open(io.BytesIO(data), formats=["JPEG", "PNG", "MPO"])
        return image.convert("RGB"), ""
    except Exception as e:
        return None, "%s: %s" % (type(e).__name__, e)


# ---- what the formats and libjpeg say, without shardpack ----

# Odd metadata, and junk between segments of the head: the pixels are right, and Pillow's.
HARMLESS = ("Unknown Adobe color transform code", "Warning: unknown JFIF revision number")


def jpeg_faults(program, paths):
    """What libjpeg has to say of each file, without what harms nobody."""
    out = subprocess.run(
        [program], input="\n".join(paths), stdout=subprocess.PIPE, check=True, encoding="latin-1"
    ).stdout
    faults = []
    for line in out.split("\n")[:-1]:
        said = [w for w in line.split("\t") if w]
        said = [w for w in said if not (w.startswith("head: Corrupt JPEG data: ") and "extraneous bytes before" in w)]
        faults.append([w for w in said if w.partition(": ")[2].startswith(HARMLESS) is False])
    assert len(faults) == len(paths)
    return faults


CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}


def png_fault(data):
    """The first rule of the PNG specification that chunks with pixels break, in words, or None."""
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        return "no signature"
    at, head, palette, packed, idat_ended = 8, None, None, [], False
    while True:
        if len(data) - at < 12:
            return "ends early"
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body, crc = data[at + 8:at + 8 + size], data[at + 8 + size:at + 12 + size]
        if not kind.isalpha():
            return "a chunk without a name"
        if len(crc) < 4:
            return "ends early"
        at += 12 + size
        if struct.unpack(">I", crc)[0] != zlib.crc32(kind + body):
            return "checksum"
        if (head is None) != (kind == b"IHDR") and not kind[0] & 0x20:
            return "IHDR out of place"
        if kind == b"IHDR":
            head = struct.unpack(">IIBBBBB", body) if size == 13 else (0,) * 7
            w, h, depth, color, compression, filters, interlace = head
            if not 0 < w < 1 << 31 or not 0 < h < 1 << 31 or depth not in DEPTHS.get(color, ()):
                return "IHDR"
            if compression or filters or interlace > 1:
                return "IHDR"
        elif kind == b"PLTE":
            most = 3 * (1 << depth if color == 3 else 256)
            if packed or palette is not None or color in (0, 4) or size % 3 or not 0 < size <= most:
                return "PLTE"
            palette = body
        elif kind == b"IDAT":
            if idat_ended or (color == 3 and palette is None):
                return "IDAT out of place"
            packed.append(body)
        elif kind == b"IEND":
            if not packed or size:
                return "IEND"
            break
        elif not kind[0] & 0x20:
            return "unknown chunk"
        idat_ended = idat_ended or bool(packed and kind != b"IDAT")
    return data_fault(head, packed)


def data_fault(head, packed):
    """`packed` is the IDAT chunks.  Nobody reads those behind the end of the compressed data."""
    w, h, depth, color, _, _, interlace = head
    unpacker, rows = zlib.decompressobj(), b""
    try:
        for body in packed:
            rows += b"" if unpacker.eof else unpacker.decompress(body)
    except zlib.error as e:
        return "zlib: %s" % e
    if not unpacker.eof or unpacker.unused_data:
        return "zlib: ends early, or late"
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    at = 0
    for x, y, dx, dy in passes if interlace else [(0, 0, 1, 1)]:
        pw, ph = (w - x + dx - 1) // dx, (h - y + dy - 1) // dy
        for _ in range(ph if pw > 0 else 0):
            if at >= len(rows):
                return "%d bytes of pixels are too few" % len(rows)
            if rows[at] > 4:
                return "filter"
            at += 1 + (pw * depth * CHANNELS[color] + 7) // 8
    if at != len(rows):
        return "%d bytes of pixels instead of %d" % (len(rows), at)
    return None


def palette_fault(data):
    """A pixel whose colour is not in the palette; Pillow gives the indices as they are."""
    image = Image.open(io.BytesIO(data))
    if image.mode == "P" and np.asarray(image).max() >= len(image.palette.palette) // 3:
        return "palette index"
    return None


# ---- shardpack beside it ----

def outcomes(name):
    """What shardpack did with each file: its record and None, or None and the words of refusal."""
    with open(name + ".list") as f:
        done = {r["key"]: (r["index"], None) for r in json.load(f)["records"]}
    with open(name + ".json") as f:
        report = json.load(f)
    for b in report["bad_inputs"]:
        assert b["input"] not in done, b
        done[b["input"]] = None, b["reason"] + ": " + b["message"]
    assert len(done) == report["inputs"]
    return done


def documented(data, image, fault, said):
    """The documented kind of this refusal of a file that Pillow takes; None without a reason."""
    if data[:2] == b"\xff\xd8":
        words = said.partition(": ")[2]
        if fault and said.startswith(("damaged: JPEG data is damaged: ", "truncated: JPEG data ends early: ")):
            return "JPEG of which libjpeg warns"
        if fault and words.startswith("JPEG cannot be decoded: "):
            return "JPEG with an error after its last row"
        return None
    if fault:
        return "PNG that breaks a rule"
    if said.startswith("damaged: PNG data is damaged: palette index") and palette_fault(data):
        return "PNG with an index beyond its palette"
    if said.startswith("unsupported: PNG is gray with 16 bits") and data[24:26] == b"\x10\0":
        return "PNG of 16 bit gray"
    if said.startswith("over a limit: ") and max(image.size) > 65500:
        return "PNG with a side over 65,500"
    return None


def same(image, pixels, resize, crop):
    return bool((np.asarray(transform(image, resize, crop, Image.BILINEAR)) == pixels).all())


def judge(data, fault, record, said, whole, small):
    """What became of a file, and whether that is as it must be."""
    image, words = pillow(data)
    if record is None:
        if image is None:
            return "refused by both", True
        kind = documented(data, image, fault, said)
        return kind or "refused without reason, Pillow takes it: " + said, kind is not None
    if fault:
        return "taken, but: %s" % fault, False
    if image is None:
        return "taken, Pillow refuses it: " + words, False
    if not same(image, whole, 0, WHOLE):
        return "other pixels than Pillow's", False
    if max(image.size) < 100 * min(image.size) and not same(image, small, *SMALL):
        return "other pixels than Pillow's when resized", False
    return "taken by both", True


def check(folder, count, program):
    whole, small = outcomes("whole"), outcomes("small")
    assert len(whole) == count
    whole_pixels, small_pixels = (records.read(n + ".ds", verify=False)["image"] for n in ("whole", "small"))
    keys = sorted(whole)
    jpeg = [k for k in keys if k.endswith(".jpg")]
    fault = dict(zip(jpeg, jpeg_faults(program, [folder + "/" + k for k in jpeg])))
    kinds, failures = Counter(), 0
    for key in keys:
        with open(folder + "/" + key, "rb") as f:
            data = f.read()
        record, said = whole[key]
        what, good = judge(data, fault[key] if key in fault else png_fault(data), record, said,
                           None if record is None else whole_pixels[record],
                           None if record is None else small_pixels[small[key][0]])
        if said != small[key][1]:
            what, good = "two verdicts: %s, and %s" % (said, small[key][1]), False
        kinds[key[-3:].upper() + " " + what if what.startswith(("taken by", "refused by")) else what] += 1
        if not good:
            failures += 1
            print("%s: %s" % (key, what))
    for kind, n in sorted(kinds.items()):
        print("%5d %s" % (n, kind))
    for kind in EXPECTED:
        if not kinds[kind]:
            failures += 1
            print("no file of the kind: " + kind)
    print("%d mutants, %d taken with the pixels of Pillow %s, %d verdicts without a reason"
          % (len(keys), sum(r is not None for r, _ in whole.values()), PIL.__version__, failures))
    return 1 if failures else 0


WHOLE, SMALL = 112, (64, 56)     # the crop of all pixels, and resize and crop
EXPECTED = ["JPG taken by both", "JPG refused by both", "PNG taken by both", "PNG refused by both",
            "JPEG of which libjpeg warns", "PNG that breaks a rule", "PNG of 16 bit gray"]


def main():
    folder, count = sys.argv[2], int(sys.argv[3])
    if sys.argv[1] == "make":
        return make(folder, count)
    return check(folder, count, sys.argv[4])


if __name__ == "__main__":
    sys.exit(main())
