#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# select.sh - the library's selections, digests and steps of mixtures equal those of
# format/shardorder.py, and both equal the vectors of format/ORDER.md
#
# Parameters are random but the same each time; SEED=n tries others.
set -eu

dump=$BUILD/tests/unit/dump_select
dir=$TMPDIR

# The vectors were asked of the Python side by order.sh; here of C.
grep -E '^(part|fold|others|selected|mixture|run_on) .* -> ' format/ORDER.md >"$dir/vectors"
count=0
while read -r line; do
	# The words of a question are separate arguments.
	# shellcheck disable=SC2086
	got=$("$dump" ${line%% -> *})
	[ "$got" = "${line##* -> }" ] || { echo "$line: computed $got"; exit 1; }
	count=$((count + 1))
done <"$dir/vectors"
[ "$count" -ge 20 ] || { echo "only $count vectors"; exit 1; }

SEED=${SEED:-1} "$PYTHON" - >"$dir/questions" <<'END'
import os, random
rnd = random.Random(int(os.environ["SEED"]))
word = lambda: "%064x" % rnd.randrange(2**256)
for i in range(12):
    n, seed, K = rnd.choice([1, rnd.randint(2, 99), rnd.randint(100, 70000)]), rnd.randrange(2**64), rnd.randint(1, 9)
    k, below = rnd.randrange(K), max(1, n - 1)
    cut = (rnd.randint(1, below) - 0.5) / n + rnd.choice([-1, 0, 1]) * 2**-53  # where a sum is rounded
    print("part", n, seed, repr(max(0.0, cut)), 1)
    if n * (k + 1) // K > n * k // K:
        print("fold", n, seed, k, K)
    if n * (k + 1) // K - n * k // K < n:
        print("others", n, seed, k, K)
    records = sorted(rnd.sample(range(2**20), rnd.randint(1, 200)))
    print("selected", word(), records[-1] + rnd.choice([1, 999]), ",".join(map(str, records)))
    parts = ["%d %s %s" % (rnd.randint(1, 500), word(), rnd.choice(["all", word()])) for _ in range(rnd.randint(1, 8))]
    print("mixture", *parts)
    E, R, B = rnd.choice([1, rnd.randint(2, 50), rnd.randint(2**60, 2**62)]), rnd.randint(1, 4), rnd.randint(1, 9)
    end = 2**62 // E * E
    for P in rnd.randrange(end), max(0, end - rnd.randint(1, 60)):
        print("run_on", E, P, R, B, rnd.randrange(R), 20)
END
questions=$("$PYTHON" tests/twin/questions.py "$dump" <"$dir/questions")
[ "$questions" -ge 60 ]
echo "$count vectors and $questions answers are equal"
