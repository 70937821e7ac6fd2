#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""readers.py DUMP_SHARD FOLDER SEED - the comparisons of readers.sh

DUMP_SHARD is the program of tests/store/dump_shard.c, FOLDER takes the files that are made on the
way.
"""

import hashlib
import os
import random
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "format"))
import shardfmt as sf  # noqa: E402
from random_shards import random_record, random_schema  # noqa: E402

DUMP, FOLDER, SEED = sys.argv[1], sys.argv[2], int(sys.argv[3])
GOLDEN = "format/golden"
PAGES, MANIFESTS = 420, 400     # mutated files
C_SHARDS, PY_SHARDS, WHOLE_SHARDS = 60, 60, 300
NEAR_ROUNDS = 8                 # how often faults of the same unit or record are paired
STATUS = {"corrupt": "corrupt", "unsupported": "unsupported", "mismatch": "not as the manifest says"}


def run(*arguments):
    result = subprocess.run([DUMP, *arguments], stdout=subprocess.PIPE, check=False)
    if result.returncode:
        sys.exit("dump_shard %s: exit status %d\n%s" % (" ".join(arguments), result.returncode,
                                                       result.stdout.decode("utf-8", "replace")[-2000:]))
    return result.stdout.decode("ascii")


def path_of(name):
    return os.path.join(FOLDER, name)


def write(name, data):
    with open(path_of(name), "wb") as stream:
        stream.write(data)
    return path_of(name)


def compare_dumps(path, what):
    ours, theirs = run(path), sf.to_json(sf.dump_path(path))
    if ours == theirs:
        return
    for i, (a, b) in enumerate(zip(ours.split("\n"), theirs.split("\n"))):
        if a != b:
            sys.exit(
                "%s (%s), line %d of the dump: the library says\n\t%s\nshardfmt.py says\n\t%s"
                % (what, path, i + 1, a, b)
            )
    sys.exit("%s (%s): one dump is longer than the other" % (what, path))


# --------------------------------------------------------------------------------------------------
# Good files.

def golden_files():
    shards = sorted(n for n in os.listdir(GOLDEN) if n.endswith(".shard"))
    folders = sorted(n for n in os.listdir(GOLDEN) if os.path.isdir(os.path.join(GOLDEN, n)))
    return [os.path.join(GOLDEN, n) for n in shards], [os.path.join(GOLDEN, n) for n in folders]


def random_stats(rng, fields, columns, groups):
    blocks = []
    count = len(columns[0])
    for i, f in enumerate(fields):
        if f.kind == sf.TENSOR and f.dtype == sf.U8 and rng.random() < 0.5:
            each = count * f.elements() // f.channels()
            sums = [rng.randint(0, 255 * each) for _ in range(f.channels())]
            blocks.append(sf.StatBlock(sf.MOMENTS, i, [(each, s, rng.randint(0, 255 * s)) for s in sums]))
    for i, f in enumerate(fields):
        if f.kind == sf.TENSOR and 1 <= f.dtype <= sf.LAST_INTEGER and not f.shape and rng.random() < 0.5 and count:
            first = rng.randint(0, count)
            blocks.append(sf.StatBlock(sf.CLASSES, i, [first, 0, count - first]))
    return blocks


def python_shard(rng):
    groups, fields = random_schema(rng)
    count = rng.randint(0, 20)
    columns = [[random_record(rng, groups, fields, g) for _ in range(count)] for g in range(len(groups))]
    keys = None
    if rng.random() < 0.5:
        keys = [("k\u00e9y/%d\U0001F40D\"\\\n" % i).encode("utf-8") * rng.randint(0, 9) for i in range(count)]
    missing = [sf.Missing(i * i + (1 << 63), 1 + i, 1 + i % 2) for i in range(rng.choice([0, 0, 3]))]
    extra = [sf.SectionDraft(rng.randint(9, 1 << 31), 0, 5, b"from the future")] if rng.random() < 0.3 else []
    return sf.write_shard(groups, fields, columns, keys=keys, missing=missing, extra=extra,
                          stats=random_stats(rng, fields, columns, groups),
                          provenance=rng.choice([None, b"", "pr\u00f6venance\n".encode("utf-8")]),
                          align_log2=rng.choice([12, 12, 13]), planned_records=100, plan_shard=rng.getrandbits(64),
                          plan_digest=rng.randbytes(32), minor=rng.choice([0, 0, 9]))


def good_files(rng):
    shards, folders = golden_files()
    for path in shards + folders:
        compare_dumps(path, "golden")
    print("%d golden files: the same dump" % len(shards + folders))
    for i in range(C_SHARDS):
        run("--draw", str(1000 * SEED + i), path_of("c.shard"))
        compare_dumps(path_of("c.shard"), "drawn with seed %d" % (1000 * SEED + i))
        os.unlink(path_of("c.shard"))
    os.mkdir(path_of("dataset"))
    run("--dataset", path_of("dataset"))
    compare_dumps(path_of("dataset"), "a sealed dataset")
    print("%d shards and a dataset that the library wrote: the same dump" % C_SHARDS)
    for i in range(PY_SHARDS):
        compare_dumps(write("py.shard", python_shard(rng)), "python shard %d" % i)
    print("%d shards that shardfmt.py wrote: the same dump" % PY_SHARDS)


# --------------------------------------------------------------------------------------------------
# Bad files: the library and shardfmt.py must name the same rule.

def python_verdict(data, skip=()):
    try:
        shard = sf.read_shard(data, skip)
    except sf.FormatError as error:
        return "open %s %s" % (error.number, STATUS[error.status])
    try:
        sf.verify_open_shard(shard)
    except sf.FormatError as error:
        return "verify %s %s" % (error.number, STATUS[error.status])
    return "ok"


HEADER_WORDS = [
    (0x008, 8), (0x010, 2), (0x012, 2), (0x014, 4), (0x018, 8), (0x020, 8), (0x028, 8), (0x030, 8),
    (0x038, 4), (0x03C, 4), (0x040, 4), (0x044, 2), (0x046, 2),
]  # fmt: skip
FOOTER_WORDS = [(0x008, 2), (0x00A, 2), (0x00C, 4), (0x010, 8), (0x018, 8), (0x020, 4)]
GROUP_WORDS = [(0, 8), (8, 8), (16, 4), (20, 4), (24, 4), (28, 4)]
FIELD_WORDS = [
    (0, 1), (5, 1), (46, 1), (47, 1), (48, 2), (50, 1), (51, 1), (52, 2), (54, 2),
    (56, 4), (60, 4), (64, 4), (84, 4), (88, 8), (96, 8), (104, 1), (105, 1), (106, 2),
]  # fmt: skip
SECTION_WORDS = [(0, 4), (4, 4), (8, 4), (16, 8), (24, 8), (32, 8), (48, 8)]


def word_of_page(rng, shard, page):
    """Where a number of that page lies, and its size."""
    if rng.random() < 0.15:
        return rng.randrange(0xFF0), 1
    if page == 0:
        kind = rng.choice(["header", "group", "group", "field", "field"])
        if kind == "header":
            return rng.choice(HEADER_WORDS)
        base, step, count, words = (0x100, 64, shard.group_count, GROUP_WORDS) if kind == "group" else \
            (0x300, 128, shard.field_count, FIELD_WORDS)
        offset, size = rng.choice(words)
        return base + step * rng.randrange(count) + offset, size
    if rng.random() < 0.3 or not shard.section_count:
        return rng.choice(FOOTER_WORDS)
    offset, size = rng.choice(SECTION_WORDS)
    return 0x400 + 64 * rng.randrange(shard.section_count) + offset, size


def other_value(rng, old, size):
    top = (1 << 8 * size) - 1
    values = [
        0, 1, old + 1, old - 1, 2 * old, old // 2, old ^ 1 << rng.randrange(8 * size), top, top - 1,
        1 << rng.randrange(8 * size), rng.getrandbits(8 * size), -old, old + 4096, old - 4096, old + 16,
    ]  # fmt: skip
    return rng.choice(values) & top


def mutated_shard(rng, golden):
    """A golden shard with a number or two of its pages changed, and everything sealed again."""
    path = rng.choice(golden)
    data = bytearray(sf.read_file(path))
    shard = sf.read_shard(bytes(data))
    pages = [data[:sf.PAGE], data[-sf.PAGE:]]
    what = []
    for _ in range(1 if rng.random() < 0.8 else 2):
        page = rng.randrange(2)
        offset, size = word_of_page(rng, shard, page)
        old = int.from_bytes(pages[page][offset:offset + size], "little")
        new = other_value(rng, old, size)
        pages[page][offset:offset + size] = new.to_bytes(size, "little")
        what.append("%s 0x%03x: %d -> %d" % ("footer" if page else "header", offset, old, new))
    header = sf.seal_page(bytearray(pages[0]), [])
    if not any(w.startswith("footer 0x02") or w.startswith("footer 0x03") for w in what):
        pages[1][0x28:0x38] = header[sf.PAGE_HASH:]
    footer = sf.seal_page(bytearray(pages[1]), [])
    return header + bytes(data[sf.PAGE:-sf.PAGE]) + footer, "%s, %s" % (path, "; ".join(what))


TOKENS = [
    "", "0", "1", "2", "-", "-1", "01", "00", "255", "256", "65536", "4294967295", "4294967296",
    "18446744073709551615", "18446744073709551616", "4611686018427387905", "8192", "8193", "4096",
    "raw", "lz4", "u8", "i64", "f8", "tensor", "ragged", "string", "hwc", "image", "label",
    "x", "../x", "a/b", "%41", "%2f", "%FF", "moments", "classes", "group", "field",
    "0,1", "1,0", "1,", "0,8", "2,3,4", "1,1,1,1,1,1,1,1,1", "\t", "\u00e9",
    "a" * 48, "a" * 4100, "0" * 32, "f" * 64, "F" * 64,
]  # fmt: skip


def mutated_manifest(rng, golden):
    """A golden manifest with one word or line changed, and sealed again."""
    path = os.path.join(rng.choice(golden), sf.MANIFEST_NAME)
    lines = sf.read_file(path).decode("ascii").split("\n")[:-2]
    i = rng.randrange(len(lines))
    was = lines[i]
    how = rng.random()
    if how < 0.75:
        words = lines[i].split(" ")
        k = rng.randrange(1 if i == 0 else 0, len(words))
        words[k] = rng.choice(
            TOKENS + [words[k] + "0", words[k][:-1], words[k] + words[k]] + lines[rng.randrange(len(lines))].split(" ")
        )
        lines[i] = " ".join(words)
    elif how < 0.80:
        lines[i] += rng.choice([" ", " 0", " x"])
    elif how < 0.87 and i:
        del lines[i]
    elif how < 0.94:
        lines.insert(i + 1, lines[i])
    else:
        k = rng.randrange(1, len(lines))
        lines[k], lines[max(i, 1)] = lines[max(i, 1)], lines[k]
    body = ("\n".join(lines) + "\n").encode("utf-8")
    head = body + b"end " + hashlib.sha256(body).hexdigest().encode("ascii") + b" "
    data = head + sf.h128_text(sf.h128(head)).encode("ascii") + b"\n"
    return data, "%s, line %d: %a -> %a" % (path, i + 1, was, lines[i : i + 1])


def manifest_verdict(data, skip=()):
    try:
        manifest = sf.read_manifest(data, skip)
    except sf.FormatError as error:
        return "open %s %s" % (error.number, STATUS[error.status])
    try:
        sf.verify_manifest(data, manifest, sf.Rules(skip))
    except sf.FormatError as error:
        return "verify %s %s" % (error.number, STATUS[error.status])
    return "ok"


def compare_verdicts(what, cases, paths):
    """`cases` are (description, verdict of shardfmt.py)."""
    ours = []
    for at in range(0, len(paths), 100):
        ours += run("--verdict", *paths[at:at + 100]).splitlines()
    wrong = [
        "%s:\n\tthe library says %s, shardfmt.py %s" % (case[0], c, case[1])
        for case, c in zip(cases, ours)
        if case[1] != c
    ]
    if wrong or len(ours) != len(cases):
        sys.exit("%s: %d of %d verdicts differ\n%s" % (what, len(wrong), len(cases), "\n".join(wrong[:20])))
    numbers = sorted({c[1].split()[1] for c in cases if c[1] != "ok"}, key=lambda n: (n[0], int(n[1:])))
    good = sum(1 for c in cases if c[1] == "ok")
    print("%s: %d, %d still good, %d rules: %s" % (what, len(cases), good, len(numbers), " ".join(numbers)))
    return numbers, good


def bad_files(rng):
    shards, folders = golden_files()
    cases, paths = [], []
    for i in range(PAGES):
        data, what = mutated_shard(rng, shards)
        cases.append((what, python_verdict(data)))
        paths.append(write("mutated-%d.shard" % i, data))
    numbers, good = compare_verdicts("mutated pages", cases, paths)
    assert len(numbers) >= 25 and good >= 10, "the mutations reach too little"
    cases, paths = [], []
    for i in range(MANIFESTS):
        data, what = mutated_manifest(rng, folders)
        os.mkdir(path_of("m-%d" % i))
        write("m-%d/%s" % (i, sf.MANIFEST_NAME), data)
        cases.append((what, manifest_verdict(data)))
        paths.append(path_of("m-%d" % i))
    numbers, good = compare_verdicts("mutated manifests", cases, paths)
    # Seven rules are each broken by one in 60 or more; the other four are rare.
    assert len(numbers) >= 7 and good >= 3, "the mutations reach too little"


# --------------------------------------------------------------------------------------------------
# Files with two faults: the library and shardfmt.py must meet the same one first. A fault is a
# stage of making the file, the rule that it breaks when it is alone, and a function that puts it
# in. Faults of one stage go in in the order of the lists; everything that a later stage makes
# (hashes, seals) is right for what is there.

def fault_base(rng):
    """A shard with all kinds of sections, raw and compressed groups, gaps and ragged fields."""
    groups, fields = [], []
    codecs = [sf.RAW, sf.LZ4, sf.RAW, sf.LZ4]
    away = [0, 1, 2, 3]             # a length may stand in another group
    rng.shuffle(codecs)
    rng.shuffle(away)
    for number, codec in enumerate(codecs):
        unit = rng.choice([3, 4])
        groups.append(sf.Group(96, 84, 4, codec, unit, unit if codec else 0))
        fields += [sf.Field("image-%d" % number, sf.U8, (2, 3, 3), number, 0, layout=sf.HWC),
                   sf.Field("text-%d" % number, sf.U8, (7,), number, 20, kind=sf.STRING, ragged_axes=1,
                            length_field=4 * away[number] + 2),
                   sf.Field("length-%d" % number, sf.U32, (), number, 28, semantic=3),
                   sf.Field("label-%d" % number, sf.I64, (), number, 40, semantic=2)]
    groups.append(sf.Group(16, 4, 4, sf.RAW, 5, 0))
    fields.append(sf.Field("alone", sf.U8, (4,), 4, 0))
    count = 11
    columns = []
    for number, g in enumerate(groups):
        column = []
        for i in range(count):
            record = bytearray(g.stride)
            for f in fields:
                if f.group == number:
                    record[f.offset:f.offset + f.bytes] = bytes([1 + i % 3]) * f.bytes
            if number < 4:
                record[20:28] = bytes([65] * 3 + [0] * 5)
                struct.pack_into("<I", record, 28, 3)
            column.append(record)
        columns.append(column)
    near = rng.random() < 0.8       # two faults of the same unit, as far as they are about units
    spot = (codecs.index(rng.choice(codecs)), rng.randrange(count)) if near else None
    each = count * 6
    stats = [sf.StatBlock(sf.MOMENTS, 0, [(each, each, each)] * 3), sf.StatBlock(sf.MOMENTS, 4, [(each, 9, 9)] * 3),
             sf.StatBlock(sf.CLASSES, 3, [4, 7]), sf.StatBlock(sf.CLASSES, 7, [count])]
    return {
        "groups": groups,
        "fields": fields,
        "columns": columns,
        "stats": stats,
        "keys": [b"key %d" % i for i in range(count)],
        "missing": [sf.Missing(3 * i, 1, 1) for i in range(4)],
        "provenance": b"made by a test\n",
        "extra": [sf.SectionDraft(99, 0, 1, b"unknown")],
        "planned_records": 50,
    }, spot


def flip(data, at):
    data[at] ^= 1


class Spots:
    """Where faults of units go: `spot` is a group and a record, or None for anywhere."""

    def __init__(self, rng, base, spot):
        self.rng, self.base, self.spot = rng, base, spot

    def group(self, compressed=False):
        numbers = [i for i, g in enumerate(self.base["groups"][:4]) if g.codec or not compressed]
        return self.spot[0] if self.spot and self.spot[0] in numbers else self.rng.choice(numbers)

    def record(self):
        return self.spot[1] if self.spot else self.rng.randrange(len(self.base["keys"]))

    def unit(self, group, numbers):
        unit = self.record() // self.base["groups"][group].unit_records
        return unit if unit in numbers else self.rng.choice(numbers)


def set_record(rng, spots, at, value):
    spots.base["columns"][spots.group()][spots.record()][at] = value


def cut_chunk(rng, spots, draft):
    """I47: the last byte of a block is missing, hashes are right."""
    group = spots.group(compressed=True)
    data, index = draft.section(sf.DATA, group), draft.section(sf.CIDX, group)
    entries = list(sf.CHUNK.iter_unpack(bytes(index.payload)))
    k = spots.unit(group, [k for k, e in enumerate(entries) if e[2] == 1 and e[1] % 64 != 1])
    change_chunk(data, index, k, entries[k][1] - 1, entries[k][0] - entries[0][0] + entries[k][1] - 1, 0)


def change_chunk(data, index, k, stored, at, value):
    """Set a byte of DATA, which lies in chunk k or behind it, and hash the chunk again."""
    entries = list(sf.CHUNK.iter_unpack(bytes(index.payload)))
    data.payload[at] = value
    begin = entries[k][0] - entries[0][0]
    padded = bytes(data.payload[begin:begin + sf.align(stored, 64)])
    struct.pack_into("<I", index.payload, 32 * k + 8, stored)
    struct.pack_into("<Q", index.payload, 32 * k + 16, sf.h64(padded))


def dirty_padding(rng, spots, draft):
    """I50."""
    group = spots.group(compressed=True)
    data, index = draft.section(sf.DATA, group), draft.section(sf.CIDX, group)
    entries = list(sf.CHUNK.iter_unpack(bytes(index.payload)))
    k = spots.unit(group, [k for k, e in enumerate(entries) if e[1] % 64])
    change_chunk(data, index, k, entries[k][1], entries[k][0] - entries[0][0] + entries[k][1], 1)


def change_index(rng, spots, draft, places):
    group = spots.group(compressed=True)
    index = draft.section(sf.CIDX, group)
    flip(index.payload, 32 * spots.unit(group, range(index.items)) + rng.choice(places))


def change_leaf(rng, spots, draft):
    group = spots.group()
    leaves = draft.section(sf.HASH, group)
    flip(leaves.payload, 8 * spots.unit(group, range(leaves.items)))


def change_table(kind, places):
    return lambda rng, spots, draft: flip(draft.section(kind).payload, rng.choice(places))


def change_section_hash(rng, spots, draft):
    section = rng.choice([s for s in draft.sections if s.kind != sf.DATA])
    section.hash = sf.pack_h128(sf.h128(bytes(section.payload)) ^ 1)


def dirty_gap(rng, spots, data):
    shard = sf.read_shard(bytes(data))
    ends = [sf.PAGE] + [s.end() for s in shard.sections]
    starts = [s.offset for s in shard.sections] + [len(data) - sf.PAGE]
    begin, end = rng.choice([(a, b) for a, b in zip(ends, starts) if a < b])
    data[rng.randrange(begin, end)] = 1


def word(page, at, size, value):
    """A fault of the pages stage: a number, the same for all."""
    def change(rng, pages):
        pages[page][at:at + size] = value.to_bytes(size, "little")
    return change


def group_word(at, size, value, pick=lambda rng, pages: rng.randrange(5)):
    def change(rng, pages):
        struct.pack_into({4: "<I", 8: "<Q"}[size], pages[0], sf.GROUP_TABLE + 64 * pick(rng, pages) + at, value)
    return change


def raw_group(rng, pages):
    return rng.choice([g for g in range(5) if not sf.read32(pages[0], sf.GROUP_TABLE + 64 * g + 20)])


def field_bytes(at, data, pick=lambda rng: rng.randrange(17)):
    def change(rng, pages):
        place = sf.FIELD_TABLE + 128 * pick(rng) + at
        pages[0][place:place + len(data)] = data
    return change


def entry_of(pages, kind):
    """The places of the section table's entries of that type."""
    return [at for at in range(sf.SECTION_TABLE, sf.SECTION_TABLE + 64 * sf.read32(pages[1], 0x20), 64)
            if sf.read32(pages[1], at) == kind]


