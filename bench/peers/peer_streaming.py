# SPDX-License-Identifier: Apache-2.0
"""MosaicML Streaming: MDS shards on the local disk."""

import os

import torch
from common import BATCH
from streaming import MDSWriter, StreamingDataLoader, StreamingDataset
from streaming.base.util import clean_stale_shared_memory

NAME = "MosaicML Streaming"
INSTALL = [["mosaicml-streaming==0.13.0", "numpy<2.2"]]
BASE = "torch"
SETTINGS = "MDS ndarray:uint8, shuffle=True, shuffle_algo by default, StreamingDataLoader(persistent_workers=True)"
DOCS = "https://docs.mosaicml.com/projects/streaming"


def pack(images, labels, out):
    with MDSWriter(out=out, columns={"image": "ndarray:uint8:224,224,3", "label": "int"}, hashes=["xxh64"]) as writer:
        for i in range(len(labels)):
            writer.write({"image": images[i], "label": int(labels[i])})


class Reader:
    def __init__(self, out, workers):
        clean_stale_shared_memory()
        self.dataset = StreamingDataset(local=out, shuffle=True, shuffle_seed=1, batch_size=BATCH)
        self.loader = StreamingDataLoader(self.dataset, batch_size=BATCH, num_workers=workers, persistent_workers=workers > 0)

    def epoch(self, number):
        for batch in self.loader:
            yield batch["image"], batch["label"]

    def state(self):
        return self.loader.state_dict()

    def restore(self, state):
        self.loader.load_state_dict(state)


os.environ.setdefault("OMP_NUM_THREADS", "1")
torch.set_num_threads(1)
