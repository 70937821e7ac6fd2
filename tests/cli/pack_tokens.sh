#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_tokens.sh - streams of tokens: windows, overlap, documents, and files that are none
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
export PYTHONPATH=$ROOT/tests/cli

"$PYTHON" - <<'PY'
import gzip
import numpy as np

rng = np.random.RandomState(3)

def llm(name, magic, version, tokens, count=None):
    head = np.zeros(256, "<i4")
    head[:3] = magic, version, len(tokens) if count is None else count
    open(name, "wb").write(head.tobytes() + tokens.tobytes())

a, b = rng.randint(0, 50257, 1000).astype("<u2"), rng.randint(0, 50257, 517).astype("<u2")
a.tofile("a.bin")
b.tofile("b.bin")
llm("a.llm", 20240520, 1, a)
llm("wide.llm", 20240801, 7, rng.randint(0, 128256, 300).astype("<u4"))
np.save("big.npy", a.astype(">u2"))
np.save("long.npy", a.astype("<i8"))
open("a.bin.gz", "wb").write(gzip.compress(a.tobytes()))
wide = rng.randint(0, 128256, 300).astype("<u4")
wide.tofile("wide.bin")
docs = [rng.randint(0, 99, n) for n in (40, 0, 1, 9, 10, 11, 19, 20, 21, 200, 3)] # each ends with 99
d = np.concatenate([np.append(x, 99) for x in docs] + [rng.randint(0, 99, 13)]).astype("<u2")
d.tofile("docs.bin")
llm("short.llm", 20240520, 1, a[:-1], 1000)
llm("more.llm", 20240520, 1, a, 999)
llm("version.llm", 20240520, 2, a)
llm("eval.llm", 20240522, 1, a)
llm("none.llm", 20240520, 1, a[:0])
open("head.llm", "wb").write(open("a.llm", "rb").read()[:600])
open("odd.bin", "wb").write(a.tobytes()[:-1])
np.save("float.npy", a.astype("f4"))
np.save("square.npy", a.reshape(10, 100))
open("cut.npy", "wb").write(open("big.npy", "rb").read()[:-2])
PY

# ---- windows of any source of the same tokens are the same ----

for f in a.bin a.llm big.npy a.bin.gz; do
	run 0 "$PACK" tokens $f -o "ds.$f" --seq-len 16 --shard-records 20
	said "shardpack: warning: 7 tokens are in no record: they do not fill a sequence at the end of their file"
	said "shardpack: 62 inputs = 62 written + 0 skipped + 0 quarantined + 0 failed"
done
run 0 "$PACK" tokens a.bin b.bin -o two --seq-len 16 --order source --report two.json -q
run 0 "$PACK" tokens a.bin -o overlap --seq-len 16 --overlap 5 --order source -j 3 -q
run 0 "$PACK" tokens wide.bin -o wide --dtype u32 --seq-len 299 --order source -q
run 0 "$PACK" tokens wide.llm -o wide2 --seq-len 7 --order source -q
run 0 "$PACK" tokens long.npy -o long --seq-len 100 --order source -q
run 0 "$PACK" tokens docs.bin -o docs --seq-len 10 --documents 99 --order source
said "shardpack: warning: 1 tokens are in no record: they do not fill a sequence or are a document of one token"
run 0 "$PACK" tokens docs.bin -o docs.mixed --seq-len 10 --documents 99 --shard-records 5 -j 3 -q
run 0 "$PACK" tokens docs.bin -o docs.overlap --seq-len 10 --overlap 4 --documents 99 --order source --compress lz4 -q
"$PYTHON" - <<'PY'
import json
import numpy as np, records

def windows(tokens, n, step):
    return np.array([tokens[i:i + n] for i in range(0, len(tokens) - n + 1, step)])

a, b = np.fromfile("a.bin", "<u2"), np.fromfile("b.bin", "<u2")
want = windows(a, 17, 16)
first = records.read("ds.a.bin")["tokens"]
records.same_set(first, want, "windows")
for ds in "ds.a.llm", "ds.big.npy", "ds.a.bin.gz":
    records.same(records.read(ds)["tokens"], first, ds)
records.same(records.read("two")["tokens"], np.concatenate([want, windows(b, 17, 16)]), "two files")
records.same(records.read("overlap")["tokens"], windows(a, 17, 11), "overlap")
records.same(records.read("wide")["tokens"], np.fromfile("wide.bin", "<u4").reshape(1, 300), "u32")
records.same(records.read("wide2")["tokens"], windows(np.fromfile("wide.llm", "<u4")[256:], 8, 7), "llm.c u32")
records.same(records.read("long")["tokens"], windows(a.astype("<i8"), 101, 100), "i64")
fields = json.load(open("two.json"))["recipe"]["fields"]
assert fields == [{"name": "tokens", "dtype": "u16", "kind": "tensor", "layout": "tokens", "semantic": "tokens",
                   "shape": [17]}], fields

