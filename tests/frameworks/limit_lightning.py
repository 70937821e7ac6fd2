# SPDX-License-Identifier: Apache-2.0
"""Without libshard: Lightning counts steps, so a larger batch cuts off the epoch that is resumed.

The loader here goes on exactly where it was, whatever the batch.  Exit status 0 if records are
lost.
"""

import os
import sys

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

N, STOP = 96, 3  # steps of 12


class Numbers:
    """Batches of the numbers below N; its state is how many of them came."""

    def __init__(self, batch):
        self.batch, self.at = batch, 0

    def __len__(self):
        return -(-N // self.batch)

    def __iter__(self):
        while self.at < N:
            numbers = torch.arange(self.at, min(self.at + self.batch, N))
            self.at += len(numbers)
            yield numbers
        self.at = 0

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.weight, self.seen = torch.nn.Parameter(torch.zeros(())), []

    def training_step(self, numbers, number):
        self.seen += numbers.tolist()
        return self.weight * numbers.float().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def train(batch, start=None, **more):
    model = Model()
    trainer = lightning.Trainer(accelerator="cpu", max_epochs=1, logger=False, enable_progress_bar=False,
                                enable_model_summary=False, **more)  # fmt: skip
    trainer.fit(model, Numbers(batch), ckpt_path=start)
    return model.seen


def main():
    save = ModelCheckpoint(dirpath=os.path.abspath("limit"), filename="at", every_n_train_steps=STOP)
    train(12, callbacks=[save], max_steps=STOP)
    rest = list(range(12 * STOP, N))
    same, other = (train(batch, os.path.abspath("limit/at.ckpt"), enable_checkpointing=False) for batch in (12, 18))
    print(f"of {len(rest)} records that are left, Lightning goes on with {len(same)} in steps of 12, and with "
          f"{len(other)} in steps of 18")  # fmt: skip
    return 0 if same == rest != other else 1


if __name__ == "__main__":
    sys.exit(main())
