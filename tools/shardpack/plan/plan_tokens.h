/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_tokens.h - split a line of a plan into tokens, and check them
 *
 * Tokens are what stands between blanks.  The functions that look at one say false if the line has
 * no such token.
 */
#ifndef SHARD_PLAN_PLAN_TOKENS_H
#define SHARD_PLAN_PLAN_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shard.h"
#include "tools/shardpack/plan/plan.h"

#define PLAN_TOKENS_MAX	   (8 + SHARD_FIELDS_MAX)
#define PLAN_ENCODED_BYTES (3 * (size_t)PLAN_PATH_BYTES_MAX) /* room that a path takes when it is decoded */

#define PLAN_BYTES_MAX (UINT64_C(1) << 60) /* of a file or an input; sums of a few stay below 2^64 */

struct plan_tokens {
	const char *token[PLAN_TOKENS_MAX];
	size_t bytes[PLAN_TOKENS_MAX];
	unsigned token_count; /* PLAN_TOKENS_MAX + 1 stands for more */
};

/* The line at *at, which moves behind it.  False, and no tokens, if no LF lies before `end`. */
bool plan_tokens_next(struct plan_tokens *l, const char **at, const char *end);

/* Is the token this word? */
bool plan_tokens_is(const struct plan_tokens *l, unsigned token, const char *word);

/* A number of at most `max`. */
bool plan_tokens_number(const struct plan_tokens *l, unsigned token, uint64_t max, uint64_t *out);

/* A path below the source, decoded into `out` of PLAN_ENCODED_BYTES; false if it is none. */
bool plan_tokens_decode_path(const char *text, size_t bytes, char *out);
bool plan_tokens_path(const struct plan_tokens *l, unsigned token, char *out);

/*
 * The same of an input, whose path may have a number behind it, as "a.jpg#2": *row, else 1.  The
 * two together must be no longer than a path may be.
 */
bool plan_tokens_input(const struct plan_tokens *l, unsigned token, char *out, uint64_t *row);

#endif
