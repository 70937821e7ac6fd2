#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shard format, version 1: a second implementation, written from SHARD.md alone.

It exists to check the first one: it reads, writes and verifies shards, manifests and datasets by
the letter of SHARD.md and shares no code with the library. It is made for small inputs and clear
code. It leaves speed, packing and decoding to others. Only the standard library is needed. Where
the module `xxhash` is installed it makes the hashes faster; it and the module `lz4` are what
--selftest compares with.

Every broken rule raises FormatError, whose `number` is the rule's number in SHARD.md. All checks
take `skip`, a set of numbers: those checks are not made, all others are. That is how make_golden.py
proves that each file in bad/ breaks one rule only.

Sections: hashes, LZ4, constants, model, schema rules, shard writer, shard reader, shard verifier,
manifest writer, manifest reader, dataset, command line.
"""

import argparse
import hashlib
import json
import os
import re
import struct
import sys
from dataclasses import dataclass, field as attribute
from typing import Callable, List, Optional, Tuple

try:
    import xxhash as fast_xxhash
    if not hasattr(fast_xxhash, "xxh3_64_intdigest"):
        fast_xxhash = None          # older than XXH3
except ImportError:
    fast_xxhash = None
try:
    import lz4.block as fast_lz4
except ImportError:
    fast_lz4 = None


class FormatError(Exception):
    """A rule of SHARD.md is broken. `status` is "corrupt", "unsupported" or "mismatch"."""

    def __init__(self, number, status, message):
        super().__init__("%s: %s" % (number, message))
        self.number = number
        self.status = status
        self.message = message


class Rules:
    """Reports broken rules, but for those to be skipped. `place` goes in front of messages."""

    def __init__(self, skip=(), place=""):
        self.skip = frozenset(skip)
        self.place = place

    def fail(self, number, message, status="corrupt"):
        if number not in self.skip:
            raise FormatError(number, status, self.place + message)

    def stop(self, number, message, status="corrupt"):
        """For what cannot be skipped: nothing sensible comes after it."""
        raise FormatError(number, status, self.place + message)


# --------------------------------------------------------------------------------------------------
# Hashes: XXH3-64 and XXH3-128, seed 0, default secret.

M32 = 0xFFFFFFFF
M64 = 0xFFFFFFFFFFFFFFFF
P32_1, P32_2, P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P64_1, P64_2, P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P64_4, P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
MIX_1, MIX_2 = 0x165667919E3779F9, 0x9FB21C651E98DF25

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")
STRIPE = 64
STRIPES_PER_BLOCK = (len(SECRET) - STRIPE) // 8
EIGHT_WORDS = struct.Struct("<8Q")
STRIPE_KEYS = [EIGHT_WORDS.unpack_from(SECRET, 8 * i) for i in range(STRIPES_PER_BLOCK)]
SCRAMBLE_KEYS = EIGHT_WORDS.unpack_from(SECRET, len(SECRET) - STRIPE)
LAST_KEYS = EIGHT_WORDS.unpack_from(SECRET, len(SECRET) - STRIPE - 7)


def read32(data, offset):
    return int.from_bytes(data[offset:offset + 4], "little")


def read64(data, offset):
    return int.from_bytes(data[offset:offset + 8], "little")


def swap32(value):
    return int.from_bytes(value.to_bytes(4, "little"), "big")


def swap64(value):
    return int.from_bytes(value.to_bytes(8, "little"), "big")


def rotl64(value, count):
    return (value << count | value >> (64 - count)) & M64


def fold_product(a, b):
    product = a * b
    return (product ^ product >> 64) & M64


def avalanche(h):
    h ^= h >> 37
    h = h * MIX_1 & M64
    return h ^ h >> 32


def avalanche_xxh64(h):
    h ^= h >> 33
    h = h * P64_2 & M64
    h ^= h >> 29
    h = h * P64_3 & M64
    return h ^ h >> 32


def mix16(data, offset, secret_offset, seed=0):
    low = read64(data, offset) ^ (read64(SECRET, secret_offset) + seed & M64)
    high = read64(data, offset + 8) ^ (read64(SECRET, secret_offset + 8) - seed & M64)
    return fold_product(low, high)


def accumulate_stripe(acc, words, keys):
    """Sums are left to grow past 64 bits; scramble() and the callers cut them."""
    for lane in range(8):
        word = words[lane]
        keyed = word ^ keys[lane]
        acc[lane ^ 1] += word
        acc[lane] += (keyed & M32) * (keyed >> 32)


def scramble(acc):
    for lane in range(8):
        value = acc[lane] & M64
        acc[lane] = (value ^ value >> 47 ^ SCRAMBLE_KEYS[lane]) * P32_1 & M64


def accumulate_long(data):
    """The eight accumulators of an input of more than 240 bytes."""
    acc = [P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1]
    unpack = EIGHT_WORDS.unpack_from
    size = len(data)
    block = STRIPE * STRIPES_PER_BLOCK
    for start in range(0, (size - 1) // block * block, block):
        a0, a1, a2, a3, a4, a5, a6, a7 = acc
        offset = start
        for keys in STRIPE_KEYS:
            w0, w1, w2, w3, w4, w5, w6, w7 = unpack(data, offset)
            offset += STRIPE
            k0, k1, k2, k3, k4, k5, k6, k7 = keys
            k0 ^= w0
            k1 ^= w1
            k2 ^= w2
            k3 ^= w3
            k4 ^= w4
            k5 ^= w5
            k6 ^= w6
            k7 ^= w7
            a0 += w1 + (k0 & M32) * (k0 >> 32)
            a1 += w0 + (k1 & M32) * (k1 >> 32)
            a2 += w3 + (k2 & M32) * (k2 >> 32)
            a3 += w2 + (k3 & M32) * (k3 >> 32)
            a4 += w5 + (k4 & M32) * (k4 >> 32)
            a5 += w4 + (k5 & M32) * (k5 >> 32)
            a6 += w7 + (k6 & M32) * (k6 >> 32)
            a7 += w6 + (k7 & M32) * (k7 >> 32)
        acc = [a0, a1, a2, a3, a4, a5, a6, a7]
        scramble(acc)
    tail = (size - 1) // block * block
    for stripe in range((size - 1 - tail) // STRIPE):
        accumulate_stripe(acc, unpack(data, tail + stripe * STRIPE), STRIPE_KEYS[stripe])
    accumulate_stripe(acc, unpack(data, size - STRIPE), LAST_KEYS)
    return [value & M64 for value in acc]


def merge(acc, secret_offset, start):
    total = start
    for pair in range(4):
        total += fold_product(acc[2 * pair] ^ read64(SECRET, secret_offset + 16 * pair),
                              acc[2 * pair + 1] ^ read64(SECRET, secret_offset + 16 * pair + 8))
    return avalanche(total & M64)


def short_input_word(data):
    """What both hashes make of 1 to 3 bytes."""
    size = len(data)
    return data[0] << 16 | data[size >> 1] << 24 | data[size - 1] | size << 8


def pure_h64(data):
    size = len(data)
    if size == 0:
        return avalanche_xxh64(read64(SECRET, 56) ^ read64(SECRET, 64))
    if size <= 3:
        return avalanche_xxh64(short_input_word(data) ^ read32(SECRET, 0) ^ read32(SECRET, 4))
    if size <= 8:
        keyed = read32(data, size - 4) + (read32(data, 0) << 32) ^ read64(SECRET, 8) ^ read64(SECRET, 16)
        keyed ^= rotl64(keyed, 49) ^ rotl64(keyed, 24)
        keyed = keyed * MIX_2 & M64
        keyed ^= (keyed >> 35) + size & M64
        keyed = keyed * MIX_2 & M64
        return keyed ^ keyed >> 28
    if size <= 16:
        low = read64(data, 0) ^ read64(SECRET, 24) ^ read64(SECRET, 32)
        high = read64(data, size - 8) ^ read64(SECRET, 40) ^ read64(SECRET, 48)
        return avalanche(size + swap64(low) + high + fold_product(low, high) & M64)
    total = size * P64_1
    if size <= 128:
        for pair in range((size - 1) // 32, -1, -1):
            total += mix16(data, 16 * pair, 32 * pair)
            total += mix16(data, size - 16 * (pair + 1), 32 * pair + 16)
        return avalanche(total & M64)
    if size <= 240:
        for i in range(8):
            total += mix16(data, 16 * i, 16 * i)
        total = avalanche(total & M64)
        for i in range(8, size // 16):
            total += mix16(data, 16 * i, 16 * (i - 8) + 3)
        total += mix16(data, size - 16, 136 - 17)
        return avalanche(total & M64)
    return merge(accumulate_long(data), 11, size * P64_1 & M64)


def mix32(low, high, data, first, second, secret_offset):
    low = low + mix16(data, first, secret_offset) & M64
    low ^= read64(data, second) + read64(data, second + 8) & M64
    high = high + mix16(data, second, secret_offset + 16) & M64
    high ^= read64(data, first) + read64(data, first + 8) & M64
    return low, high


def finish_middle(low, high, size):
    """The end of H128 for 17 to 240 bytes."""
    total = low * P64_1 + high * P64_4 + size * P64_2
    return avalanche(low + high & M64), -avalanche(total & M64) & M64


def pure_h128_short(data):
    """H128 of at most 16 bytes."""
    size = len(data)
    if size == 0:
        return (avalanche_xxh64(read64(SECRET, 64) ^ read64(SECRET, 72)),
                avalanche_xxh64(read64(SECRET, 80) ^ read64(SECRET, 88)))
    if size <= 3:
        word = short_input_word(data)
        swapped = swap32(word)
        turned = (swapped << 13 | swapped >> 19) & M32
        return (avalanche_xxh64(word ^ read32(SECRET, 0) ^ read32(SECRET, 4)),
                avalanche_xxh64(turned ^ read32(SECRET, 8) ^ read32(SECRET, 12)))
    if size <= 8:
        keyed = read32(data, 0) + (read32(data, size - 4) << 32) ^ read64(SECRET, 16) ^ read64(SECRET, 24)
        product = keyed * (P64_1 + (size << 2))
        low = product & M64
        high = (product >> 64) + (low << 1) & M64
        low ^= high >> 3
        low ^= low >> 35
        low = low * MIX_2 & M64
        return low ^ low >> 28, avalanche(high)
    first = read64(data, 0)
    last = read64(data, size - 8)
    product = (first ^ last ^ read64(SECRET, 32) ^ read64(SECRET, 40)) * P64_1
    low = (product & M64) + (size - 1 << 54) & M64
    last ^= read64(SECRET, 48) ^ read64(SECRET, 56)
    high = (product >> 64) + last + (last & M32) * (P32_2 - 1) & M64
    low ^= swap64(high)
    product = low * P64_2
    return avalanche(product & M64), avalanche((product >> 64) + high * P64_2 & M64)


def pure_h128(data):
    """The hash as one number: the high half above the low half."""
    size = len(data)
    if size <= 16:
        low, high = pure_h128_short(data)
    elif size <= 128:
        low, high = size * P64_1 & M64, 0
        for pair in range((size - 1) // 32, -1, -1):
            low, high = mix32(low, high, data, 16 * pair, size - 16 * (pair + 1), 32 * pair)
        low, high = finish_middle(low, high, size)
    elif size <= 240:
        low, high = size * P64_1 & M64, 0
        for i in range(0, 128, 32):
            low, high = mix32(low, high, data, i, i + 16, i)
        low, high = avalanche(low), avalanche(high)
        for i in range(128, size // 32 * 32, 32):
            low, high = mix32(low, high, data, i, i + 16, i - 128 + 3)
        low, high = mix32_last(low, high, data)
        low, high = finish_middle(low, high, size)
    else:
        acc = accumulate_long(data)
        low = merge(acc, 11, size * P64_1 & M64)
        high = merge(acc, len(SECRET) - STRIPE - 11, ~(size * P64_2) & M64)
    return high << 64 | low


def mix32_last(low, high, data):
    """The last 32 bytes of 129 to 240. The seed is negated here, which does nothing to seed 0."""
    size = len(data)
    return mix32(low, high, data, size - 16, size - 32, 136 - 17 - 16)


def h64(data):
    return fast_xxhash.xxh3_64_intdigest(data) if fast_xxhash else pure_h64(data)


def h128(data):
    return fast_xxhash.xxh3_128_intdigest(data) if fast_xxhash else pure_h128(data)


def pack_h128(value):
    """As stored: the low half, then the high half."""
    return value.to_bytes(16, "little")


def unpack_h128(data):
    return int.from_bytes(data, "little")


def h128_text(value):
    return "%032x" % value


# --------------------------------------------------------------------------------------------------
# LZ4 blocks.

class Lz4Error(Exception):
    """The block is damaged. `output` is what was decoded before that showed."""

    def __init__(self, message, output):
        super().__init__(message)
        self.output = bytes(output)


def lz4_read_length(block, position, nibble, output):
    length = nibble
    if nibble == 15:
        while True:
            if position >= len(block):
                raise Lz4Error("a length runs past the end of the block", output)
            byte = block[position]
            position += 1
            length += byte
            if byte != 255:
                break
    return length, position


def lz4_decode(block, limit):
    """Decode a block that should give `limit` bytes.

    The end rules of the LZ4 block format are kept: the last sequence has literals only, no match
    starts in the last 12 decoded bytes, and the last 5 are literals.
    """
    output = bytearray()
    position = 0
    while True:
        if position >= len(block):
            raise Lz4Error("the block ends without a last run of literals", output)
        token = block[position]
        literals, position = lz4_read_length(block, position + 1, token >> 4, output)
        if literals > len(block) - position:
            raise Lz4Error("%d literals, %d bytes left" % (literals, len(block) - position), output)
        if literals > limit - len(output):
            raise Lz4Error("decodes to more than %d bytes" % limit, output)
        output += block[position:position + literals]
        position += literals
        if position == len(block):
            if token & 15:
                raise Lz4Error("the block ends inside a sequence", output)
            return bytes(output)
        if len(block) - position < 2:
            raise Lz4Error("the block ends inside a match offset", output)
        distance = block[position] | block[position + 1] << 8
        length, position = lz4_read_length(block, position + 2, token & 15, output)
        length += 4
        if distance == 0 or distance > len(output):
            raise Lz4Error("match offset %d at output byte %d" % (distance, len(output)), output)
        if len(output) > limit - 12 or length > limit - 5 - len(output):
            raise Lz4Error("a match from byte %d to %d of %d, too close to the end"
                           % (len(output), len(output) + length, limit), output)
        pattern = output[len(output) - distance:]
        output += (pattern * (length // distance + 1))[:length]


def lz4_length_bytes(length):
    """What follows the token for a length whose nibble is min(length, 15)."""
    if length < 15:
        return b""
    count, rest = divmod(length - 15, 255)
    return b"\xff" * count + bytes([rest])


def lz4_encode(data):
    """A greedy encoder: the same input gives the same block on every machine.

    It keeps what decoders may rely on: no match starts in the last 12 bytes, the last 5 are
    literals.
    """
    output = bytearray()
    seen = {}
    anchor = position = 0
    while position <= len(data) - 13:
        word = data[position:position + 4]
        candidate = seen.get(word)
        seen[word] = position
        if candidate is None or position - candidate > 65535:
            position += 1
            continue
        end = position + 4
        while end < len(data) - 5 and data[end] == data[candidate + end - position]:
            end += 1
        literals = data[anchor:position]
        output.append(min(len(literals), 15) << 4 | min(end - position - 4, 15))
        output += lz4_length_bytes(len(literals)) + literals
        output += struct.pack("<H", position - candidate) + lz4_length_bytes(end - position - 4)
        anchor = position = end
    literals = data[anchor:]
    output.append(min(len(literals), 15) << 4)
    output += lz4_length_bytes(len(literals)) + literals
    return bytes(output)


# --------------------------------------------------------------------------------------------------
# Constants.

PAGE = 4096
HEADER_MAGIC = b"\x89SHR\r\n\x1a\n"
FOOTER_MAGIC = b"\x89SHF\r\n\x1a\n"
ENDIAN_TAG = 0x0102030405060708
MAJOR = 1

FILE_BYTES_MAX = 1 << 44
RECORDS_MAX = 1 << 40
STRIDE_MAX = 1 << 30
GROUPS_MAX = 8
FIELDS_MAX = 24
SECTIONS_MAX = 32
NDIM_MAX = 8
DIM_MAX = M32
UNIT_RECORDS_MAX = 1 << 20
CHUNK_BYTES_MAX = 1 << 26
KEY_BYTES_MAX = 1024
PROVENANCE_BYTES_MAX = 1 << 20
LINE_BYTES_MAX = 4096
CLASS_NAME_BYTES_MAX = 1024
DATASET_SHARDS_MAX = 1 << 32
DATASET_RECORDS_MAX = 1 << 62
CLASSES_MAX = 1 << 24
CHUNK_ALIGN = 64

HEADER = struct.Struct("<8sQHHIQQQQIIIHH8s32s144s")
GROUP = struct.Struct("<QQIIII32s")
FIELD = struct.Struct("<48sHBBHH8IQQBBH20s")
FOOTER = struct.Struct("<8sHHIQQII16s968s")
SECTION = struct.Struct("<IIIIQQQQ16s")
CHUNK = struct.Struct("<QIIQ8s")
GROUP_TABLE = 0x100
FIELD_TABLE = 0x300
HEADER_TAIL = 0xF00
SECTION_TABLE = 0x400
FOOTER_TAIL = 0xC00
PAGE_HASH = 0xFF0

RAW, LZ4 = 0, 1
CODECS = ("raw", "lz4")
TENSOR, RAGGED, STRING = 0, 1, 2
KINDS = ("tensor", "ragged", "string")
DTYPES = (None, "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "bf16", "f32", "f64", "bool")
DTYPE_BYTES = (0, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1)
U8, U32, I64, F32 = 1, 5, 8, 11
LAST_INTEGER = 8
LAYOUTS = ("none", "hwc", "chw", "yuv420", "tokens")
HWC, CHW = 1, 2
IMAGE = 1                           # a semantic
SEMANTICS = ("none", "image", "label", "length", "tokens", "mask", "boxes", "text")

DATA, HASH, CIDX, KOFF, KBLB, STAT, MISS, PROV = range(1, 9)
SECTION_NAMES = (None, "DATA", "HASH", "CIDX", "KOFF", "KBLB", "STAT", "MISS", "PROV")
CRITICAL = 1
MOMENTS, CLASSES = 1, 2
STAT_NAMES = (None, "moments", "classes")
STAT_ITEM_BYTES = (0, 24, 8)


def align(value, step):
    return -(-value // step) * step


def ceil_div(a, b):
    return -(-a // b)


def section_name(kind, group=0):
    name = SECTION_NAMES[kind] if 1 <= kind <= PROV else "section of type %d" % kind
    return "%s of group %d" % (name, group) if kind in (DATA, HASH, CIDX) else name


def is_utf8_text(data):
    """UTF-8 without NUL. Python refuses overlong forms, surrogates and what is above U+10FFFF."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


