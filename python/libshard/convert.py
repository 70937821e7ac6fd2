# SPDX-License-Identifier: Apache-2.0
"""Datasets of other loaders: find their images where they lie, and pack them with shardpack.

    python -m libshard.convert mds SRC OUT --resize 256 --crop 224

Nothing is copied.  The files are indexed: a table says where each image is, and ``shardpack images
--extents`` reads it.  So its options, its checks and its rate are those of files.
"""

from __future__ import annotations

import argparse
import bz2
import contextlib
import gzip
import importlib
import io
import json
import math
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any, BinaryIO, Literal, NoReturn

import numpy as np

__all__ = ["ConvertError", "index"]

# The modules that find records, by what a user types.
KINDS = {"tfrecord": "TFRecord files", "mds": "a folder of MosaicML Streaming", "litdata": "a folder of LitData",
         "recordio": "RecordIO of MXNet", "beton": "a .beton of FFCV", "lmdb": "an LMDB database"}  # fmt: skip
BAD, USAGE, IO, INTERRUPTED = 1, 2, 3, 130  # as shardpack's
_MAGIC = re.compile(
    rb"\xff\xd8\xff|\x89PNG\r\n\x1a\n|RIFF....WEBP|GIF8|II\*\0|MM\0\*|....ftyp|BM....\0\0\0\0|P[56][ \t\r\n]", re.DOTALL
)
_LABELS = ("label", "labels", "class", "cls", "target", "y", "image/class/label")
_RESERVED = ("path", "offset", "bytes", "key", "label")  # columns of the table
_TEXT_BYTES = 1 << 16  # longer texts are not columns of a table
_ROWS, _GROUP_BYTES = 4096, 4 << 20  # samples that are looked at together: at most, and about how many bytes of them
_MARK = ".libshard.convert"  # a file in the folder of what is unpacked: the folder is ours
_AHEAD_MIN, _AHEAD_MAX = 4096, 1 << 20  # bytes that are read at once


class ConvertError(ValueError):
    """A source that cannot be converted: what is wrong, where, and what to do."""


Part = tuple[int, int]  #: bytes of a value, in their place in a file: offset and size
Values = dict[str, Any]  #: of a sample, by name: Part, int, float, str, list, or None


@dataclass
class Batch:
    """Samples of one file, by column: a table of millions of rows is written without an object for each."""

    file: File
    keys: list[str]
    columns: dict[str, list[Any]]  #: by name: a value for each sample, None where it has none
    #: By name, of columns that are pixels and no file of an image: the bytes of such a file, for the sample of that number.
    made: dict[str, Callable[[int], bytes]] = field(default_factory=dict)


