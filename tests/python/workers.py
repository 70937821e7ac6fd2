# SPDX-License-Identifier: Apache-2.0
"""Packing with workers: one dataset for any number of them, kills, and samples that are left out."""

import collections
import contextlib
import errno
import fcntl
import io
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest
import warnings
from unittest import mock

import data
import libshard
import numpy as np
from libshard import _workers
from writing import Case, shards

COUNT, PER_SHARD = 100, 10


class Source:
    """Samples that depend on their number.  Each call is a line of the file ``calls``."""

    def __init__(self, count=COUNT, add=0, bad=(), wrong=(), seconds=0.0):
        self.count, self.add, self.bad, self.wrong, self.seconds = count, add, bad, wrong, seconds

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        with open("calls", "a") as f:
            f.write(f"{i}\n")
        time.sleep(self.seconds)
        if i in self.bad:
            raise ValueError(f"sample number {i} is broken")
        x = np.arange(i, i + 300, dtype="i4") + self.add
        return {"x": x[:299] if i in self.wrong else x, "label": i % 3}


def calls():
    with contextlib.suppress(FileNotFoundError):
        with open("calls") as f:
            return collections.Counter(map(int, f))
    return collections.Counter()


def pack(source, out="ours", workers=2, schema=None, **options):
    return libshard.pack(source, schema, out, workers=workers, **{"shard_records": PER_SHARD, **options})


def rows(count=COUNT):
    return [{"x": np.arange(i, i + 300, dtype="i4"), "label": i % 3} for i in range(count)]


class Base(Case):
    def setUp(self):
        super().setUp()
        shutil.rmtree("died", ignore_errors=True)
        for name in ("calls", "died"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)

    def new(self):
        Base.setUp(self)

    def in_child(self, text, **environment):
        """Runs ``text`` as the main part of a script that imports this file."""
        script = "import sys\nimport libshard\nfrom workers import *\nif __name__ == '__main__':\n"
        pathlib.Path("child.py").write_text(script + "".join(f"    {line}\n" for line in text.splitlines()))
        path = os.pathsep.join([os.path.dirname(os.path.abspath(__file__)), os.environ["PYTHONPATH"]])
        return subprocess.Popen(
            [sys.executable, "-W", "error", "child.py"],
            env={**os.environ, "PYTHONPATH": path, **environment},
            stderr=subprocess.PIPE,
            text=True,
        )

    def receipts(self, folder="ours"):
        """Numbers of shards that are complete."""
        found = set()
        with contextlib.suppress(FileNotFoundError):
            for line in pathlib.Path(folder, "dataset.packing").read_bytes().split(b"\n"):
                with contextlib.suppress(ValueError, IndexError, KeyError, TypeError):
                    found.add(json.loads(line.split(b" ", 1)[1])["shard"])
        return found

    def check_sealed(self, folder="ours", more=()):
        names = sorted(set(os.listdir(folder)) - set(shards(folder)))
        self.assertEqual(names, sorted(["dataset.manifest", *more]))
        self.assertTrue(libshard.open(folder).verify(sha256=True).ok)


# ---- the same dataset ----


class Pair:
    """Tuples, and an index without an iterator."""

    def __len__(self):
        return 50

    def __getitem__(self, i):
        return np.full((4, 4, 3), i, "u1"), i % 2


def name_of(i, sample):
    return f"sample {i}"


class SameForAnyNumber(Base):
    def check(self, source, numbers=(0, 1, 2), **options):
        usual = {name: value for name, value in options.items() if name != "start_method"}
        want = pack(source, "theirs", None, **usual)
        for workers in numbers:
            self.new()
            pack(source, "theirs", None, **usual)
            with self.subTest(workers):
                self.assertEqual(pack(source, "ours", workers, **options).id, want.id)
                self.check_same()
                self.check_sealed()
        return want

    def test_a_dataset(self):
        want = self.check(Source(), (0, 1, 2, 7))
        other = pack(Source(add=1), "more", 2)
        self.assertNotEqual(other.id, want.id)

    def test_each_sample_is_read_once_and_the_first_one_more(self):
        pack(Source(), workers=2)
        self.assertEqual(calls(), collections.Counter({**dict.fromkeys(range(COUNT), 1), 0: 2}))
        self.new()
        pack(Source(), workers=2, schema="x:i32[300],label:i64")
        self.assertEqual(calls(), collections.Counter(range(COUNT)))

    def test_a_list_shuffled(self):
        want = self.check(rows(95), (0, 2, 7), order="shuffle", seed=5)
        self.new()
        self.assertNotEqual(pack(rows(95), order="shuffle", seed=6).id, want.id)

    def test_columns(self):
        columns = {"x": np.arange(90), "y": np.arange(270.0).reshape(90, 3), "n": [f"name {i}" for i in range(90)]}
        self.check(columns, (0, 2), key="n", order="shuffle", seed=2)
        self.new()
        self.check(columns, (0, 2), key=name_of)

    def test_pairs_with_names_classes_and_keys(self):
        ds = self.check(Pair(), (0, 2), names=("picture", "label"), key=name_of, classes=["a", "b"])
        self.assertEqual((ds.key(7), ds.classes), ("sample 7", ["a", "b"]))
        self.new()
        self.check([{"label": "ab"[i % 2], "x": i, "file": f"f{i}"} for i in range(40)], (0, 2), key="file",
                   classes=["a", "b"])  # fmt: skip

    def test_another_dataset_of_libshard(self):
        ds = libshard.pack({"x": np.arange(60), "t": ["a" * (i % 9) for i in range(60)]}, {"x": None, "t": "text[<=9]"},
                           "inner", replace=True)  # fmt: skip
        self.check(ds.select(range(5, 60)), (0, 2), schema={"x": None, "t": "text[<=9]"})

    def test_a_forked_worker(self):
        held = [lambda: 1]  # cannot be pickled

        class Inner(Source):
            def __getitem__(self, i):
                return {"x": i * held[0](), "label": 0}

        self.check(Inner(), (2,), start_method="fork")

    def test_options_of_the_writer(self):
        self.check(Source(), (2,), compress="lz4", provenance="by hand", align=4096)

    def test_replace(self):
        pack(Source(), "ours", 0)
        with self.assertRaisesRegex(libshard.ExistsError, "holds a dataset; write to another folder"):
            pack(Source(add=2))
        ds = pack(Source(add=2), replace=True)
        self.assertEqual(ds[0]["x"][0], 2)
        self.check_sealed()
        self.assertEqual([n for n in os.listdir(".") if n.startswith(".ours")], [])

    def test_progress(self):
        for workers in (0, 2):
            self.new()
            seen = []
            pack(Source(seconds=0.005), workers=workers, progress=lambda *a: seen.append(a))
            self.assertEqual(seen[-1], (COUNT, COUNT))
            self.assertGreater(len(seen), 2)
            self.assertEqual(seen, sorted(seen))

    def test_values_that_are_not_finite_are_counted(self):
        with self.assertWarnsRegex(UserWarning, "ours: field 'x' has 40 NaN"):
            pack([{"x": np.full(2, np.nan if i % 2 else i, "f4")} for i in range(40)])


# ---- kills, and what the next call does ----


