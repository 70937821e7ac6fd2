/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_tasks.h - simulated time for code that was written for real time: threads become tasks of one
 * thread, which take turns in an order that the seed decides
 *
 * A task runs until it sleeps.  The clock then jumps to whatever comes next, so an hour of waiting
 * costs nothing.  Each task belongs to a process.  One that was killed has no effect any more, and
 * its calls fail, so that it ends and frees its memory.  One that is stopped gets no turn until it
 * may go on.
 *
 * The functions that begin with __wrap_ stand in for the C library's by the linker's --wrap.  A
 * program includes this once.
 */
#ifndef TESTS_PACK_SIM_TASKS_H
#define TESTS_PACK_SIM_TASKS_H

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#define WRAPPED(type, name, ...)         \
	type __real_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

#define SIM_STACK_BYTES (256 << 10)
#define SIM_SECOND	UINT64_C(1000000000)

struct sim_task;

struct sim_process {
	uint64_t idx, host;
	bool dead, asked_to_stop, ended;
	uint64_t stopped_until;			  /* gets no turn before */
	pthread_mutex_t *mutex;			  /* its only one, and the task that holds it */
	struct sim_task *holder, *waiter, *timed; /* timed: waits for the only condition */
};

struct sim_task {
	ucontext_t context;
	void *stack;
	struct sim_process *process;
	void *(*run)(void *);
	void *argument;
	uint64_t turn; /* events with another number are of an earlier sleep */
	bool ended;
	struct sim_task *joiner;
};

struct sim_event {
	uint64_t at_ns, order, turn;
	struct sim_task *task;
};

static struct {
	uint64_t now_ns, event_count, event_room, orders, switches, random;
	struct sim_event *event; /* a heap: the earliest comes first */
	struct sim_task *task;	 /* whose turn it is; NULL: the loop's */
	ucontext_t loop;
} sim;

/* ---- chance ---- */

static uint64_t sim_random(void)
{
	uint64_t z = sim.random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* From 0 on, below 1. */
static double sim_share(void)
{
	return (double)(sim_random() >> 11) / 9007199254740992.0;
}

static double sim_lognormal(double median, double sigma)
{
	return median * exp(sigma * sqrt(-2 * log(1 - sim_share())) * cos(6.283185307179586 * sim_share()));
}

/* ---- what comes next ---- */

static bool sim_before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->order < b->order);
}

static void sim_push(struct sim_event e)
{
	uint64_t i = sim.event_count++;

	if (sim.event_count > sim.event_room) {
		sim.event_room = 2 * sim.event_count;
		sim.event = realloc(sim.event, sim.event_room * sizeof(*sim.event));
		if (!sim.event)
			abort();
	}
	for (; i && sim_before(&e, &sim.event[(i - 1) / 2]); i = (i - 1) / 2)
		sim.event[i] = sim.event[(i - 1) / 2];
	sim.event[i] = e;
}

static struct sim_event sim_pop(void)
{
	struct sim_event first = sim.event[0], e = sim.event[--sim.event_count];
	uint64_t i = 0, child;

	while ((child = 2 * i + 1) < sim.event_count) {
		child += child + 1 < sim.event_count && sim_before(&sim.event[child + 1], &sim.event[child]);
		if (!sim_before(&sim.event[child], &e))
			break;
		sim.event[i] = sim.event[child];
		i = child;
	}
	sim.event[i] = e;
	return first;
}

static void sim_wake_at(struct sim_task *t, uint64_t at_ns)
{
	sim_push((struct sim_event){at_ns, sim.orders++, ++t->turn, t});
}

static void sim_switch_away(void)
{
	struct sim_task *t = sim.task;

	swapcontext(&t->context, &sim.loop);
}

static bool sim_is_dead(void)
{
	return sim.task && sim.task->process->dead;
}

/* What is dead sleeps no more: it shall end. */
static void sim_sleep(uint64_t ns)
{
	if (sim_is_dead())
		return;
	sim_wake_at(sim.task, sim.now_ns + ns);
	sim_switch_away();
}

/* ---- tasks ---- */

static void sim_begin_task(void)
{
	struct sim_task *t = sim.task;

	t->run(t->argument);
	t->ended = true;
	if (t->joiner)
		sim_wake_at(t->joiner, sim.now_ns);
	sim_switch_away();
}

static struct sim_task *sim_start(struct sim_process *p, void *(*run)(void *), void *argument, uint64_t at_ns)
{
	struct sim_task *t = calloc(1, sizeof(*t));

