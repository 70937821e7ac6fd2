# SPDX-License-Identifier: Apache-2.0
"""Selections: some records of a dataset, to train on these alone."""

from __future__ import annotations

import operator
import sys
import warnings
from array import array
from collections.abc import Set
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

from . import _core, _frameworks
from ._errors import ArgumentError
from ._hints import Hinting
from ._options import (
    as_items,
    as_number,
    as_path,
    as_text,
    check_function,
    number_in,
    public,
    refuse_option,
    show,
    stack_level,
    whole,
)

from ._tables import of_stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Never, TypeAlias

    from ._concat import Concat
    from ._core import Array
    from ._dataset import Dataset
    from ._types import Path

Wanted = SupportsIndex | str
if TYPE_CHECKING:
    Rule: TypeAlias = Callable[[Any], Any]  # a NumPy array -> a mask
_NOT_OF_SPLIT = {  # of other libraries, what is here instead
    "shuffle": "ds.select(range(n)) and ds.select(range(n, len(ds))) are parts in the order of the dataset",
    "stratify": "split the records of each class: parts = [ds.where(label=k).split(0.8) for k in ds.classes]; "
    "ds.select(sorted(number for p in parts for number in p[0].records)) is the first part of all",
    "generator": "seed= decides the order",
    "random_state": "seed= decides the order",
    "test_size": "ds.split(0.8) gives a part of 0.8 and the rest",
    "train_size": "ds.split(0.8) gives a part of 0.8 and the rest",
    "group": "by='patient' keeps the records of one value together",
    "groups": "by='patient' keeps the records of one value together",
}
_NUMBERS = frozenset("bBhHiIlLqQnN")  # formats of buffers


