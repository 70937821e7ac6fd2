#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/fault/change_kill.sh - all verbs that make or change a dataset, killed at random moments:
# the folder has the old dataset or the new one, never anything between, and the same command ends
# with the bytes of an undisturbed one
#
# KILLS says how many kills, SEED which ones.  Before a release there are 10,000 by hand:
#   for seed in $(seq 10); do SEED=$seed KILLS=1000 make check T=fault/change_kill; done
# TIMEOUT: 3600
# TAKES: 60
# shellcheck disable=SC1091
. "$ROOT/tests/fault/lib.sh"

KILLS=${KILLS:-840} SEED=${SEED:-1}
RANDOM=$SEED

# ---- the folder before each verb and after it, and the command ----

small=(--resize 8 --crop 8 --shard-records 6)
make_images src 48
mkdir one two
for class in src/*; do
	mkdir -p "one/${class##*/}" "two/${class##*/}"
	find "$class" -type f | sort | sed -n 'p;n' | xargs -I{} cp {} "one/${class##*/}"
	find "$class" -type f | sort | sed -n 'n;p' | xargs -I{} cp {} "two/${class##*/}"
done
run 0 "$PACK" images one -o a "${small[@]}"
run 0 "$PACK" images two -o b "${small[@]}" --classes a
run 0 "$PACK" plan images one -o ds "${small[@]}" # a plan remembers the name of its folder
mv ds planned
cp -r planned ds && run 0 "$PACK" build ds && mv ds built
mkdir nothing

VERBS=(images build steal seal merge split append replace)
declare -A before=([images]=nothing [build]=planned [steal]=planned [seal]=built [merge]=nothing [split]=nothing
	[append]=a [replace]=b)

# command_of VERB [HOW]: into `command`; with --by HOW, or one of the three ways
command_of() {
	local hows=(link copy clone)
	local by=${2-${hows[RANDOM % 3]}}
	case $1 in
	images) command=(images one -o ds -j2 "${small[@]}") ;;
	build) command=(build ds -j2) ;;
	steal) command=(build ds -j2 --steal) ;;
	seal) command=(seal ds) ;;
	merge) command=(merge a b -o ds --by $by) ;;
	split) command=(split a --shards 1-2 -o ds --by $by) ;;
	append) command=(append ds b --by $by) ;;
	replace) command=(images one -o ds -j2 "${small[@]}" --replace) ;;
	esac
}

# clean DIR FROM: DIR is a copy of the folder FROM, and nothing lies beside it
clean() {
	rm -rf "$1" ".$1.new" && cp -r "$2" "$1"
}

declare -A calls
for verb in "${VERBS[@]}"; do
	command_of "$verb" copy # which takes most calls
	clean ds "${before[$verb]}"
	rm -f calls
	SHIM_COUNT=$PWD/calls run 0 with_shim 'die writes' "$PACK" "${command[@]}"
	calls[$verb]=$(stat -c %s calls)
	[ "${calls[$verb]}" -ge 10 ] || die "$verb: only ${calls[$verb]} calls were counted"
	mv ds "after-$verb"
done
same a after-images
same a after-seal
same a after-replace

# ---- what must be true after a kill ----

