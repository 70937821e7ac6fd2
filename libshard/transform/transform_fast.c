/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform_fast.c - transforming one row on a CPU with AVX2: the bits of transform_twin()
 *
 * Sums of samples and weights are made by the instruction that multiplies pairs of 16-bit words and
 * adds the two products.  A weight has 22 bits behind the point and none above 1, so it is taken
 * apart: low + 256 * high, where low is 0 to 255 and high at most 2^14.  Both parts are summed in
 * integers of 32 bits, and added at the end.  Integers do not round, so the sums are those of the
 * twin.  A weight without a partner has a weight of 0 beside it.
 */
#include "libshard/transform/transform.h"

#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/cpu.h"

#define CHANNELS 3u

#if !defined(__x86_64__)

bool transform_fast_applies(const struct transform_plan *p)
{
	(void)p;
	return false;
}

uint64_t transform_fast_bytes(const struct transform_plan *p)
{
	(void)p;
	return 0;
}

bool transform_fast(const struct transform_plan *p, const struct shard_transform_row *row,
		    const struct transform_image *image, void *out, void *scratch)
{
	(void)p, (void)row, (void)image, (void)out, (void)scratch;
	return false;
}

#else

#include <immintrin.h>

#define AVX2	     __attribute__((target("avx2")))
#define AVX2_INLINE  __attribute__((target("avx2"), always_inline)) static inline
#define HALF	     (1 << (TRANSFORM_FRACTION_BITS - 1))
#define LOW_BITS     8
#define READ_BYTES   8u	  /* a pair of pixels is read with this many */
#define DOWN_BYTES   16u  /* samples of a line that are summed together */
#define MIRRORED     5u	  /* pixels */
#define STREAM_BYTES 800u /* the least part of a line that goes past the caches */

/* Weights of a pair of taps for two neighbouring pixels of the output, a pixel in each half. */
struct pair {
	__m256i low, high;
};

/* Parts of the scratch. */
struct fast {
	struct pair *across; /* [width / 2, rounded up][pairs] */
	__m256i *down_low;   /* [down_pairs] of the line that is made */
	__m256i *down_high;  /* [down_pairs] */
	uint32_t *first;     /* [width + 1] first tap of each pixel, in bytes */
	int32_t *weight;     /* [most taps] */
	uint8_t *last;	     /* a copy of a line, with room behind it */
	uint8_t *line;	     /* [pitch] */
	uint8_t *numbers;    /* of a line of the output, or of one of its planes */
	uint8_t *lines;	     /* [in_height + 1][pitch] resized across */
	uint32_t pairs;	     /* of taps, of each pixel of a row */
	uint32_t across_most, down_most;
	size_t pitch;
};

bool transform_fast_applies(const struct transform_plan *p)
{
	return !p->in_is_planar && p->channels == CHANNELS && cpu_has_avx2();
}

/* Lays the parts out from `base` on. */
static uint64_t lay_out(const struct transform_plan *p, uint8_t *base, struct fast *f)
{
	uint64_t at = 0;

	f->across_most = transform_taps_most(p->in_width, p->width) + 1;
	f->down_most = transform_taps_most(p->in_height, p->height) + 1;
	f->pitch = align_up((size_t)p->width * CHANNELS + READ_BYTES, 32);
	f->across = (struct pair *)(void *)(base + at);
	at += (uint64_t)((p->width + 1) / 2) * ((f->across_most + 1) / 2) * sizeof(struct pair);
	f->down_low = (__m256i *)(void *)(base + at);
	at += (uint64_t)((f->down_most + 1) / 2) * sizeof(__m256i);
	f->down_high = (__m256i *)(void *)(base + at);
	at += (uint64_t)((f->down_most + 1) / 2) * sizeof(__m256i);
	f->first = (uint32_t *)(void *)(base + at);
	at += align_up(((uint64_t)p->width + 1) * sizeof(*f->first), 32);
	f->weight = (int32_t *)(void *)(base + at);
	at += align_up((f->across_most > f->down_most ? f->across_most : f->down_most) * sizeof(*f->weight), 32);
	f->last = base + at;
	at += align_up(((uint64_t)p->in_width + f->across_most) * CHANNELS + READ_BYTES, 32);
	f->line = base + at;
	at += f->pitch;
	f->numbers = base + at;
	at += align_up((uint64_t)p->width * CHANNELS * p->element_bytes + 1, 32); /* 1: see mirror_8() */
	f->lines = base + at;
	return at + (p->crop == SHARD_CROP_RESIZED ? ((uint64_t)p->in_height + 1) * f->pitch : 0);
}

