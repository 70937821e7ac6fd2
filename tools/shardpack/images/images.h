/* SPDX-License-Identifier: Apache-2.0 */
/*
 * images.h - images, masks and boxes: decoded, set upright, resized, normalised
 *
 * The sections are in the order in which a file meets them.
 */
#ifndef SHARD_SHARDPACK_IMAGES_IMAGES_H
#define SHARD_SHARDPACK_IMAGES_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shard.h"
#include "tools/common/cli.h"
#include "tools/common/text.h"

/* ---- the picture between decode and transform, and the memory it lies in ---- */

/*
 * One pixel format only: 8-bit RGB, interleaved, rows without padding.  Everything that arrives in
 * another form becomes this in the decoder.  Two things differ: masks, which have one sample for
 * each pixel, and images of which 16 bits a sample were asked for.
 */

#define IMAGE_CHANNELS	 3
#define IMAGE_WIDE_BYTES 6 /* of a pixel with 16 bits a sample */

/* Where the pixels of a file end up; also how a record of the dataset is laid out. */
enum image_layout {
	IMAGE_HWC, /* row by row, a pixel's three samples side by side */
	IMAGE_CHW, /* three planes, red first */
};

struct image {
	const uint8_t *pixels; /* height * width * 3; borrowed */
	uint32_t width, height;
};

/* Part of an image; lies inside it and is not empty. */
struct image_window {
	uint32_t x, y, width, height;
};

/*
 * An image on its way.  It may have been decoded at 1/scale: then its columns and rows are fewer,
 * width / scale rounded up, and the last of them are partly beyond its edge; or the first ones, if
 * it was turned since.
 */
struct image_size {
	uint32_t width, height; /* as the file has them */
	uint32_t scale;		/* 1, 2, 4 or 8 */
	bool cut_left, cut_top;
};

static inline uint32_t image_columns(const struct image_size *s)
{
	return (s->width + s->scale - 1) / s->scale;
}

static inline uint32_t image_rows(const struct image_size *s)
{
	return (s->height + s->scale - 1) / s->scale;
}

/* How a JPEG is to be decoded. */
struct image_scaling {
	uint32_t scale;
	uint32_t width, height; /* after the resize */
};

/*
 * The taker of an image's pixels while it is decoded.  begin() is called when the size is known and
 * within the limits, and says which of its columns and rows are wanted; false means that memory ran
 * out.  It is called again if the image is decoded a second time.  rows() gets the rows of that part
 * from the top, from its first column on, a few at a time.  They may turn out to be worthless: damage
 * further down in the file is found later.
 *
 * scaling() is asked before, if it is there, by a decoder that can; false if the scale that is
 * asked for would leave less than the wanted size.  The others decode the whole image, at scale 1.
 *
 * fits() is asked first, if it is there: false, and `why` says why not, if no record can be made of
 * an image of this size.
 */
struct image_sink {
	bool (*begin)(void *context, const struct image_size *size, struct image_window *wanted);
	void (*rows)(void *context, const uint8_t *pixels, size_t stride_bytes, uint32_t row_count);
	void *context;
	bool (*scaling)(void *context, uint32_t width, uint32_t height, struct image_scaling *out);
	bool (*fits)(void *context, uint32_t width, uint32_t height, char *why, size_t why_bytes);
};

/* All of an image that lies in memory; a pixel has `pixel_bytes`.  False if begin() says so. */
static inline bool image_give(const struct image_sink *sink, const struct image_size *size, const uint8_t *pixels,
			      uint32_t pixel_bytes)
{
	size_t stride_bytes = pixel_bytes * (size_t)image_columns(size);
	struct image_window part;

	if (!sink->begin(sink->context, size, &part))
		return false;
	sink->rows(sink->context, pixels + part.y * stride_bytes + pixel_bytes * (size_t)part.x, stride_bytes,
		   part.height);
	return true;
}

/*
 * Memory that grows to the largest request and stays: after the first images a thread
 * allocates nothing more.  Start it zeroed.
 */
struct scratch {
	uint8_t *data;
	size_t capacity_bytes;
};

#define SCRATCH_ALIGN_BYTES 64 /* a cache line */
#define SCRATCH_SLACK_BYTES 64 /* readable past the request: wide loads may overrun a row */

/* Make room for `bytes`; the old contents are lost.  False when memory ran out. */
static inline bool scratch_reserve(struct scratch *s, size_t bytes)
{
	size_t want;

	if (s->data && bytes <= s->capacity_bytes)
		return true;
	if (bytes > SIZE_MAX - SCRATCH_SLACK_BYTES - SCRATCH_ALIGN_BYTES)
		return false;
	want = (bytes + SCRATCH_SLACK_BYTES + SCRATCH_ALIGN_BYTES - 1) & ~(size_t)(SCRATCH_ALIGN_BYTES - 1);
	free(s->data);
	s->data = aligned_alloc(SCRATCH_ALIGN_BYTES, want);
	s->capacity_bytes = s->data ? want - SCRATCH_SLACK_BYTES : 0;
	return s->data != NULL;
}

static inline void scratch_free(struct scratch *s)
{
	free(s->data);
	s->data = NULL;
	s->capacity_bytes = 0;
}

/* ---- decode.c: verdicts ---- */

enum decode_status {
	DECODE_OK = 0,
	DECODE_BAD_INPUT = 1, /* the verdict says why; the next run may be good */
	DECODE_NO_MEMORY = 2, /* says nothing about the input */
};

#define DECODE_FIRST_BYTES 80

/* What a file says of its pixels, or has beside them, and its record does not have. */
enum decode_dropped {
	DROPPED_ORIENTATION, /* the pixels are as they lie in the file */
	DROPPED_ALPHA,	     /* also of a palette, or of one transparent colour */
	DROPPED_PROFILE,     /* a colour profile, gamma or primaries other than those of sRGB */
	DROPPED_CMYK,	     /* four inks became RGB without a profile */
	DROPPED_BITS,	     /* samples of more than 8 bits, of which the upper 8 are left */
	DROPPED_COUNT,
};

