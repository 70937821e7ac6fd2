# SPDX-License-Identifier: Apache-2.0
"""Datasets one behind the other, and columns beside a dataset."""

from __future__ import annotations

import hashlib
import warnings
from array import array
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, NoReturn, Self, SupportsIndex

from . import _core, _frameworks
from ._batch import PARTS
from ._dataset import Dataset, opened
from ._description import ChannelsOfFields, ChannelStats, Stats
from ._errors import ArgumentError, MismatchError
from ._hints import Hinting
from ._options import as_items, number_in, public, show, stack_level
from ._schema import is_image, parse, with_meaning
from ._selection import Selectable, Selection, is_bool, not_a_set
from ._tables import check_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ._core import Array
    from ._description import Field, Schema
    from ._schema import SchemaLike
    from ._types import Path


class Joined(Dataset):
    """Datasets one behind the other, as the one dataset that a loader and selections have of them."""

    def __new__(cls, parts: tuple[Dataset, ...]) -> Self:
        return cls._concat(parts)

    def __init__(self, parts: tuple[Dataset, ...]) -> None:
        self.parts = parts

    def place(self, number: SupportsIndex) -> tuple[Dataset, int]:
        """The dataset that has a record, and its number there."""
        at = number_in(len(self), number, "record", lambda: self.path)
        which = bisect_right(self._ends, at)
        return self.parts[which], at - (self._ends[which - 1] if which else 0)

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(map(len, self.parts)))

    @property
    def stats(self) -> Stats:
        """The sums of the parts' statistics, of what all of them have."""
        first, *rest = (part.stats for part in self.parts)
        channels, counts = dict(first.channels), dict(first.class_counts)
        for other in rest:
            channels = {
                name: list(map(_sum, channels[name], other.channels[name])) for name in channels if name in other.channels
            }
            counts = {name: counts[name] + other.class_counts[name] for name in counts if name in other.class_counts}
        return Stats(ChannelsOfFields(channels.items(), self.parts[0].path, self.schema), counts)

    def __reduce__(self) -> tuple[Any, ...]:
        return Joined, (self.parts,)


def _sum(a: ChannelStats, b: ChannelStats) -> ChannelStats:
    return ChannelStats(a.count + b.count, a.sum + b.sum, a.sum_squares + b.sum_squares)


class Concat(Selectable):
    """The records of several datasets or selections, one behind the other.  ``a + b`` makes one.

    ``both[i]`` is a record, numbers below 0 count from the end, and ``len(both)`` is the sum.
    ``libshard.Loader(both, 256)`` has one order over all records, as of one dataset, and
    ``both.where()``, ``split()`` and ``folds()`` choose from them.
    """

    def __init__(self, datasets: Iterable[Dataset | Selection]) -> None:
        self.datasets: tuple[Dataset | Selection, ...] = tuple(datasets)
        self._first = _dataset(self.datasets[0])  # whose classes all have
        self._ends = list(accumulate(map(len, self.datasets)))

    @property
    def schema(self) -> Schema:
        """The fields, with the greatest lengths that any part has: those of ``both.dataset.schema``."""
        return self.dataset.schema

    @property
    def classes(self) -> list[str]:
        """Names of the classes, which are those of all."""
        return self._first.classes

    @cached_property
    def dataset(self) -> Dataset:
        """All datasets as one, whose numbers of records batches have: those of ``both[i]``, unless a
        part is a selection."""
        return Joined(tuple(part for source in self.datasets for part in _parts(_dataset(source))))

    @cached_property
    def _chosen(self) -> _core.Selection | None:
        """What is selected of all datasets; None: all."""
        if not any(isinstance(source, Selection) for source in self.datasets):
            return None
        numbers, before = array("q"), 0
        for source in self.datasets:
            records = source.records.tolist() if isinstance(source, Selection) else range(len(source))
            numbers.extend(before + record for record in records)
            before += len(_dataset(source))
        return _core.Selection.of_records(self.dataset, numbers)

    def _source(self) -> tuple[Dataset, _core.Selection | None]:
        return self.dataset, self._chosen

    @public("select")
    def select(self, records: Iterable[SupportsIndex]) -> Selection:
        """Those with these numbers, as :meth:`Dataset.select` has it.

        Not if a part is a selection: then the numbers could be those of ``both[i]`` or of
        ``both.dataset[i]``, and it raises :class:`ArgumentError`.
        """
        if self._chosen is not None:
            raise ArgumentError(
                "select: a part of this concatenation is a selection, so a number could be that of both[i] or of "
                "both.dataset[i]; both.dataset.select() takes the latter, and both.where() chooses by values",
                "bad argument",
            )
        return super().select(records)

    def __len__(self) -> int:
        return self._ends[-1]

    def _place(self, number: SupportsIndex) -> tuple[Dataset | Selection, int]:
        at = number_in(len(self), number, "record", lambda: self.dataset.path)
        which = bisect_right(self._ends, at)
        return self.datasets[which], at - (self._ends[which - 1] if which else 0)

    def __getitem__(self, number: SupportsIndex) -> dict[str, Any]:
        if not is_one(number):
            raise TypeError(
                f"a concatenation is indexed by the number of one record, not by {show(number)}; both.dataset takes "
                "several at a time"
            )
        source, at = self._place(number)
        return source[at]

    def key(self, number: SupportsIndex) -> str:
        """The key of a record; '' if it has none."""
        source, at = self._place(number)
        return source.dataset.key(source.numbers([at])[0]) if isinstance(source, Selection) else source.key(at)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[i] for i in range(len(self)))

    def __getitems__(self, numbers: Iterable[SupportsIndex]) -> list[dict[str, Any]]:
        """For ``torch.utils.data.DataLoader``, which asks for the records of a batch."""
        _frameworks.check_records(self.schema)
        return [self[number] for number in numbers]

    def __reduce__(self) -> tuple[Any, ...]:
        return Concat, (self.datasets,)

    def __repr__(self) -> str:
        return f"<libshard.Concat of {len(self.datasets)} datasets: {len(self):,} records>"


