# SPDX-License-Identifier: Apache-2.0
"""A plain ring over numpy.memmap: what a sceptic writes in forty lines, with nothing but NumPy."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from common import BATCH, SHAPE, corpus, write_map

NAME = "plain ring"
INSTALL = [["numpy==2.4.6"]]
BASE = ""
LINES = {
    "Reader": {
        "way": "",
        "settings": "numpy.take(images, indices, axis=0, out=ring[k], mode='clip') into four buffers that are"
        " used again and again, by as many threads as there are CPUs; three batches ahead",
        "docs": "https://numpy.org/doc/stable/reference/generated/numpy.take.html",
        "workers": ["cpus"],
    },
}
SLOTS = 4

pack = write_map


class Reader:
    def __init__(self, out, workers):
        self.images, self.labels = corpus(out)
        self.ring = np.empty((SLOTS, BATCH, *SHAPE), np.uint8)
        self.steps = -(-len(self.labels) // BATCH)
        self.threads, self.ahead, self.step = ThreadPoolExecutor(workers), deque(), 0
        self.order = None

    def start(self):
        """The batch after the ones that are ahead; a new order with each epoch."""
        step = self.step % self.steps
        if step == 0:
            self.order = np.random.default_rng(self.step // self.steps).permutation(len(self.labels))
        indices = self.order[step * BATCH : (step + 1) * BATCH]
        self.ahead.append(self.threads.submit(self.fill, self.ring[self.step % SLOTS, : len(indices)], indices))
        self.step += 1

    def fill(self, images, indices):
        np.take(self.images, indices, axis=0, out=images, mode="clip")
        return images, self.labels[indices]

    def epoch(self, number):
        while len(self.ahead) < SLOTS - 1:
            self.start()
        for _ in range(self.steps):
            batch = self.ahead.popleft().result()
            yield batch
            self.start()  # into the slot of the batch before this one
