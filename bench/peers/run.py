# SPDX-License-Identifier: Apache-2.0
"""run.py BUILD [--records N] [--only a,b] [--results FILE] - every peer in a virtual environment of
its own, on the same data

Needs nothing but Python and pip; FFCV is compiled, and wants Debian's libopencv-dev and
libturbojpeg0-dev.  Writes FILE.json, FILE.md and FILE.svg; rows of other peers that FILE.json holds
of the same data on the same machine stay.  A peer that cannot be installed or does not run stands
in the table with the command and what it said; one that read other pixels has no figures.
"""

import argparse
import ast
import glob
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time

import table

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PEERS = [
    "libshard",
    "memmap",
    "batches",
    "jpeg",
    "webdataset",
    "streaming",
    "litdata",
    "grain",
    "hf",
    "lmdb",
    "tfrecord",
    "dali",
    "spdl",
    "ffcv",
]
TORCH = "torch==2.13.0"
TIMEOUT_S = 600  # of a stage; one that waits for its turn has an hour
INSTALL_TIMEOUT_S = 3600


class Failed(Exception):
    """A command, and its last words."""


def run(command, timeout_s=TIMEOUT_S, **kwargs):
    shown = without_folders(" ".join(command))
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout_s, stdin=subprocess.DEVNULL, **kwargs
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"`{shown}`: no end after {timeout_s} s") from None
    if done.returncode:
        lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        error = next(
            (line for line in reversed(lines) if "rror" in line),
            lines[-1] if lines else f"exit status {done.returncode}",
        )
        raise Failed(f"`{shown}`: {without_folders(error)[:300]}")
    return done.stdout


def without_folders(text):
    """Where things lie on this machine is nobody's business."""
    return re.sub(r"(?<![\w:/])/[\w.+/-]*/", "", text)


def constants(name):
    """What the module of a peer says of itself, without importing it."""
    with open(f"{HERE}/peer_{name}.py") as f:
        body = ast.parse(f.read()).body
    return {
        n.targets[0].id: ast.literal_eval(n.value)
        for n in body
        if isinstance(n, ast.Assign) and n.targets[0].id in ("NAME", "INSTALL", "BASE", "SETTINGS", "DOCS")
    }


def make_venv(folder, installs, base=None):
    """PyTorch is alone in a base that peers share; what a peer installs itself goes before it."""
    python, wanted = f"{folder}/bin/python", json.dumps(installs)
    if not os.path.exists(f"{folder}/done") or open(f"{folder}/done").read() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        run([sys.executable, "-m", "venv", folder])
        site = f"{folder}/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
        if base:
            with open(f"{site}/base.pth", "w") as f:
                f.write(f"{base}/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages\n")
        for packages in installs:
            if packages != "libshard":
                run([python, "-m", "pip", "-q", "--disable-pip-version-check", "install", *packages], INSTALL_TIMEOUT_S)
        with open(f"{folder}/done", "w") as f:
            f.write(wanted)
    if "libshard" in installs:  # always: the tree may have changed
        run([f"{ROOT}/tests/python/clients/_venv.sh", folder, "libshard"], INSTALL_TIMEOUT_S, cwd=ROOT)
    return python


def install(name, about, build):
    base = None
    if about["BASE"] == "torch":
        base = f"{build}/venv-torch"
        make_venv(base, [[TORCH]])
    return make_venv(f"{build}/venv-{name}", about["INSTALL"], base)


def measure(python, name, stage, corpus, out, workers=None, through=()):
    environment = {
        **os.environ,
        "PYTHONPATH": HERE,
        "CORPUS": corpus,
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TMPDIR": os.path.dirname(out),
    }
    command = [*through, python, "-W", "ignore", f"{HERE}/measure.py", name, stage, corpus, out]
    if workers is not None:
        command.append(str(workers))
    return json.loads(run(command, 3600 if through else TIMEOUT_S, env=environment).strip().splitlines()[-1])


def refuse_other_pixels(found, corpus):
    """An epoch that did not come to what the corpus sums to is no epoch of it."""
    with open(f"{corpus}/checksum") as f:
        wanted = f.read()
    for checksum in [*found.get("checksums", []), *([found["checksum"]] if "checksum" in found else [])]:
        if checksum != wanted:
            raise Failed(f"read other pixels: checksum {checksum}, that of the data is {wanted}")
    return found


