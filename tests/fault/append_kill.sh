#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/fault/append_kill.sh - an append that is killed at any call whose effect lasts leaves the
# old dataset or the new one; the same command then ends with that of an undisturbed run
# shellcheck disable=SC1091
. "$ROOT/tests/fault/lib.sh"

make_images src 24
mkdir one two
for class in src/*; do
	mkdir -p "one/${class##*/}" "two/${class##*/}"
	find "$class" -type f | sort | sed -n 'p;n' | xargs -I{} mv {} "one/${class##*/}"
	mv "$class"/* "two/${class##*/}"
done
run 0 "$PACK" images one -o old --resize 8 --crop 8 --shard-records 6
run 0 "$PACK" images two -o more --resize 8 --crop 8 --shard-records 6 --classes old
cp -r more more.before
cp -r old reference
run 0 "$PACK" append reference more
was=$(sha256sum <old/dataset.manifest) is=$(sha256sum <reference/dataset.manifest)

# whole: ds is the old dataset or the new one, with all its shards; a kept manifest is the old one
whole() {
	local got kept
	got=$(sha256sum 2>/dev/null <ds/dataset.manifest) || return 1
	[ "$got" = "$was" ] || [ "$got" = "$is" ] || return 1
	"$CAT" verify ds --sha256 >verified 2>&1 || return 1
	for kept in ds/dataset.manifest.*; do
		[ ! -e "$kept" ] || cmp -s "$kept" old/dataset.manifest || return 1
	done
}

# sweep PROGRAM: kill it at every call; how often ds was none of both, in wrong
wrong=0 kills=0
sweep() {
	local at calls by how
	for by in link copy; do
		how=(--by $by)
		[ $by = link ] || how+=(--duplicates keep) # which must find its own work
		rm -rf ds calls && cp -r old ds
		SHIM_COUNT=$PWD/calls run 0 with_shim 'die writes' "$1" append ds more "${how[@]}"
		same reference ds
		calls=$(stat -c %s calls)
		[ "$calls" -ge 12 ] || die "$by: only $calls calls were counted"
		for ((at = 1; at <= calls; at++)); do
			rm -rf ds && cp -r old ds
			SHIM_DIE_AT=$at run 137 with_shim 'die writes' "$1" append ds more "${how[@]}"
			kills=$((kills + 1))
			whole || {
				wrong=$((wrong + 1))
				continue
			}
			run 0 "$1" append ds more "${how[@]}"
			whole
			diff -r reference ds >&2 || die "$by: after a kill at call $at of $calls"
		done
	done
}

sweep "$PACK"
[ $wrong = 0 ] || die "$wrong kills left something between"
same more more.before
good=$kills

# Negative control: one that removes the old manifest before the new one is there.
broken='files_path(path, to->dir, "dataset.manifest"), files_remove(path), shard_seal_finish(seal, \&err)'
break_pack assemble.c "s/rc = finish(a, seal);/rc = ($broken);/"
kills=0
sweep ./broken
[ $wrong -ge 1 ] || die "the control, which has no manifest for a moment, is not noticed"
echo "$good kills left the old dataset or the new one; the control is caught $wrong times"