# --------------------------------------------------------------------------------------------------
# Model.

@dataclass
class Group:
    stride: int
    record_bytes: int
    align_log2: int
    codec: int = RAW
    unit_records: int = 1
    chunk_records: int = 0


@dataclass
class Field:
    name: str
    dtype: int
    shape: Tuple[int, ...] = ()
    group: int = 0
    offset: int = 0
    kind: int = TENSOR
    layout: int = 0
    semantic: int = 0
    bytes: int = -1                 # -1: size of dtype x product of the shape
    ragged_axes: int = 0
    length_field: int = 0
    unused_dims: Tuple[int, ...] = ()
    raw_name: bytes = attribute(default=b"", compare=False)

    def __post_init__(self):
        if self.bytes < 0:
            self.bytes = self.item_bytes() * self.elements()
        if not self.raw_name:
            self.raw_name = self.name.encode("utf-8").ljust(48, b"\0")

    def item_bytes(self):
        return DTYPE_BYTES[self.dtype] if self.dtype < len(DTYPE_BYTES) else 0

    def elements(self):
        product = 1
        for size in self.shape:
            product *= size
        return product

    def channels(self):
        if self.shape and self.layout == HWC:
            return self.shape[-1]
        if self.shape and self.layout == CHW:
            return self.shape[0]
        return 1

    def axes(self):
        return [axis for axis in range(8) if self.ragged_axes >> axis & 1]


@dataclass
class Section:
    kind: int
    flags: int
    group: int
    offset: int
    length: int
    items: int
    hash: int

    def end(self):
        return self.offset + self.length

    def name(self):
        return section_name(self.kind, self.group)


@dataclass
class StatBlock:
    """`items` are (count, sum, sum of squares) per channel, or counts per class."""
    kind: int
    field: int
    items: list


@dataclass
class Missing:
    ordinal: int
    reason: int
    how: int


# --------------------------------------------------------------------------------------------------
# Schema rules: I18 to I33. A shard's tables and a manifest's lines go through the same checks.

def check_groups(groups, fail):
    for i, g in enumerate(groups):
        if not 1 <= g.record_bytes <= g.stride <= STRIDE_MAX:
            fail("I18", "group %d: record bytes %d, stride %d; 1 <= record bytes <= stride <= %d must hold"
                 % (i, g.record_bytes, g.stride, STRIDE_MAX))
    for i, g in enumerate(groups):
        if g.align_log2 > 12:
            fail("I19", "group %d: align log2 is %d, at most 12 is allowed" % (i, g.align_log2))
        elif g.stride % (1 << g.align_log2):
            fail("I19", "group %d: stride %d is no multiple of 2^%d" % (i, g.stride, g.align_log2))
    for i, g in enumerate(groups):
        if not 1 <= g.unit_records <= UNIT_RECORDS_MAX:
            fail("I20", "group %d: unit records is %d, 1 to %d is allowed" % (i, g.unit_records, UNIT_RECORDS_MAX))
    for i, g in enumerate(groups):
        if g.codec >= len(CODECS):
            fail("I21", "group %d: codec %d is unknown, 0 and 1 are known" % (i, g.codec), "unsupported")
    for i, g in enumerate(groups):
        if g.codec == RAW:
            if g.chunk_records:
                fail("I22", "group %d: chunk records is %d, raw groups have 0" % (i, g.chunk_records))
        elif g.chunk_records != g.unit_records:
            fail("I22", "group %d: chunk records is %d, unit records %d; both must be equal"
                 % (i, g.chunk_records, g.unit_records))
        elif g.chunk_records * g.stride > CHUNK_BYTES_MAX:
            fail("I22", "group %d: a chunk decodes to %d bytes, at most %d are allowed"
                 % (i, g.chunk_records * g.stride, CHUNK_BYTES_MAX))


def check_field_forms(fields, fail):
    """I23 to I28: each field by itself."""
    for i, f in enumerate(fields):
        if len(f.raw_name) != 48 or not re.fullmatch(rb"[A-Za-z_][A-Za-z0-9_.-]{0,46}\0+", f.raw_name):
            fail("I23", "field %d: name %a is not of the form [A-Za-z_][A-Za-z0-9_.-]* of 1 to 47 bytes" % (i, f.name))
    for i, f in enumerate(fields):
        for j in range(i):
            if fields[j].name == f.name:
                fail("I24", "fields %d and %d are both named %a" % (j, i, f.name))
    for i, f in enumerate(fields):
        if not 1 <= f.dtype < len(DTYPES):
            fail("I25", "field %d: dtype %d is unknown, 1 to %d are known" % (i, f.dtype, len(DTYPES) - 1))
    for i, f in enumerate(fields):
        if f.kind >= len(KINDS):
            fail("I26", "field %d: kind %d is unknown, 0 to 2 are known" % (i, f.kind))
        if f.layout >= len(LAYOUTS):
            fail("I26", "field %d: layout %d is unknown, 0 to 4 are known" % (i, f.layout))
        if f.semantic >= len(SEMANTICS):
            fail("I26", "field %d: semantic %d is unknown, 0 to 7 are known" % (i, f.semantic))
        if len(f.shape) > NDIM_MAX:
            fail("I26", "field %d: ndim is %d, at most 8 is allowed" % (i, len(f.shape)))
    for i, f in enumerate(fields):
        if 0 in f.shape:
            fail("I27", "field %d: dimension %d is 0, at least 1 is needed" % (i, f.shape.index(0)))
        if any(f.unused_dims):
            fail("I27", "field %d: a shape entry past ndim %d is not 0" % (i, len(f.shape)))
    for i, f in enumerate(fields):
        if f.bytes != f.item_bytes() * f.elements():
            fail("I28", "field %d: bytes is %d, dtype and shape make %d" % (i, f.bytes, f.item_bytes() * f.elements()))
        if f.bytes > STRIDE_MAX:
            fail("I28", "field %d: bytes is %d, at most %d is allowed" % (i, f.bytes, STRIDE_MAX))


