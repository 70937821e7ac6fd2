# SPDX-License-Identifier: Apache-2.0
"""accelerate#2823: one process, a plain DataLoader, a checkpoint in the middle of epoch 1.

Then load_state, set_epoch and skip_first_batches, as the manual says: what comes is a later epoch.
"""

import os

import libshard.torch
import stand
import torch
from accelerate import Accelerator, skip_first_batches
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

ROWS, BATCH, SEED, DONE = 40, 4, 42, 3


def through(folder, accelerator, loader, rows):
    for _ in loader:  # epoch 0
        pass
    rest = []
    for step, batch in enumerate(loader, 1):
        if step > DONE:
            rest.append(rows(batch))
        elif step == DONE:
            accelerator.save_state(os.path.join(folder, "checkpoint"))
    return rest


def alone(stage, folder):
    set_seed(SEED)
    accelerator = Accelerator(cpu=True)
    loader = accelerator.prepare(DataLoader(TensorDataset(torch.arange(ROWS)), batch_size=BATCH, shuffle=True))

    def rows(batch):
        return batch[0].tolist()

    if stage == "through":
        return through(folder, accelerator, loader, rows)
    if stage == "resume":
        accelerator.load_state(os.path.join(folder, "checkpoint"))
    loader.set_epoch(1)
    return [rows(batch) for batch in skip_first_batches(loader, DONE)]


def with_loader(stage, folder):
    accelerator = Accelerator(cpu=True)
    loader = libshard.torch.Loader(stand.dataset_of(folder), BATCH, seed=SEED)
    accelerator.register_for_checkpointing(loader)
    if stage == "through":
        return through(folder, accelerator, loader, stand.numbers)
    if stage == "resume":
        accelerator.load_state(os.path.join(folder, "checkpoint"))
    return [stand.numbers(batch) for batch in loader]


if __name__ == "__main__":
    stand.play({"alone": alone, "torch.Loader": with_loader})
