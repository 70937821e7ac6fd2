#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes golden/ and bad/, the test files of the shard format, with shardfmt.py.

golden/ holds valid files, each with what it says as JSON beside it. Every later version must read
them, so files are added there, never changed. bad/ holds at least one file for each rule of
SHARD.md, named after it: it breaks this rule and no other, all hashes over the broken place being
right.

The same run gives the same bytes. `--check` writes nothing: it compares with what is there,
verifies every file, and proves for each file in bad/ that the rule is reported and that the file is
accepted when that one check is skipped.
"""

import argparse
import hashlib
import os
import struct
import sys

sys.dont_write_bytecode = True

import shardfmt as sf  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = {}         # path below golden/ -> bytes
GOLDEN_ROOTS = []   # what has a dump: shards and dataset folders
BAD = {}            # path below bad/ -> bytes
BAD_CASES = []      # (number, status, path of file or folder)


def noise(seed, size):
    """Bytes that do not compress."""
    parts = [hashlib.sha256(b"%d %d" % (seed, i)).digest() for i in range(size // 32 + 1)]
    return b"".join(parts)[:size]


def slope(seed, size):
    """Bytes that compress: short runs of rising numbers."""
    return bytes((seed + i // 16) & 0xFF for i in range(size))


def u64s(*values):
    return struct.pack("<%dQ" % len(values), *values)


# --------------------------------------------------------------------------------------------------
# golden/

def golden_shard(name, groups, fields, columns, **options):
    GOLDEN[name + ".shard"] = sf.write_shard(groups, fields, columns, **options)
    GOLDEN_ROOTS.append(name + ".shard")


def image_field(**changes):
    options = dict(shape=(8, 8, 3), layout=sf.HWC, semantic=1)
    options.update(changes)
    return sf.Field("image", sf.U8, **options)


def label_field(group, offset=0):
    return sf.Field("label", sf.I64, group=group, offset=offset, semantic=2)


def golden_raw():
    golden_shard("raw_one_group", [sf.Group(16, 13, 4, unit_records=256)], [sf.Field("value", sf.U8, (13,))],
                 [[noise(i, 13) for i in range(5)]])
    golden_shard("raw_three_groups",
                 [sf.Group(192, 192, 6, unit_records=4), sf.Group(16, 8, 4, unit_records=256),
                  sf.Group(16, 12, 4, unit_records=3)],
                 [image_field(), label_field(1), sf.Field("weight", sf.F32, (3,), group=2)],
                 [[noise(i, 192) for i in range(10)], [u64s(i % 3) for i in range(10)],
                  [struct.pack("<3f", i, i / 2, -i) for i in range(10)]],
                 plan_shard=7, plan_digest=hashlib.sha256(b"a plan").digest(), planned_records=12)
    golden_shard("short_last_unit", [sf.Group(64, 64, 6, unit_records=4)], [sf.Field("value", sf.U8, (64,))],
                 [[noise(100 + i, 64) for i in range(6)]])
    golden_shard("empty", [sf.Group(16, 8, 4, unit_records=256)], [sf.Field("value", sf.U8, (8,))], [[]])
    golden_shard("align_64k", [sf.Group(16, 16, 4, unit_records=256)], [sf.Field("value", sf.U8, (16,))],
                 [[noise(200 + i, 16) for i in range(3)]], align_log2=16)
    golden_shard("minor_version", [sf.Group(16, 8, 4, unit_records=256)], [sf.Field("value", sf.U8, (8,))], [[]],
                 minor=7)
    golden_shard("unknown_section", [sf.Group(16, 8, 4, unit_records=256)], [sf.Field("value", sf.U8, (8,))],
                 [[b"01234567"]], extra=[sf.SectionDraft(200, 0, 3, b"a later version wrote this")])


def golden_lz4():
    records = [slope(i, 256) for i in range(14)]
    records[4:8] = [noise(300 + i, 256) for i in range(4)]
    golden_shard("lz4_chunks", [sf.Group(256, 256, 4, sf.LZ4, 4, 4)], [sf.Field("value", sf.U8, (256,))], [records])
    golden_shard("lz4_mixed",
                 [sf.Group(256, 192, 6, sf.LZ4, 4, 4), sf.Group(16, 8, 4, unit_records=2),
                  sf.Group(1024, 1000, 6, sf.LZ4, 1, 1)],
                 [image_field(), label_field(1), sf.Field("mask", sf.U8, (1000,), group=2, semantic=5)],
                 [[slope(3 * i, 192) for i in range(9)], [u64s(i) for i in range(9)],
                  [b"" if i % 2 else bytes(500) + b"\xff" * 500 for i in range(9)]])
    golden_shard("lz4_empty", [sf.Group(256, 256, 4, sf.LZ4, 4, 4)], [sf.Field("value", sf.U8, (256,))], [[]], keys=[])


def golden_optional_sections():
    group = [sf.Group(16, 8, 4, unit_records=256)]
    golden_shard(
        "keys",
        group,
        [label_field(0)],
        [[u64s(i) for i in range(6)]],
        keys=[
            b"a/first.png",
            b"",
            b"a/first.png",
            "b/zw\u00f6lf \u96ea \U0001f40d.png".encode("utf-8"),
            b"x" * 1024,
            b"quote\" \\ tab\t%41\x7f",
        ],
    )
    pixels = [slope(40 * i, 48) for i in range(4)]
    golden_shard("all_sections",
                 [sf.Group(64, 48, 6, sf.LZ4, 2, 2), sf.Group(16, 8, 4, unit_records=256)],
                 [image_field(shape=(4, 4, 3)), label_field(1)],
                 [pixels, [u64s(i % 2) for i in range(4)]],
                 keys=[b"%d.png" % i for i in range(4)],
                 stats=[moments(0, [p[c::3] for p in pixels for c in range(3)], 3),
                        sf.StatBlock(sf.CLASSES, 1, [2, 2, 0])],
                 missing=[sf.Missing(1, 1, 1), sf.Missing(5, 4, 2), sf.Missing(1 << 40, 65535, 1)],
                 provenance="recipe: resize 4x4 \u2192 crop\n".encode("utf-8"), planned_records=9)


def moments(field, planes, channels):
    """`planes` are the bytes of channel 0, 1, ... of the first record, then of the next one."""
    items = []
    for c in range(channels):
        data = b"".join(planes[c::channels])
        items.append((len(data), sum(data), sum(b * b for b in data)))
    return sf.StatBlock(sf.MOMENTS, field, items)


def golden_schemas():
    fields = []
    offset = 0
    for dtype in range(1, len(sf.DTYPES)):
        size = sf.DTYPE_BYTES[dtype]
        offset = sf.align(offset, size)
        fields.append(sf.Field("f_" + sf.DTYPES[dtype], dtype, (2,) if dtype % 2 else (), offset=offset))
        offset += fields[-1].bytes
    record = bytearray(offset)
    for f in fields:
        record[f.offset:f.offset + f.bytes] = noise(400 + f.dtype, f.bytes)
    golden_shard("dtypes", [sf.Group(sf.align(offset, 16), offset, 4, unit_records=32)], fields,
                 [[bytes(record), bytes(len(record))]])

    groups = [sf.Group(4096, 4096, 12)] + [sf.Group(32, 24, 4, unit_records=128) for _ in range(7)]
    fields = [sf.Field("Field_%d.part-%d" % (i, i % 3), 1 + i % 8, (1,) * (i % 9), group=i % 8, offset=i // 8 * 8)
              for i in range(23)]
    fields.append(sf.Field("f" * 47, sf.U8, (3, 2, 2), group=0, offset=32, layout=sf.CHW))
    golden_shard("full_tables", groups, fields, [[] for _ in groups],
                 extra=[sf.SectionDraft(100 + i, 0, i, b"") for i in range(16)])
    golden_ragged()
    golden_whole()


def golden_ragged():
    fields = [sf.Field("lengths", sf.U32, (2,), offset=0, semantic=3),
              sf.Field("n", sf.U32, offset=8, semantic=3),
              sf.Field("text_bytes", sf.U32, offset=12, semantic=3),
              sf.Field("grid", 3, (3, 2, 4), offset=16, kind=sf.RAGGED, ragged_axes=5, length_field=0),
              sf.Field("boxes", sf.F32, (3, 4), offset=64, kind=sf.RAGGED, ragged_axes=1, length_field=1, semantic=6),
              sf.Field("text", sf.U8, (16,), offset=112, kind=sf.STRING, ragged_axes=1, length_field=2, semantic=7)]
    records = []
    for rows, columns, boxes, text in (
        (3, 4, 3, "0123456789abcdef"),
        (2, 1, 1, "na\u00efve"),
        (0, 4, 0, ""),
        (3, 0, 2, "x"),
    ):
        grid = b"".join(struct.pack("<H", 1 + 8 * a + 4 * b + c) if a < rows and c < columns else b"\0\0"
                        for a in range(3) for b in range(2) for c in range(4))
        raw = text.encode("utf-8")
        records.append(struct.pack("<4I", rows, columns, boxes, len(raw)) + grid
                       + noise(500 + rows, 16 * boxes).ljust(48, b"\0") + raw)
    golden_shard("ragged_string", [sf.Group(128, 128, 6, unit_records=32)], fields, [records])


def whole_fields(channels=3):
    """A whole image of at most 12 pixels, and a field that only looks like one: it has no size."""
    return [sf.Field("image", sf.U8, (12, channels), layout=sf.HWC, semantic=1, kind=sf.RAGGED, ragged_axes=1,
                     length_field=1),
            sf.Field("image_length", sf.U32, (1,), 1, semantic=3),
            sf.Field("image_size", sf.U32, (2,), 1, 4),
            sf.Field("patch", sf.U8, (4, 3), 1, 16, layout=sf.HWC, semantic=1, kind=sf.RAGGED, ragged_axes=1,
                     length_field=4),
            sf.Field("patch_length", sf.U32, (1,), 1, 12, semantic=3)]


def whole_groups(channels=3):
    return [sf.Group(48, 12 * channels, 4, unit_records=128), sf.Group(32, 28, 4, unit_records=128)]


def whole_records(sizes, channels=3):
    """Two columns of records; a size is height, width, and the pixels that are said and there."""
    large = [noise(700 + i, pixels * channels).ljust(48, b"\0") for i, (_, _, pixels) in enumerate(sizes)]
    small = [struct.pack("<4I", pixels, height, width, i % 3) + noise(i, 3 * (i % 3)).ljust(16, b"\0")
             for i, (height, width, pixels) in enumerate(sizes)]
    return [large, small]


def golden_whole():
    sizes = [(3, 4, 12), (4, 3, 12), (1, 12, 12), (12, 1, 12), (1, 1, 1), (2, 5, 10), (11, 1, 11)]
    for name, channels in (("whole_images", 3), ("whole_images_gray", 1)):
        golden_shard(name, whole_groups(channels), whole_fields(channels), whole_records(sizes, channels))
    fields = whole_fields()
    fields[2] = sf.Field("image_size", sf.U32, (2,), 2)     # apart from the length
    large, small = whole_records(sizes)
    golden_shard("whole_images_apart", [*whole_groups(), sf.Group(16, 8, 4, unit_records=256)], fields,
                 [large, [row[:4] + bytes(8) + row[12:] for row in small],
                  [row[4:12].ljust(16, b"\0") for row in small]])


DATASET_GROUPS = [sf.Group(48, 48, 4, unit_records=128), sf.Group(16, 8, 4, unit_records=256)]
DATASET_FIELDS = [image_field(shape=(4, 4, 3)), label_field(1)]


def dataset_shard(number, labels, plan=b"plan of the dataset"):
    pixels = [noise(600 + 10 * number + i, 48) for i in range(len(labels))]
    stats = [moments(0, [p[c::3] for p in pixels for c in range(3)], 3),
             sf.StatBlock(sf.CLASSES, 1, [labels.count(c) for c in range(max(labels) + 1)])]
    return sf.write_shard(DATASET_GROUPS, DATASET_FIELDS, [pixels, [u64s(c) for c in labels]], stats=stats,
                          plan_shard=number, plan_digest=hashlib.sha256(plan).digest())


def golden_datasets():
    plan = hashlib.sha256(b"plan of the dataset").hexdigest()
    classes = ["cat", "d\u00f6g & co/100%", "~A-z_0.9", " \n\"\u96ea\U0001F40D"]
    shards = [dataset_shard(0, [0, 1, 1]), dataset_shard(1, [3, 0])]
    names = ["%05d.shard" % i for i in range(2)]
    stats = sf.add_stats([sf.verify_shard(s).stats() for s in shards])
    add_dataset("dataset", dict(zip(names, shards)), classes=classes, stats=stats, plan=plan,
                order="shuffle 18446744073709551615")
    add_dataset("dataset_empty", {}, order="source")
    add_dataset("dataset_nested", {"part-1/a.b_0.shard": dataset_shard(0, [2], b"another plan")}, classes=["one"])


def add_dataset(folder, shards, **options):
    lines = [sf.shard_line(name, data) for name, data in shards.items()]
    GOLDEN[folder + "/dataset.manifest"] = sf.write_manifest(DATASET_GROUPS, DATASET_FIELDS, lines, **options)
    for name, data in shards.items():
        GOLDEN["%s/%s" % (folder, name)] = data
    GOLDEN_ROOTS.append(folder)


def make_golden():
    golden_raw()
    golden_lz4()
    golden_optional_sections()
    golden_schemas()
    golden_datasets()


# --------------------------------------------------------------------------------------------------
# bad/: shards. Each file is as small as its rule allows; most hold no records.

def bad_shard(number, what, draft, status="corrupt"):
    """`draft` is a ShardDraft or the bytes of a file."""
    name = "I%02d_%s.shard" % (int(number[1:]), what)
    BAD[name] = draft if isinstance(draft, bytes) else draft.pack()
    BAD_CASES.append((number, status, name))


def tiny(records=0, group=None, fields=None, **options):
    """A draft with one group of stride 16 and one field; `group` and `fields` replace those."""
    group = group or sf.Group(16, 8, 4, unit_records=256)
    fields = fields or [sf.Field("value", sf.U8, (8,))]
    data = [noise(700 + i, 8) for i in range(records)] if isinstance(records, int) else records
    return sf.draft_shard([group], fields, [data], **options)


def patched(header=(), footer=(), **options):
    draft = tiny(**options)
    draft.header_patch = list(header)
    draft.footer_patch = list(footer)
    return draft


def u16(value):
    return struct.pack("<H", value)


def u32(value):
    return struct.pack("<I", value)


def bad_pages():
    draft = tiny()
    draft.tail_gap = 512
    bad_shard("I1", "size_no_multiple_of_page", draft)
    bad_shard("I2", "header_magic", patched(header=[(0, b"\x09")]))
    draft = tiny()
    draft.header_hash = b"\x01" * 16
    bad_shard("I3", "header_hash", draft)
    bad_shard("I4", "footer_magic", patched(footer=[(0, b"\x09")]))
    draft = tiny()
    draft.footer_hash = b"\x01" * 16
    bad_shard("I5", "footer_hash", draft)
    bad_shard("I6", "endian_tag", patched(header=[(8, struct.pack(">Q", sf.ENDIAN_TAG))]))
    bad_shard("I7", "major_2", patched(header=[(0x10, u16(2))], footer=[(0x08, u16(2))]), "unsupported")
    bad_shard("I7", "page_bytes", patched(header=[(0x14, u32(8192))]))
    bad_shard("I7", "minor_differs", patched(footer=[(0x0A, u16(1))]))
    bad_shard("I8", "file_size", patched(footer=[(0x10, u64s(12288))]))
    bad_shard("I9", "other_header", patched(footer=[(0x28, b"\x01" * 16)]))
    bad_shard("I10", "incompat_bit", patched(header=[(0x18, u64s(1))]), "unsupported")
    bad_shard("I11", "compat_bit", patched(header=[(0x20, u64s(1 << 63))]), "unsupported")
    bad_shard("I12", "leaf_hash", patched(header=[(0x44, u16(2))]), "unsupported")
    bad_shard("I12", "table_hash", patched(header=[(0x46, u16(0))]), "unsupported")


def bad_reserved():
    for what, at in (
        ("reserved_byte", 0x048),
        ("reserved_byte_2", 0x0FF),
        ("group_reserved", 0x120),
        ("unused_group", 0x140),
        ("field_reserved", 0x36C),
        ("unused_field", 0x380),
        ("header_tail", 0xFEF),
    ):
        bad_shard("I13", what, patched(header=[(at, b"\x01")]))
    for what, at, data in (("footer_reserved", 0x024, b"\x01"), ("footer_reserved_2", 0x3FF, b"\x01"),
                           ("undefined_flag", 0x404, u32(3)), ("section_reserved", 0x40C, b"\x01"),
                           ("section_reserved_2", 0x42F, b"\x80"), ("data_hash", 0x430, b"\x01"),
                           ("unused_section", 0x4BF, b"\x01"), ("footer_tail", 0xC00, b"\x01")):
        bad_shard("I13", what, patched(footer=[(at, data)]))


def bad_counts():
    bad_shard("I14", "no_groups", sf.ShardDraft([], [], 0, [], 0))
    draft = tiny(2)
    draft.align_log2 = 11
    bad_shard("I15", "section_align_2k", draft)
    bad_shard("I16", "planned_records", tiny(planned_records=(1 << 40) + 1))
    bad_shard("I17", "more_than_planned", tiny(3, planned_records=2))


def bad_groups():
    bad_shard("I18", "stride_above_1_gib", tiny(group=sf.Group((1 << 30) + 16, 8, 4)))
    bad_shard("I18", "record_bytes_above_stride", tiny(2, group=sf.Group(16, 17, 4)))
    bad_shard("I19", "stride_not_aligned", tiny(2, group=sf.Group(24, 8, 4)))
    bad_shard("I19", "align_log2_13", tiny(group=sf.Group(8192, 8, 13)))
    bad_shard("I20", "unit_records", tiny(2, group=sf.Group(16, 8, 4, unit_records=(1 << 20) + 1)))
    bad_shard("I21", "codec_7", tiny(group=sf.Group(16, 8, 4, 7, 4, 4)), "unsupported")
    bad_shard("I22", "raw_with_chunks", tiny(2, group=sf.Group(16, 8, 4, sf.RAW, 1, 1)))
    bad_shard("I22", "chunk_is_not_unit", tiny(group=sf.Group(16, 8, 4, sf.LZ4, 4, 8)))
    bad_shard("I22", "chunk_above_64_mib", tiny(group=sf.Group(1 << 26, 8, 12, sf.LZ4, 2, 2)))


def bad_fields():
    def one(number, what, *fields, group=None, records=0):
        bad_shard(number, what, tiny(records, group, list(fields)))

    def raw(name):
        return sf.Field("value", sf.U8, (8,), raw_name=name.ljust(48, b"\0"))

    one("I23", "name_begins_with_digit", raw(b"1value"))
    one("I23", "name_empty", raw(b""))
    one("I23", "name_padding", raw(b"value\0x"))
    one("I23", "name_48_bytes", raw(b"v" * 48))
    one("I24", "same_name", sf.Field("value", sf.U8, (4,)), sf.Field("value", sf.U8, (4,), offset=4))
    one("I25", "dtype_14", sf.Field("value", 14, (8,)))
    one("I25", "dtype_0", sf.Field("value", 0, (8,)))
    one("I26", "layout", sf.Field("value", sf.U8, (8,), layout=5))
    one("I26", "semantic", sf.Field("value", sf.U8, (8,), semantic=8))
    one("I26", "kind", sf.Field("value", sf.U8, (8,), kind=3))
    one("I27", "dimension_0", sf.Field("value", sf.U8, (8, 0)))
    one("I27", "dimension_past_ndim", sf.Field("value", sf.U8, (8,), unused_dims=(0, 1)))
    one("I28", "bytes", sf.Field("value", sf.U8, (8,), bytes=7))
    one("I28", "product_wraps", sf.Field("value", sf.U8, (1 << 16,) * 4, bytes=0))
    one("I29", "sum_wraps", sf.Field("value", sf.U8, (8,), offset=(1 << 64) - 8))
    one("I29", "group_not_there", sf.Field("value", sf.U8, (8,)), sf.Field("other", sf.U8, (8,), group=1))
    one("I29", "past_record_bytes", sf.Field("value", sf.U8, (9,)))
    one("I30", "offset", sf.Field("value", 3, (2,), offset=1))
    one("I31", "overlap", sf.Field("a", sf.U8, (4,)), sf.Field("b", sf.U8, (4,), offset=3))
    count = sf.Field("count", sf.U32, offset=4, semantic=3)

    def ragged(**changes):
        options = dict(shape=(4,), kind=sf.RAGGED, ragged_axes=1, length_field=0)
        options.update(changes)
        return sf.Field("value", sf.U8, **options)

    one("I32", "tensor_with_length_field", sf.Field("value", sf.U8, (4,), length_field=1), count)
    one("I32", "tensor_with_ragged_axes", sf.Field("value", sf.U8, (4,), ragged_axes=1), count)
    one("I32", "ragged_without_axes", sf.Field("n", sf.U32, (1,), offset=4), ragged(ragged_axes=0, shape=(4,)))
    one("I32", "axis_past_ndim", sf.Field("n", sf.U32, (1,), offset=4), ragged(ragged_axes=2))
    one("I32", "length_field_not_there", count, ragged(length_field=2))
    one("I32", "length_field_not_u32", sf.Field("n", 6, offset=4), ragged())
    one("I32", "length_field_elements", count, ragged(shape=(2, 2), ragged_axes=3))
    one("I32", "length_field_itself", sf.Field("n", sf.U32, (1,), kind=sf.RAGGED, ragged_axes=1, length_field=0))
    one("I32", "string_of_two_axes", count, ragged(shape=(2, 2), kind=sf.STRING))
    draft = sf.draft_shard([sf.Group(16, 8, 4), sf.Group(16, 8, 4)], [sf.Field("value", sf.U8, (8,))], [[], []])
    bad_shard("I33", "group_without_field", draft)


def bad_section_table():
    bad_shard("I34", "critical_section",
              tiny(extra=[sf.SectionDraft(12, 0, 0, b"needed", sf.CRITICAL)]), "unsupported")
    draft = tiny(2)
    draft.sections.reverse()
    bad_shard("I35", "section_order", draft)
    bad_shard("I35", "section_twice", tiny(extra=[sf.SectionDraft(12, 0, 0, b"x"), sf.SectionDraft(12, 0, 0, b"y")]))
    draft = tiny(provenance=b"text")
    draft.section(sf.PROV).group = 1
    bad_shard("I35", "section_group", draft)
    draft = tiny(keys=[])
    draft.sections.remove(draft.section(sf.KOFF))
    bad_shard("I36", "keys_without_offsets", draft)
    draft = tiny()
    draft.sections.remove(draft.section(sf.HASH))
    bad_shard("I36", "no_hash", draft)
    bad_shard("I36", "chunks_of_raw_group", tiny(extra=[sf.SectionDraft(sf.CIDX, 0, 0, b"", sf.CRITICAL)]))
    draft = tiny(2)
    draft.section(sf.HASH).lead = 4096
    bad_shard("I37", "section_place", draft)
    draft = tiny(2)
    draft.tail_gap = 4096
    bad_shard("I37", "gap_before_footer", draft)


def bad_section_sizes():
    def items(number, what, kind, change, **options):
        draft = tiny(**options)
        draft.section(kind).items += change
        bad_shard(number, what, draft)

    def longer(number, what, kind, extra, **options):
        draft = tiny(**options)
        draft.section(kind).payload += extra
        bad_shard(number, what, draft)

    packed = sf.Group(16, 8, 4, sf.LZ4, 4, 4)
    items("I38", "data_items", sf.DATA, 1)
    longer("I38", "data_length", sf.DATA, bytes(16), records=2)
    items("I39", "hash_items", sf.HASH, 1)
    longer("I39", "hash_length", sf.HASH, bytes(8), records=2)
    items("I40", "chunk_items", sf.CIDX, 1, group=packed)
    longer("I40", "chunk_index_length", sf.CIDX, bytes(32), group=packed)
    items("I41", "key_offset_items", sf.KOFF, 1, keys=[])
    items("I41", "key_items", sf.KBLB, 1, keys=[])
    longer("I41", "key_offset_length", sf.KOFF, u64s(0), keys=[])
    items("I42", "provenance_items", sf.PROV, 1, provenance=b"text")
    items("I42", "missing_items", sf.MISS, 1, missing=[sf.Missing(0, 1, 1)], planned_records=9)


def bad_hashes():
    draft = tiny(2)
    draft.section(sf.HASH).hash = b"\x01" * 16
    bad_shard("I43", "hash_section_hash", draft)
    bad_shard("I43", "unknown_section_hash", tiny(extra=[sf.SectionDraft(12, 0, 0, b"x", 0, 0, b"\x01" * 16)]))
    draft = tiny(2)
    draft.section(sf.HASH).payload = u64s(1)
    bad_shard("I44", "leaf_hash", draft)
    draft = packed_draft([slope(0, 64)] * 2)
    draft.section(sf.HASH).payload = u64s(1, 1)
    bad_shard("I44", "leaf_hash_of_chunk", draft)


def packed_draft(records, **options):
    """Chunks of one record of 64 bytes."""
    return tiny(records, sf.Group(64, 64, 6, sf.LZ4, 1, 1), [sf.Field("value", sf.U8, (64,))], **options)


def change_chunk(draft, chunk, **changes):
    """Change the entry of a chunk in CIDX: offset, stored, flags, hash or reserved."""
    index = draft.section(sf.CIDX)
    names = ("offset", "stored", "flags", "hash", "reserved")
    entry = dict(zip(names, sf.CHUNK.unpack_from(index.payload, 32 * chunk)))
    entry.update(changes)
    packed = sf.CHUNK.pack(*(entry[name] for name in names))
    index.payload = index.payload[:32 * chunk] + packed + index.payload[32 * chunk + 32:]


def bad_chunks():
    records = [slope(0, 64), slope(9, 64)]
    draft = packed_draft(records)
    change_chunk(draft, 1, reserved=b"\x01")
    bad_shard("I45", "chunk_reserved", draft)
    draft = packed_draft(records)
    change_chunk(draft, 1, flags=3)
    bad_shard("I45", "chunk_flags", draft)
    draft = packed_draft(records)
    draft.section(sf.DATA).payload += bytes(64)
    bad_shard("I45", "bytes_behind_chunks", draft)
    bad_shard("I45", "lz4_not_smaller", packed_draft([noise(1, 64)], encode=lambda data: (sf.lz4_encode(data), 1)))
    bad_shard("I45", "chunk_place", shifted_chunk(records))
    draft = packed_draft(records)
    change_chunk(draft, 1, hash=1)
    bad_shard("I46", "stored_hash", draft)
    # The leaf hash is over 64 bytes with zeros at the end, the block has none of those zeros.
    bad_shard("I47", "decodes_to_less", packed_draft([b"ab" * 16 + bytes(32)],
                                                     encode=lambda data: (sf.lz4_encode(data[:32]), 1)))
    # In these the leaf hash is over what was decoded before the damage, and zeros.
    bad_shard("I47", "offset_before_start", packed_draft([b"abcd" + bytes(60)], encode=lambda data: (
        b"\x4fabcd\x05\x00\x14\x90" + b"\0" * 9, 1)))
    bad_shard("I47", "block_cut", packed_draft([b"abcdefgh" + bytes(56)], encode=lambda data: (b"\x80abcdefgh\x01", 1)))
    bad_shard("I47", "decodes_to_more", packed_draft([b"a" + bytes(63)], encode=lambda data: (
        b"\x1fa\x01\x00\x50\x50bcdef", 1)))


def shifted_chunk(records):
    """Chunk 1 starts 64 bytes late, and DATA ends there."""
    draft = packed_draft(records)
    data = draft.section(sf.DATA)
    data.payload = data.payload[:64] + bytes(64) + data.payload[64:]
    change_chunk(draft, 1, offset=sf.PAGE + 128)
    return draft


def bad_zeros():
    data = bytearray(tiny(2).pack())
    data[sf.PAGE + 32] = 1
    bad_shard("I48", "gap", bytes(data))
    data = bytearray(tiny(2).pack())
    data[3 * sf.PAGE - 1] = 1
    bad_shard("I48", "gap_before_footer", bytes(data))
    bad_shard("I49", "padding_of_record", tiny([bytes(15) + b"\x01"]))
    bad_shard("I49", "hole_between_fields",
              tiny([b"\x01" * 8], fields=[sf.Field("a", sf.U8, (3,)), sf.Field("b", sf.U8, (4,), offset=4)]))
    draft = packed_draft([slope(0, 64)])
    stored = draft.section(sf.DATA)
    stored.payload = stored.payload[:-1] + b"\x01"
    change_chunk(draft, 0, hash=sf.h64(stored.payload))
    bad_shard("I50", "chunk_padding", draft)


def bad_tables():
    bad_shard("I51", "key_of_1025_bytes", tiny(1, keys=[b"k" * 1025]))
    draft = tiny(1, keys=[b"key"])
    draft.section(sf.KOFF).payload = u64s(1, 3)
    bad_shard("I51", "first_offset_not_0", draft)
    draft = tiny(1, keys=[b"key"])
    draft.section(sf.KOFF).payload = u64s(0, 2)
    bad_shard("I51", "last_offset", draft)
    draft = tiny(2, keys=[b"key", b""])
    draft.section(sf.KOFF).payload = u64s(0, 4, 3)
    bad_shard("I51", "offset_descends", draft)
    draft = tiny(1, keys=[b"key"])
    draft.section(sf.KOFF).payload = u64s(0, 1 << 63)
    bad_shard("I51", "offset_far_past_end", draft)
    bad_shard("I52", "key_with_nul", tiny(1, keys=[b"a\0b"]))
    bad_shard("I52", "key_overlong", tiny(1, keys=[b"a\xc0\xafb"]))
    bad_shard("I52", "key_surrogate", tiny(1, keys=[b"\xed\xa0\x80"]))
    bad_stats()
    for what, entries in (("ordinals", [(4, 1, 1), (4, 1, 1)]), ("reason_0", [(4, 0, 1)]), ("how_3", [(4, 1, 3)])):
        bad_shard("I55", what, tiny(missing=[sf.Missing(*e) for e in entries], planned_records=9))
    bad_shard("I55", "more_than_planned", tiny(1, missing=[sf.Missing(0, 1, 1)], planned_records=1))
    bad_shard("I56", "provenance_nul", tiny(provenance=b"a\0b"))
    bad_shard("I56", "provenance_not_utf8", tiny(provenance=b"\xff"))


def bad_stats():
    fields = [sf.Field("a", 2), sf.Field("b", 2, offset=1), sf.Field("p", sf.U8, (4,), offset=2),
              sf.Field("w", sf.F32, offset=8)]
    group = sf.Group(16, 12, 4, unit_records=256)

    def stat(number, what, *blocks, items=None, tail=b""):
        draft = tiny(0, group, fields, stats=[sf.StatBlock(*b) for b in blocks])
        section = draft.section(sf.STAT)
        section.items = items if items is not None else section.items
        section.payload += tail
        bad_shard(number, what, draft)

    stat("I53", "blocks_descend", (2, 1, [0]), (2, 0, [0]))
    stat("I53", "block_twice", (2, 1, [0]), (2, 1, [0]))
    stat("I53", "items", (2, 0, [0]), items=2)
    stat("I53", "bytes_behind_blocks", (2, 0, [0]), tail=bytes(8))
    stat("I53", "kind_3", (2, 0, [0]), tail=struct.pack("<IIQ", 3, 0, 0))
    stat("I53", "size_wraps", (2, 0, [0]), tail=struct.pack("<IIQ", 2, 1, 1 << 61), items=2)
    stat("I53", "field_not_there", (2, 4, [0]))
    stat("I53", "moments_of_float", (1, 3, [(0, 0, 0)]))
    stat("I53", "moments_channels", (1, 2, [(0, 0, 0)] * 4))
    stat("I53", "classes_of_float", (2, 3, [0]))
    stat("I53", "classes_of_vector", (2, 2, [0]))
    stat("I54", "class_sum", (2, 0, [0, 1]))
    stat("I54", "moments_count", (1, 2, [(1, 0, 0)]))
    stat("I54", "moments_sum", (1, 2, [(0, 1, 255)]))
    stat("I54", "moments_squares", (1, 2, [(0, 0, 1)]))


def bad_ragged():
    fields = [sf.Field("n", sf.U32, semantic=3),
              sf.Field("value", sf.U8, (4,), offset=4, kind=sf.RAGGED, ragged_axes=1, length_field=0)]
    bad_shard("I57", "length_above_axis", tiny([u32(5) + b"abcd"], fields=fields))
    bad_shard("I58", "byte_past_length", tiny([u32(2) + b"abc"], fields=fields))
    fields = [sf.Field("n", sf.U32, (1,), semantic=3),
              sf.Field("value", sf.U8, (2, 2), offset=4, kind=sf.RAGGED, ragged_axes=2, length_field=0)]
    bad_shard("I58", "byte_past_length_of_inner_axis", tiny([u32(1) + b"a\0bc"], fields=fields))
    for name, size in (("height_0", (0, 4, 0)), ("width_0", (4, 0, 0)), ("pixel_more", (2, 4, 9)),
                       ("pixel_less", (2, 4, 7)), ("no_pixels", (2, 4, 0)), ("product_wraps", (65536, 65536, 0)),
                       ("product_wraps_to_length", (65537, 4294311946, 10))):
        bad_shard("I59", name, sf.draft_shard(whole_groups(), whole_fields(), whole_records([(3, 4, 12), size])))


# --------------------------------------------------------------------------------------------------
# bad/: manifests and datasets.

def empty_lines():
    """The lines of a good manifest of no shards."""
    stats = [sf.StatBlock(sf.MOMENTS, 0, [(0, 0, 0)] * 3), sf.StatBlock(sf.CLASSES, 1, [0, 0])]
    return sf.manifest_lines(sf.Manifest(DATASET_GROUPS, DATASET_FIELDS, ["cat", "dog"], stats))


def bad_manifest(number, what, data, status="corrupt"):
    name = "M%02d_%s.manifest" % (int(number[1:]), what)
    BAD[name] = data
    BAD_CASES.append((number, status, name))


def bad_lines(number, what, old, new, status="corrupt"):
    """A good manifest in which the lines `old` are replaced by `new`, both as one text."""
    text = "\n".join(empty_lines()) + "\n"
    assert text.count(old) == 1, (number, old)
    bad_manifest(number, what, sf.seal_manifest(text.replace(old, new)[:-1].split("\n")), status)


def bad_manifest_texts():
    good = sf.seal_manifest(empty_lines())
    end = good.rindex(b"\nend ") + 1
    bad_lines("M1", "first_word", "shardset 1\n", "Shardset 1\n")
    bad_manifest("M2", "no_end_line", good[:end])
    bad_manifest("M3", "xxh3", good[:-33] + b"0" * 32 + b"\n")
    bad_lines("M4", "version_2", "shardset 1\n", "shardset 2\n", "unsupported")
    bad_lines("M5", "two_spaces", "order -", "order  -")
    bad_lines("M5", "space_at_end", "order -\n", "order - \n")
    bad_lines("M5", "carriage_return", "order -\n", "order -\r\n")
    bad_lines("M6", "records_after_shards", "records 0\nshards 0\n", "shards 0\nrecords 0\n")
    bad_lines("M6", "unknown_line", "class 0 cat\n", "remark 0 cat\nclass 0 cat\n")
    bad_lines(
        "M6", "stat_before_class", "class 1 dog\nstat moments 0 0 0 0 0\n", "stat moments 0 0 0 0 0\nclass 1 dog\n"
    )
    bad_lines("M7", "leading_zero", "records 0\n", "records 00\n")
    bad_lines("M7", "sign", "records 0\n", "records +0\n")
    bad_lines("M7", "upper_case_digest", "plan -\n", "plan %s\n" % ("AB" * 32))
    bad_lines("M7", "seed_above_64_bits", "order -\n", "order shuffle 18446744073709551616\n")
    bad_lines("M8", "class_numbers", "class 0 cat\nclass 1 dog\n", "class 1 cat\nclass 2 dog\n")
    bad_lines("M9", "same_field_name", "field 1 label ", "field 1 image ")
    bad_lines("M9", "overlap", "field 1 label group 1", "field 1 label group 0")
    bad_lines("M9", "codec", "codec raw unit 256 chunk 0", "codec zstd unit 256 chunk 256", "unsupported")
    bad_lines("M10", "not_canonical", "class 0 cat\n", "class 0 c%61t\n")
    bad_lines("M10", "lower_case", "class 0 cat\n", "class 0 c%c3%a4t\n")
    bad_lines("M10", "not_utf8", "class 0 cat\n", "class 0 c%FFt\n")
    bad_lines("M11", "channel_missing", "stat moments 0 2 0 0 0\n", "")
    bad_lines("M11", "classes_first", "stat moments 0 0 0 0 0\nstat moments 0 1 0 0 0\nstat moments 0 2 0 0 0\n"
              "stat classes 1 0 0\nstat classes 1 1 0\n", "stat classes 1 0 0\nstat classes 1 1 0\n"
              "stat moments 0 0 0 0 0\nstat moments 0 1 0 0 0\nstat moments 0 2 0 0 0\n")
    bad_lines("M11", "class_sum", "stat classes 1 1 0\n", "stat classes 1 1 1\n")
    bad_lines("M13", "shards", "shards 0\n", "shards 1\n")
    bad_manifest("M14", "records", sf.seal_manifest([line.replace("records 0", "records 5") for line in empty_lines()
                                                     if not line.startswith("stat ")]))
    bad_manifest("M15", "sha256", sf.seal_manifest(empty_lines(), sha256="0" * 64))
    bad_lines("M16", "same_class", "class 1 dog\n", "class 1 cat\n")


def bad_dataset(number, what, change=None, extra=None, keep=True, status="mismatch"):
    """A dataset of one shard of no records. `change` gets the manifest and the shard's name."""
    folder = "%s_%s" % (number if number[0] == "D" else "M%02d" % int(number[1:]), what)
    data = sf.write_shard(DATASET_GROUPS, DATASET_FIELDS, [[], []])
    manifest = sf.Manifest(list(DATASET_GROUPS), list(DATASET_FIELDS), shards=[sf.shard_line("00000.shard", data)])
    if change:
        change(manifest)
    BAD[folder + "/dataset.manifest"] = sf.seal_manifest(sf.manifest_lines(manifest))
    if keep:
        BAD["%s/%s" % (folder, manifest.shards[0].file)] = data
    if extra:
        BAD["%s/%s" % (folder, extra)] = data
    BAD_CASES.append((number, status, folder))


