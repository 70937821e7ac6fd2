#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cluster/_slurm_node.sh - a machine of Slurm is lost with all its workers: Slurm starts them
# again on the other one, where nobody can see that they are dead, and their claims go stale
# TIMEOUT: 900
# TAKES: 250
# shellcheck disable=SC1091
. "$ROOT/tests/cluster/lib.sh"
. "$ROOT/tests/cluster/lib_slurm.sh"
start_slurm

begin "Slurm, a node is lost" 6
SLOW=80000 sbatch --wait --job-name=node --array=0-5 --open-mode=append --output=%x-%A-%a.err --wrap 'exec ./worker' \
	>sbatch.err 2>&1 &
waits=$!
both_at_work() {
	at_work n1 && at_work n2
}
until_true both_at_work
sleep 0.$((RANDOM % 10))
kills=$(workers_there n2 | wc -l)
lose_node n2
go_on
wait $waits || die "exit code $?: $(cat node-*.err) $(slurm_log)"
taken=$(cat node-*.err | grep -c "taking over from .* which has given no sign of life" || :)
[ "$taken" != 0 ] || die "no claim of the lost node went stale: $(cat node-*.err)"
[ -z "$(workers_there n2)" ] || die "workers live on a node that is lost"
refused_unfinished
start_node n2
until_true nodes_idle
srun -w n2 -n 2 ./worker 2>again.err || die "$(cat again.err)"
finish
echo "a lost node, $kills workers killed, $taken claims went stale"
