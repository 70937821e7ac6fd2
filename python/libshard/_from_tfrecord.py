# SPDX-License-Identifier: Apache-2.0
"""TFRecord: records of tf.train.Example, each between two CRCs.

A record is u64 length, u32 CRC of it, the data, u32 CRC of them.  The CRCs are CRC-32C, masked.
The data are a protocol buffer: Example has features, a map of name to a list of bytes, floats or
int64s.  Every CRC is compared.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from . import _core
from .convert import Part, Record, Source

_HEAD = struct.Struct("<QI")


def _crc(data: memoryview) -> int:
    crc = _core.crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


class _Wrong(Exception):
    """Bytes that are not a protocol buffer."""


def _varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
    raise _Wrong


def _fields(data: memoryview, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
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


def _list(data: memoryview, kind: int, at: int, end: int) -> list[Any]:
    """The values of BytesList, FloatList or Int64List; numbers may be packed or not."""
    out: list[Any] = []
    for number, wire, first, last in _fields(data, at, end):
        if number != 1:
            raise _Wrong
        if kind == 1 and wire == 2:
            out.append((first, last))
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


def _example(data: memoryview, at: int, end: int) -> Iterator[tuple[str, int, list[Any]]]:
    for number, wire, first, last in _fields(data, at, end):
        if number == 2 and wire == 2:
            raise ValueError("is a SequenceExample, whose lists of steps are not one image; read it with TensorFlow")
        if number != 1 or wire != 2:
            raise _Wrong
        for entry, wire, start, stop in _fields(data, first, last):
            if entry != 1 or wire != 2:
                raise _Wrong
            name, value = "", (0, 0)
            for n, wire, a, b in _fields(data, start, stop):
                if n not in (1, 2) or wire != 2:
                    raise _Wrong
                if n == 1:
                    name = bytes(data[a:b]).decode()
                else:
                    value = a, b
            for kind, wire, a, b in _fields(data, *value):
                if kind not in (1, 2, 3) or wire != 2:
                    raise _Wrong
                yield name, kind, _list(data, kind, a, b)


def _values(source: Source, path: str, data: memoryview, at: int, end: int) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, kind, items in _example(data, at, end):
        if name in source.without:
            continue
        if kind == 1:
            items = [Part(a, data[a:b]) for a, b in items]
        values[name] = items[0] if len(items) == 1 else items or None
    return values


def _file(source: Source, path: str) -> Iterator[Record]:
    with source.map(path) as data:
        at = number = 0
        if data[:2] == b"\x1f\x8b":
            source.fail(path, "is compressed with gzip, so nothing in it can be read in place; unpack it first: gunzip")
        while at < len(data):
            where = f"record {number} at byte {at}"
            if len(data) - at < 16:
                source.fail(path, f"{where}: the file is cut short: {len(data) - at} bytes, and a record has at least 16")
            length, crc = _HEAD.unpack_from(data, at)
            if _crc(data[at : at + 8]) != crc:
                source.fail(path, f"{where}: the CRC of its length is wrong: the file is damaged, compressed or not TFRecord")
            if length > len(data) - at - 16:
                source.fail(path, f"{where}: has {length} bytes, and the file is cut short after {len(data) - at - 16} of them")
            begin, end = at + 12, at + 12 + length
            if _crc(data[begin:end]) != int.from_bytes(data[end : end + 4], "little"):
                source.fail(path, f"{where}: the CRC of its {length} bytes is wrong: the file is damaged")
            try:
                values = _values(source, path, data, begin, end)
            except (_Wrong, UnicodeDecodeError):
                source.fail(path, f"{where}: is not a tf.train.Example")
            except ValueError as e:
                source.fail(path, f"{where}: {e}")
            yield Record(path, f"{path}/{number}", values)
            at, number = end + 4, number + 1


def records(source: Source) -> Iterator[Record]:
    for name in source.named(r"\.tfrec|-\d+-of-\d+$", "a.tfrecord or train-00000-of-01024"):
        yield from _file(source, name)