def check_lengths(i, fields, fail):
    """I32 for field i."""
    f = fields[i]
    if f.kind == TENSOR:
        if f.ragged_axes or f.length_field:
            fail("I32", "field %d: a tensor with ragged axes %d, length field %d; both must be 0"
                 % (i, f.ragged_axes, f.length_field))
        return
    if f.kind not in (RAGGED, STRING):
        return
    if f.ragged_axes == 0 or f.ragged_axes >> len(f.shape):
        fail("I32", "field %d: ragged axes is %d, bits below ndim %d are allowed and one is needed"
             % (i, f.ragged_axes, len(f.shape)))
    if f.length_field >= len(fields):
        fail("I32", "field %d: length field is %d, there are %d fields" % (i, f.length_field, len(fields)))
        return
    lengths = fields[f.length_field]
    if lengths.kind != TENSOR or lengths.dtype != U32 or lengths.elements() != len(f.axes()):
        fail("I32", "field %d: length field %d must be a u32 tensor of %d elements"
             % (i, f.length_field, len(f.axes())))
    if f.kind == STRING and (f.dtype != U8 or len(f.shape) != 1):
        fail("I32", "field %d: a string must have dtype u8 and one axis" % i)


def check_schema(groups, fields, fail):
    check_groups(groups, fail)
    check_field_forms(fields, fail)
    for i, f in enumerate(fields):
        if f.group >= len(groups):
            fail("I29", "field %d: group is %d, there are %d groups" % (i, f.group, len(groups)))
        elif f.offset + f.bytes > groups[f.group].record_bytes:
            fail("I29", "field %d: offset %d + bytes %d ends past record bytes %d of group %d"
                 % (i, f.offset, f.bytes, groups[f.group].record_bytes, f.group))
    for i, f in enumerate(fields):
        if f.offset % max(f.item_bytes(), 1):
            fail(
                "I30", "field %d: offset %d is no multiple of %d, the size of its dtype" % (i, f.offset, f.item_bytes())
            )
    for i, f in enumerate(fields):
        for j in range(i):
            e = fields[j]
            if e.group == f.group and max(e.offset, f.offset) < min(e.offset + e.bytes, f.offset + f.bytes):
                fail("I31", "fields %d and %d of group %d overlap" % (j, i, f.group))
    for i in range(len(fields)):
        check_lengths(i, fields, fail)
    for i in range(len(groups)):
        if not any(f.group == i for f in fields):
            fail("I33", "group %d has no field" % i)


# --------------------------------------------------------------------------------------------------
# Shard writer.

@dataclass
class SectionDraft:
    kind: int
    group: int
    items: int
    payload: bytes
    flags: int = 0
    lead: int = 0                   # bytes left free in front of it, past the rule
    hash: Optional[bytes] = None    # None: the right one


@dataclass
class ShardDraft:
    """All that goes into a shard, each part of it open to change, so that broken files can be made.

    `header_patch` and `footer_patch` are (offset, bytes) pairs, applied before the page is hashed.
    """
    groups: List[Group]
    fields: List[Field]
    record_count: int
    sections: List[SectionDraft]
    planned_records: int
    plan_shard: int = 0
    plan_digest: bytes = bytes(32)
    align_log2: int = 12
    minor: int = 0
    header_patch: list = attribute(default_factory=list)
    footer_patch: list = attribute(default_factory=list)
    header_hash: Optional[bytes] = None
    footer_hash: Optional[bytes] = None
    tail_gap: int = 0

    def section(self, kind, group=0):
        return next(s for s in self.sections if (s.kind, s.group) == (kind, group))

    def header_page(self):
        page = bytearray(PAGE)
        HEADER.pack_into(page, 0, HEADER_MAGIC, ENDIAN_TAG, MAJOR, self.minor, PAGE, 0, 0, self.planned_records,
                         self.plan_shard, len(self.groups), len(self.fields), self.align_log2, 1, 1, b"",
                         self.plan_digest, b"")
        for i, g in enumerate(self.groups):
            GROUP.pack_into(page, GROUP_TABLE + i * GROUP.size, g.stride, g.record_bytes, g.align_log2, g.codec,
                            g.unit_records, g.chunk_records, b"")
        for i, f in enumerate(self.fields):
            dims = (tuple(f.shape) + tuple(f.unused_dims) + (0,) * 8)[:8]
            FIELD.pack_into(page, FIELD_TABLE + i * FIELD.size, f.raw_name, f.dtype, len(f.shape), f.kind, f.group,
                            f.layout, *dims, f.offset, f.bytes, f.ragged_axes, f.length_field, f.semantic, b"")
        return seal_page(page, self.header_patch, self.header_hash)

    def footer_page(self, file_size, entries, header):
        page = bytearray(PAGE)
        FOOTER.pack_into(page, 0, FOOTER_MAGIC, MAJOR, self.minor, PAGE, file_size, self.record_count, len(entries), 0,
                         header[PAGE_HASH:], b"")
        page[SECTION_TABLE:SECTION_TABLE + len(entries) * SECTION.size] = b"".join(entries)
        return seal_page(page, self.footer_patch, self.footer_hash)

    def pack(self):
        header = self.header_page()
        body = bytearray(header)
        entries = []
        for s in self.sections:
            body += bytes(align(len(body), 1 << self.align_log2) - len(body) + s.lead)
            stored = s.hash
            if stored is None:
                stored = bytes(16) if s.kind == DATA else pack_h128(h128(s.payload))
            entries.append(SECTION.pack(s.kind, s.flags, s.group, 0, len(body), len(s.payload), s.items, 0, stored))
            body += s.payload
        body += bytes(align(len(body), PAGE) - len(body) + self.tail_gap)
        return bytes(body) + self.footer_page(len(body) + PAGE, entries, header)


def seal_page(page, patches, stored_hash=None):
    for offset, data in patches:
        page[offset:offset + len(data)] = data
    page[PAGE_HASH:] = stored_hash if stored_hash is not None else pack_h128(h128(bytes(page[:PAGE_HASH])))
    return bytes(page)


def encode_chunk(data):
    """A chunk as stored, and its flags: raw where LZ4 does not make it smaller."""
    block = lz4_encode(data)
    if len(block) < len(data) <= 255 * len(block):
        return block, 1
    return data, 0


def draft_group(number, g, records, data_offset, encode):
    """DATA, HASH and, if compressed, CIDX of a group."""
    decoded = b"".join(r.ljust(g.stride, b"\0") for r in records)
    unit_bytes = g.unit_records * g.stride
    units = [decoded[at:at + unit_bytes] for at in range(0, len(decoded), unit_bytes)]
    leaves = b"".join(struct.pack("<Q", h64(u)) for u in units)
    data, index = decoded, b""
    if g.codec != RAW:
        data = b""
        for unit in units:
            stored, flags = encode(unit)
            padded = stored.ljust(align(len(stored), CHUNK_ALIGN), b"\0")
            index += CHUNK.pack(data_offset + len(data), len(stored), flags, h64(padded), b"")
            data += padded
    sections = [SectionDraft(DATA, number, len(records), data, CRITICAL),
                SectionDraft(HASH, number, len(units), leaves, CRITICAL)]
    if g.codec != RAW:
        sections.append(SectionDraft(CIDX, number, len(units), index, CRITICAL))
    return sections


def pack_stat(blocks):
    payload = b""
    for block in blocks:
        payload += struct.pack("<IIQ", block.kind, block.field, len(block.items))
        for item in block.items:
            payload += struct.pack("<3Q", *item) if block.kind == MOMENTS else struct.pack("<Q", item)
    return payload


def draft_keys(keys):
    offsets = [0]
    for key in keys:
        offsets.append(offsets[-1] + len(key))
    return [SectionDraft(KOFF, 0, len(offsets), struct.pack("<%dQ" % len(offsets), *offsets), CRITICAL),
            SectionDraft(KBLB, 0, len(keys), b"".join(keys), CRITICAL)]


def draft_shard(groups, fields, columns, keys=None, stats=(), missing=(), provenance=None, extra=(),
                planned_records=None, plan_shard=0, plan_digest=bytes(32), align_log2=12, minor=0,
                encode: Callable = encode_chunk):
    """A draft of a shard. Nothing is checked here: see write_shard().

    `columns[g]` are the records of group g, as bytes of at most its stride; `keys` are bytes;
    `extra` are SectionDrafts of other types; `encode` makes a chunk of decoded bytes.
    """
    record_count = len(columns[0]) if columns else 0
    sections = []
    offset = PAGE
    for number, g in enumerate(groups):
        offset = align(offset, 1 << align_log2)
        made = draft_group(number, g, columns[number], offset, encode)
        offset += len(made[0].payload)
        sections += made
    if keys is not None:
        sections += draft_keys(keys)
    if stats:
        sections.append(SectionDraft(STAT, 0, len(stats), pack_stat(stats)))
    if missing:
        entries = b"".join(struct.pack("<QII", m.ordinal, m.reason, m.how) for m in missing)
        sections.append(SectionDraft(MISS, 0, len(missing), entries))
    if provenance is not None:
        sections.append(SectionDraft(PROV, 0, 1, provenance))
    sections += extra
    sections.sort(key=lambda s: (s.kind, s.group))
    if planned_records is None:
        planned_records = record_count + len(missing)
    return ShardDraft(list(groups), list(fields), record_count, sections, planned_records, plan_shard, plan_digest,
                      align_log2, minor)


def write_shard(groups, fields, columns, **options):
    """The bytes of a shard. Options are those of draft_shard(); a wrong one raises FormatError."""
    data = draft_shard(groups, fields, columns, **options).pack()
    verify_shard(data)
    return data


# --------------------------------------------------------------------------------------------------
# Shard reader: I1 to I42, and the checks of what is used, I43 to I47.

