/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.c - the orders of an epoch and the shares of ranks, as format/ORDER.md parts 4 to 7 define
 * them
 *
 * No sum or product here passes 2^63: every one is bounded by the count of records, which is at
 * most 2^62, or by that and one step of all ranks.
 */
#include "libshard/order/order.h"

#include "libshard/base/bytes.h"
#include "shard.h"

#define CHUNK 64 /* positions that order_fill works on at once */

/* Into which runs, lanes and windows the records fall: ORDER.md, part 5. */
static void lay_out(struct order *o)
{
	const struct order_params *p = &o->params;
	uint64_t n = p->record_count, u = p->phase_unit_records, r = p->run_records, windows;

	o->phase = 0;
	if (u && n)
		o->phase =
			u * random_below(random_draw(random_key(p->seed, p->epoch, RANDOM_PHASE), 0), ceil_div(n, u));
	o->run_count = n / r;
	o->lane_run_count = o->run_count / p->lane_count;
	o->lanes_end = o->lane_run_count * p->lane_count * r;
	windows = o->lane_run_count / p->window_runs;
	if (!windows)
		windows = 1;
	o->window_run_count = o->lane_run_count / windows;
	o->long_window_count = o->lane_run_count % windows;
	o->long_ticks = o->long_window_count ? o->long_window_count * (o->window_run_count + 1) * r : 0;
}

/* M: records of the largest window; 0 without lanes. */
static uint64_t largest_window(const struct order *o)
{
	return (o->window_run_count + (o->long_window_count != 0)) * o->params.run_records;
}

bool order_params_allowed(const struct order_params *p)
{
	if (p->record_count > ORDER_RECORDS_MAX)
		return false;
	if (p->kind == ORDER_SEQUENTIAL || p->kind == ORDER_ONE_LEVEL)
		return true;
	return p->kind == ORDER_TWO_LEVELS && p->run_records && p->run_records <= ORDER_RECORDS_MAX &&
	       p->phase_unit_records <= ORDER_RECORDS_MAX && p->window_runs && p->lane_count;
}

size_t order_table_entries(const struct order_params *p)
{
	struct order o = {.params = *p};

	if (!order_params_allowed(p) || p->kind == ORDER_SEQUENTIAL)
		return 0;
	if (p->kind == ORDER_ONE_LEVEL)
		return permutation_table_entries(p->record_count);
	lay_out(&o);
	return permutation_table_entries(o.run_count) + permutation_table_entries(largest_window(&o)) +
	       permutation_table_entries(p->record_count - o.lanes_end);
}

int order_init(struct order *o, const struct order_params *p, uint16_t *table)
{
	uint64_t largest, key;

	if (!order_params_allowed(p))
		return SHARD_E_ARGUMENT;
	*o = (struct order){.params = *p};
	if (p->kind == ORDER_ONE_LEVEL)
		permutation_init(&o->records, p->record_count, random_key(p->seed, p->epoch, RANDOM_RECORDS), table);
	if (p->kind != ORDER_TWO_LEVELS)
		return SHARD_OK;
	lay_out(o);
	permutation_init(&o->runs, o->run_count, random_key(p->seed, p->epoch, RANDOM_RUNS), table);
	table += permutation_table_entries(o->run_count);
	permutation_init(&o->rest, p->record_count - o->lanes_end, random_key(p->seed, p->epoch, RANDOM_REST), table);
	table += permutation_table_entries(p->record_count - o->lanes_end);
	o->tweak_key = random_key(p->seed, p->epoch, RANDOM_TWEAKS);
	largest = largest_window(o);
	if (!largest) /* everything is the rest */
		return SHARD_OK;
	if (largest <= PERMUTATION_TABLE_MAX) {
		permutation_table(table, largest, random_key(p->seed, p->epoch, RANDOM_TABLE));
		o->window_table = table;
	}
	key = random_key(p->seed, p->epoch, RANDOM_WINDOWS);
	for (uint64_t longer = 0; longer <= (o->long_window_count != 0); longer++)
		feistel_init(&o->window[longer], (o->window_run_count + longer) * p->run_records, key);
	return SHARD_OK;
}

