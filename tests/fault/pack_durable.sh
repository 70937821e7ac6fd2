#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/fault/pack_durable.sh - what exit 0 promises survives a power cut: each folder that was made
# and each final name is followed by an fsync of the folder above it, and each file is synced before
# it gets its name.  The control is a shardpack that forgets to sync folders.
# shellcheck disable=SC1091
. "$ROOT/tests/fault/lib.sh"

${CC:-cc} -std=gnu11 -O1 -Wall -Wextra -shared -fPIC -D_GNU_SOURCE -o log.so "$ROOT/tests/fault/sync_log.c" -ldl

# logged CODE COMMAND...: runs it (AS somebody), and leaves what it made durable in the file log
logged() {
	local code=$1
	shift
	rm -f log
	run "$code" ${AS-} env SYNC_LOG="$PWD/log" LD_PRELOAD="$PWD/log.so:${LD_PRELOAD-}" \
		ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0" "$@"
}

# judge: prints each promise that is not kept
judge() {
	python3 - <<'PY'
import os
events = [line.rstrip("\n").split(" ", 1) for line in open("log")]
counts = {what: sum(e[0] == what for e in events) for what in ("mkdir", "fsync", "name", "added")}
for i, (what, path) in enumerate(events):
    later = {p for w, p in events[i:] if w == "fsync"}
    before = {p for w, p in events[:i] if w == "fsync"}
    if what in ("mkdir", "name") and os.path.dirname(path) not in later:
        print(f"{what} {path}: the folder above was not synced after it")
    if what == "added" and path not in later:
        print(f"{path}: not synced after it was added to")
    if what == "temp" and path not in before:
        print(f"{path}: not synced before it got its name")
print(*(f"{n} {what}" for what, n in counts.items()))
PY
}

# kept MKDIRS NAMES ADDED: the last logged command kept all promises, and made at least so many
kept() {
	judge >verdict
	[ "$(wc -l <verdict)" = 1 ] || die "$(cat verdict)"
	read -r mkdirs _ _ _ names _ added _ <verdict
	[ "$mkdirs" -ge "$1" ] && [ "$names" -ge "$2" ] && [ "$added" -ge "$3" ] || die "too little was seen: $(cat verdict)"
}

make_images src 40
: >src/class_00/empty.jpg
ARGS=(--resize 16 --crop 16 --shard-records 20 --on-error quarantine --quarantine bad -q)

logged 0 "$PACK" images src -o new/deep/out "${ARGS[@]}"
# new, deep, out, .shardpack, bad, bad/class_00; two shards, a file of receipts, four texts, the manifest
kept 6 8 2
rm -r bad
logged 0 "$PACK" images src -o new/deep/out "${ARGS[@]}" --seed 5 --replace
kept 4 8 2
rm -r bad
logged 0 "$PACK" plan images src -o parts/here "${ARGS[@]}"
kept 4 3 0
logged 0 "$PACK" build parts/here -q
kept 1 3 2
logged 0 "$PACK" seal parts/here -q
kept 0 1 0

# ---- a folder above that may be written into, and not listed ----

mkdir drop && chmod 300 drop
AS=powerless logged 0 "$PACK" images src -o drop/out --resize 16 -q --on-error skip
chmod 700 drop
run 0 "$CAT" verify drop/out -q

# ---- the control ----

rm -r bad
export SYNC_FORGET=folders
logged 0 "$PACK" images src -o other/deep "${ARGS[@]}"
judge >verdict
grep -q "^mkdir .*/other: the folder above was not synced" verdict || die "a lost fsync after mkdir is not noticed"
grep -q "^name .*/dataset.manifest: " verdict || die "a lost fsync after publishing is not noticed"
grep -q "^name .*/receipts-00000: " verdict || die "a lost fsync of the state folder is not noticed"
broken=$(wc -l <verdict)
rm -r bad
SYNC_FORGET=data logged 0 "$PACK" images src -o last "${ARGS[@]}"
judge >verdict
grep -q "/receipts-00000: not synced after it was added to" verdict || die "a lost fdatasync is not noticed"
echo "$((broken + $(wc -l <verdict) - 2)) broken promises are noticed in the control"
