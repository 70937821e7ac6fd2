# SPDX-License-Identifier: Apache-2.0
"""frameworks.py PAGE - the table framework by check, computed, and compared with the page's

on_NAME.py says how NAME is used.  Each framework has a process and a folder of its own.  A check
that a framework cannot pass is named in its LIMITS, with a program that shows the limit without
libshard.  Such a cell is "limit" if the check fails, as it must, and the program still shows it.
"""

import importlib
import importlib.metadata
import json
import os
import subprocess
import sys
import time

import checks
import expected

NAMES = {
    "torch": "PyTorch DDP, torchrun",
    "lightning": "Lightning",
    "transformers": "Hugging Face Trainer",
    "accelerate": "Accelerate",
    "torchdata": "torchdata nodes",
    "stateful": "torchdata StatefulDataLoader",
    "grain": "Grain",
    "torchtitan": "torchtitan",
    "jax": "JAX",
    "numpy": "NumPy",
}
HERE = os.path.dirname(os.path.abspath(__file__))


def one(name):
    """The cells and features of a framework, as JSON on the last line."""
    module = importlib.import_module(f"on_{name}")
    limits, found = getattr(module, "LIMITS", {}), {}
    expected.make()
    ours = checks.Checks(module.job)
    for column, method in checks.COLUMNS.items():
        found[column] = checks.verdict(ours, method)
        if column in limits:
            found[column] = limit(found[column], limits[column])
    features = {}
    for sentence, function in getattr(module, "FEATURES", {}).items():
        try:
            function()
            features[sentence] = ("OK", "")
        except Exception as e:
            features[sentence] = ("FAIL", f"{type(e).__name__}: {e}")
    versions = {p: importlib.metadata.version(p) for p in module.PACKAGES}
    print(json.dumps({"cells": found, "features": features, "versions": versions}))


def limit(cell, program):
    if cell[0] == "OK":
        return "FAIL", f"this passes now: take it out of LIMITS, and {program} away"
    done = subprocess.run([sys.executable, os.path.join(HERE, program)], capture_output=True, text=True)
    if done.returncode:
        return "FAIL", f"{cell[1]}\n{program} shows no limit: {done.stdout}{done.stderr[-2000:]}"
    return "limit", done.stdout.strip().split("\n")[-1]


def table(results):
    """Its lines, as the page has them."""
    columns = [c for c in checks.COLUMNS if c != "control"]
    lines = ["| framework | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name, title in NAMES.items():
        if name in results:
            cells = [results[name]["cells"][c][0] for c in columns]
            lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return lines


def feature_lines(results):
    return [f"| {NAMES[n]} | {sentence} | {cell[0]} |" for n, r in results.items() for sentence, cell in r["features"].items()]


def main(page):
    begin, results, bad = time.monotonic(), {}, []
    for name in os.environ.get("FRAMEWORKS", " ".join(NAMES)).split():
        os.mkdir(name)
        began = time.monotonic()
        done = subprocess.run([sys.executable, os.path.join(HERE, "frameworks.py"), "--one", name], cwd=name,
                              stdout=subprocess.PIPE, text=True)  # fmt: skip
        if done.returncode:
            bad.append(f"{name}: exit status {done.returncode}")
            continue
        results[name] = json.loads(done.stdout.strip().split("\n")[-1])
        for cell, (said, why) in {**results[name]["cells"], **results[name]["features"]}.items():
            if said != "OK":
                (bad.append if said == "FAIL" else print)(f"{NAMES[name]}: {cell}: {said}: {why}")
        print(f"{NAMES[name]}: {time.monotonic() - began:.0f} s", flush=True)
    versions = dict(sorted({k: v for r in results.values() for k, v in r["versions"].items()}.items()))
    lines = table(results) + [""] + feature_lines(results)
    lines += ["", ", ".join(f"{k} {v.split('+')[0]}" for k, v in versions.items())]
    print("\n".join(["", *lines]))
    with open(page) as f:
        shown = " ".join(f.read().split())
    if len(results) == len(NAMES):
        bad += [f"{page} does not say: {line}" for line in lines if " ".join(line.split()) not in shown]
    noticed = [r["cells"]["control"][0] == "OK" for r in results.values()]
    print(f"{sum(noticed)} of {len(noticed)} controls were noticed; {time.monotonic() - begin:.0f} s")
    if bad:
        sys.exit("\n".join(bad))


if __name__ == "__main__":
    one(sys.argv[2]) if sys.argv[1] == "--one" else main(sys.argv[1])
