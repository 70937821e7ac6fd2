#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/tree/results.sh - every run that was kept can be read, and the table beside them tells where
# it was made
set -eu
cd "$ROOT/bench/results"
"$PYTHON" - <<'PY'
import glob
import json
import re

table = open("README.md").read()
files = sorted(glob.glob("*.json"))
rows = 0


def check(row, where):
    """A line of bench/README.md's `How to read it`."""
    name = row["bench"]
    if "skipped" in row:
        assert row["skipped"], where
        return
    figure = row["bound" if "candidate" in row else "ours"]
    is_difference = name.startswith("package/step")  # of two times, one as long as the other
    assert (figure >= 0 or is_difference) and row["unit"] and row["runs"] >= 1, where
    if "ratio" in row:
        ours, bound = row["ours"], row["bound"]
        nearest = min(abs(ours / bound - row["ratio"]), abs(bound / ours - row["ratio"]))
        digits = 5e-5 / min(ours, bound) if min(ours, bound) < 0.1 else 0  # small figures had four decimals
        most = (0.01 + digits) * max(row["ratio"], 0.1) + 0.02
        assert nearest < most, f"{where}: {name}: the ratio is not that of its figures"


for file in files:
    assert f"`{file}`" in table, f"results/README.md does not tell of {file}"
    for i, line in enumerate(open(file)):
        where = f"{file}:{i + 1}"
        try:
            row = json.loads(line)
        except ValueError as e:
            raise SystemExit(f"{where}: {e}")
        if "bench" in row:
            check(row, where)
            rows += 1
        else:
            known = {"process", "machine", "gpu", "compute", "driver", "pci", "commit", "command", "incomplete"}
            assert set(row) <= known, where
    assert any(json.loads(line).get("machine", {}).get("cpu") for line in open(file)), file
    if "-gpu-" in file:
        head = [json.loads(line) for line in open(file)][:3]
        assert head[1]["gpu"] and head[1]["driver"], f"{file}: no device"
        assert head[2]["commit"] and head[2]["command"], f"{file}: no commit"
for named in re.findall(r"`([^`]*\.json)`", table):
    assert named in files, f"results/README.md tells of {named}, which is not there"
print(f"{len(files)} files, {rows} rows")
PY