class Shard:
    """An open shard. The attributes are those of the pages; methods give what the sections hold."""

    def __init__(self, data, rules):
        self.data = data
        self.rules = rules
        self.checked_sections = set()
        self.units = {}

    def find(self, kind, group=0):
        return next((s for s in self.sections if (s.kind, s.group) == (kind, group)), None)

    def section_bytes(self, kind, group=0):
        """The bytes of a section whose hash was checked (I43), or None where there is none."""
        section = self.find(kind, group)
        if section is None:
            return None
        self.check_section(section)
        return self.data[section.offset:section.end()]

    def check_section(self, section):
        if id(section) in self.checked_sections:
            return
        found = h128(self.data[section.offset:section.end()])
        if found != section.hash:
            self.rules.fail("I43", "%s: hash is %s, its bytes have %s"
                            % (section.name(), h128_text(section.hash), h128_text(found)))
        self.checked_sections.add(id(section))

    def unit_count(self, group):
        return ceil_div(self.record_count, self.groups[group].unit_records)

    def unit_records(self, group, unit):
        size = self.groups[group].unit_records
        return min(size, self.record_count - unit * size)

    def chunk_entries(self, group):
        index = self.section_bytes(CIDX, group) or b""
        count = min(len(index) // CHUNK.size, self.unit_count(group))
        return [CHUNK.unpack_from(index, i * CHUNK.size) for i in range(count)]

    def check_chunk_index(self, group):
        """I45."""
        data = self.find(DATA, group)
        stride = self.groups[group].stride
        expected = data.offset
        for chunk, (offset, stored, flags, _, reserved) in enumerate(self.chunk_entries(group)):
            what = "chunk %d of group %d: " % (chunk, group)
            usize = self.unit_records(group, chunk) * stride
            if offset != expected:
                self.rules.fail("I45", what + "offset is %d, it must be %d" % (offset, expected))
            if flags > 1:
                self.rules.fail("I45", what + "flags is %d, 0 and 1 are known" % flags)
            if any(reserved):
                self.rules.fail("I45", what + "a reserved byte is not 0")
            if flags == 0 and stored != usize:
                self.rules.fail("I45", what + "stored bytes is %d, raw it must be %d" % (stored, usize))
            if flags == 1 and not (1 <= stored < usize <= 255 * stored):
                self.rules.fail("I45", what + "stored bytes is %d, decoded bytes %d;"
                                " 1 <= stored < decoded <= 255 x stored must hold" % (stored, usize))
            expected = align(offset + stored, CHUNK_ALIGN)
            if expected > data.end():
                self.rules.stop("I45", what + "ends at %d, DATA ends at %d" % (expected, data.end()))
        if expected != data.end():
            self.rules.fail("I45", "chunks of group %d end at %d, DATA ends at %d" % (group, expected, data.end()))

    def decode_chunk(self, group, chunk):
        """I46 and I47."""
        offset, stored, flags, stored_hash, _ = self.chunk_entries(group)[chunk]
        usize = self.unit_records(group, chunk) * self.groups[group].stride
        what = "chunk %d of group %d: " % (chunk, group)
        found = h64(self.data[offset:align(offset + stored, CHUNK_ALIGN)])
        if found != stored_hash:
            self.rules.fail("I46", what + "stored hash is %016x, its bytes have %016x" % (stored_hash, found))
        block = self.data[offset:offset + stored]
        if flags == 0:
            return block
        try:
            decoded = lz4_decode(block, usize)
            if len(decoded) != usize:
                self.rules.fail("I47", what + "decodes to %d bytes, it must be %d" % (len(decoded), usize))
        except Lz4Error as error:
            self.rules.fail("I47", what + str(error))
            decoded = error.output
        return decoded.ljust(usize, b"\0")

    def check_chunk_padding(self, group, chunk):
        """I50."""
        entry = self.chunk_entries(group)[chunk]
        end = entry[0] + entry[1]
        if any(self.data[end:align(end, CHUNK_ALIGN)]):
            self.rules.fail("I50", "chunk %d of group %d: its padding is not all 0" % (chunk, group))

    def unit(self, group, unit, verify=False):
        """The decoded bytes of a unit, checked.

        I43 of its tables; if it is compressed I45 to I47; with `verify` I50 and I44.
        """
        if (group, unit) in self.units:
            return self.units[group, unit]
        g = self.groups[group]
        records = self.unit_records(group, unit)
        leaves = self.section_bytes(HASH, group)
        if g.codec == RAW:
            start = self.find(DATA, group).offset + unit * g.unit_records * g.stride
            decoded = self.data[start:start + records * g.stride]
        else:
            if unit == 0 or (group, 0) not in self.units:
                self.check_chunk_index(group)
            decoded = self.decode_chunk(group, unit)
            if verify:
                self.check_chunk_padding(group, unit)
        found = h64(decoded)
        if leaves is not None and read64(leaves, 8 * unit) != found:
            self.rules.fail("I44", "unit %d of group %d (records %d to %d): leaf hash is %016x, its bytes have %016x"
                            % (unit, group, unit * g.unit_records, unit * g.unit_records + records - 1,
                               read64(leaves, 8 * unit), found))
        self.units[group, unit] = decoded
        return decoded

    def stride_bytes(self, index, group):
        g = self.groups[group]
        unit, within = divmod(index, g.unit_records)
        return self.unit(group, unit)[within * g.stride:(within + 1) * g.stride]

    def record(self, index, group):
        """The `record bytes` first bytes of a record; the rest of the stride is padding."""
        return self.stride_bytes(index, group)[:self.groups[group].record_bytes]

    def keys(self):
        """The keys as bytes, or None."""
        table = self.section_bytes(KOFF)
        if table is None:
            return None
        blob = self.section_bytes(KBLB) or b""
        offsets = struct.unpack("<%dQ" % (len(table) // 8), table[:len(table) // 8 * 8])
        return [blob[a:b] for a, b in zip(offsets, offsets[1:])]

    def missing(self):
        return [Missing(*e) for e in struct.iter_unpack("<QII", self.section_bytes(MISS) or b"")]

    def stats(self):
        return parse_stat(self, self.rules)

    def provenance(self):
        return self.section_bytes(PROV)


def page_is_zero(rules, page, name, start, end):
    for at in range(start, end):
        if page[at]:
            rules.fail("I13", "%s byte 0x%03x is 0x%02x, reserved and unused bytes must be 0" % (name, at, page[at]))
            return


def check_reserved(shard, header, footer, rules):
    """I13. Counts above their limit are I14's; here they only bound the tables."""
    groups = min(shard.group_count, GROUPS_MAX)
    fields = min(shard.field_count, FIELDS_MAX)
    sections = min(shard.section_count, SECTIONS_MAX)
    page_is_zero(rules, header, "header", 0x048, 0x050)
    page_is_zero(rules, header, "header", 0x070, GROUP_TABLE)
    for i in range(groups):
        page_is_zero(rules, header, "header", GROUP_TABLE + 64 * i + 32, GROUP_TABLE + 64 * i + 64)
    page_is_zero(rules, header, "header", GROUP_TABLE + 64 * groups, FIELD_TABLE)
    for i in range(fields):
        page_is_zero(rules, header, "header", FIELD_TABLE + 128 * i + 108, FIELD_TABLE + 128 * i + 128)
    page_is_zero(rules, header, "header", FIELD_TABLE + 128 * fields, PAGE_HASH)
    page_is_zero(rules, footer, "footer", 0x024, 0x028)
    page_is_zero(rules, footer, "footer", 0x038, SECTION_TABLE)
    for i in range(sections):
        at = SECTION_TABLE + 64 * i
        kind, flags = struct.unpack_from("<II", footer, at)
        if flags & ~CRITICAL:
            rules.fail("I13", "section entry %d: flags is 0x%x, only bit 0 is defined" % (i, flags))
        page_is_zero(rules, footer, "footer", at + 12, at + 16)
        page_is_zero(rules, footer, "footer", at + 40, at + 48)
        if kind == DATA:
            page_is_zero(rules, footer, "footer", at + 48, at + 64)
    page_is_zero(rules, footer, "footer", SECTION_TABLE + 64 * sections, PAGE_HASH)


def parse_tables(shard, header, footer):
    shard.groups = []
    for i in range(min(shard.group_count, GROUPS_MAX)):
        shard.groups.append(Group(*GROUP.unpack_from(header, GROUP_TABLE + GROUP.size * i)[:6]))
    shard.fields = []
    for i in range(min(shard.field_count, FIELDS_MAX)):
        (name, dtype, ndim, kind, group, layout, d0, d1, d2, d3, d4, d5, d6, d7, offset, size, axes, length, semantic,
         _) = FIELD.unpack_from(header, FIELD_TABLE + FIELD.size * i)
        dims = (d0, d1, d2, d3, d4, d5, d6, d7)
        shape = dims[:ndim] if ndim <= NDIM_MAX else dims + (1,) * (ndim - NDIM_MAX)
        unused = dims[ndim:]
        while unused and unused[-1] == 0:
            unused = unused[:-1]
        shard.fields.append(Field(name.split(b"\0")[0].decode("latin-1"), dtype, shape, group, offset, kind, layout,
                                  semantic, size, axes, length, unused, name))
    shard.sections = []
    for i in range(min(shard.section_count, SECTIONS_MAX)):
        kind, flags, group, _, offset, length, items, _, stored = SECTION.unpack_from(footer, SECTION_TABLE + 64 * i)
        shard.sections.append(Section(kind, flags, group, offset, length, items, unpack_h128(stored)))


def check_pages(data, rules):
    """I1 to I5, and the header's version major directly after I3. Gives the two pages."""
    size = len(data)
    if size % PAGE or not 2 * PAGE <= size <= FILE_BYTES_MAX:
        message = "file size is %d, a multiple of 4096 from 8192 to 2^44 is needed" % size
        rules.fail("I1", message)
        if size < 2 * PAGE:
            rules.stop("I1", message)
    header, footer = data[:PAGE], data[size - PAGE:]
    for page, name, magic, magic_rule, hash_rule in ((header, "header", HEADER_MAGIC, "I2", "I3"),
                                                     (footer, "footer", FOOTER_MAGIC, "I4", "I5")):
        if page[:8] != magic:
            rules.fail(magic_rule, "%s begins with %s, its magic is %s" % (name, page[:8].hex(), magic.hex()))
        found = h128(page[:PAGE_HASH])
        if found != unpack_h128(page[PAGE_HASH:]):
            rules.fail(hash_rule, "%s hash is %s, its bytes have %s"
                       % (name, h128_text(unpack_h128(page[PAGE_HASH:])), h128_text(found)))
        if page is header and HEADER.unpack_from(header)[2] != MAJOR:
            rules.fail("I7", "version is %d; this reader knows 1" % HEADER.unpack_from(header)[2], "unsupported")
    return header, footer


def check_heads(shard, header, footer, rules):
    """I6 to I17. Sets the plain attributes of the shard."""
    (_, endian, major, shard.minor, page_bytes, incompat, shard.compat, shard.planned_records, shard.plan_shard,
     shard.group_count, shard.field_count, shard.align_log2, leaf_hash, table_hash, _, shard.plan_digest,
     _) = HEADER.unpack_from(header)
    (_, footer_major, footer_minor, footer_page_bytes, file_size, shard.record_count, shard.section_count, _,
     header_hash, _) = FOOTER.unpack_from(footer)
    if endian != ENDIAN_TAG:
        rules.fail("I6", "endian tag is 0x%016x, 0x%016x is needed" % (endian, ENDIAN_TAG))
    if major != MAJOR or footer_major != MAJOR:
        rules.fail("I7", "version is %d in the header, %d in the footer; this reader knows 1" % (major, footer_major),
                   "unsupported")
    if page_bytes != PAGE or footer_page_bytes != PAGE:
        rules.fail("I7", "page bytes is %d and %d, 4096 is needed" % (page_bytes, footer_page_bytes))
    if shard.minor != footer_minor:
        rules.fail("I7", "version minor is %d in the header, %d in the footer" % (shard.minor, footer_minor))
    if file_size != len(shard.data):
        rules.fail("I8", "the footer says %d bytes, the file has %d" % (file_size, len(shard.data)))
    if header_hash != header[PAGE_HASH:]:
        rules.fail("I9", "the footer names another header, hash %s" % h128_text(unpack_h128(header_hash)))
    if incompat:
        rules.fail("I10", "feature incompat is 0x%x, no bit of it is known" % incompat, "unsupported")
    if leaf_hash != 1 or table_hash != 1:
        rules.fail("I12", "leaf hash is %d, table hash %d; only 1 is known" % (leaf_hash, table_hash), "unsupported")
    check_reserved(shard, header, footer, rules)
    if not (1 <= shard.group_count <= GROUPS_MAX and 1 <= shard.field_count <= FIELDS_MAX
            and shard.section_count <= SECTIONS_MAX):
        rules.fail("I14", "%d groups, %d fields, %d sections; 1 to 8, 1 to 24, at most 32 are allowed"
                   % (shard.group_count, shard.field_count, shard.section_count))
    if not 12 <= shard.align_log2 <= 21:
        message = "section align log2 is %d, 12 to 21 is allowed" % shard.align_log2
        rules.fail("I15", message)
        if shard.align_log2 > 63:
            rules.stop("I15", message)
    if shard.planned_records > RECORDS_MAX:
        rules.fail("I16", "planned records is %d, at most 2^40 is allowed" % shard.planned_records)
    if shard.record_count > shard.planned_records:
        rules.fail("I17", "record count is %d, planned records %d" % (shard.record_count, shard.planned_records))


def check_section_table(shard, rules):
    """I34 to I36."""
    for i, s in enumerate(shard.sections):
        if s.flags & CRITICAL and not DATA <= s.kind <= PROV:
            rules.fail("I34", "section entry %d: critical, and its type %d is unknown" % (i, s.kind), "unsupported")
    for i, s in enumerate(shard.sections):
        if i and (s.kind, s.group) <= (shard.sections[i - 1].kind, shard.sections[i - 1].group):
            rules.fail("I35", "section entry %d: %s does not come after %s"
                       % (i, s.name(), shard.sections[i - 1].name()))
        limit = shard.group_count if s.kind in (DATA, HASH, CIDX) else 1
        if s.group >= limit:
            rules.fail("I35", "section entry %d: group is %d, below %d is needed" % (i, s.group, limit))
    for i, g in enumerate(shard.groups):
        for kind, needed in ((DATA, True), (HASH, True), (CIDX, g.codec != RAW)):
            if (shard.find(kind, i) is not None) != needed:
                rules.fail("I36", "%s %s" % (section_name(kind, i), "is missing" if needed else "must not be there"))
    if (shard.find(KOFF) is None) != (shard.find(KBLB) is None):
        rules.fail("I36", "KOFF and KBLB must be there together")


def check_section_places(shard, rules):
    """I37."""
    end = PAGE
    for s in shard.sections:
        expected = align(end, 1 << shard.align_log2)
        if s.offset != expected:
            rules.fail("I37", "%s starts at %d, its place is %d" % (s.name(), s.offset, expected))
        end = s.end()
    footer_offset = len(shard.data) - PAGE
    if not end <= footer_offset < end + PAGE:
        rules.fail("I37", "the last section ends at %d, the footer starts at %d" % (end, footer_offset))


def expect(rules, number, section, items, length):
    if section is None:
        return
    if items is not None and section.items != items:
        rules.fail(number, "%s: items is %d, it must be %d" % (section.name(), section.items, items))
    if length is not None and section.length != length:
        rules.fail(number, "%s: length is %d, it must be %d" % (section.name(), section.length, length))


def check_section_sizes(shard, rules):
    """I38 to I42."""
    count = shard.record_count
    for i, g in enumerate(shard.groups):
        expect(rules, "I38", shard.find(DATA, i), count, count * g.stride if g.codec == RAW else None)
    for i, g in enumerate(shard.groups):
        items = ceil_div(count, max(g.unit_records, 1))
        expect(rules, "I39", shard.find(HASH, i), items, 8 * items)
    for i, g in enumerate(shard.groups):
        if g.codec != RAW:
            items = ceil_div(count, max(g.chunk_records, 1))
            expect(rules, "I40", shard.find(CIDX, i), items, 32 * items)
    expect(rules, "I41", shard.find(KOFF), count + 1, 8 * (count + 1))
    expect(rules, "I41", shard.find(KBLB), count, None)
    missing, provenance = shard.find(MISS), shard.find(PROV)
    if missing:
        expect(rules, "I42", missing, None, 16 * missing.items)
    expect(rules, "I42", provenance, 1, None)
    if provenance and provenance.length > PROVENANCE_BYTES_MAX:
        rules.fail("I42", "PROV: length is %d, at most %d is allowed" % (provenance.length, PROVENANCE_BYTES_MAX))


def read_shard(data, skip=(), place="", after_pages=None):
    """Open a shard: I1 to I42 without I11. `after_pages` is called between I5 and I6."""
    rules = Rules(skip, place)
    shard = Shard(data, rules)
    header, footer = check_pages(data, rules)
    shard.root = unpack_h128(footer[PAGE_HASH:])
    if after_pages:
        after_pages(shard.root, FOOTER.unpack_from(footer)[5])
    check_heads(shard, header, footer, rules)
    parse_tables(shard, header, footer)
    check_schema(shard.groups, shard.fields, rules.fail)
    check_section_table(shard, rules)
    check_section_places(shard, rules)
    check_section_sizes(shard, rules)
    return shard


# --------------------------------------------------------------------------------------------------
# Shard verifier: I11 and I43 to I59.

def parse_stat(shard, rules, verify=False):
    """I53, and with `verify` I54 of each block directly after it."""
    payload = shard.section_bytes(STAT)
    if payload is None:
        return []
    blocks = []
    at = 0
    while at < len(payload):
        if len(payload) - at < 16:
            rules.fail("I53", "STAT: %d bytes behind the last block" % (len(payload) - at))
            break
        kind, field, items = struct.unpack_from("<IIQ", payload, at)
        what = "STAT block %d: " % len(blocks)
        at += 16
        if kind not in (MOMENTS, CLASSES):
            rules.fail("I53", what + "kind %d is unknown, 1 and 2 are known" % kind)
            break
        if items * STAT_ITEM_BYTES[kind] > len(payload) - at:
            rules.fail("I53", what + "%d items do not fit into the %d bytes left" % (items, len(payload) - at))
            break
        if blocks and (kind, field) <= (blocks[-1].kind, blocks[-1].field):
            rules.fail("I53", what + "(kind, field) does not ascend")
        check_stat_block(rules, what, shard.fields, kind, field, items)
        layout = "<3Q" if kind == MOMENTS else "<Q"
        end = at + items * STAT_ITEM_BYTES[kind]
        values = list(struct.iter_unpack(layout, payload[at:end]))
        blocks.append(StatBlock(kind, field, values if kind == MOMENTS else [v[0] for v in values]))
        if verify:
            check_stat_values(rules, what, shard.fields, blocks[-1], shard.record_count)
        at = end
    section = shard.find(STAT)
    if len(blocks) != section.items:
        rules.fail("I53", "STAT: items is %d, there are %d blocks" % (section.items, len(blocks)))
    return blocks


def check_stat_field(rules, number, what, fields, kind, field):
    """What I53 and M11 say of the field that a block is for. Whether there is such a field."""
    if field >= len(fields):
        rules.fail(number, what + "field is %d, there are %d fields" % (field, len(fields)))
        return False
    f = fields[field]
    if kind == MOMENTS and (f.kind != TENSOR or f.dtype != U8):
        rules.fail(number, what + "moments of field %d, which is no u8 tensor" % field)
    if kind == CLASSES and (f.kind != TENSOR or not 1 <= f.dtype <= LAST_INTEGER or f.shape):
        rules.fail(number, what + "class counts of field %d, which is no integer scalar" % field)
    return True


def check_stat_block(rules, what, fields, kind, field, items):
    """The parts of I53 that are about the field."""
    if not check_stat_field(rules, "I53", what, fields, kind, field):
        return
    if kind == MOMENTS and items != fields[field].channels():
        rules.fail("I53", what + "%d channels, field %d has %d" % (items, field, fields[field].channels()))
    if kind == CLASSES and items > CLASSES_MAX:
        rules.fail("I53", what + "%d classes, at most 2^24 are allowed" % items)


def check_moments(rules, number, what, f, item, record_count):
    """I54 and M11: one channel of field `f`."""
    count, total, squares = item
    expected = record_count * f.elements() // f.channels()
    if count != expected:
        rules.fail(number, what + "count is %d, it must be %d" % (count, expected))
    if total > 255 * count or squares > 255 * total:
        rules.fail(number, what + "count %d, sum %d, sum of squares %d;"
                   " sum <= 255 x count and squares <= 255 x sum must hold" % (count, total, squares))


def check_stat_values(rules, what, fields, block, record_count):
    """I54."""
    if block.field >= len(fields):
        return
    if block.kind == CLASSES:
        if sum(block.items) != record_count:
            rules.fail(
                "I54", what + "class counts add up to %d, there are %d records" % (sum(block.items), record_count)
            )
        return
    for channel, item in enumerate(block.items):
        check_moments(rules, "I54", what + "channel %d: " % channel, fields[block.field], item, record_count)


def check_gaps(shard, rules):
    """I48."""
    position = PAGE
    for start, end, name in [(s.offset, s.end(), s.name()) for s in shard.sections] + \
                            [(len(shard.data) - PAGE, 0, "the footer")]:
        gap = shard.data[position:start]
        if any(gap):
            at = next(i for i, byte in enumerate(gap) if byte)
            rules.fail("I48", "byte %d of the file, in the gap before %s, is not 0" % (position + at, name))
        position = end


def uncovered_ranges(shard, group):
    ranges = []
    position = 0
    for f in sorted((f for f in shard.fields if f.group == group), key=lambda f: f.offset):
        if f.offset > position:
            ranges.append((position, f.offset))
        position = max(position, f.offset + f.bytes)
    if position < shard.groups[group].stride:
        ranges.append((position, shard.groups[group].stride))
    return ranges


def check_uncovered(shard, rules, group, unit, decoded, ranges):
    """I49 of a unit."""
    g = shard.groups[group]
    for i in range(shard.unit_records(group, unit)):
        for start, end in ranges:
            if any(decoded[i * g.stride + start:i * g.stride + end]):
                rules.fail("I49", "record %d of group %d: bytes %d to %d belong to no field and are not all 0"
                           % (unit * g.unit_records + i, group, start, end - 1))


def check_keys(shard, rules):
    """I51 and I52."""
    table = shard.section_bytes(KOFF)
    if table is None:
        return
    blob = shard.section_bytes(KBLB) or b""
    offsets = struct.unpack("<%dQ" % (len(table) // 8), table)
    if offsets[0] != 0:
        rules.fail("I51", "KOFF starts at %d, it must start at 0" % offsets[0])
    for i, (start, end) in enumerate(zip(offsets, offsets[1:])):
        if not 0 <= end - start <= KEY_BYTES_MAX:
            rules.fail("I51", "key %d goes from %d to %d, 0 to %d bytes are allowed" % (i, start, end, KEY_BYTES_MAX))
    if offsets[-1] != len(blob):
        rules.fail("I51", "KOFF ends at %d, KBLB has %d bytes" % (offsets[-1], len(blob)))
    for i, key in enumerate(shard.keys()):
        if not is_utf8_text(key):
            rules.fail("I52", "key %d is not UTF-8 without NUL: %a" % (i, key))


def check_missing(shard, rules):
    """I55."""
    previous = -1
    entries = shard.missing()
    for i, m in enumerate(entries):
        if m.ordinal <= previous:
            rules.fail("I55", "MISS entry %d: ordinal %d comes after %d" % (i, m.ordinal, previous))
        if not 1 <= m.reason <= 0xFFFF or m.how not in (1, 2):
            rules.fail("I55", "MISS entry %d: reason %d, how %d; 1 to 65535 and 1 or 2 are allowed"
                       % (i, m.reason, m.how))
        previous = m.ordinal
    section = shard.find(MISS)
    if section and shard.record_count + section.items > shard.planned_records:
        rules.fail("I55", "%d records and %d inputs left out, planned records is %d"
                   % (shard.record_count, section.items, shard.planned_records))


def tail_is_zero(data, shape, item_bytes, lengths, axis=0):
    """Whether all elements past the length of an axis are zero; `lengths` maps axis to length."""
    if not any(a >= axis for a in lengths):
        return True
    step = len(data) // shape[axis]
    limit = min(lengths.get(axis, shape[axis]), shape[axis])
    if any(data[limit * step:]):
        return False
    return all(tail_is_zero(data[i * step:(i + 1) * step], shape, item_bytes, lengths, axis + 1) for i in range(limit))


def ragged_lengths(shard, index, f):
    lengths = shard.fields[f.length_field]
    data = shard.stride_bytes(index, lengths.group)[lengths.offset:lengths.offset + lengths.bytes]
    return dict(zip(f.axes(), struct.unpack("<%dI" % (len(data) // 4), data)))


def size_field(fields, f):
    """The field of height and width of whole images (SHARD.md 2.11), or None for other fields."""
    whole = (f.kind == RAGGED and f.dtype == U8 and f.semantic == IMAGE and f.layout == HWC and len(f.shape) == 2
             and f.axes() == [0] and 1 <= f.shape[1] <= 4)
    return next((g for g in fields if whole and g.name == f.name + "_size" and g.kind == TENSOR and g.dtype == U32
                 and tuple(g.shape) == (2,)), None)


def check_size(shard, rules, index, i, f, pixels):
    """I59."""
    size = size_field(shard.fields, f)
    if size:
        height, width = struct.unpack_from("<2I", shard.stride_bytes(index, size.group), size.offset)
        if height * width != pixels or not pixels:
            rules.fail("I59", "record %d, field %d: height %d and width %d, but %d pixels"
                       % (index, i, height, width, pixels))


def check_ragged(shard, rules):
    """I57, I58 and I59, record after record, and in it field after field."""
    ragged = [(i, f) for i, f in enumerate(shard.fields) if f.kind in (RAGGED, STRING)]
    for index in range(shard.record_count if ragged else 0):
        for i, f in ragged:
            lengths = ragged_lengths(shard, index, f)
            for axis, length in lengths.items():
                if length > f.shape[axis]:
                    rules.fail("I57", "record %d, field %d: axis %d has length %d, its size is %d"
                               % (index, i, axis, length, f.shape[axis]))
            data = shard.stride_bytes(index, f.group)[f.offset:f.offset + f.bytes]
            if not tail_is_zero(data, f.shape, f.item_bytes(), lengths):
                rules.fail("I58", "record %d, field %d: bytes past its lengths are not all 0" % (index, i))
            check_size(shard, rules, index, i, f, lengths.get(0))


def check_tables(shard, rules):
    """I43 of all sections, then I45, I48 and I51 to I56."""
    for section in shard.sections:
        if section.kind != DATA:
            shard.check_section(section)
    for group, g in enumerate(shard.groups):
        if g.codec != RAW and shard.find(DATA, group):
            shard.check_chunk_index(group)
    check_gaps(shard, rules)
    check_keys(shard, rules)
    parse_stat(shard, rules, verify=True)
    check_missing(shard, rules)
    provenance = shard.provenance()
    if provenance is not None and not is_utf8_text(provenance):
        rules.fail("I56", "PROV is not UTF-8 without NUL")


def check_units(shard, rules):
    """I44, I46, I47, I49 and I50, group after group, unit after unit."""
    shard.units.clear()             # what was used before was not checked for all of these
    for group in range(len(shard.groups)):
        ranges = uncovered_ranges(shard, group)
        for unit in range(shard.unit_count(group) if shard.find(DATA, group) else 0):
            decoded = shard.unit(group, unit, verify=True)
            check_uncovered(shard, rules, group, unit, decoded, ranges)


def verify_open_shard(shard):
    """I11 and I43 to I59 of a shard that read_shard() opened, in the order of SHARD.md 2.10."""
    rules = shard.rules
    if shard.compat:
        rules.fail("I11", "feature compat is 0x%x, no bit of it is known" % shard.compat, "unsupported")
    check_tables(shard, rules)
    check_units(shard, rules)
    check_ragged(shard, rules)


def verify_shard(data, skip=(), place="", after_pages=None):
    """All of I1 to I59. Gives the shard."""
    shard = read_shard(data, skip, place, after_pages)
    verify_open_shard(shard)
    return shard


# --------------------------------------------------------------------------------------------------
# Manifest writer.

@dataclass
class ShardLine:
    file: str
    bytes: int
    records: int
    root: int
    sha256: str


@dataclass
class Manifest:
    groups: List[Group]
    fields: List[Field]
    classes: List[str] = attribute(default_factory=list)
    stats: List[StatBlock] = attribute(default_factory=list)
    shards: List[ShardLine] = attribute(default_factory=list)
    plan: Optional[str] = None
    order: str = "-"                # "source", "shuffle SEED" or "-"
    records: int = 0
    id: str = ""


def joined(numbers):
    return ",".join(str(n) for n in numbers) or "-"


def named(names, number):
    return names[number] if number < len(names) and names[number] else str(number)


def percent_encode(name):
    return "".join(chr(b) if re.match(rb"[A-Za-z0-9._~-]", bytes([b])) else "%%%02X" % b for b in name)


def percent_decode(token):
    """The bytes of a class name, or None where the encoding is not the canonical one."""
    if not re.fullmatch(r"(?:[A-Za-z0-9._~-]|%[0-9A-F]{2})*", token):
        return None
    name = re.sub(rb"%(..)", lambda m: bytes([int(m.group(1), 16)]), token.encode("ascii"))
    return name if percent_encode(name) == token else None


def group_line(i, g):
    return "group %d stride %d record %d align %d codec %s unit %d chunk %d" \
        % (i, g.stride, g.record_bytes, g.align_log2, named(CODECS, g.codec), g.unit_records, g.chunk_records)


def field_line(i, f):
    tensor = f.kind == TENSOR
    return "field %d %s group %d kind %s dtype %s layout %s semantic %s offset %d bytes %d shape %s axes %s length %s" \
        % (i, f.name, f.group, named(KINDS, f.kind), named(DTYPES, f.dtype), named(LAYOUTS, f.layout),
           named(SEMANTICS, f.semantic), f.offset, f.bytes, joined(f.shape), "-" if tensor else joined(f.axes()),
           "-" if tensor else f.length_field)


def stat_lines(blocks):
    for block in sorted(blocks, key=lambda b: (b.kind, b.field)):
        for i, item in enumerate(block.items):
            values = item if block.kind == MOMENTS else (item,)
            yield "stat %s %d %d %s" % (STAT_NAMES[block.kind], block.field, i, " ".join(str(v) for v in values))


def manifest_lines(manifest):
    lines = ["shardset 1", "records %d" % sum(s.records for s in manifest.shards), "shards %d" % len(manifest.shards),
             "plan %s" % (manifest.plan or "-"), "order %s" % manifest.order]
    lines += [group_line(i, g) for i, g in enumerate(manifest.groups)]
    lines += [field_line(i, f) for i, f in enumerate(manifest.fields)]
    lines += ["class %d %s" % (i, percent_encode(name.encode("utf-8"))) for i, name in enumerate(manifest.classes)]
    lines += stat_lines(manifest.stats)
    lines += ["shard %d %s bytes %d records %d root %s sha256 %s"
              % (i, s.file, s.bytes, s.records, h128_text(s.root), s.sha256) for i, s in enumerate(manifest.shards)]
    return lines


def seal_manifest(lines, sha256=None, xxh3=None):
    """Lines as a file, with its end line. A digest that is given stands in for the right one."""
    body = "".join(line + "\n" for line in lines).encode("latin-1")
    body += b"end " + (sha256 or hashlib.sha256(body).hexdigest()).encode("ascii") + b" "
    return body + (xxh3 or h128_text(h128(body))).encode("ascii") + b"\n"


def shard_line(file, data):
    """What a manifest states of a shard."""
    shard = read_shard(data)
    return ShardLine(file, len(data), shard.record_count, shard.root, hashlib.sha256(data).hexdigest())


def add_stats(lists):
    """The sums of the STAT blocks of several shards; class counts are as long as the longest."""
    sums = {}
    for block in (b for blocks in lists for b in blocks):
        total = sums.setdefault((block.kind, block.field), StatBlock(block.kind, block.field, []))
        if block.kind == MOMENTS:
            old = total.items or [(0, 0, 0)] * len(block.items)
            total.items = [tuple(a + b for a, b in zip(x, y)) for x, y in zip(old, block.items)]
        else:
            size = max(len(total.items), len(block.items))
            total.items = [sum(part) for part in zip(total.items + [0] * (size - len(total.items)),
                                                     block.items + [0] * (size - len(block.items)))]
    return [sums[key] for key in sorted(sums)]


def write_manifest(groups, fields, shards=(), classes=(), stats=(), plan=None, order="-"):
    """The bytes of a manifest. `shards` are ShardLines. What is not valid raises FormatError."""
    data = seal_manifest(manifest_lines(Manifest(list(groups), list(fields), list(classes), list(stats), list(shards),
                                                 plan, order)))
    read_manifest(data, verify=True)
    return data


# --------------------------------------------------------------------------------------------------
# Manifest reader: M1 to M17.

END_LINE = re.compile(rb"\nend ([0-9a-f]{64}) ([0-9a-f]{32})\n\Z")
DECIMAL = re.compile(r"0|[1-9][0-9]*")
SHARD_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}(?:/[A-Za-z0-9_][A-Za-z0-9._-]{0,199})?")
SQUARES_MAX = (1 << 128) - 1

# The tokens of each kind of line, in order of the lines. A string is the token itself, a number the
# greatest value, HEX_n a digest, ANY what other rules look at, LIST_n numbers up to n joined by
# commas.
ANY, HEX_32, HEX_64 = "<any>", "<32>", "<64>"
LINE_FORMS = (
    ("shardset", M64),
    ("records", DATASET_RECORDS_MAX),
    ("shards", DATASET_SHARDS_MAX),
    ("plan", ANY),
    ("order", ANY, M64),
    ("group", M32, "stride", M64, "record", M64, "align", M32, "codec", ANY, "unit", M32, "chunk", M32),
    ("field", M32, ANY, "group", 0xFFFF, "kind", ANY, "dtype", ANY, "layout", ANY, "semantic", ANY, "offset", M64,
     "bytes", M64, "shape", ANY, "axes", ANY, "length", ANY),
    ("class", CLASSES_MAX, ANY),
    ("stat", ANY, M64, M64, M64),
    ("shard", DATASET_SHARDS_MAX, ANY, "bytes", FILE_BYTES_MAX, "records", RECORDS_MAX, "root", HEX_32, "sha256",
     HEX_64),
)
KEYWORDS = [form[0] for form in LINE_FORMS]
ONCE = 5                            # the first five lines come exactly once


def line_form(tokens):
    """The form of a line by its first words, or None."""
    form = LINE_FORMS[KEYWORDS.index(tokens[0])] if tokens and tokens[0] in KEYWORDS else None
    if form is None or len(tokens) < 2:
        return None
    if tokens[0] == "order":
        return form if tokens[1] == "shuffle" else form[:2] if tokens[1] in ("source", "-") else None
    if tokens[0] == "stat":
        return form + (M64, SQUARES_MAX) if tokens[1] == "moments" else form if tokens[1] == "classes" else None
    return form


def matches_form(tokens, form):
    return form is not None and len(tokens) == len(form) and \
        all(not isinstance(want, str) or want[0] == "<" or want == got for got, want in zip(tokens, form))


def check_number(rules, what, token, limit):
    if not DECIMAL.fullmatch(token):
        rules.fail("M7", what + "%a is no decimal number in canonical form" % token)
    elif int(token) > limit:
        rules.fail("M7", what + "%s is above the limit %d" % (token, limit))


def check_list(rules, what, token, limit, ascending=False):
    if token == "-":
        return
    for number in token.split(","):
        check_number(rules, what, number, limit)
    if ascending and any(to_int(a) >= to_int(b) for a, b in zip(token.split(","), token.split(",")[1:])):
        rules.fail("M7", what + "axes %a do not ascend" % token)


def to_int(token):
    """The number of a token, whatever its form: what is no number was reported or is skipped."""
    return int(token) if re.fullmatch(r"[0-9]+", token) else 0


def split_manifest(data, rules):
    """M1 to M3. Gives the lines before the end line, and the end line's SHA-256."""
    if not data.startswith(b"shardset "):
        rules.fail("M1", "the file begins with %a, not with 'shardset '" % data[:9])
    end = END_LINE.search(data)
    if not end:
        rules.fail("M2", "the file does not end with an end line: %a" % data[-110:])
        return data.split(b"\n")[:-1], ""
    found = h128_text(h128(data[:end.start(2)]))
    if found != end.group(2).decode("ascii"):
        rules.fail("M3", "the end line says XXH3 %s, the bytes have %s" % (end.group(2).decode("ascii"), found))
    return data[:end.start()].split(b"\n"), end.group(1).decode("ascii")


def check_line_text(rules, what, line):
    """M5."""
    if not 2 <= len(line) + 1 <= LINE_BYTES_MAX:
        rules.fail("M5", what + "has %d bytes with its LF, 2 to %d are allowed" % (len(line) + 1, LINE_BYTES_MAX))
    if re.search(rb"[^\x20-\x7e]", line):
        rules.fail("M5", what + "has a byte outside 0x20 to 0x7E")
    if line.startswith(b" ") or line.endswith(b" ") or b"  " in line:
        rules.fail("M5", what + "has a space too many")


def check_line_numbers(rules, what, tokens, form):
    """M7."""
    for token, want in zip(tokens, form):
        if want in (HEX_32, HEX_64):
            if not re.fullmatch("[0-9a-f]{%d}" % (32 if want == HEX_32 else 64), token):
                rules.fail("M7", what + "%a is no digest of the right form" % token)
        elif not isinstance(want, str):
            check_number(rules, what, token, want)
    if tokens[0] == "plan" and not re.fullmatch("-|[0-9a-f]{64}", tokens[1]):
        rules.fail("M7", what + "%a is no digest of the right form" % tokens[1])
    if tokens[0] == "field":
        check_list(rules, what, tokens[18], DIM_MAX)
        check_list(rules, what, tokens[20], 7, ascending=True)
        if tokens[22] != "-":
            check_number(rules, what, tokens[22], 255)
    if tokens[0] == "shard":
        size = to_int(tokens[4])
        if size % PAGE or size < 2 * PAGE:
            rules.fail("M7", what + "bytes is %d, a multiple of 4096 from 8192 is needed" % size)


def number_of(names, name):
    """Its number, or one that no table knows."""
    return names.index(name) if name in names else 0xFF


def parse_group(t):
    return Group(to_int(t[3]), to_int(t[5]), to_int(t[7]), number_of(CODECS, t[9]), to_int(t[11]), to_int(t[13]))


def parse_field(t):
    shape = () if t[18] == "-" else tuple(to_int(n) for n in t[18].split(","))
    axes = 0 if t[20] == "-" else sum(1 << to_int(n) for n in set(t[20].split(",")))
    length_field = 0 if t[22] == "-" else to_int(t[22])
    if (t[20] == "-") != (t[22] == "-"):
        length_field = 0xFF         # no field has this number, and no tensor may have one: I32
    return Field(t[2], number_of(DTYPES, t[8]), shape, to_int(t[4]), to_int(t[14]), number_of(KINDS, t[6]),
                 number_of(LAYOUTS, t[10]), number_of(SEMANTICS, t[12]), to_int(t[16]), axes, length_field)


class ManifestReader:
    """M4 to M14. Takes the lines in turn; finish() gives the manifest."""

    def __init__(self, rules, digest):
        self.rules = rules
        self.manifest = Manifest([], [], id=digest)
        self.line = 0
        self.what = ""              # in front of messages
        self.seen = set()           # which of the first five lines
        self.rank = 0               # of the last line of known form
        self.schema_done = False
        self.block = None           # the block of statistics that is being read
        self.class_count = self.shard_count = self.record_sum = 0

    def take(self, line):
        self.line += 1
        self.what = "line %d: " % self.line
        check_line_text(self.rules, self.what, line)
        tokens = line.decode("latin-1").split()
        if self.line == 1:
            self.check_version(tokens)
        keyword = self.check_order(tokens)
        if keyword and KEYWORDS.index(keyword) > KEYWORDS.index("field"):
            self.finish_schema()
        if keyword == "shard":
            self.finish_block()
        form = line_form(tokens)
        if not matches_form(tokens, form):
            self.rules.fail("M6", self.what + "is not of a known form: %a" % " ".join(tokens)[:80])
            return
        check_line_numbers(self.rules, self.what, tokens, form)
        getattr(self, "take_" + keyword)(tokens)

    def check_version(self, tokens):
        """M4. The word in front of the version is M1's."""
        if len(tokens) == 2:
            tokens[0] = "shardset"
            if DECIMAL.fullmatch(tokens[1]) and tokens[1] != "1":
                self.rules.fail("M4", "version is %s, this reader knows 1" % tokens[1], "unsupported")

    def check_order(self, tokens):
        """M6 of the first word. Gives it if it is a known one."""
        keyword = tokens[0] if tokens and tokens[0] in KEYWORDS else None
        if self.line <= ONCE:
            if keyword != KEYWORDS[self.line - 1]:
                self.rules.fail("M6", self.what + "is no '%s' line" % KEYWORDS[self.line - 1])
        elif keyword is None or KEYWORDS.index(keyword) < max(self.rank, ONCE):
            self.rules.fail("M6", self.what + "is of unknown form or out of order: %a" % " ".join(tokens)[:80])
        if keyword:
            self.seen.add(keyword)
            self.rank = max(self.rank, KEYWORDS.index(keyword))
        return keyword

    def check_count(self, tokens, count, limit):
        """M8. The line's number is that of lines of its kind before it."""
        if to_int(tokens[1]) != count:
            self.rules.fail("M8", self.what + "%s %s where %d was due" % (tokens[0], tokens[1], count))
        if count >= limit:
            self.rules.fail("M8", self.what + "more than %d '%s' lines" % (limit, tokens[0]))

    def take_shardset(self, tokens):
        pass

    def take_records(self, tokens):
        self.manifest.records = to_int(tokens[1])

    def take_shards(self, tokens):
        self.shard_count = to_int(tokens[1])

    def take_plan(self, tokens):
        self.manifest.plan = None if tokens[1] == "-" else tokens[1]

    def take_order(self, tokens):
        self.manifest.order = " ".join(tokens[1:])

    def take_group(self, tokens):
        self.check_count(tokens, len(self.manifest.groups), GROUPS_MAX)
        self.manifest.groups.append(parse_group(tokens))

    def take_field(self, tokens):
        self.check_count(tokens, len(self.manifest.fields), FIELDS_MAX)
        self.manifest.fields.append(parse_field(tokens))

    def finish_schema(self):
        """Behind the last field line: M6 and M8 for lines that are missing, M9."""
        if self.schema_done:
            return
        self.schema_done = True
        for keyword in KEYWORDS[:ONCE]:
            if keyword not in self.seen:
                self.rules.stop("M6", "there is no '%s' line" % keyword)
        if not self.manifest.groups or not self.manifest.fields:
            self.rules.fail("M8", "%d groups and %d fields; there must be one of each"
                            % (len(self.manifest.groups), len(self.manifest.fields)))

        def fail(number, message, status="corrupt"):
            self.rules.fail("M9", "%s: %s" % (number, message), status)
        check_schema(self.manifest.groups, self.manifest.fields, fail)

    def take_class(self, tokens):
        """M10."""
        self.check_count(tokens, len(self.manifest.classes), CLASSES_MAX)
        name = percent_decode(tokens[2])
        if name is None:
            self.rules.fail("M10", self.what + "%a is not canonically percent-encoded" % tokens[2])
            name = tokens[2].encode("latin-1")
        if not is_utf8_text(name) or not 1 <= len(name) <= CLASS_NAME_BYTES_MAX:
            self.rules.fail(
                "M10", self.what + "%a is not UTF-8 without NUL of 1 to %d bytes" % (name, CLASS_NAME_BYTES_MAX)
            )
        self.manifest.classes.append(name.decode("utf-8", "backslashreplace"))

    def take_stat(self, tokens):
        """M11."""
        kind, field, index = STAT_NAMES.index(tokens[1]), to_int(tokens[2]), to_int(tokens[3])
        place = (self.block.kind, self.block.field) if self.block else (0, 0)
        due = len(self.block.items) if place == (kind, field) else 0
        if (kind, field) < place or index != due:
            self.rules.fail("M11", self.what + "statistics of field %d, item %d are out of order" % (field, index))
        there = check_stat_field(self.rules, "M11", self.what, self.manifest.fields, kind, field)
        limit = CLASSES_MAX if kind == CLASSES else self.manifest.fields[field].channels() if there else 0
        if index >= limit:
            self.rules.fail("M11", self.what + "item %d of field %d, which has %d" % (index, field, limit))
        if place != (kind, field):
            self.finish_block()
            self.block = StatBlock(kind, field, [])
            self.manifest.stats.append(self.block)
        values = tuple(to_int(v) for v in tokens[4:])
        self.block.items.append(values if kind == MOMENTS else values[0])
        if kind == CLASSES and sum(self.block.items) > M64:
            self.rules.fail("M11", self.what + "class counts add up to more than 2^64 - 1")
        if kind == MOMENTS and there:
            check_moments(self.rules, "M11", self.what, self.manifest.fields[field], values, self.manifest.records)

    def finish_block(self):
        """Behind a block of statistics: what M11 says of all of it."""
        block, self.block = self.block, None
        if block is None or block.field >= len(self.manifest.fields):
            return
        what = "stat %s %d: " % (STAT_NAMES[block.kind], block.field)
        channels = self.manifest.fields[block.field].channels()
        if block.kind == MOMENTS and len(block.items) != channels:
            self.rules.fail("M11", what + "%d channels, the field has %d" % (len(block.items), channels))
        if block.kind == CLASSES and sum(block.items) != self.manifest.records:
            self.rules.fail("M11", what + "class counts add up to %d, there are %d records"
                            % (sum(block.items), self.manifest.records))

    def take_shard(self, tokens):
        """M12, and M14 for the limit."""
        self.check_count(tokens, len(self.manifest.shards), DATASET_SHARDS_MAX)
        if not SHARD_NAME.fullmatch(tokens[2]):
            self.rules.fail("M12", self.what + "name %a is not allowed" % tokens[2])
        self.manifest.shards.append(
            ShardLine(tokens[2], to_int(tokens[4]), to_int(tokens[6]), int(tokens[8], 16), tokens[10])
        )
        self.record_sum += to_int(tokens[6])
        if self.record_sum > DATASET_RECORDS_MAX:
            self.rules.fail("M14", self.what + "more than 2^62 records")

    def finish(self):
        """M13 and M14."""
        self.finish_schema()
        self.finish_block()
        if self.shard_count != len(self.manifest.shards):
            self.rules.fail(
                "M13", "shards is %d, there are %d shard lines" % (self.shard_count, len(self.manifest.shards))
            )
        if self.manifest.records != self.record_sum:
            self.rules.fail("M14", "records is %d, the shards have %d" % (self.manifest.records, self.record_sum))
        return self.manifest


def check_duplicates(rules, number, what, names):
    seen = {}
    for i, name in enumerate(names):
        if name in seen:
            rules.fail(number, "%s %d and %d are both named %a" % (what, seen[name], i, name))
        seen.setdefault(name, i)


def read_manifest(data, skip=(), place="", verify=False):
    """Parse a manifest: M1 to M14, and M15 to M17 where `verify`, in the order of SHARD.md 3.1."""
    rules = Rules(skip, place)
    lines, digest = split_manifest(data, rules)
    reader = ManifestReader(rules, digest)
    for line in lines:
        reader.take(line)
    manifest = reader.finish()
    if verify:
        verify_manifest(data, manifest, rules)
    return manifest


def verify_manifest(data, manifest, rules):
    """M15 to M17."""
    end = END_LINE.search(data)
    if end:
        found = hashlib.sha256(data[:end.start() + 1]).hexdigest()
        if found != manifest.id:
            rules.fail("M15", "the end line says SHA-256 %s, the bytes have %s" % (manifest.id, found))
    check_duplicates(rules, "M16", "classes", manifest.classes)
    check_duplicates(rules, "M17", "shards", [s.file for s in manifest.shards])


# --------------------------------------------------------------------------------------------------
# Dataset: D1 to D7.

MANIFEST_NAME = "dataset.manifest"


def read_file(path):
    with open(path, "rb") as stream:
        return stream.read()


class Dataset:
    """A folder with a manifest. Shards are opened when they are first used."""

    def __init__(self, folder, skip=(), verify=False):
        self.folder = folder
        self.skip = frozenset(skip)
        self.rules = Rules(skip)
        self.manifest = read_manifest(read_file(os.path.join(folder, MANIFEST_NAME)), skip, "", verify)
        self.opened = {}

    def open_shard(self, number):
        """D1 to D5 around I1 to I42. Gives the shard and its bytes, or None where D1 is skipped."""
        if number in self.opened:
            return self.opened[number]
        line = self.manifest.shards[number]
        place = "shard %d (%s): " % (number, line.file)
        rules = Rules(self.skip, place)
        path = os.path.join(self.folder, *line.file.split("/"))
        if not os.path.exists(path):
            rules.fail("D1", "the file is not there", "mismatch")
            return None
        data = read_file(path)

        def check_pages_against_line(root, record_count):
            if len(data) != line.bytes:
                rules.fail("D2", "has %d bytes, the manifest says %d" % (len(data), line.bytes), "mismatch")
            if root != line.root:
                rules.fail("D3", "has root %s, the manifest says %s" % (h128_text(root), h128_text(line.root)),
                           "mismatch")
            if record_count != line.records:
                rules.fail("D4", "has %d records, the manifest says %d" % (record_count, line.records), "mismatch")

        shard = read_shard(data, self.skip, place, check_pages_against_line)
        for name, ours, theirs in (("group", shard.groups, self.manifest.groups),
                                   ("field", shard.fields, self.manifest.fields)):
            if ours != theirs:
                number_of_first = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b),
                                       min(len(ours), len(theirs)))
                rules.fail("D5", "%s %d is not as in the manifest" % (name, number_of_first), "mismatch")
        self.opened[number] = shard
        return shard

    def verify(self):
        """Every shard, then D7."""
        for number, line in enumerate(self.manifest.shards):
            shard = self.open_shard(number)
            if shard is None:
                continue
            verify_open_shard(shard)
            found = hashlib.sha256(shard.data).hexdigest()
            if found != line.sha256:
                self.rules.fail("D6", "shard %d (%s): has SHA-256 %s, the manifest says %s"
                                % (number, line.file, found, line.sha256), "mismatch")
            shard.units.clear()
        named_files = {s.file for s in self.manifest.shards}
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".shard") and name not in named_files and os.path.isfile(os.path.join(self.folder, name)):
                self.rules.fail("D7", "%a lies beside the manifest, which does not name it" % name, "mismatch")

    def record(self, index, group):
        for number, line in enumerate(self.manifest.shards):
            if index < line.records:
                return self.open_shard(number).record(index, group)
            index -= line.records
        raise IndexError("record %d past the end, there are %d" % (index, self.manifest.records))


def verify_dataset(folder, skip=()):
    dataset = Dataset(folder, skip, verify=True)
    dataset.verify()
    return dataset


# --------------------------------------------------------------------------------------------------
# Command line.

EXIT_CODES = {"corrupt": 1, "unsupported": 4, "mismatch": 5}
EXIT_USAGE, EXIT_IO = 2, 3


class UsageError(Exception):
    """What was asked for does not exist."""


def dump_schema(groups, fields):
    return {
        "groups": [{"stride": g.stride, "record_bytes": g.record_bytes, "align_log2": g.align_log2,
                    "codec": named(CODECS, g.codec), "unit_records": g.unit_records,
                    "chunk_records": g.chunk_records} for g in groups],
        "fields": [{"name": f.name, "dtype": named(DTYPES, f.dtype), "kind": named(KINDS, f.kind),
                    "layout": named(LAYOUTS, f.layout), "semantic": named(SEMANTICS, f.semantic), "group": f.group,
                    "offset": f.offset, "bytes": f.bytes, "shape": list(f.shape), "ragged_axes": f.axes(),
                    "length_field": None if f.kind == TENSOR else f.length_field} for f in fields],
    }


def dump_stats(blocks):
    return [{"kind": STAT_NAMES[b.kind], "field": b.field,
             "items": [list(i) if b.kind == MOMENTS else i for i in b.items]} for b in blocks]


def dump_shard(shard):
    """What a shard says, as plain data. Hashes in "records" are H64 of bytes without padding."""
    keys = shard.keys()
    provenance = shard.provenance()
    result = dump_schema(shard.groups, shard.fields)
    result.update({
        "record_count": shard.record_count,
        "planned_records": shard.planned_records,
        "plan_shard": shard.plan_shard,
        "plan_digest": shard.plan_digest.hex(),
        "sections": [{"type": s.kind, "critical": bool(s.flags & CRITICAL), "group": s.group, "offset": s.offset,
                      "length": s.length, "items": s.items, "hash": h128_text(s.hash)} for s in shard.sections],
        "root": h128_text(shard.root),
        "keys": None if keys is None else [k.decode("utf-8") for k in keys],
        "records": [["%016x" % h64(shard.record(i, g)) for g in range(len(shard.groups))]
                    for i in range(shard.record_count)],
        "stats": dump_stats(shard.stats()),
        "missing": [{"ordinal": m.ordinal, "reason": m.reason, "how": m.how} for m in shard.missing()],
        "provenance": None if provenance is None else provenance.decode("utf-8"),
    })
    return result


def dump_manifest(manifest):
    result = dump_schema(manifest.groups, manifest.fields)
    result.update({
        "record_count": manifest.records, "plan": manifest.plan, "order": manifest.order, "id": manifest.id,
        "classes": manifest.classes, "stats": dump_stats(manifest.stats),
        "shards": [{"file": s.file, "bytes": s.bytes, "records": s.records, "root": h128_text(s.root),
                    "sha256": s.sha256} for s in manifest.shards],
    })
    return result


def dump_path(path):
    """A verified shard, manifest or dataset as plain data. A dataset's shards are in "contents"."""
    if os.path.isdir(path):
        dataset = verify_dataset(path)
        result = dump_manifest(dataset.manifest)
        result["contents"] = [dump_shard(dataset.open_shard(i)) for i in range(len(dataset.manifest.shards))]
        return result
    if path.endswith(".manifest"):
        return dump_manifest(read_manifest(read_file(path), verify=True))
    return dump_shard(verify_shard(read_file(path)))


def to_json(value):
    return json.dumps(value, sort_keys=True, indent=1, ensure_ascii=True) + "\n"


def verify_path(path, skip=()):
    """A folder is a dataset, *.manifest the manifest alone, anything else a shard."""
    if os.path.isdir(path):
        verify_dataset(path, skip)
    elif path.endswith(".manifest"):
        read_manifest(read_file(path), skip, verify=True)
    else:
        verify_shard(read_file(path), skip)


def print_schema(groups, fields):
    for i, g in enumerate(groups):
        print(group_line(i, g))
    for i, f in enumerate(fields):
        print(field_line(i, f))


def print_info(path):
    if os.path.isdir(path) or path.endswith(".manifest"):
        name = os.path.join(path, MANIFEST_NAME) if os.path.isdir(path) else path
        manifest = read_manifest(read_file(name))
        print("dataset of %d records in %d shards, id %s" % (manifest.records, len(manifest.shards), manifest.id))
        print_schema(manifest.groups, manifest.fields)
        return
    shard = read_shard(read_file(path))
    print("shard of %d records (%d planned), %d bytes, root %s"
          % (shard.record_count, shard.planned_records, len(shard.data), h128_text(shard.root)))
    print_schema(shard.groups, shard.fields)
    for s in shard.sections:
        print("section %s offset %d length %d items %d" % (s.name(), s.offset, s.length, s.items))


def selftest_inputs():
    """Inputs of every size at which the hashes change their ways, and some past them."""
    pattern = bytes((i * i * 31 + i * 7 + (i >> 8)) & 0xFF for i in range(9000))
    for size in list(range(0, 700)) + list(range(1000, 1100)) + [2047, 2048, 2049, 4080, 4096, 8191, 8192, 9000]:
        yield pattern[:size]


SELFTEST_DIGEST = "cb575c4933c2a7a63583d20749ff831ff5d890aaa49a97f168c3d917f23ef7fb"


def selftest():
    """Known vectors, and the pure functions against the accelerators where those are installed."""
    digest = hashlib.sha256()
    for data in selftest_inputs():
        a, b = pure_h64(data), pure_h128(data)
        digest.update(struct.pack("<Q", a) + pack_h128(b))
        if fast_xxhash and (a, b) != (fast_xxhash.xxh3_64_intdigest(data), fast_xxhash.xxh3_128_intdigest(data)):
            raise AssertionError("XXH3 of %d bytes is not what module xxhash says" % len(data))
    checks = [
        (pure_h64(b"") == 0x2D06800538D394C2, "XXH3-64 of nothing"),
        (pure_h128(b"") == 0x99AA06D3014798D86001C324468D497F, "XXH3-128 of nothing"),
        (digest.hexdigest() == SELFTEST_DIGEST, "XXH3 of all sizes: %s" % digest.hexdigest()),
        (lz4_decode(bytes.fromhex("1a61010050") + b"bcdef", 20) == b"a" * 15 + b"bcdef", "LZ4 with an overlap"),
    ]
    for good, name in checks:
        if not good:
            raise AssertionError("wrong: " + name)
    for data in list(selftest_inputs())[::29] + [bytes(n) for n in (0, 1, 12, 13, 14, 300, 70000)]:
        block = lz4_encode(data)
        if lz4_decode(block, len(data)) != data:
            raise AssertionError("LZ4 does not give %d bytes back" % len(data))
        if fast_lz4 and data and fast_lz4.decompress(block, uncompressed_size=len(data)) != data:
            raise AssertionError("module lz4 does not read our block of %d bytes" % len(data))
        if fast_lz4 and lz4_decode(fast_lz4.compress(data, store_size=False), len(data)) != data:
            raise AssertionError("we do not read module lz4's block of %d bytes" % len(data))
    print("selftest ok (xxhash %s, lz4 %s)" % ("compared" if fast_xxhash else "not installed",
                                               "compared" if fast_lz4 else "not installed"))


def get_record(folder, index, group):
    dataset = Dataset(folder)
    if not 0 <= index < dataset.manifest.records or not 0 <= group < len(dataset.manifest.groups):
        raise UsageError("record %d, group %d: there are %d records and %d groups"
                         % (index, group, dataset.manifest.records, len(dataset.manifest.groups)))
    return dataset.record(index, group)


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        prog="shardfmt.py",
        description="Reads and checks shards, manifests and datasets.",
        epilog="Exit status: 0 good, 1 corrupt, 2 usage, 3 I/O, 4 unsupported, 5 mismatch.",
    )
    parser.add_argument("--selftest", action="store_true", help="check hashes and LZ4 against known values")
    parser.add_argument("--pure", action="store_true", help="hash without the module xxhash")
    commands = parser.add_subparsers(dest="command")
    for name, text in (("info", "what a shard, manifest or dataset states"), ("verify", "check all rules"),
                       ("dump", "verify, then print everything as JSON")):
        command = commands.add_parser(name, help=text)
        command.add_argument("path")
        if name == "verify":
            command.add_argument("--skip", action="append", default=[], metavar="NUMBER",
                                 help="do not make this check (I13, M7, D2, ...)")
    command = commands.add_parser("get", help="the bytes of a record of a dataset")
    command.add_argument("path")
    command.add_argument("index", type=int)
    command.add_argument("group", type=int)
    options = parser.parse_args(arguments)
    if not options.selftest and not options.command:
        parser.error("name a command")
    return options


def main(arguments=None):
    global fast_xxhash
    options = parse_arguments(arguments)
    if options.pure:
        fast_xxhash = None
    try:
        if options.selftest:
            selftest()
        elif options.command == "info":
            print_info(options.path)
        elif options.command == "verify":
            verify_path(options.path, [re.sub(r"^([A-Z])0+", r"\1", number) for number in options.skip])
            print("ok")
        elif options.command == "dump":
            sys.stdout.write(to_json(dump_path(options.path)))
        else:
            sys.stdout.buffer.write(get_record(options.path, options.index, options.group))
    except FormatError as error:
        print(error, file=sys.stdout if options.command == "verify" else sys.stderr)
        return EXIT_CODES[error.status]
    except UsageError as error:
        print("shardfmt: %s" % error, file=sys.stderr)
        return EXIT_USAGE
    except OSError as error:
        print("shardfmt: %s" % error, file=sys.stderr)
        return EXIT_IO
    return 0


if __name__ == "__main__":
    sys.exit(main())
