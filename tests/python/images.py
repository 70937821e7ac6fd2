# SPDX-License-Identifier: Apache-2.0
"""``libshard.Image``: pixels are those of ``shardpack images``, and what goes wrong is named."""

import os
import pathlib
import signal
import subprocess
import sys
import unittest
import warnings
from unittest import mock

import libshard
import numpy as np
from PIL import Image

PACK = str(pathlib.Path(os.environ["BUILD"]) / "bin" / "shardpack")
FORMATS = ("jpeg", "png", "webp", "bmp")


def children():
    """Processes that this one started and that have not ended, without those of multiprocessing."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                after = (entry / "stat").read_text().rpartition(")")[2].split()
                line = (entry / "cmdline").read_bytes()
                if int(after[1]) == os.getpid() and b"decode" in line.split(b"\0"):
                    found.append(int(entry.name))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def write_images(folder):
    """One of each format and of different shapes, and the files in the order of their names."""
    os.makedirs(folder)
    rng = np.random.default_rng(7)
    for i, (width, height) in enumerate([(90, 60), (61, 97), (40, 40), (33, 70)]):
        small = rng.integers(0, 256, (9, 9, 3), dtype=np.uint8)
        picture = Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC)
        picture.save(f"{folder}/{i}.{FORMATS[i]}", FORMATS[i])
    return sorted(pathlib.Path(folder).iterdir())


class Samples:
    """Images with their number; ``act`` is called before one of them is returned."""

    def __init__(self, files, at=-1, act=None):
        self.data, self.at, self.act = [f.read_bytes() if hasattr(f, "read_bytes") else f for f in files], at, act

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        if i >= len(self.data):
            raise IndexError(i)
        if i == self.at:
            self.act()
        return {"image": self.data[i], "label": i}


def schema(**options):
    return {"image": libshard.Image(**options), "label": "i64"}


class Images(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = write_images("pictures")
        os.makedirs("deep")
        Image.fromarray(np.arange(60 * 50, dtype=np.uint16).reshape(60, 50) * 21).save("deep/0.png")

    def tearDown(self):
        self.assertEqual(children(), [], "a decoder is alive")

    def pack(self, source, out, **options):
        return libshard.pack(source, schema(resize=32, crop=24), out, replace=True, **options)

    def test_pixels(self):
        for n, options in enumerate([
            {}, {"resize": 32, "crop": 24}, {"resize": 20, "fit": "pad"},
            {"resize": 30, "fit": "stretch", "layout": "chw"},
            {"resize": 50, "crop": 40, "filter": "lanczos", "pixels": "rows-first"},
            {"resize": 32, "crop": 24, "dtype": "f32", "mean": (0.5, 0.4, 0.3), "std": 0.25},
            {"resize": 32, "crop": 24, "dtype": "u16"}, {"resize": 32, "bits": 8},
            {"resize": 32, "crop": 24, "sandbox": True},
        ]):  # fmt: skip
            words, is_deep = [], options.get("dtype") == "u16"
            folder, files = ("deep", [pathlib.Path("deep/0.png")]) if is_deep else ("pictures", self.files)
            for name, value in options.items():
                if name == "sandbox":
                    continue
                value = "0.25,0.25,0.25" if name == "std" else ",".join(map(str, value)) if name == "mean" else value
                words += [f"--{name}", str(value)]
            subprocess.run([PACK, "images", folder, "-o", f"c{n}", "--no-label", "--order", "source", "-q", *words],
                           check=True)  # fmt: skip
            want = libshard.open(f"c{n}")
            got = libshard.pack(Samples(files), schema(**options), f"p{n}")
            self.assertEqual(len(got), len(want))
            a, b = got.schema["image"], want.schema["image"]
            self.assertEqual((a.dtype, a.shape, a.layout, a.semantic), (b.dtype, b.shape, b.layout, b.semantic))
            for i in range(len(got)):
                self.assertEqual(bytes(got[i]["image"]), bytes(want[i]["image"]), (options, i))
                self.assertEqual(int(got[i]["label"]), i)

    def test_other_options_give_other_pixels(self):
        a = libshard.pack(Samples(self.files), schema(resize=32, crop=24), "oa")
        b = libshard.pack(Samples(self.files), schema(resize=32, crop=24, filter="box"), "ob")
        self.assertNotEqual(bytes(a[0]["image"]), bytes(b[0]["image"]))

    def test_processes(self):
        many = [f.read_bytes() for f in self.files] * 8
        ids = {self.pack(Samples(many), f"w{n}", workers=n, shard_records=5).id for n in (0, 1, 2)}
        ids.add(self.pack(Samples(many), "w", shard_records=5).id)
        ids.add(self.pack(Samples(many), "f", shard_records=5, workers=2, start_method="fork").id)
        self.assertEqual(len(ids), 1)
        self.assertNotIn(self.pack(Samples(many[1:]), "other", shard_records=5).id, ids)

    def test_bytes_of_other_types(self):
        data = self.files[0].read_bytes()
        kinds = [data, bytearray(data), memoryview(data), np.frombuffer(data, np.uint8)]
        ds = self.pack(Samples(kinds), "kinds")
        self.assertEqual(len({bytes(ds[i]["image"]) for i in range(4)}), 1)

    def test_bad(self):
        whole = self.files[0].read_bytes()
        for bad, says in ((b"abc", "not an image"), (b"", ""), (whole[: len(whole) // 2], ""),
                          ("pictures/0.jpeg", "read_bytes"), (None, "not the bytes"),
                          (7, "not the bytes")):  # fmt: skip
            files = [*self.files, bad, *self.files]
            with self.assertRaises(libshard.RecordError) as caught:
                self.pack(Samples(files), "bad")
            self.assertIn("sample 4, field 'image': ", str(caught.exception))
            self.assertIn(says, str(caught.exception))
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                ds = self.pack(Samples(files), "skipped", on_error="skip")
            self.assertEqual([int(ds[i]["label"]) for i in range(len(ds))], [0, 1, 2, 3, 5, 6, 7, 8])
            self.assertIn("1 of 9 samples", str(told[-1].message))
            self.assertEqual(bytes(ds[4]["image"]), bytes(ds[0]["image"]))

    def test_refused(self):
        for options, says in (({"mean": 3}, "--mean needs"), ({"resize": 8, "crop": 9}, "crop"),
                              ({"dtype": "f16"}, "dtype"), ({"fit": "area"}, "--fit"),
                              ({"resize": -1}, "resize")):  # fmt: skip
            with self.assertRaises(libshard.ArgumentError) as caught:
                libshard.pack(Samples(self.files), schema(**options), "refused")
            self.assertIn(says, str(caught.exception))
        with self.assertRaisesRegex(libshard.ArgumentError, "source has columns"):
            libshard.pack({"image": [b""], "label": [1]}, schema(), "refused")
        with self.assertRaisesRegex(libshard.ArgumentError, "source has batches"):
            libshard.pack([{"image": [b""], "label": [1]}], schema(), "refused", batched=True)
        with self.assertRaisesRegex(libshard.ArgumentError, "libshard.Image is for libshard.pack"):
            libshard.Writer("refused", schema())
        self.assertFalse(os.path.exists("refused"))

    def test_killed(self):
        def kill(number):
            return lambda: [os.kill(pid, number) for pid in children()]

        with self.assertRaisesRegex(libshard.OutOfMemoryError, "sample 2, .*killed by signal 9"):
            self.pack(Samples(self.files, 2, kill(signal.SIGKILL)), "killed")
        with self.assertRaisesRegex(libshard.RecordError, "sample 2, .*shardpack decode.*killed by signal 11"):
            self.pack(Samples(self.files, 2, kill(signal.SIGSEGV)), "killed")
        with self.assertRaises(libshard.RecordError) as caught:  # memory is not the fault of the sample
            self.pack(Samples(self.files, 2, kill(signal.SIGKILL)), "killed", on_error="skip")
        self.assertIn("sample 2", str(caught.exception))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            ds = self.pack(Samples(self.files, 2, kill(signal.SIGSEGV)), "skipped", on_error="skip")
        self.assertEqual([int(ds[i]["label"]) for i in range(len(ds))], [0, 1, 3])
        self.assertIn("killed by signal 11", str(told[-1].message))
        self.assertEqual(len(self.pack(Samples(self.files, 2, lambda: None), "alive")), 4)

    def test_interrupted(self):
        def interrupt():
            self.assertEqual(len(children()), 1)
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            self.pack(Samples(self.files, 2, interrupt), "interrupted")

    def test_orientation(self):
        exif = Image.Exif()
        exif[0x0112] = 6
        Image.open(self.files[0]).save("turned.jpg", exif=exif)
        source = Samples([pathlib.Path("turned.jpg")] * 3)
        with self.assertWarnsRegex(UserWarning, "sample 0, .*orientation.*exif='apply'") as caught:
            self.pack(source, "turned")
        self.assertEqual(len(caught.warnings), 1)
        ignored, applied = (libshard.pack(source, schema(resize=32, crop=24, exif=how), f"exif-{how}")
                            for how in ("ignore", "apply"))  # fmt: skip
        self.assertNotEqual(bytes(ignored[0]["image"]), bytes(applied[0]["image"]))

    def test_program(self):
        os.makedirs("bin", exist_ok=True)

        def fake(text):
            path = pathlib.Path("bin/shardpack")
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)

        with mock.patch.object(sys, "executable", os.path.abspath("bin/python3")):
            with mock.patch.dict(os.environ, PATH="/nowhere"):
                with self.assertRaisesRegex(libshard.NotFoundError, "neither beside this Python nor in PATH"):
                    self.pack(Samples(self.files), "program")
            for text, says in (("echo shardpack 9.9.9 u8 hwc 24,24,3; exec sleep 99", "of release 9.9.9, and this"),
                               ("echo \"shardpack: unknown verb 'decode'\" >&2; exit 2", "of the same release"),
                               ("exit 5", "ended with 5"), ("kill -9 $$", "ended with -9")):  # fmt: skip
                fake(text)
                with self.assertRaisesRegex(libshard.ArgumentError, says):
                    self.pack(Samples(self.files), "program")
            fake(f"exec '{PACK}' \"$@\"")
            self.assertEqual(len(self.pack(Samples(self.files), "program")), 4)


if __name__ == "__main__":
    unittest.main()
