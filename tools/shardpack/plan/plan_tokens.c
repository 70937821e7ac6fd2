/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_tokens.c - a line of a plan, in tokens, believing nothing
 */
#include "tools/shardpack/plan/plan_tokens.h"

#include <string.h>

#include "tools/shardpack/plan/plan.h"

bool plan_tokens_next(struct plan_tokens *l, const char **at, const char *end)
{
	const char *lf = *at < end ? memchr(*at, '\n', (size_t)(end - *at)) : NULL;

	l->token_count = 0;
	if (!lf)
		return false;
	while (*at <= lf && l->token_count <= PLAN_TOKENS_MAX) {
		size_t bytes = strcspn(*at, " \n");

		if (l->token_count < PLAN_TOKENS_MAX) {
			l->token[l->token_count] = *at;
			l->bytes[l->token_count] = bytes;
		}
		l->token_count++;
		*at += bytes + 1;
	}
	*at = lf + 1;
	return true;
}

bool plan_tokens_is(const struct plan_tokens *l, unsigned token, const char *word)
{
	return l->token_count > token && l->bytes[token] == strlen(word) &&
	       !memcmp(l->token[token], word, l->bytes[token]);
}

bool plan_tokens_number(const struct plan_tokens *l, unsigned token, uint64_t max, uint64_t *out)
{
	return l->token_count > token && text_u64(l->token[token], l->bytes[token], out) && *out <= max;
}
