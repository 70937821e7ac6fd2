/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages.c - the stages of a feed: one for each group whose chunks are worth keeping
 *
 * A feed keeps as many decoded chunks as its order needs to decode each of them once.  Those are
 * the chunks of a window of this rank, and chunks of the next window that other threads need while
 * one thread is still in this one.  This decides about speed only, never about the order.
 */
#include "libshard/feed/feed.h"

#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/dataset/dataset.h"
#include "libshard/feed/layout.h"
#include "libshard/io/available_memory.h"
#include "libshard/io/buffer.h"

#define BLOCK_ALIGN  64u
#define BLOCKS_MAX   (UINT64_C(1) << 30)
#define MEMORY_SHARE 4u /* of the available memory; the trainer and the page cache need the rest */

/* The size of the stage of a group. */
struct stage_size {
	uint64_t block_bytes, block_count; /* 0 blocks: the group needs no stage */
	bool whole_chunks;		   /* this rank takes all records of a chunk */
};

/* ---- how large ---- */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Count the chunks of all shards.  *whole: no shard ends with a shorter chunk. */
static uint64_t count_chunks(const struct shard_dataset *ds, uint64_t unit, bool *whole)
{
	const uint64_t *first = ds->first_record;
	uint64_t chunks = 0;

	*whole = true;
	for (uint64_t i = 0; i < ds->m.shard_count; i++) {
		uint64_t records = first[i + 1] - first[i];

		chunks += ceil_div(records, unit);
		*whole &= records % unit == 0;
	}
	return chunks;
}

/* Chunks that hold records of a run: of a selection more of them, with fewer records of each. */
static uint64_t chunks_of_run(const struct steps *steps, uint64_t unit, bool whole)
{
	const struct order_params *p = &steps->params;
	uint64_t touched;

	whole &= p->run_records % unit == 0 && p->phase_unit_records % unit == 0;
	if (!steps->selection)
		return ceil_div(p->run_records, unit) + !whole; /* a run may begin within a chunk */
	touched = selection_units(steps->selection, unit);
	return (uint64_t)((double)p->run_records * (double)touched / (double)p->record_count) + 2;
}

/* Chunks that a rank needs at the same time, in an order in windows. */
static uint64_t window_chunks(const struct steps *steps, uint64_t unit, bool whole, uint64_t rows)
{
	const struct order_params *p = &steps->params;
	uint64_t world = steps->rank.world;
	uint64_t lanes = p->lane_count, runs = p->record_count / p->run_records, lane_runs = runs / lanes;
	uint64_t windows = lane_runs / p->window_runs ? lane_runs / p->window_runs : 1;
	uint64_t window_runs = ceil_div(lane_runs, windows), own_lanes = lanes / common_divisor(lanes, world);
	uint64_t run_chunks, window, rest, window_rows, margin;

	run_chunks = chunks_of_run(steps, unit, whole);
	window = mul_capped(mul_capped(own_lanes, window_runs), run_chunks);
	rest = add_capped(mul_capped(runs % lanes, run_chunks), p->record_count % p->run_records / unit + 2);
	window_rows = mul_capped(mul_capped(lanes, window_runs), p->run_records) / world;
	margin = window_rows ? min_u64(rows, mul_capped(window, ceil_div(rows, window_rows))) : rows;
	return add_capped(window > rest ? window : rest, margin);
}

/* Of a mixture: of all components together. */
static uint64_t mixed_chunks(const struct steps *steps, uint64_t unit, bool whole, uint64_t rows)
{
	struct steps one;
	uint64_t chunks = 0;

	for (uint32_t d = 0; steps_of_component(steps, d, &one); d++)
		chunks = add_capped(chunks, window_chunks(&one, unit, whole, rows));
	return chunks;
}

static uint64_t wanted_chunks(const struct shard_dataset *ds, const struct steps *steps, uint64_t rows_ahead,
			      uint64_t unit)
{
	bool whole;
	uint64_t chunks = count_chunks(ds, unit, &whole), wanted = chunks;

	if (steps->mix)
		return steps->params.kind == ORDER_TWO_LEVELS
			       ? min_u64(mixed_chunks(steps, unit, whole, rows_ahead), chunks)
			       : chunks;
	if (steps->params.kind == ORDER_TWO_LEVELS)
		wanted = window_chunks(steps, unit, whole, rows_ahead);
	if (steps->params.kind == ORDER_SEQUENTIAL)
		wanted = mul_capped(rows_ahead, steps->rank.world) / unit + 2;
	return min_u64(wanted, chunks);
}

