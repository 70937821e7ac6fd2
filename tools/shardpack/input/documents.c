/* SPDX-License-Identifier: Apache-2.0 */
/*
 * documents.c - the documents of a stream of tokens, and the windows that they are packed into
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shard_pack.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/signals.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/parse/parse.h"
#include "tools/shardpack/plan/plan.h"

#define PIECE_BYTES 65536

/* Integers of a file, one after the other. */
struct column {
	const struct source_files *s;
	uint32_t file, item;
	uint64_t offset, left; /* bytes and items that are not in `piece` yet */
	size_t at, have;
	bool swap, is_signed;
	uint8_t *piece;
};

static void column_open(struct column *c, const struct source_files *s, uint32_t file, uint64_t offset, uint64_t count,
			uint32_t dtype, bool swap)
{
	*c = (struct column){.s = s, .file = file, .item = (uint32_t)shard_dtype_bytes(dtype), .offset = offset};
	c->left = count;
	c->swap = swap;
	c->is_signed = integer_is_signed(dtype);
	c->piece = xmalloc(PIECE_BYTES, 1);
}

/* The next one.  A u64 above 2^63 - 1 comes out negative. */
static int column_next(struct column *c, int64_t *out)
{
	if (c->at == c->have) {
		uint64_t n = c->left < PIECE_BYTES / c->item ? c->left : PIECE_BYTES / c->item;
		int rc = interrupted() ? EXIT_INTERRUPTED
				       : source_file_get(c->s, c->file, c->offset, c->piece, (size_t)(n * c->item));

		c->offset += n * c->item;
		c->left -= n;
		c->have = (size_t)(n * c->item);
		c->at = 0;
		if (rc != EXIT_DONE)
			return rc;
	}
	*out = integer_load(c->piece + c->at, c->item, c->is_signed, c->swap);
	c->at += c->item;
	return EXIT_DONE;
}

static void tick(struct progress *p, uint64_t tokens, uint64_t bytes)
{
	if (!p)
		return;
	progress_add(p, tokens, bytes, 0);
	progress_tick(p);
}

/* ---- by a token ---- */

static int each_by_token(const struct source_files *s, const struct token_stream *t, uint64_t end, documents_take *take,
			 void *context, struct progress *progress)
{
	struct column c;
	uint64_t begin = 0, told = 0, bits = UINT64_MAX >> (64 - 8 * shard_dtype_bytes(t->dtype));
	int64_t value = 0;
	int rc = EXIT_DONE;

	column_open(&c, s, t->file, t->offset, t->count, t->dtype, t->swap);
	for (uint64_t i = 0; rc == EXIT_DONE && i < t->count; i++) {
		rc = column_next(&c, &value);
		if (rc == EXIT_DONE && ((uint64_t)value & bits) == end) {
			rc = take(context, begin, i + 1 - begin);
			begin = i + 1;
		}
		if (c.at == c.have) {
			tick(progress, i + 1 - told, (i + 1 - told) * c.item);
			told = i + 1;
		}
	}
	if (rc == EXIT_DONE && begin < t->count)
		rc = take(context, begin, t->count - begin);
	free(c.piece);
	return rc;
}

/* ---- by an index ---- */

/* The head of an index, checked. */
static int documents_index(const struct source_files *s, uint32_t index_file, struct megatron_index *out)
{
	uint64_t bytes = source_file_bytes(s, index_file),
		 have = bytes < MEGATRON_INDEX_HEAD_BYTES ? bytes : MEGATRON_INDEX_HEAD_BYTES;
	uint8_t head[MEGATRON_INDEX_HEAD_BYTES];
	char why[256], *name = source_file_name(s, index_file);
	int rc = source_file_get(s, index_file, 0, head, (size_t)have);

	if (rc == EXIT_DONE && !megatron_index_parse(head, (size_t)have, bytes, out, why, sizeof(why)))
		rc = fail(EXIT_BAD, "%s: %s", name, why);
	free(name);
	return rc;
}

