/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_workers.c - blocks of fixed records filled by threads, taken in order by one
 *
 * A ticket of workers.h is a block; no block goes over the end of a range.
 */
#include "tools/shardpack/build/record_workers.h"

#include <stdlib.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/workers.h"

/* One being filled, one that waits. */
#define SLOTS_PER_WORKER 2

struct blocks {
	struct blocks_options opt;	       /* const after open */
	uint64_t slot_count;		       /* const after open */
	uint64_t block_records, record_source; /* const after open: bytes of a record in the source, for progress */
	struct fixed_block *slots;
	uint64_t range_idx, range_used; /* of assign(): where in the ranges the next ticket begins */
	struct workers *workers;
};

/* Struct workers_options: the records of the next ticket. */
static void assign(void *context, uint64_t slot)
{
	struct blocks *p = context;
	const struct pipeline_range *range = &p->opt.ranges[p->range_idx];
	uint64_t left = range->count - p->range_used;
	struct fixed_block *b = &p->slots[slot];

	b->first = range->first + p->range_used;
	b->count = left < p->block_records ? left : p->block_records;
	p->range_used += b->count;
	if (p->range_used == range->count) {
		p->range_idx++;
		p->range_used = 0;
	}
}

static void *begin(void *context)
{
	const struct blocks *p = context;

	return fixed_open(p->opt.plan, p->opt.schema, p->opt.stored);
}

static void end(void *own)
{
	fixed_close(own);
}

static void work(void *context, void *own, uint64_t slot)
{
	struct blocks *p = context;
	struct fixed_block *b = &p->slots[slot];

	fixed_fill(own, b);
	progress_add(p->opt.progress, b->count, b->count * p->record_source, b->bad_count);
}

static bool allocate(struct blocks *p)
{
	p->slots = calloc(p->slot_count, sizeof(*p->slots));
	for (uint64_t i = 0; p->slots && i < p->slot_count; i++)
		if (!fixed_block_open(&p->slots[i], p->opt.schema))
			return false;
	return p->slots != NULL;
}

int blocks_open(struct blocks **out, const struct blocks_options *opt)
{
	struct blocks *p = calloc(1, sizeof(*p));
	struct workers_options w = {
		.worker_count = opt->worker_count, .progress = opt->progress, .context = p, .begin = begin, .end = end, .assign = assign,
		.work = work};
	int code;

	if (!p)
		return fail(EXIT_IO, "out of memory for blocks of records");
	p->opt = *opt;
	p->block_records = fixed_block_records(opt->schema);
	p->record_source = opt->plan->source_bytes / opt->plan->input_count;
	for (uint64_t i = 0; i < opt->range_count; i++)
		w.ticket_count += (opt->ranges[i].count + p->block_records - 1) / p->block_records;
	w.slot_count = p->slot_count = (uint64_t)workers_needed(opt->worker_count, w.ticket_count) * SLOTS_PER_WORKER;
	code = allocate(p) ? workers_open(&p->workers, &w) 
			   : fail(EXIT_IO, "no memory or no threads for %u workers; ask for fewer with -j", opt->worker_count);
	if (code == EXIT_DONE)
		*out = p;
	else
		blocks_close(p);
	return code;
}

int blocks_next(struct blocks *p, struct fixed_block **out)
{
	uint64_t slot;
	int code = workers_next(p->workers, &slot);

	*out = slot == WORKERS_NO_SLOT ? NULL : &p->slots[slot];
	return code;
}

void blocks_release(struct blocks *p)
{
	workers_release(p->workers);
}

void blocks_close(struct blocks *p)
{
	if (!p)
		return;
	workers_close(p->workers);
	for (uint64_t i = 0; p->slots && i < p->slot_count; i++)
		fixed_block_close(&p->slots[i]);
	free(p->slots);
	free(p);
}
