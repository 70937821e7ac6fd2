# SPDX-License-Identifier: Apache-2.0
"""WebDataset: tars of raw pixels, a shuffle buffer."""

import glob
import os

import numpy as np
import webdataset as wds
from common import BATCH, SHAPE

NAME = "WebDataset"
INSTALL = [["numpy==2.4.6", "webdataset==1.0.2"]]
BASE = "torch"
LINES = {
    "Reader": {
        "way": "",
        "settings": "tars of 256 records, shardshuffle=100, shuffle(1000), batched in the worker,"
        " WebLoader(batch_size=None, persistent_workers=True)",
        "docs": "https://github.com/webdataset/webdataset#webdataset",
        "workers": [0, "cpus"],
    },
}


def pack(images, labels, out):
    os.makedirs(out)
    with wds.ShardWriter(f"{out}/%06d.tar", maxcount=256, verbose=0) as sink:
        for i in range(len(labels)):
            sink.write({"__key__": f"{i:08}", "bin": images[i].tobytes(), "cls": int(labels[i])})


def decode(sample):
    return np.frombuffer(sample["bin"], np.uint8).reshape(SHAPE), int(sample["cls"])


class Reader:
    def __init__(self, out, workers):
        tars = sorted(glob.glob(f"{out}/*.tar"))
        dataset = (
            wds.WebDataset(tars, shardshuffle=100, seed=1)
            .shuffle(1000, initial=1000)
            .map(decode)
            .batched(BATCH, partial=True)
        )
        self.loader = wds.WebLoader(dataset, batch_size=None, num_workers=workers, persistent_workers=workers > 0)

    def epoch(self, number):
        return iter(self.loader)
