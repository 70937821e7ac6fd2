#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cluster/_workers.sh - workers without a scheduler, which xargs starts once
# shellcheck disable=SC1091
. "$ROOT/tests/cluster/lib.sh"

begin "none: xargs, --steal" 6
seq 6 | xargs -P 6 -I{} sh -c './worker --steal 2>w{}.err || :' &
for _ in 1 2 3; do kill_worker; done
wait
refused_unfinished
./worker --steal 2>again.err || die "$(cat again.err)"
finish
echo "6 workers, $kills killed"
