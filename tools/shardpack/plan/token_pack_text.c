/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_pack_text.c - packed documents as fields of a recipe and as lines of a plan
 */
#include "tools/shardpack/plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libshard/base/words.h"
#include "shard_inspect.h"
#include "tools/common/text.h"

#define TOKENS_MAX (UINT64_C(1) << 60) /* sums of a few stay below 2^64 */

void token_pack_fields(const struct token_pack *p, struct recipe *r, uint32_t dtype, uint32_t room, bool positions)
{
	memset(r->field, 0, sizeof(r->field));
	r->field[TOKEN_PACK_TOKENS] = (struct shard_field){.name = "tokens",
							   .dtype = dtype,
							   .layout = SHARD_LAYOUT_TOKENS,
							   .semantic = SHARD_TOKENS,
							   .ndim = 1,
							   .shape = {room}};
	r->field[TOKEN_PACK_LENGTHS] = (struct shard_field){.name = "doc_lengths",
							    .dtype = SHARD_I32,
							    .kind = SHARD_RAGGED,
							    .ndim = 1,
							    .shape = {p->width ? p->width : p->piece_max},
							    .ragged_axes = 1,
							    .length_field = TOKEN_PACK_COUNT};
	r->field[TOKEN_PACK_COUNT] = (struct shard_field){
		.name = "doc_count", .dtype = SHARD_U32, .semantic = SHARD_LENGTH, .ndim = 1, .shape = {1}};
	r->field[TOKEN_PACK_POSITIONS] =
		(struct shard_field){.name = "position_ids", .dtype = SHARD_I32, .ndim = 1, .shape = {room}};
	r->field_count = TOKEN_PACK_POSITIONS + positions;
	if (!positions)
		memset(&r->field[TOKEN_PACK_POSITIONS], 0, sizeof(r->field[0]));
}

void token_pack_write(const struct token_pack *p, struct text *out)
{
	for (uint64_t i = 0; i < p->stream_count; i++) {
		const struct token_stream *s = &p->stream[i];

		text_format(out, "stream %" PRIu32 " %" PRIu64 " %" PRIu64 " %s%s ", s->file, s->offset, s->count,
			    s->swap ? ">" : "", shard_dtype_name(s->dtype));
		if (s->index_file == PLAN_NO_FILE)
			text_format(out, "-\n");
		else
			text_format(out, "%" PRIu32 "\n", s->index_file);
	}
	text_format(out, "streams %" PRIu64 "\npack ", p->stream_count);
	if (p->by_token)
		text_format(out, "%" PRIu64, p->end_of_text);
	else
		text_format(out, "-");
	text_format(out, " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu32 " ", p->document_count, p->piece_count,
		    p->window_count, p->piece_max);
	text_hex(out, p->digest, sizeof(p->digest));
	text_format(out, "\n");
}

bool token_pack_read_stream(struct token_pack *p, struct words *l, const struct plan *plan)
{
	struct token_stream s = {.index_file = PLAN_NO_FILE};
	uint64_t file, index = PLAN_NO_FILE, room, item;

	if (!words_u64(l, ' ', PLAN_FILES_MAX, &file) || file >= plan->file_count ||
	    !words_u64(l, ' ', TOKENS_MAX, &s.offset) || !words_u64(l, ' ', TOKENS_MAX, &s.count) || !s.count ||
	    s.count > TOKENS_MAX - p->token_count)
		return false;
	s.file = (uint32_t)file;
	if (!plan_take_dtype(l, &s.dtype, &s.swap) || s.dtype > SHARD_I64)
		return false;
	item = shard_dtype_bytes(s.dtype);
	room = plan->file[file].bytes;
	if (s.offset > room || s.count > (room - s.offset) / item)
		return false;
	if (!words_is(l, ' ', "-") &&
	    (!words_u64(l, ' ', PLAN_FILES_MAX, &index) || index >= plan->file_count || index == file))
		return false;
	if (!words_done(l))
		return false;
	s.index_file = (uint32_t)index;
	return token_pack_add(p, &s);
}

/* Streams without an index need a token that ends their documents. */
static bool has_ends(const struct token_pack *p)
{
	for (uint64_t i = 0; i < p->stream_count; i++)
		if ((p->stream[i].index_file == PLAN_NO_FILE) != p->by_token)
			return false;
	return p->stream_count > 0;
}

bool token_pack_read(struct token_pack *p, struct words *l, const struct recipe *r)
{
	struct recipe *said;
	uint64_t most;
	uint32_t room = r->field[0].shape[0], dtype = r->field[0].dtype;
	bool same;

	if (!words_is(l, ' ', "pack"))
		return false;
	p->by_token = !words_is(l, ' ', "-");
	if (!has_ends(p) || (p->by_token && !words_u64(l, ' ', UINT64_MAX, &p->end_of_text)) ||
	    !words_u64(l, ' ', TOKENS_MAX, &p->document_count) || !words_u64(l, ' ', TOKENS_MAX, &p->piece_count) ||
	    !words_u64(l, ' ', PLAN_INPUTS_MAX - 1, &p->window_count) ||
	    !words_u64(l, ' ', TOKEN_PACK_ROOM_MAX, &most) || !most || !p->window_count ||
	    !words_hex(l, ' ', p->digest, sizeof(p->digest)) || !words_done(l))
		return false;
	p->piece_max = (uint32_t)most;
	p->width = r->field[TOKEN_PACK_LENGTHS].shape[0];
	if (r->source != SOURCE_TOKENS || r->field_count <= TOKEN_PACK_COUNT || room < 2 ||
	    room > TOKEN_PACK_ROOM_MAX || (dtype != SHARD_U8 && dtype != SHARD_U16 && dtype != SHARD_U32) ||
	    p->width < p->piece_max)
		return false;
	said = calloc(1, sizeof(*said));
	if (!said)
		return false;
	token_pack_fields(p, said, dtype, room, r->field_count > TOKEN_PACK_POSITIONS);
	same = said->field_count == r->field_count && !memcmp(said->field, r->field, sizeof(r->field));
	free(said);
	return same;
}
