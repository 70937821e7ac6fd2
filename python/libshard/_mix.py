# SPDX-License-Identifier: Apache-2.0
"""Mixtures: several datasets in one loader, in exact proportions."""

from __future__ import annotations

import operator
import os
import warnings
from array import array
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex

from . import _core
from ._concat import Concat, Joined, Zip
from ._dataset import Dataset, opened
from ._errors import ArgumentError, OutOfMemoryError
from ._hints import Hinting
from ._options import as_items, as_number, choice, public, show, stack_level, whole
from ._selection import Selection, column_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ._types import Path, Stop

_STOPS = ("longest", "shortest")
WEIGHTS_MAX = 4096  # the sum of all weights


class Mixture(Hinting):
    """Several datasets or selections, with weights: ``libshard.Loader(mixture, ...)`` mixes them.

    ``libshard.mix()`` and ``libshard.balanced()`` make one.
    """

    def __init__(
        self,
        sources: Sequence[Dataset | Selection],
        weights: Sequence[int] | None,
        epoch_records: int,
        stop: int,
    ) -> None:
        self.sources: tuple[Dataset | Selection, ...] = tuple(sources)
        parts = [(s.dataset, s._core) if isinstance(s, Selection) else (s, None) for s in self.sources]
        given = weights or [0] * len(parts)
        self.dataset: Dataset = parts[0][0]  #: of the first source, whose fields a loader has
        self._core = _core.Mix(tuple((d, s, w) for (d, s), w in zip(parts, given)), epoch_records, stop)

    @property
    def weights(self) -> list[int]:
        """The whole numbers that are used."""
        return self._core.weights()

    @property
    def epoch_records(self) -> int:
        """Records of an epoch, of all ranks together."""
        return self._core.info()["epoch_records"]

    @property
    def digest(self) -> str:
        """SHA-256 of datasets, selections and weights: what states of loaders hold."""
        return self._core.info()["digest"]

    def __len__(self) -> int:
        return self.epoch_records

    def __reduce__(self) -> tuple[Any, ...]:
        return Mixture, (self.sources, self.weights, self.epoch_records, 0)

    def __repr__(self) -> str:
        return f"<libshard.Mixture of {len(self.sources)} sources: {self.epoch_records:,} records an epoch>"


@public("libshard.mix")
def mix(
    sources: Iterable[Dataset | Selection | Path],
    weights: Iterable[SupportsIndex | SupportsFloat] | None = None,
    *,
    epoch_records: SupportsIndex | None = None,
    stop: Stop = "longest",
) -> Mixture:
    """Train on several datasets at once: ``Loader(libshard.mix([web, books], [3, 1]), 256)``.

    ``sources``: datasets, their paths, or selections.  They have the fields that the loader is
    asked for, stored in the same way.

    ``weights``: whole numbers of 1 and more, which are used as they are: each block of
    ``64 * sum(weights)`` records has exactly their share of each source.  ``[3, 1]`` and ``[6, 2]``
    are two orders, and with larger numbers the order is nearer to chance.  Floats are rounded to
    whole numbers with the sum 4096, also 3.0.  None: by the number of records.  A share of less
    than half of a 4096th is refused, and one that rounding changes by a quarter or more warns.

    ``epoch_records``: how long an epoch is.  By default it is about as long as one pass of the
    source that takes longest (``stop="longest"``), or shortest (``"shortest"``): exactly, if that
    is a number of whole blocks.  An epoch is only where a loop ends.  Sources run on from epoch to
    epoch, and each comes in passes that have every record once.
    """
    if isinstance(sources, (Dataset, Selection, Concat, Zip, Mixture, os.PathLike)):
        raise TypeError("sources: must be a list of datasets or selections, as libshard.mix([a, b])")
    parts = [_source("sources", s) for s in as_items("sources", sources, "a list of datasets or selections")]
    if not 1 <= len(parts) <= WEIGHTS_MAX:
        raise ArgumentError(f"sources: there are {len(parts)}; must be 1 to {WEIGHTS_MAX}", "bad argument")
    chosen = None if weights is None else _weights(as_items("weights", weights, "a list of numbers"), len(parts))
    length = 0 if epoch_records is None else whole("epoch_records", epoch_records, 64, least=1)
    mixture = Mixture(parts, chosen, length, choice("stop", stop, _STOPS))
    if chosen is None:
        _warn_of_rounding([len(part) for part in parts], mixture.weights)
    return mixture