struct walk {
	const struct token_stream *t;
	struct column length, begin, bound;
	uint64_t sequence, tokens; /* of which the length is known */
	const char *name;	   /* of the index */
};

/* The tokens of the next sequence. */
static int walk_sequence(struct walk *w)
{
	uint64_t item = shard_dtype_bytes(w->t->dtype);
	int64_t length = 0, begin = 0;
	int rc = column_next(&w->length, &length);

	if (rc == EXIT_DONE)
		rc = column_next(&w->begin, &begin);
	if (rc != EXIT_DONE)
		return rc;
	if (length < 0)
		return fail(EXIT_BAD, "%s: sequence %" PRIu64 " has %" PRId64 " tokens", w->name, w->sequence, length);
	if ((uint64_t)begin != w->tokens * item)
		return fail(EXIT_BAD,
			    "%s: sequence %" PRIu64 " begins at byte %" PRId64
			    ", but those before it end at byte %" PRIu64,
			    w->name, w->sequence, begin, w->tokens * item);
	if ((uint64_t)length > w->t->count - w->tokens)
		return fail(EXIT_BAD,
			    "%s: sequence %" PRIu64 " ends at token %" PRIu64 ", but the .bin beside it has %" PRIu64
			    "; it is cut short, or of another index",
			    w->name, w->sequence, w->tokens + (uint64_t)length, w->t->count);
	w->tokens += (uint64_t)length;
	w->sequence++;
	return EXIT_DONE;
}

static int walk_documents(struct walk *w, const struct megatron_index *x, documents_take *take, void *context,
			  struct progress *progress)
{
	uint64_t begin, told = 0;
	int64_t bound = 0;
	int rc = column_next(&w->bound, &bound);

	if (rc == EXIT_DONE && bound)
		return fail(EXIT_BAD, "%s: the first document begins with sequence %" PRId64 "; must be 0", w->name,
			    bound);
	for (uint64_t d = 0; rc == EXIT_DONE && d < x->document_count; d++) {
		rc = column_next(&w->bound, &bound);
		if (rc == EXIT_DONE && ((uint64_t)bound < w->sequence || (uint64_t)bound > x->sequence_count))
			return fail(EXIT_BAD,
				    "%s: document %" PRIu64 " ends before sequence %" PRId64 "; must be %" PRIu64
				    " to %" PRIu64,
				    w->name, d, bound, w->sequence, x->sequence_count);
		for (begin = w->tokens; rc == EXIT_DONE && w->sequence < (uint64_t)bound;)
			rc = walk_sequence(w);
		if (rc == EXIT_DONE)
			rc = take(context, begin, w->tokens - begin);
		if (d % 4096 == 0) {
			tick(progress, w->tokens - told, 0);
			told = w->tokens;
		}
	}
	if (rc == EXIT_DONE && w->sequence < x->sequence_count)
		rc = fail(EXIT_BAD,
			  "%s: its documents end before sequence %" PRIu64 " of %" PRIu64
			  "; each sequence must be in a document",
			  w->name, w->sequence, x->sequence_count);
	if (rc == EXIT_DONE && w->tokens != w->t->count)
		rc = fail(EXIT_BAD,
			  "%s: its sequences have %" PRIu64 " tokens, but the .bin beside it has %" PRIu64
			  "; it is longer than it should be, or of another index",
			  w->name, w->tokens, w->t->count);
	return rc;
}

