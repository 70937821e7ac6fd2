#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make_bad.py IMAGES - tables, folders and archives of images in which some inputs are bad

IMAGES is a folder of folders, as make_images.py leaves it.  For every source NAME the file NAME.bad
has the path and the reason of each bad input, in byte order, and NAME.good the keys of the others.
"""

import io
import json
import os
import shutil
import sys
import tarfile

ROOT = sys.argv[1]
IMAGES = sorted(os.path.join(f, n) for f, _, names in os.walk(ROOT) for n in names)


def expect(name, bad, good):
    for end, lines in (("bad", sorted(bad)), ("good", sorted(good))):
        with open(f"{name}.{end}", "w") as f:
            f.writelines(line + "\n" for line in lines)


def table():
    i = IMAGES
    rows = [(p, str(n % 3), "[[1,2,9,9]]") for n, p in enumerate(i[:12])]
    good = [p for p, _, _ in rows]
    bad = []
    for row, path, reason in (
        ((f"{ROOT}/gone.jpg", "1", "[]"), f"{ROOT}/gone.jpg", "missing"),
        (("nofolder/gone.jpg", "7", "[]"), "nofolder/gone.jpg", "missing"),
        ((f"{i[0]}/x.jpg", "1", "[]"), f"{i[0]}/x.jpg", "missing"),  # a file is no folder
        ((i[12], "", "[]"), i[12], "incomplete"),
        ((i[13], "\udcff\udcfe", "[]"), i[13], "bad value"),
        ((i[14], "2", "[[9,9,2,2]]"), i[14], "unsupported"),
        ((i[15], "2", "[[9,9,"), i[15], "decoder failed"),
        ((i[16], "2", ""), i[16], "incomplete"),
        (("", "2", "[]"), "table.csv#", "incomplete"),
    ):
        rows.insert(3 + len(bad), row)
        bad.append((path, reason))
    with open("table.csv", "w", errors="surrogateescape") as f:
        f.write("path,label,boxes\n")
        for p, label, boxes in rows:
            f.write(f'{p},{label},"{boxes}"\n')
    line = 2 + [p for p, _, _ in rows].index("")
    expect("table", [f"{p}{line if p.endswith('#') else ''} {r}" for p, r in bad], good)


def lines():
    i = IMAGES
    with open("lines.jsonl", "w") as f:
        for n, p in enumerate(i[:10]):
            f.write(json.dumps({"path": p, "label": n % 2, "text": "x"}) + "\n")
        f.write(json.dumps({"path": i[10], "label": 1, "text": "x"})[:-9] + "\n")  # cut within
        f.write("[]\n")
        f.write(json.dumps({"path": i[11], "label": 1.5, "text": "x"}) + "\n")
        f.write(json.dumps({"label": 1, "text": "x"}) + "\n")
        f.write(json.dumps({"path": i[12], "label": 1, "text": 7}) + "\n")
    expect("lines", ["lines.jsonl#11 bad value", "lines.jsonl#12 bad value", f"{i[11]} incomplete",
                     "lines.jsonl#14 incomplete", f"{i[12]} bad value"], i[:10])


def folder():
    for n, p in enumerate(IMAGES[:8]):
        os.makedirs(f"folder/{'ab'[n % 2]}", exist_ok=True)
        shutil.copy(p, f"folder/{'ab'[n % 2]}/{n}.png" if p.endswith("png") else f"folder/{'ab'[n % 2]}/{n}.jpg")
    good = sorted(os.path.join(f, n)[len("folder/"):] for f, _, names in os.walk("folder") for n in names)
    os.makedirs("folder/aa/notes")
    open("folder/aa/notes/x.txt", "w").close()
    os.symlink("nowhere", "folder/a/link.jpg")
    os.symlink("nowhere", "folder/b/link")
    expect("folder", ["aa empty", "a/link.jpg missing", "b/link missing"], good)


def add(tar, name, data, **more):
    m = tarfile.TarInfo(name)
    m.size = len(data)
    for key, value in more.items():
        setattr(m, key, value)
    tar.addfile(m, io.BytesIO(data))


def sample(tar, key, image, label=b"1", meta=b'{"n": 1}'):
    for end, data in (("jpg", image), ("cls", label), ("json", meta)):
        if data is not None:
            add(tar, f"{key}.{end}", data)


def archives():
    data = [open(p, "rb").read() for p in IMAGES if p.endswith("jpg")]
    os.mkdir("tars")
    with tarfile.open("tars/0.tar", "w") as t:
        for n in range(4):
            sample(t, f"g{n}", data[n], b"%d" % (n % 2))
        sample(t, "nocls", data[4], None)
        sample(t, "noimage", None)
        sample(t, "badcls", data[5], b"\xff\xfe")
        sample(t, "nojson", data[6], meta=None)
        sample(t, "twice", data[7])
        add(t, "twice.png", data[7])
        add(t, "linked.jpg", b"", type=tarfile.SYMTYPE, linkname="g0.jpg")
        add(t, "linked.cls", b"1")
        add(t, "linked.json", b"{}")
        add(t, "there", b"", type=tarfile.SYMTYPE, linkname="g0.jpg")
    good = [f"0.tar/g{n}.jpg" for n in range(4)]
    bad = ["0.tar/nocls.jpg incomplete", "0.tar/noimage.cls incomplete", "0.tar/badcls.jpg bad value",
           "0.tar/nojson.jpg incomplete", "0.tar/twice.jpg unsupported", "0.tar/linked.jpg bad member",
           "0.tar/there bad member"]
    with tarfile.open("tars/1.tar", "w") as t:
        for n in range(5):
            sample(t, f"c{n}", data[n], b"0")
    with tarfile.open("tars/1.tar") as t:
        cut = t.getmember("c3.json").offset_data  # in the header's sample: its last member is lost
    with open("tars/1.tar", "r+b") as f:
        f.truncate(cut)
    good += [f"1.tar/c{n}.jpg" for n in range(3)]
    bad += ["1.tar/c3.jpg incomplete", "1.tar bad member"]
    with tarfile.open("tars/2.tar", "w") as t:
        for n in range(3):
            sample(t, f"e{n}", data[n], b"0")
    with open("tars/2.tar", "r+b") as f:
        f.truncate(os.path.getsize("tars/2.tar") // 10240 * 10240 - 10240 or 512)
    with tarfile.open("tars/3.tar", "w") as t:
        sample(t, "d0", data[0], b"1")
    open("tars/4.tar", "w").close()
    os.symlink("nowhere", "tars/5.tar")
    with open("tars/6.tar.gz", "wb") as f:
        f.write(b"\x1f\x8b\x08\0\0\0\0\0\0\3" + b"\xee" * 600)
    good += ["3.tar/d0.jpg"]
    bad += ["4.tar bad member", "5.tar missing", "6.tar.gz bad member"]
    os.remove("tars/2.tar")
    expect("tars", bad, good)


table()
lines()
folder()
archives()
