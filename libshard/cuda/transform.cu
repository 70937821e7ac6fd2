/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform.cu - kernels that transform images: gather, crop or resize, flip, look up, lay out
 *
 * transform_twin() of libshard/transform/transform_twin.c is the definition.
 * libshard/transform/grid.c tells how a call is spread over blocks.  A block makes a band of lines
 * of one row, in two steps:
 *
 *   (1) It brings the samples of the band to shared memory, as they lie or resized.
 *   (2) Each thread takes some of them, looks up their numbers, and stores 16 bytes.
 *
 * A sample is a byte, and a table has the number that it becomes, so numbers are exact.  Only
 * weights are computed with fractions.  They are doubles, and a product is never fused with a sum
 * (__dmul_rn, and nvcc -fmad=false).  So every device, and a CPU, gets the same bits.
 *
 * The code is both C11 and CUDA: tests/cuda/t_transform_kernel.c compiles it as C, and runs it
 * thread by thread.  libshard/cuda/make_ptx.sh makes transform_ptx.c from it.
 */
#include "libshard/transform/call.h"

#ifdef __CUDACC__
#define UNROLL	_Pragma("unroll")
#define UNROLL4 _Pragma("unroll 4")
#define COMPACT _Pragma("unroll 1") /* for short or slow loops: the driver compiles less */
extern "C" {
#endif

/*
 * The shared memory of a block: first the table, then the parts that struct transform_call places.
 */
extern __shared__ uint4 transform_shared[];

#define SHARED(type_, at_) ((type_ *)((uint8_t *)transform_shared + (at_)))
#define FORCED		   static __device__ __forceinline__

/* ---- where samples are ---- */

FORCED uint64_t address_of(const struct transform_call *call, const struct transform_row *row, uint32_t line,
			   uint32_t channel)
{
	return call->from + row->from * call->record_step +
	       (uint64_t)((row->y & TRANSFORM_SIDE_MAX) + line) * call->line_step +
	       (uint64_t)(row->x & TRANSFORM_SIDE_MAX) * call->pixel_step + (uint64_t)channel * call->channel_step;
}

/* How far within a word a span begins. */
FORCED uint32_t shift_of(const struct transform_call *call, const struct transform_row *row, uint32_t line,
			 uint32_t channel)
{
	return (uint32_t)address_of(call, row, line, channel) & 3;
}

/* ---- (1) crop: the spans of a band as they lie, whole words ---- */

/* Load the word at `at`, without bytes that do not belong to the batch. */
FORCED uint32_t load_within(const struct transform_call *call, uint64_t at)
{
	uint32_t word = 0;

	COMPACT
	for (uint32_t i = 0; i < 4; i++)
		if (at + i >= call->from && at + i < call->from_end)
			word |= (uint32_t) * (const uint8_t *)(uintptr_t)(at + i) << 8 * i;
	return word;
}

/* A warp brings a span.  That begins within its first word, and its last words may be behind it. */
FORCED void bring_spans(const struct transform_call *call, const struct transform_row *row, uint32_t first,
			uint32_t lines)
{
	uint32_t lanes = blockDim.x < 32 ? blockDim.x : 32, lane = threadIdx.x % lanes, words = call->pitch / 4;

	COMPACT
	for (uint32_t span = threadIdx.x / lanes; span < lines * call->span_count; span += blockDim.x / lanes) {
		uint64_t from =
			address_of(call, row, first + span / call->span_count, span % call->span_count) & ~(uint64_t)3;
		uint32_t *to = SHARED(uint32_t, call->at_tile) + span * words;

		if (from >= call->from && from + call->pitch <= call->from_end) {
			UNROLL4
			for (uint32_t i = lane; i < words; i += lanes)
				to[i] = ((const uint32_t *)(uintptr_t)from)[i];
		} else {
			COMPACT
			for (uint32_t i = lane; i < words; i += lanes)
				to[i] = load_within(call, from + 4 * i);
		}
	}
}

/*
 * ---- (1) resize: bilinear with antialiasing, across and down, each rounded to bytes, in the order
 * that Pillow has for such a part ----
 */

FORCED double triangle(double x)
{
	x = x < 0 ? -x : x;
	return x < 1 ? 1 - x : 0;
}

/* The taps of output pixel `at`, where `in` samples become `out`.  Weights stand `step` apart. */
FORCED struct transform_taps fill_taps(uint32_t in, uint32_t out, uint32_t at, int32_t *weight, uint32_t step)
{
	double scale = (double)in / out, reach = scale < 1 ? 1 : scale, each = 1 / reach;
	double center = __dmul_rn(at + 0.5, scale);
	double low = center - reach + 0.5, high = center + reach + 0.5, sum = 0;
	struct transform_taps taps;

	taps.first = (uint16_t)(low > 0 ? (uint32_t)low : 0);
	taps.count = (uint16_t)((high < in ? (uint32_t)high : in) - taps.first);
	COMPACT
	for (uint32_t t = 0; t < taps.count; t++)
		sum += triangle(__dmul_rn(t + (double)taps.first - center + 0.5, each));
	COMPACT
	for (uint32_t t = 0; t < taps.count; t++) {
		double w = triangle(__dmul_rn(t + (double)taps.first - center + 0.5, each)) / sum;

		weight[t * step] = (int32_t)(__dmul_rn(w, 1 << TRANSFORM_FRACTION_BITS) + 0.5);
	}
	return taps;
}

FORCED uint8_t clip(int32_t sum)
{
	sum >>= TRANSFORM_FRACTION_BITS;
	return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

FORCED void fill_all_taps(const struct transform_call *call, const struct transform_row *row, uint32_t first,
			  uint32_t lines)
{
	struct transform_taps *across = SHARED(struct transform_taps, call->at_across);
	struct transform_taps *down = SHARED(struct transform_taps, call->at_down);

	COMPACT
	for (uint32_t x = threadIdx.x; x < call->width; x += blockDim.x)
		across[x] = fill_taps(row->width, call->width, x, (int32_t *)(across + call->width) + x, call->width);
	COMPACT
	for (uint32_t i = threadIdx.x; i < lines; i += blockDim.x)
		down[i] = fill_taps(row->height, call->height, first + i, (int32_t *)(down + call->band_lines) + i,
				    call->band_lines);
}

/* Resize the lines of the image that the band needs. */
FORCED void resize_across(const struct transform_call *call, const struct transform_row *row, uint32_t lines)
{
	const struct transform_taps *across = SHARED(const struct transform_taps, call->at_across);
	const struct transform_taps *down = SHARED(const struct transform_taps, call->at_down);
	uint32_t low = down[0].first, count = down[lines - 1].first + down[lines - 1].count - low;

	for (uint32_t i = threadIdx.x; i < count * call->width; i += blockDim.x) {
		uint32_t line = i / call->width, x = i % call->width;
		const int32_t *weight = (const int32_t *)(across + call->width) + x;
		uint8_t *to = SHARED(uint8_t, call->at_lines) + line * call->pitch + x * call->channels;

		COMPACT
		for (uint32_t c = 0; c < call->channels; c++) {
			uint64_t from =
				address_of(call, row, low + line, c) + (uint64_t)across[x].first * call->pixel_step;
			int32_t sum = 1 << (TRANSFORM_FRACTION_BITS - 1);

			COMPACT
			for (uint32_t t = 0; t < across[x].count; t++)
				sum += *(const uint8_t *)(uintptr_t)(from + t * call->pixel_step) *
				       weight[t * call->width];
			to[c] = clip(sum);
		}
	}
}

FORCED void resize_down(const struct transform_call *call, uint32_t lines)
{
	const struct transform_taps *down = SHARED(const struct transform_taps, call->at_down);
	uint32_t low = down[0].first, bytes = call->width * call->channels;

	for (uint32_t i = threadIdx.x; i < lines * bytes; i += blockDim.x) {
		uint32_t line = i / bytes, at = i % bytes;
		const uint8_t *from =
			SHARED(const uint8_t, call->at_lines) + (down[line].first - low) * call->pitch + at;
		const int32_t *weight = (const int32_t *)(down + call->band_lines) + line;
		int32_t sum = 1 << (TRANSFORM_FRACTION_BITS - 1);

		COMPACT
		for (uint32_t t = 0; t < down[line].count; t++)
			sum += from[t * call->pitch] * weight[t * call->band_lines];
		SHARED(uint8_t, call->at_tile)[line * call->pitch + at] = clip(sum);
	}
}

/* Down first: lines of the band, as wide as the part of the image, without gaps. */
FORCED void part_down(const struct transform_call *call, const struct transform_row *row, uint32_t lines)
{
	const struct transform_taps *down = SHARED(const struct transform_taps, call->at_down);
	uint32_t bytes = row->width * call->channels;

	for (uint32_t i = threadIdx.x; i < lines * bytes; i += blockDim.x) {
		uint32_t line = i / bytes, at = i % bytes;
		const int32_t *weight = (const int32_t *)(down + call->band_lines) + line;
		uint64_t from = address_of(call, row, down[line].first, at % call->channels) +
				(uint64_t)(at / call->channels) * call->pixel_step;
		int32_t sum = 1 << (TRANSFORM_FRACTION_BITS - 1);

		COMPACT
		for (uint32_t t = 0; t < down[line].count; t++)
			sum += *(const uint8_t *)(uintptr_t)(from + (uint64_t)t * call->line_step) *
			       weight[t * call->band_lines];
		SHARED(uint8_t, call->at_lines)[i] = clip(sum);
	}
}

FORCED void part_across(const struct transform_call *call, const struct transform_row *row, uint32_t lines)
{
	const struct transform_taps *across = SHARED(const struct transform_taps, call->at_across);
	uint32_t bytes = call->width * call->channels;

	for (uint32_t i = threadIdx.x; i < lines * bytes; i += blockDim.x) {
		uint32_t line = i / bytes, at = i % bytes, x = at / call->channels;
		const int32_t *weight = (const int32_t *)(across + call->width) + x;
		const uint8_t *from = SHARED(const uint8_t, call->at_lines) +
				      (line * row->width + across[x].first) * call->channels + at % call->channels;
		int32_t sum = 1 << (TRANSFORM_FRACTION_BITS - 1);

		COMPACT
		for (uint32_t t = 0; t < across[x].count; t++)
			sum += from[t * call->channels] * weight[t * call->width];
		SHARED(uint8_t, call->at_tile)[line * call->pitch + at] = clip(sum);
	}
}

/* ---- (2) samples to numbers, and out ---- */

FORCED void bring_table(const struct transform_call *call, uint32_t bytes)
{
	COMPACT
	for (uint32_t i = threadIdx.x; i < call->channels * 256 * bytes / 4; i += blockDim.x)
		SHARED(uint32_t, 0)[i] = ((const uint32_t *)(uintptr_t)call->table)[i];
}

FORCED uint32_t look_up(uint32_t channel, uint32_t sample, uint32_t bytes)
{
	return bytes == 4 ? SHARED(const uint32_t, 0)[channel * 256 + sample]
			  : SHARED(const uint16_t, 0)[channel * 256 + sample];
}

/* Store any output.  A thread stores one number at a time. */
FORCED void put_any(const struct transform_call *call, const struct transform_row *row, uint32_t first, uint32_t lines,
		    int resized, uint32_t bytes)
{
	uint32_t plane = lines * call->width, spans = resized ? 1 : call->span_count;
	uint64_t image = (uint64_t)blockIdx.y * call->channels * call->height * call->width;

	COMPACT
	for (uint32_t i = threadIdx.x; i < plane * call->channels; i += blockDim.x) {
		uint32_t c = call->is_planar ? i / plane : i % call->channels;
		uint32_t pixel = call->is_planar ? i % plane : i / call->channels;
		uint32_t line = pixel / call->width, x = pixel % call->width;
		uint32_t from = row->x & TRANSFORM_FLIP ? call->width - 1 - x : x;
		uint32_t span = spans == 1 ? line : line * spans + c;
		uint32_t at = spans == 1 ? from * call->channels + c : from;
		uint64_t to = call->is_planar ? ((uint64_t)c * call->height + first + line) * call->width + x
					      : ((uint64_t)(first + line) * call->width + x) * call->channels + c;
		uint32_t bits;

		at += span * call->pitch + (resized ? 0 : shift_of(call, row, first + line, spans == 1 ? 0 : c));
		bits = look_up(c, SHARED(const uint8_t, call->at_tile)[at], bytes);
		to = call->to + (image + to) * bytes;
		if (bytes == 4)
			*(uint32_t *)(uintptr_t)to = bits;
		else
			*(uint16_t *)(uintptr_t)to = (uint16_t)bits;
	}
}

/* Store sixteen bytes of numbers. */
FORCED void put_16(uint64_t to, const uint32_t *number, uint32_t bytes)
{
	uint4 out;

	if (bytes == 4) {
		out.x = number[0];
		out.y = number[1];
		out.z = number[2];
		out.w = number[3];
	} else {
		out.x = number[0] | number[1] << 16;
		out.y = number[2] | number[3] << 16;
		out.z = number[4] | number[5] << 16;
		out.w = number[6] | number[7] << 16;
	}
	*(uint4 *)(uintptr_t)to = out;
}

/*
 * Store pixels of three channels, which the tile holds interleaved.  A thread stores 16 bytes of
 * each channel at a time.  All arguments but the addresses are constants.
 */
FORCED void put_pixels(uint32_t at, uint64_t to, uint64_t plane_bytes, int flip, int planar, uint32_t bytes)
{
	const uint32_t count = 16 / bytes; /* of pixels: 3 x count samples */
	const uint32_t *word = SHARED(const uint32_t, at & ~3u);
	uint32_t sample[6], number[24], shift = at % 4 * 8;

	UNROLL
	for (uint32_t i = 0; i < 3 * count / 4; i++)
		sample[i] = (uint32_t)(((uint64_t)word[i + 1] << 32 | word[i]) >> shift);
	UNROLL
	for (uint32_t i = 0; i < 3 * count; i++) {
		uint32_t c = planar ? i / count : i % 3, pixel = planar ? i % count : i / 3;
		uint32_t which = 3 * (flip ? count - 1 - pixel : pixel) + c;

		number[i] = look_up(c, sample[which / 4] >> which % 4 * 8 & 255, bytes);
	}
	UNROLL
	for (uint32_t i = 0; i < 3; i++)
		put_16(planar ? to + i * plane_bytes : to + 16 * i, number + i * count, bytes);
}

FORCED void put_fast(const struct transform_call *call, const struct transform_row *row, uint32_t first, uint32_t lines,
		     int resized, int planar, uint32_t bytes)
{
	const uint32_t count = 16 / bytes;
	uint32_t groups = call->width / count, shift = resized ? 0 : shift_of(call, row, first, 0);
	uint32_t flip = row->x & TRANSFORM_FLIP;
	uint64_t plane_bytes = (uint64_t)call->height * call->width * bytes;
	uint64_t to =
		call->to + blockIdx.y * 3 * plane_bytes + (uint64_t)first * call->width * bytes * (planar ? 1 : 3);

	for (uint32_t i = threadIdx.x; i < lines * groups; i += blockDim.x) {
		uint32_t line = i / groups, group = i % groups;
		uint32_t at = call->at_tile + line * call->pitch + (resized ? 0 : (shift + line * call->line_step) & 3);

		if (flip)
			put_pixels(at + 3 * count * (groups - 1 - group), to + i * (planar ? 16 : 48), plane_bytes, 1,
				   planar, bytes);
		else
			put_pixels(at + 3 * count * group, to + i * (planar ? 16 : 48), plane_bytes, 0, planar, bytes);
	}
}

/* ---- kernels ---- */

enum { ANY = TRANSFORM_ANY, CHW = TRANSFORM_CHW, HWC = TRANSFORM_HWC };

FORCED void put(const struct transform_call *call, const struct transform_row *row, uint32_t first, uint32_t lines,
		int resized, uint32_t shape, uint32_t bytes)
{
	if (shape == ANY)
		put_any(call, row, first, lines, resized, bytes);
	else if (shape == CHW)
		put_fast(call, row, first, lines, resized, 1, bytes);
	else
		put_fast(call, row, first, lines, resized, 0, bytes);
}

FORCED uint32_t lines_of(const struct transform_call *call, uint32_t first)
{
	return call->height - first < call->band_lines ? call->height - first : call->band_lines;
}

FORCED void transform_crop(const struct transform_call *call, uint32_t shape, uint32_t bytes)
{
	const struct transform_row row = call->row[blockIdx.y];
	uint32_t first = blockIdx.x * call->band_lines, lines = lines_of(call, first);

	bring_table(call, bytes);
	bring_spans(call, &row, first, lines);
	__syncthreads();
	put(call, &row, first, lines, 0, shape, bytes);
}

FORCED void transform_resize(const struct transform_call *call, uint32_t bytes)
{
	const struct transform_row row = call->row[blockIdx.y];
	uint32_t first = blockIdx.x * call->band_lines, lines = lines_of(call, first);

	bring_table(call, bytes);
	fill_all_taps(call, &row, first, lines);
	__syncthreads();
	if (row.y & TRANSFORM_DOWN_FIRST)
		part_down(call, &row, lines);
	else
		resize_across(call, &row, lines);
	__syncthreads();
	if (row.y & TRANSFORM_DOWN_FIRST)
		part_across(call, &row, lines);
	else
		resize_down(call, lines);
	__syncthreads();
	put(call, &row, first, lines, 1, call->shape, bytes);
}

#define KERNEL(name_, body_)                                                                                           \
	__global__ void __launch_bounds__(TRANSFORM_THREADS)                                                           \
		name_(const __grid_constant__ struct transform_call call);                                             \
	__global__ void __launch_bounds__(TRANSFORM_THREADS) name_(const __grid_constant__ struct transform_call call) \
	{                                                                                                              \
		body_;                                                                                                 \
	}

KERNEL(transform_crop_any_16, transform_crop(&call, ANY, 2))
KERNEL(transform_crop_any_32, transform_crop(&call, ANY, 4))
KERNEL(transform_crop_chw_16, transform_crop(&call, CHW, 2))
KERNEL(transform_crop_chw_32, transform_crop(&call, CHW, 4))
KERNEL(transform_crop_hwc_16, transform_crop(&call, HWC, 2))
KERNEL(transform_crop_hwc_32, transform_crop(&call, HWC, 4))
KERNEL(transform_resize_16, transform_resize(&call, 2))
KERNEL(transform_resize_32, transform_resize(&call, 4))

#ifdef __CUDACC__
}
#endif
