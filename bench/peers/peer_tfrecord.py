# SPDX-License-Identifier: Apache-2.0
"""TFRecord in tf.data, on CPUs."""

import glob
import os

import numpy as np
import tensorflow as tf
from common import BATCH, SHAPE

NAME = "TFRecord in tf.data"
INSTALL = [["tensorflow-cpu==2.21.0"]]
BASE = ""
SETTINGS = (
    "files of 256 records, shuffled; interleave(cycle_length=4).shuffle(1000).batch"
    ".map(num_parallel_calls=max(workers, 1)).prefetch(2), threads the same"
)
DOCS = "https://www.tensorflow.org/guide/data_performance"
IMAGE_BYTES = int(np.prod(SHAPE))


def pack(images, labels, out):
    os.makedirs(out)
    for first in range(0, len(labels), 256):
        with tf.io.TFRecordWriter(f"{out}/{first // 256:05}.tfrecord") as writer:
            for i in range(first, min(first + 256, len(labels))):
                writer.write(images[i].tobytes() + labels[i].tobytes())


def decode(records):
    rows = tf.io.decode_raw(records, tf.uint8, fixed_length=IMAGE_BYTES + 8)
    return tf.reshape(rows[:, :IMAGE_BYTES], [-1, *SHAPE]), tf.bitcast(rows[:, IMAGE_BYTES:], tf.int64)


class Reader:
    def __init__(self, out, workers):
        files = tf.data.Dataset.from_tensor_slices(sorted(glob.glob(f"{out}/*.tfrecord")))
        files = files.shuffle(len(files), seed=1)
        data = files.interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=max(workers, 1))
        data = data.shuffle(1000, seed=1)
        data = data.batch(BATCH).map(decode, num_parallel_calls=max(workers, 1)).prefetch(2)
        options = tf.data.Options()
        options.threading.private_threadpool_size = max(workers, 1)
        self.out, self.data, self.iterator = out, data.with_options(options), None

    def epoch(self, number):
        self.iterator = self.iterator or iter(self.data)
        for images, labels in self.iterator:
            yield images.numpy(), labels.numpy()
        self.iterator = None

    def state(self):
        """Its checkpoints hold the shuffle buffer."""
        return tf.train.Checkpoint(iterator=self.iterator).write(f"{self.out}.checkpoint")

    def restore(self, state):
        self.iterator = iter(self.data)
        tf.train.Checkpoint(iterator=self.iterator).read(state)
