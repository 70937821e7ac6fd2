/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.h - the driver of NVIDIA, copies of batches ahead of the trainer, and pools of records on a GPU
 */
#ifndef SHARD_GPU_GPU_H
#define SHARD_GPU_GPU_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libshard/feed/feed.h"
#include "libshard/gpu/api.h"
#include "libshard/gpu/check.h"
#include "libshard/gpu/gather.h"
#include "libshard/order/order.h"
#include "libshard/transform/transform.h"
#include "shard.h"
#include "shard_gpu.h"
#include "shard_transform.h"

/* ---- driver.c: NVIDIA's driver, and which GPUs there are ---- */

/*
 * The driver.  The first call in this process loads and starts it, and later calls return what that
 * one found.  Fails with UNSUPPORTED if there is no driver or no device, or the driver is too old.
 * Fails with ARGUMENT in a child of the process that has started it.
 */
int cuda_api_get(const struct cuda_api **out, struct shard_error *err);

/*
 * The context of a stream.  That of a special stream is the context of this thread, or NULL.
 * Returns the result of the driver, as the next function does.
 */
int cuda_context_of(const struct cuda_api *api, void *stream, struct cu_context **out);
/* The CUdevice of a context. */
int cuda_device_of(const struct cuda_api *api, struct cu_context *context, int *device);

/*
 * Fail with DEVICE.  The driver's name and text for `result` stand behind the sentence, and the
 * result becomes os_code.
 */
