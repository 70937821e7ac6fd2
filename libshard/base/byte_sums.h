/* SPDX-License-Identifier: Apache-2.0 */
/*
 * byte_sums.h - exact sums over bytes
 */
#ifndef LIBSHARD_BASE_BYTE_SUMS_H
#define LIBSHARD_BASE_BYTE_SUMS_H

#include <stdint.h>

#include "shard_inspect.h"

/* sums[c] gets the bytes c, c + channels, c + 2 * channels and so on. */
void byte_sums_add(const void *data, uint64_t bytes, uint32_t channels, struct shard_moments *sums);

/* Its twin that any machine can run: the same sums. */
void byte_sums_portable(const void *data, uint64_t bytes, uint32_t channels, struct shard_moments *sums);

/* Add the second to the first. */
static inline void byte_sums_merge(struct shard_moments *to, const struct shard_moments *add)
{
	to->count += add->count;
	to->sum += add->sum;
	to->sum_squares_high +=
		add->sum_squares_high + (to->sum_squares_low + add->sum_squares_low < add->sum_squares_low);
	to->sum_squares_low += add->sum_squares_low;
}

#endif
