/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.c - the rules of groups and fields, I18 to I33 of format/SHARD.md
 *
 * The same code judges a header page, the schema lines of a manifest and what a writer's
 * user asks for, so a shard that we write is one that we read.
 */
#include "libshard/format/format.h"
#include "shard_inspect.h"

#include <inttypes.h>

#include "format/shard_format.h"
#include "libshard/base/bytes.h"

typedef int group_check(const struct shard_group *g, uint32_t i, struct shard_error *err);
typedef int field_check(const struct shard_schema *s, uint32_t i, struct shard_error *err);

static int check_group_bytes(const struct shard_group *g, uint32_t i, struct shard_error *err)
{
	MUST("I18", g->record_bytes >= 1 && g->record_bytes <= g->stride && g->stride <= SHARD_STRIDE_MAX,
	     "group %u: record bytes %" PRIu64 " and stride %" PRIu64
	     "; must be 1 <= record bytes <= stride <= %" PRIu64,
	     i, g->record_bytes, g->stride, SHARD_STRIDE_MAX);
	return SHARD_OK;
}

static int check_group_align(const struct shard_group *g, uint32_t i, struct shard_error *err)
{
	MUST("I19", g->align_log2 <= 12 && !(g->stride & ((UINT64_C(1) << g->align_log2) - 1)),
	     "group %u: stride %" PRIu64 " and align log2 %u; align log2 must be at most 12, and the stride a multiple "
	     "of 2 to its power",
	     i, g->stride, g->align_log2);
	return SHARD_OK;
}

static int check_group_unit(const struct shard_group *g, uint32_t i, struct shard_error *err)
{
	MUST("I20", g->unit_records >= 1 && g->unit_records <= SHARD_UNIT_RECORDS_MAX,
	     "group %u: %u records in a unit; must be 1 to %u", i, g->unit_records, SHARD_UNIT_RECORDS_MAX);
	return SHARD_OK;
}

static int check_group_codec(const struct shard_group *g, uint32_t i, struct shard_error *err)
{
	MUST_OR(SHARD_E_UNSUPPORTED, "I21", shard_name(SHARD_NAME_CODEC, g->codec),
		"group %u: codec %u is not known to this version, which knows 0 (raw) and 1 (lz4)", i, g->codec);
	return SHARD_OK;
}

static int check_group_chunk(const struct shard_group *g, uint32_t i, struct shard_error *err)
{
	bool good = g->codec == SHARD_RAW ? g->chunk_records == 0
					  : g->chunk_records == g->unit_records &&
						    g->chunk_records * g->stride <= SHARD_CHUNK_BYTES_MAX;

	MUST("I22", good,
	     "group %u: %u records in a chunk, of stride %" PRIu64 "; must be 0 in a raw group, else the %u of a unit, "
	     "in at most %" PRIu64 " bytes",
	     i, g->chunk_records, g->stride, g->unit_records, SHARD_CHUNK_BYTES_MAX);
	return SHARD_OK;
}

static bool name_char(char c, bool first)
{
	bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';

	return letter || (!first && ((c >= '0' && c <= '9') || c == '.' || c == '-'));
}

static int check_field_name(const struct shard_schema *s, uint32_t i, struct shard_error *err)
{
	const char *name = s->field[i].name;
	size_t bytes = strnlen(name, SHARD_NAME_BYTES);
	bool good = bytes >= 1 && bytes < SHARD_NAME_BYTES;

	for (size_t k = 0; good && k < bytes; k++)
		good = name_char(name[k], k == 0);
	good = good && first_nonzero(name + bytes, SHARD_NAME_BYTES - bytes) == SHARD_NAME_BYTES - bytes;
	MUST("I23", good,
	     "field %u: its name must be 1 to 47 of A-Z a-z 0-9 _ . -, begin with a letter or _, and be padded with "
	     "zeros",
	     i);
	return SHARD_OK;
}

static int check_field_unique(const struct shard_schema *s, uint32_t i, struct shard_error *err)
{
	for (uint32_t k = 0; k < i; k++)
		MUST("I24", memcmp(s->field[k].name, s->field[i].name, SHARD_NAME_BYTES),
		     "fields %u and %u are both named '%.47s'", k, i, s->field[i].name);
	return SHARD_OK;
}

