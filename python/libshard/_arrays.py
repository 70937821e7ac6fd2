# SPDX-License-Identifier: Apache-2.0
"""Groups of arrays in files of HDF5 and folders of Zarr, as columns that a writer takes.

Each process opens the file for itself when it first reads, so no handle crosses a fork.  Arrays that
lie in chunks are read in blocks of whole chunks, since a part of one costs as much as all of it.  Of
all others, rows that follow each other are read ahead, since h5py takes 0.1 ms for any call.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import warnings
from collections.abc import Container, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

from ._description import Field
from ._errors import ArgumentError, CorruptError, MismatchError, of_system
from ._options import show, stack_level
from ._schema import SchemaLike, dtype_name, parse, with_meaning
from ._tables import Packed, SourceFile, module_of, named_label, refuse, warn_of_names

_BLOCK_BYTES = 4 << 20  # to read at once, if that is several chunks or rows
_GAP_BYTES = 64 << 10  # between rows that are wanted, to read as well: that takes less time than another call
_FILES_AHEAD = 32  # rows of files, whose bytes nobody knows before
_CHUNK_BYTES_MAX = 256 << 20  # of a chunk that is kept; parts of a larger one are read again and again
_ENDINGS = (".h5", ".hdf5", ".zarr")
_NAMES = ("classes", "class_names")  # of attributes that list the names of classes
_SCALES = {"scale_factor": 1, "add_offset": 0}  # attributes, and what they are if they change nothing
_MISSING = ("_FillValue", "missing_value")
_FLAGS = ("flag_meanings", "flag_values", "flag_masks")
_CHOOSE = "name the arrays that are wanted in a schema, as {'image': None, 'label': None}"


class _Arrays(SourceFile):
    """A group of arrays, open in the process that uses it."""

    library: str
    decodes_chunks = False  # of arrays whose values vary in length, for any row of them

    def __init__(self, path: str, group: str = "/") -> None:
        super().__init__(path)
        self.group = group
        self.handle: Any = None
        self.pid = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.group)  # the parent looks whether it has changed

    def __str__(self) -> str:
        return self.path + (f", group {show(self.group)}" if self.group.strip("/") else "")

    def open(self) -> Any:
        if self.handle is None or self.pid != os.getpid():
            try:
                library = import_module(self.library)
            except ImportError:
                raise ArgumentError(
                    f"{self.path}: reading it needs {self.library}; pip install {self.library}", "bad argument"
                ) from None
            try:
                os.stat(self.path)
                self.handle, self.pid = self._open(library), os.getpid()
            except ArgumentError:
                raise
            except Exception as e:
                self.fail(e, "it")
        return self.handle

    def _open(self, library: Any) -> Any:
        raise NotImplementedError

    def fail(self, e: Exception, what: str) -> NoReturn:
        if isinstance(e, MemoryError):
            raise e
        if "already open for write" in str(e):  # so says a mark in a file of HDF5
            refuse(f"{self.path}: is being written, or its writer was killed before it closed the file",
                   "wait until it is closed; after a kill, check what is in it, and remove the mark with h5clear -s")  # fmt: skip
        if isinstance(e, OSError) and e.errno:
            raise of_system(e, f"{self}: {what}" if what != "it" else self.path) from None
        raise CorruptError(
            f"{self}: {self.library} cannot read {what}: {e}; compare it with its original", "damaged"
        ) from e

    def names(self) -> dict[str, bool]:
        """What is in the group; True for arrays."""
        raise NotImplementedError

    def paths(self, names: list[str]) -> list[str]:
        """Where these arrays lie."""
        raise NotImplementedError

    def texts(self, array: Any) -> list[Any] | None:
        """All values of an array of texts or bytes; None of numbers."""
        raise NotImplementedError

    def refuse(self, array: Any) -> str | None:
        """What is wrong with an array, apart from its dtype."""

    def are_files(self, array: Any) -> bool:
        """May its values be files of images?"""
        raise NotImplementedError

    def stored(self, array: Any) -> tuple[int, int]:
        """How many parts of it are stored, and how many it has."""
        raise NotImplementedError

    def enumeration(self, array: Any) -> dict[str, int]:
        """Names that its dtype has for its numbers."""
        return {}

    def first_dimension(self, array: Any) -> list[str]:
        """What the axis of its records is called: each of these names means it."""
        raise NotImplementedError


class _Hdf5(_Arrays):
    library = "h5py"

    def _open(self, library: Any) -> Any:
        return library.File(self.path, "r")[self.group]

    def release(self) -> None:
        if self.handle is not None and self.pid == os.getpid():
            self.handle.file.close()
        self.handle = None

    def names(self) -> dict[str, bool]:
        return {name: hasattr(item, "shape") for name, item in self.open().items()}

    def paths(self, names: list[str]) -> list[str]:
        return sorted({self.path, *(os.path.abspath(self.open()[name].file.filename) for name in names)})  # links lead elsewhere

    def texts(self, array: Any) -> list[Any] | None:
        is_text = import_module("h5py").check_string_dtype(array.dtype) is not None
        return array.asstr()[:].tolist() if is_text else None

    def _varying(self, array: Any) -> Any:
        """The dtype of rows that have different lengths; text is not meant."""
        inner = import_module("h5py").check_vlen_dtype(array.dtype)
        return None if inner in (str, bytes) else inner

    def refuse(self, array: Any) -> str | None:
        inner = self._varying(array)
        if inner is not None:
            return f"has rows of different lengths, of {inner}; give arrays of one length, or read them in a generator"
        if array.is_virtual:
            return "is virtual, and parts that are not there would be read as fill values; copy it to an array of its own"
        if array.external:
            return (f"lies in other files, such as {show(array.external[0][0])}, and what is cut from them would be read as "
                    "zeros; copy it to an array of its own")  # fmt: skip
        return None

    def are_files(self, array: Any) -> bool:
        return getattr(self._varying(array), "name", "") == "uint8"

    def stored(self, array: Any) -> tuple[int, int]:
        if array.chunks is None:
            return int(array.id.get_storage_size() > 0), 1
        return array.id.get_num_chunks(), math.prod(-(-n // c) for n, c in zip(array.shape, array.chunks))

    def enumeration(self, array: Any) -> dict[str, int]:
        return import_module("h5py").check_enum_dtype(array.dtype) or {} if array.dtype.kind != "b" else {}

    def first_dimension(self, array: Any) -> list[str]:
        scales = [array] if array.is_scale and array.ndim == 1 else []
        with contextlib.suppress(Exception):  # a link that leads nowhere says nothing
            scales += array.dims[0].values()
            return [name for name in (array.dims[0].label, *(s.name.rpartition("/")[2] for s in scales if s.name)) if name]
        return []


class _Zarr(_Arrays):
    library = "zarr"
    decodes_chunks = True

    def _open(self, library: Any) -> Any:
        # What is there, and not the summary of consolidated metadata, which may be older than the arrays.
        try:
            return library.open_group(self.path, path=self.group.strip("/"), mode="r", use_consolidated=False)
        except library.errors.ContainsArrayError:
            raise ArgumentError(
                f"{self}: is one array of Zarr, and pack() reads groups, whose arrays are fields; give the folder of its "
                "group, or a dict: {'image': zarr.open_array(path, mode='r')[:]}",
                "bad argument",
            ) from None

    def names(self) -> dict[str, bool]:
        return {name: hasattr(item, "shape") for name, item in self.open().members()}

    def paths(self, names: list[str]) -> list[str]:
        return [os.path.join(self.path, self.group.strip("/"), name) for name in names]

    def texts(self, array: Any) -> list[Any] | None:
        return array[:].tolist() if array.dtype.kind in "USTO" else None

    def are_files(self, array: Any) -> bool:
        return array.dtype.kind in "SO"

    def stored(self, array: Any) -> tuple[int, int]:
        return array.nchunks_initialized, array.nchunks

    def first_dimension(self, array: Any) -> list[str]:
        # of version 3, and what xarray writes into one of version 2
        found = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")
        return [found[0]] if isinstance(found, (list, tuple)) and found and isinstance(found[0], str) and found[0] else []


class _Column:
    """An array whose rows are records."""

    def __init__(self, file: _Arrays, name: str, shape: tuple[int, ...], dtype: str, chunk: int) -> None:
        self.file, self.name, self.shape, self.dtype, self.chunk = file, name, shape, dtype, chunk
        numpy = import_module("numpy")
        row_bytes = max(1, math.prod(shape[1:]) * (1 if dtype == "object" else numpy.dtype(dtype).itemsize))
        self.block = 0  # rows to read at once; 0: those that are wanted, and some ahead
        if dtype == "object":
            self.block = chunk if file.decodes_chunks else 0
        elif chunk > 1 and chunk * row_bytes <= _CHUNK_BYTES_MAX:
            self.block = chunk * max(1, _BLOCK_BYTES // (chunk * row_bytes))
        self.ahead, self.most = 0, _FILES_AHEAD if dtype == "object" else _BLOCK_BYTES // row_bytes
        self.gap = _GAP_BYTES // row_bytes
        self.kept: tuple[int, Any] = -1, ()  # the first row of a block, and its rows

    def __reduce__(self) -> tuple[Any, ...]:
        return _Column, (self.file, self.name, self.shape, self.dtype, self.chunk)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            first, stop, _ = rows.indices(len(self))
            return self._rows(first, max(first, stop))
        if not isinstance(rows, list):
            return self._rows(rows, rows + 1)[0]
        numpy = import_module("numpy")
        out = numpy.empty((len(rows), *self.shape[1:]), self.dtype)
        places = numpy.argsort(rows)
        sorted_rows = numpy.asarray(rows)[places]
        ends = numpy.append(numpy.flatnonzero(numpy.diff(sorted_rows) > max(1, self.gap)) + 1, len(rows))
        at = 0
        while at < len(rows):  # rows that lie near each other are read together
            first = int(sorted_rows[at])
            end = int(min(ends[numpy.searchsorted(ends, at, "right")],
                          numpy.searchsorted(sorted_rows, first + max(1, self.most))))  # fmt: skip
            out[places[at:end]] = self._rows(first, int(sorted_rows[end - 1]) + 1)[sorted_rows[at:end] - first]
            at = end
        return out

    def _rows(self, first: int, stop: int) -> Any:
        if not self.block:
            return self._rows_ahead(first, stop)
        parts, at = [], first
        while at < stop or not parts:
            begin = at // self.block * self.block
            if self.kept[0] != begin:
                try:
                    self.kept = begin, self._read(begin, min(begin + self.block, len(self)))
                except CorruptError:
                    if self.block == self.chunk:
                        raise
                    self.block, self.kept = self.chunk, (-1, ())  # only rows of the bad chunk cannot be read
                    continue
            end = min(begin + self.block, stop)
            parts.append(self.kept[1][at - begin : end - begin])
            at = end
        return parts[0] if len(parts) == 1 else import_module("numpy").concatenate(parts)

    def _rows_ahead(self, first: int, stop: int) -> Any:
        """As long as rows follow each other, twice as many are read each time."""
        begin, rows = self.kept
        end = begin + len(rows)
        if not begin <= first <= stop <= end:
            self.ahead = min(2 * self.ahead + 1, self.most) if begin <= first <= end else 0
            begin, self.kept = first, (-1, ())
            if stop - first < self.ahead:
                with contextlib.suppress(CorruptError):  # what cannot be read lies behind it, perhaps
                    self.kept = first, self._read(first, min(first + self.ahead, len(self)))
            if self.kept[0] < 0:
                self.kept = first, self._read(first, stop)
            rows = self.kept[1]
            if self.dtype == "object" and len(rows):
                self.most = max(1, min(_FILES_AHEAD, _BLOCK_BYTES * len(rows) // (1 + sum(map(len, rows)))))
        return rows[first - begin : stop - begin]

    def _read(self, first: int, stop: int) -> Any:
        try:
            array = self.file.open()[self.name]
            values = array[first:stop] if array.shape == self.shape else None
        except Exception as e:
            self.file.fail(e, f"rows {first} to {stop - 1} of array {show(self.name)}")
        if values is None:
            raise MismatchError(
                f"{self.file}: array {show(self.name)} has the shape {list(array.shape)} now, and had {list(self.shape)}; it "
                "must not change while it is packed",
                "changed",
            )
        return values if self.dtype == "object" else values.astype(self.dtype, copy=False)


class _Columns(Mapping[str, Any]):
    """The columns of a group.  ``open_group``: an open file of the caller, which must not cross a fork."""

    def __init__(self, columns: dict[str, Any], open_group: Any = None) -> None:
        self.columns, self.open_group = columns, open_group

    def __reduce__(self) -> tuple[Any, ...]:
        return _Columns, (self.columns,)

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)


def is_arrays(source: Any) -> bool:
    """Is it a file of HDF5, a folder of Zarr, or a group of either that is open?"""
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        in_folder = isinstance(path, str) and any(os.path.exists(os.path.join(path, n)) for n in ("zarr.json", ".zgroup"))
        return isinstance(path, str) and (path.rstrip("/").lower().endswith(_ENDINGS) or in_folder)
    return module_of(source) in ("h5py", "zarr") and type(source).__name__ in ("File", "Group")


def _file_of(source: Any) -> _Arrays:
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        return _Hdf5(path) if path.lower().endswith((".h5", ".hdf5")) else _Zarr(path)
    if module_of(source) == "h5py":
        if not source:
            raise ArgumentError("the source is an h5py.File that is closed; give its path", "bad argument")
        if source.file.mode != "r" or not os.path.isfile(source.file.filename):
            raise ArgumentError(
                f"{source.file.filename}: is open with mode {show(source.file.mode)}, and each process opens the file for "
                "itself; close it, and give its path or h5py.File(path, 'r')",
                "bad argument",
            )
        return _Hdf5(os.path.abspath(source.file.filename), source.name)
    root = getattr(source.store, "root", None)
    if type(source.store).__name__ != "LocalStore" or root is None:
        raise ArgumentError(
            f"the group lies in a {type(source.store).__name__}, and pack() reads folders of Zarr; copy it to one",
            "bad argument",
        )
    return _Zarr(os.path.abspath(os.fspath(root)), source.path)


def pack_arrays(source: Any, schema: SchemaLike | None, key: Any, images: Container[str], is_named: bool) -> Packed:
    """Read what is in a group: all of it, or what a schema chooses."""
    file = _file_of(source)
    try:
        return _pack(file, source, schema, key, images, is_named)
    finally:
        file.release()


def _pack(file: _Arrays, source: Any, schema: SchemaLike | None, key: Any, images: Container[str], is_named: bool) -> Packed:
    group, there = file.open(), file.names()
    wanted = None if schema is None else parse(schema)
    is_key = key if isinstance(key, str) else None
    absent = [n for n, f in (wanted or {}).items() if n not in there and not (f and f.semantic == "length")]
    if absent:
        refuse(f"{file}: has no array {show(absent[0])}; it has {show(sorted(there))}", "name these in the schema")
    names = [n for n in sorted(there) if wanted is None or n in wanted or n == is_key]
    inner = [n for n in names if not there[n]]
    if inner:
        if group.get(inner[0]) is None:
            refuse(f"{file}: {show(inner[0])} is a link that leads nowhere", f"mend it, or {_CHOOSE}")
        remedy = f"give the group itself, as {_as_object(file, inner[0])}, or {_CHOOSE}"
        refuse(f"{file}: {show(inner[0])} is a group in it, and records come of the arrays of one group", remedy)
    if not names:
        refuse(f"{file}: has no arrays", "give the path of a group that has some")
    file.places = file.paths(names)
    try:
        file.said = file.state()
    except OSError as e:  # a link that leads nowhere
        file.fail(e, os.path.relpath(e.filename, file.path))
    lengths = {name: group[name].shape[0] if group[name].shape else None for name in names}
    single = [name for name, length in lengths.items() if length is None]
    if single:
        refuse(f"{file}: array {show(single[0])} is one value, without a row for each record", _CHOOSE)
    if len(set(lengths.values())) > 1:
        refuse(f"{file}: the arrays have different lengths: {show(lengths)}; must be the same", _CHOOSE)
    _refuse_dimensions(file, {name: file.first_dimension(group[name]) for name in names})
    columns, fields = dict[str, Any](), dict[str, Field | None](wanted or {})
    for name in names:
        columns[name], field = _column(file, name, group[name], name in images and name != is_key)
        if name != is_key and fields.get(name) is None:
            fields[name] = field
            if field is not None:
                _refuse_encoded(f"{file}: array {show(name)}", field, group[name])
    label = named_label(fields)
    classes = None if is_named or label not in there else _classes(file, group, label)
    for name in names:
        if name != label and name in fields and (found := file.enumeration(group[name])):
            warn_of_names(name, len(found), label)
    return Packed(_Columns(columns, None if isinstance(source, (str, os.PathLike)) else source), fields, classes, "", file)


def _as_object(file: _Arrays, name: str) -> str:
    inner = "/".join(part for part in (file.group.strip("/"), name) if part)
    return f"h5py.File({file.path!r})[{inner!r}]" if isinstance(file, _Hdf5) else repr(os.path.join(file.path, inner))


def _column(file: _Arrays, name: str, array: Any, is_image: bool) -> tuple[Any, Field | None]:
    """An array as a column, and the field that it would be."""
    what, chunks = f"{file}: array {show(name)}", array.chunks
    wrong = file.refuse(array) if not is_image else None
    if wrong:
        raise ArgumentError(f"{what} {wrong}", "bad argument")
    if is_image:
        if not file.are_files(array):
            refuse(f"{what} ({array.dtype}) is not files of images, which libshard.Image decodes",
                    "give the bytes of each file; arrays of pixels need a type such as u8[32,32,3]")  # fmt: skip
        _warn_of_parts(file, what, array)
        return _Column(file, name, array.shape, "object", chunks[0] if chunks else 0), None
    try:
        texts = file.texts(array)
    except UnicodeDecodeError as e:
        refuse(f"{what} is said to be text in {e.encoding}, and has other bytes: {e}",
               "read it with h5py, and give its values in a dict of columns")  # fmt: skip
    except Exception as e:
        file.fail(e, f"the texts of array {show(name)}")
    if texts is not None:
        _warn_of_parts(file, what, array)
        return texts, None  # which the writer tells, as it does of a list
    dtype = dtype_name(array.dtype.newbyteorder("=").name)
    if dtype is None:
        parts_of = array.dtype.names
        remedy = f"give each of its parts {show(list(parts_of))} an array of its own" if parts_of else "give it as numbers or text"
        refuse(f"{what} ({array.dtype}) is not numbers or text", remedy)
    _warn_of_parts(file, what, array)
    column = _Column(file, name, array.shape, dtype, chunks[0] if chunks else 0)
    return column, with_meaning(name, dtype, array.shape[1:])


def _refuse_dimensions(file: _Arrays, dimensions: Mapping[str, Sequence[str]]) -> None:
    """Rows of arrays that are as long as each other by chance are not of one record."""
    named = {name: found for name, found in dimensions.items() if found}
    first = next(iter(named), "")
    for name, found in named.items():
        if not {*found} & {*named[first]}:
            refuse(f"{file}: the first axis of array {show(first)} is called {show(named[first][0])}, and that of {show(name)} "
                   f"{show(found[0])}, so their rows are not of one record",
                   f"{_CHOOSE}; if they are, give a dict of arrays, as {{{first!r}: group[{first!r}][:], ...}}")  # fmt: skip


def _refuse_encoded(what: str, field: Field, array: Any) -> None:
    """Numbers that stand for others, as NetCDF and xarray write them."""
    numpy = import_module("numpy")
    units, unsigned = (_text_of(array.attrs.get(name)) for name in ("units", "_Unsigned"))
    said = {name: numpy.asarray(array.attrs[name]) for name in (*_SCALES, *_MISSING) if name in array.attrs}
    shape = f"[{','.join(map(str, field.shape))}]" if field.shape else ""
    meant = f"if its numbers are meant as they are, give their type in the schema, as {{{field.name!r}: '{field.dtype}{shape}'}}"
    for name, usual in _SCALES.items():
        if name in said and not numpy.all(said[name] == usual):
            refuse(f"{what} has the attribute {name}={show(said[name].tolist())}, so its numbers stand for others",
                   f"write the numbers that they stand for; {meant}")  # fmt: skip
    if re.search(r"\bsince\b", units):
        refuse(f"{what} has the attribute units={show(units)}, so its numbers stand for times",
               f"write the numbers that you mean, such as seconds since a day of yours; {meant}")  # fmt: skip
    if (unsigned.lower(), array.dtype.kind) in (("true", "i"), ("false", "u")):
        refuse(f"{what} ({array.dtype}) has the attribute _Unsigned={show(unsigned)}, so its numbers stand for others",
               f"write them {'without' if array.dtype.kind == 'i' else 'with'} a sign, as xarray.open_dataset(path) reads them; "
               f"{meant}")  # fmt: skip
    flag = next((name for name in _FLAGS if name in array.attrs), None)
    if flag is not None:
        warnings.warn(
            f"{what} has the attribute {flag}={show(_listed(array.attrs[flag]))}, which says what its numbers mean; a dataset does not keep it. "
            f"classes=[...] names the classes of a label; {meant}",
            stacklevel=stack_level(),
        )
    for name in _MISSING:
        if name in said and said[name].dtype.kind in "iuf" and not numpy.isnan(said[name]).all():
            warnings.warn(
                f"{what} has the attribute {name}={show(said[name].tolist())}; a value that is missing is packed as this number; "
                f"{meant}",
                stacklevel=stack_level(),
            )
            break


def _warn_of_parts(file: _Arrays, what: str, array: Any) -> None:
    """A chunk that nobody wrote, and one that was lost, look the same."""
    stored, parts = file.stored(array)
    if stored < parts and array.size:
        fill = array.fillvalue if hasattr(array, "fillvalue") else array.fill_value
        warnings.warn(
            f"{what}: only {stored:,} of its {parts:,} chunks are stored, and each value of the others is {fill}; if they "
            "were written once, the data is damaged",
            stacklevel=stack_level(),
        )


def _classes(file: _Arrays, group: Any, label: str) -> list[str] | None:
    """Names of classes: of the label's dtype, or of an attribute of the label or the group."""
    numbers = file.enumeration(group[label])
    names = sorted(numbers, key=numbers.__getitem__)
    if [numbers[name] for name in names] != [*range(len(names))]:
        refuse(
            f"{file}: the enumeration of array {show(label)} has the numbers {show(sorted(numbers.values()))}, and classes "
            "have 0, 1, 2 and so on",
            "write them so, or name the classes by classes=[...]",
        )
    found: dict[str, list[str] | None] = {"the enumeration": names}
    for what, holder in (("the label", group[label]), ("the group", group)):
        for name in _NAMES:
            found[f"attribute {name!r} of {what}"] = _texts_of(holder.attrs.get(name))
    named = {what: texts for what, texts in found.items() if texts}
    if len({*map(tuple, named.values())}) > 1:
        said = "; ".join(f"{what} has {show(texts)}" for what, texts in named.items())
        refuse(f"{file}: the names of classes are said twice, and differ: {said}", "say which hold by classes=[...]")
    return next(iter(named.values()), None)


def _listed(value: Any) -> Any:
    """An attribute that may be an array, as lists of Python."""
    return value.tolist() if hasattr(value, "tolist") else value


def _text_of(value: Any) -> str:
    """Of an attribute that is a text, or a list of one; an empty one of all else."""
    listed = _listed(value)
    value = listed[0] if isinstance(listed, list) and len(listed) == 1 else listed
    return value.decode(errors="replace") if isinstance(value, bytes) else value if isinstance(value, str) else ""


def _texts_of(value: Any) -> list[str] | None:
    """Of an attribute that is a list of texts."""
    listed = _listed(value)
    if not isinstance(listed, (list, tuple)) or not all(isinstance(v, (str, bytes)) for v in listed):
        return None
    return [v.decode() if isinstance(v, bytes) else v for v in listed]
