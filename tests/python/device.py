# SPDX-License-Identifier: Apache-2.0
"""device="cuda" on the driver without a GPU of tests/cuda: the bytes, the streams, and when memory
is used again

Copies run late there, on threads, in no order but that of streams and events.  The test is the
consumer: what it queues are copies back to the host, which find what is in the batch's memory when
they run.
"""

import contextlib
import ctypes
import gc
import os
import re
import signal
import subprocess
import sys
import threading
import types
import unittest
import warnings

import data
import libshard
import numpy as np

FAKE = ctypes.CDLL("libcuda.so.1") if os.environ.get("FAKE_DRIVER") else None
if FAKE:
    ctypes.CDLL(os.environ["TWINS"])  # libshard's kernels, as C
u64, pointer = ctypes.c_uint64, ctypes.c_void_p


def made():
    if not os.path.exists("set"):
        data.pack_images("set", 66)
    return "set"


class Control(ctypes.Structure):
    """The first of struct fake_control, tests/cuda/fake.h."""

    _fields_ = [
        ("seed", ctypes.CFUNCTYPE(None, u64, ctypes.c_uint)),
        ("hold", ctypes.CFUNCTYPE(None, ctypes.c_int)),
        ("settle", ctypes.CFUNCTYPE(None)),
        ("pending", ctypes.CFUNCTYPE(ctypes.c_uint)),
        ("fail", ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint, ctypes.c_int)),
        ("hide", ctypes.CFUNCTYPE(None, ctypes.c_char_p)),
        ("host_addresses", ctypes.CFUNCTYPE(None, ctypes.c_int)),
        ("break_down", ctypes.CFUNCTYPE(None, ctypes.c_int)),
        ("count", ctypes.CFUNCTYPE(u64, ctypes.c_char_p)),
        ("sins", ctypes.CFUNCTYPE(u64, ctypes.c_int)),
        ("reset", ctypes.CFUNCTYPE(None)),
        ("leaks", ctypes.CFUNCTYPE(ctypes.c_char_p)),
        ("context", ctypes.CFUNCTYPE(pointer, ctypes.c_int)),
        ("drop_context", ctypes.CFUNCTYPE(None, pointer)),
        ("at", ctypes.CFUNCTYPE(pointer, u64)),
    ]


def driver(name, *arguments):
    call, status = pointer(), ctypes.c_int()
    found = FAKE.cuGetProcAddress_v2(name.encode(), ctypes.byref(call), 12000, u64(1), ctypes.byref(status))
    assert found == 0 and call
    result = ctypes.CFUNCTYPE(ctypes.c_int)(call.value)(*arguments)
    assert result == 0, f"{name}: {result}"


def start_driver():
    """The fake driver as if it had just been loaded."""
    global CONTROL
    CONTROL = Control.in_dll(FAKE, "fake_control")
    driver("cuInit", ctypes.c_uint(0))
    CONTROL.seed(1, 500)
    CONTROL.reset()


class Tensor(ctypes.Structure):
    """DLTensor, of a capsule without a version."""

    _fields_ = [
        ("data", u64),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", u64),
    ]


