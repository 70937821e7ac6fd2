/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_plan.c - how large a pool must be, and what it is made of
 *
 * The memory of a pool is made of slabs.  A slab holds rows of a share of the dataset, see
 * order/order.c, laid out like a batch.  The plan does not change the order: a pool of any size, or
 * none, delivers the same batches.
 */
#include "libshard/gpu/gpu.h"

#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/gpu/gather.h"

#define SLAB_BYTES  (UINT64_C(16) << 20) /* of one copy: starting it costs far less than this */
#define SLAB_PARTS  8u			 /* of a window, at least, so that memory is free again soon */
#define WINDOWS	    3u
#define STRIDE_MOST (UINT64_C(65535) * GATHER_PART) /* of a record: CUDA allows so many blocks in y */

/* What the pool is planned for. */
struct want {
	const struct shard_loader_options *o;
	const struct layout *batch;
	const struct steps *steps;
};

/* ---- slabs ---- */

/* Slab length: a whole number of runs, or one run if that alone exceeds the target size. */
static int plan_slabs(struct pool_plan *p, const struct want *w, bool whole, struct shard_error *err)
{
	const struct order_params *params = &w->steps->params;
	uint64_t rows, band, want, r;

	order_share_init(&p->share, params, &w->steps->rank, whole);
	rows = order_share_rows(&p->share);
	r = p->share.run_records;
	band = params->kind == ORDER_TWO_LEVELS ? order_largest_band(params) / p->share.stride : rows;
	want = min_u64(SLAB_BYTES / (w->batch->record_bytes ? w->batch->record_bytes : 1), band / SLAB_PARTS);
	want = want < r ? r : want / r * r;
	want = min_u64(min_u64(want, rows), UINT32_MAX / 2);
	p->slab_rows = (uint32_t)(want ? want : 1);
	p->epoch_slabs = ceil_div(rows, p->slab_rows);
	if (!layout_plan(&p->slab, w->batch->schema, w->batch->fields, 0, p->slab_rows, NULL))
		return error_set(err, SHARD_E_MEMORY,
				 "a run of %" PRIu64 " records does not fit memory; set a smaller run_records", r);
	return SHARD_OK;
}

/* Slabs of so many rows, wherever in a slab these begin. */
static uint64_t slabs_of(const struct pool_plan *p, uint64_t rows)
{
	return ceil_div(rows, p->slab_rows) + 1;
}

/* The least number of slabs: for what one step needs, and for 3 windows.  One more is on its way. */
static uint64_t least_slabs(const struct pool_plan *p, const struct want *w)
{
	uint64_t windows = WINDOWS * ceil_div(order_largest_band(&w->steps->params), p->share.stride);
	uint64_t step = order_share_span(&p->share, &w->steps->params, w->o->batch_records);

	return slabs_of(p, step > windows ? step : windows) + 1;
}

/* ---- the pool ---- */

/* Plan as many slabs as fit.  `all` is the size of a pool that holds everything. */
static int plan_part(struct pool_plan *p, const struct want *w, uint64_t all, uint64_t *slabs, struct shard_error *err)
{
	uint64_t bytes = w->o->pool_bytes, least;
	int rc = plan_slabs(p, w, false, err);

	if (rc)
		return rc;
	*slabs = bytes / p->slab.slot_bytes;
	least = least_slabs(p, w);
	if (*slabs >= least)
		return SHARD_OK;
	return error_set(err, SHARD_E_ARGUMENT,
			 "options: pool_bytes is %" PRIu64 "; with these windows and batches a pool needs %" PRIu64
			 ", or %" PRIu64 " to hold the whole dataset",
			 bytes, mul_capped(least, p->slab.slot_bytes), all);
}

int pool_plan(struct pool_plan *out, const struct shard_loader_options *o, const struct layout *batch,
	      const struct steps *steps, struct shard_error *err)
{
	const struct want w = {o, batch, steps};
	const struct shard_schema *schema = batch->schema;
	uint64_t all, slabs;
	int rc;

	for (uint32_t g = 0; g < schema->group_count; g++)
		if (schema->group[g].stride > STRIDE_MOST)
			return error_set(err, SHARD_E_UNSUPPORTED,
					 "a record has %" PRIu64 " bytes; a pool takes records of at most %" PRIu64,
					 schema->group[g].stride, STRIDE_MOST);
	rc = plan_slabs(out, &w, true, err);
	if (rc)
		return rc;
	slabs = out->epoch_slabs;
	all = mul_capped(slabs, out->slab.slot_bytes);
	out->is_held = o->pool_bytes >= all;
	if (!out->is_held)
		rc = plan_part(out, &w, all, &slabs, err);
	if (rc)
		return rc;
	if (out->is_held && mul_capped(slabs, out->slab_rows) > UINT32_MAX)
		return error_set(err, SHARD_E_UNSUPPORTED, "a pool takes at most %u records; the dataset has %" PRIu64,
				 UINT32_MAX, steps->rank.record_count);
	out->slab_count = (uint32_t)min_u64(slabs, UINT32_MAX / out->slab_rows);
	return SHARD_OK;
}
