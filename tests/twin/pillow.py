# SPDX-License-Identifier: Apache-2.0
"""Compare decode and transform with Pillow, on generated images; run by pillow.sh.

    pillow.py PROGRAM [COUNT]      PROGRAM is tests/pack/dump_transform

It asks for the pixels of the Pillow that it finds.  From 2,000 images on, each value of each option
comes up 50 times, and pixels of another Pillow must be noticed.  SEED=n repeats a run.

The crop is torchvision's, written out again here: Pillow has the pixels, torchvision the sizes.
"""
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image, ImageFile, ImageOps

SHORT, LONG, STRETCH, PAD, AREA = FITS = range(5)
FILTERS = [Image.BOX, Image.BILINEAR, Image.BICUBIC, Image.LANCZOS]
ODD = Path("examples/photos/odd")
SEED = int(os.environ.get("SEED") or 17)
PIXELS = ["rows-first", "pillow-12", "pillow-13"]
SCALES, AUTO = [1, 2, 4, 8], 4
LEAST, FULL = 50, 2000  # so often each value comes up, in so many images
REFUSED = 20  # so many of these are too long to be whole, by far fewer than one seed drew (45)
TURNS = {2: Image.FLIP_LEFT_RIGHT, 3: Image.ROTATE_180, 4: Image.FLIP_TOP_BOTTOM, 5: Image.TRANSPOSE,
         6: Image.ROTATE_270, 7: Image.TRANSVERSE, 8: Image.ROTATE_90}
ImageFile.MAXBLOCK = 1 << 24  # or saving a noisy progressive JPEG may fail


def pixels_of(version=Image.__version__):
    """Which of PIXELS this Pillow gives, as its number."""
    version = tuple(map(int, version.split(".")[:2]))
    return 0 if version < (12, 2) else 1 if version < (13, 0) else 2


def photo_like(rng, width, height):
    """Waves, an edge and noise: smooth parts, hard parts, and saturation."""
    y, x = np.arange(height, dtype=np.float32)[:, None], np.arange(width, dtype=np.float32)
    image = np.empty((height, width, 3), np.float32)
    for c in range(3):
        fx, fy, phase = rng.uniform(0.005, 0.3), rng.uniform(0.005, 0.3), rng.uniform(0, 6)
        a, b, high = x * fx, y * fy + phase, rng.uniform(30, 180)
        image[..., c] = (high * np.sin(b)) * np.cos(a) + (high * np.cos(b)) * np.sin(a) + 128  # high * sin(a + b)
    image[x * rng.uniform(0.2, 1) > y] += rng.uniform(-90, 90)
    noise = np.random.default_rng(rng.getrandbits(32)).standard_normal(image.shape, np.float32)
    image += noise * np.float32(rng.uniform(0, 40))
    return Image.fromarray(np.clip(image, 0, 255).astype(np.uint8))


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


def shape(rng):
    """Any; or so tall that Pillow 12.2 cares; or tall or wide enough for 13."""
    kind = rng.choice(["any", "any", "any", "any", "very tall", "tall", "wide"])
    if kind == "any":
        return kind, side(rng), side(rng)
    short = rng.randint(1, 6 if kind == "very tall" else 300)
    long = rng.randint(101 * short, 1200) if kind == "very tall" else short * rng.randint(2, 5)
    return (kind, long, short) if kind == "wide" else (kind, short, long)


def make_file(rng, folder, i):
    """A file of a random kind: its path, its name in a complaint, its size and orientation."""
    form, width, height = shape(rng)
    orientation = rng.randint(1, 8)
    image = photo_like(rng, width, height)
    kind = rng.choice([*JPEG, *JPEG, *PNG])
    make = {**JPEG, **PNG}[kind]
    converted, options = make(image, rng)
    path = folder / f"{i}.{'jpg' if kind in JPEG else 'png'}"
    if kind in JPEG:
        options.setdefault("quality", rng.randint(30, 98))
    else:
        options["compress_level"] = 1  # for speed
    exif = Image.Exif()
    exif[0x112] = orientation
    converted.save(path, exif=exif, **options)
    return path, f"{form} {kind} {width}x{height} orientation {orientation}", (width, height), orientation


