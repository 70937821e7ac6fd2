# SPDX-License-Identifier: Apache-2.0
"""Whole images: batches with an image of its own size in each row, as they lie and transformed."""

import copy
import dataclasses
import pickle
import unittest

import libshard
import numpy as np

RECORDS, MOST = 37, 1600


def size_of(i):
    return 1 + i * 5 % 40, 1 + i * 7 % 40


def image_of(i):
    height, width = size_of(i)
    return np.random.default_rng(i).integers(0, 256, (height, width, 3), np.uint8)


def write(path):
    """Fields as shardpack has them with --fit area."""
    schema = [
        libshard.Field("image", "uint8", (MOST, 3), "ragged", "hwc", "image"),
        libshard.Field("image_size", "uint32", (2,)),
        libshard.Field("label", "int64", (), "tensor", "none", "label"),
    ]
    with libshard.Writer(path, schema, classes=["a"]) as writer:
        for i in range(RECORDS):
            pixels = image_of(i).reshape(-1, 3)
            size = np.array(size_of(i), np.uint32)
            writer.write({"image": pixels, "image_size": size, "label": 0})


class Whole(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        write("whole")
        cls.ds = libshard.open("whole")

    def test_views(self):
        seen = []
        for batch in libshard.Loader(self.ds, 8, seed=3):
            self.assertEqual(batch["image"].shape[1:], (MOST, 3))
            images = batch.images()
            self.assertEqual(len(images), len(batch["image"]))
            for image, i in zip(images, np.asarray(batch.index).tolist()):
                np.testing.assert_array_equal(np.asarray(image), image_of(i))
                self.assertEqual(image.shape, (*size_of(i), 3))
                seen.append(i)
            first = np.asarray(batch["image"])
            self.assertTrue(np.shares_memory(np.asarray(batch.images("image")[0]), first))
        self.assertEqual(sorted(seen), list(range(RECORDS)))

    def test_statistics(self):
        """Zeros behind the images would count, so there are none; an error says what to do."""
        for ds in (self.ds, (self.ds + self.ds).dataset):
            self.assertEqual(ds.stats.channels, {})
            with self.assertRaisesRegex(KeyError, "whole images.*zeros.*`shardcat stats .*whole`.*0 to 255"):
                ds.stats.channels["image"]
            with self.assertRaisesRegex(KeyError, "'label': sums are recorded of images of uint8 that all have one size"):
                ds.stats.channels["label"]
            with self.assertRaisesRegex(KeyError, "no field 'x'; there are image, "):
                ds.stats.channels["x"]
        copies = (copy.deepcopy(self.ds.stats), pickle.loads(pickle.dumps(self.ds.stats)))
        self.assertEqual([dataclasses.asdict(s) for s in copies], [{"channels": {}, "class_counts": {"a": RECORDS}}] * 2)
        self.assertIsNone(self.ds.stats.channels.get("image"))

    def test_some_fields(self):
        """The images bring their sizes."""
        for batch in libshard.Loader(self.ds, 8, fields=["image"], copy=True):
            self.assertNotIn("label", batch)
            for image, i in zip(batch.images(), np.asarray(batch.index).tolist()):
                np.testing.assert_array_equal(np.asarray(image), image_of(i))

    def test_transformed(self):
        """The largest squares, each as large as the result: nothing is resized."""
        augment = libshard.Transform(crop="random-resized", size=8, layout="chw", dtype="f16", flip=0.5)
        for batch in libshard.Loader(self.ds, 8, seed=3, transform=augment):
            self.assertEqual(batch["image"].shape[1:], (3, 8, 8))
            self.assertEqual(batch["image_size"].tolist(), [list(size_of(i)) for i in np.asarray(batch.index).tolist()])
            with self.assertRaisesRegex(libshard.ArgumentError, "no field has whole images"):
                batch.images()

    def test_crop(self):
        """Of one pixel: the only crop that lies within every image."""
        for batch in libshard.Loader(self.ds, 8, transform=libshard.Transform(size=1)):
            for out, i in zip(np.asarray(batch["image"]), np.asarray(batch.index).tolist()):
                height, width = size_of(i)
                want = image_of(i)[round((height - 1) / 2), round((width - 1) / 2)]
                np.testing.assert_array_equal(out[0, 0], want)
        with self.assertRaisesRegex(libshard.ArgumentError, r"record \d+ has an image of .* cannot be cropped"):
            list(libshard.Loader(self.ds, 8, transform=libshard.Transform(size=30)))
        with self.assertRaisesRegex(libshard.ArgumentError, "the images differ in size; name the height"):
            libshard.Loader(self.ds, 8, transform=libshard.Transform(crop="random-resized"))

    def test_refused(self):
        batch = next(iter(libshard.Loader(self.ds, 8, copy=True)))
        with self.assertRaisesRegex(libshard.ArgumentError, "'label' has no whole images in this batch"):
            batch.images("label")
        with self.assertRaisesRegex(libshard.ArgumentError, "there is no such field"):
            batch.images("picture")
        wrong = libshard.Batch({**batch, "image_size": np.full((8, 2), 41)})
        with self.assertRaisesRegex(libshard.ArgumentError, "41 x 41 pixels do not lie in"):
            wrong.images()

    def test_masked(self):
        write("damaged")
        with open("damaged/00000.shard", "r+b") as file:
            at = file.read().index(image_of(0).tobytes())
            file.seek(at)
            file.write(bytes([image_of(0).flat[0] ^ 1]))
        (batch,) = libshard.Loader("damaged", RECORDS, shuffle=False, on_corrupt="mask")
        self.assertEqual(batch.images()[0].shape, (0, 0, 3))
        self.assertEqual(batch.flags.tolist(), [libshard.MASKED] + [0] * (RECORDS - 1))

    def test_reshape(self):
        batch = next(iter(libshard.Loader(self.ds, 8, copy=True)))
        array = batch["image_size"]
        self.assertEqual(array._reshape((16,)).tolist(), [x for row in array.tolist() for x in row])
        self.assertEqual(array._reshape((2, 4, 2)).shape, (2, 4, 2))
        for shape in ((17,), (-1,), (2**62, 8), ()):
            with self.assertRaises(libshard.ArgumentError):
                array._reshape(shape)


if __name__ == "__main__":
    unittest.main()
