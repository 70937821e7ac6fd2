# SPDX-License-Identifier: Apache-2.0
"""A folder of JPEGs, decoded by Pillow in torch's DataLoader, as torchvision's ImageFolder does."""

import os
import shutil

import numpy as np
import torch
from common import BATCH
from PIL import Image
from torch.utils.data import DataLoader, Dataset

NAME = "torch DataLoader over JPEG folder"
INSTALL = [["numpy==2.4.6", "pillow==13.0.0"]]
BASE = "torch"
LINES = {
    "Reader": {
        "way": "",
        "settings": "shuffle=True, persistent_workers=True; images are 224 x 224 already, so nothing is resized;"
        " nothing is packed: the folder is one of links to the JPEGs",
        "docs": "https://docs.pytorch.org/vision/stable/generated/torchvision.datasets.ImageFolder.html",
        "workers": ["cpus"],
    },
}


def pack(images, labels, out):
    shutil.copytree(os.path.join(os.environ["CORPUS"], "jpeg"), out, copy_function=os.link)


class Folder(Dataset):
    def __init__(self, out):
        classes = sorted(os.listdir(out))
        self.samples = [
            (os.path.join(out, c, n), i)
            for i, c in enumerate(classes)
            for n in sorted(os.listdir(os.path.join(out, c)))
        ]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        path, label = self.samples[i]
        return torch.from_numpy(np.array(Image.open(path).convert("RGB"))), label


class Reader:
    def __init__(self, out, workers):
        generator = torch.Generator().manual_seed(1)
        self.loader = DataLoader(
            Folder(out), BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0, generator=generator
        )

    def epoch(self, number):
        return iter(self.loader)
