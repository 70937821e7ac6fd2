#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_state.sh - .shardpack is a folder of shardpack's own, and what it says of shards
# counts only while they are as they were
set -euo pipefail
: "${ROOT:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

make_images src 40
ARGS=(--resize 16 --crop 16 --shard-records 10)
run 0 "$PACK" images src -o ref "${ARGS[@]}" -q

# ---- a link in the place of .shardpack leads nowhere ----

# victim_of COMMAND...: it is refused, and the folders behind the links are as they were
victim_of() {
	local before
	before=$(sha256sum -- victim/* shards/*)
	run 2 "$@"
	grep -q "must be a folder, and is a symbolic link or a file; remove it$" err || die "$*: $(cat err)"
	[ "$(sha256sum -- victim/* shards/*)" = "$before" ] || die "$*: changed $(contents victim) $(contents shards)"
}

mkdir victim planted && cp -r ref shards
run 0 "$PACK" plan images src -o begun "${ARGS[@]}" -q
cp begun/.shardpack/plan victim/plan
for name in source receipts-foo quarantine other; do echo keep >"victim/$name"; done
ln -s ../victim planted/.shardpack
victim_of "$PACK" images src -o planted "${ARGS[@]}"
victim_of "$PACK" plan images src -o planted "${ARGS[@]}"
victim_of "$PACK" build planted
victim_of "$PACK" seal planted
# A finished dataset has no such folder any more; the link is still not followed.
mkdir planted2 && cp ref/* planted2 && ln -s ../victim planted2/.shardpack && rm planted2/dataset.manifest
victim_of "$PACK" images src -o planted2 "${ARGS[@]}"
# --replace builds in a folder beside.
cp -r ref swapped && ln -s shards .swapped.new
victim_of "$PACK" images src -o swapped "${ARGS[@]}" --seed 5 --replace
same ref swapped
rm .swapped.new && mkdir .swapped.new && ln -s ../victim .swapped.new/.shardpack
victim_of "$PACK" images src -o swapped "${ARGS[@]}" --seed 5 --replace
same ref swapped
# An --out that is a link to a folder is what somebody wants.
mkdir real && ln -s real link
run 0 "$PACK" images src -o link "${ARGS[@]}" -q
same ref real
# A file is no folder either.
mkdir file && echo text >file/.shardpack
victim_of "$PACK" images src -o file "${ARGS[@]}"
[ "$(cat file/.shardpack)" = text ] || die "the file changed"

# ---- a receipt counts while size, time and footer of its shard are the same ----

run 0 "$PACK" plan images src -o ds "${ARGS[@]}" -q
run 0 "$PACK" build ds -q
cp -rp ds copy
flip() { printf x | dd of="$1" bs=1 seek=9000 conv=notrunc status=none; }
# Damage that changes the time is met by seal, and by a build that goes on.
for verb in seal build; do
	rm -rf hurt && cp -rp ds hurt && flip hurt/00002.shard
	run 1 "$PACK" $verb hurt
	grep -q "^shardpack: hurt/00002.shard: I44: .*; remove this file to have it built again" err || die "$(cat err)"
	[ ! -e hurt/dataset.manifest ] || die "sealed over damage"
done
# Damage that leaves the time as it was is met by --verify only, as the manual says.
rm -rf hurt && cp -rp ds hurt && flip hurt/00002.shard && touch -r ds/00002.shard hurt/00002.shard
run 1 "$PACK" seal hurt --verify
grep -q "^shardpack: hurt/00002.shard: I44: " err || die "$(cat err)"
run 0 "$PACK" seal hurt
run 1 "$CAT" verify hurt
# So it is in a dataset that is sealed already.
run 0 "$PACK" seal hurt
run 1 "$PACK" seal hurt --verify
grep -q "^shardpack: hurt/00002.shard: I44: " err || die "$(cat err)"
# Copies that lost their times are read once more, and good.
rm -rf copy && cp -r ds copy && touch copy/*.shard
run 0 "$PACK" seal copy -v
[ "$(grep -c "was written after its receipt, or copied; verifying it" err)" = 4 ] || die "$(cat err)"
same ref copy
run 0 "$PACK" seal ds --verify -v
[ "$(grep -c "exists; verifying it" err)" = 4 ] || die "$(cat err)"
run 0 "$PACK" seal ds --verify
said "shardpack: ds: 4 shards verified"
same ref ds

# ---- shards that nobody read back ----

head -c 40960 /dev/urandom >records.bin
for source in "images src ${ARGS[*]}" "raw records.bin --schema x:u8[512] --shard-records 20"; do
	rm -rf back unseen sealed
	# shellcheck disable=SC2086 # words
	run 0 "$PACK" plan $source -o back -q
	cp -r back unseen
	run 0 "$PACK" build back -q
	run 0 "$PACK" build unseen -q --read-back no
	for state in "back yes" "unseen no"; do
		[ "$(cat "${state% *}"/.shardpack/receipts-* | grep -c " read-back ${state#* } root ")" = 4 ] ||
			die "$state: $(cat "${state% *}"/.shardpack/receipts-*)"
	done
	for shard in back/*.shard; do cmp "$shard" "unseen/${shard#*/}" || die "$shard: other bytes"; done
	# Damage since then, at an unchanged time: a run that reads back finds it, and no other.
	cp -rp unseen hurt2 && flip hurt2/00001.shard && touch -r unseen/00001.shard hurt2/00001.shard
	cp -rp back hurt3 && flip hurt3/00001.shard && touch -r back/00001.shard hurt3/00001.shard
	run 1 "$PACK" build hurt2
	grep -q "^shardpack: hurt2/00001.shard: I4[0-9]: " err || die "$(cat err)"
	run 0 "$PACK" build hurt2 --read-back no
	run 0 "$PACK" build hurt3
	rm -rf hurt2 hurt3
	# What was verified is told, and not done again.
	run 0 "$PACK" build unseen -v
	[ "$(grep -c "exists, and was not read back; verifying it" err)" = 4 ] || die "$(cat err)"
	run 0 "$PACK" build unseen -v
	grep -q "verifying" err && die "$(cat err)"
	run 0 "$PACK" seal unseen -q
	run 0 "$PACK" seal back -q
	same back unseen
	# shellcheck disable=SC2086 # words
	run 0 "$PACK" $source -o sealed -q --read-back no
	same back sealed
done
run 2 "$PACK" images src -o maybe "${ARGS[@]}" --read-back maybe

# ---- a folder that cannot be listed to its end is not called foreign ----

cat >eio.c <<'C'
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
struct dirent *readdir(DIR *d)
{
	struct dirent *(*real)(DIR *) = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir");
	char link[64], path[4096 + 32] = "";
	int before = errno; /* at the end readdir() leaves it as it was */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", dirfd(d));
	if (readlink(link, path, 4095) > 0 && strstr(path, "/.shardpack") &&
	    access(strcat(path, "/../dataset.manifest"), F_OK) == 0) {
		errno = EIO;
		return NULL;
	}
	errno = before;
	return real(d);
}
struct dirent64 *readdir64(DIR *d)
{
	return (struct dirent64 *)readdir(d);
}
C
${CC:-cc} -O1 -D_GNU_SOURCE -shared -fPIC -o eio.so eio.c -ldl
run 3 env LD_PRELOAD="$PWD/eio.so:${LD_PRELOAD-}" ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0" \
	"$PACK" images src -o unread "${ARGS[@]}" -q
said "shardpack: unread/.shardpack: cannot read this folder: Input/output error"
run 0 "$CAT" verify unread
run 0 "$PACK" images src -o unread "${ARGS[@]}"

# ---- a shard that is given up while its thread writes: -j 1 has one turn for both ----

"$PYTHON" - <<'PY'
open("names", "w").write("a\nb\n")
row = bytes(3072)
open("bad.bin", "wb").write(b"".join(row + bytes([i == 700 and 9]) for i in range(2000)))
PY
for _ in 1 2 3 4 5 6 7 8; do
	rm -rf given_up
	run 1 timeout -k 5 60 "$PACK" raw bad.bin --schema 'image:u8[3,32,32],label:u8' --classes names --order source \
		-o given_up -j 1 --read-back no
done
