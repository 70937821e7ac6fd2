# SPDX-License-Identifier: Apache-2.0
"""suites.py --checkouts DIR [--only PART] - tests that other loaders have for themselves, run
against libshard by adapters

A suite is copied out of its checkout to a temporary folder, and run by pytest.  `left_out.txt`
names each test that is left out or must fail, with the reason.  Each suite is run once more with an
adapter that is broken on purpose, and must notice.  Exits 1 if a test fails that should not, or
passes that should fail, or if a broken adapter passes.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT_S = 1800
PACKAGES = ("torch", "grain", "torchdata", "pytest")


@dataclass
class Suite:
    name: str
    checkout: str
    files: dict[str, str]  # in the checkout, and what to call the copy


GRAIN = "grain/_src/python/dataset/"
SUITES = [
    Suite("grain", "grain", {
        f"{GRAIN}elastic_iterator_test.py": "elastic_iterator_test.py",
        f"{GRAIN}transformations/repeat_test.py": "repeat_test.py",
        f"{GRAIN}transformations/shuffle_test.py": "shuffle_test.py",
    }),
    Suite("torchdata_dataset", "data", {"test/stateful_dataloader/test_state_dict.py": "test_state_dict.py"}),
    Suite("torchdata_loader", "data", {"test/stateful_dataloader/test_state_dict.py": "test_state_dict.py"}),
    Suite("streaming", "streaming", {
        "tests/test_partition.py": "test_partition.py",
        "streaming/base/world.py": "streaming/base/world.py",
        "streaming/base/distributed.py": "streaming/base/distributed.py",
    }),
]  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--checkouts", default="", help="folder with grain, data and streaming")
    parser.add_argument("--only", default="", help="suites whose name contains this")
    args = parser.parse_args()
    chosen = [s for s in SUITES if args.only in s.name]
    missing = [
        path for s in chosen for path in (os.path.join(args.checkouts, s.checkout, f) for f in s.files)
        if not os.path.isfile(path)
    ]  # fmt: skip
    if not args.checkouts or missing:
        sys.exit(f"CHECKOUTS has no {', '.join(missing)}: tests/peers_tests/README.md says how to get it")
    versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in PACKAGES)
    print(f"{datetime.date.today()}: libshard {importlib.metadata.version('libshard')}, {versions}\n")
    print("| suite | commit | passed | failed | fail as listed | left out | broken adapter |")
    print("|---|---|---:|---:|---:|---:|---|")
    bad = not chosen
    for suite in chosen:
        with tempfile.TemporaryDirectory() as folder:
            copy(suite, os.path.join(args.checkouts, suite.checkout), folder)
            result, log = run(suite, folder, broken=False)
            control, _ = run(suite, folder, broken=True)
        noticed = control["failed"] > 0
        bad = bad or result["failed"] or not result["passed"] or not noticed
        commit = commit_of(os.path.join(args.checkouts, suite.checkout))
        cells = [suite.name, commit, *(result[k] for k in ("passed", "failed", "listed", "left_out"))]
        print("| " + " | ".join(map(str, [*cells, "noticed" if noticed else "NOT NOTICED"])) + " |", flush=True)
        if result["failed"] or not result["passed"]:
            print(log, file=sys.stderr)
    sys.exit(bool(bad))


def copy(suite, checkout, folder):
    for source, name in suite.files.items():
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        shutil.copy(os.path.join(checkout, source), os.path.join(folder, name))


def run(suite, folder, broken):
    """What the plugin counted, and what pytest printed."""
    counts = os.path.join(folder, "counts.json")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join((HERE, folder)),
        "PEERS_SUITE": suite.name,
        "PEERS_COUNTS": counts,
        "PEERS_BROKEN": str(int(broken)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "listed", "--tb=short",
               "--rootdir", folder, os.path.join(HERE, f"suite_{suite.name}.py")]  # fmt: skip
    done = subprocess.run(
        command + ["-x"] * broken, capture_output=True, text=True, env=environment, timeout=TIMEOUT_S, cwd=folder,
        check=False,
    )  # fmt: skip
    if not os.path.exists(counts):
        sys.exit(f"{suite.name}: pytest exited with {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-2000:]}")
    with open(counts, encoding="utf-8") as f:
        result = json.load(f)
    os.remove(counts)
    return result, done.stdout[-6000:]


def commit_of(checkout):
    command = ["git", "-C", checkout, "rev-parse", "--short=10", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


if __name__ == "__main__":
    main()
