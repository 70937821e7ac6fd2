/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline.c - inputs converted by many threads, results taken in order by one
 *
 * Ticket t is the t-th ordinal of all ranges, and lives in slot t % slot_count.  A worker
 * may take it once the ticket that had the slot before was released.  Records have memory of
 * their own: the one released last is used next, while the CPU's cache still holds it.
 */
#include "tools/shardpack/pipeline.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/common/message.h"
#include "tools/common/signals.h"
#include "tools/shardpack/budget.h"

/*
 * Slots: one for each worker and one that the taker looks at.  More, as far as they are small, so that a slow image does
 * not stop the rest, and workers go on while the taker waits for the disk: 32 MiB are 0.1 to 0.3 s of writing.
 */
#define SLOTS_MAX 1024
#define SLOTS_BYTES (UINT64_C(32) << 20)

struct slot {
	struct result result;
	bool done; /* lock */
};

struct pipeline {
	struct pipeline_options opt; /* const after open */
	uint64_t ticket_count;	     /* const after open */
	uint64_t slot_count;	     /* const after open */
	struct slot *slots;	     /* each belongs to the worker that took its ticket, until done */
	uint8_t **records;	     /* lock: [slot_count] all that no ticket has, from the front */
	pthread_t *workers;
	unsigned worker_count; /* started */

	struct budget budget;  /* of large images */

	pthread_mutex_t lock;
	pthread_cond_t room;		/* with lock: a slot was released, or stop was set */
	pthread_cond_t ready;		/* with lock: the result at `head` is done */
	uint64_t next;			/* lock: first ticket that nobody took */
	uint64_t range_idx, range_used; /* lock: where in the ranges `next` is */
	uint64_t head;			/* lock: first ticket that was not released */
	uint64_t record_count;		/* lock: in `records`; slot_count - (next - head) */
	bool stop;			/* lock: set once, never cleared */
};

struct worker_start {
	struct pipeline *pipeline;
	struct converter *converter;
};

/* Take the next ticket; NULL when there is none, or no more is wanted. */
static struct slot *take(struct pipeline *p)
{
	struct slot *slot = NULL;

	pthread_mutex_lock(&p->lock);
	while (!p->stop && p->next < p->ticket_count && p->next - p->head >= p->slot_count)
		pthread_cond_wait(&p->room, &p->lock);
	if (!p->stop && p->next < p->ticket_count) {
		slot = &p->slots[p->next % p->slot_count];
		while (p->range_used == p->opt.ranges[p->range_idx].count) {
			p->range_idx++;
			p->range_used = 0;
		}
		slot->result.ordinal = p->opt.ranges[p->range_idx].first + p->range_used++;
		slot->result.record = p->records[--p->record_count];
		slot->done = false;
		p->next++;
	}
	pthread_mutex_unlock(&p->lock);
	return slot;
}

static void *work(void *context)
{
	struct worker_start start = *(struct worker_start *)context;
	struct pipeline *p = start.pipeline;
	struct slot *slot;

	free(context);
	while ((slot = take(p)) != NULL) {
		converter_run(start.converter, &slot->result);
		progress_add(p->opt.progress, 1, slot->result.input.source_bytes,
			     slot->result.outcome != OUTCOME_RECORD);
		pthread_mutex_lock(&p->lock);
		slot->done = true;
		if (slot == &p->slots[p->head % p->slot_count])
			pthread_cond_signal(&p->ready);
		pthread_mutex_unlock(&p->lock);
	}
	converter_close(start.converter);
	return NULL;
}

static bool start_worker(struct pipeline *p)
{
	struct worker_start *start = calloc(1, sizeof(*start));

	if (!start)
		return false;
	start->pipeline = p;
	start->converter = converter_open(p->opt.plan, p->opt.source_fd, p->opt.stored, p->opt.quarantine, &p->budget);
	if (start->converter && pthread_create(&p->workers[p->worker_count], NULL, work, start) == 0) {
		p->worker_count++;
		return true;
	}
	converter_close(start->converter);
	free(start);
	return false;
}

