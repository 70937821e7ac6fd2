# SPDX-License-Identifier: Apache-2.0
"""Lightning: a LightningModule that makes its loader, ModelCheckpoint in the middle of an epoch."""

import os
import shutil
import subprocess
import sys
import warnings

import expected
import lightning
import torch
from checks import BATCH, END, WORLD, Wrong, compare, refuses
from launch import launch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.distributed.device_mesh import init_device_mesh

import libshard.torch

PACKAGES = ("lightning",)
LIMITS = {"other batch": "limit_lightning.py"}


class Forgetful(libshard.torch.Loader):
    """A loader that does nothing with its state."""

    def load_state_dict(self, state):
        pass


def loader(run):
    mesh = None
    if run.peers > 1:
        mesh = init_device_mesh("cpu", (run.world // run.peers, run.peers), mesh_dim_names=("dp", "tp"))
    return (Forgetful if run.forget else libshard.torch.Loader)(run.data, run.batch, mesh=mesh, **run.order)


class Model(lightning.LightningModule):
    def __init__(self, run):
        super().__init__()
        self.layer, self.run = torch.nn.Linear(8, 1), run

    def training_step(self, batch, number):
        self.run.got(batch)
        return self.layer(batch["x"]).mean()

    def validation_step(self, batch, number):
        self.run.got(batch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

    def train_dataloader(self):
        return loader(self.run)

    def val_dataloader(self):
        return loader(self.run) if self.run.evaluate else []


def trainer(run, **more):
    warnings.filterwarnings("ignore", module="lightning")
    saves, epochs, steps = [], run.epochs, run.stop or -1
    if run.save:
        saves = [ModelCheckpoint(dirpath=os.path.abspath(run.save), filename="at", every_n_train_steps=run.stop)]
    if run.save and run.stop == END:  # as it saves by default
        saves, epochs, steps = [ModelCheckpoint(dirpath=os.path.abspath(run.save), filename="at")], 1, -1
    return lightning.Trainer(
        accelerator="cpu", devices=run.world, strategy="ddp" if run.world > 1 else "auto", callbacks=saves,
        logger=False, max_epochs=epochs, max_steps=steps, enable_progress_bar=False,
        enable_model_summary=False, enable_checkpointing=bool(saves), num_sanity_val_steps=0, **more)  # fmt: skip


def job(run):
    fit = trainer(run)
    if run.evaluate:
        fit.validate(Model(run), verbose=False)
        return
    fit.fit(Model(run), ckpt_path=os.path.abspath(f"{run.start}/at.ckpt") if run.start else None)
    run.length = int(fit.num_training_batches)


# ---- features ----


class Data(lightning.LightningDataModule):
    def __init__(self, run):
        super().__init__()
        self.run = run

    def train_dataloader(self):
        return loader(self.run)


def _module(run):
    model = Model(run)
    model.train_dataloader = None
    trainer(run).fit(model, datamodule=Data(run))


def data_module():
    compare(launch(_module, WORLD), BATCH)


def _limited(run):
    trainer(run, limit_train_batches=3).fit(Model(run))


def limited():
    """Each epoch has the first steps of its own order."""
    for run in launch(_limited, WORLD):
        want = [expected.steps(run.rank, WORLD, BATCH, (epoch, 0), epoch + 1)[:3] for epoch in range(2)]
        if run.rows != want[0] + want[1]:
            raise Wrong(f"got {run.rows}, want {want}")


def _by_epoch(rank, epoch, steps):
    return expected.steps(rank, WORLD, BATCH, (epoch, 0), epoch + 1)[:steps]


def _saved_in_each_way(run):
    """Three epochs, with a checkpoint after each step and as Lightning saves by default."""
    saves = [
        ModelCheckpoint(dirpath=os.path.abspath("each"), filename="{step}", every_n_train_steps=1, save_top_k=-1),
        ModelCheckpoint(dirpath=os.path.abspath("each"), filename="end-{epoch}", save_top_k=-1),
    ]
    fit = trainer(run, **run.notes)
    fit.callbacks += saves
    fit.fit(Model(run))


def _from_each(run):
    trainer(run, **run.notes["trainer"]).fit(Model(run), ckpt_path=os.path.abspath(run.notes["path"]))


def from_each(steps, **options):
    """From each checkpoint of three epochs of so many steps, the rest comes and nothing else."""
    shutil.rmtree("each", ignore_errors=True)
    for run in launch(_saved_in_each_way, WORLD, epochs=3, notes=options):
        want = sum((_by_epoch(run.rank, epoch, steps) for epoch in range(3)), [])
        if run.rows != want:
            raise Wrong(f"got {run.rows}, want {want}")
    paths = [f"each/step={step}.ckpt" for step in range(1, 3 * steps)]
    paths += [f"each/end-epoch={epoch}.ckpt" for epoch in range(2)]
    for path in paths:
        number = int(path.rpartition("=")[2].removesuffix(".ckpt"))
        done = (number + 1) * steps if "end" in path else number
        for run in launch(_from_each, WORLD, epochs=3, notes={"trainer": options, "path": path}):
            want = sum((_by_epoch(run.rank, epoch, steps) for epoch in range(3)), [])[done:]
            if run.rows != want:
                raise Wrong(f"from {path}, after {done} steps: got {run.rows}, want {want}")


def _overfit(run):
    """With rank 0 and 1 of shuffle=False, as Lightning asks for."""
    class Same(Model):
        def train_dataloader(self):
            return libshard.torch.Loader(self.run.data, self.run.batch, **self.run.notes)

    trainer(run, overfit_batches=2).fit(Same(run))


def overfit():
    for run in launch(_overfit, WORLD, notes={"shuffle": False, "tail": "drop"}):
        want = [[[run.rank + WORLD * (BATCH * s + j), True] for j in range(BATCH)] for s in range(2)]
        if run.rows != want + want:
            raise Wrong(f"got {run.rows}, want twice {want}")


def overfit_shuffled():
    refuses(_overfit, "overfit_batches=2 wants the same batches", notes={"seed": 1})


def _starter(run):
    """Lightning starts the second process itself, and the loader is made before."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                 "TORCHELASTIC_RUN_ID", "GROUP_RANK"):  # fmt: skip
        os.environ.pop(name)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "before_fit.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    run.notes = {"status": done.returncode, "said": done.stdout + done.stderr}


def before_fit():
    (run,) = launch(_starter, 1)
    said = run.notes["said"]
    if run.notes["status"] == 0 or "make the loader with Lightning in train_dataloader()" not in said:
        raise Wrong(f"status {run.notes['status']}: {said}")


FEATURES = {
    "a `LightningDataModule` makes the loader": data_module,
    "`limit_train_batches=3`: the first steps of each epoch": limited,
    "`limit_train_batches=3`: resumes from each checkpoint of three epochs": lambda: from_each(
        3, limit_train_batches=3),
    "`reload_dataloaders_every_n_epochs=1`: the same": lambda: from_each(
        3, limit_train_batches=3, reload_dataloaders_every_n_epochs=1),
    "`overfit_batches=2` with `shuffle=False`: the same steps in each epoch": overfit,
    "`overfit_batches=2` with a loader that shuffles raises": overfit_shuffled,
    "a loader made before `fit()` raises on several ranks": before_fit,
}
