# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# tests/cluster/lib.sh - what the scripts that pack under a real scheduler share; sourced, not run
#
# A script is a few stories.  Each begins with a fresh plan at ds, has workers that are killed, and
# ends with the dataset of one machine that packed alone:
#
#   begin "Slurm, array" 6     one line of the table, and how many workers it has
#   sbatch ... ./worker ...    the scheduler starts ./worker ARGUMENT... where a user starts
#                              `shardpack build ds ARGUMENT...`
#   kill_worker                kill -9 one of them; `kills` counts
#   refused_unfinished         control: `seal` refuses a dataset that lacks a shard; sets $retry
#   finish                     seal, and compare every byte and the id
#
# shellcheck disable=SC1091
. "$ROOT/tests/fault/lib.sh"
: "${SEED:?}" "${ROWS:?tests/cluster/run.sh sets it}"
RANDOM=$((SEED % 32768))
script=${0##*/_} story="" kills=0

SHARDS=32 IMAGES=640
RECIPE=(--resize 32 --crop 32 --shard-records $((IMAGES / SHARDS)))
make_reference
reference_id=$("$CAT" info reference --json >info && json info 'd["id"]')

# A worker leaves its number, so that it can be killed, and is slow, so that it is killed at work.
# With SLOW in microseconds a shard takes about SLOW / 25000 seconds.
mkdir pids
cat >worker <<END
#!/bin/sh
mkdir -p "$PWD/pids/\${SLURMD_NODENAME-here}"
: >"$PWD/pids/\${SLURMD_NODENAME-here}/\$\$"
export SHIM=delay SHIM_SEED=\$\$ SHIM_DELAY_US=\${SLOW-20000} LD_PRELOAD="$PWD/shim.so"
cd "$PWD" && exec env --default-signal=INT,HUP "$PACK" build ds -j1 "\$@"
END
chmod +x worker

# ---- the table ----

row() { # RESULT
	printf '%s|%s|%s|%s|%s s\n' "$story" "$workers" "$kills" "$1" $((SECONDS - began)) >>"$ROWS"
	story=""
}

begin() { # STORY WORKERS
	story=$1 workers=$2 kills=0 began=$SECONDS
	rm -rf ds pids/*
	run 0 "$PACK" plan images src -o ds "${RECIPE[@]}" -q
}

finish() {
	local missing id
	missing=$("$PACK" status ds --retry-list)
	[ -z "$missing" ] || die "$story: shards are missing: $missing"
	run 0 "$PACK" seal ds -q
	id=$("$CAT" info ds --json >info && json info 'd["id"]')
	[ "$id" = "$reference_id" ] || die "$story: the id is $id, and that of one machine $reference_id"
	same reference ds
	row "equal id"
}

# What a script started is ended by the words in `ends`, the last ones first; a line that no story
# ended is one of a failure.
ends=()
at_end() { # COMMAND
	ends=("$1" "${ends[@]}")
}
end() {
	local status=$? command
	trap '' INT TERM
	[ -z "$story" ] || row FAILED
	for command in "${ends[@]}"; do eval "$command" || :; done
	exit $status
}
trap end EXIT
trap 'exit 130' INT TERM

# ---- workers ----

# The processes of workers that are at work, on one node or on all that share our process numbers.
workers_there() { # [NODE]
	local file
	for file in pids/${1-*}/*; do
		[ "$(readlink "/proc/${file##*/}/exe" 2>/dev/null)" = "$PACK" ] && echo "${file##*/}"
	done
	return 0
}

# kill_worker [NODE]: one of them, by chance, at a moment of chance, as soon as one has a claim
kill_worker() {
	local there
	until_true some_claim
	sleep 0.$((RANDOM % 10))
	mapfile -t there < <(workers_there "$@")
	[ ${#there[@]} != 0 ] || die "$story: no worker is there to be killed; are they too fast?"
	kill -9 "${there[RANDOM % ${#there[@]}]}" && kills=$((kills + 1))
}

some_claim() {
	[ -n "$(find ds/.shardpack -name 'claim-*' -print -quit)" ]
}

until_true() { # COMMAND...
	for _ in $(seq 600); do
		"$@" && return
		sleep 0.2
	done
	die "$story: not true within two minutes: $*"
}

# ---- control: what was not built again is noticed ----

# Take one or two shards away from a complete dataset, as if nobody had built them after a kill.
# `seal` must refuse it, and name them as schedulers take them, in $retry.
refused_unfinished() {
	local k=$((RANDOM % (SHARDS - 2)))
	retry=$k
	rm "ds/$(printf %05d $k).shard" "ds/.shardpack/receipt-$(printf %05d $k)"
	if [ $((RANDOM % 2)) = 0 ]; then
		retry=$k,$((k + 2))
		rm "ds/$(printf %05d $((k + 2))).shard"
	fi
	run 5 "$PACK" seal ds
	grep -qF "are not there yet: $retry;" err || grep -qF "is not there yet: $retry;" err ||
		die "$story: seal does not say that $retry is missing: $(cat err)"
	[ ! -e ds/dataset.manifest ] || die "$story: there is a dataset without shard $retry"
	[ "$("$PACK" status ds --retry-list)" = "$retry" ] || die "$story: the retry list is not $retry"
}
