#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_unpack.sh - small files that unpack to large ones: declared sizes are judged before
# anything is unpacked, others stop at the limit
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

# Zeros, at the least size that they can have: one block after a full flush, again and again.
"$PYTHON" - <<'PY'
import functools, gzip, random, struct, zlib
MIB = 1 << 20
zero = bytes(MIB)
good = b"P6\n8 8\n255\n" + bytes(range(192))


@functools.cache
def zeros(mib):
    pack = zlib.compressobj(9, zlib.DEFLATED, -15)
    for _ in range(2):  # the second one stands for itself
        block = pack.compress(bytes(MIB)) + pack.flush(zlib.Z_FULL_FLUSH)
    crc = 0
    for _ in range(mib):
        crc = zlib.crc32(zero, crc)
    return block * mib + b"\3\0", crc, mib * MIB


def plain(data):
    return zlib.compress(data)[2:-4], zlib.crc32(data), len(data)


def archive(name, members):
    data = directory = b""
    for path, (packed, crc, size) in members:
        directory += struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 8, 0, 0, crc, len(packed), size, len(path),
                                 0, 0, 0, 0, 0, len(data)) + path.encode()
        data += struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 8, 0, 0, crc, len(packed), size, len(path), 0)
        data += path.encode() + packed
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, len(members), len(members), len(directory), len(data), 0)
    open(name, "wb").write(data + directory + end)


archive("member.zip", [("a/0.ppm", plain(good)), ("a/bomb.png", zeros(3000)), ("b/1.ppm", plain(good))])
archive("last.zip", [("a/0.ppm", plain(good)), ("b/bomb.png", zeros(1025))])
archive("sum.zip", [("a/0.ppm", plain(good)), ("a/1.png", zeros(600)), ("b/2.png", zeros(600))])
packed, crc, size = zeros(1025)
frame = b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + packed
open("says.bin.gz", "wb").write(frame + struct.pack("<II", crc, size))
# Its last member is small, so its end says nothing of the first one.
open("mute.bin.gz", "wb").write(frame + struct.pack("<II", crc, size) + gzip.compress(b"x"))
open("small.bin.gz", "wb").write(gzip.compress(bytes(100 * MIB)))
# Of one length: a mebibyte of noise, and more zeros, with a comment in front of them.
noise = gzip.compress(random.Random(1).randbytes(MIB))
packed, crc, size = zeros(100)
tail = packed + struct.pack("<II", crc, size)
open("then.gz", "wb").write(noise)
open("now.gz", "wb").write(b"\x1f\x8b\x08\x10\0\0\0\0\0\xff" + b"c" * (len(noise) - len(tail) - 11) + b"\0" + tail)
PY
[ "$(stat -c %s member.zip)" -lt 3200000 ] || die "not a small file"

# What a command has written to unnamed files, in KiB: negative control and measure in one.  While
# it is loaded it has its libraries open, too, and some are larger than what it may write.
on_disk() {
	local least=0 pid used
	"$@" >out 2>err </dev/null &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		sleep 0.02
		used=$(find "/proc/$pid/fd" -lname '*(deleted)' -exec stat -Lc %b {} + 2>/dev/null | sort -n | tail -n 1)
		[ "${used:-0}" -le "$least" ] || least=$used
	done
	wait "$pid" || true
	echo $((least / 2))
}

# ---- a member that can be no input is not unpacked; the others are ----

ARGS=(--resize 8 --crop 8 -q)
run 0 "$PACK" images member.zip -o ds --resize 8 --crop 8 --on-error skip
said "shardpack: ./member.zip: 'a/bomb.png' says that it has 3145728000 bytes, and the limit of an input is \
1073741824; not unpacked"
said "shardpack: ./member.zip: unpacked once; uses 406 B on disk until this command ends"
said "shardpack: warning: ./member.zip/a/bomb.png: has 3145728000 bytes; the limit is 1073741824"
said "shardpack: 3 inputs = 2 written + 1 skipped + 0 quarantined + 0 failed"
run 1 "$PACK" images member.zip -o failed "${ARGS[@]}"
run 0 "$PACK" images last.zip -o last "${ARGS[@]}" --on-error skip

