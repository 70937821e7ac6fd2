# SPDX-License-Identifier: Apache-2.0
"""numpy.memmap in torch's DataLoader: by the batch, and by the record, as most people have it."""

import numpy as np
import torch
from common import BATCH, corpus, write_map
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

NAME = "torch DataLoader over memmap"
INSTALL = [["numpy==2.4.6"]]
BASE = "torch"
LINES = {
    "Reader": {
        "way": "by batch",
        "settings": "batch_size=None, sampler=BatchSampler(RandomSampler, 256), images[indices];"
        " persistent_workers=True",
        "docs": "https://docs.pytorch.org/docs/stable/data.html#disable-automatic-batching",
        "workers": [0, "cpus"],
    },
    "Common": {
        "way": "record by record",
        "settings": "shuffle=True, each record copied, default collation; persistent_workers=True",
        "docs": "https://docs.pytorch.org/docs/stable/data.html",
        "workers": [0, "cpus"],
    },
}

pack = write_map


class Mapped(Dataset):
    def __init__(self, out):
        self.images, self.labels = corpus(out)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return torch.from_numpy(np.array(self.images[i])), int(self.labels[i])


class Batches(Mapped):
    def __getitem__(self, indices):
        return torch.from_numpy(self.images[indices]), torch.from_numpy(self.labels[indices])


class Reader:
    def __init__(self, out, workers):
        data, generator = Batches(out), torch.Generator().manual_seed(1)
        batches = BatchSampler(RandomSampler(data, generator=generator), BATCH, drop_last=False)
        self.loader = DataLoader(
            data, batch_size=None, sampler=batches, num_workers=workers, persistent_workers=workers > 0
        )

    def epoch(self, number):
        return iter(self.loader)


class Common(Reader):
    def __init__(self, out, workers):
        generator = torch.Generator().manual_seed(1)
        self.loader = DataLoader(
            Mapped(out), BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0, generator=generator
        )
