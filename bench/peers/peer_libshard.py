# SPDX-License-Identifier: Apache-2.0
"""libshard: the loader of tensors; threads for workers."""

import libshard
import libshard.torch
from common import BATCH

NAME = "libshard"
INSTALL = [["numpy==2.4.6", "setuptools>=77"], "libshard"]
BASE = "torch"
LINES = {
    "Reader": {
        "way": "",
        "settings": "libshard.torch.Loader(out, 256, seed=1, threads=CPUs), shuffled over the whole dataset by"
        " default; records are verified when they are first read",
        "docs": "docs/PYTHON.md",
        "workers": ["cpus"],
    },
}


def pack(images, labels, out):
    libshard.pack({"image": images, "label": labels}, None, out)


class Reader:
    def __init__(self, out, workers):
        self.loader = libshard.torch.Loader(out, BATCH, seed=1, threads=workers)

    def epoch(self, number):
        for batch in self.loader:
            yield batch["image"], batch["label"]
            del batch

    def state(self):
        return self.loader.state_dict()

    def restore(self, state):
        self.loader.load_state_dict(state)
