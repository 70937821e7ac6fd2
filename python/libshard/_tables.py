# SPDX-License-Identifier: Apache-2.0
"""Tables of pandas, Polars and Arrow as columns that a writer takes.

A dataset has at most 24 fields, and tables have hundreds of columns.  So the columns of numbers
that have one dtype become one field, which is called like the dtype.  The names of its columns
are a line in the provenance of each shard: ``columns float64 ["x", "y"]``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from ._description import Field
from ._errors import ArgumentError, MismatchError
from ._options import show, stack_level
from ._schema import SchemaLike, dtype_name, field_of_lists, parse

if TYPE_CHECKING:
    from ._dataset import Dataset

_LINE = "columns "
_ARROW_NUMBERS = {"halffloat": "float16", "float": "float32", "double": "float64", "Boolean": "bool"}
_FILE_TYPES = ("binary", "large_binary", "fixed_size_binary", "struct<bytes: ", "struct({'bytes':", "object")


class Packed(NamedTuple):
    """What a table becomes."""

    columns: dict[str, Any]
    schema: dict[str, Field | None]
    classes: Sequence[str] | None
    provenance: str
    file: SourceFile | None = None


class SourceFile:
    """A file or folder that a source reads, and that must not change until all is packed."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.places = [self.path]  # of it, what is read
        self.said: list[Any] = []  # state() before it was read

    def release(self) -> None:
        """Close what is open, before this process forks."""

    def state(self) -> list[Any]:
        """Files, their bytes, and a hash of the size and the time of each: if it has changed, so have samples perhaps."""
        files = [*self.places]
        for place in self.places:
            for folder, _, names in os.walk(place):
                files += [os.path.join(folder, name) for name in names]
        states = [(name, os.stat(name)) for name in sorted(files) if not os.path.isdir(name)]
        said = hashlib.sha256()
        for name, s in states:
            said.update(f"{os.path.relpath(name, self.path)}\0{s.st_size} {s.st_mtime_ns}\n".encode(errors="surrogateescape"))
        return [len(states), sum(s.st_size for _, s in states), said.hexdigest()]

    def check(self) -> None:
        """Refuse what was read if a file has changed meanwhile: records may be of both versions."""
        try:
            is_same = self.state() == self.said
        except FileNotFoundError:
            is_same = False
        if not is_same:
            raise MismatchError(
                f"{self.path}: was changed while it was packed; call pack() again when nothing writes it any more. If the "
                "call has workers= or on_error=, add resume=False",
                "changed",
            )


class _Wide:
    """Neighbouring columns of one dtype as one array of rows, of which some are made at a time."""

    def __init__(self, columns: list[Any]) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, rows: Any) -> Any:
        import numpy  # a table whose columns are arrays has brought it

        return numpy.stack([column[rows] for column in self.columns], axis=-1)  # of one row, too


def is_table(source: Any) -> bool:
    """Is it a DataFrame of pandas or Polars, or a table or record batch of Arrow?"""
    return module_of(source) in _READERS and hasattr(source, "shape") and hasattr(source, "columns")


class _Files:
    """The files of a column of images, of which one at a time becomes an object of Python."""

    def __init__(self, column: Any) -> None:
        self.column = column

    def __len__(self) -> int:
        return len(self.column)

    def __getitem__(self, i: int) -> Any:
        value = self.column[i]
        return value.as_py() if hasattr(value, "as_py") else value


def files_of(table: Any, place: int, name: str) -> Any:
    """A column of bytes, or of Hugging Face's {"bytes", "path"}."""
    kind = module_of(table)
    if kind == "pandas":
        column = table.iloc[:, place]
        dtype, missing = column.dtype, int(column.isna().sum())
    elif kind == "polars":
        column = table.to_series(place)
        dtype, missing = column.dtype, column.null_count()
    else:
        column = table.column(place)
        dtype, missing = column.type, column.null_count
    refuse_nulls(name, dtype, missing, len(column))
    if not str(dtype).lower().startswith(_FILE_TYPES):
        what = f"column {show(name)} ({dtype}) is not files of images, which libshard.Image decodes"
        refuse(what, 'give their bytes, or a struct of "bytes" and "path"; arrays of pixels need a type such as u8[32,32,3]')
    return column.tolist() if kind == "pandas" else _Files(column)


