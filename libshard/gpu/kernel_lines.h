/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_lines.h - part of transform.cu: where samples are, and how a block brings them to its
 * shared memory
 *
 * Loads go 16 bytes at a time.  A thread begins several before it waits for the first.
 */
#ifndef SHARD_CUDA_KERNEL_LINES_H
#define SHARD_CUDA_KERNEL_LINES_H

#include "libshard/transform/call.h"

#ifdef __CUDACC__
#define UNROLL	_Pragma("unroll")
#define COMPACT _Pragma("unroll 1") /* for short or slow loops: the driver compiles less */
#endif

/* Loads that a thread has under way together: 64 bytes, so 16 KiB of a block. */
#define TOGETHER 4

/*
 * The shared memory of a block: first the table, then the parts that struct transform_call places.
 */
extern __shared__ uint4 transform_shared[];

#define SHARED(type_, at_) ((type_ *)((uint8_t *)transform_shared + (at_)))
#define FORCED		   static __device__ __forceinline__

/* ---- numbers without divisions ---- */

/* The numbers of a thread are blockDim.x apart, so one division says where all of them are. */
struct spot {
	uint32_t line, at;
};

FORCED struct spot spot_of(uint32_t number, uint32_t length)
{
	struct spot p;

	p.line = number / length;
	p.at = number - p.line * length;
	return p;
}

FORCED void advance(struct spot *p, const struct spot *by, uint32_t length)
{
	p->line += by->line;
	p->at += by->at;
	if (p->at >= length) {
		p->at -= length;
		p->line++;
	}
}

/* By 1 to 4. */
FORCED uint32_t divide_by_channels(uint32_t number, uint32_t channels)
{
	return channels == 3 ? number / 3 : number >> channels / 2;
}

FORCED uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* ---- where samples are ---- */

/* The part of an image that a block makes something of, and how far its lines are apart. */
struct part {
	uint32_t from, line_step;
	uint16_t x, y, width, height;
};

FORCED struct part part_of(const struct transform_call *call)
{
	const struct transform_row row = call->row[blockIdx.y];
	struct part part;

	part.from = row.from;
	part.line_step = call->line_pixels[blockIdx.y] * call->pixel_step;
	part.x = row.x;
	part.y = row.y;
	part.width = row.width;
	part.height = row.height;
	return part;
}

FORCED uint64_t address_of(const struct transform_call *call, const struct part *row, uint32_t line, uint32_t channel)
{
	return call->from + row->from * call->record_step +
	       (uint64_t)((row->y & TRANSFORM_SIDE_MAX) + line) * row->line_step +
	       (uint64_t)(row->x & TRANSFORM_SIDE_MAX) * call->pixel_step + (uint64_t)channel * call->channel_step;
}

/* ---- (1) spans of the image as they lie, 16 bytes at a time ---- */

/* Lines of a part of the image.  Each has call->span_count spans, and each of these has chunks. */
struct lines {
	uint32_t first, count; /* of the part */
	uint32_t chunks;       /* of 16 bytes: a span begins within its first */
};

FORCED uint64_t chunk_at(const struct transform_call *call, const struct part *row, const struct lines *lines,
			 uint32_t span, uint32_t chunk)
{
	uint32_t line = divide_by_channels(span, call->span_count);

	return (address_of(call, row, lines->first + line, span - line * call->span_count) & ~(uint64_t)15) +
	       (uint64_t)chunk * 16;
}

/* Of the spans of a part, as wide as it is, wherever they begin. */
FORCED uint32_t chunks_of(const struct transform_call *call, const struct part *row)
{
	return (row->width * call->pixel_step + 30) / 16;
}

/* Load 16 bytes, without those that do not belong to the batch. */
FORCED uint4 load_within(const struct transform_call *call, uint64_t at)
{
	uint64_t half[2] = {0, 0};
	uint4 out;

	if (at >= call->from && at + 16 <= call->from_end)
		return __ldg((const uint4 *)(uintptr_t)at);
	COMPACT
	for (uint32_t i = 0; i < 8; i++) {
		UNROLL
		for (uint32_t h = 0; h < 2; h++)
			if (at + 8 * h + i >= call->from && at + 8 * h + i < call->from_end)
				half[h] |= (uint64_t)__ldg((const uint8_t *)(uintptr_t)(at + 8 * h + i)) << 8 * i;
	}
	out.x = (uint32_t)half[0];
	out.y = (uint32_t)(half[0] >> 32);
	out.z = (uint32_t)half[1];
	out.w = (uint32_t)(half[1] >> 32);
	return out;
}

/*
 * Bring lines to the tile, span behind span.  A thread begins TOGETHER loads before it stores what
 * they bring, so it waits once for all of them.  At the ends of a batch, where 16 bytes may be more
 * than there are, it goes byte by byte.
 */
FORCED void bring_lines(const struct transform_call *call, const struct part *row, const struct lines *lines)
{
	uint32_t spans = lines->count * call->span_count, count = spans * lines->chunks;
	struct spot p = spot_of(threadIdx.x, lines->chunks), step = spot_of(blockDim.x, lines->chunks);
	uint4 *to = SHARED(uint4, call->at_tile), chunk[TOGETHER];

	if (chunk_at(call, row, lines, 0, 0) >= call->from &&
	    chunk_at(call, row, lines, spans - 1, lines->chunks) <= call->from_end) {
		COMPACT
		for (uint32_t i = threadIdx.x; i < count; i += TOGETHER * blockDim.x) {
			UNROLL
			for (uint32_t k = 0; k < TOGETHER; k++) {
				if (i + k * blockDim.x < count)
					chunk[k] = __ldg(
						(const uint4 *)(uintptr_t)chunk_at(call, row, lines, p.line, p.at));
				advance(&p, &step, lines->chunks);
			}
			UNROLL
			for (uint32_t k = 0; k < TOGETHER; k++)
				if (i + k * blockDim.x < count)
					to[i + k * blockDim.x] = chunk[k];
		}
	} else {
		COMPACT
		for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
			to[i] = load_within(call, chunk_at(call, row, lines, p.line, p.at));
			advance(&p, &step, lines->chunks);
		}
	}
}

/* The table's part of a thread, if any, which is loaded first and stored last. */
FORCED uint4 load_table(const struct transform_call *call, uint32_t chunks)
{
	uint4 none = {0, 0, 0, 0};

	return threadIdx.x < chunks ? __ldg((const uint4 *)(uintptr_t)call->table + threadIdx.x) : none;
}

FORCED void store_table(const struct transform_call *call, uint32_t chunks, const uint4 *chunk)
{
	if (threadIdx.x < chunks)
		SHARED(uint4, 0)[threadIdx.x] = *chunk;
	COMPACT
	for (uint32_t i = threadIdx.x + blockDim.x; i < chunks; i += blockDim.x) /* in a small block */
		SHARED(uint4, 0)[i] = __ldg((const uint4 *)(uintptr_t)call->table + i);
}

#endif
