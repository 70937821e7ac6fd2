#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""readers.py DUMP_SHARD FOLDER SEED - the comparisons of readers.sh

DUMP_SHARD is the program of tests/store/dump_shard.c, FOLDER takes the files that are made on the way.
"""

import hashlib
import os
import random
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "format"))
import shardfmt as sf  # noqa: E402

DUMP, FOLDER, SEED = sys.argv[1], sys.argv[2], int(sys.argv[3])
GOLDEN = "format/golden"
PAGES, MANIFESTS = 420, 260     # mutated files
C_SHARDS, PY_SHARDS = 60, 60
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
            sys.exit("%s (%s), line %d of the dump: the library says\n\t%s\nshardfmt.py says\n\t%s" % (what, path, i + 1, a, b))
    sys.exit("%s (%s): one dump is longer than the other" % (what, path))


# ---------------------------------------------------------------------------------------------------
# Good files.

def golden_files():
    shards = sorted(n for n in os.listdir(GOLDEN) if n.endswith(".shard"))
    folders = sorted(n for n in os.listdir(GOLDEN) if os.path.isdir(os.path.join(GOLDEN, n)))
    return [os.path.join(GOLDEN, n) for n in shards], [os.path.join(GOLDEN, n) for n in folders]


def random_schema(rng):
    groups, fields = [], []
    for number in range(rng.randint(1, 3)):
        offset = 0
        for _ in range(rng.randint(1, 3)):
            dtype = rng.randint(1, len(sf.DTYPES) - 1)
            size = sf.DTYPE_BYTES[dtype]
            offset = sf.align(offset + rng.choice([0, 0, 3]), size)
            shape = tuple(rng.randint(1, 6) for _ in range(rng.randint(0, 3)))
            fields.append(sf.Field("f-%d" % len(fields), dtype, shape, number, offset, layout=rng.randint(0, 4),
                                   semantic=rng.randint(0, 7)))
            offset += fields[-1].bytes
        if rng.random() < 0.4:      # a string, its length behind it
            offset = sf.align(offset + 7, 4)
            fields.append(sf.Field("s-%d" % number, sf.U8, (7,), number, offset - 7, kind=sf.STRING, ragged_axes=1,
                                   length_field=len(fields) + 1))
            fields.append(sf.Field("l-%d" % number, sf.U32, (), number, offset, semantic=3))
            offset += 4
        log2 = rng.choice([0, 4, 6])
        unit = rng.choice([1, 2, 7, 256])
        codec = rng.choice([sf.RAW, sf.LZ4])
        groups.append(sf.Group(sf.align(offset + rng.choice([0, 5]), 1 << log2), offset, log2, codec, unit, unit if codec else 0))
    return groups, fields


def random_record(rng, groups, fields, number):
    record = bytearray(groups[number].stride)
    for f in fields:
        if f.group == number:
            record[f.offset:f.offset + f.bytes] = rng.choice([rng.randbytes(f.bytes), bytes([rng.randint(0, 255)]) * f.bytes])
    for f in fields:
        if f.group == number and f.kind == sf.STRING:
            length = rng.randint(0, 7)
            record[f.offset + length:f.offset + 7] = bytes(7 - length)
            struct.pack_into("<I", record, fields[f.length_field].offset, length)
    return bytes(record)


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


# ---------------------------------------------------------------------------------------------------
# Bad files: the library and shardfmt.py must name the same rule.

def python_verdict(data):
    try:
        shard = sf.read_shard(data)
    except sf.FormatError as error:
        return "open %s %s" % (error.number, STATUS[error.status])
    try:
        sf.read_shard(data, verify=True)        # I11
        sf.verify_open_shard(shard)
    except sf.FormatError as error:
        return "verify %s %s" % (error.number, STATUS[error.status])
    return "ok"


HEADER_WORDS = [(0x008, 8), (0x010, 2), (0x012, 2), (0x014, 4), (0x018, 8), (0x020, 8), (0x028, 8), (0x030, 8), (0x038, 4),
                (0x03C, 4), (0x040, 4), (0x044, 2), (0x046, 2)]
FOOTER_WORDS = [(0x008, 2), (0x00A, 2), (0x00C, 4), (0x010, 8), (0x018, 8), (0x020, 4)]
GROUP_WORDS = [(0, 8), (8, 8), (16, 4), (20, 4), (24, 4), (28, 4)]
FIELD_WORDS = [(0, 1), (5, 1), (46, 1), (47, 1), (48, 2), (50, 1), (51, 1), (52, 2), (54, 2), (56, 4), (60, 4), (64, 4), (84, 4),
               (88, 8), (96, 8), (104, 1), (105, 1), (106, 2)]
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
    return rng.choice([0, 1, old + 1, old - 1, 2 * old, old // 2, old ^ 1 << rng.randrange(8 * size), top, top - 1,
                       1 << rng.randrange(8 * size), rng.getrandbits(8 * size), -old, old + 4096, old - 4096, old + 16]) & top


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
        if what and (page, offset // 2 * 2) == (0, 0x010) or any("header 0x010" in w or "header 0x011" in w for w in what):
            continue                # the version alone: shardfmt.py looks at it later than SHARD.md says
        old = int.from_bytes(pages[page][offset:offset + size], "little")
        new = other_value(rng, old, size)
        pages[page][offset:offset + size] = new.to_bytes(size, "little")
        what.append("%s 0x%03x: %d -> %d" % ("footer" if page else "header", offset, old, new))
    header = sf.seal_page(bytearray(pages[0]), [])
    if not any(w.startswith("footer 0x02") or w.startswith("footer 0x03") for w in what):
        pages[1][0x28:0x38] = header[sf.PAGE_HASH:]
    footer = sf.seal_page(bytearray(pages[1]), [])
    return header + bytes(data[sf.PAGE:-sf.PAGE]) + footer, "%s, %s" % (path, "; ".join(what))


TOKENS = ["", "0", "1", "2", "-", "-1", "01", "00", "255", "256", "65536", "4294967295", "4294967296", "18446744073709551615",
          "18446744073709551616", "4611686018427387905", "8192", "8193", "4096", "raw", "lz4", "u8", "i64", "f8", "tensor", "ragged",
          "string", "hwc", "image", "label", "x", "../x", "a/b", "%41", "%2f", "%FF", "moments", "classes", "group", "field", "0,1",
          "1,0", "1,", "0,8", "2,3,4", "1,1,1,1,1,1,1,1,1", "\t", "\u00e9", "a" * 48, "a" * 4100, "0" * 32, "f" * 64, "F" * 64]


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
        words[k] = rng.choice(TOKENS + [words[k] + "0", words[k][:-1], words[k] + words[k]] + lines[rng.randrange(len(lines))].split(" "))
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
    return head + sf.h128_text(sf.h128(head)).encode("ascii") + b"\n", "%s, line %d: %a -> %a" % (path, i + 1, was, lines[i:i + 1])


def manifest_verdict(data):
    try:
        manifest = sf.read_manifest(data)
    except sf.FormatError as error:
        return "open %s %s" % (error.number, STATUS[error.status])
    try:
        sf.verify_manifest(data, manifest, sf.Rules())
    except sf.FormatError as error:
        return "verify %s %s" % (error.number, STATUS[error.status])
    return "ok"


def met_earlier(case, ours):
    """A manifest can break several rules in several lines. shardfmt.py names the first rule, the library, which reads
    line by line, the first line: then its rule stands behind that of shardfmt.py."""
    numbers = [int(v.split()[1][1:]) if v.startswith("open M") else 0 for v in (case[1], ours)]
    return 6 <= numbers[0] < numbers[1]


def compare_verdicts(what, cases, paths, several=lambda case, ours: False):
    """`cases` are (description, verdict of shardfmt.py). `several` says that both verdicts are right."""
    ours = []
    for at in range(0, len(paths), 100):
        ours += run("--verdict", *paths[at:at + 100]).splitlines()
    differ = [(case, c) for case, c in zip(cases, ours) if case[1] != c]
    both = [d for d in differ if several(*d)]
    wrong = ["%s:\n\tthe library says %s, shardfmt.py %s" % (case[0], c, case[1]) for case, c in differ if (case, c) not in both]
    assert len(both) <= len(cases) // 25, "%d of %d files break several rules and are judged by another one" % (len(both), len(cases))
    if wrong or len(ours) != len(cases):
        sys.exit("%s: %d of %d verdicts differ\n%s" % (what, len(wrong), len(cases), "\n".join(wrong[:20])))
    numbers = sorted({c[1].split()[1] for c in cases if c[1] != "ok"}, key=lambda n: (n[0], int(n[1:])))
    good = sum(1 for c in cases if c[1] == "ok")
    print("%s: %d, %d still good, %d rules: %s%s" % (what, len(cases), good, len(numbers), " ".join(numbers),
                                                    "; %d break several and are judged by another" % len(both) if both else ""))
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
    numbers, good = compare_verdicts("mutated manifests", cases, paths, met_earlier)
    assert len(numbers) >= 8 and good >= 3, "the mutations reach too little"


def control():
    """A reader that lacks a rule is caught: the comparison itself must be able to fail."""
    data = sf.read_file("format/bad/I13_reserved_byte.shard")
    path = write("control.shard", data)
    said = run("--verdict", path).strip()
    assert said == python_verdict(data) == "open I13 corrupt", said
    sf.Rules.fail, whole = (lambda self, number, message, status="corrupt": number == "I13" or whole(self, number, message, status)), \
        sf.Rules.fail
    try:
        assert python_verdict(data) != said
    finally:
        sf.Rules.fail = whole


def main():
    rng = random.Random(SEED)
    control()
    good_files(rng)
    bad_files(rng)


main()
