/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_order.c - tells the order of a loader, without reading a record
 */
#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/dataset/dataset.h"
#include "libshard/loader/loader.h"
#include "shard.h"

#define PIECE 1024u /* rows of a mixture */

uint64_t shard_loader_step_count(const struct shard_loader *l)
{
	return order_rank_steps(&l->steps.rank);
}

static int refuse_rows(uint64_t first, uint64_t count, uint64_t rows, struct shard_error *err)
{
	return error_set(err, SHARD_E_ARGUMENT,
			 "rows %" PRIu64 " to %" PRIu64 " were asked for; this rank has %" PRIu64 " rows in an epoch",
			 first, first + count - 1, rows);
}

/* ---- mixtures ---- */

static int order_of_mixture(const struct shard_loader *l, uint64_t epoch, uint64_t first, uint64_t count,
			    uint16_t *component, uint64_t *idx, struct shard_error *err)
{
	uint64_t world = l->steps.rank.world, length = l->steps.rank.record_count, begin = epoch * length;
	uint64_t from, own; /* the first position of this rank, and how many it has */
	uint16_t unwanted[PIECE];
	int rc = cursor_check_owner(&l->cursor, err); /* a lock of the parent's may be held for ever */

	if (rc)
		return rc;
	rc = loader_check_epoch(l, epoch, err);
	if (rc)
		return rc;
	from = begin + (l->steps.rank.rank + world - begin % world) % world;
	own = from < begin + length ? ceil_div(begin + length - from, world) : 0;
	if (first > own || count > own - first)
		return refuse_rows(first, count, own, err);
	for (uint64_t done = 0, n; done < count; done += n) {
		struct step_rows rows = {.record = idx + done, .component = component ? component + done : unwanted};

		n = min_u64(PIECE, count - done);
		mix_order_fill(l->steps.mix, from + (first + done) * world, world, rows.component, rows.record,
			       (uint32_t)n);
		steps_name(&l->steps, rows, (uint32_t)n);
	}
	return SHARD_OK;
}

int shard_loader_order(const struct shard_loader *l, uint64_t epoch, uint64_t first, uint64_t count,
		       uint16_t *component, uint64_t *idx, struct shard_error *err)
{
	struct order_params params = steps_params(&l->steps, epoch);
	const struct step_place start = {.epoch = epoch};
	struct order_rank rank = steps_rank(&l->steps, &start);
	uint64_t steps, rows, own = 0, records = params.record_count;
	struct order *order;

	if (l->steps.mix)
		return order_of_mixture(l, epoch, first, count, component, idx, err);
	steps = order_rank_steps(&rank);
	rows = steps ? (steps - 1) * l->o.batch_records + order_rank_rows(&rank, steps - 1) : 0;
	if (component)
		return error_set(err, SHARD_E_ARGUMENT, "this loader has no mixture; give NULL as component");
	if (first > rows || count > rows - first)
		return refuse_rows(first, count, rows, err);
	order = order_in(mem_alloc(order_bytes(&params)), &params);
	if (!order)
		return error_set(err, SHARD_E_MEMORY, "no memory for an order of %" PRIu64 " records",
				 params.record_count);
	/* Row i of this rank stands at position i x world + rank.  Rows that pad begin at 0 again. */
	if (rank.rank < records)
		own = ceil_div(records - rank.rank, rank.world); /* rows that do not pad */
	own = first < own ? min_u64(count, own - first) : 0;
	order_fill(order, first * rank.world + rank.rank, rank.world, idx, (size_t)own);
	for (uint64_t i = own; i < count; i++)
		idx[i] = order_at(order, ((first + i) * rank.world + rank.rank) % records);
	steps_select(&l->steps, idx, (size_t)count);
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