class Selectable(Hinting):
    """What a dataset and a selection have in common: records to choose from."""

    def _source(self) -> tuple[Dataset, _core.Selection | None]:
        """The dataset, and what is selected of it so far; None: all."""
        raise NotImplementedError

    def __getitems__(self, numbers: Iterable[SupportsIndex]) -> list[dict[str, Any]]:
        """For ``torch.utils.data.DataLoader``, which asks for the records of a batch."""
        _frameworks.check_records(self._source()[0].schema)
        records: Any = self
        return [records[number] for number in numbers]

    def __add__(self, other: Any) -> Concat:
        """``a + b``: the records of a, then those of b, as :func:`libshard.concat` has them."""
        from ._concat import concat

        return concat([self, other])  # type: ignore[list-item]

    def __contains__(self, what: object) -> NoReturn:
        not_a_set(what)

    def __radd__(self, other: object) -> NoReturn:
        raise TypeError(f"{show(other)} + a dataset: libshard.concat([a, b]) puts records one behind the other")

    @public("column")
    def column(self, field: str) -> Array:
        """A field of all records as one array, such as all labels; of a selection, that of its records.

        Reads no other fields, but for those that are stored beside it.  The name of a column in
        :attr:`Dataset.columns` gives that column.
        """
        dataset, of = self._source()
        return column_of(dataset, field, of)

    @public("to_arrow")
    def to_arrow(self, fields: Iterable[str] | None = None) -> Any:
        """The records as a ``pyarrow.Table``.

        ``fields``: the names of those that are wanted; by default those of at most 1,024 bytes that
        are not images.  A warning names the others that are not images, and the schema's metadata
        has the names of all others, as ``libshard.left_out``.
        ``key`` has the keys, if there are some.  Arrays are lists of lists, and
        images are PNG.  All of it is read to memory: ``libshard.export(ds, "out.parquet")`` is for
        more.
        """
        from ._export import table_of

        return table_of(self, fields)

    @public("to_pandas")
    def to_pandas(self, fields: Iterable[str] | None = None) -> Any:
        """The records as a ``pandas.DataFrame``, with the columns of :meth:`to_arrow`.

        ``frame.attrs["left_out"]`` has the names of fields that are not there because they are large
        or images; a warning names those that are not images.
        """
        from ._export import frame_of

        return frame_of(self, fields)

    @public("select")
    def select(self, records: Iterable[SupportsIndex]) -> Selection:
        """Those with these numbers, of the dataset in either case: a :class:`Selection`.

        A selection has each record once, in the order of the dataset, whatever the order of the
        numbers: if they are not ascending, a warning says so.  ``ds[[5, 3, 8]]`` gives records in the
        order of a list.  Numbers below 0 are refused.  Arrays of integers are taken as they are,
        however long.  An array or a list of bools is a mask with one for each record of the dataset.
        """
        dataset, of = self._source()
        values = _buffer(records)
        if isinstance(values, memoryview) and values.format == "?":
            chosen = _core.Selection.of_mask(dataset, None, values)
        else:
            chosen = _core.Selection.of_records(dataset, values)
            if not isinstance(records, Set):  # which has no order
                _warn_of_order(values)
        if of is not None:
            count, which = chosen.outside(of)
            if count:
                few = f"{count} of them, such as {which}"
                raise ArgumentError(f"records: {few}, are not in the selection", "bad argument")
        return Selection(dataset, chosen)

    def where(self, *unnamed: Never, **fields: Wanted | Iterable[Wanted] | Rule) -> Selection:
        """Those whose fields have one of these values: ``ds.where(label=[3, 7])``.

        Such fields are integer scalars.  Of the label, names of classes do as well.  Of any field
        that :meth:`Dataset.column` reads, a function may choose: ``ds.where(score=lambda score:
        score > 0.5)``.  It is called once, with the field of all records to choose from as a NumPy
        array, and returns an array of as many bools.  Several fields must all fit.  Reads these
        fields alone.
        """
        dataset, of = self._source()
        if unnamed:
            raise TypeError(
                f"where({show(unnamed[0])}): name the field whose values it is for, as in ds.where(label=[3, 7]) or "
                "ds.where(score=lambda score: score > 0.5), which is called once, with an array of all values"
            )
        if not fields:
            raise ArgumentError("where(): name a field and its values, such as label=[3, 7]", "bad argument")
        chosen = of
        for name, wanted in fields.items():
            if callable(wanted):
                check_function(name, wanted, "values")
                chosen = _core.Selection.of_mask(dataset, chosen, _mask(dataset, of, name, wanted))
            else:
                chosen = _core.Selection.where(dataset, chosen, name, _values(dataset, name, wanted))
        assert chosen is not None
        return Selection(dataset, chosen)

    @public("split", lambda _, name: refuse_option("split", name, ("seed", "by"), _NOT_OF_SPLIT))
    def split(self, *fractions: float | Sequence[float], seed: SupportsIndex = 0,
              by: str | None = None) -> tuple[Selection, ...]:
        """Parts by chance, without a record in common.

        ``train, rest = ds.split(0.9)``: a tenth remains.  ``ds.split(0.8, 0.1)`` gives three, and
        ``ds.split([0.8, 0.1, 0.1])``, a list that makes 1, gives as many as it has.  The same seed
        gives the same parts, on any machine.  The parts are cut from n records in an order by
        chance, at the sums of the fractions times n, each rounded to the nearest.

        ``by``: the name of a field of whole numbers or of text.  Records with the same value come
        to the same part, as those of one patient should.  Then values are in an order by chance, and
        one comes to the part that the middle of its records is in; parts are as large as that allows.
        """
        dataset, of = self._source()
        cuts, number = _cuts(fractions), whole("seed", seed, 64)
        if by is not None:
            return _split_by(dataset, of, as_text("by", by, "the name of a field"), cuts, number)
        return tuple(
            Selection(dataset, _core.Selection.fraction(dataset, of, begin, end, number))
            for begin, end in zip(cuts, cuts[1:])
        )

    @public("folds")
    def folds(self, count: SupportsIndex, *, seed: SupportsIndex = 0) -> list[tuple[Selection, Selection]]:
        """For cross-validation: ``count`` pairs of a training set and the fold it leaves out."""
        dataset, of = self._source()
        number, k = whole("seed", seed, 64), whole("count", count, least=2)
        return [
            (
                Selection(dataset, _core.Selection.fold(dataset, of, i, k, True, number)),
                Selection(dataset, _core.Selection.fold(dataset, of, i, k, False, number)),
            )
            for i in range(k)
        ]


