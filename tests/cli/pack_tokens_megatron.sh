#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_tokens_megatron.sh - Megatron-LM's .bin with its .idx: every type, documents of
# many sequences, several files, and indices that are wrong, each in one place
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
export PYTHONPATH=$ROOT/tests/cli

cat >megatron.py <<'PY'
import struct
import numpy as np

CODES = {"|u1": 1, "|i1": 2, "<i2": 3, "<i4": 4, "<i8": 5, "<u2": 8}

def write(name, docs, dtype, **wrong):
    """Documents are lists of sequences; `wrong` puts other bytes in the place of a part."""
    sequences = [np.asarray(s, dtype) for d in docs for s in d]
    sizes = np.array([len(s) for s in sequences], "<i4")
    begins = np.cumsum(np.append(0, sizes[:-1])).astype("<i8")[:len(sizes)] * np.dtype(dtype).itemsize
    bounds = np.cumsum([0] + [len(d) for d in docs]).astype("<i8")
    parts = {"magic": b"MMIDIDX\0\0", "version": struct.pack("<Q", 1), "code": bytes([CODES[np.dtype(dtype).str]]),
             "sequences": struct.pack("<Q", len(sizes)), "bounds": struct.pack("<Q", len(bounds)),
             "sizes": sizes.tobytes(), "begins": begins.tobytes(), "documents": bounds.tobytes(), "more": b""}
    parts.update(wrong)
    open(name + ".idx", "wb").write(b"".join(parts.values()))
    open(name + ".bin", "wb").write(b"".join(s.tobytes() for s in sequences))
PY

"$PYTHON" - <<'PY'
import json, struct
import numpy as np
import megatron

rng = np.random.RandomState(11)
def documents(most, counts=(2, 1, 0, 3, 1), lengths=(1, 2, 9, 10, 11, 40, 0)):
    return [[rng.randint(0, most, rng.choice(lengths)) for _ in range(n)] for n in counts]
for dtype, most in ("|u1", 256), ("|i1", 128), ("<i2", 32768), ("<u2", 65536), ("<i4", 151936), ("<i8", 151936):
    docs = documents(most, rng.randint(0, 4, 30))
    megatron.write("t" + dtype[1:], docs, dtype)
    json.dump([[int(v) for s in d for v in s] for d in docs], open("t" + dtype[1:] + ".json", "w"))

good = [[[5, 6, 7]], [[1, 2, 3, 4], [8]], [[9, 9]]]  # 4 sequences: 12, 16, 4 and 8 bytes
q = lambda *v: struct.pack(f"<{len(v)}q", *v)
i = lambda *v: struct.pack(f"<{len(v)}i", *v)
megatron.write("good", good, "<i4")
for name, wrong in {
    "version": {"version": q(2)}, "code": {"code": b"\x09"}, "zero": {"bounds": q(0), "documents": b""},
    "huge": {"sequences": struct.pack("<Q", 2**63)}, "cut": {"documents": q(0, 1, 3)}, "long": {"more": b"12345"},
    "modes": {"more": b"\0\0\0\0"}, "length": {"sizes": i(3, -4, 1, 2)}, "begin": {"begins": q(0, 12, 24, 32)},
    "past": {"sizes": i(3, 4, 1, 3)}, "less": {"sizes": i(3, 4, 1, 1)}, "first": {"documents": q(1, 1, 3, 4)},
    "back": {"documents": q(0, 3, 1, 4)}, "over": {"documents": q(0, 1, 3, 5)}, "short": {"documents": q(0, 1, 3, 3)},
}.items():
    megatron.write(name, good, "<i4", **wrong)
megatron.write("minus", [[[5, 6, 7], [8, -1]]], "<i4")
megatron.write("minus8", [[[5, -3]]], "|i1")
megatron.write("wide", [[[5, 2**32 - 1], [2**32]]], "<i8")
megatron.write("fits", [[[5, 2**32 - 1]]], "<i8")
megatron.write("empty", [], "<i4")
np.arange(300).astype("<u2").tofile("bare.bin")
PY

# ---- documents are those of the index, of every type ----

for t in u1 i1 i2 u2 i4 i8; do
	run 0 "$PACK" tokens t$t.bin -o "ds.$t" --seq-len 10 --order source -q
	run 0 "$CAT" verify "ds.$t"
