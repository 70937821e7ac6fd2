/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_pack.c - documents of streams of tokens, packed into windows
 */
#include "tools/shardpack/plan/plan.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "tools/common/shelf.h"

bool token_pack_add(struct token_pack *p, const struct token_stream *stream)
{
	if (!grow(&p->stream, &p->stream_capacity, p->stream_count + 1, sizeof(*p->stream)))
		return false;
	p->stream[p->stream_count] = *stream;
	p->stream[p->stream_count++].before = p->token_count;
	p->token_count += stream->count;
	return true;
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
