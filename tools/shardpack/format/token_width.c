/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_width.c - how wide the tokens of a file without a head are, by what its numbers look like
 */
#include "tools/shardpack/format/token_width.h"

#include <stdbool.h>

#define SMALL 16 /* upper halves of the first 2^20 words of a vocabulary are below it */

void token_census_add(struct token_census *c, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i + 2 <= size; i += 2) {
		c->seen[i / 2 % TOKEN_WIDTH_PLACES][bytes[i] | bytes[i + 1] << 8]++;
		c->count[i / 2 % TOKEN_WIDTH_PLACES]++;
	}
}

/* Numbers in places `first`, `first` + `step`, and so on. */
struct places {
	uint64_t count, small, most; /* most: how often the most frequent one is there */
	uint64_t upper;		     /* fit for upper halves: small, or those of -1 and -100, which pad labels */
	uint64_t sign;		     /* nothing but the sign of a longer number */
	unsigned number;	     /* the most frequent one */
};

static struct places look(const struct token_census *c, unsigned first, unsigned step)
{
	struct places p = {0};

	for (unsigned k = first; k < TOKEN_WIDTH_PLACES; k += step)
		p.count += c->count[k];
	for (unsigned v = 0; v <= UINT16_MAX; v++) {
		uint64_t seen = 0;

		for (unsigned k = first; k < TOKEN_WIDTH_PLACES; k += step)
			seen += c->seen[k][v];
		p.small += v < SMALL ? seen : 0;
		p.upper += v < SMALL || v == UINT16_MAX ? seen : 0;
		p.sign += v == 0 || v == UINT16_MAX ? seen : 0;
		p.number = seen > p.most ? v : p.number;
		p.most = seen > p.most ? seen : p.most;
	}
	return p;
}

/* 95 % */
static bool is_most(uint64_t part, uint64_t whole)
{
	return whole && 100 * part >= 95 * whole;
}

enum token_width token_census_judge(const struct token_census *c, unsigned *percent, unsigned *number)
{
	struct places even = look(c, 0, 2), odd = look(c, 1, 2), place[TOKEN_WIDTH_PLACES];
	const struct places *same = is_most(odd.most, odd.count) ? &odd : &even;

	for (unsigned k = 0; k < TOKEN_WIDTH_PLACES; k++)
		place[k] = look(c, k, TOKEN_WIDTH_PLACES);
	if (odd.count < TOKEN_WIDTH_LEAST)
		return TOKEN_WIDTH_ANY;
	*percent = (unsigned)(100 * same->most / same->count);
	*number = same->number;
	if (is_most(place[2].sign, place[2].count) && is_most(place[3].sign, place[3].count) &&
	    is_most(place[1].upper, place[1].count) && !is_most(place[0].most, place[0].count))
		return TOKEN_WIDTH_64;
	if (is_most(same->most, same->count))
		return TOKEN_WIDTH_REPEAT;
	if (is_most(odd.upper, odd.count) && 2 * even.small < even.count)
		return TOKEN_WIDTH_32;
	return 2 * odd.small < odd.count ? TOKEN_WIDTH_16 : TOKEN_WIDTH_ANY;
}