@public("libshard.balanced")
def balanced(dataset: Dataset | Selection | Path, *, field: str = "label", stop: Stop = "longest") -> Mixture:
    """All classes equally often, whatever their sizes: a mixture of a selection for each class.

    ``field``: an integer scalar; its values are the classes.  ``stop`` is that of :func:`mix`.
    """
    source = _source("dataset", dataset)
    whole_dataset = source.dataset if isinstance(source, Selection) else source
    of = source._core if isinstance(source, Selection) else None
    column = column_of(whole_dataset, field, of)
    try:
        values = column.tolist()
    except MemoryError:
        raise OutOfMemoryError(
            f"no memory to count the {len(source):,} values of {field}; mix([ds.where(label=0), ...]) counts "
            "nothing in Python",
            "out of memory",
        ) from None
    if values and isinstance(values[0], list):
        raise ArgumentError(f"{field} has several numbers in each record, so a record has no one class", "bad argument")
    classes: dict[Any, array[int]] = {}
    for record, value in zip(source.records.tolist() if isinstance(source, Selection) else range(len(values)), values):
        if value not in classes:
            classes[value] = array("q")
        classes[value].append(record)
    if len(classes) > WEIGHTS_MAX:
        raise ArgumentError(f"{field} has {len(classes)} values; a mixture has at most {WEIGHTS_MAX}", "bad argument")
    parts = [Selection(whole_dataset, _core.Selection.of_records(whole_dataset, classes[v])) for v in sorted(classes)]
    return mix(parts, [1] * len(parts), stop=stop)


def _source(option: str, source: Dataset | Selection | Path) -> Dataset | Selection:
    """One dataset, or what is selected of it: a mixture has an order over the records of each."""
    if isinstance(source, Mixture):
        raise TypeError(f"{option}: a mixture cannot be a source; name its sources, with their weights")
    if isinstance(source.dataset if isinstance(source, (Concat, Selection)) else source, Joined):
        raise TypeError(
            f"{option}={show(source)}; a concatenation cannot be a source of a mixture. Make one dataset of it, by "
            "libshard.pack(both, None, out) or shardpack merge, or give libshard.mix() its parts, whose weights add up"
        )
    return source if isinstance(source, Selection) else opened(option, source)


def _warn_of_rounding(shares: Sequence[float], weights: Sequence[int]) -> None:
    """If that changed one by a quarter or more; the core refuses more than twice."""
    part = sum(shares) / WEIGHTS_MAX
    for number, (share, weight) in enumerate(zip(shares, weights)):
        asked = share / part
        if not 0.8 < weight / asked < 1.25:
            warnings.warn(
                f"weights: source {number} was asked for {asked / WEIGHTS_MAX:.3g} of the records, and gets "
                f"{weight / WEIGHTS_MAX:.3g}, which is {weight} of {WEIGHTS_MAX}; whole numbers are used as they are",
                stacklevel=stack_level(),
            )
            return


def _weights(weights: list[Any], count: int) -> list[int]:
    if len(weights) != count:
        raise ArgumentError(f"weights: there are {len(weights)} for {count} sources", "bad argument")
    try:
        numbers = [operator.index(w) for w in weights]
    except TypeError:
        shares = [as_number("weights", w) for w in weights]
        rounded = _core.Mix.rounded(shares)
        _warn_of_rounding(shares, rounded)
        return rounded
    if min(numbers) < 1 or sum(numbers) > WEIGHTS_MAX:
        raise ArgumentError(
            f"weights={show(numbers)}; each must be 1 or more, and their sum, {show(sum(numbers))}, at most "
            f"{WEIGHTS_MAX}; floats are rounded to that sum",
            "bad argument",
        )
    return numbers
