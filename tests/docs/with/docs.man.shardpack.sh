# SPDX-License-Identifier: Apache-2.0
# docs.man.shardpack.sh - what the examples of shardpack's --help pack
# shellcheck shell=sh
. tests/docs/with/docs.PACKING.sh
mv train.bin raw.bin
cp tokens.bin train.bin
cp tokens.bin fineweb_0.bin
shardpack images photos/train -o ds/march --resize 64 --crop 56 --shard-records 10 -q
shardpack images photos/val -o ds/april --resize 64 --crop 56 --classes ds/march -q
