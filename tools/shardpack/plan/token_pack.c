/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_pack.c - documents of streams of tokens, packed into windows
 */
#include "tools/shardpack/plan/plan.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "libshard/base/words.h"
#include "shard_pack.h"
#include "tools/common/memory.h"
#include "tools/common/shelf.h"
#include "tools/common/text.h"

/* ---- which pieces share a window: best fit decreasing, over lengths alone ---- */

/*
 * Why groups give what one piece after the other gives: let r be the least room that is at least
 * the length.  A window with room r that takes a piece has room r - length, which is less than r.
 * If another piece fits there, no window is fuller and has room for it.  So a window takes
 * r / length pieces in a row, and then the next one with room r does the same.  Or it takes as many
 * as it may still have; then it is full, and no later piece comes to it.
 */

#define NO_RANGE UINT32_MAX

/* Windows by the room that is left in them. */
struct rooms {
	struct window_pack *p;
	uint32_t *head; /* [room] the first range; NO_RANGE */
	uint64_t *bits; /* which rooms have a range */
	uint32_t most, most_pieces;
};

static void put_range(struct rooms *r, uint32_t room, uint32_t range)
{
	r->p->range[range].next = r->head[room];
	r->head[room] = range;
	r->bits[room / 64] |= UINT64_C(1) << room % 64;
}

static uint32_t take_range(struct rooms *r, uint32_t room)
{
	uint32_t range = r->head[room];

	r->head[room] = r->p->range[range].next;
	if (r->head[room] == NO_RANGE)
		r->bits[room / 64] &= ~(UINT64_C(1) << room % 64);
	return range;
}

/* The least room that is at least `length` and has a window; above r->most if there is none. */
static uint32_t find_room(const struct rooms *r, uint32_t length)
{
	uint32_t word = length / 64;
	uint64_t bits = r->bits[word] & UINT64_MAX << length % 64;

	while (!bits && word < r->most / 64)
		bits = r->bits[++word];
	return bits ? word * 64 + (uint32_t)__builtin_ctzll(bits) : r->most + 1;
}

static bool new_range(struct rooms *r, uint32_t room, const struct window_range *range)
{
	struct window_pack *p = r->p;

	if (p->range_count == NO_RANGE)
		return false;
	grow(&p->range, &p->range_capacity, p->range_count + 1, sizeof(*p->range));
	p->range[p->range_count] = *range;
	put_range(r, room, (uint32_t)p->range_count++);
	return true;
}

/* `times` pieces into each of the first `count` windows of a range with this room. */
static bool fill(struct rooms *r, uint32_t room, struct window_step step, uint64_t count)
{
	struct window_pack *p = r->p;
	uint32_t taken = take_range(r, room);
	struct window_range rest = p->range[taken];

	if (p->step_count == WINDOW_STEP_NONE)
		return false;
	grow(&p->step, &p->step_capacity, p->step_count + 1, sizeof(step));
	p->range[taken].pieces += step.times;
	rest.first += count;
	rest.count -= count;
	if (rest.count && !new_range(r, room, &rest))
		return false;
	step.window = p->range[taken].first;
	step.before = p->range[taken].step;
	p->range[taken].count = count;
	p->range[taken].step = (uint32_t)p->step_count;
	p->step[p->step_count++] = step;
	/* Room 0 suits no piece. */
	put_range(r, p->range[taken].pieces < r->most_pieces ? room - step.length * step.times : 0, taken);
	return true;
}

