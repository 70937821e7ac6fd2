# SPDX-License-Identifier: Apache-2.0
"""modelscope/ms-swift#10141: shuffled in one stream or in a share for each rank, and not shuffled;
10 and 16 records, which leave a tail, and 18; every place in three epochs to stop at.

With a tail some ranks have more batches in an epoch than others.
"""

import itertools
import os

import libshard
import sampler
import stand

SIZE, RANKS, EPOCHS = 2, 3, 3
COUNTS = 10, 16, 18
MODES = {"one stream": (False, True), "shares": (True, True), "in order": (False, False)}


def scenario(stage, make):
    """``make``: of a mode, a number of records, a rank and a count of records, a sampler."""
    streams = {}
    for mode, rows, rank in itertools.product(MODES, COUNTS, range(RANKS)):
        steps = rows // (SIZE * RANKS) * EPOCHS
        through = sampler.epochs(make(mode, rows, rank, 0), steps) if stage == "through" else None
        for done in range(1, steps):
            name = f"{mode}, {rows} records, stop behind step {done}, rank {rank}"
            consumed = done * SIZE * RANKS if stage == "resume" else 0
            if through:
                streams[name] = through[done:]
            else:
                streams[name] = sampler.epochs(make(mode, rows, rank, consumed), steps - done)
    return streams


def alone(stage, folder):
    theirs = sampler.load(os.environ["SAMPLER"])
    return scenario(
        stage,
        lambda mode, rows, rank, consumed: theirs(range(rows), rows, consumed, SIZE, rank, RANKS, *MODES[mode]),
    )


def with_sampler(stage, folder):
    whole = libshard.open(stand.dataset_of(folder))
    some = {rows: whole.select(range(rows)) for rows in COUNTS}
    return scenario(
        stage,
        lambda mode, rows, rank, consumed: sampler.Sampler(some[rows], consumed, SIZE, rank, RANKS, MODES[mode][1]),
    )


if __name__ == "__main__":
    stand.play({"alone": alone, "indices()": with_sampler})
