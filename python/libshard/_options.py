# SPDX-License-Identifier: Apache-2.0
"""What callers give, checked before C sees it.

Whatever it is, the answer is the value as C takes it, or an exception whose message names the
option, shows the value on one short line, and says what to give.  That is a TypeError for a wrong
type, and an :class:`ArgumentError`, which is a ValueError, for a wrong value.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import operator
import os
import reprlib
import sys
from collections.abc import Callable, Iterable, Mapping, Set
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, SupportsIndex, TypeVar

from ._errors import ArgumentError, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

P = ParamSpec("P")
T = TypeVar("T")

_SHOWN = 60  # characters of a value
_short = reprlib.Repr()  # never walks all of a long list, nor sorts all of a large dict
_short.maxstring = _short.maxother = 4 * _SHOWN
_short.maxlist = _short.maxtuple = _short.maxdict = _short.maxset = _short.maxfrozenset = 8


def show(value: object) -> str:
    """A value for a message: its repr, on one line that is safe to print and not long."""
    try:
        text = " ".join(_short.repr(value).split())
    except Exception:  # of a __repr__ that fails, or of too many digits
        text = f"<int of {value.bit_length()} bits>" if isinstance(value, int) else f"<{type(value).__name__}>"
    text = shown(text)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def whole(option: str, value: SupportsIndex, bits: int = 32, least: int = 0) -> int:
    """A number as C will see it: what does not fit must not wrap around.  True is not 1: it was meant for an
    option of another kind."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{option}={show(value)}; must be a whole number") from None
    if not least <= number < 1 << bits:
        raise ArgumentError(f"{option}={show(number)}; must be {least} to {(1 << bits) - 1}", "bad argument")
    return number


def as_number(option: str, value: Any) -> float:
    """A finite number, of any type that is one."""
    try:
        if isinstance(value, (str, bytes, bytearray)):  # float() would read digits in them
            raise TypeError
        got = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{option}={show(value)}; must be a number") from None
    except OverflowError:
        got = math.inf
    if not math.isfinite(got):
        raise ArgumentError(f"{option}={show(value)}; must be finite", "bad argument")
    return got


def as_flag(option: str, value: Any) -> bool:
    """True or False, also NumPy's, or 1 and 0.  Of other things nobody knows whether they are true."""
    kind = type(value)
    if kind is bool or kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_"):
        return bool(value)
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if number not in (0, 1):
        raise TypeError(f"{option}={show(value)}; must be True or False")
    return number == 1


def choice(option: str, value: str, names: Sequence[str]) -> int:
    if not isinstance(value, str) or value not in names:
        raise ArgumentError(f"{option}={show(value)}; must be one of {', '.join(map(repr, names))}", "bad argument")
    return names.index(value)


def as_text(option: str, value: str, what: str = "text") -> str:
    """Text that C can have: without NUL, and encodable."""
    if not isinstance(value, str):
        raise TypeError(f"{option}={show(value)}; must be {what}, a str")
    if not _is_text(value):
        raise ArgumentError(f"{option}={show(value)}; must be {what}, without NUL and surrogates", "bad argument")
    return value


def _is_text(value: str) -> bool:
    """Can C have it?"""
    if value.isprintable():
        return True
    try:
        return b"\0" not in value.encode()
    except UnicodeEncodeError:
        return False


def as_names(option: str, value: str | Iterable[str], example: str, *, ordered: bool = False) -> list[str]:
    """Names: one, or several.  ``ordered``: one text is not a name, and a set is refused."""
    if isinstance(value, str) and not ordered:
        value = [value]
    is_wrong = isinstance(value, (str, bytes, bytearray)) or ordered and isinstance(value, (Set, Mapping))
    found = None if is_wrong else _items(value)
    must = f"must be names{', in their order' * ordered}, as {example}"
    if found is None:
        raise TypeError(f"{option}={show(value)}; {must}")
    for name in found:
        if not isinstance(name, str) or not _is_text(name):
            fault = "has a NUL or a surrogate" if isinstance(name, str) else "is not a str"
            raise ArgumentError(f"{option}: {show(name)} {fault}; {must}", "bad argument")
    return found


def _items(value: Any) -> list[Any] | None:
    """None if it cannot be iterated.  What an iterator raises by itself passes through."""
    try:
        items = iter(value)
    except TypeError:
        return None
    return list(items)


