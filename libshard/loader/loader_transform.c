/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_transform.c - opens a transform for the batches of a loader
 */
#include <stdatomic.h>

#include "libshard/base/error.h"
#include "libshard/base/options.h"
#include "libshard/gpu/batch_transform.h"
#include "libshard/loader/loader.h"
#include "libshard/pool/pool.h"
#include "libshard/store/read/dataset.h"
#include "shard_gpu.h"
#include "shard_pack.h"

/* The field must be in batches.  In place, an image may lie anywhere in the pool. */
static int check_field(const struct shard_loader *l, const char *name, struct shard_error *err)
{
	const struct shard_schema *schema = l->layout.schema;
	const struct shard_field *field = shard_schema_find(schema, name);
	const struct shard_group *group = &schema->group[field->group];
	uint64_t slab_bytes;

	if (!layout_has_field(&l->layout, (uint32_t)(field - schema->field)))
		return error_set(err, SHARD_E_ARGUMENT,
				 "field '%s' is not in the loader's batches; add it to its fields", name);
	if (!l->o.pool_in_place || !layout_is_large(group))
		return SHARD_OK;
	slab_bytes = l->pool->plan.slab.slot_bytes;
	return batch_transform_check_reach(l->pool->plan.slab_count * slab_bytes, group->stride | slab_bytes, err);
}

static int pixels_of(struct shard_dataset *ds, uint64_t shard, uint32_t *pixels, struct shard_error *err)
{
	struct shard_reader *reader;
	int rc = shard_dataset_reader(ds, shard, &reader, err);

	return rc ? rc : shard_reader_pixels(reader, pixels, err);
}

/*
 * Whose pixels does a resize give?  Those of the options; if they do not say, those of the token
 * that the loader went on from; else as the dataset was packed.  0 if nothing is resized.
 */
static int choose_pixels(const struct shard_loader *l, const struct shard_transform_options *opt, uint32_t *pixels,
			 struct shard_error *err)
{
	struct shard_transform_options o;
	int rc = options_take(&o, sizeof(o), opt, err);

	*pixels = 0;
	if (rc || o.crop != SHARD_CROP_RESIZED)
		return rc;
	*pixels = o.pixels ? o.pixels : l->token_pixels;
	if (*pixels)
		return SHARD_OK;
	rc = pixels_of(l->ds, 0, pixels, err);
	for (uint32_t p = 1; !rc && p < l->ds->part_count; p++) { /* of a mixture */
		uint32_t other = 0;

		rc = pixels_of(l->ds, l->ds->part_shard[p], &other, err);
		if (!rc && other != *pixels)
			rc = error_set(err, SHARD_E_MISMATCH,
				       "datasets of the mixture were packed with pixels of %s and of %s; name in the "
				       "options those that the transform shall give",
				       shard_pixels_name(*pixels), shard_pixels_name(other));
	}
	return rc;
}

/*
 * A token names the pixels of one kind only.  So all transforms of a loader give the same pixels.
 * They are those of the token, if the loader was resumed from one that names them.
 */
static int settle_pixels(struct shard_loader *l, uint32_t pixels, struct shard_error *err)
{
	uint32_t have = 0;

	if (!pixels)
		return SHARD_OK;
	if (l->token_pixels && l->token_pixels != pixels)
		return error_set(err, SHARD_E_MISMATCH,
				 "the loader's token belongs to pixels of %s, and the options ask for those of %s; "
				 "leave pixels at 0 to take the token's",
				 shard_pixels_name(l->token_pixels), shard_pixels_name(pixels));
	if (atomic_compare_exchange_strong(&l->transform_pixels, &have, pixels) || have == pixels)
		return SHARD_OK;
	return error_set(err, SHARD_E_MISMATCH,
			 "this transform would give pixels of %s, and an earlier one of this loader gives those of "
			 "%s; name the same in the options of both, or open another loader",
			 shard_pixels_name(pixels), shard_pixels_name(have));
}

int shard_transform_open(struct shard_transform **out, struct shard_loader *l, const char *field,
			 const struct shard_transform_options *opt, struct shard_error *err)
{
	struct batch_draws draws = {.seed = l->steps.params.seed,
				    .rank = l->o.rank,
				    .world = l->o.world,
				    .epoch_records = l->steps.mix ? l->steps.rank.record_count : 0};
	struct shard_transform *f;
	int rc = choose_pixels(l, opt, &draws.pixels, err);

	if (!rc)
		rc = batch_transform_open(&f, l->layout.schema, field, opt, &draws, err);
	if (rc)
		return rc;
	rc = check_field(l, field, err);
	if (!rc && (l->o.gpu || l->pool)) /* else it may be for batches in host memory */
		rc = batch_transform_check_gpu(f, l->cuda, err);
	if (!rc)
		rc = settle_pixels(l, draws.pixels, err);
	if (rc)
		shard_transform_close(f);
	else
		*out = f;
	return rc;
}
