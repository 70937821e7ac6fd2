# SPDX-License-Identifier: Apache-2.0
"""What a loader does to images on their way to a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat, SupportsIndex

from ._errors import ArgumentError
from ._options import as_number, choice, public, show, whole
from ._schema import _DTYPES, dtype_name

if TYPE_CHECKING:
    from ._dataset import Dataset
    from ._description import Field

_CROPS = ("center", "random", "random-resized")
_LAYOUTS = ("none", "hwc", "chw")  # in the order of shard.h
_PIXELS = ("recipe", "rows-first", "pillow-12", "pillow-13")
_FILTERS = ("bilinear",)
_CHANNELS = 4


@dataclass(frozen=True, kw_only=True)
class Transform:
    """Crop, flip, normalise and convert images while a batch is filled.

        augment = libshard.Transform(
            crop="random-resized", size=224, flip=0.5, dtype="f16", layout="chw",
            mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
        for batch in libshard.Loader("train", 256, transform=augment):

    What is drawn at random depends on the loader's seed, the epoch, and the place of the record in
    the epoch.  So a job that is resumed, on however many ranks, goes on with the same crops.

    ``crop``: ``"center"``, ``"random"`` (a part of that size, anywhere), or ``"random-resized"`` (a
    part of random area and ratio, resized; torchvision's RandomResizedCrop).  ``size``: of the
    result, one number or (height, width); by default that of the images, if all are alike.
    ``area``, ``ratio``: the bounds of ``"random-resized"``: parts of the image's area, and width by
    height.  ``filter``: of the resize; there is ``"bilinear"``, antialiased as in
    Pillow.  ``pixels``: whose version of it: ``"recipe"`` is the one that the dataset was packed
    with; else ``"rows-first"`` (Pillow up to 12.1), ``"pillow-12"`` or ``"pillow-13"``.

    ``flip``: the probability that an image is mirrored left to right.  ``dtype``: ``"u8"`` keeps
    samples of 0 to 255; ``"f16"``, ``"bf16"`` and ``"f32"`` become (sample / 255 - mean) / std.
    ``mean``, ``std``: one number, or one for each channel, of samples from 0 to 1.  ``layout``:
    ``"hwc"`` or ``"chw"``.

    ``views``: results of each image, each with draws of its own.  With more than one, the field is
    [batch, views, ...].  ``field``: the name of the images; by default that of the only ones.

    Fields whose semantic is ``"mask"`` or ``"boxes"`` follow.  All others are delivered as they are
    stored.  A loader refuses those that look like boxes, masks, points or images, until its
    ``transform_as_stored`` names them.
    """

    crop: Literal["center", "random", "random-resized"] = "center"
    size: SupportsIndex | tuple[SupportsIndex, SupportsIndex] | None = None
    flip: float = 0.0
    dtype: Any = "u8"
    layout: Literal["hwc", "chw"] = "hwc"
    mean: SupportsFloat | Sequence[float] = 0.0
    std: SupportsFloat | Sequence[float] = 1.0
    filter: Literal["bilinear"] = "bilinear"
    pixels: Literal["recipe", "rows-first", "pillow-12", "pillow-13"] = "recipe"
    views: SupportsIndex = 1
    area: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    field: str | None = None

    def __post_init__(self) -> None:
        self._numbers(None)

    def _numbers(self, channels: int | None) -> tuple[Any, ...]:
        """As C takes them, without the field."""
        height, width = _size(self.size)
        choice("filter", self.filter, _FILTERS)
        name = dtype_name(self.dtype)
        if name not in ("uint8", "float16", "bfloat16", "float32"):
            raise ArgumentError(f"dtype={show(self.dtype)}; must be 'u8', 'f16', 'bf16' or 'f32'", "bad argument")
        return (
            whole("views", self.views, least=1),
            height,
            width,
            _DTYPES.index(name) + 1,
            choice("layout", self.layout, _LAYOUTS[1:]) + 1,
            choice("crop", self.crop, _CROPS),
            choice("pixels", self.pixels, _PIXELS),
            _each("mean", self.mean, channels),
            _each("std", self.std, channels),
            as_number("flip", self.flip),
            _pair("area", self.area),
            _pair("ratio", self.ratio),
        )

    def _for(self, dataset: Dataset, as_stored: tuple[str, ...] = ()) -> tuple[Any, ...]:
        """As the core takes it for batches of a dataset."""
        name = _only_image(dataset) if self.field is None else self.field
        if not isinstance(name, str) or name not in dataset.schema:
            raise ArgumentError(f"transform: the dataset has no field {show(name)}", "bad argument")
        field = dataset.schema[name]
        has_axis = len(field.shape) == 3 or field.kind == "ragged"
        channels = 1 if not has_axis else field.shape[0 if field.layout == "chw" else -1]
        return (name, *self._numbers(channels), as_stored)


def _only_image(dataset: Dataset) -> str:
    names = [f.name for f in dataset.schema if f.semantic == "image"]
    if len(names) != 1:
        like = like_images(dataset)
        said = f"the fields {', '.join(names)} have images" if names else "no field has images"
        then = f"; {as_images(like)}" if like and not names else "; name one: Transform(field=...)"
        raise ArgumentError(f"transform: {said}{then}", "bad argument")
    return names[0]


def like_images(dataset: Dataset) -> list[Field]:
    """Fields with the axes of images, of which nobody said that they are some."""
    return [
        f
        for f in dataset.schema
        if f.semantic == "none" and f.kind == "tensor" and f.dtype == "uint8" and f.layout == "none"
        and len(f.shape) == 3 and (f.shape[-1] in (1, 3, 4) or f.shape[0] in (1, 3, 4))
    ]  # fmt: skip


def as_images(fields: list[Field]) -> str:
    types = ", ".join(f'"{f.name}": "image[{",".join(map(str, f.shape))}]"' for f in fields)
    return f"pack them again as images: libshard.pack(ds, {{**dict(zip(ds.schema.names, ds.schema)), {types}}}, NEW)"


def _size(size: Any) -> tuple[int, int]:
    if size is None:
        return 0, 0
    sides = tuple(size) if isinstance(size, (tuple, list)) else (size, size)
    if len(sides) != 2:
        raise ArgumentError(f"size={show(size)}; must be a number, or (height, width)", "bad argument")
    return whole("size", sides[0], least=1), whole("size", sides[1], least=1)


def _each(option: str, value: Any, channels: int | None) -> tuple[float, ...]:
    """A number for each of four channels, of which the first ones count.

    ``channels``: those of the images; None if they are not known yet.
    """
    values = _several(value)
    numbers = tuple(as_number(option, v) for v in ([value] * (channels or 1) if values is None else values))
    if not 1 <= len(numbers) <= _CHANNELS or (channels is not None and len(numbers) != channels):
        have = channels or f"1 to {_CHANNELS}"
        raise ArgumentError(f"{option} has {len(numbers)} numbers, and images {have} channels", "bad argument")
    if option == "std" and min(numbers) <= 0:
        raise ArgumentError(f"std={show(value)}; must be above 0", "bad argument")
    return numbers + (0.0,) * (_CHANNELS - len(numbers))


def _pair(option: str, value: Any) -> tuple[float, float]:
    pair = [as_number(option, v) for v in _several(value) or ()]
    if len(pair) != 2 or not 0 < pair[0] <= pair[1]:
        raise ArgumentError(f"{option}={show(value)}; must be two ascending numbers above 0", "bad argument")
    return pair[0], pair[1]


def _several(value: Any) -> list[Any] | None:
    """None if it is one number."""
    try:
        return None if isinstance(value, (str, bytes, bytearray)) else list(value)
    except TypeError:
        return None


Transform.__init__ = public("libshard.Transform")(Transform.__init__)  # type: ignore[method-assign]
