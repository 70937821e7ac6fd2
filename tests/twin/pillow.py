# SPDX-License-Identifier: Apache-2.0
"""Compare decode and transform with Pillow, on generated images; run by pillow.sh.

    pillow.py PROGRAM [COUNT]      PROGRAM is tests/pack/dump_transform

The crop is torchvision's, written out again here: Pillow has the pixels, torchvision the sizes.
"""
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageFile, ImageOps

SHORT, LONG, STRETCH, PAD = range(4)
FILTERS = [Image.BOX, Image.BILINEAR, Image.BICUBIC, Image.LANCZOS]
ODD = Path("examples/photos/odd")
SEED = 17
ImageFile.MAXBLOCK = 1 << 24  # or saving a noisy progressive JPEG may fail


def photo_like(rng, width, height):
    """Waves, an edge and noise: smooth parts, hard parts, and saturation."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    image = np.empty((height, width, 3), np.float32)
    for c in range(3):
        fx, fy, phase = rng.uniform(0.005, 0.3), rng.uniform(0.005, 0.3), rng.uniform(0, 6)
        image[..., c] = 128 + rng.uniform(30, 180) * np.sin(x * fx + y * fy + phase)
    image[x * rng.uniform(0.2, 1) > y] += rng.uniform(-90, 90)
    noise = np.random.default_rng(rng.getrandbits(32)).normal(0, rng.uniform(0, 40), image.shape)
    return Image.fromarray(np.clip(image + noise, 0, 255).astype(np.uint8))


def to_palette(image, rng):
    return image.quantize(rng.choice([2, 4, 16, 200]))


def with_alpha(image, mode):
    image = image.convert("L" if mode == "LA" else "RGB")
    image.putalpha(Image.linear_gradient("L").resize(image.size))
    return image


JPEG = {
    "jpeg444": lambda im, rng: (im, {"subsampling": 0}),
    "jpeg422": lambda im, rng: (im, {"subsampling": 1}),
    "jpeg420": lambda im, rng: (im, {"subsampling": 2}),
    "progressive": lambda im, rng: (im, {"subsampling": rng.randrange(3), "progressive": True}),
    "gray": lambda im, rng: (im.convert("L"), {"progressive": rng.random() < 0.3}),
    "cmyk": lambda im, rng: (im.convert("CMYK"), {}),
    "cmyk_ink": lambda im, rng: (Image.merge("CMYK", [*im.split(), im.split()[0].rotate(180)]), {}),
    "optimized": lambda im, rng: (im, {"optimize": True, "quality": 20}),
}
PNG = {
    "rgb": lambda im, rng: (im, {}),
    "rgba": lambda im, rng: (with_alpha(im, "RGBA"), {}),
    "la": lambda im, rng: (with_alpha(im, "LA"), {}),
    "l": lambda im, rng: (im.convert("L"), {}),
    "l_transparent": lambda im, rng: (im.convert("L"), {"transparency": 9}),
    "rgb_transparent": lambda im, rng: (im, {"transparency": (1, 2, 3)}),
    "bits1": lambda im, rng: (im.convert("1"), {}),
    "palette": lambda im, rng: (to_palette(im, rng), {}),
    "palette_transparent": lambda im, rng: (to_palette(im, rng), {"transparency": 1}),
}


def side(rng):
    return rng.choice([rng.randint(1, 40), rng.randint(1, 400), rng.randint(100, 1200)])


def make_file(rng, folder, i):
    """A file of a random kind; returns its path, what to call it in a complaint, and its size."""
    while True:
        width, height = side(rng), side(rng)
        if height <= 100 * width:  # beyond that Pillow 12.2 and later do columns first
            break
    image = photo_like(rng, width, height)
    kind = rng.choice([*JPEG, *PNG])
    make = {**JPEG, **PNG}[kind]
    converted, options = make(image, rng)
    path = folder / f"{i}.{'jpg' if kind in JPEG else 'png'}"
    if kind in JPEG:
        options.setdefault("quality", rng.randint(30, 98))
    converted.save(path, **options)
    return path, f"{kind} {width}x{height}", (width, height)


def center_crop(image, crop, fill=0):
    width, height = image.size
    padded = Image.new(image.mode, (max(width, crop), max(height, crop)), fill)
    padded.paste(image, (max(crop - width, 0) // 2, max(crop - height, 0) // 2))
    left, top = int(round((padded.width - crop) / 2.0)), int(round((padded.height - crop) / 2.0))
    return padded.crop((left, top, left + crop, top + crop))


def resized(image, resize, fit, pillow_filter):
    """torchvision's Resize(N), Resize(None, max_size=N) and Resize((N, N))."""
    width, height = image.size
    short, long = min(width, height), max(width, height)
    if fit == SHORT:
        new_short, new_long = resize, int(resize * long / short)
    elif fit == LONG:
        new_short, new_long = max(int(resize * short / long), 1), resize
    else:
        new_short = new_long = resize
    new_size = (new_short, new_long) if width <= height else (new_long, new_short)
    return image if new_size == image.size else image.resize(new_size, pillow_filter)


