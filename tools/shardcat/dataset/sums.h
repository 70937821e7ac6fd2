/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sums.h - sums over the values of one channel, exact for integers
 *
 * Integers are added as integers of 128 bits, so that the order does not matter and nothing is
 * rounded; where they do not suffice (sums of squares of large 64-bit values) it is said, never
 * wrapped.  Floating point is summed in two passes per record.  NaN and infinities are counted and
 * left out.  Pure.
 */
#ifndef SHARD_COUNT_SUMS_H
#define SHARD_COUNT_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#include "shard.h"
#include "shard_pack.h"

typedef __int128 int128;
typedef unsigned __int128 wide_unsigned;

struct sums {			       /* start it zeroed */
	uint64_t count, nan, infinite; /* count: the values that are in the sums */
	bool is_float, overflowed;     /* overflowed: the squares do not fit */

	/* Integers: */
	int128 sum, min, max;
	wide_unsigned squares;

	/* Floating point: */
	long double mean, deviations; /* deviations: sum of squared distances from the mean */
	double float_min, float_max;

	/* Of each record's own mean and standard deviation: */
	uint64_t record_count;
	long double record_means, record_stds;
};

/*
 * Add one record: `count` values, at least one, of each channel.  They are interleaved, or a
 * channel lies behind the other.
 */
#define SUMS_CHANNELS_MAX 16
void sums_add(struct sums *s, uint32_t channels, uint32_t dtype, const uint8_t *data, uint64_t count, bool interleaved);

/* Of the whole population; NaN if there is none, or if the squares overflowed. */
double sums_mean(const struct sums *s);
double sums_std(const struct sums *s);

/* From recorded moments. */
void sums_of_moments(struct sums *s, const struct shard_moments *m);

#define INT128_CHARS 48
const char *int128_text(char out[INT128_CHARS], int128 value);
const char *wide_unsigned_text(char out[INT128_CHARS], wide_unsigned value);

#endif
