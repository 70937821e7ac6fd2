# SPDX-License-Identifier: Apache-2.0
"""run.py BUILD [--records N] [--only a,b] [--results FILE] - every peer in a virtual environment of
its own, on the same data, three times around

Needs nothing but Python and pip; FFCV is compiled, and wants Debian's libopencv-dev and
libturbojpeg0-dev.  Writes FILE.json, FILE.md and FILE.svg.  FILE.json has every process that was
measured: another run adds to it, and takes nothing away.  A peer that cannot be installed or does
not run stands in the table with the command and what it said; so does one that read other data.
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
    "ring",
    "memmap",
    "jpeg",
    "webdataset",
    "streaming",
    "litdata",
    "grain",
    "hf",
    "lmdb",
    "tfdata",
    "tfrecord",
    "dali",
    "spdl",
    "ffcv",
    "lancedb",
    "ffrecord",
]
TORCH = "torch==2.13.0"
TIMEOUT_S = 600  # of a stage; one that waits for its turn has an hour
INSTALL_TIMEOUT_S = 3600
STAYED = 0.01  # of the pages may still be in memory where it is to be cold
PATIENCE_S = 30  # for the machine to become quiet before a process; it then begins all the same


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
        if isinstance(n, ast.Assign) and n.targets[0].id in ("NAME", "INSTALL", "VENV", "BASE", "LINES")
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
        base = f"{build}/venvs/torch"
        make_venv(base, [[TORCH]])
    return make_venv(f"{build}/venvs/{about.get('VENV', name)}", about["INSTALL"], base)


def commit():
    """Of this tree; a tree without git has none."""
    if not shutil.which("git"):
        return "unknown"
    found = subprocess.run(
        ["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or "unknown"


def versions(python, installs):
    names = {re.split("[=<>]", p)[0] for group in installs if group != "libshard" for p in group if not p.startswith("-")} | {"torch"}
    listed = json.loads(run([python, "-m", "pip", "--disable-pip-version-check", "list", "--format=json"]))
    found = {
        p["name"]: p["version"]
        for p in listed
        if p["name"].lower().replace("_", "-") in names or p["name"] == "libshard"
    }
    if "libshard" in installs:
        found["commit"] = commit()
    return found


def measure(python, name, stage, corpus, out, line=None, workers=None, through=()):
    environment = {
        **{k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"},  # each library has its own default
        "PYTHONPATH": HERE,
        "CORPUS": corpus,
        "HF_HUB_OFFLINE": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TMPDIR": os.path.dirname(out),
    }
    command = [*through, python, "-W", "ignore", f"{HERE}/measure.py", name, stage, corpus, out]
    if line is not None:
        command += [line, str(workers)]
    return json.loads(run(command, 3600 if through else TIMEOUT_S, env=environment).strip().splitlines()[-1])


# ---- what is refused ----


def busy_share(seconds=0.5):
    """Of all processors, while this process does nothing: the load of others, of all CPUs 1."""

    def ticks():
        with open("/proc/stat") as f:
            found = list(map(int, f.readline().split()[1:9]))
        return sum(found), found[3] + found[4]

    (all_before, idle_before), _ = ticks(), time.sleep(seconds)
    all_after, idle_after = ticks()
    return 1 - (idle_after - idle_before) / max(all_after - all_before, 1)


def quiet():
    """Waits for a quiet machine, but not for ever; what the load per CPU is then."""
    end = time.monotonic() + PATIENCE_S
    while (load := busy_share()) > table.LOAD and time.monotonic() < end:
        time.sleep(1)
    return load


def refuse_other_data(found, corpus):
    """An epoch that did not deliver the data, every record once, is not an epoch of it."""
    with open(f"{corpus}/sums.json") as f:
        wanted = json.load(f)
    if found.get("missing") or found.get("foreign"):
        raise Failed(
            f"read other data: of {found['records']:,} records that came, {found['foreign']:,} are not the data's or"
            f" came too often; {found['missing']:,} of the data did not come"
        )
    parts = {"delivered": found} if "stayed" in found else {k: found[k] for k in wanted if k in found}
    for consumer, part in parts.items():
        for epoch in part["epochs"]:
            if epoch["sum"] != wanted[consumer]:
                raise Failed(f"read other data: the sum of an epoch is {epoch['sum']}, not {wanted[consumer]}")
    return found


def refuse_warm(found):
    if found["stayed"] > STAYED:
        raise Failed(
            f"{found['stayed']:.1%} of the pages stayed in memory where none was to be; {STAYED:.0%} is the limit"
        )
    return found


# ---- rows ----


def process(python, name, line, workers, corpus, out, through):
    """What one round measures of a row; the words of what failed, if something did."""
    found = {"load": quiet()}
    try:
        found["hot"] = refuse_other_data(measure(python, name, "hot", corpus, out, line, workers, through), corpus)
        if line != "Common":
            found["cold"] = refuse_warm(measure(python, name, "cold", corpus, out, line, workers, through))
            refuse_other_data(found["cold"], corpus)
            found["resume"] = measure(python, name, "resume", corpus, out, line, workers, through)
    except Failed as e:
        found["error"] = str(e)
    return found


def choose(row, candidates, python, corpus, out, through):
    """A number of workers, by a trial of its own; what is measured later is not in it."""
    candidates = [os.cpu_count() if c == "cpus" else c for c in candidates]
    if len(candidates) > 1 and "trial" not in row:
        row["trial"] = {}
        for workers in candidates:
            try:
                found = measure(python, row["peer"], "trial", corpus, out, row["line"], workers, through)
            except Failed as e:
                found = {"error": str(e)}
            row["trial"][str(workers)] = found
    row["workers"] = max(candidates, key=lambda w: row.get("trial", {}).get(str(w), {}).get("per_s", 0))


def same(a, b):
    return all(a.get(k) == b.get(k) for k in ("peer", "line", "settings", "when", "versions"))


def kept(found, new):
    """The row of that peer and line, if it was made so; another one is put away."""
    old = next((r for r in found["rows"] if (r["peer"], r["line"]) == (new["peer"], new["line"])), None)
    if old and same(old, new):
        return old
    if old:
        found["rows"].remove(old)
        found["superseded"].append(old)
    found["rows"].append(new)
    return new


def rows_of(name, build, found):
    """(python, the rows of a peer); their error, if it cannot be installed."""
    about, python, error, installed = constants(name), None, None, {}
    try:
        python = install(name, about, build)
        installed = versions(python, about["INSTALL"])
    except Failed as e:
        error = str(e)
    rows = []
    for line, words in about["LINES"].items():
        row = {
            "peer": name,
            "line": line,
            "name": about["NAME"],
            "way": words["way"],
            "settings": words["settings"],
            "docs": words["docs"],
            "when": found["when"],
            "versions": installed,
            "processes": [],
        }
        row = kept(found, row)
        row.pop("error", None)
        if error:
            row["error"] = error
        rows.append((row, words["workers"]))
    return python, rows


def measure_peer(name, python, rows, build, corpus, through=()):
    """One round of one peer: packed once, then one process of each of its lines."""
    out = f"{build}/data/{name}"
    remove(out)
    packed, error = {}, {}
    try:
        packed = {"pack": measure(python, name, "pack", corpus, out, through=through)}
    except Failed as e:
        error = {"error": str(e)}
    for row, candidates in rows:
        new = {"at": time.strftime("%Y-%m-%d %H:%M:%S"), **packed, **error}
        if not error:
            choose(row, candidates, python, corpus, out, through)
            new.update(process(python, name, row["line"], row["workers"], corpus, out, through))
        row["processes"].append(new)
        packed = {}  # it is the first line's
    remove(out)


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
    """What the file has; it must be of the same data on the same machine."""
    if not os.path.exists(path):
        return found
    with open(path) as f:
        old = json.load(f)
    for key in ("format", "machine", "records", "batch"):
        if old.get(key) != found[key]:
            sys.exit(f"{path}: its {key} is {old.get(key)}, this run's is {found[key]}; give another --results")
    return {**old, "when": found["when"]}


def keep(found, results):
    """After each peer, so that a run that is stopped loses little; the file is never half there."""
    found["rows"].sort(key=lambda r: PEERS.index(r["peer"]))
    with open(f"{results}.json.part", "w") as f:
        json.dump(found, f, indent=1)
        f.write("\n")
    os.replace(f"{results}.json.part", f"{results}.json")
    table.write(found, results)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--records", type=int, default=6144)
    parser.add_argument("--only", default=",".join(PEERS), help="peers, with commas between them")
    parser.add_argument("--results", default="")
    parser.add_argument("--processes", type=int, default=table.PROCESSES, help="rounds over all these peers")
    parser.add_argument(
        "--prepare", action="store_true", help="make the data and the virtual environments, measure nothing"
    )
    parser.add_argument("--through", default="", help="a command that runs each measurement, as `flock FILE`")
    options = parser.parse_args()
    if options.records <= 0 or options.records % 512:
        parser.error("--records: a multiple of 512, so that every peer has whole batches in two workers")
    names = options.only.split(",")
    if unknown := [name for name in names if name not in PEERS]:
        parser.error(f"--only: no peer {', '.join(unknown)}; there are {', '.join(PEERS)}")
    build, corpus = os.path.abspath(options.build), f"{os.path.abspath(options.build)}/corpus-{options.records}"
    results = options.results or f"{build}/peers"
    found = {"format": table.FORMAT, "when": time.strftime("%Y-%m-%d"), "machine": machine()}
    found.update(records=options.records, batch=256, rows=[], superseded=[])
    found = earlier(f"{results}.json", found)
    os.makedirs(f"{build}/data", exist_ok=True)
    if not os.path.exists(f"{corpus}/sums.json"):
        print("  DATA ", corpus, flush=True)
        python = make_venv(f"{build}/venvs/corpus", [["numpy", "pillow"]])
        run([python, f"{HERE}/make_corpus.py", corpus, str(options.records)])
    peers = {}
    for name in names:
        print("  VENV ", name, flush=True)
        peers[name] = rows_of(name, build, found)
        if error := peers[name][1][0][0].get("error"):
            print(error, flush=True)
    if options.prepare:
        return
    for number in range(options.processes):
        for name, (python, rows) in peers.items():
            print("  ROUND", number + 1, name, flush=True)
            if python is not None:
                measure_peer(name, python, rows, build, corpus, shlex.split(options.through))
            keep(found, results)
    print("\n".join(table.speeds(found)))
    print("\n".join(table.withheld(found)))


if __name__ == "__main__":
    main()
