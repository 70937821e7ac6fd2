/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.h - clocks, memory and threads of the benchmarks
 */
#ifndef SHARD_COMMON_SERVICE_H
#define SHARD_COMMON_SERVICE_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of a clock that only goes forward. */
static inline double bench_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double bench_cpu_seconds(void); /* of this process and the children it has waited for */
/* aligned to 2 MiB, huge pages asked for, touched; ends the program if there is none */
void *bench_memory(size_t bytes);
size_t bench_llc_bytes(void);  /* the largest cache; 32 MiB if the machine does not say */
void bench_remove(char *path); /* a file, or a folder with all in it; it is fine if there is none */
void bench_random_fill(void *out, size_t bytes, uint64_t seed); /* a multiple of 8 */

/* Run `work` in that many threads, this one included, until all have ended. */
void bench_threads(unsigned count, void (*work)(void *context), void *context);

#ifdef __cplusplus
}
#endif

#endif
