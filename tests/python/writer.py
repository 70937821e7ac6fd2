# SPDX-License-Identifier: Apache-2.0
"""Writing: the bytes of shardpack for the same records of any source."""

import json
import operator
import os
import pathlib
import re
import shutil
import string
import subprocess
import unittest
import warnings
from dataclasses import replace

import data
import libshard
import numpy as np
from libshard._tables import column_names
from PIL import Image
from writing import ALL_OF_A_RECORD, DATA, PROV, Case, of_kinds, sections, shards


def plain(record):
    """A record that == compares."""
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in record.items()}


class SameAsShardpack(Case):
    """Data, hashes, keys and statistics; raw and compressed, in the source's order and shuffled."""

    def ways(self):
        for compress in ("none", "lz4"):
            for order in ("source", "shuffle"):
                self.setUp()
                with self.subTest(compress=compress, order=order):
                    yield {"compress": compress, "order": order}, ("--compress", compress, "--order", order)

    def test_raw_of_every_dtype(self):
        a = data.every_dtype(1000)
        a.tofile("every.bin")
        for options, said in self.ways():
            data.shardpack(
                "raw", "every.bin", "--schema", data.dtype_schema(), "-o", "theirs", "--shard-records", 300, *said
            )
            columns = {name: a[name] if name != "bf16" else Bf16(a[name]) for name in data.DTYPES}
            with self.assertWarnsRegex(UserWarning, "field 'f16' has [0-9]+ NaN"):  # some of the random bits
                ds = libshard.pack(columns, data.dtype_schema(), "ours", shard_records=300, **options)
            self.check_same()
            if options["order"] == "source":
                for name in data.DTYPES:
                    self.assertEqual(ds[:][name].tobytes(), a[name].tobytes())

    def test_npy(self):
        a = data.images(100)
        np.save("image.npy", a["image"])
        np.save("label.npy", a["label"].astype("u1"))
        with open("classes.txt", "w") as f:
            f.write("a\nb\nc\nd\ne\n")
        for options, said in self.ways():
            data.shardpack("array", "image.npy", "label.npy", "-o", "theirs", "--shard-records", 30,
                           "--classes", "classes.txt", *said)  # fmt: skip
            ds = libshard.pack(
                {"image": a["image"], "label": a["label"]}, None, "ours", shard_records=30, classes=[*"abcde"], **options
            )
            self.check_same()
            self.assertEqual(ds.classes, list("abcde"))
            theirs = libshard.open("theirs")
            self.assertEqual((ds.stats, ds.schema), (theirs.stats, theirs.schema))
            ours, their = (
                [line for line in d.manifest().splitlines() if line.split()[0] not in (b"plan", b"shard", b"end")]
                for d in (ds, theirs)
            )
            self.assertEqual(ours, their)

    def test_statistics_of_images_of_any_size(self):
        # Sums are taken over 24, 32 or 48 bytes at a time, as the number of channels and the
        # processor have it.
        rng = np.random.default_rng(5)
        for shape in (
            (7, 5, 3),
            (11, 3, 1),
            (5, 13, 4),
            (3, 7, 9),
            (1, 11, 13),
            (401, 331, 3),
            (211, 211, 1),
            (3, 200, 170),
        ):
            self.setUp()
            with self.subTest(shape=shape):
                image = rng.integers(0, 256, (5, *shape), np.uint8)
                np.save("image.npy", image)
                data.shardpack("array", "image.npy", "-o", "theirs", "--order", "source", "--shard-records", 3)
                ds = libshard.pack({"image": image}, None, "ours", shard_records=3)
                self.check_same()
                axes = (0, 1, 2) if ds.schema["image"].layout == "hwc" else (0, 2, 3)
                self.assertEqual([c.sum for c in ds.stats.channels["image"]], image.sum(axes, dtype=np.uint64).tolist())

    def test_tokens(self):
        tokens = np.random.default_rng(1).integers(0, 5000, 64 * 500 + 1).astype("<u2")
        tokens.tofile("tokens.bin")
        windows = np.stack([tokens[i : i + 65] for i in range(0, len(tokens) - 64, 64)])
        for options, said in self.ways():
            data.shardpack("tokens", "tokens.bin", "--seq-len", 64, "-o", "theirs", "--shard-records", 200, *said)
            ds = libshard.pack({"tokens": windows}, None, "ours", shard_records=200, **options)
            self.check_same()
            self.assertEqual(ds.schema, libshard.open("theirs").schema)

    def test_documents(self):
        rng = np.random.default_rng(2)
        documents = [np.append(rng.integers(1, 5000, rng.integers(1, 65)), 0).astype("<u2") for _ in range(500)]
        np.concatenate(documents).tofile("documents.bin")
        for options, said in self.ways():
            data.shardpack("tokens", "documents.bin", "--seq-len", 64, "--documents", 0,
                           "-o", "theirs", "--shard-records", 200, *said)  # fmt: skip
            schema = libshard.open("theirs").schema
            samples = [{"tokens": d if i % 2 else d.tolist()} for i, d in enumerate(documents)]
            ds = libshard.pack(samples, schema, "ours", shard_records=200, **options)
            self.check_same()
            if options["order"] == "source":
                self.assertEqual([r["tokens"].tolist() for r in ds], [d.tolist() for d in documents])

    def test_images_with_keys(self):
        for options, said in self.ways():
            data.shardpack(
                "images", "photos", "-o", "theirs", "--resize", 36, "--crop", 32, "--shard-records", 25, *said
            )
            theirs = libshard.open("theirs")
            order = sorted(range(len(theirs)), key=theirs.key)
            samples = [(theirs.key(i), theirs[i]) for i in order]  # as the source has them
            ds = libshard.pack([r for _, r in samples], None, "ours", shard_records=25, classes=theirs.classes,
                               key=lambda i, sample: samples[i][0], **options)  # fmt: skip
            self.check_same()
            self.assertEqual([ds.key(i) for i in range(len(ds))], [theirs.key(i) for i in range(len(theirs))])

    def test_the_size_of_shards_is_shardpacks(self):
        a = np.random.default_rng(3).integers(0, 256, (1200, 256, 256, 3), np.uint8)  # 225 MiB
        np.save("large.npy", a)
        os.rename("large.npy", "image.npy")
        data.shardpack("array", "image.npy", "-o", "theirs", "--order", "source")
        libshard.pack({"image": a}, None, "ours")
        self.check_same(4)
        os.unlink("image.npy")

    def test_one_bytes_version(self):
        a = np.arange(30, dtype="u1").reshape(10, 3)
        np.save("x.npy", a)
        data.shardpack("array", "x.npy", "-o", "theirs")
        libshard.pack({"x": a}, None, "ours")
        lines = [sections(f"{name}/00000.shard")[PROV, 0].splitlines() for name in ("ours", "theirs")]
        ours, theirs = ([line for line in found if b"version" in line] for found in lines)
        self.assertEqual(ours, [b"bytes-version %d" % libshard._core.BYTES_VERSION])
        self.assertEqual(theirs, ours)

    def test_align(self):
        a = data.pack_images("theirs", 40, "--align", "4096", "--shard-records", "15")
        libshard.pack({"image": a["image"], "label": a["label"]}, None, "ours", align=4096, shard_records=15)
        self.check_same()


