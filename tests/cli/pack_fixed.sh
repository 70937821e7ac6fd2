#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_fixed.sh - arrays, raw records, CIFAR and MNIST: what NumPy wrote is what the
# records hold
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
export PYTHONPATH=$ROOT/tests/cli

"$PYTHON" - <<'PY'
import gzip
import os
import numpy as np

rng = np.random.RandomState(7)
os.makedirs("more")
np.save("c.npy", rng.rand(90, 4, 3).astype("<f4"))
np.save("f.npy", np.asfortranarray(rng.randint(-9, 9, (90, 3, 4, 2)).astype(">i2")))
np.save("one.npy", np.asfortranarray(rng.rand(90).astype(">f8")))
np.save("label.npy", rng.randint(0, 5, 90).astype(">u2"))
np.save("flag.npy", rng.rand(90, 2) < 0.5)
np.save("half.npy", rng.rand(90, 7).astype("<f2"))
np.save("big.npy", np.asfortranarray(rng.randint(0, 256, (30, 64, 48, 3)).astype("u1")))
np.save("image.npy", rng.randint(0, 256, (60, 8, 8, 3)).astype("u1"))
np.save("more/image.npy", rng.randint(0, 256, (30, 8, 8, 3)).astype("u1"))
with open("v2.npy", "wb") as f:
    np.lib.format.write_array(f, rng.randint(0, 99, (90, 2)).astype("<u4"), version=(2, 0))
with open("v3.npy", "wb") as f:
    np.lib.format.write_array(f, rng.randint(0, 99, (90, 2)).astype("<i8"), version=(3, 0))
with gzip.open("packed.npy.gz", "wb") as f:
    np.save(f, rng.randint(0, 99, (90, 5)).astype("<i4"))

named = {n: np.load(n + ".npy") for n in ("c", "f", "label")}
np.savez("plain.npz", **named)
np.savez_compressed("packed.npz", **named)

row = np.dtype([("x", ">f4", (3,)), ("skip", "u1", (5,)), ("label", ">i4"), ("image", "u1", (3, 4, 4)), ("y", "<u2")])
rows = np.frombuffer(rng.bytes(row.itemsize * 210), row).copy()
rows["label"] = rng.randint(0, 4, 210)
rows["x"] = rng.rand(210, 3)
rows.tofile("all.raw")
open("raw.0", "wb").write(b"head" + rows[:100].tobytes())
open("raw.1", "wb").write(b"head" + rows[100:].tobytes())
gzip.open("raw.gz", "wb").write(b"head" + rows.tobytes())
np.save("rows.npy", rows.view("u1").reshape(210, -1))

os.makedirs("cifar10")
os.makedirs("cifar100")
for i in range(1, 7):
    a = rng.randint(0, 256, (20, 3073)).astype("u1")
    a[:, 0] %= 10
    a.tofile("cifar10/" + ("data_batch_%d.bin" % i if i < 6 else "test_batch.bin"))
open("cifar10/batches.meta.txt", "w").write("airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n")
a = rng.randint(0, 256, (50, 3074)).astype("u1")
a[:, 0] %= 20
a[:, 1] %= 100
a.tofile("cifar100/train.bin")

os.makedirs("mnist")
images, labels = rng.randint(0, 256, (70, 28, 28)).astype("u1"), rng.randint(0, 10, 70).astype("u1")
for name, array in ("images-idx3", images), ("labels-idx1", labels):
    idx = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()
    gzip.open("mnist/train-%s-ubyte.gz" % name, "wb").write(idx)
    open("mnist/t10k-%s-ubyte" % name, "wb").write(idx)
PY

# ---- arrays: versions, byte orders, Fortran's order, names, gzip ----

run 0 "$PACK" array c.npy f.npy one.npy label.npy flag.npy half.npy v2.npy v3.npy packed.npy.gz image.npy \
	more/image.npy -o a \
	--order source --shard-records 40 -q
