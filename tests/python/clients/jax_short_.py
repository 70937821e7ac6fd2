# SPDX-License-Identifier: Apache-2.0
"""examples/python/jax_short.py: it learns from photographs, and nothing from others' labels."""

import unittest

import example
import libshard
import numpy as np


class Jax(unittest.TestCase):
    def test_learns_what_is_in_the_photographs(self):
        output = example.as_written("jax_short")
        self.assertGreaterEqual(example.number("val accuracy", output), 0.85)
        train = libshard.open("ds/train")
        columns = train[:]
        labels = np.random.default_rng(1).permutation(np.asarray(columns["label"]))
        libshard.pack({"image": columns["image"], "label": labels}, train.schema, "ds/mixed", classes=train.classes)
        output, status = example.run(example.module("jax_short").main, "ds/mixed ds/val --epochs 20")
        self.assertEqual(status, 0, output)
        self.assertLess(example.number("val accuracy", output), 0.5)


if __name__ == "__main__":
    unittest.main()