@dataclass
class Source:
    """What an indexer is given, and what it tells beside samples."""

    root: Path
    files: list[str]  #: below the root; [] means that the indexer finds them
    without: frozenset[str] = frozenset()  #: values that nobody wants
    scratch: Path | None = None  #: a folder for what is unpacked, and for pixels as files of images
    unpacks: bool = False  #: there is something in it, so it stands for the root
    unpacked: set[str] = field(default_factory=set)  #: what is in it; an earlier run may have left more, of other files
    notes: dict[str, int] = field(default_factory=dict)  #: what was left out, and how often

    def note(self, text: str) -> None:
        self.notes[text] = self.notes.get(text, 0) + 1

    def fail(self, path: str, text: str) -> NoReturn:
        raise ConvertError(f"{self.root / path if path else self.root}: {text}")

    def below(self, path: str, name: object) -> str:
        """A name that the file ``path`` has for another one beside it."""
        if not isinstance(name, str) or not name or "\0" in name or Path(name).is_absolute() or ".." in Path(name).parts:
            self.fail(path, f"names the file {name!r}, which must lie below it")
        if not _is_text(name):
            self.fail(path, f"names the file {name!r}, which is not UTF-8")
        return str(Path(path).parent / name)

    def named(self, pattern: str, what: str) -> list[str]:
        """The file that was given, or those directly in the folder whose names have ``pattern``."""
        if self.files:
            return self.files
        names = sorted(p.name for p in self.root.iterdir() if re.search(pattern, p.name))
        if not names:
            self.fail("", f"has no file with a name such as {what}; give a file, or the folder that has them")
        first = {re.sub(r"\d+", "0", name): name for name in reversed(names)}
        if len(first) > 1:
            self.note(f"{len(names)} files are packed as one dataset, among them {_names(list(first.values())[:-4:-1])}; "
                      "if some belong to another one, such as that of validation, give each a folder of its own")  # fmt: skip
        return names

    def open(self, path: str) -> BinaryIO:
        """A file below the root.  It may be a link that leads elsewhere, as in a cache, which is told."""
        full = self.root / path
        is_unpacked = path in self.unpacked
        if is_unpacked and self.scratch is not None:
            full = self.scratch / path
        try:
            if not stat.S_ISREG(full.stat().st_mode):  # before it is opened: opening a FIFO waits
                self.fail(path, "is not a regular file")
            if not self.files and not is_unpacked and not full.resolve().is_relative_to(self.root.resolve()):
                self.note(f"files are links that lead out of {self.root}: what they lead to is packed")
            return open(full, "rb")
        except OSError as e:
            self.fail(path, e.strerror or str(e))

    def new(self, path: str, why: str) -> Path:
        """The place of a file in the scratch folder.  ``why``: what is wrong with ``path`` if there is none."""
        if self.scratch is None:
            self.fail(path, f"{why}, so it cannot be read in place; give index() a folder as scratch=")
        if not self.unpacks:
            mark = self.scratch / _MARK
            if self.scratch.exists() and not mark.exists() and any(self.scratch.iterdir()):
                raise ConvertError(
                    f"{self.scratch}: has files that were not unpacked here, and what is unpacked is removed at the end; move "
                    "the folder, or choose another name for the dataset"
                )
            self.scratch.mkdir(parents=True, exist_ok=True)
            mark.touch()
        self.unpacks = True
        target = self.scratch / path
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def unpack(self, path: str, name: str, size: Any, read: Callable[[File], Iterator[bytes]]) -> None:
        """Write what ``read`` makes of the file ``path`` to ``name`` in the scratch folder, unless it is there."""
        target = self.new(name, "is compressed")
        with File(self, path) as file:
            self.unpacked.add(name)
            kept = target.lstat() if target.is_file() else None
            if kept is not None and (kept.st_size, kept.st_mtime_ns) == (size, file.time):
                return
            part, written = target.with_name(".tmp." + target.name), 0
            with open(part, "wb") as out:
                for data in read(file):
                    written += len(data)
                    if not isinstance(size, int) or written > size:
                        self.fail(path, f"unpacks to more than {size!r} bytes, which it should have")
                    out.write(data)
            if written != size:
                self.fail(path, f"unpacks to {written} bytes, and should have {size!r}")
            os.utime(part, ns=(file.time, file.time))  # shardpack looks at it when a run goes on
            os.replace(part, target)