uint64_t transform_fast_bytes(const struct transform_plan *p)
{
	static uint8_t nowhere[1]; /* no arithmetic on NULL */
	struct fast f;

	return lay_out(p, nowhere, &f);
}

/* ---- weights ---- */

static inline int32_t low_part(int32_t a, int32_t b)
{
	return (a & ((1 << LOW_BITS) - 1)) | (b & ((1 << LOW_BITS) - 1)) << 16;
}

static inline int32_t high_part(int32_t a, int32_t b)
{
	return a >> LOW_BITS | (b >> LOW_BITS) << 16;
}

/* Pairs of taps that the pixel with most taps has. */
static uint32_t count_pairs(uint32_t in, uint32_t out, uint32_t most)
{
	uint32_t taps = transform_taps_most(in, out);

	return ((taps < most ? taps : most) + 1) / 2;
}

/* Of a row: the weights of all pixels. */
AVX2 static void fill_across(const struct transform_plan *p, const struct shard_transform_row *row, struct fast *f)
{
	uint32_t first_of_last = 0;

	f->pairs = count_pairs(row->width, p->width, f->across_most);
	for (uint32_t x = 0; x < p->width; x++) {
		struct transform_taps taps = transform_taps_fill(row->width, p->width, x, f->weight, 2 * f->pairs);
		int32_t *to = (int32_t *)(void *)(f->across + (size_t)(x / 2) * f->pairs) + (x & 1) * 4;

		f->first[x] = first_of_last = taps.first * CHANNELS;
		for (uint32_t k = 0; k < f->pairs; k++, to += sizeof(struct pair) / sizeof(*to))
			for (int i = 0; i < 4; i++) {
				to[i] = low_part(f->weight[2 * k], f->weight[2 * k + 1]);
				to[i + 8] = high_part(f->weight[2 * k], f->weight[2 * k + 1]);
			}
	}
	f->first[p->width] = first_of_last; /* the partner of the last pixel, which nobody uses */
}

/* Of line y of the output.  Returns the first line of the part, and how many pairs. */
AVX2 static struct transform_taps fill_down(const struct transform_plan *p, const struct shard_transform_row *row,
					    uint32_t y, struct fast *f)
{
	uint32_t pairs = count_pairs(row->height, p->height, f->down_most);
	struct transform_taps taps = transform_taps_fill(row->height, p->height, y, f->weight, 2 * pairs);

	taps.count = (uint16_t)((taps.count + 1) / 2);
	for (uint32_t k = 0; k < taps.count; k++) {
		f->down_low[k] = _mm256_set1_epi32(low_part(f->weight[2 * k], f->weight[2 * k + 1]));
		f->down_high[k] = _mm256_set1_epi32(high_part(f->weight[2 * k], f->weight[2 * k + 1]));
	}
	return taps;
}

/* ---- sums ---- */

AVX2_INLINE __m256i finish(__m256i low, __m256i high)
{
	__m256i sum =
		_mm256_add_epi32(_mm256_add_epi32(low, _mm256_slli_epi32(high, LOW_BITS)), _mm256_set1_epi32(HALF));

	return _mm256_srai_epi32(sum, TRANSFORM_FRACTION_BITS);
}

/* Two neighbouring pixels of each of two places: pairs of words of the same channel. */
AVX2_INLINE __m256i load_pairs(const uint8_t *a, const uint8_t *b)
{
	const __m256i spread =
		_mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
	__m256i v = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadl_epi64((const void *)a)),
					    _mm_loadl_epi64((const void *)b), 1);

	return _mm256_shuffle_epi8(v, spread);
}

AVX2_INLINE void store_pixel(uint8_t *to, __m128i dwords)
{
	__m128i words = _mm_packs_epi32(dwords, dwords);
	int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));

	memcpy(to, &bytes, sizeof(bytes)); /* the fourth byte is the next pixel's */
}

