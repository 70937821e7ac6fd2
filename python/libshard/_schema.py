# SPDX-License-Identifier: Apache-2.0
"""Schemas of records that are to be written: said in words, or seen in a first record."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from . import _core
from ._description import Field, Schema
from ._errors import ArgumentError, RecordError
from ._options import show, stack_level, whole

if TYPE_CHECKING:
    from ._types import FieldKind, FieldLayout, Semantic

# In the order of the enumerations of shard.h.
_DTYPES = (
    "uint8",
    "int8",
    "uint16",
    "int16",
    "uint32",
    "int32",
    "uint64",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "bool",
)
_SHORT = ("u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "bf16", "f32", "f64", "bool")
_KINDS: tuple[FieldKind, ...] = ("tensor", "ragged", "string")
_LAYOUTS: tuple[FieldLayout, ...] = ("none", "hwc", "chw", "yuv420", "tokens")
_SEMANTICS: tuple[Semantic, ...] = ("none", "image", "label", "length", "tokens", "mask", "boxes", "text")
_INTEGERS = _DTYPES[:8]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,46}\Z")
_TYPE = re.compile(r"([A-Za-z][A-Za-z0-9]*)(?::([A-Za-z][A-Za-z0-9]*))?(?:\[(<=)?([0-9, ]*)\])?\Z")

_FOLLOWING = ("boxes", "mask", "image")  # types that are named for what they mean


#: What :class:`libshard.Writer` takes as a schema.
SchemaLike: TypeAlias = "str | Mapping[str, Any] | Iterable[Field]"


def fail(message: str) -> NoReturn:
    raise ArgumentError(message, "bad argument")


def dtype_name(dtype: Any) -> str | None:
    """The name of a dtype of a field, or None if there is no such dtype.

    ``"uint8"`` for ``"u8"``, ``numpy.uint8``, ``numpy.dtype("u1")`` and ``torch.uint8``.
    """
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    name = name if isinstance(name, str) else show(dtype)
    name = name.removeprefix("torch.")
    if name in _SHORT:
        return _DTYPES[_SHORT.index(name)]
    return name if name in _DTYPES else None


def is_image(field: Field) -> bool:
    return field.semantic == "image" or field.layout in ("hwc", "chw")


def with_meaning(name: str, dtype: str, shape: tuple[int, ...], kind: FieldKind = "tensor") -> Field:
    """A field whose meaning follows from its name: ``label``, ``image`` or ``tokens``.

    A label gets the dtype int64, which holds all values of ``dtype`` but the greatest of uint64; a
    value above that is refused when it is written.
    """
    layout: FieldLayout = "none"
    semantic: Semantic = "none"
    if name == "tokens" and len(shape) == 1 and dtype in _INTEGERS:
        layout = semantic = "tokens"
    elif kind == "tensor" and name in ("label", "image"):
        number, *place = _core.meaning(name, 1 + _DTYPES.index(dtype), shape)
        dtype, layout, semantic = _DTYPES[number - 1], _LAYOUTS[place[0]], _SEMANTICS[place[1]]
    return Field(name, dtype, tuple(shape), kind, layout, semantic)


def _as_said(name: str, dtype: str, shape: tuple[int, ...], kind: FieldKind = "tensor") -> Field:
    """The same of a dtype that a user chose, and that is therefore kept or refused."""
    field = with_meaning(name, dtype, shape, kind)
    if field.dtype != dtype:
        fail(
            f"field {show(name)}: a label is the number of a class and is stored as {field.dtype}, but the schema says "
            f"{dtype}; say {field.dtype}, or libshard.Field({show(name)}, {dtype!r}, ()) for a number that is not a "
            "class"
        )
    return field


def _beside_pixels(name: str, text: str, word: str, of: str | None, shape: tuple[int, ...], kind: FieldKind) -> Field:
    """``boxes[<=6]``, ``mask[96,96]`` or ``image[96,96,3]``: what a transform moves."""
    dtype = dtype_name(of or ("float32" if word == "boxes" else "uint8"))
    if dtype is None or (word == "boxes" and dtype != "float32") or (word == "image" and of):
        wanted = "one of " + ", ".join(_DTYPES) if word == "mask" else "left out"
        fail(f"field {show(name)}: {show(text)}: the dtype {show(of)} must be {wanted}")
    if word == "boxes":
        if shape[1:] not in ((), (4,)) or not shape:
            fail(f"field {show(name)}: {show(text)}: give the greatest number of boxes, as in boxes[<=6], or boxes[6]")
        return Field(name, dtype, (shape[0], 4), kind, "none", "boxes")
    if word == "mask":
        if len(shape) != 2 or kind != "tensor":
            fail(f"field {show(name)}: {show(text)}: give height and width, those of the image, as in mask[96,96]")
        return Field(name, dtype, shape, semantic="mask")
    _, layout, semantic = _core.meaning("image", 1 + _DTYPES.index(dtype), shape)
    if _SEMANTICS[semantic] != "image" or kind != "tensor":
        fail(f"field {show(name)}: {show(text)}: give height, width and 1, 3 or 4 channels, as in image[96,96,3]")
    return Field(name, dtype, shape, kind, _LAYOUTS[layout], "image")


def _from_text(name: str, text: str) -> Field:
    found = _TYPE.match(text.strip())
    if not found:
        fail(
            f"field {show(name)}: {show(text)} is not a type; types look like uint8[32,32,3], int64, float32[<=64,4],"
            " text[<=200], bytes[<=9], boxes[<=6], mask[32,32]"
        )
    word, of, most, axes = found.groups()
    try:
        shape = tuple(int(a) for a in axes.split(",")) if axes is not None else ()
    except ValueError:
        fail(f"field {show(name)}: {show(text)}: the shape must be numbers, as in [32,32,3]")
    if word in _FOLLOWING:
        return _beside_pixels(name, text, word, of, shape, "ragged" if most else "tensor")
    if of:
        fail(f"field {show(name)}: {show(text)}: only a mask has a dtype behind a colon, as in mask:uint16[96,96]")
    if word == "text" and most and len(shape) == 2:
        return Field(name, "uint8", shape, "ragged", "none", "text")
    if word in ("text", "bytes"):
        if len(shape) != 1:
            fail(f"field {show(name)}: {show(text)}: give the greatest number of bytes, as in {word}[<=200]")
        return Field(name, "uint8", shape, "string", "none", "text" if word == "text" else "none")
    dtype = dtype_name(word)
    if not dtype:
        known = ", ".join((*_DTYPES, "text", "bytes", *_FOLLOWING))
        fail(f"field {show(name)}: dtype {show(word)}; must be one of {known}")
    return _as_said(name, dtype, shape, "ragged" if most else "tensor")


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        fail(f"the name of a field must be a str, not {show(name)}")


def _check(f: Field) -> None:
    """Refuse what is not a field: a user may have made it."""
    _check_name(f.name)
    if not _NAME.match(f.name):
        fail(f"field {show(f.name)}: a name must be 1 to 47 of A-Z a-z 0-9 _ . -, and begin with a letter or _")
    for what, known in (("dtype", _DTYPES), ("kind", _KINDS), ("layout", _LAYOUTS), ("semantic", _SEMANTICS)):
        given = getattr(f, what)
        if not isinstance(given, str) or given not in known:
            fail(f"field {show(f.name)}: {what} {show(given)}; must be one of {', '.join(known)}")
    if (
        not isinstance(f.shape, tuple)
        or not all(isinstance(n, int) and 0 <= n < 1 << 63 for n in f.shape)
        or (f.kind != "tensor" and not f.shape)
    ):
        least = ", at least one" if f.kind != "tensor" else ""
        fail(f"field {show(f.name)}: shape {show(f.shape)}; must be a tuple of numbers{least}")
    if not isinstance(f.group, int) or f.group != -1:
        whole(f"field {show(f.name)}: group", f.group)


def _from_spec(name: Any, spec: Any) -> Field:
    """A field of what a user says of it: text, (dtype, shape), a dtype, or a Field."""
    if isinstance(spec, Field):
        _check(spec)
        return spec
    if isinstance(spec, str):
        return _from_text(name, spec)
    dtype, shape = spec if isinstance(spec, tuple) and len(spec) == 2 else (spec, ())
    found = dtype_name(dtype)
    if not found:
        from ._images import Image  # which needs this file

        if isinstance(dtype, Image):
            fail(
                f"field {show(name)}: libshard.Image is for libshard.pack(), not for a Writer; give the samples, columns or "
                "table to pack()"
            )
        fail(f"field {show(name)}: dtype {show(dtype)}; must be one of {', '.join(_DTYPES)}")
    if not isinstance(shape, (tuple, list)):
        fail(f"field {show(name)}: shape {show(shape)}; must be a tuple of numbers, such as (32, 32, 3)")
    return _as_said(name, found, tuple(shape))


def _split(text: str) -> Iterator[tuple[str, str]]:
    """``"image:u8[32,32,3],label:i64"`` at the commas that are in no brackets."""
    for part in re.split(r",(?![^\[]*\])", text):
        name, colon, word = part.partition(":")
        if not colon:
            fail(f"schema {show(text)}: {show(part)} is not a field; give NAME:TYPE, as image:u8[32,32,3]")
        yield name.strip(), word


def parse(schema: SchemaLike) -> dict[str, Field | None]:
    """A user's schema as a dict of name to Field, or to None if a first record is to tell."""
    pairs: list[tuple[str, Any]]
    if isinstance(schema, str):
        pairs = list(_split(schema))
    elif isinstance(schema, Mapping):
        pairs = list(schema.items())
    else:
        try:
            pairs = [(f.name, f) for f in schema]
        except (TypeError, AttributeError):
            fail(
                "schema: give text as 'image:u8[32,32,3],label:i64', "
                "a dict of name to type, a Schema, or a list of Field"
            )
    fields: dict[str, Field | None] = {}
    for name, spec in pairs:
        _check_name(name)
        if name in fields:
            fail(f"schema: field {show(name)} is given twice")
        fields[name] = spec if spec is None else _from_spec(name, spec)
    if not fields:
        fail("schema: has no field; give at least one")
    return fields


