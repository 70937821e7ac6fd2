#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/fault/pack_claims.sh - workers that claim shards: each is built once, by whoever is there;
# killed, stopped and silent workers are replaced, and the dataset is that of a single command
# TIMEOUT: 900
# TAKES: 70
# shellcheck disable=SC1091
STEAL="" # its workers are all of its own
. "$ROOT/tests/fault/lib.sh"

IMAGES=320
RECIPE=(--resize 32 --crop 32 --shard-records $((IMAGES / SHARDS)))
make_reference

timed quick 2000           # silent owners are replaced after 2 s
timed patient $PATIENT_MS  # ... never

plan() {
	rm -rf ds
	run 0 "$PACK" plan images src -o ds "${RECIPE[@]}" -q
}

# worker NAME COMMAND...: in the background, slowly; its words go to NAME.err
worker() {
	local name=$1
	shift
	SHIM_SEED=$RANDOM SHIM_DELAY_US=${DELAY-4000} exec_shim "${WORKER-delay}" "$@" >"$name.err" 2>&1 </dev/null
}

built() { # FILE...: the shards that these workers built, together
	sed -n 's/^shardpack: ds: built \([0-9]*\) shard.*/\1/p' "$@" | awk '{sum += $1} END {print sum + 0}'
}

claims() {
	find ds/.shardpack -name 'claim-*' | sed 's/.*-0*\([0-9]\)/\1/' | sort -n | tr '\n' ' ' | sed 's/ $//'
}

some_claim() {
	[ -n "$(claims)" ]
}

ends() { # CODE PID NAME
	local code=0
	wait "$2" || code=$?
	[ $code = "$1" ] || die "$3: exit code $code instead of $1: $(cat "$3.err")"
}

sealed() {
	[ -z "$(claims)" ] || die "claims are left: $(claims)"
	run 0 "$PACK" seal ds -q
	same reference ds
}

foreign() { # BEAT NONCE: a claim of a process on a machine that nobody can look into
	printf 'claim 1 beat %010d works\nnonce %s host elsewhere boot 0 space 0 pid 1 start 1 job -\n' "$1" "$2"
}

# waits NAME PROGRAM SHARD...: a worker, as $pid, that waits for these shards of another machine.  It
# begins with shard 0, so it names them in this order.
waits() {
	local name=$1 program=$2 shard list=""
	shift 2
	for shard; do
		foreign 0 aaaaaaaaaaaaaaaa >"ds/.shardpack/claim-$(printf %05d "$shard")"
		list+=", $shard on elsewhere (process 1)"
	done
	worker "$name" "./$program" build ds --steal --part 0/1 &
	pid=$!
	until_true grep -qx "shardpack: waiting for shards that others build: ${list#, }" "$name.err"
}

# ---- several workers, each shard once ----

plan
pids=()
for k in 0 1 2 3; do
	worker w$k ./patient build ds --steal --part $k/4 -j1 &
	pids+=($!)
done
for k in 0 1 2 3; do ends 0 "${pids[k]}" w$k; done
[ "$(built w?.err)" = $SHARDS ] || die "$(built w?.err) shards were built: $(cat w?.err)"
sealed

# Tasks of an array, ranks of a job and a lone worker: each of them is enough.
plan
env SLURM_ARRAY_TASK_ID=17 SLURM_ARRAY_TASK_MIN=3 SLURM_ARRAY_TASK_MAX=30 SLURM_ARRAY_JOB_ID=5 \
	SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 "$PACK" build ds >array.err 2>&1
grep -qx "shardpack: this worker is SLURM_ARRAY_TASK_ID 17 of 3-30, SLURM_PROCID 1 of 2; it claims shards that \
are missing" array.err || die "$(cat array.err)"
[ "$(built array.err)" = $SHARDS ] || die "$(cat array.err)"
sealed
plan
run 2 "$PACK" build ds --no-wait
run 2 "$PACK" build ds --steal --again
run 2 env JOB_COMPLETION_INDEX=4 "$PACK" build ds --again
run 2 env SGE_TASK_ID=rubbish "$PACK" build ds
said_only "shardpack: SGE_TASK_ID: is 'rubbish', and must be a number below 10^9; unset it, or say with --part k/n \
--steal where this worker begins"
run 0 env SGE_TASK_ID=rubbish "$PACK" build ds --part 1/2 -q # the part alone, and no claims
[ "$(shards_in ds)" = $((SHARDS / 2)) ] || die "$(shards_in ds) shards of a part"
run 0 env JOB_COMPLETION_INDEX=4 "$PACK" build ds
[ "$(built err)" = $((SHARDS / 2)) ] || die "$(cat err)"
run 0 env JOB_COMPLETION_INDEX=5 "$PACK" build ds
[ "$(built err)" = 0 ] || die "$(cat err)"
sealed

