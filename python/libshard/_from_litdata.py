# SPDX-License-Identifier: Apache-2.0
"""The chunks of LitData, as its optimize() writes them.

index.json names the chunks, and has the format of each leaf of a sample.  A chunk is u32 n, u32
offset[n + 1], counted from its begin, and the samples.  A sample has a u32 for the size of each
leaf, and then all leaves.  There is no hash to compare.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from .convert import Batch, Column, File, Source, load_json, read_text, shard

# What the bytes of a leaf are: those of a file, text, or a number.  What a format says behind a colon is an ending.
_FORMS: dict[str, Any] = {
    "bytes": "part", "jpeg": "part", "image": "part", "file": "part", "str": read_text, "string": read_text,
    "text": read_text, "int": np.dtype("<i8"), "float": np.dtype("<f8"), "bool": np.dtype("?"),
}  # fmt: skip
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
        if read is None and name not in source.without:
            source.note(f"leaf {name!r} is left out: its format is {form}")
        leaves.append(Column(name, None, read))
    return leaves


def _chunk(source: Source, chunk: Any, leaves: list[Column]) -> Iterator[Batch]:
    if not isinstance(chunk, dict):
        source.fail("index.json", f"a chunk is described by {chunk!r}")
    with File(source, source.below("index.json", chunk.get("filename"))) as file:
        if file.size < 8:
            source.fail(file.path, f"is cut: {file.size} bytes")
        yield from shard(file, chunk.get("chunk_size"), leaves, "leaf")


def batches(source: Source) -> Iterator[Batch]:
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
