/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize_avx2.c - the inner loops of the resampler with 256-bit vectors
 *
 * Compiled by function attribute, chosen at run time.  Elsewhere this file only says that it has
 * nothing to offer.
 *
 * The instruction that pays is the one that multiplies pairs of 16-bit words and adds the two
 * products.  A weight k has up to 24 bits, sign included, so it is taken apart: k = low + 256 *
 * high, where low is 0 to 255 and high fits a word, since no weight of any filter reaches 2 (the
 * greatest, Lanczos at the edge of two samples, is below 1.3).
 *
 * Across, one sample p meets one weight: the pair (p, 256 * (p - 128)) times (low, high) is p * k
 * less 2^15 * high, which does not depend on the image and is added beforehand.  Both words of the
 * pair are bytes of p at a place, so one shuffle makes them.  Down, a pair is two rows' samples,
 * and low and high parts are summed apart.
 */
#include "tools/shardpack/images/images.h"

#include <string.h>

#include "libshard/base/cpu.h"

#if !defined(__x86_64__)

const struct resize_passes *resize_passes_avx2(void)
{
	return NULL;
}

#else

#include <immintrin.h>

#define AVX2	    __attribute__((target("avx2")))
#define AVX2_INLINE __attribute__((target("avx2"), always_inline)) static inline

#define HALF	   (1 << (TAPS_FRACTION_BITS - 1))
#define LOW_BITS   8
#define ROWS	   RESIZE_ROWS_AT_ONCE
#define PIXELS	   4  /* of the output, at once: their 12 samples fill a vector well */
#define STEP_BYTES 16 /* of each row, at once, when rows are widened */

/* Two words as _mm256_madd_epi16 takes them. */
static inline int32_t word_pair(int32_t a, int32_t b)
{
	return (int32_t)((uint32_t)(a & 0xffff) | (uint32_t)b << 16);
}

static inline int32_t low_part(int32_t k)
{
	return k & ((1 << LOW_BITS) - 1);
}

static inline int32_t high_part(int32_t k)
{
	return k >> LOW_BITS; /* arithmetic */
}

/* ---- across: eight rows at a time, one in each 32-bit lane ---- */

/*
 * All samples get as many weights as the one with most, so that loops run the same length: the
 * others are filled with zeros behind, or before where the image ends.  The weights lie close.
 */
static void pack_across(struct resize_table *t)
{
	uint32_t taps = 1, old_stride = t->per_sample;

	for (uint32_t i = 0; i < t->axis.count; i++)
		if (taps < t->range[i].count)
			taps = t->range[i].count;
	for (uint32_t i = 0; i < t->axis.count; i++) {
		struct taps_range *range = &t->range[i];
		int32_t *to = t->weight + (size_t)i * taps;
		uint32_t back = range->first > t->axis.in - taps ? range->first - (t->axis.in - taps) : 0, sum = 0;

		memmove(to + back, t->weight + (size_t)i * old_stride, range->count * sizeof(*to));
		memset(to, 0, back * sizeof(*to));
		memset(to + back + range->count, 0, (taps - back - range->count) * sizeof(*to));
		for (uint32_t n = 0; n < taps; n++) {
			sum += (uint32_t)high_part(to[n]);
			to[n] = word_pair(low_part(to[n]), high_part(to[n]));
		}
		t->start[i] = (int32_t)(HALF + (sum << 15));
		range->first -= back;
		range->count = taps;
	}
	t->per_sample = taps;
}

/*
 * One group of pixels never needs more columns than this; a block has as many groups as have room
 * in it.
 */
static size_t block_columns(const struct resize_table *t)
{
	uint32_t most = 128;

	for (uint32_t i = 0; i < t->axis.count; i += PIXELS) {
		uint32_t last = i + PIXELS <= t->axis.count ? i + PIXELS - 1 : t->axis.count - 1;

		if (most < t->range[last].first + t->per_sample - t->range[i].first)
			most = t->range[last].first + t->per_sample - t->range[i].first;
	}
	return most;
}

