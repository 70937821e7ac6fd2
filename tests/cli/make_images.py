#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make_images.py DIR COUNT [CLASSES [SEED]] - small images in folders of classes, the same ones
each time

Each is a smooth random pattern of about 64 x 48 pixels, no two alike; most are JPEG, every tenth is
PNG.
"""

import os
import random
import sys

from PIL import Image


def pattern(rng, width, height):
    """A few random pixels, blown up: cheap, and nothing like its neighbours."""
    small = Image.frombytes("RGB", (5, 4), rng.randbytes(5 * 4 * 3))
    return small.resize((width, height), Image.BICUBIC)


def main():
    folder, count = sys.argv[1], int(sys.argv[2])
    classes = int(sys.argv[3]) if len(sys.argv) > 3 else 8
    rng = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    for c in range(classes):
        os.makedirs(f"{folder}/class_{c:02}", exist_ok=True)
    for i in range(count):
        image = pattern(rng, rng.randint(48, 80), rng.randint(36, 60))
        path = f"{folder}/class_{i % classes:02}/{i:05}"
        if i % 10 == 9:
            image.save(path + ".png", compress_level=1)
        else:
            image.save(path + ".jpg", quality=80)


main()
