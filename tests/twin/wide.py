# SPDX-License-Identifier: Apache-2.0
"""Compare images with 16 bits a sample with Pillow's mode I;16; run by wide.sh and _pillows.sh.

    wide.py PROGRAM [COUNT]      PROGRAM is tests/pack/dump_transform, asked for `wide`

PNGs and TIFFs are put together here, gray and RGB, in both byte orders, so their samples are known.
Each channel of the result must be what Pillow makes of that channel as an image of mode I;16.
Pillow resamples that mode from 10.4 on.  resize() says in Python what it does; an older Pillow is
compared with only where nothing is resized, and the program with resize().  SEED=n repeats a run.
"""
import math
import os
import random
import struct
import sys
import tempfile
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image

import pillow
import tiff
from pillow import AREA, FITS, LONG, PAD, PIXELS, SEED, SHORT, TURNS, pixels_of, run, target

LEAST, FULL = 20, 1000  # so often each value comes up, in so many images
RESAMPLES = tuple(map(int, Image.__version__.split(".")[:2])) >= (10, 4)
GRAY, GRAY_ALPHA, RGB, RGBA = 0, 4, 2, 6  # as in a PNG


# ---- what Pillow does, in Python ----

def lanczos(x):
    def sinc(x):
        return 1.0 if x == 0 else math.sin(x * math.pi) / (x * math.pi)
    return sinc(x) * sinc(x / 3) if -3 <= x < 3 else 0.0


def bicubic(x):
    a, x = -0.5, abs(x)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


FILTERS = [(lambda x: 1.0 if -0.5 < x <= 0.5 else 0.0, 0.5), (lambda x: max(1 - abs(x), 0.0), 1.0), (bicubic, 2.0),
           (lanczos, 3.0)]


def weights(size, new_size, how):
    """For each new sample the first old one, and the weights from there on."""
    at, support = FILTERS[how]
    scale = size / new_size
    stretch = max(scale, 1.0)
    support, step = support * stretch, 1 / stretch
    for i in range(new_size):
        center = (i + 0.5) * scale
        first, end = max(int(center - support + 0.5), 0), min(int(center + support + 0.5), size)
        row = [at((k - center + 0.5) * step) for k in range(first, end)]
        total = 0.0
        for w in row:
            total += w
        yield first, [w / total if total else w for w in row]


def pass_across(samples, new_width, how, pixels):
    out = np.zeros((samples.shape[0], new_width), np.int64)
    for x, (first, row) in enumerate(weights(samples.shape[1], new_width, how)):
        total = np.zeros(samples.shape[0])
        for k, w in enumerate(row):
            total = total + samples[:, first + k] * w
        out[:, x] = np.where(total >= 0, np.floor(total + 0.5), -np.floor(np.abs(total) + 0.5))
    above = 65535 if pixels == PIXELS.index("pillow-13") else 0xff00 | out & 0xff
    return np.where(out < 0, 0, np.where(out > 65535, above, out)).astype(np.uint16)


def resize(samples, size, how, pixels):
    """One channel, to (width, height)."""
    (height, width), (new_width, new_height) = samples.shape, size
    less_across, less_down = width - new_width, height - new_height
    down_first = {0: False, 1: height > 100 * width and less_down > 0,
                  2: less_down > 0 and less_down > 2 * less_across}[pixels]

    def across(s):
        return s if new_width == width else pass_across(s, new_width, how, pixels)

    def down(s):
        return s if new_height == height else pass_across(s.T, new_height, how, pixels).T
    return across(down(samples)) if down_first else down(across(samples))


# ---- files ----

def png(samples, colour, interlaced, rng):
    height, width = samples.shape[:2]

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    body = b""
    for x, y, across, down in passes if interlaced else [(0, 0, 1, 1)]:
        part = samples[y::down, x::across].astype(">u2")
        if part.size:
            body += b"".join(b"\0" + row.tobytes() for row in part)
    head = struct.pack(">IIBBBBB", width, height, 16, colour, 0, 0, interlaced)
    exif = Image.Exif()
    exif[0x112] = rng
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"eXIf", exif.tobytes()[6:]) +
            chunk(b"IDAT", zlib.compress(body, 1)) + chunk(b"IEND", b""))


