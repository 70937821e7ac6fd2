# SPDX-License-Identifier: Apache-2.0
"""build_on.py ray|dask|submitit - python -m libshard.NAME on a real cluster, with kills

It runs beside tests/cluster/lib.sh, which has made src, its dataset `reference`, and `slow`: a
program that notes each start in `starts`, and becomes a shardpack whose reads take long.  Of Ray
there are three nodes on this machine, of Dask three workers, of submitit its local executor.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(os.environ["ROOT"])
PACK, CAT, PHOTOS = os.environ["PACK"], os.environ["CAT"], Path(os.environ["PHOTOS"]) / "train"
SHARDS = int(os.environ["SHARDS"])
RECIPE = os.environ["RECIPE_WORDS"].split()


class Ray:
    """A head and two nodes, each with one CPU; the last one dies."""

    words = "Ray, 3 nodes"
    counts_kills = False

    def __init__(self):
        from ray.cluster_utils import Cluster

        node = {"num_cpus": 1, "object_store_memory": 80 << 20}
        for left in (2, 1, 0):  # on a busy machine a node may need more than the 30 s that Ray gives it
            self.cluster = Cluster()
            try:
                self.cluster.add_node(**node, include_dashboard=False)
                self.nodes = [self.cluster.add_node(**node) for _ in range(2)]
                break
            except Exception:
                self.cluster.shutdown()
                if not left:
                    raise
        self.options = ["--address", self.cluster.address]

    def kill_node(self):
        self.cluster.remove_node(self.nodes.pop(), allow_graceful=False)

    def close(self):
        self.cluster.shutdown()


class Dask:
    """Three workers of one thread; a nanny makes a new one of each that dies."""

    words = "Dask, 3 workers"
    counts_kills = True  # by its own number, which no program sets
    kill_node = None

    def __init__(self):
        import dask
        from distributed import LocalCluster

        # On a busy machine a new worker comes late, and after 15 s it would be given up.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "600s"})
        self.cluster = LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None)
        self.options = ["--address", self.cluster.scheduler_address]

    def close(self):
        self.cluster.close()


class Submitit:
    """Processes of this machine, as many as it has CPUs."""

    words = "submitit, local"
    counts_kills = False
    kill_node = None

    def __init__(self):
        self.options = ["--executor", "local", "--minutes", "10", "--jobs", "1"]

    def close(self):
        pass


def check(holds, *words):
    if not holds:
        raise SystemExit(" ".join(map(str, words)))


def marked():
    """Processes that tasks of ours have started, and their parents; not what these have started."""
    found, here = {}, os.getcwd().encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_ours = here in (folder / "cmdline").read_bytes()
            if is_ours and b"\0LIBSHARD_BUILD=" in b"\0" + (folder / "environ").read_bytes():
                found[int(folder.name)] = int(re.search(r"^PPid:\s*(\d+)", (folder / "status").read_text(), re.M)[1])
    return {pid: parent for pid, parent in found.items() if parent not in found}


def wait_for(what, holds, seconds=300):
    end, there = time.monotonic() + seconds, Program.last and Program.last.poll() is None
    while not holds():
        lost = there and Program.last.poll() is not None
        check(not lost, "the program ended too early to see that", what, Path("err").read_text() if lost else "")
        check(time.monotonic() < end, "this did not happen within", seconds, "s:", what)
        time.sleep(0.05)


def shards(folder):
    return len(list(Path(folder).glob("*.shard")))


def starts():
    return len(Path("starts").read_text().splitlines()) if Path("starts").exists() else 0


def pack(*words, code=0):
    done = subprocess.run([PACK, *words], capture_output=True, text=True)
    check(done.returncode == code, "exit code", done.returncode, "of", words, done.stderr)


def plan(folder, source="src", options=RECIPE):
    pack("plan", "images", source, "-o", folder, "-q", *options)
    Path("starts").unlink(missing_ok=True)


class Program:
    """python -m libshard.NAME build FOLDER, in the background."""

    last = None

    def __init__(self, name, folder, *options):
        command = [sys.executable, "-m", f"libshard.{name}", "build", folder, "--shardpack", "./slow", *options]
        self.begin = time.monotonic()
        with open("err", "w") as err:
            self.child = subprocess.Popen(command, stderr=err)
        Program.last = self.child

    def end(self, code):
        self.child.wait(600)
        text = Path("err").read_text()
        check(self.child.returncode == code, "exit code", self.child.returncode, "instead of", code, "\n" + text)
        return text, time.monotonic() - self.begin


def kill_worker():
    """A process that runs a task dies, and the shardpack that it had started dies with it."""
    victim = {}
    wait_for("a task runs", lambda: victim.update(marked()) or victim)
    pid, parent = victim.popitem()
    check(parent > 1, "process", pid, "of a task has lost its parent")
    os.kill(parent, signal.SIGKILL)
    wait_for("what a dead worker had started is gone", lambda: pid not in marked(), 60)


def killed(name, cluster):
    """Processes and a node die.  The dataset is that of one machine."""
    plan("ds")
    program, kills = Program(name, "ds", *cluster.options), 0
    for least in (3, 6, 9):
        wait_for(f"{least} shards are done", lambda least=least: shards("ds") >= least)
        kill_worker()
        kills += 1
    if cluster.kill_node:
        wait_for("twelve shards are done", lambda: shards("ds") >= 12)
        cluster.kill_node()
        kills += 1
    text, seconds = program.end(0)
    check(f"{SHARDS} of {SHARDS} shards are done" in text, text)
    check(starts() > SHARDS, starts(), "starts of", SHARDS, "shards: no task was started again")
    pack("seal", "ds", "-q")
    one, here = ({p.name: p.read_bytes() for p in Path(f).iterdir()} for f in ("reference", "ds"))
    check(one == here, "not as one machine makes them:", sorted(dict(one.items() ^ here.items())))
    check(identity("ds") == identity("reference"), "the id is", identity("ds"))
    with open(os.environ["ROWS"], "a") as rows:
        rows.write(f"{os.environ['SCRIPT']}|{cluster.words}|3|{kills}|equal id|{seconds:.0f} s\n")
    return f"{starts()} starts of {SHARDS} shards, {kills} kills"


def identity(folder):
    text = subprocess.run([CAT, "info", folder, "--json"], capture_output=True, text=True, check=True).stdout
    return re.search(r'"id": ?"([0-9a-f]+)"', text)[1]


def without_retries(name, cluster):
    """The control: a kill does end a task."""
    if cluster.counts_kills:
        return "left out"
    plan("none")
    program = Program(name, "none", *cluster.options, "--retries", "0")
    wait_for("one shard is done", lambda: shards("none") >= 1)
    kill_worker()
    text, _ = program.end(3)
    check("shards are missing: " in text, text)
    wait_for("no shardpack is left", lambda: not marked(), 30)


def bad_input(name, cluster):
    """What shardpack says comes to the terminal, with its exit code, and the other tasks end."""
    source = Path("bad/class")
    source.mkdir(parents=True)
    for i, photo in enumerate(sorted(PHOTOS.glob("*/*.jpg"))[:80]):
        (source / f"{i:03}.jpg").write_bytes(photo.read_bytes()[: 1000 if i == 3 else None])
    plan("bad.ds", "bad", ["--resize", "32", "--crop", "32", "--shard-records", "2", "--order", "source"])
    text, _ = Program(name, "bad.ds", *cluster.options).end(1)
    check("003.jpg" in text and "ended with exit code 1" in text, text)
    check("shards are missing: " in text and starts() < 40, starts(), "tasks were started", text)
    wait_for("no shardpack is left", lambda: not marked(), 60)


def interrupted(name, cluster):
    """After ^C nothing runs any more, and another call goes on, with fewer tasks than shards."""
    plan("stopped")
    program = Program(name, "stopped", *cluster.options)
    wait_for("one shard is done", lambda: shards("stopped") >= 1)
    wait_for("a task runs", marked)
    program.child.send_signal(signal.SIGINT)
    text, _ = program.end(130)
    check("shards are missing: " in text and "_cluster.py" not in text, text)
    wait_for("no shardpack is left", lambda: not marked(), 60)
    there = shards("stopped")
    text, _ = Program(name, "stopped", *cluster.options, "--tasks", "4").end(0)
    check(f"{SHARDS - there} of {SHARDS} shards are missing; 4 tasks" in text, text)
    text, _ = Program(name, "stopped", *cluster.options).end(0)
    check(f"{SHARDS} of {SHARDS} shards are done" in text, text)


def page():
    """The block of docs/PACKING.md, as a user types it on a machine of the cluster."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs/PACKING.md").read_text(), re.M | re.S)
    (block,) = [b for b in blocks if "libshard.ray" in b]
    Path("photos").symlink_to(PHOTOS.parent)
    programs = [str(Path(p).parent) for p in (PACK, sys.executable)]
    env = {**os.environ, "PATH": os.pathsep.join([*programs, os.environ["PATH"]])}
    done = subprocess.run(["sh", "-ec", block], env=env, capture_output=True, text=True)
    check(done.returncode == 0, block, done.stderr)
    check(len(identity("ds/ray")) == 64, identity("ds/ray"))


def main(name):
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    begin = time.monotonic()
    cluster = {"ray": Ray, "dask": Dask, "submitit": Submitit}[name]()
    print(f"a cluster in {time.monotonic() - begin:.0f} s", flush=True)
    try:
        for step in (killed, without_retries, bad_input, interrupted):
            begin = time.monotonic()
            said = step(name, cluster) or ""
            print(f"{step.__name__} in {time.monotonic() - begin:.0f} s {said}", flush=True)
        if name == "ray":
            page()
    finally:
        if Program.last:
            Program.last.kill()
        cluster.close()
    print(f"{cluster.words}: kills, bad input and ^C; {SHARDS} shards")


if __name__ == "__main__":
    main(sys.argv[1])
