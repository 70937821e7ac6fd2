# SPDX-License-Identifier: Apache-2.0
"""migrating.py GUIDE - run its blocks that say how it is done with libshard, and see that each did something"""

import re
import subprocess
import sys

import libshard
import torch


class MyDataset(torch.utils.data.Dataset):
    """What the guide takes for granted that a reader has."""

    def __len__(self):
        return 70

    def __getitem__(self, i):
        i = range(len(self))[i]  # or IndexError
        return torch.full((224, 224, 3), i, dtype=torch.uint8), i % 2


def blocks(text):
    """(heading, language, code, whether it is ours): blocks behind "Before:" are not."""
    heading, ours = "", True
    for m in re.finditer(r"^## (?P<heading>[^\n]*)$|^(?P<before>Before:)$|^```(?P<language>\w+)\n(?P<code>.*?)^```$", text, re.M | re.S):
        if m["heading"]:
            heading = m["heading"]
        elif m["before"]:
            ours = False
        else:
            yield heading, m["language"], m["code"], ours
            ours = True


def main():
    scope = {"MyDataset": MyDataset, "torch": torch, "__name__": "guide"}
    with open(sys.argv[1]) as f:
        found = list(blocks(f.read()))
    ran, shapes = {}, []
    for heading, language, code, ours in found:
        if not ours:
            continue
        print(f"---- {heading}, {language}", flush=True)
        if language == "sh":
            subprocess.run(["sh", "-euc", code], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        else:
            exec(compile(code, heading, "exec"), scope)
        shapes += [tuple(scope["image"].shape)[1:]] if "image" in scope and scope["image"].ndim == 4 else []
        ran[heading] = ran.get(heading, 0) + 1
    assert sum(not ours for *_, ours in found) == 4, found  # each of the four has its "Before"
    assert all(ran.get(f"From {name}", 0) for name in ("ImageFolder and DataLoader", "FFCV", "WebDataset", "Streaming (MosaicML)")), ran
    # What the blocks made is what they say.
    for name, records in (("train", 70), ("mine", 70), ("mine2", 70), ("beton", 70), ("captions", 70), ("mds", 70), ("tokens", 40)):
        ds = libshard.open(f"ds/{name}")
        assert len(ds) == records and ds.verify().ok, (name, len(ds))
    assert libshard.open("ds/train").classes == ["class_00", "class_01"]
    assert len(shapes) > 3 and set(shapes) == {(3, 224, 224)}, shapes
    assert (scope["inputs"].shape, scope["targets"].shape) == ((8, 64), (8, 64))
    assert torch.equal(scope["inputs"][:, 1:], scope["targets"][:, :-1])
    print(f"{sum(ran.values())} blocks")


main()
