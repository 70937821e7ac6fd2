/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.c - streams, events and memory of a GPU
 */
#include "libshard/gpu/gpu.h"

#define PIN_MOST_BYTES (UINT64_C(1) << 30) /* page-locking this takes a tenth of a second */
#define MIB(bytes_)    ((double)(bytes_) / (1 << 20))

/* ---- streams and events ---- */

int cuda_stream_make(const struct cuda_device *d, void **stream, struct shard_error *err)
{
	struct cu_stream *made;
	int result = d->api->cuStreamCreate(&made, CU_STREAM_NON_BLOCKING);

	if (result)
		return cuda_refused(d->api, result, err, "cuStreamCreate");
	*stream = made;
	return SHARD_OK;
}

void cuda_stream_drop(const struct cuda_device *d, void *stream)
{
	if (stream)
		d->api->cuStreamDestroy(stream);
}

int cuda_stream_wait(const struct cuda_device *d, void *stream, void *event, struct shard_error *err)
{
	int result = d->api->cuStreamWaitEvent(stream, event, 0);

	return result ? cuda_refused(d->api, result, err, "cuStreamWaitEvent, stream %p", stream) : SHARD_OK;
}

int cuda_stream_call(const struct cuda_device *d, void *stream, void (*call)(void *context), void *context,
		     struct shard_error *err)
{
	int result = d->api->cuLaunchHostFunc(stream, call, context);

	return result ? cuda_refused(d->api, result, err, "cuLaunchHostFunc") : SHARD_OK;
}

int cuda_stream_check(const struct cuda_device *d, void *stream, struct shard_error *err)
{
	int result = d->api->cuStreamQuery(stream);

	if (!result || result == CU_NOT_READY)
		return SHARD_OK;
	return cuda_refused(d->api, result, err, "work queued earlier has failed");
}

int cuda_stream_finish(const struct cuda_device *d, void *stream, struct shard_error *err)
{
	int result = d->api->cuStreamSynchronize(stream);

	return result ? cuda_refused(d->api, result, err, "cuStreamSynchronize") : SHARD_OK;
}

int cuda_event_make(const struct cuda_device *d, void **event, struct shard_error *err)
{
	struct cu_event *made;
	int result = d->api->cuEventCreate(&made, CU_EVENT_DISABLE_TIMING);

	if (result)
		return cuda_refused(d->api, result, err, "cuEventCreate");
	*event = made;
	return SHARD_OK;
}

void cuda_event_drop(const struct cuda_device *d, void *event)
{
	if (event)
		d->api->cuEventDestroy(event);
}

int cuda_event_record(const struct cuda_device *d, void *event, void *stream, struct shard_error *err)
{
	int result = d->api->cuEventRecord(event, stream);

	return result ? cuda_refused(d->api, result, err, "cuEventRecord, stream %p", stream) : SHARD_OK;
}

int cuda_event_finish(const struct cuda_device *d, void *event, struct shard_error *err)
{
	int result = d->api->cuEventSynchronize(event);

	return result ? cuda_refused(d->api, result, err, "cuEventSynchronize") : SHARD_OK;
}

int cuda_stream_join(const struct cuda_device *d, void *stream, void *behind, struct shard_error *err)
{
	void *event = NULL;
	int rc = cuda_event_make(d, &event, err);

	if (rc)
		return rc;
	rc = cuda_event_record(d, event, behind, err);
	if (!rc)
		rc = cuda_stream_wait(d, stream, event, err);
	cuda_event_drop(d, event); /* the stream still waits for it */
	return rc;
}

/* ---- memory ---- */

static int fail_full(const struct cuda_device *d, uint64_t bytes, struct shard_error *err)
{
	size_t unused = 0, all = 0;

	if (d->api->cuMemGetInfo(&unused, &all))
		return cuda_refused(d->api, CU_OUT_OF_MEMORY, err, "cuMemAlloc of %.1f MiB", MIB(bytes));
	return cuda_refused(d->api, CU_OUT_OF_MEMORY, err,
			    "cuMemAlloc of %.1f MiB, where %.1f of %.1f MiB are free (take the first batch before a "
			    "framework fills the GPU, give back what it keeps with torch.cuda.empty_cache(), or ask "
			    "for smaller batches, fewer device slots or a smaller pool)",
			    MIB(bytes), MIB(unused), MIB(all));
}

int cuda_alloc(const struct cuda_device *d, uint64_t bytes, uint64_t *memory, struct shard_error *err)
{
	int result = d->api->cuMemAlloc(memory, (size_t)bytes);

	if (result == CU_OUT_OF_MEMORY)
		return fail_full(d, bytes, err);
	return result ? cuda_refused(d->api, result, err, "cuMemAlloc of %.1f MiB", MIB(bytes)) : SHARD_OK;
}

void cuda_free(const struct cuda_device *d, uint64_t memory)
{
	if (memory)
		d->api->cuMemFree(memory);
}

uint64_t cuda_pin_most_bytes(void)
{
	return PIN_MOST_BYTES;
}

int cuda_pin(const struct cuda_device *d, void *memory, uint64_t bytes, struct shard_error *err)
{
	int result = d->api->cuMemHostRegister(memory, (size_t)bytes, CU_REGISTER_PORTABLE);

	return result ? cuda_refused(d->api, result, err, "cuMemHostRegister of %.1f MiB", MIB(bytes)) : SHARD_OK;
}

void cuda_unpin(const struct cuda_device *d, void *memory)
{
	d->api->cuMemHostUnregister(memory);
}

bool cuda_is_pinned(const struct cuda_device *d, const void *at)
{
	unsigned int kind = 0;

	return !d->api->cuPointerGetAttribute(&kind, CU_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)at) && kind == CU_MEMORY_HOST;
}

int cuda_copy_in(const struct cuda_device *d, uint64_t to, const void *from, uint64_t bytes, void *stream,
		 struct shard_error *err)
{
	int result = d->api->cuMemcpyHtoDAsync(to, from, (size_t)bytes, stream);

	return result ? cuda_refused(d->api, result, err, "copy of %.1f MiB to the device", MIB(bytes)) : SHARD_OK;
}