class Selection(Selectable):
    """Some records of a dataset, each once, in the order of the dataset.

    ``ds.where()``, ``ds.split()``, ``ds.folds()`` and ``ds.select()`` make one, and selections have
    the same methods.  ``libshard.Loader(selection, ...)`` delivers these records alone.
    """

    def __init__(self, dataset: Dataset, core: _core.Selection) -> None:
        self.dataset: Dataset = dataset
        self._core = core

    def _source(self) -> tuple[Dataset, _core.Selection | None]:
        return self.dataset, self._core

    def __len__(self) -> int:
        return len(self._core)

    def __getitem__(self, place: SupportsIndex) -> dict[str, Any]:
        """The record at a place of the selection."""
        if hasattr(place, "__len__") and not hasattr(place, "tolist") or getattr(place, "ndim", None):
            raise ArgumentError(
                f"a selection is indexed by the number of one place, not by a {type(place).__name__}; "
                "ds[selection.numbers(places)] gives several records, and select() takes a mask",
                "bad argument",
            )
        return self.dataset[self._record(no_mask([place])[0])]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[i] for i in range(len(self)))

    def numbers(self, places: Iterable[SupportsIndex]) -> list[int]:
        """The records at these places of the selection: their numbers in the dataset."""
        listed = no_mask(as_items("places", places, "numbers of places in the selection"))
        return [self._record(place) for place in listed]

    def _record(self, place: SupportsIndex) -> int:
        """The record at a place."""
        at = number_in(len(self), place, "place", lambda: f"the selection of {self.dataset.path}")
        return int(self._core.records(at, 1).tolist()[0])

    @property
    def records(self) -> Array:
        """Numbers of the records, ascending: an int64 array."""
        return self._core.records(0, len(self))

    @property
    def digest(self) -> str:
        """SHA-256 of the dataset's id and the numbers: what states of loaders hold."""
        return self._core.digest()

    @property
    def amplification(self) -> float:
        """What a loader reads and hashes, over what it delivers: an estimate.

        Small records are hashed, and compressed ones decoded, several at a time.
        """
        return self._core.amplification(self.dataset)

    def save(self, path: Path) -> None:
        """Write a small file, which ``ds.load_selection(path)`` and shardcat read."""
        self._core.write(as_path("path", path))

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.dataset, array("q", self.records.tobytes()))

    def __repr__(self) -> str:
        return f"<libshard.Selection: {len(self):,} of {len(self.dataset):,} records of {self.dataset.path!r}>"


def not_a_set(what: object) -> NoReturn:
    """``what in ds``: Python would read all records, compare each with ``what``, and say no."""
    raise TypeError(
        f"{show(what)} in a dataset: its items are records. ds.by_key(key) raises KeyError if no record has that key, "
        "and name in ds.schema.names asks for a field"
    )


def no_mask(places: Iterable[SupportsIndex]) -> list[SupportsIndex]:
    """Numbers as a list.  A mask would be read as zeros and ones."""
    listed = places.tolist() if hasattr(places, "tolist") else list(places)
    if any(is_bool(p) for p in listed):
        raise ArgumentError(
            "a mask of bools is not a list of numbers: numpy.flatnonzero(mask) gives them, and select(mask) takes a "
            "mask with one bool for each record of the dataset",
            "bad argument",
        )
    return listed


def is_bool(value: object) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def load_selection(dataset: Dataset, path: Path) -> Selection:
    return Selection(dataset, _core.Selection.read(dataset, as_path("path", path)))


