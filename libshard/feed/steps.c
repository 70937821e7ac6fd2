/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.c - see steps.h
 */
#include "libshard/feed/steps.h"

#include <string.h>

#include "libshard/order/share.h"

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

uint32_t steps_fill(const struct steps *s, const struct order *order, const struct place *p, uint64_t *record,
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
