# SPDX-License-Identifier: Apache-2.0
"""Masks of colours, of 16 bits and of ids, and what a map makes of them; run by pack_masks.sh.

    make_masks.py RESIZE CROP FIT

Writes img/, values/, colours/ and ids/, and the maps values.map and colours.map; and want.npz with
what each dataset must have.  The files are written bit by bit, since Pillow writes neither
interlaced PNG nor all kinds.  Here each pixel is looked up by itself, and Pillow moves numbers of
pixels instead of values.
"""
import os
import struct
import sys
import zlib

import numpy as np
from PIL import Image

from pillow import LONG, PAD, SHORT, STRETCH, transform

ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}
FITS = {"short": SHORT, "long": LONG, "stretch": STRETCH, "pad": PAD}
COLOURS = [(0, 0, 0), (128, 64, 128), (70, 70, 70), (255, 255, 255), (1, 0, 0), (0, 0, 1), (9, 9, 9)]
COUNT = 12
rng = np.random.default_rng(31)


def png(pixels, interlaced=False, palette=None):
    """An array of height x width x channels, u8 or u16."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    height, width, channels = pixels.shape
    big = pixels.astype(">u2") if pixels.dtype.itemsize == 2 else pixels
    parts = [big[y::dy, x::dx] for x, y, dx, dy in ADAM7] if interlaced else [big]
    rows = b"".join(b"\0" + row.tobytes() for part in parts if part.size for row in part)
    colour = 3 if palette is not None else COLOUR_TYPES[channels]
    head = struct.pack(">IIBBBBB", width, height, 8 * pixels.dtype.itemsize, colour, 0, 0, int(interlaced))
    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
    if palette is not None:
        out += chunk(b"PLTE", palette.tobytes())
    return out + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def moved(codes, resize, crop, fit, fill, dtype):
    """The codes of a mask as the record has them."""
    numbers = Image.fromarray(np.arange(codes.size, dtype=np.int32).reshape(codes.shape))
    chosen = np.asarray(transform(numbers, resize, crop, Image.NEAREST, FITS[fit], -1))
    return np.where(chosen < 0, fill, codes.reshape(-1)[chosen]).astype(dtype)


def save(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "wb").write(data)


def looked_up(keys, table):
    """One by one; what the table lacks is its None."""
    return np.array([[table.get(key, table.get(None)) for key in row] for row in keys], np.int64)


def value_mask(i, shape):
    """Gray of 8 or 16 bits, or indices of a palette; and the values."""
    if i % 3 == 2:
        values = rng.integers(0, 5, shape, np.uint8)
        return png(values[..., None], i % 2, rng.integers(0, 256, (5, 3), np.uint8)), values
    values = rng.choice([0, 7, 11, 26, 200], shape).astype(np.uint8)
    if i % 3:
        values = rng.choice([0, 7, 300, 26001, 65535], shape).astype(np.uint16)
    return png(values[..., None], i % 2), values


def colour_mask(i, shape):
    """RGB, opaque RGBA, a palette, or gray; and the colours."""
    number = rng.integers(0, len(COLOURS), shape)
    if i % 4 == 2:
        palette = np.array(COLOURS, np.uint8)
        return png(number.astype(np.uint8)[..., None], i % 2, palette), palette[number]
    if i % 4 == 3:
        gray = rng.choice([0, 9, 70, 255], shape).astype(np.uint8)
        return png(gray[..., None], i // 4 % 2), np.repeat(gray[..., None], 3, 2)
    pixels = np.array(COLOURS, np.uint8)[number]
    opaque = np.full(shape + (1,), 255, np.uint8)
    return png(np.concatenate([pixels, opaque], 2) if i % 4 else pixels, i // 4 % 2), pixels


def id_mask(i, shape):
    """Panoptic ids in RGB, or gray of 16 bits; and the ids."""
    if i % 3 == 2:
        gray = rng.choice([0, 255, 256, 65535], shape).astype(np.uint16)
        return png(gray[..., None], i % 2), gray
    ids = rng.choice([0, 1, 255, 256, 65535, 65536, 8_421_504, 16_777_215], shape)
    return png(np.stack([ids & 255, ids >> 8 & 255, ids >> 16], 2).astype(np.uint8), i % 2), ids


def main(resize, crop, fit):
    values = {0: 255, 7: 0, 11: 1, 26: 300, None: 65535}
    colours = {colour: 3 * k for k, colour in enumerate(COLOURS)}
    want = {"values": [], "colours": [], "ids": []}
    for i in range(COUNT):
        shape = tuple(int(n) for n in rng.integers(4 if i % 5 == 0 else 20, 70, 2))
        save("img/a/%02d.png" % i, png(rng.integers(0, 256, shape + (3,), np.uint8)))
        for name, make in (("values", value_mask), ("colours", colour_mask), ("ids", id_mask)):
            data, keys = make(i, shape)
            save("%s/a/%02d.png" % (name, i), data)
            if name == "values":
                want["values"].append(moved(looked_up(keys, values), resize, crop, fit, 65535, "<u2"))
            elif name == "colours":
                codes = looked_up([[tuple(map(int, c)) for c in row] for row in keys], colours)
                want["colours"].append(moved(codes, resize, crop, fit, 255, "u1"))
            else:
                want["ids"].append(moved(keys.astype(np.int64), resize, crop, fit, 2**32 - 1, "<u4"))
    open("values.map", "w").write("\ufeff# Cityscapes, more or less\r\n26 300\n\n 7\t0 # road\n*  65535\n0 255\n11 1")
    open("colours.map", "w").writelines("%d %d %d %d\n" % (*c, k) for c, k in sorted(colours.items(), reverse=True))
    np.savez("want.npz", **{k: np.stack(v) for k, v in want.items() if v})


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
