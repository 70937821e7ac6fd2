#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cli/pack_again.sh - `shardpack build --again` finds each shard that was made of other
# sources, also of sources whose sizes and times are the same
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"

mkdir -p here/many/a
"$PYTHON" - <<'EOF'
import numpy, tarfile
for i in range(200):
    open(f"here/many/a/{i:04}.ppm", "wb").write(b"P6 4 4 255\n" + bytes([i % 256]) * 48)
open("here/many.csv", "w").writelines(
    ["path,label,second\n"] + [f"many/a/{i:04}.ppm,1,many/a/{i // 2:04}.ppm\n" for i in range(200)])
numpy.save("here/x.npy", numpy.zeros((200, 64), "u1"))
numpy.zeros(200 * 64, "u1").tofile("here/x.bin")
with tarfile.open("here/x.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
    for i in range(200):
        with open("ppm", "wb") as f:
            f.write(b"P6 16 16 255\n" + bytes([i]) * 768)
        tar.add("ppm", f"a/{i:03}.ppm")
EOF
rm ppm

# old FILE OFFSET: another byte there, and the time that it had
old() {
	cp -p "$1" reference.time
	printf '~' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
	touch -r reference.time "$1"
	if cmp -s "$1" reference.time; then die "$1 did not change"; fi
}

# compared SHARD FILE OFFSET COMMAND...: that byte is another one on a machine with a copy
compared() {
	local shard=$1 file=$2 offset=$3 before
	shift 3
	rm -rf ds whole copy
	cp -r here copy && old "copy/$file" "$offset"
	run 0 "$PACK" "$@" -o whole -q
	run 0 "$PACK" plan "$@" -o ds -q
	run 0 "$PACK" build ds --part 0/2 -q
	base=$(cat ds/.shardpack/source)
	run 0 "$PACK" build ds --part 1/2 -q --trust-names --source "${base/here/copy}" # nothing tells
	# Here the right sources are at hand.
	before=$(sha256sum ds/*.shard ds/.shardpack/*)
	run 5 "$PACK" build ds --again
	said "shardpack: ds/$shard.shard: has other bytes than these sources make; if they are the right ones, \
remove it and .shardpack/receipts-*, and build it of them"
	said "shardpack: ds: 1 shard has other bytes than these sources make"
	[ "$before" = "$(sha256sum ds/*.shard ds/.shardpack/*)" ] || die "$*: --again changed something: $(contents ds)"
	run 0 "$PACK" build ds --again --part 0/2 -j3
	grep -qx "shardpack: ds: [0-9]* shards have the bytes that these sources make" err || die "$(cat err)"
	run 5 "$PACK" build ds --again --part 1/2 -q
	# What it says helps.
	rm ds/$shard.shard ds/.shardpack/receipts-*
	run 0 "$PACK" build ds --again -q # which also builds what is missing
	run 0 "$PACK" build ds --again --trust-names -q
	run 0 "$PACK" seal ds -q
	same whole ds
	cases=$((cases + 1))
}
cases=0
images=(--resize 4 --shard-records 20 --order source)
compared 00001 many/a/0022.ppm 20 images here/many "${images[@]}"
compared 00001 many/a/0012.ppm 20 images here/many.csv "${images[@]}" --field second:kind=image,crop=4
compared 00001 x.npy $((128 + 60 * 64 + 10)) array here/x.npy --shard-records 50 --order source
compared 00001 x.bin $((60 * 64 + 10)) raw here/x.bin --schema 'x:u8[64]' --shard-records 50 --order source
compared 00001 x.tar $((30 * 1536 + 512 + 700)) images here/x.tar --resize 16 --shard-records 20 --order source

# ---- an image that was packed, and then written and its time set back: nothing else tells ----

rm -rf ds
run 0 "$PACK" plan images here/many -o ds "${images[@]}" -q
run 0 "$PACK" build ds --part 0/2 -q
cp -p here/many/a/0001.ppm kept
old here/many/a/0001.ppm 20
run 0 "$PACK" build ds --part 1/2 -q
run 5 "$PACK" build ds --again
grep -q "^shardpack: ds/00000.shard: has other bytes than these sources make; " err || die "$(cat err)"
cp -p kept here/many/a/0001.ppm
run 0 "$PACK" build ds --again -q
run 2 "$PACK" build ds --again --read-back no
said_only "shardpack: --again compares every byte of the shards, so it cannot be given with --read-back no"
cp -r ds begun

# ---- other sources altogether: not each of them is told ----

cp -r here all && find all/many -name '*.ppm' -exec sed -i '$s/.$/~/' {} +
run 5 "$PACK" build ds --again --trust-names --source all/many
[ "$(grep -c "has other bytes than these sources make; if" err)" = 10 ] || die "$(cat err)"
said "shardpack: ds: 10 shards have other bytes than these sources make"

# ---- bad inputs are as bad as they were ----

odd_source
odd=(images odd --resize 32 --crop 32 --on-error skip --accept warnings --shard-records 4)
run 0 "$PACK" plan "${odd[@]}" -o bad -q
run 0 "$PACK" build bad -q
run 0 "$PACK" build bad --again
grep -qx "shardpack: bad: [1-9]* shards have the bytes that these sources make" err || die "$(cat err)"

# ---- a sealed dataset has no plan ----

rm -rf ds && cp -r begun ds
run 0 "$PACK" seal ds -q
run 2 "$PACK" build ds --again
said_only "shardpack: ds: is sealed and has no plan any more, so --again cannot build its shards; to compare, pack the \
sources into another folder: the id must be the same"

# Negative control: what builds only what is missing finds nothing.
break_pack build.c 's/if (there && !job->again) {/if (there) {/'
rm -rf ds && cp -r begun ds
old here/many/a/0001.ppm 20
run 0 ./broken build ds --again
run 5 "$PACK" build ds --again
echo "$cases sources with one other byte that nothing else finds; the control does not find it either"