def as_source(source: Any) -> Any:
    """Of a concatenation, the dataset or selection that it is; all else as it is."""
    if not isinstance(source, Concat):
        return source
    dataset, chosen = source._source()
    return dataset if chosen is None else Selection(dataset, chosen)


@public("libshard.concat")
def concat(datasets: Iterable[Dataset | Selection | Concat | Path]) -> Concat:
    """The records of several datasets, one behind the other: a :class:`Concat`, as ``a + b`` is.

    ``datasets``: datasets, their paths, or selections, with the same fields, which may have other
    greatest lengths, and the same classes; else :class:`MismatchError`.
    """
    if isinstance(datasets, (Dataset, Selection, Concat)):
        raise TypeError("datasets: must be a list of datasets or selections, as libshard.concat([a, b])")
    parts: list[Dataset | Selection] = []
    for one in as_items("datasets", datasets, "a list of datasets or selections"):
        if isinstance(one, Concat):
            parts += one.datasets
        else:
            parts.append(one if isinstance(one, Selection) else opened("datasets", one))
    if not parts:
        raise ArgumentError("datasets: there are none to concatenate", "bad argument")
    for other in parts[1:]:
        _check(_dataset(parts[0]), _dataset(other))
    check_columns(one for part in parts for one in _parts(_dataset(part)))
    return Concat(parts)


_KEYS_MOST = 64  # that are compared


