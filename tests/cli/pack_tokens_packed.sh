#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_tokens_packed.sh - shardpack tokens --pack: every token of every source is where
# it belongs, and no more windows than of best fit decreasing as Python writes it down
# shellcheck disable=SC1091
# TAKES: 30
. "$ROOT/tests/cli/lib.sh"
export PYTHONPATH=$ROOT/tests/cli

cat >packed.py <<'PY'
import bisect, struct
import numpy as np, records

def pieces_of(documents, room):
    """Pieces of `room` that share a token with the one before, then the rest."""
    out = []
    for d in documents:
        while len(d) > room:
            out.append(d[:room])
            d = d[room - 1:]
        if len(d) > 1:
            out.append(d)
    return out

def best_fit(lengths, room):
    """How many windows; rooms are kept sorted."""
    rooms, windows = [], 0
    for n in sorted(lengths, reverse=True):
        at = bisect.bisect_left(rooms, n)
        if at < len(rooms):
            left = rooms.pop(at) - n
        else:
            windows, left = windows + 1, room - n
        bisect.insort(rooms, left)
    return windows

def split(tokens, end):
    ends = np.flatnonzero(tokens == end) + 1
    return [d for d in np.split(tokens, ends) if len(d)]

def check(ds, documents, room, dtype, positions=False):
    got = records.read(ds)
    assert list(got) == ["tokens", "doc_lengths", "doc_count"] + ["position_ids"] * positions, list(got)
    tokens, counts = got["tokens"], got["doc_count"].ravel()
    assert tokens.dtype == dtype and tokens.shape[1] == room, tokens.dtype
    assert got["doc_lengths"].dtype == "<i4" and got["doc_lengths"].shape[1] == counts.max()
    found = []
    for row, lengths, count, *more in zip(tokens, got["doc_lengths"], counts,
                                          *([got["position_ids"]] if positions else [])):
        bounds = np.concatenate([[0], np.cumsum(lengths[:count])])
        assert not lengths[count:].any() and (lengths[:count] > 1).all() and (np.diff(lengths[:count]) <= 0).all()
        assert bounds[-1] <= room and not row[bounds[-1]:].any()
        found += [row[a:b] for a, b in zip(bounds, bounds[1:])]
        if positions:
            want = np.zeros(room, "<i4")
            for a, b in zip(bounds, bounds[1:]):
                want[a:b] = np.arange(b - a)
            records.same(more[0], want, "positions")
    want = pieces_of(documents, room)
    text = lambda pieces: sorted(np.asarray(p, dtype).tobytes() for p in pieces)
    assert text(found) == text(want), ds
    windows = best_fit([len(p) for p in want], room)
    assert len(tokens) == windows, (ds, len(tokens), windows)
    return len(tokens) * room - sum(map(len, want))
PY

"$PYTHON" - <<'PY'
import glob, os, re, struct, sysconfig
import numpy as np

rng = np.random.RandomState(17)
END = 50256
def write(name, documents, dtype="<u2"):
    np.concatenate([np.append(d, END) for d in documents] or [[]]).astype(dtype).tofile(name)
lengths = np.clip(rng.lognormal(3.2, 1.3, 2000).astype(int), 1, 3000)
lengths[:8] = 0, 1, 62, 63, 64, 65, 126, 127
docs = [rng.randint(0, END, n) for n in lengths]
write("a.bin", docs[:900])
write("b.bin", docs[900:])
write("ab.bin", docs)
np.save("c.npy", np.concatenate([np.append(d, END) for d in docs]).astype(">i8"))
head = np.zeros(256, "<i4")
tokens = np.concatenate([np.append(d, END) for d in docs]).astype("<u4")
head[:3] = 20240801, 7, len(tokens)
open("d.llm", "wb").write(head.tobytes() + tokens.tobytes())
open("open.bin", "wb").write(open("a.bin", "rb").read() + np.array([5, 6, 7], "<u2").tobytes())
write("lone.bin", [[], [], []])
write("two.bin", [[], [9]])