static int check_field_dtype(const struct shard_schema *s, uint32_t i, struct shard_error *err)
{
	MUST("I25", shard_dtype_bytes(s->field[i].dtype), "field '%.47s': dtype %u; must be 1 to %u", s->field[i].name,
	     s->field[i].dtype, (unsigned)SHARD_BOOL);
	return SHARD_OK;
}

static int check_field_enums(const struct shard_schema *s, uint32_t i, struct shard_error *err)
{
	const struct shard_field *f = &s->field[i];

	MUST("I26",
	     shard_name(SHARD_NAME_KIND, f->kind) && shard_name(SHARD_NAME_LAYOUT, f->layout) &&
		     shard_name(SHARD_NAME_SEMANTIC, f->semantic) && f->ndim <= SHARD_DIMS_MAX,
	     "field '%.47s': kind %u, layout %u, semantic %u, %u dimensions; must be at most 2, 4, 7, 8", f->name,
	     f->kind, f->layout, f->semantic, f->ndim);
	return SHARD_OK;
}

static int check_field_shape(const struct shard_schema *s, uint32_t i, struct shard_error *err)
{
	const struct shard_field *f = &s->field[i];

	for (uint32_t d = 0; d < SHARD_DIMS_MAX; d++)
		MUST("I27", d < f->ndim ? f->shape[d] >= 1 : f->shape[d] == 0,
		     "field '%.47s': shape[%u] is %u; must be at least 1 in its %u dimensions and 0 beyond", f->name, d,
		     f->shape[d], f->ndim);
	return SHARD_OK;
}

static int check_field_bytes(const struct shard_schema *s, uint32_t i, struct shard_error *err)
{
	const struct shard_field *f = &s->field[i];
	uint64_t bytes = shard_dtype_bytes(f->dtype);
	bool fits = true;

	for (uint32_t d = 0; d < f->ndim; d++)
		fits = fits && mul_fits(bytes, f->shape[d], &bytes);
	MUST("I28", fits && f->bytes == bytes && bytes <= SHARD_STRIDE_MAX,
	     "field '%.47s': %" PRIu64 " bytes, but dtype and shape make %" PRIu64 "%s; the limit is %" PRIu64, f->name,
	     f->bytes, bytes, fits ? "" : " (overflow)", SHARD_STRIDE_MAX);
	return SHARD_OK;
}

static int check_field_place(const struct shard_schema *s, uint32_t i, struct shard_error *err)
{
	const struct shard_field *f = &s->field[i];
	uint64_t limit = f->group < s->group_count ? s->group[f->group].record_bytes : 0;

	MUST("I29", f->group < s->group_count && f->offset <= limit && f->bytes <= limit - f->offset,
	     "field '%.47s': group %u, offset %" PRIu64 ", %" PRIu64 " bytes; must lie in the %" PRIu64
	     " bytes of a record, in one of %u groups",
	     f->name, f->group, f->offset, f->bytes, limit, s->group_count);
	return SHARD_OK;
}

static int check_field_align(const struct shard_schema *s, uint32_t i, struct shard_error *err)
{
	const struct shard_field *f = &s->field[i];
	size_t bytes = shard_dtype_bytes(f->dtype);

	MUST("I30", !bytes || f->offset % bytes == 0, "field '%.47s': offset %" PRIu64 " must be a multiple of %zu",
	     f->name, f->offset, bytes);
	return SHARD_OK;
}

static int check_field_overlap(const struct shard_schema *s, uint32_t i, struct shard_error *err)
{
	const struct shard_field *f = &s->field[i];

	for (uint32_t k = 0; k < i; k++) {
		const struct shard_field *e = &s->field[k];
		bool apart =
			e->group != f->group || e->offset + e->bytes <= f->offset || f->offset + f->bytes <= e->offset;

		MUST("I31", apart, "fields '%.47s' and '%.47s' of group %u overlap", e->name, f->name, f->group);
	}
	return SHARD_OK;
}

