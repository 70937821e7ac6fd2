#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_prove_mix.sh - prove-order --mix proves mixtures, and finds fault with libraries that were
# broken on purpose
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

make_images src 61 3
make_images more 23 3
run 0 "$PACK" images src -o one --resize 40 --crop 40 --shard-records 20
run 0 "$PACK" images more -o two --resize 40 --crop 40
run 0 "$CAT" select one --part 0.5 -o half.sel
printf '# weight, dataset, selection\n3 one\n\n1\ttwo\n2 one half.sel\n' >mix

proves() { # POSITIONS OPTIONS...
	local positions=$1
	shift
	run 0 "$CAT" prove-order --mix mix "$@"
	grep -q "^proven: at each of $positions positions the same record in every world; each of 3 sources " out ||
		die "no verdict for $*: $(cat out err)"
}
windows=(--shuffle windows --run-records 5 --phase-unit 1 --window-runs 2 --lanes 4)
proves 384 --epochs 1 # an epoch has 23 x 6 / 1 positions, and a block 6 x 64
proves 384 --epochs 2 --shuffle global --seed 7 --worlds 5,1 --batch 9
proves 288 "${windows[@]}" --batch 7 # two epochs are 276, and a block has 6 x 4
[ "$(grep -c ', 0 findings$' out)" = 5 ] || die "not five worlds: $(cat out)"

run 2 "$CAT" prove-order
run 2 "$CAT" prove-order one --mix mix
run 2 "$CAT" prove-order --mix mix --tail pad
run 2 "$CAT" prove-order --mix mix --select half.sel
run 3 "$CAT" prove-order --mix nowhere
for bad in '0 one' 'one' '3' '3 one half.sel more' '4097 one' '-1 one' '' '# 3 one'; do
	echo "$bad" >bad
	run 2 "$CAT" prove-order --mix bad
done
echo '3 nowhere' >bad
run 3 "$CAT" prove-order --mix bad
echo '3 two half.sel' >bad
run 5 "$CAT" prove-order --mix bad
grep -q "dataset" err || die "$(cat err)"

# ---- libraries that are wrong ----

cat >broken.c <<'C'
#include "libshard/dataset/dataset.h"
#include "libshard/order/order.h"

void __real_mix_order_fill(struct mix_order *o, uint64_t first, uint64_t stride, uint16_t *component, uint64_t *record,
			   uint32_t count);
void __wrap_mix_order_fill(struct mix_order *o, uint64_t first, uint64_t stride, uint16_t *component, uint64_t *record,
			   uint32_t count);
void __real_mix_block(const struct mix *m, uint64_t lane, uint64_t block, struct mix_slot *slot, uint16_t *scratch);
void __wrap_mix_block(const struct mix *m, uint64_t lane, uint64_t block, struct mix_slot *slot, uint16_t *scratch);

void __wrap_mix_order_fill(struct mix_order *o, uint64_t first, uint64_t stride, uint16_t *component, uint64_t *record,
			   uint32_t count)
{
	__real_mix_order_fill(o, first, stride, component, record, count);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t position = first + i * stride;
		uint16_t other;

		if (BREAK == 1 && position == 22) /* one record comes in the place of another */
			__real_mix_order_fill(o, 21, 1, &component[i], &record[i], 1);
		if (BREAK == 2 && position == 22) /* the right record, said to be of another source */
			component[i] = component[i] == 1 ? 0 : 1;
		if (BREAK == 3 && stride == 3) /* another world has another order */
			__real_mix_order_fill(o, position ^ 1, 1, &component[i], &record[i], 1);
		if (BREAK == 4 && position == 30) /* a record comes twice in a pass, and another one not at all */
			for (uint64_t p = 31; p == 31 || other != component[i]; p++)
				__real_mix_order_fill(o, p, 1, &other, &record[i], 1);
	}
}

void __wrap_mix_block(const struct mix *m, uint64_t lane, uint64_t block, struct mix_slot *slot, uint16_t *scratch)
{
	__real_mix_block(m, lane, block, slot, scratch);
	if (BREAK == 5 && lane == 1 && block == 2) { /* a block of a lane has one source too often */
		for (uint32_t s = 0; s < m->weight_sum; s++)
			if (slot[s].component == 1)
				slot[s] = (struct mix_slot){0, 0};
	}
}
C
wraps="mix_order_fill mix_block"

# finds BREAK WHAT: exit code 1, no proof, and what is said of it
finds() {
	break_library "$1"
	run 1 ./broken prove-order --mix mix "${windows[@]}" --batch 7 --worlds 1,3
	grep -q '^shardcat: mix: NOT PROVEN' err || die "break $1: $(cat err out)"
	! grep -q '^proven' out || die "break $1: proven all the same"
	grep -q "$2" err || die "break $1 is not named: $(cat err)"
}
break_library 0 # nothing is broken but for the link itself
CAT=$PWD/broken proves 288 "${windows[@]}" --batch 7
finds 1 'came [0-9]* times; must be'
finds 2 'position 22 names record [0-9]* of [a-z]*, which has other bytes'
finds 3 'in another world it was record'
finds 4 'came [0-9]* times; must be'
finds 5 'block 2 of lane 1 has source 0 4 times; its weight is 3'
