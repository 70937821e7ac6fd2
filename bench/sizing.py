#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sizing.py RESULTS.json - what a host needs to feed its GPUs, by the figures of `make bench`

docs/SIZING.md tells what is assumed.  A row that the file lacks leaves a blank, and is named below
the table.  With --peers, a file of bench/results/peers says what other loaders would need.
"""
import argparse
import json
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))

import table  # noqa: E402

# Per GPU, with the page that says so: docs/SIZING.md has the addresses.
MODELS = [
    # name, records a second of one GPU, bytes of a record, rows of the bench that are nearest to it
    ("ResNet-50, A100", 16621 / 8, 224 * 224 * 3, "150528"),
    ("ViT-5-Small, H100", 8003, 224 * 224 * 3, "150528"),
    ("ViT g/14, H100", 1428 / 8, 224 * 224 * 3, "150528"),
    ("LLM of 30B, H100", 16789 / 4096, 4097 * 4, "4096"),
]
CASES = [  # head of the column, rows of the bench: the first that is there counts
    ("in memory", ["loader/later/{}/cpu", "loader/hot/{}/1/cpu"]),
    ("hashed", ["loader/first/{}/cpu"]),
    ("from disk", ["loader/cold/{}/cpu"]),
]


def read_rows(path):
    """The median of each row, over the processes that were not disturbed."""
    rows = {}
    with open(path) as f:
        for line in f:
            row = json.loads(line)
            if "ours" in row and "marked" not in row:
                rows.setdefault(row["bench"], []).append(row["ours"])
    return {name: statistics.median(values) for name, values in rows.items()}


def figure(rows, names, size, missing):
    for name in names:
        if name.format(size) in rows:
            return rows[name.format(size)]
    missing.append(names[0].format(size))
    return None


def cell(value, width):
    text = "" if value is None else "<0.01" if value < 0.01 else format(value, ".2f" if value < 10 else ".1f")
    return f"{text:>{width}}"


def print_needs(rows, args):
    missing = []
    print(f"{args.gpus} GPUs: cores at work, of {args.cores}, and disks as fast as that of the bench")
    print(f"{'':20}{'records/s':>10}{'GB/s':>8}" + "".join(f"{head:>11}" for head, _ in CASES) + f"{'disks':>8}")
    for name, rate, size, near in MODELS:
        speed = rate * args.gpus * size / 1e9
        cores = [figure(rows, names, near, missing) for _, names in CASES]
        disk = figure(rows, ["loader/cold/{}"], near, missing)
        print(f"{name:20}{rate * args.gpus:10.0f}{cell(speed, 8)}"
              + "".join(cell(c and c * speed, 11) for c in cores) + cell(disk and speed / disk, 8))
    for name in sorted(set(missing)):
        print(f"not measured: {name}")


def peer_costs(path):
    """(name, CPU seconds per GB) of the loaders of a file of bench/results/peers."""
    with open(path) as f:
        found = json.load(f)
    rows = [(table.full_name(r), table.figures(r).get("cpu")) for r in table.published(found) if r["line"] != "Common"]
    return sorted(((name, cpu[0]) for name, cpu in rows if cpu and not table.spread("cpu", cpu)), key=lambda r: r[1])


def print_peers(path, args):
    images = [(name, rate * args.gpus * size / 1e9) for name, rate, size, near in MODELS if near == "150528"]
    print(f"\nbeside other loaders: cores at work, pictures in memory, {args.gpus} GPUs")
    print(f"{'':48}{'CPU s/GB':>9}" + "".join(f"{name.split(',')[0]:>13}" for name, _ in images))
    for name, cost in peer_costs(path):
        cells = (cell(cost * speed, 12) + ("*" if cost * speed > args.cores else " ") for _, speed in images)
        print(f"{name:48}{cost:9.2f}{''.join(cells).rstrip()}")
    print(f"* more than {args.cores} cores")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", help="a file that `make bench` made")
    parser.add_argument("--peers", help="a file of bench/results/peers")
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--cores", type=int, default=64)
    args = parser.parse_args()
    rows = read_rows(args.results)
    if not any(name.startswith("loader/") for name in rows):
        parser.error(f"{args.results} has no row of the loader; make one with: make bench BENCH=loader >new.json")
    print_needs(rows, args)
    if args.peers:
        print_peers(args.peers, args)


main()
