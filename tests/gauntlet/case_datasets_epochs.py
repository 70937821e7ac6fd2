# SPDX-License-Identifier: Apache-2.0
"""datasets#7447: an IterableDataset in a StatefulDataLoader with persistent workers, stopped three
steps before the end of epoch 1.

Later epochs of the resumed job are as short as what was left of epoch 1.
"""

import os

import libshard.torch
import stand
import torch
from datasets import Dataset
from torchdata.stateful_dataloader import StatefulDataLoader

ROWS, BATCH, EPOCHS, LEFT = 128, 2, 4, 3
STOP_EPOCH, STOP_STEP = 1, ROWS // BATCH - LEFT
WORKERS = {"num_workers": 2, "persistent_workers": True}


def scenario(stage, folder, loader, set_epoch, rows):
    path = os.path.join(folder, "state")
    if stage == "resume":
        loader.load_state_dict(torch.load(path, weights_only=False))
    rest, behind = [], stage != "through"
    for epoch in range(STOP_EPOCH if behind else 0, EPOCHS):
        set_epoch(epoch)
        for step, batch in enumerate(loader, 1):
            if behind:
                rest.append(rows(batch))
            elif (epoch, step) == (STOP_EPOCH, STOP_STEP):
                torch.save(loader.state_dict(), path)
                behind = True
    return rest


def alone(stage, folder):
    source = Dataset.from_dict({"number": range(ROWS)}).to_iterable_dataset(num_shards=4)
    loader = StatefulDataLoader(source, batch_size=BATCH, **WORKERS)
    return scenario(stage, folder, loader, source.set_epoch, stand.numbers)


def with_dataset(stage, folder):
    torch.manual_seed(5)
    source = libshard.torch.ShardDataset(stand.dataset_of(folder))
    loader = StatefulDataLoader(source, batch_size=BATCH, shuffle=True, **WORKERS)
    return scenario(stage, folder, loader, lambda epoch: None, stand.numbers)


def with_loader(stage, folder):
    loader = libshard.torch.Loader(stand.dataset_of(folder), BATCH)
    return scenario(stage, folder, loader, lambda epoch: None, stand.numbers)


if __name__ == "__main__":
    stand.play({"alone": alone, "torch.Loader": with_loader, "ShardDataset": with_dataset})
