/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixed_fields.c - fields of fixed records, and the slices of files that hold them
 */
#include "tools/shardpack/sources/sources.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "shard_pack.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/shardpack/plan/plan.h"

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
	size_t at = (size_t)snprintf(out, bytes, "%s [", shard_dtype_name(f->dtype));
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
		note("field %s: %s in the files, and stored as %s, as all labels are", name, shard_dtype_name(dtype),
		     shard_dtype_name(f.dtype));
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
