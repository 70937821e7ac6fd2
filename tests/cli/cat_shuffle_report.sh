#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_shuffle_report.sh - the figures of shuffle-report are those that Python computes from the
# printed order and the labels, and a dataset sorted by class behaves as arithmetic says it must
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

make_images src 1200 6
run 0 "$PACK" images src -o sorted --resize 4 --crop 4 --order source --shard-records 500
run 0 "$PACK" images src -o mixed --resize 4 --crop 4 --order shuffle --shard-records 500
for ds in sorted mixed; do
	run 0 "$CAT" list $ds --json
	json out '"\n".join(str(r["label"]) for r in d["records"])' >$ds.labels
done

# The same figures from definitions, with exact fractions where it is about expectations.
cat >twin.py <<'PY'
import os
import sys
from fractions import Fraction
from math import comb
import numpy as np
labels = np.loadtxt(sys.argv[1], dtype=np.int64)
batch, run = int(sys.argv[2]), int(sys.argv[3])
epochs = [np.loadtxt(name, dtype=np.int64) for name in sys.argv[4:]]
record = np.arange(len(labels))
if "SELECT" in os.environ:  # places of a selection stand for records
    record = np.loadtxt(os.environ["SELECT"], dtype=np.int64)
    labels, epochs = labels[record], [np.searchsorted(record, e) for e in epochs]
n, shard = len(labels), record // 500

def ideal(groups):
    sizes = np.unique(groups, return_counts=True)[1]
    return float(sum(1 - Fraction(comb(n - int(s), batch), comb(n, batch)) for s in sizes))

