# SPDX-License-Identifier: Apache-2.0
"""bench/gpu_train.py on a CPU: its sides, its checks, its rows, and the program from end to end."""

import argparse
import contextlib
import io
import json
import os
import queue
import subprocess
import sys
import threading
import time
import unittest
from itertools import islice
from pathlib import Path
from unittest import mock

ROOT, BUILD = Path(os.environ["ROOT"]), Path(os.environ["BUILD"])
PROGRAM = ROOT / "bench" / "gpu_train.py"
sys.path.insert(0, str(PROGRAM.parent))
sys.dont_write_bytecode = True
os.environ.update(CUDA_VISIBLE_DEVICES="", COLUMNS="80")

import gpu_train  # noqa: E402
import libshard.torch  # noqa: E402
import torch  # noqa: E402
from PIL import Image  # noqa: E402

# Image n has one colour, which says n whatever part of it is cut out: two bits in each channel.
LEVELS = (40, 100, 160, 220)
SMALL = "--device cpu --images 64 --batch 8 --steps 3 --model resnet18 --size 32".split()
SIDES = [side for side in gpu_train.SIDES if side != "synthetic"]

# What of torchvision the side uses, made of Pillow: its wheels need a PyTorch with CUDA.
TORCHVISION = {
    "__init__.py": "",
    "io.py": """
import numpy, torch
from PIL import Image
class ImageReadMode:
    RGB = "RGB"
def decode_image(path, mode):
    return torch.from_numpy(numpy.array(Image.open(path).convert(mode))).permute(2, 0, 1).contiguous()
""",
    "transforms/__init__.py": "",
    "transforms/v2.py": """
import torch
class Compose:
    def __init__(self, steps): self.steps = steps
    def __call__(self, x):
        for step in self.steps: x = step(x)
        return x
class RandomResizedCrop:
    def __init__(self, size, antialias): self.size = size
    def __call__(self, x): return x[:, :self.size, :self.size].contiguous()
class RandomHorizontalFlip:
    def __call__(self, x): return x.flip(-1) if torch.rand(1) < 0.5 else x
""",
}


def setUpModule():
    global options, samples
    for name, text in TORCHVISION.items():
        path = Path("stand-in/torchvision") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    sys.path.insert(0, os.path.abspath("stand-in"))
    options = gpu_train.read_options([*SMALL, "--folder", os.path.abspath("coloured")])
    for n in range(64):
        path = options.photos / f"class_{n % 5}" / f"{n:02}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        colour = tuple(LEVELS[n >> shift & 3] for shift in (4, 2, 0))
        Image.new("RGB", (60 + n, 50), colour).save(path, quality=95)
    command = [BUILD / "bin/shardpack", "images", options.photos, "--out", options.packed, "--quiet"]
    subprocess.run([*command, "--fit", "area", "--resize", "37", "--order", "source"], check=True)
    samples = gpu_train.list_photos(options.photos)


def numbers_of(images):
    """Which images these are, by their colours."""
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in (gpu_train.MEAN, gpu_train.STD))
    bytes_ = ((images.float() * std + mean) * 255).mean((2, 3))
    digits = (bytes_.unsqueeze(-1) - torch.tensor(LEVELS)).abs()
    assert digits.amin(-1).max() < 10, bytes_
    return (digits.argmin(-1) * torch.tensor([16, 4, 1])).sum(1)


