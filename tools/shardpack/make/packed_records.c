/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed_records.c - windows of packed documents, from where their pieces lie
 */
#include "tools/shardpack/make/make.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "shard_inspect.h"
#include "tools/shardpack/input/stored.h"
#include "tools/shardpack/parse/integer.h"
#include "tools/shardpack/plan/plan.h"

struct packed {
	const struct plan *plan;
	const struct shard_schema *schema;
	const struct stored *stored;
	struct window_piece *piece; /* [piece_max] */
	uint8_t *raw;		    /* of the longest piece, 8 bytes a token */
};

struct packed *packed_open(const struct plan *plan, const struct shard_schema *schema, const struct stored *stored)
{
	struct packed *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->plan = plan;
	p->schema = schema;
	p->stored = stored;
	p->piece = calloc(plan->pack->piece_max, sizeof(*p->piece));
	p->raw = calloc(schema->field[TOKEN_PACK_TOKENS].shape[0], 8);
	if (p->piece && p->raw)
		return p;
	packed_close(p);
	return NULL;
}

void packed_close(struct packed *p)
{
	if (!p)
		return;
	free(p->piece);
	free(p->raw);
	free(p);
}

/* Where a piece lies in its file. */
static uint64_t offset_of(const struct packed *p, const struct window_piece *piece, const struct token_stream **stream)
{
	uint64_t begin = p->plan->pack->begin[piece->place];
	const struct token_stream *s = token_pack_find(p->plan->pack, begin);

	*stream = s;
	return s->offset + (begin - s->before) * shard_dtype_bytes(s->dtype);
}

/* Ask for what a window needs, if it is not in memory. */
static void expect(struct packed *p, uint64_t window)
{
	uint32_t count = window_pack_pieces(&p->plan->pack->windows, window, p->piece);
	const struct token_stream *s;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t offset = offset_of(p, &p->piece[i], &s);

		if (!i && stored_is_near(p->stored, s->file, offset))
			return;
		stored_expect(p->stored, s->file, offset, p->piece[i].length * shard_dtype_bytes(s->dtype));
	}
}

static uint8_t *field_at(const struct packed *p, uint32_t field, uint8_t *const *group)
{
	const struct shard_field *f = &p->schema->field[field];

	return group[f->group] + f->offset;
}

/*
 * A token of a file; the plan found that it fits.  As what was read then may be other bytes now,
 * it is looked at again.
 */
static bool load_token(const uint8_t *in, const struct token_stream *s, size_t wide, uint64_t *out)
{
	*out = (uint64_t)integer_load(in, shard_dtype_bytes(s->dtype), false, s->swap);
	return !(*out >> (8 * wide));
}

/* Tokens of a piece to `out`, as the field has them. */
static bool read_piece(struct packed *p, const struct window_piece *piece, uint8_t *out, struct verdict *v)
{
	const struct token_stream *s;
	uint64_t offset = offset_of(p, piece, &s), value;
	const struct shard_field *f = &p->schema->field[TOKEN_PACK_TOKENS];
	size_t item = shard_dtype_bytes(s->dtype), wide = shard_dtype_bytes(f->dtype), bytes = piece->length * item;
	bool as_it_lies = s->dtype == f->dtype && !s->swap;
	char why[160];

	if (!stored_read(p->stored, s->file, offset, as_it_lies ? out : p->raw, bytes, why, sizeof(why)))
		return verdict_set(v, OUTCOME_FAILED, 0, "%s: %s", p->plan->file[s->file].path, why);
	for (uint32_t i = 0; !as_it_lies && i < piece->length; i++) {
		if (!load_token(p->raw + i * item, s, wide, &value))
			return verdict_set(v, OUTCOME_FAILED, 0,
					   "%s: the token at offset %" PRIu64
					   " does not fit %s any more: the file changed",
					   p->plan->file[s->file].path, offset + i * item, shard_dtype_name(f->dtype));
		integer_store(out + i * wide, wide, value);
	}
	return true;
}

static void count_up(uint8_t *out, uint32_t count)
{
	for (int32_t i = 0; i < (int32_t)count; i++)
		memcpy(out + 4 * (size_t)i, &i, 4);
}

static bool fill_record(struct packed *p, uint64_t window, uint8_t *const *group, struct verdict *v)
{
	const struct shard_field *f = p->schema->field;
	uint32_t count = window_pack_pieces(&p->plan->pack->windows, window, p->piece), at = 0;
	uint8_t *tokens = field_at(p, TOKEN_PACK_TOKENS, group), *lengths = field_at(p, TOKEN_PACK_LENGTHS, group);
	uint8_t *positions =
		p->schema->field_count > TOKEN_PACK_POSITIONS ? field_at(p, TOKEN_PACK_POSITIONS, group) : NULL;
	size_t wide = shard_dtype_bytes(f[TOKEN_PACK_TOKENS].dtype);

	memset(lengths, 0, f[TOKEN_PACK_LENGTHS].bytes);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t length = p->piece[i].length;

		if (!read_piece(p, &p->piece[i], tokens + at * wide, v))
			return false;
		memcpy(lengths + 4 * (size_t)i, &length, 4);
		if (positions)
			count_up(positions + 4 * (size_t)at, length);
		at += length;
	}
	memset(tokens + at * wide, 0, f[TOKEN_PACK_TOKENS].bytes - at * wide);
	if (positions)
		memset(positions + 4 * (size_t)at, 0, f[TOKEN_PACK_POSITIONS].bytes - 4 * (size_t)at);
	memcpy(field_at(p, TOKEN_PACK_COUNT, group), &count, 4);
	return true;
}

bool packed_fill(struct packed *p, const uint64_t *window, uint64_t count, uint8_t *const *group, struct verdict *v)
{
	uint8_t *record[SHARD_GROUPS_MAX];

	for (uint64_t i = 0; i < count; i++)
		expect(p, window[i]);
	for (uint64_t i = 0; i < count; i++) {
		for (uint32_t g = 0; g < p->schema->group_count; g++)
			record[g] = group[g] + i * p->schema->group[g].record_bytes;
		if (!fill_record(p, window[i], record, v))
			return false;
	}
	return true;
}
