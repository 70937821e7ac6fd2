/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize_passes.h - the inner loops of the resampler, in the ways that a processor may offer
 *
 * resize.c decides what is summed, these do it.  Every way gives the same bytes: the sums are
 * 32-bit integers modulo 2^32, so neither the order of addition nor how a weight is taken apart can
 * be seen in them.  Reads stay within the rows that the caller gives, writes within theirs and
 * RESIZE_ROW_SLACK_BYTES behind.
 */
#ifndef SHARD_IMAGE_RESIZE_PASSES_H
#define SHARD_IMAGE_RESIZE_PASSES_H

#include <stddef.h>

#include "tools/shardpack/images/resize_taps.h"

/* The weights of one axis, packed as the pass over it wants them. */
struct resize_table {
	struct taps_axis axis;	  /* .count is 0 in a table never filled */
	struct taps_range *range; /* [axis.count] */
	int32_t *weight;	  /* sample i has weight[i * per_sample] and on */
	int32_t *start;		  /* [axis.count] for the pass's own use */
	uint32_t per_sample;	  /* even */
};

/*
 * Rows between the passes begin on a multiple of this, and have at least RESIZE_ROW_SLACK_BYTES
 * behind them.
 */
#define RESIZE_ROW_ALIGN_BYTES 32
#define RESIZE_ROW_SLACK_BYTES 16

#define RESIZE_ROWS_AT_ONCE 8

struct resize_passes {
	/*
	 * Make a table of plain weights into one of this way's.  Ranges may grow, inside the image.
	 */
	void (*pack_across)(struct resize_table *t);
	void (*pack_down)(struct resize_table *t);

	/* How much room horizontal() needs. */
	size_t (*work_bytes)(const struct resize_table *across);

	/* 1 to RESIZE_ROWS_AT_ONCE rows, which start with the first column that the table reads. */
	void (*horizontal)(const struct resize_table *across, const uint8_t *src, size_t src_stride_bytes,
			   uint32_t row_count, void *work, uint8_t *dst, size_t dst_stride_bytes);

	/*
	 * Row y of the table; src is its range's first row, of rows between the passes.  Writes no
	 * slack.
	 */
	void (*vertical)(const struct resize_table *down, uint32_t y, const uint8_t *src, size_t src_stride_bytes,
			 uint8_t *dst, size_t sample_count);

	/* Pixels side by side to three planes.  Writes no slack. */
	void (*split)(const uint8_t *src, size_t pixel_count, uint8_t *dst, size_t plane_bytes);
};

#endif
