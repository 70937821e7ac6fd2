# SPDX-License-Identifier: Apache-2.0
"""Loaders: what comes in which order, going on, whose memory it is, forks and signals."""

import collections
import contextlib
import copy
import gc
import importlib
import itertools
import mmap
import multiprocessing
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
import warnings
from unittest import mock

import data
import libshard
import numpy as np
from libshard._summary import summary_of

SIDE = 40
N = 103


def use_in_child(loader, batch, queue):
    said = []
    for call in (
        lambda: next(iter(loader)),
        lambda: batch["image"].tobytes(),
        lambda: batch["image"][0],
        lambda: memoryview(batch["image"]),
        lambda: batch["image"].__dlpack__(),
        lambda: loader.set_epoch(3),
    ):
        try:
            call()
            said.append("no exception")
        except libshard.ArgumentError as e:
            said.append(str(e))
    del batch
    loader.close()
    other = libshard.Loader(loader.dataset, 8, seed=1)
    said.append(sum(len(b["label"]) for b in other))
    queue.put(said)


@contextlib.contextmanager
def machine(listed, nodes, visible=None):
    """A machine whose driver lists a GPU, and has these nodes."""
    gpus = {"/proc/driver/nvidia/gpus/*": ["0000:65:00.0"] * listed}
    gpus["/dev/nvidia[0-9]*"] = [f"/dev/{name}" for name in nodes]
    kept = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    environ = kept | ({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})
    with (
        mock.patch("glob.glob", gpus.get),
        mock.patch("os.access", lambda path, mode: path.startswith("/dev/nvidia")),
        mock.patch.dict(os.environ, environ, clear=True),
    ):
        yield


