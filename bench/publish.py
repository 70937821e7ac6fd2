#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""publish.py - put the figures of one run into bench/RESULTS.md and README.md

    publish.py bench/results/NAME.json     take the figures of this run, and of no other
    publish.py --check                     do the pages say what their run and TARGETS say?

The file is what `make bench` printed, of one or more processes.  A figure is the median over its
processes, and the range is theirs.  A process whose row was marked does not count for that row; a
row is published if more than half of the processes count.  Whatever is missed, disturbed, skipped
or not measured is listed.  Nothing is chosen by hand: the pages name patterns of rows, between
comments like these, and what stands between them is written here:

    <!-- machine -->  <!-- table: loader/* -->  <!-- missed -->  <!-- numbers -->  <!-- end -->

bench/REASONS has the reasons of misses: a row, and a sentence that is printed if the row is missed.
"""
import fnmatch
import json
import os
import re
import statistics
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BLOCK = re.compile(r"(<!-- (machine|table|missed|numbers)(?:: ([^>]*?))? -->\n)(.*?)(<!-- end -->)", re.S)
KINDS = {"at_least": "at least", "at_most": "at most", "times_at_most": "at most"}

# The rows of README.md.  Between KEPT, which stay as they are there: a run on a GPU, and bench/peers.
KEPT_FIRST, KEPT_LAST = "| ResNet-", "| images per second in PyTorch"
NUMBERS = [
    ("loader/hot/150528/1", "batches of 147 KiB records, files in memory, 1 thread", "a bare copy loop"),
    ("loader/cold/150528", "the same, read from disk", "a bare io_uring loop"),
    ("open/all/hot", "open 100 million records in 10,000 shards, and read three of them", None),
    ("pack/images/1", "pack JPEGs to 224 pixels, 1 thread", "a loop that writes nothing"),
]


def fail(text):
    raise SystemExit(f"publish.py: {text}")


def read_lines(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return [line.split(None, 2) for line in file if line.strip() and not line.startswith("#")]


def read_targets():
    targets = {}
    for name, kind, value in read_lines("bench/TARGETS"):
        if kind not in KINDS:
            fail(f"bench/TARGETS: {name}: {kind} is none of {', '.join(KINDS)}")
        targets[name] = (kind, float(value))
    return targets


def read_reasons():
    return {line[0]: " ".join(line[1:]).strip() for line in read_lines("bench/REASONS")}


def number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


class Row:
    """One row of a run: what its processes measured."""

    def __init__(self, name, lines, process_count):
        self.name, self.process_count = name, process_count
        self.unit = next((line["unit"] for line in lines if "unit" in line), "")
        self.counted = [line for line in lines if "ours" in line and "marked" not in line]
        self.why = next((line.get("skipped") or line.get("marked") for line in lines
                         if "skipped" in line or "marked" in line), "measured by too few processes")
        self.published = 2 * len(self.counted) > process_count

    def median(self, key):
        values = [line[key] for line in self.counted if key in line]
        return statistics.median(values) if values else None

    def range(self, key, unit=""):
        """The median, and over several processes the least and the greatest."""
        values = [line[key] for line in self.counted if key in line]
        if not values:
            return ""
        text = number(statistics.median(values)) + unit
        return text if len(values) == 1 else f"{text} ({number(min(values))} to {number(max(values))})"

    def reached(self, target):
        """The figure that a target is about; None if there is none."""
        if target[0] == "at_most":
            return self.median("ours")
        if target[0] == "times_at_most":
            return self.median("cpu_times")
        ratio = self.median("ratio")
        return self.median("ours") if ratio is None else ratio

    def misses(self, target):
        reached = self.reached(target)
        return reached is None or (reached < target[1] if target[0] == "at_least" else reached > target[1])


class Run:
    def __init__(self, path):
        self.path = path
        self.machine, self.gpu, self.told, grouped, processes = None, None, {}, {}, set()
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file if line.strip()]
        for line in lines:
            processes.add(line.get("process", 1))
            if "machine" in line:
                machine = {k: v for k, v in line["machine"].items() if k not in ("load", "date")}
                if self.machine not in (None, machine):
                    fail(f"{path}: has the runs of two machines; publish one")
                self.machine = machine
                self.date = line["machine"].get("date", "")
            elif "gpu" in line:
                self.gpu = line
            elif "bench" not in line:
                if self.told and line != self.told:
                    fail(f"{path}: has two runs ({self.told} and {line}); publish one")
                self.told = line
            elif "candidate" not in line:
                seen = grouped.setdefault(line["bench"], {})
                if line.get("process", 1) in seen:
                    fail(f"{path}: {line['bench']}: process {line.get('process', 1)} has it twice")
                seen[line.get("process", 1)] = line
        self.process_count = len(processes)
        self.rows = {name: Row(name, list(seen.values()), self.process_count) for name, seen in grouped.items()}
        self.targets = {k: v for k, v in read_targets().items() if not k.startswith("gpu/") or k in self.rows}

    def target_text(self, name):
        if name not in self.targets:
            return ""
        kind, value = self.targets[name]
        unit = f" {self.rows[name].unit}" if kind == "at_most" and name in self.rows else ""
        return f"{value:g}x CPU" if kind == "times_at_most" else f"{value:g}{unit}"

    def missed(self):
        return [name for name in self.targets
                if name in self.rows and self.rows[name].published and self.rows[name].misses(self.targets[name])]

    def open(self):
        """Targets of which this run says nothing."""
        return [name for name in self.targets if name not in self.rows or not self.rows[name].published]


# ---- the blocks ----

def run_block(run, _):
    m = run.machine
    text = (f"{m['cpu']}, {m['cores']} cores, {m['cache_mib']} MiB of cache, {m['memory_gib']} GiB of memory, "
            f"{m['kernel']}; {run.gpu['gpu'] + '; ' if run.gpu else ''}{run.date}; commit `{run.told.get('commit', 'unknown')}`; file "
            f"`{os.path.basename(run.path)}`; processes: {run.process_count}.")
    return wrap(text)


def wrap(text, columns=100):
    out, line = [], ""
    for word in text.split():
        if len(line) + len(word) + 1 > columns:
            out.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return "\n".join(out + [line]) + "\n"


def item(text):
    """Of a list: the lines behind the first are indented."""
    return "- " + wrap(text, 98).replace("\n", "\n  ").rstrip() + "\n"


def table_block(run, patterns):
    head = "| row | libshard | bound | ratio | CPU, of the bound's | target |\n|---|---:|---:|---:|---:|---:|\n"
    out, hidden = "", []
    for name, row in run.rows.items():
        if not any(fnmatch.fnmatch(name, p) for p in patterns.split()):
            continue
        if name.endswith("/cpu") and name not in run.targets:
            continue
        if not row.published:
            hidden.append(item(f"`{name}`: {row.why}"))
            continue
        out += (f"| `{name}` | {row.range('ours', ' ' + row.unit)} | {row.range('bound', ' ' + row.unit)} | "
                f"{row.range('ratio')} | {row.range('cpu_times', 'x')} | {run.target_text(name)} |\n")
    text = head + out if out else ""
    if hidden:
        text += ("\n" if text else "") + "Not published:\n\n" + "".join(hidden)
    return text or "This run has no such rows.\n"


def missed_block(run, _):
    reasons, missed, still_open = read_reasons(), run.missed(), run.open()
    text = wrap(f"{count_text(run)}")
    if missed:
        text += "\n| row | reached | target | why |\n|---|---:|---:|---|\n"
    for name in missed:
        row, (kind, value) = run.rows[name], run.targets[name]
        text += (f"| `{name}` | {number(row.reached((kind, value)))} | {KINDS[kind]} {run.target_text(name)} | "
                 f"{reasons.get(name, 'not examined')} |\n")
    if still_open:
        text += "\nOf these targets the run says nothing:\n\n" + "".join(
            item(f"`{name}`: {run.rows[name].why if name in run.rows else 'not in this run'}") for name in still_open)
    return text


def count_text(run):
    missed, still_open, total = len(run.missed()), len(run.open()), len(run.targets)
    text = f"Of {total} targets, {total - missed - still_open} are reached and {missed} are missed"
    return text + (f"; {still_open} were not measured on a quiet machine." if still_open else ".")


def numbers_block(run, _, old):
    text = wrap(f"{run.machine['cpu']}, {run.machine['cores']} cores, {run.date}. {count_text(run)} "
                "[bench/RESULTS.md](bench/RESULTS.md#which-targets-are-missed) lists them, with all figures.")
    text += "\n| what | figure (range) | `make bench RUNS=2 PROCESSES=3` |\n|---|---|---|\n"
    text += "".join(f"{line}\n" for line in old.splitlines() if line.startswith(KEPT_FIRST))
    for name, what, beside in NUMBERS:
        row = run.rows.get(name)
        figure = "not measured on a quiet machine yet"
        if row and row.published:
            figure = row.range("ours", f" {row.unit}")
            if beside and row.median("bound") is not None:
                figure += f"; {beside} {number(row.median('bound'))} {row.unit}"
        text += f"| {what} | {figure} | `BENCH={name}` |\n"
    return text + "".join(f"{line}\n" for line in old.splitlines() if line.startswith(KEPT_LAST))


MAKERS = {"machine": run_block, "table": table_block, "missed": missed_block}


def fill(page, run):
    def block(found):
        kind, words, old = found.group(2), found.group(3) or "", found.group(4)
        made = numbers_block(run, words, old) if kind == "numbers" else MAKERS[kind](run, words)
        return f"{found.group(1)}{made}{found.group(5)}"

    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        text = file.read()
    new = BLOCK.sub(block, text)
    if page.endswith("RESULTS.md"):
        new = re.sub(r"<!-- figures of: \S+ -->", f"<!-- figures of: {run.path} -->", new)
    return text, new


def main():
    if len(sys.argv) != 2:
        fail("usage: publish.py FILE.json | --check")
    check = sys.argv[1] == "--check"
    path = os.path.relpath(os.path.abspath(sys.argv[1]), ROOT)
    if check:
        with open(os.path.join(ROOT, "bench/RESULTS.md"), encoding="utf-8") as file:
            path = re.search(r"<!-- figures of: (\S+) -->", file.read()).group(1)
        if path == "several":  # the tables were made by hand, before there was this program
            print("no run was published yet")
            return
    run = Run(path)
    for page in ("bench/RESULTS.md", "README.md"):
        old, new = fill(page, run)
        if check and old != new:
            fail(f"{page} does not say what {path} and bench/TARGETS say; run bench/publish.py {path}")
        if not check:
            with open(os.path.join(ROOT, page), "w", encoding="utf-8") as file:
                file.write(new)
    print(count_text(run))


if __name__ == "__main__":
    main()
