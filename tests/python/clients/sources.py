# SPDX-License-Identifier: Apache-2.0
"""Datasets of Hugging Face, files of HDF5 and folders of Zarr, written by their own libraries; run by
sources.sh."""

import io
import json
import multiprocessing
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest
import unittest.mock
import warnings

import libshard
import numpy as np

if multiprocessing.parent_process() is None:  # a worker, which imports this file, needs no more
    import datasets
    import h5py
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet
    import zarr
    from libshard._arrays import _Column, _column, _file_of
    from PIL import Image

N = 500
CLASSES = ["cat", "dog", "owl"]
IMAGE = {"resize": 32, "crop": 24}
OPTIONS = {"shard_records": 60}


def arrays(count=N):
    rng = np.random.default_rng(1)
    return {
        "image": rng.integers(0, 256, (count, 8, 8, 3), "u1"), "label": rng.integers(0, 3, count),
        "name": [f"row {i}é" for i in range(count)], "score": rng.random((count, 2)).astype("f4"),
    }  # fmt: skip


def pictures(count=40):
    """JPEG and PNG, of different shapes."""
    found, rng = [], np.random.default_rng(2)
    for i in range(count):
        small = Image.fromarray(rng.integers(0, 256, (9, 9, 3), "u1"))
        out = io.BytesIO()
        small.resize((30 + i, 70 - i), Image.Resampling.BICUBIC).save(out, "PNG" if i % 3 else "JPEG")
        found.append(out.getvalue())
    return found


class Case(unittest.TestCase):
    def setUp(self):
        for name in os.listdir():
            shutil.rmtree(name) if os.path.isdir(name) else os.unlink(name)

    def pack(self, source, schema=None, out="ours", **options):
        return libshard.pack(source, schema, out, replace=True, **{**OPTIONS, **options})

    def refuse(self, source, words, schema=None, error=libshard.ArgumentError, **options):
        with self.assertRaisesRegex(error, words):
            self.pack(source, schema, **options)


# ---- images ----


