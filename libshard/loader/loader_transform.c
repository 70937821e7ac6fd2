/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_transform.c - opens a transform for the batches of a loader
 */
#include "libshard/gpu/batch_transform.h"
#include "libshard/loader/loader.h"
#include "libshard/pool/pool.h"
#include "shard_gpu.h"

/* In place, an image may lie anywhere in the pool. */
static int check_pool(const struct shard_loader *l, const char *field, struct shard_error *err)
{
	const struct shard_schema *schema = l->layout.schema;
	const struct shard_group *group = &schema->group[shard_schema_find(schema, field)->group];
	uint64_t slab_bytes;

	if (!l->o.pool_in_place || !layout_is_large(group))
		return SHARD_OK;
	slab_bytes = l->pool->plan.slab.slot_bytes;
	return batch_transform_check_reach(l->pool->plan.slab_count * slab_bytes, group->stride | slab_bytes, err);
}

int shard_transform_open(struct shard_transform **out, const struct shard_loader *l, const char *field,
			 const struct shard_transform_options *opt, struct shard_error *err)
{
	const struct batch_draws draws = {l->steps.params.seed, l->o.rank, l->o.world};
	struct shard_transform *f;
	int rc = batch_transform_open(&f, l->layout.schema, field, opt, &draws, err);

	if (rc)
		return rc;
	rc = check_pool(l, field, err);
	if (!rc && (l->o.gpu || l->pool)) /* else it may be for batches in host memory */
		rc = batch_transform_check_gpu(f, l->cuda, err);
	if (rc)
		shard_transform_close(f);
	else
		*out = f;
	return rc;
}
