# SPDX-License-Identifier: Apache-2.0
"""Batches: the items that are not fields, and batches that are made again."""

import unittest
from unittest import mock

import data
import libshard
import numpy as np

N = 21
ROWS = ["index", "flags", "valid"]
NUMBERS = ["epoch", "step", "position"]


def setUpModule():
    global want
    want = data.pack_images("set", N, "--shard-records", "9")


class Items(unittest.TestCase):
    def first(self, **options):
        loader = libshard.Loader("set", 8, shuffle=False, **options)
        return next(iter(loader))

    def test_which_they_are(self):
        for items, names in (
            ("rows", ROWS),
            ("all", ROWS + NUMBERS),
            ((), []),
            ("valid", ["valid"]),
            (["step", "index"], ["index", "step"]),
            (iter(("position",)), ["position"]),
        ):
            batch = self.first(items=items)
            self.assertEqual(list(batch), ["image", "label", *names])
            self.assertEqual(batch.item_names, tuple(names))
            for name in ROWS:  # attributes are there in any case
                self.assertEqual(getattr(batch, name).tolist(), [[*range(8)], [0] * 8, [True] * 8][ROWS.index(name)])
            self.assertEqual((batch.epoch, batch.step, batch.position, batch.component), (0, 0, 0, None))
        self.assertEqual(list(self.first()), ["image", "label", *ROWS])
        self.assertEqual(list(self.first(fields=["label"])), ["label", *ROWS])
        batch = self.first(items="all")
        self.assertEqual([batch[name].dtype for name in ROWS], ["int64", "uint8", "bool"])
        self.assertEqual([batch[name].shape for name in ROWS], [(8,)] * 3)
        self.assertEqual([type(batch[name]) for name in NUMBERS], [int] * 3)
        for items in ("row", ["index", "images"], ["component"]):
            with self.assertRaisesRegex(libshard.ArgumentError, "must be 'rows', 'all' or names of index, flags"):
                self.first(items=items)

    def test_an_item_and_its_attribute_are_one(self):
        batch = self.first(items=("valid", "step"))
        batch["valid"] = [1]
        self.assertEqual(batch.valid, [1])
        batch.step = 5
        self.assertEqual((batch["step"], batch.step), (5, 5))
        batch.index = [2]
        self.assertEqual((batch.index, "index" in batch), ([2], False))
        del batch["step"]
        with self.assertRaisesRegex(AttributeError, "no step: .* or the item is gone"):
            batch.step  # noqa: B018
        with self.assertRaisesRegex(AttributeError, "cannot be deleted"):
            del batch.epoch

    def test_of_mixtures(self):
        ds = libshard.open("set")
        mixture = libshard.mix([ds.select(range(9)), ds.select(range(9, N))], [1, 1])
        batch = next(iter(libshard.Loader(mixture, 8)))
        self.assertEqual(list(batch), ["image", "label", *ROWS, "component"])
        self.assertEqual(batch["component"].tolist(), [int(i >= 9) for i in batch["index"].tolist()])
        batch = next(iter(libshard.Loader(mixture, 8, items=())))
        self.assertEqual(batch.component.tolist(), [int(i >= 9) for i in batch.index.tolist()])

    def test_rows_that_do_not_count(self):
        seen = []
        for rank in range(2):
            loader = libshard.Loader("set", 4, shuffle=False, rank=rank, world=2, tail="pad")
            for batch in map(dict, loader):
                valid = batch["valid"].tolist()
                self.assertEqual(valid, [f == 0 for f in batch["flags"].tolist()])
                seen += [i for i, counts in zip(batch["index"].tolist(), valid) if counts]
        self.assertEqual(sorted(seen), list(range(N)))

    def test_damaged_rows_do_not_count(self):
        import os
        import shutil

        shutil.copytree("set", "damaged")
        shard = sorted(name for name in os.listdir("damaged") if name.endswith(".shard"))[0]
        with open(f"damaged/{shard}", "r+b") as f:  # a byte of an image
            body = f.read()
            at = body.index(want["image"][3].tobytes())
            f.seek(at)
            f.write(bytes([body[at] ^ 1]))
        for how, flag in (("mask", libshard.MASKED), ("substitute", libshard.SUBSTITUTED)):
            (batch, *_), loader = (list(libshard.Loader("damaged", 8, shuffle=False, on_corrupt=how, copy=True)), None)
            self.assertIn(flag, batch["flags"].tolist())
            self.assertEqual(batch["valid"].tolist(), [f == 0 for f in batch["flags"].tolist()])

    def test_a_field_of_that_name_is_no_accident(self):
        samples = [{"x": np.zeros(3, np.uint8), "valid": np.int64(i), "step": np.int64(-i)} for i in range(9)]
        ds = libshard.pack(samples, None, "clash")
        with self.assertRaisesRegex(
            libshard.ArgumentError, r"a field 'valid', .* say items=\('index', 'flags'\), and read batch.valid"
        ):
            libshard.Loader(ds, 3)
        with self.assertRaisesRegex(libshard.ArgumentError, "a field 'step'"):
            libshard.Loader(ds, 3, items=("step",))
        batch = next(iter(libshard.Loader(ds, 3, shuffle=False, items=("index", "flags"))))
        self.assertEqual((batch["valid"].tolist(), batch.valid.tolist()), ([0, 1, 2], [True] * 3))
        self.assertEqual((batch["step"].tolist(), batch.step), ([0, -1, -2], 0))
        self.assertEqual(list(next(iter(libshard.Loader(ds, 3, fields=["x"])))), ["x", *ROWS])
        # Whoever makes another batch of the items gets no wrong answer.
        with self.assertRaises(AttributeError):
            type(batch)(dict(batch)).valid  # noqa: B018


