# SPDX-License-Identifier: Apache-2.0
"""peers.py ROOT - what bench/peers refuses and records, and that kept results fit their figures"""

import contextlib
import glob
import io
import json
import os
import shutil
import sys
import xml.etree.ElementTree

sys.dont_write_bytecode = True
ROOT = sys.argv[1]
sys.path.insert(0, f"{ROOT}/bench/peers")

import run  # noqa: E402
import table  # noqa: E402

PEER = '''
import common

NAME = "{name}"
INSTALL = {install}
BASE = ""
SETTINGS = "none"
DOCS = "none"


def pack(images, labels, out):
    common.write_map(images, labels, out)


class Reader:
    def __init__(self, out, workers):
        self.images, self.labels = common.corpus(out)

    def epoch(self, number):
        images, labels = self.images.copy(), self.labels
        {body}
'''
PEERS = {
    "good": ([], "yield images[8:], labels[8:]; yield images[:8], labels[:8]"),
    "changed": ([], "images[5, 0, 0, 0] ^= 1; yield images, labels"),
    "relabelled": ([], "yield images, labels[::-1]"),
    "short": ([], "yield images[1:], labels[1:]"),
    "twice": ([], "yield images, labels; yield images[:1], labels[:1]"),
    "broken": ([], "raise ValueError('this peer does not run')"),
    "absent": ([["--no-index", "libshard-no-such-peer"]], "yield images, labels"),
}


def make_peers(folder):
    os.mkdir(folder)
    for name in ("common.py", "measure.py"):
        shutil.copy(f"{ROOT}/bench/peers/{name}", folder)
    for name, (install, body) in PEERS.items():
        with open(f"{folder}/peer_{name}.py", "w") as f:
            f.write(PEER.format(name=name, install=install, body=body))


def harness(only):
    """run.py with these peers; returns what it kept."""
    sys.argv = ["run.py", "build", "--records", "512", "--only", only, "--results", "kept"]
    with contextlib.redirect_stdout(io.StringIO()):
        run.main()
    with open("kept.json") as f:
        return json.load(f)


def test_rows():
    make_peers("peers")
    real, run.HERE, run.PEERS = run.make_venv, os.path.abspath("peers"), list(PEERS)
    run.make_venv = lambda folder, installs, base=None: real(folder, installs, base) if installs else sys.executable
    run.versions = lambda python, installs: {}
    # The data may be fewer than it is told: nobody counts but the checksum.
    run.run(
        [sys.executable, f"{ROOT}/bench/peers/make_corpus.py", "build/corpus-512", "16"],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    found = harness(",".join(PEERS))
    rows = {r["peer"]: r for r in found["rows"]}
    assert list(rows) == list(PEERS), list(rows)
    with open("build/corpus-512/checksum") as f:
        wanted = f.read()
    good = rows["good"]
    assert "error" not in good and set(good["checksums"]) == {good["checksum"]} == {wanted}, good
    for key in (c[1] for c in table.COLUMNS):
        assert good[key] >= 0, key
    assert good["bytes"] == 16 * 224 * 224 * 3 + os.path.getsize("build/corpus-512/labels.npy"), good
    assert good["records"] == 16, good
    for name in ("changed", "relabelled", "short", "twice"):
        row = rows[name]
        assert row["error"].startswith("read other pixels: checksum "), row
        assert row["error"].endswith(f", that of the data is {wanted}"), row
        assert not {"hot_per_s", "cold_per_s", "checksums"} & set(row), row
    assert rows["broken"]["error"].endswith(": ValueError: this peer does not run"), rows["broken"]
    assert "`" in rows["absent"]["error"] and (
        "No matching distribution found for libshard-no-such-peer" in rows["absent"]["error"]
        or "ensurepip" in rows["absent"]["error"]
    )
    text = json.dumps(found)
    assert os.getcwd() not in text and ROOT not in text, "the results name this machine's folders"
    assert not os.listdir("build/data"), os.listdir("build/data")

    # A run in pieces: others' rows stay, unless they are of another machine.
    again = {r["peer"]: r for r in harness("good")["rows"]}
    assert list(again) == list(PEERS) and again["broken"] == rows["broken"] and again["good"] != good
    run.machine = lambda: {**found["machine"], "cpus": -1}
    assert [r["peer"] for r in harness("good")["rows"]] == ["good"]


def test_table():
    def row(peer, **figures):
        return {
            "peer": peer,
            "name": peer.title(),
            "settings": "s",
            "docs": "d",
            "checksums": ["0123456789abcdef"],
            "workers": 2,
            **figures,
        }

    base = {c[1]: 2 for c in table.COLUMNS}
    found = {
        "when": "2000-01-01",
        "records": 512,
        "batch": 256,
        "machine": {"cpu": "C", "cpus": 1, "memory_bytes": 2**30, "kernel": "K", "python": "3"},
    }
    found["rows"] = [
        row("slow", **{**base, "hot_per_s": 1, "pack_s": 1, "resume_s": 3}),
        row("fast<", **{**base, "hot_per_s": 4, "open_s": 9}),
        {**row("gone"), "error": "`x`: no|t"},
        row("libshard", **base, has_state=True),
    ]
    text = list(table.markdown(found))
    lines = [t.split("|")[1].strip() for t in text if t.startswith("|")][2:]
    assert lines == ["Libshard", "Fast<", "Slow", "Gone"], lines
    behind = {title: names for title, names, reason in table.not_ahead(found) if reason}
    assert (
        behind["pack s"] == "Slow (1.0), Fast< (2.0)"
        and behind["images/s hot"] == "Fast< (4)"
        and behind["resume s"] == "Fast< (2.00*)"
    ), behind
    assert behind["open ms"] == "Slow (2,000.0)", behind
    assert "  Error: `x`: no|t" in text and any(t.startswith("| Gone | does not run") for t in text), text
    assert {t.count("|") for t in text if t.startswith("|")} == {len(table.COLUMNS) + 4}
    picture = xml.etree.ElementTree.fromstring("\n".join(table.svg(found)))
    assert sum(e.text == "Fast<" for e in picture.iter()) == 1
    assert sum(e.tag.endswith("rect") for e in picture.iter()) == 1 + 3 * len(table.PANELS)


def test_kept():
    files = sorted(glob.glob(f"{ROOT}/bench/results/peers/*.json"))
    assert files
    for path in files:
        with open(path) as f:
            found = json.load(f)
        for end, made in ((".md", table.markdown), (".svg", table.svg)):
            with open(path.replace(".json", end)) as f:
                same = f.read() == "\n".join(made(found)) + "\n"
            assert same, f"{end} of {path} is not what bench/peers/table.py makes of it"
        sums = {
            c for r in found["rows"] for c in [*r.get("checksums", []), *([r["checksum"]] if "checksum" in r else [])]
        }
        assert len(sums) == 1, sums
    with open(f"{ROOT}/bench/RESULTS.md") as f:
        results = f.read()
    shown = "\n".join(table.table(found)) in results
    assert shown, "bench/RESULTS.md does not show the newest table of bench/results/peers"


test_table()
test_rows()
test_kept()
print("peers as they should be")