# A plan that is built later leaves the same hole.
run 0 "$PACK" plan images member.zip -o planned "${ARGS[@]}" --on-error skip
run 0 "$PACK" build planned -q -j 3
run 0 "$PACK" seal planned -q
same ds planned

# ---- declared sizes ----

# An archive that is refused is bad input like any other.
run 1 "$PACK" images sum.zip -o no "${ARGS[@]}"
said "shardpack: ./sum.zip: has $(stat -c %s sum.zip) bytes and says that it unpacks to 1258291403 \
(1.2 GiB); the limit \
is 1073741824; if you trust it, give --limit unpack=1258291403"
run 1 "$PACK" images member.zip -o no "${ARGS[@]}" --limit unpack=405
said "shardpack: ./member.zip: has $(stat -c %s member.zip) bytes and says that it unpacks to 406 (406 B); the limit \
is 405; if you trust it, give --limit unpack=406"
rm -rf no
VERB=(raw) ARGS=(--schema 'x:u8[1048576]' -q)
refused 1 "./says.bin.gz: has $(stat -c %s says.bin.gz) bytes and says that it unpacks to 1074790400 (1.0 GiB); the \
limit is 1073741824; if it is not cut short and you trust it, give --limit unpack=1074790400" says.bin.gz

# ---- sizes that are not declared ----

refused 1 "./mute.bin.gz: has $(stat -c %s mute.bin.gz) bytes and unpacks to more than 1048576; that is its limit; \
if you trust it, give --limit unpack=SIZE" mute.bin.gz --limit unpack=1M
refused 1 "./small.bin.gz: has $(stat -c %s small.bin.gz) bytes and says that it unpacks to 104857600 (100.0 MiB); the \
limit is 104857599; if it is not cut short and you trust it, give --limit unpack=104857600" small.bin.gz \
	--limit unpack=104857599
run 0 "$PACK" raw small.bin.gz -o small "${ARGS[@]}" --limit unpack=100M

# All arrays of a file count together.
"$PYTHON" -c 'import numpy as np; np.savez_compressed("two.npz", **{n: np.zeros((1000, 1000), "u1") for n in "xy"})'
VERB=(array) ARGS=(-q)
refused 1 "./two.npz: has $(stat -c %s two.npz) bytes and says that it unpacks to 2000256 (1.9 MiB); the limit is \
2000255; if you trust it, give --limit unpack=2000256" two.npz --limit unpack=2000255
run 0 "$PACK" array two.npz -o two -q --limit unpack=2000256

# ---- what a plan has is the limit of its build ----

cp then.gz later.bin.gz
run 0 "$PACK" plan raw later.bin.gz -o grown --schema 'x:u8[1024]' -q
cp now.gz later.bin.gz
run 5 "$PACK" build grown -q
said "shardpack: $PWD/later.bin.gz: has $(stat -c %s later.bin.gz) bytes and unpacks to more than 1048576; that is \
what it had when the plan was made"

# ---- usage ----

run 2 "$PACK" raw small.bin.gz -o no --schema 'x:u8[1048576]' --limit pixels=9
[ "$(head -n 1 err)" = "shardpack: --limit pixels=9: must be unpack=SIZE, such as unpack=20G; the other limits are \
those of images" ] || die "$(cat err)"

# ---- a refused file writes next to nothing to disk; a control shows that writing is seen ----

[ "$(on_disk "$PACK" images sum.zip -o no --resize 8 --crop 8)" -lt 1024 ] || die "it was unpacked: $(cat err)"
[ "$(on_disk "$PACK" raw small.bin.gz -o seen --schema 'x:u8[1048576]')" -gt 50000 ] ||
	die "the measure sees nothing: $(cat err)"
echo "$n refusals"
