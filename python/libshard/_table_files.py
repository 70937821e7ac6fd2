# SPDX-License-Identifier: Apache-2.0
"""Files of Parquet and Arrow as columns, of which a group of rows is in memory at a time.

A group is a row group of Parquet, or a record batch of Arrow.  Each process opens the file for itself
when it first reads, so no handle crosses a fork, and a worker reads only the groups of its shards.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import os
from collections.abc import Callable, Collection, Iterator
from importlib import import_module
from itertools import accumulate, islice
from typing import Any

from ._errors import ArgumentError, of_system
from ._schema import Stored
from ._tables import SourceFile, arrow_column, files_of, missing_items, module_of, refuse, refuse_nulls


_FOLDERS_MOST = 100  # in which to look for a file of a table, to say what to give instead


def is_table_file(source: Any) -> bool:
    return isinstance(source, (str, os.PathLike)) and str(source).lower().endswith((".parquet", ".arrow"))


def table_instead(source: Any) -> str | None:
    """Of a table that pack() does not read by itself: the table to give."""
    if not isinstance(source, (str, os.PathLike)):
        return "what its to_table() returns" if module_of(source) == "pyarrow" and hasattr(source, "to_table") else None
    path = str(source)
    ending = os.path.splitext(path)[1].lower()
    if ending in (".csv", ".tsv"):
        return f"pandas.read_csv({path!r}{', sep=' + repr(chr(9)) if ending == '.tsv' else ''})"
    if ending == ".feather":
        return f"pyarrow.feather.read_table({path!r})"
    with contextlib.suppress(ValueError):  # no path can be called so
        for _, _, names in islice(os.walk(path), _FOLDERS_MOST):
            found = next(filter(is_table_file, names), None)
            if found:
                of_arrow = ", format='arrow'" if found.lower().endswith(".arrow") else ""
                return f"pyarrow.dataset.dataset({path!r}{of_arrow}).to_table()"
    return None


@contextlib.contextmanager
def _reading(path: str) -> Iterator[Any]:
    try:
        pyarrow, _ = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        refuse(f"{path}: reading it needs pyarrow", "pip install pyarrow")
    try:
        yield pyarrow
    except (pyarrow.ArrowException, OSError) as e:
        if isinstance(e, OSError) and e.errno:
            raise of_system(e, path) from None
        refuse(f"{path}: pyarrow cannot read it: {e}", "compare the file with its original")


class TableFile(SourceFile):
    """A file of a table, open in the process that uses it."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.shown = path
        self.handle: Any = None  # a ParquetFile, a reader of record batches, or a list of these
        self.pid = 0
        if os.path.isdir(path):
            refuse(f"{path}: is a folder, and pack() reads one file", "give pyarrow.dataset.dataset(path).to_table()")
        if any(c in path for c in "*?[") and not os.path.exists(path):
            refuse(f"{path}: is a pattern, and pack() reads one file",
                   "give pyarrow.dataset.dataset(sorted(glob.glob(pattern))).to_table()")  # fmt: skip
        with _reading(path):
            self.said = self.state()
        handle = self.open()
        self.is_parquet = hasattr(handle, "num_row_groups")
        self.schema = handle.schema_arrow if self.is_parquet else handle[0].schema if isinstance(handle, list) else handle.schema
        if self.is_parquet:
            sizes = [handle.metadata.row_group(g).num_rows for g in range(handle.num_row_groups)]
        else:
            with _reading(path):
                sizes = [self._batch(g).num_rows for g in range(self._batch_count())]
        self.ends: list[int] = [*accumulate(sizes)]  # of each group, the row behind it

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_whole"} | {"handle": None}

    def _batch_count(self) -> int:
        return len(self.handle) if isinstance(self.handle, list) else self.handle.num_record_batches

    def open(self) -> Any:
        if self.handle is not None and self.pid == os.getpid():
            return self.handle
        with _reading(self.shown) as pyarrow:
            self.check()
            if self.path.lower().endswith(".parquet"):
                self.handle = pyarrow.parquet.ParquetFile(self.path)
            else:
                mapped = pyarrow.memory_map(self.path)
                is_file = mapped.read(6) == b"ARROW1"
                mapped.seek(0)
                if is_file:
                    self.handle = pyarrow.ipc.open_file(mapped)
                else:  # datasets of Hugging Face are streams
                    table = pyarrow.ipc.open_stream(mapped).read_all()
                    self._check_end(mapped)
                    self.handle = table.to_batches() or [pyarrow.RecordBatch.from_pylist([], table.schema)]
            self.pid = os.getpid()
        return self.handle

    def _check_end(self, mapped: Any) -> None:
        """A stream of which all has been read ends with a mark, and the file ends there, too."""
        end, size = mapped.tell(), mapped.size()
        if end < size:
            refuse(
                f"{self.shown}: has {size - end:,} bytes behind the end of its stream, perhaps a second one",
                "read each stream with pyarrow.ipc.open_stream(), and give pyarrow.concat_tables() of them",
            )
        mark = b"\xff\xff\xff\xff\0\0\0\0"
        mapped.seek(0)
        is_old = mapped.read(4) != mark[:4]  # before Arrow 0.15 the mark was zeros, as the end of a column may be
        mapped.seek(size - len(mark))
        if mapped.read() != mark and not is_old:
            refuse(
                f"{self.shown}: its stream has no mark at its end, so it may be cut, or its writer was stopped, and rows "
                "may be missing",
                "compare the file with its original; if it is whole, give pyarrow.ipc.open_stream(path).read_all()",
            )

    def release(self) -> None:
        self.handle = None

    def read(self, group: int, name: str) -> Any:
        """A column of a group as a table."""
        handle = self.open()
        with _reading(self.shown) as pyarrow:
            if self.is_parquet:
                return handle.read_row_group(group, columns=[name], use_threads=False)
            return pyarrow.Table.from_batches([self._batch(group)]).select([name])

    def _batch(self, group: int) -> Any:
        handle = self.open()
        return handle[group] if isinstance(handle, list) else handle.get_batch(group)

    def table(self, shuffled: bool, wanted: Collection[Any] | None) -> tuple[Any, Callable[[str, bool], Any] | None]:
        """What pack_table() takes.  Rows in any order, or none at all, come from memory, since each may need another group.

        ``wanted``: names of columns, among other things; None: all of them.
        """
        if not shuffled and self.ends and self.ends[-1]:
            return self.schema.empty_table(), functools.partial(StoredColumn, self)
        with _reading(self.shown) as pyarrow:
            if self.is_parquet:
                return self.open().read(None if wanted is None else [n for n in self.schema.names if n in wanted] or None), None
            return pyarrow.Table.from_batches([*map(self._batch, range(self._batch_count()))], self.schema), None

    @functools.cached_property
    def _whole(self) -> set[str]:
        """Leaves of columns of Parquet that have no null in any group, as statistics say."""
        metadata = self.open().metadata
        found = dict[str, bool]()
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            for column in map(group.column, range(group.num_columns)):
                said = column.statistics
                is_whole = said is not None and said.has_null_count and not said.null_count
                found[column.path_in_schema] = found.get(column.path_in_schema, True) and is_whole
        return {path for path, is_whole in found.items() if is_whole}

    def missing(self, name: str, count: Callable[[Any], list[tuple[int, int]]]) -> list[tuple[int, int]]:
        """How many values of a column are null, and of how many: sums of each pair that ``count`` tells of a part.

        Empty if statistics say that none is.
        """
        is_alone = not any(other.startswith(name + ".") for other in self.schema.names)  # "a.b" may be a column of its own
        # a null of the column is a null of each of its leaves
        if self.is_parquet and is_alone and any((path + ".").startswith(name + ".") for path in self._whole):
            return []
        counts = [count(self.read(group, name).column(name)) for group in range(len(self.ends))]
        return [(sum(missing for missing, _ in pairs), sum(values for _, values in pairs)) for pairs in zip(*counts)]


