/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_device.c - batches on a GPU: next, release, and the streams of the caller
 */
#include "libshard/base/error.h"
#include "libshard/loader/loader.h"

/* ---- next ---- */

/* Allocate memory for batches, and for results of a kernel, unless that was done. */
static int open_device_slots(struct shard_loader *l, struct shard_error *err)
{
	int rc = SHARD_OK;

	if (!l->device_slots.slot_count)
		rc = device_slots_open(&l->device_slots, l->cuda, l->o.gpu.slot_count, &l->layout,
				       steps_rows(&l->steps), err);
	if (!rc && l->kernel && !l->kernel->memory)
		rc = cuda_alloc(l->cuda, l->kernel->slot_bytes * l->device_slots.slot_count, &l->kernel->memory, err);
	if (!rc && l->copy)
		rc = device_copy_use_maps(l->copy, err);
	return rc;
}

static int next_device(struct shard_loader *l, void *stream, struct shard_error *err)
{
	struct shard_error why = {.status = SHARD_OK};
	int rc = cuda_check_stream(l->cuda, stream, err);

	if (!rc)
		rc = open_device_slots(l, err);
	if (!rc && l->device_slots.lent_count == l->device_slots.slot_count)
		rc = error_set(err, SHARD_E_ARGUMENT,
			       "the caller holds all %u slots of the device; release a batch before taking the next",
			       l->device_slots.slot_count);
	if (rc)
		return rc;
	rc = l->pool ? pool_next(l->pool, &why) : device_copy_next(l->copy, &why);
	if (rc)
		return cursor_fail(&l->cursor, rc, &why, err);
	if (l->pool) {
		rc = device_slots_await(&l->device_slots, stream, err);
		if (!rc)
			pool_send_ahead(l->pool);
		return rc;
	}
	device_copy_send_ahead(l->copy); /* before this thread may wait for a check */
	rc = device_copy_settle(l->copy, &why);
	return rc ? cursor_fail(&l->cursor, rc, &why, err) : device_slots_await(&l->device_slots, stream, err);
}

int shard_loader_next_device(struct shard_loader *l, void *stream, struct shard_batch *batch, struct shard_error *err)
{
	struct shard_error why;
	uint32_t which;
	int rc = loader_begin(l, err);

	if (!rc)
		rc = loader_open_device(l, stream, true, err);
	if (rc)
		return rc;
	if (loader_ends_epoch(l))
		return SHARD_END;
	rc = cuda_enter(l->cuda, err);
	if (!rc)
		rc = cuda_leave(l->cuda, next_device(l, stream, err), err);
	if (rc)
		return rc;
	which = device_slots_lend(&l->device_slots);
	slot_describe(&l->device_slots.slot[which].as, &l->layout, &l->steps, which | DEVICE_BATCH, batch);
	loader_count(l, batch);
	rc = l->kernel ? loader_run_kernel(l, batch, stream, &why) : SHARD_OK;
	if (rc) { /* the batch could not be transformed, and goes back */
		rc = cursor_fail(&l->cursor, rc, &why, err);
		shard_loader_release_after(l, batch, stream, NULL);
	}
	return rc;
}

/* Open the GPU of this stream, enter its context, and check the stream.  After an error it is not entered. */
static int enter(struct shard_loader *l, void *stream, bool to_gpu, struct shard_error *err)
{
	int rc = loader_open_device(l, stream, to_gpu, err);

	if (!rc)
		rc = cuda_enter(l->cuda, err);
	if (rc)
		return rc;
	rc = cuda_check_stream(l->cuda, stream, err);
	return rc ? cuda_leave(l->cuda, rc, err) : SHARD_OK;
}

