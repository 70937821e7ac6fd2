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

/* All groups meet a rule before any meets the next: a message has the first number that is broken. */
static int check_groups(const struct shard_schema *s, struct shard_error *err)
{
	const struct shard_group *group = s->group;
	uint32_t n = s->group_count;

	for (uint32_t i = 0; i < n; i++)
		MUST("I18",
		     group[i].record_bytes >= 1 && group[i].record_bytes <= group[i].stride &&
			     group[i].stride <= SHARD_STRIDE_MAX,
		     "group %u: record bytes %" PRIu64 " and stride %" PRIu64
		     "; must be 1 <= record bytes <= stride <= %" PRIu64,
		     i, group[i].record_bytes, group[i].stride, SHARD_STRIDE_MAX);
	for (uint32_t i = 0; i < n; i++)
		MUST("I19",
		     group[i].align_log2 <= 12 && !(group[i].stride & ((UINT64_C(1) << group[i].align_log2) - 1)),
		     "group %u: stride %" PRIu64 " and align log2 %u; align log2 must be at most 12, and the stride a "
		     "multiple of 2 to its power",
		     i, group[i].stride, group[i].align_log2);
	for (uint32_t i = 0; i < n; i++)
		MUST("I20", group[i].unit_records >= 1 && group[i].unit_records <= SHARD_UNIT_RECORDS_MAX,
		     "group %u: %u records in a unit; must be 1 to %u", i, group[i].unit_records,
		     SHARD_UNIT_RECORDS_MAX);
	for (uint32_t i = 0; i < n; i++)
		MUST_OR(SHARD_E_UNSUPPORTED, "I21", shard_name(SHARD_NAME_CODEC, group[i].codec),
			"group %u: codec %u is not known to this version, which knows 0 (raw) and 1 (lz4)", i,
			group[i].codec);
	for (uint32_t i = 0; i < n; i++) {
		const struct shard_group *g = &group[i];
		bool good = g->codec == SHARD_RAW ? g->chunk_records == 0
						  : g->chunk_records == g->unit_records &&
							    g->chunk_records * g->stride <= SHARD_CHUNK_BYTES_MAX;

		MUST("I22", good,
		     "group %u: %u records in a chunk, of stride %" PRIu64 "; must be 0 in a raw group, else the %u of "
		     "a unit, in at most %" PRIu64 " bytes",
		     i, g->chunk_records, g->stride, g->unit_records, SHARD_CHUNK_BYTES_MAX);
	}
	return SHARD_OK;
}

static bool name_good(const char *name)
{
	size_t bytes = strnlen(name, SHARD_NAME_BYTES);

	for (size_t k = 0; k < bytes; k++) {
		char c = name[k];
		bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';

		if (!letter && (!k || !((c >= '0' && c <= '9') || c == '.' || c == '-')))
			return false;
	}
	return bytes >= 1 && bytes < SHARD_NAME_BYTES &&
	       first_nonzero(name + bytes, SHARD_NAME_BYTES - bytes) == SHARD_NAME_BYTES - bytes;
}

