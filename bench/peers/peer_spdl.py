# SPDX-License-Identifier: Apache-2.0
"""SPDL: it has no format, so its pipeline of threads gathers rows of a map."""

import queue

import numpy as np
from common import BATCH, SHAPE, corpus, write_map
from spdl.pipeline import PipelineBuilder

NAME = "SPDL over memmap"
INSTALL = [["numpy==2.4.6", "spdl-core==0.8.0"]]
BASE = ""
LINES = {
    "Reader": {
        "way": "into arrays that stay",
        "settings": "a continuous source of 256 shuffled indices each, pipe(numpy.take(out=), concurrency=CPUs) into"
        " arrays that the consumer gives back, add_sink(2), num_threads the same",
        "docs": "https://facebookresearch.github.io/spdl/0.8.0/generated/spdl.pipeline.PipelineBuilder.html",
        "workers": ["cpus"],
    },
    "Common": {
        "way": "a new array for each batch",
        "settings": "the same with pipe(images[indices])",
        "docs": "https://facebookresearch.github.io/spdl/main/overview.html",
        "workers": ["cpus"],
    },
}

pack = write_map


class Orders:
    """Each time that it is asked for an iterator, the parts of another permutation."""

    def __init__(self, count):
        self.count, self.epoch = count, 0

    def __iter__(self):
        order = np.random.default_rng(self.epoch).permutation(self.count)
        self.epoch += 1
        return (order[i : i + BATCH] for i in range(0, self.count, BATCH))


class Common:
    def __init__(self, out, workers):
        self.images, self.labels = corpus(out)
        builder = PipelineBuilder().add_source(Orders(len(self.labels)), continuous=True)
        self.pipeline = builder.pipe(self.gather, concurrency=workers).add_sink(2).build(num_threads=workers)
        self.pipeline.start()

    def gather(self, indices):
        return self.images[indices], self.labels[indices]

    def epoch(self, number):
        return iter(self.pipeline)


class Reader(Common):
    def __init__(self, out, workers):
        self.free = queue.SimpleQueue()
        for _ in range(workers + 5):  # in the threads, in the sink, with the consumer, and on the way
            self.free.put(np.empty((BATCH, *SHAPE), np.uint8))
        super().__init__(out, workers)

    def gather(self, indices):
        array = self.free.get()
        np.take(self.images, indices, axis=0, out=array[: len(indices)], mode="clip")
        return array, self.labels[indices]

    def epoch(self, number):
        for array, labels in self.pipeline:
            yield array[: len(labels)], labels
            self.free.put(array)
