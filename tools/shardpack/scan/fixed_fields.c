/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixed_fields.c - fields of fixed records, and where in files they lie, entered into recipe and plan
 */
#include "tools/shardpack/scan/fixed_fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/shardpack/input/place.h"
#include "tools/shardpack/input/stored.h"
#include "tools/shardpack/plan/classes.h"
#include "tools/shardpack/plan/plan.h"
#include "tools/shardpack/plan/plan_write.h"
#include "tools/shardpack/plan/recipe.h"
#include "tools/shardpack/scan/pack_options.h"
#include "tools/shardpack/scan/request.h"
#include "tools/shardpack/scan/scan.h"

#define NAME_FIRST "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
#define NAME_LATER "0123456789.-"

static bool same_shape(const struct shard_field *a, const struct shard_field *b)
{
	return a->dtype == b->dtype && a->ndim == b->ndim && memcmp(a->shape, b->shape, sizeof(a->shape)) == 0;
}

/* "u8 [28,28]" */
static void describe(const struct shard_field *f, char *out, size_t bytes)
{
	size_t at = (size_t)snprintf(out, bytes, "%s [", shard_dtype_name(f->dtype));
	uint32_t i;

	for (i = 0; i < f->ndim && at < bytes; i++)
		at += (size_t)snprintf(out + at, bytes - at, "%s%" PRIu32, i ? "," : "", f->shape[i]);
	if (at < bytes)
		snprintf(out + at, bytes - at, "]");
}

int columns_field(struct recipe *r, const char *where, const char *name, uint32_t dtype, const uint64_t *shape, uint32_t ndim,
		  uint32_t *field)
{
	struct shard_field f = {.dtype = dtype, .ndim = ndim};
	char here[160], there[160];
	uint32_t i;

	if (!name[0] || strlen(name) >= sizeof(f.name) || strspn(name, NAME_FIRST NAME_LATER) != strlen(name) ||
	    !strchr(NAME_FIRST, name[0]))
		return fail(EXIT_BAD, "%s: '%s' cannot be the name of a field: 1 to %zu letters, digits, _ . - of which the first is a letter or _; rename it",
			    where, name, sizeof(f.name) - 1);
	if (ndim > SHARD_DIMS_MAX)
		return fail(EXIT_UNSUPPORTED, "%s: records of %" PRIu32 " axes; the limit is %d", where, ndim, SHARD_DIMS_MAX);
	strcpy(f.name, name);
	for (i = 0; i < ndim; i++) {
		if (shape[i] > UINT32_MAX)
			return fail(EXIT_UNSUPPORTED, "%s: an axis of %" PRIu64 "; the limit is %" PRIu32, where, shape[i], UINT32_MAX);
		f.shape[i] = (uint32_t)shape[i];
	}
	shard_field_infer(&f); /* files have no way to say it */
	for (i = 0; i < r->field_count && strcmp(r->field[i].name, name) != 0; i++)
		;
	*field = i;
	if (i == SHARD_FIELDS_MAX)
		return fail(EXIT_UNSUPPORTED, "%s: more than %d fields, which is the limit", where, SHARD_FIELDS_MAX);
	if (i == r->field_count) {
		r->field[r->field_count++] = f;
		return EXIT_DONE;
	}
	describe(&f, here, sizeof(here));
	describe(&r->field[i], there, sizeof(there));
	return same_shape(&f, &r->field[i]) ? EXIT_DONE
					    : fail(EXIT_BAD, "%s: field '%s' is %s here, and %s in the files before", where, name, here,
						   there);
}

int columns_add(struct plan *p, const struct recipe *r, uint32_t field, const struct column *c)
{
	struct plan_slice s = {.field = (uint16_t)field, .count = c->count, .file = c->file, .offset = c->offset,
			       .stride = c->stride, .dtype = (uint8_t)c->dtype,
			       .swap = c->swap && shard_dtype_bytes(c->dtype) > 1};
	uint64_t i;

	if (!c->count)
		return EXIT_DONE;
	s.bytes = (c->count - 1) * c->stride + recipe_field_items(&r->field[field]) * shard_dtype_bytes(c->dtype);
	for (i = 0; i < p->slice_count; i++)
		if (p->slice[i].field == field)
			s.first = p->slice[i].first + p->slice[i].count;
	return plan_add_slice(p, &s);
}

int columns_finish(const struct request *r, const struct classes *classes)
{
	struct plan *p = r->plan;
	uint64_t count[SHARD_FIELDS_MAX] = {0}, i;
	uint32_t f, lead = SHARD_FIELDS_MAX;
	int code;

	for (i = 0; i < p->slice_count; i++)
		count[p->slice[i].field] += p->slice[i].count;
	for (f = 0; f < r->recipe->field_count; f++) {
		if (r->recipe->field[f].semantic == SHARD_LENGTH)
			continue;
		if (lead == SHARD_FIELDS_MAX)
			lead = f;
		if (count[f] != count[lead])
			return fail(EXIT_BAD, "%s: field '%s' has %" PRIu64 " records and field '%s' has %" PRIu64 "; they must be as many",
				    r->place->root, r->recipe->field[lead].name, count[lead], r->recipe->field[f].name, count[f]);
	}
	if (lead == SHARD_FIELDS_MAX || !count[lead])
		return scan_refuse_barren(r->scan, r->place->root, "records", "");
	scan_warn_of_barren(r->scan, "record");
	if (count[lead] >= PLAN_INPUTS_MAX)
		return fail(EXIT_BAD, "%s: %" PRIu64 " records; the limit is %" PRIu64, r->place->root, count[lead],
			    PLAN_INPUTS_MAX - 1);
	code = plan_begin(p, r->recipe, classes);
	p->input_count = count[lead];
	return code;
}

int columns_classes(const struct request *r, struct classes *out)
{
	return r->o->classes ? classes_from_list(out, r->o->classes) : EXIT_DONE;
}

int columns_numbered(struct classes *out, uint64_t count)
{
	char name[24];
	uint64_t i;
	int code = EXIT_DONE;

	for (i = 0; code == EXIT_DONE && i < count; i++) {
		snprintf(name, sizeof(name), "%" PRIu64, i);
		code = classes_add(out, name, strlen(name), "classes");
	}
	return code;
}

int columns_paths(const struct request *r, bool *is_folder)
{
	uint64_t i;

	*is_folder = r->place->item_count == 1 && r->place->item[0].is_dir;
	for (i = 0; !*is_folder && i < r->place->item_count; i++)
		if (r->place->item[i].is_dir)
			return fail(EXIT_USAGE, "%s/%s: a folder; name its files, or one folder alone", r->place->root,
				    r->place->item[i].path);
	return EXIT_DONE;
}

/* By the name, not by the first bytes: tokens and raw records may begin with any. */
static const char *packed_how(const char *path)
{
	static const char *const ends[][2] = {{".gz", "gzip"}, {".tgz", "gzip"}, {".zst", "zstd"}};
	size_t bytes = strlen(path), i;

	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t n = strlen(ends[i][0]);

		if (bytes > n && strcasecmp(path + bytes - n, ends[i][0]) == 0)
			return ends[i][1];
	}
	return NULL;
}

int columns_open(const struct request *r, const char *path, uint32_t *file)
{
	const char *how = packed_how(path);
	int code = stored_add(r->stored, r->plan, path, file);

	return code == EXIT_DONE && how ? stored_unpack(r->stored, r->plan, *file, how, 0, file) : code;
}