class Pictures(Case):
    schema = {"image": libshard.Image(**IMAGE), "label": None, "score": None}

    def setUp(self):
        super().setUp()
        self.files = pictures()
        self.labels = [i % 3 for i in range(len(self.files))]
        rows = zip(self.files, self.labels)
        samples = [{"image": f, "label": label, "score": np.float32(label / 2)} for f, label in rows]
        self.want = self.pack(samples, self.schema, "want", classes=CLASSES, shard_records=9).id

    def features(self, **more):
        return datasets.Features(
            {"image": datasets.Image(), "label": datasets.ClassLabel(names=CLASSES), "score": datasets.Value("float32"), **more}
        )

    def columns(self):
        return {
            "image": [{"bytes": f, "path": None} for f in self.files], "label": self.labels,
            "score": [label / 2 for label in self.labels],
        }  # fmt: skip

    def check(self, source, schema=None, **options):
        ds = self.pack(source, schema or self.schema, shard_records=9, **options)
        self.assertEqual((ds.id, ds.classes), (self.want, CLASSES))

    def test_a_dataset_of_hugging_face(self):
        hf = datasets.Dataset.from_dict(self.columns(), features=self.features())
        self.check(hf)
        self.check(hf, workers=2)
        self.check(hf.with_format("numpy"))
        self.check(hf.cast_column("image", datasets.Image(decode=False)))
        self.check(hf.add_column("more", [1] * len(hf)))  # which the schema leaves out
        with unittest.mock.patch("PIL.Image.open", side_effect=AssertionError):  # Pillow has no part in it
            self.check(hf)
            with self.assertRaises(AssertionError):  # the control
                hf[0]
        stream, ds = self.pack(hf.to_iterable_dataset(), self.schema), libshard.open("want")
        self.assertEqual(stream.classes, CLASSES)
        for a, b in zip(stream, ds, strict=True):
            self.assertEqual([bytes(a["image"]), *map(float, (a["label"], a["score"]))],
                             [bytes(b["image"]), *map(float, (b["label"], b["score"]))])  # fmt: skip
        self.refuse(hf.with_transform(lambda batch: batch), "field 'image': the dataset has a transform", self.schema)

    def test_formats_and_transforms_of_hugging_face(self):
        """They make other samples than the features say, so the first sample tells names and dtypes."""
        features = datasets.Features({"x": datasets.Value("int32"), "f": datasets.Value("float64"),
                                      "v": datasets.Sequence(datasets.Value("uint8"), length=2),
                                      "fine": datasets.ClassLabel(names=CLASSES)})  # fmt: skip
        hf = datasets.Dataset.from_dict({"x": [7, 8, 9], "f": [1 / 3] * 3, "v": [[1, 2]] * 3, "fine": [2, 0, 1]}, features=features)
        for source, want in (
            (hf, {"x": "int32", "f": "float64", "v": "uint8", "fine": "int64"}),
            (hf.with_format("torch"), {"x": "int64", "f": "float32", "v": "int64", "fine": "int64"}),
            (hf.to_iterable_dataset().with_format("torch"), {"x": "int64", "f": "float32", "v": "int64", "fine": "int64"}),
            (hf.with_format("numpy", columns=["v", "fine"]), {"v": "int64", "fine": "int64"}),
            (hf.with_format(columns=["x", "fine"]), {"x": "int32", "fine": "int64"}),
            (hf.with_transform(lambda b: {"y": [v + 0.5 for v in b["x"]], "fine": b["fine"]}), {"y": "float64", "fine": "int64"}),
        ):
            for workers in (None, 0) if hasattr(source, "__len__") else (None,):
                ds = self.pack(source, workers=workers)
                self.assertEqual({f.name: f.dtype for f in ds.schema}, want)
                self.assertEqual((ds.classes, ds.column("fine").tolist()), (CLASSES, [2, 0, 1]))
                for sample, record in zip(source, ds, strict=True):
                    for name in want:
                        self.assertEqual(np.asarray(record[name]).tolist(), np.asarray(sample[name]).tolist(), name)
        self.assertEqual(self.pack(hf.with_format("torch"), {"f": None}).schema["f"].dtype, "float32")
        bad = hf.with_transform(lambda b: {"y": [1 // (x - 7) for x in b["x"]]})
        self.refuse(bad, "sample 0 of the source.*raises ZeroDivisionError: .*; mend it, or give a schema", error=libshard.RecordError)
        with self.assertWarnsRegex(UserWarning, "1 of 3 samples were left out"):
            self.assertEqual(self.pack(bad, {"y": "i64"}, on_error="skip").column("y").tolist(), [1, 0])
        for kind in "pandas", "arrow", "polars":
            self.refuse(hf.with_format(kind), "must be a dict, as dataset.with_format.None. gives", error=libshard.RecordError)

    def test_images_by_their_paths(self):
        for i, f in enumerate(self.files):
            pathlib.Path(f"{i}.img").write_bytes(f)
        paths = [os.path.abspath(f"{i}.img") for i in range(len(self.files))]
        hf = datasets.Dataset.from_dict({**self.columns(), "image": paths}, features=self.features())
        self.check(hf)
        bad = {"no/dir": "Not a directory", "n" * 300: "File name too long", "a\0b": "embedded null byte"}
        for name, words in bad.items():
            path = os.path.abspath("0.img") + "/" + name if name == "no/dir" else "/" + name
            samples = [{"image": {"bytes": None, "path": p}, "label": 0, "score": 0.5} for p in (paths[0], path)]
            self.refuse(samples, f"sample 1, field 'image': .*{words}", self.schema, libshard.RecordError)
            with self.assertWarnsRegex(UserWarning, "1 of 2 samples were left out"):
                self.assertEqual(len(self.pack(samples, self.schema, on_error="skip")), 1)
        os.unlink(paths[7])
        self.refuse(hf, "sample 7, field 'image': /.*/7.img: No such file", self.schema, libshard.RecordError)
        rows = [{"image": {"bytes": None, "path": "7.img"}, "label": 0, "score": 0.5}]
        self.refuse(rows, "sample 0, field 'image': .*'7.img', does not begin with '/'", self.schema)
        rows[0]["image"]["path"] = None
        self.refuse(rows, "sample 0, field 'image': the image has no bytes", self.schema)

    def test_tables_and_files(self):
        hf = datasets.Dataset.from_dict(self.columns(), features=self.features())
        for name in ("hf.parquet", "HF.PARQUET"):
            hf.to_parquet(name)
            self.check(name)
            self.check(name, workers=2)
        table = pyarrow.parquet.read_table("hf.parquet")
        self.check(table)
        plain = {**self.columns(), "image": self.files, "score": np.float32(self.columns()["score"])}
        for make in (pd.DataFrame, pl.DataFrame, pa.table, dict):
            self.check(make(plain), classes=CLASSES)
            self.check(make({**plain, "image": self.columns()["image"]}), classes=CLASSES)
        self.refuse(table, r"libshard.Image decodes: say \{'image': libshard.Image\(")
        self.refuse(table, "column 'label' .* is not files of images", {"label": libshard.Image()})
        self.refuse(pa.table({"image": [b"x", None]}), "column 'image' .*: 1 of 2 values are missing", {"image": libshard.Image()})

    def test_a_bad_image(self):
        columns = self.columns()
        columns["image"][13] = {"bytes": self.files[13][:40], "path": None}
        hf = datasets.Dataset.from_dict(columns, features=self.features())
        hf.to_parquet("hf.parquet")
        for source in (hf, "hf.parquet", pd.DataFrame(columns)):
            self.refuse(source, "sample 13, field 'image': ", self.schema, libshard.RecordError)
            self.refuse(source, "sample 13 of the source: .*field 'image': ", self.schema, libshard.RecordError, workers=2)
            with self.assertWarnsRegex(UserWarning, "1 of 40 samples were left out"):
                ds = self.pack(source, self.schema, on_error="skip")
            self.assertEqual([int(x) for x in ds.column("label")], self.labels[:13] + self.labels[14:])

    def test_which_label_has_names(self):
        columns = {name: values for name, values in self.columns().items() if name == "score"}
        kind = datasets.ClassLabel(names=CLASSES)
        numbers = datasets.Value("float32")
        one = datasets.Dataset.from_dict({**columns, "fine": self.labels},
                                         features=datasets.Features({"score": numbers, "fine": kind}))  # fmt: skip
        both = datasets.Dataset.from_dict({**columns, "fine": self.labels, "label": self.labels},
                                          features=datasets.Features({"score": numbers, "fine": kind, "label": kind}))  # fmt: skip
        two = both.rename_column("label", "coarse")
        one.to_parquet("one.parquet")
        two.to_parquet("two.parquet")
        both.to_parquet("both.parquet")
        for source in (one, "one.parquet"):
            ds = self.pack(source)
            self.assertEqual((ds.classes, ds.schema["fine"].semantic), (CLASSES, "label"))
        chosen = libshard.Field("fine", "int64", (), semantic="label")
        for source in (two, "two.parquet"):
            self.refuse(source, "has names for the classes of 'fine', 'coarse', and none of these is called 'label'; say which")
            self.assertEqual(self.pack(source, {"fine": chosen}).classes, CLASSES)
        for source in (both, "both.parquet"):
            with self.assertWarnsRegex(UserWarning, "'fine' is packed without the names of its 3 classes.* that is 'label'"):
                self.assertEqual(self.pack(source).classes, CLASSES)
        with self.assertWarnsRegex(UserWarning, "'fine' is packed without .* there is none"):
            self.assertEqual(self.pack(one, {"fine": None}).classes, [])

    def test_images_in_arrays(self):
        with h5py.File("a.h5", "w") as f:
            kind = h5py.vlen_dtype(np.uint8)
            f.create_dataset("image", data=np.array([np.frombuffer(x, "u1") for x in self.files], object), dtype=kind)
            f["label"], f["score"] = self.labels, np.float32(self.columns()["score"])
            f.attrs["classes"] = CLASSES
        self.check("a.h5")
        self.check("a.h5", workers=2)
        group = zarr.open_group("a.zarr", mode="w", attributes={"classes": CLASSES})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of bytes in version 3, which are not in its specification yet
            files = group.create_array("image", shape=(len(self.files),), chunks=(7,), dtype=zarr.dtype.VariableLengthBytes())
            files[:] = np.array(self.files, object)
            group["label"], group["score"] = np.array(self.labels), np.float32(self.columns()["score"])
            for path in ("a.h5", "a.zarr"):  # neither a call nor a chunk for each row
                with unittest.mock.patch.object(_Column, "_read", autospec=True, side_effect=_Column._read) as read:
                    self.check(path)
                self.assertLess(sum(call.args[0].dtype == "object" for call in read.call_args_list), 20)
        self.refuse("a.h5", "array 'image' has rows of different lengths, of uint8", {"image": None})
        self.refuse("a.h5", "array 'label' .* is not files of images", {"label": libshard.Image()})


# ---- arrays ----


class Files(Case):
    def hdf5(self, columns=None, path="a.h5", chunk=64, **attributes):
        with h5py.File(path, "w") as f:
            for name, values in (columns or arrays()).items():
                is_text = isinstance(values, list)
                # Labels as another type of integers, and numbers with their bytes the other way round.
                values = values if is_text else values.astype({"int64": "u1", "float32": ">f4"}.get(values.dtype.name, values.dtype))
                more = {} if is_text or not chunk else {"chunks": (min(chunk, len(values)), *values.shape[1:]), "compression": "gzip"}
                f.create_dataset(name, data=values, **more)
            for name, value in attributes.items():
                f["label"].attrs[name] = value
        return path

    def zarr(self, columns=None, path="a.zarr", chunk=64, version=3, **attributes):
        shutil.rmtree(path, ignore_errors=True)
        group = zarr.open_group(path, mode="w", zarr_format=version)
        for name, values in (columns or arrays()).items():
            if isinstance(values, list):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of version 3, whose texts are not in its specification yet
                    group.create_array(name, shape=(len(values),), dtype=str)[:] = np.array(values, dtype=object)
            else:
                group.create_array(name, data=values, chunks=(chunk, *values.shape[1:]))
        if attributes:
            group["label"].attrs.update(attributes)
        return path

    def both(self, **options):
        return self.hdf5(**options), self.zarr(**options)

    def test_the_same_as_arrays(self):
        want = {}
        for order in ({}, {"order": "shuffle", "seed": 3, "key": "name"}):
            want = self.pack(arrays(), None, "want", classes=CLASSES, **order).id
            for chunk in (64, 7, N):
                for path in (*self.both(chunk=chunk, classes=CLASSES), self.zarr(path="v2.zarr", version=2, class_names=CLASSES)):
                    for options in ({}, {"workers": 0}, {"workers": 2}, {"workers": 2, "start_method": "fork"}):
                        if not options or (chunk == 64 and (order or "start_method" in options)):
                            ds = self.pack(path, **order, **options)
                            self.assertEqual((ds.id, ds.classes), (want, CLASSES), (path, options))
        self.assertEqual(self.pack(self.hdf5(chunk=0), classes=CLASSES, **order).id, want)
        other = arrays()
        other["image"] = other["image"][::-1]
        for path in self.both(columns=other):
            self.assertNotEqual(self.pack(path, classes=CLASSES, **order).id, want)  # the control

    def test_a_group_that_is_open(self):
        want = self.pack(arrays(), None, "want", classes=CLASSES).id
        for path, library, at in ((self.hdf5(path="b.h5"), h5py.File, "b.h5"), (self.zarr(path="b.zarr"), zarr.open_group, "b.zarr")):
            group = library(path, mode="r")
            for workers in (None, 2):
                self.assertEqual(self.pack(group, workers=workers, classes=CLASSES).id, want, at)
        with h5py.File("c.h5", "w") as f:
            f["inner/label"] = [0, 1, 0]
        with h5py.File("c.h5", "r") as f:
            self.assertEqual(self.pack(f["inner"], workers=2).column("label").tolist(), [0, 1, 0])
            self.refuse(f["inner"], "h5py.*forked workers would share", workers=2, start_method="fork")
            self.refuse("c.h5", r"'inner' is a group in it.*give the group itself, as h5py.File\('.*c.h5'\)\['inner'\]")
        with h5py.File("c.h5", "a") as f:
            self.refuse(f["inner"], r"c.h5: is open with mode 'r\+', and each process opens the file for itself; close it")
        self.refuse(f, "is an h5py.File that is closed; give its path")
        group = zarr.open_group("c.zarr", mode="w").create_group("inner")
        group.create_array("label", data=np.array([0, 1, 0]))
        self.assertEqual(self.pack("c.zarr/inner", workers=2).column("label").tolist(), [0, 1, 0])
        self.assertEqual(self.pack(group, workers=2).column("label").tolist(), [0, 1, 0])
        self.refuse("c.zarr/inner/label", "label: is one array of Zarr, and pack.. reads groups.*give the folder of its group")
        self.refuse("c.zarr", "'inner' is a group in it.*give the group itself, as '.*c.zarr/inner'")
        memory = zarr.open_group(zarr.storage.MemoryStore(), mode="w")
        memory.create_array("label", data=np.array([0]))
        self.refuse(memory, "the group lies in a MemoryStore, and pack.. reads folders of Zarr")

    def test_a_schema_chooses(self):
        columns = arrays()
        for path in self.both():
            ds = self.pack(path, {"score": None, "name": "text[<=20]"})
            self.assertEqual([f.name for f in ds.schema if f.semantic != "length"], ["score", "name"])
            self.assertEqual(ds.column("score").tolist(), columns["score"].tolist())
            self.assertEqual([ds[i]["name"] for i in range(N)], columns["name"])
            self.refuse(path, r"has no array 'x'; it has \['image', 'label', 'name', 'score'\]", {"x": None})
            self.refuse(path, "names= is not for tables and groups of arrays", names=["image"])

    def test_what_is_refused(self):
        with h5py.File("a.h5", "w") as f:
            f["x"], f["y"], f["one"] = [1, 2, 3], [1, 2], 7
            f["part"] = np.zeros(3, [("a", "i4"), ("b", "f4")])
            f["complex"] = np.zeros(3, "c8")
            f.create_dataset("ragged", (3,), h5py.vlen_dtype(np.int32))
            f["virtual"] = f["x"]
            layout = h5py.VirtualLayout((3,), "i8")
            layout[:] = h5py.VirtualSource("gone.h5", "x", (3,))
            f.create_virtual_dataset("elsewhere", layout)
        for name, words in (
            ("y", r"the arrays have different lengths: \{'x': 3, 'y': 2\}; must be the same; name the arrays that are wanted"),
            ("one", "array 'one' is one value, without a row for each record; name the arrays"),
            ("part", r"array 'part' .* is not numbers or text; give each of its parts \['a', 'b'\] an array of its own"),
            ("complex", "array 'complex' .complex64. is not numbers or text"),
            ("ragged", "array 'ragged' has rows of different lengths, of int32; give arrays of one length"),
            ("elsewhere", "array 'elsewhere' is virtual, and parts that are not there"),
        ):
            self.refuse("a.h5", words, {"x": None, name: None})
        self.assertEqual(len(self.pack("a.h5", {"x": None})), 3)
        group = zarr.open_group("a.zarr", mode="w")
        group.create_array("x", data=np.arange(3))
        group.create_array("y", data=np.arange(2))
        group.create_array("complex", data=np.ones(3, "c8"))
        self.refuse("a.zarr", "the arrays have different lengths: {'x': 3, 'y': 2}", {"x": None, "y": None})
        self.refuse("a.zarr", "array 'complex' .complex64. is not numbers or text", {"complex": None})
        h5py.File("empty.h5", "w").close()
        self.refuse("empty.h5", "has no arrays")
        self.refuse("none.h5", "none.h5", error=libshard.NotFoundError)
        self.refuse("none.zarr", "none.zarr", error=libshard.NotFoundError)

    def test_names_of_classes(self):
        label = {"label": np.arange(5) % 3}
        for path in (*self.both(columns=label), self.zarr(columns=label, path="b.zarr", version=2)):
            self.assertEqual(self.pack(path).classes, [])
            self.assertEqual(self.pack(path, classes=CLASSES).classes, CLASSES)
        for path in self.both(columns=label, classes=CLASSES, class_names=CLASSES[::-1]):
            self.refuse(path, r"names of classes are said twice, and differ: attribute 'classes' of the label has \['cat'")
            self.assertEqual(self.pack(path, classes=CLASSES).classes, CLASSES)
        for path in self.both(columns=label, classes=3):  # a number of classes is not their names
            self.assertEqual(self.pack(path).classes, [])
        for numbers, ok in (({"dog": 1, "cat": 0, "owl": 2}, True), ({"cat": 1, "dog": 2, "owl": 3}, False)):
            with h5py.File("enum.h5", "w") as f:
                f.create_dataset("label", data=label["label"].astype("i1"), dtype=h5py.enum_dtype(numbers, "i1"))
                f.create_dataset("other", data=label["label"].astype("i1"), dtype=h5py.enum_dtype(numbers, "i1"))
            if ok:
                with self.assertWarnsRegex(UserWarning, "'other' is packed without the names of its 3 classes"):
                    self.assertEqual(self.pack("enum.h5").classes, CLASSES)
            else:
                self.refuse("enum.h5", r"the enumeration of array 'label' has the numbers \[1, 2, 3\]", {"label": None})

    def test_chunks_that_are_not_stored(self):
        with h5py.File("a.h5", "w") as f:
            f.create_dataset("x", (6,), "i4", chunks=(2,), fillvalue=7)[:2] = 1
            f.create_dataset("y", (6,), "i4")
        group = zarr.open_group("a.zarr", mode="w")
        group.create_array("x", shape=(6,), dtype="i4", chunks=(2,), fill_value=7)[:2] = 1
        for path in ("a.h5", "a.zarr"):
            with self.assertWarnsRegex(UserWarning, "array 'x': only 1 of its 3 chunks are stored, and each value of the others is 7"):
                self.assertEqual(self.pack(path, {"x": None}).column("x").tolist(), [1, 1, 7, 7, 7, 7])
        with self.assertWarnsRegex(UserWarning, "array 'y': only 0 of its 1 chunks"):
            self.pack("a.h5", {"y": None})

    def test_damage(self):
        """Of what has a checksum, or is compressed: a flipped byte, a cut, and a file that is gone."""
        rows = {"x": np.random.default_rng(3).integers(0, 99, (100, 50)), "label": np.arange(100) % 3}
        with h5py.File("a.h5", "w") as f:
            f.create_dataset("x", data=rows["x"], chunks=(10, 50), fletcher32=True)
            f["label"] = rows["label"]
            place = f["x"].id.get_chunk_info(4).byte_offset
        data = bytearray(pathlib.Path("a.h5").read_bytes())
        data[place + 5] ^= 1
        pathlib.Path("flip.h5").write_bytes(data)
        pathlib.Path("cut.h5").write_bytes(data[: len(data) // 2])
        self.assertEqual(len(self.pack("a.h5")), 100)
        for workers in (None, 2):
            self.refuse("flip.h5", r"flip.h5: .*h5py cannot read rows 0 to 99 of array 'x'|rows 40 to 49 of array 'x'",
                        error=libshard.CorruptError, workers=workers)  # fmt: skip
        self.refuse("cut.h5", "cut.h5: h5py cannot read it: .*truncated.*compare it with its original", error=libshard.CorruptError)
        code = "import h5py, os; f = h5py.File('open.h5', 'w', libver='latest'); f['x'] = [1]; f.swmr_mode = True; os._exit(0)"
        subprocess.run([sys.executable, "-c", code], check=True)
        self.refuse("open.h5", "open.h5: is being written, or its writer was killed before it closed the file; wait until .*h5clear")
        pathlib.Path("no.h5").write_bytes(b"no")
        self.refuse("no.h5", "no.h5: h5py cannot read it", error=libshard.CorruptError)
        self.zarr(columns=rows, chunk=10)
        self.assertEqual(len(self.pack("a.zarr")), 100)
        chunk = next(p for p in sorted(pathlib.Path("a.zarr/x").rglob("*")) if p.is_file() and p.name != "zarr.json")
        chunk.write_bytes(chunk.read_bytes()[:20])
        self.refuse("a.zarr", "a.zarr: zarr cannot read rows", error=libshard.CorruptError)
        chunk.unlink()
        with self.assertWarnsRegex(UserWarning, "array 'x': only 9 of its 10 chunks are stored.*the data is damaged"):
            self.pack("a.zarr")
        pathlib.Path("a.zarr/zarr.json").write_text("{")
        self.refuse("a.zarr", "a.zarr: zarr cannot read it", error=libshard.CorruptError)

    def test_rows_that_cannot_be_read_are_left_out(self):
        rows = {"x": np.random.default_rng(3).integers(0, 99, (100, 50)), "label": np.arange(100) % 3}
        with h5py.File("a.h5", "w") as f:
            f.create_dataset("x", data=rows["x"], chunks=(10, 50), fletcher32=True, maxshape=(100, 50))
            f["label"] = rows["label"]
            place = f["x"].id.get_chunk_info(4).byte_offset
        with open("a.h5", "r+b") as f:
            f.seek(place)
            f.write(b"\xff")
        for block_bytes in (1, 4 << 20):  # rows of other chunks that are read at once are not lost
            with unittest.mock.patch("libshard._arrays._BLOCK_BYTES", block_bytes), \
                 self.assertWarnsRegex(UserWarning, "10 of 100 samples"):  # fmt: skip
                ds = self.pack("a.h5", on_error="skip")
            self.assertEqual(ds.column("x").tolist(), np.delete(rows["x"], slice(40, 50), 0).tolist())

    def test_rows_without_chunks_take_few_reads(self):
        """h5py takes as long for a row as for thousands of them."""
        columns = arrays(3000)
        options = {"classes": CLASSES, "shard_records": 1000}
        self.hdf5(columns=columns, chunk=0)
        for more, most in (({}, 20), ({"order": "shuffle", "seed": 3}, 60), ({"on_error": "skip"}, 60)):
            want = self.pack(columns, None, "want", **options, **more).id
            with unittest.mock.patch.object(_Column, "_read", autospec=True, side_effect=_Column._read) as read:
                self.assertEqual(self.pack("a.h5", **options, **more).id, want)
            self.assertLess(read.call_count, most, more)

        def spoilt(column, first, stop, read=_Column._read):
            if column.name == "image" and first <= 1500 < stop:
                raise libshard.CorruptError(f"rows {first} to {stop - 1}", "damaged")
            return read(column, first, stop)

        # Rows that were to be read ahead of a bad one are not lost.
        with unittest.mock.patch.object(_Column, "_read", spoilt), self.assertWarnsRegex(UserWarning, "1 of 3,000 samples"):
            ds = self.pack("a.h5", **options, on_error="skip")
        self.assertEqual(ds.column("image").tolist(), np.delete(columns["image"], 1500, 0).tolist())
        # Nor is it in the traceback of the bad one how many were to be read ahead.
        with unittest.mock.patch.object(_Column, "_read", spoilt), self.assertWarnsRegex(UserWarning, "1 of 3,000 samples"):
            self.pack("a.h5", **options, on_error="quarantine")
        line = json.loads(pathlib.Path("ours.quarantine/quarantine.jsonl").read_text())
        self.assertEqual((line["message"], line["traceback"].count("CorruptError: rows")), ("rows 1500 to 1500", 1))
        shutil.rmtree("ours.quarantine")

    def test_any_rows_of_an_array(self):
        columns, draw = arrays(), np.random.default_rng(int(os.environ.get("SEED", "9")))
        for block, gap in ((1, 0), (1000, 400), (4 << 20, 64 << 10)):
            for path in (self.hdf5(chunk=0), *self.both(chunk=7)):
                with unittest.mock.patch.multiple("libshard._arrays", _BLOCK_BYTES=block, _GAP_BYTES=gap):
                    file = _file_of(path)
                    column, _ = _column(file, "image", file.open()["image"], False)
                for _ in range(25):
                    first, count = draw.integers(0, N, 2).tolist()
                    for rows in (draw.integers(0, N, count % 40).tolist(), slice(first, first + count), first,
                                 np.sort(draw.choice(N, count % 90)).tolist()):  # fmt: skip
                        got, want = column[rows], columns["image"][rows]
                        self.assertTrue(got.shape == want.shape and (got == want).all(), (path, block, rows))
                file.release()

    def test_a_file_that_changes_while_it_is_packed(self):
        """Records of both versions would be one dataset.  A change may bring an older time, as `cp -p` does."""
        pyarrow.parquet.write_table(pa.table({"x": np.arange(N)}), "a.parquet")
        self.zarr({"x": np.arange(N), "y": np.arange(N)})
        self.hdf5({"x": np.arange(N)})
        with h5py.File("link.h5", "w") as f:
            f["x"] = h5py.ExternalLink("a.h5", "/x")
        for path, inner in ("a.h5", ""), ("link.h5", "/../a.h5"), ("a.parquet", ""), ("a.zarr", "/x/c/0"), ("a.zarr", "/y/c/0"):
            shutil.rmtree("ours", ignore_errors=True)
            for workers in (None, 2) if path == "a.h5" else (0,):
                calls = []

                def change(done, count, file=os.path.normpath(path + inner), calls=calls):
                    calls.append(done)
                    os.utime(file, ns=(1, os.stat(file).st_mtime_ns - 1))

                options = {"shard_records": N // 3, "workers": workers, "progress": change}
                if "y" in inner:  # the control: what is not packed may change
                    self.assertEqual(len(self.pack(path, {"x": None}, **options)), N)
                    continue
                with self.assertRaisesRegex(libshard.MismatchError, f"{path}: was changed while it was packed; call pack.. again"):
                    self.pack(path, {"x": None}, **options)
                self.assertTrue(calls)
                self.assertFalse(os.path.exists("ours/dataset.manifest"))
                self.assertEqual(len(self.pack(path, {"x": None}, **{**options, "progress": None}, resume=workers is None)), N)
                shutil.rmtree("ours")

    def test_numbers_that_stand_for_others(self):
        """What NetCDF's conventions say of an array is not done, so it is not passed over either."""
        for attributes, words in (
            ({"scale_factor": 0.1}, r"array 'x' has the attribute scale_factor=0.1, so its numbers stand for others; write the "
                                    r"numbers that they stand for; .* in the schema, as \{'x': 'int16\[2\]'\}"),
            ({"scale_factor": 1.0, "add_offset": 5}, "add_offset=5, so its numbers"),
            ({"_FillValue": 2, "scale_factor": 1.0, "add_offset": 0}, "_FillValue=2; a value that is missing is packed as this"),
            ({"missing_value": [-9]}, "missing_value=.-9.; a value that is missing is packed as this number"),
            ({"units": "days since 2000-01-01"}, r"units='days since 2000-01-01', so its numbers stand for times; write .* seconds"),
            ({"_Unsigned": "true"}, r"array 'x' .* has the attribute _Unsigned='true', so its numbers stand for others"),
            ({"_Unsigned": "false", "units": "days"}, ""),
            ({"flag_values": [0, 1], "flag_meanings": "clear cloudy"}, r"flag_meanings='clear cloudy', which says what its numbers mean"),
            ({"flag_masks": [1, 2]}, r"flag_masks=\[1, 2\], which says"),
            ({"_FillValue": float("nan"), "units": "K"}, ""),
        ):
            with h5py.File("a.h5", "w") as f:
                f.create_dataset("x", data=np.arange(6, dtype=">i2").reshape(3, 2)).attrs.update(attributes)
            zarr.open_group("a.zarr", mode="w").create_array("x", data=np.arange(6, dtype="i2").reshape(3, 2)).attrs.update(attributes)
            for path in "a.h5", "a.zarr":
                if "so its numbers" in words:
                    self.refuse(path, words)
                elif words:
                    with self.assertWarnsRegex(UserWarning, words):
                        self.pack(path)
                else:
                    self.pack(path)
                self.assertEqual(self.pack(path, {"x": "i16[2]"}).column("x").tolist(), [[0, 1], [2, 3], [4, 5]])

    def test_axes_of_other_names(self):
        """They may be as long as each other by chance: a coordinate of pixels is not a column of records."""
        def hdf5(y, scale=True):
            with h5py.File("a.h5", "w") as f:
                for name in {"time", y}:
                    f[name] = np.arange(5)
                    f[name].make_scale() if scale else None
                f["x"], f["z"] = np.ones((5, 2)), np.zeros(5)
                if scale:
                    f["x"].dims[0].attach_scale(f["time"])
                    f["z"].dims[0].attach_scale(f[y])
                else:
                    f["x"].dims[0].label, f["z"].dims[0].label = "time", y
            return "a.h5"

        def zarr3(y):
            group = zarr.open_group("a.zarr", mode="w", zarr_format=3)
            group.create_array("x", data=np.ones((5, 2)), dimension_names=["time", None])
            group.create_array("z", data=np.ones(5), dimension_names=[y])
            group.create_array("unnamed", data=np.ones(5))
            return "a.zarr"

        def zarr2(y):
            group = zarr.open_group("b.zarr", mode="w", zarr_format=2)
            for name, dimension in ("x", "time"), ("z", y):
                group.create_array(name, data=np.ones(5)).attrs["_ARRAY_DIMENSIONS"] = [dimension]
            return "b.zarr"

        for make in hdf5, lambda y: hdf5(y, False), zarr3, zarr2:
            self.assertIn("z", self.pack(make("time")).schema)
            path = make("pixel")
            for schema in {"x": None, "z": None}, {"x": "float64[2]" if path != "b.zarr" else "float64", "z": "float64"}:
                self.refuse(path, "the first axis of array 'x' is called 'time', and that of 'z' 'pixel'.*name the arrays", schema)
            self.assertEqual(len(self.pack(path, {"z": None})), 5)
        self.refuse("a.h5", "the first axis of array 'pixel'|array 'x' is called 'time', and that of 'z' 'pixel'")

    def test_arrays_in_files_beside_it(self):
        np.arange(5, dtype="i4").tofile("half.bin")
        with h5py.File("a.h5", "w") as f:
            f.create_dataset("x", (10,), "i4", external=[("half.bin", 0, 40)])
        with h5py.File("a.h5", "r") as f:
            self.assertEqual(f["x"][:].tolist(), [0, 1, 2, 3, 4] + [0] * 5)  # the zeros are nowhere
        self.refuse("a.h5", "array 'x' lies in other files, such as 'half.bin', and what is cut from them would be read as zeros")

    def test_texts(self):
        texts = ["dog", "cat", "owl", "cat"]
        for path in (*self.both(columns={"label": texts}), self.zarr(columns={"label": texts}, path="b.zarr", classes=CLASSES)):
            is_named = path == "b.zarr"
            ds = self.pack(path, classes=None if is_named else CLASSES)
            self.assertEqual((ds.column("label").tolist(), ds.classes), ([1, 0, 2, 0], CLASSES))
            if not is_named:
                with self.assertWarnsRegex(UserWarning, "field 'label' is packed as text"):
                    ds = self.pack(path)
                self.assertEqual([r["label"] for r in ds], texts)
        with h5py.File("a.h5", "w") as f:
            f["x"] = np.array([b"ab", b"\xff"])
        self.refuse("a.h5", "array 'x' is said to be text in ascii, and has other bytes: .*0xff.*give its values in a dict")

    def test_a_summary_of_zarr_that_is_old(self):
        group = zarr.open_group("a.zarr", mode="w", zarr_format=2)
        group.create_array("x", data=np.arange(4))
        zarr.consolidate_metadata("a.zarr")
        group = zarr.open_group("a.zarr", mode="a", use_consolidated=False)
        group["x"].append(np.arange(4, 6))
        group.create_array("y", data=np.arange(6))
        ds = self.pack("a.zarr", {"x": None, "y": None})
        self.assertEqual([int(r["x"]) for r in ds], [0, 1, 2, 3, 4, 5])
        self.assertEqual([f.name for f in self.pack("a.zarr").schema], ["x", "y"])

    def test_a_link_that_leads_nowhere(self):
        with h5py.File("a.h5", "w") as f:
            f["x"], f["gone"] = np.arange(4), h5py.SoftLink("/none")
        self.refuse("a.h5", "a.h5: 'gone' is a link that leads nowhere; mend it, or name the arrays")
        self.assertEqual(len(self.pack("a.h5", {"x": None})), 4)

    def test_a_call_that_was_killed_goes_on(self):
        for path in self.both():
            script = (
                "import os, sys, libshard\n"
                "def progress(done, count):\n"
                "    if os.path.exists('ours/00002.shard') and done > 200:\n"
                "        os.kill(os.getpid(), 9)\n"
                "if __name__ == '__main__':\n"
                "    libshard.pack(sys.argv[1], None, 'ours', workers=0, shard_records=60, progress=progress)\n"
            )
            shutil.rmtree("ours", ignore_errors=True)
            pathlib.Path("child.py").write_text(script)
            self.assertEqual(subprocess.run([sys.executable, "child.py", path]).returncode, -signal.SIGKILL)
            self.assertTrue(os.path.exists("ours/dataset.packing"))
            shutil.copytree("ours", "again")
            self.assertEqual(libshard.pack(path, None, "ours", workers=2, shard_records=60).id, self.pack(arrays(), out="want").id)
            self.zarr(columns=arrays()) if path.endswith("zarr") else self.hdf5(chunk=32)
            with self.assertRaisesRegex(libshard.ExistsError, "complete shards with other files of the source"):
                libshard.pack(path, None, "again", workers=2, shard_records=60)
            shutil.rmtree("again")
            shutil.rmtree("want")


if __name__ == "__main__":
    unittest.main()
