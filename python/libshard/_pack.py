# SPDX-License-Identifier: Apache-2.0
"""``libshard.pack``: a dataset of whatever yields samples."""

from __future__ import annotations

import collections
import copy
import functools
import inspect
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NoReturn, TypeAlias

from . import _core
from ._arrays import is_arrays, pack_arrays
from ._concat import Concat, Zip, stored_columns, stored_pixels, stored_schema
from ._dataset import Dataset
from ._description import Field
from ._errors import ArgumentError, RecordError
from ._images import AHEAD_MAX, Decoder, decoders_of
from ._options import as_flag, as_names, check_function, choice, public, refuse_option, show, stack_level, whole
from ._schema import SchemaLike, dtype_name, infer, parse, with_meaning
from ._selection import Selection
from ._table_files import TableFile, is_table_file, table_instead
from ._tables import SourceFile, is_table, label_of, names_as_lines, pack_table, warn_of_names
from ._workers import _Shards, pack_shards, refuse_source
from ._writer import Writer, count_rows

_OWN = ("out", "schema", "classes", "records", "keys")  # of the writer's arguments, those that pack() gives
_OF_WRITER = [name for name in inspect.signature(Writer).parameters if name not in _OWN]
_ELSEWHERE = {"quarantine": "on_error='quarantine' keeps bad samples, in a folder OUT.quarantine"}
_CHUNK_BYTES = 8 << 20  # of columns that are gathered at once
_Sample: TypeAlias = tuple[int, Any, "Exception | None"]  # its number, itself, or what the source raised
# Number, record and key, or what was raised.  There may be a record also then, as it was given, for a quarantine.
_Prepared: TypeAlias = tuple[int, Any, "str | None", "Exception | None"]


