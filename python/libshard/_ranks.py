# SPDX-License-Identifier: Apache-2.0
"""Ranks: which share of an epoch this process gets.

A wrong answer trains on wrong data without an error.  So where the answer would be a guess, these
functions raise, and say what to pass.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex
from weakref import WeakKeyDictionary

from ._errors import ArgumentError
from ._options import as_names, show, stack_level, whole

if TYPE_CHECKING:
    from ._core import Array, Batch

_PASS = "give the loader rank= and world="
# What launchers say of the number of processes that they started together.
_LAUNCHERS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")


class Mesh(Protocol):
    """A ``DeviceMesh`` of PyTorch."""

    @property
    def mesh_dim_names(self) -> tuple[str, ...] | None: ...

    def size(self, mesh_dim: int | None = None) -> int: ...

    def get_coordinate(self) -> Sequence[int] | None: ...


def given(rank: SupportsIndex | None, world: SupportsIndex | None) -> tuple[int, int] | None:
    """What the user said; None if that is nothing."""
    if rank is None and world is None:
        return None
    share = 0 if rank is None else whole("rank", rank), 1 if world is None else whole("world", world, least=1)
    if rank is None and share[1] > 1 or world is None:
        raise ArgumentError(
            f"rank={rank} and world={world}: they belong together; give both, or none of them", "bad argument"
        )
    return share


def found() -> tuple[int, int]:
    """As ``torch.distributed`` or ``jax.distributed`` says, if in use, else as torchrun says."""
    distributed = torch_distributed()
    if distributed is None:
        return _of_jax() or _from_environment()
    rank, world = distributed.get_rank(), distributed.get_world_size()
    if world > 1:
        _refuse_smaller_groups(distributed, world)
    elif (_number("WORLD_SIZE") or 1) > 1:
        raise ArgumentError(
            f"torch.distributed has one process, and the environment has WORLD_SIZE={os.environ['WORLD_SIZE']}, so "
            f"each of several processes would take all records; {_PASS}: rank=0, world=1 for all records",
            "bad argument",
        )
    return rank, world


def torch_distributed() -> Any:
    """The module, if this process is in a group; else None.  Does not import PyTorch."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    return distributed if distributed and distributed.is_available() and distributed.is_initialized() else None


def _of_jax() -> tuple[int, int] | None:
    """None if JAX was not told of other processes.  Does not import it."""
    jax = sys.modules.get("jax")
    if jax is None or not jax.distributed.is_initialized():
        return None
    return jax.process_index(), jax.process_count()


def of_mesh(mesh: Mesh, dims: str | Sequence[str]) -> tuple[int, int]:
    """The share of those processes that differ in these dimensions of a mesh only."""
    names, place = mesh.mesh_dim_names or (), mesh.get_coordinate()
    dims = tuple(as_names("dims", dims, "('dp',)"))
    unknown = [d for d in dims if d not in names]
    if unknown or not dims or len(set(dims)) < len(dims):
        raise ArgumentError(
            f"dims={show(dims)}; must be those dimensions of the mesh that have data of their own, each once; "
            f"the mesh has {tuple(names)!r}",
            "bad argument",
        )
    if place is None:
        raise ArgumentError(f"this process is not in the mesh; {_PASS}", "bad argument")
    rank, world = 0, 1
    for i in map(tuple(names).index, dims):
        rank, world = rank * mesh.size(i) + place[i], world * mesh.size(i)
    return rank, world


def first_of_mesh(mesh: Mesh, dims: str | Sequence[str]) -> int | None:
    """The rank in ``torch.distributed`` that has share 0 of those that :func:`of_mesh` counts."""
    names, place = mesh.mesh_dim_names or (), mesh.get_coordinate()
    ranks = getattr(mesh, "mesh", None)  # a tensor of ranks
    if ranks is None or place is None:
        return None
    chosen = (dims,) if isinstance(dims, str) else tuple(dims)
    return int(ranks[tuple(0 if name in chosen else at for name, at in zip(names, place))])


def check_unchanged(made_for: tuple[int, int], needs_group: bool) -> None:
    """Raise if a loader of :func:`found` would not be made for this share any more."""
    now = found()
    if now != made_for:
        raise ArgumentError(
            f"the loader was made for rank {made_for[0]} of {made_for[1]}, but this is rank {now[0]} of {now[1]} now; "
            f"make it after torch.distributed.init_process_group() and before its end, or {_PASS}",
            "bad argument",
        )
    if needs_group and now[1] > 1 and torch_distributed() is None:
        raise ArgumentError(
            f"RANK and WORLD_SIZE say that this is rank {now[0]} of {now[1]}, but torch.distributed is not initialized,"
            f" or not any more; {_PASS}: rank=0, world=1 for all records",
            "bad argument",
        )


