# SPDX-License-Identifier: Apache-2.0
"""Names for what goes in and out, for type checkers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, Protocol, SupportsIndex, TypeAlias, TypedDict, Union

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from _typeshed import WriteableBuffer

    from ._transform import Transform

Path: TypeAlias = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]

# Words that options take.
Check: TypeAlias = Literal["device", "always", "never", "first"]
Compress: TypeAlias = Literal["none", "lz4"]
Corrupt: TypeAlias = Literal["fail", "substitute", "mask"]
FieldKind: TypeAlias = Literal["tensor", "ragged", "string"]
FieldLayout: TypeAlias = Literal["none", "hwc", "chw", "yuv420", "tokens"]
ReadPath: TypeAlias = Literal["auto", "map", "direct", "pread"]
Semantic: TypeAlias = Literal["none", "image", "label", "length", "tokens", "mask", "boxes", "text"]
Shuffle: TypeAlias = Literal["auto", "sequential", "global", "windows"]
Stop: TypeAlias = Literal["longest", "shortest"]
Strings: TypeAlias = Literal["rows", "lists"]
Tail: TypeAlias = Literal["drop", "pad", "keep"]
Tokens: TypeAlias = Literal["int64", "int32"]
WindowEdge: TypeAlias = Literal["pad", "drop"]

Window: TypeAlias = Union[  # first, last, and a step
    "tuple[SupportsIndex, SupportsIndex]", "tuple[SupportsIndex, SupportsIndex, SupportsIndex]", range
]


class Indices(Protocol):
    """Numbers of records: a list, a range, an array of integers."""

    def __len__(self) -> int: ...

    def __getitem__(self, i: int, /) -> SupportsIndex: ...


class Device(Protocol):
    """A ``torch.device``."""

    @property
    def type(self) -> str: ...

    @property
    def index(self) -> int | None: ...


class LoaderOptions(TypedDict, total=False):
    """Of a loader; what they mean is said in ``libshard.Loader``."""

    fields: Iterable[str] | None
    items: str | Iterable[str]
    strings: Strings
    transform: Transform | Callable[[Any], Any] | Sequence[Transform | Callable[[Any], Any]] | None
    transform_as_stored: str | Iterable[str]
    transform_ahead: SupportsIndex
    shuffle: bool | Shuffle
    seed: SupportsIndex
    max_steps: SupportsIndex | None
    drop_last: bool | None
    tail: Tail | None
    prefetch: SupportsIndex
    max_held: SupportsIndex
    copy: bool
    threads: SupportsIndex
    path: ReadPath
    on_corrupt: Corrupt
    corrupt_most: SupportsIndex | None
    device: str | Device
    pin_memory: bool
    memory: WriteableBuffer | None
    window_runs: SupportsIndex
    lanes: SupportsIndex
    run_records: SupportsIndex
    phase_unit_records: SupportsIndex
    stage_bytes: SupportsIndex
    stream: object
    pool_bytes: SupportsIndex | Literal["all"]
    pin_most: SupportsIndex | None
    resume_appended: bool
    check_ranks: bool
    window: Window | None
    episode: str
    window_edge: WindowEdge