size_t order_bytes(const struct order_params *p)
{
	return sizeof(struct order) + order_table_entries(p) * sizeof(uint16_t);
}

struct order *order_in(void *memory, const struct order_params *p)
{
	struct order *o = memory;

	if (o)
		order_init(o, p, (uint16_t *)(o + 1)); /* cannot fail: the parameters are allowed */
	return o;
}

/* The record at a place of the circle. */
static inline uint64_t circle(const struct order *o, uint64_t c)
{
	c += o->phase;
	return c >= o->params.record_count ? c - o->params.record_count : c;
}

/* A tick of a lane: which window, its size, and the tick within it. */
struct tick {
	uint64_t lane, window, x;
	unsigned longer; /* 1: a window of q + 1 runs */
};

static inline struct tick tick_of(const struct order *o, uint64_t position)
{
	uint64_t t = position / o->params.lane_count;
	struct tick k = {.lane = position % o->params.lane_count, .longer = t < o->long_ticks};

	if (!k.longer)
		t -= o->long_ticks;
	k.window = t / o->window[k.longer].n;
	k.x = t % o->window[k.longer].n;
	if (!k.longer)
		k.window += o->long_window_count;
	return k;
}

static inline uint64_t tweak_of(const struct order *o, const struct tick *k)
{
	return random_draw(o->tweak_key, k->window * o->params.lane_count + k->lane);
}

/*
 * After the network, the walk along the table of the largest window; x is below n, and so is the
 * result.
 */
static inline uint64_t window_walk(const struct order *o, uint64_t x, uint64_t n)
{
	if (o->window_table)
		do
			x = o->window_table[x];
		while (x >= n);
	return x;
}

/* Index, before the permutation of runs, of a run of the window that the tick is in. */
static inline uint64_t run_index(const struct order *o, const struct tick *k, uint64_t run_in_window)
{
	uint64_t v = k->window, e = o->long_window_count, before = v * o->window_run_count + (v < e ? v : e);

	return k->lane + (before + run_in_window) * o->params.lane_count;
}

/* ORDER.md, part 6, before the permutation of runs. */
uint64_t order_place(const struct order *o, uint64_t position)
{
	const struct feistel *f;
	uint64_t s, r = o->params.run_records;
	struct tick k;

	if (o->params.kind != ORDER_TWO_LEVELS)
		return position;
	if (position >= o->lanes_end) /* what is in no lane stands behind all lanes */
		return o->lanes_end + permutation_at(&o->rest, position - o->lanes_end);
	k = tick_of(o, position);
	f = &o->window[k.longer];
	s = window_walk(o, feistel_at(f, tweak_of(o, &k), k.x), f->n);
	return run_index(o, &k, s / r) * r + s % r;
}

uint64_t order_at_place(const struct order *o, uint64_t place)
{
	uint64_t r = o->params.run_records;

	if (o->params.kind == ORDER_SEQUENTIAL)
		return place;
	if (o->params.kind == ORDER_ONE_LEVEL)
		return permutation_at(&o->records, place);
	return circle(o, place < o->run_count * r ? permutation_at(&o->runs, place / r) * r + place % r : place);
}

uint64_t order_at(const struct order *o, uint64_t position)
{
	return order_at_place(o, order_place(o, position));
}

void order_band(const struct order *o, uint64_t position, uint64_t *first, uint64_t *end)
{
	uint64_t v, e = o->long_window_count, lanes_records = o->params.run_records * o->params.lane_count;
	struct tick k;

	*first = position;
	*end = position + 1;
	if (o->params.kind != ORDER_TWO_LEVELS)
		return;
	*first = o->lanes_end;
	*end = o->params.record_count;
	if (position >= o->lanes_end)
		return;
	k = tick_of(o, position);
	v = k.window;
	*first = (v * o->window_run_count + (v < e ? v : e)) * lanes_records;
	*end = *first + (o->window_run_count + (v < e)) * lanes_records;
}

