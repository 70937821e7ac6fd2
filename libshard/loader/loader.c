/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c - the life of a loader, from open to close; see loader.h
 *
 * shard_loader_open() prepares arithmetic, and holds the GPU if one is named.  The first next
 * allocates memory and starts threads.  After that nothing is allocated.
 */
#include "libshard/loader/loader.h"

#include <inttypes.h>
#include <unistd.h>

#include "libshard/base/clock.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/options.h"
#include "libshard/dataset/dataset.h"
#include "libshard/feed/feed.h"
#include "libshard/gpu/gpu.h"
#include "libshard/order/mix.h"

#define DEVICE_SLOTS_DEFAULT 3u /* the trainer has one, one is there, and one is on its way */

/* ---- open ---- */

static int settle_device(struct shard_loader_options *o, struct shard_error *err)
{
	o->device_slot_count = o->device_slot_count ? o->device_slot_count : DEVICE_SLOTS_DEFAULT;
	if (o->device_slot_count < DEVICE_SLOTS_MIN || o->device_slot_count > DEVICE_SLOTS_MAX)
		return error_set(err, SHARD_E_ARGUMENT, "options: device_slot_count is %u; must be %u to %u",
				 o->device_slot_count, DEVICE_SLOTS_MIN, DEVICE_SLOTS_MAX);
	if (o->gpu_stream && !o->gpu)
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: gpu_stream is %p and gpu 0; set gpu to SHARD_GPU_OF_STREAM, or to the "
				 "SHARD_GPU(n) of that stream",
				 o->gpu_stream);
	return SHARD_OK;
}

/* Refuse epochs without a step: training on nothing would not be noticed. */
static int refuse_empty(const struct shard_loader *l, struct shard_error *err)
{
	uint64_t records = l->steps.rank.record_count, most = records / l->o.world;

	if (order_rank_steps(&l->steps.rank))
		return SHARD_OK;
	if (!records)
		return error_set(err, SHARD_E_ARGUMENT, "the dataset has no records, so there is nothing to load");
	if (l->o.world == 1)
		return error_set(err, SHARD_E_ARGUMENT,
				 "%" PRIu64 " records are too few for one batch of %u; use batches of at most %" PRIu64
				 ", SHARD_PAD, or SHARD_KEEP",
				 records, l->o.batch_records, most);
	if (!most)
		return error_set(err, SHARD_E_ARGUMENT,
				 "%" PRIu64
				 " records are too few for one on each of %u ranks; use SHARD_PAD, or at most "
				 "%" PRIu64 " ranks",
				 records, l->o.world, records);
	return error_set(err, SHARD_E_ARGUMENT,
			 "%" PRIu64 " records are too few for one batch of %u on each of %u ranks; use batches of at "
			 "most %" PRIu64 ", or SHARD_PAD",
			 records, l->o.batch_records, l->o.world, most);
}

static int open_parts(struct shard_loader *l, struct shard_error *err)
{
	const struct shard_schema *schema = &l->ds->m.schema;
	int rc = settle_device(&l->o, err);

	if (!rc)
		rc = settle_options(&l->o, l->ds, &l->steps, err);
	if (!rc)
		rc = refuse_empty(l, err);
	if (!rc && l->o.mix)
		rc = mix_order_open(&l->steps.mix, l->o.mix, &l->steps.params, err);
	if (!rc)
		rc = loader_open_transformed(l, err);
	if (rc)
		return rc;
	if (!layout_plan(&l->layout, schema, l->o.fields, l->ds->uneven_groups, l->o.batch_records,
			 l->transformed ? l->transformed->remade : NULL))
		return error_set(err, SHARD_E_MEMORY,
				 "a batch of %u records does not fit memory; ask for smaller batches",
				 l->o.batch_records);
	rc = l->o.gpu ? cuda_open(&l->cuda, l->o.gpu, l->o.gpu_stream, err) : SHARD_OK;
	if (!rc && l->transformed && l->transformed->has_kernel)
		rc = loader_open_kernel(l, err);
	if (rc)
		return rc;
	if (l->o.pool_bytes)
		return pool_open(&l->pool, l->ds, &l->o, &l->layout, &l->steps, &l->device_slots, err);
	return feed_open(&l->feed, l->ds, &l->o, &l->layout,
			 l->transformed && transformed_has_work(l->transformed) ? l->transformed : NULL, &l->steps,
			 err);
}

static int take_dataset(struct shard_loader *l, struct shard_dataset *ds, struct shard_error *err)
{
	if (l->o.mix && ds)
		return error_set(
			err, SHARD_E_ARGUMENT,
			"there are a dataset and, in the options, a mixture; open the loader of a mixture with "
			"NULL for the dataset");
	if (!l->o.mix && !ds)
		return error_set(err, SHARD_E_ARGUMENT, "there is no dataset, and no mixture in the options");
	l->ds = l->o.mix ? l->o.mix->ds : ds;
	return SHARD_OK;
}

