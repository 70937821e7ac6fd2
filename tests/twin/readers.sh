#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# readers.sh - the library and format/shardfmt.py, each written from SHARD.md, say the same of the
# same bytes
#
# Good files: golden ones, random ones that the library wrote and random ones that shardfmt.py
# wrote, dumped as JSON by both.  Bad files: golden pages and manifests, changed at random and
# sealed again, get the same rule from both; so do shards and manifests with two faults, of which
# both must meet the same one first.  The same seed makes the same files; SEED=n tries others.
#
# TIMEOUT: 900
set -eu

: "${BUILD:=build}"
python=${PYTHON:-python3}
dir=$(mktemp -d "${TMPDIR:-/tmp}/readers.XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

command -v "$python" >/dev/null || { echo "no $python"; exit 77; }
PYTHONDONTWRITEBYTECODE=1 "$python" tests/twin/readers.py "$BUILD/tests/store/dump_shard" "$dir" "${SEED:-1}"