int shard_loader_begin_device(struct shard_loader *l, void *stream, struct shard_error *err)
{
	int rc = loader_begin(l, err);

	if (!rc)
		rc = enter(l, stream, true, err);
	if (rc)
		return rc;
	rc = open_device_slots(l, err);
	if (!rc && l->pool)
		rc = pool_begin(l->pool, err);
	rc = cuda_leave(l->cuda, rc, err);
	if (!rc && l->kernel)
		rc = batch_transform_begin(l->kernel->transform, (const void *)(uintptr_t)l->kernel->memory, err);
	return rc;
}

/* ---- release ---- */

static int release_device(struct shard_loader *l, const struct shard_batch *batch, void *stream,
			  struct shard_error *err)
{
	uint32_t which = batch->slot & ~DEVICE_BATCH;
	int rc;

	if (which >= l->device_slots.slot_count || !slot_is_lent_as(&l->device_slots.slot[which].as, &l->steps, batch))
		return error_set(err, SHARD_E_ARGUMENT,
				 "the caller does not hold slot %u of the device: was this batch released before, or "
				 "does it belong to another loader?",
				 which);
	rc = cuda_enter(l->cuda, err);
	if (rc)
		return rc;
	rc = cuda_check_stream(l->cuda, stream, err);
	if (!rc)
		rc = device_slots_take_back(&l->device_slots, which, stream, err);
	return cuda_leave(l->cuda, rc, err);
}

static int release_host(struct shard_loader *l, const struct shard_batch *batch, void *stream, struct shard_error *err)
{
	int rc = feed_check_lent(loader_feed(l), batch, err);

	if (!rc)
		rc = enter(l, stream, false, err);
	if (rc)
		return rc;
	feed_end_loan(l->feed, batch->slot); /* before: from then on the slot belongs to the crew */
	rc = device_copy_give_after(l->copy, batch->slot, stream, err);
	if (rc)
		feed_lend_again(l->feed, batch->slot);
	return cuda_leave(l->cuda, rc, err);
}

int shard_loader_release_after(struct shard_loader *l, const struct shard_batch *batch, void *stream,
			       struct shard_error *err)
{
	int rc = cursor_check_owner(&l->cursor, err);

	if (rc)
		return rc;
	return batch->slot & DEVICE_BATCH ? release_device(l, batch, stream, err) : release_host(l, batch, stream, err);
}

/* ---- streams, page-locks ---- */

int shard_stream_gpu(void *stream, uint32_t *ordinal, struct shard_error *err)
{
	return cuda_probe_stream(stream, ordinal, err);
}

int shard_loader_join(struct shard_loader *l, void *stream, void *behind, struct shard_error *err)
{
	int rc = cursor_check_owner(&l->cursor, err);

	if (!rc && !l->cuda)
		rc = error_set(err, SHARD_E_ARGUMENT,
			       "this loader has no GPU yet, so it cannot check these streams; call "
			       "shard_loader_next_device() first");
	if (!rc)
		rc = cuda_enter(l->cuda, err);
	if (rc)
		return rc;
	rc = cuda_check_stream(l->cuda, stream, err);
	if (!rc)
		rc = cuda_check_stream(l->cuda, behind, err);
	if (!rc)
		rc = cuda_stream_join(l->cuda, stream, behind, err);
	return cuda_leave(l->cuda, rc, err);
}

int shard_loader_pin(struct shard_loader *l, void *stream, struct shard_error *err)
{
	int rc = loader_begin(l, err);

	if (!rc)
		rc = loader_check_host(l, err);
	if (!rc)
		rc = enter(l, stream, false, err);
	if (rc)
		return rc;
	rc = cuda_leave(l->cuda, SHARD_OK, err);
	l->awaits_pins = l->awaits_pins || !rc;
	return rc;
}

int shard_loader_pin_problem(struct shard_loader *l, struct shard_error *out)
{
	struct device_copy *copy = loader_device_copy(l);

	if (!copy || cursor_is_inherited(&l->cursor))
		return SHARD_END;
	return device_copy_problem(copy, out) ? SHARD_OK : SHARD_END;
}
