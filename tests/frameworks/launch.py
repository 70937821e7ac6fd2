# SPDX-License-Identifier: Apache-2.0
"""Ranks: a job of some framework in several real processes, as a launcher would start them.

Each process is a fork with the variables of torchrun.  It leaves what it was given to train on in a
file, and stays until all have done so, since others may need it.  A rank that fails ends at once.
It is an error that names it, as is one that does not end.  No process outlives launch().
"""

import contextlib
import json
import os
import signal
import socket
import sys
import time
import traceback
from dataclasses import dataclass, field

SECONDS = 300  # for a job; machines may be busy
AFTER_ANOTHER = 60  # for a rank, when another has failed


class JobError(Exception):
    """What the ranks said that failed, or that one of them did not end."""


@dataclass
class Run:
    """What one rank is asked to do, and what it was given."""

    data: str = "train"
    rank: int = 0
    world: int = 1
    batch: int = 6  # records of a rank
    epochs: int = 2  # it ends before this epoch
    start: str | None = None  # the folder of a checkpoint to go on from
    forget: bool = False  # the control: go on with everything but the loader's place
    save: str | None = None  # the folder of a checkpoint to make
    stop: int | None = None  # after so many steps, in a run that saves
    peers: int = 1  # processes that want the same rows, as those of tensor parallelism
    evaluate: bool = False  # records in their order, each of them once
    rows: list = field(default_factory=list)  # of each step, [record, does it count] of each row
    length: int = -1  # steps of an epoch, as the framework has it
    notes: dict = field(default_factory=dict)

    @property
    def order(self):
        """Options of a loader."""
        return {"shuffle": False, "tail": "pad"} if self.evaluate else {"seed": 1, "tail": "drop"}

    def got(self, batch):
        rows = [[int(r), bool(v)] for r, v in zip(batch["index"].tolist(), batch["valid"].tolist())]
        assert batch["id"].tolist() == [r for r, _ in rows]  # what is in the records agrees
        self.rows.append(rows)

    @property
    def is_over(self):
        return self.stop is not None and len(self.rows) >= self.stop


def launch(job, world, seconds=SECONDS, **options):
    """job(run) on every rank; returns the runs when all have ended well."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    names = [f"rank-{os.getpid()}-{port}-{rank}" for rank in range(world)]
    pids = [_fork(job, Run(rank=r, world=world, **options), port, names[r]) for r in range(world)]
    late = _wait(pids, names, seconds)
    errors = [f"rank {r} did not end" for r in late]
    runs = []
    for rank, name in enumerate(names):
        said = {}
        if os.path.exists(name):
            with open(name) as f:
                said = json.load(f)
            os.remove(name)
        if said.get("error"):
            errors.append(f"rank {rank}: {said['error']}")
        elif not said and rank not in late:
            errors.append(f"rank {rank} died")
        runs.append(Run(**said.get("run", {})))
    if errors:
        raise JobError("\n".join(errors))
    return runs


def _fork(job, run, port, name):
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    os.setpgid(0, 0)  # with what it starts
    os.environ.update(RANK=str(run.rank), WORLD_SIZE=str(run.world), LOCAL_RANK=str(run.rank),
                      LOCAL_WORLD_SIZE=str(run.world), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                      TORCHELASTIC_RUN_ID="none", GROUP_RANK="0")  # fmt: skip
    log = os.open(f"log-{run.rank}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    said, home = {}, os.getcwd()
    try:
        job(run)
        said["run"] = run.__dict__
    except BaseException as e:
        traceback.print_exc()
        said["error"] = f"{type(e).__name__}: {e}"[:2000]
    os.chdir(home)
    with open(f"{name}.new", "w") as f:
        json.dump(said, f)
    os.rename(f"{name}.new", name)
    while "error" not in said:
        time.sleep(1)
    os._exit(1)


def _wait(pids, names, seconds):
    """Returns the ranks that had to be killed before they were done."""
    end, left, ended = time.monotonic() + seconds, dict(enumerate(pids)), set()
    while left and time.monotonic() < end:
        for rank, pid in list(left.items()):
            failed = os.waitpid(pid, os.WNOHANG)[0]
            if failed:
                end = min(end, time.monotonic() + AFTER_ANOTHER)
                ended.add(pid)
            if failed or os.path.exists(names[rank]):
                del left[rank]
        time.sleep(0.02)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        if pid not in ended:
            os.kill(pid, signal.SIGKILL)  # it may be no leader yet
            os.waitpid(pid, 0)
    return list(left)