def megatron(name, documents, dtype, code):
    """One sequence for each document."""
    flat = [np.asarray(d, dtype) for d in documents]
    sizes = np.array([len(d) for d in flat], "<i4")
    begins = (np.cumsum(sizes) - sizes).astype("<i8") * np.dtype(dtype).itemsize
    bounds = np.arange(len(flat) + 1, dtype="<i8")
    open(name + ".bin", "wb").write(b"".join(d.tobytes() for d in flat))
    open(name + ".idx", "wb").write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(flat), len(bounds))
                                    + sizes.tobytes() + begins.tobytes() + bounds.tobytes())
mega = [rng.randint(0, 151936, n) for n in lengths[:300]]
megatron("m1", mega[:100], "<i4", 4)
megatron("m2", mega[100:], "<i8", 5)
megatron("m3", [d % 65536 for d in mega[:50]], "<u2", 8)
megatron("bad", [[1, 2], [3, -4]], "<i4", 4)

# Lengths that are real: words and signs are tokens, a token is 1.
word = re.compile(rb"\w+|[^\w\s]")
def text(paths):
    return [open(p, "rb").read() for p in sorted(paths) if os.path.isfile(p)]
root, stdlib = os.environ["ROOT"], sysconfig.get_path("stdlib")
corpora = {
    "python": text(glob.glob(stdlib + "/*.py") + glob.glob(stdlib + "/email/*.py")), # files of Python's library
    "paragraphs": re.split(rb"\n\s*\n", b"\n\n".join(text(glob.glob(root + "/docs/*.md") + glob.glob(root + "/*.md")))),
    "functions": re.split(rb"\n}\n", b"".join(text(glob.glob(root + "/libshard/*/*.c")))), # functions of C
}
for name, documents in corpora.items():
    documents = [np.ones(len(word.findall(d)), "<u2") for d in documents]
    assert len(documents) > 100, name
    write(name + ".bin", documents)
PY

# ---- sources, each token once ----

N=(--pack --documents 50256 --shard-records 50)
run 0 "$PACK" tokens a.bin b.bin -o ab --seq-len 63 "${N[@]}" --position-ids
said "shardpack: warning: 1 document of one token is in no record: there is nothing to predict"
grep -q "^shardpack: packed 2,000 documents ([0-9]* cut) of [0-9,]* tokens into [0-9,]* records of 64, at most [0-9]* \
in one; 0.[0-9]* % of them is padding (\([0-9]*\) tokens)$" err || die "$(cat err)"
padding=$(sed -n 's/^.* is padding (\([0-9]*\) tokens)$/\1/p' err)
run 0 "$PACK" tokens ab.bin -o ab.one --seq-len 63 "${N[@]}" -q
run 0 "$PACK" tokens c.npy -o c --seq-len 63 "${N[@]}" -q
run 0 "$PACK" tokens d.llm -o d --seq-len 63 "${N[@]}" -q
gzip -k ab.bin
run 0 "$PACK" tokens ab.bin.gz -o gz --seq-len 63 "${N[@]}" -q
run 0 "$PACK" tokens open.bin -o open --seq-len 63 "${N[@]}" -q --compress lz4
run 0 "$PACK" tokens m1.bin m2.bin -o m12 --seq-len 40 --pack -q
run 0 "$PACK" tokens m1.bin m3.bin -o m13 --seq-len 40 --pack -q --order source
run 0 "$PACK" tokens m3.bin -o m3 --seq-len 40 --pack -q
run 0 "$PACK" tokens m3.bin -o m3.said --dtype u16 --seq-len 40 --pack -q
same m3 m3.said
run 0 "$PACK" tokens two.bin -o two --seq-len 1 "${N[@]}" -q
for ds in ab ab.one c d gz open m12 m13 m3 two; do
	run 0 "$CAT" verify $ds
done
PADDING=$padding "$PYTHON" - <<'PY'
import os
import numpy as np, records
from packed import check, split

a, ab = np.fromfile("a.bin", "<u2"), np.fromfile("ab.bin", "<u2")
documents = split(ab, 50256)
assert check("ab", documents, 64, "<u2", True) == int(os.environ["PADDING"])
check("ab.one", documents, 64, "<u2")
check("gz", documents, 64, "<u2")
for ds in "c", "d":
    check(ds, documents, 64, "<u4")
