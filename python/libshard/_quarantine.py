# SPDX-License-Identifier: Apache-2.0
"""``on_error="quarantine"``: a folder keeps the samples that ``libshard.pack`` leaves out, as far as they can be kept.

    OUT.quarantine/quarantine.jsonl   a line for each sample: its number, key, reason, traceback, files
    OUT.quarantine/57/image.jpg       an item of sample 57

The folder is made as ``.OUT.quarantine``, and gets its name when all of it is there.  Until then each
process adds the samples of the shards that it fills, and the lines of shard 3 are in ``00003.jsonl``.
The receipt of a shard has the hash of its lines.  A folder of a sample that no receipt names is of a
process that died, and is removed at the end.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import math
import os
import re
import shutil
import traceback
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, BinaryIO

from ._errors import ExistsError, of_system, shown
from ._images import MAGIC
from ._options import show
from ._writer import sync_folder

LIST = "quarantine.jsonl"  # as that of shardpack --quarantine
_OURS = re.compile(r"[0-9]+\Z|[0-9]{5,}\.jsonl\Z|quarantine\.jsonl\Z")
_FILE = re.compile(r"(?!item-)[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\Z")  # items of other names are item-N
_VALUE_CHARACTERS = 1000  # of JSON that stays in a line
_TRACEBACK_CHARACTERS = 20_000  # the last ones are kept
_ITEMS = 64  # of a tuple, each of which is an item of its own


class Quarantine:
    """That of one dataset.  Each process has its own object."""

    def __init__(self, out: str, shown: str) -> None:
        self.out, self.given = out, shown
        folder, name = os.path.split(out)
        self.final, self.folder = f"{out}.quarantine", os.path.join(folder, f".{name}.quarantine")
        shown = f"{shown.rstrip('/')}.quarantine"
        self.shown = shown if os.path.abspath(shown) == self.final else self.final
        self.path, self.hash = "", hashlib.sha256()  # of the lines of a shard
        self.lines: BinaryIO | None = None
        self.is_open = False

    def __reduce__(self) -> tuple[Any, ...]:
        return Quarantine, (self.out, self.given)

    # ---- the samples of a shard ----

    def begin(self, k: int) -> None:
        """What there is of shard ``k`` is of a process that died."""
        self.close()
        self.path, self.hash = self._lines_of(k), hashlib.sha256()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def keep(self, i: int, key: Any, error: Exception, message: str, trace: str, sample: Any) -> None:
        """Sample ``i``, of which the source gave ``sample``; None if it raised."""
        line = {"sample": i, "key": key if isinstance(key, str | None) else show(key), "reason": type(error).__name__,
                "message": message}  # fmt: skip
        try:
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(os.path.join(self.folder, str(i)))
            line |= self._keep_items(i, sample)
            text = json.dumps({**line, "traceback": trace[-_TRACEBACK_CHARACTERS:]}).encode() + b"\n"
            if self.lines is None:
                self.lines = open(self.path, "xb")
            self.lines.write(text)
            self.hash.update(text)
        except OSError as e:
            raise self._failed(e, f"sample {i} cannot be kept there") from e

    def _keep_items(self, i: int, sample: Any) -> dict[str, dict[str, Any]]:
        files, values, lost = dict[str, str](), dict[str, Any](), dict[str, str]()
        folder, used = os.path.join(self.folder, str(i)), set[str]()
        for place, (name, value) in enumerate(_items(sample, lost)):
            base = name if _FILE.match(name) and name.lower() not in used else f"item-{place}"
            used.add(name.lower())
            try:
                ending, data = _content(value)
            except MemoryError:
                raise
            except Exception as e:
                lost[name] = f"a value of type {type(value).__name__}; {_said(e)}"
                continue
            if not ending:
                values[name] = data
                continue
            if not files:
                os.mkdir(folder)
            files[name] = f"{i}/{base}.{ending}"
            with open(os.path.join(self.folder, files[name]), "xb") as f:
                f.write(data)
                f.flush()
                os.fsync(f.fileno())
        if files:
            sync_folder(folder)
        return {"files": files, "values": values, "not_kept": lost}

    def end(self) -> str | None:
        """All that was kept of the shard is durable now.  The hash of its lines; None if there are none."""
        if self.lines is None:
            return None
        try:
            self.lines.flush()
            os.fsync(self.lines.fileno())
            sync_folder(self.folder)
            self.close()
        except OSError as e:
            raise self._failed(e, "what is in it cannot be made durable") from e
        return self.hash.hexdigest()

    def close(self) -> None:
        lines, self.lines = self.lines, None
        if lines is not None:
            with contextlib.suppress(OSError):  # of a full disk, again: it writes what it still holds
                lines.close()

    # ---- the parent's ----

    def open(self, is_new: bool, published: Iterable[str]) -> None:
        """Before anything is packed.  ``published``: hashes of lists that this call, begun earlier, had given their name."""
        try:
            if not os.path.lexists(self.folder) and self._hash_of_list() in published:
                os.rename(self.final, self.folder)
            self._refuse_others()
            if is_new:
                self.remove()
            os.makedirs(self.folder, exist_ok=True)
            self.is_open = True
        except OSError as e:
            raise of_system(e, f"{self.shown}: cannot be made, first as {os.path.basename(self.folder)}") from e

    def _hash_of_list(self) -> str:
        try:
            with open(os.path.join(self.final, LIST), "rb") as f:
                return hashlib.file_digest(f, "sha256").hexdigest()
        except OSError:
            return ""

    def _refuse_others(self) -> None:
        if not os.path.lexists(self.final):
            return
        if os.path.islink(self.final) or not os.path.isdir(self.final) or os.listdir(self.final):
            raise ExistsError(
                f"{self.shown}: holds samples that an earlier call left out, or something else, and was not touched; move it "
                "away or remove it, or write to another folder",
                "exists already",
            )

    def has(self, receipt: Mapping[str, Any]) -> bool:
        """Is all there that was kept of a shard?"""
        try:
            with open(self._lines_of(receipt["shard"]), "rb") as f:
                if hashlib.file_digest(f, "sha256").hexdigest() != receipt.get("quarantine"):
                    return False
                f.seek(0)
                return all(os.path.isfile(os.path.join(self.folder, name)) for line in f for name in json.loads(line)["files"].values())
        except FileNotFoundError:
            return False

    def publish(self, receipts: list[dict[str, Any]], told: Callable[[dict[str, Any]], None]) -> bool:
        """Give it its name, if a sample was left out.  ``told`` gets a line by which a later call knows it."""
        samples = {i for receipt in receipts for i, _ in receipt["skipped"]}
        if not samples:
            self.forget()
            return False
        self._refuse_others()
        try:
            self._join([receipt["shard"] for receipt in receipts if receipt["skipped"]], told)
            for name in os.listdir(self.folder):
                path = os.path.join(self.folder, name)
                if name.endswith(".jsonl") and name != LIST:
                    os.unlink(path)
                elif name.isdecimal() and int(name) not in samples:
                    shutil.rmtree(path)
            sync_folder(self.folder)
            os.rename(self.folder, self.final)
            sync_folder(os.path.dirname(self.final))
        except OSError as e:
            raise self._failed(e, "the folder cannot be completed") from e
        return True

    def _join(self, shards: list[int], told: Callable[[dict[str, Any]], None]) -> None:
        hash_ = hashlib.sha256()
        with open(os.path.join(self.folder, LIST), "wb") as out:
            for k in shards:
                with open(self._lines_of(k), "rb") as f:
                    for line in f:
                        out.write(line)
                        hash_.update(line)
            out.flush()
            os.fsync(out.fileno())
        told({"quarantine": hash_.hexdigest()})

    def remove(self) -> bool:
        """What is not finished.  Was there something in it?"""
        try:
            names = os.listdir(self.folder)
            foreign = sorted(name for name in names if not _OURS.match(name))
            if foreign:
                raise ExistsError(
                    f"{self.folder}: holds {show(foreign[0])}, which is not of a quarantine; nothing was touched", "exists already"
                )
            shutil.rmtree(self.folder)
        except OSError as e:
            if e.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):  # there is no such folder
                return False
            raise of_system(e, f"{self.folder}: what an earlier call kept cannot be removed") from e
        return bool(names)

    def forget(self) -> bool:
        """Remove what an earlier call kept, for a call that keeps nothing.  What is not of a quarantine is left alone."""
        try:
            return self.remove()
        except ExistsError:
            return False

    def _lines_of(self, k: int) -> str:
        return os.path.join(self.folder, f"{k:05}.jsonl")

    def _failed(self, e: OSError, what: str) -> OSError:
        return of_system(e, f"{self.shown}: {what}; complete shards stay, and the same call goes on with them")


# ---- items as files ----


def _items(sample: Any, lost: dict[str, str]) -> list[tuple[str, Any]]:
    """The names of a sample's items, each once, and their values."""
    if sample is None:
        return []
    try:
        if isinstance(sample, Mapping):
            pairs = list(sample.items())
        elif isinstance(sample, (tuple, list)) and len(sample) <= _ITEMS:
            pairs = list(enumerate(sample))
        else:
            pairs = [("sample", sample)]
    except Exception as e:  # of a mapping that makes its items when it is asked
        lost["sample"] = f"a value of type {type(sample).__name__}; {_said(e)}"
        return []
    named = dict[str, Any]()
    for place, (name, value) in enumerate(pairs):
        name = name if isinstance(name, str) else show(name)
        named[name if name not in named else f"item-{place}"] = value
    return list(named.items())


