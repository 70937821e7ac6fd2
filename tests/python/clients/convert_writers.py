# SPDX-License-Identifier: Apache-2.0
"""Write the images below a folder with a format's own writer.

    convert_writers.py KIND FOLDER OUT
"""

import importlib.machinery
import pathlib
import sys
import types


def without_torchvision():
    """MosaicML Streaming imports it for datasets that are not used here, and so does LitData if it is there."""
    for name in ("torchvision", "torchvision.transforms", "torchvision.transforms.functional", "torchvision.datasets"):
        module = sys.modules[name] = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        module.to_tensor = None
    module.VisionDataset = type("VisionDataset", (), {})


def tfrecord(out, rows):
    import tfrecord

    out.mkdir()
    for k in range(2):
        writer = tfrecord.TFRecordWriter(str(out / f"a.tfrecord-0000{k}-of-00002"))
        for image, label, caption in rows[k * len(rows) // 2 : (k + 1) * len(rows) // 2]:
            writer.write({"image": (image, "byte"), "label": (label, "int"), "caption": (caption.encode(), "byte"),
                          "score": ([label / 2, 1.5], "float")})  # fmt: skip
        writer.close()


def mds(out, rows):
    from streaming import MDSWriter

    columns = {"image": "bytes", "label": "int", "caption": "str", "score": "float32", "meta": "json"}
    with MDSWriter(out=str(out), columns=columns, hashes=["sha1", "xxh64"], size_limit=1 << 16) as writer:
        for image, label, caption in rows:
            writer.write({"image": image, "label": label, "caption": caption, "score": 1.5, "meta": {"n": label}})


def litdata(out, rows):
    from litdata.streaming.writer import BinaryWriter

    writer = BinaryWriter(str(out), chunk_size=7)
    for i, (image, label, caption) in enumerate(rows):
        writer[i] = {"image": image, "label": label, "caption": caption, "score": 2.5}
    writer.done()
    writer.merge()


def lmdb(out, rows):
    import lmdb

    with lmdb.open(str(out), map_size=1 << 30) as env, env.begin(write=True) as transaction:
        for i, (image, _, _) in enumerate(rows):
            transaction.put(b"%08d" % i, image)


without_torchvision()
paths = sorted(pathlib.Path(sys.argv[2]).glob("*/*"))
classes = sorted({p.parent.name for p in paths})
globals()[sys.argv[1]](
    pathlib.Path(sys.argv[3]),
    [(p.read_bytes(), classes.index(p.parent.name), f"picture {i}") for i, p in enumerate(paths)],
)
