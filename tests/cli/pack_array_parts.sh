#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_array_parts.sh - fields in several files: which of them hold the same records is
# told by their names, never by the order of the command line
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
export PYTHONPATH=$ROOT/tests/cli

# Every value of every field tells from which file and row it comes.
"$PYTHON" - <<'PY'
import os
import numpy as np

def rows(part, count, dtype="f4"):
    return (100 * part + np.arange(count)).astype(dtype)

for part, (folder, count) in enumerate([("p10", 4), ("p2", 3), ("p3", 4)]):
    os.mkdir(folder)
    for name in "x", "y", "z":
        np.save("%s/%s.npy" % (folder, name), rows(part, count))
    np.savez(folder + ".npz", x=rows(part, count), y=rows(part, count))
    np.savez(folder + ".x.npz", x=rows(part, count))
    np.savez(folder + ".y.npz", y=rows(part, count))
for folder, x, y in ("q0", 4, 6), ("q1", 6, 4):
    os.mkdir(folder)
    np.save(folder + "/x.npy", rows(0, x))
    np.save(folder + "/y.npy", rows(0, y))
os.mkdir("n")
for i in range(12):
    np.save("n/x_%d.npy" % i, rows(i, 2 + i % 3))
    np.save("n/y-%02d.npy" % i, rows(i, 2 + i % 3))
    np.save("n/s%d.npy" % i, rows(0, 5))
np.save("n/y-03.npy", rows(3, 2))
np.save("n/whole.npy", np.concatenate([rows(i, 2 + i % 3) for i in range(12)]))
np.save("n/v1.npy", rows(0, 5))
np.save("n/v2.npy", rows(0, 5, "f8"))
np.savez("n/positional.npz", rows(0, 5), rows(0, 5))
np.save("whole.npy", np.concatenate([rows(0, 4), rows(1, 3)]))
np.save("twin.npy", rows(0, 4))
os.mkdir("twice")
for name in "x.npy", "y.npy":
    np.save("twice/" + name, rows(0, 4))
os.system("gzip -k twice/x.npy && cp twice/y.npy twice/y2 && gzip -c twice/y.npy >twice/y.npy.gz")

for half, count, part in ("train", 4, 0), ("t10k", 3, 1), ("extra", 4, 2):
    for what, kind in ("images", 3), ("labels", 1):
        a = (10 * part + np.arange(count)).astype("u1")
        a = np.broadcast_to(a[:, None, None], (count, 2, 2)) if kind == 3 else a
        idx = bytes([0, 0, 8, a.ndim]) + np.array(a.shape, ">u4").tobytes() + a.tobytes()
        open("%s-%s-idx%d-ubyte" % (half, what, kind), "wb").write(idx)
for name in "a.idx", "b.idx":
    open("i" + name, "wb").write(open("train-images-idx3-ubyte", "rb").read())
    open("l" + name, "wb").write(open("train-labels-idx1-ubyte", "rb").read())
PY

# right VALUES WORD...: these arrays are packed without a word, all fields have these values, which
# are of x, and are named by it and the next ones
right() {
	local story=$1 want=$2
	shift 2
	rm -rf got
	run 0 "$PACK" "$@" -o got --order source -q
	"$PYTHON" -c 'import sys, numpy, records
got = records.read("got")
fields = [numpy.asarray(v).reshape(len(v), -1)[:, 0].astype(float).tolist() for k, v in got.items()]
want = [100.0 * p + i if sys.argv[3] == "array" else 10.0 * p + i
        for p, n in eval(sys.argv[2]) for i in range(n)]
for name, values in zip(got, fields):
    assert values == want, (sys.argv[1], name, values, want)' "$story" "$want" "$1" || die "$story"
	n=$((n + 1))
}
silent() { [ ! -s err ] || die "$1: $(cat err)"; }

right "files of one folder" "[(0, 4)]" array p10/x.npy p10/y.npy && silent
right "parts in the same order" "[(0, 4), (1, 3)]" array p10/x.npy p2/x.npy p10/y.npy p2/y.npy && silent
right "parts in another order" "[(0, 4), (1, 3)]" array p10/x.npy p2/x.npy p2/y.npy p10/y.npy && silent
right "parts of equal length in another order" "[(0, 4), (2, 4)]" array p10/x.npy p3/x.npy p3/y.npy p10/y.npy
silent
right "folder by folder" "[(1, 3), (0, 4)]" array p2/x.npy p2/y.npy p10/y.npy p10/x.npy && silent
right "three fields" "[(0, 4), (1, 3), (2, 4)]" array p10/x.npy p2/x.npy p3/x.npy p3/z.npy p2/z.npy p10/z.npy \
	p2/y.npy p3/y.npy p10/y.npy && silent