@public("libshard.pack")
def pack(source: Any, schema: SchemaLike | None, out: str | os.PathLike[str], *,
         names: Sequence[str] | None = None, batched: bool = False, key: str | Callable[[int, Any], str] | None = None,
         classes: Iterable[str] | None = None, order: Literal["source", "shuffle"] = "source", seed: int = 0,
         workers: int | None = None,
         on_error: Literal["fail", "skip", "quarantine"] | Callable[[int, Exception], Any] = "fail", resume: bool = True,
         start_method: Literal["spawn", "fork"] = "spawn",
         progress: bool | Callable[[int, int | None], Any] | None = None, **options: Any) -> Dataset:
    """Write a dataset of all that ``source`` has to the folder ``out``; returns it, open.

    ``source`` is one of these:

    - a dict of arrays, or lists, with records on the first axis: ``{"image": x, "label": y}``;
    - a DataFrame of pandas or Polars, a table of Arrow, or the path of a ``.parquet`` or ``.arrow``
      file, which pyarrow reads into memory.  Without a schema, the columns of numbers
      that have one dtype become one field, called ``"float64"`` for example, and ``ds.columns`` has
      their names.  ``label``, text, and a column that is alone of its dtype stay fields of their own;
    - a map-style dataset of PyTorch, or any sequence, of samples;
    - the path of a ``.h5`` or ``.hdf5`` file or of a Zarr folder, or a group of either: its arrays are
      fields, with a row for each record;
    - a Hugging Face ``Dataset``; its features tell names of classes, and dtypes unless it has a format
      or a transform;
    - any iterable of samples; with ``batched``, of batches, such as a ``DataLoader`` with workers.

    A source with a length must have as many samples.  A sample is a dict of field name to value, or
    a tuple, whose items ``names`` names; pairs that do not begin with a number are ``image`` and
    ``label``.  Values are arrays of NumPy, PyTorch, JAX or Pillow, numbers, lists of
    numbers, or texts.  See :meth:`Writer.write`.

    ``schema``: see :class:`Writer`; None, and the first sample tells, but a dataset of ours, a
    selection, a concatenation and a zip keep their own.  With a schema, items that it does not name
    are left out: it chooses.  ``classes``: names of the classes; by default those
    that the source has (``source.classes``, ``ClassLabel``).

    A field whose type in a dict is a :class:`libshard.Image` has image files as values, as bytes or
    in Hugging Face's ``{"bytes", "path"}``, and shardpack decodes and resizes them.

    ``key``: the name of the item that is a record's key, or a function of a sample's number and the
    sample.  None: no keys, but those of a source that is a dataset, selection or concatenation are
    kept.  A warning tells of keys that several records have.

    ``order``: ``"source"``, or ``"shuffle"`` by ``seed`` as shardpack does; the latter for what can
    be indexed.  A seed without ``order="shuffle"`` is refused.  Records of less than 128 KiB that
    lie sorted, by class for example, train better when they were shuffled here.

    ``progress``: None shows a line with the time that is left if stderr is a terminal, True always,
    False never; or a function ``progress(done_records, all_records or None)``, ten times a second.

    ``workers``: None packs here, in one go, and any source.  A number divides a source that has a
    length and an index into whole shards, which so many processes make, or this one if it is 0.  The
    dataset is the same for any number.  Complete shards stay if this raises or is killed, and the same
    call goes on with them; ``resume=False`` removes them instead.  A source must give the same samples
    in every process, every time.

    ``on_error``: of a sample that raises, or does not fit the schema.  ``"fail"`` raises a
    :class:`RecordError` with its number.  ``"skip"`` leaves it out; its shard is shorter then, a
    warning counts all of them, and ``dataset.skipped`` in the folder has a line for each.
    ``"quarantine"`` also keeps what there is of it in the folder ``OUT.quarantine`` beside the dataset.
    There ``quarantine.jsonl`` has its number, key, reason and traceback, and names the files of its items.
    Bytes of images and others are files as they are, and arrays are ``.npy``.  The folder must not be
    there, or be empty.  A function ``on_error(index, exception)`` is called here, in the parent, and
    raises, or returns to leave it out.  Other values than ``"fail"`` imply ``workers=0``.

    ``start_method``: ``"spawn"`` starts workers as new processes, to which the source is pickled.
    ``"fork"`` copies this process, for a source that cannot be pickled; it must hold no open files,
    and no threads, CUDA or HDF5 may be in use.

    Other options, ``compress``, ``shard_records``, ``shard_bytes``, ``align``, ``replace``,
    ``provenance``, are those of :class:`Writer`.  If this raises, there is no dataset;
    :class:`RecordError` names record, field, dtype and shape.
    """
    choice("order", order, ("source", "shuffle"))
    for name in options:
        if name not in _OF_WRITER:
            refuse_option("libshard.pack", name, [*inspect.signature(pack).parameters][3:-1] + _OF_WRITER, _ELSEWHERE)
    file: SourceFile | None = None
    stored = None
    if is_table_file(source):
        file = TableFile(os.fspath(source))
        source, stored = file.table(order == "shuffle", [*schema, key] if isinstance(schema, Mapping) else None)
    if not (is_arrays(source) or is_table(source)) and (table := table_instead(source)):
        raise TypeError(f"pack() takes samples or a table, not {show(source)}; give {table}")
    if isinstance(source, (str, bytes, os.PathLike)) and not is_arrays(source):
        raise TypeError(f"pack() takes samples, not {show(source)}; shardpack packs folders, archives and files, "
                        "and pack() itself reads .parquet, .arrow, .h5, .hdf5 and .zarr")
    if names is not None:
        names = as_names("names", names, "('image', 'label')", ordered=True)
        if len(set(names)) < len(names):  # or the last item of that name would be the only one
            raise ArgumentError(f"names={show(tuple(names))}: a name is given twice; give each item its own", "bad argument")
    if key is not None and not isinstance(key, str):
        check_function("key", key, "number, sample")
    elif key is None:
        key = _stored_keys(source)
    schema = stored_schema(source, [*schema] if isinstance(schema, Iterator) else schema, key if isinstance(key, str) else None)
    _add_lines(options, names_as_lines(stored_columns(source, schema)))
    seed, batched = whole("seed", seed, 64), as_flag("batched", batched)
    if seed and order == "source":
        raise ArgumentError(f"seed={seed} needs order='shuffle'; order='source' shuffles nothing", "bad argument")
    with decoders_of(schema) as (schema, decoders):
        _add_lines(options, _pixels_as_line(stored_pixels(source) | {d.image.pixels for d in decoders.values()}, options))
        if is_table(source) or is_arrays(source):
            _refuse_for_table(names, batched)
            if is_table(source):
                packed = pack_table(source, schema, key, decoders, stored, classes is not None)._replace(file=file)
            else:
                packed = pack_arrays(source, schema, key, decoders, classes is not None)
            source, schema, found, line, file = packed
            classes = found if classes is None else classes
            _add_lines(options, line)
        plan = _Plan(source, schema, decoders, names, batched, key, order == "shuffle", seed, file)
        return _pack(plan, out, classes, workers, on_error, resume, start_method, progress, options)


def _add_lines(options: dict[str, Any], lines: str) -> None:
    """To what the user wants to have in the provenance."""
    given = options.get("provenance", "")
    if lines and isinstance(given, str):  # else the writer refuses it
        options["provenance"] = f"{given}\n{lines}" if given else lines


