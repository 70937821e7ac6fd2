#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/tree/publish.sh - the pages have the figures of the run that they name; what a run missed,
# and what disturbed it, cannot be left out
set -eu
cd "$ROOT"
bench/publish.py --check

mkdir -p "$TMPDIR/tree/bench/results"
cp bench/publish.py bench/processes.py "$TMPDIR/tree/bench"
cd "$TMPDIR/tree"
"$PYTHON" - <<'PY'
import json
import subprocess

open("bench/TARGETS", "w").write("a at_least 0.9\na/cpu times_at_most 1.1\nb at_most 5\nc at_least 0.5\nd at_most 1\n"
                                 "gpu/e at_least 1\n")
open("bench/REASONS", "w").write("a  it waits for the disk\n")
page = ("<!-- figures of: x -->\n<!-- machine -->\n<!-- end -->\n<!-- table: * -->\n<!-- end -->\n"
        "<!-- missed -->\n<!-- end -->\n")
readme = "<!-- numbers -->\n| images per second in PyTorch | 7 |\n<!-- end -->\n"
machine = {"cpu": "X", "cores": 2, "cache_mib": 1, "memory_gib": 1, "kernel": "K", "load": 0, "date": "2026-01-01"}


def row(process, name, ours, **more):
    return {"process": process, "bench": name, "ours": ours, "unit": "GB/s", "runs": 3, "load": 0, **more}


def run(**changes):
    """Three processes: a is missed in wall and CPU time, b is missed, c was disturbed, d skipped."""
    lines = [{"commit": "c0ffee", "command": "make bench"}]
    for p in (1, 2, 3):
        lines.append({"process": p, "machine": machine})
        lines.append(row(p, "a", 1.6 + p / 10, bound=2, ratio=0.8 + p / 20, cpu_times=1 + p / 10))
        lines.append(row(p, "a/cpu", 1, bound=1, ratio=1, cpu_times=1 + p / 10))
        lines.append({**row(p, "b", 10 * p), **({"marked": "busy"} if p == 1 else {})})
        lines.append({**row(p, "c", 1, ratio=1), **({"marked": "busier"} if p > 1 else {})})
        lines.append({"process": p, "bench": "d", "skipped": "no disk"})
    return lines


def publish(lines, expect=0, word=None):
    open("bench/results/run.json", "w").write("".join(json.dumps(line) + "\n" for line in lines))
    open("bench/RESULTS.md", "w").write(page)
    open("README.md", "w").write(readme)
    return call("bench/results/run.json", expect, word)


def call(what, expect=0, word=None):
    done = subprocess.run(["python3", "bench/publish.py", what], capture_output=True, text=True)
    assert (done.returncode != 0) == (expect != 0), done
    assert word is None or word in done.stderr, done.stderr
    return open("bench/RESULTS.md").read()


text = publish(run())
assert "| `a` | 1.8 GB/s (1.7 to 1.9) | 2 GB/s (2 to 2) | 0.9 (0.85 to 0.95) | 1.2x (1.1 to 1.3) | 0.9 |" in text, text
assert "| `b` | 25 GB/s (20 to 30) |" in text, text  # the marked process does not count
assert "- `c`: busier" in text and "| `c` |" not in text, text
assert "Of 5 targets, 1 are reached and 2 are missed; 2 were not measured" in text, text
assert "| `a/cpu` | 1.2 | at most 1.1x CPU | not examined |" in text and "| `b` | 25 | at most 5 GB/s |" in text, text
assert "- `d`: no disk" in text, text
assert "2 are missed" in open("README.md").read() and "| images per second in PyTorch | 7 |" in open("README.md").read()
call("--check")

# A page that says something nicer, and a target that was made easier afterwards.
open("bench/RESULTS.md", "w").write(text.replace("1.8 GB/s", "2.8 GB/s"))
call("--check", 1, "does not say what")
open("bench/RESULTS.md", "w").write("\n".join(line for line in text.split("\n") if "at most 5 GB/s" not in line))
call("--check", 1, "does not say what")
open("bench/RESULTS.md", "w").write(text)
call("--check")
open("bench/TARGETS", "a").write("f at_least 3\n")
call("--check", 1, "does not say what")

# Figures of several runs, or of several machines.
publish(run() + run()[2:3], 1, "has it twice")
publish(run() + [{"commit": "other", "command": "make bench"}], 1, "two runs")
publish(run() + [{"process": 4, "machine": {**machine, "cpu": "Y"}}], 1, "two machines")
PY
python3 bench/processes.py bench/results/run.json >out 2>&1 && exit 1
grep -q "two machines" out
