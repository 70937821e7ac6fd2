# SPDX-License-Identifier: Apache-2.0
"""LanceDB: a table read by whole batches through a Permutation, and its StreamingDataset."""

import os

import lancedb
import numpy as np
import pyarrow
from common import BATCH, IMAGE_BYTES, SHAPE
from lancedb.permutation import Permutation
from lancedb.streaming import StreamingDataLoader, StreamingDataset
from torch import Generator
from torch.utils.data import DataLoader

NAME = "LanceDB"
INSTALL = [["numpy==2.4.6", "lancedb==0.40.0"]]
BASE = "torch"
LINES = {
    "Reader": {
        "way": "Permutation, by batch",
        "settings": "images as fixed-size binary (other types are slower), Permutation.identity(table)"
        ".with_format('arrow') in DataLoader(shuffle=True), which asks for 256 rows at once; the buffer is the batch",
        "docs": "https://docs.lancedb.com/training/permutation",
        "workers": [0],
    },
    "Streaming": {
        "way": "StreamingDataset",
        "settings": "the same table, StreamingDataset(shuffle_seed=1) with a transform that makes no copies, in"
        " StreamingDataLoader, numpy.stack of the rows; its own threads",
        "docs": "https://docs.lancedb.com/training/data-loading",
        "workers": [0],
    },
}


def record_batches(images, labels):
    for first in range(0, len(labels), BATCH):
        part = np.ascontiguousarray(images[first : first + BATCH]).reshape(-1)
        image = pyarrow.FixedSizeBinaryArray.from_buffers(
            pyarrow.binary(IMAGE_BYTES), len(part) // IMAGE_BYTES, [None, pyarrow.py_buffer(part)]
        )
        yield pyarrow.record_batch([image, pyarrow.array(labels[first : first + BATCH])], names=["image", "label"])


def pack(images, labels, out):
    os.makedirs(out)
    schema = pyarrow.schema({"image": pyarrow.binary(IMAGE_BYTES), "label": pyarrow.int64()})
    batches = pyarrow.RecordBatchReader.from_batches(schema, record_batches(images, labels))
    lancedb.connect(out).create_table("images", batches)


def arrays(batch):
    column = batch.column("image")
    pixels = np.frombuffer(column.buffers()[1], np.uint8, len(column) * IMAGE_BYTES, column.offset * IMAGE_BYTES)
    return pixels.reshape(-1, *SHAPE), batch.column("label").to_numpy()


class Reader:
    def __init__(self, out, workers):
        table = Permutation.identity(lancedb.connect(out).open_table("images")).with_format("arrow")
        generator = Generator().manual_seed(1)
        self.loader = DataLoader(table, BATCH, shuffle=True, collate_fn=arrays, generator=generator)

    def epoch(self, number):
        return iter(self.loader)


def stacked(rows):
    return np.stack([image for image, _ in rows]), np.array([label for _, label in rows])


class Streaming:
    def __init__(self, out, workers):
        self.table = lancedb.connect(out).open_table("images")
        self.dataset = None

    def start(self, number):
        self.dataset = StreamingDataset(
            self.table, shuffle_seed=1, epoch=number, transform=lambda batch: list(zip(*arrays(batch)))
        )

    def epoch(self, number):
        if self.dataset is None:
            self.start(number)
        yield from StreamingDataLoader(self.dataset, batch_size=BATCH, collate_fn=stacked)
        self.dataset = None

    def state(self):
        return self.dataset.state_dict()

    def restore(self, state):
        self.start(0)
        self.dataset.load_state_dict(state)
