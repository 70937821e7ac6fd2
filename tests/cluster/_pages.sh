#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/cluster/_pages.sh - a page whose blocks need Slurm, MPI and ssh, from its first block to its
# last
# TIMEOUT: 900
# TAKES: 90
# shellcheck disable=SC1091
. "$ROOT/tests/cluster/lib.sh"
. "$ROOT/tests/docs/lib.sh"
use_python "$PYTHON"
export PYTHONPATH=$BUILD/python
cd "$TMPDIR"
. "$ROOT/tests/cluster/lib_slurm.sh"
. "$ROOT/tests/cluster/lib_ssh.sh"
start_slurm
start_ssh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

story="blocks of docs/PACKING.md" workers=- began=$SECONDS
run_pages slurm,mpi,ssh docs/PACKING.md
row "as shown"
