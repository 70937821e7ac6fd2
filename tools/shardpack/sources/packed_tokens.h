/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed_tokens.h - `shardpack tokens --pack`: files of documents, which become windows
 */
#ifndef SHARD_SOURCES_PACKED_TOKENS_H
#define SHARD_SOURCES_PACKED_TOKENS_H

#include <stdint.h>

struct headless_tokens;
struct progress;
struct request;
struct token_stream;

struct packed_tokens {	/* start it zeroed */
	uint32_t dtype; /* of the field: the widest that a file needs */
	uint64_t file_count;
	uint64_t indexed_count;	  /* files that have an index */
	uint64_t index_documents; /* by these */
};

/* The tokens of a file, which are to be stored as `dtype`.  Says why it fails; the exit code. */
int packed_tokens_add(struct packed_tokens *t, const struct request *r, const struct token_stream *stream,
		      uint32_t dtype, const char *where, const struct headless_tokens *headless);

/* All files are there: pack their documents, and say what became of them. */
int packed_tokens_end(struct packed_tokens *t, const struct request *r, uint32_t room, struct progress *progress);

#endif
