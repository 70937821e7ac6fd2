# SPDX-License-Identifier: Apache-2.0
"""Writing: the bytes of shardpack for the same records of any source; no dataset if it fails."""

import ctypes
import gc
import multiprocessing
import os
import pickle
import shutil
import signal
import struct
import sys
import threading
import time
import unittest

import data
import libshard
import numpy as np
from PIL import Image

DATA, HASH, CIDX, KOFF, KBLB, STAT, PROV = 1, 2, 3, 4, 5, 6, 8
ALL_OF_A_RECORD = (DATA, HASH, CIDX, KOFF, KBLB)


def sections(path):
    """(type, group) to the bytes of each section of a shard, as format/SHARD.md 2.2 has them.

    Offsets in an index are from the start of its data.
    """
    with open(path, "rb") as f:
        shard = f.read()
    footer, out = shard[-4096:], {}
    (count,) = struct.unpack_from("<I", footer, 32)
    for i in range(count):
        kind, _, group, _, offset, size = struct.unpack_from("<IIIIQQ", footer, 1024 + 64 * i)
        out[kind, group] = shard[offset : offset + size]
        if kind == DATA:
            out["start", group] = offset
    for (kind, group), section in list(out.items()):
        if kind == CIDX:
            out[kind, group] = b"".join(
                struct.pack("<Q", struct.unpack_from("<Q", section, at)[0] - out["start", group])
                + section[at + 8 : at + 32]
                for at in range(0, len(section), 32)
            )
    return {k: v for k, v in out.items() if k[0] != "start"}


def shards(folder):
    return sorted(n for n in os.listdir(folder) if n.endswith(".shard"))


def of_kinds(found, kinds):
    return {k: v for k, v in found.items() if k[0] in kinds}


class Case(unittest.TestCase):
    def setUp(self):
        for name in ("ours", "theirs", "more"):
            shutil.rmtree(name, ignore_errors=True)

    def check_same(self, least_shards=2, stat=True):
        self.assertEqual(shards("ours"), shards("theirs"))
        self.assertGreaterEqual(len(shards("ours")), least_shards)
        for name in shards("ours"):
            ours, theirs = sections(f"ours/{name}"), sections(f"theirs/{name}")
            kinds = ALL_OF_A_RECORD + ((STAT,) if stat else ())
            self.assertEqual(of_kinds(ours, kinds).keys(), of_kinds(theirs, kinds).keys())
            for k, v in of_kinds(ours, kinds).items():
                self.assertEqual(v, theirs[k], (name, k))
        self.assertTrue(libshard.open("ours").verify(sha256=True).ok)

    def check_nothing(self, folder="ours"):
        self.assertFalse(os.path.exists(folder), os.path.exists(folder) and os.listdir(folder))


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
                {"image": a["image"], "label": a["label"]}, None, "ours", shard_records=30, classes="abcde", **options
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

    def test_labels_by_name(self):
        ds = libshard.pack([{"label": "ba"[i % 2]} for i in range(6)], None, "ours", classes=["a", "b"])
        self.assertEqual((ds[:]["label"].tolist(), ds.stats.class_counts), ([1, 0] * 3, {"a": 3, "b": 3}))
        self.setUp()
        ds = libshard.pack({"label": ["b", "a", "b"]}, None, "ours", classes=["a", "b"])
        self.assertEqual(ds[:]["label"].tolist(), [1, 0, 1])

    def test_numbers_are_rounded_as_numpy_does(self):
        rng = np.random.default_rng(4)
        edges = [
            0.0, -0.0, 65504, 65519.99, 65520, -1e30, 6e-8, 2.98e-8, 2.99e-8, 5.96e-8, 6.1e-5,
            np.inf, -np.inf, 1 + 2**-11, 1 + 3 * 2**-11, 2**-14 - 2**-26,
        ]  # fmt: skip
        values = np.concatenate([rng.standard_normal(500) * 10.0 ** rng.integers(-9, 6, 500), edges])
        with np.errstate(over="ignore"):
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
        nan = libshard.pack([{"f16": float("nan"), "bf16": float("nan")}], "f16:f16,bf16:bf16", "more")[0]
        self.assertTrue(all(np.isnan(v) for v in nan.values()))


