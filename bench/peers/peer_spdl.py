# SPDX-License-Identifier: Apache-2.0
"""SPDL: it has no format, so its pipeline of threads gathers rows of a map."""

import numpy as np
from common import BATCH, corpus, write_map
from spdl.pipeline import PipelineBuilder

NAME = "SPDL over memmap"
INSTALL = [["numpy==2.4.6", "spdl-core==0.8.0"]]
BASE = ""
SETTINGS = (
    "source of 256 shuffled indices each, pipe(images[indices], concurrency=max(workers, 1)), add_sink(4), num_threads"
    " the same"
)
DOCS = "https://facebookresearch.github.io/spdl/main/overview.html"

pack = write_map


class Reader:
    def __init__(self, out, workers):
        self.images, self.labels = corpus(out)
        self.threads = max(workers, 1)

    def gather(self, indices):
        return self.images[indices], self.labels[indices]

    def epoch(self, number):
        order = np.random.default_rng(number).permutation(len(self.labels))
        parts = [order[i : i + BATCH] for i in range(0, len(order), BATCH)]
        builder = PipelineBuilder().add_source(parts).pipe(self.gather, concurrency=self.threads).add_sink(4)
        pipeline = builder.build(num_threads=self.threads)
        with pipeline.auto_stop():
            yield from pipeline