class Delivery(unittest.TestCase):
    def test_every_side_delivers_each_image_once_with_its_label(self):
        coloured = torch.tensor([int(Path(path).stem) for path, _ in samples])
        truth = torch.tensor([label for _, label in samples])
        long = gpu_train.read_options([*SMALL, "--steps", "16", "--folder", str(options.folder)])
        for side in SIDES:
            with self.subTest(side=side):
                batches, _ = gpu_train.SIDES[side](long, samples)
                for _ in range(2):  # epochs
                    epoch = []
                    for _ in range(8):
                        images, labels, numbers = next(batches)
                        epoch.append((images.clone(), labels.clone(), numbers))
                        self.assertEqual((images.shape, images.dtype), ((8, 3, 32, 32), torch.bfloat16))
                        self.assertTrue(images.is_contiguous(memory_format=torch.channels_last))
                    images, labels, numbers = (torch.cat([row[i] for row in epoch]) for i in range(3))
                    self.assertEqual(numbers.sort().values.tolist(), list(range(64)))
                    self.assertNotEqual(numbers.tolist(), list(range(64)), "not shuffled")
                    self.assertEqual(labels.tolist(), truth[numbers].tolist())
                    self.assertEqual(numbers_of(images).tolist(), coloured[numbers].tolist())
                batches.close()

    def test_crops_are_inside_and_as_large_as_torchvision_has_them(self):
        torch.manual_seed(3)
        for width, height in (500, 375), (375, 500), (64, 64), (1000, 20), (3, 200), (1, 1):
            for _ in range(200):
                left, top, w, h = gpu_train.draw_crop(width, height)
                self.assertTrue(0 <= left and left + w <= width and 0 <= top and top + h <= height and w and h)
                if min(width, height) > 60:
                    self.assertTrue(0.07 < w * h / width / height <= 1.001 and 0.7 < w / h < 1.4, (w, h))
        areas = [w * h / 250_000 for _, _, w, h in (gpu_train.draw_crop(500, 500) for _ in range(2000))]
        self.assertLess(abs(sum(areas) / 2000 - 0.5), 0.05)  # uniform from 0.08 to 1, but for those that do not fit

    def test_models_have_the_parameters_of_the_paper(self):
        for name, count in ("resnet18", 11_689_512), ("resnet50", 25_557_032):
            model = gpu_train.make_model(name, 1000)
            self.assertEqual(sum(p.numel() for p in model.parameters()), count)
        self.assertEqual(model(torch.zeros(2, 3, 64, 64)).shape, (2, 1000))


class Untuned(unittest.TestCase):
    def test_it_is_the_default_and_does_the_same_work(self):
        made = []

        def record(dataset, batch_size, **settings):
            made.append((type(dataset), batch_size, settings))
            return iter(())

        threads = torch.get_num_threads()
        with mock.patch.object(gpu_train, "DataLoader", record):
            for side in "dataloader", "dataloader-untuned":
                gpu_train.SIDES[side](options, samples)
        self.assertEqual(made[0][:2], made[1][:2])
        self.assertEqual(set(made[1][2]), {"sampler", "drop_last"})
        tuned = {"num_workers", "pin_memory", "persistent_workers", "prefetch_factor"}
        self.assertEqual(set(made[0][2]), {"sampler", "drop_last"} | tuned)
        self.assertEqual(made[0][2]["num_workers"], max(1, options.cores - 1))
        opened = mock.Mock(side_effect=Image.open)
        with mock.patch.object(Image, "open", opened):
            batches, _ = gpu_train.SIDES["dataloader-untuned"](options, samples)
            for _ in range(3):
                next(batches)
        self.assertEqual(opened.call_count, 24)  # each image is decoded once
        self.assertEqual(torch.get_num_threads(), threads)


def spoil(how):
    """A side of libshard's batches, one thing of which is changed."""

    def opens(options, samples):
        batches, _ = gpu_train.SIDES["libshard"](options, samples)
        return how(batches), 0

    return opens


def first_pixels(batches):
    kept = None
    for images, labels, numbers in batches:
        kept = images.clone() if kept is None else kept
        yield kept, labels, numbers


def first_batch(batches):
    for images, labels, numbers in batches:
        kept = images.clone(), labels.clone(), numbers
        while True:
            yield kept


def changed_label(batches):
    for step, (images, labels, numbers) in enumerate(batches):
        labels = labels.clone()
        labels[3] += step == 2
        yield images, labels, numbers


def one_image_for_another(batches):
    for images, labels, numbers in batches:
        yield images[[0, 0, *range(2, 8)]], labels[[0, 0, *range(2, 8)]], numbers[[0, 0, *range(2, 8)]]


def foreign_image(batches):
    for step, (images, labels, numbers) in enumerate(batches):
        numbers[3] += 64 * (step == 1)
        yield images, labels, numbers