static int each_by_index(const struct source_files *s, const struct token_stream *t, documents_take *take,
			 void *context, struct progress *progress)
{
	char *name = source_file_name(s, t->index_file);
	struct walk w = {.t = t, .name = name};
	struct megatron_index x;
	uint32_t file = t->index_file;
	int rc = documents_index(s, file, &x);

	if (rc == EXIT_DONE) {
		column_open(&w.length, s, file, x.lengths_at, x.sequence_count, SHARD_I32, false);
		column_open(&w.begin, s, file, x.begins_at, x.sequence_count, SHARD_I64, false);
		column_open(&w.bound, s, file, x.documents_at, x.document_count + 1, SHARD_I64, false);
		rc = walk_documents(&w, &x, take, context, progress);
	}
	free(w.length.piece);
	free(w.begin.piece);
	free(w.bound.piece);
	free(name);
	return rc;
}

int documents_each(const struct source_files *s, const struct token_stream *t, uint64_t end_of_text,
		   documents_take *take, void *context, struct progress *progress)
{
	return t->index_file == PLAN_NO_FILE ? each_by_token(s, t, end_of_text, take, context, progress)
					     : each_by_index(s, t, take, context, progress);
}

int documents_check_values(const struct source_files *s, const struct token_stream *t, uint64_t most,
			   struct progress *progress)
{
	char *name = source_file_name(s, t->file);
	struct column c;
	int64_t value = 0;
	int rc = EXIT_DONE;

	column_open(&c, s, t->file, t->offset, t->count, t->dtype, t->swap);
	for (uint64_t i = 0; rc == EXIT_DONE && i < t->count; i++) {
		rc = column_next(&c, &value);
		if (rc == EXIT_DONE && (value < 0 || (uint64_t)value > most))
			rc = fail(EXIT_BAD,
				  "%s: token %" PRIu64 ", at offset %" PRIu64 ", is %s%" PRIu64
				  "; tokens must be 0 to %" PRIu64,
				  name, i, t->offset + i * c.item, value < 0 && c.is_signed ? "-" : "",
				  value < 0 && c.is_signed ? -(uint64_t)value : (uint64_t)value, most);
		if (c.at == c.have && progress)
			progress_tick(progress);
	}
	free(c.piece);
	free(name);
	return rc;
}

/* ---- windows ---- */

/*
 * Two ways through the documents: one counts pieces by length, one notes where each piece lies.  In
 * between the windows are packed, from the counts alone.
 */

#define LENGTHS_AT_ONCE 4096

struct maker {
	struct token_pack *p;
	uint32_t room;
	uint64_t *count; /* [length] pieces; in the second way the place of the next one */
	uint64_t before; /* tokens of the streams before this one */
	uint64_t *begin; /* [place]; NULL in the first way */
	/* The digest of what came before, and lengths behind it. */
	uint8_t digested[32 + 8 * LENGTHS_AT_ONCE];
	uint32_t length_count;
};

static void end_digest(struct maker *m)
{
	uint8_t out[32];

	shard_sha256(m->digested, 32 + 8 * (size_t)m->length_count, out);
	memcpy(m->digested, out, 32);
	m->length_count = 0;
}

static int count_document(void *context, uint64_t begin, uint64_t count)
{
	struct maker *m = context;
	struct token_pack *p = m->p;
	uint32_t last;
	uint64_t pieces = token_pack_pieces(count, m->room, &last);
	uint8_t *length = m->digested + 32 + 8 * (size_t)m->length_count;

	(void)begin;
	for (unsigned k = 0; k < 8; k++)
		length[k] = (uint8_t)(count >> (8 * k));
	if (++m->length_count == LENGTHS_AT_ONCE)
		end_digest(m);
	p->document_count++;
	p->empty_count += count == 0;
	p->lone_count += count == 1;
	p->cut_count += pieces > 1;
	p->piece_count += pieces;
	p->packed_count += pieces ? (pieces - 1) * m->room + last : 0;
	if (!pieces)
		return EXIT_DONE;
	m->count[m->room] += pieces - 1;
	m->count[last]++;
	return EXIT_DONE;
}

