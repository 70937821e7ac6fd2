/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixed_source.c - the way through a source of fixed records, one file after the other
 */
#include "tools/shardpack/sources/sources.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shard_pack.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/shelf.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/scan/scan.h"

/* ---- fields, and the slices of files that hold them ---- */

/* Of many files of NumPy. */
#define NUMPY_REMEDY "; each file is a field: if it is a record, join them with numpy.stack"
#define PARTS_REMEDY NUMPY_REMEDY ", and if it is a part of a field, say --numbered parts"

bool fixed_fields_same(const struct shard_field *a, const struct shard_field *b)
{
	return a->dtype == b->dtype && a->ndim == b->ndim && !memcmp(a->shape, b->shape, sizeof(a->shape));
}

/* "u8 [28,28]" */
static void describe(const struct shard_field *f, char *out, size_t bytes)
{
	size_t at = (size_t)snprintf(out, bytes, "%s [", shard_name(SHARD_NAME_DTYPE, f->dtype));
	for (uint32_t i = 0; i < f->ndim && at < bytes; i++)
		at += (size_t)snprintf(out + at, bytes - at, "%s%" PRIu32, i ? "," : "", f->shape[i]);
	if (at < bytes)
		snprintf(out + at, bytes - at, "]");
}

int fixed_fields_enter(struct recipe *r, const char *where, const char *name, uint32_t dtype, const uint64_t *shape,
		       uint32_t ndim, uint32_t *field)
{
	struct shard_field f = {.dtype = dtype, .ndim = ndim};
	char here[160], there[160];
	uint32_t i;

	if (!field_is_name(name, strlen(name)))
		return fail(EXIT_BAD,
			    "%s: '%s' cannot be the name of a field: must be 1 to %zu letters, digits, _ . "
			    "or -, and begin with a letter or _; rename it%s",
			    where, name, sizeof(f.name) - 1, r->source == SOURCE_ARRAY ? NUMPY_REMEDY : "");
	if (ndim > SHARD_DIMS_MAX)
		return fail(EXIT_UNSUPPORTED, "%s: records of %" PRIu32 " axes; the limit is %d", where, ndim,
			    SHARD_DIMS_MAX);
	strcpy(f.name, name);
	for (uint32_t k = 0; k < ndim; k++) {
		if (shape[k] > UINT32_MAX)
			return fail(EXIT_UNSUPPORTED, "%s: an axis of %" PRIu64 "; the limit is %" PRIu32, where,
				    shape[k], UINT32_MAX);
		f.shape[k] = (uint32_t)shape[k];
	}
	shard_field_infer(&f); /* files have no way to say it */
	for (i = 0; i < r->field_count && strcmp(r->field[i].name, name); i++)
		;
	*field = i;
	if (i == SHARD_FIELDS_MAX)
		return fail(EXIT_UNSUPPORTED, "%s: more than the limit of %d fields%s", where, SHARD_FIELDS_MAX,
			    r->source == SOURCE_ARRAY ? PARTS_REMEDY : "");
	if (i == r->field_count && r->source == SOURCE_RAW && f.dtype != dtype)
		note("field %s: %s in the files, and stored as %s, as all labels are", name,
		     shard_name(SHARD_NAME_DTYPE, dtype), shard_name(SHARD_NAME_DTYPE, f.dtype));
	if (i == r->field_count) {
		r->field[r->field_count++] = f;
		return EXIT_DONE;
	}
	describe(&f, here, sizeof(here));
	describe(&r->field[i], there, sizeof(there));
	return fixed_fields_same(&f, &r->field[i])
		       ? EXIT_DONE
		       : fail(EXIT_BAD, "%s: field '%s' is %s here, but %s in the files before", where, name, here,
			      there);
}

int fixed_fields_add(struct plan *p, const struct recipe *r, uint32_t field, const struct fixed_column *c)
{
	struct plan_slice s = {.field = (uint16_t)field,
			       .count = c->count,
			       .file = c->file,
			       .offset = c->offset,
			       .stride = c->stride,
			       .dtype = (uint8_t)c->dtype,
			       .swap = c->swap && shard_dtype_bytes(c->dtype) > 1};
	if (!c->count)
		return EXIT_DONE;
	s.bytes = (c->count - 1) * c->stride + recipe_field_items(&r->field[field]) * shard_dtype_bytes(c->dtype);
	for (uint64_t i = 0; i < p->slice_count; i++)
		if (p->slice[i].field == field)
			s.first = p->slice[i].first + p->slice[i].count;
	return plan_add_slice(p, &s);
}

/* ---- which files of two fields hold the same records ---- */

