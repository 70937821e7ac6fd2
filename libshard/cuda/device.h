/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - a GPU, as far as a loader needs one: memory, copies to it, and who waits for whom
 *
 * Streams and events are the driver's handles, which the runtime API calls cudaStream_t and cudaEvent_t; memory of the
 * device is a number that the host must not follow.  But for cuda_open() and cuda_close(), calls stand between
 * cuda_enter() and cuda_leave() of the same thread; different threads may be inside at once.  What the driver refuses is
 * SHARD_E_DEVICE, with its name for it.  What is dropped or freed is so without a word: there is nothing more to do.
 */
#ifndef LIBSHARD_CUDA_DEVICE_H
#define LIBSHARD_CUDA_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard.h"

struct cuda_device;

/*
 * The context of `stream`; for NULL, the legacy default stream, the calling thread's context, and if it has none the
 * primary context of the first device, which is what the runtime API would use.  A primary context is kept alive until
 * close; any other must outlive this.  Nothing is made in it.  UNSUPPORTED if there is no driver or no device.
 */
int cuda_open(struct cuda_device **out, void *stream, struct shard_error *err);
void cuda_close(struct cuda_device *d); /* by the process that opened it; NULL is fine */
void cuda_forget(struct cuda_device *d); /* likewise, in a child of that process, where the driver is not */

/* Make the context current, and put back what was.  ARGUMENT in another process than that of cuda_open(). */
int cuda_enter(const struct cuda_device *d, struct shard_error *err);
/* `rc` if it is an error, else whether that went well. */
int cuda_leave(const struct cuda_device *d, int rc, struct shard_error *err);

/* Is it a stream of this context?  ARGUMENT if not.  To be asked outside, where NULL still means the caller's context. */
int cuda_check_stream(const struct cuda_device *d, void *stream, struct shard_error *err);

/* ---- streams and events ---- */

/* One that does not wait for the legacy default stream, nor that for it. */
int cuda_stream_make(const struct cuda_device *d, void **stream, struct shard_error *err);
void cuda_stream_drop(const struct cuda_device *d, void *stream);
/* What is queued on `stream` from now on waits for what the event was recorded behind last. */
int cuda_stream_wait(const struct cuda_device *d, void *stream, void *event, struct shard_error *err);
/* What is queued on `stream` from now on waits for what was queued on `behind` before. */
int cuda_stream_join(const struct cuda_device *d, void *stream, void *behind, struct shard_error *err);
/* A thread of the driver will call `call`, which may not call the driver, behind what is queued; if that fails, never. */
int cuda_stream_call(const struct cuda_device *d, void *stream, void (*call)(void *context), void *context, struct shard_error *err);
/* Has something failed that was queued?  Waits for nothing. */
int cuda_stream_check(const struct cuda_device *d, void *stream, struct shard_error *err);
/* Wait until all that is queued is done. */
int cuda_stream_finish(const struct cuda_device *d, void *stream, struct shard_error *err);

int cuda_event_make(const struct cuda_device *d, void **event, struct shard_error *err);
void cuda_event_drop(const struct cuda_device *d, void *event);
int cuda_event_record(const struct cuda_device *d, void *event, void *stream, struct shard_error *err);
int cuda_event_finish(const struct cuda_device *d, void *event, struct shard_error *err); /* waits */

/* Wait until all streams of the context have nothing more to do. */
int cuda_finish_all(const struct cuda_device *d, struct shard_error *err);

/* ---- kernels ---- */

/*
 * Kernels as PTX, a text that is constant, which the driver compiles for the device of the context: once, for all that ask
 * for the same text there.  None of what was launched of it may be under way when the last of them drops it.
 */
int cuda_module_get(const struct cuda_device *d, const char *ptx, void **module, struct shard_error *err);
void cuda_module_drop(const struct cuda_device *d, void *module); /* NULL is fine */
int cuda_kernel_find(const struct cuda_device *d, const void *module, const char *name, void **kernel, struct shard_error *err);
/* Queue it, with its one parameter, which is copied: `across` x `down` blocks of `threads`. */
int cuda_launch(const struct cuda_device *d, void *kernel, uint32_t across, uint32_t down, uint32_t threads, uint32_t shared_bytes,
		const void *parameter, void *stream, struct shard_error *err);

/* ---- memory ---- */

int cuda_alloc(const struct cuda_device *d, uint64_t bytes, uint64_t *memory, struct shard_error *err);
void cuda_free(const struct cuda_device *d, uint64_t memory);

/* Drivers refuse to page-lock hundreds of GiB at once, and hold up the process meanwhile: never more than this. */
uint64_t cuda_pin_most_bytes(void);

/* Page-lock memory, so that devices read it by themselves, at their full speed. */
int cuda_pin(const struct cuda_device *d, void *memory, uint64_t bytes, struct shard_error *err);
void cuda_unpin(const struct cuda_device *d, void *memory);
/* Is this byte page-locked already, by whomever? */
bool cuda_is_pinned(const struct cuda_device *d, const void *at);

/* Queue a copy to the device.  `from` must stay as it is until it is done; it may not cross the end of what was pinned at once. */
int cuda_copy_in(const struct cuda_device *d, uint64_t to, const void *from, uint64_t bytes, void *stream, struct shard_error *err);

#endif
