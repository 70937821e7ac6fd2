#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cluster/_workers.sh - workers without a scheduler, on two machines; nobody starts them again
# shellcheck disable=SC1091
. "$ROOT/tests/cluster/lib.sh"

# four NAME: four of them on a machine of their own
four() {
	NAME=$1 machine xargs -P 4 -I{} sh -c './worker --steal 2>"$NAME-{}.err" || :' < <(seq 4)
}

begin "xargs, --steal" 8
four n1 &
four n2 &
for _ in 1 2 3; do kill_worker; done
go_on
wait
refused_unfinished
./worker --steal 2>again.err || die "$(cat again.err)"
finish
echo "8 workers on 2 machines"
