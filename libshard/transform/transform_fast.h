/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform_fast.h - transforming one row on a CPU with AVX2: the bits of transform_twin()
 */
#ifndef SHARD_TRANSFORM_TRANSFORM_FAST_H
#define SHARD_TRANSFORM_TRANSFORM_FAST_H

#include "libshard/transform/transform.h"

/* Has the CPU what it takes, and are images [height, width, 3]? */
bool transform_fast_applies(const struct transform_plan *p);

uint64_t transform_fast_bytes(const struct transform_plan *p); /* of scratch */

/*
 * As transform_twin(); `scratch` is 32-aligned.  Returns false, and does nothing, for a part that
 * is resized down before across.
 */
bool transform_fast(const struct transform_plan *p, const struct shard_transform_row *row,
		    const struct transform_image *image, void *out, void *scratch);

#endif
