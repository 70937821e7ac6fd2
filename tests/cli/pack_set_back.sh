#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_set_back.sh - a source whose time was set back after it changed, and a machine with
# an old copy, end with exit code 5 and the name of the file; chmod changes nothing
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

make_sources
mkdir mnist
"$PYTHON" - <<'EOF'
import numpy, struct
open("mnist/t10k-images-idx3-ubyte", "wb").write(struct.pack(">4I", 2051, 40, 28, 28) + bytes(40 * 784))
open("mnist/t10k-labels-idx1-ubyte", "wb").write(struct.pack(">2I", 2049, 40) + bytes(40))
numpy.save("large.npy", numpy.zeros((400, 65536), "u1")) # 25 MiB: more than is read for a fingerprint
EOF
gzip -1 --no-name <images.tar >packed.tar.gz
"$PYTHON" -c 'import shutil; shutil.make_archive("images", "zip", "src")'
cases=0

# set_back FILE [OFFSET]: another byte there, or where it makes another picture, or in an archive
# another time of what is in it; and all times that a program can set are as they were
set_back() {
	cp -p "$1" reference.time
	"$PYTHON" - "$@" <<'EOF'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
at = len(data) - 1
if data[:2] == b"\x1f\x8b":
    at = 5
elif data[:2] == b"PK":
    at = data.index(b"PK\x01\x02") + 12
elif b"\xff\xd9" in data:
    at = data.rindex(b"\xff\xd9") - 3
if len(sys.argv) > 2:
    at = int(sys.argv[2])
data[at] ^= 1
with open(sys.argv[1], "r+b") as f:
    f.write(data)
EOF
	touch -r reference.time "$1"
	if cmp -s "$1" reference.time; then die "$1 did not change"; fi
	[ "$(stat -c '%s %y' "$1")" = "$(stat -c '%s %y' reference.time)" ] || die "the time of $1 changed"
}

