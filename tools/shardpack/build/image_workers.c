/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_workers.c - inputs converted by many threads, results taken in order by one
 *
 * A ticket of workers.h is an ordinal.  Records have memory of their own: the one released last is used next, while the
 * CPU's cache still holds it.
 */
#include "tools/shardpack/build/image_workers.h"

#include <stdlib.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/shardpack/build/budget.h"
#include "tools/common/workers.h"

/*
 * Slots: one for each worker and one that the taker looks at.  More, as far as they are small, so that a slow image does
 * not stop the rest, and workers go on while the taker waits for the disk: 32 MiB are 0.1 to 0.3 s of writing.
 */
#define SLOTS_MAX 1024
#define SLOTS_BYTES (UINT64_C(32) << 20)

struct pipeline {
	struct pipeline_options opt; /* const after open */
	uint64_t slot_count;	     /* const after open */
	struct result *slots;
	uint8_t **records;		/* of assign() and give_back(): [slot_count] all that no ticket has, from the front */
	uint64_t record_count;		/* likewise: in `records` */
	uint64_t range_idx, range_used; /* of assign(): where in the ranges the next ticket is */
	struct budget budget;		/* of large images */
	struct workers *workers;
};

/* Struct workers_options: the next ordinal, and memory for its record. */
static void assign(void *context, uint64_t slot)
{
	struct pipeline *p = context;

	while (p->range_used == p->opt.ranges[p->range_idx].count) {
		p->range_idx++;
		p->range_used = 0;
	}
	p->slots[slot].ordinal = p->opt.ranges[p->range_idx].first + p->range_used++;
	p->slots[slot].record = p->records[--p->record_count];
}

static void give_back(void *context, uint64_t slot)
{
	struct pipeline *p = context;

	p->records[p->record_count++] = p->slots[slot].record;
}

static void *begin(void *context)
{
	struct pipeline *p = context;

	return converter_open(p->opt.plan, p->opt.source_fd, p->opt.stored, p->opt.quarantine, &p->budget);
}

static void end(void *own)
{
	converter_close(own);
}

static void work(void *context, void *own, uint64_t slot)
{
	struct pipeline *p = context;
	struct result *r = &p->slots[slot];

	const void *group[] = {r->record, NULL};

	converter_run(own, r);
	if (r->outcome == OUTCOME_RECORD) {
		group[1] = r->meta;
		shard_tally_clear(r->tally);
		shard_tally_add(r->tally, group);
	}
	progress_add(p->opt.progress, 1, r->input.source_bytes, r->outcome != OUTCOME_RECORD);
}

static uint64_t slot_count(const struct pipeline *p, uint64_t ticket_count)
{
	uint64_t record_bytes = converter_record_bytes(p->opt.schema);
	uint64_t least = (uint64_t)workers_needed(p->opt.worker_count, ticket_count) + 1;
	uint64_t count = SLOTS_BYTES / (record_bytes + sizeof(struct result));

	if (count > SLOTS_MAX)
		count = SLOTS_MAX;
	if (count > ticket_count)
		count = ticket_count;
	return count < least ? least : count;
}

static bool allocate(struct pipeline *p)
{
	size_t record_bytes = converter_record_bytes(p->opt.schema);

	p->slots = calloc(p->slot_count, sizeof(*p->slots));
	p->records = calloc(p->slot_count, sizeof(*p->records));
	for (uint64_t i = 0; p->slots && p->records && i < p->slot_count; i++) {
		p->records[i] = malloc(record_bytes);
		if (!p->records[i])
			return false;
		p->record_count++;
		if (shard_tally_open(&p->slots[i].tally, p->opt.schema, 0, NULL) != SHARD_OK)
			return false;
	}
	return p->slots && p->records;
}

int pipeline_open(struct pipeline **out, const struct pipeline_options *opt)
{
	struct pipeline *p = calloc(1, sizeof(*p));
	struct workers_options w = {
		.worker_count = opt->worker_count, .progress = opt->progress, .context = p, .begin = begin, .end = end, .assign = assign,
		.work = work, .give_back = give_back};
	int code;

	if (!p)
		return fail(EXIT_IO, "out of memory for the conversion of images");
	p->opt = *opt;
	for (uint64_t i = 0; i < opt->range_count; i++)
		w.ticket_count += opt->ranges[i].count;
	w.slot_count = p->slot_count = slot_count(p, w.ticket_count);
	budget_init(&p->budget);
	code = allocate(p) ? workers_open(&p->workers, &w)
			   : fail(EXIT_IO, "no memory or no threads for %u workers; ask for fewer with -j", opt->worker_count);
	if (code == EXIT_DONE)
		*out = p;
	else
		pipeline_close(p);
	return code;
}

int pipeline_next(struct pipeline *p, struct result **out)
{
	uint64_t slot;
	int code = workers_next(p->workers, &slot);

	*out = slot == WORKERS_NO_SLOT ? NULL : &p->slots[slot];
	return code;
}

void pipeline_release(struct pipeline *p)
{
	workers_release(p->workers);
}

void pipeline_close(struct pipeline *p)
{
	if (!p)
		return;
	workers_close(p->workers);
	while (p->record_count)
		free(p->records[--p->record_count]);
	for (uint64_t i = 0; p->slots && i < p->slot_count; i++)
		shard_tally_close(p->slots[i].tally);
	free(p->records);
	free(p->slots);
	budget_destroy(&p->budget);
	free(p);
}
