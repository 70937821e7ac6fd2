# SPDX-License-Identifier: Apache-2.0
"""MDS, the shards of MosaicML Streaming.

index.json names the shards, their columns and how each is encoded.  A shard is u32 n, u32
offset[n + 1], counted from its begin, a copy of its description, and the samples.  A sample has a
u32 for the size of each column that varies, and then all columns.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterator
from typing import Any

from .convert import Part, Record, Source, load_json, samples

# Numbers are as NumPy stores them; bool stands for itself.
_NUMBERS = {"int": "q", "bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H",
            "uint32": "I", "uint64": "Q", "float16": "e", "float32": "f", "float64": "d"}  # fmt: skip
_BYTES = ("bytes", "jpeg", "png")


def _decoder(encoding: str) -> Callable[[Part], Any] | None:
    """From the bytes of a column to its value; None if it has none that a table can have."""
    if encoding in _BYTES:
        return lambda part: part
    if encoding in _NUMBERS:
        number = struct.Struct("<" + _NUMBERS[encoding])
        return lambda part: number.unpack(part.data)[0]
    if encoding == "str":
        return lambda part: str(part.data, "utf-8")
    if encoding == "json":
        return lambda part: json.loads(bytes(part.data))
    if encoding in ("str_int", "str_float"):
        kind = int if encoding == "str_int" else float
        return lambda part: kind(str(part.data, "utf-8"))
    return None


def _check(source: Source, path: str, data: memoryview, said: dict[str, Any]) -> None:
    if len(data) != said.get("bytes"):
        source.fail(path, f"has {len(data)} bytes, and index.json says {said.get('bytes')}: it is cut, or of another dataset")
    hashes = said.get("hashes") or {}
    if not isinstance(hashes, dict):
        source.fail("index.json", f"has the hashes {hashes!r} of {path}, which are not values by name")
    for name, digest in hashes.items():
        try:
            made = hashlib.new(name, data).hexdigest()
        except (ValueError, TypeError):  # of another library; or its length would have to be known
            source.note(f"hashes of kind {name} are not compared, because Python has no such function")
            continue
        if made != digest:
            source.fail(path, f"its {name} is {made}, and index.json says {digest}: the file is damaged")


def _columns(source: Source, shard: dict[str, Any]) -> list[tuple[str, int | None, Callable[[Part], Any] | None]]:
    names, encodings, sizes = (shard.get(k) for k in ("column_names", "column_encodings", "column_sizes"))
    if not all(isinstance(x, list) for x in (names, encodings, sizes)) or not len(names) == len(encodings) == len(sizes):
        source.fail("index.json", "a shard's column_names, column_encodings and column_sizes are not lists of one length")
    columns = []
    for name, encoding, size in zip(names, encodings, sizes, strict=True):
        if not isinstance(name, str) or not isinstance(encoding, str) or not (size is None or isinstance(size, int)):
            source.fail("index.json", f"column {name!r} has encoding {encoding!r} and size {size!r}")
        decode = _decoder(encoding.partition(":")[0])
        if encoding == "pkl" and name not in source.without:
            source.fail(
                "index.json",
                f"column {name!r} is a pickle, which can run any code when it is read; leave it out with --without {name}",
            )
        if decode is None and name not in source.without:
            source.note(f"column {name!r} is left out: its encoding is {encoding}")
        columns.append((name, size, None if name in source.without else decode))
    return columns


def _shard(source: Source, shard: dict[str, Any]) -> Iterator[Record]:
    raw = shard.get("raw_data")
    if shard.get("format") != "mds" or not isinstance(raw, dict):
        source.fail("index.json", f"a shard has the format {shard.get('format')!r}; only 'mds' is read")
    path = source.below("index.json", raw.get("basename"))
    if shard.get("compression") and not (source.root / path).exists():
        source.fail(path, f"is compressed with {shard['compression']}, so nothing in it can be read in place; give "
                          "StreamingDataset(local=...) to libshard.pack()")  # fmt: skip
    columns = _columns(source, shard)
    varying = sum(size is None for _, size, _ in columns)
    with source.map(path) as data:
        _check(source, path, data, raw)
        for i, at in samples(source, path, data, shard.get("samples")):
            sizes = iter(at.numbers(f"{varying}I", "the sizes of columns"))
            values = {}
            for name, size, decode in columns:
                begin, part = at.at, at.take(next(sizes) if size is None else size, f"column {name!r}")
                if decode:
                    try:
                        values[name] = decode(Part(begin, part))
                    except (ValueError, struct.error, RecursionError) as e:
                        at.fail(f"column {name!r} is not what index.json says: {e}")
            at.finish("columns")
            yield Record(path, f"{path}/{i}", values)


def records(source: Source) -> Iterator[Record]:
    description = load_json(source, "index.json") if not source.files else source.fail(source.files[0], "give its folder")
    if not isinstance(description, dict) or description.get("version") != 2 or not isinstance(description.get("shards"), list):
        source.fail("index.json", "is not version 2 of an index of MosaicML Streaming")
    for shard in description["shards"]:
        if not isinstance(shard, dict):
            source.fail("index.json", f"a shard is described by {shard!r}")
        yield from _shard(source, shard)
