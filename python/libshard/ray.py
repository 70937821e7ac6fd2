# SPDX-License-Identifier: Apache-2.0
"""Ray: the shards of a plan, one task each.

    python -m libshard.ray build DIR --address auto

Ray decides where a task runs, and starts it again elsewhere if its machine or its process dies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _cluster

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

__all__: list[str] = []


class _Ray:
    def __init__(self, args: argparse.Namespace) -> None:
        self.ray = ray = _cluster.needed("ray")
        self.retries, self.waiting = args.retries, dict[Any, int]()
        _cluster.by_value(ray.cloudpickle)
        try:
            ray.init(address=args.address, log_to_driver=False, logging_level="error")
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise _cluster.Stop(_cluster.IO, f"--address {args.address}: no cluster of Ray: {error}") from None

    def cpus(self) -> list[int]:
        return [int(node["Resources"].get("CPU", 0)) for node in self.ray.nodes() if node["Alive"]]

    def start(self, task: _cluster.Task, parts: list[int], jobs: int) -> None:
        options = {"num_cpus": jobs, "max_retries": self.retries, "retry_exceptions": True}
        remote = self.ray.remote(**options, scheduling_strategy="SPREAD")(_cluster.run_or_raise)
        sent = self.ray.put(task)
        self.waiting = {remote.remote(part, sent): part for part in parts}

    def ended(self) -> Iterator[tuple[int, _cluster.Result]]:
        done, _ = self.ray.wait(list(self.waiting), num_returns=len(self.waiting), timeout=0)
        for reference in done:
            part = self.waiting.pop(reference)
            try:
                yield part, self.ray.get(reference)
            except self.ray.exceptions.RayTaskError as error:
                yield part, _cluster.result_of(error.cause)
            except self.ray.exceptions.RayError as error:
                yield part, _cluster.result_of(error)

    def stop(self) -> None:
        """Ray ends the tasks of a program that leaves."""
        self.ray.shutdown()


if __name__ == "__main__":
    program, build = _cluster.parser("ray", 10_000)
    build.add_argument("--address", default="auto", help="address of the head [auto: the cluster of this machine]")
    _cluster.main(program, _Ray)
