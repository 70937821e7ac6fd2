/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monotonic.h - the clock that only goes forward, for measuring and for waiting
 */
#ifndef SHARD_COMMON_MONOTONIC_H
#define SHARD_COMMON_MONOTONIC_H

#include <stdint.h>
#include <time.h>

/* Also for signal handlers. */
static inline uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The time `ns` from now, as pthread_cond_clockwait(CLOCK_MONOTONIC) takes it. */
static inline struct timespec monotonic_after(uint64_t ns)
{
	uint64_t end = monotonic_ns() + ns;

	return (struct timespec){(time_t)(end / 1000000000), (long)(end % 1000000000)};
}

#endif
