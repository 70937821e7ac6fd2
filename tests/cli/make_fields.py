# SPDX-License-Identifier: Apache-2.0
"""make_fields.py - samples of several fields, as every source has them, and what a record of them
must be; run by tests

    make_fields.py RESIZE CROP FIT

Writes into the working folder: img/, mask/ and depth/ with folders of classes, text/ and more/
beside them; t.csv and t.jsonl; wds.tar and its members as wds.zip; folders.tar, whose classes are
folders; and want.npz.
"""
import csv
import io
import json
import os
import sys
import tarfile
import zipfile

import numpy as np
from PIL import Image

sys.path.insert(0, os.path.join(os.environ["ROOT"], "tests/twin"))
import pillow  # noqa: E402

COUNT, MAX = 14, {"caption": 96, "ids": 16, "boxes": 5, "blob": 8}
FITS = {"short": pillow.SHORT, "long": pillow.LONG, "stretch": pillow.STRETCH, "pad": pillow.PAD}


def place(size, resize, crop, fit):
    """Size after the resize, offset of the crop, and padding: along each axis, x first."""
    blank = Image.new("L", size)
    scaled = blank
    if fit == pillow.PAD:
        w, h = size
        new = (resize, round(h / w * resize)) if w > h else (round(w / h * resize), resize)
        return new, [0, 0], [round((resize - n) / 2) for n in new]
    if resize:
        scaled = pillow.resized(blank, resize, fit, Image.NEAREST)
    return (
        scaled.size,
        [int(round(max(n - crop, 0) / 2.0)) for n in scaled.size],
        [max(crop - n, 0) // 2 for n in scaled.size],
    )


def move(boxes, size, resize, crop, fit):
    """What torchvision's v2 transforms do to boxes, in float32."""
    new, offset, pad = place(size, resize, crop, fit)
    ratio = np.array([np.float32(n / o) for n, o in zip(new, size)] * 2, np.float32)
    shift = np.array([p - o for p, o in zip(pad, offset)] * 2, np.float32)
    return np.clip(np.asarray(boxes, np.float32).reshape(-1, 4) * ratio + shift, np.float32(0), np.float32(crop))


def padded(rows, most, dtype, shape=()):
    out = np.zeros((len(rows), most) + shape, dtype)
    for i, row in enumerate(rows):
        if len(row):
            out[i, :len(row)] = row
    return out, np.array([[len(r)] for r in rows], "<u4")


def png(image):
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def make_sample(rng, i):
    """All that a sample is made of."""
    w, h = int(rng.integers(20, 90)), int(rng.integers(20, 90))
    pixels = rng.integers(0, 256, (h, w, 3), dtype=np.uint8)
    mask = Image.fromarray(rng.integers(0, 21, (h, w), dtype=np.uint8))
    if i % 2:  # a palette, whose colours are nothing to us
        mask.putpalette(rng.integers(0, 256, 768, dtype=np.uint8).tobytes())
    corners = np.sort(rng.integers(-20, 380, (i % (MAX["boxes"] + 1), 2, 2)) / 4, axis=1).reshape(-1, 4)  # exact in f32
    return {"label": i % 2, "image": Image.fromarray(pixels), "mask": mask,
            "depth": Image.fromarray(255 - pixels[::2, ::2]), "boxes": corners.tolist(),
            "caption": "caption %d, \"quoted\",\nof \u00e9\u732b \U0001f408" % i if i else "",
            "ids": rng.integers(-2**31, 2**31, i % (MAX["ids"] + 1)).tolist(), "mat": [[i, -0.1], [1e30, i / 3]],
            "score": i / 7, "blob": bytes(rng.integers(0, 256, i % (MAX["blob"] + 1), dtype=np.uint8).tolist())}


def main(resize, crop, fit):
    rng = np.random.default_rng(11)
    samples = [make_sample(rng, i) for i in range(COUNT)]
    samples.sort(key=lambda s: s["label"])  # the order of folders of classes
    want = {"image": [], "mask": [], "depth": [], "boxes": []}
    rows, members, by_folder = [], [], []
    for i, s in enumerate(samples):
        name = "%s/%02d" % ("ab"[s["label"]], i)
        files = {
            "img/%s.png" % name: png(s["image"]),
            "mask/%s.png" % name: png(s["mask"]),
            "depth/%s.png" % name: png(s["depth"]),
            "text/%s.txt" % name: s["caption"].encode(),
            "more/%s.ids.npy" % name: npy(np.array(s["ids"], "<i8")),
            "more/%s.mat.json" % name: json.dumps(s["mat"]).encode(),
            "more/%s.boxes.npy" % name: npy(np.asfortranarray(np.array(s["boxes"], ">f8").reshape(-1, 4))),
        }
        for path, data in files.items():
            os.makedirs(os.path.dirname(path), exist_ok=True)
            open(path, "wb").write(data)
        wh = [[b[0], b[1], b[2] - b[0], b[3] - b[1]] for b in s["boxes"]]
        rows.append(
            {
                "path": "img/%s.png" % name,
                "label": s["label"],
                "seg": "mask/%s.png" % name,
                "depth": "depth/%s.png" % name,
                "boxes": s["boxes"],
                "caption": s["caption"],
                "ids": s["ids"],
                "mat": s["mat"],
                "score": s["score"],
                "age": i,
            }
        )
        more = {"n": {"deep": 1}, "caption": s["caption"], "boxes": wh, "score": s["score"]}
        members += [
            ("%04d.%s" % (i, suffix), data)
            for suffix, data in {
                "seg.png": png(s["mask"]),
                "png": png(s["image"]),
                "depth.png": png(s["depth"]),
                "cls": b"%d" % s["label"],
                "json": json.dumps(more).encode(),
                "ids.npy": npy(np.array(s["ids"], ">i4")),
                "mat": json.dumps(s["mat"]).encode(),
                "bin": s["blob"],
                "TXT": s["caption"].encode(),
            }.items()
        ]
        by_folder += [
            ("%s.v2.png" % name, png(s["image"])),
            ("%s.txt" % name, s["caption"].encode()),
            ("%s.x" % name, b"?"),
        ]
        want["image"].append(np.asarray(pillow.transform(s["image"], resize, crop, Image.BILINEAR, FITS[fit])))
        want["mask"].append(
            np.asarray(
                pillow.transform(Image.fromarray(np.asarray(s["mask"])), resize, crop, Image.NEAREST, FITS[fit], 255)
            )
        )
        want["depth"].append(np.asarray(pillow.transform(s["depth"], 20, 16, Image.BICUBIC)).transpose(2, 0, 1))
        want["boxes"].append(move(s["boxes"], s["image"].size, resize, crop, FITS[fit]))
    write_tables(rows)
    write_archives(members, by_folder)
    save(want, samples, rows)


def write_tables(rows):
    with open("t.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(rows[0])
        for r in rows:
            w.writerow([json.dumps(v) if isinstance(v, list) else v for v in r.values()])
    with open("t.jsonl", "w") as f:
        for r in rows:
            f.write(json.dumps(r) + "\n")


def write_archives(members, by_folder):
    for name, all_of in ("wds.tar", members), ("folders.tar", by_folder):
        with tarfile.open(name, "w") as tar:
            for path, data in all_of:
                info = tarfile.TarInfo(path)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    with zipfile.ZipFile("wds.zip", "w", zipfile.ZIP_DEFLATED) as z:
        for path, data in members:
            z.writestr(path, data)


def save(want, samples, rows):
    out = {k: np.stack(want[k]) for k in ("image", "mask", "depth")}
    out["boxes"], out["boxes_length"] = padded(want["boxes"], MAX["boxes"], "<f4", (4,))
    for name, dtype, values in (("caption", "u1", [np.frombuffer(s["caption"].encode(), "u1") for s in samples]),
                                ("ids", "<i4", [s["ids"] for s in samples]),
                                ("blob", "u1", [np.frombuffer(s["blob"], "u1") for s in samples])):
        out[name], out[name + "_length"] = padded(values, MAX[name], dtype)
    out["label"] = np.array([s["label"] for s in samples], "<i8")
    out["age"] = np.array([r["age"] for r in rows], "<u2")
    out["mat"] = np.array([s["mat"] for s in samples]).astype("<f4")
    out["score"] = np.array([s["score"] for s in samples], "<f8")
    np.savez("want.npz", **out)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
