# SPDX-License-Identifier: Apache-2.0
"""Out again: records as tars of samples, as Parquet, as Arrow tables and as DataFrames."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import struct
import tarfile
import warnings
import zlib
from bisect import bisect_left
from dataclasses import asdict, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, SupportsIndex

from ._concat import Joined, as_source
from ._dataset import Dataset, opened
from ._errors import ArgumentError, ExistsError, of_system
from ._options import as_names, as_path, public, show, stack_level, whole
from ._pack import _Progress
from ._selection import Selection
from ._tables import of_stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ._concat import Concat
    from ._description import Field
    from ._selection import Selectable
    from ._types import Path

_NUMBER = re.compile(r"%(0\d+)?d")
_IMAGE_ENDINGS = (".avif", ".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
_PASSED_OVER = re.compile(r"__([^/]*__|MACOSX)(/|\Z)")  # folders: of WebDataset's own, and of macOS
_SMALL = 1024  # bytes of a field in a record, up to which tables have it by themselves
_GROUP_BYTES = 32 << 20  # of records that are turned into a table together
_GROUP_RECORDS = 8192
_COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}  # of PNG, by channels


@public("libshard.export")
def export(
    source: Dataset | Selection | Concat | Path,
    out: Path,
    *,
    fields: Iterable[str] | None = None,
    shard_bytes: SupportsIndex = 1 << 30,
    progress: bool | Callable[[int, int | None], Any] | None = None,
) -> list[str]:
    """Write the records of a dataset to files that other libraries read; returns their paths.

    ``out`` is a name of tars with a place for their number, such as ``"out/train-%05d.tar"``, or of
    one file that ends in ``.parquet``.  ``fields``: the names of those that are wanted; by default
    all.

    Tars are in the layout of WebDataset.  A sample has the first image as ``KEY.png``, the label as
    ``KEY.cls``, further images and masks of bytes as ``KEY.NAME.png``, other arrays as
    ``KEY.NAME.npy``, strings of bytes as ``KEY.NAME.bin``, and texts, single numbers and further
    labels in ``KEY.json``.  KEY is the record's key without the ending of an image, and with ``_`` for dots in
    the name of the file, as WebDataset cuts names at the first one; of a dataset without keys it is
    the record's number.  Names of classes are in ``classes.txt`` beside the tars, for ``shardpack
    --classes``; it may be there already with the same names.  ``shard_bytes``: a tar ends behind the
    sample that comes to as many bytes.

    Parquet is written with pyarrow.  Images are PNG in a struct of ``bytes`` and ``path``, as
    Hugging Face has them: ``cast_column("image", datasets.Image())``.  Arrays are lists of lists,
    ``key`` has the keys, and the schema's metadata has ``libshard.classes``.

    bfloat16 becomes float32, which is exact.  Files come under their names when all are complete;
    if one is there already, :class:`ExistsError` is raised and nothing is written.  An export that is
    killed leaves hidden files that end in ``.part``.  ``progress``: as for :func:`pack`.
    """
    dataset, numbers = _records_of(source)
    name = as_path("out", out)
    limit = whole("shard_bytes", shard_bytes, 64, least=1)
    wanted = _fields(dataset, fields)
    with _Progress(progress, len(numbers), "exporting") as shown, _Files() as files:
        if name.endswith(".parquet"):
            _write_parquet(dataset, numbers, wanted, files.open(name), shown)
        elif name.endswith(".tar") and len(_NUMBER.findall(name)) == 1 and "%" not in _NUMBER.sub("", name):
            _write_tars(dataset, numbers, wanted, name, limit, files, shown)
        else:
            raise ArgumentError(
                f"out={show(name)}; must be a name of tars with one place for their number, such as 'out/train-%05d.tar', or "
                "of a file that ends in .parquet",
                "bad argument",
            )
        files.publish()
    return files.names


def table_of(source: Selectable, fields: Iterable[str] | None) -> Any:
    """What :meth:`Dataset.to_arrow` returns."""
    dataset, numbers = _records_of(source)
    wanted = _fields(dataset, fields)
    if fields is None:
        wanted = [f for f in wanted if f.bytes <= _SMALL and f.semantic != "image"]
    if not wanted:
        raise ArgumentError(
            f"no field has at most {_SMALL} bytes and is not an image; name those that are wanted, as in to_arrow(['image'])",
            "bad argument",
        )
    pa = _import("pyarrow", "to_arrow()")
    table = pa.Table.from_batches(list(_tables(pa, dataset, numbers, wanted)))
    left = [f.name for f in _fields(dataset, None) if fields is None and f not in wanted]
    if left:
        large = [name for name in left if dataset.schema[name].semantic != "image"]
        if large:  # images are left out of most tables on purpose
            warnings.warn(
                f"to_arrow() and to_pandas() leave out fields of more than {_SMALL:,} bytes, here {', '.join(map(show, large))}; "
                f"name all that are wanted, as in to_pandas({show([wanted[0].name, large[0]])})",
                stacklevel=stack_level(),
            )
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), "libshard.left_out": json.dumps(left)})
    return table


def frame_of(source: Selectable, fields: Iterable[str] | None) -> Any:
    """What :meth:`Dataset.to_pandas` returns."""
    _import("pandas", "to_pandas()")
    table = table_of(source, fields)
    frame = table.to_pandas()
    frame.attrs["left_out"] = json.loads((table.schema.metadata or {}).get(b"libshard.left_out", "[]"))
    return frame


def _import(name: str, what: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(f"{what} needs {name}, which is not installed: pip install {name}") from None


# ---- what is exported ----


def _records_of(source: Any) -> tuple[Dataset, range | list[int]]:
    source = as_source(source)
    if isinstance(source, Selection):
        return source.dataset, source.records.tolist()
    dataset = opened("source", source)
    return dataset, range(len(dataset))


def _derived(dataset: Dataset) -> set[str]:
    """Fields that say how long or large others are: those say it themselves, as they are exported."""
    whole_images = {f"{f.name}_size" for f in dataset.schema if f.kind == "ragged" and f.semantic == "image"}
    return whole_images | {f.name for f in dataset.schema if f.semantic == "length"}


def _fields(dataset: Dataset, names: Iterable[str] | None) -> list[Field]:
    derived = _derived(dataset)
    there = [f.name for f in dataset.schema if f.name not in derived]
    chosen = there if names is None else as_names("fields", names, "['image', 'label']")
    for name in chosen:
        if name not in there:
            raise ArgumentError(
                f"fields: {show(name)} is not a field that is exported; there are {', '.join(there)}{of_stack(dataset, name)}",
                "bad argument",
            )
    if not chosen:
        raise ArgumentError("fields: none is named; name one, or leave it out for all", "bad argument")
    return [dataset.schema[name] for name in there if name in chosen]


def _is_picture(f: Field) -> bool:
    """Can the field be a PNG of 8 bits?"""
    if f.dtype != "uint8":
        return False
    if f.semantic == "mask":
        return len(f.shape) == 2 and f.kind == "tensor"
    channels = f.shape[0 if f.layout == "chw" else -1] if f.shape else 0
    whole_image = f.kind == "ragged" and f.layout == "hwc"
    return f.semantic == "image" and channels in _COLOURS and (
        whole_image or (len(f.shape) == 3 and f.layout in ("hwc", "chw"))
    )


def _png(numpy: Any, f: Field, value: Any) -> bytes:
    pixels = numpy.asarray(value)
    if f.layout == "chw":
        pixels = pixels.transpose(1, 2, 0)
    height, width = pixels.shape[:2]
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    rows = numpy.zeros((height, 1 + width * channels), "u1")  # each begins with a filter: none
    rows[:, 1:] = pixels.reshape(height, -1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, _COLOURS[channels], 0, 0, 0)
    data = zlib.compress(rows.tobytes(), 3)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def _array(numpy: Any, value: Any) -> Any:
    """As NumPy has it; bfloat16 as float32."""
    return value.numpy() if hasattr(value, "numpy") else numpy.asarray(value)


# ---- files that come under their names when all are complete ----


class _Part(io.FileIO):
    """A file that is being written; what the system refuses names it as ``name``."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(path, "xb")
        self._shown = name

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as e:
            raise of_system(e, self._shown) from None


