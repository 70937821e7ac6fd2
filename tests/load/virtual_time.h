/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual_time.h - a clock that is made up: it stands still while a thread works, and jumps when
 * all of them wait
 *
 * Threads work in no time, unless they say how long they take.  The clock moves on only when each
 * thread sleeps or waits for a condition, to the moment when the first one wakes up.  So a loader
 * measures the same on every machine, however busy that is.  The thread that calls virtual_begin()
 * takes part, and so does each that is started until virtual_end().  A wait with a time limit is
 * not known here.
 *
 * A program that includes it links with -Wl,--wrap= for each function that has a __wrap_ below.
 */
#ifndef TESTS_LOAD_VIRTUAL_TIME_H
#define TESTS_LOAD_VIRTUAL_TIME_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define ACTORS	    8
#define ACTOR_CLOCK 4096 /* the CPU clock of the first actor; no clock of the system has such a number */

struct actor {
	pthread_t thread;
	void *(*run)(void *context);
	void *context;
	const pthread_cond_t *awaits; /* NULL: none */
	uint64_t until_ns;	      /* it sleeps until then; 0: it does not sleep */
	uint64_t cpu_ns;
};

/* All of it under the lock. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	uint64_t now_ns;
	unsigned working; /* actors that neither wait nor sleep */
	unsigned count;	  /* actors that there were; 0: time is real */
	struct actor actor[ACTORS];
} virtual = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

static _Thread_local struct actor *virtual_me; /* NULL: this thread takes no part */
static bool virtual_no_threads;		       /* none can be started */

int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __real_pthread_getcpuclockid(pthread_t thread, clockid_t *clock);
int __wrap_pthread_getcpuclockid(pthread_t thread, clockid_t *clock);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *context);
int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __real_pthread_cond_signal(pthread_cond_t *cond);
int __wrap_pthread_cond_signal(pthread_cond_t *cond);
int __real_pthread_cond_broadcast(pthread_cond_t *cond);
int __wrap_pthread_cond_broadcast(pthread_cond_t *cond);

/*
 * With the lock: one actor works no more.  If it was the last one, time passes until a sleeper
 * wakes up.
 */
static inline void virtual_rest(void)
{
	uint64_t first_ns = UINT64_MAX;

	if (--virtual.working)
		return;
	for (unsigned i = 0; i < virtual.count; i++)
		if (virtual.actor[i].until_ns && virtual.actor[i].until_ns < first_ns)
			first_ns = virtual.actor[i].until_ns;
	for (unsigned i = 0; i < virtual.count; i++)
		if (virtual.actor[i].until_ns == first_ns) {
			virtual.now_ns = first_ns;
			virtual.actor[i].until_ns = 0;
			virtual.working++;
		}
	__real_pthread_cond_broadcast(&virtual.moved);
}

/* This thread takes so long, and a CPU for a part of that. */
static inline void virtual_work(uint64_t ns, uint64_t cpu_ns)
{
	pthread_mutex_lock(&virtual.lock);
	if (ns) {
		virtual_me->until_ns = virtual.now_ns + ns;
		virtual_rest();
		while (virtual_me->until_ns)
			__real_pthread_cond_wait(&virtual.moved, &virtual.lock);
	}
	virtual_me->cpu_ns += cpu_ns;
	pthread_mutex_unlock(&virtual.lock);
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	if (!virtual_me)
		return __real_pthread_cond_wait(cond, lock);
	pthread_mutex_lock(&virtual.lock);
	virtual_me->awaits = cond;
	virtual_rest();
	pthread_mutex_unlock(lock);
	while (virtual_me->awaits)
		__real_pthread_cond_wait(&virtual.moved, &virtual.lock);
	pthread_mutex_unlock(&virtual.lock);
	return pthread_mutex_lock(lock);
}

static inline void virtual_wake(const pthread_cond_t *cond, unsigned most)
{
	pthread_mutex_lock(&virtual.lock);
	for (unsigned i = 0; i < virtual.count && most; i++)
		if (virtual.actor[i].awaits == cond) {
			virtual.actor[i].awaits = NULL;
			virtual.working++;
			most--;
		}
	__real_pthread_cond_broadcast(&virtual.moved);
	pthread_mutex_unlock(&virtual.lock);
}

int __wrap_pthread_cond_signal(pthread_cond_t *cond)
{
	virtual_wake(cond, 1);
	return __real_pthread_cond_signal(cond);
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
	virtual_wake(cond, ACTORS);
	return __real_pthread_cond_broadcast(cond);
}

static inline void *virtual_run(void *context)
{
	void *result;

	virtual_me = context;
	result = virtual_me->run(virtual_me->context);
	pthread_mutex_lock(&virtual.lock);
	virtual_rest();
	pthread_mutex_unlock(&virtual.lock);
	return result;
}

/* The new thread works from now on, wherever the system lets it begin. */
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *context)
{
	struct actor *a;
	int rc;

	if (!virtual_me)
		return __real_pthread_create(thread, attr, run, context);
	if (virtual_no_threads || virtual.count == ACTORS)
		return EAGAIN;
	pthread_mutex_lock(&virtual.lock);
	a = &virtual.actor[virtual.count++];
	*a = (struct actor){.run = run, .context = context};
	virtual.working++;
	rc = __real_pthread_create(thread, attr, virtual_run, a);
	if (rc)
		abort();
	a->thread = *thread;
	pthread_mutex_unlock(&virtual.lock);
	return 0;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
	int rc;

	if (!virtual_me)
		return __real_pthread_join(thread, result);
	pthread_mutex_lock(&virtual.lock);
	virtual_rest();
	pthread_mutex_unlock(&virtual.lock);
	rc = __real_pthread_join(thread, result);
	pthread_mutex_lock(&virtual.lock);
	virtual.working++;
	pthread_mutex_unlock(&virtual.lock);
	return rc;
}

int __wrap_pthread_getcpuclockid(pthread_t thread, clockid_t *clock)
{
	for (unsigned i = 0; i < virtual.count; i++)
		if (pthread_equal(virtual.actor[i].thread, thread)) {
			*clock = (clockid_t)(ACTOR_CLOCK + i);
			return 0;
		}
	return __real_pthread_getcpuclockid(thread, clock);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	uint64_t ns;

	if (!virtual_me)
		return __real_clock_gettime(clock, t);
	pthread_mutex_lock(&virtual.lock);
	ns = clock < ACTOR_CLOCK ? virtual.now_ns : virtual.actor[clock - ACTOR_CLOCK].cpu_ns;
	pthread_mutex_unlock(&virtual.lock);
	*t = (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	return 0;
}

static inline void virtual_begin(void)
{
	virtual.now_ns = 1000000000; /* as if the machine had been started a while ago */
	virtual.actor[0] = (struct actor){.thread = pthread_self()};
	virtual.count = virtual.working = 1;
	virtual_me = &virtual.actor[0];
}

static inline void virtual_end(void)
{
	virtual_me = NULL;
	virtual.count = virtual.working = 0;
}

#endif
