#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/fault/pack_shared.sh - two machines that do not see each other's locks, on a file system
# that gives no name without a link and loses each reply
# TIMEOUT: 600
# shellcheck disable=SC1091
. "$ROOT/tests/fault/lib.sh"

IMAGES=320
RECIPE=(--resize 32 --crop 32 --shard-records $((IMAGES / SHARDS)))
make_reference
echo first >boot1
echo second >boot2

plan() {
	rm -rf ds
	run 0 "$PACK" plan images src -o ds "${RECIPE[@]}" -q
}

# machine N WHAT COMMAND...
machine() {
	local n=$1 what=$2
	shift 2
	SHIM_BOOT=$PWD/boot$n exec_shim "lonely $what" "$@"
}

sealed() {
	run 0 "$PACK" seal ds -q
	no_temps ds || die "temporary files are left"
	same reference ds
}

# held N WHAT ARGUMENT...: machine N has a shard in work when this returns; its process is $held.
# The last image waits until the file `go` is there.
last=$(find src -name '*.jpg' | sort | tail -n 1)
held() {
	local n=$1 what=$2
	shift 2
	rm -f go go.held
	SHIM_HOLD=${last#src/} SHIM_UNTIL=$PWD/go machine "$n" "hold $what" "$PACK" build ds -j1 "$@" >held.err 2>&1 &
	held=$!
	until_true holds "$n"
}

holds() { # N
	kill -0 $held 2>/dev/null || die "machine $1 ended early: $(cat held.err)"
	[ -L go.held ] && has_work ds
}

second() { # WHAT ARGUMENT...
	local what=$1
	shift
	(machine 2 "$what" "$PACK" "$@" -j1) >second.err 2>&1 || die "$(cat second.err)"
}

# parts WHAT: the second machine begins and ends meanwhile; `code` is the exit code of the first one
parts() {
	plan
	held 1 "$1" --part 1/2
	second "$1" build ds --part 0/2
	: >go
	code=0
	wait "$held" || code=$?
}
parts remote
[ "$code" = 0 ] || die "the first machine lost what it had in work: $(cat held.err)"
sealed

# What a killed process left stays until its shard is there: another machine cannot know.
plan
held 1 remote --part 1/2
kill -9 "$held"
wait "$held" 2>/dev/null || :
left=$(in_work ds)
second remote build ds --part 0/2
[ "$(in_work ds)" = "$left" ] || die "another machine removed what it cannot know of: of $left there is $(in_work ds)"
second remote build ds --part 1/2
second remote seal ds
no_temps ds || die "temporary files are left"
same reference ds

# A worker that claims, and is killed: another one takes over after 2 s, and removes what the first
# one began.  take_over PACK sets `stays`: the files that are left to whoever is last.
take_over() {
	local PACK=$PWD/$1 temp
	plan
	held 1 remote --steal
	kill -9 "$held"
	wait "$held" 2>/dev/null || :
	in_work ds | while read -r temp; do
		[ -e "ds/$(cut -d. -f3,4 <<<"$temp")" ] || echo "$temp" # the kill came before the name
	done >left
	[ -s left ] || die "no shard was in work: $(contents ds)"
	second remote build ds --steal -v
	stays=$(while read -r temp; do
		grep -qF "$temp: removed, as its owner was replaced" second.err || echo "$temp"
	done <left)
	sealed
}
timed quick 2000
take_over quick
[ -z "$stays" ] || die "$stays: of a worker that was replaced"

timed forgetful 2000 's/^\tif (strspn(v->nonce.*/\tif (v)/'
take_over forgetful
[ -n "$stays" ] || die "the control, which removes nothing, is not noticed"

# One that was stopped, and replaced: its file is gone, and it leaves the shard to the other one.
wake_up() {
	local PACK=$PWD/quick stopped
	plan
	held 1 remote --steal
	stopped=$held
	kill -STOP "$stopped"
	held 2 remote --steal
	: >go
	wait "$held" || die "$(cat held.err)"
	kill -CONT "$stopped"
	wait "$stopped" || die "a worker that was stopped ended with $?"
	sealed
}
wake_up

# Negative control: with the rule of a local disk, the second machine takes what the first one has.
parts ""
[ "$code" = 3 ] || die "the control, which trusts locks, is not noticed: $code, $(cat held.err)"
grep -q "No such file or directory" held.err || die "$(cat held.err)"

# What is open is not removed on NFS, and so neither is its folder: nothing of ours is open then.
silly() { # PROGRAM COMMAND...
	run 0 with_shim silly "$@"
	same reference ds
	[ ! -e ds/.shardpack ]
}
plan
rm -rf ds
silly "$PACK" images src -o ds "${RECIPE[@]}" -q || die "the state is left: $(cat err)"
plan
run 0 "$PACK" build ds -q
lose_receipt ds 0
silly "$PACK" seal ds -q || die "the state is left: $(cat err)"
plan
run 0 "$PACK" build ds --steal -q
lose_receipt ds 0
silly "$PACK" seal ds -q || die "the state is left: $(cat err)"
break_pack output.c 's/receipt_files_let_go(.*/;/'
rm -rf ds
run 0 with_shim silly ./broken images src -o ds "${RECIPE[@]}" -q
[ -e ds/.shardpack ] || die "the control, which keeps files open, is not noticed"

# A file of receipts that another machine removed: the receipt goes to a new one.
plan
run 0 with_shim stale "$PACK" build ds -q
[ -e ds/.shardpack/receipts-00001 ] || die "there is no second file: $(contents ds)"
sealed
break_pack receipt.c 's/ == ESTALE/ == -1/'
plan
run 3 with_shim stale ./broken build ds -q
echo "parts, killed processes and workers of two machines; 4 controls"
