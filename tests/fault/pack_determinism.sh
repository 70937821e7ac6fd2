#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/fault/pack_determinism.sh - threads, parts, delays and interruptions never change a byte
# shellcheck disable=SC1091
. "$ROOT/tests/fault/lib.sh"

make_reference

for seed in 1 2 3; do
	SHIM_SEED=$seed run 0 with_shim delay "$PACK" images src -o "j4.$seed" -j4 "${RECIPE[@]}"
	same reference "j4.$seed"
done

# Two parts at the same time, then sealed.
run 0 "$PACK" plan images src -o parts "${RECIPE[@]}"
SHIM_SEED=4 exec_shim delay "$PACK" build parts --part 0/2 -j2 2>err.0 &
first=$!
SHIM_SEED=5 with_shim delay "$PACK" build parts --part 1/2 -j2 2>err.1 || die "$(cat err.1)"
wait $first || die "$(cat err.0)"
run 0 "$PACK" seal parts
same reference parts

# Interrupted again and again, then resumed.
interruptions=0
for try in $(seq 50); do # where one was done before its signal came, it begins again
	[ $interruptions -lt 4 ] || break
	[ ! -e resumed/dataset.manifest ] || rm -r resumed
	signals=(TERM INT HUP)
	signal=${signals[try % 3]}
	SHIM_SEED=$((try + 5)) exec_shim delay "$PACK" images src -o resumed -j3 "${RECIPE[@]}" 2>err &
	pid=$!
	count=$(shards_in resumed)
	for _ in $(seq 20000); do # until it has made another shard
		[ "$(shards_in resumed)" -gt "$count" ] && break
		[ -n "$(jobs -rp)" ] || break # it made its last one before they were counted
		sleep 0.01
	done
	kill -$signal $pid 2>/dev/null || :
	code=0
	wait $pid || code=$?
	if [ $code = 130 ]; then
		interruptions=$((interruptions + 1))
		case $STEAL in
		"") again="shardpack images src -o resumed -j3 --resize 32" ;;
		*) again="stealer \(plan images src -o resumed --resize 32\|build resumed --steal -j3\|seal resumed\)" ;;
		esac
		grep -q "^interrupted; to continue: .*$again" err || die "$(cat err)"
		no_temps resumed
		no_wrong_file resumed
	else
		[ $code = 0 ] || die "exit code $code: $(cat err)"
	fi
done
[ $interruptions = 4 ] || die "only $interruptions of $try interruptions came in time"
run 0 "$PACK" images src -o resumed -j2 "${RECIPE[@]}"
same reference resumed

# Negative control: were the bytes to depend on which thread has an image, it would be seen.
run 0 with_shim "delay thread" "$PACK" images src -o control -j4 "${RECIPE[@]}"
! diff -rq reference control >/dev/null || die "the control is not noticed"

echo "$IMAGES images: -j1 = -j4 with delays (3 seeds) = 2 parts = interrupted $interruptions times; the control differs"