uint64_t order_largest_band(const struct order_params *p)
{
	struct order o = {.params = *p};
	uint64_t rest, lanes;

	if (p->kind != ORDER_TWO_LEVELS)
		return 1;
	lay_out(&o);
	rest = p->record_count - o.lanes_end;
	lanes = o.lane_run_count ? largest_window(&o) * p->lane_count : 0;
	return lanes > rest ? lanes : rest;
}

/*
 * tick_of(first + i * stride) for all i, which lie in windows of one size: a division only where a
 * window ends.
 */
static void ticks_of(const struct order *o, uint64_t first, uint64_t stride, struct tick *k, size_t count)
{
	uint64_t lanes = o->params.lane_count, lane_step = stride % lanes, tick_step = stride / lanes;
	struct tick t = tick_of(o, first);
	uint64_t n = o->window[t.longer].n;

	for (size_t i = 0; i < count; i++) {
		k[i] = t;
		t.lane += lane_step;
		t.x += tick_step + (t.lane >= lanes);
		t.lane -= t.lane >= lanes ? lanes : 0;
		if (t.x >= n) {
			t.window += t.x / n;
			t.x %= n;
		}
	}
}

/* The records at the ticks of at most CHUNK positions, all in windows of one size. */
static void fill_ticks(const struct order *o, const struct tick *k, uint64_t *records, size_t count)
{
	uint64_t tweak[CHUNK] = {0}, slot[CHUNK] = {0}, r = o->params.run_records;
	const struct feistel *f = &o->window[k[0].longer];

	for (size_t i = 0; i < count; i++) {
		tweak[i] = tweak_of(o, &k[i]);
		slot[i] = k[i].x;
	}
	feistel_many(f, tweak, slot, count);
	for (size_t i = 0; i < count; i++) {
		uint64_t s = window_walk(o, slot[i], f->n);

		records[i] = run_index(o, &k[i], s / r);
		slot[i] = s % r;
	}
	permutation_many(&o->runs, records, count);
	for (size_t i = 0; i < count; i++)
		records[i] = circle(o, records[i] * r + slot[i]);
}

static void fill_chunk(const struct order *o, uint64_t first, uint64_t stride, uint64_t *records, size_t count)
{
	uint64_t last = first + (count - 1) * stride, longs_end = o->long_ticks * o->params.lane_count;

	if (o->params.kind == ORDER_TWO_LEVELS && last < o->lanes_end && (last < longs_end || first >= longs_end)) {
		struct tick k[CHUNK];

		ticks_of(o, first, stride, k, count);
		fill_ticks(o, k, records, count);
		return;
	}
	if (o->params.kind != ORDER_ONE_LEVEL) { /* sequential, the rest, and the few chunks across a border */
		for (size_t i = 0; i < count; i++)
			records[i] = order_at(o, first + i * stride);
		return;
	}
	for (size_t i = 0; i < count; i++)
		records[i] = first + i * stride;
	permutation_many(&o->records, records, count);
}

void order_fill(const struct order *o, uint64_t first, uint64_t stride, uint64_t *records, size_t count)
{
	for (size_t i = 0; i < count; i += CHUNK)
		fill_chunk(o, first + i * stride, stride, records + i, count - i < CHUNK ? count - i : CHUNK);
}

static void many_chunk(const struct order *o, uint64_t *at, size_t count)
{
	bool together = o->params.kind == ORDER_TWO_LEVELS;
	struct tick k[CHUNK];

	for (size_t i = 0; together && i < count; i++) {
		together = at[i] < o->lanes_end;
		if (together)
			k[i] = tick_of(o, at[i]);
		together = together && k[i].longer == k[0].longer;
	}
	if (together)
		fill_ticks(o, k, at, count);
	else if (o->params.kind == ORDER_ONE_LEVEL)
		permutation_many(&o->records, at, count);
	else /* as in fill_chunk() */
		for (size_t i = 0; i < count; i++)
			at[i] = order_at(o, at[i]);
}

