#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_corpus.py [DIR] - write the hostile files of tests/fuzz/corpus, or the same into DIR

Each is a small valid file with one lie in it, of the kinds that parsers of other formats fell for:
counts near 2^64, products and sums that wrap, alignments that are absurd, loops without an end.
All hashes are right, so the lie is what is judged. tests/fault/hostile.sh gives every file to the
tools and checks that this script still makes the committed ones; inputs that fuzzing found are kept
beside them under names that begin with found_.
"""
import os
import struct
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "format"))
import shardfmt as sf  # noqa: E402

PAGE = 4096
GROUP, FIELD = 256, 768  # in the header
ENTRY = 1024  # in the footer: the first section
TOP = 1 << 64


def golden(name):
    with open(os.path.join(ROOT, "format", "golden", name), "rb") as f:
        return bytearray(f.read())


def u16(v):
    return struct.pack("<H", v % (1 << 16))


def u32(v):
    return struct.pack("<I", v % (1 << 32))


def u64(v):
    return struct.pack("<Q", v % TOP)


def seal(data):
    """Hashes of the tables that lie in the file, then of the pages."""
    foot = len(data) - PAGE
    for at in range(foot + ENTRY, foot + ENTRY + 32 * 64, 64):
        kind, _, _, _, offset, size = struct.unpack_from("<IIIIQQ", data, at)
        if kind > 1 and offset <= foot and size <= foot - offset:
            data[at + 48:at + 64] = sf.pack_h128(sf.h128(bytes(data[offset:offset + size])))
    data[PAGE - 16:PAGE] = sf.pack_h128(sf.h128(bytes(data[:PAGE - 16])))
    data[foot + 40:foot + 56] = data[PAGE - 16:PAGE]
    data[-16:] = sf.pack_h128(sf.h128(bytes(data[foot:-16])))
    return bytes(data)


def lie(name, head=(), foot=(), body=()):
    """A golden shard with (offset, bytes) put into its header, its footer, or anywhere."""
    data = golden(name)
    start = len(data) - PAGE
    for offset, put in list(head) + [(start + o, p) for o, p in foot] + list(body):
        data[offset:offset + len(put)] = put
    return seal(data)


def entry(index, offset=None, size=None, items=None):
    """Changes of a section's entry."""
    at = ENTRY + 64 * index
    parts = ((16, offset), (24, size), (32, items))
    return [(at + o, u64(v)) for o, v in parts if v is not None]


def stat_without_end():
    """Blocks whose items make no bytes, in a file of six pages."""
    groups = [sf.Group(16, 8, 4, 0, 256, 0)]
    fields = [sf.Field("value", dtype=1, shape=(8,), bytes=8)]
    blocks = [sf.StatBlock(1, 0, [(16, 0, 0)] * 1)]
    data = bytearray(sf.draft_shard(groups, fields, [[bytes(8)] * 2], stats=blocks).pack())
    foot = len(data) - PAGE
    at = struct.unpack_from("<Q", data, foot + ENTRY + 2 * 64 + 16)[0]
    data[at + 8:at + 16] = u64(1 << 61)
    return seal(data)


def shards():
    yield "planned_2_63", lie("empty.shard", [(40, u64(1 << 63))])
    yield "records_minus_1", lie("empty.shard", [(40, u64(1 << 40))], [(24, u64(-1))])
    yield "groups_minus_1", lie("empty.shard", [(56, u32(-1))])
    yield "sections_minus_1", lie("empty.shard", [], [(32, u32(-1))])
    yield "ndim_9", lie("empty.shard", [(FIELD + 50, b"\x09")])
    yield "shape_wraps_to_8", lie("empty.shard", [(FIELD + 50, b"\x04"), (FIELD + 56, u32(1 << 31) * 2 + u32(4) * 2)])
    yield "align_2_30", lie("empty.shard", [(GROUP + 16, u32(30))])
    yield "align_2_63", lie("empty.shard", [(GROUP + 16, u32(63)), (64, u32(63))])
    yield "stride_2_63", lie("empty.shard", [(GROUP, u64(1 << 63))])
    yield "stride_1_gib", lie("empty.shard", [(GROUP, u64(1 << 30)), (GROUP + 24, u32(1 << 20)), (40, u64(1 << 40))])
    yield "chunk_wraps", lie("empty.shard", [(GROUP, u64(1 << 30)), (GROUP + 20, u32(1) + u32(1 << 20) * 2)])
    yield "section_wraps", lie("empty.shard", [], entry(0, TOP - PAGE, 2 * PAGE))
    yield "data_past_end", lie(
        "empty.shard", [(40, u64(1 << 40))], entry(0, None, 1 << 43, 1 << 39) + [(24, u64(1 << 39))]
    )
    yield "dtype_ffff", lie("empty.shard", [(FIELD + 48, u16(0xffff))])
    yield "stat_without_end", stat_without_end()
    yield "key_offsets_wrap", lie("keys.shard", body=[(12288 + 8, u64(TOP - 16) + u64(16))])
    yield "chunk_offset_wraps", lie("lz4_chunks.shard", body=[(12288 + 32, u64(TOP - 64) + u32(-1) + u32(1))])
    yield "cut_in_header", bytes(golden("empty.shard")[:100])
    yield "cut_in_footer", bytes(golden("empty.shard")[:4097])


def manifests():
    text = golden("dataset/dataset.manifest").decode("latin-1").split("\n")[:-2]

    def edit(old, new):
        changed = [line.replace(old, new) for line in text]
        if changed == text:
            raise ValueError(old)
        return sf.seal_manifest(changed)

    yield "records_2_64", edit("records 5", "records 18446744073709551616")
    yield "shards_2_32", edit("shards 2", "shards 4294967296")
    yield "sum_of_records_wraps", edit("records 3 root", "records 18446744073709551615 root")
    yield "channel_2_32", edit("stat moments 0 1 80", "stat moments 0 4294967297 80")
    yield "class_number_2_63", edit("class 1 d", "class 9223372036854775808 d")
    yield "line_of_5000_bytes", edit("class 0 cat", "class 0 " + "c" * 5000)
    yield "nul_in_name", edit("class 0 cat", "class 0 c%00t")


def blocks():
    """Three bytes of decoded size, then an LZ4 block."""
    yield "match_before_start", b"\x20\0\0" + b"\x10a\xff\xff" + b"\x50aaaaa"
    yield "length_without_end", b"\xff\xff\x0f" + b"\xff" * 300
    yield "promises_255_times", b"\xff\0\0" + b"\x1f" + b"a\x01\0" + b"\xe1" + b"\x50aaaaa"


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "tests", "fuzz", "corpus")
    for target, suffix, made in (
        ("shard", ".shard", shards()),
        ("manifest", ".manifest", manifests()),
        ("lz4", "", blocks()),
    ):
        folder = os.path.join(out, "fuzz_" + target)
        os.makedirs(folder, exist_ok=True)
        for name, data in made:
            with open(os.path.join(folder, name + suffix), "wb") as f:
                f.write(data)


main()
