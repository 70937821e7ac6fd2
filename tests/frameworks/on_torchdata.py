# SPDX-License-Identifier: Apache-2.0
"""torchdata: nodes around a loader, with a thread that runs ahead of the trainer."""

import torch
import torch.distributed as dist
import torchdata.nodes
from torch.distributed.device_mesh import init_device_mesh

import libshard.torch

PACKAGES = ("torchdata",)


def job(run):
    dist.init_process_group("gloo")
    mesh = None
    if run.peers > 1:
        mesh = init_device_mesh("cpu", (run.world // run.peers, run.peers), mesh_dim_names=("dp", "tp"))
    loader = libshard.torch.Loader(run.data, run.batch, mesh=mesh, copy=True, **run.order)
    run.length = len(loader)
    node = torchdata.nodes.Prefetcher(torchdata.nodes.IterableWrapper(loader), prefetch_factor=2)
    batches = torchdata.nodes.Loader(node)
    if run.start and not run.forget:
        batches.load_state_dict(torch.load(f"{run.start}.pt"))
    epoch = 1 if run.start and not run.forget else 0
    for _ in range(epoch, run.epochs):
        for batch in batches:
            run.got(batch)
            if run.is_over:
                if run.rank == 0:
                    torch.save(batches.state_dict(), f"{run.save}.pt")
                dist.barrier()
                return
