# SPDX-License-Identifier: Apache-2.0
"""Grain: batches as a ``grain.IterDataset``, for pipelines of Grain and for what is built on them.

    batches = libshard.grain.IterDataset("train", batch_size=256, seed=1)
    for batch in batches.map(augment):
        state = step(state, batch["image"], batch["label"])

A :class:`libshard.Dataset` is a ``RandomAccessDataSource`` as it is:
``grain.MapDataset.source(libshard.open("train"))``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex, Unpack

import grain
import numpy as np

from ._errors import ArgumentError
from ._loader import Loader
from ._options import whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._concat import Concat, Zip
    from ._dataset import Dataset
    from ._mix import Mixture
    from ._selection import Selection
    from ._types import LoaderOptions, Path

__all__ = ["IterDataset"]


class IterDataset(grain.IterDataset[dict[str, np.ndarray[Any, Any]]]):
    """Batches of a :class:`libshard.Loader`, each a dict of NumPy arrays with memory of its own, or what a
    function that is given as ``transform`` makes of it.

    Its threads read ahead, so ``mp_prefetch`` is not needed, and raises.  The state of an iterator
    is one place in the order: it may be set on any number of ranks, with any batch size.
    """

    def __init__(
        self,
        dataset: Dataset | Selection | Concat | Mixture | Zip | Path,
        batch_size: SupportsIndex,
        *,
        epochs: SupportsIndex | None = None,
        rank: SupportsIndex | None = None,
        world: SupportsIndex | None = None,
        **options: Unpack[LoaderOptions],
    ) -> None:
        """
        ``epochs``: how many an iterator goes through; None for no end.  All other options are those
        of :class:`libshard.Loader`.  Each iterator opens a loader of its own.
        """
        super().__init__()
        if options.get("max_steps") is not None:
            raise ArgumentError("max_steps is not for Grain: epochs= ends an iterator, or islice()", "bad argument")
        self._source, self._batch_size = dataset, batch_size
        self._options: dict[str, Any] = {**options, "rank": rank, "world": world, "copy": True}
        self._epochs = None if epochs is None else whole("epochs", epochs, 64)
        with self._open() as loader:
            self.batches: int = len(loader)  #: of an epoch

    def _open(self) -> Loader:
        return Loader(self._source, self._batch_size, **self._options)

    def __iter__(self) -> _Iterator:
        return _Iterator(self._open(), self._epochs)


class _Iterator(grain.DatasetIterator[dict[str, np.ndarray[Any, Any]]]):
    def __init__(self, loader: Loader, epochs: int | None) -> None:
        super().__init__()
        self._loader, self._epochs = loader, epochs
        self._loop: Iterator[Any] = iter(())

    def __next__(self) -> Any:
        while True:
            for batch in self._loop:
                if not isinstance(batch, dict):  # a function made it
                    return batch
                return {name: np.asarray(array) for name, array in batch.items()}
            if self._epochs is not None and self._loader.epoch >= self._epochs:
                raise StopIteration
            self._loop = iter(self._loader)

    def get_state(self) -> dict[str, Any]:
        return self._loader.state_dict()

    def set_state(self, state: dict[str, Any]) -> None:
        self._loader.load_state_dict(state)
        self._loop = iter(())

    def close(self) -> None:
        super().close()
        self._loader.close()
