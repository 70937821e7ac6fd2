# SPDX-License-Identifier: Apache-2.0
"""accelerate#4195: two ranks, a stateful DataLoader, a checkpoint in the middle of epoch 1.

A resume finds the place in the epoch, but the order of another one.
"""

import os

import libshard.torch
import stand
import torch
from accelerate import Accelerator, DataLoaderConfiguration
from torch.utils.data import DataLoader, TensorDataset

ROWS, BATCH, SEED, DONE = 64, 4, 1234, 3


def scenario(stage, folder, accelerator, loader, rows):
    checkpoint = os.path.join(folder, "checkpoint")
    if stage == "resume":
        accelerator.load_state(checkpoint)
    if stage != "through":
        return [rows(batch) for batch in loader]
    for _ in loader:  # epoch 0
        pass
    rest = []
    for step, batch in enumerate(loader, 1):  # epoch 1
        if step > DONE:
            rest.append(rows(batch))
        elif step == DONE:
            accelerator.save_state(checkpoint)
    return rest


def alone(stage, folder):
    torch.manual_seed(SEED)
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_stateful_dataloader=True))
    loader = accelerator.prepare(DataLoader(TensorDataset(torch.arange(ROWS)), batch_size=BATCH, shuffle=True))
    return scenario(stage, folder, accelerator, loader, lambda batch: batch[0].tolist())


def with_loader(stage, folder):
    accelerator = Accelerator(cpu=True)
    loader = libshard.torch.Loader(stand.dataset_of(folder), BATCH, seed=SEED)
    accelerator.register_for_checkpointing(loader)
    return scenario(stage, folder, accelerator, loader, stand.numbers)


if __name__ == "__main__":
    stand.play({"alone": alone, "torch.Loader": with_loader})
