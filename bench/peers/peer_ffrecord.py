# SPDX-License-Identifier: Apache-2.0
"""FFRecord: a batch of records by one asynchronous read, as its own DataLoader does it.

No package index has it. If pip finds a wheel that you made of its source (PIP_FIND_LINKS=FOLDER),
this row is measured; otherwise it says what pip said.
"""

import os

import numpy as np
import torch
from common import BATCH, IMAGE_BYTES, SHAPE
from ffrecord import FileReader, FileWriter
from ffrecord.torch import DataLoader, Dataset

NAME = "FFRecord"
INSTALL = [["numpy==2.4.6", "setuptools<81", "ffrecord==1.4.0"]]
BASE = "torch"
LINES = {
    "Reader": {
        "way": "records not checked",
        "settings": "FileReader(check_data=False).read(indices), copied into one of two arrays that are used again and"
        " again; ffrecord.torch.DataLoader(shuffle=True, persistent_workers=True)",
        "docs": "https://github.com/HFAiLab/ffrecord#dataset-and-dataloader-for-pytorch",
        "workers": [0, "cpus"],
    },
    "Common": {
        "way": "records checked",
        "settings": "FileReader(check_data=True), its default: a CRC32 of each record at each read; otherwise the same",
        "docs": "https://github.com/HFAiLab/ffrecord#read",
        "workers": [0, "cpus"],
    },
}


def pack(images, labels, out):
    os.makedirs(out)
    writer = FileWriter(f"{out}/data.ffr", len(labels))
    for i in range(len(labels)):
        writer.write_one(images[i].tobytes() + labels[i].tobytes())
    writer.close()


class Stored(Dataset):
    def __init__(self, out, check):
        self.reader, self.arrays = FileReader(f"{out}/data.ffr", check_data=check), None

    def __len__(self):
        return self.reader.n

    def __getitem__(self, indices):
        if self.arrays is None:
            self.arrays = [np.empty((BATCH, IMAGE_BYTES), np.uint8) for _ in range(2)]
        images, labels = self.arrays[0][: len(indices)], np.empty(len(indices), np.int64)
        self.arrays.reverse()
        for k, record in enumerate(self.reader.read(indices)):
            images[k] = record[:IMAGE_BYTES]
            labels[k] = int.from_bytes(record[IMAGE_BYTES:].tobytes(), "little")
        return torch.from_numpy(images).reshape(-1, *SHAPE), torch.from_numpy(labels)


class Reader:
    """Its state is a number of steps, and the generator's seed is ours."""

    check = False

    def __init__(self, out, workers):
        self.loader = DataLoader(
            Stored(out, self.check),
            BATCH,
            shuffle=True,
            num_workers=workers,
            persistent_workers=workers > 0,
            prefetch_factor=2 if workers else None,  # its default is refused by today's torch
            collate_fn=lambda batch: batch,
            generator=torch.Generator().manual_seed(1),
        )
        self.step = 0

    def epoch(self, number):
        for batch in self.loader:
            self.step += 1
            yield batch
        self.loader.set_step(0)
        self.step = 0

    def state(self):
        return self.step

    def restore(self, state):
        self.loader.set_step(state)


class Common(Reader):
    check = True
