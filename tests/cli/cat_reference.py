# SPDX-License-Identifier: Apache-2.0
"""What shardcat says of golden files, compared with format/shardfmt.py, NumPy and Pillow.

    cat_reference.py json|get SHARDCAT PATH...     PATH is a dataset or a shard

Everything that is expected comes from the Python reader, which was written from SHARD.md alone.
"""
import io
import json
import math
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "format"))
sys.dont_write_bytecode = True
import shardfmt as sf  # noqa: E402

NUMPY = [None, "u1", "i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f2", "<u2", "<f4", "<f8", "?"]
DTYPES = [None, "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "bf16", "f32", "f64", "bool"]
LABEL = 2
INTEGERS = range(1, 9)


class Target:
    """A dataset or a shard as one run of records."""

    def __init__(self, path):
        self.path = path
        if os.path.isdir(path):
            self.dataset = sf.Dataset(path)
            manifest = self.dataset.manifest
            self.shards = [self.dataset.open_shard(i) for i in range(len(manifest.shards))]
            self.groups, self.fields, self.stats = manifest.groups, manifest.fields, manifest.stats
            self.classes = [c if isinstance(c, str) else c.decode() for c in manifest.classes]
        else:
            with open(path, "rb") as file:
                shard = sf.read_shard(file.read())
            self.dataset, self.shards, self.classes = None, [shard], []
            self.groups, self.fields, self.stats = shard.groups, shard.fields, shard.stats()
        self.places = [(s, i) for s in self.shards for i in range(s.record_count)]

    def field_bytes(self, index, field):
        shard, within = self.places[index]
        return shard.record(within, field.group)[field.offset:field.offset + field.bytes]

    def key(self, index):
        shard, within = self.places[index]
        keys = shard.keys()
        return keys[within] if keys else b""

    def label(self, index):
        for field in self.fields:
            if field.semantic == LABEL and field.kind == 0 and not field.shape and field.dtype in INTEGERS:
                signed = DTYPES[field.dtype][0] == "i"
                return int.from_bytes(self.field_bytes(index, field), "little", signed=signed)
        return None

    def array(self, index, field):
        """The field's true value: a ragged one cut to its lengths, a whole image in its shape."""
        import numpy
        value = numpy.frombuffer(self.field_bytes(index, field), NUMPY[field.dtype]).reshape(field.shape)
        if field.kind == 0:
            return value
        lengths = struct.unpack("<%dI" % len(field.axes()), self.field_bytes(index, self.fields[field.length_field]))
        cut = [slice(None)] * len(field.shape)
        for axis, length in zip(field.axes(), lengths):
            cut[axis] = slice(0, length)
        size = sf.size_field(self.fields, field)
        value = value[tuple(cut)]
        return value.reshape(struct.unpack("<2I", self.field_bytes(index, size)) + (-1,)) if size else value


def run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        sys.exit("exit code %d: %s\n%s" % (done.returncode, " ".join(command), done.stderr.decode()))
    return done.stdout


def equal(what, found, expected):
    if found != expected:
        sys.exit("%s: %r instead of %r" % (what, found, expected))


def check_schema(target, document):
    equal("field count", len(document["fields"]), len(target.fields))
    for found, f in zip(document["fields"], target.fields):
        equal("field", (found["name"], found["dtype"], found["shape"], found["group"], found["offset"], found["bytes"]),
              (f.name, DTYPES[f.dtype], list(f.shape), f.group, f.offset, f.bytes))
        equal("ragged axes", found.get("ragged_axes", []), f.axes())
        if f.kind:
            equal("length field", found["length_field"], target.fields[f.length_field].name)
    for found, g in zip(document["groups"], target.groups):
        equal(
            "group",
            [found[k] for k in ("codec", "stride", "record_bytes", "align_log2", "unit_records", "chunk_records")],
            [["raw", "lz4"][g.codec], g.stride, g.record_bytes, g.align_log2, g.unit_records, g.chunk_records],
        )


def check_statistics(target, found):
    expected = [(target.fields[b.field].name, c) + tuple(item) for b in target.stats if b.kind == 1
                for c, item in enumerate(b.items)]
    equal("statistics", [(s["field"], s["channel"], s["count"], s["sum"], s["sum_squares"]) for s in found], expected)
    for s in found:
        if s["count"]:
            mean = s["sum"] / s["count"]
            assert math.isclose(s["mean"], mean, rel_tol=1e-12), s
            assert math.isclose(s["std"], math.sqrt(s["sum_squares"] / s["count"] - mean * mean), rel_tol=1e-9), s


def check_classes(target, found):
    counts = [b.items for b in target.stats if b.kind == 2]
    counts = list(counts[0]) if counts else []
    names = target.classes
    expected = [(names[i] if i < len(names) else None, counts[i] if i < len(counts) else None)
                for i in range(max(len(counts), len(names)))]
    equal("classes", [(c.get("name"), c.get("record_count")) for c in found], expected)


def check_json(shardcat, path):
    target = Target(path)
    info = json.loads(run(shardcat, "info", "--json", path))
    equal("record_count", info["record_count"], len(target.places))
    check_schema(target, info)
    check_statistics(target, info["statistics"])
    check_classes(target, info["classes"])
    records = json.loads(run(shardcat, "list", "--json", path))["records"]
    expected = [{"index": i, "key": target.key(i).decode() or None, "label": target.label(i)}
                for i in range(len(target.places))]
    equal("records", records, expected)
    if target.dataset:
        manifest = json.loads(run(shardcat, "manifest", "--json", path))
        ours = target.dataset.manifest
        check_schema(target, manifest)
        check_statistics(target, manifest["statistics"])
        equal("class names", manifest["class_names"], target.classes)
        equal(
            "shards",
            [(s["file"], s["bytes"], s["record_count"], s["root"], s["sha256"]) for s in manifest["shards"]],
            [(s.file, s.bytes, s.records, sf.h128_text(s.root), s.sha256) for s in ours.shards],
        )
        equal("first records", [s["first_record"] for s in manifest["shards"]],
              [sum(s.records for s in ours.shards[:i]) for i in range(len(ours.shards))])
    else:
        equal("root", info["root"], sf.h128_text(target.shards[0].root))
    return len(target.places)


def check_image(shardcat, path, index, field, value):
    import numpy
    from PIL import Image
    if field.layout == 2:
        value = value.transpose(1, 2, 0)
    if value.shape[2] not in (1, 3):
        return 0
    png = run(shardcat, "get", path, str(index), "--field", field.name, "--png")
    found = numpy.asarray(Image.open(io.BytesIO(png)))
    equal("PNG of record %d" % index, found.tobytes(), value.tobytes())
    equal("its size", found.shape[:2], value.shape[:2])
    return 1


def check_get(shardcat, path):
    import numpy
    target = Target(path)
    count = 0
    for index in range(0, len(target.places), 1 + len(target.places) // 20):
        for field in target.fields:
            expected = target.array(index, field)
            where = (shardcat, "get", path, str(index), "--field", field.name)
            equal("raw %s of record %d" % (field.name, index), run(*where, "--raw"), expected.tobytes())
            npy = run(*where, "--npy")
            found = numpy.load(io.BytesIO(npy))
            if field.dtype == 13:
                expected = expected.view("u1") != 0  # any other byte is true
            equal("npy %s of record %d" % (field.name, index), (found.dtype, found.shape, found.tobytes()),
                  (expected.dtype, expected.shape, expected.tobytes()))
            equal("where the npy header ends", (len(npy) - expected.nbytes) % 64, 0)
            count += 2
            if field.dtype == 1 and field.layout in (1, 2) and field.kind == 0 and len(field.shape) == 3:
                count += check_image(shardcat, path, index, field, expected)
    return count


def main(what, shardcat, *paths):
    check = {"json": check_json, "get": check_get}[what]
    print(sum(check(shardcat, path) for path in paths))


main(*sys.argv[1:])
