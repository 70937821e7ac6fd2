# SPDX-License-Identifier: Apache-2.0
"""Arrays: every dtype, every protocol, read-only everywhere."""

import ctypes
import gc
import math
import sys
import unittest

import data
import libshard
import numpy as np


class EveryDtype(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.want = data.every_dtype(60)
        data.pack_raw("dtypes", cls.want, data.dtype_schema())
        cls.ds = libshard.open("dtypes")
        cls.rows = cls.ds[:]

    def test_numpy_sees_what_it_wrote(self):
        for name in data.DTYPES:
            got = np.asarray(self.rows[name])
            want = self.want[name]
            self.assertEqual(self.rows[name].dtype, data.DTYPES[name])
            if name == "bf16":  # which NumPy does not know
                self.assertEqual(got.dtype, np.dtype("V2"))
                got = got.view("<u2")
            self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape))
            self.assertEqual(got.tobytes(), want.tobytes())
            self.assertEqual(self.rows[name].tobytes(), want.tobytes())

    def test_attributes_are_those_of_numpy(self):
        for name in data.DTYPES:
            ours, numpy = self.rows[name], np.asarray(self.rows[name])
            for a in ("shape", "strides", "ndim", "itemsize", "size", "nbytes"):
                self.assertEqual(getattr(ours, a), getattr(numpy, a), (name, a))
            self.assertEqual(ours.data_ptr, numpy.__array_interface__["data"][0])
            self.assertEqual(len(ours), len(numpy))

    def test_numbers_are_those_of_numpy(self):
        for name in data.DTYPES:
            got, want = self.rows[name].tolist(), self.want[name]
            for i in range(len(want)):
                for k in range(3):
                    w = data.bfloat16(want[i, k]) if name == "bf16" else want[i, k].item()
                    g = got[i][k]
                    self.assertIs(type(g), type(w))
                    self.assertTrue(g == w or (math.isnan(g) and math.isnan(w)), (name, i, k, g, w))
                    if isinstance(w, float) and not math.isnan(w):
                        self.assertEqual(math.copysign(1, g), math.copysign(1, w))

    def test_the_buffer_protocol_has_all_but_bfloat16(self):
        for name in data.DTYPES:
            if name == "bf16":
                with self.assertRaisesRegex(BufferError, "no bfloat16; use __dlpack__"):
                    memoryview(self.rows[name])
                continue
            view = memoryview(self.rows[name])
            self.assertEqual(view.format, np.dtype(self.want[name].dtype).char)
            self.assertTrue(view.readonly)
            self.assertEqual(view.shape, (60, 3))
            self.assertEqual(view.tobytes(), self.want[name].tobytes())

    def test_dlpack_has_all(self):
        for name in data.DTYPES:
            if name in ("bf16", "bool"):  # not known to this NumPy
                continue
            got = np.from_dlpack(self.rows[name])
            self.assertEqual(got.tobytes(), self.want[name].tobytes())
            self.assertEqual(got.ctypes.data, self.rows[name].data_ptr)

    def test_nothing_can_be_written(self):
        for name in data.DTYPES:
            if name == "bf16":
                continue
            view = np.asarray(self.rows[name])
            self.assertFalse(view.flags.writeable)
            with self.assertRaises(ValueError):
                view.flags.writeable = True
            with self.assertRaises(ValueError):
                view[0] = 0
            with self.assertRaises(TypeError):
                memoryview(self.rows[name])[0, 0] = 0
            with self.assertRaises(TypeError):
                self.rows[name][0] = 0
        with self.assertRaises(TypeError):
            ctypes.c_char.from_buffer(self.rows["u8"])


