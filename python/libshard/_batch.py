# SPDX-License-Identifier: Apache-2.0
"""Of batches: items that are not there, and images where each has a size of its own."""

from __future__ import annotations

from typing import Any, NoReturn

from ._core import Array, Batch
from ._errors import ArgumentError
from ._options import as_text, public, show

_SIZE = "_size"  # behind the name of the field
_CHANNELS = 4


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
Batch.images = images  # type: ignore[method-assign]