def bad_datasets():
    def shard_change(**changes):
        def change(manifest):
            for name, value in changes.items():
                setattr(manifest.shards[0], name, value)
        return change

    def other_schema(manifest):
        manifest.fields[1] = sf.Field("class", sf.I64, group=1, semantic=2)

    bad_dataset("M12", "plus_sign", shard_change(file="+0.shard"), status="corrupt")
    bad_dataset("M12", "hidden_file", shard_change(file=".0.shard"), status="corrupt")
    bad_dataset("M12", "three_components", shard_change(file="a/b/0.shard"), status="corrupt")
    bad_dataset("M17", "same_shard", lambda manifest: manifest.shards.append(manifest.shards[0]), status="corrupt")
    bad_dataset("D1", "not_there", keep=False)
    bad_dataset("D2", "size", shard_change(bytes=12288))
    bad_dataset("D3", "root", shard_change(root=1))
    bad_dataset("D4", "records", shard_change(records=1))
    bad_dataset("D5", "field_name", other_schema)
    bad_dataset("D6", "sha256", shard_change(sha256="0" * 64))
    bad_dataset("D7", "shard_not_named", extra="00001.shard")


def make_bad():
    for make in (bad_pages, bad_reserved, bad_counts, bad_groups, bad_fields, bad_section_table, bad_section_sizes,
                 bad_hashes, bad_chunks, bad_zeros, bad_tables, bad_ragged, bad_manifest_texts, bad_datasets):
        make()


