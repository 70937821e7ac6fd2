/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_width.h - how wide the tokens of a file without a head are, by what its numbers look like
 *
 * A token of 32 bits is two numbers of 16: the first may be any, the second is 0 for the first
 * 65,536 words of a vocabulary, and below 16 for the first million.  A text of 16-bit tokens has no
 * such pattern.  Pure.
 */
#ifndef SHARD_FORMAT_TOKEN_WIDTH_H
#define SHARD_FORMAT_TOKEN_WIDTH_H

#include <stddef.h>
#include <stdint.h>

#define TOKEN_WIDTH_PLACES 4 /* in 64 bits */
#define TOKEN_WIDTH_LEAST  8 /* numbers in every second place, or nothing is said: it could be chance */

enum token_width {
	TOKEN_WIDTH_ANY,    /* nothing speaks against 16 bits, nor for it: too few numbers, or all alike */
	TOKEN_WIDTH_16,	    /* numbers in both places are large and differ */
	TOKEN_WIDTH_32,	    /* in every second place they are below 16 */
	TOKEN_WIDTH_REPEAT, /* in every second place 95 % of them are equal: 32 bits, or padding */
	TOKEN_WIDTH_64,	    /* in three of four places they are */
};

/* Start it zeroed; 1 MiB. */
struct token_census {
	uint32_t seen[TOKEN_WIDTH_PLACES][UINT16_MAX + 1]; /* how often, by place and number */
	uint64_t count[TOKEN_WIDTH_PLACES];
};

/* Count the numbers in a piece that begins at a multiple of 8 bytes of the file. */
void token_census_add(struct token_census *c, const uint8_t *bytes, size_t size);

/* `percent` and `number`: of REPEAT and 64, how many in every second place are which number. */
enum token_width token_census_judge(const struct token_census *c, unsigned *percent, unsigned *number);

#endif