int shard_loader_open(struct shard_loader **out, struct shard_dataset *ds, const struct shard_loader_options *opt,
		      struct shard_error *err)
{
	struct shard_loader *l = mem_zalloc(sizeof(*l));
	int rc;

	if (!l)
		return error_set(err, SHARD_E_MEMORY, "no memory for a loader");
	rc = options_take(&l->o, sizeof(l->o), opt, err);
	if (!rc) {
		l->asked = l->o;
		rc = take_dataset(l, ds, err);
	}
	if (!rc)
		rc = open_parts(l, err);
	if (rc) {
		pool_close(l->pool, false);
		loader_close_kernel(l, false);
		cuda_close(l->cuda);
		mix_order_close(l->steps.mix, false);
		mem_free(l->transformed);
		mem_free(l);
		return rc;
	}
	*out = l;
	return SHARD_OK;
}

/* ---- parts ---- */

struct feed *loader_feed(const struct shard_loader *l)
{
	return l->pool ? l->pool->slabs.feed : l->feed;
}

struct device_copy *loader_device_copy(const struct shard_loader *l)
{
	return l->pool ? l->pool->slabs.copy : l->copy;
}

/* ---- start ---- */

int loader_start(struct shard_loader *l, struct shard_error *err)
{
	int rc;

	if (l->cursor.owner)
		return cursor_check_owner(&l->cursor, err);
	l->start_ns = clock_now_ns(); /* the time that threads fill is a part of it */

	rc = l->feed ? feed_start(l->feed, err) : SHARD_OK; /* a pool starts its feed by itself */
	if (rc)
		return rc;
	l->cursor.owner = getpid();
	return SHARD_OK;
}

int loader_check_epoch(const struct shard_loader *l, uint64_t epoch, struct shard_error *err)
{
	uint64_t records = l->steps.rank.record_count;

	if (!l->steps.mix || mix_has_epoch(epoch, records))
		return SHARD_OK;
	return error_set(err, SHARD_E_ARGUMENT,
			 "epoch %" PRIu64
			 " of the mixture would end behind position 2^62, where mixtures end; the last "
			 "epoch of %" PRIu64 " records is %" PRIu64,
			 epoch, records, MIX_POSITIONS_MAX / records - 1);
}

int loader_begin(struct shard_loader *l, struct shard_error *err)
{
	int rc = loader_start(l, err);

	if (!rc)
		rc = cursor_error(&l->cursor, err);
	return rc ? rc : loader_check_epoch(l, l->cursor.at.epoch, err);
}

bool loader_ends_epoch(struct shard_loader *l)
{
	if (!steps_ended(&l->steps, &l->cursor.at))
		return false;
	l->cursor.at = steps_epoch_after(&l->steps, &l->cursor.at);
	return true;
}

void loader_count(struct shard_loader *l, const struct shard_batch *batch)
{
	l->cursor.at.step++;
	l->batch_count++;
	l->record_count += batch->record_count;
	l->bytes += batch->record_count * l->layout.record_bytes;
}

/* ---- the GPU ---- */

static void close_gpu(struct shard_loader *l, bool inherited)
{
	if (inherited)
		cuda_forget(l->cuda);
	else
		cuda_close(l->cuda);
	l->cuda = NULL;
}

/* Copies read the ring of the feed, so this comes before feed_close(). */
static void close_device(struct shard_loader *l, bool inherited)
{
	bool entered = l->cuda && !inherited && !cuda_enter(l->cuda, NULL);

	if (!inherited)
		device_slots_finish(&l->device_slots, true, NULL);
	loader_close_kernel(l, inherited);
	pool_close(l->pool, inherited);
	device_copy_close(l->copy, inherited);
	device_slots_close(&l->device_slots, inherited);
	if (entered)
		cuda_leave(l->cuda, SHARD_OK, NULL);
	close_gpu(l, inherited);
}

int loader_open_device(struct shard_loader *l, void *stream, struct shard_error *err)
{
	int rc = l->cuda ? SHARD_OK : cuda_open(&l->cuda, 0, stream, err);

	if (rc || !l->feed || l->copy)
		return rc;
	rc = cuda_enter(l->cuda, err);
	if (!rc)
		rc = cuda_leave(l->cuda, device_copy_open(&l->copy, l->feed, &l->device_slots, l->cuda, err), err);
	if (rc && !l->o.gpu && !l->copy)
		close_gpu(l, false); /* the next call may be for another GPU */
	return rc;
}

/* ---- close ---- */

void shard_loader_close(struct shard_loader *l)
{
	if (!l)
		return;
	close_device(l, cursor_is_inherited(&l->cursor) || (l->cuda && cuda_is_inherited(l->cuda)));
	feed_close(l->feed);
	mix_order_close(l->steps.mix, cursor_is_inherited(&l->cursor));
	mem_free(l->transformed);
	mem_free(l);
}
