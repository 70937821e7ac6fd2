/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_put.h - part of transform.cu: samples of the tile to numbers, by the table, and out
 */
#ifndef SHARD_CUDA_KERNEL_PUT_H
#define SHARD_CUDA_KERNEL_PUT_H

#include "libshard/gpu/kernel_lines.h"

/* What a sample becomes, in the part of the table that begins at byte `table`. */
FORCED uint32_t look_up_at(uint32_t table, uint32_t sample, uint32_t bytes)
{
	if (bytes == 1) /* they stay what they are */
		return sample;
	return bytes == 4 ? *SHARED(const uint32_t, table + sample * 4) : *SHARED(const uint16_t, table + sample * 2);
}

FORCED uint32_t look_up(uint32_t channel, uint32_t sample, uint32_t bytes)
{
	return look_up_at(channel * 256 * bytes, sample, bytes);
}

/* Store any output.  A thread stores one number at a time. */
FORCED void put_any(const struct transform_call *call, const struct part *row, uint32_t first, uint32_t lines,
		    int resized, uint32_t bytes)
{
	uint32_t planes = call->is_planar ? call->channels : 1, spans = resized ? 1 : call->span_count;
	uint32_t length = call->is_planar ? call->width : call->width * call->channels;
	uint64_t image = call->to + ((uint64_t)blockIdx.y * call->height * planes + first) * length * bytes;
	uint32_t begin = resized ? 0 : (uint32_t)address_of(call, row, first, 0);
	struct spot p = spot_of(threadIdx.x, length), step = spot_of(blockDim.x, length);

	COMPACT
	for (; p.line < lines * planes; advance(&p, &step, length)) {
		uint32_t plane = (p.line >= lines) + (p.line >= 2 * lines) + (p.line >= 3 * lines);
		uint32_t line = p.line - plane * lines;
		uint32_t x = call->is_planar ? p.at : divide_by_channels(p.at, call->channels);
		uint32_t c = call->is_planar ? plane : p.at - x * call->channels;
		uint32_t from = row->x & TRANSFORM_FLIP ? call->width - 1 - x : x;
		uint32_t at = spans == 1 ? line * call->pitch + from * call->channels + c
					 : (line * spans + c) * call->pitch + from;
		uint64_t to = image + ((uint64_t)(plane * call->height + line) * length + p.at) * bytes;
		uint32_t bits;

		if (!resized) /* a span begins within 16 bytes */
			at += (begin + line * row->line_step + (spans == 1 ? 0 : c * call->channel_step)) & 15;
		bits = look_up(c, SHARED(const uint8_t, call->at_tile)[at], bytes);
		if (bytes == 1)
			*(uint8_t *)(uintptr_t)to = (uint8_t)bits;
		else if (bytes == 4)
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

/* `count` words of the tile from byte `at` on, which may be no multiple of 4. */
FORCED void load_words(uint32_t at, uint32_t *word, uint32_t count)
{
	const uint32_t *from = SHARED(const uint32_t, at & ~3u);

	UNROLL
	for (uint32_t i = 0; i < count; i++)
		word[i] = (uint32_t)(((uint64_t)from[i + 1] << 32 | from[i]) >> at % 4 * 8);
}

FORCED uint32_t byte_of(const uint32_t *word, uint32_t number)
{
	return word[number / 4] >> number % 4 * 8 & 255;
}

/*
 * Store pixels of three channels, which the tile holds interleaved, as planes.  A thread stores 16
 * bytes of each plane.  `flip` and `bytes` are constants.
 */
FORCED void put_planes(uint32_t at, uint64_t to, uint64_t plane_bytes, int flip, uint32_t bytes)
{
	const uint32_t count = 16 / bytes; /* of pixels: 3 x count samples */
	uint32_t sample[6], number[8];

	load_words(at, sample, 3 * count / 4);
	UNROLL
	for (uint32_t c = 0; c < 3; c++) {
		UNROLL
		for (uint32_t i = 0; i < count; i++)
			number[i] = look_up(c, byte_of(sample, 3 * (flip ? count - 1 - i : i) + c), bytes);
		put_16(to + c * plane_bytes, number, bytes);
	}
}

FORCED void put_chw(const struct transform_call *call, const struct part *row, uint32_t first, uint32_t lines,
		    int resized, uint32_t bytes)
{
	const uint32_t count = 16 / bytes;
	uint32_t groups = call->width / count, shift = resized ? 0 : (uint32_t)address_of(call, row, first, 0);
	uint32_t line_step = resized ? 0 : row->line_step, flip = row->x & TRANSFORM_FLIP;
	uint64_t plane_bytes = (uint64_t)call->height * call->width * bytes;
	uint64_t to =
		call->to + blockIdx.y * 3 * plane_bytes + (uint64_t)first * call->width * bytes + threadIdx.x * 16;
	struct spot p = spot_of(threadIdx.x, groups), step = spot_of(blockDim.x, groups);

	for (; p.line < lines; advance(&p, &step, groups), to += blockDim.x * 16) {
		uint32_t at = call->at_tile + p.line * call->pitch + ((shift + p.line * line_step) & 15);

		if (flip)
			put_planes(at + 3 * count * (groups - 1 - p.at), to, plane_bytes, 1, bytes);
		else
			put_planes(at + 3 * count * p.at, to, plane_bytes, 0, bytes);
	}
}

/*
 * A choice of __byte_perm() for samples 4 * `word` and on of a run.  It begins with `channel` of a
 * pixel.  With `last` it is for the third word of the tile, and what the choice for the first two
 * left.  All arguments are constants.
 */
FORCED uint32_t choice_of(uint32_t word, int last, uint32_t channel, uint32_t flip, uint32_t bytes)
{
	const uint32_t pixels = (16 / bytes + 4) / 3;
	uint32_t choice = 0;

	UNROLL
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t sample = channel + 4 * word + i, pixel = sample / 3;
		uint32_t from = flip ? 3 * (pixels - 1 - 2 * pixel) + sample : 4 * word + i;

		choice |= (!last ? from & 7 : from < 8 ? i : from - 4) << i * 4;
	}
	return choice;
}

/*
 * Store samples of three channels as they lie interleaved.  A thread stores 16 bytes, which its
 * neighbours continue, so a warp fills whole sectors.  `at` is where the first of its samples is,
 * or, mirrored, the first of the pixels that it touches.
 */
FORCED void put_run(uint32_t at, const uint32_t *choice, const uint32_t *table, uint64_t to, uint32_t bytes)
{
	const uint32_t count = 16 / bytes;
	uint32_t word[3], sample[2], number[8];

	load_words(at, word, count / 4 + 1);
	UNROLL
	for (uint32_t i = 0; i < count / 4; i++) {
		sample[i] = __byte_perm(word[0], word[1], choice[2 * i]);
		if (count == 8)
			sample[i] = __byte_perm(sample[i], word[2], choice[2 * i + 1]);
	}
	UNROLL
	for (uint32_t i = 0; i < count; i++)
		number[i] = look_up_at(table[i % 3], byte_of(sample, i), bytes);
	put_16(to, number, bytes);
}

/*
 * Threads go on by a multiple of six runs: of three, so each begins with one channel always; and of
 * two, so each warp begins with a whole sector.
 */
FORCED void put_hwc(const struct transform_call *call, const struct part *row, uint32_t first, uint32_t lines,
		    int resized, uint32_t bytes)
{
	const uint32_t count = 16 / bytes, pixels = (count + 4) / 3;
	uint32_t runs = call->width * 3 / count, stride = blockDim.x < 6 ? 6 : blockDim.x - blockDim.x % 6;
	uint32_t shift = resized ? 0 : (uint32_t)address_of(call, row, first, 0);
	uint32_t line_step = resized ? 0 : row->line_step, flip = row->x & TRANSFORM_FLIP;
	uint64_t out = call->to + ((uint64_t)blockIdx.y * call->height + first) * call->width * 3 * bytes;
	struct spot step = spot_of(stride, runs);

	COMPACT
	for (uint32_t run = threadIdx.x; run < stride; run += blockDim.x) {
		struct spot p = spot_of(run, runs);
		uint32_t channel = run * count % 3, table[3], choice[4];
		uint64_t to = out + run * 16;

		UNROLL
		for (uint32_t i = 0; i < 3; i++)
			table[i] = (channel + i) % 3 * 256 * bytes;
		UNROLL
		for (uint32_t i = 0; i < 4; i++)
			choice[i] = !flip	   ? choice_of(i / 2, i % 2, 0, 0, bytes)
				    : channel == 0 ? choice_of(i / 2, i % 2, 0, 1, bytes)
				    : channel == 1 ? choice_of(i / 2, i % 2, 1, 1, bytes)
						   : choice_of(i / 2, i % 2, 2, 1, bytes);
		for (; p.line < lines; advance(&p, &step, runs), to += stride * 16) {
			uint32_t at = p.at * count; /* mirrored, a pixel before the line may be touched, and not used */

			if (flip)
				at = 3 * call->width - 3 * pixels - (at - channel);
			at += call->at_tile + p.line * call->pitch + ((shift + p.line * line_step) & 15);
			put_run(at, choice, table, to, bytes);
		}
	}
}

#endif
