#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_stats.sh - the figures of stats are those that NumPy and Python's integers compute from the
# records
# shellcheck disable=SC1091
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"
export PYTHONPATH=$ROOT/tests/cli

make_images src 120 5
# One file under several names is as many inputs, however that was done.
cp src/class_00/00000.jpg src/class_00/copy1.jpg && ln src/class_00/00000.jpg src/class_00/copy2.jpg &&
	ln -s 00000.jpg src/class_00/copy3.jpg
cp src/class_01/00001.jpg src/class_02/other_label.jpg
mkdir "src/one	name" && cp src/class_03/00003.jpg "src/one	name/x.jpg"
"$PYTHON" - <<'PY'
import numpy as np
rng = np.random.RandomState(3)
f = rng.rand(400, 3) * 1e6 + 1e9
f[7, 1], f[9, 2], f[11, 0] = np.nan, np.inf, -np.inf
np.save("f64.npy", f)
np.save("f32.npy", rng.rand(400, 5).astype("f4"))
np.save("f16.npy", rng.rand(400, 5).astype("f2"))
np.save("i8.npy", rng.randint(-128, 128, (400, 4)).astype("i1"))
np.save("u16.npy", rng.randint(0, 1 << 16, (400, 4)).astype("u2"))
np.save("i32.npy", rng.randint(-1 << 31, 1 << 31, (400, 4)).astype("i4"))
np.save("u32.npy", rng.randint(0, 1 << 32, 400).astype("u4"))
np.save("i64.npy", rng.randint(-1 << 62, 1 << 62, 400))
np.save("u64.npy", rng.randint(0, 1 << 62, 400).astype("u8") * 4)
np.save("nan.npy", np.full((400, 2), np.nan, "f4"))
np.save("same.npy", np.full((400, 2), 0.1, "f8"))
np.save("flag.npy", rng.rand(400, 2) < 0.3)
np.save("label.npy", rng.randint(0, 9, 400))
small = rng.randint(0, 2000, 9000)
np.save("small.npy", small.astype("u4") * 77)
np.save("small_label.npy", rng.randint(0, 3, 9000))
PY
run 0 "$PACK" images src -o images --resize 40 --crop 32 -q
run 0 "$PACK" images src -o planes --resize 40 --crop 32 --layout chw --compress lz4 -q
run 0 "$PACK" array f64.npy f32.npy f16.npy i8.npy u16.npy i32.npy u32.npy i64.npy u64.npy nan.npy same.npy flag.npy \
	label.npy -o arrays -q
mkdir many
cp small.npy many/value.npy
cp small_label.npy many/label.npy
run 0 "$PACK" array many/value.npy many/label.npy -o small -q

cat >twin.py <<'PY'
import json
import sys
from collections import defaultdict
from math import exp, log
import numpy as np
import records

folder = sys.argv[1]
with open(sys.argv[2]) as f:
    told = json.load(f)
fields = records.read(folder)
n = len(next(iter(fields.values())))
assert told["record_count"] == n and told["records_read"] is True

def close(a, b):
    return a is None and not np.isfinite(b) or abs(a - b) <= 1e-12 * max(abs(b), 1e-300)

def channels(name, values):
    if name != "image":
        return [values.reshape(n, -1)]
    axis = 3 if values.shape[3] == 3 else 1
    return [values.take(c, axis).reshape(n, -1) for c in range(3)]

seen = defaultdict(int)
for row in told["statistics"]:
    values = channels(row["field"], fields[row["field"]])[row["channel"]]
    seen[row["field"]] += 1
    if values.dtype.kind == "f":
        wide = values.astype(np.longdouble)
        good = wide[np.isfinite(wide)]
        assert row["not_finite"] == values.size - good.size and not row["exact"], row
        assert (row["nan"], row["infinite"]) == (np.isnan(wide).sum(), np.isinf(wide).sum()), row
        assert row["count"] == good.size
        if good.size:
            assert (row["min"], row["max"]) == (float(good.min()), float(good.max())), row
            assert close(row["mean"], float(good.mean())) and close(row["std"], float(good.std())), row
        else:
            assert row["min"] is row["max"] is row["mean"] is row["std"] is None, row
        continue
    exact = [int(v) for v in values.reshape(-1)]
    count, total, squares = len(exact), sum(exact), sum(v * v for v in exact)
    assert (row["count"], int(row["sum"])) == (count, total), (row, total)
    assert (row["min"], row["max"]) == (min(exact), max(exact)), row
    assert close(row["mean"], total / count), row
    if squares < 1 << 128:
        assert row["exact"] and int(row["sum_squares"]) == squares, (row, squares)
        variance = (count * squares - total * total) / count ** 2
        assert close(row["std"] ** 2, variance) or abs(row["std"] ** 2 / variance - 1) < 1e-12, (row, variance ** 0.5)
    else:
        assert not row["exact"] and row["sum_squares"] is None and row["std"] is None, row
    if row["field"] == "image":
        assert row["from"] == "recorded"
        assert close(row["mean_of_record_means"], values.mean(1).mean()), row
        assert abs(row["mean_of_record_stds"] / values.std(1).mean() - 1) < 1e-12, row