p = np.bincount(labels) / n
least = (batch * p * (1 - p) * (n - batch) / (n - 1)).sum()
rows = {"classes": [], "variance": [], "runs": [], "shards": [], "distance": [], "pairs": []}
before = None
for order in epochs:
    batches = order.reshape(-1, batch)
    together = np.full((n, n), False)
    for b in batches:
        together[np.ix_(b, b)] = True
        counts = np.bincount(labels[b], minlength=len(p))
        rows["classes"].append((counts > 0).sum())
        rows["variance"].append(((counts - batch * p) ** 2).sum() / least)
        rows["runs"].append(len(set(b // run)) if run else 0)
        rows["shards"].append(len(set(shard[b])))
        rows["distance"].append(np.abs(np.diff(b)).mean())
        if before is not None:
            expected = comb(batch, 2) * len(batches) * comb(batch, 2) / comb(n, 2)
            rows["pairs"].append(np.triu(before[np.ix_(b, b)], 1).sum() / expected)
    before = together
every = np.arange(n)
ideals = {"classes": ideal(labels), "variance": 1, "runs": ideal(every // run) if run else 0,
          "shards": ideal(shard),
          "distance": float(Fraction(sum(2 * d * (n - d) for d in range(n)), n * (n - 1))), "pairs": 1}
for name in rows:
    if name != "runs" or run:
        print(name, *("%.4g" % v for v in (np.mean(rows[name]), ideals[name])))
PY

# figures: the table of the last run as the twin prints it
figures() {
	sed -n 's/^  classes in a batch  */classes /p; s/^  variance of class counts (VIF) */variance /p
		s/^  runs of [0-9]* in a batch */runs /p
		s/^  shards in a batch */shards /p; s/^  distance of neighbours in a batch */distance /p
		s/^  pairs that meet again next epoch */pairs /p' out | awk '{print $1, $2, $4}'
}

# Of four classes, so that the shards have different shares of it.
run 0 "$CAT" select sorted --where 'label<=3' --part 0.6 -o some.sel
run 0 "$CAT" select sorted --where 'label<=3' --part 0.6 --list
mv out some.sel.records

compared=0
while read -r ds batch run epochs options; do
	names=()
	for ((e = 0; e < epochs; e++)); do
		# shellcheck disable=SC2086 # words
		"$CAT" order $ds --epoch $e --seed 3 --batch "$batch" $options >order.$e
		names+=("order.$e")
	done
	SELECT=
	[[ $options != *--select* ]] || SELECT=some.sel.records
	env ${SELECT:+SELECT=$SELECT} "$PYTHON" twin.py "$ds.labels" "$batch" "$run" "${names[@]}" >want
	# shellcheck disable=SC2086 # words
	run 0 "$CAT" shuffle-report $ds --epochs "$epochs" --seed 3 --batch "$batch" $options
	figures | diff want - >&2 || die "other figures for $ds, batches of $batch, $options"
	compared=$((compared + $(wc -l <want)))
done <<'END'
sorted 25 0 3 --shuffle global
sorted 70 0 2 --shuffle sequential
sorted 25 10 4 --shuffle windows --run-records 10 --phase-unit 1 --window-runs 12 --lanes 1
mixed 33 7 3 --shuffle windows --run-records 7 --phase-unit 7 --window-runs 5 --lanes 4
sorted 25 0 2 --shuffle global --select some.sel
sorted 40 8 2 --shuffle windows --run-records 8 --phase-unit 1 --window-runs 5 --lanes 2 --select some.sel
END

# measured WHAT: "figure error" of a row of the last run
measured() {
	grep -F "  $1" out | head -n 1 | sed 's/.*[a-z)]  *\([0-9.e+-]*\)  *\([0-9.e+-]*\)  *[0-9.e+-]*  .*/\1 \2/'
}
# near FIGURE ERROR WANT TIMES: within so many standard errors, which must say something
near() {
	awk -v f="$1" -v e="$2" -v w="$3" -v t="$4" \
		'BEGIN { exit !(f - w <= t * e && w - f <= t * e && e < w / 20) }' ||
		die "$1 +- $2 is not $3: $(cat out)"
}

# Sorted by class, in windows of W = r w records that hold whole batches: the variance is
# 1 + (B - 1)(r - 1)/(W - 1) times that of a uniform shuffle.  The tool's own prediction is a little
# less, as it also knows that the dataset is finite (1/(N - 1) less than 1/(W - 1)) and that some
# runs have two classes.
vifs=()
for story in "12 4 6" "10 5 4" "20 8 5"; do
	read -r B r w <<<"$story"
	run 0 "$CAT" shuffle-report sorted --batch "$B" --epochs 60 --shuffle windows --run-records "$r" \
		--phase-unit 1 --window-runs "$w" --lanes 1
	read -r vif error <<<"$(measured 'variance of class counts')"
	predicted=$(sed -n 's/^  *as predicted  *\([0-9.]*\) .*/\1/p' out)
	near "$vif" "$error" "$predicted" 4
	awk -v e="$error" -v p="$predicted" 'BEGIN { exit !(e < p / 40) }' || die "$error is no small error: $(cat out)"
	closed=$(awk -v B="$B" -v r="$r" -v w="$w" 'BEGIN { print 1 + (B - 1) * (r - 1) / (r * w - 1) }')
	awk -v p="$predicted" -v c="$closed" 'BEGIN { exit !(p <= c && p > c * 0.94) }' ||
		die "predicted $predicted; the closed form gives $closed"
	grep -q "^shardcat: warning: class counts of batches vary .* records are stored sorted by class, .*--order shuffle" err ||
		die "no warning: $(cat err)"
	vifs+=("$vif ($closed)")
done
# With lanes, records of one batch come from one lane less often.
run 0 "$CAT" shuffle-report sorted --batch 45 --epochs 60 --shuffle windows --run-records 8 --phase-unit 1 \
	--window-runs 5 --lanes 4
read -r vif error <<<"$(measured 'variance of class counts')"
near "$vif" "$error" "$(sed -n 's/^  *as predicted  *\([0-9.]*\) .*/\1/p' out)" 4

# The advice helps: with windows as large as it says there is no warning any more.
run 0 "$CAT" shuffle-report sorted --batch 20 --epochs 60 --shuffle windows --run-records 4 --phase-unit 1 \
	--window-runs 20 --lanes 1
enough=$(sed -n 's/.*or --window-runs \([0-9]*\)$/\1/p' err)
[ "${enough:-0}" -gt 20 ] || die "no advice: $(cat err)"
run 0 "$CAT" shuffle-report sorted --batch 20 --epochs 60 --shuffle windows --run-records 4 --phase-unit 1 \
	--window-runs "$enough" --lanes 1
! grep -q warning err || die "the advice does not help: $(cat err out)"

# A global shuffle mixes whatever is stored, and windows mix what was packed shuffled.
for story in "sorted --shuffle global" \
	"mixed --shuffle windows --run-records 10 --phase-unit 1 --window-runs 12 --lanes 1"; do
	# shellcheck disable=SC2086 # words
	run 0 "$CAT" shuffle-report ${story} --batch 20 --epochs 60
	[ ! -s err ] || die "$story: $(cat err)"
	read -r vif error <<<"$(measured 'variance of class counts')"
	near "$vif" "$error" 1 4
done
run 0 "$CAT" shuffle-report sorted --shuffle global --batch 20 --epochs 10
grep -q "^mixed as a uniform shuffle would; records are stored sorted by class" out || die "no verdict: $(cat out)"
run 0 "$CAT" shuffle-report mixed --shuffle global --batch 20 --epochs 10
printed "mixed as a uniform shuffle would"
run 0 "$CAT" shuffle-report sorted --shuffle sequential
grep -q "warning: .* nothing is shuffled" err || die "no warning: $(cat err)"

run 0 "$CAT" shuffle-report sorted --field label
run 2 "$CAT" shuffle-report sorted --field image
run 2 "$CAT" shuffle-report sorted --field nothing
run 2 "$CAT" shuffle-report sorted --batch 2000
run 2 "$CAT" shuffle-report sorted --batch 1
run 2 "$CAT" shuffle-report sorted --shuffle global --lanes 2
run 3 "$CAT" shuffle-report nowhere
echo "$compared figures as in Python; VIF of sorted windows, and the closed form: ${vifs[*]}"