class Zip(Hinting):
    """A dataset or a selection, with columns beside it.  ``libshard.zip()`` makes one.

    ``len(both)`` is the number of records, ``both[i]`` a record with its columns, and
    ``libshard.Loader(both, 256)`` delivers batches that have the columns as well.
    """

    def __init__(self, source: Dataset | Selection, columns: dict[str, Any]) -> None:
        self.source: Dataset | Selection = source
        self.columns: dict[str, Any] = columns
        self.dataset: Dataset = _dataset(source)
        self.selection: Selection | None = source if isinstance(source, Selection) else None
        #: the datasets that columns are of, each once
        self._datasets: list[Dataset] = [*{id(column): column for column, field in columns.values() if field}.values()]
        self._strings = [name for name, (c, field) in columns.items() if field and _is_string(c.schema[field])]

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, number: SupportsIndex) -> dict[str, Any]:
        if not is_one(number):
            raise TypeError(f"index it by the number of one record, not by {show(number)}; both.dataset takes several")
        at = number_in(len(self), number, "record", lambda: self.dataset.path)
        record = at if self.selection is None else self.selection.numbers([at])[0]
        out: dict[str, Any] = {**self.dataset[record]}
        for other in self._datasets:
            out |= other[record]
        for name, (column, field) in self.columns.items():
            if not field:
                out[name] = column[record].item() if column.ndim == 1 else column[record]
        return out

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[i] for i in range(len(self)))

    def __contains__(self, what: object) -> NoReturn:
        not_a_set(what)

    def __add__(self, other: object) -> NoReturn:
        raise TypeError(f"{show(self)} + {show(other)}: libshard.zip(a + b, embedding=array) has columns beside both")

    @public("column")
    def column(self, name: str) -> Any:
        """A field of all records as one array, or a column beside them.  Names of columns of tables do as well."""
        if name in self.columns:
            column, field = self.columns[name]
        else:
            column, field = self._stacked(name), name
            if column is self.dataset:
                return self.source.column(name)
        if self.selection is None:
            return column.column(field) if field else column
        if field:
            return column.select(self.selection.records).column(field)
        return column[import_module("numpy").asarray(self.selection.records)]

    def _stacked(self, name: str) -> Dataset:
        """The one dataset whose table has that column; the first dataset if none has."""
        if name in self.dataset.schema.names:
            return self.dataset
        every = {id(one): one for one in (self.dataset, *self._datasets)}.values()
        having = [one for one in every if any(name in names for names in one.columns.values())]
        if len(having) > 1:
            raise ArgumentError(
                f"column {show(name)} is in {having[0].path} and in {having[1].path}; take it from one of them, as by "
                "column() of that dataset",
                "bad argument",
            )
        return having[0] if having else self.dataset

    @property
    def digest(self) -> str:
        """What the columns are: ids of datasets, and types of arrays.  States of loaders hold it."""
        said = (
            f"{name} {c.id if field else f'{c.dtype.name} {list(c.shape)}'}" for name, (c, field) in self.columns.items()
        )
        return hashlib.sha256("\n".join(said).encode()).hexdigest()

    def _beside(self, records: list[int], as_lists: bool) -> dict[str, Any]:
        """Of a batch, with these records: its columns.  ``as_lists``: strings as such, in lists."""
        gathered: dict[int, dict[str, Array]] = {}
        out: dict[str, Any] = {}
        lists = {name for name in self._strings if as_lists}
        for name, (column, field) in self.columns.items():
            if name in lists:
                out[name] = [column[record][field] for record in records]
            elif name.removesuffix("_length") in lists:
                continue  # their lengths are not there, as a loader has it
            elif field:
                if id(column) not in gathered:
                    gathered[id(column)] = column[records]
                rows = gathered[id(column)][field]
                out[name] = _as_lengths(rows) if column.schema[field].semantic == "length" else rows
            else:
                rows = column[records]
                out[name] = _core._array(rows.dtype.name, rows.shape, rows.tobytes())
        return out

    def __repr__(self) -> str:
        return f"<libshard.Zip of {self.source!r} and {', '.join(self.columns)}>"


@public("libshard.zip")
def zip(dataset: Dataset | Selection | Concat | Path, *others: Dataset | Concat | Path, **columns: Any) -> Zip:
    """A dataset with columns beside it, such as embeddings that were computed later: a :class:`Zip`.

    ``others``: datasets, or concatenations of them, with as many records in the same order, whose
    fields are the columns.
    ``columns``: arrays by name, with a row for each record, as ``libshard.zip(ds, embedding=array)``;
    an array of ``numpy.load(..., mmap_mode="r")`` stays where it is.  A column has a row for each
    record of the dataset, also if a selection is given.

    Where both datasets have keys, some are compared, and :class:`MismatchError` is raised if two
    records of one number have two keys.  Nothing can compare the order of an array.
    """
    if isinstance(dataset, Zip):
        raise TypeError(f"dataset={show(dataset)}; must be a libshard.Dataset, a selection, or the path of one")
    source = as_source(dataset)
    source = source if isinstance(source, Selection) else opened("dataset", source)
    base, taken = _dataset(source), {}
    for other in map(as_source, others):
        is_known = isinstance(other, (Dataset, str, bytes)) or hasattr(other, "__fspath__")
        if isinstance(other, Selection) or not is_known:
            kind = "a selection" if isinstance(other, Selection) else show(other)
            raise TypeError(
                f"{kind}: beside a dataset there are datasets, or arrays with a name, as libshard.zip(ds, embedding=array)"
            )
        beside = opened("others", other)
        _check_count(base, beside.path, len(beside))
        _check_keys(base, beside)
        for name in beside.schema.names:
            _check_name(base, name, taken)
            taken[name] = beside, name
    for name, column in columns.items():
        array = _as_column(name, column)
        _check_count(base, name, len(array))
        _check_name(base, name, taken)
        taken[name] = array, ""
    if not taken:
        raise ArgumentError("zip: there is nothing beside the dataset; give it a dataset, or name=array", "bad argument")
    return Zip(source, taken)


