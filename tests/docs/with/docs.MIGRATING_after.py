# SPDX-License-Identifier: Apache-2.0
"""docs.MIGRATING_after.py - the datasets and tensors that the page made are as it says"""

records = {"train": 70, "mine": 70, "mine2": 70, "beton": 70, "tars": 63, "captions": 70, "mds": 70, "tokens": 40}
records |= dict.fromkeys(["imagenet", "streaming", "litdata", "faces", "ffcv", "lmdb"], 70)
for name, count in records.items():
    ds = libshard.open(f"ds/{name}")
    assert len(ds) == count and ds.verify().ok, (name, len(ds))
assert libshard.open("ds/train").classes == ["class_00", "class_01"]
first, *others = (libshard.open(f"ds/{name}") for name in ("lmdb", "imagenet", "streaming", "litdata", "ffcv"))
images = sorted(bytes(record["image"]) for record in first)
for ds in others:  # of one size; those of TFRecord are in another order
    assert sorted(bytes(record["image"]) for record in ds) == images, ds.path
assert (inputs.shape, targets.shape) == ((8, 64), (8, 64))
assert torch.equal(inputs[:, 1:], targets[:, :-1])
