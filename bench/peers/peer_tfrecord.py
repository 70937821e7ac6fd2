# SPDX-License-Identifier: Apache-2.0
"""TFRecord in tf.data, as most people have it, on CPUs."""

import glob
import os

import peer_tfdata
import tensorflow as tf
from common import BATCH, IMAGE_BYTES, SHAPE

NAME = "tf.data"
INSTALL = [["tensorflow-cpu==2.21.0"]]
VENV = "tfdata"
BASE = ""
LINES = {
    "Common": {
        "way": "TFRecord",
        "settings": "files of 256 records, shuffled; TFRecordDataset, interleave(cycle_length=4, AUTOTUNE)"
        ".shuffle(1000).batch.map(decode_raw, AUTOTUNE).prefetch(AUTOTUNE)",
        "docs": "https://www.tensorflow.org/tutorials/load_data/tfrecord",
        "workers": ["cpus"],
    },
}


def pack(images, labels, out):
    os.makedirs(out)
    for first in range(0, len(labels), 256):
        with tf.io.TFRecordWriter(f"{out}/{first // 256:05}.tfrecord") as writer:
            for i in range(first, min(first + 256, len(labels))):
                writer.write(images[i].tobytes() + labels[i].tobytes())


def decode(records):
    rows = tf.io.decode_raw(records, tf.uint8, fixed_length=IMAGE_BYTES + 8)
    return tf.reshape(rows[:, :IMAGE_BYTES], [-1, *SHAPE]), tf.bitcast(rows[:, IMAGE_BYTES:], tf.int64)


class Common(peer_tfdata.Reader):
    def dataset(self, out):
        files = tf.data.Dataset.from_tensor_slices(sorted(glob.glob(f"{out}/*.tfrecord")))
        files = files.shuffle(len(files), seed=1)
        data = files.interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=tf.data.AUTOTUNE)
        data = data.shuffle(1000, seed=1).batch(BATCH)
        return data.map(decode, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