class _Files:
    def __init__(self) -> None:
        self.mark = os.urandom(4).hex()  # of another container a process may have our number
        self.names: list[str] = []
        self.open_files: dict[str, Any] = {}

    def __enter__(self) -> _Files:
        return self

    def _part(self, name: str) -> str:
        folder, base = os.path.split(name)
        return os.path.join(folder, f".{base}.{self.mark}.part")

    def open(self, name: str) -> Any:
        _refuse_there(name)
        try:
            f = io.BufferedWriter(_Part(self._part(name), name))
        except OSError as e:
            raise of_system(e, name) from None
        self.names.append(name)
        self.open_files[name] = f
        return f

    def share(self, name: str, data: bytes) -> None:
        """A file of these bytes, which may be there already: of a training set and its validation set."""
        if os.path.isfile(name):
            with open(name, "rb") as f:
                if f.read() == data:
                    return
        self.open(name).write(data)

    def finish(self) -> None:
        """All that are open have their bytes."""
        for name, f in self.open_files.items():
            try:
                f.flush()
                os.fsync(f.fileno())
                f.close()
            except OSError as e:
                raise of_system(e, name) from None
        self.open_files.clear()

    def publish(self) -> None:
        self.finish()
        for name in self.names:
            _refuse_there(name)
        for name in self.names:
            try:
                os.rename(self._part(name), name)
            except OSError as e:
                raise of_system(e, name) from None

    def __exit__(self, *exc: object) -> None:
        for f in self.open_files.values():
            with contextlib.suppress(OSError):  # of a full disk, again: it writes what it still holds
                f.close()
        for name in self.names:
            if os.path.exists(self._part(name)):
                os.unlink(self._part(name))