/* All pieces of one length, of which the first has the number `place`. */
static bool pack_length(struct rooms *r, uint32_t length, uint64_t pieces, uint64_t place)
{
	struct window_pack *p = r->p;

	while (pieces) {
		struct window_step step = {.place = place, .length = length};
		uint32_t room = find_room(r, length), each = (room <= r->most ? room : r->most) / length;
		uint32_t more = r->most_pieces - (room <= r->most ? p->range[r->head[room]].pieces : 0);
		uint64_t windows, whole;

		each = each < more ? each : more;
		whole = pieces / each;

		if (room > r->most) {
			struct window_range fresh = {.first = p->window_count,
						     .count = whole + (pieces % each != 0),
						     .step = WINDOW_STEP_NONE};

			p->window_count += fresh.count;
			if (!new_range(r, r->most, &fresh))
				return false;
			continue;
		}
		windows = p->range[r->head[room]].count;
		step.times = whole ? each : (uint32_t)pieces;
		windows = whole ? (windows < whole ? windows : whole) : 1;
		if (!fill(r, room, step, windows))
			return false;
		place += windows * step.times;
		pieces -= windows * step.times;
	}
	return true;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct window_range *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

bool window_pack_make(struct window_pack *p, const uint64_t *count, uint32_t room, uint32_t most_pieces)
{
	struct rooms r = {.p = p, .most = room, .most_pieces = most_pieces};
	uint64_t place = 0;
	bool ok = true;

	r.head = xmalloc(room + (size_t)1, sizeof(*r.head));
	r.bits = xcalloc(room / 64 + (size_t)1, sizeof(*r.bits));
	for (uint32_t i = 0; i <= room; i++)
		r.head[i] = NO_RANGE;
	for (uint32_t length = room; ok && length; length--) {
		ok = pack_length(&r, length, count[length], place);
		place += count[length];
	}
	free(r.head);
	free(r.bits);
	if (!ok)
		return false;
	if (p->range_count)
		qsort(p->range, p->range_count, sizeof(*p->range), compare_ranges);
	for (uint64_t i = 0; i < p->range_count; i++)
		p->piece_max = p->range[i].pieces > p->piece_max ? p->range[i].pieces : p->piece_max;
	return true;
}

void window_pack_free(struct window_pack *p)
{
	free(p->step);
	free(p->range);
	memset(p, 0, sizeof(*p));
}

uint32_t window_pack_pieces(const struct window_pack *p, uint64_t window, struct window_piece *out)
{
	uint64_t low = 0, high = p->range_count;
	uint32_t count = 0, at;

	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (p->range[middle].first <= window)
			low = middle;
		else
			high = middle;
	}
	/* From the last step back to the first, so from the end of the list to its begin. */
	for (uint32_t s = p->range[low].step; s != WINDOW_STEP_NONE; s = p->step[s].before)
		count += p->step[s].times;
	at = count;
	for (uint32_t s = p->range[low].step; s != WINDOW_STEP_NONE; s = p->step[s].before) {
		const struct window_step *step = &p->step[s];

		at -= step->times;
		for (uint32_t i = 0; i < step->times; i++)
			out[at + i] =
				(struct window_piece){.place = step->place + (window - step->window) * step->times + i,
						      .length = step->length};
	}
	return count;
}

/* ---- streams and documents ---- */

void token_pack_add(struct token_pack *p, const struct token_stream *stream)
{
	grow(&p->stream, &p->stream_capacity, p->stream_count + 1, sizeof(*p->stream));
	p->stream[p->stream_count] = *stream;
	p->stream[p->stream_count++].before = p->token_count;
	p->token_count += stream->count;
}

struct token_padding token_pack_padding(const struct token_pack *p, uint64_t room)
{
	struct token_padding out = {.places = p->window_count * room};

	out.padding = out.places - p->packed_count;
	out.percent = 100.0 * (double)out.padding / (double)out.places;
	return out;
}

void token_pack_free(struct token_pack *p)
{
	if (!p)
		return;
	window_pack_free(&p->windows);
	if (p->begin)
		munmap((void *)p->begin, p->begin_bytes);
	free(p->stream);
	free(p);
}

const struct token_stream *token_pack_find(const struct token_pack *p, uint64_t token)
{
	uint64_t low = 0, high = p->stream_count;

	assert(token < p->token_count);
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (p->stream[middle].before <= token)
			low = middle;
		else
			high = middle;
	}
	return &p->stream[low];
}

uint64_t token_pack_pieces(uint64_t count, uint32_t room, uint32_t *last)
{
	uint64_t whole = count > room ? (count - room) / (room - 1) + 1 : 0, rest = count - whole * (room - 1);

	/* What is left always has the last token of the piece before; one token more is a piece. */
	*last = rest >= 2 ? (uint32_t)rest : whole ? room : 0;
	return whole + (rest >= 2);
}

/* ---- fields of a recipe, and lines of a plan ---- */

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
			    s->swap ? ">" : "", shard_name(SHARD_NAME_DTYPE, s->dtype));
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
	token_pack_add(p, &s);
	return true;
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
	said = xcalloc(1, sizeof(*said));
	token_pack_fields(p, said, dtype, room, r->field_count > TOKEN_PACK_POSITIONS);
	same = said->field_count == r->field_count && !memcmp(said->field, r->field, sizeof(r->field));
	free(said);
	return same;
}
