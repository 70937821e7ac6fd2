/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token.h - a place in an order as one line of text
 *
 *   shuffle-v1 two_levels N 1000000 r 128 w 40 L 64 u 1 seed 7 epoch 3 position 65536
 *   dataset 66e2... subset all pixels pillow-13 check 0123456789abcdef
 *
 * The token of a mixture begins with mix-v1, and has `mixture` and its digest in place of dataset
 * and subset.  N is the length of its epochs.
 *
 * The words are those of format/ORDER.md.  `pixels` is there only if images are resized: it says
 * whose pixels that gives.  `subset` is followed by `all`, or by the digest of a selection: then N
 * is the number of its records.  `check` is the XXH3-64 of the text before it, so a token that lost
 * a digit is refused.  There is only one way to write a place.
 */
#ifndef SHARD_LOADER_TOKEN_H
#define SHARD_LOADER_TOKEN_H

#include <stdbool.h>

#include "libshard/order/order.h"
#include "shard.h"

struct token {
	struct order_params params; /* of the token's epoch */
	uint64_t position;
	bool is_mix;
	char dataset_id[65]; /* or the digest of the mixture */
	char selection[65];  /* its digest; empty: all records */
	uint32_t pixels;     /* enum shard_pixels; SHARD_PIXELS_RECIPE: the token does not say */
};

void token_write(const struct token *t, char text[SHARD_TOKEN_BYTES]);
bool token_read(const char *text, struct token *t); /* false: token_write() has not written this */

#endif
