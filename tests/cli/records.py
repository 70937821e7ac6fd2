# SPDX-License-Identifier: Apache-2.0
"""records.py - all records of a dataset as NumPy arrays, through the second reader of the format;
imported by tests

    import records
    got = records.read("ds")        {"image": array of [records, ...], ...}
"""
import os
import sys

import numpy

sys.path.insert(0, os.path.join(os.environ["ROOT"], "format"))
import shardfmt  # noqa: E402

DTYPES = {
    1: "u1",
    2: "i1",
    3: "<u2",
    4: "<i2",
    5: "<u4",
    6: "<i4",
    7: "<u8",
    8: "<i8",
    9: "<f2",
    10: "<u2",
    11: "<f4",
    12: "<f8",
    13: "?",
}


def read(folder, verify=True):
    """Every field of every record, in the order of the dataset.

    Hashes are checked on the way, unless that would take too long.
    """
    dataset = shardfmt.verify_dataset(folder) if verify else shardfmt.Dataset(folder)
    manifest = dataset.manifest
    columns = {}
    for f in manifest.fields:
        rows = [dataset.record(i, f.group)[f.offset:f.offset + f.bytes] for i in range(manifest.records)]
        columns[f.name] = numpy.frombuffer(b"".join(rows), DTYPES[f.dtype]).reshape((-1,) + tuple(f.shape))
    return columns


def same(got, want, what):
    assert got.dtype == want.dtype, (what, got.dtype, want.dtype)
    assert got.shape == want.shape, (what, got.shape, want.shape)
    assert got.tobytes() == numpy.ascontiguousarray(want).tobytes(), what


def same_set(got, want, what):
    """As many records, each there as often, in an order that is not the given one."""
    rows = [r.tobytes() for r in numpy.ascontiguousarray(want)]
    there = [r.tobytes() for r in got]
    assert sorted(there) == sorted(rows), what
    assert there != rows, what + " in the order of the source"
