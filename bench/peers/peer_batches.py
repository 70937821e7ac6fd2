# SPDX-License-Identifier: Apache-2.0
"""numpy.memmap in torch's DataLoader, a batch at a time: no collating, one call for 256 images."""

import torch
from common import BATCH, write_map
from peer_memmap import Mapped
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

NAME = "torch DataLoader over memmap, by batch"
INSTALL = [["numpy==2.4.6"]]
BASE = "torch"
SETTINGS = (
    "batch_size=None, sampler=BatchSampler(RandomSampler, 256), images[indices]; persistent_workers=True,"
    " prefetch_factor=2"
)
DOCS = "https://docs.pytorch.org/docs/stable/data.html#disable-automatic-batching"

pack = write_map


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
