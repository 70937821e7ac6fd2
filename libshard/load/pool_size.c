/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_size.c - how large a pool must be, what it is made of, and its end
 *
 * The order is settled without it: a pool of another size, or none, delivers the same.
 */
#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/load/pool.h"
#include "libshard/store/read/dataset.h"

#define SLAB_BYTES (UINT64_C(16) << 20) /* copied at once: far more than a copy costs to start */
#define SLAB_PARTS 8u /* of a window at least, so that its memory is free again soon */
#define WINDOWS	   3u
#define STRIDE_MOST (UINT64_C(1) << 30) /* GATHER_PART times as many blocks as a kernel can have across */

/* A share in slabs: as long as whole runs, but for those that are longer than many slabs. */
static int plan_slabs(const struct shard_loader *l, const struct order_share *share, uint32_t *slab_rows, struct layout *layout,
		      struct shard_error *err)
{
	uint64_t rows = order_share_rows(share), band = l->steps.params.kind == ORDER_TWO_LEVELS ? order_largest_band(&l->steps.params) / share->stride : rows;
	uint64_t want = min_u64(SLAB_BYTES / (l->layout.record_bytes ? l->layout.record_bytes : 1), band / SLAB_PARTS), r = share->run_records;

	want = want < r ? r : want / r * r;
	want = min_u64(min_u64(want, rows), UINT32_MAX / 2);
	*slab_rows = (uint32_t)(want ? want : 1);
	if (!layout_plan(layout, &l->ds->m.schema, *slab_rows, false))
		return error_set(err, SHARD_E_MEMORY, "a run of %" PRIu64 " records does not fit memory; ask for shorter runs", r);
	if (l->o.pool_in_place) /* kernels read whole words, and those behind a slab may be being copied */
		layout->slot_bytes += LAYOUT_ALIGN;
	return SHARD_OK;
}

/* Slabs that so many rows lie in, wherever in a slab they begin. */
static uint64_t slabs_of(const struct pool *p, uint64_t rows)
{
	return ceil_div(rows, p->slab_rows) + 1;
}

/* Slabs that batches lie in, as many as there are slots of the device, wherever they stand. */
static uint64_t slabs_apart(const struct shard_loader *l, const struct pool *p)
{
	return mul_capped(l->o.device_slot_count, slabs_of(p, order_share_span(&p->share, &l->steps.params, l->o.batch_records)));
}

/* Likewise of batches that follow each other; some may be of the next epoch, whose first slab is another one. */
static uint64_t slabs_together(const struct shard_loader *l, const struct pool *p)
{
	uint64_t batches = l->o.device_slot_count, within = slabs_of(p, order_share_span(&p->share, &l->steps.params, batches * l->o.batch_records));
	uint64_t across = slabs_of(p, order_share_wrap(&p->share, &l->steps.params, (batches + 1) * l->o.batch_records)) + 1;
	uint64_t apart = slabs_apart(l, p), together = within > across ? within : across;

	return shard_loader_step_count(l) + 1 >= batches && together < apart ? together : apart; /* or they are of three epochs */
}

/* Slabs for what a step can need at once, in place for what batches can lie in; no fewer than 3 windows; and one that is on its way. */
static uint64_t least_slabs(const struct shard_loader *l, const struct pool *p)
{
	uint64_t span = order_share_span(&p->share, &l->steps.params, l->o.batch_records);
	uint64_t windows = WINDOWS * ceil_div(order_largest_band(&l->steps.params), p->share.stride);
	uint64_t least = slabs_of(p, span > windows ? span : windows), kept = l->o.pool_in_place ? slabs_together(l, p) : 0;

	return (least > kept ? least : kept) + 1;
}

static int make_feed(const struct shard_loader *l, struct pool *p, const struct layout *layout, struct shard_error *err)
{
	struct shard_loader *f = mem_zalloc(sizeof(*f));

	if (!f)
		return error_set(err, SHARD_E_MEMORY, "no memory for a loader");
	f->ds = l->ds;
	f->o = l->o;
	f->o.batch_records = p->slab_rows;
	f->o.rank = 0;
	f->o.world = 1;
	f->o.tail = SHARD_KEEP;
	f->o.device_slot_count = p->slab_count;
	f->o.pool_bytes = 0;
	f->o.pool_in_place = 0;
	f->asked = f->o;
	f->steps = (struct steps){.params = l->steps.params, .share = &p->share, .is_held = p->is_held};
	f->steps.rank = (struct order_rank){.record_count = order_share_rows(&p->share), .batch_records = p->slab_rows, .world = 1, .last = ORDER_KEEP};
	f->layout = *layout;
	p->feed = f;
	return loader_open_feed(f, err);
}

