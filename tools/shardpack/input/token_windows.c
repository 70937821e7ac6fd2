/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_windows.c - the windows of a plan of packed documents, computed from the documents' lengths
 *
 * Two ways through the documents: one counts pieces by length, one notes where each piece lies.  In
 * between the windows are packed, from the counts alone.
 */
#include "tools/shardpack/input/token_windows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shard_pack.h"
#include "tools/common/exit_code.h"
#include "tools/common/message.h"
#include "tools/shardpack/input/input.h"
#include "tools/shardpack/input/stored.h"
#include "tools/shardpack/plan/plan.h"

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

static void digest_length(struct maker *m, uint64_t count)
{
	uint8_t *at = m->digested + 32 + 8 * (size_t)m->length_count;

	for (unsigned k = 0; k < 8; k++)
		at[k] = (uint8_t)(count >> (8 * k));
	if (++m->length_count == LENGTHS_AT_ONCE)
		end_digest(m);
}

static int count_document(void *context, uint64_t begin, uint64_t count)
{
	struct maker *m = context;
	struct token_pack *p = m->p;
	uint32_t last;
	uint64_t pieces = token_pack_pieces(count, m->room, &last);

	(void)begin;
	digest_length(m, count);
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

static int each_document(struct maker *m, const struct stored *s, documents_take *take, struct progress *progress)
{
	const struct token_pack *p = m->p;
	int code = EXIT_DONE;

	for (uint64_t i = 0; code == EXIT_DONE && i < p->stream_count; i++) {
		m->before = p->stream[i].before;
		code = documents_each(s, &p->stream[i], p->end_of_text, take, m, progress);
	}
	return code;
}

/* Longest pieces first: from how many there are of each length to where those of a length begin. */
static void find_places(struct maker *m)
{
	uint64_t at = 0;

	for (uint32_t length = m->room; length; length--) {
		uint64_t pieces = m->count[length];

		m->count[length] = at;
		at += pieces;
	}
}

static int map_places(struct maker *m, const struct stored *s)
{
	size_t bytes = (size_t)m->p->piece_count * sizeof(*m->begin);
	void *map = MAP_FAILED;
	int fd = -1, code = stored_scratch(s, "documents", bytes, &fd);

	if (code == EXIT_DONE)
		map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (code == EXIT_DONE && map == MAP_FAILED)
		code = fail(EXIT_IO, "cannot map %zu bytes for the places of documents: %s", bytes, strerror(errno));
	if (fd >= 0)
		close(fd); /* the map keeps it */
	if (code != EXIT_DONE)
		return code;
	m->begin = map;
	m->p->begin = map;
	m->p->begin_bytes = bytes;
	return EXIT_DONE;
}

int token_windows_make(const struct stored *s, struct plan *plan, uint32_t room, struct progress *progress)
{
	struct maker *m = calloc(1, sizeof(*m));
	struct token_pack *p = plan->pack;
	int code = EXIT_DONE;

	if (m)
		m->count = calloc(room + (size_t)1, sizeof(*m->count));
	if (!m || !m->count) {
		free(m);
		return fail(EXIT_IO, "out of memory for windows of %" PRIu32 " tokens", room);
	}
	m->p = p;
	m->room = room;
	code = each_document(m, s, count_document, progress);
	end_digest(m);
	memcpy(p->digest, m->digested, sizeof(p->digest));
	if (code == EXIT_DONE && !window_pack_make(&p->windows, m->count, room, p->width ? p->width : UINT32_MAX))
		code = fail(EXIT_IO, "out of memory for %" PRIu64 " pieces of documents", p->piece_count);
	p->window_count = p->windows.window_count;
	p->piece_max = p->windows.piece_max;
	find_places(m);
	if (code == EXIT_DONE && p->piece_count)
		code = map_places(m, s);
	if (code == EXIT_DONE)
		code = each_document(m, s, place_document, progress);
	free(m->count);
	free(m);
	return code;
}

int token_windows_again(const struct stored *s, struct plan *plan, const char *anew)
{
	struct token_pack *p = plan->pack, then;
	int code;

	if (!p)
		return EXIT_DONE;
	then = *p;
	p->document_count = p->piece_count = p->window_count = 0;
	code = token_windows_make(s, plan, plan->recipe.field[TOKEN_PACK_TOKENS].shape[0], NULL);
	if (code != EXIT_DONE)
		return code;
	if (p->document_count == then.document_count && p->piece_count == then.piece_count &&
	    p->window_count == then.window_count && p->piece_max == then.piece_max &&
	    !memcmp(p->digest, then.digest, sizeof(p->digest)))
		return EXIT_DONE;
	return fail(EXIT_MISMATCH,
		    "its documents changed since the plan was made: %" PRIu64 " of other lengths then, %" PRIu64
		    " now; bring back the files of then, or %s",
		    then.document_count, p->document_count, anew);
}
