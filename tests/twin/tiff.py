# SPDX-License-Identifier: Apache-2.0
"""Compare drawn TIFFs with Pillow: kinds of samples, strips and tiles, compressions, byte orders.

    tiff.py PROGRAM [COUNT]      PROGRAM is tests/pack/dump_transform; by _pillows.sh

The files are put together here, byte by byte: Pillow writes few of the kinds.  Of each there is a
second page sometimes, and an orientation, which Pillow applies when it reads.  Kinds that are not
read must be refused.  SEED=n repeats a run.
"""
import io
import os
import random
import struct
import sys
import tempfile
import zlib

import numpy as np
from PIL import Image

from drawn import AS_IT_IS, SEED, arguments, compare_drawn, compared, put
from pillow import compare, photo_like, pixels_of

LEAST, FULL = 20, 2000  # so often each kind comes up, in so many files
RAW, CCITT, G3, G4, LZW, JPEG, ADOBE, PACKBITS, DEFLATE = 1, 2, 3, 4, 5, 7, 8, 32773, 32946
WHITE, BLACK, RGB, PALETTE, CMYK, YCBCR, LAB = 0, 1, 2, 3, 5, 6, 8
# (photometric, bits, extra samples, samples): all that is read, but for JPEG and CCITT
GOOD = [(white, bits, [], 1) for white in (WHITE, BLACK) for bits in (1, 2, 4, 8)]
GOOD += [(PALETTE, bits, [], 1) for bits in (1, 2, 4, 8)] + [(BLACK, 8, [2], 2), (PALETTE, 8, [2], 2)]
GOOD += [(RGB, 8, [], 3)] * 4 + [(RGB, 8, [], 4)]
GOOD += [(RGB, 8, extra, 3 + len(extra)) for extra in ([0], [1], [2], [0, 0], [1, 0], [2, 0], [2, 0, 0])]
GOOD += [(RGB, 16, [], 3), (RGB, 16, [], 4), (RGB, 16, [0], 4), (RGB, 16, [2], 4), (CMYK, 8, [], 4)]
BAD = [(BLACK, 16, [], 1), (WHITE, 16, [], 1), (BLACK, 8, [0], 2), (BLACK, 8, [1], 2), (RGB, 16, [1], 4),
       (CMYK, 16, [], 4), (LAB, 8, [], 3), (YCBCR, 8, [], 3), (RGB, 4, [], 3), (PALETTE, 16, [], 1), (BLACK, 3, [], 1),
       (RGB, 8, [2, 2], 5), (RGB, 8, [], 5), (CMYK, 8, [2], 5), (BLACK, 32, [], 1), (9, 8, [], 1)]
REVERSED = bytes(int(f"{i:08b}"[::-1], 2) for i in range(256))


def packed(samples, bits, big):
    """Rows of samples, each from a new byte on."""
    rows = samples.reshape(samples.shape[0], -1)
    if bits == 32:
        return rows.astype(">u4" if big else "<u4").tobytes()
    if bits == 16:
        return rows.astype(">u2" if big else "<u2").tobytes()
    if bits == 8:
        return rows.astype(np.uint8).tobytes()
    each = (rows[..., None] >> np.arange(bits - 1, -1, -1) & 1).reshape(rows.shape[0], -1)
    return np.packbits(each.astype(np.uint8), axis=1).tobytes()


