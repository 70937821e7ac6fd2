/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grid.c - how transforming is spread over the blocks of a GPU, and over a block's shared memory
 *
 * A block makes a band of neighbouring lines of one row of the output.  More lines per block share
 * the table and, when resizing, the lines of the image that neighbouring ones need; fewer let more
 * blocks run at a time.  When resizing, a block makes several bands if there are rows enough: they
 * share the weights across.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/transform/transform.h"

/*
 * Most GPUs give the blocks of a multiprocessor 64 KiB or more together, and 1024 threads or more:
 * 4 blocks of TRANSFORM_THREADS.  Crops take less, for more blocks, so that fewer processors wait
 * for the last ones: 256 crops to 224 x 224 are 4,096 blocks.  An H200 transforms 3,278 GB/s with
 * 11 KiB, 3,195 with 16, and 3,013 with 20.5 (batches of f16; means of two medians of seven).
 */
#define CROP_WANTED_BYTES 11264u
#define RESIZE_WANTED_BYTES \
	32768u /* half as many blocks, as short bands would resize the lines that they share again and again */
#define BAND_MOST   32u
#define STAGE_BYTES 8192u /* for lines of the image, where a tile is smaller: some loads of each thread */
#define SPARE_BYTES 16u	  /* behind a tile: threads read words, and begin at any byte */

static uint32_t room(uint32_t *at, uint64_t bytes)
{
	uint32_t here = *at;

	*at = (uint32_t)min_u64(align_up(here + bytes, 16),
				UINT32_MAX & ~15u); /* far too much is as bad as more than that */
	return here;
}

/*
 * Lines of the image that a band needs when all of it is shrunk: centres lie in / out apart, and
 * each reaches as far to both sides.
 */
static uint64_t lines_needed(const struct transform_plan *p, uint32_t band)
{
	uint64_t apart = ((uint64_t)(band - 1) * p->in_height + p->height - 1) / p->height;
	uint64_t reach = (p->in_height + p->height - UINT64_C(1)) / p->height;

	return min_u64(apart + 2 * reach + 1, p->in_height);
}

/* Of the tile, to bring lines of the image to: whole lines, at any place within their 16 bytes. */
static uint64_t stage_bytes(const struct transform_plan *p, const struct transform_call *c, uint64_t tile_bytes)
{
	uint64_t line = align_up((uint64_t)p->in_width * c->pixel_step + 15, 16) * c->span_count;

	return max_u64(max_u64(tile_bytes, STAGE_BYTES) / line, 1) * line;
}

/* Where things are for bands of `band` lines; what they take. */
static uint32_t lay_out(const struct transform_plan *p, struct transform_call *c, uint32_t band, bool has_stage)
{
	uint64_t tile;
	uint32_t at = align_up((uint64_t)p->channels * 256 * p->element_bytes, 16);

	c->band_lines = c->block_lines = band;
	if (p->crop != SHARD_CROP_RESIZED) {
		/* a span begins anywhere in its first 16 bytes */
		c->pitch = (uint32_t)align_up(c->span_bytes + UINT64_C(15), 16);
		c->at_tile = room(&at, (uint64_t)band * c->span_count * c->pitch + SPARE_BYTES);
		return at;
	}
	c->pitch = (uint32_t)align_up((uint64_t)p->width * p->channels, 4);
	c->across_taps = transform_taps_most(p->in_width, p->width);
	c->down_taps = transform_taps_most(p->in_height, p->height);
	c->at_across =
		room(&at, p->width * (sizeof(struct transform_taps) + (uint64_t)c->across_taps * sizeof(int32_t)));
	c->at_down = room(&at, band * (sizeof(struct transform_taps) + (uint64_t)c->down_taps * sizeof(int32_t)));
	c->at_lines = room(&at, max_u64(lines_needed(p, band) * c->pitch,
					(uint64_t)band * transform_down_first_width(p) * p->channels));
	tile = (uint64_t)band * c->pitch + SPARE_BYTES;
	c->stage_bytes = has_stage ? (uint32_t)stage_bytes(p, c, tile) : 0;
	c->at_tile = room(&at, max_u64(tile, c->stage_bytes));
	return at;
}

