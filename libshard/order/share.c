/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share.c - the records that one rank needs in an epoch, in the order of places: run after run, as
 * a disk likes to be read
 *
 * A rank delivers records in the order of positions, and its pool fetches them in the order of
 * places.  A row is the number of a record in the share, from 0.  If the world size divides the
 * number of lanes, a rank's share holds the runs of its own lanes; otherwise it holds all runs.
 * The rest, behind the last full round of lanes, is in the share of each rank.
 *
 * With ORDER_PAD the last step repeats the first records of the epoch.  The pool may have dropped
 * those by then, so the share holds them once more at its end.  All of this is pure arithmetic, and
 * the same for each epoch.
 */
#include "libshard/order/order.h"

#include "libshard/base/bytes.h"

void order_share_init(struct order_share *s, const struct order_params *p, const struct order_rank *k, bool whole)
{
	uint64_t n = p->record_count, lanes = p->kind == ORDER_TWO_LEVELS ? p->lane_count : 0, own;

	*s = (struct order_share){
		.record_count = n, .rank = k->rank, .world = k->world, .stride = 1, .run_records = 1, .lanes_end = n};
	if (lanes) {
		s->run_records = p->run_records;
		s->lanes_end = n / p->run_records / lanes * lanes * p->run_records;
	}
	if (!whole && lanes % k->world == 0) /* without lanes each position is somebody's */
		s->stride = k->world;
	own = s->lanes_end / s->run_records; /* runs */
	if (s->stride > 1)
		own = own > k->rank ? (own - k->rank + k->world - 1) / k->world : 0;
	s->lane_rows = own * s->run_records;
	s->whole_rows = s->lane_rows + n - s->lanes_end;
	if (!whole && k->last == ORDER_PAD && n) {
		s->pad_rows = k->batch_records;
		/* n + this is the first position of ours behind the end */
		s->pad_first = (k->rank + k->world - n % k->world) % k->world;
	}
}

uint64_t order_share_rows(const struct order_share *s)
{
	return s->whole_rows + s->pad_rows;
}

static uint64_t record_of(const struct order_share *s, const struct order *o, uint64_t row)
{
	uint64_t r = s->run_records;

	if (row < s->lane_rows)
		return order_at_place(o, s->stride == 1 ? row : (row / r * s->stride + s->rank) * r + row % r);
	if (row < s->whole_rows)
		return order_at_place(o, s->lanes_end + row - s->lane_rows);
	return order_at(o, (s->pad_first + (row - s->whole_rows) * s->world) % s->record_count);
}

void order_share_fill(const struct order_share *s, const struct order *o, uint64_t first, uint64_t *records,
		      size_t count)
{
	for (size_t i = 0; i < count; i++)
		records[i] = record_of(s, o, first + i);
}

uint64_t order_share_row(const struct order_share *s, uint64_t place)
{
	uint64_t r = s->run_records;

	if (place >= s->lanes_end)
		return s->lane_rows + place - s->lanes_end;
	return s->stride == 1 ? place : place / r / s->stride * r + place % r;
}

uint64_t order_share_padding(const struct order_share *s, uint64_t n)
{
	return s->whole_rows + n;
}

/* Runs of ours among the first `runs` of the row. */
static uint64_t own_runs(const struct order_share *s, uint64_t runs)
{
	return s->stride == 1 ? runs : runs > s->rank ? (runs - s->rank + s->stride - 1) / s->stride : 0;
}

void order_share_band(const struct order_share *s, const struct order *o, uint64_t position, uint64_t *first,
		      uint64_t *end)
{
	uint64_t places[2];

	order_band(o, position, &places[0], &places[1]);
	*first = s->lane_rows;
	*end = order_share_rows(s);
	if (places[0] >= s->lanes_end)
		return; /* the rest, and what pads it */
	*first = own_runs(s, places[0] / s->run_records) * s->run_records;
	*end = own_runs(s, places[1] / s->run_records) * s->run_records;
}

uint64_t order_share_span(const struct order_share *s, const struct order_params *p, uint64_t records)
{
	uint64_t band = ceil_div(order_largest_band(p), s->stride); /* rows of ours in the longest band but the rest */
	uint64_t rest = s->whole_rows - s->lane_rows + s->pad_rows;

	return records * (s->stride == 1 ? s->world : 1) + 2 * (band > rest ? band : rest) + s->pad_rows;
}