static int place_document(void *context, uint64_t begin, uint64_t count)
{
	struct maker *m = context;
	uint32_t last;
	uint64_t pieces = token_pack_pieces(count, m->room, &last);

	for (uint64_t i = 0; i < pieces; i++)
		m->begin[m->count[i + 1 < pieces ? m->room : last]++] = m->before + begin + i * (m->room - 1);
	return EXIT_DONE;
}

static int each_document(struct maker *m, const struct source_files *s, documents_take *take, struct progress *progress)
{
	const struct token_pack *p = m->p;
	int rc = EXIT_DONE;

	for (uint64_t i = 0; rc == EXIT_DONE && i < p->stream_count; i++) {
		m->before = p->stream[i].before;
		rc = documents_each(s, &p->stream[i], p->end_of_text, take, m, progress);
	}
	return rc;
}

static int map_places(struct maker *m, const struct source_files *s)
{
	size_t bytes = (size_t)m->p->piece_count * sizeof(*m->begin);
	void *map = MAP_FAILED;
	int fd = -1, rc = source_files_scratch(s, "documents", bytes, &fd);

	if (rc == EXIT_DONE)
		map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (rc == EXIT_DONE && map == MAP_FAILED)
		rc = fail(EXIT_IO, "cannot map %zu bytes for the places of documents: %s", bytes, strerror(errno));
	if (fd >= 0)
		close(fd); /* the map keeps it */
	if (rc != EXIT_DONE)
		return rc;
	m->begin = map;
	m->p->begin = map;
	m->p->begin_bytes = bytes;
	return EXIT_DONE;
}

int token_windows_make(const struct source_files *s, struct plan *plan, uint32_t room, struct progress *progress)
{
	struct maker *m = xcalloc(1, sizeof(*m));
	struct token_pack *p = plan->pack;
	uint64_t at = 0;
	int rc;

	m->count = calloc(room + (size_t)1, sizeof(*m->count));
	if (!m->count) { /* the user chose how long they are */
		free(m);
		return fail(EXIT_IO, "out of memory for windows of %" PRIu32 " tokens", room);
	}
	m->p = p;
	m->room = room;
	rc = each_document(m, s, count_document, progress);
	end_digest(m);
	memcpy(p->digest, m->digested, sizeof(p->digest));
	if (rc == EXIT_DONE && !window_pack_make(&p->windows, m->count, room, p->width ? p->width : UINT32_MAX))
		rc = fail(EXIT_IO, "%" PRIu64 " pieces of documents: too many to pack in one plan", p->piece_count);
	p->window_count = p->windows.window_count;
	p->piece_max = p->windows.piece_max;
	/* Longest pieces first: from how many there are of each length to where those of a length begin. */
	for (uint32_t length = room; length; length--) {
		uint64_t pieces = m->count[length];

		m->count[length] = at;
		at += pieces;
	}
	if (rc == EXIT_DONE && p->piece_count)
		rc = map_places(m, s);
	if (rc == EXIT_DONE)
		rc = each_document(m, s, place_document, progress);
	free(m->count);
	free(m);
	return rc;
}

int token_windows_again(const struct source_files *s, struct plan *plan, const char *repack)
{
	struct token_pack *p = plan->pack, then;
	int rc;

	if (!p)
		return EXIT_DONE;
	then = *p;
	p->document_count = p->piece_count = p->window_count = 0;
	rc = token_windows_make(s, plan, plan->recipe.field[TOKEN_PACK_TOKENS].shape[0], NULL);
	if (rc != EXIT_DONE)
		return rc;
	if (p->document_count == then.document_count && p->piece_count == then.piece_count &&
	    p->window_count == then.window_count && p->piece_max == then.piece_max &&
	    !memcmp(p->digest, then.digest, sizeof(p->digest)))
		return EXIT_DONE;
	return fail(EXIT_MISMATCH,
		    "its documents changed since the plan was made: %" PRIu64 " of other lengths then, %" PRIu64
		    " now; bring back the files of then, or %s",
		    then.document_count, p->document_count, repack);
}
