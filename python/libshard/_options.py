# SPDX-License-Identifier: Apache-2.0
"""What callers give, checked before C sees it."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, SupportsIndex

from ._errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence


def whole(option: str, value: SupportsIndex, bits: int = 32, least: int = 0) -> int:
    """A number as C will see it: what does not fit must not wrap around."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{option}={value!r}; must be a whole number") from None
    if not least <= number < 1 << bits:
        raise ArgumentError(f"{option}={number}; must be {least} to {(1 << bits) - 1}", "bad argument")
    return number


def choice(option: str, value: str, names: Sequence[str]) -> int:
    if value not in names:
        raise ArgumentError(f"{option}={value!r}; must be one of {', '.join(map(repr, names))}", "bad argument")
    return names.index(value)