int transform_grid(const struct transform_plan *p, uint32_t shared_most, struct transform_call *c,
		   uint32_t *shared_bytes, struct shard_error *err)
{
	uint32_t wanted = p->crop == SHARD_CROP_RESIZED ? RESIZE_WANTED_BYTES : CROP_WANTED_BYTES;
	uint32_t band = p->height < BAND_MOST ? p->height : BAND_MOST, bands;

	memset(c, 0, offsetof(struct transform_call, row));
	c->pixel_step = p->in_is_planar ? 1 : p->channels;
	c->channel_step = p->in_is_planar ? p->in_width * p->in_height : 1;
	c->channels = p->channels;
	c->height = p->height;
	c->width = p->width;
	c->is_planar = p->is_planar;
	c->span_count = p->in_is_planar ? p->channels : 1;
	c->span_bytes = p->width * (p->in_is_planar ? 1 : p->channels);
	while (band > 1 && lay_out(p, c, band, true) > wanted)
		band--;
	bands = (p->height + band - 1) / band;
	band = (p->height + bands - 1) / bands; /* evenly, as far as it goes */
	*shared_bytes = lay_out(p, c, band, true);
	if (*shared_bytes > shared_most)
		*shared_bytes = lay_out(p, c, band, false);
	if (*shared_bytes > shared_most)
		return error_set(err, SHARD_E_ARGUMENT,
				 "output of %" PRIu32 " x %" PRIu32 " from images of %" PRIu32 " x %" PRIu32 ": a "
				 "line needs %" PRIu32 " bytes of shared memory, and a block of this GPU has %" PRIu32
				 "; pack smaller images, or transform on the CPU",
				 p->height, p->width, p->in_height, p->in_width, *shared_bytes, shared_most);
	return SHARD_OK;
}

void transform_put_row(const struct transform_plan *p, struct transform_call *c, uint32_t i,
		       const struct shard_transform_row *row, uint32_t image_width, uint32_t from)
{
	bool down_first = p->crop == SHARD_CROP_RESIZED && transform_is_down_first(p, row);

	c->row[i] = (struct transform_row){.from = from,
					   .x = (uint16_t)(row->x | (row->flip ? TRANSFORM_FLIP : 0)),
					   .y = (uint16_t)(row->y | (down_first ? TRANSFORM_DOWN_FIRST : 0)),
					   .width = (uint16_t)row->width,
					   .height = (uint16_t)row->height};
	c->line_pixels[i] = (uint16_t)image_width;
}

void transform_spread(struct transform_call *c, uint32_t rows, uint32_t blocks)
{
	uint32_t bands = (c->height + c->band_lines - 1) / c->band_lines, each = (blocks + rows - 1) / rows;

	if (c->across_taps) /* a crop gains nothing: its blocks share no weights */
		c->block_lines = (each < bands ? (bands + each - 1) / each : 1) * c->band_lines;
}

uint32_t transform_blocks(const struct transform_call *c)
{
	return (c->height + c->block_lines - 1) / c->block_lines;
}

void transform_shape(const struct transform_plan *p, bool aligned, struct transform_call *c,
		     char name[TRANSFORM_NAME_BYTES])
{
	static const char *const shapes[] = {[TRANSFORM_ANY] = "any", [TRANSFORM_CHW] = "chw", [TRANSFORM_HWC] = "hwc"};
	uint32_t together = 16 / p->element_bytes; /* pixels whose numbers one thread stores side by side */
	bool fast = aligned && p->element_bytes > 1 && p->channels == 3 && p->width % together == 0 &&
		    (p->crop == SHARD_CROP_RESIZED || !p->in_is_planar);

	c->shape = !fast ? TRANSFORM_ANY : p->is_planar ? TRANSFORM_CHW : TRANSFORM_HWC;
	if (p->crop == SHARD_CROP_RESIZED)
		snprintf(name, TRANSFORM_NAME_BYTES, "transform_resize_%u", 8 * p->element_bytes);
	else
		snprintf(name, TRANSFORM_NAME_BYTES, "transform_crop_%s_%u", shapes[c->shape], 8 * p->element_bytes);
}
