/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batches.h - what a loader must deliver, call by call, computed without one that runs
 *
 * The order itself is taken from shard_loader_order() at world 1, which is arithmetic (t_loader and
 * t_order hold that to format/ORDER.md); steps, ranks, ends of epochs and bytes are worked out
 * here.  What is wrong is said in `complaint`, not by a CHECK: other threads and children ask as
 * well, and a control wants to hear a complaint.
 */
#ifndef TESTS_LOAD_BATCHES_H
#define TESTS_LOAD_BATCHES_H

#include "libshard/loader/loader.h"
#include "shard.h"
#include "tests/store/fixture.h"

#define RECORDS_CAP 300u
#define EPOCHS	    5u
#define LENT_CAP    16u

static struct path folder;
static struct shard_schema schema;
static struct shard_dataset *ds;
static uint64_t record_total;
static uint8_t *content[2]; /* of each group, all records as they lie */
/* records of a unit of labels and weights; 0: as advised, which is more than a shard has */
static uint32_t meta_unit;

static unsigned living; /* loaders that are open: more than none behind a test that failed */

static inline void drop_dataset(void)
{
	if (!living) /* else its threads still read, and what went wrong first is what shall be told */
		shard_dataset_close(ds);
	ds = NULL;
}

static inline void reopen(const struct shard_dataset_options *o)
{
	drop_dataset();
	CHECK_OK(shard_dataset_open(&ds, folder.text, o, &fixture_err));
}

/* Write the photographs of `schema`, which is laid out, and keep what is in them. */
static inline void make_dataset(const char *name, const uint64_t *sizes, size_t shards)
{
	drop_dataset();
	new_folder(&folder, name);
	write_dataset(folder.text, &schema, sizes, shards);
	record_total = 0;
	for (size_t i = 0; i < shards; i++)
		record_total += sizes[i];
	CHECK(record_total <= RECORDS_CAP);
	for (uint32_t g = 0; g < 2; g++) {
		free(content[g]);
		content[g] = calloc(record_total, (size_t)schema.group[g].stride);
		for (uint64_t i = 0; i < record_total; i++)
			photo_record(&schema, g, i, content[g] + i * schema.group[g].stride);
	}
	reopen(NULL);
}

/*
 * A dataset of photographs, and what is in it.  From side 37 on images are delivered as they lie,
 * smaller ones field by field.
 */
static inline void open_photos(uint32_t side, uint32_t codec, const uint64_t *sizes, size_t shards)
{
	schema = photo_schema(side, codec);
	if (meta_unit)
		schema.group[1].unit_records = meta_unit;
	make_dataset("load", sizes, shards);
}

/* ---- what is wanted ---- */

struct wanted {
	struct shard_loader_options o; /* world is not 0 */
	uint64_t total;		       /* records of an epoch */
	uint64_t order[EPOCHS][RECORDS_CAP];
	uint64_t epoch, first, step; /* of the next call */
	char complaint[300];	     /* the first one; empty for none */
};

__attribute__((format(printf, 2, 3))) static inline void complain(struct wanted *w, const char *fmt, ...)
{
	va_list ap;

	if (w->complaint[0])
		return;
	va_start(ap, fmt);
	vsnprintf(w->complaint, sizeof(w->complaint), fmt, ap);
	va_end(ap);
}

/* The order that these options ask for, in w->order. */
static inline void wanted_open(struct wanted *w, struct shard_loader_options o)
{
	struct shard_loader *l;

	memset(w, 0, sizeof(*w));
	w->o = o;
	w->o.size = sizeof(w->o);
	w->o.world = o.world ? o.world : 1;
	w->total = record_total;
	if (o.selection) {
		struct shard_selection_info info;

		shard_selection_info(o.selection, &info);
		w->total = info.record_count;
	}
	o = w->o;
	o.batch_records = 1;
	o.world = 1;
	o.rank = 0;
	o.tail = SHARD_DROP;
	o.gpu.pool_bytes = 0;
	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	for (uint64_t epoch = 0; epoch < EPOCHS; epoch++)
		CHECK_OK(shard_loader_order(l, epoch, 0, w->total, NULL, w->order[epoch], &fixture_err));
	shard_loader_close(l);
}

static inline struct shard_loader *loader_of(const struct wanted *w)
{
	struct shard_loader *l = NULL;

	CHECK_OK(shard_loader_open(&l, ds, &w->o, &fixture_err));
	living++;
	return l;
}

static inline void close_loader(struct shard_loader *l)
{
	shard_loader_close(l);
	living--;
}

/*
 * Of a loader that was asked for a batch: wait until all slots are filled or lent, so that its
 * threads have nothing to do.
 */
static inline void wait_until_full(struct shard_loader *l)
{
	for (bool full = false; !full; usleep(500)) {
		struct crew *c = &l->feed->crew;

		pthread_mutex_lock(&c->lock);
		full = !c->free_count && !c->busy;
		pthread_mutex_unlock(&c->lock);
	}
}

static inline void wanted_seek(struct wanted *w, uint64_t epoch, uint64_t position)
{
	w->epoch = epoch;
	w->first = position;
	w->step = 0;
}

static inline uint64_t step_records(const struct wanted *w)
{
	return (uint64_t)w->o.world * w->o.batch_records;
}

