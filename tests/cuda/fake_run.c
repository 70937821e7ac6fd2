/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_run.c - what is queued on streams, and the threads that do it: late, and in any order that
 * is allowed
 *
 * The head of a stream may run when what it waits for is done and its own delay is over; among
 * those that may, chance decides.  Work on the null stream waits for all earlier work of streams
 * that wait for it, and later work of those waits for it.
 */
#include <errno.h>
#include <time.h>

#include "tests/cuda/fake_driver.h"

#define THREADS	   2
#define LOOK_AGAIN 50000 /* ns: how long a thread sleeps while nothing may run yet */

_Thread_local bool in_host_function;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t chance(uint64_t below)
{
	uint64_t z = fake.random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % below;
}

/* ---- records ---- */

struct record *record_hold(struct record *r)
{
	if (r)
		r->users++;
	return r;
}

void record_let_go(struct record *r)
{
	if (r && !--r->users)
		free(r);
}

/* ---- which may run ---- */

/* Is there earlier work on a stream that this one must follow, though it is another stream? */
static bool is_behind(const struct stream *s, const struct work *w)
{
	if (!s->is_null)
		return s->waits_for_null && s->context->null_stream->first &&
		       s->context->null_stream->first->number < w->number;
	for (const struct stream *o = fake.streams; o; o = o->next)
		if (o != s && o->context == s->context && o->waits_for_null && o->first && o->first->number < w->number)
			return true;
	return false;
}

static bool may_run(const struct stream *s, uint64_t now)
{
	const struct work *w = s->first;

	return w && !s->running && !fake.held && !fake.broken && w->not_before_ns <= now &&
	       !(w->kind == WAIT && !w->record->done) && !is_behind(s, w);
}

static struct stream *choose(void)
{
	uint64_t now = now_ns(), count = 0, which;

	for (struct stream *s = fake.streams; s; s = s->next)
		count += may_run(s, now);
	if (!count)
		return NULL;
	which = chance(count);
	for (struct stream *s = fake.streams; s; s = s->next)
		if (may_run(s, now) && !which--)
			return s;
	return NULL;
}

/* ---- running ---- */

/* Without the lock. */
static void run(const struct work *w)
{
	const void *arguments[ARGS_CAP];
	struct fake_kernel_call c;

	in_host_function = w->kind == CALL;
	if (w->kind == COPY)
		memcpy(w->to, w->from, w->bytes);
	else if (w->kind == CALL)
		w->call(w->context);
	else if (w->kind == KERNEL) {
		for (unsigned i = 0, at = 0; i < w->kernel->count; at += argument_room(w->kernel, i++))
			arguments[i] = w->arguments + at;
		memcpy(c.grid, w->grid, sizeof(c.grid));
		memcpy(c.block, w->block, sizeof(c.block));
		c.name = w->kernel->name;
		c.image = w->image;
		c.shared_bytes = w->shared_bytes;
		c.arguments = arguments;
		w->kernel->twin(&c);
	}
	in_host_function = false;
}

static void free_stream_if_over(struct stream *s)
{
	if (!s->dropped || s->first || s->running)
		return;
	for (struct stream **p = &fake.streams; *p; p = &(*p)->next)
		if (*p == s) {
			*p = s->next;
			free(s);
			return;
		}
}

/* The head of a stream is done, or is given up. */
static void work_end(struct stream *s)
{
	struct work *w = s->first;

	s->first = w->next;
	if (!s->first)
		s->end = &s->first;
	if (w->kind == RECORD)
		w->record->done = true;
	record_let_go(w->record);
	free(w->staged);
	free(w->arguments);
	free(w);
	fake.pending--;
	free_stream_if_over(s);
	pthread_cond_broadcast(&fake.change);
}

static void sleep_a_little(void)
{
	struct timespec t;

	if (!fake.pending || fake.held || fake.broken) {
		pthread_cond_wait(&fake.change, &fake.lock);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += LOOK_AGAIN;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&fake.change, &fake.lock, &t);
}

__attribute__((noreturn)) static void *work_on(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&fake.lock);
	for (;;) {
		struct stream *s = choose();

		if (!s) {
			sleep_a_little();
			continue;
		}
		s->running = true;
		pthread_mutex_unlock(&fake.lock);
		run(s->first);
		pthread_mutex_lock(&fake.lock);
		s->running = false;
		work_end(s);
	}
}

static void start_threads(void)
{
	pthread_t thread;

	if (fake.has_threads)
		return;
	fake.has_threads = true;
	for (int i = 0; i < THREADS; i++)
		if (!pthread_create(&thread, NULL, work_on, NULL))
			pthread_detach(thread); /* for the life of the process, as a driver's */
}

/* ---- queueing ---- */

struct stream *stream_new(struct context *c, bool waits_for_null)
{
	struct stream *s = calloc(1, sizeof(*s));

	s->context = c;
	s->waits_for_null = waits_for_null;
	s->end = &s->first;
	s->next = fake.streams;
	fake.streams = s;
	return s;
}

void stream_drop(struct stream *s)
{
	s->dropped = true;
	free_stream_if_over(s);
}

struct work *work_add(struct stream *s, int kind)
{
	struct work *w = calloc(1, sizeof(*w));

	start_threads();
	w->kind = kind;
	w->number = ++fake.number;
	w->not_before_ns = fake.late_us ? now_ns() + chance(fake.late_us) * 1000 : 0;
	*s->end = w;
	s->end = &w->next;
	fake.pending++;
	pthread_cond_broadcast(&fake.change);
	return w;
}

void work_wait_for(struct record *r)
{
	while (!r->done && !fake.broken)
		pthread_cond_wait(&fake.change, &fake.lock);
}

static bool give_up_one(void)
{
	for (struct stream *s = fake.streams; s; s = s->next)
		if (s->first && !s->running) {
			work_end(s); /* may free s */
			return true;
		}
	return false;
}

void work_forget(void)
{
	while (fake.pending)
		if (!give_up_one())
			pthread_cond_wait(&fake.change, &fake.lock); /* one is being run right now */
}