def tiff_of(rng, samples, orientation, traits):
    height, width, count = samples.shape
    big, tiled = rng.random() < 0.5, rng.random() < 0.4
    compression = rng.choice([tiff.RAW, tiff.RAW, tiff.LZW, tiff.ADOBE, tiff.PACKBITS])
    predictor = compression in (tiff.LZW, tiff.ADOBE) and rng.random() < 0.4
    pieces, tags = tiff.chunks(rng, samples, tiled)
    parts = []
    for piece in pieces:
        data = tiff.packed(tiff.predicted(piece, 16) if predictor else piece, 16, big)
        parts.append({tiff.RAW: lambda: data, tiff.LZW: lambda: tiff.lzw(data),
                      tiff.PACKBITS: lambda: tiff.packbits(data, 2 * piece.shape[1] * count)}.get(
                          compression, lambda: zlib.compress(data))())
    tags += [(256, 4, [width]), (257, 4, [height]), (258, 3, [16] * count), (259, 3, [compression]),
             (262, 3, [2 if count >= 3 else 1]), (277, 3, [count]), (274, 3, [orientation])]
    tags += [(338, 3, [2])] if count == 4 else []
    tags += [(317, 3, [2])] if predictor else []
    traits |= {"MM" if big else "II", "tiles" if tiled else "strips", f"compression {compression}"}
    return tiff.file_of(rng, tags, parts, big)


def make_file(rng, folder, i):
    """A path, the three channels as they lie in the file, the orientation, and what it is."""
    _, width, height = pillow.shape(rng) if rng.random() < 0.3 else ("", rng.randint(1, 150), rng.randint(1, 150))
    orientation, noise = rng.randint(1, 8), np.random.default_rng(rng.getrandbits(32))
    is_tiff = rng.random() < 0.5
    colour = rng.choice([GRAY, GRAY, RGB, RGBA] if is_tiff else [GRAY, GRAY, GRAY_ALPHA, RGB, RGBA])
    count = {GRAY: 1, GRAY_ALPHA: 2, RGB: 3, RGBA: 4}[colour]
    kind = rng.choice(["noise", "edges", "smooth"])
    samples = {"noise": lambda: noise.integers(0, 65536, (height, width, count)),
               "edges": lambda: noise.integers(0, 2, (height, width, count)) * 65535,  # filters go beyond these
               "smooth": lambda: np.add.outer(np.arange(height) * 191, np.arange(width) * 173)[..., None] %
               65536 + np.zeros((1, 1, count), np.int64)}[kind]()
    traits = {kind, f"channels {count}", "tiff" if is_tiff else "png"}
    interlaced = int(rng.random() < 0.2)
    traits |= {"interlaced"} if interlaced and not is_tiff else set()
    data = tiff_of(rng, samples, orientation, traits) if is_tiff else png(samples, colour, interlaced, orientation)
    path = folder / f"{i}.{'tif' if is_tiff else 'png'}"
    path.write_bytes(data)
    channels = [samples[..., 0 if count < 3 else c].astype(np.uint16) for c in range(3)]
    return path, channels, orientation, traits


# ---- comparison ----

def turned(samples, orientation):
    image = Image.fromarray(samples.astype(np.int32), "I")  # older Pillows do not transpose I;16
    return np.asarray(image.transpose(TURNS[orientation]) if orientation in TURNS else image).astype(np.uint16)


def by_python(samples, job, pixels):
    """The record's channel: resize() and then the places of torchvision and ImageOps.pad()."""
    new_size, crop, how, fit = job
    if new_size and new_size != samples.shape[::-1]:
        samples = resize(samples, new_size, how, pixels)
    height, width = samples.shape
    if not crop:
        return samples
    if fit == PAD:
        out = np.zeros((crop, crop), np.uint16)
        x, y = round((crop - width) * 0.5), round((crop - height) * 0.5)
        out[y:y + height, x:x + width] = samples
        return out
    wide = np.zeros((max(height, crop), max(width, crop)), np.uint16)
    y, x = max(crop - height, 0) // 2, max(crop - width, 0) // 2
    wide[y:y + height, x:x + width] = samples
    y, x = round((wide.shape[0] - crop) / 2), round((wide.shape[1] - crop) / 2)
    return wide[y:y + crop, x:x + crop]


