#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_seal.sh - hundreds of shards are sealed by threads that look ahead: the manifest is
# that of a shardpack that looks at one shard after the other, and nothing goes unnoticed
#
# Control: one that takes receipts for good whenever the shard was written.
# TAKES: 10
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

shards=331 # more than threads look at together
"$PYTHON" -c 'import sys; sys.stdout.buffer.write(b"".join(i.to_bytes(4, "little") for i in range(332)))' >t.bin
run 0 "$PACK" plan tokens t.bin -o built --dtype u32 --seq-len 1 --shard-records 1 --order source -q
run 0 "$PACK" build built --read-back no -q
[ "$(cat built/.shardpack/receipts-* | grep -c '^shard ')" = $shards ] || die "$(ls built/.shardpack)"

# sealed DIR ARGUMENT...: it is sealed as the first one was, and nothing is left behind
sealed() {
	run 0 "$PACK" seal "$@"
	[ -e first ] || cp "$1/dataset.manifest" first
	cmp first "$1/dataset.manifest"
	[ "$(contents "$1" | tr ' ' '\n' | grep -vc '^[0-9]*.shard$')" = 2 ] || die "$(contents "$1")"
}

# The twin looks at one shard after the other.
if [ -z "${VARIANT-}" ]; then
	break_pack seal_dataset.c 's/list.shard_count > LOOK_SHARDS/false/'
	cp -a built twin
	(PACK=$PWD/broken && sealed twin -q)
	# This one finds nothing in order at first sight, and looks at each again with a reader.
	break_pack seal_dataset.c 's/^\t*published_peek(.*;$/;/'
	cp -a built slow
	(PACK=$PWD/broken && sealed slow -q)
fi
for jobs in 1 2 7; do
	cp -a built "jobs$jobs"
	sealed "jobs$jobs" -j $jobs -q
done
"$CAT" verify jobs7 -q

# What is not in order is looked at again, and mended where it can be.
cp -a built odd
lose_receipt odd 100
edit_receipt odd 200 's/read-back no/read-back yes/'
edit_receipt odd 4 's/^shard 4 /shard 5 /'
touch odd/00330.shard
sealed odd -v
said "shardpack: odd/00100.shard: exists, but without its receipt; verifying it"
said "shardpack: odd/.shardpack/receipts-*: the receipt of shard 200 is damaged; making it again from the shard"
said "shardpack: odd/00004.shard: exists, but without its receipt; verifying it"
said "shardpack: odd/00330.shard: was written after its receipt, or copied; verifying it"
[ "$(grep -c "verifying it$" err)" = 4 ] || die "$(cat err)"

# Threads that look ahead say nothing; the one that adds says it, once.
cp -a built hole
truncate -s 1M hole/.shardpack/receipts-00000
run 1 "$PACK" seal hole -q
said "shardpack: hole/.shardpack/receipts-00000: 65536 zeros at byte 131072: it is not a text"
[ "$(wc -l <err)" = 1 ] || die "$(cat err)"

# Statistics of many classes are read when the shard is added, and not before.
make_images many 70
"$PYTHON" -c 'print("\n".join(f"class_{i:02d}" for i in range(3000)))' >classes.txt
run 0 "$PACK" images many -o many.ds --resize 8 --crop 8 --shard-records 1 --classes classes.txt -q
[ "$(awk '/^stat classes / { n++; sum += $5 } END { print n, sum }' many.ds/dataset.manifest)" = "3000 70" ] ||
	die "the manifest counts other images than 70"
run 0 "$CAT" verify many.ds -q

# What is replaced has more names than one thread removes alone.
cp -a jobs2 old
run 0 "$PACK" tokens t.bin -o old --dtype u32 --seq-len 1 --shard-records 200 --order source --replace -q
[ "$(contents old)" = "00000.shard 00001.shard dataset.manifest dataset.sources" ] || die "$(contents old)"
[ "$(ls -A | grep -c old)" = 1 ] || die "$(ls -A)"

# refused CODE MESSAGE: sealing `bad` ends so, and changes nothing
refused() {
	cp -a bad before
	run "$1" "$PACK" seal bad -q
	said "shardpack: $2"
	same before bad
	rm -rf before bad
	cp -a built bad
}
cp -a built bad
rm bad/00007.shard bad/0030[0-2].shard
refused 5 "bad: 4 of $shards shards are not there yet: 7,300-302; \`shardpack build bad\` makes them"
cp bad/00003.shard bad/00250.shard
refused 2 "bad/00250.shard: a shard of another plan; nothing was touched"
damage() { # by a write, which changes the time
	printf x | dd of=bad/00150.shard bs=1 seek=4096 conv=notrunc status=none
}
damage
run 1 "$PACK" seal bad -q
grep -q "^shardpack: bad/00150.shard: I44: .*; remove this file to have it built again" err || die "$(cat err)"
[ ! -e bad/dataset.manifest ] || die "sealed over damage"
if [ -z "${VARIANT-}" ]; then
	break_pack published_shard.c 's/r->mtime_ns == mtime_ns && //'
	./broken seal bad -q || die "the damage is met without the time: $(cat err)"
fi
echo "$shards shards: sealed by 1, 2 and 7 threads, with 4 that had to be verified, refused with missing, foreign and \
damaged ones"
