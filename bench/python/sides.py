# SPDX-License-Identifier: Apache-2.0
"""sides.py DATASET LOOP.so - measures what bench/python_package.c asks for: a word on each line it reads, a number on each it writes

Python's loaders and C's run in this one process, on the same files, with as many slots and threads.
"""

import ctypes
import random
import statistics
import sys
import time

import libshard

BATCH, PREFETCH, HELD = 256, 2, 2
STEPS = 40  # whose median is the overhead of a step
RECORDS = 20000


class Sides:
    def __init__(self, path, library):
        self.dataset = libshard.open(path)
        self.c = ctypes.CDLL(library)
        self.c.loop_dataset.restype = self.c.loop_loader.restype = ctypes.c_void_p
        self.c.loop_epoch.restype = self.c.loop_step.restype = ctypes.c_double
        self.c_dataset = ctypes.c_void_p(self.c.loop_dataset(path.encode()))
        if not self.c_dataset:
            raise SystemExit("the C loop has no dataset")
        self.epoch_python(), self.epoch_c()  # which hash every record, once

    def loader(self):
        return libshard.Loader(self.dataset, BATCH, seed=1, prefetch=PREFETCH, max_held=HELD)

    def c_loader(self):
        loader = ctypes.c_void_p(self.c.loop_loader(self.c_dataset, BATCH, PREFETCH + HELD))
        if not loader:
            raise SystemExit("the C loop has no loader")
        return loader

    def epoch_python(self):
        """Seconds of an epoch of a new loader."""
        with self.loader() as loader:
            begin = time.perf_counter()
            for batch in loader:
                pass
            return time.perf_counter() - begin

    def epoch_c(self):
        loader = self.c_loader()
        seconds = self.c.loop_epoch(loader)
        self.c.loop_close(loader)
        return seconds

    def overhead(self):
        """Microseconds that a step takes longer in Python, with a batch that is ready: both in turn."""
        loader, c_loader = self.loader(), self.c_loader()
        batches = (batch for _ in iter(int, 1) for batch in loader)
        batch, ours, theirs = None, [], []
        for _ in range(STEPS):
            time.sleep(0.01)
            begin = time.perf_counter()
            del batch
            batch = next(batches)
            ours.append(time.perf_counter() - begin)
            time.sleep(0.01)
            theirs.append(self.c.loop_step(c_loader))
        self.c.loop_close(c_loader)
        if min(theirs) < 0:
            raise SystemExit("the C loop failed")
        return (statistics.median(ours) - statistics.median(theirs)) * 1e6

    def record(self):
        """Microseconds of ds[i]."""
        ds, numbers = self.dataset, random.Random(7).choices(range(len(self.dataset)), k=RECORDS)
        begin = time.perf_counter()
        for i in numbers:
            ds[i]
        return (time.perf_counter() - begin) / RECORDS * 1e6


def main():
    sides = Sides(*sys.argv[1:])
    print("ready", flush=True)
    for word in sys.stdin:
        print(getattr(sides, word.strip())(), flush=True)


main()
