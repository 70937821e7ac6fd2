# SPDX-License-Identifier: Apache-2.0
"""A classifier of photographs, which may be killed at any moment and goes on to the same weights,
bit for bit.

    shardpack images examples/photos/train -o ds/train --resize 72 --crop 64
    shardpack images examples/photos/val -o ds/val --resize 72 --crop 64 --classes ds/train
    python examples/python/classifier.py ds/train ds/val --checkpoint classifier.pt

It learns to tell 9 things apart: at least 0.85 of the photographs in ds/val, of which chance would
guess 0.11.  Kill the last command while it runs, and give it again: it goes on from its checkpoint,
in the middle of an epoch, and ends with the weights of a run that nobody disturbed.  What that
takes is in save() and restore().
"""

import argparse
import hashlib
import os

import libshard.torch
import torch
from torch import nn


class Network(nn.Module):
    """Three convolutions, for images of any size."""

    def __init__(self, dataset):
        super().__init__()
        channels = dataset.stats.channels["image"]  # counted when the dataset was packed
        self.register_buffer("mean", torch.tensor([c.mean for c in channels]).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor([c.std for c in channels]).view(-1, 1, 1))
        self.layers = nn.Sequential(
            nn.Conv2d(len(channels), 16, 5, stride=4), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2), nn.BatchNorm2d(64), nn.ReLU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(0.2),
            nn.Linear(256, len(dataset.classes)),
        )  # fmt: skip

    def forward(self, image):
        return self.layers((image - self.mean) / self.std)


def save(path, parts):
    state = {name: part.state_dict() for name, part in parts.items()}
    torch.save(state | {"rng": torch.get_rng_state()}, path + ".new")
    os.replace(path + ".new", path)  # a kill leaves the old checkpoint or the new one, never half of one


def restore(path, parts):
    state = torch.load(path)
    for name, part in parts.items():
        part.load_state_dict(state[name])
    torch.set_rng_state(state["rng"])


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    right = sum(int((model(batch["image"]).argmax(1) == batch["label"]).sum()) for batch in loader)
    model.train()
    return right / len(loader.dataset)


def digest(model):
    """Of all weights."""
    sha256 = hashlib.sha256()
    for tensor in model.state_dict().values():
        sha256.update(tensor.numpy().tobytes())
    return sha256.hexdigest()


def main(argv=None):
    parser = argparse.ArgumentParser(
        description="Train a classifier of photographs; killed and started again, it goes on."
    )
    parser.add_argument("train", help="packed dataset with fields image and label")
    parser.add_argument("val", help="the same, to measure accuracy on")
    parser.add_argument("--epochs", type=int, default=20, help="[%(default)s]")
    parser.add_argument("--batch-size", type=int, default=12, help="[%(default)s]")
    parser.add_argument("--seed", type=int, default=1, help="of weights, order, flips and dropout [%(default)s]")
    parser.add_argument("--checkpoint", metavar="FILE", help="go on from FILE if it is there, and save to it")
    parser.add_argument("--save-every", type=int, default=7, metavar="STEPS", help="[%(default)s]")
    args = parser.parse_args(argv)

    torch.manual_seed(args.seed)
    torch.use_deterministic_algorithms(True)
    train = libshard.torch.Loader(args.train, args.batch_size, seed=args.seed, channels_last=True)
    val = libshard.torch.Loader(args.val, args.batch_size, shuffle=False, channels_last=True)
    model = Network(train.dataset).to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=args.epochs * len(train))
    parts = {"model": model, "optimizer": optimizer, "schedule": schedule, "loader": train}
    if args.checkpoint and os.path.exists(args.checkpoint):
        restore(args.checkpoint, parts)

    for _ in range(train.epoch, args.epochs):
        for batch in train:  # of a loader that was restored: the rest of the epoch
            image = batch["image"].flip(-1) if torch.rand(()) < 0.5 else batch["image"]
            loss = nn.functional.cross_entropy(model(image), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            print(f"epoch {batch.epoch} step {batch.step} loss {loss.item():.9g}", flush=True)
            if args.checkpoint and (batch.epoch * len(train) + batch.step + 1) % args.save_every == 0:
                save(args.checkpoint, parts)
    print(f"val accuracy {accuracy(model, val):.3f}")
    print(f"weights {digest(model)}")


if __name__ == "__main__":
    main()
