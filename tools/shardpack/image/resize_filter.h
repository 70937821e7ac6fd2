/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize_filter.h - how an image is resampled along an axis
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
 * Along one axis: the part of the source that is resized, in source pixels.  Length 0: all of it.
 */
struct resize_box {
	double from, length; /* exact as floats, as Pillow has its box */
};

#endif
