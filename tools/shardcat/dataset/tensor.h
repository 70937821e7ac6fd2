/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor.h - the value of one field of one record
 *
 * A ragged field is stored at its greatest shape; here it has its true one, and its elements
 * stand next to each other.  A whole image has height, width and channels.  Its forms as text, .npy
 * and PNG are here too, each in memory: a record is small.
 */
#ifndef SHARD_DATASET_TENSOR_H
#define SHARD_DATASET_TENSOR_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "shard.h"
#include "tools/common/png_out.h"
#include "tools/shardcat/dataset/target.h"

struct tensor {
	const struct shard_field *field;
	uint32_t ndim;
	uint64_t shape[SHARD_DIMS_MAX];
	uint64_t element_count;
	size_t element_bytes;
	uint8_t *data; /* element_count x element_bytes, row-major */
};

/*
 * Take a field out of a record.  Prints and returns an exit code on failure; free it in any case.
 */
int tensor_take(const struct target *t, const struct record *record, const struct shard_field *field,
		struct tensor *out);
void tensor_free(struct tensor *tensor);

/* One line for people, without a line end: all elements if they are few, else their range. */
void tensor_print(const struct tensor *tensor, FILE *out);

/* "[224,224,3]"; nothing for a scalar. */
#define SHAPE_CHARS 96
const char *shape_text(char out[SHAPE_CHARS], const uint64_t *shape, uint32_t ndim);

/*
 * The header of a .npy file, version 1.0, for this tensor.  Returns its length, a multiple of 64.
 */
#define NPY_HEADER_BYTES 256
size_t npy_header(const struct tensor *tensor, char out[NPY_HEADER_BYTES]);

/*
 * Describe the tensor as an image that png_write() takes: u8, hwc or chw with 1 or 3 channels, or a
 * plane without layout.  Samples of floating point must become u8 before that: picture.h.
 * EXIT_DONE, or prints why it is no image.
 */
int tensor_image(const struct tensor *tensor, struct png_image *out);

#endif