def _classes_in(table: Any) -> dict[str, list[str]]:
    """Names of classes in what Hugging Face writes into the metadata of a file, by column."""
    schema = getattr(table, "schema", None)
    text = (getattr(schema, "metadata", None) or {}).get(b"huggingface") if module_of(table) == "pyarrow" else None
    found = dict[str, list[str]]()
    if text is None:
        return found
    try:
        for name, feature in (json.loads(text).get("info", {}).get("features") or {}).items():
            if isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
                found[name] = [*map(str, feature["names"])]
    except (ValueError, KeyError, TypeError, AttributeError):
        what = "the metadata 'huggingface' of the table does not read as features"
        refuse(what, "give classes=[...] and a table without them: table.replace_schema_metadata(None)")
    return found


def _told(table: Any) -> tuple[dict[str, Field], dict[str, list[str]], list[str] | None]:
    """Of a table that libshard.export wrote: its fields, the names of stacked columns, and those of classes."""
    schema = getattr(table, "schema", None)
    metadata = (getattr(schema, "metadata", None) or {}) if module_of(table) == "pyarrow" else {}
    said = {name: metadata.get(b"libshard." + name.encode()) for name in ("schema", "columns", "classes")}
    try:
        found = {name: json.loads(text) for name, text in said.items() if text is not None}
        fields = {f["name"]: Field(**{**f, "shape": tuple(f["shape"])}) for f in found.get("schema", [])}
        parse([*fields.values()] or "x:u8")  # are they fields?
        columns = {str(field): [*map(str, names)] for field, names in found.get("columns", {}).items()}
        return fields, columns, found.get("classes")
    except (ValueError, KeyError, TypeError, AttributeError):
        what = "the metadata 'libshard' of the table do not read as those of libshard.export"
        refuse(what, "give a schema, and a table without them: table.replace_schema_metadata(None)")


def label_of(named: Sequence[str]) -> str | None:
    """Which of the columns whose numbers have names is the label?"""
    if "label" in named or not named:
        return "label"
    if len(named) > 1:
        refuse(
            f"the source has names for the classes of {', '.join(map(show, named))}, and none of these is called 'label'",
            "say which is the label, by a schema such as "
            f"{{{named[0]!r}: libshard.Field({named[0]!r}, 'int64', (), semantic='label'), ...}}",
        )
    return named[0]


def warn_of_names(name: str, count: int, label: str | None) -> None:
    """Only the label of a dataset has names of classes."""
    warnings.warn(
        f"{show(name)} is packed without the names of its {count} classes, since only a label has names, and "
        f"{'there is none' if label is None else f'that is {label!r}'}; libshard.Field({name!r}, 'int64', (), semantic='label') "
        "in the schema makes it the label",
        stacklevel=stack_level(),
    )


def _dtype_of(table: Any, place: int) -> Any:
    kind = module_of(table)
    return table.dtypes.iloc[place] if kind == "pandas" else table.dtypes[place] if kind == "polars" else _type_of(table, place)


def _item_dtype(dtype: Any) -> str | None:
    """Of a column of lists: the dtype of their numbers, which lists of Python do not tell."""
    inner = getattr(dtype, "pyarrow_dtype", dtype)
    if not str(inner).lower().startswith(("list", "large_list")):
        return None
    while (item := getattr(inner, "inner", None) or getattr(getattr(inner, "value_field", None), "type", None)) is not None:
        inner = item
    return dtype_name(_ARROW_NUMBERS.get(str(inner), str(inner).lower()))


def _type_of(table: Any, place: int) -> Any:
    """Of a column of Arrow, which has an attribute ``ordered`` if it is a dictionary."""
    return table.schema.types[place] if module_of(table) == "pyarrow" else None


