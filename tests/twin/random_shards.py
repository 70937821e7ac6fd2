# SPDX-License-Identifier: Apache-2.0
"""random_shards.py - what random shards are made of, for tests of format/shardfmt.py

The importer has the folder of shardfmt.py in its path.
"""

import struct

import shardfmt as sf


def random_schema(rng):
    """Groups and fields, some of them strings, some of them whole images."""
    groups, fields = [], []
    for number in range(rng.randint(1, 4)):
        offset = 0
        for _ in range(rng.randint(1, 3)):
            dtype = rng.randint(1, len(sf.DTYPES) - 1)
            size = sf.DTYPE_BYTES[dtype]
            offset = sf.align(offset + rng.choice([0, 0, 3]), size)
            shape = tuple(rng.randint(1, 9) for _ in range(rng.randint(0, 3)))
            fields.append(sf.Field("f-%d" % len(fields), dtype, shape, number, offset, layout=rng.randint(0, 4),
                                   semantic=rng.randint(0, 7)))
            offset += fields[-1].bytes
        if rng.random() < 0.4:      # a string, its length behind it
            offset = sf.align(offset + 7, 4)
            fields.append(sf.Field("s-%d" % number, sf.U8, (7,), number, offset - 7, kind=sf.STRING, ragged_axes=1,
                                   length_field=len(fields) + 1))
            fields.append(sf.Field("l-%d" % number, sf.U32, (), number, offset, semantic=3))
            offset += 4
        if rng.random() < 0.3 and not any(f.kind == sf.RAGGED for f in fields):      # a whole image, one of all
            offset = sf.align(offset, 4)
            channels = rng.randint(1, 4)
            fields.append(sf.Field("w-%d" % number, sf.U8, (12, channels), number, offset + 12, layout=sf.HWC,
                                   semantic=sf.IMAGE, kind=sf.RAGGED, ragged_axes=1, length_field=len(fields) + 1))
            fields.append(sf.Field("n-%d" % number, sf.U32, (1,), number, offset + 8, semantic=3))
            fields.append(sf.Field("w-%d_size" % number, sf.U32, (2,), number, offset))
            offset += 12 + 12 * channels
        log2 = rng.choice([0, 4, 6])
        unit = rng.choice([1, 2, 7, 256])
        codec = rng.choice([sf.RAW, sf.LZ4])
        groups.append(
            sf.Group(sf.align(offset + rng.choice([0, 5]), 1 << log2), offset, log2, codec, unit, unit if codec else 0)
        )
    return groups, fields


def random_record(rng, groups, fields, number):
    """The stride of one record of a group."""
    record = bytearray(groups[number].stride)
    for f in fields:
        if f.group == number:
            record[f.offset : f.offset + f.bytes] = rng.choice(
                [rng.randbytes(f.bytes), bytes([rng.randint(0, 255)]) * f.bytes]
            )
    for f in fields:
        if f.group == number and f.kind == sf.STRING:
            length = rng.randint(0, 7)
            record[f.offset + length:f.offset + 7] = bytes(7 - length)
            struct.pack_into("<I", record, fields[f.length_field].offset, length)
        elif f.group == number and f.kind == sf.RAGGED:
            height = rng.randint(1, 12)
            width = rng.randint(1, 12 // height)
            used = height * width * f.shape[1]
            record[f.offset + used:f.offset + f.bytes] = bytes(f.bytes - used)
            struct.pack_into("<I", record, fields[f.length_field].offset, height * width)
            struct.pack_into("<2I", record, sf.size_field(fields, f).offset, height, width)
    return bytes(record)