static bool ragged_good(const struct shard_schema *s, const struct shard_field *f)
{
	const struct shard_field *len;

	if (f->kind == SHARD_TENSOR)
		return !f->ragged_axes && !f->length_field;
	if (!shard_name(SHARD_NAME_KIND, f->kind))
		return true; /* I26 refuses it */
	if (!f->ragged_axes || f->ragged_axes >> f->ndim || f->length_field >= s->field_count)
		return false;
	if (f->kind == SHARD_STRING && (f->dtype != SHARD_U8 || f->ndim != 1))
		return false;
	len = &s->field[f->length_field];
	return len->kind == SHARD_TENSOR && len->dtype == SHARD_U32 &&
	       len->bytes == 4 * (uint64_t)__builtin_popcount(f->ragged_axes);
}

static int check_field_ragged(const struct shard_schema *s, uint32_t i, struct shard_error *err)
{
	const struct shard_field *f = &s->field[i];

	MUST("I32", ragged_good(s, f),
	     "field '%.47s': kind %u with varying axes 0x%x and length field %u; a tensor has neither, other kinds "
	     "name a u32 tensor with one element for each varying axis",
	     f->name, f->kind, f->ragged_axes, f->length_field);
	return SHARD_OK;
}

int schema_check(const struct shard_schema *s, struct shard_error *err)
{
	static group_check *const group_checks[] = {check_group_bytes, check_group_align, check_group_unit,
						    check_group_codec, check_group_chunk};
	static field_check *const field_checks[] = {
		check_field_name,  check_field_unique, check_field_dtype, check_field_enums,   check_field_shape,
		check_field_bytes, check_field_place,  check_field_align, check_field_overlap, check_field_ragged};
	int rc;

	for (size_t c = 0; c < sizeof(group_checks) / sizeof(group_checks[0]); c++)
		for (uint32_t i = 0; i < s->group_count; i++) {
			rc = group_checks[c](&s->group[i], i, err);
			if (rc)
				return rc;
		}
	for (size_t c = 0; c < sizeof(field_checks) / sizeof(field_checks[0]); c++)
		for (uint32_t i = 0; i < s->field_count; i++) {
			rc = field_checks[c](s, i, err);
			if (rc)
				return rc;
		}
	for (uint32_t g = 0; g < s->group_count; g++) {
		bool used = false;

		for (uint32_t i = 0; i < s->field_count; i++)
			used = used || s->field[i].group == g;
		MUST("I33", used, "group %u has no field", g);
	}
	return SHARD_OK;
}

bool schema_equal(const struct shard_schema *a, const struct shard_schema *b)
{
	if (a->group_count != b->group_count || a->field_count != b->field_count)
		return false;
	for (uint32_t i = 0; i < a->group_count; i++) {
		const struct shard_group *x = &a->group[i], *y = &b->group[i];

		if (x->codec != y->codec || x->align_log2 != y->align_log2 || x->unit_records != y->unit_records ||
		    x->chunk_records != y->chunk_records || x->record_bytes != y->record_bytes ||
		    x->stride != y->stride)
			return false;
	}
	for (uint32_t i = 0; i < a->field_count; i++) {
		const struct shard_field *x = &a->field[i], *y = &b->field[i];

		if (memcmp(x->name, y->name, sizeof(x->name)) || x->dtype != y->dtype || x->kind != y->kind ||
		    x->layout != y->layout || x->semantic != y->semantic || x->group != y->group ||
		    x->ndim != y->ndim || memcmp(x->shape, y->shape, sizeof(x->shape)) ||
		    x->ragged_axes != y->ragged_axes || x->length_field != y->length_field || x->offset != y->offset ||
		    x->bytes != y->bytes)
			return false;
	}
	return true;
}

/* ---- shapes ---- */

uint64_t schema_elements(const struct shard_field *f)
{
	size_t item = shard_dtype_bytes(f->dtype);

	return item ? f->bytes / item : 0;
}

uint64_t schema_strides(const struct shard_schema *s)
{
	uint64_t bytes = 0;

	for (uint32_t g = 0; g < s->group_count; g++)
		bytes += s->group[g].stride;
	return bytes;
}

uint64_t schema_channels(const struct shard_field *f)
{
	if (f->layout == SHARD_HWC && f->ndim)
		return f->shape[f->ndim - 1];
	return f->layout == SHARD_CHW && f->ndim ? f->shape[0] : 1;
}

bool schema_is_integer_scalar(const struct shard_field *f)
{
	return f->kind == SHARD_TENSOR && f->ndim == 0 && f->dtype >= SHARD_U8 && f->dtype <= SHARD_I64;
}
