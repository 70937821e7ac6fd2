/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slabs.c - the slabs that a pool is made of: how many there are, how they are fetched and given back
 *
 * A slab holds rows of a share of the dataset, see order.h, laid out like a batch, but for whole
 * records of some small groups.  It is a device slot that the pool owns, and that a device copy fills
 * from a feed of runs.  It stays lent as long as a window needs it.  Slabs are numbered as they come,
 * from the first one ever.
 *
 * One stream keeps everything in order, that of the batches.  It waits for slabs, puts batches
 * together, and then gives slabs back.  The host waits only for a slab that the feed has not filled
 * yet, or that the GPU has not checked yet.
 */
#include "libshard/gpu/gpu.h"

#include <assert.h>
#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"

/* ---- how large a pool must be ---- */

/*
 * The plan does not change the order: a pool of any size, or none, delivers the same batches.
 */

#define SLAB_BYTES  (UINT64_C(16) << 20) /* of one copy: starting it costs far less than this */
#define SLAB_PARTS  8u			 /* of a window, at least, so that memory is free again soon */
#define WINDOWS	    3u
#define STRIDE_MOST (UINT64_C(65535) * GATHER_PART) /* of a record: CUDA allows 65,535 blocks in y */

/*
 * Small groups of which a slab has records as they lie in the shard: a run of them is one copy, which
 * the GPU makes itself out of the page cache.  Records of other groups are too short for that, or
 * more than a quarter of their bytes are padding or fields that nobody wants.
 */
static uint32_t run_groups(const struct layout *batch, uint64_t run_records)
{
	uint32_t groups = layout_unread_groups(batch);

	for (uint32_t g = 0; g < batch->schema->group_count; g++) {
		uint64_t stride = batch->schema->group[g].stride, wanted = 0;

		for (uint32_t i = 0; i < batch->field_count[g]; i++)
			wanted += batch->field[g][i].bytes;
		if (wanted < stride - stride / 4 || mul_capped(run_records, stride) < cuda_map_least_bytes())
			groups &= ~(UINT32_C(1) << g);
	}
	return groups;
}

/* Slab length: a whole number of runs, or one run if that alone exceeds the target size. */
static int plan_slabs(struct pool_plan *p, const struct layout *batch, const struct steps *steps, bool whole,
		      struct shard_error *err)
{
	const struct order_params *params = &steps->params;
	uint64_t rows, band, want, r;

	order_share_init(&p->share, params, &steps->rank, whole);
	rows = order_share_rows(&p->share);
	r = p->share.run_records;
	band = params->kind == ORDER_TWO_LEVELS ? order_largest_band(params) / p->share.stride : rows;
	want = min_u64(SLAB_BYTES / (batch->record_bytes ? batch->record_bytes : 1), band / SLAB_PARTS);
	want = want < r ? r : want / r * r;
	want = min_u64(min_u64(want, rows), UINT32_MAX / 2);
	p->slab_rows = (uint32_t)(want ? want : 1);
	p->epoch_slabs = ceil_div(rows, p->slab_rows);
	/* A pool that holds everything reads a record once, so its memory matters more. */
	if (!layout_plan(&p->slab, batch->schema, batch->fields, 0,
			 whole ? 0 : run_groups(batch, steps_run_records(steps)), p->slab_rows, NULL))
		return error_set(err, SHARD_E_MEMORY,
				 "a run of %" PRIu64 " records does not fit memory; set a smaller order.run_records",
				 r);
	return SHARD_OK;
}

int pool_plan(struct pool_plan *out, const struct shard_loader_options *o, const struct layout *batch,
	      const struct steps *steps, struct shard_error *err)
{
	const struct shard_schema *schema = batch->schema;
	uint64_t bytes = o->gpu.pool_bytes, all, slabs, windows, step, least;
	int rc;

	for (uint32_t g = 0; g < schema->group_count; g++)
		if (schema->group[g].stride > STRIDE_MOST)
			return error_set(err, SHARD_E_UNSUPPORTED,
					 "a record has %" PRIu64 " bytes; a pool takes records of at most %" PRIu64,
					 schema->group[g].stride, STRIDE_MOST);
	rc = plan_slabs(out, batch, steps, true, err);
	if (rc)
		return rc;
	slabs = out->epoch_slabs;
	all = mul_capped(slabs, out->slab.slot_bytes);
	out->is_held = bytes >= all;
	if (!out->is_held) {
		rc = plan_slabs(out, batch, steps, false, err);
		if (rc)
			return rc;
		/* At least what one step needs, and 3 windows.  One more is on its way. */
		slabs = bytes / out->slab.slot_bytes;
		windows = WINDOWS * ceil_div(order_largest_band(&steps->params), out->share.stride);
		step = order_share_span(&out->share, &steps->params, o->batch_records);
		least = ceil_div(max_u64(step, windows), out->slab_rows) + 2; /* the rows may begin within a slab */
		if (slabs < least)
			return error_set(err, SHARD_E_ARGUMENT,
					 "options: gpu.pool_bytes is %" PRIu64 "; with these windows and batches a "
					 "pool needs %" PRIu64 ", or %" PRIu64 " to hold the whole dataset",
					 bytes, mul_capped(least, out->slab.slot_bytes), all);
	}
	if (out->is_held && mul_capped(slabs, out->slab_rows) > UINT32_MAX)
		return error_set(err, SHARD_E_UNSUPPORTED, "a pool takes at most %u records; the dataset has %" PRIu64,
				 UINT32_MAX, steps->rank.record_count);
	out->slab_count = (uint32_t)min_u64(slabs, UINT32_MAX / out->slab_rows);
	return SHARD_OK;
}