class Capsules(unittest.TestCase):
    def setUp(self):
        self.want = data.pack_images("capsules", 12)
        self.ds = libshard.open("capsules")
        self.a = self.ds[2:9]["image"]

    def tearDown(self):
        import shutil

        shutil.rmtree("capsules")

    def read(self, capsule, name):
        """What a consumer written in C sees."""
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        address = pointer(capsule, name)
        words = (ctypes.c_uint64 * 12).from_address(address)
        if name == b"dltensor_versioned":
            version, flags, tensor = words[0] & 0xFFFFFFFF, words[3], words[4:]
        else:
            version, flags, tensor = 0, 0, words[0:]
        ndim, dtype = tensor[2] & 0xFFFFFFFF, tensor[2] >> 32
        shape = tuple((ctypes.c_int64 * ndim).from_address(tensor[3]))
        strides = tuple((ctypes.c_int64 * ndim).from_address(tensor[4]))
        return dict(
            version=version,
            flags=flags,
            data=tensor[0],
            device=tensor[1],
            code=dtype & 255,
            bits=dtype >> 8 & 255,
            lanes=dtype >> 16,
            shape=shape,
            strides=strides,
            offset=tensor[5],
        )

    def test_version_one_says_that_it_is_read_only(self):
        got = self.read(self.a.__dlpack__(max_version=(1, 0)), b"dltensor_versioned")
        want = dict(version=1, flags=1, data=self.a.data_ptr, device=1, code=1, bits=8, lanes=1, shape=(7, 40, 40, 3),
                    strides=self.a.strides, offset=0)  # fmt: skip
        self.assertEqual(got, want)

    def test_without_a_version_it_is_the_old_form(self):
        for kwargs in (
            {},
            {"max_version": None},
            {"max_version": (0, 8)},
            {"stream": None, "dl_device": (1, 0), "copy": False},
        ):
            got = self.read(self.a.__dlpack__(**kwargs), b"dltensor")
            self.assertEqual((got["data"], got["shape"]), (self.a.data_ptr, self.a.shape))

    def test_a_copy_is_one_and_may_be_written(self):
        capsule = self.a.__dlpack__(max_version=(1, 1), copy=True)
        got = self.read(capsule, b"dltensor_versioned")
        self.assertEqual(got["flags"], 2)
        self.assertNotEqual(got["data"], self.a.data_ptr)
        self.assertEqual(got["strides"], (4800, 120, 3, 1))
        self.assertEqual(ctypes.string_at(got["data"], 4800), self.want["image"][2].tobytes())

    def test_other_devices_and_streams_are_refused(self):
        self.assertEqual(self.a.__dlpack_device__(), (1, 0))
        for kwargs in ({"stream": 1}, {"dl_device": (2, 0)}):
            with self.assertRaisesRegex(BufferError, "memory of the CPU"):
                self.a.__dlpack__(**kwargs)
        for kwargs in ({"max_version": 1}, {"dl_device": 5}, {"dl_device": [1, 0]}):
            with self.assertRaisesRegex(TypeError, "must be None or a tuple of two integers, not"):
                self.a.__dlpack__(**kwargs)

    def test_capsules_that_nobody_takes_are_freed(self):
        before = sys.getrefcount(self.a)
        for _ in range(100):
            self.a.__dlpack__()
            self.a.__dlpack__(max_version=(1, 0))
        self.assertEqual(sys.getrefcount(self.a), before)

    def test_a_taken_capsule_holds_the_memory(self):
        taken = np.from_dlpack(self.a)
        want = self.want["image"][2:9].tobytes()
        before = sys.getrefcount(self.a)
        self.ds.close()
        del self.ds
        gc.collect()
        self.assertEqual(taken.tobytes(), want)
        del taken
        self.assertEqual(sys.getrefcount(self.a), before - 1)
        self.ds = libshard.open("capsules")


