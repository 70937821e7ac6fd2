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
	said "shardpack: warning: 7 tokens are in no record: a sequence is not filled at the end of their file"
	said "shardpack: 62 inputs = 62 written + 0 skipped + 0 quarantined + 0 failed"
done
run 0 "$PACK" tokens a.bin b.bin -o two --seq-len 16 --order source --report two.json -q
run 0 "$PACK" tokens a.bin -o overlap --seq-len 16 --overlap 5 --order source -j 3 -q
run 0 "$PACK" tokens wide.bin -o wide --dtype u32 --seq-len 299 --order source -q
run 0 "$PACK" tokens wide.llm -o wide2 --seq-len 7 --order source -q
run 0 "$PACK" tokens long.npy -o long --seq-len 100 --order source -q
run 0 "$PACK" tokens docs.bin -o docs --seq-len 10 --documents 99 --order source
said "shardpack: warning: 1 token is in no record: a sequence is not filled, or a document has one token"
! grep -q "this token ends no document" err || die "documents are there: $(cat err)"
# A token that is not that of the tokenizer is said: all documents run into each other.
for pack in '' --pack; do
	# shellcheck disable=SC2086
	run 0 "$PACK" tokens docs.bin -o docs.wrong --seq-len 10 --documents 60000 $pack
	said "shardpack: warning: --documents 60000: this token ends no document within a file, so each file is one; \
if that is wrong, give the tokenizer's own token"
	rm -r docs.wrong
done
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

# ---- no path packs a negative token, or an end that the type cannot hold ----

"$PYTHON" - <<'PY'
import numpy as np
for dtype in "i1", "<i2", ">i2", "<i4", ">i8", "<i8":
    tokens = np.full(200, 5, dtype)
    tokens[::40] = 7
    np.save(f"good.{dtype[-2:]}.npy", tokens) # the control
    tokens[150] = -3
    np.save(f"minus.{'be' if dtype[0] == '>' else 'le'}.{dtype[-2:]}.npy", tokens)