right "one field, as it was named" "[(1, 3), (0, 4)]" array p2/x.npy p10/x.npy && silent
right "archives" "[(1, 3), (0, 4)]" array p2.npz p10.npz && silent
right "fields of one file lie anywhere" "[(0, 4)]" array p10/x.npy twin.npy && silent
right "one file of two archives" "[(0, 4)]" array p10.x.npz p10.y.npz && silent
right "one whole field" "[(0, 4), (1, 3)]" array whole.npy p10/x.npy p2/x.npy
said_only "shardpack: warning: $PWD/whole.npy holds field 'whole' of all records; those of field 'x' follow each other \
in this order: $PWD/p10/x.npy, $PWD/p2/x.npy"
x=$(for i in {0..11}; do echo "($i, $((2 + i % 3)))"; done | paste -sd ,)
right "numbers" "[$x]" array n/x_*.npy --numbered parts && silent
"$PYTHON" -c 'import records
assert list(records.read("got")) == ["x"]'
right "numbers of two fields" "[$x]" array n/y-*.npy n/x_*.npy --numbered parts && silent
right "numbers and a whole field" "[$x]" array n/x_*.npy n/whole.npy --numbered parts
grep -q "n/whole.npy holds field 'whole' of all records" err || die "$(cat err)"
right "a field each" "[(0, 5)]" array n/s0.npy n/s1.npy n/s11.npy --numbered fields && silent
right "fields of other types" "[(0, 5)]" array n/v1.npy n/v2.npy && silent
right "positions in an archive" "[(0, 5)]" array n/positional.npz && silent
right "MNIST" "[(0, 4), (1, 3)]" mnist train-images-idx3-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte \
	train-labels-idx1-ubyte && silent
right "MNIST, equally long" "[(2, 4), (0, 4)]" mnist extra-images-idx3-ubyte extra-labels-idx1-ubyte \
	train-labels-idx1-ubyte train-images-idx3-ubyte && silent
right "MNIST, other names" "[(0, 4)]" mnist ia.idx lb.idx && silent

n_right=$n n=0 VERB=(array) ARGS=(-q)
together="put arrays that belong together into one folder (a/x.npy, a/label.npy) or one .npz, or join those of a \
field with numpy.concatenate"
refused 1 "$PWD/q0/x.npy has 4 records, and $PWD/q0/y.npy has 6; files that belong together must have the same number" \
	q0/x.npy q1/x.npy q0/y.npy q1/y.npy
refused 1 "$PWD/p2/x.npy: has no partner among the files of field 'y'; $together" p10/x.npy p2/x.npy p10/y.npy p3/y.npy
refused 1 "$PWD/p3/x.npy: has no partner among the files of field 'y'; $together" p10/x.npy p2/x.npy p3/x.npy \
	p10/y.npy p2/y.npy
refused 1 "$PWD/p3/y.npy: has no partner among the files of field 'x'; $together" p10/x.npy p2/x.npy p2/y.npy \
	p10/y.npy p3/y.npy
refused 1 "./p10.x.npz/x.npy: has no partner among the files of field 'y'; $together" p10.x.npz p2.x.npz p10.y.npz \
	p2.y.npz
refused 1 "twice/x.npy and twice/x.npy.gz are parts of field 'x', and have one name; $together" twice/x.npy \
	twice/x.npy.gz twice/y.npy twice/y.npy.gz
numbered="differ in a number: say --numbered parts if their rows follow each other in one field"
fields="or --numbered fields if each is a field; if each is a record, join them with numpy.stack"
refused 1 "x_0.npy and x_1.npy $numbered x, $fields" n/x_*.npy
refused 1 "s0.npy and s1.npy $numbered s, $fields" n/s0.npy n/s1.npy
refused 1 "y-00.npy and y-01.npy $numbered y, $fields" n/whole.npy n/y-*.npy
refused 1 "n/x_11.npy: has no partner among the files of field 'y'; $together" n/x_*.npy n/y-0?.npy n/y-10.npy \
	--numbered parts
VERB=(mnist)
alike="call the files of the same records alike, as train-images-idx3-ubyte and train-labels-idx1-ubyte"
refused 1 "./train-images-idx3-ubyte: has no partner among the files of field 'label'; $alike" \
	train-images-idx3-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte extra-labels-idx1-ubyte
refused 1 "./ia.idx and ./ib.idx are parts of field 'image', and have one name; $alike" ia.idx ib.idx la.idx lb.idx
echo "$n_right that are paired, $n refusals"
