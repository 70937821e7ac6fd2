/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sums.c - sums over the values of one channel, exact for integers
 */
#include "tools/shardcat/dataset/cat_dataset.h"

#include <math.h>

#include "shard_pack.h"
#include "tools/shardcat/dataset/number.h"

static bool is_float(uint32_t dtype)
{
	return dtype == SHARD_F16 || dtype == SHARD_BF16 || dtype == SHARD_F32 || dtype == SHARD_F64;
}

/* Add what was counted apart, of values from `min` to `max`. */
static void merge_integers(struct sums *s, const struct sums *part)
{
	if (!part->count)
		return;
	if (!s->count || part->min < s->min)
		s->min = part->min;
	if (!s->count || part->max > s->max)
		s->max = part->max;
	s->count += part->count;
	s->sum += part->sum; /* 2^64 values below 2^64 do not overflow it */
	s->overflowed =
		s->overflowed || part->overflowed || __builtin_add_overflow(s->squares, part->squares, &s->squares);
}

void sums_of_moments(struct sums *s, const struct shard_moments *m)
{
	*s = (struct sums){.count = m->count,
			   .sum = m->sum,
			   .squares = (wide_unsigned)m->sum_squares_high << 64 | m->sum_squares_low};
}

/* The sums are there; the limits are not. */
static void add_bytes(struct sums *part, const struct shard_moments *m, const uint8_t *data, uint64_t count,
		      uint64_t step)
{
	uint8_t min = 255, max = 0;

	for (uint64_t i = 0; i < count; i++) {
		uint8_t value = data[i * step];

		min = value < min ? value : min;
		max = value > max ? value : max;
	}
	sums_of_moments(part, m);
	part->min = min;
	part->max = max;
}

static void add_integers(struct sums *part, uint32_t dtype, const uint8_t *data, uint64_t count, uint64_t step)
{
	uint64_t step_bytes = step * shard_dtype_bytes(dtype);

	for (uint64_t i = 0; i < count; i++, data += step_bytes) {
		int64_t bits = number_integer(dtype, data);
		int128 value = dtype == SHARD_U64 ? (int128)(uint64_t)bits : dtype == SHARD_BOOL ? bits != 0 : bits;
		wide_unsigned size = (wide_unsigned)(value < 0 ? -value : value);

		part->sum += value;
		part->min = !i || value < part->min ? value : part->min;
		part->max = !i || value > part->max ? value : part->max;
		part->overflowed =
			part->overflowed || __builtin_add_overflow(part->squares, size * size, &part->squares);
	}
	part->count = count;
}

static void add_floats(struct sums *part, uint32_t dtype, const uint8_t *data, uint64_t count, uint64_t step)
{
	uint64_t step_bytes = step * shard_dtype_bytes(dtype);
	long double sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		double value = number_double(dtype, data + i * step_bytes);

		if (!isfinite(value)) {
			part->nan += isnan(value) != 0;
			part->infinite += isinf(value) != 0;
			continue;
		}
		part->float_min = !part->count || value < part->float_min ? value : part->float_min;
		part->float_max = !part->count || value > part->float_max ? value : part->float_max;
		part->count++;
		sum += value;
	}
	if (!part->count)
		return;
	part->mean = sum / part->count;
	for (uint64_t i = 0; i < count; i++) {
		double value = number_double(dtype, data + i * step_bytes);

		if (isfinite(value))
			part->deviations += (value - part->mean) * (value - part->mean);
	}
}

/* Chan's rule for the mean and the squared deviations of two parts together. */
static void merge_floats(struct sums *s, const struct sums *part)
{
	uint64_t both = s->count + part->count;
	long double apart = part->mean - s->mean;

	s->nan += part->nan;
	s->infinite += part->infinite;
	if (!part->count)
		return;
	s->float_min = !s->count || part->float_min < s->float_min ? part->float_min : s->float_min;
	s->float_max = !s->count || part->float_max > s->float_max ? part->float_max : s->float_max;
	s->deviations += part->deviations + apart * apart * ((long double)s->count / both) * part->count;
	s->mean += apart * ((long double)part->count / both);
	s->count = both;
}

/* One channel of one record. */
static void add_part(struct sums *s, const struct sums *part)
{
	double std = sums_std(part);

	if (part->is_float)
		merge_floats(s, part);
	else
		merge_integers(s, part);
	if (!isfinite(std))
		return;
	s->record_count++;
	s->record_means += (long double)sums_mean(part);
	s->record_stds += (long double)std;
}

void sums_add(struct sums *s, uint32_t channels, uint32_t dtype, const uint8_t *data, uint64_t count, bool interleaved)
{
	uint64_t step = interleaved ? channels : 1, apart = interleaved ? 1 : count;
	struct shard_moments m[SUMS_CHANNELS_MAX] = {{0}};

	if (dtype == SHARD_U8 && interleaved)
		shard_sum_bytes(data, count * channels, channels, m);
	for (uint32_t c = 0; c < channels; c++) {
		const uint8_t *first = data + c * apart * shard_dtype_bytes(dtype);
		struct sums part = {.is_float = is_float(dtype)};

		s[c].is_float = part.is_float;
		if (dtype == SHARD_U8 && !interleaved)
			shard_sum_bytes(first, count, 1, &m[c]);
		if (part.is_float)
			add_floats(&part, dtype, first, count, step);
		else if (dtype == SHARD_U8)
			add_bytes(&part, &m[c], first, count, step);
		else
			add_integers(&part, dtype, first, count, step);
		add_part(&s[c], &part);
	}
}

double sums_mean(const struct sums *s)
{
	if (!s->count)
		return (double)NAN;
	return (double)(s->is_float ? s->mean : (long double)s->sum / s->count);
}

double sums_std(const struct sums *s)
{
	wide_unsigned size = (wide_unsigned)(s->sum < 0 ? -s->sum : s->sum), squares, square;
	long double mean, variance;

	if (!s->count || s->overflowed)
		return (double)NAN;
	if (s->is_float)
		return (double)sqrtl(s->deviations / s->count);
	/* Without rounding before the division, if the numbers are not too large for that. */
	if (!__builtin_mul_overflow(s->squares, (wide_unsigned)s->count, &squares) &&
	    !__builtin_mul_overflow(size, size, &square))
		return (double)(sqrtl((long double)(squares - square)) / s->count);
	mean = (long double)s->sum / s->count;
	variance = (long double)s->squares / s->count - mean * mean;
	return variance > 0 ? (double)sqrtl(variance) : 0;
}

static void put_digits(char *out, wide_unsigned value)
{
	char digits[INT128_CHARS];
	int count = 0;

	do {
		digits[count++] = (char)('0' + (int)(value % 10));
		value /= 10;
	} while (value);
	while (count)
		*out++ = digits[--count];
	*out = 0;
}

const char *wide_unsigned_text(char out[INT128_CHARS], wide_unsigned value)
{
	put_digits(out, value);
	return out;
}

const char *int128_text(char out[INT128_CHARS], int128 value)
{
	out[0] = '-';
	put_digits(out + (value < 0), (wide_unsigned)(value < 0 ? -value : value));
	return out;
}