done
run 0 "$PACK" tokens ti4.bin ti8.bin -o both --seq-len 10 --order source -q
run 0 "$PACK" tokens ti8.bin -o mixed --seq-len 10 --shard-records 7 -q -j 3
run 0 "$PACK" tokens ti8.bin -o mixed.1 --seq-len 10 --shard-records 7 -q -j 1
same mixed mixed.1
run 0 "$PACK" plan tokens ti8.bin -o planned --seq-len 10 --shard-records 7 -q
for part in 1/2 0/2; do
	run 0 "$PACK" build planned --part $part -q
done
run 0 "$PACK" seal planned -q
same mixed planned
run 0 "$PACK" tokens fits.bin -o fits --seq-len 10 -q
"$PYTHON" - <<'PY'
import json
import numpy as np, records

def cut(documents, n, step):
    rows, lengths = [], []
    for d in documents:
        at = 0
        while len(d) - at >= 2:
            row = d[at:at + n]
            rows.append(row + [0] * (n - len(row)))
            lengths.append(len(row))
            if at + n >= len(d):
                break
            at += step
    return rows, lengths

everything = []
for t, dtype in ("u1", "<u2"), ("i1", "<u2"), ("i2", "<u2"), ("u2", "<u2"), ("i4", "<u4"), ("i8", "<u4"):
    documents = json.load(open(f"t{t}.json"))
    rows, lengths = cut(documents, 11, 10)
    got = records.read("ds." + t)
    records.same(got["tokens"], np.array(rows, dtype), t)
    records.same(got["length"].ravel(), np.array(lengths, "<u4"), t + " lengths")
    everything += documents if t in ("i4", "i8") else []
records.same(records.read("both")["tokens"], np.array(cut(everything, 11, 10)[0], "<u4"), "two files")
records.same(records.read("fits")["tokens"][0][:2], np.array([5, 2**32 - 1], "<u4"), "the largest token")
PY

# ---- refused ----

VERB=(tokens) ARGS=(--seq-len 4)
run 0 "$PACK" tokens good.bin -o good --seq-len 4 -q # the control
refused 1 "./version.idx: an index of version 2; 1 is known" version.bin
refused 1 "./code.idx: tokens of type 9 (6 and 7 are floats); must be integers: 1 to 5, or 8" code.bin
refused 1 "./zero.idx: 4 sequences and 0 bounds of documents cannot be" zero.bin
refused 1 "./huge.idx: 9223372036854775808 sequences and 4 bounds of documents cannot be" huge.bin
refused 1 "./cut.idx: has 106 bytes, but an index of 4 sequences and 3 documents has 114; it is cut short" cut.bin
refused 1 "./long.idx: has 119 bytes, but an index of 4 sequences and 3 documents has 114; it is longer than it \
should be" long.bin
refused 1 "./modes.idx: an index of sequences with modes, of a multimodal dataset; these are not read" modes.bin
refused 1 "./length.idx: sequence 1 has -4 tokens" length.bin
refused 1 "./begin.idx: sequence 2 begins at byte 24, but those before it end at byte 28" begin.bin
refused 1 "./past.idx: sequence 3 ends at token 11, but the .bin beside it has 10; it is cut short, or of another \
index" past.bin
refused 1 "./less.idx: its sequences have 9 tokens, but the .bin beside it has 10; it is longer than it should be, \
or of another index" less.bin
refused 1 "./first.idx: the first document begins with sequence 1; must be 0" first.bin
refused 1 "./back.idx: document 1 ends before sequence 1; must be 3 to 4" back.bin
refused 1 "./over.idx: document 2 ends before sequence 5; must be 3 to 4" over.bin
refused 1 "./short.idx: its documents end before sequence 3 of 4; each sequence must be in a document" short.bin
refused 1 "./minus.bin: token 4, at offset 16, is -1; tokens must be 0 to 4294967295" minus.bin
run 1 "$PACK" tokens minus.bin -o no --seq-len 4 --dtype u32
said "shardpack: ./minus.bin: token 4, at offset 16, is -1; tokens must be 0 to 4294967295"
refused 1 "./minus8.bin: token 1, at offset 1, is -3; tokens must be 0 to 65535" minus8.bin
refused 1 "./wide.bin: token 2, at offset 16, is 4294967296; tokens must be 0 to 4294967295" wide.bin
refused 1 "./bare.bin: has no Megatron-LM index beside it, but the files before have one; pack them apart" tu2.bin \
	bare.bin
refused 1 "./empty.bin: no sequence of 5 tokens in it; give a smaller --seq-len" empty.bin
truncate -s -4 good.bin
refused 1 "./good.idx: sequence 3 ends at token 10, but the .bin beside it has 9; it is cut short, or of another \
index" good.bin
echo "six types; $n refusals"
