# SPDX-License-Identifier: Apache-2.0
"""measure.py PEER STAGE CORPUS OUT [WORKERS] - one stage of one row, in a process of its own;
prints a line of JSON

Stages: pack; hot; cold (the files are out of the page cache); half (read half an epoch, keep the
state); resume.
"""

import importlib
import json
import os
import pickle
import sys
import time

import common

SLOW_S = 15  # whose first epoch takes longer is measured over one more, not two


def pack(peer, corpus, out):
    images, labels = common.corpus(corpus)
    begin, cpu = time.perf_counter(), common.cpu_seconds()
    peer.pack(images, labels, out)
    for path in common.files(out):  # durable, for all
        with open(path, "rb") as f:
            os.fsync(f.fileno())
    return {"pack_s": time.perf_counter() - begin, "pack_cpu_s": common.cpu_seconds() - cpu, "bytes": common.size(out)}


def opened(peer, out, workers):
    begin = time.perf_counter()
    reader = peer.Reader(out, workers)
    return reader, time.perf_counter() - begin


def hot(peer, out, workers):
    memory = common.Memory()
    memory.start()
    reader, open_s = opened(peer, out, workers)
    epochs = []
    for epoch in range(3):
        if epoch == 2 and epochs[0]["s"] > SLOW_S:
            break
        cpu = common.cpu_seconds()
        seconds, first, records, checksum = common.run_epoch(reader.epoch(epoch))
        epochs.append(
            {
                "s": seconds,
                "first_s": first,
                "records": records,
                "checksum": f"{checksum:016x}",
                "cpu_s": common.cpu_seconds() - cpu,
            }
        )
    memory.stop.set()
    memory.join()
    records, seconds, cpu = (sum(e[k] for e in epochs[1:]) for k in ("records", "s", "cpu_s"))
    gigabytes = records * 224 * 224 * 3 / 1e9
    return {
        "open_s": open_s,
        "first_s": epochs[0]["first_s"],
        "hot_per_s": records / seconds,
        "cpu_s_per_GB": cpu / gigabytes,
        "peak_bytes": memory.peak,
        "peak_anonymous_bytes": memory.peak_anonymous,
        "checksums": [e["checksum"] for e in epochs],
        "records": epochs[0]["records"],
        "epochs": epochs,
    }


def cold(peer, out, workers):
    stayed = common.make_cold(out)
    reader, open_s = opened(peer, out, workers)
    seconds, first, records, checksum = common.run_epoch(reader.epoch(0))
    return {
        "cold_per_s": records / seconds,
        "cold_open_s": open_s,
        "cold_first_s": first,
        "stayed": stayed,
        "checksum": f"{checksum:016x}",
    }


def half(peer, out, workers):
    """State in the middle of an epoch.  Who has none begins again and drops what was seen."""
    reader, _ = opened(peer, out, workers)
    images, _ = common.corpus(os.environ["CORPUS"])
    steps = len(images) // common.BATCH // 2
    batches = iter(reader.epoch(0))
    for _ in range(steps):
        next(batches)
    state = reader.state() if hasattr(reader, "state") else None
    with open(out + ".state", "wb") as f:
        pickle.dump((steps, state), f)
    return {"has_state": state is not None}


def resume(peer, out, workers):
    with open(out + ".state", "rb") as f:
        steps, state = pickle.load(f)
    begin = time.perf_counter()
    reader = peer.Reader(out, workers)
    if state is not None:
        reader.restore(state)
        batches = iter(reader.epoch(0))
    else:
        batches = iter(reader.epoch(0))
        for _ in range(steps):
            next(batches)
    images, labels = next(batches)
    common.touch(images, labels)
    return {"resume_s": time.perf_counter() - begin}


def main():
    name, stage, corpus, out = sys.argv[1:5]
    os.environ["CORPUS"] = corpus
    peer = importlib.import_module(f"peer_{name}")
    workers = int(sys.argv[5]) if len(sys.argv) > 5 else 0
    stages = {"hot": hot, "cold": cold, "half": half, "resume": resume}
    found = pack(peer, corpus, out) if stage == "pack" else stages[stage](peer, out, workers)
    print("\n" + json.dumps(found), flush=True)
    os._exit(0)  # some leave threads and workers behind


if __name__ == "__main__":
    main()
