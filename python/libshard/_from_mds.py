# SPDX-License-Identifier: Apache-2.0
"""MDS, the shards of MosaicML Streaming.

index.json names the shards, their columns and how each is encoded.  A shard is u32 n, u32
offset[n + 1], counted from its begin, a copy of its description, and the samples.  A sample has a
u32 for the size of each column that varies, and then all columns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ._convert_files import Batch, File, Source, decompressed, load_json
from ._convert_samples import Column, array_as_ppm, pil_as_ppm, read_text, shard

_NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
_UINT8 = b"\x08"  # the code of a dtype
# What else a column's bytes are.
_FORMS: dict[str, Any] = {
    "bytes": "part", "jpeg": "part", "png": "part", "int": np.dtype("<i8"), "bool": np.dtype("?"), "str": read_text,
    "json": lambda data: json.loads(bytes(data)), "str_int": lambda data: int(read_text(data)),
    "str_float": lambda data: float(read_text(data)), **{name: np.dtype(name).newbyteorder("<") for name in _NUMBERS},
}  # fmt: skip


def _pixels(encoding: str) -> Callable[[bytes], bytes] | None:
    """What makes an image of a column of pixels.  An array has a code of its dtype, and u8 dimensions, unless they are said."""
    kind, *said = encoding.split(":")
    if kind == "pil" and not said:
        return pil_as_ppm
    if kind != "ndarray" or said[:1] not in ([], ["uint8"]) or len(said) > 2:
        return None

    def make(data: bytes) -> bytes:
        at = 0
        if not said:
            if data[:1] != _UINT8:
                raise ValueError(f"an array of the dtype with the code {data[:1].hex()}; only uint8 is an image")
            at = 1
        if len(said) == 2:
            return array_as_ppm([int(n) for n in said[1].split(",")], data[at:])
        if not data[at:]:
            raise ValueError("no shape")
        size = 1 << (data[at] & 3)  # of a dimension, below their number
        dims = data[at] >> 2
        end = at + 1 + dims * size
        return array_as_ppm([int.from_bytes(data[i : i + size], "little") for i in range(at + 1, end, size)], data[end:])

    return make


def _check(file: File, said: dict[str, Any]) -> None:
    source, path = file.source, file.path
    if file.size != said.get("bytes"):
        source.fail(path, f"has {file.size} bytes, and index.json says {said.get('bytes')}: it is cut, or of another dataset")
    hashes = said.get("hashes") or {}
    if not isinstance(hashes, dict):
        source.fail("index.json", f"has the hashes {hashes!r} of {path}, which are not values by name")
    made = {}
    for name in hashes:
        try:
            made[name] = hashlib.new(name)
            made[name].hexdigest()
        except (ValueError, TypeError):  # of another library; or its length would have to be known
            made.pop(name, None)
            source.note(f"hashes of kind {name} are not compared, because Python has no such function")
    for at in range(0, file.size if made else 0, 1 << 20):
        data = file.read(at, min(1 << 20, file.size - at))
        for hash in made.values():
            hash.update(data)
    for name, hash in made.items():
        if hash.hexdigest() != hashes[name]:
            source.fail(path, f"its {name} is {hash.hexdigest()}, and index.json says {hashes[name]}: the file is damaged")


def _columns(source: Source, shard: dict[str, Any]) -> list[Column]:
    names, encodings, sizes = (shard.get(k) for k in ("column_names", "column_encodings", "column_sizes"))
    if not all(isinstance(x, list) for x in (names, encodings, sizes)) or not len(names) == len(encodings) == len(sizes):
        source.fail("index.json", "a shard's column_names, column_encodings and column_sizes are not lists of one length")
    columns = []
    for name, encoding, size in zip(names, encodings, sizes, strict=True):
        if not isinstance(name, str) or not isinstance(encoding, str) or not (
            size is None or isinstance(size, int) and 0 <= size < 1 << 32
        ):
            source.fail("index.json", f"column {name!r} has encoding {encoding!r} and size {size!r}")
        form = None if name in source.without else _FORMS.get(encoding.partition(":")[0])
        if encoding == "pkl" and name not in source.without:
            source.fail(
                "index.json",
                f"column {name!r} is a pickle, which can run any code when it is read; leave it out with --without {name}",
            )
        made = None if form is not None or name in source.without else _pixels(encoding)
        if form is None and made is None and name not in source.without:
            source.note(f"column {name!r} is left out: its encoding is {encoding}")
        columns.append(Column(name, size, form if made is None else "part", made))
    return columns


def _shard(source: Source, said: dict[str, Any]) -> Iterator[Batch]:
    raw = said.get("raw_data")
    if said.get("format") != "mds" or not isinstance(raw, dict):
        source.fail("index.json", f"a shard has the format {said.get('format')!r}; only 'mds' is read")
    path = source.below("index.json", raw.get("basename"))
    columns = _columns(source, said)
    compression, zipped = said.get("compression"), said.get("zip_data")
    if compression and not (source.root / path).exists():
        if not isinstance(zipped, dict):
            source.fail("index.json", f"has the compression {compression!r} of {path}, and zip_data {zipped!r}")
        packed = source.below("index.json", zipped.get("basename"))
        with File(source, packed) as file:
            _check(file, zipped)
        source.unpack(packed, path, raw.get("bytes"), lambda file: decompressed(file, compression))
    with File(source, path) as file:
        _check(file, raw)
        yield from shard(file, said.get("samples"), columns, "column")


def batches(source: Source) -> Iterator[Batch]:
    description = load_json(source, "index.json") if not source.files else source.fail(source.files[0], "give its folder")
    if not isinstance(description, dict) or description.get("version") != 2 or not isinstance(description.get("shards"), list):
        source.fail("index.json", "is not version 2 of an index of MosaicML Streaming")
    for said in description["shards"]:
        if not isinstance(said, dict):
            source.fail("index.json", f"a shard is described by {said!r}")
        yield from _shard(source, said)
    listed = [said.get(part) for said in description["shards"] for part in ("raw_data", "zip_data")]
    source.note_others(".mds", [str(part.get("basename")) for part in listed if isinstance(part, dict)])