static size_t work_bytes(const struct resize_table *across)
{
	return (block_columns(across) * IMAGE_CHANNELS + STEP_BYTES) * sizeof(__m256i);
}

/* Four dwords of each of four vectors, within lanes: rows to columns. */
AVX2_INLINE void transpose_dwords(__m256i v[4])
{
	__m256i a = _mm256_unpacklo_epi32(v[0], v[1]), b = _mm256_unpackhi_epi32(v[0], v[1]);
	__m256i c = _mm256_unpacklo_epi32(v[2], v[3]), d = _mm256_unpackhi_epi32(v[2], v[3]);

	v[0] = _mm256_unpacklo_epi64(a, c);
	v[1] = _mm256_unpackhi_epi64(a, c);
	v[2] = _mm256_unpacklo_epi64(b, d);
	v[3] = _mm256_unpackhi_epi64(b, d);
}

/*
 * STEP_BYTES of each row to as many vectors; lane r of a vector is the word pair of row r's sample.
 */
AVX2_INLINE void widen_step(const uint8_t *const row[ROWS], size_t at, __m256i *wide)
{
	const __m256i flip = _mm256_set1_epi32((int32_t)0x80000000);
	const __m256i pick =
		_mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, -1, 0, 4, -1, -1, 4, 8, -1, -1, 8, 12, -1, -1, 12));
	const __m256i next = _mm256_set1_epi32(0x01000001); /* makes a mask pick the samples behind */
	__m256i v[4], mask = pick;

	for (int i = 0; i < 4; i++)
		v[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)(row[i] + at))),
					       _mm_loadu_si128((const void *)(row[i + 4] + at)), 1);
	transpose_dwords(v);
	for (int n = 0; n < 4; n++, mask = _mm256_add_epi32(mask, next))
		for (int i = 0; i < 4; i++)
			_mm256_store_si256(wide + 4 * i + n, _mm256_xor_si256(_mm256_shuffle_epi8(v[i], mask), flip));
}

AVX2 static void widen(const uint8_t *const row[ROWS], size_t from, size_t bytes, __m256i *wide)
{
	size_t i = 0;

	for (; i + STEP_BYTES <= bytes; i += STEP_BYTES)
		widen_step(row, from + i, wide + i);
	if (i < bytes) { /* nothing is read behind a row: it may be the image's last */
		uint8_t tail[ROWS][STEP_BYTES] = {{0}};
		const uint8_t *tails[ROWS];

		for (int r = 0; r < ROWS; r++) {
			memcpy(tail[r], row[r] + from + i, bytes - i);
			tails[r] = tail[r];
		}
		widen_step(tails, 0, wide + i);
	}
}

/* The three samples of a pixel, of eight rows. */
AVX2_INLINE void weigh(const __m256i *in, const int32_t *w, uint32_t taps, int32_t start, __m256i out[3])
{
	__m256i r = _mm256_set1_epi32(start), g = r, b = r;

	for (uint32_t n = 0; n < taps; n++, in += IMAGE_CHANNELS) {
		__m256i k = _mm256_set1_epi32(w[n]);

		r = _mm256_add_epi32(r, _mm256_madd_epi16(in[0], k));
		g = _mm256_add_epi32(g, _mm256_madd_epi16(in[1], k));
		b = _mm256_add_epi32(b, _mm256_madd_epi16(in[2], k));
	}
	out[0] = _mm256_srai_epi32(r, TAPS_FRACTION_BITS);
	out[1] = _mm256_srai_epi32(g, TAPS_FRACTION_BITS);
	out[2] = _mm256_srai_epi32(b, TAPS_FRACTION_BITS);
}

/*
 * Twelve vectors of eight rows' samples to twelve bytes in each of eight rows, and four more that
 * mean nothing.
 */
