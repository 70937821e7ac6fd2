# SPDX-License-Identifier: Apache-2.0
# docs.man.shardpack.sh - what the examples of shardpack's --help pack
# shellcheck shell=sh
. tests/docs/with/docs.PACKING.sh
mv train.bin raw.bin
cp tokens.bin train.bin
cp tokens.bin fineweb_0.bin
