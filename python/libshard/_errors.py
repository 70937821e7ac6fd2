# SPDX-License-Identifier: Apache-2.0
"""Exceptions.  Each says in its message what is wrong, where, what the limit is, and what to do.

``except libshard.Error`` takes all of them.  Those with a standard counterpart are one of these
too, so that code which knows nothing of libshard does the right thing: a missing dataset is a
``FileNotFoundError``.
"""

from __future__ import annotations

import errno
import functools
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._description import VerifyReport

_NAMED = dict(zip("\a\b\t\n\v\f\r", "abtnvfr"))


@functools.cache
def _hidden() -> re.Pattern[str]:
    """What a terminal or a browser obeys or hides; and surrogates, which stand for bytes of a path
    that are not UTF-8."""
    from ._core import HIDDEN  # which needs the classes below while it begins

    return re.compile("[" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in HIDDEN) + "\ud800-\udfff]")


def _escaped(found: re.Match[str]) -> str:
    c, point = found[0], ord(found[0])
    if c in _NAMED:
        return "\\" + _NAMED[c]
    if point < 0x80 or 0xDC80 <= point <= 0xDCFF:  # the latter is a byte that Python could not decode
        return f"\\{point & 0xFF:03o}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def shown(text: str, exact: bool = False) -> str:
    """Text from a file or a user as one line that is safe to print, as shardcat shows it.

    ``exact``: of data, such as a key: a backslash is doubled.  Else text that was made safe before
    stays as it is, as in messages.
    """
    return _hidden().sub(_escaped, text.replace("\\", "\\\\") if exact else text)


# What the library calls things in its messages, and what they are called here.
_IN_PYTHON = {
    "batch_records": "batch_size",
    "thread_count": "threads",
    **{f"order.{name}": name for name in ("seed", "shuffle", "run_records", "phase_unit_records", "window_runs")},
    "order.lane_count": "lanes",
    "repair.on_corrupt": "on_corrupt",
    "repair.corrupt_most": "corrupt_most",
    "gpu.pool_bytes": "pool_bytes",
    "gpu.pin_most": "pin_most",
    "transform.as_stored": "transform_as_stored",
    "leave shuffle, runs, windows and lanes at 0 to take the token's":
        "leave out shuffle, run_records, phase_unit_records, window_runs and lanes to take the state's",
    "the token belongs to": "the state belongs to",  # load_state_dict() takes the state that the token is in
    "the token names": "the state names",
    "the loader's token belongs to": "the loader's state belongs to",
    "leave pixels at 0 to take the token's": "leave out pixels to take the state's",
    "not a complete token of": "the state has no complete token of",
    "shard_loader_token()": "state_dict()",
    "guard set to SHARD_GUARD_OFF": "guard=False",
    "gpu.device = SHARD_GPU(n)": "device='cuda:N'",
    "or begin a new epoch": "or begin an epoch with set_epoch()",
    "SHARD_PAD": "tail='pad'",
    "SHARD_KEEP": "tail='keep'",
    "SHARD_DROP": "tail='drop'",
    "SHARD_SHUFFLE_WINDOWS": "shuffle='windows'",
    "SHARD_SEQUENTIAL": "shuffle=False",
    "SHARD_CROP_RESIZED": "crop='random-resized'",
    "SHARD_CORRUPT_MASK": "on_corrupt='mask'",
    "SHARD_U8": "dtype='u8'",
    "shard_loader_lend()": "memory=",
}
# Whole words, which are not part of a path or of a name.
_NAMES = re.compile(rf"(?<![\w/.'\"-])({'|'.join(map(re.escape, _IN_PYTHON))})(?![\w/.'\"-])")


class Error(Exception):
    """What libshard says; ``status`` is the kind in words, ``os_code`` the system's errno or 0."""

    message: str
    status: str
    os_code: int
    report: VerifyReport  #: only of exceptions that ``Dataset.verify`` raised

    def __init__(self, message: str = "", status: str = "", os_code: int = 0) -> None:
        super().__init__(shown(message))
        self._keep(message, status, os_code)

    def _keep(self, message: str, status: str, os_code: int) -> None:
        message = _NAMES.sub(lambda name: _IN_PYTHON[name[0]], message.removeprefix("options: "))
        self.message, self.status, self.os_code = shown(message), status, os_code

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.status, self.os_code)

    def __str__(self) -> str:
        return self.message


class ArgumentError(Error, ValueError):
    """Fix the call: an option, an index, or a call at the wrong time."""


class ClosedError(ArgumentError):
    """The dataset or loader was closed before."""


class RecordError(ArgumentError):
    """A record that does not fit the schema; it was not written, and the writer can go on with the
    next.

    ``record`` is its number, ``field`` the name of the field, or None.
    """

    record: int | None = None
    field: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return *super().__reduce__(), {"record": self.record, "field": self.field}


class OutOfMemoryError(Error, MemoryError):
    """Ask for less: smaller batches, fewer of them."""


class StorageError(Error, OSError):
    """The system refused; ``errno`` says why."""

    def __init__(self, message: str = "", status: str = "", os_code: int = 0) -> None:
        OSError.__init__(self, os_code, shown(message))
        self._keep(message, status, os_code)


class NotFoundError(StorageError, FileNotFoundError):
    """There is no such file or folder."""


class ExistsError(StorageError, FileExistsError):
    """Something else has that name already; nothing was touched."""


def of_system(error: OSError, what: str) -> StorageError:
    """What Python's own functions raise, as an exception of ours."""
    if isinstance(error, StorageError):
        return error
    kinds: dict[int | None, type[StorageError]] = {errno.ENOENT: NotFoundError, errno.EEXIST: ExistsError}
    kind = kinds.get(error.errno, StorageError)
    return kind(f"{what}: {error.strerror or error}", "i/o error", error.errno or 0)


class CorruptError(Error):
    """Bytes break the format, or do not have the hash that they had when they were written."""


class UnsupportedError(Error):
    """The data is well-formed, but needs a newer or fuller build of libshard."""


class MismatchError(Error):
    """Intact, but not as expected: another dataset or order, a shard not in the manifest."""


class DeviceError(Error):
    """The GPU's driver refused, or there is none."""
