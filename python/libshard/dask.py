# SPDX-License-Identifier: Apache-2.0
"""Dask: the shards of a plan, one task each.

    python -m libshard.dask build DIR --address tcp://head:8786

Dask starts a task again elsewhere if its worker dies.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from . import _cluster

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

__all__: list[str] = []


class _Dask:
    def __init__(self, args: argparse.Namespace) -> None:
        distributed = _cluster.needed("distributed")
        _cluster.by_value(_cluster.needed("cloudpickle"))
        self.retries, self.mark, self.waiting = args.retries, "", dict[Any, int]()
        try:
            self.client = distributed.Client(args.address, set_as_default=False)
        except (OSError, ValueError) as error:
            raise _cluster.Stop(_cluster.IO, f"--address {args.address}: no scheduler of Dask: {error}") from None

    def cpus(self) -> list[int]:
        return list(self.client.nthreads().values())

    def start(self, task: _cluster.Task, parts: list[int], jobs: int) -> None:
        self.mark = task.keywords["mark"]  # type: ignore[attr-defined]
        call = functools.partial(_cluster.run_or_raise, task=task)
        self.waiting = {self.client.submit(call, k, retries=self.retries, pure=False): k for k in parts}

    def ended(self) -> Iterator[tuple[int, _cluster.Result]]:
        for future in [f for f in self.waiting if f.done()]:
            try:
                error = future.exception(timeout=10)
                result = _cluster.result_of(error) if error else future.result(timeout=10)
            except TimeoutError:  # its worker died before it could be asked, so it runs again
                continue
            yield self.waiting.pop(future), result

    def stop(self) -> None:
        """Dask does not end a task that runs already, so its shardpack is ended."""
        if self.waiting:
            self.client.cancel(list(self.waiting), force=True)
            self.client.run(_cluster.end_marked, self.mark, on_error="ignore")
        self.client.close()


if __name__ == "__main__":
    program, build = _cluster.parser("dask", 10_000)
    build.add_argument("--address", required=True, help="address of the scheduler, such as tcp://head:8786")
    _cluster.main(program, _Dask)
