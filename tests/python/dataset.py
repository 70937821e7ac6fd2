# SPDX-License-Identifier: Apache-2.0
"""Datasets: records by number, slice and index; descriptions, damage, closing, other processes."""

import array
import copy
import gc
import multiprocessing
import os
import pickle
import re
import shutil
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.environ["ROOT"], "format"))

import data
import libshard
import numpy as np
import shardfmt


def open_in_child(ds, queue):
    queue.put((len(ds), ds[3]["image"].tobytes(), ds.path))


class Records(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.want = data.pack_images("plain", 100, "--shard-records", "30")
        data.shardpack("raw", "plain.bin", "--schema", "image:u8[40,40,3],label:i64", "-o", "packed",
                       "--order", "source", "--shard-records", "30", "--compress", "lz4")  # fmt: skip
        cls.plain, cls.packed = libshard.open("plain"), libshard.open("packed")

    def check(self, got, want):
        self.assertEqual(list(got), ["image", "label"])
        self.assertEqual(got["image"].shape, want["image"].shape)
        self.assertEqual(got["image"].tobytes(), want["image"].tobytes())
        labels = got["label"] if isinstance(got["label"], int) else got["label"].tolist()
        self.assertEqual(labels, want["label"].tolist())

    def test_a_number_is_looked_up_without_the_lines_of_all_shards(self):
        """len() and ds[i] once read each line of the manifest again, so they took longer for each shard."""
        times = {}
        for shards in (1, 400):
            ds = libshard.pack({"x": np.arange(400)}, None, f"shards{shards}", shard_records=400 // shards)
            ds[0]["x"]
            begin = time.thread_time()  # of this thread, so other programs do not count
            for i in range(20000):
                len(ds)
            times[shards] = time.thread_time() - begin
        self.assertLess(times[400], 20 * times[1], times)

    def test_each_record(self):
        for ds in (self.plain, self.packed):
            self.assertEqual(len(ds), 100)
            for i in range(-100, 100):
                self.check(ds[i], self.want[i])
            self.assertEqual([r["label"] for r in ds], self.want["label"].tolist())
            self.check(ds[np.int64(7)], self.want[7])

    def test_views_lie_in_the_map_of_their_shard(self):
        for i, shard in ((0, 0), (29, 0), (30, 1), (99, 3)):
            self.assertTrue(data.file_at(self.plain[i]["image"].data_ptr).endswith(f"plain/0000{shard}.shard"))
        self.assertTrue(data.file_at(self.plain[31:59]["image"].data_ptr).endswith("plain/00001.shard"))
        self.assertEqual(self.plain[31:59:2]["image"].data_ptr, self.plain[31]["image"].data_ptr)
        self.assertFalse((data.file_at(self.packed[3]["image"].data_ptr) or "").endswith(".shard"))
        self.assertFalse((data.file_at(self.plain[29:31]["image"].data_ptr) or "").endswith(".shard"))

    def test_slices(self):
        keys = [
            slice(None), slice(3, 17), slice(28, 32), slice(17, 3), slice(99, None), slice(None, None, -1),
            slice(59, 29, -7), slice(60, 29, -7), slice(0, 100, 33), slice(-5, None), slice(1000, 2000),
            slice(30, 60), slice(29, 29), slice(7, None, 1 << 62), slice(None, None, -(1 << 62)),
        ]  # fmt: skip
        for ds in (self.plain, self.packed):
            for key in keys:
                self.check(ds[key], self.want[key])

    def test_indices(self):
        rng = np.random.default_rng(3)
        for ds in (self.plain, self.packed):
            for key in (
                [],
                [5],
                [0, 99, 50, 50, -1],
                range(10, 90, 7),
                rng.integers(-100, 100, 300),
                np.array([4, 2], "u1"),
                (1, 2),
            ):
                self.check(ds[key], self.want[np.asarray(list(key), dtype=int)])

    def test_numbers_in_a_buffer_are_those_of_a_list(self):
        """An array's numbers are read where they lie, and those of a list one by one."""
        rng = np.random.default_rng(4)
        for ds in (self.plain, self.packed):
            for dtype in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "q", ">i8", "intp"):
                low = 0 if dtype[0] == "u" else -100
                for numbers in (rng.integers(low, 100, 700).astype(dtype), np.zeros(0, dtype)):
                    for key in (numbers, numbers[::-3], memoryview(numbers) if dtype[0] != ">" else numbers):
                        self.check(ds[key], self.want[list(map(int, key))])
                        self.assertEqual(ds[key]["label"].tolist(), ds[list(map(int, key))]["label"].tolist())
            self.check(ds[array.array("h", [5, -1])], self.want[[5, -1]])
            self.check(ds[bytearray([5, 99])], self.want[[5, 99]])
            self.check(ds[ds[3:5]["label"]], self.want[self.want["label"][3:5]])
            mask = rng.random(200) < 0.5
            for key in (mask[:100], mask[::2], mask[99::-1], mask[:100].tolist(), memoryview(mask[:100])):
                self.check(ds[key], self.want[np.asarray(key)])
            for dtype, wrong, text in (
                ("i8", 100, "100;"),
                ("i8", -101, "-101;"),
                ("i1", -128, "-128;"),
                ("u1", 100, "100;"),
                ("u8", 1 << 63, "of such a number;"),
                ("u8", (1 << 64) - 1, "of such a number;"),  # not -1
                ("i8", -(1 << 63), "-9223372036854775808;"),
            ):
                key = np.array([0, wrong, 1], dtype)
                for numbers in (key, key.tolist()):
                    with self.assertRaisesRegex(IndexError, f"there is no record {text} {re.escape(ds.path)} has 100"):
                        ds[numbers]
            hidden = np.ma.array([5, 6], mask=[False, True])
            self.check(ds[hidden[:1]], self.want[[5]])
            for wrong in (
                np.zeros((2, 2), int),
                np.zeros(3),
                np.zeros(3, complex),
                np.zeros((1, 100), bool),
                hidden,
                np.ma.array(mask[:100], mask=mask[:100]),
                *(np.ones(3, int).astype(f"{kind}[{unit}]") for kind in ("M8", "m8") for unit in ("s", "ns")),
            ):
                with self.subTest(wrong=wrong), self.assertRaises((TypeError, ValueError)):
                    ds[wrong]

    def test_a_series_is_read_in_its_order_whatever_its_labels(self):
        class Series:  # as of pandas: series[0] is the item with the label 0
            def __init__(self, values, labels):
                self.values, self.labels = values, labels

            def __len__(self):
                return len(self.values)

            def __getitem__(self, label):
                return self.values[self.labels.index(label)]

            def tolist(self):
                return list(self.values)

        for ds in (self.plain, self.packed):
            self.check(ds[Series([10, 20, 30], [2, 0, 1])], self.want[[10, 20, 30]])
            self.check(ds[Series([10, 20, 30], ["a", "b", "c"])], self.want[[10, 20, 30]])
            mask = [True] * 3 + [False] * 97
            self.check(ds[Series(mask, list(range(100))[::-1])], self.want[:3])

    def test_what_is_no_index(self):
        for ds in (self.plain, self.packed):
            for key in (100, -101, [1, 100], 1 << 63, [1 << 80]):
                with self.assertRaises(IndexError):
                    ds[key]
            with self.assertRaisesRegex(IndexError, rf"record 100; {re.escape(ds.path)} has 100$"):
                ds[100]
            for key in ("image", "", b"", b"abc", True, 1.5, None, [1.5], ["a"], {1: 2}, {1, 2}):
                with self.assertRaises((TypeError, KeyError)):
                    ds[key]
            for mask in ([True, False], (True,), np.zeros(100, bool), self.want["label"] == 3, [np.True_],
                         ds[:]["label"] == 3):  # fmt: skip
                if len(mask) != 100:
                    with self.assertRaisesRegex(libshard.ArgumentError, "the mask has .*; must have one for each of 100"):
                        ds[mask]
                with self.assertRaisesRegex(libshard.ArgumentError, "flatnonzero"):
                    ds.show(mask)

    def test_a_tensor_is_no_sequence_but_has_a_list(self):
        class Tensor:
            def __init__(self, numbers):
                self.numbers = numbers

            def __len__(self):
                return len(self.numbers)

            def __index__(self):
                raise TypeError

            def tolist(self):
                return self.numbers

        for ds in (self.plain, self.packed):
            self.check(ds[Tensor([3, 1])], self.want[[3, 1]])
            self.assertEqual(ds[Tensor(7)]["label"], self.want["label"][7])
            self.check(ds[Tensor([True, False] * 50)], self.want[::2])
            with self.assertRaisesRegex(libshard.ArgumentError, "the mask has 2 bools"):
                ds[Tensor([True, False])]
            for wrong in (Tensor([[1, 2]]), Tensor("image"), Tensor(True)):
                with self.assertRaises(TypeError):
                    ds[wrong]

    def test_an_object_with_a_hostile_index(self):
        class Closes:
            def __index__(self):
                ds.close()
                return 5

        ds = libshard.open("plain")
        try:
            ds[Closes()]
        except libshard.ClosedError:
            pass

        class Shrinks(list):
            def __getitem__(self, i):
                self.clear()
                return 1

        self.check(self.plain[Shrinks([1, 2, 3])], self.want[[1, 1, 1]])

    def test_threads_read_at_once(self):
        wrong = []

        def read(seed):
            rng = np.random.default_rng(seed)
            ds = (self.plain, self.packed)[seed % 2]
            for i in rng.integers(0, 100, 300):
                if ds[int(i)]["image"].tobytes() != self.want[i]["image"].tobytes():
                    wrong.append(i)
                if ds[[int(i), 5]]["label"].tolist() != [int(self.want[i]["label"]), 0]:
                    wrong.append(i)

        threads = [threading.Thread(target=read, args=(s,)) for s in range(6)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(wrong, [])


class WholeImages(unittest.TestCase):
    """Images with sizes of their own, of so many pixels that none of them is resized."""

    SIZES = [(8, 8), (4, 16), (16, 4), (2, 32), (32, 2), (6, 10), (10, 6)]

    @classmethod
    def setUpClass(cls):
        os.makedirs("ppm/a")
        rng = np.random.default_rng(4)
        cls.want = [rng.integers(0, 256, (*size, 3), np.uint8) for size in cls.SIZES]
        for i, image in enumerate(cls.want):
            with open(f"ppm/a/{i}.ppm", "wb") as f:
                f.write(b"P6 %d %d 255\n" % image.shape[1::-1] + image.tobytes())
        for out, codec in (("whole", "none"), ("whole.lz4", "lz4")):
            data.shardpack("images", "ppm", "-o", out, "--fit", "area", "--resize", 8, "--order", "source",
                           "--compress", codec)  # fmt: skip

    def test_a_record_has_the_shape_of_its_image(self):
        for ds in map(libshard.open, ("whole", "whole.lz4")):
            for i, want in enumerate(self.want):
                record = ds[i]
                self.assertEqual(list(record), ["image", "image_size", "label"])
                self.assertEqual(record["image"].shape, want.shape)
                self.assertEqual(np.asarray(record["image"]).tolist(), want.tolist())
                self.assertEqual(record["image_size"].tolist(), [*want.shape[:2]])

    def test_several_lie_as_they_are_stored(self):
        ds = libshard.open("whole")
        for rows in (ds[:], ds[list(range(len(ds)))]):
            self.assertEqual(rows["image"].shape, (len(self.want), 64, 3))
            self.assertEqual(rows["image_size"].tolist(), [[*want.shape[:2]] for want in self.want])
            for row, length, want in zip(rows["image"], np.asarray(rows["image_length"]).ravel(), self.want):
                self.assertEqual(np.asarray(row)[:length].tolist(), want.reshape(-1, 3).tolist())
                self.assertFalse(np.asarray(row)[length:].any())

    def test_a_size_that_is_wrong_is_damage(self):
        for size, pixels in (([9, 8], 64), ([8, 7], 64), ([0, 8], 0), ([65, 1], 65), ([1 << 16, 1 << 16], 0),
                             ([65537, 4294311946], 10)):
            shutil.rmtree("wrong", ignore_errors=True)
            shutil.copytree("whole", "wrong")
            with open("wrong/00000.shard", "r+b") as f:
                file = f.read()
                at = file.index(np.array([64, 8, 8], "<u4").tobytes())
                f.seek(at)
                f.write(np.array([pixels, *size], "<u4").tobytes())
            ds = libshard.open("wrong", check="never")
            with self.assertRaisesRegex(libshard.CorruptError, "field image: height .* and width .*, but .* pixels"):
                ds[0]
            self.assertEqual(ds[1]["image"].shape, (4, 16, 3))


class Descriptions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from PIL import Image

        rng = np.random.default_rng(4)
        cls.pixels = {}
        for c, name in enumerate(("ant", "bee", "élan")):
            os.makedirs(f"photos/{name}")
            for i in range(2 + c):
                a = rng.integers(0, 256, (24, 24, 3), np.uint8)
                Image.fromarray(a).save(f"photos/{name}/{i}.png")
                cls.pixels[f"{name}/{i}.png"] = a
        data.shardpack("images", "photos", "-o", "described", "--crop", "24")
        cls.ds = libshard.open("described")

    def test_schema(self):
        s = self.ds.schema
        self.assertEqual(str(s), "image: uint8[24,24,3]\nlabel: int64")
        self.assertEqual(s.names, ["image", "label"])
        f = s["image"]
        self.assertEqual((f.dtype, f.shape, f.kind, f.layout, f.semantic, f.group, f.bytes),
                         ("uint8", (24, 24, 3), "tensor", "hwc", "image", 0, 1728))  # fmt: skip
        self.assertEqual((s[1].semantic, s[1].shape), ("label", ()))
        with self.assertRaisesRegex(KeyError, "no field 'x'; there are image, label"):
            s["x"]
        self.assertTrue("image" in s and f in s and s[1] in s)
        self.assertFalse("x" in s or "" in s or "Image" in s or None in s or 0 in s)

    def test_classes_and_keys(self):
        self.assertEqual(self.ds.classes, ["ant", "bee", "élan"])
        for i, r in enumerate(self.ds):
            key = self.ds.key(i)
            self.assertEqual(self.ds.classes[r["label"]], key.split("/")[0])
            self.assertEqual(r["image"].tobytes(), self.pixels[key].tobytes())
        self.assertEqual(len({self.ds.key(i) for i in range(9)}), 9)
        with self.assertRaises(IndexError):
            self.ds.key(9)

    def test_images_without_a_label(self):
        data.shardpack("images", "photos", "-o", "unlabelled", "--crop", "24", "--no-label")
        ds = libshard.open("unlabelled")
        self.assertEqual((ds.schema.names, ds.classes), (["image"], []))
        for i, r in enumerate(ds):
            self.assertEqual(list(r), ["image"])
            self.assertEqual(r["image"].tobytes(), self.pixels[ds.key(i)].tobytes())
        with libshard.Loader(ds, batch_size=4) as loader:
            batches = list(loader)
        self.assertEqual([list(b) for b in batches], 3 * [["image", "index", "flags", "valid"]])
        seen = {ds.key(int(i)): x.tobytes() for b in batches for i, x in zip(b["index"], b["image"])}
        self.assertEqual(seen, {key: a.tobytes() for key, a in self.pixels.items()})

    def test_stats_are_those_of_numpy(self):
        all_pixels = np.stack(list(self.pixels.values())).reshape(-1, 3).astype(np.float64)
        stats = self.ds.stats
        self.assertEqual(stats.class_counts, {"ant": 2, "bee": 3, "élan": 4})
        for c, channel in enumerate(stats.channels["image"]):
            self.assertEqual(channel.count, len(all_pixels))
            self.assertEqual(channel.sum, int(all_pixels[:, c].sum()))
            self.assertAlmostEqual(channel.mean, all_pixels[:, c].mean(), places=10)
            self.assertAlmostEqual(channel.std, all_pixels[:, c].std(), places=10)

    def test_more_records_than_memory_has_room_for(self):
        lines = [line for line in self.ds.manifest().decode().splitlines() if line.split()[0] not in ("stat", "end")]
        at = next(i for i, line in enumerate(lines) if line.startswith("shard 0 "))
        lines[at:] = [re.sub(r" bytes \d+ records \d+", f" bytes {1 << 43} records {1 << 40}", lines[at])]
        lines[1:3] = [f"records {1 << 40}", "shards 1"]
        os.mkdir("huge")
        with open("huge/dataset.manifest", "wb") as f:
            f.write(shardfmt.seal_manifest(lines))
        huge = libshard.open("huge")
        self.assertEqual(len(huge), 1 << 40)
        needs = r"field 'label' of 1099511627776 records needs .* memory.*read some of them, as ds\[0:1000\]\['label'\]|names it"
        for call, words in (
            (lambda: huge.column("label"), needs),
            (lambda: libshard.balanced(huge), needs),
            (lambda: huge.where(label=lambda x: x > 2), needs),
            (lambda: huge.where(label=2), "no memory|names it"),
            (lambda: huge.select([1, 2]), "no memory|names it"),
            (lambda: huge[:], "no memory|names it"),
        ):
            with self.assertRaisesRegex(libshard.Error, words):
                call()

    def test_names(self):
        self.assertEqual(self.ds.path, "described")
        self.assertIn(f"end {self.ds.id}", self.ds.manifest().decode())
        self.assertEqual(self.ds.shard_count, 1)
        self.assertEqual(self.ds.nbytes, os.path.getsize("described/00000.shard"))
        self.assertEqual(
            repr(self.ds),
            "<libshard.Dataset 'described': 9 records of (image: uint8[24,24,3], label: int64), 1 shard>",
        )

    def test_paths_of_any_kind(self):
        import pathlib

        for path in (pathlib.Path("described"), b"described", "./described/"):
            self.assertEqual(libshard.open(path).id, self.ds.id)


class Damage(unittest.TestCase):
    def setUp(self):
        shutil.rmtree("damaged", ignore_errors=True)
        self.want = data.pack_images("damaged", 40, "--shard-records", "20")
        with open("damaged/00001.shard", "r+b") as f:
            at = f.read().index(self.want[25]["image"].tobytes()) + 100
            f.seek(at)
            byte = f.read(1)[0]
            f.seek(at)
            f.write(bytes([byte ^ 1]))

    def test_a_damaged_record_is_never_given(self):
        ds = libshard.open("damaged")
        self.assertEqual(ds[24]["image"].tobytes(), self.want[24]["image"].tobytes())
        for key in (25, slice(20, 30), [0, 25], slice(39, 19, -1)):
            with self.assertRaisesRegex(libshard.CorruptError, "00001.shard"):
                np.asarray(ds[key]["image"])
        self.assertEqual(libshard.open("damaged", check="never")[25]["label"], 0)
        choices = "check='x'; must be one of 'device', 'always', 'never', 'first'"
        with self.assertRaisesRegex(libshard.ArgumentError, choices):
            libshard.open("damaged", check="x")

    def test_each_way_to_look_into_a_promised_array_finds_the_damage(self):
        for name, use in {
            "data_ptr": lambda a: a.data_ptr, "interface": lambda a: a.__array_interface__, "buffer": memoryview,
            "dlpack": lambda a: a.__dlpack__(), "__array__": lambda a: a.__array__(), "numpy": lambda a: a.numpy(),
            "asarray": np.asarray, "copy": lambda a: a.copy(), "tobytes": lambda a: a.tobytes(), "item": lambda a: a[0],
            "tolist": lambda a: a.tolist(), "slice": lambda a: a[1:3], "axes": lambda a: a[0, 0], "iter": list,
            "compare": lambda a: a == 1, "pickle": pickle.dumps, "deepcopy": copy.deepcopy,
        }.items():  # fmt: skip
            for key in (slice(25, 26), [25]):
                array = libshard.open("damaged")[key]["image"]
                self.assertEqual((array.shape, array.nbytes), ((1, 40, 40, 3), 4800))
                for _ in range(2):
                    with self.assertRaisesRegex((libshard.CorruptError, BufferError), "00001.shard", msg=name):
                        use(array)
    def test_what_is_not_looked_into_is_not_read(self):
        for key in (slice(None), slice(20, 40), [25, 0, 39]):
            rows = libshard.open("damaged")[key]
            self.assertEqual(rows["label"].tolist(), self.want[key]["label"].tolist())
            with self.assertRaisesRegex(libshard.CorruptError, "00001.shard"):
                rows["image"].tobytes()

    def test_labels_cost_no_images(self):
        samples = ({"image": np.zeros((100, 100, 12), np.uint8), "label": np.int64(i)} for i in range(300))
        ds = libshard.pack(samples, None, "costly", shard_records=50)
        self.assertEqual(ds.shard_count, 6)

        def resident():
            gc.collect()
            with open("/proc/self/statm") as f:
                return int(f.read().split()[1]) * 4096

        ds[:2]["label"].tolist()  # which opens a shard
        before = resident()
        labels = ds[:]["label"]
        self.assertEqual(labels.tolist(), [*range(300)])
        self.assertLess(resident() - before, 4 << 20)
        images = ds[:]["image"]
        images.tobytes()
        self.assertGreater(resident() - before, 30 << 20)  # the control: they are 36 MB

    def test_several_threads_may_look_at_once(self):
        ds = libshard.open("damaged", check="never")
        for key in (slice(None), slice(0, 20)):
            rows = ds[key]
            found, start = [], threading.Barrier(8)

            def look(rows=rows, found=found, start=start):
                start.wait()
                found.append((rows["label"].tolist(), rows["image"].tobytes()))

            threads = [threading.Thread(target=look) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(len(found), 8)
            self.assertEqual({image for _, image in found}, {rows["image"].tobytes()})

    def test_verify_tells(self):
        ds = libshard.open("damaged")
        with self.assertRaisesRegex(libshard.CorruptError, "00001.shard") as caught:
            ds.verify()
        self.assertEqual(caught.exception.report.problem_count, 1)
        self.assertEqual(caught.exception.status, "corrupt")
        report = ds.verify(strict=False)
        self.assertFalse(report.ok)
        self.assertEqual(report.problems[0][0], "corrupt")
        self.assertTrue(libshard.open("damaged").verify(strict=False, threads=1).record_count, 40)

    def test_verify_of_a_sound_one(self):
        data.pack_images("sound", 40)
        seen = []
        report = libshard.open("sound").verify(progress=lambda done, total: seen.append((done, total)), sha256=True)
        self.assertTrue(report.ok)
        self.assertEqual((report.record_count, report.shard_count), (40, 1))
        self.assertTrue(seen)
        self.assertEqual(seen[-1][0], seen[-1][1])

    def test_what_a_callback_raises_comes_out(self):
        def stop(done, total):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            libshard.open("damaged").verify(progress=stop)

    def test_a_missing_shard(self):
        os.unlink("damaged/00001.shard")
        ds = libshard.open("damaged")
        ds[0]
        with self.assertRaisesRegex(libshard.MismatchError, "00001.shard"):
            ds[20]

    def test_an_id_that_is_expected(self):
        name = libshard.open("damaged").id
        with libshard.open("damaged", id=name.upper()) as ds:
            self.assertEqual((ds.id, pickle.loads(pickle.dumps(ds)).id), (name, name))
        with self.assertRaisesRegex(libshard.MismatchError, name):
            libshard.open("damaged", id="0" * 64)
        for bad in ("", name[1:], name + "0", "x" * 64):
            with self.subTest(bad), self.assertRaisesRegex(ValueError, "64 hex digits"):
                libshard.open("damaged", id=bad)

    def test_no_dataset(self):
        for name in ("dataset.manifest", "00000.shard"):
            with self.assertRaisesRegex(libshard.StorageError, "a dataset is opened by its folder"):
                libshard.open(os.path.join("damaged", name))
        with self.assertRaisesRegex(FileNotFoundError, "nowhere") as caught:
            libshard.open("nowhere")
        self.assertIsInstance(caught.exception, libshard.NotFoundError)
        self.assertEqual(caught.exception.errno, 2)
        os.makedirs("jpegs/cats")
        os.makedirs("many/train")
        os.makedirs("begun/.shardpack")
        shutil.copy("damaged/dataset.manifest", "many/train")
        for path, words in (
            ("nowhere", "; there is no such folder"),
            ("s3://bucket/train", "; datasets are folders of this machine: fetch it first"),
            ("~/train", "; '~' does not stand for a folder here: give os.path.expanduser"),
            ("jpegs", "; this folder is not a dataset: shardpack or libshard.pack.. makes one"),
            (b"jpegs", "; this folder is not a dataset"),
            ("begun", "; this dataset is unfinished: run the same shardpack command again, or shardpack build and"),
            ("many", "; the folder holds datasets, such as 'train': open one of them"),
        ):
            with self.assertRaisesRegex(libshard.NotFoundError, words) as caught:
                libshard.open(path)
            self.assertEqual(caught.exception.errno, 2)
        with open("damaged/dataset.manifest", "a") as f:
            f.write("x")
        with self.assertRaises(libshard.CorruptError):
            libshard.open("damaged")
        for path in ("", "a\0b", 5, None):
            with self.assertRaises((libshard.Error, ValueError, TypeError)):
                libshard.open(path)


class Lives(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.want = data.pack_images("lives", 20)

    def test_a_closed_one_says_so(self):
        with libshard.open("lives") as ds:
            view = ds[3]["image"]
        self.assertTrue(ds.closed)
        for call in (
            lambda: ds[0],
            lambda: len(ds),
            lambda: ds.key(0),
            lambda: ds.verify(),
            lambda: ds.manifest(),
            lambda: ds.classes,
            lambda: libshard.Loader(ds, 4),
        ):
            with self.assertRaisesRegex(libshard.ClosedError, "this dataset is closed; open it again"):
                call()
        self.assertEqual(repr(ds), "<libshard.Dataset 'lives', closed>")
        ds.close()
        del ds
        gc.collect()
        self.assertEqual(view.tobytes(), self.want[3]["image"].tobytes())

    def test_the_file_is_let_go_with_the_last_view(self):
        ds = libshard.open("lives")
        view = ds[3]["image"]
        address = view.data_ptr
        del ds
        gc.collect()
        self.assertTrue(data.file_at(address).endswith("lives/00000.shard"))
        del view
        self.assertIsNone(data.file_at(address))

    def test_pickles_open_the_same_again(self):
        ds = pickle.loads(pickle.dumps(libshard.open("lives", check="always")))
        self.assertEqual(ds[3]["image"].tobytes(), self.want[3]["image"].tobytes())
        text = pickle.dumps(ds)
        shutil.rmtree("lives2", ignore_errors=True)
        os.rename("lives", "lives2")
        try:
            with self.assertRaises(libshard.NotFoundError):
                pickle.loads(text)
            data.pack_images("lives", 21)
            with self.assertRaisesRegex(libshard.MismatchError, "another dataset"):
                pickle.loads(text)
        finally:
            shutil.rmtree("lives")
            os.rename("lives2", "lives")

    def test_exceptions_pickle(self):
        for e in (
            libshard.StorageError("m", "I/O error", 5),
            libshard.CorruptError("m", "corrupt"),
            libshard.NotFoundError("m", "s", 2),
        ):
            back = pickle.loads(pickle.dumps(e))
            self.assertEqual((type(back), str(back), back.status, back.os_code), (type(e), str(e), e.status, e.os_code))

    def test_other_processes(self):
        ds = libshard.open("lives")
        ds[3]
        for way in ("fork", "spawn"):
            with self.subTest(way):
                context = multiprocessing.get_context(way)
                queue = context.Queue()
                child = context.Process(target=open_in_child, args=(ds, queue))
                child.start()
                self.assertEqual(queue.get(timeout=60), (20, self.want[3]["image"].tobytes(), "lives"))
                child.join()
                self.assertEqual(child.exitcode, 0)


if __name__ == "__main__":
    unittest.main()
