/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof.c - an epoch as real loaders deliver it, with every row identified by its bytes
 *
 * Nothing that a loader says about a row is believed: record[] is compared with the bytes as well.
 * For that the fingerprint of each record is taken first, through shard_dataset_read(), neighbour
 * by neighbour: not the way of the loader.
 */
#include "tools/shardcat/prove/prove.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/human.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"

#define READ_BYTES	 (UINT64_C(4) << 20) /* about this much is asked for at a time */
#define READ_RECORDS_MAX 4096
#define FINDINGS_SHOWN	 5 /* of each kind, in each epoch */
#define ROWS_AT_A_TIME	 4096

/* ---- fingerprints: whose bytes are these, and which records were delivered? ---- */

static int read_records(struct fingerprints *f, struct input *in, uint64_t block_records,
			void *const group[SHARD_GROUPS_MAX], struct progress *progress)
{
	const void *rows[SHARD_FIELDS_MAX];
	uint64_t idx[READ_RECORDS_MAX];
	struct shard_error err;

	for (uint64_t first = 0, now; first < f->count; first += now) {
		now = f->count - first < block_records ? f->count - first : block_records;
		for (uint64_t i = 0; i < now; i++)
			idx[i] = first + i;
		if (shard_dataset_read(in->dataset, idx, (size_t)now, group, &err))
			return fail_of_library(&err);
		for (uint64_t i = 0; i < now; i++) {
			for (uint32_t k = 0; k < in->schema->field_count; k++) {
				const struct shard_field *field = &in->schema->field[k];

				rows[k] = (const char *)group[field->group] + i * field->stride + field->offset;
			}
			f->of[first + i] = content_hash(in->schema, rows, NULL);
		}
		progress_add(progress, now, 0, 0);
		progress_tick(progress);
		if (interrupted())
			return EXIT_INTERRUPTED;
	}
	return EXIT_DONE;
}

static int mark_outside(struct fingerprints *f, const struct shard_selection *s)
{
	struct shard_selection_info info;
	uint64_t idx[READ_RECORDS_MAX];
	struct shard_error err;

	shard_selection_info(s, &info);
	f->wanted_count = info.record_count;
	f->outside = xmalloc(f->count / 64 + 1, sizeof(*f->outside));
	memset(f->outside, 0xff, (size_t)(f->count / 64 + 1) * sizeof(*f->outside));
	for (uint64_t first = 0, now; first < f->wanted_count; first += now) {
		now = f->wanted_count - first < READ_RECORDS_MAX ? f->wanted_count - first : READ_RECORDS_MAX;
		if (shard_selection_records(s, first, now, idx, &err))
			return fail_of_library(&err);
		for (uint64_t i = 0; i < now; i++)
			f->outside[idx[i] / 64] &= ~(UINT64_C(1) << idx[i] % 64);
	}
	return EXIT_DONE;
}

int fingerprints_take(struct fingerprints *f, struct input *in, const struct shard_selection *s,
		      struct progress *progress)
{
	uint64_t record_bytes = 1, block_records;
	void *group[SHARD_GROUPS_MAX] = {NULL};
	int rc;

	*f = (struct fingerprints){.count = in->record_count, .wanted_count = in->record_count};
	for (uint32_t g = 0; g < in->schema->group_count; g++)
		record_bytes += in->schema->group[g].stride;
	block_records = READ_BYTES / record_bytes + 1;
	if (block_records > READ_RECORDS_MAX)
		block_records = READ_RECORDS_MAX;
	for (uint32_t g = 0; g < in->schema->group_count; g++)
		group[g] = xmalloc(block_records, in->schema->group[g].stride);
	f->of = xcalloc((size_t)f->count + 1, sizeof(*f->of));
	f->delivered = xcalloc((size_t)(f->count / 64 + 1), sizeof(*f->delivered));
	rc = s ? mark_outside(f, s) : EXIT_DONE;
	if (!rc)
		rc = read_records(f, in, block_records, group, progress);
	for (uint32_t g = 0; g < in->schema->group_count; g++)
		free(group[g]);
	return rc;
}

void fingerprints_free(struct fingerprints *f)
{
	free(f->of);
	free(f->delivered);
	free(f->outside);
	free(f->by_value);
	*f = (struct fingerprints){0};
}

