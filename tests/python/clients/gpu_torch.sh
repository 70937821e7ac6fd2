#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/clients/gpu_torch.sh - what bench/gpu.sh compares with: an epoch by PyTorch's
# DataLoader, here without a GPU
. "${0%/*}/lib.sh"
head -c 200000 /dev/urandom >records
program=$ROOT/bench/gpu_torch.py
answer=$(TORCH_DEVICE=cpu python "$program" 4 1000 records 4096 100 records 150000 17)
echo "$answer" | grep -qE '^[0-9]+\.[0-9]{4} [0-9]+$' || { echo "it says: $answer" && exit 1; }
! TORCH_DEVICE=cpu python "$program" 4 1000 records 4096 196 >out 2>&1 ||
	{ echo "it reads what is not there: $(cat out)" && exit 1; }
status=0
answer=$(CUDA_VISIBLE_DEVICES='' python "$program" 4 1000 records 4096 100) || status=$?
case $status:$answer in "77:PyTorch "*" finds no GPU") ;; *) echo "without a GPU: $status, $answer" && exit 1 ;; esac