class Progress(Case):
    def test_a_callback(self):
        seen = []
        libshard.pack({"x": np.arange(50)}, None, "ours", progress=lambda done, total: seen.append((done, total)))
        self.assertEqual(seen[-1], (50, 50))
        self.setUp()
        libshard.pack(
            ({"x": i} for i in range(50)), None, "ours", progress=lambda done, total: seen.append((done, total))
        )
        self.assertEqual(seen[-1], (50, None))

    def test_what_a_callback_raises_comes_out(self):
        def stop(done, total):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            libshard.pack({"x": np.arange(50)}, None, "ours", progress=stop)
        self.check_nothing()

    def test_a_line(self):
        import io

        before, sys.stderr = sys.stderr, io.StringIO()
        try:
            libshard.pack({"x": np.arange(50)}, None, "ours", progress=True)
            libshard.pack({"x": np.arange(50)}, None, "more")
            said = sys.stderr.getvalue()
        finally:
            sys.stderr = before
        self.assertRegex(said, r"\A(\rpacking: [0-9]+ of 50 records, [0-9]+ %, [0-9,]+/s, 0:0[0-9] left\x1b\[K)+\n\Z")
        self.assertIn("50 of 50 records, 100 %", said)


class Publishing(Case):
    def fill(self, writer, first=0, count=100):
        a = data.images(200)[first : first + count]
        writer.write_batch({"image": a["image"], "label": a["label"]})

    def test_nothing_is_there_before_the_end(self):
        with libshard.Writer("ours", shard_records=30) as writer:
            self.fill(writer)
            self.assertFalse(os.path.exists("ours/dataset.manifest"))
            with self.assertRaises(libshard.NotFoundError):
                libshard.open("ours")
            self.assertEqual((len(writer), writer.shard_records, writer.schema.names), (100, 30, ["image", "label"]))
        self.assertEqual(len(libshard.open("ours")), 100)
        self.assertEqual(os.stat("ours/00000.shard").st_nlink, 1)
        self.assertEqual(
            sorted(os.listdir("ours")), ["00000.shard", "00001.shard", "00002.shard", "00003.shard", "dataset.manifest"]
        )

    def test_an_exception_leaves_nothing(self):
        with self.assertRaisesRegex(RuntimeError, "mine"):
            with libshard.Writer("ours/deep", shard_records=30) as writer:
                self.fill(writer)
                raise RuntimeError("mine")
        self.assertEqual(os.listdir("ours"), [])
        with self.assertRaisesRegex(libshard.ClosedError, "this writer is aborted; open another one"):
            writer.write({})
        os.mkdir("more")
        with self.assertRaises(libshard.RecordError):
            libshard.pack([{"x": 1}, {"x": "a"}], None, "more")
        self.assertEqual(os.listdir("more"), [])

    def test_a_writer_that_nobody_finished(self):
        writer = libshard.Writer("ours", shard_records=30)
        self.fill(writer)
        with self.assertWarnsRegex(ResourceWarning, "neither finished nor aborted; nothing was kept"):
            del writer
            gc.collect()
        self.check_nothing()

    def test_a_killed_one_leaves_what_the_next_one_clears(self):
        read, write = os.pipe()
        child = os.fork()
        if not child:
            writer = libshard.Writer("ours", shard_records=30)
            self.fill(writer)
            while len(shards("ours")) < 3:
                time.sleep(0.01)
            os.write(write, b"x")
            signal.pause()
        self.assertEqual(os.read(read, 1), b"x")
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        left = os.listdir("ours")
        self.assertEqual(
            [n for n in sorted(left) if not n.startswith(".tmp.")], ["00000.shard", "00001.shard", "00002.shard"]
        )
        self.assertEqual(len([n for n in left if n.startswith(".tmp.00003.shard.")]), 1)
        with self.assertRaises(libshard.NotFoundError):
            libshard.open("ours")
        inode = os.stat("ours/00001.shard").st_ino
        with libshard.Writer("ours", shard_records=30) as writer:
            self.assertEqual(len(os.listdir("ours")), 3)
            self.fill(writer)
        self.assertEqual(os.stat("ours/00001.shard").st_ino, inode)
        self.assertTrue(libshard.open("ours").verify(sha256=True).ok)
        self.assertEqual(len(os.listdir("ours")), 5)

    def test_other_shards_that_were_left_are_not_taken_over(self):
        libshard.pack({"x": np.arange(100)}, None, "ours", shard_records=30)
        os.unlink("ours/dataset.manifest")
        with self.assertRaisesRegex(
            libshard.ExistsError, "00000.shard: already exists and is another shard; it was left as it is"
        ):
            libshard.pack({"x": np.arange(1, 101)}, None, "ours", shard_records=30)
        with self.assertRaisesRegex(
            libshard.ExistsError, "holds 00002.shard, which another run left and this one does not make"
        ):
            libshard.pack({"x": np.arange(60)}, None, "ours", shard_records=30)
        self.assertEqual(len(os.listdir("ours")), 4)
        libshard.pack({"x": np.arange(60)}, None, "ours", shard_records=30, replace=True)
        self.assertEqual(len(os.listdir("ours")), 3)

    def test_what_is_there_stays(self):
        libshard.pack({"x": np.arange(9)}, None, "ours")
        with self.assertRaisesRegex(
            libshard.ExistsError, "ours: holds a dataset; write to another folder, or with replace=True"
        ):
            libshard.Writer("ours")
        open("ours/mine.txt", "w").close()
        for replace in (False, True):
            with self.assertRaisesRegex(
                libshard.ExistsError, "holds 'mine.txt', which is no part of a dataset; nothing was touched"
            ):
                libshard.Writer("ours", replace=replace)
        with self.assertRaisesRegex(libshard.ExistsError, "a file, not a folder"):
            libshard.Writer("ours/mine.txt")
        os.unlink("ours/mine.txt")
        self.assertEqual(libshard.open("ours")[:]["x"].tolist(), list(range(9)))

    def test_replace_is_at_once(self):
        libshard.pack({"x": np.arange(9)}, None, "ours", shard_records=2)
        with self.assertRaises(KeyError):
            with libshard.Writer("ours", replace=True) as writer:
                writer.write({"x": 1})
                raise KeyError
        self.assertEqual(libshard.open("ours")[:]["x"].tolist(), list(range(9)))
        with open("ours/dataset.sources", "w") as f:
            f.write("fingerprints that shardpack keeps\n")
        with libshard.Writer("ours", replace=True) as writer:
            writer.write_batch({"x": np.arange(5)})
            self.assertEqual(len(libshard.open("ours")), 9)
        self.assertEqual(libshard.open("ours")[:]["x"].tolist(), list(range(5)))
        self.assertEqual(sorted(os.listdir("ours")), ["00000.shard", "dataset.manifest"])
        self.assertFalse(os.path.exists(".ours.new"))

    def test_the_disk_refuses(self):
        if os.geteuid() == 0:
            child = os.fork()
            if not child:
                os.setuid(65534)
                try:
                    libshard.Writer("/proc/ours")
                except OSError:
                    os._exit(0)
                os._exit(1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
        import resource

        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
        try:
            with self.assertRaisesRegex(libshard.StorageError, "ours/00000.shard") as caught:
                libshard.pack({"x": np.zeros((100, 4096), np.uint8)}, None, "ours")
            self.assertNotEqual(caught.exception.errno, 0)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        self.check_nothing()


def write_in_child(writer, queue):
    said = []
    for call in (lambda: writer.write({"x": 1}), lambda: writer.write_batch({"x": [1]}), writer.finish):
        try:
            call()
            said.append("nothing")
        except libshard.ArgumentError as e:
            said.append(str(e))
    writer.abort()
    writer._shard.close()
    del writer
    gc.collect()
    queue.put(said)


class Lives(Case):
    def test_a_forked_child_cannot_write(self):
        context = multiprocessing.get_context("fork")
        with libshard.Writer("ours") as writer:
            writer.write({"x": 1})
            queue = context.Queue()
            child = context.Process(target=write_in_child, args=(writer, queue))
            child.start()
            for line in queue.get(timeout=60):
                self.assertRegex(line, "belongs to process [0-9]+; a forked child must open its own, in another folder")
            child.join()
            self.assertEqual(child.exitcode, 0)
            writer.write({"x": 2})
        self.assertEqual(libshard.open("ours")[:]["x"].tolist(), [1, 2])
        with self.assertRaisesRegex(TypeError, "cannot be pickled"):
            pickle.dumps(writer)

    def test_ctrl_c_is_heard(self):
        class Heard(Exception):
            pass

        def raise_(number, frame):
            raise Heard

        # 64 GiB of one page: ten seconds of work, and more
        a = np.broadcast_to(np.zeros((1, 4096), np.uint8), (1 << 24, 4096))
        before = signal.signal(signal.SIGALRM, raise_)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            begin = time.process_time()  # others may have the CPU meanwhile
            with self.assertRaises(Heard):
                with libshard.Writer("ours", compress="lz4", shard_records=1 << 20) as writer:
                    writer.write_batch({"x": a})
            self.assertLess(time.process_time() - begin, 3)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        self.check_nothing()

    def test_other_threads_run_meanwhile_and_are_refused_here(self):
        a = np.broadcast_to(np.zeros((1, 65536), np.uint8), (4096, 65536))  # 256 MiB
        with libshard.Writer("ours", "x:u8[65536]", compress="lz4") as writer:
            thread = threading.Thread(target=lambda: writer.write_batch({"x": a}))
            thread.start()
            ran, refused = 0, 0
            while thread.is_alive():
                ran += 1
                try:
                    if writer._shard is not None:
                        writer._shard.append({"x": a[0]}, None, 0)
                except libshard.ArgumentError as e:
                    self.assertIn("another thread writes to this shard", str(e))
                    refused += 1
            self.assertGreater(ran, 100)
            self.assertGreater(refused, 10)
            writer.abort()

    def test_objects_that_write_back(self):
        """A value that is asked what it is may call the writer that asks."""

        class Evil:
            @property
            def __array_interface__(self):
                writer.write({"x": 1})

        with libshard.Writer("ours", "x:i64") as writer:
            with self.assertRaisesRegex(libshard.ArgumentError, "another thread"):
                writer._shard or writer._current()
                writer._shard.append(Items(lambda: writer._shard.append({"x": 1}, None, 0)), None, 0)
            with self.assertRaises(libshard.Error):
                writer.write({"x": Evil()})
            writer.write({"x": 5})
        self.assertEqual(libshard.open("ours")[:]["x"].tolist(), [5])

    def test_memory_comes_back(self):
        """What is in use, and not what the process has: that depends on when which thread asked."""

        def in_use():
            gc.collect()
            info = mallinfo2()
            with open("/proc/self/statm") as f:
                resident = int(f.read().split()[1]) * 4096
            return info.uordblks + info.hblkhd, sys.getallocatedblocks(), resident

        a = data.images(100)
        for round_ in range(60):
            with libshard.Writer("ours", shard_records=60, replace=True) as writer:
                writer.write_batch({"image": a["image"], "label": a["label"]})
                for i in range(50):
                    writer.write({"image": a["image"][i], "label": 3})
                    with self.assertRaises(libshard.RecordError):
                        writer.write({"image": a["image"][i, 1:], "label": 3})
            if round_ == 9:
                before = in_use()
        used = [now - then for now, then in zip(in_use(), before)]
        for grown, limit in zip(used, (256 << 10, 2000, 64 << 20)):
            self.assertLess(grown, limit)


class Mallinfo2(ctypes.Structure):
    """As malloc.h of glibc 2.33 and later has it."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = Mallinfo2


class Items(dict):
    def __init__(self, call):
        super().__init__()
        self.call = call

    def __missing__(self, name):
        self.call()

    def __iter__(self):
        self.call()
        return iter(())


class Liar:
    """Says of its memory what is not so; only what it says about itself can be compared."""

    def __init__(self, length, real, /, **more):
        self.length, self.a, self.more = length, np.zeros(real, np.int32), more

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        return self.a[i]

    @property
    def __array_interface__(self):
        return {**self.a.__array_interface__, **self.more}


class BadUse(Case):
    def refuse(self, schema, records, words, **options):
        self.setUp()
        with self.subTest(words), self.assertRaisesRegex(libshard.RecordError, words) as caught:
            libshard.pack(records, schema, "ours", **options)
        self.check_nothing()
        return caught.exception

    def test_records(self):
        image = np.zeros((4, 4, 3), np.uint8)
        schema = "image:u8[4,4,3],label:i64"
        good = {"image": image, "label": 1}
        for bad, words in (
            ({"image": image}, r"record 1, field 'label': the record has no such item; it has \['image'\]"),
            (
                {"image": image.astype("f4"), "label": 1},
                r"record 1, field 'image': an array of float32\[4,4,3\], but the field is uint8\[4,4,3\]",
            ),
            (
                {"image": image[:3], "label": 1},
                r"record 1, field 'image': an array of uint8\[3,4,3\], but the field is uint8\[4,4,3\]",
            ),
            ({"image": image[0], "label": 1}, r"an array of uint8\[4,3\], but"),
            ({"image": None, "label": 1}, "field 'image': None is not a number, an array or a list"),
            ({"image": object(), "label": 1}, "field 'image': a value of type object is not a number, an array"),
            ({"image": 5, "label": 1}, r"a number, but the field is"),
            ({"image": image.tolist()[:3], "label": 1}, r"a list of 3 on axis 0; the field is uint8\[4,4,3\]"),
            ({"image": [[[256] * 3] * 4] * 4, "label": 1}, r"256 does not fit, the field is uint8\[4,4,3\]"),
            ({"image": [[[-1] * 3] * 4] * 4, "label": 1}, "-1 does not fit"),
            ({"image": [[[[1]] * 3] * 4] * 4, "label": 1}, "a list of 1 where a number is wanted"),
            ({"image": "x", "label": 1}, "a value of type str is not a number"),
            (
                {"image": image, "label": 1.5},
                r"record 1, field 'label': 1.5 is no whole number, and the field is int64\[\]",
            ),
            ({"image": image, "label": 1 << 63}, "9223372036854775808 does not fit"),
            ({"image": image, "label": 1 << 64}, "a number of more than 64 bits"),
            ({"image": image, "label": image}, r"an array of uint8\[4,4,3\], but the field is int64\[\]"),
            ({"image": image.astype(">i4"), "label": 1}, "dtype '>i4?'.*little-endian"),
            ({"image": image.astype("c8"), "label": 1}, "an array of dtype 'complex64', which no field has"),
            ({"image": image, "label": "cat"}, "a value of type str"),
            (
                {"image": [image[0], image[1], image[2], image[3, :2]], "label": 1},
                r"an array of uint8\[2,3\], but it is a part of a list, and the field",
            ),
            ({"image": image, "label": np.datetime64(5, "s")}, r"an array of uint8\[8\]"),
            (5, "which is no dict or tuple"),
            ((image, 1, 2), "a sample is a tuple of 3 items; must be a dict, or a tuple"),
        ):
            error = self.refuse(schema, [good, bad], words)
            if isinstance(bad, dict):
                self.assertEqual(error.record, 1)
                self.assertIn(error.field, ("image", "label"))
                self.assertIsInstance(error, ValueError)
        self.refuse(
            None,
            [good, {**good, "more": 1}],
            r"record 1: it has the items \['image', 'label', 'more'\]; "
            r"must have those of the first record, \['image', 'label'\]",
        )
        libshard.pack([good, {**good, "more": 1}], schema, "ours")

    def test_pictures_whose_numbers_are_no_colours(self):
        red = Image.new("P", (4, 4), 3)
        red.putpalette([255, 0, 0] * 256)
        rgb = np.asarray(red.convert("RGB"))
        for mode in ("P", "PA", "CMYK", "YCbCr", "HSV", "LAB", "RGBX"):
            image = red if mode == "P" else Image.new(mode, (4, 4))
            words = rf"a Pillow image of mode '{mode}': give image.convert\('RGB'\) for colours, or numpy.asarray"
            self.refuse(None, [{"image": image}], f"record 0, field 'image': {words}")
            self.refuse({"image": "u8[4,4,3]"}, [{"image": rgb}, {"image": image}], f"record 1, field 'image': {words}")
            self.refuse({"image": "u8[1,4,4,3]"}, [{"image": [image]}], words)
        for mode, field in (("1", "bool[4,4]"), ("L", "uint8[4,4]"), ("LA", "uint8[4,4,2]"), ("RGBA", "uint8[4,4,4]"),
                            ("I", "int32[4,4]"), ("F", "float32[4,4]"), ("I;16", "uint16[4,4]")):  # fmt: skip
            self.setUp()
            ds = libshard.pack([{"x": Image.new(mode, (4, 4))}], None, "ours")
            self.assertEqual(str(ds.schema["x"]), f"x: {field}")
        self.setUp()
        got = libshard.pack([{"mask": np.asarray(red), "image": red.convert("RGB")}], None, "ours")[0]
        self.assertEqual((got["mask"].tolist(), got["image"].tolist()), ([[3] * 4] * 4, rgb.tolist()))

    def test_sources_whose_items_are_no_samples(self):
        class Batches:  # as a DataLoader is
            dataset, batch_sampler, batch_size = (), None, 4

            def __iter__(self):
                yield {"x": np.zeros((4, 2), "u1")}

        class ByASampler(Batches):
            batch_sampler, batch_size = object(), None

        class Singles(Batches):
            batch_size = None

            def __iter__(self):
                yield from ({"x": np.zeros(2, "u1")} for _ in range(3))

        class Table:  # as those of pandas, Polars and Arrow are
            columns = ["a"]

            def to_dict(self):
                raise AssertionError("it is not asked")

            def __len__(self):
                return 2

            def __getitem__(self, i):
                return [1, 2]

        class Part(list):
            features = {}

        libshard.pack({"x": np.zeros((32, 2), "u1")}, None, "batched")
        with libshard.Loader("batched", 16) as loader:
            for source, words in (
                (Batches(), "a Batches, which yields batches, not samples; say batched=True"),
                (ByASampler(), "a ByASampler, which yields batches"),
                (loader, "a Loader, which yields batches"),
                (Table(), "a Table; give its columns as a dict"),
                ({"train": Part([1]), "test": Part([2])}, "a dict of datasets, such as 'train'; pack each"),
                ({"train": {"x": [1]}}, "a dict of datasets, such as 'train'"),
            ):
                self.setUp()
                with self.subTest(words), self.assertRaisesRegex(libshard.ArgumentError, words):
                    libshard.pack(source, None, "ours")
                self.check_nothing()
        self.setUp()
        self.assertEqual(len(libshard.pack(Batches(), None, "ours", batched=True)), 4)
        self.setUp()
        self.assertEqual(len(libshard.pack(Singles(), None, "ours")), 3)

    def test_an_array_that_does_not_give_its_numbers_is_named(self):
        class Refuses:  # as a tensor that requires a gradient
            def __dlpack__(self):
                raise BufferError("it requires a gradient")

            def __dlpack_device__(self):
                return 1, 0

        for schema in (None, {"x": "u8[2]"}):
            self.refuse(schema, [{"x": Refuses()}], "record 0, field 'x': an array that cannot be read: it requires")

    def test_what_fits_exactly_is_taken(self):
        limits = {
            "u8": (0, 255),
            "i8": (-128, 127),
            "u16": (0, 65535),
            "i16": (-32768, 32767),
            "u32": (0, 2**32 - 1),
            "i32": (-(2**31), 2**31 - 1),
            "u64": (0, 2**64 - 1),
            "i64": (-(2**63), 2**63 - 1),
            "bool": (0, 1),
        }
        for dtype, (low, high) in limits.items():
            self.setUp()
            ds = libshard.pack([{"x": low}, {"x": high}], f"x:{dtype}", "ours")
            self.assertEqual(ds[:]["x"].tolist(), [low, high])
            for bad in (low - 1, high + 1):
                self.refuse(f"x:{dtype}", [{"x": bad}], f"{bad} does not fit|more than 64 bits")

    def test_strings(self):
        for schema, value, words in (
            (
                "s:text[<=3]",
                "äa€",
                r"record 0, field 's': 6 bytes; must be at most 3. "
                r"Leave the record out, cut it, or raise the length in the schema",
            ),
            ("s:text[<=3]", b"a", "the field is text; give a str"),
            ("s:bytes[<=3]", b"1234", "4 bytes; must be at most 3"),
            ("s:bytes[<=3]", 5, "give bytes"),
            ("s:text[<=9]", "\ud800", "lone surrogates"),
            ("s:u8[<=3]", [1, 2, 3, 4], "4 items; must be at most 3"),
            ("s:u8[<=3]", 5, "the length of the field varies"),
            (
                "s:f4[<=3,2]".replace("f4", "f32"),
                np.zeros((2, 3), "f4"),
                r"an array of float32\[2,3\], but the field is float32\[<=3,2\]",
            ),
        ):
            self.refuse(schema, [{"s": value}], words)

    def test_nothing_that_a_value_says_of_itself_leads_out_of_bounds(self):
        """Under the address sanitizer this would not end well."""
        for liar in (
            Liar(1, (9, 4)),
            Liar(4, (2, 4)),
            Liar(2, (2, 4), shape=(2, 5)),
            Liar(3, (3, 4), shape=(-1, 4)),
            Liar(3, (3, 4), strides=(16,)),
            Liar(3, (3, 4), data=b"12"),
            Liar(3, (3, 4), data=b"12", strides=None),
            Liar(3, (3, 4), typestr="<i44"),
            Liar(3, (3, 4), typestr="<"),
            Liar(3, (3, 4), shape=(1,) * 40),
            Liar(3, (3, 4), data=(0,)),
            Liar(3, (3, 4), data=b"x" * 48, strides=(10**6, 4)),
        ):
            for schema in ("x:i32[<=4,4]", "x:i32[3,4]"):
                refused = (libshard.RecordError, TypeError, BufferError, ValueError, IndexError)
                with self.subTest(more=liar.more), self.assertRaises(refused):
                    with libshard.Writer("ours", schema) as writer:
                        writer.write({"x": liar})
                        raise BufferError  # for what is no lie under this schema
        for liar in (Liar(9, (3, 4)), Liar(-1, (3, 4)), Liar(1 << 62, (3, 4))):
            with self.assertRaises((libshard.ArgumentError, ValueError, IndexError)):
                with libshard.Writer("ours", "x:i32[4]") as writer:
                    writer.write_batch({"x": liar})
        with self.assertRaises((libshard.Error, IndexError)):
            shrinking = []

            class Shrinks:
                def __float__(self):
                    shrinking.clear()
                    return 1.0

                __array_interface__ = property(lambda self: shrinking.clear())

            shrinking += [Shrinks()] * 4
            libshard.pack([{"x": shrinking}], "x:f32[4]", "ours")

    def test_labels(self):
        self.refuse(
            "label:i64",
            [{"label": 2}],
            "record 0, field 'label': label is 2; must be 0 or more, and below 2, the number of classes",
            classes=["a", "b"],
        )
        self.refuse(
            "label:i64",
            {"label": np.array([0, 1, -1])},
            "record 2, field 'label': label is -1; must be 0 or more, and below 2, the number of classes",
            classes=["a", "b"],
        )
        error = self.refuse(
            "label:i64",
            [{"label": "a"}, {"label": "c"}],
            "record 1, field 'label': 'c' is none of the 2 classes",
            classes=["a", "b"],
        )
        self.assertEqual((error.record, error.field), (1, "label"))
        for classes, words in (
            (["a", "a"], "a name is given twice"),
            ([1], "1 is not a str"),
            (["a\0"], "NUL"),
            (["x" * 5000], "class 0"),
            ([""], "class 0"),
        ):
            with self.assertRaisesRegex(libshard.ArgumentError, words):
                libshard.pack([{"label": 0}], None, "ours", classes=classes)
            self.check_nothing()
        with self.assertRaisesRegex(libshard.ArgumentError, "classes were given, but no field is a label"):
            libshard.pack([{"x": 0}], None, "ours", classes=["a"])

    def test_columns(self):
        for columns, words in (
            (
                {"x": np.arange(3), "y": np.arange(4)},
                "the columns have different lengths: {'x': 3, 'y': 4}; must be the same",
            ),
            ({"x": []}, "no record was written"),
            ({}, "no columns"),
        ):
            with self.assertRaisesRegex(libshard.ArgumentError, words):
                libshard.pack(columns, None, "ours")
            self.check_nothing()
        self.refuse("x:i64,y:i64", {"x": [1]}, r"field 'y': the record has no such item; it has \['x'\]")
        self.refuse(
            "x:u8[2]",
            {"x": np.zeros((3, 3), "u1")},
            r"record 0, field 'x': an array of uint8\[3\], but the field is uint8\[2\]",
        )
        self.refuse("x:u8", {"x": [1, 2, 300]}, r"record 2, field 'x': 300 does not fit")
        with libshard.Writer("ours", "x:u8", shard_records=2) as writer:
            with self.assertRaisesRegex(libshard.RecordError, "record 2"):
                writer.write_batch({"x": [1, 2, 300]})
            writer.write({"x": 7})
        self.assertEqual(libshard.open("ours")[:]["x"].tolist(), [1, 2, 7])

    def test_a_first_record_that_tells_too_little(self):
        for record, words in (
            (
                {"s": "x"},
                r"field 's': one record does not tell the greatest length of a str; "
                r"give it in the schema, as {'s': 'text\[<=200\]', ...}",
            ),
            ({"s": b"x"}, r"'bytes\[<=200\]'"),
            ({"s": []}, "an empty list"),
            ({"s": None}, "a value of type NoneType"),
            ({"s": object()}, "a value of type object"),
            ({"s": np.zeros(3, "c8")}, "an array of dtype 'complex64'"),
        ):
            self.refuse(None, [record], words)

    def test_schemas(self):
        for schema, words in (
            ("x", "'x' is not a field; give NAME:TYPE"),
            ("x:u9", "field 'x': dtype 'u9'; must be one of uint8"),
            ("x:u8[", "is not a type"),
            ("x:u8[a]", "is not a type"),
            ("x:u8[,]", "the shape must be numbers"),
            ("x:u8[0]", "axis 0 of its shape must be 1 to"),
            ("x:u8,x:u8", "field 'x' is given twice"),
            ({}, "has no field"),
            ("", "is not a field"),
            ({5: "u8"}, "the name of a field must be a str, not 5"),
            (7, "give text as"),
            ([7], "give text as"),
            ("1x:u8", "field '1x': a name must be 1 to 47 of A-Z"),
            ("é:u8", "a name must be 1 to 47"),
            ("x:text", "give the greatest number of bytes"),
            ({"x": object()}, "dtype <object"),
            ({"x" * 48: "u8"}, "a name must be 1 to 47"),
            (",".join(f"f{i}:u8" for i in range(25)), "must be 1 to 24"),
            ("x:u8[1,1,1,1,1,1,1,1,1]", "at most 8 axes"),
            ("x:u8[4294967296]", "axis 0"),
            ("x:u8[<=4],x_length:u32", "given twice"),
            ("x:u8[4000000000]", "more than the limit of 1073741824 bytes"),
            ([libshard.Field("x", "u8", (1,))], "dtype 'u8'; must be one of"),
            ([libshard.Field("x", "uint8", (1,), kind="y")], "kind 'y'"),
            ([libshard.Field("x", "uint8", 5)], "shape 5"),
            ([libshard.Field("x", "uint8", (), "ragged")], "at least one"),
            ([libshard.Field("x", "uint8", (), group=3)], "group"),
        ):
            with self.subTest(schema), self.assertRaisesRegex(libshard.ArgumentError, words):
                libshard.Writer("ours", schema)
            self.check_nothing()
        for spec, want in (
            (np.uint8, "uint8"),
            (np.dtype("f2"), "float16"),
            ("bf16", "bfloat16"),
            ((np.float32, (2, 3)), "float32"),
            (("int8", [2]), "int8"),
            (bool, "bool"),
        ):
            with libshard.Writer("more", {"x": spec}) as writer:
                self.assertEqual(writer.schema["x"].dtype, want)
                writer.abort()

    def test_options(self):
        for options, words in (
            ({"compress": "zip"}, "compress='zip'; must be None or 'lz4'"),
            ({"shard_records": 1, "shard_bytes": 1}, "are both given"),
            ({"shard_records": 0}, "must be at least 1"),
            ({"shard_records": -1}, "shard_records=-1; must be 0 to"),
            ({"align": 5}, "align is 5; must be 0 or 4096"),
            ({"shard_records": 1 << 39}, "the limit is"),
            ({"order": "x"}, "order='x'; must be 'source' or 'shuffle'"),
            ({"seed": -1}, "seed=-1"),
            ({"provenance": 5}, "provenance: 5 is not a str"),
            ({"names": ["a"]}, None),
        ):
            with self.subTest(options):
                if words is None:
                    continue
                with self.assertRaisesRegex(libshard.ArgumentError, words):
                    libshard.pack([{"x": np.zeros(5000, "u1")}], "x:u8[5000]", "ours", **options)
                self.check_nothing()
        with self.assertRaisesRegex(
            libshard.ArgumentError, "order='shuffle' needs a source with a length and an index"
        ):
            libshard.pack(iter([{"x": 1}]), None, "ours", order="shuffle")
        for source, words in (("photos", "shardpack packs folders"), (5, "not a int"), (None, "not a NoneType")):
            with self.assertRaisesRegex(TypeError, words):
                libshard.pack(source, None, "ours")
        with self.assertRaisesRegex(libshard.ArgumentError, "ours: no record was written, so there is no dataset"):
            libshard.pack([], "x:u8", "ours")
        self.check_nothing()
        with libshard.Writer("ours", "x:u8", records=2) as writer:
            writer.write_batch({"x": [1, 2]})
            with self.assertRaisesRegex(libshard.ArgumentError, "record 2 exceeds records=2; give the right number"):
                writer.write({"x": 3})
        with self.assertRaisesRegex(libshard.ClosedError, "this writer is finished"):
            writer.write({"x": 3})
        self.assertEqual(len(writer.finish()), 2)

    def test_keys(self):
        with libshard.Writer("ours", "x:u8", keys=True) as writer:
            for key, words in (
                (None, "opened with keys=True; give a key"),
                (5, "its key must be a str"),
                ("a" * 1025, "at most 1024 bytes"),
                ("a\0b", "without NUL"),
                ("\ud800", "UTF-8"),
            ):
                with self.assertRaisesRegex(libshard.ArgumentError, words):
                    writer.write({"x": 1}, key=key)
            with self.assertRaisesRegex(libshard.ArgumentError, "1 keys for 2 records"):
                writer.write_batch({"x": [1, 2]}, ["a"])
            writer.write_batch({"x": [1, 2]}, ["a", "ü"])
        self.assertEqual(libshard.open("ours").key(1), "ü")
        with libshard.Writer("more", "x:u8") as writer:
            with self.assertRaisesRegex(libshard.ArgumentError, "opened without keys=True"):
                writer.write({"x": 1}, key="a")
            writer.abort()


if __name__ == "__main__":
    unittest.main()
