/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_pack.h - documents of streams of tokens, packed into windows
 *
 * A window has `room` tokens, one more than a model sees.  A document of more tokens is cut into
 * pieces of `room`, each of which begins with the last token of the piece before, so that every
 * token but the document's first is predicted once.  What is left is a piece too.  A document, or a
 * piece, of one token has nothing to predict, and is in no window.
 *
 * A plan has the streams and a digest of all lengths.  Which piece lies where follows from these:
 * input/token_windows.c computes it once per process.
 *
 * Fields of a record:
 *   tokens        [room]: the pieces one behind the other, longest first, then zeros
 *   doc_lengths   i32 ragged [width]: how many tokens each piece has; doc_count of them
 *   doc_count     u32: its length field
 *   position_ids  by option, i32 [room]: from 0 in each piece; 0 behind the last
 */
#ifndef SHARD_TOKEN_PACK_TOKEN_PACK_H
#define SHARD_TOKEN_PACK_TOKEN_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/shardpack/plan/token_stream.h"
#include "tools/shardpack/plan/window_pack.h"

#define TOKEN_PACK_ROOM_MAX (UINT32_C(1) << 22) /* tables by length: 2 x 32 MiB */

/* Numbers of the fields. */
enum { TOKEN_PACK_TOKENS, TOKEN_PACK_LENGTHS, TOKEN_PACK_COUNT, TOKEN_PACK_POSITIONS };

struct token_pack { /* start it zeroed */
	struct token_stream *stream;
	uint64_t stream_count, stream_capacity;
	uint64_t token_count; /* of all streams */
	bool by_token;
	uint64_t end_of_text; /* by_token: ends a document */
	uint64_t document_count, piece_count, window_count;
	uint32_t piece_max; /* in a window */
	uint32_t width;	    /* of doc_lengths, and most pieces that a window may have; 0: piece_max */
	uint8_t digest[32]; /* of the lengths of all documents */

	/* Not in the plan's text; made by input/token_windows.c. */
	struct window_pack windows;
	const uint64_t *begin; /* [place of a piece] its first token, counted over all streams; mapped */
	size_t begin_bytes;
	uint64_t packed_count;		  /* tokens in windows; those that two pieces share count twice */
	uint64_t lone_count, empty_count; /* documents of one token, and of none */
	uint64_t cut_count;		  /* documents that are more than one piece */
};

/* False: no memory. */
bool token_pack_add(struct token_pack *p, const struct token_stream *stream);

/* Of the places for tokens in all records, which have `room` each.  Not without packed_count. */
struct token_padding {
	uint64_t places, padding;
	double percent;
};
struct token_padding token_pack_padding(const struct token_pack *p, uint64_t room);

void token_pack_free(struct token_pack *p); /* and the struct; NULL is nothing */

/* The stream that has this token, counted over all streams. */
const struct token_stream *token_pack_find(const struct token_pack *p, uint64_t token);

/* How many pieces a document of `count` tokens has; and how long the last one of them is. */
uint64_t token_pack_pieces(uint64_t count, uint32_t room, uint32_t *last);

#endif
