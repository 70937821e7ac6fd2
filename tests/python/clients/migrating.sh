#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/migrating.sh - what docs/MIGRATING.md says that things become, run in its order
. "${0%/*}/lib.sh"
/usr/bin/python3 "$ROOT/tests/cli/make_images.py" photos/train 70 2
mkdir shards
/usr/bin/python3 - <<'MAKE'
import array, os, tarfile
images = sorted(os.path.join(d, n) for d, _, names in os.walk("photos") for n in names if n.endswith(".jpg"))
for k in range(2):
    with tarfile.open(f"shards/train-{k:03}.tar", "w") as tar:
        for i, path in enumerate(images[k::2]):
            tar.add(path, f"{k}{i:04}.jpg")
            with open("label.cls", "w") as f:
                f.write(str(i % 2))
            tar.add("label.cls", f"{k}{i:04}.cls")
array.array("H", (i * 7 % 5000 for i in range(64 * 40 + 1))).tofile(open("train.bin", "wb"))
MAKE
PATH=$BUILD/bin:$PATH
export PATH
python -W error "$ROOT/tests/python/clients/migrating.py" "$ROOT/docs/MIGRATING.md"
