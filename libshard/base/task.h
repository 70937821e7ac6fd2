/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task.h - threads that work beside their owner, with one lock and two signals between them
 *
 * The owner describes the work under the lock, and calls task_ask().  A thread calls step() under
 * the lock as long as it finds something; step() may give the lock up while it works, and says
 * task_tell() when the owner may want to look again.  Which members of its struct the lock protects
 * is the owner's to say.
 */
#ifndef SHARD_BASE_TASK_H
#define SHARD_BASE_TASK_H

#include <pthread.h>
#include <stdbool.h>

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
