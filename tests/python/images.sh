#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/python/images.sh - libshard.Image: pixels of shardpack images, bad images, decoders that end
. "${0%/*}/lib.sh"
PATH=$BUILD/bin:$PATH python "$ROOT/tests/python/images.py"
