#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/figures.sh - the figures in bench/RESULTS.md and README.md are those of recorded runs,
# no target was moved afterwards, and `make bench` runs all programs
set -eu
for program in $(grep -l 'bench_open(argc' bench/*.c); do
	grep -qw "$(basename "$program" .c)" bench/run.sh || { echo "bench/run.sh does not run $program" && exit 1; }
done
bench/publish.py --check >/dev/null
"$PYTHON" - <<'PY' # of other loaders: the newest tables, made of the rows that were kept
import glob
import json
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, "bench/peers")
import table

results = open("bench/RESULTS.md").read().splitlines()
for path in sorted(glob.glob("bench/results/peers/*.json")):
    found = json.load(open(path))
    if found.get("format") != table.FORMAT:  # of an older harness: its tables stay as they are
        shown = [line for line in open(path.replace(".json", ".md")).read().splitlines() if line.startswith("|")]
        continue
    shown = [*table.speeds(found), *table.lives(found)]
    for ending, made in (".md", table.markdown), (".svg", table.svg):
        assert open(path.replace(".json", ending)).read() == "\n".join(made(found)) + "\n", (path, ending)
missing = [line for line in shown if line not in results]
assert shown and not missing, f"bench/RESULTS.md does not show these lines of {path}: {missing}"


def strays(row):  # figures of the README's row of training that RESULTS.md does not have
    return [f for f in re.findall(r"\b[\d,]*\d{3}(?= with| without|;)", row) if f"| {f} |" not in "\n".join(results)]


row = next(line for line in open("README.md") if line.startswith("| ResNet-"))
assert strays(row) == [] and strays(row.replace("13,042", "13,942")) == ["13,942"], strays(row)
PY

# The controls: a nicer figure, and an easier target.
copy=$TMPDIR/copy
for page in bench/RESULTS.md bench/TARGETS; do
	rm -rf "$copy"
	mkdir -p "$copy/bench/results"
	cp README.md "$copy"
	cp bench/*.py bench/RESULTS.md bench/TARGETS bench/REASONS "$copy/bench"
	cp bench/results/*.json "$copy/bench/results"
	"$copy/bench/publish.py" --check >/dev/null
	case $page in
	*.md) sed -i '0,/^| `/s/^| `\([^|]*\)| [0-9.]*/| `\1| 0.1/' "$copy/$page" ;;
	*) sed -i 's/^\(loader[^ ]*\) at_least .*/\1 at_least 0.01/' "$copy/$page" ;;
	esac
	! cmp -s $page "$copy/$page" || { echo "nothing was changed in $page" && exit 1; }
	! "$copy/bench/publish.py" --check 2>"$TMPDIR/err" || { echo "a change of $page went unnoticed" && exit 1; }
	grep -q "does not say what" "$TMPDIR/err" || { cat "$TMPDIR/err" && exit 1; }
done
echo "2 controls"
