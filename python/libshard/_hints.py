# SPDX-License-Identifier: Apache-2.0
"""Attributes that people know from other libraries, and what is here instead."""

from __future__ import annotations

from typing import Any

_RECORDS = {
    "map": "Loader(ds, 256, transform=f) calls f with each batch, and libshard.torch.ShardDataset with each sample",
    "filter": "where(label=3) chooses records, and so does where(score=lambda score: score > 0.5)",
    "shuffle": "libshard.Loader(ds, 256, shuffle=True, seed=1) shuffles",
    "batch": "libshard.Loader(ds, 256) makes batches",
    "shard": "libshard.Loader(ds, 256, rank=0, world=8) takes the share of one rank",
    "repeat": "each loop over a libshard.Loader is the next epoch",
    "take": "select(range(100)) are the first 100 records",
    "head": "show(5) shows 5 records, and select(range(5)) are the first 5",
    "sample": "split(0.1) chooses a tenth by chance",
    "train_test_split": "split(0.9) gives two parts",
    "random_split": "split([0.9, 0.1]) gives two parts",
    "sort": "select() takes numbers, but a selection is in the order of the dataset",
    "zip": "libshard.zip(ds, embedding=array) has columns beside a dataset",
    "add_column": "libshard.zip(ds, embedding=array) has columns beside a dataset",
    "weights": "libshard.balanced(ds) has all classes equally often, and libshard.mix([a, b], [3, 1]) weights selections",
    "concatenate": "libshard.concat([a, b]) has the records of both, and libshard.mix([a, b], [3, 1]) mixes them by weight",
    "concat": "libshard.concat([a, b]) has the records of both, and libshard.mix([a, b], [3, 1]) mixes them by weight",
    "num_rows": "len(ds) is the number of records",
    "shape": "len(ds) is the number of records, and ds.schema has the shapes of fields",
    "features": "ds.schema has the fields",
    "fields": "ds.schema has the fields",
    "column_names": "ds.schema.names are the names of fields",
    "columns": "ds.schema.names are the names of fields, and ds.column(name) is one of them",
    "targets": "ds.column('label') are the labels",
    "labels": "ds.column('label') are the labels",
    "class_to_idx": "ds.classes.index(name) is the number of a class",
    "keys": "ds.key(i) is the key of a record, and ds.by_key(key) the record of a key",
}
_OF_SELECTION = {
    "schema": "selection.dataset.schema has the fields",
    "classes": "selection.dataset.classes has the names of classes",
    "indices": "selection.records are the numbers of its records",
    "key": "selection.dataset.key(selection.records[i]) is the key of its record i",
    "by_key": "selection.dataset.by_key(key) looks in all records of the dataset",
    "index_of": "selection.dataset.index_of(key) is a number in the dataset",
    "show": "selection.dataset.show(selection.numbers(range(5))) shows 5 of its records",
    "stats": "selection.dataset.stats are those of the whole dataset",
}
_OF_CONCAT = {
    "id": "both.dataset.id is that of all parts",
    "by_key": "both.dataset.by_key(key) looks in all parts",
    "index_of": "both.dataset.index_of(key) looks in all parts",
    "show": "both.dataset.show(5) shows records of all parts",
    "stats": "both.dataset.stats has the sums of its parts",
}
_OF_ZIP = {
    name: f"libshard.zip(ds.{name}(...), embedding=array) has the columns beside a selection of ds"
    for name in ("where", "select")
} | {
    "split": "train, test = ds.split([0.8, 0.2]), and libshard.zip(train, embedding=array) has the columns beside a part",
    "folds": "libshard.zip(train, embedding=array) has the columns beside a part of ds.folds()",
    "schema": "both.dataset.schema has the fields, and both.columns the columns",
    "classes": "both.dataset.classes has the names of classes",
    "key": "both.dataset.key(i) is the key of a record",
    "by_key": "both.dataset.index_of(key) is the number of a record, and both[number] has its columns",
}
_OF_MIXTURE = {
    "schema": "mixture.dataset.schema has the fields",
    "split": "split the sources, and mix the parts",
    "where": "choose from the sources, and mix the selections",
    "select": "choose from the sources, and mix the selections",
    "records": "mixture.sources are the datasets and selections",
}
_OF_LOADER = {
    "num_workers": "a loader has threads of its own, and no worker processes",
    "batches": "for batch in loader is one epoch",
    "next": "it = iter(loader) begins an epoch, and next(it) gives a batch",
    "reset": "set_epoch(0) begins again",
    "cycle": "each loop is the next epoch",
    "shuffle": "loader.order says how it shuffles",
    "collate_fn": "transform=f calls f with each batch",
    "sampler": "loader.order says how it shuffles",
    "generator": "loader.order has the seed",
    "schema": "loader.dataset.schema has the fields",
    "classes": "loader.dataset.classes has the names of classes",
}
_OF_TENSOR = (
    "to", "cuda", "cpu", "float", "half", "double", "bfloat16", "long", "int", "type", "type_as", "permute",
    "unsqueeze", "expand", "contiguous", "detach", "clone", "pin_memory", "numel", "requires_grad_", "movedim",
    "div", "div_", "add", "add_", "mul", "mul_", "sub", "sub_", "float_", "softmax", "numpy", "device",
)  # fmt: skip
_ARRAY = (
    "it is not a tensor: libshard.torch.Loader and libshard.torch.ShardDataset give tensors of PyTorch, and "
    "torch.as_tensor(array) makes one"
)
_BATCH = (
    "a batch is a dict of fields; batch.to(device) moves all of them, and device='cuda' of libshard.torch.Loader gives "
    "batches on the GPU"
)


def hint(owner: object, name: str) -> str | None:
    """What to type instead, if that is known."""
    kind = {c.__name__ for c in type(owner).__mro__ if c.__module__.partition(".")[0] == "libshard"}
    if "Batch" in kind:
        if name in owner and not hasattr(type(owner), name):  # type: ignore[operator]
            return f"batch[{name!r}] is that item"
        return _BATCH if name in _OF_TENSOR else None
    if "Array" in kind:
        return _ARRAY if name in _OF_TENSOR else None
    if "LoaderBase" in kind:
        return _OF_LOADER.get(name)
    if "Mixture" in kind:
        return _OF_MIXTURE.get(name)
    if "Zip" in kind:
        return _OF_ZIP.get(name)
    if "Concat" in kind and name in _OF_CONCAT:
        return _OF_CONCAT[name]
    return (_OF_SELECTION.get(name) if "Selection" in kind else None) or _RECORDS.get(name)


def missing(owner: object, name: str) -> AttributeError:
    """What ``owner.name`` raises."""
    kind = type(owner)
    said = f"{kind.__name__!r} object has no attribute {name!r}"
    if kind.__module__.partition(".")[0] == "libshard":
        said = f"libshard.{kind.__name__} has no attribute {name!r}"
    then = None if name.startswith("_") else hint(owner, name)
    return AttributeError(f"{said}: {then}" if then else said, name=name, obj=owner)


class Hinting:
    """A class whose missing attributes say what is there instead."""

    __slots__ = ()

    def _missing(self, name: str) -> Any:
        if hasattr(type(self), name):  # a property that failed says why
            return object.__getattribute__(self, name)
        raise missing(self, name)


# Not as a method of the class: type checkers would then accept every name.
setattr(Hinting, "__getattr__", Hinting._missing)  # noqa: B010
