#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# claims_simulation.sh - workers that claim shards, come, go, are killed and stopped, in simulated
# time: each shard appears once, hardly any work is done twice, and few calls are made
#
# 10,000 shards and 100 workers; ALL_N=1 (make simulate) 100,000 shards and 1,000 workers.
# Controls: workers whose signs of life are lost, and workers that all begin at the first shard.
# TIMEOUT: 3600
# TAKES: 20
# shellcheck disable=SC1091
. "$ROOT/tests/cli/lib.sh"
seed=${SEED:-1}

# simulate SHARDS WORKERS [CONTROL]: its numbers go to the file `numbers`
simulate() {
	"$BUILD/tests/pack/prog_claims_simulation" "$1" "$2" "$seed" "${@:3}" >numbers 2>err ||
		die "seed $seed: $(cat numbers err)"
}

number() { # NAME
	sed "s/.*\<$1 \([0-9.]*\).*/\1/" numbers
}

is_at_most() { # NAME LIMIT
	awk "BEGIN {exit !($(number "$1") <= $2)}"
}

at_most() { # NAME LIMIT
	is_at_most "$@" || die "seed $seed: $1 is more than $2: $(cat numbers)"
}

shards=10000 workers=100 looks=32 opens=75 # of a shard
[ -z "${ALL_N-}" ] || shards=100000 workers=1000 looks=400 opens=900
simulate $shards $workers
cat numbers
at_most repeated_percent 3
[ "$(number killed)" -ge $((workers * 3 / 10)) ] || die "$(cat numbers)"
at_most names 3000
at_most lstats $looks
at_most opens $opens
at_most publishes 1.2
at_most beats 8
said="$(number started) workers, $(number killed) killed; $(number repeated_percent) % repeated, $(number opens) opens a shard"

# What is wrong is beyond the limits, of 10,000 shards.
simulate 10000 100 mute
! is_at_most repeated_percent 3 || die "seed $seed: lost signs of life are not noticed: $(cat numbers)"
mute=$(number repeated_percent)
simulate 10000 100 together
! is_at_most lstats 32 && ! is_at_most opens 75 ||
	die "seed $seed: workers that begin at one place are not noticed: $(cat numbers)"
echo "seed $seed: $shards shards, $said; controls: $mute %, $(number opens) opens"
