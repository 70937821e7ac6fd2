/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_resize.h - part of transform.cu: bilinear resizing with antialiasing, in the weights and
 * roundings of Pillow
 *
 * Two passes, each rounded to bytes: across and down, or down and across, as Pillow has them for
 * such a part.
 */
#ifndef SHARD_CUDA_KERNEL_RESIZE_H
#define SHARD_CUDA_KERNEL_RESIZE_H

#include "libshard/gpu/kernel_lines.h"

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

FORCED void fill_across(const struct transform_call *call, const struct part *row)
{
	struct transform_taps *across = SHARED(struct transform_taps, call->at_across);

	COMPACT
	for (uint32_t x = threadIdx.x; x < call->width; x += blockDim.x)
		across[x] = fill_taps(row->width, call->width, x, (int32_t *)(across + call->width) + x, call->width);
}

FORCED void fill_down(const struct transform_call *call, const struct part *row, uint32_t first, uint32_t lines)
{
	struct transform_taps *down = SHARED(struct transform_taps, call->at_down);

	COMPACT
	for (uint32_t i = threadIdx.x; i < lines; i += blockDim.x)
		down[i] = fill_taps(row->height, call->height, first + i, (int32_t *)(down + call->band_lines) + i,
				    call->band_lines);
}

/* A sample in shared memory, or in the batch. */
FORCED int32_t load_sample(int is_shared, uint64_t at)
{
	return is_shared ? *SHARED(const uint8_t, (uint32_t)at) : __ldg((const uint8_t *)(uintptr_t)at);
}

/*
 * Where the samples of a sum are: number t is at from + t * step + (phase + t * phase_step) % 16.
 * Lines in the tile need the phase, as each begins anywhere in its first 16 bytes.
 */
struct walk {
	uint64_t from;
	uint32_t step, phase, phase_step;
};

FORCED struct walk walk_from(uint64_t from, uint32_t step)
{
	struct walk walk = {0, 0, 0, 0};

	walk.from = from;
	walk.step = step;
	return walk;
}

/*
 * `channels` neighbouring samples of a pixel: each weight is loaded once, and the samples together.
 * It is a constant, 3 or 1.
 */
FORCED void filter_pixel(int is_shared, struct walk walk, uint32_t channels, uint32_t taps, const int32_t *weight,
			 uint32_t weight_step, uint8_t *to)
{
	int32_t sum[3], sample[3];

	UNROLL
	for (uint32_t c = 0; c < channels; c++)
		sum[c] = 1 << (TRANSFORM_FRACTION_BITS - 1);
	COMPACT
	for (uint32_t t = 0; t < taps; t++) {
		UNROLL
		for (uint32_t c = 0; c < channels; c++)
			sample[c] = load_sample(is_shared, walk.from + (walk.phase & 15) + c);
		UNROLL
		for (uint32_t c = 0; c < channels; c++)
			sum[c] += sample[c] * *weight;
		walk.from += walk.step;
		walk.phase += walk.phase_step;
		weight += weight_step;
	}
	UNROLL
	for (uint32_t c = 0; c < channels; c++)
		to[c] = clip(sum[c]);
}

/* Three channels that lie side by side go together, others one by one. */
FORCED uint32_t channels_together(const struct transform_call *call)
{
	return call->channels == 3 && call->span_count == 1 ? 3 : 1;
}

/*
 * Where the first of a line's samples of channel `c` is, in the tile as bring_lines() leaves it,
 * but for the phase, which is that of the first channel if the others lie beside it.
 */
FORCED uint32_t staged_at(const struct transform_call *call, const struct lines *lines, uint32_t line, uint32_t c)
{
	return call->span_count == 1 ? call->at_tile + line * lines->chunks * 16 + c
				     : call->at_tile + (line * call->span_count + c) * lines->chunks * 16;
}

FORCED uint32_t phase_of(const struct transform_call *call, const struct part *row, uint32_t line, uint32_t c)
{
	return (uint32_t)address_of(call, row, line, call->span_count == 1 ? 0 : c);
}

