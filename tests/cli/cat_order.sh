#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_order.sh - the order that shardcat prints is that of format/shardorder.py, for any kind,
# world, batch, tail and token
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

ORDER=("$PYTHON" "$ROOT/format/shardorder.py")
make_images src 61 2
run 0 "$PACK" images src -o ds --resize 8 --crop 8
n=61

# order_is KIND r w L u SEED EPOCH: the epoch's whole order, for what follows
order_is() {
	"${ORDER[@]}" order "$1" $n "$2" "$3" "$4" "$5" "$6" "$7" >order
}
# wanted WORLD RANK BATCH TAIL POSITION: what the rank gets of it from the position on, as part 7
# has it
wanted() {
	"${ORDER[@]}" share "$4" $n "$5" "$1" "$3" "$2" |
		awk 'NR == FNR { order[NR - 1] = $1; next } FNR > 1 { print order[$3] }' order -
}
options_of() { # KIND r w L u
	case $1 in
	one_level) echo --shuffle global ;;
	sequential) echo --shuffle sequential ;;
	*) echo --shuffle windows --run-records "$2" --window-runs "$3" --lanes "$4" --phase-unit "$5" ;;
	esac
}

shares=0
while read -r kind r w L u epoch seed world batch tail; do
	order_is "$kind" "$r" "$w" "$L" "$u" "$seed" "$epoch"
	for ((rank = 0; rank < world; rank++)); do
		wanted "$world" "$rank" "$batch" "$tail" 0 >want
		# shellcheck disable=SC2046 # words
		run 0 "$CAT" order ds --epoch "$epoch" --seed "$seed" --world "$world" --rank "$rank" --batch "$batch" \
			--tail "$tail" $(options_of "$kind" "$r" "$w" "$L" "$u")
		[ -s want ] && diff want out >&2 ||
			die "$kind $r $w $L $u, epoch $epoch, world $world: rank $rank differs"
		shares=$((shares + 1))
	done
done <<'END'
one_level 1 1 1 1 0 0 1 1 drop
one_level 1 1 1 1 1 7 1 5 drop
one_level 1 1 1 1 1 7 1 5 pad
one_level 1 1 1 1 3 7 1 5 keep
one_level 1 1 1 1 2 18446744073709551615 2 3 drop
one_level 1 1 1 1 5 1 9 15 pad
sequential 1 1 1 1 5 1 3 2 pad
two_levels 4 2 3 1 0 1 1 1 drop
two_levels 4 2 3 1 1 1 2 5 drop
two_levels 3 5 2 2 6 9 3 4 pad
two_levels 7 3 1 7 2 4 1 6 keep
END

# The same from a token on, with another world and batch than it was made with; its order need not
# be named again.
tokens=0
while read -r kind shuffle r w L u seed epoch made_world made_batch steps world batch tail; do
	windows=(0 0 0 0)
	[ "$shuffle" = 3 ] && windows=("$r" "$u" "$w" "$L")
	token=$("$BUILD/tests/cli/prog_token" ds "$seed" "$shuffle" "${windows[@]}" "$made_world" "$made_batch" \
		"$epoch" "$steps")
	position=$((made_world * made_batch * steps))
	order_is "$kind" "$r" "$w" "$L" "$u" "$seed" "$epoch"
	for ((rank = 0; rank < world; rank++)); do
		wanted "$world" "$rank" "$batch" "$tail" "$position" >want
		run 0 "$CAT" order ds --token "$token" --world "$world" --rank "$rank" --batch "$batch" --tail "$tail"
		[ -s want ] && diff want out >&2 || die "from '$token' on, world $world: rank $rank differs"
		tokens=$((tokens + 1))
	done
done <<'END'
one_level 2 1 1 1 1 3 2 1 7 4 2 5 drop
one_level 2 1 1 1 1 3 0 2 5 3 3 4 pad
one_level 2 1 1 1 1 18446744073709551615 1 1 9 3 1 2 keep
sequential 1 1 1 1 1 0 4 3 3 3 2 1 drop
two_levels 3 4 2 3 1 8 5 1 7 5 4 3 drop
two_levels 3 4 2 3 1 8 5 3 5 2 1 6 pad
two_levels 3 5 3 2 5 8 5 2 1 1 3 2 drop
END

# What the loader settles itself is said with -v, and is what is used.
run 0 "$CAT" order ds --seed 5 -v
number='\([0-9]*\)'
settled="order: windows of $number runs of $number records, $number lanes, phase unit $number, seed 5;"
read -r w r L u <<<"$(sed -n "s/.*$settled.*/\1 \2 \3 \4/p" err)"
[ -n "$u" ] || die "no order with -v: $(cat err)"
cp out got
order_is two_levels "$r" "$w" "$L" "$u" 5 0
diff order got >&2 || die "not the order that -v names"
run 0 "$CAT" order ds --shuffle global --epoch 2 -v
said "shardcat: order: global, seed 0; epoch 2 from position 0 of 61"

# Tokens that are refused: of another dataset, of another order, torn.
token=$("$BUILD/tests/cli/prog_token" ds 7 3 4 1 2 3 1 5 0 2)
run 0 "$CAT" order ds --token "$token" --seed 7 --shuffle windows --lanes 3 -v
said "shardcat: order: windows of 2 runs of 4 records, 3 lanes, phase unit 1, seed 7; epoch 0 from position 10 of 61"
run 5 "$CAT" order ds --token "$token" --seed 8
[ ! -s out ] || die "printed an order all the same"
run 5 "$CAT" order ds --token "$token" --shuffle global
grep -q "leave out --shuffle and the options of windows to take the token's" err || die "not said: $(cat err)"
run 5 "$CAT" order ds --token "$token" --lanes 4
run 2 "$CAT" order ds --token "${token%?}"
run 2 "$CAT" order ds --token "${token/position 10/position 11}"
run 2 "$CAT" order ds --token hello
run 2 "$CAT" order ds --token "$token" --epoch 0
run 0 "$PACK" images src -o other --resize 9 --crop 8
run 5 "$CAT" order other --token "$token"
grep -q "the token belongs to dataset" err || die "not named: $(cat err)"

run 2 "$CAT" order ds --world 2 --rank 2
said "shardcat: --rank 2: must be below --world 2"
run 2 "$CAT" order ds --shuffle global --lanes 2
said "shardcat: --lanes needs --shuffle windows, not global"
run 2 "$CAT" order ds --world 2 --tail keep
said "shardcat: --tail keep needs world 1, not 2, because ranks would take different numbers of steps; use --tail drop \
or --tail pad"
run 2 "$CAT" order ds --world 70 # drops all there is
said "shardcat: 61 records are too few for one on each of 70 ranks; use --tail pad, or at most 61 ranks"
run 2 "$CAT" order ds --batch 70
said "shardcat: 61 records are too few for one batch of 70; use batches of at most 61, --tail pad, or --tail keep"
run 2 "$CAT" order ds/00000.shard
echo "$shares shares, $tokens from tokens on"
