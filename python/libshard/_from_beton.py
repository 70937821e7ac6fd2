# SPDX-License-Identifier: Apache-2.0
"""A .beton of FFCV, version 2.

The header is u16 version, u16 fields, u32 page size, u64 samples, u64 place of the allocation
table.  Each field is described by u8 type, 16 bytes of name and 1,024 of arguments.  A row of
numbers for each sample follows.  The table says how long each piece of memory is: u64 sample, u64
place, u64 bytes.  The format has no magic number and no hash, so every number is compared.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from .convert import Cursor, Part, Record, Source

_VERSION, _FIELDS_MAX = 2, 64
_FLOAT, _INT, _RGB, _BYTES, _ARRAY, _JSON, _TENSOR = range(7)
# What a row has of each type: of an image its mode, width, height and place.  Single numbers lie on
# multiples of 8, and so does the next row if there is any.
_ROW = {_FLOAT: "d", _INT: "q", _RGB: "BHHQ", _BYTES: "QQ", _ARRAY: "Q", _JSON: "QQ", _TENSOR: "Q"}
_JPG = 0


def _fields(source: Source, path: str, head: Cursor, count: int) -> list[tuple[str, int]]:
    fields = []
    for i in range(count):
        kind, name, _ = head.numbers("B16s1024s", f"field {i}")
        if kind not in _ROW:
            source.fail(path, f"field {i} is of type {kind}, which is not one of FFCV's own (0 to {len(_ROW) - 1})")
        try:
            fields.append((name.rstrip(b"\0").decode(), kind))
        except UnicodeDecodeError:
            source.fail(path, f"field {i} has the name {name!r}: the file is damaged, or is not FFCV's")
    return fields


def _row(fields: list[tuple[str, int]]) -> str:
    row, aligned = "", False
    for _, kind in fields:
        if len(_ROW[kind]) == 1:
            row, aligned = row + "x" * (-struct.calcsize("<" + row) % 8), True
        row += _ROW[kind]
    return row + ("x" * (-struct.calcsize("<" + row) % 8) if aligned else "")


class _Sizes:
    """How many bytes lie at each place: the allocation table, by place."""

    def __init__(self, source: Source, path: str, data: memoryview, at: int) -> None:
        if at > len(data) or (len(data) - at) % 24:
            source.fail(path, f"its allocation table is at byte {at}, and its entries of 24 bytes do not end with the file, "
                              f"which has {len(data)} bytes: it is cut, damaged, or not FFCV's")  # fmt: skip
        self.table = np.frombuffer(data[at:], "<u8").reshape(-1, 3)
        self.order = np.argsort(self.table[:, 1], kind="stable")
        self.places = self.table[:, 1][self.order]

    def at(self, place: int) -> int | None:
        i = int(np.searchsorted(self.places, np.uint64(place)))  # of one type, or all would be copied each time
        return int(self.table[self.order[i], 2]) if i < len(self.places) and self.places[i] == place else None


def _file(source: Source, path: str) -> Iterator[Record]:
    with source.map(path) as data:
        head = Cursor(data, 0, len(data), lambda text: source.fail(path, text))
        version, count, _, samples, table_at = head.numbers("HHIQQ", "the header")
        if version != _VERSION or not 0 < count <= _FIELDS_MAX:
            source.fail(path, f"has version {version} and {count} fields; must be version {_VERSION} and 1 to {_FIELDS_MAX} "
                              "fields: another release of FFCV wrote it, or it is not FFCV's")  # fmt: skip
        fields = _fields(source, path, head, count)
        row = _row(fields)
        sizes = _Sizes(source, path, data, table_at)
        for name, kind in fields:
            if kind in (_ARRAY, _TENSOR) and name not in source.without:
                source.note(f"field {name!r} is left out: it is an array")
        raw = 0
        for i in range(samples):

            def fail(text: str, i: int = i) -> None:
                source.fail(path, f"sample {i}: {text}")

            head.fail = fail
            numbers = iter(head.numbers(row, "its row"))
            values: dict[str, Any] = {}
            for name, kind in fields:
                of = [next(numbers) for _ in _ROW[kind]]
                if name in source.without or kind in (_ARRAY, _TENSOR):
                    continue
                if kind in (_FLOAT, _INT):
                    values[name] = of[0]
                    continue
                place = of[3] if kind == _RGB else of[0]
                size = sizes.at(place)
                if size is None or place > len(data) or size > len(data) - place:
                    fail(f"field {name!r} is at byte {place}, where the allocation table has nothing within the file")
                if kind == _RGB and of[0] != _JPG:
                    raw += 1
                    continue
                if kind != _RGB:
                    if of[1] > size:
                        fail(f"field {name!r} has {of[1]} bytes, and the allocation table says {size}")
                    size = of[1]
                values[name] = Part(place, data[place : place + size])
            if raw:
                fail("its image is raw pixels, not JPEG, so it is not a file that can be read in place; give the dataset that "
                     "the .beton was made of to shardpack or libshard.pack(), or write it with write_mode='jpg'")  # fmt: skip
            yield Record(path, f"{path}/{i}", values)


def records(source: Source) -> Iterator[Record]:
    for name in source.named(r"\.beton$", "train.beton"):
        yield from _file(source, name)
