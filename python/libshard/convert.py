# SPDX-License-Identifier: Apache-2.0
"""Datasets of other loaders: find their images where they lie, and pack them with shardpack.

    python -m libshard.convert mds SRC OUT --resize 256 --crop 224

Nothing is copied.  The files are indexed: a table says where each image is, and ``shardpack images
--extents`` reads it.  So its options, its checks and its rate are those of files.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import math
import mmap
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

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


class ConvertError(ValueError):
    """A source that cannot be converted: what is wrong, where, and what to do."""


@dataclass
class Part:
    """Bytes of a value, in their place in a file."""

    offset: int
    data: memoryview


@dataclass
class Record:
    """A sample: its file below the source, its key, and its values by name."""

    path: str
    key: str
    values: dict[str, Any]  #: Part, int, float, str, list, or None


@dataclass
class Source:
    """What an indexer is given, and what it tells beside records."""

    root: Path
    files: list[str]  #: below the root; [] means that the indexer finds them
    without: frozenset[str] = frozenset()  #: values that nobody wants
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
        try:
            if not stat.S_ISREG(full.stat().st_mode):  # before it is opened: opening a FIFO waits
                self.fail(path, "is not a regular file")
            if not self.files and not full.resolve().is_relative_to(self.root.resolve()):
                self.note(f"files are links that lead out of {self.root}: what they lead to is packed")
            return open(full, "rb")
        except OSError as e:
            self.fail(path, e.strerror or str(e))

    @contextlib.contextmanager
    def map(self, path: str) -> Iterator[memoryview]:
        """All bytes of a file; only those that are looked at are read."""
        try:
            with self.open(path) as f:
                size = os.fstat(f.fileno()).st_size
                if not size:
                    yield memoryview(b"")
                    return
                whole = mmap.mmap(f.fileno(), size, access=mmap.ACCESS_READ)
        except OSError as e:
            self.fail(path, e.strerror or str(e))
        whole.madvise(mmap.MADV_SEQUENTIAL)
        yield memoryview(whole)  # it is unmapped when the last part of it is gone


class Cursor:
    """Numbers and bytes of a memoryview, one after the other, never beyond its end."""

    def __init__(self, data: memoryview, at: int, end: int, fail: Any) -> None:
        self.data: memoryview = data
        self.at: int = at
        self.end: int = min(end, len(data))
        self.fail: Any = fail

    def take(self, bytes: int, what: str) -> memoryview:
        if bytes < 0 or bytes > self.end - self.at:
            self.fail(f"{what} of {bytes} bytes at byte {self.at} ends beyond byte {self.end}")
        self.at += bytes
        return self.data[self.at - bytes : self.at]

    def numbers(self, form: str, what: str) -> tuple[Any, ...]:
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form), what))

    def finish(self, what: str) -> None:
        """All of them should have been taken."""
        if self.at != self.end:
            self.fail(f"has {self.end - self.at} bytes more than its {what}")


def samples(source: Source, path: str, data: memoryview, said: Any) -> Iterator[tuple[int, Cursor]]:
    """Of a file of MDS or LitData, which its index says has ``said`` samples: a number and a Cursor for each."""
    head = Cursor(data, 0, len(data), lambda text: source.fail(path, text))
    (count,) = head.numbers("I", "the number of samples")
    if count != said:
        source.fail(path, f"has {count} samples, and index.json says {said}")
    offsets = head.take(4 * (count + 1), "the table of samples").cast("I")
    for i in range(count):
        first, last = offsets[i], offsets[i + 1]

        def fail(text: str, i: int = i) -> None:
            source.fail(path, f"sample {i}: {text}")

        if not head.at <= first <= last <= len(data):
            fail(f"lies at bytes {first} to {last}, not within the {len(data)} bytes of the file behind its table")
        yield i, Cursor(data, first, last, fail)


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


def _is_image(value: Any) -> bool:
    return isinstance(value, Part) and _MAGIC.match(bytes(value.data[:16])) is not None


def _names(values: Iterable[str]) -> str:
    return ", ".join(map(repr, values)) or "none"


def _choose_image(source: Source, record: Record, image: str | None) -> str:
    if image is not None:
        if image not in record.values:
            source.fail(record.path, f"record {record.key} has no value {image!r}; it has {_names(record.values)}")
        return image
    found = [name for name, value in record.values.items() if _is_image(value)]
    if len(found) == 1:
        return found[0]
    if found:
        source.fail(record.path, f"record {record.key} has images {_names(found)}; say which one with --image NAME")
    source.fail(
        record.path,
        f"record {record.key} has no value that begins as an image does (JPEG, PNG, WebP, GIF, TIFF, AVIF, BMP, PPM); it has "
        f"{_names(record.values)}. Pixels that are not encoded as a file cannot be read in place: read them with their own "
        "library, and give the samples to libshard.pack()",
    )


def _choose_label(source: Source, record: Record, label: str | None, image: str) -> str:
    found = [label] if label is not None else [n for n in _LABELS if n in record.values and n != image]
    if len(found) == 1 and found[0] in record.values:
        return found[0]
    if label is None and len(found) > 1:
        source.fail(record.path, f"record {record.key} has {_names(found)}; say which one is the label with --label NAME")
    what = f"value {label!r}" if label is not None else "label"
    source.fail(
        record.path,
        f"record {record.key} has no {what}; it has {_names(n for n in record.values if n != image)}; say --label NAME, or "
        "--no-label",
    )


def _is_text(text: str) -> bool:
    """UTF-8 without NUL, which is what a table can have."""
    return "\0" not in text and not any("\ud800" <= c <= "\udfff" for c in text)


def _plain(value: Any) -> Any:
    """As JSON has it; None if it has no such thing."""
    if isinstance(value, Part):
        if len(value.data) > _TEXT_BYTES:
            return None
        try:
            text = bytes(value.data).decode()
        except UnicodeDecodeError:
            return None
        return text if _is_text(text) else None
    if isinstance(value, str):
        return value if _is_text(value) else None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return str(value)
    if isinstance(value, dict):
        whole = {name: _plain(v) for name, v in value.items()}
        return whole if all(map(_is_text, whole)) and all((v is None) == (value[n] is None) for n, v in whole.items()) else None
    if isinstance(value, list):
        plain = [_plain(v) for v in value]
        return None if any(v is None for v in plain) else plain
    return value


def index(kind: str, source: str | os.PathLike[str], table: Any, *, image: str | None = None, label: str | None = None,
          no_label: bool = False, without: Iterable[str] = ()) -> tuple[int, dict[str, int]]:
    """Write a row of JSON to the file ``table`` for each record; returns how many, and what was left out."""
    if kind not in KINDS:
        raise ConvertError(f"there is no kind {kind!r}; it must be one of {', '.join(KINDS)}")
    path = Path(source)
    if not path.exists():
        raise ConvertError(f"{path}: No such file or directory")
    of = Source(path, [], frozenset(without)) if path.is_dir() else Source(path.parent, [path.name], frozenset(without))
    module = importlib.import_module(f"libshard._from_{kind}")
    count = 0
    left_out = dict[str, int]()
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    chosen_image = chosen_label = ""
    for record in module.records(of):
        values = record.values
        if values and not chosen_image:  # an indexer gives a record that it cannot read no values
            chosen_image = _choose_image(of, record, image)
            chosen_label = "" if no_label else _choose_label(of, record, label, chosen_image)
        part = values.get(chosen_image)
        row = {"path": record.path, "key": record.key}
        if isinstance(part, Part):
            row |= {"offset": part.offset, "bytes": len(part.data)}
        elif values:  # shardpack says of this row that it has none, and --on-error decides
            of.note(f"records without a part {chosen_image!r} of their file, which are bad input")
        for name, value in values.items():
            if name == chosen_image:
                continue
            plain = _plain(value)
            if name == chosen_label:
                row["label"] = int(plain) if isinstance(plain, float) and plain.is_integer() else plain
            elif name in _RESERVED or not _is_text(name) or (plain is None and value is not None):
                left_out[name] = left_out.get(name, 0) + 1
            elif plain is not None:
                row[name] = plain
        if not (_is_text(record.path) and _is_text(record.key)):
            of.fail(record.path, "its name is not UTF-8; rename the file, or name a link to it in a folder of its own")
        table.write(encode(row) + "\n")
        count += 1
    if not chosen_image:
        of.fail("", f"no records; it must be {KINDS[kind]}")
    for name, rows in left_out.items():
        of.note(f"column {name!r} is left out, because the table has one of that name" if name in _RESERVED else
                f"column {name!r} is left out of {rows} of {count} rows, where it is not text or a finite number, or a list of "
                "them")  # fmt: skip
    return count, of.notes


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
    source = Path(args.source)
    if table.suffix != ".jsonl":
        _say(f"--table {table}: the name must end with .jsonl")
        return USAGE
    try:
        table.parent.mkdir(parents=True, exist_ok=True)
        by_key = any(r.partition("=")[0] in ("--label-regex", "--labels") for r in rest)  # they go by the record's key
        with open(part, "w", encoding="utf-8") as f:
            count, notes = index(args.kind, source, f, image=args.image, label=args.label, no_label=args.no_label or by_key,
                                 without=args.without)  # fmt: skip
        os.replace(part, table)
    except (ConvertError, OSError) as e:
        _say(str(e))
        return BAD if isinstance(e, ConvertError) else IO
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
    _say(f"{count} records in {source}")
    for text, times in notes.items():
        _say(text if times == 1 else f"{text} ({times} times)")
    command = [program, "images", str(table), "-o", args.out, "--extents", *(["--no-label"] if args.no_label else []),
               "--root", str(source if source.is_dir() else source.parent), *rest]  # fmt: skip
    code = subprocess.run(command).returncode
    if code == 0 and not args.table:
        table.unlink()
    elif not args.table:
        _say(f"the table is kept: {table}")
    return code if code >= 0 else IO


if __name__ == "__main__":
    from libshard.convert import main as run  # this file has another name here, and so had its classes

    try:
        sys.exit(run())
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
