# SPDX-License-Identifier: Apache-2.0
"""Compare the orientation of drawn files with Pillow: EXIF, XMP, both, and damage in either.

    orientation.py PROGRAM [COUNT]      PROGRAM is tests/pack/dump_transform; by _pillows.sh

Every file holds one small picture without loss of its corners, so a turn shows in its size or its
pixels.  Containers are put together here, byte by byte: Pillow writes none of the damage, and not
all of the kinds.  Files that Pillow refuses are counted, and compared with nothing.  SEED=n repeats
a run.
"""
import io
import os
import random
import re
import struct
import sys
import tempfile
import warnings
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from pillow import SEED, SHORT, difference, pixels_of, run

XAP = b"http://ns.adobe.com/xap/1.0/\0"
EXTENSION = b"http://ns.adobe.com/xmp/extension/\0"
XMP_KEY, RAW_KEY = b"XML:com.adobe.xmp", b"Raw profile type exif"
FORMATS = {1: "B", 2: "s", 3: "H", 4: "I", 5: "II", 6: "b", 7: "s", 8: "h", 9: "i", 10: "ii", 11: "f", 12: "d",
           13: "I", 16: "Q"}
LEAST = 25  # so many of 2,000 have each trait


def value_of(rng, kind, order, number):
    layout = order + FORMATS[kind]
    if kind in (2, 7):
        return b"%d" % number
    if kind in (5, 10):
        below = rng.choice([0, 1, 1, 2, 3])
        above = number * below + rng.choice([0, 0, 0, 1])
        sign = rng.choice([1, -1]) if kind == 10 else 1
        return struct.pack(layout, sign * above, sign * below)
    if kind in (11, 12):
        return struct.pack(layout, number + rng.choice([0, 0, 0, 0.5, float("nan")]))
    return struct.pack(layout, number)


def tiff(rng):
    """EXIF data without its prefix; what is drawn for it is in its traits."""
    order, traits = rng.choice("<>"), set()
    entries, tail = [], b""
    count = rng.randint(0, 4)
    begin = 8 + 2 + 12 * count + 4
    for _ in range(count):
        tag = rng.choice([0x112, 0x112, 0x10f, 0x110, 0x131])
        kind = rng.choice([3, 3, 3, 3, *FORMATS, 0, 14, 15, 17, 99])
        many = rng.choice([1, 1, 1, 1, 0, 2, 3])
        number = rng.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 200])
        if kind == 6:
            number = min(number, 100)
        value = b"".join(value_of(rng, kind, order, number) for _ in range(many)) if kind in FORMATS else b"\6\0\0\0"
        if kind == 2:
            many = len(value)
        if len(value) > 4:
            where = begin + len(tail)
            tail += value
            if rng.random() < 0.15:
                where = rng.choice([1 << 31, len(tail) + begin - 2])
                traits.add("values nowhere")
            if rng.random() < 0.1:
                many = rng.choice([100, 5000, 1 << 30])
                traits.add("values too many")
            value = struct.pack(order + "I", where)
        if tag == 0x112:
            traits |= {"two entries"} if "entry" in traits else set()
            traits |= {"entry", "odd type"} if kind not in (3, 4) else {"entry"}
        entries.append(struct.pack(order + "HHI", tag, kind, many) + value.ljust(4, b"\0"))
    magic = {"<": b"II*\0", ">": b"MM\0*"}[order]
    offset, claimed = 8, count
    damage = rng.random()
    if damage < 0.05:
        magic = rng.choice([b"XX*\0", b"II\0*", b"MM*\0", b"II+\0"])
    elif damage < 0.10:
        offset = rng.choice([0, 1 << 31, 10_000, 0xffffffff])
    elif damage < 0.15:
        claimed += rng.randint(1, 300)
    data = magic + struct.pack(order + "IH", offset, claimed) + b"".join(entries) + bytes(4) + tail
    if 0.15 < damage < 0.25:
        data = data[:rng.randint(0, len(data))]
    if damage < 0.25:
        traits.add("damaged EXIF")
    return data, traits