check("open", split(a, 50256) + [np.array([5, 6, 7])], 64, "<u2")
check("two", [np.array([9, 50256])], 2, "<u2")

def megatron(name, dtype):
    index, tokens = open(name + ".idx", "rb").read(), np.fromfile(name + ".bin", dtype)
    count = int(np.frombuffer(index, "<u8", 1, 18)[0])
    sizes = np.frombuffer(index, "<i4", count, 34)
    return np.split(tokens, np.cumsum(sizes)[:-1])
m1, m2, m3 = megatron("m1", "<i4"), megatron("m2", "<i8"), megatron("m3", "<u2")
check("m12", m1 + m2, 41, "<u4")
check("m13", m1 + m3, 41, "<u4")
check("m3", m3, 41, "<u2")
PY

# ---- the bytes are those of any way to make them ----

run 0 "$PACK" tokens a.bin b.bin -o ab.1 --seq-len 63 "${N[@]}" --position-ids -q -j 1
run 0 "$PACK" tokens a.bin b.bin -o ab.3 --seq-len 63 "${N[@]}" --position-ids -q -j 3
run 0 "$PACK" plan tokens a.bin b.bin -o ab.plan --seq-len 63 "${N[@]}" --position-ids -q
cp -r ab.plan ab.killed
for k in 2 0 1; do
	run 0 "$PACK" build ab.plan --part $k/3 -q
done
run 0 "$PACK" seal ab.plan -q
run 0 "$PACK" build ab.killed --part 1/2 -q
run 0 "$PACK" build ab.killed --again -q
run 0 "$PACK" seal ab.killed -q
for ds in ab.1 ab.3 ab.plan ab.killed; do
	same ab $ds
done
run 0 "$PACK" tokens a.bin b.bin -o ab --seq-len 63 "${N[@]}" --position-ids
grep -q "the same dataset is there already" err || die "$(cat err)"
run 0 "$PACK" tokens a.bin -o dry --seq-len 63 "${N[@]}" --dry-run --report dry.json
[ ! -e dry ] || die "--dry-run made something"

# ---- the report says how much is padding, with each verb that packs ----

run 0 "$PACK" plan tokens a.bin -o reported --seq-len 63 "${N[@]}" --report plan.json
run 0 "$PACK" build reported --report build.json -q
run 0 "$PACK" seal reported --report seal.json -q
run 0 "$PACK" tokens a.bin -o reported.html --seq-len 63 "${N[@]}" --report page.html
percent=$(sed -n 's/.*at most [0-9]* in one; \([0-9.]*\) % of them is padding.*/\1/p' err)
padding=$(sed -n 's/.* is padding (\([0-9]*\) tokens)$/\1/p' err)
grep -q "; $percent % of these is padding</p>" page.html || die "the page does not say $percent %"
for outcome in dry:planned plan:planned build:built; do
	got=$(json ${outcome%:*}.json 'd["outcome"], d["packed"]["padding"], "%.3f" % d["packed"]["padding_percent"]')
	[ "$got" = "('${outcome#*:}', $padding, '$percent')" ] || die "$outcome: $(grep packed ${outcome%:*}.json)"
done
[ "$(json seal.json 'd["outcome"], d["packed"]["padding"]')" = "('sealed', None)" ] ||
	die "seal does not pack documents"

# ---- real lengths: as many windows as of best fit decreasing ----

for corpus in python paragraphs functions; do
	for length in 127 1024; do
		run 0 "$PACK" tokens $corpus.bin -o $corpus.$length --dtype u16 --seq-len $length "${N[@]}" -q
	done
done
"$PYTHON" - <<'PY'
import numpy as np
from packed import check, split

for corpus in "python", "paragraphs", "functions":
    for n in 127, 1024:
        documents = split(np.fromfile(corpus + ".bin", "<u2"), 50256)
        padding = check(f"{corpus}.{n}", documents, n + 1, "<u2")
        print(f"{corpus}, --seq-len {n}: {len(documents)} documents, {padding} tokens of padding")