struct decode_verdict {
	/*
	 * enum shard_miss_reason for DECODE_BAD_INPUT, else 0; with DECODE_OK also for accepted
	 * damage: TRUNCATED if only the end-of-image marker is missing, DAMAGED if pixels are made
	 * up.
	 */
	int reason;
	char message[240]; /* one line, without the file's name; empty without a reason */
	/* with DECODE_OK: of how many frames or pages only the first one was read; else empty */
	char first[DECODE_FIRST_BYTES];
	uint32_t dropped; /* with DECODE_OK: bits 1 << enum decode_dropped */
};

/* The pixels are packed without this. */
static inline void decode_drop(struct decode_verdict *v, enum decode_dropped what)
{
	v->dropped |= 1u << what;
}

/* Fill *v; returns DECODE_BAD_INPUT.  The reason is an enum shard_miss_reason. */
enum decode_status decode_bad(struct decode_verdict *v, int reason, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

enum decode_status decode_no_memory(struct decode_verdict *v);

/* The image has other samples than the 16 bits that were asked for: "8 bits a sample". */
enum decode_status decode_not_wide(struct decode_verdict *v, const char *format, const char *what);

/* Verdicts on a file that should be a mask.  `format` is its name. */
enum decode_status decode_bad_channels(struct decode_verdict *v, const char *format, int channel_count);
enum decode_status decode_bad_value(struct decode_verdict *v, const char *format, uint32_t value, uint32_t x,
				    uint32_t y);

/* ---- decode.c: how large an image may be, and which damage is accepted ---- */

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

/*
 * mask.c: which class each colour, or each value, of a mask is
 *
 * Lines of a file, in any order: "R G B CLASS" of a map of colours, or "VALUE CLASS" of a map of
 * values, and "* CLASS" for all that no line names.  A file has one of both kinds.  In a plan a map
 * is one word, with its lines in the order of their keys: "0.0.0-0/128.64.128-1/else-255".  Pure.
 */

struct mask_map { /* start it zeroed */
	struct mask_map_line *line;
	uint64_t count, capacity;
	bool of_colours; /* once there is a line with a key */
	bool has_others; /* a line "*" */
	uint32_t others;
};

#define MASK_MAP_LINES_MAX     4096  /* each shard carries them, in its provenance, */
#define MASK_MAP_ALL_LINES_MAX 16384 /* so these are of all maps: less than half of a MiB */

/*
 * Add a line of a file, which may be empty or a comment behind '#'.  False, and `why` says why not,
 * if it is not such a line, or its key was there before.
 */
bool mask_map_add(struct mask_map *m, const char *text, size_t bytes, char *why, size_t why_bytes);

/* The word of a plan, to be read back into an empty map.  False if it is not the one form. */
void mask_map_write(const struct mask_map *m, struct text *out);
bool mask_map_read(struct mask_map *m, const char *word, size_t bytes);

/* The largest class of all lines. */
uint32_t mask_map_most(const struct mask_map *m);

void mask_map_copy(const struct mask_map *m, struct mask_map *out);

void mask_map_free(struct mask_map *m);

/*
 * mask.c - what the pixels of a mask file stand for
 *
 * With a map, the class of each colour or of each value.  Without one, the values of gray, and of
 * colours R + 256 G + 65536 B, as COCO's panoptic masks have them.  Opaque alpha is dropped; any
 * other is refused, since it could mean "not labelled".
 */

#define MASK_PIXEL_BYTES 4 /* the most that a file has for a pixel, and a record too */

struct mask_codes {
	uint32_t sample_bytes;	    /* of a record: 1, 2 or 4 */
	const struct mask_map *map; /* or NULL */
};

/* The pixels of a file. */
struct mask_pixels {
	const char *format; /* its name, for messages */
	uint32_t channels;  /* 1 to 4; the last one of 2 and 4 is alpha */
	bool wide;	    /* 16 bits, the high byte first; of one channel only */
	/* What the values of one channel stand for, RGB each; NULL if they are not indices. */
	const uint8_t *palette;
	uint32_t palette_count;
};

static inline uint32_t mask_pixel_bytes(const struct mask_pixels *p)
{
	return p->channels * (p->wide ? 2 : 1);
}

/* Can pixels of this kind be what is asked for? */
enum decode_status mask_codes_check(const struct mask_codes *c, const struct mask_pixels *p, struct decode_verdict *v);

/*
 * Row y: `width` pixels of the file to samples at `to`.  The row may end where `to` + width *
 * MASK_PIXEL_BYTES ends: a sample is written when its pixel has been read.
 */
enum decode_status mask_codes_row(const struct mask_codes *c, const struct mask_pixels *p, const uint8_t *row,
				  uint32_t width, uint32_t y, uint8_t *to, struct decode_verdict *v);

/*
 * decode.c - the bytes of an image file to RGB or the values of a mask, or a sentence that says why
 * not
 *
 * The pixels are those of Pillow's Image.open(...).convert("RGB") with libjpeg-turbo: alpha
 * is dropped, palettes and gray are expanded, CMYK is converted as Pillow does, colour
 * profiles and the EXIF orientation are ignored.  Content decides, never a file's name.
 *
 * Unlike Pillow this is strict.  A decoder that warns of damage has invented pixels, so a damaged
 * or shortened file is bad input, unless it is a JPEG and of a damage that was to be accepted.  A
 * verdict is a function of the bytes and the options alone: not of the images before, the thread,
 * or the memory that was free.
 */

/* One per thread. */
struct decoder;

/* `opt` may be NULL.  NULL when memory ran out. */
struct decoder *decoder_open(const struct decode_options *opt);
void decoder_close(struct decoder *d);

enum decode_kind {
	DECODE_RGB,
	/*
	 * 16 bits a sample, in the order of bytes of this machine: 6 bytes a pixel.  Read are PNG and
	 * TIFF that have 16 bits, gray and RGB; alpha is dropped.  Others are bad input, since 8 bits
	 * could mean x or 257 x.
	 */
	DECODE_WIDE,
	/*
	 * One byte for each pixel, which is not a colour but a value.  The values are those of NumPy's
	 * asarray(Image.open(...)) with Pillow: the indices of a palette, whatever it looks like and
	 * wherever it ends; the samples of gray, of 1 bit 0 and 1, of 2 and 4 bits, and of a PGM that
	 * ends below 255, scaled to 255; those of 16 bits where none of them is above 255 (a PGM must
	 * say 65535, or Pillow scales it).  Read are PNG, BMP and PGM.  More channels, animations and
	 * lossy files are bad input.
	 */
	DECODE_MASK,
};

/*
 * The wanted part of an image, row by row.  The verdict is on the whole file: unwanted parts are
 * read as well.
 *
 * `codes` is NULL, or for a mask whose pixels are classes by a map, or ids of more than 8 bits.
 * Then the sink gets codes->sample_bytes for each, and colours are read as well.
 */
enum decode_status decoder_stream(struct decoder *d, enum decode_kind kind, const struct mask_codes *codes,
				  const void *bytes, size_t size, const struct image_sink *sink,
				  struct decode_verdict *v);

/* ---- decode.c: what all decoders share ---- */

struct decoder {
	struct decode_options limit; /* no zeros; const after open */
	struct scratch pixels;	     /* the image, or some rows of it, always the last one */
	uint32_t width, height;	     /* of the image that decode_begin() made room for */
	struct scratch line;	     /* one row in the file's own channels */
	uint32_t channels;	     /* IMAGE_CHANNELS, or 1 for a mask */
	bool wide;		     /* the image is to have 16 bits a sample */
	/*
	 * In `pixels`: channels, IMAGE_WIDE_BYTES, or 2 for a mask of 16 bits until its values fit;
	 * MASK_PIXEL_BYTES for a mask of codes, until decode_codes() has made its samples.
	 */
	uint32_t pixel_bytes;
	const struct mask_codes *codes; /* of a mask; NULL: its values are its samples */
	const struct image_sink *sink;	/* takes the rows */
	/* its rows are given by the format's decoder; else decode.c does it at the end */
	bool sink_begun;
	uint64_t claimed_bytes; /* the most that was claimed for the image at hand */
};

/* Hold the size against the limits. */
enum decode_status decode_check_size(struct decoder *d, uint64_t width, uint64_t height, struct decode_verdict *v);

/* The same, and make room for the pixels. */
enum decode_status decode_begin(struct decoder *d, uint64_t width, uint64_t height, struct decode_verdict *v);

/*
 * A file has `count` frames, or pages, as `things` calls them.  If these are more than the limit, the
 * file is bad input.  Else only the first one is read, and *v says so.
 */
enum decode_status decode_first_of(const struct decoder *d, uint64_t count, const char *format, const char *things,
				   struct decode_verdict *v);

/* Before memory that decode_begin() does not allocate. */
void decode_claim(struct decoder *d, uint64_t bytes);

/* Would the system grant as much memory? */
bool decode_has_memory(uint64_t bytes);

/* Where row y starts; decode_begin was called. */
uint8_t *decode_row(struct decoder *d, uint32_t y);

/*
 * Rows of one sample per pixel are read into the last third of their place and spread from there,
 * forward: pixel i is written to [3i, 3i + 3) and read from 2 * width + i, which a write reaches
 * only in the last pixel, after its read.  (Those of a mask stay as they are.)  A wide row is one
 * of twice that width.
 */
static inline uint8_t *decode_narrow_row(uint8_t *row, uint32_t width)
{
	return row + 2 * (size_t)width;
}

/* What the sink gets for a pixel. */
static inline uint32_t decode_given_bytes(const struct decoder *d)
{
	return d->codes ? d->codes->sample_bytes : d->wide ? IMAGE_WIDE_BYTES : d->channels;
}

/* Of a mask of codes: a row as the file has it becomes row y; decode_begin() was called. */
enum decode_status decode_codes(struct decoder *d, const struct mask_pixels *p, const uint8_t *row, uint32_t y,
				struct decode_verdict *v);

/*
 * Samples of 16 bits, the high byte first, to bytes.  The first one above 255 gets its column into
 * *bad_x and its value is returned; else 0.  `to` may be `row`, or lie before it.
 */
uint32_t decode_16_to_8(const uint8_t *row, uint32_t width, uint8_t *to, uint32_t *bad_x);

void decode_spread_gray(uint8_t *row, uint32_t width);
void decode_spread_wide(uint8_t *row, uint32_t width);

/*
 * True of a profile of RGB whose three primaries are those of sRGB, to 1 part in 50.  True as well
 * of one of gray or CMYK: these are not about RGB.  False if its primaries are others, such as
 * those of Adobe RGB or Display P3, or are not in these bytes, which may be the first ones of a
 * longer profile.
 */
bool icc_is_like_srgb(const uint8_t *profile, size_t bytes);

/*
 * decode_*.c - the decoders
 *
 * `bytes` begin with the format's magic.  Of several frames or pages the first one is read.
 */

typedef enum decode_status decode_run(struct decoder *d, const uint8_t *bytes, size_t size, struct decode_verdict *v);

decode_run jpeg_run, png_run, webp_run, bmp_run, ppm_run;
decode_run gif_run, tiff_run, avif_run; /* a build may lack these */

const char *decoder_jpeg_version(void); /* "libjpeg-turbo 2.1.5" */
const char *decoder_png_version(void);	/* "libpng 1.6.39" */
const char *decoder_webp_version(void); /* "libwebp 1.2.4" */
const char *decoder_gif_version(void);	/* "giflib 5.2.1" */
const char *decoder_tiff_version(void); /* "libtiff 4.5.0" */
const char *decoder_avif_version(void); /* "libavif 0.11.1 with dav1d 1.0.0 and libyuv 1857" */

/* What a user can do with an AVIF that is not read. */
#define AVIF_AS_PNG "convert it to PNG: python3 -c \"from PIL import Image; Image.open('a.avif').save('a.png')\""

/*
 * heif.c - the container of AVIF and HEIF: which of them it is, and in which order its parts are
 */

/* Does it begin as such a container, with a brand of AVIF? */
bool heif_is_avif(const uint8_t *bytes, size_t size);

/*
 * Is the data that all items name, together, at most `most` bytes?  libavif copies items that are
 * in pieces, each with memory of its own, and items may share their bytes.
 */
bool heif_items_fit(const uint8_t *bytes, size_t size, uint64_t most);

/*
 * libavif before 1.1 puts the parts of a grid together in the order in which the file first names
 * them, whatever the grid says.  True if there is no grid, or if each list of parts is in the order
 * of their numbers, so that both orders are one.  The rest of the container is libavif's to judge.
 */
bool heif_grids_in_order(const uint8_t *bytes, size_t size);

/* A stretch of a file, borrowed. */
struct byte_span {
	const uint8_t *at;
	size_t count;
};

/* A number whose high byte comes first. */
static inline uint32_t load32_big(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/*
 * A walk over the segments of a JPEG file, up to its first scan
 *
 * No length is trusted.  What stands between segments is passed over, as the decoder does.
 */

#define JPEG_SEGMENTS_AT 2 /* where a walk begins */
#define JPEG_APP1	 0xe1
#define JPEG_APP2	 0xe2

struct jpeg_segment {
	uint32_t marker;     /* its second byte */
	const uint8_t *data; /* borrowed from the file */
	size_t bytes;
};

/*
 * The segment at *at or behind it, which goes on to the next one.  False where no whole one is
 * left.
 */
static inline bool jpeg_segment_next(const uint8_t *file, size_t size, size_t *at, struct jpeg_segment *out)
{
	while (size >= 4 && *at <= size - 4) {
		uint32_t marker = file[*at + 1];
		size_t length = (size_t)file[*at + 2] << 8 | file[*at + 3];

		if (file[*at] != 0xff || marker == 0xff || marker == 0x00 || marker == 0x01 ||
		    (marker >= 0xd0 && marker <= 0xd8)) { /* junk, padding, or a marker without a length */
			++*at;
			continue;
		}
		if (marker == 0xda || marker == 0xd9 || length < 2 || length > size - *at - 2)
			break;
		*out = (struct jpeg_segment){marker, file + *at + 4, length - 2};
		*at += 2 + length;
		return true;
	}
	return false;
}

/* Does it begin with this?  A literal's NUL at the end does not count. */
#define jpeg_segment_is(segment, app, text)                                    \
	((segment)->marker == (app) && (segment)->bytes >= sizeof(text) - 1 && \
	 !memcmp((segment)->data, text, sizeof(text) - 1))

/*
 * A walk over the chunks of a PNG file
 *
 * No length is trusted.  Sums are not checked, and the walk may end at damage: the decoder decides
 * that.
 */

#define PNG_MAGIC_BYTES 8  /* where a walk begins */
#define PNG_FRAME_BYTES 12 /* of a chunk: length, name, sum */

struct png_chunk {
	const uint8_t *name; /* 4 letters */
	const uint8_t *data; /* borrowed from the file */
	size_t bytes;
};

/*
 * The chunk at *at, which goes on to the next one.  False at the end of the file, or where no whole
 * chunk is left.
 */
static inline bool png_chunk_next(const uint8_t *file, size_t size, size_t *at, struct png_chunk *out)
{
	const uint8_t *head = file + *at;

	if (size - *at < PNG_FRAME_BYTES)
		return false;
	out->bytes = load32_big(head);
	if (out->bytes > size - *at - PNG_FRAME_BYTES)
		return false;
	out->name = head + 4;
	out->data = head + 8;
	*at += PNG_FRAME_BYTES + out->bytes;
	return true;
}

static inline bool png_chunk_is(const struct png_chunk *chunk, const char *name)
{
	return !memcmp(chunk->name, name, 4);
}

/*
 * exif.c - the orientation that a file states
 *
 * The orientation of Exif 2.3: 1 upright, 2 mirrored, 3 upside down, 4 mirrored upside down, 5 to 8
 * lying on a side.  It is found where Pillow's getexif() finds it.  First comes EXIF data: the Exif
 * segments of a JPEG; the eXIf chunk of a PNG, or its text "exif" or "Raw profile type exif"; the
 * EXIF chunk of a WebP; the tags of a TIFF.  If that has no entry for it, XMP follows: the last
 * such segment of a JPEG, the text "XML:com.adobe.xmp" of a PNG, the XMP chunk of a WebP, the tag
 * of a TIFF.  Extended XMP, which a JPEG holds in segments of another name, is not looked at.
 */

/* Where Pillows differ on damaged EXIF data, the recipe's line `pixels` chooses between them. */
enum exif_rules { EXIF_RULES_PILLOW_12, EXIF_RULES_PILLOW_13 };

/* What image_stated() says, of a file that has the format's magic. */
typedef bool image_stated_in(const uint8_t *bytes, size_t size, enum exif_rules rules, uint32_t *stated);

image_stated_in jpeg_stated, png_stated, webp_stated, tiff_stated;
image_stated_in avif_stated; /* of decode_avif.c, which a build may lack */

/*
 * The orientation of an AVIF.  What its boxes say, 1 to 8, is what Pillow writes into its EXIF data.  So
 * XMP counts only if the boxes say 1, and the EXIF data has no entry.
 */
uint32_t exif_stated_beside(uint32_t boxes, const uint8_t *exif, size_t exif_bytes, const uint8_t *xmp,
			    size_t xmp_bytes, enum exif_rules rules);

/*
 * formats.c - the one table of image formats
 *
 * What shardpack knows of image formats is in one table.  A new format is a row of it, and a file
 * with its decoder.
 */

#define IMAGE_MAGICS	   3 /* the most that a format has, and one that ends them */
#define IMAGE_ENDINGS	   5
#define IMAGE_ENDING_BYTES 8 /* of the longest ending, with the NUL */

/* How a file begins. */
struct image_magic {
	const char *pattern; /* `?` is any byte; NULL ends them */
	uint8_t length;
	const char *tag; /* the first bytes as text, where people know them; or NULL */
};

/* Which kinds people keep in a format that is read: lists of what is read name it for these. */
enum { HOLDS_IMAGES = 1, HOLDS_MASKS = 2 };

#define NO_MASK "" /* the reason needs no words; the magics have tags */

struct image_format {
	const char *name; /* in messages; NULL ends the table */
	struct image_magic magic[IMAGE_MAGICS];
	bool (*is)(const uint8_t *bytes, size_t size); /* what else must be true of the file; or NULL */
	const char *const endings[IMAGE_ENDINGS];      /* of names of files, with the dot, then NULL */

	/*
	 * NULL if the format is not read, and with a library if this build lacks that.  `bytes` have the
	 * format's magic.
	 */
	decode_run *run;
	unsigned holds;
	const char *bits;    /* what its samples have; NULL if 16 bits a sample are read from it */
	const char *no_mask; /* why no mask is read from it; NULL if one is, or NO_MASK */

	/* exif.c; NULL: it states no orientation */
	bool (*stated)(const uint8_t *bytes, size_t size, enum exif_rules rules, uint32_t *stated);
	bool is_always_turned; /* Pillow turns it when it reads it, asked to or not */

	/*
	 * A plan names the formats that not every build reads, if its inputs end in their names, and
	 * the versions of their libraries.  NULL: every build reads the format.
	 */
	const char *plan_name;
	const char *library;	      /* NULL: it needs none */
	const char *instead;	      /* what a user can do in a build without the library */
	const char *(*version)(void); /* of the library; NULL in a build without it */
	bool is_always_input;	      /* a build without the library refuses such files, and ignores none */
};

extern const struct image_format image_formats[];

/* The format that a file begins as, or NULL; `magic` may be NULL. */
const struct image_format *image_format_in(const uint8_t *bytes, size_t size, const struct image_magic **magic);

/*
 * Sets *stated: 1 to 8 if the file says so, 0 if it says nothing, something else, or what cannot be
 * read, which is never a reason to refuse it.  False without memory.
 */
bool image_stated(const uint8_t *bytes, size_t size, enum exif_rules rules, uint32_t *stated);

bool image_is_always_turned(const uint8_t *bytes, size_t size);

/*
 * The kind of a file or member, judged by the end of its name.  Upper and lower case are the same.
 */

/*
 * Does the name end in this extension, with something before it?  The extension begins with a dot.
 */
bool file_name_has_extension(const char *name, const char *extension);

/* An image: its name ends in one of the extensions of images. */
bool file_name_is_image(const char *name);

/* The same for an extension without its dot: "jpg", but not "seg.jpg". */
bool file_name_is_image_suffix(const char *suffix);

/* A list of images as COCO has it: .json, or one that gzip, bzip2, xz or Zstandard packed. */
bool file_name_is_coco(const char *name);

/* A table: .csv, .tsv, .jsonl or .ndjson. */
bool file_name_is_table(const char *name);

/* An archive of images: .tar, .zip, or a tar that gzip, bzip2, xz or Zstandard packed. */
bool file_name_is_archive(const char *name);

/* The format that a name ends as, in upper or lower case, or NULL. */
const struct image_format *image_format_of_name(const char *name, size_t bytes);

/* The same for an extension without its dot: "jpg", but not "seg.jpg". */
const struct image_format *image_format_of_suffix(const char *suffix);

/* Are files whose names end so inputs, in this build? */
bool image_format_is_input(const struct image_format *f);

/* "PNG, BMP, PGM": the formats that are read and hold these kinds. */
#define IMAGE_LIST_CHARS 100
const char *image_format_list(unsigned holds, char out[IMAGE_LIST_CHARS]);

const char *image_format_article(const struct image_format *f); /* "a" or "an" */

/* The bit of a format that plans name, for a set of them; 0 if `f` is another one, or NULL. */
uint32_t image_format_bit(const struct image_format *f);

/*
 * A file whose name does not end as its format is read as well, since its content decides.  The
 * plan does not know it.  So these lines, such as "gif giflib 5.2.1" and "avif none", lie beside
 * the plan, and a build that has another library, or none, stops at such a file.
 */
void image_formats_write(struct text *out);

/*
 * Does such a text, of another process, have the same line for a format that plans name?  If not,
 * its words and ours are in `there` and `here`.
 */
#define IMAGE_LIBRARY_CHARS 100
bool image_format_is_same(const struct image_format *f, const char *text, char there[IMAGE_LIBRARY_CHARS],
			  char here[IMAGE_LIBRARY_CHARS]);

/*
 * resize.c: how an image is resampled along an axis, and which axis comes first
 */

enum resize_filter {
	RESIZE_BOX,
	RESIZE_BILINEAR,
	RESIZE_BICUBIC,
	RESIZE_LANCZOS,
};

/*
 * Pixels are rounded to 8 bits between the passes, so their order shows.  Pillow has had three.
 * The sizes are those of the whole source and of the whole result, whatever box or window there is.
 */
enum resize_pixels {
	RESIZE_ROWS_FIRST, /* up to 12.1: across before down, always */
	RESIZE_PILLOW_12,  /* 12.2 and 12.3: down first if in_height > 100 * in_width and it shrinks */
	RESIZE_PILLOW_13,  /* from 13.0: if the height shrinks, and by more than twice what the width does */
};

/*
 * Along one axis: the part of the source that is resized, in source pixels.  Length 0: all of it.
 */
struct resize_box {
	double from, length; /* exact as floats, as Pillow has its box */
};

/*
 * resize.c: Pillow's 8-bit resampler, bit for bit, with a crop window
 *
 * Image.resize((w, h), filter, box) for images of 8-bit RGB, in the order of passes that a version
 * of Pillow has: enum resize_pixels.  Asking for a window of the result gives the same bytes as
 * resizing the whole and cropping, for the price of the window.
 *
 * Source rows may come a few at a time, from the top: the rows between the passes are kept only as
 * long as they are needed, so an image need never be in memory as a whole.
 */

/* Where pixels go. */
struct resize_target {
	uint8_t *pixels;
	size_t row_bytes;   /* from one row to the next */
	size_t plane_bytes; /* from one channel's plane to the next; 0: a pixel's channels side by side */
};

struct resize_job {
	uint32_t in_width, in_height;
	uint32_t width, height; /* of the whole result; no side may be 0 */
	enum resize_filter filter;
	struct image_window window; /* the part of it that is wanted */
	struct resize_target target;
	struct resize_box across, down;
	enum resize_pixels pixels;
};

/* One thread's memory from image to image: filter weights and the rows between passes. */
struct resizer;

/* The fastest way that the processor offers.  NULL when memory ran out. */
struct resizer *resizer_open(void);
/* The same bytes, without a processor's special instructions. */
struct resizer *resizer_open_portable(void);
void resizer_close(struct resizer *r);

/*
 * Begin an image, and say which part of the source it is made of.  False when memory ran out, the
 * one thing that can fail.
 */
bool resizer_begin(struct resizer *r, const struct resize_job *job, struct image_window *needed);

/*
 * The next rows of the part that resizer_begin() said, from its first column on.  Once all were
 * given, the target is complete.  Reads not a byte outside of that part.
 */
void resizer_rows(struct resizer *r, const uint8_t *pixels, size_t stride_bytes, uint32_t row_count);

/* All at once, rows first. */
bool resizer_run(struct resizer *r, const struct image *src, uint32_t width, uint32_t height, enum resize_filter filter,
		 const struct image_window *window, const struct resize_target *target);

/*
 * resize.c: images of 16 bits a sample
 *
 * The same job as resize.c has, of RGB with 16 bits a sample, in the order of bytes of this
 * machine.  Pillow has gray of that kind only: each channel is what Pillow makes of it.
 *
 * A sum of cubic or Lanczos weights may be above 65535.  Pillow 13 gives 65535.  Before, it clipped
 * the upper byte and not the lower one, so 65600 became 0xff40: enum resize_pixels decides.
 */

/* One thread's memory from image to image. */
struct wide_resizer;

/* NULL when memory ran out. */
struct wide_resizer *wide_resizer_open(void);
void wide_resizer_close(struct wide_resizer *r);

/* As resizer_begin() and resizer_rows(); the boxes of the job are not looked at. */
bool wide_resizer_begin(struct wide_resizer *r, const struct resize_job *job, struct image_window *needed);
void wide_resizer_rows(struct wide_resizer *r, const uint8_t *pixels, size_t stride_bytes, uint32_t row_count);

/*
 * resize.c: the weights of a resampling filter, for one axis
 *
 * Output sample i of an axis is the sum of in[first + t] * weight[t], t < count, in fixed
 * point with TAPS_FRACTION_BITS bits.  resize.c applies these; nothing else needs them.
 */

/* 8 bits hold the sample, 2 the overshoot of a filter with negative lobes: 22 remain of 32. */
#define TAPS_FRACTION_BITS 22

/*
 * One axis: `in` samples, or the part of them that the box has, become `out`; only [first, first +
 * count) are wanted.
 */
struct taps_axis {
	uint32_t in, out;
	uint32_t first, count;
	enum resize_filter filter;
	struct resize_box box;
};

struct taps_range {
	uint32_t first, count; /* count >= 1, first + count <= in */
};

/* The largest count of any range on this axis: the row length of the weight table. */
uint32_t taps_per_sample(const struct taps_axis *axis);

/*
 * Fill range[axis->count] and weight[axis->count * per_sample], which is taps_per_sample() or more;
 * weights that are not used are 0.  `work` is taps_per_sample() doubles that hold nothing before or
 * after.
 */
void taps_fill(const struct taps_axis *axis, struct taps_range *range, int32_t *weight, uint32_t per_sample,
	       double *work);

/*
 * resize.c, resize_avx2.c: the inner loops, in the ways that a processor may offer
 *
 * resize.c decides what is summed, these do it.  Every way gives the same bytes: the sums are
 * 32-bit integers modulo 2^32, so neither the order of addition nor how a weight is taken apart can
 * be seen in them.  Reads stay within the rows that the caller gives, writes within theirs and
 * RESIZE_ROW_SLACK_BYTES behind.
 */

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

/* ---- resize_avx2.c ---- */

/* NULL where the processor has no AVX2. */
const struct resize_passes *resize_passes_avx2(void);

/* ---- resize.c: the same in C, for every processor ---- */

extern const struct resize_passes resize_passes_portable;

/*
 * transform_image.c: an image set upright, as PIL.ImageOps.exif_transpose does
 *
 * Takes an image while it is decoded and holds it whole, for the first row of the result may need
 * the last one of the file; then gives it to a sink that wants it upright.
 */

/*
 * What an orientation, 1 to 8, says of the file.  One that lies has the columns of the upright
 * image for its rows: its width is that one's height.  Axes that run back begin at the right, or
 * below.
 */
struct turn_axes {
	bool lies, columns_back, rows_back; /* the file's */
};

struct turn_axes turn_axes(uint32_t orientation);

/* Start it zeroed. */
struct turn {
	/*
	 * Called before memory of the order of a whole image is used for it, with its size; may
	 * wait.  Set both.
	 */
	void (*claim)(void *context, uint64_t bytes);
	void *context;

	struct image_sink sink;
	const struct image_sink *to;
	struct image_size size; /* upright */
	struct scratch pixels;
	uint32_t orientation, in_columns, row; /* row: the next one to come */
	uint32_t pixel_bytes;		       /* IMAGE_CHANNELS or IMAGE_WIDE_BYTES */
};

/* For an image with this orientation, 2 to 8: exif.c; with 16 bits a sample if `wide`. */
const struct image_sink *turn_sink(struct turn *t, uint32_t orientation, bool wide, const struct image_sink *to);

/* All rows were given: hand the image on.  False if memory ran out there. */
bool turn_finish(struct turn *t);

void turn_free(struct turn *t);

/*
 * transform_image.c: samples as normalised numbers
 *
 * A sample x of a channel becomes (x / 255 - mean) / std, computed in double precision (IEEE 754,
 * each of the three operations rounded) and then rounded once to the type of the record, to
 * nearest, a half to even: what NumPy's ((x / 255.0 - mean) / std).astype(type) gives.  There are 3
 * x 256 of them, so none is ever computed for a pixel.  (torchvision's ToTensor and Normalize round
 * each operation to f32, and may differ in the last bit.)
 *
 * Of a sample of 16 bits x / 65535 stands in the place of x / 255, and the table is the caller's.
 */

enum image_samples { IMAGE_U8, IMAGE_F16, IMAGE_BF16, IMAGE_F32, IMAGE_U16 };

struct normal {
	double mean[IMAGE_CHANNELS], std[IMAGE_CHANNELS];
};

struct normal_table {
	enum image_samples samples; /* not integers */
	uint32_t bits[IMAGE_CHANNELS][256];
};

/* Are records numbers that were made of samples, and not the samples? */
static inline bool image_is_normalised(enum image_samples samples)
{
	return samples != IMAGE_U8 && samples != IMAGE_U16;
}

uint32_t normal_sample_bytes(enum image_samples samples);

/*
 * False if a std is not above 0, or a number is too large for the type: then the channel is in
 * *channel.
 */
bool normal_fill(struct normal_table *t, enum image_samples samples, const struct normal *n, uint32_t *channel);

/*
 * `pixel_count` pixels of 8-bit samples to the same in the type of the table; `dst` has any
 * alignment.
 */
void normal_apply(const struct normal_table *t, const uint8_t *src, size_t pixel_count, enum image_layout layout,
		  uint8_t *dst);

/*
 * transform_image.c: a decoded image to the bytes of a record
 *
 * What torchvision or Pillow does, on PIL images, bit for bit.  N is the resize, w x h the image:
 *
 *   FIT_SHORT    Resize(N), CenterCrop(crop): the short side becomes N,
 *                the long one floor(N * long / short)
 *   FIT_LONG     Resize(None, max_size=N), CenterCrop(crop): the long side becomes N,
 *                the short one floor(N * short / long)
 *   FIT_STRETCH  Resize((N, N)), CenterCrop(crop)
 *   FIT_PAD      PIL.ImageOps.pad(image, (N, N)): the long side becomes N,
 *                the short one N * short / long to the nearest, a half to even
 *   FIT_AREA     Resize(s), and no crop: the image stays whole.  s is the greatest for which
 *                s * floor(s * long / short) <= N * N and floor(s * long / short) <= 4 * N
 *
 * Of samples of 16 bits each channel is resized as an image of mode I;16.
 *
 * A side that would become 0, which is an error there, becomes 1.  The crop is crop x crop, its
 * offsets rounded half to even; where the image is smaller it is padded with zeros, the odd one
 * right and below.  FIT_PAD has no crop of its own, crop is N; what it pads before the image is
 * half of it, rounded half to even.  A crop size is always given, since it is what makes all
 * records the same shape.
 *
 * A record of FIT_AREA has room for N * N pixels, and crop is N.  The rows of the image lie one
 * behind the other, then come zeros.  An image without such an s is bad input.
 */

#define TRANSFORM_SIDE_MAX 65500 /* the most that libjpeg reads; its square fits 32 bits */

/*
 * A JPEG may be decoded at 1/2, 1/4 or 1/8, which is faster and not the same pixels: as Pillow's
 * Image.draft() does it, and then resize() with the box that draft() returns.  AUTO is the scale
 * that draft() chooses for the size after the resize: the smallest image that is at least as large,
 * width and height.
 */
enum transform_scale { SCALE_1, SCALE_2, SCALE_4, SCALE_8, SCALE_AUTO };

enum transform_fit { FIT_SHORT, FIT_LONG, FIT_STRETCH, FIT_PAD, FIT_AREA };

/*
 * Names as on the command line and in plans; NULL ends the list.  The place in the list is the
 * value.
 */
extern const char *const transform_filter_names[];
extern const char *const transform_fit_names[];	    /* in a plan only if it is not the first */
extern const char *const transform_scale_names[];   /* the same */
extern const char *const transform_pixels_names[];  /* enum resize_pixels; the same */
extern const char *const transform_layout_names[];  /* enum image_layout */
extern const char *const transform_samples_names[]; /* enum image_samples; in a plan only if it is not the first */

struct transform_options {
	uint32_t resize; /* 0: no resize, crop only; then the fit is FIT_SHORT */
	uint32_t crop;	 /* required; side of the square, 1 to TRANSFORM_SIDE_MAX */
	enum transform_fit fit;
	enum transform_scale scale; /* SCALE_1 if there is no resize */
	enum resize_filter filter;
	enum resize_pixels pixels;
	enum image_layout layout;
	enum image_samples samples; /* of the record */
	struct normal normal;	    /* unless they are u8 or u16; normal_fill() has found it good */
	bool wide;		    /* 16 bits a sample are read, as of u16 always */
};

/* Along one axis: which part of the resized image is kept, and where in the record it goes. */
struct transform_span {
	uint32_t from, to, count;
};

/* Where the pixels of an image of a size go; masks and boxes go with them. */
struct transform_geometry {
	uint32_t width, height; /* after the resize */
	struct transform_span across, down;
};

struct transform_geometry transform_geometry(const struct transform_options *opt, uint32_t width, uint32_t height);

/* Is there a geometry?  Not for FIT_AREA if the image is too long for its width. */
bool transform_has_geometry(const struct transform_options *opt, uint32_t width, uint32_t height);

/* One thread's memory from image to image. */
struct transform;

/* NULL when memory ran out. */
struct transform *transform_open(const struct transform_options *opt);
void transform_close(struct transform *t);

/*
 * Takes an image as it is decoded, and makes it one record of crop * crop * 3 samples at `dst`.
 * One image at a time.
 */
const struct image_sink *transform_sink(struct transform *t, uint8_t *dst);

/* The width and height of the image that it was given last, before the resize and any scaling. */
void transform_source_size(const struct transform *t, uint32_t *width, uint32_t *height);

/* The last step, when all rows were given: samples that are numbers are only now written. */
void transform_finish(struct transform *t);

/*
 * mask.c - from a decoded mask to the bytes of a record, transformed like its image
 *
 * The pixels that the image's resize, crop and padding (transform_image.c) leave are chosen, not
 * computed: Pillow's Image.resize(size, NEAREST) and the crop, bit for bit, so that no value
 * appears that the file does not have.  That is what torch calls "nearest-exact": its plain
 * "nearest" takes the pixel's corner instead of its middle.  Padding is `fill`.
 *
 * The orientation is that of the mask's own file.  The caller checks that a mask is as large as its
 * image.
 */

/* One thread's memory from mask to mask. */
struct mask;

/*
 * Of the options, the size, crop and fit count.  A pixel has `sample_bytes`: 1, 2 or 4.  NULL when
 * memory ran out.
 */
struct mask *mask_open(const struct transform_options *opt, uint32_t sample_bytes, uint32_t fill);
void mask_close(struct mask *m);

/* A record, which has crop * crop pixels, of nothing but `fill`. */
void mask_fill(const struct transform_options *opt, uint32_t sample_bytes, uint32_t fill, uint8_t *dst);

/*
 * Takes a mask from decoder_stream() and makes it one record at `dst`, which is complete when that
 * returns well.  One mask at a time.  `orientation`: 1 to 8, see exif.c.
 */
const struct image_sink *mask_sink(struct mask *m, uint32_t orientation, uint8_t *dst);

/* The width and height, set upright, of the mask that it was given last. */
void mask_source_size(const struct mask *m, uint32_t *width, uint32_t *height);

/*
 * boxes.c - boxes that go with their image
 *
 * What torchvision's v2 Resize and CenterCrop do to tv_tensors.BoundingBoxes of float32 in XYXY,
 * all in float32 (torchvision/transforms/v2/functional/_geometry.py: resize_bounding_boxes,
 * crop_bounding_boxes; _meta.py: convert_bounding_box_format, clamp_bounding_boxes): each
 * coordinate times the ratio new / old, which is divided in double and then rounded; minus the
 * crop's offset; clamped to [0, crop], or to a whole image (FIT_AREA).  No box is removed, so that
 * other fields stay in step; one that the crop leaves nothing of has no area.
 *
 * Otherwise than there: boxes in XYWH and CXCYWH become XYXY first, and where the resized image is
 * smaller than the crop they move by the padding that the image gets, while CenterCrop moves them
 * by another pixel if the padding is odd.
 */

enum boxes_format {
	BOXES_XYXY,   /* left, top, right, bottom */
	BOXES_XYWH,   /* left, top, width, height */
	BOXES_CXCYWH, /* the middle, width, height */
	BOXES_YOLO,   /* the same as parts of the image, in lines of text; parse/yolo.c */
};

/*
 * `count` boxes of four numbers to XYXY; `out` may be `in`.  Bad input are numbers that are not
 * finite, and negative sizes.  `unit`: they are parts of the width and height, and stay so; more
 * than 0.01 outside of 0 to 1 is bad input, because then they are pixels.
 */
enum decode_status boxes_read(enum boxes_format format, bool unit, const float *in, uint64_t count, float *out,
			      struct decode_verdict *v);

/* XYXY as parts of an image of this size, to its pixels. */
void boxes_scale(uint32_t width, uint32_t height, float *boxes, uint64_t count);

/*
 * Boxes in a file of this size (that of the file, not set upright) with this orientation to those
 * in its upright image.
 */
void boxes_turn(uint32_t orientation, uint32_t width, uint32_t height, float *boxes, uint64_t count);

/* Boxes in an upright image of this size to those in its record. */
void boxes_move(const struct transform_options *opt, uint32_t width, uint32_t height, float *boxes, uint64_t count);

/*
 * image_options.c - sizes and samples of an image, from the user's options
 *
 * The same for --resize and the others, and for --field NAME:resize=....  Pure.
 */

struct image_wish {
	uint64_t resize, crop; /* 0: not said */
	enum transform_fit fit;
	enum resize_filter filter;
	enum resize_pixels pixels;
	enum image_layout layout;
	enum image_samples samples;
	uint64_t bits; /* a sample that is read: 8 or 16; 0: not said */
	enum transform_scale scale;
	const char *mean, *std; /* NULL: not said; three numbers */
	char separator;		/* between these */
	const char *dashes;	/* before the name of an option: "--" or "" */
};

/*
 * False, and `why` says why not, if there can be no such image.  Sizes that were not said are told
 * in `assumed`, which is empty otherwise.
 */
bool image_options_settle(const struct image_wish *w, struct transform_options *t, char *assumed, size_t assumed_bytes,
			  char *why, size_t why_bytes);

/*
 * image_options.c - how large an input may be before it is refused: --limit, and its line in a plan
 *
 * Limits decide verdicts, so they belong to the recipe, except for the last one.  Pure.
 */

enum limit {
	LIMIT_PIXELS,  /* of an image */
	LIMIT_SIDE,    /* of an image, in pixels */
	LIMIT_SCANS,   /* of a JPEG */
	LIMIT_FRAMES,  /* of an animation, or pages */
	LIMIT_MEMORY,  /* bytes inside libjpeg, beside the image */
	LIMIT_MEMBERS, /* of a sample in an archive */
	LIMIT_UNPACK,  /* bytes that a compressed file unpacks to; in no plan, as it decides no verdict */
	LIMITS,
};

/* Their names, and what --help says. */
extern const struct cli_key limit_help[];

struct limits {
	uint64_t most[LIMITS]; /* 0: the default, which is never written as a number */
};

/* The limit in force: the user's, or the default; of LIMIT_UNPACK 0 if the user gave none. */
uint64_t limits_most(const struct limits *l, enum limit which);

/* "pixels=200M,scans=500".  False, and `why` says why not, if it has another form. */
bool limits_parse(const char *text, struct limits *out, char *why, size_t why_bytes);

/* The same of sources without images: "unpack=SIZE" and nothing else. */
bool limits_parse_unpack(const char *text, struct limits *out, char *why, size_t why_bytes);

/*
 * The line of a plan, "limit pixels=209715200,scans=500", with the limits that are not the default;
 * nothing if all are.
 */
void limits_write(const struct limits *l, struct text *out);

#endif