def versions(python, installs):
    names = {re.split("[=<>]", p)[0] for group in installs if group != "libshard" for p in group if not p.startswith("-")} | {"torch"}
    listed = json.loads(run([python, "-m", "pip", "--disable-pip-version-check", "list", "--format=json"]))
    return {
        p["name"]: p["version"]
        for p in listed
        if p["name"].lower().replace("_", "-") in names or p["name"] == "libshard"
    }


def try_workers(python, name, corpus, out, through):
    """{workers: figures or error}"""
    tried = {}
    for workers in (0, 1, 2):
        try:
            tried[workers] = refuse_other_pixels(measure(python, name, "hot", corpus, out, workers, through), corpus)
        except Failed as e:
            tried[workers] = {"error": str(e)}
    return tried


def row(name, build, corpus, through=()):
    about = constants(name)
    result = {"peer": name, "name": about["NAME"], "settings": about["SETTINGS"], "docs": about["DOCS"]}
    out = f"{build}/data/{name}"
    try:
        python = install(name, about, build)
        result["versions"] = versions(python, about["INSTALL"])
        remove(out)
        result.update(measure(python, name, "pack", corpus, out, through=through))
        result["tried"] = tried = try_workers(python, name, corpus, out, through)
        good = [w for w in tried if "error" not in tried[w]]
        if not good:
            raise Failed(tried[2]["error"])
        best = max(good, key=lambda w: tried[w]["hot_per_s"])
        result.update(tried[best], workers=best)
        for stage in ("cold", "half", "resume"):
            result.update(refuse_other_pixels(measure(python, name, stage, corpus, out, best, through), corpus))
    except Failed as e:
        result["error"] = str(e)
    finally:
        remove(out)
    return result


def remove(out):
    for path in [*glob.glob(out), *glob.glob(f"{out}.*")]:
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


def machine():
    with open("/proc/cpuinfo") as f:
        cpu = next((line.split(":")[1].strip() for line in f if line.startswith("model name")), platform.machine())
    with open("/proc/meminfo") as f:
        memory = int(f.readline().split()[1]) * 1024
    return {
        "cpu": cpu,
        "cpus": os.cpu_count(),
        "memory_bytes": memory,
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def earlier(path, found):
    """Rows of the same data on the same machine."""
    if not os.path.exists(path):
        return []
    with open(path) as f:
        kept = json.load(f)
    return kept["rows"] if all(kept[k] == found[k] for k in ("machine", "records", "batch")) else []


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--records", type=int, default=20480)
    parser.add_argument("--only", default=",".join(PEERS))
    parser.add_argument("--results", default="")
    parser.add_argument(
        "--prepare", action="store_true", help="make the data and the virtual environments, measure nothing"
    )
    parser.add_argument("--through", default="", help="a command that runs each measurement, as `flock FILE`")
    options = parser.parse_args()
    if options.records % 512:
        parser.error("--records: a multiple of 512, so that every peer has whole batches in two workers")
    build, corpus = os.path.abspath(options.build), f"{os.path.abspath(options.build)}/corpus-{options.records}"
    results = options.results or f"{build}/peers"
    os.makedirs(f"{build}/data", exist_ok=True)
    if not os.path.exists(f"{corpus}/checksum"):
        print("  DATA ", corpus, flush=True)
        run(
            [
                make_venv(f"{build}/venv-corpus", [["numpy", "pillow"]]),
                f"{HERE}/make_corpus.py",
                corpus,
                str(options.records),
            ]
        )
    found = {"when": time.strftime("%Y-%m-%d"), "machine": machine(), "records": options.records, "batch": 256}
    found["rows"] = earlier(f"{results}.json", found)
    for name in options.only.split(","):
        print("  PEER ", name, flush=True)
        if options.prepare:
            try:
                install(name, constants(name), build)
            except Failed as e:
                print(e, flush=True)
            continue
        new = row(name, build, corpus, shlex.split(options.through))
        found["rows"] = sorted(
            [r for r in found["rows"] if r["peer"] != name] + [new], key=lambda r: PEERS.index(r["peer"])
        )
        with open(f"{results}.json", "w") as f:
            json.dump(found, f)
            f.write("\n")
        table.write(found, results)
        print(table.line(new), flush=True)


if __name__ == "__main__":
    main()
