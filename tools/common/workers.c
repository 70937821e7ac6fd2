/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workers.c - pieces of work done by threads, taken in order by one
 *
 * A thread may take a ticket once the one that had the slot before was released.
 */
#include "tools/common/workers.h"

#include <pthread.h>
#include <stdlib.h>

#include "libshard/base/clock.h"
#include "libshard/base/thread.h"
#include "libshard/base/turns.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"

struct workers {
	struct workers_options opt; /* const after open */
	bool *done;		    /* lock: [slot_count] */
	pthread_t *threads;
	unsigned thread_count; /* started */

	pthread_mutex_t lock;
	pthread_cond_t room;  /* with lock: a slot was released, more is allowed, or stop was set */
	pthread_cond_t ready; /* with lock: the ticket at `head` is done */
	uint64_t allowed;     /* lock: tickets that may be started; only grows */
	uint64_t next;	      /* lock: first ticket that nobody took */
	uint64_t head;	      /* lock: first ticket that was not released */
	bool stop;	      /* lock: set once, never cleared */
};

struct worker_start {
	struct workers *workers;
	void *own;
};

/* With lock: does each slot have a ticket? */
static bool is_full(const struct workers *w)
{
	return w->next - w->head >= w->opt.slot_count;
}

/* With lock: is the ticket at `head` done? */
static bool is_ready(const struct workers *w)
{
	return w->head < w->next && w->done[w->head % w->opt.slot_count];
}

/* With lock: are enough done that the taker should look, or does nothing else come? */
static bool is_worth_waking(const struct workers *w)
{
	uint64_t n = 0;

	while (n < w->opt.wake_count && w->head + n < w->next && w->done[(w->head + n) % w->opt.slot_count])
		n++;
	return n == w->opt.wake_count || (n && (w->next == w->allowed || is_full(w)));
}

/* Wait for the next ticket, and take it; false when all are taken, or the workers must stop. */
static bool next_ticket(struct workers *w, uint64_t *slot)
{
	bool taken;

	pthread_mutex_lock(&w->lock);
	while (!w->stop && w->next < w->opt.ticket_count && (w->next == w->allowed || is_full(w)))
		pthread_cond_wait(&w->room, &w->lock);
	taken = !w->stop && w->next < w->opt.ticket_count;
	if (taken) {
		*slot = w->next++ % w->opt.slot_count;
		w->opt.assign(w->opt.context, *slot);
		w->done[*slot] = false;
	}
	pthread_mutex_unlock(&w->lock);
	return taken;
}

static void *work(void *context)
{
	struct worker_start start = *(struct worker_start *)context;
	struct workers *w = start.workers;
	uint64_t slot;

	free(context);
	while (next_ticket(w, &slot)) {
		turns_take(w->opt.turns);
		w->opt.work(w->opt.context, start.own, slot);
		turns_give(w->opt.turns);
		pthread_mutex_lock(&w->lock);
		w->done[slot] = true;
		if (is_worth_waking(w))
			pthread_cond_signal(&w->ready);
		pthread_mutex_unlock(&w->lock);
	}
	w->opt.end(start.own);
	return NULL;
}

static bool start_worker(struct workers *w)
{
	struct worker_start *start = xcalloc(1, sizeof(*start));

	start->workers = w;
	start->own = w->opt.begin(w->opt.context);
	if (start->own && pthread_create(&w->threads[w->thread_count], NULL, work, start) == 0) {
		w->thread_count++;
		return true;
	}
	w->opt.end(start->own);
	free(start);
	return false;
}

unsigned workers_needed(unsigned worker_count, uint64_t ticket_count)
{
	if (worker_count <= ticket_count)
		return worker_count;
	return ticket_count ? (unsigned)ticket_count : 1;
}

int workers_open(struct workers **out, const struct workers_options *opt)
{
	struct workers *w = xcalloc(1, sizeof(*w));

	w->opt = *opt;
	w->opt.worker_count = workers_needed(opt->worker_count, opt->ticket_count);
	w->opt.wake_count = opt->wake_count ? opt->wake_count : 1;
	w->allowed = opt->on_demand ? 0 : opt->ticket_count;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->room, NULL);
	thread_cond_init(&w->ready);

	w->done = xcalloc(w->opt.slot_count, sizeof(*w->done));
	w->threads = xcalloc(w->opt.worker_count, sizeof(*w->threads));
	/* Fewer threads than asked for are slower, and no other difference. */
	while (w->thread_count < w->opt.worker_count && start_worker(w))
		;
	if (!w->thread_count) {
		workers_close(w);
		return fail(EXIT_IO, "cannot start any of %u workers: out of memory or threads; use fewer with -j",
			    opt->worker_count);
	}
	if (w->thread_count < w->opt.worker_count)
		warn("only %u of %u threads could be started; this costs speed only", w->thread_count,
		     w->opt.worker_count);
	*out = w;
	return EXIT_DONE;
}

void workers_allow(struct workers *w, uint64_t count)
{
	pthread_mutex_lock(&w->lock);
	w->allowed += count;
	pthread_cond_broadcast(&w->room);
	pthread_mutex_unlock(&w->lock);
}

int workers_next(struct workers *w, uint64_t *slot)
{
	struct timespec until;
	bool known = false;

	*slot = WORKERS_NO_SLOT;
	progress_tick(w->opt.progress);
	while (!known) {
		if (interrupted())
			return EXIT_INTERRUPTED;
		until = clock_after_ns(PROGRESS_TICK_NS);
		pthread_mutex_lock(&w->lock);
		known = w->head == w->opt.ticket_count;
		if (!known && !is_ready(w))
			pthread_cond_timedwait(&w->ready, &w->lock, &until);
		if (!known && is_ready(w)) {
			*slot = w->head % w->opt.slot_count;
			known = true;
		}
		pthread_mutex_unlock(&w->lock);
		if (!known)
			progress_tick(w->opt.progress);
	}
	return EXIT_DONE;
}

/* With lock, or when all threads have ended. */
static void release_head(struct workers *w)
{
	if (w->opt.give_back)
		w->opt.give_back(w->opt.context, w->head % w->opt.slot_count);
	w->head++;
}

uint64_t workers_next_now(struct workers *w)
{
	uint64_t slot;

	pthread_mutex_lock(&w->lock);
	slot = is_ready(w) ? w->head % w->opt.slot_count : WORKERS_NO_SLOT;
	pthread_mutex_unlock(&w->lock);
	return slot;
}

void workers_release(struct workers *w)
{
	pthread_mutex_lock(&w->lock);
	release_head(w);
	pthread_cond_signal(&w->room);
	pthread_mutex_unlock(&w->lock);
}

void workers_close(struct workers *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_broadcast(&w->room);
	pthread_mutex_unlock(&w->lock);
	while (w->thread_count)
		pthread_join(w->threads[--w->thread_count], NULL);
	while (w->head < w->next)
		release_head(w);
	free(w->done);
	free(w->threads);
	pthread_cond_destroy(&w->room);
	pthread_cond_destroy(&w->ready);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
