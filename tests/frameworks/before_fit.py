# SPDX-License-Identifier: Apache-2.0
"""A loader that is made before fit(), in a script of which Lightning starts a second process."""

import lightning
import torch

import libshard.torch


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch, number):
        return self.layer(batch["x"]).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


if __name__ == "__main__":
    trainer = lightning.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=1, logger=False,
                                enable_checkpointing=False, enable_progress_bar=False)  # fmt: skip
    trainer.fit(Model(), libshard.torch.Loader("train", 6, seed=1))
