# SPDX-License-Identifier: Apache-2.0
"""Datasets that suites ask for by size: record i has the number i."""

import atexit
import functools
import os
import tempfile

import libshard

# A suite is run once more with an adapter that is broken on purpose; then some test must fail.
BROKEN = os.environ.get("PEERS_BROKEN") == "1"

uses = 0  # how often a test asked for something of libshard

_folder = tempfile.TemporaryDirectory(prefix="peers-tests-")
_owner = os.getpid()


@atexit.register
def _clean():
    if os.getpid() != _owner:
        _folder._finalizer.detach()  # a worker: the files are its parent's


def used():
    global uses
    uses += 1


def numbers(count):
    """A dataset of ``{"number": i}``, in a few shards."""
    used()
    return _numbers(count)


def samples(count):
    """A dataset of the samples of torchdata's tests, which have a number, a text and a list."""
    used()
    return _samples(count)


@functools.cache
def _numbers(count):
    path = os.path.join(_folder.name, f"numbers-{count}")
    libshard.pack({"number": list(range(count))}, "number:i64", path, shard_records=max(1, -(-count // 3)))
    return libshard.open(path)


@functools.cache
def _samples(count):
    path = os.path.join(_folder.name, f"samples-{count}")
    with libshard.Writer(path, "id:i64,strcol:text[<=16],listcol:i64[3]") as writer:
        for i in range(count):
            writer.write({"id": i, "strcol": f"strcol_{i}", "listcol": [i, i + 1, i + 2]})
    return libshard.open(path)
