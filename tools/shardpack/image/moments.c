/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moments.c - sums over bytes, in lanes that compilers turn into vectors
 *
 * LANES is a multiple of 3, so in interleaved pixels lane i only ever meets channel i % 3,
 * and in a plane all lanes meet the same channel.  One loop serves both.  For interleaved pixels, the usual layout, there
 * is a faster one where the processor has AVX2.
 */
#include "tools/shardpack/image/moments.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define LANES 48
/* Rounds until a 32-bit lane of squares may be full: 2^32 / 255^2 = 66,051. */
#define MAX_ROUNDS 66051

struct lanes {
	uint32_t sum[LANES], sum_squares[LANES];
};

static void add_rounds(struct lanes *l, const uint8_t *bytes, size_t round_count)
{
	for (; round_count; round_count--, bytes += LANES)
		for (int i = 0; i < LANES; i++) {
			uint16_t square = (uint16_t)(bytes[i] * bytes[i]);

			l->sum[i] += bytes[i];
			l->sum_squares[i] += square;
		}
}

/* Bytes whose channels repeat first, first + step, ... modulo 3: step 1 interleaved, 0 a plane. */
static void add_bytes(struct moments *m, const uint8_t *bytes, size_t count, int first, int step)
{
	for (size_t rounds = count / LANES; rounds;) {
		size_t now = rounds < MAX_ROUNDS ? rounds : MAX_ROUNDS;
		struct lanes l;

		memset(&l, 0, sizeof(l));
		add_rounds(&l, bytes, now);
		for (int i = 0; i < LANES; i++) {
			int c = (first + i * step) % IMAGE_CHANNELS;

			m->sum[c] += l.sum[i];
			m->sum_squares[c] += l.sum_squares[i];
		}
		bytes += now * LANES;
		rounds -= now;
	}
	for (size_t i = 0; i < count % LANES; i++) {
		int c = (first + (int)i * step) % IMAGE_CHANNELS;

		m->sum[c] += bytes[i];
		m->sum_squares[c] += (uint64_t)bytes[i] * bytes[i];
	}
}

void moments_add_portable(struct moments *m, const uint8_t *record, size_t pixel_count, enum image_layout layout)
{
	if (layout == IMAGE_HWC)
		add_bytes(m, record, pixel_count * IMAGE_CHANNELS, 0, 1);
	for (int c = 0; c < IMAGE_CHANNELS; c++) {
		if (layout == IMAGE_CHW)
			add_bytes(m, record + c * pixel_count, pixel_count, c, 0);
		m->count[c] += pixel_count;
	}
}

#if defined(__x86_64__)

#define ROUND_PIXELS 16
/* Rounds until a 32-bit lane of squares may be full: each adds two pairs of them. */
#define PAIR_ROUNDS (UINT32_MAX / (4 * 255 * 255))

/* Add lanes [from, from + 2) of both halves. */
__attribute__((target("avx2"))) static uint64_t lane_pairs(__m256i v, int from)
{
	uint32_t lane[8];

	_mm256_storeu_si256((void *)lane, v);
	return (uint64_t)lane[from] + lane[from + 1] + lane[from + 4] + lane[from + 5];
}

/* Whole rounds of interleaved pixels; returns how many pixels they are. */
__attribute__((target("avx2"))) static size_t add_rounds_avx2(struct moments *m, const uint8_t *p, size_t pixel_count)
{
	/* Four pixels in each half: their reds, greens and blues, and zeros.  The last four lie 4 bytes behind a load. */
	const __m128i four = _mm_setr_epi8(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1);
	const __m128i last = _mm_setr_epi8(4, 7, 10, 13, 5, 8, 11, 14, 6, 9, 12, 15, -1, -1, -1, -1);
	const __m256i pick[2] = {_mm256_broadcastsi128_si256(four), _mm256_setr_m128i(four, last)};
	const __m256i zero = _mm256_setzero_si256(), one = _mm256_set1_epi16(1);
	size_t rounds = pixel_count / ROUND_PIXELS;

	for (size_t left = rounds; left;) {
		size_t now = left < PAIR_ROUNDS ? left : PAIR_ROUNDS;
		/* Of reds and greens, then of blues. */
		__m256i sum[2] = {zero, zero}, squares[2] = {zero, zero};

		left -= now;
		for (; now; now--, p += ROUND_PIXELS * IMAGE_CHANNELS)
			for (int half = 0; half < 2; half++) {
				__m256i v = _mm256_setr_m128i(_mm_loadu_si128((const void *)(p + 24 * half)),
							      _mm_loadu_si128((const void *)(p + 12 + 20 * half)));
				__m256i rg, b;

				v = _mm256_shuffle_epi8(v, pick[half]);
				rg = _mm256_unpacklo_epi8(v, zero);
				b = _mm256_unpackhi_epi8(v, zero);
				sum[0] = _mm256_add_epi32(sum[0], _mm256_madd_epi16(rg, one));
				sum[1] = _mm256_add_epi32(sum[1], _mm256_madd_epi16(b, one));
				squares[0] = _mm256_add_epi32(squares[0], _mm256_madd_epi16(rg, rg));
				squares[1] = _mm256_add_epi32(squares[1], _mm256_madd_epi16(b, b));
			}
		for (int c = 0; c < IMAGE_CHANNELS; c++) {
			m->sum[c] += lane_pairs(sum[c / 2], c % 2 * 2);
			m->sum_squares[c] += lane_pairs(squares[c / 2], c % 2 * 2);
		}
	}
	for (int c = 0; c < IMAGE_CHANNELS; c++)
		m->count[c] += rounds * ROUND_PIXELS;
	return rounds * ROUND_PIXELS;
}

#endif

void moments_add(struct moments *m, const uint8_t *record, size_t pixel_count, enum image_layout layout)
{
	size_t done = 0;

#if defined(__x86_64__)
	if (layout == IMAGE_HWC && __builtin_cpu_supports("avx2"))
		done = add_rounds_avx2(m, record, pixel_count);
#endif
	moments_add_portable(m, record + done * IMAGE_CHANNELS, pixel_count - done, layout);
}
