# SPDX-License-Identifier: Apache-2.0
"""What others read of an export, and examples/python/frames.py with videos that are made here."""

import contextlib
import io
import json
import os
import sys
import unittest
import warnings
from fractions import Fraction
from unittest import mock

import av
import example
import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
from PIL import Image

import libshard

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of PyTorch, which is not here
    import webdataset

N = 37


def make(out):
    rng = np.random.default_rng(1)
    schema = {
        "image": "image[8,9,3]", "label": "int64", "score": "float32", "pose": "float32[2,3]", "flag": "bool",
        "name": "text[<=20]", "boxes": "boxes[<=4]", "half": "float16[2]",
    }  # fmt: skip
    rows = [
        {
            "image": rng.integers(0, 256, (8, 9, 3), "u1"), "label": i % 2, "score": float(np.float32(i / 3)),
            "pose": rng.standard_normal((2, 3)).astype("f4"), "flag": i % 3 == 0, "name": f"Bär {i}",
            "boxes": rng.random((i % 5, 4)).astype("f4"), "half": np.array([i, 0.5], "f2"),
        }
        for i in range(N)
    ]  # fmt: skip
    libshard.pack(
        [r | {"key": f"k/{i}.jpg"} for i, r in enumerate(rows)], schema, out, key="key", classes=["cat", "dog"], shard_records=10
    )
    return rows


class Tables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rows = make("set")
        cls.ds = libshard.open("set")

    def check(self, table, rows, first=0):
        got = table.to_pylist()
        self.assertEqual(len(got), len(rows))
        for i, (a, b) in enumerate(zip(got, rows)):
            self.assertEqual(a["key"], f"k/{first + i}.jpg")
            for name in ("label", "score", "flag", "name"):
                self.assertEqual(a[name], b[name], name)
            for name in ("pose", "boxes", "half"):
                np.testing.assert_array_equal(np.array(a[name], "f4").reshape(np.shape(b[name])), b[name])
            if "image" in a:
                np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(a["image"]["bytes"]))), b["image"])

    def test_parquet(self):
        with mock.patch("libshard._export._GROUP_RECORDS", 5):  # several row groups
            self.assertEqual(libshard.export(self.ds, "set.parquet"), ["set.parquet"])
        table = pyarrow.parquet.read_table("set.parquet")
        self.assertEqual(pyarrow.parquet.ParquetFile("set.parquet").num_row_groups, 8)
        self.check(table, self.rows)
        self.assertEqual(json.loads(table.schema.metadata[b"libshard.classes"]), ["cat", "dog"])
        self.assertEqual(table.schema.field("pose").type, pyarrow.list_(pyarrow.list_(pyarrow.float32(), 3), 2))
        with self.assertRaises(AssertionError):  # the control
            self.check(table, self.rows[1:] + self.rows[:1])
        with self.assertRaisesRegex(libshard.ExistsError, "set.parquet: is there already"):
            libshard.export(self.ds, "set.parquet")
        with mock.patch("libshard._export._column", side_effect=ZeroDivisionError), self.assertRaises(ZeroDivisionError):
            libshard.export(self.ds, "other.parquet")
        self.assertFalse([n for n in os.listdir() if "other" in n])

    def test_tables(self):
        table = self.ds.to_arrow()
        self.assertEqual(table.column_names, ["key", "label", "score", "pose", "flag", "name", "boxes", "half"])
        self.assertEqual(json.loads(table.schema.metadata[b"libshard.left_out"]), ["image"])
        self.assertEqual(self.ds.to_pandas().attrs["left_out"], ["image"])
        self.assertNotIn(b"libshard.left_out", self.ds.to_arrow(["label"]).schema.metadata)
        self.check(table, self.rows)
        self.check(self.ds.to_arrow(["image", *table.column_names[1:]]), self.rows)
        few = self.ds.select(range(12, 20))
        self.check(few.to_arrow(), self.rows[12:20], 12)
        frame = few.to_pandas(["label", "name"])
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(list(frame.columns), ["key", "label", "name"])
        self.assertEqual(frame["name"].tolist(), [r["name"] for r in self.rows[12:20]])
        with self.assertRaisesRegex(libshard.ArgumentError, "'name_length' is not a field that is exported"):
            self.ds.to_arrow(["name_length"])

    def test_a_field_that_is_called_key(self):
        with libshard.Writer("called_key", {"key": "int64", "x": "float32"}, keys=True) as w:
            w.write({"key": 5, "x": 1.5}, key="first")
        ds = libshard.open("called_key")
        for call in (ds.to_arrow, lambda: libshard.export(ds, "called_key.parquet")):
            with self.assertWarnsRegex(UserWarning, "a field 'key', .* so the keys are not in the table"):
                call()
        self.assertEqual(ds.to_arrow(["x"]).to_pylist(), [{"key": "first", "x": 1.5}])  # the control

    def test_a_concatenation(self):
        """Of parts that store their records in different ways; the first has no keys."""
        rows = [{"t": "x" * (i % n), "v": [i] * (i % n), "n": i} for n, count in ((4, 9), (30, 12)) for i in range(count)]
        parts = [
            libshard.pack(rows[9 * i :][:count], {"t": f"text[<={n}]", "v": f"int32[<={n}]", "n": "int64"}, f"part{i}", **more)
            for i, (n, count, more) in enumerate(((4, 9, {}), (30, 12, {"key": lambda i, _: f"k{i}"})))
        ]
        both = libshard.concat(parts)
        want = [r | {"key": "" if i < 9 else f"k{i - 9}"} for i, r in enumerate(rows)]
        with mock.patch("libshard._export._GROUP_RECORDS", 5):
            self.assertEqual(both.to_arrow().to_pylist(), want)
            self.assertEqual(both.dataset.to_arrow().to_pylist(), want)
            some = (both.where(n=[3, 8, 11]), parts[0].select([2, 3]) + parts[1])
            for source, numbers in zip(some, ([3, 8, 12, 17, 20], [2, 3, *range(9, 21)])):
                self.assertEqual(source.to_arrow().to_pylist(), [want[i] for i in numbers])
            libshard.export(both, "both.parquet")
        self.assertEqual(pyarrow.parquet.read_table("both.parquet").to_pylist(), want)

    def test_webdataset(self):
        os.mkdir("tars")
        libshard.export(self.ds, "tars/%06d.tar", shard_bytes=60000)
        tars = sorted(f"tars/{n}" for n in os.listdir("tars") if n.endswith(".tar"))
        self.assertGreater(len(tars), 1)
        samples = list(webdataset.WebDataset(tars, shardshuffle=False).decode("rgb8"))
        self.assertEqual([s["__key__"] for s in samples], [f"k/{i}" for i in range(N)])
        for got, want in zip(samples, self.rows):
            np.testing.assert_array_equal(got["png"], want["image"])
            np.testing.assert_array_equal(got["pose.npy"], want["pose"])
            np.testing.assert_array_equal(got["boxes.npy"], want["boxes"])
            self.assertEqual(got["cls"], want["label"])
            self.assertEqual(got["json"], {k: want[k] for k in ("score", "flag", "name")})


