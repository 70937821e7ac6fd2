/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_options.h - sizes and samples of an image, from the user's options
 *
 * The same for --resize and the others, and for --field NAME:resize=....  Pure.
 */
#ifndef SHARD_IMAGE_IMAGE_OPTIONS_H
#define SHARD_IMAGE_IMAGE_OPTIONS_H

#include "tools/shardpack/images/transform_image.h"

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

#endif
