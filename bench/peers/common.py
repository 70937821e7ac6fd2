# SPDX-License-Identifier: Apache-2.0
"""What every row of bench/peers has in common: the data, what a trainer does with a batch, and how
it is measured.

Fairness, the same for all:

- the same records: 224 x 224 x 3 bytes and a label, decoded from the same JPEGs; the same batch of
  256; a whole epoch;
- the consumer touches every page of every image and nothing else; from that comes a checksum which
  no order changes;
- each peer shuffles, as its documentation says that one does, and drops or repeats nothing;
- 0, 1 and 2 workers (of ours, threads: at least 1), the fastest is kept; settings and the page that
  says so stand in the row;
- the first epoch warms up; hot is the next two together (one, if an epoch takes over 15 s), what
  was prepared ahead of them included, as in training; cold is a new process after the files left
  the page cache;
- CPU and memory are those of the process and all its children.
"""

import os
import resource
import threading
import time

import numpy as np

SHAPE = (224, 224, 3)
BATCH = 256
PAGE = 4096


def corpus(folder):
    """(pixels [n, 224, 224, 3] in a map, labels [n])."""
    labels = np.load(os.path.join(folder, "labels.npy"))
    return np.memmap(os.path.join(folder, "pixels.bin"), np.uint8, "r", shape=(len(labels), *SHAPE)), labels


def write_map(images, labels, out):
    """What corpus() reads, for peers that have no format."""
    os.makedirs(out)
    np.asarray(images).tofile(f"{out}/pixels.bin")
    np.save(f"{out}/labels.npy", labels)


def touch(images, labels):
    """A byte of each page of each image, times its label: the same sum in any order of an epoch."""
    a = np.asarray(images).reshape(len(images), -1)
    per_image = a[:, ::PAGE].sum(axis=1, dtype=np.uint64)
    return int((per_image * (np.asarray(labels).astype(np.uint64).reshape(-1) + np.uint64(1))).sum())


# ---- the process and its children ----


def tree(pid):
    """This process and those below it that live."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as f:
                    parents.setdefault(int(f.read().rpartition(")")[2].split()[1]), []).append(int(name))
            except OSError:
                pass
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += parents.get(found[-1], [])
    return found


def cpu_seconds():
    """Of this process, of children that ended, and of those that live."""
    total = sum(
        r.ru_utime + r.ru_stime for r in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
    for pid in tree(os.getpid())[1:]:
        try:
            with open(f"/proc/{pid}/stat") as f:
                total += sum(map(int, f.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            pass
    return total


class Memory(threading.Thread):
    """Looks ten times a second at the memory of the processes: all of it, and what is not file."""

    def __init__(self):
        super().__init__(daemon=True)
        self.peak, self.peak_anonymous, self.stop = 0, 0, threading.Event()

    def run(self):
        while not self.stop.wait(0.1):
            all_, anonymous = 0, 0
            for pid in tree(os.getpid()):
                try:
                    with open(f"/proc/{pid}/smaps_rollup") as f:
                        for line in f:
                            if line.startswith("Pss:"):
                                all_ += int(line.split()[1]) * 1024
                            elif line.startswith("Pss_Anon:") or line.startswith("Pss_Shmem:"):
                                anonymous += int(line.split()[1]) * 1024
                except OSError:
                    pass
            self.peak, self.peak_anonymous = max(self.peak, all_), max(self.peak_anonymous, anonymous)


# ---- files ----


def files(folder):
    return sorted(os.path.join(d, n) for d, _, names in os.walk(folder) for n in names)


def size(folder):
    return sum(os.stat(f).st_size for f in files(folder))


def make_cold(folder):
    """Take the files out of the page cache; returns the share of their pages that stayed."""
    import ctypes
    import mmap

    libc = ctypes.CDLL(None, use_errno=True)
    stayed = pages = 0
    for path in files(folder):
        with open(path, "rb") as f:
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            length = os.fstat(f.fileno()).st_size
            if length:
                with mmap.mmap(f.fileno(), length, prot=mmap.PROT_READ) as m:
                    count = -(-length // PAGE)
                    vector = (ctypes.c_ubyte * count)()
                    address = np.frombuffer(m, np.uint8).ctypes.data
                    libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(length), vector)
                    stayed += int((np.frombuffer(vector, np.uint8) & 1).sum())
                    pages += count
    return stayed / max(pages, 1)


def run_epoch(batches):
    """(seconds, seconds to the first batch, records, checksum)"""
    begin, first, records, checksum = time.perf_counter(), None, 0, 0
    for images, labels in batches:
        if first is None:
            first = time.perf_counter() - begin
        checksum += touch(images, labels)
        records += len(labels)
        del images, labels
    return time.perf_counter() - begin, first, records, checksum & (2**64 - 1)
