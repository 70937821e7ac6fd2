# SPDX-License-Identifier: Apache-2.0
"""Loops over the batches of a loader: over the ends of epochs, to a number of steps, with functions that work ahead."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
import weakref
from collections import deque
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, TypeVar

from ._errors import ArgumentError
from ._options import stack_level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from . import _core
    from ._core import Batch
    from ._loader import LoaderBase

T = TypeVar("T")  # what a batch is made of


class Place:
    """Where a loop is whose functions work ahead: behind the batch that it got last.

    The core is behind the one that was begun last.
    """

    __slots__ = ("loop", "token", "here", "epoch", "step", "taken", "next")

    def __init__(self, loop: Loop[Any], token: str, here: tuple[int, int]) -> None:
        self.loop, self.token, self.here = weakref.ref(loop), token, here
        self.next: int | None = None  # the epoch of the first batch that was begun and not delivered
        self.epoch, self.step, self.taken = here[0], -1, 0  # of the last batch; batches that the loop had of its epoch


class _Begun:
    """A batch that the core gave: its work, and the place behind it.  Or what the core raised instead."""

    __slots__ = ("work", "error", "token", "here", "epoch", "step")

    def __init__(self, work: Future[Any] | None, error: Exception | None, batch: Any, core: _core.Loader) -> None:
        self.work, self.error = work, error
        if error is None:
            self.token, self.here, self.epoch, self.step = core.token(), core.tell(), batch.epoch, batch.step


class Loop(Generic[T]):
    """A loop that goes on over the ends of epochs, or ends at a step, or whose functions work ahead.

    One that works ahead takes batches from the core before it delivers them, in the thread of the
    loop.  While they wait, the loader's place is a :class:`Place`.  If the loop ends before they were
    delivered, the core goes back, so that all is as if they had not been taken.
    """

    def __init__(self, loader: LoaderBase[T]) -> None:
        self.loader = loader
        self.begun: deque[_Begun] = deque()
        self.place: Place | None = None
        self.pool: ThreadPoolExecutor | None = None
        self.worker: list[int] = []  # its thread
        self.had = self.gave = self.ended = False  # did this epoch have a batch, and the loop?  Has it come to its end?
        self.pid = os.getpid()
        if loader._place is not None:  # a loop is under way, and ends with this
            other = loader._place.loop()
            loader._go_back()
            loader._left = None
            if other is not None:  # a frame may keep it, as that of a traceback
                other._drop()
        self.ended = self._is_spent()
        self.batches: Iterator[Batch[T]] | None = None if self.ended else loader._epoch()

    def __iter__(self) -> Self:
        return self

    def _is_spent(self) -> bool:
        most = self.loader._steps_most
        return most is not None and self.loader._step_count + len(self.begun) >= most

    def __next__(self) -> Any:
        if self.loader.closed and not self.ended:
            self.loader._core.tell()  # which says so
        return self._next_ahead() if self.loader._ahead else self._next_now()

    def _next_now(self) -> Any:
        loader = self.loader
        if self._is_spent():
            self._stop()
        batch = self._take()
        if batch is None:
            self.batches, self.ended = None, True
            raise StopIteration
        loader._step_count += 1
        self.gave = True
        return loader._transformed(batch) if loader._functions else batch

    def _next_ahead(self) -> Any:
        loader = self.loader
        if loader._place is not self.place:  # the loader is elsewhere: these do not come
            self.begun.clear()
        if self.pool is not None and self.pid != os.getpid():  # the thread is not here, so its work would never be done
            self.begun.clear()
            loader._core.resume(loader._core.token())  # which says that the loader was inherited by fork
        if self._is_spent() and not self.begun:
            self._stop()
        if self.place is None and self.batches is not None and loader._place is None:
            self.place = loader._place = Place(self, loader._core.token(), loader._core.tell())
            note = self.worker.append
            self.pool = ThreadPoolExecutor(1, "libshard-transform", lambda: note(threading.get_ident()))
        elif not self.ended and (loader._place is not self.place or (self.place is None and self.batches is not None)):
            self._forget()
            raise ArgumentError(
                "this loop is over: another one began, or set_epoch() or load_state_dict() was called, and a loader has "
                "one place; open a loader for each loop",
                "bad argument",
            )
        while self.batches is not None and len(self.begun) <= loader._ahead and not self._is_spent():
            if self.begun and self.begun[-1].error is not None:
                break
            if not self._begin():
                break
        if not self.begun:
            self._stop()
        return self._deliver()

    def _begin(self) -> bool:
        """The work of the next batch.  False if there is none."""
        loader = self.loader
        try:
            batch = self._take()
        except Exception as e:  # it comes where the batch would
            self.begun.append(_Begun(None, e, None, loader._core))
            return False
        if batch is None:
            return False
        assert self.pool is not None
        one = _Begun(None, None, batch, loader._core)
        self.begun.append(one)
        if self.place is not None and self.place.next is None:
            self.place.next = one.epoch
        one.work = self.pool.submit(loader._transformed, batch)
        return True

    def _deliver(self) -> Any:
        loader, place = self.loader, self.place
        assert place is not None
        begin = time.perf_counter_ns()
        try:
            if self.begun[0].work is not None:
                self.begun[0].work.exception()  # waits, and ^C leaves the batch where it is
        except CancelledError:  # as below
            pass
        finally:
            loader._function_wait_ns += time.perf_counter_ns() - begin
        if loader._place is not place:  # a signal handler took it elsewhere
            return self._next_ahead()
        one = self.begun.popleft()
        if one.error is not None:
            raise one.error
        place.taken = place.taken + 1 if one.epoch == place.epoch else 1
        place.token, place.here, place.epoch, place.step = one.token, one.here, one.epoch, one.step
        place.next = self.begun[0].epoch if self.begun and self.begun[0].error is None else None
        loader._step_count += 1
        self.gave = True
        assert one.work is not None
        try:
            return one.work.result()
        finally:
            del one  # a traceback would hold the batch

    def _take(self) -> Batch[T] | None:
        """The next batch of this epoch or of those that follow; None at the end."""
        while self.batches is not None:
            batch = next(self.batches, None)
            if batch is not None:
                self.had = True
                return batch
            if not self.loader._is_endless:
                return None
            if not self.had:
                raise ArgumentError("epochs=None: an epoch has no batch, so the loop would never have one", "bad argument")
            self.had = False
            self.batches = self.loader._epoch()
        return None

    def _stop(self) -> NoReturn:
        """The end of the loop: that of an epoch, or max_steps."""
        loader, is_spent = self.loader, self._is_spent()
        if self.batches is None and is_spent and not self.gave and not loader._has_warned:
            loader._has_warned = True
            warnings.warn(
                f"max_steps={loader._steps_most} batches were taken, so this loop has none, and no loop after it",
                stacklevel=stack_level(),
            )
        if self.batches is not None and is_spent and not loader.closed:
            token = loader._core.token()
            self.batches = None
            loader._core.resume(token)  # else the epoch would be over, as after break
        self._forget()
        self.ended = True
        if self.place is not None and loader._place is self.place:
            loader._place = None
        raise StopIteration

    def _drop(self) -> None:
        """Batches that were begun do not come."""
        if self.pool is not None:  # a function that still works holds a batch
            self.pool.shutdown(wait=threading.get_ident() not in self.worker, cancel_futures=True)
        self.pool = None
        self.begun.clear()

    def _forget(self) -> None:
        self._drop()
        self.batches = None

    def __del__(self) -> None:
        """Batches that were begun and not delivered have not been taken."""
        if sys.is_finalizing():  # the thread has ended, and modules are taken apart
            return
        loader, place = self.loader, self.place
        self._forget()  # the core's loop is over, too
        if place is not None and loader._place is place:
            loader._go_back()
