# SPDX-License-Identifier: Apache-2.0
"""JAX: batches as arrays.

    for batch in libshard.jax.Loader("train", batch_size=256):
        state = step(state, batch["image"], batch["label"])
"""

from __future__ import annotations

import gc
import time
import weakref
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, Unpack

import jax
import numpy

from ._core import Array, Batch
from ._errors import ArgumentError
from ._loader import LoaderBase, show_device
from ._options import show

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ._concat import Concat, Zip
    from ._dataset import Dataset
    from ._mix import Mixture
    from ._selection import Selection
    from ._types import LoaderOptions, Path

__all__ = ["Loader"]

_Known: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]  # of a batch: its keys, and the keys that are not fields


def _flatten(batch: Batch[Any]) -> tuple[tuple[Any, ...], _Known]:
    return tuple(batch.values()), (tuple(batch), batch.item_names)


def _flatten_with_keys(batch: Batch[Any]) -> tuple[tuple[tuple[Any, Any], ...], _Known]:
    return tuple((jax.tree_util.DictKey(k), v) for k, v in batch.items()), _flatten(batch)[1]


def _unflatten(known: _Known, values: Iterable[Any]) -> Batch[Any]:
    return Batch(dict(zip(known[0], values)), items=known[1])


jax.tree_util.register_pytree_with_keys(Batch, _flatten_with_keys, _unflatten, _flatten)

# Without jax_enable_x64, by the dtype of a field: that of JAX, its greatest and its least number.
_NARROWED = {
    "int64": ("int32", 2**31 - 1, -(2**31)),
    "uint64": ("uint32", 2**32 - 1, 0),
    "float64": ("float32", numpy.finfo("f4").max.item(), numpy.finfo("f4").min.item()),
}

_PATIENCE_SECONDS = 120  # for computations that still read a batch


