/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prng.h - pictures made of numbers, and one number for a picture
 *
 * The same in tests/twin/make_pillow_hashes.py: change both or neither.
 */
#ifndef TESTS_PACK_PRNG_H
#define TESTS_PACK_PRNG_H

#include <stddef.h>
#include <stdint.h>

/* The i-th output of splitmix64 seeded with `seed`. */
static inline uint64_t prng_at(uint64_t seed, uint64_t i)
{
	uint64_t z = seed + (i + 1) * UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/*
 * Byte i of a picture: noise for an even seed, black or white for an odd one (filters overshoot
 * most there).
 */
static inline uint8_t prng_byte(uint64_t seed, uint64_t i)
{
	uint8_t b = (uint8_t)(prng_at(seed, i / 8) >> i % 8 * 8);

	return seed % 2 ? (b < 128 ? 0 : 255) : b;
}

static inline void prng_fill(uint64_t seed, uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = prng_byte(seed, i);
}

/* Each byte weighs a random number of its place. */
static inline uint64_t prng_hash(const uint8_t *bytes, size_t count)
{
	uint64_t sum = count;

	for (size_t i = 0; i < count; i++)
		sum += prng_at(0, i) * (bytes[i] + UINT64_C(1));
	return sum;
}

#endif
