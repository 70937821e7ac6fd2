#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/frameworks/_table.sh - what each framework is given on several ranks, after a resume too; by
# hand, with `make check-frameworks`, which shows the table
# TIMEOUT: 3600
CLIENT=frameworks
. "$ROOT/tests/python/clients/lib.sh"
export GLOO_SOCKET_IFNAME=lo HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false CUDA_VISIBLE_DEVICES=
status=0
python "$ROOT/tests/frameworks/frameworks.py" "$ROOT/docs/FRAMEWORKS.md" >table 2>&1 || status=$?
cat table
cp table "$BUILD/frameworks"
exit $status