def _warn_of_order(name: str, values: Iterable[str], names: Sequence[str]) -> None:
    """Names in the order in which a writer came across them are numbered otherwise in another file."""
    seen = set[str]()
    for value in values:
        if value in seen:
            continue
        if value != names[len(seen)]:
            return
        seen.add(value)
        if len(seen) == len(names):
            break
    if len(seen) == len(names) and [*names] != sorted(names):
        warnings.warn(
            f"the classes of column {show(name)} are numbered as they come in it: {show([*names])}. Another table, such as that "
            "of validation, may number them otherwise; classes=[...] says their order for both",
            stacklevel=stack_level(),
        )


def module_of(source: Any) -> str:
    return type(source).__module__.partition(".")[0]


def pack_table(table: Any, schema: SchemaLike | None, key: Any, images: Container[str] = (),
               stored: Callable[[str, bool], Any] | None = None, is_named: bool = False) -> Packed:
    """Read a table: all columns, or those that a schema chooses.  ``images``: columns of files.  ``is_named``: the
    names of classes are given.

    ``stored``: makes a column that lies in a file, by its name and whether it has files of images; the table has no rows then.
    """
    names = _names(table)
    wanted = None if schema is None else parse(schema)
    absent = [n for n, f in (wanted or {}).items() if n not in names and not (f and f.semantic == "length")]
    if absent:
        refuse(
            f"schema: the {type(table).__name__} has no column {show(absent[0])}; it has {show(names)}",
            "name its columns, or leave the schema out",
        )
    level = next((n for n in names if re.fullmatch(r"__index_level_\d+__", n)), None)
    if level is not None and wanted is None:
        refuse(
            f"column {show(level)} is the index of a frame of pandas, which Arrow and Parquet keep as a column",
            "write it with index=False, drop the column, or choose columns with a schema",
        )
    if wanted is None and module_of(table) == "pandas":
        named = [str(n) for n in table.index.names if n is not None]
        if named or table.index.dtype.kind not in "iu":  # numbers without a name are those of rows, perhaps of another frame
            what = f"the DataFrame's index {show(named[0])}" if named else f"the DataFrame's index of {table.index.dtype}"
            refuse(
                f"{what} is not one of its columns, and would be lost",
                "make it one, as frame.reset_index(), or leave it out, as frame.reset_index(drop=True)",
            )
        _warn_of_index(table)
    told, told_columns, told_classes = _told(table)
    if wanted is None and told:
        wanted = {name: told.get(name) for name in names if name != key}
    classes: Sequence[str] | None = None
    columns: dict[str, Any] = {}
    numbers: dict[str, list[str]] = {}  # by dtype: the columns that are stacked
    fields: dict[str, Field | None] = {}
    is_key = key if isinstance(key, str) else None
    named = {name: found for name, found in _classes_in(table).items() if name in names}
    label = named_label(wanted) if wanted is not None else "label" if "label" in names else label_of([*named])
    for place, name in enumerate(names):
        if wanted is not None and name not in wanted and name != is_key:
            continue
        if name in images and name != is_key:
            columns[name] = files_of(table, place, name)
            if stored is not None:
                columns[name] = stored(name, True)
            continue
        values, found = _READERS[module_of(table)](table, place, name)
        if stored is not None:
            values = stored(name, False)
            found = values.names
        found = named.get(name) if found is None else found
        if found is not None and wanted is None and name != label and name != is_key and name not in named:
            what = f"column {show(name)} is a category, and only the column 'label' may be one"
            refuse(what, "give its numbers, as frame[name].cat.codes, or its text")
        if name == label and name != is_key:
            classes = found if found is not None else told_classes
            if found is not None and not is_named and getattr(_type_of(table, place), "ordered", True) is False:
                _warn_of_order(name, values, found)
        elif found is not None and name in named and name != is_key:
            warn_of_names(name, len(found), label)
        columns[name] = values
        dtype = dtype_name(getattr(values, "dtype", None) or "")
        if schema is None and wanted is not None and name in told and dtype not in (None, told[name].dtype):
            wanted[name] = replace(told[name], dtype=dtype)  # another column has been put into its place
        item = _item_dtype(_dtype_of(table, place))
        of_lists = field_of_lists(name, item, values) if item and name != is_key else None
        if wanted is not None and name in wanted and wanted[name] is None:
            wanted[name] = of_lists
        if name == is_key or wanted is not None:
            continue
        if dtype and getattr(values, "ndim", 0) == 1 and name != label:
            numbers.setdefault(dtype, []).append(name)
        fields[name] = Field(name, "int64", (), semantic="label") if name == label and found is not None else of_lists
    stacked = {dtype: group for dtype, group in numbers.items() if len(group) > 1}
    for dtype, group in stacked.items():
        if dtype in names:  # or column(dtype) would be either
            refuse(
                f"column {show(dtype)} has the name of the field for the {len(group)} columns of that dtype",
                "rename it",
            )
        wide = _Wide([columns.pop(name) for name in group])
        place = list(fields).index(group[0])
        kept = [item for item in fields.items() if item[0] not in group]
        before = sum(name not in group for name in list(fields)[:place])
        fields = dict([*kept[:before], (dtype, Field(dtype, dtype, (len(group),))), *kept[before:]])
        columns[dtype] = wide
    again = {name: told_columns[name] for name in columns if name in told_columns and name != is_key}
    again = {name: group for name, group in again.items() if getattr(columns[name], "shape", ())[1:] == (len(group),)}
    return Packed(columns, wanted if wanted is not None else fields, classes, names_as_lines({**again, **stacked}))


