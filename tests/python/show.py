# SPDX-License-Identifier: Apache-2.0
"""What a notebook is given: pictures against NumPy and Pillow, and HTML."""

import base64
import html.parser
import io
import pickle
import re
import unittest

import data
import libshard
import numpy as np
from libshard import _show
from libshard._errors import shown
from PIL import Image

VOID = {"img"}


class Tree(html.parser.HTMLParser):
    """Raises where a tag is not closed; has texts, and pictures as arrays."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.pictures, self.tags = [], [], [], set()
        self.feed(text)
        self.close()
        if self.open:
            raise ValueError(f"left open: {self.open}")

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "img":
            kind, _, content = dict(attributes)["src"].partition(",")
            if kind != "data:image/png;base64":
                raise ValueError(kind)
            self.pictures.append(np.asarray(Image.open(io.BytesIO(base64.b64decode(content, validate=True)))))

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            raise ValueError(tag)

    def handle_data(self, text):
        self.texts += [t for t in text.split("\n") if t]


def halved(a):
    """Rounded down twice: rows first."""
    a = a[: a.shape[0] // 2 * 2, : a.shape[1] // 2 * 2].astype(int)
    a = (a[0::2] + a[1::2]) // 2
    return ((a[:, 0::2] + a[:, 1::2]) // 2).astype(np.uint8)


class Show(unittest.TestCase):
    def pack(self, name, field, array, *options):
        a = np.zeros(len(array), np.dtype([("image", array.dtype, array.shape[1:])]))
        a["image"] = array
        data.pack_raw(name, a, field, *options)
        return libshard.open(name)

    def test_pictures_are_what_is_stored(self):
        rng = np.random.default_rng(5)
        for schema, shape in (
            ("image:u8[40,30,3]", (40, 30, 3)),
            ("image:u8[40,30,1]", (40, 30, 1)),
            ("image:u8[40,30,4]", (40, 30, 4)),
        ):
            pixels = rng.integers(0, 256, (5, *shape)).astype(np.uint8)
            ds = self.pack("".join(c for c in schema if c.isalnum()), schema, pixels)
            got = Tree(ds.show()._repr_html_()).pictures
            self.assertEqual(len(got), 5)
            for g, p in zip(got, pixels):
                np.testing.assert_array_equal(g, p[:, :, 0] if shape[2] == 1 else p)
        planes = rng.integers(0, 256, (2, 3, 20, 30)).astype(np.uint8)
        ds = self.pack("planes", "image:u8[3,20,30]", planes)
        self.assertEqual(ds.schema["image"].layout, "chw")
        np.testing.assert_array_equal(Tree(ds.show([1])._repr_html_()).pictures[0], planes[1].transpose(1, 2, 0))

    def test_large_ones_are_halved(self):
        rng = np.random.default_rng(6)
        for side, times in (((128, 96), 0), ((131, 70), 1), ((300, 517), 3), ((224, 224), 1)):
            pixels = rng.integers(0, 256, (1, *side, 3)).astype(np.uint8)
            want = pixels[0]
            for _ in range(times):
                want = halved(want)
            ds = self.pack(f"large{side[0]}", f"image:u8[{side[0]},{side[1]},3]", pixels)
            np.testing.assert_array_equal(Tree(ds.show()._repr_html_()).pictures[0], want)

    def test_other_numbers_are_spread_from_least_to_greatest(self):
        ramp = np.linspace(-2, 3, 64, dtype=np.float32).reshape(1, 8, 8, 1)
        odd = ramp.copy()
        odd[0, 0, 0], odd[0, 0, 1], odd[0, 0, 2] = np.nan, np.inf, -np.inf
        for a, special in ((ramp, None), (odd, [0, 255, 0])):
            page = self.pack(f"ramp{special is None}", "image:f32[8,8,1]", a).show()._repr_html_()
            got = Tree(page).pictures[0].ravel().tolist()
            if special:
                self.assertEqual(got[:3], special)
                self.assertEqual((got[3], got[63]), (0, 255))
            else:
                self.assertEqual(got, [round(x * 255 / 63) for x in range(64)])

    def test_names_stay_text(self):
        evil = "<script>alert('&')</script>"
        with open("classes", "w") as f:
            f.write(f"{evil}\nplain\n")
        a = data.images(10)
        a["label"] = [0, 1] * 5
        data.pack_raw("evil", a, "image:u8[40,40,3],label:i64", "--classes", "classes")
        ds = libshard.open("evil")
        tree = Tree(ds._repr_html_())
        self.assertEqual(tree.texts.count(evil), 1 + 4)  # in the table, and beneath four of eight pictures
        self.assertNotIn("script", tree.tags)
        self.assertEqual(len(tree.pictures), 8)
        for text in ("image", "uint8", "[40, 40, 3]", "image hwc", "plain", "5"):
            self.assertIn(text, tree.texts)
        self.assertIn("10 records in 1 shard", " ".join(tree.texts))
        self.assertRegex(
            repr(ds.show([1, -1])),
            r"^1    image: uint8\[40,40,3\]  label: plain\n9    image: uint8\[40,40,3\]  label: plain$",
        )
        ds.close()
        self.assertEqual(Tree(ds._repr_html_()).texts, [repr(ds)])
        with self.assertRaises(libshard.ClosedError):
            ds.show()

    def test_which_records(self):
        data.pack_images("many", 103)
        ds = libshard.open("many")
        self.assertEqual(ds.show(4).numbers, [0, 25, 51, 77])
        self.assertEqual(ds.show(1000).numbers, list(range(103)))
        self.assertEqual(ds.show(np.array([5, -3])).numbers, [5, 100])
        self.assertEqual(len(ds.show().numbers), 16)
        self.assertEqual(repr(ds.show(0)), "")
        for bad, error in (([103], IndexError), ("3", TypeError), (2.5, TypeError), (-1, libshard.ArgumentError)):
            with self.assertRaises(error):
                ds.show(bad)

    def test_damage_is_shown_beside_what_is_whole(self):
        a = data.pack_images("broken", 12)
        with open("broken/00000.shard", "r+b") as f:
            f.seek(f.read().index(a[5]["image"].tobytes()) + 9)
            f.write(bytes([a[5]["image"].ravel()[9] ^ 1]))
        ds = libshard.open("broken")
        tree = Tree(ds.show(12)._repr_html_())
        self.assertEqual(len(tree.pictures), 11)
        self.assertEqual(len([t for t in tree.texts if "00000.shard" in t]), 1)
        self.assertEqual(len(re.findall("00000.shard", repr(ds.show(12)))), 1)

    def test_what_is_no_picture_is_described(self):
        a = np.zeros(3, np.dtype([("x", "<f4", (4,)), ("y", "u1", (100,)), ("image", "u1", (9, 9, 7)), ("z", "<f8")]))
        a["x"], a["z"] = 0.5, 1 / 3
        data.pack_raw("plain", a, "x:f32[4],y:u8[100],image:u8[9,9,7],z:f64")
        self.assertEqual(
            repr(libshard.open("plain").show(1)),
            "0    x: [0.5, 0.5, 0.5, 0.5]  y: uint8[100]  image: uint8[9,9,7]  z: 0.333333",
        )
        self.assertEqual(Tree(libshard.open("plain").show(1)._repr_html_()).pictures, [])

    def test_sizes(self):
        self.assertEqual([_show.size_text(n) for n in (0, 1023, 1024, 1536 << 10, 5 << 40, 5 << 50)],
                         ["0 B", "1023 B", "1.0 KiB", "1.5 MiB", "5.0 TiB", "5120.0 TiB"])  # fmt: skip


class Escapes(unittest.TestCase):
    """What a dataset of somebody else holds drives no terminal, and forges no line."""

    HOSTILE = "\x1b]0;owned\x07\x9b2J\r\n\x7f\u202ecod\u2066\u200b\ufeff\U000e0041\\"
    EXACT = "\\033]0;owned\\a\\u009b2J\\r\\n\\177\\u202ecod\\u2066\\u200b\\ufeff\\U000e0041\\\\"

    def check(self, text, lines=1):
        self.assertEqual({c for c in text if not c.isprintable() and c != "\n"}, set())
        self.assertEqual(text.count("\n") + 1, lines)

    @classmethod
    def setUpClass(cls):
        schema = {"x": "u8[4]", "label": "i64", "caption": "text[<=99]", "lines": "text[<=2,99]"}
        with libshard.Writer("hostile", schema, classes=[cls.HOSTILE, "cat"], keys=True, replace=True) as w:
            for i in range(3):
                texts = {"caption": cls.HOSTILE, "lines": [cls.HOSTILE]}
                w.write({"x": [0] * 4, "label": 0, **texts}, key=f"{cls.HOSTILE}{i}")
        cls.ds = libshard.open("hostile")

    def test_the_function(self):
        for text, exact, talk in (
            ("plain caf\u00e9 \u200d", "plain caf\u00e9 \u200d", "plain caf\u00e9 \u200d"),
            ("a\\033", "a\\\\033", "a\\033"),
            ("\0\b\v", "\\000\\b\\v", "\\000\\b\\v"),
            ("\udcff", "\\377", "\\377"),  # a byte of a path
            (self.HOSTILE, self.EXACT, self.EXACT[:-1]),
        ):
            with self.subTest(text):
                self.assertEqual((shown(text, exact=True), shown(text)), (exact, talk))

    def test_all_code_points(self):
        want = {c for first, last in libshard._core.HIDDEN for c in range(first, last + 1)}
        self.assertTrue({0, 31, 127, 0x9B, 0x202E, 0xE007F} <= want and not {32, 126, 0x200D} & want)
        got = {c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and shown(chr(c)) != chr(c)}
        self.assertEqual(got, want)

    def test_shown(self):
        self.check(repr(self.ds.show(3)), lines=3)
        self.assertIn(f"label: {self.EXACT}  caption: {self.EXACT}  lines:", repr(self.ds.show(3)))
        self.assertIn(f"{self.EXACT}2", repr(self.ds.show(3)))
        for text in (self.ds._repr_html_(), self.ds.show(3)._repr_html_()):
            self.check(text.replace("\n", ""))
            self.assertIn("\\033]0;owned\\a", text)
        for thing in (self.ds, self.ds.schema, self.ds.stats, self.ds[0], libshard.Loader(self.ds, 3)):
            self.check(repr(thing))

    def test_exceptions_and_warnings(self):
        for call in (
            lambda: libshard.open("not\x1b[2Jthere"),
            lambda: libshard.Writer("n\x1b[2J\n", {"x": "no\x1btype"}),
            lambda: libshard.Loader(self.ds, 2, fields=["\x1b[2J"]),
            lambda: libshard.pack([{"x": 1}], {"x\x1b": "u8"}, "never"),
            lambda: self.ds.load_selection("\u202e\r"),
        ):
            with self.assertRaises(libshard.Error) as caught:
                call()
            e = caught.exception
            for text in (str(e), e.message, repr(e), *map(str, e.args)):
                self.check(text)
        again = libshard.ArgumentError(libshard.ArgumentError("a\x1b\\").message)
        self.assertEqual(str(again), "a\\033\\")  # not twice
        self.assertEqual(str(pickle.loads(pickle.dumps(again))), "a\\033\\")


if __name__ == "__main__":
    unittest.main()