def entry_add(kind, at, value):
    def change(rng, pages):
        place = rng.choice(entry_of(pages, kind)) + at
        struct.pack_into("<I", pages[1], place, sf.read32(pages[1], place) + value)
    return change


def drop_entry(rng, pages):
    """I36: a HASH section is not in the table."""
    count = min(sf.read32(pages[1], 0x20), 32)
    at, end = rng.choice(entry_of(pages, sf.HASH)), sf.SECTION_TABLE + 64 * count
    pages[1][at:end] = pages[1][at + 64:end] + bytes(64)
    struct.pack_into("<I", pages[1], 0x20, sf.read32(pages[1], 0x20) - 1)


def dirty_reserved(rng, pages):
    places = [
        (0, 0x48), (0, 0x70), (0, sf.GROUP_TABLE + 40), (0, sf.FIELD_TABLE + 110), (0, 0xF00),
        (1, 0x24), (1, 0x38), (1, sf.SECTION_TABLE + 12), (1, sf.SECTION_TABLE + 48), (1, 0xC00),
    ]  # fmt: skip
    page, at = rng.choice(places)
    pages[page][at] = 1


def other_group(rng, pages):
    """I33: the only field of the last group goes to a hole of the first."""
    struct.pack_into("<H", pages[0], sf.FIELD_TABLE + 128 * 16 + 52, 0)
    struct.pack_into("<Q", pages[0], sf.FIELD_TABLE + 128 * 16 + 88, 52)


