/* SPDX-License-Identifier: Apache-2.0 */
/*
 * byte_sums.c - exact sums over bytes of one or more interleaved channels
 *
 * Sums of a piece fit 32 bits and are then added to those of 64 or 128.  Where the processor
 * has AVX2, one loop serves 1 to 4 channels, which are what images have; any other case is a loop
 * in lanes that compilers turn into vectors.
 */
#include "libshard/base/byte_sums.h"

#include <string.h>

#include "libshard/base/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Lane i only meets channel i % channels, if the number of channels divides that of the lanes. */
#define LANES		48
#define LANE_ROUNDS_MAX 66051 /* 255 * 255 * 66,051 < 2^32 */

static void add(struct shard_moments *to, uint64_t count, uint64_t sum, uint64_t squares)
{
	const struct shard_moments m = {count, sum, squares, 0};

	byte_sums_merge(to, &m);
}

/* Any number of channels, one after the other. */
static void add_plainly(const uint8_t *at, uint64_t bytes, uint32_t channels, struct shard_moments *sums)
{
	for (uint32_t c = 0; c < channels && c < bytes; c++) {
		uint64_t count = 0, sum = 0, squares = 0;

		for (uint64_t i = c; i < bytes; i += channels, count++) {
			sum += at[i];
			squares += (uint32_t)at[i] * at[i];
		}
		add(&sums[c], count, sum, squares);
	}
}

void byte_sums_portable(const void *data, uint64_t bytes, uint32_t channels, struct shard_moments *sums)
{
	const uint8_t *at = data;
	uint64_t rounds = LANES % channels ? 0 : bytes / LANES;

	bytes -= rounds * LANES;
	while (rounds) {
		uint64_t now = rounds < LANE_ROUNDS_MAX ? rounds : LANE_ROUNDS_MAX;
		uint32_t sum[LANES] = {0}, squares[LANES] = {0};

		for (uint64_t r = 0; r < now; r++, at += LANES)
			for (int i = 0; i < LANES; i++) {
				uint16_t square = (uint16_t)(at[i] * at[i]);

				sum[i] += at[i];
				squares[i] += square;
			}
		for (uint32_t i = 0; i < LANES; i++)
			add(&sums[i % channels], now, sum[i], squares[i]);
		rounds -= now;
	}
	add_plainly(at, bytes, channels, sums);
}

#if defined(__x86_64__)

#define AVX2_CHANNELS_MAX 4
/* Each round adds two squares to a sum of 32 bits. */
#define AVX2_ROUNDS_MAX (UINT32_MAX / (2 * 255 * 255))

/*
 * How 16 bytes from one place, or the first 12 if there are three channels, are put into four groups
 * of four bytes: the ones of group g belong to channel g % channels.  -1 makes a zero, which
 * adds nothing.
 */
static const int8_t groups_of[AVX2_CHANNELS_MAX][16] = {
	{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	{0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15},
	{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1},
	{0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15},
};

/* The sum of lanes [from, from + 2) of both halves. */
__attribute__((target("avx2"))) static uint64_t lane_pairs(__m256i v, uint32_t from)
{
	uint32_t lane[8];

	_mm256_storeu_si256((void *)lane, v);
	return (uint64_t)lane[from] + lane[from + 1] + lane[from + 4] + lane[from + 5];
}

/* Each round adds two times `step` bytes.  The last one reads 16 - step bytes behind them. */
__attribute__((target("avx2"))) static void add_rounds(const uint8_t *p, uint64_t rounds, uint32_t step,
						       uint32_t channels, struct shard_moments *sums)
{
	const __m256i zero = _mm256_setzero_si256(), one = _mm256_set1_epi16(1);
	const __m256i pick = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)groups_of[channels - 1]));
	__m256i sum[2] = {zero, zero}, squares[2] = {zero, zero}; /* of groups 0 and 1, and of 2 and 3 */

	for (uint64_t i = 0; i < rounds; i++, p += 2 * step) {
		__m256i v =
			_mm256_setr_m128i(_mm_loadu_si128((const void *)p), _mm_loadu_si128((const void *)(p + step)));
		__m256i low, high;

		v = _mm256_shuffle_epi8(v, pick);
		low = _mm256_unpacklo_epi8(v, zero);
		high = _mm256_unpackhi_epi8(v, zero);
		sum[0] = _mm256_add_epi32(sum[0], _mm256_madd_epi16(low, one));
		sum[1] = _mm256_add_epi32(sum[1], _mm256_madd_epi16(high, one));
		squares[0] = _mm256_add_epi32(squares[0], _mm256_madd_epi16(low, low));
		squares[1] = _mm256_add_epi32(squares[1], _mm256_madd_epi16(high, high));
	}
	for (uint32_t g = 0; g < 4; g++)
		add(&sums[g % channels], 4 * g < step ? 8 * rounds : 0, lane_pairs(sum[g / 2], g % 2 * 2),
		    lane_pairs(squares[g / 2], g % 2 * 2));
}

/* All rounds that read no byte behind the end; returns how many bytes they are. */
static uint64_t add_avx2(const uint8_t *p, uint64_t bytes, uint32_t channels, struct shard_moments *sums)
{
	uint32_t step = channels == 3 ? 12 : 16;
	uint64_t rounds = bytes < 16 ? 0 : (bytes - (16 - step)) / (2 * step), left = rounds;

	while (left) {
		uint64_t now = left < AVX2_ROUNDS_MAX ? left : AVX2_ROUNDS_MAX;

		add_rounds(p, now, step, channels, sums);
		p += now * 2 * step;
		left -= now;
	}
	return rounds * 2 * step;
}

#endif

void byte_sums_add(const void *data, uint64_t bytes, uint32_t channels, struct shard_moments *sums)
{
	const uint8_t *at = data;
	uint64_t done = 0;

#if defined(__x86_64__)
	if (channels <= AVX2_CHANNELS_MAX && cpu_has_avx2())
		done = add_avx2(at, bytes, channels, sums);
#endif
	byte_sums_portable(at + done, bytes - done, channels, sums); /* `done` is whole pixels */
}
