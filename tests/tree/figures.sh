#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/tree/figures.sh - the figures in bench/RESULTS.md and README.md are those of the recorded
# run that the page names, and no target was moved afterwards
set -eu
bench/publish.py --check >/dev/null

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
