#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train ResNets on random-resized crops of generated JPEGs, and see what a GPU is fed: images per
second and CPU seconds of libshard, of PyTorch's DataLoader, and of data that is on the GPU already.

`make bench-train` runs it; bench/README.md says what each side does, and what is the same for all.
JSON goes to standard output, progress and a table to standard error.  Exit status: 0 done, 1 a side
delivered something else than it should, 2 usage, 3 I/O or memory, 4 no GPU or a package is missing.
"""
import argparse
import functools
import importlib.util
import inspect
import json
import math
import multiprocessing
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "peers")]

try:
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset, RandomSampler

    import common  # which needs NumPy
    import corpus  # which needs NumPy and Pillow
    import numpy as np
    from PIL import Image

    MISSING = None
except ImportError as e:
    MISSING, Dataset = e, object
    nn = argparse.Namespace(Module=object)

PACKAGES = {"torch": "torch", "numpy": "numpy", "pillow": "PIL"}  # for pip, for import
WRONG, SYSTEM, UNSUPPORTED = 1, 3, 4
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
AREA, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)  # of random-resized crops, as torchvision and libshard have them
WARM_STEPS = 12  # that are trained first, while cuDNN tries its algorithms
LIBSHARD_AHEAD = 8  # batches that libshard may have ready: 5 in CPU memory, 3 on the GPU
PREFETCH_FACTOR = 4  # batches that each worker of a tuned DataLoader makes ahead
LOAD_MOST, SPREAD_MOST = 0.5, 2  # as bench/common/quiet.c: beyond these a row is marked


class Refused(Exception):
    """A sentence for the user, and the exit status."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


# ---- the models: as in "Deep Residual Learning", with the stride in the 3 x 3 convolution ----


def convolution(inputs, outputs, side, stride=1):
    return [nn.Conv2d(inputs, outputs, side, stride, side // 2, bias=False), nn.BatchNorm2d(outputs)]


class Block(nn.Module):
    """Two convolutions, or a bottleneck of three, around which the input goes as it is."""

    def __init__(self, inputs, width, stride, bottleneck):
        super().__init__()
        outputs = width * 4 if bottleneck else width
        if bottleneck:
            layers = [
                *convolution(inputs, width, 1),
                nn.ReLU(inplace=True),
                *convolution(width, width, 3, stride),
                nn.ReLU(inplace=True),
                *convolution(width, outputs, 1),
            ]
        else:
            layers = [*convolution(inputs, width, 3, stride), nn.ReLU(inplace=True), *convolution(width, outputs, 3)]
        self.body = nn.Sequential(*layers)
        straight = inputs == outputs and stride == 1
        self.around = nn.Identity() if straight else nn.Sequential(*convolution(inputs, outputs, 1, stride))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.body(x) + self.around(x))


MODELS = {"resnet18": ((2, 2, 2, 2), False), "resnet50": ((3, 4, 6, 3), True)}  # blocks of each stage, bottleneck


def make_model(name, classes):
    depths, bottleneck = MODELS[name]
    layers, inputs = [*convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)], 64
    for stage, depth in enumerate(depths):
        width = 64 << stage
        for i in range(depth):
            layers.append(Block(inputs, width, 2 if stage and not i else 1, bottleneck))
            inputs = width * 4 if bottleneck else width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


# ---- what the sides load: (images on the device, labels on the device, numbers of the images) ----


def list_photos(folder):
    """(path, class) in the order of torchvision's ImageFolder; an image's number is its place."""
    classes = sorted(d.name for d in folder.iterdir())
    return [(str(p), i) for i, c in enumerate(classes) for p in sorted((folder / c).iterdir())]


def draw_crop(width, height):
    """(left, top, width, height) of a random part, as torchvision's RandomResizedCrop draws it."""
    for _ in range(10):
        area = width * height * torch.empty(1).uniform_(*AREA).item()
        ratio = math.exp(torch.empty(1).uniform_(math.log(RATIO[0]), math.log(RATIO[1])).item())
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            left, top = torch.randint(0, width - w + 1, (1,)).item(), torch.randint(0, height - h + 1, (1,)).item()
            return left, top, w, h
    w, h = min(width, round(height * RATIO[1])), min(height, round(width / RATIO[0]))
    return (width - w) // 2, (height - h) // 2, w, h


