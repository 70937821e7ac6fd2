# SPDX-License-Identifier: Apache-2.0
"""Writing datasets: records in, verified shards and a manifest out."""

from __future__ import annotations

import fcntl
import os
import re
import unicodedata
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from . import _core
from ._dataset import Dataset
from ._dataset import open as _open_dataset
from ._description import Field, Schema
from ._errors import ClosedError, ExistsError, RecordError, of_system, shown
from ._options import as_flag, as_items, as_names, as_path, as_text, public, show, stack_level, whole
from ._schema import Layout, SchemaLike, fail, infer, is_image, parse

if TYPE_CHECKING:
    from ._types import Compress

MANIFEST = "dataset.manifest"
PACKING = "dataset.packing"  # of libshard.pack(workers=...) that is not finished: _workers.py
SKIPPED = "dataset.skipped"  # the samples that it left out
_OURS = re.compile(r"[0-9]{5,}\.shard\Z|dataset\.(manifest|sources|packing|skipped)\Z|\.tmp\..*")
_Finished: TypeAlias = tuple[bytes, list[tuple[str, int, int]]]  # SHA-256, and what is not finite
_UNSEEN = re.compile("[\u034f\ufe00-\ufe0f\U000e0100-\U000e01ef]")  # a joiner, variation selectors
_FINISHERS = 3  # shards that are made durable and read back while the next is filled


