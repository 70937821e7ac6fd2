# SPDX-License-Identifier: Apache-2.0
# docs.GPU.sh - a GPU for docs/GPU.md: the driver that tests have, and libshard's kernels as C
# shellcheck shell=sh
cc -std=gnu11 -D_GNU_SOURCE -O2 -ffp-contract=off -I. -Iinclude -c tests/cuda/twins.c -o twins.o
export LD_LIBRARY_PATH="$BUILD/tests/cuda/full:$LD_LIBRARY_PATH"
