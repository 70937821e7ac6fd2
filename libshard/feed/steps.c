/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.c - the endless series of steps, and the records of each step
 */
#include "libshard/feed/feed.h"

#include "libshard/base/bytes.h"
#include "libshard/dataset/dataset.h"

struct order_params steps_params(const struct steps *s, uint64_t epoch)
{
	struct order_params p = s->params;

	if (s->mix) /* nobody asks this order anything, and it needs no table */
		return (struct order_params){.kind = ORDER_SEQUENTIAL, .record_count = p.record_count};
	if (steps_is_early(s, epoch))
		p.record_count = s->early.order_records;
	p.epoch = s->is_held ? s->held_epoch : epoch;
	return p;
}

struct order_rank steps_rank(const struct steps *s, const struct step_place *p)
{
	struct order_rank rank = s->rank;

	rank.first_position = p->first_position;
	rank.record_count = steps_epoch_records(s, p->epoch);
	if (s->mix) { /* whose positions go on from epoch to epoch */
		rank.first_position += p->epoch * s->rank.record_count;
		rank.record_count += p->epoch * s->rank.record_count;
	}
	return rank;
}

bool steps_ended(const struct steps *s, const struct step_place *p)
{
	struct order_rank rank = steps_rank(s, p);

	if (s->mix)
		return steps_position(s, p) >= s->rank.record_count;
	return p->step >= order_rank_steps(&rank);
}

struct step_place steps_epoch_after(const struct steps *s, const struct step_place *p)
{
	return (struct step_place){.epoch = p->epoch + 1,
				   .first_position = s->mix ? steps_position(s, p) - s->rank.record_count : 0};
}

struct step_place steps_next(const struct steps *s, struct step_place p)
{
	while (steps_ended(s, &p))
		p = steps_epoch_after(s, &p);
	return p;
}

uint64_t steps_records(const struct steps *s)
{
	return (uint64_t)s->rank.world * s->rank.batch_records;
}

uint64_t steps_position(const struct steps *s, const struct step_place *p)
{
	return p->first_position + p->step * steps_records(s);
}

void steps_select(const struct steps *s, uint64_t *record, size_t count)
{
	if (s->selection)
		selection_many(s->selection, record, count);
}

/* Records become windows, in place: from the last one on, so that none is overwritten before its turn. */
static uint32_t widen(const struct steps *s, struct step_rows rows, uint32_t count)
{
	const struct shard_episodes *e = s->window.episodes;
	uint32_t n = s->window.offset_count;

	if (!e)
		return count;
	for (uint32_t i = count; i-- > 0;) {
		uint64_t record = rows.record[i], episode = episodes_find(e, record);
		int64_t least = -(int64_t)(record - e->begin[episode]);
		int64_t most = (int64_t)(e->begin[episode + 1] - 1 - record);
		uint64_t *to = rows.record + (size_t)i * n;
		uint8_t *flags = rows.row_flags + (size_t)i * n;

		memset(flags, rows.row_flags[i], n);
		for (uint32_t k = 0; k < n; k++)
			to[k] = record + (uint64_t)(int64_t)s->window.offset[k];
		for (uint32_t k = 0; k < n && s->window.offset[k] < least; k++) {
			to[k] = record + (uint64_t)least;
			flags[k] |= SHARD_ROW_EDGE;
		}
		for (uint32_t k = n; k > 0 && s->window.offset[k - 1] > most; k--) {
			to[k - 1] = record + (uint64_t)most;
			flags[k - 1] |= SHARD_ROW_EDGE;
		}
	}
	return count * n;
}

