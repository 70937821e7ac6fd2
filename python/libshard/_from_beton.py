# SPDX-License-Identifier: Apache-2.0
"""A .beton of FFCV, version 2.

The header is u16 version, u16 fields, u32 page size, u64 samples, u64 place of the allocation
table.  Each field is described by u8 type, 16 bytes of name and 1,024 of arguments.  A row of
numbers for each sample follows.  The table says how long each piece of memory is: u64 sample, u64
place, u64 bytes.  The format has no magic number and no hash, so every number is compared.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ._convert_files import Batch, Cursor, File, Source
from ._convert_samples import as_ppm

_VERSION, _FIELDS_MAX = 2, 64
_FLOAT, _INT, _RGB, _BYTES, _ARRAY, _JSON, _TENSOR = range(7)
# What a row has of each type: of an image its mode, width, height and place.  Single numbers lie on
# multiples of 8, and so does the next row if there is any.
_DTYPES = {"d": "f8", "q": "i8", "B": "u1", "H": "u2", "Q": "u8"}
_ROW = {_FLOAT: "d", _INT: "q", _RGB: "BHHQ", _BYTES: "QQ", _ARRAY: "Q", _JSON: "QQ", _TENSOR: "Q"}
_JPG, _RAW = 0, 1
_BLOCK, _ROWS = 1 << 18, 4096  # samples whose places are looked up together, and that come together


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


def _row(fields: list[tuple[str, int]]) -> np.dtype[Any]:
    """What a row has, as members a0, a1, ... of field 0, b0 of field 1 and so on: here (field, member) by number."""
    forms: list[str] = []
    places: list[int] = []
    names: list[str] = []
    at, aligned = 0, False
    for i, (_, kind) in enumerate(fields):
        if len(_ROW[kind]) == 1:
            at, aligned = at + -at % 8, True
        for k, form in enumerate(_ROW[kind]):
            names.append(f"{i}.{k}")
            forms.append("<" + _DTYPES[form])
            places.append(at)
            at += struct.calcsize("<" + form)
    return np.dtype({"names": names, "formats": forms, "offsets": places, "itemsize": at + (-at % 8 if aligned else 0)})


class _Sizes:
    """How many bytes lie at each place that some samples have: a part of the allocation table, which has any order."""

    def __init__(self, file: File, at: int, first: int, last: int, samples: int) -> None:
        found = [np.empty((0, 3), "<u8")]
        for begin in range(at, file.size, 24 << 15):
            table = np.frombuffer(file.read(begin, min(24 << 15, file.size - begin)), "<u8").reshape(-1, 3)
            beyond = table[table[:, 0] >= samples, 0]
            if beyond.size:
                file.source.fail(file.path, f"its allocation table has sample {beyond[0]}, and its header says that it has {samples} "
                                            "samples: the file is damaged, or is not FFCV's")  # fmt: skip
            some = (table[:, 0] >= first) & (table[:, 0] < last)
            if some.any():
                found.append(table[some])
        table = np.concatenate(found)
        table = table[np.argsort(table[:, 1], kind="stable")]
        self.samples, self.places, self.sizes = (np.ascontiguousarray(column) for column in table.T)

    def at(self, places: np.ndarray[Any, Any], first: int) -> np.ndarray[Any, Any]:
        """Of the places of samples from ``first`` on; 2^64 - 1 where a sample has none there."""
        none = np.uint64((1 << 64) - 1)
        if not len(self.places):
            return np.full(len(places), none)
        i = np.minimum(np.searchsorted(self.places, places), len(self.places) - 1)
        numbers = np.arange(first, first + len(places), dtype="<u8")
        return np.where((self.places[i] == places) & (self.samples[i] == numbers), self.sizes[i], none)


def _file(source: Source, file: File) -> Iterator[Batch]:
    path = file.path
    head = Cursor(file, 0, file.size, lambda text: source.fail(path, text))
    version, count, _, samples, table_at = head.numbers("HHIQQ", "the header")
    if version != _VERSION or not 0 < count <= _FIELDS_MAX:
        source.fail(path, f"has version {version} and {count} fields; must be version {_VERSION} and 1 to {_FIELDS_MAX} "
                          "fields: another release of FFCV wrote it, or it is not FFCV's")  # fmt: skip
    fields = _fields(source, path, head, count)
    row = _row(fields)
    if table_at > file.size or (file.size - table_at) % 24:
        source.fail(path, f"its allocation table is at byte {table_at}, and its entries of 24 bytes do not end with the file, "
                          f"which has {file.size} bytes: it is cut, damaged, or not FFCV's")  # fmt: skip
    for name, kind in fields:
        if kind in (_ARRAY, _TENSOR) and name not in source.without:
            source.note(f"field {name!r} is left out: it is an array")
    head.take(samples * row.itemsize, f"the rows of {samples} samples,")
    rows_at = head.at - samples * row.itemsize
    for block in range(0, samples, _BLOCK):
        sizes = _Sizes(file, table_at, block, block + _BLOCK, samples)
        for first in range(block, min(block + _BLOCK, samples), _ROWS):
            n = min(_ROWS, samples - first)
            rows = np.frombuffer(file.read(rows_at + first * row.itemsize, n * row.itemsize), row)
            batch = Batch(file, [f"{path}/{i}" for i in range(first, first + n)], {})
            for i, (name, kind) in enumerate(fields):
                if name not in source.without and kind not in (_ARRAY, _TENSOR):
                    batch.columns[name] = _column(batch, first, name, kind, i, rows, sizes)
            yield batch


def _column(batch: Batch, first: int, name: str, kind: int, number: int, rows: np.ndarray[Any, Any], sizes: _Sizes
            ) -> list[Any]:
    """The values of a field.  Images may be pixels, also only some of them."""
    file = batch.file

    def fail(wrong: np.ndarray[Any, Any], text: Callable[[int], str]) -> None:
        if wrong.any():
            i = int(wrong.argmax())
            file.source.fail(file.path, f"sample {first + i}: {text(i)}")

    if kind in (_FLOAT, _INT):
        return list(rows[f"{number}.0"].tolist())
    places = rows[f"{number}.{3 if kind == _RGB else 0}"]
    held = sizes.at(places, first)
    fail((places > file.size) | (held > file.size - np.minimum(places, file.size)),
         lambda i: f"field {name!r} is at byte {places[i]}, where the allocation table has nothing within the file")  # fmt: skip
    if kind != _RGB:
        said = rows[f"{number}.1"]
        fail(said > held, lambda i: f"field {name!r} has {said[i]} bytes, and the allocation table says {held[i]}")
        held = said
    parts: list[tuple[int, int]] = list(zip(places.tolist(), held.tolist(), strict=True))
    if kind == _JSON:
        values = []
        for i, part in enumerate(parts):
            try:
                values.append(json.loads(file.peek(part).removesuffix(b"\0")))
            except (ValueError, RecursionError) as e:
                file.source.fail(file.path, f"sample {first + i}: field {name!r} is not JSON: {e}")
        return values
    if kind == _RGB:
        modes, widths, heights = (rows[f"{number}.{k}"] for k in range(3))
        fail(modes > _RAW, lambda i: f"field {name!r} has the mode {modes[i]}, which is not {_JPG}, JPEG, or {_RAW}, raw pixels")
        if modes.any():
            pixels = 3 * widths.astype(np.uint64) * heights
            fail((modes == _RAW) & (held != pixels), lambda i: f"field {name!r} has {held[i]} bytes, and {heights[i]} x {widths[i]} "
                 f"x 3 pixels have {pixels[i]}")  # fmt: skip
            batch.made[name] = lambda i: (file.peek(parts[i]) if modes[i] == _JPG
                                          else as_ppm(int(heights[i]), int(widths[i]), 3, file.peek(parts[i])))  # fmt: skip
    return parts


def batches(source: Source) -> Iterator[Batch]:
    for name in source.named(r"\.beton$", "train.beton"):
        with File(source, name) as file:
            yield from _file(source, file)