def by_pillow(samples, resize_to, crop, how, fit):
    image = Image.fromarray(samples)
    assert image.mode == "I;16"
    return np.asarray(pillow.transform(image, resize_to, crop, pillow.FILTERS[how], fit))


def main():
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 300
    rng, seen, jobs, wanted = random.Random(SEED), Counter(), [], []
    asked = pixels_of() if RESAMPLES else 2
    differ, python_differs = [], 0
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        for i in range(count):
            path, channels, orientation, traits = make_file(rng, Path(folder), i)
            resize_to = rng.choice([0, rng.randint(1, 60), rng.randint(1, 200)])
            crop = 0 if not resize_to and rng.random() < 0.5 else rng.randint(1, resize_to or 150)
            how, fit = rng.randrange(4), rng.choice(FITS[:AREA]) if resize_to else SHORT
            upright = int(path.suffix == ".tif" or rng.random() < 0.5)
            if upright:
                channels = [turned(c, orientation) for c in channels]
            size = channels[0].shape[::-1]
            if fit in (PAD, LONG) and resize_to * min(size) <= max(size):
                fit = SHORT  # a side of 0 pixels
            crop = resize_to if fit == PAD else crop
            new_size = target(size, resize_to, fit) if resize_to else None
            layout = rng.randrange(2) if crop else 0
            want = [by_python(c, (new_size, crop, how, fit), asked) for c in channels]
            if RESAMPLES:
                theirs = [by_pillow(c, resize_to, crop, how, fit) for c in channels]
                python_differs += any(not np.array_equal(a, b) for a, b in zip(want, theirs))
                want = theirs
            want = np.stack(want, 0 if layout else 2)
            if len(set(map(id, channels))) == 1 or np.array_equal(channels[0], channels[1]):
                is_gray = path.suffix == ".png" or not traits & {"channels 3", "channels 4"}
                if is_gray and RESAMPLES and not upright and "channels 1" in traits:
                    assert np.array_equal(np.asarray(Image.open(path)), channels[0]), (path, traits)
            jobs.append((path, (resize_to, crop, how, layout, fit, asked, 0, upright), sorted(traits)))
            wanted.append((want, size if not crop else (crop, crop)))
            seen.update(traits | {f"filter {how}", f"fit {fit}", f"layout {layout}"} if resize_to else traits)
        for (path, job, story), (want, size), answer in zip(jobs, wanted, run([program, "wide"], jobs, 6)):
            if isinstance(answer, str) or answer[1:] != size:
                differ.append(f"{path.name} {story} {job}: {answer if isinstance(answer, str) else answer[1:]}")
                continue
            got = answer[0].view("<u2")
            bad = np.flatnonzero(got != want.reshape(-1))
            if bad.size:
                differ.append(f"{path.name} {story} {job}: {bad.size} of {got.size} differ, the first is {bad[0]}: "
                              f"{got[bad[0]]} is not {want.reshape(-1)[bad[0]]}")
    names = {"noise", "edges", "smooth", "channels 1", "channels 2", "channels 3", "channels 4", "tiff", "png", "MM",
             "II", "tiles", "strips", "interlaced"} | {f"filter {i}" for i in range(4)} | {f"fit {i}" for i in range(4)}
    failures = [f"{name} comes up {seen[name]} times" for name in sorted(names) if count >= FULL and seen[name] < LEAST]
    failures += [f"resize() differs from Pillow in {python_differs}"] if python_differs else []
    print(*failures, *differ[:20], sep="\n")
    print(f"{count} images of 16 bits a sample, {len(differ)} differ from "
          f"{'Pillow ' + Image.__version__ if RESAMPLES else 'resize()'} ({PIXELS[asked]}), SEED={SEED}")
    return 1 if failures or differ else 0


if __name__ == "__main__":
    sys.exit(main())
