# SPDX-License-Identifier: Apache-2.0
"""What every row of bench/peers has in common: the data, what a trainer does with a batch, and how
it is measured.

Fairness, the same for all:

- the same records: 224 x 224 x 3 bytes and a label, decoded from the same JPEGs; the same batch of
  256; a whole epoch;
- before anything is timed, one epoch hashes every byte of every image and label: the hashes must be
  those of the data, each as often as the data has it;
- two consumers are timed. One touches a byte of each page of each image (the batch is delivered),
  the other one reads each byte once. Both come to a sum that no order changes, and that must be the
  data's too;
- each peer shuffles, as its documentation says that one does, and drops or repeats nothing;
- nothing is told to a library that its page does not tell: no number of threads is forced on it;
- CPU and memory are those of the process and all its children.
"""

import hashlib
import os
import resource
import threading
import time

import numpy as np

SHAPE = (224, 224, 3)
IMAGE_BYTES = 224 * 224 * 3
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


# ---- consumers ----


def rows(images):
    return np.asarray(images).reshape(len(images), -1)


def weighted(per_image, labels):
    return int((per_image * (np.asarray(labels).astype(np.uint64).reshape(-1) + np.uint64(1))).sum())


def touch(images, labels):
    """A byte of each page of each image, times its label plus 1: the sum has no order."""
    return weighted(rows(images)[:, ::PAGE].sum(axis=1, dtype=np.uint64), labels)


def read(images, labels):
    """Every byte of each image, as words of 8, times its label plus 1: the sum has no order."""
    return weighted(rows(images).view(np.uint64).sum(axis=1), labels)


CONSUMERS = {"delivered": touch, "read": read}


def digests(images, labels):
    """The SHA-256 of each image with its label, as 32 bytes: [n, 32]."""
    found = np.empty((len(images), 32), np.uint8)
    labels = np.asarray(labels).astype("<i8").reshape(-1)
    for i, (image, label) in enumerate(zip(rows(images), labels, strict=True)):
        digest = hashlib.sha256(image)
        digest.update(label.tobytes())
        found[i] = np.frombuffer(digest.digest(), np.uint8)
    return found


def keys(found):
    return np.ascontiguousarray(found).view("V32").reshape(-1).tolist()


def difference(found, wanted):
    """(records of the data that did not come; records that came and are not the data's, or came too
    often)."""
    left = {}
    for key in keys(wanted):
        left[key] = left.get(key, 0) + 1
    foreign = 0
    for key in keys(found):
        if left.get(key, 0):
            left[key] -= 1
        else:
            foreign += 1
    return sum(left.values()), foreign


def sums(images, labels, step=1024):
    """What a whole epoch comes to, for each consumer."""
    totals = {
        name: sum(use(images[i : i + step], labels[i : i + step]) for i in range(0, len(labels), step))
        for name, use in CONSUMERS.items()
    }
    return {name: f"{total & (2**64 - 1):016x}" for name, total in totals.items()}


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
    """Of this process, of children that have ended, and of children that live."""
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


def busy_seconds():
    """Of all processors together since the machine started, with what a hypervisor took."""
    with open("/proc/stat") as f:
        ticks = list(map(int, f.readline().split()[1:9]))
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


class Others:
    """What CPU time this process and its children take from now on, and what share others take."""

    def __init__(self):
        self.begin = time.perf_counter(), cpu_seconds(), busy_seconds()

    def stop(self):
        """(CPU seconds, the others' share of all processors)"""
        seconds, cpu, busy = (
            now - then for now, then in zip((time.perf_counter(), cpu_seconds(), busy_seconds()), self.begin)
        )
        return cpu, max(0.0, busy - cpu) / seconds / os.cpu_count()


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


def make_hot(folder):
    """Have the files in the page cache as training has them there: read in order, once.  Who wrote
    them has them there in other pages, or not at all."""
    make_cold(folder)
    piece = bytearray(1 << 20)
    for path in files(folder):
        with open(path, "rb", buffering=0) as f:
            while f.readinto(piece):
                pass


def touch_free_memory(count):
    """Touch this many bytes, and give them back.  A virtual machine may report free memory to its
    host, which finds it again when it is used again; of this much that is over before a run.  (Huge
    pages are those that it reports; shared memory would be touched in small ones.)"""
    import mmap

    with mmap.mmap(-1, count, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as m:
        m.madvise(mmap.MADV_HUGEPAGE)
        pages = np.frombuffer(m, np.uint8)[::PAGE]
        pages[:] = 1
        del pages


def run_epoch(batches, use=touch):
    """(seconds, seconds to the first batch, records, sum)"""
    begin, first, records, total = time.perf_counter(), None, 0, 0
    for images, labels in batches:
        if first is None:
            first = time.perf_counter() - begin
        total += use(images, labels)
        records += len(labels)
        del images, labels
    return time.perf_counter() - begin, first, records, f"{total & (2**64 - 1):016x}"
