# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/lib.sh - run a test in the virtual environment of `make check-python` or
# `check-clients`; sourced, not run
# shellcheck shell=sh
set -eu
: "${BUILD:?}" "${ROOT:?}"
VENV=$BUILD/venv/${CLIENT:-torch}
cd "$TMPDIR"

python() {
	OMP_NUM_THREADS=1 PYTHONPATH=$ROOT/tests/python "$VENV/bin/python" -X faulthandler "$@"
}
