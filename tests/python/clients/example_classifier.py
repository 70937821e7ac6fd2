# SPDX-License-Identifier: Apache-2.0
"""examples/python/classifier.py: it learns, and a kill at any moment changes nothing."""

import os
import shutil
import unittest
from unittest import mock

import example
import libshard.torch
import torch
import torch._dynamo  # any optimizer loads it, which takes seconds: once, before there are forks

EPOCHS, STEPS = 20, 9  # of 108 photographs in batches of 12
KILLED = "ds/train ds/val --checkpoint classifier.pt"


def order(first, end):
    return [(i // STEPS, i % STEPS) for i in range(first, end)]


class Classifier(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.whole = example.as_written("classifier")
        os.remove("classifier.pt")
        cls.main = staticmethod(example.module("classifier").main)

    def last_lines(self, output):
        return output.splitlines()[-2:]

    def check_part(self, output, first, end):
        """These steps were made, and their losses are those of the run that was left alone."""
        whole, part = example.steps(self.whole), example.steps(output)
        self.assertEqual(list(part), order(first, end))
        self.assertEqual(part, {k: whole[k] for k in part})

    def test_learns_what_is_in_the_photographs(self):
        self.check_part(self.whole, 0, EPOCHS * STEPS)
        self.assertGreaterEqual(example.number("val accuracy", self.whole), 0.85)
        train = libshard.open("ds/train")
        columns = train[:]
        other = torch.randperm(len(train), generator=torch.Generator().manual_seed(1))
        labels = torch.from_dlpack(columns["label"])[other]
        libshard.pack({"image": columns["image"], "label": labels}, train.schema, "ds/mixed", classes=train.classes)
        output, _ = example.run(self.main, "ds/mixed ds/val")
        self.assertLess(example.number("val accuracy", output), 0.5)

    def test_killed_twice_and_resumed(self):
        # Saved after 35 steps; then after 147, when the kill comes in the middle of saving 154.
        output, status = example.run(self.main, KILLED, example.dying_print("epoch 4 step 4"))
        self.assertEqual(status, -9)
        self.check_part(output, 0, 41)

        def half_a_file(state, path, save=torch.save):
            if state["loader"]["token"].count(" epoch 17 position 12 "):
                with open(path, "wb") as f:
                    f.write(b"PK")
                example.die()
            save(state, path)

        output, status = example.run(self.main, KILLED, mock.patch.object(torch, "save", half_a_file))
        self.assertEqual(status, -9)
        self.check_part(output, 35, 154)

        shutil.copy("classifier.pt", "saved.pt")
        output = example.as_written("classifier", only_last=True)
        self.check_part(output, 147, EPOCHS * STEPS)
        self.assertEqual(self.last_lines(output), self.last_lines(self.whole))

        # Each part of a checkpoint is needed; most people forget where the loader was.
        state = torch.load("saved.pt")
        with libshard.torch.Loader("ds/train", 12, seed=1) as loader:
            loader.set_epoch(16)
            start_of_epoch = loader.state_dict()
            loader.load_state_dict(state["loader"])
            loop = iter(loader)
            next(loop)
            one_late = loader.state_dict()  # inside of the loop
        fresh = {"state": {}, "param_groups": state["optimizer"]["param_groups"]}
        rows = [
            {"loader": one_late},
            {"loader": start_of_epoch},
            {"rng": torch.get_rng_state()},
            {"optimizer": fresh},
            {},
        ]
        for wrong in rows:
            with self.subTest(list(wrong)):
                torch.save(state | wrong, "classifier.pt")
                output, _ = example.run(self.main, KILLED)
                self.assertEqual(self.last_lines(output) == self.last_lines(self.whole), not wrong, output)


if __name__ == "__main__":
    unittest.main()