class File:
    """A file of a source, read in blocks.  It is not mapped: if it is cut meanwhile, a map ends Python by a signal."""

    def __init__(self, source: Source, path: str) -> None:
        self.source, self.path = source, path
        self.file = source.open(path)
        status = os.fstat(self.file.fileno())
        self.size = status.st_size
        self.time = status.st_mtime_ns
        self.block, self.base = b"", 0  #: what was read last, and where in the file it begins
        self.last = b"", 0  #: and before it
        self.ahead = _AHEAD_MIN

    def __enter__(self) -> File:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        status = os.fstat(self.file.fileno())
        self.file.close()
        self.block, self.last = b"", (b"", 0)
        if kind is None and (status.st_size, status.st_mtime_ns) != (self.size, self.time):
            self.source.fail(self.path, "was changed while it was read; begin again when nothing writes it any more")

    def read(self, at: int, bytes: int) -> bytes:
        """These bytes, which lie within the size that it had when it was opened."""
        try:
            data = os.pread(self.file.fileno(), bytes, at)
            while len(data) < bytes:  # 2 GiB at most come at once
                more = os.pread(self.file.fileno(), bytes - len(data), at + len(data))
                if not more:
                    self.source.fail(self.path, f"was cut while it was read: it had {self.size} bytes, and has {at + len(data)} "
                                                "now; begin again when nothing writes it any more")  # fmt: skip
                data += more
        except OSError as e:
            self.source.fail(self.path, e.strerror or str(e))
        return data

    def load(self, at: int, bytes: int) -> int:
        """Have these bytes in the block; returns where in it they begin.  Of files that are read in order, more are read."""
        first = at - self.base
        if not 0 <= first <= len(self.block) - bytes:
            is_near = 0 <= first <= len(self.block) + self.ahead
            self.ahead = min(2 * self.ahead, _AHEAD_MAX) if is_near else _AHEAD_MIN
            self.last = self.block, self.base
            self.block = self.read(at, min(max(bytes, self.ahead), self.size - at))
            self.base, first = at, 0
        return first

    def view(self, at: int, bytes: int) -> memoryview:
        first = self.load(at, bytes)
        return memoryview(self.block)[first : first + bytes]

    def peek(self, part: Part, most: int = 1 << 32) -> bytes:
        """The first bytes of a part, wherever it is; what is read in order stays as it was."""
        at, size = part[0], min(part[1], most)
        for block, base in (self.block, self.base), self.last:
            if base <= at and at + size <= base + len(block):
                return block[at - base : at - base + size]
        return self.read(at, size)


def _zstd(file: BinaryIO) -> Any:
    for name in ("compression.zstd", "backports.zstd"):
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(name).ZstdFile(file)
    with contextlib.suppress(ModuleNotFoundError):
        return importlib.import_module("zstandard").ZstdDecompressor().stream_reader(file, read_across_frames=True)
    return io.BytesIO(importlib.import_module("zstd").decompress(file.read()))


# What MDS and LitData compress with: a stream of the bytes, and the package that has it if Python has none.
_STREAMS: dict[str, tuple[Callable[[BinaryIO], Any], str]] = {
    "gz": (lambda file: gzip.GzipFile(fileobj=file), ""), "bz2": (lambda file: bz2.BZ2File(file), ""),
    "zstd": (_zstd, "zstandard"),
    "br": (lambda file: io.BytesIO(importlib.import_module("brotli").decompress(file.read())), "brotli"),
    "snappy": (lambda file: io.BytesIO(importlib.import_module("snappy").decompress(file.read())), "python-snappy"),
}  # fmt: skip


def decompressed(file: File, compression: Any, data: BinaryIO | None = None) -> Iterator[bytes]:
    """The bytes of a compressed file, or of ``data``, which is a part of it."""
    name = str(compression).partition(":")[0]  # what is behind it is a level
    if name not in _STREAMS:
        file.source.fail(file.path, f"is compressed with {compression!r}, which is not one of {', '.join(_STREAMS)}")
    open_stream, package = _STREAMS[name]
    try:
        stream = open_stream(file.file if data is None else data)
        while block := stream.read(1 << 20):
            yield block
    except ModuleNotFoundError:
        file.source.fail(file.path, f"is compressed with {name}, which this Python cannot read; install the package {package}")
    except (GeneratorExit, ConvertError):
        raise
    except Exception as e:  # each package has its own
        file.source.fail(file.path, f"is not whole, or is not compressed with {name}, as index.json says: {e}")


def as_ppm(height: int, width: int, channels: int, pixels: bytes | memoryview) -> bytes:
    """Pixels of 8 bits as a file of an image."""
    if channels not in (1, 3) or not height or not width or len(pixels) != height * width * channels:
        raise ValueError(f"{len(pixels)} bytes are not an image of {height} x {width} x {channels}, with 1 or 3 channels")
    return b"P%d\n%d %d\n255\n" % (6 if channels == 3 else 5, width, height) + pixels


