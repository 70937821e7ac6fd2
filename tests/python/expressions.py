# SPDX-License-Identifier: Apache-2.0
"""Arrays in expressions: results are those of NumPy, and the memory of arrays is still guarded."""

import collections.abc
import copy
import gc
import itertools
import operator
import pickle
import subprocess
import sys
import unittest

import data
import libshard
import numpy as np

OPERATORS = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, divmod, operator.pow,
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.eq, operator.ne, operator.lt,
    operator.le, operator.gt, operator.ge, operator.matmul,
)  # fmt: skip
METHODS = ("sum", "mean", "min", "max", "argmax", "any", "all", "std", "ravel", "flatten", "transpose", "cumsum")


def setUpModule():
    global dtypes, want, ds
    dtypes = data.every_dtype(12)
    data.pack_raw("dtypes", dtypes, data.dtype_schema())
    want = data.pack_images("photos", 12, "--shard-records", "12")
    ds = libshard.open("photos")


def attempt(call):
    """What a call gives, or the kind of its exception."""
    with np.errstate(all="ignore"):
        try:
            return call()
        except Exception as e:
            return type(e)


class WithNumPy(unittest.TestCase):
    def same(self, got, expected, what):
        if isinstance(expected, tuple):
            for g, e in zip(got, expected, strict=True):
                self.same(g, e, what)
        elif isinstance(expected, type):
            self.assertIs(got, expected, what)
        else:
            self.assertIs(type(got), type(expected), what)
            self.assertEqual((got.dtype, got.shape), (expected.dtype, expected.shape), what)
            np.testing.assert_array_equal(got, expected, str(what))

    def rows(self):
        """The same numbers as ours and as NumPy's, from a file and from a batch."""
        batch = next(iter(libshard.Loader("dtypes", 12, shuffle=False, copy=True)))
        for source, name in itertools.product((libshard.open("dtypes")[:], batch), data.DTYPES):
            if name != "bf16":
                yield name, source[name], dtypes[name]

    def test_operators(self):
        tried = 0
        for name, ours, theirs in self.rows():
            for function in OPERATORS:
                for other in (2, theirs[:, ::-1], theirs[:, :1], np.float32(3), True, None):
                    for left in (True, False):
                        got = attempt(lambda: function(ours, other) if left else function(other, ours))
                        expected = attempt(lambda: function(theirs, other) if left else function(other, theirs))
                        self.same(got, expected, (name, function, other, left))
                        tried += not isinstance(expected, type)
                self.same(attempt(lambda: function(ours, ours)), attempt(lambda: function(theirs, theirs)), name)
            for function in (operator.neg, operator.pos, abs, operator.invert):
                self.same(attempt(lambda: function(ours)), attempt(lambda: function(theirs)), (name, function))
        self.assertGreater(tried, 2000)

    def test_methods_and_functions(self):
        for name, ours, theirs in self.rows():
            for method in METHODS:
                self.same(attempt(getattr(ours, method)), attempt(getattr(theirs, method)), (name, method))
            for function in (np.sum, np.sort, np.negative, np.isnan, np.concatenate, np.stack):
                self.same(attempt(lambda: function(ours)), attempt(lambda: function(theirs)), (name, function))
            self.same(ours.astype("float64"), theirs.astype("float64"), name)
            self.same(ours.T, theirs.T, name)
            self.same(ours.numpy(), theirs, name)
        with self.assertRaisesRegex(AttributeError, "no attribute 'nonsense'"):
            ours.nonsense  # noqa: B018
        self.assertFalse(hasattr(ours, "__array_function__"))  # a library that asks does not take it for NumPy's

    def test_truth_and_numbers(self):
        for values in ([3], [0], [1, 0], []):
            ours, theirs = libshard._core._array("int64", (len(values),), np.array(values, "i8").tobytes()), values
            theirs = np.array(values, "i8")
            for function in (bool, int, float):
                expected = attempt(lambda: function(theirs))
                self.assertEqual(attempt(lambda: function(ours)), expected, (values, function))

    def test_indices_are_those_of_numpy(self):
        ours, theirs = ds[:]["image"], want["image"]
        mask = np.arange(12) % 3 == 0
        plain = [
            (0, 0), (3, 4, 5), (-1, -2), (slice(2, 9), 3), (3, slice(None, None, -7)), (..., 0), (0, ...),
            (2, ..., slice(1, None)), (slice(9, 2), 1), (slice(None, None, 5), slice(30, 4, -3), 7, slice(0, 3, 2)),
            (slice(4, None, 1 << 62), 0), ..., (...,), (),
        ]  # fmt: skip
        for key in plain:
            got = ours[key]
            self.assertIs(type(got), libshard.Array)
            self.assertEqual((got.shape, got.tobytes()), (theirs[key].shape, theirs[key].tobytes()), key)
            self.assertTrue(not got.size or "/photos/" in data.file_at(got.data_ptr), key)  # and no copy
        self.assertEqual(ours[3, 4, 5, 2], theirs[3, 4, 5, 2])
        self.assertEqual(ours[-1, -1, -1, -1], theirs[-1, -1, -1, -1])
        for key in (mask, [3, 1], np.array([[2], [0]]), (mask, 0), None, (slice(None), [1, 2], None), True, (3, True)):
            np.testing.assert_array_equal(ours[key], theirs[key])
        for key in (12, (0, 40), (-13, 0), (0, 0, 0, 0, 0), (..., ...), (1 << 70, 0), "x", (0, "x"), 1.0, mask[:5]):
            with self.assertRaises(IndexError):
                theirs[key]
            with self.assertRaises(IndexError):
                ours[key]

    def test_bfloat16_is_float32(self):
        expected = np.array([data.bfloat16(x) for x in dtypes["bf16"].ravel()], np.float32).reshape(12, 3)
        for ours in (libshard.open("dtypes")[:]["bf16"], libshard.open("dtypes")[:]["bf16"][::-1][::-1]):
            self.same(ours.numpy(), expected, "numpy")
            self.same(ours + 1, expected + 1, "sum")
            self.same(ours == expected, expected == expected, "equal")
            self.same(ours[ours > 0], expected[expected > 0], "mask")

    def test_tables_take_them_for_columns(self):
        labels = ds[:]["label"]
        self.assertIsInstance(labels, collections.abc.Iterable)
        self.assertEqual(list(labels), want["label"].tolist())
        self.assertEqual(np.array([labels, labels]).shape, (2, 12))


