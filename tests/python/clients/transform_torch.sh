#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/transform_torch.sh - transformed rows are PyTorch's on a CPU
. "${0%/*}/lib.sh"
python -W error "$ROOT/tests/python/clients/transform_torch.py" "$BUILD/tests/twin/dump_transform"
