/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.h - the few things that we ask of pthreads
 */
#ifndef SHARD_BASE_THREAD_H
#define SHARD_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
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
 * As pthread_create(), for a thread that lives beside the program: signals go to the
 * program, except the ones that say what this very thread did.
 */
int thread_start(pthread_t *thread, void *(*run)(void *context), void *context);

/*
 * As pthread_cond_init(), for a condition that pthread_cond_timedwait() waits for.  The time is that
 * of clock_after_ns(), which nobody sets back.
 */
void thread_cond_init(pthread_cond_t *condition);

/*
 * ---- tasks: threads that work beside their owner, with one lock and two signals between them ----
 *
 * The owner describes the work under the lock, and calls task_ask().  A thread calls step() under
 * the lock as long as it finds something; step() may give the lock up while it works, and says
 * task_tell() when the owner may want to look again.  Which members of its struct the lock protects
 * is the owner's to say.
 */

#define TASK_THREADS_MAX 3

struct task {
	bool (*step)(void *context); /* const after start: with lock; false when there was nothing to do */
	void *context;		     /* const after start */
	pthread_t thread[TASK_THREADS_MAX];
	unsigned thread_count; /* const after start */
	pthread_mutex_t lock;
	pthread_cond_t asked; /* with lock: there is something to do, or stop was set */
	pthread_cond_t told;  /* with lock: something was done */
	bool stop;	      /* lock: set once */
};

/*
 * Start up to `count` threads; fewer only cost time.  Returns false if none could be started.  The
 * task works all the same then: task_ask() takes the steps itself.  An owner that does not want that
 * calls task_stop().
 */
bool task_start(struct task *t, unsigned count, bool (*step)(void *context), void *context);

void task_lock(struct task *t);
void task_unlock(struct task *t);

/* With the lock. */
void task_ask(struct task *t);	/* the owner: one piece of work more, which wakes one thread */
void task_tell(struct task *t); /* step(): something was done */
void task_wait(struct task *t); /* the owner: until it is told */

/* End the threads, each after the step that it is in.  Nothing new is begun. */
void task_stop(struct task *t);

#endif
