#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_order.sh - the order that shardcat prints is that of format/shardorder.py, for any world, batch and tail
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

small_source
cp "$PHOTOS"/train/cat/*_00[5-7].jpg src/a
run 0 "$PACK" images src -o ds --resize 8 --crop 8
n=13
shares=0
for options in "0 0 1 1 drop" "1 7 1 5 drop" "1 7 1 5 pad" "3 7 1 5 keep" "2 18446744073709551615 2 3 drop" \
	"2 1 3 1 pad" "0 1 4 2 pad" "5 1 20 1 pad"; do
	read -r epoch seed world batch tail <<<"$options"
	"$PYTHON" "$ROOT/format/shardorder.py" order one_level $n 1 1 1 0 "$seed" "$epoch" >order
	for ((rank = 0; rank < world; rank++)); do
		"$PYTHON" "$ROOT/format/shardorder.py" share "$tail" $n 0 "$world" "$batch" "$rank" | sed 1d |
			while read -r _ _ position _; do sed -n "$((position + 1))p" order; done >want
		run 0 "$CAT" order ds --epoch "$epoch" --seed "$seed" --world "$world" --rank "$rank" --batch "$batch" \
			--tail "$tail"
		diff want out >&2 || die "epoch, seed, world, batch, tail $options: rank $rank differs"
		shares=$((shares + 1))
	done
done

run 0 "$CAT" order ds --sequential --world 2 --rank 1
[ "$(paste -s -d ' ' out)" = "1 3 5 7 9 11" ] || die "sequential: $(cat out)"
run 2 "$CAT" order ds --world 2 --rank 2
said "shardcat: --rank 2: must be below --world 2"
run 2 "$CAT" order ds --world 2 --tail keep
run 2 "$CAT" order ds --world 20 # drops all there is
run 2 "$CAT" order ds/00000.shard
echo "$shares shares"
