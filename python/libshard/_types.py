# SPDX-License-Identifier: Apache-2.0
"""Names for what goes in and out, for type checkers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, SupportsIndex, TypeAlias, Union

if TYPE_CHECKING:
    from ._core import Array

Path: TypeAlias = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]

#: A field of one record.
Value: TypeAlias = Union["Array", int, float, bool, str, bytes]


class Indices(Protocol):
    """Numbers of records: a list, a range, an array of integers."""

    def __len__(self) -> int: ...

    def __getitem__(self, i: int, /) -> SupportsIndex: ...
