#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# order.sh - the library's order equals format/shardorder.py, and both equal the vectors of
# format/ORDER.md
#
# The Python side was written from ORDER.md alone.  Parameters are random but the same each time;
# SEED=n tries others.
set -eu

dump=$BUILD/tests/unit/dump_order
dir=$TMPDIR

"$PYTHON" format/shardorder.py --check

# All vectors of ORDER.md; then small orders whole, and large ones at 200 positions.
sed -n '/^order .* -> /p; s/^share \(.*\) -> .*/share \1/p; s/^at \(.*\) -> .*/order \1 1/p' \
	format/ORDER.md >"$dir/questions"
SEED=${SEED:-1} "$PYTHON" - >>"$dir/questions" <<'END'
import os, random
rnd = random.Random(int(os.environ["SEED"]))
word = lambda: rnd.choice([rnd.randrange(10), rnd.randrange(2**64)])
def shape():
    r, w, L = rnd.choice([1, 2, rnd.randint(1, 40)]), rnd.randint(1, 9), rnd.choice([1, 2, 8, rnd.randint(1, 70)])
    return f"{r} {w} {L} {rnd.randrange(9)}"
for kind in ["sequential"] * 2 + ["one_level"] * 12 + ["two_levels"] * 50:
    n = rnd.choice([rnd.randrange(60), rnd.randrange(3000)])
    print("order", kind, n, shape(), word(), word())
for kind in ["one_level"] * 6 + ["two_levels"] * 20:
    n = rnd.choice([rnd.randint(60000, 70000), rnd.randint(0, 10**6), rnd.randint(0, 2**33), 2**62 - rnd.randint(0, 9)])
    r = rnd.choice([1, 16, 128, 4096, rnd.randint(1, 70000)])
    w, L = rnd.choice([1, 40, rnd.randint(1, 3000)]), rnd.choice([1, 64, rnd.randint(1, 1000)])
    u = rnd.choice([0, 1, r])
    count = min(n, 200)
    first = rnd.choice([0, n - count, rnd.randrange(n - count + 1)])
    print("order", kind, n, r, w, L, u, word(), word(), first, count)
for i in range(40):
    n, world = rnd.randrange(300), rnd.choice([1, 2, 3, 8])
    mode = rnd.choice(["drop", "pad", "keep"] if world == 1 else ["drop", "pad"])
    print("share", mode, n, rnd.randint(0, n), world, rnd.randint(1, 20), rnd.randrange(world))
END

count=$("$PYTHON" tests/twin/questions.py "$dump" <"$dir/questions")
[ "$count" -gt 140 ]
echo "$count orders and shares are equal"
