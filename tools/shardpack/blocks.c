/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.c - blocks of fixed records filled by threads, taken in order by one
 *
 * Ticket t is the t-th block of all ranges and lives in slot t % slot_count; a worker may take it once the ticket that
 * had the slot before was released.
 */
#include "tools/shardpack/blocks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/common/message.h"
#include "tools/common/signals.h"

/* One being filled, one that waits. */
#define SLOTS_PER_WORKER 2

struct slot {
	struct fixed_block block;
	bool done; /* lock */
};

struct blocks {
	struct blocks_options opt;	       /* const after open */
	uint64_t ticket_count, slot_count;     /* const after open */
	uint64_t block_records, record_source; /* const after open: bytes of a record in the source, for progress */
	struct slot *slots; /* each belongs to the worker that took its ticket, until done */
	pthread_t *workers;
	unsigned worker_count; /* started */

	pthread_mutex_t lock;
	pthread_cond_t room;		/* with lock: a slot was released, or stop was set */
	pthread_cond_t ready;		/* with lock: the block at `head` is done */
	uint64_t next;			/* lock: first ticket that nobody took */
	uint64_t range_idx, range_used; /* lock: where in the ranges `next` begins */
	uint64_t head;			/* lock: first ticket that was not released */
	bool stop;			/* lock: set once, never cleared */
};

struct worker_start {
	struct blocks *blocks;
	struct fixed *fixed;
};

/* With lock: the records of the next ticket. */
static void cut(struct blocks *p, struct fixed_block *b)
{
	const struct pipeline_range *range = &p->opt.ranges[p->range_idx];
	uint64_t left = range->count - p->range_used;

	b->first = range->first + p->range_used;
	b->count = left < p->block_records ? left : p->block_records;
	p->range_used += b->count;
	if (p->range_used == range->count) {
		p->range_idx++;
		p->range_used = 0;
	}
}

/* Take the next ticket; NULL when there is none, or no more is wanted. */
static struct slot *take(struct blocks *p)
{
	struct slot *slot = NULL;

	pthread_mutex_lock(&p->lock);
	while (!p->stop && p->next < p->ticket_count && p->next - p->head >= p->slot_count)
		pthread_cond_wait(&p->room, &p->lock);
	if (!p->stop && p->next < p->ticket_count) {
		slot = &p->slots[p->next++ % p->slot_count];
		cut(p, &slot->block);
		slot->done = false;
	}
	pthread_mutex_unlock(&p->lock);
	return slot;
}

static void *work(void *context)
{
	struct worker_start start = *(struct worker_start *)context;
	struct blocks *p = start.blocks;
	struct slot *slot;

	free(context);
	while ((slot = take(p)) != NULL) {
		fixed_fill(start.fixed, &slot->block);
		progress_add(p->opt.progress, slot->block.count, slot->block.count * p->record_source, slot->block.bad_count);
		pthread_mutex_lock(&p->lock);
		slot->done = true;
		if (slot == &p->slots[p->head % p->slot_count])
			pthread_cond_signal(&p->ready);
		pthread_mutex_unlock(&p->lock);
	}
	fixed_close(start.fixed);
	return NULL;
}

static bool start_worker(struct blocks *p)
{
	struct worker_start *start = calloc(1, sizeof(*start));

	if (!start)
		return false;
	start->blocks = p;
	start->fixed = fixed_open(p->opt.plan, p->opt.schema, p->opt.stored);
	if (start->fixed && pthread_create(&p->workers[p->worker_count], NULL, work, start) == 0) {
		p->worker_count++;
		return true;
	}
	fixed_close(start->fixed);
	free(start);
	return false;
}

static bool allocate(struct blocks *p)
{
	uint64_t i;

	p->slots = calloc(p->slot_count, sizeof(*p->slots));
	p->workers = calloc(p->opt.worker_count, sizeof(*p->workers));
	for (i = 0; p->slots && i < p->slot_count; i++)
		if (!fixed_block_open(&p->slots[i].block, p->opt.schema))
			return false;
	return p->slots && p->workers;
}

int blocks_open(struct blocks **out, const struct blocks_options *opt)
{
	struct blocks *p = calloc(1, sizeof(*p));
	pthread_condattr_t attributes;
	uint64_t i;
	bool ok;

	if (!p)
		return fail(EXIT_IO, "out of memory for blocks of records");
	p->opt = *opt;
	p->block_records = fixed_block_records(opt->schema);
	p->record_source = opt->plan->source_bytes / opt->plan->input_count;
	for (i = 0; i < opt->range_count; i++)
		p->ticket_count += (opt->ranges[i].count + p->block_records - 1) / p->block_records;
	if (p->opt.worker_count > p->ticket_count)
		p->opt.worker_count = p->ticket_count ? (unsigned)p->ticket_count : 1;
	p->slot_count = (uint64_t)p->opt.worker_count * SLOTS_PER_WORKER;

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
		blocks_close(p);
		return fail(EXIT_IO, "no memory or no threads for %u workers; ask for fewer with -j", opt->worker_count);
	}
	if (p->worker_count < p->opt.worker_count)
		warn("only %u of %u threads could be started", p->worker_count, p->opt.worker_count);
	*out = p;
	return EXIT_DONE;
}

int blocks_next(struct blocks *p, struct fixed_block **out)
{
	struct timespec until;
	bool done = false;

	*out = NULL;
	progress_tick(p->opt.progress);
	while (!done) {
		struct slot *slot;

		if (interrupted())
			return EXIT_INTERRUPTED;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += (long)PROGRESS_TICK_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_mutex_lock(&p->lock);
		slot = &p->slots[p->head % p->slot_count];
		done = p->head == p->ticket_count;
		if (!done && !(p->head < p->next && slot->done))
			pthread_cond_timedwait(&p->ready, &p->lock, &until);
		if (!done && p->head < p->next && slot->done) {
			*out = &slot->block;
			done = true;
		}
		pthread_mutex_unlock(&p->lock);
		if (!done)
			progress_tick(p->opt.progress);
	}
	return EXIT_DONE;
}

void blocks_release(struct blocks *p)
{
	pthread_mutex_lock(&p->lock);
	p->head++;
	pthread_cond_signal(&p->room);
	pthread_mutex_unlock(&p->lock);
}

void blocks_close(struct blocks *p)
{
	uint64_t i;

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->room);
	pthread_mutex_unlock(&p->lock);
	while (p->worker_count)
		pthread_join(p->workers[--p->worker_count], NULL);
	for (i = 0; p->slots && i < p->slot_count; i++)
		fixed_block_close(&p->slots[i].block);
	free(p->slots);
	free(p->workers);
	pthread_cond_destroy(&p->room);
	pthread_cond_destroy(&p->ready);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