assert set(seen) == set(fields) - {"label"}, seen
assert seen.get("image", 3) == 3

labels = fields["label"]
counts = [int((labels == c).sum()) for c in range(told["classes"]["count"])]
rows = told["classes"]["rows"]
assert [r["records"] for r in rows] == [counts[r["class"]] for r in rows] and sum(counts) == n, rows
assert sorted(r["class"] for r in rows) == list(range(len(counts)))
if len(sys.argv) > 3:
    assert [r["records"] for r in rows] == sorted(counts, reverse=True)
assert told["classes"]["largest"] == max(counts) and told["classes"]["smallest"] == min(counts)
even = exp(-sum(c / n * log(c / n) for c in counts if c))
assert abs(told["classes"]["effective"] / even - 1) < 1e-12

groups = defaultdict(list)
for i in range(n):
    groups[b"".join(fields[f][i].tobytes() for f in sorted(fields) if f != "label")].append(i)
again = sorted((g for g in groups.values() if len(g) > 1), key=lambda g: g[0])
copies = told["copies"]
assert copies["groups"] == len(again) and copies["records"] == sum(len(g) - 1 for g in again), copies
differ = [len({int(labels[i]) for i in g}) > 1 for g in again]
assert copies["groups_with_different_labels"] == sum(differ)
want = [{"first": g[0], "count": len(g), "labels_differ": d} for g, d in zip(again, differ)][:100]
assert copies["listed"] == want, (copies["listed"], want)
print(copies["groups"], copies["records"], sum(differ))
PY

copies() { # DATASET WANT [OPTION...]
	local ds=$1 want=$2
	shift 2
	run 0 "$CAT" stats "$ds" --json "$@"
	mv out told.json
	case $* in *--sorted*) set -- sorted ;; *) set -- ;; esac
	"$PYTHON" twin.py "$ds" told.json "$@" >found || die "$ds: not what NumPy finds"
	[ "$want" = any ] || [ "$(cat found)" = "$want" ] || die "$ds: copies: $(cat found)"
}
copies images "3 5 2"
copies planes "3 5 2" --sorted --memory 64K
copies arrays "0 0 0"
copies small any
mv told.json whole.json
copies small any --memory 64K # through a file: 1,365 entries fit, 2,000 contents are there
cmp told.json whole.json || die "less memory, other copies"
json told.json 'd["copies"]["groups"] > 1500 or 1 / 0' >found

# Without reading: the same sums and classes, and nothing else.
run 0 "$CAT" stats images --json --recorded
mv out recorded.json
run 0 "$CAT" stats images --json
"$PYTHON" - <<'PY'
import json
a, b = json.load(open("recorded.json")), json.load(open("out"))
assert not a["records_read"] and a["copies"] is None and a["classes"] == b["classes"]
for x, y in zip(a["statistics"], b["statistics"]):
    assert x.items() <= y.items() and "min" not in x, (x, y)
assert len(a["statistics"]) == len(b["statistics"]) == 3
PY
run 0 "$CAT" stats arrays --recorded
[ "$(cat out)" = "400 records; only the recorded statistics are shown" ] ||
	[ "$(sed -n 2p out | cut -d, -f 1)" = label ] || die "$(cat out)"

# As text: the largest class first, names that cannot drive the terminal, and a shard on its own.
run 0 "$CAT" stats images --sorted --classes 3
grep -q '^label, 6 classes (recorded, and checked): largest 27, smallest 1, 0 empty' out || die "$(cat out)"
[ "$(grep -o 'class_0[0-9]$' out | tr '\n' ' ')" = "class_00 class_02 class_01 " ] || die "$(cat out)"
printed "  and 3 more: --classes N shows N classes, --json shows all"
printed "copies: 5 records are the same as an earlier one, in 3 groups; 2 of these with different labels"
run 0 "$CAT" stats images
grep -qF 'one\tname' out || die "$(cat out)"
run 0 "$CAT" stats images/*.shard
grep -q '^125 records, all of them read' out || die "$(cat out)"

# Sums that were recorded wrong.
for f in sum squares; do
	run 1 "$CAT" stats "$ROOT/format/bad/I54_moments_$f.shard"
	grep -q 'the recorded sums differ from the sums of the records' err || die "$f: $(cat err)"
done
run 0 "$CAT" stats "$ROOT/format/golden/ragged_string.shard"
run 2 "$CAT" stats images --memory 1
echo "4 datasets, as NumPy counts them"