def column_of(dataset: Dataset, field: str, of: _core.Selection | None = None) -> Array:
    """A field of all records, or a column of a table that is a part of one."""
    name = as_text("field", field, "the name of a field")
    if name not in dataset.schema.names:
        for wide, names in dataset.columns.items():
            if name in names:
                column: Array = _core.Selection.column(dataset, of, wide)[:, names.index(name)]
                return column
        _refuse_absent(dataset, name)
    if dataset.schema[name].kind == "string":
        _refuse_text(dataset, name)
    return _core.Selection.column(dataset, of, name)


def _refuse_text(dataset: Dataset, name: str, wanted: str | None = None) -> NoReturn:
    said = (
        f"field {show(name)} of {dataset.path} is text or bytes of any length, and not a column of numbers; "
        f"`shardcat select DIR --where {name}={'VALUE' if wanted is None else wanted} -o FILE` and ds.load_selection(FILE) choose "
        f"records by it, split(by={name!r}) keeps equal ones together, and to_arrow([{name!r}]) has all of them"
    )
    raise ArgumentError(said, "bad argument") if wanted is None else TypeError(said)


def _refuse_absent(dataset: Dataset, name: str) -> NoReturn:
    there = ", ".join(dataset.schema.names)
    raise ArgumentError(f"field {show(name)} is not in {dataset.path}, which has {there}{of_stack(dataset, name)}", "bad argument")


def _again(dataset: Dataset, records: array[int]) -> Selection:
    return dataset.select(records)


def _cuts(fractions: tuple[Any, ...]) -> list[float]:
    """Where parts begin and end, from 0 to 1."""
    given: Any = fractions
    is_list = len(fractions) == 1 and hasattr(fractions[0], "__len__") and not isinstance(fractions[0], str)
    if is_list and isinstance(fractions[0], Set):
        raise TypeError(f"fractions={show(fractions[0])}; must be a list, since a set has no order")
    if is_list:
        given = as_items("fractions", fractions[0], "numbers that make 1, such as [0.8, 0.2]")
    elif any(hasattr(fraction, "__len__") and not isinstance(fraction, str) for fraction in fractions):
        raise TypeError(f"split({show(fractions[0])}, ...): give the fractions one by one, or as one list")
    cuts, parts = [0.0], [as_number("fractions", fraction) for fraction in given]
    for part in parts:
        cuts.append(cuts[-1] + part)
    if is_list and parts and all(part > 0 for part in parts) and abs(cuts[-1] - 1) > 1e-9:
        raise ArgumentError(
            f"fractions={show(given)}; a list must make 1 together, and this makes {cuts[-1]:.9g}; ds.split(0.8, 0.1) "
            "gives the rest as a part of its own, and ds.select(range(100)) a number of records",
            "bad argument",
        )
    if not parts or not all(0 < part < 1 or part == 1 and is_list for part in parts) or cuts[-1] > 1 + 1e-9:
        raise ArgumentError(f"fractions={show(given)}; must be above 0, and 1 at most together", "bad argument")
    if len(parts) > 1 and 1 - 1e-9 < cuts[-1] < 1 - 1e-12 and not is_list:
        raise ArgumentError(
            f"fractions={show(given)}; together they are {cuts[-1]!r}: is there a part for the rest? Give "
            "some that make 1, or leave at least 1e-9",
            "bad argument",
        )
    if not is_list and (len(parts) == 1 or cuts[-1] < 1 - 1e-9):
        cuts.append(1.0)
    cuts[-1] = 1.0
    return cuts


