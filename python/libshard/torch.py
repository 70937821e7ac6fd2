# SPDX-License-Identifier: Apache-2.0
"""PyTorch: batches and records as tensors.

    for batch in libshard.torch.Loader("train", batch_size=256, channels_last=True):
        loss = model(batch["image"].float(), batch["label"])

:class:`Loader` is the fast way: batches come from threads in C, and no tensor is copied.
:class:`ShardDataset` is for an ordinary ``DataLoader``, where transforms in Python, samplers or
other datasets are wanted.
"""

from __future__ import annotations

import inspect
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, TypeAlias, Unpack

import torch
from torch.utils import _pytree as pytree
from torch.utils.data import SequentialSampler, default_collate
from torch.utils.data._utils.collate import default_collate_fn_map  # the place that PyTorch's documents name
from torch.utils.dlpack import from_dlpack

from . import _frameworks
from ._concat import Joined, as_source
from ._core import Array, Batch
from ._dataset import Dataset, opened
from ._errors import ArgumentError, DeviceError
from ._loader import LoaderBase, show_device
from ._options import as_flag, as_items, check_function, public, refuse_option, show, stack_level
from ._ranks import Mesh, first_of_mesh, of_mesh
from ._selection import Selection
from ._transform import Transform, as_images, like_images

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._concat import Concat, Zip
    from ._mix import Mixture
    from ._types import LoaderOptions, Path, Tokens

# Of each field that varies: the name of its lengths, the longest shape, the axes that vary.
_Rooms: TypeAlias = dict[str, tuple[str, tuple[int, ...], list[int]]]

# Of a batch: its keys, and the keys that are not fields.
_Known: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]

__all__ = ["Loader", "ShardDataset", "collate"]

_PAGE = 4096  # of a slot


def _flatten(batch: Batch[Any]) -> tuple[list[Any], _Known]:
    return list(batch.values()), (tuple(batch), batch.item_names)


def _flatten_with_keys(batch: Batch[Any]) -> tuple[list[tuple[Any, Any]], _Known]:
    return [(pytree.MappingKey(k), v) for k, v in batch.items()], _flatten(batch)[1]


def _unflatten(values: Iterable[Any], known: _Known) -> Batch[Any]:
    return Batch(dict(zip(known[0], values)), items=known[1])


pytree.register_pytree_node(Batch, _flatten, _unflatten, flatten_with_keys_fn=_flatten_with_keys)


