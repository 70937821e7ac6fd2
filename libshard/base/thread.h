/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.h - the few things that we ask of pthreads
 */
#ifndef SHARD_BASE_THREAD_H
#define SHARD_BASE_THREAD_H

#include <pthread.h>
#include <stdint.h>

#define THREADS_MAX 64u

/* CPUs that this process may run on; 0 if they are more than the system's call can name. */
uint32_t thread_cpus_allowed(void);

/* How many threads to use by default: one for each of these CPUs, 1 to THREADS_MAX. */
uint32_t thread_cpu_count(void);

/*
 * Run work(context, 0 .. count-1) on that many threads while the caller runs wait(context), which
 * may be NULL, and return when all are done.  Threads that cannot be started are done without, as
 * long as one could: the result must not depend on the number, which is returned.  If none could be
 * started, 0 is returned and neither function ran.
 */
uint32_t threads_run(uint32_t count, void (*work)(void *context, uint32_t thread),
		     void (*wait)(void *context, uint32_t running), void *context);

/*
 * As pthread_create(), for a thread that lives beside the program: signals are the program's, not
 * ours, but for those that say what this very thread did.
 */
int thread_start(pthread_t *thread, void *(*run)(void *context), void *context);

#endif
