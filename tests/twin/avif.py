# SPDX-License-Identifier: Apache-2.0
"""Compare drawn AVIFs with Pillow: planes, ranges, matrices, alpha, and which way up.

    avif.py PROGRAM [COUNT]      PROGRAM is tests/pack/dump_transform; by _pillows.sh

Pillow writes them, in 8 bits; the matrix is changed afterwards, in the box that says it.  Files of
more bits, and of several frames, which make Pillow crash when it writes them, are those of
tests/cli/avif_files.py.  Pillow has to make of them what is said there.
SEED=n repeats a run.
"""
import base64
import hashlib
import io
import os
import random
import struct
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageOps

sys.path.insert(0, str(Path(__file__).parent.parent / "cli"))
from avif_files import FILES  # noqa: E402
from drawn import SEED, arguments, compare_drawn, compared  # noqa: E402
from pillow import photo_like  # noqa: E402

LEAST, FULL = 15, 600  # so often each trait comes up, in so many files
MATRICES = [1, 2, 4, 5, 6, 7, 9]
PLANES = ["4:4:4", "4:2:2", "4:2:0", "4:0:0"]


def with_matrix(rng, data, traits):
    """Another matrix, for the same samples."""
    at = data.find(b"colrnclx")
    if at < 0:
        return data
    matrix = rng.choice(MATRICES)
    traits.add(f"matrix {matrix}")
    return data[:at + 12] + struct.pack(">H", matrix) + data[at + 14:]


def exif_of(rng, traits):
    """EXIF data, with an orientation under another tag, lest Pillow moves it into a box."""
    exif = Image.Exif()
    if rng.random() < 0.4:
        exif[0x112] = rng.randint(1, 8)
        traits.add("boxes turn")
    if rng.random() < 0.4:
        exif[0x113] = rng.randint(0, 9)
        traits.add("EXIF turns")
    return exif


def make_file(rng):
    """The bytes of an AVIF, and what it is."""
    width, height, traits = rng.randint(1, 130), rng.randint(1, 130), set()
    image, planes, quality = photo_like(rng, width, height), rng.choice(PLANES), rng.choice([1, 30, 60, 90, 100])
    options = {"subsampling": planes, "quality": quality, "speed": 10, "range": rng.choice(["full", "limited"])}
    traits |= {planes, options["range"]}
    if rng.random() < 0.3:
        image.putalpha(photo_like(rng, width, height).convert("L"))
        traits.add("alpha")
    exif = exif_of(rng, traits)
    if exif:
        options["exif"] = exif.tobytes()
    if rng.random() < 0.3:
        options["xmp"] = b"<x><tiff:Orientation>%d</tiff:Orientation></x>" % rng.randint(0, 9)
        traits.add("XMP turns")
    if rng.random() < 0.1:
        options["icc_profile"] = bytes(200)
        traits.add("ICC")
    out = io.BytesIO()
    image.save(out, "AVIF", **options)
    data = out.getvalue()
    for order in "<", ">":  # the tag becomes that of the orientation
        data = data.replace(struct.pack(order + "HHI", 0x113, 3, 1), struct.pack(order + "HHI", 0x112, 3, 1))
    return with_matrix(rng, data, traits), traits


def check_files():
    """Pillow makes of each what is said of it."""
    for name, (digest, data) in FILES.items():
        image = ImageOps.exif_transpose(Image.open(io.BytesIO(base64.b85decode(data)))).convert("RGB")
        if digest and hashlib.sha256(image.tobytes()).hexdigest()[:32] != digest:
            yield f"{name}: Pillow makes something else of it"


def main():
    program, count = arguments(200)
    rng = random.Random(SEED)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        differ, unread, seen = compare_drawn(program, folder, (make_file(rng) for _ in range(count)), ".avif",
                                             lambda path, data: ImageOps.exif_transpose(Image.open(path)))
    failures = list(check_files())
    failures += [f"Pillow does not read {len(unread)} of its own files"] if len(unread) > count // 50 else []
    names = {*PLANES, "full", "limited", "alpha", "ICC", "boxes turn", "EXIF turns", "XMP turns"}
    names |= {f"matrix {m}" for m in MATRICES}
    return compared(f"{count} AVIFs, {{}}", differ, failures, seen, names, LEAST if count >= FULL else 0)


if __name__ == "__main__":
    sys.exit(main())
