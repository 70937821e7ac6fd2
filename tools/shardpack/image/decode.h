/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.h - the bytes of an image file to RGB or the values of a mask, or a sentence that says why not
 *
 * The pixels are those of Pillow's Image.open(...).convert("RGB") with libjpeg-turbo: alpha
 * is dropped, palettes and gray are expanded, CMYK is converted as Pillow does, colour
 * profiles and the EXIF orientation are ignored.  Content decides, never a file's name.
 *
 * Unlike Pillow this is strict.  A decoder that warns of damage has invented pixels, so a
 * damaged or shortened file is bad input, unless it is a JPEG and of a damage that was to be accepted.  A verdict is a function of the bytes and the
 * options alone: not of the images before, the thread, or the memory that was free.
 */
#ifndef SHARDPACK_DECODE_H
#define SHARDPACK_DECODE_H

#include "tools/shardpack/image/image.h"

#define DECODE_PIXELS_DEFAULT	    89478485 /* where Pillow warns of a bomb */
#define DECODE_SIDE_MAX		    65500    /* the most that libjpeg reads; the default */
#define DECODE_SCANS_DEFAULT	    100	     /* real progressive files have about 10 */
#define DECODE_MEMORY_DEFAULT_BYTES (UINT64_C(768) << 20)

/* Which damage of JPEGs is accepted; the pixels are those that libjpeg-turbo gives. */
enum decode_accept {
	ACCEPT_NONE,
	ACCEPT_EOI,	 /* nothing is missing but the end-of-image marker: all pixels are those of the whole file */
	ACCEPT_WARNINGS, /* whatever libjpeg warns of and goes on; it makes up what it cannot know */
};

/* Limits; zero means the default. */
struct decode_options {
	enum decode_accept accept;
	uint64_t max_pixels;
	uint32_t max_side;
	uint32_t max_scans;
	uint64_t max_memory_bytes; /* inside a decoder, beside the image */

	/* Called before memory of the order of a whole image is used for it, with its size; may wait.  NULL: nobody cares. */
	void (*claim)(void *context, uint64_t bytes);
	void *context;
};

enum decode_status {
	DECODE_OK = 0,
	DECODE_BAD_INPUT = 1, /* the verdict says why; the next run may be good */
	DECODE_NO_MEMORY = 2, /* says nothing about the input */
};

struct decode_verdict {
	/*
	 * enum shard_miss_reason for DECODE_BAD_INPUT, else 0; with DECODE_OK also of what was accepted: TRUNCATED if
	 * only the end-of-image marker is missing, DAMAGED if pixels are made up.
	 */
	int reason;
	char message[240]; /* one line, without the file's name; empty without a reason */
};

/* One per thread. */
struct decoder;

/* `opt` may be NULL.  NULL when memory ran out. */
struct decoder *decoder_open(const struct decode_options *opt);
void decoder_close(struct decoder *d);

/*
 * The wanted part of an image, row by row.  The verdict is on the whole file, and the same as decoder_run() gives: what
 * is not wanted is read as well.
 */
enum decode_status decoder_stream(struct decoder *d, const void *bytes, size_t size, const struct image_sink *sink,
				  struct decode_verdict *v);

/*
 * The same of a mask: one byte for each pixel, which is not a colour but a value.  The values are those of NumPy's
 * asarray(Image.open(...)) with Pillow: the indices of a palette, whatever it looks like and wherever it ends; the
 * samples of gray, of 1 bit 0 and 1, of 2 and 4 bits, and of a PGM that ends below 255, scaled to 255; those of 16 bits
 * where none of them is above 255 (a PGM must say 65535, or Pillow scales it).  Read are PNG, BMP and PGM.  More channels,
 * an animation, and what is not lossless are bad input.
 */
enum decode_status decoder_mask(struct decoder *d, const void *bytes, size_t size, const struct image_sink *sink,
				struct decode_verdict *v);

/* All of an image.  The pixels of *out are the decoder's, until its next run or close. */
enum decode_status decoder_run(struct decoder *d, const void *bytes, size_t size, struct image *out,
			       struct decode_verdict *v);

/* For a verdict of one's own: fill *v; returns DECODE_BAD_INPUT.  The reason is an enum shard_miss_reason. */
enum decode_status decode_bad(struct decode_verdict *v, int reason, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Names and versions of the libraries behind it, for --version and for provenance. */
const char *decoder_jpeg_version(void);
const char *decoder_png_version(void);
const char *decoder_webp_version(void);

#endif /* SHARDPACK_DECODE_H */