class Bf16:
    """As libraries with bfloat16 show it to those without."""

    def __init__(self, bits):
        self.bits = bits

    def __len__(self):
        return len(self.bits)

    def __getitem__(self, key):
        return Bf16(self.bits[key])

    @property
    def __array_interface__(self):
        return {**self.bits.__array_interface__, "typestr": "<V2", "descr": [("", "<V2")]}


class MapStyle:
    """What torch.utils.data.Dataset asks for, and no more."""

    classes = ["a", "b", "c", "d", "e"]

    def __init__(self, a):
        self.a = a

    def __len__(self):
        return len(self.a)

    def __getitem__(self, i):
        return Image.fromarray(self.a["image"][i]), int(self.a["label"][i])


class ClassLabel:
    dtype = "int64"

    def __init__(self, names):
        self.names = names

    def str2int(self, name):
        return self.names.index(name)


class Value:
    def __init__(self, dtype):
        self.dtype = dtype


class Array3D:
    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, dtype


class List:
    def __init__(self, feature, length=-1):
        self.feature, self.length = feature, length


class Hugging:
    """As datasets.Dataset: features, length, index, and values as Python has them."""

    def __init__(self, features, rows):
        self.features, self.rows = features, rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]

    def __iter__(self):
        return iter(self.rows)


