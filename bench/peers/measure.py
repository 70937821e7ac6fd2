# SPDX-License-Identifier: Apache-2.0
"""measure.py PEER STAGE CORPUS OUT [LINE WORKERS] - one stage of one row, in a process of its own;
prints a line of JSON

Stages: pack; trial (part of an epoch, to choose a number of workers); hot (an epoch that hashes all
bytes and keeps the loader's state at its middle, then what is timed); cold (the files are out of
the page cache); resume (from that state).
"""

import importlib
import json
import os
import pickle
import sys
import time

import common
import numpy as np

SECONDS = 2  # each consumer is timed over whole epochs until this much has passed


def pack(peer, corpus, out):
    images, labels = common.corpus(corpus)
    begin, cpu = time.perf_counter(), common.cpu_seconds()
    peer.pack(images, labels, out)
    for path in common.files(out):  # durable, for all
        with open(path, "rb") as f:
            os.fsync(f.fileno())
    return {"pack_s": time.perf_counter() - begin, "pack_cpu_s": common.cpu_seconds() - cpu, "bytes": common.size(out)}


def opened(line, out, workers):
    begin = time.perf_counter()
    reader = line(out, workers)
    return reader, time.perf_counter() - begin


def trial(line, corpus, out, workers):
    """How fast it is after the first quarter of an epoch."""
    reader, _ = opened(line, out, workers)
    skipped = len(np.load(f"{corpus}/labels.npy")) // 4
    records, begin = 0, None
    for images, labels in reader.epoch(0):
        common.touch(images, labels)
        records += len(labels)
        if begin is None and records >= skipped:
            begin, skipped = time.perf_counter(), records
    return {"per_s": (records - skipped) / (time.perf_counter() - begin)}


def verified(reader, corpus, out):
    """An epoch of which every byte is hashed; what resume() needs goes into a file."""
    wanted = np.load(f"{corpus}/digests.npy")
    steps = len(wanted) // common.BATCH // 2
    state, found, begin, first = None, [], time.perf_counter(), None
    for images, labels in reader.epoch(0):
        first = first or time.perf_counter() - begin
        found.append(common.digests(images, labels))
        del images, labels
        if len(found) == steps and hasattr(reader, "state"):
            state = reader.state()
    with open(out + ".state", "wb") as f:
        pickle.dump((steps, state, sorted(common.keys(found[steps])) if len(found) > steps else []), f)
    found = np.concatenate(found)
    missing, foreign = common.difference(found, wanted)
    return {
        "first_s": first,
        "records": len(found),
        "missing": missing,
        "foreign": foreign,
        "has_state": state is not None,
    }


def timed(reader, epoch, use):
    """Whole epochs by one consumer, from that number on."""
    others, epochs = common.Others(), []
    while sum(e["s"] for e in epochs) < SECONDS:
        seconds, _, records, total = common.run_epoch(reader.epoch(epoch + len(epochs)), use)
        epochs.append({"s": seconds, "records": records, "sum": total})
    cpu, share = others.stop()
    records, seconds = (sum(e[k] for e in epochs) for k in ("records", "s"))
    return {
        "per_s": records / seconds,
        "cpu_s_per_GB": cpu / (records * common.IMAGE_BYTES / 1e9),
        "others": share,
        "epochs": epochs,
    }


def hot(line, corpus, out, workers):
    common.make_hot(out)
    common.touch_free_memory(common.size(out))
    memory = common.Memory()
    memory.start()
    reader, open_s = opened(line, out, workers)
    found = {"open_s": open_s, **verified(reader, corpus, out)}
    memory.stop.set()
    memory.join()
    found.update(peak_bytes=memory.peak, peak_anonymous_bytes=memory.peak_anonymous)
    epoch = 1
    for name, use in common.CONSUMERS.items():
        found[name] = timed(reader, epoch, use)
        epoch += len(found[name]["epochs"])
    return found


def cold(line, corpus, out, workers):
    """From opening to the end of the epoch: some read much of their files when they are opened."""
    stayed = common.make_cold(out)
    common.touch_free_memory(2 * common.size(out))
    others = common.Others()
    reader, open_s = opened(line, out, workers)
    seconds, first, records, total = common.run_epoch(reader.epoch(0))
    return {
        "per_s": records / (open_s + seconds),
        "others": others.stop()[1],
        "open_s": open_s,
        "first_s": first,
        "stayed": stayed,
        "epochs": [{"s": seconds, "records": records, "sum": total}],
    }


def resume(line, corpus, out, workers):
    """From nothing to the first batch after the state.  Without one: again, less what was seen."""
    with open(out + ".state", "rb") as f:
        steps, state, wanted = pickle.load(f)
    common.make_hot(out)
    common.touch_free_memory(common.size(out))
    begin = time.perf_counter()
    reader = line(out, workers)
    if state is not None:
        reader.restore(state)
    batches = iter(reader.epoch(0))
    for _ in range(0 if state is not None else steps):
        next(batches)
    images, labels = next(batches)
    common.touch(images, labels)
    seconds = time.perf_counter() - begin
    return {"resume_s": seconds, "same": sorted(common.keys(common.digests(images, labels))) == wanted}


def main():
    name, stage, corpus, out = sys.argv[1:5]
    os.environ["CORPUS"] = corpus
    peer = importlib.import_module(f"peer_{name}")
    if stage == "pack":
        found = pack(peer, corpus, out)
    else:
        stages = {"trial": trial, "hot": hot, "cold": cold, "resume": resume}
        found = stages[stage](getattr(peer, sys.argv[5]), corpus, out, int(sys.argv[6]))
    print("\n" + json.dumps(found), flush=True)
    os._exit(0)  # some leave threads and workers behind


if __name__ == "__main__":
    main()
