#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/fault/whole_kill.sh - whole images (--fit area): killed at a call whose effect lasts, run
# again, and the folder is that of an undisturbed run
# TAKES: 15
# shellcheck disable=SC1091
. "$ROOT/tests/fault/lib.sh"

IMAGES=160 RECIPE=(--fit area --resize 24 --shard-records 10)
make_reference
command=("$PACK" images src -o ds -j2 "${RECIPE[@]}")
SHIM_COUNT=$PWD/calls run 0 with_shim die "${command[@]}"
same reference ds
calls=$(stat -c %s calls)
tries=0 step=9
for at in $(seq 2 $step "$calls"); do
	rm -rf ds
	SHIM_DIE_AT=$at run 137 with_shim die "${command[@]}"
	no_wrong_file ds || die "after a kill at call $at of $calls"
	run 0 "${command[@]}"
	same reference ds
	tries=$((tries + 1))
done
[ $tries -ge 3 ] || die "only $tries kills"
echo "$tries kills at one of $calls calls; the next run finished each"
