# SPDX-License-Identifier: Apache-2.0
# docs.MIGRATING.sh - data of another loader: photographs, WebDataset tars, tokens
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