np.save("high.u8.npy", np.array([7] * 199 + [2**63 + 5], "<u8"))
PY
for way in '' '--overlap 3' '--documents 7' '--documents 7 --overlap 3' '--documents 7 --pack'; do
	# shellcheck disable=SC2086
	for file in "le.i1 278 127 65535" "le.i2 428 32767 65535" "be.i2 428 32767 65535" \
		"le.i4 728 2147483647 4294967295" "le.i8 1328 9223372036854775807 4294967295" \
		"be.i8 1328 9223372036854775807 4294967295"; do
		read -r name offset most packed <<<"$file"
		[ "${way##*--pack}" = "$way" ] || most=$packed
		run 1 "$PACK" tokens minus.$name.npy -o no --seq-len 16 $way
		said_only "shardpack: ./minus.$name.npy: token 150, at offset $offset, is -3; tokens must be 0 to $most"
		run 0 "$PACK" tokens good.${name#*.}.npy -o no --seq-len 16 $way -q
		rm -r no
	done
	[ "${way##*--pack}" = "$way" ] && most=9223372036854775807 || most=4294967295
	# shellcheck disable=SC2086
	refused 1 "./high.u8.npy: token 199, at offset 1720, is 9223372036854775813; tokens must be 0 to $most" \
		high.u8.npy $way
done
for file in "i1 200 i8" "i2 40000 i16" "i4 3000000000 i32"; do
	read -r name token type <<<"$file"
	for pack in '' --pack; do
		# shellcheck disable=SC2086
		refused 2 "./good.$name.npy: --documents $token does not fit $type, so no document would end" \
			good.$name.npy --documents $token $pack
	done
done

# ---- a file without a head whose tokens have other bits than 16 ----

"$PYTHON" - <<'PY'
import numpy as np

rng = np.random.RandomState(4)
def save(name, values, dtype):
    np.asarray(values).astype(dtype).tofile(name)
save("u32.bin", rng.randint(0, 50257, 4000), "<u4") # every second number is 0
save("u32.large.bin", rng.randint(60000, 151936, 4000), "<u4") # or 1, or 2: none of them most
save("u32.shift.bin", rng.randint(0, 50257, 4000) << 16 | 7, "<u4") # the other ones are 7
save("i64.bin", rng.randint(0, 151936, 4000), "<i8")
for bits in 4, 8: # labels, of which every tenth or second is padding
    save(f"i{8 * bits}.tenth.bin", np.where(rng.rand(4000) < 0.1, -100, rng.randint(0, 50257, 4000)), f"<i{bits}")
    save(f"i{8 * bits}.half.bin", np.where(rng.rand(4000) < 0.5, -1, rng.randint(0, 50257, 4000)), f"<i{bits}")
save("pads.bin", np.where(np.arange(4000) < 3900, 50256, rng.randint(0, 50257, 4000)), "<u2")
save("letters.bin", rng.randint(0, 5, 4000), "<u2") # a small vocabulary
save("u16.bin", rng.randint(0, 50257, 4000), "<u2")
half = rng.randint(0, 50257, 4000).astype("<u2")
half[1::2][:1880] = 0 # 94 %
half.tofile("94.bin")
half[1::2][1880:1900] = 0 # 95 %
half.tofile("95.bin")
save("tiny.bin", rng.randint(0, 50257, 7), "<u4")
save("eight.bin", rng.randint(1, 50257, 8), "<u4")
wide = rng.randint(0, 50257, 5 << 20).astype("<u2") # 10 MiB of which 4 are looked at
wide[150001::2] = 0 # the first 300 kB are good
wide.tofile("late.bin")
PY
said16="or --dtype u16 if they have 16"
equal() { # equal FILE PERCENT NUMBER
	refused 1 "./$1: $2% of every second 16-bit number are $3, so its tokens seem to have 32 bits; \
type --dtype u32, $said16" "$1" -q
}
equal u32.bin 100 0
equal u32.shift.bin 100 7
equal pads.bin 97 50256
equal 95.bin 95 0
equal eight.bin 100 0
gzip -k u32.bin
equal u32.bin.gz 100 0
refused 1 "./u32.large.bin: every second 16-bit number is below 16 or is 65535, so its tokens seem to have 32 bits; \
type --dtype u32, $said16" u32.large.bin
refused 1 "./i64.bin: three of four 16-bit numbers hardly change, so its tokens seem to have 64 bits; save them as \
.npy, or type --dtype u16 if they have 16" i64.bin
for f in i32.tenth.bin i32.half.bin i64.tenth.bin i64.half.bin; do
	run 1 "$PACK" tokens $f -o no --seq-len 16
	grep -q "^shardpack: ./$f: .* seem to have ${f:1:2} bits" err || die "$(cat err)"
done
run 1 "$PACK" tokens late.bin -o no --seq-len 16
grep -q "^shardpack: ./late.bin: .* seem to have 32 bits" err || die "$(cat err)"
for f in letters.bin u16.bin 94.bin tiny.bin; do
	run 0 "$PACK" tokens $f -o "like.$f" --seq-len 4
	! grep "seem to have" err || die "$f is no file of 32 bits"
done
# Whatever the user says is done, with a word if it looks wrong.
for said in "u32.bin u16 32" "u32.large.bin u16 32" "i64.bin u32 64" "u16.bin u32 16" "u32.bin u32" "u16.bin u16" \
	"letters.bin u16"; do
	read -r f type bits <<<"$said"
	rm -rf asked
	run 0 "$PACK" tokens "$f" -o asked --dtype "$type" --seq-len 16
	if [ "$bits" ]; then
		said "shardpack: warning: ./$f: --dtype $type, but its tokens seem to have $bits bits; look at a record"
	else
		! grep "seem to have" err || die "$f has the bits that were said"
	fi
done
# ---- bytes, big-endian numbers, floats, and files of another kind ----

"$PYTHON" - <<'PY'
import gzip, pickle, random
import numpy as np

rng = np.random.RandomState(6)
random.seed(6)
def save(name, values, dtype="<u2"):
    np.asarray(values).astype(dtype).tofile(name)
weights = 1 / np.arange(1, 50258)
ids = rng.choice(50257, 4000, p=weights / weights.sum()) # as frequent as words are
save("words.bin", ids)
save("words.be.bin", ids, ">u2")
save("flat.be.bin", rng.randint(0, 50257, 4000), ">u2")
save("few.be.bin", rng.randint(0, 300, 4000), ">u2")
save("padded.bin", np.where(rng.rand(4000) < 0.8, 0, ids)) # not bytes that are alike, for their zeros
# Above what nearly all are with their bytes swapped: a tenth of 4000 numbers, and one fewer.
for above in 400, 399:
    save(f"above{above}.bin", [0] * 1000 + [1 + i % 250 + 256 * (i % 63) for i in range(4000 - above)] +
         [65280 + i % 200 for i in range(above)])
save("padded.be.bin", np.where(rng.rand(4000) < 0.8, 0, ids), ">u2")
save("u32.be.bin", ids, ">u4")
save("u32.large.be.bin", rng.randint(60000, 151936, 4000), ">u4")
save("i64.be.bin", ids, ">i8")
save("i64.pads.be.bin", np.where(rng.rand(4000) < 0.3, -100, ids), ">i8")
save("dna.bin", rng.choice(list(b"ACGT"), 8000), "u1")
save("dna4.bin", rng.randint(0, 4, 8000), "u1")
save("pixels.bin", np.where(rng.rand(60000) < 0.8, 0, rng.randint(0, 256, 60000)), "u1")
open("english.bin", "wb").write(b"The quick brown fox jumps over the lazy dog.\n" * 40)
pangram = "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich; съешь же ещё\n"
open("utf8.bin", "wb").write(pangram.encode() * 40)
save("noise.bin", rng.randint(0, 256, 200000), "u1")
for bits in 2, 4, 8:
    save(f"f{8 * bits}.bin", rng.randn(4000), f"<f{bits}")
save("probability.bin", rng.rand(4000), "<f4")
save("relu.bin", np.maximum(rng.randn(4000), 0), "<f4")
save("minus.bin", np.where(rng.rand(4000) < 0.3, -100, ids), "<i8") # and then as int16:
save("minus.bin", np.fromfile("minus.bin", "<i8"), "<i2")
save("minus32.bin", np.where(rng.rand(4000) < 0.3, -100, ids), "<i4")
open("packed.bin", "wb").write(gzip.compress(ids.astype("<u2").tobytes()))
open("pickle.bin", "wb").write(pickle.dumps(ids))
np.savez("npz", ids)
import os; os.rename("npz.npz", "npz.bin")
open("table.bin", "wb").write(b"PAR1" + bytes(ids % 256))
PY
npy() {
	echo "save them with numpy.save(\"tokens.npy\", numpy.fromfile(\"tokens.bin\", \">$1\")), or type --dtype u16 \
if they are as they should be"
}
for f in dna english utf8; do
	refused 1 "./$f.bin: its bytes are text, so its tokens seem to have 8 bits; type --dtype u8 for a token of \
each byte, or --dtype u16 if they have 16" $f.bin
done
for f in dna4 pixels; do
	refused 1 "./$f.bin: bytes in even and odd places are alike, so its tokens seem to have 8 bits; type --dtype \
u8, or --dtype u16 if they have 16" $f.bin
done
for f in words.be flat.be few.be padded.be; do
	run 1 "$PACK" tokens $f.bin -o no --seq-len 16
	# Far smaller: by a quarter at least, as numbers below 50257 are of those below 65536.
	read -r swapped plain <<<"$(sed -n 's/.*are at most \([0-9]*\) if .*, and \([0-9]*\) if not,.*/\1 \2/p' err)"
	[ $((4 * swapped)) -lt $((13 * plain / 4)) ] || die "$f: $(cat err)"
	said_only "shardpack: ./$f.bin: nearly all tokens are at most $swapped if their bytes are swapped, and \
$plain if not, so they seem to be big-endian; $(npy u2)"
	[ ! -e no ] || die "made for nothing"
done
refused 1 "./above400.bin: nearly all tokens are at most 63522 if their bytes are swapped, and 65459 if not, so they \
seem to be big-endian; $(npy u2)" above400.bin
run 0 "$PACK" tokens above399.bin -o tenth --seq-len 16
for f in u32.be u32.large.be; do
	refused 1 "./$f.bin: every second 16-bit number is below 16 if its bytes are swapped, so its tokens seem to be \
big-endian, of 32 bits; $(npy u4)" $f.bin
done
for f in i64.be i64.pads.be; do
	refused 1 "./$f.bin: three of four 16-bit numbers hardly change, so its tokens seem to be big-endian, of 64 \
bits; $(npy i8)" $f.bin
done
refused 1 "./noise.bin: all 16-bit numbers are as frequent, as in a file that is compressed, so they do not seem to be \
tokens; unpack it, type --dtype u8 if they have 8 bits, or --dtype u16 if they have 16" noise.bin
for f in "f16 16" "f32 32" "f64 64" "probability 32" "relu 32"; do
	refused 1 "./${f% *}.bin: its numbers seem to be floats of ${f#* } bits, which are not tokens; pack them with \
\`shardpack raw\` or \`shardpack array\`, or type --dtype u16 if they are tokens" "${f% *}.bin"
done
refused 1 "./minus.bin: $(
	"$PYTHON" -c 'import numpy as n; a = n.fromfile("minus.bin", "<i2"); print(int((a == -100).mean() * 100))'
)% of its numbers are 65436, which is -100 if they are signed; tokens are not negative, so leave these out, or type \
--dtype u16 if they are tokens" minus.bin
npy="save its numbers as .npy"
for f in "packed a gzip file;name it .gz, so that it is unpacked" "pickle a pickle;$npy" "table a Parquet table;$npy" \
	"npz a ZIP, as .npz and .pt are;$npy"; do
	name=${f%% *} what=${f#* }
	refused 1 "./$name.bin: begins as ${what%;*} does; ${what#*;}, or type --dtype u16 if its bytes are tokens" \
		$name.bin
	run 0 "$PACK" tokens $name.bin -o forced --seq-len 16 --dtype u8
	said "shardpack: warning: ./$name.bin: --dtype u8, but it begins as ${what%;*} does; look at a record"
	run 0 "$PACK" raw $name.bin -o forced.raw --schema x:u8
	said "shardpack: warning: ./$name.bin: begins as ${what%;*} does, and its bytes are taken for records; \
look at one"
	rm -r forced forced.raw
done
for f in words padded; do
	run 0 "$PACK" tokens $f.bin -o plain --seq-len 16 --replace
	! grep "seem to" err || die "$f is a file of 16 bits"
done
# What is said is done, with a word if it looks wrong.
for said in "words.be u16 to be big-endian, of 16 bits" "u32.be u32 to be big-endian, of 32 bits" \
	"words u8 to have 16 bits" "dna u16 to have 8 bits" "i64 u8 to have 64 bits" "dna u8" "dna4 u8" "pixels u8" \
	"noise u8" "words u16"; do
	read -r f type what <<<"$said"
	rm -rf asked
	run 0 "$PACK" tokens "$f.bin" -o asked --dtype "$type" --seq-len 16
	if [ "$what" ]; then
		said "shardpack: warning: ./$f.bin: --dtype $type, but its tokens seem $what; look at a record"
	else
		! grep "seem to" err || die "$f is what was said"
	fi
done
run 0 "$PACK" tokens f32.bin -o floats --dtype u32 --seq-len 16
said "shardpack: warning: ./f32.bin: --dtype u32, but its numbers seem to be floats of 32 bits; look at a record"
run 0 "$PACK" tokens minus32.bin -o minus32 --dtype u32 --seq-len 16
said "shardpack: warning: ./minus32.bin: --dtype u32, but some of its numbers are above 2^32 - 65536, so negative if \
they are signed; look at a record"

# ---- tokens of 8 bits ----

"$PYTHON" - <<'PY'
import numpy as np
np.save("bytes.npy", np.fromfile("english.bin", "u1"))
PY
run 0 "$PACK" tokens english.bin -o bytes --dtype u8 --seq-len 16 --order source -q
run 0 "$PACK" tokens bytes.npy -o bytes.npy.ds --seq-len 16 --order source -q
run 0 "$PACK" tokens english.bin -o bytes.lines --dtype u8 --seq-len 16 --documents 10 --order source -q
run 0 "$PACK" tokens english.bin -o bytes.pack --dtype u8 --seq-len 100 --documents 10 --pack -q --position-ids
run 0 "$PACK" tokens bytes.npy -o bytes.pack.npy --dtype u8 --seq-len 100 --documents 10 --pack -q --position-ids
run 0 "$PACK" tokens bytes.npy -o bytes.pack.16 --seq-len 100 --documents 10 --pack -q
run 0 "$PACK" plan tokens english.bin -o bytes.plan --dtype u8 --seq-len 100 --documents 10 --pack -q --position-ids
run 0 "$PACK" build bytes.plan -q
run 0 "$PACK" seal bytes.plan -q
same bytes.pack bytes.plan
for ds in bytes bytes.lines bytes.pack bytes.pack.npy; do
	run 0 "$CAT" verify $ds
done
refused 2 "./english.bin: --documents 256 does not fit u8, so no document would end" english.bin --dtype u8 \
	--documents 256
refused 1 "./long.npy: its tokens are i64, as its head says, but --dtype says u8; leave --dtype out" long.npy --dtype u8
"$PYTHON" - <<'PY'
import numpy as np, records
text = np.fromfile("english.bin", "u1")
want = np.array([text[i:i + 17] for i in range(0, len(text) - 16, 16)])
records.same(records.read("bytes")["tokens"], want, "bytes")
records.same(records.read("bytes.npy.ds")["tokens"], want, "bytes of an .npy")
records.same(records.read("bytes.lines")["tokens"][0], text[:17], "a line")
for ds, dtype in ("bytes.pack", "u1"), ("bytes.pack.npy", "u1"), ("bytes.pack.16", "<u2"):
    got = records.read(ds)
    assert got["tokens"].dtype == dtype, (ds, got["tokens"].dtype)
    line = text[:45].tobytes()
    for row, lengths in zip(got["tokens"].astype("u1"), got["doc_lengths"]):
        assert row.tobytes() == (line * (lengths.sum() // 45)).ljust(101, b"\0"), ds
PY

refused 1 "./a.llm: its tokens are u16, as its head says, but --dtype says u32; leave --dtype out" a.llm --dtype u32
refused 1 "./long.npy: its tokens are i64, as its head says, but --dtype says u16; leave --dtype out" long.npy \
	--dtype u16
run 0 "$PACK" tokens a.llm a.bin -o agree --dtype u16 --seq-len 16 -q

# ---- Megatron-LM's .bin, with an index beside it ----

"$PYTHON" - <<'PY'
import struct
import numpy as np

rng = np.random.RandomState(5)
def megatron(name, dtype, code, documents, end=None):
    docs = [np.append(rng.randint(1, 30000, n), [end] * (end is not None)) for n in documents]
    np.concatenate(docs).astype(dtype).tofile(name + ".bin")
    sizes = np.array([len(d) for d in docs], "<i4")
    starts = np.cumsum(np.append(0, sizes[:-1])).astype("<i8") * np.dtype(dtype).itemsize
    head = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(docs), len(docs) + 1)
    bounds = np.arange(len(docs) + 1, dtype="<i8")
    open(name + ".idx", "wb").write(head + sizes.tobytes() + starts.tobytes() + bounds.tobytes())
megatron("meg", "<i4", 4, [100, 40, 160])
megatron("meg16", "<u2", 8, [100, 40, 160], 50256)
megatron("meg64", "<i8", 5, [100, 40, 160])
megatron("megf", "<f4", 7, [100, 40, 160])
open("cut.idx", "wb").write(open("meg.idx", "rb").read()[:20])
open("cut.bin", "wb").write(open("meg.bin", "rb").read())
open("mnist.idx", "wb").write(b"\0\0\x08\x01") # another format of that ending
np.arange(1000).astype("<u2").tofile("mnist.bin")
PY
index="Megatron-LM's index"
refused 1 "./meg.bin: its tokens are i32, as ./meg.idx says, $index, but --dtype says u16; leave --dtype out" meg.bin \
	--dtype u16
refused 1 "./meg64.bin: its tokens are i64, as ./meg64.idx says, $index, but --dtype says u32; leave --dtype out" \
	meg64.bin --dtype u32
refused 1 "./megf.idx: tokens of type 7 (6 and 7 are floats); must be integers: 1 to 5, or 8" megf.bin
refused 1 "./cut.idx: ends at offset 20, within its head of 34 bytes" cut.bin
refused 1 "./meg.idx: is an index of Megatron-LM; name the .bin with the tokens instead" meg.idx
run 0 "$PACK" tokens meg.bin -o meg.ds --dtype u32 --seq-len 99 --order source
said "shardpack: warning: ./meg.bin: packed as one stream: the 3 documents in ./meg.idx, $index, are not kept apart; \
leave --dtype out to keep them apart"
run 0 "$PACK" tokens meg16.bin -o meg16.ds --seq-len 200 --documents 50256 --order source
! grep warning: err || die "the documents are kept apart"
run 0 "$PACK" tokens meg16.bin -o meg16.said --dtype u16 --seq-len 200 --documents 50256 --order source
same meg16.ds meg16.said
refused 1 "./meg16.bin: --documents 7 cuts it into 1, but $index beside it has 3 documents; leave --documents out, or \
rename the index to go by the token" meg16.bin --dtype u16 --documents 7
"$PYTHON" - <<'PY'
import numpy as np, records
tokens = np.fromfile("meg.bin", "<u4")
records.same(records.read("meg.ds")["tokens"], np.array([tokens[i:i + 100] for i in (0, 99, 198)]), "meg")
records.same(records.read("meg16.ds")["length"].ravel(), np.array([101, 41, 161], "<u4"), "lengths of documents")
PY
run 0 "$PACK" tokens mnist.bin -o mnist.ds --seq-len 16 -q
said_only "shardpack: warning: ./mnist.idx: is not an index of Megatron-LM, so nothing of it is read
shardpack: warning: 7 tokens are in no record: a sequence is not filled at the end of their file"
printf 'TNTIDX\0\0' >old.idx && cp mnist.bin old.bin
refused 4 "./old.idx: an index of the Megatron-LM of before 2020, which is not read; make the dataset again with \
preprocess_data.py, or type --dtype for one stream of tokens" old.bin

# ---- too short ----

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