def xmp(rng):
    """XMP: mostly as programs write it, and things that look like it."""
    digit = rng.choice("0123456789")
    said = rng.choice([
        f'<d tiff:Orientation="{digit}"/>', f"<tiff:Orientation>{digit}</tiff:Orientation>",
        f'<d tiff:Orientation="{digit}"/>', f"<tiff:Orientation>{digit}</tiff:Orientation>",
        f"<d tiff:Orientation='{digit}'/>", f'<d tiff:Orientation = "{digit}"/>', f'<d exif:Orientation="{digit}"/>',
        f"<tiff:Orientation> {digit}</tiff:Orientation>", f'<d tiff:Orientation=""/><d tiff:Orientation="{digit}"/>',
        f'<d tiff:Orientation="x"/><tiff:Orientation>{digit}', f'tiff:Orientatiff:Orientation="{digit}',
        f'<tiff:Orientation>{digit}<d tiff:Orientation="6"/>', 'tiff:Orientation="', "tiff:Orientation", "", "<x/>"])
    data = rng.choice(["", "<x:xmpmeta>" * rng.randint(1, 40)]).encode() + said.encode()
    if rng.random() < 0.5:
        data += rng.choice([b"</x>", b"\0\0", b"\xff\xfe", b"\xc3\xa9", b" " * 4000])
    return data


def corrupt(rng, data):
    if data and rng.random() < 0.1:
        at = rng.randrange(len(data))
        data = data[:at] + rng.randbytes(rng.randint(0, 2)) + data[at + 1:]
    return data


def segment(marker, payload):
    return bytes([0xff, marker]) + struct.pack(">H", len(payload) + 2) + payload


def jpeg(rng, picture, traits):
    parts = []
    for _ in range(rng.choice([0, 1, 1, 1, 2])):
        data, said = tiff(rng)
        traits |= said | {"EXIF"}
        prefix = b"Exif\0\0" * rng.choice([1, 1, 1, 1, 2, 3]) if rng.random() < 0.95 else b"Exif\0x"
        parts.append(segment(0xe1, prefix + data))
    for _ in range(rng.choice([0, 1, 1, 2])):
        traits.add("XMP")
        parts.append(segment(0xe1, rng.choice([XAP] * 6 + [EXTENSION, XAP[:-1]]) + corrupt(rng, xmp(rng))))
    if rng.random() < 0.15:  # EXIF that is cut into two segments
        data, said = tiff(rng)
        cut = rng.randint(0, len(data))
        traits |= said | {"EXIF", "EXIF in two segments"}
        parts = [part for part in parts if b"Exif\0\0" not in part[:12]]
        parts += [segment(0xe1, b"Exif\0\0" + data[:cut]), segment(0xe1, b"Exif\0\0" + data[cut:])]
    elif rng.random() < 0.8:
        rng.shuffle(parts)
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=95)
    data = out.getvalue()
    at = 2 + 2 + struct.unpack(">H", data[4:6])[0] if rng.random() < 0.5 else 2  # behind JFIF, or before it
    return data[:at] + b"".join(parts) + data[at:]


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def deflated(rng, data):
    packed = zlib.compress(data)
    draw = rng.random()
    return packed[:rng.randint(0, len(packed))] if draw < 0.1 else packed[:2] + b"\xff" + packed[3:] \
        if draw < 0.2 else packed


def text(rng, key, value, kinds=(b"tEXt", b"zTXt", b"iTXt", b"iTXt")):
    kind = rng.choice(kinds)
    if kind == b"tEXt":
        return chunk(kind, key + rng.choice([b"\0"] * 9 + [b""]) + value)
    if kind == b"zTXt":
        return chunk(kind, key + b"\0" + rng.choice([b"\0"] * 9 + [b""]) + deflated(rng, value))
    flag, method = rng.choice([(0, 0), (0, 1), (1, 0), (1, 0), (1, 1), (7, 0)])
    language = rng.choice([b"", b"en", b"\xff"])
    return chunk(kind, key + b"\0" + bytes([flag, method]) + language + b"\0" + rng.choice([b"", b"\xc3\xa9"]) + b"\0" +
                 (deflated(rng, value) if flag else value))


def raw_profile(rng):
    data, traits = tiff(rng)
    digits = (b"Exif\0\0" * rng.choice([0, 1, 2]) + data).hex()
    digits = "\n".join(re.findall(".{1,72}", digits))
    if rng.random() < 0.2:
        digits = rng.choice([digits.upper(), digits + "0", digits + "zz", digits.replace("00", "00 "), " \t" + digits])
    head = rng.choice(["\nexif\n      %d\n" % len(data)] * 8 + ["exif\n", ""])
    return (head + digits).encode(), traits