static inline uint64_t steps_left(const struct wanted *w)
{
	uint64_t left = w->total - w->first, all = step_records(w);

	return (w->o.tail == SHARD_DROP ? left / all : (left + all - 1) / all) - w->step;
}

/* ---- is it that? ---- */

static inline void check_bytes(struct wanted *w, const struct shard_batch *b, uint32_t row)
{
	for (uint32_t f = 0; f < schema.field_count; f++) {
		const struct shard_field *field = &schema.field[f];
		const struct shard_rows *got = &b->field[f];
		const uint8_t *want = content[field->group] + b->record[row] * field->stride + field->offset;

		if (memcmp((const uint8_t *)got->data + row * got->stride, want, (size_t)field->bytes))
			complain(w, "epoch %" PRIu64 ", step %" PRIu64 ", row %u: %s is not that of record %" PRIu64,
				 b->epoch, b->step, row, field->name, b->record[row]);
	}
}

static inline void check_rows(struct wanted *w, const struct shard_batch *b)
{
	uint32_t world = w->o.world;
	uint64_t behind = ((uint64_t)w->o.rank + world - b->position % world) % world; /* format/ORDER.md 7 */

	for (uint32_t i = 0; i < b->record_count; i++) {
		uint64_t at = b->position + behind + (uint64_t)i * world;

		if (b->row_flags[i] != (at >= w->total ? SHARD_ROW_PADDED : 0))
			complain(w, "position %" PRIu64 ": its flags are %u", at, b->row_flags[i]);
		if (b->record[i] >= record_total ||
		    (b->epoch < EPOCHS && b->record[i] != w->order[b->epoch][at % w->total])) {
			complain(w, "epoch %" PRIu64 ", position %" PRIu64 ": record %" PRIu64 " is not in its place",
				 b->epoch, at, b->record[i]);
			return;
		}
		check_bytes(w, b, i);
	}
}

/* Does a batch that came now stand where it must? */
static inline bool stands_right(struct wanted *w, const struct shard_batch *b)
{
	uint64_t position = w->first + w->step * step_records(w), rows = w->o.batch_records;

	if (w->o.tail == SHARD_KEEP && w->total - position < rows)
		rows = w->total - position;
	if (b->epoch != w->epoch || b->position != position || b->step != position / step_records(w))
		complain(w,
			 "epoch %" PRIu64 ", position %" PRIu64 ", step %" PRIu64 " came instead of epoch %" PRIu64
			 ", position %" PRIu64,
			 b->epoch, b->position, b->step, w->epoch, position);
	else if (b->record_count != rows)
		complain(w, "%u rows at position %" PRIu64 " instead of %" PRIu64, b->record_count, position, rows);
	else
		return true;
	return false;
}

/*
 * What a call of next came back with: is it the next batch, or the end if there is none?  Its rows
 * are another matter.
 */
static inline bool check_next(struct wanted *w, const struct shard_batch *b, int rc, const struct shard_error *err)
{
	int want = steps_left(w) ? SHARD_OK : SHARD_END;
	bool sound = false;

	if (rc != want) {
		complain(w, "epoch %" PRIu64 ", step %" PRIu64 ": next says %d %s instead of %d", w->epoch, w->step, rc,
			 err->message, want);
	} else if (rc == SHARD_END) {
		wanted_seek(w, w->epoch + 1, 0);
	} else {
		sound = stands_right(w, b);
		w->step++;
	}
	return sound;
}

/* One call of next, compared. */
static inline int wanted_next(struct wanted *w, struct shard_loader *l, struct shard_batch *b)
{
	struct shard_error err = {.message = ""};
	int rc = shard_loader_next(l, b, &err);

	if (check_next(w, b, rc, &err))
		check_rows(w, b);
	return rc;
}

/* ---- a consumer that keeps some batches and gives them back in any order ---- */

struct lent {
	struct shard_batch batch[LENT_CAP];
	unsigned count;
};

/* A hook of tests/load/inject.h, which learns which slots are lent; or NULL. */
static void (*on_lent)(uint32_t slot, int by);

static inline void give_one(struct wanted *w, struct shard_loader *l, struct lent *lent, unsigned which)
{
	struct shard_error err = {.message = ""};
	struct shard_batch b = lent->batch[which];

	lent->batch[which] = lent->batch[--lent->count];
	check_rows(w, &b); /* still what it was when it came */
	if (on_lent)
		on_lent(b.slot, -1);
	if (shard_loader_release(l, &b, &err))
		complain(w, "release: %s", err.message);
}

/*
 * next until `calls` of them were made or something is wrong; at most `keep` batches are lent after
 * each.
 */
static inline void consume(struct wanted *w, struct shard_loader *l, struct lent *lent, struct prng *p, unsigned calls,
			   unsigned keep)
{
	while (calls-- && !w->complaint[0]) {
		if (wanted_next(w, l, &lent->batch[lent->count]) == SHARD_OK) {
			if (on_lent)
				on_lent(lent->batch[lent->count].slot, 1);
			lent->count++;
		}
		while (lent->count > keep || (lent->count && !prng_below(p, 3)))
			give_one(w, l, lent, (unsigned)prng_below(p, lent->count));
	}
}

static inline void give_all(struct wanted *w, struct shard_loader *l, struct lent *lent)
{
	while (lent->count)
		give_one(w, l, lent, 0);
}

#define CHECK_NO_COMPLAINT(w) CHECK_STR((w)->complaint, "")

#endif