/* All of it, if there is room; else what the bytes are enough for. */
static int plan(const struct shard_loader *l, struct pool *p, struct layout *layout, struct shard_error *err)
{
	uint64_t bytes = l->o.pool_bytes, all, least, slabs;
	int rc;

	for (uint32_t g = 0; g < l->ds->m.schema.group_count; g++)
		if (l->ds->m.schema.group[g].stride >= STRIDE_MOST)
			return error_set(err, SHARD_E_UNSUPPORTED, "records of %" PRIu64 " bytes; a pool is for records of less than %" PRIu64,
					 l->ds->m.schema.group[g].stride, STRIDE_MOST);
	order_share_init(&p->share, &l->steps.params, &l->steps.rank, true);
	rc = plan_slabs(l, &p->share, &p->slab_rows, layout, err);
	if (rc)
		return rc;
	slabs = ceil_div(order_share_rows(&p->share), p->slab_rows);
	all = mul_capped(slabs, layout->slot_bytes);
	p->is_held = bytes >= all;
	if (!p->is_held) {
		order_share_init(&p->share, &l->steps.params, &l->steps.rank, false);
		rc = plan_slabs(l, &p->share, &p->slab_rows, layout, err);
		if (rc)
			return rc;
		slabs = bytes / layout->slot_bytes;
		least = least_slabs(l, p);
		p->ample_bytes = min_u64(mul_capped(slabs_apart(l, p) + 1, layout->slot_bytes), all);
		if (slabs < least)
			return error_set(err, SHARD_E_ARGUMENT, "options: pool_bytes is %" PRIu64 "; with these windows and batches a pool needs %" PRIu64
					 ", or %" PRIu64 " to hold the whole dataset", bytes, mul_capped(least, layout->slot_bytes), all);
	}
	p->epoch_slabs = ceil_div(order_share_rows(&p->share), p->slab_rows);
	if (p->is_held && mul_capped(slabs, p->slab_rows) > UINT32_MAX)
		return error_set(err, SHARD_E_UNSUPPORTED, "a pool has room for %u records; the dataset has %" PRIu64, UINT32_MAX, l->ds->m.record_count);
	p->slab_count = (uint32_t)min_u64(slabs, UINT32_MAX / p->slab_rows);
	return SHARD_OK;
}

static void destroy(struct pool *p)
{
	if (!p)
		return;
	shard_loader_close(p->feed);
	mem_free(p->order[0].table);
	mem_free(p->order[1].table);
	mem_free(p->home);
	mem_free(p->slab);
	mem_free(p->slot);
	mem_free(p->late);
	mem_free(p);
}

int pool_open(struct shard_loader *l, struct shard_error *err)
{
	struct pool *p = mem_zalloc(sizeof(*p));
	struct layout layout;
	int rc = p ? plan(l, p, &layout, err) : error_set(err, SHARD_E_MEMORY, "no memory for a pool");

	if (!rc)
		rc = make_feed(l, p, &layout, err);
	if (rc)
		destroy(p);
	else
		l->pool = p;
	return rc;
}

void pool_close(struct shard_loader *l)
{
	destroy(l->pool);
	l->pool = NULL;
}

int pool_adopt(struct shard_loader *l, const struct order_params *params, struct shard_error *err)
{
	struct pool *before = l->pool;
	struct order_params had = l->steps.params;
	int rc;

	if (l->o.pool_in_place && l->device && l->device->lent_count)
		return error_set(err, SHARD_E_ARGUMENT, "%u batches are lent, which lie in the pool, and the token brings another order, which needs another "
				 "one; give them back first", l->device->lent_count);
	l->steps.params = *params;
	l->steps.params.epoch = 0;
	rc = pool_open(l, err);
	if (!rc && before->feed->feed->ring.lent)
		rc = shard_loader_lend(l->pool->feed, before->feed->feed->ring.lent, ring_bytes(&before->feed->feed->ring), err);
	if (!rc && l->device && l->device->copy)
		rc = device_finish(l, err);
	if (rc) {
		if (l->pool != before)
			destroy(l->pool);
		l->pool = before;
		l->steps.params = had;
		return rc;
	}
	l->pool->gather = before->gather;
	destroy(before);
	return SHARD_OK;
}
