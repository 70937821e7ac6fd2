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

#define PLAN_TOKENS_MAX (8 + SHARD_FIELDS_MAX)

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

#endif