class Stored(Sequence[Any]):
    """A column that lies in a file, of which parts are read: in all else it is as a list, or as an array if it has a dtype."""

    dtype: Any = None
    ndim = 1
    shape: tuple[int, ...] = ()


def _nested_shape(name: str, value: Any, record: int) -> tuple[tuple[int, ...], Any]:
    """Of lists of numbers: the shape, and the first number."""
    shape = []
    while isinstance(value, (list, tuple, Stored)):
        if not value:
            raise RecordError(
                f"record {record}, field {show(name)}: an empty list does not show its type; give a schema",
                "bad argument",
            )
        shape.append(len(value))
        value = value[0]
    return tuple(shape), value


def field_of_lists(name: str, dtype: str, column: Sequence[Any]) -> Field | None:
    """The field of a column of lists of numbers, whose source says their dtype; None if the first row does not show a shape."""
    try:
        shape, leaf = _nested_shape(name, column[0], 0) if len(column) else ((), None)
    except RecordError:  # infer() says so again
        return None
    return with_meaning(name, dtype, shape) if isinstance(leaf, (bool, int, float)) else None


def infer(name: str, value: Any, record: int = 0, rows: bool = False) -> Field:
    """The field that a value, or a column of them, would fit.  RecordError if none can be told."""
    if isinstance(value, Stored) and rows and (dtype := dtype_name(value.dtype or "")):
        return with_meaning(name, dtype, value.shape[1:])
    if isinstance(value, range) and rows:
        return with_meaning(name, "int64", ())
    shape, leaf = _nested_shape(name, value, record)
    if isinstance(leaf, (str, bytes)):
        kind = "text" if isinstance(leaf, str) else "bytes"
        if not rows or len(shape) != 1:
            is_label = name == "label" and kind == "text" and not shape
            raise RecordError(
                f"record {record}, field {show(name)}: one record does not tell the greatest length of a "
                f"{type(leaf).__name__}; give it in the schema, as {{{show(name)}: '{kind}[<=200]', ...}}, "
                "with None for fields to take from the record"
                + ("; if it is the name of a class, give all names, as classes=['cat', 'dog']" if is_label else ""),
                "bad argument",
            )
        if name == "label" and kind == "text":
            warnings.warn(
                "field 'label' is packed as text, and the label of most training is the number of a class: classes=[...], with all "
                "names in their order, makes it one; {'label': 'text[<=200]'} in the schema says that text is meant",
                stacklevel=stack_level(),
            )
        most = max((len(v.encode() if isinstance(v, str) else v) for v in value), default=0)
        return Field(name, "uint8", (max(most, 1),), "string", "none", "text" if kind == "text" else "none")
    if isinstance(leaf, bool):
        dtype, inner = "bool", tuple[int, ...]()
    elif isinstance(leaf, int):
        dtype, inner = "int64", ()
    elif isinstance(leaf, float):  # numpy.float64, too
        dtype, inner = "float64", ()
    else:
        try:
            found = _core.describe(leaf)
        except (BufferError, TypeError, ValueError, RuntimeError) as e:
            raise RecordError(
                f"record {record}, field {show(name)}: an array that cannot be read: {e}", "bad argument"
            ) from None
        if found is None:
            raise RecordError(
                f"record {record}, field {show(name)}: a value of type {type(leaf).__name__} is not a number, "
                f"an array or a list of numbers{_instead(name, leaf)}",
                "bad argument",
            )
        dtype, inner = found
        if dtype not in _DTYPES:
            raise RecordError(f"record {record}, field {show(name)}: {dtype}", "bad argument")
    shape += inner
    if rows and not shape:
        raise RecordError(f"field {show(name)}: a single value; a column must have one for each record", "bad argument")
    return with_meaning(name, dtype, shape[1:] if rows else shape)


