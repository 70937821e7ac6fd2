#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/images.sh - libshard.Image: pixels of shardpack images, bad images, decoders that end
. "${0%/*}/lib.sh"
# A decoder here dies of SIGSEGV, which AddressSanitizer would turn into an exit.
ASAN_OPTIONS=${ASAN_OPTIONS-}:handle_segv=0 PATH=$BUILD/bin:$PATH python "$ROOT/tests/python/images.py"
