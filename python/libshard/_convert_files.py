# SPDX-License-Identifier: Apache-2.0
"""Files of other loaders' datasets: what :mod:`libshard.convert` reads, in blocks, and what it unpacks."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import importlib
import io
import json
import os
import re
import stat
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

_MARK = ".libshard.convert"  # a file in the folder of what is unpacked: the folder is ours
_AHEAD_MIN, AHEAD_MAX = 4096, 1 << 20  # bytes that are read at once


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
        if not is_text(name):
            self.fail(path, f"names the file {name!r}, which is not UTF-8")
        return str(Path(path).parent / name)

    def named(self, pattern: str, what: str) -> list[str]:
        """The file that was given, or those directly in the folder whose names have ``pattern``."""
        if self.files:
            return self.files
        names = sorted(p.name for p in self.root.iterdir() if re.search(pattern, p.name))
        if not names:
            self.fail("", f"has no file with a name such as {what}; give a file, or the folder that has them")
        self._check_count(names)
        within = [p for p in sorted(self.root.iterdir()) if p.is_dir() and os.access(p, os.R_OK | os.X_OK)]
        folders = [p.name for p in within if any(re.search(pattern, n) for n in os.listdir(p))]
        if folders:
            self.note(f"folders in {self.root} are not packed, which have such files, too: {names_of(folders[:3])}")
        first = {re.sub(r"\d+", "0", name): name for name in reversed(names)}
        if len(first) > 1:
            self.note(f"{len(names)} files are packed as one dataset, among them {names_of(list(first.values())[:-4:-1])}; "
                      "if some belong to another one, such as that of validation, give each a folder of its own")  # fmt: skip
        return names

    def _check_count(self, names: list[str]) -> None:
        """Of files that are called train-00002-of-01024, all should be there, and a link may be a second name of one."""
        found = [(name, number) for name in names if (number := re.search(r"-(\d+)-of-(\d+)", name))]
        groups: dict[tuple[str, str, str], set[int]] = {}
        for name, number in found:
            group = name[: number.start()], number[2], name[number.end() :]
            groups.setdefault(group, set()).add(int(number[1]))
        for (before, count, after), numbers in groups.items():
            first = int(0 not in numbers and int(count) in numbers)  # some count from 1
            missing = [k for k in range(first, first + min(int(count), 1 << 20)) if k not in numbers]
            if missing:
                what = f"{before}-{missing[0]:0{len(count)}}-of-{count}{after}"
                more = f", and so are {len(missing) - 1} more of these {int(count)} files" if len(missing) > 1 else ""
                self.fail(what, f"is missing{more}; if only the others are wanted, give a folder that has links to them, with "
                                "names such as a.tfrecord")  # fmt: skip
        places: dict[tuple[int, int], str] = {}
        for name in filter(lambda name: (self.root / name).exists(), names):
            state = (self.root / name).stat()
            other = places.setdefault((state.st_dev, state.st_ino), name)
            if other != name:
                self.fail(name, f"is the same file as {other!r}, so its records would be packed twice; remove the link")

    def note_others(self, ending: str, listed: Iterable[str]) -> None:
        """Shards beside index.json that it does not list."""
        others = sorted({p.name for p in self.root.iterdir() if ending in p.name and not p.name.startswith(".")} - {*listed})
        if others:
            more = f" and {len(others) - 3} more" if len(others) > 3 else ""
            self.note(f"files that index.json does not list are not packed: {names_of(others[:3])}{more}")

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
            self.ahead = min(2 * self.ahead, AHEAD_MAX) if is_near else _AHEAD_MIN
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


def names_of(values: Iterable[str]) -> str:
    return ", ".join(map(repr, values)) or "none"


def is_text(text: str) -> bool:
    """UTF-8 without NUL, which is what a table can have."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False
