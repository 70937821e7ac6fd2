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
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from itertools import repeat
from pathlib import Path
from typing import Any

from ._convert_files import Batch, ConvertError, File, Source, Values, is_text, names_of
from ._images import MAGIC

__all__ = ["ConvertError", "index"]

# The modules that find records, by what a user types.
KINDS = {"tfrecord": "TFRecord files", "mds": "a folder of MosaicML Streaming", "litdata": "a folder of LitData",
         "recordio": "RecordIO of MXNet", "beton": "a .beton of FFCV", "lmdb": "an LMDB database"}  # fmt: skip
# A kind that libshard.pack reads without an index: its name in a sentence, how Python opens it, and the modules for that.
_PACKED = {"parquet": ("a Parquet file", "{!r}", "libshard"), "arrow": ("a file of Arrow", "{!r}", "libshard"),
           "huggingface": ("a dataset of Hugging Face", "datasets.load_from_disk({!r})", "datasets, libshard"),
           "hdf5": ("a file of HDF5", "{!r}", "libshard"), "zarr": ("a group of Zarr", "{!r}", "libshard")}  # fmt: skip
_READ_BY_SHARDPACK = {"webdataset": "images", "megatron": "tokens"}
BAD, USAGE, IO, INTERRUPTED = 1, 2, 3, 130  # as shardpack's
_LABELS = ("label", "labels", "class", "cls", "target", "y", "image/class/label")
_RESERVED = ("path", "offset", "bytes", "key", "label")  # columns of the table
_TEXT_BYTES = 1 << 16  # longer texts are not columns of a table


# ---- which of the values is what ----


def _is_image(file: File, value: Any) -> bool:
    return type(value) is tuple and MAGIC.match(file.peek(value, 16)) is not None


def _choose_image(batch: Batch, key: str, values: Values, image: str | None) -> str:
    file = batch.file
    if image is not None:
        if image not in values:
            file.source.fail(file.path, f"record {key} has no value {image!r}; it has {names_of(values)}")
        return image
    found = [name for name, value in values.items() if name not in batch.made and _is_image(file, value)]
    found = found or [name for name in values if name in batch.made]
    if len(found) == 1:
        return found[0]
    if found:
        file.source.fail(file.path, f"record {key} has images {names_of(found)}; say which one with --image NAME")
    file.source.fail(
        file.path,
        f"record {key} has no value that begins as an image does (JPEG, PNG, WebP, GIF, TIFF, AVIF, BMP, PPM); it has "
        f"{names_of(values)}. Other pixels are not read: read them with their own library, and give the samples to libshard.pack()",
    )


def _choose_label(file: File, key: str, values: Values, label: str | None, image: str) -> str:
    found = [label] if label is not None else [n for n in _LABELS if n in values and n != image]
    if len(found) == 1 and found[0] in values:
        return found[0]
    if label is None and len(found) > 1:
        file.source.fail(file.path, f"record {key} has {names_of(found)}; say which one is the label with --label NAME")
    what = f"value {label!r}" if label is not None else "label"
    file.source.fail(
        file.path, f"record {key} has no {what}; it has {names_of(n for n in values if n != image)}; say --label NAME, or --no-label"
    )


# ---- rows of the table ----


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
        return value if is_text(value) else None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return str(value)
    if isinstance(value, dict):
        whole = {name: _plain(file, v) for name, v in value.items()}
        return whole if all(map(is_text, whole)) and all((v is None) == (value[n] is None) for n, v in whole.items()) else None
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
        if not (is_text(file.path) and is_text("".join(batch.keys))):
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
            if name != self.label and (name in _RESERVED or not is_text(name)):
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
    others = [*_PACKED, *_READ_BY_SHARDPACK]  # main() says what reads them
    parser.add_argument("kind", metavar="KIND", choices=[*KINDS, *others], help="; ".join(f"{k}: {v}" for k, v in KINDS.items()))
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


def _other_way(kind: str, source: str, out: str, options: list[str]) -> str:
    """How to pack what needs no index, to be copied.  ``options``: those of shardpack that were given."""
    if kind in _READ_BY_SHARDPACK:
        verb = _READ_BY_SHARDPACK[kind]
        options = options or (["--seq-len", "1024"] if verb == "tokens" else ["--resize", "256", "--crop", "224"])
        command = shlex.join(["shardpack", verb, source, "-o", out, *options])
        return f"{kind} needs no index: shardpack reads it as it is. Run this instead:\n    {command}"
    what, argument, modules = _PACKED[kind]
    if kind == "parquet" and os.path.isdir(source):
        what, modules = "a folder of Parquet files", "datasets, libshard"
        argument, source = 'datasets.load_dataset("parquet", data_files={!r}, split="train")', os.path.join(source, "*.parquet")
    return (
        f"{what} needs no index: libshard.pack() reads it. Write this in Python, with your options and the names of your "
        f"columns; arrays of pixels of one size need no schema, so write None instead:\n    import {modules}\n"
        '    schema = {"image": libshard.Image(resize=256, crop=224), "label": None}\n'
        f"    libshard.pack({argument.format(source)}, schema, {out!r})"
    )


def _say_kept(scratch: Path) -> None:
    if scratch.exists():
        _say(f"what was unpacked is kept, and need not be unpacked again: {scratch}")


def main(arguments: list[str] | None = None) -> int:
    args, rest = _parser().parse_known_args(arguments)
    if args.kind not in KINDS:
        _say(_other_way(args.kind, args.source, args.out, rest))
        return USAGE
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
    from libshard.convert import (
        main as run,  # this file has another name here, and so had its classes
    )

    try:
        sys.exit(run())
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
