# SPDX-License-Identifier: Apache-2.0
"""libshard.torch: batches and records as tensors, against what NumPy wrote."""

import contextlib
import ctypes
import gc
import inspect
import itertools
import json
import mmap
import os
import pickle
import queue
import shutil
import tempfile
import threading
import time
import traceback
import unittest
import warnings
import weakref
from collections import OrderedDict
from unittest import mock

import cut
import data
import libshard.torch
import misuse
import numpy as np
import torch
import torch.distributed.device_mesh
from torch.distributed import checkpoint
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.data import DataLoader, Subset, default_collate

SIDE = 40
N = 103
DTYPES = {"bfloat16": torch.bfloat16} | {name: getattr(torch, name) for name in data.DTYPES.values()}


def setUpModule():
    global want
    want = data.pack_images("set", N, "--shard-records", "30")


def bits(tensor):
    """Bytes of any dtype."""
    return tensor.contiguous().view(torch.uint8).numpy().tobytes()


class Pieces:
    """PyTorch's page-locked memory, for a PyTorch without CUDA.

    It keeps what it gave out, as PyTorch does while copies are under way.  With ``refuse_at`` it
    refuses from that piece on.
    """

    def __init__(self, refuse_at=10**9, keep=True):
        self.given, self.alive, self.refuse_at, self.keep = 0, [], refuse_at, keep

    def empty(self, count, dtype, pin_memory=False, **options):
        if not pin_memory:
            return EMPTY(count, dtype=dtype, **options)
        self.given += 1
        if self.given >= self.refuse_at:
            raise RuntimeError("CUDA error: out of memory")
        piece = EMPTY(count + 64, dtype=dtype, **options)[64 * (self.given % 2) :][:count]
        self.alive.append(piece.untyped_storage() if self.keep else weakref.ref(piece))
        return piece

    def holds(self, tensor):
        """Is this a view of one of them, so that PyTorch knows of copies from it?"""
        return any(tensor.untyped_storage().data_ptr() == s.data_ptr() for s in self.alive)

    @contextlib.contextmanager
    def in_place(self):
        def of_shape(size, **options):
            return self.empty(size, **options) if size else EMPTY(size, **options)

        with (
            mock.patch.object(torch.cuda, "is_available", lambda: True),
            mock.patch.object(torch, "empty", of_shape),
            mock.patch.object(torch.Tensor, "pin_memory", lambda tensor: Small(tensor.clone())),
        ):
            yield self


class Small(torch.Tensor):
    """What pin_memory() of a tensor returned."""


EMPTY = torch.empty


