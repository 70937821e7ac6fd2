#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cluster/_submitit.sh - tasks of submitit, jobs on this machine: some are killed
# TIMEOUT: 1800
# shellcheck disable=SC1091
. "$ROOT/tests/cluster/lib_python.sh"
build_on submitit