def image(rng):
    return 4 * rng.randrange(4)


def label(rng):
    return 4 * rng.randrange(4) + 3


SHARD_STAGES = ("records", "tables", "hashes", "gaps", "pages", "footer", "seals")
SHARD_FAULTS = [
    ("records", "I49", lambda rng, spots: set_record(rng, spots, rng.choice([19, 32, 39, 48, 84, 95]), 1)),
    ("records", "I49", lambda rng, spots: rng.choice(spots.base["columns"][4]).__setitem__(rng.randrange(4, 16), 1)),
    ("records", "I57", lambda rng, spots: set_record(rng, spots, 28, 8)),
    ("records", "I58", lambda rng, spots: set_record(rng, spots, 26, 1)),
    ("tables", "I47", cut_chunk),
    ("tables", "I50", dirty_padding),
    ("tables", "I44", change_leaf),
    ("tables", "I46", lambda rng, spots, draft: change_index(rng, spots, draft, range(16, 24))),
    ("tables", "I45", lambda rng, spots, draft: change_index(rng, spots, draft, [0, 12, 24, 31])),
    ("tables", "I51", change_table(sf.KOFF, [2, 8 * 5 + 7, 8 * 11])),
    ("tables", "I52", lambda rng, spots, draft: draft.section(sf.KBLB).payload.__setitem__(rng.randrange(50), 0xFF)),
    ("tables", "I53", change_table(sf.STAT, [1, 88 + 4, 88 + 8, 88 * 2 + 1])),
    ("tables", "I54", change_table(sf.STAT, [16, 88 + 16, 88 + 16 + 25, 88 * 2 + 17, 88 * 2 + 48])),
    ("tables", "I55", change_table(sf.MISS, [8, 16 + 10, 32 + 13, 48 + 8])),
    ("tables", "I56", lambda rng, spots, draft: draft.section(sf.PROV).payload.__setitem__(rng.randrange(14), 0)),
    ("hashes", "I43", change_section_hash),
    ("gaps", "I48", dirty_gap),
    ("pages", "I36", drop_entry),
    ("pages", "I33", other_group),
    ("pages", "I2", word(0, 0, 1, 7)),
    ("pages", "I4", word(1, 1, 1, 7)),
    ("pages", "I6", word(0, 8, 1, 7)),
    ("pages", "I7", word(0, 0x10, 2, 2)),
    ("pages", "I7", word(1, 0x08, 2, 2)),
    ("pages", "I7", word(1, 0x0A, 2, 9)),
    ("pages", "I7", word(0, 0x14, 4, 8192)),
    ("pages", "I8", word(1, 0x10, 4, 8192)),
    ("pages", "I10", word(0, 0x18, 8, 1)),
    ("pages", "I11", word(0, 0x20, 8, 4)),
    ("pages", "I12", word(0, 0x44, 2, 2)),
    ("pages", "I12", word(0, 0x46, 2, 0)),
    ("pages", "I13", dirty_reserved),
    ("pages", "I15", word(0, 0x40, 4, 22)),
    ("pages", "I16", word(0, 0x28, 8, (1 << 40) + 1)),
    ("pages", "I17", word(1, 0x18, 8, 51)),
    ("pages", "I18", group_word(8, 8, 0)),
    ("pages", "I19", group_word(16, 4, 13)),
    ("pages", "I20", group_word(24, 4, 0)),
    ("pages", "I21", group_word(20, 4, 7)),
    ("pages", "I22", group_word(28, 4, 1, raw_group)),
    ("pages", "I23", field_bytes(0, b"-")),
    ("pages", "I24", field_bytes(0, b"label-0\0\0", lambda rng: 5)),
    ("pages", "I25", field_bytes(48, b"\x0e\0", label)),
    ("pages", "I26", field_bytes(106, b"\x09\0")),
    ("pages", "I26", field_bytes(51, b"\x03", image)),
    ("pages", "I27", field_bytes(84, b"\1")),
    ("pages", "I28", field_bytes(96, b"\x11")),
    ("pages", "I29", field_bytes(52, b"\x05")),
    ("pages", "I30", field_bytes(88, b"\x2d", label)),
    ("pages", "I31", field_bytes(88, b"\x10", lambda rng: 4 * rng.randrange(4) + 1)),
    ("pages", "I32", field_bytes(104, b"\1", image)),
    ("pages", "I34", entry_add(99, 4, 1)),
    ("pages", "I35", entry_add(sf.KOFF, 8, 1)),
    ("pages", "I35", entry_add(sf.HASH, 8, 9)),
    ("pages", "I37", entry_add(sf.HASH, 16, 4096)),
    ("pages", "I38", entry_add(sf.DATA, 32, 1)),
    ("pages", "I39", entry_add(sf.HASH, 32, 1)),
    ("pages", "I40", entry_add(sf.CIDX, 32, 1)),
    ("pages", "I41", entry_add(sf.KBLB, 32, 1)),
    ("pages", "I42", entry_add(sf.PROV, 32, 1)),
    ("pages", "I53", entry_add(sf.STAT, 32, 1)),
    ("pages", "I14", word(0, 0x38, 4, 9)),
    ("pages", "I14", word(1, 0x20, 4, 33)),
    ("footer", "I9", lambda rng, pages: flip(pages[1], 0x30)),
    ("seals", "I3", lambda rng, pages: flip(pages[0], 0xFFF)),
    ("seals", "I5", lambda rng, pages: flip(pages[1], 0xFF0)),
    ("seals", "I1", lambda rng, pages: pages[1].append(0)),
]


