# SPDX-License-Identifier: Apache-2.0
"""sides.py PHOTOS SMALL LOOP.so - measures what bench/python_package.c asks for: a word on each
line it reads, a number on each it writes

Python's loaders and C's run in this one process, on the same files, with as many threads, and as
many slots for these to fill while the next batch is asked for: Python has one more, for a loop
still holds its batch then, and the C loop does not.  Both are the defaults.  They are opened once
and stay: what an epoch of a new loader costs besides, pages of its ring that are touched for the
first time and threads that start, is another question, and was more than what is asked here.  Where
two are compared, epochs of one follow those of the other, and each goes first as often.
"""

import ctypes
import itertools
import random
import statistics
import sys
import time

import libshard

SLOTS = 4  # of the C loop
TURNS = 6  # of epochs, a run; even
STEPS = 40  # whose median is the overhead of a step
RECORDS = 20000


class Pair:
    """A dataset, and a loader of either side that has delivered all of it."""

    def __init__(self, c, path, batch):
        self.c = c
        self.dataset = libshard.open(path)
        self.loader = libshard.Loader(self.dataset, batch, seed=1)
        self.c_dataset = ctypes.c_void_p(c.loop_dataset(path.encode()))
        self.c_loader = self.open_c()
        for _ in range(2):  # the first hashes every record
            self.epoch_python(), self.epoch_c()
        self.turn = itertools.cycle(((self.epoch_python, self.epoch_c), (self.epoch_c, self.epoch_python)))

    def open_c(self):
        loader = self.c_dataset and ctypes.c_void_p(self.c.loop_loader(self.c_dataset, self.loader.batch_size, SLOTS))
        if not loader:
            raise SystemExit(f"the C loop cannot read {self.dataset.path}")
        return loader

    def epoch_python(self):
        """Seconds of an epoch, and of all CPUs."""
        begin, cpu = time.perf_counter(), time.process_time()
        for batch in self.loader:
            pass
        return time.perf_counter() - begin, time.process_time() - cpu

    def epoch_c(self):
        cpu = time.process_time()
        seconds = self.c.loop_epoch(self.c_loader)
        if seconds < 0:
            raise SystemExit("the C loop failed")
        return seconds, time.process_time() - cpu

    def run(self, turns):
        """Seconds of an epoch, wall and CPU, of each side: medians of this many epochs in turn."""
        found = {self.epoch_python: [], self.epoch_c: []}
        for _ in range(turns):
            for side in next(self.turn):
                found[side].append(side())
        return [[statistics.median(x) for x in zip(*v)] for v in found.values()]

    def differences(self):
        """Microseconds that a step takes longer in Python, and more of all CPUs."""
        ours, theirs = self.run(2 * TURNS)
        return [(a - b) / len(self.loader) * 1e6 for a, b in zip(ours, theirs)]


class Sides:
    def __init__(self, photos, small, library):
        self.c = ctypes.CDLL(library)
        self.c.loop_dataset.restype = self.c.loop_loader.restype = ctypes.c_void_p
        self.c.loop_epoch.restype = self.c.loop_step.restype = ctypes.c_double
        self.photos = Pair(self.c, photos, 256)
        self.small = Pair(self.c, small, 16)

    def epoch_python(self):
        """Seconds of an epoch."""
        (ours, _), (self.seconds_of_c, _) = self.photos.run(TURNS)
        return ours

    def epoch_c(self):
        """The same in C, of the epochs between those."""
        return self.seconds_of_c

    def step(self):
        """Microseconds that a step of small records takes longer in Python."""
        return self.small.differences()[0]

    def cpu(self):
        """The same of all CPUs."""
        return self.small.differences()[1]

    def overhead(self):
        """Microseconds that a step takes longer in Python.

        Between steps the trainer, and threads that fill, have used the caches.
        """
        ours, theirs, now = [], [], time.perf_counter
        c_loader = self.photos.open_c()  # as it is left in the middle of an epoch
        while len(ours) < STEPS:
            time.sleep(0.01)
            begin = now()
            for batch in self.photos.loader:
                end = now()
                ours.append(end - begin)
                time.sleep(0.01)
                theirs.append(self.c.loop_step(c_loader))
                time.sleep(0.01)
                begin = now()
                del batch
        self.c.loop_close(c_loader)
        if min(theirs) < 0:
            raise SystemExit("the C loop failed")
        return (statistics.median(ours) - statistics.median(theirs)) * 1e6

    def record(self):
        """Microseconds of ds[i]."""
        ds, numbers = self.photos.dataset, random.Random(7).choices(range(len(self.photos.dataset)), k=RECORDS)
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