class Loader(LoaderBase["jax.Array"]):
    """Batches of a dataset as arrays of JAX; for the rest as :class:`libshard.Loader`.

    A batch is a dict of arrays in the memory of the CPU, which has ``index``, ``flags``, ``epoch``,
    ``step``, ``position`` and ``component`` as well.  Large fields are not copied where they are
    dense and JAX takes their alignment, else they are.  Without ``jax_enable_x64`` JAX makes 64-bit
    numbers 32-bit ones: a whole number that does not fit, or a float64 that would become infinite,
    raises :class:`ArgumentError` with the field, the value and the record.

    A batch is a pytree: ``jax.jit``, ``jax.tree.map`` and ``jax.device_put`` take it as it is, and
    give back a batch of its items.

    JAX computes while Python goes on.  A batch whose computation has not ended is still in use: if
    more than ``max_held`` are, the next one waits for them.  Arrays of batches that Python keeps
    are another thing: of these more than ``max_held`` are an error at once.
    """

    _may_use_gpu = False

    def __init__(
        self,
        dataset: Dataset | Selection | Concat | Mixture | Zip | Path,
        batch_size: SupportsIndex,
        *,
        sharding: Any = None,
        rank: SupportsIndex | None = None,
        world: SupportsIndex | None = None,
        epochs: SupportsIndex | None = 1,
        **options: Unpack[LoaderOptions],
    ) -> None:
        """
        ``sharding``: a device or a ``jax.sharding.Sharding`` that every field is put to, such as
        one that spreads the first axis; by default nothing is moved.  Over devices of several
        processes, an array has the rows of all of them.

        ``rank``, ``world``: by default JAX's own number of this process and of all, if these are
        several, else as for :class:`libshard.Loader`.

        All other options are those of :class:`libshard.Loader`.
        """
        if show_device(options.get("device", "cpu")) != "cpu":
            raise ArgumentError("device must be 'cpu' for JAX; sharding= puts batches on devices", "bad argument")
        if options.get("pin_memory"):
            raise ArgumentError("pin_memory must be False for JAX, which copies to GPUs by itself", "bad argument")
        if options.get("transform_ahead"):
            raise ArgumentError("transform_ahead must be 0 for JAX, which computes while Python goes on", "bad argument")
        if rank is None and world is None and jax.process_count() > 1:
            rank, world = jax.process_index(), jax.process_count()
        super().__init__(dataset, batch_size, rank=rank, world=world, epochs=epochs, **options)
        self.sharding = sharding
        self._max_held = int(options.get("max_held", 2))
        self._delivered: list[list[weakref.ref[jax.Array]]] = []  # of each batch, what lies in the loader's memory

    def _epoch(self) -> Iterator[Batch[jax.Array]]:
        return map(self._make, self._patiently(self._batches()))

    def _patiently(self, batches: Iterator[Batch[Array]]) -> Iterator[Batch[Array]]:
        while True:
            if self._core.held() > self._max_held:
                self._wait_for_computations()
            batch = next(batches, None)
            if batch is None:
                return
            yield batch
            del batch

    def _make(self, batch: Batch[Any]) -> Batch[jax.Array]:
        arrays = {name: value for name, value in batch.items() if type(value) is Array}
        lent = {name: array.data_ptr for name, array in arrays.items() if self._core.lent(array)}
        if not jax.config.jax_enable_x64:
            _refuse_wide(batch, {name: getattr(batch, name) for name in self._attributes} | arrays)
        ours = {name: _array(array) for name, array in arrays.items()}
        batch.update(ours if self.sharding is None else self._put(ours))
        for name in self._attributes:
            setattr(batch, name, _array(getattr(batch, name)))
        self._kept()
        self._delivered.append([weakref.ref(batch[name]) for name, at in lent.items() if _is_at(batch[name], at)])
        return batch

    def _put(self, arrays: dict[str, jax.Array]) -> dict[str, jax.Array]:
        """Where ``sharding`` says; of several processes, each has its rows of the step's array."""
        if getattr(self.sharding, "is_fully_addressable", True):
            return jax.device_put(arrays, self.sharding)
        return {name: jax.make_array_from_process_local_data(self.sharding, a) for name, a in arrays.items()}

    def _wait_for_computations(self) -> None:
        """If it is Python that holds batches, waiting does not help, and the core says so."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while self._core.held() > self._max_held and time.monotonic() < end:
            if self._kept() > self._max_held:
                gc.collect()  # of these, a circle of objects may hold some that nobody needs
                if self._kept() > self._max_held:
                    return
            time.sleep(0.0002)

    def _kept(self) -> int:
        """Batches of which Python has an array."""
        self._delivered = [arrays for arrays in self._delivered if any(a() is not None for a in arrays)]
        return len(self._delivered)


def _refuse_wide(batch: Batch[Any], arrays: dict[str, Array]) -> None:
    """JAX would say nothing, and make other numbers of these."""
    for name, array in arrays.items():
        if array.dtype not in _NARROWED or not array.size:
            continue
        narrow, most, least = _NARROWED[array.dtype]
        values = numpy.asarray(array)
        # Both pass over NaN, and read no number twice.
        if least <= numpy.fmin.reduce(values, None) and numpy.fmax.reduce(values, None) <= most:
            continue
        with numpy.errstate(over="ignore", invalid="ignore"):
            wrong = (values < least) | (values > most)
            if narrow == "float32":  # one that is infinite stays so, and one just above the greatest is rounded to it
                wrong = numpy.isinf(values.astype("f4")) & numpy.isfinite(values)
        if not wrong.any():
            continue
        place = tuple(int(i[0]) for i in wrong.nonzero())
        record = numpy.asarray(batch.index)[place[: batch.index.ndim]].item()
        becomes = "would become infinite" if narrow == "float32" else "does not fit"
        raise ArgumentError(
            f"field {show(name)}: {values[place].item()!r} in record {record} {becomes} in {narrow}, which JAX makes of "
            f"{array.dtype} without jax_enable_x64; say jax.config.update('jax_enable_x64', True) before all else, leave the "
            f"field out with fields=[...], or pack it as numbers that fit",
            "bad argument",
        )


def _array(array: Array) -> jax.Array:
    dense = all(want == have or n < 2 for want, have, n in zip(_dense_strides(array), array.strides, array.shape))
    return jax.dlpack.from_dlpack(array if dense else array.copy())


def _is_at(array: jax.Array, address: int) -> bool:
    """Is this the memory of the array?  What lies on several devices, or on a GPU, is a copy."""
    return {d.platform for d in array.devices()} == {"cpu"} and len(array.devices()) == 1 and (
        array.unsafe_buffer_pointer() == address
    )


def _dense_strides(array: Array) -> list[int]:
    strides, step = [], array.itemsize
    for n in reversed(array.shape):
        strides.append(step)
        step *= n
    return strides[::-1]
