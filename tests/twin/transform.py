# SPDX-License-Identifier: Apache-2.0
"""Compare transformed rows with Pillow's and NumPy's, and what is drawn with docs/TRANSFORM.md; run
by transform.sh.

    transform.py PROGRAM [COUNT]            PROGRAM is tests/twin/dump_transform

Rows have the pixels of the Pillow that it finds; those of the others must be noticed.

Crop, resize and mirror are Pillow's.  Numbers are float32 throughout, as torchvision's ToTensor and
Normalize; rounded to f16 by NumPy, to bf16 here.  Draws were written from docs/TRANSFORM.md alone.
"""
import math
import random
import subprocess
import sys

import numpy as np
from PIL import Image

from pillow import PIXELS, SEED, pixels_of

F16, BF16, F32 = 9, 10, 11
HWC, CHW = 1, 2
CENTER, RANDOM, RESIZED = 0, 1, 2
MASK = 2**64 - 1


def bf16(values):
    """The bits of the nearest bfloat16, a half to the even one; float64 has exact distances."""
    below = values.view(np.uint32) >> 16
    low, high = [(n.astype(np.uint32) << 16).view(np.float32).astype(np.float64) for n in (below, below + 1)]
    down, up = np.abs(values - low), np.abs(high - values)
    return (below + ((up < down) | ((up == down) & (below % 2 == 1)))).astype(np.uint16)


def numbers(pixels, dtype, mean, std):
    """[height, width, channels] of samples to numbers."""
    x = pixels.astype(np.float32) / np.float32(255)
    x = (x - np.float32(mean)) / np.float32(std)
    assert x.dtype == np.float32
    return x if dtype == F32 else x.astype(np.float16) if dtype == F16 else bf16(np.ascontiguousarray(x))


def pillow(pixels, out, box, flip, crop):
    """Channel by channel, so that any count of them will do: Pillow treats them alike."""
    x, y, width, height = box
    planes = []
    for c in range(pixels.shape[2]):
        image = Image.fromarray(np.ascontiguousarray(pixels[:, :, c])).crop((x, y, x + width, y + height))
        if crop == RESIZED:
            image = image.resize(out[::-1], Image.BILINEAR)
        planes.append(np.asarray(image.transpose(Image.FLIP_LEFT_RIGHT) if flip else image))
    return np.stack(planes, axis=2)