def _as_lengths(rows: Array) -> Array:
    """Lengths as a loader delivers them: int64, and without the axis of those that are one number."""
    count, *axes = rows.shape
    numbers = array("q", chain.from_iterable(rows.tolist()))
    return _core._array("int64", (count, *axes) if axes != [1] else (count,), numbers.tobytes())


# ---- what stays when a source of ours is packed again ----


def stored_schema(source: Any, schema: SchemaLike | None, key: str | None) -> SchemaLike | None:
    """A schema, and what a source of ours says of the fields that it leaves open.

    A record does not tell the greatest length of a text, or that its numbers are boxes.  ``key``: the
    field that becomes the key of each record.
    """
    if not isinstance(source, (Dataset, Selection, Concat, Zip)):
        return schema
    fields = [*(source if isinstance(source, Dataset) else source.dataset).schema]
    if schema is None and key is None and not isinstance(source, Zip):
        return fields  # with their groups
    for name, (column, field) in source.columns.items() if isinstance(source, Zip) else ():
        fields.append(column.schema[field] if field else with_meaning(name, column.dtype.name, column.shape[1:]))
    told = {f.name: replace(f, group=-1) for f in fields}
    if schema is None:
        return {name: field for name, field in told.items() if name not in (key, f"{key}_length")}
    if isinstance(schema, Mapping):
        return {name: told.get(name) if spec is None else spec for name, spec in schema.items()}
    return schema


def stored_columns(source: Any, schema: SchemaLike | None) -> dict[str, list[str]]:
    """Of a source of ours: the names of the columns of tables in the fields that a schema has."""
    if not isinstance(source, (Dataset, Selection, Concat, Zip)):
        return {}
    first, *rest = [part.columns for part in _parts(source if isinstance(source, Dataset) else source.dataset)]
    found = {name: names for name, names in first.items() if all(other.get(name) == names for other in rest)}
    lost = sorted({name for columns in (first, *rest) for name in columns} - {*found})
    for column, field in source.columns.values() if isinstance(source, Zip) else ():
        found |= {field: column.columns[field]} if field and field in column.columns else {}
    wanted = parse(schema) if schema is not None and (found or lost) else {}
    if lost and lost[0] in wanted:
        warnings.warn(
            f"not all parts of the concatenation have the same names of columns for {lost[0]!r}, so the new dataset has none",
            stacklevel=stack_level(),
        )
    return {name: names for name, names in found.items() if name in wanted}


def stored_pixels(source: Any) -> set[str]:
    """Of a source of ours: whose pixels its images have, as a transform takes it from the provenance."""
    if not isinstance(source, (Dataset, Selection, Concat, Zip)):
        return set()
    parts = [*_parts(source if isinstance(source, Dataset) else source.dataset)]
    parts += source._datasets if isinstance(source, Zip) else ()
    found = set[str]()
    for part in parts:
        if part.shard_count and any(is_image(f) for f in part.schema):
            lines = part._provenance(0).decode().splitlines()
            found.add(next((line.removeprefix("pixels ") for line in lines if line.startswith("pixels ")), "rows-first"))
    return found


def is_one(number: object) -> bool:
    """May it be the number of one record?"""
    return not (is_bool(number) or isinstance(number, (slice, str)) or hasattr(number, "__len__"))


def _is_string(field: Field) -> bool:
    return field.kind == "string" or field.kind == "ragged" and field.semantic == "text"


