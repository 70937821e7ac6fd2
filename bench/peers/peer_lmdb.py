# SPDX-License-Identifier: Apache-2.0
"""LMDB behind a map-style dataset in torch's DataLoader."""

import os

import lmdb
import numpy as np
import torch
from common import BATCH, SHAPE
from torch.utils.data import DataLoader, Dataset

NAME = "LMDB"
INSTALL = [["numpy==2.4.6", "lmdb"]]
BASE = "torch"
SETTINGS = "readonly=True, lock=False, readahead=False, buffers=True; DataLoader(shuffle=True, persistent_workers=True)"
DOCS = "https://lmdb.readthedocs.io"
IMAGE_BYTES = int(np.prod(SHAPE))


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

    def __getitem__(self, i):
        if self.transaction is None:  # in the worker: an environment does not survive fork
            self.env = lmdb.open(self.path, subdir=False, readonly=True, lock=False, readahead=False)
            self.transaction = self.env.begin(buffers=True)
        value = self.transaction.get(int(i).to_bytes(4, "big"))
        image = np.frombuffer(value, np.uint8, IMAGE_BYTES).reshape(SHAPE)
        return torch.from_numpy(image.copy()), int(np.frombuffer(value, np.int64, 1, IMAGE_BYTES)[0])


class Reader:
    def __init__(self, out, workers):
        generator = torch.Generator().manual_seed(1)
        self.loader = DataLoader(
            Stored(out), BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0, generator=generator
        )

    def epoch(self, number):
        return iter(self.loader)
