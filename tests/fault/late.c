/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late.c - threads that come late, as on a busy machine; preloaded by `make check-late`
 *
 * Whoever takes or gives a lock, or wakes others, does nothing for a while now and then.  A thread
 * keeps its pace for some hundred calls, and loses at most three quarters of its time.  A test
 * whose verdict depends on who is first fails sooner or later.  Time is spent and not slept, since
 * sleeping is a system call, which decoders in a sandbox may not make.
 *
 * Draws begin with the clock: no seed could repeat which thread came when.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "libshard/base/clock.h"
#include "tests/pack/prng.h"

#define CALLS_AT_A_PACE 500

static const struct pace {
	uint64_t one_in, us_below; /* one call in so many takes up to so long */
} paces[] = {{100000, 200}, {100000, 200}, {300, 5000}, {50, 5000}, {10, 200}};

static __thread uint64_t begin_ns, draws, calls, lost_ns;
static __thread struct pace pace;

static uint64_t draw(uint64_t below)
{
	return prng_at(begin_ns, draws++) % below;
}

static void come_late(void)
{
	uint64_t late_ns, until_ns;

	if (!begin_ns)
		begin_ns = clock_now_ns();
	if (calls++ % CALLS_AT_A_PACE == 0)
		pace = paces[draw(sizeof(paces) / sizeof(*paces))];
	if (draw(pace.one_in))
		return;
	late_ns = 1000 * draw(pace.us_below);
	until_ns = clock_now_ns() + late_ns;
	if (4 * (lost_ns + late_ns) > 3 * (until_ns - begin_ns))
		return;
	lost_ns += late_ns;
	while (clock_now_ns() < until_ns)
		;
}

/* Behind the C library's function of this name, and before it. */
#define LATE(name_, type_)                                                            \
	int name_(type_ *what)                                                        \
	{                                                                             \
		static int (*_Atomic real)(type_ *);                                  \
		int rc;                                                               \
                                                                                      \
		if (!real)                                                            \
			real = (int (*)(type_ *))(uintptr_t)dlsym(RTLD_NEXT, #name_); \
		come_late();                                                          \
		rc = real(what);                                                      \
		come_late();                                                          \
		return rc;                                                            \
	}
LATE(pthread_mutex_lock, pthread_mutex_t)
LATE(pthread_mutex_unlock, pthread_mutex_t)
LATE(pthread_cond_signal, pthread_cond_t)
LATE(pthread_cond_broadcast, pthread_cond_t)
