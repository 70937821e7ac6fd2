# SPDX-License-Identifier: Apache-2.0
"""examples/python/ddp.py: every record once, on one rank, and the gradients of one process

It is killed, and goes on in other worlds.
"""

import functools
import os
import re
import shlex
import subprocess
import sys
import unittest
from unittest import mock

import example
import torch._dynamo  # any optimizer loads it, which takes seconds: once, before there are forks
import torch.distributed

CHECK_THREADS = """
import pathlib
names = [path.read_text().strip() for path in pathlib.Path("/proc/self/task").glob("*/comm")]
left = [name for name in names if "gloo" in name]
assert not left, f"left: {left}"
"""
STEPS = 9  # of 108 photographs in batches of 12, whatever the world


def train(world, command, *patches, changes=()):
    """As torchrun does, but with forks: what it printed, and how each ended.

    Rank 0 ends by itself, whichever other rank failed before it.
    """
    main = functools.partial(example.module("ddp", *changes).main, shlex.split(command))
    meet = f"file://{os.path.abspath('meet')}"
    if os.path.exists("meet"):
        os.remove("meet")
    join = functools.partial(torch.distributed.init_process_group, init_method=meet, world_size=world)
    ranks = {}
    for rank in range(world):
        known = mock.patch.dict(os.environ, RANK=str(rank), WORLD_SIZE=str(world))
        joined = mock.patch.object(torch.distributed, "init_process_group", functools.partial(join, rank=rank))
        process = example.Process(main, known, joined, *(patches if rank == 0 else ()))
        ranks[process.pid] = process
    left = dict(ranks)
    while left:
        pid, status = os.wait()
        left.pop(pid).ended(status)
        if status and pid == next(iter(ranks)):
            for other in left:
                os.kill(other, 9)
    return next(iter(ranks.values())).output, [p.status for p in ranks.values()]


def numbers(output):
    """Of each step, its loss and the length of its gradient."""
    return {k: [float(x) for x in re.findall(r"\d\S*", line)] for k, line in example.steps(output).items()}


class Ddp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.whole = example.as_written("ddp")
        os.rename("ddp", "whole.pt")

    def check_steps(self, output, first, end, exactly):
        """These steps were made, and are those of torchrun: bit for bit, or but for rounding."""
        whole, part = numbers(self.whole), numbers(output)
        self.assertEqual(list(part), [(i // STEPS, i % STEPS) for i in range(first, end)])
        for step, values in part.items():
            for value, known in zip(values, whole[step], strict=True):
                self.assertAlmostEqual(value, known, delta=0 if exactly else 1e-4 * known)

    def check_weights(self, path, exactly):
        for name, weights in torch.load("whole.pt")["model"].items():
            torch.testing.assert_close(torch.load(path)["model"][name], weights, rtol=0, atol=0 if exactly else 1e-4)

    def check_proof(self, output, epochs, records=108, left_out=0):
        lines = re.findall("^epoch .*exactly once.*$", output, re.M)
        self.assertEqual(lines, [f"epoch {e}: {records} records exactly once, {left_out} left out" for e in epochs])

    def test_as_torchrun_starts_it(self):
        self.check_steps(self.whole, 0, 3 * STEPS, exactly=True)
        self.check_proof(self.whole, range(3))

    def test_gradients_are_those_of_one_process(self):
        output, status = train(1, "ds/train ds/val --checkpoint one.pt")
        self.assertEqual(status, [0], output)
        self.check_steps(output, 0, 3 * STEPS, exactly=False)
        self.check_weights("one.pt", exactly=False)
        self.assertEqual(example.number("val accuracy", output), example.number("val accuracy", self.whole))
        # Ranks that keep their gradients to themselves would be noticed.
        output, status = train(
            2, "ds/train ds/val --epochs 1", changes=[("= DistributedDataParallel(model)", "= model")]
        )
        self.assertEqual(status, [0, 0], output)
        with self.assertRaises(AssertionError):
            self.check_steps(output, 0, STEPS, exactly=False)

    def test_killed_and_resumed(self):
        output, status = train(2, "ds/train ds/val --checkpoint ddp.pt", example.dying_print("epoch 1 step 3"))
        self.assertEqual(status[0], -9)
        self.assertNotEqual(status[1], 0)  # killed, or told by Gloo before that
        self.check_steps(output, 0, STEPS + 4, exactly=True)
        saved = torch.load("ddp.pt")  # after 10 steps
        for world in (2, 3):
            torch.save(saved, "ddp.pt")
            output, status = train(world, "ds/train ds/val --checkpoint ddp.pt")
            self.assertEqual(status, [0] * world, output)
            self.check_steps(output, 10, 3 * STEPS, exactly=world == 2)
            self.check_proof(output, range(1, 3))
            self.check_weights("ddp.pt", exactly=world == 2)
        # A job that begins the epoch again sees some records twice.
        torch.save(saved, "ddp.pt")
        again = (
            'part.load_state_dict(state[name])',
            'part.load_state_dict(state[name]) if name != "loader" else part.set_epoch(1)',
        )
        output, status = train(2, "ds/train ds/val --checkpoint ddp.pt", changes=[again])
        self.assertEqual(status[0], 1)
        self.assertIn("epoch 1: 12 records came more than once, 0 not at all; that should be 0 and 0", output)

    def test_records_that_do_not_fill_a_step(self):
        output, status = train(2, "ds/train ds/val --epochs 2 --batch-size 10")
        self.assertEqual(status, [0, 0], output)
        self.check_proof(output, range(2), 100, 8)
        unmasked = ('counts = batch["valid"]', 'counts = batch["flags"] >= 0')
        output, status = train(2, "ds/train ds/val --epochs 1 --batch-size 10", changes=[unmasked])
        self.assertEqual(status[0], 1)
        self.assertIn("accuracy: 40 records were looked at; there are 36", output)

    def test_no_thread_of_gloo_is_left(self):
        """Such a thread now and then aborts the process while Python ends."""
        text = example.source("ddp") + CHECK_THREADS
        imports = "import torch.distributed.nn "
        self.assertEqual(text.count(imports), 1)
        for script, status in ((text, 0), (text.replace(imports, "# "), 1)):
            with open("threads.py", "w") as f:
                f.write(script)
            torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "threads.py"]
            done = subprocess.run([*torchrun, "ds/train", "ds/val", "--epochs", "1"], capture_output=True, text=True)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertEqual("AssertionError: left: ['" in done.stderr, status == 1, done.stderr)

    def test_two_ranks_that_take_themselves_for_the_same_one(self):
        same = ("seed=args.seed, drop_last=True", "seed=args.seed, drop_last=True, rank=0, world=2")
        output, status = train(2, "ds/train ds/val --epochs 1", changes=[same])
        self.assertEqual(status[0], 1)
        self.assertIn("epoch 0: 54 records came more than once, 54 not at all; that should be 0 and 0", output)


if __name__ == "__main__":
    unittest.main()