# ---- what others built, and what is gone or cannot be built ----

# A shard that somebody removes later is built all the same.
plan
pids=()
for k in 0 1 2; do
	worker r$k ./patient build ds --steal --part $k/3 -j1 &
	pids+=($!)
done
for k in 0 1 2; do ends 0 "${pids[k]}" r$k; done
[ "$(built r?.err)" = $SHARDS ] || die "$(built r?.err) shards were built: $(cat r?.err)"
rm ds/00006.shard
run 0 ./patient build ds --steal
[ "$(built err)" = 1 ] || die "$(cat err)"
sealed

# What is missing is told exactly, where others built some of their shards and gave up.
plan
waits exact patient 4 5 6 7
run 0 "$PACK" status ds
printed "claimed: 4-7, by process 1 on elsewhere"
cp reference/0000{4,6,7}.shard ds
rm ds/.shardpack/claim-0000{4,6,7}
foreign 1 aaaaaaaaaaaaaaaa | sed s/works/fails/ >fails
mv fails ds/.shardpack/claim-00005
ends 1 $pid exact
grep -qx "shardpack: missing: 5" exact.err || die "$(cat exact.err)"
rm ds/.shardpack/claim-00005
run 0 ./patient build ds --steal
[ "$(built exact.err err)" = $((SHARDS - 3)) ] || die "$(cat exact.err err)"
sealed