def _instead(name: str, value: Any) -> str:
    """What to write instead of a value that is not data; py_value.c says the same of later records."""
    if value is None:
        return "; leave the record out, or give a number that means that there is none"
    return f"; give each of its items a name of its own, as '{name}.x'" if isinstance(value, dict) else ""


class Layout:
    """Fields with their places: what a writer needs to know."""

    def __init__(self, fields: Iterable[Field], compress: str | None, align: int) -> None:
        self.named = list(fields)
        self.core = _core.Layout(_entries(self.named), int(compress == "lz4"), align)
        self.schema = Schema(Field(*(f[k] for k in Field.__dataclass_fields__)) for f in self.core.fields())
        self.names = frozenset(self.schema.names)
        for given in self.named:
            if given.group not in (-1, self.schema[given.name].group):
                fail(
                    f"field {show(given.name)}: group={given.group} is given, but not all fields have a group, so all "
                    f"are chosen by size, and this would be {self.schema[given.name].group}; give each field a group, also "
                    "those of lengths, or none"
                )
        self.stride = self.core.stride
        self.label = next((f.name for f in self.named if f.semantic == "label"), None)

    @property
    def text(self) -> str:
        return ",".join(str(f) for f in self.schema)


def _with_lengths(fields: list[Field]) -> list[Field]:
    """Behind each field that varies that of its length, if it is not there, as a dataset has it."""
    out = []
    for i, field in enumerate(fields):
        out.append(field)
        if field.kind != "tensor" and not (i + 1 < len(fields) and fields[i + 1].semantic == "length"):
            out.append(Field(f"{field.name}_length", "uint32", (1,), semantic="length"))
    return out


def _entries(fields: list[Field]) -> list[tuple[str, int, tuple[int, ...], int, int, int, int, int, int]]:
    for f in fields:
        _check(f)
    fields = _with_lengths(fields)
    names = {f.name for f in fields}
    for f in fields:
        if sum(other.name == f.name for other in fields) > 1 and f.semantic == "length":
            of = f.name.removesuffix("_length")
            fail(f"field {f.name!r}: {of!r} varies, and its lengths are a field of this name; choose another one")
    if len(names) != len(fields):
        fail(f"schema: a field is given twice: {', '.join(sorted(f.name for f in fields))}")
    chosen = all(f.group >= 0 for f in fields)
    entries = []
    for i, f in enumerate(fields):
        varies = f.kind != "tensor"
        entries.append(
            (
                f.name,
                1 + _DTYPES.index(f.dtype),
                f.shape,
                _KINDS.index(f.kind),
                _LAYOUTS.index(f.layout),
                _SEMANTICS.index(f.semantic),
                f.group if chosen else -1,
                int(varies),
                i + 1 if varies else 0,
            )
        )
    return entries