static bool fingerprints_was_delivered(const struct fingerprints *f, uint64_t record)
{
	return f->delivered[record / 64] >> record % 64 & 1;
}

static void fingerprints_deliver(struct fingerprints *f, uint64_t record)
{
	f->delivered[record / 64] |= UINT64_C(1) << record % 64;
}

static int compare_prints(const struct content_hash *a, const struct content_hash *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

static int compare_records(const void *a, const void *b, void *context)
{
	const struct fingerprints *f = context;
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	int order = compare_prints(&f->of[x], &f->of[y]);

	return order ? order : (x > y) - (x < y);
}

/* The first place of by_value whose fingerprint is not below that of `row`. */
static uint64_t lower_bound(const struct fingerprints *f, const struct content_hash *row)
{
	uint64_t low = 0, high = f->count;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (compare_prints(&f->of[f->by_value[middle]], row) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Find the record that has these bytes.  The answer is `named` if it has them and was not delivered
 * yet; else another record with these bytes that was not delivered; else one that was.  It is
 * `count` if no record has these bytes.
 */
static uint64_t fingerprints_identify(struct fingerprints *f, const struct content_hash *row, uint64_t named)
{
	uint64_t record = f->count;

	/* What a loader in order does: no search, and no second table. */
	if (named < f->count && !fingerprints_was_delivered(f, named) && !compare_prints(&f->of[named], row))
		return named;
	if (!f->by_value) {
		f->by_value = xcalloc((size_t)f->count, sizeof(*f->by_value));
		for (uint64_t i = 0; i < f->count; i++)
			f->by_value[i] = i;
		qsort_r(f->by_value, (size_t)f->count, sizeof(*f->by_value), compare_records, f);
	}
	for (uint64_t i = lower_bound(f, row); i < f->count && !compare_prints(&f->of[f->by_value[i]], row); i++) {
		record = f->by_value[i];
		if (!fingerprints_was_delivered(f, record))
			break;
	}
	return record;
}

/* ---- findings ---- */

void proof_find(struct tally *y, enum finding kind, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (y->found[kind]++ >= FINDINGS_SHOWN)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fail(EXIT_BAD, "%s: %s%s", y->name, text,
	     y->found[kind] == FINDINGS_SHOWN ? "; more of them are only counted" : "");
}

/* ---- loaders ---- */

void job_close(struct job *j)
{
	for (uint32_t q = 0; q < j->world; q++)
		shard_loader_close(j->loader[q]);
	*j = (struct job){.world = 0};
}

int job_open(struct proof *p, struct job *j, uint32_t world, uint32_t batch, const char *token)
{
	struct shard_loader_options options = p->loader;
	struct shard_error err;
	int rc = SHARD_OK;

	*j = (struct job){.world = world, .batch = batch};
	options.world = world;
	options.batch_records = batch;
	for (uint32_t q = 0; q < world && !rc; q++) {
		options.rank = q;
		rc = shard_loader_open(&j->loader[q], p->dataset, &options, &err);
		if (!rc && token)
			rc = shard_loader_resume(j->loader[q], token, &err);
	}
	return rc ? fail_of_library(&err) : EXIT_DONE;
}

void job_token(const struct job *j, struct tally *y, char token[SHARD_TOKEN_BYTES])
{
	char other[SHARD_TOKEN_BYTES];

	shard_loader_token(j->loader[0], token);
	for (uint32_t q = 1; q < j->world; q++) {
		shard_loader_token(j->loader[q], other);
		if (strcmp(token, other))
			proof_find(y, OUT_OF_STEP, "rank %" PRIu32 " has another token than rank 0", q);
	}
}

/* ---- rows ---- */

static void judge_row(struct proof *p, struct tally *y, const struct shard_batch *batch, uint32_t rank, uint32_t row)
{
	const void *rows[SHARD_FIELDS_MAX];
	uint64_t named = batch->record[row], record;
	struct content_hash print;

	for (uint32_t f = 0; f < p->in.schema->field_count; f++)
		rows[f] = (const char *)batch->field[f].data + row * batch->field[f].stride;
	print = content_hash(p->in.schema, rows, NULL);
	if (batch->row_flags[row] & SHARD_ROW_PADDED) {
		y->padded++; /* a repetition: it has to be what it says, and does not count */
		if (named >= p->prints.count || memcmp(&p->prints.of[named], &print, sizeof(print)))
			proof_find(y, MISNAMED,
				   "rank %" PRIu32 ", step %" PRIu64 ", row %" PRIu32
				   ": a padded row names record %" PRIu64 ", which has other bytes",
				   rank, batch->step, row, named);
		return;
	}
	record = fingerprints_identify(&p->prints, &print, named);
	if (record == p->prints.count || batch->row_flags[row]) {
		proof_find(y, FOREIGN, "rank %" PRIu32 ", step %" PRIu64 ", row %" PRIu32 ": %s", rank, batch->step,
			   row,
			   batch->row_flags[row] ? "the row is flagged, so it is not the record that was asked for"
						 : "its bytes are those of no record");
		return;
	}
	if (p->prints.outside && p->prints.outside[record / 64] >> record % 64 & 1) {
		proof_find(y, FOREIGN,
			   "rank %" PRIu32 ", step %" PRIu64 ", row %" PRIu32 ": record %" PRIu64 " is not in the "
			   "selection",
			   rank, batch->step, row, record);
		return;
	}
	if (record != named)
		proof_find(y, MISNAMED,
			   "rank %" PRIu32 ", step %" PRIu64 ", row %" PRIu32 ": names record %" PRIu64 "%s; its "
			   "bytes are those of record %" PRIu64,
			   rank, batch->step, row, named,
			   named < p->prints.count && fingerprints_was_delivered(&p->prints, named)
				   ? ", which came earlier"
				   : "",
			   record);
	if (fingerprints_was_delivered(&p->prints, record))
		proof_find(y, DUPLICATE,
			   "record %" PRIu64 " is delivered again (rank %" PRIu32 ", step %" PRIu64 ", row "
			   "%" PRIu32 ")",
			   record, rank, batch->step, row);
	else
		fingerprints_deliver(&p->prints, record);
	y->delivered++;
}

static void judge_batch(struct proof *p, struct tally *y, const struct job *j, const struct shard_batch *batch,
			uint32_t rank)
{
	if (batch->epoch != y->epoch || batch->position != y->at)
		proof_find(y, OUT_OF_STEP,
			   "rank %" PRIu32 " delivers epoch %" PRIu64 ", position %" PRIu64 "; must be epoch "
			   "%" PRIu64 ", position %" PRIu64,
			   rank, batch->epoch, batch->position, y->epoch, y->at);
	if (batch->record_count > j->batch || (batch->record_count < j->batch && p->loader.tail != SHARD_KEEP))
		proof_find(y, OUT_OF_STEP, "rank %" PRIu32 " delivers %" PRIu32 " rows in a batch of %" PRIu32, rank,
			   batch->record_count, j->batch);
	for (uint32_t i = 0; i < batch->record_count; i++)
		judge_row(p, y, batch, rank, i);
	progress_add(&p->progress, batch->record_count, 0, 0);
}

int job_step(struct proof *p, struct tally *y, struct job *j, bool *ended)
{
	struct shard_batch batch;
	struct shard_error err;
	uint64_t step = (uint64_t)j->world * j->batch;
	uint32_t ended_count = 0;
	int rc = EXIT_DONE;

	for (uint32_t q = 0; q < j->world && !rc; q++) {
		int status = shard_loader_next(j->loader[q], &batch, &err);

		if (status == SHARD_END) {
			ended_count++;
			continue;
		}
		if (status == SHARD_OK) {
			judge_batch(p, y, j, &batch, q);
			status = shard_loader_release(j->loader[q], &batch, &err);
		}
		if (status)
			rc = fail_of_library(&err);
	}
	progress_tick(&p->progress);
	*ended = ended_count > 0;
	if (ended_count && ended_count < j->world)
		proof_find(y, OUT_OF_STEP,
			   "%" PRIu32 " of %" PRIu32 " ranks end the epoch at position %" PRIu64 ", the others go on",
			   ended_count, j->world, y->at);
	if (!ended_count)
		y->at += step;
	if (y->at >= p->prints.wanted_count + step && !*ended) { /* padding, too, is less than a step */
		proof_find(y, OUT_OF_STEP, "the epoch does not end");
		*ended = true;
	}
	return !rc && interrupted() ? EXIT_INTERRUPTED : rc;
}

/* ---- epochs ---- */

void epoch_begin(struct proof *p, struct tally *y, uint64_t epoch)
{
	size_t bytes = (size_t)(p->prints.count / 64 + 1) * sizeof(*p->prints.delivered);

	y->epoch = epoch;
	y->at = y->delivered = y->padded = y->left = 0;
	memset(y->found, 0, sizeof(y->found));
	memset(p->prints.delivered, 0, bytes);
	if (p->prints.outside) /* nobody waits for these */
		memcpy(p->prints.delivered, p->prints.outside, bytes);
}

/*
 * With SHARD_DROP, what stands behind the last whole step is not delivered: it counts as if it
 * were.
 */
static int excuse_the_rest(struct proof *p, struct tally *y)
{
	struct shard_loader_options options = p->loader;
	struct shard_loader *whole = NULL;
	uint64_t idx[ROWS_AT_A_TIME];
	struct shard_error err;
	int rc;

	options.batch_records = 1;
	options.tail = SHARD_KEEP;
	rc = shard_loader_open(&whole, p->dataset, &options, &err);
	for (uint64_t first = y->at, count = p->prints.wanted_count; first < count && !rc;) {
		uint64_t now = count - first < ROWS_AT_A_TIME ? count - first : ROWS_AT_A_TIME;

		rc = shard_loader_order(whole, y->epoch, first, now, NULL, idx, &err);
		for (uint64_t i = 0; i < now && !rc; i++) {
			if (idx[i] >= p->prints.count || fingerprints_was_delivered(&p->prints, idx[i]))
				continue; /* then another one is missing, and is found below */
			fingerprints_deliver(&p->prints, idx[i]);
			y->left++;
		}
		first += now;
	}
	shard_loader_close(whole);
	return rc ? fail_of_library(&err) : EXIT_DONE;
}

static void find_missing(const struct proof *p, struct tally *y)
{
	char list[128] = "";

	for (uint64_t i = 0; i < p->prints.count; i++) {
		if (fingerprints_was_delivered(&p->prints, i))
			continue;
		if (y->found[MISSING]++ < FINDINGS_SHOWN)
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%" PRIu64, list[0] ? ", " : "",
				 i);
	}
	if (y->found[MISSING])
		fail(EXIT_BAD, "%s: never delivered: record %s%s", y->name, list,
		     y->found[MISSING] > FINDINGS_SHOWN ? ", ..." : "");
}

static void print_epoch(struct proof *p, const struct tally *y)
{
	char delivered[HUMAN_CHARS], left[HUMAN_CHARS], padded[HUMAN_CHARS];

	if (message_columns()) /* nothing is in the way where there is no terminal */
		progress_abandon(&p->progress);
	printf("%s: %s delivered, %" PRIu64 " duplicate, %" PRIu64 " missing", y->name,
	       human_count(delivered, y->delivered), y->found[DUPLICATE], y->found[MISSING]);
	if (y->found[MISNAMED] + y->found[FOREIGN] + y->found[OUT_OF_STEP])
		printf(", %" PRIu64 " misnamed, %" PRIu64 " matching no record, %" PRIu64 " out of step",
		       y->found[MISNAMED], y->found[FOREIGN], y->found[OUT_OF_STEP]);
	if (y->left)
		printf("; %s in the last incomplete step", human_count(left, y->left));
	if (y->padded)
		printf("; %s rows of padding", human_count(padded, y->padded));
	putchar('\n');
	fflush(stdout);
}

/* The epoch is over: what of it is missing, and was the right number of rows padding? */
int epoch_end(struct proof *p, struct tally *y, const struct job *last)
{
	uint64_t count = p->prints.wanted_count, step = (uint64_t)last->world * last->batch, bad = 0;
	uint64_t want_padded = p->loader.tail == SHARD_PAD && y->at > count ? y->at - count : 0;
	int rc = EXIT_DONE;

	if (p->loader.tail == SHARD_DROP && y->at < count && count - y->at < step)
		rc = excuse_the_rest(p, y);
	if (rc)
		return rc;
	find_missing(p, y);
	if (y->padded != want_padded)
		proof_find(y, OUT_OF_STEP, "%" PRIu64 " rows are flagged as padded; must be %" PRIu64, y->padded,
			   want_padded);
	for (unsigned k = 0; k < FINDING_KINDS; k++)
		bad += y->found[k];
	p->epoch_count++;
	p->bad_count += bad > 0;
	if (message_shows(MESSAGE_NORMAL))
		print_epoch(p, y);
	return EXIT_DONE;
}