# noticed FILE COMMAND...: in a copy, between two parts, and before the same command
noticed() {
	local file=$1 name=${1##*/} words base
	shift
	local command=("$@" --shard-records 10 --order source)
	words="/$name: changed since the plan was made: it has other bytes of the same size"
	rm -rf ds whole copy
	mkdir copy && cp -r src mnist ./*.npy ./*.bin ./*.csv ./*.tar* ./*.zip copy && cp -p "$file" kept
	run 0 "$PACK" "${command[@]}" -o whole -q

	# A machine whose copy is another version, then one whose copy is right.
	run 0 "$PACK" plan "${command[@]}" -o ds -q
	run 0 "$PACK" build ds --part 0/2 -q
	base=copy/$(realpath --relative-to=. "$(cat ds/.shardpack/source)")
	set_back "copy/$file"
	run 5 "$PACK" build ds --part 1/2 --source "$base" --trust-names
	grep -q "$words" err || die "$file: $(cat err)"
	run 5 "$PACK" seal ds
	cp -p kept "copy/$file"
	run 0 "$PACK" build ds --part 1/2 --source "$base" --trust-names -q
	run 0 "$PACK" seal ds -q
	same whole ds

	# With another mode it is no other file.
	rm -rf ds
	run 0 "$PACK" plan "${command[@]}" -o ds -q
	run 0 "$PACK" build ds --part 0/2 -q
	chmod o-r "$file"
	run 0 "$PACK" build ds --part 1/2 -q
	chmod o+r "$file"
	run 0 "$PACK" "${command[@]}" -o ds -q
	same whole ds

	# Set back.
	rm -rf ds
	run 0 "$PACK" plan "${command[@]}" -o ds -q
	run 0 "$PACK" build ds --part 0/2 -q
	set_back "$file"
	for trust in "" --trust-names; do
		run 5 "$PACK" build ds $trust
		grep -q "$words" err || die "$file: $(cat err)"
		run 5 "$PACK" "${command[@]}" -o ds $trust
		grep -q "$words" err || die "$file: $(cat err)"
	done
	[ ! -e ds/dataset.manifest ] || die "$file: a mixed dataset"
	# --replace takes it as it is, and keeps nothing of before.
	rm -rf whole
	run 0 "$PACK" "${command[@]}" -o whole -q
	run 0 "$PACK" "${command[@]}" -o ds --replace --trust-names -q
	same whole ds
	cp -p kept "$file"
	cases=$((cases + 1))
}

pixels=(--resize 16 --crop 16 --accept warnings)
noticed label.npy array image.npy label.npy
noticed records.bin raw records.bin --schema 'x:u8[16]'
noticed tokens.bin tokens tokens.bin --seq-len 8 --dtype u16
noticed mnist/t10k-labels-idx1-ubyte mnist mnist --split test
noticed images.tar images images.tar "${pixels[@]}"
noticed packed.tar.gz images packed.tar.gz "${pixels[@]}"
noticed images.zip images images.zip "${pixels[@]}"
# Files of their own: one that the first part reads, one that the second does.
noticed "$(find src -type f | sort | sed -n 1p)" images src "${pixels[@]}"
last=$(find src -type f | sort | sed -n 15p)
noticed "$last" images src "${pixels[@]}"
noticed "$last" images images.csv "${pixels[@]}" --field second:kind=image,crop=8

# ---- a file of which only pages are compared ----

large=(array large.npy --shard-records 50 --order source)
run 0 "$PACK" "${large[@]}" -o whole --replace -q
rm -rf ds
run 0 "$PACK" plan "${large[@]}" -o ds -q
run 0 "$PACK" build ds --part 0/2 -q
# Between the pages only the time of change tells, and another mode could be another file.
cp -p large.npy kept.npy
set_back large.npy $((200 * 65536 + 100))
run 5 "$PACK" build ds
grep -q "/large.npy: touched since the plan was made: its time of change was 20.* then, and is 20" err || die "$(cat err)"
run 5 "$PACK" "${large[@]}" -o ds
# A copy has other times.  All of another version is other pages.
mkdir old new && cp kept.npy new/large.npy
"$PYTHON" -c 'import numpy; numpy.save("old/large.npy", numpy.ones((400, 65536), "u1"))'
run 5 "$PACK" build ds --source old --trust-names
grep -q "old/large.npy: changed since the plan was made: it has other bytes" err || die "$(cat err)"
run 0 "$PACK" build ds --source new --trust-names -q
# A shard that is built a second time must be the same.
rm ds/00001.shard
set_back new/large.npy $((60 * 65536 + 100))
run 5 "$PACK" build ds --source new --trust-names
said "shardpack: ds/00001.shard: has other bytes than when it was built before, so a source changed \
meanwhile; remove this file and bring back the source of then, or remove ds and begin again with \`shardpack plan\`"
run 5 "$PACK" seal ds
rm ds/00001.shard
cp kept.npy new/large.npy
run 0 "$PACK" build ds --source new --trust-names -q
run 0 "$PACK" seal ds -q
same whole ds
cp -p kept.npy large.npy

# ---- more files of their own than have a fingerprint ----

mkdir -p many/a
"$PYTHON" - <<'EOF'
for i in range(1000):
    open(f"many/a/{i:04}.ppm", "wb").write(b"P6 4 4 255\n" + bytes([i % 256]) * 48)
EOF
many=(images many --resize 4 --shard-records 100 --order source)
run 0 "$PACK" "${many[@]}" -o whole --replace -q
rm -rf ds
run 0 "$PACK" plan "${many[@]}" -o ds -q
run 0 "$PACK" build ds --part 0/2 -q
# One that was packed, and the same pictures again.
cp -p many/a/0001.ppm kept
set_back many/a/0001.ppm
run 5 "$PACK" "${many[@]}" -o ds
grep -q "many/a/0001.ppm: touched since the plan was made" err || die "$(cat err)"
run 0 "$PACK" "${many[@]}" -o ds --dry-run --replace
cp -p kept many/a/0001.ppm
# One that was not packed yet, whose mode was mended.
rm -rf ds
run 0 "$PACK" plan "${many[@]}" -o ds -q
run 0 "$PACK" build ds --part 0/2 -q
chmod 600 many/a/0101.ppm
run 0 "$PACK" "${many[@]}" -o ds -q
same whole ds
# Where all are others, the sample has one.
rm -rf ds
run 0 "$PACK" plan "${many[@]}" -o ds -q
run 0 "$PACK" build ds --part 0/2 -q
cp -r many other
find other -name '*.ppm' -exec sed -i '$s/.$/~/' {} +
run 5 "$PACK" build ds --part 1/2 --source other --trust-names
grep -q "other/a/0000.ppm: changed since the plan was made" err || die "$(cat err)"

# ---- in the middle of a run ----

# in_the_middle FILE COMMAND...: it changes while shards are built, and the run ends before the next
in_the_middle() {
	local file=$1 pid code
	shift
	for _ in $(seq 50); do
		rm -rf ds
		"$PACK" "$@" -o ds -j1 -q >out 2>err </dev/null &
		pid=$!
		until [ -e ds/00000.shard ] || ! kill -0 $pid 2>/dev/null; do :; done
		kill -STOP $pid 2>/dev/null || true
		set_back "$file"
		kill -CONT $pid 2>/dev/null || true
		code=0
		wait $pid || code=$?
		[ "$code" = 0 ] || break # else it had ended before
		cp -p kept "$file"
	done
	[ "$code" = 5 ] || die "exit code $code: $(cat err)"
	grep -q "/$file: changed while it was read" err || die "$(cat err)"
	[ ! -e ds/dataset.manifest ] || die "$file: a mixed dataset"
	cp -p kept "$file"
	cases=$((cases + 1))
}

"$PYTHON" -c 'import numpy; numpy.zeros(1 << 22, "u1").tofile("records.bin")'
cp -p records.bin kept
in_the_middle records.bin raw records.bin --schema 'x:u8[16]' --shard-records 256
in_the_middle records.bin raw records.bin --schema 'x:u8[16]' --shard-records 256 --trust-names

# Without what the plan knew of them sources may have any bytes, but the run says so.
rm -rf ds
run 0 "$PACK" plan raw records.bin --schema 'x:u8[16]' --shard-records 256 -o ds -q
rm ds/.shardpack/sources
run 5 "$PACK" build ds
chmod o-r records.bin
run 0 "$PACK" build ds --trust-names
grep -q "warning: ds/.shardpack/sources: is missing, so nothing says whether" err || die "$(cat err)"

# Negative control: without fingerprints an old copy makes a mixed dataset.
break_pack origin_check.c 's/^\treturn !memcmp(then->print.*;$/\treturn true;/'
rm -rf ds copy && mkdir copy
cp -p label.npy image.npy copy && set_back copy/label.npy
run 0 ./broken plan array image.npy label.npy -o ds --shard-records 39 --order source -q
run 0 ./broken build ds --part 0/2 -q
run 0 ./broken build ds --part 1/2 --source copy --trust-names -q
run 0 ./broken seal ds -q
run 0 "$CAT" list ds
[ "$(cut -f2 out | sort -u | wc -l)" = 2 ] || die "the control does not mix: $(cat out)"

# ... and without times of change, a byte between the pages.
break_pack origin_check.c 's/^\treturn origin_at.*changed_ns == .*;$/\treturn then \&\& now \&\& p \&\& slot + 1;/'
rm -rf ds && cp -p kept.npy large.npy
run 0 ./broken plan "${large[@]}" -o ds -q
run 0 ./broken build ds --part 0/2 -q
set_back large.npy $((200 * 65536 + 100))
run 0 ./broken build ds -q && run 0 ./broken seal ds -q
echo "$cases sources set back at four moments, large ones and many; two controls mix"
