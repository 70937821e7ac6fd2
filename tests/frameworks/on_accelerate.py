# SPDX-License-Identifier: Apache-2.0
"""Accelerate: prepare(), save_state() and load_state(), and skip_first_batches()."""

import torch
from accelerate import Accelerator, skip_first_batches
from checks import compare, refuses
from launch import launch
from torch.distributed.device_mesh import init_device_mesh

import libshard.torch

PACKAGES = ("accelerate",)


class Nothing:
    """It takes the loader's part in a checkpoint, and does nothing with it."""

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


def job(run):
    accelerator = Accelerator(cpu=True)
    mesh = None
    if run.peers > 1:
        mesh = init_device_mesh("cpu", (run.world // run.peers, run.peers), mesh_dim_names=("dp", "tp"))
    loader = libshard.torch.Loader(run.data, run.batch, mesh=mesh, **run.order)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    run.length = len(loader)
    accelerator.register_for_checkpointing(Nothing() if run.forget else loader)
    if run.start:
        accelerator.load_state(run.start)
    while loader.epoch < run.epochs:
        for batch in loader:
            accelerator.backward(model(batch["x"]).mean())
            optimizer.step()
            run.got(batch)
            if run.is_over:
                accelerator.save_state(run.save)
                return


def _skip(run):
    accelerator = Accelerator(cpu=True)
    loader = accelerator.prepare(libshard.torch.Loader(run.data, run.batch, seed=1))
    loader.set_epoch(1)
    rest = skip_first_batches(loader, 3)
    assert len(rest) == len(loader) - 3
    del loader
    for batch in rest:
        run.got(batch)


def skip():
    compare(launch(_skip, 2), 6, place=(1, 36))


def _skip_and_prepare(run):
    accelerator = Accelerator(cpu=True)
    for batch in accelerator.prepare(skip_first_batches(libshard.torch.Loader(run.data, run.batch, seed=1), 3)):
        run.got(batch)


def _wrapped(run, **share):
    class Wrapped(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(libshard.torch.Loader(run.data, run.batch, seed=1, copy=True, **share))

    accelerator = Accelerator(cpu=True)
    for batch in accelerator.prepare(torch.utils.data.DataLoader(Wrapped(), batch_size=None)):
        run.got(batch)


FEATURES = {
    "`skip_first_batches(loader, 3)`": skip,
    "`prepare()` of what `skip_first_batches()` made raises": lambda: refuses(
        _skip_and_prepare, "accelerate shares out the batches of this loop"),
    "`prepare()` of a `DataLoader` around a loader raises on each rank": lambda: refuses(
        _wrapped, "accelerate shares out the batches of this loop"),
}  # fmt: skip