class OnAGPU(unittest.TestCase):
    """What would be asked of one."""

    def setUp(self):
        self.options = gpu_train.read_options(["--folder", str(options.folder)])

    def test_sides_ask_for_the_gpu_or_for_page_locked_memory(self):
        asked = {}
        for side in "libshard", "libshard-cpu":
            with mock.patch.object(libshard.torch, "Loader", lambda *_, **settings: asked.update({side: settings})):
                gpu_train.SIDES[side](self.options, samples)
        self.assertEqual(asked["libshard"]["device"], "cuda")
        self.assertEqual(asked["libshard"]["transform"].dtype, "bf16")
        self.assertNotIn("device", asked["libshard-cpu"])
        self.assertEqual(asked["libshard-cpu"].get("pin_memory", False), gpu_train.loader_pins())
        self.assertEqual(asked["libshard-cpu"]["transform"].dtype, "u8")
        self.assertTrue(gpu_train.tuned(self.options)["pin_memory"])
        self.assertEqual(set(gpu_train.describe_sides(self.options)), set(gpu_train.SIDES))
        told = gpu_train.describe_sides(self.options)["libshard-cpu"]
        self.assertIn("page-locked" if gpu_train.loader_pins() else "pageable", told)

    def test_what_is_ready_ahead_is_dropped_before_the_clock_starts(self):
        for ahead, before in (0, 12), (8, 52), (60, 312):
            self.assertEqual(gpu_train.steps_before(self.options, ahead), (before, range(12, 12 + ahead)))

    def test_the_driver_is_named(self):
        drivers = [
            ("NVIDIA UNIX x86_64 Kernel Module  580.159  Tue Nov 18 00:00:00 UTC 2025", "580.159"),
            ("NVIDIA UNIX Open Kernel Module for x86_64  595.45.04  Release Build  (root@x)", "595.45.04"),
            ("", "unknown"),
        ]
        said = argparse.Namespace(name="Host 9/A", major=9, minor=0)
        for text, number in drivers:
            with mock.patch.object(gpu_train.torch.cuda, "get_device_properties", lambda device: said):
                with mock.patch.object(torch._C, "_cuda_getDriverVersion", lambda: 12080, create=True):
                    with mock.patch.object(gpu_train, "read_first", lambda path, begin: text):
                        device = gpu_train.describe(self.options)[1]
            found = [device[key] for key in ("gpu", "compute", "driver", "nvidia_driver")]
            self.assertEqual(found, ["Host 9/A", "9.0", "12.8", number])


class Checks(unittest.TestCase):
    ROWS = [
        ("nothing is wrong", lambda batches: batches, None),
        ("one label", changed_label, "broken: batch 2 gives image [0-9]+ the label [1-5]; it is [0-4]"),
        ("the pixels of the first batch again", first_pixels, "broken: batch 1 has the pixels of batch 0"),
        ("the first batch again", first_batch, "broken: an epoch delivers 48 images, and only 8 different ones"),
        ("an image twice", one_image_for_another, "broken: an epoch delivers 48 images, and only 42 different ones"),
        ("a number of no image", foreign_image, "broken: batch 1 has an image that is not one of the 64"),
        ("an end", lambda batches: islice(batches, 5), "broken: there are no more batches after 5; 6 are needed"),
        ("no batch", lambda batches: islice(batches, 0), "broken: there are no more batches after 0; 6 are needed"),
        ("7 of 8", lambda batches: (tuple(v[:7] for v in b) for b in batches), "batch 0 has 7 images; --batch is 8"),
    ]

    def test_what_is_delivered_wrong_is_refused(self):
        for story, how, said in self.ROWS:
            with self.subTest(story), mock.patch.dict(gpu_train.SIDES, broken=spoil(how)):
                if said is None:
                    self.assertEqual(gpu_train.measure(options, "resnet18", "broken")["delivered"], 48)
                else:
                    with self.assertRaisesRegex(gpu_train.Refused, said) as raised:
                        gpu_train.measure(options, "resnet18", "broken")
                    self.assertEqual(raised.exception.status, 1)


