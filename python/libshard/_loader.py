# SPDX-License-Identifier: Apache-2.0
"""Loaders: epochs of shuffled batches, prepared by threads in C."""

from __future__ import annotations

import inspect
import operator
import threading
import time
import warnings
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, Self, SupportsIndex, TypeVar

from . import _core, _frameworks, _ranks
from ._batch import PARTS, ROW_PARTS
from ._concat import Concat, Zip, as_source
from ._core import Batch
from ._dataset import Dataset, opened
from ._errors import ArgumentError, Error, MismatchError
from ._hints import Hinting
from ._loop import Loop, Place
from ._mix import Mixture
from ._options import (
    as_flag,
    as_names,
    as_text,
    check_function,
    choice,
    public,
    refuse_option,
    show,
    stack_level,
    whole,
)
from ._selection import Selection
from ._summary import gpu_is_here, is_label, prometheus_of, rates_of, summary_of
from ._tables import check_columns, of_stack
from ._transform import Transform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from _typeshed import WriteableBuffer

    from ._core import Array
    from ._types import Corrupt, Device, Path, ReadPath, Shuffle, Strings, Tail, Window, WindowEdge

T = TypeVar("T")  # what a batch is made of

_SHUFFLES = ("auto", "sequential", "global", "windows")
_TAILS = ("drop", "pad", "keep")
_PATHS = ("auto", "map", "direct", "pread")
_STRINGS = ("rows", "lists")
_CORRUPT = ("fail", "substitute", "mask")
_EDGES = ("pad", "drop")
_WINDOW_MOST = 65536
_POOL_ALL = 2**64 - 1

# Of PyTorch's options, what is here instead.
_ELSEWHERE = {
    "num_workers": "a loader has no worker processes; threads=4 are 4 threads, and 0 chooses",
    "pin_memory_device": "device='cuda:1' copies batches to that GPU ahead of you",
    "collate_fn": "transform=f calls f with each batch, and delivers what it returns",
    "batch_transform": "transform=f calls f with each batch, and delivers what it returns",
    "sampler": "ds.where(), ds.select() and ds.split() choose records, shuffle= and seed= their order; for any other "
    "order use libshard.torch.ShardDataset in a DataLoader",
    "prefetch_factor": "prefetch=2 prepares 2 batches ahead",
    "persistent_workers": "a loader's threads live as long as it does",
    "worker_init_fn": "a loader has no worker processes, and seed= decides the order",
    "multiprocessing_context": "a loader has no worker processes",
    "generator": "seed= decides the order",
    "timeout": "a loop waits until a batch is there, and ^C ends it",
    "in_order": "batches always come in order",
    "num_replicas": "world= is the number of ranks",
    "num_shards": "world= is the number of ranks",
    "shard_id": "rank= is this process's number",
    "shard_index": "rank= is this process's number",
    "batch": "batch_size= is the number of records",
    "bs": "batch_size= is the number of records",
    "columns": "fields= are the fields to deliver",
    "drop_remainder": "drop_last=True leaves out a smaller last batch",
    "order": "shuffle= chooses the order",
    "buffer_size": "shuffle=True has no buffer: it mixes the whole dataset, or windows of it, which window_runs= makes larger",
    "random_state": "seed= decides the order",
    "limit": "max_steps= ends loops after that many batches, and ds.select(range(n)) are n records",
    "max_batches": "max_steps= ends loops after that many batches",
    "resume": "loader.load_state_dict(state) goes on behind the batch at which loader.state_dict() was called",
    "epoch": "loader.set_epoch(5) chooses the epoch",
    "weights": "a record comes once in an epoch, so that a resume is exact; libshard.balanced(ds) has all classes equally "
    "often, and libshard.mix([ds.where(...), ds.where(...)], [3, 1]) weights groups of records",
    "num_epochs": "for epoch in range(loader.epoch, n): for batch in loader: ...; epochs=None has no end",
    "steps": "max_steps= ends loops after that many batches",
    "repeat": "epochs=None is a loop without an end",
    "infinite": "epochs=None is a loop without an end",
}
_ELSEWHERE["batch_sampler"] = _ELSEWHERE["sampler"]
for _name in ("sample_weights", "sample_weight", "replacement", "with_replacement"):
    _ELSEWHERE[_name] = _ELSEWHERE["weights"]
_ELSEWHERE["workers"] = _ELSEWHERE["num_workers"]

PADDED = 1  #: a bit of ``Batch.flags``: the row repeats a record, to fill the last batch of all ranks
SUBSTITUTED = 2  #: a bit of ``Batch.flags``: the record is damaged, and the row repeats another one
MASKED = 4  #: a bit of ``Batch.flags``: the record is damaged, and the row is zeros
EDGE = 8  #: a bit of ``Batch.flags``: the window is beyond its episode here, and the row repeats the record at the edge



