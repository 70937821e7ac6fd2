# SPDX-License-Identifier: Apache-2.0
"""TFRecord, read without TensorFlow by the package tfrecord, with its shuffle buffer."""

import glob
import os

import numpy as np
import torch
from common import BATCH, SHAPE
from tfrecord import TFRecordWriter
from tfrecord.torch.dataset import MultiTFRecordDataset

NAME = "TFRecord (package tfrecord)"
INSTALL = [["numpy==2.4.6", "tfrecord", "setuptools<81"]]
BASE = "torch"
SETTINGS = "files of 256 records, each sampled to its end, shuffle_queue_size=1000; DataLoader"
DOCS = "https://github.com/vahidk/tfrecord"


def pack(images, labels, out):
    os.makedirs(out)
    for first in range(0, len(labels), 256):
        writer = TFRecordWriter(f"{out}/{first // 256:05}.tfrecord")
        for i in range(first, min(first + 256, len(labels))):
            writer.write({"image": (images[i].tobytes(), "byte"), "label": (int(labels[i]), "int")})
        writer.close()


def decode(record):
    return np.frombuffer(record["image"], np.uint8).reshape(SHAPE), int(record["label"][0])


class Reader:
    def __init__(self, out, workers):
        names = [os.path.basename(p)[:-9] for p in sorted(glob.glob(f"{out}/*.tfrecord"))]
        self.dataset = MultiTFRecordDataset(f"{out}/{{}}.tfrecord", None, dict.fromkeys(names, 1 / len(names)), {"image": "byte", "label": "int"},
                                            shuffle_queue_size=1000, transform=decode, infinite=False)  # fmt: skip
        self.loader = torch.utils.data.DataLoader(self.dataset, BATCH, num_workers=workers)

    def epoch(self, number):
        return iter(self.loader)