def _from_environment() -> tuple[int, int]:
    rank, world, local = _number("RANK"), _number("WORLD_SIZE"), _number("LOCAL_RANK")
    if rank is None and ((world or 1) > 1 or local):
        said = ", ".join(f"{k}={v}" for k, v in (("WORLD_SIZE", world), ("LOCAL_RANK", local)) if v is not None)
        _refuse(f"the environment has {said} and no RANK, so this may be any of several processes")
    if rank is not None and world is None:
        _refuse(f"the environment has RANK={rank} and no WORLD_SIZE")
    if rank is None and world is None:
        for name in _LAUNCHERS:
            if (_number(name) or 1) > 1:
                _refuse(f"{name}={os.environ[name]}, so this is one of several processes, but RANK is not set")
    return rank or 0, world if world is not None else 1


def _refuse(why: str) -> None:
    lightning = "lightning" in sys.modules or "pytorch_lightning" in sys.modules
    there = "with Lightning in train_dataloader(), " if lightning else ""
    raise ArgumentError(
        f"{why}; make the loader {there}after torch.distributed.init_process_group(), or {_PASS}", "bad argument"
    )


def _number(name: str) -> int | None:
    text = os.environ.get(name, "")
    if not text or (text.isascii() and text.isdigit()):  # int() would take " +1_0 ", too
        return int(text) if text else None
    raise ArgumentError(f"the environment has {name}={text!r}, which is not a whole number; {_PASS}", "bad argument")


def _refuse_smaller_groups(distributed: Any, world: int) -> None:
    """Some ranks are then no data-parallel ones, and want the same rows as others."""
    for group in distributed.distributed_c10d._world.pg_map:
        if group.size() < world:
            raise ArgumentError(
                f"torch.distributed has a process group of {group.size()} of the {world} processes "
                f"({getattr(group, 'group_desc', 'no name')}), so they may not all want rows of their own; {_PASS}, "
                "or to libshard.torch.Loader mesh= and dims=",
                "bad argument",
            )


# ---- do the ranks agree? ----

_PATIENCE_SECONDS = 300  # at the end of a loop, for a rank that has not begun it
_WORD_SECONDS = 10  # of these, before a user is told
_HINTS = {
    "dataset": "open the same dataset on all ranks",
    "seed": "give all ranks the same seed",
    "shuffle": "give all ranks the same shuffle",
    "batch_size": "give all ranks the same batch_size",
    "batches of an epoch": "give all ranks the same tail",
    "epoch": "did a rank take a batch before the loop, or load another state? Look at batches with a loader of its own",
}
_HINTS["position"] = _HINTS["epoch"]
_ALONE = "a loop of one rank alone needs a loader with rank=0 and world=1"


