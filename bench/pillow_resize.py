#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Resize an image with Pillow, bilinear, again and again.  Prints images per second.

    pillow_resize.py WIDTH HEIGHT NEW_WIDTH NEW_HEIGHT ROUNDS
"""
import os
import sys
import time

from PIL import Image

width, height, new_width, new_height, rounds = map(int, sys.argv[1:])
image = Image.frombytes("RGB", (width, height), os.urandom(3 * width * height))
begin = time.monotonic()
for _ in range(rounds):
    image.resize((new_width, new_height), Image.BILINEAR)
print(f"{rounds / (time.monotonic() - begin):.1f}")