class WritersOfWhatIsReadOnly(unittest.TestCase):
    """What other libraries get is memory that they may write to, whatever they were told."""

    @classmethod
    def setUpClass(cls):
        cls.want = data.pack_images("written", 12)
        data.pack_raw("ragged", cls.want, "image:u8[40,40,3],label:i64", "--shard-records", "5")
        cls.ds = libshard.open("written")

    def address(self, taken, versioned):
        name = b"dltensor_versioned" if versioned else b"dltensor"
        return Capsules.read(self, taken, name)["data"]

    def test_nobody_gets_the_map_of_a_file(self):
        ways = (
            ("legacy capsule", lambda a: (c := a.__dlpack__(), self.address(c, False))),
            ("capsule", lambda a: (c := a.__dlpack__(max_version=(1, 0)), self.address(c, True))),
            ("no copy", lambda a: (c := a.__dlpack__(max_version=(1, 0), copy=False), self.address(c, True))),
            ("buffer", lambda a: (v := np.frombuffer(memoryview(a).cast("B"), "u1"), v.ctypes.data)),
            ("interface", lambda a: (a, a.__array_interface__["data"][0])),
            ("asarray", lambda a: (v := np.asarray(a), v.ctypes.data)),
            ("__array__", lambda a: (v := a.__array__(), v.ctypes.data)),
        )
        records = libshard.open("ragged")
        for rows, make in (
            (self.want["image"][3], lambda: self.ds[3]["image"]),
            (self.want["image"][3, 5], lambda: self.ds[3]["image"][5]),
            (self.want["image"][2:9], lambda: self.ds[2:9]["image"]),
            (self.want["label"][2:9], lambda: self.ds[2:9]["label"]),
            (self.want["image"][6:8], lambda: records[6:8]["image"]),
        ):
            for name, take in ways:
                a = make()
                self.assertRegex(data.file_at(a.data_ptr), r"/(written|ragged)/")  # where it is until it is taken
                held, at = take(a)
                self.assertNotRegex(data.file_at(at) or "", r"/(written|ragged)/", name)
                self.assertEqual(ctypes.string_at(at, rows.nbytes), rows.tobytes())
                ctypes.memset(at, 77, rows.nbytes)
                self.assertEqual(make().tobytes(), rows.tobytes(), name)
                del held
        self.assertTrue(self.ds.verify().ok)

    def test_long_ones_stay_in_the_file_for_numpy_only(self):
        a = np.zeros(70, np.dtype([("x", "u1", (1 << 20,))]))
        a["x"] += np.arange(70, dtype="u1")[:, None]
        data.pack_raw("long", a, "x:u8[1048576]", "--shard-records", "70")
        rows = libshard.open("long")[1:]["x"]
        self.assertRegex(data.file_at(np.asarray(rows).ctypes.data), "/long/")
        capsule = rows.__dlpack__()
        at = self.address(capsule, False)
        self.assertNotRegex(data.file_at(at) or "", "/long/")
        self.assertEqual(ctypes.string_at(at + (5 << 20), 9), bytes([6]) * 9)
        with self.assertRaisesRegex(BufferError, "too long to be moved: copy must be None or True"):
            rows.__dlpack__(copy=False)
        short = libshard.open("long")[1:60]["x"]
        self.assertNotRegex(data.file_at(np.asarray(short).ctypes.data) or "", "/long/")

    def test_libraries_that_look_for_a_method_find_it(self):
        # Hugging Face does, and stored the attributes of the array where it found none.
        a = self.ds[3]["image"]
        np.testing.assert_array_equal(a.__array__(), self.want["image"][3])
        self.assertEqual(a.__array__("float32").dtype, np.float32)
        copy = a.__array__(copy=True)
        copy[:] = 0
        with self.assertRaisesRegex(TypeError, "unhashable"):
            hash(a)
        np.testing.assert_array_equal(np.asarray(a), self.want["image"][3])


class Parts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.want = data.pack_images("parts", 12)["image"]
        cls.a = libshard.open("parts")[:]["image"]

    def test_indices_and_slices_are_those_of_numpy(self):
        for key in (
            0,
            5,
            -1,
            -12,
            slice(None),
            slice(3, 9),
            slice(9, 3),
            slice(None, None, -1),
            slice(10, None, -3),
            slice(-100, 100, 5),
            slice(4, None, 1 << 62),
        ):
            got = self.a[key]
            self.assertEqual(got.shape, self.want[key].shape, key)
            self.assertEqual(got.tobytes(), self.want[key].tobytes(), key)
            self.assertEqual(np.asarray(got).tobytes(), self.want[key].tobytes(), key)
            self.assertEqual(got.copy().tobytes(), self.want[key].tobytes(), key)
        self.assertEqual(self.a[3][4][5].tolist(), self.want[3, 4, 5].tolist())
        self.assertEqual(self.a[3][4][5][2], self.want[3, 4, 5, 2])
        self.assertEqual([x.tobytes() for x in self.a], [x.tobytes() for x in self.want])

    def test_what_is_no_index_is_refused(self):
        for key in (12, -13, 1 << 70):
            with self.assertRaises(IndexError):
                self.a[key]

    def test_rows_that_are_apart_need_strides(self):
        rows = self.a[::2]
        with self.assertRaisesRegex(BufferError, "strides"):
            (ctypes.c_char * rows.nbytes).from_buffer_copy(rows)
        dense = rows.copy()
        self.assertEqual(bytes((ctypes.c_char * dense.nbytes).from_buffer_copy(dense)), self.want[::2].tobytes())

    def test_copies_stand_alone(self):
        copy = self.a[1].copy()
        self.assertEqual(copy.data_ptr % 64, 0)
        self.assertEqual(copy.strides, (120, 3, 1))
        self.assertEqual(data.file_at(copy.data_ptr) in (None, "", "[heap]"), True)

    def test_items(self):
        self.assertEqual(self.a[0][0][0][:1].item(), self.want[0, 0, 0, 0])
        with self.assertRaisesRegex(libshard.ArgumentError, "one element; this has 3"):
            self.a[0][0][0].item()

    def test_small_ones_show_what_is_in_them(self):
        self.assertEqual(repr(self.a[0][0][0]), f"Array({self.want[0, 0, 0].tolist()}, dtype=uint8, shape=(3,))")
        self.assertEqual(repr(self.a), "Array(dtype=uint8, shape=(12, 40, 40, 3))")

    def test_nobody_makes_them_but_libshard(self):
        with self.assertRaises(TypeError):
            libshard.Array()


if __name__ == "__main__":
    unittest.main()