void order_many(const struct order *o, uint64_t *at, size_t count)
{
	for (size_t i = 0; i < count; i += CHUNK)
		many_chunk(o, at + i, count - i < CHUNK ? count - i : CHUNK);
}

int order_rank_check(const struct order_rank *k)
{
	if (k->record_count > ORDER_RECORDS_MAX || k->first_position > k->record_count || k->rank >= k->world)
		return SHARD_E_ARGUMENT;
	if (!k->batch_records || (uint64_t)k->world * k->batch_records > ORDER_STEP_RECORDS_MAX)
		return SHARD_E_ARGUMENT;
	if (k->last == ORDER_DROP || k->last == ORDER_PAD || k->last == ORDER_RUN_ON ||
	    (k->last == ORDER_KEEP && k->world == 1))
		return SHARD_OK;
	return SHARD_E_ARGUMENT;
}

uint64_t order_rank_steps(const struct order_rank *k)
{
	uint64_t left = k->record_count - k->first_position, step_records = (uint64_t)k->world * k->batch_records;

	return k->last == ORDER_DROP ? left / step_records : ceil_div(left, step_records);
}

uint32_t order_rank_rows(const struct order_rank *k, uint64_t step)
{
	uint64_t left = k->record_count - k->first_position - step * k->batch_records; /* ORDER_KEEP: world is 1 */

	return k->last == ORDER_KEEP && left < k->batch_records ? (uint32_t)left : k->batch_records;
}

uint64_t order_rank_position(const struct order_rank *k, uint64_t step, uint32_t row, bool *padded)
{
	/* The first position at or after first_position that is `rank` mod world. */
	uint64_t start = k->first_position + ((uint64_t)k->rank + k->world - k->first_position % k->world) % k->world;
	uint64_t y = start + (step * k->batch_records + row) * k->world;

	*padded = k->last != ORDER_RUN_ON && y >= k->record_count;
	return *padded ? y % k->record_count : y;
}

/*
 * ---- the records that one rank needs in an epoch, in the order of places ----
 *
 * That is run after run, as a disk likes to be read.  A rank delivers records in the order of
 * positions, and its pool fetches them in the order of places.  A row is the number of a record in
 * the share, from 0.  If the world size divides the number of lanes, a rank's share holds the runs
 * of its own lanes; otherwise it holds all runs.  The rest, behind the last full round of lanes, is
 * in the share of each rank.
 *
 * With ORDER_PAD the last step repeats the first records of the epoch.  The pool may have dropped
 * those by then, so the share holds them once more at its end.  All of this is pure arithmetic, and
 * the same for each epoch.
 */

void order_share_init(struct order_share *s, const struct order_params *p, const struct order_rank *k, bool whole)
{
	uint64_t n = p->record_count, lanes = p->kind == ORDER_TWO_LEVELS ? p->lane_count : 0, own;

	*s = (struct order_share){
		.record_count = n, .rank = k->rank, .world = k->world, .stride = 1, .run_records = 1, .lanes_end = n};
	if (lanes) {
		s->run_records = p->run_records;
		s->lanes_end = n / p->run_records / lanes * lanes * p->run_records;
	}
	if (!whole && lanes % k->world == 0) /* without lanes each position belongs to a rank */
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

void order_share_fill(const struct order_share *s, const struct order *o, uint64_t first, uint64_t *records,
		      size_t count)
{
	uint64_t r = s->run_records;

	for (size_t i = 0; i < count; i++) {
		uint64_t row = first + i;

		if (row >= s->whole_rows)
			records[i] = order_at(o, (s->pad_first + (row - s->whole_rows) * s->world) % s->record_count);
		else if (row >= s->lane_rows)
			records[i] = order_at_place(o, s->lanes_end + row - s->lane_rows);
		else if (s->stride == 1)
			records[i] = order_at_place(o, row);
		else
			records[i] = order_at_place(o, (row / r * s->stride + s->rank) * r + row % r);
	}
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