class StoredColumn(Stored):
    """A column of a file.  ``image``: its values are files of images, of which one at a time becomes an object of Python."""

    def __init__(self, file: TableFile, name: str, image: bool) -> None:
        self.file, self.name, self.image = file, name, image
        self.kept: tuple[int, Any] = -1, None  # a group, and its values, or the error if it is damaged
        dtype = file.schema.field(name).type
        has_items = str(dtype).startswith("fixed_size_list") and not image

        def count(column: Any) -> list[tuple[int, int]]:
            return [(column.null_count, len(column)), *([missing_items(column)] if has_items else [])]

        for missing, values in file.missing(name, count):
            refuse_nulls(name, dtype, missing, values)
        self.names: list[str] | None = None  # of a category
        if image or not str(dtype).startswith("dictionary"):
            first = self._group(0)
        else:  # the groups have different ones
            self.names = []
            for group in range(len(file.ends)):
                _, found = arrow_column(file.read(group, name), 0, name)
                self.names += [text for text in found or () if text not in self.names]
            first = []
        if hasattr(first, "dtype"):
            self.dtype, self.ndim, self.shape = first.dtype, first.ndim, (len(self), *first.shape[1:])
        self.kept = -1, None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "kept": (-1, None)}

    def __len__(self) -> int:
        return self.file.ends[-1]

    def _group(self, group: int) -> Any:
        if self.kept[0] != group:
            self.kept = -1, None  # two of them need not be in memory
            try:
                table = self.file.read(group, self.name)
            except ArgumentError as e:  # on_error= may ask for each of its rows, whose tracebacks are the same
                self.kept = group, e
            else:
                place = table.column_names.index(self.name)  # "a" also reads a column that is called "a.b"
                values = files_of(table, place, self.name) if self.image else arrow_column(table, place, self.name)[0]
                self.kept = group, values
        if isinstance(self.kept[1], ArgumentError):
            raise self.kept[1].with_traceback(None)
        return self.kept[1]

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, list):
            return self._joined([self[row : row + 1] for row in rows])
        if not isinstance(rows, slice):
            if not 0 <= rows < len(self):
                raise IndexError(rows)
            group = bisect.bisect_right(self.file.ends, rows)
            return self._group(group)[rows - self._begin(group)]
        first, stop, _ = rows.indices(len(self))
        parts: list[Any] = []
        while first < stop or not parts:
            group = min(bisect.bisect_right(self.file.ends, first), len(self.file.ends) - 1)
            begin = self._begin(group)
            parts.append(self._group(group)[first - begin : stop - begin])
            first = self.file.ends[group]
        return self._joined(parts)

    def _begin(self, group: int) -> int:
        return self.file.ends[group - 1] if group else 0

    def __iter__(self) -> Iterator[Any]:
        for group in range(len(self.file.ends)):
            yield from self._group(group)

    def _joined(self, parts: list[Any]) -> Any:
        if len(parts) == 1:
            return parts[0]
        if self.dtype is not None:
            return import_module("numpy").concatenate(parts)
        return [value for part in parts for value in part]