run 0 "$PACK" array f.npy label.npy image.npy more/image.npy -o b -j 3 --shard-records 7 -q
run 0 "$PACK" array big.npy -o c --order source -q
run 0 "$PACK" array c.npy f.npy label.npy -o npy --shard-records 40 -q
zstd -q c.npy f.npy label.npy
for f in plain.npz packed.npz "c.npy.zst f.npy.zst label.npy.zst"; do
	rm -rf npz
	# shellcheck disable=SC2086
	run 0 "$PACK" array $f -o npz --shard-records 40 -q
	"$PYTHON" -c 'import records
a, b = records.read("npy"), records.read("npz")
assert list(a) == list(b)
for name in a:
    records.same(a[name], b[name], name)'
done
run 0 "$PACK" plan array packed.npz -o npz.plan --shard-records 40 -q
grep -q '^unpack 1 [0-9]* 0 deflate,[0-9]*,[0-9]*,[0-9]*,[0-9]*$' npz.plan/.shardpack/plan ||
	die "$(grep -a ^unpack npz.plan/.shardpack/plan)"
run 0 "$PACK" build npz.plan --part 1/2 -q --spool .
run 0 "$PACK" build npz.plan -q
run 0 "$PACK" seal npz.plan -q
"$PYTHON" - <<'PY'
import numpy as np, records
a = records.read("a")
assert list(a) == ["c", "f", "one", "label", "flag", "half", "v2", "v3", "packed", "image"], list(a)
for name in ("c", "half", "v2", "v3", "flag"):
    records.same(a[name], np.load(name + ".npy"), name)
records.same(a["f"], np.load("f.npy").astype("<i2"), "f")
records.same(a["one"], np.load("one.npy").astype("<f8"), "one")
records.same(a["label"], np.load("label.npy").astype("<i8"), "label")
image = np.concatenate([np.load("image.npy"), np.load("more/image.npy")])
records.same(a["image"], image, "image")
b = records.read("b")
rows = [np.load("f.npy").astype("<i2"), np.load("label.npy").astype("<i8"), image]
flat = lambda arrays: np.concatenate([np.ascontiguousarray(x).view("u1").reshape(90, -1) for x in arrays], axis=1)
records.same_set(flat([b["f"], b["label"], b["image"]]), flat(rows), "rows stay together")
records.same(records.read("c")["big"], np.load("big.npy"), "big")
PY
# Labels that are narrow in the first file and wide in the second.
"$PYTHON" - <<'PY'
import os
import numpy as np
for name, dtype, first in ("u", "u1", 0), ("v", "<i8", 1000), ("w", ">u2", 60000):
    os.mkdir(name)
    np.save(name + "/label.npy", (first + np.arange(5)).astype(dtype))
    np.save(name + "/x.npy", np.arange(20).reshape(5, 4).astype("<f4"))
