# SPDX-License-Identifier: Apache-2.0
"""``libshard.pack(..., workers=N)``: whole shards of a source, in several processes, also after a kill.

Shard k holds the samples at places k * n to (k + 1) * n - 1 of the order, whatever process makes it.
So the dataset does not depend on how many there are.  A sample that is left out makes its shard
shorter, and moves no other sample.

The file ``dataset.packing`` in the folder says what is being packed, and has a receipt for each
complete shard.  Only the parent writes it, line by line.  All its processes hold one lock on it, so
that a second call cannot begin while a worker of the first one is still alive.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import hashlib
import io
import json
import multiprocessing
import os
import pickle
import re
import shutil
import signal
import tempfile
import threading
import time
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from multiprocessing import connection, reduction
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

from . import _core
from ._dataset import Dataset
from ._errors import (
    ArgumentError,
    ClosedError,
    Error,
    ExistsError,
    MismatchError,
    OutOfMemoryError,
    RecordError,
    StorageError,
    of_system,
    shown,
)
from ._options import show, stack_level
from ._quarantine import Quarantine
from ._schema import fail
from ._writer import MANIFEST, PACKING, SKIPPED, Writer, prepare, shard_name

if TYPE_CHECKING:
    from ._pack import _Plan, _Progress

OnError: TypeAlias = Literal["fail", "skip", "quarantine"] | Callable[[int, Exception], Any]
_Receipt: TypeAlias = dict[str, Any]

_FEW = 256  # samples of a worker: it matters little if fewer are packed by one process
_LOCK_SECONDS = 30.0  # to wait for workers of a parent that was killed
# Shards of an earlier call of which a sample is compared: that takes a thousandth of the time that they took.
_COMPARED_LEAST = 16
_RECORDS_FOR_ONE = 1024
_REPORT_SECONDS = 0.1
_TEXT_MAX = 500  # characters of an exception that are kept
# What a process lacks is not the fault of the sample at which it was noticed.
_OF_THE_PROCESS = (errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT)
_HANDLES = ("h5py", "lmdb", "tarfile", "zipfile", "sqlite3", "netCDF4", "tables")


class _BadSample(Exception):
    """A sample that cannot be packed, and may not be left out.  Its cause is what was raised."""

    def __init__(self, sample: int, cause: Exception) -> None:
        super().__init__(sample)
        self.sample, self.cause = sample, cause


# ---- a shard ----


class _Shards(Writer):
    """Makes the shards that it is told to.  In the parent it also begins and seals the dataset."""

    def __init__(self, resume: bool, *args: Any, **options: Any) -> None:
        self._resume = resume
        self._lock: _Lock | None = None
        self._keeps = False  # on_error="quarantine"
        # of shards that are being completed: receipt, a sample and its hash
        self._filled: list[tuple[_Receipt, tuple[int, Future[str]]]] = []
        super().__init__(*args, **options)

    def _open_folder(self, replace: bool) -> tuple[str, bool]:
        self._quarantine = Quarantine(self._out, self._shown)
        beside = os.path.join(os.path.dirname(self._out), f".{os.path.basename(self._out)}.new")
        while True:
            if replace and os.path.exists(os.path.join(beside, PACKING)):
                folder, made = beside, True  # an earlier call with replace=True was stopped
            else:
                folder, made = prepare(self._out, self._shown, replace, going_on=True)
            lock = _Lock.of_folder(folder, self._shown)
            if lock is not None:  # else the call that held it has removed the folder, or put it in its place
                break
        self._lock = lock
        manifest = os.path.join(folder, MANIFEST)
        if os.path.exists(manifest) and folder == self._out:
            os.unlink(os.path.join(folder, PACKING))
            lock.close()
            raise ExistsError(
                f"{self._shown}: another process has just made a dataset there; open it, or write to another folder",
                "exists already",
            )
        with contextlib.suppress(FileNotFoundError):
            os.unlink(manifest)  # of a call that was killed before its dataset took the place of the old one
        _core.remove_temps(folder)
        return folder, made

    def maker(self) -> _Shards:
        """A writer of single shards for this process, which begins and seals nothing."""
        return _maker_of(self._settings())

    def _settings(self) -> dict[str, Any]:
        assert self._layout is not None
        names = ("_shown", "_out", "_dir", "_wanted", "_classes", "_class_index", "_compress", "_align", "_keys", "_size",
                 "_planned", "_provenance", "_quarantine", "_keeps")  # fmt: skip
        return {**{name: self.__dict__[name] for name in names}, "_fields": list(self._layout.named)}

    def __reduce__(self) -> tuple[Any, ...]:
        return _maker_of, (self._settings(),)

    def fill(self, k: int, plan: _Plan, bad: Callable[[int, Exception], None], done: Callable[[int], None]) -> None:
        """Make shard ``k``, which threads complete while the next one is filled; see completed().

        ``bad`` is told of samples to leave out, or raises.
        """
        first, skipped = k * self._per_shard, list[list[Any]]()
        self._shard_count, self._count, self._in_shard = k, first, 0
        if self._keeps:
            self._quarantine.begin(k)
        try:
            if plan.is_columns and not plan.may_skip:
                compared = self._fill_by_rows(k, plan, done)
            else:
                compared = self._fill(k, plan, bad, done, skipped)
            receipt = {"shard": k, "records": self._count - first, "skipped": skipped}
            if self._keeps and skipped:
                receipt["quarantine"] = self._quarantine.end()
            self._end_shard()
        except BaseException:
            self._quarantine.close()
            if self._shard is not None:
                self._shard.close()
                self._shard = None
            raise
        self._filled.append((receipt, compared))

    def completed(self, most: int = 0) -> Iterator[_Receipt]:
        """Receipts of shards that are complete.  Waits until no more than ``most`` are not."""
        while self._filled and (len(self._filled) > most or self._finishing[0][2].done()):
            receipt, (i, compared) = self._filled[0]
            self._not_finite.clear()
            self._wait(len(self._finishing) - 1)
            del self._filled[0]
            self._published.clear()
            k = receipt["shard"]
            state = os.stat(os.path.join(self._dir, shard_name(k)))
            yield {
                **receipt, "sha256": self._done.pop(k).hex(), "bytes": state.st_size, "mtime_ns": state.st_mtime_ns,
                "not_finite": dict(self._not_finite), "compared": [i, compared.result()],
            }  # fmt: skip

    def numbers(self, k: int, plan: _Plan) -> list[int]:
        """The samples of shard ``k``."""
        assert plan.count is not None
        first = k * self._per_shard
        n = min(self._per_shard, plan.count - first)
        return _core.shuffle(plan.seed, plan.count, first, n).tolist() if plan.shuffled else [*range(first, first + n)]

    def _fill(self, k: int, plan: _Plan, bad: Callable[[int, Exception], None], done: Callable[[int], None],
              skipped: list[list[Any]]) -> tuple[int, Future[str]]:
        compared = None
        for at, (i, record, key, error) in enumerate(plan.prepared(self, plan.fetched(self.numbers(k, plan)))):
            if error is None:
                try:
                    self.write(record, key)
                except (StorageError, OutOfMemoryError, ClosedError):  # of the shard, not of the sample
                    raise
                except Exception as e:
                    error, record = e, plan.given(record)
            elif _is_of_the_process(error):
                raise _BadSample(i, error) from error
            elif isinstance(error, MismatchError) and plan.file is not None:  # it has changed, for all samples
                raise error
            if error is not None:
                bad(i, error)
                # The record of that number will be another one, since this one is left out.
                text = re.sub(rf"\Arecord {self._count}\b", f"sample {i}", _text(error))
                skipped.append([i, text])
                if self._keeps:
                    self._quarantine.keep(i, key, error, text, _trace(error), record)
                    error.__traceback__ = None  # or it grows, if the source raises one exception again
                continue
            if compared is None:
                compared = i, self._hash_of(k, record, key)
            done(at + 1)
        if compared is None:
            i, text = skipped[0]
            raise RecordError(
                f"{self._shown}: none of the {len(skipped)} samples of shard {k} can be packed, and a shard cannot be "
                f"empty; the first is {_of_sample(i, text)}. Mend the source, or take larger shards with shard_records=",
                "bad argument",
            )
        return compared

    def _fill_by_rows(self, k: int, plan: _Plan, done: Callable[[int], None]) -> tuple[int, Future[str]]:
        rows = self.numbers(k, plan)
        step = plan.rows_at_once(self)
        for at in range(0, len(rows), step):
            try:
                self.write_batch(*plan.rows(self, rows[at : at + step]))
            except RecordError as e:
                if e.record is None:
                    raise
                raise _BadSample(rows[e.record - k * self._per_shard], e) from e
            done(min(at + step, len(rows)))
        return rows[0], self._hash_of(k, *plan.record(self, rows[0]))

    def compare(self, plan: _Plan, receipt: _Receipt) -> None:
        """Refuse to go on if a sample of a shard that was made earlier is another one now."""
        (i, before), k = receipt["compared"], receipt["shard"]
        try:
            record, key = plan.record(self, i)
            now, why = self._hash_of(k, record, key).result(), ""
        except Exception as e:
            now, why = "", f"; it raises {_text(e)}"
        if now != before:
            fail(
                f"{self._shown}: sample {i} of the source is not what it was when {shard_name(k)} was made{why}. The data "
                "or the code has changed since, or samples are random; resume=False removes what is there and begins again"
            )

    def _hash_of(self, k: int, record: Mapping[str, Any], key: str | None) -> Future[str]:
        """That of a shard which has this record alone."""
        assert self._layout is not None
        record = self._with_label(dict(record)) if self._class_index else record
        folder = tempfile.mkdtemp(prefix="libshard-")
        try:
            shard = _core.ShardWriter(self._layout.core, os.path.join(folder, shard_name(0)), 1, k, "", self._keys,
                                      len(self._classes))  # fmt: skip
            shard.append(record, key, self._count)
        except BaseException:
            shutil.rmtree(folder)
            raise

        def finish() -> str:
            try:
                return shard.finish()[0].hex()
            finally:
                shard.close()
                shutil.rmtree(folder)

        return self._threads().submit(finish)

    def __del__(self) -> None:
        if self._state == "open" and self._lock is None:  # a maker, whose complete shards are not its own
            self.abort()
        super().__del__()

    # ---- the parent's ----

    def abort(self) -> None:
        """Complete shards stay, if there are any: the next call takes them over."""
        lock = self._lock
        if lock is not None and self._state == "open" and os.getpid() == self._pid:
            if lock.is_blank():
                with contextlib.suppress(OSError):
                    if self._quarantine.is_open:  # before the lock's file goes: then another call may begin
                        self._quarantine.remove()
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(self._dir, PACKING))
            with contextlib.suppress(Error):
                _core.remove_temps(self._dir)
        super().abort()
        if lock is not None:
            lock.close()

    def seal(self, by_shard: dict[int, _Receipt]) -> Dataset:
        assert self._lock is not None
        receipts = [by_shard[k] for k in sorted(by_shard)]
        self._shard_count = len(receipts)
        self._count = sum(receipt["records"] for receipt in receipts)
        skipped = list[list[Any]]()
        for receipt in receipts:
            self._done[receipt["shard"]] = bytes.fromhex(receipt["sha256"])
            skipped += receipt["skipped"]
            for name, (nan, infinite) in receipt["not_finite"].items():
                counts = self._not_finite.setdefault(name, [0, 0])
                counts[0] += nan
                counts[1] += infinite
        self._list_skipped(sorted(skipped))
        kept = ""
        if not self._keeps:
            if self._quarantine.forget():
                warnings.warn(
                    f"{self._quarantine.shown}: an earlier call with on_error='quarantine' was stopped, and what it had kept "
                    "was removed, as this call does not keep any",
                    stacklevel=stack_level(),
                )
        elif self._quarantine.publish(receipts, self._add_line):
            kept = f"; what there is of them lies in {self._quarantine.shown}, and quarantine.jsonl there tells why"
        dataset = self.finish()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self._out, PACKING))
        self._lock.close()
        if skipped:
            i, text = min(skipped)
            warnings.warn(
                f"{self._shown}: {len(skipped):,} of {self._planned:,} samples were left out, and {SKIPPED} in it names "
                f"each; the first is {_of_sample(i, text)}{kept}",
                stacklevel=stack_level(),
            )
        return dataset

    def _add_line(self, line: dict[str, Any]) -> None:
        assert self._lock is not None
        try:
            self._lock.add(line)
        except OSError as e:
            raise of_system(e, f"{self._shown}: {PACKING}") from None

    def _list_skipped(self, skipped: list[list[Any]]) -> None:
        path = os.path.join(self._dir, SKIPPED)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        if skipped:
            with open(path, "w", encoding="utf-8") as f:
                f.writelines(json.dumps({"sample": i, "reason": text}) + "\n" for i, text in skipped)
                f.flush()
                os.fsync(f.fileno())


def _maker_of(settings: dict[str, Any]) -> _Shards:
    maker = _Shards.__new__(_Shards)
    fields = settings.pop("_fields")
    maker.__dict__.update(settings, _made=False, _lock=None, _filled=[])
    maker._start()
    maker._lay_out(fields)
    maker._state = "open"
    return maker


def _is_of_the_process(e: BaseException | None) -> bool:
    return isinstance(e, MemoryError) or isinstance(e, OSError) and e.errno in _OF_THE_PROCESS


def _text(e: BaseException) -> str:
    said = _of_main("".join(traceback.format_exception_only(e)).strip()) if not isinstance(e, Error) else str(e)
    return shown(" ".join(said.split()))[:_TEXT_MAX]


def _of_sample(i: int, text: str) -> str:
    """An error of a record names the sample itself."""
    return text if re.match(rf"sample {i}\b", text) else f"sample {i}: {text}"


# ---- the file dataset.packing ----


class _Lock:
    """The open file, and the lock on it, which a spawned worker shares."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __reduce__(self) -> tuple[Any, ...]:
        return _lock_of, (reduction.DupFd(self.fd),)

    @staticmethod
    def of_folder(folder: str, out: str) -> _Lock | None:
        """None if the folder is gone."""
        path, end = os.path.join(folder, PACKING), time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
            except FileNotFoundError:
                return None
            except OSError as e:
                raise of_system(e, f"{out}: {PACKING}") from None
            try:
                # The one file until its lock is free: a new one would be in the way of a folder's removal.
                while not _try_lock(fd):
                    if time.monotonic() > end:
                        raise ExistsError(
                            f"{out}: another process packs there; nothing was touched. Wait for its end, or write to "
                            "another folder",
                            "exists already",
                        )
                    time.sleep(0.05)
                with contextlib.suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(fd), os.stat(path)):
                        return _Lock(fd)
            except BaseException as e:
                os.close(fd)
                if isinstance(e, OSError) and not isinstance(e, Error):
                    raise of_system(e, f"{out}: {PACKING} cannot be locked") from None
                raise
            os.close(fd)

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def is_blank(self) -> bool:
        """Is there no receipt?"""
        return self.fd < 0 or len(self.lines()) < 2

    def lines(self) -> list[Any]:
        """What it says.  A line that was cut by a kill, or is damaged, is not there."""
        found = []
        for line in os.pread(self.fd, os.fstat(self.fd).st_size, 0).split(b"\n"):
            sum_, _, text = line.partition(b" ")
            if text and sum_ == b"%08x" % zlib.crc32(text):
                found.append(json.loads(text))
        return found

    def add(self, entry: dict[str, Any]) -> None:
        text = json.dumps(entry).encode()
        line = b"\n%08x %s\n" % (zlib.crc32(text), text)  # the first ends a line that was cut
        if os.write(self.fd, line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fdatasync(self.fd)

    def clear(self) -> None:
        os.ftruncate(self.fd, 0)


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lock_of(fd: Any) -> _Lock:
    return _Lock(fd.detach())


# ---- the call ----


def pack_shards(plan: _Plan, writer: _Shards, workers: int, on_error: OnError, start_method: str,
                show_progress: _Progress) -> Dataset:
    """Make the shards that are missing, and seal."""
    writer._keeps = on_error == "quarantine"
    job = _Job(plan, writer, workers, on_error, start_method, show_progress)
    with show_progress:
        job.run()
    plan.check_file()
    return writer.seal(job.receipts)


def refuse_source(plan: _Plan) -> None:
    """Sources that cannot be divided."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        fail(
            "libshard.pack(workers=...) runs again while a worker imports the script; put what the script does under "
            "if __name__ == '__main__':"
        )
    kind = type(plan.source).__name__
    if plan.batched:
        fail(
            f"workers= and on_error= divide a source by its index, and batched=True takes batches in turn; give the dataset "
            f"itself instead of the {kind}, or leave them out"
        )
    if any(c.__name__ == "IterableDataset" for c in type(plan.source).__mro__) or not (plan.is_columns or plan.indexed):
        fail(
            f"workers= and on_error= need a source with a length and an index, and a {kind} is read from its begin to its "
            "end; give an object that has len(source) and source[i], such as list(source) if it fits in memory. For a stream "
            "that costs time, a DataLoader with workers and batched=True makes samples in several processes"
        )


def _open_files(source: Any) -> list[str]:
    """Attributes that are open files, whose place a forked process shares with its parent."""
    found = []
    for name, value in getattr(source, "__dict__", {}).items():
        is_file = isinstance(value, io.IOBase) and not isinstance(value, (io.BytesIO, io.StringIO))
        if is_file or type(value).__module__.partition(".")[0] in _HANDLES:
            found.append(f"{name} is a {type(value).__module__}.{type(value).__name__}")
    return found


class _Job:
    def __init__(self, plan: _Plan, writer: _Shards, workers: int, on_error: OnError, start_method: str,
                 show_progress: _Progress) -> None:
        self.plan, self.writer, self.on_error, self.progress = plan, writer, on_error, show_progress
        self.receipts: dict[int, _Receipt] = {}
        self.finished = 0  # samples of complete shards
        self.workers, self.start_method = workers, start_method
        # Before a sample is read here: reading may open files, which cannot be pickled.
        self.pickled = self._pickle() if workers and start_method == "spawn" else None
        self.count = plan.count or 0
        if not self.count:
            fail(f"{writer._shown}: the source has no samples, so there is no dataset")
        self._see_first()
        assert writer._lock is not None
        self.lock = writer._lock
        self.maker = writer.maker()
        self.shards = -(-self.count // writer._per_shard)
        self._take_over()
        if self.shards < workers and self.count > _FEW * workers:
            warnings.warn(
                f"{writer._shown}: workers={workers}, but the {self.count:,} records fill only {self.shards} "
                f"shard{'s' if self.shards > 1 else ''}, and a worker makes whole shards, so the other workers have nothing to do; "
                f"shard_records={-(-self.count // (4 * workers))} gives each worker about 4",
                stacklevel=stack_level(),
            )

    def _pickle(self) -> bytes:
        try:
            return pickle.dumps(self.plan)
        except Exception as e:
            what = f"the source, a {type(self.plan.source).__name__},"
            try:
                pickle.dumps(self.plan.source)
                what = f"key={show(self.plan.key)}"
            except Exception:
                pass
            error = ArgumentError(
                f"{what} cannot be pickled, and workers that are spawned get it so: {_text(e)}. Define classes and functions "
                "at the top of a file, and open files in __getitem__, not in __init__; or use start_method='fork', if the "
                "source holds no open file, or workers=0",
                "bad argument",
            )
            raise error from e

    def _see_first(self) -> None:
        """The first sample that can be read tells what the schema leaves open."""
        writer, plan = self.writer, self.plan
        if writer._layout is not None:
            return
        if plan.is_columns:
            columns = plan.columns(writer)
            writer._see(columns, rows=True)
            return
        for place in range(self.count):
            i = _core.shuffle(plan.seed, self.count, place, 1).tolist()[0] if plan.shuffled else place
            try:
                writer._see(plan.record(writer, i)[0])
                return
            except Exception as e:
                if self.on_error == "fail" or isinstance(e, MemoryError):
                    self._raise_bad(i, e)
                if place == self.count - 1:
                    raise

    # ---- what an earlier call has left ----

    def _description(self) -> dict[str, Any]:
        """What must be the same in a call that goes on.  JSON, which has no tuples."""
        writer, plan = self.writer, self.plan
        assert writer._layout is not None
        described = {
            "length": self.count,
            "schema": [dataclasses.asdict(f) for f in writer._layout.named],
            "source": type(plan.source).__qualname__,
            "files of the source": plan.file and plan.file.said,
            "names": plan.names,
            "images": [{"name": name, **decoder.image.options()} for name, decoder in plan.decoders.items()] or None,
            "key": plan.key if plan.key is None or isinstance(plan.key, str) else "a function",
            "classes": writer._classes,
            "order": "shuffle" if plan.shuffled else "source",
            "seed": plan.seed,
            "records of a shard": writer._per_shard,
            "compress": writer._compress,
            "align": writer._align,
            "provenance": writer._recipe(),
        }
        parsed: dict[str, Any] = json.loads(json.dumps(described))
        return parsed

    def _take_over(self) -> None:
        writer, job = self.writer, self._description()
        before, *lines = self.lock.lines() or [None]
        receipts = [*{line["shard"]: line for line in lines if "shard" in line}.values()]  # a shard may be made again
        is_new = before is None or not writer._resume or not receipts
        if not is_new:
            self._refuse_other_job(before, job, len(receipts))
        if writer._keeps:
            writer._quarantine.open(is_new, [line["quarantine"] for line in lines if "shard" not in line])
        elif is_new:
            writer._quarantine.forget()
        if is_new:
            if before is not None:
                self._clear(set())
            self.lock.clear()
            self.lock.add(job)
            return
        for receipt in receipts:
            if self._is_whole(receipt) and self._has_skipped(receipt):
                self.receipts[receipt["shard"]] = receipt
        self._clear(set(self.receipts))
        kept = [self.receipts[k] for k in sorted(self.receipts)]
        most = max(_COMPARED_LEAST, sum(receipt["records"] for receipt in kept) // _RECORDS_FOR_ONE)
        for receipt in kept[:: max(1, -(-len(kept) // most))]:
            self.maker.compare(self.plan, receipt)
        for receipt in kept:
            for i, text in receipt["skipped"]:
                if callable(self.on_error):
                    self.on_error(i, RecordError(text, "bad argument"))
        self.finished = self.progress.first = sum(self._size(k) for k in self.receipts)

    def _refuse_other_job(self, before: Any, job: dict[str, Any], count: int) -> None:
        different = [name for name in job if before.get(name) != job[name]]
        if different:
            name = different[0]
            complete = f"{count} complete shard{'s' if count != 1 else ''}"
            other = "other" if name in ("names", "images", "classes", "files of the source") else "another"
            if name == "records of a shard":
                name = "number of records in a shard"
            raise ExistsError(
                f"{self.writer._shown}: an earlier call was stopped there, and left {complete} with {other} {name}: "
                f"{_differing(before.get(different[0]), job[different[0]])}. Call with the same arguments to go on, or with "
                "resume=False to remove them and begin again",
                "exists already",
            )

    def _has_skipped(self, receipt: _Receipt) -> bool:
        """May the samples stay out that were left out of this shard, and has a quarantine what there is of them?"""
        if not receipt["skipped"]:
            return True
        return self.writer._quarantine.has(receipt) if self.writer._keeps else self.on_error != "fail"

    def _is_whole(self, receipt: _Receipt) -> bool:
        """Is the shard what it was when it was complete?  One that was copied is hashed again."""
        path = os.path.join(self.writer._dir, shard_name(receipt["shard"]))
        try:
            state = os.stat(path)
        except FileNotFoundError:
            return False
        if (state.st_size, state.st_mtime_ns) == (receipt["bytes"], receipt["mtime_ns"]):
            return True
        with open(path, "rb") as f:
            if hashlib.file_digest(f, "sha256").hexdigest() == receipt["sha256"]:
                return True
        raise ExistsError(
            f"{self.writer._shown}: {shard_name(receipt['shard'])} has changed since it was complete; remove it, and this "
            "call makes it again",
            "exists already",
        )

    def _clear(self, keep: set[int]) -> None:
        """Shards of a call that was killed before it could write their receipts."""
        for name in os.listdir(self.writer._dir):
            if name.endswith(".shard") and name not in {shard_name(k) for k in keep}:
                os.unlink(os.path.join(self.writer._dir, name))

    def _size(self, k: int) -> int:
        return min(self.writer._per_shard, self.count - k * self.writer._per_shard)

    # ---- what is missing ----

    def run(self) -> None:
        todo = [k for k in range(self.shards) if k not in self.receipts]
        if not self.workers:
            try:
                for place, k in enumerate(todo):
                    before = self.progress.first + sum(map(self._size, todo[:place]))

                    def done(n: int, before: int = before) -> None:
                        self.progress(before + n)
                        self._complete_all(most=2)

                    self.maker.fill(k, self.plan, self._bad, done)
                    self._complete_all(most=1)
                self._complete_all()
            except BaseException as e:
                with contextlib.suppress(Error):  # what raised before says more
                    self._complete_all()
                if isinstance(e, _BadSample):
                    self._raise_bad(e.sample, e.cause)
                raise
            finally:
                self.maker.abort()
        elif todo:
            if self.start_method == "fork" and (files := _open_files(self.plan.source)):
                fail(
                    f"the source's attribute {files[0]}: forked workers would share its place in the file and read wrong "
                    "data. Open it in __getitem__, in each process, and give the whole schema, so that nothing is read "
                    "before; or use start_method='spawn'"
                )
            if self.plan.file is not None:
                self.plan.file.release()
            _Crew(self, todo).run()

    def _bad(self, i: int, e: Exception) -> None:
        if self.on_error == "fail":
            raise _BadSample(i, e) from e
        if callable(self.on_error):
            self.on_error(i, e)

    def _raise_bad(self, i: int, e: Exception | None, text: str = "", note: str = "") -> NoReturn:
        kept = f"; the {len(self.receipts)} complete shards stay, and the same call goes on with them"
        remedy = "" if _is_of_the_process(e) else (
            ". To leave out such samples, say on_error='skip', or on_error='quarantine', which keeps what there is of them"
        )
        error = RecordError(
            f"sample {i} of the source: {text or _text(e or Exception())}{kept if self.receipts else ''}{remedy}", "bad argument"
        )
        error.record = i
        if isinstance(e, RecordError):
            error.field = e.field
        if note:
            error.add_note(note)
        raise error from e

    def _complete_all(self, most: int = 0) -> None:
        for receipt in self.maker.completed(most):
            self._complete(receipt)

    def _complete(self, receipt: _Receipt) -> None:
        self.writer._add_line(receipt)
        self.receipts[receipt["shard"]] = receipt
        self.finished += self._size(receipt["shard"])


def _differing(before: Any, now: Any) -> str:
    """The two values; of lists, the first items that differ."""
    if isinstance(before, list) and isinstance(now, list):
        for a, b in zip(before, now):
            if a != b:
                before, now = a, b
                break
        else:
            before, now = ([item["name"] if isinstance(item, dict) else item for item in items] for items in (before, now))
    if isinstance(before, dict) and isinstance(now, dict) and before.get("name") == now.get("name"):
        names = [n for n in now if before.get(n) != now[n]]
        return f"field {show(now['name'])} has {names[0]} {show(before.get(names[0]))}, and now {show(now[names[0]])}"
    return f"{show(before)}, and now {show(now)}"


# ---- workers ----


class _Worker:
    def __init__(self, number: int, crew: _Crew) -> None:
        self.number, self.ready = number, False
        self.shard: int | None = None  # that it fills
        self.done = 0  # samples of it
        self.filled: list[int] = []  # those that its threads complete
        job = crew.job
        context = multiprocessing.get_context(job.start_method)
        self.pipe, theirs = context.Pipe()
        given = None if job.pickled is not None else (job.plan, job.writer)
        self.process = context.Process(  # type: ignore[attr-defined]
            target=_work, args=(theirs, job.lock, given), name=f"libshard-{number}"
        )
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # the worker begins with it
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        theirs.close()

    def __str__(self) -> str:
        return f"worker {self.number} (process {self.process.pid})"

    def send(self, what: Any) -> None:
        with contextlib.suppress(OSError):  # it has died, which its pipe will say
            self.pipe.send(what)

    def end(self) -> str:
        """How it ended, which it does now if it has not."""
        self.pipe.close()
        self.process.join(5)
        code = self.process.exitcode
        if code is None:
            self.process.kill()
            self.process.join()
            return "did not end"
        if code >= 0:
            return f"ended with exit code {code}"
        try:
            name = f" ({signal.Signals(-code).name})"
        except ValueError:
            name = ""
        return f"was ended by signal {-code}{name}"


class _Crew:
    """The workers of a call, and what each of them does."""

    def __init__(self, job: _Job, todo: list[int]) -> None:
        self.job, self.todo = job, todo[::-1]
        self.left = len(todo)
        self.deaths: dict[int | None, int] = {}
        self.workers: list[_Worker] = []
        self.started = 0

    def run(self) -> None:
        try:
            for _ in range(min(self.job.workers, len(self.todo))):
                self.start()
            for worker in self.workers:
                self.give_source(worker)
            while self.left:
                by_pipe = {worker.pipe: worker for worker in self.workers}
                for pipe in connection.wait(list(by_pipe)):
                    worker = by_pipe[pipe]  # type: ignore[index]
                    try:
                        message = worker.pipe.recv()
                    except (EOFError, OSError):
                        self.died(worker)
                        continue
                    self.hear(worker, *message)
        except BaseException:
            for worker in self.workers:
                worker.process.kill()
            raise
        finally:
            for worker in self.workers:
                worker.end()
                self.drop(worker)

    def start(self) -> _Worker:
        self.started += 1
        worker = _Worker(self.started, self)
        self.workers.append(worker)
        return worker

    def give_source(self, worker: _Worker) -> None:
        """After all have been started: what is sent waits until a worker has begun."""
        if self.job.pickled is not None:
            with contextlib.suppress(OSError):
                worker.pipe.send_bytes(self.job.pickled)
                worker.pipe.send(self.job.writer)
        worker.send((self.job.count, self.job.on_error == "fail"))

    def hear(self, worker: _Worker, kind: str, *said: Any) -> None:
        job = self.job
        if kind == "ready":
            worker.ready = True
            self.give(worker)
        elif kind == "done":
            (worker.done,) = said
            self.show()
        elif kind == "filled":
            assert worker.shard is not None
            worker.filled.append(worker.shard)
            self.give(worker)
        elif kind == "skipped":
            job._bad(said[0], _unpacked(said[1], said[2]))
        elif kind == "complete":
            worker.filled.remove(said[0]["shard"])
            self.left -= 1
            job._complete(said[0])
            self.show()
        elif kind == "bad":
            i, packed, text, trace = said
            cause = _loaded(packed)
            job._raise_bad(i, cause, text, f"In {worker}:\n{trace}")
        else:
            packed, text, trace = said
            error = _loaded(packed)
            if not isinstance(error, Exception):  # such as SystemExit, which would end this process
                error = Error(f"{worker} failed: {text}")
            error.add_note(f"In {worker}:\n{trace}")
            raise error

    def give(self, worker: _Worker) -> None:
        worker.shard, worker.done = (self.todo.pop() if self.todo else None), 0
        worker.send(worker.shard)  # None: it may go

    def show(self) -> None:
        filled = sum(self.job._size(k) for w in self.workers for k in w.filled)
        self.job.progress(self.job.finished + filled + sum(w.done for w in self.workers))

    def drop(self, worker: _Worker) -> None:
        """Shards that a worker may have completed, and did not tell."""
        for k in [*worker.filled, worker.shard]:
            if k is not None:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.job.writer._dir, shard_name(k)))

    def died(self, worker: _Worker) -> None:
        how, job = worker.end(), self.job
        self.workers.remove(worker)
        self.drop(worker)
        k = worker.shard
        if k is None and worker.filled:
            k = worker.filled[-1]
            worker.filled.remove(k)
        if worker.ready and k is None:
            return  # it had nothing left to do
        self.deaths[k] = self.deaths.get(k, 0) + 1
        memory = "; the system does so if memory is short: see dmesg" if "SIGKILL" in how else ""
        if k is None:
            text = f"{worker} {how} before it began{memory}"
            if "exit code" in how or self.deaths[k] > 1:
                raise Error(
                    f"{text}; what it wrote to stderr says why. A script that packs with workers needs "
                    "if __name__ == '__main__': around what it does, and must be a file"
                )
            again = "another one is started"
        else:
            numbers = job.maker.numbers(k, job.plan)
            samples = f"the {len(numbers)} samples of shard {k}, which begin with sample {numbers[0]}"
            text = f"{worker} {how} at {samples}{memory}"
            if self.deaths[k] > 1:
                kept = f"; the {len(job.receipts)} complete shards stay, and the same call goes on with them"
                raise Error(
                    f"{text}. It is the second that ended there, so one of these samples may be what ends it"
                    f"{kept if job.receipts else ''}"
                )
            again = "they are done once more"
            self.todo += [k, *worker.filled]
        _core.remove_temps(job.writer._dir)
        warnings.warn(f"{text}; {again}", stacklevel=stack_level())
        self.give_source(self.start())


def _loaded(packed: bytes | None) -> Exception | None:
    return pickle.loads(packed) if packed else None


def _unpacked(packed: bytes | None, text: str) -> Exception:
    return _loaded(packed) or RecordError(text, "bad argument")


def _packed(e: BaseException) -> bytes | None:
    """An exception for another process, if it can be pickled and comes back the same."""
    try:
        packed = pickle.dumps(e)
        return packed if type(pickle.loads(packed)) is type(e) else None
    except Exception:
        return None


def _trace(e: BaseException) -> str:
    return shown_lines(_of_main("".join(traceback.format_exception(e))))


def _of_main(text: str) -> str:
    """A script's own exceptions, as it knows them: a worker that was spawned has it as another module."""
    return re.sub(r"^__main__\.", "", text.replace("__mp_main__", "__main__"), flags=re.MULTILINE)


def shown_lines(text: str) -> str:
    return "\n".join(map(shown, text.rstrip("\n").split("\n")))


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work(pipe: Any, lock: _Lock, given: tuple[_Plan, _Shards] | None) -> None:
    """All of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ^C reaches the parent, which ends its workers
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    try:
        with contextlib.suppress(EOFError, ConnectionError):  # the parent needs no more
            _fill_shards(pipe, given)
    except BaseException as e:
        with contextlib.suppress(ConnectionError):
            pipe.send(("failed", _packed(e), _text(e), _trace(e)))


def _fill_shards(pipe: Any, given: tuple[_Plan, _Shards] | None) -> None:
    if given is None:
        plan = _source_of(pipe.recv_bytes())
        writer = pipe.recv()
    else:
        plan, writer = given[0], given[1].maker()
    count, fails = pipe.recv()
    if not plan.is_columns and len(plan.source) != count:
        fail(
            f"the source has {len(plan.source)} samples in a worker, and {count} where it was given; its length must not "
            "depend on the process or the time"
        )
    last = 0.0

    def done(n: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _REPORT_SECONDS:
            last = time.monotonic()
            pipe.send(("done", n))
            complete(most=2)

    def complete(most: int = 0) -> None:
        for receipt in writer.completed(most):
            pipe.send(("complete", receipt))

    def bad(i: int, e: Exception) -> None:
        if fails:
            raise _BadSample(i, e) from e
        pipe.send(("skipped", i, _packed(e), _text(e)))

    pipe.send(("ready",))
    while (k := pipe.recv()) is not None:
        try:
            writer.fill(k, plan, bad, done)
        except BaseException as e:
            with contextlib.suppress(Error):  # what raised before says more
                complete()
            if not isinstance(e, _BadSample):
                raise
            pipe.send(("bad", e.sample, _packed(e.cause), _text(e.cause), _trace(e.cause)))
            return
        pipe.send(("filled",))
        complete(most=1)
    complete()
    writer.abort()


def _source_of(pickled: bytes) -> _Plan:
    try:
        plan: _Plan = pickle.loads(pickled)
    except Exception as e:
        raise ArgumentError(
            f"a worker that is spawned cannot make the source again: {_text(e)}. Define its class in a file that a worker "
            "can import, not in a notebook or an interpreter, or use start_method='fork'",
            "bad argument",
        ) from e
    return plan