void fixed_parts_add(struct fixed_parts *p, const struct request *r, const char *name, uint64_t number,
		     const char *where)
{
	struct fixed_part *part;

	if (!r->plan->slice_count || (p->count && p->part[p->count - 1].slice == r->plan->slice_count - 1))
		return;
	grow(&p->part, &p->capacity, p->count + 1, sizeof(*p->part));
	part = &p->part[p->count++];
	*part = (struct fixed_part){
		.name = xstrdup(name), .where = xstrdup(where), .number = number, .slice = r->plan->slice_count - 1};
}

void fixed_parts_free(struct fixed_parts *p)
{
	for (uint64_t i = 0; i < p->count; i++) {
		free(p->part[i].name);
		free(p->part[i].where);
	}
	free(p->part);
	*p = (struct fixed_parts){0};
}

static uint16_t field_of(const struct request *r, const struct fixed_part *part)
{
	return r->plan->slice[part->slice].field;
}

static int compare_names(const void *a, const void *b)
{
	const struct fixed_part *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : x->slice < y->slice ? -1 : x->slice > y->slice;
}

/* By folder, as these came first, and number; 0 if both are the same. */
static int compare_places(const struct fixed_part *x, const struct fixed_part *y)
{
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static int compare_parts(const void *a, const void *b, void *context)
{
	const struct request *r = context;
	const struct fixed_part *x = a, *y = b;
	int order = (int)field_of(r, x) - (int)field_of(r, y);

	order = order ? order : compare_places(x, y);
	return order ? order : x->slice < y->slice ? -1 : x->slice > y->slice;
}

/* Each name gets the place where it came first. */
static void find_groups(struct fixed_parts *p)
{
	if (p->count)
		qsort(p->part, p->count, sizeof(*p->part), compare_names);
	for (uint64_t i = 0; i < p->count; i++)
		p->part[i].group =
			i && !strcmp(p->part[i].name, p->part[i - 1].name) ? p->part[i - 1].group : p->part[i].slice;
}

/* The parts of one field, in their order; how many. */
static uint64_t parts_of_field(const struct request *r, const struct fixed_part *first, const struct fixed_part *end)
{
	uint64_t n = 0;

	while (first + n < end && field_of(r, first + n) == field_of(r, first))
		n++;
	return n;
}

/* Parts of one field follow each other; the parts of other fields begin where they do. */
static int place_field(const struct request *r, const struct fixed_part *lead, uint64_t lead_count,
		       const struct fixed_part *part, uint64_t count, const char *remedy)
{
	const struct fixed_part *alone = NULL;
	uint64_t first = 0;
	uint16_t other = 0;

	for (uint64_t i = 0; i < count || i < lead_count; i++) {
		int order = i == count ? -1 : i == lead_count ? 1 : compare_places(&lead[i], &part[i]);
		uint64_t records;

		if (order) {
			alone = order < 0 ? &lead[i] : &part[i];
			other = field_of(r, order < 0 ? part : lead);
			return fail(EXIT_BAD, "%s: has no partner among the files of field '%s'; %s", alone->where,
				    r->recipe->field[other].name, remedy);
		}
		records = r->plan->slice[part[i].slice].count;
		if (records != r->plan->slice[lead[i].slice].count)
			return fail(EXIT_BAD,
				    "%s has %" PRIu64 " records, and %s has %" PRIu64
				    "; files that belong together must have the same number",
				    lead[i].where, r->plan->slice[lead[i].slice].count, part[i].where, records);
		r->plan->slice[part[i].slice].first = first;
		first += records;
	}
	return EXIT_DONE;
}

/* Fields that are one file have all records, in an order that only the command line tells. */
static void set_whole_apart(struct fixed_parts *p, const struct request *r, struct fixed_part *whole)
{
	uint64_t count[SHARD_FIELDS_MAX] = {0}, kept = 0;

	for (uint64_t i = 0; i < p->count; i++)
		count[field_of(r, &p->part[i])]++;
	for (uint64_t i = 0; i < p->count; i++) {
		struct fixed_part part = p->part[i];
		bool is_whole = count[field_of(r, &part)] == 1;

		if (!is_whole) {
			p->part[kept++] = part;
		} else if (!whole->name) {
			*whole = part;
		} else {
			free(part.name);
			free(part.where);
		}
	}
	p->count = kept;
}

int fixed_parts_pair(struct fixed_parts *p, const struct request *r, const char *remedy)
{
	const struct fixed_part *end;
	struct fixed_part whole = {.name = NULL};
	uint64_t n, lead_count;
	int rc = EXIT_DONE;

	set_whole_apart(p, r, &whole);
	find_groups(p);
	if (p->count)
		qsort_r(p->part, p->count, sizeof(*p->part), compare_parts, (void *)(uintptr_t)r);
	end = p->part + p->count;
	lead_count = parts_of_field(r, p->part, end);
	/* Of one field without numbers, files follow each other as they were named. */
	for (const struct fixed_part *at = p->part; rc == EXIT_DONE && at < end; at += n) {
		n = parts_of_field(r, at, end);
		if (n == p->count && !at->number)
			break;
		for (uint64_t i = 1; rc == EXIT_DONE && i < n; i++)
			if (!compare_places(&at[i - 1], &at[i]))
				rc = fail(EXIT_BAD, "%s and %s are parts of field '%s', and have one name; %s",
					  at[i - 1].where, at[i].where, r->recipe->field[field_of(r, at)].name, remedy);
		if (rc == EXIT_DONE)
			rc = place_field(r, p->part, lead_count, at, n, remedy);
	}
	if (rc == EXIT_DONE && whole.name && p->count)
		scan_warn(r->scan,
			  "%s holds field '%s' of all records; those of field '%s' follow each other in this order: "
			  "%s, %s%s",
			  whole.where, r->recipe->field[field_of(r, &whole)].name,
			  r->recipe->field[field_of(r, p->part)].name, p->part[0].where, p->part[1].where,
			  lead_count > 2 ? ", ..." : "");
	free(whole.name);
	free(whole.where);
	return rc;
}

/* ---- one file after the other ---- */

bool fixed_source_is_folder(const struct request *r)
{
	return r->root->item_count == 1 && r->root->item[0].is_dir;
}

/* Every field has its slices, or --pack its windows. */
static int begin_plan(const struct request *r, const struct classes *classes)
{
	struct plan *p = r->plan;
	uint64_t count[SHARD_FIELDS_MAX] = {0}, records = p->pack ? p->pack->window_count : 0;
	uint32_t lead = SHARD_FIELDS_MAX;
	int rc;

	for (uint64_t i = 0; i < p->slice_count; i++)
		count[p->slice[i].field] += p->slice[i].count;
	for (uint32_t f = 0; !p->pack && f < r->recipe->field_count; f++) {
		if (r->recipe->field[f].semantic == SHARD_LENGTH)
			continue;
		if (lead == SHARD_FIELDS_MAX)
			lead = f;
		records = count[lead];
		if (count[f] != records)
			return fail(EXIT_BAD,
				    "%s: field '%s' has %" PRIu64 " records and field '%s' has %" PRIu64 "; "
				    "the numbers must be equal%s",
				    r->root->name, r->recipe->field[lead].name, records, r->recipe->field[f].name,
				    count[f],
				    r->recipe->source == SOURCE_ARRAY && r->recipe->field_count > 4
					    ? "; each file is a field: if it is a record, join them with numpy.stack"
					    : "");
	}
	if (!records)
		return scan_refuse_barren(r->scan, r->root->name, "records", "");
	scan_warn_of_barren(r->scan, "record");
	if (records >= PLAN_INPUTS_MAX)
		return fail(EXIT_BAD, "%s: %" PRIu64 " records; the limit is %" PRIu64, r->root->name, records,
			    PLAN_INPUTS_MAX - 1);
	rc = plan_begin(p, r->recipe, classes);
	p->input_count = records;
	return rc;
}

int fixed_source_scan(const struct request *r, const struct fixed_source *steps, void *context)
{
	bool folder = fixed_source_is_folder(r);
	struct classes classes = {0};
	int rc = EXIT_DONE;

	if (folder && !steps->add_folder)
		return fail(EXIT_USAGE, "%s: a folder; name its files", r->root->name);
	for (uint64_t i = 0; !folder && i < r->root->item_count; i++)
		if (r->root->item[i].is_dir)
			return fail(EXIT_USAGE, "%s/%s: a folder; name its files%s", r->root->name,
				    r->root->item[i].path, steps->add_folder ? ", or one folder alone" : "");
	if (steps->begin)
		rc = steps->begin(r, context, &classes);
	else if (r->o->classes)
		rc = classes_from_list(&classes, r->o->classes);
	if (rc == EXIT_DONE && folder)
		rc = steps->add_folder(r, context);
	for (uint64_t i = 0; rc == EXIT_DONE && !folder && i < r->root->item_count; i++)
		rc = steps->add_file(r, context, r->root->item[i].path);
	if (rc == EXIT_DONE && steps->end)
		rc = steps->end(r, context, &classes);
	if (rc == EXIT_DONE)
		rc = begin_plan(r, &classes);
	classes_free(&classes);
	return rc;
}
