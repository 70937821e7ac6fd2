#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/fault/pack_kill.sh - kill -9 at any moment, run again, and the folder is that of an
# undisturbed run
# TIMEOUT: 900
# TAKES: 30
# shellcheck disable=SC1091
. "$ROOT/tests/fault/lib.sh"

# A kill meets no other branch among more images.
IMAGES=400
RECIPE=(--resize 32 --crop 32 --shard-records $((IMAGES / SHARDS)))
make_reference
command=("$PACK" images src -o ds -j2 "${RECIPE[@]}")

# Between the kill and the next run nothing under a final name is wrong; afterwards all is as if
# nothing had been.
recovers() {
	no_wrong_file ds || return 1
	"${command[@]}" >again 2>&1 </dev/null || {
		cat again
		return 1
	}
	diff -r reference ds
}

# dies SHIM AT: at that call.  Workers beside each other do not always make as many calls, so they
# may have ended before.
late=0
dies() {
	local code=0
	SHIM_DIE_AT=$2 with_shim "$1" "${command[@]}" >out 2>err </dev/null || code=$?
	[ $code != 137 ] || return 0
	[ -n "$STEAL" ] && [ $code = 0 ] || die "exit code $code instead of 137 at call $2: $(cat err)"
	late=$((late + 1))
}

# Under a sanitizer everything takes longer, and a few moments of each kind show what it can find.
KILLS=20 STEP=7 REPLACE_STEP=13 TWICE=9
[ -z "$FEW" ] || KILLS=6 STEP=29 REPLACE_STEP=37
[ "$FEW" != very ] || KILLS=3 STEP=77 TWICE=3

# ---- moments by the clock ----

begin=$(date +%s%N)
run 0 with_shim delay "${command[@]}"
took_us=$((($(date +%s%N) - begin) / 1000))
same reference ds
killed=0
# A run that is faster than the first one may be over before its kill: then all later ones come
# sooner.
for try in $(seq 200); do
	[ $killed -lt $KILLS ] || break
	rm -rf ds
	SHIM_SEED=$try exec_shim delay "${command[@]}" >/dev/null 2>&1 &
	pid=$!
	after_us=$((took_us * (2 * killed + 1) / (2 * KILLS)))
	sleep "$((after_us / 1000000)).$(printf '%06d' $((after_us % 1000000)))"
	kill_hard $pid
	code=0
	wait $pid 2>/dev/null || code=$?
	case $code in
	137) killed=$((killed + 1)) ;;
	*) took_us=$((took_us * 9 / 10)) ;;
	esac
	recovers || die "after kill $killed, at $after_us us"
done
[ $killed = $KILLS ] || die "only $killed of $try kills came in time"

# ---- some of the calls whose effect lasts: making, naming, removing, syncing ----

rm -rf ds
SHIM_COUNT=$PWD/calls run 0 with_shim die "${command[@]}"
calls=$(stat -c %s calls)
[ "$calls" -ge $((8 * SHARDS)) ] || die "only $calls calls were counted"
tries=0
# The last ones seal: all of them.
for at in $(seq 1 $STEP $((calls - 30))) $(seq $((calls - 29)) $((STEP / 7)) "$calls"); do
	rm -rf ds
	dies die "$at"
	recovers || die "after a kill at call $at of $calls"
	tries=$((tries + 1))
done

# Killed twice: the run that cleans up is killed too.
for at in $(seq 3 $((calls / TWICE)) "$calls"); do
	rm -rf ds
	dies die "$at"
	SHIM_DIE_AT=7 with_shim die "${command[@]}" >/dev/null 2>&1 </dev/null || :
	recovers || die "after a kill at call $at and another one"
	tries=$((tries + 1))
done
[ $((3 * late)) -le $((2 * tries)) ] || die "$late of $tries kills came late"

# Replacing: the name leads to the old dataset or to the new one, whole, at every moment.  No worker
# can do that.
replacing=0 replace_calls=0
replaces() {
	run 0 "$PACK" images src -o old -j2 "${RECIPE[@]}" --seed 7
	replace=("${command[@]}" --replace)
	rm -rf ds && cp -r old ds
	SHIM_COUNT=$PWD/more run 0 with_shim die "${replace[@]}"
	same reference ds
	replace_calls=$(stat -c %s more)
	for at in $(seq 1 $REPLACE_STEP $((replace_calls - 45))) \
		$(seq $((replace_calls - 44)) $((STEP * 2 / 7)) "$replace_calls"); do
		rm -rf ds .ds.new && cp -r old ds
		SHIM_DIE_AT=$at run 137 with_shim die "${replace[@]}"
		diff -rq reference ds >/dev/null || same old ds
		run 0 "${replace[@]}"
		same reference ds
		[ ! -e .ds.new ] || die "left behind after a kill at call $at of $replace_calls: $(contents .ds.new)"
		replacing=$((replacing + 1))
	done
}
[ -n "$STEAL" ] || replaces

# Negative control: a shardpack that writes under final names must be caught.
caught=0
for at in $(seq 6 5 60); do
	rm -rf ds
	dies "die direct" "$at"
	no_wrong_file ds >/dev/null || caught=$((caught + 1))
done
[ $caught -ge 1 ] || die "the control, which writes under final names, is not noticed"

while=", $replacing of $replace_calls while replacing"
[ -z "$STEAL" ] || while=""
echo "$killed kills by the clock, $((tries - late)) at one of $calls calls$while, all recovered;" \
	"the control is caught $caught times"
