/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_workers.c - what workers need to make records, and slots for their results
 *
 * A ticket of workers.h is an image, or a block of records of fixed size.
 */
#include "tools/shardpack/make/make.h"

#include <stdlib.h>

#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/workers.h"
#include "tools/shardpack/input/input.h"

/* The way through ranges, ascending and none of them empty. */
struct range_walk {
	const struct range *range;
	uint64_t used; /* of that one */
};

/* At most `most` of what comes next, and nothing beyond the end of a range. */
static struct range range_take(struct range_walk *w, uint64_t most)
{
	uint64_t left = w->range->count - w->used;
	struct range out = {w->range->first + w->used, left < most ? left : most};

	w->used += out.count;
	if (w->used == w->range->count)
		*w = (struct range_walk){.range = w->range + 1};
	return out;
}

/* ---- images ---- */

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
	/* of assign_image() and give_back_image(): [slot_count] all that no ticket has, from the front */
	uint8_t **records;
	uint64_t record_count;	/* likewise: in `records` */
	struct range_walk walk; /* of assign_image(): where the next ticket is */
	struct budget budget;	/* of large images */
};

/* Struct workers_options: the next ordinal, and memory for its record. */
static void assign_image(void *context, uint64_t slot)
{
	struct image_workers *p = context;

	p->slots[slot].ordinal = range_take(&p->walk, 1).first;
	p->slots[slot].record = p->records[--p->record_count];
}

static void give_back_image(void *context, uint64_t slot)
{
	struct image_workers *p = context;

	p->records[p->record_count++] = p->slots[slot].record;
}

static void *begin_images(void *context)
{
	struct image_workers *p = context;

	return converter_open(p->job, &p->budget);
}

static void end_images(void *own)
{
	converter_close(own);
}

static void convert_image(void *context, void *own, uint64_t slot)
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

int image_workers_open(struct image_workers **out, const struct job *job, const struct range *ranges,
		       uint64_t range_count, struct workers_options *w)
{
	struct image_workers *p = xcalloc(1, sizeof(*p));
	size_t record_bytes = converter_record_bytes(&job->schema);
	uint64_t least, count = SLOTS_BYTES / (record_bytes + sizeof(struct result));
	struct shard_error err;

	for (uint64_t i = 0; i < range_count; i++)
		w->ticket_count += ranges[i].count;
	least = (uint64_t)workers_needed(job->worker_count, w->ticket_count) + 1;
	count = count < SLOTS_MAX ? count : SLOTS_MAX;
	count = count < w->ticket_count ? count : w->ticket_count;
	w->slot_count = count < least ? least : count;
	w->wake_count = WORKERS_AT_ONCE;
	w->context = p;
	w->begin = begin_images;
	w->end = end_images;
	w->assign = assign_image;
	w->work = convert_image;
	w->give_back = give_back_image;
	*out = p;
	p->job = job;
	p->progress = w->progress;
	p->slot_count = w->slot_count;
	p->walk.range = ranges;
	p->slots = xcalloc(p->slot_count, sizeof(*p->slots));
	p->records = xcalloc(p->slot_count, sizeof(*p->records));
	budget_init(&p->budget);
	for (uint64_t i = 0; i < p->slot_count; i++) {
		p->records[i] = malloc(record_bytes);
		if (!p->records[i])
			return fail(EXIT_IO, "out of memory for %u workers; use fewer with -j", job->worker_count);
		p->record_count++;
		if (shard_tally_open(&p->slots[i].tally, &job->schema, &err) != SHARD_OK)
			return fail_of_library(&err);
	}
	return EXIT_DONE;
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
	for (uint64_t i = 0; i < p->slot_count; i++)
		shard_tally_close(p->slots[i].tally);
	free(p->records);
	free(p->slots);
	budget_destroy(&p->budget);
	free(p);
}

/* ---- records of fixed size ---- */

/* One being filled, one that waits. */
#define SLOTS_PER_WORKER 2

struct record_workers {
	const struct job *job; /* const after open, and so are the next four */
	struct progress *progress;
	uint64_t slot_count, block_records;
	uint64_t source_bytes; /* of a record, for progress */
	struct fixed_block *slots;
	struct range_walk walk; /* of assign_block(): where the next ticket begins */
};

/* Struct workers_options: the records of the next ticket. */
static void assign_block(void *context, uint64_t slot)
{
	struct record_workers *p = context;

	p->slots[slot].place = range_take(&p->walk, p->block_records);
}

static void *begin_records(void *context)
{
	const struct record_workers *p = context;

	return fixed_open(p->job->plan, &p->job->schema, p->job->source_files);
}

static void end_records(void *own)
{
	fixed_close(own);
}

static void fill_block(void *context, void *own, uint64_t slot)
{
	struct record_workers *p = context;
	struct fixed_block *b = &p->slots[slot];

	fixed_fill(own, b);
	progress_add(p->progress, b->place.count, b->place.count * p->source_bytes, b->bad_count);
}

int record_workers_open(struct record_workers **out, const struct job *job, const struct range *ranges,
			uint64_t range_count, struct workers_options *w)
{
	struct record_workers *p = xcalloc(1, sizeof(*p));
	int rc = EXIT_DONE;

	*out = p;
	p->job = job;
	p->progress = w->progress;
	p->block_records = fixed_block_records(&job->schema);
	p->source_bytes = job->plan->source_bytes / job->plan->input_count;
	p->walk.range = ranges;
	for (uint64_t i = 0; i < range_count; i++)
		w->ticket_count += (ranges[i].count + p->block_records - 1) / p->block_records;
	w->slot_count = (uint64_t)workers_needed(job->worker_count, w->ticket_count) * SLOTS_PER_WORKER;
	w->context = p;
	w->begin = begin_records;
	w->end = end_records;
	w->assign = assign_block;
	w->work = fill_block;
	p->slot_count = w->slot_count;
	p->slots = xcalloc(p->slot_count, sizeof(*p->slots));
	for (uint64_t i = 0; !rc && i < p->slot_count; i++)
		rc = fixed_block_open(&p->slots[i], &job->schema);
	return rc;
}

struct fixed_block *record_workers_block(struct record_workers *p, uint64_t slot)
{
	return &p->slots[slot];
}

void record_workers_close(struct record_workers *p)
{
	if (!p)
		return;
	for (uint64_t i = 0; i < p->slot_count; i++)
		fixed_block_close(&p->slots[i]);
	free(p->slots);
	free(p);
}
