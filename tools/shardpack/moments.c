/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moments.c - sums over bytes, in lanes that compilers turn into vectors
 *
 * LANES is a multiple of 3, so in interleaved pixels lane i only ever meets channel i % 3,
 * and in a plane all lanes meet the same channel.  One loop serves both.
 */
#include "tools/shardpack/moments.h"

#include <string.h>

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

void moments_add(struct moments *m, const uint8_t *record, size_t pixel_count, enum image_layout layout)
{
	if (layout == IMAGE_HWC)
		add_bytes(m, record, pixel_count * IMAGE_CHANNELS, 0, 1);
	for (int c = 0; c < IMAGE_CHANNELS; c++) {
		if (layout == IMAGE_CHW)
			add_bytes(m, record + c * pixel_count, pixel_count, c, 0);
		m->count[c] += pixel_count;
	}
}

void moments_merge(struct moments *m, const struct moments *other)
{
	for (int c = 0; c < IMAGE_CHANNELS; c++) {
		m->count[c] += other->count[c];
		m->sum[c] += other->sum[c];
		m->sum_squares[c] += other->sum_squares[c];
	}
}
