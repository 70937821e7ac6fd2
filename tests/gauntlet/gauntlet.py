# SPDX-License-Identifier: Apache-2.0
"""gauntlet.py [--checkouts DIR] [--only PART] - public reports of resumes that go wrong, played
against the framework as it is and against libshard in it

Prints a table, and below it what each verdict is made of.  Exits 1 if libshard is not right in
every case, if a control without its state looks right, or if a process did not do its part.
"""

import argparse
import glob
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

import judge

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT_S = 600  # of a stage
ROWS = 128  # of the dataset; a case that wants fewer has a selection, or says so here


@dataclass
class Case:
    name: str
    link: str
    script: str
    packages: tuple[str, ...]
    stands: tuple[str, ...]  # how libshard is used
    rows: int = ROWS
    ranks: tuple[int, int] = (1, 1)  # of the job that saves, and of the one that resumes
    checkout: str = ""  # a folder below --checkouts that the framework alone needs
    source: str = ""  # and a file in it


LOADER, DATASET, INDICES = "torch.Loader", "ShardDataset", "indices()"
CASES = [
    Case("accelerate#4195", "https://github.com/huggingface/accelerate/issues/4195", "case_accelerate_order",
         ("accelerate", "torchdata"), (LOADER,), 64, (2, 2)),
    Case("accelerate#2823", "https://github.com/huggingface/accelerate/issues/2823", "case_accelerate_skip",
         ("accelerate",), (LOADER,), 40),
    Case("datasets#7901", "https://github.com/huggingface/datasets/issues/7901", "case_datasets_shuffle",
         ("datasets",), (LOADER,), 200),
    Case("datasets#7447", "https://github.com/huggingface/datasets/issues/7447", "case_datasets_epochs",
         ("datasets", "torchdata"), (LOADER, DATASET)),
    Case("data#1437", "https://github.com/meta-pytorch/data/issues/1437", "case_torchdata_end",
         ("torchdata",), (LOADER, DATASET), 100),
    Case("Megatron-Bridge#5944", "https://github.com/NVIDIA-NeMo/Megatron-Bridge/pull/5944", "case_bridge_sampler",
         (), (INDICES,), 10, checkout="Megatron-Bridge", source="src/megatron/bridge/data/samplers.py"),
    Case("ms-swift#10141", "https://github.com/modelscope/ms-swift/pull/10141", "case_swift_sampler",
         (), (INDICES,), 18, checkout="ms-swift", source="swift/megatron/trainers/batch_sampler.py"),
    Case("torchtitan#811", "https://github.com/pytorch/torchtitan/issues/811", "case_titan_ranks",
         ("grain",), (LOADER,), 64, (4, 2), checkout="torchtitan", source="torchtitan/components/data/loader.py"),
]  # fmt: skip


class Failed(Exception):
    """A process that did not end as it should."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--checkouts", default="", help="folder with Megatron-Bridge, ms-swift and torchtitan")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    args = parser.parse_args()
    rows, details, failures, not_run = [], [], 0, []
    for case in CASES:
        if args.only in case.name:
            row, said, failed = run(case, args.checkouts)
            rows.append(row)
            details += said
            failures += failed
            not_run += [case.name] * (row[3] == "not run")
    show(["case", "link", "versions", "framework alone", "libshard in it"], rows)
    print("\n" + "\n".join(details))
    alone = f", {len(not_run)} frameworks were not run: {', '.join(not_run)}" if not_run else ""
    print(f"\n{len(rows)} cases, {failures} failures{alone}")
    sys.exit(bool(failures or not rows))


def run(case, checkouts):
    """A row of the table, lines that explain it, and the number of failures."""
    said, failures, cells = [], 0, []
    print(f"  {case.name}", file=sys.stderr)
    versions = [f"{p} {importlib.metadata.version(p)}" for p in (*case.packages, "torch")]
    root = os.path.join(checkouts, case.checkout)
    if case.checkout and not (checkouts and os.path.exists(os.path.join(root, case.source))):
        alone, how = "not run", f"needs a checkout of {case.checkout} in CHECKOUTS; see tests/gauntlet/README.md"
    else:
        if case.checkout:
            versions.insert(0, f"{case.checkout} {commit(root)}")
        try:
            alone, how = play(case, "alone", "resume", root)
        except Failed as e:
            alone, how, failures = "failed", str(e), 1
    said.append(f"{case.name}, alone: {alone}" + (f": {how}" if how else ""))
    for name in case.stands:
        try:
            verdict, how = play(case, name, "resume")
            control, control_how = play(case, name, "forget")
        except Failed as e:
            verdict, how, control, control_how = "failed", str(e), "", ""
        failures += verdict != "right" or control != "broken"
        cells.append(f"{verdict} ({name})")
        said.append(f"{case.name}, {name}: {verdict}" + (f": {how}" if how else ""))
        said.append(f"{case.name}, {name}, state not loaded: {control}: {control_how}")
    return [case.name, case.link, ", ".join(versions), alone, ", ".join(cells)], said, failures


def play(case, name, second, root=""):
    """The verdict on two stages, each with its processes."""
    with tempfile.TemporaryDirectory() as folder:
        if name != "alone":
            write_dataset(os.path.join(folder, "ds"), case.rows)
        environment = {**os.environ, "TITAN": root, "SAMPLER": os.path.join(root, case.source)}
        want = stage(case, name, "through", folder, case.ranks[0], environment)
        came = stage(case, name, second, folder, case.ranks[1], environment)
        return judge.verdict(want, came, case.ranks[0] != case.ranks[1])


def stage(case, name, which, folder, ranks, environment):
    python = [sys.executable, "-X", "faulthandler"]
    if ranks > 1 or case.ranks[0] > 1:
        python += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    command = [*python, os.path.join(HERE, f"{case.script}.py"), name, which, folder]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=TIMEOUT_S, cwd=folder, check=False
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"{which}: not done in {TIMEOUT_S} s") from None
    files = sorted(glob.glob(os.path.join(folder, f"{which}.*.json")))
    if done.returncode or len(files) != ranks:
        raise Failed(f"{which}: exit {done.returncode}, {len(files)} of {ranks} ranks answered; {reason(done.stderr)}")
    streams = {}
    for path in files:
        with open(path, encoding="utf-8") as f:
            streams.update(json.load(f))
    return streams


def reason(text):
    """The first error of a process, or its last words."""
    lines = [line for line in text.splitlines() if line.strip()] or ["it said nothing"]
    return next((line for line in lines if re.match(r"(\[rank\d+\]: )?[\w.]+(Error|Exception): ", line)), lines[-1])


def write_dataset(path, rows):
    import libshard

    with libshard.Writer(path, "number:i64", shard_records=max(1, rows // 3)) as writer:
        for i in range(rows):
            writer.write({"number": i})


def commit(root):
    done = subprocess.run(
        ["git", "-C", root, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "of an unknown commit"


def show(head, rows):
    """As Markdown."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, ["-" * w for w in widths], *rows]:
        print("| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths)) + " |")


if __name__ == "__main__":
    main()
