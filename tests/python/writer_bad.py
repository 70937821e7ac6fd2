# SPDX-License-Identifier: Apache-2.0
"""Writing: what is refused, with words that say why; no dataset if it fails."""

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
