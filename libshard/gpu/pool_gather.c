/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_gather.c - a kernel gathers the rows of a batch from slabs
 */
#include "libshard/gpu/gpu.h"

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"

/* ---- life ---- */

static void add_piece(struct gather_call *call, uint64_t from, uint64_t to, uint64_t bytes)
{
	call->piece[call->piece_count++] = (struct gather_piece){from, to, (uint32_t)bytes, 0};
}

/*
 * List the arrays that the kernel copies.  Slabs and batches have the same ones, at other places.
 */
static void list_pieces(struct gather_call *call, const struct layout *from, const struct layout *to)
{
	const struct shard_schema *s = from->schema;

	call->piece_count = 0;
	for (uint32_t k = 0; k < from->group_count; k++) {
		uint32_t g = from->group[k];
		bool large = layout_is_large(&s->group[g]);

		if (large)
			add_piece(call, from->group_at[g], to->group_at[g], s->group[g].stride);
		for (uint32_t i = 0; !large && i < to->field_count[g]; i++)
			add_piece(call, from->field[g][i].at, to->field[g][i].at, to->field[g][i].bytes);
	}
}

int pool_gather_open(struct pool_gather *g, const struct pool_plan *plan, const struct layout *batch,
		     const struct slabs *slabs, struct shard_error *err)
{
	const struct order_share *share = &plan->share;

	g->plan = plan;
	g->batch = batch;
	g->slabs = slabs;
	g->call.slab_bytes = plan->slab.slot_bytes;
	g->call.slab_rows = plan->slab_rows;
	list_pieces(&g->call, &plan->slab, batch);
	if (plan->is_held) {
		g->home = mem_array((size_t)ceil_div(share->record_count, share->run_records), sizeof(*g->home));
		if (!g->home)
			return error_set(err, SHARD_E_MEMORY, "no memory for the places of runs");
	}
	return SHARD_OK;
}

int pool_gather_begin(struct pool_gather *g, struct shard_error *err)
{
	return g->kernel.module ? SHARD_OK : cuda_gather_open(g->slabs->batches->cuda, &g->kernel, err);
}

void pool_gather_close(struct pool_gather *g, bool inherited)
{
	if (g->kernel.module && !inherited)
		cuda_gather_close(g->slabs->batches->cuda, &g->kernel);
	mem_free(g->home);
}

/* ---- where a row is ---- */

void pool_gather_find_homes(struct pool_gather *g, const struct order *o)
{
	uint64_t n = g->plan->share.record_count, r = g->plan->share.run_records;

	for (uint64_t i = 0; i < n / r; i++)
		g->home[(order_at_place(o, i * r) + n - o->phase) % n / r] = (uint32_t)i;
	g->home_phase = o->phase;
}

/* Returns the row of a record in a pool that holds everything. */
static uint64_t held_row(const struct pool_gather *g, uint64_t record)
{
	uint64_t n = g->plan->share.record_count, r = g->plan->share.run_records;
	uint64_t place = (record + n - g->home_phase) % n;

	return place / r < n / r ? g->home[place / r] * r + place % r : place;
}

/*
 * Find row `i` of a batch in the pool, by its row in the share.  Returns where, as the kernel
 * counts.
 */
static uint32_t place_row(struct pool_gather *g, struct device_slot *to, uint32_t i, uint64_t row)
{
	const struct slabs *slabs = g->slabs;
	const struct slot *slab;
	uint32_t inside, which = slabs_find(slabs, to->as.place.epoch, row, &inside);

	slab = &slabs->device_slots.slot[which].as;
	to->as.record[i] = slab->record[inside]; /* it may be a substitute */
	to->as.row_flags[i] |= slab->row_flags[inside];
	for (uint32_t k = 0; k < g->batch->whole_count; k++)
		slot_sizes(&to->as, k)[i] = slot_sizes(slab, k)[inside];
	return which * g->plan->slab_rows + inside;
}

/* ---- a batch ---- */

int pool_gather_launch(struct pool_gather *g, const struct steps *steps, const struct order *o, struct device_slot *to,
		       struct shard_error *err)
{
	const struct order_share *share = &g->plan->share;
	const struct device_slots *batches = g->slabs->batches;
	struct order_rank rank = steps_rank(steps, &to->as.place);
	struct gather_call *call = &g->call;
	uint64_t position, row, padded_rows = 0;
	int rc = SHARD_OK;
	bool padded;

	call->from = g->slabs->device_slots.memory;
	call->to = (uintptr_t)to->as.memory;
	for (uint32_t i = 0; !rc && i < to->as.rows; i += call->row_count) {
		call->first_row = i;
		call->row_count = to->as.rows - i < GATHER_ROWS ? to->as.rows - i : GATHER_ROWS;
		for (uint32_t k = 0; k < call->row_count; k++) {
			position = order_rank_position(&rank, to->as.place.step, i + k, &padded);
			if (g->home)
				row = held_row(g, to->as.record[i + k]);
			else
				row = padded ? order_share_padding(share, padded_rows++)
					     : order_share_row(share, order_place(o, position));
			call->row[k] = place_row(g, to, i + k, row);
		}
		rc = cuda_gather_launch(batches->cuda, &g->kernel, call, batches->stream, err);
	}
	return rc;
}