def video(path, count, seed, skip=None, codec="png"):
    """A video without loss, of `count` frames of chance, of which each one is shown for 0.1 s."""
    pixels = np.random.default_rng(seed).integers(0, 256, (count, 32, 32, 3), "u1")
    with av.open(path, "w") as out:
        stream = out.add_stream(codec, rate=10)
        stream.width = stream.height = 32
        stream.pix_fmt = "rgb24"
        for i, p in enumerate(pixels):
            frame = av.VideoFrame.from_ndarray(p, format="rgb24")
            frame.pts = i + 5 * (skip is not None and i >= skip)
            frame.time_base = Fraction(1, 10)
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
    return pixels


class Frames(unittest.TestCase):
    def run_example(self, *args):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), mock.patch.object(sys, "argv", ["frames.py", *args]):
            example.module("frames").main()
        return said.getvalue()

    def test_windows_of_videos(self):
        want = [video("a.mov", 21, 1), video("b.mov", 3, 2), video("c.mov", 14, 3)]
        said = self.run_example("a.mov", "b.mov", "c.mov", "--out", "frames", "--side", "32", "--window", "4")
        self.assertIn("38 frames, 29 windows", said)  # 18, none and 11
        self.assertIn("step 0: (8, 4, 32, 32, 3), 0.300 s", said)
        self.assertEqual(self.run_example("--out", "frames"), said)
        seen = 0
        for batch in libshard.Loader("frames", 8, window=(-3, 0)):
            for clip, valid, episode, times in zip(
                *(batch[n].numpy() for n in ("frame", "valid", "episode", "time")), strict=True
            ):
                self.assertEqual(len(set(episode)), 1)
                now = round(times[-1] * 10)
                at = [max(now + o, 0) for o in range(-3, 1)]
                self.assertEqual(valid.tolist(), [now + o >= 0 for o in range(-3, 1)])
                np.testing.assert_array_equal(clip, want[episode[0]][at])
                seen += 1
        self.assertEqual(seen, 38)

    def test_a_video_whose_frames_are_not_evenly_spaced_is_refused(self):
        video("gap.mov", 12, 1, skip=7)
        with self.assertRaisesRegex(SystemExit, "gap.mov: frames 6 and 7 are 0.600 s apart, and most others 0.100 s"):
            self.run_example("gap.mov", "--out", "never")
        self.assertFalse(os.path.exists("never/dataset.manifest"))


if __name__ == "__main__":
    unittest.main()