# A disk needs no room for what others build.
plan
SHIM_ROOM=$(($(cat reference/*.shard | wc -c) / 2)) && export SHIM_ROOM
run 3 with_shim room ./patient build ds --steal
grep -q "the dataset needs .* nothing was written$" err || die "$(cat err)"
for shard in $(seq $((SHARDS - 1))); do
	foreign 0 aaaaaaaaaaaaaaaa >"ds/.shardpack/claim-$(printf %05d "$shard")"
done
WORKER="delay room" worker small ./patient build ds --steal --part 0/1 &
pid=$!
unset SHIM_ROOM
until_true grep -q "^shardpack: waiting for shards that others build: 1 on elsewhere" small.err
cp reference/*.shard ds
rm ds/.shardpack/claim-*
ends 0 $pid small
sealed

# ---- killed ----

plan
kills=0
for try in $(seq 30); do
	[ $kills -lt 3 ] || break
	DELAY=100000 worker killed ./patient build ds --steal -j1 &
	victim=$!
	until_true some_claim
	kill -9 $victim 2>/dev/null || :
	wait $victim 2>/dev/null || :
	no_wrong_file ds || die "after kill $try"
	if some_claim; then kills=$((kills + 1)); else plan; fi
done
[ $kills = 3 ] || die "only $kills of $try kills came in time"
run 0 ./patient build ds --steal
grep -q "taking over from .* which has exited" err || die "$(cat err)"
sealed

# So it is if nobody has asked for its exit code, as in a container without an init.
for try in $(seq 30); do
	plan
	(
		DELAY=100000 worker killed ./patient build ds --steal -j1 &
		echo $! >victim
		exec sleep 600
	) &
	parent=$!
	until_true some_claim
	kill -9 "$(cat victim)" 2>/dev/null && some_claim && break
	kill $parent
done
run 0 timeout 60 ./patient build ds --steal
grep -q "taking over from .* which has exited" err || die "$(cat err)"
[ -e "/proc/$(cat victim)/stat" ] || die "somebody asked for the exit code"
kill $parent
sealed

# ---- silent: of another machine, while beats go on, and when they end ----

# silent NAME: NAME waits for shard 5, whose owner then beats 40 times; false if it does not.  It
# takes over `waited` ms after the last beat.  On a busy machine beats may come late: then again.
# The owner writes through a descriptor, and so never into the claim of the one that takes over.
silent() {
	local try beat seen last now gap pid owner
	for try in $(seq 20); do
		plan
		foreign 0 aaaaaaaaaaaaaaaa >ds/.shardpack/claim-00005
		exec {owner}<>ds/.shardpack/claim-00005
		"./$1" build ds --steal -j2 >silent.err 2>&1 </dev/null &
		pid=$! gap=0 seen=0 last=$(date +%s%N)
		for ((beat = 1; seen < 40; beat++)); do
			[ ! -e ds/00005.shard ] && kill -0 $pid || break
			! grep -q "waiting for shards" silent.err || seen=$((seen + 1))
			foreign "$beat" aaaaaaaaaaaaaaaa 1<>"/proc/self/fd/$owner"
			now=$(date +%s%N)
			[ $gap -gt $((now - last)) ] || gap=$((now - last))
			last=$now
			sleep 0.1
		done
		exec {owner}>&-
		[ -e ds/00005.shard ] || break
		ends 0 $pid silent
		[ $gap -gt 1000000000 ] || return 1
		[ "$try" -lt 20 ] || die "beats came late in each of 20 tries"
	done
	ends 0 $pid silent
	waited=$((($(date +%s%N) - last) / 1000000))
	grep -q "waiting for shards that others build: 5 on elsewhere (process 1)$" silent.err ||
		die "$(cat silent.err)"
	grep -q "shard 00005: taking over from elsewhere (process 1), which has given no sign of life$" silent.err ||
		die "$(cat silent.err)"
}
silent quick || die "a worker that beats was replaced: $(cat silent.err)"
[ $waited -ge 1700 ] || die "replaced after $waited ms"
sealed

# ---- stopped, replaced, and going on ----

stopped() { # SEAL_FIRST
	local victim try
	for try in 1 2 3 4 5; do
		plan
		DELAY=100000 worker stopped ./patient build ds --steal -j1 &
		victim=$!
		until_true some_claim
		kill -STOP $victim
		! some_claim || break
		kill -CONT $victim
		ends 0 $victim stopped
	done
	run 0 ./quick build ds --steal
	grep -q "which has given no sign of life" err || die "$(cat err)"
	[ "$(shards_in ds)" = $SHARDS ] || die "the stopped worker was not replaced: $(cat err)"
	[ "$1" = no ] || run 0 "$PACK" seal ds -q
	kill -CONT $victim
	ends 0 $victim stopped
	no_wrong_file ds || die "the stopped worker did harm"
	[ "$1" = yes ] || sealed
	same reference ds
}
stopped no
stopped yes

# ---- overtaken while taking over ----

# overtaken NAME: two workers replace a silent one, and the other one is faster; what NAME says
overtaken() {
	plan
	foreign 0 aaaaaaaaaaaaaaaa >ds/.shardpack/claim-00005
	foreign 0 bbbbbbbbbbbbbbbb >faster
	SHIM_CLAIM=$PWD/faster run 0 with_shim usurp "./$1" build ds --steal -v
	sed -n 's/.*shard 00005: \(another process was faster\|taking over\).*/\1/p' err | paste -sd ,
}
[ "$(overtaken quick)" = "another process was faster,taking over" ] || die "an overtaken worker went on: $(cat err)"
sealed

# ---- a worker's own faults, and those of the inputs ----

# It cannot read: it gives back what it claimed, at once, and others go on.
plan
gone=$(find src -name '*.jpg' | sort | sed -n 100p)
SHIM_PATH=${gone#src/} with_shim blind ./patient build ds --steal -j1 >blind.err 2>&1 && die "blind"
[ -z "$(claims)" ] || die "a worker that cannot read keeps claims: $(claims)"
[ "$(shards_in ds)" -lt $SHARDS ] || die "it could read"
run 0 ./patient build ds --steal
sealed

# Interrupted: the same.
plan
DELAY=100000 worker interrupted ./patient build ds --steal -j1 &
pid=$!
until_true some_claim
kill -INT $pid
ends 130 $pid interrupted
[ -z "$(claims)" ] || die "claims are left: $(claims)"

# Bad inputs: the shard is left to nobody of the same job, and to each other one once.
cp -r src bad && find bad -name '*.jpg' | sort | sed -n 100p | xargs -I{} truncate -s 500 {}
rm -rf ds && run 0 "$PACK" plan images bad -o ds "${RECIPE[@]}" -q
in_job() { # ID COMMAND...
	local id=$1
	shift
	env SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_JOB_ID="$id" "$@"
}
run 1 in_job 7 ./patient build ds
grep -q "1 bad input" err || die "$(cat err)"
[ "$(claims | wc -w)" = 1 ] || die "claims: $(claims)"
[ "$(shards_in ds)" = $((SHARDS - 1)) ] || die "$(shards_in ds) shards"
run 1 in_job 7 ./patient build ds
grep -q "shards could not be built by others, and their messages say why: $(claims) on " err || die "$(cat err)"
run 0 "$PACK" status ds --json
[ "$(json out 'd["running"], d["missing"], d["claims"][0]["failed"]')" = "(0, 1, True)" ] || die "$(cat out)"
run 1 in_job 8 ./patient build ds
grep -q "1 bad input" err || die "$(cat err)"

# Many of one's own that failed do not hide for whom it waits.
find bad -name '*.jpg' | sort | sed -n '1~2p' | xargs truncate -s 500
rm -rf ds && run 0 "$PACK" plan images bad -o ds "${RECIPE[@]}" -q
waits many patient 15
kill -INT $pid
ends 130 $pid many
[ "$(shards_in ds)" -lt $((SHARDS - 6)) ] || die "$(shards_in ds) shards of bad inputs"

# ---- not waiting ----

plan
foreign 0 aaaaaaaaaaaaaaaa >ds/.shardpack/claim-00005
run 0 ./patient build ds --steal --no-wait
said "shardpack: ds: built $((SHARDS - 1)) shards; 1 of $SHARDS is missing"
said "shardpack: missing: 5"
run 0 "$PACK" status ds
printed "claimed: 5, by process 1 on elsewhere"
run 0 "$PACK" status ds --json
[ "$(json out 'd["running"], d["claims"][0]["host"], d["claims"][0]["first"], d["claims"][0]["job"]')" = \
	"(1, 'elsewhere', 5, None)" ] || die "$(cat out)"
# Words are encoded in the file only; a claim that cannot be read is one of nobody.
foreign 0 aaaaaaaaaaaaaaaa | sed 's/elsewhere/else%20where/; s/job -/job SLURM_ARRAY_JOB_ID%2077/' \
	>ds/.shardpack/claim-00005
run 0 "$PACK" status ds
printed "claimed: 5, by process 1 on else where, job SLURM_ARRAY_JOB_ID 77"
run 0 "$PACK" status ds --json
[ "$(json out 'd["claims"][0]["host"], d["claims"][0]["process"], d["claims"][0]["job"]')" = \
	"('else where', 1, 'SLURM_ARRAY_JOB_ID 77')" ] || die "$(cat out)"
echo rubbish >ds/.shardpack/claim-00005
run 0 "$PACK" status ds
printed "claimed: 5"
run 0 "$PACK" status ds --json
[ "$(json out 'd["claims"][0]["host"], d["claims"][0]["process"], d["claims"][0]["job"]')" = "(None, None, None)" ] ||
	die "$(cat out)"

# ---- asked to stop: the shard is finished, and claims are given back ----

graceful() { # CODE SIGNAL ARGUMENT...
	local code=$1 signal=$2 pid
	shift 2
	plan
	DELAY=100000 worker grace ./patient build ds -j1 "$@" &
	pid=$!
	until_true test -e ds/00000.shard
	kill "-$signal" $pid
	ends "$code" $pid grace
	no_temps ds || die "$*: $(contents ds)"
	[ -z "$(claims)" ] || die "$*: claims are left: $(claims)"
	no_wrong_file ds || die "$*"
	[ "$code" = 0 ] || [ "$(shards_in ds)" -lt $SHARDS ] || die "$*: nothing was left to do"
}
graceful 75 USR1
grep -q "stopped as asked; to continue: .*patient build ds -j1$" grace.err || die "$(cat grace.err)"
run 0 "$PACK" build ds -q
sealed
graceful 75 USR1 --steal --part 0/1
graceful 75 TERM --grace --report grace.html
grep -q "<b>Interrupted</b> (exit code 75)" grace.html || die "a page has another word than the JSON"
graceful 130 TERM
graceful 130 TERM --steal --part 0/1
# A disk that fails, or inputs that cannot be read, are not hidden behind it: Slurm may start a
# worker that ends with 75 again, for ever.
for how in "" "--steal --part 0/1"; do # both begin with shard 0, which needs all folders
	plan
	# shellcheck disable=SC2086 # words
	run 3 with_shim "stop unnamed" ./patient build ds -j1 $how
	grep -q "shard: renaming the temporary file to it: Input/output error" err || die "$(cat err)"
	[ -z "$(claims)" ] || die "claims are left: $(claims)"
	mv src/class_00 away
	# shellcheck disable=SC2086
	run 3 with_shim stop ./patient build ds -j1 $how
	mv away src/class_00
	grep -q "inputs could not be read; shards that need one of them were not published" err || die "$(cat err)"
	# shellcheck disable=SC2086
	run 75 with_shim stop ./patient build ds -j1 $how
	[ "$(shards_in ds)" = 1 ] || die "$(shards_in ds) shards"
done
# A worker that waits for others stops, too.
plan
waits grace patient 5
kill -USR1 $pid
ends 75 $pid grace

# Nor does one wait for a build that is gone.
plan
waits gone patient 5
rm -rf removed && mv ds/.shardpack removed
ends 3 $pid gone
grep -q "ds/.shardpack: No such file or directory, and shards are missing; another process removed it$" gone.err ||
	die "$(cat gone.err)"

# ---- negative controls: what would be wrong is noticed ----

# It looks ten times between two beats, so that on a busy machine, too, a beat seems to be missing.
timed hasty 2000 's/return now_ns - w->since_ns >= .*/return true;/; s/\.look = .*/.look = 10000000,/'
silent hasty && die "the control that takes over from a worker that beats is not noticed"
wait
timed sure 2000 's/return !claim_look(path, &v) .*/return true;/'
[ "$(overtaken sure)" = "taking over" ] || die "the control that does not read back is not noticed"
echo "4 workers, arrays, removed and failed shards, killed, silent, stopped and overtaken workers, faults, grace; 2 controls"