def _warn_of_index(frame: Any) -> None:
    """Whole numbers without a name may be ids, and are the numbers of rows in a larger frame after a choice of rows."""
    pandas = import_module("pandas")
    if isinstance(frame.index, pandas.RangeIndex) or frame.index.equals(pandas.RangeIndex(len(frame))):
        return
    first = frame.index[:3].tolist()
    warnings.warn(
        f"the DataFrame's index, which begins with {show(first)}, is not one of its columns, and is left out; "
        "frame.reset_index(names='row') makes it the column 'row', and frame.reset_index(drop=True) says that it is not wanted",
        stacklevel=stack_level(),
    )


def named_label(wanted: Mapping[str, Field | None]) -> str | None:
    """The field of a schema that is the label, also if the first record is to tell what it is."""
    if "label" in wanted and wanted["label"] is None:
        return "label"
    return next((name for name, field in wanted.items() if field is not None and field.semantic == "label"), None)


def _names(table: Any) -> list[str]:
    # A frame of pandas has each column as an attribute, too: one may be called column_names.
    found = table.column_names if module_of(table) == "pyarrow" else table.columns
    names = [str(name) for name in found]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        refuse(f"the {type(table).__name__} has several columns {show(twice[0])}", "rename them")
    return names


def refuse(what: str, remedy: str) -> NoReturn:
    raise ArgumentError(f"{what}; {remedy}", "bad argument")


def refuse_nulls(name: str, dtype: Any, missing: int, count: int) -> None:
    if missing:
        refuse(
            f"column {show(name)} ({dtype}): {missing:,} of {count:,} values are missing",
            "leave these rows out, or fill in a number or text that stands for none",
        )


def _refuse_dtype(name: str, dtype: Any) -> NoReturn:
    text = str(dtype).lower()
    remedy = "give it as numbers or text, or choose columns with schema={name: type}"
    if any(word in text for word in ("date", "time", "duration", "period")):
        remedy = "give numbers, as the seconds since a day of yours, or text"
    elif "decimal" in text:
        remedy = "give float64 or text, whichever is exact enough"
    elif text.startswith("struct<bytes: binary"):
        remedy = f"it has images as files, which libshard.Image decodes: say {{{name!r}: libshard.Image(resize=256, crop=224), ...}}"
    elif text.startswith(("list", "large_list", "struct", "map")):
        remedy = "give each of its items a column of its own, or a column of arrays with a type in the schema"
    refuse(f"column {show(name)} ({dtype}) is not numbers or text", remedy)


