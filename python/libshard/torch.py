# SPDX-License-Identifier: Apache-2.0
"""PyTorch: batches and records as tensors.

    for batch in libshard.torch.Loader("train", batch_size=256, channels_last=True):
        loss = model(batch["image"].float(), batch["label"])

:class:`Loader` is the fast way: batches come from threads in C, and no tensor is copied.
:class:`ShardDataset` is for an ordinary ``DataLoader``, where transforms in Python, samplers or
other datasets are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, Unpack

import torch
from torch.utils.data import default_collate
from torch.utils.dlpack import from_dlpack

from ._core import Batch
from ._dataset import Dataset
from ._dataset import open as _open_dataset
from ._errors import ArgumentError, DeviceError
from ._loader import LoaderBase
from ._ranks import Mesh, of_mesh
from ._selection import Selection

if TYPE_CHECKING:
    from ._core import Array
    from ._mix import Mixture
    from ._types import LoaderOptions, Path

__all__ = ["Loader", "ShardDataset", "collate"]


class Loader(LoaderBase[torch.Tensor]):
    """Batches of a dataset as tensors; for the rest as :class:`libshard.Loader`.

    A loop is an epoch, ``len()`` the number of its batches, ``set_epoch`` and ``state_dict`` are
    there.  A batch is a dict of tensors, which has ``index``, ``flags``, ``epoch``, ``step``,
    ``position`` and ``component`` as well.

    Large fields lie in the loader's memory.  It is used for another batch when the last tensor that
    looks into it is gone, in whatever thread; who keeps batches for later must ``clone()``, or say
    ``copy=True``.
    Tensors may be written to: what is in the files does not change.
    """

    _needs_group = True

    def __init__(
        self,
        dataset: Dataset | Selection | Mixture | Path,
        batch_size: SupportsIndex,
        *,
        channels_last: bool = False,
        rank: SupportsIndex | None = None,
        world: SupportsIndex | None = None,
        mesh: Mesh | None = None,
        dims: str | Sequence[str] = ("dp",),
        **options: Unpack[LoaderOptions],
    ) -> None:
        """
        ``channels_last``: images that are stored as [height, width, channels] become [N, C, H, W],
        with the strides of ``torch.channels_last``: the same bytes.

        ``rank``, ``world``: by default those of ``torch.distributed`` if it was initialized, else
        as torchrun sets RANK and WORLD_SIZE; that is a guess if not all processes want rows of
        their own, and raises if there is a process group of fewer than all.

        ``mesh``: a ``DeviceMesh`` to take rank and world from.  ``dims``: its data-parallel
        dimensions; processes that differ in others only get the same rows.

        ``device="cuda"``: tensors on the GPU, ready on the stream that was current when the loader
        was made, and given back behind the stream that was current when they were made;
        ``record_stream()`` does nothing for them, so who uses them on a further stream makes one of
        these wait for it.  ``index`` and ``flags`` stay on the CPU.

        All other options are those of :class:`libshard.Loader`.  Of these,
        ``memory=torch.empty(loader.ring_bytes, dtype=torch.uint8, pin_memory=True).numpy()`` has
        batches in page-locked memory; then keep a batch until what was copied with
        ``non_blocking=True`` has arrived.
        """
        if mesh is not None:
            if rank is not None or world is not None:
                raise ArgumentError("mesh and rank or world are both given; give one of them", "bad argument")
            rank, world = of_mesh(mesh, dims)
        device = str(options.get("device", "cpu"))
        if device.startswith("cuda") and not torch.cuda.is_available():
            raise DeviceError(
                f"device={device!r}: torch.cuda.is_available() says no; install a PyTorch with CUDA and NVIDIA's"
                " driver, or use device='cpu'",
                "device error",
            )
        if device.startswith("cuda") and options.get("stream") is None:
            with torch.cuda.device(device):
                options["device"] = f"cuda:{torch.cuda.current_device()}"
                options["stream"] = torch.cuda.current_stream().cuda_stream or 1
                super().__init__(dataset, batch_size, rank=rank, world=world, **options)
        else:
            super().__init__(dataset, batch_size, rank=rank, world=world, **options)
        self.channels_last = channels_last
        self._turned = _images(self.dataset) if channels_last else frozenset()

    def _make(self, batch: Batch[Any]) -> Batch[torch.Tensor]:
        for name, array in batch.items():
            batch[name] = _tensor(array, name in self._turned)
        batch.index, batch.flags = _tensor(batch.index), _tensor(batch.flags)
        batch.component = None if batch.component is None else _tensor(batch.component)
        return batch


class ShardDataset(torch.utils.data.Dataset[Any]):
    """Records by number, for ``torch.utils.data.DataLoader`` with as many workers as one likes,
    forked or spawned.

    A sample is a dict of tensors, of the dtype that is stored; scalars are tensors without axes,
    ragged fields as long as they are, strings ``str`` or ``bytes``.  They are copies, and may be
    written to.

    A ``DataLoader`` asks for whole batches, which are read in one call.  With
    ``collate_fn=libshard.torch.collate`` they are not taken apart and put together again.
    """

    def __init__(self, dataset: Dataset | Selection | Path, *,
                 transform: Callable[[dict[str, Any]], Any] | None = None, channels_last: bool = False) -> None:
        """
        ``dataset``: a :class:`libshard.Dataset`, a :class:`libshard.Selection` of one, or the path
        of one.  ``transform``: of a sample, what to make of it.

        ``channels_last``: images that are stored as [height, width, channels] become [C, H, W]: the
        same bytes.
        """
        self.selection = dataset if isinstance(dataset, Selection) else None
        if isinstance(dataset, Selection):
            dataset = dataset.dataset
        self.dataset = dataset if isinstance(dataset, Dataset) else _open_dataset(dataset)
        self.transform = transform
        self.channels_last = channels_last
        self._turned = _images(self.dataset) if channels_last else frozenset()
        self._even = all(f.kind == "tensor" for f in self.dataset.schema)

    @property
    def classes(self) -> list[str]:
        """Names of the classes; a label is an index of this list."""
        return self.dataset.classes

    def __len__(self) -> int:
        return len(self.dataset if self.selection is None else self.selection)

    def __getitem__(self, number: SupportsIndex) -> Any:
        return self.__getitems__([number])[0]

    def __getitems__(self, numbers: Sequence[SupportsIndex]) -> list[Any]:
        if self.selection is not None:
            numbers = self.selection.numbers(numbers)
        samples = self._read_rows(numbers) if self._even else [self._read_record(i) for i in numbers]
        return samples if self.transform is None else [self.transform(s) for s in samples]

    def _read_rows(self, numbers: Sequence[SupportsIndex]) -> list[Any]:
        return _Rows(_tensors(self.dataset[list(numbers)], self._turned))

    def _read_record(self, number: SupportsIndex) -> dict[str, Any]:
        """With values that differ in length, one at a time."""
        record = self.dataset[number]
        rows = _tensors(self.dataset[[number]], self._turned)  # for what has axes that do not vary, and scalars
        kinds = {f.name: f.kind for f in self.dataset.schema}
        return {
            k: rows[k][0] if kinds[k] == "tensor" else _tensor(v.copy()) if hasattr(v, "copy") else v
            for k, v in record.items()
        }


class _Rows(list[dict[str, torch.Tensor]]):
    """Samples that are rows of the same tensors."""

    def __init__(self, fields: dict[str, torch.Tensor]) -> None:
        super().__init__(dict(zip(fields, row)) for row in zip(*(t.unbind() for t in fields.values())))
        self.fields = fields


def collate(samples: Sequence[Any]) -> Any:
    """Samples to a batch, as a ``DataLoader`` does; but rows of one tensor stay together."""
    return samples.fields if isinstance(samples, _Rows) else default_collate(samples)  # type: ignore[arg-type]


def _images(dataset: Dataset) -> frozenset[str]:
    return frozenset(
        f.name for f in dataset.schema if f.semantic == "image" and f.layout == "hwc" and len(f.shape) == 3
    )


def _tensor(array: Array, turned: bool = False) -> torch.Tensor:
    """``turned``: as [N, C, H, W]."""
    kind, number = array.__dlpack_device__()
    if kind == 1:
        tensor = from_dlpack(array.__dlpack__())
    else:
        tensor = from_dlpack(array.__dlpack__(stream=torch.cuda.current_stream(number).cuda_stream or 1))
    return tensor.permute(0, 3, 1, 2) if turned else tensor


def _tensors(fields: dict[str, Array], turned: frozenset[str]) -> dict[str, torch.Tensor]:
    """Those in ``turned`` as [N, C, H, W]."""
    return {k: _tensor(a, k in turned) for k, a in fields.items()}
