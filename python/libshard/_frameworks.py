# SPDX-License-Identifier: Apache-2.0
"""Frameworks: what those around a loop do to its batches, and do not say.

Each of them would train on wrong data without an error.  None is imported here: what is not loaded
is not in use.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import TYPE_CHECKING

from ._errors import ArgumentError

if TYPE_CHECKING:
    from ._description import Schema

_LIGHTNING = ("lightning.pytorch.", "pytorch_lightning.")


def check_loop(world: int, sequential: bool) -> None:
    """Raise if a loop that begins now would deliver records twice, too few, or wrong ones."""
    _check_worker()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if world > 1 and module == "accelerate.data_loader":
            raise ArgumentError(
                f"accelerate shares out the batches of this loop, and the loader is one share of {world} already; "
                "use the loader without prepare(), or open it with rank=0 and world=1",
                "bad argument",
            )
        frame = frame.f_back
    check_overfit(sequential)


def check_overfit(sequential: bool) -> None:
    """Raise if Lightning wants one epoch to be like another, and this loader shuffles."""
    frame: FrameType | None = None if sequential else sys._getframe(1)
    while frame is not None:
        if (frame.f_globals.get("__name__") or "").startswith(_LIGHTNING):
            _refuse_overfit(frame)
        frame = frame.f_back


def check_records(schema: Schema) -> None:
    """:func:`check_collate`, of records that have arrays."""
    arrays = [f.name for f in schema if f.kind != "string" and f.shape and f.semantic != "length"]
    if arrays:
        check_collate(f"arrays of libshard, such as field {arrays[0]!r} of a record,")


def check_collate(kinds: str) -> None:
    """Raise if a DataLoader that is about to collate samples with ``default_collate`` asks for records."""
    data = sys.modules.get("torch.utils.data")
    frame: FrameType | None = sys._getframe(1) if data else None
    while frame is not None and frame.f_globals.get("__name__") != "torch.utils.data._utils.fetch":
        frame = frame.f_back
    fetcher = frame.f_locals.get("self") if frame else None
    if data and getattr(fetcher, "collate_fn", None) is data.default_collate:
        raise TypeError(
            f"{kinds} are not tensors: give the DataLoader libshard.torch.ShardDataset(ds), or use "
            "libshard.torch.Loader(ds, 256), which makes batches itself"
        )


def _check_worker() -> None:
    data = sys.modules.get("torch.utils.data")
    info = data.get_worker_info() if data else None
    if info is not None and info.num_workers > 1:
        raise ArgumentError(
            f"this is worker {info.id} of {info.num_workers} of a DataLoader, and each of them would deliver every "
            "record; use num_workers=0: the loader has threads of its own",
            "bad argument",
        )


def _refuse_overfit(frame: FrameType) -> None:
    trainer = getattr(frame.f_locals.get("self"), "trainer", None)
    wanted = getattr(trainer, "overfit_batches", 0)
    if wanted:
        raise ArgumentError(
            f"overfit_batches={wanted} wants the same batches in every epoch, and this loader shuffles again for each; "
            "open it with shuffle=False",
            "bad argument",
        )