int cuda_refused(const struct cuda_api *api, int result, struct shard_error *err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

struct cuda_driver {
	bool is_loaded;	       /* the driver's library is there, even if it does not work */
	uint32_t major, minor; /* the newest version of CUDA that it supports */
	uint32_t device_count;
	const char *lacks; /* calls that are missing; "": none */
	bool has_batches;  /* cuda_copy_pieces() is one call of the driver */
};

struct cuda_gpu {
	char name[128];
	char bus_id[32]; /* "0000:65:00.0" */
	uint64_t memory_bytes;
	uint32_t capability_major, capability_minor;
};

/*
 * Load and start the driver.  Fails as cuda_open() does.  If the driver lacks a call that is needed
 * here, `lacks` names it, and only `has_batches` is known.  A loader does not need these calls.
 * `is_loaded` is set even if this fails.
 */
int cuda_probe(struct cuda_driver *out, struct shard_error *err);
/* `ordinal` is below device_count. */
int cuda_probe_gpu(uint32_t ordinal, struct cuda_gpu *out, struct shard_error *err);

/*
 * The GPU of a stream.  That of a default stream is the GPU of this thread's context, or else the
 * first one.
 */
int cuda_probe_stream(void *stream, uint32_t *ordinal, struct shard_error *err);

/* ---- device.c: contexts, streams, events, memory ---- */

/*
 * Streams and events are handles of the driver.  The runtime API calls them cudaStream_t and
 * cudaEvent_t.  An address of the GPU's memory is a number, which the host cannot follow.
 *
 * A thread calls cuda_enter() before these functions, and cuda_leave() after them, except where a
 * comment says otherwise.  Several threads may be inside at once.
 *
 * An error of the driver becomes SHARD_E_DEVICE with the driver's name for it.  Functions that drop
 * or free something ignore errors: nothing more could be done.
 */

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
/*
 * The same for short kernels that somebody waits for.  Their blocks go before those of kernels that wait
 * on other streams, but no kernel that runs is stopped for them.
 */
int cuda_stream_make_urgent(const struct cuda_device *d, void **stream, struct shard_error *err);
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
/* Is the work in front of an event done?  Does not wait. */
int cuda_event_ask(const struct cuda_device *d, void *event, bool *done, struct shard_error *err);
/* Wait for an event.  The thread sleeps meanwhile. */
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

/*
 * Of a map of a file: how much to page-lock at once, and how long a copy out of it must be to be
 * worth it.  Need not be entered.
 */
uint64_t cuda_map_piece_bytes(void);
uint64_t cuda_map_least_bytes(void);

/* Page-lock memory, so that GPUs read it by themselves, at full speed. */
int cuda_pin(const struct cuda_device *d, void *memory, uint64_t bytes, struct shard_error *err);
/*
 * Page-lock a read-only, shared map of a file in place: its pages in the page cache are what the GPU
 * reads.  Measured on ext4: 43 ms/GiB and no memory.  A private map would be copied, at 600 ms/GiB.
 * Without the flag that this sets, drivers refuse a map that cannot be written.
 */
int cuda_pin_map(const struct cuda_device *d, const void *map, uint64_t bytes, struct shard_error *err);
void cuda_unpin(const struct cuda_device *d, const void *memory);
/* Is this byte page-locked, by us or by anybody else? */
bool cuda_is_pinned(const struct cuda_device *d, const void *at);

/*
 * Queue a copy to the GPU.  `from` must not change until it is done, and must not cross the end of
 * memory that was page-locked at once.
 */
int cuda_copy_in(const struct cuda_device *d, uint64_t to, const void *from, uint64_t bytes, void *stream,
		 struct shard_error *err);

/*
 * Queue a copy from the GPU to memory that is page-locked.  The host may look at it when an event
 * behind the copy is done.
 */
int cuda_copy_out(const struct cuda_device *d, void *to, uint64_t from, uint64_t bytes, void *stream,
		  struct shard_error *err);

/*
 * Copies to the GPU.  None is empty, and none crosses the end of memory that was page-locked at
 * once.  Nor may one write where another does, because they may run in any order.
 */
#define CUDA_COPY_STREAMS 4u

struct cuda_pieces {
	uint64_t *to; /* [count], as: */
	const void **from;
	size_t *bytes;
	size_t count;
	bool one_by_one;	/* the driver has no call for many that this GPU can use, or it has refused it */
	struct shard_error why; /* why it has refused the call; status 0: it has not */
	/* Further streams that share the copies then.  NULL: one has all. */
	void *side[CUDA_COPY_STREAMS - 1];
};

/*
 * Make room for `most` copies, and the streams beside the one that is named for them, if the driver
 * needs any.  After an error close it.  May be called again.
 */
int cuda_pieces_open(const struct cuda_device *d, struct cuda_pieces *p, size_t most, struct shard_error *err);
/* Copies have finished.  The context is entered, except in a forked child, with `inherited`. */
void cuda_pieces_close(const struct cuda_device *d, struct cuda_pieces *p, bool inherited);

/*
 * Queue all of them, in one call where the driver has it (CUDA 12.8), or else in one call each, on
 * several streams.  If the one call is refused, each copy gets its own, from then on.  Measured on
 * an H200 with records of 147 KiB: 50 GB/s in one call, or 26 on one stream.  The copies wait for
 * earlier work on `stream`, and later work on it waits for all.  The arrays may change once this
 * returns, but not the memory at `from`.  After an error some may be queued, and later work waits for
 * those.
 */
int cuda_copy_pieces(const struct cuda_device *d, struct cuda_pieces *p, void *stream, struct shard_error *err);

/* ---- kernels.c: kernels, and their text ---- */

extern const char transform_ptx[], gather_ptx[], check_ptx[];

/* `ptx` is a constant. */
int cuda_module_get(const struct cuda_device *d, const char *ptx, void **module, struct shard_error *err);
/* None of its kernels may be under way when the last user drops it.  NULL is fine. */
void cuda_module_drop(const struct cuda_device *d, void *module);

int cuda_kernel_find(const struct cuda_device *d, const void *module, const char *name, void **kernel,
		     struct shard_error *err);
/* Each runs some blocks at a time. */
uint32_t cuda_multiprocessors(const struct cuda_device *d);
/* The most shared memory that a block of a kernel may have, if cuda_kernel_allow() was called. */
uint32_t cuda_shared_most(const struct cuda_device *d);
/* Let the kernel have that much.  Without this it is TRANSFORM_SHARED_BYTES. */
int cuda_kernel_allow(const struct cuda_device *d, void *kernel, struct shard_error *err);
/* Queue a kernel of `across` x `down` blocks of `threads`.  Its one parameter is copied. */
int cuda_launch(const struct cuda_device *d, void *kernel, uint32_t across, uint32_t down, uint32_t threads,
		uint32_t shared_bytes, const void *parameter, void *stream, struct shard_error *err);

/* ---- pins.c: which slots of a ring are page-locked ---- */

enum pin_state { PIN_PENDING, PIN_LOCKED, PIN_UNLOCKED };

struct pins {
	const struct ring *ring; /* const after open, as: */
	const struct cuda_device *cuda;
	uint64_t chunk_bytes; /* of a part that are page-locked at once */
	/* Parts of each slot.  Some are page-locked when they are first needed. */
	uint32_t part_count;
	struct pins_part {
		uint64_t at, bytes; /* in the slot */
		bool when_needed;
	} part[SHARD_GROUPS_MAX];
	pthread_t thread;
	bool has_thread;

	pthread_mutex_t lock;
	pthread_cond_t change;	/* with lock: the state of a part has changed, or `needed` or `stop` has */
	enum pin_state *state;	/* [slot_count x part_count] lock; NULL: not open */
	uint64_t bytes;		/* lock: that are page-locked, by us or by their owner */
	bool needed;		/* lock: page-lock all parts */
	bool stop;		/* lock: the thread shall end */
	bool late;		/* lock: the system takes too long, so no batch waits any more */
	bool has_refusal;	/* lock: `why` is about a slot that was refused */
	struct shard_error why; /* lock: why the first slot was refused, or is late; status 0: none was */
};

/*
 * Start to page-lock the ring, whose slots have this layout.  If its memory was lent, see what its
 * owner has page-locked.  The arrays of some groups may never be needed, so their pages are not
 * page-locked before they are: `when_needed` has a bit for each.  A refusal is not an error;
 * pins_problem() tells about it.  The context is entered.
 */
int pins_open(struct pins *p, const struct ring *ring, const struct layout *layout, uint32_t when_needed,
	      const struct cuda_device *cuda, struct shard_error *err);
/* Copies have finished.  The context is entered, except in a forked child, with `inherited`. */
void pins_close(struct pins *p, bool inherited);

/* The part that has this place of a slot. */
uint32_t pins_part(const struct pins *p, uint64_t at);
/* These parts, a bit for each, are needed.  Is it known whether those of this slot are page-locked? */
bool pins_knows(struct pins *p, uint32_t slot, uint32_t parts);
/* Is this part of a slot page-locked?  Waits some seconds at most until that is known. */
bool pins_has(struct pins *p, uint32_t slot, uint32_t part);
uint64_t pins_bytes(struct pins *p);			    /* that are page-locked so far */
bool pins_problem(struct pins *p, struct shard_error *out); /* false: nothing was refused */

/* ---- maps.c: records that a GPU reads where they lie in the page cache ---- */

struct maps;

/*
 * From now on the feed leaves records of these groups, of maps_groups(), where they are mapped, as
 * far as that memory can be page-locked: up to gpu.pin_most.  A refusal is not an error;
 * maps_problem() tells about it.  Of check_groups, who copies the records has to check them.
 */
int maps_open(struct maps **out, struct feed *feed, uint32_t groups, uint32_t check_groups,
	      const struct cuda_device *cuda, struct shard_error *err);
/*
 * Copies have finished.  Waits for threads of the feed.  The context is entered, except in a forked
 * child, with `inherited`.  NULL is fine.
 */
void maps_close(struct maps *m, bool inherited);

/* If memory has become scarce, give some back.  Looks once a second.  The context is entered. */
void maps_relieve(struct maps *m);
uint64_t maps_bytes(const struct maps *m);		    /* that are page-locked; NULL: 0 */
bool maps_problem(struct maps *m, struct shard_error *out); /* false: all could be page-locked that was needed */

/* The groups of a feed whose records may stay in the page cache; 0: there is nothing to gain. */
uint32_t maps_groups(const struct feed *feed);

/* ---- device_slots.c: batches on a GPU, filled ahead ---- */

#define DEVICE_BATCH	 0x80000000u /* a bit of shard_batch.slot: the slot is one of the device */
#define DEVICE_SLOTS_MIN 2u	     /* batches in the memory of a GPU */
#define DEVICE_SLOTS_MAX 4u

struct device_slot {
	struct slot as; /* its memory is an address of the GPU; the arrays are the host's */
	void *ready;	/* event: the slot is filled, and its check has come back */
	void *done;	/* event: the borrower is done with the slot */
	bool has_done;	/* `done` was recorded at least once */
	bool awaited;	/* the filling stream waits for `done` already */
	bool queued;	/* the slot is in the queue */
	/* Of the batch in it, or the one before that: */
	uint64_t repaired; /* its rows that were substituted or masked, as far as is known */
	bool settled;	   /* it may be lent */
	bool is_repaired;  /* some of its rows were substituted or masked */
	bool looked;	   /* all of it is sound now, or nothing was left to the GPU, so no check reads it */
	uint32_t check;	   /* of batch_check.c: where the check is, until then */
};

struct device_slots {
	const struct cuda_device *cuda; /* const after open, as: */
	void *stream;			/* the filling stream */
	void *check_stream;		/* made by batch_check_open(); NULL: no slot is checked on the GPU */
	uint64_t memory;		/* of all slots, an address of the GPU */
	uint32_t slot_count;		/* 0: not open */
	struct device_slot *slot;	/* [slot_count] */

	uint32_t lent_count;
	uint32_t next_slot; /* the search for a free slot begins here */
	uint32_t *queue;    /* [slot_count] slots that are filled, in the order of delivery */
	uint32_t queue_count;
};

/* Allocate the slots, of that layout, and make the filling stream. */
int device_slots_open(struct device_slots *o, const struct cuda_device *cuda, uint32_t slot_count,
		      const struct layout *layout, uint32_t batch_records, struct shard_error *err);
/*
 * Call device_slots_finish() before.  A forked child calls this too, with `inherited`, without
 * entering the context.  Then it only frees memory.
 */
void device_slots_close(struct device_slots *o, bool inherited);
/* Wait for both streams and, with `borrowers`, for work on slots that were given back. */
int device_slots_finish(struct device_slots *o, bool borrowers, struct shard_error *err);

/* ---- filling ---- */

/* Returns a slot that is neither lent nor queued, or NULL. */
struct device_slot *device_slots_find_free(struct device_slots *o);
/* Begin to fill a slot: what is queued on the filling stream from now on may write to it. */
int device_slots_begin(struct device_slots *o, struct device_slot *s, struct shard_error *err);
/* End filling it: the work that was queued there fills the slot. */
int device_slots_end(struct device_slots *o, struct device_slot *s, struct shard_error *err);
/* Add the slot to the queue. */
void device_slots_push(struct device_slots *o, struct device_slot *s);
/* Empty the queue.  Does not wait. */
void device_slots_forget(struct device_slots *o);

/* ---- lending ---- */

/* Is there a slot in the queue, or are all slots lent, so that there is nothing to wait for? */
bool device_slots_answers(const struct device_slots *o);
/* Make `stream` wait until the first slot of the queue is filled. */
int device_slots_await(const struct device_slots *o, void *stream, struct shard_error *err);
/* Lend that slot.  Returns its number. */
uint32_t device_slots_lend(struct device_slots *o);
/* Take a slot back, behind the work that is queued on `stream`. */
int device_slots_take_back(struct device_slots *o, uint32_t which, void *stream, struct shard_error *err);

/* ---- batch_check.c: batches are hashed where they lie on the GPU ---- */

/*
 * It hashes units that lie in a batch as a whole, if records of theirs were copied from where they are
 * mapped.  A thread of the feed leaves those `unchecked`, and says the leaf hash.
 *
 * A batch is lent when its results have come back and are good.  Damage that the GPU finds goes
 * back to the CPU, which reads the records again and does what the options say about damage.
 */
struct batch_check;

/*
 * The groups of a feed whose records the GPU can check, of those whose records stay in the page
 * cache; 0: none, or nobody has asked for checks.
 */
uint32_t batch_check_groups(const struct feed *feed, uint32_t map_groups);
/* The device slots are open. */
int batch_check_open(struct batch_check **out, struct feed *feed, struct device_slots *slots, uint32_t groups,
		     struct shard_error *err);
/* Kernels have finished.  The context is entered, except in a forked child, with `inherited`.  NULL is fine. */
void batch_check_close(struct batch_check *c, bool inherited);
/*
 * May another batch be queued?  Else too many checks are under way.  Checks of queued batches that have
 * come back and are good make room.
 */
bool batch_check_has_room(struct batch_check *c);
/*
 * The copies of a batch to a device slot are queued, and device_slots_end() was called.  Queue the check of
 * what is due behind them, and record `ready` again behind that.  After an error wait for both streams.
 */
int batch_check_queue(struct batch_check *c, const struct slot *host, struct device_slot *to, struct shard_error *err);
/*
 * Wait for the check of a batch, and repair its rows.  Then to->repaired is right.  Fails with
 * CORRUPT if the options do not allow damage, and with DEVICE if the GPU does not do its work.
 */
int batch_check_finish(struct batch_check *c, struct device_slot *to, struct shard_error *err);
/*
 * Has the check of a queued batch come back, so that batch_check_finish() does not wait?  It does not
 * wait for a driver that fails, either, so this returns true then.
 */
bool batch_check_is_back(const struct batch_check *c, const struct device_slot *s);
/* Set the counters of the checks. */
void batch_check_stats(const struct batch_check *c, struct shard_loader_stats *out);

/* A host slot that a thread of the driver gives back. */
struct give {
	struct feed *feed;
	uint32_t slot;
};

struct device_copy {
	struct feed *feed; /* const after open, as: */
	struct device_slots *device_slots;
	const struct cuda_device *cuda;
	uint32_t map_groups;	      /* whose records may stay in the page cache, a bit for each */
	void *back;		      /* the stream that gives host slots back */
	struct batch_check *check;    /* NULL: all records are checked by the CPU, as far as they are */
	struct shard_error check_why; /* why the GPU cannot check; status 0: it can, or need not */
	struct give *give;	      /* [slot_count of the feed] */
	void **host_done;	      /* [slot_count of the feed] events: the trainer is done with a slot */
	struct pins pins;
	struct maps *maps;	   /* NULL: all records are copied from the ring */
	struct cuda_pieces pieces; /* that are to be copied out of the maps; open once there are maps */
	uint64_t copied_bytes, pageable_bytes, cached_bytes;
};

/*
 * The feed has started.  The device slots may be opened later.  to_gpu: batches are delivered there;
 * else they are delivered in the ring, all of which is page-locked then.
 */
int device_copy_open(struct device_copy **out, struct feed *feed, struct device_slots *device_slots,
		     const struct cuda_device *cuda, bool to_gpu, struct shard_error *err);
/*
 * Copies have finished.  A forked child calls this too, with `inherited`, without entering the
 * context.  Then it only frees memory.
 */
void device_copy_close(struct device_copy *d, bool inherited);

/*
 * Make sure that the device slots have a batch in their queue.  Waits for the feed if needed.  An
 * error repeats until feed_move().
 */
int device_copy_next(struct device_copy *d, struct shard_error *err);
/*
 * The first batch of the queue is to be lent: wait until the GPU has checked it, and repair it if it
 * is damaged.  May be called again.
 */
int device_copy_settle(struct device_copy *d, struct shard_error *err);
/*
 * Queue the copies of all batches that are ready, as far as there are free device slots.  If that
 * fails, device_copy_next() reports the error behind the batches that are in the queue.
 */
void device_copy_send_ahead(struct device_copy *d);

/*
 * Fails with DEVICE if the driver has failed, because then it gives no slot back.  A thread that
 * waits for one calls this from time to time.  The context need not be entered.
 */
#define DEVICE_COPY_WATCH_NS UINT64_C(1000000000)
int device_copy_check(const struct device_copy *d, struct shard_error *err);

/* Wait until feed_next() need not wait, and watch the driver meanwhile. */
int device_copy_await(struct device_copy *d, struct shard_error *err);

/*
 * From now on take records out of the page cache, where that can be page-locked.  All slots of the
 * feed go to the GPU from now on.  May be called again.  The context is entered.
 */
int device_copy_use_maps(struct device_copy *d, struct shard_error *err);
/* Wait until it is known whether what is needed of a host slot is page-locked.  Need not be entered. */
void device_copy_await_pins(struct device_copy *d, uint32_t host);
/* Why records take a slower way to the GPU than they could.  Returns false if none does. */
bool device_copy_problem(struct device_copy *d, struct shard_error *out);

/* Give a host slot back to the feed behind the work that is queued on `stream`. */
int device_copy_give_after(struct device_copy *d, uint32_t host, void *stream, struct shard_error *err);

/* Set the counters of the copies.  The context need not be entered. */
void device_copy_stats(struct device_copy *d, struct shard_loader_stats *out);

/* ---- batch_transform.c: transforms of batches ---- */

/* Values of the loader: seed, rank and world decide what is drawn; pixels how parts are resized. */
struct batch_draws {
	uint64_t seed;
	uint32_t rank, world;
	uint32_t rows;		/* of a window; 0: there are no windows */
	uint32_t pixels;	/* if the options name none: enum shard_pixels */
	uint64_t epoch_records; /* of a mixture; else 0 */
};

/* What is asked of which field, checked.  Fails with ARGUMENT. */
int batch_transform_plan(struct transform_plan *out, uint32_t *field_idx, const struct shard_schema *schema,
			 const char *name, const struct shard_transform_options *opt, const struct batch_draws *draws,
			 struct shard_error *err);

/* Opens a transform of that plan, which is copied. */
int batch_transform_of_plan(struct shard_transform **out, const struct transform_plan *plan, uint32_t field_idx,
			    struct shard_error *err);

/* Both in turn. */
int batch_transform_open(struct shard_transform **out, const struct shard_schema *schema, const char *field,
			 const struct shard_transform_options *opt, const struct batch_draws *draws,
			 struct shard_error *err);

/*
 * Load the kernels into the context that `memory` of a GPU belongs to, unless that was done.  The
 * first launch does it by itself.  The context is not entered.
 */
int batch_transform_begin(struct shard_transform *f, const void *memory, struct shard_error *err);

/*
 * Could kernels on this GPU transform such images?  NULL is any GPU.  Fails with ARGUMENT.
 */
int batch_transform_check_gpu(const struct shard_transform *f, const struct cuda_device *cuda, struct shard_error *err);

/* ---- slabs.c: what a pool is made of ---- */

struct pool_plan {
	struct order_share share;
	struct layout slab;
	uint32_t slab_rows;
	uint32_t slab_count;  /* of the pool */
	uint64_t epoch_slabs; /* of an epoch; the last one may have fewer rows */
	bool is_held;	      /* the pool holds the whole dataset, in epoch_slabs slabs */
};

/*
 * Plan a pool for batches of these steps and this layout.  Fails with ARGUMENT if o->pool_bytes is
 * too small, and tells how many bytes are needed.
 */
int pool_plan(struct pool_plan *out, const struct shard_loader_options *o, const struct layout *batch,
	      const struct steps *steps, struct shard_error *err);

/* The slab of a row, counted from the first slab of the epoch. */
static inline uint64_t pool_plan_slab(const struct pool_plan *p, uint64_t row)
{
	return row / p->slab_rows;
}

/* The end of the slabs that hold the rows below this one. */
static inline uint64_t pool_plan_slab_end(const struct pool_plan *p, uint64_t row)
{
	return row / p->slab_rows + (row % p->slab_rows != 0);
}

struct slabs {
	const struct pool_plan *plan; /* const after open, as: */
	struct device_slots *batches; /* batches are put together there */
	struct feed *feed;
	struct device_slots device_slots; /* the memory of the pool */
	struct device_copy *copy;	  /* NULL: nothing was fetched yet */

	/* Slab `origin_slab` of `origin_epoch` has the number `origin`.  The others follow it. */
	uint64_t origin_epoch, origin_slab, origin;
	uint64_t first, end; /* slabs [first, end) are lent */
	uint64_t limit;	     /* no later batch needs slabs below this number */
	uint32_t *slot;	     /* [slab_count] the slot of slab n is at n % slab_count */
};

/* The feed belongs to the slabs now, even if this fails. */
int slabs_open(struct slabs *s, const struct pool_plan *plan, struct feed *feed, struct device_slots *batches,
	       struct shard_error *err);
/* Kernels have finished.  The context is entered, except in a forked child, with `inherited`. */
void slabs_close(struct slabs *s, bool inherited);

/* ---- back and forth; the context is entered ---- */

/* Give all slabs back, and go on with this one. */
int slabs_start(struct slabs *s, uint64_t epoch, uint64_t slab, struct shard_error *err);
/* If the feed has failed, make it try the next slab again. */
void slabs_retry(struct slabs *s);
/* Allocate memory and start the feed, unless that was done. */
int slabs_begin(struct slabs *s, struct shard_error *err);
/*
 * Fetch the next slab.  The stream of the batches waits until it is there.  If the GPU checks it, the
 * host waits for that.
 */
int slabs_fetch(struct slabs *s, struct shard_error *err);
/* Is the next slab on its way already, and its check back, so that slabs_fetch() does not wait? */
bool slabs_has_next(const struct slabs *s);
/* Give back slabs below `limit`, behind the work that reads them. */
int slabs_give_back(struct slabs *s, struct shard_error *err);

/* ---- arithmetic ---- */

/* The number of a slab of an epoch. */
uint64_t slabs_number(const struct slabs *s, uint64_t epoch, uint64_t slab);
/*
 * Find a row of the share, in this epoch.  Returns the device slot; *in_slab is the row
 * there.
 */
uint32_t slabs_find(const struct slabs *s, uint64_t epoch, uint64_t row, uint32_t *in_slab);

/* ---- pool.c: records that stay on the GPU ---- */

/* The order of one epoch, made when it is first needed. */
struct pool_order {
	struct order order;
	uint16_t *table;
	uint64_t epoch;
	bool made;
};

struct pool {
	struct shard_dataset *ds;      /* const after open, as: */
	struct shard_loader_options o; /* with defaults filled in */
	const struct layout *layout;   /* of batches */
	struct pool_plan plan;
	struct steps steps;	      /* of batches */
	struct device_slots *batches; /* batches are put together there; it may be opened later */

	struct slabs slabs;
	/* [run] the place of a run, counted from home_phase on; NULL: the pool holds a part only */
	uint32_t *home;
	uint64_t home_phase;
	struct cuda_gather kernel; /* its module is NULL until it is loaded */
	struct gather_call call;
	struct step_place claim;    /* what is put together next */
	bool is_started;	    /* fetching is under way for the claim */
	struct pool_order order[2]; /* of epochs, even and odd */
};

/* Prepare arithmetic only.  Fails with ARGUMENT if o->pool_bytes is too small. */
int pool_open(struct pool **out, struct shard_dataset *ds, const struct shard_loader_options *o,
	      const struct layout *layout, const struct steps *steps, struct device_slots *batches,
	      struct shard_error *err);
/* Kernels have finished.  A forked child, with `inherited`, only frees memory. */
void pool_close(struct pool *p, bool inherited);

/* Go on at `to`.  Does not wait. */
void pool_move(struct pool *p, struct step_place to);
/*
 * Replace *p by a pool for another order.  Waits for kernels.  Call pool_move() next.  After an
 * error *p is as before.
 */
int pool_adopt(struct pool **p, const struct order_params *params, struct shard_error *err);

/* ---- batches; the context is entered, except for pool_wait() ---- */

/* Allocate memory and start the feed, as the first pool_next() does before it waits. */
int pool_begin(struct pool *p, struct shard_error *err);
/*
 * Make sure that the device slots have a batch in their queue.  Waits for the feed if needed.
 */
int pool_next(struct pool *p, struct shard_error *err);
/*
 * Put together further batches, as far as this is possible without waiting.  If that fails,
 * pool_next() tries again.
 */
void pool_send_ahead(struct pool *p);
/*
 * Wait until pool_next() need not wait.  The queue of the device slots is empty.  Fails with
 * TIMEOUT, and leaves the text of that to the caller.
 */
int pool_wait(struct pool *p, uint64_t timeout_ns, struct shard_error *err);

#endif