class Loader(LoaderBase[torch.Tensor]):
    """Batches of a dataset as tensors; for the rest as :class:`libshard.Loader`.

    A loop is an epoch, ``len()`` the number of its batches, ``set_epoch`` and ``state_dict`` are
    there.  A batch is a dict of tensors, and a pytree, which has ``index``, ``flags``, ``valid``,
    ``epoch``, ``step``, ``position`` and ``component`` as well.

    Large fields lie in the loader's memory.  It is used for another batch when the last tensor that
    looks into it is gone, in whatever thread; who keeps batches for later must ``clone()``, or say
    ``copy=True``.
    Tensors may be written to: what is in the files does not change.
    """

    _needs_group = True
    _may_use_gpu = torch.version.cuda is not None  # torch.cuda.is_available() would start CUDA
    prefetch_factor = None  #: of worker processes, which a loader has none of

    def __init__(
        self,
        dataset: Dataset | Selection | Concat | Mixture | Zip | Path,
        batch_size: SupportsIndex,
        *,
        channels_last: bool = False,
        rank: SupportsIndex | None = None,
        world: SupportsIndex | None = None,
        epochs: SupportsIndex | None = 1,
        mesh: Mesh | None = None,
        dims: str | Sequence[str] = ("dp",),
        tokens: Tokens | None = "int64",
        **options: Unpack[LoaderOptions],
    ) -> None:
        """
        ``channels_last``: images that are [height, width, channels], as they are stored or as a
        transform makes them, become [N, C, H, W], with the strides of ``torch.channels_last``: the
        same bytes.  With several views they become [N, views, C, H, W].  Whole images, which differ
        in size, become [N, C, pixels], and ``batch.images()`` has them as [C, H, W].

        ``rank``, ``world``: by default those of ``torch.distributed`` if it was initialized, else
        as torchrun sets RANK and WORLD_SIZE; that is a guess if not all processes want rows of
        their own, and raises if there is a process group of fewer than all.

        ``mesh``: a ``DeviceMesh`` to take rank and world from.  ``dims``: its data-parallel
        dimensions; processes that differ in others only get the same rows.

        ``tokens``: the type of token ids, fields whose ``semantic`` is ``"tokens"``: ``"int64"`` or
        ``"int32"``, which embeddings take; None: as they are stored.  A change of type copies them.

        ``device="cuda"``: tensors on the GPU, ready on the stream that was current when the loader
        was made, and given back behind the stream that was current when they were made;
        ``record_stream()`` does nothing for them, so who uses them on a further stream makes one of
        these wait for it.  ``index`` and ``flags`` stay on the CPU.

        ``pin_memory=True``: tensors in page-locked memory of PyTorch, for
        ``.to("cuda", non_blocking=True)``.  Each batch has memory of its own, which PyTorch gives
        out again when the batch has died and PyTorch's copies from it have arrived, on whatever
        stream they are.  So any number of batches may be held.  PyTorch rounds their bytes up, to a
        power of two.  A tensor with gaps between its rows is copied on the CPU first.  Without a
        GPU this warns, and tensors are as without it.

        All other options are those of :class:`libshard.Loader`.
        """
        self.channels_last: bool = as_flag("channels_last", channels_last)
        _check_tokens(tokens)
        if mesh is not None:
            if not hasattr(mesh, "get_coordinate"):
                raise TypeError(f"mesh={show(mesh)}; must be a DeviceMesh of PyTorch")
            if rank is not None or world is not None:
                raise ArgumentError("mesh and rank or world are both given; give one of them", "bad argument")
            rank, world = of_mesh(mesh, dims)
        self._mesh_first = first_of_mesh(mesh, dims) if mesh is not None else None
        self._wide_tokens = tokens == "int64"
        self._page_locked: _PageLocked | None = None
        device = show_device(options.get("device", "cpu"))
        if device.startswith("cuda") and not torch.cuda.is_available():
            raise DeviceError(
                f"device={show(device)}: torch.cuda.is_available() says no; install a PyTorch with CUDA and NVIDIA's"
                " driver, or use device='cpu'",
                "device error",
            )
        if device.startswith("cuda") and options.get("stream") is None:
            with torch.cuda.device(device):
                options["device"] = f"cuda:{torch.cuda.current_device()}"
                options["stream"] = torch.cuda.current_stream().cuda_stream or 1
                super().__init__(dataset, batch_size, rank=rank, world=world, epochs=epochs, **options)
        else:
            super().__init__(dataset, batch_size, rank=rank, world=world, epochs=epochs, **options)
        self._turned = self._hwc() if self.channels_last else frozenset()
        if self.channels_last:
            _warn_of_others(self.dataset, self._turned, options.get("fields"))
        self._types = _types(self.dataset, tokens)
        for beside in () if self.zipped is None else self.zipped._datasets:
            self._types |= _types(beside, tokens)
            if self.channels_last:
                self._turned |= _images(beside)
                _warn_of_others(beside, self._turned, None)
        self._steps: weakref.ref[_Steps] | None = None

    def __getitem__(self, number: object) -> Any:
        raise TypeError(
            "a loader makes batches, and has no samples to take one of; where a framework wants a dataset, give it "
            "libshard.torch.ShardDataset, or return the loader where it asks for a DataLoader: with Hugging Face's "
            "Trainer, from get_train_dataloader()"
        )

    @property
    def sampler(self) -> Loader | _InOrder:
        """For frameworks that set a DataLoader's epoch by it, or ask whether it shuffles."""
        _frameworks.check_overfit(self._is_sequential)
        return _InOrder(self) if self._is_sequential else self

    @property
    def batch_sampler(self) -> _Steps:
        """For ``skip_first_batches()`` of Accelerate and of Hugging Face's Trainer."""
        steps = self._steps and self._steps()
        if not steps:
            steps = _Steps(self)
            self._steps = weakref.ref(steps)
        return steps

    @property
    def collate_fn(self) -> Callable[[list[Any]], Any]:
        return self.batch_sampler.batch

    def _page_locking(self, stream: object) -> tuple[bool, _PageLocked | None]:
        if stream is not None:
            raise ArgumentError(
                "stream is given with device='cpu': PyTorch knows which streams copy a tensor, so leave it out",
                "bad argument",
            )
        if torch.cuda.is_available():
            self._page_locked = _PageLocked()
        else:
            warnings.warn(
                "pin_memory=True: batches stay in pageable memory, because torch.cuda.is_available() says no",
                stacklevel=stack_level(),
            )
        return False, self._page_locked

    def _first_rank(self) -> int | None:
        return super()._first_rank() if self._mesh_first is None else self._mesh_first

    def _hwc(self) -> frozenset[str]:
        """Images whose channels come last in a batch."""
        names, transform = _images(self.dataset), self._of_images
        if transform is None:
            return names
        field = transform._for(self.dataset)[0]
        stored = self.dataset.schema[field]
        turns = transform.layout == "hwc" and (len(stored.shape) == 3 or stored.kind == "ragged")  # else no channels
        return names | {field} if turns else names - {field}

    def _make(self, batch: Batch[Any]) -> Batch[torch.Tensor]:
        for name, value in batch.items():
            if type(value) is Array:
                batch[name] = self._placed(value, _tensor(value, name in self._turned, self._types.get(name)))
        for name in self._attributes:
            array = getattr(batch, name)
            setattr(batch, name, self._placed(array, _tensor(array)))
        return batch

    def _placed(self, array: Array, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor of an array, in memory that PyTorch knows as page-locked if that is wanted."""
        if self._page_locked is None:
            return tensor
        return self._page_locked.place(tensor, self._core.memory(array))


class _PageLocked:
    """Page-locked memory of PyTorch, a piece for each batch.

    PyTorch notes on which streams a piece is copied, by the storage of the tensor that is copied.
    So tensors are views of a piece, and not of memory that came by DLPack.
    """

    def __init__(self) -> None:
        self.is_refused = False

    def __call__(self, count: int) -> tuple[torch.Tensor, int]:
        """Memory of so many bytes, and where they begin: at a page."""
        piece = self._bytes(count)
        if piece.data_ptr() % _PAGE:
            piece = self._bytes(count + _PAGE)
        return piece, -(-piece.data_ptr() // _PAGE) * _PAGE

    def _bytes(self, count: int) -> torch.Tensor:
        if not self.is_refused:
            try:
                return torch.empty(count, dtype=torch.uint8, device="cpu", pin_memory=True)
            except RuntimeError as e:
                self._refuse(count, e)
        # Threads fill it, so it is never on the user's default device.
        return torch.empty(count, dtype=torch.uint8, device="cpu")

    def _refuse(self, count: int, why: RuntimeError) -> None:
        """CUDA says that the system has no more memory to page-lock."""
        self.is_refused = True
        warnings.warn(
            "pin_memory=True: batches are not all in page-locked memory, which makes copies slower: PyTorch "
            f"was refused {count} bytes ({why}). Ask for fewer batches, with prefetch=, or for smaller ones",
            stacklevel=stack_level(),
        )

    def place(self, tensor: torch.Tensor, piece: torch.Tensor | None) -> torch.Tensor:
        """The tensor as a view of the piece that it lies in, or copied if it lies elsewhere."""
        if piece is None or not 0 <= tensor.data_ptr() - piece.data_ptr() < piece.nbytes:
            return self._copy(tensor)
        storage = piece.untyped_storage()
        at = (tensor.data_ptr() - storage.data_ptr()) // tensor.element_size()
        return torch.empty(0, dtype=tensor.dtype, device="cpu").set_(storage, at, tensor.shape, tensor.stride())

    def _copy(self, tensor: torch.Tensor) -> torch.Tensor:
        if not self.is_refused:
            try:
                return tensor.pin_memory()
            except RuntimeError as e:  # the batch is there, and must not be lost
                self._refuse(tensor.nbytes, e)
        return tensor


class _InOrder(SequentialSampler):
    """What frameworks take for the sampler of a loader that does not shuffle."""

    def __init__(self, loader: Loader) -> None:
        super().__init__(loader.dataset)
        self.set_epoch: Callable[[int], None] = loader.set_epoch


class _Steps:
    """Steps of a loader, for a ``DataLoader`` that leaves out the first of them.

    Frameworks make one of a loader's ``dataset``, ``batch_sampler`` and ``collate_fn``.  This
    yields a list of no samples for each step, of which ``batch()`` makes the loader's next batch.
    Steps that were left out before the first one are not read.
    """

    def __init__(self, loader: Loader) -> None:
        self.loader = loader
        self.asked: int = 0
        self.given: int = 0
        self.loop: Iterator[Any] | None = None

    def __len__(self) -> int:
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        self.loader.set_epoch(epoch)

    def __iter__(self) -> Iterator[list[Any]]:
        self.loop = None
        try:
            for self.asked in range(1, len(self) + 1):
                yield []
            if self.loop is not None and self.loader._steps_most is not None:
                next(self.loop, None)  # it may have come to max_steps, and ends; else it would have been left early
        finally:
            self.loop = None  # the loader's loop ends with this one

    def batch(self, samples: list[Any]) -> Any:
        starts = self.loop is None and self.asked > 0
        if samples or not (starts or self.asked == self.given + 1):
            raise ArgumentError(
                "batches were left out between two others, or made of samples; a loader is a share of its rank "
                "already: do not give what skip_first_batches() made of it to prepare(), or to workers",
                "bad argument",
            )
        if self.loop is None:
            self.loader._skip(self.asked - 1)
            self.loop = iter(self.loader)
        self.given = self.asked
        return next(self.loop)


def _refuse_option(name: str) -> NoReturn:
    words = ("batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory", "drop_last",
             "prefetch_factor", "persistent_workers", "worker_init_fn", "generator", "timeout")
    around = f"that is an option of the DataLoader around it: DataLoader(libshard.torch.ShardDataset(ds), 32, {name}=...)"
    known = [*inspect.signature(ShardDataset.__init__).parameters][1:]
    refuse_option("libshard.torch.ShardDataset", name, known, dict.fromkeys(words, around))


class ShardDataset(torch.utils.data.Dataset[Any]):
    """Records by number, for ``torch.utils.data.DataLoader`` with as many workers as one likes,
    forked or spawned.

    A sample is a dict of tensors; scalars are tensors without axes, ragged fields as long as they
    are, strings ``str`` or ``bytes``.  They are copies, and may be written to.  In a batch of a
    ``DataLoader`` ragged fields are as a loader has them: as long as the longest of the dataset,
    with the lengths in ``NAME_length``.

    A ``DataLoader`` asks for whole batches, which are read in one call.  With
    ``collate_fn=libshard.torch.collate`` they are not taken apart and put together again.
    """

    @public("libshard.torch.ShardDataset", lambda _, name: _refuse_option(name))
    def __init__(self, dataset: Dataset | Selection | Concat | Path, *,
                 transform: Callable[[dict[str, Any]], Any] | None = None, channels_last: bool = False,
                 tokens: Tokens | None = "int64") -> None:
        """
        ``dataset``: a :class:`libshard.Dataset`, a :class:`libshard.Selection` of one, a
        :class:`libshard.Concat` of several, or the path of one.  ``transform``: of a sample, what to
        make of it.

        ``channels_last``: images that are stored as [height, width, channels] become [C, H, W]: the
        same bytes.  ``tokens``: the type of token ids, as for :class:`Loader`.
        """
        dataset = as_source(dataset)
        self.selection: Selection | None = dataset if isinstance(dataset, Selection) else None
        if isinstance(dataset, Selection):
            dataset = dataset.dataset
        if transform is not None:
            if isinstance(transform, Transform):
                raise TypeError("transform: a libshard.Transform is for Loader; here it must be a function f(sample)")
            check_function("transform", transform, "sample")
        self.dataset: Dataset = opened("dataset", dataset)
        self.transform: Callable[[dict[str, Any]], Any] | None = transform
        self.channels_last: bool = as_flag("channels_last", channels_last)
        self._turned = _images(self.dataset) if self.channels_last else frozenset()
        if self.channels_last:
            _warn_of_others(self.dataset, self._turned, None)
        self._types = _types(self.dataset, tokens)
        self._kinds = {f.name: f.kind for f in self.dataset.schema}
        # Parts of a concatenation may store their records in different ways.
        self._even = set(self._kinds.values()) == {"tensor"} and not isinstance(self.dataset, Joined)
        self._rooms = _rooms(self.dataset)

    @property
    def classes(self) -> list[str]:
        """Names of the classes; a label is an index of this list."""
        return self.dataset.classes

    def __len__(self) -> int:
        return len(self.dataset if self.selection is None else self.selection)

    def __getitem__(self, number: SupportsIndex) -> Any:
        return self.__getitems__([number])[0]

    def __getitems__(self, numbers: Sequence[SupportsIndex]) -> list[Any]:
        numbers = as_items("numbers", numbers, "numbers of records")
        if self.selection is not None:
            numbers = self.selection.numbers(numbers)
        samples = self._read_rows(numbers) if self._even else [self._read_record(i) for i in numbers]
        if self.transform is None:
            return samples
        try:
            return [self.transform(s) for s in samples]
        except StopIteration as e:  # which would end the DataLoader's loop, as if there were no more samples
            raise RuntimeError("the function that was given as transform raised StopIteration") from e

    def _read_rows(self, numbers: Sequence[SupportsIndex]) -> list[Any]:
        return _Rows(self._tensors(self.dataset[list(numbers)]))

    def _read_record(self, number: SupportsIndex) -> dict[str, Any]:
        """With values that differ in length, one at a time."""
        source, number = self.dataset.place(number) if isinstance(self.dataset, Joined) else (self.dataset, number)
        record = source[number]
        rows = self._tensors(source[[number]])  # for what has axes that do not vary, and scalars
        sample = _Sample(
            (k, rows[k][0] if self._kinds[k] == "tensor" else _tensor(v.copy(), False, self._types.get(k))
             if isinstance(v, Array) else v)
            for k, v in record.items()
        )  # fmt: skip
        sample.rooms = self._rooms
        return sample

    def _tensors(self, fields: dict[str, Array]) -> dict[str, torch.Tensor]:
        tensors = {k: _tensor(a, k in self._turned, self._types.get(k)) for k, a in fields.items()}
        for f in self.dataset.schema:
            if f.semantic == "length" and f.shape == (1,):  # as in batches of a loader
                tensors[f.name] = tensors[f.name][:, 0]
        return tensors


class _Rows(list[dict[str, torch.Tensor]]):
    """Samples that are rows of the same tensors."""

    def __init__(self, fields: dict[str, torch.Tensor]) -> None:
        super().__init__(dict(zip(fields, row)) for row in zip(*(t.unbind() for t in fields.values())))
        self.fields = fields


class _Sample(dict[str, Any]):
    """A record with fields that vary, which knows how long they may be."""

    __slots__ = ("rooms",)
    rooms: _Rooms


def _collate_samples(samples: list[_Sample], *, collate_fn_map: Any = None) -> dict[str, Any]:
    """As :func:`default_collate` does with dicts, but for fields that vary."""
    rooms, batch = samples[0].rooms, {}
    for name in samples[0]:
        values = [sample[name] for sample in samples]
        if all(isinstance(v, list) for v in values):  # of texts, which differ in number
            batch[name] = values
            continue
        if name not in rooms or not all(isinstance(v, torch.Tensor) for v in values):
            batch[name] = default_collate(values)
            continue
        lengths, room, axes = rooms[name]
        others = [s.rooms[name][1] for s in samples if name in s.rooms]  # a ConcatDataset has samples of several
        if all(len(other) == len(room) for other in others):
            room = tuple(max(sizes) if i in axes else room[i] for i, sizes in enumerate(zip(*others)))
        batch[name] = _padded(name, values, room, axes)
        if lengths not in samples[0]:
            sizes = torch.tensor([[v.shape[i] for i in axes] for v in values])
            batch[lengths] = sizes[:, 0] if len(axes) == 1 else sizes
    return batch


def _padded(name: str, values: list[torch.Tensor], room: tuple[int, ...], axes: list[int]) -> torch.Tensor:
    out = values[0].new_zeros((len(values), *room))
    for row, value in zip(out, values):
        fits = value.ndim == len(room) and all(
            have <= most if i in axes else have == most for i, (have, most) in enumerate(zip(value.shape, room))
        )
        if not fits or value.dtype != out.dtype:
            raise ArgumentError(
                f"field {name!r}: a sample of {value.dtype} {list(value.shape)} does not fit {out.dtype} {list(room)}, "
                "the longest of the dataset; give the DataLoader a collate_fn of your own",
                "bad argument",
            )
        row[tuple(slice(n) for n in value.shape)] = value
    return out


default_collate_fn_map[_Sample] = _collate_samples


def collate(samples: Sequence[Any]) -> Any:
    """Samples to a batch, as a ``DataLoader`` does; but rows of one tensor stay together."""
    if isinstance(samples, _Rows):
        return samples.fields
    listed = as_items("samples", samples, "a list of samples")
    if not listed:
        raise ArgumentError("samples: there are none to make a batch of", "bad argument")
    return default_collate(listed)


def _images(dataset: Dataset) -> frozenset[str]:
    return frozenset(
        f.name
        for f in dataset.schema
        if f.semantic == "image" and f.layout == "hwc" and (len(f.shape) == 3 or f.kind == "ragged")
    )


def _warn_of_others(dataset: Dataset, turned: frozenset[str], wanted: str | Iterable[str] | None) -> None:
    """Of fields with the axes of images that stay as they are stored."""
    wanted = [wanted] if isinstance(wanted, str) else wanted
    others = [f for f in like_images(dataset) if f.name not in turned and (wanted is None or f.name in wanted)]
    if others:
        warnings.warn(
            f"channels_last=True: {', '.join(map(str, others))} stays as it is stored, since its semantic is not "
            f"'image'; turn it with .movedim(-1, 1), or {as_images(others)}",
            stacklevel=stack_level(),
        )


def _check_tokens(tokens: object) -> None:
    if tokens is not None and not (isinstance(tokens, str) and tokens in ("int64", "int32")):
        raise ArgumentError(f"tokens={show(tokens)}; must be 'int64', 'int32' or None", "bad argument")


def _types(dataset: Dataset, tokens: str | None) -> dict[str, torch.dtype]:
    """Of fields whose numbers are to be of another type than they have in a batch of arrays."""
    _check_tokens(tokens)
    types = {f.name: torch.int64 for f in dataset.schema if f.semantic == "length"}
    wanted = None if tokens is None else getattr(torch, tokens)
    for f in dataset.schema:
        if f.semantic == "tokens" and wanted is not None and f.dtype != tokens:
            if tokens == "int32" and f.dtype in ("uint32", "int64", "uint64"):
                raise ArgumentError(f"field {f.name!r} has tokens of {f.dtype}: tokens must be 'int64'", "bad argument")
            types[f.name] = wanted
    return types


def _rooms(dataset: Dataset) -> _Rooms:
    fields = dataset._fields()
    return {
        f["name"]: (fields[f["length_field"]]["name"], f["shape"], [i for i in range(8) if f["ragged_axes"] >> i & 1])
        for f in fields
        if f["kind"] == "ragged"
    }


def _tensor(array: Array, turned: bool = False, dtype: torch.dtype | None = None) -> torch.Tensor:
    """``turned``: as [..., C, H, W]."""
    kind, number = array.__dlpack_device__()
    if kind == 1:
        tensor = from_dlpack(array.__dlpack__())
    else:
        tensor = from_dlpack(array.__dlpack__(stream=torch.cuda.current_stream(number).cuda_stream or 1))
    if dtype is not None and tensor.dtype is not dtype:
        tensor = tensor.to(dtype)
    if turned and tensor.ndim < 4:  # pixels of whole images have one axis
        return tensor.movedim(-1, -2)
    return tensor.movedim(-1, -3) if turned else tensor
