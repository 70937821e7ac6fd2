#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/fault/pack_two.sh - two packers on one folder: with one plan both end well, with two the
# second refuses
# TAKES: 30
# shellcheck disable=SC1091
. "$ROOT/tests/fault/lib.sh"

make_reference

# two SHIM START_DELAY: the second starts that much later.  Prints both exit codes.
two() {
	local both=() code
	rm -rf ds
	SHIM_SEED=1 exec_shim "$1" "$PACK" images src -o ds -j2 "${RECIPE[@]}" >first 2>&1 </dev/null &
	first=$!
	sleep "$2"
	SHIM_SEED=2 exec_shim "$1" "$PACK" images src -o ds -j2 "${RECIPE[@]}" >second 2>&1 </dev/null &
	second=$!
	for pid in $first $second; do
		code=0
		wait "$pid" || code=$?
		both+=("$code")
	done
	echo "${both[*]}"
}

rounds=0
delays=(0 0 0.05 0.15 0.25 0.35 0.45 0.55)
[ -z "$FEW" ] || delays=(0 0.05 0.25)
races=4
[ "$FEW" != very ] || delays=(0.05) races=1
for delay in "${delays[@]}"; do
	codes=$(two delay $delay)
	[ "$codes" = "0 0" ] || die "second after $delay s: exit codes $codes: $(cat first second)"
	same reference ds
	rounds=$((rounds + 1))
done

# Another plan on the same folder: one line, exit 2, and the first is not disturbed.
refusals=0
for delay in 0.1 0.3 0.5 sealed; do
	rm -rf ds
	exec_shim delay "$PACK" images src -o ds -j2 "${RECIPE[@]}" >first 2>&1 </dev/null &
	first=$!
	for _ in $(seq 20000); do # the first one's plan decides, so it must be there
		[ -e ds/.shardpack/plan ] && break
		sleep 0.01
	done
	case $delay in
	sealed) wait $first ;;
	*) sleep "$delay" ;;
	esac
	run 2 "$PACK" images src -o ds -j2 "${RECIPE[@]}" --seed 7
	[ "$(wc -l <err)" = 1 ] || die "$(cat err)"
	grep -q "^shardpack: ds: holds .* of another plan, .*; nothing was touched" err || die "$(cat err)"
	[ "$delay" = sealed ] || wait $first || die "the first one failed: $(cat first)"
	same reference ds
	refusals=$((refusals + 1))
done

# The same moment: exactly one plan wins, and its dataset is whole.
run 0 "$PACK" images src -o other "${RECIPE[@]}" --seed 7
for _ in $(seq $races); do
	rm -rf ds
	exec_shim delay "$PACK" images src -o ds "${RECIPE[@]}" >first 2>&1 </dev/null &
	first=$!
	exec_shim delay "$PACK" images src -o ds "${RECIPE[@]}" --seed 7 >second 2>&1 </dev/null &
	a=0 b=0
	wait $! || b=$?
	wait $first || a=$?
	case "$a $b" in
	"0 2") same reference ds ;;
	"2 0") same other ds ;;
	*) die "exit codes $a and $b: $(cat first second)" ;;
	esac
done

# Negative control: packers that write under final names get in each other's way.
caught=0
tries=0
while [ $tries -lt 4 ] || { [ $caught = 0 ] && [ $tries -lt 30 ]; }; do
	codes=$(two "delay direct" 0.$((5 * (tries % 4) / 10))$((5 * (tries % 4) % 10)))
	[ "$codes" = "0 0" ] && diff -rq reference ds >/dev/null || caught=$((caught + 1))
	tries=$((tries + 1))
done
[ $caught -ge 1 ] || die "the control, which writes under final names, is not noticed"

echo "$rounds pairs with one plan, $refusals refusals, $races races of two plans;" \
	"the control is caught $caught times of $tries"
