/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.c - a GPU: whose context it is used in, streams, events, and memory
 *
 * A context belongs to the trainer.  So this file never makes, resets or configures one.
 */
#include "libshard/gpu/gpu.h"

#include <inttypes.h>
#include <unistd.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"

#define PIN_MOST_BYTES	(UINT64_C(1) << 30)  /* page-locking this takes a tenth of a second */
#define MAP_PIECE_BYTES (UINT64_C(32) << 20) /* longer ones of anonymous memory took as long for each GiB on an H200 */
#define MAP_LEAST_BYTES (UINT64_C(64) << 10) /* shorter copies do not fill a link of PCIe 5.0: 25 GB/s at 28 KiB */
#define MIB(bytes_)	((double)(bytes_) / (1 << 20))

/* ---- captures ---- */

/*
 * While a trainer captures a CUDA graph, the driver refuses calls of this thread that it calls
 * unsafe, and the capture is lost.  In relaxed mode the driver allows them, because they do not
 * belong to the graph.  The mode is the thread's, and the caller gets back the one that it had.
 */
static _Thread_local struct {
	uint32_t depth; /* a thread may enter several times */
	int mode;	/* of the caller */
} visit;

static int relax(const struct cuda_api *api)
{
	int result = CU_SUCCESS;

	if (!visit.depth) {
		visit.mode = CU_CAPTURE_RELAXED;
		result = api->cuThreadExchangeStreamCaptureMode(&visit.mode);
	}
	visit.depth += !result;
	return result;
}

static int end_relax(const struct cuda_api *api)
{
	return --visit.depth ? CU_SUCCESS : api->cuThreadExchangeStreamCaptureMode(&visit.mode);
}

bool cuda_is_capture(const struct shard_error *err)
{
	return err->status == SHARD_E_DEVICE && err->os_code >= CU_CAPTURE_FIRST && err->os_code <= CU_CAPTURE_LAST;
}

/* ---- whose context ---- */

static int find_context(const struct cuda_api *api, void *stream, struct cu_context **out, struct shard_error *err)
{
	int result = cuda_context_of(api, stream, out);

	if (!result)
		return SHARD_OK;
	return cuda_is_special(stream) ? cuda_refused(api, result, err, "cuCtxGetCurrent")
				       : cuda_refused(api, result, err, "cuStreamGetCtx, stream %p", stream);
}

static int refuse_device(const struct cuda_device *d, int result, struct shard_error *err)
{
	return cuda_refused(d->api, result, err, "reading the device of a context");
}

/* Hold the primary context of a GPU by its number. */
static int retain(struct cuda_device *d, uint32_t number, struct shard_error *err)
{
	int result = d->api->cuDeviceGet(&d->ordinal, (int)number);

	if (!result)
		result = d->api->cuDevicePrimaryCtxRetain(&d->context, d->ordinal);
	if (result)
		return cuda_refused(d->api, result, err, "retaining the primary context of GPU %" PRIu32, number);
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
	return result ? refuse_device(d, result, err) : SHARD_OK;
}

/* Hold the context of GPU `number`: that of the stream or the thread if it is on it. */
static int retain_named(struct cuda_device *d, uint32_t number, void *stream, struct shard_error *err)
{
	int named, found, result = d->api->cuDeviceGet(&named, (int)number);

	if (result)
		return cuda_refused(d->api, result, err,
				    "GPU %" PRIu32 " (they count from 0, and CUDA_VISIBLE_DEVICES may hide some)",
				    number);
	if (!d->context)
		return retain(d, number, err);
	result = cuda_device_of(d->api, d->context, &found);
	if (result)
		return refuse_device(d, result, err);
	if (found == named)
		return retain_if_primary(d, err);
	if (cuda_is_special(stream))
		return retain(d, number, err);
	return error_set(err, SHARD_E_ARGUMENT,
			 "stream %p is not on GPU %" PRIu32 "; give a stream of that GPU, or name the stream's", stream,
			 number);
}

/* Hold the context that a caller has chosen: of the memory `at`, or, if that is NULL, see cuda_open(). */
static int choose(struct cuda_device *d, const void *at, uint32_t gpu, void *stream, struct shard_error *err)
{
	int result, second, rc;

	if (at) {
		result = d->api->cuPointerGetAttribute(&d->context, CU_ATTRIBUTE_CONTEXT, (uintptr_t)at);
		return result ? cuda_refused(d->api, result, err, "finding the GPU of the memory at %p", at)
			      : retain_if_primary(d, err);
	}
	rc = find_context(d->api, stream, &d->context, err);
	if (rc)
		return rc;
	if (gpu && gpu != SHARD_GPU_OF_STREAM)
		return retain_named(d, gpu - SHARD_GPU(0), stream, err);
	if (d->context)
		return retain_if_primary(d, err);
	/* Nothing names a GPU, and this thread has none: then there must be only one, or the first will do. */
	if (gpu || d->api->cuDeviceGet(&second, 1))
		return retain(d, 0, err);
	return error_set(err, SHARD_E_ARGUMENT,
			 "a default stream names no GPU in a thread that has chosen none of several: open the loader "
			 "with gpu.device = SHARD_GPU(n), or give a stream of your own");
}