def _refuse_there(name: str) -> None:
    if os.path.lexists(name):
        raise ExistsError(f"{name}: is there already, and nothing was written; remove it, or choose another name", "exists")


# ---- tars of samples ----


def _write_tars(
    dataset: Dataset, numbers: range | list[int], fields: list[Field], name: str, limit: int, files: _Files, shown: _Progress
) -> None:
    numpy = _import("numpy", "export()")
    folder = os.path.dirname(name)
    if dataset.classes and any(f.semantic == "label" for f in fields):
        unlisted = [c for c in dataset.classes if "\n" in c or "\r" in c]
        unlisted += [c for c in dataset.classes[:1] if c.startswith("\ufeff")]
        if unlisted:
            raise ArgumentError(
                f"class {show(unlisted[0])} has a line end in its name, or the mark with which files of UTF-8 may begin, so "
                "classes.txt cannot list it; export to Parquet, or leave the label out with fields=",
                "bad argument",
            )
        number = next((i for i, c in enumerate(dataset.classes) if c.isdecimal()), None)
        if number is not None and dataset.classes != [str(i) for i in range(len(dataset.classes))]:
            raise ArgumentError(
                f"class {number} is called {show(dataset.classes[number])}, so shardpack would take the numbers of labels in "
                ".cls files for names of classes; export to Parquet, or leave the label out with fields=",
                "bad argument",
            )
        files.share(os.path.join(folder, "classes.txt"), "".join(f"{c}\n" for c in dataset.classes).encode())
    first = {next((f.name for f in fields if f.semantic == "image" and _is_picture(f)), None)}
    first |= {next((f.name for f in fields if f.semantic == "label" and not f.shape), None)}
    tar: tarfile.TarFile | None = None
    count = 0
    keys: dict[str, int] = {}
    for done, number in enumerate(numbers):
        if tar is None or tar.offset >= limit:
            if tar is not None:
                tar.close()
                files.finish()
            tar = tarfile.open(fileobj=files.open(name % count), mode="w", format=tarfile.PAX_FORMAT)
            count, keys = count + 1, {}
        key = _key(dataset, number)
        if key in keys:
            raise ArgumentError(
                f"records {keys[key]} and {number} would both be sample {show(key)} of {name % (count - 1)}, as their keys "
                f"differ in dots or endings at most: {show(dataset.key(keys[key]))} and {show(dataset.key(number))}",
                "bad argument",
            )
        keys[key] = number
        for ending, data in _members(numpy, dataset, number, fields, first):
            info = tarfile.TarInfo(f"{key}.{ending}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        shown(done + 1)
    if tar is not None:
        tar.close()


def _key(dataset: Dataset, number: int) -> str:
    key = dataset.key(number)
    if not key:
        return f"{number:09d}"
    folder, slash, base = key.lstrip("/").rpartition("/")
    if not base or ".." in folder.split("/") or slash and _PASSED_OVER.match(folder):
        raise ArgumentError(
            f"record {number} has the key {show(key)}, and readers of tars pass over files that are called so: a file needs "
            "a name behind its folder, and the folder must not lead out of the archive, nor begin with __NAME__ or "
            "__MACOSX; export to Parquet, or pack with other keys",
            "bad argument",
        )
    stem, ending = os.path.splitext(base)
    base = (stem if ending.lower() in _IMAGE_ENDINGS and stem else base).replace(".", "_")
    return folder + slash + base


def _members(
    numpy: Any, dataset: Dataset, number: int, fields: list[Field], first: set[str | None]
) -> Iterator[tuple[str, bytes]]:
    """Endings and bytes of the files of a sample.  ``first``: the image and the label that have no name there."""
    record, texts = dataset[number], {}
    for f in fields:
        value = record[f.name]
        if _is_picture(f):
            yield "png" if f.name in first else f"{f.name}.png", _png(numpy, f, value)
        elif f.semantic == "label" and f.name in first:
            yield "cls", str(int(value)).encode()
        elif isinstance(value, bytes):
            yield f"{f.name}.bin", value
        elif isinstance(value, (str, bool, int, float, list)):
            texts[f.name] = value
        elif not f.shape:
            texts[f.name] = _array(numpy, value).item()
        else:
            out = io.BytesIO()
            numpy.save(out, numpy.ascontiguousarray(_array(numpy, value)), allow_pickle=False)
            yield f"{f.name}.npy", out.getvalue()
    if texts:
        yield "json", json.dumps(texts, ensure_ascii=False).encode()


# ---- tables ----


def _by_part(dataset: Dataset, numbers: range | list[int]) -> Iterator[tuple[Dataset, range | list[int]]]:
    """Of a concatenation: each dataset and the numbers there.  They may store their records in different ways."""
    end = 0
    for part in dataset.parts if isinstance(dataset, Joined) else (dataset,):
        first, end = end, end + len(part)
        piece = numbers[bisect_left(numbers, first) : bisect_left(numbers, end)]  # they ascend
        if isinstance(piece, range):
            yield part, range(piece.start - first, piece.stop - first)
        else:
            yield part, [number - first for number in piece]


def _write_parquet(dataset: Dataset, numbers: range | list[int], fields: list[Field], f: Any, shown: _Progress) -> None:
    pa = _import("pyarrow", "export() to Parquet")
    parquet = import_module("pyarrow.parquet")
    writer, done = None, 0
    try:
        for batch in _tables(pa, dataset, numbers, fields):
            writer = writer or parquet.ParquetWriter(f, batch.schema)
            writer.write_batch(batch)
            done += batch.num_rows
            shown(done)
    finally:
        if writer is not None:
            writer.close()


def _tables(pa: Any, dataset: Dataset, numbers: range | list[int], fields: list[Field]) -> Iterator[Any]:
    """The records as record batches."""
    numpy = _import("numpy", "a table")
    parts = dataset.parts if isinstance(dataset, Joined) else (dataset,)
    has_keys = any(len(part) and part.key(0) for part in parts)
    if has_keys and any(f.name == "key" for f in fields):
        has_keys = False
        warnings.warn(
            "the dataset has keys, and a field 'key', which has the column of that name, so the keys are not in the table; "
            "without that field, by fields=, they are",
            stacklevel=stack_level(),
        )
    axes = {f["name"]: f["ragged_axes"] for f in dataset._fields()}
    for f in fields:
        if f.kind == "ragged" and axes[f.name] != 1:
            raise ArgumentError(
                f"field {f.name!r} varies along other axes than the first, which tables cannot have; fields= leaves it out",
                "bad argument",
            )
    each = max(1, min(_GROUP_RECORDS, _GROUP_BYTES // (1 + sum(f.bytes for f in fields))))
    metadata = _metadata(dataset, fields)
    for part, inside in _by_part(dataset, numbers):
        for begin in range(0, len(inside), each):
            batch = _batch(pa, numpy, part, inside[begin : begin + each], fields, has_keys)
            yield batch.replace_schema_metadata(metadata)


def _metadata(dataset: Dataset, fields: list[Field]) -> dict[str, str]:
    """What columns do not say, for anyone who packs the table again: _tables.py reads it."""
    # bfloat16 is exported as float32, and an image as a file.
    told = [f for f in fields if not _is_file(f)]
    told = [replace(f, group=-1, bytes=0, dtype={"bfloat16": "float32"}.get(f.dtype, f.dtype)) for f in told]
    columns = {field: names for field, names in dataset.columns.items() if field in [f.name for f in fields]}
    said = {"schema": [asdict(f) for f in told], "columns": columns, "classes": dataset.classes}
    return {f"libshard.{name}": json.dumps(value, ensure_ascii=False) for name, value in said.items() if value}


def _is_file(f: Field) -> bool:
    return _is_picture(f) and f.semantic == "image"


def _batch(pa: Any, numpy: Any, dataset: Dataset, numbers: range | list[int], fields: list[Field], has_keys: bool) -> Any:
    rows = dataset[numbers.start : numbers.stop] if isinstance(numbers, range) else dataset[numbers]
    one_by_one = any(f.kind != "tensor" or _is_picture(f) for f in fields)
    records = [dataset[i] for i in numbers] if one_by_one else []
    columns = {"key": pa.array([dataset.key(i) for i in numbers], pa.string())} if has_keys else {}
    for f in fields:
        columns[f.name] = _column(pa, numpy, f, rows, records)
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _column(pa: Any, numpy: Any, f: Field, rows: Any, records: list[Any]) -> Any:
    if _is_file(f):
        pictures = [{"bytes": _png(numpy, f, r[f.name]), "path": None} for r in records]
        return pa.array(pictures, pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
    if f.kind == "tensor":
        values = _array(numpy, rows[f.name])
        return _nested(pa, numpy, values, values.shape[1:])
    values = [r[f.name] for r in records]
    if values and isinstance(values[0], (str, bytes)):
        return pa.array(values, pa.string() if isinstance(values[0], str) else pa.binary())
    if values and isinstance(values[0], list):
        return pa.array(values, pa.list_(pa.string()))
    arrays = [_array(numpy, v) for v in values]
    ends = numpy.cumsum([0, *(len(a) for a in arrays)], dtype="i4")
    inner = _nested(pa, numpy, numpy.concatenate(arrays), arrays[0].shape[1:])
    return pa.ListArray.from_arrays(pa.array(ends), inner)


def _nested(pa: Any, numpy: Any, values: Any, shape: tuple[int, ...]) -> Any:
    """An array [n, ...shape] as lists of lists of fixed length."""
    column = pa.array(numpy.ascontiguousarray(values).reshape(-1))
    for length in reversed(shape):
        column = pa.FixedSizeListArray.from_arrays(column, length)
    return column
