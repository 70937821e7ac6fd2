/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.c - see steps.h
 */
#include "libshard/feed/steps.h"

#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/order/share.h"
#include "libshard/select/selection.h"

struct order_params steps_params(const struct steps *s, uint64_t epoch)
{
	struct order_params p = s->params;

	p.epoch = s->is_held ? s->held_epoch : epoch;
	return p;
}

struct order_rank steps_rank(const struct steps *s, const struct place *p)
{
	struct order_rank rank = s->rank;

	rank.first_position = p->first_position;
	return rank;
}

bool steps_ended(const struct steps *s, const struct place *p)
{
	struct order_rank rank = steps_rank(s, p);

	return p->step >= order_rank_steps(&rank);
}

struct place steps_next(const struct steps *s, struct place p)
{
	while (steps_ended(s, &p))
		p = (struct place){.epoch = p.epoch + 1};
	return p;
}

uint64_t steps_records(const struct steps *s)
{
	return (uint64_t)s->rank.world * s->rank.batch_records;
}

uint64_t steps_position(const struct steps *s, const struct place *p)
{
	return p->first_position + p->step * steps_records(s);
}

void steps_select(const struct steps *s, uint64_t *record, size_t count)
{
	if (s->selection)
		selection_many(s->selection, record, count);
}

/* As steps_fill(), in numbers of the order. */
static uint32_t fill(const struct steps *s, const struct order *order, const struct place *p, uint64_t *record,
		     uint8_t *row_flags)
{
	struct order_rank rank = steps_rank(s, p);
	uint32_t rows = order_rank_rows(&rank, p->step), first_padded = rows;
	bool padded = false;

	if (s->share) {
		memset(row_flags, 0, rows);
		order_share_fill(s->share, order, steps_position(s, p), record, rows);
		return rows;
	}
	/* Rows that pad, if there are any, stand at the end.  Their positions begin anew at 0. */
	while (first_padded && (order_rank_position(&rank, p->step, first_padded - 1, &padded), padded))
		first_padded--;
	memset(row_flags, 0, first_padded);
	if (first_padded)
		order_fill(order, order_rank_position(&rank, p->step, 0, &padded), rank.world, record, first_padded);
	for (uint32_t i = first_padded; i < rows; i++) {
		record[i] = order_at(order, order_rank_position(&rank, p->step, i, &padded));
		row_flags[i] = SHARD_ROW_PADDED;
	}
	return rows;
}

uint32_t steps_fill(const struct steps *s, const struct order *order, const struct place *p, uint64_t *record,
		    uint8_t *row_flags)
{
	uint32_t rows = fill(s, order, p, record, row_flags);

	steps_select(s, record, rows);
	return rows;
}

/* ---- what a disk shall begin to read ---- */

/* Does this rank take records of a run?  Ranks share lanes if they can be dealt out evenly. */
static bool is_own(const struct steps *s, const struct order *o, uint64_t run)
{
	uint64_t lanes = o->params.lane_count, world = s->rank.world;

	return lanes % world || run * o->params.run_records >= o->lanes_end || run % lanes % world == s->rank.rank;
}

/* Name records of a run, from its first to its last.  Returns how many have been named. */
static uint32_t name_run(const struct steps *s, const struct order *o, uint64_t run, uint64_t run_records,
			 uint64_t *record, uint32_t rows)
{
	uint64_t first = run * o->params.run_records, last;

	last = min_u64(first + o->params.run_records, o->params.record_count) - 1;
	for (uint64_t at = first; rows < s->rank.batch_records + STEPS_AHEAD_ROWS;
	     at = min_u64(at + run_records, last)) {
		record[rows++] = order_at_place(o, at);
		if (at == last)
			break;
	}
	return rows;
}

static uint32_t name_window(const struct steps *s, const struct order *o, const struct place *p, uint64_t run_records,
			    uint64_t *record)
{
	uint64_t position = steps_position(s, p), behind = position + steps_records(s), r = o->params.run_records;
	uint64_t first, end, next, next_end, from, to;
	uint32_t rows = 0;

	order_band(o, position, &first, &end);
	if (end >= o->params.record_count)
		return 0;
	order_band(o, end, &next, &next_end);
	from = next + (position - first);
	to = behind < end ? next + (behind - first) : next_end;
	for (uint64_t run = ceil_div(from, r); run * r < min_u64(to, next_end); run++)
		if (is_own(s, o, run))
			rows = name_run(s, o, run, run_records, record, rows);
	return rows;
}

uint32_t steps_ahead(const struct steps *s, const struct order *o, const struct place *p, uint64_t distance,
		     uint64_t run_records, uint64_t *record, uint8_t *row_flags)
{
	struct place later = *p;
	uint32_t rows;

	if (o->params.kind == ORDER_TWO_LEVELS && !s->share) {
		rows = name_window(s, o, p, run_records, record);
		steps_select(s, record, rows);
		return rows;
	}
	later.step += distance;
	return steps_ended(s, &later) ? 0 : steps_fill(s, o, &later, record, row_flags);
}
