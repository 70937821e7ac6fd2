/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform_cpu.c - transforming one row on whatever CPU this is
 */
#include "libshard/transform/transform.h"

#include "libshard/base/bytes.h"

uint64_t transform_cpu_bytes(const struct transform_plan *p)
{
	return max_u64(transform_twin_bytes(p), transform_fast_applies(p) ? transform_fast_bytes(p) : 0);
}

void transform_cpu(const struct transform_plan *p, const struct shard_transform_row *row,
		   const struct transform_image *image, void *out, void *scratch)
{
	if (!transform_fast_applies(p) || !transform_fast(p, row, image, out, scratch))
		transform_twin(p, row, image, out, scratch);
}