# finals DIR: the files that have a final name, each with its hash
finals() {
	(cd "$1" && shopt -s nullglob && sha256sum -- *.shard */*.shard dataset.* /dev/null)
}
for verb in "${VERBS[@]}"; do
	{ finals "${before[$verb]}" && finals "after-$verb"; } >"finals-$verb"
done

# whole VERB: files that have a final name are those of the folder before or after; if it had a
# dataset it has one; and if it has one, that is whole.  Prints what is wrong.
whole() {
	! finals ds | grep -vxF -f "finals-$1" || {
		echo "is neither the old one nor the new one"
		return 1
	}
	[ -e ds/dataset.manifest ] || [ ! -e "${before[$1]}/dataset.manifest" ] || {
		echo "there is no dataset"
		return 1
	}
	[ ! -e ds/dataset.manifest ] || "$CAT" verify ds --sha256 2>&1
}

# by_call VERB, by_clock VERB: returns 1 if it had ended before
by_call() {
	local code=0
	SHIM_SEED=$RANDOM SHIM_DELAY_US=300 SHIM_DIE_AT=$((1 + RANDOM % calls[$1])) \
		with_shim "die writes delay" "$PACK" "${command[@]}" >killed 2>&1 </dev/null || code=$?
	[ $code = 137 ]
}

by_clock() {
	local code=0 pid
	SHIM_SEED=$RANDOM SHIM_DELAY_US=3000 exec_shim delay "$PACK" "${command[@]}" >killed 2>&1 </dev/null &
	pid=$!
	sleep "0.$(printf '%03d' $((RANDOM % 60)))"
	kill -9 $pid 2>/dev/null || :
	wait $pid 2>/dev/null || code=$?
	[ $code = 137 ]
}

# ---- the kills ----

declare -A killed
total=0 clock=0 late=0
for ((try = 0; total < KILLS; try++)); do
	[ $try -lt $((3 * KILLS)) ] || die "only $total of $try kills came in time"
	verb=${VERBS[try % ${#VERBS[@]}]}
	command_of "$verb"
	clean ds "${before[$verb]}"
	rounds=$((RANDOM % 4 ? 1 : 2)) # the command that cleans up may be killed, too
	for ((round = 0; round < rounds; round++)); do
		how=by_call
		[ $((RANDOM % 4)) != 0 ] || how=by_clock
		if $how "$verb"; then
			total=$((total + 1)) killed[$verb]=$((${killed[$verb]-0} + 1))
			[ $how = by_call ] || clock=$((clock + 1))
		else
			late=$((late + 1))
		fi
		mkdir -p ds
		whole "$verb" >why || die "$verb, try $try, seed $SEED, after ${command[*]}: $(cat why killed)"
	done
	run 0 "$PACK" "${command[@]}"
	case $verb in
	build | steal) run 0 "$PACK" seal ds && same a ds ;; # receipts have times
	*) same "after-$verb" ds ;;
	esac
	[ ! -e .ds.new ] || die "$verb: left behind: $(contents .ds.new)"
done
for verb in "${VERBS[@]}"; do
	[ "${killed[$verb]-0}" -ge $((KILLS / 20)) ] || die "$verb: only ${killed[$verb]-0} kills"
done

# ---- negative controls: each verb, broken, is noticed ----

# control VERB PROGRAM: killed at each call in turn until ds is neither the old nor the new one
control() {
	local at
	for ((at = 1; at <= calls[$1]; at++)); do
		command_of "$1" copy
		clean ds "${before[$1]}"
		SHIM_DIE_AT=$at with_shim "die ${SHIM_MORE-} writes" "$2" "${command[@]}" >killed 2>&1 </dev/null || :
		mkdir -p ds
		whole "$1" >why || return 0
	done
	die "$1: the control is not noticed"
}

for verb in images build steal merge split append; do
	SHIM_MORE=direct control $verb "$PACK" # which writes under final names
done
# One with a manifest that is empty for a moment.
name='"ds\/dataset.manifest"'
empty="shard_publish($name, \"\", 0, 0, \\&err) == SHARD_OK \\&\\& !remove($name)"
break_pack seal_dataset.c "s/if (\(shard_seal_finish(.*\) == SHARD_OK)/if ($empty \&\& \1 == SHARD_OK)/"
control seal ./broken
# One that removes the old dataset before it gives its name to the new one.
gone='remove_dataset(out_absolute) != EXIT_DONE || rename(work_dir, out_absolute) != 0'
break_pack output.c "s/if (renameat2(.*RENAME_EXCHANGE) != 0)/if ($gone)/"
control replace ./broken

echo "$total kills of ${#VERBS[@]} verbs, $clock by the clock: the old dataset or the new one;" \
	"$late came late, and 8 controls are caught"
