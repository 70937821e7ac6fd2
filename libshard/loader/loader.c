/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c - a loader: a feed, its copies to a GPU, and a pool behind the public calls
 *
 * In host memory a batch is a slot of the feed.  On a GPU it is a device slot.  Either a device
 * copy fills the device slots from the feed, or a pool does, which has a feed of its own.  These
 * parts know no ends of epochs.  Ends of epochs, seek and resume are the work of this room.
 *
 * shard_loader_open() prepares arithmetic, and holds the GPU if one is named.  The first next
 * allocates memory and starts threads.  After that nothing is allocated.
 *
 * Everything here belongs to the consumer, the thread that calls next.
 */
#include "libshard/loader/loader.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "libshard/base/bytes.h"
#include "libshard/base/clock.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/options.h"
#include "libshard/dataset/dataset.h"
#include "libshard/io/io.h"
#include "libshard/order/order.h"

/* ---- open ---- */

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

#define LIMIT_BYTES (UINT64_C(1) << 30) /* to fill fewer takes no look at the limits */

/*
 * Would the ring fill more memory than there is?  The system may promise it, and end the process later.
 * On a GPU records may stay where they are mapped.
 */
static int refuse_too_large(const struct shard_loader *l, struct shard_error *err)
{
	uint64_t bytes = l->layout.slot_bytes * l->o.slot_count, limit;

	if (l->o.gpu.device || bytes < LIMIT_BYTES)
		return SHARD_OK;
	limit = memory_limit_bytes();
	if (bytes <= limit)
		return SHARD_OK;
	return error_set(err, SHARD_E_MEMORY,
			 "%u slots for batches of %u rows of %" PRIu64 " bytes have %" PRIu64
			 " bytes, and this process may have %" PRIu64
			 " bytes of memory and swap; ask for smaller batches%s",
			 l->o.slot_count, steps_rows(&l->steps), l->layout.record_bytes, bytes, limit,
			 l->steps.window.episodes ? " or shorter windows" : "");
}

static int open_parts(struct shard_loader *l, struct shard_dataset *ds, struct shard_error *err)
{
	int rc;

	if (l->o.mix && ds)
		return error_set(
			err, SHARD_E_ARGUMENT,
			"there are a dataset and, in the options, a mixture; open the loader of a mixture with "
			"NULL for the dataset");
	if (!l->o.mix && !ds)
		return error_set(err, SHARD_E_ARGUMENT, "there is no dataset, and no mixture in the options");
	l->ds = l->o.mix ? l->o.mix->ds : ds;
	rc = settle_options(&l->o, l->ds, &l->steps, err);
	if (!rc)
		rc = refuse_empty(l, err);
	if (!rc && l->steps.window.episodes) {
		size_t count = l->steps.window.offset_count;

		l->offset = mem_array(count, sizeof(*l->offset));
		if (!l->offset)
			return error_set(err, SHARD_E_MEMORY, "no memory for %zu offsets of a window", count);
		memcpy(l->offset, l->steps.window.offset, count * sizeof(*l->offset));
		l->steps.window.offset = l->offset;
	}
	if (!rc && l->o.mix)
		rc = mix_order_open(&l->steps.mix, l->o.mix, &l->steps.params, err);
	if (!rc)
		rc = loader_open_transformed(l, err);
	if (rc)
		return rc;
	if (!layout_plan(&l->layout, &l->ds->m.schema, l->o.fields, l->ds->uneven_groups, 0, steps_rows(&l->steps),
			 l->transformed ? l->transformed->remade : NULL))
		return error_set(err, SHARD_E_MEMORY,
				 "a batch of %u records has more than %zu bytes, which is the most that a batch can "
				 "have; ask for smaller batches",
				 steps_rows(&l->steps), SIZE_MAX / 2 / LAYOUT_SLOTS_MAX);
	rc = refuse_too_large(l, err);
	if (rc)
		return rc;
	rc = l->o.gpu.device ? cuda_open(&l->cuda, l->o.gpu.device, l->o.gpu.stream, err) : SHARD_OK;
	if (!rc && l->transformed && l->transformed->has_kernel)
		rc = loader_open_kernel(l, err);
	if (rc)
		return rc;
	if (l->o.gpu.pool_bytes)
		return pool_open(&l->pool, l->ds, &l->o, &l->layout, &l->steps, &l->device_slots, err);
	return feed_open(&l->feed, l->ds, &l->o, &l->layout,
			 l->transformed && transformed_has_work(l->transformed) ? l->transformed : NULL, &l->steps,
			 err);
}

int shard_loader_open(struct shard_loader **out, struct shard_dataset *ds, const struct shard_loader_options *opt,
		      struct shard_error *err)
{
	struct shard_loader *l = mem_zalloc(sizeof(*l));
	int rc;

