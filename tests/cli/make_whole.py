# SPDX-License-Identifier: Apache-2.0
"""make_whole.py N FILTER - images of many shapes, and what Pillow makes of them as whole images

Writes src/a/*, the folder of the images, and want.npz: image, image_length and image_size of those
that have a size, in the order of their names; `bad` names the others.  The size is looked for from
the top, by counting down.
"""

import os
import random
import sys
import warnings

import numpy
from PIL import Image, ImageOps

sys.path.insert(0, os.path.join(os.environ["ROOT"], "tests/twin"))
from pillow import photo_like, with_alpha  # noqa: E402

SHAPES = [(64, 64), (64, 63), (63, 64), (90, 60), (60, 91), (300, 20), (20, 300), (500, 375), (375, 500), (128, 3),
          (3, 128), (5, 1), (1, 5), (1, 1), (2, 1), (1, 2), (3, 2), (7, 5), (40, 1), (1, 40), (160, 1), (161, 1),
          (1, 161), (162, 1), (400, 1), (1, 400), (1000, 7), (7, 1000), (1200, 5), (801, 1)]
FORMS = ["rgb.png", "rgba.png", "la.png", "gray.png", "palette.png", "jpg", "gray.jpg", "webp"]


def save(image, form, path, orientation):
    exif = Image.Exif()
    exif[0x112] = orientation
    make = {"rgb": lambda im: im, "rgba": lambda im: with_alpha(im, "RGBA"), "la": lambda im: with_alpha(im, "LA"),
            "gray": lambda im: im.convert("L"), "palette": lambda im: im.quantize(16)}
    image = make.get(form.split(".")[0], make["rgb"])(image)
    image.save(path, exif=exif, **({"lossless": True} if form == "webp" else {}))


def whole(image, n, how):
    """The image with its greatest size of at most n * n pixels and 4 * n a side, or None."""
    short, long = min(image.size), max(image.size)
    for s in range(n, 0, -1):
        t = s * long // short
        if s * t <= n * n and t <= 4 * n:
            size = (s, t) if image.width <= image.height else (t, s)
            return image if size == image.size else image.resize(size, how)
    return None


def main():
    n, how = int(sys.argv[1]), getattr(Image, sys.argv[2].upper())
    warnings.simplefilter("ignore")
    rng = random.Random(n)
    os.makedirs("src/a", exist_ok=True)
    shapes = SHAPES + [(rng.randint(1, 300), rng.randint(1, 300)) for _ in range(40)]
    pixels, sizes, bad = [], [], []
    for i, (width, height) in enumerate(shapes):
        form = FORMS[i % len(FORMS)]
        path = f"src/a/{i:03}.{form}"
        save(photo_like(rng, width, height), form, path, rng.randint(1, 8))
        image = whole(ImageOps.exif_transpose(Image.open(path)).convert("RGB"), n, how)
        if image is None:
            bad.append(path[4:])
            continue
        row = numpy.zeros((n * n, 3), "u1")
        row[:image.width * image.height] = numpy.asarray(image).reshape(-1, 3)
        pixels.append(row)
        sizes.append((image.height, image.width))
    sizes = numpy.array(sizes, "<u4")
    lengths = sizes.prod(1, dtype="<u4")[:, None]
    numpy.savez("want.npz", image=numpy.array(pixels), image_size=sizes, image_length=lengths, bad=numpy.array(bad))


main()
