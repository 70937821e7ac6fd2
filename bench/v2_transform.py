#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Transform Pillow images with torchvision's v2, one thread, again and again.  Prints images per
second.

    v2_transform.py f32|f16|u8 ROUNDS
"""
import os
import sys
import time

import torch
from PIL import Image
from torchvision.transforms import v2

dtype, rounds = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(1)
steps = [v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), v2.PILToTensor()]
if dtype != "u8":
    steps += [v2.ToDtype(torch.float32, scale=True), v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]
if dtype == "f16":
    steps.append(v2.ToDtype(torch.float16))
transform = v2.Compose(steps)
images = [Image.frombytes("RGB", (256, 256), os.urandom(3 * 256 * 256)) for _ in range(64)]
for image in images:
    transform(image)
begin = time.monotonic()
for i in range(rounds):
    transform(images[i % len(images)])
print(f"{rounds / (time.monotonic() - begin):.1f}")