def pil_as_ppm(data: bytes) -> bytes:
    """What MDS and LitData store of an image of Pillow: u32 width, u32 height, u32 bytes of the mode, mode, pixels."""
    if len(data) < 12:
        raise ValueError(f"{len(data)} bytes are no image of Pillow")
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


class Cursor:
    """Numbers and bytes of a file, one after the other, never beyond an end."""

    def __init__(self, file: File, at: int, end: int, fail: Callable[[str], NoReturn]) -> None:
        self.file, self.at, self.end, self.fail = file, at, min(end, file.size), fail

    def take(self, bytes: int, what: str) -> Part:
        if bytes < 0 or bytes > self.end - self.at:
            self.fail(f"{what} of {bytes} bytes at byte {self.at} ends beyond byte {self.end}")
        self.at += bytes
        return self.at - bytes, bytes

    def numbers(self, form: str, what: str) -> tuple[Any, ...]:
        return struct.unpack("<" + form, self.file.view(*self.take(struct.calcsize("<" + form), what)))

    def finish(self, what: str) -> None:
        """All of them should have been taken."""
        if self.at != self.end:
            self.fail(f"has {self.end - self.at} bytes more than its {what}")


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
        if count == _ROWS or not 0 <= file.base - begin <= _AHEAD_MAX // 2:  # so that texts lie in the last two blocks
            yield batch
            batch, count, begin = Batch(file, [], {}), 0, file.base
    if count:
        yield batch


# ---- shards of MDS and LitData: u32 n, u32 offset[n + 1], samples ----


@dataclass
class Column:
    """Of each sample of a shard."""

    name: str
    size: int | None  #: None: each sample begins with a u32 for it
    #: What its bytes are: a Part, a number, or what a function makes of them; None: nobody wants it.
    form: Literal["part"] | np.dtype[Any] | Callable[[memoryview], Any] | None
    made: Callable[[bytes], bytes] | None = None  #: of a part that is pixels: what makes a file of an image of it


def read_text(data: memoryview) -> str:
    return str(data, "utf-8")


def shard(file: File, said: Any, columns: list[Column], what: str) -> Iterator[Batch]:
    """The samples of a shard, which its index says has ``said`` of them.  ``what``: what a column is called there."""
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


def load_json(source: Source, path: str) -> Any:
    """A file that describes others.  One of 10^6 shards has some 500 MB."""
    try:
        with source.open(path) as f:
            text = f.read()
    except OSError as e:
        source.fail(path, e.strerror or str(e))
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as e:
        source.fail(path, f"is not JSON: {e}")


# ---- which of the values is what ----


def _is_image(file: File, value: Any) -> bool:
    return type(value) is tuple and _MAGIC.match(file.peek(value, 16)) is not None


def _names(values: Iterable[str]) -> str:
    return ", ".join(map(repr, values)) or "none"


def _choose_image(batch: Batch, key: str, values: Values, image: str | None) -> str:
    file = batch.file
    if image is not None:
        if image not in values:
            file.source.fail(file.path, f"record {key} has no value {image!r}; it has {_names(values)}")
        return image
    found = [name for name, value in values.items() if name not in batch.made and _is_image(file, value)]
    found = found or [name for name in values if name in batch.made]
    if len(found) == 1:
        return found[0]
    if found:
        file.source.fail(file.path, f"record {key} has images {_names(found)}; say which one with --image NAME")
    file.source.fail(
        file.path,
        f"record {key} has no value that begins as an image does (JPEG, PNG, WebP, GIF, TIFF, AVIF, BMP, PPM); it has "
        f"{_names(values)}. Other pixels are not read: read them with their own library, and give the samples to libshard.pack()",
    )


