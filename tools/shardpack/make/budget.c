/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.c - memory for large images, shared by all workers
 */
#include "tools/shardpack/make/make.h"

void budget_init(struct budget *b)
{
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->given, NULL);
	b->used = 0;
}

void budget_destroy(struct budget *b)
{
	pthread_mutex_destroy(&b->lock);
	pthread_cond_destroy(&b->given);
}

void budget_take(struct budget *b, uint64_t bytes)
{
	pthread_mutex_lock(&b->lock);
	while (b->used && (b->used > BUDGET_BYTES || bytes > BUDGET_BYTES - b->used))
		pthread_cond_wait(&b->given, &b->lock);
	b->used += bytes;
	pthread_mutex_unlock(&b->lock);
}

void budget_give(struct budget *b, uint64_t bytes)
{
	pthread_mutex_lock(&b->lock);
	b->used -= bytes;
	pthread_cond_broadcast(&b->given);
	pthread_mutex_unlock(&b->lock);
}
