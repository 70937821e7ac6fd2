/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.h - random words that are computed, not drawn in sequence: format/ORDER.md, part 2
 *
 * The constants and mix() are those of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).  Changing
 * anything here changes every order.
 */
#ifndef SHARD_ORDER_RANDOM_H
#define SHARD_ORDER_RANDOM_H

#include <stdint.h>

#define RANDOM_G  0x9e3779b97f4a7c15u
#define RANDOM_M1 0xbf58476d1ce4e5b9u
#define RANDOM_M2 0x94d049bb133111ebu

/*
 * Streams keep the draws for different purposes apart.  ORDER.md, parts 2 to 6, has 1 to 15;
 * augmentation and mixtures follow.
 */
enum random_stream {
	RANDOM_RECORDS = 1,
	RANDOM_PHASE = 2,
	RANDOM_RUNS = 3,
	RANDOM_WINDOWS = 4,
	RANDOM_TWEAKS = 5,
	RANDOM_TABLE = 6,
	RANDOM_REST = 7,
	RANDOM_FINISH = 16,    /* docs/TRANSFORM.md */
	RANDOM_MIX_SLOTS = 17, /* ORDER.md, part 12 */
	RANDOM_MIX_SEEDS = 18,
};

static inline uint64_t random_mix(uint64_t z)
{
	z = (z ^ z >> 30) * RANDOM_M1;
	z = (z ^ z >> 27) * RANDOM_M2;
	return z ^ z >> 31;
}

/* Half of the work of mix, for the rounds of a Feistel network, which use the high bits only. */
static inline uint64_t random_scramble(uint64_t z)
{
	z *= RANDOM_M1;
	return (z ^ z >> 32) * RANDOM_M2;
}

static inline uint64_t random_absorb(uint64_t h, uint64_t x)
{
	return random_mix((h ^ x) + RANDOM_G);
}

static inline uint64_t random_key(uint64_t seed, uint64_t epoch, uint64_t stream)
{
	return random_absorb(random_absorb(random_absorb(0, seed), epoch), stream);
}

static inline uint64_t random_draw(uint64_t key, uint64_t i)
{
	return random_mix(key + (i + 1) * RANDOM_G);
}

/* Scales a random word to [0, n).  Its bias is at most n / 2^64. */
static inline uint64_t random_below(uint64_t h, uint64_t n)
{
	return (uint64_t)((unsigned __int128)h * n >> 64);
}

#endif
