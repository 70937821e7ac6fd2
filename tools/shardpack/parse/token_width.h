/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token_width.h - what the numbers of a file without a head look like: tokens of how many bits, in
 * which byte order, or something else
 *
 * A token of 32 bits is two numbers of 16: the first may be any, the second is 0 for the first
 * 65,536 words of a vocabulary, and below 16 for the first million.  Of tokens of 8 bits the bytes
 * in even and odd places are alike.  Of big-endian ones the numbers become smaller if their bytes
 * are swapped.  A text of 16-bit tokens has no such pattern.  Pure.
 */
#ifndef SHARD_FORMAT_TOKEN_WIDTH_H
#define SHARD_FORMAT_TOKEN_WIDTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKEN_WIDTH_PLACES 4 /* in 64 bits */
#define TOKEN_WIDTH_LEAST  8 /* numbers in every second place, or nothing is said: it could be chance */

enum token_width {
	TOKEN_WIDTH_ANY,      /* nothing speaks against 16 bits, nor for it: too few numbers, or all alike */
	TOKEN_WIDTH_16,	      /* numbers in both places are large and differ */
	TOKEN_WIDTH_32,	      /* in every second place they are below 16 */
	TOKEN_WIDTH_REPEAT,   /* in every second place 95 % of them are equal: 32 bits, or padding */
	TOKEN_WIDTH_64,	      /* in three of four places they are */
	TOKEN_WIDTH_TEXT,     /* nearly all bytes are letters and signs */
	TOKEN_WIDTH_8,	      /* bytes in even and odd places are alike, and not just any */
	TOKEN_WIDTH_16_BE,    /* big-endian: numbers with swapped bytes are far smaller */
	TOKEN_WIDTH_32_BE,    /* ... what speaks for 32 bits is true of numbers with swapped bytes */
	TOKEN_WIDTH_64_BE,    /* ... and for 64 bits */
	TOKEN_WIDTH_FLOATS,   /* exponents of floats near 1 */
	TOKEN_WIDTH_NOISE,    /* all numbers are as frequent, as in what is compressed */
	TOKEN_WIDTH_NEGATIVE, /* -1 or -100, with which labels are padded */
};

struct token_look {
	enum token_width width;
	unsigned percent, number;    /* of REPEAT, 64 and NEGATIVE: how many in these places are which number */
	unsigned most, most_swapped; /* of 16_BE: 99 % of the numbers are at most this; and swapped */
	unsigned bits;		     /* of FLOATS */
	bool alike;		     /* bytes in even and odd places are, so 16 bits are not certain */
	bool negative32;	     /* as numbers of 32 bits some would be negative, if they were signed */
};

/* Start it zeroed; 1 MiB. */
struct token_census {
	uint32_t seen[TOKEN_WIDTH_PLACES][UINT16_MAX + 1]; /* how often, by place and number */
	uint64_t count[TOKEN_WIDTH_PLACES];
};

/* Count the numbers in a piece that begins at a multiple of 8 bytes of the file. */
void token_census_add(struct token_census *c, const uint8_t *bytes, size_t size);

/* False: no memory. */
bool token_census_judge(const struct token_census *c, struct token_look *out);

#endif
