/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - the time that only goes forward, for measuring and for waiting
 */
#ifndef SHARD_BASE_CLOCK_H
#define SHARD_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Also for signal handlers. */
static inline uint64_t clock_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * `ns` from now, or later than any wait can last, as pthread_cond_timedwait() takes it for a
 * condition of thread_cond_init().
 */
static inline struct timespec clock_after_ns(uint64_t ns)
{
	const uint64_t forever = UINT64_C(1) << 62; /* on a clock that begins at boot */
	uint64_t now = clock_now_ns(), end = ns < forever - now ? now + ns : forever;

	return (struct timespec){(time_t)(end / 1000000000u), (long)(end % 1000000000u)};
}

#endif
