# SPDX-License-Identifier: Apache-2.0
"""Transforms by the threads of a loader: pixels against NumPy's, draws against each other."""

import os
import unittest

import data
import libshard
import numpy as np

RECORDS, SIDE = 103, 40


def mirrored(images, out):
    """Of each image, whether `out` is its mirror image: None if it is neither."""
    return [
        False if (o == i).all() else True if (o == i[:, ::-1]).all() else None for i, o in zip(images, out)
    ]


class Transforms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.want = data.pack_images("images", RECORDS, "--shard-records", "40")["image"]
        cls.ds = libshard.open("images")

    def batches(self, transform, batch_size=16, **options):
        return libshard.Loader(self.ds, batch_size, seed=3, transform=transform, copy=True, **options)

    def test_center_crop(self):
        for batch in self.batches(libshard.Transform(size=(20, 30))):
            want = self.want[np.asarray(batch.index)][:, 10:30, 5:35]
            np.testing.assert_array_equal(np.asarray(batch["image"]), want)
            self.assertEqual(batch["image"].shape[1:], (20, 30, 3))
            self.assertEqual(len(batch["label"]), len(want))

    def test_flip(self):
        seen = []
        for batch in self.batches(libshard.Transform(flip=0.5)):
            flips = mirrored(self.want[np.asarray(batch.index)], np.asarray(batch["image"]))
            self.assertNotIn(None, flips)
            seen += flips
        self.assertTrue(25 < sum(seen) < 78, seen)

    def test_numbers(self):
        mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
        for dtype in ("f32", np.float16):
            augment = libshard.Transform(dtype=dtype, layout="chw", mean=mean, std=std)
            for batch in self.batches(augment):
                x = self.want[np.asarray(batch.index)].astype(np.float32) / np.float32(255)
                x = (x - np.array(mean, np.float32)) / np.array(std, np.float32)
                want = x.transpose(0, 3, 1, 2).astype(np.float16 if dtype is np.float16 else np.float32)
                np.testing.assert_array_equal(np.asarray(batch["image"]), want)

    def test_random_resized_crop(self):
        """Parts of the size of the result, so that nothing is resized, but all is drawn."""
        part = (0.25, 0.25)
        augment = libshard.Transform(crop="random-resized", size=20, area=part, ratio=(1.0, 1.0))
        for batch in self.batches(augment):
            for image, out in zip(self.want[np.asarray(batch.index)], np.asarray(batch["image"])):
                found = [
                    (y, x) for y in range(21) for x in range(21) if (image[y : y + 20, x : x + 20] == out).all()
                ]
                self.assertTrue(found)

    def test_views(self):
        """The first view is what one view alone is."""
        one = libshard.Transform(crop="random", size=24, flip=0.5, dtype="f16")
        two = libshard.Transform(crop="random", size=24, flip=0.5, dtype="f16", views=2)
        differ = 0
        for a, b in zip(self.batches(one), self.batches(two)):
            a, b = np.asarray(a["image"]), np.asarray(b["image"])
            self.assertEqual(b.shape, (len(a), 2, 24, 24, 3))
            np.testing.assert_array_equal(b[:, 0], a)
            differ += sum((x != y).any() for x, y in b)
        self.assertGreater(differ, 95)

    def test_resumed(self):
        """A job of three ranks goes on with the images that one rank would have had."""
        augment = libshard.Transform(crop="random-resized", size=16, flip=0.5)
        want, loader = {}, self.batches(augment, 10, shuffle="global")
        for step, batch in enumerate(loader):
            if step == 3:
                state = loader.state_dict()
            want.update({int(r): i for r, i in zip(np.asarray(batch.index), np.asarray(batch["image"])) if step > 3})
        seen = 0
        for rank in range(3):
            loader = self.batches(augment, 4, shuffle="global", rank=rank, world=3, tail="drop")
            loader.load_state_dict(state)
            for batch in loader:
                for r, image in zip(np.asarray(batch.index).tolist(), np.asarray(batch["image"])):
                    np.testing.assert_array_equal(image, want[r])
                    seen += 1
        self.assertEqual(seen, len(want) // 12 * 12)

    def test_arrays_lie_in_the_loader(self):
        loader = libshard.Loader(self.ds, 16, transform=libshard.Transform(dtype="f32"))
        batch = next(iter(loader))
        self.assertTrue(loader._core.lent(batch["image"]))
        self.assertEqual(batch["image"].data_ptr % 4096, 0)
        small = libshard.Loader(self.ds, 16, transform=libshard.Transform(size=4))
        self.assertFalse(small._core.lent(next(iter(small))["image"]))  # as small as labels: copied

    def test_mixture(self):
        seen, again = {}, {}
        for found, world, length in ((seen, 1, 64), (again, 2, 128)):  # positions count, in any world and epochs
            mixture = libshard.mix([self.ds, self.ds], [1, 1], epoch_records=length)
            for rank in range(world):
                augment = libshard.Transform(size=8, crop="random", flip=0.5)
                loader = libshard.Loader(mixture, 16, seed=3, transform=augment, copy=True, rank=rank, world=world)
                for _ in range(128 // length):
                    for batch in loader:
                        for row, image in enumerate(np.asarray(batch["image"])):
                            at = batch.epoch * length + batch.position + rank + row * world
                            found[at] = (batch.component.tolist()[row], batch.index.tolist()[row], image.tobytes())
        self.assertEqual(len(seen), 128)
        self.assertEqual(seen, again)

    def test_masks_and_boxes(self):
        """They follow: where their image was cut is found by looking at it."""
        rng, fields = np.random.default_rng(4), (
            libshard.Field("image", "uint8", (SIDE, SIDE, 3), layout="hwc", semantic="image"),
            libshard.Field("mask", "uint8", (SIDE, SIDE), semantic="mask"),
            libshard.Field("far", "uint16", (SIDE, SIDE), semantic="mask"),
            libshard.Field("boxes", "float32", (4, 4), kind="ragged", semantic="boxes"),
        )
        samples = []
        for i in range(30):
            image = rng.integers(0, 256, (SIDE, SIDE, 3), np.uint8)
            corners = np.sort(rng.integers(0, SIDE + 1, (i % 5, 2, 2)), 1).reshape(-1, 4).astype(np.float32)
            mask = rng.integers(0, 9, (SIDE, SIDE), np.uint8)
            samples.append({"image": image, "mask": mask, "far": mask * np.uint16(1000), "boxes": corners})
        ds = libshard.pack(samples, fields, "beside")
        for size, options in ((24, {"crop": "random"}), (40, {"crop": "random-resized", "area": (0.25, 0.25)})):
            scale = 1 if size == 24 else 2
            augment = libshard.Transform(size=size, flip=0.5, views=2, ratio=(1.0, 1.0), **options)
            seen = 0
            for batch in libshard.Loader(ds, 8, seed=9, transform=augment, copy=True):
                self.assertEqual(batch["mask"].shape[1:], (2, size, size))
                self.assertEqual(batch["boxes"].shape[1:], (2, 4, 4))
                arrays = {k: np.asarray(v) for k, v in batch.items()}
                for row, record in enumerate(np.asarray(batch.index)):
                    for view in range(2):
                        self.check_view({k: v[row] for k, v in arrays.items()}, view, samples[record], size, scale)
                        seen += 1
            self.assertEqual(seen, 60)
            plain = libshard.Loader(ds, 8, transform=augment, fields=["image"])
            self.assertEqual(list(next(iter(plain))), ["image", "index", "flags", "valid"])

    def check_view(self, got, view, sample, size, scale):
        part, mask = size // scale, np.repeat(np.repeat(sample["mask"], scale, 0), scale, 1)
        flip, y, x = self.found(got["mask"][view], mask, size, scale)
        want = sample["image"][y : y + part, x : x + part][:, :: -1 if flip else 1]
        if scale == 1:
            np.testing.assert_array_equal(got["image"][view], want)
        else:  # means of four neighbours are near to what lies between them
            np.testing.assert_allclose(got["image"][view].mean(), want.mean(), atol=3)
        np.testing.assert_array_equal(got["far"][view], got["mask"][view] * np.uint16(1000))
        boxes = sample["boxes"].copy()
        boxes -= np.array([x, y, x, y], np.float32)
        boxes = np.clip(boxes, 0, part) * scale
        if flip:
            boxes[:, [0, 2]] = size - boxes[:, [2, 0]]
        np.testing.assert_array_equal(got["boxes"][view][: len(boxes)], boxes)
        self.assertEqual(got["boxes_length"], len(boxes))
        self.assertFalse(got["boxes"][view][len(boxes) :].any())

    def found(self, got, mask, size, scale):
        """Where a part of a mask was cut: there is one such place."""
        places = [
            (flip, y, x)
            for flip in (False, True)
            for y in range(len(mask) // scale - size // scale + 1)
            for x in range(len(mask) // scale - size // scale + 1)
            if (mask[y * scale : y * scale + size, x * scale : x * scale + size][:, :: -1 if flip else 1] == got).all()
        ]
        self.assertEqual(len(places), 1)
        return places[0]

    def test_masks_of_another_size(self):
        fields = (
            libshard.Field("image", "uint8", (8, 8, 3), layout="hwc", semantic="image"),
            libshard.Field("mask", "uint8", (4, 4), semantic="mask"),
        )
        sample = {"image": np.zeros((8, 8, 3), np.uint8), "mask": np.zeros((4, 4), np.uint8)}
        ds = libshard.pack([sample] * 8, fields, "small")
        with self.assertRaisesRegex(libshard.ArgumentError, "masks that are not 8 x 8"):
            libshard.Loader(ds, 4, transform=libshard.Transform(size=4))
        libshard.Loader(ds, 4, fields="image", transform=libshard.Transform(size=4))

    SAMPLE = {
        "image": np.zeros((8, 8, 3), np.uint8),
        "boxes": np.float32([[0, 0, 3, 8]]),
        "mask": np.eye(8, dtype=np.uint8),
    }
    PLAIN = "image:u8[8,8,3],boxes:f32[<=4,4],mask:u8[8,8]"

    def test_types_that_follow(self):
        """A schema in words says it, as a dict and as one text; the semantic is in the file."""
        for schema in (
            "image:u8[8,8,3],boxes:boxes[<=4],mask:mask[8,8]",
            {"image": None, "boxes": "boxes[<=4]", "mask": "mask[8,8]"},
            {"image": "image[8,8,3]", "boxes": "boxes[<=4,4]", "mask": "mask:u8[8,8]"},
        ):
            ds = libshard.pack([self.SAMPLE] * 4, schema, "words", replace=True)
            said = {f.name: (f.dtype, f.shape, f.kind, f.semantic) for f in ds.schema}
            self.assertEqual(said["boxes"], ("float32", (4, 4), "ragged", "boxes"))
            self.assertEqual(said["mask"], ("uint8", (8, 8), "tensor", "mask"))
            batch = next(iter(libshard.Loader(ds, 4, transform=libshard.Transform(flip=1.0))))
            self.assertEqual(np.asarray(batch["boxes"])[0, 0].tolist(), [5, 0, 8, 8])
            np.testing.assert_array_equal(np.asarray(batch["mask"])[0], np.eye(8)[::-1])

        far = {"left": "image[8,8,3]", "boxes": "boxes[1]", "mask": "mask:uint16[8,8]"}
        image, boxes, mask = self.SAMPLE.values()
        sample = {"left": image, "boxes": boxes, "mask": mask * np.uint16(999)}
        ds = libshard.pack([sample] * 4, far, "far")
        self.assertEqual([(f.dtype, f.layout) for f in ds.schema],
                         [("uint8", "hwc"), ("float32", "none"), ("uint16", "none")])  # fmt: skip
        batch = next(iter(libshard.Loader(ds, 4, transform=libshard.Transform(flip=1.0))))
        np.testing.assert_array_equal(np.asarray(batch["mask"])[0], 999 * np.eye(8)[::-1])
        self.assertEqual(np.asarray(batch["boxes"])[0, 0].tolist(), [5, 0, 8, 8])

    def test_types_that_do_not_follow(self):
        for text, message in {
            "boxes": r"boxes\[<=6\], or boxes\[6\]",
            "boxes[<=6,5]": "greatest number of boxes",
            "boxes:f16[<=6]": "the dtype 'f16' must be left out",
            "mask[8]": "give height and width",
            "mask[<=8,8]": "give height and width",
            "mask:text[8,8]": "the dtype 'text' must be one of uint8",
            "image[8,8]": "1, 3 or 4 channels",
            "image[8,8,2]": "1, 3 or 4 channels",
            "image:f32[8,8,3]": "the dtype 'f32' must be left out",
            "uint8:u8[8,8]": "only a mask has a dtype behind a colon",
        }.items():
            with self.subTest(text), self.assertRaisesRegex(libshard.ArgumentError, message):
                libshard.Writer("never", {"x": text})

    def test_fields_that_look_like_boxes_and_masks(self):
        """They are refused, until they are packed as what they are, or are named."""
        ds, flip = libshard.pack([self.SAMPLE] * 4, self.PLAIN, "doubts"), libshard.Transform(flip=1.0)
        cat = libshard.mix([ds, ds.select([0, 1])], [1, 1])
        for source in (ds, ds.select([1, 2]), cat):
            with self.assertRaises(libshard.ArgumentError) as caught:
                libshard.Loader(source, 2, transform=flip)
            self.assertEqual(
                str(caught.exception),
                "the transform moves the pixels of 'image', but not these fields: 'boxes' f32[<=4,4] (rows of 4 "
                "numbers, as boxes have), 'mask' u8[8,8] (of the images' size). If they do not belong to the pixels, "
                'name them: transform_as_stored=["boxes", "mask"]. To let them follow, pack again with a semantic: in '
                "Python libshard.pack(ds, {**dict(zip(ds.schema.names, ds.schema)), "
                '"boxes": "boxes[<=4]", "mask": "mask[8,8]"}, NEW); or shardpack --field boxes:kind=boxes,max=4 '
                "--field mask:kind=mask (boxes are x0, y0, x1, y1 in pixels)",
            )
            libshard.Loader(source, 2, transform=flip, fields=["image"])
        libshard.Loader(ds, 2, transform=libshard.Transform(dtype="f32", layout="chw"))  # nothing moves
        batch = next(iter(libshard.Loader(ds, 4, transform=flip, transform_as_stored=["boxes", "mask"])))
        np.testing.assert_array_equal(np.asarray(batch["mask"])[0], self.SAMPLE["mask"])
        again = libshard.pack(
            ds, {**dict(zip(ds.schema.names, ds.schema)), "boxes": "boxes[<=4]", "mask": "mask[8,8]"}, "again"
        )
        batch = next(iter(libshard.Loader(again, 4, transform=flip)))
        np.testing.assert_array_equal(np.asarray(batch["mask"])[0], np.eye(8)[::-1])
        for message, given in {
            "transform_as_stored names 'box', and the dataset has no such field": ["box"],
            "transform_as_stored names 'mask', whose semantic is mask": "mask",
            "transform_as_stored names 'image', which is what the transform is for": ["image"],
        }.items():
            with self.subTest(given), self.assertRaisesRegex(libshard.ArgumentError, message):
                libshard.Loader(again, 4, transform=flip, transform_as_stored=given)
        with self.assertRaisesRegex(libshard.ArgumentError, "is for a libshard.Transform, and there is none"):
            libshard.Loader(ds, 4, transform_as_stored=["boxes"])
        with self.assertRaisesRegex(libshard.ArgumentError, "transform is a function"):
            libshard.Loader(ds, 4, transform=dict, transform_as_stored=["boxes"])
        for given in (5, [5], ["boxes\0"]):
            with self.subTest(given), self.assertRaisesRegex((TypeError, ValueError), "must be names, as"):
                libshard.Loader(ds, 4, transform=flip, transform_as_stored=given)

    def test_what_lies_beside_whole_images(self):
        def samples(mask):
            for i in range(4):
                pixels = (8 + i) * 8
                image, ones = np.zeros((pixels, 3), np.uint8), np.ones(pixels, np.uint8)
                yield {"image": image, "image_size": [8 + i, 8], mask: ones}

        for mask, kind in (("seg", "ragged"), ("mask", "ragged")):
            schema = [
                libshard.Field("image", "uint8", (121, 3), kind="ragged", layout="hwc", semantic="image"),
                libshard.Field("image_size", "uint32", (2,)),
                libshard.Field(mask, "uint8", (121 if mask == "seg" else 150,), kind=kind),
            ]
            ds = libshard.pack(samples(mask), schema, mask)
            crop = libshard.Transform(crop="random-resized", size=8)
            with self.assertRaisesRegex(libshard.ArgumentError, f"not these fields: '{mask}' u8.*If they do not belong"):
                libshard.Loader(ds, 2, transform=crop)
            batch = next(iter(libshard.Loader(ds, 2, shuffle=False, transform=crop, transform_as_stored=mask)))
            self.assertEqual(np.asarray(batch["image_size"]).tolist(), [[8, 8], [9, 8]])  # of what is stored

    def test_functions_of_batches(self):
        loader = libshard.Loader(self.ds, 16, shuffle=False, transform=lambda b: (b["label"].tolist(), b.step))
        got = list(loader)
        self.assertEqual(sum((labels for labels, _ in got), []), [i % 5 for i in range(RECORDS)])
        self.assertEqual([step for _, step in got], list(range(7)))
        with self.assertRaisesRegex(TypeError, "must be a libshard.Transform, a function"):
            libshard.Loader(self.ds, 16, transform="random-resized")

    def test_refused(self):
        for message, given in {
            "crop='middle'": {"crop": "middle"},
            "filter='lanczos'": {"filter": "lanczos"},
            "dtype='i64'": {"dtype": "i64"},
            "views=0": {"views": 0},
            "size=0": {"size": 0},
            "std=0": {"std": 0, "dtype": "f32"},
            "mean=nan; must be finite": {"mean": float("nan"), "dtype": "f32"},
            "area=0.5": {"area": 0.5},
            "area=": {"area": (0.5, 0.2)},
            "mean has 5 numbers": {"mean": [0.5] * 5},
        }.items():
            with self.subTest(given), self.assertRaisesRegex(libshard.ArgumentError, message):
                libshard.Transform(**given)
        for given in ({"flip": "a"}, {"mean": "0.5"}):
            with self.subTest(given), self.assertRaisesRegex(TypeError, "must be a number"):
                libshard.Transform(**given)
        libshard.Transform(mean=np.array(0.5), std=np.array([0.5, 0.5, 0.5]), dtype="f32")
        for message, given in {
            "no field 'picture'": {"field": "picture"},
            "label is a tensor of i64": {"field": "label"},
            "cannot be cropped": {"size": 41},
            "mean has 2 numbers, and images 3 channels": {"mean": (0.5, 0.5), "dtype": "f32"},
            "samples stay what they are": {"mean": 0.5},
            "divide mean and std by 255": {"mean": 127.5, "dtype": "f32"},
            "views; must be 1 to 16": {"views": 17},
        }.items():
            with self.subTest(given), self.assertRaisesRegex(libshard.ArgumentError, message):
                self.batches(libshard.Transform(**given))


if __name__ == "__main__":
    unittest.main()