class Writer:
    """A dataset that is being written.  Use it in a ``with``::

        with libshard.Writer("ds", "image:u8[64,64,3],label:i64", classes=["cat", "dog"]) as writer:
            for image, label in samples:
                writer.write({"image": image, "label": label})
        ds = libshard.open("ds/train")

    Records become shards of one size, ``00000.shard`` and so on, each made durable, read back and
    verified before it gets its name.  The manifest is written last, when the ``with`` ends: until
    then there is no dataset.  An exception removes what was written.  A process that is killed
    leaves whole shards without a manifest and temporary files; the next writer of the folder
    removes these, and takes shards over if it makes the same ones.

    One thread at a time, and one process: after ``fork``, the child cannot write to it.
    """

    _state = "new"

    @public("libshard.Writer")
    def __init__(self, out: str | os.PathLike[str], schema: SchemaLike | None = None, *,
                 classes: Iterable[str] | None = None, compress: Compress | None = None,
                 shard_records: int | None = None, shard_bytes: int | None = None, records: int | None = None,
                 keys: bool = False, align: int = 0, replace: bool = False, provenance: str = "") -> None:
        """
        ``out``: the folder; made if it is not there.  If it holds a dataset, that is an
        :class:`ExistsError`, unless ``replace`` is True: then the new one is made beside it, and
        takes its place at the end, at once.

        ``schema``: of a record.  Text as shardpack's, ``"image:u8[32,32,3],label:i64"``; a dict of
        name to such a type, to ``(dtype, shape)``, or to None for a field that the first record
        tells; the schema of a dataset; or None, and the first record tells all.
        ``float32[<=64,4]`` has at most 64 rows, ``text[<=200]`` and ``bytes[<=200]`` are strings of
        at most that many bytes, ``text[<=5,200]`` is a list of at most 5 texts.  A number ``label``
        is the class, an array ``image`` of 1, 3 or 4 channels an image, with mean and deviation in
        ``ds.stats``.

        ``classes``: names of the classes, in the order of their numbers: a list.  Labels are then
        checked, counted, and may be given by name.  A warning names classes that look alike, such
        as ``"cat"`` and ``"Cat"``.

        ``compress``: None, or ``"lz4"`` for what is not small.  ``shard_records`` or
        ``shard_bytes``: the size of a shard; by default an eighth of the dataset, 64 MiB to 1 GiB,
        if ``records`` says how many will come, else 256 MiB.

        ``keys``: every record has a key, such as the path that it came from: ``write(record,
        key=...)``, ``ds.key(i)``.

        ``align``: 4096 lays each record on pages of its own, for O_DIRECT.  ``provenance``: text to
        keep in each shard.

        Raises :class:`ArgumentError`, :class:`ExistsError`, :class:`StorageError`.
        """
        self._shown = as_path("out", out)
        # pathlib makes "s3:/bucket" of "s3://bucket"
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/" + "/" * isinstance(out, str), self._shown):
            fail(
                f"{self._shown}: is a URL; datasets are folders of this machine: write to one and copy it there. "
                f"A folder of that name is {os.path.abspath(self._shown)!r}"
            )
        self._out = os.path.abspath(self._shown)
        self._wanted: dict[str, Field | None] | None = None if schema is None else parse(schema)
        self._classes = _class_names(classes)
        self._class_index = {name: i for i, name in enumerate(self._classes)}
        if len(self._class_index) != len(self._classes):
            fail("classes: a name is given twice")
        if compress is not None and not (isinstance(compress, str) and compress in ("none", "lz4")):
            fail(f"compress={show(compress)}; must be None or 'lz4'")
        if shard_records is not None and shard_bytes is not None:
            fail("shard_records and shard_bytes are both given; give one of them")
        self._compress, self._align, self._keys = compress, whole("align", align), as_flag("keys", keys)
        self._size = (
            None if shard_records is None else whole("shard_records", shard_records, 40, least=1),
            None if shard_bytes is None else whole("shard_bytes", shard_bytes, 63, least=1),
        )
        self._planned = None if records is None else whole("records", records, 48)
        self._provenance = _provenance(provenance)
        self._layout: Layout | None = None
        self._start()
        if self._wanted and None not in self._wanted.values():
            self._lay_out([f for f in self._wanted.values() if f])
        is_new = as_flag("replace", replace)
        try:
            self._dir, self._made = self._open_folder(is_new)
        except OSError as e:
            raise of_system(e, f"out={show(self._shown)}") from None
        self._state = "open"

    def _open_folder(self, replace: bool) -> tuple[str, bool]:
        return prepare(self._out, self._shown, replace)

    def _start(self) -> None:
        """Nothing has been written."""
        self._order, self._seed = 1, 0
        self._not_finite: dict[str, list[int]] = {}
        self._shard: _core.ShardWriter | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._pid = os.getpid()
        self._shard_count = self._in_shard = self._count = 0
        self._per_shard = self._room = 0
        self._finishing: list[tuple[int, _core.ShardWriter, Future[_Finished]]] = []
        self._done: dict[int, bytes] = {}
        self._published: list[str] = []

    # ---- records ----

    def write(self, record: Mapping[str, Any], key: str | None = None) -> None:
        """Add one record: a dict, or any mapping, of field name to value.

        Arrays are taken from whatever has the buffer protocol, ``__array_interface__`` or DLPack on
        the CPU: NumPy, PyTorch, JAX, Pillow images, bytes.  They must have dtype and shape of the
        field.  Numbers, and lists of them, are checked: whole numbers are stored exactly or
        refused, others are rounded to the nearest, and one above the greatest of its dtype is
        refused.  An item that is not in the schema is refused.  A length, such as
        ``tokens_length``, need not be given; if it is, it must be that of the value.

        Raises :class:`RecordError`, a ``ValueError`` that names record, field, dtype and shape, and
        has written nothing.
        """
        self._check()
        if self._layout is None:
            self._see(record)
        elif self._wanted is None and len(record) != len(self._layout.named):
            raise RecordError(
                f"record {self._count}: it has the items {show(list(record))}; "
                f"must have those of the first record, {[f.name for f in self._layout.named]}",
                "bad argument",
            )
        self._refuse_others(record)
        if self._class_index:
            record = self._with_label(record)
        self._check_keys(key)
        self._current().append(record, key, self._count)
        self._wrote(1)

    def write_batch(self, columns: Mapping[str, Any], keys: Sequence[str] | None = None) -> None:
        """Add records that are given by columns: a dict of field name to array, or list, with the
        records on the first axis.

        Arrays that have dtype and shape of their fields are written without a look at single
        records.  Raises :class:`RecordError`; the records before the one it names are written.
        """
        self._check()
        count = count_rows(columns)
        if keys is not None:
            keys = as_items("keys", keys, "a list of str")
        if keys is not None and len(keys) != count:
            fail(f"{len(keys)} keys for {count} records")
        self._check_keys(keys)
        if not count:
            return
        if self._layout is None:
            self._see(columns, rows=True)
        assert self._layout is not None
        self._refuse_others(columns)
        _refuse_labelled(columns)
        name = self._layout.label or ""
        label = _texts(columns.get(name)) if self._class_index else None
        if isinstance(label, (list, tuple)) and any(isinstance(v, str) for v in label):
            columns = {**columns, name: [self._label(v, name, self._count + i) for i, v in enumerate(label)]}
        first = 0
        while first < count:
            shard = self._current()
            n = min(count - first, self._room - self._in_shard)
            n = shard.append_rows(columns, keys, first, n, self._count)
            first += n
            self._wrote(n)

    def __len__(self) -> int:
        """Records so far."""
        return self._count

    @property
    def schema(self) -> Schema | None:
        """The fields with their places.  None before the first record, if that has to tell."""
        return self._layout.schema if self._layout else None

    @property
    def shard_records(self) -> int | None:
        """Records of a shard; None as long as the schema is not known."""
        return self._per_shard if self._layout else None

    @property
    def not_finite(self) -> dict[str, tuple[int, int]]:
        """Of each field with such values in complete shards: how many are NaN, and how many are
        infinite.  A dataset does not record it; ``shardcat stats`` counts them again."""
        return {name: (nan, infinite) for name, (nan, infinite) in self._not_finite.items()}

    # ---- the end ----

    def finish(self) -> Dataset:
        """Complete the dataset: the last shard, then the manifest.  The end of a ``with`` calls it.

        Returns the :class:`Dataset`, open.  Warns of values that are NaN or infinite.
        """
        if self._state == "finished":
            return _open_dataset(self._shown)
        self._check()
        try:
            if not self._count:
                fail(f"{self._shown}: no record was written, so there is no dataset")
            self._end_shard()
            self._wait(0)
            self._check_strangers()
            shards = [(shard_name(k), self._done[k]) for k in range(self._shard_count)]
            _core.seal(self._dir, shards, self._classes, self._order, self._seed)
            if self._dir != self._out:
                _take_place(self._dir, self._out)
        except BaseException:
            self.abort()
            raise
        self._state = "finished"
        self._stop_pool()
        for name, (nan, infinite) in self.not_finite.items():
            warnings.warn(
                f"{self._shown}: field {name!r} has {nan:,} NaN and {infinite:,} infinite values; they were given so, "
                "and are stored as they are",
                stacklevel=stack_level(),
            )
        done = _open_dataset(self._shown)
        _warn_of_alike(done)
        if self._keys:
            _warn_of_repeats(self._shown)
        return done

    def abort(self) -> None:
        """Give up, and remove what was written.  An exception in a ``with`` calls it."""
        if self._state != "open" or os.getpid() != self._pid:
            return
        self._state = "aborted"
        if self._shard is not None:
            self._shard.close()
            self._shard = None
        self._stop_pool()
        for path in self._published:
            if os.path.exists(path):
                os.unlink(path)
        if self._made:
            try:
                os.rmdir(self._dir)
            except OSError:
                pass  # something else is in it, which is not ours

    @property
    def closed(self) -> bool:
        """Was it finished, or given up?"""
        return self._state != "open"

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        if kind is not None:
            removed = len(self._published) if self._state == "open" else 0
            self.abort()
            if removed and isinstance(exc[0], BaseException):
                exc[0].add_note(
                    f"{self._shown}: {removed} complete shards were removed. To leave out records that do not fit, say "
                    "on_error='skip' to libshard.pack, or write to a libshard.Writer, and catch RecordError around write()"
                )
        elif self._state == "open":
            self.finish()

    def __del__(self) -> None:
        if self._state == "open" and os.getpid() == self._pid:
            self.abort()
            warnings.warn(
                f"{shown(self._shown)}: a libshard.Writer was neither finished nor aborted; nothing was kept",
                ResourceWarning,
                source=self,
            )

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            "a writer belongs to its process and cannot be pickled; open another in that process, with another folder"
        )

    def __repr__(self) -> str:
        return f"<libshard.Writer of {self._shown!r}: {self._count:,} records, {self._state}>"

    # ---- inside ----

    def _check(self) -> None:
        if self._state != "open":
            raise ClosedError(f"this writer is {self._state}; open another one", "bad argument")
        if os.getpid() != self._pid:
            fail(f"this writer belongs to process {self._pid}; a forked child must open its own, in another folder")

    def _check_keys(self, key: object) -> None:
        if (key is not None) != self._keys:
            fail(
                "a key was given, but the writer was opened without keys=True"
                if key is not None
                else "the writer was opened with keys=True; give a key"
            )

    @cached_property
    def _required(self) -> dict[str, None]:
        """Items that a record must have, in the order of the schema."""
        wanted = self._wanted or {}
        return {name: None for name, field in wanted.items() if not (field and field.semantic == "length")}

    def _check_items(self, record: Mapping[str, Any]) -> None:
        missing = [name for name in self._required if name not in record]
        if missing:
            error = RecordError(
                f"record {self._count}, field {missing[0]!r}: the record has no such item; it has {show(list(record))}",
                "bad argument",
            )
            error.record, error.field = self._count, missing[0]
            raise error

    def _refuse_others(self, record: Mapping[str, Any]) -> None:
        assert self._layout is not None
        if not isinstance(record, Mapping) or record.keys() <= self._layout.names:
            return
        self._check_items(record)
        others = [name for name in record if name not in self._layout.names]
        raise RecordError(
            f"record {self._count}: the item {show(others[0])} is not in the schema, which has "
            f"{', '.join(f.name for f in self._layout.named)}; leave the item out, or add a field",
            "bad argument",
        )

    def _see(self, record: Mapping[str, Any], rows: bool = False) -> None:
        """What the schema left open is as in the first record."""
        if not isinstance(record, Mapping):
            raise RecordError(
                f"record 0 is a {type(record).__name__}; must be a dict of field name to value", "bad argument"
            )
        if rows:
            _refuse_labelled(record)
        if self._wanted is not None:
            self._check_items(record)
        fields: dict[str, Field] = {}
        for name in record if self._wanted is None else self._wanted:
            given = self._wanted[name] if self._wanted else None
            value: Any = record.get(name)
            if not given and self._class_index and name == "label" and isinstance(value[0] if rows else value, str):
                value = [0] if rows else 0
            fields[name] = given or infer(name, value, 0, rows)
        self._lay_out(fields.values())

    def _lay_out(self, fields: Iterable[Field]) -> None:
        layout = Layout(fields, self._compress, self._align)
        if self._classes and not layout.label:
            found = next((f" ({f})" for f in layout.schema if f.name == "label"), "")
            fail(
                f"classes were given, but no field is a label{found}: a label is one whole number, such as int(x), in a "
                "field 'label', or in a Field with semantic='label'"
            )
        records, size = self._size
        self._per_shard = layout.core.shard_records(records or 0, size or 0, self._planned)
        self._layout = layout

    def _label(self, value: Any, name: str, record: int) -> Any:
        if not isinstance(value, str):
            return value
        found = self._class_index.get(value)
        if found is None:
            error = RecordError(
                f"record {record}, field {name!r}: {show(value)} is none of the {len(self._classes)} classes",
                "bad argument",
            )
            error.record, error.field = record, name
            raise error
        return found

    def _with_label(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        assert self._layout is not None and self._layout.label is not None
        name = self._layout.label
        value = record.get(name) if isinstance(record, dict) else None
        return {**record, name: self._label(value, name, self._count)} if isinstance(value, str) else record

    def _recipe(self) -> str:
        """What the provenance of each shard says.  Images that nobody has resized follow the Pillow of today."""
        assert self._layout is not None
        lines = self._provenance
        if any(is_image(f) for f in self._layout.named) and "\npixels " not in lines:
            lines += "pixels pillow-13\n"
        return lines

    def _current(self) -> _core.ShardWriter:
        assert self._layout is not None
        if self._shard is None:
            planned = self._per_shard
            if self._planned is not None:
                if self._count >= self._planned:
                    fail(
                        f"record {self._count} exceeds records={self._planned}; give the right number, or leave"
                        " records out"
                    )
                planned = min(planned, self._planned - self._count)
            self._shard = _core.ShardWriter(
                self._layout.core, os.path.join(self._dir, shard_name(self._shard_count)), planned, self._shard_count,
                f"{self._recipe()}schema {self._layout.text}\n", self._keys, len(self._classes))  # fmt: skip
            self._room = planned
            self._in_shard = 0
        return self._shard

    def _wrote(self, n: int) -> None:
        self._count += n
        self._in_shard += n
        if self._in_shard >= self._room:
            self._end_shard()

    def _end_shard(self) -> None:
        """Hand the shard over to a thread that finishes it; wait if three are at it already."""
        if self._shard is None:
            return
        shard, number = self._shard, self._shard_count
        self._shard = None
        self._shard_count += 1
        try:
            self._wait(_FINISHERS - 1)
        except BaseException:  # of an earlier shard: nobody else closes this one
            shard.close()
            raise
        path = os.path.join(self._dir, shard_name(number))
        self._finishing.append((number, shard, self._threads().submit(_finish, shard, path, self._published)))

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_FINISHERS, thread_name_prefix="libshard")
        return self._pool

    def _wait(self, most: int) -> None:
        while len(self._finishing) > most:
            number, _, future = self._finishing[0]
            self._done[number], found = future.result()
            for name, nan, infinite in found:
                counts = self._not_finite.setdefault(name, [0, 0])
                counts[0] += nan
                counts[1] += infinite
            del self._finishing[0]

    def _stop_pool(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        for _, shard, _ in self._finishing:
            shard.close()
        self._finishing.clear()

    def _check_strangers(self) -> None:
        """Shards of a longer run that was stopped must not stay: their dataset would be unknown."""
        ours = {shard_name(k) for k in range(self._shard_count)}
        strange = sorted(n for n in os.listdir(self._dir) if n.endswith(".shard") and n not in ours)
        if strange:
            raise ExistsError(
                f"{self._shown}: holds {strange[0]}, which another run left and this one does not make; "
                "remove it, or write with replace=True",
                "exists already",
            )


def _finish(shard: _core.ShardWriter, path: str, published: list[str]) -> _Finished:
    """In a thread, which knows nothing of the writer: or it would keep it alive."""
    try:
        sha256, already, not_finite = shard.finish()
    except ExistsError as e:
        remedy = "if nothing else writes there, remove it, or write with replace=True"
        raise ExistsError(f"{e}; {remedy}", "exists already") from None
    if not already:
        published.append(path)
    return sha256, not_finite


def count_rows(columns: Any) -> int:
    """The records of columns, a dict of name to array or list: the same number in each."""
    if not hasattr(columns, "items"):
        raise TypeError(f"columns={show(columns)}; must be a dict of field name to array or list")
    counts = {}
    for name, column in columns.items():
        try:
            if not hasattr(column, "__getitem__") or isinstance(column, Mapping):  # such as a set
                raise TypeError
            counts[name] = len(column)
        except TypeError:
            raise TypeError(
                f"column {show(name)} is {show(column)}; must be an array or a list, with a row for each record"
            ) from None
    if len(set(counts.values())) > 1:
        fail(f"the columns have different lengths: {show(counts)}; must be the same")
    return next(iter(counts.values()), 0)


def _refuse_labelled(columns: Mapping[str, Any]) -> None:
    """A Series of pandas gives the row of a label, which is another row after a shuffle."""
    for name, column in columns.items():
        if hasattr(column, "iloc"):
            raise RecordError(
                f"field {show(name)}: a {type(column).__name__} is indexed by its labels, not by the number of a row; "
                "give numpy.asarray(column)",
                "bad argument",
            )


def _texts(column: Any) -> Any:
    """A column of texts as a list, also if it is an array of NumPy."""
    return column.tolist() if getattr(getattr(column, "dtype", None), "kind", "") in ("U", "O") else column


def _class_names(classes: Iterable[str] | None) -> list[str]:
    if classes is None:
        return []
    names = as_names("classes", classes, "['cat', 'dog']", ordered=True)
    return [as_text("classes", name, "a name") for name in names]


def _alike(name: str) -> str:
    """What a person sees: no blanks at the ends, nothing hidden, small letters, one encoding.

    shardpack has the same rule, with a table of its own of the letters of common scripts.
    """
    name = _UNSEEN.sub("", name.lower().replace("\u03c2", "\u03c3"))  # the sigma at the end of a word
    seen = (c for c in unicodedata.normalize("NFD", name) if c.isspace() or unicodedata.category(c)[0] != "C")
    return " ".join("".join(seen).split())


def _warn_of_alike(dataset: Dataset) -> None:
    first: dict[str, str] = {}
    pairs = [(known, name) for name in dataset.classes if (known := first.setdefault(_alike(name), name)) != name]
    if not pairs:
        return
    counts = dataset.stats.class_counts
    named = [f"{a!a} ({counts.get(a, 0)} records) and {b!a} ({counts.get(b, 0)} records)" for a, b in pairs[:3]]
    differ = "differ only in blanks, case or the encoding of letters, and are packed as two"
    said = f"classes {named[0]} {differ}; if they are one, give them one name"
    if len(pairs) > 1:
        said = f"{len(pairs):,} pairs of classes {differ} each; where two are one, give them one name: "
        said += ", ".join(named) + (f", and {len(pairs) - 3:,} more" if len(pairs) > 3 else "")
    warnings.warn(said, stacklevel=stack_level())


def _warn_of_repeats(path: str) -> None:
    """A key that several records have may be a record that is there twice."""
    with _open_dataset(path) as dataset:  # which keeps 16 bytes for each key
        count, first, second = dataset._repeated_key()
        if second is None:
            return
        warnings.warn(
            f"{path}: {count:,} record{'s have' if count > 1 else ' has'} the key of an earlier one; the first of them is record "
            f"{second}, with {show(dataset.key(second))} as record {first}. ds.by_key() refuses such a key; if records were "
            "packed twice, take them out",
            stacklevel=stack_level(),
        )


def _provenance(text: str) -> str:
    if not isinstance(text, str):
        fail(f"provenance: {show(text)} is not a str")
    as_text("provenance", text)
    own = text.rstrip("\n") + "\n" if text else ""
    return f"made by libshard.Writer\nbytes-version {_core.BYTES_VERSION}\n{own}"


def shard_name(number: int) -> str:
    return f"{number:05}.shard"


def _names(folder: str) -> list[str]:
    """What is in a folder that a dataset is to be in.  Anything foreign is refused."""
    names = os.listdir(folder)
    foreign = sorted(n for n in names if not _OURS.match(n))
    if foreign:
        raise ExistsError(
            f"{folder}: holds {foreign[0]!r}, which is not part of a dataset; nothing was touched", "exists already"
        )
    return names


def prepare(out: str, shown: str, replace: bool, going_on: bool = False) -> tuple[str, bool]:
    """The folder to write to, and whether it was made.  ``going_on``: also one that is being packed."""
    if os.path.exists(out) and not os.path.isdir(out):
        raise ExistsError(f"{shown}: a file, not a folder; nothing was touched", "exists already")
    names = _names(out) if os.path.isdir(out) else []
    folder = out
    if [n for n in names if not n.startswith(".tmp.")] and replace:
        folder = os.path.join(os.path.dirname(out), f".{os.path.basename(out)}.new")
        _refuse_packing(out, shown)
        if os.path.isdir(folder):
            _refuse_packing(folder, shown)
            _remove(folder)
    elif MANIFEST in names:
        raise ExistsError(f"{shown}: holds a dataset; write to another folder, or with replace=True", "exists already")
    elif PACKING in names and not going_on:
        raise ExistsError(
            f"{shown}: libshard.pack(workers=...) was stopped there, and left {PACKING}; go on by the same call, write to "
            "another folder, or with replace=True",
            "exists already",
        )
    made = not os.path.isdir(folder)
    os.makedirs(folder, exist_ok=True)
    _core.remove_temps(folder)
    return folder, made


def _refuse_packing(folder: str, shown: str) -> None:
    """What libshard.pack(workers=...) is at is not removed: it has a lock on its file."""
    try:
        fd = os.open(os.path.join(folder, PACKING), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ExistsError(
            f"{shown}: another process packs there; nothing was touched. Wait for its end, or write to another folder",
            "exists already",
        ) from None
    finally:
        os.close(fd)


def _remove(folder: str) -> None:
    """The manifest goes first, so that a kill leaves no dataset with shards missing."""
    _core.remove_temps(folder)
    busy = [n for n in os.listdir(folder) if n.startswith(".tmp.")]
    if busy:
        raise ExistsError(
            f"{folder}: another process writes there, {busy[0]} is its file; nothing was touched", "exists already"
        )
    for name in sorted(_names(folder), key=lambda n: n != MANIFEST):
        os.unlink(os.path.join(folder, name))
    os.rmdir(folder)


def sync_folder(folder: str) -> None:
    """Make the names in it durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _take_place(new: str, out: str) -> None:
    if not _core.exchange(new, out):  # two renames then: between them, the dataset is aside
        aside = new + ".old"
        os.rename(out, aside)
        os.rename(new, out)
        os.rename(aside, new)
    sync_folder(os.path.dirname(out))
    _remove(new)