def lzw(data):
    """Codes of 9 bits only: the table is cleared before they get longer."""
    codes = []
    for i, byte in enumerate(data):
        codes += [256, byte] if i % 200 == 0 else [byte]
    text = "".join(f"{code:09b}" for code in codes + [257])
    return int(text + "0" * (-len(text) % 8), 2).to_bytes(-(-len(text) // 8), "big")


def packbits(data, row):
    out = b""
    for start in range(0, len(data), row):
        line = data[start:min(start + row, len(data))]
        while line:
            run = next((i for i, b in enumerate(line) if b != line[0] or i == 128), min(len(line), 128))
            take = line[:128]
            out += bytes([257 - run, line[0]]) if run > 2 else bytes([len(take) - 1]) + take
            line = line[run:] if run > 2 else line[len(take):]
    return out


def predicted(samples, bits):
    """Differences of each sample to the one before it in its row."""
    out = samples.astype(np.int64)
    out[:, 1:] -= samples[:, :-1].astype(np.int64)
    return out % (1 << bits)


def jpeg(rng, samples):
    out = io.BytesIO()
    samples = samples.astype(np.uint8)
    image = Image.fromarray(samples if samples.shape[2] > 1 else samples[..., 0])
    image.save(out, "JPEG", quality=rng.randint(40, 95), subsampling=0)
    return out.getvalue()


def chunks(rng, samples, tiled):
    """The parts of a plane, in order, and the tags that say how large they are."""
    height, width = samples.shape[:2]
    if not tiled:
        rows = rng.choice([1, 2, 7, 8, 16, height, height, height + 9])
        if rng.random() < 0.5:
            rows = max(8, rows // 8 * 8)
        return [samples[y:y + rows] for y in range(0, height, rows)], [(278, 4, [rows])]
    across, down = 16 * rng.randint(1, 5), 16 * rng.randint(1, 5)
    filled = np.pad(samples, ((0, -height % down), (0, -width % across), (0, 0)), rng.choice(["edge", "constant"]))
    parts = [filled[y:y + down, x:x + across] for y in range(0, height, down) for x in range(0, width, across)]
    return parts, [(322, 3, [across]), (323, 3, [down])]


def entry_bytes(kind, values, big):
    if kind in (1, 2, 7):
        return bytes(values)
    return struct.pack((">" if big else "<") + {3: "H", 4: "I"}[kind] * len(values), *values)


def directory(tags, at, big, following):
    """A page's tags, placed at `at`, and what belongs to them; is there a page following?"""
    order = ">" if big else "<"
    entries, tail = b"", b""
    tail_at = at + 2 + 12 * len(tags) + 4
    for tag, kind, values in sorted(tags):
        data = entry_bytes(kind, values, big)
        count = len(data) // {1: 1, 2: 1, 7: 1, 3: 2, 4: 4}[kind]
        if len(data) > 4:
            place = struct.pack(order + "I", tail_at + len(tail))
            tail += data + bytes(len(data) % 2)
        else:
            place = data + bytes(4 - len(data))
        entries += struct.pack(order + "HHI", tag, kind, count) + place
    end = tail_at + len(tail)
    return struct.pack(order + "H", len(tags)) + entries + struct.pack(order + "I", end if following else 0) + tail


def file_of(rng, tags, parts, big, pages=1):
    """Parts first, then the pages, which all show them."""
    places, data = [], b""
    for part in parts:
        places.append(8 + len(data))
        data += part + bytes(len(part) % 2)
    tiled = any(tag == 322 for tag, _, _ in tags)
    tags = tags + [(324 if tiled else 273, 4, places), (325 if tiled else 279, 4, [len(p) for p in parts])]
    head = (b"MM\0*" if big else b"II*\0") + struct.pack((">" if big else "<") + "I", 8 + len(data))
    out = head + data
    for page in range(pages):
        out += directory(tags, len(out), big, page + 1 < pages)
    return out


def further_tags(rng, traits):
    """Tags that change nothing, and the orientation."""
    tags = []
    if rng.random() < 0.3:
        tags.append((274, 3, [rng.randint(1, 8)]))
        traits.add("orientation")
    if rng.random() < 0.2:
        tags.append((40000 + rng.randint(0, 99), 4, [1, 2, 3]))
    if rng.random() < 0.2:
        tags.append((305, 2, b"a program that ends no text"))
    return tags


def draw(rng, width, height, kind, traits):
    """A file of samples in one plane or several, in strips or tiles."""
    photometric, bits, extra, count = kind
    big, tiled = rng.random() < 0.5, rng.random() < 0.4
    separate = photometric == RGB and bits == 8 and count == 3 and rng.random() < 0.5
    compression = rng.choice([RAW, RAW, LZW, ADOBE, DEFLATE, PACKBITS])
    reverse = count in (1, 3) and bits < 16 and compression != RAW and rng.random() < 0.3
    predictor = compression in (LZW, ADOBE, DEFLATE) and bits in (8, 16) and rng.random() < 0.4
    noise = np.random.default_rng(rng.getrandbits(32))
    photo = np.asarray(photo_like(rng, width, height)).astype(np.int64)
    samples = np.concatenate([photo, photo[..., ::-1]], 2)[..., :count] if count > 1 else photo[..., :1]
    if bits > 8 or rng.random() < 0.3:
        samples = noise.integers(0, 1 << min(bits, 16), samples.shape)
    elif bits < 8:
        samples = samples >> (8 - bits)
    planes = [samples[..., i:i + 1] for i in range(count)] if separate else [samples]
    parts = []
    state = rng.getstate()
    for plane in planes:
        rng.setstate(state)  # planes are cut alike
        pieces, tags = chunks(rng, plane, tiled)
        for piece in pieces:
            row = -(-piece.shape[1] * piece.shape[2] * bits // 8)
            data = packed(predicted(piece, bits) if predictor else piece, bits, big)
            data = {RAW: lambda: data, LZW: lambda: lzw(data), PACKBITS: lambda: packbits(data, row)}.get(
                compression, lambda: zlib.compress(data))()
            parts.append(data.translate(REVERSED) if reverse else data)
    tags += [(256, 4, [width]), (257, 3, [height]), (258, 3, [bits] * count), (259, 3, [compression]),
             (262, 3, [photometric]), (277, 3, [count])] + further_tags(rng, traits)
    tags += [(338, 3, extra)] if extra else []
    tags += [(284, 3, [2])] if separate else [(284, 3, [1])] if rng.random() < 0.5 else []
    tags += [(266, 3, [2])] if reverse else []
    tags += [(317, 3, [2])] if predictor else []
    if photometric == PALETTE:
        tags.append((320, 3, noise.integers(0, 65536, 3 << bits).tolist()))
    traits |= {f"compression {compression}", "tiles" if tiled else "strips", "planes" if separate else "one plane",
               "MM" if big else "II"}
    traits |= {"reversed"} if reverse else set()
    traits |= {"predictor"} if predictor else set()
    pages = rng.choice([1, 1, 1, 2, 5])
    traits |= {"pages"} if pages > 1 else set()
    return file_of(rng, tags, parts, big, pages)


def draw_jpeg(rng, width, height, traits):
    """Each part is a JPEG of its own, of the colours that JPEGs have."""
    gray, tiled, big = rng.random() < 0.3, rng.random() < 0.5, rng.random() < 0.5
    samples = np.asarray(photo_like(rng, width, height))[..., :1 if gray else 3]
    pieces, tags = chunks(rng, samples, tiled)
    tags += [(256, 4, [width]), (257, 4, [height]), (258, 3, [8] * samples.shape[2]), (259, 3, [JPEG]),
             (262, 3, [BLACK if gray else YCBCR]), (277, 3, [samples.shape[2]])] + further_tags(rng, traits)
    tags += [] if gray else [(530, 3, [1, 1])]
    traits |= {"compression 7", "tiles" if tiled else "strips", "MM" if big else "II"}
    return file_of(rng, tags, [jpeg(rng, piece) for piece in pieces], big)


def saved(image, how):
    """As Pillow writes it, and whether libtiff reads that.

    Of some "tiff_ccitt" libtiff gets the last rows wrong, since it aligns rows by bits that it made
    up behind the last byte.  It warns, and Pillow does not say so.  What it makes up is black: an
    image with a white row at its end shows it."""
    out = io.BytesIO()
    image.save(out, "TIFF", compression=how)
    return out.getvalue(), how != "tiff_ccitt" or Image.open(out).tobytes() == image.tobytes()


def draw_saved(rng, width, height, traits):
    """As Pillow writes it: fax, and JPEG with colours at half the size."""
    how = rng.choice(["tiff_ccitt", "group3", "group4", "jpeg"])
    traits.add(how)
    if how != "jpeg" and width % 32 == 0:
        width += 1  # else libtiff has room for 32 n runs, of which a row of black, white, black, ... has one more
    while True:
        image = photo_like(rng, width, height).convert("RGB" if how == "jpeg" else "1")
        if how == "tiff_ccitt":
            image.paste(255, (0, height - 1, width, height))
        data, is_read = saved(image, how)
        if is_read:
            return data


def make_file(rng):
    """The bytes of a TIFF that is read, and what it is."""
    width, height = rng.randint(1, 130), rng.randint(1, 130)
    way, traits = rng.random(), set()
    if way < 0.1:
        data = draw_jpeg(rng, width, height, traits)
    elif way < 0.2:
        data = draw_saved(rng, width, height, traits)
    else:
        kind = rng.choice(GOOD)
        data = draw(rng, width, height, kind, traits)
        traits.add(f"kind {kind}")
    return data, traits


def refusals(rng):
    """Files of the kinds that are not read."""
    for kind in BAD:
        yield draw(rng, 20, 20, kind, set()), f"kind {kind}"
    data, is_read = saved(Image.frombytes("1", (9, 2), b"\x37\x80\x0f\x80"), "tiff_ccitt")
    assert not is_read, "this libtiff reads the last row of CCITT right: let it be compared"
    yield data, "CCITT of which libtiff gets the last row wrong"
    plain = [(256, 3, [2]), (257, 3, [2]), (258, 3, [8]), (277, 3, [1]), (278, 3, [2])]
    for tags, story in (([(262, 3, [1]), (259, 3, [6])], "JPEG of the old kind"),
                        ([(262, 3, [1]), (259, 3, [34925])], "LZMA"), ([(262, 3, [1]), (259, 3, [50000])], "Zstandard"),
                        ([(262, 3, [1]), (339, 3, [2])], "signed samples"), ([(262, 3, [1]), (339, 3, [3])], "float"),
                        ([], "no meaning"), ([(262, 3, [3])], "a palette that is not there")):
        yield file_of(rng, plain + tags, [b"abcd"], False), story


def main():
    program, count = arguments(500)
    rng = random.Random(SEED)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        # of a path Pillow maps the file, and shears what orientation 5 to 8 lays on its side
        differ, failures, seen = compare_drawn(program, folder, (make_file(rng) for _ in range(count)), ".tif",
                                               lambda path, data: Image.open(io.BytesIO(data)))
        jobs = [(put(folder, f"bad{i}.tif", data), AS_IT_IS, story) for i, (data, story) in enumerate(refusals(rng))]
        refused = [what for what in compare(program, jobs, pixels_of(), [Image.new("RGB", (1, 1))] * len(jobs))
                   if ": bad " in what]
    failures += [] if len(refused) == len(jobs) else [f"{len(refused)} kinds of {len(jobs)} are refused", *refused]
    names = {f"kind {kind}" for kind in GOOD} | {"tiff_ccitt", "group3", "group4", "jpeg", "tiles", "strips", "planes",
                                                  "MM", "II", "reversed", "predictor", "pages", "orientation"}
    names |= {f"compression {c}" for c in (RAW, LZW, JPEG, ADOBE, PACKBITS, DEFLATE)}
    return compared(f"{count} TIFFs, {{}}, {len(refused)} kinds refused", differ, failures, seen, names,
                    LEAST if count >= FULL else 0)


if __name__ == "__main__":
    sys.exit(main())