def png(rng, picture, traits):
    out = io.BytesIO()
    picture.save(out, "PNG")
    data = out.getvalue()
    idat = data.index(b"IDAT") - 4
    before, behind = [], []
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        exif, said = tiff(rng)
        traits |= said | {"EXIF"}
        rng.choice([before, behind]).append(chunk(b"eXIf", b"Exif\0\0" * rng.choice([0, 0, 0, 1, 2]) + exif))
    for _ in range(rng.choice([0, 0, 1])):
        exif, said = raw_profile(rng)
        traits |= said | {"raw profile"}
        rng.choice([before, behind]).append(text(rng, RAW_KEY, exif))
    for _ in range(rng.choice([0, 1, 1, 2])):
        traits.add("XMP")
        rng.choice([before, behind]).append(text(rng, rng.choice([XMP_KEY] * 9 + [b"XML"]), corrupt(rng, xmp(rng))))
    if rng.random() < 0.05:
        before.append(chunk(b"tEXt", b"exif\0" + tiff(rng)[0]))
    return data[:idat] + b"".join(before) + data[idat:-12] + b"".join(behind) + data[-12:]


def webp(rng, picture, traits):
    out = io.BytesIO()
    picture.save(out, "WEBP", lossless=True)
    parts, flags = [out.getvalue()[12:]], rng.choice([0x0c, 0x0c, 0x0c, 0x08, 0x04, 0])
    for _ in range(rng.choice([0, 1, 1, 2])):
        exif, said = tiff(rng)
        traits |= said | {"EXIF"}
        parts.append((b"EXIF", b"Exif\0\0" * rng.choice([0, 0, 1, 2, 3]) + exif))
    for _ in range(rng.choice([0, 1, 1, 2])):
        traits.add("XMP")
        parts.append((b"XMP ", corrupt(rng, xmp(rng))))
    parts[1:] = [name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2) for name, data in parts[1:]]
    size = b"".join((side - 1).to_bytes(3, "little") for side in picture.size)
    body = b"WEBPVP8X" + struct.pack("<II", 10, flags) + size + b"".join(parts)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def upright(path):
    """As Pillow turns it, or None if it refuses the file."""
    try:
        with Image.open(path) as image:
            return ImageOps.exif_transpose(image).convert("RGB")
    except Exception:  # of many kinds: Pillow reads the data, and after a turn writes it again
        return None


def compare(program, jobs, pixels, wanted):
    """What differs from the wanted images, by the rules of one Pillow."""
    asked = [(path, (0, 0, 0, 0, SHORT, pixels, 0, 1), story) for path, story in jobs]
    for (_, _, story), want, answer in zip(asked, wanted, run(program, asked)):
        what = difference(answer, want, 0)
        if what:
            yield f"{story}: {what}"


def main():
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 500
    rng, seen, turned = random.Random(SEED), Counter(), Counter()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        jobs, wanted = [], []
        for i in range(count):
            samples = np.random.default_rng(rng.getrandbits(32)).integers(0, 255, (2, 3, 3), np.uint8)
            picture = Image.fromarray(samples).resize((33, 18), Image.NEAREST)
            make = rng.choice([jpeg, png, webp])
            traits = set()
            path = Path(folder) / f"{i}.{make.__name__}"
            path.write_bytes(make(rng, picture, traits))
            want = upright(path)
            if want is None:
                continue
            is_turned = not np.array_equal(np.asarray(want), np.asarray(Image.open(path).convert("RGB")))
            seen.update(traits | {make.__name__})
            if is_turned:
                turned.update([make.__name__, f"{make.__name__} by XMP"] if "entry" not in traits else [make.__name__])
            jobs.append((path, f"{i} {make.__name__} {sorted(traits)}"))
            wanted.append(want)
        differ = list(compare(program, jobs, pixels_of(), wanted))
        others = list(compare(program, jobs, 2 if pixels_of() < 2 else 1, wanted))
    least = LEAST if count >= 2000 else 0
    names = ["jpeg", "png", "webp", "EXIF", "XMP", "raw profile", "entry", "odd type", "two entries", "damaged EXIF",
             "values nowhere", "values too many", "EXIF in two segments"]
    failures = [f"{name} comes up {seen[name]} times" for name in names if seen[name] < least]
    failures += [f"{turned[name]} {name} turned" for form in names[:3] for name in (form, f"{form} by XMP")
                 if turned[name] < least]
    failures += ["the rules of another Pillow go unnoticed"] if least and not others else []
    print(f"control: {len(others)} differ by the rules of another Pillow")
    print(*failures, *differ[:20], sep="\n")
    print(f"{len(jobs)} files of {count} that Pillow {Image.__version__} opens, {sum(turned[n] for n in names[:3])} "
          f"turned, {len(differ)} differ, SEED={SEED}")
    return 1 if failures or differ or not jobs else 0


if __name__ == "__main__":
    sys.exit(main())
