/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headless_tokens.h - the type of tokens in a file that does not say it itself
 *
 * The type is that of --dtype, or that of an index of Megatron-LM beside the file, or u16.  Numbers
 * that look otherwise than the default are refused.  If the user gave --dtype, numbers that look
 * otherwise are only a warning; an index of another width is refused.  Without --dtype, or
 * with --pack, an index also says where documents begin, unless --documents does.
 */
#ifndef SHARD_SOURCES_HEADLESS_TOKENS_H
#define SHARD_SOURCES_HEADLESS_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request;

struct headless_tokens {
	uint32_t dtype;
	uint32_t index_file; /* of which the documents are to be taken; PLAN_NO_FILE: none */
	bool has_index;
	uint64_t document_count; /* by the index */
};

/*
 * The file at `path` below the root, which is `file` of the plan and `where` in messages, and which
 * begins with `head`.  Returns the exit code.
 */
int headless_tokens_look(const struct request *r, const char *path, uint32_t file, const char *where,
			 const uint8_t *head, size_t have, struct headless_tokens *out);

/* The enum shard_dtype that --dtype says. */
uint32_t headless_tokens_asked(const struct request *r);

#endif
