# SPDX-License-Identifier: Apache-2.0
"""pytorch/torchtitan#811: a job of four data-parallel ranks saves a checkpoint with
torch.distributed.checkpoint, and goes on with two.

Each rank's state was of its own share.  Since then a changed degree is refused.
"""

import os
import sys

import libshard.torch
import stand
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

ROWS, STEP, DONE = 64, 8, 3


def scenario(stage, folder, loader, rows):
    checkpoint = os.path.join(folder, "checkpoint")
    batches, rest = iter(loader), []
    if stage == "through":
        for _ in range(DONE):
            next(batches)
        dcp.save({"dataloader": loader}, checkpoint_id=checkpoint)
    elif stage == "resume":
        try:
            dcp.load({"dataloader": loader}, checkpoint_id=checkpoint)
        except Exception as e:
            raise stand.Refused(str(e).strip().splitlines()[-1]) from e
        batches = iter(loader)
    for _ in range(DONE, ROWS // STEP):
        rest.append(rows(next(batches)))
    return rest


def alone(stage, folder):
    sys.path.insert(0, os.environ["TITAN"])
    import titan_loader

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    return scenario(stage, folder, titan_loader.make(ROWS, STEP // world, rank, world), titan_loader.rows)


def with_loader(stage, folder):
    dist.init_process_group("gloo")
    loader = libshard.torch.Loader(stand.dataset_of(folder), STEP // dist.get_world_size(), seed=42)
    return scenario(stage, folder, loader, stand.numbers)


if __name__ == "__main__":
    stand.play({"alone": alone, "torch.Loader": with_loader})
