# SPDX-License-Identifier: Apache-2.0
"""``libshard.Image``: pixels are those of ``shardpack images``, and what goes wrong is named."""

import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
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


class UsedAgain:
    """Yields samples whose images lie in the same memory."""

    def __init__(self, rows):
        self.rows, self.memory = rows, {"a": bytearray(1 << 16), "b": bytearray(1 << 16)}

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        sample = dict(self.rows[i])
        for name, memory in self.memory.items():
            if isinstance(sample.get(name), bytes):
                memory[: len(sample[name])] = sample[name]
                sample[name] = memoryview(memory)[: len(sample[name])]
        return sample


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

    def test_the_recipe_says_whose_pixels_they_are(self):
        """A transform takes them from there, and without a line it would be rows-first."""
        tall = [{"image": f.read_bytes(), "label": 0} for f in write_images("tall")]

        def said(path):
            cat = str(pathlib.Path(os.environ["BUILD"]) / "bin" / "shardcat")
            found = json.loads(subprocess.check_output([cat, "info", path, "--json"]))["pixels"]
            lines = libshard.open(path)._provenance(0).decode().splitlines()
            self.assertEqual([line for line in lines if line.startswith("pixels ")], [f"pixels {found}"])
            return found

        for pixels in ("pillow-13", "pillow-12", "rows-first"):
            spec = {"image": libshard.Image(resize=16, crop=16, pixels=pixels), "label": "i64"}
            for workers in (None, 1):
                ds = libshard.pack(tall, spec, f"{pixels}{workers}", workers=workers)
                self.assertEqual(said(ds.path), pixels)
            sources = {"again": ds, "some": ds.select(range(2)), "twice": ds + ds, "zip": libshard.zip(ds, n=np.arange(4))}
            for name, source in sources.items():
                self.assertEqual(said(libshard.pack(source, None, f"{pixels} {name}").path), pixels)
        both = libshard.open("pillow-131") + libshard.open("rows-first1")
        with self.assertRaisesRegex(libshard.ArgumentError, "pixels of pillow-13 and of rows-first, and a dataset names"):
            libshard.pack(both, None, "both")
        self.assertEqual(said(libshard.pack(both, None, "both", provenance="mine\npixels pillow-12").path), "pillow-12")
        arrays = {"image": np.zeros((2, 8, 8, 3), np.uint8), "label": [0, 1]}
        self.assertEqual(said(libshard.pack(arrays, None, "arrays").path), "pillow-13")
        with libshard.Writer("by hand", "image:u8[8,8,3]") as writer:
            writer.write({"image": arrays["image"][0]})
        self.assertEqual(said("by hand"), "pillow-13")
        numbers = libshard.pack({"x": [1, 2]}, None, "numbers")
        self.assertNotIn(b"pixels", bytes(numbers._provenance(0)))

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
        data = [f.read_bytes() for f in self.files]
        source = [{"image": data[at : at + 2], "label": [at, at + 1]} for at in (0, 2)]
        with self.assertRaisesRegex(libshard.ArgumentError, "source has batches") as caught:
            libshard.pack(source, schema(), "refused", batched=True)
        # What the message tells to write gives the samples.
        samples = eval(re.search(r"\(dict.*", str(caught.exception)).group(), {"source": source})
        want = libshard.pack(({"image": data[i], "label": i} for i in range(4)), schema(), "one_by_one").id
        self.assertEqual(libshard.pack(samples, schema(), "of_batches").id, want)
        with self.assertRaisesRegex(libshard.ArgumentError, "libshard.Image is for libshard.pack"):
            libshard.Writer("refused", schema())
        self.assertFalse(os.path.exists("refused"))

    def test_columns(self):
        data = [f.read_bytes() for f in self.files]
        want = self.pack(Samples(self.files), "samples", shard_records=2).id
        for columns in ({"image": data, "label": [*range(4)]}, {"label": np.arange(4), "image": tuple(data), "more": [0] * 4}):
            for workers in (None, 0, 2):
                self.assertEqual(self.pack(columns, "columns", workers=workers, shard_records=2).id, want)
        options = {"resize": 32, "crop": 24}
        named = {"image": data, "label": list("abcd"), "text": [f"x{i}" for i in range(4)], "name": list("wxyz")}
        ds = libshard.pack(named, {"image": libshard.Image(**options), "label": None, "text": None}, "named", key="name",
                           classes=[*"abcd"])  # fmt: skip
        self.assertEqual([(ds.key(i), ds.classes[r["label"]], r["text"]) for i, r in enumerate(ds)],
                         [("wxyz"[i], "abcd"[i], f"x{i}") for i in range(4)])  # fmt: skip
        self.assertNotEqual(self.pack({"image": data[::-1], "label": [*range(4)]}, "columns").id, want)

    def test_two_images_in_a_record(self):
        """One has a bad file: the other one stays in step."""
        rows = [{"a": f.read_bytes(), "b": g.read_bytes(), "n": i} for i, (f, g) in enumerate(zip(self.files, self.files[::-1]))]
        kind = libshard.Image(resize=32, crop=24)
        want = libshard.pack(rows, {"a": kind, "b": kind, "n": "i64"}, "two")
        for i in range(4):
            self.assertEqual(bytes(want[i]["a"]), bytes(want[3 - i]["b"]))
        rows += [{**rows[0], "a": b"bad"}, {**rows[1], "b": "no"}, {"a": rows[0]["a"], "n": 7}, *rows]
        with self.assertWarnsRegex(UserWarning, "3 of 11 samples"):
            ds = libshard.pack(rows, {"a": kind, "b": kind, "n": "i64"}, "skipped", replace=True, on_error="skip")
        for i in range(8):
            for name in ("a", "b", "n"):
                self.assertEqual(bytes(ds[i][name]), bytes(want[i % 4][name]))

    def test_what_a_quarantine_keeps(self):
        """The bytes of the files, whichever part of a record is bad, and also if the source uses its memory again."""
        data = [f.read_bytes() for f in self.files]
        cut = data[1][:-40]  # of a PNG
        kind = libshard.Image(resize=32, crop=24)
        rows = [{"a": data[i % 4], "b": data[(i + 1) % 4], "n": i} for i in range(12)]
        rows[2] = {"a": cut, "b": data[2], "n": 2}
        rows[3] = {"a": data[2], "b": {"bytes": b"bad", "path": "x.jpg"}, "n": 3}
        rows[4] = {"a": data[3], "b": data[0], "n": "no number"}
        rows[6] = {"a": "a/path.jpg", "b": None, "n": 6}
        rows[7] = {"a": data[0], "n": 7}
        rows[8] = {"a": b"", "b": np.frombuffer(b"GIF8" + bytes(9), np.uint8), "n": 8}
        want = {
            2: ({"a": ("png", cut), "b": ("webp", data[2])}, {"n": 2}), 3: ({"a": ("webp", data[2]), "b": ("bin", b"bad")}, {"n": 3}),
            4: ({"a": ("bmp", data[3]), "b": ("jpg", data[0])}, {"n": "no number"}), 6: ({}, {"a": "a/path.jpg", "b": None, "n": 6}),
            7: ({"a": ("jpg", data[0])}, {"n": 7}), 8: ({"a": ("bin", b""), "b": ("gif", b"GIF8" + bytes(9))}, {"n": 8}),
        }  # fmt: skip
        for out, source, workers in (("k0", rows, 0), ("k2", rows, 2), ("ka", UsedAgain(rows), 0)):
            with self.assertWarnsRegex(UserWarning, f"6 of 12 samples.* what there is of them lies in {out}.quarantine"):
                libshard.pack(source, {"a": kind, "b": kind, "n": "i64"}, out, workers=workers, shard_records=5,
                              on_error="quarantine")  # fmt: skip
            text = pathlib.Path(f"{out}.quarantine/quarantine.jsonl").read_text()
            lines = {line["sample"]: line for line in map(json.loads, text.splitlines())}
            self.assertEqual({i: line["values"] for i, line in lines.items()}, {i: values for i, (_, values) in want.items()})
            for i, (files, _) in want.items():
                self.assertEqual(lines[i]["files"], {name: f"{i}/{name}.{ending}" for name, (ending, _) in files.items()})
                for name, (_, given) in files.items():
                    self.assertEqual(pathlib.Path(f"{out}.quarantine", lines[i]["files"][name]).read_bytes(), given, (i, name))
            # once mended, they are samples again
            mended = [{"a": (pathlib.Path(f"{out}.quarantine") / lines[4]["files"]["a"]).read_bytes(), "b": data[0], "n": 4}]
            self.assertEqual(len(libshard.pack(mended, {"a": kind, "b": kind, "n": "i64"}, f"{out}-mended")), 1)

    def test_samples_that_wait(self):
        """Some are read while others are decoded, and no more than a few.  A source may use its memory again."""
        data = [f.read_bytes() for f in self.files] * 8
        written, ahead, kinds = [], [], ("array", "list", "memoryview")

        class Again:
            def __init__(self, kind):
                self.kind, self.read, self.image = kind, 0, bytearray(max(map(len, data)))
                self.x, self.record = np.zeros(3, "i8"), {}

            def __iter__(self):
                for i, one in enumerate(data):
                    self.read += 1
                    self.image[: len(one)] = one
                    self.x[:] = i
                    x = {"array": self.x, "list": self.x.tolist(), "memoryview": memoryview(self.x)}[self.kind]
                    self.record |= {"image": memoryview(self.image)[: len(one)], "x": x}
                    yield self.record

        write = libshard.Writer.write
        for kind in kinds:
            source = Again(kind)

            def note(writer, record, key=None, source=source):
                ahead.append(source.read - len(written))
                written.append(record)
                write(writer, record, key)

            written.clear(), ahead.clear()
            with mock.patch.object(libshard.Writer, "write", note):
                ds = libshard.pack(source, {"image": libshard.Image(resize=32, crop=24), "x": "i64[3]"}, kind)
            self.assertEqual(max(ahead), 1 if kind == "memoryview" else 9)
            for i in range(32):
                self.assertEqual(ds[i]["x"].tolist(), [i] * 3)
                self.assertEqual(bytes(ds[i]["image"]), bytes(ds[i % 4]["image"]))
        with mock.patch("libshard._images._AHEAD_BYTES_MAX", 10000), mock.patch.object(libshard.Writer, "write", note):
            written.clear(), ahead.clear(), source.__init__("list")
            libshard.pack(source, {"image": libshard.Image(resize=32, crop=24), "x": "i64[3]"}, "few")
        self.assertLess(max(ahead), 9)

    def test_errors_come_in_order(self):
        """Sample 3 raises when it is read, and by then nobody has decoded sample 1, which is bad."""
        data = [f.read_bytes() for f in self.files]

        def fail():
            raise ZeroDivisionError("at 3")

        source = Samples([data[0], b"bad", data[2], data[3]], 3, fail)
        with self.assertRaisesRegex(libshard.RecordError, "sample 1, field 'image'"):
            self.pack(source, "order")
        with self.assertRaisesRegex(libshard.RecordError, "sample 1 of the source"):
            self.pack(source, "order", workers=0)
        with self.assertRaisesRegex(ZeroDivisionError, "at 3"):
            self.pack(Samples(data, 3, fail), "order")
        with self.assertRaisesRegex(ZeroDivisionError, "at 3"):
            self.pack((sample for sample in Samples(data, 3, fail)), "order")
        told = []
        with self.assertWarnsRegex(UserWarning, "2 of 4 samples"):
            ds = self.pack(source, "some", on_error=lambda i, e: told.append((i, type(e))))
        self.assertEqual(told, [(1, libshard.RecordError), (3, ZeroDivisionError)])
        self.assertEqual([int(r["label"]) for r in ds], [0, 2])

    def test_a_decoder_that_ends(self):
        """At one image, and with others that it was given ahead: these are decoded by the next one."""
        fake = (
            "import mmap, os, struct, sys\n"
            f"print('shardpack {libshard.__version__} u8 hwc 1,1,3', flush=True)\n"
            "read, write = sys.stdin.buffer.read, sys.stdout.buffer.write\n"
            "n, memory = 0, None\n"
            "while head := read(8):\n"
            "    memory = memory or mmap.mmap(int(sys.argv[-1].removeprefix('--memory=')), 0)\n"
            "    data = read(struct.unpack('<Q', head)[0])\n"
            "    if data[:4] == b'kill':\n"
            "        os.kill(os.getpid(), int(data[4:]))\n"
            "    at, n = n % (len(memory) // 3) * 3, n + 1\n"
            "    memory[at : at + 3] = data[:1] * 3\n"
            "    write(struct.pack('<cQQ', b'P', 0, 0))\n"
            "    sys.stdout.buffer.flush()\n"
        )
        pathlib.Path("fake.py").write_text(fake)
        os.makedirs("fakes", exist_ok=True)
        path = pathlib.Path("fakes/shardpack")
        path.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{os.path.abspath('fake.py')}' \"$@\"\n")
        path.chmod(0o755)
        large = b"x" * 300000  # several times a pipe of 64 KiB
        files = [b"a", large, b"kill%d" % signal.SIGSEGV, b"b" + large, b"c", b"kill%d" % signal.SIGSEGV, b"d"]
        with mock.patch.object(sys, "executable", os.path.abspath("fakes/python3")), \
             mock.patch("libshard._images._program", return_value=os.path.abspath("fakes/shardpack")):  # fmt: skip
            for pipe_bytes in (4096, 1 << 20):
                with mock.patch("libshard._images._PIPE_BYTES", pipe_bytes):
                    with self.assertRaisesRegex(libshard.RecordError, "sample 2, .*shardpack decode.*killed by signal 11"):
                        libshard.pack(Samples(files), schema(), "ends", replace=True)
                    with self.assertWarnsRegex(UserWarning, "2 of 7 samples were left out, .*the first is sample 2, field .image.: "):
                        ds = libshard.pack(Samples(files), schema(), "ends", replace=True, on_error="skip")
                    self.assertEqual([(int(r["label"]), bytes(r["image"])[:1]) for r in ds],
                                     [(0, b"a"), (1, b"x"), (3, b"b"), (4, b"c"), (6, b"d")])  # fmt: skip
            files[2] = b"kill%d" % signal.SIGKILL
            with self.assertRaisesRegex(libshard.OutOfMemoryError, "sample 2, .*killed by signal 9"):
                libshard.pack(Samples(files), schema(), "ends", replace=True)
            with self.assertRaises(libshard.RecordError) as caught:  # memory is not the fault of the sample
                libshard.pack(Samples(files), schema(), "ends", replace=True, on_error="skip")
            self.assertIn("sample 2", str(caught.exception))

    def test_a_decoder_that_is_killed_between_images(self):
        def kill():
            for pid in children():
                os.kill(pid, signal.SIGSEGV)

        with self.assertWarnsRegex(UserWarning, "1 of 4 samples.*killed by signal 11"):
            ds = self.pack(Samples(self.files, 2, kill), "skipped", on_error="skip")
        left_out = {0, 1, 2, 3} - {int(r["label"]) for r in ds}  # the first one that it had not answered
        self.assertTrue(len(left_out) == 1 and max(left_out) <= 2, left_out)
        self.assertEqual(len(self.pack(Samples(self.files, 2, lambda: None), "alive")), 4)

    def test_a_decoder_that_is_told_to_end(self):
        """As all processes of a job that is stopped: no sample is at fault, so none is left out."""
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            def stop(number=number):
                while found := children():  # it may be at work, and then reads on
                    os.kill(found[0], number)
                    time.sleep(0.01)

            with self.assertRaisesRegex(libshard.StorageError, "sample [0-2], .*the decoder.* was interrupted: .*call again"):
                self.pack(Samples(self.files, 2, stop), "stopped", on_error="skip")

    def test_the_program_alone(self):
        """Pixels come by the pipe as in shared memory, which has to be large enough."""
        command = [PACK, "decode", "--resize", "32", "--crop", "24"]
        data = [f.read_bytes() for f in self.files]
        want = self.pack(Samples(self.files), "alone")
        asked = b"".join(len(d).to_bytes(8, "little") + d for d in [data[0], b"bad", *data[1:]])
        piped = subprocess.run(command, input=asked, stdout=subprocess.PIPE, check=True).stdout.partition(b"\n")[2]
        size, pixels, kinds = 24 * 24 * 3, [], b""
        while piped:
            kind, sentence, count = struct.unpack("<cQQ", piped[:17])
            kinds += kind
            pixels += [piped[17 + sentence :][:count]] if count else []
            piped = piped[17 + sentence + count :]
        self.assertEqual(kinds, b"PBPPP")
        self.assertEqual(pixels, [bytes(r["image"]) for r in want])
        for places in (0, 1, 3, 5):
            memory = os.memfd_create("test")
            os.ftruncate(memory, places * size)
            run = subprocess.run([*command, f"--memory={memory}"], input=asked, capture_output=True, pass_fds=[memory])
            if places == 0:
                self.assertEqual(run.returncode, 2)
                self.assertRegex(run.stderr, f"--memory {memory}: has 0 bytes; an image needs {size}".encode())
            else:  # image n lies at place n modulo their number, and number 1 is bad
                last = {n % places: pixels[n - (n > 1)] for n in range(5) if n != 1}
                for place, wanted in last.items() if places != 1 else [(0, pixels[-1])]:
                    self.assertEqual(os.pread(memory, size, place * size), wanted, (places, place))
            os.close(memory)
        run = subprocess.run([*command, "--memory=77"], input=asked, capture_output=True)
        self.assertEqual(run.returncode, 2)
        self.assertIn(b"--memory 77: Bad file descriptor", run.stderr)

    def test_the_program_is_interrupted(self):
        """It exits with 130, as all verbs do: while it waits for an image, within one, and while nobody reads its answers."""
        command = [PACK, "decode", "--resize", "64", "--crop", "64"]
        asked = [len(d).to_bytes(8, "little") + d for d in (f.read_bytes() for f in self.files)]
        pathlib.Path("many").write_bytes(b"".join(asked) * 99)  # whose pixels are more than a pipe holds
        for given in b"", asked[0], asked[0][:99], open("many", "rb"):
            for number in (signal.SIGTERM, signal.SIGINT):
                is_file = not isinstance(given, bytes)
                if is_file:
                    os.lseek(given.fileno(), 0, os.SEEK_SET)  # the one before has read some of it
                with subprocess.Popen(command, stdin=given if is_file else subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, bufsize=0) as run:  # fmt: skip
                    said = b""
                    while not said.endswith(b"\n"):  # then it listens to signals
                        said += run.stdout.read(1)
                    if not is_file:
                        run.stdin.write(given)
                    run.send_signal(number)
                    self.assertEqual((run.wait(60), run.stderr.read()), (130, b""), (given, number))
            if is_file:
                given.close()
        self.assertEqual(subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True).returncode, 0)
        folder = os.open(".", os.O_RDONLY)
        run = subprocess.run(command, stdin=folder, capture_output=True)
        os.close(folder)
        self.assertEqual((run.returncode, b"stdin: Is a directory" in run.stderr), (3, True), run.stderr)

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

    def test_a_call_with_other_options_does_not_go_on(self):
        """The samples that are compared may have the same pixels with both, as images without an orientation have."""
        class Stops(list):
            def __getitem__(self, i):
                if i == stop:
                    raise ValueError("stopped")
                return {"image": list.__getitem__(self, i)}

        source = Stops([self.files[0].read_bytes()] * 9)
        base = {"resize": 16, "crop": 16}
        for given, now, words in (
            ({}, {"exif": "apply"}, "field 'image' has exif 'ignore', and now 'apply'"),
            ({}, {"mean": 0.5, "std": 1, "dtype": "f32"}, "another schema"),
            ({"filter": "box"}, {}, "field 'image' has filter 'box', and now 'bilinear'"),
            ({}, {"limit": "pixels=100M", "exif": "ignore"}, None),
        ):
            shutil.rmtree("stopped", ignore_errors=True)
            stop = 7
            with self.assertRaises(libshard.RecordError):
                libshard.pack(source, {"image": libshard.Image(**base, **given)}, "stopped", workers=0, shard_records=3)
            stop = None
            again = {"image": libshard.Image(**base, **now)}, "stopped"
            if words:
                with self.assertRaisesRegex(libshard.ExistsError, words):
                    libshard.pack(source, *again, workers=0, shard_records=3)
            else:
                self.assertEqual(len(libshard.pack(source, *again, workers=0, shard_records=3)), 9)
        shutil.rmtree("stopped")

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

            def lose():  # after the decoder of the first shards has ended at an image
                os.rename("bin/shardpack", "bin/lost")
                for pid in children():
                    os.kill(pid, signal.SIGSEGV)

            for options, says in (({}, "killed by signal 11"), ({"on_error": "skip"}, "needs the program shardpack")):
                fake(f"exec '{PACK}' \"$@\"")
                with mock.patch.dict(os.environ, PATH="/nowhere"):
                    with self.assertRaisesRegex(libshard.Error, says):
                        self.pack(Samples(self.files * 9, 2, lose), "lost", **options)
                self.assertFalse(os.path.exists("lost/dataset.manifest"))


if __name__ == "__main__":
    unittest.main()