class Loops:
    """The loops over loaders that a group of ranks goes through together, one after the other.

    At the second batch of a loop the group's first rank writes a line to the store of
    ``torch.distributed``: its place, and what makes the order.  The others hold theirs against it.
    Nobody waits before the end of a loop, and nothing is a collective.  A loop that is left after
    one batch does not count: it is a look at a batch, which one rank may take.
    """

    def __init__(self, store: Any, name: str, first: int, is_first: bool) -> None:
        self.store, self.name, self.first, self.is_first = store, name, first, is_first
        self.count = self.taken = 0  # loops, and batches in them
        self.open: list[tuple[str, dict[str, Any]]] = []  # lines of ours, and the keys of what they must be equal to
        self.pause = self.asked = 0.0
        self.is_off = self.has_told = False

    def begin(self, line: dict[str, Any]) -> None:
        key = f"{self.name}/{self.count}"
        line = {"taken": self.taken, **line}
        self.count += 1
        self.pause = 0.0
        if self.is_first:
            self._try(lambda: self.store.set(key, json.dumps(line)))
        else:
            self.open.append((key, line))

    def ask(self, *, patient: bool = False) -> None:
        """Raise if the first rank was elsewhere.  If patient, wait until it says where it is."""
        start = time.monotonic()
        while self.open and not self.is_off and (patient or time.monotonic() >= self.asked + self.pause):
            key, line = self.open[0]
            if self._try(lambda: self.store.check([key])):  # noqa: B023
                self.open.pop(0)
                self._compare(line, json.loads(self._try(lambda: self.store.get(key)) or "{}"))  # noqa: B023
                continue
            self.asked, self.pause = time.monotonic(), min(0.5, max(0.001, 2 * self.pause))
            if not patient:
                return
            missing = (
                f"rank {self.first} has not come to the second batch of the loop that ends here, in epoch "
                f"{line['epoch']}"
            )
            if self.asked >= start + _PATIENCE_SECONDS:
                self._give_up(f"{missing}, and was waited for {_PATIENCE_SECONDS} s")
                return
            if self.asked >= start + _WORD_SECONDS and not self.has_told:
                self.has_told = True
                warnings.warn(
                    f"rank {torch_distributed().get_rank()} waits for rank {self.first}: {missing}; after "
                    f"{_PATIENCE_SECONDS} s it goes on without; {_ALONE}",
                    stacklevel=stack_level(),
                )
            time.sleep(self.pause)

    def _compare(self, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
        differ = [name for name in ours if theirs and ours[name] != theirs[name]]
        if "taken" in differ:  # so these are not the same loop
            self._give_up(
                f"before this loop, which is in epoch {ours['epoch']}, this rank took {ours['taken']}"
                f" batches, and rank {self.first} took {theirs['taken']} before its own, which is in "
                f"epoch {theirs['epoch']}"
            )
        elif differ:
            there = f"on rank {self.first}"
            said = ", ".join(f"{n} is {ours[n]} here and {theirs[n]} {there}" for n in differ[:3])
            raise ArgumentError(
                f"rank {torch_distributed().get_rank()} and rank {self.first} disagree: {said}; so records would come "
                f"twice or not at all: {_HINTS[differ[0]]}; {_ALONE}",
                "bad argument",
            )

    def _give_up(self, why: str) -> None:
        self.is_off = True
        self.open.clear()
        warnings.warn(
            f"{why}; so from here on nothing says that the ranks are in the same epoch and order: {_ALONE}, and "
            "check_ranks=False checks nothing",
            stacklevel=stack_level(),
        )

    def _try(self, call: Callable[[], Any]) -> Any:
        """What the store says; it is gone when its process has ended."""
        try:
            return call()
        except RuntimeError as e:
            if not self.is_off:
                self._give_up(f"the store of torch.distributed failed: {str(e).splitlines()[0]}")
            return None


_loops: WeakKeyDictionary[Any, dict[tuple[int, int], Loops]] = WeakKeyDictionary()  # of each default group
_group_count = 0


def loops_of(first: int, world: int) -> Loops | None:
    """Those of the ranks that share a loader with this one; None if nobody can be asked."""
    global _group_count
    distributed = torch_distributed()
    if distributed is None or distributed.get_backend() == "fake":
        return None
    group = distributed.group.WORLD
    if group not in _loops:
        _loops[group] = {}
        _group_count += 1
    known = _loops[group]
    if (first, world) not in known:
        store = distributed.distributed_c10d._get_default_store()
        name = f"libshard/{_group_count}/{first}/{world}"
        known[first, world] = Loops(store, name, first, distributed.get_rank() == first)
    return known[first, world]


class Watched:
    """The batches of a loop, whose place is compared with that of other ranks.

    ``line`` says of the first batch where the loop began.  In another thread than the loader's the
    order of loops is up to chance, so nothing is compared.
    """

    def __init__(
        self, batches: Iterator[Batch[Array]], loops: Loops, thread: int, line: Callable[[Batch[Array]], dict[str, Any]]
    ) -> None:
        self._batches, self._loops, self._thread, self._line = batches, loops, thread, line
        self._taken = 0
        self._is_on = True
        self._began: dict[str, Any] = {}

    def __iter__(self) -> Iterator[Batch[Array]]:
        return self

    def __next__(self) -> Batch[Array]:
        try:
            batch = next(self._batches)
        except StopIteration:
            if self._is_on:
                if self._taken == 1:
                    self._begin()
                self._loops.ask(patient=True)
            raise
        if self._is_on:
            self._taken += 1
            if self._taken == 1:
                self._is_on = threading.get_ident() == self._thread
                self._began = self._line(batch)
            elif self._taken == 2:
                self._begin()
            if self._taken > 1:
                self._loops.taken += 1
            self._loops.ask()
        return batch

    def _begin(self) -> None:
        self._loops.begin(self._began)
        self._loops.taken += 1
