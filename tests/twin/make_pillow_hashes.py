#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ask Pillow what it makes of some pictures, and write down one number for each answer.

    make_pillow_hashes.py > tests/twin/pillow_hashes.txt      (from the root of the tree)

tests/pack/t_resize.c and t_odd.c make the same pictures and compare, so that the equality is
tested where there is no Pillow.  Pictures and hashes: tests/pack/prng.h.
"""
import random
import sys
from pathlib import Path

import numpy as np
import PIL
from PIL import Image, features

FILTERS = {"box": Image.BOX, "bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "lanczos": Image.LANCZOS}
ODD = Path("examples/photos/odd")
ODD_GOOD = [
    "alpha.png",
    "cmyk.jpg",
    "exif_orientation_6.jpg",
    "gray.jpg",
    "palette.png",
    "photo.webp",
    "png_named_jpg.jpg",
    "progressive.jpg",
]


def prng(seed, count):
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (np.arange(count, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def picture(seed, width, height):
    count = width * height * 3
    samples = prng(seed, (count + 7) // 8).astype("<u8").view(np.uint8)[:count]
    if seed % 2:
        samples = np.where(samples < 128, 0, 255).astype(np.uint8)
    return Image.fromarray(samples.reshape(height, width, 3))


def digest(image):
    samples = np.asarray(image).reshape(-1)
    with np.errstate(over="ignore"):
        total = np.sum(prng(0, samples.size) * (samples.astype(np.uint64) + np.uint64(1)), dtype=np.uint64)
        return f"{int(total + np.uint64(samples.size)):016x}"


def sizes():
    """Each side from 1 to 300; some equal, some far apart, none above 100:1 (see resize.c)."""
    rng = random.Random(20)
    yield from [(1, 1, 1, 1), (1, 1, 7, 5), (300, 300, 1, 1), (2, 3, 300, 299), (300, 3, 3, 300), (97, 61, 97, 30),
                (97, 61, 30, 61), (97, 61, 97, 61), (256, 256, 128, 128), (255, 257, 254, 258)]
    for _ in range(50):
        yield tuple(rng.choice([rng.randint(1, 20), rng.randint(1, 300)]) for _ in range(4))


def main():
    print(f"# SPDX-License-Identifier: Apache-2.0\n# Written by make_pillow_hashes.py with Pillow {PIL.__version__}, "
          f"libjpeg-turbo {features.version('libjpeg_turbo')}.\n"
          "# resize SEED WIDTH HEIGHT NEW_WIDTH NEW_HEIGHT FILTER HASH\n# odd FILE WIDTH HEIGHT HASH")
    for seed, (w, h, new_w, new_h) in enumerate(sizes()):
        if h > 100 * w:
            continue
        for name, pillow_filter in FILTERS.items():
            out = picture(seed, w, h).resize((new_w, new_h), pillow_filter)
            print("resize", seed, w, h, new_w, new_h, name, digest(out))
    for name in ODD_GOOD:
        image = Image.open(ODD / name).convert("RGB")
        print("odd", name, *image.size, digest(image))


if __name__ == "__main__":
    sys.exit(main())