class Sources(Case):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree("want", ignore_errors=True)
        cls.a = data.pack_images("want", 100, "--shard-records", "30")

    def check_packed(self, source, *args, schema=None, **options):
        ds = libshard.pack(source, schema, "ours", shard_records=30, **options)
        for name in shards("want"):
            ours, theirs = sections(f"ours/{name}"), sections(f"want/{name}")
            for kind in ALL_OF_A_RECORD:
                self.assertEqual(of_kinds(ours, [kind]), of_kinds(theirs, [kind]), (name, kind))
        return ds

    def test_samples_of_any_kind(self):
        a = self.a
        columns = {"image": a["image"], "label": a["label"]}
        rows = [{"image": a["image"][i], "label": a["label"][i]} for i in range(100)]
        for name, source in {
            "columns": columns,
            "rows": rows,
            "generator": (r for r in rows),
            "tuples": [(r["image"], int(r["label"])) for r in rows],
            "lists": [(r["image"].tolist(), int(r["label"])) for r in rows[:100]],
            "structured": {n: list(columns[n]) for n in columns},
            "fortran": {"image": np.asfortranarray(a["image"]), "label": np.repeat(a["label"], 3)[::3]},
            "narrow": [{"image": memoryview(r["image"]), "label": np.int8(r["label"])} for r in rows],
            "dataset": libshard.open("want"),
            "map style": MapStyle(a),
            "views": [{**r} for r in libshard.open("want")],
        }.items():
            self.setUp()
            with self.subTest(name):
                ds = self.check_packed(
                    source, schema="image:u8[40,40,3],label:i64" if name in ("lists", "narrow") else None
                )
                self.assertEqual(ds.classes, MapStyle.classes if name == "map style" else [])

    def test_batches(self):
        def batches():
            for i in range(0, 100, 7):
                yield {"image": self.a["image"][i : i + 7], "label": self.a["label"][i : i + 7]}

        self.check_packed(batches(), batched=True)
        self.setUp()
        self.check_packed(([b["image"], b["label"]] for b in batches()), batched=True)
        with libshard.Loader("want", 16, shuffle=False) as loader:
            self.setUp()
            self.check_packed(loader, batched=True)

    def test_hugging_face(self):
        features = {
            "image": Array3D((40, 40, 3), "uint8"),
            "label": ClassLabel(list("vwxyz")),
            "score": Value("float32"),
            "box": List(Value("int16"), 4),
        }
        rows = [
            {"image": r["image"].tolist(), "label": int(r["label"]), "score": i / 8, "box": [i, -i, 2, 3]}
            for i, r in enumerate(self.a)
        ]
        ds = libshard.pack(Hugging(features, rows), None, "ours")
        self.assertEqual(
            [(f.name, f.dtype, f.shape) for f in ds.schema],
            [
                ("image", "uint8", (40, 40, 3)),
                ("label", "int64", ()),
                ("score", "float32", ()),
                ("box", "int16", (4,)),
            ],
        )
        self.assertEqual(ds.stats.class_counts, dict.fromkeys("vwxyz", 20))
        for i in (0, 57, 99):
            self.assertEqual(ds[i]["image"].tobytes(), self.a["image"][i].tobytes())
            self.assertEqual((ds[i]["label"], ds[i]["score"], ds[i]["box"].tolist()), (i % 5, i / 8, [i, -i, 2, 3]))
        self.setUp()
        for feature, words in (
            (List(Value("int32")), "its feature does not say.*int32\\[<=512\\]"),
            (Value("string"), "as text\\[<=200\\]"),
        ):
            with self.assertRaisesRegex(libshard.ArgumentError, words):
                libshard.pack(Hugging({"x": feature}, [{"x": 1}]), None, "ours")
        self.check_nothing()
        ds = libshard.pack(
            Hugging({"x": List(Value("int32"))}, [{"x": [1] * i, "y": 0} for i in range(5)]),
            {"x": "int32[<=4]"},
            "ours",
        )
        self.assertEqual([r["x"].tolist() for r in ds], [[1] * i for i in range(5)])

    def test_the_real_one(self):
        try:
            import datasets
        except ImportError:
            self.skipTest("datasets is not installed; the stand-in was used")
        rows = {"label": [i % 3 for i in range(20)], "x": [[i, i + 1] for i in range(20)]}
        features = datasets.Features(
            {
                "label": datasets.ClassLabel(names=["p", "q", "r"]),
                "x": datasets.Sequence(datasets.Value("int16"), length=2),
            }
        )
        ds = libshard.pack(datasets.Dataset.from_dict(rows, features=features), None, "ours")
        self.assertEqual(
            (ds[:]["label"].tolist(), ds[:]["x"].tolist(), ds.classes), (rows["label"], rows["x"], ["p", "q", "r"])
        )

    def test_strings_and_what_varies(self):
        rows = [
            {"text": "é" * i, "raw": bytes(range(i)), "boxes": np.full((i, 4), i / 2, "f4"), "n": i} for i in range(9)
        ]
        schema = {"text": "text[<=16]", "raw": "bytes[<=8]", "boxes": "float32[<=8,4]", "n": None}
        ds = libshard.pack(rows, schema, "ours")
        for got, want in zip(ds, rows, strict=True):
            self.assertEqual((got["text"], got["raw"], got["n"]), (want["text"], want["raw"], want["n"]))
            self.assertEqual(got["boxes"].shape, want["boxes"].shape)
            self.assertEqual(got["boxes"].tobytes(), want["boxes"].tobytes())
        columns = {name: [r[name] for r in rows] for name in schema}
        more = libshard.pack({n: columns[n] for n in ("text", "raw", "n")}, None, "more")
        self.assertEqual([(r["text"], r["raw"], r["n"]) for r in more], [(r["text"], r["raw"], r["n"]) for r in rows])
        again = libshard.pack(ds, ds.schema, "theirs")
        self.assertEqual(sections("theirs/00000.shard")[DATA, 0], sections("ours/00000.shard")[DATA, 0])
        self.assertEqual(again.schema, ds.schema)

    def test_keys(self):
        rows = [{"x": i, "name": f"n{i}"} for i in range(5)]
        for key in ("name", lambda i, sample: sample["name"]):
            self.setUp()
            ds = libshard.pack(rows, None if key == "name" else "x:i64", "ours", key=key)
            self.assertEqual(([ds.key(i) for i in range(5)], ds.schema.names), ([f"n{i}" for i in range(5)], ["x"]))
        self.setUp()
        ds = libshard.pack(
            {"x": np.arange(5), "name": [f"n{i}" for i in range(5)]}, None, "ours", key="name", order="shuffle", seed=3
        )
        self.assertEqual([f"n{r['x']}" for r in ds], [ds.key(i) for i in range(5)])

    def test_keys_that_several_records_have(self):
        rows = [{"x": i, "name": f"n{min(i, 7)}" if i else "n3"} for i in range(10)]
        for workers in (None, 0, 2):
            self.setUp()
            with self.assertWarnsRegex(UserWarning, "ours: 3 records have the key of an earlier one; the first of them is "
                                                    "record 3, with 'n3' as record 0. ds.by_key"):  # fmt: skip
                ds = libshard.pack(rows, None, "ours", key="name", shard_records=4, workers=workers)
            with self.assertRaisesRegex(libshard.ArgumentError, "records 0 and 3 have it"):
                ds.by_key("n3")
            self.assertEqual(ds.by_key("n5")["x"], 5)
        self.setUp()
        with self.assertWarnsRegex(UserWarning, "1 record has the key of an earlier one; the first of them is record 8"):
            libshard.pack([*rows[1:8], {"x": 8, "name": "é"}, {"x": 9, "name": "é"}], None, "ours", key="name")

    def test_keys_of_a_source_of_ours(self):
        """They are kept, from whatever is a dataset; a mixture of some with and some without is not silent."""
        a, b = (libshard.pack([{"x": i} for i in range(n)], None, f"of{n}", key=lambda i, _, n=n: f"{n}/{i}")
                for n in (5, 7))  # fmt: skip
        bare = libshard.pack([{"x": 1}, {"x": 2}], None, "bare")
        all_of_b = [f"7/{i}" for i in range(7)]
        for number, (source, want) in enumerate((
            (a, [f"5/{i}" for i in range(5)]),
            (b.select([1, 4, 6]), ["7/1", "7/4", "7/6"]),
            (a.select([3]) + b, ["5/3", *all_of_b]),
            (libshard.zip(b, y=np.arange(7)), all_of_b),
            (bare, ["", ""]),
        )):
            for workers in (None, 2):
                ds = libshard.pack(source, None, f"again{number}{workers}", workers=workers, shard_records=1)
                self.assertEqual([ds.key(i) for i in range(len(ds))], want)
        self.assertEqual(libshard.pack(a, None, "other", key=lambda i, _: f"new{i}").key(2), "new2")
        with self.assertWarnsRegex(UserWarning, "part 1 of the concatenation has no keys"):
            self.assertEqual(libshard.pack(a + bare, None, "mixed").key(0), "")

    def test_fields_of_a_source_of_ours(self):
        """They are kept where the schema leaves them open: one record does not tell what a text or boxes are."""
        schema = {"image": "image[4,4,3]", "name": "text[<=9]", "raw": "bytes[<=5]", "boxes": "boxes[<=3]", "mask": "mask[4,4]",
                  "label": "int64"}  # fmt: skip
        ds, longer = (libshard.pack([
            {"image": np.full((4, 4, 3), i, "u1"), "name": "é" * (i % most), "raw": b"x" * (i % 4), "label": i % 2,
             "boxes": np.full((i % 4, 4), i, "f4"), "mask": np.full((4, 4), i, "u1")} for i in range(9)
        ], schema | {"name": f"text[<={2 * most}]"}, f"to{most}", classes=["a", "b"]) for most in (3, 5))  # fmt: skip
        beside = libshard.zip(ds, longer_name=np.arange(9, dtype="u2"))
        names = libshard.pack({"word": ["a", "bc"] * 4 + [""]}, None, "words")
        for number, (source, wanted, want) in enumerate((
            (ds, None, ds.schema),
            (ds.select([4, 7]), None, ds.schema),
            (ds + longer, None, longer.schema),
            ((ds + longer).where(label="a"), None, longer.schema),
            (beside, None, [*ds.schema, libshard.Field("longer_name", "uint16", ())]),
            (libshard.zip(ds.select([1, 3]), names), None, [*ds.schema, *names.schema]),
            (ds, {"mask": None, "name": "text[<=20]"},
             [ds.schema["mask"], libshard.Field("name", "uint8", (20,), "string", semantic="text"), ds.schema["name_length"]]),
            (beside, {"boxes": None, "longer_name": None},
             [ds.schema["boxes"], ds.schema["boxes_length"], libshard.Field("longer_name", "uint16", ())]),
        )):  # fmt: skip
            for workers in (None, 0):
                again = libshard.pack(source, wanted, f"fields{number}{workers}", workers=workers)
                meaning = [[replace(f, group=-1, bytes=0) for f in fields] for fields in (again.schema, want)]
                self.assertEqual(*meaning)
                self.assertEqual([plain(r) for r in again], [{n: v for n, v in plain(r).items() if n in again.schema.names}
                                                             for r in source])  # fmt: skip
        self.assertEqual(libshard.pack(ds, None, "same").id, libshard.pack(ds, ds.schema, "given").id)
        keyed = libshard.pack(ds.select([1, 5]), None, "keyed", key="name")
        self.assertEqual((keyed.key(0), keyed.schema.names), ("é", [n for n in ds.schema.names if "name" not in n]))
        # The control: of a source that is not ours the first record tells, and cannot tell this.
        with self.assertRaisesRegex(libshard.RecordError, "one record does not tell the greatest length"):
            libshard.pack(list(ds), None, "list")
        # A schema is read once, so it may be an iterator.
        self.assertEqual(libshard.pack(ds, (f for f in ds.schema), "drawn").id, libshard.open("same").id)

    def test_a_range_is_a_column_of_numbers(self):
        for schema in None, {"x": None}, {"x": "int64"}:
            ds = libshard.pack({"x": range(3)}, schema, "range", replace=True)
            self.assertEqual((ds.schema["x"].dtype, ds.column("x").tolist()), ("int64", [0, 1, 2]))
        for workers in None, 0:
            ds = libshard.pack({"x": range(50)}, None, "range", replace=True, order="shuffle", seed=1, workers=workers)
            self.assertEqual(ds.column("x").tolist(), libshard._core.shuffle(1, 50, 0, 50).tolist())

    def test_names_of_columns_of_a_source_of_ours(self):
        rows = {"x": np.arange(6.0).reshape(3, 2), "y": np.arange(3)}
        a = libshard.pack(rows, None, "named_a", provenance='columns x ["p", "q"]\n')
        bare = libshard.pack(rows, None, "named_bare")
        other = libshard.pack({"z": np.ones((3, 2))}, None, "named_other", provenance='columns z ["r", "s"]')
        for number, (source, schema, want) in enumerate((
            (a, None, {"x": ["p", "q"]}), (a, {"x": None}, {"x": ["p", "q"]}), (a, {"y": None}, {}), (bare, None, {}),
            (a.select([2]), None, {"x": ["p", "q"]}), (a + a, a.schema, {"x": ["p", "q"]}),
            (libshard.zip(a, other), None, {"x": ["p", "q"], "z": ["r", "s"]}),
            (libshard.zip(bare, other), {"x": None, "z": "float64[2]"}, {"z": ["r", "s"]}),
        )):  # fmt: skip
            self.assertEqual(libshard.pack(source, schema, f"named{number}", provenance="by hand").columns, want)
        with self.assertWarnsRegex(UserWarning, "not all parts .* have the same names of columns for 'x'"):
            self.assertEqual(libshard.pack(a + bare, None, "named_mixed").columns, {})
        libshard.pack(a + bare, {"y": None}, "named_chosen")  # and no word, which would be an error here

    def test_labels_by_name(self):
        ds = libshard.pack([{"label": "ba"[i % 2]} for i in range(6)], None, "ours", classes=["a", "b"])
        self.assertEqual((ds[:]["label"].tolist(), ds.stats.class_counts), ([1, 0] * 3, {"a": 3, "b": 3}))
        self.setUp()
        ds = libshard.pack({"label": ["b", "a", "b"]}, None, "ours", classes=["a", "b"])
        self.assertEqual(ds[:]["label"].tolist(), [1, 0, 1])

    def test_labels_by_name_in_an_array(self):
        for dtype in ("U", object):
            self.setUp()
            ds = libshard.pack({"label": np.array(["b", "a"], dtype)}, None, "ours", classes=["a", "b"])
            self.assertEqual(ds[:]["label"].tolist(), [1, 0])

    def test_numbers_of_numpy_tell_their_type(self):
        for kind in ("int8", "uint64", "float16", "float32", "float64", "bool"):
            ds = libshard.pack([{"x": np.dtype(kind).type(n), "y": [np.dtype(kind).type(n)]} for n in (1, 0)], None, "ours")
            self.assertEqual([(f.dtype, f.shape) for f in ds.schema], [(kind, ()), (kind, (1,))])
            self.assertEqual(ds[:]["x"].tolist(), [1, 0])
            self.setUp()

    def test_names_of_classes_of_an_inner_dataset_are_asked_for(self):
        whole = libshard.pack({"label": [0, 1, 1]}, None, "whole", classes=["a", "b"])
        class Part(list):  # as a Subset of PyTorch
            dataset = whole

        chosen = Part([{"label": 1}])
        chosen.dataset = whole.where(label="b")
        inner = Part([{"label": 1}])
        inner.dataset = chosen
        for source, options, where in (
            (Part([{"label": 1}]), {}, "source.dataset"), (libshard.Loader(whole, 1), {"batched": True}, "source.dataset"),
            (chosen, {}, "source.dataset.dataset"), (inner, {}, "source.dataset.dataset.dataset"),
        ):  # fmt: skip
            self.setUp()
            with self.assertWarnsRegex(UserWarning, rf"names for 2 classes, .* say classes={where}\.classes"):
                self.assertEqual(libshard.pack(source, None, "ours", **options).classes, [])
            self.setUp()
            classes = operator.attrgetter(f"{where}.classes".removeprefix("source."))(source)
            ds = libshard.pack(source, None, "ours", classes=classes, **options)
            self.assertEqual(ds.classes, ["a", "b"])

    def test_names_of_classes_that_look_alike(self):
        for other in ("cat ", "Cat", "\u200bcat", "c\xadat", "\ufeffcat", "\xa0CAT"):
            self.setUp()
            with self.subTest(other), self.assertWarnsRegex(
                UserWarning, re.escape(f"classes 'cat' (4 records) and {other!a} (2 records) differ only in blanks")
            ):
                libshard.pack([{"label": i % 3 // 2} for i in range(6)], None, "ours", classes=["cat", other])
        for a, b in (("caf\xe9", "cafe\u0301"), ("\u1ec7", "e\u0302\u0323"), ("a  b", "A b")):
            self.setUp()
            with self.subTest(a), self.assertWarnsRegex(UserWarning, re.escape(f"{a!a} (1 records) and {b!a}")):
                libshard.pack([{"label": 0}, {"label": 1}], None, "ours", classes=[a, b])
        self.setUp()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            libshard.pack([{"label": 0}], None, "ours", classes=["cafe", "caf\xe9", "a b", "ab", "o", "0"])
        # where shardpack and the writer both know the letters, they know the same pairs
        pairs = [
            ("a", "A"), ("b ", "b"), ("c", "c\u200b"), ("d", "\ufeffd"), ("e\xad", "e"), ("f f", "f  F"), ("g\xa0g", "g g"),
            ("\u2764", "\u2764\ufe0f"), ("h\u034f", "h"), ("i\U000e0100", "i"), ("\u3000j", "J"), ("\xc4", "\xe4"),
            ("\u0416", "\u0436"), ("\u03a3", "\u03c3"), ("o\u03c2", "o\u03c3"), ("\u0141", "\u0142"), ("\u0531", "\u0561"),
            ("caf\xe9", "cafe\u0301"), ("\u1ec7", "e\u0302\u0323"), ("\u304c", "\u304b\u3099"), ("\u0439", "\u0438\u0306"),
            ("\uac01", "\u1100\u1161\u11a8"), ("\u212b", "\xc5"), ("\u0622", "\u0627\u0653"), ("\xc9", " e\u0301"),
        ]  # fmt: skip
        names = [name for pair in pairs for name in pair] + ["x0", "xo", "\u0430", "\u0131", "cafe", "ff"]
        self.setUp()
        with self.assertWarnsRegex(UserWarning, f"^{len(pairs)} pairs of classes differ"):
            libshard.pack({"label": [0]}, None, "ours", classes=names)
        pathlib.Path("names.txt").write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
        np.save("label.npy", np.zeros(1, "i8"))
        data.shardpack("array", "label.npy", "-o", "theirs", "--classes", "names.txt", "--report", "names.json")
        warned = json.loads(pathlib.Path("names.json").read_text(encoding="utf-8"))["warnings"]
        self.assertEqual(len(warned), len(pairs), warned)
        for letters, more in (("abc", ""), (string.ascii_lowercase, ", and 23 more")):
            self.setUp()
            with self.assertWarns(UserWarning) as caught:
                classes = [*letters, *letters.upper()]
                libshard.pack([{"label": i} for i in range(len(classes))], None, "ours", classes=classes)
            self.assertEqual([str(w.message) for w in caught.warnings], [
                f"{len(letters)} pairs of classes differ only in blanks, case or the encoding of letters, and are packed "
                "as two each; where two are one, give them one name: 'a' (1 records) and 'A' (1 records), 'b' (1 records) "
                f"and 'B' (1 records), 'c' (1 records) and 'C' (1 records){more}"])  # fmt: skip

    def test_numbers_are_rounded_as_numpy_does(self):
        rng = np.random.default_rng(4)
        edges = [
            0.0, -0.0, 65504, 65519.99, 6e-8, 2.98e-8, 2.99e-8, 5.96e-8, 6.1e-5,
            1 + 2**-11, 1 + 3 * 2**-11, 2**-14 - 2**-26,
        ]  # fmt: skip
        values = np.concatenate([rng.standard_normal(500) * 10.0 ** rng.integers(-9, 5, 500), edges])
        values = values[abs(values) < 65520]  # what is above the greatest f16 is refused
        want = {"f16": values.astype("f2"), "f32": values.astype("f4"), "f64": values}
        rows = [dict.fromkeys(("f16", "f32", "f64", "bf16"), float(v)) for v in values]
        ds = libshard.pack(rows, "f16:f16,f32:f32,f64:f64,bf16:bf16", "ours")[:]
        for name, column in want.items():
            self.assertEqual(ds[name].tobytes(), column.tobytes(), name)
        for v, got in zip(values.tolist(), np.asarray(ds["bf16"]).view("<u2").tolist(), strict=True):
            near = [data.bfloat16(b & 0xFFFF) for b in (got - 1, got, got + 1)]
            if v and np.isfinite(v):
                off = [abs(x - v) for x in near]
                self.assertTrue(off[1] < min(off[0], off[2]) or (off[1] == min(off) and got % 2 == 0), (v, near))
            else:
                self.assertEqual(near[1], v)

    def test_values_that_are_not_finite_are_stored_and_counted(self):
        types = {"f16": "f2", "bf16": "f4", "f32": "f4", "f64": "f8"}
        rows = [[np.nan, 1, np.inf], [-np.inf, np.nan, 65504.0], [0, -np.nan, 1]] + [[0, 1, 2]] * 5
        said = [f"ours: field '{n}' has 3 NaN and 2 infinite values; they were given so" for n in types]
        arrays = {n: np.array(rows, t) for n, t in types.items() if n != "bf16"}
        bf16 = Bf16((np.array(rows, "f4").view("<u4") >> 16).astype("<u2"))
        for source in (
            [dict.fromkeys(types, row) for row in rows],
            {**arrays, "bf16": bf16},
            [{**{n: a[i] for n, a in arrays.items()}, "bf16": bf16[i]} for i in range(8)],
        ):
            self.setUp()
            with self.assertWarns(UserWarning) as caught:
                ds = libshard.pack(source, {n: f"{n}[3]" for n in types}, "ours", shard_records=3)
            self.assertEqual(sorted(str(w.message)[: len(said[0])] for w in caught.warnings), sorted(
                m[: len(said[0])] for m in said))  # fmt: skip
            for name in arrays:
                np.testing.assert_array_equal(np.asarray(ds[:][name]), arrays[name])
            self.assertEqual([v != v for v in ds[0]["bf16"].tolist()], [True, False, False])
            self.assertEqual(ds[0]["bf16"].tolist()[2], np.inf)
        with self.assertWarns(UserWarning), libshard.Writer("more", "x:f32[<=4],n:i64") as writer:
            writer.write({"x": [np.inf], "n": 1})
        self.assertEqual(writer.not_finite, {"x": (0, 1)})
        environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        shardcat = os.path.join(data.TOOLS, "shardcat")
        found = json.loads(subprocess.check_output([shardcat, "stats", "more", "--json"], env=environment))
        self.assertEqual([(r["nan"], r["infinite"]) for r in found["statistics"] if r["field"] == "x"], [(0, 1)])
        found = json.loads(subprocess.check_output([shardcat, "info", "ours", "--json"], env=environment))
        fields = [{"field": name, "nan": 3, "infinite": 2} for name in types]
        self.assertEqual(found["not_finite"], {"fields": fields, "shards_with": 1, "shards_without": 2,
                                               "shards_not_read": 0})  # fmt: skip
        with libshard.Writer("finite", "x:f32", provenance="by hand") as writer:
            writer.write({"x": 1})
        text = b"made by libshard.Writer\nbytes-version 3\nby hand\nschema x: float32\n"
        self.assertEqual(sections("finite/00000.shard")[PROV, 0], text)

    def test_names_of_columns_in_the_provenance(self):
        rows = {"x": np.arange(6.0).reshape(3, 2), "y": np.zeros((3, 2)), "z": np.zeros(3)}
        ds = libshard.pack(rows, None, "named", provenance='columns x ["a b", "y"]\ncolumns other ["c"]')
        self.assertEqual(ds.columns, {"x": ["a b", "y"]})
        self.assertEqual(ds.column("a b").tolist(), [0, 2, 4])
        self.assertEqual(ds.column("y").tolist(), rows["y"].tolist())  # a field comes first
        self.assertEqual(libshard.pack(rows, None, "plain").columns, {})
        with self.assertRaisesRegex(libshard.ArgumentError, "c"):
            ds.column("c")
        libshard.pack(rows, None, "others", provenance='columns x ["y", "a b"]')
        with self.assertRaisesRegex(RuntimeError, "were not packed alike: the first has 'columns x"):
            data.shardpack("merge", "named", "others", "-o", "merged")

        class Patched:  # no command of ours makes such a dataset
            path, shard_count, schema = "patched", 2, ds.schema

            def _provenance(self, shard):
                return b'columns x ["y", "a b"]' if shard else b'columns x ["a b", "y"]'

        with self.assertRaisesRegex(libshard.MismatchError, "shard 1 has other names of columns than shard 0"):
            column_names(Patched())
        for text in ("columns z []", 'columns x ["a"]', "columns x a,b", 'columns x ["a", 1]'):
            ds = libshard.pack(rows, None, "bad", provenance=text, replace=True)
            with self.assertRaisesRegex(libshard.MismatchError, "shard 0: its provenance has no"):
                print(ds.columns)


if __name__ == "__main__":
    unittest.main()