def faulty_shard(rng, faults):
    """A shard with these faults. The header's hash is also in the footer: I9 is another fault."""
    def put(stage, *where):
        for f in faults:
            if f[0] == stage:
                f[2](rng, *where)
    faults = sorted(faults, key=SHARD_FAULTS.index)
    base, spot = fault_base(rng)
    spots = Spots(rng, base, spot)
    put("records", spots)
    draft = sf.draft_shard(**base)
    for section in draft.sections:
        section.payload = bytearray(section.payload)
    put("tables", spots, draft)
    for section in draft.sections:
        section.payload = bytes(section.payload)
    put("hashes", spots, draft)
    data = bytearray(draft.pack())
    put("gaps", spots, data)
    pages = [data[:sf.PAGE], data[-sf.PAGE:]]
    put("pages", pages)
    pages[0] = bytearray(sf.seal_page(pages[0], []))
    broken_hash = any(f[1] == "I3" for f in faults)
    pages[1][0x28:0x38] = pages[0][sf.PAGE_HASH:-1] + bytes([pages[0][-1] ^ broken_hash])
    put("footer", pages)
    pages[1] = bytearray(sf.seal_page(pages[1], []))
    put("seals", pages)
    return bytes(pages[0] + data[sf.PAGE:-sf.PAGE] + pages[1])