static uint64_t slot_count(const struct pipeline *p)
{
	uint64_t record_bytes = transform_record_bytes(&p->opt.plan->recipe.transform);
	uint64_t least = (uint64_t)p->opt.worker_count + 1;
	uint64_t count = SLOTS_BYTES / (record_bytes + sizeof(struct slot));

	if (count > SLOTS_MAX)
		count = SLOTS_MAX;
	if (count > p->ticket_count)
		count = p->ticket_count;
	return count < least ? least : count;
}

static bool allocate(struct pipeline *p)
{
	size_t record_bytes = transform_record_bytes(&p->opt.plan->recipe.transform);
	uint64_t i;

	p->slots = calloc(p->slot_count, sizeof(*p->slots));
	p->workers = calloc(p->opt.worker_count, sizeof(*p->workers));
	p->records = calloc(p->slot_count, sizeof(*p->records));
	for (i = 0; p->records && i < p->slot_count; i++) {
		p->records[i] = malloc(record_bytes);
		if (!p->records[i])
			return false;
		p->record_count++;
	}
	return p->slots && p->workers && p->records;
}

int pipeline_open(struct pipeline **out, const struct pipeline_options *opt)
{
	struct pipeline *p = calloc(1, sizeof(*p));
	pthread_condattr_t attributes;
	uint64_t i;
	bool ok;

	if (!p)
		return fail(EXIT_IO, "out of memory for the conversion of images");
	p->opt = *opt;
	for (i = 0; i < opt->range_count; i++)
		p->ticket_count += opt->ranges[i].count;
	if (p->opt.worker_count > p->ticket_count)
		p->opt.worker_count = p->ticket_count ? (unsigned)p->ticket_count : 1;
	p->slot_count = slot_count(p);

	budget_init(&p->budget);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->room, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&p->ready, &attributes);
	pthread_condattr_destroy(&attributes);

	ok = allocate(p);
	/* Fewer threads than asked for are slower, and no other difference. */
	while (ok && p->worker_count < p->opt.worker_count && start_worker(p))
		;
	if (!p->worker_count) {
		pipeline_close(p);
		return fail(EXIT_IO, "no memory or no threads for %u workers; ask for fewer with -j",
			    opt->worker_count);
	}
	if (p->worker_count < p->opt.worker_count)
		warn("only %u of %u threads could be started", p->worker_count, p->opt.worker_count);
	*out = p;
	return EXIT_DONE;
}

int pipeline_next(struct pipeline *p, struct result **out)
{
	struct slot *slot;
	struct timespec until;
	int code = EXIT_DONE;
	bool done = false;

	*out = NULL;
	progress_tick(p->opt.progress);
	while (code == EXIT_DONE && !done) {
		if (interrupted()) {
			code = EXIT_INTERRUPTED;
			break;
		}
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += (long)PROGRESS_TICK_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_mutex_lock(&p->lock);
		slot = &p->slots[p->head % p->slot_count];
		if (p->head == p->ticket_count) {
			done = true;
		} else if ((p->head < p->next && slot->done) ||
			   (pthread_cond_timedwait(&p->ready, &p->lock, &until) == 0 && p->head < p->next &&
			    slot->done)) {
			*out = &slot->result;
			done = true;
		}
		pthread_mutex_unlock(&p->lock);
		if (!done)
			progress_tick(p->opt.progress);
	}
	return code;
}

/* With lock. */
static void release_head(struct pipeline *p)
{
	p->records[p->record_count++] = p->slots[p->head % p->slot_count].result.record;
	p->head++;
}

void pipeline_release(struct pipeline *p)
{
	pthread_mutex_lock(&p->lock);
	release_head(p);
	pthread_cond_signal(&p->room);
	pthread_mutex_unlock(&p->lock);
}

void pipeline_close(struct pipeline *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->room);
	pthread_mutex_unlock(&p->lock);
	while (p->worker_count)
		pthread_join(p->workers[--p->worker_count], NULL);
	while (p->head < p->next)
		release_head(p);
	while (p->record_count)
		free(p->records[--p->record_count]);
	free(p->records);
	free(p->slots);
	free(p->workers);
	pthread_cond_destroy(&p->room);
	pthread_cond_destroy(&p->ready);
	pthread_mutex_destroy(&p->lock);
	budget_destroy(&p->budget);
	free(p);
}
