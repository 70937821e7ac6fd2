/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_tokens.c - a line of a plan, in tokens, believing nothing
 */
#include "tools/shardpack/plan/plan_tokens.h"

#include <string.h>

#include "tools/common/text.h"

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

bool plan_tokens_decode_path(const char *text, size_t bytes, char *out)
{
	return bytes < PLAN_ENCODED_BYTES && text_decode(text, bytes, true, out) > 0 &&
	       strlen(out) < PLAN_PATH_BYTES_MAX && text_stays_below(out);
}

bool plan_tokens_path(const struct plan_tokens *l, unsigned token, char *out)
{
	return l->token_count > token && plan_tokens_decode_path(l->token[token], l->bytes[token], out);
}

bool plan_tokens_input(const struct plan_tokens *l, unsigned token, char *out, uint64_t *row)
{
	const char *text = l->token_count > token ? l->token[token] : "", *mark;
	size_t bytes = l->token_count > token ? l->bytes[token] : 0, row_bytes;

	*row = 1;
	mark = memchr(text, '#', bytes);
	row_bytes = mark ? bytes - (size_t)(mark + 1 - text) : 0;
	if (mark && (!text_u64(mark + 1, row_bytes, row) || *row < 2 || *row > PLAN_ROWS_MAX))
		return false;
	return plan_tokens_decode_path(text, mark ? (size_t)(mark - text) : bytes, out) &&
	       strlen(out) + (mark ? 1 + row_bytes : 0) < PLAN_PATH_BYTES_MAX;
}