def _choose_label(file: File, key: str, values: Values, label: str | None, image: str) -> str:
    found = [label] if label is not None else [n for n in _LABELS if n in values and n != image]
    if len(found) == 1 and found[0] in values:
        return found[0]
    if label is None and len(found) > 1:
        file.source.fail(file.path, f"record {key} has {_names(found)}; say which one is the label with --label NAME")
    what = f"value {label!r}" if label is not None else "label"
    file.source.fail(
        file.path, f"record {key} has no {what}; it has {_names(n for n in values if n != image)}; say --label NAME, or --no-label"
    )


# ---- rows of the table ----


def _is_text(text: str) -> bool:
    """UTF-8 without NUL, which is what a table can have."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def _plain(file: File, value: Any) -> Any:
    """As JSON has it; None if it has no such thing."""
    if isinstance(value, tuple):
        if value[1] > _TEXT_BYTES:
            return None
        try:
            text = file.peek(value).decode()
        except UnicodeDecodeError:
            return None
        return text if "\0" not in text else None
    if isinstance(value, str):
        return value if _is_text(value) else None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return str(value)
    if isinstance(value, dict):
        whole = {name: _plain(file, v) for name, v in value.items()}
        return whole if all(map(_is_text, whole)) and all((v is None) == (value[n] is None) for n, v in whole.items()) else None
    if isinstance(value, list):
        plain = [_plain(file, v) for v in value]
        return None if any(v is None for v in plain) else plain
    return value


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _cells(file: File, values: list[Any], is_label: bool) -> tuple[list[str | None], int]:
    """The values as JSON, None for those that are not there, and how many are left out.  Numbers are mostly all alike."""
    kinds = set(map(type, values))
    if kinds == {int} and -(1 << 63) <= min(values) and max(values) < 1 << 63:
        return list(map(str, values)), 0
    if kinds == {float} and not is_label and all(map(math.isfinite, values)):
        return list(map(repr, values)), 0
    cells: list[str | None] = []
    left_out = 0
    for value in values:
        plain = _plain(file, value)
        if is_label:
            plain = int(plain) if isinstance(plain, float) and plain.is_integer() else plain
            cells.append(None if value is None else _encode(plain))  # a null is bad input, which shardpack tells
        else:
            left_out += plain is None and value is not None
            cells.append(None if plain is None else _encode(plain))
    return cells, left_out


class _Table:
    """Writes the rows, and tells what is not in them."""

    def __init__(self, source: Source, out: Any, image: str | None, label: str | None, no_label: bool) -> None:
        self.source, self.out = source, out
        self.wanted, self.no_label = (image, label), no_label
        self.image: str | None = None  # both are chosen by the first sample that can be read
        self.label: str | None = None
        self.count = 0
        self.left_out: dict[str, int] = {}
        self.pixels: set[str] = set()  # columns that are left out for that
        self.paths: set[str] = set()  # that rows name

    def _choose(self, batch: Batch) -> None:
        for i, key in enumerate(batch.keys):
            values = {name: column[i] for name, column in batch.columns.items() if column[i] is not None}
            if values:  # an indexer gives a sample that it cannot read none
                self.image = _choose_image(batch, key, values, self.wanted[0])
                self.label = None if self.no_label else _choose_label(batch.file, key, values, self.wanted[1], self.image)
                return

    def write(self, batch: Batch) -> None:
        file, rows = batch.file, len(batch.keys)
        if self.image is None:
            self._choose(batch)
        if not (_is_text(file.path) and _is_text("".join(batch.keys))):
            self.source.fail(file.path, "its name is not UTF-8; rename the file, or name a link to it in a folder of its own")
        parts: list[Any] = [None] * rows if self.image is None else batch.columns.get(self.image, [None] * rows)
        path = file.path
        if self.image in batch.made:
            path, parts = self._make_images(batch, batch.made[self.image])
        self.paths.add(path)
        cells: list[Iterable[str]] = [repeat(f'{{"path":{_encode(path)},"key":', rows), map(_encode, batch.keys)]
        if all(type(part) is tuple for part in parts):
            cells.append([f',"offset":{at},"bytes":{size}' for at, size in parts])
        else:
            cells.append(self._some_places(batch, parts))
        for name, values in batch.columns.items():
            if name == self.image:
                continue
            if name in batch.made:
                self.pixels.add(name)
                self.left_out[name] = self.left_out.get(name, 0) + rows
                continue
            if name != self.label and (name in _RESERVED or not _is_text(name)):
                self.left_out[name] = self.left_out.get(name, 0) + sum(v is not None for v in values)
                continue
            texts, left_out = _cells(file, values, name == self.label)
            if left_out:
                self.left_out[name] = self.left_out.get(name, 0) + left_out
            head = "," + _encode("label" if name == self.label else name) + ":"
            cells.append(["" if text is None else head + text for text in texts])
        cells.append(repeat("}\n", rows))
        self.out.write("".join(map("".join, zip(*cells, strict=True))))
        self.count += rows

    def _some_places(self, batch: Batch, parts: list[Any]) -> list[str]:
        places = []
        for i, part in enumerate(parts):
            is_part = type(part) is tuple
            places.append(f',"offset":{part[0]},"bytes":{part[1]}' if is_part else "")
            # shardpack says of such a row that it has none, and --on-error decides
            if not is_part and any(column[i] is not None for column in batch.columns.values()):
                self.source.note(f"records without a part {self.image!r} of their file, which are bad input")
        return places

    def _make_images(self, batch: Batch, make: Callable[[int], bytes]) -> tuple[str, list[Any]]:
        """The images of these samples as files, one behind the other in a file of the scratch folder."""
        path, file, parts = batch.file.path + ".images", batch.file, []
        target = self.source.new(path, "has pixels, not files of images")
        if path not in self.paths:
            target.unlink(missing_ok=True)
        self.source.unpacked.add(path)
        with open(target, "ab") as out:
            for i in range(len(batch.keys)):
                image = make(i)
                parts.append((out.tell(), len(image)))
                out.write(image)
        os.utime(target, ns=(file.time, file.time))  # shardpack looks at it when a run goes on
        return path, parts

    def finish(self) -> None:
        for path in self.paths if self.source.unpacks else ():
            target = self.source.new(path, "")
            if path not in self.source.unpacked:
                target.unlink(missing_ok=True)
                target.symlink_to((self.source.root / path).absolute())
        for name, rows in self.left_out.items():
            self.source.note(
                f"column {name!r} is left out, because no label is wanted" if name == "label" and self.no_label else
                f"column {name!r} is left out, because the table has one of that name" if name in _RESERVED else
                f"column {name!r} is left out: it is pixels, and not the image" if name in self.pixels else
                f"column {name!r} is left out of {rows} of {self.count} rows, where it is not text or a finite number, or a list "
                "of them"
            )  # fmt: skip


def index(kind: str, source: str | os.PathLike[str], table: Any, *, image: str | None = None, label: str | None = None,
          no_label: bool = False, without: Iterable[str] = (), scratch: str | os.PathLike[str] | None = None
          ) -> tuple[int, dict[str, int]]:
    """Write a row of JSON to the file ``table`` for each record; returns how many, and what was left out.

    ``scratch`` is a folder for what is compressed, or is pixels and not files of images.  If there is any, it is
    made, and paths in the table are relative to it.
    """
    rows = _index(kind, source, table, image, label, no_label, without, scratch)
    return rows.count, rows.source.notes


def _index(kind: str, source: str | os.PathLike[str], table: Any, image: str | None, label: str | None, no_label: bool,
           without: Iterable[str], scratch: str | os.PathLike[str] | None) -> _Table:
    if kind not in KINDS:
        raise ConvertError(f"there is no kind {kind!r}; it must be one of {', '.join(KINDS)}")
    path = Path(source)
    if not path.exists():
        raise ConvertError(f"{path}: No such file or directory")
    of = Source(path, []) if path.is_dir() else Source(path.parent, [path.name])
    of.without, of.scratch = frozenset(without), Path(scratch) if scratch is not None else None
    rows = _Table(of, table, image, label, no_label)
    for batch in importlib.import_module(f"libshard._from_{kind}").batches(of):
        rows.write(batch)
    if rows.image is None:
        of.fail("", f"no records; it must be {KINDS[kind]}")
    rows.finish()
    return rows


# ---- the program ----


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m libshard.convert", allow_abbrev=False, usage="%(prog)s KIND SRC OUT [options] [options of shardpack images]",
        description="Pack the images of another loader's dataset. They are read where they lie.",
    )  # fmt: skip
    parser.add_argument("kind", metavar="KIND", choices=list(KINDS), help="; ".join(f"{k}: {v}" for k, v in KINDS.items()))
    parser.add_argument("source", metavar="SRC", help="file or folder of the dataset")
    parser.add_argument("out", metavar="OUT", help="folder of the new dataset")
    parser.add_argument("--image", metavar="NAME", help="value that is the image [the only one that begins as an image does]")
    parser.add_argument("--label", metavar="NAME", help="value that is the label [label, class, cls, ...]")
    parser.add_argument("--no-label", action="store_true", help="pack images without labels")
    parser.add_argument("--without", metavar="NAME", action="append", default=[], help="value to leave out; may be repeated")
    parser.add_argument("--table", metavar="FILE", help="keep the table there [OUT.extents.jsonl, until all is packed]")
    parser.add_argument("--shardpack", metavar="PATH", default="shardpack", help="program to run [the one in PATH]")
    return parser


def _say(text: str) -> None:
    print(f"libshard.convert: {text}", file=sys.stderr, flush=True)


def _say_kept(scratch: Path) -> None:
    if scratch.exists():
        _say(f"what was unpacked is kept, and need not be unpacked again: {scratch}")


def main(arguments: list[str] | None = None) -> int:
    args, rest = _parser().parse_known_args(arguments)
    program = shutil.which(args.shardpack)
    if not program:
        _say(f"there is no program {args.shardpack}; say where with --shardpack PATH")
        return IO
    for option in ("--root", "--extents", "--path-key", "--label-key", "--out", "-o"):
        if any(r == option or r.startswith(option + "=") or (option == "-o" and r.startswith("-o")) for r in rest):
            _say(f"{option} is set here, so leave it out")
            return USAGE
    table = Path(args.table or args.out.rstrip("/") + ".extents.jsonl")
    part = table.with_name(f".tmp.{os.getpid()}.{table.name}")
    source, scratch = Path(args.source), Path(args.out.rstrip("/") + ".unpacked")
    if table.suffix != ".jsonl":
        _say(f"--table {table}: the name must end with .jsonl")
        return USAGE
    try:
        table.parent.mkdir(parents=True, exist_ok=True)
        by_key = any(r.partition("=")[0] in ("--label-regex", "--labels") for r in rest)  # they go by the record's key
        with open(part, "w", encoding="utf-8") as f:
            rows = _index(args.kind, source, f, args.image, args.label, args.no_label or by_key, args.without, scratch)
        os.replace(part, table)
    except (ConvertError, OSError) as e:
        _say(str(e))
        _say_kept(scratch)
        return BAD if isinstance(e, ConvertError) else IO
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
    _say(f"{rows.count} records in {source}")
    for text, times in rows.source.notes.items():
        _say(text if times == 1 else f"{text} ({times} times)")
    command = [program, "images", str(table), "-o", args.out, "--extents", *(["--no-label"] if args.no_label else []),
               "--root", str(scratch if rows.source.unpacks else rows.source.root), *rest]  # fmt: skip
    code = subprocess.run(command).returncode
    if code == 0 and not args.table:
        table.unlink()
        if rows.source.unpacks:
            shutil.rmtree(scratch)
    elif not args.table:
        _say(f"the table is kept: {table}")
    _say_kept(scratch)
    return code if code >= 0 else IO


if __name__ == "__main__":
    from libshard.convert import main as run  # this file has another name here, and so had its classes

    try:
        sys.exit(run())
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
