# SPDX-License-Identifier: Apache-2.0
"""torchdata: StatefulDataLoader around an IterableDataset that hands on a loader and its state."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torchdata.stateful_dataloader import StatefulDataLoader

import libshard.torch

PACKAGES = ("torchdata",)


class Batches(torch.utils.data.IterableDataset):
    def __init__(self, loader):
        self.loader = loader
        self.state_dict, self.load_state_dict = loader.state_dict, loader.load_state_dict

    def __iter__(self):
        return iter(self.loader)

    def __len__(self):
        return len(self.loader)


def job(run):
    dist.init_process_group("gloo")
    mesh = None
    if run.peers > 1:
        mesh = init_device_mesh("cpu", (run.world // run.peers, run.peers), mesh_dim_names=("dp", "tp"))
    loader = libshard.torch.Loader(run.data, run.batch, mesh=mesh, **run.order)
    batches = StatefulDataLoader(Batches(loader), batch_size=None, num_workers=0)
    run.length = len(batches)
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


def samples():
    """Records by number: the order is PyTorch's own, so a resume is held against a whole run."""
    dataset = libshard.torch.ShardDataset("train")

    def loader():
        torch.manual_seed(3)
        return StatefulDataLoader(dataset, 6, shuffle=True, num_workers=2, collate_fn=libshard.torch.collate)

    whole = [batch["id"].tolist() for batch in loader()]
    assert sorted(n for step in whole for n in step) == list(range(100))
    first, again = loader(), loader()
    batches = iter(first)
    for _ in range(5):
        next(batches)
    again.load_state_dict(first.state_dict())
    assert [batch["id"].tolist() for batch in again] == whole[5:] != whole[:-5]


FEATURES = {"`StatefulDataLoader(ShardDataset(...), num_workers=2)` resumes": samples}
