/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background.c - threads that work in the background
 */
#include "tools/common/background.h"

static void *run(void *context)
{
	struct background *b = context;

	pthread_mutex_lock(&b->lock);
	while (!b->stop)
		if (!b->step(b->context))
			pthread_cond_wait(&b->asked, &b->lock);
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

bool background_start(struct background *b, unsigned count, bool (*step)(void *context), void *context)
{
	*b = (struct background){.step = step, .context = context};
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->asked, NULL);
	pthread_cond_init(&b->told, NULL);
	while (b->thread_count < count && !pthread_create(&b->thread[b->thread_count], NULL, run, b))
		b->thread_count++;
	if (!b->thread_count)
		background_stop(b);
	return b->thread_count > 0;
}

void background_lock(struct background *b)
{
	pthread_mutex_lock(&b->lock);
}

void background_unlock(struct background *b)
{
	pthread_mutex_unlock(&b->lock);
}

void background_ask(struct background *b)
{
	pthread_cond_signal(&b->asked);
}

void background_tell(struct background *b)
{
	pthread_cond_signal(&b->told);
}

void background_wait(struct background *b)
{
	pthread_cond_wait(&b->told, &b->lock);
}

void background_stop(struct background *b)
{
	background_lock(b);
	b->stop = true;
	pthread_cond_broadcast(&b->asked);
	background_unlock(b);
	for (unsigned i = 0; i < b->thread_count; i++)
		pthread_join(b->thread[i], NULL);
	pthread_cond_destroy(&b->told);
	pthread_cond_destroy(&b->asked);
	pthread_mutex_destroy(&b->lock);
}
