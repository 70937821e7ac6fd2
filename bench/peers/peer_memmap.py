# SPDX-License-Identifier: Apache-2.0
"""A map-style dataset over numpy.memmap in torch's DataLoader: what everybody has."""

import numpy as np
import torch
from common import BATCH, corpus, write_map
from torch.utils.data import DataLoader, Dataset

NAME = "torch DataLoader over memmap"
INSTALL = [["numpy==2.4.6"]]
BASE = "torch"
SETTINGS = "shuffle=True, persistent_workers=True, prefetch_factor=2"
DOCS = "https://docs.pytorch.org/docs/stable/data.html"


pack = write_map


class Mapped(Dataset):
    def __init__(self, out):
        self.images, self.labels = corpus(out)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return torch.from_numpy(np.array(self.images[i])), int(self.labels[i])


class Reader:
    def __init__(self, out, workers):
        generator = torch.Generator().manual_seed(1)
        self.loader = DataLoader(
            Mapped(out), BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0, generator=generator
        )

    def epoch(self, number):
        return iter(self.loader)