uint32_t steps_fill(const struct steps *s, const struct order *order, const struct step_place *p, struct step_rows to)
{
	struct order_rank rank = steps_rank(s, p);
	uint32_t rows = order_rank_rows(&rank, p->step), first_padded = rows;
	uint64_t *record = to.record;
	bool padded = false;

	memset(to.row_flags, 0, rows);
	if (s->mix) {
		mix_order_fill(s->mix, order_rank_position(&rank, p->step, 0, &padded), rank.world, to.component,
			       record, rows);
		return rows;
	}
	if (s->share) {
		order_share_fill(s->share, order, steps_position(s, p), record, rows);
		steps_select(s, record, rows);
		return rows;
	}
	/* Rows that pad, if there are any, stand at the end.  Their positions begin at 0 again. */
	while (first_padded && (order_rank_position(&rank, p->step, first_padded - 1, &padded), padded))
		first_padded--;
	if (first_padded)
		order_fill(order, order_rank_position(&rank, p->step, 0, &padded), rank.world, record, first_padded);
	for (uint32_t i = first_padded; i < rows; i++) {
		record[i] = order_at(order, order_rank_position(&rank, p->step, i, &padded));
		to.row_flags[i] = SHARD_ROW_PADDED;
	}
	steps_select(s, record, rows);
	return widen(s, to, rows);
}

/* ---- mixtures ---- */

struct steps_source steps_source(const struct steps *s, struct step_rows rows, uint32_t row)
{
	const struct component *c;

	if (!s->mix)
		return (struct steps_source){.selection = s->selection};
	c = &mix_order_mixture(s->mix)->component[rows.component[row]];
	return (struct steps_source){.selection = c->selection, .ds = c->ds, .base = c->base};
}

void steps_name(const struct steps *s, struct step_rows rows, uint32_t count)
{
	for (uint32_t i = 0; s->mix && i < count; i++)
		rows.record[i] -= steps_source(s, rows, i).base;
}

bool steps_of_component(const struct steps *s, uint32_t component, struct steps *out)
{
	const struct shard_mix *m = mix_order_mixture(s->mix);

	if (component >= m->component_count)
		return false;
	*out = *s;
	out->mix = NULL;
	out->selection = m->component[component].selection;
	out->params = mix_order_params(s->mix, component);
	out->rank.record_count = out->params.record_count;
	return true;
}

/* ---- what a disk shall begin to read ---- */

/* Name records of a run, from its first to its last.  Returns how many have been named. */
static uint32_t name_run(const struct steps *s, const struct order *o, uint64_t run, uint64_t run_records,
			 uint64_t *record, uint32_t rows)
{
	uint64_t first = run * o->params.run_records, last;

	last = min_u64(first + o->params.run_records, o->params.record_count) - 1;
	for (uint64_t at = first; rows < steps_rows(s) + STEPS_AHEAD_ROWS; at = min_u64(at + run_records, last)) {
		record[rows++] = order_at_place(o, at);
		if (at == last)
			break;
	}
	return rows;
}

uint32_t steps_ahead(const struct steps *s, const struct order *o, const struct step_place *p, uint64_t distance,
		     uint64_t run_records, struct step_rows to)
{
	uint64_t position = steps_position(s, p), behind = position + steps_records(s), r = o->params.run_records;
	uint64_t lanes = o->params.lane_count, world = s->rank.world;
	uint64_t first, end, next, next_end, begin, stop;
	struct step_place later = *p;
	uint32_t rows = 0;

	if (o->params.kind != ORDER_TWO_LEVELS || s->share) {
		later.step += distance;
		return steps_ended(s, &later) ? 0 : steps_fill(s, o, &later, to);
	}
	order_band(o, position, &first, &end);
	if (end >= o->params.record_count)
		return 0;
	order_band(o, end, &next, &next_end);
	begin = next + (position - first);
	stop = behind < end ? min_u64(next + (behind - first), next_end) : next_end;
	for (uint64_t run = ceil_div(begin, r); run * r < stop; run++)
		/* Ranks share lanes if they can be dealt out evenly.  Then other ranks take other runs. */
		if (lanes % world || run * r >= o->lanes_end || run % lanes % world == s->rank.rank)
			rows = name_run(s, o, run, run_records, to.record, rows);
	steps_select(s, to.record, rows);
	return rows;
}