def manifest_base():
    """The lines of a manifest with lines of all kinds."""
    groups = [sf.Group(64, 50, 4, sf.LZ4, 8, 8), sf.Group(16, 8, 4, sf.RAW, 4, 0)]
    fields = [sf.Field("image", sf.U8, (2, 4, 3), 0, 0, layout=sf.HWC), sf.Field("mask", sf.U8, (6,), 0, 24),
              sf.Field("text", sf.U8, (5,), 0, 32, kind=sf.STRING, ragged_axes=1, length_field=3),
              sf.Field("length", sf.U32, (), 0, 40), sf.Field("label", sf.I64, (), 1, 0, semantic=2)]
    stats = [sf.StatBlock(sf.MOMENTS, 0, [(8 * 30, 900, 9000)] * 3), sf.StatBlock(sf.MOMENTS, 1, [(6 * 30, 9, 9)]),
             sf.StatBlock(sf.CLASSES, 3, [10, 20]), sf.StatBlock(sf.CLASSES, 4, [5, 5, 20])]
    shards = [sf.ShardLine("%05d.shard" % i, 8192 + 4096 * i, 10, 7 * i, "%064x" % i) for i in range(3)]
    return sf.manifest_lines(
        sf.Manifest(groups, fields, ["cat", "dog", "cow"], stats, shards, "%064x" % 5, "shuffle 7")
    )


