# SPDX-License-Identifier: Apache-2.0
"""Datasets of other loaders, written here by the layout of each format.

What they pack to has the pixels, labels and values of a folder of the same images.  Whatever is
damaged ends in a sentence, or leaves the index as it was.
"""

import bz2
import contextlib
import gzip
import hashlib
import io
import json
import os
import pathlib
import pickle
import platform
import shutil
import struct
import subprocess
import sys
import tracemalloc
import unittest
from unittest import mock

import libshard
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from libshard import _core, _from_beton, _from_tfrecord, convert

BUILD, ROOT = (pathlib.Path(os.environ[name]) for name in ("BUILD", "ROOT"))
PACK = str(BUILD / "bin" / "shardpack")
SIZE = ["--resize", "32", "--crop", "32", "--order", "source", "-q"]


# ---- the writers ----


def crc(data):
    value = _core.crc32c(data, 0, len(data), True)
    return struct.pack("<I", ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def message(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def example(values, packed=True):
    features = b""
    for name, value in values.items():
        items = value if isinstance(value, list) else [value]
        if isinstance(items[0], bytes):
            feature = message(1, b"".join(message(1, v) for v in items))
        elif isinstance(items[0], float):
            numbers = [struct.pack("<f", v) for v in items]
            feature = message(2, message(1, b"".join(numbers)) if packed else b"".join(b"\x0d" + n for n in numbers))
        else:
            numbers = [varint(v) for v in items]
            feature = message(3, message(1, b"".join(numbers)) if packed else b"".join(b"\x08" + n for n in numbers))
        features += message(1, message(1, name.encode()) + message(2, feature))
    return message(1, features)


def tfrecord(out, rows, packed=True):
    out.mkdir()
    for k in range(2):
        with open(out / f"a.tfrecord-0000{k}-of-00002", "wb") as f:
            for row in rows[k::2]:
                data = example(row, packed)
                head = struct.pack("<Q", len(data))
                f.write(head + crc(head) + data + crc(data))


def shards(rows, of, encode):
    """(name, bytes, rows) of files of u32 n, u32 offset[n + 1], something, samples."""
    step = 4 if len(rows) < 100 else len(rows)
    for k in range(0, len(rows), step):
        samples = [encode(row) for row in rows[k : k + step]]
        head = 8 + 4 * len(samples) + len(of)
        places = np.cumsum([head] + [len(s) for s in samples]).astype("<u4")
        yield k // 4, struct.pack("<I", len(samples)) + places.tobytes() + of + b"".join(samples), len(samples)


def mds(out, rows, code=False, pack=None):
    out.mkdir()
    encodings = {"caption": "str", "image": "bytes", "label": "int", "meta": "json", "score": "float32"}
    encodings |= {"zcode": "pkl"} if code else {}
    sizes = [{"label": 8, "score": 4}.get(name) for name in encodings]

    def encode(row):
        data = {"caption": row["caption"], "image": row["image"], "label": struct.pack("<q", row["label"]),
                "meta": json.dumps({"n": row["label"]}).encode(), "score": struct.pack("<f", row["score"]),
                "zcode": pickle.dumps({})}  # fmt: skip
        parts = [data[name] for name in encodings]
        return b"".join(struct.pack("<I", len(p)) for p, s in zip(parts, sizes, strict=True) if s is None) + b"".join(parts)

    described = []
    for i, data, count in shards(rows, b"{}", encode):
        name, zipped = f"shard.{i:05}.mds", None
        if pack and i != 2:  # one of them is there as it was
            packed = (gzip if pack == "gz" else bz2).compress(data)
            zipped = {"basename": name + "." + pack, "bytes": len(packed), "hashes": {"sha1": hashlib.sha1(packed).hexdigest()}}
        (out / (zipped["basename"] if zipped else name)).write_bytes(packed if zipped else data)
        hashes = {"sha1": hashlib.sha1(data).hexdigest(), "xxh64": "0"}
        described.append({"format": "mds", "version": 2, "samples": count, "compression": pack, "zip_data": zipped,
                          "column_names": list(encodings), "column_encodings": list(encodings.values()),
                          "column_sizes": sizes, "hashes": list(hashes), "size_limit": 1 << 26,
                          "raw_data": {"basename": f"shard.{i:05}.mds", "bytes": len(data), "hashes": hashes}})  # fmt: skip
    (out / "index.json").write_text(json.dumps({"version": 2, "shards": described}))


def litdata(out, rows, code=False):
    out.mkdir()
    forms = {"caption": "str", "image": "bytes", "label": "int", "score": "float"} | ({"zcode": "pickle"} if code else {})

    def encode(row):
        parts = [row["caption"], row["image"], struct.pack("<q", row["label"]), struct.pack("<d", row["score"])]
        parts += [pickle.dumps({})] if code else []
        return b"".join(struct.pack("<I", len(p)) for p in parts) + b"".join(parts)

    chunks = []
    for i, data, count in shards(rows, b"", encode):
        (out / f"chunk-0-{i}.bin").write_bytes(data)
        chunks.append({"chunk_bytes": len(data), "chunk_size": count, "dim": None, "filename": f"chunk-0-{i}.bin"})
    leaf = {"type": None, "context": None, "children_spec": []}
    spec = [1, {"type": "builtins.dict", "context": json.dumps(list(forms)), "children_spec": [leaf] * len(forms)}]
    config = {"chunk_bytes": None, "chunk_size": 4, "compression": None, "data_format": list(forms.values()),
              "data_spec": json.dumps(spec), "encryption": None, "item_loader": "PyTreeLoader"}  # fmt: skip
    (out / "index.json").write_text(json.dumps({"chunks": chunks, "config": config}))


def frame(data, kind=0):
    return struct.pack("<II", 0xCED7230A, kind << 29 | len(data)) + data + bytes(-len(data) % 4)


def recordio(out, rows):
    out.mkdir()
    with open(out / "train.rec", "wb") as f:
        f.write(frame(struct.pack("<IfQQ2f", 2, 0, 0, 0, 8, 9)))  # InsightFace's header
        for i, row in enumerate(rows):
            if i % 2:
                f.write(frame(struct.pack("<IfQQ", 0, row["label"], i, 0) + row["image"]))
            else:
                f.write(frame(struct.pack("<IfQQf", 1, 0, i, 0, row["label"]) + row["image"]))


def beton(out, rows, raw=False):
    out.mkdir()
    fields = [(2, b"image"), (1, b"label"), (0, b"score"), (5, b"caption"), (4, b"array")]
    begin = 24 + 1041 * len(fields) + 56 * len(rows)
    body, table, metadata = bytearray(), [], bytearray()
    for i, row in enumerate(rows):
        places = []
        caption = json.dumps(row["caption"].decode()).encode() + b"\0"
        pixels = raw and i % 3 == 0
        for piece in (row["pixels"].tobytes() if pixels else row["image"]), caption:
            places.append(begin + len(body))
            table.append((i, places[-1], len(piece)))
            body += piece + b"\0" * 5
        height, width = row["pixels"].shape[:2] if pixels else (40, 40)
        metadata += struct.pack("<BHHQ3xqdQQQ", pixels, width, height, places[0], row["label"], row["score"], places[1],
                                len(caption), 0)  # fmt: skip
    data = struct.pack("<HHIQQ", 2, len(fields), 4096, len(rows), begin + len(body))
    data += b"".join(struct.pack("<B16s1024x", kind, name) for kind, name in fields)
    data += metadata + body + b"".join(struct.pack("<3Q", *t) for t in reversed(table))
    (out / "a.beton").write_bytes(data)


def lmdb(out, rows, page=4096):
    """A branch with two leaves; values are large, small ones lie in the leaf."""
    out.mkdir()
    entries = [(b"%04d" % i, row["image"]) for i, row in enumerate(rows)] + [(b"__len__", b"24")]
    pages = {}
    free = 5

    def node_page(number, flags, nodes):
        upper, places, body = page, [], b""
        for node in nodes:
            node += b"\0" * (len(node) % 2)
            upper -= len(node)
            places.append(upper)
            body = node + body
        lower = 16 + 2 * len(nodes)
        pages[number] = struct.pack(f"<QHHHH{len(nodes)}H", number, 0, flags, lower, upper, *places) + bytes(upper - lower) + body

    half = len(entries) // 2
    for leaf, part in (2, entries[:half]), (3, entries[half:]):
        nodes = []
        for key, value in part:
            if len(value) < 500:
                nodes.append(struct.pack("<4H", len(value), 0, 0, len(key)) + key + value)
                continue
            count = -(-(16 + len(value)) // page)
            pages[free] = struct.pack("<QHHI", free, 0, 4, count) + value + bytes(count * page - 16 - len(value))
            nodes.append(struct.pack("<4H", len(value) & 65535, len(value) >> 16, 1, len(key)) + key + struct.pack("<Q", free))
            free += count
        node_page(leaf, 2, nodes)
    node_page(4, 1, [struct.pack("<4H", 2, 0, 0, 0), struct.pack("<4H", 3, 0, 0, 4) + entries[half][0]])
    none = (1 << 64) - 1
    for k, (txn, root) in enumerate([(7, 4), (6, 2)]):
        head = struct.pack("<QHHI", k, 0, 8, 0) + struct.pack("<IIQQ", 0xBEEFC0DE, 1, 0, 1 << 20)
        head += struct.pack("<IHHQQQQQ", page, 0, 0, 0, 0, 0, 0, none)
        head += struct.pack("<IHHQQQQQ", 0, 0, 2, 1, 2, 0, len(entries), root) + struct.pack("<QQ", free - 1, txn)
        pages[k] = head + bytes(page - len(head))
    (out / "data.mdb").write_bytes(b"".join(pages[n] for n in sorted(pages)))


def none_in_c(block, first, base, without):
    """In place of _core.tfrecords(): the code in Python reads all."""
    return [], first


WRITERS = {"tfrecord": tfrecord, "mds": mds, "litdata": litdata, "recordio": recordio, "beton": beton, "lmdb": lmdb}


def setUpModule():
    global rows, want
    subprocess.run([sys.executable, ROOT / "tests/cli/make_images.py", "src", "24", "3"], check=True)
    paths = sorted(pathlib.Path("src").glob("*/*"))
    rows = [{"image": p.read_bytes(), "label": int(p.parent.name[-2:]), "caption": f"picture {i}".encode(), "score": i / 2}
            for i, p in enumerate(paths)]  # fmt: skip
    subprocess.run([PACK, "images", "src", "-o", "ref", *SIZE], check=True)
    want = libshard.open("ref")


def run(kind, source, out, *options):
    """Exit code and all that it said."""
    done = subprocess.run([sys.executable, "-W", "error", "-m", "libshard.convert", kind, source, out, "--shardpack", PACK,
                           *options], capture_output=True, text=True)  # fmt: skip
    return done.returncode, done.stderr


def index(kind, source, **options):
    table = io.StringIO()
    convert.index(kind, source, table, **options)
    return [json.loads(line) for line in table.getvalue().split("\n")[:-1]]


class Convert(unittest.TestCase):
    def same(self, out, order=range(24), labels=True):
        with libshard.open(out) as got:
            self.assertEqual(len(got), 24)
            for i, k in enumerate(order):
                self.assertEqual(bytes(got[i]["image"]), bytes(want[k]["image"]), (out, i))
                self.assertEqual(int(got[i]["label"]) if labels else 0, int(want[k]["label"]) if labels else 0)

    def test_each_kind(self):
        for kind, write in WRITERS.items():
            write(pathlib.Path(kind), rows)
            more = ["--no-label"] if kind == "lmdb" else []
            more += ["--columns", "score:f32", "--field", "caption:kind=text,max=20"] if kind not in ("lmdb", "recordio") else []
            code, said = run(kind, kind, kind + ".ds", *SIZE, *more)
            self.assertEqual(code, 0, said)
            self.assertIn("24 records in " + kind, said)
            order = [*range(0, 24, 2), *range(1, 24, 2)] if kind == "tfrecord" else range(24)
            self.same(kind + ".ds", order, kind != "lmdb")
            self.assertFalse(os.path.exists(kind + ".ds.extents.jsonl"))
            with libshard.open(kind + ".ds") as got:
                for i, k in enumerate(order if more and kind != "lmdb" else ()):
                    self.assertEqual((got[i]["caption"], float(got[i]["score"])), (f"picture {k}", k / 2))
        self.assertEqual(libshard.open("mds.ds").key(5), "shard.00001.mds/1")
        self.assertEqual(libshard.open("lmdb.ds").key(5), "0005")
        self.assertIn("hashes of kind xxh64 are not compared", run("mds", "mds", "again", "--dry-run", *SIZE)[1])
        self.assertIn("records without an image are left out", run("recordio", "recordio", "again", "--dry-run", *SIZE)[1])
        self.assertIn("entry '__len__' is left out", run("lmdb", "lmdb", "again", "--no-label", "--dry-run", *SIZE)[1])
        self.assertIn("field 'array' is left out", run("beton", "beton", "again", "--dry-run", *SIZE)[1])

    def test_one_file_and_numbers_that_are_not_packed(self):
        tfrecord(pathlib.Path("unpacked"), rows, packed=False)
        tfrecord(pathlib.Path("packed"), rows)
        for name in os.listdir("packed"):
            a, b = (index("tfrecord", f"{folder}/{name}") for folder in ("packed", "unpacked"))
            self.assertEqual([{k: v for k, v in r.items() if k != "offset"} for r in a],
                             [{k: v for k, v in r.items() if k != "offset"} for r in b])  # fmt: skip
        tfrecord(pathlib.Path("lists"), [r | {"many": [1, -2, 1 << 62], "floats": [1.5, 2.5]} for r in rows])
        self.assertEqual(index("tfrecord", "lists")[0]["many"], [1, -2, 1 << 62])

    def test_crc32c(self):
        self.assertEqual(_core.crc32c(b"123456789"), 0xE3069283)  # RFC 3720, B.4
        self.assertEqual(_core.crc32c(bytes(32)), 0x8A9136AA)
        for n in range(70):
            data = bytes(range(n))
            self.assertEqual(_core.crc32c(data), _core.crc32c(data, 0, n, True))
        if platform.machine() == "x86_64":
            flags = next(s for s in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if s.startswith("flags"))
            self.assertIs(_core.CRC32C_IS_FAST, "sse4_2" in flags.split())
        else:
            self.assertIs(_core.CRC32C_IS_FAST, False)

    def test_what_is_the_image_and_the_label(self):
        two = [r | {"other": r["image"], "class": r["label"]} for r in rows[:4]]
        tfrecord(pathlib.Path("two"), two)
        none = [{"pixels": bytes(300), "label": 1} for _ in range(4)]
        tfrecord(pathlib.Path("none"), none)
        for what, options, words in [
            ("two", {}, "has images 'image', 'other'; say which one with --image NAME"),
            ("two", {"image": "x"}, "has no value 'x'; it has 'image', 'label'"),
            ("two", {"image": "other"}, "has 'label', 'class'; say which one is the label with --label NAME"),
            ("two", {"image": "other", "label": "y"}, "has no value 'y'; it has"),
            ("none", {}, "has no value that begins as an image does"),
        ]:
            with self.assertRaisesRegex(convert.ConvertError, words):
                index("tfrecord", what, **options)
        self.assertEqual(len(index("tfrecord", "two", image="other", label="class")), 4)
        self.assertNotIn("label", index("tfrecord", "two", image="other", no_label=True)[0])

    def test_compressed_shards(self):
        self.addCleanup(shutil.rmtree, "zipped", True)
        mds(pathlib.Path("plain"), rows)
        self.assertEqual(run("mds", "plain", "plain.ds", *SIZE)[0], 0)
        for pack in "gz", "bz2":
            shutil.rmtree("zipped", ignore_errors=True)
            mds(pathlib.Path("zipped"), rows, pack=pack)
            code, said = run("mds", "zipped", pack + ".ds", *SIZE)
            self.assertEqual(code, 0, said)
            self.same(pack + ".ds")
            self.assertEqual([libshard.open(pack + ".ds").key(i) for i in range(24)],
                             [libshard.open("plain.ds").key(i) for i in range(24)])  # fmt: skip
            self.assertFalse(os.path.exists(pack + ".ds.unpacked"))
        path = pathlib.Path("zipped/shard.00001.mds.bz2")
        good = path.read_bytes()
        index_json = json.loads(pathlib.Path("zipped/index.json").read_text())
        for said_bytes, data, words in [
            (None, good[:-9], "shard.00001.mds.bz2: has .* bytes, and index.json says .*: it is cut"),
            (None, good[:99] + b"?" + good[100:], "shard.00001.mds.bz2: its sha1 is"),
            (1000, good, "shard.00001.mds.bz2: unpacks to more than 1000 bytes, which it should have"),
            (1 << 30, good, "shard.00001.mds.bz2: unpacks to .* bytes, and should have 1073741824"),
            ("gz", good, "shard.00001.mds.bz2: is not whole, or is not compressed with gz, as index.json says"),
            ("lz9", good, "is compressed with 'lz9', which is not one of gz, bz2, zstd, br, snappy"),
        ]:
            changed = json.loads(json.dumps(index_json))
            if isinstance(said_bytes, str):
                changed["shards"][1]["compression"] = said_bytes
            elif said_bytes:
                changed["shards"][1]["raw_data"]["bytes"] = said_bytes
            pathlib.Path("zipped/index.json").write_text(json.dumps(changed))
            path.write_bytes(data)
            shutil.rmtree("bad.unpacked", ignore_errors=True)
            with self.assertRaisesRegex(convert.ConvertError, words):
                index("mds", "zipped", scratch="bad.unpacked")
        pathlib.Path("zipped/index.json").write_text(json.dumps(index_json))
        path.write_bytes(good)
        with self.assertRaisesRegex(convert.ConvertError, "is compressed, so it cannot be read in place; give index.. a folder as"):
            index("mds", "zipped")
        # A folder of that name which somebody else made stays as it is.
        os.mkdir("own.unpacked")
        pathlib.Path("own.unpacked/mine").write_text("")
        code, said = run("mds", "zipped", "own", *SIZE)
        self.assertEqual((code, os.listdir("own.unpacked")), (1, ["mine"]))
        self.assertIn("own.unpacked: has files that were not unpacked here", said)
        # What is unpacked stays if packing fails, and is not unpacked again.
        self.assertEqual(run("mds", "zipped", "fails", *SIZE, "--columns", "nothing:i64")[0], 1)
        kept = pathlib.Path("fails.unpacked/shard.00000.mds")
        before = kept.stat().st_ino
        code, said = run("mds", "zipped", "fails", *SIZE, "--columns", "nothing:i64")
        self.assertIn("what was unpacked is kept, and need not be unpacked again: fails.unpacked", said)
        self.assertEqual(kept.stat().st_ino, before)
        self.assertEqual(run("mds", "zipped", "fails", *SIZE)[0], 0)
        self.same("fails")
        self.assertFalse(kept.exists())

    def test_litdata_that_is_compressed(self):
        """Whole chunks, and samples in frames; gz is a stand-in for zstd, which this Python may lack."""
        def pack(folder, level, change=lambda data: data, rows=rows):
            shutil.rmtree(folder, ignore_errors=True)
            litdata(pathlib.Path(folder), rows)
            path = pathlib.Path(folder, "index.json")
            described = json.loads(path.read_text())
            described["config"] |= {"compression": "gz:3", "compression_level": level}
            for i, chunk in enumerate(described["chunks"]):
                old = pathlib.Path(folder, chunk["filename"])
                data = old.read_bytes()
                if level == "batch" and i != 1:  # which is plain, as LitData leaves some
                    count = struct.unpack_from("<I", data)[0]
                    head = 4 * (count + 2)
                    offsets = np.frombuffer(data[4:head], "<u4") - head
                    half = int(offsets[count // 2])
                    parts = [data[head : head + half], data[head + half :]]
                    packed = [gzip.compress(p) for p in parts]
                    at = 24 + 4 * (count + 1) + 24 * 2
                    data = struct.pack("<8sHHIII", b"LDFZ01", 1, 0, count, count // 2, 2) + offsets.astype("<u4").tobytes()
                    for k, (part, zipped) in enumerate(zip(parts, packed, strict=True)):
                        data += struct.pack("<IIQII", k, 1, at, len(zipped), len(part))
                        at += len(zipped)
                    data = change(bytearray(data + b"".join(packed)))
                    chunk["chunk_bytes"] = len(data)
                elif level != "batch":
                    old.unlink()
                    old = old.with_suffix(".gz.bin")
                    data = gzip.compress(data)
                    chunk["filename"] = old.name
                old.write_bytes(data)
            path.write_text(json.dumps(described))

        for level in None, "chunk", "batch":
            pack("lz", level)
            code, said = run("litdata", "lz", "lz.ds", *SIZE, "--replace")
            self.assertEqual(code, 0, said)
            self.same("lz.ds")
        # What an earlier run left of another source, also as a link to a file that is plain, is not read.
        self.assertEqual(run("litdata", "lz", "left", *SIZE, "--columns", "nothing:i64")[0], 1)
        self.assertTrue(os.path.islink("left.unpacked/chunk-0-1.bin"))
        pack("other", "batch", rows=rows[::-1])
        code, said = run("litdata", "other", "left", *SIZE)
        self.assertEqual(code, 0, said)
        self.assertEqual([int(r["label"]) for r in libshard.open("left")], [r["label"] for r in rows[::-1]])
        frame = 24 + 4 * 5  # of four samples
        for at, value, words in [(8, b"\2", "has samples in frames of version 2"), (24 + 16, b"\xff\xff\xff\xff", "unpacks to"),
                                 (frame + 8, b"\xff" * 8, r"frame 0, \d+ bytes at byte 18446744073709551615, ends beyond"),
                                 (frame + 20, b"\1\0\0\0", r"frame 0 unpacks to \d+ bytes, and the file says 1$"),
                                 (frame + 16, b"\4\0\0\0", "is not whole, or is not compressed with gz"),
                                 (12, b"\xff\xff\xff\x7f", "the table of samples of 8589934592 bytes at byte 24 ends beyond")]:  # fmt: skip
            def change(data, at=at, value=value):
                data[at : at + len(value)] = value
                return data
            shutil.rmtree("bad.unpacked", ignore_errors=True)
            pack("lz", "batch", change)
            with self.assertRaisesRegex(convert.ConvertError, words):
                index("litdata", "lz", scratch="bad.unpacked")

    def test_pixels(self):
        from PIL import Image

        arrays = [np.asarray(Image.open(io.BytesIO(r["image"])).convert("RGB")) for r in rows]
        plain = [r | {"pixels": a} for r, a in zip(rows, arrays, strict=True)]
        beton(pathlib.Path("raw"), plain, raw=True)  # each third one is pixels, the others are JPEG
        self.assertEqual(run("beton", "raw", "raw.ds", *SIZE)[0], 0)
        self.same("raw.ds")
        self.refused("beton", "sample 0: field 'image' has .* bytes, and 7 x .* x 3 pixels have",
                     lambda d: d[: 24 + 1041 * 5 + 3] + b"\7\0" + d[24 + 1041 * 5 + 5 :],
                     write=lambda out, _: beton(out, plain, raw=True), scratch="bad.unpacked")  # fmt: skip
        u32 = lambda *n: struct.pack(f"<{len(n)}I", *n)  # noqa: E731
        forms = {
            "pil": lambda a: u32(a.shape[1], a.shape[0], 3) + b"RGB" + a.tobytes(),
            "ndarray": lambda a: b"\x08\x0d" + struct.pack("<3H", *a.shape) + a.tobytes(),
            "ndarray:uint8": lambda a: b"\x0d" + struct.pack("<3H", *a.shape) + a.tobytes(),
        }

        def check(kind, write, forms):
            for form, encode in forms.items():
                shutil.rmtree("pixels", ignore_errors=True)
                write(pathlib.Path("pixels"), [r | {"image": encode(a)} for r, a in zip(rows, arrays, strict=True)])
                path = pathlib.Path("pixels/index.json")
                path.write_text(path.read_text().replace('["str", "bytes"', f'["str", "{form}"'))
                self.assertEqual(run(kind, "pixels", "pixels.ds", *SIZE, "--replace")[0], 0)
                self.same("pixels.ds")

        check("mds", mds, forms)
        tensor = lambda a: struct.pack(">5I", 11, 3, *a.shape) + a.tobytes()  # noqa: E731
        check("litdata", litdata, {
            "pil": forms["pil"], "tensor": lambda a: tensor(a.transpose(2, 0, 1)), "numpy": lambda a: u32(4, 3, *a.shape) + a.tobytes()
        })  # fmt: skip

    def test_pixels_that_are_refused(self):
        u32 = lambda *n: struct.pack(f"<{len(n)}I", *n)  # noqa: E731
        for form, data, words in [
            ("pil", u32(2, 2, 1) + b"P" + bytes(4), "an image of Pillow of mode 'P'; only 'L' and 'RGB'"),
            ("pil", u32(2, 2, 3) + b"RGB" + bytes(11), "11 bytes are not an image of 2 x 2 x 3"),
            ("pil", b"ab", "2 bytes are not an image of Pillow"),
            ("ndarray", b"\x22\x0d" + bytes(20), "an array of the dtype with the code 22; only uint8 is an image"),
            ("ndarray", b"\x08\x0c\3\2\3" + bytes(18), r"an array \[3, 2, 3\] may have its channels first or last"),
            ("ndarray", b"\x08\x04\4" + bytes(4), r"an array \[4\] is not an image"),
            ("ndarray", b"\x08\x0f\3" + bytes(7) + b"\xff" * 16, r"an array \[3, 18446744073709551615, 18446744073709551615\] of 0 bytes"),
            ("ndarray", b"\x08\x0c\2\2\4" + bytes(16), "16 bytes are not an image of 2 x 2 x 4, with 1 or 3 channels"),
        ]:
            shutil.rmtree("pixels", ignore_errors=True)
            mds(pathlib.Path("pixels"), [r | {"image": data} for r in rows])
            path = pathlib.Path("pixels/index.json")
            path.write_text(path.read_text().replace('["str", "bytes"', f'["str", "{form}"'))
            with self.assertRaisesRegex(convert.ConvertError, "sample 0: column 'image' has pixels that cannot be packed: " + words):
                index("mds", "pixels", scratch="bad.unpacked")

    def test_code_is_not_run(self):
        for kind, write, what in ("mds", mds, "column"), ("litdata", litdata, "leaf"):
            write(pathlib.Path(kind + ".code"), rows, code=True)
            code, said = run(kind, kind + ".code", "no", *SIZE)
            self.assertEqual(code, 1)
            self.assertIn(f"{what} 'zcode' is a pickle, which can run any code when it is read; leave it out with", said)
            self.assertFalse(os.path.exists("no") or os.path.exists("no.extents.jsonl"))
            code, said = run(kind, kind + ".code", kind + ".code.ds", "--without", "zcode", *SIZE)
            self.assertEqual(code, 0, said)
            self.same(kind + ".code.ds")
        lmdb(pathlib.Path("pickles"), [{"image": pickle.dumps([1])}] * 24)
        with self.assertRaisesRegex(convert.ConvertError, "is a pickle, which can run any code"):
            index("lmdb", "pickles", no_label=True)

    def refused(self, kind, words, change, name=None, write=None, **options):
        folder = pathlib.Path("refused")
        shutil.rmtree(folder, ignore_errors=True)
        (write or WRITERS[kind])(folder, rows)
        path = folder / name if name else sorted(folder.iterdir())[0]
        self.assertTrue(index(kind, folder, no_label=True, **options) or True)  # the control: as it is, it can be read
        path.write_bytes(change(bytearray(path.read_bytes())))
        with self.assertRaisesRegex(convert.ConvertError, words):
            index(kind, folder, no_label=True, **options)

    def test_damage_that_is_named(self):
        def put(at, data):
            def change(all_bytes):
                all_bytes[at : at + len(data)] = data
                return all_bytes
            return change

        def edit(**values):
            def change(text):
                d = json.loads(text)
                (d["shards"][0] if "shards" in d else d["config"]).update(values)
                return json.dumps(d).encode()
            return change

        u32, u64 = (lambda n: struct.pack("<I", n)), (lambda n: struct.pack("<Q", n))
        self.refused("tfrecord", r"00000-of-00002: record 0 at byte 0: the CRC of its length is wrong", put(3, b"\1"))
        self.refused("tfrecord", r"record 0 at byte 0: the CRC of its \d+ bytes is wrong", put(40, b"\xaa\xbb"))
        self.refused("tfrecord", r"record 11 at byte \d+: has \d+ bytes, and the file is cut short", lambda d: d[:-5])
        self.refused("tfrecord", r"record 12 at byte \d+: the file is cut short: 3 bytes", lambda d: d + b"abc")
        self.refused("tfrecord", "is compressed with gzip", lambda d: b"\x1f\x8b" + d)
        head = u64(1 << 32)
        self.refused("tfrecord", "record 0 at byte 0: has 4294967296 bytes, and the file is cut", put(0, head + crc(head)))
        step = message(2, b"")
        whole = u64(len(step)) + crc(u64(len(step))) + step + crc(step)
        self.refused("tfrecord", "record 0 at byte 0: is a SequenceExample", lambda d: whole + d)
        odd = b"\xff" * 9
        whole_odd = u64(len(odd)) + crc(u64(len(odd))) + odd + crc(odd)
        self.refused("tfrecord", "record 0 at byte 0: is not a tf.train.Example", lambda d: whole_odd + d)

        first = "shard.00000.mds"
        self.refused("mds", f"{first}: has .* bytes, and index.json says .*: it is cut", lambda d: d[:-1], first)
        self.refused("mds", f"{first}: its sha1 is .*, and index.json says .*: the file is damaged", put(200, b"\1\2"), first)
        self.refused("mds", "column_sizes are not lists of one length", edit(column_sizes=[1]), "index.json")
        self.refused("mds", "shard.00000.mds: has 4 samples, and index.json says 5", edit(samples=5), "index.json")
        self.refused("mds", "the format 'json'; only 'mds' is read", edit(format="json"), "index.json")
        self.refused("mds", "names the file '../x', which must lie below it", edit(raw_data={"basename": "../x"}), "index.json")
        self.refused("mds", "names the file '/etc/passwd'", edit(raw_data={"basename": "/etc/passwd"}), "index.json")
        self.refused("mds", "gone.mds: No such file or directory", edit(raw_data={"basename": "gone.mds"}), "index.json")
        self.refused("mds", "has the compression 'zstd' of gone.mds, and zip_data None",
                     edit(raw_data={"basename": "gone.mds"}, compression="zstd"), "index.json")  # fmt: skip
        self.refused("mds", "index.json: is not JSON", lambda d: d[:-2], "index.json")
        self.refused("mds", "is not version 2", lambda d: b"[]", "index.json")

        chunk = "chunk-0-0.bin"
        self.refused("litdata", f"{chunk}: sample 0: lies at bytes 24 to 4294967295", put(8, u32(0xFFFFFFFF)), chunk)
        self.refused("litdata", f"{chunk}: sample 0: leaf 'caption' of 4294967295 bytes at byte", put(24, u32(0xFFFFFFFF)), chunk)
        self.refused("litdata", f"{chunk}: has 3 samples, and index.json says 4", put(0, u32(3)), chunk)
        self.refused("litdata", f"{chunk}: is cut: 0 bytes", lambda d: b"", chunk)
        self.refused("litdata", "sample 3: lies at bytes", lambda d: d[:-1], chunk)
        self.refused("litdata", "chunk-0-0.bin: is compressed, so it cannot be read in place; give index.. a folder as scratch=",
                     edit(compression="zstd"), "index.json")  # fmt: skip
        self.refused("litdata", "has compression_level 'sample'; only 'chunk' and 'batch' are read",
                     edit(compression="zstd", compression_level="sample"), "index.json")  # fmt: skip
        self.refused("litdata", "has encryption", edit(encryption={"a": 1}), "index.json")
        self.refused("litdata", "a data_spec that does not name the leaves", edit(data_spec="[1"), "index.json")
        self.refused("litdata", "for the item_loader TokensLoader", edit(item_loader="TokensLoader"), "index.json")

        self.refused("recordio", "record 0 at byte 0: begins with 0x00d7230a, not with 0xced7230a", put(3, b"\0"))
        self.refused("recordio", r"record 1 at byte 40: the record of 536870911 bytes", put(44, u32(0x1FFFFFFF)))
        self.refused("recordio", r"record 24 at byte \d+: ", lambda d: d[:-9])
        self.refused("recordio", "record 0 at byte 0: its labels of 262144 bytes", put(8, u32(65536)))
        self.refused("recordio", "says that it has 4294967295 labels; the limit is 65536", put(8, u32(0xFFFFFFFF)))

        self.refused("beton", "has version 3 and 5 fields; must be version 2", put(0, b"\3"))
        self.refused("beton", "its allocation table is at byte .*: it is cut, damaged", lambda d: d[:-7])
        self.refused("beton", "field 0 is of type 9", put(24, b"\x09"))
        self.refused("beton", "its allocation table has sample 23, and its header says that it has 5 samples", put(8, u64(5)))
        at = 24 + 1041 * 5
        self.refused("beton", "sample 0: field 'image' is at byte 18446744073709551615", put(at + 5, b"\xff" * 8))
        self.refused("beton", "sample 0: field 'caption' has 4294967296 bytes, and the allocation table says 12", put(at + 40, u64(1 << 32)))
        self.refused("lmdb", "its meta page at byte 0 has magic 0xbeef00de", put(17, b"\0"))
        self.refused("lmdb", "has pages of 4097 bytes", put(40, b"\1"))
        self.refused("lmdb", "page 4 calls itself 9", put(4 * 4096, u64(9)))
        self.refused("lmdb", "is not within its pages: the file is cut|beyond the end", lambda d: d[:-4096])
        self.refused("lmdb", "has 0 bytes, less than two pages", lambda d: b"")
        self.refused("lmdb", "has 25 entries, and says that it has 26", put(16 + 24 + 48 + 32, u64(26)))
        self.refused("lmdb", "has more than the 24 entries", put(16 + 24 + 48 + 32, u64(24)))
        # a branch that names itself
        self.refused("recordio", r"record 25 at byte \d+: is of kind 3, outside of such a record", lambda d: d + frame(b"x", 3))
        self.refused("recordio", r"is of kind 0, within a record in several frames", lambda d: d + frame(b"x", 1) + d)
        self.refused("recordio", "ends within a record in several frames", lambda d: d + frame(b"x", 1))
        mds(pathlib.Path("sizes"), rows)
        size = os.stat("sizes/" + first).st_size
        self.refused("mds", r"has the hashes \['sha1'\] of shard.00000.mds",
                     edit(raw_data={"basename": first, "bytes": size, "hashes": ["sha1"]}), "index.json")  # fmt: skip
        self.refused("mds", "names the file '.ud800', which is not UTF-8", edit(raw_data={"basename": "\ud800"}), "index.json")
        self.refused("lmdb", "page 4 is deeper than the 2 levels", lambda d: put(5 * 4096 - 8, struct.pack("<4H", 4, 0, 0, 0))(d))

    def test_files_that_are_none_or_lie_elsewhere(self):
        for kind, name in ("mds", "index.json"), ("mds", "shard.00000.mds"), ("tfrecord", "b.tfrecord"):
            folder = pathlib.Path("pipes")
            shutil.rmtree(folder, ignore_errors=True)
            WRITERS[kind](folder, rows)
            (folder / name).unlink(missing_ok=True)
            os.mkfifo(folder / name)
            with self.assertRaisesRegex(convert.ConvertError, f"pipes/{name}: is not a regular file"):
                index(kind, folder)
        mds(pathlib.Path("links"), rows)
        shutil.copytree("links", "elsewhere")
        self.assertEqual(convert.index("mds", "links", io.StringIO())[1].keys(), {"hashes of kind xxh64 are not compared, "
                                                                                  "because Python has no such function"})  # fmt: skip
        for name in "shard.00000.mds", "shard.00001.mds":
            os.remove("links/" + name)
            os.symlink("../elsewhere/" + name, "links/" + name)
        notes = convert.index("mds", "links", io.StringIO())[1]
        self.assertEqual(notes["files are links that lead out of links: what they lead to is packed"], 2, notes)

    def test_which_files(self):
        tfrecord(pathlib.Path("sets"), rows)
        self.assertEqual(convert.index("tfrecord", "sets", io.StringIO()), (24, {}))
        for name in os.listdir("sets"):
            os.rename("sets/" + name, "sets/" + name.replace("a.tfrecord", "train"))  # as ImageNet's are called
        self.assertEqual(convert.index("tfrecord", "sets", io.StringIO()), (24, {}))
        shutil.copy("sets/train-00000-of-00002", "sets/validation-00000-of-00001")
        count, notes = convert.index("tfrecord", "sets", io.StringIO())
        self.assertEqual(count, 36)
        self.assertIn("3 files are packed as one dataset, among them 'train-00000-of-00002', 'validation-00000-of-00001'; if",
                      next(iter(notes)))  # fmt: skip

    def test_files_that_are_missing_or_not_looked_at(self):
        folder = pathlib.Path("some")
        tfrecord(folder, rows)
        for k, name in enumerate(sorted(os.listdir(folder))):
            os.rename(folder / name, folder / f"t-0000{k + 1}-of-00002.tfrecord")
        self.assertEqual(len(index("tfrecord", folder)), 24)  # some writers count from 1
        for k in 0, 1:
            os.rename(folder / f"t-0000{k + 1}-of-00002.tfrecord", folder / f"t-0000{2 * k}-of-00003.tfrecord")
        with self.assertRaisesRegex(convert.ConvertError, "some/t-00001-of-00003.tfrecord: is missing; if only the others are wanted"):
            index("tfrecord", folder)
        os.rename(folder / "t-00002-of-00003.tfrecord", folder / "other.tfrecord")
        with self.assertRaisesRegex(convert.ConvertError, "t-00001-of-00003.tfrecord: is missing, and so are 1 more of these 3 files"):
            index("tfrecord", folder)
        os.rename(folder / "t-00000-of-00003.tfrecord", folder / "b.tfrecord")
        (folder / "empty.tfrecord").touch()
        (folder / "more").mkdir()
        shutil.copy(folder / "b.tfrecord", folder / "more")
        (folder / "nothing").mkdir()
        count, notes = convert.index("tfrecord", folder, io.StringIO())
        self.assertEqual(count, 24)
        self.assertIn("files have no bytes, and so no records", notes)
        self.assertIn("folders in some are not packed, which have such files, too: 'more'", notes)
        os.symlink("b.tfrecord", folder / "again.tfrecord")
        with self.assertRaisesRegex(convert.ConvertError, "b.tfrecord: is the same file as 'again.tfrecord', so its records would be"):
            index("tfrecord", folder)
        for kind, key in ("mds", "shards"), ("litdata", "chunks"):
            shutil.rmtree(folder)
            WRITERS[kind](folder, rows)
            self.assertFalse([n for n in convert.index(kind, folder, io.StringIO())[1] if "does not list" in n])  # the control
            said = json.loads((folder / "index.json").read_text())
            said[key].pop()
            (folder / "index.json").write_text(json.dumps(said))
            count, notes = convert.index(kind, folder, io.StringIO())
            self.assertLess(count, 24)
            (note,) = [n for n in notes if "does not list" in n]
            self.assertRegex(note, "files that index.json does not list are not packed: '(shard.00005.mds|chunk-0-5.bin)'")

    def test_values_that_a_table_cannot_have(self):
        odd = [dict(r) for r in rows]
        odd[3]["score"], odd[4]["score"], odd[5]["caption"] = float("nan"), float("inf"), b"a\0b"
        mds(pathlib.Path("odd"), odd)
        code, said = run("mds", "odd", "odd.ds", *SIZE)
        self.assertEqual(code, 0, said)
        self.same("odd.ds")
        self.assertIn("column 'score' is left out of 2 of 24 rows, where it is not text or a finite number", said)
        self.assertIn("column 'caption' is left out of 1 of 24 rows", said)

    def test_pages_of_lmdb_that_several_branches_have(self):
        """31 levels, each of which has the next one a hundred times: to walk that never ends."""
        lmdb(pathlib.Path("many"), rows)
        data = bytearray(pathlib.Path("many/data.mdb").read_bytes()[: 2 * 4096])
        for meta in 0, 4096:
            struct.pack_into("<H", data, meta + 16 + 24 + 48 + 6, 31)
            struct.pack_into("<Q", data, meta + 16 + 24 + 48 + 40, 2)
        for n in range(2, 32):
            nodes = struct.pack("<4H", n + 1, 0, 0, 0) * 100
            places = [4096 - 8 * (i + 1) for i in range(100)]
            data += struct.pack("<QHHHH100H", n, 0, 1, 216, places[-1], *places).ljust(places[-1], b"\0") + nodes
        data += struct.pack("<QHHHH", 32, 0, 2, 16, 4096).ljust(4096, b"\0")
        pathlib.Path("many/data.mdb").write_bytes(data)
        with self.assertRaisesRegex(convert.ConvertError, r"page \d+ is in several branches"):
            index("lmdb", "many")

    def test_memory_does_not_grow_with_the_number_of_samples(self):
        """What an index needs at its most, of 8 times as many samples; a list of all of them would show."""
        def most(kind, count):
            few = [{"image": b"\xff\xd8\xff%d" % i, "label": i % 7, "caption": b"c", "score": i / 2} for i in range(count)]
            folder = pathlib.Path("grows")
            shutil.rmtree(folder, ignore_errors=True)
            WRITERS[kind](folder, few)
            out = open(os.devnull, "w")
            tracemalloc.start()
            with out:
                convert.index(kind, folder, out, image="value" if kind == "lmdb" else "image", no_label=True)
            traced = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return traced

        self.addCleanup(setattr, _from_beton, "_BLOCK", _from_beton._BLOCK)
        _from_beton._BLOCK = 4096
        for kind in sorted(set(WRITERS) - {"lmdb"}):  # whose tree has two leaves here; _convert.sh has a real one
            less, more = most(kind, 8192), most(kind, 8 * 8192)
            self.assertLess(more, 1.4 * less + (1 << 20), kind)

    def test_a_file_that_is_cut_or_written_meanwhile(self):
        """The table's own write() does it.  A map of such a file would end Python by SIGBUS."""
        class Table(io.StringIO):
            def write(self, text):
                change()
                return super().write(text)

        for kind in WRITERS:
            for size in 24, 9000:
                if size > 24 and kind == "lmdb":
                    continue
                for words, how in ("was (cut|changed) while it was read", "cut"), ("was changed while it was read", "time"), (None, None):
                    folder = pathlib.Path("meanwhile")
                    shutil.rmtree(folder, ignore_errors=True)
                    WRITERS[kind](folder, rows if size == 24 else [r | {"image": r["image"][:300]} for r in rows] * (size // 24))
                    path = min(folder.iterdir(), key=lambda p: (p.suffix == ".json", p))

                    def change(how=how, path=path):
                        if how == "cut":
                            os.truncate(path, min(5000, path.stat().st_size))
                        elif how:
                            os.utime(path, ns=(1, 1))

                    image = {"image": "value" if kind == "lmdb" else "image"}
                    with contextlib.ExitStack() as stack:
                        if how:
                            stack.enter_context(self.assertRaisesRegex(convert.ConvertError, f"{path}: {words}"))
                        convert.index(kind, folder, Table(), no_label=True, **image)

    def test_a_block_that_ends_within_a_file_that_was_cut(self):
        pathlib.Path("short").write_bytes(bytes(range(256)) * 64)
        with convert.File(convert.Source(pathlib.Path("."), ["short"]), "short") as file:
            self.assertEqual(bytes(file.view(300, 4)), bytes(range(44, 48)))
            self.assertEqual(file.peek((16000, 3)), bytes(range(128, 131)))
            os.truncate("short", 9000)
            self.assertEqual(bytes(file.view(304, 4)), bytes(range(48, 52)))  # it is in the block
            with self.assertRaisesRegex(convert.ConvertError, "short: was cut while it was read: it had 16384 bytes, and has 9000 now"):
                file.view(8000, 2000)
            with self.assertRaisesRegex(convert.ConvertError, "short: was cut while it was read"):
                file.peek((16000, 3))
            os.truncate("short", 16384)
            os.utime("short", ns=(file.time, file.time))

    @settings(deadline=None, max_examples=100, database=None)
    @given(st.lists(st.dictionaries(
        st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=200).filter(lambda n: n not in convert._RESERVED),
        st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=3) | st.lists(st.floats(width=32), min_size=1, max_size=3)
        | st.lists(st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=300).map(str.encode), min_size=1, max_size=3),
        max_size=5), min_size=1, max_size=4), st.booleans())  # fmt: skip
    def test_any_values_of_tfrecord(self, samples, packed):
        """They are what was written, and C finds what Python finds."""
        shutil.rmtree("values", ignore_errors=True)
        tfrecord(pathlib.Path("values"), [{"": b"x"} | row | {"i": b"\xff\xd8\xff"} for row in samples], packed)
        got = index("tfrecord", "values", image="i", no_label=True)
        with mock.patch.object(_core, "tfrecords", none_in_c):
            self.assertEqual(got, index("tfrecord", "values", image="i", no_label=True))
        for row, sample in zip(got, samples[0::2] + samples[1::2], strict=True):
            for name, values in sample.items():
                if name == "i" or any(isinstance(v, float) and not np.isfinite(v) for v in values):
                    continue
                texts = [v.decode() if isinstance(v, bytes) else v for v in values]
                self.assertEqual(row[name], texts[0] if len(texts) == 1 else texts)

    @given(samples=st.lists(st.dictionaries(st.text(max_size=9), st.one_of(
        st.lists(st.binary(max_size=150), max_size=3), st.lists(st.floats(width=32), max_size=3),
        st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=3)), max_size=5), min_size=1, max_size=5),
        packed=st.booleans(), damage=st.lists(st.tuples(st.integers(0, 400), st.binary(max_size=2)), max_size=2))  # fmt: skip
    def test_tfrecord_in_c_and_in_python(self, samples, packed, damage):
        """The same values or the same sentence, also of bytes that are not an Example and have the right CRC."""
        data, taken = b"", 0
        for i, sample in enumerate(samples):
            record = bytearray(example({name: values or [b""] for name, values in sample.items()}, packed))
            for at, other in damage if i == len(samples) - 1 else ():
                record[at : at + 1] = other
            head = struct.pack("<Q", len(record))
            data += head + crc(head) + record + crc(record)
        pathlib.Path("twin.tfrecord").write_bytes(data)
        real = _core.tfrecords

        def fast(*given):
            nonlocal taken
            values, after = real(*given)
            taken += len(values)
            return values, after

        found = []
        for read in fast, none_in_c:
            source = convert.Source(pathlib.Path(), [], frozenset(["w"]))
            try:
                with mock.patch.object(_core, "tfrecords", read), convert.File(source, "twin.tfrecord") as f:
                    found.append(repr(list(_from_tfrecord._records(source, f))))
            except convert.ConvertError as e:
                found.append(str(e))
        self.assertEqual(*found)
        self.assertGreaterEqual(taken, len(samples) - 1)

    def test_frames_in_parts_are_bad_input(self):
        out = pathlib.Path("parts")
        recordio(out, rows)
        several = frame(struct.pack("<IfQQ", 0, 1, 9, 0) + b"\xff\xd8\xff", 1) + frame(b"rest", 3)
        (out / "train.rec").write_bytes(several + (out / "train.rec").read_bytes() + several)
        code, said = run("recordio", "parts", "parts.ds", *SIZE)
        self.assertEqual(code, 1)
        self.assertIn("records in several frames, which cannot be read in place (2 times)", said)
        self.assertIn("the table is kept: parts.ds.extents.jsonl", said)
        code, said = run("recordio", "parts", "parts.ds2", *SIZE, "--on-error", "skip")
        self.assertEqual(code, 0, said)
        self.same("parts.ds2")
        (out / "train.rec").write_bytes(several)
        self.assertIn("no records; it must be RecordIO of MXNet", run("recordio", "parts", "no", *SIZE)[1])

    def test_the_program(self):
        mds(pathlib.Path("prog"), rows)
        self.assertEqual(run("mds", "nowhere", "no", *SIZE)[0], 1)
        self.assertIn("prog/index.json: give its folder", run("mds", "prog/index.json", "no", *SIZE)[1])
        self.assertEqual(run("mds", "prog", "no", "--root", "x")[0], 2)
        self.assertEqual(run("avro", "prog", "no")[0], 2)
        self.assertEqual(run("mds", "prog", "no", "--table", "x.csv")[0], 2)
        self.assertEqual(run("mds", "prog", "no", "--shardpack", "/no/such")[0], 3)
        self.assertEqual(run("mds", "prog", "prog.ds", "--table", "kept.jsonl", *SIZE, "-j", "2")[0], 0)
        self.assertEqual(pathlib.Path("kept.jsonl").read_text().count("\n"), 24)
        again, said = run("mds", "prog", "prog.ds", "--table", "kept.jsonl", *SIZE[:-1])
        self.assertEqual((again, "is there already" in said), (0, True), said)
        with self.assertRaisesRegex(convert.ConvertError, "src: has no file with a name such as a.tfrecord or train-00000-of"):
            index("tfrecord", "src")
        pathlib.Path("empty.tfrecord").touch()
        with self.assertRaisesRegex(convert.ConvertError, "no records; it must be TFRecord files"):
            index("tfrecord", "empty.tfrecord")
        code, said = run("mds", "prog", "no", "-ono2")
        self.assertEqual((code, "-o is set here" in said), (2, True), said)
        pathlib.Path("mine.jsonl").write_text("kept")  # an index that fails leaves what was there
        self.assertEqual(run("mds", "nowhere", "no", "--table", "mine.jsonl")[0], 1)
        self.assertEqual(pathlib.Path("mine.jsonl").read_text(), "kept")
        self.assertEqual(run("mds", "prog", "no", "--table", "mine.jsonl/x.jsonl")[0], 3)
        self.assertEqual([name for name in os.listdir() if name.startswith(".tmp.")], [])

    def test_what_needs_no_index(self):
        """The lines that it shows are code."""
        for kind in "parquet", "arrow", "huggingface", "hdf5", "zarr":
            code, said = run(kind, "it's", "new")
            self.assertEqual((code, "libshard.pack() reads it" in said), (2, True), said)
            lines = [line.strip() for line in said.splitlines()[1:]]
            self.assertEqual(len(lines), 3)
            seen = []
            fake = mock.Mock(**{"load_from_disk": lambda path: path})
            with mock.patch.dict(sys.modules, {"datasets": fake}), mock.patch.object(libshard, "pack", lambda *a: seen.append(a)):
                exec("\n".join(lines), {})
            self.assertEqual([seen[0][0], seen[0][2]], ["it's", "new"])
            self.assertIsInstance(seen[0][1]["image"], libshard.Image)
        self.assertIn("data_files='src/*.parquet'", run("parquet", "src", "new")[1])
        for kind, verb in ("webdataset", "images"), ("megatron", "tokens"):
            code, said = run(kind, "a b", "new")
            self.assertEqual((code, f"shardpack {verb} 'a b' -o new --" in said), (2, True), said)
            said = run(kind, "a", "new", "--order", "source")[1].splitlines()[1]
            self.assertEqual(said.strip(), f"shardpack {verb} a -o new --order source")
        self.assertFalse(os.path.exists("new"))

    def test_any_damage(self):
        """Of each format: places are within their files, or there is a sentence; and what has a hash is never wrong."""
        for kind in WRITERS:
            self.damage(kind)

    def damage(self, kind):
        folder = pathlib.Path("any")
        outcomes = set()

        @settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck), database=None)
        @given(data=st.data())
        def damaged(data):
            shutil.rmtree(folder, ignore_errors=True)
            WRITERS[kind](folder, rows[:6])
            path = data.draw(st.sampled_from(sorted(folder.iterdir())))
            content = bytearray(path.read_bytes())
            before = bytes(content)
            for _ in range(data.draw(st.integers(1, 3))):
                how = data.draw(st.sampled_from(["cut", "flip", "number", "insert", "empty"]))
                # heads are where damage counts
                at = data.draw(st.integers(0, min(len(content), data.draw(st.sampled_from([64, 256, 8192, 1 << 20])))))
                if how == "cut":
                    del content[at:]
                elif how == "flip" and at < len(content):
                    content[at] ^= 1 << data.draw(st.integers(0, 7))
                elif how == "number":
                    n = data.draw(st.sampled_from([0, 1, 255, 1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 1]))
                    content[at : at + 8] = struct.pack("<Q", n)[: data.draw(st.sampled_from([4, 8]))]
                elif how == "insert":
                    content[at:at] = data.draw(st.binary(max_size=20))
                elif how == "empty":
                    content = bytearray()
            path.write_bytes(content)
            try:
                found = index(kind, folder, image="value" if kind == "lmdb" else "image", no_label=True)
            except convert.ConvertError:
                outcomes.add("refused")
                return
            outcomes.add("read")
            for row in found:
                if "offset" in row:
                    self.assertLessEqual(row["offset"] + row["bytes"], (folder / row["path"]).stat().st_size)
                    self.assertLessEqual(0, row["offset"])
            if kind == "mds" and path.suffix == ".mds":
                self.assertEqual(bytes(content), before)
            elif kind == "tfrecord":  # a file that ends after a whole record is one with fewer of them
                for row in found:
                    image = (folder / row["path"]).read_bytes()[row["offset"] : row["offset"] + row["bytes"]]
                    self.assertIn((image, row["caption"], row["score"]), good)

        good = [(r["image"], r["caption"].decode(), r["score"]) for r in rows[:6]]
        damaged()
        self.assertIn("refused", outcomes, kind)


if __name__ == "__main__":
    unittest.main()