/* Resize lines of the part across, for lines `to` and on of those that the band needs. */
FORCED void filter_across(const struct transform_call *call, const struct part *row, int is_shared,
			  const struct lines *lines, uint32_t to)
{
	const struct transform_taps *across = SHARED(const struct transform_taps, call->at_across);
	struct spot p = spot_of(threadIdx.x, call->width), step = spot_of(blockDim.x, call->width);
	uint32_t side_by_side = is_shared ? channels_together(call) : 1;

	for (; p.line < lines->count; advance(&p, &step, call->width)) {
		uint8_t *out = SHARED(uint8_t, call->at_lines) + (to + p.line) * call->pitch + p.at * call->channels;
		const int32_t *weight = (const int32_t *)(across + call->width) + p.at;
		uint32_t taps = across[p.at].count, first = across[p.at].first * call->pixel_step;

		COMPACT
		for (uint32_t c = 0; c < call->channels; c += side_by_side) {
			uint64_t from = is_shared ? staged_at(call, lines, p.line, c) +
							    (phase_of(call, row, lines->first + p.line, c) & 15)
						  : address_of(call, row, lines->first + p.line, c);

			if (is_shared && side_by_side == 3)
				filter_pixel(1, walk_from(from + first, 3), 3, taps, weight, call->width, out);
			else
				filter_pixel(is_shared, walk_from(from + first, call->pixel_step), 1, taps, weight,
					     call->width, out + c);
		}
	}
}

/* Down first: lines `begin` to `end` of the band, as wide as the part, without gaps. */
FORCED void filter_down(const struct transform_call *call, const struct part *row, int is_shared,
			const struct lines *lines, uint32_t begin, uint32_t end)
{
	const struct transform_taps *down = SHARED(const struct transform_taps, call->at_down) + begin;
	struct spot p = spot_of(threadIdx.x, row->width), step = spot_of(blockDim.x, row->width);
	uint32_t side_by_side = is_shared ? channels_together(call) : 1;

	for (; p.line < end - begin; advance(&p, &step, row->width)) {
		uint8_t *to = SHARED(uint8_t, call->at_lines) + ((begin + p.line) * row->width + p.at) * call->channels;
		const int32_t *weight = SHARED(const int32_t, call->at_down) + call->band_lines + begin + p.line;
		uint32_t first = down[p.line].first, taps = down[p.line].count, x = p.at * call->pixel_step;

		COMPACT
		for (uint32_t c = 0; c < call->channels; c += side_by_side) {
			struct walk walk = walk_from(address_of(call, row, first, c) + x, row->line_step);

			if (is_shared) {
				walk.from = staged_at(call, lines, first - lines->first, c) + x;
				walk.step = lines->chunks * 16 * call->span_count;
				walk.phase = phase_of(call, row, first, c);
				walk.phase_step = row->line_step;
			}
			if (is_shared && side_by_side == 3)
				filter_pixel(1, walk, 3, taps, weight, call->band_lines, to);
			else
				filter_pixel(is_shared, walk, 1, taps, weight, call->band_lines, to + c);
		}
	}
}

/* Lines that the first pass makes together, and those of the part that they are made of. */
struct step {
	struct lines lines;
	uint32_t begin, end;
};

/* Across, each line is made of one, and `end` is of those that the band needs; down, of several. */
FORCED void next_step(const struct transform_taps *down, uint32_t down_first, uint32_t band, uint32_t most,
		      struct step *s)
{
	uint32_t low = down[s->end].first;

	s->begin = s->end;
	if (!down_first) {
		low = down[0].first;
		s->end = least(s->begin + most, down[band - 1].first + down[band - 1].count - low);
		s->lines.first = low + s->begin;
		s->lines.count = s->end - s->begin;
		return;
	}
	COMPACT
	while (++s->end < band && down[s->end].first + down[s->end].count - low <= most)
		;
	s->lines.first = low;
	s->lines.count = down[s->end - 1].first + down[s->end - 1].count - low;
}