class LoaderBase(Hinting, Generic[T]):
    """What loaders have in common, whatever they make of a batch."""

    rank: int  #: of this process
    world: int  #: the number of ranks
    _wide_tokens = False  # are token ids int64, whatever is stored?
    _needs_group = False  # is a share that only torchrun's variables name a guess?
    _may_use_gpu = True  # do device="cuda" and pin_memory=True do something?

    @public("libshard.Loader", lambda loader, name: _refuse_option(type(loader), name))
    def __init__(
        self,
        dataset: Dataset | Selection | Concat | Mixture | Zip | Path,
        batch_size: SupportsIndex,
        *,
        fields: Iterable[str] | None = None,
        items: str | Iterable[str] = "rows",
        strings: Strings = "rows",
        transform: Transform | Callable[[Any], Any] | Sequence[Transform | Callable[[Any], Any]] | None = None,
        transform_as_stored: str | Iterable[str] = (),
        transform_ahead: SupportsIndex = 0,
        shuffle: bool | Shuffle = True,
        seed: SupportsIndex = 0,
        rank: SupportsIndex | None = None,
        world: SupportsIndex | None = None,
        epochs: SupportsIndex | None = 1,
        max_steps: SupportsIndex | None = None,
        drop_last: bool | None = None,
        tail: Tail | None = None,
        prefetch: SupportsIndex = 2,
        max_held: SupportsIndex = 2,
        copy: bool = False,
        threads: SupportsIndex = 0,
        path: ReadPath = "auto",
        on_corrupt: Corrupt = "fail",
        corrupt_most: SupportsIndex | None = 1024,
        device: str | Device = "cpu",
        pin_memory: bool = False,
        memory: WriteableBuffer | None = None,
        window_runs: SupportsIndex = 0,
        lanes: SupportsIndex = 0,
        run_records: SupportsIndex = 0,
        phase_unit_records: SupportsIndex = 0,
        stage_bytes: SupportsIndex = 0,
        stream: object = None,
        pool_bytes: SupportsIndex | Literal["all"] = 0,
        pin_most: SupportsIndex | None = None,
        resume_appended: bool = False,
        check_ranks: bool = True,
        window: Window | None = None,
        episode: str = "episode",
        window_edge: WindowEdge = "pad",
    ) -> None:
        """
        ``dataset``: a :class:`Dataset`, a :class:`Selection` of one, a :class:`Concat` or
        :class:`Mixture` of several, a :class:`Zip` of one and its columns, or the path of one.
        ``batch_size``: records per rank.  ``fields``: the names of those that are wanted; by default
        all.  What is stored apart from them is neither read nor checked.
        ``items``: the other items of a batch, behind its fields.  ``"rows"`` are ``index``,
        ``flags``, ``valid`` and, of mixtures, ``component``: all that has a number for each row.
        ``"all"`` are these and ``epoch``, ``step`` and ``position``, which are plain numbers; else
        it is names of these, or ``()`` for fields alone.  The attributes of a batch are there in
        any case, but a framework that makes another mapping of a batch keeps its items only.
        ``strings``: ``"rows"`` of bytes, as long as the longest string, with their lengths beside
        them; or ``"lists"`` of ``str``, or of ``bytes`` where they are not text.  Of a field that is
        a list of texts, each row is a list of ``str``.
        ``transform``: a :class:`Transform` of images, by the threads that fill batches; or a
        function of a batch, which is called in the loop, and what it returns is delivered; or a list
        of functions, each of which gets what the one before it returned, with a :class:`Transform`
        as the first item if there is one.
        ``transform_ahead``: batches that the functions work on ahead of the loop, in a thread; 0:
        they are called in the loop.  They are called in the same order, one at a time, and what one
        raises comes where its batch would.  The loader has memory for as many batches more.
        ``transform_as_stored``: names of fields that a :class:`Transform` need not move.  Masks and
        boxes follow by their semantic.  A field that has none and looks like one of them, or like
        points, is refused until it is named here; so are further images.

        ``shuffle``: True picks by the size of a record between ``"global"`` (any record may follow
        any other) and ``"windows"`` (runs of neighbours, mixed: large reads); False is
        ``"sequential"``.  ``seed``: of the order.

        ``rank``, ``world``: which share of the epoch is ours; by default that of
        ``torch.distributed`` if it was initialized, else as torchrun sets RANK and WORLD_SIZE.  A
        loop raises if that changed since the loader was made.

        ``epochs``: 1, and a loop is an epoch; or None, and a loop goes on from epoch to epoch
        without an end.  ``max_steps``: batches that all loops get together, those before a state
        that was loaded included; then a loop ends, and further ones have none.  The state is behind
        the last of them, also in the middle of an epoch.

        ``tail``: what to do with records that do not fill the ranks' last batch: ``"keep"`` a
        smaller batch (world 1 only, and the default there), ``"drop"`` them (the default of larger
        worlds), or ``"pad"`` with records from the start of the epoch, flagged (the default of
        larger worlds with ``shuffle=False``).  ``drop_last`` True and False are ``"drop"`` and
        ``"keep"``.  Of a mixture neither is given: its last batch takes records of the next epoch.

        ``prefetch``: batches that are prepared ahead.  ``max_held``: batches that may be alive when
        the next is asked for; 1 is the one of the loop before.  The loader's memory is for the sum
        of both and the one that is asked for, which is 5 batches by default; so threads always have
        ``prefetch`` of them to fill, whatever is held.  ``copy``: True gives each batch memory of
        its own, so that any number may be held; that costs a copy of every batch.

        ``threads``: that fill batches; 0 for one per CPU, at most 4.  ``path``: how records are
        read, ``"auto"``, ``"map"``, ``"direct"`` or ``"pread"``.  ``on_corrupt``: ``"fail"``, or
        flag the row and ``"substitute"`` another record, or ``"mask"`` it with zeros.
        ``corrupt_most``: rows of an epoch that may be substituted or masked before the loader
        raises :class:`CorruptError`; None for no limit.

        ``pin_memory``: True page-locks the memory of batches, so that a GPU copies them at the
        link's speed, and beside other work.  The memory of a batch is then used again behind the
        work that ``stream`` had queued when its last array died.  By default that is the legacy
        default stream, which waits for all streams of the current GPU but non-blocking ones.  If
        you copy on another stream, keep the batch until its copies have arrived.  Where memory
        cannot be page-locked, as without a GPU, this warns and all goes on.  With
        ``device="cuda"`` the memory is page-locked in any case.

        ``memory``: a writable buffer for the batches, 4096-aligned, of :attr:`ring_bytes` at least,
        instead of the loader's own; for memory that is page-locked already.  ``window_runs``,
        ``lanes``, ``run_records``, ``phase_unit_records``, ``stage_bytes``: see shard.h.

        ``device``: ``"cuda:1"`` for batches in the memory of GPU 1, copied ahead of the trainer;
        ``"cuda"`` for the GPU of ``stream``, or without one the current GPU of this thread, or the
        first one.  The loader stays on that GPU, whichever is current later.  ``stream``: an object
        of PyTorch or CuPy, or one with ``__cuda_stream__``, which the loader keeps; or a number, as
        DLPack has it, whose stream must outlive the loader and its arrays; by default the legacy
        default stream.  All fields are then arrays on the GPU, with ``__dlpack__`` and
        ``__cuda_array_interface__``, ``index`` and ``flags`` in the memory of the CPU.  Work that
        is queued on that stream, or on the one that ``__dlpack__`` was given, finds its batch
        there; its memory is used again behind what these streams had queued when the last array
        died.  ``max_held`` is at most 3.  On the GPU there is memory for ``max_held`` batches and
        one, in that of the CPU for ``prefetch`` and ``max_held``.  Without a GPU this raises
        :class:`DeviceError`.

        ``pool_bytes``: of the GPU's memory, for windows of the dataset, or ``"all"`` of it, from
        which batches are gathered there; 0: none.

        ``pin_most``: bytes of the page cache to page-lock at most, so that the GPU reads records of
        64 KiB and more there by itself, and shorter ones for a pool; 0: none.  The default is half
        of the memory that is available, divided by the ranks that may run on this host.

        ``check_ranks``: where the loader is shared out over all ranks of ``torch.distributed``, a
        loop raises whose epoch, place, dataset, order or batch size is another one than on rank 0;
        False does not compare them.

        ``resume_appended``: True lets :meth:`load_state_dict` take states of the dataset before
        ``shardpack append``.

        ``window``: each record with its neighbours, for frames of videos, steps of robots and time
        series.  ``(-15, 0)`` are the record and the 15 before it, ``(-30, 0, 2)`` every second one,
        and a ``range`` does as well.  Fields are then [batch, window, ...], and so are ``index``,
        ``flags`` and ``valid``.  ``episode``: the name of a whole-number field that says which
        records are of one episode; they lie together in the dataset, and windows stay within.
        ``window_edge``: where a window would leave its episode, ``"pad"`` repeats the record at the
        edge, flagged with ``EDGE`` and not valid; or ``"drop"`` has no windows around such records.
        Order, ranks, ``len()`` and states are those of the records that windows are around; of a
        selection, these are the selected ones, and their neighbours may be others.  A
        :class:`Transform` crops and mirrors all images of a window alike.
        """
        place, gpu = _device(device)
        pool = _pool(pool_bytes)
        pins = as_flag("pin_memory", pin_memory) and place == "cpu"  # else they are in any case
        if place == "cpu" and pin_most is not None:
            raise ArgumentError("pin_most needs device='cuda'", "bad argument")
        if place == "cpu" and (pool or (stream is not None and not pins)):
            raise ArgumentError("pool_bytes needs device='cuda'; stream needs that or pin_memory=True", "bad argument")
        if pins and memory is not None:
            raise ArgumentError(
                "memory= and pin_memory=True are both given; memory of your own is yours to page-lock: leave one out",
                "bad argument",
            )
        self.copy: bool = as_flag("copy", copy)
        pins_ring, make_memory = self._page_locking(stream) if pins else (False, None)
        self._keeps = make_memory is not None  # is the memory of a batch its own?
        self._is_pageable = place == "cpu" and not pins and memory is None and self._may_use_gpu
        if pins_ring and self.copy:
            raise ArgumentError(
                "copy=True gives each batch memory of its own, which is not page-locked; leave out copy or pin_memory",
                "bad argument",
            )
        if place != "cpu" and self.copy:
            raise ArgumentError("copy=True needs device='cpu'; on a GPU copy what is to be kept", "bad argument")
        around = _window(window, episode, window_edge)
        if around is not None and isinstance(dataset, (Mixture, Zip)):
            raise ArgumentError(
                f"window={show(window)} needs a dataset or a selection, and this is "
                f"{'a mixture' if isinstance(dataset, Mixture) else 'a libshard.zip()'}, which has no neighbours of its own",
                "bad argument",
            )
        self.zipped: Zip | None = dataset if isinstance(dataset, Zip) else None
        if isinstance(dataset, Zip):
            if place != "cpu":
                raise ArgumentError(
                    "libshard.zip() needs device='cpu', where its columns are; batch.to('cuda') moves all of a batch",
                    "bad argument",
                )
            dataset = dataset.source
        dataset = as_source(dataset)
        self.selection: Selection | None = dataset if isinstance(dataset, Selection) else None
        self.mixture: Mixture | None = dataset if isinstance(dataset, Mixture) else None
        if isinstance(dataset, (Selection, Mixture)):
            dataset = dataset.dataset
        self.dataset: Dataset = opened("dataset", dataset)
        self._window = None if around is None else (*around, window_edge)
        if around is not None and (stacked := of_stack(self.dataset, around[0])):
            raise ArgumentError(f"episode={show(around[0])} is not a field{stacked}", "bad argument")
        if around is not None and window_edge == "drop":
            of = None if self.selection is None else self.selection._core
            inside = _core.Selection.inside(self.dataset, of, around[0], around[1][0], around[1][-1])
            self.selection = Selection(self.dataset, inside)
        source = self.selection or self.mixture
        share = _ranks.given(rank, world)
        self._is_given, (self.rank, self.world) = share is not None, share or _ranks.found()
        self._check_ranks, self._thread = as_flag("check_ranks", check_ranks), threading.get_ident()
        if isinstance(shuffle, str):
            kind = choice("shuffle", shuffle, _SHUFFLES)
        else:
            kind = int(not as_flag("shuffle", shuffle))
        self.transform = transform
        self._of_images, self._functions = _transforms(transform)
        as_stored = _as_stored(transform_as_stored, self._of_images, bool(self._functions))
        self._ahead = self._works_ahead(whole("transform_ahead", transform_ahead), place)
        self._is_endless, self._steps_most = _lengths(epochs, max_steps)
        self._is_sequential = kind == 1
        self._lists = lists = choice("strings", strings, _STRINGS) == 1
        if lists and place != "cpu":
            raise ArgumentError("strings='lists' needs device='cpu': a GPU has no strings", "bad argument")
        wanted = _fields(self.dataset, fields)
        if self.mixture is not None:
            _check_mixed(self.mixture, wanted)
        if around is not None:
            _refuse_whole_images(self.dataset, wanted, self._of_images)
        self._items = _items(items, self.dataset, wanted, self.mixture is not None)
        # Of each row, and no items: anyone who makes something else of arrays does so with these.
        self._attributes = [
            name for name in ROW_PARTS if name not in self._items and (name != "component" or self.mixture)
        ]
        self._core = _core.Loader(
            self.dataset,
            seed=whole("seed", seed, 64),
            batch_records=whole("batch_size", batch_size, least=1),
            rank=whole("rank", self.rank),
            world=whole("world", self.world, least=1),
            shuffle=kind,
            tail=_no_tail(tail, drop_last) if self.mixture else _tail(tail, drop_last, self.world, self._is_sequential),
            prefetch=whole("prefetch", prefetch),
            max_held=_held(whole("max_held", max_held), self._ahead),
            thread_count=whole("threads", threads),
            window_runs=whole("window_runs", window_runs),
            lane_count=whole("lanes", lanes),
            run_records=whole("run_records", run_records, 64),
            path=choice("path", path, _PATHS),
            phase_unit_records=whole("phase_unit_records", phase_unit_records, 64),
            stage_bytes=whole("stage_bytes", stage_bytes, 64),
            on_corrupt=choice("on_corrupt", on_corrupt, _CORRUPT),
            corrupt_most=_corrupt_most(corrupt_most),
            device=place == "cuda",
            gpu=gpu,
            stream=whole("stream", stream, 64) if isinstance(stream, SupportsIndex) else stream,
            pool_bytes=pool,
            pin_most=0 if pin_most is None else whole("pin_most", pin_most, 64) or 1,  # as C has it: 0 is the default
            source=source and source._core,
            fields=wanted,
            items=_item_bits(self._items),
            strings=lists,
            wide_tokens=self._wide_tokens,
            resume_appended=as_flag("resume_appended", resume_appended),
            pin=pins_ring,
            make_memory=make_memory,
            transform=self._of_images and self._of_images._for(self.dataset, as_stored),
            window=around,
        )
        self.batch_size: int = operator.index(batch_size)
        self._function_ns = self._function_wait_ns = 0  # in functions of the transform, and until they were done
        self._metrics: dict[str, int | bool] = {}  # stats() when they were asked for last
        self._place: Place | None = None  # of a loop whose functions work ahead
        self._left: tuple[int, int, int] | None = None  # as the core says it, of such a loop
        self._run_on: tuple[int, int] | None = None  # where it ended, if an epoch of a mixture begins there
        self._step_count, self._has_warned = 0, False  # batches that loops had, if there is a max_steps
        self._resumed_at: tuple[int, int] | None = None  # where a state put the loader last
        if self.world > 1 and self._is_sequential and not self.mixture and tail is None and drop_last is None:
            self._warn_of_repeats()
        if memory is not None:
            self._core.lend(memory)

    def _page_locking(self, stream: object) -> tuple[bool, Callable[[int], tuple[object, int]] | None]:
        """Shall the ring be page-locked?  Or, for a framework that has such memory, a function that makes it for a
        batch, of so many bytes: an object that owns it, and its address."""
        return True, None

    def close(self) -> None:
        """No more batches.  Arrays that are held stay valid; memory goes with the last of them."""
        self._core.close()

    @property
    def closed(self) -> bool:
        return self._core.closed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a loader has threads and a place of its own, and cannot be pickled or copied: give a process the dataset, the "
            "selection or the mixture, and open a loader there; state_dict() says where this one is, and "
            "libshard.torch.ShardDataset is for the workers of a DataLoader"
        )

    def _next(self) -> NoReturn:
        raise TypeError("a loader is not an iterator: it = iter(loader) begins an epoch, and next(it) gives a batch")

    def __len__(self) -> int:
        """Batches of a whole epoch, the same number on every rank, also where a state was loaded in
        the middle of one.

        Of a mixture, those of the first epoch: a later one has one less if the epoch before took
        some of its records.  With ``max_steps`` that many, if they are fewer or ``epochs`` is None.
        """
        count, most = self._core.step_count(), self._steps_most
        if self._is_endless and most is None:
            raise TypeError(
                f"a loop with epochs=None has no end, and so no len(); an epoch has {count} batches, and max_steps= sets "
                "an end"
            )
        return count if most is None else most if self._is_endless else min(count, most)

    def __iter__(self) -> Iterator[Batch[T]]:
        """The epoch where the loader stands: all of it, or what is left if a state was loaded in
        its middle.

        An epoch that a loop left early is over: the next loop begins the next one.  That is so
        after ``break``, ``islice``, an exception, and a look at ``next(iter(loader))``.
        """
        if self._is_endless or self._steps_most is not None or self._ahead:
            return Loop(self)
        return map(self._transformed, self._epoch()) if self._functions else self._epoch()

    def _epoch(self) -> Iterator[Batch[T]]:
        """The batches of an epoch, before functions work on them."""
        return map(self._make, self._batches())

    def _transformed(self, batch: Any) -> Any:
        begin = time.perf_counter_ns()
        try:
            for function in self._functions:
                batch = function(batch)
            return batch
        except StopIteration as e:  # which would end the loop, as if the epoch had no more batches
            raise RuntimeError("the function that was given as transform raised StopIteration") from e
        finally:
            self._function_ns += time.perf_counter_ns() - begin

    def _works_ahead(self, count: int, place: str) -> int:
        """How many batches functions work on ahead, if they can."""
        if count and not self._functions:
            raise ArgumentError(
                f"transform_ahead={count} is for functions, and transform has none; a libshard.Transform and the "
                "reading of records are ahead of the loop in any case, by prefetch=",
                "bad argument",
            )
        if count and place != "cpu":
            raise ArgumentError(
                f"transform_ahead={count} needs device='cpu': work on a GPU is queued, and its stream is that of the loop",
                "bad argument",
            )
        return count

    def _batches(self) -> Iterator[Batch[Array]]:
        """The batches of a loop over an epoch, if it may begin."""
        _frameworks.check_loop(self.world, self._is_sequential)
        if not self._is_given:
            _ranks.check_unchanged((self.rank, self.world), self._needs_group)
        self._warn_of_a_look(
            "the next loop begins epoch {next}, and the other {rest} batches of epoch {epoch} do not"
            " come"
        )
        self._left = self._run_on = None
        batches = map(_copied, self._core) if self.copy and not self._keeps else iter(self._core)
        if self.zipped is not None:
            batches = map(self._with_columns, batches)
        first = self._first_rank() if self._check_ranks and self.world > 1 else None
        loops = None if first is None else _ranks.loops_of(first, self.world)
        return batches if loops is None else _ranks.Watched(batches, loops, self._thread, self._line)

    def _with_columns(self, batch: Batch[Array]) -> Batch[Array]:
        assert self.zipped is not None
        batch.update(self.zipped._beside(batch.index.tolist(), self._lists))
        return batch

    def _first_rank(self) -> int | None:
        """The rank in ``torch.distributed`` that has our share 0; None if that is not known."""
        distributed = _ranks.torch_distributed()
        ours = distributed and (distributed.get_rank(), distributed.get_world_size())
        return 0 if ours == (self.rank, self.world) else None

    def _line(self, first: Batch[Any]) -> dict[str, Any]:
        """What must be the same on all ranks, of a loop that began with this batch."""
        source = self.mixture or self.selection
        order = self.order
        parts = [f"{name}={order[name]}" for name in order if name not in ("kind", "seed", "record_count")]
        return {
            "dataset": source.digest[:16] if source else self.dataset.id[:16],
            "seed": order["seed"],
            "shuffle": f"{order['kind']} ({', '.join(parts)})",
            "batch_size": self.batch_size,
            "batches of an epoch": self._core.step_count(),
            "epoch": first.epoch,
            "position": first.position,
        }

    def _warn_of_repeats(self) -> None:
        repeats = -len(self.selection or self.dataset) % (self.batch_size * self.world)
        if repeats:
            rows = "1 row of the last step is a repeat" if repeats == 1 else f"{repeats} rows of the last step are repeats"
            warnings.warn(
                f"{rows}, so that all {self.world} ranks have it. tail='drop' leaves "
                "that step out; tail='pad' keeps it: then skip rows where batch['valid'] is False",
                stacklevel=stack_level(),
            )

    def _warn_of_a_look(self, what: str) -> None:
        """If the last loop went on in the middle of an epoch, and took one batch only."""
        epoch, done, taken = self._left or self._core.left() or (0, 0, 0)
        if taken == 1 and done > 1:
            what = what.format(epoch=epoch, next=epoch + 1, rest=self._core.step_count() - done, done=done)
            warnings.warn(
                f"a loop that went on in the middle of epoch {epoch} was left after one batch, so {what}: "
                "to look at a batch, open another loader",
                stacklevel=stack_level(),
            )

    def _make(self, batch: Batch[Any]) -> Batch[T]:
        """Of a batch of arrays, one of what T is."""
        raise NotImplementedError

    def set_epoch(self, epoch: SupportsIndex) -> None:
        """The next loop is that of this epoch, from its start.

        Right after ``load_state_dict()`` of a state in the middle of this epoch, from there.

        Of a mixture, that is behind the records that the last batch of the epoch before has taken,
        if that is the epoch that comes next.
        """
        epoch, here = whole("epoch", epoch, 64), self._tell()
        if here == self._resumed_at and epoch == here[0]:
            return
        if here == self._resumed_at and epoch < here[0]:
            warnings.warn(
                f"set_epoch({epoch}) right after load_state_dict() of a state that "
                f"{'is in the middle of' if here[1] else 'begins'} epoch {here[0]}: epoch {epoch} comes"
                " again, from its start; to go on where the state is, loop over range(loader.epoch, n)",
                stacklevel=stack_level(),
            )
        elif epoch == here[0] - 1:
            self._warn_of_a_look(
                "set_epoch({epoch}) begins that epoch again, with the {done} batches that are done"
            )
        place = self._place
        if place is not None and self.mixture is not None and place.epoch < epoch == here[0]:
            return  # it comes next, behind the last step of the epoch before
        if self._run_on == here and epoch == here[0] and self.mixture is not None:
            return
        if place is not None or self.mixture is None or not self._core.begins(epoch):
            self._core.seek(epoch, 0)
            self._forget_place()

    def _go_back(self) -> None:
        """A loop whose functions work ahead is over: batches that it did not deliver were not taken."""
        place, self._place = self._place, None
        if place is None or place.next is None or self.closed:
            return
        try:
            if place.taken and place.next == place.epoch:  # it was left early
                self._core.seek(place.epoch + 1, 0)
                self._left = place.epoch, place.step + 1, place.taken
                self._run_on = place.epoch + 1, 0
            else:
                self._core.resume(place.token)
                self._run_on = place.here if place.epoch < place.here[0] else None
        except Error:  # of a loader that was inherited by fork: each call says so
            pass

    def _forget_place(self) -> None:
        """The loader is elsewhere, so a loop whose functions work ahead is over, and holds no batches."""
        place, self._place = self._place, None
        self._left = self._run_on = None
        loop = place.loop() if place is not None else None
        if loop is not None:
            loop._drop()

    def _tell(self) -> tuple[int, int]:
        """Epoch and position of the batch that the loop gets next."""
        here = self._core.tell()  # which says so if the loader is closed
        return self._place.here if self._place is not None else here

    def _skip(self, steps: int) -> None:
        """Leave out the first steps of the epoch."""
        if steps == 0:
            return
        epoch, position = self._tell()
        if position or self.mixture is not None:
            raise ArgumentError(
                f"{steps} batches are to be left out, and the loader stands behind the start of epoch {epoch} already, "
                "or delivers a mixture; state_dict() and load_state_dict() are enough to go on",
                "bad argument",
            )
        self._core.seek(epoch, steps * self.batch_size * self.world)
        self._step_count += steps  # as if a loop had had them, for max_steps

    @property
    def epoch(self) -> int:
        """Of the batch that comes next."""
        return self._tell()[0]

    @property
    def ring_bytes(self) -> int:
        """Memory for batches, all of them together."""
        return self._core.ring_bytes()

    @property
    def order(self) -> dict[str, Any]:
        """How the order is made, with all defaults filled in: a dict."""
        info = self._core.order_info()
        info["kind"] = _SHUFFLES[info["kind"]]
        return info

    def indices(self, epoch: SupportsIndex, first: SupportsIndex, count: SupportsIndex) -> Array:
        """The records of this rank's rows ``[first, first + count)`` of an epoch, an int64 array.

        None of them is read.  Not of mixtures: there a number alone does not name a record.
        """
        if self.mixture is not None:
            raise ArgumentError("indices() is not for mixtures; see batch.component and batch.index", "bad argument")
        return self._core.order(whole("epoch", epoch, 64), whole("first", first, 64), whole("count", count, 64))

    def state_dict(self) -> dict[str, Any]:
        """Where the next batch is, for a checkpoint: small and picklable.

        It is good for any world, batch size and number of threads.  Inside a loop that is behind
        the batch that the loop got last.  A loop that was left early has ended its epoch: then the
        state begins the next one, as the next loop would, and this warns.
        """
        left = self._left or self._core.left()
        if left:
            warnings.warn(
                f"the loop was left after step {left[1]} of {self._core.step_count()}, so this state begins epoch "
                f"{left[0] + 1}; call state_dict() inside the loop to go on behind step {left[1]}",
                stacklevel=stack_level(),
            )
        token = self._core.token()  # which says so if the loader is closed
        state: dict[str, Any] = {"libshard": 1, "token": token if self._place is None else self._place.token}
        if self.zipped is not None:
            state["columns"] = self.zipped.digest
        if self._window is not None:
            state["window"] = _show_window(self._window)
        return state if self._steps_most is None else state | {"steps": self._step_count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where ``state_dict()`` was called.  Reads no record before that place.

        Raises :class:`MismatchError` if the state is of another dataset, selection or mixture, of
        other columns beside it or of none, or of another seed or order.  With
        ``resume_appended=True`` the state may be of this dataset before ``shardpack append``: its
        epoch is finished over the old records, and the next one has all of them.
        """
        if not isinstance(state, dict) or state.get("libshard") != 1 or not isinstance(state.get("token"), str):
            raise ArgumentError("this state is not from state_dict() of a libshard loader", "bad argument")
        steps = state.get("steps")
        if self._steps_most is not None and steps is None:
            raise ArgumentError(
                "this state does not say how many batches came before it, since its loader had no max_steps; open this "
                "one without max_steps, too, and count steps in the loop",
                "bad argument",
            )
        self._check_columns(state.get("columns"))
        theirs, ours = state.get("window"), self._window and _show_window(self._window)
        if theirs != ours:
            raise MismatchError(
                f"the state belongs to {_state_window(theirs)}, and this loader has {_state_window(ours)}: open it with "
                "the same window=, episode= and window_edge=",
                "not as the manifest says",
            )
        count = 0 if steps is None else whole("the steps of the state", steps, 64)
        self._core.resume(as_text("token", state["token"]))
        self._step_count = count
        self._resumed_at = self._core.tell()
        self._forget_place()

    def _check_columns(self, said: Any) -> None:
        """Does a state belong to the columns beside the dataset?  ``said``: their digest, or None if there were none."""
        ours = None if self.zipped is None else self.zipped.digest
        if said == ours:
            return
        if ours is None:
            why = (
                f"the state belongs to columns {show(said)[1:17]}... beside the dataset, and this loader has none: open "
                "it with what libshard.zip() returned; to go on without them, leave 'columns' out of the state"
            )
        elif said is None:
            why = (
                "the state belongs to a loader without columns beside its dataset, and this one has "
                f"{', '.join(self.zipped.columns if self.zipped else ())}: open it without libshard.zip(); to go on with "
                "them, load state | {'columns': both.digest}, where both is what libshard.zip() returned"
            )
        else:
            why = (
                f"the state belongs to columns {show(said)[1:17]}..., and these are {ours[:16]}...: open the loader with "
                "the same datasets and arrays beside its dataset"
            )
        raise MismatchError(why, "not as the manifest says")

    def stats(self) -> dict[str, int | bool]:
        """Counters since the loader was opened: a dict; times in nanoseconds, sums over threads.

        ``function_ns`` is the time in the functions that were given as ``transform``, and
        ``function_wait_ns`` the time that loops waited for them: the same, unless ``transform_ahead``
        lets them work ahead.
        """
        waited = self._function_wait_ns if self._ahead else self._function_ns
        return self._core.stats() | {"function_ns": self._function_ns, "function_wait_ns": waited}

    def metrics(self) -> dict[str, float]:
        """Rates since the last call of this, or since the first batch, for TensorBoard and such: a
        dict of numbers.

        ``batches_per_second``, ``records_per_second`` and ``bytes_per_second``.  Parts of the time,
        from 0 to 1: ``wait_fraction``, in which the loop waited for batches;
        ``function_fraction`` and ``function_wait_fraction``, as :meth:`stats` has them;
        ``threads_fill_fraction`` and ``threads_wait_fraction``, in which threads filled batches and
        waited for memory.  ``damaged_rows`` is a count since the loader was opened.
        """
        now, before = self.stats(), self._metrics
        self._metrics = now
        return rates_of(now, before)

    def prometheus(self, **labels: str) -> str:
        """Counters in the text format of Prometheus: ``loader.prometheus(loader="train", rank="0")``.

        A loader belongs to one thread: make the text there, and let the thread that serves it serve
        the last one.
        """
        for name, value in labels.items():
            if not is_label(name):
                said = f"prometheus: {show(name)} is not a name of a label, which has letters, digits and _"
                raise ArgumentError(said, "bad argument")
            as_text(name, value, "the value of a label")
        return prometheus_of(self.stats(), labels)

    def summary(self) -> str:
        """One line for a log: rates, who waited for whom, and which side is the slower one.

        Of a loader whose ``transform`` is a function, also how much of the time it takes.  If this
        machine has a GPU, and batches are in memory that is not page-locked, it says so.
        """
        return summary_of(self.stats(), self._is_pageable and gpu_is_here())

    def last_damage(self) -> tuple[str, str] | None:
        """Status and message of the row that was substituted or masked last; None if none was."""
        return self._core.last_damage()

    def __repr__(self) -> str:
        state = (
            "closed"
            if self.closed
            else f"{self._core.step_count():,} batches of {self.batch_size:,} an epoch, {self.order['kind']} order"
        )
        return f"<libshard.Loader of {self.selection or self.mixture or repr(self.dataset.path)}: {state}>"


# Not as a method of the class: to type checkers a loader would then be an iterator.
setattr(LoaderBase, "__next__", LoaderBase._next)  # noqa: B010


class Loader(LoaderBase["Array"]):
    """Batches of a dataset, in an order that seed and epoch fix.

    ``for batch in loader:`` is one epoch; the next loop is the next epoch, which is being read
    already.  A batch is a dict of read-only arrays (:class:`Batch`).  Its large fields lie in the
    loader's memory, which is used again when the arrays are gone: nothing has to be released, but
    who keeps batches for later must ``copy()`` their arrays, or say ``copy=True``.

    One thread at a time.  After ``fork`` the child has to open a loader of its own.
    """

    def _epoch(self) -> Iterator[Batch[Array]]:
        return self._batches()


def _refuse_option(cls: type, name: str) -> NoReturn:
    known = next(c for c in cls.__mro__ if c.__module__.startswith("libshard"))
    where = f"{known.__module__.removesuffix('._loader')}.{known.__name__}"
    signatures = (inspect.signature(c.__init__).parameters for c in (known, LoaderBase))
    options = dict.fromkeys(n for s in signatures for n, p in s.items() if p.kind is p.KEYWORD_ONLY)
    refuse_option(where, name, options, _ELSEWHERE)


def _fields(dataset: Dataset, wanted: Iterable[str] | None) -> int:
    """A bit for each field that is wanted; 0 for all of them."""
    names = [f.name for f in dataset.schema]
    chosen = names if wanted is None else as_names("fields", wanted, "['image', 'label']")
    for name in chosen:
        if name not in names:
            said = f"fields: {show(name)} is not in {dataset.path}, which has {', '.join(names)}{of_stack(dataset, name)}"
            raise ArgumentError(said, "bad argument")
    if not chosen:
        raise ArgumentError("fields: none is named; name one, or leave it out for all", "bad argument")
    return 0 if wanted is None else sum(1 << i for i, name in enumerate(names) if name in chosen)


def _check_mixed(mixture: Mixture, fields: int) -> None:
    """Fields that were made of the columns of a table have the same ones in all sources."""
    names = [name for i, name in enumerate(mixture.dataset.schema.names) if not fields or fields >> i & 1]
    check_columns((s.dataset if isinstance(s, Selection) else s for s in mixture.sources), names)


def _transforms(given: Any) -> tuple[Transform | None, tuple[Callable[[Any], Any], ...]]:
    """What threads do to images, and the functions that get batches."""
    listed = list(given) if isinstance(given, (list, tuple)) else [] if given is None else [given]
    if not listed and given is not None:
        raise ArgumentError(f"transform={show(given)}; has nothing in it: leave it out", "bad argument")
    for place, one in enumerate(listed):
        if isinstance(one, Transform):
            if place:
                raise ArgumentError(
                    f"transform: item {place} is a libshard.Transform; there may be one, and it must be the first: threads "
                    "crop images as they fill a batch, before a function gets it",
                    "bad argument",
                )
        elif not callable(one):
            raise TypeError(
                f"transform={show(one)}; must be a libshard.Transform, a function of a batch, or a list of these"
            )
        else:
            check_function("transform", one, "batch")
    of_images = listed[0] if listed and isinstance(listed[0], Transform) else None
    return of_images, tuple(one for one in listed if one is not of_images)


def _held(count: int, ahead: int) -> int:
    """Batches that are held while the next is taken: those of the loop, and those that functions work on."""
    if ahead and count and count + ahead >= 1 << 32:
        raise ArgumentError(f"transform_ahead={ahead} is too many batches", "bad argument")
    return count + ahead if count else 0


def _lengths(epochs: SupportsIndex | None, max_steps: SupportsIndex | None) -> tuple[bool, int | None]:
    """Is there no end of epochs?  And how many batches do all loops have?"""
    text = (
        f"epochs={show(epochs)}; must be 1, where a loop is an epoch, or None, where it has no end; for some epochs "
        "write for epoch in range(loader.epoch, 3): for batch in loader: ..."
    )
    if epochs is not None and not hasattr(epochs, "__index__"):
        raise TypeError(text)
    if epochs is not None and whole("epochs", epochs, 64) != 1:
        raise ArgumentError(text, "bad argument")
    return epochs is None, None if max_steps is None else whole("max_steps", max_steps, 64, least=1)


def _as_stored(wanted: Any, transform: Transform | None, has_functions: bool) -> tuple[str, ...]:
    """Names of the fields that a transform shall leave as they are."""
    option = "transform_as_stored"
    names = tuple(dict.fromkeys(as_text(option, name) for name in as_names(option, wanted, "['boxes']")))
    if names and transform is None:
        said = "transform is a function, which moves what it likes" if has_functions else "there is none"
        raise ArgumentError(
            f"transform_as_stored={show(list(names))} is for a libshard.Transform, and {said}; leave it out",
            "bad argument",
        )
    return names


def _window(wanted: Any, episode: str, edge: str) -> tuple[str, tuple[int, ...]] | None:
    """The field that has the number of the episode, and offsets, ascending."""
    field = as_text("episode", episode, "the name of a field")
    choice("window_edge", edge, _EDGES)
    if wanted is None:
        if field != "episode" or edge != "pad":
            raise ArgumentError("episode or window_edge is given, and no window=, which they are for", "bad argument")
        return None
    if isinstance(wanted, tuple) and len(wanted) in (2, 3):
        first, last = (_offset(wanted, part) for part in wanted[:2])
        step = _offset(wanted, wanted[2]) if len(wanted) == 3 else 1
        if step < 1 or last < first:
            raise ArgumentError(
                f"window={show(wanted)} is from {first} to {last} in steps of {step}: it must not end before it begins, "
                "and a step must be 1 or more",
                "bad argument",
            )
        if (last - first) % step:
            raise ArgumentError(
                f"window={show(wanted)}: from {first}, steps of {step} do not come to {last}; the last one must be in the "
                "window",
                "bad argument",
            )
        offsets = range(first, last + 1, step)
    elif isinstance(wanted, range):
        if wanted.step < 0 or not wanted:
            raise ArgumentError(f"window={wanted}: must be ascending, and not empty", "bad argument")
        for end in (wanted[0], wanted[-1]):
            _offset(wanted, end)
        offsets = wanted
    else:
        raise TypeError(
            f"window={show(wanted)}; must be a tuple (first, last), such as (-15, 0) for a record and the 15 before it; "
            "or (first, last, step); or a range"
        )
    if len(offsets) > _WINDOW_MOST:
        raise ArgumentError(f"window={show(wanted)} has {len(offsets)} records; at most {_WINDOW_MOST}", "bad argument")
    return field, tuple(offsets)


def _offset(window: Any, value: Any) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"window={show(window)}: {show(value)} is not a whole number") from None
    if abs(number) >= 1 << 31:
        raise ArgumentError(f"window={show(window)}: {number} is not between -2^31 and 2^31", "bad argument")
    return number


def _show_window(window: tuple[str, tuple[int, ...], str]) -> list[Any]:
    """For a state: the field, the first and the last offset, how many there are, and the edge."""
    field, offsets, edge = window
    return [field, offsets[0], offsets[-1], len(offsets), edge]


def _state_window(window: Any) -> str:
    return "no windows" if window is None else f"windows {show(window)} (episode, first, last, count, edge)"


def _refuse_whole_images(dataset: Dataset, fields: int, transform: Transform | None) -> None:
    """Images that each have a size of their own make no window, unless a transform makes them alike."""
    made = None if transform is None else transform._for(dataset)[0]
    for i, f in enumerate(dataset.schema):
        if f.kind == "ragged" and f.semantic == "image" and f.name != made and (not fields or fields >> i & 1):
            raise ArgumentError(
                f"window: the images of field {f.name!r} differ in size; transform=libshard.Transform(...) makes them alike, "
                "and fields= leaves them out",
                "bad argument",
            )


def _items(wanted: str | Iterable[str], dataset: Dataset, fields: int, is_mixture: bool) -> tuple[str, ...]:
    """The names of what is an item of a batch, and no field."""
    there = [name for name in PARTS if name != "component" or is_mixture]
    if isinstance(wanted, str) and wanted in ("rows", "all"):
        names = [name for name in there if wanted == "all" or name in ROW_PARTS]
    else:
        names = as_names("items", wanted, "['index', 'valid']")
    for name in names:
        if name not in there:
            raise ArgumentError(
                f"items: {show(name)}; must be 'rows', 'all' or names of {', '.join(there)}", "bad argument"
            )
    taken = [f.name for i, f in enumerate(dataset.schema) if f.name in names and (not fields or fields >> i & 1)]
    if taken:
        rest = tuple(name for name in names if name not in taken)
        raise ArgumentError(
            f"the dataset has a field {taken[0]!r}, and batches have an item of that name: say items={rest!r}, and "
            f"read batch.{taken[0]} for what is the loader's",
            "bad argument",
        )
    return tuple(name for name in PARTS if name in names)


def _item_bits(names: tuple[str, ...]) -> int:
    return sum(1 << PARTS.index(name) for name in names)


def _copied(batch: Batch[Array]) -> Batch[Array]:
    others = batch.item_names  # they have memory of their own
    for name, array in batch.items():
        if name not in others:
            batch[name] = array.copy()
    return batch


def show_device(device: Any) -> str:
    """Also of a ``torch.device``."""
    return device if isinstance(device, str) else str(device) if hasattr(device, "type") else show(device)


def _device(name: str | Device) -> tuple[str, int | None]:
    said = show_device(name)
    kind, _, number = said.partition(":")
    if kind not in ("cpu", "cuda") or (":" in said and not (kind == "cuda" and number.isdecimal())):
        raise ArgumentError(f"device={show(name)}; must be 'cpu', 'cuda' or 'cuda:N'", "bad argument")
    return kind, int(number) if number else None


def _corrupt_most(wanted: SupportsIndex | None) -> int:
    if wanted is None:
        return (1 << 64) - 1
    number = whole("corrupt_most", wanted, 64)
    if number == 0:
        raise ArgumentError("corrupt_most=0; must be 1 or more, or None; on_corrupt='fail' allows none", "bad argument")
    return number


def _pool(wanted: SupportsIndex | str) -> int:
    if isinstance(wanted, str):
        if wanted != "all":
            raise ArgumentError(f"pool_bytes={show(wanted)}; must be a number or 'all'", "bad argument")
        return _POOL_ALL
    return whole("pool_bytes", wanted, 64)


def _no_tail(tail: str | None, drop_last: bool | None) -> int:
    if tail is None and drop_last is None:
        return 0
    raise ArgumentError(
        "tail or drop_last is given; an epoch of a mixture has no tail, as its last batch takes records of the next "
        "epoch: leave both out",
        "bad argument",
    )


def _tail(tail: str | None, drop_last: bool | None, world: int, is_sequential: bool) -> int:
    if tail is not None and drop_last is not None:
        raise ArgumentError("tail and drop_last are both given; give one of them", "bad argument")
    if tail is None and drop_last is not None:
        tail = "drop" if as_flag("drop_last", drop_last) else "keep"
    if tail is None:
        tail = "keep" if world == 1 else "pad" if is_sequential else "drop"
    kind = choice("tail", tail, _TAILS)
    if tail == "keep" and world > 1:
        said = "tail='keep'" if drop_last is None else f"drop_last={drop_last}"
        raise ArgumentError(
            f"{said} with world={world}: a smaller last batch would give ranks different numbers of steps; "
            "say tail='pad' or tail='drop' instead",
            "bad argument",
        )
    return kind
