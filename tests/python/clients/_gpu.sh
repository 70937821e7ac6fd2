#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/_gpu.sh - device="cuda" on a GPU, with PyTorch, CuPy, JAX and Accelerate; by
# hand, with `make check-gpu`
set -eu
cd "$TMPDIR"
PYTHONPATH=$BUILD/python XLA_PYTHON_CLIENT_PREALLOCATE=false "${PYTHON:-python3}" "$ROOT/tests/python/clients/gpu_.py"
