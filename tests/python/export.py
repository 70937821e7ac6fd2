# SPDX-License-Identifier: Apache-2.0
"""Datasets that are exported as tars: packed again they are the same."""

import errno
import glob
import io
import json
import os
import signal
import tarfile
import unittest
import unittest.mock

import numpy as np
from data import files_of_at_most, pack_raw, shardpack

import libshard

N = 23
SAME = ("--resize", 12, "--crop", 12)  # the images have this size, so shardpack leaves them as they are


def make(out="set", keys=None, layout="hwc", classes=("cat", "dog", "bird")):
    rng = np.random.default_rng(3)
    shape = (12, 12, 3) if layout == "hwc" else (3, 12, 12)
    schema = [
        libshard.Field("image", "uint8", shape, layout=layout, semantic="image"),
        libshard.Field("depth", "uint8", (6, 5, 1), layout="hwc", semantic="image"),
        libshard.Field("label", "int64", (), semantic="label"),
        libshard.Field("score", "float32", ()),
        libshard.Field("state", "float32", (4,)),
        libshard.Field("name", "uint8", (24,), "string", semantic="text"),
    ]
    rows = []
    with libshard.Writer(out, schema, classes=classes, keys=keys is not None) as w:
        for i in range(N):
            rows.append({
                "image": rng.integers(0, 256, shape, "u1"), "depth": rng.integers(0, 256, (6, 5, 1), "u1"), "label": i % 3,
                "score": float(np.float32(i / 7)), "state": rng.standard_normal(4).astype("f4"), "name": f"Bär {i}\n",
            })  # fmt: skip
            w.write(rows[-1], **({} if keys is None else {"key": keys(i)}))
    return rows


def members(path):
    with tarfile.open(path) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar}


