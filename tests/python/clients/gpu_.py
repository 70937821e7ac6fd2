# SPDX-License-Identifier: Apache-2.0
"""device="cuda" on a GPU, with PyTorch, CuPy and JAX: the bytes, the streams, captures, and faults

By hand, with `make check-gpu`.  The CPU's batches say what is right.  What ends a context, or a
process, runs in a process of its own: `gpu_.py story NAME`.
"""

import faulthandler
import gc
import os
import subprocess
import sys
import threading
import time
import unittest

import libshard
import libshard.torch
import numpy as np
import torch

N, BATCH = 333, 16
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SLEEP = 20_000_000  # cycles: some 10 ms


def write_images():
    draw = np.random.default_rng(1)
    schema = "image:u8[72,80,3],mask:u8[72,80],label:i64,caption:text[<=40]"
    with libshard.Writer("set", schema, classes=["a", "b"]) as writer:
        for i in range(N):
            writer.write(
                {
                    "image": draw.integers(0, 256, (72, 80, 3), np.uint8),
                    "mask": draw.integers(0, 256, (72, 80), np.uint8),
                    "label": i % 2,
                    "caption": f"image {i}",
                }
            )


def write_whole():
    """Fields as shardpack has them with --fit area."""
    draw = np.random.default_rng(2)
    schema = [
        libshard.Field("image", "uint8", (96 * 96, 3), "ragged", "hwc", "image"),
        libshard.Field("image_size", "uint32", (2,)),
        libshard.Field("label", "int64", (), "tensor", "none", "label"),
    ]
    with libshard.Writer("whole", schema, classes=["a"]) as writer:
        for _ in range(N):
            size = draw.integers(40, 97, 2)
            pixels = draw.integers(0, 256, (int(size.prod()), 3), np.uint8)
            writer.write({"image": pixels, "image_size": size.astype(np.uint32), "label": 0})


def write_large():
    """Images of 75 KiB, which a GPU reads in the page cache one by one."""
    draw = np.random.default_rng(3)
    with libshard.Writer("large", "image:u8[160,160,3],label:i64", classes=["a", "b"]) as writer:
        for i in range(N):
            writer.write({"image": draw.integers(0, 256, (160, 160, 3), np.uint8), "label": i % 2})


def load(path="set", **options):
    return libshard.torch.Loader(path, BATCH, seed=3, **options)


def on_gpu(path="set", **options):
    return load(path, device="cuda", **options)


class Gpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        write_images()
        write_whole()
        write_large()

    def same(self, path="set", both=None, **options):
        """Two epochs and a bit, each item of each batch."""
        both = both or {}
        with load(path, **both) as host, on_gpu(path, **both, **options) as device:
            for _ in range(3):
                count = 0
                for want, got in zip(host, device):
                    self.assertEqual(list(want), list(got))
                    for name in want:
                        if isinstance(want[name], torch.Tensor):
                            self.assertTrue(torch.equal(want[name], got[name].cpu()), (name, want.step))
                        else:
                            self.assertEqual(want[name], got[name])
                    self.assertTrue(torch.equal(want.index, got.index))
                    count += 1
                    del want, got
                self.assertEqual(count, len(host))
            return device.stats()

    def test_bytes_of_each_kind_of_memory_and_stream(self):
        windows = {"shuffle": "windows", "run_records": 2, "window_runs": 1, "lanes": 2}
        for both, pool in (({}, {}), ({}, {"pool_bytes": "all"}), (windows, {"pool_bytes": 4 << 20})):
            for stream in (None, torch.cuda.Stream()):
                with self.subTest(pool=pool, stream=stream), torch.cuda.stream(stream):
                    self.same(both=both, **pool)

    def test_records_and_runs_come_out_of_the_page_cache(self):
        crops = {"transform": libshard.Transform(crop="random-resized", size=64, flip=0.5, dtype="bf16", layout="hwc")}
        windows = {"shuffle": "windows", "run_records": 8, "window_runs": 1, "lanes": 2}
        for path, both, pool in (
            ("large", {}, {}),
            ("large", crops, {}),
            ("set", windows, {"pool_bytes": 6 << 20}),
        ):
            with self.subTest(path, both=both):
                stats = self.same(path, both=both, **pool)
                self.assertGreater(stats["cached_bytes"], stats["device_bytes"] // 3)
                self.assertGreater(stats["registered_bytes"], 0)
                self.assertGreater(stats["device_checked_count"], 0)
                self.assertEqual(stats["recopied_count"], 0)

    def test_images_are_on_the_gpu_with_the_strides_asked_for(self):
        batch = next(iter(on_gpu(channels_last=True)))
        self.assertTrue(batch["image"].is_cuda)
        self.assertEqual((tuple(batch["image"].shape), batch["image"].stride()[1:]), ((BATCH, 3, 72, 80), (1, 240, 3)))
        self.assertFalse(batch.index.is_cuda or batch.valid.is_cuda)

    def test_transforms_make_the_numbers_of_the_cpu(self):
        for crop, more in (("center", {}), ("random", {}), ("random-resized", {}), ("random-resized", {"views": 2})):
            for dtype in ("u8", "f16", "bf16", "f32"):
                for layout in ("chw", "hwc"):
                    t = {"crop": crop, "size": 64, "flip": 0.5, "dtype": dtype, "layout": layout, **more}
                    if dtype != "u8":
                        t.update(mean=MEAN, std=STD)
                    with self.subTest(**t):
                        both = {"transform": libshard.Transform(field="image", **t), "fields": ["image", "label"]}
                        self.same(both=both)
                        self.same(both=both, pool_bytes="all")

    def test_whole_images(self):
        self.same("whole")
        for crop in ("center", "random", "random-resized"):
            both = {"transform": libshard.Transform(crop=crop, size=40, flip=0.5, dtype="f16", layout="chw")}
            with self.subTest(crop=crop):
                self.same("whole", both=both)
                self.same("whole", both=both, pool_bytes="all")

    def test_a_resumed_loader_goes_on(self):
        device = on_gpu()
        want = [b.index.tolist() for b in load()]
        for _ in zip(range(7), device):
            pass
        state = device.state_dict()
        other = on_gpu()
        other.load_state_dict(state)
        self.assertEqual([b.index.tolist() for b in other], want[7:])

    def test_memory_is_used_again_behind_kernels_that_are_late(self):
        """The batch is dropped while its kernels wait behind another."""
        want = [b["image"].double().sum().item() for b in load()]
        found = []
        for batch in on_gpu():
            torch.cuda._sleep(SLEEP)
            found.append(batch["image"].double().sum())
            del batch
        self.assertEqual([f.item() for f in found], want)

    def test_a_second_stream_that_is_joined_as_the_documents_say(self):
        main, other = torch.cuda.current_stream(), torch.cuda.Stream()
        want, found = [b["image"].double().sum().item() for b in load()], []
        for batch in on_gpu():
            other.wait_stream(main)
            with torch.cuda.stream(other):
                torch.cuda._sleep(SLEEP)
                found.append(batch["image"].double().sum())
            main.wait_stream(other)
            del batch
        torch.cuda.synchronize()
        self.assertEqual([f.item() for f in found], want)

    def test_the_last_tensor_may_die_in_another_thread(self):
        for batch in on_gpu():
            box = [batch]
            del batch
            thread = threading.Thread(target=box.clear)
            thread.start()
            thread.join()

    def test_a_page_locked_batch_may_be_dropped_while_it_is_copied(self):
        transform = libshard.Transform(field="image", size=64, crop="random", dtype="f32")
        for other in (None, torch.cuda.Stream()):
            for options in ({}, {"transform": transform, "fields": ["image", "label"]}):
                with self.subTest(other=other, options=options):
                    twin = load(**options)
                    wanted = [batch["image"].clone() for _ in range(3) for batch in twin]
                    found, loader = [], load(pin_memory=True, **options)
                    for _ in range(3):
                        for batch in loader:
                            self.assertEqual([n for n, v in batch.items() if not v.is_pinned()], [])
                            with torch.cuda.stream(other):
                                torch.cuda._sleep(SLEEP)
                                found.append(batch["image"].to("cuda", non_blocking=True))
                            del batch
                    torch.cuda.synchronize()
                    self.assertEqual(len(found), 3 * len(loader))
                    for index, (want, got) in enumerate(zip(wanted, found)):
                        self.assertTrue(torch.equal(want, got.cpu()), index)

    def test_a_graph_is_captured_while_a_loader_begins(self):
        """It page-locks and copies meanwhile.  PyTorch could not make tensors then."""
        x, graph, kept = torch.zeros(1 << 20, device="cuda"), torch.cuda.CUDAGraph(), []
        loader = libshard.Loader("set", N, prefetch=100, device="cuda", stream=torch.cuda.Stream())
        thread = threading.Thread(target=lambda: kept.append(next(iter(loader))))
        with torch.cuda.graph(graph):
            thread.start()
            while thread.is_alive():
                x.add_(1)
                time.sleep(0.001)
                kept.append(None)
        thread.join()
        graph.replay()
        self.assertEqual(x[0].item(), len(kept) - 1)
        self.assertGreater(loader.stats()["pinned_bytes"], 0)
        batch = next(b for b in kept if b is not None)
        self.assertEqual(batch["image"].shape, (N, 72, 80, 3))

    def test_a_batch_inside_of_a_capture_is_refused(self):
        batches = iter(on_gpu())
        next(batches)
        torch.cuda.synchronize()
        with self.assertRaisesRegex(libshard.Error, "captur"), torch.cuda.graph(torch.cuda.CUDAGraph()):
            next(batches)

    def test_a_graph_is_replayed_on_batches(self):
        fixed, graph = torch.zeros(BATCH, 72, 80, 3, dtype=torch.uint8, device="cuda"), torch.cuda.CUDAGraph()
        out = torch.zeros((), dtype=torch.float64, device="cuda")
        with torch.cuda.graph(graph):
            out.copy_(fixed.double().sum())
        for want, got in zip(load(), on_gpu()):
            if len(got["image"]) == BATCH:
                fixed.copy_(got["image"])
                graph.replay()
                self.assertEqual(out.item(), want["image"].double().sum().item())

    def test_cupy_takes_arrays(self):
        import cupy

        options = {"batch_size": BATCH, "seed": 3}
        with libshard.Loader("set", **options) as host, libshard.Loader("set", device="cuda", **options) as there:
            for want, got in zip(host, there):
                for take in (cupy.from_dlpack, cupy.asarray):
                    np.testing.assert_array_equal(take(got["image"]).get(), np.asarray(want["image"]))

    def test_jax_takes_arrays(self):
        import jax

        draw = np.random.default_rng(3)  # rows without anything between them, which JAX wants
        libshard.pack({"image": draw.integers(0, 256, (N, 64, 64, 3), np.uint8)}, None, "dense")
        with libshard.Loader("dense", BATCH) as host, libshard.Loader("dense", BATCH, device="cuda") as there:
            for want, got in zip(host, there):
                taken = jax.dlpack.from_dlpack(got["image"])
                self.assertEqual(taken.devices().pop().platform, "gpu")
                np.testing.assert_array_equal(np.asarray(taken + 0), np.asarray(want["image"]))
                del taken

    def test_loaders_leave_nothing_behind(self):
        def free():
            gc.collect()
            torch.cuda.synchronize()
            return torch.cuda.mem_get_info()[0]

        next(iter(on_gpu(pool_bytes="all")))
        before = free()
        for _ in range(30):
            with on_gpu(pool_bytes="all") as loader:
                next(iter(loader))
            del loader
        self.assertLess(before - free(), 8 << 20)

    def test_an_accelerator_of_accelerate(self):
        from accelerate import Accelerator

        accelerator = Accelerator()
        loader = accelerator.prepare(on_gpu())
        for want, got in zip(load(), loader):
            self.assertTrue(torch.equal(want["image"], got["image"].cpu()))

    def test_stories(self):
        for name, said in (
            ("no_memory", "DeviceError.*(memory|MEMORY)"),
            ("fault", "DeviceError"),
            ("end", "^$"),
            ("fork", "DeviceError|refused"),
        ):
            with self.subTest(name):
                done = subprocess.run(
                    [sys.executable, __file__, "story", name], capture_output=True, text=True, timeout=40
                )
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, said)


