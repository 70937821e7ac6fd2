/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_host.c - batches in host memory: next, release, and the memory of the ring; wait
 */
#include <inttypes.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/gpu/gpu.h"
#include "libshard/loader/loader.h"
#include "shard_gpu.h"

/* Does this loader deliver batches in host memory? */
static int check_host(const struct shard_loader *l, struct shard_error *err)
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
		rc = check_host(l, err);
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
		rc = feed_next(l->feed, &slot, err);
	if (rc)
		return rc;
	feed_lend(l->feed, slot, batch);
	loader_count(l, batch);
	return SHARD_OK;
}

static int wait_once(struct shard_loader *l, uint64_t timeout_ns, struct shard_error *err)
{
	return l->pool ? pool_wait(l->pool, timeout_ns, err) : feed_wait(l->feed, timeout_ns, err);
}

/* If the driver fails meanwhile, no slot comes back, and next has an error. */
static int wait_and_watch(struct shard_loader *l, uint64_t timeout_ns, struct shard_error *err)
{
	uint64_t left = timeout_ns, part;
	int rc;

	do {
		struct device_copy *copy = loader_device_copy(l);

		part = copy ? min_u64(left, DEVICE_COPY_WATCH_NS) : left;
		left -= part;
		rc = wait_once(l, part, err);
		if (rc == SHARD_E_TIMEOUT && copy && device_copy_check(copy, NULL))
			return SHARD_OK;
	} while (rc == SHARD_E_TIMEOUT && left);
	return rc == SHARD_E_TIMEOUT ? error_set(err, rc, "no batch was ready within %" PRIu64 " ns", timeout_ns) : rc;
}

int shard_loader_wait(struct shard_loader *l, uint64_t timeout_ns, struct shard_error *err)
{
	int rc = loader_start(l, err);

	if (rc)
		return rc;
	/* Where next would return at once, there is nothing to wait for. */
	if (l->cursor.failed || loader_check_epoch(l, l->cursor.at.epoch, NULL) ||
	    steps_ended(&l->steps, &l->cursor.at) || device_slots_answers(&l->device_slots))
		return SHARD_OK;
	if (l->pool ? !l->device_slots.slot_count : l->feed->lent_count == l->o.slot_count)
		return SHARD_OK;
	return wait_and_watch(l, timeout_ns, err);
}

int shard_loader_release(struct shard_loader *l, const struct shard_batch *batch, struct shard_error *err)
{
	struct feed *feed = loader_feed(l);
	int rc = cursor_check_owner(&l->cursor, err);

	if (!rc && batch->slot & DEVICE_BATCH)
		rc = error_set(err, SHARD_E_ARGUMENT,
			       "release a batch on a GPU with shard_loader_release_after(), because the GPU may "
			       "still read it");
	if (!rc)
		rc = feed_check_lent(feed, batch, err);
	if (rc)
		return rc;
	feed_end_loan(feed, batch->slot);
	feed_give(feed, batch->slot);
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