# --------------------------------------------------------------------------------------------------
# Writing and checking.

RULES = ["I%d" % i for i in range(1, 60)] + ["M%d" % i for i in range(1, 18)] + ["D%d" % i for i in range(1, 8)]


def write_tree(folder, files):
    for name in sorted(files):
        path = os.path.join(folder, *name.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as stream:
            stream.write(files[name])


def tree_files(folder):
    found = set()
    for base, _, names in os.walk(folder):
        for name in names:
            found.add(os.path.relpath(os.path.join(base, name), folder).replace(os.sep, "/"))
    return found


def compare_tree(folder, files):
    """What differs between a folder and what belongs there."""
    problems = ["%s: not made by this program" % os.path.join(folder, name)
                for name in sorted(tree_files(folder) - set(files))]
    for name in sorted(files):
        path = os.path.join(folder, *name.split("/"))
        if not os.path.exists(path):
            problems.append("%s: missing" % path)
        elif sf.read_file(path) != files[name]:
            problems.append("%s: differs from what this program makes" % path)
    return problems


def outcome(path, skip=()):
    try:
        sf.verify_path(path, skip)
    except sf.FormatError as error:
        return error
    return None


def check_golden(folder):
    problems = []
    for name in GOLDEN_ROOTS:
        error = outcome(os.path.join(folder, name))
        print("%-44s %s" % ("golden/" + name, error or "ok"))
        if error:
            problems.append("golden/%s: %s" % (name, error))
    return problems


def check_bad(folder):
    """That each file breaks its rule, with the right status, and that rule only."""
    problems = []
    for number, status, name in BAD_CASES:
        path = os.path.join(folder, name)
        error = outcome(path)
        skipped = outcome(path, {number})
        good = error is not None and error.number == number and error.status == status and skipped is None
        print("%-44s %-11s %s" % ("bad/" + name, error.status if error else "accepted", error or ""))
        if not good:
            problems.append("bad/%s: wanted %s (%s), got %s; with that check skipped: %s"
                            % (name, number, status, error or "no error", skipped or "ok"))
    for number in RULES:
        if number not in {case[0] for case in BAD_CASES}:
            problems.append("bad/: no file for rule %s" % number)
    return problems


def main():
    parser = argparse.ArgumentParser(description="Makes the test files of the shard format.")
    parser.add_argument("--check", action="store_true", help="compare with the files that are there, write nothing")
    parser.add_argument("--folder", default=HERE, help="the folder of golden/ and bad/ (default: that of this program)")
    options = parser.parse_args()
    golden, bad = os.path.join(options.folder, "golden"), os.path.join(options.folder, "bad")

    make_golden()
    make_bad()
    if not options.check:
        write_tree(golden, GOLDEN)
        write_tree(bad, BAD)
    dumps = {os.path.splitext(name)[0] + ".json": sf.to_json(sf.dump_path(os.path.join(golden, name))).encode("ascii")
             for name in GOLDEN_ROOTS}
    GOLDEN.update(dumps)
    if not options.check:
        write_tree(golden, dumps)
    problems = compare_tree(golden, GOLDEN) + compare_tree(bad, BAD) + check_golden(golden) + check_bad(bad)
    print("%d files in golden/, %d in bad/, %d bytes together"
          % (len(GOLDEN), len(BAD), sum(map(len, GOLDEN.values())) + sum(map(len, BAD.values()))))
    for problem in problems:
        print("make_golden: " + problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