def _groups_of(dataset: Dataset, of: _core.Selection | None, field: str) -> dict[Any, array[int]]:
    """Records by the value of a field of whole numbers or text, values ascending."""
    values: list[Any]
    known = dataset.schema[field] if field in dataset.schema else None
    records = range(len(dataset)) if of is None else of.records(0, len(of)).tolist()
    if known is not None and known.kind == "string":
        values = [dataset[record][field] for record in records]
    else:
        column = column_of(dataset, field, of)  # which says so if the dataset does not have that field
        if column.ndim > 1 or not column.dtype.startswith(("int", "uint", "bool")):
            raise ArgumentError(
                f"field {field!r} is {column.dtype} {list(column.shape[1:]) or ''}".rstrip()
                + "; must be a whole number or a text in each record, so that a record has one value",
                "bad argument",
            )
        values = column.tolist()
    groups: dict[Any, array[int]] = {}
    for record, value in zip(records, values):
        groups.setdefault(value, array("q")).append(record)
    return {value: groups[value] for value in sorted(groups)}


def _split_by(dataset: Dataset, of: _core.Selection | None, field: str, cuts: list[float],
              seed: int) -> tuple[Selection, ...]:
    groups = list(_groups_of(dataset, of, field).values())
    parts = [array("q") for _ in cuts[1:]]
    count, before, place = sum(map(len, groups)), 0, 0
    for number in _core.shuffle(seed, len(groups), 0, len(groups)).tolist():
        group = groups[number]
        while 2 * before + len(group) >= 2 * count * cuts[place + 1]:  # the last one is 1, and not reached
            place += 1
        parts[place] += group
        before += len(group)
    for place, part in enumerate(parts):
        if not part:
            raise ArgumentError(
                f"split: part {place} of {len(parts)} would have no record, since field {field!r} has {len(groups)} values "
                f"in {count} records, and those of one value stay together; give fewer or other fractions, or another seed",
                "bad argument",
            )
    return tuple(Selection(dataset, _core.Selection.of_records(dataset, part)) for part in parts)


def _buffer(records: Iterable[SupportsIndex]) -> memoryview | array[int]:
    """Numbers or a mask where they lie; or, of objects without a buffer of either, a list."""
    if hasattr(records, "__array__") and not isinstance(records, _core.Array):
        try:
            numpy: Any = import_module("numpy")
            items: Any = records
            if isinstance(items, numpy.ma.MaskedArray):  # its memory has numbers where they are hidden
                records = items.tolist()
            else:
                records = items = numpy.asarray(items)  # of a tensor, a series
                if items.dtype.kind in "mM":  # whose list would be whole numbers
                    raise TypeError(f"records={show(items)}; must be whole numbers")
        except ImportError:
            pass
    try:
        view = memoryview(records)  # type: ignore[arg-type]
    except (TypeError, ValueError):  # no buffer, or one of a type that has no format
        listed = as_items("records", records.tolist() if hasattr(records, "tolist") else records, "whole numbers")
        if listed and all(is_bool(v) for v in listed):
            return memoryview(bytes(map(bool, listed))).cast("?")
        return _numbers("records", listed)
    if view.ndim != 1:
        raise TypeError(f"records: an array of {view.ndim} axes; must have one")
    if view.format == "?" or view.format in _NUMBERS:
        return view if view.c_contiguous else memoryview(view.tobytes()).cast(view.format)
    return _numbers("records", records)  # such as those of another byte order


def _warn_of_order(numbers: memoryview | array[int]) -> None:
    """Elsewhere a subset has the order of its numbers, so someone may rely on that."""
    numpy: Any = sys.modules.get("numpy")  # an array that is long comes from it
    if numpy is not None:
        given = numpy.asarray(numbers)
        is_ascending = bool((given[1:] >= given[:-1]).all())
    else:
        is_ascending = all(a <= b for a, b in pairwise(numbers))
    if not is_ascending:
        few = show(list(numbers[:3]))
        warnings.warn(
            f"select(): a selection is in the order of the dataset, and the numbers, which begin with {few}, are not ascending; "
            f"ds[{few if len(numbers) < 4 else 'numbers'}] has records in their order, and select(sorted(numbers)) is the same "
            "selection without this warning",
            stacklevel=stack_level(),
        )


