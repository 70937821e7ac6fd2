# SPDX-License-Identifier: Apache-2.0
"""Datasets in a notebook: their contents as HTML that stands alone, or as text for a terminal."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from html import escape as html_escape
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ._core import Array
from ._errors import Error, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ._description import Field, Schema, Stats

_SIDE = 128  # pixels; larger pictures are halved until they fit
_CLASSES = 20  # that are listed


class Shown(Protocol):
    """The parts of a dataset that are shown."""

    @property
    def path(self) -> str: ...

    @property
    def id(self) -> str: ...

    @property
    def schema(self) -> Schema: ...

    @property
    def classes(self) -> list[str]: ...

    @property
    def stats(self) -> Stats: ...

    @property
    def shard_count(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    def key(self, number: int, /) -> str: ...

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> dict[str, Any]: ...


class Picture(NamedTuple):
    """Samples of 8 bits, channels next to each other."""

    width: int
    height: int
    channels: int
    samples: bytes


def picture_of(array: Array, layout: str) -> Picture | None:
    """What is stored as an image, made visible; None if it has axes or channels that cannot be
    shown.

    Samples of other types than uint8 are spread from the least of the image to its greatest.
    """
    if array.ndim not in (2, 3):
        return None
    shape = array.shape if array.ndim == 3 else (*array.shape, 1)
    planes = layout == "chw" and array.ndim == 3
    height, width, channels = (*shape[1:], shape[0]) if planes else shape
    if not 1 <= channels <= 4 or not width or not height:
        return None
    samples = array.tobytes() if array.dtype == "uint8" else _spread(array)
    if planes:
        mixed, plane = bytearray(len(samples)), width * height
        for c in range(channels):
            mixed[c::channels] = samples[c * plane : (c + 1) * plane]
        samples = bytes(mixed)
    return Picture(width, height, channels, samples)


def _spread(array: Array) -> bytes:
    values: list[Any] = [array.tolist()]
    for _ in range(array.ndim):
        values = [x for row in values for x in row]
    finite = [x for x in values if math.isfinite(x)]
    least = min(finite, default=0)
    scale = 255 / ((max(finite, default=0) - least) or 1)
    return bytes(
        0 if x != x else max(0, min(255, round((x - least) * scale))) if math.isfinite(x) else 255 * (x > 0)
        for x in values
    )


def halved(p: Picture) -> Picture:
    """Of half the size: means of four, rounded down."""
    width, height, row = p.width // 2, p.height // 2, p.width * p.channels
    used = 2 * width * p.channels
    even, odd = (b"".join(p.samples[y * row : y * row + used] for y in range(first, 2 * height, 2)) for first in (0, 1))
    tall = _mean(even, odd)
    out = bytearray(width * height * p.channels)
    for c in range(p.channels):
        out[c :: p.channels] = _mean(tall[c :: 2 * p.channels], tall[c + p.channels :: 2 * p.channels])
    return Picture(width, height, p.channels, bytes(out))


def _mean(a: bytes, b: bytes) -> bytes:
    """Byte by byte, with two long numbers: what both have, and half of what one has."""
    x, y = int.from_bytes(a, "little"), int.from_bytes(b, "little")
    half = (x ^ y) >> 1 & int.from_bytes(b"\x7f" * len(a), "little")
    return ((x & y) + half).to_bytes(len(a), "little")


def png(p: Picture) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    row = p.width * p.channels
    lines = b"".join(b"\0" + p.samples[y * row : (y + 1) * row] for y in range(p.height))
    head = struct.pack(">IIBBBBB", p.width, p.height, 8, {1: 0, 2: 4, 3: 2, 4: 6}[p.channels], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def escape(text: str) -> str:
    """For HTML: a line of safe text, without what a browser takes for a tag."""
    return html_escape(shown(text))


class Preview:
    """Some records: pictures in a notebook, lines in a terminal.  ``ds.show()`` makes one."""

    def __init__(self, dataset: Shown, numbers: Sequence[int]) -> None:
        self.dataset: Shown = dataset
        self.numbers: list[int] = list(numbers)

    def __repr__(self) -> str:
        rows = []
        for number in self.numbers:
            try:
                told = "  ".join(f"{k}: {v}" for k, v in self._words(self.dataset[number]))
            except Error as e:  # the others are shown although this one cannot be read
                told = e.message
            rows.append((f"{number:,}", self._key(number), told))
        wide = [max((len(r[i]) for r in rows), default=0) for i in (0, 1)]
        return "\n".join(f"{n:>{wide[0]}}  {key:<{wide[1]}}  {told}".rstrip() for n, key, told in rows)

    def _repr_html_(self) -> str:
        figures = "".join(map(self._figure, self.numbers))
        return f'<div style="display:flex;flex-wrap:wrap;gap:8px">{figures}</div>'

    def _key(self, number: int) -> str:
        try:
            return shown(self.dataset.key(number), exact=True)
        except Error:
            return ""

    def _words(self, record: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """Field and value, short."""
        for field in self.dataset.schema:
            if field.name in record:
                yield field.name, _value_text(self.dataset, field, record[field.name])

    def _figure(self, number: int) -> str:
        title = escape(f"{number:,} {self._key(number)}".rstrip())
        try:
            return self._record_figure(number, self.dataset[number], title)
        except Error as e:
            return _box(f'<div style="color:#c33">{escape(e.message)}</div>', str(number), title)

    def _record_figure(self, number: int, record: dict[str, Any], title: str) -> str:
        pictures, lines = [], [f"{number:,}"]
        for field, (_, text) in zip((f for f in self.dataset.schema if f.name in record), self._words(record)):
            picture = (
                picture_of(record[field.name], field.layout)
                if field.semantic in ("image", "mask") and isinstance(record[field.name], Array)
                else None
            )
            if picture:
                pictures.append(_image_tag(picture, field.name))
            elif field.semantic == "label" and self.dataset.classes:
                lines.append(text)
            else:
                lines.append(f"{field.name}: {text}")
        return _box("".join(pictures), "\n".join(map(escape, lines)), title)


def _box(content: str, caption: str, title: str) -> str:
    style = "font-size:11px;white-space:pre-line;overflow-wrap:anywhere"
    return (
        f'<figure style="margin:0;max-width:280px" title="{title}">{content}'
        f'<figcaption style="{style}">{caption}</figcaption></figure>'
    )


def _image_tag(picture: Picture, name: str) -> str:
    while max(picture.width, picture.height) > _SIDE and min(picture.width, picture.height) > 1:
        picture = halved(picture)
    data = base64.b64encode(png(picture)).decode()
    smooth = "pixelated" if picture.height < 64 else "auto"
    return (
        f'<img alt="{escape(name)}" src="data:image/png;base64,{data}"'
        f' style="height:112px;margin-right:2px;image-rendering:{smooth}">'
    )


def _value_text(dataset: Shown, field: Field, value: Any) -> str:
    if isinstance(value, Array):
        return repr(value.tolist()) if value.size <= 8 else f"{value.dtype}[{','.join(map(str, value.shape))}]"
    if field.semantic == "label" and isinstance(value, int) and 0 <= value < len(dataset.classes):
        return shown(dataset.classes[value], exact=True)
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, str):
        return shown(value if len(value) <= 120 else value[:119] + "…", exact=True)
    text = str(value)
    return text if len(text) <= 120 else text[:119] + "…"


def spread_numbers(count: int, wanted: int) -> list[int]:
    """This many, from all over the dataset."""
    wanted = min(count, wanted)
    return [i * count // wanted for i in range(wanted)]


def size_text(count: int) -> str:
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"


def dataset_html(dataset: Shown) -> str:
    ds = dataset
    rows = ""
    for f in ds.schema:
        if f.semantic != "length":
            words = (f.kind if f.kind != "tensor" else "", f.semantic, f.layout)
            rows += (
                f"<tr><td>{escape(f.name)}</td><td>{f.dtype}</td><td>[{', '.join(map(str, f.shape))}]</td>"
                f"<td>{' '.join(x for x in words if x and x != 'none')}</td></tr>"
            )
    return (
        f"<div><div><b>{escape(ds.path)}</b>: {len(ds):,} records in {ds.shard_count:,}"
        f" shard{'s' * (ds.shard_count != 1)}, {size_text(ds.nbytes)}"
        f' <span style="opacity:.6">id {ds.id[:16]}</span></div>'
        f'<div style="display:flex;flex-wrap:wrap;gap:24px;align-items:flex-start;margin:6px 0">'
        f"<table><tr><th>field</th><th>dtype</th><th>shape</th><th></th></tr>{rows}</table>{_classes_html(ds)}</div>"
        f"{Preview(ds, spread_numbers(len(ds), 8))._repr_html_()}</div>"
    )


def _classes_html(ds: Shown) -> str:
    counts = ds.stats.class_counts
    if not counts:
        return ""
    most = max(counts.values()) or 1
    bar = "background:currentColor;opacity:.4;height:8px"
    rows = "".join(
        f'<tr><td>{escape(shown(name, exact=True))}</td><td style="text-align:right">{n:,}</td>'
        '<td style="min-width:100px;text-align:left">'
        f'<div style="{bar};width:{100 * n / most:.0f}px"></div></td></tr>'
        for name, n in list(counts.items())[:_CLASSES]
    )
    more = f"<tr><td colspan=3>and {len(counts) - _CLASSES:,} more classes</td></tr>" if len(counts) > _CLASSES else ""
    return f"<table><tr><th>class</th><th>records</th><th></th></tr>{rows}{more}</table>"
