# SPDX-License-Identifier: Apache-2.0
"""RecordIO of MXNet, as im2rec and InsightFace write it.

A frame is a magic number, u32 of 3 bits of kind and 29 of length, the data, and zeros to a
multiple of 4.  The data begin with u32 flag, f32 label, u64 id, u64 id2; if the flag is not 0, it
is the number of f32 labels that follow.  The rest is the image.  There is no hash to compare.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NoReturn

from ._convert_files import Batch, Cursor, File, Source, Values
from ._convert_samples import gather

_MAGIC = 0xCED7230A
_WHOLE = 0  # kinds of frames; 1, 2 and 3 are the first, middle and last part of a record
_LABELS_MAX = 1 << 16
_HEAD = struct.Struct("<IIIfQQ")  # of a frame, and of its data


def _number(value: float) -> float | int:
    return int(value) if value.is_integer() else value


def _values(source: Source, body: Cursor) -> Values | None:
    """Of a record in one frame; None if it has no image."""
    values: dict[str, Any] = {}
    flag, label, values["id"], values["id2"] = body.numbers("IfQQ", "its own head")
    if flag > _LABELS_MAX:
        body.fail(f"says that it has {flag} labels; the limit is {_LABELS_MAX}")
    labels = body.numbers(f"{flag}f", "its labels") if flag else (label,)
    values["labels" if len(labels) > 1 else "label"] = [_number(x) for x in labels] if len(labels) > 1 else _number(labels[0])
    for i, x in enumerate(labels[:16] if len(labels) > 1 else ()):
        values[f"labels.{i}"] = _number(x)
    if body.at == body.end:  # InsightFace: how many identities there are, and where each begins
        source.note("records without an image are left out")
        return None
    values["image"] = body.take(body.end - body.at, "the image")
    for name in source.without:
        values.pop(name, None)
    return values


def _records(source: Source, file: File) -> Iterator[tuple[str, Values]]:
    path, size, plain = file.path, file.size, not source.without
    at = number = 0
    parts = False  # of a record, which has not ended yet
    while at < size:
        if plain and not parts and size - at > _HEAD.size:  # most records: in one frame, with one label
            begin = file.load(at, _HEAD.size)
            magic, length, flag, label, own, own2 = _HEAD.unpack_from(file.block, begin)
            end = at + 8 + (length + 3 & -4)
            if magic == _MAGIC and 24 < length < 1 << 29 and not flag and end <= size:
                yield f"{path}/{number}", {"id": own, "id2": own2, "label": _number(label), "image": (at + 32, length - 24)}
                at, number = end, number + 1
                continue

        def fail(text: str, number: int = number, at: int = at) -> NoReturn:
            source.fail(path, f"record {number} at byte {at}: {text}")

        frame = Cursor(file, at, size, fail)
        magic, word = frame.numbers("II", "the head")
        kind, length = word >> 29, word & 0x1FFFFFFF
        if magic != _MAGIC:
            fail(f"begins with {magic:#010x}, not with {_MAGIC:#010x}: the file is damaged, or is not RecordIO")
        if kind > 3:
            fail(f"is of kind {kind}, and kinds are 0 to 3")
        if parts != (kind > 1):
            fail(f"is of kind {kind}, " + ("within a record in several frames" if parts else "outside of such a record")
                 + ": the file is damaged")  # fmt: skip
        parts = kind in (1, 2)
        begin, _ = frame.take(length, "the record")
        frame.take(-length % 4, "its end")
        if kind == _WHOLE:
            values = _values(source, Cursor(file, begin, begin + length, fail))
            if values is not None:
                yield f"{path}/{number}", values
        elif kind == 1:  # its bytes do not lie together, and the magic number is missing between them
            source.note("records in several frames, which cannot be read in place")
            yield f"{path}/{number}", {}
        at, number = frame.at, number + (kind in (_WHOLE, 1))
    if parts:
        source.fail(path, "ends within a record in several frames: the file is cut")


def batches(source: Source) -> Iterator[Batch]:
    for name in source.named(r"\.rec$", "train.rec"):
        with File(source, name) as file:
            yield from gather(file, _records(source, file))