def _pixels_as_line(pixels: set[str], options: Mapping[str, Any]) -> str:
    """Whose pixels the images of a dataset have, so that a transform goes on with them."""
    if len(pixels) > 1 and "\npixels " not in f"\n{options.get('provenance', '')}":
        raise ArgumentError(
            f"the images have pixels of {' and of '.join(sorted(pixels))}, and a dataset names those of one, which are the "
            "default of a Transform; choose with provenance='pixels pillow-13', for example",
            "bad argument",
        )
    return f"pixels {pixels.pop()}\n" if len(pixels) == 1 else ""


def _stored_keys(source: Any) -> Callable[[int, Any], str] | None:
    """Of a source of ours whose records have keys: the new dataset has the same ones."""
    source = source.source if isinstance(source, Zip) else source
    parts = source.datasets if isinstance(source, Concat) else (source,)
    if not all(isinstance(part, (Dataset, Selection)) and len(part) for part in parts):
        return None
    keyed = [_stored_key(part, 0, None) != "" for part in parts]
    if any(keyed) and not all(keyed):
        warnings.warn(
            f"part {keyed.index(False)} of the concatenation has no keys, so the new dataset has none; key= sets them",
            stacklevel=stack_level(),
        )
    return functools.partial(_stored_key, source) if all(keyed) else None


def _stored_key(source: Dataset | Selection | Concat, number: int, _: Any) -> str:
    if isinstance(source, Selection):
        return source.dataset.key(source.numbers([number])[0])
    return source.key(number)


def _pack(plan: _Plan, out: str | os.PathLike[str], classes: Iterable[str] | None, workers: int | None,
          on_error: Literal["fail", "skip", "quarantine"] | Callable[[int, Exception], Any], resume: bool,
          start_method: Literal["spawn", "fork"],
          progress: bool | Callable[[int, int | None], Any] | None, options: dict[str, Any]) -> Dataset:
    if classes is None:
        classes = plan.classes()
    is_named = classes is not None
    shown_progress = _Progress(progress, plan.count)
    if callable(on_error):
        check_function("on_error", on_error, "index, exception")
    else:
        choice("on_error", on_error, ("fail", "skip", "quarantine"))
    plan.may_skip = on_error != "fail"
    by_shards = workers is not None or plan.may_skip
    workers, resume = whole("workers", 0 if workers is None else workers, 10), as_flag("resume", resume)
    choice("start_method", start_method, ("spawn", "fork"))
    if by_shards:
        refuse_source(plan)
    elif not resume or start_method != "spawn":
        given = "start_method" if resume else "resume"
        raise ArgumentError(f"{given}= needs workers=, such as workers=0 for this process alone", "bad argument")
    kind = functools.partial(_Shards, resume) if by_shards else Writer
    with kind(out, plan.schema, classes=classes, records=plan.count, keys=plan.key is not None, **options) as writer:
        if plan.shuffled:
            writer._order, writer._seed = 2, plan.seed
        if isinstance(writer, _Shards):
            dataset = pack_shards(plan, writer, workers, on_error, start_method, shown_progress)
            if not is_named:
                plan.warn_of_inner_classes(writer)
            plan.warn_of_batches(writer)
            return dataset
        with shown_progress:
            plan.write_to(writer, shown_progress)
        plan.check_file()
        if not is_named:
            plan.warn_of_inner_classes(writer)
        plan.warn_of_batches(writer)
        return writer.finish()


def _refuse_for_table(names: Sequence[str] | None, batched: bool) -> None:
    if names is not None or batched:
        option = "names=" if names is not None else "batched=True"
        what = "is not for tables and groups of arrays, which have names and all rows"
        raise ArgumentError(f"{option} {what}; leave it out", "bad argument")


def _refuse_misread(source: Any, is_columns: bool, batched: bool) -> None:
    """Sources whose items look like samples, and are none."""
    one_by_one = getattr(source, "batch_size", None) is None and getattr(source, "batch_sampler", None) is None
    if not batched and not one_by_one and hasattr(source, "dataset"):
        raise ArgumentError(
            f"the source is a {type(source).__name__}, which yields batches, not samples; say batched=True",
            "bad argument",
        )
    workers = getattr(source, "num_workers", 0)
    dataset = getattr(source, "dataset", None)
    # PyTorch's IterableDataset has a __getitem__ that raises.
    kinds = [c.__name__ for c in type(dataset).__mro__]
    iterable = not hasattr(dataset, "__getitem__") or "IterableDataset" in kinds
    if isinstance(workers, int) and workers > 1 and dataset is not None and iterable:
        raise ArgumentError(
            f"the source is a {type(source).__name__} with {workers} workers over a {type(dataset).__name__}, which "
            "has no index: each worker may yield all samples, and then each is stored once for every worker. Give the dataset "
            "itself, or num_workers=0. If its __iter__ divides them by torch.utils.data.get_worker_info(), give "
            "iter(loader)",
            "bad argument",
        )
    if (hasattr(source, "to_dict") or hasattr(source, "to_pydict")) and hasattr(source, "columns"):
        raise ArgumentError(
            f"the source is a {type(source).__name__}; give its columns as a dict: "
            "{name: numpy.asarray(table[name]) for name in names}",
            "bad argument",
        )
    parts = [n for n, v in source.items() if isinstance(v, Mapping) or hasattr(v, "features")] if is_columns else []
    if parts:
        raise ArgumentError(
            f"the source is a dict of datasets, such as {show(parts[0])}; pack each of them. If they are columns in groups, "
            f"give each column by itself, as {{'{parts[0]}.x': ...}}",
            "bad argument",
        )


