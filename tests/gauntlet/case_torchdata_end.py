# SPDX-License-Identifier: Apache-2.0
"""meta-pytorch/data#1437: two epochs, a state behind the last batch, a new loader, two epochs more.

The first of the new epochs is empty.
"""

import os

import libshard.torch
import stand
import torch
from torchdata.stateful_dataloader import StatefulDataLoader

ROWS, EPOCHS = 100, 2


def scenario(stage, folder, loader, rows):
    path = os.path.join(folder, "state")
    if stage == "through":
        for _ in range(EPOCHS):
            for _ in loader:
                pass
        torch.save(loader.state_dict(), path)
    elif stage == "resume":
        loader.load_state_dict(torch.load(path, weights_only=False))
    return [rows(batch) for _ in range(EPOCHS) for batch in loader]


def alone(stage, folder):
    torch.manual_seed(5)
    return scenario(stage, folder, StatefulDataLoader(range(ROWS), batch_size=1, shuffle=True), torch.Tensor.tolist)


def with_dataset(stage, folder):
    torch.manual_seed(5)
    source = libshard.torch.ShardDataset(stand.dataset_of(folder))
    return scenario(stage, folder, StatefulDataLoader(source, batch_size=1, shuffle=True), stand.numbers)


def with_loader(stage, folder):
    return scenario(stage, folder, libshard.torch.Loader(stand.dataset_of(folder), 1), stand.numbers)


if __name__ == "__main__":
    stand.play({"alone": alone, "torch.Loader": with_loader, "ShardDataset": with_dataset})
