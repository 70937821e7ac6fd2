# SPDX-License-Identifier: Apache-2.0
"""Datasets: what is in them, and their records by number."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

from . import _core
from ._description import ChannelsOfFields, ChannelStats, Field, Schema, Stats, VerifyReport
from ._errors import (
    ArgumentError,
    CorruptError,
    Error,
    MismatchError,
    NotFoundError,
    StorageError,
    UnsupportedError,
)
from ._options import as_flag, as_items, as_path, as_text, check_function, choice, number_in, public, show, whole
from ._selection import Selectable, Selection, load_selection, no_mask
from ._show import Preview, dataset_html, escape, spread_numbers
from ._tables import column_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ._types import Check, Path

_CHECKS = ("device", "always", "never", "first")


class Dataset(_core.Dataset, Selectable):
    """A packed dataset, open for reading.  ``libshard.open(path)`` makes one.

    ``len(ds)`` is the number of records.  ``ds[i]`` is one record as a dict: numbers for scalars,
    ``str`` or ``bytes`` for strings, a list of ``str`` for a list of texts, read-only arrays for
    all others, which point into the file (uncompressed data is not copied).  ``ds[10:20]``,
    ``ds[[5, 3, 8]]`` and ``ds[mask]``, with a bool for each record, give several, with the records
    on the first axis: views where the records are neighbours in one shard, copies else.  They are read when they are looked into, and no
    other group of fields with them.  Above 16,384 shards, all arrays are copies.
    Every record is checked against its hash when it is first used, and when it is read from a disk
    again.

    Safe for any number of threads, after ``fork``, and picklable: it opens the same files again,
    and raises :class:`MismatchError` if they are not the same any more.
    """

    @public("libshard.Dataset")
    def __new__(cls, path: Path, *, check: Check = "device", guard: bool = True, id: str | None = None) -> Self:
        """Open the folder ``path``; reads its manifest and no shard.

        ``check``: when records are compared with their hashes: at their first use and when they
        come from a ``"device"`` again, ``"always"``, ``"never"``, or at their ``"first"`` use only.
        ``guard``: a file that is cut or cannot be read while it is open is an exception, not a dead
        process.  ``id``: the id that the dataset must have, 64 hex digits from somebody you trust;
        else :class:`MismatchError`.
        """
        if id is not None:
            as_text("id", id, "64 hex digits")
        name, kind, is_guarded = as_path("path", path), choice("check", check, _CHECKS), as_flag("guard", guard)
        try:
            return super().__new__(cls, name, check=kind, guard=is_guarded, id=id)
        except NotFoundError as e:
            raise NotFoundError(e.message + _advice(name), e.status, e.os_code) from None

    def __init__(self, path: Path, *, check: Check = "device", guard: bool = True, id: str | None = None) -> None:
        self._options = {"check": check, "guard": guard}

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (type(self), self.path, self._options, self.id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[i] for i in range(len(self)))

    @cached_property
    def schema(self) -> Schema:
        """The fields: a :class:`Schema`."""
        return Schema(Field(*(f[k] for k in Field.__dataclass_fields__)) for f in self._fields())

    @cached_property
    def _details(self) -> dict[str, Any]:
        return self._info()

    @property
    def id(self) -> str:
        """SHA-256 of the manifest, and so of everything: what a training job should write down."""
        return str(self._details["id"])

    @property
    def shard_count(self) -> int:
        """Files that the records are in."""
        return int(self._details["shard_count"])

    @property
    def nbytes(self) -> int:
        """Of all shard files."""
        return int(self._details["data_bytes"])

    @cached_property
    def classes(self) -> list[str]:
        """Names of the classes; a label is an index of this list.  Empty if there are none."""
        return [self._class_name(i) for i in range(self._details["class_count"])]

    @cached_property
    def columns(self) -> dict[str, list[str]]:
        """Names of the columns of a table that :func:`libshard.pack` put into one field.

        A dict of field to names: ``ds.columns["float64"][3]`` is the name of ``ds[0]["float64"][3]``.
        Empty if the dataset was not made of a table.  The first use reads them in each shard.
        """
        return column_names(self)

    @cached_property
    def stats(self) -> Stats:
        """What the packer counted: a :class:`Stats`.  Reads the manifest only."""
        channels, counts = ChannelsOfFields(path=self.path, schema=self.schema), {}
        for number, field in enumerate(self.schema):
            if field.semantic == "image" and len(field.shape) == 3:
                channel_count = field.shape[0 if field.layout == "chw" else 2]
                sums = [m for m in (self._moments(number, c) for c in range(channel_count)) if m]
                if len(sums) == channel_count:
                    channels[field.name] = [ChannelStats(n, s, low + (high << 64)) for n, s, low, high in sums]
            elif field.semantic == "label":
                records = [
                    n for n in (self._class_records(number, c) for c in range(len(self.classes))) if n is not None
                ]
                if len(records) == len(self.classes):
                    counts = dict(zip(self.classes, records))
        return Stats(channels, counts)

    @public("Dataset.verify")
    def verify(
        self,
        *,
        sample_units: SupportsIndex = 0,
        threads: SupportsIndex = 0,
        sha256: bool = False,
        progress: Callable[[int, int], object] | None = None,
        strict: bool = True,
    ) -> VerifyReport:
        """Check every rule of the format and every hash; returns a :class:`VerifyReport`.

        ``sample_units``: the structure and this many units only, spread evenly.  ``threads``: 0 for
        one per CPU.  ``sha256``: also the SHA-256 of each file, as after a download.
        ``progress(done_bytes, total_bytes)`` is called ten times a second.  Raises the gravest
        problem that was found, unless ``strict`` is False; the exception has the report as
        ``report``.
        """
        is_strict = as_flag("strict", strict)
        if progress is not None:
            check_function("progress", progress, "done_bytes, total_bytes")
        report = VerifyReport(
            **self._verify(
                sample_units=whole("sample_units", sample_units, 64),
                threads=whole("threads", threads),
                sha256=as_flag("sha256", sha256),
                progress=progress,
            )
        )
        if is_strict and report.problem_count:
            kinds: dict[str, type[Error]] = {
                "corrupt": CorruptError,
                "unsupported": UnsupportedError,
                "not as the manifest says": MismatchError,
            }
            status, message = min(report.problems, key=lambda p: [*kinds, p[0]].index(p[0]))
            error = kinds.get(status, StorageError)(message, status)
            error.report = report
            raise error
        return report

    @public("Dataset.show")
    def show(self, records: SupportsIndex | Sequence[SupportsIndex] = 16) -> Preview:
        """Some records to look at: a number of them from all over the dataset, or the ones with these numbers.

        Pictures in a notebook; ``print(ds.show())`` has a line of text for each.
        """
        if isinstance(records, SupportsIndex) and not hasattr(records, "__len__"):  # arrays have both
            return Preview(self, spread_numbers(len(self), whole("records", records, 64)))
        numbers = no_mask(as_items("records", records, "a number of records, or numbers of records"))
        return Preview(self, [number_in(len(self), number, "record", lambda: self.path) for number in numbers])

    @public("Dataset.index_of")
    def index_of(self, key: str) -> int:
        """The number of the record with this key: the other way of :meth:`key`.

        The first call reads all keys, and keeps 16 bytes for each.  Raises ``KeyError`` if no
        record has it, and :class:`ArgumentError` if several have.
        """
        count, first, second = self._find_key(as_text("key", key, "the key of a record"))
        if not count:
            raise ArgumentError(
                f"{self.path}: its records have no keys; libshard.pack(..., key=...) and shardpack images write them",
                "bad argument",
            )
        if first is None:
            raise KeyError(f"no record of {self.path} has the key {show(key)}; ds.key(0) is {show(self.key(0))}")
        if second is not None:
            raise ArgumentError(
                f"{self.path}: the key {show(key)} is not of one record alone: records {first} and {second} have it; "
                "take them by number",
                "bad argument",
            )
        return first

    @public("Dataset.by_key")
    def by_key(self, key: str) -> dict[str, Any]:
        """The record with this key, such as ``"cat/17.jpg"``: ``ds[ds.index_of(key)]``."""
        return self[self.index_of(key)]

    @public("Dataset.load_selection")
    def load_selection(self, path: Path) -> Selection:
        """What ``selection.save(path)`` or ``shardcat select`` wrote.

        Raises :class:`MismatchError` if it selects records of another dataset.
        """
        return load_selection(self, path)

    def _source(self) -> tuple[Dataset, None]:
        return self, None

    def _repr_html_(self) -> str:
        return f"<code>{escape(repr(self))}</code>" if self.closed else dataset_html(self)

    def __repr__(self) -> str:
        if self.closed:
            return f"<libshard.Dataset {self.path!r}, closed>"
        fields = ", ".join(str(f) for f in self.schema if f.semantic != "length")
        shards = f"{self.shard_count:,} shard{'s' * (self.shard_count != 1)}"
        return f"<libshard.Dataset {self.path!r}: {len(self):,} records of ({fields}), {shards}>"


def _advice(name: str) -> str:
    """What to do about a folder without a manifest."""
    if "://" in name:
        return "; datasets are folders of this machine: fetch it first, and open the copy"
    if name.startswith("~"):
        return "; '~' does not stand for a folder here: give os.path.expanduser(path)"
    if not os.path.isdir(name):
        return "; there is no such folder"
    if os.path.isdir(os.path.join(name, ".shardpack")):
        return (
            "; this dataset is unfinished: run the same shardpack command again, or shardpack build and then "
            f"seal {name}"
        )
    inside = sorted(n for n in os.listdir(name) if os.path.exists(os.path.join(name, n, "dataset.manifest")))
    if inside:
        return f"; the folder holds datasets, such as {inside[0]!r}: open one of them"
    return "; this folder is not a dataset: shardpack or libshard.pack() makes one of images, tables or arrays"


def _reopen(cls: type[Dataset], path: str, options: dict[str, Any], dataset_id: str) -> Dataset:
    ds = cls(path, **options)
    if ds.id != dataset_id:
        raise MismatchError(
            f"{path}: another dataset ({ds.id[:16]}...) than the one that was pickled ({dataset_id[:16]}...)",
            "not as the manifest says",
        )
    return ds


def opened(option: str, source: Any) -> Dataset:
    """What a user gave as a dataset, or as the path of one."""
    if isinstance(source, Dataset):
        return source
    if isinstance(source, (str, bytes, os.PathLike)):
        return Dataset(source)
    hint = "libshard.pack() makes a dataset of samples"
    inner = getattr(source, "dataset", None)
    if isinstance(inner, Dataset):  # a ShardDataset of ours, a loader, a mixture, a Subset of PyTorch
        hint = f"give it the {type(source).__name__}'s .dataset"
        if hasattr(source, "indices") and not callable(source.indices):  # a loader's is a method
            hint += ".select(subset.indices)"
        elif getattr(source, "selection", None) is not None:
            hint = f"give it the {type(source).__name__}'s .selection"
        elif hasattr(source, "sources"):
            hint = "a mixture is for libshard.Loader and libshard.torch.Loader"
    elif isinstance(source, (list, tuple)) and any(isinstance(part, (Dataset, Selection)) for part in source):
        hint = "libshard.concat([a, b]) and libshard.mix([a, b]) make one of several"
    raise TypeError(f"{option}={show(source)}; must be a libshard.Dataset, a selection, or the path of one; {hint}")


@public("libshard.open")
def open(path: Path, *, check: Check = "device", guard: bool = True, id: str | None = None) -> Dataset:
    """Open the dataset in folder ``path``: a :class:`Dataset`."""
    return Dataset(path, check=check, guard=guard, id=id)
