# SPDX-License-Identifier: Apache-2.0
"""Compare boxes with NumPy's float32, and turned ones with Pillow's pixels; run by boxes.sh.

    boxes.py PROGRAM                    PROGRAM is tests/pack/dump_boxes

The arithmetic is written out again from torchvision's v2 (Resize, CenterCrop of BoundingBoxes); the
sizes of the resized image and the place of the crop are taken from what Pillow makes of a picture
in which each pixel says where it was.
"""
import random
import subprocess
import sys

import numpy as np
from PIL import Image, ImageOps

from pillow import AREA, FILTERS, FITS, LONG, PAD, SHORT, STRETCH, resized, target, transform

SEED = 29
ORIENTATION = 0x0112
F32 = np.float32


def ask(program, lines):
    text = "".join(" ".join(map(str, line)) + "\n" for line in lines)
    done = subprocess.run([program], input=text, stdout=subprocess.PIPE, check=True, text=True)
    return done.stdout.splitlines()


def turned(box, width, height, orientation):
    """Where the rectangle is in the picture that Pillow sets upright."""
    image = Image.new("L", (width, height))
    image.paste(1, tuple(box))
    exif = image.getexif()
    exif[ORIENTATION] = orientation
    image.info["exif"] = exif.tobytes()
    return list(ImageOps.exif_transpose(image).getbbox())


def offset(size, n, crop, fit):
    """Where pixel 0 of the resized image is in the record, which may be outside."""
    width, height = size
    if fit == PAD:
        new = ImageOps.contain(Image.new("L", size), (n, n)).size
    else:
        new = resized(Image.new("L", size), n, fit, FILTERS[0]).size if n else size
    ramp = np.zeros((new[1], new[0], 3), np.uint8)
    at_x, at_y = np.arange(1, new[0] + 1)[None], np.arange(1, new[1] + 1)[:, None]
    ramp[:, :, 0], ramp[:, :, 1], ramp[:, :, 2] = at_x % 256, at_y % 256, at_x // 256 + 16 * (at_y // 256)
    # Resized already: of what follows only the crop or the padding is left.
    record = np.asarray(transform(Image.fromarray(ramp), n if fit == PAD else 0, crop, FILTERS[0], fit))
    y, x = np.argwhere(record.any(2))[0]
    red, green, blue = map(int, record[y, x])
    return new, (int(x) - (red + 256 * (blue % 16) - 1), int(y) - (green + 256 * (blue // 16) - 1))


def moved(box, size, n, crop, fit, sizes):
    box = np.array(box, F32)
    if sizes:
        box[2:] += box[:2]
    new, place = offset(size, n, crop, fit)
    box = box * np.array([new[0] / size[0], new[1] / size[1]] * 2).astype(F32)
    most = [*new] * 2 if fit == AREA else [crop] * 4
    return np.clip(box + np.array([*place] * 2, F32), F32(0), np.array(most, F32))


def choose(rng):
    size = rng.randint(1, 300), rng.randint(1, 300)
    fit, n = rng.choice(FITS), rng.randint(1, 250)
    if fit in (LONG, PAD) and n * min(size) <= max(size) or fit == AREA and not target(size, n, fit):
        fit = STRETCH
    if fit == SHORT and (rng.random() < 0.2 or n * max(size) > 600 * min(size)):
        n = 0
    crop = n if fit in (PAD, AREA) else rng.randint(max(1, (n or max(size)) - 200), 300)
    sizes = rng.randrange(2)
    x, y = rng.uniform(-20, 300), rng.uniform(-20, 300)
    w, h = rng.uniform(0, 300), rng.uniform(0, 300)
    box = [F32(v) for v in ([x, y, w, h] if sizes else [x, y, x + w, y + h])]
    return box, size, n, crop, fit, sizes


def main():
    program, rng, failures = sys.argv[1], random.Random(SEED), 0
    turns = []
    for i in range(400):
        width, height = rng.randint(1, 40), rng.randint(1, 40)
        x, y = rng.randrange(width), rng.randrange(height)
        turns.append(([x, y, rng.randint(x + 1, width), rng.randint(y + 1, height)], width, height, 1 + i % 8))
    lines = [(0, 0, 0, orientation, width, height, 0, *box) for box, width, height, orientation in turns]
    for turn, answer in zip(turns, ask(program, lines), strict=True):
        if [float(v) for v in answer.split()] != turned(*turn):
            failures += 1
            print(f"turn {turn}: {answer}, not {turned(*turn)}")
    moves = [choose(rng) for _ in range(1500)]
    lines = [(n, crop, fit, 1, *size, sizes, *[f"{v:.9g}" for v in box]) for box, size, n, crop, fit, sizes in moves]
    for move, answer in zip(moves, ask(program, lines), strict=True):
        want = moved(*move)
        if answer.startswith("bad") or (np.array([F32(v) for v in answer.split()]) != want).any():
            failures += 1
            print(f"move {move}: {answer}, not {want}")
    print(f"{len(turns)} turns and {len(moves)} moves, {failures} differ")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
