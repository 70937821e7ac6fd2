/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bytes.h - numbers from bytes, and sums that cannot wrap
 *
 * Values that come from a file are uint64_t and meet their limit before they meet an
 * operator.
 */
#ifndef SHARD_BASE_BYTES_H
#define SHARD_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t load16(const void *p)
{
	const uint8_t *b = p;

	return (uint16_t)(b[0] | b[1] << 8);
}

static inline uint32_t load32(const void *p)
{
	const uint8_t *b = p;

	return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static inline uint64_t load64(const void *p)
{
	return load32(p) | (uint64_t)load32((const uint8_t *)p + 4) << 32;
}

static inline void store16(void *p, uint16_t v)
{
	uint8_t *b = p;

	b[0] = (uint8_t)v;
	b[1] = (uint8_t)(v >> 8);
}

static inline void store32(void *p, uint32_t v)
{
	uint8_t *b = p;

	for (int i = 0; i < 4; i++)
		b[i] = (uint8_t)(v >> 8 * i);
}

static inline void store64(void *p, uint64_t v)
{
	store32(p, (uint32_t)v);
	store32((uint8_t *)p + 4, (uint32_t)(v >> 32));
}

static inline bool add_fits(uint64_t a, uint64_t b, uint64_t *sum)
{
	return !__builtin_add_overflow(a, b, sum);
}

static inline bool mul_fits(uint64_t a, uint64_t b, uint64_t *product)
{
	return !__builtin_mul_overflow(a, b, product);
}

/* Sums and products that do not fit are UINT64_MAX. */
static inline uint64_t add_capped(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return add_fits(a, b, &sum) ? sum : UINT64_MAX;
}

static inline uint64_t mul_capped(uint64_t a, uint64_t b)
{
	uint64_t product;

	return mul_fits(a, b, &product) ? product : UINT64_MAX;
}

/* Round up; `align` is a power of two and x at most 2^63. */
static inline uint64_t align_up(uint64_t x, uint64_t align)
{
	return (x + align - 1) & ~(align - 1);
}

static inline uint64_t ceil_div(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

/*
 * Runs lie one behind the other, and run i begins at begin[i], which may be where the next one begins,
 * too.  The last run that begins at `at` or before; begin[0] does.  No branch depends on the numbers,
 * as half of them would be guessed wrong.
 */
static inline uint64_t run_holding(const uint64_t *begin, uint64_t count, uint64_t at)
{
	uint64_t run = 0;

	for (uint64_t half; count > 1; count -= half) {
		half = count / 2;
		run += begin[run + half] <= at ? half : 0;
	}
	return run;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Position of the first byte that is not zero, or `bytes` if there is none. */
static inline size_t first_nonzero(const void *p, size_t bytes)
{
	const uint8_t *b = p;
	size_t i = 0;
	uint64_t word[4];

	for (; bytes - i >= sizeof(word); i += sizeof(word)) {
		memcpy(word, b + i, sizeof(word));
		if (word[0] | word[1] | word[2] | word[3])
			break;
	}
	while (i < bytes && !b[i])
		i++;
	return i;
}

/*
 * Sixteen bytes to compute with at once; comparing two gives 0xff for yes.  The compiler maps it to
 * the machine's vectors.
 */
typedef uint8_t bytes16 __attribute__((vector_size(16)));

#endif
