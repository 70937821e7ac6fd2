/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform_image.h - a decoded image to the bytes of a record
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
 * behind the other, then come zeros.  There may be no such s: then the image is bad input.
 */
#ifndef SHARD_IMAGE_TRANSFORM_IMAGE_H
#define SHARD_IMAGE_TRANSFORM_IMAGE_H

#include "tools/shardpack/images/normalise.h"
#include "tools/shardpack/images/resize.h"

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

#endif
