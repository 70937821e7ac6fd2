#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/twin/finish_torch.sh - finished rows are PyTorch's on a CPU; PYTHON_TORCH names a Python that has it
set -eu
: "${BUILD:=build}"

for python in "${PYTHON_TORCH-}" "${PYTHON-}" python3; do
	[ -n "$python" ] && "$python" -W ignore -c 'import torch' 2>/dev/null &&
		exec "$python" -W ignore tests/twin/finish_torch.py "$BUILD/tests/twin/dump_finish"
done
echo "no Python with PyTorch; PYTHON_TORCH may name one"
exit 77
