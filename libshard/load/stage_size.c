/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_size.c - how many decoded chunks a loader keeps
 *
 * As many as the order needs for each to be decoded once: those of a window of this rank, and those that other threads
 * may have begun of the next one while one is still in it.  That is speed only: the order is settled without it.
 */
#include "libshard/base/bytes.h"
#include "libshard/io/direct.h"
#include "libshard/load/block.h"
#include "libshard/load/stage.h"

#define BLOCK_ALIGN  64u
#define STEPS_AHEAD  4u /* for each thread: further behind the others one hardly falls, and then it decodes some again */
#define BLOCKS_MAX   (UINT64_C(1) << 30)
#define MEMORY_SHARE 4u /* of what is available, unless the caller says how much: the trainer and the page cache want the rest */

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return mul_fits(a, b, &product) ? product : UINT64_MAX;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return add_fits(a, b, &sum) ? sum : UINT64_MAX;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Chunks of all shards.  *whole: none holds fewer records than another. */
static uint64_t count_chunks(const struct shard_loader *l, uint64_t unit, bool *whole)
{
	const uint64_t *first = l->ds->first_record;
	uint64_t chunks = 0;

	*whole = true;
	for (uint64_t i = 0; i < l->ds->m.shard_count; i++) {
		uint64_t records = first[i + 1] - first[i];

		chunks += ceil_div(records, unit);
		*whole &= records % unit == 0;
	}
	return chunks;
}

/* Rows that threads may be at while one of them is still at the end of a window. */
static uint64_t rows_ahead(const struct shard_loader *l)
{
	uint64_t threads = l->o.thread_count, steps = min_u64(l->o.slot_count, STEPS_AHEAD * threads);

	return threads * BLOCK + (threads > 1 ? steps * l->o.batch_records : 0);
}

/* Of an order in windows: what is needed together by a rank whose threads may be so many rows ahead. */
static uint64_t window_chunks(const struct shard_loader *l, uint64_t unit, bool whole, uint64_t rows)
{
	const struct order_params *p = &l->params;
	uint64_t lanes = p->lane_count, runs = p->record_count / p->run_records, lane_runs = runs / lanes;
	uint64_t windows = lane_runs / p->window_runs ? lane_runs / p->window_runs : 1;
	uint64_t window_runs = ceil_div(lane_runs, windows), own_lanes = lanes / common_divisor(lanes, l->o.world);
	uint64_t run_chunks, window, rest, window_rows, margin;

	whole &= p->run_records % unit == 0 && p->phase_unit_records % unit == 0;
	run_chunks = ceil_div(p->run_records, unit) + !whole; /* or it begins within one, and ends within another */
	window = times(times(own_lanes, window_runs), run_chunks);
	rest = plus(times(runs % lanes, run_chunks), p->record_count % p->run_records / unit + 2);
	window_rows = times(times(lanes, window_runs), p->run_records) / l->o.world;
	margin = window_rows ? min_u64(rows, times(window, ceil_div(rows, window_rows))) : rows;
	return plus(window > rest ? window : rest, margin);
}

static uint64_t wanted_chunks(const struct shard_loader *l, uint64_t unit, bool *whole)
{
	uint64_t chunks = count_chunks(l, unit, whole), wanted = chunks;

	if (l->params.kind == ORDER_TWO_LEVELS)
		wanted = window_chunks(l, unit, *whole, rows_ahead(l));
	if (l->params.kind == ORDER_SEQUENTIAL)
		wanted = times(rows_ahead(l), l->o.world) / unit + 2;
	return min_u64(wanted, chunks);
}

/* Is every record of a chunk this rank's? */
static bool has_whole_chunks(const struct shard_loader *l)
{
	return l->o.world == 1 || (l->params.kind == ORDER_TWO_LEVELS && l->params.lane_count % l->o.world == 0);
}

uint64_t stage_sizes(const struct shard_loader *l, struct stage_size size[SHARD_GROUPS_MAX])
{
	const struct shard_schema *s = &l->ds->m.schema;
	uint64_t wanted = 0, most = l->o.stage_bytes, bytes = 0;
	bool whole;

	for (uint32_t g = 0; g < s->group_count; g++) {
		size[g] = (struct stage_size){.block_bytes = align_up(s->group[g].stride * s->group[g].unit_records, BLOCK_ALIGN)};
		if (s->group[g].codec == SHARD_RAW || s->group[g].unit_records == 1) /* a chunk of one record is needed once */
			continue;
		size[g].block_count = min_u64(wanted_chunks(l, s->group[g].unit_records, &whole), BLOCKS_MAX);
		size[g].whole_chunks = has_whole_chunks(l);
		wanted = plus(wanted, times(size[g].block_count, size[g].block_bytes));
	}
	if (wanted && !most)
		most = memory_available_bytes() / MEMORY_SHARE;
	for (uint32_t g = 0; g < s->group_count; g++) {
		if (wanted > most) /* each its part */
			size[g].block_count = (uint64_t)((double)size[g].block_count * ((double)most / (double)wanted));
		bytes += size[g].block_count * size[g].block_bytes;
	}
	return bytes;
}
