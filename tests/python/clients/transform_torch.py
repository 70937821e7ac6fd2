# SPDX-License-Identifier: Apache-2.0
"""Compare transformed rows with PyTorch's on a CPU; run by transform_torch.sh.

    transform_torch.py PROGRAM              PROGRAM is what tests/twin/dump_transform.c makes

Crops, mirrors and numbers to the last bit, done as torchvision's ToTensor and Normalize do them.  A
resized image is held against interpolate(antialias=True): of floats, which is never rounded on the
way, to one step of 255, because each of our two passes rounds to bytes, as Pillow does.
"""
import random
import subprocess
import sys

import torch

TYPES = {9: torch.float16, 10: torch.bfloat16, 11: torch.float32}
CHW = 2


def jobs():
    rng = random.Random(7)
    torch.manual_seed(7)
    for i in range(150):
        channels, height, width, resized = rng.randint(1, 4), rng.randint(8, 80), rng.randint(8, 80), i % 3 == 0
        out = (rng.randint(1, 90), rng.randint(1, 90)) if resized else (rng.randint(1, height), rng.randint(1, width))
        box = (rng.randint(1, height), rng.randint(1, width)) if resized else out
        mean, std = torch.rand(channels), torch.rand(channels) * 0.95 + 0.05
        if i % 2:
            mean, std = (
                torch.tensor([0.485, 0.456, 0.406, 0.5])[:channels],
                torch.tensor([0.229, 0.224, 0.225, 0.5])[:channels],
            )
        image = torch.randint(0, 256, (channels, height, width), dtype=torch.uint8)
        yield (
            resized,
            image,
            out,
            box,
            rng.randint(0, height - box[0]),
            rng.randint(0, width - box[1]),
            rng.random() < 0.5,
            mean,
            std,
            11 if resized else rng.choice(list(TYPES)),
        )


def four(values):
    return " ".join(map(repr, values.tolist() + [1.0] * (4 - len(values))))


def main():
    todo, text = list(jobs()), b""
    for resized, image, out, box, y, x, flip, mean, std, dtype in todo:
        if resized:  # plain samples, to compare them
            mean, std = torch.zeros(len(mean)), torch.full((len(std),), 1 / 255)
        text += (
            f"transform 0 {' '.join(map(str, image.shape))} {CHW} {out[0]} {out[1]} {dtype} {CHW} {2 * resized}"
            f" {four(mean)} {four(std)} {x} {y} {box[1]} {box[0]} {int(flip)}\n"
        ).encode() + bytes(image.flatten().tolist())
    got, at, furthest = subprocess.run([sys.argv[1]], input=text, stdout=subprocess.PIPE, check=True).stdout, 0, 0.0
    for resized, image, out, box, y, x, flip, mean, std, dtype in todo:
        part = image[:, y:y + box[0], x:x + box[1]]
        count = len(image) * out[0] * out[1]
        size = count * TYPES[dtype].itemsize
        have = torch.frombuffer(bytearray(got[at:at + size]), dtype=TYPES[dtype]).reshape(len(image), *out)
        at += size
        if resized:
            want = torch.nn.functional.interpolate(part[None].float(), out, mode="bilinear", antialias=True)[0]
            want = want.flip(2) if flip else want
            furthest = max(furthest, float((have - want).abs().max()))
        else:
            part = part.flip(2) if flip else part
            want = (
                part.contiguous()
                .to(torch.float32)
                .div(255)
                .sub_(mean[:, None, None])
                .div_(std[:, None, None])
                .to(TYPES[dtype])
            )
            assert torch.equal(have.view(torch.uint8), want.contiguous().view(torch.uint8)), (image.shape, out, dtype)
    assert at == len(got)
    assert 0.2 < furthest < 1.01, furthest
    print(f"100 rows as PyTorch's, 50 resized ones within {furthest:.2f} steps of 255 (torch {torch.__version__})")


main()
