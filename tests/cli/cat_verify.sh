#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_verify.sh - what verify finds in a dataset that was damaged in known ways, and how it says so
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

small_source
run 0 "$PACK" images src -o good --resize 80 --crop 64 --shard-records 5

# The numbers in the verdict, with the time left out.
verdict() {
	sed 's/ in [0-9.]* s ([0-9.]* GB\/s)$//' out
}
for threads in 1 3; do
	run 0 "$CAT" verify good -j "$threads"
	[ "$(verdict | head -n 1)" = "ok: 2 shards, 10 records, 120.2 KiB" ] || die "verdict: $(cat out)"
	[ "$(sed 1d out)" = "SHA-256 of the shard files was not checked; use --sha256, for example after a download" ]
done
run 0 "$CAT" verify good --sha256
[ "$(wc -l <out)" = 1 ] || die "says more than ok: $(cat out)"
run 0 "$CAT" verify good/00001.shard
verdict | grep -qxF "ok: 1 shard, 5 records, 60.1 KiB" || die "verdict: $(cat out)"
run 0 "$CAT" verify good --sample 3
verdict | grep -q "^ok: 2 shards, structure and a sample of [0-9]* units, " || die "verdict: $(cat out)"
run 0 "$CAT" verify -q good
[ ! -s out ] && [ ! -s err ] || die "not quiet"
run 2 "$CAT" verify good/00000.shard --sha256
id=$("$CAT" info good --json | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["id"])')
run 0 "$CAT" verify good --id "$id"
run 0 "$CAT" verify good --id "${id^^}" --sha256
other=${id:0:63}$(tr 0-9a-f 1-9a-f0 <<<"${id:63}")
run 5 "$CAT" verify good --id "$other"
said_only "shardcat: good/dataset.manifest: the dataset's id is $id; $other is expected:\
 it is another dataset, or was changed"
for bad in "${id:1}" "${id}0" "${id:1}g"; do
	run 2 "$CAT" verify good --id "$bad"
	grep -qF -- "--id $bad: an id has 64 hex digits" err || die "$(cat err)"
done
run 2 "$CAT" verify good/00000.shard --id "$id"

# A folder without a manifest says what it is.
mkdir -p none above/b above/c above/a && cp good/* above/c && cp good/* above/b
for verb in verify info; do
	run 3 "$CAT" $verb none
	said "this folder is not a dataset: shardpack or libshard.pack() makes one of images, tables or arrays"
	run 3 "$CAT" $verb above
	said "the folder holds datasets, such as above/b: give one of them"
done

# A shard that was not copied whole: both sizes are said.
cp -r good short && size=$(stat -c %s good/00001.shard)
for cut in 5000 4096; do
	truncate -s $((size - cut)) short/00001.shard
	run 1 "$CAT" verify short
	grep -q "; the file has $((size - cut)) bytes, and the manifest says $size: copy it again from where it is whole$" err ||
		die "$(cat err)"
done

# change FILE OFFSET: turn over one bit
change() {
	"$PYTHON" -c 'import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(int(sys.argv[2])); b = f.read(1)[0]; f.seek(-1, 1); f.write(bytes([b ^ 16]))' "$1" "$2"
}
fresh() {
	rm -rf ds
	cp -r good ds
}
group_0=4096 # of the first record; 12,288 bytes each

fresh
change ds/00001.shard $((group_0 + 2 * 12288 + 77))
for threads in 1 3; do
	run 1 "$CAT" verify ds -j "$threads"
	grep -q "^shardcat: ds/00001.shard: I44: unit 2 of group 0 (record" err || die "not named: $(cat err)"
	[ "$(wc -l <err)" = 1 ] && [ ! -s out ] || die "one problem is one line: $(cat err out)"
done
run 1 "$CAT" get ds 7 --field image --raw
[ ! -s out ] || die "damaged bytes were delivered"
grep -q "I44" err || die "not named: $(cat err)"
run 0 "$CAT" get ds 6 --field image --raw

# Three problems in two files are three lines and a sum, whatever their order.
change ds/00000.shard $((group_0 + 5))
change ds/00000.shard $((group_0 + 4 * 12288))
run 1 "$CAT" verify ds -j 3
sed 's/: its hash.*//' err | sort >got
printf 'shardcat: %s\n' "ds/00000.shard: I44: unit 0 of group 0 (record 0)" \
	"ds/00000.shard: I44: unit 4 of group 0 (record 4)" "ds/00001.shard: I44: unit 2 of group 0 (record 2)" \
	"ds: 3 problems" | sort >want
sed -i 's/(records \([0-9]*\) to \1)/(record \1)/' got
diff -u want got >&2 || die "not these problems"

fresh
rm ds/00001.shard
run 5 "$CAT" verify ds
grep -q "^shardcat: ds/00001.shard: D1: " err || die "not named: $(cat err)"
change ds/00000.shard $((group_0 + 5)) # damage wins over a mismatch
run 1 "$CAT" verify ds

fresh
cp ds/00000.shard ds/00001.shard # sound, but not the one that the manifest names
run 5 "$CAT" verify ds
grep -q "^shardcat: ds/00001.shard: D3: " err || die "not named: $(cat err)"

fresh
truncate -s -4096 ds/00000.shard
run 1 "$CAT" verify ds
run 1 "$CAT" verify ds/00000.shard
run 3 "$CAT" verify nowhere
echo nothing >empty.shard
run 1 "$CAT" verify empty.shard
grep -q "^shardcat: empty.shard: I1: " err || die "not named: $(cat err)"
echo "flipped bits, missing, swapped and cut shards"