/* A line of the part, resized across. */
AVX2 static void line_across(const struct transform_plan *p, const struct fast *f, const uint8_t *line, uint8_t *to)
{
	const struct pair *weight = f->across;

	for (uint32_t x = 0; x < p->width; x += 2, to += 2 * CHANNELS) {
		const uint8_t *a = line + f->first[x], *b = line + f->first[x + 1];
		__m256i low = _mm256_setzero_si256(), high = low, sum;

		for (uint32_t k = 0; k < f->pairs; k++, weight++, a += 2 * CHANNELS, b += 2 * CHANNELS) {
			__m256i v = load_pairs(a, b);

			low = _mm256_add_epi32(low, _mm256_madd_epi16(v, weight->low));
			high = _mm256_add_epi32(high, _mm256_madd_epi16(v, weight->high));
		}
		sum = finish(low, high);
		store_pixel(to, _mm256_castsi256_si128(sum));
		store_pixel(to + CHANNELS, _mm256_extracti128_si256(sum, 1));
	}
}

/*
 * The lines of the part.  Taps may be read beyond the last pixel, where their weight is 0, but not
 * beyond the image: there a copy of the line is read.
 */
AVX2 static void resize_across(const struct transform_plan *p, const struct shard_transform_row *row,
			       const struct transform_image *image, struct fast *f)
{
	size_t line_bytes = (size_t)image->width * CHANNELS, read_bytes = 0;
	const uint8_t *end = image->at + image->height * line_bytes;

	for (uint32_t x = 0; x <= p->width; x++)
		if (f->first[x] > read_bytes)
			read_bytes = f->first[x];
	read_bytes += (size_t)f->pairs * 2 * CHANNELS + READ_BYTES;
	for (uint32_t y = 0; y < row->height; y++) {
		const uint8_t *line = image->at + (row->y + y) * line_bytes + (size_t)row->x * CHANNELS;
		size_t bytes = (size_t)(end - line);

		if (bytes < read_bytes) {
			bytes = bytes < line_bytes ? bytes : line_bytes;
			memcpy(f->last, line, bytes);
			line = f->last;
		}
		line_across(p, f, line, f->lines + y * f->pitch);
	}
}

/* Line y of the output: sums over lines that were resized across. */
AVX2 static void resize_down(const struct transform_plan *p, const struct shard_transform_row *row, uint32_t y,
			     struct fast *f)
{
	struct transform_taps taps = fill_down(p, row, y, f);
	const uint8_t *from = f->lines + taps.first * f->pitch;

	for (size_t i = 0; i < (size_t)p->width * CHANNELS; i += DOWN_BYTES) {
		__m256i low[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()}, high[2] = {low[0], low[0]}, words;

		for (uint32_t k = 0; k < taps.count; k++) {
			const uint8_t *at = from + 2 * k * f->pitch + i;
			__m256i a = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)at));
			__m256i b = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)(at + f->pitch)));
			__m256i v[2] = {_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)};

			for (int n = 0; n < 2; n++) {
				low[n] = _mm256_add_epi32(low[n], _mm256_madd_epi16(v[n], f->down_low[k]));
				high[n] = _mm256_add_epi32(high[n], _mm256_madd_epi16(v[n], f->down_high[k]));
			}
		}
		words = _mm256_packs_epi32(finish(low[0], high[0]), finish(low[1], high[1]));
		words = _mm256_permute4x64_epi64(_mm256_packus_epi16(words, words), 0x08);
		_mm_storeu_si128((void *)(f->line + i), _mm256_castsi256_si128(words));
	}
}

/* ---- numbers ---- */

/* Pixels that lie `step` bytes apart: look up some channels of each.  These are a line. */
__attribute__((always_inline)) static inline void look_up_32(const uint8_t *from, ptrdiff_t step, uint32_t count,
							     const uint32_t (*table)[256], uint32_t channels,
							     uint32_t *restrict to)
{
	for (; count; count--, from += step)
		for (uint32_t c = 0; c < channels; c++)
			*to++ = table[c][from[c]];
}

__attribute__((always_inline)) static inline void look_up_16(const uint8_t *from, ptrdiff_t step, uint32_t count,
							     const uint32_t (*table)[256], uint32_t channels,
							     uint16_t *restrict to)
{
	for (; count; count--, from += step)
		for (uint32_t c = 0; c < channels; c++)
			*to++ = (uint16_t)table[c][from[c]];
}

/* One channel of pixels, which stay bytes. */
static void copy_8(const uint8_t *from, ptrdiff_t step, uint32_t count, uint8_t *restrict to)
{
	for (uint32_t x = 0; x < count; x++)
		to[x] = from[(ptrdiff_t)x * step];
}

/*
 * A line of pixels from right to left, MIRRORED at a time, which are read with one byte behind
 * them.  The first ones go alone, since the line may be the last of its image.
 */