# ---- stories: each ends its process ----


def no_memory():
    """The GPU is full: the error says how much memory is missing, and the process goes on."""
    next(iter(on_gpu()))
    free, _ = torch.cuda.mem_get_info()
    hog = [torch.empty(free - (64 << 20), dtype=torch.uint8, device="cuda")]
    try:
        while True:
            hog.append(torch.empty(2 << 20, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError:
        pass
    try:
        next(iter(on_gpu(pool_bytes="all")))
    except libshard.DeviceError as e:
        print("DeviceError", e)
    hog.clear()
    torch.cuda.empty_cache()
    next(iter(on_gpu()))


def fault():
    """A kernel of the trainer faults: the next batches say so, and do not hang."""
    batches = iter(on_gpu())
    next(batches)
    torch.zeros(1, device="cuda")[torch.tensor([1 << 30], device="cuda")]
    begin = time.time()
    try:
        for _ in range(50):
            next(batches)
    except libshard.DeviceError as e:
        print(f"DeviceError after {time.time() - begin:.1f} s", e)


def end():
    """The process ends with a batch in hand."""
    globals()["kept"] = next(iter(on_gpu()))


def fork():
    """A child cannot use the GPU of its parent."""
    batches = iter(on_gpu())
    next(batches)
    child = os.fork()
    if not child:
        try:
            next(batches)
            print("taken without a word", flush=True)
            os._exit(1)
        except libshard.Error as e:
            print("refused:", type(e).__name__, e, flush=True)
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    next(batches)


if __name__ == "__main__":
    if sys.argv[1:2] == ["story"]:
        faulthandler.dump_traceback_later(30, exit=True)
        globals()[sys.argv[2]]()
    else:
        unittest.main(verbosity=2)
