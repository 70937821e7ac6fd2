# SPDX-License-Identifier: Apache-2.0
"""The counters of a loader as one line for a log: how fast it was, which side waited for the other,
and why.  docs/TRAINING.md, "Why is my GPU idle?", explains the last words of a line.
"""

import glob
import os
import re
from collections.abc import Mapping

# Measured once; docs/MIGRATING.md says how.
_PAGEABLE = (
    "This machine has a GPU, and copies of these batches to it are slow, because their memory is not page-locked: "
    "say device='cuda' or pin_memory=True (ResNet-18 on one H200: 6,570 images/s so, 13,042 with device='cuda')"
)


def gpu_is_here() -> bool:
    """May this process use a GPU of NVIDIA?  That is read from files.

    A call of CUDA would start it in this process, and then it would not work in forked children.
    Where the driver has no such files, as in WSL, the answer is no.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0")  # "", -1 and other words hide all of them
    return (
        re.match(r"\s*(\d|GPU-|MIG-)", visible) is not None
        and bool(glob.glob("/proc/driver/nvidia/gpus/*"))
        and any(os.access(path, os.R_OK | os.W_OK) for path in glob.glob("/dev/nvidia[0-9]*"))
    )


def _percent(part: int, whole: int) -> str:
    """The part may be larger: a thread counts its time when it is done, whenever it began."""
    tenths = 1000 if part >= whole else (1000 * part + whole // 2) // whole
    return f"{tenths // 10}.{tenths % 10} %" if tenths < 100 else f"{(tenths + 5) // 10} %"


def _rate(amount: int, ns: int) -> str:
    """Amount per second, with three digits: 7.25, 72.5, 725, 7,250."""
    thousandths, unit = amount * 10**12 // ns, 1
    while thousandths // unit >= 1000:
        unit *= 10
    thousandths = (thousandths + unit // 2) // unit * unit
    whole = f"{thousandths // 1000:,}"
    if thousandths < 10000:
        return f"{whole}.{thousandths // 10 % 100:02}"
    return f"{whole}.{thousandths // 100 % 10}" if thousandths < 100000 else whole


def _bytes_rate(amount: int, ns: int) -> str:
    scale = 0
    while scale < 3 and amount * 10**9 // ns >= 1000 ** (scale + 1):
        scale += 1
    return f"{_rate(amount, ns * 1000**scale)} {('B/s', 'kB/s', 'MB/s', 'GB/s')[scale]}"


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def rates_of(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, float]:
    """Of what happened between two ``Loader.stats()``: rates, and parts of the time from 0 to 1."""
    s = {name: now[name] - before.get(name, 0) for name in now}
    elapsed, threads = s["elapsed_ns"], now["thread_count"]

    def part(ns: int, of: int) -> float:
        return min(1.0, ns / of) if of > 0 else 0.0  # a thread counts its time when it is done, whenever it began

    rates = {
        f"{name}_per_second": s[counter] * 1e9 / elapsed if elapsed > 0 else 0.0
        for name, counter in (("batches", "batch_count"), ("records", "record_count"), ("bytes", "bytes"))
    }
    return rates | {
        "wait_fraction": part(s["next_wait_ns"], elapsed),
        "function_fraction": part(s["function_ns"], elapsed),
        "function_wait_fraction": part(s["function_wait_ns"], elapsed),
        "threads_fill_fraction": part(s["fill_ns"], elapsed * threads),
        "threads_wait_fraction": part(s["slot_wait_ns"], elapsed * threads),
        "damaged_rows": float(now["substituted_count"] + now["masked_count"]),
    }


# Of stats(): what Prometheus calls it, and what it is.
_COUNTERS = {
    "batch_count": ("batches", "Batches that loops took."),
    "record_count": ("records", "Records in them."),
    "bytes": ("bytes", "Bytes in them."),
    "elapsed_ns": ("elapsed_seconds", "Time since the first batch was asked for."),
    "next_wait_ns": ("wait_seconds", "Time that loops waited for a batch."),
    "function_ns": ("function_seconds", "Time in the functions given as transform."),
    "function_wait_ns": ("function_wait_seconds", "Time that loops waited for these functions."),
    "fill_ns": ("fill_seconds", "Time in which threads filled batches, the sum of all threads."),
    "slot_wait_ns": ("slot_wait_seconds", "Time in which threads waited for memory, the sum of all threads."),
    "substituted_count": ("substituted_rows", "Damaged rows that others stand for."),
    "masked_count": ("masked_rows", "Damaged rows that are zeros."),
}
_LABEL = re.compile("[a-zA-Z_][a-zA-Z0-9_]*")


def is_label(name: str) -> bool:
    return _LABEL.fullmatch(name) is not None and not name.startswith("__")


def prometheus_of(s: Mapping[str, int], labels: Mapping[str, str]) -> str:
    """Counters in the text format of Prometheus."""
    quoted = (
        f'{name}="' + value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") + '"'
        for name, value in labels.items()
    )
    where = ",".join(quoted)
    lines = []
    for counter, (name, text) in _COUNTERS.items():
        name = f"libshard_{name}_total"
        value = f"{s[counter] / 1e9:.9f}" if counter.endswith("_ns") else str(s[counter])
        lines += [f"# HELP {name} {text}", f"# TYPE {name} counter"]
        lines.append(f"{name}{{{where}}} {value}" if where else f"{name} {value}")
    return "\n".join(lines) + "\n"


def _slower_side(s: Mapping[str, int]) -> str:
    waited = s["next_wait_ns"] >= s["elapsed_ns"] // 100
    slots_ran_out = s["slot_wait_ns"] >= s["elapsed_ns"] * s["thread_count"] // 10
    if not s["thread_count"]:
        return "no thread could be started: the thread that takes batches fills them itself"
    if not waited or (slots_ran_out and s["next_wait_count"] <= 1):
        # That one was the first batch, which no thread could prepare.
        line = "the trainer is the slower side since the first batch" if waited else "the trainer is the slower side"
        if 10 * s["function_wait_ns"] >= s["elapsed_ns"]:
            line += f", and {_percent(s['function_wait_ns'], s['elapsed_ns'])} of the time is its transform function's"
        return line
    if slots_ran_out:
        return "each side waits for the other at times: add slots"
    if s["fill_cpu_ns"] >= s["fill_ns"] // 5 * 4:
        return "the loader is the slower side, its threads are busy computing: add threads"
    if s["direct_bytes"] + s["pread_bytes"] >= s["mapped_bytes"]:
        return "the loader is the slower side, its threads wait for the disk"
    return "the loader is the slower side, its threads wait for page faults or for a CPU"


def summary_of(s: Mapping[str, int], could_be_faster: bool = False) -> str:
    """The line, of what ``Loader.stats()`` returns.  With ``could_be_faster`` a GPU is here, and batches in pageable
    memory."""
    elapsed_ns = s["elapsed_ns"]
    thread_ns = elapsed_ns * s["thread_count"]
    if not s["batch_count"] or not elapsed_ns:
        return "no batch was taken"
    parts = [f"{_bytes_rate(s['bytes'], elapsed_ns)}, {_rate(s['record_count'], elapsed_ns)} records/s"]
    if s["function_ns"]:
        parts.append(f"transform function {_percent(s['function_ns'], elapsed_ns)}")
        if s["function_wait_ns"] != s["function_ns"]:
            parts[-1] += f" ahead of the loop, which waited for it {_percent(s['function_wait_ns'], elapsed_ns)}"
    parts.append(
        f"next waited {_percent(s['next_wait_ns'], elapsed_ns)}"
        f" ({s['next_wait_count']:,} of {s['batch_count']:,} times)"
    )
    if thread_ns:
        parts.append(
            f"threads filled {_percent(s['fill_ns'], thread_ns)} (on a CPU {_percent(s['fill_cpu_ns'], thread_ns)}),"
            f" waited for slots {_percent(s['slot_wait_ns'], thread_ns)}"
        )
    paths = ", ".join(
        f"{path} {_percent(s[path + '_bytes'], s['filled_bytes'])}"
        for path in ("mapped", "direct", "pread")
        if s[path + "_bytes"]
    )
    if s["direct_bytes"] and not s["has_uring"]:
        paths += " without io_uring"
    if paths:
        parts.append(paths)
    if s["decoded_chunk_count"]:
        parts.append(f"decoded {_count(s['decoded_chunk_count'], 'chunk')}")
        # A few are normal: of runs that two shards share, or behind a seek.
        if s["unfinished_chunk_count"] >= max(1, s["decoded_chunk_count"] // 10):
            parts[-1] += f" ({s['unfinished_chunk_count']:,} were evicted before they were used up; raise stage_bytes)"
    if s["checked_unit_count"]:
        parts.append(f"hashed {_count(s['checked_unit_count'], 'unit')}")
    if s["device_checked_count"]:
        parts.append(
            f"the GPU hashed {_count(s['device_checked_count'], 'unit')}"
            f" (next waited for that {_count(s['check_wait_count'], 'time')})"
        )
    if s["recopied_count"]:
        parts.append(f"{_count(s['recopied_count'], 'row')} arrived damaged and went to the GPU again")
    damage = [f"{kind} {s[kind + '_count']:,}" for kind in ("substituted", "masked") if s[kind + "_count"]]
    if damage:
        parts.append(f"damage: rows {', '.join(damage)}")
    if s["device_bytes"]:
        paths = ", ".join(
            f"{name} {_percent(s[counter], s['device_bytes'])}"
            for name, counter in (("out of the page cache", "cached_bytes"), ("pageable", "pageable_bytes"))
            if s[counter]
        )
        parts.append(
            f"to the GPU {_bytes_rate(s['device_bytes'], elapsed_ns)}{f' ({paths})' if paths else ''},"
            f" waited for it {_percent(s['device_wait_ns'], elapsed_ns)}"
        )
    return f"{'; '.join(parts)}: {_slower_side(s)}{'. ' + _PAGEABLE if could_be_faster else ''}"
