#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cluster/_ssh.sh - workers that ssh starts on two machines, and nobody starts again
# TIMEOUT: 600
# TAKES: 60
# shellcheck disable=SC1091
. "$ROOT/tests/cluster/lib.sh"
. "$ROOT/tests/cluster/lib_ssh.sh"
start_ssh

begin "ssh, --steal" 6
workers_of=()
for k in 1 2 3 4 5 6; do
	ssh node$((k % 2 + 1)) "'$PWD/worker' --steal" 2>w$k.err &
	workers_of+=($!)
done
for _ in 1 2; do kill_worker; done
go_on
failed=0
for pid in "${workers_of[@]}"; do wait "$pid" || failed=$((failed + 1)); done
[ $failed = 2 ] || die "$failed workers failed, and 2 were killed: $(cat w?.err)"
refused_unfinished
ssh node2 "'$PWD/worker' --steal" 2>again.err || die "$(cat again.err)"
finish
echo "6 workers on 2 machines"
