#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What most people would write instead of packing: Pillow opens, resizes and crops each photo, to
the bytes of our records.  Prints images per second.

    pillow_pack.py <LIST        LIST: one path per line
"""
import sys
import time

from PIL import Image

SHORT_SIDE, CROP = 256, 224


def convert(path):
    image = Image.open(path).convert("RGB")
    width, height = image.size
    if width <= height:
        size = SHORT_SIDE, SHORT_SIDE * height // width
    else:
        size = SHORT_SIDE * width // height, SHORT_SIDE
    image = image.resize(size, Image.BILINEAR)
    left, top = round((size[0] - CROP) / 2), round((size[1] - CROP) / 2)  # as torchvision: half to even
    return image.crop((left, top, left + CROP, top + CROP)).tobytes()


paths = sys.stdin.read().splitlines()
begin = time.monotonic()
total = sum(len(convert(path)) for path in paths)
assert total == len(paths) * CROP * CROP * 3
print(f"{len(paths) / (time.monotonic() - begin):.1f}")
