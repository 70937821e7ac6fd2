# SPDX-License-Identifier: Apache-2.0
"""examples/python/language_model.py: it learns from context, and nothing where there is none."""

import array
import collections
import math
import random
import unittest

import data
import example
import libshard.torch
import torch
import torch._dynamo  # any optimizer loads it, which takes seconds: once, before there are forks
from torch.nn import functional as F

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
        cheat = [("model(tokens[:, :-1], *packed)", "model(tokens[:, 1:], *packed)")]
        for honest, changes in ((True, []), (False, cheat)):
            main = example.module("language_model", *changes).main
            output, status = example.run(main, "ds/mixed-train ds/mixed-val --steps 100")
            self.assertEqual(status, 0, output)
            loss, least = self.losses(output)
            self.assertAlmostEqual(least, self.losses(self.output)[1], places=1)
            self.assertEqual(loss > least, honest, output)

    def test_what_comes_later_is_not_seen(self):
        for honest, changes in ((True, []), (False, [("is_causal=mask is None", "is_causal=False")])):
            model = example.module("language_model", *changes).GPT(256, LENGTH)
            tokens = torch.arange(LENGTH)[None]
            other = tokens.clone()
            other[0, 40:] += 100
            same = torch.isclose(model(tokens), model(other), atol=1e-6).all(-1)[0].tolist()
            self.assertEqual(same == [True] * 40 + [False] * (LENGTH - 40), honest)

    def test_packed_documents_have_the_loss_of_each_alone(self):
        """Documents are lines.  It differs if one sees another, or places do not begin again."""
        data.shardpack(
            "tokens", "val.bin", "-o", "ds/packed", "--seq-len", LENGTH, "--documents", 10, "--pack", "--position-ids"
        )
        data.shardpack("tokens", "val.bin", "-o", "ds/alone", "--seq-len", LENGTH, "--documents", 10)
        batches = list(libshard.torch.Loader("ds/packed", 10000, shuffle=False))
        alone = list(libshard.torch.Loader("ds/alone", 10000, shuffle=False))
        self.assertEqual((len(batches), len(alone)), (1, 1))
        self.assertGreater(len(alone[0]["tokens"]), 1.3 * len(batches[0]["tokens"]))
        for honest, changes in (
            (True, []),
            (False, [("document[:, :, None] == document[:, None, :]", "document[:, :, None] >= 0")]),
            (False, [("at - F.pad(ends, (1, 0)).gather(1, document)", "at")]),
            (False, [("(document[:, 1:] != document[:, :-1]) | ~real[:, 1:]", "~real[:, 1:]")]),
        ):
            example_ = example.module("language_model", *changes)
            torch.manual_seed(3)
            model = example_.GPT(256, LENGTH)
            for embedding in (model.token, model.place):
                torch.nn.init.normal_(embedding.weight, std=1.0)
            total, count = 0.0, 0
            with torch.no_grad():
                for row, length in zip(alone[0]["tokens"], alone[0]["length"].tolist()):
                    tokens = row[None, :length]
                    total += F.cross_entropy(model(tokens[:, :-1])[0], tokens[0, 1:], reduction="sum").item()
                    count += length - 1
                packed = example_.loss_of(model, batches[0]).item()
            self.assertEqual(abs(packed - total / count) <= 1e-5, honest, (packed, total / count, changes))
        document, place, real = example.module("language_model").documents_of(batches[0])
        self.assertTrue(torch.equal(place * real, batches[0]["position_ids"].long()))
        self.assertTrue(torch.equal(real.sum(1), batches[0]["doc_lengths"].sum(1)))

    def test_packed_documents_are_learnt(self):
        for name in ("train", "val"):
            data.shardpack(
                "tokens", f"{name}.bin", "-o", f"ds/lines-{name}", "--seq-len", LENGTH, "--documents", 10, "--pack"
            )
        output, status = example.run(example.module("language_model").main, "ds/lines-train ds/lines-val --steps 200")
        self.assertEqual(status, 0, output)
        loss, least = self.losses(output)
        self.assertLess(loss, 0.9 * least)


if __name__ == "__main__":
    unittest.main()
