#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/fault/steal.sh - a share of `make check-steal`: one of the fault tests of packing, drawn by
# DRAW, with workers that claim shards; and what is wrong with claims is noticed
#
# With STEAL=n the others run so already, in full; then there are the controls alone.
# TIMEOUT: 900
# TAKES: 20
draw=${STEAL-y}
STEAL=${STEAL:-3} FEW=very
export STEAL FEW
# shellcheck disable=SC1091
. "$ROOT/tests/fault/lib.sh"

# ---- one of the scripts ----

what="controls alone"
if [ "$draw" = y ]; then
	scripts=("$ROOT"/tests/fault/pack_[!c]*.sh) # but pack_claims.sh, whose workers do it anyway
	for i in "${!scripts[@]}"; do # the next one, where one cannot run here
		rm -rf drawn && mkdir drawn
		script=${scripts[(${DRAW:-0} + i) % ${#scripts[@]}]}
		name=$(basename "$script") code=0
		TMPDIR=$PWD/drawn "$script" >said 2>&1 || code=$?
		[ $code = 77 ] || break
	done
	[ $code = 0 ] || die "$name: exit code $code: $(tail -n 50 said)"
	what="$name with $STEAL workers: $(tail -n 1 said)"
fi

# ---- negative controls ----

make_reference
command=("$PACK" images src -o ds -j1 "${RECIPE[@]}")

# A worker that takes the living for dead: shards are built twice.
timed hasty $PATIENT_MS 's/^\treturn ended || .*/\treturn true;/'
STEALER=$PWD/hasty SHIM_DELAY_US=20000 run 99 with_shim delay "${command[@]}"

# claimed DIR: a claim there is of a shard that is missing.  Of a killed process a claim may be left
# whose shard is there.
claimed() {
	local claim
	for claim in "$1"/.shardpack/claim-*; do
		[ ! -e "$claim" ] || [ -e "$1/${claim##*claim-}.shard" ] || return 0
	done
	return 1
}

# One that takes nobody for dead: what a killed one has claimed is never built.
timed faithful $PATIENT_MS 's/^\treturn ended || .*/\treturn false;/; s/errno == ESRCH/false/'
kept=0
for at in 51 61 71 81 91; do
	rm -rf ds
	SHIM_DIE_AT=$at run 137 with_shim die "${command[@]}"
	claimed ds && kept=$at && break
done
[ $kept != 0 ] || die "no kill left a claim of a missing shard"
cp -r ds killed
./faithful build ds --steal -j1 >waits 2>&1 </dev/null &
until_true grep -q "waiting for shards that others build" waits
sleep 1 # ten looks
kill $! || die "the control that waits for the dead is not noticed"
wait $! || :
rm -rf ds && mv killed ds
run 0 "${command[@]}"
same reference ds

echo "$what; 2 controls are caught"
