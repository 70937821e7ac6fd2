/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize_filter.h - how an image is resampled along an axis, and which axis comes first
 */
#ifndef SHARD_IMAGE_RESIZE_FILTER_H
#define SHARD_IMAGE_RESIZE_FILTER_H

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

#endif
