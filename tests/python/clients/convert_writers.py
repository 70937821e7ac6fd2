# SPDX-License-Identifier: Apache-2.0
"""Write the images below a folder with a format's own writer.

    convert_writers.py KIND FOLDER OUT [CROP]

CROP: of those that are pixels of one size, how many, as shardpack images --crop CROP cuts them out [56]
"""

import importlib.machinery
import io
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


def limit(rows):
    """Bytes of a shard: some shards of any number of images."""
    return max(1 << 16, sum(len(image) for image, _, _ in rows) // 20)


def mds(out, rows):
    from streaming import MDSWriter

    columns = {"image": "bytes", "label": "int", "caption": "str", "score": "float32", "meta": "json"}
    with MDSWriter(out=str(out), columns=columns, hashes=["sha1", "xxh64"], size_limit=limit(rows)) as writer:
        for image, label, caption in rows:
            writer.write({"image": image, "label": label, "caption": caption, "score": 1.5, "meta": {"n": label}})


def mds_zstd(out, rows):
    from streaming import MDSWriter

    columns = {"image": "bytes", "label": "int"}
    with MDSWriter(out=str(out), columns=columns, hashes=["sha1"], compression="zstd:3", size_limit=limit(rows)) as writer:
        for image, label, _ in rows:
            writer.write({"image": image, "label": label})


def pixels_of(image):
    from PIL import Image

    return Image.open(io.BytesIO(image)).convert("RGB")


def mds_pil(out, rows):
    from streaming import MDSWriter

    with MDSWriter(out=str(out), columns={"image": "pil", "label": "int"}) as writer:
        for image, label, _ in rows:
            writer.write({"image": pixels_of(image), "label": label})


def mds_ndarray(out, rows):
    import numpy
    from streaming import MDSWriter

    with MDSWriter(out=str(out), columns={"image": "ndarray", "label": "int"}) as writer:
        for image, label, _ in rows:
            writer.write({"image": numpy.asarray(pixels_of(image)), "label": label})


def litdata(out, rows, value=lambda image: image, **options):
    from litdata.streaming.writer import BinaryWriter

    writer = BinaryWriter(str(out), chunk_size=max(7, len(rows) // 100), **options)
    for i, (image, label, caption) in enumerate(rows):
        writer[i] = {"image": value(image), "label": label, "caption": caption, "score": 2.5}
    writer.done()
    writer.merge()


def litdata_zstd(out, rows):  # the first 8 bytes say that 256 samples at a time are compressed, which needs a leaf such as this
    litdata_tensor(out, rows, compression="zstd")
    assert next(out.glob("*.bin")).read_bytes()[:4] == b"LDFZ"


def litdata_plain(out, rows):  # of samples of bytes and numbers the newest release compresses no chunk
    litdata(out, rows, compression="zstd")


def litdata_chunk(out, rows):
    litdata(out, rows, compression="zstd", compression_level="chunk")


def litdata_tensor(out, rows, **options):
    import numpy
    import torch

    litdata(out, rows, lambda image: torch.from_numpy(numpy.array(pixels_of(image)).transpose(2, 0, 1).copy()), **options)


def recordio(out, rows):
    from mxnet import recordio

    out.mkdir()
    writer = recordio.MXIndexedRecordIO(str(out / "train.idx"), str(out / "train.rec"), "w")
    for i, (image, label, _) in enumerate(rows):
        writer.write_idx(i, recordio.pack(recordio.IRHeader(0, label, i, 0), image))
    writer.close()


def beton(out, rows, mode="raw"):
    import numpy
    from ffcv.fields import BytesField, FloatField, IntField, JSONField, RGBImageField
    from ffcv.writer import DatasetWriter

    class Source:
        def __len__(self):
            return len(rows)

        def __getitem__(self, i):
            image, label, caption = rows[i]
            return numpy.array(pixels_of(image)), label, label / 2, {"caption": caption}, numpy.frombuffer(image, numpy.uint8)

    out.mkdir()
    fields = {"image": RGBImageField(write_mode=mode), "label": IntField(), "score": FloatField(), "meta": JSONField(),
              "file": BytesField()}  # fmt: skip
    DatasetWriter(str(out / "train.beton"), fields, num_workers=2).from_indexed_dataset(Source())


def beton_jpg(out, rows):  # files of images, which FFCV has made
    beton(out, rows, "jpg")


def lmdb(out, rows):
    import lmdb

    with lmdb.open(str(out), map_size=1 << 32) as env, env.begin(write=True) as transaction:
        for i, (image, _, _) in enumerate(rows):
            transaction.put(b"%08d" % i, image)


def webdataset(out, rows):
    from webdataset import ShardWriter

    out.mkdir()
    with ShardWriter(str(out / "train-%03d.tar"), maxcount=max(7, len(rows) // 8), verbose=0) as writer:
        for i, (image, label, _) in enumerate(rows):
            writer.write({"__key__": f"{i:06}", "jpg": image, "cls": label})


def features():
    import datasets

    names = sorted({p.parent.name for p in paths})
    return datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=names),
                              "caption": datasets.Value("string")})  # fmt: skip


def hugging_face(rows):
    import datasets

    columns = {"image": [{"bytes": image, "path": None} for image, _, _ in rows], "label": [label for _, label, _ in rows],
               "caption": [caption for _, _, caption in rows]}  # fmt: skip
    return datasets.Dataset.from_dict(columns, features=features())


def huggingface(out, rows):
    hugging_face(rows).save_to_disk(str(out))


def parquet(out, rows):
    hugging_face(rows).to_parquet(str(out))


def parquet_folder(out, rows):
    out.mkdir()
    for k in range(2):
        hugging_face(rows[k * len(rows) // 2 : (k + 1) * len(rows) // 2]).to_parquet(str(out / f"train-{k:05}-of-00002.parquet"))


def parquet_plain(out, rows):  # a column of bytes, as pyarrow and pandas write it
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({"image": [image for image, _, _ in rows], "label": [label for _, label, _ in rows]})
    pyarrow.parquet.write_table(table, str(out), row_group_size=1000)


def arrow(out, rows):
    import pyarrow

    table = pyarrow.table({"image": [image for image, _, _ in rows], "label": [label for _, label, _ in rows]})
    with pyarrow.OSFile(str(out), "wb") as file, pyarrow.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=1000)


def hdf5(out, rows):
    import h5py
    import numpy

    with h5py.File(out, "w") as file:
        images = file.create_dataset("image", (len(rows),), h5py.vlen_dtype(numpy.uint8))
        for i, (image, _, _) in enumerate(rows):
            images[i] = numpy.frombuffer(image, numpy.uint8)
        file["label"] = [label for _, label, _ in rows]


def zarr(out, rows):  # which has no image files in an array: pixels of one size, by Pillow
    import numpy
    import zarr

    group = zarr.open_group(str(out), mode="w")
    images = group.create_array("image", shape=(len(rows), crop, crop, 3), chunks=(64, crop, crop, 3), dtype="u1")
    for first in range(0, len(rows), 64):
        images[first : first + 64] = numpy.stack([square(pixels_of(image)) for image, _, _ in rows[first : first + 64]])
    group.create_array("label", data=numpy.array([label for _, label, _ in rows]))


def square(image):
    """As shardpack does with --crop and --resize 8/7 of that."""
    import numpy
    from PIL import Image

    side, (width, height) = crop * 8 // 7, image.size
    size = (side, side * height // width) if width <= height else (side * width // height, side)
    image = numpy.asarray(image.resize(size, Image.Resampling.BILINEAR))
    top, left = round((image.shape[0] - crop) / 2), round((image.shape[1] - crop) / 2)
    return image[top : top + crop, left : left + crop]


if __name__ == "__main__":
    kind, folder, out, crop = (sys.argv[1:] + ["56"])[:4]
    crop = int(crop)
    if kind.startswith(("mds", "litdata")):
        without_torchvision()
    paths = sorted(pathlib.Path(folder).glob("*/*"))
    classes = sorted({p.parent.name for p in paths})
    rows = [(p.read_bytes(), classes.index(p.parent.name), f"picture {i}") for i, p in enumerate(paths)]
    globals()[kind](pathlib.Path(out), rows)
