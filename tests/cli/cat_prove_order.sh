#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cat_prove_order.sh - prove-order proves the library, and finds fault with libraries that were
# broken on purpose
. "${ROOT:-$(dirname "$0")/../..}/tests/cli/lib.sh"

make_images src 90 3
cp src/class_00/00000.jpg src/class_00/copy_1.jpg # records with equal bytes
cp src/class_00/00000.jpg src/class_00/copy_2.jpg
run 0 "$PACK" images src -o ds --resize 40 --crop 40 --shard-records 40 # a record is a unit: read by the fastest path
run 0 "$PACK" images src -o small --resize 8 --crop 8 --compress lz4
n=92

proves() { # EPOCHS OPTIONS...: the verdict, with so many epochs and a line for each
	local epochs=$1
	shift
	run 0 "$CAT" prove-order "$@"
	grep -q "^proven: in each of $epochs epochs every record was delivered exactly once, by its bytes" out ||
		die "no verdict for $*: $(cat out err)"
	[ "$(grep -c ', 0 duplicate, 0 missing' out)" = "$epochs" ] || die "not $epochs epochs for $*: $(cat out)"
}
windows=(--shuffle windows --run-records 5 --phase-unit 1 --window-runs 2 --lanes 2)
proves 10 ds
proves 10 ds --shuffle global --seed 7 --tail pad -j 1
proves 10 ds "${windows[@]}" --batch 5
proves 3 ds "${windows[@]}" --tail pad --worlds 5,7 --epochs 1 --batch 9
proves 4 ds "${windows[@]}" --tail keep --batch 10
proves 5 small --epochs 1
proves 5 small --epochs 1 "${windows[@]}" --tail pad
proves 2 ds --shuffle sequential --worlds 2 --epochs 1

# What is counted: 92 records; world 3 of batch 9 makes 3 steps of 27, and 11 are left; padded it
# makes 4, 16 repeated.
run 0 "$CAT" prove-order ds --worlds 3 --batch 9 --epochs 1
printed "world 3, batch 9, epoch 0: 81 delivered, 0 duplicate, 0 missing; 11 in the last incomplete step"
run 0 "$CAT" prove-order ds --worlds 3 --batch 9 --epochs 1 --tail pad
printed "world 3, batch 9, epoch 0: $n delivered, 0 duplicate, 0 missing; 16 rows of padding"
run 0 "$CAT" prove-order ds --worlds 3,2,8,1 --batch 5 --epochs 1
grep -q "^resumed, epoch 0, world x batch 1 x 5 > 8 x 4 > 2 x 3 > 3 x 2: " out ||
	die "not these interruptions: $(cat out)"
run 0 "$CAT" prove-order -q ds
[ ! -s out ] && [ ! -s err ] || die "not quiet"

run 2 "$CAT" prove-order ds --worlds 1,,2
run 2 "$CAT" prove-order ds --worlds 0
run 2 "$CAT" prove-order ds --worlds 2 --tail keep
run 2 "$CAT" prove-order ds --worlds 8 --batch 12 # 96
run 2 "$CAT" prove-order ds/00000.shard
run 3 "$CAT" prove-order nowhere
run 0 "$CAT" prove-order "$ROOT/format/golden/dataset_empty"
printed "proven: $ROOT/format/golden/dataset_empty has no records"
cp -r ds damaged
"$PYTHON" -c 'with open("damaged/00001.shard", "r+b") as f:
    f.seek(9000); b = f.read(1)[0]; f.seek(-1, 1); f.write(bytes([b ^ 16]))'
run 1 "$CAT" prove-order damaged
grep -q "I44" err || die "damage is not named: $(cat err)"

# ---- libraries that are wrong ----

# The tool's objects and the library's, with something of the library in between that is not as it
# should be.
cat >broken.c <<'C'
#include <string.h>
#include "libshard/feed/feed.h"
#include "libshard/order/order.h"
#include "libshard/dataset/dataset.h"

uint32_t __real_steps_fill(const struct steps *s, const struct order *order, const struct step_place *p,
			   struct step_rows rows);
uint32_t __wrap_steps_fill(const struct steps *s, const struct order *order, const struct step_place *p,
			   struct step_rows rows);
void __real_order_fill(const struct order *o, uint64_t first, uint64_t stride, uint64_t *records, size_t count);
void __wrap_order_fill(const struct order *o, uint64_t first, uint64_t stride, uint64_t *records, size_t count);
uint64_t __real_order_rank_position(const struct order_rank *k, uint64_t step, uint32_t row, bool *padded);
uint64_t __wrap_order_rank_position(const struct order_rank *k, uint64_t step, uint32_t row, bool *padded);
void __real_slot_describe(const struct slot *s, const struct layout *layout, const struct steps *steps, uint32_t number,
			  struct shard_batch *out);
void __wrap_slot_describe(const struct slot *s, const struct layout *layout, const struct steps *steps, uint32_t number,
			  struct shard_batch *out);
uint64_t __real_order_rank_steps(const struct order_rank *k);
uint64_t __wrap_order_rank_steps(const struct order_rank *k);

void __wrap_order_fill(const struct order *o, uint64_t first, uint64_t stride, uint64_t *records, size_t count)
{
	__real_order_fill(o, first, stride, records, count);
	for (size_t i = 0; BREAK == 1 && i < count; i++) /* one record comes in the place of another */
		if (first + i * stride == 22)
			records[i] = order_at(o, 21);
}

uint32_t __wrap_steps_fill(const struct steps *s, const struct order *order, const struct step_place *p,
			   struct step_rows rows)
{
	uint32_t count = __real_steps_fill(s, order, p, rows);

