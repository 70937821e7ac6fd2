/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_workers.c - what workers need to convert images, and slots for their results
 *
 * Records have memory of their own: the one released last is used next, while the CPU's cache still
 * holds it.
 */
#include "tools/shardpack/make/make.h"

#include <stdlib.h>

#include "shard_pack.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/workers.h"
#include "tools/shardpack/make/job.h"

/*
 * Slots: one for each worker and one that the taker looks at.  More, as far as they are small, so
 * that a slow image does not stop the rest, and workers go on while the taker waits for the disk:
 * 32 MiB are 0.1 to 0.3 s of writing.
 */
#define SLOTS_MAX   1024
#define SLOTS_BYTES (UINT64_C(32) << 20)

struct image_workers {
	const struct job *job; /* const after open, and so are the next two */
	struct progress *progress;
	uint64_t slot_count;
	struct result *slots;
	/* of assign() and give_back(): [slot_count] all that no ticket has, from the front */
	uint8_t **records;
	uint64_t record_count;	/* likewise: in `records` */
	struct range_walk walk; /* of assign(): where the next ticket is */
	struct budget budget;	/* of large images */
};

/* Struct workers_options: the next ordinal, and memory for its record. */
static void assign(void *context, uint64_t slot)
{
	struct image_workers *p = context;

	p->slots[slot].ordinal = range_take(&p->walk, 1).first;
	p->slots[slot].record = p->records[--p->record_count];
}

static void give_back(void *context, uint64_t slot)
{
	struct image_workers *p = context;

	p->records[p->record_count++] = p->slots[slot].record;
}

static void *begin(void *context)
{
	struct image_workers *p = context;

	return converter_open(p->job->plan, p->job->source_fd, p->job->stored, p->job->times, p->job->quarantine,
			      &p->budget, p->job->sandbox);
}

static void end(void *own)
{
	converter_close(own);
}

static void work(void *context, void *own, uint64_t slot)
{
	struct image_workers *p = context;
	struct result *r = &p->slots[slot];
	bool made;

	converter_run(own, r);
	made = r->verdict.outcome == OUTCOME_RECORD;
	if (made) {
		const void *group[] = {r->record, r->meta};

		shard_tally_move(NULL, r->tally);
		shard_tally_add(r->tally, group);
	}
	progress_add(p->progress, 1, r->input.source_bytes, !made);
}

static uint64_t count_slots(const struct job *job, uint64_t ticket_count)
{
	uint64_t least = (uint64_t)workers_needed(job->worker_count, ticket_count) + 1;
	uint64_t count = SLOTS_BYTES / (converter_record_bytes(&job->schema) + sizeof(struct result));

	if (count > SLOTS_MAX)
		count = SLOTS_MAX;
	if (count > ticket_count)
		count = ticket_count;
	return count < least ? least : count;
}

static bool allocate(struct image_workers *p)
{
	size_t record_bytes = converter_record_bytes(&p->job->schema);

	p->slots = calloc(p->slot_count, sizeof(*p->slots));
	p->records = calloc(p->slot_count, sizeof(*p->records));
	for (uint64_t i = 0; p->slots && p->records && i < p->slot_count; i++) {
		p->records[i] = malloc(record_bytes);
		if (!p->records[i])
			return false;
		p->record_count++;
		if (shard_tally_open(&p->slots[i].tally, &p->job->schema, NULL) != SHARD_OK)
			return false;
	}
	return p->slots && p->records;
}

int image_workers_open(struct image_workers **out, const struct job *job, const struct range *ranges,
		       uint64_t range_count, struct workers_options *w)
{
	struct image_workers *p = calloc(1, sizeof(*p));

	if (!p)
		return fail(EXIT_IO, "out of memory for the conversion of images");
	w->context = p;
	w->begin = begin;
	w->end = end;
	w->assign = assign;
	w->work = work;
	w->give_back = give_back;
	for (uint64_t i = 0; i < range_count; i++)
		w->ticket_count += ranges[i].count;
	w->slot_count = count_slots(job, w->ticket_count);
	w->wake_count = WORKERS_AT_ONCE;
	p->job = job;
	p->progress = w->progress;
	p->slot_count = w->slot_count;
	p->walk.range = ranges;
	budget_init(&p->budget);
	*out = p;
	return allocate(p) ? EXIT_DONE
			   : fail(EXIT_IO, "out of memory for %u workers; use fewer with -j", job->worker_count);
}

struct result *image_workers_result(struct image_workers *p, uint64_t slot)
{
	return &p->slots[slot];
}

void image_workers_close(struct image_workers *p)
{
	if (!p)
		return;
	while (p->record_count)
		free(p->records[--p->record_count]);
	for (uint64_t i = 0; p->slots && i < p->slot_count; i++)
		shard_tally_close(p->slots[i].tally);
	free(p->records);
	free(p->slots);
	budget_destroy(&p->budget);
	free(p);
}
