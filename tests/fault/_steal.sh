#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/fault/_steal.sh - stands in the place of shardpack, with STEAL=n: n workers that claim
# shards make what one command makes
#
# `images SRC -o DIR ...` becomes `plan images`, n times `build DIR --steal` beside each other, and
# `seal`; so do the other sources.  `build DIR ...` becomes n workers.  All else stays as it is:
# other verbs, --dry-run, --replace, --again and --part, which claim nothing, and --steal, which is
# one worker.
#
# Signals go on to the workers.  If one is killed, the others go on; with SHIM_DIE_AT and an odd
# number all end with it, as when a machine loses power.  Then the exit code is 137, as that of a
# command that was killed.  It is 99 if a shard was built twice.  That is so of each shard, but for
# those that were taken over from the dead: of two workers that see that at once, both may build it.
set -u
program=$STEALER
case " $* " in *" --dry-run "* | *" --replace "* | *" --again "* | *" --part "* | *" --steal "*) exec "$program" "$@" ;; esac
case ${1-} in build | images | array | raw | tokens | cifar | mnist) ;; *) exec "$program" "$@" ;; esac

# ---- which words are whose ----

verb=$1 quiet="" dir="" plan=() build=()
shift
[ "$verb" != build ] || { dir=$1 && shift; }
while [ $# -gt 0 ]; do
	case $1 in
	-q) quiet=y ;;
	--trust-names) plan+=("$1") build+=("$1") ;;
	--spool) plan+=("$1" "$2") build+=("$1" "$2") && shift ;;
	-j) build+=("$1" "$2") && shift ;;
	-j*) build+=("$1") ;;
	-o) dir=$2 plan+=("$1" "$2") && shift ;;
	*) plan+=("$1") ;;
	esac
	shift
done
[ "$verb" != build ] || build+=("${plan[@]}")

# ---- processes that end with this one ----

work=$(LD_PRELOAD="" mktemp -d)
trap 'LD_PRELOAD="" rm -rf "$work"' EXIT
pids=() caught=""
for signal in INT TERM HUP; do
	# shellcheck disable=SC2064 # now
	trap "caught=y; kill -$signal \"\${pids[@]}\" 2>/dev/null" $signal
done
if [[ ${SHIM-} == *die* ]] && [ -z "${SHIM_COUNT-}" ]; then
	export SHIM_COUNT=$work/calls # of all processes together
fi
[ $((${SHIM_DIE_AT-0} % 2)) = 0 ] || export SHIM_ALL=$$

start() { # ARGUMENT...
	local k=${#pids[@]}
	SHIM_SEED=$((${SHIM_SEED-1} * 16 + k)) setpriv --pdeathsig KILL env --default-signal=INT,QUIT,HUP \
		"$program" "$@" >"$work/out-$k" 2>"$work/err-$k" </dev/null &
	pids+=($!)
}

# wait_all: until all have ended; sets `code`: 137 if one was killed, or the first that is not 0
wait_all() {
	local pid got one
	code=0
	for pid in "${pids[@]}"; do
		got=0
		while caught=""; do
			one=0
			wait "$pid" || one=$?
			[ $one = 127 ] || got=$one # it had ended when the signal came
			[ -n "$caught" ] || break
		done
		[ $got != 137 ] || code=137
		[ $code != 0 ] || code=$got
	done
	pids=()
}

tell() { # what all said, and which exit code it is
	cat "$work"/out-*
	[ -n "$quiet" ] && [ $code = 0 ] || cat "$work"/err-* >&2
	LD_PRELOAD="" rm "$work"/out-* "$work"/err-* # not one of the calls that are counted
}

one() { # ARGUMENT...: it alone; the end, if it is not good
	start "$@"
	wait_all
	tell
	[ $code = 0 ] || exit $code
}

shards() {
	find "$dir" -name '*.shard' 2>/dev/null | wc -l
}

# ---- plan, build, seal ----

[ "$verb" = build ] || one plan "$verb" "${plan[@]}"
before=$(shards) claimed=$(find "$dir/.shardpack" -name 'claim-*' 2>/dev/null | wc -l)
for ((k = 0; k < STEAL; k++)); do start build "$dir" --steal "${build[@]}"; done
wait_all
built=$(cat "$work"/err-* | sed -n 's/^shardpack: .*: built \([0-9]*\) shards\{0,1\}; .*/\1/p' | paste -sd +)
made=$(($(shards) - before)) taken=$(cat "$work"/err-* | grep -c ": taking over from ")
tell
[ $code = 0 ] && [ "$claimed" = 0 ] && may=0 || may=$taken
if [ $((built)) -gt $((made + may)) ]; then
	echo "_steal.sh: $dir: $((built)) shards were built, $may of them may be repeated, and there are $made more" >&2
	exit 99
fi
[ $code = 0 ] || exit $code
[ "$verb" = build ] || one seal "$dir"
exit 0
