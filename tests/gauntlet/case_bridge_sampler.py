# SPDX-License-Identifier: Apache-2.0
"""NVIDIA-NeMo/Megatron-Bridge#5944: 10 records, micro-batches of 2, three data-parallel ranks.

One rank has a batch more in the first epoch than the others have, so from the second step on a
global batch has a record twice, and a job that is made from the count of consumed records goes on
elsewhere.
"""

import os

import libshard
import sampler
import stand

ROWS, SIZE, RANKS, STEPS = 10, 2, 3, 6


def scenario(stage, make):
    """``make``: of a rank and a count of records, a sampler."""
    done = 1  # steps before the checkpoint
    consumed = done * SIZE * RANKS if stage == "resume" else 0
    streams = {}
    for rank in range(RANKS):
        if stage == "through":
            streams[f"rank {rank}"] = sampler.epochs(make(rank, 0), STEPS)[done:]
        else:
            streams[f"rank {rank}"] = sampler.epochs(make(rank, consumed), STEPS - done)
    return streams


def alone(stage, folder):
    theirs = sampler.load(os.environ["SAMPLER"])
    return scenario(stage, lambda rank, consumed: theirs(range(ROWS), ROWS, consumed, SIZE, rank, RANKS, False))


def with_sampler(stage, folder):
    dataset = libshard.open(stand.dataset_of(folder))
    return scenario(stage, lambda rank, consumed: sampler.Sampler(dataset, consumed, SIZE, rank, RANKS))


if __name__ == "__main__":
    stand.play({"alone": alone, "indices()": with_sampler})
