# SPDX-License-Identifier: Apache-2.0
"""What a dataset says of itself: its fields, its statistics, and the result of a check."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from ._errors import ArgumentError
from ._options import public, show

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._types import FieldKind, FieldLayout, Semantic


@dataclass(frozen=True)
class Field:
    """A named tensor in every record."""

    name: str
    dtype: str  #: as NumPy calls it, or ``"bfloat16"``
    shape: tuple[int, ...]  #: of one record; of a ragged field or string, the greatest
    kind: FieldKind = "tensor"  #: ``"tensor"``, ``"ragged"`` (the first axis varies) or ``"string"``
    layout: FieldLayout = "none"  #: ``"hwc"``, ``"chw"``, ... or ``"none"``
    #: ``"image"``, ``"label"``, ``"length"``, ``"tokens"``, ``"mask"``, ``"boxes"``, ``"text"`` or
    #: ``"none"``
    semantic: Semantic = "none"
    group: int = -1  #: fields of a group lie together in a record; for a writer, -1 is a choice by size
    bytes: int = 0  #: of one record; a writer computes it

    def __str__(self) -> str:
        axes = "[" + ",".join(map(str, self.shape)) + "]" if self.shape else ""
        return f"{self.name}: {self.dtype}{axes}" + ("" if self.kind == "tensor" else f" {self.kind}")


Field.__init__ = public("libshard.Field")(Field.__init__)  # type: ignore[method-assign]


class Schema(tuple[Field, ...]):
    """The fields of a record, in order; also by name: ``ds.schema["image"].shape``."""

    @overload
    def __getitem__(self, which: SupportsIndex | str, /) -> Field: ...

    @overload
    def __getitem__(self, which: slice, /) -> tuple[Field, ...]: ...

    def __getitem__(self, which: Any, /) -> Any:
        if not isinstance(which, str):
            try:
                return super().__getitem__(which)
            except TypeError:
                raise TypeError(f"schema[{show(which)}]: give the name of a field, or its number") from None
            except ValueError:
                said = f"schema[{show(which)}]: the step of a slice must not be 0"
                raise ArgumentError(said, "bad argument") from None
        for field in self:
            if field.name == which:
                return field
        raise KeyError(f"no field {show(which)}; there are {', '.join(f.name for f in self)}")

    def __contains__(self, which: object, /) -> bool:
        """Is this the name of a field, or one of the fields?"""
        if isinstance(which, str):
            return any(f.name == which for f in self)
        return isinstance(which, Field) and super().__contains__(which)

    @property
    def names(self) -> list[str]:
        """Of all fields, in order."""
        return [field.name for field in self]

    def __str__(self) -> str:
        return "\n".join(map(str, self))


@dataclass(frozen=True)
class ChannelStats:
    """Of one channel over the whole dataset, from exact integer sums."""

    count: int  #: samples
    sum: int
    sum_squares: int

    @property
    def mean(self) -> float:
        """On the scale of the data, 0 to 255 for pixels."""
        return self.sum / self.count if self.count else math.nan

    @property
    def std(self) -> float:
        """Pooled over all samples, not the mean of per-image values."""
        if not self.count:
            return math.nan
        return math.sqrt(self.count * self.sum_squares - self.sum * self.sum) / self.count


class ChannelsOfFields(dict[str, list[ChannelStats]]):
    """A dict that says why it does not have a field."""

    def __init__(
        self, items: Iterable[tuple[str, list[ChannelStats]]] = (), path: str = "", schema: Schema | None = None
    ) -> None:
        super().__init__(items)
        self._path, self._schema = path, schema

    def __missing__(self, name: Any) -> list[ChannelStats]:
        if self._schema is None:
            raise KeyError(name)
        field = self._schema[name]  # raises if there is none
        why = "sums are recorded of images of uint8 that all have one size"
        if field.semantic == "image" and field.kind == "ragged":
            why = "of whole images no sums are recorded, because they would count the zeros behind each image"
        raise KeyError(
            f"stats.channels has no field {show(name)}: {why}. `shardcat stats {self._path}` reads the records, and prints "
            "mean and std of each channel as they are stored, so from 0 to 255 for uint8"
        )


@dataclass(frozen=True)
class Stats:
    """What the packer counted while it wrote."""

    channels: dict[str, list[ChannelStats]]  #: field name to one :class:`ChannelStats` for each channel
    class_counts: dict[str, int]  #: class name to records


@dataclass(frozen=True)
class VerifyReport:
    """What :meth:`Dataset.verify` looked at, and found."""

    shard_count: int
    record_count: int
    unit_count: int  #: hashes that were compared
    bytes: int
    problem_count: int
    elapsed_ns: int
    problems: list[tuple[str, str]]  #: (status, message) of each

    @property
    def ok(self) -> bool:
        """Was nothing wrong?"""
        return self.problem_count == 0
