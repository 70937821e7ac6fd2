/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset_join.c - see dataset_join.h
 */
#include "libshard/store/read/dataset_join.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/io/direct.h"

/* ---- what they must have in common ---- */

static bool same_group(const struct shard_group *a, const struct shard_group *b)
{
	return a->codec == b->codec && a->unit_records == b->unit_records && a->chunk_records == b->chunk_records &&
	       a->stride == b->stride;
}

static bool same_field(const struct shard_field *a, const struct shard_field *b)
{
	bool same = a->dtype == b->dtype && a->kind == b->kind && a->layout == b->layout &&
		    a->semantic == b->semantic && a->group == b->group && a->ndim == b->ndim &&
		    a->ragged_axes == b->ragged_axes && a->length_field == b->length_field && a->offset == b->offset &&
		    a->bytes == b->bytes;

	for (uint32_t i = 0; same && i < a->ndim; i++)
		same = a->shape[i] == b->shape[i];
	return same;
}

/* Labels are numbers of classes. */
static int check_classes(const struct shard_dataset *a, const struct shard_dataset *b, const char *field,
			 struct shard_error *err)
{
	uint64_t have = a->m.class_count, other = b->m.class_count;
	struct shown at[2], name[2];

	for (uint64_t i = 0; i < have && i < other; i++) {
		const char *one = shard_dataset_class_name(a, i), *two = shard_dataset_class_name(b, i);

		if (strcmp(one, two))
			return error_set(err, SHARD_E_MISMATCH,
					 "class %" PRIu64 " is '%s' in %s, and '%s' in %s: their labels mean different "
					 "things; pack them with the same classes, or leave out field '%s'",
					 i, show(&name[0], one), show(&at[0], a->dir), show(&name[1], two),
					 show(&at[1], b->dir), field);
	}
	if (have == other)
		return SHARD_OK;
	return error_set(err, SHARD_E_MISMATCH,
			 "%s has %" PRIu64 " classes, and %s has %" PRIu64 ": their labels mean different things; pack "
			 "them with the same classes, or leave out field '%s'",
			 show(&at[0], a->dir), have, show(&at[1], b->dir), other, field);
}

int dataset_agree(const struct shard_dataset *a, const struct shard_dataset *b, uint32_t fields,
		  struct shard_error *err)
{
	const struct shard_schema *one = &a->m.schema, *two = &b->m.schema;
	struct shown at[2];
	int rc = SHARD_OK;

	for (uint32_t f = 0; !rc && f < one->field_count; f++) {
		const struct shard_field *field = &one->field[f];

		if (!(fields >> f & 1))
			continue;
		if (f >= two->field_count || strcmp(field->name, two->field[f].name) ||
		    !same_field(field, &two->field[f]) ||
		    !same_group(&one->group[field->group], &two->group[field->group]))
			return error_set(err, SHARD_E_MISMATCH,
					 "field '%s' of %s is not stored like that of %s: compare them with shardcat "
					 "info; leave out the field, or pack both with the same options",
					 field->name, show(&at[0], a->dir), show(&at[1], b->dir));
		if (field->semantic == SHARD_LABEL)
			rc = check_classes(a, b, field->name, err);
	}
	return rc;
}

/* ---- life ---- */

static int name_it(struct shard_dataset *ds, uint32_t count)
{
	char text[64];

	snprintf(text, sizeof(text), "a mixture of %u datasets", count);
	ds->dir = mem_text(text);
	return ds->dir ? SHARD_OK : SHARD_E_MEMORY;
}

/* Take over the tables of the parts.  Returns false if there is no memory. */
static bool join_tables(struct shard_dataset *ds, struct shard_dataset *const *part)
{
	uint64_t shard = 0, record = 0;

	for (uint32_t p = 0; p < ds->part_count; p++)
		ds->m.shard_count += part[p]->m.shard_count;
	ds->part = mem_array(ds->part_count, sizeof(struct shard_dataset *));
	ds->part_shard = mem_array((size_t)ds->part_count + 1, sizeof(*ds->part_shard));
	ds->first_record = mem_array((size_t)ds->m.shard_count + 1, sizeof(*ds->first_record));
	if (!readers_open(&ds->readers, ds->m.shard_count) || !ds->part || !ds->part_shard || !ds->first_record)
		return false;
	for (uint32_t p = 0; p < ds->part_count; p++) {
		ds->part[p] = part[p];
		for (uint64_t s = 0; s < part[p]->m.shard_count; s++)
			ds->first_record[shard + s] = record + part[p]->first_record[s];
		shard += part[p]->m.shard_count;
		record += part[p]->m.record_count;
		ds->part_shard[p + 1] = shard;
	}
	ds->first_record[shard] = ds->m.record_count = record;
	return true;
}

int dataset_join(struct shard_dataset **out, struct shard_dataset *const *part, uint32_t count, struct shard_error *err)
{
	struct shard_dataset *ds;
	struct shown at[2];

	for (uint32_t p = 1; p < count; p++)
		if (part[p]->o.check != part[0]->o.check || part[p]->o.guard != part[0]->o.guard)
			return error_set(err, SHARD_E_ARGUMENT,
					 "%s and %s were opened with different options check or guard; open both with "
					 "the same",
					 show(&at[0], part[0]->dir), show(&at[1], part[p]->dir));
	ds = mem_zalloc(sizeof(*ds));
	if (!ds)
		return error_set(err, SHARD_E_MEMORY, "no memory for a dataset");
	ds->o = part[0]->o;
	ds->m.schema = part[0]->m.schema;
	ds->part_count = count;
	if (name_it(ds, count) || !join_tables(ds, part)) {
		shard_dataset_close(ds);
		return error_set(err, SHARD_E_MEMORY, "no memory for the tables of %u datasets", count);
	}
	*out = ds;
	return SHARD_OK;
}

/* ---- asking ---- */

uint64_t dataset_part_base(const struct shard_dataset *ds, uint32_t part)
{
	return ds->first_record[ds->part_shard[part]];
}

bool dataset_is_remote(const struct shard_dataset *ds)
{
	bool remote = !ds->part_count && file_is_remote(ds->dir);

	for (uint32_t p = 0; !remote && p < ds->part_count; p++)
		remote = file_is_remote(ds->part[p]->dir);
	return remote;
}
