# SPDX-License-Identifier: Apache-2.0
"""LMDB in torch's DataLoader: a batch copied into one array, and record by record."""

import os

import lmdb
import numpy as np
import torch
from common import BATCH, IMAGE_BYTES, SHAPE
from torch.utils.data import DataLoader, Dataset

NAME = "LMDB"
INSTALL = [["numpy==2.4.6", "lmdb==3.0.0"]]
BASE = "torch"
LINES = {
    "Reader": {
        "way": "batch into one array",
        "settings": "readonly=True, lock=False, buffers=True; __getitems__ copies 256 values into one"
        " of two arrays that are used again and again; DataLoader(shuffle=True)",
        "docs": "https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.Dataset",
        "workers": [0, "cpus"],
    },
    "Common": {
        "way": "record by record",
        "settings": "readonly=True, lock=False, buffers=True; DataLoader(shuffle=True,"
        " persistent_workers=True), each record copied, default collation",
        "docs": "https://lmdb.readthedocs.io",
        "workers": [0, "cpus"],
    },
}


def pack(images, labels, out):
    os.makedirs(out)
    with lmdb.open(f"{out}/data.lmdb", map_size=1 << 36, subdir=False) as env:
        for first in range(0, len(labels), 500):
            with env.begin(write=True) as t:
                for i in range(first, min(first + 500, len(labels))):
                    t.put(i.to_bytes(4, "big"), images[i].tobytes() + labels[i].tobytes(), append=True)


class Stored(Dataset):
    def __init__(self, out):
        self.path, self.transaction = f"{out}/data.lmdb", None
        with lmdb.open(self.path, subdir=False, readonly=True, lock=False) as env:
            self.count = env.stat()["entries"]

    def __len__(self):
        return self.count

    def value(self, i):
        if self.transaction is None:  # in the worker: an environment does not survive fork
            self.env = lmdb.open(self.path, subdir=False, readonly=True, lock=False)
            self.transaction = self.env.begin(buffers=True)
        return self.transaction.get(int(i).to_bytes(4, "big"))

    def __getitem__(self, i):
        value = self.value(i)
        image = np.frombuffer(value, np.uint8, IMAGE_BYTES).reshape(SHAPE)
        return torch.from_numpy(image.copy()), int(np.frombuffer(value, np.int64, 1, IMAGE_BYTES)[0])


class Batches(Stored):
    """A batch is read before the next but one is made; workers copy theirs into shared memory."""

    def __init__(self, out):
        super().__init__(out)
        self.arrays = None

    def __getitems__(self, indices):
        if self.arrays is None:
            self.arrays = [np.empty((BATCH, IMAGE_BYTES), np.uint8) for _ in range(2)]
        images, labels = self.arrays[0][: len(indices)], np.empty(len(indices), np.int64)
        self.arrays.reverse()
        for k, i in enumerate(indices):
            value = self.value(i)
            images[k] = np.frombuffer(value, np.uint8, IMAGE_BYTES)
            labels[k] = int.from_bytes(value[IMAGE_BYTES:], "little")
        return torch.from_numpy(images), torch.from_numpy(labels)


class Reader:
    data, collate = Batches, staticmethod(lambda batch: batch)

    def __init__(self, out, workers):
        generator = torch.Generator().manual_seed(1)
        self.loader = DataLoader(
            self.data(out),
            BATCH,
            shuffle=True,
            num_workers=workers,
            persistent_workers=workers > 0,
            collate_fn=self.collate,
            generator=generator,
        )

    def epoch(self, number):
        return iter(self.loader)


class Common(Reader):
    data, collate = Stored, None
