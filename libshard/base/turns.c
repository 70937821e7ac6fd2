/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns.c - a counter of turns that are free, handed on in the order in which threads asked
 */
#include "libshard/base/turns.h"

#include <pthread.h>

#include "libshard/base/mem.h"

struct turns {
	struct shard_turns calls; /* const after open; what users have */
	pthread_mutex_t lock;
	pthread_cond_t given; /* with lock: a turn was given back, or its receiver chosen */
	uint32_t free_count;  /* lock: turns that nobody has */
	uint64_t asked;	      /* lock: how many threads ever had to wait */
	uint64_t admitted;    /* lock: how many of them got their turn */
};

static void take(void *context)
{
	struct turns *t = context;
	uint64_t place;

	pthread_mutex_lock(&t->lock);
	if (t->free_count) {
		t->free_count--;
	} else {
		place = t->asked++;
		while (t->admitted <= place)
			pthread_cond_wait(&t->given, &t->lock);
	}
	pthread_mutex_unlock(&t->lock);
}

static void give(void *context)
{
	struct turns *t = context;

	pthread_mutex_lock(&t->lock);
	if (t->admitted < t->asked) {
		t->admitted++; /* it goes to the one that waits longest */
		pthread_cond_broadcast(&t->given);
	} else {
		t->free_count++;
	}
	pthread_mutex_unlock(&t->lock);
}

struct shard_turns *turns_open(uint32_t count)
{
	struct turns *t = mem_zalloc(sizeof(*t));

	if (!t)
		return NULL;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->given, NULL);
	t->free_count = count;
	t->calls = (struct shard_turns){.context = t, .take = take, .give = give};
	return &t->calls;
}

void turns_close(struct shard_turns *calls)
{
	struct turns *t = calls ? calls->context : NULL;

	if (!t)
		return;
	pthread_cond_destroy(&t->given);
	pthread_mutex_destroy(&t->lock);
	mem_free(t);
}
