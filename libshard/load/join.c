/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join.c - streams of a caller that has several: which GPU one is on, and one that waits for another
 *
 * For bindings, which learn of a stream only when an array is taken, or has died.
 */
#include "libshard/base/error.h"
#include "libshard/cuda/probe.h"
#include "libshard/load/device.h"

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
	int rc = loader_check_owner(l, err);

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
