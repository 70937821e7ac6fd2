# SPDX-License-Identifier: Apache-2.0
"""Selections: which records, in loaders, in states and in files, against NumPy."""

import pickle
import sys
import unittest
import unittest.mock
from array import array

import data
import libshard
import numpy as np

N = 103


class Selections(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.want = data.pack_images("selected", N, "--shard-records", "40")
        cls.ds = libshard.open("selected")
        cls.labels = cls.want["label"]

    def records(self, selection):
        numbers = np.asarray(selection.records)
        self.assertEqual(len(selection), len(numbers))
        return numbers.tolist()

    def test_where(self):
        for wanted in (3, [3], [0, 4], np.array([1, 2]), range(5)):
            chosen = self.ds.where(label=wanted)
            self.assertEqual(self.records(chosen), np.flatnonzero(np.isin(self.labels, wanted)).tolist())
        both = self.ds.where(label=[1, 2]).where(label=[2, 3])
        self.assertEqual(self.records(both), np.flatnonzero(self.labels == 2).tolist())
        for wrong in ({"label": 17}, {"label": []}, {"cat": 3}, {"image": 3}, {}):
            with self.assertRaises(libshard.ArgumentError):
                self.ds.where(**wrong)
        with self.assertRaises(TypeError):
            self.ds.where(label=1.5)

    def test_select(self):
        chosen = self.ds.select([50, 3, 102])
        self.assertEqual(self.records(chosen), [3, 50, 102])
        self.assertEqual(chosen[0]["label"], self.labels[3])
        self.assertEqual(chosen[-1]["label"], self.labels[102])
        self.assertEqual([r["label"] for r in chosen], self.labels[[3, 50, 102]].tolist())
        self.assertIn("3 of 103 records", repr(chosen))
        self.assertEqual(self.records(chosen.select([102])), [102])
        for wrong in ([1, 1], [103], [-1], []):
            with self.assertRaises(libshard.ArgumentError):
                self.ds.select(wrong)
        with self.assertRaises(libshard.ArgumentError):
            chosen.select([4])
        with self.assertRaises(TypeError):
            self.ds.select([True, False])
        with self.assertRaises(TypeError):
            self.ds.select([0.5])

    def test_rules(self):
        rule = self.labels > 2
        self.assertEqual(self.records(self.ds.where(label=lambda x: x > 2)), np.flatnonzero(rule).tolist())
        both = self.ds.where(image=lambda x: x[:, 0, 0, 0] < 128, label=[3, 4])
        fit = (self.want["image"][:, 0, 0, 0] < 128) & (self.labels > 2) & (self.labels < 5)
        self.assertEqual(self.records(both), np.flatnonzero(fit).tolist())
        # A selection's rule gets the selection's records, whatever else is asked for beside it.
        part = self.ds.select(range(50, N))
        seen = []
        chosen = part.where(
            label=lambda x: seen.append(x) or x == x[0], image=lambda x: seen.append(x) or x.any((1, 2, 3))
        )
        self.assertEqual([len(x) for x in seen], [N - 50] * 2)
        self.assertEqual(seen[0].tolist(), self.labels[50:].tolist())
        same = np.flatnonzero(self.labels == self.labels[50])
        self.assertEqual(self.records(chosen), same[same >= 50].tolist())
        for wrong in (lambda x: x, lambda x: x[:5] > 0, lambda x: True, lambda x: np.flatnonzero(x > 2)):
            with self.assertRaisesRegex(TypeError, "label: the function gave .* must be an array of 103 bools"):
                self.ds.where(label=wrong)
        with self.assertRaisesRegex(libshard.ArgumentError, "selects none"):
            self.ds.where(label=lambda x: x > 17)
        with self.assertRaises(libshard.ArgumentError):
            self.ds.where(cat=lambda x: x > 17)
        with unittest.mock.patch.dict(sys.modules, {"numpy": None}):
            with self.assertRaisesRegex(ImportError, "label=<function>.*there is no NumPy"):
                self.ds.where(label=lambda x: x > 2)

    def test_arrays_of_numbers(self):
        numbers = [50, 3, 102]
        for dtype in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i4", ">u8"):
            self.assertEqual(self.records(self.ds.select(np.array(numbers, dtype))), [3, 50, 102])
        for same in (array("l", numbers), memoryview(array("h", numbers)), bytes(numbers), numbers.__iter__(),
                     np.array([50, 0, 3, 0, 102])[::2], np.array(numbers, object), range(3, 4),
                     self.ds.select(numbers).records):
            self.assertIn(self.records(self.ds.select(same)), ([3, 50, 102], [3]))
        for wrong in (np.array([1, 1]), np.array([103]), np.array([-1]), np.array([5, -128], "i1"),
                      np.array([1 << 63], "u8"), np.array([], "i4")):
            with self.assertRaises(libshard.ArgumentError):
                self.ds.select(wrong)
        for wrong in (np.array([0.0, 1.0]), np.array([[1, 2]]), np.array(3), np.array(["a"]), [0, True]):
            with self.assertRaises(TypeError):
                self.ds.select(wrong)

    def test_masks(self):
        mask = self.labels == 2
        for same in (mask, np.repeat(mask, 2)[::2], memoryview(mask)):
            self.assertEqual(self.records(self.ds.select(same)), np.flatnonzero(mask).tolist())
        twos = self.ds.select(mask)
        self.assertEqual(self.records(twos.select(mask)), self.records(twos))
        for wrong in (mask[1:], np.array([True, False]), np.zeros(N, bool)):
            with self.assertRaisesRegex(libshard.ArgumentError, "the mask"):
                self.ds.select(wrong)
        with self.assertRaisesRegex(libshard.ArgumentError, "the mask has .* must be one for each of 103 records"):
            twos.select(np.ones(len(twos), bool))  # its numbers are the dataset's
        with self.assertRaisesRegex(libshard.ArgumentError, f"{N - len(twos)} of them, such as .* not in"):
            twos.select(np.ones(N, bool))

    def test_records_outside(self):
        draw = np.random.default_rng(5)
        big = libshard.open(data.pack_raw("many", np.zeros(20_000, [("x", "u1")]), "x:u8"))
        for share in (0.01, 0.5, 0.99):
            mine, theirs = (np.flatnonzero(draw.random(20_000) < s) for s in (share, 0.6))
            of = big.select(theirs)
            outside = np.setdiff1d(mine, theirs)
            inside = np.intersect1d(mine, theirs)
            self.assertEqual(self.records(of.select(inside)), inside.tolist())
            with self.assertRaises(libshard.ArgumentError) as e:
                of.select(mine)
            self.assertIn(f"records: {len(outside)} of them, such as {outside[-1]}, are not", str(e.exception))

    def test_split_and_folds(self):
        for fractions in ((0.9,), (0.8, 0.1), (0.5, 0.5), (1 / 3, 1 / 3, 1 / 3)):
            parts = self.ds.split(*fractions, seed=4)
            self.assertEqual(sorted(sum(map(self.records, parts), [])), list(range(N)))
            self.assertEqual([self.records(p) for p in self.ds.split(*fractions, seed=4)], [*map(self.records, parts)])
        self.assertNotEqual(self.records(self.ds.split(0.5, seed=1)[0]), self.records(self.ds.split(0.5, seed=2)[0]))
        held_out = []
        for train, fold in self.ds.folds(5, seed=1):
            self.assertEqual(sorted(self.records(train) + self.records(fold)), list(range(N)))
            held_out += self.records(fold)
        self.assertEqual(sorted(held_out), list(range(N)))
        for wrong in ((), (0,), (1,), (0.5, 0.6), (-0.1,)):
            with self.assertRaises(libshard.ArgumentError):
                self.ds.split(*wrong)
        for part, words in (
            ((0.9999999999,), "selects none of"),  # two parts were asked for, and one is empty
            ((0.5, 0.4999999999), "is there a part for the rest"),
        ):
            with self.assertRaisesRegex(libshard.ArgumentError, words):
                self.ds.split(*part)
        self.assertEqual(len(self.ds.split(0.7, 0.2, 0.1)), 3)  # together less than 1, by rounding
        some = self.ds.where(label=[1, 3])
        for mask in ([True] * len(some), np.ones(len(some), bool), [np.True_], True, np.True_):
            with self.assertRaisesRegex(libshard.ArgumentError, "mask"):
                some[mask]
            with self.assertRaisesRegex((libshard.ArgumentError, TypeError), "mask|must be numbers of places"):
                some.numbers(mask)
        with self.assertRaises(libshard.ArgumentError):
            self.ds.folds(1)
        for seed in (-1, 1 << 64):  # which must not wrap around
            with self.assertRaises(libshard.ArgumentError):
                self.ds.split(0.5, seed=seed)
            with self.assertRaises(libshard.ArgumentError):
                self.ds.folds(2, seed=seed)
        with self.assertRaises(libshard.ArgumentError):
            self.ds.where(label=1 << 63)

    def test_loader(self):
        chosen = self.ds.where(label=[1, 3])
        numbers = self.records(chosen)
        for shuffle in ("global", "windows", False):
            loader = libshard.Loader(chosen, batch_size=8, shuffle=shuffle, seed=2)
            for _ in range(2):
                seen = []
                for batch in loader:
                    index = np.asarray(batch["label"]), np.asarray(batch.index)
                    self.assertTrue((self.labels[index[1]] == index[0]).all())
                    self.assertTrue((self.want["image"][index[1]] == np.asarray(batch["image"])).all())
                    seen += index[1].tolist()
                self.assertEqual(sorted(seen), numbers)
            self.assertIn("Selection", repr(loader))

    def test_state(self):
        a, b = self.ds.split(0.5, seed=1)
        loader = libshard.Loader(a, batch_size=8, seed=2)
        steps = iter(loader)
        first = np.asarray(next(steps).index).tolist()
        state = loader.state_dict()
        rest = [i for batch in steps for i in np.asarray(batch.index).tolist()]
        again = libshard.Loader(a, batch_size=5, seed=2)
        again.load_state_dict(state)
        self.assertEqual([i for batch in again for i in np.asarray(batch.index).tolist()], rest)
        self.assertEqual(sorted(first + rest), self.records(a))
        for other in (b, self.ds):
            with self.assertRaises(libshard.MismatchError):
                libshard.Loader(other, batch_size=8, seed=2).load_state_dict(state)

    def test_files(self):
        chosen = self.ds.where(label=4)
        chosen.save("four.sel")
        again = self.ds.load_selection("four.sel")
        self.assertEqual((self.records(again), again.digest), (self.records(chosen), chosen.digest))
        with self.assertRaises(libshard.ExistsError):
            chosen.save("four.sel")
        data.pack_images("others", 50)
        with self.assertRaises(libshard.MismatchError):
            libshard.open("others").load_selection("four.sel")
        kept = pickle.loads(pickle.dumps(chosen))
        self.assertEqual((self.records(kept), kept.digest), (self.records(chosen), chosen.digest))

    def test_column(self):
        labels = np.asarray(self.ds.column("label"))
        self.assertEqual((labels.dtype, labels.tolist()), (np.int64, self.labels.tolist()))
        self.assertTrue((np.asarray(self.ds.column("image")) == self.want["image"]).all())
        with self.assertRaises(libshard.ArgumentError):
            self.ds.column("cat")

    def test_fields(self):
        for wanted in (["label"], "label", ["image"], ["label", "image"]):
            names = [wanted] if isinstance(wanted, str) else wanted
            loader = libshard.Loader(self.ds, batch_size=16, seed=3, fields=wanted)
            all_fields = libshard.Loader(self.ds, batch_size=16, seed=3)
            for batch, whole in zip(loader, all_fields, strict=True):
                self.assertEqual(set(batch) - set(batch.item_names), set(names))
                self.assertEqual(np.asarray(batch.index).tolist(), np.asarray(whole.index).tolist())
                for name in names:
                    self.assertTrue((np.asarray(batch[name]) == np.asarray(whole[name])).all())
        for wrong in (["cat"], []):
            with self.assertRaises(libshard.ArgumentError):
                libshard.Loader(self.ds, batch_size=16, fields=wrong)

    def test_amplification(self):
        self.assertGreaterEqual(self.ds.where(label=4).amplification, 1)


if __name__ == "__main__":
    unittest.main()
