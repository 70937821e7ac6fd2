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
from typing import NoReturn

from ._convert_files import Batch, File, Part, Source, Values
from ._convert_samples import gather

_MAGIC, _VERSION, _HEAD = 0xBEEFC0DE, 1, 16
_BRANCH, _LEAF, _OVERFLOW = 1, 2, 4
_BIG, _SUB, _DUPLICATES = 1, 2, 4  # flags of a node
_NONE = (1 << 64) - 1
_DEPTH_MAX = 32


class _Tree:
    def __init__(self, file: File) -> None:
        self.file, self.size = file, file.size
        self.walked = 0
        best = (-1, 0, 0, 0, 0)
        for at in self._metas():
            meta = file.peek((at + _HEAD, 136))
            magic, version = struct.unpack_from("<II", meta)
            if magic != _MAGIC or version != _VERSION:
                self.fail(f"its meta page at byte {at} has magic {magic:#x} and version {version}, not {_MAGIC:#x} and "
                          f"{_VERSION}")  # fmt: skip
            main, last_and_txn = 24 + 48, 24 + 96
            flags, depth = struct.unpack_from("<HH", meta, main + 4)
            entries, root = struct.unpack_from("<QQ", meta, main + 32)
            best = max(best, (struct.unpack_from("<Q", meta, last_and_txn + 8)[0], flags, depth, entries, root))
        _, flags, self.depth, self.entries, self.root = best
        if flags & _DUPLICATES or self.depth > _DEPTH_MAX:
            self.fail(f"its tree has flags {flags:#x} and depth {self.depth}; a key with several values is not read")

    def fail(self, text: str) -> NoReturn:
        self.file.source.fail(self.file.path, text)

    def _metas(self) -> tuple[int, int]:
        if self.size < 2 * 4096:
            self.fail(f"has {self.size} bytes, less than two pages: it is cut, or not an LMDB database")
        self.page = struct.unpack("<I", self.file.peek((_HEAD + 24, 4)))[0]
        if self.page not in (1 << n for n in range(8, 17)) or self.size < 2 * self.page:
            self.fail(f"has pages of {self.page} bytes: it is damaged, or not an LMDB database")
        return 0, self.page

    def _open(self, number: int, kinds: int) -> tuple[int, bytes]:
        """Where the page is, and its head, or if it is one of the tree, all of it."""
        at = number * self.page
        if at + self.page > self.size:
            self.fail(f"page {number} lies beyond the end of the file, which has {self.size} bytes: it is cut")
        data = self.file.peek((at, _HEAD)) if kinds == _OVERFLOW else bytes(self.file.view(at, self.page))
        own, _, flags = struct.unpack_from("<QHH", data)
        if own != number or not flags & kinds:
            self.fail(f"page {number} calls itself {own} and has flags {flags:#x}: the file is damaged")
        return at, data

    def _nodes(self, number: int, page: bytes) -> Iterator[tuple[int, int, int, bytes]]:
        """lo + hi, flags, where in the page the data begin, and the key, of each node of a page."""
        lower, upper = struct.unpack_from("<HH", page, 12)
        if not _HEAD <= lower <= upper <= self.page:
            self.fail(f"page {number} has nodes from {lower} and {upper}: the file is damaged")
        for place in memoryview(page)[_HEAD : lower - lower % 2].cast("H"):
            if not upper <= place <= self.page - 8:
                self.fail(f"page {number} has a node at {place}: the file is damaged")
            low, high, flags, key = struct.unpack_from("<4H", page, place)
            begin = place + 8
            if begin + key > self.page:
                self.fail(f"page {number} has a key of {key} bytes at {place}: the file is damaged")
            yield low | high << 16, flags, begin + key, page[begin : begin + key]

    def walk(self, number: int, depth: int) -> Iterator[tuple[bytes, Part]]:
        if depth > self.depth:
            self.fail(f"page {number} is deeper than the {self.depth} levels of the tree: the file is damaged")
        at, page = self._open(number, _BRANCH | _LEAF)
        is_branch = page[10] & _BRANCH
        self.walked += 1
        if self.walked > self.size // self.page:
            self.fail(f"page {number} is in several branches: the file is damaged")
        for size, node, place, key in self._nodes(number, page):
            if is_branch:
                yield from self.walk(size | node << 32, depth + 1)
                continue
            if node & (_SUB | _DUPLICATES):
                self.fail(f"key {key!r} is a database of its own, or has several values, which is not read")
            begin, end = at + place, at + self.page
            if node & _BIG:
                if begin + 8 > end:
                    self.fail(f"page {number} is cut: the file is damaged")
                begin, head = self._open(struct.unpack_from("<Q", page, place)[0], _OVERFLOW)
                end = begin + struct.unpack_from("<I", head, 12)[0] * self.page
                begin += _HEAD
            if begin + size > end or end > self.size:
                self.fail(f"the value of key {key!r}, {size} bytes at byte {begin}, is not within its pages: the file is "
                          "cut or damaged")  # fmt: skip
            yield key, (begin, size)


def _records(source: Source, file: File) -> Iterator[tuple[str, Values]]:
    tree, count = _Tree(file), 0
    for key, part in tree.walk(tree.root, 1) if tree.root != _NONE else ():
        count += 1
        if count > tree.entries:
            tree.fail(f"has more than the {tree.entries} entries that it says: the file is damaged")
        try:
            name = key.decode()
        except UnicodeDecodeError:
            name = key.hex()
        if name.startswith("__"):
            source.note(f"entry {name!r} is left out")
            continue
        if count == 1 and part[1] and file.peek(part, 1) == b"\x80" and file.peek((sum(part) - 1, 1)) == b".":
            tree.fail(f"the value of key {name!r} is a pickle, which can run any code when it is read; read it with the "
                      "program that wrote it, and give the samples to libshard.pack()")  # fmt: skip
        yield name, {"value": part}
    if count != tree.entries:
        tree.fail(f"has {count} entries, and says that it has {tree.entries}: the file is damaged")


def batches(source: Source) -> Iterator[Batch]:
    with File(source, source.files[0] if source.files else "data.mdb") as file:
        yield from gather(file, _records(source, file))
