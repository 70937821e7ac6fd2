# SPDX-License-Identifier: Apache-2.0
"""ArrayRecord read by Grain, with a global shuffle and threads: by the batch, and by the record."""

import os

import grain
import numpy as np
from array_record.python import array_record_module
from common import BATCH, IMAGE_BYTES, SHAPE

NAME = "ArrayRecord + Grain"
INSTALL = [["numpy==2.4.6", "grain==0.2.18", "array-record==0.8.6"]]
BASE = ""
LINES = {
    "Reader": {
        "way": "by batch",
        "settings": "group_size:1,uncompressed; MapDataset.range.shuffle.batch.map, which reads 256 records by one"
        " ArrayRecordDataSource.__getitems__ into one array, ReadOptions(num_threads=CPUs, prefetch_buffer_size=4)",
        "docs": "https://github.com/google/array_record/blob/main/python/array_record_data_source.py",
        "workers": ["cpus"],
    },
    "Common": {
        "way": "record by record",
        "settings": "group_size:1,uncompressed; MapDataset.source.shuffle.map.batch,"
        " ReadOptions(num_threads=CPUs, prefetch_buffer_size=4)",
        "docs": "https://google-grain.readthedocs.io/en/latest/tutorials/dataset_basic_tutorial.html",
        "workers": ["cpus"],
    },
}


def pack(images, labels, out):
    os.makedirs(out)
    writer = array_record_module.ArrayRecordWriter(f"{out}/data.array_record", "group_size:1,uncompressed")
    for i in range(len(labels)):
        writer.write(images[i].tobytes() + labels[i].tobytes())
    writer.close()


class Reader:
    def __init__(self, out, workers):
        self.source = grain.sources.ArrayRecordDataSource([f"{out}/data.array_record"])
        self.options = grain.ReadOptions(num_threads=workers, prefetch_buffer_size=4)
        self.iterator = None

    def gather(self, indices):
        images, labels = np.empty((len(indices), IMAGE_BYTES), np.uint8), np.empty(len(indices), np.int64)
        for k, record in enumerate(self.source.__getitems__(indices.tolist())):
            images[k] = np.frombuffer(record, np.uint8, IMAGE_BYTES)
            labels[k] = int.from_bytes(record[IMAGE_BYTES:], "little")
        return {"image": images.reshape(-1, *SHAPE), "label": labels}

    def dataset(self, number):
        return grain.MapDataset.range(len(self.source)).shuffle(seed=number).batch(BATCH).map(self.gather)

    def batches(self, number):
        return iter(self.dataset(number).to_iter_dataset(self.options))

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


def parse(record):
    return {
        "image": np.frombuffer(record, np.uint8, IMAGE_BYTES).reshape(SHAPE),
        "label": np.frombuffer(record, np.int64, 1, IMAGE_BYTES)[0],
    }


class Common(Reader):
    def dataset(self, number):
        return grain.MapDataset.source(self.source).seed(1).shuffle(seed=number).map(parse).batch(BATCH)
