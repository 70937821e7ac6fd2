# SPDX-License-Identifier: Apache-2.0
"""An LMDB database whose values are files of images.

What keys and values mean is up to the program that wrote them: here each value is an image, and
its key names the record.  Pages are read as LMDB 0.9 writes them on a machine of 64 bits, little
end first.  Two meta pages name the root of a B+tree; a large value lies in overflow pages, which
follow each other.  No page has a hash, so every number is compared with its limit.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NoReturn

from .convert import Part, Record, Source

_MAGIC, _VERSION, _HEAD = 0xBEEFC0DE, 1, 16
_BRANCH, _LEAF, _OVERFLOW = 1, 2, 4
_BIG, _SUB, _DUPLICATES = 1, 2, 4  # flags of a node
_NONE = (1 << 64) - 1
_DEPTH_MAX = 32


class _Tree:
    def __init__(self, source: Source, path: str, data: memoryview) -> None:
        self.source, self.path, self.data = source, path, data
        self.walked = 0
        best = (-1, 0, 0, 0, 0)
        for at in self._metas():
            magic, version = struct.unpack_from("<II", data, at + _HEAD)
            if magic != _MAGIC or version != _VERSION:
                self.fail(f"its meta page at byte {at} has magic {magic:#x} and version {version}, not {_MAGIC:#x} and "
                          f"{_VERSION}")  # fmt: skip
            main, last_and_txn = at + _HEAD + 24 + 48, at + _HEAD + 24 + 96
            flags, depth = struct.unpack_from("<HH", data, main + 4)
            entries, root = struct.unpack_from("<QQ", data, main + 32)
            best = max(best, (struct.unpack_from("<Q", data, last_and_txn + 8)[0], flags, depth, entries, root))
        _, flags, self.depth, self.entries, self.root = best
        if flags & _DUPLICATES or self.depth > _DEPTH_MAX:
            self.fail(f"its tree has flags {flags:#x} and depth {self.depth}; a key with several values is not read")

    def fail(self, text: str) -> NoReturn:
        self.source.fail(self.path, text)

    def _metas(self) -> tuple[int, int]:
        if len(self.data) < 2 * 4096:
            self.fail(f"has {len(self.data)} bytes, less than two pages: it is cut, or not an LMDB database")
        self.page = struct.unpack_from("<I", self.data, _HEAD + 24)[0]
        if self.page not in (1 << n for n in range(8, 17)) or len(self.data) < 2 * self.page:
            self.fail(f"has pages of {self.page} bytes: it is damaged, or not an LMDB database")
        return 0, self.page

    def _open(self, number: int, kinds: int) -> tuple[int, int]:
        """Where the page is, and its flags."""
        at = number * self.page
        if at + self.page > len(self.data):
            self.fail(f"page {number} lies beyond the end of the file, which has {len(self.data)} bytes: it is cut")
        own, _, flags = struct.unpack_from("<QHH", self.data, at)
        if own != number or not flags & kinds:
            self.fail(f"page {number} calls itself {own} and has flags {flags:#x}: the file is damaged")
        return at, flags

    def _nodes(self, at: int) -> Iterator[tuple[int, int, int, memoryview, int]]:
        """lo + hi, flags, where the data begin, the key, and where the page ends, of each node of a page."""
        lower, upper = struct.unpack_from("<HH", self.data, at + 12)
        if not _HEAD <= lower <= upper <= self.page:
            self.fail(f"page {at // self.page} has nodes from {lower} and {upper}: the file is damaged")
        for place in self.data[at + _HEAD : at + lower - lower % 2].cast("H"):
            if not upper <= place <= self.page - 8:
                self.fail(f"page {at // self.page} has a node at {place}: the file is damaged")
            low, high, flags, key = struct.unpack_from("<4H", self.data, at + place)
            begin = at + place + 8
            if begin + key > at + self.page:
                self.fail(f"page {at // self.page} has a key of {key} bytes at {place}: the file is damaged")
            yield low | high << 16, flags, begin + key, self.data[begin : begin + key], at + self.page

    def walk(self, number: int, depth: int) -> Iterator[tuple[memoryview, Part]]:
        if depth > self.depth:
            self.fail(f"page {number} is deeper than the {self.depth} levels of the tree: the file is damaged")
        at, flags = self._open(number, _BRANCH | _LEAF)
        self.walked += 1
        if self.walked > len(self.data) // self.page:
            self.fail(f"page {number} is in several branches: the file is damaged")
        for size, node, begin, key, end in self._nodes(at):
            if flags & _BRANCH:
                yield from self.walk(size | node << 32, depth + 1)
                continue
            if node & (_SUB | _DUPLICATES):
                self.fail(f"key {bytes(key)!r} is a database of its own, or has several values, which is not read")
            if node & _BIG:
                if begin + 8 > end:
                    self.fail(f"page {number} is cut: the file is damaged")
                big = struct.unpack_from("<Q", self.data, begin)[0]
                begin, _ = self._open(big, _OVERFLOW)
                end = begin + struct.unpack_from("<I", self.data, begin + 12)[0] * self.page
                begin += _HEAD
            if begin + size > end or end > len(self.data):
                self.fail(f"the value of key {bytes(key)!r}, {size} bytes at byte {begin}, is not within its pages: the file is "
                          "cut or damaged")  # fmt: skip
            yield key, Part(begin, self.data[begin : begin + size])


def records(source: Source) -> Iterator[Record]:
    path = source.files[0] if source.files else "data.mdb"
    with source.map(path) as data:
        tree, count = _Tree(source, path, data), 0
        for key, part in tree.walk(tree.root, 1) if tree.root != _NONE else ():
            count += 1
            if count > tree.entries:
                tree.fail(f"has more than the {tree.entries} entries that it says: the file is damaged")
            try:
                name = bytes(key).decode()
            except UnicodeDecodeError:
                name = bytes(key).hex()
            if name.startswith("__"):
                source.note(f"entry {name!r} is left out")
                continue
            if count == 1 and part.data[:1] == b"\x80" and part.data[-1:] == b".":
                tree.fail(f"the value of key {name!r} is a pickle, which can run any code when it is read; read it with the "
                          "program that wrote it, and give the samples to libshard.pack()")  # fmt: skip
            values: dict[str, Any] = {"value": part}
            yield Record(path, name, values)
        if count != tree.entries:
            tree.fail(f"has {count} entries, and says that it has {tree.entries}: the file is damaged")
