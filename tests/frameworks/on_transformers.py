# SPDX-License-Identifier: Apache-2.0
"""Hugging Face: a Trainer whose get_train_dataloader() returns a loader, its own checkpoints."""

import os

import torch
import transformers
from checks import compare, refuses
from launch import launch
from torch.distributed.device_mesh import init_device_mesh
from transformers import TrainingArguments

import libshard.torch

PACKAGES = ("transformers", "accelerate")
LIMITS = {"other batch": "limit_transformers.py"}


class Model(torch.nn.Module):
    def __init__(self, run):
        super().__init__()
        self.layer, self.run = torch.nn.Linear(8, 1), run

    def forward(self, **batch):
        self.run.got(batch)
        loss = self.layer(batch["x"]).mean()
        return {"loss": loss, "logits": self.layer(batch["x"])}


class Trainer(transformers.Trainer):
    def get_train_dataloader(self):
        run, mesh = self.model.run, None
        if run.peers > 1:
            mesh = init_device_mesh("cpu", (run.world // run.peers, run.peers), mesh_dim_names=("dp", "tp"))
        held = self.args.gradient_accumulation_steps + 1
        loader = libshard.torch.Loader(run.data, self.args.train_batch_size, mesh=mesh, max_held=held, **run.order)
        return loader

    def get_eval_dataloader(self, eval_dataset=None):
        return self.get_train_dataloader()

    def _save_rng_state(self, output_dir):  # of no use here, and it grows with the world
        pass

    def _load_rng_state(self, checkpoint):
        pass


def arguments(run, **more):
    return TrainingArguments(
        output_dir=os.path.abspath("hf"), use_cpu=True, per_device_train_batch_size=run.batch, report_to=[],
        num_train_epochs=run.epochs, save_strategy="steps" if run.save else "no", save_steps=run.stop or 500,
        max_steps=run.stop or -1, disable_tqdm=True, logging_strategy="no", ddp_find_unused_parameters=False,
        ignore_data_skip=run.forget, label_names=["id"], **more)  # fmt: skip


def job(run, trainer=Trainer, **more):
    trainer = trainer(Model(run), arguments(run, **more))
    if run.evaluate:
        trainer.evaluate()
        return
    trainer.train(resume_from_checkpoint=f"hf/{run.start}" if run.start else None)
    run.length = trainer.state.max_steps // run.epochs  # as it makes of the length of an epoch


def _accumulates(run):
    """Batches of two steps are held at once, and an epoch of eight has an end within one."""
    job(run, gradient_accumulation_steps=3)


def accumulates():
    compare(launch(_accumulates, 2), 6)


def _as_dataset(run):
    loader = libshard.torch.Loader(run.data, run.batch)
    transformers.Trainer(Model(run), arguments(run), train_dataset=loader).train()


FEATURES = {
    "`gradient_accumulation_steps=3`": accumulates,
    "`train_dataset=loader` raises": lambda: refuses(_as_dataset, "return the loader where it asks for a DataLoader"),
}
