/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turn.h - an image set upright, as PIL.ImageOps.exif_transpose does
 *
 * Takes an image while it is decoded and holds it whole, for the first row of the result may need
 * the last one of the file; then gives it to a sink that wants it upright.
 */
#ifndef SHARD_IMAGE_TURN_H
#define SHARD_IMAGE_TURN_H

#include "tools/shardpack/images/image.h"

/*
 * What an orientation, 1 to 8, says of the file.  One that lies has the columns of the upright
 * image for its rows: its width is that one's height.  Those that run back begin at the right, or
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

/* For an image with this orientation, 2 to 8: exif.h; with 16 bits a sample if `wide`. */
const struct image_sink *turn_sink(struct turn *t, uint32_t orientation, bool wide, const struct image_sink *to);

/* All rows were given: hand the image on.  False if memory ran out there. */
bool turn_finish(struct turn *t);

void turn_free(struct turn *t);

#endif