def lines_of(lines, keyword):
    return [i for i, line in enumerate(lines) if line.split(" ")[0] == keyword]


def token(keyword, at, value, pick=lambda rng, found: rng.choice(found)):
    """A fault that sets a word of such lines. `value` is the new word, or a function of the old."""
    def change(rng, lines):
        found = lines_of(lines, keyword)
        if found:
            i = pick(rng, found)
            words = lines[i].split(" ")
            if at < len(words):
                words[at] = value(words[at]) if callable(value) else value
            lines[i] = " ".join(words)
    return change


def plus_one(old):
    return str(int(old) + 1)


def any_line(change):
    """A fault that changes a line, the first one included."""
    def put(rng, lines):
        i = rng.randrange(len(lines))
        lines[i] = change(lines[i])
    return put


def with_zero(rng, lines):
    """M7: a number with a leading zero."""
    places = [
        (i, k)
        for i, line in enumerate(lines)
        for k, w in enumerate(line.split(" "))
        if k and w.isdecimal() and len(w) < 9
    ]
    i, k = rng.choice(places)
    words = lines[i].split(" ")
    lines[i] = " ".join(words[:k] + ["0" + words[k]] + words[k + 1:])


def without_one(keyword, pick):
    def change(rng, lines):
        found = lines_of(lines, keyword)
        if found:
            del lines[found[pick]]
    return change