PY

# ---- corpora of other lengths: merged, appended ----

"$PYTHON" - <<'PY'
import numpy as np
for name, longest in ("long", 90), ("short", 30), ("later", 40):
    rng = np.random.RandomState(longest)
    docs = [np.append(rng.randint(1, 500, rng.randint(3, longest)), 511) for _ in range(400)]
    np.concatenate(docs).astype("<u2").tofile(name + ".bin")
PY
C=(--seq-len 64 --documents 511 --pack -q)
for name in long short later; do
	run 0 "$PACK" tokens $name.bin -o $name "${C[@]}"
	eval "$name=$("$CAT" info $name | sed -n 's/^ *doc_lengths .*\[\([0-9]*\)\].*/\1/p')"
done
# shellcheck disable=SC2154
[ "$long" -lt "$short" ] || die "the test needs short documents to be more in a record: $long, $short"
for way in "merge long short -o no" "append long short"; do
	# shellcheck disable=SC2086
	run 5 "$PACK" $way
	said_only "shardpack: long and short have different fields: 'doc_lengths' is ragged i32 [<=$long] in the \
first, and ragged i32 [<=$short] in the second
pack the documents of long again, with --max-documents $short; or train on both as a mixture, which needs \
no equal room"
done
run 5 "$PACK" merge short long -o no
grep -q "^pack the documents of long again, with --max-documents $short; " err || die "$(cat err)"
# What is advised is what helps.  The one with the room is as it was.
run 0 "$PACK" tokens long.bin -o long.wide "${C[@]}" --max-documents "$short"
run 0 "$PACK" tokens short.bin -o short.wide "${C[@]}" --max-documents "$short"
same short short.wide
run 0 "$PACK" merge long.wide short -o both
run 0 "$PACK" append long.wide short
# A number that all of them take, fewer than the fullest would have.
for name in long short later; do
	run 0 "$PACK" tokens $name.bin -o $name.7 "${C[@]}" --max-documents 7
done
run 0 "$PACK" plan tokens short.bin -o short.7.plan "${C[@]}" --max-documents 7
for part in 1/2 0/2; do
	run 0 "$PACK" build short.7.plan --part $part -q
done
run 0 "$PACK" seal short.7.plan -q
same short.7 short.7.plan
run 0 "$PACK" merge long.7 short.7 -o all.7
run 0 "$PACK" append all.7 later.7
run 0 "$PACK" tokens long.bin -o long.1 "${C[@]}" --max-documents 1
"$PYTHON" - <<'PY'
import numpy as np, records
from packed import pieces_of, split
for name in "long", "short", "later":
    want = [d for d in pieces_of(split(np.fromfile(name + ".bin", "<u2"), 511), 65)]
    for room in (7, 1) if name == "long" else (7,):
        got, found = records.read(f"{name}.{room}"), []
        assert got["doc_lengths"].shape[1] == room and got["doc_count"].max() <= room, name
        for row, lengths, count in zip(got["tokens"], got["doc_lengths"], got["doc_count"].ravel()):
            ends = np.cumsum(lengths[:count])
            found += [row[end - n:end] for n, end in zip(lengths, ends)]
            assert not row[ends[-1]:].any() and not lengths[count:].any()
        assert sorted(p.tobytes() for p in found) == sorted(p.tobytes() for p in want), name
count = lambda name: len(records.read(name + ".7")["tokens"])
assert count("all") == count("long") + count("short") + count("later")
PY
run 2 "$PACK" tokens long.bin -o no --seq-len 64 --documents 511 --max-documents 7
said "shardpack: --max-documents needs --pack"
run 2 "$PACK" tokens long.bin -o no "${C[@]}" --max-documents 0
[ ! -e no ] || die "made for nothing"

# ---- a plan that is spoilt, and files that changed ----