def _said(e: Exception) -> str:
    return shown(" ".join("".join(traceback.format_exception_only(e)).split()))[:_VALUE_CHARACTERS]


def _content(value: Any) -> tuple[str, Any]:
    """The ending and the bytes of a file; or no ending, and a small value for JSON.  Raises if it is neither."""
    if isinstance(value, memoryview) and value.ndim == value.itemsize == 1:
        value = value.tobytes()
    if isinstance(value, (bytes, bytearray)):
        found = MAGIC.match(value)
        return found.lastgroup if found and found.lastgroup else "bin", value
    try:
        plain = _plain(value)
        text = json.dumps(plain)
    except (TypeError, ValueError, RecursionError):
        return "npy", _npy(value)
    if len(text) <= _VALUE_CHARACTERS:
        return "", plain
    return ("txt", value.encode(errors="surrogatepass")) if isinstance(value, str) else ("json", text.encode())


def _plain(value: Any) -> Any:
    """As JSON has it, which has no NaN.  TypeError if it has no such thing."""
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () and not isinstance(value, str):
        value = value.item()
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(float(value))
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {name: _plain(v) for name, v in value.items()}
    raise TypeError(type(value).__name__)


def _npy(value: Any) -> bytes:
    """An array as NumPy saves it, without pickle."""
    is_array = isinstance(value, (list, tuple)) or hasattr(value, "__array__") or hasattr(value, "__array_interface__")
    if not is_array:
        with contextlib.suppress(TypeError):
            value = memoryview(value)
        if not isinstance(value, memoryview):
            raise TypeError("it is not a number, a text, bytes or an array")
    numpy: Any = import_module("numpy")
    with io.BytesIO() as out:
        numpy.save(out, numpy.asarray(value.detach() if hasattr(value, "detach") else value), allow_pickle=False)
        return out.getvalue()
