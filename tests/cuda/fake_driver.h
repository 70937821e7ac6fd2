/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_driver.h - the insides of the driver without a GPU
 *
 * One lock guards everything; work runs without it.
 */
#ifndef TESTS_CUDA_FAKE_DRIVER_H
#define TESTS_CUDA_FAKE_DRIVER_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cuda/fake.h"
#include "tests/cuda/fake_calls.h"

#define EXPORT __attribute__((visibility("default")))

enum {
	OK = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	NOT_INITIALIZED = 3,
	INVALID_DEVICE = 101,
	INVALID_CONTEXT = 201,
	OPERATING_SYSTEM = 304,
	INVALID_HANDLE = 400,
	NOT_FOUND = 500,
	NOT_READY = 600,
	ALREADY_REGISTERED = 712,
	NOT_REGISTERED = 713,
	NOT_PERMITTED = 800,
	CAPTURE_UNSUPPORTED = 900,
	CAPTURE_INVALIDATED = 901,
	CAPTURE_UNMATCHED = 903,
	CAPTURE_ISOLATION = 905,
	CAPTURE_IMPLICIT = 906,
	CAPTURED_EVENT = 907,
	CAPTURE_WRONG_THREAD = 908,
};

#define VERSION_NEWEST	12090
#define DEVICES		2
#define NAMES_CAP	64
#define KERNELS_CAP	16
#define ARGS_CAP	8
#define ARGS_BYTES	4096 /* of a kernel, as CUDA 12.0 and older have it */
#define POISON		0xa5
#define SHARED_BYTES	49152  /* of a block, if a kernel is allowed no more */
#define SHARED_MOST	101376 /* that it can be allowed: compute capability 8.6 */
#define MULTIPROCESSORS 8
#define PRIORITY_MOST	(-5) /* of streams: lower numbers go first, and 0 is usual and last */
#define MEMORY_BYTES	((size_t)24 << 30)

/* When an event was recorded: shared by the event, and by all that wait for it. */
struct record {
	unsigned users;
	bool done;
};

struct kernel {
	const char *name;
	void (*twin)(const struct fake_kernel_call *c);
	unsigned count;
	size_t bytes[ARGS_CAP];
};

static inline unsigned argument_room(const struct kernel *k, unsigned i)
{
	return (unsigned)(k->bytes[i] + 15) & ~15u;
}

struct work {
	enum { COPY, RECORD, WAIT, CALL, KERNEL } kind;
	struct work *next;
	uint64_t number, not_before_ns;
	struct record *record;	 /* RECORD, WAIT */
	void *to;		 /* COPY: host memory, or where the device's bytes lie */
	const void *from;	 /* likewise */
	uint64_t device_memory;	 /* COPY: the device's side of it */
	const void *host_memory; /* COPY: the host's side, unless it was staged */
	void *staged;		 /* COPY: to be freed */
	size_t bytes;
	void (*call)(void *context);
	void *context;
	const struct kernel *kernel;
	const void *image; /* of the module whose function was launched */
	unsigned grid[3], block[3], shared_bytes;
	uint8_t *arguments; /* KERNEL: to be freed; each on a multiple of 16 */
};

struct context {
	struct context *next;
	int device;
	bool primary;
	unsigned retains;
	struct stream *null_stream;
};

struct stream {
	struct stream *next;
	struct context *context;
	bool waits_for_null; /* not CU_STREAM_NON_BLOCKING */
	int priority;
	bool is_null, running, dropped;
	bool captures, capture_is_lost; /* what is queued goes to a graph */
	int capture_mode;
	pthread_t capture_thread;
	struct work *first, **end;
};

struct event {
	struct event *next;
	struct context *context;
	struct record *last; /* NULL: was never recorded */
	bool is_captured;    /* it was recorded on a stream that captures */
};

struct block {
	struct block *next;
	struct context *context;
	uint64_t address;
	size_t bytes;
	uint8_t *store;
};

struct region {
	struct region *next;
	struct context *context;
	const uint8_t *at;
	size_t bytes;
	bool portable, read_only;
	uint64_t map; /* whose memory it was when it was registered */
};

/* A kernel in one module. */
struct function {
	const struct kernel *kernel; /* NULL: was not asked for yet */
	unsigned shared_most;
};

struct module {
	struct module *next;
	struct context *context;
	const void *image;
	struct function function[KERNELS_CAP];
};

struct fake {
	pthread_mutex_t lock;
	pthread_cond_t change; /* with lock: work came, work is done, or how it runs has changed */
	_Atomic pid_t pid;     /* that called cuInit; 0: nobody */
	bool has_threads, held;
	int broken;		  /* result of every call; 0: none */
	bool has_other_addresses; /* a device reads page-locked memory by other addresses than the host */
	uint64_t random, number;
	unsigned late_us, pending, graphs;
	struct context *contexts, *primary[DEVICES];
	struct stream *streams;
	struct event *events;
	struct block *blocks;
	struct region *regions;
	struct module *modules;
	struct kernel kernel[KERNELS_CAP];
	uint64_t sin[FAKE_SINS];
	struct {
		uint64_t count;
		unsigned fail_in;
		int fail_with;
		bool hidden;
	} call[NAMES_CAP];
};
extern struct fake fake;

/* ---- fake_run.c: what runs when; all with the lock ---- */

struct stream *stream_new(struct context *c, bool waits_for_null);
void stream_drop(struct stream *s);		   /* what is queued still runs */
struct work *work_add(struct stream *s, int kind); /* zeroed but for its order */
void work_wait_for(struct record *r);		   /* until it is done, or nothing works any more */
void work_forget(void);				   /* what is queued never runs */
uint64_t chance(uint64_t below);
struct record *record_hold(struct record *r);
void record_let_go(struct record *r);
extern _Thread_local bool in_host_function;

/* ---- fake_memory.c ---- */

struct block *block_of(uint64_t address, size_t bytes); /* NULL: it is within none */
bool block_in_use(const struct block *b);

/* ---- fake_context.c ---- */

struct context *current_context(void);
int ordinal_of(int device);	/* of a device's handle; -1: it is none */
void *context_make(int device); /* as cuCtxCreate, but that it does not become current */
void context_drop(void *context);

/* ---- fake_calls.c ---- */

void sinned(enum fake_sin sin);
int call_enter(const char *name); /* takes the lock, unless it returns an error */
int call_leave(int result);	  /* gives it back */
/* That of the handle, if it may be used now: its context is the current one. */
int stream_take(void *handle, struct stream **out);

#define ENTER(name_)                              \
	do {                                      \
		int entered_ = call_enter(name_); \
                                                  \
		if (entered_)                     \
			return entered_;          \
	} while (0)

/* ---- fake_capture.c; all with the lock ---- */

/* A call that the driver calls unsafe: is it refused, because of a capture?  That is then lost. */
bool capture_refuses(const char *call);
void capture_lose(struct stream *s);

/* ---- fake_control.c ---- */

size_t call_index(const char *name); /* in fake.call; aborts if there is none */

#define FAKE_PROTOTYPE(name_, since_, until_, parameters_) int fake_##name_ parameters_;
FAKE_CALLS(FAKE_PROTOTYPE)
#undef FAKE_PROTOTYPE

#endif
