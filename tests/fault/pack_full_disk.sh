#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/fault/pack_full_disk.sh - disks of 20 sizes fill up under a pack; with more room the same
# command completes it
# shellcheck disable=SC1091
. "$ROOT/tests/fault/lib.sh"

# Only a user namespace is needed, no root: a small tmpfs of one's own.
unshare -Urm true 2>/dev/null || skip "no user namespaces here (unshare -Urm), so no small disk to fill"
inside() {
	unshare -Urm bash -euc "$@"
}
export -f no_wrong_file no_temps with_shim exec_shim die

make_reference
mkdir disk
needed=$("$PACK" images src -o disk/ds "${RECIPE[@]}" --dry-run | sed -n 's/.* \([0-9]*\) bytes in all$/\1/p')
export needed RECIPE_TEXT="${RECIPE[*]}"

# The check before the first byte: one line with both numbers, and nothing is made.  Workers have a
# plan already, and each says it.
# shellcheck disable=SC2016 # expanded by the inner shell
[ -n "$STEAL" ] || inside 'mount -t tmpfs -o size=1m none disk
	code=0
	"$PACK" images src -o disk/ds $RECIPE_TEXT >msg 2>&1 </dev/null || code=$?
	[ $code = 3 ] || die "exit code $code: $(cat msg)"
	full="the dataset needs .* bytes) and the disk has 1.0 MiB free; nothing was written"
	grep -q "^shardpack: disk/ds: $full$" msg && [ "$(wc -l <msg)" = 1 ] || die "$(cat msg)"
	[ ! -e disk/ds ] || die "something was made"'

# The same of what is unpacked: by what the archive says of itself, else when the disk is full;
# nothing is made either way.
make_archives() {
	"$PYTHON" - <<'PY'
import glob
import gzip
import io
import tarfile
import zipfile
import numpy as np
members = [("a/x.txt", bytes(3 << 20))]
members += [("a/%d.jpg" % i, open(p, "rb").read()) for i, p in enumerate(sorted(glob.glob("src/*/*"))[:3])]
with tarfile.open("big.tar", "w") as t:
    for name, data in members:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        t.addfile(info, io.BytesIO(data))
with zipfile.ZipFile("big.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for name, data in members:
        z.writestr(name, data)
np.savez_compressed("big.npz", x=np.zeros((1024, 3072), "u1"))
np.save("fortran.npy", np.asfortranarray(np.zeros((1024, 3072), "u1")))
# Cut where the last bytes could be a size that the disk has no room for.
noise = gzip.compress(np.random.default_rng(1).bytes(600000))
cut = next(n for n in range(500000, 600000) if 8 << 20 < int.from_bytes(noise[n - 4:n], "little") < 500 << 20)
open("cut.bin.gz", "wb").write(noise[:cut])
PY
	gzip -k big.tar
	zstd -q big.tar -o big.tar.zst
	zstd -q <big.tar >mute.tar.zst # of a pipe, so it does not say its size
}
make_archives
# shellcheck disable=SC2016
inside 'mount -t tmpfs -o size=1m none disk
	refused() { # SOURCE FILE MESSAGE [OPTIONS]
		code=0
		"$PACK" $1 $2 -o ds.no --spool disk ${4:-} >msg 2>&1 </dev/null || code=$?
		[ $code = 3 ] && [ "$(wc -l <msg)" = 1 ] && [ ! -e ds.no ] || die "exit code $code: $(cat msg)"
		grep -q "^shardpack: ./$2$3; choose another folder with --spool DIR$" msg || die "$(cat msg)"
	}
	too_large() { # SOURCE FILE BYTES [OPTIONS]
		what="unpacked it needs 3.0 MiB ($3 bytes) or more, and the disk of disk has 1.0 MiB free"
		refused $1 $2 ": $what" "${4:-}"
	}
	sizes="--resize=8 --crop=8"
	for f in big.tar.gz big.tar.zst; do
		too_large images $f $(stat -c %s big.tar) "$sizes"
	done
	too_large images big.zip "3[0-9]*" "$sizes"
	too_large array big.npz 3145856
	too_large array fortran.npy 3145728
	refused images mute.tar.zst ": cannot unpack more than [0-9]* bytes: No space left on device" "$sizes"
	code=0
	"$PACK" raw cut.bin.gz --schema "x:u8[64]" -o ds.no --spool disk >msg 2>&1 </dev/null || code=$?
	early="the compressed data end early, near offset [0-9]* of [0-9]*; the file is damaged, fetch it again"
	[ $code = 1 ] && grep -qx "shardpack: ./cut.bin.gz: $early" msg || die "a cut file, exit code $code: $(cat msg)"
	mount -o remount,size=$((8 * ${STEAL:-1}))m disk # each unpacks
	"$PACK" images big.tar.gz -o ds.yes --resize 8 --crop 8 --spool disk -q
	# A tmpfs without a limit has no blocks to count.
	umount disk && mount -t tmpfs -o size=0 none disk
	"$PACK" images big.tar.gz -o disk/ds --resize 8 --crop 8 --spool disk -q'

# A disk that seems to have room and has not: every shard under its name is whole, no temporary file
# stays, one line says why (two of each worker).  Then the disk grows, and the same command
# completes the dataset.
# shellcheck disable=SC2016
fill='mount -t tmpfs -o size=$2 none disk
	code=0
	with_shim "$1" "$PACK" images src -o disk/ds -j2 $RECIPE_TEXT >msg 2>&1 </dev/null || code=$?
	[ $code = 3 ] || die "exit code $code: $(cat msg)"
	lines=$((${STEAL:-0} ? 2 * STEAL : 1)) # of a claim, and of a shard
	said=$(grep -c "No space left on device" msg)
	[ $said -ge 1 ] && [ $said -le $lines ] || die "not one line that says why: $(cat msg)"
	[ ! -e disk/ds ] || no_wrong_file disk/ds
	[ ! -e disk/ds ] || no_temps disk/ds
	find disk -name "*.shard" | wc -l >made
	mount -o remount,size=64m disk
	"$PACK" images src -o disk/ds -j2 $RECIPE_TEXT >msg 2>&1 </dev/null || die "$(cat msg)"
	diff -r reference disk/ds'
most=0 sizes=0
[ "$FEW" = very ] && step=4 || step=1
for i in $(seq 20 -$step 1); do
	size=$((needed * i / 21 / 4096 * 4096))
	inside "$fill" fill room $size || die "a disk of $size bytes, $needed are needed"
	[ "$(cat made)" -le "$most" ] || most=$(cat made)
	sizes=$((sizes + 1))
done
[ "$most" -ge $((SHARDS / 2)) ] || die "at most $most shards were there when the disk was full: not much of a test"

# Negative controls: temporary files that stay, and half files under final names.
inside "$fill" fill "room litter" $((needed / 2)) >control 2>&1 &&
	die "the control, which leaves its litter, is not noticed"
grep -q "temporary files are left" control || die "not for the reason meant: $(cat control)"
inside "$fill" fill "room litter direct" $((needed / 2)) >control 2>&1 &&
	die "the control, which writes under final names, is not noticed"
grep -q "is not the one of an undisturbed run" control || die "not for the reason meant: $(cat control)"

echo "$sizes disks of up to $((needed * 20 / 21)) bytes, with up to $most of $SHARDS shards;" \
	"both controls are caught"
