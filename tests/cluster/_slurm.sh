#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cluster/_slurm.sh - job arrays and steps of Slurm, whose workers are killed, cancelled and
# started again
# TIMEOUT: 900
# TAKES: 200
# shellcheck disable=SC1091
. "$ROOT/tests/cluster/lib.sh"
. "$ROOT/tests/cluster/lib_slurm.sh"
start_slurm

# sbatch_waits ARGUMENT...: the exit code is that of the task that had the highest one.  It ends
# with the shell that started it.
sbatch_waits() {
	setpriv --pdeathsig KILL sbatch --wait --output=%x-%A-%a.err "$@" >sbatch.err 2>&1
}

export SLOW=80000

# ---- an array: two tasks are killed, and one is cancelled; then one for what is missing ----

begin "Slurm, array" 6
sbatch_waits --job-name=array --array=3-13:2 --wrap 'exec ./worker' &
waits=$!
kill_worker n1
kill_worker n2
tasks=$(squeue -h -r -t running -o %i)
scancel "$(echo "$tasks" | sed -n "$((1 + RANDOM % $(echo "$tasks" | wc -l)))p")" && kills=$((kills + 1))
go_on
code=0
wait $waits || code=$?
[ $code != 0 ] || die "tasks were killed, but the job is said to be well: $(cat array-*.err)"
grep -q "this worker is SLURM_ARRAY_TASK_ID [0-9]* of 3-13; it claims shards" array-*.err || die "$(cat array-*.err)"
refused_unfinished
sbatch_waits --job-name=retry --array="$retry" --wrap 'exec ./worker' || die "$(cat retry-*.err)"
finish

# ---- a step of several processes, on both nodes ----

begin "Slurm, srun" 4
srun -N 2 -n 4 ./worker 2>srun.err &
waits=$!
kill_worker n1
go_on
! wait $waits || die "a rank was killed, but srun says nothing of it"
grep -q "this worker is SLURM_PROCID [0-3] of 4; it claims shards" srun.err || die "$(cat srun.err)"
refused_unfinished
srun -N 2 -n 3 ./worker 2>again.err || die "$(cat again.err)"
finish

# ---- a time limit: each task stops well before it, and Slurm starts it again ----

# Slurm looks at time limits every 30 s, so the signal has come to all of them: 50 s of 2 minutes.
all_signalled() {
	[ "$(squeue -h -r -n limit -t running -o %L | awk -F : 'NF == 2 && 60 * $1 + $2 <= 70' | wc -l)" = 3 ]
}

begin "Slurm, --signal and requeue" 3
sbatch_waits --job-name=limit --array=0-2 --time=2 --signal=B:USR1@110 --requeue --open-mode=append \
	--wrap 'exec ./worker' &
waits=$!
until_true all_signalled
go_on
wait $waits || die "exit code $?: $(cat limit-*.err)"
kills=$(cat limit-*.err | grep -c "stopped as asked; to continue: " || :)
[ "$kills" -ge 3 ] || die "only $kills tasks of 3 stopped at the signal: $(cat limit-*.err)"
refused_unfinished
sbatch_waits --job-name=retry --array="$retry" --wrap 'exec ./worker' || die "$(cat retry-*.err)"
finish

until_true no_jobs
echo "an array, a step and a requeued array"