class Ahead(unittest.TestCase):
    def test_batches_that_are_ready_do_not_make_a_slow_loader_faster(self):
        truth, ready = torch.tensor([label for _, label in samples]), queue.Queue(4)

        def fill():  # 8 images in 0.2 s, but for the first ones; they are trained in 0.1 s
            for step in range(40):
                time.sleep(0.2 if step >= 5 else 0)
                numbers = torch.arange(8) + step % 8 * 8
                ready.put((torch.rand(8, 3, 32, 32), truth[numbers], numbers))

        def opens(options, samples):
            threading.Thread(target=fill, daemon=True).start()
            return iter(ready.get, None), 4

        def train(*_):
            time.sleep(0.1)
            return torch.zeros(1, requires_grad=True)

        with mock.patch.dict(gpu_train.SIDES, slow=opens):
            with mock.patch.object(gpu_train.nn.functional, "cross_entropy", train):
                self.assertLess(gpu_train.measure(options, "resnet18", "slow")["speed"], 50)

    def test_numbers_are_brought_to_the_device_once(self):
        images = torch.zeros(1, 8, 8, 3, dtype=torch.uint8)
        gpu_train.normalize(images, "cpu")
        with mock.patch.object(gpu_train.torch, "tensor", side_effect=AssertionError):
            gpu_train.normalize(images, "cpu")


class Rows(unittest.TestCase):
    def test_sides_take_turns_and_rows_have_medians(self):
        speeds = {"synthetic": [100, 120, 110], "libshard": [90, 99, 105], "dataloader": [10, 30, 21]}
        asked = []

        def run(options, model_name, side):
            asked.append(side)
            speed = speeds[side][asked.count(side) - 1]
            return {"speed": speed, "cpu": speed / 100, "load": 0.6 * (side == "libshard"), "delivered": 24}

        words = [*SMALL, "--only", "libshard,dataloader", "--folder", "/nowhere"]
        out, err = io.StringIO(), io.StringIO()
        with mock.patch.object(gpu_train, "run_apart", run), contextlib.redirect_stdout(out):
            with contextlib.redirect_stderr(err):
                gpu_train.bench(gpu_train.read_options(words))
        turn = ["synthetic", "libshard", "dataloader"]
        self.assertEqual(asked, turn + turn[1:] + turn[:1] + turn[2:] + turn[:2])
        rows = [json.loads(line) for line in out.getvalue().splitlines()]
        rows = {row["bench"].removeprefix("train/resnet18/"): row for row in rows}
        self.assertEqual(list(rows), [side + part for side in turn for part in ("", "/cpu")])
        row = rows["libshard"]
        self.assertEqual(
            [row[key] for key in ("ours", "bound", "ratio", "range", "runs", "delivered")],
            [99, 110, 0.9, [90, 105], 3, 72],
        )
        self.assertEqual(row["marked"], "others took 0.60 of each core; the limit is 0.50")
        self.assertEqual((rows["libshard/cpu"]["ours"], rows["libshard/cpu"]["range"]), (0.99, [0.9, 1.05]))
        self.assertRegex(rows["dataloader"]["marked"], "^runs of `dataloader` spread from 10 to 30$")
        self.assertNotIn("marked", rows["synthetic"])
        self.assertIn("run 9 of 9: resnet18, libshard: 105 images/s; less than a minute left", err.getvalue())

    def test_the_time_that_is_left_is_that_of_each_side(self):
        clock = gpu_train.Clock([("a", 1), ("a", 1), ("b", 1), ("b", 1)])
        self.assertEqual(clock.passed(("a", 1), 100), "about 5 minutes left")
        self.assertEqual(clock.passed(("b", 1), 10), "about 2 minutes left")
        self.assertEqual(clock.passed(("a", 1), 80), "less than a minute left")


