# SPDX-License-Identifier: Apache-2.0
"""check.py - what this harness refuses and records, tried with peers that are made up here

`make bench-peers` runs it first.  It works in the folder where it is run.
"""

import ast
import contextlib
import copy
import glob
import io
import json
import os
import re
import sys
import xml.etree.ElementTree

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{ROOT}/bench/peers")

import common  # noqa: E402
import run  # noqa: E402
import table  # noqa: E402

PEER = '''
import os

import common

assert "OMP_NUM_THREADS" not in os.environ

NAME = "{name}"
INSTALL = {install}
BASE = ""
LINES = {{
    "Reader": {{"way": "", "settings": "none", "docs": "none", "workers": [1]}},
    "Common": {{"way": "slower", "settings": "none", "docs": "none", "workers": [0, 1]}},
}}
if {cold} is not None:
    common.make_cold = lambda out: {cold}


def pack(images, labels, out):
    common.write_map(images, labels, out)


class Reader:
    def __init__(self, out, workers):
        self.images, self.labels = common.corpus(out)
        self.workers = workers

    def epoch(self, number):
        images, labels = self.images.copy(), self.labels
        {body}


class Common(Reader):
    pass
'''
GOOD = "yield images[8:], labels[8:]; yield images[:8], labels[:8]"
UNSAMPLED = "images[5, 0, 0, 1] ^= 1"  # a sample of one byte a page would pass it
PEERS = {
    "good": GOOD,
    "changed": f"{UNSAMPLED}; {GOOD}",
    "late": f"images[5, 0, 0, 1] ^= number > 0; {GOOD}",
    "relabelled": "yield images, labels[::-1]",
    "short": "yield images[1:], labels[1:]",
    "twice": "yield images, labels; yield images[:1], labels[:1]",
    "instead": "images[3] = images[4]; labels = labels.copy(); labels[3] = labels[4]; yield images, labels",
    "warm": GOOD,
    "choice": f"assert self.workers, 'not without workers'; {GOOD}",
    "wanders": f"{GOOD}\n\n    def state(self):\n        return 1"
    "\n\n    def restore(self, state):\n        self.images = self.images[::-1]",
    "broken": "raise ValueError('this peer does not run')",
    "absent": GOOD,
}
INSTALL = {"absent": [["--no-index", "libshard-no-such-peer"]]}


def can_be_cold():
    """Where memory is the only place of a file, each peer says itself that it was cold."""
    os.mkdir("cold")
    with open("cold/file", "wb") as f:
        f.write(bytes(1 << 20))
    return common.make_cold("cold") <= run.STAYED


def make_peers(folder):
    """The harness itself, with a batch of 8, and no longer than it must be."""
    os.mkdir(folder)
    for name, old, new in (
        ("common.py", "BATCH = 256", "BATCH = 8"),
        ("measure.py", "SECONDS = 2 ", "SECONDS = 0.01 "),
    ):
        with open(f"{ROOT}/bench/peers/{name}") as f:
            text = f.read()
        assert text.count(old) == 1, (name, old)
        with open(f"{folder}/{name}", "w") as f:
            f.write(text.replace(old, new))
    cold = None if can_be_cold() else 0.0
    for name, body in PEERS.items():
        with open(f"{folder}/peer_{name}.py", "w") as f:
            words = {"install": INSTALL.get(name, []), "body": body, "cold": 0.02 if name == "warm" else cold}
            f.write(PEER.format(name=name, **words))


def harness(only, *more):
    """run.py with these peers; returns what it kept."""
    sys.argv = ["run.py", "build", "--records", "512", "--only", only, "--results", "kept", *more]
    with contextlib.redirect_stdout(io.StringIO()):
        run.main()
    with open("kept.json") as f:
        return json.load(f)


def refused(*arguments):
    """What run.py said, and its exit code, when it began nothing."""
    sys.argv = ["run.py", "build", "--records", "512", "--results", "kept", *arguments]
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            run.main()
        except SystemExit as e:
            return f"{e.code} {said.getvalue()}"
    raise AssertionError(f"not refused: {arguments}")


