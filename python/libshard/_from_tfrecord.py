# SPDX-License-Identifier: Apache-2.0
"""TFRecord: records of tf.train.Example, each between two CRCs.

A record is u64 length, u32 CRC of it, the data, u32 CRC of them.  The CRCs are CRC-32C, masked.
The data are a protocol buffer: Example has features, a map of name to a list of bytes, floats or
int64s.  Every CRC is compared.  tfrecords() in C reads the records of a block as long as nothing is
wrong; the code here reads the one at which it stops, and those between two blocks.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NoReturn

from . import _core
from ._convert_files import Batch, File, Source, Values
from ._convert_samples import gather

_HEAD = struct.Struct("<QI")


def _masked(crc: int) -> int:
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


class _Wrong(Exception):
    """Bytes that are not a protocol buffer."""


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
    raise _Wrong


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Number and wire type, and where the value begins and ends; of a varint the value itself."""
    while at < end:
        tag, at = _varint(data, at, end)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at, end)
            yield number, wire, value, 0
            continue
        if wire == 2:
            size, at = _varint(data, at, end)
        else:
            size = {1: 8, 5: 4}.get(wire, -1)
        if size < 0 or size > end - at:
            raise _Wrong
        yield number, wire, at, at + size
        at += size


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _list(data: bytes, kind: int, at: int, end: int, base: int) -> list[Any]:
    """The values of BytesList, FloatList or Int64List; numbers may be packed or not."""
    out: list[Any] = []
    for number, wire, first, last in _fields(data, at, end):
        if number != 1:
            raise _Wrong
        if kind == 1 and wire == 2:
            out.append((first + base, last - first))
        elif kind == 2 and (wire == 5 or (wire == 2 and not (last - first) % 4)):
            out += struct.unpack(f"<{(last - first) // 4}f", data[first:last])
        elif kind == 3 and wire == 0:
            out.append(_signed(first))
        elif kind == 3 and wire == 2:
            while first < last:
                value, first = _varint(data, first, last)
                out.append(_signed(value))
        else:
            raise _Wrong
    return out


def _values(source: Source, data: bytes, at: int, end: int, base: int) -> Values:
    """Of a tf.train.Example.  ``base``: where in the file the data begin."""
    values: Values = {}
    for number, wire, first, last in _fields(data, at, end):
        if number == 2 and wire == 2:
            raise ValueError("is a SequenceExample, whose lists of steps are not one image; read it with TensorFlow")
        if number != 1 or wire != 2:
            raise _Wrong
        for number, wire, start, stop in _fields(data, first, last):
            if number != 1 or wire != 2:
                raise _Wrong
            name, value = "", (0, 0)
            for n, wire, a, b in _fields(data, start, stop):
                if n not in (1, 2) or wire != 2:
                    raise _Wrong
                if n == 1:
                    name = data[a:b].decode()
                else:
                    value = a, b
            if name in source.without:
                continue
            for kind, wire, a, b in _fields(data, *value):
                if kind not in (1, 2, 3) or wire != 2:
                    raise _Wrong
                items = _list(data, kind, a, b, base)
                values[name] = items[0] if len(items) == 1 else items or None
    return values


def _records(source: Source, file: File) -> Iterator[tuple[str, Values]]:
    path, size, crc32c = file.path, file.size, _core.crc32c
    at = number = 0

    def fail(text: str) -> NoReturn:
        source.fail(path, f"record {number} at byte {at}: {text}")

    if file.peek((0, min(2, size))) == b"\x1f\x8b":
        source.fail(path, "is compressed with gzip, so nothing in it can be read in place; unpack it first: gunzip")
    while at < size:
        if size - at < 16:
            fail(f"the file is cut short: {size - at} bytes, and a record has at least 16")
        begin = file.load(at, 12)
        whole, after = _core.tfrecords(file.block, begin, file.base, source.without)
        for values in whole:
            yield f"{path}/{number}", values
            number += 1
        if whole:
            at = file.base + after
            continue
        length, crc = _HEAD.unpack_from(file.block, begin)
        if _masked(crc32c(file.block, begin, begin + 8)) != crc:
            fail("the CRC of its length is wrong: the file is damaged, compressed or not TFRecord")
        if length > size - at - 16:
            fail(f"has {length} bytes, and the file is cut short after {size - at - 16} of them")
        begin = file.load(at, length + 16) + 12
        data, end = file.block, begin + length
        if _masked(crc32c(data, begin, end)) != int.from_bytes(data[end : end + 4], "little"):
            fail(f"the CRC of its {length} bytes is wrong: the file is damaged")
        try:
            values = _values(source, data, begin, end, at + 12 - begin)
        except (_Wrong, UnicodeDecodeError):
            fail("is not a tf.train.Example")
        except ValueError as e:
            fail(str(e))
        yield f"{path}/{number}", values
        at, number = at + length + 16, number + 1


def batches(source: Source) -> Iterator[Batch]:
    for name in source.named(r"\.tfrec|-\d+-of-\d+$", "a.tfrecord or train-00000-of-01024"):
        with File(source, name) as file:
            if not file.size:
                source.note("files have no bytes, and so no records")
            yield from gather(file, _records(source, file))
