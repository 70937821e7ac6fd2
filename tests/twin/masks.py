# SPDX-License-Identifier: Apache-2.0
"""Compare masks with Pillow and NumPy, on generated files of every kind; run by masks.sh.

    masks.py PROGRAM [COUNT]      PROGRAM is tests/pack/dump_mask

The files are written here, bit by bit: Pillow writes neither interlaced PNG nor all depths.
"""
import os
import random
import struct
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from pillow import PAD, SHORT, STRETCH, run, side, transform

SEED = 23
ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
ORIENTATION = 0x0112


def packed(row, bits):
    """A row of values as bytes, the first value in the highest bits."""
    if bits == 16:
        return row.astype(">u2").tobytes()
    row = np.pad(row, (0, -len(row) * bits % 8 // bits)).astype(np.uint16)
    return (row.reshape(-1, 8 // bits) << np.arange(8 - bits, -1, -bits)).sum(1).astype(np.uint8).tobytes()


def png(values, rng, bits, palette, interlaced, orientation):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    height, width = values.shape
    parts = [values[y::dy, x::dx] for x, y, dx, dy in ADAM7] if interlaced else [values]
    rows = b"".join(b"\0" + packed(row, bits) for part in parts if part.size for row in part)
    head = struct.pack(">IIBBBBB", width, height, bits, 3 if palette else 0, 0, 0, int(interlaced))
    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
    if orientation:
        out += chunk(b"eXIf", b"MM\0*\0\0\0\x08\0\x01" + struct.pack(">HHIHHI", ORIENTATION, 3, 1, orientation, 0, 0))
    if palette:
        out += chunk(b"PLTE", rng.randbytes(3 * rng.randint(1, 1 << bits)))  # may end before the values do
    return out + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def bmp(values, rng, bits):
    height, width = values.shape
    # A palette of gray alone is another thing to Pillow, which reads it only where there are 8
    # bits.
    palette = b"".join(bytes([i, 7, 255 - i, 0]) for i in range(1 << bits))
    rows = [packed(row, bits) for row in values[::-1]]
    pixels = b"".join(row + bytes(-len(row) % 4) for row in rows)
    if rng.random() < 0.3:
        height, pixels = -height, b"".join(row + bytes(-len(row) % 4) for row in rows[::-1])
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, 0, 0, 0, 0, 1 << bits, 0) + palette
    return b"BM" + struct.pack("<IHHI", 14 + len(head) + len(pixels), 0, 0, 14 + len(head)) + head + pixels


def pgm(values, most):
    return b"P5\n%d %d\n%d\n" % (*values.shape[::-1], most) + packed(values, 16 if most > 255 else 8)


def make_file(rng, folder, i):
    """A mask of a random kind; returns its path, what to call it in a complaint, and its size."""
    width, height = (rng.choice([1, 2, side(rng)]), side(rng)) if rng.random() < 0.2 else (side(rng), side(rng))
    kind, bits = rng.choice(["gray", "palette"] * 2 + ["bmp", "pgm"]), rng.choice([1, 2, 4, 8])
    if kind == "gray" and rng.random() < 0.3:
        bits = 16
    if kind == "bmp" and bits == 2:
        bits = 4
    if kind == "pgm":
        bits = rng.choice([8, 16])
    top = rng.choice([2, 256]) if bits == 16 else 1 << bits
    values = np.random.default_rng(rng.getrandbits(32)).integers(0, top, (height, width), np.uint16)
    interlaced, orientation = rng.random() < 0.4, rng.choice([0, 0, *range(1, 9)])
    most = 65535 if bits == 16 else rng.choice([255, 255, 1, 20, 254])
    if kind == "bmp":
        data = bmp(values, rng, bits)
    elif kind == "pgm":
        data = pgm(values, most)
    else:
        data = png(values, rng, bits, kind == "palette", interlaced, orientation)
    path = folder / f"{i}.{kind}"
    path.write_bytes(data)
    return (
        path,
        f"{kind} {bits} bits, {width}x{height}, interlaced {interlaced}, orientation {orientation}",
        (width, height),
    )


def expect(path, job):
    resize, crop, fit, fill, exif = job
    image = Image.open(path)
    if exif and crop:
        image = ImageOps.exif_transpose(image)
    values = np.asarray(image)
    assert values.ndim == 2 and values.max() <= 255
    return transform(Image.fromarray(values.astype(np.uint8)), resize, crop, Image.NEAREST, fit, fill)


def choose_job(rng, size):
    crop = 0 if rng.random() < 0.2 else rng.choice([1, 224, rng.randint(1, 300)])
    resize = rng.choice([0, 256, rng.randint(1, 400)]) if crop else 0
    fit = rng.randrange(4) if resize else SHORT
    if fit == PAD and resize * min(size) <= max(size):
        fit = STRETCH  # a side of 0 pixels, which Pillow refuses
    if fit == PAD:
        crop = resize
    if fit == SHORT and resize * max(size) > 4000 * min(size):
        resize = 0  # Pillow makes all of it
    return resize, crop, fit, rng.choice([0, 255, 9]), rng.randrange(2)


def main():
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 300
    rng = random.Random(SEED)
    failures = 0
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        jobs = []
        for i in range(count):
            path, story, size = make_file(rng, Path(folder), i)
            jobs.append((path, choose_job(rng, size), story))
        for (path, job, story), answer in zip(jobs, run(program, jobs, channels=1)):
            want = expect(path, job)
            if isinstance(answer, str) or answer[1:] != want.size or (answer[0] != np.asarray(want).reshape(-1)).any():
                failures += 1
                what = f"resize {job[0]} crop {job[1]} fit {job[2]} fill {job[3]} exif {job[4]}"
                print(f"{story}, {what}: differs: {answer}")
    print(f"{len(jobs)} masks, {failures} differ from Pillow {Image.__version__}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
