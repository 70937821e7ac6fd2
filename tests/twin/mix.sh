#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mix.sh - the library's mixtures equal those of format/shardorder.py, and both equal the vectors of
# format/ORDER.md
#
# Parameters are random but the same each time; SEED=n tries others.  POSITIONS=n asks for more of
# each mixture.
set -eu

dump=$BUILD/tests/unit/dump_mix
dir=$TMPDIR

# The vectors were asked of the Python side by order.sh; here of C, one position each.
sed -n 's/^mixat \(.*\) -> \([0-9]*\) \([0-9]*\) \([0-9]*\) .*/\1 1|\2 \3 \4/p' format/ORDER.md >"$dir/vectors"
count=0
while IFS='|' read -r question want; do
	# The words of a question are separate arguments.
	# shellcheck disable=SC2086
	got=$("$dump" mix $question)
	[ "$got" = "$want" ] || { echo "$question: ORDER.md has $want, computed $got"; exit 1; }
	count=$((count + 1))
done <"$dir/vectors"
[ "$count" -ge 6 ] || { echo "only $count vectors"; exit 1; }

SEED=${SEED:-1} POSITIONS=${POSITIONS:-150} "$PYTHON" - >"$dir/questions" <<'END'
import os, random
rnd = random.Random(int(os.environ["SEED"]))
positions = int(os.environ["POSITIONS"])
join = lambda numbers: ",".join(map(str, numbers))
for i in range(30):
    D = rnd.choice([1, 2, 3, rnd.randint(4, 40)])
    weights = [rnd.choice([1, rnd.randint(1, 9), rnd.randint(1, 90)]) for _ in range(D)]
    sizes = [rnd.choice([1, rnd.randint(1, 300), rnd.randint(1, 10**5), rnd.randint(1, 2**40)]) for _ in range(D)]
    L = rnd.choice([1, 2, 8, 64, rnd.randint(1, 100)])
    kind = rnd.choice(["sequential", "one_level", "two_levels", "two_levels"])
    r, w, u = rnd.choice([1, 4, rnd.randint(1, 40)]), rnd.randint(1, 9), rnd.randrange(9)
    P = rnd.choice([0, rnd.randrange(10**6), rnd.randrange(2**62 - positions)])
    print("mix", L, rnd.randrange(2**64), join(weights), join(sizes), kind, r, w, u, P, positions)
END
mixtures=$("$PYTHON" tests/twin/questions.py "$dump" <"$dir/questions")
[ "$mixtures" -ge 8 ]
echo "$count vectors and $mixtures mixtures are equal"
