/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.c - see device.h
 *
 * A context belongs to the trainer.  So this file never makes, resets or configures one.
 */
#include "libshard/cuda/device.h"

#include <inttypes.h>
#include <unistd.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/cuda/driver.h"

#define PIN_MOST_BYTES (UINT64_C(1) << 30) /* page-locking this takes a tenth of a second */
#define MIB(bytes_)    ((double)(bytes_) / (1 << 20))

/* ---- whose context ---- */

static int find_context(const struct cuda_api *api, void *stream, struct cu_context **out, struct shard_error *err)
{
	int result = cuda_context_of(api, stream, out);

	if (!result)
		return SHARD_OK;
	return cuda_is_special(stream) ? cuda_refused(api, result, err, "cuCtxGetCurrent")
				       : cuda_refused(api, result, err, "cuStreamGetCtx, stream %p", stream);
}

static int retain_first(struct cuda_device *d, struct shard_error *err)
{
	int result = d->api->cuDeviceGet(&d->ordinal, 0);

	if (!result)
		result = d->api->cuDevicePrimaryCtxRetain(&d->context, d->ordinal);
	if (result)
		return cuda_refused(d->api, result, err, "retaining the primary context of device 0");
	d->retained = true;
	return SHARD_OK;
}

/*
 * If the context is the primary one of its device, hold it.  Ask before, because retaining would
 * make a primary context where there is none.
 */
static int retain_if_primary(struct cuda_device *d, struct shard_error *err)
{
	struct cu_context *primary;
	unsigned int flags;
	int active = 0, result = cuda_device_of(d->api, d->context, &d->ordinal);

	if (!result)
		result = d->api->cuDevicePrimaryCtxGetState(d->ordinal, &flags, &active);
	if (!result && active) {
		result = d->api->cuDevicePrimaryCtxRetain(&primary, d->ordinal);
		d->retained = !result && primary == d->context;
		if (!result && !d->retained)
			result = d->api->cuDevicePrimaryCtxRelease(d->ordinal);
	}
	return result ? cuda_refused(d->api, result, err, "reading the device of the current context") : SHARD_OK;
}

int cuda_open(struct cuda_device **out, void *stream, struct shard_error *err)
{
	struct cuda_device *d;
	const struct cuda_api *api;
	int rc = cuda_api_get(&api, err);

	if (rc)
		return rc;
	d = mem_zalloc(sizeof(*d));
	if (!d)
		return error_set(err, SHARD_E_MEMORY, "no memory for a device");
	d->api = api;
	rc = find_context(api, stream, &d->context, err);
	if (!rc)
		rc = d->context ? retain_if_primary(d, err) : retain_first(d, err);
	if (rc) {
		mem_free(d);
		return rc;
	}
	*out = d;
	return SHARD_OK;
}

void cuda_close(struct cuda_device *d)
{
	if (d && d->retained)
		d->api->cuDevicePrimaryCtxRelease(d->ordinal);
	mem_free(d);
}

void cuda_forget(struct cuda_device *d)
{
	mem_free(d);
}

int cuda_enter(const struct cuda_device *d, struct shard_error *err)
{
	int result;

	if (d->api->pid != getpid())
		return error_set(err, SHARD_E_ARGUMENT,
				 "process %ld opened the GPU, and its children cannot use it; open a loader in this "
				 "process",
				 (long)d->api->pid);
	result = d->api->cuCtxPushCurrent(d->context);
	return result ? cuda_refused(d->api, result, err, "cuCtxPushCurrent") : SHARD_OK;
}

int cuda_leave(const struct cuda_device *d, int rc, struct shard_error *err)
{
	struct cu_context *popped = NULL;
	int result = d->api->cuCtxPopCurrent(&popped);

	if (rc)
		return rc;
	if (result)
		return cuda_refused(d->api, result, err, "cuCtxPopCurrent");
	return SHARD_OK;
}

int cuda_check_stream(const struct cuda_device *d, void *stream, struct shard_error *err)
{
	struct cu_context *context = NULL;
	int rc = find_context(d->api, stream, &context, err);

	if (rc || context == d->context || (!context && cuda_is_special(stream)))
		return rc;
	return error_set(
		err, SHARD_E_ARGUMENT,
		cuda_is_special(stream)
			? "stream %p is the default stream of this thread's context; the first call used another "
			  "context: make its device current, or use one loader per device"
			: "stream %p belongs to another context than the stream of the first call; use one loader "
			  "per device",
		stream);
}

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

int cuda_finish_all(const struct cuda_device *d, struct shard_error *err)
{
	int result = d->api->cuCtxSynchronize();

	return result ? cuda_refused(d->api, result, err, "cuCtxSynchronize") : SHARD_OK;
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

int cuda_alloc(const struct cuda_device *d, uint64_t bytes, uint64_t *memory, struct shard_error *err)
{
	int result = d->api->cuMemAlloc(memory, (size_t)bytes);

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
