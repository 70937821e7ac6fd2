#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cluster/_ray.sh - tasks of Ray on three nodes: processes and a node are killed
# TIMEOUT: 1800
# shellcheck disable=SC1091
. "$ROOT/tests/cluster/lib_python.sh"

# Ray has sockets in this folder, and their names are 107 bytes at most.
RAY_TMPDIR=$(mktemp -d /tmp/ray.XXXXXX)
at_end 'rm -rf "$RAY_TMPDIR"'
# Its tasks are nice to others by default, and so they would wait for all other tests.
export RAY_TMPDIR RAY_USAGE_STATS_ENABLED=0 RAY_worker_niceness=0
build_on ray