def center_crop(image, crop, fill=0):
    width, height = image.size
    padded = Image.new(image.mode, (max(width, crop), max(height, crop)), fill)
    padded.paste(image, (max(crop - width, 0) // 2, max(crop - height, 0) // 2))
    left, top = int(round((padded.width - crop) / 2.0)), int(round((padded.height - crop) / 2.0))
    return padded.crop((left, top, left + crop, top + crop))


def target(size, resize, fit):
    """The size by Resize(N), Resize(None, max_size=N) and Resize((N, N)), or pad(); or None.

    For AREA it is that of Resize(s).  The greatest s is looked for from the top, one by one.
    """
    width, height = size
    short, long = min(size), max(size)
    if fit == AREA:
        sides = ((s, int(s * long / short)) for s in range(resize, 0, -1))
        new_short, new_long = next(((s, t) for s, t in sides if s * t <= resize ** 2 and t <= 4 * resize), (0, 0))
        if not new_short:
            return None
    elif fit == SHORT:
        new_short, new_long = resize, int(resize * long / short)
    elif fit == LONG:
        new_short, new_long = max(int(resize * short / long), 1), resize
    elif fit == PAD:
        new_short, new_long = max(round(short / long * resize), 1), resize
    else:
        new_short = new_long = resize
    return (new_short, new_long) if width <= height else (new_long, new_short)


def resized(image, resize, fit, pillow_filter):
    new_size = target(image.size, resize, fit)
    return image if new_size == image.size else image.resize(new_size, pillow_filter)


def expect(path, job):
    resize, crop, how, _, fit, scale, upright = job
    image = Image.open(path)
    size, orientation = image.size, image.getexif().get(0x112, 1) if upright else 1
    lies = orientation >= 5
    if fit == AREA and not target(size, resize, fit):
        return None
    if scale and image.format == "JPEG":
        new_size = target(size[::-1] if lies else size, resize, fit)
        by = SCALES[scale % AUTO]
        image.draft(None, new_size[::-1 if lies else 1] if scale == AUTO else (size[0] // by, size[1] // by))
        by = next(n for n in SCALES if image.size == (-(-size[0] // n), -(-size[1] // n)))
        assert scale == AUTO or by == SCALES[scale], "draft() chose another scale"
        image = turned(image.convert("RGB"), orientation)
        size = size[::-1] if lies else size
        box_width, box_height = size[0] / by, size[1] / by
        left = image.width - box_width if orientation in (2, 3, 6, 7) else 0
        top = image.height - box_height if orientation in (3, 4, 7, 8) else 0
        image = image.resize(new_size, FILTERS[how], box=(left, top, left + box_width, top + box_height))
        return image if fit == AREA else padded(image, crop) if fit == PAD else center_crop(image, crop)
    return transform(turned(image.convert("RGB"), orientation), resize, crop, FILTERS[how], fit)


def turned(image, orientation):
    return image.transpose(TURNS[orientation]) if orientation in TURNS else image


def padded(image, side):
    """As ImageOps.pad() puts what it has resized into its middle."""
    out = Image.new("RGB", (side, side))
    out.paste(image, (round((side - image.width) * 0.5), round((side - image.height) * 0.5)))
    return out


def transform(image, resize, crop, pillow_filter, fit=SHORT, fill=0):
    if crop == 0:
        return image
    if fit == PAD:
        return ImageOps.pad(image, (resize, resize), pillow_filter, fill)
    if resize:
        image = resized(image, resize, fit, pillow_filter)
    if fit == AREA:
        return image
    return center_crop(image, crop, fill)


def choose_job(rng, path, size, orientation):
    """RESIZE CROP FILTER LAYOUT FIT SCALE EXIF; the pixels come between, in main()."""
    crop = 0 if rng.random() < 0.05 else rng.choice([1, 224, rng.randint(1, 300), rng.randint(1, 300)])
    resize = rng.choice([0, 256, rng.randint(1, 400), rng.randint(1, 400), rng.randint(1, 60)]) if crop else 0
    fit = rng.choice(FITS) if resize else SHORT
    upright = rng.randrange(2)
    scale = rng.randrange(5) if resize and path.suffix == ".jpg" else 0
    if 0 < scale < AUTO:
        resize = rng.randint(1, max(min(size) // SCALES[scale], 1))
    if fit == PAD and resize * min(size) <= max(size):
        fit = STRETCH  # a side of 0 pixels, which some Pillows refuse
    if fit in (PAD, AREA):
        crop = resize
    if fit == AREA and not target(size, resize, fit):
        scale = 0
    new_size = target(size[::-1] if upright and orientation >= 5 else size, resize, fit) if scale else size
    if 0 < scale < AUTO and min(size[0] // SCALES[scale], size[1] // SCALES[scale]) < max(new_size):
        scale = AUTO
    return resize, crop, rng.randrange(4), rng.randrange(2) if crop and fit != AREA else 0, fit, scale, upright


def run(program, jobs, channels=3):
    """Feed all jobs through a file, so that no pipe can fill up; yields one answer per job."""
    lines = "".join(f"{path} {' '.join(map(str, job))}\n" for path, job, _ in jobs)
    with tempfile.TemporaryFile() as out:
        command = program if isinstance(program, list) else [program]
        subprocess.run(command, input=lines.encode(), stdout=out, check=True)
        out.seek(0)
        for _ in jobs:
            verdict, *rest = out.readline().decode().split()
            if verdict != "ok":
                yield " ".join([verdict, *rest])
                continue
            width, height = map(int, rest)
            yield np.frombuffer(out.read(width * height * channels), np.uint8), width, height


def difference(answer, want, layout):
    """`want` is None for an image that is over a limit: reason 6."""
    if want is None:
        return None if isinstance(answer, str) and answer.startswith("bad 6 ") else "is not refused"
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


def values(job, story):
    """What a job has of each option."""
    resize, crop, how, layout, fit, scale, upright = job
    yield "shape", story[:story.rindex(" orientation")].rsplit(" ", 2)[0]
    yield "crop", bool(crop)
    yield "layout", layout
    yield "exif", upright
    if crop:
        yield "resize", bool(resize)
    if crop and resize:
        yield from (("filter", how), ("fit", fit), ("scale", scale))


def check_values(jobs):
    """Complaints of values that come up too rarely; a value that never comes is one, too."""
    seen = Counter(value for _, job, story in jobs for value in values(job, story))
    all_values = [(name, value) for name, count in (("filter", 4), ("fit", 5), ("scale", 5), ("layout", 2), ("exif", 2),
                                                    ("crop", 2), ("resize", 2)) for value in range(count)]
    all_values += [("shape", form) for form in ("any", "very tall", "tall", "wide")]
    return [f"{name} {value} comes up {seen[name, value]} times, not {LEAST}" for name, value in all_values
            if seen[name, value] < LEAST]


def with_pixels(jobs, pixels):
    return [(path, (*job[:5], pixels, *job[5:]), story) for path, job, story in jobs]


def compare(program, jobs, pixels, wanted):
    """What differs from the wanted images."""
    for (_, job, story), want, answer in zip(jobs, wanted, run(program, with_pixels(jobs, pixels))):
        what = difference(answer, want, job[3])
        if what:
            resize, crop, how, layout, fit, scale, upright = job
            yield (f"{story}, resize {resize} crop {crop} filter {how} layout {layout} fit {fit} scale {scale} "
                   f"exif {upright}: {what}")


def main():
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 500
    rng = random.Random(SEED)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        jobs = []
        for i in range(count):
            path, story, size, orientation = make_file(rng, Path(folder), i)
            jobs.append((path, choose_job(rng, path, size, orientation), story))
        failures = check_values(jobs) if count >= FULL else []
        if not ODD.is_dir():
            print(f"{ODD} is missing")
            return 1
        bad = {"empty.jpg", "gray16.png", "not_an_image.jpg", "truncated.jpg"}
        jobs += [(path, (256, 224, 1, 0, SHORT, 0, 0), path.name) for path in sorted(ODD.iterdir())
                 if path.name not in bad]
        wanted = [expect(path, job) for path, job, _ in jobs]
        differ = list(compare(program, jobs, pixels_of(), wanted))
        for other in set(range(len(PIXELS))) - {pixels_of()} if count >= FULL else ():
            noticed = len(list(compare(program, jobs, other, wanted)))
            print(f"control: {noticed} differ with --pixels {PIXELS[other]}")
            if not noticed:
                failures.append(f"--pixels {PIXELS[other]} goes unnoticed")
    refused = wanted.count(None)
    if count >= FULL and refused < REFUSED:
        failures.append(f"{refused} images are too long to be whole, not {REFUSED}")
    print(*failures, *differ[:20], sep="\n")
    print(f"{len(jobs)} images, {len(differ)} differ from Pillow {Image.__version__} ({PIXELS[pixels_of()]}), "
          f"SEED={SEED}")
    return 1 if failures or differ else 0


if __name__ == "__main__":
    sys.exit(main())
