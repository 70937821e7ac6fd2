/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background.h - threads that work in the background, with one lock and two signals between them
 * and their owner
 *
 * The owner describes the work under the lock, and calls background_ask().  A thread calls step()
 * under the lock as long as it finds something; step() may give the lock up while it works, and
 * says background_tell() when the owner may want to look again.  Which members of its struct the
 * lock protects is the owner's to say.
 */
#ifndef SHARD_COMMON_BACKGROUND_H
#define SHARD_COMMON_BACKGROUND_H

#include <pthread.h>
#include <stdbool.h>

#define BACKGROUND_THREADS_MAX 3

struct background {
	bool (*step)(void *context); /* const after start: with lock; false when there was nothing to do */
	void *context;		     /* const after start */
	pthread_t thread[BACKGROUND_THREADS_MAX];
	unsigned thread_count; /* const after start */
	pthread_mutex_t lock;
	pthread_cond_t asked; /* with lock: there is something to do, or stop was set */
	pthread_cond_t told;  /* with lock: something was done */
	bool stop;	      /* lock: set once */
};

/*
 * Start up to `count` threads; fewer only cost time.  False if none could be started: then there is
 * nothing to stop.
 */
bool background_start(struct background *b, unsigned count, bool (*step)(void *context), void *context);

void background_lock(struct background *b);
void background_unlock(struct background *b);

/* With the lock. */
void background_ask(struct background *b);  /* one piece of work more: wakes one thread */
void background_tell(struct background *b); /* wakes the owner */
void background_wait(struct background *b); /* the owner: until it is told */

/* End the threads, each after the step that it is in.  Nothing new is begun. */
void background_stop(struct background *b);

#endif