/* What fields are: names, types and shapes. */
static int check_fields(const struct shard_schema *s, struct shard_error *err)
{
	const struct shard_field *field = s->field;
	uint32_t n = s->field_count;

	for (uint32_t i = 0; i < n; i++)
		MUST("I23", name_good(field[i].name),
		     "field %u: its name must be 1 to 47 of A-Z a-z 0-9 _ . -, begin with a letter or _, and be padded "
		     "with zeros",
		     i);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < i; k++)
			MUST("I24", memcmp(field[k].name, field[i].name, SHARD_NAME_BYTES),
			     "fields %u and %u are both named '%.47s'", k, i, field[i].name);
	for (uint32_t i = 0; i < n; i++)
		MUST("I25", shard_dtype_bytes(field[i].dtype), "field '%.47s': dtype %u; must be 1 to %u",
		     field[i].name, field[i].dtype, (unsigned)SHARD_BOOL);
	for (uint32_t i = 0; i < n; i++)
		MUST("I26",
		     shard_name(SHARD_NAME_KIND, field[i].kind) && shard_name(SHARD_NAME_LAYOUT, field[i].layout) &&
			     shard_name(SHARD_NAME_SEMANTIC, field[i].semantic) && field[i].ndim <= SHARD_DIMS_MAX,
		     "field '%.47s': kind %u, layout %u, semantic %u, %u dimensions; must be at most 2, 4, 7, 8",
		     field[i].name, field[i].kind, field[i].layout, field[i].semantic, field[i].ndim);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t d = 0; d < SHARD_DIMS_MAX; d++)
			MUST("I27", d < field[i].ndim ? field[i].shape[d] >= 1 : field[i].shape[d] == 0,
			     "field '%.47s': shape[%u] is %u; must be at least 1 in its %u dimensions and 0 beyond",
			     field[i].name, d, field[i].shape[d], field[i].ndim);
	for (uint32_t i = 0; i < n; i++) {
		const struct shard_field *f = &field[i];
		uint64_t bytes = shard_dtype_bytes(f->dtype);
		bool fits = true;

		for (uint32_t d = 0; d < f->ndim; d++)
			fits = fits && mul_fits(bytes, f->shape[d], &bytes);
		MUST("I28", fits && f->bytes == bytes && bytes <= SHARD_STRIDE_MAX,
		     "field '%.47s': %" PRIu64 " bytes, but dtype and shape make %" PRIu64 "%s; the limit is %" PRIu64,
		     f->name, f->bytes, bytes, fits ? "" : " (overflow)", SHARD_STRIDE_MAX);
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

/* Where fields lie in a record, and which fields hold the lengths of others. */
static int check_field_places(const struct shard_schema *s, struct shard_error *err)
{
	uint32_t n = s->field_count;

	for (uint32_t i = 0; i < n; i++) {
		const struct shard_field *f = &s->field[i];
		uint64_t limit = f->group < s->group_count ? s->group[f->group].record_bytes : 0;

		MUST("I29", f->group < s->group_count && f->offset <= limit && f->bytes <= limit - f->offset,
		     "field '%.47s': group %u, offset %" PRIu64 ", %" PRIu64 " bytes; must lie in the %" PRIu64
		     " bytes of a record, in one of %u groups",
		     f->name, f->group, f->offset, f->bytes, limit, s->group_count);
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct shard_field *f = &s->field[i];
		size_t bytes = shard_dtype_bytes(f->dtype);

		MUST("I30", !bytes || f->offset % bytes == 0,
		     "field '%.47s': offset %" PRIu64 " must be a multiple of %zu", f->name, f->offset, bytes);
	}
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < i; k++) {
			const struct shard_field *e = &s->field[k], *f = &s->field[i];
			bool apart = e->group != f->group || e->offset + e->bytes <= f->offset ||
				     f->offset + f->bytes <= e->offset;

			MUST("I31", apart, "fields '%.47s' and '%.47s' of group %u overlap", e->name, f->name,
			     f->group);
		}
	for (uint32_t i = 0; i < n; i++) {
		const struct shard_field *f = &s->field[i];

		MUST("I32", ragged_good(s, f),
		     "field '%.47s': kind %u with varying axes 0x%x and length field %u; a tensor has neither, other "
		     "kinds name a u32 tensor with one element for each varying axis",
		     f->name, f->kind, f->ragged_axes, f->length_field);
	}
	for (uint32_t g = 0; g < s->group_count; g++) {
		bool used = false;

		for (uint32_t i = 0; i < n; i++)
			used = used || s->field[i].group == g;
		MUST("I33", used, "group %u has no field", g);
	}
	return SHARD_OK;
}

int schema_check(const struct shard_schema *s, struct shard_error *err)
{
	int rc = check_groups(s, err);

	if (!rc)
		rc = check_fields(s, err);
	return rc ? rc : check_field_places(s, err);
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

bool schema_has_stat(const struct shard_field *f, uint32_t kind)
{
	return kind == SHARD_STAT_MOMENTS ? f->kind == SHARD_TENSOR && f->dtype == SHARD_U8
					  : kind == SHARD_STAT_CLASSES && schema_is_integer_scalar(f);
}

bool schema_moments_possible(const struct shard_field *f, uint64_t records, const struct shard_moments *m)
{
	unsigned __int128 squares = (unsigned __int128)m->sum_squares_high << 64 | m->sum_squares_low;
	unsigned __int128 want = (unsigned __int128)(schema_elements(f) / schema_channels(f)) * records;

	return m->count == want && m->sum <= (unsigned __int128)255 * m->count &&
	       squares <= (unsigned __int128)255 * m->sum;
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
