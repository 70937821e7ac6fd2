#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_bzip2_xz.sh - tars that bzip2 and xz packed, and padding behind them and behind
# gzip: the records are those of the tar, and damage is called by its name
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
needs_part unpack_archive "libarchive (Debian: libarchive-dev)"

small_source 3
tar --sort=name -C src -cf a.tar a b
"$PYTHON" - <<'PY'
import bz2, gzip, lzma, random
tar = open("a.tar", "rb").read()
half = len(tar) // 2
for name, pack in ("bz2", bz2.compress), ("xz", lzma.compress), ("gz", lambda data: gzip.compress(data, 6)):
    whole, two = pack(tar), pack(tar[:half]) + pack(tar[half:])
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 16
    files = {"good": whole, "two": two, "padded": whole + bytes(10240), "tail": whole + b"tail" + bytes(8),
             "half": whole[:len(whole) // 2], "bits": bytes(flipped), "plain": tar, "empty": b"", "none": pack(b"")}
    if name == "gz":
        files["between"] = pack(tar[:half]) + bytes(512) + pack(tar[half:])
    for what, data in files.items():
        open("%s.tar.%s" % (what, name), "wb").write(data)
    for cut in range(1, len(whole) - 24, len(whole) // 40):
        open("cut%05d.tar.%s" % (cut, name), "wb").write(whole[:-cut])
noise = random.Random(5).randbytes(4096)
lzma_64 = lzma.compress(bytes(64 << 20), filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 16}])
open("large.bin.xz", "wb").write(lzma_64)
open("noise.bin", "wb").write(noise)
for name, pack in ("bz2", bz2.compress), ("xz", lzma.compress):
    open("noise.bin." + name, "wb").write(pack(noise))
PY
cp good.tar.bz2 x.tbz2 && cp good.tar.bz2 x.TBZ && cp good.tar.xz x.txz
ARGS=(--resize 32 -q)

# ---- the same records ----

run 0 "$PACK" images a.tar -o plain "${ARGS[@]}"
run 0 "$CAT" get plain 3 --field image --png --out plain.png
for f in good.tar.{bz2,xz} two.tar.{bz2,xz,gz} padded.tar.{bz2,xz,gz} between.tar.gz x.tbz2 x.TBZ x.txz; do
	rm -rf ds
	run 0 "$PACK" images "$f" -o ds "${ARGS[@]}"
	run 0 "$CAT" get ds 3 --field image --png --out got.png
	cmp -s plain.png got.png || die "$f: other pixels than those of the tar"
	grep -q '^records   6 ' <("$CAT" info ds) || die "$f: $("$CAT" info ds)"
done
run 0 "$PACK" plan images good.tar.xz -o parts "${ARGS[@]}" --shard-records 2
grep -q '^unpack 1 [0-9]* 0 xz$' parts/.shardpack/plan || die "$(grep -a ^unpack parts/.shardpack/plan)"
for k in 0 1 2; do run 0 "$PACK" build parts --part $k/3 -q; done
run 0 "$PACK" seal parts -q
run 0 "$PACK" images good.tar.xz -o whole "${ARGS[@]}" --shard-records 2 -j 1
same parts whole
run 0 "$PACK" raw noise.bin -o raw --schema 'x:u8[64]' -q --order source
for e in bz2 xz; do
	run 0 "$PACK" raw noise.bin.$e -o raw.$e --schema 'x:u8[64]' -q --order source
	for i in 0 63; do
		[ "$("$CAT" get raw $i --field x | tail -n 1)" = "$("$CAT" get raw.$e $i --field x | tail -n 1)" ] ||
			die "$e: another record $i"
	done
done

# ---- damage ----

bad() { # bad FILE SENTENCE
	local bytes
	bytes=$(stat -c %s "$1")
	run 1 "$PACK" images "$1" -o no "${ARGS[@]}"
	said "shardpack: ./$1: $2 near offset ${3-$bytes} of $bytes; the file is damaged, fetch it again"
	[ ! -e no/dataset.manifest ] || die "$1 is packed"
	rm -rf no
	n=$((n + 1))
}
early="the compressed data end early,"
for e in bz2 xz; do
	for f in cut*.tar.$e half.tar.$e; do
		bad "$f" "$early"
	done
	bad empty.tar.$e "it unpacks to nothing, or is damaged at its beginning,"
	bad none.tar.$e "it unpacks to nothing, or is damaged at its beginning,"
	run 1 "$PACK" images plain.tar.$e -o no "${ARGS[@]}"
	said "shardpack: ./plain.tar.$e: is a tar that is not compressed, although its name says so; rename it so that \
it ends in .tar"
	gzip -c plain.tar.$e >other.tar.$e
	bad other.tar.$e "it does not begin as its name says,"
done
bad bits.tar.bz2 "bzip decompression failed"
bad bits.tar.xz "Corrupted input data"
bad tail.tar.bz2 "there are bytes behind the end of the compressed data," "$(stat -c %s good.tar.bz2)"
bad tail.tar.xz "Corrupted input data"
bad half.tar.gz "$early"
bad tail.tar.gz "incorrect header check"

# ---- the size that an xz says, before anything is unpacked ----

run 1 "$PACK" raw large.bin.xz -o no --schema 'x:u8[1024]' -q --limit unpack=1M
said_only "shardpack: ./large.bin.xz: has $(stat -c %s large.bin.xz) bytes and says that it unpacks to 67108864 \
(64.0 MiB); the limit is 1048576; if you trust it, give --limit unpack=67108864"

# ---- the memory that an xz asks for: of any block, whatever is before it ----

"$PYTHON" - <<'PY'
import lzma, random, struct, zlib
noise = open("noise.bin", "rb").read()
LZMA2, X86, DELTA = lzma.FILTER_LZMA2, lzma.FILTER_X86, lzma.FILTER_DELTA


def pack(data, size, check=-1, before=()):
    return lzma.compress(data, check=check, filters=[*before, {"id": LZMA2, "dict_size": size}])


def asking(data, byte):  # the same, but with this byte for the size of the dictionary
    xz = bytearray(pack(data, 4096))
    xz[16] = byte
    xz[20:24] = struct.pack("<I", zlib.crc32(xz[12:20]))
    return bytes(xz)


mixed = noise + bytes(300000) + random.Random(8).randbytes(200000) + b"ab" * 70000
delta, x86 = {"id": DELTA, "dist": 4}, {"id": X86}
good = pack(mixed, 1 << 20) + bytes(8) + pack(noise, 3 << 19, lzma.CHECK_NONE, [delta])
good += pack(b"", 4096) + bytes(4)
good += pack(mixed, 1 << 16, lzma.CHECK_SHA256, [x86, delta]) + asking(noise, 32)
open("demand.xz", "wb").write(good)
open("demand.bin", "wb").write(mixed + noise + mixed + noise)
open("first.xz", "wb").write(asking(noise, 37))
open("later.xz", "wb").write(good + asking(noise, 33))
PY
{ xz -k -c --block-size=100000 -T2 demand.bin && xz -c -0 --check=none demand.bin; } >blocks.xz
cat demand.bin demand.bin >blocks.bin
for f in demand blocks; do
	run 0 "$PACK" raw $f.xz -o ds.$f --schema 'x:u8[64]' -q --order source
	PYTHONPATH=$ROOT/tests/cli "$PYTHON" -c 'import records, sys
got, want = records.read("ds." + sys.argv[1])["x"].tobytes(), open(sys.argv[1] + ".bin", "rb").read()
assert got == want[:len(got)] and len(want) - len(got) < 64' $f
done
VERB=(raw) ARGS=(--schema 'x:u8[64]' -q)
refused 1 "./first.xz: to unpack it takes a dictionary of 1.5 GiB (1610612736 bytes); the limit is 268435456; pack \
it with xz -9 or less, or unpack it with xz -d" first.xz
refused 1 "./later.xz: to unpack it takes a dictionary of 384.0 MiB (402653184 bytes); the limit is 268435456; pack \
it with xz -9 or less, or unpack it with xz -d" later.xz
if command -v zstd >/dev/null; then
	head -c 200000000 /dev/zero | zstd -q --long=28 >wide.zst
	refused 1 "./wide.zst: to unpack it takes a window above 128 MiB, the limit; pack it with zstd --long=27 or \
less, or unpack it with zstd -d --long=31" wide.zst
fi

# ---- a build without libarchive ----

without_pack ARCHIVE tools/shardpack/input/unpack.c
for e in bz2:bzip2 xz:xz; do
	run 4 ./without raw noise.bin.${e%:*} -o no --schema 'x:u8[64]' -q
	said_only "shardpack: ./noise.bin.${e%:*}: is compressed with ${e#*:}, and this shardpack was built without \
libarchive; install that and build again, use the shardpack of libshard's wheel, or unpack the file with ${e#*:} -d"
done
rm -rf ds
run 0 ./without images good.tar.gz -o ds --resize 32 -q
echo "$n damaged files, 13 good ones"
