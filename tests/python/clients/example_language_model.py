# SPDX-License-Identifier: Apache-2.0
"""examples/python/language_model.py: it learns from context, and nothing where there is none."""

import array
import collections
import math
import random
import unittest

import data
import example
import torch
import torch._dynamo  # any optimizer loads it, which takes seconds: once, before there are forks

LENGTH = 64


def least_loss(tokens):
    """Of a model without context, over shardpack's windows, whose first token nobody guesses."""
    tokens = tokens[1 : (len(tokens) - 1) // LENGTH * LENGTH + 1]
    return -sum(n / len(tokens) * math.log(n / len(tokens)) for n in collections.Counter(tokens).values())


class LanguageModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.output = example.as_written("language_model")

    def losses(self, output):
        return example.number("val loss", output), example.number("at least", output)

    def tokens(self, name):
        with open(f"{name}.bin", "rb") as f:
            return array.array("H", f.read())

    def test_context_is_learnt(self):
        loss, least = self.losses(self.output)
        self.assertAlmostEqual(least, least_loss(self.tokens("val")), places=3)
        self.assertLess(loss, 0.9 * least)

    def test_mixed_tokens_teach_nothing(self):
        """As frequent as before, in any order: only a model that sees the answer does better."""
        for name in ("train", "val"):
            mixed = self.tokens(name)
            random.Random(1).shuffle(mixed)
            with open(f"mixed-{name}.bin", "wb") as f:
                mixed.tofile(f)
            data.shardpack("tokens", f"mixed-{name}.bin", "-o", f"ds/mixed-{name}", "--seq-len", LENGTH)
        for honest, changes in ((True, []), (False, [("model(tokens[:, :-1])", "model(tokens[:, 1:])")])):
            main = example.module("language_model", *changes).main
            output, status = example.run(main, "ds/mixed-train ds/mixed-val --steps 100")
            self.assertEqual(status, 0, output)
            loss, least = self.losses(output)
            self.assertAlmostEqual(least, self.losses(self.output)[1], places=1)
            self.assertEqual(loss > least, honest, output)

    def test_what_comes_later_is_not_seen(self):
        for honest, changes in ((True, []), (False, [("is_causal=True", "is_causal=False")])):
            model = example.module("language_model", *changes).GPT(256, LENGTH)
            tokens = torch.arange(LENGTH)[None]
            other = tokens.clone()
            other[0, 40:] += 100
            same = torch.isclose(model(tokens), model(other), atol=1e-6).all(-1)[0].tolist()
            self.assertEqual(same == [True] * 40 + [False] * (LENGTH - 40), honest)


if __name__ == "__main__":
    unittest.main()