/* Does this rank take all records of a chunk? */
static bool has_whole_chunks(const struct steps *steps)
{
	if (steps->selection || steps->mix)
		return false;
	return steps->rank.world == 1 ||
	       (steps->params.kind == ORDER_TWO_LEVELS && steps->params.lane_count % steps->rank.world == 0);
}

/* The parts of a mixture share it, so a block has room for the longest chunk of any of them. */
static struct stage_size plan_one(const struct layouts *layouts, uint32_t g, const struct shard_dataset *ds,
				  const struct steps *steps, uint64_t rows_ahead)
{
	struct stage_size size = {0};
	const struct layout *layout;
	uint64_t unit = 0;

	for (uint32_t i = 0; (layout = layouts_at(layouts, i)) != NULL; i++) {
		const struct shard_group *group = &layout->schema->group[g];

		if (!layout_has_group(layout, g) || group->codec == SHARD_RAW ||
		    group->unit_records == 1) /* needed only once */
			continue;
		size.block_bytes =
			max_u64(size.block_bytes, align_up(group->stride * group->unit_records, BLOCK_ALIGN));
		unit = unit ? min_u64(unit, group->unit_records) : group->unit_records;
	}
	if (!unit)
		return size;
	size.block_count = min_u64(wanted_chunks(ds, steps, rows_ahead, unit), BLOCKS_MAX);
	size.whole_chunks = has_whole_chunks(steps);
	return size;
}

/* Plan the stage of each group.  Returns the bytes of all blocks. */
static uint64_t plan(const struct shard_dataset *ds, const struct layouts *layouts, const struct steps *steps,
		     uint64_t rows_ahead, uint64_t most_bytes, struct stage_size size[SHARD_GROUPS_MAX])
{
	uint64_t wanted = 0, bytes = 0;

	for (uint32_t g = 0; g < SHARD_GROUPS_MAX; g++) {
		size[g] = plan_one(layouts, g, ds, steps, rows_ahead);
		wanted = add_capped(wanted, mul_capped(size[g].block_count, size[g].block_bytes));
	}
	if (wanted && !most_bytes)
		most_bytes = available_memory_bytes() / MEMORY_SHARE;
	for (uint32_t g = 0; g < SHARD_GROUPS_MAX; g++) {
		if (wanted > most_bytes) /* each group gets its share */
			size[g].block_count =
				(uint64_t)((double)size[g].block_count * ((double)most_bytes / (double)wanted));
		bytes += size[g].block_count * size[g].block_bytes;
	}
	return bytes;
}

/* ---- life ---- */

int stages_open(struct stages *s, const struct shard_dataset *ds, const struct layouts *layouts,
		const struct steps *steps, uint64_t rows_ahead, uint64_t most_bytes, struct shard_error *err)
{
	struct stage_size size[SHARD_GROUPS_MAX];
	uint64_t at = 0;

	*s = (struct stages){.bytes = plan(ds, layouts, steps, rows_ahead, most_bytes, size)};
	if (!s->bytes)
		return SHARD_OK;
	s->memory = buffer_open((size_t)s->bytes); /* takes no pages before they are used */
	if (s->memory)
		buffer_keep(s->memory, (size_t)s->bytes);
	for (uint32_t g = 0; s->memory && g < SHARD_GROUPS_MAX; g++) {
		if (!size[g].block_count)
			continue;
		s->of[g] = stage_open((uint8_t *)s->memory + at, size[g].block_bytes, (uint32_t)size[g].block_count,
				      size[g].whole_chunks);
		at += size[g].block_count * size[g].block_bytes;
		if (!s->of[g])
			break;
		if (at == s->bytes)
			return SHARD_OK;
	}
	at = s->bytes;
	stages_close(s, false);
	return error_set(err, SHARD_E_MEMORY,
			 "no memory for %" PRIu64 " bytes of decoded chunks; set a smaller stage_bytes, which is "
			 "slower",
			 at);
}

void stages_close(struct stages *s, bool inherited)
{
	for (uint32_t g = 0; g < SHARD_GROUPS_MAX; g++)
		stage_close(s->of[g], inherited);
	if (s->memory && !inherited)
		buffer_close(s->memory, (size_t)s->bytes);
	*s = (struct stages){.bytes = 0};
}

uint64_t stages_unfinished(struct stages *s)
{
	uint64_t n = 0;

	for (uint32_t g = 0; g < SHARD_GROUPS_MAX; g++)
		n += s->of[g] ? stage_unfinished(s->of[g]) : 0;
	return n;
}