	for (uint32_t i = 0; BREAK == 10 && s->selection && i < count; i++) /* a record that is not selected */
		if (rows.record[i] == selection_at(s->selection, 0))
			rows.record[i]--;
	return count;
}

uint64_t __wrap_order_rank_position(const struct order_rank *k, uint64_t step, uint32_t row, bool *padded)
{
	uint64_t position = __real_order_rank_position(k, step, row, padded);

	/* who goes on in the middle of an epoch begins one too early */
	return BREAK == 2 && k->first_position && !*padded ? position - 1 : position;
}

void __wrap_slot_describe(const struct slot *s, const struct layout *layout, const struct steps *steps, uint32_t number,
			  struct shard_batch *out)
{
	uint64_t *record;

	__real_slot_describe(s, layout, steps, number, out);
	if (BREAK == 3) /* padding is not flagged */
		memset((void *)(uintptr_t)out->row_flags, 0, out->record_count);
	record = (uint64_t *)(uintptr_t)out->record;
	if (BREAK == 4 && out->record_count > 1) { /* the bytes are right, their numbers are not */
		uint64_t first = record[0];

		record[0] = record[1];
		record[1] = first;
	}
	/* the numbers are right, the bytes of a row are not */
	if (BREAK == 5 && out->record_count > 1 && out->step == 1)
		for (uint32_t f = 0; f < layout->schema->field_count; f++)
			memcpy((char *)(uintptr_t)out->field[f].data + out->field[f].stride, out->field[f].data,
			       layout->schema->field[f].bytes);
	if (BREAK == 6 && out->step == 1) /* one byte of a batch is wrong */
		*(char *)(uintptr_t)out->field[0].data ^= 1;
	if (BREAK == 7 && out->step == 1) /* a row that was delivered says that it was not */
		*(uint8_t *)(uintptr_t)out->row_flags = SHARD_ROW_PADDED;
}

uint64_t __wrap_order_rank_steps(const struct order_rank *k)
{
	uint64_t steps = __real_order_rank_steps(k);

	/* an epoch ends a step too early; or not at all */
	return BREAK == 8 && steps > 2 ? steps - 1 : BREAK == 9 ? steps + 1000 : steps;
}
C
wraps="order_fill order_rank_position slot_describe order_rank_steps steps_fill"

breaks=0
# finds "WHAT..." OPTIONS...: exit code 1, the verdict, and what is wrong with the epochs
finds() {
	local what=$1
	shift
	breaks=$((breaks + 1))
	run 1 ./broken prove-order ds "$@"
	grep -q "^shardcat: ds: NOT PROVEN: $what" err || die "break $breaks: verdict is not '$what': $(cat err out)"
	! grep -q '^proven' out || die "break $breaks: proven all the same"
}
break_library 0 # nothing is broken but for the link itself
CAT=$PWD/broken proves 10 ds

break_library 1
finds "10 of 10 epochs" --shuffle global
run 1 ./broken prove-order ds --shuffle sequential --worlds 1 --epochs 1 --batch 11
printed "world 1, batch 11, epoch 0: 88 delivered, 1 duplicate, 1 missing; 4 in the last incomplete step"
said "shardcat: world 1, batch 11, epoch 0: record 21 is delivered again (rank 0, step 2, row 0)"
said "shardcat: world 1, batch 11, epoch 0: never delivered: record 22"

break_library 2
finds "2 of 10 epochs" --batch 5 # those that were interrupted
grep -q "^shardcat: resumed, epoch 0, .* is delivered again" err || die "break 2: $(cat err)"

break_library 3
finds "8 of 8 epochs" --tail pad --batch 5 --worlds 2,3,8
run 0 ./broken prove-order ds --batch 5 # without padding nothing is wrong with it

break_library 4
finds "10 of 10 epochs" --batch 5
grep -q ", 0 duplicate, 0 missing, [1-9][0-9]* misnamed" out || die "break 4: $(cat out)"

break_library 5
finds "[1-9][0-9]* of 10 epochs" --batch 5
grep -q "world 1, batch 5, epoch 0: 90 delivered, 1 duplicate, 1 missing, 1 misnamed" out || die "break 5: $(cat out)"

break_library 6
finds "[1-9][0-9]* of 10 epochs" --batch 5
grep -q "world 1, batch 5, epoch 0: 89 delivered, 0 duplicate, 1 missing, 0 misnamed, 1 matching no record" out ||
	die "break 6: $(cat out)"

break_library 7
finds "[1-9][0-9]* of 10 epochs" --batch 5

break_library 8
finds "6 of 6 epochs" --batch 5 --worlds 1,2

break_library 9
finds "6 of 6 epochs" --batch 5 --worlds 1,2 --tail pad
grep -q "^shardcat: world 1, batch 5, epoch 0: the epoch does not end" err || die "break 9: $(cat err)"
# A record of the dataset that is not of the selection, in the place of one that is.
run 0 "$CAT" select ds --where label=1 -o ones.sel
run 0 "$CAT" select ds --where label=1 --list
first=$(head -n 1 out)
break_library 10
finds "10 of 10 epochs" --select ones.sel --batch 2 --tail pad --worlds 1,2,3,8
grep -q "^shardcat: world 1, batch 2, epoch 0: rank 0, .*: record $((first - 1)) is not in the selection" err ||
	die "break 10: $(cat err)"
said "shardcat: world 1, batch 2, epoch 0: never delivered: record $first"
run 0 ./broken prove-order ds --batch 5 # without a selection nothing is wrong with it
echo "$breaks broken libraries"