class KillsParent(Source):
    at = 57  # once

    def __getitem__(self, i):
        if i == self.at and not os.path.exists("died"):
            while pathlib.Path("ours/dataset.packing").read_bytes().count(b"sha256") < 3:  # the other worker goes on
                time.sleep(0.01)
            open("died", "x").close()
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)  # it ends with its parent
        return super().__getitem__(i)


class Waits(Source):
    """Comes to no end before there is a file ``died``."""

    def __getitem__(self, i):
        while i >= 60 and not os.path.exists("died"):
            time.sleep(0.01)
        return super().__getitem__(i)


class Resume(Base):
    def stop_at(self, **options):
        """A call that ends with an error at sample 57; the shards that it leaves."""
        with self.assertRaises(libshard.RecordError):
            pack(Source(bad=[57]), workers=options.pop("workers", 0), **options)
        left = self.receipts()
        self.assertEqual(left, set(range(5)))
        os.unlink("calls")
        return left

    def expect(self, left, first=True):
        """Calls of a call that goes on: what is missing, a sample of each shard, and sample 0 for the schema."""
        missing = [i for i in range(COUNT) if i // PER_SHARD not in left]
        return collections.Counter(missing + [k * PER_SHARD for k in left] + [0] * first)

    def test_the_parent_is_killed(self):
        want = pack(Source(), "theirs").id
        self.new()
        child = self.in_child("pack(KillsParent(), workers=2)")
        _, said = child.communicate(timeout=600)
        self.assertEqual(child.returncode, -signal.SIGKILL, said)
        with self.assertRaises(libshard.NotFoundError):
            libshard.open("ours")
        # Its workers have left when the lock is free, which the next call waits for.
        with mock.patch.object(_workers, "_LOCK_SECONDS", 300):
            _workers._Lock.of_folder("ours", "ours").close()
        left = self.receipts()
        self.assertGreaterEqual(len(left), 3)
        os.unlink("calls")
        ds = pack(KillsParent(), workers=2)
        self.assertEqual(ds.id, want)
        self.assertEqual(calls(), self.expect(left))
        self.check_sealed()

    def test_complete_shards_are_not_computed_again(self):
        want = pack(Source(), "theirs").id
        for workers, first in ((0, 0), (2, 0), (0, 2)):
            self.new()
            left = self.stop_at(workers=first) if not first else None
            if left is None:
                with self.assertRaises(libshard.RecordError):
                    pack(Source(bad=[57]), workers=first)
                left = self.receipts()
                os.unlink("calls")
            self.assertEqual(pack(Source(), workers=workers).id, want)
            self.assertEqual(calls(), self.expect(left))
            self.check_sealed()
        # without receipts, which is what the count must see
        self.new()
        self.stop_at()
        os.unlink("ours/dataset.packing")
        self.assertEqual(pack(Source()).id, want)
        self.assertEqual(calls(), self.expect(set()))

    def test_a_receipt_that_was_cut_or_damaged(self):
        want = pack(Source(), "theirs").id
        for change in (lambda b: b[:-9], lambda b: b.replace(b'"records": 10', b'"records": 11', 1)):
            self.new()
            self.stop_at()
            path = pathlib.Path("ours/dataset.packing")
            before = path.read_bytes()
            path.write_bytes(change(before))
            self.assertNotEqual(path.read_bytes(), before)
            self.assertEqual(pack(Source()).id, want)
            self.assertEqual(sum(calls().values()), 60 + 4 + 1)

    def test_a_shard_that_changed_or_is_gone(self):
        want = pack(Source(), "theirs").id
        self.new()
        self.stop_at()
        os.unlink("ours/00002.shard")
        with open("ours/00003.shard", "r+b") as f:
            f.seek(5000)
            f.write(b"?")
        with self.assertRaisesRegex(libshard.ExistsError, "00003.shard has changed since it was complete; remove it"):
            pack(Source())
        os.unlink("ours/00003.shard")
        os.utime("ours/00001.shard")  # a copy, which has the same bytes
        os.unlink("calls")
        self.assertEqual(pack(Source()).id, want)
        self.assertEqual(calls(), self.expect({0, 1, 4}))

    def test_another_call_is_refused(self):
        self.stop_at(provenance="v1")
        left = sorted(os.listdir("ours"))
        same = {"provenance": "v1"}
        for source, options, said in (
            (Source(99), same, "another length: 100, and now 99"),
            (Source(), {}, "another provenance: "),
            (Source(), {**same, "shard_records": 8}, "another number of records in a shard: 10, and now 8"),
            (Source(), {**same, "compress": "lz4"}, "another compress: None, and now 'lz4'"),
            (Source(), {**same, "order": "shuffle"}, "another order: 'source', and now 'shuffle'"),
            (Source(), {**same, "classes": ["a", "b", "c"]}, "other classes: "),
            (Source(), {**same, "key": name_of}, "another key: None, and now 'a function'"),
            (rows(), same, "another source: "),
            (Source(), {**same, "schema": "x:i32[300],label:i32"}, "field 'label'"),
            (Source(), {**same, "schema": "x:i32[300]"}, "another schema: "),
        ):
            with self.subTest(said), self.assertRaisesRegex((libshard.ExistsError, libshard.ArgumentError), said):
                pack(source, workers=0, **options)
            self.assertEqual(sorted(os.listdir("ours")), left)
        with self.assertRaisesRegex(libshard.ExistsError, "and left 5 complete shards with another length: .* resume=False"):
            pack(Source(99), **same)
        with self.assertRaisesRegex(libshard.ExistsError, r"libshard.pack\(workers=...\) was stopped there"):
            pack(Source(), workers=None)
        ds = pack(Source(99), resume=False)
        self.assertEqual(len(ds), 99)
        self.check_sealed()

    def test_other_samples_are_noticed(self):
        self.stop_at()
        for workers in (0, 2):
            with self.assertRaisesRegex(
                libshard.ArgumentError, "sample 0 of the source is not what it was when 00000.shard was made"
            ):
                pack(Source(add=1), workers=workers)
        # Without that look, samples of two kinds would lie in one dataset: the look is what refuses them.
        with mock.patch.object(_workers._Shards, "compare", lambda *a: None):
            ds = pack(Source(add=1))
        self.assertEqual([ds[i]["x"][0] for i in (0, 99)], [0, 100])
        self.new()
        self.stop_at()
        self.assertEqual(pack(Source(add=1), resume=False).id, pack(Source(add=1), "theirs").id)

    def test_a_shard_that_was_made_again(self):
        """First without a sample, then with it: the last receipt is that of the shard."""
        want, real = pack(Source(), "theirs").id, _workers._Shards.fill
        for source, on_error, last in ((Source(bad=[25]), "skip", 6), (Source(), "fail", 8)):
            def fill(writer, k, *args, last=last):
                if k == last:
                    raise KeyboardInterrupt
                real(writer, k, *args)

            with mock.patch.object(_workers._Shards, "fill", fill), self.assertRaises(KeyboardInterrupt):
                pack(source, workers=0, schema="x:i32[300],label:i64", on_error=on_error)
        self.assertEqual(pack(Source(), schema="x:i32[300],label:i64").id, want)
        self.check_sealed()

    def test_the_more_is_kept_the_more_is_compared(self):
        """A sample of 16 shards at least, and of one more for so many records."""
        usual = Source.__getitem__

        def changed(source, i):
            found = usual(source, i)
            return {**found, "x": found["x"] + (i // PER_SHARD == 3)}

        for least, records, compared in ((2, 10**6, {0, 3}), (16, 10**6, {0, 1, 2, 3, 4}), (1, 16, {0, 2, 4}), (1, 1, {0, 1, 2, 3, 4})):
            self.new()
            left = self.stop_at()
            with mock.patch.multiple(_workers, _COMPARED_LEAST=least, _RECORDS_FOR_ONE=records):
                if 3 in compared:
                    with mock.patch.object(Source, "__getitem__", changed), \
                         self.assertRaisesRegex(libshard.ArgumentError, "sample 30 of the source is not what it was"):  # fmt: skip
                        pack(Source(), workers=0)
                    os.unlink("calls")
                pack(Source(), workers=0)
            missing = [i for i in range(COUNT) if i // PER_SHARD not in left]
            self.assertEqual(calls(), collections.Counter(missing + [k * PER_SHARD for k in compared] + [0]))

    def test_replace_goes_on_beside_the_old_dataset(self):
        pack(rows(), "ours", 0)
        with self.assertRaises(libshard.RecordError):
            pack(Source(bad=[57]), workers=0, replace=True)
        self.assertEqual((self.receipts(".ours.new"), len(libshard.open("ours"))), (set(range(5)), COUNT))
        os.unlink("calls")
        pack(Source(), replace=True)
        self.assertEqual(calls(), self.expect(set(range(5))))
        self.check_sealed()
        self.assertEqual([n for n in os.listdir(".") if n.startswith(".ours")], [])

    def test_two_calls_at_once(self):
        self.stop_at()
        with open("ours/dataset.packing") as f, mock.patch.object(_workers, "_LOCK_SECONDS", 0.1):
            fcntl.flock(f, fcntl.LOCK_EX)
            with self.assertRaisesRegex(libshard.ExistsError, "another process packs there; nothing was touched"):
                pack(Source())
        self.assertEqual(self.receipts(), set(range(5)))

    def test_what_is_being_packed_is_not_replaced(self):
        for folder in ("ours", ".ours.new"):
            self.new()
            if folder != "ours":
                pack(rows(), workers=0)
                with self.assertRaises(libshard.RecordError):
                    pack(Source(bad=[57]), workers=0, replace=True)
            else:
                self.stop_at()
            with open(os.path.join(folder, "dataset.packing")) as f:
                fcntl.flock(f, fcntl.LOCK_EX)
                before = sorted(os.listdir(folder))
                with self.assertRaisesRegex(libshard.ExistsError, "ours: another process packs there; nothing was touched"):
                    libshard.pack(rows(9), None, "ours", replace=True)
                self.assertEqual(sorted(os.listdir(folder)), before)
            self.assertEqual(len(libshard.pack(rows(9), None, "ours", replace=True)), 9)
            self.check_sealed()

    def test_the_end_of_a_call_for_which_another_one_waits(self):
        def wait(end, **options):
            with open(os.path.join(folder, "dataset.packing"), "w") as f:
                fcntl.flock(f, fcntl.LOCK_EX)

                def sleep(seconds):  # what the other call does while this one waits
                    end()
                    f.close()

                with mock.patch.object(_workers.time, "sleep", sleep):
                    return pack(rows(), workers=0, **options)

        want = pack(rows(), "theirs", 0).id
        folder = "ours"
        pack(rows(), workers=0)
        os.rename("ours/dataset.manifest", "manifest")

        def seal():
            os.rename("manifest", "ours/dataset.manifest")
            os.unlink("ours/dataset.packing")

        with self.assertRaisesRegex(libshard.ExistsError, "another process has just made a dataset there; open it"):
            wait(seal)
        self.check_sealed()
        folder = ".ours.new"
        os.mkdir(folder)
        self.assertEqual(wait(lambda: shutil.rmtree(folder), replace=True).id, want)
        self.check_sealed()

    def test_the_end_came_before_the_new_dataset_took_its_place(self):
        pack(rows(9), workers=0)
        with mock.patch("libshard._writer._take_place", side_effect=InterruptedError), self.assertRaises(InterruptedError):
            pack(Source(), workers=0, replace=True)
        os.unlink("calls")
        self.assertEqual(len(pack(Source(), workers=0, replace=True)), COUNT)
        self.assertEqual(calls(), self.expect(set(range(10))))
        self.check_sealed()

    def test_an_error_before_any_shard_leaves_nothing(self):
        for workers in (0, 2):
            with self.assertRaises(libshard.RecordError):
                pack(Source(bad=range(COUNT)), workers=workers, schema="x:i32[300],label:i64")
            self.check_nothing()

    def test_ctrl_c(self):
        want = pack(Source(), "theirs").id
        self.new()
        child = self.in_child("try:\n    pack(Waits(), workers=2)\nexcept KeyboardInterrupt:\n    sys.exit(77)")
        try:
            while len(self.receipts()) < 2:
                self.assertIsNone(child.poll())
                time.sleep(0.02)
        finally:
            child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=600)
        self.assertEqual((child.returncode, said), (77, ""))
        left = self.receipts()
        self.assertEqual([n for n in os.listdir("ours") if n.startswith(".tmp")], [])
        self.assertGreaterEqual(len(left), 2)
        os.unlink("calls")
        os.mkdir("died")
        self.assertEqual(pack(Waits()).id, want)
        self.assertEqual(calls(), self.expect(left))

    def test_kills_at_random_moments(self):
        kills, seed = int(os.environ.get("KILLS", "4")), int(os.environ.get("SEED", time.time_ns() % 10**6))
        print(f"{kills} kills, seed {seed}", flush=True)
        rng = random.Random(seed)
        want, done, taken, runs = pack(Source(), "theirs").id, 0, 0, 0
        while done < kills:
            self.new()
            sealed, killed = False, 0
            while not sealed:
                left, before = self.receipts(), calls()
                runs += 1
                child = self.in_child("pack(Source(seconds=0.004), workers=2)")
                if done < kills and killed < 6:
                    most = sum(before.values()) + rng.randrange(COUNT - PER_SHARD * len(left) + 5)
                    while sum(calls().values()) < most and child.poll() is None:
                        time.sleep(0.005)
                    time.sleep(rng.uniform(0, 0.1))
                    victims = [child.pid]
                    if rng.random() < 0.5:
                        with contextlib.suppress(FileNotFoundError):
                            text = pathlib.Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text()
                            victims = list(map(int, text.split())) or victims
                    victim = rng.choice(victims)
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(victim, signal.SIGKILL)
                    done += 1
                    killed += 1
                _, said = child.communicate(timeout=600)
                taken += len(left)
                again = [i for i in (calls() - before) if i // PER_SHARD in left and i % PER_SHARD]
                self.assertEqual(again, [], f"seed {seed}: computed again")
                sealed = os.path.exists("ours/dataset.manifest")
                if child.returncode == 0:
                    self.assertTrue(sealed)
                elif child.returncode != -signal.SIGKILL:  # a warning that a worker died is an error there
                    self.assertRegex(said, "was ended by signal 9|before it began|another process packs")
            self.assertEqual(libshard.open("ours").id, want, f"seed {seed}")
            self.assertTrue(libshard.open("ours").verify(sha256=True).ok)
        print(f"{done} kills in {runs} calls, which took over {taken} shards", flush=True)


# ---- workers and samples that fail ----


class Dies(Source):
    """Ends its worker at sample 25: once, or each time."""

    times = 1

    def __getitem__(self, i):
        if i == 25 and len(os.listdir("died")) < self.times:
            open(f"died/{os.getpid()}", "x").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(i)


class DiesTwice(Dies):
    times = 2


class Leaves(Source):
    def __getitem__(self, i):
        if i == 25:
            os._exit(3)
        return super().__getitem__(i)


class Odd(Exception):
    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")  # cannot come out of a pickle


class RaisesOdd(Source):
    def __getitem__(self, i):
        if i == 31:
            raise Odd(1, 2)
        return super().__getitem__(i)


class Exits(Source):
    def __getitem__(self, i):
        if i == 31:
            sys.exit("enough")
        return super().__getitem__(i)


class NoMemory(Source):
    error = MemoryError("none left")

    def __getitem__(self, i):
        if i == 31:
            raise self.error
        return super().__getitem__(i)


class NoFiles(NoMemory):
    error = OSError(errno.EMFILE, "too many files")


class Workers(Base):
    def setUp(self):
        super().setUp()
        os.mkdir("died")

    def new(self):
        Workers.setUp(self)

    def test_one_that_dies_is_named_and_its_shard_is_made_once_more(self):
        want = pack(Source(), "theirs").id
        self.new()
        with self.assertWarnsRegex(
            UserWarning,
            r"worker [12] \(process [0-9]+\) was ended by signal 9 \(SIGKILL\) at the 10 samples of shard 2, which begin "
            "with sample 20; .*they are done once more",
        ):
            self.assertEqual(pack(Dies()).id, want)
        self.check_sealed()

    def test_a_shard_at_which_two_die(self):
        with self.assertWarns(UserWarning), self.assertRaisesRegex(
            libshard.Error, "at the 10 samples of shard 2, which begin with sample 20; .* the second that ended there"
        ):
            pack(DiesTwice())
        with self.assertWarns(UserWarning), self.assertRaisesRegex(libshard.Error, "ended with exit code 3 at the 10 samples"):
            pack(Leaves(), "more", workers=1)
        self.assertIn(0, self.receipts("more"))
        self.assertNotIn(2, self.receipts("more"))

    def test_what_a_sample_raises(self):
        for workers in (0, 2):
            self.new()
            with self.assertRaisesRegex(
                libshard.RecordError, "^sample 57 of the source: ValueError: sample number 57 is broken.*on_error='skip'"
            ) as caught:
                pack(Source(bad=[57]), workers=workers)
            self.assertEqual(caught.exception.record, 57)
            self.assertIsInstance(caught.exception.__cause__, ValueError)
            if workers:
                self.assertRegex(caught.exception.__notes__[0], r"(?s)In worker [12] \(process .*in __getitem__.*is broken")
            else:
                self.assertRegex(str(caught.exception), "the 5 complete shards stay, and the same call goes on with them")
        self.new()
        with self.assertRaisesRegex(libshard.RecordError, "sample 31 of the source: .*Odd: 1 and 2") as caught:
            pack(RaisesOdd())
        self.assertIsNone(caught.exception.__cause__)
        self.assertRegex(caught.exception.__notes__[0], "in __getitem__")

    def test_a_sample_that_ends_the_process(self):
        with self.assertRaisesRegex(libshard.Error, r"worker [12] \(process [0-9]+\) failed: SystemExit: enough"):
            pack(Exits(), on_error="skip")

    def test_a_sample_that_does_not_fit(self):
        for workers in (0, 2):
            self.new()
            with self.assertRaisesRegex(libshard.RecordError, r"sample 57 of the source: record 57, field 'x'.*299") as caught:
                pack(Source(wrong=[57]), workers=workers)
            self.assertEqual((caught.exception.record, caught.exception.field), (57, "x"))

    def test_samples_are_left_out(self):
        bad, wrong = [0, 3, 57, 99], [20, 21]
        kept = [i for i in range(COUNT) if i not in bad + wrong]
        ids = set()
        for workers in (None, 0, 1, 2, 7):
            self.new()
            with self.assertWarnsRegex(
                UserWarning, "ours: 6 of 100 samples were left out, and dataset.skipped in it names each; the first is "
                "sample 0: ValueError: sample number 0 is broken"
            ):  # fmt: skip
                ds = pack(Source(bad=bad, wrong=wrong), workers=workers, on_error="skip")
            ids.add(ds.id)
            self.assertEqual([r["x"][0] for r in ds], kept)
            lines = list(map(json.loads, pathlib.Path("ours/dataset.skipped").read_text().splitlines()))
            self.assertEqual([line["sample"] for line in lines], sorted(bad + wrong))
            self.assertRegex(lines[2]["reason"], "^sample 20, field 'x'")
            self.assertRegex(lines[3]["reason"], "^sample 21, field 'x'")
            self.check_sealed(more=["dataset.skipped"])
        self.assertEqual(len(ids), 1)
        self.assertEqual(sorted(os.listdir("ours")), [*shards("ours"), "dataset.manifest", "dataset.skipped"])
        # nothing left out: the dataset of a call that fails, and no list
        self.new()
        want = pack(Source(), "theirs").id
        self.assertEqual(pack(Source(), on_error="skip").id, want)
        self.check_sealed()
        self.assertNotIn(want, ids)
        # the list goes with its dataset, also if something else replaces that
        with self.assertWarns(UserWarning):
            pack(Source(bad=[4]), "more", on_error="skip")
        pack(Source(), "more", replace=True)
        self.check_sealed("more")
        with self.assertWarns(UserWarning):
            pack(Source(bad=[4]), "more", on_error="skip", replace=True)
        np.arange(9, dtype="<i2").tofile("nine.bin")
        data.shardpack("raw", "nine.bin", "--schema", "x:i16", "-o", "more", "--replace")
        self.check_sealed("more", more=["dataset.sources"])

    def test_the_first_that_is_left_out_is_named_once(self):
        with self.assertWarnsRegex(UserWarning, "the first is sample 20, field 'x'"):
            pack(Source(wrong=[20]), on_error="skip", workers=0)

    def test_fewer_shards_than_workers(self):
        with warnings.catch_warnings():  # of so few samples it does not matter
            warnings.simplefilter("error")
            pack(Source(), workers=4, shard_records=50)
        self.new()
        few = mock.patch.object(_workers, "_FEW", 24)
        few.start()
        self.addCleanup(few.stop)
        said = "ours: workers=4, but the 100 records fill only {}, .*; shard_records=7 gives each worker about 4$"
        with self.assertWarnsRegex(UserWarning, said.format("2 shards")):
            pack(Source(), workers=4, shard_records=50)
        self.new()
        with self.assertWarnsRegex(UserWarning, said.format("1 shard")):
            pack(Source(), workers=4, shard_records=None)
        self.new()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pack(Source(), workers=4, shard_records=25)

    def test_rows_of_columns_are_left_out(self):
        x, names = list(range(COUNT)), ["ab"[i % 2] for i in range(COUNT)]
        x[57], names[23] = "none", "c"
        columns = {"x": x, "label": names, "id": [f"row {i}" for i in range(COUNT)]}
        options = {"schema": "x:i32,label:i64", "classes": ["a", "b"], "key": "id", "order": "shuffle", "seed": 5}
        kept, ids = [i for i in range(COUNT) if i not in (23, 57)], set()
        for workers in (None, 0, 2):
            self.new()
            with self.assertWarnsRegex(UserWarning, "2 of 100 samples were left out.*is sample 23, field 'label': 'c' is none of the 2"):
                ds = pack(columns, workers=workers, on_error="skip", **options)
            ids.add(ds.id)
            self.assertEqual(sorted(r["x"] for r in ds), kept)
            self.assertEqual([ds[ds.index_of(f"row {i}")]["x"] for i in kept], kept)
            self.check_sealed(more=["dataset.skipped"])
        self.assertEqual(len(ids), 1)
        names[23] = "b"
        for workers in (0, 2):
            self.new()
            with self.assertRaisesRegex(libshard.RecordError, "sample 57 of the source: .*say on_error='skip'") as caught:
                pack(columns, workers=workers, **options)
            self.assertEqual((caught.exception.record, caught.exception.field), (57, "x"))
        x[57] = 57
        self.new()
        self.assertEqual(pack(columns, on_error="skip", **options).id, pack(columns, "theirs", **options).id)

    def test_a_function_decides(self):
        for workers in (0, 2):
            self.new()
            seen = []
            with self.assertWarns(UserWarning):
                ds = pack(Source(bad=[5, 57]), workers=workers, on_error=lambda i, e: seen.append((i, type(e), os.getpid())))
            self.assertEqual(sorted(seen), [(i, ValueError, os.getpid()) for i in (5, 57)])
            self.assertEqual(len(ds), 98)
            self.new()

            def stop(i, e):
                if i == 57:
                    raise KeyError("enough") from e

            with self.assertRaisesRegex(KeyError, "enough"):
                pack(Source(bad=[5, 57]), workers=workers, on_error=stop)
            left = self.receipts()
            self.assertNotIn(5, left)
            # the one that was left out by the call before is told to this one
            if 0 in left:
                seen.clear()
                with self.assertWarns(UserWarning):
                    pack(Source(bad=[5, 57]), workers=workers, on_error=lambda i, e: seen.append((i, str(e))))
                self.assertEqual(min(seen)[:2], (5, "ValueError: sample number 5 is broken"))

    def test_a_call_that_may_leave_nothing_out_makes_shorter_shards_again(self):
        with self.assertRaises(KeyError), warnings.catch_warnings():
            pack(Source(bad=[5, 57]), workers=0, on_error=lambda i, e: i == 57 and {}[i])
        self.assertEqual(self.receipts(), {0, 1, 2, 3, 4})
        want = pack(Source(), "theirs").id
        self.assertEqual(pack(Source()).id, want)

    def test_what_is_not_the_fault_of_a_sample_is_not_left_out(self):
        for source in (NoMemory(), NoFiles()):
            for workers in (0, 2):
                with self.subTest(type(source)), self.assertRaisesRegex(libshard.RecordError, "sample 31 of the source") as raised:
                    pack(source, workers=workers, on_error="skip")
                self.assertNotIn("on_error", str(raised.exception))  # which would not help
                self.new()
        with self.assertRaisesRegex(libshard.RecordError, "none of the 10 samples of shard 3 can be packed.*first is sample 30"):
            pack(Source(bad=range(30, 40)), on_error="skip")

    def test_the_disk_is_full(self):
        for workers in (0, 1):
            self.new()
            with data.files_of_at_most(1 << 15):
                with self.assertRaisesRegex(libshard.StorageError, "ours/00000.shard") as caught:
                    libshard.pack(rows(), None, "ours", workers=workers, on_error="skip")
                self.assertNotEqual(caught.exception.errno, 0)
            self.check_nothing()


# ---- samples that are kept in a quarantine ----

KEPT = "ours.quarantine"
HOSTILE = ["../x", "a/b", "", "a\0b", "n" * 300, "-rf", "item-0", "A", "a", "\udc80", "..", 7]


class RaisesItems(dict):
    def items(self):
        raise KeyError("no items")


class Bad(Source):
    """Samples of each kind that cannot be packed."""

    def __getitem__(self, i):
        sample = super().__getitem__(i)
        if i == 3:
            raise Odd(1, 2)
        if i == 25:
            return {**sample, "x": sample["x"][:7]}
        if i == 26:
            return (i, b"bytes", np.float32(np.inf), [1, [2.5, None]])
        if i == 27:
            return {"x": b"\x89PNG\r\n\x1a\nxyz", "label": "c" * 2000}
        if i == 28:
            return {"x": np.array([{}]), "label": self}
        if i == 57:
            return {"x": "text", "label": np.int64(5)}
        if i == 58:
            return (*range(65),)
        if i == 59:
            return RaisesItems()
        return sample


BAD = [3, 25, 26, 27, 28, 57, 58, 59]


class Quarantine(Base):
    def setUp(self):
        super().setUp()
        for name in os.listdir("."):
            if name.endswith(".quarantine"):
                shutil.rmtree(name)
        os.mkdir("died")

    def new(self):
        Quarantine.setUp(self)

    def pack(self, source=None, **options):
        with self.assertWarnsRegex(
            UserWarning,
            "samples were left out, and dataset.skipped in it names each; .*what there is of them lies in ours.quarantine",
        ):
            return pack(source or Bad(), **{"schema": "x:i32[300],label:i64", "on_error": "quarantine", **options})

    def content(self, folder=KEPT):
        """Each file and its bytes."""
        found = {}
        for path in pathlib.Path(folder).rglob("*"):
            self.assertTrue(path.is_dir() or path.is_file())
            if path.is_file():
                found[str(path.relative_to(folder))] = path.read_bytes()
        return found

    def lines(self):
        return {line["sample"]: line for line in map(json.loads, pathlib.Path(KEPT, "quarantine.jsonl").read_text().splitlines())}

    def check_gone(self):
        self.assertEqual([n for n in os.listdir(".") if n.endswith(".quarantine")], [])

    def test_what_is_kept(self):
        want = None
        with self.assertWarns(UserWarning):
            skipped = pack(Bad(), schema="x:i32[300],label:i64", on_error="skip").id
        for workers, method in ((0, "spawn"), (None, "spawn"), (1, "spawn"), (3, "spawn"), (2, "fork")):
            self.new()
            ds = self.pack(workers=workers, start_method=method)
            self.assertEqual(ds.id, skipped)
            self.assertEqual([n for n in os.listdir(".") if n.endswith(".quarantine")], [KEPT])
            found = self.content()
            want = want or found
            self.assertEqual(found, want)
        lines = self.lines()
        self.assertEqual(list(lines), BAD)
        names = ["sample", "key", "reason", "message", "files", "values", "not_kept", "traceback"]
        self.assertEqual({tuple(line) for line in lines.values()}, {tuple(names)})
        listed = [name for line in lines.values() for name in line["files"].values()]
        self.assertEqual(sorted(listed), sorted(set(found) - {"quarantine.jsonl"}))
        by_sample = list(map(json.loads, pathlib.Path("ours/dataset.skipped").read_text().splitlines()))
        self.assertEqual({s["sample"]: s["reason"] for s in by_sample}, {i: line["message"] for i, line in lines.items()})
        # what the source raised, also if it cannot be pickled
        self.assertEqual((lines[3]["reason"], lines[3]["files"], lines[3]["values"]), ("Odd", {}, {}))
        self.assertRegex(lines[3]["traceback"], r"(?s)^Traceback.*in __getitem__\n.*raise Odd\(1, 2\).*Odd: 1 and 2$")
        # arrays, bytes, text, numbers
        self.assertEqual((lines[25]["files"], lines[25]["values"]), ({"x": "25/x.npy"}, {"label": 1}))
        np.testing.assert_array_equal(np.load(f"{KEPT}/25/x.npy", allow_pickle=False), np.arange(25, 32, dtype="i4"))
        self.assertEqual(lines[27]["files"], {"x": "27/x.png", "label": "27/label.txt"})
        self.assertEqual((found["27/x.png"], found["27/label.txt"]), (b"\x89PNG\r\n\x1a\nxyz", b"c" * 2000))
        self.assertEqual((lines[57]["files"], lines[57]["values"]), ({}, {"x": "text", "label": 5}))
        # samples that are not dicts
        self.assertEqual((lines[26]["files"], found["26/1.bin"]), ({"1": "26/1.bin"}, b"bytes"))
        self.assertEqual(lines[26]["values"], {"0": 26, "2": "inf", "3": [1, [2.5, None]]})
        self.assertEqual(lines[58]["values"], {"sample": [*range(65)]})
        # what cannot be kept without pickle is named
        self.assertRegex(lines[28]["not_kept"]["x"], "a value of type ndarray; ValueError: Object arrays cannot be saved")
        self.assertRegex(lines[28]["not_kept"]["label"], "a value of type Bad; TypeError: it is not a number, a text, bytes or an array")
        self.assertRegex(lines[59]["not_kept"]["sample"], "a value of type RaisesItems; KeyError: 'no items'")

    def test_names_that_could_leave_the_folder(self):
        """Of a sample without a key, before the schema chooses its items."""
        self.pack([{"x": 0, "id": "a"}, {name: bytes([place]) for place, name in enumerate(HOSTILE)}], schema="x:i64", key="id")
        found, (line,) = self.content(), self.lines().values()
        self.assertEqual(list(line["files"]), [str(name) for name in HOSTILE])
        self.assertEqual([found[name] for name in line["files"].values()], [bytes([i]) for i in range(len(HOSTILE))])
        self.assertTrue(all(re.fullmatch(r"1/[A-Za-z0-9_.-]{1,60}\.bin", name) for name in line["files"].values()))
        self.assertEqual(len(found), 1 + len(HOSTILE))

    def test_rows_of_columns_and_hostile_keys(self):
        x, keys = list(range(COUNT)), [f"row {i}" for i in range(COUNT)]
        x[57], keys[57], keys[23] = "none", "../../out", "a\0b"
        keys[60] = "k" * 5000
        want = None
        for workers in (0, 2):
            self.new()
            self.pack({"x": x, "id": keys}, workers=workers, schema="x:i32", key="id", order="shuffle", seed=5)
            want = want or self.content()
            self.assertEqual((self.content(), list(want)), (want, ["quarantine.jsonl"]))
        lines = self.lines()
        self.assertEqual({i: (line["key"], line["values"]) for i, line in lines.items()},
                         {57: ("../../out", {"x": "none"}), 23: ("a\0b", {"x": 23}), 60: ("k" * 5000, {"x": 60})})  # fmt: skip
        # in the order of the records, which is that of shards
        order = [i for i in libshard._core.shuffle(5, COUNT, 0, COUNT).tolist() if i in lines]
        self.assertEqual(list(lines), order)

    def test_one_exception_that_is_raised_again(self):
        """Its traceback is that of one sample."""
        with self.assertWarns(UserWarning):
            pack(NoItem(), workers=0, schema="x:i32[300],label:i64", on_error="quarantine")
        traces = {line["traceback"] for line in self.lines().values()}
        self.assertEqual((len(self.lines()), len(traces)), (50, 1))

    def test_nothing_is_left_out(self):
        want = pack(Source(), "theirs").id
        for workers in (0, 2):
            self.assertEqual(pack(Source(), workers=workers, on_error="quarantine", replace=bool(workers)).id, want)
            self.check_gone()
        self.new()
        with self.assertRaisesRegex(libshard.RecordError, "none of the 10 samples of shard 0 can be packed"):
            pack(Source(bad=range(COUNT)), workers=0, schema="x:i32[300],label:i64", on_error="quarantine")
        self.check_nothing()
        self.check_gone()

    def test_it_is_removed_before_another_call_can_begin(self):
        real, there = os.unlink, []

        def unlink(path, *args, **options):
            if os.path.basename(path) == "dataset.packing":
                there.append(os.path.exists(".ours.quarantine"))
            real(path, *args, **options)

        with mock.patch("os.unlink", unlink), self.assertRaises(libshard.RecordError):
            pack(Source(bad=range(COUNT)), workers=0, schema="x:i32[300],label:i64", on_error="quarantine")
        self.assertEqual(there, [False])

    def test_a_folder_of_another_call_is_left_alone(self):
        self.pack()
        before = self.content()
        os.unlink("calls")
        for options in ({"replace": True}, {"out": "ours/"}):
            if not options.get("replace"):
                shutil.rmtree("ours")
            with self.assertRaisesRegex(
                libshard.ExistsError, "^ours.quarantine: holds samples that an earlier call left out.*move it away or remove it"
            ):
                pack(Bad(), **{"schema": "x:i32[300],label:i64", "on_error": "quarantine", **options})
            self.assertEqual((calls(), self.content()), (collections.Counter(), before))
            self.assertEqual([n for n in os.listdir(".") if n.startswith(".ours")], [])
        self.check_nothing()
        # other calls do not touch it either
        with self.assertWarns(UserWarning):
            pack(Bad(), schema="x:i32[300],label:i64", on_error="skip")
        self.assertEqual(self.content(), before)
        shutil.rmtree(KEPT)
        os.symlink("died", KEPT)
        with self.assertRaisesRegex(libshard.ExistsError, "^ours.quarantine: holds"):
            pack(Bad(), on_error="quarantine", replace=True)
        os.unlink(KEPT)
        os.mkdir(KEPT)
        self.pack(replace=True)
        self.assertEqual(self.content(), before)
        # what looks like the beginning of one, and is not
        self.new()
        os.mkdir(".ours.quarantine")
        pathlib.Path(".ours.quarantine/notes").touch()
        with self.assertRaisesRegex(libshard.ExistsError, r"\.ours\.quarantine: holds 'notes', which is not of a quarantine"):
            pack(Bad(), on_error="quarantine")
        self.assertEqual(os.listdir(".ours.quarantine"), ["notes"])
        pack(Source(), on_error="skip")
        self.assertEqual(os.listdir(".ours.quarantine"), ["notes"])
        shutil.rmtree(".ours.quarantine")

    def test_a_name_that_leaves_no_room(self):
        name = "n" * 248
        with self.assertRaisesRegex(libshard.StorageError, "n.quarantine: cannot be made, first as .n") as caught:
            pack(Bad(), name, on_error="quarantine")
        self.assertEqual(caught.exception.errno, errno.ENAMETOOLONG)
        self.assertEqual(len(pack(Source(), name)), COUNT)
        shutil.rmtree(name)

    def test_a_worker_that_dies(self):
        pathlib.Path("died/before").touch()
        self.pack(Dies(bad=[22, 57]))
        want = self.content()
        self.new()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            pack(Dies(bad=[22, 57]), schema="x:i32[300],label:i64", on_error="quarantine")
        self.assertRegex(str(told[0].message), "they are done once more")
        self.assertEqual(list(self.lines()), [22, 57])
        self.assertEqual(self.content(), want)
        self.check_sealed(more=["dataset.skipped"])

    def test_what_a_dead_process_left_is_not_taken(self):
        """A sample that was bad once, and is good when its shard is made again."""
        os.makedirs(".ours.quarantine/4")
        pathlib.Path(".ours.quarantine/4/x.npy").touch()
        pathlib.Path(".ours.quarantine/00000.jsonl").write_text('{"sample": 4}\n')
        with mock.patch("libshard._quarantine.Quarantine.remove", lambda self: False):  # as if a call went on
            self.pack()
        self.assertEqual(list(self.lines()), BAD)
        self.assertNotIn("4/x.npy", self.content())
        self.assertEqual([n for n in os.listdir(KEPT) if n.endswith(".jsonl")], ["quarantine.jsonl"])

    def stop_at(self, place, **options):
        """A call that ends before shard ``place`` is made."""
        real = _workers._Shards.fill

        def fill(self, k, *args):
            if k == place:
                raise KeyboardInterrupt
            real(self, k, *args)

        with mock.patch.object(_workers._Shards, "fill", fill), self.assertRaises(KeyboardInterrupt):
            pack(Bad(), workers=0, **{"schema": "x:i32[300],label:i64", "on_error": "quarantine", **options})

    def test_a_call_that_goes_on(self):
        self.pack()
        want = self.content()
        for replace in (False, True):
            self.new()
            if replace:
                pack(rows(9), workers=0)
            self.stop_at(6, replace=replace)
            self.assertEqual(self.receipts(".ours.new" if replace else "ours"), set(range(6)))
            self.assertFalse(os.path.exists(KEPT))
            os.unlink("calls")
            self.pack(replace=replace)
            self.assertEqual(self.content(), want)
            # one sample of each shard that was taken over is compared
            self.assertEqual(sum(calls()[i] for i in range(60)), 6)
            self.check_sealed(more=["dataset.skipped"])

    def test_a_call_that_goes_on_after_something_was_lost(self):
        self.pack()
        want = self.content()
        for lost in ("25/x.npy", "00002.jsonl", ""):
            self.new()
            self.stop_at(6)
            path = os.path.join(".ours.quarantine", lost)
            shutil.rmtree(path) if not lost else os.unlink(path)
            os.unlink("calls")
            self.pack()
            self.assertEqual(self.content(), want)
            self.assertEqual(calls()[21], 1)  # its shard was made again

    def test_a_kill_between_the_folder_and_the_dataset(self):
        self.pack()
        want = self.content()
        for replace in (False, True):
            self.new()
            if replace:
                pack(rows(9), workers=0)
            with mock.patch.object(_workers._Shards, "finish", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
                pack(Bad(), workers=0, schema="x:i32[300],label:i64", on_error="quarantine", replace=replace)
            self.assertEqual(self.content(), want)
            self.pack(replace=replace)
            self.assertEqual(self.content(), want)
            self.check_sealed(more=["dataset.skipped"])
            self.assertEqual([n for n in os.listdir(".") if n.startswith(".ours")], [])
        # another one that came in its place meanwhile is not taken for it
        self.new()
        with mock.patch.object(_workers._Shards, "finish", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            pack(Bad(), workers=0, schema="x:i32[300],label:i64", on_error="quarantine")
        pathlib.Path(KEPT, "quarantine.jsonl").write_text("{}\n")
        with self.assertRaisesRegex(libshard.ExistsError, "^ours.quarantine: holds"):
            pack(Bad(), schema="x:i32[300],label:i64", on_error="quarantine")

    def test_one_that_appears_meanwhile_is_left_alone(self):
        class Meanwhile(Bad):
            def __getitem__(self, i):
                if i == 99:
                    os.makedirs(KEPT + "/theirs")
                return super().__getitem__(i)

        Meanwhile.__qualname__ = "Bad"
        with self.assertRaisesRegex(libshard.ExistsError, "^ours.quarantine: holds samples that an earlier call left out"):
            pack(Meanwhile(), workers=0, schema="x:i32[300],label:i64", on_error="quarantine")
        self.assertEqual(os.listdir(KEPT), ["theirs"])
        os.rename(KEPT, "died/theirs")
        os.unlink("calls")
        self.pack()
        self.assertEqual(sum(calls().values()), 10)  # one sample of each shard is compared
        self.check_sealed(more=["dataset.skipped"])

    def test_the_next_call_has_another_on_error(self):
        self.pack()
        want, id_ = self.content(), libshard.open("ours").id
        # skip first: the shards with bad samples are made again, so that these are kept
        self.new()
        self.stop_at(6, on_error="skip")
        self.assertFalse(os.path.exists(".ours.quarantine"))
        self.pack()
        self.assertEqual(self.content(), want)
        # then skip, or a function: nothing is kept, and a warning says so
        for on_error in ("skip", lambda i, e: None):
            self.new()
            self.stop_at(6)
            with self.assertWarnsRegex(UserWarning, "an earlier call with on_error='quarantine' .*had kept was removed"):
                ds = pack(Bad(), workers=0, schema="x:i32[300],label:i64", on_error=on_error)
            self.assertEqual(ds.id, id_)
            self.check_gone()
        # With resume=False, a call removes what an earlier one kept, as it does with the shards.
        self.new()
        self.stop_at(6)
        pack(Source(), schema="x:i32[300],label:i64", resume=False)
        self.check_gone()

    def test_kills_at_random_moments(self):
        kills, seed = int(os.environ.get("KILLS", "4")), int(os.environ.get("SEED", time.time_ns() % 10**6))
        print(f"{kills} kills, seed {seed}", flush=True)
        rng = random.Random(seed)
        text = "warnings.simplefilter('ignore')\npack(Bad(seconds=0.004), schema='x:i32[300],label:i64', on_error='quarantine')"
        self.assertEqual(self.in_child(text).communicate(timeout=600)[1], "")
        want = self.content()
        done = 0
        while done < kills:
            self.new()
            while not os.path.exists("ours/dataset.manifest"):
                before = sum(calls().values())
                child = self.in_child(text)
                if done < kills:
                    most = before + rng.randrange(COUNT)
                    while sum(calls().values()) < most and child.poll() is None:
                        time.sleep(0.005)
                    child.kill()
                    done += 1
                _, said = child.communicate(timeout=600)
                self.assertIn(child.returncode, (0, -signal.SIGKILL), said)
            self.assertEqual(self.content(), want, f"seed {seed}")
            self.assertEqual([n for n in os.listdir(".") if n.startswith(".ours")], [])

    def test_the_disk_is_full(self):
        for workers in (0, 1):
            self.new()
            with data.files_of_at_most(1 << 17):
                with self.assertRaisesRegex(
                    libshard.StorageError, "^ours.quarantine: sample 57 cannot be kept there; complete shards stay.*: File too large"
                ) as caught:
                    pack(Large(), workers=workers, schema="x:i32[300],label:i64", on_error="quarantine")
                self.assertEqual(caught.exception.errno, errno.EFBIG)
            self.assertFalse(os.path.exists(KEPT))
            self.pack(Large(), workers=workers)
            self.assertEqual(list(self.lines()), [57])
            self.assertEqual(np.load(KEPT + "/57/x.npy").shape, (1 << 16,))

    def test_a_sample_that_raises_when_it_is_asked_for_an_item(self):
        for on_error in ("skip", "quarantine"):
            self.new()
            with self.assertWarnsRegex(UserWarning, "1 of 100 samples were left out, .* sample 57: ValueError: no picture"):
                ds = pack([Lazy(i) for i in range(COUNT)], workers=0, on_error=on_error)
            self.assertEqual(ds.column("x").tolist(), [i for i in range(COUNT) if i != 57])
        (line,) = self.lines().values()
        self.assertEqual(line["not_kept"], {"sample": "a value of type Lazy; ValueError: no picture"})

    def test_the_disk_has_no_room_for_lines(self):
        """Closing their file fails as well, and that is not what the caller gets."""
        for workers in (0, 1):
            self.new()
            with data.files_of_at_most(30_000):
                with self.assertRaisesRegex(libshard.StorageError, "^ours.quarantine: .*; complete shards stay.*: File too large") as caught:
                    pack(Long(), workers=workers, schema="x:i32[300],label:i64", on_error="quarantine")
                self.assertEqual(caught.exception.errno, errno.EFBIG)
            self.pack(Long(), workers=workers)
            self.assertEqual(list(self.lines()), [i for i in range(COUNT) if i % 10])


class Lazy(collections.abc.Mapping):
    """Makes its items when it is asked for them."""

    def __init__(self, i):
        self.i = i

    def __iter__(self):
        return iter(("x", "label"))

    def __len__(self):
        return 2

    def __getitem__(self, name):
        if self.i == 57 and name == "x":
            raise ValueError("no picture")
        return self.i


class Long(Source):
    def __getitem__(self, i):
        if i % 10:
            raise ValueError("x" * 3800)  # some lines are in the buffer of their file
        return super().__getitem__(i)


class NoItem(Source):
    error = KeyError("always the same")

    def __getitem__(self, i):
        if i % 2:
            raise self.error
        return super().__getitem__(i)


class Large(Source):
    def __getitem__(self, i):
        return {**super().__getitem__(i), **({"x": np.zeros(1 << 16, "i4")} if i == 57 else {})}


# ---- sources that cannot be divided ----


class Grows:
    """Of another length in each process."""

    def __init__(self):
        self.pid = os.getpid()

    def __len__(self):
        return 20 + (os.getpid() != self.pid)

    def __getitem__(self, i):
        return {"x": i}


class Short(Source):
    """Says that it has more samples than it has."""

    def __len__(self):
        return COUNT + 1

    def __getitem__(self, i):
        return {"x": range(COUNT)[i]}


class IterableDataset:
    def __iter__(self):
        yield {"x": 1}

    def __getitem__(self, i):
        raise NotImplementedError

    def __len__(self):
        return 5


class Opens:
    def __init__(self):
        self.file = open(__file__, "rb")  # noqa: SIM115

    def __len__(self):
        return 20

    def __getitem__(self, i):
        return {"x": i}


class Refused(Base):
    def check(self, source, said, kind=libshard.ArgumentError, **options):
        with self.assertRaisesRegex(kind, said):
            libshard.pack(source, options.pop("schema", None), "ours", **{"workers": 2, "shard_records": 5, **options})
        self.check_nothing()

    def test_sources(self):
        for source in (iter(rows(5)), (r for r in rows(5)), IterableDataset(), {1, 2}):
            for workers in (0, 2):
                self.check(source, "need a source with a length and an index, and a .* is read from its begin", workers=workers)
        self.check([{"x": np.zeros(3)}], "batched=True takes batches in turn", batched=True)
        self.check([], "the source has no samples")
        self.check([{"x": i} for i in range(3)], "workers=-1; must be 0", workers=-1)
        self.check([{"x": i} for i in range(3)], "workers='2'; must be a whole number", TypeError, workers="2")

    def test_what_cannot_be_pickled(self):
        class Inner(Source):
            pass

        self.check(Inner(), "the source, a Inner, cannot be pickled.*top of a file.*start_method='fork'.*workers=0")
        self.check(rows(5), r"key=<function .* cannot be pickled", key=lambda i, sample: str(i))
        source = Opens()
        with contextlib.closing(source.file):
            self.check(source, "the source, a Opens, cannot be pickled.*open files in __getitem__, not in __init__")
            self.check(source, r"attribute file is a _io.BufferedReader: forked workers would share its place in the file",
                       start_method="fork")  # fmt: skip
        source.file = io.BytesIO()
        self.assertEqual(len(libshard.pack(source, None, "ours", workers=2, start_method="fork", shard_records=5)), 20)

    def test_a_length_that_changes(self):
        self.check(Grows(), "the source has 21 samples in a worker, and 20 where it was given")
        with self.assertRaisesRegex(libshard.RecordError, "sample 100 of the source: IndexError"):
            pack(Short())

    def test_options(self):
        self.check(rows(5), "on_error='ignore'; must be one of 'fail', 'skip'", on_error="ignore")
        self.check(rows(5), r"must be a function f\(index, exception\)", TypeError, on_error=lambda e: None)
        self.check(rows(5), "start_method='forkserver'; must be one of 'spawn', 'fork'", start_method="forkserver")
        self.check(rows(5), "resume= needs workers=", workers=None, resume=False)
        self.check(rows(5), "start_method= needs workers=", workers=None, start_method="fork")

    def test_a_script_without_a_main_guard(self):
        text = "import libshard\nlibshard.pack([{'x': i} for i in range(20)], None, 'ours', workers=2, shard_records=5)\n"
        pathlib.Path("bare.py").write_text(text)
        done = subprocess.run([sys.executable, "bare.py"], capture_output=True, text=True, timeout=600)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("put what the script does under if __name__ == '__main__':", done.stderr)
        self.assertIn("ended with exit code 1 before it began", done.stderr.splitlines()[-1])
        self.check_nothing()


if __name__ == "__main__":
    unittest.main()
