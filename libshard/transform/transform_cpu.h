/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform_cpu.h - transforming one row on whatever CPU this is
 */
#ifndef SHARD_TRANSFORM_TRANSFORM_CPU_H
#define SHARD_TRANSFORM_TRANSFORM_CPU_H

#include "libshard/transform/transform.h"

#define TRANSFORM_CPU_ALIGN 32u /* of the scratch */

uint64_t transform_cpu_bytes(const struct transform_plan *p); /* of scratch */

/* One row, as transform_twin(): by the fast path if it applies. */
void transform_cpu(const struct transform_plan *p, const struct shard_transform_row *row,
		   const struct transform_image *image, void *out, void *scratch);

#endif
