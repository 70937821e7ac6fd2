#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""questions.py DUMP - DUMP answers each question, a line of stdin, as format/shardorder.py does

A vector of ORDER.md, `order ... -> hash ...`, is not computed once more: shardorder.py --check does.
Orders are asked of DUMP twice: position by position, and as order_fill() has them.  Prints how many
questions there were.
"""
import contextlib
import io
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, "format")
import shardorder  # noqa: E402


def of_python(words):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        known = words[0] in ("order", "share", "mix")
        assert shardorder.main(words if known else ["answer", *words]) == 0, words
    return out.getvalue()


count = 0
for line in sys.stdin:
    question, _, vector = line.partition(" -> ")
    words = question.split()
    want = vector.split()[0] if vector else of_python(words)
    for ask in [words] + ([["fill", *words[1:]]] if words[0] == "order" else []):
        got = subprocess.run([sys.argv[1], *ask], stdout=subprocess.PIPE, text=True, check=True).stdout
        if (shardorder.hashed(map(int, got.split())) if vector else got) != want:
            sys.exit(f"{' '.join(ask)}: C has {got[:200]!r}, Python {want[:200]!r}")
    count += 1
print(count)
