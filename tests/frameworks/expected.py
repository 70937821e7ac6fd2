# SPDX-License-Identifier: Apache-2.0
"""What each rank must be given: the order that shardcat prints, shared out as format/ORDER.md says.

Nothing here asks a loader.
"""

import functools
import os
import subprocess

import data

RECORDS = 100
SEED = 1


def make():
    """Records that know their number."""
    import numpy as np

    a = np.zeros(RECORDS, np.dtype([("x", "<f4", (8,)), ("id", "<i8")]))
    a["x"] = np.random.default_rng(1).random((RECORDS, 8))
    a["id"] = np.arange(RECORDS)
    data.pack_raw("train", a, "x:f32[8],id:i64")


@functools.cache
def order(epoch, in_order=False):
    shuffle = ["--shuffle", "sequential"] if in_order else []
    said = subprocess.run(
        [os.path.join(data.TOOLS, "shardcat"), "order", "train", "--seed", str(SEED), "--epoch", str(epoch), *shuffle],
        capture_output=True, text=True, check=True)  # fmt: skip
    records = [int(line) for line in said.stdout.split()]
    assert sorted(records) == list(range(RECORDS)), records
    return records


def steps(rank, world, batch, place=(0, 0), epochs=2, evaluate=False):
    """Rows of a rank's steps, from a place up to the end of the last epoch."""
    epoch, at = place
    rows = []
    while epoch < epochs:
        records = order(epoch, evaluate)
        left = RECORDS - at
        count = -(-left // (world * batch)) if evaluate else left // (world * batch)  # padded, or dropped
        first = next(d for d in range(world) if (at + d) % world == rank)
        for s in range(count):
            positions = [at + (s * batch + j) * world + first for j in range(batch)]
            rows.append([[records[p % RECORDS], p < RECORDS] for p in positions])
        epoch, at = epoch + 1, 0
    return rows


def place_after(step_count, world, batch):
    """Where a run of so many steps stands that began at the start."""
    each = length(world, batch)
    return step_count // each, step_count % each * world * batch


def length(world, batch, evaluate=False):
    return len(steps(0, world, batch, epochs=1, evaluate=evaluate))
