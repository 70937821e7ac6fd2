# SPDX-License-Identifier: Apache-2.0
"""Hugging Face datasets: an Arrow table of bytes, in torch's DataLoader."""

import datasets
import numpy as np
import torch
from common import BATCH, SHAPE
from torch.utils.data import DataLoader

NAME = "HF datasets"
INSTALL = [["numpy==2.4.6", "datasets==5.2.0"]]
BASE = "torch"
SETTINGS = (
    "images as binary (Array3D is many times slower), DataLoader(shuffle=True, persistent_workers=True) which asks for"
    " whole batches"
)
DOCS = "https://huggingface.co/docs/datasets/use_with_pytorch"


def pack(images, labels, out):
    features = datasets.Features({"image": datasets.Value("binary"), "label": datasets.Value("int64")})
    table = datasets.Dataset.from_generator(Rows(images, labels), features=features, cache_dir=out + ".cache")
    table.save_to_disk(out)


class Rows:
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __call__(self):
        for i in range(len(self.labels)):
            yield {"image": self.images[i].tobytes(), "label": int(self.labels[i])}

    def __reduce__(self):
        return Rows, (None, None)


def collate(rows):
    images = np.stack([np.frombuffer(r["image"], np.uint8).reshape(SHAPE) for r in rows])
    return torch.from_numpy(images), torch.tensor([r["label"] for r in rows])


class Reader:
    def __init__(self, out, workers):
        generator = torch.Generator().manual_seed(1)
        self.loader = DataLoader(
            datasets.load_from_disk(out),
            BATCH,
            shuffle=True,
            num_workers=workers,
            persistent_workers=workers > 0,
            collate_fn=collate,
            generator=generator,
        )

    def epoch(self, number):
        return iter(self.loader)
