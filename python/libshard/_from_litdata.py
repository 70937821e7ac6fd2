# SPDX-License-Identifier: Apache-2.0
"""The chunks of LitData, as its optimize() writes them.

index.json names the chunks, and has the format of each leaf of a sample.  A chunk is u32 n, u32
offset[n + 1], counted from its begin, and the samples.  A sample has a u32 for the size of each
leaf, and then all leaves.  There is no hash to compare.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from typing import Any

from .convert import Part, Record, Source, load_json, samples

# Leaves whose bytes are those of a file, or text.  What the format says behind a colon is its ending.
_BYTES = ("bytes", "jpeg", "image", "file")
_TEXTS = ("str", "string", "text")
_NUMBERS = {"int": "<q", "float": "<d", "bool": "<?"}
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


def _decoder(form: str) -> Callable[[Part], Any] | None:
    kind = form.partition(":")[0]
    if kind in _BYTES:
        return lambda part: part
    if kind in _TEXTS:
        return lambda part: str(part.data, "utf-8")
    if kind in _NUMBERS:
        number = struct.Struct(_NUMBERS[kind])
        return lambda part: number.unpack(part.data)[0]
    return None


def _leaves(source: Source, config: dict[str, Any]) -> list[tuple[str, Callable[[Part], Any] | None]]:
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
        decode = _decoder(form)
        if decode is None and name not in source.without:
            source.note(f"leaf {name!r} is left out: its format is {form}")
        leaves.append((name, None if name in source.without else decode))
    return leaves


def _chunk(source: Source, chunk: Any, leaves: list[tuple[str, Callable[[Part], Any] | None]]) -> Iterator[Record]:
    if not isinstance(chunk, dict):
        source.fail("index.json", f"a chunk is described by {chunk!r}")
    path = source.below("index.json", chunk.get("filename"))
    with source.map(path) as data:
        if len(data) < 8:
            source.fail(path, f"is cut: {len(data)} bytes")
        for i, at in samples(source, path, data, chunk.get("chunk_size")):
            values = {}
            for (name, decode), size in zip(leaves, at.numbers(f"{len(leaves)}I", "the sizes of leaves"), strict=True):
                begin, part = at.at, at.take(size, f"leaf {name!r}")
                if decode:
                    try:
                        values[name] = decode(Part(begin, part))
                    except (ValueError, struct.error) as e:
                        at.fail(f"leaf {name!r} is not what index.json says: {e}")
            at.finish("leaves")
            yield Record(path, f"{path}/{i}", values)


def records(source: Source) -> Iterator[Record]:
    description = load_json(source, "index.json") if not source.files else source.fail(source.files[0], "give its folder")
    config = description.get("config") if isinstance(description, dict) else None
    if not isinstance(config, dict) or not isinstance(description.get("chunks"), list):
        source.fail("index.json", "is not an index of LitData")
    for word in ("compression", "encryption"):
        if config.get(word):
            source.fail("index.json", f"has {word} {config[word]!r}, so nothing can be read in place; give "
                                      "StreamingDataset(...) of LitData to libshard.pack()")  # fmt: skip
    if config.get("item_loader") not in (None, "PyTreeLoader"):
        source.fail("index.json", f"is for the item_loader {config['item_loader']}; only PyTreeLoader has samples of leaves")
    leaves = _leaves(source, config)
    for chunk in description["chunks"]:
        yield from _chunk(source, chunk, leaves)
