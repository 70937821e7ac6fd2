# SPDX-License-Identifier: Apache-2.0
"""Of batches: another device, items that are not there, and images where each has a size of its own."""

from __future__ import annotations

from typing import Any, NoReturn

from ._core import Array, Batch
from ._errors import ArgumentError
from ._options import as_flag, as_text, public, show

_SIZE = "_size"  # behind the name of the field
_CHANNELS = 4
ROW_PARTS = ("index", "flags", "valid", "component")  # of a batch: they have a number for each row
PARTS = (*ROW_PARTS, "epoch", "step", "position")


@public("images")
def images(self: Batch[Any], field: str | None = None) -> list[Any]:
    """The images of a batch of whole images: a list of views [height, width, channels].

    A masked row is [0, 0, channels].  If ``channels_last=True`` of a PyTorch loader has made the
    field [batch, channels, pixels], they are [channels, height, width].  ``field``: the name of
    the images; by default that of the only ones.
    """
    name = _only(self) if field is None else as_text("field", field, "the name of images")
    if not _are_whole(self, name):
        what = _what(self, name)
        raise ArgumentError(f"images: {show(name)} has no whole images in this batch: {what}", "bad argument")
    pixels = self[name]
    shape = tuple(pixels.shape)
    turned = shape[1] <= _CHANNELS < shape[2]
    if not turned and shape[2] > _CHANNELS or max(shape[1:]) <= _CHANNELS:
        raise ArgumentError(f"images: {name!r} is {list(shape)}; no axis is that of the channels", "bad argument")
    out = []
    for row, (height, width) in zip(pixels, self[name + _SIZE].tolist()):
        count = height * width
        if count > max(shape[1:]):
            raise ArgumentError(f"images: {height} x {width} pixels do not lie in {list(shape[1:])}", "bad argument")
        if turned:
            out.append(_reshaped(row[:, :count], (shape[1], height, width)))
        else:
            out.append(_reshaped(row[:count], (height, width, shape[2])))
    return out


@public("to")
def to(self: Batch[Any], device: Any, *, non_blocking: bool = False) -> Batch[Any]:
    """Another batch, of tensors on this device, as ``batch.to("cuda")``.

    All that are tensors are moved, attributes such as ``valid`` as well; numbers and lists of texts
    stay as they are.  As with a tensor, what is on the device already is not copied, so it still
    lies in the loader's memory.  ``non_blocking`` is that of PyTorch: for batches of a loader with
    ``pin_memory=True``.  Of one with page-locked ``memory=`` of your own, keep the batch until its
    copies have arrived.
    """
    if isinstance(device, (bool, float)) or device is None or type(device).__name__ in ("dtype", "Tensor"):
        raise TypeError(
            f"device={show(device)}; must be a device, such as 'cuda'; batch['image'].float() changes the type of a field"
        )
    options = {"non_blocking": as_flag("non_blocking", non_blocking)}
    parts = {name: getattr(self, name, None) for name in PARTS if name not in self.item_names}
    moved = [_moved(name, value, device, options) for name, value in (*self.items(), *parts.items())]
    fields, attributes = moved[: len(self)], moved[len(self) :]
    return Batch(dict(zip(self, fields)), **dict(zip(parts, attributes)), items=self.item_names)


def _moved(name: str, value: Any, device: Any, options: dict[str, bool]) -> Any:
    if isinstance(value, Array) or hasattr(value, "__array__") and not hasattr(value, "to"):
        raise TypeError(
            f"batch.to({show(device)}): {name!r} is not a tensor of PyTorch but of type {type(value).__name__}; "
            "libshard.torch.Loader gives tensors, and jax.device_put() moves a batch of JAX"
        )
    return value.to(device, **options) if hasattr(value, "to") else value


def _reshaped(array: Any, shape: tuple[int, ...]) -> Any:
    return array._reshape(shape) if isinstance(array, Array) else array.reshape(shape)


def _are_whole(batch: Batch[Any], name: str) -> bool:
    return name in batch and name + _SIZE in batch and len(batch[name].shape) == 3


def _only(batch: Batch[Any]) -> str:
    names = [name for name in batch if _are_whole(batch, name)]
    if len(names) != 1:
        said = f"the fields {', '.join(names)} have whole images" if names else "no field has whole images"
        raise ArgumentError(f"images: {said}; name one: batch.images('image')", "bad argument")
    return names[0]


def _what(batch: Batch[Any], name: str) -> str:
    if name not in batch:
        return "there is no such field"
    if name + _SIZE not in batch:
        return f"there is no field {name + _SIZE!r}"
    return f"it is {list(batch[name].shape)}"


def missing(self: Batch[Any], name: object) -> NoReturn:
    """``batch[name]``, where there is no such item."""
    raise KeyError(f"no item {show(name)} in this batch, which has {', '.join(map(str, self)) or 'none'}")


Batch.__missing__ = missing  # type: ignore[attr-defined]
Batch.to = to  # type: ignore[method-assign]
Batch.images = images  # type: ignore[method-assign]
