#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_status.sh - how far a build is: the lines, the document and the list for a retry;
# the list in the message of `seal`
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

"$PYTHON" -c 'import sys; sys.stdout.buffer.write(bytes(range(256)) * 4)' >records.bin
run 0 "$PACK" plan raw records.bin -o ds --schema 'x:u8[4]' --shard-records 4 -q # 64 shards

# list_is LIST DONE STATE
list_is() {
	run 0 "$PACK" status ds --retry-list
	[ "$(cat out)" = "$1" ] || die "the list is $(cat out) instead of $1"
	[ ! -s err ] || die "$(cat err)"
	run 0 "$PACK" status ds --json
	[ "$(json out 'd["retry_list"], d["shard_count"], d["done"], d["missing"], d["state"]')" = \
		"('$1', 64, $2, $((64 - $2)), '$3')" ] || die "$(cat out)"
}

list_is 0-63 0 unfinished
[ "$(json out 'd["seconds_per_shard"], d["seconds_left"]')" = "(None, None)" ] || die "$(cat out)"
run 0 "$PACK" status ds
[ "$(cat out)" = "$(printf '%s\n' 'ds: 0 of 64 shards are done' 'missing: 0-63')" ] || die "$(cat out)"

run 0 "$PACK" build ds -q
list_is '' 64 complete
run 0 "$PACK" status ds
[ "$(cat out)" = "ds: 64 of 64 shards are done; not sealed yet" ] || die "$(cat out)"

# Names with other numbers, and temporary ones, are no shards of the plan.
touch ds/00064.shard ds/000007.shard ds/.tmp.00003.shard.0123456789abcdef ds/00005.shard.old
mkdir kept && mv ds/00000.shard ds/00017.shard ds/0002[2-4].shard ds/00026.shard ds/0006[23].shard kept
# One shard took 3 s: the times are those of the shards.
for k in ds/*.shard; do touch -d "@$((1000000 + 3 * n++))" "$k"; done
list_is 0,17,22-24,26,62-63 56 unfinished
[ "$(json out 'd["seconds_per_shard"], d["seconds_left"]')" = "(3, 24)" ] || die "$(cat out)"
run 0 "$PACK" status ds
[ "$(cat out)" = "$(printf '%s\n' 'ds: 56 of 64 shards are done' 'missing: 0,17,22-24,26,62-63' \
	'3.0 s a shard, so about 24 s left')" ] || die "$(cat out)"
rm ds/00064.shard ds/000007.shard ds/.tmp.* ds/00005.shard.old
run 5 "$PACK" seal ds
said "shardpack: ds: 8 of 64 shards are not there yet: 0,17,22-24,26,62-63; \`shardpack build ds\` makes them"

# The list is as long as it must be, and that of `seal` is cut at a comma.
"$PYTHON" -c 'import sys; sys.stdout.buffer.write(bytes(1000))' >more.bin
run 0 "$PACK" plan raw more.bin -o 'd s' --schema 'x:u8[4]' --shard-records 1 -q
run 0 "$PACK" build 'd s' --part 1/2 -q
run 0 "$PACK" status 'd s' --retry-list
[ "$(cat out)" = "$(seq -s , 0 2 248)" ] || die "$(cat out)"
run 5 "$PACK" seal 'd s'
grep -q "125 of 250 shards are not there yet: 0,2,4,.*[0-9],\.\.\.; \`shardpack build 'd s'\` makes them, and \
\`shardpack status --retry-list\` lists them all$" err || die "$(cat err)"

# A sealed dataset; nothing to look at.
mv kept/* ds && run 0 "$PACK" seal ds -q
list_is '' 64 sealed
run 0 "$PACK" status ds
[ "$(cat out)" = "ds: sealed, 64 shards" ] || die "$(cat out)"
run 2 "$PACK" status nowhere
said_only "shardpack: nowhere: has no plan; make one with \`shardpack plan SOURCE SRC -o DIR\`"
run 2 "$PACK" status ds --json --retry-list
grep -q "cannot be given together" err || die "$(cat err)"
echo "lists, documents and times of 64 and 250 shards"
