# SPDX-License-Identifier: Apache-2.0
"""submitit: the shards of a plan, one job each, in an array of Slurm or on this machine.

    python -m libshard.submitit build DIR --logs FOLDER --set slurm_partition=cpu
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import _cluster

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

__all__: list[str] = []


class _Submitit:
    def __init__(self, args: argparse.Namespace) -> None:
        submitit = _cluster.needed("submitit")
        _cluster.by_value(_cluster.needed("cloudpickle"))
        self.retries, self.tries, self.waiting = args.retries, dict[int, int](), dict[Any, int]()
        try:
            self.executor = submitit.AutoExecutor(folder=args.logs, cluster=args.executor)
            values = {name: int(v) if v.isdigit() else v for name, _, v in (s.partition("=") for s in args.set)}
            self.executor.update_parameters(timeout_min=args.minutes, **values)
        except (RuntimeError, TypeError, ValueError, NameError) as error:
            raise _cluster.Stop(_cluster.USAGE, f"submitit: {error}") from None
        self.local = self.executor.cluster == "local"

    def cpus(self) -> list[int]:
        return [len(os.sched_getaffinity(0))] if self.local else []

    def start(self, task: _cluster.Task, parts: list[int], jobs: int) -> None:
        """Slurm has a queue.  submitit has none on this machine, so jobs wait here."""
        self.executor.update_parameters(cpus_per_task=jobs)
        self.task, self.queue = task, parts
        self.most = max(1, self.cpus()[0] // jobs) if self.local else len(parts)
        self._fill()

    def _fill(self) -> None:
        room = self.most - len(self.waiting)
        now, self.queue = self.queue[:room], self.queue[room:]
        if now:
            with self.executor.batch():
                jobs = [self.executor.submit(self.task, k) for k in now]
            self.waiting.update(zip(jobs, now, strict=True))

    def ended(self) -> Iterator[tuple[int, _cluster.Result]]:
        for job in [j for j in self.waiting if j.done()]:
            part, error = self.waiting.pop(job), job.exception()
            code, text = _cluster.result_of(error) if error else job.result()
            self.tries[part] = self.tries.get(part, 0) + 1
            if _cluster.may_end_well(code) and self.tries[part] <= self.retries:
                self.queue.append(part)
            else:
                yield part, (code, text)
        self._fill()

    def stop(self) -> None:
        for job in self.waiting:
            job.cancel()


if __name__ == "__main__":
    program, build = _cluster.parser("submitit", 1000)
    build.add_argument("--logs", default="submitit", metavar="DIR", help="folder for submitit's files [submitit]")
    build.add_argument("--executor", metavar="NAME", help="slurm or local [slurm if it is there]")
    build.add_argument("--minutes", type=int, default=120, metavar="N", help="time limit of a job [120]")
    build.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of submitit")
    _cluster.main(program, _Submitit)
