# SPDX-License-Identifier: Apache-2.0
"""What comparisons of drawn files of one format with Pillow share: avif.py and tiff.py."""
import os
import sys
from collections import Counter
from pathlib import Path

from PIL import Image

from pillow import SHORT, compare, pixels_of

SEED = int(os.environ.get("SEED") or 17)
AS_IT_IS = (0, 0, 0, 0, SHORT, 0, 1)  # no resize, no crop, upright


def arguments(count):
    """The program, and how many files: those of the command line, or `count`."""
    return sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else count


def put(folder, name, data):
    path = Path(folder) / name
    path.write_bytes(data)
    return path


def compare_drawn(program, folder, drawn, suffix, read):
    """Each of `drawn` is the bytes of a file, and its traits.  `read` is Pillow, for (path, bytes).

    Gives what differs, what Pillow does not read, and how often each trait came up."""
    seen, jobs, wanted, unread = Counter(), [], [], []
    for i, (data, traits) in enumerate(drawn):
        path = put(folder, f"{i}{suffix}", data)
        seen.update(traits)
        try:
            wanted.append(read(path, data).convert("RGB"))
        except Exception as why:
            unread.append(f"{sorted(traits)}: Pillow: {why}")
            continue
        jobs.append((path, AS_IT_IS, f"{i} {sorted(traits)}"))
    return list(compare(program, jobs, pixels_of(), wanted)), unread, seen


def compared(what, differ, failures, seen, names, least):
    """Each of `names` must come up `least` times.  Prints it all; the exit code."""
    failures = failures + [f"{name} comes up {seen[name]} times" for name in sorted(names) if seen[name] < least]
    print(*failures, *differ[:20], sep="\n")
    print(what.format(f"{len(differ)} differ from Pillow {Image.__version__}") + f", SEED={SEED}")
    return 1 if failures or differ else 0
