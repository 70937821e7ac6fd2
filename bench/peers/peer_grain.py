# SPDX-License-Identifier: Apache-2.0
"""ArrayRecord read by Grain: a global shuffle, threads."""

import os

import grain
import numpy as np
from array_record.python import array_record_module
from common import BATCH, SHAPE

NAME = "ArrayRecord + Grain"
INSTALL = [["numpy==2.4.6", "grain==0.2.18", "array-record==0.8.6"]]
BASE = ""
SETTINGS = (
    "group_size:1,uncompressed; MapDataset.shuffle.map.batch, ReadOptions(num_threads=max(workers, 1),"
    " prefetch_buffer_size=4)"
)
DOCS = "https://google-grain.readthedocs.io"
IMAGE_BYTES = int(np.prod(SHAPE))


def pack(images, labels, out):
    os.makedirs(out)
    writer = array_record_module.ArrayRecordWriter(f"{out}/data.array_record", "group_size:1,uncompressed")
    for i in range(len(labels)):
        writer.write(images[i].tobytes() + labels[i].tobytes())
    writer.close()


def parse(record):
    return {
        "image": np.frombuffer(record, np.uint8, IMAGE_BYTES).reshape(SHAPE),
        "label": np.frombuffer(record, np.int64, 1, IMAGE_BYTES)[0],
    }


class Reader:
    def __init__(self, out, workers):
        self.source = grain.sources.ArrayRecordDataSource([f"{out}/data.array_record"])
        self.options = grain.ReadOptions(num_threads=max(workers, 1), prefetch_buffer_size=4)
        self.iterator = None

    def batches(self, number):
        return iter(
            grain.MapDataset.source(self.source)
            .seed(1)
            .shuffle(seed=number)
            .map(parse)
            .batch(BATCH)
            .to_iter_dataset(self.options)
        )

    def epoch(self, number):
        self.iterator = self.iterator or self.batches(number)
        for batch in self.iterator:
            yield batch["image"], batch["label"]
        self.iterator = None

    def state(self):
        return self.iterator.get_state()

    def restore(self, state):
        self.iterator = self.batches(0)
        self.iterator.set_state(state)