class Ragged(unittest.TestCase):
    """Fields whose length differs from record to record."""

    SCHEMA = "boxes:f32[<=6,4],caption:text[<=20],raw:bytes[<=9],label:i64"
    WORDS = "", "ein Bär", "日本", "x" * 20

    @classmethod
    def setUpClass(cls):
        cls.boxes = [np.full((i % 7, 4), i, np.float32) for i in range(N)]
        cls.captions, cls.raw = [cls.WORDS[i % 4] for i in range(N)], [b"\xff" * (i % 10) for i in range(N)]
        values = zip(cls.boxes, cls.captions, cls.raw)
        samples = ({"boxes": b, "caption": c, "raw": r, "label": 7} for b, c, r in values)
        cls.ds = libshard.pack(samples, cls.SCHEMA, "ragged")

    def test_lengths_count_as_an_index_does(self):
        for batch in libshard.Loader(self.ds, 8, seed=1):
            index = batch["index"].tolist()
            for name, of in (("boxes", self.boxes), ("raw", self.raw)):
                lengths = batch[f"{name}_length"]
                self.assertEqual((lengths.dtype, lengths.shape), ("int64", (len(index),)))
                self.assertEqual(lengths.tolist(), [len(of[i]) for i in index])
            self.assertEqual(batch["caption_length"].tolist(), [len(self.captions[i].encode()) for i in index])
            for row, n, i in zip(batch["boxes"], batch["boxes_length"].tolist(), index):
                np.testing.assert_array_equal(np.asarray(row[:n]), self.boxes[i])

    def test_lengths_in_large_records(self):
        """They lie in the loader's memory there, a record apart."""
        fields = [
            libshard.Field("x", "uint8", (100, 64), kind="ragged", group=0),
            libshard.Field("x_length", "uint32", (1,), semantic="length", group=0),
        ]
        ds = libshard.pack(({"x": np.full((i, 64), i, np.uint8)} for i in range(N)), fields, "large")
        for batch in libshard.Loader(ds, 8, seed=1):
            self.assertGreater(batch["x"].strides[0], 4096)
            self.assertEqual(batch["x_length"].tolist(), batch["index"].tolist())

    def test_tokens_as_int64(self):
        """As libshard.torch wants them, of both types, behind a field that aligns nothing."""
        fields = [
            libshard.Field("odd", "uint8", (3,), group=0),
            libshard.Field("short", "uint16", (5, 3), semantic="tokens", group=0),
            libshard.Field("one", "uint8", (1,), group=0),
            libshard.Field("long", "uint32", (7,), semantic="tokens", group=0),
            libshard.Field("plain", "uint16", (3,), group=0),
        ]
        samples = (
            {"odd": [1] * 3, "short": [[65535 - i, i, k] for k in range(5)], "one": [2], "long": [2**32 - 1 - i] * 7,
             "plain": [i] * 3} for i in range(N)
        )  # fmt: skip
        ds = libshard.pack(samples, fields, "tokens")
        with mock.patch.object(libshard.Loader, "_wide_tokens", True):
            loader = libshard.Loader(ds, 8, seed=1)
        for batch in loader:
            index = batch["index"].tolist()
            self.assertEqual([batch[n].dtype for n in ("short", "long", "plain")], ["int64", "int64", "uint16"])
            self.assertEqual(batch["short"].tolist(), [[[65535 - i, i, k] for k in range(5)] for i in index])
            self.assertEqual(batch["long"].tolist(), [[2**32 - 1 - i] * 7 for i in index])
            self.assertEqual(batch["plain"].tolist(), [[i] * 3 for i in index])

    def test_of_two_axes_that_vary(self):
        """The writer of Python makes none, so the second lengths are zeros."""

        def entries(fields, make=libshard._schema._entries):
            x, lengths = make(fields)
            return [(*x[:7], 3, 1), (lengths[0], lengths[1], (2,), *lengths[3:])]

        with mock.patch.object(libshard._schema, "_entries", entries):
            ds = libshard.pack(({"x": np.zeros((i % 4, 5), np.uint8)} for i in range(N)), "x:u8[<=3,5]", "axes")
        for batch in libshard.Loader(ds, 8, seed=1):
            self.assertEqual(batch["x_length"].dtype, "int64")
            self.assertEqual(batch["x_length"].tolist(), [[i % 4, 0] for i in batch["index"].tolist()])

    def test_strings_in_lists(self):
        for batch in libshard.Loader(self.ds, 8, seed=1, strings="lists"):
            index = batch["index"].tolist()
            self.assertEqual(list(batch), ["boxes", "boxes_length", "caption", "raw", "label", *ROWS])
            self.assertEqual(batch["caption"], [self.captions[i] for i in index])
            self.assertEqual(batch["raw"], [self.raw[i] for i in index])
        for options in ({"fields": "caption"}, {"fields": ["caption", "label"]}, {"fields": "caption", "copy": True}):
            batch = next(iter(libshard.Loader(self.ds, 8, shuffle=False, strings="lists", **options)))
            self.assertEqual(batch["caption"], self.captions[:8])
            self.assertFalse({"caption_length", "raw", "boxes"} & set(batch))
        batch = next(iter(libshard.Loader(self.ds, 8, shuffle=False, strings="lists", fields="caption_length")))
        self.assertEqual(batch["caption_length"].tolist(), [len(c.encode()) for c in self.captions[:8]])
        batch = next(iter(libshard.Loader(self.ds, 8, shuffle=False)))
        self.assertEqual(batch["caption"].shape, (8, 20))
        with self.assertRaisesRegex(libshard.ArgumentError, "strings='list'; must be one of 'rows', 'lists'"):
            libshard.Loader(self.ds, 8, strings="list")
        with self.assertRaisesRegex(libshard.ArgumentError, "needs device='cpu'"):
            libshard.Loader(self.ds, 8, strings="lists", device="cuda")


