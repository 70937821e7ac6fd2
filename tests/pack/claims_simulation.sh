#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claims_simulation.sh - workers that claim shards, come, go, are killed and stopped, in simulated
# time: each shard appears once, hardly any work is done twice, and few calls are made
#
# 10,000 shards and 100 workers; ALL_N=1 (make simulate) 1,000,000 shards and 1,000 workers.
# Controls: a shardpack that takes over too early, one whose workers all walk the same way, and one
# that marks what it did not build.
# TIMEOUT: 3600
# TAKES: 30
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
name=claims_simulation
seed=${SEED:-1}

# simulate PROGRAM SHARDS WORKERS: its numbers go to the file `numbers`
simulate() {
	"$1" "$2" "$3" "$seed" >numbers 2>err || die "seed $seed: $(cat numbers err)"
}

number() { # NAME
	sed "s/.*\<$1 \([0-9.]*\).*/\1/" numbers
}

at_most() { # NAME LIMIT
	awk "BEGIN {exit !($(number "$1") <= $2)}" || die "seed $seed: $1 is more than $2: $(cat numbers)"
}

# broken FILE SED: ./broken is the simulation with that file of shardpack edited so
broken() {
	local wraps objects library libraries=()
	sed "$2" "$ROOT/tools/shardpack/build/$1" >broken.c
	! cmp -s broken.c "$ROOT/tools/shardpack/build/$1" || die "this edits nothing: $2"
	wraps=$(sed -n 's,^ \* LDFLAGS: ,,p' "$ROOT/tests/pack/prog_$name.c")
	objects=$(sed "s,[^ ]* *,$BUILD/&,g" "$BUILD/objects")
	for library in libjpeg libpng libwebp libwebpdemux jansson zlib libzstd liblz4 liburing libarchive libgif \
		libtiff-4; do
		! pkg-config --exists $library || libraries+=("$library")
	done
	# shellcheck disable=SC2046,SC2086 # words of flags and names
	(cd "$ROOT" && ${CC:-cc} -std=c11 -pthread -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -O1 -Iinclude -I. \
		$wraps -o "$OLDPWD/broken" "$BUILD/tests/pack/prog_$name.o" "$OLDPWD/broken.c" $objects \
		"$BUILD/tools/shardpack.a" $(pkg-config --libs "${libraries[@]}") -ldl -lm)
}

shards=10000 workers=100
[ -z "${ALL_N-}" ] || shards=1000000 workers=1000
simulate "$BUILD/tests/pack/prog_$name" $shards $workers
cat numbers
at_most repeated_percent 3
[ "$(number killed)" -ge $((workers * 3 / 10)) ] || die "$(cat numbers)"
# In $TMPDIR this many calls cost less than 1 ms of CPU; how much exactly depends on the machine.
at_most names 2000
at_most lstats 150
at_most opens 100
at_most publishes 1
[ -z "${ALL_N-}" ] || at_most scheduling_ms 1

cp numbers right
# Claims that are stale before their owners beat: workers that live are replaced.
broken claim.c 's/\.stale = .*/.stale = UINT64_C(15000000000),/; s/\.hidden = .*/.hidden = UINT64_C(0),/'
simulate ./broken 10000 100
hasty=$(number repeated_percent)
awk "BEGIN {exit !($hasty > 6)}" || die "claims that are stale at once are not noticed: $(cat numbers)"
# All walk from the first shard, and open each other's claims.
broken claims.c 's/(c->begin + c->walked++) % c->ranges.count/c->walked++/'
simulate ./broken 10000 100
opens=$(number opens)
# A worker that leaves marks what it had claimed, built or not.
broken held_claims.c 's/held_release(l, l->item\[0\], state_dir, false)/held_release(l, l->item[0], state_dir, true)/'
! ./broken 10000 100 "$seed" >numbers 2>err || die "seed $seed: false marks are not noticed"
grep -q "ranges are marked, and shards of them are missing" err || die "seed $seed: $(cat numbers err)"
cp right numbers
[ -n "${ALL_N-}" ] || awk "BEGIN {exit !($opens > 1.3 * $(number opens))}" ||
	die "workers that walk the same way are not noticed: $opens, $(cat right)"
echo "seed $seed: $shards shards, $(number started) workers, $(number killed) killed; $(number repeated_percent) % \
repeated, $(number opens) opens a shard; controls: $hasty %, $opens, marks"
