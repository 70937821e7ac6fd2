/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.h - what a kernel of libshard/gpu/transform.cu is told: its one parameter, by value
 *
 * Read by C and by nvcc alike.  Changing it changes the kernels: libshard/gpu/make_ptx.sh makes
 * them again.
 */
#ifndef SHARD_TRANSFORM_CALL_H
#define SHARD_TRANSFORM_CALL_H

#include <stdint.h>

#define TRANSFORM_ROWS	       256u    /* of one call: parameters of a kernel have 4096 bytes */
#define TRANSFORM_THREADS      256u    /* of a block */
#define TRANSFORM_SHARED_BYTES 49152u  /* of a block: what every GPU gives without being asked for more */
#define TRANSFORM_FLIP	       0x8000u /* in transform_row.x */
#define TRANSFORM_DOWN_FIRST   0x8000u /* in transform_row.y */
#define TRANSFORM_SIDE_MAX     0x7fffu
#define TRANSFORM_CHANNELS_MAX 4u
#define TRANSFORM_FRACTION_BITS \
	22 /* of a weight: Pillow's, so that 8-bit samples of up to 255 fit an int32_t with it */

/*
 * How numbers are stored: one by one, or 16 bytes of three channels by each thread, as planes or
 * interleaved.
 */
enum { TRANSFORM_ANY, TRANSFORM_CHW, TRANSFORM_HWC };

/* Where one row of the output comes from. */
struct transform_row {
	uint32_t from;		      /* record, from transform_call.from on */
	uint16_t x, y, width, height; /* part of the image; x with FLIP, y with DOWN_FIRST */
};

/* First tap of an output pixel, and how many it has. */
struct transform_taps {
	uint16_t first, count;
};

/*
 * Addresses are the device's; at_* are bytes from the start of a block's shared memory, multiples
 * of 16.
 */
struct transform_call {
	uint64_t from, from_end;	   /* images; the first byte that may not be read */
	uint64_t to;			   /* 16-aligned, unless stored one by one */
	uint64_t table;			   /* [channel][256] numbers of the output's type, for each sample */
	uint64_t record_step;		   /* bytes, as all steps: between images */
	uint32_t pixel_step, channel_step; /* within an image; lines: see line_pixels */
	uint32_t channels, height, width;  /* of the output; channels of the image, too */
	uint32_t is_planar;		   /* the output is CHW */
	uint32_t band_lines;		   /* of the output, that a block makes together */
	uint32_t block_lines;		   /* that it makes: one band, or resize: several */
	/* crop: neighbouring bytes of an output line in the image: one span, or one per plane */
	uint32_t span_count, span_bytes;
	uint32_t across_taps, down_taps; /* resize: the most that a pixel has */
	uint32_t pitch;			 /* of lines in shared memory */
	uint32_t at_tile;		 /* crop: spans as they lie; resize: lines of the output, interleaved */
	/*
	 * resize: of the tile, which holds lines of the image before those of the output, at least
	 * one; or 0, if there is no room: then samples are read where they lie
	 */
	uint32_t stage_bytes;
	/* resize: struct transform_taps of each pixel, and behind them int32_t [tap][pixel] */
	uint32_t at_across, at_down;
	/*
	 * resize, between the passes, interleaved: lines of the image that the band needs, resized
	 * across; or, down first, lines of the band as wide as the part
	 */
	uint32_t at_lines;
	uint32_t shape;				  /* TRANSFORM_ANY and so on; of crops the kernel's name says it */
	struct transform_row row[TRANSFORM_ROWS]; /* blockIdx.y */
	/* How wide the image of each row is.  Within a row it would take 4 bytes. */
	uint16_t line_pixels[TRANSFORM_ROWS];
};

#endif