class PageLocked(unittest.TestCase):
    def batches(self, epochs=2, **options):
        with libshard.torch.Loader("set", 7, seed=3, **options) as loader:
            for _ in range(epochs):
                yield from loader

    def check(self, batch):
        self.assertEqual(bits(batch["image"]), want["image"][batch.index.tolist()].tobytes())

    def test_batches_are_the_same_and_all_tensors_are_page_locked(self):
        transform = libshard.Transform(size=40, crop="random")
        for options in ({}, {"channels_last": True}, {"transform": transform}, {"prefetch": 1, "copy": True}):
            with self.subTest(options=options), Pieces().in_place() as pieces:
                for batch, twin in zip(
                    self.batches(pin_memory=True, **options), self.batches(**options), strict=True
                ):
                    self.assertEqual(list(batch), list(twin))
                    for name, tensor in batch.items():
                        self.assertTrue(torch.equal(tensor, twin[name]), name)
                        self.assertEqual(tensor.stride(), twin[name].stride())
                        self.assertTrue(pieces.holds(tensor) if name == "image" else isinstance(tensor, Small), name)
                    self.assertEqual(batch.epoch, twin.epoch)
                    del batch, twin, tensor

    def test_a_batch_that_died_is_not_overwritten_while_it_is_copied(self):
        def count_changed(**options):
            """Of images whose batches are gone, when all others have come."""
            came, loader = [], libshard.torch.Loader("set", 7, seed=3, **options)
            for _ in range(2):
                for batch in loader:
                    image = batch["image"]
                    came.append((image.data_ptr(), bits(image)))
                    del batch, image
            changed = sum(ctypes.string_at(at, len(bytes_)) != bytes_ for at, bytes_ in came)
            loader.close()
            return changed

        with Pieces().in_place():
            self.assertEqual(count_changed(pin_memory=True), 0)
            self.assertGreater(count_changed(), 0)

    def test_any_number_may_be_held_and_the_rest_goes_back(self):
        with Pieces(keep=False).in_place() as pieces:
            loader = libshard.torch.Loader("set", 7, seed=3, pin_memory=True)
            batches = iter(loader)
            held = [next(batches) for _ in range(9)]
            for batch in held:
                self.check(batch)
            del held, batch
            for batch in batches:
                del batch
                self.assertLessEqual(sum(piece() is not None for piece in pieces.alive), 4)
            last = next(iter(loader))
            loader.close()
            self.check(last)
            del last, loader, batches
            gc.collect()
            self.assertEqual(sum(piece() is not None for piece in pieces.alive), 0)

    def test_a_loader_goes_on_elsewhere(self):
        with Pieces().in_place():
            order = [batch.index.tolist() for batch in self.batches()]
            with libshard.torch.Loader("set", 7, seed=3, pin_memory=True) as loader:
                batches = iter(loader)
                for _ in range(3):
                    next(batches)
                state = loader.state_dict()
                loader.set_epoch(1)
                self.assertEqual([batch.index.tolist() for batch in loader], order[len(loader) :])
                loader.load_state_dict(state)
                self.assertEqual([batch.index.tolist() for batch in loader], order[3 : len(loader)])

    def test_what_is_refused_is_told_once_and_all_goes_on(self):
        for refuse_at in (1, 2, 5, 9):
            with (
                self.subTest(refuse_at=refuse_at),
                Pieces(refuse_at).in_place(),
                warnings.catch_warnings(record=True) as caught,
            ):
                warnings.simplefilter("always")
                for batch, twin in zip(self.batches(pin_memory=True), self.batches(), strict=True):
                    self.assertTrue(torch.equal(batch["image"], twin["image"]))
                    del batch, twin
                (said,) = (str(w.message) for w in caught)
                self.assertRegex(said, r"^pin_memory=True: batches are not all in .*refused \d+ bytes .CUDA error")
                self.assertEqual(caught[0].filename, __file__)

    def test_small_fields_that_are_refused_come_too(self):
        def refuse(tensor):
            raise RuntimeError("CUDA error: out of memory")

        with (
            Pieces().in_place(),
            mock.patch.object(torch.Tensor, "pin_memory", refuse),
            self.assertWarnsRegex(UserWarning, "refused 56 bytes .CUDA error"),
        ):
            for batch, twin in zip(self.batches(pin_memory=True), self.batches(), strict=True):
                self.assertTrue(torch.equal(batch["label"], twin["label"]))
                self.check(batch)
                del batch, twin

    def test_a_default_device_is_not_that_of_batches(self):
        self.addCleanup(torch.set_default_device, None)
        torch.set_default_device("meta")
        torch.empty(1)  # now PyTorch knows which functions obey
        for refuse_at in (10**9, 1):
            with Pieces(refuse_at).in_place(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for batch in self.batches(pin_memory=True):
                    self.assertEqual(batch["image"].device.type, "cpu")
                    self.check(batch)
                    del batch

    def test_without_cuda_it_warns_and_goes_on(self):
        if torch.cuda.is_available():
            self.skipTest("there is a GPU")
        words = "^pin_memory=True: batches stay in pageable memory, because torch.cuda.is_available.. says no"
        with self.assertWarnsRegex(UserWarning, words) as w:
            loader = libshard.torch.Loader("set", 7, seed=3, pin_memory=True)
        self.assertEqual(w.filename, __file__)
        self.assertEqual(sum(len(batch.index) for batch in loader), N)

    def test_a_summary_names_a_gpu_that_pytorch_can_use(self):
        gpus = {"/proc/driver/nvidia/gpus/*": ["0000:65:00.0"], "/dev/nvidia[0-9]*": ["/dev/nvidia0"]}
        for version, pinned in ((None, False), ("13.0", False), ("13.0", True)):
            with (
                self.subTest(version=version, pinned=pinned),
                mock.patch.object(libshard.torch.Loader, "_may_use_gpu", version is not None),
                Pieces().in_place(),
                libshard.torch.Loader("set", 7, pin_memory=pinned) as loader,
            ):
                next(iter(loader))
                with mock.patch("glob.glob", gpus.get), mock.patch("os.access", lambda *_: True):
                    said = "This machine has a GPU" in loader.summary()
                self.assertEqual(said, version is not None and not pinned)
        self.assertEqual(libshard.torch.Loader._may_use_gpu, torch.version.cuda is not None)

    def test_a_stream_is_refused(self):
        for said in (True, False):
            with (
                mock.patch.object(torch.cuda, "is_available", lambda said=said: said),
                self.assertRaisesRegex(libshard.ArgumentError, "PyTorch knows which streams copy a tensor"),
            ):
                libshard.torch.Loader("set", 7, pin_memory=True, stream=1)


class Loading(unittest.TestCase):
    def check(self, batch):
        index = batch.index
        self.assertEqual((batch.index.dtype, batch.flags.dtype), (torch.int64, torch.uint8))
        self.assertTrue(torch.equal(batch["image"], torch.from_numpy(want["image"])[index]))
        self.assertTrue(torch.equal(batch["label"], torch.from_numpy(want["label"])[index]))
        return index.tolist()

    def test_without_cuda_it_says_so(self):
        if not torch.cuda.is_available():
            with self.assertRaisesRegex(libshard.DeviceError, "torch.cuda.is_available.. says no.*use device='cpu'"):
                libshard.torch.Loader("set", 7, device="cuda")

    def test_options_of_a_dataloader(self):
        for option, words in (
            ("num_workers", ": a loader has no worker processes"),
            ("channel_last", "; did you mean channels_last="),
            ("what", "; there are channels_last, rank, world, epochs, mesh, dims, tokens, fields"),
        ):
            with self.assertRaisesRegex(TypeError, f"^libshard.torch.Loader has no option {option}={words}"):
                libshard.torch.Loader("set", 8, **{option: None})
        for option, words in (
            ("num_workers", ": that is an option of the DataLoader around it: DataLoader.*, num_workers="),
            ("transforms", "; did you mean transform="),
        ):
            with self.assertRaisesRegex(TypeError, f"^libshard.torch.ShardDataset has no option {option}={words}"):
                libshard.torch.ShardDataset("set", **{option: None})
        # Every word of PyTorch's own is either an option here, or answered with what is here instead.
        ours = {*inspect.signature(libshard.Loader).parameters, "dataset", "batch_size"}
        for option in inspect.signature(DataLoader.__init__).parameters:
            if option not in ours | {"self"}:
                with self.assertRaisesRegex(TypeError, f"^libshard.torch.Loader has no option {option}=: [a-z]"):
                    libshard.torch.Loader("set", 8, **{option: None})

    def test_an_epoch_is_a_loop(self):
        with libshard.torch.Loader("set", 8, seed=5) as loader, libshard.Loader("set", 8, seed=5) as arrays:
            self.assertEqual((len(loader), loader.batch_size, len(loader.dataset)), (13, 8, N))
            for epoch in range(2):
                rows = []
                for step, (batch, other) in enumerate(zip(loader, arrays)):
                    self.assertEqual(
                        (batch.epoch, batch.step, batch.position), (other.epoch, other.step, other.position)
                    )
                    self.assertEqual(batch.flags.tolist(), other.flags.tolist())
                    self.assertEqual((batch.epoch, batch.step), (epoch, step))
                    rows += self.check(batch)
                self.assertEqual(rows, loader.indices(epoch, 0, N).tolist())
            loader.set_epoch(7)
            self.assertEqual(next(iter(loader)).index.tolist(), loader.indices(7, 0, 8).tolist())

    def test_every_dtype_bit_by_bit(self):
        a = data.every_dtype(60)
        data.pack_raw("dtypes", a, data.dtype_schema())
        seen = 0
        for batch in libshard.torch.Loader("dtypes", 7):
            for name, dtype in data.DTYPES.items():
                self.assertEqual(batch[name].dtype, DTYPES[dtype])
                self.assertEqual(bits(batch[name]), a[name][batch.index.numpy()].tobytes())
                seen += 1
            half = [data.bfloat16(x) for x in a["bf16"][batch.index.numpy()].ravel()]
            np.testing.assert_array_equal(batch["bf16"].float().numpy().ravel(), np.array(half, np.float32))
        self.assertEqual(seen, 9 * 13)
        sample = libshard.torch.ShardDataset("dtypes")[11]
        for name, dtype in data.DTYPES.items():
            self.assertEqual((sample[name].dtype, sample[name].shape), (DTYPES[dtype], (3,)))
            self.assertEqual(bits(sample[name]), a[name][11].tobytes())

    def test_channels_last_is_the_same_memory(self):
        with libshard.torch.Loader("set", 8, channels_last=True) as loader:
            for batch in loader:
                image = batch["image"]
                n = len(batch["label"])
                self.assertEqual(image.shape, (n, 3, SIDE, SIDE))
                self.assertTrue(image.is_contiguous(memory_format=torch.channels_last))
                np.testing.assert_array_equal(image.permute(0, 2, 3, 1).numpy(), want["image"][batch.index.numpy()])

    def test_channels_of_transformed_images(self):
        """What the transform delivers is turned, whatever the dataset has."""
        for layout, views in (("hwc", 1), ("chw", 1), ("hwc", 2)):
            augment = libshard.Transform(size=SIDE - 2, dtype="f32", layout=layout, views=views)
            with libshard.torch.Loader("set", 8, channels_last=True, transform=augment) as loader:
                for batch in loader:
                    image, middle = batch["image"], want["image"][batch.index.numpy()][:, 1:-1, 1:-1]
                    self.assertEqual(image.shape[-3:], (3, SIDE - 2, SIDE - 2))
                    self.assertEqual((image.dtype, image.ndim), (torch.float32, 3 + (views > 1) + 1))
                    for view in image.unbind(1) if views > 1 else [image]:
                        got = (view * 255).round().permute(0, 2, 3, 1).numpy()
                        np.testing.assert_array_equal(got, middle)

    def test_images_without_channels_are_not_turned(self):
        grey = libshard.Field("image", "uint8", (20, 30), semantic="image")
        samples = [{"image": np.full((20, 30), i, np.uint8)} for i in range(16)]
        ds = libshard.pack(samples, [grey], "grey")
        for views, shape in ((1, (8, 10, 16)), (2, (8, 2, 10, 16))):
            augment = libshard.Transform(size=(10, 16), views=views)
            with libshard.torch.Loader(ds, 8, channels_last=True, transform=augment, shuffle=False) as loader:
                for batch in loader:
                    self.assertEqual(batch["image"].shape, shape)
                    self.assertEqual(batch["image"].flatten(1)[:, 0].tolist(), batch.index.tolist())

    def test_fields_that_might_be_images_are_named(self):
        """With the axes of images, and no semantic: nothing turns them, so it is said."""
        zeros = np.zeros((6, 6, 3), np.uint8)
        for name, schema, said in (
            ("only", {"img": None}, r"img: uint8\[6,6,3\] stays as it is stored.*\"img\": \"image\[6,6,3\]\"}, NEW"),
            ("beside", {"image": None, "img": None}, r"channels_last=True: img: uint8"),
            ("said", {"image": None, "img": "image[6,6,3]"}, None),
        ):
            ds = libshard.pack([{"image": zeros, "img": zeros}] * 8, schema, name)
            for make in (lambda: libshard.torch.Loader(ds, 8, channels_last=True),
                         lambda: libshard.torch.ShardDataset(ds, channels_last=True)):  # fmt: skip
                with self.subTest(name):
                    if said is None:
                        self.assertEqual(make()._turned, {"image", "img"})
                        continue
                    with self.assertWarnsRegex(UserWarning, said):
                        make()
            if name == "beside":
                libshard.torch.Loader(ds, 8, channels_last=True, fields=["image"])
        with self.assertRaisesRegex(libshard.ArgumentError, r"no field has images; pack.*\"img\": \"image\[6,6,3\]\""):
            libshard.torch.Loader("only", 8, transform=libshard.Transform(size=4))
        with self.assertRaisesRegex(libshard.ArgumentError, r"'img' u8\[6,6,3\] \(images as well\)"):
            libshard.torch.Loader("said", 8, transform=libshard.Transform(size=4, field="image"))

    def test_whole_images(self):
        """Each has a size of its own.  Those of one row, and of one column, are turned as well."""
        schema = [
            libshard.Field("image", "uint8", (40, 3), "ragged", "hwc", "image"),
            libshard.Field("image_size", "uint32", (2,)),
        ]
        whole = [np.random.default_rng(i).integers(0, 256, (1 + i % 8, 1 + i % 5, 3), np.uint8) for i in range(40)]
        samples = [{"image": x.reshape(-1, 3), "image_size": np.array(x.shape[:2], np.uint32)} for x in whole]
        ds = libshard.pack(samples, schema, "whole")
        for turned in (False, True):
            with libshard.torch.Loader(ds, 8, channels_last=turned) as loader:
                for batch in loader:
                    memory = batch["image"].untyped_storage().data_ptr()
                    for image, i in zip(batch.images(), batch.index.tolist(), strict=True):
                        want = whole[i].transpose(2, 0, 1) if turned else whole[i]
                        np.testing.assert_array_equal(image.numpy(), want)
                        self.assertEqual(image.untyped_storage().data_ptr(), memory)
            with libshard.torch.Loader(ds, 8, channels_last=turned, transform=libshard.Transform(size=1)) as loader:
                for batch in loader:
                    self.assertEqual(batch["image"].shape[1:], (3, 1, 1) if turned else (1, 1, 3))

    def test_tensors_lie_in_the_ring(self):
        with libshard.torch.Loader("set", 8) as probe:
            need = probe.ring_bytes
        ring = mmap.mmap(-1, need)
        begin = np.frombuffer(ring, np.uint8).ctypes.data
        for turned in (False, True):
            with libshard.torch.Loader("set", 8, memory=ring, channels_last=turned) as loader:
                for batch in loader:
                    p = batch["image"].data_ptr()
                    self.assertTrue(begin <= p and p + batch["image"].nbytes <= begin + need)
                    self.assertFalse(begin <= batch["label"].data_ptr() < begin + need)
                del batch

    def test_slots_come_back_when_tensors_die(self):
        with libshard.torch.Loader("set", 8, prefetch=1, max_held=1) as loader:
            seen = {batch["image"].data_ptr() for _ in range(5) for batch in loader}
            self.assertLessEqual(len(seen), 3)
            derived = None
            for batch in loader:  # a view of a view holds it as well, here for one step
                image = batch["image"][2:].permute(0, 3, 1, 2)[:, 1]
                self.assertTrue(derived is None or torch.equal(derived, kept))
                derived, kept = image.float(), image.clone().float()
                del image
        with libshard.torch.Loader("set", 8, max_held=2) as loader:
            held = []
            with self.assertRaisesRegex(
                libshard.ArgumentError, r"3 batches are still held, of step 0 \(image\), .* Drop them"
            ):
                for batch in loader:
                    held.append(batch["image"][0])
            self.assertEqual(
                [bits(t) for t in held],
                [want["image"][loader.indices(0, 8 * i, 1).tolist()[0]].tobytes() for i in range(3)],
            )

    def test_memory_that_nobody_holds_would_be_seen(self):
        """Of a loader whose tensors were no part of its batches."""
        loose = lambda a, *how: torch.frombuffer(  # noqa: E731
            (ctypes.c_uint8 * a.nbytes).from_address(a.data_ptr), dtype=torch.uint8
        )
        with (
            mock.patch.object(libshard.torch, "_tensor", loose),
            libshard.torch.Loader("set", 8, prefetch=1, max_held=1) as loader,
        ):
            held = []
            for batch in loader:
                held.append((batch["image"], batch["image"].clone()))
                if len(held) == 6:
                    break
            self.assertFalse(torch.equal(*held[0]))

    def test_a_tensor_may_die_in_another_thread_and_outlive_its_loader(self):
        loader = libshard.torch.Loader("set", 8, prefetch=1, max_held=1)
        for _ in range(5):
            for batch in loader:
                held = [batch["image"]]
                del batch
                thread = threading.Thread(target=held.clear)
                thread.start()
                thread.join()
        batch = next(iter(loader))
        part, index = batch["image"][3], batch.index.tolist()
        loader.close()
        del loader, batch
        gc.collect()
        self.assertEqual(bits(part), want["image"][index[3]].tobytes())

    def test_writing_to_a_batch_changes_no_file(self):
        with libshard.torch.Loader("set", 8) as loader:
            for _ in range(3):
                for batch in loader:
                    self.check(batch)
                    batch["image"].bitwise_not_()
                    batch["label"].zero_()
        libshard.open("set").verify()

    def test_writing_to_a_batch_changes_no_other(self):
        """Also what is behind the end of a field that varies."""
        rows = [{"tokens": list(range(1, 2 + i % 7))} for i in range(60)]
        libshard.pack(rows, [libshard.Field("tokens", "uint16", (8,), kind="ragged")], "written")
        with libshard.torch.Loader("written", 8, prefetch=1, max_held=1, seed=1, tokens=None) as loader:
            for _ in range(3):
                for batch in loader:
                    for i, row in zip(batch.index.tolist(), batch["tokens"]):
                        want = rows[i]["tokens"]
                        self.assertEqual(row.tolist(), want + [0] * (8 - len(want)))
                    batch["tokens"].fill_(65535)
                    batch["tokens_length"].zero_()

    def test_the_order_is_of_the_seed_alone(self):
        orders = []
        for seed in (1, 2):
            torch.manual_seed(seed)
            np.random.seed(seed)
            orders.append([b.index.tolist() for b in libshard.torch.Loader("set", 8)])
        self.assertEqual(orders[0], orders[1])
        self.assertEqual(orders[0], [b.index.tolist() for b in libshard.torch.Loader("set", 8, seed=0)])
        self.assertNotEqual(orders[0], [b.index.tolist() for b in libshard.torch.Loader("set", 8, seed=1)])

    def test_gradients_through_what_was_made_of_a_batch(self):
        layer = torch.nn.Conv2d(3, 4, 3, stride=2).to(memory_format=torch.channels_last)
        with libshard.torch.Loader("set", 8, channels_last=True, max_held=1) as loader:
            for batch in loader:
                loss = layer(batch["image"].float() / 255).square().mean()
                del batch
                loss.backward()
        self.assertTrue(torch.isfinite(layer.weight.grad).all())

    def test_states(self):
        with libshard.torch.Loader("set", 8, seed=3) as loader:
            rows = []
            for batch in loader:
                rows += self.check(batch)
                if batch.step == 4:
                    state = pickle.loads(pickle.dumps(loader.state_dict()))
            with libshard.torch.Loader("set", 8, seed=3) as other, libshard.torch.Loader("set", 8, seed=4) as wrong:
                other.load_state_dict(state)
                self.assertEqual(sum((self.check(b) for b in other), []), rows[40:])
                self.assertEqual(other.stats()["batch_count"], 8)
                with self.assertRaises(libshard.MismatchError):
                    wrong.load_state_dict(state)

    def test_a_distributed_checkpoint_for_another_world(self):
        with libshard.torch.Loader("set", 8, seed=3) as loader:
            batches = iter(loader)
            for _ in range(3):
                next(batches)
            with warnings.catch_warnings(action="ignore"):  # that there is no group
                checkpoint.save({"dataloader": loader}, checkpoint_id="checkpoint")
            rest = [sorted(self.check(batch)) for batch in batches if len(batch.index) == 8]
        ranks = [libshard.torch.Loader("set", 4, seed=3, rank=rank, world=2) for rank in range(2)]
        for loader in ranks:
            with warnings.catch_warnings(action="ignore"):
                checkpoint.load({"dataloader": loader}, checkpoint_id="checkpoint")
        self.assertEqual([sorted(self.check(a) + self.check(b)) for a, b in zip(*ranks, strict=True)], rest)
        self.assertEqual(len(rest), 9)

    def test_batches_as_frameworks_rebuild_them(self):
        batch = next(iter(libshard.torch.Loader("set", 8)))
        moved = type(batch)(OrderedDict((k, v.to("cpu", copy=True)) for k, v in batch.items()))
        self.assertEqual(list(moved), ["image", "label", "index", "flags", "valid"])
        for name in moved:
            self.assertTrue(torch.equal(moved[name], batch[name]))
        self.assertEqual([moved[name].dtype for name in ("index", "flags", "valid")],
                         [torch.int64, torch.uint8, torch.bool])  # fmt: skip
        with self.assertRaisesRegex(AttributeError, r"batch\['index'\] is there"):
            moved.index  # noqa: B018
        bare = next(iter(libshard.torch.Loader("set", 8, items=())))
        self.assertEqual((list(bare), bare.index.dtype, bare.valid.all()), (["image", "label"], torch.int64, True))
        again = pickle.loads(pickle.dumps(batch))
        self.assertEqual((type(again), again.item_names, again.step), (type(batch), batch.item_names, 0))
        self.assertTrue(torch.equal(again["image"], batch["image"]) and torch.equal(again.valid, batch.valid))

    def test_batches_are_trees(self):
        from torch.utils import _pytree as pytree

        for items, names in (("rows", ("index", "flags", "valid")), ("valid", ("valid",)), ((), ())):
            batch = next(iter(libshard.torch.Loader("set", 8, items=items)))
            mapped = pytree.tree_map(lambda t: t * 1, batch)
            self.assertEqual((type(mapped), list(mapped)), (libshard.Batch, ["image", "label", *names]))
            self.assertEqual(mapped.item_names, names)
            for name in mapped:
                self.assertTrue(torch.equal(mapped[name], batch[name]))
            self.assertEqual([hasattr(mapped, name) for name in ("index", "valid")],
                             [name in names for name in ("index", "valid")])  # fmt: skip
            paths = [pytree.keystr(path) for path, _ in pytree.tree_flatten_with_path(batch)[0]]
            self.assertEqual(paths, [f"['{name}']" for name in batch])
            both = pytree.tree_map(torch.equal, batch, batch)
            self.assertEqual(set(both.values()), {True})
        compiled = torch.compile(lambda b: b["label"] * 2, backend="eager")
        self.assertTrue(torch.equal(compiled(batch), batch["label"] * 2))

    def test_rank_and_world_of_torch_distributed(self):
        with libshard.torch.Loader("set", 8, rank=1, world=2) as loader:
            self.assertEqual((loader.world, len(loader)), (2, 6))
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        os.environ.update(RANK="1", WORLD_SIZE="2")
        try:
            for make in (libshard.torch.Loader, libshard.Loader):
                with self.assertRaisesRegex(libshard.ArgumentError, "has one process, and .*WORLD_SIZE=2, so each of"):
                    make("set", 8)
            with libshard.torch.Loader("set", 8, rank=0, world=1) as loader:
                self.assertEqual((loader.world, len(loader)), (1, 13))
            os.environ["WORLD_SIZE"] = "1"
            with libshard.torch.Loader("set", 8) as loader:
                self.assertEqual((loader.world, len(loader)), (1, 13))
        finally:
            del os.environ["RANK"], os.environ["WORLD_SIZE"]
            torch.distributed.destroy_process_group()


class Ragged(unittest.TestCase):
    """Fields whose length differs from record to record, and token ids."""

    @classmethod
    def setUpClass(cls):
        cls.boxes = [np.full((i % 7, 4), i, np.float32) for i in range(30)]
        cls.fields = [
            libshard.Field("boxes", "float32", (6, 4), kind="ragged"),
            libshard.Field("tokens", "uint16", (9,), kind="ragged", semantic="tokens"),
            libshard.Field("caption", "uint8", (12,), kind="string", semantic="text"),
            libshard.Field("window", "uint32", (5,), semantic="tokens"),
            libshard.Field("plain", "uint16", (5,)),
        ]
        samples = (
            {"boxes": boxes, "tokens": np.arange(i % 9, dtype=np.uint16) + 65000, "caption": f"picture {i}",
             "window": np.full(5, 4_000_000_000 + i, np.uint32), "plain": np.zeros(5, np.uint16)}
            for i, boxes in enumerate(cls.boxes)
        )  # fmt: skip
        cls.ds = libshard.pack(samples, cls.fields, "ragged")

    def test_lengths_and_tokens_have_types_that_are_indices(self):
        for batch in libshard.torch.Loader(self.ds, 8, seed=1):
            index = batch["index"].tolist()
            types = {name: batch[name].dtype for name in ("boxes_length", "tokens", "tokens_length", "window", "plain")}
            self.assertEqual(types, {name: torch.int64 for name in types} | {"plain": torch.uint16})
            self.assertEqual(batch["boxes_length"].tolist(), [i % 7 for i in index])
            self.assertEqual(batch["window"][:, 3].tolist(), [4_000_000_000 + i for i in index])
            inside = torch.arange(9) < batch["tokens_length"][:, None]
            self.assertEqual(batch["tokens"][inside].tolist(), [65000 + k for i in index for k in range(i % 9)])
            torch.nn.functional.embedding(batch["tokens"] * inside % 10, torch.zeros(10, 2))

    def test_columns_beside_a_dataset_are_tensors_as_its_own(self):
        schema = [
            libshard.Field("ids", "uint16", (4,), layout="tokens", semantic="tokens"),
            libshard.Field("second", "uint8", (4, 5, 3), layout="hwc", semantic="image"),
            libshard.Field("marks", "float32", (3, 2), kind="ragged"),
        ]
        with libshard.Writer("columns_beside", schema) as w:
            for i in range(len(self.ds)):
                w.write({"ids": np.full(4, i, "u2"), "second": np.full((4, 5, 3), i % 256, "u1"), "marks": np.ones((i % 4, 2), "f4")})
        both = libshard.zip(self.ds, "columns_beside")
        for batch in libshard.torch.Loader(both, 8, seed=1, channels_last=True):
            index = batch["index"].tolist()
            self.assertEqual([batch[name].dtype for name in ("ids", "marks_length")], [torch.int64] * 2)
            self.assertEqual(batch["marks_length"].tolist(), [i % 4 for i in index])
            self.assertEqual(batch["ids"][:, 3].tolist(), index)
            self.assertEqual((batch["second"].shape[1:], batch["second"].stride()[1:]), ((3, 4, 5), (1, 15, 3)))
            self.assertEqual(batch["second"][:, 2, 3, 4].tolist(), [i % 256 for i in index])
        narrow = next(iter(libshard.torch.Loader(both, 8, tokens=None)))
        self.assertEqual((narrow["ids"].dtype, narrow["second"].shape[1:]), (torch.uint16, (4, 5, 3)))

    def test_datasets_with_other_room(self):
        """A mixture's batches have the largest room, those of a ConcatDataset what they need."""
        fields = [libshard.Field("boxes", "float32", (2, 4), kind="ragged"), *self.fields[1:]]
        samples = (
            {"boxes": np.full((i % 3, 4), -i, np.float32), "tokens": np.zeros(i % 9, np.uint16), "caption": "few",
             "window": np.zeros(5, np.uint32), "plain": np.zeros(5, np.uint16)}
            for i in range(30)
        )  # fmt: skip
        few = libshard.pack(samples, fields, "few")
        for order in ([few, self.ds], [self.ds, few]):
            for batch in libshard.torch.Loader(libshard.mix(order, [1, 1]), 8, seed=1):
                self.assertEqual(batch["boxes"].shape[1:], (6, 4))
                for row, source, index in zip(batch["boxes"], batch["component"], batch["index"]):
                    boxes = torch.from_numpy(np.array(order[source][int(index)]["boxes"]))
                    self.assertTrue(torch.equal(row[: len(boxes)], boxes) and not row[len(boxes) :].any())
            both = torch.utils.data.ConcatDataset([libshard.torch.ShardDataset(ds) for ds in order])
            for i in range(30):
                batch = libshard.torch.collate([both[i], both[i + 30]])
                self.assertEqual(batch["boxes"].shape, (2, 6, 4))
                self.assertEqual(batch["boxes_length"].tolist(), [i % (3 if ds is few else 7) for ds in order])
            joined = libshard.torch.ShardDataset(libshard.concat(order))
            self.assertEqual(len(joined), len(both))
            for i in (0, 7, 29, 30, 41, 59, -1):
                self.equal(joined[i], both[i])
            some = libshard.torch.ShardDataset(libshard.concat(order).select([3, 35]))
            self.equal(some[1], both[35])
            for batch, want in zip(DataLoader(joined, 8, num_workers=2), DataLoader(both, 8), strict=True):
                room = want["boxes"].shape[1]
                self.assertTrue(batch["boxes"].shape[1] == 6 and not batch["boxes"][:, room:].any())
                self.equal(batch | {"boxes": batch["boxes"][:, :room]}, want)

    def test_other_types_of_tokens(self):
        stored = next(iter(libshard.torch.Loader(self.ds, 8, tokens=None)))
        self.assertEqual((stored["tokens"].dtype, stored["window"].dtype), (torch.uint16, torch.uint32))
        short = libshard.pack(({"t": np.full(5, 65535 - i, np.uint16)} for i in range(9)),
                              [libshard.Field("t", "uint16", (5,), semantic="tokens")], "short")  # fmt: skip
        batch = next(iter(libshard.torch.Loader(short, 3, shuffle=False, tokens="int32")))
        self.assertEqual((batch["t"].dtype, batch["t"][:, 0].tolist()), (torch.int32, [65535, 65534, 65533]))
        self.assertEqual(libshard.torch.ShardDataset(short)[2]["t"].dtype, torch.int64)
        self.assertEqual(libshard.torch.ShardDataset(short, tokens=None)[2]["t"].dtype, torch.uint16)
        for make in (libshard.torch.Loader, lambda ds, n, **options: libshard.torch.ShardDataset(ds, **options)):
            with self.assertRaisesRegex(libshard.ArgumentError, "field 'window' has tokens of uint32: .*'int64'"):
                make(self.ds, 8, tokens="int32")
            with self.assertRaisesRegex(libshard.ArgumentError, "tokens='int8'; must be 'int64', 'int32' or None"):
                make(self.ds, 8, tokens="int8")

    def equal(self, got, want):
        self.assertEqual(set(got), set(want))
        for name, value in got.items():
            if isinstance(value, torch.Tensor):
                self.assertEqual(value.dtype, want[name].dtype, name)
                self.assertTrue(torch.equal(value, want[name]), name)
            else:
                self.assertEqual(value, want[name])

    def test_batches_of_a_dataloader_are_those_of_a_loader(self):
        loader = libshard.torch.Loader(self.ds, 8, shuffle=False, items=(), strings="lists", copy=True)
        wanted = list(loader)
        for options in ({}, {"collate_fn": libshard.torch.collate}, {"num_workers": 1},
                        {"collate_fn": default_collate}):  # fmt: skip
            for samples in (
                libshard.torch.ShardDataset(self.ds),
                libshard.torch.ShardDataset(self.ds, transform=lambda sample: sample),
                Subset(libshard.torch.ShardDataset(self.ds), range(30)),
            ):
                for got, want in zip(DataLoader(samples, 8, **options), wanted, strict=True):
                    self.equal(got, want)
        sample = libshard.torch.ShardDataset(self.ds)[5]
        self.assertEqual((sample["tokens"].dtype, sample["tokens"].tolist()), (torch.int64, [*range(65000, 65005)]))
        del sample["plain"]  # PyTorch unpickles no uint16
        self.equal(default_collate([sample] * 2), default_collate(pickle.loads(pickle.dumps([sample] * 2))))

    def test_samples_that_a_transform_changed(self):
        def batch_with(make):
            def transform(sample):
                sample["boxes"] = make(sample["boxes"])
                return sample

            return next(iter(DataLoader(libshard.torch.ShardDataset(self.ds, transform=transform), 8)))

        batch = batch_with(lambda boxes: boxes[:2])
        self.assertEqual(batch["boxes_length"].tolist(), [min(i % 7, 2) for i in range(8)])
        for make in (
            lambda boxes: torch.zeros(7, 4),
            lambda boxes: torch.zeros(2, 3),
            lambda boxes: torch.zeros(8),
            lambda boxes: boxes if len(boxes) == 1 else boxes.double(),
        ):
            with self.assertRaisesRegex(libshard.ArgumentError, "field 'boxes': a sample of .* does not fit"):
                batch_with(make)

    def test_a_transform_that_ends_an_iterator_of_its_own_does_not_end_the_loop(self):
        with self.assertRaisesRegex(RuntimeError, "given as transform raised StopIteration"):
            list(DataLoader(libshard.torch.ShardDataset(self.ds, transform=lambda sample: next(iter(()))), 8))


class Skip:
    """A batch sampler without the first batches of another, as accelerate makes one."""

    def __init__(self, batches, count, every=1):
        self.batches, self.count, self.every = batches, count, every

    def __iter__(self):
        return itertools.islice(self.batches, self.count, None, self.every)

    def __len__(self):
        return len(self.batches) - self.count


def skip_first(loader, count, **options):
    """What accelerate's skip_first_batches() does with anything that is not its own."""
    return DataLoader(
        loader.dataset,
        batch_sampler=Skip(loader.batch_sampler, count, **options),
        collate_fn=loader.collate_fn,
        prefetch_factor=loader.prefetch_factor,
    )


class Skipped(unittest.TestCase):
    """A loader that is taken for a DataLoader, of which some batches are left out."""

    def test_the_first_batches_are_left_out_and_not_read(self):
        for share in ({}, {"rank": 1, "world": 2}):
            whole = libshard.torch.Loader("set", 8, seed=3, **share)
            whole.set_epoch(2)
            rows = [b.index.tolist() for b in whole]
            loader = libshard.torch.Loader("set", 8, seed=3, **share)
            rest = skip_first(loader, 4)
            rest.batch_sampler.batches.set_epoch(2)
            self.assertEqual(len(rest), len(loader) - 4)
            stats = loader.stats
            del loader  # the rest has it
            self.assertEqual([b["index"].tolist() for b in rest], rows[4:])
            self.assertEqual(stats()["batch_count"], len(rows) - 4)
            self.assertEqual(sum(b["label"].numel() for b in rest), sum(map(len, rows[4:])), "the next epoch")

    def test_nothing_is_left_out(self):
        loader = libshard.torch.Loader("set", 8, seed=3)
        rows = [b.index.tolist() for b in libshard.torch.Loader("set", 8, seed=3)]
        self.assertEqual([b["index"].tolist() for b in skip_first(loader, 0)], rows)

    def test_batches_that_are_left_out_count(self):
        """They came before, so max_steps counts them, and so do states."""
        rows = [b.index.tolist() for b in libshard.torch.Loader("set", 8, seed=3)]
        for skipped, most in ((0, 6), (4, 6), (4, 5)):
            loader = libshard.torch.Loader("set", 8, seed=3, max_steps=most)
            self.assertEqual([b["index"].tolist() for b in skip_first(loader, skipped)], rows[skipped:most])
            self.assertEqual(loader.state_dict()["steps"], most)
        loader = libshard.torch.Loader("set", 8, seed=3, epochs=None, max_steps=len(rows) + 2)
        self.assertEqual([b["index"].tolist() for b in skip_first(loader, 4)][: len(rows) - 4], rows[4:])
        self.assertEqual(loader.state_dict()["steps"], len(rows) + 2)

    def refuse(self, words, batches):
        with self.assertRaisesRegex(libshard.ArgumentError, words):
            for _ in batches:
                pass

    def test_batches_that_would_be_lost_or_come_twice(self):
        loader = libshard.torch.Loader("set", 8, seed=3)
        self.refuse("batches were left out between two others", skip_first(loader, 1, every=2))
        loader = libshard.torch.Loader("set", 8, seed=3)
        loop = iter(loader)
        next(loop)
        loader.load_state_dict(loader.state_dict())  # the second comes next
        self.refuse("1 batches are to be left out, and the loader stands behind the start", skip_first(loader, 1))
        mixture = libshard.torch.Loader(libshard.mix(["set", "set"]), 8)
        self.refuse("or delivers a mixture", skip_first(mixture, 1))
        samples = DataLoader(loader.dataset, batch_size=4, collate_fn=loader.collate_fn)
        self.refuse("or made of samples", samples)

    def test_a_loop_that_is_left_ends_its_epoch(self):
        loader = libshard.torch.Loader("set", 8, seed=3)
        rest = skip_first(loader, 4)
        for _ in rest:
            self.assertEqual(loader.epoch, 0)
            state = loader.state_dict()
            break
        with self.assertWarnsRegex(UserWarning, "left after step 5 of 13, so this state begins epoch 1"):
            loader.state_dict()
        self.assertEqual(loader.epoch, 1)
        loader.load_state_dict(state)
        self.assertEqual(next(iter(loader)).step, 5)

    def test_a_loader_is_no_dataset(self):
        with self.assertRaisesRegex(TypeError, "no samples.*ShardDataset.*get_train_dataloader"):
            libshard.torch.Loader("set", 8)[0]

    def test_a_sampler_sets_the_epoch(self):
        """As Lightning does at the start of each epoch."""
        for shuffle in (True, False):
            loader = libshard.torch.Loader("set", 8, shuffle=shuffle)
            in_order = isinstance(loader.sampler, torch.utils.data.SequentialSampler)
            self.assertEqual(in_order, not shuffle)
            loop = iter(loader)
            next(loop)  # which is held, as frameworks hold it
            loader.sampler.set_epoch(3)
            self.assertEqual([(b.epoch, b.step) for b in loader][0], (3, 0))

    def test_a_loader_dies_with_its_last_name(self):
        loader = libshard.torch.Loader("set", 8)
        skip_first(loader, 1)
        alive = weakref.ref(loader)
        gc.disable()
        try:
            del loader
            self.assertIsNone(alive())
        finally:
            gc.enable()


def together(world, job):
    """job(rank) in a group of real processes: what each returned, its error, and its warnings."""
    with tempfile.TemporaryDirectory() as folder:
        pids = []
        for rank in range(world):
            pids.append(os.fork())
            if pids[-1]:
                continue
            said, status = {"error": ""}, 1
            try:
                os.environ["GLOO_SOCKET_IFNAME"] = "lo"
                store = torch.distributed.FileStore(f"{folder}/store", world)
                torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=world)
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    try:
                        said["returned"] = job(rank)
                    except libshard.ArgumentError as e:
                        said["error"] = str(e)
                    said["warnings"] = [str(w.message) for w in caught]
                store.set(f"{rank} is done", json.dumps(said))
                store.wait([f"{other} is done" for other in range(world)])  # it may still be connecting
                with open(f"{folder}/{rank}", "w") as f:
                    json.dump(said, f)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * world
        all_said = []
        for rank in range(world):
            with open(f"{folder}/{rank}") as f:
                all_said.append(json.load(f))
        return all_said


