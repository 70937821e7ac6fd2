#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the photo collections that bench/ packs: JPEGs of the sizes and the weight of ImageNet's,
and of the first of these images also PNGs and WebPs.

    corpus.py [--count N] [DIR]        DIR: ${XDG_CACHE_HOME:-~/.cache}/libshard/corpus-v1

Writes DIR/train/CLASS/*.jpg, 20 classes, and last DIR/complete; with that in place it does nothing.
The same for DIR/png with DIR/complete-png, and for DIR/webp.  Prints DIR.  Image i depends on i
alone, so any number of processes makes the same files (with the same Pillow, NumPy, libjpeg, libpng
and libwebp).  Needs Pillow and NumPy; run it from anywhere.

The sources, examples/photos, are small.  Enlarged crops of them are too smooth: sharpening and the
grain of a sensor, kept by a high quality, bring the bytes per pixel to those of photos from the
web.
"""
import argparse
import functools
import multiprocessing
import os
import random
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageFile, ImageFilter

PHOTOS = Path(__file__).resolve().parent.parent / "examples" / "photos"
CLASS_COUNT = 20
PROCESS_COUNT = 2
SEED = 1
ImageFile.MAXBLOCK = 1 << 24  # or saving a noisy progressive JPEG may fail

# Width, height, and how many of a hundred: long sides of 500 rule, with tails to both ends.
SIZES = [(500, 375, 37), (500, 333, 18), (375, 500, 13), (333, 500, 7), (500, 400, 3), (500, 500, 3), (640, 480, 5),
         (480, 640, 1), (400, 300, 4), (320, 240, 2), (250, 250, 1), (160, 120, 1), (800, 600, 2), (1024, 768, 2),
         (1600, 1200, 1)]

# How JPEGs are coded: save() options and how many of a thousand.
CODINGS = [({"subsampling": 2}, 940), ({"subsampling": 2, "progressive": True}, 20), ({"subsampling": 0}, 20),
           ({"subsampling": 1}, 10), (None, 10)]  # None: gray

# Of PNGs and WebPs: how many there are, and of a thousand, how many are written in which way.
OTHER_COUNT = 600
PNG_MODES = [("RGB", 950), ("RGBA", 30), ("L", 20)]
WEBP_CODINGS = [({}, 970), ({"lossless": True}, 30)]


def choose(rng, table):
    return rng.choices([row[:-1] for row in table], [row[-1] for row in table])[0]


@functools.lru_cache(maxsize=256)
def load(path):
    return Image.open(path).convert("RGB")


def crop_box(rng, source, width, height):
    """A near-full crop of the wanted shape, as a box with fractions."""
    zoom = min(source.width / width, source.height / height) * rng.uniform(0.6, 1.0)
    crop_w, crop_h = width * zoom, height * zoom
    left, top = rng.uniform(0, source.width - crop_w), rng.uniform(0, source.height - crop_h)
    return left, top, left + crop_w, top + crop_h


def make_image(rng, source):
    width, height = choose(rng, SIZES)
    if rng.random() < 0.25:  # people crop by hand, too
        width, height = (max(100, side - rng.randrange(60)) for side in (width, height))
    image = source.resize((width, height), Image.BICUBIC, box=crop_box(rng, source, width, height))
    image = image.filter(ImageFilter.UnsharpMask(radius=1.5, percent=150, threshold=0))
    grain = np.random.default_rng(rng.getrandbits(64)).normal(0, rng.uniform(4, 13), (height, width, 1))
    return Image.fromarray(np.clip(np.asarray(image) + grain + 0.5, 0, 255).astype(np.uint8))


def save_jpeg(rng, image, path):
    (coding,) = choose(rng, CODINGS)
    if coding is None:
        image, coding = image.convert("L"), {}
    image.save(path, quality=rng.randint(90, 96), **coding)


def save_png(rng, image, path):
    image.convert(*choose(rng, PNG_MODES)).save(path)


def save_webp(rng, image, path):
    (coding,) = choose(rng, WEBP_CODINGS)
    image.save(path, quality=rng.randint(75, 92), **coding)


SAVE = {"jpg": save_jpeg, "png": save_png, "webp": save_webp}


def write_one(job):
    i, seed, source, folder, suffix = job
    rng = random.Random(seed * 1_000_003 + i)
    image = make_image(rng, load(source))
    path = folder / f"class_{i % CLASS_COUNT:02d}" / f"photo_{i:05d}.{suffix}"
    SAVE[suffix](rng, image, path)
    return path.stat().st_size, image.width * image.height


def make(folder, suffix, stamp, count, seed=SEED, processes=PROCESS_COUNT, progress=lambda made_count: None):
    """Make one collection, unless it is there."""
    want = f"seed {seed}, {count} photos\n"
    if stamp.exists() and stamp.read_text().startswith(want):
        return
    sources = sorted(PHOTOS.glob("train/*/*.jpg"))
    if not sources:
        raise SystemExit(f"{PHOTOS}/train holds no photos")
    stamp.unlink(missing_ok=True)
    for c in range(CLASS_COUNT):
        (folder / f"class_{c:02d}").mkdir(parents=True, exist_ok=True)
    (folder.parent / "started").write_text(want)
    for old in folder.glob(f"*/photo_*.{suffix}"):
        old.unlink()
    jobs = [(i, seed, random.Random(i).choice(sources), folder, suffix) for i in range(count)]
    made = []
    with multiprocessing.Pool(processes) as pool:
        for sizes in pool.imap(write_one, jobs, chunksize=16):
            made.append(sizes)
            progress(len(made))

    total_bytes, pixels = map(sum, zip(*made))
    note = f"{total_bytes / count / 1000:.1f} kB and {pixels / count / 1000:.0f} kpx each"
    stamp.write_text(f"{want}{note}\n")
    print(f"{folder}: {note}", file=sys.stderr)


def main():
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser = argparse.ArgumentParser(description="make the photo collections that bench/ packs")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("dir", nargs="?", type=Path, default=cache / "libshard" / "corpus-v1")
    args = parser.parse_args()

    if args.dir.exists() and any(args.dir.iterdir()) and not (args.dir / "started").exists():
        print(f"{args.dir} holds something else: name a folder that is empty or not there", file=sys.stderr)
        return 1
    make(args.dir / "train", "jpg", args.dir / "complete", args.count)
    for suffix in "png", "webp":
        make(args.dir / suffix, suffix, args.dir / f"complete-{suffix}", min(args.count, OTHER_COUNT))
    print(args.dir)
    return 0


if __name__ == "__main__":
    sys.exit(main())