/* ---- life ---- */

int slabs_open(struct slabs *s, const struct pool_plan *plan, struct feed *feed, struct device_slots *batches,
	       struct shard_error *err)
{
	s->plan = plan;
	s->feed = feed;
	s->batches = batches;
	s->slot = mem_array(plan->slab_count, sizeof(*s->slot));
	if (!s->slot)
		return error_set(err, SHARD_E_MEMORY, "no memory for %u slabs of the pool", plan->slab_count);
	return SHARD_OK;
}

void slabs_close(struct slabs *s, bool inherited)
{
	if (!inherited)
		device_slots_finish(&s->device_slots, true, NULL);
	device_copy_close(s->copy, inherited);
	device_slots_close(&s->device_slots, inherited);
	feed_close(s->feed);
	mem_free(s->slot);
}

int slabs_begin(struct slabs *s, struct shard_error *err)
{
	const struct cuda_device *cuda = s->batches->cuda;
	int rc = s->feed->cursor.owner ? SHARD_OK : feed_start(s->feed, err);

	if (!rc && !s->copy)
		rc = device_copy_open(&s->copy, s->feed, &s->device_slots, cuda, true, err);
	if (!rc && !s->device_slots.slot_count)
		rc = device_slots_open(&s->device_slots, cuda, s->plan->slab_count, &s->plan->slab, s->plan->slab_rows,
				       err);
	return rc ? rc : device_copy_use_maps(s->copy, err);
}

/* ---- where a row is ---- */

uint64_t slabs_number(const struct slabs *s, uint64_t epoch, uint64_t slab)
{
	return s->origin + (epoch - s->origin_epoch) * s->plan->epoch_slabs + slab - s->origin_slab;
}

uint32_t slabs_find(const struct slabs *s, uint64_t epoch, uint64_t row, uint32_t *in_slab)
{
	const struct pool_plan *p = s->plan;
	uint64_t slab = pool_plan_slab(p, row), number;

	if (p->is_held) /* slabs come once, from origin_slab on, round the end of the epoch */
		number = (slab + p->epoch_slabs - s->origin_slab) % p->epoch_slabs;
	else
		number = slabs_number(s, epoch, slab);
	assert(number >= s->first && number < s->end);
	*in_slab = (uint32_t)(row % p->slab_rows);
	return s->slot[number % p->slab_count];
}

/* ---- back and forth ---- */

int slabs_give_back(struct slabs *s, struct shard_error *err)
{
	int rc = SHARD_OK;

	for (; !rc && s->first < s->end && s->first < s->limit; s->first += !rc)
		rc = device_slots_take_back(&s->device_slots, s->slot[s->first % s->plan->slab_count],
					    s->batches->stream, err);
	return rc;
}

int slabs_start(struct slabs *s, uint64_t epoch, uint64_t slab, struct shard_error *err)
{
	int rc;

	s->limit = s->end; /* all slabs go back */
	rc = slabs_give_back(s, err);
	if (rc)
		return rc;
	s->origin_epoch = epoch;
	s->origin_slab = slab;
	s->origin = s->end;
	device_slots_forget(&s->device_slots);
	if (s->plan->is_held)
		s->feed->steps.held_epoch = epoch; /* the feed has not started yet */
	feed_move(s->feed, (struct step_place){.epoch = epoch, .first_position = slab * s->plan->slab_rows});
	return SHARD_OK;
}

void slabs_retry(struct slabs *s)
{
	uint64_t slab = s->end - s->origin + s->origin_slab, all = s->plan->epoch_slabs;

	if (!s->feed->cursor.failed)
		return;
	device_slots_forget(&s->device_slots);
	feed_move(s->feed, (struct step_place){.epoch = s->origin_epoch + slab / all,
					       .first_position = slab % all * s->plan->slab_rows});
}

bool slabs_has_next(const struct slabs *s)
{
	const struct device_slots *o = &s->device_slots;

	return o->queue_count && (!s->copy->check || batch_check_is_back(s->copy->check, &o->slot[o->queue[0]]));
}

int slabs_fetch(struct slabs *s, struct shard_error *err)
{
	int rc = slabs_begin(s, err);

	assert(s->end - s->first < s->plan->slab_count); /* pool_plan() made room for each step */
	if (!rc)
		rc = device_copy_next(s->copy, err);
	if (rc)
		return rc;
	device_copy_send_ahead(s->copy); /* before this thread may wait for a check */
	rc = device_copy_settle(s->copy, err);
	if (!rc)
		rc = device_slots_await(&s->device_slots, s->batches->stream, err);
	if (rc)
		return rc;
	s->slot[s->end++ % s->plan->slab_count] = device_slots_lend(&s->device_slots);
	return slabs_give_back(s, err);
}
