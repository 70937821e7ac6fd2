/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_workers.c - what workers need to fill blocks of fixed records, and slots for these
 */
#include "tools/shardpack/make/make.h"

#include <stdlib.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/workers.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/make/job.h"
#include "tools/shardpack/plan/plan.h"

/* One being filled, one that waits. */
#define SLOTS_PER_WORKER 2

struct record_workers {
	const struct job *job; /* const after open, and so are the next four */
	struct progress *progress;
	uint64_t slot_count, block_records;
	uint64_t source_bytes; /* of a record, for progress */
	struct fixed_block *slots;
	struct range_walk walk; /* of assign(): where the next ticket begins */
};

/* Struct workers_options: the records of the next ticket. */
static void assign(void *context, uint64_t slot)
{
	struct record_workers *p = context;

	p->slots[slot].place = range_take(&p->walk, p->block_records);
}

static void *begin(void *context)
{
	const struct record_workers *p = context;

	return fixed_open(p->job->plan, &p->job->schema, p->job->stored);
}

static void end(void *own)
{
	fixed_close(own);
}

static void work(void *context, void *own, uint64_t slot)
{
	struct record_workers *p = context;
	struct fixed_block *b = &p->slots[slot];

	fixed_fill(own, b);
	progress_add(p->progress, b->place.count, b->place.count * p->source_bytes, b->bad_count);
}

static bool allocate(struct record_workers *p)
{
	p->slots = calloc(p->slot_count, sizeof(*p->slots));
	for (uint64_t i = 0; p->slots && i < p->slot_count; i++)
		if (!fixed_block_open(&p->slots[i], &p->job->schema))
			return false;
	return p->slots != NULL;
}

int record_workers_open(struct record_workers **out, const struct job *job, const struct range *ranges,
			uint64_t range_count, struct workers_options *w)
{
	struct record_workers *p = calloc(1, sizeof(*p));

	if (!p)
		return fail(EXIT_IO, "out of memory for blocks of records");
	p->job = job;
	p->progress = w->progress;
	p->block_records = fixed_block_records(&job->schema);
	p->source_bytes = job->plan->source_bytes / job->plan->input_count;
	p->walk.range = ranges;
	w->context = p;
	w->begin = begin;
	w->end = end;
	w->assign = assign;
	w->work = work;
	for (uint64_t i = 0; i < range_count; i++)
		w->ticket_count += (ranges[i].count + p->block_records - 1) / p->block_records;
	w->slot_count = p->slot_count = (uint64_t)workers_needed(job->worker_count, w->ticket_count) * SLOTS_PER_WORKER;
	*out = p;
	return allocate(p) ? EXIT_DONE
			   : fail(EXIT_IO, "out of memory for %u workers; use fewer with -j", job->worker_count);
}

struct fixed_block *record_workers_block(struct record_workers *p, uint64_t slot)
{
	return &p->slots[slot];
}

void record_workers_close(struct record_workers *p)
{
	if (!p)
		return;
	for (uint64_t i = 0; p->slots && i < p->slot_count; i++)
		fixed_block_close(&p->slots[i]);
	free(p->slots);
	free(p);
}