PY
run 0 "$PACK" array u/label.npy u/x.npy v/label.npy v/x.npy w/label.npy w/x.npy -o widths --order source -q
run 0 "$PACK" array u/label.npy u/x.npy v/label.npy v/x.npy w/label.npy w/x.npy -o widths.mixed -q
"$PYTHON" - <<'PY'
import numpy as np, records
labels = np.concatenate([np.load(f"{n}/label.npy").astype("<i8") for n in "uvw"])
records.same(records.read("widths")["label"], labels, "labels of several widths")
records.same_set(records.read("widths.mixed")["label"], labels, "labels of several widths, shuffled")
PY
mean=$("$PYTHON" -c 'import numpy as np
i = np.concatenate([np.load("image.npy"), np.load("more/image.npy")]) / 255
print("%.6f %.6f %.6f" % tuple(i.mean(axis=(0, 1, 2))))')
run 0 "$CAT" info b
printed "  image mean $mean"

# bfloat16 as ml_dtypes saves it, in both orders of axes: NumPy calls it two bytes without a name.

"$PYTHON" - <<'PY'
import numpy as np
wide = np.random.RandomState(3).standard_normal((6, 4, 3)).astype("<f4")
bits = (wide.view("<u4") >> 16).astype("<u2")
for name, order in ("row.npy", "C"), ("column.npy", "F"):
    head = "{'descr': '<V2', 'fortran_order': %s, 'shape': (6, 4, 3), }" % (order == "F")
    head = head.ljust(117) + "\n"
    open(name, "wb").write(b"\x93NUMPY\1\0" + bytes([len(head), 0]) + head.encode() + bits.tobytes(order))
np.save("old.npy", bits.view("V2"))
assert b"'|V2'" in open("old.npy", "rb").read()
np.savez_compressed("bits.npz", bits=bits)
np.savez("named.npz", kept=wide, void=bits.view("V2"))
PY
run 0 "$PACK" array row.npy column.npy old.npy named.npz --v2 bf16 -o bf16 --order source -q
"$PYTHON" -c 'import numpy as np, records
got, bits = records.read("bf16"), np.load("bits.npz")["bits"]
assert list(got) == ["row", "column", "old", "kept", "void"]
for name in "row", "column", "old", "void":
    records.same(got[name], bits, name)
records.same(got["kept"], np.load("named.npz")["kept"], "kept")'
run 0 "$CAT" info bf16
grep -q '^  row  *bf16 \[4,3\]' out || die "bf16 is not named: $(cat out)"

# ---- raw records: fields, skipped bytes, byte orders, several files, gzip ----

# What is compressed holds the same.

SCHEMA='x:>f32[3],-:u8[5],label:>i32,image:u8[3,4,4],y:u16'
printf 'ant\nbee\ncat\ndog\n' >names
head -c 12 all.raw >few.raw
run 0 "$PACK" raw few.raw -o stored --schema label:u16,x:u8
said "shardpack: field label: u16 in the files, and stored as i64, as all labels are"
run 0 "$PACK" raw few.raw -o stored.i64 --schema label:i64,x:i32
! grep -q "stored as" err || die "nothing is stored as another type: $(cat err)"
run 0 "$PACK" raw all.raw -o whole --schema "$SCHEMA" --classes names --shard-records 64 -q
run 0 "$PACK" raw raw.0 raw.1 -o two --schema "$SCHEMA" --classes names --shard-records 64 -q --skip-bytes 4
run 0 "$PACK" raw raw.gz -o gz --schema "$SCHEMA" --classes names --order source -q --skip-bytes 4
run 0 "$PACK" raw raw.gz -o lz4 --schema "$SCHEMA" --classes names --order source -q --skip-bytes 4 --compress lz4
"$PYTHON" - <<'PY'
import numpy as np, records
row = np.dtype([("x", ">f4", (3,)), ("skip", "u1", (5,)), ("label", ">i4"), ("image", "u1", (3, 4, 4)), ("y", "<u2")])
rows = np.fromfile("all.raw", row)
for ds in "gz", "lz4":
    got = records.read(ds)
    assert list(got) == ["x", "label", "image", "y"]
    records.same(got["x"], rows["x"].astype("<f4"), "x")
    records.same(got["label"], rows["label"].astype("<i8"), "label")
    records.same(got["image"], rows["image"], "image")
    records.same(got["y"], rows["y"], "y")
one, two = records.read("whole"), records.read("two")
records.same_set(one["image"], rows["image"], "image")
for name in one: # the order depends on the number of records, not on the files that they lie in
    records.same(one[name], two[name], name)
PY

# ---- any -j, any split into parts, a run again: the same bytes; sizes are foretold ----

run 0 "$PACK" raw raw.0 raw.1 -o two.1 --schema "$SCHEMA" --classes names --shard-records 64 -q --skip-bytes 4 -j 1
same two two.1
run 0 "$PACK" plan raw raw.0 raw.1 -o parts --schema "$SCHEMA" --classes names --shard-records 64 --skip-bytes 4
grep -q "^shardpack: plan [0-9a-f]*: 210 inputs in 4 shards$" err || die "$(cat err)"
grep -q -e "$PWD" parts/.shardpack/plan && die "the plan knows this machine"
for part in 2/3 0/3 1/3; do run 0 "$PACK" build parts --part $part -q; done
run 0 "$PACK" seal parts -q
same two parts
rm two/00002.shard two/dataset.manifest
cp -r parts/dataset.manifest kept
run 0 "$PACK" raw raw.0 raw.1 -o two --schema "$SCHEMA" --classes names --shard-records 64 --skip-bytes 4 --replace -q
same two parts
run 0 "$PACK" raw raw.0 raw.1 -o two --schema "$SCHEMA" --classes names --shard-records 64 --skip-bytes 4
said "shardpack: two: the same dataset is there already (same names, sizes, times and options); \
nothing to do"
# Killed at any moment, the same command ends with the same bytes.
for delay in 0.005 0.01 0.015 0.02 0.03 0.04 0.06 0.08; do
	timeout -s KILL $delay "$PACK" raw raw.gz -o killed --schema "$SCHEMA" --classes names --shard-records 8 \
		--skip-bytes 4 -q 2>/dev/null || :
	[ ! -e killed ] || [ -z "$(find killed -name '.spool*')" ] || die "left behind: $(contents killed)"
done
run 0 "$PACK" raw raw.gz -o killed --schema "$SCHEMA" --classes names --shard-records 8 --skip-bytes 4 -q
run 0 "$PACK" raw raw.gz -o unkilled --schema "$SCHEMA" --classes names --shard-records 8 --skip-bytes 4 -q
same unkilled killed
mkdir foretell
for command in "array c.npy f.npy label.npy" "array one.npy" "cifar cifar10" \
	"raw all.raw --schema $SCHEMA --shard-records 50"; do
	rm -rf foretell/ds
	# shellcheck disable=SC2086
	run 0 "$PACK" $command -o foretell/ds --dry-run
	[ -z "$(contents foretell)" ] || die "a dry run wrote: $(contents foretell)"
	said=$(sed -n 's/^shards .* \([0-9]*\) bytes in all$/\1/p' out)
	# shellcheck disable=SC2086
	run 0 "$PACK" $command -o foretell/ds -q
	is=$(cat foretell/ds/*.shard | wc -c)
	[ "$said" = "$is" ] || die "foretold $said bytes, found $is: $command"
done

# ---- a plan that was tampered with, and a file that changed ----

run 0 "$PACK" plan raw raw.0 raw.1 -o planned --schema "$SCHEMA" --classes names --shard-records 64 --skip-bytes 4 -q
n=0
for edit in 's/^slice 1 100 110/slice 1 99 111/' 's/^slice 0 0 100/slice 0 0 101/' 's/^\(slice 2 .*\) u8$/\1 u16/' \
	's/^slices 8/slices 7/' \
	's/^\(slice 3 100 110 1 [0-9]*\) [0-9]*/\1 70/' 's,^file 1 [0-9]* raw,&/../x,' 's/^files 2/files 3/' \
	's/^file 0 [0-9]*/file 0 100/' \
	's/^field y u16/field y u99/' 's/^inputs 210/inputs 211/' '/^slice 3/d' 's/^slice 0 0 100 0/slice 0 0 100 7/' \
	's/^slice 1 /slice 9 /'; do
	n=$((n + 1))
	replan "$edit" planned "t$n"
	run 1 "$PACK" build "t$n"
	grep -q "^shardpack: t$n/.shardpack/plan: line [0-9]*: .*; this is not a plan that shardpack wrote$" err ||
		die "$edit: $(cat err)"
done
mkdir there && cp raw.0 there && head -c 500 raw.1 >there/raw.1
run 5 "$PACK" build planned --source there
said_only "shardpack: there/raw.1: changed since the plan was made: $(stat -c %s raw.1) bytes then, 500 now; \
bring back the file of then, or remove planned and begin again with \`shardpack plan\`"

# ---- labels that are no class: bad input, by policy ----

head -n 3 names >three
bad=$("$PYTHON" -c 'import numpy as np
row = np.dtype([("x", "u1", 17), ("label", ">i4"), ("rest", "u1", 50)])
l = np.fromfile("all.raw", row)["label"]
print((l == 3).sum(), np.argmax(l == 3))')
first=${bad#* } bad=${bad% *}
run 1 "$PACK" raw all.raw -o no --schema "$SCHEMA" --classes three
at="offset $((first * 71 + 17)) of all.raw"
said "shardpack: warning: ./all.raw#$first: label 3 at $at; there are 3 classes, from 0"
said "shardpack: $bad bad inputs; shards that need one of them were not published"
[ ! -e no ] || die "made for nothing"
run 0 "$PACK" raw all.raw -o skipped --schema "$SCHEMA" --classes three --on-error skip --report skipped.json \
	--shard-records 64
said "shardpack: 210 inputs = $((210 - bad)) written + $bad skipped + 0 quarantined + 0 failed"
[ "$(json skipped.json 'len(d["bad_inputs"]), d["bad_inputs"][0]["reason"], d["bad_inputs"][0]["class"]')" = \
	"($bad, 'damaged', None)" ] || die "the report"
run 0 "$PACK" raw all.raw -o kept.ds --schema "$SCHEMA" --classes three --on-error quarantine --quarantine bad
[ "$(find bad -name 'all.raw#*' | wc -l)" = "$bad" ] || die "quarantine holds $(contents bad)"
[ "$(wc -l <bad/quarantine.jsonl)" = "$bad" ] || die "$(cat bad/quarantine.jsonl)"
run 0 "$CAT" verify skipped

# ---- CIFAR ----

run 0 "$PACK" cifar cifar10 -o cifar10.ds --order source -q
run 0 "$PACK" cifar cifar10 -o cifar10.test --order source --split test -q
run 0 "$PACK" cifar cifar10/data_batch_2.bin -o cifar10.2 --order source -q
run 0 "$PACK" cifar cifar100 -o cifar100.ds --order source -q
run 0 "$PACK" cifar cifar100 -o cifar100.coarse --order source --labels coarse -q
"$PYTHON" - <<'PY'
import numpy as np, records
def batch(name, bytes):
    return np.fromfile(name, "u1").reshape(-1, bytes)
rows = np.concatenate([batch("cifar10/data_batch_%d.bin" % i, 3073) for i in range(1, 6)])
for ds, rows, label in (("cifar10.ds", rows, 0), ("cifar10.test", batch("cifar10/test_batch.bin", 3073), 0),
                        ("cifar10.2", batch("cifar10/data_batch_2.bin", 3073), 0),
                        ("cifar100.ds", batch("cifar100/train.bin", 3074), 1),
                        ("cifar100.coarse", batch("cifar100/train.bin", 3074), 0)):
    got = records.read(ds)
    records.same(got["image"], rows[:, -3072:].reshape(-1, 3, 32, 32), ds)
    records.same(got["label"], rows[:, label].astype("<i8"), ds)
PY
[ "$(sed -n 's/^class //p' cifar10.ds/dataset.manifest | tr '\n' ,)" = \
	"0 airplane,1 automobile,2 bird,3 cat,4 deer,5 dog,6 frog,7 horse,8 ship,9 truck," ] ||
	die "classes"
[ "$(grep -c '^class ' cifar100.ds/dataset.manifest) $(grep -c '^class ' cifar100.coarse/dataset.manifest)" = \
	"100 20" ] || die "classes of CIFAR-100"

# ---- MNIST ----

run 0 "$PACK" mnist mnist -o mnist.ds --order source -q
run 0 "$PACK" mnist mnist -o mnist.test --order source --split test -q
run 0 "$PACK" mnist mnist/t10k-labels-idx1-ubyte mnist/t10k-images-idx3-ubyte -o mnist.files --order source -q
"$PYTHON" - <<'PY'
import numpy as np, records
images = np.fromfile("mnist/t10k-images-idx3-ubyte", "u1")[16:].reshape(-1, 28, 28, 1)
labels = np.fromfile("mnist/t10k-labels-idx1-ubyte", "u1")[8:].astype("<i8")
for ds in "mnist.ds", "mnist.test", "mnist.files":
    got = records.read(ds)
    records.same(got["image"], images, ds)
    records.same(got["label"], labels, ds)
PY
echo "arrays, raw records, CIFAR and MNIST as NumPy wrote them; parts, $n spoilt plans, bad labels"