class Program(unittest.TestCase):
    def run_program(self, *words, **variables):
        command, variables = [sys.executable, PROGRAM, *words], {**os.environ, "OMP_NUM_THREADS": "1", **variables}
        return subprocess.run(command, capture_output=True, text=True, env=variables)

    def test_from_end_to_end(self):
        words = [*SMALL, "--runs", "1", "--seed", "7", "--folder", "generated"]
        path = os.pathsep.join(["stand-in", os.environ["PYTHONPATH"]])
        done = self.run_program(*words, PYTHONPATH=path, COMMIT="c0ffee1")
        self.assertEqual(done.returncode, 0, done.stderr)
        machine, device, run, *rows = map(json.loads, done.stdout.splitlines())
        self.assertEqual(set(machine["machine"]), {"cpu", "cores", "memory_gib", "kernel", "load", "date"})
        self.assertEqual(set(device), {"gpu", "compute", "driver", "torch", "python", "pillow", "libshard"})
        command = f"make bench-train TRAIN='{' '.join([*SMALL, '--runs 1 --seed 7'])}'"
        self.assertEqual(run, {"commit": "c0ffee1", "command": command})
        names = [f"train/resnet18/{side}{part}" for side in gpu_train.SIDES for part in ("", "/cpu")]
        self.assertEqual([row["bench"] for row in rows], names)
        for row in rows:
            keys = {"bench", "side", "ours", "unit", "range", "runs", "load"}
            keys |= set() if row["bench"].endswith("/cpu") else {"bound", "ratio", "delivered"}
            self.assertEqual(set(row) - {"marked"}, keys)
            self.assertEqual(row["runs"], 1)
            self.assertTrue(0 <= row["range"][0] <= row["ours"] <= row["range"][1], row)
            if "delivered" in row:  # three steps, and at least as many before the clock starts
                self.assertTrue(row["delivered"] >= 48 or row["bench"].endswith("synthetic"), row)
                self.assertTrue(row["ours"] > 0 and f"{row['bench']} " in done.stderr)

        # The JPEGs are as heavy as ImageNet's, and stay; another seed makes others.
        paths = sorted(Path("generated/photos-64-7").rglob("*.jpg"))
        self.assertEqual(len(paths), 64)
        self.assertTrue(80_000 < sum(p.stat().st_size for p in paths) / 64 < 150_000)
        before = [(p.stat().st_mtime_ns, p.read_bytes()) for p in paths]
        gpu_train.corpus.make(Path("again/train"), "jpg", Path("again/complete"), 64, 7, 1)
        self.assertEqual([data for _, data in before], [p.read_bytes() for p in sorted(Path("again").rglob("*.jpg"))])
        gpu_train.corpus.make(Path("other/train"), "jpg", Path("other/complete"), 2, 8, 1)
        self.assertNotIn(next(Path("other").rglob("*.jpg")).read_bytes(), [data for _, data in before])
        gpu_train.make_data(gpu_train.read_options(words))
        self.assertEqual([when for when, _ in before], [p.stat().st_mtime_ns for p in paths])

    def run_main(self, *words):
        """(exit status, standard output, standard error)"""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = gpu_train.main(words)
            except SystemExit as e:  # of argparse
                status = e.code
        return status, out.getvalue(), err.getvalue()

    def test_what_it_refuses(self):
        rows = [
            (["--folder", "untouched"], 4, "finds no GPU; --device cpu "),
            (["--check"], 4, "finds no GPU; --device cpu "),
            ([*SMALL, "--folder", "untouched"], 4, "`make bench-train` builds it"),
            ([*SMALL, "--images", "100"], 2, "--images 100 is not a multiple of --batch 8; 104 is"),
            ([*SMALL, "--only", "libshard,dali"], 2, "dali is not one of synthetic, libshard"),
            ([*SMALL, "--steps", "0"], 2, "0 is not 1 or more"),
        ]
        with mock.patch.dict(os.environ, BUILD="/nowhere"):
            for words, status, said in rows:
                with self.subTest(said):
                    found = self.run_main(*words)
                    self.assertEqual(found[:2], (status, ""))
                    self.assertIn(said, found[2])
        self.assertFalse(os.path.exists("untouched"))
        self.assertEqual(self.run_main(*SMALL, "--check"), (0, "", ""))

    def test_a_package_that_is_missing_is_named(self):
        Path("no-torch").mkdir()
        Path("no-torch/torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
        done = self.run_program("--check", PYTHONPATH="no-torch")
        self.assertEqual((done.returncode, done.stdout), (4, ""))
        self.assertIn("No module named 'torch'", done.stderr)
        with mock.patch.object(gpu_train, "MISSING", ImportError()), mock.patch.dict(sys.modules, PIL=None):
            with mock.patch.object(gpu_train.importlib.util, "find_spec", lambda name: name == "numpy"):
                status, _, said = self.run_main("--check")
        self.assertEqual(status, 4)
        self.assertIn("-m pip install torch pillow (or ", said)

    def test_help_fits_a_screen(self):
        status, out, _ = self.run_main("--help")
        self.assertEqual(status, 0)
        self.assertTrue(len(out.splitlines()) <= 24 and max(map(len, out.splitlines())) <= 80, out)


if __name__ == "__main__":
    unittest.main()