/*
 * The first pass of a band.  The tile is not needed yet, so lines of the part come there first, as
 * many as it holds; if those of one line of the output are more, samples are read where they lie.
 */
FORCED void first_pass(const struct transform_call *call, const struct part *row, uint32_t band)
{
	const struct transform_taps *down = SHARED(const struct transform_taps, call->at_down);
	uint32_t down_first = row->y & TRANSFORM_DOWN_FIRST, most, count;
	struct step s = {{0, 0, 0}, 0, 0};
	int staged;

	s.lines.chunks = chunks_of(call, row);
	most = call->stage_bytes / (16 * s.lines.chunks * call->span_count);
	staged = most >= (down_first ? call->down_taps : 1u);
	most = staged ? most : TRANSFORM_SIDE_MAX;
	count = down_first ? band : (uint32_t)(down[band - 1].first + down[band - 1].count - down[0].first);
	COMPACT
	while (s.end < count) {
		next_step(down, down_first, band, most, &s);
		if (staged) {
			if (s.begin)
				__syncthreads(); /* nobody needs the lines before */
			bring_lines(call, row, &s.lines);
			__syncthreads();
		}
		if (down_first && staged)
			filter_down(call, row, 1, &s.lines, s.begin, s.end);
		else if (down_first)
			filter_down(call, row, 0, &s.lines, s.begin, s.end);
		else if (staged)
			filter_across(call, row, 1, &s.lines, s.begin);
		else
			filter_across(call, row, 0, &s.lines, s.begin);
	}
}

/* Four neighbouring samples at a time; a line may end in some that nobody asks for. */
FORCED void resize_down(const struct transform_call *call, uint32_t lines)
{
	const struct transform_taps *down = SHARED(const struct transform_taps, call->at_down);
	uint32_t low = down[0].first, words = call->pitch / 4;
	struct spot p = spot_of(threadIdx.x, words), step = spot_of(blockDim.x, words);

	for (; p.line < lines; advance(&p, &step, words)) {
		const uint32_t *from =
			SHARED(const uint32_t, call->at_lines) + (down[p.line].first - low) * words + p.at;
		const int32_t *weight = (const int32_t *)(down + call->band_lines) + p.line;
		int32_t sum[4];
		uint32_t out = 0;

		UNROLL
		for (uint32_t k = 0; k < 4; k++)
			sum[k] = 1 << (TRANSFORM_FRACTION_BITS - 1);
		COMPACT
		for (uint32_t t = 0; t < down[p.line].count; t++, from += words, weight += call->band_lines) {
			UNROLL
			for (uint32_t k = 0; k < 4; k++)
				sum[k] += (int32_t)(*from >> 8 * k & 255) * *weight;
		}
		UNROLL
		for (uint32_t k = 0; k < 4; k++)
			out |= (uint32_t)clip(sum[k]) << 8 * k;
		SHARED(uint32_t, call->at_tile)[p.line * words + p.at] = out;
	}
}

FORCED void part_across(const struct transform_call *call, const struct part *row, uint32_t lines)
{
	const struct transform_taps *across = SHARED(const struct transform_taps, call->at_across);
	struct spot p = spot_of(threadIdx.x, call->width), step = spot_of(blockDim.x, call->width);

	for (; p.line < lines; advance(&p, &step, call->width)) {
		uint8_t *to = SHARED(uint8_t, call->at_tile) + p.line * call->pitch + p.at * call->channels;
		uint32_t from = call->at_lines + (p.line * row->width + across[p.at].first) * call->channels;
		const int32_t *weight = (const int32_t *)(across + call->width) + p.at;

		if (call->channels == 3) {
			filter_pixel(1, walk_from(from, 3), 3, across[p.at].count, weight, call->width, to);
			continue;
		}
		COMPACT
		for (uint32_t c = 0; c < call->channels; c++)
			filter_pixel(1, walk_from(from + c, call->channels), 1, across[p.at].count, weight, call->width,
				     to + c);
	}
}

#endif
