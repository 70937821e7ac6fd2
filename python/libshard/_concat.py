# SPDX-License-Identifier: Apache-2.0
"""Datasets one behind the other: records by number."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

from . import _frameworks
from ._dataset import Dataset, opened
from ._errors import ArgumentError, MismatchError
from ._hints import Hinting
from ._options import as_items, number_in, public, show
from ._selection import Selection, is_bool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ._description import Schema, Value
    from ._types import Path


class Concat(Hinting):
    """The records of several datasets or selections, one behind the other.  ``a + b`` makes one.

    ``both[i]`` is a record, numbers below 0 count from the end, and ``len(both)`` is the sum.  It is
    for reading by number, for ``torch.utils.data.DataLoader`` and for :func:`libshard.pack`.  A
    loader refuses it: an order over all of them needs them to be one dataset, which
    ``shardpack merge`` makes without writing a record again.
    """

    def __init__(self, datasets: Iterable[Dataset | Selection]) -> None:
        self.datasets = tuple(datasets)
        self.dataset = _dataset(self.datasets[0])  #: the first one, whose schema and classes all have
        self._ends = list(accumulate(map(len, self.datasets)))

    @property
    def schema(self) -> Schema:
        """The fields, as the first one has them."""
        return self.dataset.schema

    @property
    def classes(self) -> list[str]:
        """Names of the classes, which are those of all."""
        return self.dataset.classes

    def __len__(self) -> int:
        return self._ends[-1]

    def _find(self, number: SupportsIndex) -> tuple[Dataset | Selection, int]:
        at = number_in(len(self), number, "record", "concatenation")
        which = bisect_right(self._ends, at)
        return self.datasets[which], at - (self._ends[which - 1] if which else 0)

    def __getitem__(self, number: SupportsIndex) -> dict[str, Value]:
        if is_bool(number) or isinstance(number, (slice, str)) or hasattr(number, "__len__"):
            raise TypeError(
                f"a concatenation is indexed by the number of one record, not by {show(number)}; index its .datasets "
                "for several at a time"
            )
        source, at = self._find(number)
        return source[at]

    def key(self, number: SupportsIndex) -> str:
        """The key of a record; '' if it has none."""
        source, at = self._find(number)
        return source.dataset.key(source.numbers([at])[0]) if isinstance(source, Selection) else source.key(at)

    def __iter__(self) -> Iterator[dict[str, Value]]:
        return (self[i] for i in range(len(self)))

    def __getitems__(self, numbers: Iterable[SupportsIndex]) -> list[dict[str, Value]]:
        """For ``torch.utils.data.DataLoader``, which asks for the records of a batch."""
        _frameworks.check_records(self.schema)
        return [self[number] for number in numbers]

    def __add__(self, other: Any) -> Concat:
        return concat([self, other])

    def __radd__(self, other: object) -> NoReturn:
        raise TypeError(f"{show(other)} + a concatenation: libshard.concat([a, b]) puts records one behind the other")

    def __repr__(self) -> str:
        return f"<libshard.Concat of {len(self.datasets)} datasets: {len(self):,} records>"


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
    return Concat(parts)


def _dataset(source: Dataset | Selection) -> Dataset:
    return source.dataset if isinstance(source, Selection) else source


def _check(a: Dataset, b: Dataset) -> None:
    """Do their records mean the same?"""
    kinds = [
        {f.name: (f.dtype, f.kind, f.layout, f.semantic, f.shape if f.kind == "tensor" else len(f.shape)) for f in d.schema}
        for d in (a, b)
    ]
    for name in (*kinds[0], *kinds[1]):
        if kinds[0].get(name) != kinds[1].get(name):
            said = [str(d.schema[name]) if name in d.schema else f"no field {name!r}" for d in (a, b)]
            said = [f"{text} ({d.schema[name].semantic}, {d.schema[name].layout})" if said[0] == said[1] else text
                    for text, d in zip(said, (a, b))]  # fmt: skip
            raise MismatchError(
                f"{a.path} has {said[0]}, and {b.path} has {said[1]}; pack both with the same fields",
                "not as the manifest says",
            )
    if a.classes != b.classes:
        raise MismatchError(
            f"{a.path} and {b.path} have other classes, {show(a.classes)} and {show(b.classes)}, so a label would mean "
            f"two things; pack one with those of the other, such as classes=ds.classes",
            "not as the manifest says",
        )
