/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_places.h - where the images of a batch are, as kernels count: in units, with 32 bits
 */
#ifndef SHARD_GPU_ROW_PLACES_H
#define SHARD_GPU_ROW_PLACES_H

#include "shard.h"

struct row_places {
	const uint64_t *row_at; /* the place of each row in bytes; NULL: row i is at i * unit */
	uint64_t unit;		/* all places are multiples of it */
	uint64_t last;		/* the largest place */
};

struct row_places row_places_find(const struct shard_rows *rows, uint32_t count);

/*
 * Can kernels reach images that lie so many bytes apart?  They count in units, with 32 bits.  The
 * unit is the lowest bit that is set in `places`.  Fails with UNSUPPORTED.
 */
int row_places_check_reach(uint64_t bytes, uint64_t places, struct shard_error *err);

#endif
