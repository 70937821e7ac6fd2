# SPDX-License-Identifier: Apache-2.0
"""datasets#7901: an IterableDataset of one shard, shuffled.  Once 12 records, stopped behind the
third; once 200 records with a buffer of 20, stopped behind the twentieth.

The buffer that shuffles is not in the state.
"""

import os

import libshard.torch
import stand
import torch
from datasets import Dataset

SEED = 42
JOBS = [(12, 1000, 3), (200, 20, 20)]  # records, buffer, stop behind


def scenario(stage, folder, make, rows):
    """``make``: of a number of records and a size of the buffer, something to loop over."""
    streams = {}
    for count, buffer, done in JOBS:
        path = os.path.join(folder, f"state.{count}")
        source = make(count, buffer)
        if stage == "resume":
            source.load_state_dict(torch.load(path))
        came = []
        for step, x in enumerate(source, 1):
            came.append(rows(x))
            if stage == "through" and step == done:
                torch.save(source.state_dict(), path)
                came = []
        streams[f"{count} records, rank 0"] = came
    return streams


def alone(stage, folder):
    def make(count, buffer):
        source = Dataset.from_dict({"number": range(count)}).to_iterable_dataset(num_shards=1)
        return source.shuffle(seed=SEED, buffer_size=buffer)

    return scenario(stage, folder, make, lambda x: [x["number"]])


def with_loader(stage, folder):
    whole = libshard.open(stand.dataset_of(folder))

    def make(count, buffer):
        return libshard.torch.Loader(whole.select(range(count)), 1, seed=SEED)

    return scenario(stage, folder, make, stand.numbers)


if __name__ == "__main__":
    stand.play({"alone": alone, "torch.Loader": with_loader})