class Photos(Dataset):
    """JPEGs, decoded and cropped by Pillow as torchvision does it: (u8 [H, W, 3], label, number).

    Pixels stay bytes, as torchvision's page on speed advises; the device makes numbers of them.
    """

    def __init__(self, samples, size):
        self.samples, self.size = samples, size

    def __len__(self):
        return len(self.samples)

    def load(self, path):
        image = Image.open(path).convert("RGB")
        left, top, width, height = draw_crop(*image.size)
        image = image.crop((left, top, left + width, top + height))
        image = image.resize((self.size, self.size), Image.Resampling.BILINEAR)
        if torch.rand(1).item() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return torch.from_numpy(np.array(image))

    def __getitem__(self, i):
        path, label = self.samples[i]
        return self.load(path), label, i


class TensorPhotos(Photos):
    """The same by torchvision: its decoder, and its v2 transforms of tensors of bytes; u8 [3, H, W]."""

    def __init__(self, samples, size):
        super().__init__(samples, size)
        from torchvision.transforms import v2

        self.crop = v2.Compose([v2.RandomResizedCrop(size, antialias=True), v2.RandomHorizontalFlip()])

    def load(self, path):
        from torchvision.io import ImageReadMode, decode_image

        return self.crop(decode_image(path, ImageReadMode.RGB))


def torchvision_lacks():
    """Why there is no torchvision here, or None."""
    try:
        from torchvision.io import decode_image
        from torchvision.transforms import v2
    except (ImportError, RuntimeError, OSError) as e:  # RuntimeError: one that was built for another PyTorch
        return f"not here: no torchvision for this PyTorch ({str(e).splitlines()[0]})"
    return None if decode_image and v2 else None


@functools.lru_cache
def scale_and_shift(device):
    """Made once: PyTorch copies numbers to a GPU only when all work that is queued there is done."""
    scale = torch.tensor([1 / 255 / s for s in STD], dtype=torch.bfloat16, device=device)
    shift = torch.tensor([-m / s for m, s in zip(MEAN, STD)], dtype=torch.bfloat16, device=device)
    return scale.view(1, 3, 1, 1), shift.view(1, 3, 1, 1)


def normalize(images, device):
    """Bytes in CPU memory to what the model takes: [N, 3, H, W] on the device, channels last.

    bfloat16 holds 0 to 255 exactly, and is what the model computes in.
    """
    images = images.to(device, non_blocking=True)
    if images.shape[-1] == 3:
        images = images.permute(0, 3, 1, 2)
    scale, shift = scale_and_shift(device)
    return images.to(torch.bfloat16, memory_format=torch.channels_last).mul_(scale).add_(shift)


def from_torch(options, photos, **settings):
    """By a DataLoader, from one shuffled epoch to the next without the pause between two loops."""
    ahead = settings.get("num_workers", 0) * settings.get("prefetch_factor", 2)
    count = (steps_before(options, ahead)[0] + options.steps + ahead) * options.batch
    order = RandomSampler(photos, num_samples=count, generator=torch.Generator().manual_seed(options.seed))
    loader = DataLoader(photos, options.batch, sampler=order, drop_last=True, **settings)

    def batches():
        for images, labels, numbers in loader:
            yield normalize(images, options.device), labels.to(options.device, non_blocking=True), numbers

    return batches(), ahead


def tuned(options):
    """As PyTorch's documentation advises: a core for the trainer, workers on the others."""
    return {
        "num_workers": max(1, options.cores - 1),
        "pin_memory": options.device == "cuda",
        "persistent_workers": True,
        "prefetch_factor": PREFETCH_FACTOR,
    }


def open_dataloader(options, samples):
    return from_torch(options, Photos(samples, options.size), **tuned(options))


def open_torchvision(options, samples):
    return from_torch(options, TensorPhotos(samples, options.size), **tuned(options))


def open_untuned(options, samples):
    return from_torch(options, Photos(samples, options.size))


def from_libshard(options, transform, make, **settings):
    import libshard.torch

    crops = libshard.Transform(crop="random-resized", size=options.size, flip=0.5, **transform)
    settings |= {"seed": options.seed, "drop_last": True, "channels_last": True, "transform": crops}
    loader = libshard.torch.Loader(str(options.packed), options.batch, **settings)

    def batches():
        while True:
            for batch in loader:
                yield make(batch["image"]), batch["label"].to(options.device, non_blocking=True), batch.index.clone()

    return batches(), LIBSHARD_AHEAD


