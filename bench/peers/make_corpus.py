# SPDX-License-Identifier: Apache-2.0
"""make_corpus.py DIR RECORDS - JPEGs in folders of classes, and the pixels that Pillow makes of
them

Smooth shapes with grain, of about 25 KB each, like small photographs.  pixels.bin and labels.npy
are in the order of the sorted paths, so that every row has the same records.  digests.npy has a
hash of each record, and sums.json what each consumer's epoch comes to.
"""

import json
import os
import sys

import numpy as np
from common import corpus, digests, sums
from PIL import Image

CLASSES = 16


def main():
    out, records = sys.argv[1], int(sys.argv[2])
    rng = np.random.default_rng(1)
    for c in range(CLASSES):
        os.makedirs(f"{out}/jpeg/{c:03}", exist_ok=True)
    for i in range(records):
        shapes = Image.fromarray(rng.integers(0, 256, (9, 9, 3), np.uint8)).resize((224, 224), Image.BICUBIC)
        grain = rng.integers(-12, 13, (224, 224, 1), np.int16)
        pixels = np.clip(np.asarray(shapes).astype(np.int16) + grain, 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(f"{out}/jpeg/{i % CLASSES:03}/{i:07}.jpg", quality=85)
    paths = [
        f"{out}/jpeg/{c}/{n}" for c in sorted(os.listdir(f"{out}/jpeg")) for n in sorted(os.listdir(f"{out}/jpeg/{c}"))
    ]
    with open(f"{out}/pixels.bin", "wb") as f:
        for path in paths:
            f.write(np.asarray(Image.open(path).convert("RGB")).tobytes())
    np.save(f"{out}/labels.npy", np.array([int(p.split("/")[-2]) for p in paths], np.int64))
    images, labels = corpus(out)
    np.save(f"{out}/digests.npy", digests(images, labels))
    with open(f"{out}/sums.json", "w") as f:  # the last file: with it, the corpus is complete
        json.dump(sums(images, labels), f)


main()
