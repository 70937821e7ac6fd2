/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataset_join.c - several datasets as one: the records and shards of the first, then of the second
 *
 * It has no manifest and no id.  Its schema is that of the first part, with as much room for values
 * that vary in length as the widest part has: call dataset_agree() before a field of other parts is
 * read.  The records lie in the shards as the schema of their own part says.
 */
#include "libshard/dataset/dataset.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/format/format.h"
#include "libshard/io/io.h"
#include "shard_pack.h"

/* ---- what they must have in common ---- */

/*
 * Do both hold the same kind of values, so that rows of a batch can?  Room for values that vary in
 * length is as the data need it, so it differs between datasets that were packed alike.
 */
static bool same_field(const struct shard_field *a, const struct shard_field *b)
{
	bool same = !strcmp(a->name, b->name) && a->dtype == b->dtype && a->kind == b->kind && a->layout == b->layout &&
		    a->semantic == b->semantic && a->ndim == b->ndim && a->ragged_axes == b->ragged_axes &&
		    a->length_field == b->length_field;

	for (uint32_t i = 0; same && i < a->ndim; i++)
		same = a->shape[i] == b->shape[i] || a->ragged_axes >> i & 1;
	return same;
}

/* "ragged i32 [<=9]", and the layout and semantic unless they are none. */
static void describe(const struct shard_field *f, char out[160])
{
	int at = snprintf(out, 160, "%s %s [", shard_kind_name(f->kind), shard_dtype_name(f->dtype));

	for (uint32_t i = 0; i < f->ndim; i++)
		at += snprintf(out + at, 160 - (size_t)at, "%s%s%u", i ? "," : "", f->ragged_axes >> i & 1 ? "<=" : "",
			       f->shape[i]);
	at += snprintf(out + at, 160 - (size_t)at, "]");
	if (f->layout)
		at += snprintf(out + at, 160 - (size_t)at, " %s", shard_layout_name(f->layout));
	if (f->semantic && strcmp(shard_semantic_name(f->semantic), shard_layout_name(f->layout)))
		snprintf(out + at, 160 - (size_t)at, " %s", shard_semantic_name(f->semantic));
}

/* Is the group stored in the same places by both?  If only one has it, it is not. */
static bool same_places(const struct shard_schema *a, const struct shard_schema *b, uint32_t g)
{
	if (g >= a->group_count || g >= b->group_count || a->group[g].stride != b->group[g].stride)
		return false;
	for (uint32_t f = 0; f < a->field_count || f < b->field_count; f++) {
		const struct shard_field *x = f < a->field_count ? &a->field[f] : NULL,
					 *y = f < b->field_count ? &b->field[f] : NULL;

		if ((x && x->group == g) != (y && y->group == g) ||
		    (x && x->group == g && (x->offset != y->offset || x->bytes != y->bytes)))
			return false;
	}
	return true;
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
		const struct shard_field *x = &one->field[f], *y = f < two->field_count ? &two->field[f] : NULL;
		char here[160], there[160];

		if (!(fields >> f & 1))
			continue;
		if (!y || strcmp(x->name, y->name))
			return error_set(
				err, SHARD_E_MISMATCH,
				"field %u of %s is '%s', and %s has %s%s%s there; leave out the field, or pack "
				"both with the same options",
				f, show(&at[0], a->dir), x->name, show(&at[1], b->dir), y ? "'" : "no field",
				y ? y->name : "", y ? "'" : "");
		describe(x, here);
		describe(y, there);
		if (!same_field(x, y))
			return error_set(err, SHARD_E_MISMATCH,
					 "field '%s' is %s in %s, and %s in %s; leave out the field, or pack both with "
					 "the same options",
					 x->name, here, show(&at[0], a->dir), there, show(&at[1], b->dir));
		if (x->semantic == SHARD_LABEL)
			rc = check_classes(a, b, x->name, err);
	}
	return rc;
}

/* ---- the schema of all ---- */

/* Give values that vary in length the room that the part has.  Returns whether one needed more. */
static bool widen(struct shard_schema *s, const struct shard_schema *part, uint32_t *groups)
{
	bool wider = false;

	for (uint32_t f = 0; f < s->field_count && f < part->field_count; f++)
		for (uint32_t i = 0; same_field(&s->field[f], &part->field[f]) && i < s->field[f].ndim; i++)
			if (part->field[f].shape[i] > s->field[f].shape[i]) {
				s->field[f].shape[i] = part->field[f].shape[i];
				*groups |= UINT32_C(1) << s->field[f].group;
				wider = true;
			}
	return wider;
}

/* That of the first part, with room for the longest values.  Other groups stay as they are. */
static int join_schemas(struct shard_dataset *ds, struct shard_dataset *const *part, uint32_t count,
			struct shard_error *err)
{
	struct shard_schema *s = &ds->m.schema, wide = part[0]->m.schema;
	uint32_t widened = 0;
	bool wider = false;
	int rc = SHARD_OK;

	*s = wide;
	for (uint32_t p = 1; p < count; p++)
		wider |= widen(&wide, &part[p]->m.schema, &widened);
	if (wider)
		rc = shard_schema_lay_out(&wide, 0, err);
	if (rc)
		return rc;
	for (uint32_t g = 0; g < s->group_count; g++)
		if (widened >> g & 1)
			s->group[g] = wide.group[g];
	for (uint32_t f = 0; f < s->field_count; f++)
		if (widened >> s->field[f].group & 1)
			s->field[f] = wide.field[f];
	for (uint32_t p = 0; p < count; p++) {
		ds->parts_differ |= !schema_equal(s, &part[p]->m.schema);
		for (uint32_t g = 0; g < s->group_count; g++)
			if (!same_places(s, &part[p]->m.schema, g))
				ds->uneven_groups |= UINT32_C(1) << g;
	}
	return SHARD_OK;
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
	int rc;

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
	rc = join_schemas(ds, part, count, err);
	if (rc) {
		mem_free(ds);
		return rc;
	}
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
