# SPDX-License-Identifier: Apache-2.0
"""coco.py - masks of COCO's segmentation, slowly: the twin of coco_shape.c; imported by
tests/cli/pack_coco.sh

Run by itself, it compares itself with pycocotools (pip install pycocotools) on random objects:

    coco.py [SEED]

An outline is drawn five times as large, edge by edge.  Where it steps from one column of the large
picture to the next, in the middle of the five that stand for a column, the runs of that column
change: from the outside of the object to its inside, or back.
"""
import math
import random
import sys

import numpy as np


def whole(x):
    """As C makes an int of a double: towards 0."""
    return math.trunc(x)


def points(x0, y0, x1, y1):
    """All points of an edge, the same in both directions."""
    across = abs(x1 - x0) >= abs(y1 - y0)
    a0, b0, a1, b1 = (x0, y0, x1, y1) if across else (y0, x0, y1, x1)
    back = a0 > a1
    if back:
        a0, b0, a1, b1 = a1, b1, a0, b0
    slope = (b1 - b0) / (a1 - a0) if a1 != a0 else 0.0
    out = [(a0 + d, whole(b0 + slope * d + 0.5)) for d in range(a1 - a0 + 1)]
    if back:
        out.reverse()
    return out if across else [(b, a) for a, b in out]


def outline(numbers, width, height):
    """One outline as a mask [height, width] of bool."""
    large = [whole(5 * v + 0.5) for v in numbers]
    corners = list(zip(large[::2], large[1::2]))
    path = []
    for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1]):
        path += points(x0, y0, x1, y1)
    changes = np.zeros(width * height + 1, np.int64)
    for (u0, v0), (u1, v1) in zip(path, path[1:]):
        column, rest = divmod(min(u0, u1) - 2, 5)  # the middle one of five is number 2
        if u0 == u1 or rest or not 0 <= column < width:
            continue
        row = math.ceil(min(max((min(v0, v1) + 0.5) / 5 - 0.5, 0), height))
        changes[column * height + row] += 1
    inside = np.cumsum(changes[:-1]) % 2 == 1
    return inside.reshape(width, height).T


def counts_of(text):
    """The compressed text of runs, as numbers."""
    out, at = [], 0
    while at < len(text):
        value, shift = 0, 0
        while True:
            c = ord(text[at]) - 48
            at += 1
            value |= (c & 31) << shift
            shift += 5
            if not c & 32:
                break
        if c & 16:
            value -= 1 << shift
        out.append(value + (out[-2] if len(out) > 2 else 0))
    return out


def text_of(counts):
    """The reverse."""
    out = ""
    for i, count in enumerate(counts):
        value = count - (counts[i - 2] if i > 2 else 0)
        while True:
            c, value = value & 31, value >> 5
            more = value != (-1 if c & 16 else 0)
            out += chr(48 + c + 32 * more)
            if not more:
                break
    return out


def mask_of(segmentation, width, height):
    """Any segmentation as a mask, and how many pixels count when objects overlap."""
    if isinstance(segmentation, list):
        masks = [outline(numbers, width, height) for numbers in segmentation]
        return np.any(masks, 0), sum(int(m.sum()) for m in masks)
    counts = segmentation["counts"]
    counts = counts_of(counts) if isinstance(counts, str) else counts
    mask = np.repeat(np.arange(len(counts)) % 2 == 1, counts).reshape(width, height).T
    return mask, int(mask.sum())


def picture(objects, width, height):
    """[(segmentation, value)] as one picture: smaller ones on top, later ones on their equals."""
    out = np.zeros((height, width), np.uint32)
    drawn = [(*mask_of(segmentation, width, height), value) for segmentation, value in objects]
    for mask, _, value in sorted(drawn, key=lambda d: -d[1]):
        out[mask] = value
    return out


def runs_of(mask):
    flat = mask.T.reshape(-1).astype(int)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flat))))
    return np.diff(np.concatenate(([0], edges, [len(flat)]))).tolist()


def random_object(rng, width, height):
    """Outlines, runs, and compressed runs, some of which lead out of the picture."""
    kind = rng.randrange(4)
    if kind >= 2:
        mask = np.zeros((height, width), bool)
        for _ in range(rng.randint(0, 3)):
            x, y = rng.randrange(width), rng.randrange(height)
            mask[y:y + rng.randint(1, 30), x:x + rng.randint(1, 30)] ^= True
        counts = runs_of(mask)
        return {"size": [height, width], "counts": text_of(counts) if kind == 2 else counts}
    out, far, steps = [], rng.choice([0, 4, 40]), rng.choice([1, 2, 100, None])
    for _ in range(rng.randint(1, 3)):
        numbers = []
        for _ in range(rng.randint(3, 9)):
            x, y = rng.uniform(-far, width + far), rng.uniform(-far, height + far)
            numbers += [round(x * steps) / steps, round(y * steps) / steps] if steps else [x, y]
        out.append(numbers + numbers[:2] * rng.randrange(2))
    return out


def main():
    from pycocotools import mask as theirs
    rng, failures = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1), 0
    for _ in range(2000):
        width, height = rng.randint(1, 80), rng.randint(1, 80)
        segmentation = random_object(rng, width, height)
        if isinstance(segmentation, list):
            rle = theirs.merge(theirs.frPyObjects(segmentation, height, width))
        elif isinstance(segmentation["counts"], list):
            rle = theirs.frPyObjects(segmentation, height, width)
        else:
            rle = segmentation
        mine = mask_of(segmentation, width, height)[0]
        failures += not np.array_equal(theirs.decode(rle) > 0, mine)
        failures += theirs.encode(np.asfortranarray(mine.astype("u1")))["counts"].decode() != text_of(runs_of(mine))
    print(f"2000 objects, {failures} differ")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