def open_libshard(options, samples):
    """Crops, flips and numbers are made on the device."""
    device = {"device": "cuda"} if options.device == "cuda" else {}
    transform = {"dtype": "bf16", "layout": "hwc", "mean": MEAN, "std": STD}
    return from_libshard(options, transform, lambda images: images, **device)


def open_libshard_cpu(options, samples):
    """Crops and flips are made by the CPU; bytes go to the device, as from a DataLoader."""
    pins = {"pin_memory": True} if options.device == "cuda" and loader_pins() else {}
    return from_libshard(options, {"dtype": "u8"}, lambda images: normalize(images, options.device), **pins)


def loader_pins():
    """Does this libshard know pin_memory=True?  The side says so, if not."""
    import libshard

    return "pin_memory" in inspect.signature(libshard.Loader).parameters


def open_synthetic(options, samples):
    """One batch, which is on the device before the clock starts."""
    shape = (options.batch, 3, options.size, options.size)
    images = torch.randn(shape, dtype=torch.bfloat16, device=options.device).to(memory_format=torch.channels_last)
    labels = torch.randint(0, corpus.CLASS_COUNT, (options.batch,), device=options.device)

    def batches():
        while True:
            yield images, labels, None

    return batches(), 0


SIDES = {
    "synthetic": open_synthetic,
    "libshard": open_libshard,
    "libshard-cpu": open_libshard_cpu,
    "dataloader": open_dataloader,
    "dataloader-torchvision": open_torchvision,
    "dataloader-untuned": open_untuned,
}


def describe_sides(options):
    """What each side is, in this run."""
    device, settings = repr(options.device), tuned(options)
    workers = ", ".join(f"{key}={value}" for key, value in settings.items())
    memory = "page-locked" if settings["pin_memory"] and loader_pins() else "pageable"
    return {
        "synthetic": f"one batch that is on {device} before the clock starts",
        "libshard": f"libshard.torch.Loader(device={device})",
        "libshard-cpu": f"libshard.torch.Loader, {memory} CPU memory, then .to({device}, non_blocking=True)",
        "dataloader": f"DataLoader({workers}), Pillow",
        "dataloader-torchvision": f"DataLoader({workers}), torchvision",
        "dataloader-untuned": "DataLoader as it is by default, Pillow",
    }


# ---- one run of one side, in a process of its own ----


def steps_before(options, ahead):
    """How many batches come before the clock starts, and which of them are dropped.

    What a side has ready after the first steps is dropped.  Else it would count for a loader that is
    slower than the model, and would last for longer than is timed.  Then steps are trained, in which
    a loader that is faster gets ahead again.  So it is as far ahead when the clock stops, and its CPU
    seconds are those of as many batches as were trained.  On a CPU no figure says anything.
    """
    first = min(WARM_STEPS, options.steps)
    refill = 4 * ahead if options.device == "cuda" else 0
    return first + ahead + refill, range(first, first + ahead)


def check_delivery(side, seen, samples, options):
    """Was each image of an epoch delivered once, with its own label, and each batch a new one?

    seen has of each step: numbers of the images, their labels, and a few pixels of each, added up.
    """
    size, truth = options.batch, torch.tensor([label for _, label in samples])
    for i, (numbers, labels, prints) in enumerate(seen):
        if not len(numbers) == len(labels) == len(prints) == size:
            raise Refused(WRONG, f"{side}: batch {i} has {len(labels)} images; --batch is {size}")
        if not 0 <= int(numbers.min()) <= int(numbers.max()) < len(samples):
            raise Refused(WRONG, f"{side}: batch {i} has an image that is not one of the {len(samples)}")
        wrong = (truth[numbers] != labels.cpu()).nonzero()
        if len(wrong):
            at = int(wrong[0])
            number = int(numbers[at])
            raise Refused(
                WRONG, f"{side}: batch {i} gives image {number} the label {int(labels[at])}; it is {int(truth[number])}"
            )
    numbers = torch.cat([row[0] for row in seen])
    for begin in range(0, len(numbers), len(samples)):  # an epoch; --images is a multiple of --batch
        part = numbers[begin : begin + len(samples)]
        if len(part.unique()) < len(part):
            raise Refused(
                WRONG,
                f"{side}: an epoch delivers {len(part)} images, and only {len(part.unique())} different ones",
            )
    for i in range(1, len(seen)):
        for j in range(max(0, i - 8), i):
            if int((seen[i][2] == seen[j][2]).sum()) * 4 > size:
                raise Refused(WRONG, f"{side}: batch {i} has the pixels of batch {j}")