class _Plan:
    """What a source is, and how its samples come out of it."""

    def __init__(self, source: Any, schema: SchemaLike | None, decoders: dict[str, Decoder], names: Sequence[str] | None,
                 batched: bool, key: str | Callable[[int, Any], str] | None, shuffled: bool, seed: int,
                 file: SourceFile | None) -> None:
        self.file = file
        if decoders:
            source, schema = _one_by_one(source, schema, decoders, batched)
        self.source, self.names, self.batched, self.decoders = source, names, batched, decoders
        self.key, self.shuffled, self.seed = key, shuffled, seed
        self.may_skip = False  # samples that cannot be packed: on_error=
        self.is_columns = isinstance(source, Mapping) and not batched
        _refuse_misread(source, self.is_columns, batched)
        self.count: int | None = self._count()
        self.indexed = hasattr(source, "__getitem__") and hasattr(source, "__len__") and not self.is_columns
        is_class = isinstance(source, type)  # its methods are those of its instances
        if is_class or not (self.is_columns or self.indexed or hasattr(source, "__iter__")):
            remedy = "; give what its collect() returns" if hasattr(source, "collect") else ""  # a LazyFrame of Polars
            raise TypeError(
                f"pack() takes a dict of arrays, a sequence or an iterable of samples, not a {type(source).__name__}{remedy}"
            )
        if shuffled and not (self.is_columns or (self.indexed and not batched)):
            raise ArgumentError(
                "order='shuffle' needs a source with a length and an index; use order='source' for an iterable",
                "bad argument",
            )
        self.features = _features_of(source, schema is None)
        self.held = False  # a sample that cannot be copied waits to be written
        self.schema = _with_features(schema, self.features)

    def check_file(self) -> None:
        """After all has been read."""
        if self.file is not None:
            self.file.check()

    def _count(self) -> int | None:
        if self.is_columns:
            return count_rows(self.source)
        if self.batched or not hasattr(self.source, "__len__"):
            return None
        try:
            return len(self.source)
        except TypeError:  # DataLoaders of iterables have the method and no length
            return None

    def classes(self) -> list[str] | None:
        """Names that the source has for the numbers in the label."""
        fields = parse(self.schema) if self.schema is not None else {}
        label = next((n for n, f in fields.items() if f is not None and f.semantic == "label"), "label")
        for name in fields:
            if name != label and _is_class_label(self.features.get(name)):
                warn_of_names(name, len(self.features[name].names), label if label in fields else None)
        if fields and label not in fields:
            return None
        if not fields and self.names is not None and "label" not in self.names:
            return None
        if label in fields and (f := fields[label]) is not None and f.semantic != "label":
            return None
        names = getattr(self.features.get(label), "names", None)
        names = names or getattr(_named_by(self.source, label), "classes", None)
        if not isinstance(names, (list, tuple)) or not all(isinstance(n, str) for n in names):
            return None
        known = self.features or (self.source if self.is_columns else None)
        return None if known is not None and not fields and "label" not in known else list(names) or None

    def warn_of_inner_classes(self, writer: Writer) -> None:
        """A Subset or a loader has no ``classes``, and its dataset has, or the dataset of that."""
        inner, where, names = self.source, "source", None
        while not names and hasattr(inner, "dataset") and where.count(".") < 8:
            inner, where = inner.dataset, f"{where}.dataset"
            names = getattr(inner, "classes", None)
        if names and isinstance(names, (list, tuple)) and writer._layout and writer._layout.label:
            warnings.warn(
                f"the source's dataset has names for {len(names)} classes, and the source, a "
                f"{type(self.source).__name__}, has none, so labels are packed without names; to keep them, say "
                f"classes={where}.classes",
                stacklevel=stack_level(),
            )

    def warn_of_batches(self, writer: Writer) -> None:
        """Images on a further axis, which the labels have, too."""
        shapes = {f.name: f.shape for f in writer.schema or () if f.kind == "tensor"}
        image, label = shapes.get("image", ()), shapes.get("label", ())
        if not self.batched and not self.is_columns and len(image) == 4 and label == image[:1]:
            warnings.warn(
                f"each sample was packed as one record, with image {list(image)} and label {list(label)}; if it is a "
                f"batch of {label[0]} samples, say batched=True",
                stacklevel=stack_level(),
            )

    # ---- samples ----

    def write_to(self, writer: Writer, show: _Progress) -> None:
        if self.is_columns:
            self._write_columns(writer, show)
        elif self.batched:
            for batch in self.source:
                columns = self._named(batch, "batch")
                keys = self._keys(columns, len(writer))
                writer.write_batch(self._chosen(writer, columns, isinstance(batch, _core.Batch)), keys)
                show(len(writer))
        else:
            self._write_samples(writer, show)

    def _write_samples(self, writer: Writer, show: _Progress) -> None:
        for i, record, key, error in self.prepared(writer, self._samples()):
            if error is not None:
                raise error
            if i == self.count and not self.shuffled:
                self._fail_length("yields more samples")
            try:
                writer.write(record, key)
            except RecordError as e:
                if self.shuffled:
                    e.add_note(f"it is sample {i} of the source")
                raise
            show(len(writer))
        if self.count is not None and len(writer) < self.count:
            self._fail_length(f"ended after {len(writer)} samples")

    def record(self, writer: Writer, i: int) -> tuple[Mapping[str, Any], str | None]:
        """Sample ``i`` of columns, or of a source with an index, and its key."""
        for _, record, key, error in self.prepared(writer, self.fetched([i])):
            if error is not None:
                raise error
        return record, key

    def prepared(self, writer: Writer, samples: Iterator[_Sample]) -> Iterator[_Prepared]:
        """What is to be written of each sample, in order: its number, record and key, or what was raised.

        Images are with their decoders while the next samples are read.
        """
        waiting = collections.deque[_Prepared]()
        more = True
        try:
            while more or waiting:
                while more and (not waiting or self._may_wait(len(waiting))):
                    i, sample, error = next(samples, (-1, None, None))
                    more = i >= 0
                    if more:
                        waiting.append(self._prepare(writer, i, sample, error))
                if waiting:
                    yield self._with_pixels(*waiting.popleft())
        finally:
            for decoder in self.decoders.values():
                decoder.forget()

    def _may_wait(self, waiting: int) -> bool:
        """May the next sample be read before the last one is written?"""
        if not self.decoders or self.held or waiting > AHEAD_MAX:
            return False
        return not any(decoder.is_full() for decoder in self.decoders.values())

    def _prepare(self, writer: Writer, i: int, sample: Any, error: Exception | None) -> _Prepared:
        if error is not None:
            return i, None, None, error
        record = sample
        try:
            if self.is_columns:
                record = {n: column[i] for n, column in self.columns(writer).items()}
                keys = self._keys_of_rows([i])
                return i, record, keys and keys[0], None
            named = self._named(sample, "sample")
            key = self._key(i, sample, named)
            record = self._chosen(writer, named)
        except Exception as e:
            self.held = True
            return i, record, None, e
        return i, self._put_images(i, record) if self.decoders else record, key, None

    def _put_images(self, i: int, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """A copy of the rest, which the source may overwrite when it makes the next sample."""
        rest = {name: value for name, value in record.items() if name not in self.decoders}
        try:
            rest, self.held = copy.deepcopy(rest), False
        except Exception:  # such as a memoryview
            self.held = True
        for name, decoder in self.decoders.items():
            if name in record:
                decoder.put(i, record[name])
                rest[name] = None
        return rest

    def _with_pixels(self, i: int, record: Any, key: str | None, error: Exception | None) -> _Prepared:
        if error is None and self.decoders:
            for name, decoder in self.decoders.items():
                if name in record:
                    try:
                        record[name] = decoder.get()
                    except (RecordError, MemoryError) as e:  # the others have an image of this sample, too
                        error = error or e
            if error is not None:
                record = self.given(record)
        return i, record, key, error

    def given(self, record: Any) -> Any:
        """The last record as the source gave it: images as bytes instead of pixels."""
        images = {n: decoder.given for n, decoder in self.decoders.items() if n in record}
        return {**record, **images} if images else record  # which may raise, if its items are made when it is asked

    def _fail_length(self, what: str) -> NoReturn:
        raise ArgumentError(
            f"the source, a {type(self.source).__name__}, {what}, and its len() is {self.count}; mend its length, or "
            "give iter(source) if that is an estimate",
            "bad argument",
        )

    def _samples(self) -> Iterator[_Sample]:
        if self.shuffled:
            assert self.count is not None
            for first in range(0, self.count, 4096):
                yield from self.fetched(_core.shuffle(self.seed, self.count, first, min(4096, self.count - first)).tolist())
        elif self.indexed and not hasattr(self.source, "__iter__"):
            yield from self.fetched(range(self.count or 0))
        else:
            i = -1
            try:
                for i, sample in enumerate(self.source):
                    yield i, sample, None
            except Exception as e:
                yield i + 1, None, e

    def fetched(self, numbers: Iterable[int]) -> Iterator[_Sample]:
        """Samples of a source with an index; of columns, only the numbers."""
        for i in numbers:
            try:
                sample = None if self.is_columns else self.source[i]
            except Exception as e:
                yield i, None, e
            else:
                yield i, sample, None

    def _chosen(self, writer: Writer, record: Mapping[str, Any], lengths: bool = False) -> Mapping[str, Any]:
        """The items that are fields.  With ``lengths`` also those that say how long others are."""
        wanted = writer._wanted
        if wanted is not None:
            chosen = {n: v for n, v in record.items()
                      if n in wanted or lengths and n.endswith("_length") and n[: -len("_length")] in wanted}  # fmt: skip
            if len(chosen) < len(record) and not chosen.keys() >= writer._required.keys():
                return record  # the writer refuses it, and says what is there
            return chosen
        if isinstance(self.key, str):  # it is not a field
            return {name: value for name, value in record.items() if name != self.key}
        return record

    def _named(self, sample: Any, what: str) -> Mapping[str, Any]:
        if isinstance(sample, Mapping) and self.names is not None:
            raise ArgumentError(
                f"names={show(tuple(self.names))}: a {what} is a {type(sample).__name__}, whose items have names; "
                "names= is for tuples",
                "bad argument",
            )
        if isinstance(sample, _core.Batch):  # of a loader: what says where its records came from is not a field
            if what == "sample":
                raise ArgumentError("a sample is a batch of a loader; say batched=True", "bad argument")
            repeats = len(sample.valid) - sum(sample.valid.tolist())
            if repeats:
                raise ArgumentError(
                    f"a batch of the loader has {repeats} rows that do not count, which repeat others or are zeros; "
                    "open the loader with tail='keep' and on_corrupt='fail', or pack its dataset",
                    "bad argument",
                )
            others = sample.item_names
            return {name: value for name, value in sample.items() if name not in others}
        if isinstance(sample, Mapping):
            return sample
        names = self.names or getattr(sample, "_fields", None)
        if names is None and isinstance(sample, (tuple, list)) and len(sample) == 2:
            names = "image", "label"
            if self.schema is None and (isinstance(sample[0], (int, float)) or getattr(sample[0], "shape", None) == ()):
                raise RecordError(
                    f"a {what} is a {type(sample).__name__} of 2 items, which would be image and label, and the first is "
                    "a number; say what they are, as names=('label', 'image')",
                    "bad argument",
                )
        if not isinstance(sample, (tuple, list)) or not names or len(names) != len(sample):
            kind = type(sample).__name__
            is_row = isinstance(sample, (tuple, list))
            kind = f"a {kind} of {len(sample)} items" if is_row else f"of type {kind}, which is not a dict or a tuple"
            formatted = ", as dataset.with_format(None) gives" if hasattr(self.source, "with_format") else ""
            remedy = f"must be a dict{formatted}, or a tuple whose items names=(...) names"
            if is_table_file(sample):
                remedy = "of several files of a table, give pyarrow.dataset.dataset(paths).to_table()"
            raise RecordError(f"a {what} is {kind}; {remedy}", "bad argument")
        return dict(zip(names, sample))

    def _key(self, i: int, sample: Any, record: Mapping[str, Any]) -> str | None:
        if self.key is None:
            return None
        return _item(record, self.key, f"sample {i}") if isinstance(self.key, str) else self._call_key(i, sample)

    def _call_key(self, i: int, sample: Any) -> str:
        assert callable(self.key)
        try:
            return self.key(i, sample)
        except KeyError as e:
            there = f", which has {show(list(sample))}" if isinstance(sample, Mapping) else ""
            raise RecordError(
                f"sample {i}: the function key= asks for {e}, and raised KeyError; it gets the number and the sample"
                f"{there}; with a schema, the columns of a table or a file are those that it names",
                "bad argument",
            ) from e

    def _keys(self, columns: Mapping[str, Any], first: int) -> list[str] | None:
        if self.key is None:
            return None
        if isinstance(self.key, str):
            return list(_item(columns, self.key, "the source" if self.is_columns else "a batch"))
        count = count_rows(columns)
        return [self._call_key(first + i, {name: column[i] for name, column in columns.items()}) for i in range(count)]

    # ---- columns ----

    def columns(self, writer: Writer) -> Mapping[str, Any]:
        """Those that are fields; the writer then knows them."""
        columns = self._named(self.source, "source")
        if not columns:
            raise ArgumentError("the source has no columns; give at least one", "bad argument")
        columns = self._chosen(writer, columns)
        if writer._layout is None and self.count:
            writer._see(columns, rows=True)
        if writer._wanted is not None:
            writer._check_items(columns)
        return columns

    @staticmethod
    def rows_at_once(writer: Writer) -> int:
        return max(1, _CHUNK_BYTES // writer._layout.stride) if writer._layout else 1

    def rows(self, writer: Writer, rows: list[int]) -> tuple[dict[str, Any], list[str] | None]:
        """These rows as columns, and their keys."""
        some = rows if self.shuffled else slice(rows[0], rows[-1] + 1)
        columns = {name: _take(column, some) for name, column in self.columns(writer).items()}
        return columns, self._keys_of_rows(rows)

    def _keys_of_rows(self, rows: list[int]) -> list[str] | None:
        if self.key is None:
            return None
        if isinstance(self.key, str):
            return list(_take(_item(self.source, self.key, "the source"), rows))
        return [self._call_key(i, {name: column[i] for name, column in self.source.items()}) for i in rows]

    def _write_columns(self, writer: Writer, show: _Progress) -> None:
        count = self.count or 0
        keys = self._keys(self.source, 0) if count else None
        columns = self.columns(writer)
        step = self.rows_at_once(writer)
        for first in range(0, count, step):
            n = min(step, count - first)
            if self.shuffled:
                rows = _core.shuffle(self.seed, count, first, n).tolist()
            else:
                rows = slice(first, first + n)
            writer.write_batch(
                {name: _take(column, rows) for name, column in columns.items()}, keys and _take(keys, rows)
            )
            show(len(writer))


def _named_by(source: Any, label: str) -> Any:
    """Of a selection or a zip, the dataset whose classes the label has; None: an array beside it has the label."""
    if isinstance(source, Zip) and label in source.columns:
        column, field = source.columns[label]
        return column if field else None
    return source.dataset if isinstance(source, (Selection, Zip)) else source


def _item(record: Mapping[str, Any], key: str, what: str) -> Any:
    """That which ``key=`` names."""
    if key not in record:
        raise RecordError(f"key={show(key)}: {what} has no such item; it has {list(record)}", "bad argument")
    return record[key]


def _take(column: Any, rows: list[int] | slice) -> Any:
    """Some rows of a column: by its own indexing, or one by one."""
    if isinstance(rows, list) and isinstance(column, (list, tuple, bytes, range)):
        return [column[i] for i in rows]
    return column[rows]


# ---- images ----


class _Rows:
    """Columns as samples, since images are decoded one by one."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.columns, self.count = columns, count_rows(columns)
        self.open_group = getattr(columns, "open_group", None)  # an open file of the caller

    def __reduce__(self) -> tuple[Any, ...]:
        return _Rows, (self.columns,)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> dict[str, Any]:
        return {name: column[i] for name, column in self.columns.items()}


def _one_by_one(source: Any, schema: Any, decoders: Mapping[str, Decoder], batched: bool) -> tuple[Any, SchemaLike]:
    """A source of samples with the bytes of images, and a schema for it."""
    if batched:
        raise ArgumentError(
            "libshard.Image is for samples one by one, and the source has batches; leave batched=True out, and give the dataset "
            "itself, such as loader.dataset, or of batches that are dicts their samples: "
            "(dict(zip(batch, row)) for batch in source for row in zip(*batch.values()))",
            "bad argument",
        )
    if isinstance(source, Mapping):
        for name, spec in schema.items():
            if spec is None and name in source and name != "label":
                schema = {**schema, name: infer(name, source[name], rows=True)}
        return _Rows(source), schema
    features = getattr(source, "features", None)
    kinds = {name: type(features[name]) for name in decoders if name in features} if isinstance(features, Mapping) else {}
    for name, kind in kinds.items():
        if kind.__name__ == "Image" and hasattr(source, "cast_column"):
            if (getattr(source, "format", None) or {}).get("type") == "custom":
                raise ArgumentError(
                    f"field {show(name)}: the dataset has a transform, which would get the bytes of images instead of "
                    "images; give dataset.with_format(None) for the dataset without it",
                    "bad argument",
                )
            source = source.with_format(None).cast_column(name, kind(decode=False))
    return source, schema


# ---- Hugging Face ----


def _features_of(source: Any, is_open: bool) -> Mapping[str, Any]:
    """What samples are like, by name.  A format or a transform makes other values, apart from numbers of classes, whose features
    alone are told then.  ``is_open``: there is no schema, so it is to tell all items, which a transform may change, too."""
    features = getattr(source, "features", None)
    if not isinstance(features, Mapping):
        return {}
    form = getattr(source, "format", None)
    kind = form.get("type") if isinstance(form, dict) else getattr(getattr(source, "_formatting", None), "format_type", None)
    is_plain = kind in (None, "python")
    told = {name: feature if is_plain or _is_class_label(feature) else None for name, feature in features.items()}
    if not is_open or not isinstance(form, dict) or not len(source) or is_plain and set(form.get("columns") or ()) == set(features):
        return told
    try:
        sample = source[0]
    except Exception as e:
        raise RecordError(
            f"sample 0 of the source, which tells the items of a dataset with a format or a transform, raises "
            f"{type(e).__name__}: {e}; mend it, or give a schema",
            "bad argument",
        ) from e
    return {name: told.get(name) for name in sample} if isinstance(sample, Mapping) else {}


def _with_features(schema: SchemaLike | None, features: Mapping[str, Any]) -> SchemaLike | None:
    """A schema, and what features say of the fields that it leaves open.  None for one that the first record is to tell."""
    if isinstance(schema, Mapping):
        told = {n: _field_of_feature(n, features[n], "label") for n, spec in schema.items() if spec is None and n in features}
        return {**schema, **told}
    if schema is not None or not features:
        return schema
    label = label_of([name for name, feature in features.items() if _is_class_label(feature)])
    return {name: _field_of_feature(name, feature, label) for name, feature in features.items()}


def _is_class_label(feature: Any) -> bool:
    return hasattr(feature, "names") and hasattr(feature, "str2int")


def _field_of_feature(name: str, feature: Any, label: str | None) -> Field | None:
    if _is_class_label(feature):
        return Field(name, "int64", (), semantic="label" if name == label else "none")
    dtype = dtype_name(getattr(feature, "dtype", None) or "")
    shape = getattr(feature, "shape", None)
    if dtype and isinstance(shape, tuple) and all(isinstance(n, int) for n in shape):  # Array2D to Array5D
        return with_meaning(name, dtype, shape)
    inner, length = getattr(feature, "feature", None), getattr(feature, "length", None)
    inner = dtype_name(getattr(inner, "dtype", None) or "") if inner is not None else None
    if inner and isinstance(length, int) and length > 0:
        return with_meaning(name, inner, (length,))
    if inner and inner != "None":
        raise ArgumentError(
            f"field {name!r}: its feature does not say how long its lists are; give the greatest length in the schema, "
            f"as {inner}[<=512], or the length that all have, as {inner}[512]",
            "bad argument",
        )
    if getattr(feature, "dtype", None) in ("string", "large_string"):
        raise ArgumentError(
            f"field {name!r}: its feature does not say how long its text is; give the greatest length in the schema, "
            "as text[<=200]",
            "bad argument",
        )
    return with_meaning(name, dtype, ()) if dtype else None


# ---- progress ----


class _Progress:
    """Says how far it is, ten times a second at most, and at the end."""

    def __init__(
        self, wanted: bool | Callable[[int, int | None], Any] | None, count: int | None, doing: str = "packing"
    ) -> None:
        self.call = wanted if callable(wanted) else None
        self.line = False
        if self.call:
            check_function("progress", self.call, "done_records, all_records")
        elif wanted is None:
            self.line = sys.stderr is not None and sys.stderr.isatty()
        else:
            self.line = as_flag("progress", wanted)
        self.doing = doing
        self.count, self.begin, self.last, self.done = count, time.monotonic(), 0.0, 0
        self.first = 0  # records that an earlier call has packed

    def __enter__(self) -> _Progress:
        return self

    def __call__(self, done: int) -> None:
        self.done = done
        if self.call or self.line:
            now = time.monotonic()
            if now - self.last >= 0.1:
                self.last = now
                self._show(now)

    def _show(self, now: float) -> None:
        if self.call:
            self.call(self.done, self.count)
        else:
            print(f"\r{self.text(now - self.begin)}\x1b[K", end="", file=sys.stderr, flush=True)

    def text(self, seconds: float) -> str:
        rate = (self.done - self.first) / seconds if seconds else 0
        if not self.count:
            return f"{self.doing}: {self.done:,} records, {rate:,.0f}/s"
        left = (self.count - self.done) / rate if rate else 0
        return (
            f"{self.doing}: {self.done:,} of {self.count:,} records, {100 * self.done // self.count} %, {rate:,.0f}/s,"
            f" {int(left) // 60}:{int(left) % 60:02} left"
        )

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        if kind is None and (self.call or self.line):
            self._show(time.monotonic())
        if self.line:
            print(file=sys.stderr)
