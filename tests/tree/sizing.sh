#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/tree/sizing.sh - docs/SIZING.md shows what bench/sizing.py computes from the runs that are
# kept; the figures are those of the rows
set -eu
cd "$ROOT"
die() {
	printf '%s\n' "$*"
	exit 1
}
results=bench/results/2026-11-23.json
"$PYTHON" bench/sizing.py $results --peers bench/results/peers/2026-11-23.json >"$TMPDIR/out"
shown() { # FILE: does the page show it, line for line?
	"$PYTHON" - "$1" <<'PY'
import sys

out = "".join(line.rstrip() + "\n" for line in open(sys.argv[1]))
sys.exit("```text\n" + out + "```\n" not in open("docs/SIZING.md").read())
PY
}
shown "$TMPDIR/out" || die "docs/SIZING.md does not show this: $(cat "$TMPDIR/out")"

# A row that changes moves the page's figures, and only its column.
sed '/"loader\/first\/150528\/cpu"/s/"ours": [0-9.]*/"ours": 4.0/' $results >"$TMPDIR/slow.json"
"$PYTHON" bench/sizing.py "$TMPDIR/slow.json" >"$TMPDIR/slow"
! shown "$TMPDIR/slow" || die "a slower machine needs as little"
# 8 x 8003 images/s x 150528 bytes x 4 s/GB
grep -q '^ViT-5-Small, H100 *64024 *9.64 *[0-9.]* *38.5 *[0-9.]* *[0-9.]*$' "$TMPDIR/slow" || die "$(cat "$TMPDIR/slow")"

# A file without rows of the loader, and one that lacks some.
grep -v '"loader' $results >"$TMPDIR/none.json"
rc=0
"$PYTHON" bench/sizing.py "$TMPDIR/none.json" 2>"$TMPDIR/err" || rc=$?
[ $rc = 2 ] && grep -q 'has no row of the loader; make one with: make bench BENCH=loader' "$TMPDIR/err" ||
	die "no rows: exit status $rc, $(cat "$TMPDIR/err")"
grep -v '"loader/cold/150528/cpu"' $results >"$TMPDIR/some.json"
"$PYTHON" bench/sizing.py "$TMPDIR/some.json" >"$TMPDIR/some"
grep -q '^not measured: loader/cold/150528/cpu$' "$TMPDIR/some" ||
	die "a row that is missing is not named"
"$PYTHON" bench/sizing.py $results --gpus 1 >"$TMPDIR/one"
grep -q '^ResNet-50, A100 *2078 *0.31' "$TMPDIR/one" || die "one GPU: $(cat "$TMPDIR/one")"