# Of a column: its values, and the names of all its values, in their order, if it is a category.
_Column = tuple[Any, Sequence[str] | None]


def _of_pandas(table: Any, place: int, name: str) -> _Column:
    series = table.iloc[:, place]
    dtype = series.dtype
    kind = getattr(dtype, "kind", "O")
    if kind in "biuf" and type(dtype).__module__.startswith("numpy"):  # NaN is a number, as everywhere
        return series.to_numpy(), None
    refuse_nulls(name, dtype, int(series.isna().sum()), len(series))
    if dtype.name == "category":
        return [str(value) for value in series], [str(value) for value in dtype.categories]
    if kind in "biuf" and hasattr(dtype, "numpy_dtype"):
        return series.to_numpy(dtype=dtype.numpy_dtype), None
    is_text = str(dtype).removeprefix("large_").startswith(("string[", "binary[", "list<"))
    if not is_text and str(dtype) not in ("object", "str", "string"):
        _refuse_dtype(name, dtype)
    values = series.tolist()
    kinds = {type(value).__name__ for value in values}
    if len(kinds) > 1:
        of = ", ".join(sorted(kinds))
        refuse(f"column {show(name)} ({dtype}) has values of several types: {of}", "convert it to one of them")
    return values, None


def _of_polars(table: Any, place: int, name: str) -> _Column:
    series = table.to_series(place)
    dtype = series.dtype
    kind = type(dtype).__name__ if not isinstance(dtype, type) else dtype.__name__
    refuse_nulls(name, dtype, series.null_count(), len(series))
    if kind == "Enum":
        return series.to_list(), dtype.categories.to_list()
    if kind == "Array":
        flat = series.reshape((-1,))
        refuse_nulls(name, dtype, flat.null_count(), len(flat))
    if kind == "Boolean" or kind == "Array" or (dtype.is_numeric() and kind not in ("Decimal", "Int128", "UInt128")):
        return series.to_numpy(), None
    if kind in ("String", "Binary", "List"):
        return series.to_list(), None
    if kind == "Categorical":
        refuse(f"column {show(name)} ({dtype}) is a category", "cast it to polars.String, or label to a polars.Enum")
    _refuse_dtype(name, dtype)


def _flat(column: Any) -> list[tuple[list[int], Any]]:
    """A column of lists of a fixed size, in which each level is without the lists of the one before; with the shape so far."""
    parts = column.combine_chunks() if hasattr(column, "chunks") else column
    levels, shape = [], [len(column)]
    while hasattr(parts.type, "list_size") and parts.type.list_size > 0:
        shape.append(parts.type.list_size)
        parts = parts.flatten()
        levels.append(([*shape], parts))
    return levels or [(shape, parts)]


def missing_items(column: Any) -> tuple[int, int]:
    """Of lists of a fixed size, how many of their items are null, and how many there are."""
    levels = _flat(column)
    return next(((parts.null_count, len(parts)) for _, parts in levels if parts.null_count), (0, len(levels[-1][1])))


def arrow_column(table: Any, place: int, name: str) -> _Column:
    column = table.column(place)
    dtype = column.type
    text = str(dtype)
    refuse_nulls(name, dtype, column.null_count, len(column))
    if text.startswith("dictionary"):
        names: list[str] = []
        for part in getattr(column, "chunks", [column]):
            names += [str(v) for v in part.dictionary.to_pylist() if v is not None and str(v) not in names]
        texts = column.to_pylist()  # a null may be one of the dictionary's values
        refuse_nulls(name, dtype, texts.count(None), len(texts))
        return [str(value) for value in texts], names
    if text in ("bool", "halffloat", "float", "double") or text.startswith(("int", "uint")):
        return column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(zero_copy_only=False), None
    if text.startswith("fixed_size_list"):
        column = column.combine_chunks() if hasattr(column, "chunks") else column  # which is a copy
        refuse_nulls(name, dtype, *missing_items(column))
        shape, parts = _flat(column)[-1]
        return parts.to_numpy(zero_copy_only=False).reshape(shape), None
    if text in ("string", "large_string", "string_view", "binary", "large_binary") or text.startswith(
        ("list", "large_list", "fixed_size_binary")
    ):
        return column.to_pylist(), None
    _refuse_dtype(name, dtype)