	if (!l)
		return error_set(err, SHARD_E_MEMORY, "no memory for a loader");
	rc = options_take(&l->o, sizeof(l->o), opt, err);
	l->asked = l->o;
	if (!rc)
		rc = open_parts(l, ds, err);
	if (rc)
		shard_loader_close(l);
	else
		*out = l;
	return rc;
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

/* Start, unless that was done.  Fails with ARGUMENT in a forked child. */
static int start(struct shard_loader *l, struct shard_error *err)
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
	int rc = start(l, err);

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

int loader_open_device(struct shard_loader *l, void *stream, bool to_gpu, struct shard_error *err)
{
	int rc = l->cuda ? SHARD_OK : cuda_open(&l->cuda, 0, stream, err);

	if (rc || !l->feed || l->copy)
		return rc;
	rc = cuda_enter(l->cuda, err);
	if (!rc)
		rc = cuda_leave(l->cuda, device_copy_open(&l->copy, l->feed, &l->device_slots, l->cuda, to_gpu, err),
				err);
	if (rc && !l->o.gpu.device && !l->copy) { /* the next call may be for another GPU */
		cuda_close(l->cuda);
		l->cuda = NULL;
	}
	return rc;
}

/* ---- close ---- */

void shard_loader_close(struct shard_loader *l)
{
	bool inherited, entered;

	if (!l)
		return;
	inherited = cursor_is_inherited(&l->cursor) || (l->cuda && cuda_is_inherited(l->cuda));
	entered = l->cuda && !inherited && !cuda_enter(l->cuda, NULL);
	if (!inherited)
		device_slots_finish(&l->device_slots, true, NULL);
	loader_close_kernel(l, inherited);
	pool_close(l->pool, inherited);
	device_copy_close(l->copy, inherited);
	device_slots_close(&l->device_slots, inherited);
	if (entered)
		cuda_leave(l->cuda, SHARD_OK, NULL);
	if (inherited)
		cuda_forget(l->cuda);
	else
		cuda_close(l->cuda);
	feed_close(l->feed); /* behind the copies, which read its ring */
	mix_order_close(l->steps.mix, cursor_is_inherited(&l->cursor));
	mem_free(l->transformed);
	mem_free(l->offset);
	mem_free(l);
}

/* ---- batches in host memory ---- */

int loader_check_host(const struct shard_loader *l, struct shard_error *err)
{
	if (l->pool)
		return error_set(err, SHARD_E_ARGUMENT,
				 "this loader has a pool on a GPU and delivers batches there, with "
				 "shard_loader_next_device(); open another loader for batches in host memory");
	if (l->kernel)
		return error_set(err, SHARD_E_ARGUMENT,
				 "this loader transforms images on its GPU and delivers batches there, with "
				 "shard_loader_next_device(); leave gpu at 0 to transform on the CPU");
	if (l->device_slots.slot_count)
		return error_set(err, SHARD_E_ARGUMENT,
				 "this loader has delivered to a GPU since shard_loader_next_device() was called; "
				 "open another loader for batches in host memory");
	return SHARD_OK;
}

int shard_loader_next(struct shard_loader *l, struct shard_batch *batch, struct shard_error *err)
{
	uint32_t slot;
	int rc = loader_begin(l, err);

	if (!rc)
		rc = loader_check_host(l, err);
	if (rc)
		return rc;
	if (loader_ends_epoch(l))
		return SHARD_END;
	if (l->feed->lent_count == l->o.slot_count)
		return error_set(err, SHARD_E_ARGUMENT,
				 "the caller holds all %u slots; release a batch before taking the next",
				 l->o.slot_count);
	if (l->copy) /* the driver may have slots, which it gives back behind work on a stream */
		rc = device_copy_await(l->copy, err);
	if (!rc)
		rc = feed_next(l->feed, &slot, NULL, err);
	if (rc)
		return rc;
	if (l->awaits_pins)
		device_copy_await_pins(l->copy, slot); /* whether it is page-locked then, pin_problem tells */
	feed_lend(l->feed, slot, batch);
	loader_count(l, batch);
	return SHARD_OK;
}

int shard_loader_wait(struct shard_loader *l, uint64_t timeout_ns, struct shard_error *err)
{
	uint64_t left = timeout_ns, part;
	int rc = start(l, err);

	if (rc)
		return rc;
	/* Where next would return at once, there is nothing to wait for. */
	if (l->cursor.failed || loader_check_epoch(l, l->cursor.at.epoch, NULL) ||
	    steps_ended(&l->steps, &l->cursor.at) || device_slots_answers(&l->device_slots))
		return SHARD_OK;
	if (l->pool ? !l->device_slots.slot_count : l->feed->lent_count == l->o.slot_count)
		return SHARD_OK;
	do {
		struct device_copy *copy = loader_device_copy(l);

		part = copy ? min_u64(left, DEVICE_COPY_WATCH_NS) : left;
		left -= part;
		if (l->pool)
			rc = pool_wait(l->pool, part, err);
		else
			rc = feed_await(l->feed, part) ? SHARD_OK : SHARD_E_TIMEOUT;
		/* If the driver fails meanwhile, no slot comes back, and next has an error. */
		if (rc == SHARD_E_TIMEOUT && copy && device_copy_check(copy, NULL))
			return SHARD_OK;
	} while (rc == SHARD_E_TIMEOUT && left);
	return rc == SHARD_E_TIMEOUT ? error_set(err, rc, "no batch was ready within %" PRIu64 " ns", timeout_ns) : rc;
}

/* Does the caller hold this batch, in host memory? */
static int check_release(const struct shard_loader *l, const struct shard_batch *batch, struct shard_error *err)
{
	int rc = cursor_check_owner(&l->cursor, err);

	if (!rc && batch->slot & DEVICE_BATCH)
		rc = error_set(err, SHARD_E_ARGUMENT,
			       "release a batch on a GPU with shard_loader_release_after(), because the GPU may "
			       "still read it");
	return rc ? rc : feed_check_lent(loader_feed(l), batch, err);
}

int shard_loader_release(struct shard_loader *l, const struct shard_batch *batch, struct shard_error *err)
{
	int rc = check_release(l, batch, err);

	if (rc)
		return rc;
	feed_end_loan(loader_feed(l), batch->slot);
	feed_give(loader_feed(l), batch->slot);
	return SHARD_OK;
}

/* ---- memory ---- */

uint64_t shard_loader_ring_bytes(const struct shard_loader *l)
{
	return ring_bytes(&loader_feed(l)->ring);
}

int shard_loader_lend(struct shard_loader *l, void *memory, uint64_t bytes, struct shard_error *err)
{
	return feed_use_memory(loader_feed(l), memory, bytes, err);
}

int shard_loader_lend_slots(struct shard_loader *l, void *const memory[], uint32_t count, struct shard_error *err)
{
	if (l->pool)
		return error_set(err, SHARD_E_ARGUMENT,
				 "this loader has a pool on a GPU, and its ring holds runs, which stay there; lend "
				 "memory for it with shard_loader_lend()");
	return feed_use_slots(l->feed, memory, count, err);
}

int shard_loader_swap(struct shard_loader *l, const struct shard_batch *batch, void *memory, struct shard_error *err)
{
	struct feed *feed = loader_feed(l);
	int rc = check_release(l, batch, err);

	if (!rc && loader_device_copy(l))
		rc = error_set(err, SHARD_E_ARGUMENT,
			       "this loader has a GPU, which knows the memory of each slot; open another loader for "
			       "batches whose memory is kept");
	if (!rc)
		rc = feed_check_swap(feed, memory, err);
	if (rc)
		return rc;
	feed_end_loan(feed, batch->slot);
	feed->ring.slot[batch->slot].memory = memory;
	feed_give(feed, batch->slot);
	return SHARD_OK;
}

/* ---- what a loader did: each part fills in what it counts; and a line of it for a log ---- */

void shard_loader_stats(struct shard_loader *l, struct shard_loader_stats *out)
{
	struct device_copy *copy = loader_device_copy(l);

	memset(out, 0, sizeof(*out));
	if (!l->cursor.owner || cursor_is_inherited(&l->cursor))
		return;
	feed_stats(loader_feed(l), out);
	if (copy)
		device_copy_stats(copy, out);
	out->batch_count = l->batch_count;
	out->record_count = l->record_count;
	out->bytes = l->bytes;
	out->elapsed_ns = clock_now_ns() - l->start_ns;
}

/* Counters only grow; those of two different loaders must not become huge numbers. */
static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* Tenths of part x scale / whole, rounded. */
static uint64_t tenths(uint64_t part, uint64_t scale, uint64_t whole)
{
	unsigned __int128 n = ((unsigned __int128)part * scale * 10 + whole / 2) / whole;

	return n < UINT64_MAX ? (uint64_t)n : UINT64_MAX;
}

/* Integers, so that no locale changes a point to a comma. */
void shard_stats_summary(const struct shard_loader_stats *now, const struct shard_loader_stats *before,
			 char text[SHARD_SUMMARY_BYTES])
{
	static const struct shard_loader_stats none;
	const struct shard_loader_stats *b = before ? before : &none;
	uint64_t batches = since(now->batch_count, b->batch_count), ns = since(now->elapsed_ns, b->elapsed_ns);
	uint64_t records_s, megabytes_s, seconds, waited;

	if (!batches || !ns) {
		snprintf(text, SHARD_SUMMARY_BYTES, "no batch was taken");
		return;
	}
	seconds = tenths(ns, 1, 1000000000);
	records_s = tenths(since(now->record_count, b->record_count), 1000000000, ns);
	megabytes_s = tenths(since(now->bytes, b->bytes), 1000, ns);
	waited = min_u64(tenths(since(now->next_wait_ns, b->next_wait_ns), 100, ns), 1000);
	snprintf(text, SHARD_SUMMARY_BYTES,
		 "%" PRIu64 " batch%s in %" PRIu64 ".%" PRIu64 " s, %" PRIu64 ".%" PRIu64 " records/s, %" PRIu64
		 ".%" PRIu64 " MB/s; next waited %" PRIu64 ".%" PRIu64 " %% of the time",
		 batches, batches == 1 ? "" : "es", seconds / 10, seconds % 10, records_s / 10, records_s % 10,
		 megabytes_s / 10, megabytes_s % 10, waited / 10, waited % 10);
}

int shard_loader_last_damage(struct shard_loader *l, struct shard_error *out)
{
	return feed_last_damage(loader_feed(l), out) ? SHARD_OK : SHARD_END;
}
