# SPDX-License-Identifier: Apache-2.0
"""Compare normalised samples with NumPy's; run by normal.sh.

    normal.py PROGRAM                    PROGRAM is tests/pack/dump_normal

float64 in NumPy, then astype: one rounding, to nearest even.  NumPy has no bfloat16: there the two
neighbours are compared as exact fractions.
"""
import random
import subprocess
import sys
from fractions import Fraction

import numpy as np

F16, BF16, F32 = 1, 2, 3
TYPES = {F16: np.float16, BF16: np.uint16, F32: np.float32}


def bf16_value(bits):
    return Fraction(float(np.uint32(bits << 16).view(np.float32)))


def bf16_bits(value):
    """The bits of the nearest bfloat16, a half to the even one, found without rounding anything."""
    sign = 0x8000 if np.signbit(value) else 0
    exact = Fraction(abs(float(value)))
    below = int(np.float32(abs(value)).view(np.uint32)) >> 16
    while bf16_value(below) > exact:
        below -= 1
    while below + 1 < 0x7F80 and bf16_value(below + 1) <= exact:
        below += 1
    low, high = exact - bf16_value(below), bf16_value(below + 1) - exact
    return sign | (below if low < high or (low == high and below % 2 == 0) else below + 1)


def expect(kind, mean, std):
    x = np.arange(256, dtype=np.float64)
    values = np.stack([(x / 255.0 - m) / s for m, s in zip(mean, std)])
    if kind == BF16:
        return np.array([[bf16_bits(v) for v in row] for row in values], np.uint16)
    return values.astype(TYPES[kind])


def choices():
    yield (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    yield (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)
    yield (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
    yield (0, 0, 0), (1, 1, 1)
    yield (0, 0, 0), (1 / 255.0,) * 3
    yield (1, 0.5, 0), (0.00002, 3e4, 1e6)  # large, and subnormal in f16
    yield (0.1, 0.2, 0.3), (2.0**20, 2.0**24, 2.0**25)
    rng = random.Random(4)
    for _ in range(40):
        yield [rng.uniform(-1, 2) for _ in range(3)], [10 ** rng.uniform(-3, 2) for _ in range(3)]


def main():
    jobs = [(kind, mean, std) for kind in TYPES for mean, std in choices()]
    refused = [(F16, (0, 0, 0), (1.5e-5, 1, 1)), (F32, (0, 0, 0), (1, 1, 1e-39)), (BF16, (0, 0, 0), (1, 0, 1)),
               (F32, (0, 0, 0), (1, -1, 1)), (F16, (1e6, 0, 0), (1, 1, 1))]
    text = "".join(f"{kind} {' '.join(map(repr, [*mean, *std]))}\n" for kind, mean, std in jobs + refused)
    out = subprocess.run([sys.argv[1]], input=text.encode(), stdout=subprocess.PIPE, check=True).stdout
    at = 0
    for kind, mean, std in jobs + refused:
        size = 768 * np.dtype(TYPES[kind]).itemsize
        planes, mixed = out[at:at + size], out[at + size:at + 2 * size]
        at += 2 * size
        if (kind, mean, std) in refused:
            assert planes[0] == ord("n") and not any(planes[1:]), (kind, mean, std)
            continue
        want = expect(kind, mean, std)
        assert planes == want.tobytes(), (kind, mean, std)
        assert mixed == want.T.tobytes(), (kind, mean, std)
    assert at == len(out)
    print(f"{len(jobs)} tables of 3 x 256 as NumPy's, {len(refused)} refused")


main()
