/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_order.c - tells the order of a loader, without reading a record
 */
#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/loader/loader.h"

uint64_t shard_loader_step_count(const struct shard_loader *l)
{
	return order_rank_steps(&l->steps.rank);
}

/* Rows of this rank in an epoch. */
static uint64_t row_count(const struct shard_loader *l)
{
	uint64_t steps = shard_loader_step_count(l);

	return steps ? (steps - 1) * l->o.batch_records + order_rank_rows(&l->steps.rank, steps - 1) : 0;
}

/* Row i of this rank stands at position i x world + rank.  Rows that pad begin anew at 0. */
static void fill(const struct shard_loader *l, const struct order *order, uint64_t first, uint64_t count, uint64_t *idx)
{
	uint64_t records = l->steps.rank.record_count, world = l->steps.rank.world, own = 0;

	if (l->steps.rank.rank < records)
		own = (records - l->steps.rank.rank + world - 1) / world; /* rows that do not pad */
	own = first < own ? min_u64(count, own - first) : 0;
	order_fill(order, first * world + l->steps.rank.rank, world, idx, (size_t)own);
	for (uint64_t i = own; i < count; i++)
		idx[i] = order_at(order, ((first + i) * world + l->steps.rank.rank) % records);
	steps_select(&l->steps, idx, (size_t)count);
}

int shard_loader_order(const struct shard_loader *l, uint64_t epoch, uint64_t first, uint64_t count, uint64_t *idx,
		       struct shard_error *err)
{
	struct order_params params = steps_params(&l->steps, epoch);
	uint64_t rows = row_count(l);
	struct order *order;

	if (first > rows || count > rows - first)
		return error_set(err, SHARD_E_ARGUMENT,
				 "rows %" PRIu64 " to %" PRIu64 " were asked for; this rank has %" PRIu64 " rows in "
				 "an epoch",
				 first, first + count - 1, rows);
	order = order_in(mem_alloc(order_bytes(&params)), &params);
	if (!order)
		return error_set(err, SHARD_E_MEMORY, "no memory for an order of %" PRIu64 " records",
				 params.record_count);
	fill(l, order, first, count, idx);
	mem_free(order);
	return SHARD_OK;
}

void shard_loader_order_info(const struct shard_loader *l, struct shard_order_info *out)
{
	const struct order_params *p = &l->steps.params;

	*out = (struct shard_order_info){
		.record_count = p->record_count,
		.seed = p->seed,
		.run_records = p->run_records,
		.phase_unit_records = p->phase_unit_records,
		.kind = p->kind == ORDER_SEQUENTIAL  ? SHARD_SEQUENTIAL
			: p->kind == ORDER_ONE_LEVEL ? SHARD_SHUFFLE_GLOBAL
						     : SHARD_SHUFFLE_WINDOWS,
		.window_runs = p->window_runs,
		.lane_count = p->lane_count,
	};
}
