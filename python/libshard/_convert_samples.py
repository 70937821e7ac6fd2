# SPDX-License-Identifier: Apache-2.0
"""Samples of other loaders' datasets, by column: of files that are read one by one, and of shards of MDS and LitData."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import numpy as np

from ._convert_files import AHEAD_MAX, Batch, Cursor, File, Part, Values

_ROWS, _GROUP_BYTES = 4096, 4 << 20  # samples that are looked at together: at most, and about how many bytes of them


def as_ppm(height: int, width: int, channels: int, pixels: bytes | memoryview) -> bytes:
    """Pixels of 8 bits as a file of an image."""
    if channels not in (1, 3) or not height or not width or len(pixels) != height * width * channels:
        raise ValueError(f"{len(pixels)} bytes are not an image of {height} x {width} x {channels}, with 1 or 3 channels")
    return b"P%d\n%d %d\n255\n" % (6 if channels == 3 else 5, width, height) + pixels


def pil_as_ppm(data: bytes) -> bytes:
    """What MDS and LitData store of an image of Pillow: u32 width, u32 height, u32 bytes of the mode, mode, pixels."""
    if len(data) < 12:
        raise ValueError(f"{len(data)} bytes are not an image of Pillow")
    width, height, n = struct.unpack_from("<III", data)
    mode = data[12 : 12 + min(n, 16)]
    if mode not in (b"L", b"RGB"):
        raise ValueError(f"an image of Pillow of mode {mode.decode(errors='replace')!r}; only 'L' and 'RGB' have all that "
                         "their pixels need in the file")  # fmt: skip
    return as_ppm(height, width, len(mode), data[12 + n :])


def array_as_ppm(shape: Sequence[int], data: bytes | memoryview) -> bytes:
    """An array of u8: [H, W], [H, W, 1 or 3], or as PyTorch has it [1 or 3, H, W]."""
    if len(shape) == 3 and shape[0] in (1, 3) and shape[2] in (1, 3):
        raise ValueError(f"an array {list(shape)} may have its channels first or last")
    if math.prod(shape) != len(data):
        raise ValueError(f"an array {list(shape)} of {len(data)} bytes")
    if len(shape) == 3 and shape[0] in (1, 3):
        pixels = np.frombuffer(data, np.uint8).reshape(shape).transpose(1, 2, 0)
        return as_ppm(pixels.shape[0], pixels.shape[1], pixels.shape[2], pixels.tobytes())
    if len(shape) not in (2, 3):
        raise ValueError(f"an array {list(shape)} is not an image")
    return as_ppm(shape[0], shape[1], shape[2] if len(shape) == 3 else 1, data)


def gather(file: File, samples: Iterator[tuple[str, Values]]) -> Iterator[Batch]:
    """Batches of samples that an indexer finds one by one: a key, and values."""
    batch, count, begin = Batch(file, [], {}), 0, 0
    for key, values in samples:
        columns = batch.columns
        for name, value in values.items():
            column = columns.get(name)
            if column is None:
                column = columns[name] = [None] * count
            column.append(value)
        batch.keys.append(key)
        count += 1
        if len(values) != len(columns):
            for column in columns.values():
                column += [None] * (count - len(column))
        if count == _ROWS or not 0 <= file.base - begin <= AHEAD_MAX // 2:  # so that texts lie in the last two blocks
            yield batch
            batch, count, begin = Batch(file, [], {}), 0, file.base
    if count:
        yield batch


@dataclass
class Column:
    """Of each sample of a shard."""

    name: str
    size: int | None  #: None: each sample begins with a u32 for it
    #: How its bytes are read: as a Part, as a number, or by a function.  None means that the column is left out.
    form: Literal["part"] | np.dtype[Any] | Callable[[memoryview], Any] | None
    made: Callable[[bytes], bytes] | None = None  #: of a part that is pixels: what makes a file of an image of it


def read_text(data: memoryview) -> str:
    return str(data, "utf-8")


def shard(file: File, said: Any, columns: list[Column], what: str) -> Iterator[Batch]:
    """The samples of a shard.  ``said`` is their number in its index, and ``what`` is the format's word for a column."""
    source, path = file.source, file.path
    head = Cursor(file, 0, file.size, lambda text: source.fail(path, text))
    (count,) = head.numbers("I", "the number of samples")
    if count != said:
        source.fail(path, f"has {count} samples, and index.json says {said}")
    head.take(4 * (count + 1), "the table of samples")
    first = 0
    while first < count:
        n = min(_ROWS, count - first)
        offsets = np.frombuffer(file.read(4 + 4 * first, 4 * (n + 1)), "<u4").astype(np.int64)
        wrong = (offsets[:-1] < head.at) | (offsets[1:] < offsets[:-1]) | (offsets[1:] > file.size)
        if wrong.any():
            i = int(wrong.argmax())
            source.fail(path, f"sample {first + i}: lies at bytes {offsets[i]} to {offsets[i + 1]}, not within the {file.size} "
                              "bytes of the file behind its table")  # fmt: skip
        n = max(1, int(np.searchsorted(offsets[1:], offsets[0] + _GROUP_BYTES, "right")))
        yield _samples(file, first, offsets[: n + 1], columns, what)
        first += n


