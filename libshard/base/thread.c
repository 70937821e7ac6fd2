/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.c - threads that end with a call, and threads that work beside their owner
 */
#include "libshard/base/thread.h"

#include <sched.h>
#include <signal.h>
#include <stddef.h>

uint32_t thread_cpus_allowed(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 0 : (uint32_t)CPU_COUNT(&set);
}

uint32_t thread_cpu_count(void)
{
	uint32_t count = thread_cpus_allowed();

	return count && count < THREADS_MAX ? count : THREADS_MAX;
}

struct job {
	void (*work)(void *context, uint32_t thread);
	void *context;
	uint32_t thread;
};

static void *job_main(void *arg)
{
	struct job *job = arg;

	job->work(job->context, job->thread);
	return NULL;
}

uint32_t threads_run(uint32_t count, void (*work)(void *context, uint32_t thread),
		     void (*wait)(void *context, uint32_t running), void *context)
{
	pthread_t handle[THREADS_MAX];
	struct job job[THREADS_MAX];
	uint32_t started = 0;

	if (count > THREADS_MAX)
		count = THREADS_MAX;
	for (; started < count; started++) {
		job[started] = (struct job){work, context, started};
		if (pthread_create(&handle[started], NULL, job_main, &job[started]))
			break;
	}
	if (started && wait)
		wait(context, started);
	for (uint32_t i = 0; i < started; i++)
		pthread_join(handle[i], NULL);
	return started;
}

int thread_start(pthread_t *thread, void *(*run)(void *context), void *context)
{
	static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&all, own[i]);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(thread, NULL, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

void thread_cond_init(pthread_cond_t *condition)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &attr);
	pthread_condattr_destroy(&attr);
}

/* ---- tasks ---- */

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
