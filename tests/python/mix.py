# SPDX-License-Identifier: Apache-2.0
"""Mixtures: rows of loaders, ends of epochs and states, against format/shardorder.py."""

import contextlib
import os
import pickle
import re
import sys
import unittest

import data
import libshard
import numpy as np

sys.path.insert(0, os.path.join(os.environ["ROOT"], "format"))

import shardorder  # noqa: E402

SIZES = (103, 41)
OPTIONS = {"shuffle": "windows", "lanes": 4, "run_records": 3, "window_runs": 2, "phase_unit_records": 1}


class Mixtures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.want = [data.pack_images(f"part{i}", n, "--shard-records", "40") for i, n in enumerate(SIZES)]
        cls.want[1]["image"] = 255 - cls.want[1]["image"]
        data.pack_raw("part1", cls.want[1], "image:u8[40,40,3],label:i64", "--shard-records", "40", "--replace")
        cls.parts = [libshard.open(f"part{i}") for i in range(2)]

    def rows(self, batch):
        """Of a batch: (source, record), after its bytes were compared."""
        component, index = np.asarray(batch.component), np.asarray(batch.index)
        for i, (d, r) in enumerate(zip(component, index)):
            self.assertTrue((np.asarray(batch["image"])[i] == self.want[d]["image"][r]).all())
        return list(zip(component.tolist(), index.tolist()))

    def twin(self, weights, seed, sizes, count):
        m = shardorder.Mixture(OPTIONS["lanes"], seed, weights)
        found = [m.record(p, sizes, "two_levels", 3, 2, 1) for p in range(count)]
        return [(d, r) for d, _, r in found]

    def test_rows_and_epochs(self):
        mixture = libshard.mix(self.parts, [3, 1], epoch_records=100)
        self.assertEqual((mixture.weights, len(mixture), len(mixture.digest)), ([3, 1], 100, 64))
        loader = libshard.Loader(mixture, batch_size=16, seed=7, **OPTIONS)
        self.assertEqual(len(loader), 7)
        want, seen, lengths = self.twin([3, 1], 7, SIZES, 320), [], []
        for epoch in range(3):
            batches = 0
            for batch in loader:
                self.assertEqual(batch.epoch, epoch)
                seen += self.rows(batch)
                batches += 1
            lengths.append(batches)
        self.assertEqual(seen, want[: len(seen)])
        self.assertEqual(lengths, [7, 6, 6])  # steps begin at 0 to 96, 112 to 192, 208 to 288
        self.assertIn("Mixture of 2 sources", repr(loader))

    def test_set_epoch(self):
        """As loops of PyTorch call it: records that the last batch has taken do not come again."""
        loader = libshard.Loader(libshard.mix(self.parts, [3, 1], epoch_records=100), batch_size=16, seed=7, **OPTIONS)
        seen = []
        for epoch in range(3):
            loader.set_epoch(epoch)
            for batch in loader:
                seen += self.rows(batch)
        self.assertEqual(seen, self.twin([3, 1], 7, SIZES, 320)[: len(seen)])
        loader.set_epoch(1)  # which is no longer the next one
        self.assertEqual(self.rows(next(iter(loader))), self.twin([3, 1], 7, SIZES, 320)[100:116])
        with self.assertRaises(libshard.ArgumentError):
            loader.indices(0, 0, 10)

    def test_a_loop_that_is_left_early(self):
        mixture = libshard.mix(self.parts, [3, 1], epoch_records=100)
        want = self.twin([3, 1], 7, SIZES, 320)
        for taken, begins in ((3, 100), (7, 112)):  # in the middle; behind the last batch, which takes 12 of the next
            loader = libshard.Loader(mixture, batch_size=16, seed=7, **OPTIONS)
            for number, batch in enumerate(loader, 1):
                if number == taken:
                    break
            del batch
            with self.assertWarns(UserWarning) if taken == 3 else contextlib.nullcontext():
                state = loader.state_dict()  # the same place
            again = libshard.Loader(mixture, batch_size=16, seed=7, **OPTIONS)
            again.load_state_dict(state)
            for batch in (next(iter(loader)), next(iter(again))):
                self.assertEqual(batch.epoch, 1)
                self.assertEqual(self.rows(batch), want[begins : begins + 16])

    def test_states(self):
        mixture = libshard.mix(self.parts, [3, 1])
        loader = libshard.Loader(mixture, batch_size=16, seed=7, **OPTIONS)
        steps = iter(loader)
        for _ in range(3):
            next(steps)
        state = loader.state_dict()
        want = self.twin([3, 1], 7, SIZES, 48 + 20)[48:]
        for world in (1, 2):
            seen = {}
            for rank in range(world):
                again = libshard.Loader(mixture, batch_size=5, seed=7, rank=rank, world=world, **OPTIONS)
                again.load_state_dict(state)
                for step, batch in zip(range(2), again):
                    for i, row in enumerate(self.rows(batch)):
                        seen[(step * 5 + i) * world + rank] = row
            self.assertEqual([seen[i] for i in range(len(seen))], want[: len(seen)])
        for other in (libshard.mix(self.parts, [2, 1]), libshard.mix(self.parts[:1]), self.parts[0]):
            with self.assertRaises(libshard.MismatchError):
                libshard.Loader(other, batch_size=16, seed=7).load_state_dict(state)

    def test_a_pickled_mixture_is_the_same(self):
        parts = [self.parts[0].where(label=[1, 2]), self.parts[1]]
        for weights, length in (([3, 1], None), (None, 77), ([0.3, 0.7], None)):
            mixture = libshard.mix(parts, weights, epoch_records=length)
            again = pickle.loads(pickle.dumps(mixture))
            self.assertEqual((again.digest, again.weights, len(again)), (mixture.digest, mixture.weights, len(mixture)))
            rows = [[self.rows(b) for b in libshard.Loader(m, 16, seed=5, **OPTIONS)] for m in (mixture, again)]
            self.assertEqual(*rows)

    def test_selections_and_balance(self):
        rare = self.parts[0].select({*range(0, 100, 5), 1, 2, 6, 7, 3})  # 20 of label 0, 2, 2, and 1
        mixture = libshard.balanced(rare)
        self.assertEqual((len(mixture.sources), mixture.weights), (4, [1, 1, 1, 1]))
        self.assertEqual(mixture.epoch_records, 80)
        labels = []
        for batch in libshard.Loader(mixture, batch_size=8):
            labels += np.asarray(batch["label"]).tolist()
            self.assertEqual(np.asarray(batch.component).tolist(), np.asarray(batch["label"]).tolist())
            self.assertTrue(set(np.asarray(batch.index).tolist()) <= set(np.asarray(rare.records).tolist()))
        self.assertEqual(len(labels), 80)
        counts = np.bincount(np.array(labels[:64]), minlength=4)  # lanes are 64: each has a slot of the first block
        self.assertEqual(counts.sum(), 64)
        several = libshard.Loader(libshard.balanced(rare), batch_size=256)
        self.assertEqual(np.bincount(np.asarray(next(iter(several))["label"])).tolist(), [64] * 4)
        self.assertEqual(len(libshard.balanced(rare, stop="shortest")), 4)

    def test_an_epoch_of_all_positions(self):
        mixture = libshard.mix(self.parts, epoch_records=2**62)
        self.assertEqual(len(mixture), 2**62)
        self.assertEqual(next(iter(libshard.Loader(mixture, batch_size=4))).position, 0)

    def test_weights(self):
        by_size = libshard.mix(self.parts)
        self.assertEqual(by_size.weights, [2930, 1166])  # 4096 x 103 / 144 is 2929.8
        self.assertEqual(libshard.mix(self.parts, [0.5, 0.5]).weights, [2048, 2048])
        self.assertEqual(libshard.mix(self.parts, np.array([3, 1])).weights, [3, 1])
        self.assertEqual(libshard.mix(self.parts, [3.0, 1]).weights, [3072, 1024])
        self.assertEqual(len(libshard.mix(self.parts, [1, 1], stop="shortest")), 82)
        self.assertEqual(len(libshard.mix(["part0", "part1"], [1, 1])), 206)

    def test_shares_that_rounding_changes(self):
        for share, words in (
            (1e-6, "share 1 is 1e-06 of 1; rounded to a sum of 4096 the weights would be 4095, 1, so its records"),
            (1e-5, "come 24.4 times as often; give it 0.000123 or more and leave the others, or give whole weights"),
        ):
            with self.assertRaisesRegex(libshard.ArgumentError, words):
                libshard.mix(self.parts, [1 - share, share])
        # The share that the message names does, whatever numbers the others are, and less does not.
        for other in (1.0, 3.7, 100.0, 8191.0, 1e-9, 2.5e12):
            with self.assertRaisesRegex(libshard.ArgumentError, "give it [0-9]") as raised:
                libshard.mix(self.parts, [other, other / 1e5])
            least = float(re.search("give it ([^ ]+) or more", str(raised.exception))[1])
            self.assertTrue(1 <= least / (other / 8191) < 1.011, least)
            with self.assertWarnsRegex(UserWarning, "gets 0.000244"):
                self.assertEqual(libshard.mix(self.parts, [other, least]).weights, [4095, 1])
        words = "source 1 was asked for 0.00015 of the records, and gets 0.000244, which is 1 of 4096"
        with self.assertWarnsRegex(UserWarning, words):
            self.assertEqual(libshard.mix(self.parts, [0.99985, 0.00015]).weights, [4095, 1])
        for weights in ([0.999755, 0.000245], [4095, 1]):
            self.assertEqual(libshard.mix(self.parts, weights).weights, [4095, 1])
        libshard.pack({"number": list(range(20000))}, "number:i64", "many")
        many = libshard.open("many")
        with self.assertRaisesRegex(libshard.ArgumentError, "source 1 has 2 of 20002 records.*2.44 times as often"):
            libshard.mix([many, many.select([1, 2])])
        with self.assertWarnsRegex(UserWarning, "source 1 was asked for 0.00015 of the records"):
            libshard.mix([many, many.select([1, 2, 3])])

    def test_what_is_refused(self):
        for sources, options in (
            ([], {}),
            (self.parts, {"weights": [1]}),
            (self.parts, {"weights": [0, 1]}),
            (self.parts, {"weights": [-1, 1]}),
            (self.parts, {"weights": [4096, 1]}),
            (self.parts, {"weights": [0.0, 1.0]}),
            (self.parts, {"weights": [float("nan"), 1.0]}),
            (self.parts, {"stop": "never"}),
            (self.parts, {"epoch_records": 0}),
            (self.parts, {"epoch_records": 2**62 + 1}),
            (self.parts, {"epoch_records": 2**64}),
        ):
            with self.assertRaises(libshard.ArgumentError):
                libshard.mix(sources, **options)
        mixture = libshard.mix(self.parts)
        for wrong in ("part0", self.parts[0], [mixture], mixture):
            with self.assertRaises(TypeError):
                libshard.mix(wrong)
        for options in ({"tail": "drop"}, {"drop_last": True}, {"tail": "keep"}):
            with self.assertRaises(libshard.ArgumentError):
                libshard.Loader(mixture, batch_size=4, **options)
        data.pack_images("smaller", 20, side=32)
        with self.assertRaisesRegex(libshard.MismatchError, "field 'image' is tensor u8 .40,40,3. hwc image in .*, and "
                                    "tensor u8 .32,32,3. hwc image in .*; leave out the field, or pack both"):
            libshard.Loader(libshard.mix([self.parts[0], "smaller"]), batch_size=4)
        labels = libshard.Loader(libshard.mix([self.parts[0], "smaller"]), batch_size=4, fields="label")
        self.assertEqual(set(next(iter(labels))), {"label", "index", "flags", "valid", "component"})

    def pack_boxes(self, out, seed, most, room):
        """Images with 0 to `most` boxes each, and a caption, in fields that have room for more."""
        rng = np.random.default_rng(seed)
        fields = [
            libshard.Field("image", "uint8", (40, 40, 3), semantic="image", layout="hwc"),
            libshard.Field("boxes", "float32", (room, 4), kind="ragged", semantic="boxes"),
            libshard.Field("caption", "uint8", (3 * room,), kind="string", semantic="text"),
        ]
        records = (
            {
                "image": rng.integers(0, 256, (40, 40, 3), "uint8"),
                "boxes": rng.integers(0, 40, (rng.integers(0, most + 1), 4)).astype("float32"),
                "caption": "abc" * int(rng.integers(0, most + 1)),
            }
            for _ in range(60)
        )
        libshard.pack(records, fields, out, shard_records=25)
        return out

    def test_values_of_other_room(self):
        """Batches are those of datasets that were given the same room, which are the slow twin."""
        crops = libshard.Transform(crop="random-resized", size=24, flip=0.5, dtype="f32", layout="chw")
        mixtures = {}
        for name, rooms in (("narrow first", (3, 7)), ("wide first", (7, 3)), ("twin", (7, 7)), ("other twin", (7, 7))):
            most = (3, 7) if name in ("narrow first", "twin") else (7, 3)
            parts = [self.pack_boxes(f"{name} {i}".replace(" ", "-"), i, most[i], rooms[i]) for i in range(2)]
            mixtures[name] = libshard.mix(parts, [2, 1], epoch_records=150)
        for one, two in (("narrow first", "twin"), ("wide first", "other twin")):
            for options in ({}, {"transform": crops}, {"fields": ["boxes"]}, {"fields": ["image"]}, {"path": "direct"}):
                options = {"batch_size": 70, "seed": 3, **OPTIONS, **options}
                loaders = [libshard.Loader(mixtures[m], **options) for m in (one, two)]
                batches = 0
                for a, b in zip(*loaders):
                    self.assertEqual(list(a), list(b))
                    for name in a:
                        self.assertEqual(np.asarray(a[name]).shape, np.asarray(b[name]).shape)
                        self.assertTrue((np.asarray(a[name]) == np.asarray(b[name])).all(), (one, options, name))
                    batches += 1
                self.assertGreaterEqual(batches, 2)

    def test_packed_documents(self):
        """Two corpora, packed with the same command: their doc_lengths have other room."""
        parts = []
        for i, longest in enumerate((90, 30)):
            rng = np.random.default_rng(i)
            documents = [np.append(rng.integers(1, 500, rng.integers(3, longest)), 511) for _ in range(400)]
            np.concatenate(documents).astype("<u2").tofile(f"documents{i}.bin")
            data.shardpack("tokens", f"documents{i}.bin", "-o", f"packed{i}", "--seq-len", 64, "--documents", 511,
                           "--pack")  # fmt: skip
            parts.append(libshard.open(f"packed{i}"))
        rooms = [p.schema["doc_lengths"].shape[0] for p in parts]
        self.assertNotEqual(*rooms)
        for fields in (None, ["tokens"]):
            for order in (parts, parts[::-1]):
                rows = 0
                for batch in libshard.Loader(libshard.mix(order), batch_size=8, fields=fields, seed=1):
                    for i, (d, r) in enumerate(zip(np.asarray(batch.component), np.asarray(batch.index))):
                        want = order[d][int(r)]
                        self.assertTrue((np.asarray(batch["tokens"])[i] == np.asarray(want["tokens"])).all())
                        if fields:
                            continue
                        lengths = np.asarray(batch["doc_lengths"])[i]
                        self.assertEqual(len(lengths), max(rooms))
                        self.assertEqual(lengths.sum(), np.asarray(want["doc_lengths"]).sum())
                        rows += 1
                self.assertEqual(rows > 100, not fields)


if __name__ == "__main__":
    unittest.main()
