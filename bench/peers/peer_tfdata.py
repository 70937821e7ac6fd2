# SPDX-License-Identifier: Apache-2.0
"""tf.data over files of fixed-length records, every number left to its autotuning, on CPUs."""

import glob
import os

import numpy as np
import tensorflow as tf
from common import BATCH, IMAGE_BYTES, SHAPE

NAME = "tf.data"
INSTALL = [["tensorflow-cpu==2.21.0"]]
BASE = ""
LINES = {
    "Reader": {
        "way": "fixed-length records",
        "settings": "two files for each 256 records, of images and of labels, shuffled;"
        " FixedLengthRecordDataset(buffer_size=64 KiB),"
        " interleave(num_parallel_calls=AUTOTUNE, deterministic=False).shuffle(1000).batch"
        ".map(decode_raw, AUTOTUNE).prefetch(AUTOTUNE), as_numpy_iterator()",
        "docs": "https://www.tensorflow.org/guide/data_performance",
        "workers": ["cpus"],
    },
}
FILE_RECORDS = 256


def pack(images, labels, out):
    os.makedirs(out)
    for first in range(0, len(labels), FILE_RECORDS):
        name = f"{out}/{first // FILE_RECORDS:05}"
        np.asarray(images[first : first + FILE_RECORDS]).tofile(f"{name}.images")
        labels[first : first + FILE_RECORDS].astype(np.int64).tofile(f"{name}.labels")


def records(images, labels):
    return tf.data.Dataset.zip(
        (
            tf.data.FixedLengthRecordDataset(images, IMAGE_BYTES, buffer_size=1 << 16),
            tf.data.FixedLengthRecordDataset(labels, 8),
        )
    )


def decode(images, labels):
    return (
        tf.reshape(tf.io.decode_raw(images, tf.uint8), [-1, *SHAPE]),
        tf.reshape(tf.io.decode_raw(labels, tf.int64), [-1]),
    )


class Reader:
    def __init__(self, out, workers):
        self.out, self.iterator = out, None
        self.data = self.dataset(out)

    def dataset(self, out):
        names = [sorted(glob.glob(f"{out}/*.{kind}")) for kind in ("images", "labels")]
        files = tf.data.Dataset.from_tensor_slices(tuple(names)).shuffle(len(names[0]), seed=1)
        data = files.interleave(records, cycle_length=4, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
        data = data.shuffle(1000, seed=1).batch(BATCH)
        return data.map(decode, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)

    def start(self):
        return self.data.as_numpy_iterator()

    def epoch(self, number):
        self.iterator = self.iterator or self.start()
        yield from self.iterator
        self.iterator = None

    def state(self):
        """Its checkpoints hold the shuffle buffer."""
        return tf.train.Checkpoint(iterator=self.iterator).write(f"{self.out}.checkpoint")

    def restore(self, state):
        self.iterator = self.start()
        tf.train.Checkpoint(iterator=self.iterator).read(state)
