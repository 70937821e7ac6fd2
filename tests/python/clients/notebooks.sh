#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/notebooks.sh - the tutorials that are notebooks run in Jupyter's kernel
# TIMEOUT: 600
# TAKES: 60
set -eu
. "$ROOT/tests/docs/lib.sh"
python=$BUILD/venv/torch/bin/python
"$python" -c 'import nbclient, ipykernel' 2>/dev/null ||
	{ echo "nbclient or ipykernel is missing: remove $BUILD/venv/torch, and make check-python" && exit 77; }
HOME=$TMPDIR/home # for what Jupyter keeps
JUPYTER_PREFER_ENV_PATH=1
export HOME JUPYTER_PREFER_ENV_PATH
mkdir "$HOME" "$TMPDIR/work"
cd "$TMPDIR/work"
exec "$python" "$ROOT/tests/python/clients/notebooks.py" "$ROOT"