def measure(options, model_name, side):
    """Images per second, CPU seconds of this process and its workers, and the share of others."""
    torch.manual_seed(options.seed)
    torch.backends.cudnn.benchmark = True
    samples, device = list_photos(options.photos), options.device
    model = make_model(model_name, corpus.CLASS_COUNT).to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    batches, ahead = SIDES[side](options, samples)
    (before, dropped), pixel, seen = steps_before(options, ahead), max(1, options.size // 4), []
    for step, (images, labels, numbers) in enumerate(batches, 1):
        if numbers is not None:
            seen.append((numbers, labels.clone(), images[:, :, ::pixel, ::pixel].sum((1, 2, 3), dtype=torch.float32)))
        if step - 1 not in dropped:
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        if step == dropped.start:
            wait()  # or batches are made while the GPU is behind
        if step == before:
            wait()
            others, begin = common.Others(), time.perf_counter()
        if step == before + options.steps:
            break
    else:
        needed = before + options.steps
        raise Refused(WRONG, f"{side}: there are no more batches after {len(seen)}; {needed} are needed")
    wait()
    seconds = time.perf_counter() - begin
    cpu, load = others.stop()
    images = options.steps * options.batch
    if seen:
        check_delivery(side, [(n, lab, p.cpu()) for n, lab, p in seen], samples, options)
    if not math.isfinite(loss.item()):
        raise Refused(WRONG, f"{side}: the loss is {loss.item()}")
    return {"speed": images / seconds, "cpu": cpu / images * 1000, "load": load, "delivered": len(seen) * options.batch}


def child(pipe, options, model_name, side):
    try:
        pipe.send(measure(options, model_name, side))
    except Refused as e:
        pipe.send((e.status, str(e)))


def run_apart(options, model_name, side):
    """The same in a new process, so that no side finds what another one has left."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=child, args=(there, options, model_name, side))
    process.start()
    there.close()
    try:
        found = here.recv()
    except KeyboardInterrupt:
        process.terminate()
        raise
    except EOFError:
        process.join()
        status = process.exitcode
        raise Refused(SYSTEM, f"{side}: its process ended with status {status}; what it said is above") from None
    process.join()
    if isinstance(found, tuple):
        raise Refused(*found)
    return found


# ---- before: what must be there, and the data ----


def check_place(options):
    """Refuse what cannot be measured here, before anything is built or made."""
    if MISSING is not None:
        lacks = " ".join(name for name, module in PACKAGES.items() if not importlib.util.find_spec(module))
        what = f"lacks packages; type: {sys.executable} -m pip install {lacks}" if lacks else f"says: {MISSING}"
        raise Refused(UNSUPPORTED, f"{sys.executable} {what} (or name another one: make bench-train PYTHON=PYTHON)")
    if options.device == "cuda" and not torch.cuda.is_available():
        raise Refused(
            UNSUPPORTED,
            f"PyTorch {torch.__version__} of {sys.executable} finds no GPU; --device cpu --images 64 --batch 8"
            " --steps 3 --model resnet18 --size 32 tries every side without one",
        )


def make_data(options):
    """JPEGs and the dataset that shardpack makes of them, in a folder where both stay."""
    try:
        import libshard  # noqa: F401
    except ImportError as e:
        raise Refused(UNSUPPORTED, f"{sys.executable} has no libshard ({e}); `make bench-train` builds it") from None
    shardpack = Path(os.environ.get("BUILD", ROOT / "build")) / "bin" / "shardpack"
    if not shardpack.exists():
        raise Refused(UNSUPPORTED, f"there is no {shardpack}; `make bench-train` builds it; BUILD=DIR is its folder")
    folder = options.photos.parent
    say(f"{options.images:,} JPEGs of seed {options.seed} are made in {folder}, or are there already")
    begin = time.monotonic()

    def progress(made):
        if made % 2048 == 0 and made < options.images:
            left = (time.monotonic() - begin) * (options.images / made - 1)
            say(f"{made:,} of {options.images:,} JPEGs; {show_left(left)}")

    corpus.make(options.photos, "jpg", folder / "complete", options.images, options.seed, options.cores, progress)
    command = [str(shardpack), "images", str(options.photos), "--out", str(options.packed)]
    command += ["--fit", "area", "--resize", str(round(options.size * 8 / 7)), "--order", "source"]
    status = subprocess.run(command, stdout=sys.stderr).returncode
    if status:
        raise Refused(SYSTEM if status == 3 else WRONG, f"shardpack ended with status {status}: {' '.join(command)}")
    say("all files are read into the page cache")
    for path in options.photos, options.packed:
        common.make_hot(str(path))


# ---- what is printed ----


def show_left(seconds):
    return "less than a minute left" if seconds < 60 else f"about {math.ceil(seconds / 60)} minutes left"


def say(text):
    print(f"bench-train: {text}", file=sys.stderr, flush=True)


def show(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def read_first(path, begin):
    """What follows `begin` in a file of the system, or nothing."""
    try:
        with open(path) as f:
            return next((line.split(begin, 1)[1].strip(" \t:\n") for line in f if begin in line), "")
    except OSError:
        return ""


def describe(options):
    """The lines of JSON that say what was measured, and where."""
    system = os.uname()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    machine = {
        "cpu": read_first("/proc/cpuinfo", "model name") or "unknown CPU",
        "cores": options.cores,
        "memory_gib": round(memory, 1),
        "kernel": f"{system.sysname} {system.release} {system.machine}",
        "load": round(os.getloadavg()[0], 2),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    device = {"gpu": "none, --device cpu", "compute": "", "driver": ""}
    if options.device == "cuda":
        said = torch.cuda.get_device_properties(0)
        cuda = torch._C._cuda_getDriverVersion()  # 13000 is 13.0
        module = re.search(r"\d{3,}\.[\d.]*\d", read_first("/proc/driver/nvidia/version", "NVRM version"))
        device = {
            "gpu": said.name,
            "compute": f"{said.major}.{said.minor}",
            "driver": f"{cuda // 1000}.{cuda % 1000 // 10}",
            "nvidia_driver": module.group() if module else "unknown",
        }
    import libshard
    import PIL

    versions = {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "pillow": PIL.__version__,
        "libshard": libshard.__version__,
    }
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=7"]
    commit = os.environ.get("COMMIT") or subprocess.run(git, capture_output=True, text=True).stdout.strip() or "unknown"
    return {"machine": machine}, {**device, **versions}, {"commit": commit, "command": options.command}


def make_rows(model_name, side, what, runs, bound):
    """The row of images per second, beside data that is on the GPU already, and that of CPU seconds."""
    speeds, costs = ([run[key] for run in runs] for key in ("speed", "cpu"))
    load, marks = max(run["load"] for run in runs), []
    if load > LOAD_MOST:
        marks.append(f"others took {load:.2f} of each core; the limit is {LOAD_MOST:.2f}")
    if max(speeds) > SPREAD_MOST * min(speeds):
        marks.append(f"runs of `{side}` spread from {min(speeds):.3g} to {max(speeds):.3g}")
    end = {"runs": len(runs), "load": round(load, 2), **({"marked": "; ".join(marks)} if marks else {})}
    row = {"bench": f"train/{model_name}/{side}", "side": what, "ours": round(statistics.median(speeds), 1)}
    row |= {"bound": round(bound, 1), "unit": "images/s", "ratio": round(statistics.median(speeds) / bound, 3)}
    row |= {"range": [round(min(speeds), 1), round(max(speeds), 1)], "delivered": sum(run["delivered"] for run in runs)}
    cost = {"bench": f"{row['bench']}/cpu", "side": what, "ours": round(statistics.median(costs), 4)}
    cost |= {"unit": "CPU s/1000 images", "range": [round(min(costs), 4), round(max(costs), 4)]}
    return row | end, cost | end


def print_table(rows):
    print(f"\n{'row':38} {'images/s':>9} {'range':>17} {'ratio':>6} {'CPU s/1000':>11} runs", file=sys.stderr)
    for row, cost in rows:
        spread = f"{show(row['range'][0])} .. {show(row['range'][1])}"
        print(
            f"{row['bench']:38} {show(row['ours']):>9} {spread:>17} {row['ratio']:6.3f} {cost['ours']:11.3f}"
            f" {row['runs']:4}\n    {row['side']}",
            file=sys.stderr,
        )
        if "marked" in row:
            print(f"    MARKED  not to be published: {row['marked']}", file=sys.stderr)
    print("ratio: of the images per second of data that is on the GPU already", file=sys.stderr)


class Clock:
    """How long the rest will take: as the runs of the same side did, or as the mean of all."""

    def __init__(self, todo):
        self.todo, self.took = list(todo), {}

    def passed(self, key, seconds):
        self.todo.remove(key)
        self.took.setdefault(key, []).append(seconds)
        mean = statistics.mean(s for took in self.took.values() for s in took)
        left = sum(statistics.mean(self.took[k]) if k in self.took else mean for k in self.todo)
        return show_left(left)


def bench(options):
    skipped = {"dataloader-torchvision": torchvision_lacks()} if "dataloader-torchvision" in options.only else {}
    sides = [side for side in options.only if not skipped.get(side)]
    if "synthetic" not in sides:
        sides.insert(0, "synthetic")  # each ratio is to its speed
    clock = Clock((m, s) for m in options.model for s in sides for _ in range(options.runs))
    number, count, table = 0, len(clock.todo), []
    what = describe_sides(options)
    for model_name in options.model:
        found = {side: [] for side in sides}
        for turn in range(options.runs):
            first = turn % len(sides)  # each turn begins with another side
            for side in sides[first:] + sides[:first]:
                begin, number = time.monotonic(), number + 1
                run = run_apart(options, model_name, side)
                found[side].append(run)
                left = clock.passed((model_name, side), time.monotonic() - begin)
                say(f"run {number} of {count}: {model_name}, {side}: {show(run['speed'])} images/s; {left}")
        bound = statistics.median(run["speed"] for run in found["synthetic"])
        for side in sides:
            rows = make_rows(model_name, side, what[side], found[side], bound)
            table.append(rows)
            for row in rows:
                print(json.dumps(row), flush=True)
        for side, why in skipped.items():
            if why:
                print(json.dumps({"bench": f"train/{model_name}/{side}", "skipped": why}), flush=True)
                say(f"train/{model_name}/{side}: {why}")
    print_table(table)


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return value


def sides(text):
    names = text.split(",")
    unknown = [name for name in names if name not in SIDES]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]} is not one of {', '.join(SIDES)}")
    return names


def read_options(words):
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "libshard" / "train"
    parser = argparse.ArgumentParser(
        usage="gpu_train.py [options]",
        description="Train ResNets from JPEGs and from libshard: images per second.",
        epilog=f"Sides: {', '.join(SIDES)}.",
    )
    add = parser.add_argument
    add("--folder", type=Path, default=cache, metavar="DIR", help="where images stay, 7 GB [~/.cache/libshard/train]")
    add("--model", action="append", choices=list(MODELS), help="may be given twice [both]")
    add("--only", type=sides, default=list(SIDES), metavar="SIDE,...", help="some of the sides [all]")
    add("--runs", type=positive, default=3, metavar="N", help="runs of each side, in turn [3]")
    add("--steps", type=positive, default=100, metavar="N", help="steps of a run that are timed [100]")
    add("--batch", type=positive, default=256, metavar="N", help="images of a step [256]")
    add("--size", type=positive, default=224, metavar="N", help="pixels of a side of what the model gets [224]")
    add("--images", type=positive, default=20480, metavar="N", help="JPEGs, a multiple of --batch [20480]")
    add("--seed", type=positive, default=1, metavar="N", help="of the JPEGs, the order and the crops [1]")
    add("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: to try this program [cuda]")
    add("--check", action="store_true", help="only say whether this machine can run it")
    options = parser.parse_args(words)
    options.model = list(dict.fromkeys(options.model or MODELS))
    if options.images % options.batch:
        more = -(-options.images // options.batch) * options.batch
        parser.error(f"--images {options.images} is not a multiple of --batch {options.batch}; {more} is")
    options.cores = len(os.sched_getaffinity(0))
    name = f"{options.images}-{options.seed}"
    options.photos = options.folder / f"photos-{name}" / "train"
    options.packed = options.folder / f"packed-{name}-{options.size}"
    kept, hidden = [], False  # where the images lie is nobody's business
    for word in words:
        if not hidden and not word.startswith("--folder"):
            kept.append(word)
        hidden = word == "--folder"
    options.command = " ".join(["make bench-train", *([f"TRAIN='{' '.join(kept)}'"] if kept else [])])
    return options


def main(words):
    options = read_options(words)
    try:
        check_place(options)
        if options.check:
            return 0
        make_data(options)
        for line in describe(options):
            print(json.dumps(line), flush=True)
        bench(options)
    except Refused as e:
        say(str(e))
        return e.status
    except (OSError, MemoryError) as e:
        say(str(e) or "there is not enough memory")
        return SYSTEM
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