class Copies(unittest.TestCase):
    def test_pickles_and_deep_copies(self):
        for name in data.DTYPES:
            a = libshard.open("dtypes")[2:11:3][name]
            for again in (pickle.loads(pickle.dumps(a)), pickle.loads(pickle.dumps(a, 2)), copy.deepcopy(a)):
                self.assertIs(type(again), libshard.Array)
                self.assertEqual((again.dtype, again.shape, again.tobytes()), (a.dtype, a.shape, a.tobytes()))
                self.assertNotEqual(again.data_ptr, a.data_ptr)
                self.assertNotRegex(data.file_at(again.data_ptr) or "", "/dtypes/")
        for record in (ds[3], ds[3:5]):
            for again in (pickle.loads(pickle.dumps(record)), copy.deepcopy(record)):
                self.assertEqual(list(again), list(record))
                np.testing.assert_array_equal(again["image"], record["image"])
                np.testing.assert_array_equal(again["label"], record["label"])
        for bad in (("int64", (2,), b"x" * 15), ("int65", (1,), b"x" * 8), ("uint8", (-1,), b""),
                    ("uint8", (1 << 62, 4), b""), ("uint8", (1,) * 20, b"x")):  # fmt: skip
            with self.assertRaises((libshard.ArgumentError, OverflowError)):
                libshard._core._array(*bad)

    def test_a_batch_that_was_pickled_holds_no_memory_of_the_loader(self):
        with libshard.Loader("photos", 4, prefetch=1, max_held=1, items="all") as loader:
            kept = [f(batch) for batch in loader for f in (copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b)))]
        for i, batch in enumerate(kept):
            self.assertIs(type(batch), libshard.Batch)
            self.assertEqual((batch.step, batch["step"]), (i // 2, i // 2))
            self.assertEqual(batch.item_names, ("index", "flags", "valid", "epoch", "step", "position"))
            np.testing.assert_array_equal(batch["image"], want["image"][batch.index.numpy()])
        bare = next(iter(libshard.Loader("photos", 4, items=())))
        self.assertEqual(copy.deepcopy(bare).index.tolist(), bare.index.tolist())

    def test_what_numpy_made_of_a_batch_holds_it(self):
        """A view does; the outcome of an operator does not."""
        with libshard.Loader("photos", 4, prefetch=1, max_held=1) as loader:
            batches = iter(loader)
            batch = next(batches)
            view, total, index = batch["image"].numpy(), batch["image"] + 0, batch.index.tolist()
            self.assertFalse(view.flags.writeable)
            del batch
            gc.collect()
            self.assertEqual(loader._core.held(), 1)
            np.testing.assert_array_equal(view, want["image"][index])
            del view
            self.assertEqual(loader._core.held(), 0)
            np.testing.assert_array_equal(total, want["image"][index])


WITHOUT = """
import sys
sys.modules["numpy"] = None             # importing it fails
import libshard, pickle, copy
a = libshard.open("photos")[:]["image"]
assert a[3, 4, 5, 2] == a[3][4][5][2] and a[1:3, ..., 0].shape == (2, 40, 40)
assert pickle.loads(pickle.dumps(a[2])).tobytes() == copy.deepcopy(a[2]).tobytes() == a[2].tobytes()
assert list(libshard.open("photos")[:]["label"])
for use in (lambda: a + 1, lambda: a == a, lambda: a[[1, 2]], lambda: a.numpy(), lambda: bool(a)):
    try:
        use()
        raise SystemExit("no exception")
    except TypeError as e:
        assert "needs NumPy, which cannot be imported" in str(e), e
assert not hasattr(a, "mean")
"""


class WithoutNumPy(unittest.TestCase):
    def test_what_needs_it_says_so(self):
        subprocess.run([sys.executable, "-W", "error", "-c", WITHOUT], check=True)

    def test_nobody_imports_it_unasked(self):
        code = "import sys, libshard; ds = libshard.open('photos'); ds[:]['label'].tolist(); ds[3]['image'][0, 0]; "
        code += "[b['image'].shape for b in libshard.Loader(ds, 4)]; assert 'numpy' not in sys.modules"
        subprocess.run([sys.executable, "-c", code], check=True)


if __name__ == "__main__":
    unittest.main()
