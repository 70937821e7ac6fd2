# SPDX-License-Identifier: Apache-2.0
# docs.man.shardcat.sh - a dataset for the examples of shardcat's --help
# shellcheck shell=sh
unset PYTHONPATH # this needs Pillow, and not libshard
"$PYTHON" tests/cli/make_images.py photos/train 2048 4
mv photos/train/class_00 photos/train/cat
shardpack images photos/train -o ds/train --resize 32 --crop 32
