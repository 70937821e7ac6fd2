# SPDX-License-Identifier: Apache-2.0
"""Ranks: which share of an epoch this process gets.

A wrong answer trains on wrong data without an error.  So where the answer would be a guess, these
functions raise, and say what to pass.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, Protocol, SupportsIndex

from ._errors import ArgumentError
from ._options import as_names, show, whole

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
    raise ArgumentError(
        f"{why}; make the loader after torch.distributed.init_process_group(), or {_PASS}", "bad argument"
    )


def _number(name: str) -> int | None:
    text = os.environ.get(name, "")
    try:
        return int(text) if text else None
    except ValueError:
        said = f"the environment has {name}={text!r}, which is not a number"
        raise ArgumentError(f"{said}; {_PASS}", "bad argument") from None


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