run 0 "$PACK" plan tokens m1.bin m2.bin -o plan --seq-len 40 --pack -q
"$PYTHON" - "$CAT" <<'PY'
import hashlib, os, shutil
lines = open("plan/.shardpack/plan").read().split("\n")[:-2]
def spoil(name, old, new):
    text = "".join((l.replace(old, new) if l.startswith(("stream", "pack")) else l) + "\n" for l in lines)
    assert text.count("\n") and (old == new or text != "\n".join(lines) + "\n"), name
    shutil.copytree("plan", "spoilt." + name)
    digest = hashlib.sha256(text.encode())
    open(f"spoilt.{name}/.shardpack/plan", "w").write(text + f"end {digest.hexdigest()}\n")
    with open(f"spoilt.{name}/.shardpack/sources", "r+b") as f:
        f.seek(24)
        f.write(digest.digest())
pack = next(l for l in lines if l.startswith("pack"))
words = pack.split()
spoil("none", "", "")
spoil("file", "stream 0 0", "stream 4 0")
spoil("more", "stream 0 0 ", "stream 0 0 9")
spoil("float", " u64 ", " f64 ")
spoil("index", " u32 1", " u32 -")
spoil("self", " u32 1", " u32 0")
spoil("count", "streams 2", "streams 1")
spoil("most", " ".join(words[:5]) + " " + words[5], " ".join(words[:5]) + " 1")
spoil("windows", pack, " ".join(words[:4] + [str(int(words[4]) + 1)] + words[5:]))
spoil("documents", pack, " ".join(words[:2] + [str(int(words[2]) + 1)] + words[3:]))
spoil("digest", pack, pack[:-1] + ("0" if pack[-1] != "0" else "1"))
PY
run 0 "$PACK" build spoilt.none -q # the control
for name in file more float index self; do
	run 1 "$PACK" build spoilt.$name -q
	grep -q "plan: line [0-9]*: not .*; this is not a plan that shardpack wrote$" err || die "$name: $(cat err)"
done
run 1 "$PACK" build spoilt.count -q
grep -q "the number of streams is missing or wrong" err || die "$(cat err)"
run 5 "$PACK" build spoilt.most -q
run 1 "$PACK" build spoilt.windows -q # the shards do not fit
run 5 "$PACK" build spoilt.documents -q
grep -q "^shardpack: its documents changed since the plan was made: 301 of other lengths then, 300 now; " err ||
	die "$(cat err)"
run 5 "$PACK" build spoilt.digest -q
grep -q "^shardpack: its documents changed since the plan was made: " err || die "$(cat err)"
cp -r plan plan.changed
cp -p m1.idx m1.kept
printf '\1' | dd of=m1.idx bs=1 seek=100 conv=notrunc status=none
run 5 "$PACK" build plan.changed -q
grep -q "m1.idx: changed" err || die "$(cat err)"
cp -p m1.kept m1.idx

# ---- refused ----

VERB=(tokens) ARGS=(--pack --seq-len 63)
refused 1 "./a.bin: --pack must know where documents end: type --documents ID, with the token that ends each, or give \
the .bin of Megatron-LM with its .idx beside it" a.bin
refused 1 "./bad.bin: token 3, at offset 12, is -4; tokens must be 0 to 4294967295" bad.bin
ARGS+=(--documents 50256)
refused 1 ".: no document of two tokens or more in 1 file" lone.bin
refused 1 "--documents 50256 cuts the files into 1, but Megatron-LM's indices beside them have 100 documents; leave \
--documents out, or rename the indices to go by the token" m1.bin
ARGS=(--pack --seq-len 63 --documents 70000)
refused 2 "./a.bin: --documents 70000 does not fit u16, so no document would end" a.bin
run 2 "$PACK" tokens a.bin -o no --seq-len 63 "${N[@]}" --overlap 3
grep -q "^shardpack: --overlap and --pack exclude each other" err || die "$(cat err)"
run 2 "$PACK" tokens a.bin -o no --seq-len 63 --position-ids
grep -q "^shardpack: --position-ids needs --pack$" err || die "$(cat err)"
run 2 "$PACK" tokens a.bin -o no --seq-len 4194304 "${N[@]}"
grep -q "^shardpack: --seq-len 4194304: the limit with --pack is 4194303$" err || die "$(cat err)"
echo "sources, parts, real lengths; $n refusals"
