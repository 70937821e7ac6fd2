#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_holes.sh - files that are as large as their maker likes, because they are holes, are refused
# with little memory: a manifest, a plan, a receipt, a table
# shellcheck disable=SC1091
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

# Sanitizers need all addresses; there the exit codes and messages are what is checked.
[ -n "${VARIANT-}" ] || ulimit -v 1500000

mkdir hole headed
truncate -s 3G hole/dataset.manifest
printf 'shardset 1\n' >headed/dataset.manifest
truncate -s 3G headed/dataset.manifest
for verb in info verify list manifest stats "order --batch 1"; do
	# shellcheck disable=SC2086
	run 1 "$CAT" $verb hole
	said "shardcat: hole/dataset.manifest: M1: the file does not begin with 'shardset '; it is not a manifest"
	# shellcheck disable=SC2086
	run 1 "$CAT" $verb headed
	grep -q "^shardcat: headed/dataset.manifest: M2: the last line is not 'end'" err || die "$(cat err)"
done

make_images src 6 2
run 1 "$PACK" images src -o d0 --resize 8 --crop 8 --classes hole
grep -q "hole/dataset.manifest: M1: the file does not begin" err || die "$(cat err)"
run 0 "$PACK" plan images src -o d --resize 8 --crop 8
cp -r d headless
truncate -s 0 headless/.shardpack/plan
truncate -s 3G headless/.shardpack/plan
run 1 "$PACK" build headless
said "shardpack: headless/.shardpack/plan: 65536 zeros at byte 0: it is not a text"
cp -r d tailed
truncate -s 3G tailed/.shardpack/plan
run 1 "$PACK" build tailed
said "shardpack: tailed/.shardpack/plan: 65536 zeros at byte 65536: it is not a text"
truncate -s 3G table.csv
run 1 "$PACK" images table.csv -o d1 --resize 8 --crop 8
said "shardpack: $PWD/table.csv: 65536 zeros at byte 0: it is not a text"
run 0 "$PACK" build d
truncate -s 3G d/.shardpack/receipts-00000 2>/dev/null || die "there is no receipt"
run 1 "$PACK" seal d
said "shardpack: d/.shardpack/receipts-00000: 65536 zeros at byte 65536: it is not a text"
echo "18 commands"