def most_pixels(rng, height, width):
    """Of a field with images of this size and of others; 0: all have this size."""
    if rng.random() < 0.5:
        return 0
    return max(height * width, (max(height, width) + 3) // 4 * ((max(height, width) + 3) // 4)) + rng.randint(0, 99)


def transform_jobs(count):
    rng = random.Random(SEED)
    noise = np.random.default_rng(SEED)
    for i in range(count):
        channels, height, width = rng.randint(1, 4), rng.randint(1, 80), rng.randint(1, 80)
        if i % 7 == 0:  # so tall that Pillow 12.2 cares, or 13
            width = rng.randint(1, 3)
            height = rng.randint(101 * width, 120 * width)
        crop = rng.choice([CENTER, RESIZED, RESIZED])
        out = (
            (rng.randint(1, 90), rng.randint(1, 90))
            if crop == RESIZED
            else (rng.randint(1, height), rng.randint(1, width))
        )
        box_height, box_width = (rng.randint(1, height), rng.randint(1, width)) if crop == RESIZED else out
        if crop == RESIZED and i % 7 == 0:
            box_height, box_width = height, rng.randint(1, width)
        box = (rng.randint(0, width - box_width), rng.randint(0, height - box_height), box_width, box_height)
        mean, std = [rng.uniform(-0.2, 1) for _ in range(4)], [10 ** rng.uniform(-2, 0) for _ in range(4)]
        if i % 3 == 0:
            mean, std = [0.485, 0.456, 0.406, 0.5], [0.229, 0.224, 0.225, 0.5]
        pixels = noise.integers(0, 256, (height, width, channels), np.uint8)
        if i % 4 == 1:
            pixels = (pixels & 1) * np.uint8(255)
        yield (
            pixels,
            rng.choice([HWC, CHW]),
            out,
            rng.choice([F16, BF16, F32]),
            rng.choice([HWC, CHW]),
            crop,
            mean,
            std,
            box,
            rng.random() < 0.5,
            most_pixels(rng, height, width),
        )


def check_transform(program, count):
    jobs = list(transform_jobs(count))
    wanted = []
    for pixels, _, out, dtype, to, crop, mean, std, box, flip, _ in jobs:
        channels = pixels.shape[2]
        want = numbers(pillow(pixels, out, box, flip, crop), dtype, mean[:channels], std[:channels])
        wanted.append((want if to == HWC else want.transpose(2, 0, 1)).tobytes())
    for variant in range(len(PIXELS)):
        wrong = [job[1:] for job, want, got in zip(jobs, wanted, run(program, jobs, variant, wanted)) if got != want]
        if variant == pixels_of():
            assert not wrong, wrong[0]
        else:
            assert wrong, f"pixels {PIXELS[variant]} go unnoticed"


def run(program, jobs, variant, wanted):
    """The bytes of each row, with these pixels."""
    text = b""
    for pixels, layout, out, dtype, to, crop, mean, std, box, flip, most in jobs:
        layout = HWC if most else layout
        height, width, channels = pixels.shape
        words = [most, channels, height, width, layout, *out, dtype, to, crop, 1 + variant]
        words += [*map(repr, mean), *map(repr, std), *box, int(flip)]
        text += (
            f"transform {' '.join(map(str, words))}\n".encode()
            + (pixels if layout == HWC else pixels.transpose(2, 0, 1)).tobytes()
        )
    got = subprocess.run([program], input=text, stdout=subprocess.PIPE, check=True).stdout
    assert len(got) == sum(map(len, wanted))
    at = 0
    for want in wanted:
        yield got[at:at + len(want)]
        at += len(want)


# ---- what is drawn: docs/TRANSFORM.md, part 3 ----


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def absorb(h, x):
    return mix((h ^ x) + 0x9E3779B97F4A7C15 & MASK)


def word(key, i):
    return mix(key + (i + 1) * 0x9E3779B97F4A7C15 & MASK)


def below(h, m):
    return h * m >> 64


def unit(h):
    return (h >> 11) / 2**53


def expect_row(field, out, crop, flip, area, ratio, seed, epoch, position, view):
    key = 0
    for x in (seed, epoch, 16, position, view):
        key = absorb(key, x)
    height, width = field
    mirrored = int(unit(word(key, 0)) < flip)
    if crop != RESIZED:  # of images that differ in size, some may be smaller than the crop
        out = min(out[0], height), min(out[1], width)
    if crop == CENTER:
        return (round((width - out[1]) / 2), round((height - out[0]) / 2), out[1], out[0], mirrored)
    if crop == RANDOM:
        return (
            below(word(key, 4), width - out[1] + 1),
            below(word(key, 3), height - out[0] + 1),
            out[1],
            out[0],
            mirrored,
        )
    for attempt in range(10):
        words = [word(key, 4 * attempt + i) for i in (1, 2, 3, 4)]
        part = height * width * (area[0] + unit(words[0]) * (area[1] - area[0]))
        by, root = ratio[0], ratio[1] / ratio[0]
        for bit in range(32):
            root = math.sqrt(root)
            if words[1] >> (63 - bit) & 1:
                by *= root
        w, h = math.floor(math.sqrt(part * by) + 0.5), math.floor(math.sqrt(part / by) + 0.5)
        if 0 < w <= width and 0 < h <= height:
            return (below(words[3], width - w + 1), below(words[2], height - h + 1), w, h, mirrored)
    w, h = width, height
    if width / height < ratio[0]:
        h = math.floor(width / ratio[0] + 0.5)
    elif width / height > ratio[1]:
        w = math.floor(height * ratio[1] + 0.5)
    w, h = max(w, 1), max(h, 1)
    return ((width - w) // 2, (height - h) // 2, w, h, mirrored)


def draw_jobs(count):
    rng = random.Random(6)
    for i in range(count):
        field = (256, 256) if i % 3 == 0 else (rng.randint(1, 500), rng.randint(1, 500))
        crop = rng.choice([CENTER, RANDOM, RESIZED, RESIZED])
        out = (rng.randint(1, field[0]), rng.randint(1, field[1]))
        most = most_pixels(rng, *field)
        if most and i % 5 == 0:
            out = (rng.randint(1, math.isqrt(most)), rng.randint(1, math.isqrt(most)))
        low, ratio = rng.uniform(0.01, 1), 10 ** rng.uniform(-1, 1)
        area, ratio = (low, rng.uniform(low, 1)), (ratio, ratio * 10 ** rng.uniform(0, 1))
        if i % 3 == 0:
            area, ratio = (0.08, 1.0), (3 / 4, 4 / 3)
        world = rng.randint(1, 9)
        yield (
            (most, *field),
            out,
            crop,
            rng.choice([0, 0.5, 1, rng.random()]),
            area,
            ratio,
            rng.getrandbits(64),
            rng.randrange(world),
            world,
            rng.getrandbits(rng.choice([4, 40])),
            rng.getrandbits(rng.choice([4, 40])),
            rng.randint(0, 3),
            5,
        )


def check_draws(program, count):
    jobs = list(draw_jobs(count))
    # In the first two no attempt can succeed.
    jobs[0] = ((0, 2, 300), (1, 1), RESIZED, 0.5, (0.9, 1.0), (3 / 4, 4 / 3), 1, 0, 1, 0, 0, 0, 5)
    jobs[1] = ((7000, 300, 2), (1, 1), RESIZED, 0.5, (0.9, 1.0), (3 / 4, 4 / 3), 1, 0, 1, 0, 0, 0, 5)
    text = "".join(f"draw {' '.join(map(str, (*f, *o, c, repr(flip), *map(repr, a + r), s, *rest)))}\n"
                   for f, o, c, flip, a, r, s, *rest in jobs)
    lines = subprocess.run([program], input=text, text=True, stdout=subprocess.PIPE, check=True).stdout.splitlines()
    want = []
    for (_, *size), out, crop, flip, area, ratio, seed, rank, world, epoch, position, view, rows in jobs:
        first = next(p for p in range(position, position + world) if p % world == rank)
        want += [
            " ".join(map(str, expect_row(size, out, crop, flip, area, ratio, seed, epoch, first + i * world, view)))
            for i in range(rows)
        ]
    assert len(lines) == len(want)
    for i, (a, b) in enumerate(zip(lines, want)):
        assert a == b, (jobs[i // 5], a, b)


def check_spread(program):
    """Of many draws: areas and logarithms of ratios lie evenly, half is mirrored."""
    count = 20000
    text = f"draw 0 1000 1000 8 8 2 0.5 0.1 0.4 0.5 2.0 3 0 1 0 0 0 {count}\n"
    rows = subprocess.run([program], input=text, text=True, stdout=subprocess.PIPE, check=True).stdout.split()
    x, y, width, height, flip = np.array(rows, np.float64).reshape(count, 5).T
    area, ratio = width * height / 1e6, np.log2(width / height)
    for values, low, high in (
        (area, 0.1, 0.4),
        (ratio, -1, 1),
        (x, 0, 1000 - width),
        (y, 0, 1000 - height),
        (flip, -0.5, 1.5),
    ):
        if values is flip:
            assert abs(flip.mean() - 0.5) < 0.02
            continue
        shares = np.histogram((values - low) / (high - low), 10, (0, 1))[0] / count
        assert np.all(np.abs(shares - 0.1) < 0.02), shares


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 600
    check_transform(sys.argv[1], count)
    check_draws(sys.argv[1], 1500)
    check_spread(sys.argv[1])
    print(f"{count} rows as those of Pillow {Image.__version__} and NumPy, 7500 draws as docs/TRANSFORM.md has them")


main()
