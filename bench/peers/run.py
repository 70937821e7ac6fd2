# SPDX-License-Identifier: Apache-2.0
"""run.py BUILD [--records N] [--only a,b] [--results FILE] - every peer in a virtual environment of its own, on the same data

Needs nothing but Python and pip.  Writes FILE.json, FILE.md and FILE.svg.  A peer that cannot be installed or does not run
stands in the table with the command and what it said.
"""

import argparse
import ast
import json
import os
import platform
import shutil
import subprocess
import sys
import time

import table

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PEERS = ["libshard", "memmap", "jpeg", "webdataset", "streaming", "litdata", "grain", "hf", "lmdb", "tfrecord", "ffcv"]
TORCH = "torch==2.13.0"
TIMEOUT_S = 600  # of a stage
INSTALL_TIMEOUT_S = 3600


class Failed(Exception):
    """A command, and its last words."""


def run(command, timeout_s=TIMEOUT_S, **kwargs):
    shown = " ".join(os.path.basename(c) if "/" in c else c for c in command)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, stdin=subprocess.DEVNULL, **kwargs)
    except subprocess.TimeoutExpired:
        raise Failed(f"`{shown}`: no end after {timeout_s} s") from None
    if done.returncode:
        lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        error = next((line for line in reversed(lines) if "rror" in line), lines[-1] if lines else f"exit status {done.returncode}")
        raise Failed(f"`{shown}`: {error[:300]}")
    return done.stdout


def constants(name):
    """What the module of a peer says of itself, without importing it."""
    with open(f"{HERE}/peer_{name}.py") as f:
        body = ast.parse(f.read()).body
    return {n.targets[0].id: ast.literal_eval(n.value) for n in body if isinstance(n, ast.Assign) and n.targets[0].id in ("NAME", "INSTALL", "BASE", "SETTINGS", "DOCS")}


def make_venv(folder, installs, base=None):
    """PyTorch comes first and alone, in a base that those that need it share; what a peer installs itself goes before it."""
    python = f"{folder}/bin/python"
    if not os.path.exists(f"{folder}/done"):
        shutil.rmtree(folder, ignore_errors=True)
        run([sys.executable, "-m", "venv", folder])
        site = f"{folder}/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
        if base:
            with open(f"{site}/base.pth", "w") as f:
                f.write(f"{base}/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages\n")
        for packages in installs:
            if packages == "libshard":
                run([f"{ROOT}/tests/python/clients/_venv.sh", folder, "libshard"], INSTALL_TIMEOUT_S, cwd=ROOT)
            else:
                run([python, "-m", "pip", "-q", "--disable-pip-version-check", "install", *packages], INSTALL_TIMEOUT_S)
        open(f"{folder}/done", "w").close()
    return python


def measure(python, name, stage, corpus, out, workers=None, locked=()):
    environment = {**os.environ, "PYTHONPATH": HERE, "CORPUS": corpus, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TMPDIR": os.path.dirname(out)}
    command = [*locked, python, "-W", "ignore", f"{HERE}/measure.py", name, stage, corpus, out, *([str(workers)] if workers is not None else [])]
    return json.loads(run(command, env=environment).strip().splitlines()[-1])


def versions(python, installs):
    names = {p.split("=")[0].split("<")[0].split(">")[0] for group in installs if group != "libshard" for p in group if not p.startswith("-")} | {"torch"}
    listed = json.loads(run([python, "-m", "pip", "--disable-pip-version-check", "list", "--format=json"]))
    return {p["name"]: p["version"] for p in listed if p["name"].lower() in names or p["name"] == "libshard"}


def row(name, build, corpus, locked):
    about = constants(name)
    result = {"peer": name, "name": about["NAME"], "settings": about["SETTINGS"], "docs": about["DOCS"]}
    out = f"{build}/data/{name}"
    try:
        base = None
        if about["BASE"] == "torch":
            make_venv(f"{build}/venv-torch", [[TORCH]])
            base = f"{build}/venv-torch"
        python = make_venv(f"{build}/venv-{name}", about["INSTALL"], base)
        result["versions"] = versions(python, about["INSTALL"])
        shutil.rmtree(out, ignore_errors=True)
        result.update(measure(python, name, "pack", corpus, out, locked=locked))
        tried = {}
        for workers in (0, 1, 2):
            try:
                tried[workers] = measure(python, name, "hot", corpus, out, workers, locked)
            except Failed as e:
                tried[workers] = {"error": str(e)}
        result["tried"] = tried
        good = {w: t for w, t in tried.items() if "error" not in t}
        if not good:
            raise Failed(tried[2]["error"])
        best = max(good, key=lambda w: good[w]["hot_per_s"])
        result.update(good[best], workers=best)
        result.update(measure(python, name, "cold", corpus, out, best, locked))
        result.update(measure(python, name, "half", corpus, out, best, locked))
        result.update(measure(python, name, "resume", corpus, out, best, locked))
    except Failed as e:
        result["error"] = str(e)
    finally:
        shutil.rmtree(out, ignore_errors=True)
        shutil.rmtree(out + ".cache", ignore_errors=True)
    return result


def machine():
    with open("/proc/cpuinfo") as f:
        cpu = next((line.split(":")[1].strip() for line in f if line.startswith("model name")), platform.machine())
    with open("/proc/meminfo") as f:
        memory = int(f.readline().split()[1]) * 1024
    return {"cpu": cpu, "cpus": os.cpu_count(), "memory_bytes": memory, "kernel": platform.release(), "python": platform.python_version()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--records", type=int, default=20480)
    parser.add_argument("--only", default=",".join(PEERS))
    parser.add_argument("--results", default="")
    parser.add_argument("--lock", default="", help="a file that is locked while something is measured")
    options = parser.parse_args()
    if options.records % 512:
        parser.error("--records: a multiple of 512, so that every peer has whole batches in two workers")
    build, corpus = os.path.abspath(options.build), f"{os.path.abspath(options.build)}/corpus-{options.records}"
    results = options.results or f"{build}/peers"
    locked = ("flock", "-x", options.lock) if options.lock else ()
    os.makedirs(f"{build}/data", exist_ok=True)
    if not os.path.exists(f"{corpus}/labels.npy"):
        print("  DATA ", corpus, flush=True)
        run([make_venv(f"{build}/venv-corpus", [["numpy", "pillow"]]), f"{HERE}/make_corpus.py", corpus, str(options.records)])
    found = {"when": time.strftime("%Y-%m-%d"), "machine": machine(), "records": options.records, "batch": 256, "rows": []}
    for name in options.only.split(","):
        print("  PEER ", name, flush=True)
        found["rows"].append(row(name, build, corpus, locked))
        with open(f"{results}.json", "w") as f:
            json.dump(found, f, indent=1)
        table.write(found, results)
        print(table.line(found["rows"][-1]), flush=True)
    table.check(found)


if __name__ == "__main__":
    main()