def documents(tokens, end, n, step):
    rows, lengths, begin = [], [], 0
    ends = [i + 1 for i in np.flatnonzero(tokens == end)]
    for stop in ends + ([len(tokens)] if not ends or ends[-1] < len(tokens) else []):
        at = begin
        while stop - at >= 2:
            row = tokens[at:min(at + n, stop)]
            lengths.append(len(row))
            rows.append(np.pad(row, (0, n - len(row))))
            if at + n >= stop:
                break
            at += step
        begin = stop
    return np.array(rows), np.array(lengths, "<u4").reshape(-1, 1)

d = np.fromfile("docs.bin", "<u2")
for ds, step in ("docs", 10), ("docs.overlap", 6):
    got, (rows, lengths) = records.read(ds), documents(d, 99, 11, step)
    records.same(got["tokens"], rows, ds)
    records.same(got["length"], lengths, ds)
got, (rows, lengths) = records.read("docs.mixed"), documents(d, 99, 11, 10)
records.same_set(np.concatenate([got["tokens"], got["length"].astype("<u2")], 1),
                 np.concatenate([rows, lengths.astype("<u2")], 1), "mixed")
PY
run 0 "$CAT" verify docs.mixed
run 0 "$PACK" plan tokens docs.bin -o planned --seq-len 10 --documents 99 --shard-records 5 -q
run 0 "$PACK" build planned --part 1/2 -q
run 0 "$PACK" build planned --part 0/2 -q
run 0 "$PACK" seal planned -q
same docs.mixed planned
run 0 "$PACK" tokens docs.bin -o foretell --seq-len 10 --documents 99 --shard-records 5 --dry-run
grep -q "^record 22 bytes tokens, \|^record 32 bytes tokens, 16 bytes length$" out || die "$(cat out)"
[ "$(sed -n 's/^shards .* \([0-9]*\) bytes in all$/\1/p' out)" = "$(cat docs.mixed/*.shard | wc -c)" ] ||
	die "$(grep ^shards out), not $(cat docs.mixed/*.shard | wc -c)"
# A list on standard input, and a pattern.
printf 'a.bin\nb.bin\n' | "$PACK" tokens - -o listed --seq-len 16 --order source -q
same two listed
run 0 "$PACK" tokens '[ab].bin' -o globbed --seq-len 16 --order source -q
same two globbed

# ---- refused ----

VERB=(tokens) ARGS=(--seq-len 16)
refused 1 "./short.llm: has 3022 bytes, but must have a head of 1024 bytes and 1000 tokens of 2 bytes each; \
it is cut short" short.llm
refused 1 "./more.llm: has 3024 bytes, but must have a head of 1024 bytes and 999 tokens of 2 bytes each; \
it is longer than it should be" more.llm
refused 1 "./version.llm: magic 20240520 with version 2; 1 is known" version.llm
refused 1 "./eval.llm: a file of evaluation questions (magic 20240522), not a stream of tokens" eval.llm
refused 1 "./none.llm: its head says that it has no tokens" none.llm
refused 1 "./head.llm: ends at offset 600, within its head of 1024 bytes" head.llm
refused 1 "./odd.bin: 1999 bytes are not a whole number of u16; check --dtype" odd.bin
cp a.bin a.npz
cp a.bin a.txt && gzip -k a.txt && cp a.bin a.PNG
for name in "a.npz an archive" "a.txt text" "a.txt.gz text" "a.PNG an image"; do
	run 1 "$PACK" tokens "${name%% *}" -o no --seq-len 16
	said "shardpack: ./${name%% *}: is ${name#* } by its name; must be a .bin or .npy file of token numbers; \
if it is one, rename it"
	[ ! -e no ] || die "made for nothing"
done
refused 2 "./a.bin: --documents 70000 does not fit u16, so no document would end" a.bin --documents 70000
refused 1 "./float.npy: tokens of type f32; must be integers" float.npy
refused 1 "./square.npy: 2 axes; tokens must be an array of 1 axis" square.npy
refused 1 "./cut.npy: has 2126 bytes, but must have a head of 128 and data of 2000" cut.npy
refused 1 "./wide.llm: field 'tokens' is u32 [17] here, but u16 [17] in the files before" a.bin wide.llm
run 1 "$PACK" tokens a.bin -o ds --seq-len 1000
said_only "shardpack: ./a.bin: no sequence of 1001 tokens in it; give a smaller --seq-len"
: >empty.bin && head -c 8 a.bin >short.bin
refused 1 "./empty.bin: no sequence of 17 tokens in it, nor in 1 other file; give a smaller --seq-len" \
	empty.bin short.bin
run 0 "$PACK" tokens empty.bin a.bin short.bin -o ds --seq-len 16
said "shardpack: warning: 2 files have no record (the first is './empty.bin')"
rm -rf ds
run 2 "$PACK" tokens a.bin -o ds --seq-len 16 --overlap 16
grep -q "^shardpack: --overlap 16 must be less than --seq-len 16$" err || die "$(cat err)"
: >empty
run 1 "$PACK" tokens - -o ds --seq-len 16
said_only "shardpack: standard input: empty; '-' stands for a list of inputs, one path per line"
[ ! -e ds ] || die "made for nothing"
echo "windows, overlap, documents, lists; $n refusals"
