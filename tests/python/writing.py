# SPDX-License-Identifier: Apache-2.0
"""What tests of writing share: the parts of a shard, and that two datasets have the same ones."""

import os
import shutil
import struct
import unittest

import libshard

DATA, HASH, CIDX, KOFF, KBLB, STAT, PROV = 1, 2, 3, 4, 5, 6, 8
ALL_OF_A_RECORD = (DATA, HASH, CIDX, KOFF, KBLB)


def sections(path):
    """(type, group) to the bytes of each section of a shard, as format/SHARD.md 2.2 has them.

    Offsets in an index are from the start of its data.
    """
    with open(path, "rb") as f:
        shard = f.read()
    footer, out = shard[-4096:], {}
    (count,) = struct.unpack_from("<I", footer, 32)
    for i in range(count):
        kind, _, group, _, offset, size = struct.unpack_from("<IIIIQQ", footer, 1024 + 64 * i)
        out[kind, group] = shard[offset : offset + size]
        if kind == DATA:
            out["start", group] = offset
    for (kind, group), section in list(out.items()):
        if kind == CIDX:
            out[kind, group] = b"".join(
                struct.pack("<Q", struct.unpack_from("<Q", section, at)[0] - out["start", group])
                + section[at + 8 : at + 32]
                for at in range(0, len(section), 32)
            )
    return {k: v for k, v in out.items() if k[0] != "start"}


def shards(folder):
    return sorted(n for n in os.listdir(folder) if n.endswith(".shard"))


def of_kinds(found, kinds):
    return {k: v for k, v in found.items() if k[0] in kinds}


class Case(unittest.TestCase):
    def setUp(self):
        for name in ("ours", "theirs", "more"):
            shutil.rmtree(name, ignore_errors=True)

    def check_same(self, least_shards=2, stat=True):
        self.assertEqual(shards("ours"), shards("theirs"))
        self.assertGreaterEqual(len(shards("ours")), least_shards)
        for name in shards("ours"):
            ours, theirs = sections(f"ours/{name}"), sections(f"theirs/{name}")
            kinds = ALL_OF_A_RECORD + ((STAT,) if stat else ())
            self.assertEqual(of_kinds(ours, kinds).keys(), of_kinds(theirs, kinds).keys())
            for k, v in of_kinds(ours, kinds).items():
                self.assertEqual(v, theirs[k], (name, k))
        self.assertTrue(libshard.open("ours").verify(sha256=True).ok)

    def check_nothing(self, folder="ours"):
        self.assertFalse(os.path.exists(folder), os.path.exists(folder) and os.listdir(folder))