class Agreement(unittest.TestCase):
    """Ranks that go through other loops than rank 0."""

    def setUp(self):
        patient = mock.patch.object(libshard._ranks, "_WORD_SECONDS", 300)  # the machine may be busy
        patient.start()
        self.addCleanup(patient.stop)

    def run_ranks(self, change, *, world=2, epochs=2, options=None, loop=None):
        """What all said, after ``change`` has changed the options of a rank."""

        def job(rank):
            mine = {"batch_size": 8, "seed": 3} | (options or {})
            change(rank, mine)
            before = mine.pop("before", None)
            loader = libshard.torch.Loader(mine.pop("dataset", "set"), **mine)
            if before:
                before(loader)
            rows = []
            for _ in range(epochs):
                rows.append((loop or (lambda l: [i for b in l for i in b.index.tolist()]))(loader))
            return rows

        return together(world, job)

    def test_a_good_run(self):
        for world in (2, 4):
            said = self.run_ranks(lambda rank, mine: None, world=world)
            self.assertEqual([(s["error"], s["warnings"]) for s in said], [("", [])] * world)
            for epoch in range(2):
                rows = [i for s in said for i in s["returned"][epoch]]
                self.assertEqual((len(rows), len(set(rows))), (N // (8 * world) * 8 * world,) * 2)

    def test_one_rank_is_elsewhere(self):
        data.pack_images("another", 103, "--shard-records", "50")
        loader = libshard.torch.Loader("set", 16, seed=3)
        state = [loader.state_dict() for _ in loader][0]  # behind the first batch
        look = lambda loader: next(iter(loader))  # noqa: E731
        for story, odd, changed, words in (
            ("a look at a batch", 1, {"before": look}, "epoch is 1 here and 0 on rank 0.*with a loader of its own"),
            ("rank 0 looks", 0, {"before": look}, "epoch is 0 here and 1 on rank 0"),
            ("seeds", 1, {"seed": 4}, "seed is 4 here and 3 on rank 0; so records would come twice.*the same seed"),
            ("batch sizes", 1, {"batch_size": 4}, "batch_size is 4 here and 8 on rank 0, batches of an epoch is 12"),
            ("datasets", 1, {"dataset": "another"}, "dataset is .* here and .* on rank 0.*open the same dataset"),
            ("orders", 1, {"shuffle": "global"}, "shuffle is global .* here and windows .* on rank 0"),
            ("tails", 1, {"tail": "pad"}, "batches of an epoch is 7 here and 6 on rank 0"),
            ("states", 1, {"before": lambda l: l.load_state_dict(state)}, "position is 16 here and 0 on rank 0"),
            ("said by the user", 1, {"seed": 4, "share": True}, "seed is 4 here and 3 on rank 0"),
        ):
            with self.subTest(story):

                def change(rank, mine, odd=odd, changed=changed):
                    if "share" in changed:
                        mine |= {"rank": rank, "world": 2}
                    if rank == odd:
                        mine |= {k: v for k, v in changed.items() if k != "share"}

                said = self.run_ranks(change)
                self.assertEqual(said[0]["error"], "")
                self.assertRegex(said[1]["error"], f"^rank 1 and rank 0 disagree: .*{words}.*rank=0 and world=1")

    def test_an_epoch_of_one_batch(self):
        one = {"batch_size": 51}
        for seed in (3, 4):
            said = self.run_ranks(lambda rank, mine: mine.update(seed=seed if rank else 3), options=one)  # noqa: B023
            self.assertEqual("seed is 4 here" in said[1]["error"], seed == 4)
            self.assertEqual(said[0]["error"], "")

    def test_what_is_not_compared(self):
        """Neither an error nor a warning."""

        def in_a_thread(loader):
            thread = threading.Thread(target=lambda: [b.step for b in loader])
            thread.start()
            thread.join()

        def seeds(**more):
            return lambda rank, mine: mine.update({"seed": rank, **more})

        for story, change, loop in (
            ("it was said so", seeds(check_ranks=False), None),
            ("each rank takes all records", seeds(rank=0, world=1), None),
            ("shares of another group", seeds(rank=0, world=3), None),
            ("another thread, in which the order of loops is up to chance", seeds(), in_a_thread),
            ("loops of one batch", seeds(), lambda l: next(iter(l)).step),
        ):
            with self.subTest(story):
                said = self.run_ranks(change, loop=loop)
                self.assertEqual([(s["error"], s["warnings"]) for s in said], [("", [])] * 2)

    def test_a_rank_that_stops_early(self):
        """Its next loop cannot be compared, which is said once; nothing is refused."""
        def short(loader):
            list(b.step for b in itertools.islice(loader, 2 if loader.rank else 5))
            torch.distributed.barrier()

        said = self.run_ranks(lambda rank, mine: None, loop=short, epochs=4)
        self.assertEqual([s["error"] for s in said], ["", ""])
        self.assertEqual(said[0]["warnings"], [])
        words = "^before this loop, which is in epoch 1, this rank took 2 batches, and rank 0 took 5 before its own"
        (warning,) = said[1]["warnings"]
        self.assertRegex(warning, words)
        even = self.run_ranks(lambda rank, mine: None, loop=lambda l: [b.step for b in itertools.islice(l, 3)])
        self.assertEqual([(s["error"], s["warnings"]) for s in even], [("", [])] * 2)

    def test_a_rank_that_never_comes(self):
        with mock.patch.object(libshard._ranks, "_PATIENCE_SECONDS", 0):
            said = self.run_ranks(lambda rank, mine: None, loop=lambda l: [b.step for b in l] if l.rank else [])
        self.assertEqual([s["error"] for s in said], ["", ""])
        (warning,) = said[1]["warnings"]
        self.assertRegex(warning, "^rank 0 has not come to the second batch of the loop that ends here, in epoch 0")

    def test_a_rank_that_is_late(self):
        """Who waits says for whom, once, though two loops end so; and then both are compared."""
        def late(loader):
            if not loader.rank:
                time.sleep(1)
            return [b.step for b in loader]

        with mock.patch.object(libshard._ranks, "_WORD_SECONDS", 0.1):
            said = self.run_ranks(lambda rank, mine: None, loop=late, epochs=2)
            odd = self.run_ranks(lambda rank, mine: mine.update(seed=3 + rank), loop=late)
        self.assertEqual([s["error"] for s in said], ["", ""])
        self.assertEqual(said[0]["warnings"], [])
        (warning,) = said[1]["warnings"]
        words = "^rank 1 waits for rank 0: rank 0 has not come to the second batch of the loop that ends here, in epoch 0;"
        self.assertRegex(warning, words)
        self.assertRegex(odd[1]["error"], "^rank 1 and rank 0 disagree: seed is 4 here")

    def test_a_mesh_compares_along_its_data_parallel_dimensions(self):
        def job(rank):
            mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
            loader = libshard.torch.Loader("set", 8, mesh=mesh, seed=3 + (rank == 3))
            return [i for b in loader for i in b.index.tolist()]

        said = together(4, job)
        self.assertEqual([s["error"] for s in said[:3]], [""] * 3)
        self.assertRegex(said[3]["error"], "^rank 3 and rank 1 disagree: seed is 4 here and 3 on rank 1")
        self.assertEqual(said[0]["returned"], said[1]["returned"])


class Ranks(unittest.TestCase):
    """Groups of several processes, of which this one is real."""

    def setUp(self):
        self.patch = mock.patch.dict(os.environ)
        self.patch.start()

    def tearDown(self):
        self.leave()
        self.patch.stop()

    def join(self, rank, world):
        torch.distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)

    def leave(self):
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()

    def refuse(self, words, call):
        with self.assertRaisesRegex(libshard.ArgumentError, words):
            call()

    def test_a_loader_that_was_made_too_early(self):
        for make in (libshard.torch.Loader, libshard.Loader):
            early, given = make("set", 8), make("set", 8, rank=0, world=1)
            self.join(1, 2)
            self.refuse(
                "made for rank 0 of 1, but this is rank 1 of 2 now; make it after torch.distributed.init_process_group",
                lambda: iter(early),
            )
            self.assertEqual(len([b.step for b in given]), 13)
            late = make("set", 8)
            self.assertEqual((late.rank, late.world, len([b.step for b in late])), (1, 2, 6))
            self.leave()
            self.refuse("made for rank 1 of 2, but this is rank 0 of 1 now", lambda: iter(late))

    def test_after_the_group_is_gone_the_share_is_a_guess(self):
        os.environ.update(RANK="0", WORLD_SIZE="2")
        loader = libshard.torch.Loader("set", 8)
        words = "rank 0 of 2, but torch.distributed is not initialized.*rank=0, world=1 for all"
        self.refuse(words, lambda: iter(loader))
        self.join(0, 2)
        self.assertEqual(len([b.step for b in loader]), 6)
        self.leave()
        self.refuse("not initialized, or not any more", lambda: iter(loader))
        self.assertEqual(len([b.step for b in libshard.torch.Loader("set", 8, rank=0, world=1)]), 13)
        # A loader of arrays may be one of several that have nothing to do with PyTorch's groups.
        self.assertEqual(len([b.step for b in libshard.Loader("set", 8)]), 6)

    def test_as_lightning_starts_the_others(self):
        os.environ.update(WORLD_SIZE="2", LOCAL_RANK="1", NODE_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="1")
        self.refuse("WORLD_SIZE=2, LOCAL_RANK=1 and no RANK", lambda: libshard.torch.Loader("set", 8))
        self.join(1, 2)
        self.assertEqual(libshard.torch.Loader("set", 8).rank, 1)

    def test_groups_of_fewer_than_all(self):
        self.join(2, 4)
        early = libshard.torch.Loader("set", 8)
        self.assertEqual((early.rank, early.world), (2, 4))
        torch.distributed.new_group([0, 1, 2, 3])
        iter(early)
        torch.distributed.new_group([0, 1])  # of which this process is none
        iter(early)
        torch.distributed.new_group([1, 2])
        for make in (libshard.torch.Loader, libshard.Loader):
            self.refuse("a process group of 2 of the 4 processes.*give the loader rank= and world=, or to .*mesh=",
                        lambda: make("set", 8))  # fmt: skip
        self.refuse("a process group of 2 of the 4", lambda: iter(early))
        self.assertEqual(len([b.step for b in libshard.torch.Loader("set", 8, rank=0, world=2)]), 6)

    def test_meshes(self):
        for shape, rank, dims, want in (
            ((2, 2), 2, ("dp",), (1, 2)),
            ((2, 2), 1, ("dp",), (0, 2)),
            ((1, 4), 3, "dp", (0, 1)),  # tensor parallelism only: everybody has the same rows
            ((4, 1), 3, ("dp",), (3, 4)),
            ((2, 2), 3, ("dp", "tp"), (3, 4)),
            ((2, 2), 1, ("tp", "dp"), (2, 4)),
        ):
            self.join(rank, 4)
            mesh = torch.distributed.device_mesh.init_device_mesh("cpu", shape, mesh_dim_names=("dp", "tp"))
            self.refuse("a process group of [12] of the 4 processes .mesh_", lambda: libshard.torch.Loader("set", 8))
            with libshard.torch.Loader("set", 8, seed=3, mesh=mesh, dims=dims) as loader:
                self.assertEqual((loader.rank, loader.world), want)
                with libshard.Loader("set", 8, seed=3, rank=want[0], world=want[1]) as other:
                    self.assertEqual(next(iter(loader)).index.tolist(), next(iter(other)).index.tolist())
            for bad in (("pp",), ("dp", "dp"), ()):
                self.refuse("must be those dimensions of the mesh.*'dp', 'tp'",
                            lambda: libshard.torch.Loader("set", 8, mesh=mesh, dims=bad))  # fmt: skip
            self.refuse("mesh and rank or world", lambda: libshard.torch.Loader("set", 8, mesh=mesh, rank=0, world=1))
            self.leave()

    def test_workers_would_deliver_every_record_each(self):
        class Stream(torch.utils.data.IterableDataset):
            def __init__(self, make):
                self.make = make

            def __iter__(self):
                yield from self.make()

        inherited = libshard.torch.Loader("set", 8)
        for make in (lambda: libshard.torch.Loader("set", 8), lambda: inherited, lambda: libshard.Loader("set", 8)):
            count = lambda workers: sum(  # noqa: E731
                len(b) for b in DataLoader(Stream(make), batch_size=None, num_workers=workers,
                                           multiprocessing_context="fork" if workers else None,
                                           collate_fn=lambda b: b.index.tolist())  # fmt: skip
            )
            self.refuse("this is worker 0 of 2 of a DataLoader.*use num_workers=0", lambda: count(2))
            self.assertEqual((count(1), count(0)), (N, N))


class Idioms(unittest.TestCase):
    def test_writing_to_records_ends_no_process_and_changes_no_file(self):
        ds = libshard.open("set")
        for take in (
            torch.from_dlpack,
            torch.utils.dlpack.from_dlpack,
            torch.as_tensor,
            lambda a: torch.from_numpy(np.asarray(a)),
            lambda a: torch.as_tensor(np.asarray(a)),
            lambda a: torch.from_dlpack(np.asarray(a).copy()),
            lambda a: torch.utils.dlpack.from_dlpack(a.__dlpack__()),
        ):
            for rows in (3, slice(0, 4), slice(8, 1, -2), [3, 1]):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)  # that an array of NumPy is not writable
                    tensor = take(ds[rows]["image"][::1] if rows != 3 else ds[rows]["image"])
                self.assertEqual(bits(tensor), want["image"][rows].tobytes())
                tensor.add_(1).clamp_(0, 9)
                tensor.flatten()[:5].zero_()
                self.assertEqual(ds[rows]["image"].tobytes(), want["image"][rows].tobytes())

    def test_devices_by_their_objects(self):
        for make in (libshard.torch.Loader, libshard.Loader):
            self.assertEqual(len([b.step for b in make("set", 8, device=torch.device("cpu"))]), 13)
            with self.assertRaisesRegex(libshard.ArgumentError, "device=.*meta.*; must be 'cpu', 'cuda'"):
                make("set", 8, device=torch.device("meta"))
            if not torch.cuda.is_available():
                with self.assertRaises(libshard.DeviceError):
                    make("set", 8, device=torch.device("cuda", 0))

    def test_batches_that_are_kept(self):
        for loop in (list, lambda l: list(itertools.islice(itertools.cycle(l), 20))):
            with self.assertRaisesRegex(libshard.ArgumentError, "3 batches are still held.*or copy=True"):
                loop(libshard.torch.Loader("set", 8))
            batches = loop(libshard.torch.Loader("set", 8, copy=True))
            for batch in batches:
                self.assertTrue(torch.equal(batch["image"], torch.from_numpy(want["image"])[batch.index]))
        taken = queue.Queue(1)
        loader = libshard.torch.Loader("set", 8, copy=True)
        thread = threading.Thread(target=lambda: [taken.put(b) for b in loader] + [taken.put(None)])
        thread.start()
        kept = list(iter(taken.get, None))
        thread.join()
        self.assertEqual(len({b["image"].data_ptr() for b in kept}), 13)

    def test_functions_that_work_ahead_get_tensors(self):
        """In order, with draws of PyTorch that are those of a loop; and batches that are moved to a device."""

        def noise(batch):
            self.assertIs(type(batch["image"]), torch.Tensor)
            return batch["image"].float() + torch.rand(()), batch.index.clone()

        told = []
        for ahead in (0, 2):
            torch.manual_seed(5)
            loader = libshard.torch.Loader("set", 8, seed=3, transform=[noise, list], transform_ahead=ahead)
            told.append(list(loader))
        for one, other in zip(*told, strict=True):
            self.assertTrue(all(map(torch.equal, one, other)))

    def test_a_batch_moves_to_a_device(self):
        for items in ("rows", "all", ()):
            batch = next(iter(libshard.torch.Loader("set", 8, items=items)))
            for moved in (batch.to("cpu"), batch.to(torch.device("cpu"), non_blocking=True)):
                self.assertEqual((type(moved), list(moved), moved.item_names), (libshard.Batch, list(batch), batch.item_names))
                self.assertIs(moved["image"], batch["image"])  # as a tensor does that is there already
            with torch.device("cpu"):
                there = batch.to("meta")
            self.assertEqual({v.device.type for v in there.values() if isinstance(v, torch.Tensor)}, {"meta"})
            self.assertEqual({there.index.device.type, there.flags.device.type, there.valid.device.type}, {"meta"})
            self.assertEqual((there.epoch, there.step, there.component), (0, 0, None))
            self.assertEqual(batch["image"].device.type, "cpu")
            for wrong in (torch.float16, None, 3.5, True, batch["image"]):
                with self.assertRaisesRegex(TypeError, "must be a device"):
                    batch.to(wrong)
        mixed = libshard.torch.Loader(libshard.mix(["set", "set"]), 8)
        self.assertEqual(next(iter(mixed)).to("meta").component.device.type, "meta")
        captions = {"caption": "text[<=8]", "x": "float32[2]"}
        libshard.pack(({"caption": f"c{i}", "x": [1.0, 2.0]} for i in range(9)), captions, "captions")
        batch = next(iter(libshard.torch.Loader("captions", 3, strings="lists")))
        self.assertEqual(batch.to("meta")["caption"], batch["caption"])  # a list of str stays as it is

    def test_tensors_as_indices_and_as_values(self):
        ds = libshard.open("set")
        self.assertEqual(np.asarray(ds[torch.tensor([3, 1])]["image"]).tobytes(), want["image"][[3, 1]].tobytes())
        self.assertEqual(ds[torch.tensor(3)]["label"], want["label"][3])
        mask = torch.arange(N) % 5 == 2
        self.assertEqual(ds[mask]["label"].tolist(), want["label"][mask.numpy()].tolist())
        self.assertEqual(ds.select(mask).records.tolist(), mask.nonzero()[:, 0].tolist())
        for wrong in (mask[1:], torch.zeros(0, dtype=torch.bool)):
            with self.assertRaisesRegex(libshard.ArgumentError, "the mask has"):
                ds[wrong]
        with self.assertRaisesRegex(libshard.RecordError, "record 0, field 'x': an array that cannot be read"):
            libshard.pack([{"x": torch.zeros(3, requires_grad=True)}], None, "gradient")
        batches = DataLoader(libshard.torch.ShardDataset("set"), 8)
        with self.assertRaisesRegex(libshard.ArgumentError, "a DataLoader, which yields batches.*batched=True"):
            libshard.pack(batches, None, "again")
        self.assertEqual(len(libshard.pack(batches, None, "again", batched=True)), N)