def as_items(option: str, value: Any, what: str) -> list[Any]:
    """Any number of things, such as ``what``."""
    found = None if isinstance(value, (str, bytes, bytearray, Mapping)) else _items(value)
    if found is None:
        raise TypeError(f"{option}={show(value)}; must be {what}")
    return found


def as_path(option: str, value: Any) -> str:
    """A path as text, in which bytes that are not UTF-8 are surrogates."""
    try:
        name = os.fsdecode(value)
        os.fsencode(name)
    except TypeError:
        raise TypeError(f"{option}={show(value)}; must be a path: a str, or a pathlib.Path") from None
    except UnicodeEncodeError:
        raise ArgumentError(f"{option}={show(value)}; a path has no such character", "bad argument") from None
    if "\0" in name:
        raise ArgumentError(f"{option}={show(value)}; a path has no NUL", "bad argument")
    return name


def check_function(option: str, value: Any, takes: str) -> None:
    """Refuse what cannot be called as ``f(a, b)`` with the arguments that ``takes`` names.

    What the function itself raises later is its own affair.
    """
    if not callable(value):
        raise TypeError(f"{option}={show(value)}; must be a function f({takes})")
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # of some that are written in C
        return
    try:
        signature.bind(*takes.split(", "))
    except TypeError:
        raise TypeError(
            f"{option}={show(value)}; must be a function f({takes}), and this takes {show_signature(signature)}"
        ) from None


def show_signature(signature: inspect.Signature) -> str:
    return "(" + ", ".join(str(p.replace(annotation=p.empty)) for p in signature.parameters.values()) + ")"


def number_in(count: int, number: SupportsIndex, what: str, where: Callable[[], str]) -> int:
    """Of a record or place, from 0.  Numbers below 0 count from the end.  ``where``: says whose, such as a path."""
    try:
        if isinstance(number, bool):
            raise TypeError
        return range(count)[operator.index(number)]
    except TypeError:
        raise TypeError(f"{what} {show(number)} of {where()}; must be a whole number") from None
    except IndexError:
        raise IndexError(f"there is no {what} {show(number)}; {where()} has {count}") from None


def stack_level() -> int:
    """For a warning: that of the first caller who is not in this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "libshard":
        frame, level = frame.f_back, level + 1
    return level


def refuse_option(call: str, name: str, known: Iterable[str], elsewhere: Mapping[str, str] | None = None) -> NoReturn:
    """Of an option that a call does not have; ``known`` are the ones that it has.

    ``elsewhere``: of options of other libraries, what is here instead.
    """
    known = list(known)
    near = difflib.get_close_matches(name, known, 1)
    said = f"; did you mean {near[0]}=?" if near else f"; there are {', '.join(known)}"
    if elsewhere and name in elsewhere:
        said = f": {elsewhere[name]}"
    raise TypeError(f"{call} has no option {shown(name)[:_SHOWN]}={said}")


def public(
    call: str, refuse: Callable[[Any, str], NoReturn] | None = None
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Names a function in messages about its arguments as its users do.

    They come from Python, which knows it under other names, such as ``Dataset.__new__``.  What is
    raised inside of the function passes through, and a call that is right costs nothing more.
    ``refuse(self, name)`` is called for an option that is not there, if subclasses have more.
    """

    def named(inner: Callable[P, T]) -> Callable[P, T]:
        parameters = inspect.signature(inner).parameters
        skip = next(iter(parameters), "") in ("self", "cls")
        given = list(parameters.values())[skip:]
        known = [p.name for p in given if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
        is_open = any(p.kind is p.VAR_KEYWORD for p in given)
        takes = ", ".join(str(p.replace(annotation=p.empty)) for p in given)

        @functools.wraps(inner)
        def outer(*args: P.args, **options: P.kwargs) -> T:
            try:
                return inner(*args, **options)
            except TypeError as e:
                if e.__traceback__ is None or e.__traceback__.tb_next is not None:
                    raise
            for name in options:
                if name not in known and not is_open:
                    if refuse is not None:
                        refuse(args[0], name)
                    refuse_option(call, name, known)
            lacking = [p.name for p in given[max(0, len(args) - skip) :] if p.default is p.empty and p.name in known]
            lacking = [name for name in lacking if name not in options]
            said = f"give it {' and '.join(lacking)}" if lacking else "these are too many arguments"
            if len(given) == 1 and not lacking:
                said = f"give it one argument, not {len(args) - skip}"
            raise TypeError(f"{call}: {said}; it takes {takes}"[:500])

        return outer

    return named