def without_all(keyword):
    def change(rng, lines):
        lines[:] = [line for line in lines if line.split(" ")[0] != keyword]
    return change


def swapped(rng, lines):
    """M6: two of the first lines."""
    i = rng.randrange(1, 4)
    if len(lines) > i + 1:
        lines[i], lines[i + 1] = lines[i + 1], lines[i]


def late_line(rng, lines):
    """M6: a line behind those of a later kind."""
    lines.append(lines[rng.choice(lines_of(lines, "group") + lines_of(lines, "class") + [0])])


SEALS = ("M2", "M3", "M15")
MANIFEST_FAULTS = [
    ("lines", "M4", token("shardset", 1, "2")),
    ("lines", "M7", token("shardset", 1, "02")),
    ("lines", "M7", token("plan", 1, "AB" * 32)),
    ("lines", "M7", token("shard", 4, plus_one)),
    ("lines", "M8", token("group", 1, plus_one)),
    ("lines", "M8", token("field", 1, plus_one)),
    ("lines", "M8", token("class", 1, plus_one)),
    ("lines", "M8", token("shard", 1, plus_one)),
    ("lines", "M9", token("group", 3, "8")),
    ("lines", "M9", token("group", 9, "zstd")),
    ("lines", "M9", token("field", 8, "f8")),
    ("lines", "M10", token("class", 2, "c%61t")),
    ("lines", "M11", token("stat", 4, plus_one)),
    ("lines", "M11", token("stat", 2, "9")),
    ("lines", "M11", without_one("stat", 1)),
    ("lines", "M11", without_one("stat", -1)),
    ("lines", "M12", token("shard", 2, "../x")),
    ("lines", "M13", token("shards", 1, plus_one)),
    ("lines", "M14", token("shard", 6, plus_one)),
    ("lines", "M16", token("class", 2, "dog", lambda rng, found: found[0])),
    ("lines", "M17", token("shard", 2, "00001.shard", lambda rng, found: found[0])),
    ("lines", "M8", without_all("group")),
    ("lines", "M8", without_all("field")),
    ("lines", "M7", with_zero),
    ("lines", "M6", swapped),
    ("lines", "M6", late_line),
    ("lines", "M6", lambda rng, lines: lines.insert(rng.randrange(1, len(lines) + 1), "remark 1")),
    ("lines", "M6", any_line(lambda line: line + " 0")),
    ("lines", "M6", any_line(lambda line: " ".join(line.split(" ")[:-1] + ["x", "x"]))),
    ("lines", "M6", lambda rng, lines: lines.__delitem__(slice(rng.randrange(1, 5), None))),
    ("lines", "M5", any_line(lambda line: line + " ")),
    ("lines", "M5", any_line(lambda line: line.replace(" ", "  ", 1) if line[:9] != "shardset " else line + "\t")),
    ("lines", "M5", any_line(lambda line: line + "0" * 4096)),
    ("lines", "M1", lambda rng, lines: lines.__setitem__(0, "s" + lines[0])),
    ("seals", "M15", None),
    ("seals", "M3", None),
    ("seals", "M2", None),
]


def faulty_manifest(rng, faults):
    lines = manifest_base()
    for _, rule, put in sorted(faults, key=MANIFEST_FAULTS.index):
        if rule not in SEALS:
            put(rng, lines)
    seals = [f[1] for f in faults if f[1] in SEALS]
    data = sf.seal_manifest(lines, "0" * 64 if "M15" in seals else None, "0" * 32 if "M3" in seals else None)
    return data[:-1] if "M2" in seals else data


UNIT_RULES = ("I44", "I45", "I46", "I47", "I49", "I50", "I57", "I58")