def of_torch(read):
    """PyTorch puts an error of its own in the place of ours."""

    def use(array):
        try:
            return read(array)
        except RuntimeError as e:
            if "could not retrieve buffer from object" not in str(e):
                raise
        return memoryview(array)  # which raises ours

    return use


class Cut(unittest.TestCase):
    """Shards that are cut under an open dataset: each way of PyTorch is an exception."""

    WAYS = {
        "torch.from_dlpack": (lambda ds: ds[3]["image"], torch.from_dlpack),
        "from_dlpack of a capsule": (
            lambda ds: ds[3]["image"], lambda a: torch.utils.dlpack.from_dlpack(a.__dlpack__()),
        ),
        "as_tensor": (lambda ds: ds[3]["image"], torch.as_tensor),
        "asarray": (lambda ds: ds[3]["image"], of_torch(torch.asarray)),
        "tensor": (lambda ds: ds[3]["corner"], torch.tensor),
        "frombuffer": (lambda ds: ds[3]["image"], lambda a: torch.frombuffer(memoryview(a), dtype=torch.uint8)),
        "from_numpy": (lambda ds: ds[3]["image"], lambda a: torch.from_numpy(np.asarray(a))),
        "stack": (lambda ds: ds[2:5]["image"], lambda a: torch.stack([torch.as_tensor(x) for x in a])),
        "sample": (lambda ds: ds, lambda ds: libshard.torch.ShardDataset(ds)[3]),
        "loader": (lambda ds: ds, lambda ds: [b.step for b in libshard.torch.Loader(ds, 8)]),
        "DataLoader": (lambda ds: ds, lambda ds: list(DataLoader(libshard.torch.ShardDataset(ds), 8))),
        "DataLoader with a worker": (
            # forked from a process that has read, with a handler of PyTorch's for SIGBUS
            lambda ds: ds,
            lambda ds: list(DataLoader(libshard.torch.ShardDataset(ds), 8, num_workers=1,
                                       multiprocessing_context="fork")),
        ),
    }  # fmt: skip

    def test_each_way_is_an_exception(self):
        cut.make("cut", None)
        for name, work in self.WAYS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that a buffer is not writable
                self.assertEqual(cut.in_child("cut", work), cut.RAISED << 8, name)
                # the control
                self.assertNotIn(cut.in_child("cut", work, guard=False), (cut.RAISED << 8, cut.VALUE << 8), name)


