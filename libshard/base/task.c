/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task.c - threads that work beside their owner
 */
#include "libshard/base/task.h"

#include "libshard/base/thread.h"

static void *task_main(void *context)
{
	struct task *t = context;

	task_lock(t);
	while (!t->stop)
		if (!t->step(t->context))
			pthread_cond_wait(&t->asked, &t->lock);
	task_unlock(t);
	return NULL;
}

bool task_start(struct task *t, unsigned count, bool (*step)(void *context), void *context)
{
	*t = (struct task){.step = step, .context = context};
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->asked, NULL);
	pthread_cond_init(&t->told, NULL);
	while (t->thread_count < count && !thread_start(&t->thread[t->thread_count], task_main, t))
		t->thread_count++;
	return t->thread_count > 0;
}

void task_lock(struct task *t)
{
	pthread_mutex_lock(&t->lock);
}

void task_unlock(struct task *t)
{
	pthread_mutex_unlock(&t->lock);
}

void task_ask(struct task *t)
{
	pthread_cond_signal(&t->asked);
	while (!t->thread_count && t->step(t->context))
		;
}

void task_tell(struct task *t)
{
	pthread_cond_signal(&t->told);
}

void task_wait(struct task *t)
{
	pthread_cond_wait(&t->told, &t->lock);
}

void task_stop(struct task *t)
{
	task_lock(t);
	t->stop = true;
	pthread_cond_broadcast(&t->asked);
	task_unlock(t);
	for (unsigned i = 0; i < t->thread_count; i++)
		pthread_join(t->thread[i], NULL);
	pthread_cond_destroy(&t->told);
	pthread_cond_destroy(&t->asked);
	pthread_mutex_destroy(&t->lock);
}
