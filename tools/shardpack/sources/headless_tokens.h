/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headless_tokens.h - the type of tokens in a file that does not say it itself
 *
 * The type is that of --dtype, or u16 by default.  Numbers that look otherwise, or an index of
 * Megatron-LM beside the file, may contradict it.  Then the default is refused.  If the user gave
 * --dtype, numbers that look otherwise are only a warning; an index of another width is refused.
 */
#ifndef SHARD_SOURCES_HEADLESS_TOKENS_H
#define SHARD_SOURCES_HEADLESS_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

struct request;

struct headless_tokens {
	uint32_t dtype;
	bool has_index;
	uint64_t document_count; /* by the index */
};

/*
 * The file at `path` below the root, which is `file` of the plan and `where` in messages.  Returns
 * the exit code.
 */
int headless_tokens_look(const struct request *r, const char *path, uint32_t file, const char *where,
			 struct headless_tokens *out);

/* The enum shard_dtype that --dtype says. */
uint32_t headless_tokens_asked(const struct request *r);

#endif