def test_quiet():
    shares = [0.9, 0.7, 0.2, 0.1]
    real, run.busy_share = run.busy_share, lambda: shares.pop(0)
    sleep, run.time.sleep = run.time.sleep, lambda seconds: None
    assert run.quiet() == 0.2 and shares == [0.1]
    run.PATIENCE_S, shares[:] = 0, [0.9, 0.1]
    assert run.quiet() == 0.9, "a machine that does not become quiet is measured, and its load kept"
    run.time.sleep, run.busy_share = sleep, real
    assert 0 <= run.busy_share(0.05) <= 1
    run.quiet = lambda: 0.25


def test_rows():
    make_peers("peers")
    real, run.HERE, run.PEERS = run.make_venv, os.path.abspath("peers"), list(PEERS)
    run.make_venv = lambda folder, installs, base=None: real(folder, installs, base) if installs else sys.executable
    run.versions = lambda python, installs: {"none": "1"}
    # The data may be fewer than it is told: nobody counts but the hashes.
    corpus = "build/corpus-512"
    run.run(
        [sys.executable, f"{ROOT}/bench/peers/make_corpus.py", corpus, "16"],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    images, labels = common.corpus(corpus)
    changed = {"images": images.copy()}
    exec(UNSAMPLED, changed)
    assert common.touch(changed["images"], labels) == common.touch(images, labels), "a sample would see this byte"
    assert common.read(changed["images"], labels) != common.read(images, labels)

    os.environ["OMP_NUM_THREADS"] = "1"  # nothing forces it on a peer
    found = harness(",".join(PEERS), "--processes", "1")
    rows = {r["peer"]: r for r in found["rows"] if r["line"] == "Reader"}
    assert list(rows) == list(PEERS) and len(found["rows"]) == 2 * len(PEERS), list(rows)
    with open(f"{corpus}/sums.json") as f:
        sums = json.load(f)
    good = rows["good"]
    assert len(good["processes"]) == 1 and good["workers"] == 1 and "trial" not in good
    for p in good["processes"]:
        hot = p["hot"]
        assert (hot["records"], hot["missing"], hot["foreign"], hot["has_state"]) == (16, 0, 0, False), hot
        for name in ("delivered", "read"):
            assert {e["sum"] for e in hot[name]["epochs"]} == {sums[name]} and hot[name]["others"] >= 0, hot
        assert p["pack"]["bytes"] == 16 * common.IMAGE_BYTES + os.path.getsize(f"{corpus}/labels.npy"), p
        assert p["cold"]["stayed"] <= run.STAYED and p["cold"]["others"] >= 0, p
        assert p["resume"]["same"] and p["load"] == 0.25, p
        assert [key for key, column in table.COLUMNS.items() if table.get(p, column[1]) is None] == []
    slower = next(r for r in found["rows"] if (r["peer"], r["line"]) == ("good", "Common"))
    assert set(slower["trial"]) == {"0", "1"} and all(t["per_s"] > 0 for t in slower["trial"].values())
    assert all("cold" not in p and "pack" not in p and "hot" in p for p in slower["processes"])

    other = {
        "changed": "of 16 records that came, 1 are not the data's or came too often; 1 of the data did not come",
        "relabelled": "16 records that came, ",
        "short": "of 15 records that came, 0 are not the data's or came too often; 1 of the data did not come",
        "twice": "of 17 records that came, 1 are not the data's or came too often; 0 of the data did not come",
        "instead": "of 16 records that came, 1 are not the data's or came too often; 1 of the data did not come",
        "late": f"the sum of an epoch is [0-9a-f]*, not {sums['read']}",
        "warm": "2.0% of the pages stayed in memory where none was to be; 1% is the limit",
        "broken": ": ValueError: this peer does not run",
    }
    for name, words in other.items():
        for p in rows[name]["processes"]:
            assert "hot" not in p or name == "warm", p
            assert re.search(words, p["error"]), p
            assert ("read other data: " in p["error"]) == (name not in ("warm", "broken")), p
            assert {"cold", "resume"}.isdisjoint(p), p
        assert table.reason(rows[name])[0] == "failed"
    assert not rows["absent"]["processes"] and table.reason(rows["absent"])[0] == "cannot be installed"
    assert "`" in rows["absent"]["error"] and (
        "No matching distribution found for libshard-no-such-peer" in rows["absent"]["error"]
        or "ensurepip" in rows["absent"]["error"]
    )
    choice = next(r for r in found["rows"] if (r["peer"], r["line"]) == ("choice", "Common"))
    assert choice["workers"] == 1 and "not without workers" in choice["trial"]["0"]["error"], choice
    wanders = rows["wanders"]["processes"][0]
    assert wanders["hot"]["has_state"] and not wanders["resume"]["same"], wanders
    text = json.dumps(found)
    assert os.getcwd() not in text and ROOT not in text, "the results name this machine's folders"
    assert not os.listdir("build/data"), os.listdir("build/data")

    # Another run adds to the file, and takes nothing away; a row made otherwise is put aside.
    again = harness("good", "--processes", "2")
    assert again["rows"][0]["processes"][:1] == good["processes"] and len(again["rows"][0]["processes"]) == 3
    assert [r for r in again["rows"] if r["peer"] != "good"] == [r for r in found["rows"] if r["peer"] != "good"]
    run.versions = lambda python, installs: {"none": "2"}
    newer = harness("good", "--processes", "1")
    assert [len(r["processes"]) for r in newer["superseded"]] == [3, 3] and not again["superseded"]
    assert sorted(len(r["processes"]) for r in newer["rows"] if r["peer"] == "good") == [1, 1]

    assert refused("--only", "good,nobody").startswith("2 ") and "no peer nobody" in refused("--only", "good,nobody")
    assert refused("--records", "100").startswith("2 ")
    run.machine = lambda: {**found["machine"], "cpus": -1}
    assert "its machine is" in refused("--only", "good") and "give another --results" in refused("--only", "good")
    with open("kept.json") as f:
        assert json.load(f) == newer, "a run that is refused changes nothing"


def made(delivered, load=0.1, others=0.1, **figures):
    """A process: figures are any of those below, and error."""
    f = {"read": delivered, "cold": 2, "cpu_s_per_GB": 2, "pack_s": 2, "resume_s": 2, "open_s": 2}
    f = {"has_state": True, "same": True, "cold_others": 0.1, **f, **figures}
    process = {
        "at": "2000-01-01 00:00:00",
        "load": load,
        "pack": {"pack_s": f["pack_s"], "bytes": 2},
        "hot": {
            **{k: f[k] for k in ("open_s", "has_state")},
            **{k: 2 for k in ("first_s", "peak_bytes", "peak_anonymous_bytes")},
            "delivered": {"per_s": delivered, "cpu_s_per_GB": f["cpu_s_per_GB"], "others": others},
            "read": {"per_s": f["read"], "others": others},
        },
        "cold": {"per_s": f["cold"], "others": f["cold_others"]},
        "resume": {"resume_s": f["resume_s"], "same": f["same"]},
    }
    return {**process, **({"error": f["error"]} if "error" in f else {})}


def row(peer, *processes, line="Reader", **more):
    words = {"peer": peer, "line": line, "name": peer.title(), "way": "", "settings": "s", "docs": "https://d"}
    return {**words, "when": "2000-01-01", "versions": {}, "workers": 2, "processes": list(processes), **more}


def test_table():
    found = {
        "format": table.FORMAT,
        "when": "2000-01-01",
        "records": 512,
        "batch": 256,
        "machine": {"cpu": "C", "cpus": 1, "memory_bytes": 2**30, "kernel": "K", "python": "3"},
    }
    slow = made(1, pack_s=0.5, resume_s=3)
    found["rows"] = [
        row("slow", slow, slow, made(1.5, pack_s=0.5, resume_s=3)),
        row("fast<", *[made(6, open_s=9, same=False)] * 3),
        row("fast<", *[made(5)] * 3, line="Common", way="by hand"),
        row("gone", error="`x`: no|t"),
        row("fails", *[made(9)] * 3, made(9, error="it fell"), *[made(9)] * 3),
        row("busy", made(9, load=0.6), *[made(9)] * 2),
        row("disturbed", made(9, others=0.6), *[made(9)] * 2),
        row("disturbed cold", made(9, cold_others=0.6), *[made(9)] * 2),
        row("few", *[made(9)] * 2),
        row("wild", made(4), made(5), made(9)),
        row("wildread", *[made(9, read=x) for x in (1, 2, 3)]),
        row("libshard", made(3, load=0.9), *[made(x, cpu_s_per_GB=2, has_state=False) for x in (5, 4, 3)]),
        row("unsure", *[made(1, cold=x) for x in (1, 1, 3)]),
    ]
    text = list(table.markdown(found))
    lines = [re.sub(r"\]\(.*", "", t.split("|")[1].strip()).lstrip("[") for t in table.speeds(found)][2:]
    assert lines[:5] == ["Libshard", "Fast<", "Fast<, by hand", "Slow", "Unsure"], lines
    assert len(lines) == len(found["rows"]), lines
    assert any(t.startswith("| [Libshard](https://d) | 4 (3..5) |") for t in text), text
    assert any(t.startswith("| [Slow](https://d) | 1 (1..2) |") for t in text), text
    assert any(t.startswith("| [Gone](https://d) | cannot be installed |") for t in text)
    assert any(t.startswith("| [Unsure](https://d) | 1 | 1 | spread |") for t in text)
    why = {t.split(":")[0][2:]: t for t in table.withheld(found)}
    disturbed = {"Disturbed", "Disturbed Cold"}
    assert set(why) == {"Gone", "Fails", "Busy", "Few", "Wild", "Wildread", "Unsure"} | disturbed, why
    assert "`x`: no|t" in why["Gone"] and "it fell" in why["Fails"]
    assert "2 processes count" in why["Busy"] and all("0.60" in why[name] for name in ("Busy", *disturbed))
    assert "4 to 9, more than 2-fold" in why["Wild"] and "every byte read: 1 to 3" in why["Wildread"], why
    assert "images/s cold" in why["Unsure"] and "1 to 3" in why["Unsure"], why
    behind = {title: names for title, names, reason in table.not_ahead(found) if reason}
    assert behind["images/s delivered"] == "Fast< 6; Fast<, by hand 5", behind
    assert behind["pack s"].startswith("Slow 0.5; ") and behind["resume s"].startswith("Fast< 2.00+; "), behind
    assert "Slow" not in behind["resume s"] and "Slow" in behind["open ms"] and "Fast< 9" not in behind["open ms"]
    assert [t for t in text if t.startswith("| [Libshard]")][1].endswith(" 2.00* |"), "no state to resume from"
    assert {t.count("|") for t in table.speeds(found)} == {len(table.SPEEDS) + 3}
    assert {t.count("|") for t in table.lives(found)} == {len(table.LIFE) + 2}
    picture = xml.etree.ElementTree.fromstring("\n".join(table.svg(found)))
    assert sum(e.text == "Fast<" for e in picture.iter()) == 1
    bars = len(lines[:5]) * len(table.PANELS) - 1  # but for the cold figure that spreads
    assert sum(e.tag.endswith("rect") for e in picture.iter()) == 1 + bars
    none = copy.deepcopy(found)
    none["rows"] = [r for r in none["rows"] if table.reason(r)]
    assert not list(table.not_ahead(none)) and list(table.markdown(none)) and list(table.svg(none))


def test_peers():
    """Each file is a row; each line names its page, and is a class of that file."""
    names = [os.path.basename(f)[5:-3] for f in glob.glob(f"{ROOT}/bench/peers/peer_*.py")]
    assert sorted(names) == sorted(REAL_PEERS), names
    lines = 0
    for name in names:
        about = run.constants(name)
        with open(f"{ROOT}/bench/peers/peer_{name}.py") as f:
            tree = ast.parse(f.read()).body
        classes = {n.name for n in tree if isinstance(n, ast.ClassDef)}
        assert about["LINES"].keys() <= classes and about["NAME"] and "INSTALL" in about, name
        for words in about["LINES"].values():
            assert set(words) == {"way", "settings", "docs", "workers"} and words["settings"], (name, words)
            assert words["docs"].startswith("https://") or os.path.exists(f"{ROOT}/{words['docs']}"), (name, words)
            assert words["workers"] in ([0], ["cpus"], [0, "cpus"]), (name, words)
            lines += 1
    assert lines > len(names), "no peer has its common way beside its fastest"


REAL_PEERS = list(run.PEERS)
test_table()
test_peers()
test_quiet()
test_rows()
print("peers as they should be")