def expect(path, job):
    return transform(Image.open(path).convert("RGB"), job[0], job[1], FILTERS[job[2]], job[4])


def transform(image, resize, crop, pillow_filter, fit=SHORT, fill=0):
    if crop == 0:
        return image
    if fit == PAD:
        return ImageOps.pad(image, (resize, resize), pillow_filter, fill)
    if resize:
        image = resized(image, resize, fit, pillow_filter)
    return center_crop(image, crop, fill)


def choose_job(rng, size):
    crop = 0 if rng.random() < 0.2 else rng.choice([1, 224, rng.randint(1, 300)])
    resize = rng.choice([0, 256, rng.randint(1, 400)]) if crop else 0
    fit = rng.randrange(4) if resize else SHORT
    if fit == PAD and resize * min(size) <= max(size):
        fit = STRETCH  # a side of 0 pixels, which Pillow refuses
    if fit == PAD:
        crop = resize
    return resize, crop, rng.randrange(4), rng.randrange(2) if crop else 0, fit


def run(program, jobs, channels=3):
    """Feed all jobs through a file, so that no pipe can fill up; yields one answer per job."""
    lines = "".join(f"{path} {' '.join(map(str, job))}\n" for path, job, _ in jobs)
    with tempfile.TemporaryFile() as out:
        subprocess.run([program], input=lines.encode(), stdout=out, check=True)
        out.seek(0)
        for _ in jobs:
            verdict, *rest = out.readline().decode().split()
            if verdict != "ok":
                yield " ".join([verdict, *rest])
                continue
            width, height = map(int, rest)
            yield np.frombuffer(out.read(width * height * channels), np.uint8), width, height


def difference(answer, want, layout):
    if isinstance(answer, str):
        return answer
    samples, width, height = answer
    if (width, height) != want.size:
        return f"is {width}x{height}, not {want.size}"
    want = np.asarray(want)
    if layout:
        want = want.transpose(2, 0, 1)
    bad = np.flatnonzero(want.reshape(-1) != samples)
    return f"{bad.size} of {samples.size} samples differ, the first is {bad[0]}" if bad.size else None


def main():
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 500
    rng = random.Random(SEED)
    failures = 0
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        jobs = []
        for i in range(count):
            path, story, size = make_file(rng, Path(folder), i)
            jobs.append((path, choose_job(rng, size), story))
        if not ODD.is_dir():
            print(f"{ODD} is missing")
            return 1
        bad = {"empty.jpg", "gray16.png", "not_an_image.jpg", "truncated.jpg"}
        jobs += [(path, (256, 224, 1, 0, SHORT), path.name) for path in sorted(ODD.iterdir()) if path.name not in bad]
        for (path, job, story), answer in zip(jobs, run(program, jobs)):
            what = difference(answer, expect(path, job), job[3])
            if what:
                failures += 1
                print(f"{story}, resize {job[0]} crop {job[1]} filter {job[2]} layout {job[3]} fit {job[4]}: {what}")
    print(f"{len(jobs)} images, {failures} differ from Pillow {Image.__version__}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
