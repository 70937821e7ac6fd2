/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns.c - a counter of turns that are free, handed on in the order in which threads asked
 */
#include "libshard/base/turns.h"

#include <pthread.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "shard_pack.h"

#define SPARE_MOST 8u /* a writer has two; as many are kept as four writers need */

struct shard_turns {
	pthread_mutex_t lock;
	pthread_cond_t given;	 /* with lock: a turn was given back, or its receiver chosen */
	uint32_t free_count;	 /* lock: turns that nobody has */
	uint64_t asked;		 /* lock: how many threads ever had to wait */
	uint64_t admitted;	 /* lock: how many of them got their turn */
	void *spare[SPARE_MOST]; /* lock: memory that nobody uses, [spare_count] */
	uint32_t spare_count;	 /* lock */
};

int shard_turns_open(struct shard_turns **out, uint32_t count, struct shard_error *err)
{
	struct shard_turns *t;

	if (!count)
		return error_set(err, SHARD_E_ARGUMENT, "there must be at least one turn");
	t = mem_zalloc(sizeof(*t));
	if (!t)
		return error_set(err, SHARD_E_MEMORY, "no memory for turns");
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->given, NULL);
	t->free_count = count;
	*out = t;
	return SHARD_OK;
}

void shard_turns_take(struct shard_turns *t)
{
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

void shard_turns_give(struct shard_turns *t)
{
	pthread_mutex_lock(&t->lock);
	if (t->admitted < t->asked) {
		t->admitted++; /* it goes to the one that waits longest */
		pthread_cond_broadcast(&t->given);
	} else {
		t->free_count++;
	}
	pthread_mutex_unlock(&t->lock);
}

void *turns_take_memory(struct shard_turns *t)
{
	void *memory = NULL;

	if (!t)
		return NULL;
	pthread_mutex_lock(&t->lock);
	if (t->spare_count)
		memory = t->spare[--t->spare_count];
	pthread_mutex_unlock(&t->lock);
	return memory;
}

void turns_give_memory(struct shard_turns *t, void *memory)
{
	if (t && memory) {
		pthread_mutex_lock(&t->lock);
		if (t->spare_count < SPARE_MOST) {
			t->spare[t->spare_count++] = memory;
			memory = NULL;
		}
		pthread_mutex_unlock(&t->lock);
	}
	mem_free(memory);
}

void shard_turns_close(struct shard_turns *t)
{
	if (!t)
		return;
	while (t->spare_count)
		mem_free(t->spare[--t->spare_count]);
	pthread_cond_destroy(&t->given);
	pthread_mutex_destroy(&t->lock);
	mem_free(t);
}
