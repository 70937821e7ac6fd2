# SPDX-License-Identifier: Apache-2.0
"""Writing: what is refused, with words that say why; no dataset if it fails."""

import array
import collections
import ctypes
import decimal
import os
import pathlib
import shutil
import unittest

import libshard
import numpy as np
from PIL import Image
from writing import Case


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


class Places(Case):
    def test_urls(self):
        for url in ("s3://bucket/ds", "gs://b/ds", "hf://datasets/me/ds", pathlib.Path("s3://bucket/ds")):
            for write in (
                lambda: libshard.pack({"x": np.zeros(3)}, None, url),  # noqa: B023
                lambda: libshard.Writer(url, "x:f64"),  # noqa: B023
            ):
                with self.subTest(url), self.assertRaisesRegex(libshard.ArgumentError, r"//?b.*: is a URL|//?d.*: is a URL"):
                    write()
        self.assertEqual([n for n in os.listdir(".") if ":" in n], [])
        libshard.pack({"x": np.zeros(3)}, None, "./s3:/bucket/ds")
        self.assertEqual(len(libshard.open("./s3:/bucket/ds")), 3)
        shutil.rmtree("s3:")


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
                r"record 1, field 'label': 1.5 is not a whole number, and the field is int64\[\]",
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
            ({"image": image, "label": np.datetime64(5, "s")}, r"dtype 'datetime64\[s\]'.*x.astype\('int64'\)"),
            ({"image": image, "label": 1.0}, r"1.0 is a float, and the field is int64\[\]; give int\(x\)"),
            (5, "a sample is of type int, which is not a dict or a tuple"),
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
        # What is not there is named beside all that is, also where the schema chooses none of it.
        ds = libshard.pack([good], schema, "good")
        for wanted in ({"typo": None}, {"typo": "int64"}, {"label": None, "typo": None}):
            for source in ([good], ds, {"image": image[None], "label": [1]}):
                for workers in (None, 0):
                    there = r"record 0, field 'typo': the record has no such item; it has \['image', 'label'\]"
                    with self.assertRaisesRegex(libshard.RecordError, there) as caught:
                        libshard.pack(source, wanted, "typo", workers=workers)
                    self.assertEqual((caught.exception.record, caught.exception.field), (0, "typo"))

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

    def test_samples_that_are_batches(self):
        batches = [{"image": np.zeros((2, 4, 4, 3), "u1"), "label": np.zeros(2, "i8")}] * 2
        libshard.pack(batches, None, "of_batches", batched=True)
        with libshard.Loader("of_batches", 2) as loader:
            with self.assertRaisesRegex(libshard.ArgumentError, "a sample is a batch of a loader; say batched=True"):
                libshard.pack((batch for batch in loader), None, "ours")
            self.check_nothing()
        for source in (batches, [(b["image"], b["label"]) for b in batches]):
            self.setUp()
            with self.assertWarnsRegex(UserWarning, r"image \[2, 4, 4, 3\] and label \[2\]; if .* say batched=True"):
                self.assertEqual(len(libshard.pack(source, None, "ours")), 2)
        self.setUp()  # frames of a film
        libshard.pack([{"image": np.zeros((2, 4, 4, 3), "u1"), "label": 1}], None, "ours")

    def test_a_length_that_is_not_that_of_the_source(self):
        class Samples:
            def __init__(self, said, there):
                self.said, self.there = said, there

            def __len__(self):
                return self.said

            def __iter__(self):
                return ({"x": i} for i in range(self.there))

        for there, words in ((2, "a Samples, ended after 2 samples, and its len"), (4, "yields more samples, and its len")):
            with self.assertRaisesRegex(libshard.ArgumentError, rf"{words}\(\) is 3; .* iter\(source\)"):
                libshard.pack(Samples(3, there), None, "ours")
            self.check_nothing()
            self.assertEqual(libshard.pack(iter(Samples(3, there)), None, "ours")[:]["x"].tolist(), list(range(there)))
            self.setUp()

    def test_a_pair_that_begins_with_a_number(self):
        image = np.zeros((4, 4, 3), "u1")
        for number in (1, 1.0, np.int64(1), np.array(1)):
            self.refuse(None, [(number, image)], r"the first is a number; say what they are, as names=\('label', 'image'\)")
        self.setUp()
        with self.assertRaisesRegex(libshard.ArgumentError, r"names=\('x', 'x'\): a name is given twice; give each item its own"):
            libshard.pack([(1, 2)], None, "ours", names=("x", "x"))
        ds = libshard.pack([(1, image)], None, "ours", names=("label", "image"))
        self.assertEqual((ds[0]["label"], ds.schema["image"].semantic), (1, "image"))

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

    def test_numbers_that_a_float_does_not_hold(self):
        beyond = "does not fit, the field is .*: its greatest number is"
        inexact = "does not fit, the field is .* holds whole numbers exactly up to"
        for dtype, value, words in (
            ("f16", 1e6, rf"1000000 {beyond} 65504; choose float32"),
            ("f16", 65520.0, f"{beyond} 65504"),
            ("f16", np.float32(-1e30), f"{beyond} 65504"),
            ("f16", 1e300, "choose float64"),
            ("f16", 70000, f"70000 {beyond} 65504"),
            ("f16", 2049, f"2049 {inexact} 2048; choose float64 or int64, or give float"),
            ("bf16", 3.4e38, f"{beyond} 3.3895e38"),
            ("bf16", 257, f"257 {inexact} 256"),
            ("f32", 1e300, rf"1e\+300 {beyond} 3.4028e38; choose float64"),
            ("f32", -1e39, f"{beyond} 3.4028e38"),
            ("f32", np.float64(1e39), f"{beyond} 3.4028e38"),
            ("f32", 2**24 + 1, f"16777217 {inexact} 16777216"),
            ("f32", np.int64(-(2**24) - 1), f"-16777217 {inexact} 16777216"),
            ("f64", 2**53 + 1, f"9007199254740993 {inexact} 9007199254740992; choose int64 or uint64"),
            ("f64", 2**64 - 1, f"18446744073709551615 {inexact}"),
            ("f64", -(2**63) + 1, f"-9223372036854775807 {inexact}"),
        ):
            self.refuse(f"x:{dtype}", [{"x": value}], f"record 0, field 'x': .*{words}")
            self.refuse(f"x:{dtype}[2]", [{"x": [1, value]}], words)
            self.refuse(f"x:{dtype}", {"x": [0, value]}, f"record 1, field 'x': .*{words}")
            self.refuse(f"x:{dtype}[<=3]", [{"x": [value]}], words)
        self.refuse("x:f32[2]", [{"x": np.array([1.0, 1e300])}], r"float64\[2\], but the field is float32\[2\]")
        self.setUp()
        limits = {"f16": 2**11, "bf16": 2**8, "f32": 2**24, "f64": 2**53}
        rows = [{n: s * (v - 1) for n, v in limits.items()} for s in (1, -1)]
        ds = libshard.pack([*rows, dict.fromkeys(limits, 2**15)], ",".join(f"{n}:{n}" for n in limits), "ours")
        self.assertEqual([ds[0], ds[1]], rows)
        self.assertEqual(set(ds[2].values()), {2.0**15})

    def test_what_offers_bytes_and_is_not_bytes(self):
        class Pair(ctypes.Structure):
            _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_double)]

        days = np.array(["2024-01-01", "2024-01-02"], "M8[D]")
        for value, words in (
            (days[0], r"dtype 'datetime64\[D\]', which no field has; give whole numbers, as x.astype\('int64'\)"),
            (days, r"dtype 'datetime64\[D\]'.*x.astype\('int64'\)"),
            (days[1] - days[0], r"dtype 'timedelta64\[D\]'.*x.astype\('int64'\)"),
            ([days[0], days[1]], r"dtype 'datetime64\[D\]'"),
            (np.void(b"12345678"), "dtype '.V8'"),
            (np.zeros(2, "V2"), "dtype '.V2'"),  # two bytes, as bfloat16 has
            (np.zeros(2, "u1,u1"), r"dtype '\[\('f0', 'u1'\).*an item of its own"),
            (np.array(["ab"]), "dtype '<U2'.*text"),
            (np.array([b"ab"]), "dtype '.S2'.*text"),
            (np.array([1, None], object), "dtype 'object'"),
            (np.complex64(1), "dtype 'complex64'.*imaginary"),
            (np.zeros(2, "g"), r"dtype 'float.*x.astype\('float64'\)"),
            (array.array("u", "ab"), "which no field has"),
            (Pair(1, 2), "which no field has"),
            (ctypes.c_char_p(b"abc"), "which no field has"),
            (ctypes.pointer(ctypes.c_int(4)), "which no field has"),
            (np.ma.masked_array([1.0, 2.0], mask=[0, 1]), r"masked items; x.filled\(0\)"),
            (np.ma.masked, "masked items"),
            (decimal.Decimal("1.5"), r"type Decimal is not a number, an array or a list of numbers"),
        ):
            self.refuse(None, [{"x": value}], words)
            self.refuse("x:u8[8]", [{"x": value}], f"record 0, field 'x': .*({words}|a number, but the field|a list of 2)")
        for value in (days[0], days, np.arange(3.0), np.uint8(5), np.zeros((2, 3), "u1"), np.zeros(6, "u1")[::2],
                      array.array("d", [1.0]), Pair(1, 2), np.array([b"ab"]), np.array([1, None], object),
                      memoryview(b"abcd")[::2]):  # fmt: skip
            self.refuse("x:bytes[<=99]", [{"x": value}], "an array of .* the field is a string of bytes; give bytes")
        self.setUp()
        good = [b"ab", bytearray(b"ab"), memoryview(b"ab"), np.frombuffer(b"ab", "u1"), np.bytes_(b"ab")]
        self.assertEqual([r["x"] for r in libshard.pack([{"x": v} for v in good], "x:bytes[<=9]", "ours")], [b"ab"] * 5)
        unmasked = np.ma.masked_array([1.0, 2.0])
        self.assertEqual(libshard.pack([{"x": unmasked}], None, "more")[0]["x"].tolist(), [1, 2])

    def test_a_schema_is_kept_or_refused(self):
        for schema in ("label:u8", {"label": "uint8"}, {"label": np.uint8}, {"label": ("uint8", ())}, "label:u64"):
            with self.assertRaisesRegex(
                libshard.ArgumentError,
                r"field 'label': a label is the number of a class and is stored as int64, but the schema says uint.*; "
                r"say int64, or libshard.Field\('label', 'uint.*', \(\)\)",
            ):
                libshard.pack([{"label": 3}], schema, "ours")
            self.check_nothing()
        field = libshard.Field("label", "uint8", ())
        self.refuse([field], [{"label": 300}], r"300 does not fit, the field is uint8\[\]")
        self.setUp()
        self.assertEqual(str(libshard.pack([{"label": 3}], [field], "ours").schema["label"]), "label: uint8")
        self.setUp()
        wide = libshard.pack([{"label": np.uint8(3)}], None, "ours")  # no schema was given
        self.assertEqual(str(wide.schema["label"]), "label: int64")
        first = libshard.Field("a", "int64", (), group=0)
        with self.assertRaisesRegex(libshard.ArgumentError, "field 'a': group=0 is given, but not all fields"):
            libshard.pack([{"a": 1, "b": np.zeros(9)}], {"a": first, "b": "float64[9]"}, "more")
        with self.assertRaisesRegex(libshard.ArgumentError, r"shape 2; must be a tuple of numbers"):
            libshard.pack([{"x": [1, 2]}], {"x": ("int64", 2)}, "more")

    def test_a_dict_that_makes_its_items_up(self):
        """A defaultdict is only asked for what it has, and stays as it is."""
        record = collections.defaultdict(int, text="ab", x=1)
        with libshard.Writer("ours", "text:text[<=9],x:i64") as writer:
            writer.write(record)
        self.assertEqual(list(record), ["text", "x"])
        self.assertEqual(libshard.open("ours")[0], {"text": "ab", "x": 1})

    def test_nothing_that_is_given_is_passed_over(self):
        with libshard.Writer("ours", "x:i64") as writer:
            for write, bad in ((writer.write, {"x": 1, "mask": 2}), (writer.write_batch, {"x": [1], "mask": [2]})):
                with self.assertRaisesRegex(
                    libshard.RecordError, "record 0: the item 'mask' is not in the schema, which has x; leave the item"
                ):
                    write(bad)
            writer.write({"x": 1})
        for options, words in (
            ({"names": ("p",)}, "a sample is a dict, whose items have names; names= is for tuples"),
            ({"seed": 7}, "seed=7 needs order='shuffle'"),
        ):
            with self.assertRaisesRegex(libshard.ArgumentError, words):
                libshard.pack([{"x": 1}], None, "more", **options)
        with self.assertRaisesRegex(libshard.ArgumentError, "a source is a dict, whose items have names"):
            libshard.pack({"x": [1]}, None, "more", names=("p",))
        ds = libshard.pack([collections.namedtuple("Sample", "x y")(1, 2)], None, "more")
        self.assertEqual(ds.schema.names, ["x", "y"])
        self.setUp()
        ds = libshard.pack({"x": [4, 5]}, None, "more", key=lambda i, sample: f"{i} {sample['x']}")
        self.assertEqual([ds.key(i) for i in range(2)], ["0 4", "1 5"])

    def test_lengths_that_are_given_must_be_those_of_the_values(self):
        schema = {"t": "int64[<=8]", "t_length": libshard.Field("t_length", "uint32", (1,), semantic="length")}
        words = r"record 0, field 't_length': 3, but t has 4: give each value as long as it is"
        for length in (3, np.uint32(3), np.array([3], "u4"), [3]):
            self.refuse(schema, [{"t": [1, 2, 3, 0], "t_length": length}], words)
        self.refuse(schema, {"t": [[1, 2, 3, 0]], "t_length": [3]}, words)
        self.setUp()
        ds = libshard.pack([{"t": [1] * n, "t_length": n} for n in (1, 2, 3)], schema, "ours")
        self.assertEqual([len(r["t"]) for r in ds], [1, 2, 3])
        with libshard.Loader(ds, 3, shuffle=False) as loader:  # all its rows are equally long
            for of in (schema, {"t": "int64[<=8]"}):
                with self.assertRaisesRegex(libshard.RecordError, "field 't_length': 1, but t has [38]"):
                    libshard.pack(loader, of, "more", batched=True)
                self.check_nothing("more")
        alone = libshard.Field("n", "uint32", (1,), semantic="length")  # of nothing: a field like others
        self.assertEqual(libshard.pack([{"n": [7]}], [alone], "more").column("n").tolist(), [[7]])

    def test_rows_that_repeat_others_are_not_packed(self):
        libshard.pack({"x": np.arange(5)}, None, "more")
        with libshard.Loader("more", 2, shuffle=False, tail="pad") as loader:
            with self.assertRaisesRegex(libshard.ArgumentError, "1 rows that do not count.*tail='keep'"):
                libshard.pack(loader, None, "ours", batched=True)
        self.check_nothing()

        class Loader:  # as a DataLoader is
            batch_size = batch_sampler = None

            def __init__(self, dataset, workers):
                self.dataset, self.num_workers = dataset, workers

            def __iter__(self):
                return iter([{"x": 1}] * max(1, self.num_workers))

        class Indexed(list):
            pass

        class IterableDataset:  # that of PyTorch says so
            def __getitem__(self, i):
                raise NotImplementedError

        with self.assertRaisesRegex(
            libshard.ArgumentError, r"2 workers over a object, which has no index: each worker may.*iter\(loader\)"
        ):
            libshard.pack(Loader(object(), 2), None, "ours")
        with self.assertRaisesRegex(libshard.ArgumentError, "2 workers over a IterableDataset"):
            libshard.pack(Loader(IterableDataset(), 2), None, "ours")
        self.check_nothing()
        for source in (Loader(object(), 1), Loader(object(), 0), Loader(Indexed(), 2), iter(Loader(object(), 2))):
            self.setUp()
            libshard.pack(source, None, "ours")

    def test_an_error_tells_what_was_removed(self):
        rows = [{"text": "a" * (65 if i == 9 else 9)} for i in range(10)]
        error = self.refuse("text:text[<=64]", rows, "record 9, field 'text': 65 bytes", shard_records=2)
        self.assertRegex(error.__notes__[0], "ours: [1-4] complete shards were removed.*on_error='skip'.*catch RecordError")
        error = self.refuse("text:text[<=64]", rows, "record 9", shard_records=20)
        self.assertFalse(hasattr(error, "__notes__"))
        with self.assertRaisesRegex(TypeError, "libshard.pack has no option folds=; there are names, .*compress"):
            libshard.pack(rows, None, "ours", folds=True)
        with self.assertRaisesRegex(TypeError, "has no option quarantine=: on_error='quarantine' keeps bad samples"):
            libshard.pack(rows, None, "ours", quarantine="bad")

    def test_a_column_that_is_indexed_by_labels(self):
        class Series:  # as that of pandas, whose rows were shuffled
            iloc = None

            def __len__(self):
                return 3

            def __getitem__(self, label):
                return [30, 20, 10][label] if isinstance(label, int) else self

        self.refuse(None, {"x": Series()}, "a Series is indexed by its labels")
        self.refuse("x:i64", {"x": Series()}, r"a Series is indexed by its labels.*give numpy.asarray\(column\)")

    def test_more_fields_than_a_dataset_has(self):
        for source, schema in (
            ({f"n{i}": np.zeros(2) for i in range(25)}, None),
            ([{f"n{i}": "a" for i in range(13)}], {f"n{i}": "text[<=4]" for i in range(13)}),
        ):
            with self.assertRaisesRegex(libshard.ArgumentError, r"must be 1 to 24. Stack columns of one dtype.*stack"):
                libshard.pack(source, schema, "ours")
            self.check_nothing()

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
        for record, words in (
            ({"x": 0}, "classes were given, but no field is a label: a label is one whole number"),
            ({"label": 0.0}, r"no field is a label \(label: float64\): .* such as int\(x\)"),
            ({"label": True}, r"no field is a label \(label: bool\)"),
            ({"label": np.array([0])}, r"no field is a label \(label: int64\[1\]\)"),
        ):
            with self.assertRaisesRegex(libshard.ArgumentError, words):
                libshard.pack([record], None, "ours", classes=["a"])
            self.check_nothing()

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
            ({"label": "cat"}, r"'text\[<=200\]', .* name of a class, give all names, as classes="),
            ({"s": {"a": 1}}, r"type dict is not a number.*; give each of its items a name of its own, as 's\.x'"),
            ({"s": []}, "an empty list"),
            ({"s": None}, "a value of type NoneType .*; leave the record out, or give a number"),
            ({"s": object()}, "a value of type object"),
            ({"s": np.zeros(3, "c8")}, "an array of dtype 'complex64'"),
        ):
            self.refuse(None, [record], words)

    def test_a_later_record_without_a_value(self):
        for value, words in ((None, "None is not .*; leave the record out"), ({"a": 1}, "type dict is not .*; give each")):
            self.refuse(None, [{"x": 1}, {"x": value}], f"record 1, field 'x': .*{words}")
        with self.assertRaisesRegex(libshard.ArgumentError, "field 'x_length': 'x' varies, and its lengths are a field"):
            libshard.pack([{"x": [1], "x_length": 7}], {"x": "u8[<=3]", "x_length": "u8"}, "ours")

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
            ("x:u8[<=4],x_length:u32", "field 'x_length': 'x' varies, and its lengths are a field of this name"),
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
            ({"shard_records": 0}, "shard_records=0; must be 1 to"),
            ({"shard_records": -1}, "shard_records=-1; must be 1 to"),
            ({"align": 5}, "align is 5; must be 0 or 4096"),
            ({"shard_records": 1 << 39}, "the limit is"),
            ({"order": "x"}, "order='x'; must be one of 'source', 'shuffle'"),
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
        for source, options, words in (
            ([{"x": 1}], {}, r"key='k': sample 0 has no such item; it has \['x'\]"),
            ({"x": [1]}, {}, r"key='k': the source has no such item; it has \['x'\]"),
            ([{"x": [1]}], {"batched": True}, r"key='k': a batch has no such item; it has \['x'\]"),
        ):
            self.refuse(None, source, words, key="k", **options)
        self.setUp()
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
