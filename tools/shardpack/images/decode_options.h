/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_options.h - how large an image may be, and which damage is accepted
 */
#ifndef SHARD_DECODE_DECODE_OPTIONS_H
#define SHARD_DECODE_DECODE_OPTIONS_H

#include <stdint.h>

#define DECODE_PIXELS_DEFAULT	    89478485 /* where Pillow warns of a bomb */
#define DECODE_SIDE_MAX		    65500    /* the most that libjpeg reads; the default */
#define DECODE_SCANS_DEFAULT	    100	     /* real progressive files have about 10 */
#define DECODE_FRAMES_DEFAULT	    UINT32_MAX
#define DECODE_MEMORY_DEFAULT_BYTES (UINT64_C(768) << 20)

/* Which damage of JPEGs is accepted; the pixels are those that libjpeg-turbo gives. */
enum decode_accept {
	ACCEPT_NONE,
	/* nothing is missing but the end-of-image marker: all pixels are those of the whole file */
	ACCEPT_EOI,
	/*
	 * any damage that libjpeg warns of and goes on from; it makes up the pixels that it cannot
	 * know
	 */
	ACCEPT_WARNINGS,
};

/* Limits; zero means the default. */
struct decode_options {
	enum decode_accept accept;
	uint64_t max_pixels;
	uint32_t max_side;
	uint32_t max_scans;
	uint32_t max_frames;	   /* or pages; of more than one the first one is read */
	uint64_t max_memory_bytes; /* inside a decoder, beside the image */

	/*
	 * Called with a size before a decoder allocates about as much memory as a whole image
	 * takes.  It may wait.  NULL if memory is not limited.
	 */
	void (*claim)(void *context, uint64_t bytes);
	void *context;
};

#endif