AVX2 static void mirror_8(const uint8_t *line, uint32_t width, uint8_t *to)
{
	const __m128i turned = _mm_setr_epi8(12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2, -1);
	uint32_t x = 0;

	for (; x < width && x < MIRRORED; x++)
		memcpy(to + (size_t)x * CHANNELS, line + (size_t)(width - 1 - x) * CHANNELS, CHANNELS);
	for (; width - x >= MIRRORED; x += MIRRORED) {
		const uint8_t *from = line + (size_t)(width - MIRRORED - x) * CHANNELS;

		_mm_storeu_si128((void *)(to + (size_t)x * CHANNELS),
				 _mm_shuffle_epi8(_mm_loadu_si128((const void *)from), turned));
	}
	for (; x < width; x++)
		memcpy(to + (size_t)x * CHANNELS, line + (size_t)(width - 1 - x) * CHANNELS, CHANNELS);
}

/*
 * To memory, past the caches if it is a long piece: a batch is larger than they are, and what is
 * written through them is read first.  For short pieces that costs more than it saves.
 */
AVX2 static void put_bytes(uint8_t *to, const uint8_t *from, size_t bytes)
{
	if ((uintptr_t)to % 32 || bytes % 32 || bytes < STREAM_BYTES) {
		memcpy(to, from, bytes);
		return;
	}
	for (size_t i = 0; i < bytes; i += 32)
		_mm256_stream_si256((void *)(to + i), _mm256_load_si256((const void *)(from + i)));
}

/* A line of samples, mirrored if need be, to its places in the output. */
AVX2 static void put_line(const struct transform_plan *p, struct fast *f, const uint8_t *line, bool flip, uint32_t y,
			  uint8_t *out)
{
	size_t line_bytes = (size_t)p->width * p->element_bytes, plane = p->height * line_bytes;
	const uint8_t *from = flip ? line + (p->width - 1) * CHANNELS : line;
	ptrdiff_t step = flip ? -(ptrdiff_t)CHANNELS : (ptrdiff_t)CHANNELS;
	void *numbers = f->numbers;

	if (!p->is_planar && p->element_bytes == 1 && !flip) {
		memcpy(out + y * CHANNELS * line_bytes, line, CHANNELS * line_bytes);
		return;
	}
	if (!p->is_planar) {
		if (p->element_bytes == 4)
			look_up_32(from, step, p->width, p->bits, CHANNELS, numbers);
		else if (p->element_bytes == 2)
			look_up_16(from, step, p->width, p->bits, CHANNELS, numbers);
		else
			mirror_8(line, p->width, numbers);
		put_bytes(out + y * CHANNELS * line_bytes, numbers, CHANNELS * line_bytes);
		return;
	}
	for (uint32_t c = 0; c < CHANNELS; c++) {
		if (p->element_bytes == 4)
			look_up_32(from + c, step, p->width, &p->bits[c], 1, numbers);
		else if (p->element_bytes == 2)
			look_up_16(from + c, step, p->width, &p->bits[c], 1, numbers);
		else
			copy_8(from + c, step, p->width, numbers);
		put_bytes(out + c * plane + y * line_bytes, numbers, line_bytes);
	}
}

bool transform_fast(const struct transform_plan *p, const struct shard_transform_row *row,
		    const struct transform_image *image, void *out, void *scratch)
{
	bool resizes = p->crop == SHARD_CROP_RESIZED;
	struct fast f;

	if (resizes && transform_is_down_first(p, row))
		return false;
	lay_out(p, scratch, &f);
	if (resizes) {
		fill_across(p, row, &f);
		resize_across(p, row, image, &f);
	}
	for (uint32_t y = 0; y < p->height; y++) {
		const uint8_t *line = image->at + ((size_t)(row->y + y) * image->width + row->x) * CHANNELS;

		if (resizes) {
			resize_down(p, row, y, &f);
			line = f.line;
		}
		put_line(p, &f, line, row->flip, y, out);
	}
	_mm_sfence(); /* others may read it now */
	return true;
}

#endif

/* ---- the path that this CPU and these images allow ---- */

uint64_t transform_cpu_bytes(const struct transform_plan *p)
{
	return max_u64(transform_twin_bytes(p), transform_fast_applies(p) ? transform_fast_bytes(p) : 0);
}

void transform_cpu(const struct transform_plan *p, const struct shard_transform_row *row,
		   const struct transform_image *image, void *out, void *scratch)
{
	if (!transform_fast_applies(p) || !transform_fast(p, row, image, out, scratch))
		transform_twin(p, row, image, out, scratch);
}
