# SPDX-License-Identifier: Apache-2.0
# docs.MIGRATING.sh - data of other loaders: photographs, their formats, WebDataset tars, tokens
# shellcheck shell=sh
PYTHONPATH='' "$PYTHON" tests/cli/make_images.py photos/train 70 2
PYTHONPATH='' "$PYTHON" - <<'MAKE'
import array
import glob
import os
import tarfile

images = sorted(glob.glob("photos/train/*/*.jpg"))
os.makedirs("shards")
for k in range(2):
    with tarfile.open(f"shards/train-{k:03}.tar", "w") as tar:
        for i, path in enumerate(images[k::2]):
            tar.add(path, f"{k}{i:04}.jpg")
            with open("label.cls", "w") as f:
                f.write(str(i % 2))
            tar.add("label.cls", f"{k}{i:04}.cls")
with open("train.bin", "wb") as f:
    array.array("H", (i * 7 % 5000 for i in range(64 * 40 + 1))).tofile(f)
MAKE
# By the layout of each format, as tests/python/convert.py knows it: the loaders themselves need not be here.
PYTHONPATH="$BUILD/python:tests/python" "$PYTHON" - <<'MAKE'
import os
import pathlib

import convert

paths = sorted(pathlib.Path("photos/train").glob("*/*"))
rows = [{"image": p.read_bytes(), "label": int(p.parent.name[-2:]), "caption": b"picture", "score": 0.5} for p in paths]
for kind, write in convert.WRITERS.items():
    write(pathlib.Path(f"old-{kind}"), rows)
os.makedirs("imagenet")
for written, name in (("tfrecord", "imagenet/tfrecords"), ("mds", "mds"), ("litdata", "optimized"), ("recordio", "faces"),
                      ("beton/a.beton", "train.beton"), ("lmdb", "images.lmdb")):
    os.rename(f"old-{written}", name)
MAKE
