# SPDX-License-Identifier: Apache-2.0
"""libshard.jax: batches as arrays, while JAX computes behind Python's back."""

import mmap
import re
import unittest
import warnings
from unittest import mock

import data
import jax
import jax.numpy as jnp
import libshard.jax
import numpy as np

SIDE = 40
N = 103


class Jax(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.want = data.pack_images("set", N, "--shard-records", "30")

    def check(self, batch):
        index = np.asarray(batch.index)
        np.testing.assert_array_equal(np.asarray(batch["image"]), self.want["image"][index])
        np.testing.assert_array_equal(np.asarray(batch["label"]), self.want["label"][index])
        return index.tolist()

    def test_epochs_and_states(self):
        with libshard.jax.Loader("set", 8, seed=3) as loader:
            self.assertEqual((len(loader), loader.world), (13, 1))
            rows = []
            for batch in loader:
                self.assertIsInstance(batch["image"], jax.Array)
                rows += self.check(batch)
                if batch.step == 4:
                    state = loader.state_dict()
            self.assertEqual(rows, loader.indices(0, 0, N).tolist())
            with libshard.jax.Loader("set", 8, seed=3) as other:
                other.load_state_dict(state)
                self.assertEqual(sum((self.check(b) for b in other), []), rows[40:])

    def test_every_dtype(self):
        a = data.every_dtype(60)
        data.pack_raw("dtypes", a, data.dtype_schema())
        narrow = [name for name in data.DTYPES if "64" not in name]
        for x64 in (False, True):
            fields = None if x64 else narrow
            with jax.enable_x64(x64), libshard.jax.Loader("dtypes", 7, fields=fields) as loader:
                for batch in loader:
                    index = np.asarray(batch.index)
                    for name in fields or data.DTYPES:
                        want = a[name][index]
                        if name == "bf16":
                            self.assertEqual(batch[name].dtype, jnp.bfloat16)
                            np.testing.assert_array_equal(np.asarray(batch[name]).view(np.uint16), want)
                        else:
                            self.assertEqual(str(batch[name].dtype), data.DTYPES[name])
                            self.assertEqual(np.asarray(batch[name]).tobytes(), want.tobytes())

    def test_numbers_that_32_bits_do_not_hold(self):
        """JAX itself makes 1 of 2**33 + 1, and infinity of 1e300."""
        most = float(np.finfo("f4").max)
        fits = {"int64": [-(2**31), 2**31 - 1, 0, 1], "uint64": [0, 2**32 - 1, 1, 2],
                "float64": [most, -most * (1 + 2**-26), np.nan, -np.inf]}  # fmt: skip
        wrong = {"int64": (2**33 + 1, -(2**31) - 1), "uint64": (2**32, 2**64 - 1), "float64": (1e300, -3.5e38)}
        for dtype, good in fits.items():
            for shape in (4,), (2, 2):
                column = np.array(good * 3, dtype).reshape(-1, *shape[1:])
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of NaN
                    libshard.pack({"x": column, "label": np.arange(len(column)) % 2}, None, "fits", replace=True)
                for batch in libshard.jax.Loader("fits", 2, shuffle=False):
                    self.assertEqual(str(batch["x"].dtype), dtype.replace("64", "32"))
                    want = column[np.asarray(batch.index)].astype(batch["x"].dtype)
                    np.testing.assert_array_equal(np.asarray(batch["x"]), want)
                for value in wrong[dtype]:
                    bad = column.copy()
                    bad[-1] = value
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        libshard.pack({"x": bad, "label": np.arange(len(bad)) % 2}, None, "wide", replace=True)
                    words = f"field 'x': {re.escape(repr(column.dtype.type(value).item()))} in record {len(bad) - 1} .*jax_enable_x64"
                    for options in {}, {"items": ()}:
                        with self.assertRaisesRegex(libshard.ArgumentError, words):
                            list(libshard.jax.Loader("wide", 2, **options))
                    list(libshard.jax.Loader("wide", 2, fields=["label"]))
                    with jax.enable_x64(True):
                        for batch in libshard.jax.Loader("wide", 2):
                            np.testing.assert_array_equal(np.asarray(batch["x"]), bad[np.asarray(batch.index)])

    def test_large_fields_are_not_copied(self):
        with libshard.jax.Loader("set", 8) as probe:
            need = probe.ring_bytes
        ring = mmap.mmap(-1, need)
        begin = np.frombuffer(ring, np.uint8).ctypes.data
        with libshard.jax.Loader("set", 8, memory=ring) as loader:
            for batch in loader:
                self.assertTrue(begin <= batch["image"].unsafe_buffer_pointer() < begin + need)

    def test_rows_that_are_apart_are_copied(self):
        a = np.zeros(50, np.dtype([("x", "u1", (70, 64)), ("y", "u1", (100,))]))
        a["x"], a["y"] = np.arange(50)[:, None, None], np.arange(50)[:, None] + 100
        data.pack_raw("two", a, "x:u8[70,64],y:u8[100]")
        for batch in libshard.jax.Loader("two", 8):
            index = np.asarray(batch.index)
            np.testing.assert_array_equal(np.asarray(batch["x"]), a["x"][index])
            np.testing.assert_array_equal(np.asarray(batch["y"]), a["y"][index])
        every = libshard.open("two")[::2]["x"]
        self.assertNotEqual(every.strides[0], 70 * 64)
        np.testing.assert_array_equal(np.asarray(libshard.jax._array(every)), a["x"][::2])

    def test_computations_that_go_on_hold_their_batch(self):
        @jax.jit
        def slow(image):
            x = image.reshape(len(image), -1)[:, :1600].astype(jnp.float32) / 255
            for _ in range(30):
                x = jnp.sin(x @ jnp.ones((1600, 1600)) / 1600)
            return image.astype(jnp.int32).sum(), x.sum()

        with libshard.jax.Loader("set", 8, prefetch=1, max_held=1, drop_last=True) as loader:
            sums = [(batch.index, slow(batch["image"])[0]) for _ in range(3) for batch in loader]
        self.assertEqual(len(sums), 36)
        with (
            mock.patch.object(libshard.jax, "_PATIENCE_SECONDS", 0),
            libshard.jax.Loader("set", 8, prefetch=1, max_held=1) as hasty,
        ):
            with self.assertRaisesRegex(libshard.ArgumentError, "still held"):
                kept = [slow(batch["image"]) for batch in hasty]
                self.assertTrue(kept)
        for index, total in sums:
            self.assertEqual(int(total), int(self.want["image"][np.asarray(index)].astype(np.int64).sum()))

    def test_batches_that_are_kept_are_named(self):
        for options in ({}, {"sharding": jax.devices()[0]}):
            with (
                mock.patch.object(libshard.jax.time, "sleep", side_effect=AssertionError("it waits")),
                libshard.jax.Loader("set", 8, max_held=2, **options) as loader,
            ):
                held = []
                with self.assertRaisesRegex(libshard.ArgumentError, r"3 batches are still held, of step 0 \(image\)"):
                    for batch in loader:
                        held.append(batch["image"])
                for i, image in enumerate(held):
                    np.testing.assert_array_equal(
                        np.asarray(image), self.want["image"][loader.indices(0, 8 * i, 8).tolist()]
                    )
                held.clear()
                self.assertEqual(len([batch["label"] for batch in loader]), 13)  # labels hold no batch
                self.assertLessEqual(len(loader._delivered), 3)
                with self.assertRaisesRegex(libshard.ArgumentError, "max_held is 2.*or copy=True"):
                    list(loader)

    def test_page_locked_memory_is_refused(self):
        with self.assertRaisesRegex(libshard.ArgumentError, "pin_memory must be False for JAX, which copies to GPUs"):
            libshard.jax.Loader("set", 8, pin_memory=True)

    def test_batches_with_memory_of_their_own_may_all_be_kept(self):
        with libshard.jax.Loader("set", 8, copy=True) as loader:
            self.assertEqual(sum((self.check(b) for b in list(loader)), []), loader.indices(0, 0, N).tolist())

    def test_records_may_be_given_away(self):
        ds = libshard.open("set")
        plus = jax.jit(lambda x: x + 1, donate_argnums=0)
        for array in (jax.dlpack.from_dlpack(ds[3]["image"]), jnp.asarray(np.asarray(ds[3]["image"]))):
            np.testing.assert_array_equal(np.asarray(plus(array)), self.want["image"][3] + np.uint8(1))
        np.testing.assert_array_equal(np.asarray(ds[3]["image"]), self.want["image"][3])

    def test_batches_are_trees(self):
        @jax.jit
        def twice(batch):
            return jax.tree.map(lambda x: x * 2, batch)

        for items in ("rows", "all", ()):
            batch = next(iter(libshard.jax.Loader("set", 8, seed=5, items=items)))
            for got in (twice(batch), jax.tree.map(lambda x: x * 2, batch)):
                self.assertEqual((type(got), list(got), got.item_names), (type(batch), list(batch), batch.item_names))
                for name in batch:
                    np.testing.assert_array_equal(np.asarray(got[name]), np.asarray(batch[name] * 2))
            moved = jax.device_put(batch, jax.devices()[1])
            self.assertEqual({d.id for d in moved["image"].devices()}, {1})
            np.testing.assert_array_equal(np.asarray(moved["image"]), np.asarray(batch["image"]))
            paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(batch)]
            self.assertEqual(paths, [f"['{name}']" for name in batch])
        self.assertEqual(twice._cache_size(), 3)  # one for each choice of items, and none for each step
        loader = libshard.jax.Loader("set", 8, items="all", drop_last=True)
        steps = [int(twice(batch)["step"]) for batch in loader]
        self.assertEqual((steps, twice._cache_size()), ([2 * i for i in range(N // 8)], 3))
        spread = jax.sharding.NamedSharding(jax.make_mesh((2,), ("data",)), jax.sharding.PartitionSpec("data"))
        moved = jax.device_put(next(iter(libshard.jax.Loader("set", 8))), spread)
        self.assertEqual({len(x.devices()) for x in moved.values()}, {2})

    def test_spread_over_devices(self):
        mesh = jax.make_mesh((2,), ("data",))
        sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
        with libshard.jax.Loader("set", 8, sharding=sharding, drop_last=True) as loader:
            for batch in loader:
                self.check(batch)
                self.assertEqual(len(batch["image"].devices()), 2)
                self.assertEqual(len(batch["label"].devices()), 2)


if __name__ == "__main__":
    unittest.main()