def fault_pairs(rng, what, faults, make, verdict, place):
    """Every fault alone, then every two of them, judged by both readers."""
    cases, paths, both = [], [], 0
    for i, a in enumerate(faults):
        data = make(rng, [a])
        cases.append(("%s alone" % a[1], verdict(data)))
        if cases[-1][1].split()[1:2] != [a[1]]:
            sys.exit("%s: fault %d (%s) alone breaks %s" % (what, i, a[1], cases[-1][1]))
        paths.append(place(len(paths), data))
    pairs = [(k, i) for i in range(len(faults)) for k in range(i)]
    pairs += [p for p in pairs if faults[p[0]][1] in UNIT_RULES and faults[p[1]][1] in UNIT_RULES] * (NEAR_ROUNDS - 1)
    tried = 0
    for number, (k, i) in enumerate(pairs):
        a, b = faults[k], faults[i]
        data = make(rng, [a, b])
        said = verdict(data)
        cases.append(("%s and %s (faults %d and %d)" % (a[1], b[1], k, i), said))
        paths.append(place(len(paths), data))
        if number % 3 == 0 and a[1] != b[1]:    # are there really two? Without the first rule the other one shows
            first = said.split()[1:2]
            tried += 1
            both += first in ([a[1]], [b[1]]) and verdict(data, set(first)).split()[1:2] in ([a[1]], [b[1]])
    compare_verdicts(what, cases, paths)
    print("%s: %d pairs; both faults show in %d of %d" % (what, len(pairs), both, tried))
    assert both >= tried // 2, "too few of the files break two rules"


def whole_shard(rng):
    """A whole image with drawn sizes; in half of the shards one change makes it an ordinary one."""
    image = dict(name="x", dtype=sf.U8, shape=(12, 3), layout=sf.HWC, semantic=sf.IMAGE, kind=sf.RAGGED, ragged_axes=1,
                 length_field=1)
    size = dict(name="x_size", dtype=sf.U32, shape=(2,), offset=4, group=1)
    if rng.random() < 0.5:
        field, change = rng.choice([
            (image, {"dtype": 2}), (image, {"layout": sf.CHW}), (image, {"layout": 0}), (image, {"semantic": 5}),
            (image, {"shape": (12, 5)}), (image, {"shape": (12, 3, 1)}), (image, {"shape": (36,)}),
            (image, {"name": "x_size_size"}), (size, {"name": "y_size"}), (size, {"dtype": 6}), (size, {"dtype": 7,
             "shape": ()}), (size, {"shape": (2, 1)}), (size, {"shape": (1, 2)}), (size, {"semantic": 3})])
        field.update(change)
    fields = [sf.Field(**image), sf.Field("n", sf.U32, (1,), 1, semantic=3), sf.Field(**size)]
    columns = [[], []]
    for _ in range(4):
        pixels, height, width = rng.choice([
            (12, 3, 4), (6, 2, 3), (1, 1, 1), (12, 12, 1), (12, 3, 4), (6, 2, 3), (12, 4, 4), (0, 0, 0), (0, 0, 3),
            (13, 13, 1), (10, 65537, 4294311946), (0, 1 << 16, 1 << 16), (5, 5, 0), (11, 12, 1)])
        columns[0].append(bytes([1 + pixels % 200] * min(3 * pixels, 36)).ljust(64, b"\0"))
        columns[1].append(struct.pack("<3I", pixels, height, width).ljust(16, b"\0"))
    groups = [sf.Group(64, 60, 4, unit_records=64), sf.Group(16, 12, 4, unit_records=256)]
    return sf.draft_shard(groups, fields, columns).pack()


def whole_images(rng):
    cases, paths = [], []
    for i in range(WHOLE_SHARDS):
        data = whole_shard(rng)
        cases.append(("shard %d" % i, python_verdict(data)))
        paths.append(write("whole-%d.shard" % i, data))
    compare_verdicts("whole images", cases, paths)
    seen = [said.split()[1] if " " in said else said for _, said in cases]
    print("whole images: %d good, %d break I59" % (seen.count("ok"), seen.count("I59")))
    assert min(seen.count("ok"), seen.count("I59")) >= WHOLE_SHARDS // 10, "too few of a kind"


def two_faults(rng):
    def place_manifest(number, data):
        os.mkdir(path_of("two-%d" % number))
        write("two-%d/%s" % (number, sf.MANIFEST_NAME), data)
        return path_of("two-%d" % number)
    fault_pairs(rng, "shards with two faults", SHARD_FAULTS, faulty_shard, python_verdict,
                lambda number, data: write("two-%d.shard" % number, data))
    fault_pairs(rng, "manifests with two faults", MANIFEST_FAULTS, faulty_manifest, manifest_verdict, place_manifest)


def control():
    """A reader that lacks a rule is caught: the comparison itself must be able to fail."""
    data = sf.read_file("format/bad/I13_reserved_byte.shard")
    path = write("control.shard", data)
    said = run("--verdict", path).strip()
    assert said == python_verdict(data) == "open I13 corrupt", said
    whole = sf.Rules.fail
    sf.Rules.fail = lambda self, number, message, status="corrupt": (
        number == "I13" or whole(self, number, message, status)
    )
    try:
        assert python_verdict(data) != said
    finally:
        sf.Rules.fail = whole


def main():
    rng = random.Random(SEED)
    control()
    good_files(rng)
    bad_files(rng)
    two_faults(rng)
    whole_images(rng)


main()