class Export(unittest.TestCase):
    def test_a_tar_that_is_packed_again_is_the_same(self):
        rows = make("first", keys=lambda i: f"dir.a/photo {i:03}.x.jpg")
        os.mkdir("out")
        seen = []
        paths = libshard.export(
            "first", "out/train-%03d.tar", shard_bytes=40000, progress=lambda done, count: seen.append((done, count))
        )
        self.assertEqual(paths, ["out/classes.txt", *sorted(glob.glob("out/*.tar"))])
        self.assertGreater(len(paths), 3)
        self.assertEqual(sorted(os.listdir("out")), sorted(os.path.basename(p) for p in paths))
        self.assertEqual(seen[-1], (N, N))
        shardpack(
            "images", "out/train-*.tar", "-o", "again", "--order", "source", "--classes", "out/classes.txt", *SAME,
            "--field", "name:kind=text,max=24,from=json:name", "--field", "score:kind=tensor,dtype=f32,from=json:score",
            "--field", "state:kind=tensor,dtype=f32,shape=4,from=state.npy",
        )  # fmt: skip
        again = libshard.open("again")
        self.assertEqual(again.classes, ["cat", "dog", "bird"])
        self.check(again, rows)
        self.assertTrue(again.key(4).endswith("dir.a/photo 004_x.png"), again.key(4))
        rows[5]["image"][3, 2, 1] ^= 1
        with self.assertRaises(AssertionError):  # the control
            self.check(again, rows)

    def check(self, ds, rows):
        self.assertEqual(len(ds), len(rows))
        for got, want in zip(ds, rows):
            np.testing.assert_array_equal(np.asarray(got["image"]), want["image"])
            np.testing.assert_array_equal(np.asarray(got["state"]), want["state"])
            self.assertEqual([got[k] for k in ("label", "score", "name")], [want[k] for k in ("label", "score", "name")])

    def test_what_is_in_a_sample(self):
        rows = make("plain", layout="chw", classes=["0", "1", "2"])
        ds = libshard.open("plain")
        os.mkdir("few")
        libshard.export(ds.select([2, 20]), "few/%d.tar", fields=["depth", "label", "state", "name"])
        got = members("few/0.tar")
        self.assertEqual(
            list(got), [f"{i:09}.{e}" for i in (2, 20) for e in ("png", "cls", "state.npy", "json")]
        )  # the first picture is the one that is exported
        self.assertEqual(json.loads(got["000000002.json"]), {"name": "Bär 2\n"})
        np.testing.assert_array_equal(np.load(io.BytesIO(got["000000020.state.npy"])), rows[20]["state"])
        os.mkdir("all")
        libshard.export(ds, "all/%d.tar")
        self.assertIn("000000000.depth.png", members("all/0.tar"))
        shardpack("images", "all/0.tar", "-o", "turned", "--order", "source", "--classes", "all/classes.txt", *SAME)
        self.assertEqual(libshard.open("turned").column("label").tolist(), [i % 3 for i in range(N)])
        pixels = np.asarray(libshard.open("turned")[7]["image"])
        np.testing.assert_array_equal(pixels.transpose(2, 0, 1), rows[7]["image"])

    def test_bfloat16_becomes_float32(self):
        a = np.zeros(3, np.dtype([("x", "<u2", (2,))]))
        a["x"] = np.array([[0x3F80, 0xC000], [0x0001, 0x7F80], [0, 0x3EAB]])  # 1, -2, the least, infinity, 0, about a third
        pack_raw("brain", a, "x:bf16[2]")
        os.mkdir("b")
        libshard.export("brain", "b/%d.tar")
        got = [np.load(io.BytesIO(data)) for data in members("b/0.tar").values()]
        np.testing.assert_array_equal(np.array(got).view("u4"), a["x"].astype("u4") << 16)

    def test_a_concatenation(self):
        a, b = make("behind"), make("keyed", keys=lambda i: f"k{i}")
        both = libshard.open("behind") + libshard.open("keyed")
        os.mkdir("c")
        self.assertEqual(libshard.export(both, "c/%d.tar", fields=["label"]), ["c/classes.txt", "c/0.tar"])
        want = {f"{i:09d}.cls": str(r["label"]).encode() for i, r in enumerate(a)}
        want |= {f"k{i}.cls": str(r["label"]).encode() for i, r in enumerate(b)}
        self.assertEqual(members("c/0.tar"), want)
        libshard.export(both.where(label=2), "c/two-%d.tar", fields=["label"])
        self.assertEqual(set(members("c/two-0.tar")), {n for n, data in want.items() if data == b"2"})

    def test_nothing_is_half_written(self):
        make("half")
        ds = libshard.open("half")
        os.mkdir("h")
        real = libshard._export._png
        for at in (0, 9, 2 * N - 1):
            left = [at]

            def fails(*args):
                left[0] -= 1
                if left[0] < 0:
                    raise ZeroDivisionError("here")
                return real(*args)

            with unittest.mock.patch("libshard._export._png", fails), self.assertRaises(ZeroDivisionError):
                libshard.export(ds, "h/%d.tar", shard_bytes=30000)
            self.assertEqual(os.listdir("h"), [])
        with open("h/1.tar", "w"):
            pass
        with self.assertRaisesRegex(libshard.ExistsError, "h/1.tar: is there already, and nothing was written"):
            libshard.export(ds, "h/%d.tar", shard_bytes=30000)
        self.assertEqual(os.listdir("h"), ["1.tar"])
        with self.assertRaises(libshard.NotFoundError):
            libshard.export(ds, "no/such/%d.tar")
        os.mkdir("both")
        self.assertEqual(libshard.export(ds, "both/a-%d.tar"), ["both/classes.txt", "both/a-0.tar"])
        self.assertEqual(libshard.export(ds, "both/b-%d.tar"), ["both/b-0.tar"])  # with the same names of classes
        make("others", classes=["x", "y", "z"])
        with self.assertRaisesRegex(libshard.ExistsError, "both/classes.txt"):
            libshard.export("others", "both/c-%d.tar")

    def test_a_second_label_is_not_lost(self):
        label = {name: libshard.Field(name, "int64", (), semantic="label") for name in ("fine", "coarse")}
        with libshard.Writer("labels", [*label.values(), libshard.Field("n", "uint8", ())], classes=["a", "b", "c"]) as w:
            w.write({"fine": 1, "coarse": 2, "n": 7})
        os.mkdir("l")
        libshard.export("labels", "l/%d.tar")
        self.assertEqual(members("l/0.tar"), {"000000000.cls": b"1", "000000000.json": b'{"coarse": 2, "n": 7}'})
        with tarfile.open("l/0.tar") as tar:
            self.assertEqual(len(tar.getnames()), 2)
        libshard.export("labels", "l/coarse-%d.tar", fields=["coarse"])
        self.assertEqual(members("l/coarse-0.tar"), {"000000000.cls": b"2"})

    def test_a_name_that_readers_pass_over_is_refused(self):
        os.mkdir("names")
        for i, key in enumerate(("a/", "../a", "a/../../b", "__a__/b", "/__a__/b/c", "__MACOSX/a")):
            make(f"odd{i}", keys=lambda n: key if n == 3 else f"k{n}")
            with self.assertRaisesRegex(libshard.ArgumentError, f"record 3 has the key '{key}', and readers of tars pass"):
                libshard.export(f"odd{i}", "names/%d.tar")
        for i, key in enumerate(("a/.b", "..a/b", "__a__", "b/__a__/c", "__a/b", "__MACOSX")):  # the control
            make(f"even{i}", keys=lambda n: key if n == 3 else f"k{n}")
            libshard.export(f"even{i}", f"names/even{i}-%d.tar")
            shardpack("images", f"names/even{i}-0.tar", "-o", f"even-again{i}", "--order", "source",
                      "--classes", "names/classes.txt", *SAME)  # fmt: skip
            self.assertEqual(len(libshard.open(f"even-again{i}")), N)
        for i, names in enumerate((["a\n", "b"], ["a", "b\r"], ["\ufeffa", "b"])):
            make(f"classes{i}", classes=[*names, "c"])
            with self.assertRaisesRegex(libshard.ArgumentError, "so classes.txt cannot list it; export to Parquet"):
                libshard.export(f"classes{i}", "names/c-%d.tar")

    def test_a_full_disk_leaves_nothing(self):
        make("full")
        os.mkdir("f")
        for most, shard_bytes in ((20000, 1 << 30), (12000, 9000)):
            with files_of_at_most(most), self.assertRaisesRegex(libshard.StorageError, r"^f/\d.tar: File too large$") as caught:
                libshard.export("full", "f/%d.tar", shard_bytes=shard_bytes)
            self.assertEqual((caught.exception.errno, os.listdir("f")), (errno.EFBIG, []))
        libshard.export("full", "f/%d.tar")  # the control
        self.assertEqual(sorted(os.listdir("f")), ["0.tar", "classes.txt"])

    def test_what_a_killed_export_left_is_not_in_the_way(self):
        make("again1")
        os.mkdir("killed")
        child = os.fork()
        if child == 0:
            libshard.export("again1", "killed/%d.tar", progress=lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        self.assertEqual(os.waitpid(child, 0)[1], signal.SIGKILL)
        left = os.listdir("killed")
        self.assertEqual([name.endswith(".part") for name in left], [True] * 2)
        with unittest.mock.patch("os.getpid", lambda: child):  # as in another container
            self.assertEqual(libshard.export("again1", "killed/%d.tar"), ["killed/classes.txt", "killed/0.tar"])
        self.assertEqual(set(os.listdir("killed")), {*left, "classes.txt", "0.tar"})

    def test_what_cannot_be_is_refused(self):
        make("twins", keys=lambda i: f"a/{i // 2}.{'jpg' if i % 2 else 'png'}")
        os.mkdir("r")
        with self.assertRaisesRegex(libshard.ArgumentError, "records 0 and 1 would both be sample 'a/0' of r/0.tar"):
            libshard.export("twins", "r/%d.tar")
        for out in ("r/x.tar", "r/%d-%d.tar", "r/%s.tar", "r/%d.zip", "r/50%-%d.tar"):
            with self.assertRaisesRegex(libshard.ArgumentError, "must be a name of tars with one place"):
                libshard.export("twins", out)
        for fields, words in ((["no"], "'no' is not a field"), (["name_length"], "is not a field that is"), ([], "none is named")):
            with self.assertRaisesRegex(libshard.ArgumentError, words):
                libshard.export("twins", "r/%d.tar", fields=fields)
        with self.assertRaisesRegex(libshard.ArgumentError, "endings at most: 'a/0.png' and 'a/0.jpg'"):
            libshard.export("twins", "r/%d.tar")
        with libshard.Loader("twins", 4) as loader, self.assertRaisesRegex(TypeError, "give it the Loader's .dataset$"):
            libshard.export(loader, "r/%d.tar")
        with libshard.Writer("digits", {"label": "int64"}, classes=["1", "0"]) as w:
            w.write({"label": 1})
        with self.assertRaisesRegex(libshard.ArgumentError, "class 0 is called '1', so shardpack would take the numbers"):
            libshard.export("digits", "r/%d.tar")
        hidden = dict.fromkeys(("pyarrow", "pandas"))
        with unittest.mock.patch.dict("sys.modules", hidden):
            ds = libshard.open("twins")
            with self.assertRaisesRegex(ImportError, "needs pyarrow, which is not installed: pip install pyarrow"):
                libshard.export(ds, "r/x.parquet")
            with self.assertRaisesRegex(ImportError, "needs pyarrow"):
                ds.to_arrow()
            with self.assertRaisesRegex(ImportError, "needs pandas"):
                ds.to_pandas()
        self.assertEqual(os.listdir("r"), [])


if __name__ == "__main__":
    unittest.main()