def label_only(sample):
    return sample["label"]


class MapStyle(unittest.TestCase):
    def test_samples(self):
        for ds in (libshard.torch.ShardDataset("set"), libshard.torch.ShardDataset(libshard.open("set"))):
            self.assertEqual(len(ds), N)
            for i in (0, 31, N - 1, -1, np.int64(7)):
                sample = ds[i]
                self.assertEqual(list(sample), ["image", "label"])
                self.assertEqual(bits(sample["image"]), want["image"][i].tobytes())
                self.assertEqual(
                    (sample["label"].shape, sample["label"].dtype, int(sample["label"])),
                    ((), torch.int64, want["label"][i]),
                )
            with self.assertRaises(IndexError):
                ds[N]
        turned = libshard.torch.ShardDataset("set", channels_last=True)[5]["image"]
        np.testing.assert_array_equal(turned.numpy(), want["image"][5].transpose(2, 0, 1))

    def test_samples_of_a_selection(self):
        chosen = libshard.open("set").select([5, 9, 31])
        ds = libshard.torch.ShardDataset(chosen)
        self.assertEqual(len(ds), 3)
        self.assertEqual([int(ds[i]["label"]) for i in (0, 1, -1)], want["label"][[5, 9, 31]].tolist())
        with self.assertRaises(IndexError):
            ds[3]
        loader = DataLoader(ds, batch_size=2, num_workers=1, multiprocessing_context="spawn")
        self.assertEqual([n for b in loader for n in b["label"].tolist()], want["label"][[5, 9, 31]].tolist())

    def test_samples_are_copies(self):
        ds = libshard.torch.ShardDataset("set")
        sample = ds[3]
        sample["image"].zero_()
        self.assertEqual(bits(ds[3]["image"]), want["image"][3].tobytes())
        self.assertNotIn("set/", data.file_at(sample["image"].data_ptr()) or "")

    def test_in_a_data_loader_with_workers(self):
        ds = libshard.torch.ShardDataset("set")
        for workers, way in ((0, None), (2, "fork"), (2, "spawn")):
            for together in (default_collate, libshard.torch.collate):
                loader = DataLoader(
                    ds,
                    batch_size=8,
                    shuffle=True,
                    num_workers=workers,
                    multiprocessing_context=way,
                    collate_fn=together,
                    persistent_workers=workers > 0,
                )
                for _ in range(2):
                    labels, images = [], set()
                    for batch in loader:
                        self.assertEqual((batch["image"].dtype, batch["label"].dtype), (torch.uint8, torch.int64))
                        self.assertEqual(batch["image"].shape[1:], (SIDE, SIDE, 3))
                        labels += batch["label"].tolist()
                        images |= {bits(x) for x in batch["image"]}
                    self.assertEqual(sorted(labels), sorted(want["label"].tolist()))
                    self.assertEqual(images, {x.tobytes() for x in want["image"]})

    def test_a_batch_is_not_taken_apart(self):
        samples = libshard.torch.ShardDataset("set", channels_last=True).__getitems__([9, 3, 3])
        self.assertEqual([int(s["label"]) for s in samples], want["label"][[9, 3, 3]].tolist())
        batch = libshard.torch.collate(samples)
        self.assertEqual(batch["image"].data_ptr(), samples[0]["image"].data_ptr())
        self.assertTrue(batch["image"].is_contiguous(memory_format=torch.channels_last))
        for k, v in default_collate(samples).items():
            self.assertTrue(torch.equal(v, batch[k]))
        self.assertEqual(libshard.torch.collate([1, 2]).tolist(), [1, 2])

    def test_transforms_subsets_and_pickles(self):
        ds = libshard.torch.ShardDataset("set", transform=label_only)
        loader = DataLoader(
            Subset(ds, range(10, 20)),
            batch_size=4,
            num_workers=1,
            multiprocessing_context="spawn",
            collate_fn=libshard.torch.collate,
        )
        self.assertEqual(torch.cat(list(loader)).tolist(), want["label"][10:20].tolist())
        other = pickle.loads(pickle.dumps(ds))
        self.assertEqual((len(other), int(other[4])), (N, want["label"][4]))
        self.assertEqual(ds.classes, [])

    def test_ragged_fields_and_text(self):
        photos = shutil.copytree(os.path.join(os.environ["ROOT"], "examples", "photos", "train"), "photos")
        files = sorted(os.path.join(d, f) for d, _, fs in os.walk(photos) for f in fs if f.endswith(".jpg"))[:9]
        with open("photos/t.jsonl", "w") as f:
            for i, name in enumerate(files):
                line = {
                    "file_name": os.path.relpath(name, photos),
                    "label": f"c{i % 2}",
                    "caption": "ü" * i,
                    "ids": list(range(i % 4)),
                }
                f.write(json.dumps(line) + "\n")
        data.shardpack("images", "photos/t.jsonl", "--root", photos, "-o", "fields", "--resize", "16",
                       "--order", "source", "--field", "ids:kind=ragged,dtype=i32,max=8",
                       "--field", "caption:kind=text,max=32")  # fmt: skip
        ds = libshard.torch.ShardDataset("fields", channels_last=True)
        self.assertEqual(ds.classes, ["c0", "c1"])
        for i in range(9):
            sample = ds[i]
            self.assertEqual(
                (sample["caption"], sample["ids"].dtype, sample["ids"].tolist()),
                ("ü" * i, torch.int32, list(range(i % 4))),
            )
            self.assertEqual((sample["image"].shape, int(sample["label"])), ((3, 16, 16), i % 2))
        loader = DataLoader(ds, batch_size=3, collate_fn=list, num_workers=1)
        self.assertEqual([s["caption"] for b in loader for s in b], ["ü" * i for i in range(9)])
        batch = next(iter(libshard.torch.Loader("fields", 9, shuffle=False)))
        self.assertEqual(batch["ids"].shape, (9, 8))


