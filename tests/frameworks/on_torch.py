# SPDX-License-Identifier: Apache-2.0
"""PyTorch: DistributedDataParallel, a DeviceMesh, and torch.distributed.checkpoint."""

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

import libshard.torch

PACKAGES = ("torch",)


def job(run):
    dist.init_process_group("gloo")
    mesh = None
    if run.peers > 1:
        mesh = init_device_mesh("cpu", (run.world // run.peers, run.peers), mesh_dim_names=("dp", "tp"))
    loader = libshard.torch.Loader(run.data, run.batch, mesh=mesh, **run.order)
    run.length = len(loader)
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    if run.start:
        dcp.load({"model": model} if run.forget else {"model": model, "loader": loader}, checkpoint_id=run.start)
    while loader.epoch < run.epochs:
        for batch in loader:
            model(batch["x"]).mean().backward()
            optimizer.step()
            run.got(batch)
            if run.is_over:
                dcp.save({"model": model, "loader": loader}, checkpoint_id=run.save)
                return
