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
from collections import Counter
from pathlib import Path

from PIL import Image, ImageOps

sys.path.insert(0, str(Path(__file__).parent.parent / "cli"))
from avif_files import FILES  # noqa: E402
from pillow import SHORT, compare, photo_like, pixels_of  # noqa: E402

SEED = int(os.environ.get("SEED") or 17)
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
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200
    rng, seen, jobs, wanted = random.Random(SEED), Counter(), [], []
    failures, unread = list(check_files()), 0
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        for i in range(count):
            data, traits = make_file(rng)
            path = Path(folder) / f"{i}.avif"
            path.write_bytes(data)
            seen.update(traits)
            try:
                wanted.append(ImageOps.exif_transpose(Image.open(path)).convert("RGB"))
            except Exception:  # what it wrote itself
                unread += 1
                continue
            jobs.append((path, (0, 0, 0, 0, SHORT, 0, 1), f"{i} {sorted(traits)}"))
        differ = list(compare(program, jobs, pixels_of(), wanted))
    failures += [f"Pillow reads {unread} of its own files not"] if unread > count // 50 else []
    names = {*PLANES, "full", "limited", "alpha", "ICC", "boxes turn", "EXIF turns", "XMP turns"}
    names |= {f"matrix {m}" for m in MATRICES}
    rare = [name for name in sorted(names) if seen[name] < LEAST] if count >= FULL else []
    failures += [f"{name} comes up {seen[name]} times" for name in rare]
    print(*failures, *differ[:20], sep="\n")
    print(f"{count} AVIFs, {len(differ)} differ from Pillow {Image.__version__}, SEED={SEED}")
    return 1 if failures or differ else 0


if __name__ == "__main__":
    sys.exit(main())