	if (!t || !(t->stack = malloc(SIM_STACK_BYTES)))
		abort();
	t->process = p;
	t->run = run;
	t->argument = argument;
	getcontext(&t->context);
	t->context.uc_stack.ss_sp = t->stack;
	t->context.uc_stack.ss_size = SIM_STACK_BYTES;
	makecontext(&t->context, sim_begin_task, 0);
	sim_wake_at(t, at_ns);
	return t;
}

static void sim_free(struct sim_task *t)
{
	free(t->stack);
	free(t);
}

/* Until nothing is left to do.  Who joins a task frees it. */
static void sim_run(void)
{
	while (sim.event_count) {
		struct sim_event e = sim_pop();
		struct sim_process *p;

		if (e.turn != e.task->turn)
			continue;
		p = e.task->process;
		if (!p->dead && p->stopped_until > e.at_ns) {
			e.at_ns = p->stopped_until;
			sim_push(e);
			continue;
		}
		sim.now_ns = e.at_ns > sim.now_ns ? e.at_ns : sim.now_ns;
		sim.task = e.task;
		sim.switches++;
		swapcontext(&sim.loop, &sim.task->context);
		sim.task = NULL;
		if (e.task->ended && !e.task->joiner)
			sim_free(e.task);
	}
}

/* ---- the C library's ---- */

WRAPPED(int, clock_gettime, clockid_t which, struct timespec *out)
{
	if (!sim.task)
		return __real_clock_gettime(which, out);
	*out = (struct timespec){(time_t)(sim.now_ns / SIM_SECOND), (long)(sim.now_ns % SIM_SECOND)};
	return 0;
}

/* A busy machine wakes sleepers late; here by a second, so that waiting loops turn less often. */
WRAPPED(int, nanosleep, const struct timespec *for_, struct timespec *left)
{
	if (!sim.task)
		return __real_nanosleep(for_, left);
	sim_sleep((uint64_t)for_->tv_sec * SIM_SECOND + (uint64_t)for_->tv_nsec + SIM_SECOND);
	return 0;
}

WRAPPED(int, pthread_create, pthread_t *out, const pthread_attr_t *a, void *(*run)(void *), void *argument)
{
	struct sim_task *t;

	if (!sim.task)
		return __real_pthread_create(out, a, run, argument);
	t = sim_start(sim.task->process, run, argument, sim.now_ns);
	memcpy(out, &t, sizeof(t));
	return 0;
}

WRAPPED(int, pthread_join, pthread_t thread, void **result)
{
	struct sim_task *t;

	if (!sim.task)
		return __real_pthread_join(thread, result);
	memcpy(&t, &thread, sizeof(t));
	t->joiner = sim.task;
	while (!t->ended)
		sim_switch_away();
	sim_free(t);
	return 0;
}

WRAPPED(int, pthread_mutex_init, pthread_mutex_t *m, const pthread_mutexattr_t *a)
{
	if (sim.task)
		sim.task->process->mutex = m;
	return __real_pthread_mutex_init(m, a);
}

WRAPPED(int, pthread_mutex_lock, pthread_mutex_t *m)
{
	struct sim_process *p = sim.task ? sim.task->process : NULL;

	if (!p || p->mutex != m)
		return __real_pthread_mutex_lock(m);
	while (p->holder) {
		p->waiter = sim.task;
		sim_switch_away();
	}
	p->holder = sim.task;
	return 0;
}

static void sim_unlock(struct sim_process *p)
{
	p->holder = NULL;
	if (p->waiter)
		sim_wake_at(p->waiter, sim.now_ns);
	p->waiter = NULL;
}

WRAPPED(int, pthread_mutex_unlock, pthread_mutex_t *m)
{
	if (!sim.task || sim.task->process->mutex != m)
		return __real_pthread_mutex_unlock(m);
	sim_unlock(sim.task->process);
	return 0;
}

WRAPPED(int, pthread_cond_timedwait, pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until)
{
	struct sim_process *p = sim.task ? sim.task->process : NULL;
	uint64_t until_ns = (uint64_t)until->tv_sec * SIM_SECOND + (uint64_t)until->tv_nsec;

	if (!p)
		return __real_pthread_cond_timedwait(c, m, until);
	sim_unlock(p);
	p->timed = sim.task;
	sim_wake_at(sim.task, until_ns);
	sim_switch_away();
	p->timed = NULL;
	__wrap_pthread_mutex_lock(m);
	return sim.now_ns >= until_ns ? ETIMEDOUT : 0;
}

WRAPPED(int, pthread_cond_signal, pthread_cond_t *c)
{
	if (!sim.task)
		return __real_pthread_cond_signal(c);
	if (sim.task->process->timed)
		sim_wake_at(sim.task->process->timed, sim.now_ns);
	return 0;
}

#endif