ctypes.pythonapi.PyCapsule_GetPointer.restype = pointer
ctypes.pythonapi.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Consumer:
    """A library that takes arrays by DLPack, and uses them on a stream."""

    def __init__(self):
        self.context, self.stream = pointer(), pointer()
        device = ctypes.c_int()
        driver("cuDeviceGet", ctypes.byref(device), 0)
        driver("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        driver("cuCtxPushCurrent", self.context)
        driver("cuStreamCreate", ctypes.byref(self.stream), ctypes.c_uint(1))

    def queue_copy(self, array, out, stream):
        """Returns what holds the array."""
        capsule = array.__dlpack__(stream=stream)
        t = ctypes.cast(ctypes.pythonapi.PyCapsule_GetPointer(capsule, b"dltensor"), ctypes.POINTER(Tensor))[0]
        assert tuple(t.device) == array.__dlpack_device__() == (2, 0)
        assert tuple(t.shape[: t.ndim]) == array.shape
        self.queue_rows(t.data, array.shape[0], array.strides[0], out, stream)
        return capsule

    def queue_rows(self, at, rows, stride, out, stream):
        for i in range(rows):
            row = len(out) // rows
            to = ctypes.c_void_p(ctypes.addressof(out) + i * row)
            driver(
                "cuMemcpyDtoHAsync",
                to,
                u64(at + i * stride),
                ctypes.c_size_t(row),
                pointer(0 if stride_is_legacy(stream) else stream),
            )

    def close(self):
        popped = pointer()
        CONTROL.settle()
        driver("cuStreamDestroy", self.stream)
        driver("cuCtxPopCurrent", ctypes.byref(popped))
        driver("cuDevicePrimaryCtxRelease", ctypes.c_int(70))


def stride_is_legacy(stream):
    return stream in (None, 1)


@unittest.skipUnless(FAKE, "for the fake driver")
class Device(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ds = libshard.open(made())

    def setUp(self):
        start_driver()
        self.consumer = Consumer()
        self.addCleanup(self.consumer.close)

    def wanted(self, **options):
        with libshard.Loader(self.ds, 7, seed=3, items=(), **options) as loader:
            return [{k: v.tobytes() for k, v in b.items()} | {"index": b.index.tolist()} for _ in range(2) for b in loader]

    def take(self, stream_of, keep=False, seed=1, release=None, **options):
        """All batches of two epochs, as copies that the consumer queues find them."""
        CONTROL.seed(seed, 800)
        found = []
        with libshard.Loader(self.ds, 7, seed=3, device="cuda", items=(), **options) as loader:
            for _ in range(2):
                for batch in loader:
                    outs, capsules = {}, []
                    for name, array in batch.items():
                        outs[name] = ctypes.create_string_buffer(array.nbytes)
                        capsules.append(self.consumer.queue_copy(array, outs[name], stream_of(len(found))))
                    found.append((outs, batch.index.tolist()))
                    del batch, array, capsules
            CONTROL.settle()
            self.assertEqual(loader.stats()["pageable_bytes"], 0)
        return [{k: o.raw for k, o in outs.items()} | {"index": index} for outs, index in found]

    def test_batches_are_those_of_the_cpu_on_whatever_stream_they_are_used(self):
        want = self.wanted()
        mine = self.consumer.stream.value
        streams = (
            (None, lambda i: None),
            (None, lambda i: 1),
            (mine, lambda i: mine),
            (None, lambda i: mine),
            (mine, lambda i: 1),
            (None, lambda i: (mine, 1)[i % 2]),
        )
        for seed, (option, stream_of) in enumerate(streams):
            with self.subTest(option=option, seed=seed):
                self.assertEqual(self.take(stream_of, seed=seed, stream=option), want)
        self.assertEqual(self.take(lambda i: mine, max_held=1), want)
        # The first copies are our own, to memory that is not page-locked.
        self.assertEqual([CONTROL.sins(i) for i in range(1, 6)], [0] * 5)

    @unittest.skipIf("GATE" in os.environ, "the page cache seems to hold nothing")
    def test_records_of_64_kib_come_out_of_the_page_cache(self):
        data.pack_images("large", 40, side=160)
        with libshard.open("large") as self.ds:
            want = self.wanted()
            for pin_most, pinned in ((None, True), (0, False), (2 * 10**6, False), (4 * 10**6, True)):  # of one piece
                with self.subTest(pin_most=pin_most):
                    self.assertEqual(self.take(lambda i: 1, pin_most=pin_most), want)
                    with libshard.Loader(self.ds, 7, device="cuda", pin_most=pin_most) as loader:
                        for _ in range(8):
                            for batch in loader:
                                del batch
                        stats = loader.stats()
                        self.assertEqual(stats["registered_bytes"] >= 40 * 160 * 160 * 3, pinned)
                        self.assertEqual(stats["cached_bytes"] > 0, pinned)
                        self.assertEqual("out of the page cache" in loader.summary(), pinned)
                        self.assertEqual(stats["device_checked_count"] > 0, pinned)
                        self.assertEqual("; the GPU hashed " in loader.summary(), pinned)
        with self.assertRaisesRegex(libshard.ArgumentError, "pin_most needs device='cuda'"):
            libshard.Loader("large", 7, pin_most=1)

    def test_windows_are_those_of_the_cpu(self):
        a = np.zeros(40, np.dtype([("image", "u1", (40, 40, 3)), ("episode", "<i8")]))
        a["image"] = data.images(40)["image"]
        a["episode"] = np.arange(40) // 9
        data.pack_raw("episodes", a, "image:u8[40,40,3],episode:i64")
        mine, crop = self.consumer.stream.value, libshard.Transform(field="image", crop="random", size=8, dtype="u8")
        with libshard.open("episodes") as self.ds:
            for seed, options in enumerate(({}, {"window_edge": "drop"}, {"tail": "pad", "rank": 1, "world": 2})):
                options |= {"window": (-2, 1)}
                want = self.wanted(**options)
                self.assertEqual(np.shape(want[0]["index"]), (7, 4))
                self.assertTrue(self.take(lambda i: (mine, 1)[i % 2], seed=seed, **options) == want)
                other = self.wanted(**options | {"window": (-1, 2)})
                self.assertEqual(want == other, "window_edge" in options)  # whole windows are the same ones
            with libshard.Loader(self.ds, 7, seed=3, device="cuda", window=(-2, 1), transform=crop) as loader:
                self.assertEqual(next(iter(loader))["image"].shape[:2], (7, 4))
            with self.assertRaisesRegex(libshard.UnsupportedError, "window is given, and windows cannot be gathered from a pool"):
                libshard.Loader(self.ds, 7, device="cuda", pool_bytes="all", window=(-2, 1))

    def test_a_slot_that_goes_back_too_early_would_be_seen(self):
        # The copies are queued on a stream that the array was not asked for: what the loader cannot
        # know of.
        mine, lost = self.consumer.stream.value, 0
        want = self.wanted()
        queue_rows = self.consumer.queue_rows
        self.consumer.queue_rows = lambda at, rows, stride, out, stream: queue_rows(at, rows, stride, out, mine)
        for seed in range(5):
            lost += self.take(lambda i: 1, seed=seed) != want
        self.assertGreater(lost, 0)

    def pools(self, **options):
        """The smallest one, and that of the whole dataset, in bytes."""
        with self.assertRaisesRegex(libshard.ArgumentError, "a pool needs") as caught:
            libshard.Loader(self.ds, 7, device="cuda", pool_bytes=1, **options)
        words = r"a pool needs (\d+), or (\d+) to hold the whole dataset"
        return [int(n) for n in re.search(words, str(caught.exception)).groups()]

    def test_batches_of_a_pool_are_those_of_the_cpu(self):
        mine, broken = self.consumer.stream.value, "BROKEN_TWIN" in os.environ
        windows = {"shuffle": "windows", "run_records": 2, "window_runs": 1, "lanes": 2}
        for seed, options in enumerate((windows, windows | {"rank": 1, "world": 2, "tail": "pad"}, {"shuffle": "global"})):
            want, (least, every) = self.wanted(**options), self.pools(**options)
            self.assertLess(least, (0.6 if "lanes" in options else 3) * every)  # a global order is one window
            for pool in (least, "all"):
                with self.subTest(options=options, pool=pool):
                    same = self.take(lambda i: (mine, 1)[i % 2], seed=seed, pool_bytes=pool, **options) == want
                    self.assertEqual(same, not broken)
        self.assertEqual([CONTROL.sins(i) for i in range(1, 6)], [0] * 5)

    def test_a_pool_of_all_is_filled_once(self):
        with libshard.Loader(self.ds, 7, seed=3, device="cuda", pool_bytes="all") as loader:
            copied = []
            for _ in range(3):
                for batch in loader:
                    del batch
                copied.append(loader.stats()["device_bytes"])
            self.assertEqual(copied, copied[:1] * 3)
            # Records lie 64 bytes further apart.
            self.assertTrue(1 <= copied[0] / (len(self.ds) * (40 * 40 * 3 + 8)) < 1.1, copied)

    def test_arrays_say_where_they_are_and_cannot_be_read_here(self):
        with libshard.Loader(self.ds, 7, seed=3, device="cuda") as loader:
            batch = next(iter(loader))
            array = next(iter(batch.values()))
            self.assertEqual(array.__dlpack_device__(), (2, 0))
            self.assertIn("device=cuda:0", repr(array))
            interface = array.__cuda_array_interface__
            self.assertEqual(
                (interface["shape"], interface["strides"], interface["stream"], interface["version"]),
                (array.shape, array.strides, 1, 3),
            )
            self.assertEqual(interface["data"], (array.data_ptr, False))  # PyTorch refuses read-only ones
            self.assertFalse(hasattr(array, "__array_interface__"))
            for read in (
                array.tolist,
                array.tobytes,
                array.copy,
                lambda: batch["label"][0],
                lambda: batch["label"].item(),
            ):
                with self.assertRaisesRegex(libshard.ArgumentError, "in the memory of GPU 0; give it to a library"):
                    read()
            with self.assertRaisesRegex(BufferError, "in the memory of a GPU"):
                memoryview(array)
            for bad in (
                {"stream": 0},
                {"stream": 2},
                {"stream": -2},
                {"copy": True},
                {"dl_device": (1, 0)},
                {"dl_device": (2, 1)},
            ):
                with self.assertRaises(BufferError):
                    array.__dlpack__(**bad)
            part = array[1:3]
            self.assertEqual(part.__dlpack_device__(), (2, 0))
            self.assertFalse(hasattr(batch.index, "__cuda_array_interface__"))
            self.assertEqual(batch.index.__dlpack_device__(), (1, 0))
            del batch, array, part, interface

    def test_ctrl_c_is_heard_while_the_first_batch_is_waited_for(self):
        class Heard(Exception):
            pass

        def raise_(number, frame):
            raise Heard

        # Reads stand still while there is a file called gate.
        self.assertIn("gate.so", os.environ.get("LD_PRELOAD", ""))
        self.ds[[0, 40]]
        want = self.wanted()
        before = signal.signal(signal.SIGALRM, raise_)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        for pool in (0, self.pools()[0], "all"):
            with (
                self.subTest(pool=pool),
                libshard.Loader(self.ds, 7, seed=3, device="cuda", path="pread", pool_bytes=pool) as loader,
            ):
                open("gate", "w").close()
                opens = threading.Timer(60, os.unlink, ["gate"])  # else who is deaf would never end
                opens.start()
                signal.setitimer(signal.ITIMER_REAL, 0.2)
                with self.assertRaises(Heard):
                    next(iter(loader))
                self.assertTrue(os.path.exists("gate"), "heard only when there was something to read")
                opens.cancel()
                os.unlink("gate")
                loader.set_epoch(0)
                self.assertEqual([b.index.tolist() for _ in range(2) for b in loader], [w["index"] for w in want])

    def test_too_many_held_names_them_and_close_leaves_no_trace(self):
        loader = libshard.Loader(self.ds, 7, seed=3, device="cuda", max_held=1)
        it = iter(loader)
        held = [next(it), next(it)]
        with self.assertRaisesRegex(libshard.ArgumentError, "2 batches are still held"):
            next(it)
        loader.close()
        del held, it, loader
        gc.collect()
        self.consumer.close()
        self._cleanups.clear()
        self.assertEqual(CONTROL.leaks(), b"")

    def test_bad_options(self):
        for options, what in (
            ({"device": "gpu"}, "'cpu', 'cuda' or 'cuda:N'"),
            ({"device": "cuda:"}, "cuda:N"),
            ({"stream": 5}, "device='cuda'"),
            ({"device": "cuda", "pool_bytes": "some"}, "must be a number or 'all'"),
            ({"device": "cuda", "max_held": 4}, "at most 3"),
        ):
            with self.assertRaisesRegex(libshard.ArgumentError, what):
                libshard.Loader(self.ds, 7, **options)
        with self.assertRaisesRegex(libshard.Error, "pool"):
            libshard.Loader(self.ds, 7, device="cuda", pool_bytes=1)
        with self.assertRaisesRegex(libshard.ArgumentError, "is not on GPU 1; give a stream of that GPU"):
            libshard.Loader(self.ds, 7, device="cuda:1", stream=self.consumer.stream.value)
        with self.assertRaisesRegex(libshard.DeviceError, "GPU 2 .they count from 0, and CUDA_VISIBLE_DEVICES"):
            libshard.Loader(self.ds, 7, device="cuda:2")
        with self.assertRaisesRegex(libshard.ArgumentError, "no machine has that many"):
            libshard.Loader(self.ds, 7, device=f"cuda:{2**32 - 2}")
        with self.assertRaisesRegex(TypeError, "a number, or an object with __cuda_stream__"):
            libshard.Loader(self.ds, 7, device="cuda", stream="mine")
        libshard.Loader(self.ds, 7, device="cuda:0").close()


@unittest.skipUnless(FAKE, "for the fake driver")
class Pinned(unittest.TestCase):
    """pin_memory=True: batches in the memory of the CPU, which the consumer copies to the GPU."""

    def setUp(self):
        start_driver()
        self.consumer = Consumer()
        self.addCleanup(self.consumer.close)
        self.ds = libshard.open(made())
        self.room = u64()
        driver("cuMemAlloc", ctypes.byref(self.room), ctypes.c_size_t(7 * 4800))
        self.addCleanup(driver, "cuMemFree", self.room)

    def take(self, use, seed, held=0, **options):
        """Images of two epochs, as copies to the GPU that are queued on the stream `use` find them."""
        CONTROL.seed(seed, 800)
        found, kept = [], []
        with libshard.Loader(self.ds, 7, seed=3, pin_memory=True, fields=["image"], **options) as loader:
            for _ in range(2):
                for batch in loader:
                    image = batch["image"]
                    out = ctypes.create_string_buffer(image.nbytes)
                    self.queue_round_trip(image, out, use)
                    found.append((out, batch.index.tolist()))
                    kept = [*kept, image][-held:] if held else []
                    del batch, image
            CONTROL.settle()
            stats = loader.stats()
        return [(out.raw, index) for out, index in found], stats

    def queue_round_trip(self, image, out, stream):
        for i in range(len(image)):
            at, row = image.data_ptr + i * image.strides[0], image.nbytes // len(image)
            to = u64(self.room.value + i * row)
            driver("cuMemcpyHtoDAsync", to, pointer(at), ctypes.c_size_t(row), pointer(stream))
        driver("cuMemcpyDtoHAsync", out, self.room, ctypes.c_size_t(image.nbytes), pointer(stream))

    def wanted(self, **options):
        with libshard.Loader(self.ds, 7, seed=3, fields=["image"], **options) as loader:
            return [(b["image"].tobytes(), b.index.tolist()) for _ in range(2) for b in loader]

    def test_a_batch_is_used_again_behind_the_copies_of_its_stream(self):
        want, mine = self.wanted(), self.consumer.stream.value
        for seed in range(6):
            for use, options in ((mine, {"stream": mine}), (0, {}), (mine, {"stream": mine, "max_held": 1})):
                with self.subTest(seed=seed, use=use, options=options):
                    found, stats = self.take(use, seed, held=seed % 2, **options)
                    self.assertEqual(found, want)
                    self.assertEqual(stats["device_bytes"], 0)  # it was the consumer who copied
                    self.assertGreater(stats["pinned_bytes"], 0)
        # The small copies back are to memory that is not page-locked.
        self.assertEqual([CONTROL.sins(i) for i in range(1, 6)], [0] * 5)

    def test_batches_of_a_transform_are_page_locked_too(self):
        transform = libshard.Transform(size=40, crop="random", flip=0.5)
        found, stats = self.take(0, 1, transform=transform)
        self.assertEqual(found, self.wanted(transform=transform))
        self.assertGreater(stats["pinned_bytes"], 0)
        self.assertEqual([CONTROL.sins(i) for i in range(1, 6)], [0] * 5)

    def test_a_copy_on_a_stream_that_the_loader_does_not_know_would_be_seen(self):
        want, mine, lost = self.wanted(), self.consumer.stream.value, 0
        for seed in range(8):
            lost += self.take(mine, seed)[0] != want
        self.assertGreater(lost, 0)

    def test_all_of_the_ring_is_page_locked_and_let_go(self):
        with libshard.Loader(self.ds, 7, pin_memory=True) as loader:
            for batch in loader:
                del batch
            self.assertEqual(loader.stats()["pinned_bytes"], loader.ring_bytes)
            self.assertEqual(CONTROL.count(b"cuMemHostRegister"), 5)
        self.assertEqual(CONTROL.count(b"cuMemHostUnregister"), 5)

    def test_what_is_refused_is_told_once(self):
        want = self.wanted()
        for nth in (1, 3):
            CONTROL.reset()
            CONTROL.fail(b"cuMemHostRegister", nth, 2)
            with self.subTest(nth=nth), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                found, stats = self.take(0, nth)
                self.assertEqual(found, want)
                self.assertLess(stats["pinned_bytes"], stats["bytes"])
                (said,) = (str(w.message) for w in caught)
                self.assertRegex(said, rf"^pin_memory=True: slot {nth - 1} of 5 of the ring cannot be page-locked")
                self.assertEqual(caught[0].filename, __file__)

    def test_a_batch_that_lives_longer_than_its_loader(self):
        loader = libshard.Loader(self.ds, 7, seed=3, shuffle=False, pin_memory=True)
        batches = iter(loader)
        image = next(batches)["image"]
        want = image.tobytes()
        next(batches)
        loader.close()
        del loader, batches
        gc.collect()
        self.assertEqual(image.tobytes(), want)
        del image
        self.assertEqual(CONTROL.count(b"cuMemHostUnregister"), 5)

    def test_with_a_gpu_named_it_says_nothing_new(self):
        with libshard.Loader(self.ds, 7, device="cuda", pin_memory=True) as loader:
            self.assertEqual(next(iter(loader))["image"].__dlpack_device__(), (2, 0))

    def test_bad_options(self):
        with libshard.Loader(self.ds, 7, pin_memory=True, stream=0x1234560) as loader:
            for _ in range(2):
                with self.assertRaisesRegex(libshard.DeviceError, "stream 0x1234560"):
                    next(iter(loader))
        for options, words in (
            ({"copy": True}, "copy=True gives each batch memory of its own, which is not page-locked"),
            ({"memory": bytearray(8192)}, "memory of your own is yours to page-lock"),
            ({"pool_bytes": 1}, "pool_bytes needs device='cuda'"),
            ({"stream": object()}, "stream must be None, a number"),
        ):
            with self.assertRaisesRegex((libshard.ArgumentError, TypeError), words):
                libshard.Loader(self.ds, 7, pin_memory=True, **options)

    def test_in_a_thread_that_chose_none_of_several_gpus_it_asks_which(self):
        def job():
            with libshard.Loader(self.ds, 7, pin_memory=True) as loader:
                try:
                    next(iter(loader))
                except libshard.ArgumentError as e:
                    said.append(str(e))

        said = []
        thread = threading.Thread(target=job)
        thread.start()
        thread.join()
        self.assertRegex(said[0], "names no GPU in a thread that has chosen none of several")

    def test_a_child_can_neither_begin_nor_give_back(self):
        before = libshard.Loader(self.ds, 7, pin_memory=True)
        begun = libshard.Loader(self.ds, 7, pin_memory=True)
        batches = iter(begun)
        held = next(batches)
        read, write = os.pipe()
        pid = os.fork()
        if not pid:
            status = 1
            try:
                del held
                for loader in (before, begun):
                    try:
                        next(iter(loader) if loader is before else batches)
                    except libshard.ArgumentError as e:
                        os.write(write, f"{e}\n".encode())
                loader.close()
                status = 0
            finally:
                os._exit(status)
        os.close(write)
        with os.fdopen(read) as f:
            said = f.read()
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertRegex(said, "(?s)fork.*fork")
        del held
        self.assertEqual(sum(1 for _ in batches), len(begun) - 1)
        before.close()
        begun.close()


# A GPU is in the machine.  One loader has batches in the memory of the CPU, and a child's are on the GPU.
IN_A_CHILD = """
import glob, os, sys
from unittest import mock
import libshard
listed = {"/proc/driver/nvidia/gpus/*": ["0000:65:00.0"], "/dev/nvidia[0-9]*": ["/dev/nvidia0"]}
with mock.patch("glob.glob", listed.get), mock.patch("os.access", lambda *_: True):
    with libshard.Loader("set", 7, device=sys.argv[1]) as loader:
        next(iter(loader))
        print("This machine has a GPU" in loader.summary(), flush=True)
pid = os.fork()
if not pid:
    try:
        next(iter(libshard.Loader("set", 7, device="cuda")))
        print("took a batch", flush=True)
    except libshard.ArgumentError as e:
        print(e, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
"""


@unittest.skipUnless(FAKE, "for the fake driver")
class Summary(unittest.TestCase):
    def test_to_look_for_a_gpu_does_not_start_the_driver(self):
        """It would not work in children then, as the second row shows."""
        made()
        for device, wanted in (("cpu", "True\ntook a batch\n"), ("cuda", "False\nthe GPU driver was started by process ")):
            command = [sys.executable, "-c", IN_A_CHILD, device]
            said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            with self.subTest(device=device):
                self.assertEqual(said[: len(wanted)], wanted)


class Stream:
    """As CuPy has it: with its object the stream is gone."""

    alive = 0

    def __init__(self, name="ptr"):
        handle = pointer()
        driver("cuStreamCreate", ctypes.byref(handle), ctypes.c_uint(1))
        Stream.alive += 1
        self.value = handle.value
        setattr(self, name, handle.value)

    def __del__(self):
        driver("cuStreamDestroy", pointer(self.value))
        Stream.alive -= 1


class NewStream(Stream):
    """As cuda.core has it."""

    def __init__(self):
        super().__init__("own")

    def __cuda_stream__(self):
        return 0, self.own


class Cupy(types.ModuleType):
    """What libshard asks CuPy."""

    current = None

    def __init__(self):
        super().__init__("cupy.cuda")

    def get_current_stream(self):
        return self.current


@unittest.skipUnless(FAKE, "for the fake driver")
class Streams(unittest.TestCase):
    """Streams that go, and calls that fail, while batches live."""

    def setUp(self):
        start_driver()
        self.consumer = Consumer()
        self.addCleanup(self.consumer.close)
        self.ds = libshard.open(made())

    def loader(self, **options):
        return libshard.Loader(self.ds, 7, seed=3, device="cuda", **options)

    def go(self, loader, use):
        """Two epochs; `use` gets each batch's first array."""
        for _ in range(2):
            for batch in loader:
                use(next(iter(batch.values())))
                del batch

    def check(self):
        CONTROL.settle()
        self.assertEqual([CONTROL.sins(i) for i in range(1, 7)], [0] * 6)
        self.assertEqual(Stream.alive, 0)

    def test_a_stream_lives_as_long_as_the_loader(self):
        for make in (Stream, lambda: Stream("cuda_stream"), NewStream):
            for options in ({}, {"pool_bytes": "all"}):
                with self.subTest(make=make, options=options), self.loader(stream=make(), **options) as loader:
                    self.assertEqual(Stream.alive, 1)
                    self.go(loader, lambda array: array.__cuda_array_interface__)
                    self.go(loader, lambda array: array.__dlpack__(stream=None))
                    held = next(iter(loader))
                    loader.close()
                    del loader
                    gc.collect()
                    self.assertEqual(Stream.alive, 1)
                    del held
                gc.collect()
                self.check()

    def test_a_stream_lives_as_long_as_a_batch_that_was_taken_on_it(self):
        for make in (Stream, NewStream):
            for options in ({}, {"pool_bytes": "all"}):
                with self.subTest(make=make, options=options), self.loader(**options) as loader:

                    def use(array):
                        array.__dlpack__(stream=(stream := make()))
                        del stream
                        self.assertEqual(Stream.alive, 1)

                    self.go(loader, use)
                self.check()

    def test_the_current_stream_of_cupy_is_known_by_its_number(self):
        cupy = Cupy()
        sys.modules["cupy.cuda"] = cupy
        self.addCleanup(sys.modules.pop, "cupy.cuda")
        with self.loader() as loader:

            def use(array):
                cupy.current = Stream()
                array.__dlpack__(stream=cupy.current.ptr)
                cupy.current = None
                self.assertEqual(Stream.alive, 1)

            self.go(loader, use)
        self.check()

    def test_a_stream_that_nobody_kept_is_told_and_no_slot_is_lost(self):
        loader = self.loader()
        batches = iter(loader)
        array = next(iter(next(batches).values()))
        stream = Stream()
        array.__dlpack__(stream=stream.ptr)
        del stream, array
        for _ in range(3):
            with self.assertRaisesRegex(libshard.DeviceError, "cuStreamGetCtx, stream 0x.*INVALID_HANDLE"):
                next(batches)
        del batches
        loader.close()

    def test_a_batch_that_the_driver_does_not_take_back_goes_back_later(self):
        for call in (b"cuEventRecord", b"cuCtxPushCurrent"):
            for options in ({}, {"pool_bytes": "all"}):
                with self.subTest(call=call, options=options), self.loader(max_held=1, **options) as loader:
                    batches = iter(loader)
                    for _ in range(6):
                        batch = next(batches)
                        CONTROL.fail(call, 1, 999)
                        del batch
                        CONTROL.fail(call, 1, 999)
                        with self.assertRaisesRegex(libshard.DeviceError, "error 999 of the GPU driver"):
                            next(batches)
                CONTROL.settle()

    def test_captures(self):
        mine = self.consumer.stream
        for mode in range(3):
            for options in ({}, {"pool_bytes": "all"}):
                graph = pointer()
                with self.subTest(mode=mode, options=options), self.loader(stream=mine.value, **options) as loader:
                    other = Stream()
                    driver("cuStreamBeginCapture", pointer(other.ptr), ctypes.c_int(mode))
                    batches = iter(loader)
                    batch = next(batches)
                    driver("cuStreamEndCapture", pointer(other.ptr), ctypes.byref(graph))
                    driver("cuGraphDestroy", graph)
                    # One that dies while its stream is captured goes back behind the capture.
                    driver("cuStreamBeginCapture", mine, ctypes.c_int(mode))
                    del batch
                    with self.assertRaisesRegex(libshard.ArgumentError, "is being captured into a CUDA graph"):
                        next(batches)
                    driver("cuStreamEndCapture", mine, ctypes.byref(graph))
                    driver("cuGraphDestroy", graph)
                    self.assertEqual(sum(1 for _ in batches), len(loader) - 1)
                    self.assertEqual(loader.stats()["pageable_bytes"], 0)
                    del other
                self.check()


@unittest.skipUnless(FAKE, "for the fake driver")
class TwoGPUs(unittest.TestCase):
    """A loader stays on its GPU, whichever is current in the thread that asks for a batch."""

    def setUp(self):
        start_driver()
        self.contexts = [pointer(), pointer()]
        for i, context in enumerate(self.contexts):
            driver("cuDevicePrimaryCtxRetain", ctypes.byref(context), ctypes.c_int(70 + i))
        self.addCleanup(self.leave)
        self.ds = libshard.open(made())

    def leave(self):
        CONTROL.settle()
        for i in range(2):
            driver("cuDevicePrimaryCtxRelease", ctypes.c_int(70 + i))

    @contextlib.contextmanager
    def current(self, number):
        """As ``with torch.cuda.device(number)``."""
        popped = pointer()
        driver("cuCtxPushCurrent", self.contexts[number])
        try:
            yield
        finally:
            driver("cuCtxPopCurrent", ctypes.byref(popped))

    def context_of(self, array):
        found = pointer()
        driver("cuPointerGetAttribute", ctypes.byref(found), ctypes.c_int(1), u64(array.data_ptr))
        return [c.value for c in self.contexts].index(found.value)

    def made_on(self, number, name, **options):
        with self.current(number):
            return libshard.Loader(self.ds, 7, seed=3, device=name, **options)

    def go(self, loader, number):
        """An epoch, in which the arrays are where they say."""
        for batch in loader:
            for name in set(batch) - set(batch.item_names):
                self.assertEqual(batch[name].__dlpack_device__(), (2, number))
                self.assertEqual(self.context_of(batch[name]), number)
            del batch

    def each(self):
        """Loaders for GPU 1, named or current, with or without a pool."""
        for made_on, name in ((1, "cuda"), (1, "cuda:1"), (0, "cuda:1")):
            for options in ({}, {"pool_bytes": "all"}):
                CONTROL.reset()
                with self.subTest(made_on=made_on, name=name, options=options):
                    with self.made_on(made_on, name, **options) as loader:
                        yield loader
                    CONTROL.settle()
                    self.assertEqual([CONTROL.sins(i) for i in range(1, 7)], [0] * 6)

    def test_another_gpu_is_current_in_the_loop(self):
        for loader in self.each():
            with self.current(0):
                self.go(loader, 1)
            self.go(loader, 1)

    def test_the_loop_runs_in_a_thread_that_chose_no_gpu(self):
        for loader in self.each():
            seen = []
            thread = threading.Thread(target=lambda loader=loader: (self.go(loader, 1), seen.append(1)))
            thread.start()
            thread.join()
            self.assertEqual(seen, [1])

    def test_batches_die_while_another_gpu_is_current(self):
        for loader in self.each():
            for _ in range(2):
                for batch in loader:
                    array = batch["image"]
                    array.__dlpack__(stream=1)
                    del batch
                    with self.current(0):
                        del array

    def test_a_stream_of_its_own_names_its_gpu(self):
        with self.current(1):
            stream = Stream()
        with self.current(0), libshard.Loader(self.ds, 7, device="cuda", stream=stream) as loader:
            self.go(loader, 1)
        CONTROL.settle()
        with self.current(1):
            del stream, loader


@unittest.skipIf(FAKE, "for a machine without a driver")
class NoDevice(unittest.TestCase):
    def test_it_says_what_to_do(self):
        ds = libshard.open(made())
        with self.assertRaisesRegex(libshard.DeviceError, "libcuda.so.1.*without a GPU use device='cpu'"):
            libshard.Loader(ds, 7, device="cuda")

    def test_memory_is_not_page_locked_and_all_goes_on(self):
        ds = libshard.open(made())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with libshard.Loader(ds, 7, pin_memory=True) as loader, libshard.Loader(ds, 7) as twin:
                for _ in range(2):
                    for batch, other in zip(loader, twin, strict=True):
                        self.assertEqual(batch["image"].tobytes(), other["image"].tobytes())
                self.assertEqual(loader.stats()["pinned_bytes"], 0)
        (said,) = (str(w.message) for w in caught)
        self.assertRegex(said, "^pin_memory=True: batches stay in pageable memory, because .*libcuda.so.1")
        with libshard.Loader(ds, 7, pin_memory=True) as loader:
            batches = iter(loader)
            with self.assertRaisesRegex(UserWarning, "stay in pageable memory"):
                next(batches)
            self.assertEqual(sum(1 for _ in batches), len(loader))

    def test_a_loader_that_is_closed_when_it_warns(self):
        loader = libshard.Loader(libshard.open(made()), 7, pin_memory=True)
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = lambda *said, **options: loader.close()
            with self.assertRaises(libshard.ClosedError):
                next(iter(loader))


if __name__ == "__main__":
    unittest.main()
