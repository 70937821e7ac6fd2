/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake.h - a driver without a GPU: libcuda.so.1 as tests have it, and how they steer it
 *
 * The library behind this (tests/cuda/fake_*.c) does what cuda.h promises and nothing more kindly:
 * work runs later, on threads, each stream in its own order and no order between streams, unless
 * events or the legacy default stream demand one.  Device memory is an address that the host cannot
 * read, and holds poison at first.  What a real driver would answer with garbage, a crash or lost
 * speed is counted here as a `sin`.
 *
 * A test that includes this says
 *     LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda
 * so that its libcuda.so.1 is this one; the product finds it as it would find any.
 */
#ifndef TESTS_CUDA_FAKE_H
#define TESTS_CUDA_FAKE_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

enum fake_sin {
	FAKE_UNREGISTERED,  /* asynchronous copy from memory that is not page-locked: the driver stages it, slowly */
	FAKE_WRONG_CONTEXT, /* a handle or memory of a context that is not current */
	FAKE_FREED_IN_USE,  /* device memory, or a page-lock, that queued work still needs */
	FAKE_BAD_HANDLE,    /* of nothing that lives */
	FAKE_BAD_VERSION,   /* cuGetProcAddress for a form of a function that has other parameters */
	FAKE_CALLS_BACK,    /* the driver called from a host function */
	FAKE_BROKE_CAPTURE, /* a call that a capture forbids, or work across its edge: the capture is lost */
	FAKE_COPIED_FILE,   /* a page-lock of a private map, which takes a copy of the file in memory */
	FAKE_UNMAPPED,	    /* page-locked memory that was unmapped before it was unregistered */
	FAKE_SINS
};

struct fake_kernel_call {
	const char *name;
	const void *image; /* the one that its module was loaded from, where the library has it */
	unsigned grid[3], block[3], shared_bytes;
	const void *const *arguments; /* copies, as many and as long as fake->kernel() said */
};

struct fake_control {
	/* ---- how work runs ---- */
	/* each piece of work waits up to late_us longer than it must */
	void (*seed)(uint64_t seed, unsigned late_us);
	void (*hold)(int held);	   /* 1: none runs, until 0 */
	void (*settle)(void);	   /* until none is left; not while held */
	unsigned (*pending)(void); /* pieces of work that are not done */

	/* ---- what goes wrong ---- */
	/* the nth of these calls from now; 0: none, call NULL: all none */
	void (*fail)(const char *call, unsigned nth, int result);
	void (*hide)(const char *call);	  /* cuGetProcAddress does not know it; NULL: it knows all */
	void (*host_addresses)(int same); /* what devices say of attribute 91; 1 at first */
	void (*break_down)(int result);	  /* every call says so, and nothing queued runs any more; 0: works again */

	/* ---- what happened ---- */
	/* successful or not, since reset; of "cu*Synchronize" all of that kind */
	uint64_t (*count)(const char *call);
	uint64_t (*sins)(enum fake_sin sin);
	void (*reset)(void);	    /* the counters */
	const char *(*leaks)(void); /* what lives, one line; "" for nothing.  Valid until the next call */

	/* ---- for tests that play the trainer ---- */
	void *(*context)(int device); /* a context of the test's own, as cuCtxCreate makes it; not current */
	void (*drop_context)(void *context);
	/* where its bytes lie, for kernels and for looking; NULL: nothing lives there */
	void *(*at)(uint64_t device_memory);
	uint64_t (*bytes_from)(uint64_t device_memory); /* to the end of what was allocated; 0: nothing */
	/*
	 * A kernel of that name: its twin in C, which runs on a thread of the driver; lengths of
	 * its parameters, 4096 bytes in all.
	 */
	void (*kernel)(const char *name, void (*twin)(const struct fake_kernel_call *c), unsigned parameter_count,
		       const size_t *bytes);
};

/* The one that this program's libcuda.so.1 exports, or NULL if that is not the fake. */
static inline const struct fake_control *fake_find(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *table = library ? dlsym(library, "fake_control") : NULL;

	return (const struct fake_control *)table;
}

#endif