_READERS = {"pandas": _of_pandas, "polars": _of_polars, "pyarrow": arrow_column}


# ---- names in a dataset ----


def names_as_lines(columns: Mapping[str, Sequence[str]]) -> str:
    """What the provenance of each shard says of fields that were stacked."""
    return "".join(f"{_LINE}{field} {json.dumps(names)}\n" for field, names in columns.items())


def column_names(dataset: Dataset) -> dict[str, list[str]]:
    """Of each field that was stacked: the names of its columns, which all shards must agree on.

    Of a concatenation, those of fields for which all parts have them: that they are the same was checked when it was made.
    """
    parts = {id(part): part for part in getattr(dataset, "parts", ())}
    if parts:
        first, *others = (column_names(part) for part in parts.values())
        return {field: names for field, names in first.items() if all(field in other for other in others)}
    found: dict[str, list[str]] | None = None
    for shard in range(dataset.shard_count):
        here = _names_in(dataset, shard)
        if found is not None and here != found:
            raise MismatchError(
                f"{dataset.path}: shard {shard} has other names of columns than shard 0, so it is not known which "
                f"number is which; pack both again from one table. Shard 0 has {show(found)}, this one {show(here)}",
                "not as the manifest says",
            )
        found = here
    return found or {}


def of_stack(dataset: Dataset, name: str) -> str:
    """Behind a message that a field is not there: what to do if that is the name of a stacked column.  Empty if it is there."""
    if name in dataset.schema.names:
        return ""  # without a look at each shard, as a loader with window= asks
    try:
        field, names = next((field, names) for field, names in dataset.columns.items() if name in names)
    except (StopIteration, MismatchError):
        return ""
    return (
        f"; it is column {names.index(name)} of the field {field!r}, and a schema with {show(name)}: None makes it a field of its "
        f"own when the table is packed. ds.column({show(name)}) has its values now"
    )


def check_columns(datasets: Iterable[Dataset], wanted: Sequence[str] | None = None) -> None:
    """Do the numbers of a field that was stacked mean the same in all?  Reads the first shard of each.

    ``wanted``: the fields that matter; None: all.
    """
    said: dict[str, tuple[list[str], Dataset]] = {}
    for dataset in {id(dataset): dataset for dataset in datasets}.values():
        for field, names in (_names_in(dataset, 0) if dataset.shard_count else {}).items():
            first, there = said.setdefault(field, (names, dataset))
            if names != first and (wanted is None or field in wanted):
                raise MismatchError(
                    f"field {field!r} has the columns {show(first)} in {there.path}, and {show(names)} in {dataset.path}, so "
                    "a number would mean two things; pack both from tables with the same columns in the same order",
                    "not as the manifest says",
                )


def _names_in(dataset: Dataset, shard: int) -> dict[str, list[str]]:
    """What the provenance of one shard says."""
    here: dict[str, list[str]] = {}
    for line in dataset._provenance(shard).decode().splitlines():
        field, _, names = line.removeprefix(_LINE).partition(" ")
        if line.startswith(_LINE) and field in dataset.schema.names:
            here[field] = _checked(dataset, shard, field, names)
    return here


def _checked(dataset: Dataset, shard: int, field: str, text: str) -> list[str]:
    try:
        names = json.loads(text)
    except ValueError:
        names = None
    count = dataset.schema[field].shape[-1:]
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names) or (len(names),) != count:
        raise MismatchError(
            f"{dataset.path}: shard {shard}: its provenance has no {list(count)} names of columns for {field!r}: "
            f"{show(text)}",
            "not as the manifest says",
        )
    return names