class ListsOfTexts(unittest.TestCase):
    """Captions: a list for each record."""

    rows = [[f"{i} é" * k for k in range(i % 5)] for i in range(20)]

    @classmethod
    def setUpClass(cls):
        cls.ds = libshard.pack(({"x": i, "caption": r} for i, r in enumerate(cls.rows)),
                               {"x": None, "caption": "text[<=4,20]"}, "lists")  # fmt: skip

    def test_records_and_batches(self):
        self.assertEqual([r["caption"] for r in self.ds], self.rows)
        for batch in libshard.Loader(self.ds, 8, seed=1, strings="lists"):
            self.assertEqual(batch["caption"], [self.rows[i] for i in batch["index"].tolist()])
            self.assertNotIn("caption_length", batch)
        batch = next(iter(libshard.Loader(self.ds, 8, shuffle=False)))
        self.assertEqual(batch["caption"].shape, (8, 4, 20))
        self.assertEqual(batch["caption_length"].tolist(), [len(r) for r in self.rows[:8]])
        self.assertEqual(bytes(batch["caption"][4].tolist()[2])[:9], "4 é4 é".encode() + b"\0")

    def test_compressed(self):
        ds = libshard.pack(self.ds, self.ds.schema, "lists.lz4", compress="lz4")
        self.assertEqual([r["caption"] for r in ds], self.rows)
        self.assertEqual(ds.schema, self.ds.schema)

    def test_what_cannot_be_one(self):
        for value, words in (
            ("text", "the field is a list of texts; give a list of str"),
            (["a", 1], "the field is text; give a str"),
            (["a"] * 5, "5 items; must be at most 4"),
            (["é" * 11], "22 bytes; must be at most 20"),
            (["a\0b"], "a text of a list has a NUL, which would end it"),
        ):
            with self.assertRaisesRegex(libshard.RecordError, words):
                libshard.pack([{"caption": value}], {"caption": "text[<=4,20]"}, "bad")
        with self.assertRaisesRegex(libshard.ArgumentError, "give the greatest number of bytes"):
            libshard.pack([{"caption": []}], {"caption": "text[4,20]"}, "bad")


class MadeAnew(unittest.TestCase):
    def test_as_frameworks_do(self):
        batch = next(iter(libshard.Loader("set", 8, shuffle=False, items="all")))
        for other in (dict(batch), {**batch}, type(batch)({k: v for k, v in batch.items()}), batch.copy()):
            self.assertEqual(list(other), ["image", "label", *ROWS, *NUMBERS])
            self.assertEqual(other["index"].tolist(), [*range(8)])
        other = type(batch)(dict(batch))
        self.assertEqual(other.item_names, ())
        for name in ROWS + NUMBERS + ["component"]:
            with self.assertRaisesRegex(AttributeError, rf"has no {name}: .*; batch\['{name}'\] is there if"):
                getattr(other, name)

    def test_by_hand(self):
        batch = libshard.Batch({"x": 1, "index": 2}, flags=3, items=["index"])
        self.assertEqual((batch.index, batch.flags, batch.component, batch.item_names), (2, 3, None, ("index",)))
        for items in (["x"], ["valid"], ["nothing"], [5]):
            with self.assertRaisesRegex(ValueError, "is not a part of a batch, or not in it"):
                libshard.Batch({"x": 1, "index": 2}, items=items)

    def test_packed_again(self):
        loader = libshard.Loader("set", 8, shuffle=False)
        ds = libshard.pack(loader, None, "again", batched=True)
        self.assertEqual([f.name for f in ds.schema], ["image", "label"])
        self.assertEqual(np.asarray(ds[:]["image"]).tobytes(), want["image"].tobytes())


if __name__ == "__main__":
    unittest.main()
