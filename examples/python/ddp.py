# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training: each record on one rank, gradients as of one process, and a checkpoint
for any world.

    shardpack images examples/photos/train -o ds/train --resize 72 --crop 64
    shardpack images examples/photos/val -o ds/val --resize 72 --crop 64 --classes ds/train
    torchrun --standalone --nproc-per-node 2 examples/python/ddp.py ds/train ds/val --checkpoint ddp

The loader learns rank and world from torch.distributed.  Ranks take turns along the order of the
epoch, so that together they always have the batch that one process would have: give
--nproc-per-node 1, or 3 after a kill, and the losses stay what they are, but for rounding.  That
every record comes once is not believed but counted, over ranks and interruptions.
"""

import argparse
import os

import libshard.torch
import torch
import torch.distributed as dist
import torch.distributed.nn  # before init_process_group, or PyTorch 2.13 never ends the threads of the group
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def network(dataset):
    return nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=4), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, len(dataset.classes)),
    )  # fmt: skip


def over_ranks(numbers):
    """The sum of everybody's."""
    total = torch.as_tensor(numbers).clone()
    dist.all_reduce(total)
    return total


def check_epoch(epoch, seen, left_out):
    """Every record came once, except the ones that do not fill the last step."""
    counts = over_ranks(seen)
    again, never = int((counts > 1).sum()), int((counts == 0).sum())
    if again or never != left_out:
        raise SystemExit(
            f"epoch {epoch}: {again} records came more than once, {never} not at all; that should be 0 and {left_out}"
        )
    if dist.get_rank() == 0:
        print(f"epoch {epoch}: {int(counts.sum())} records exactly once, {left_out} left out", flush=True)


def save(path, seen, parts):
    state = {name: part.state_dict() for name, part in parts.items()} | {"seen": over_ranks(seen)}
    if dist.get_rank() == 0:  # the parts are the same on all ranks
        torch.save(state, path + ".new")
        os.replace(path + ".new", path)


def restore(path, seen, parts):
    state = torch.load(path)
    for name, part in parts.items():
        part.load_state_dict(state[name])
    if dist.get_rank() == 0:
        seen += state["seen"]


@torch.no_grad()
def accuracy(model, dataset, batch_size):
    """Over every record once: rows that pad the last step are flagged, and do not count."""
    right = looked = 0
    for batch in libshard.torch.Loader(dataset, batch_size, shuffle=False, tail="pad", channels_last=True):
        counts = batch["valid"]
        right += int((model(batch["image"] / 255).argmax(1) == batch["label"])[counts].sum())
        looked += int(counts.sum())
    right, looked = over_ranks([right, looked]).tolist()
    if looked != len(dataset):
        raise SystemExit(f"accuracy: {looked} records were looked at; there are {len(dataset)}")
    return right / looked


def main(argv=None):
    parser = argparse.ArgumentParser(
        description="Train a classifier of photographs on several processes, which torchrun starts."
    )
    parser.add_argument("train", help="packed dataset with fields image and label")
    parser.add_argument("val", help="the same, to measure accuracy on")
    parser.add_argument("--epochs", type=int, default=3, help="[%(default)s]")
    parser.add_argument("--batch-size", type=int, default=12, help="of all ranks together [%(default)s]")
    parser.add_argument("--seed", type=int, default=1, help="of weights and order [%(default)s]")
    parser.add_argument("--checkpoint", metavar="FILE", help="go on from FILE if it is there, and save to it")
    parser.add_argument("--save-every", type=int, default=5, metavar="STEPS", help="[%(default)s]")
    args = parser.parse_args(argv)

    dist.init_process_group("gloo")
    world = dist.get_world_size()
    if args.batch_size % world:
        parser.error(f"--batch-size {args.batch_size} cannot be shared by {world} ranks")
    torch.manual_seed(args.seed)
    train = libshard.torch.Loader(
        args.train, args.batch_size // world, seed=args.seed, drop_last=True, channels_last=True
    )
    val = libshard.open(args.val)
    model = network(train.dataset)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    seen = torch.zeros(len(train.dataset), dtype=torch.int64)  # how often each record came in this epoch
    parts = {"model": model, "optimizer": optimizer, "loader": train}
    if args.checkpoint and os.path.exists(args.checkpoint):
        restore(args.checkpoint, seen, parts)
    replica = DistributedDataParallel(model)

    for _ in range(train.epoch, args.epochs):
        for batch in train:
            loss = nn.functional.cross_entropy(replica(batch["image"] / 255), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 5)
            optimizer.step()
            loss = over_ranks(loss.detach()) / world
            if dist.get_rank() == 0:
                print(f"epoch {batch.epoch} step {batch.step} loss {loss:.9g} gradient {norm:.9g}", flush=True)

            seen += torch.bincount(batch.index, minlength=len(seen))
            if batch.step + 1 == len(train):
                check_epoch(batch.epoch, seen, len(seen) % args.batch_size)
                seen.zero_()
            if args.checkpoint and (batch.epoch * len(train) + batch.step + 1) % args.save_every == 0:
                save(args.checkpoint, seen, parts)
    share = accuracy(model, val, args.batch_size // world)
    if dist.get_rank() == 0:
        print(f"val accuracy {share:.3f}")
    if args.checkpoint:
        save(args.checkpoint, seen, parts)
    del replica  # or the process group ends with it, while Python waits: with PyTorch 2.13 now and then for good
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
