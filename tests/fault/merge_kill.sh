#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/fault/merge_kill.sh - a merge that is killed at any call whose effect lasts leaves whole
# shards and no dataset, or the dataset; the same command then ends with the bytes of an undisturbed
# one, and the parts are as they were
# shellcheck disable=SC1091
. "$ROOT/tests/fault/lib.sh"

make_images src 24
mkdir one two
for class in src/*; do
	mkdir -p "one/${class##*/}" "two/${class##*/}"
	find "$class" -type f | sort | sed -n 'p;n' | xargs -I{} mv {} "one/${class##*/}"
	mv "$class"/* "two/${class##*/}"
done
run 0 "$PACK" images one -o a --resize 8 --crop 8 --shard-records 6
run 0 "$PACK" images two -o b --resize 8 --crop 8 --shard-records 6
cp -r a a.before && cp -r b b.before
run 0 "$PACK" merge a b -o reference

# Each name that is final is whole; a manifest is there only with all shards.
whole() {
	no_wrong_file ds || return 1
	[ ! -e ds/dataset.manifest ] || diff -r reference ds
}

kills=0 caught=0
for by in link copy; do
	command=("$PACK" merge a b -o ds --by $by)
	rm -rf ds calls
	SHIM_COUNT=$PWD/calls run 0 with_shim 'die writes' "${command[@]}"
	same reference ds
	calls=$(stat -c %s calls)
	[ "$calls" -ge 12 ] || die "$by: only $calls calls were counted"
	for ((at = 1; at <= calls; at++)); do
		rm -rf ds
		SHIM_DIE_AT=$at run 137 with_shim 'die writes' "${command[@]}"
		mkdir -p ds
		whole || die "$by: after a kill at call $at of $calls"
		run 0 "${command[@]}"
		same reference ds
		kills=$((kills + 1))
	done
done
same a a.before && same b b.before

# Negative control: a shardpack that writes under final names must be caught.
for ((at = 1; at <= calls; at++)); do
	rm -rf ds && mkdir ds
	SHIM_DIE_AT=$at with_shim "die direct writes" "$PACK" merge a b -o ds --by copy >/dev/null 2>&1 </dev/null || :
	whole >/dev/null || caught=$((caught + 1))
done
[ $caught -ge 1 ] || die "the control, which writes under final names, is not noticed"
echo "$kills kills, each followed by the bytes of an undisturbed run; the control is caught $caught times"