class Loading(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not os.path.exists("set"):
            cls.want = data.pack_images("set", N, "--shard-records", "30")
            data.shardpack("raw", "set.bin", "--schema", f"image:u8[{SIDE},{SIDE},3],label:i64", "-o", "packed",
                           "--order", "source", "--shard-records", "30", "--compress", "lz4")  # fmt: skip
        cls.want = data.images(N, SIDE)
        cls.ds = libshard.open("set")

    def check(self, batch):
        index = np.asarray(batch.index)
        self.assertEqual(list(batch), ["image", "label", "index", "flags", "valid"])
        self.assertEqual(np.asarray(batch["image"]).tobytes(), self.want[index]["image"].tobytes())
        self.assertEqual(batch["label"].tolist(), self.want[index]["label"].tolist())
        return index.tolist()

    def filled(self, loader, wanted):
        """How many batches of 8 threads filled, once they are so many and had time for more."""
        end = time.monotonic() + 20
        while loader.stats()["filled_record_count"] < 8 * wanted and time.monotonic() < end:
            time.sleep(0.001)
        time.sleep(0.05)
        return loader.stats()["filled_record_count"] / 8


class Order(Loading):
    def test_each_record_once_an_epoch(self):
        for ds in (self.ds, libshard.open("packed")):
            for shuffle in (True, False, "global", "windows"):
                with libshard.Loader(ds, 8, shuffle=shuffle, seed=5) as loader:
                    orders = []
                    for epoch in range(3):
                        rows = []
                        for step, batch in enumerate(loader):
                            self.assertEqual((batch.epoch, batch.step, batch.position), (epoch, step, 8 * step))
                            self.assertEqual(batch.flags.tolist(), [0] * len(batch.index))
                            rows += self.check(batch)
                        self.assertEqual(step + 1, len(loader))
                        self.assertEqual(rows, loader.indices(epoch, 0, N).tolist())
                        self.assertEqual(sorted(rows), list(range(N)))
                        orders.append(rows)
                    self.assertEqual(orders[0] == orders[1], shuffle is False)
                    self.assertEqual(orders[0] == list(range(N)), shuffle is False)

    def test_tails(self):
        for options, steps, last in (
            ({}, 13, 7),
            ({"drop_last": False}, 13, 7),
            ({"drop_last": True}, 12, 8),
            ({"tail": "drop"}, 12, 8),
            ({"tail": "keep"}, 13, 7),
            ({"tail": "pad"}, 13, 8),
        ):
            with libshard.Loader(self.ds, 8, **options) as loader:
                batches = [(len(b.index), b.flags.tolist()) for b in loader]
                self.assertEqual((len(loader), len(batches), batches[-1][0]), (steps, steps, last))
                padded = options.get("tail") == "pad"
                self.assertEqual(batches[-1][1], [0] * 7 + [libshard.PADDED] if padded else [0] * last)
        with self.assertRaisesRegex(libshard.ArgumentError, "give one of them"):
            libshard.Loader(self.ds, 8, tail="pad", drop_last=True)
        with self.assertRaisesRegex(libshard.ArgumentError, "tail='x'; must be one of 'drop', 'pad', 'keep'"):
            libshard.Loader(self.ds, 8, tail="x")

    def test_ranks_share_an_epoch(self):
        for world in (2, 3):
            count = collections.Counter()
            for rank in range(world):
                with libshard.Loader(self.ds, 8, seed=2, rank=rank, world=world) as loader:
                    self.assertEqual(len(loader), N // (8 * world))
                    for batch in loader:
                        count.update(self.check(batch))
            self.assertEqual(set(count.values()), {1})
            self.assertEqual(len(count), N // (8 * world) * 8 * world)

    def environment(self, **variables):
        return mock.patch.dict(os.environ, variables)

    def test_a_share_that_would_be_a_guess_is_refused(self):
        for variables, words in (
            ({"WORLD_SIZE": "2"}, "the environment has WORLD_SIZE=2 and no RANK"),
            # As Lightning starts the processes behind the first.
            (
                {"WORLD_SIZE": "2", "LOCAL_RANK": "1", "NODE_RANK": "0", "MASTER_PORT": "1"},
                "the environment has WORLD_SIZE=2, LOCAL_RANK=1 and no RANK.*give the loader rank= and world=",
            ),
            ({"LOCAL_RANK": "1"}, "LOCAL_RANK=1 and no RANK"),
            ({"RANK": "0"}, "RANK=0 and no WORLD_SIZE"),
            ({"OMPI_COMM_WORLD_SIZE": "2"}, "OMPI_COMM_WORLD_SIZE=2, so this is one of several"),
            ({"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3"}, "SLURM_STEP_NUM_TASKS=4"),
        ):
            with self.subTest(variables), self.environment(**variables):
                with self.assertRaisesRegex(libshard.ArgumentError, words):
                    libshard.Loader(self.ds, 8)
                with libshard.Loader(self.ds, 8, rank=1, world=2) as loader:
                    self.assertEqual((loader.rank, loader.world, len(list(b.step for b in loader))), (1, 2, 6))
        with self.environment(LOCAL_RANK="1"), mock.patch.dict(sys.modules, lightning=mock.Mock()):
            with self.assertRaisesRegex(libshard.ArgumentError, "with Lightning in train_dataloader"):
                libshard.Loader(self.ds, 8)
        for variables in ({"WORLD_SIZE": "1"}, {"WORLD_SIZE": "1", "LOCAL_RANK": "0"}, {"PMI_SIZE": "1"}, {}):
            with self.environment(**variables), libshard.Loader(self.ds, 8) as loader:
                self.assertEqual((loader.rank, loader.world), (0, 1))

    def test_a_share_that_changed_ends_the_next_loop(self):
        with libshard.Loader(self.ds, 8) as loader, libshard.Loader(self.ds, 8, rank=0, world=1) as given:
            next(iter(loader))
            with self.environment(RANK="1", WORLD_SIZE="2"):
                with self.assertRaisesRegex(
                    libshard.ArgumentError, "made for rank 0 of 1, but this is rank 1 of 2 now"
                ):
                    iter(loader)
                self.assertEqual(sum(len(b["label"]) for b in given), N)
            next(iter(loader))

    def test_validation_leaves_no_record_out(self):
        for shuffle in (False, "sequential"):
            with self.assertWarnsRegex(UserWarning, r"25 rows of .* repeats.*batch\['valid'\] is False") as said:
                loaders = [libshard.Loader(self.ds, 64, shuffle=shuffle, rank=r, world=2) for r in range(2)]
            self.assertEqual(said.filename, __file__)
            seen = [i for l in loaders for b in l for i, f in zip(b.index.tolist(), b.flags.tolist()) if not f]
            self.assertEqual(sorted(seen), list(range(N)))
        for options in ({"tail": "pad"}, {"drop_last": True}):
            libshard.Loader(self.ds, 16, shuffle=False, rank=0, world=2, **options)  # said, so no warning
        self.assertEqual(len(libshard.Loader(self.ds, 8, rank=0, world=2)), 6)  # shuffled: others are left out next

    def run_as(self, module, loop, owner=None):
        """Loop in a method of the owner, in a module with that name."""
        scope = {"__name__": module}
        exec("def run(self, loop):\n    return loop()", scope)
        return scope["run"](owner, loop)

    def test_who_shares_out_a_share_is_refused(self):
        def count(**options):
            with libshard.Loader(self.ds, 8, **options) as loader:
                return sum(len(b["label"]) for b in loader)

        share = {"rank": 0, "world": 2}
        with self.assertRaisesRegex(libshard.ArgumentError, "accelerate shares out.*one share of 2 already"):
            self.run_as("accelerate.data_loader", lambda: count(**share))
        self.assertEqual(self.run_as("accelerate.data_loader", count), N)
        self.assertEqual(self.run_as("accelerate.other", lambda: count(**share)), 48)

    def test_a_trainer_that_wants_the_same_batches_again(self):
        for package in ("lightning.pytorch.loops.fit_loop", "pytorch_lightning.loops.fit_loop"):
            for wanted in (0, 0.0, 1, 0.1):
                owner = mock.Mock(trainer=mock.Mock(overfit_batches=wanted))
                for shuffle in (True, False):
                    with libshard.Loader(self.ds, 8, shuffle=shuffle) as loader:
                        begin = lambda: self.run_as(package, lambda: next(iter(loader)), owner)  # noqa: B023, E731
                        if wanted and shuffle:
                            with self.assertRaisesRegex(libshard.ArgumentError, "overfit_batches=.*shuffle=False"):
                                begin()
                        else:
                            first = self.check(begin())
                            self.assertEqual(self.check(begin()) == first, not shuffle)

    def test_rank_and_world_of_jax(self):
        """Only if it was told of other processes: to ask it otherwise would start it."""
        jax = mock.Mock(process_index=lambda: 1, process_count=lambda: 2)
        with mock.patch.dict(sys.modules, jax=jax):
            for there in (True, False):
                jax.distributed.is_initialized = lambda: there  # noqa: B023
                with libshard.Loader(self.ds, 8) as loader:
                    self.assertEqual((loader.rank, loader.world), (1, 2) if there else (0, 1))
            with self.assertRaisesRegex(libshard.ArgumentError, "made for rank 0 of 1, but this is rank 1 of 2"):
                jax.distributed.is_initialized = lambda: True
                iter(loader)

    def test_rank_and_world_as_torchrun_sets_them(self):
        try:
            os.environ.update(RANK="1", WORLD_SIZE="2")
            with libshard.Loader(self.ds, 8) as loader:
                self.assertEqual((loader.world, len(loader)), (2, 6))
            with libshard.Loader(self.ds, 8, rank=0, world=1) as loader:
                self.assertEqual((loader.world, len(loader)), (1, 13))
            for said in ("two", " 2", "+2", "1_0", "0x2", "2.0", "-1"):
                os.environ["WORLD_SIZE"] = said
                with self.assertRaisesRegex(
                    libshard.ArgumentError, re.escape(f"WORLD_SIZE={said!r}, which is not a whole number")
                ):
                    libshard.Loader(self.ds, 8)
            os.environ["WORLD_SIZE"] = "1"
            with self.assertRaisesRegex(libshard.ArgumentError, "rank"):
                libshard.Loader(self.ds, 8)
        finally:
            del os.environ["RANK"], os.environ["WORLD_SIZE"]

    def test_loops_that_end_early_and_epochs_that_are_set(self):
        with libshard.Loader(self.ds, 8) as loader:
            for batch in loader:
                break
            self.assertEqual([b.epoch for b in loader], [1] * 13)
            self.assertEqual(loader.epoch, 2)
            for _, batch in zip(range(13), loader):  # which never asks for the end
                pass
            self.assertEqual([b.epoch for b in loader], [3] * 13)
            loader.set_epoch(7)
            for batch in loader:
                self.assertEqual((batch.epoch, batch.step), (7, 0))
                break
            loader.set_epoch(7)
            self.assertEqual([(b.epoch, b.step) for b in loader][0], (7, 0))

    def test_a_state_from_before_records_were_appended(self):
        data.pack_images("grown", 40, "--shard-records", "15")
        data.pack_images("more", 63, "--shard-records", "30")
        loader = libshard.Loader("grown", 7, seed=3, threads=2)
        rest = []
        for batch in loader:
            if batch.step < 2:
                state = loader.state_dict()
            else:
                rest += batch.index.tolist()
        data.shardpack("append", "grown", "more", "--duplicates", "keep")
        with self.assertRaisesRegex(libshard.MismatchError, "open the loader with resume_appended"):
            libshard.Loader("grown", 7, seed=3).load_state_dict(state)
        other = libshard.Loader("grown", 5, seed=3, resume_appended=True)
        other.load_state_dict(state)
        self.assertEqual([i for batch in other for i in batch.index.tolist()], rest)
        self.assertEqual(other.epoch, 1)
        self.assertEqual(sorted(i for batch in other for i in batch.index.tolist()), list(range(103)))

    def test_the_epoch_that_a_state_is_in_may_be_set_again(self):
        """Frameworks do so at the start of each epoch, also of one that is resumed."""
        with libshard.Loader(self.ds, 8) as loader:
            loader.set_epoch(1)
            for batch in loader:
                if batch.step == 4:
                    state = loader.state_dict()
            for epoch, first in ((1, 5), (2, 0)):
                loader.load_state_dict(state)
                loader.set_epoch(epoch)
                loader.set_epoch(epoch)
                self.assertEqual([(b.epoch, b.step) for b in loader], [(epoch, s) for s in range(first, 13)])

    def test_a_state_and_an_epoch_before_it(self):
        """As after ``{"epoch": epoch, "loader": loader.state_dict()}`` behind the last step."""
        with libshard.Loader(self.ds, 8) as loader:
            states = [loader.state_dict() for _ in loader]  # behind each step of epoch 0
            for state, words in (
                (states[-1], r"set_epoch\(0\) right after .* a state that begins epoch 1: epoch 0 comes again"),
                (loader.state_dict(), "begins epoch 1"),
            ):
                loader.load_state_dict(state)
                with self.assertWarnsRegex(UserWarning, words):
                    loader.set_epoch(0)
                self.assertEqual([(b.epoch, b.step) for b in loader], [(0, s) for s in range(13)])
            loader.set_epoch(2)
            state = [loader.state_dict() for _ in loader][3]
            loader.load_state_dict(state)
            with self.assertWarnsRegex(UserWarning, "a state that is in the middle of epoch 2: epoch 1 comes again"):
                loader.set_epoch(1)
            loader.load_state_dict(states[-1])
            came = []
            for epoch in range(loader.epoch, 3):  # the right way, which the page shows
                loader.set_epoch(epoch)
                came += [(b.epoch, b.step) for b in loader]
            self.assertEqual(came, [(e, s) for e in (1, 2) for s in range(13)])
            loader.set_epoch(0)  # no state was loaded just before

    def test_one_meaning_of_a_loop_that_was_left(self):
        """State, epoch and next loop agree, whatever became of the loop."""

        def broken(loader):
            for batch in loader:
                if batch.step == 2:
                    break

        def raised(loader):
            with self.assertRaises(KeyError):
                for batch in loader:
                    if batch.step == 2:
                        raise KeyError

        def until_the_last(loader):
            for _, batch in zip(range(13), loader):  # which never asks for the end
                del batch

        def held(loader):
            loop = iter(loader)
            for _ in range(3):
                next(loop)
            return loop

        def inside(loader):
            for batch in loader:
                if batch.step == 2:
                    return loader.state_dict()

        for story, leave, place, warns in (
            ("break", broken, (1, 0), "step 3 of 13, so this state begins epoch 1; call state_dict"),
            ("islice", lambda l: [b.step for b in itertools.islice(l, 3)], (1, 0), "step 3 of 13"),
            ("an exception", raised, (1, 0), "left after step 3 of 13"),
            ("a look at one batch", lambda l: next(iter(l)).step, (1, 0), "left after step 1 of 13"),
            ("all batches, and the end was not asked for", until_the_last, (1, 0), None),
            ("the end", lambda l: [b.step for b in l], (1, 0), None),
            ("a loop that is held", held, (0, 3), None),
            ("no batch was asked for", lambda l: iter(l) and None, (0, 0), None),
        ):
            for copy in (False, True):  # which has a map around the loop
                with self.subTest(story, copy=copy):
                    loader = libshard.Loader(self.ds, 8, seed=3, copy=copy)
                    loop = leave(loader)
                    if warns:
                        with self.assertWarnsRegex(UserWarning, warns):
                            state = loader.state_dict()
                    else:
                        state = loader.state_dict()
                    self.assertEqual(loader.epoch, place[0])
                    again = libshard.Loader(self.ds, 8, seed=3)
                    again.load_state_dict(state)
                    batch = next(iter(again))
                    self.assertEqual((batch.epoch, batch.step), place)
                    self.assertEqual(len(again), 13)  # of a whole epoch, as before
                    ours = next(loop if place == (0, 3) else iter(loader))
                    self.assertEqual(ours.index.tolist(), batch.index.tolist())
                    del loop
        loader = libshard.Loader(self.ds, 8, seed=3)
        state = inside(loader)  # taken inside, and then the loop was left
        loader.load_state_dict(state)
        loader.state_dict()  # a place was given since: nothing to warn of
        batch = next(iter(loader))
        self.assertEqual((batch.epoch, batch.step), (0, 3))

    def test_a_look_at_a_batch_after_a_resume_is_said(self):
        with libshard.Loader(self.ds, 8) as loader:
            state = [loader.state_dict() for _ in loader][2]
            loader.load_state_dict(state)
            next(iter(loader))
            lost = "after one batch, so the next loop begins epoch 1, and the other 9 batches of epoch 0 do not"
            with self.assertWarnsRegex(UserWarning, lost):
                self.assertEqual([(b.epoch, b.step) for b in loader][0], (1, 0))
            loader.load_state_dict(state)
            next(iter(loader))
            again = r"after one batch, so set_epoch\(0\) begins that epoch again, with the 4 batches"
            with self.assertWarnsRegex(UserWarning, again):
                loader.set_epoch(0)
            self.assertEqual([(b.epoch, b.step) for b in loader][0], (0, 0))
            loader.load_state_dict(state)
            list(b.step for b in itertools.islice(loader, 2))  # a short epoch is no look
            self.assertEqual(next(iter(loader)).epoch, 1)
            next(iter(loader))  # fresh epochs have nothing to lose
            self.assertEqual(next(iter(loader)).epoch, 3)

    def test_remedies_can_be_taken(self):
        """What a message says to type instead is not refused."""
        crop = lambda kind: {"transform": libshard.Transform(crop=kind, size=99)}  # noqa: E731
        two, many = {"rank": 0, "world": 2}, {"rank": 0, "world": 104}
        for refused, words, instead in (
            ({"batch_size": 104, "tail": "drop"}, "at most 103, tail='pad', or tail='keep'$",
             ({"batch_size": 103}, {"batch_size": 104, "tail": "pad"}, {"batch_size": 104, "tail": "keep"})),
            ({"batch_size": 60, **two}, "at most 51, or tail='pad'$",
             ({"batch_size": 51, **two}, {"batch_size": 60, "tail": "pad", **two})),
            (many, "use tail='pad', or at most 103 ranks$", ({"tail": "pad", **many}, {"rank": 0, "world": 103})),
            ({"tail": "keep", **two}, "say tail='pad' or tail='drop' instead$",
             ({"tail": "pad", **two}, {"tail": "drop", **two})),
            ({"drop_last": False, **two}, "say tail='pad' or tail='drop' instead$", ({"tail": "drop", **two},)),
            (crop("center"), "ask for less, or for crop='random-resized'$", (crop("random-resized"),)),
            ({"shuffle": "global", "lanes": 3}, "need shuffle='windows'", ({"shuffle": "windows", "lanes": 3},)),
            ({"corrupt_most": 0}, "must be 1 or more, or None", ({"corrupt_most": 1}, {"corrupt_most": None})),
        ):  # fmt: skip
            with self.subTest(refused):
                with self.assertRaisesRegex(libshard.ArgumentError, words):
                    libshard.Loader(self.ds, **({"batch_size": 1} | refused))
                for options in instead:
                    libshard.Loader(self.ds, **({"batch_size": 1} | options)).close()

    def test_epochs_that_are_none(self):
        with libshard.Loader(self.ds, 8) as loader:
            for epoch in (-1, 2**64):
                for call in (lambda: loader.set_epoch(epoch), lambda: loader.indices(epoch, 0, 1)):  # noqa: B023
                    with self.assertRaisesRegex(libshard.ArgumentError, f"epoch={epoch}; must be 0 to"):
                        call()
            with self.assertRaisesRegex(TypeError, "epoch='3'; must be a whole number"):
                loader.set_epoch("3")
            loader.set_epoch(np.int64(3))
            self.assertEqual(loader.epoch, 3)

    def test_only_the_last_loop_goes_on(self):
        over = self.assertRaisesRegex(libshard.ArgumentError, "this loop is over: another one began, or set_epoch")
        with libshard.Loader(self.ds, 8) as loader:
            first = iter(loader)
            self.assertEqual(next(first).epoch, 0)
            second = iter(loader)
            self.assertEqual((next(second).epoch, loader.epoch), (1, 1))
            with over:
                next(first)
            self.assertEqual((b := next(second)).step, 1, b)
            state = loader.state_dict()
            for place in (lambda: loader.set_epoch(4), lambda: loader.load_state_dict(state)):
                started = iter(loader)
                next(started)
                place()
                with over:
                    next(started)
            waiting = iter(loader)  # has had no batch: it begins where the loader stands then
            loader.set_epoch(6)
            self.assertEqual(next(waiting).epoch, 6)
            with over:
                for _ in zip(loader, loader):
                    pass
            loader.load_state_dict(state)
            waiting = [iter(loader) for _ in range(3)]  # as frameworks do; the first that goes on has the place
            self.assertEqual((next(waiting[1]).step, loader.epoch), (2, 1))
            for late in (waiting[0], waiting[2]):
                with over:
                    next(late)
            self.assertEqual(next(waiting[1]).step, 3)
            ended = iter(loader)
            self.assertEqual(len([b.step for b in ended]), 13)
            next(iter(loader))
            self.assertIsNone(next(ended, None))

    def test_a_function_that_ends_an_iterator_of_its_own_does_not_end_the_epoch(self):
        """A map that raises StopIteration ends a loop, as if the dataset had no more batches."""
        for function in (lambda batch: next(iter(())), lambda batch: batch if batch.step < 1 else next(iter(()))):
            loader = libshard.Loader(self.ds, 30, transform=function)
            with self.assertRaisesRegex(RuntimeError, "given as transform raised StopIteration"):
                list(loader)
        loader = libshard.Loader(self.ds, 30, transform=lambda batch: next(iter(()), batch))
        self.assertEqual(sum(1 for _ in loader), len(loader))

    def test_the_time_of_a_function_is_told(self):
        clock = [0]  # what a loop of two batches has seen of the time
        loader = libshard.Loader(self.ds, 52, transform=lambda batch: clock.__setitem__(0, clock[0] + 10) or batch)
        with mock.patch.object(importlib.import_module("libshard._loader"), "time", mock.Mock()) as time_:
            time_.perf_counter_ns = lambda: clock[0]
            self.assertEqual([batch.step for batch in loader], [0, 1])
        self.assertEqual(loader.stats()["function_ns"], 20)
        self.assertEqual(libshard.Loader(self.ds, 52).stats()["function_ns"], 0)
        self.assertIn("; transform function ", loader.summary())

    def test_lines_of_a_summary(self):
        """Each is whole.  A row names the counters that differ from those of a fast loader."""
        second, trainer = 10**9, "the trainer is the slower side"
        loader = libshard.Loader(self.ds, 52)
        fast = dict.fromkeys(loader.stats(), 0) | {
            "batch_count": 4000, "record_count": 823000, "bytes": 124 * 10**9, "elapsed_ns": 10 * second,
            "next_wait_ns": second // 40, "next_wait_count": 12, "thread_count": 4, "fill_ns": 164 * second // 10,
            "fill_cpu_ns": 16 * second, "slot_wait_ns": 236 * second // 10, "filled_bytes": 1000, "mapped_bytes": 1000,
        }  # fmt: skip
        slow = {"next_wait_ns": 9 * second, "slot_wait_ns": 0, "fill_ns": 50 * second}
        numbers = "12.4 GB/s, 82,300 records/s; "
        next_, mapped = "next waited 0.3 % (12 of 4,000 times); ", "; mapped 100 %"
        threads = "threads filled 41 % (on a CPU 40 %), waited for slots 59 %"
        waited = "next waited 90 % (12 of 4,000 times); "
        filling = "threads filled 100 % (on a CPU 40 %), waited for slots 0.0 %"
        waits = "the loader is the slower side, its threads wait for "
        for changes, want in (
            ({}, f"{numbers}{next_}{threads}{mapped}: {trainer}"),
            ({"batch_count": 0}, "no batch was taken"),
            ({"elapsed_ns": 0}, "no batch was taken"),
            ({"function_ns": second // 20}, f"{numbers}transform function 0.5 %; {next_}{threads}{mapped}: {trainer}"),
            ({"function_ns": 8 * second},
             f"{numbers}transform function 80 %; {next_}{threads}{mapped}: {trainer}, "
             "and 80 % of the time is its transform function's"),
            ({"next_wait_ns": second, "next_wait_count": 1, "function_ns": second},
             f"{numbers}transform function 10 %; next waited 10 % (1 of 4,000 times); {threads}{mapped}: {trainer} "
             "since the first batch, and 10 % of the time is its transform function's"),
            ({"next_wait_ns": second, "function_ns": second},
             f"{numbers}transform function 10 %; next waited 10 % (12 of 4,000 times); {threads}{mapped}: "
             "each side waits for the other at times: add slots"),
            ({"thread_count": 0, "function_ns": 8 * second},
             f"{numbers}transform function 80 %; {next_}mapped 100 %: no thread could be started: "
             "the thread that takes batches fills them itself"),
            (slow | {"fill_cpu_ns": 40 * second},
             f"{numbers}{waited}threads filled 100 % (on a CPU 100 %), waited for slots 0.0 %{mapped}: "
             "the loader is the slower side, its threads are busy computing: add threads"),
            (slow, f"{numbers}{waited}{filling}{mapped}: {waits}page faults or for a CPU"),
            (slow | {"mapped_bytes": 20, "direct_bytes": 980, "has_uring": True},
             f"{numbers}{waited}{filling}; mapped 2.0 %, direct 98 %: {waits}the disk"),
            (slow | {"mapped_bytes": 0, "direct_bytes": 667, "pread_bytes": 333},
             f"{numbers}{waited}{filling}; direct 67 %, pread 33 % without io_uring: {waits}the disk"),
            ({"decoded_chunk_count": 1200, "unfinished_chunk_count": 119},
             f"{numbers}{next_}{threads}{mapped}; decoded 1,200 chunks: {trainer}"),
            ({"decoded_chunk_count": 1},
             f"{numbers}{next_}{threads}{mapped}; decoded 1 chunk: {trainer}"),
            ({"decoded_chunk_count": 1200, "unfinished_chunk_count": 120},
             f"{numbers}{next_}{threads}{mapped}; decoded 1,200 chunks (120 were evicted before they were used up; "
             f"raise stage_bytes): {trainer}"),
            ({"checked_unit_count": 25600, "substituted_count": 1000, "masked_count": 2},
             f"{numbers}{next_}{threads}{mapped}; hashed 25,600 units; damage: rows substituted 1,000, masked 2: "
             f"{trainer}"),
            ({"checked_unit_count": 1, "masked_count": 1},
             f"{numbers}{next_}{threads}{mapped}; hashed 1 unit; damage: rows masked 1: {trainer}"),
            ({"device_checked_count": 25600, "check_wait_count": 12, "recopied_count": 1},
             f"{numbers}{next_}{threads}{mapped}; the GPU hashed 25,600 units (next waited for that 12 times); "
             f"1 row arrived damaged and went to the GPU again: {trainer}"),
            ({"device_checked_count": 1, "check_wait_count": 1},
             f"{numbers}{next_}{threads}{mapped}; the GPU hashed 1 unit (next waited for that 1 time): {trainer}"),
            ({"device_bytes": 10**9, "pageable_bytes": 25 * 10**7, "device_wait_ns": 4 * second},
             f"{numbers}{next_}{threads}{mapped}; to the GPU 100 MB/s (pageable 25 %), waited for it 40 %: {trainer}"),
            ({"device_bytes": 10**9, "cached_bytes": 75 * 10**7, "pageable_bytes": 10**7},
             f"{numbers}{next_}{threads}{mapped}; to the GPU 100 MB/s (out of the page cache 75 %, pageable 1.0 %), "
             f"waited for it 0.0 %: {trainer}"),
            ({"bytes": 3000, "record_count": 30},
             f"300 B/s, 3.00 records/s; {next_}{threads}{mapped}: {trainer}"),
            ({"bytes": 9999600, "record_count": 725},
             f"1,000 kB/s, 72.5 records/s; {next_}{threads}{mapped}: {trainer}"),
        ):  # fmt: skip
            stats = fast | changes
            core = mock.Mock()
            core.stats.return_value = stats
            with (
                self.subTest(changes),
                mock.patch.multiple(loader, _core=core, _function_ns=stats["function_ns"]),
                machine(False, ()),
            ):
                self.assertEqual(loader.summary(), want)

    def test_a_summary_of_functions_that_work_ahead(self):
        stats = dict.fromkeys(libshard.Loader(self.ds, 52).stats(), 0) | {
            "batch_count": 4, "record_count": 4, "bytes": 4, "elapsed_ns": 1000, "thread_count": 1, "slot_wait_ns": 900,
            "function_ns": 900,
        }  # fmt: skip
        for waited, words in (
            (30, "transform function 90 % ahead of the loop, which waited for it 3.0 %.*the trainer is the slower side$"),
            (800, "90 % ahead of the loop, which waited for it 80 %.*, and 80 % of the time is its transform function's$"),
            (900, "transform function 90 %; .*, and 90 % of the time is its transform function's$"),
        ):
            self.assertRegex(summary_of(stats | {"function_wait_ns": waited}), words)

    def test_metrics(self):
        """Rates are of the time between two calls; a clock of the test's own says how long that was."""
        loader = libshard.Loader(self.ds, 52)
        zero = dict.fromkeys(loader.stats(), 0) | {"thread_count": 4}
        first = zero | {"batch_count": 10, "record_count": 520, "bytes": 4000, "elapsed_ns": 2 * 10**9,
                        "next_wait_ns": 10**9, "fill_ns": 4 * 10**9, "slot_wait_ns": 2 * 10**9, "masked_count": 3}  # fmt: skip
        second = first | {"batch_count": 11, "elapsed_ns": 4 * 10**9, "fill_ns": 90 * 10**9, "substituted_count": 2}
        told = []
        with mock.patch.object(loader, "stats", side_effect=[zero, first, second, second]):
            told = [loader.metrics() for _ in range(4)]
        nothing = dict.fromkeys(told[0], 0.0)
        self.assertEqual(told[0], nothing)
        self.assertEqual(told[1], nothing | {
            "batches_per_second": 5.0, "records_per_second": 260.0, "bytes_per_second": 2000.0, "wait_fraction": 0.5,
            "threads_fill_fraction": 0.5, "threads_wait_fraction": 0.25, "damaged_rows": 3.0})  # fmt: skip
        self.assertEqual(told[2], nothing | {"batches_per_second": 0.5, "threads_fill_fraction": 1.0, "damaged_rows": 5.0})
        self.assertEqual(told[3], nothing | {"damaged_rows": 5.0})
        with libshard.Loader(self.ds, 52) as real:
            for _ in real:
                pass
            self.assertGreater(real.metrics()["records_per_second"], 0)
            self.assertTrue(all(isinstance(v, float) for v in real.metrics().values()))

    def test_prometheus(self):
        with libshard.Loader(self.ds, 52) as loader:
            for _ in loader:
                pass
            text = loader.prometheus(loader='tr"a\\in\n', rank="0")
            self.assertIn('libshard_records_total{loader="tr\\"a\\\\in\\n",rank="0"} 103\n', text)
            plain = loader.prometheus()
        line = re.compile(r"# (HELP|TYPE) libshard_[a-z_]+_total .*|libshard_[a-z_]+_total(\{.*\})? \d+(\.\d+)?")
        for said in (text, plain):
            self.assertTrue(said.endswith("\n"))
            for one in said.splitlines():
                self.assertTrue(line.fullmatch(one), one)
        self.assertIn("libshard_batches_total 2\n", plain)
        for wrong, kind in (({"a-b": "x"}, libshard.ArgumentError), ({"__name__": "x"}, libshard.ArgumentError), ({"a": 3}, TypeError)):
            with self.assertRaises(kind):
                loader.prometheus(**wrong)

    def test_a_summary_says_what_a_gpu_in_the_machine_would_gain(self):
        """CUDA is not asked: once it has started, it does not work in forked children."""
        words = "slower side.*\\. This machine has a GPU, and .* not page-locked: say device='cuda' or pin_memory=True "
        own = mmap.mmap(-1, 2 << 20)
        for says, listed, nodes, visible, options in (
            (True, True, {"nvidia0"}, None, {}),
            (True, True, {"nvidia3", "nvidia7"}, "3,7", {}),
            (True, True, {"nvidia0"}, "GPU-1f2e", {"copy": True}),
            (False, False, {"nvidia0"}, None, {}),  # a node that was left behind
            (False, True, set(), None, {}),  # a container that has none of the host's GPUs
            (False, True, {"nvidia0"}, "", {}),
            (False, True, {"nvidia0"}, "-1", {}),
            (False, True, {"nvidia0"}, "NoDevFiles", {}),
            (False, True, {"nvidia0"}, None, {"memory": own}),  # it may be page-locked
            (False, True, {"nvidia0"}, None, {"pin_memory": True}),  # that has said why it is not
        ):
            with self.subTest(listed=listed, nodes=nodes, visible=visible, options=options):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    loader = libshard.Loader(self.ds, 52, **options)
                    with machine(listed, nodes, visible):
                        self.assertEqual(loader.summary(), "no batch was taken")
                        for batch in loader:
                            del batch
                        (self.assertRegex if says else self.assertNotRegex)(loader.summary(), words)
                loader.close()
        if os.path.exists("/proc/self/maps"):
            with machine(True, {"nvidia0"}), libshard.Loader(self.ds, 52) as loader, open("/proc/self/maps") as maps:
                next(iter(loader))
                self.assertRegex(loader.summary(), words)
                self.assertNotIn("libcuda", maps.read())

    def test_options_of_other_loaders(self):
        """Each is refused with what is here instead, in the name of a public class."""

        class Mine(libshard.Loader):
            pass

        for cls in (libshard.Loader, Mine):
            for option, words in (
                ("num_workers", "a loader has no worker processes; threads=4 are"),
                ("pin_memory_device", "device='cuda:1' copies batches"),
                ("collate_fn", "transform=f calls f with each batch"),
                ("sampler", "ds.where.*ShardDataset in a DataLoader"),
                ("batch_sampler", "ds.where.*ShardDataset in a DataLoader"),
                ("prefetch_factor", "prefetch=2 prepares 2 batches"),
                ("persistent_workers", "a loader's threads live as long"),
                ("worker_init_fn", "a loader has no worker processes, and seed="),
                ("multiprocessing_context", "a loader has no worker processes"),
                ("generator", "seed= decides the order"),
                ("weights", "a record comes once in an epoch.*balanced.*mix.*where"),
                ("sample_weights", "a record comes once in an epoch"),
                ("replacement", "a record comes once in an epoch"),
                ("timeout", "a loop waits until a batch is there"),
                ("workers", "a loader has no worker processes"),
                ("num_shards", "world="),
                ("shard_id", "rank="),
                ("batch", "batch_size="),
                ("order", "shuffle="),
                ("buffer_size", "shuffle=True has no buffer"),
                ("drop_remainder", "drop_last=True"),
                ("epoch", r"loader.set_epoch\("),
                ("resume", r"loader.load_state_dict\("),
                ("shufle", "did you mean shuffle="),
                ("anything", "there are fields, .*, window_edge$"),
            ):
                with self.assertRaisesRegex(TypeError, f"^libshard.Loader has no option {option}=[:;] {words}"):
                    cls(self.ds, 8, **{option: None})
        for option in ("batch_size", "seed", "max_steps", "epochs", "transform_ahead", "threads"):
            with self.assertRaisesRegex(TypeError, f"^{option}=True; must be a whole number"):
                libshard.Loader(**{"dataset": self.ds, "batch_size": 8, option: True})
        with self.assertRaisesRegex(TypeError, r"^libshard.Loader: give it batch_size; it takes dataset, batch_size"):
            libshard.Loader(self.ds)

    def test_from_a_path_and_its_repr(self):
        with libshard.Loader("set", 8) as loader:
            self.assertEqual(repr(loader), "<libshard.Loader of 'set': 13 batches of 8 an epoch, windows order>")
            self.assertEqual(loader.order["kind"], "windows")
            self.assertEqual(loader.order["record_count"], N)
        self.assertEqual(repr(loader), "<libshard.Loader of 'set': closed>")


class GoingOn(Loading):
    def test_at_every_step_under_any_batch_size_and_world(self):
        with libshard.Loader(self.ds, 8, seed=3) as loader:
            states, rows = [], []
            for _ in range(2):
                states.append((loader.state_dict(), len(rows)))
                for batch in loader:
                    rows += self.check(batch)
                    states.append((loader.state_dict(), len(rows)))
        for state, done in states[:-1]:
            with libshard.Loader(self.ds, 5, seed=3, threads=1) as other:
                other.load_state_dict(pickle.loads(pickle.dumps(state)))
                went_on = []
                while len(went_on) + done < len(rows):
                    for batch in other:
                        went_on += self.check(batch)
                self.assertEqual(rows[done:], went_on[: len(rows) - done])
        state, done = states[4]
        count = collections.Counter(rows[:done])
        for rank in range(3):
            with libshard.Loader(self.ds, 2, seed=3, rank=rank, world=3) as other:
                other.load_state_dict(state)
                for batch in other:
                    count.update(self.check(batch))
        self.assertEqual(set(count.values()), {1})

    def test_at_step_a_million_nothing_before_it_is_read(self):
        side, batch, steps = 4, 2, 1_000_000
        n = batch * (steps + 50)
        a = np.zeros(n, np.dtype([("image", "u1", (side, side, 3)), ("label", "<i8")]))
        a["label"] = np.arange(n)
        data.pack_raw("long", a, f"image:u8[{side},{side},3],label:i64")
        ds = libshard.open("long")
        for shuffle in ("global", "windows", False):
            options = {"shuffle": shuffle, "seed": 6, "prefetch": 4}
            with libshard.Loader(ds, batch, **options) as loader:
                loader._core.seek(0, steps * batch)
                state = loader.state_dict()
            with libshard.Loader(ds, batch, **options) as loader:
                loader.load_state_dict(state)
                wanted = loader.indices(0, steps * batch, 6 * batch).tolist()
                found = []
                for b in loader:
                    found += b["label"].tolist()
                    if b.step == steps + 5:
                        break
                self.assertEqual(found, wanted)
                stats = loader.stats()
                self.assertEqual((stats["batch_count"], stats["record_count"]), (6, 12))
                # What was prepared is what was delivered, and what the ring holds beside.
                self.assertLessEqual(stats["filled_record_count"], (6 + 4 + 2 + 1) * batch)
                self.assertLessEqual(stats["filled_bytes"], (6 + 4 + 2 + 1) * batch * 4096)

    def test_a_state_that_was_cut(self):
        with libshard.Loader(self.ds, 4) as loader:
            state = loader.state_dict()
            with self.assertRaisesRegex(
                libshard.ArgumentError, r"the state has no complete token of .*; give the text of state_dict\(\) as it was"
            ):
                loader.load_state_dict({**state, "token": state["token"][:-9]})

    def test_states_of_others_are_refused(self):
        data.pack_images("other", 50)
        with libshard.Loader(self.ds, 8, seed=3) as loader, libshard.Loader("other", 8, seed=3) as other:
            with self.assertRaisesRegex(libshard.MismatchError, "the state belongs to dataset"):
                loader.load_state_dict(other.state_dict())
            with libshard.Loader(self.ds, 8, seed=4) as seeded:
                with self.assertRaisesRegex(libshard.MismatchError, "seed 4; the loader has"):
                    loader.load_state_dict(seeded.state_dict())
            with libshard.Loader(self.ds, 8, seed=3, shuffle=False) as sequential:
                words = "leave out shuffle, run_records, phase_unit_records, window_runs and lanes to take the state's"
                with self.assertRaisesRegex(libshard.MismatchError, words):
                    sequential.load_state_dict(loader.state_dict())
                words = "without shuffle, and this loader shuffles; open it with shuffle=False to go on in that order"
                for options in ({}, {"shuffle": True}, {"shuffle": "auto"}):
                    with libshard.Loader(self.ds, 8, seed=3, **options) as shuffled:
                        with self.assertRaisesRegex(libshard.MismatchError, words):
                            shuffled.load_state_dict(sequential.state_dict())
                        self.assertNotEqual(shuffled.order["kind"], "sequential")
                with libshard.Loader(self.ds, 8, seed=3, shuffle=False) as again:
                    again.load_state_dict(sequential.state_dict())
                with libshard.Loader(self.ds, 8, seed=3, shuffle="global") as mixed:
                    with libshard.Loader(self.ds, 8, seed=3) as either:
                        either.load_state_dict(mixed.state_dict())
                        self.assertEqual(either.order["kind"], "global")
            for bad in ({}, None, {"libshard": 2, "token": "x"}, {"libshard": 1}, {"libshard": 1, "token": 5}):
                with self.assertRaisesRegex(libshard.ArgumentError, "this state is not from state_dict"):
                    loader.load_state_dict(bad)
            for token in (
                "",
                "x",
                loader.state_dict()["token"][:-1],
                loader.state_dict()["token"].replace("epoch 0", "epoch 1"),
                "\ud800",
            ):
                with self.assertRaises((libshard.ArgumentError, UnicodeError)):
                    loader.load_state_dict({"libshard": 1, "token": token})
            self.assertEqual(self.check(next(iter(loader))), loader.indices(0, 0, 8).tolist())


class Memory(Loading):
    def test_slots_are_used_again_when_arrays_die(self):
        with libshard.Loader(self.ds, 8, prefetch=1, max_held=1) as loader:
            seen = {batch["image"].data_ptr for _ in range(5) for batch in loader}
            self.assertLessEqual(len(seen), 3)

    def test_what_is_held_takes_nothing_from_what_is_prepared_ahead(self):
        # A loop asks for the next batch with the last one in its hands: threads had one slot less
        # than in C.
        for prefetch, max_held in ((1, 1), (2, 1), (1, 2), (2, 2), (3, 4)):
            with libshard.Loader(self.ds, 8, prefetch=prefetch, max_held=max_held) as loader:
                slots, batches = prefetch + max_held + 1, iter(loader)
                held = [next(batches) for _ in range(max_held)]
                self.assertEqual(self.filled(loader, slots), slots)
                bytes_of_images = -(-8 * held[0]["image"].strides[0] // 4096) * 4096
                self.assertEqual(loader.ring_bytes, slots * (bytes_of_images + 4096))  # a page of labels
                held.append(next(batches))
                with self.assertRaisesRegex(libshard.ArgumentError, "batches are still held"):
                    next(batches)
                del held[0]  # goes back to the threads at once
                self.assertEqual(self.filled(loader, slots + 1), slots + 1)

    def test_large_fields_lie_in_the_ring_small_ones_do_not(self):
        with libshard.Loader(self.ds, 8) as probe:
            need = probe.ring_bytes
        ring = mmap.mmap(-1, need)
        base = np.frombuffer(ring, np.uint8).ctypes.data
        loader = libshard.Loader(self.ds, 8, memory=ring)
        for batch in loader:
            self.check(batch)
            a = batch["image"]
            self.assertTrue(
                base <= a.data_ptr and a.data_ptr + (len(a) - 1) * a.strides[0] + a.strides[0] <= base + need
            )
            self.assertFalse(base <= batch["label"].data_ptr < base + need)
        with self.assertRaises(BufferError):
            ring.close()
        del batch, a
        loader.close()
        ring.close()
        with self.assertRaisesRegex(libshard.ArgumentError, "the ring needs"):
            libshard.Loader(self.ds, 8, memory=mmap.mmap(-1, need - 4096))
        with self.assertRaisesRegex(libshard.ArgumentError, "memory must be writable"):
            libshard.Loader(self.ds, 8, memory=bytes(need))
        with self.assertRaisesRegex(TypeError, "must be a writable buffer, .* not a value of type list"):
            libshard.Loader(self.ds, 8, memory=[0])

    def test_too_many_that_are_held_are_named(self):
        with libshard.Loader(self.ds, 8, max_held=2) as loader:
            held = []
            with self.assertRaisesRegex(
                libshard.ArgumentError,
                r"3 batches are still held, of step 0 \(image\), step 1 \(image\), step 2 \(image\); max_held is 2",
            ):
                for batch in loader:
                    held.append(batch["image"])
            want = [a.tobytes() for a in held]
            self.assertEqual(
                want, [self.want[loader.indices(0, 8 * i, 8).tolist()]["image"].tobytes() for i in range(3)]
            )
            del held, batch
            self.assertEqual(len(list(b["label"] for b in loader)), 13)
        with libshard.Loader(self.ds, 8, max_held=13) as loader:
            batches = list(loader)
            self.assertEqual(sum((self.check(b) for b in batches), []), loader.indices(0, 0, N).tolist())

    def test_batches_with_memory_of_their_own_may_all_be_kept(self):
        with libshard.Loader(self.ds, 8, copy=True) as loader:
            batches = list(loader)
            again = list(itertools.islice(itertools.cycle(iter(loader)), 30))
            self.assertEqual([b.step for b in again], [*range(13), *range(13), *range(4)])
            loader.close()
        self.assertEqual(sum((self.check(b) for b in batches), [])[:8], batches[0].index.tolist())
        self.assertEqual(len({b["image"].data_ptr for b in batches}), 13)
        with self.assertRaisesRegex(libshard.ArgumentError, "greater max_held or copy=True"):
            list(libshard.Loader(self.ds, 8))
        with self.assertRaisesRegex(libshard.ArgumentError, "copy=True needs device='cpu'"):
            libshard.Loader(self.ds, 8, copy=True, device="cuda")

    def test_a_circle_of_garbage_holds_nothing(self):
        with libshard.Loader(self.ds, 8, max_held=1) as loader:
            thresholds = gc.get_threshold()
            gc.set_threshold(1 << 30)
            try:
                for batch in loader:
                    circle = [batch["image"]]
                    circle.append(circle)
                    del circle, batch
            finally:
                gc.set_threshold(*thresholds)

    def test_views_outlive_their_loader(self):
        loader = libshard.Loader(self.ds, 8)
        batch = next(iter(loader))
        part = np.asarray(batch["image"])[3]
        index = batch.index.tolist()
        loader.close()
        del loader, batch
        gc.collect()
        self.assertEqual(part.tobytes(), self.want[index[3]]["image"].tobytes())

    def test_a_closed_one_says_so(self):
        loader = libshard.Loader(self.ds, 8)
        iterator = iter(loader)
        next(iterator)
        loader.close()
        loader.close()
        for call in (
            lambda: next(iterator),
            lambda: len(loader),
            loader.state_dict,
            loader.stats,
            loader.summary,
            lambda: loader.set_epoch(1),
        ):
            with self.assertRaisesRegex(libshard.ClosedError, "this loader is closed; open it again"):
                call()

    def test_memory_comes_back(self):
        def resident():
            with open("/proc/self/statm") as f:
                return int(f.read().split()[1]) * 4096

        for round_ in range(110):  # of about 1 MB of batches each
            with libshard.Loader(self.ds, 50, prefetch=2) as loader:
                for batch in loader:
                    np.asarray(batch["image"]).sum()
            del batch
            self.ds[5]["image"].__dlpack__()
            self.ds[:]["image"].copy()
            if round_ == 9:
                before = resident()
        self.assertLess(resident() - before, 32 << 20)


class BadUse(Loading):
    def test_options(self):
        for options, words in (
            ({"batch_size": 0}, "batch"),
            ({"batch_size": 104, "drop_last": True}, "too few for one batch"),
            ({"rank": 2, "world": 2}, "rank"),
            ({"prefetch": 0}, "prefetch is 0"),
            ({"max_held": 0}, "max_held 0"),
            ({"max_held": 1022, "prefetch": 2}, "together at most 1023"),
            ({"prefetch": 1 << 31, "max_held": 1 << 31}, "at most 1023"),
            ({"path": "x"}, "path='x'"),
            ({"shuffle": "x"}, "shuffle='x'"),
            ({"on_corrupt": "x"}, "on_corrupt='x'"),
            ({"corrupt_most": 0}, "corrupt_most=0; must be 1 or more, or None"),
            ({"corrupt_most": -1}, "corrupt_most=-1"),
            ({"tail": "keep", "world": 2, "rank": 0}, "tail='keep' with world=2"),
            ({"drop_last": False, "world": 2, "rank": 0}, "drop_last=False with world=2"),
            ({"batch_size": 60, "world": 2, "rank": 0, "tail": "drop"}, "batches of at most 51, or tail='pad'$"),
            ({"batch_size": 1, "world": 104, "rank": 0}, "one on each of 104 ranks; use tail='pad', or at most 103 r"),
            ({"rank": 1}, "rank=1 and world=None: they belong together"),
            ({"world": 2}, "rank=None and world=2: they belong together"),
        ):
            with self.subTest(options), self.assertRaisesRegex(libshard.ArgumentError, words):
                libshard.Loader(self.ds, **{"batch_size": 8, **options})
        with libshard.Loader(self.ds, 1, prefetch=1, max_held=1022) as loader:  # as many slots as a loader can have
            self.check(next(iter(loader)))
        for option, value, most in (
            ("batch_size", -1, "4294967295"),
            ("batch_size", 1 << 33, "4294967295"),
            ("threads", -1, "4294967295"),
            ("prefetch", 1 << 40, "4294967295"),
            ("seed", -1, "18446744073709551615"),
            ("rank", 1 << 32, "4294967295"),
            ("stage_bytes", 1 << 64, "18446744073709551615"),
        ):
            words = f"{option}={value}; must be {int(option == 'batch_size')} to {most}"
            with self.subTest(option), self.assertRaisesRegex(libshard.ArgumentError, words):
                libshard.Loader(self.ds, **{"batch_size": 8, option: value})
        for options in ({"batch_size": "8"}, {"batch_size": 8.0}, {"seed": "x"}, {"threads": None}):
            with self.subTest(options), self.assertRaisesRegex(TypeError, "must be a whole number"):
                libshard.Loader(self.ds, **{"batch_size": 8, **options})
        with self.assertRaisesRegex(libshard.DeviceError, "use device='cpu'"):
            libshard.Loader(self.ds, 8, device="cuda")
        with self.assertRaises(libshard.NotFoundError):
            libshard.Loader("nowhere", 8)

    def test_damage(self):
        want = data.pack_images("broken", 40)
        with open("broken/00000.shard", "r+b") as f:
            at = f.read().index(want[25]["image"].tobytes()) + 100
            f.seek(at)
            byte = f.read(1)[0]
            f.seek(at)
            f.write(bytes([byte ^ 1]))
        with libshard.Loader("broken", 8, shuffle=False) as loader:
            with self.assertRaisesRegex(libshard.CorruptError, "00000.shard"):
                list(b["label"] for b in loader)
        for policy, flag in (("mask", libshard.MASKED), ("substitute", libshard.SUBSTITUTED)):
            with libshard.Loader("broken", 8, shuffle=False, on_corrupt=policy) as loader:
                flags = sum((b.flags.tolist() for b in loader), [])
                self.assertEqual([i for i, x in enumerate(flags) if x], [25])
                self.assertEqual(flags[25], flag)
                self.assertEqual(loader.last_damage()[0], "corrupt")
                with libshard.Loader("broken", 8, shuffle=False, on_corrupt=policy, corrupt_most=1) as one:
                    for _ in range(3):  # epochs: it is damaged in each
                        self.assertEqual(len(list(b["label"] for b in one)), 5)
        self.assertIsNone(libshard.Loader(self.ds, 8).last_damage())

    def test_too_much_damage_in_an_epoch(self):
        data.pack_images("bad", 40)
        with open("bad/00000.shard", "r+b") as f:
            whole = bytearray(f.read())
            for image in data.images(40)["image"][20:30]:
                whole[whole.index(image.tobytes()) + 9] ^= 1
            f.seek(0)
            f.write(whole)
        for most, batches in ((1, 2), (9, 3), (10, 15), (None, 15)):
            came = []
            with libshard.Loader("bad", 8, shuffle=False, on_corrupt="mask", corrupt_most=most) as loader:
                try:
                    for _ in range(3):
                        for batch in loader:
                            came.append(batch.step)
                except libshard.CorruptError as e:
                    self.assertRegex(e.message, f"epoch 0: .* more would be; corrupt_most is {most}: ")
            self.assertEqual(len(came), batches, most)

    def test_a_forked_child_opens_its_own(self):
        context = multiprocessing.get_context("fork")
        with libshard.Loader(self.ds, 8) as loader:
            batch = next(iter(loader))
            queue = context.Queue()
            child = context.Process(target=use_in_child, args=(loader, batch, queue))
            child.start()
            said = queue.get(timeout=60)
            child.join()
            self.assertEqual(child.exitcode, 0)
            for line in said[:-1]:
                self.assertRegex(line, "belongs to process")
            self.assertEqual(said[-1], N)
            self.check(batch)
            for batch in loader:
                self.check(batch)

    def test_a_state_behind_which_is_no_step_begins_the_next_epoch(self):
        """Its rest is smaller than a step of the ranks that go on."""
        with libshard.Loader(self.ds, 1, seed=3) as loader:
            batches = iter(loader)
            for _ in range(N - 20):
                next(batches)
            state = loader.state_dict()
            rest = [int(batch.index.tolist()[0]) for batch in batches]
        whole = {"rank": 1, "world": 3, "tail": "drop", "seed": 3}
        for options in ({}, {"epochs": None}, {"transform": lambda batch: batch, "transform_ahead": 2}, {"max_steps": 9}):
            with libshard.Loader(self.ds, 8, **whole, **options) as loader:
                loader.load_state_dict(state | {"steps": 4})
                self.assertEqual(loader.epoch, 1)
                batch = next(iter(loader))
                self.assertEqual((batch.epoch, batch.position), (1, 0))
            with libshard.Loader(self.ds, 6, **whole, **options) as loader:  # the control: a step of 18
                loader.load_state_dict(state | {"steps": 4})
                batch = next(iter(loader))
                self.assertEqual((batch.epoch, batch.position), (0, N - 20))
                self.assertLess(set(batch.index.tolist()), set(rest))

    def test_a_loader_is_not_pickled_or_copied(self):
        for options in ({}, {"max_steps": 3}, {"transform": len, "transform_ahead": 1}):
            with libshard.Loader(self.ds, 8, **options) as loader:
                for call in (pickle.dumps, copy.copy, copy.deepcopy):
                    with self.assertRaisesRegex(TypeError, "a loader has threads .* give a process the dataset"):
                        call(loader)

    def test_a_loader_that_nobody_used_is_that_of_who_uses_it_first(self):
        context = multiprocessing.get_context("fork")
        with libshard.Loader(self.ds, 8, seed=9) as loader:
            queue = context.Queue()
            child = context.Process(target=lambda: queue.put([self.check(b) for b in loader]))
            child.start()
            rows = queue.get(timeout=60)
            child.join()
            self.assertEqual(child.exitcode, 0)
            self.assertEqual(sum(rows, []), loader.indices(0, 0, N).tolist())
            self.assertEqual(sum((self.check(b) for b in loader), []), loader.indices(0, 0, N).tolist())


class Waiting(Loading):
    """Reads stand still while there is a file called gate; gate.c."""

    def setUp(self):
        self.assertIn("gate.so", os.environ.get("LD_PRELOAD", ""))
        self.ds[[0, 40, 70, 100]]  # opens the shards, for which it waits without listening
        open("gate", "w").close()
        self.loader = libshard.Loader(self.ds, 8, path="pread")

    def tearDown(self):
        if os.path.exists("gate"):
            os.unlink("gate")
        self.loader.close()

    def wait_until_refused(self, call):
        """Until another thread waits in the loader; if none does, a time limit ends the test."""
        while True:
            try:
                call()
            except libshard.ArgumentError:
                return
            time.sleep(0.01)

    def test_ctrl_c_is_heard(self):
        class Heard(Exception):
            pass

        def raise_(number, frame):
            raise Heard

        before = signal.signal(signal.SIGALRM, raise_)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with self.assertRaises(Heard):
                next(iter(self.loader))  # or it waits for ever
        finally:
            signal.signal(signal.SIGALRM, before)
        os.unlink("gate")
        self.loader.set_epoch(0)
        self.assertEqual(sum((self.check(b) for b in self.loader), []), self.loader.indices(0, 0, N).tolist())

    def test_a_signal_handler_may_close_the_loader_that_waits(self):
        def close(number, frame):
            os.unlink("gate")
            self.loader.close()

        before = signal.signal(signal.SIGALRM, close)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with self.assertRaisesRegex(libshard.ClosedError, "this loader is closed"):
                next(iter(self.loader))
        finally:
            signal.signal(signal.SIGALRM, before)

    def test_other_threads_run_meanwhile_and_are_refused_here(self):
        got = []
        thread = threading.Thread(target=lambda: got.append(self.check(next(iter(self.loader)))))
        thread.start()
        self.wait_until_refused(self.loader.state_dict)
        self.assertEqual(got, [])
        for call in (self.loader.state_dict, lambda: next(iter(self.loader)), self.loader.close):
            with self.assertRaisesRegex(libshard.ArgumentError, "another thread waits in this loader"):
                call()
        os.unlink("gate")
        thread.join(timeout=60)
        self.assertEqual(got, [self.loader.indices(0, 0, 8).tolist()])

    def test_what_dies_while_another_thread_waits_goes_back_afterwards(self):
        os.unlink("gate")
        self.loader.close()
        self.loader = libshard.Loader(self.ds, 8, path="pread", prefetch=1, max_held=1, threads=1)
        iterator = iter(self.loader)
        held = [next(iterator)]
        self.assertEqual(self.filled(self.loader, 3), 3)  # the other slots are full
        got = []

        def take_three():
            for _ in range(3):
                got.append(self.check(next(iterator)))

        open("gate", "w").close()
        thread = threading.Thread(target=take_three)
        thread.start()
        self.wait_until_refused(self.loader.state_dict)
        held.clear()
        os.unlink("gate")
        thread.join(timeout=60)
        self.assertEqual(got, [self.loader.indices(0, 8 * i, 8).tolist() for i in (1, 2, 3)])
        self.assertEqual(self.filled(self.loader, 7), 7)  # all three are the threads' again


class Base:
    """Of Grain's classes, what libshard.grain uses."""

    def __class_getitem__(cls, item):
        return cls

    def close(self):
        pass


class Grain(unittest.TestCase):
    """libshard.grain without Grain; `make check-frameworks` has the real one."""

    setUpClass = classmethod(lambda cls: Loading.setUpClass.__func__(cls))

    def setUp(self):
        patch = mock.patch.dict(sys.modules, grain=mock.Mock(IterDataset=Base, DatasetIterator=Base))
        patch.start()
        self.addCleanup(patch.stop)
        self.addCleanup(sys.modules.pop, "libshard.grain")
        self.grain = importlib.import_module("libshard.grain")

    def test_epochs_and_every_state(self):
        with libshard.Loader(self.ds, 8, seed=3) as loader:
            want_rows = [b.index.tolist() for _ in range(2) for b in loader]
        batches = self.grain.IterDataset(self.ds, 8, epochs=2, seed=3)
        self.assertEqual((batches.batches, len(want_rows)), (13, 26))
        iterator, states = iter(batches), []
        for row in want_rows:
            states.append(iterator.get_state())
            self.assertEqual(next(iterator)["index"].tolist(), row)
        self.assertIsNone(next(iterator, None))
        for i, state in enumerate(states):
            iterator = iter(batches)
            next(iterator)
            iterator.set_state(pickle.loads(pickle.dumps(state)))
            self.assertEqual(iterator.get_state(), state)
            self.assertEqual([b["index"].tolist() for b in until_stop(iterator)], want_rows[i:])

    def test_no_end_and_memory_of_their_own(self):
        iterator = iter(self.grain.IterDataset(self.ds, 8, seed=3))
        held = [next(iterator) for _ in range(40)]
        for batch in held:
            self.assertIs(type(batch["image"]), np.ndarray)
            np.testing.assert_array_equal(batch["image"], self.want["image"][batch["index"]])
        iterator.close()
        with self.assertRaises(ValueError):
            next(iterator)

    def test_what_a_function_returns_is_delivered(self):
        """Also None, of one that forgot to return: then the iterator looked for a batch without an end."""
        functions = {
            "a pair": (lambda batch: (batch.step, batch["label"].tolist()[0]), tuple),
            "a dict": (lambda batch: {"twice": np.asarray(batch["label"]) * 2}, dict),
            "nothing": (lambda batch: None, type(None)),
        }
        for name, (function, kind) in functions.items():
            for ahead in (0, 2):
                with self.subTest(name, ahead=ahead):
                    options = {"transform": function, "transform_ahead": ahead}
                    iterator = iter(self.grain.IterDataset(self.ds, 8, epochs=2, seed=3, **options))
                    self.assertEqual([type(made) for made in until_end(iterator)], [kind] * 26)
                    endless = iter(self.grain.IterDataset(self.ds, 8, seed=3, **options))
                    self.assertIs(type(next(endless)), kind)
                    endless.close()


def until_end(iterator):
    with contextlib.suppress(StopIteration):
        while True:
            yield next(iterator)


def until_stop(iterator):
    while (batch := next(iterator, None)) is not None:
        yield batch


class Loops(unittest.TestCase):
    """Loops without an end, with an end at a step, and functions that work ahead of them."""

    @classmethod
    def setUpClass(cls):
        data.pack_images("loops", N, "--shard-records", "40")
        cls.ds = libshard.open("loops")

    def test_epochs_and_steps(self):
        """Against plain loops, one for each epoch."""
        want = []
        with libshard.Loader(self.ds, 25, seed=3) as loader:  # of 5 batches, the last one of 3
            for _ in range(3):
                want += [seen(batch) for batch in loader]
        self.assertEqual(len(want), 15)
        for ahead in (0, 2):
            more = {"transform": seen, "transform_ahead": ahead}
            with libshard.Loader(self.ds, 25, seed=3, epochs=None, **more) as loader:
                self.assertEqual(list(itertools.islice(loader, 15)), want)
                with self.assertRaisesRegex(TypeError, "no end.*no len.*an epoch has 5 batches"):
                    len(loader)
            with libshard.Loader(self.ds, 25, seed=3, epochs=None, max_steps=13, **more) as loader:
                self.assertEqual((len(loader), list(loader)), (13, want[:13]))
            with libshard.Loader(self.ds, 25, seed=3, max_steps=13, **more) as loader:
                self.assertEqual([len(list(loader)) for _ in range(3)], [5, 5, 3])
                self.assertEqual(len(loader), 5)
                state = loader.state_dict()  # no epoch was left early, so it does not warn
                with self.assertWarnsRegex(UserWarning, "max_steps=13 batches were taken, so this loop has none"):
                    self.assertEqual(list(loader), [])
                self.assertEqual(list(loader), [])  # it was said
                self.assertEqual(loader.state_dict(), state)
            # More steps than before, with another batch size as well.
            with libshard.Loader(self.ds, 25, seed=3, max_steps=14, epochs=None, **more) as loader:
                loader.load_state_dict(state)
                self.assertEqual(list(loader), want[13:14])
            with libshard.Loader(self.ds, 25, seed=3, max_steps=13, epochs=None, **more) as loader:
                loader.load_state_dict(state)
                with self.assertWarnsRegex(UserWarning, "max_steps=13 batches were taken"):
                    self.assertEqual(list(loader), [])
            with libshard.Loader(self.ds, 1, seed=3) as loader:
                loader.load_state_dict(state)
                self.assertEqual([i for batch in loader for i in batch.index.tolist()], sum((w[2] for w in want[13:]), []))
                plain = loader.state_dict()
            with libshard.Loader(self.ds, 25, seed=3, max_steps=13) as loader:
                with self.assertRaisesRegex(libshard.ArgumentError, "does not say how many batches came before it"):
                    loader.load_state_dict(plain)
                with self.assertRaises((TypeError, libshard.ArgumentError)):
                    loader.load_state_dict(state | {"steps": -1})
            self.assertEqual(set(plain), {"libshard", "token"})  # as checkpoints have it that are there already

    def test_one_place(self):
        """When a second loop begins, the first one raises, also where batches of it were worked on already."""
        for ahead in (0, 2):
            with libshard.Loader(self.ds, 9, transform=seen, transform_ahead=ahead) as loader:
                first = iter(loader)
                self.assertEqual([next(first)[:2] for _ in range(3)], [(0, 0), (0, 1), (0, 2)])
                second = iter(loader)
                self.assertEqual([next(second)[:2] for _ in range(2)], [(1, 0), (1, 1)])
                for _ in range(2):
                    with self.assertRaisesRegex(libshard.ArgumentError, "this loop is over: another one began"):
                        next(first)
                self.assertEqual(next(second)[:2], (1, 2))
                loader.close()
                with self.assertRaises(libshard.ClosedError):
                    next(second)

    def test_a_loop_that_is_over_holds_no_batches(self):
        """A frame may keep it, as that of a traceback does after ^C."""
        for leave in (lambda _: None, lambda loader: loader.set_epoch(1), lambda loader: loader.load_state_dict(loader.state_dict())):
            with libshard.Loader(self.ds, 10, transform=lambda b: b, transform_ahead=3) as loader:
                old = iter(loader)
                kept = next(old)
                leave(loader)
                self.assertIn([batch.step for batch in loader], (list(range(11)), list(range(1, 11))))
                with self.assertRaisesRegex(libshard.ArgumentError, "this loop is over"):
                    next(old)
                del kept

    def test_an_interrupt_while_a_function_works(self):
        """The batch that the loop waited for was not delivered, so it comes next."""
        asked, may_go = threading.Event(), threading.Event()

        def work(batch):
            if batch.step == 2:
                may_go.wait(60)
            return seen(batch)

        def interrupt(*_):
            raise KeyboardInterrupt

        def press():
            asked.wait(60)
            time.sleep(0.1)  # in which the loop has most likely come to wait
            os.kill(os.getpid(), signal.SIGUSR1)

        before = signal.signal(signal.SIGUSR1, interrupt)
        try:
            with libshard.Loader(self.ds, 10, transform=work, transform_ahead=2) as loader:
                steps = iter(loader)
                self.assertEqual([next(steps)[1] for _ in range(2)], [0, 1])
                thread = threading.Thread(target=press)
                thread.start()
                with self.assertRaises(KeyboardInterrupt):
                    asked.set()
                    next(steps)
                thread.join()
                may_go.set()
                with libshard.Loader(self.ds, 10) as again:
                    again.load_state_dict(loader.state_dict())
                    self.assertEqual(next(iter(again)).step, 2)
                self.assertEqual([step for _, step, _ in steps], list(range(2, 11)))
        finally:
            may_go.set()
            signal.signal(signal.SIGUSR1, before)

    def test_a_loop_that_lives_until_the_end_of_the_process_is_silent(self):
        program = (
            "import libshard, concurrent.futures.thread as late\n"
            f"loader = libshard.Loader({self.ds.path!r}, 8, transform=lambda b: b, transform_ahead=2)\n"
            "late.kept = iter(loader)  # it goes when this module is taken apart\n"
            "next(late.kept)\nprint('end')"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "end\n", ""))

    def test_a_forked_child_does_not_wait_for_a_thread(self):
        may_go = threading.Event()

        def work(batch):
            return batch.step < 2 or may_go.wait(60)

        with libshard.Loader(self.ds, 10, transform=work, transform_ahead=3) as loader:
            steps = iter(loader)
            next(steps), next(steps)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # newer interpreters warn of a fork beside threads
                child = os.fork()
            if child == 0:
                signal.alarm(30)
                said = []
                for _ in range(2):
                    try:
                        next(steps)
                    except BaseException as e:
                        said.append(str(e))
                del steps
                os._exit(0 if len(said) == 2 and all("open another one after fork" in text for text in said) else 3)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            may_go.set()
            self.assertEqual(len(list(steps)), 9)

    def test_refused(self):
        for options, words in (
            ({"epochs": 3}, "epochs=3; must be 1, .* or None"),
            ({"epochs": 0}, "must be 1, .* or None"),
            ({"max_steps": 0}, "max_steps=0; must be 1"),
            ({"transform_ahead": 2}, "is for functions, and transform has none"),
            ({"transform_ahead": 2, "transform": libshard.Transform(size=4)}, "is for functions, and transform has none"),
            ({"transform": []}, "has nothing in it"),
            ({"transform": [seen, libshard.Transform(size=4)]}, "item 1 is a libshard.Transform; .* must be the first"),
            ({"transform": [libshard.Transform(size=4)] * 2}, "item 1 is a libshard.Transform"),
            ({"transform": [seen], "transform_as_stored": ["x"]}, "transform is a function"),
            ({"transform": seen, "transform_ahead": 1 << 20}, "prefetch is 2 and max_held 1048578"),
        ):
            with self.assertRaisesRegex(libshard.ArgumentError, words):
                libshard.Loader(self.ds, 8, **options)
        for options in ({"transform": [seen, 3]}, {"transform": [len, lambda a, b: a]}, {"epochs": "x"}):
            with self.assertRaises(TypeError):
                libshard.Loader(self.ds, 8, **options)

    def test_a_transform_and_functions(self):
        crop = libshard.Transform(crop="random", size=8, flip=0.5)
        with libshard.Loader(self.ds, 16, seed=1, transform=crop) as loader:
            want = [(np.asarray(b["image"]).copy(), b.index.tolist()) for b in loader]
        for ahead in (0, 3):
            steps = [crop, lambda b: (np.asarray(b["image"]).copy(), b.index.tolist()), lambda pair: (*pair, "end")]
            with libshard.Loader(self.ds, 16, seed=1, transform=steps, transform_ahead=ahead) as loader:
                got = list(loader)
            self.assertEqual([len(g) for g in got], [3] * len(want))
            for g, w in zip(got, want):
                self.assertTrue((g[0] == w[0]).all())
                self.assertEqual(g[1:], (w[1], "end"))

    def test_functions_work_ahead_in_a_thread_and_in_order(self):
        """While the loop has a batch, the next ones are worked on; how long anything takes is not asked."""
        lock, begun, enough = threading.Lock(), [], threading.Event()

        def work(batch):
            with lock:
                begun.append((batch.step, threading.get_ident()))
                if len(begun) == 3:
                    enough.set()
            return batch.step

        with libshard.Loader(self.ds, 10, seed=2, transform=work, transform_ahead=2) as loader:
            loop = iter(loader)
            self.assertEqual(next(loop), 0)
            self.assertTrue(enough.wait(60))  # without asking for the next batch
            self.assertEqual([step for step, _ in begun], [0, 1, 2])
            self.assertEqual(list(loop), list(range(1, 11)))
        self.assertEqual([step for step, _ in begun], list(range(11)))
        self.assertEqual(len({thread for _, thread in begun} | {threading.get_ident()}), 2)

    def test_batches_that_are_worked_on_may_be_held_beside_those_of_the_loop(self):
        with libshard.Loader(self.ds, 10, transform=lambda b: b, transform_ahead=3, max_held=2) as loader:
            kept = [None, None]
            for batch in loader:
                kept = [kept[1], batch]
            del batch
        with libshard.Loader(self.ds, 10, transform=lambda b: b, transform_ahead=3, max_held=2) as loader:
            with self.assertRaisesRegex(libshard.ArgumentError, "batches are still held"):
                list(loader)
        for sample in (3, 7):  # a function that still works holds a batch, so the end of a loop waits for it
            with libshard.Loader(self.ds, 10, transform=lambda b: b, transform_ahead=4, max_held=1) as loader:
                for _ in range(4):
                    kept = list(map(seen, itertools.islice(loader, sample)))
            self.assertEqual(len(kept), sample)

    def test_ahead_is_as_in_the_loop(self):
        """Whatever is done to a loader, its answers are the same, however far functions work ahead."""
        halves = self.ds.split(0.3, seed=1)
        sources = {"dataset": self.ds, "selection": halves[0], "mixture": libshard.mix(halves, [3, 1], epoch_records=50)}
        draw = random.Random(int(os.environ.get("DRAW", "1")))
        scripts, kinds = [], set()
        for _ in range(60):
            options = {"seed": draw.randrange(3), "epochs": draw.choice((1, None)),
                       "max_steps": draw.choice((None, None, 4, 9)), "copy": draw.choice((True, False))}  # fmt: skip
            bad = {(draw.randrange(3), draw.randrange(6)) for _ in range(draw.choice((0, 1, 5)))}
            acts = draw.choices(("next", "state", "iter", "drop", "epoch", "set", "load", "close"), k=60,
                                weights=(40, 12, 6, 5, 6, 3, 4, 0.2))  # fmt: skip
            scripts.append((draw.choice(list(sources)), options, bad, acts, draw.getrandbits(32)))
        for source, options, bad, acts, seed in scripts:
            told = [play(libshard.Loader, sources[source], options, bad, acts, seed, ahead) for ahead in (0, 1, 3)]
            self.assertEqual(told[1], told[0], (source, options, bad, acts))
            self.assertEqual(told[2], told[0], (source, options, bad, acts))
            kinds |= {line[0] for line in told[0]}
        self.assertLessEqual({"batch", "ValueError", "StopIteration", "state", "ArgumentError", "UserWarning"}, kinds)

        class Wrong(libshard.Loader):
            """Its states are those of the core, which is ahead."""

            def state_dict(self):
                return super().state_dict() | {"token": self._core.token()}

        self.assertTrue(any(play(Wrong, sources[s[0]], *s[1:], 3) != play(Wrong, sources[s[0]], *s[1:], 0) for s in scripts))


class Columns(unittest.TestCase):
    """What lies beside a dataset comes with its records, in each order."""

    @classmethod
    def setUpClass(cls):
        data.pack_images("plain", N, "--shard-records", "40", side=8)
        cls.ds = libshard.open("plain")
        draw = np.random.default_rng(3)
        cls.vector, cls.score = draw.normal(size=(N, 5)).astype("f4"), draw.integers(0, 99, N).astype("i2")
        rows = [{"hidden": draw.normal(size=3).astype("f4"), "word": "w" * (i % 4)} for i in range(N)]
        cls.beside = libshard.pack(rows, {"hidden": "float32[3]", "word": "text[<=4]"}, "beside", shard_records=30)
        cls.rows = rows

    def check(self, batch):
        index = batch.index.tolist()
        self.assertTrue((np.asarray(batch["vector"]) == self.vector[index]).all())
        self.assertTrue((np.asarray(batch["score"]) == self.score[index]).all())
        self.assertEqual((batch["score"].dtype, batch["vector"].shape), ("int16", (len(index), 5)))
        self.assertTrue((np.asarray(batch["hidden"]) == [self.rows[i]["hidden"] for i in index]).all())
        self.assertEqual(batch["word_length"].tolist(), [i % 4 for i in index])
        return index

    def test_batches_and_records(self):
        both = libshard.zip(self.ds, self.beside, vector=self.vector, score=self.score)
        some = self.ds.select(range(9, 70))
        for source, numbers in ((both, range(N)), (libshard.zip(some, "beside", vector=self.vector, score=self.score), some.records)):
            for options in ({}, {"shuffle": False, "tail": "pad"}, {"copy": True}, {"fields": ["label"]},
                            {"transform": lambda b: b, "transform_ahead": 2}):  # fmt: skip
                with libshard.Loader(source, 10, seed=4, **options) as loader:
                    for _ in range(2):
                        got = [i for batch in loader for i in np.array(self.check(batch))[np.asarray(batch.valid)].tolist()]
                        self.assertEqual(sorted(got), list(numbers))
            self.assertEqual(len(source), len(numbers))
            for at in (0, -1, 5):
                record, number = source[at], list(numbers)[at]
                self.assertEqual((record["score"], record["word"]), (self.score[number], "w" * (number % 4)))
                self.assertEqual(record["label"], self.ds[number]["label"])
                self.assertEqual((source.column("score")[at], source.column("label")[at]), (record["score"], record["label"]))
                self.assertTrue((np.asarray(source.column("hidden"))[at] == record["hidden"]).all())
            self.assertEqual(len(list(source)), len(source))
        # Strings beside it come as those of the dataset would.
        with libshard.Loader(both, 10, strings="lists") as loader:
            for batch in loader:
                self.assertEqual(batch["word"], ["w" * (i % 4) for i in batch.index.tolist()])
                self.assertNotIn("word_length", batch)
        # To keep them, write them.
        with libshard.Loader(libshard.zip(self.ds, score=self.score), 10, shuffle=False) as loader:
            kept = libshard.pack(loader, None, "kept", batched=True)
        self.assertEqual(kept.column("score").tolist(), self.score.tolist())

    def test_states(self):
        def loader(**columns):
            return libshard.Loader(libshard.zip(self.ds, self.beside, **columns), 10, seed=4)

        first = loader(vector=self.vector, score=self.score)
        steps = iter(first)
        next(steps)
        state = first.state_dict()
        again = loader(vector=self.vector, score=self.score)
        again.load_state_dict(state)
        self.assertEqual([self.check(b) for b in again], [self.check(b) for b in steps])
        for other in ({"vector": self.vector}, {"vector": self.vector.astype("f8"), "score": self.score}):
            with self.assertRaisesRegex(libshard.MismatchError, "the state belongs to columns .*, and these are"):
                loader(**other).load_state_dict(state)
        # With columns and without are two things, in either direction; a user who means it says so in the state.
        plain = libshard.Loader(self.ds, 10, seed=4)
        with self.assertRaisesRegex(libshard.MismatchError, "belongs to columns .*and this loader has none: open it with"):
            plain.load_state_dict(state)
        self.assertEqual(plain.state_dict()["token"].split()[17], "0")  # what was refused has moved nothing
        both = libshard.zip(self.ds, self.beside, vector=self.vector, score=self.score)
        with self.assertRaisesRegex(libshard.MismatchError, "a loader without columns .*has .*word_length, vector, score: open"):
            again.load_state_dict({"libshard": 1, "token": state["token"]})
        plain.load_state_dict({"libshard": 1, "token": state["token"]})
        want = [b.index.tolist() for b in plain]
        for known in (state, {"libshard": 1, "token": state["token"]} | {"columns": both.digest}):
            again.load_state_dict(known)
            self.assertEqual([self.check(b) for b in again], want)

    def test_refused(self):
        keyed = [libshard.pack([{k: i} for i in range(9)], None, k, key=lambda i, _, k=k: f"{i}" if k != "c" or i < 8 else "x")
                 for k in "abc"]  # fmt: skip
        libshard.zip(keyed[0], keyed[1])
        with self.assertRaisesRegex(libshard.MismatchError, "record 8 is '8' in a, and 'x' in c, so they are not in one"):
            libshard.zip(keyed[0], keyed[2])
        good = self.score
        for call, words in (
            (lambda: libshard.zip(self.ds, score=good[1:]), "'score' has 102 rows, and plain has 103 records"),
            (lambda: libshard.zip(self.ds, keyed[0]), "'a' has 9 rows"),
            (lambda: libshard.zip(self.ds, label=good), "the dataset has 'label' already"),
            (lambda: libshard.zip(self.ds, index=good), "each batch has 'index' already"),
            (lambda: libshard.zip(self.ds, self.beside, word=good), "another column has 'word' already"),
            (lambda: libshard.zip(self.ds), "nothing beside"),
            (lambda: libshard.Loader(libshard.zip(self.ds, score=good), 8, device="cuda"), "needs device='cpu'"),
        ):
            with self.assertRaisesRegex(libshard.ArgumentError, words):
                call()
        for wrong in (
            lambda: libshard.zip(self.ds, good), lambda: libshard.zip(self.ds, x="beside"), lambda: libshard.zip(self.ds, x=3),
            lambda: libshard.zip(self.ds, x=np.ma.masked_equal(good, good[0])), lambda: libshard.zip(self.ds, x=np.zeros((N, 0))),
            lambda: libshard.zip(self.ds, x=[[1], [1, 2]]), lambda: libshard.zip(self.ds, x=["a"] * N),
            lambda: libshard.zip(self.ds, self.ds.select([1])), lambda: libshard.zip(3, x=good),
            lambda: libshard.zip(libshard.mix([self.ds, self.ds]), x=good), lambda: libshard.zip(self.ds, score=good)[True],
        ):  # fmt: skip
            with self.assertRaises(TypeError):
                wrong()


def seen(batch):
    return batch.epoch, batch.step, batch.index.tolist()


def play(kind, source, options, bad, acts, seed, ahead):
    """What a loader answers to a script: a line for each act."""
    draw, told, states, loops = random.Random(seed), [], [], []

    def work(batch):
        if (batch.epoch, batch.step) in bad:
            raise ValueError(f"step {batch.step} is bad")
        return seen(batch)

    def act(name):
        choice = draw.random()
        if name == "iter":
            loops[:] = [iter(loader)]  # which is made before the one that is under way ends
        elif name == "drop":
            loops.clear()
        elif name == "next" and loops:
            return "batch", next(loops[0])
        elif name == "state":
            states.append(loader.state_dict())
            return "state", states[-1]
        elif name == "epoch":
            return "epoch", loader.epoch
        elif name == "set":
            loader.set_epoch(int(choice * 3))
        elif name == "load" and states:
            loader.load_state_dict(states[int(choice * len(states))])
        elif name == "close":
            loader.close()
        return (name,)

    loader = kind(source, 9, transform=work, transform_ahead=ahead, **options)
    for name in acts:
        with warnings.catch_warnings(record=True) as words:
            warnings.simplefilter("always")
            try:
                told.append(act(name))
            except (Exception, StopIteration) as e:
                told.append((type(e).__name__, str(e)))
        told += [(w.category.__name__, str(w.message)) for w in words]
    loops.clear()
    return told


if __name__ == "__main__":
    unittest.main()
