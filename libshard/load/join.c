/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join.c - calls for bindings: which GPU a stream is on, one that waits for another, and a loader that begins before next
 *
 * Bindings learn of a stream only when an array is taken, or has died; and wait in slices, so that a user can stop them.
 */
#include "libshard/base/error.h"
#include "libshard/cuda/probe.h"
#include "libshard/load/pool.h"

int shard_stream_gpu(void *stream, uint32_t *ordinal, struct shard_error *err)
{
	return cuda_probe_stream(stream, ordinal, err);
}

static int join(const struct cuda_device *d, void *stream, void *behind, struct shard_error *err)
{
	void *event;
	int rc = cuda_event_make(d, &event, err);

	if (rc)
		return rc;
	rc = cuda_event_record(d, event, behind, err);
	if (!rc)
		rc = cuda_stream_wait(d, stream, event, err);
	cuda_event_drop(d, event); /* what waits for it still does */
	return rc;
}

int shard_loader_join(struct shard_loader *l, void *stream, void *behind, struct shard_error *err)
{
	int rc = cursor_check_owner(&l->cursor, err);

	if (!rc && !l->device)
		rc = error_set(err, SHARD_E_ARGUMENT, "this loader has delivered nothing to a GPU yet, so it does not know whose streams these are");
	if (!rc)
		rc = cuda_check_stream(l->device->cuda, stream, err);
	if (!rc)
		rc = cuda_check_stream(l->device->cuda, behind, err);
	if (!rc)
		rc = cuda_enter(l->device->cuda, err);
	return rc ? rc : cuda_leave(l->device->cuda, join(l->device->cuda, stream, behind, err), err);
}

/* Entered. */
static int begin(struct shard_loader *l, struct device_side *d, struct shard_error *err)
{
	int rc = device_open_slots(l, err);

	if (rc || !l->pool)
		return rc;
	pool_has(l, d); /* settles where the feed begins, before it does */
	return d->failed ? cursor_fail(&l->cursor, d->failed, &d->why, err) : shard_loader_begin_device(l->pool->feed, d->copy, err);
}

int shard_loader_begin_device(struct shard_loader *l, void *stream, struct shard_error *err)
{
	int rc = loader_begin(l, err);

	if (!rc)
		rc = device_get(l, stream, err);
	if (!rc)
		rc = cuda_enter(l->device->cuda, err);
	return rc ? rc : cuda_leave(l->device->cuda, begin(l, l->device, err), err);
}
