# SPDX-License-Identifier: Apache-2.0
"""Hugging Face datasets: an Arrow table of bytes, by whole batches and row by row, in torch's
DataLoader."""

import datasets
import numpy as np
import torch
from common import BATCH, SHAPE
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

NAME = "HF datasets"
INSTALL = [["numpy==2.4.6", "datasets==5.2.0"]]
BASE = "torch"
LINES = {
    "Reader": {
        "way": "Arrow take",
        "settings": "images as binary, with_format('arrow'), batch_size=None,"
        " sampler=BatchSampler(RandomSampler, 256): ds[indices] is one table, whose buffer is the batch;"
        " persistent_workers=True",
        "docs": "https://huggingface.co/docs/datasets/use_with_pyarrow",
        "workers": [0, "cpus"],
    },
    "Common": {
        "way": "rows as Python objects",
        "settings": "images as binary (Array3D is many times slower), DataLoader(shuffle=True), numpy.stack of the"
        " rows; persistent_workers=True",
        "docs": "https://huggingface.co/docs/datasets/use_with_pytorch",
        "workers": [0, "cpus"],
    },
}


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


def from_table(table):
    """Of 256 slices of one row each, Arrow makes one array, whose values lie in one buffer."""
    images, labels = table["image"].combine_chunks(), table["label"].combine_chunks()
    _, ends, values = images.buffers()
    begin = np.frombuffer(ends, np.int32)[images.offset]
    pixels = np.frombuffer(values, np.uint8, len(images) * int(np.prod(SHAPE)), begin)
    return pixels.reshape(-1, *SHAPE), labels.to_numpy()


class Reader:
    def __init__(self, out, workers):
        data, generator = datasets.load_from_disk(out).with_format("arrow"), torch.Generator().manual_seed(1)
        self.loader = DataLoader(
            data,
            batch_size=None,
            sampler=BatchSampler(RandomSampler(data, generator=generator), BATCH, drop_last=False),
            collate_fn=from_table,
            num_workers=workers,
            persistent_workers=workers > 0,
        )

    def epoch(self, number):
        return iter(self.loader)


def collate(rows):
    images = np.stack([np.frombuffer(r["image"], np.uint8).reshape(SHAPE) for r in rows])
    return torch.from_numpy(images), torch.tensor([r["label"] for r in rows])


class Common(Reader):
    def __init__(self, out, workers):
        self.loader = DataLoader(
            datasets.load_from_disk(out),
            BATCH,
            shuffle=True,
            num_workers=workers,
            persistent_workers=workers > 0,
            collate_fn=collate,
            generator=torch.Generator().manual_seed(1),
        )