def _samples(file: File, first: int, offsets: np.ndarray[Any, Any], columns: list[Column], what: str) -> Batch:
    """Some of them at once.  Of the first one that is wrong, _explain() says what it is."""
    view = file.view(int(offsets[0]), int(offsets[-1] - offsets[0]))
    data, starts = np.frombuffer(view, np.uint8), offsets - offsets[0]
    at, varying = starts[:-1], sum(column.size is None for column in columns)
    wrong = starts[1:] - at < 4 * varying
    if wrong.any():
        _explain(file, first + int(wrong.argmax()), offsets[int(wrong.argmax()) :], columns, what)
    sizes = iter(_gather(data, at, 4 * varying).view("<u4").astype(np.int64).T if varying else ())
    at = at + 4 * varying
    places = []
    for column in columns:
        size = next(sizes) if column.size is None else np.full(len(at), column.size)
        places.append((column, at, size))
        at = at + size
    wrong = at != starts[1:]
    if wrong.any():
        _explain(file, first + int(wrong.argmax()), offsets[int(wrong.argmax()) :], columns, what)
    batch = Batch(file, [f"{file.path}/{i}" for i in range(first, first + len(at))], {})
    for column, at, size in places:
        if column.form is None:
            continue
        if column.form == "part":
            values: list[Any] = list(zip((at + offsets[0]).tolist(), size.tolist(), strict=True))
            if column.made is not None:
                batch.made[column.name] = _maker(file, first, column, values, what)
        elif isinstance(column.form, np.dtype):
            wrong = size != column.form.itemsize
            if wrong.any():
                i = int(wrong.argmax())
                file.source.fail(file.path, f"sample {first + i}: {what} {column.name!r} is not what index.json says: it has "
                                            f"{size[i]} bytes, and {column.form} has {column.form.itemsize}")  # fmt: skip
            values = _gather(data, at, column.form.itemsize).view(column.form)[:, 0].tolist()
        else:
            values = []
            try:
                for begin, end in zip(at.tolist(), (at + size).tolist(), strict=True):
                    values.append(column.form(view[begin:end]))
            except (ValueError, RecursionError) as e:
                file.source.fail(file.path, f"sample {first + len(values)}: {what} {column.name!r} is not what index.json says: "
                                            f"{e}")  # fmt: skip
        batch.columns[column.name] = values
    return batch


def _maker(file: File, first: int, column: Column, parts: list[Part], what: str) -> Callable[[int], bytes]:
    def make(i: int) -> bytes:
        assert column.made is not None
        try:
            return column.made(file.peek(parts[i]))
        except (ValueError, struct.error) as e:
            file.source.fail(file.path, f"sample {first + i}: {what} {column.name!r} has pixels that cannot be packed: {e}; give "
                                        "the samples to libshard.pack()")  # fmt: skip
    return make


def _gather(data: np.ndarray[Any, Any], at: np.ndarray[Any, Any], bytes: int) -> np.ndarray[Any, Any]:
    """``bytes`` bytes at each place, as rows."""
    return data[at[:, None] + np.arange(bytes)]


def _explain(file: File, number: int, offsets: np.ndarray[Any, Any], columns: list[Column], what: str) -> NoReturn:
    """What is wrong with a sample whose columns do not fill it."""

    def fail(text: str) -> NoReturn:
        file.source.fail(file.path, f"sample {number}: {text}")

    at = Cursor(file, int(offsets[0]), int(offsets[1]), fail)
    sizes = iter(at.numbers(f"{sum(c.size is None for c in columns)}I", f"the sizes of {what}s"))
    for column in columns:
        at.take(next(sizes) if column.size is None else column.size, f"{what} {column.name!r}")
    at.finish(f"{what}s")
    raise AssertionError(number)
