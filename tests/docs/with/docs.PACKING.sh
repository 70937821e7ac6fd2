# SPDX-License-Identifier: Apache-2.0
# docs.PACKING.sh - small data of every kind that docs/PACKING.md packs
# shellcheck shell=sh
unset PYTHONPATH # this needs Pillow and NumPy, and not libshard
"$PYTHON" tests/cli/make_images.py photos/train 40 4
"$PYTHON" tests/cli/make_images.py photos/val 8 4
"$PYTHON" - <<'MAKE'
import glob
import io
import json
import os
import shutil
import tarfile
import zipfile

import numpy as np
from PIL import Image

rng = np.random.default_rng(1)
photos = sorted(glob.glob("photos/train/*/*"))


def add(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


# WebDataset and img2dataset; a tar and a ZIP of class folders.
os.makedirs("shards")
os.makedirs("i2d")
for k in range(2):
    with tarfile.open(f"shards/train-{k:03}.tar", "w") as wds, tarfile.open(f"i2d/{k:05}.tar", "w") as i2d:
        for i, path in enumerate(photos[k::2]):
            with open(path, "rb") as f:
                data = f.read()
            suffix = path.rsplit(".", 1)[1]
            add(wds, f"{i:06}.{suffix}", data)
            add(wds, f"{i:06}.cls", b"%d" % (i % 4))
            add(i2d, f"{i:09}.{suffix}", data)
            add(i2d, f"{i:09}.json", json.dumps({"caption": f"picture {i}", "class": f"kind {i % 3}"}).encode())
with tarfile.open("train.tar", "w") as tar, zipfile.ZipFile("train.zip", "w") as archive:
    for path in photos:
        name = os.path.relpath(path, "photos/train")
        tar.add(path, name)
        archive.write(path, name)

# A flat folder, with classes in the names; masks beside photos.
os.makedirs("flat")
for path in photos:
    name = os.path.relpath(path, "photos/train").replace("class_", "kind").replace("/", "_")
    with open(path, "rb") as f, open(f"flat/{name}", "wb") as out:
        out.write(f.read())
    mask = Image.fromarray(rng.integers(0, 21, Image.open(path).size[::-1], dtype=np.uint8))
    target = "photos/masks/" + os.path.relpath(path, "photos/train").rsplit(".", 1)[0] + ".png"
    os.makedirs(os.path.dirname(target), exist_ok=True)
    mask.save(target)

# Images that a table beside them describes.
os.makedirs("imagefolder")
for name in ("00000.jpg", "00004.jpg"):
    shutil.copy(f"photos/train/class_00/{name}", "imagefolder")

# Arrays, raw records, tokens.
np.save("image.npy", rng.integers(0, 256, (60, 32, 32, 3), dtype=np.uint8))
np.save("label.npy", rng.integers(0, 10, 60))
row = np.dtype([("image", "u1", (3, 32, 32)), ("label", "u1")])
rows = np.frombuffer(rng.bytes(row.itemsize * 50), row).copy()
rows["label"] %= 10
rows.tofile("train.bin")
tokens = rng.integers(0, 50256, 20000).astype("<u2")
tokens[rng.integers(0, 20000, 60)] = 50256
tokens.tofile("tokens.bin")

# CIFAR-10 and MNIST, as they are published.
os.makedirs("cifar-10-batches-bin")
os.makedirs("MNIST/raw")
for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
    batch = rng.integers(0, 256, (20, 3073), dtype=np.uint8)
    batch[:, 0] %= 10
    batch.tofile(f"cifar-10-batches-bin/{name}.bin")
with open("cifar-10-batches-bin/batches.meta.txt", "w") as f:
    f.write("airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n")
for half in ("train", "t10k"):
    images = rng.integers(0, 256, (30, 28, 28), dtype=np.uint8)
    labels = rng.integers(0, 10, 30, dtype=np.uint8)
    for name, array in (("images-idx3", images), ("labels-idx1", labels)):
        head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
        with open(f"MNIST/raw/{half}-{name}-ubyte", "wb") as f:
            f.write(head + array.tobytes())
MAKE