def _as_column(name: str, column: Any) -> Any:
    if isinstance(column, (Dataset, Selection, str, bytes)):
        raise TypeError(f"{name}={show(column)}; must be an array; give a dataset without a name")
    try:
        numpy = import_module("numpy")
    except ImportError:
        raise ImportError(f"zip({name}=<array>) reads it with NumPy, and there is no NumPy; pack it as a dataset") from None
    if numpy.ma.is_masked(column):  # asarray() would take what the mask hides
        raise TypeError(f"{name}={show(column)}; a masked array has no number in some rows; give {name}.filled(...)")
    try:
        array = numpy.asarray(column)
    except Exception as e:  # of lists that differ in length, of tensors on a GPU
        raise TypeError(f"{name}={show(column)}; NumPy cannot read it as an array of numbers in rows of one shape") from e
    if array.ndim < 1 or array.dtype.kind not in "biuf" or array.dtype.itemsize > 8 or 0 in array.shape[1:]:
        raise TypeError(
            f"{name}={show(column)}; must be an array of numbers with a row for each record, not {array.dtype} of shape "
            f"{array.shape}"
        )
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _check_count(base: Dataset, what: str, count: int) -> None:
    if count != len(base):
        raise ArgumentError(
            f"zip: {show(what)} has {count:,} rows, and {base.path} has {len(base):,} records; they belong to each other by "
            "their numbers, so there must be as many",
            "bad argument",
        )


def _check_name(base: Dataset, name: str, taken: dict[str, Any]) -> None:
    if name in base.schema.names or name in taken or name in PARTS:  # which a batch has
        whose = "the dataset" if name in base.schema.names else "another column" if name in taken else "each batch"
        raise ArgumentError(f"zip: {whose} has {name!r} already; give the column another name", "bad argument")


def _check_keys(a: Dataset, b: Dataset) -> None:
    for number in sorted({i * (len(a) - 1) // (_KEYS_MOST - 1) for i in range(_KEYS_MOST)}) if len(a) else ():
        keys = a.key(number), b.key(number)
        if all(keys) and keys[0] != keys[1]:
            raise MismatchError(
                f"record {number} is {show(keys[0])} in {a.path}, and {show(keys[1])} in {b.path}, so they are not in one "
                "order; pack both from the same list",
                "not as the manifest says",
            )


def _dataset(source: Dataset | Selection) -> Dataset:
    return source.dataset if isinstance(source, Selection) else source


def _parts(dataset: Dataset) -> tuple[Dataset, ...]:
    return dataset.parts if isinstance(dataset, Joined) else (dataset,)


def _meaning(field: dict[str, Any]) -> tuple[Any, ...]:
    """Of a field, what is the same in all records.  A text may be of any length, also one in a list."""
    is_text = field["kind"] == "string" or field["semantic"] == "text"
    axes = tuple(None if is_text or field["ragged_axes"] >> i & 1 else n for i, n in enumerate(field["shape"]))
    return *(field[part] for part in ("dtype", "kind", "layout", "semantic", "ragged_axes")), axes


def _check(a: Dataset, b: Dataset) -> None:
    """Do their records mean the same?"""
    kinds = [{f["name"]: _meaning(f) for f in d._fields()} for d in (a, b)]
    for name in (*kinds[0], *kinds[1]):
        if kinds[0].get(name) != kinds[1].get(name):
            said = [str(d.schema[name]) if name in d.schema else f"no field {name!r}" for d in (a, b)]
            said = [f"{text} ({d.schema[name].semantic}, {d.schema[name].layout})" if said[0] == said[1] else text
                    for text, d in ((said[0], a), (said[1], b))]  # fmt: skip
            raise MismatchError(
                f"{a.path} has {said[0]}, and {b.path} has {said[1]}; pack both with the same fields",
                "not as the manifest says",
            )
    if list(kinds[0]) != list(kinds[1]):
        raise MismatchError(
            f"{a.path} has the fields {show(a.schema.names)}, and {b.path} has them in another order, "
            f"{show(b.schema.names)}; pack one with the schema of the other, such as libshard.pack(b, a.schema, out)",
            "not as the manifest says",
        )
    if a.classes != b.classes:
        raise MismatchError(
            f"{a.path} and {b.path} have other classes, {show(a.classes)} and {show(b.classes)}, so a label would mean "
            f"two things; pack one with those of the other, such as classes=ds.classes",
            "not as the manifest says",
        )