class WrongTypes(unittest.TestCase):
    """As misuse.py, which has the rules and the values."""

    def test_each_argument_of_each_call(self):
        dataset = libshard.torch.ShardDataset("set")

        def loop(**given):
            with libshard.torch.Loader(threads=1, **given) as loader:
                next(iter(loader))

        def sample(**given):
            _ = libshard.torch.ShardDataset(**given)[0]

        right = {"dataset": "set", "batch_size": 4, "channels_last": True, "tokens": "int64", "mesh": None, "dims": "dp",
                 "device": "cpu", "fields": None, "transform": None, "memory": None}  # fmt: skip

        class Mesh:
            mesh_dim_names = ("dp", "tp")

            def size(self, number):
                return (1, 2)[number]

            def get_coordinate(self):
                return [0, 1]

        calls = [
            ("torch.Loader", loop, right),
            ("torch.Loader of a mesh", loop, {"dataset": "set", "batch_size": 4, "mesh": Mesh(), "dims": "dp"}),
            ("ShardDataset", sample, {"dataset": "set", "transform": None, "channels_last": True, "tokens": "int64"}),
            ("ShardDataset[...]", lambda number: dataset[number], {"number": 1}),
            ("ShardDataset.__getitems__", dataset.__getitems__, {"numbers": [1, 2]}),
        ]
        self.assertEqual(misuse.hold(calls, int(os.environ.get("DRAW", "1"))), 0)

    def test_what_leads_elsewhere(self):
        ds = libshard.open("set")
        mixture, samples = libshard.mix([ds, ds]), libshard.torch.ShardDataset(ds)
        loader = libshard.torch.Loader(ds, 4)
        stories = [
            (lambda: next(iter(DataLoader(ds, 4))), TypeError, r"field 'image'.*libshard.torch.ShardDataset\(ds\)"),
            (lambda: next(iter(DataLoader(ds.select([1, 2]), 2))), TypeError, r"libshard.torch.ShardDataset\(ds\)"),
            (lambda: next(iter(DataLoader(Subset(ds, [1, 2]), 2))), TypeError, r"libshard.torch.ShardDataset\(ds\)"),
            (lambda: libshard.torch.ShardDataset(mixture), TypeError, "a mixture is for libshard.Loader"),
            (lambda: libshard.torch.ShardDataset([1, 2]), TypeError, "libshard.pack"),
            (lambda: samples[:2], TypeError, "whole number"),
            (lambda: libshard.Loader(samples, 4), TypeError, "give it the ShardDataset's .dataset"),
            (lambda: libshard.torch.Loader(Subset(ds, [1, 2]), 4), TypeError, r"Subset's .dataset.select\(subset.indices"),
            (lambda: libshard.torch.ShardDataset(ds, transform=libshard.Transform()), TypeError, "is for Loader"),
            (lambda: libshard.torch.ShardDataset(ds, transform=lambda: 1), TypeError, r"f\(sample\), and this takes"),
            (lambda: libshard.torch.ShardDataset(ds, transforms=1), TypeError, "did you mean transform="),
            (lambda: next(loader), TypeError, "it = iter"),
            (lambda: next(iter(loader)).cuda(), AttributeError, "batch.to"),
            (lambda: libshard.torch.collate(3), TypeError, "samples=3; must be a list of samples"),
            (lambda: libshard.torch.collate([]), libshard.ArgumentError, "samples: there are none"),
            (lambda: libshard.torch.Loader(ds, 4, mesh=3), TypeError, "mesh=3; must be a DeviceMesh"),
        ]  # fmt: skip
        self.assertEqual(misuse.hold_hints(stories), 0)
        own = next(iter(DataLoader(ds, 2, collate_fn=list)))  # who collates records does as before
        self.assertEqual([r["label"] for r in own], want["label"][:2].tolist())
        libshard.pack({"x": [1, 2, 3]}, None, "numbers")
        self.assertEqual(next(iter(DataLoader(libshard.open("numbers"), 3)))["x"].tolist(), [1, 2, 3])


if __name__ == "__main__":
    unittest.main()
