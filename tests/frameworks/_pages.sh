#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/frameworks/_pages.sh - every block of docs/FRAMEWORKS.md; by hand, with
# `make check-frameworks`
# TIMEOUT: 1800
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false CUDA_VISIBLE_DEVICES=
CLIENT=frameworks exec "$ROOT/tests/python/clients/pages.sh" \
	pip,torch,jax,lightning,transformers,accelerate,torchdata,grain,torchtitan docs/FRAMEWORKS.md
