/* SPDX-License-Identifier: Apache-2.0 */
/*
 * episodes.c - which records lie together: those of a recording, a video, a time series
 *
 * An episode is a run of neighbouring records of one dataset with the same value in one field.  In
 * memory it is the number of its first record, and 8 bytes more to find it quickly.
 */
#include "libshard/dataset/dataset.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/format/format.h"

#define VALUES 65536u /* of the field, read together */

/* A run, as long as its episode is not known to be the only one of its dataset with this value. */
struct run {
	uint32_t part;	/* of a concatenation; its parts number their episodes each for itself */
	uint64_t value; /* its bits, which are all that a comparison needs */
	uint64_t begin;
};

struct runs {
	struct run *run;
	size_t room;
	uint64_t count;
};

static int compare_runs(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	if (x->part != y->part)
		return x->part > y->part ? 1 : -1;
	if (x->value != y->value)
		return x->value > y->value ? 1 : -1;
	return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Does the field have a number for each record that can name an episode? */
static int check_field(const struct shard_dataset *ds, const struct shard_field *f, const char *name,
		       struct shard_error *err)
{
	struct shown shown;

	if (!f)
		return error_set(err, SHARD_E_ARGUMENT,
				 "field '%s' is not in the dataset; windows need a field with the number of each "
				 "record's episode",
				 show(&shown, name));
	if (!schema_is_integer_scalar(f))
		return error_set(
			err, SHARD_E_ARGUMENT,
			"field '%s' is not an integer scalar, so it cannot say which records are of one episode",
			f->name);
	if (ds->m.order == SHARD_ORDER_SHUFFLE)
		return error_set(err, SHARD_E_ARGUMENT,
				 "%s: its records were shuffled when it was packed, so neighbours are not of one "
				 "episode; pack it again in the order of the source",
				 show(&shown, ds->dir));
	if (ds->m.order != SHARD_ORDER_SOURCE) /* shardpack merge takes shuffled datasets, too */
		return error_set(
			err, SHARD_E_ARGUMENT,
			"%s: its manifest does not say in which order its records were packed, as after "
			"shardpack merge, so neighbours need not be of one episode; give the datasets that were "
			"merged as a concatenation, or pack it in the order of the source",
			show(&shown, ds->dir));
	return SHARD_OK;
}

/* Appends the runs of one dataset, whose record 0 has the number `base`. */
static int find_runs(struct runs *out, struct shard_dataset *ds, const char *field, uint32_t part, uint64_t base,
		     struct shard_error *err)
{
	const struct shard_field *f = shard_schema_find(&ds->m.schema, field);
	uint64_t n = ds->m.record_count, last = 0;
	uint8_t *piece;
	int rc = check_field(ds, f, field, err);

	if (rc)
		return rc;
	piece = mem_alloc((size_t)(VALUES * f->bytes));
	if (!piece)
		return error_set(err, SHARD_E_MEMORY, "no memory for %u values", VALUES);
	for (uint64_t first = 0; !rc && first < n; first += VALUES) {
		uint64_t count = min_u64(VALUES, n - first);

		rc = shard_dataset_column(ds, f, first, count, piece, err);
		for (uint64_t i = 0; !rc && i < count; i++) {
			uint64_t value = 0;

			memcpy(&value, piece + i * f->bytes, (size_t)f->bytes);
			if (first + i && value == last)
				continue;
			if (!mem_grow(&out->run, &out->room, out->count + 1, sizeof(*out->run)))
				rc = error_set(err, SHARD_E_MEMORY, "no memory for %" PRIu64 " episodes",
					       out->count + 1);
			else
				out->run[out->count++] =
					(struct run){.part = part, .value = value, .begin = base + first + i};
			last = value;
		}
	}
	mem_free(piece);
	return rc;
}

/* A value that comes again would be two episodes of one number, or one whose records lie apart. */
static int refuse_again(struct runs *runs, const char *field, struct shard_error *err)
{
	qsort(runs->run, (size_t)runs->count, sizeof(*runs->run), compare_runs);
	for (uint64_t i = 1; i < runs->count; i++)
		if (runs->run[i].part == runs->run[i - 1].part && runs->run[i].value == runs->run[i - 1].value)
			return error_set(
				err, SHARD_E_ARGUMENT,
				"field '%s': record %" PRIu64 " has the value of record %" PRIu64
				", and records between them have others; records of an episode must lie "
				"together, and each episode needs a value of its own: sort the source by '%s', "
				"or number its episodes, and pack it again",
				field, runs->run[i].begin, runs->run[i - 1].begin, field);
	return SHARD_OK;
}

bool episodes_index(struct shard_episodes *e)
{
	uint64_t records = e->begin[e->count], episode = 0, i = 0;

	e->near = mem_array((size_t)e->count + 1, sizeof(*e->near));
	if (!e->near || !e->count) /* no record asks */
		return e->near;
	e->piece_records = ceil_div(records, e->count);
	for (; i * e->piece_records < records; i++) {
		while (e->begin[episode + 1] <= i * e->piece_records)
			episode++;
		e->near[i] = episode;
	}
	e->near[i] = e->count - 1;
	return true;
}

int shard_episodes_open(struct shard_episodes **out, struct shard_dataset *ds, const char *field,
			struct shard_error *err)
{
	struct shard_episodes *e = NULL;
	struct runs runs = {.count = 0};
	int rc = ds->part_count ? SHARD_OK : find_runs(&runs, ds, field, 0, 0, err);

	/* No episode goes on in the next dataset, where its number may be in use for another. */
	for (uint32_t p = 0; !rc && p < ds->part_count; p++)
		rc = find_runs(&runs, ds->part[p], field, p, ds->first_record[ds->part_shard[p]], err);
	if (!rc) {
		e = mem_zalloc(sizeof(*e));
		if (e)
			e->begin = mem_array((size_t)runs.count + 1, sizeof(*e->begin));
		if (!e || !e->begin)
			rc = error_set(err, SHARD_E_MEMORY, "no memory for %" PRIu64 " episodes", runs.count);
	}
	if (!rc) {
		for (uint64_t i = 0; i < runs.count; i++)
			e->begin[i] = runs.run[i].begin;
		e->begin[runs.count] = ds->m.record_count;
		e->count = runs.count;
		dataset_id(ds, e->dataset_id);
		rc = refuse_again(&runs, field, err);
	}
	if (!rc && !episodes_index(e))
		rc = error_set(err, SHARD_E_MEMORY, "no memory for %" PRIu64 " episodes", runs.count);
	mem_free(runs.run);
	if (rc)
		shard_episodes_close(e);
	else
		*out = e;
	return rc;
}

void shard_episodes_close(struct shard_episodes *e)
{
	if (e) {
		mem_free(e->begin);
		mem_free(e->near);
	}
	mem_free(e);
}

int shard_select_inside(struct shard_selection **out, struct shard_dataset *ds, const struct shard_selection *of,
			const struct shard_episodes *e, int32_t first, int32_t last, struct shard_error *err)
{
	uint64_t before = first < 0 ? (uint64_t) - (int64_t)first : 0, behind = last > 0 ? (uint64_t)last : 0;
	uint64_t *bits;
	char what[128];
	int rc = dataset_check_id(ds, e->dataset_id, "the episodes are", err);

	if (!rc && of)
		rc = dataset_check_id(ds, of->dataset_id, "the selection to choose from is", err);
	if (!rc && first > last)
		rc = error_set(err, SHARD_E_ARGUMENT,
			       "the window is from %" PRId32 " to %" PRId32 "; it must not end before it begins", first,
			       last);
	if (!rc)
		rc = selection_open_bits(ds, &bits, err);
	if (rc)
		return rc;
	for (uint64_t i = 0; i < e->count; i++)
		for (uint64_t at = e->begin[i] + before; at + behind < e->begin[i + 1]; at++)
			selection_set_bit(bits, at);
	if (of)
		selection_keep(bits, of);
	snprintf(what, sizeof(what), "windows from %" PRId32 " to %" PRId32 " within an episode", first, last);
	return selection_make(out, ds, bits, what, err);
}