AVX2_INLINE void store_pixels(const __m256i sample[12], uint8_t *const row[ROWS], size_t at)
{
	const __m256i bytes_to_rows =
		_mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
	__m256i v[4];

	for (int i = 0; i < 3; i++) {
		const __m256i *s = sample + 4 * i;
		__m256i packed = _mm256_packus_epi16(_mm256_packs_epi32(s[0], s[1]), _mm256_packs_epi32(s[2], s[3]));

		v[i] = _mm256_shuffle_epi8(packed, bytes_to_rows);
	}
	v[3] = v[2];
	transpose_dwords(v);
	for (int i = 0; i < 4; i++) {
		_mm_storeu_si128((void *)(row[i] + at), _mm256_castsi256_si128(v[i]));
		_mm_storeu_si128((void *)(row[i + 4] + at), _mm256_extracti128_si256(v[i], 1));
	}
}

/*
 * Pixels [from, end) of the output; `wide` begins with column `base`.  `taps` is a constant where
 * it is inlined so.
 */
AVX2_INLINE void weigh_block(const struct resize_table *t, uint32_t from, uint32_t end, uint32_t taps,
			     const __m256i *wide, uint32_t base, uint8_t *const dst[ROWS])
{
	for (uint32_t i = from; i < end; i += PIXELS) {
		__m256i sample[IMAGE_CHANNELS * PIXELS];

		for (uint32_t n = 0; n < PIXELS; n++) {
			uint32_t x = i + n < t->axis.count ? i + n : t->axis.count - 1;

			weigh(wide + IMAGE_CHANNELS * (size_t)(t->range[x].first - base), t->weight + (size_t)x * taps,
			      taps, t->start[x], sample + IMAGE_CHANNELS * n);
		}
		store_pixels(sample, dst, IMAGE_CHANNELS * (size_t)i);
	}
}

AVX2 static void horizontal(const struct resize_table *t, const uint8_t *src, size_t src_stride_bytes,
			    uint32_t row_count, void *work, uint8_t *dst, size_t dst_stride_bytes)
{
	const uint8_t *in[ROWS];
	uint8_t *out[ROWS];
	__m256i *wide = work;
	size_t most = block_columns(t);
	uint32_t count = t->axis.count, taps = t->per_sample, end;

	for (uint32_t r = 0; r < ROWS; r++) { /* rows that are not there are the last one again */
		uint32_t y = r < row_count ? r : row_count - 1;

		in[r] = src + y * src_stride_bytes;
		out[r] = dst + y * dst_stride_bytes;
	}
	for (uint32_t i = 0; i < count; i = end) {
		uint32_t base = t->range[i].first, columns = 0;

		for (end = i; end < count;) {
			uint32_t more = end + PIXELS < count ? end + PIXELS : count;

			if (t->range[more - 1].first + taps - base > most)
				break;
			columns = t->range[more - 1].first + taps - base;
			end = more;
		}
		widen(in, IMAGE_CHANNELS * (size_t)(base - t->range[0].first), IMAGE_CHANNELS * (size_t)columns, wide);
		switch (taps) {
		case 2:
			weigh_block(t, i, end, 2, wide, base, out);
			break;
		case 3:
			weigh_block(t, i, end, 3, wide, base, out);
			break;
		case 4:
			weigh_block(t, i, end, 4, wide, base, out);
			break;
		default:
			weigh_block(t, i, end, taps, wide, base, out);
		}
	}
}

/* ---- down: 32 samples of a row at a time ---- */

/*
 * Weights in pairs: a word pair of low parts, then one of high parts.  An odd one has a zero beside
 * it.
 */
static void pack_down(struct resize_table *t)
{
	for (uint32_t i = 0; i < t->axis.count; i++) {
		int32_t *w = t->weight + (size_t)i * t->per_sample;

		for (uint32_t n = 0; n < t->range[i].count; n += 2) {
			int32_t a = w[n], b = w[n + 1];

			w[n] = word_pair(low_part(a), low_part(b));
			w[n + 1] = word_pair(high_part(a), high_part(b));
		}
	}
}

