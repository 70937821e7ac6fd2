#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cluster/_mpi.sh - ranks of Open MPI, which ends all of them when one is killed
# TIMEOUT: 600
# TAKES: 60
# shellcheck disable=SC1091
. "$ROOT/tests/cluster/lib.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # which mpirun wants to hear twice

ranks() { # COUNT
	machine mpirun --oversubscribe -n "$1" ./worker >>mpi.err 2>&1
}

begin "Open MPI, mpirun" 4
for _ in 1 2; do
	ranks 4 &
	waits=$!
	kill_worker
	! wait $waits || die "a rank was killed, but mpirun says nothing of it"
done
grep -q "this worker is OMPI_COMM_WORLD_RANK [0-3] of 4; it claims shards" mpi.err || die "$(cat mpi.err)"
go_on
(ranks 4) || die "$(cat mpi.err)"
refused_unfinished
(ranks 3) || die "$(cat mpi.err)" # any number
finish
echo "4 ranks"