/* ---- open and close ---- */

static int open_chosen(struct cuda_device **out, const void *at, uint32_t gpu, void *stream, struct shard_error *err)
{
	struct cuda_device *d;
	const struct cuda_api *api;
	int rc = cuda_api_get(&api, err), result;

	if (rc)
		return rc;
	result = relax(api);
	if (result)
		return cuda_refused(api, result, err, "cuThreadExchangeStreamCaptureMode");
	d = mem_zalloc(sizeof(*d));
	if (d) {
		d->api = api;
		rc = choose(d, at, gpu, stream, err);
	} else {
		rc = error_set(err, SHARD_E_MEMORY, "no memory for a device");
	}
	result = end_relax(api);
	if (!rc && result)
		rc = cuda_refused(api, result, err, "cuThreadExchangeStreamCaptureMode");
	if (rc)
		cuda_close(d);
	else
		*out = d;
	return rc;
}

int cuda_open(struct cuda_device **out, uint32_t gpu, void *stream, struct shard_error *err)
{
	return open_chosen(out, NULL, gpu, stream, err);
}

int cuda_open_at(struct cuda_device **out, const void *at, struct shard_error *err)
{
	return open_chosen(out, at, 0, NULL, err);
}

void cuda_close(struct cuda_device *d)
{
	if (d && d->retained && !relax(d->api)) {
		d->api->cuDevicePrimaryCtxRelease(d->ordinal);
		end_relax(d->api);
	}
	mem_free(d);
}

void cuda_forget(struct cuda_device *d)
{
	mem_free(d);
}

bool cuda_is_inherited(const struct cuda_device *d)
{
	return d->api->pid != getpid();
}

/* ---- enter and leave ---- */

int cuda_enter(const struct cuda_device *d, struct shard_error *err)
{
	int result;

	if (cuda_is_inherited(d))
		return error_set(err, SHARD_E_ARGUMENT,
				 "process %ld opened the GPU, and its children cannot use it; open a loader in this "
				 "process",
				 (long)d->api->pid);
	result = relax(d->api);
	if (result)
		return cuda_refused(d->api, result, err, "cuThreadExchangeStreamCaptureMode");
	result = d->api->cuCtxPushCurrent(d->context);
	if (result)
		end_relax(d->api);
	return result ? cuda_refused(d->api, result, err, "cuCtxPushCurrent") : SHARD_OK;
}

int cuda_leave(const struct cuda_device *d, int rc, struct shard_error *err)
{
	struct cu_context *popped = NULL;
	int result = d->api->cuCtxPopCurrent(&popped), mode = end_relax(d->api);

	if (rc)
		return rc;
	if (result)
		return cuda_refused(d->api, result, err, "cuCtxPopCurrent");
	return mode ? cuda_refused(d->api, mode, err, "cuThreadExchangeStreamCaptureMode") : SHARD_OK;
}

int cuda_check_stream(const struct cuda_device *d, void *stream, struct shard_error *err)
{
	struct cu_context *context = NULL;
	int status = CU_NOT_CAPTURING, result, rc;

	if (!cuda_is_special(stream)) {
		rc = find_context(d->api, stream, &context, err);
		if (rc)
			return rc;
		if (context != d->context)
			return error_set(err, SHARD_E_ARGUMENT,
					 "stream %p belongs to another context than the batches of this loader; give a "
					 "stream of their GPU, or use one loader per GPU",
					 stream);
	}
	result = d->api->cuStreamIsCapturing(stream, &status);
	if (result && result != CU_CAPTURE_IMPLICIT)
		return cuda_refused(d->api, result, err, "cuStreamIsCapturing, stream %p", stream);
	if (!result && status == CU_NOT_CAPTURING)
		return SHARD_OK;
	return error_set(err, SHARD_E_ARGUMENT,
			 "stream %p is being captured into a CUDA graph, which would use the same batch again and "
			 "again; take, transform and give back batches before or after the capture",
			 stream);
}