AVX2_INLINE __m256i vertical_block(const uint8_t *src, size_t stride_bytes, const int32_t *w, uint32_t count)
{
	const __m256i zero = _mm256_setzero_si256();
	__m256i low[4], high[4];

	for (int i = 0; i < 4; i++) {
		low[i] = _mm256_set1_epi32(HALF);
		high[i] = zero;
	}
	for (uint32_t n = 0; n < count; n += 2, src += 2 * stride_bytes) {
		__m256i kl = _mm256_set1_epi32(w[n]), kh = _mm256_set1_epi32(w[n + 1]);
		__m256i a = _mm256_load_si256((const void *)src);
		__m256i b = _mm256_load_si256((const void *)(n + 1 < count ? src + stride_bytes : src));
		__m256i lo = _mm256_unpacklo_epi8(a, b), hi = _mm256_unpackhi_epi8(a, b);
		__m256i p[4] = {_mm256_unpacklo_epi8(lo, zero), _mm256_unpackhi_epi8(lo, zero),
				_mm256_unpacklo_epi8(hi, zero), _mm256_unpackhi_epi8(hi, zero)};

		for (int i = 0; i < 4; i++) {
			low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(p[i], kl));
			high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(p[i], kh));
		}
	}
	for (int i = 0; i < 4; i++)
		low[i] = _mm256_srai_epi32(_mm256_add_epi32(low[i], _mm256_slli_epi32(high[i], LOW_BITS)),
					   TAPS_FRACTION_BITS);
	return _mm256_packus_epi16(_mm256_packs_epi32(low[0], low[1]), _mm256_packs_epi32(low[2], low[3]));
}

#define BLOCK 32

AVX2 static void vertical(const struct resize_table *t, uint32_t y, const uint8_t *src, size_t stride_bytes,
			  uint8_t *dst, size_t sample_count)
{
	const int32_t *w = t->weight + (size_t)y * t->per_sample;
	uint32_t count = t->range[y].count;
	size_t i = 0;

	for (; i + BLOCK <= sample_count; i += BLOCK)
		_mm256_storeu_si256((void *)(dst + i), vertical_block(src + i, stride_bytes, w, count));
	if (i < sample_count) {
		/* Rows between the passes may be read to the end of the block, but not written. */
		uint8_t tail[BLOCK];

		_mm256_storeu_si256((void *)tail, vertical_block(src + i, stride_bytes, w, count));
		memcpy(dst + i, tail, sample_count - i);
	}
}

/* ---- planes ---- */

/* Of three vectors, every third byte, from byte c on: third[c][i] picks those of vector i. */
static const int8_t third[IMAGE_CHANNELS][3][16] = {
	{
		{0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
		{-1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14, -1, -1, -1, -1, -1},
		{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1, 4, 7, 10, 13},
	},
	{
		{1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
		{-1, -1, -1, -1, -1, 0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1},
		{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14},
	},
	{
		{2, 5, 8, 11, 14, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
		{-1, -1, -1, -1, -1, 1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1},
		{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 3, 6, 9, 12, 15},
	},
};

AVX2 static void split(const uint8_t *src, size_t pixel_count, uint8_t *dst, size_t plane_bytes)
{
	size_t i = 0;

	for (; i + 16 <= pixel_count; i += 16, src += 48, dst += 16) {
		const __m128i v[3] = {_mm_loadu_si128((const void *)src), _mm_loadu_si128((const void *)(src + 16)),
				      _mm_loadu_si128((const void *)(src + 32))};

		for (size_t c = 0; c < IMAGE_CHANNELS; c++) {
			__m128i out = _mm_setzero_si128();

			for (int n = 0; n < 3; n++)
				out = _mm_or_si128(out,
						   _mm_shuffle_epi8(v[n], _mm_loadu_si128((const void *)third[c][n])));
			_mm_storeu_si128((void *)(dst + c * plane_bytes), out);
		}
	}
	resize_passes_portable.split(src, pixel_count - i, dst, plane_bytes);
}

const struct resize_passes *resize_passes_avx2(void)
{
	static const struct resize_passes passes = {
		.pack_across = pack_across,
		.pack_down = pack_down,
		.work_bytes = work_bytes,
		.horizontal = horizontal,
		.vertical = vertical,
		.split = split,
	};

	return cpu_has_avx2() ? &passes : NULL;
}

#endif
