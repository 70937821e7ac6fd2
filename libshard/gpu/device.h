/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - a GPU, as a loader needs it: memory, copies, streams, and events
 *
 * Streams and events are handles of the driver.  The runtime API calls them cudaStream_t and
 * cudaEvent_t.  An address of the GPU's memory is a number, which the host cannot follow.
 *
 * A thread calls cuda_enter() before these functions, and cuda_leave() after them, except where a
 * comment says otherwise.  Several threads may be inside at once.
 *
 * An error of the driver becomes SHARD_E_DEVICE with the driver's name for it.  Functions that drop
 * or free something ignore errors: nothing more could be done.
 */
#ifndef SHARD_CUDA_DEVICE_H
#define SHARD_CUDA_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard.h"

struct cuda_device;

/*
 * Open a GPU, from outside.  `gpu` is as in struct shard_loader_options.
 *
 * With SHARD_GPU(n) this is the context of `stream`, or of this thread, if that is on GPU n, and
 * else its primary context.  A stream of the caller's own that is on another GPU is refused with
 * ARGUMENT.  With SHARD_GPU_OF_STREAM it is the context of `stream`.  A default stream has that of
 * this thread, or else the primary context of the first GPU.  With 0 it is the same, but a default
 * stream in a thread without a context is refused with ARGUMENT if there are several GPUs.
 *
 * A primary context is kept alive until close; any other must outlive this.  Nothing is made in it.
 * Fails with UNSUPPORTED if there is no driver or no device.
 */
int cuda_open(struct cuda_device **out, uint32_t gpu, void *stream, struct shard_error *err);
/* The same for the context that memory of a GPU belongs to. */
int cuda_open_at(struct cuda_device **out, const void *at, struct shard_error *err);
void cuda_close(struct cuda_device *d);		     /* from outside; NULL is fine */
void cuda_forget(struct cuda_device *d);	     /* the same in a forked child, which has no driver */
bool cuda_is_inherited(const struct cuda_device *d); /* is this a forked child? */

/*
 * Make the context current.  Until cuda_leave(), no call breaks a capture of the trainer.  Fails
 * with ARGUMENT in a forked child.
 */
int cuda_enter(const struct cuda_device *d, struct shard_error *err);
/* Put back the context that was current before.  Returns `rc` if that is an error. */
int cuda_leave(const struct cuda_device *d, int rc, struct shard_error *err);

/*
 * Fails with ARGUMENT if `stream` belongs to another context, or is being captured into a graph.  A
 * default stream is the one of this context, whichever context the caller had.  The context is
 * entered.
 */
int cuda_check_stream(const struct cuda_device *d, void *stream, struct shard_error *err);

/* Fails with ARGUMENT unless this memory of a GPU belongs to this context. */
int cuda_check_memory(const struct cuda_device *d, const void *at, struct shard_error *err);

/* Is this a refusal because the trainer captures a graph?  It ends with the capture. */
bool cuda_is_capture(const struct shard_error *err);

/* ---- streams and events ---- */

/* Make a stream that is independent of the legacy default stream. */
int cuda_stream_make(const struct cuda_device *d, void **stream, struct shard_error *err);
void cuda_stream_drop(const struct cuda_device *d, void *stream);
/* Make `stream` wait for an event, as it was recorded last. */
int cuda_stream_wait(const struct cuda_device *d, void *stream, void *event, struct shard_error *err);
/* Make `stream` wait for the work that is queued on `behind`. */
int cuda_stream_join(const struct cuda_device *d, void *stream, void *behind, struct shard_error *err);
/*
 * Have a thread of the driver call a function, behind the work on `stream`.  The function must not
 * call the driver.  It is never called if that work fails.
 */
int cuda_stream_call(const struct cuda_device *d, void *stream, void (*call)(void *context), void *context,
		     struct shard_error *err);
/* Has work on this stream failed?  Does not wait. */
int cuda_stream_check(const struct cuda_device *d, void *stream, struct shard_error *err);
/* Wait for the work that is queued on a stream. */
int cuda_stream_finish(const struct cuda_device *d, void *stream, struct shard_error *err);

int cuda_event_make(const struct cuda_device *d, void **event, struct shard_error *err);
void cuda_event_drop(const struct cuda_device *d, void *event);
int cuda_event_record(const struct cuda_device *d, void *event, void *stream, struct shard_error *err);
/* Wait for an event. */
int cuda_event_finish(const struct cuda_device *d, void *event, struct shard_error *err);

/* ---- memory ---- */

/* If there is no room, the error says how much there is. */
int cuda_alloc(const struct cuda_device *d, uint64_t bytes, uint64_t *memory, struct shard_error *err);
void cuda_free(const struct cuda_device *d, uint64_t memory);

/*
 * Never page-lock more than this at once.  Drivers refuse hundreds of GiB, and the process stands
 * still meanwhile.  Need not be entered.
 */
uint64_t cuda_pin_most_bytes(void);

/* Page-lock memory, so that GPUs read it by themselves, at full speed. */
int cuda_pin(const struct cuda_device *d, void *memory, uint64_t bytes, struct shard_error *err);
void cuda_unpin(const struct cuda_device *d, void *memory);
/* Is this byte page-locked, by us or by anybody else? */
bool cuda_is_pinned(const struct cuda_device *d, const void *at);

/*
 * Queue a copy to the GPU.  `from` must not change until it is done, and must not cross the end of
 * memory that was page-locked at once.
 */
int cuda_copy_in(const struct cuda_device *d, uint64_t to, const void *from, uint64_t bytes, void *stream,
		 struct shard_error *err);

#endif
