/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fingerprints.c - whose bytes are these?  And who was delivered already?
 *
 * Records come through shard_dataset_read(), neighbour by neighbour: not the way of the loader.
 */
#include "tools/shardcat/prove/prove.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shard_pack.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/common/signals.h"

#define READ_BYTES	 (UINT64_C(4) << 20) /* about so much is asked for at a time */
#define READ_RECORDS_MAX 4096

/* The fingerprint of the fields' fingerprints, so that nothing needs to be copied together. */
struct fingerprint fingerprint_of(const struct shard_schema *schema, const void *const rows[SHARD_FIELDS_MAX])
{
	struct fingerprint field[SHARD_FIELDS_MAX], record;

	for (uint32_t f = 0; f < schema->field_count; f++)
		shard_xxh128(rows[f], (size_t)schema->field[f].bytes, field[f].bytes);
	shard_xxh128(field, schema->field_count * sizeof(field[0]), record.bytes);
	return record;
}

static void take_some(struct fingerprints *f, const struct shard_schema *schema, uint64_t first, uint64_t count,
		      void *const group[SHARD_GROUPS_MAX])
{
	const void *rows[SHARD_FIELDS_MAX];

	for (uint64_t i = 0; i < count; i++) {
		for (uint32_t k = 0; k < schema->field_count; k++) {
			const struct shard_field *field = &schema->field[k];

			rows[k] = (const char *)group[field->group] + i * field->stride + field->offset;
		}
		f->of[first + i] = fingerprint_of(schema, rows);
	}
}

static int take_all(struct fingerprints *f, struct target *t, uint64_t at_a_time, void *const group[SHARD_GROUPS_MAX],
		    struct progress *progress)
{
	uint64_t idx[READ_RECORDS_MAX];
	struct shard_error err;

	for (uint64_t first = 0; first < f->count;) {
		uint64_t now = f->count - first < at_a_time ? f->count - first : at_a_time;
		int rc;

		for (uint64_t i = 0; i < now; i++)
			idx[i] = first + i;
		rc = shard_dataset_read(t->dataset, idx, (size_t)now, group, &err);
		if (rc)
			return fail_of_library(&err);
		take_some(f, t->schema, first, now, group);
		first += now;
		progress_add(progress, now, 0, 0);
		progress_tick(progress);
		if (interrupted())
			return EXIT_INTERRUPTED;
	}
	return EXIT_DONE;
}

/* Returns an exit code. */
static int mark_outside(struct fingerprints *f, const struct shard_selection *s)
{
	struct shard_selection_info info;
	uint64_t idx[READ_RECORDS_MAX];
	struct shard_error err;

	f->wanted_count = f->count;
	if (!s)
		return EXIT_DONE;
	shard_selection_info(s, &info);
	f->wanted_count = info.record_count;
	f->outside = malloc((size_t)(f->count / 64 + 1) * sizeof(*f->outside));
	if (!f->outside)
		return fail(EXIT_IO, "out of memory for a bit for each record");
	memset(f->outside, 0xff, (size_t)(f->count / 64 + 1) * sizeof(*f->outside));
	for (uint64_t first = 0, now; first < f->wanted_count; first += now) {
		int rc;

		now = f->wanted_count - first < READ_RECORDS_MAX ? f->wanted_count - first : READ_RECORDS_MAX;
		rc = shard_selection_records(s, first, now, idx, &err);
		if (rc)
			return fail_of_library(&err);
		for (uint64_t i = 0; i < now; i++)
			f->outside[idx[i] / 64] &= ~(UINT64_C(1) << idx[i] % 64);
	}
	return EXIT_DONE;
}

int fingerprints_take(struct fingerprints *f, struct target *t, const struct shard_selection *s,
		      struct progress *progress)
{
	uint64_t record_bytes = 1, at_a_time;
	void *group[SHARD_GROUPS_MAX] = {NULL};
	bool enough = true;
	int rc;

	*f = (struct fingerprints){.count = t->record_count};
	for (uint32_t g = 0; g < t->schema->group_count; g++)
		record_bytes += t->schema->group[g].stride;
	at_a_time = READ_BYTES / record_bytes < READ_RECORDS_MAX ? READ_BYTES / record_bytes : READ_RECORDS_MAX;
	at_a_time = at_a_time ? at_a_time : 1;
	for (uint32_t g = 0; g < t->schema->group_count; g++) {
		group[g] = malloc((size_t)(at_a_time * t->schema->group[g].stride));
		enough = enough && group[g];
	}
	f->of = calloc((size_t)f->count + 1, sizeof(*f->of));
	f->delivered = calloc((size_t)(f->count / 64 + 1), sizeof(*f->delivered));
	if (enough && f->of && f->delivered)
		rc = mark_outside(f, s);
	else
		rc = fail(EXIT_IO, "%s: out of memory for fingerprints of %" PRIu64 " records, 16 bytes each", t->path,
			  f->count);
	if (!rc)
		rc = take_all(f, t, at_a_time, group, progress);
	for (uint32_t g = 0; g < t->schema->group_count; g++)
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

void fingerprints_forget(struct fingerprints *f)
{
	size_t bytes = (size_t)(f->count / 64 + 1) * sizeof(*f->delivered);

	if (f->outside)
		memcpy(f->delivered, f->outside, bytes);
	else
		memset(f->delivered, 0, bytes);
}

bool fingerprints_is_outside(const struct fingerprints *f, uint64_t record)
{
	return f->outside && f->outside[record / 64] >> record % 64 & 1;
}

bool fingerprints_was_delivered(const struct fingerprints *f, uint64_t record)
{
	return f->delivered[record / 64] >> record % 64 & 1;
}

void fingerprints_deliver(struct fingerprints *f, uint64_t record)
{
	f->delivered[record / 64] |= UINT64_C(1) << record % 64;
}

static int compare(const struct fingerprint *a, const struct fingerprint *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

static int compare_records(const void *a, const void *b, void *context)
{
	const struct fingerprints *f = context;
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	int order = compare(&f->of[x], &f->of[y]);

	return order ? order : (x > y) - (x < y);
}

static bool sort_by_value(struct fingerprints *f)
{
	f->by_value = calloc((size_t)f->count, sizeof(*f->by_value));
	if (!f->by_value)
		return false;
	for (uint64_t i = 0; i < f->count; i++)
		f->by_value[i] = i;
	qsort_r(f->by_value, (size_t)f->count, sizeof(*f->by_value), compare_records, f);
	return true;
}

/* The first place of by_value whose fingerprint is not below that of `row`. */
static uint64_t lower_bound(const struct fingerprints *f, const struct fingerprint *row)
{
	uint64_t low = 0, high = f->count;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (compare(&f->of[f->by_value[middle]], row) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool fingerprints_identify(struct fingerprints *f, const struct fingerprint *row, uint64_t named, uint64_t *record)
{
	/* What a loader in order does: no search, and no second table. */
	if (named < f->count && !fingerprints_was_delivered(f, named) && !compare(&f->of[named], row)) {
		*record = named;
		return true;
	}
	if (!f->by_value && !sort_by_value(f))
		return false;
	*record = f->count;
	for (uint64_t i = lower_bound(f, row); i < f->count && !compare(&f->of[f->by_value[i]], row); i++) {
		*record = f->by_value[i];
		if (!fingerprints_was_delivered(f, *record))
			break;
	}
	return true;
}
