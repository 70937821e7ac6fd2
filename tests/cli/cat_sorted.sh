#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_sorted.sh - photographs in class folders, packed and loaded with default options: the first
# batch has nearly as many classes as that of a uniform shuffle; for records of 2 KiB, which are
# read in windows, and for large ones
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

classes=12 images=480 batch=24
make_images src $images $classes

cat >share.py <<'PY'
import sys
from fractions import Fraction
from math import comb
labels = [int(x) for x in open(sys.argv[1])]
batch, orders, n = int(sys.argv[2]), sys.argv[3:], len(labels)
ideal = sum(1 - Fraction(comb(n - labels.count(c), batch), comb(n, batch)) for c in set(labels))
met = sum(len({labels[int(i)] for i in open(o).read().split()[:batch]}) for o in orders)
print("%.3f" % float(Fraction(met, len(orders)) / ideal))
PY

# share DS OPTIONS...: classes in the first batch of 20 seeds, as a share of the ideal
share() {
	local ds=$1 seed orders=()
	shift
	for seed in $(seq 20); do
		"$CAT" order "$ds" --seed "$seed" --batch $batch "$@" >"order.$seed"
		orders+=("order.$seed")
	done
	"$PYTHON" share.py "$ds.labels" $batch "${orders[@]}"
}

below() {
	awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'
}

shares=()
for side in 26 212; do # 2,028 and 134,832 bytes
	for order in default source; do
		option=()
		[ $order = default ] || option=(--order source)
		run 0 "$PACK" images src -o ds --replace --resize $side --crop $side "${option[@]}"
		run 0 "$CAT" list ds --json
		json out '"\n".join(str(r["label"]) for r in d["records"])' >ds.labels
		mixed=$(share ds)
		! below "$mixed" 0.95 || die "side $side, order $order: $mixed of the ideal; at least 0.95"
		shares+=("$mixed")
	done
	# The control: as they are stored, which is by class.
	[ "$(share ds --shuffle sequential)" = "$(share ds --shuffle sequential --epoch 3)" ] ||
		die "sequential, and yet shuffled"
	below "$(share ds --shuffle sequential)" 0.2 || die "a sorted batch goes unnoticed"
done
echo "classes in the first batch, of the ideal: ${shares[*]}"
