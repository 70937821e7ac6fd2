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
#   go_on                      no more kills: until now, none of them could build more than 2 shards
#   refused_unfinished         control: `seal` refuses a dataset that lacks shards; sets $retry
#   finish                     seal, and compare every byte and the id
#
# shellcheck disable=SC1091
. "$ROOT/tests/fault/lib.sh"
: "${SEED:?}" "${ROWS:?tests/cluster/run.sh sets it}"
RANDOM=$((SEED % 32768))
story="" kills=0 began=0 EVERY=0.2

# ---- the table ----

row() { # RESULT
	printf '%s|%s|%s|%s|%s|%s s\n' "${0##*/}" "$story" "$workers" "$kills" "$1" $((SECONDS - began)) >>"$ROWS"
	story=""
}

begin() { # STORY WORKERS
	story=$1 workers=$2 kills=0 began=$SECONDS
	rm -rf ds go ./*.err
	run 0 "$PACK" plan images src -o ds "${RECIPE[@]}" -q
}

finish() {
	local missing id
	missing=$("$PACK" status ds --retry-list)
	[ -z "$missing" ] || die "$story: shards are missing: $missing; $(cat ./*.err)"
	run 0 "$PACK" seal ds -q
	id=$("$CAT" info ds --json >info && json info 'd["id"]')
	[ "$id" = "$reference_id" ] || die "$story: the id is $id, and that of one machine $reference_id"
	same reference ds
	row "equal id"
}

# What a script started is ended by the words in `ends`, the last ones first; a story that did not
# end has failed.
ends=()
at_end() { # WORDS
	ends=("$1" "${ends[@]}")
}
at_exit() {
	local status=$? words
	trap '' INT TERM
	[ -z "$story" ] || row FAILED
	exec 2>/dev/null # bash tells of each process that we kill
	for words in "${ends[@]}"; do eval "$words" || :; done
	exit $status
}
trap at_exit EXIT
trap 'exit 130' INT TERM

# ---- machines and workers ----

# machine COMMAND... &: it and all that it starts have process numbers of their own, as on another
# machine.  `kill -9` ends all of them at once, as when a machine loses power, and so does the end
# of this script, whatever ends it.
machine() {
	local user=()
	[ "$(id -u)" = 0 ] || user=(--user --map-current-user)
	exec setpriv --pdeathsig KILL unshare "${user[@]}" --pid --fork --mount-proc --kill-child "$@"
}
(machine true) || skip "this machine allows no process namespaces"

end_machines() {
	local pid
	for pid in $(jobs -p); do kill -9 "$pid" 2>/dev/null || :; done
	wait 2>/dev/null
}

# Ports that nobody uses, all different.
free_ports() { # COUNT
	"$PYTHON" -c 'import socket, sys
all = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*[s.getsockname()[1] for s in all])' "$1"
}

# Workers are killed at work, however fast a machine is.  Each is slow, so that a shard takes about
# SLOW / 25000 seconds, and behind its first two shards it waits for the file `go`.
cat >worker <<END
#!/bin/sh
cd "$PWD" || exit
export SHIM=delay,await SHIM_FREE=2 SHIM_UNTIL="$PWD/go"
export SHIM_SEED=\$\$ SHIM_DELAY_US=\${SLOW-40000} LD_PRELOAD="$PWD/shim.so"
exec env --default-signal=INT,HUP "$PACK" build ds -j1 "\$@"
END
chmod +x worker

# The processes of workers, as they are called here: on all machines, or on that of Slurm's node.
workers_there() { # [NODE]
	local pid
	for pid in $(find /proc -mindepth 2 -maxdepth 2 -name exe -lname "$PACK" 2>/dev/null | cut -d / -f 3); do
		[ "$(readlink "/proc/$pid/cwd")" = "$PWD" ] || continue
		[ -z "${1-}" ] || grep -qzx "SLURMD_NODENAME=$1" "/proc/$pid/environ" || continue
		echo "$pid"
	done 2>/dev/null
}

# kill_worker [NODE]: one of them, by chance, at a moment of chance, while shards are claimed
kill_worker() {
	local there
	until_true at_work "$@"
	sleep 0.$((RANDOM % 10))
	mapfile -t there < <(workers_there "$@")
	[ ${#there[@]} != 0 ] || die "$story: no worker is there to be killed; $(cat ./*.err)"
	kill -9 "${there[RANDOM % ${#there[@]}]}" && kills=$((kills + 1))
}

at_work() { # [NODE]
	[ -n "$(find ds/.shardpack -name 'claim-*' -print -quit)" ] && [ -n "$(workers_there "$@")" ]
}

# All that were to be killed are: the others may end.
go_on() {
	touch go
}

# ---- control: what was not built again is noticed ----

# Take one or two shards away from a complete dataset, as if nobody had built them after a kill.
# `seal` must refuse it, and name them as schedulers take them, in $retry.
refused_unfinished() {
	local k=$((RANDOM % (SHARDS - 2))) verb=is gone
	gone=("$k") retry=$k
	[ $((RANDOM % 2)) = 0 ] || { gone+=($((k + 2))) && retry=$k,$((k + 2)) verb=are; }
	for k in "${gone[@]}"; do
		rm "ds/$(printf %05d "$k").shard" || die "$story: shard $k is missing; $(cat ./*.err)"
	done
	run 5 "$PACK" seal ds
	grep -qF "of $SHARDS shards $verb not there yet: $retry;" err ||
		die "$story: seal does not say that $retry is missing: $(cat err)"
	[ ! -e ds/dataset.manifest ] || die "$story: there is a dataset without shard $retry"
	[ "$("$PACK" status ds --retry-list)" = "$retry" ] || die "$story: the retry list is not $retry"
}

# ---- what all of them pack ----

SHARDS=32 IMAGES=640
RECIPE=(--resize 32 --crop 32 --shard-records $((IMAGES / SHARDS)))
make_reference
reference_id=$("$CAT" info reference --json >info && json info 'd["id"]')
