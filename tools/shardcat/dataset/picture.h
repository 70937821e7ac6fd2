/* SPDX-License-Identifier: Apache-2.0 */
/*
 * picture.h - images of floating point or of 16 bits, made visible
 *
 * shardpack images --dtype writes into each shard how it made numbers of samples; undone, that
 * gives the samples back, or the upper bits of longer ones.  Where nothing is written, each image
 * is scaled by itself: its least number becomes black, its greatest white.
 */
#ifndef SHARD_DRAW_PICTURE_H
#define SHARD_DRAW_PICTURE_H

#include "tools/shardcat/dataset/tensor.h"

struct picture_scale {
	bool known; /* mean and std are written: value * std + mean is 0 to 1 */
	double mean[3], std[3];
};

/* Of an image field; for others it says nothing.  Prints and returns an exit code on failure. */
int picture_scale(struct target *t, const struct shard_field *field, struct picture_scale *out);

/*
 * The same as tensor_image() for u8; of f16, bf16 and f32 it makes u8 samples first, which become
 * the tensor's.  Of u16 all bits are in the picture with `wide`, else the upper 8: so numbers that
 * are no image, of which these would be black, are refused.
 */
int picture_image(const struct picture_scale *scale, bool wide, struct tensor *tensor, struct png_image *out);

#endif
