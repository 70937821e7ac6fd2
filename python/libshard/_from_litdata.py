# SPDX-License-Identifier: Apache-2.0
"""The chunks of LitData, as its optimize() writes them.

index.json names the chunks, and has the format of each leaf of a sample.  A chunk is u32 n, u32
offset[n + 1], counted from its begin, and the samples.  A sample has a u32 for the size of each
leaf, and then all leaves.  There is no hash to compare.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ._convert_files import Batch, Cursor, File, Source, decompressed, load_json
from ._convert_samples import Column, array_as_ppm, pil_as_ppm, read_text, shard

# What the bytes of a leaf are: those of a file, text, or a number.  What a format says behind a colon is an ending.
_FORMS: dict[str, Any] = {
    "bytes": "part", "jpeg": "part", "image": "part", "file": "part", "str": read_text, "string": read_text,
    "text": read_text, "int": np.dtype("<i8"), "float": np.dtype("<f8"), "bool": np.dtype("?"),
}  # fmt: skip
_FRAMED = b"LDFZ01\0\0"
_CODE = ("pickle", "graph:pickle")


def _names(spec: Any, prefix: str = "") -> list[str]:
    """The names of the leaves of a tree of PyTorch, in its order; numbers stand for places in lists."""
    if spec is None or spec.get("type") is None:
        return [prefix or "0"]
    children, keys = spec["children_spec"], spec.get("context")
    if "dict" in spec["type"].lower():
        keys = json.loads(keys) if isinstance(keys, str) else keys
        keys = keys[1] if len(keys) == 2 and isinstance(keys[1], list) and len(children) != 2 else keys
    else:
        keys = range(len(children))
    named = zip([f"{prefix}.{key}" if prefix else str(key) for key in keys], children, strict=True)
    return [name for of, child in named for name in _names(child, of)]


def _leaves(source: Source, config: dict[str, Any]) -> list[Column]:
    forms, spec = config.get("data_format"), config.get("data_spec")
    if not isinstance(forms, list) or not forms or not all(isinstance(f, str) for f in forms):
        source.fail("index.json", f"has the data_format {forms!r}, which is not a list of names")
    try:
        names = _names(json.loads(spec)[1])
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as e:
        source.fail("index.json", f"has a data_spec that does not name the leaves of a sample: {e!r}")
    if len(names) != len(forms):
        source.fail("index.json", f"has {len(forms)} formats of leaves, and its data_spec names {len(names)}")
    leaves = []
    for name, form in zip(names, forms, strict=True):
        if form in _CODE and name not in source.without:
            source.fail("index.json", f"leaf {name!r} is a pickle, which can run any code when it is read; leave it out with "
                                      f"--without {name}")  # fmt: skip
        read = None if name in source.without else _FORMS.get(form.partition(":")[0])
        made = None if read is not None or name in source.without else _pixels(form)
        if read is None and made is None and name not in source.without:
            source.note(f"leaf {name!r} is left out: its format is {form}")
        leaves.append(Column(name, None, read if made is None else "part", made))
    return leaves


class _Framed:
    """A chunk whose samples are compressed some at a time: head, offsets of samples, table of frames, frames."""

    def __init__(self, file: File) -> None:
        self.at = Cursor(file, 0, file.size, lambda text: file.source.fail(file.path, text))
        _, version, _, count, _, self.frames = self.at.numbers("8sHHIII", "the head")
        if version != 1:
            self.at.fail(f"has samples in frames of version {version}; only version 1 is read")
        offsets = np.frombuffer(file.read(*self.at.take(4 * (count + 1), "the table of samples")), "<u4").astype(np.int64)
        self.head = struct.pack("<I", count) + (offsets + 4 * (count + 2)).astype("<u4").tobytes()
        self.size = len(self.head) + int(offsets[-1])

    def read(self, compression: Any) -> Iterator[bytes]:
        """As the same chunk is if nothing is compressed."""
        at, file = self.at, self.at.file
        yield self.head
        for i in range(self.frames):
            _, _, begin, size, whole = at.numbers("IIQII", f"frame {i} of the table")
            if begin > file.size or size > file.size - begin:
                at.fail(f"frame {i}, {size} bytes at byte {begin}, ends beyond the end of the file: it is cut")
            written = 0
            for data in decompressed(file, compression, io.BytesIO(file.read(begin, size))):
                written += len(data)
                yield data
            if written != whole:
                at.fail(f"frame {i} unpacks to {written} bytes, and the file says {whole}")


def _pixels(form: str) -> Callable[[bytes], bytes] | None:
    """What makes an image of a leaf that is pixels: of a tensor, u32 code of its dtype, dimensions, shape, big end first."""
    if form == "pil":
        return pil_as_ppm
    if form not in ("tensor", "numpy"):
        return None
    order, uint8 = (">", 11) if form == "tensor" else ("<", 4)

    def make(data: bytes) -> bytes:
        kind, dims = struct.unpack_from(order + "II", data)
        if kind != uint8:
            raise ValueError(f"an array of the dtype with the number {kind}; only uint8, which is {uint8}, is an image")
        if dims > 3:
            raise ValueError(f"an array of {dims} dimensions is not an image")
        return array_as_ppm(struct.unpack_from(f"{order}{dims}I", data, 8), data[8 + 4 * dims :])

    return make


def _chunk(source: Source, config: dict[str, Any], chunk: Any, leaves: list[Column]) -> Iterator[Batch]:
    if not isinstance(chunk, dict):
        source.fail("index.json", f"a chunk is described by {chunk!r}")
    path = source.below("index.json", chunk.get("filename"))
    compression, level = config.get("compression"), config.get("compression_level") or "chunk"
    if compression and level not in ("chunk", "batch"):
        source.fail("index.json", f"has compression_level {level!r}; only 'chunk' and 'batch' are read. Give "
                                  "StreamingDataset(...) of LitData to libshard.pack()")  # fmt: skip
    if compression:
        packed, path = path, path.replace(f".{str(compression).partition(':')[0]}.bin", ".bin")
        with File(source, packed) as file:
            is_framed = level == "batch" and file.peek((0, min(8, file.size))) == _FRAMED
            size = _Framed(file).size if is_framed else chunk.get("chunk_bytes")
        if is_framed:
            source.unpack(packed, path, size, lambda file: _Framed(file).read(compression))
        elif level == "chunk":  # with "batch", no chunk of bytes, numbers and texts is compressed
            source.unpack(packed, path, size, lambda file: decompressed(file, compression))
    with File(source, path) as file:
        if file.size < 8:
            source.fail(file.path, f"is cut: {file.size} bytes")
        yield from shard(file, chunk.get("chunk_size"), leaves, "leaf")


def batches(source: Source) -> Iterator[Batch]:
    description = load_json(source, "index.json") if not source.files else source.fail(source.files[0], "give its folder")
    config = description.get("config") if isinstance(description, dict) else None
    if not isinstance(config, dict) or not isinstance(description.get("chunks"), list):
        source.fail("index.json", "is not an index of LitData")
    for word in ("encryption", "ipc_compression"):
        if config.get(word):
            source.fail("index.json", f"has {word} {config[word]!r}, which is not read; give StreamingDataset(...) of LitData to "
                                      "libshard.pack()")  # fmt: skip
    if config.get("item_loader") not in (None, "PyTreeLoader"):
        source.fail("index.json", f"is for the item_loader {config['item_loader']}; only PyTreeLoader has samples of leaves")
    leaves = _leaves(source, config)
    for chunk in description["chunks"]:
        yield from _chunk(source, config, chunk, leaves)
    source.note_others(".bin", [str(chunk.get("filename")) for chunk in description["chunks"]])