int cuda_check_memory(const struct cuda_device *d, const void *at, struct shard_error *err)
{
	struct cu_context *context = NULL;
	int result = d->api->cuPointerGetAttribute(&context, CU_ATTRIBUTE_CONTEXT, (uintptr_t)at);

	if (result)
		return cuda_refused(d->api, result, err, "finding the GPU of the batch at %p", at);
	if (context == d->context)
		return SHARD_OK;
	return error_set(err, SHARD_E_ARGUMENT,
			 "the batch at %p is in another context than the first one; open a transform for each loader",
			 at);
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

int cuda_stream_make_urgent(const struct cuda_device *d, void **stream, struct shard_error *err)
{
	struct cu_stream *made;
	int least, greatest, result = d->api->cuCtxGetStreamPriorityRange(&least, &greatest);

	if (result)
		return cuda_refused(d->api, result, err, "cuCtxGetStreamPriorityRange");
	result = d->api->cuStreamCreateWithPriority(&made, CU_STREAM_NON_BLOCKING, greatest);
	if (result)
		return cuda_refused(d->api, result, err, "cuStreamCreateWithPriority");
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
	int result = d->api->cuEventCreate(&made, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING);

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

int cuda_event_ask(const struct cuda_device *d, void *event, bool *done, struct shard_error *err)
{
	int result = d->api->cuEventQuery(event);

	*done = !result;
	return !result || result == CU_NOT_READY ? SHARD_OK : cuda_refused(d->api, result, err, "cuEventQuery");
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

int cuda_alloc(const struct cuda_device *d, uint64_t bytes, uint64_t *memory, struct shard_error *err)
{
	int result = d->api->cuMemAlloc(memory, (size_t)bytes);
	size_t unused = 0, all = 0;

	if (!result)
		return SHARD_OK;
	if (result != CU_OUT_OF_MEMORY || d->api->cuMemGetInfo(&unused, &all))
		return cuda_refused(d->api, result, err, "cuMemAlloc of %.1f MiB", MIB(bytes));
	return cuda_refused(d->api, result, err,
			    "cuMemAlloc of %.1f MiB, where %.1f of %.1f MiB are free (take the first batch before a "
			    "framework fills the GPU, give back what it keeps with torch.cuda.empty_cache(), or ask "
			    "for smaller batches, fewer device slots or a smaller pool)",
			    MIB(bytes), MIB(unused), MIB(all));
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

uint64_t cuda_map_piece_bytes(void)
{
	return MAP_PIECE_BYTES;
}

uint64_t cuda_map_least_bytes(void)
{
	return MAP_LEAST_BYTES;
}

int cuda_pin(const struct cuda_device *d, void *memory, uint64_t bytes, struct shard_error *err)
{
	int result = d->api->cuMemHostRegister(memory, (size_t)bytes, CU_REGISTER_PORTABLE);

	return result ? cuda_refused(d->api, result, err, "cuMemHostRegister of %.1f MiB", MIB(bytes)) : SHARD_OK;
}

int cuda_pin_map(const struct cuda_device *d, const void *map, uint64_t bytes, struct shard_error *err)
{
	int result = d->api->cuMemHostRegister((void *)(uintptr_t)map, (size_t)bytes,
					       CU_REGISTER_PORTABLE | CU_REGISTER_READ_ONLY);

	return result ? cuda_refused(d->api, result, err, "cuMemHostRegister of %.1f MiB of a file, read-only",
				     MIB(bytes))
		      : SHARD_OK;
}

void cuda_unpin(const struct cuda_device *d, const void *memory)
{
	d->api->cuMemHostUnregister((void *)(uintptr_t)memory);
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

int cuda_copy_out(const struct cuda_device *d, void *to, uint64_t from, uint64_t bytes, void *stream,
		  struct shard_error *err)
{
	int result = d->api->cuMemcpyDtoHAsync(to, from, (size_t)bytes, stream);

	return result ? cuda_refused(d->api, result, err, "copy of %" PRIu64 " bytes from the device", bytes)
		      : SHARD_OK;
}

/* ---- copies of many pieces ---- */

/* The call names host memory by the addresses that the host has, which not every GPU reads it by. */
static bool takes_batches(const struct cuda_device *d)
{
	int host_addresses = 0;

	return d->api->cuMemcpyBatchAsync && d->api->cuDeviceGetAttribute &&
	       !d->api->cuDeviceGetAttribute(&host_addresses, CU_DEVICE_HOST_ADDRESSES, d->ordinal) && host_addresses;
}

static int make_sides(const struct cuda_device *d, struct cuda_pieces *p, struct shard_error *err)
{
	int rc = SHARD_OK;

	for (uint32_t i = 0; !rc && i < CUDA_COPY_STREAMS - 1; i++)
		if (!p->side[i])
			rc = cuda_stream_make(d, &p->side[i], err);
	return rc;
}

/*
 * Without the call for many, CUDA_COPY_STREAMS streams share the copies.  On one stream of an H200 a
 * copy of 147 KiB takes 5.9 us, of which the link takes 2.7 us, and one of 64 KiB takes 4.3 us, of
 * which the link takes 1.2 us.  So 4 streams fill the link, if their pauses fall into the copies of
 * the others.  This was not measured: `make bench-gpu BENCH=gpu/streams` compares 1, 2, 4 and 8.
 */
int cuda_pieces_open(const struct cuda_device *d, struct cuda_pieces *p, size_t most, struct shard_error *err)
{
	if (!p->to)
		p->to = mem_array(most, sizeof(*p->to));
	if (!p->from)
		p->from = mem_array(most, sizeof(*p->from));
	if (!p->bytes)
		p->bytes = mem_array(most, sizeof(*p->bytes));
	if (!p->to || !p->from || !p->bytes)
		return error_set(err, SHARD_E_MEMORY, "no memory for %zu copies to the device", most);
	p->one_by_one |= !takes_batches(d);
	return p->one_by_one ? make_sides(d, p, err) : SHARD_OK;
}

void cuda_pieces_close(const struct cuda_device *d, struct cuda_pieces *p, bool inherited)
{
	for (uint32_t i = 0; !inherited && i < CUDA_COPY_STREAMS - 1; i++)
		cuda_stream_drop(d, p->side[i]);
	mem_free(p->to);
	mem_free(p->from);
	mem_free(p->bytes);
	*p = (struct cuda_pieces){.count = 0};
}

static int refuse_piece(const struct cuda_device *d, const struct cuda_pieces *p, size_t which, int result,
			struct shard_error *err)
{
	return cuda_refused(d->api, result, err, "copy %zu of %zu to the device, %zu bytes from %p", which + 1,
			    p->count, p->bytes[which], p->from[which]);
}

/* One call for each piece.  Its stream and those beside it have them in turn. */
static int copy_one_by_one(const struct cuda_device *d, const struct cuda_pieces *p, void *stream,
			   struct shard_error *err)
{
	size_t sides = 0;
	int rc = SHARD_OK, got, result;

	while (sides < CUDA_COPY_STREAMS - 1 && p->side[sides] && sides + 1 < p->count)
		sides++;
	for (size_t i = 0; !rc && i < sides; i++)
		rc = cuda_stream_join(d, p->side[i], stream, err);
	for (size_t i = 0; !rc && i < p->count; i++) {
		size_t turn = i % (sides + 1);

		result =
			d->api->cuMemcpyHtoDAsync(p->to[i], p->from[i], p->bytes[i], turn ? p->side[turn - 1] : stream);
		if (result)
			rc = refuse_piece(d, p, i, result, err);
	}
	/* This is needed after an error, too: anyone who waits for the stream may then free what these copies use. */
	for (size_t i = 0; i < sides; i++) {
		got = cuda_stream_join(d, stream, p->side[i], rc ? NULL : err);
		if (got)
			cuda_stream_finish(d, p->side[i], NULL);
		rc = rc ? rc : got;
	}
	return rc;
}

int cuda_copy_pieces(const struct cuda_device *d, struct cuda_pieces *p, void *stream, struct shard_error *err)
{
	struct cu_copy_attributes all = {.order = CU_COPY_IN_STREAM_ORDER};
	size_t first = 0, failed = SIZE_MAX;
	struct shard_error why;
	int result, rc;

	/* The driver takes no batch of nothing, and none on the legacy default stream. */
	if (!p->count || p->one_by_one || !d->api->cuMemcpyBatchAsync || p->side[0] || cuda_is_special(stream))
		return copy_one_by_one(d, p, stream, err);
	result = d->api->cuMemcpyBatchAsync(p->to, p->from, p->bytes, p->count, &all, &first, 1, &failed, stream);
	if (!result)
		return SHARD_OK;
	if (failed < p->count)
		refuse_piece(d, p, failed, result, &why);
	else
		cuda_refused(d->api, result, &why, "a batch of %zu copies to the device", p->count);
	/*
	 * Some of them may be queued.  They do no harm, because a copy that is made again brings the same
	 * bytes.  After a fault of the context, such as an illegal address, the driver refuses each call.
	 */
	rc = copy_one_by_one(d, p, stream, err);
	if (rc || cuda_is_capture(&why)) /* then it was not this call, or it ends with the capture */
		return rc;
	p->one_by_one = true;
	error_set(&p->why, why.status,
		  "the GPU driver has refused a call with many copies (%s).  So each copy is a call of its own, which "
		  "takes more CPU time, and longer",
		  why.message);
	p->why.os_code = why.os_code;
	make_sides(d, p, NULL); /* one stream is slower, and works */
	return SHARD_OK;
}