def _numbers(what: str, values: Iterable[SupportsIndex]) -> array[int]:
    """Whole numbers as C will see them."""
    listed = values.tolist() if hasattr(values, "tolist") else values
    listed = as_items(what, listed, "whole numbers")
    try:
        numbers = array("q", [operator.index(v) for v in listed])
    except TypeError:
        raise TypeError(f"{what}={show(values)}; must be whole numbers") from None
    except OverflowError:
        raise ArgumentError(f"{what}: a number is not one of 64 bits with a sign", "bad argument") from None
    if any(isinstance(v, bool) for v in listed):
        raise TypeError(f"{what}={show(values)}: bools and numbers are mixed; a mask has bools alone")
    return numbers


def _mask(dataset: Dataset, of: _core.Selection | None, name: str, rule: Rule) -> Any:
    """A bool for each record of the dataset: does the rule choose it?"""
    try:
        numpy = import_module("numpy")
    except ImportError:
        raise ImportError(f"where({name}=<function>) calls it with a NumPy array, and there is no NumPy") from None
    column = numpy.asarray(column_of(dataset, name, of))
    places = numpy.asarray(of.records(0, len(of))) if of is not None else None
    answer = rule(column)
    try:
        chosen = numpy.asarray(answer)
    except ValueError:  # of lists that differ in length
        chosen = numpy.empty((), object)
    if chosen.dtype != bool or chosen.shape != column.shape[:1]:
        raise TypeError(
            f"{name}: the function gave {chosen.dtype} of shape {chosen.shape};"
            f" must be an array of {len(column)} bools, one for each record"
        )
    if places is None:
        return numpy.ascontiguousarray(chosen)
    mask = numpy.zeros(len(dataset), bool)
    mask[places[chosen]] = True
    return mask


def _values(dataset: Dataset, name: str, wanted: Wanted | Iterable[Wanted]) -> array[int]:
    """Values of a field; of the label also names of classes."""
    is_one = isinstance(wanted, str) or not hasattr(wanted, "__iter__") or getattr(wanted, "ndim", 1) == 0
    values: list[Any] = [wanted] if is_one else list(wanted)  # type: ignore[arg-type]
    is_label = any(f.name == name and f.semantic == "label" for f in dataset.schema)
    if name not in dataset.schema:
        _refuse_absent(dataset, name)
    field = dataset.schema[name]
    count = sum(map(is_bool, values))
    if count > 2:
        raise TypeError(f"{name}={show(wanted)}: {count} bools; a mask with one bool for each record is for ds.select(mask)")
    if count and field.dtype != "bool":
        raise TypeError(
            f"{name}={show(wanted)}: the field is {field.dtype}, and its values are numbers; give numbers, such as "
            f"where({name}=[0, 1]). A mask with one bool for each record is for ds.select(mask)"
        )
    for i, value in enumerate(values):
        if is_bool(value):
            values[i] = int(value)
        if not isinstance(value, str):
            continue
        if field.kind == "string":
            _refuse_text(dataset, name, show(value))
        if not is_label:
            raise TypeError(f"{name}={show(value)}; must be a whole number, since this field has no classes")
        if value not in dataset.classes:
            raise ArgumentError(
                f"{name}={show(value)}: {dataset.path} has no such class; see dataset.classes, which begins with "
                f"{show(dataset.classes[:3])}",
                "bad argument",
            )
        values[i] = dataset.classes.index(value)
    if field.kind == "tensor" and not field.shape and field.dtype.startswith(("float", "bfloat")):
        said = (
            f"{name}={show(wanted)}: the field is {field.dtype}, and values are for fields of whole numbers; "
            f"ds.where({name}=lambda v: v > 0.5) chooses by a function, which gets all values as an array"
        )
        raise TypeError(said) if any(isinstance(v, float) for v in values) else ArgumentError(said, "bad argument")
    return _numbers(name, values)
