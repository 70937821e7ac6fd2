/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_transform.c - a transform for the batches of a loader: of its own, or opened beside it
 */
#include "libshard/loader/loader.h"

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/options.h"
#include "libshard/dataset/dataset.h"

/* The field must be in batches, as it is stored. */
static int check_field(const struct shard_loader *l, const char *name, struct shard_error *err)
{
	const struct shard_schema *schema = l->layout.schema;
	const struct shard_field *field = shard_schema_find(schema, name);
	uint32_t idx = (uint32_t)(field - schema->field);

	if (!layout_has_field(&l->layout, idx))
		return error_set(err, SHARD_E_ARGUMENT,
				 "field '%s' is not in the loader's batches; add it to its fields", name);
	if (l->transformed && (l->transformed->field == idx || l->transformed->remade[idx]))
		return error_set(err, SHARD_E_ARGUMENT,
				 "field '%s' is transformed by the loader itself; open another loader, without a "
				 "transform in its options",
				 name);
	return SHARD_OK;
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
	struct shown s;
	int rc = options_take(&o, sizeof(o), opt, err);

	*pixels = 0;
	if (rc || o.crop != SHARD_CROP_RESIZED)
		return rc;
	*pixels = o.pixels ? o.pixels : l->token_pixels;
	if (*pixels)
		return SHARD_OK;
	rc = pixels_of(l->ds, 0, pixels, err);
	for (uint32_t p = 1; !rc && p < l->ds->part_count; p++) { /* of a mixture, or one behind the other */
		uint64_t first = l->ds->part_shard[p];
		uint32_t other = 0;

		if (first == l->ds->part_shard[p + 1])
			continue; /* a part without a record */
		rc = pixels_of(l->ds, first, &other, err);
		if (!rc && other != *pixels)
			rc = error_set(err, SHARD_E_MISMATCH,
				       "parts of %s were packed with pixels of %s and of %s; name in the options the "
				       "ones that the transform shall give",
				       show(&s, l->ds->dir), shard_name(SHARD_NAME_PIXELS, *pixels),
				       shard_name(SHARD_NAME_PIXELS, other));
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
				 shard_name(SHARD_NAME_PIXELS, l->token_pixels), shard_name(SHARD_NAME_PIXELS, pixels));
	if (atomic_compare_exchange_strong(&l->transform_pixels, &have, pixels) || have == pixels)
		return SHARD_OK;
	return error_set(err, SHARD_E_MISMATCH,
			 "this transform would give pixels of %s, and an earlier one of this loader gives those of "
			 "%s; name the same in the options of both, or open another loader",
			 shard_name(SHARD_NAME_PIXELS, pixels), shard_name(SHARD_NAME_PIXELS, have));
}

static struct batch_draws draws_of(const struct shard_loader *l)
{
	return (struct batch_draws){.seed = l->steps.params.seed,
				    .rank = l->o.rank,
				    .world = l->o.world,
				    .rows = l->steps.window.offset_count,
				    .epoch_records = l->steps.mix ? l->steps.rank.record_count : 0};
}

int shard_transform_open(struct shard_transform **out, struct shard_loader *l, const char *field,
			 const struct shard_transform_options *opt, struct shard_error *err)
{
	struct batch_draws draws = draws_of(l);
	struct shard_transform *f;
	int rc = choose_pixels(l, opt, &draws.pixels, err);

	if (!rc)
		rc = batch_transform_open(&f, l->layout.schema, field, opt, &draws, err);
	if (rc)
		return rc;
	rc = check_field(l, field, err);
	if (!rc && (l->o.gpu.device || l->pool)) /* else it may be for batches in host memory */
		rc = batch_transform_check_gpu(f, l->cuda, err);
	if (!rc)
		rc = settle_pixels(l, draws.pixels, err);
	if (rc)
		shard_transform_close(f);
	else
		*out = f;
	return rc;
}

/* ---- by the threads that fill batches ---- */

static int check_transform(const struct shard_loader *l, struct shard_loader_transform *out, struct shard_error *err)
{
	int rc = options_take(out, sizeof(*out), l->o.transform, err);

	if (rc)
		return rc;
	out->views = out->views ? out->views : 1;
	if (!out->field || !out->options)
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: transform names no %s; must name a field and what to do with it",
				 out->field ? "options" : "field");
	if (out->views > SHARD_VIEWS_MAX)
		return error_set(err, SHARD_E_ARGUMENT, "options: transform has %u views; must be 1 to %u", out->views,
				 SHARD_VIEWS_MAX);
	if ((out->as_stored_count && !out->as_stored) || out->reserved)
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: transform.as_stored is %p with a count of %u, and reserved %u; must be a "
				 "list if there is a count, and 0",
				 (const void *)out->as_stored, out->as_stored_count, out->reserved);
	return SHARD_OK;
}

static int plan(struct shard_loader *l, struct transformed *t, const struct shard_loader_transform *o,
		struct shard_error *err)
{
	const struct shard_schema *schema = &l->ds->m.schema;
	struct batch_draws draws = draws_of(l);
	int rc = choose_pixels(l, o->options, &draws.pixels, err);

	if (!rc)
		rc = batch_transform_plan(&t->plan, &t->field, schema, o->field, o->options, &draws, err);
	if (rc)
		return rc;
	if (!(l->o.fields >> t->field & 1))
		return error_set(err, SHARD_E_ARGUMENT,
				 "options: field '%s' is to be transformed, but is not in the loader's batches; add it "
				 "to its fields",
				 o->field);
	t->views = o->views;
	t->has_kernel = l->o.gpu.device || l->o.gpu.pool_bytes;
	rc = transformed_find_fields(t, schema, l->o.fields, o, err);
	if (!rc && l->o.gpu.pool_bytes && transformed_has_work(t))
		rc = error_set(err, SHARD_E_UNSUPPORTED,
			       "options: the dataset has masks or boxes, which have to follow the images, and a pool "
			       "keeps them as they are; leave them out of `fields`, or set gpu.pool_bytes to 0");
	if (rc)
		return rc;
	if (!transformed_lay_out(t, schema, l->o.fields, l->ds->uneven_groups))
		return error_set(err, SHARD_E_MEMORY, "records of this dataset do not fit memory");
	return settle_pixels(l, draws.pixels, err);
}

int loader_open_transformed(struct shard_loader *l, struct shard_error *err)
{
	struct shard_loader_transform o;
	struct transformed *t;
	int rc;

	if (!l->o.transform)
		return SHARD_OK;
	rc = check_transform(l, &o, err);
	if (rc)
		return rc;
	t = mem_zalloc(sizeof(*t));
	rc = t ? plan(l, t, &o, err) : error_set(err, SHARD_E_MEMORY, "no memory for a transform");
	if (rc)
		mem_free(t);
	else
		l->transformed = t;
	return rc;
}

/* ---- what batches have ---- */

/* What is made of the images. */
static void describe_results(const struct transformed *t, struct shard_field *out)
{
	bool has_channels = out->ndim == 3 || t->plan.is_whole;
	uint32_t at = 0;

	out->dtype = t->plan.dtype;
	out->kind = SHARD_TENSOR;
	out->ragged_axes = out->length_field = 0;
	if (has_channels && t->plan.is_planar)
		out->shape[at++] = t->plan.channels;
	out->shape[at++] = t->plan.height;
	out->shape[at++] = t->plan.width;
	if (has_channels && !t->plan.is_planar)
		out->shape[at++] = t->plan.channels;
	out->layout = !has_channels ? SHARD_LAYOUT_NONE : t->plan.is_planar ? SHARD_CHW : SHARD_HWC;
	out->ndim = at;
}

void shard_loader_field(const struct shard_loader *l, uint32_t field, struct shard_field *out)
{
	const struct transformed *t = l->transformed;

	*out = l->layout.schema->field[field];
	if (t && (field == t->field || t->remade[field])) {
		if (field == t->field) {
			describe_results(t, out);
		} else if (out->semantic == SHARD_MASK) {
			out->shape[0] = t->plan.height;
			out->shape[1] = t->plan.width;
		}
		if (t->views > 1) { /* an axis in front of the others */
			memmove(out->shape + 1, out->shape, out->ndim * sizeof(*out->shape));
			out->shape[0] = t->views;
			out->ndim++;
			out->ragged_axes <<= 1;
		}
		out->bytes = out->stride = field == t->field ? t->row_bytes : t->remade[field];
		out->offset = 0;
	} else if (layout_has_field(&l->layout, field) && !layout_is_block(&l->layout, out->group)) {
		layout_rows(&l->layout, field, &out->stride);
		out->bytes = out->stride;
		out->offset = 0;
	}
}

int shard_loader_drawn(const struct shard_loader *l, const struct shard_batch *batch, struct shard_transform_row *row,
		       struct shard_error *err)
{
	const struct transformed *t = l->transformed;

	if (!t)
		return error_set(err, SHARD_E_ARGUMENT, "the loader has no transform in its options");
	transformed_draw_batch(t, batch, row);
	return SHARD_OK;
}

/* ---- by a kernel: where its results lie, and when it runs ---- */

/*
 * Each device slot has memory for results.  The kernel is queued on the trainer's stream when the
 * slot is lent.  That is behind the copies to the slot, which are behind the last borrower's work.
 * So nobody else reads or writes these results meanwhile.
 */

#define RESULTS_ALIGN 256u /* of the results of a batch */

int loader_open_kernel(struct shard_loader *l, struct shard_error *err)
{
	const struct transformed *t = l->transformed;
	struct loader_kernel *k = mem_zalloc(sizeof(*k));
	int rc;

	if (!k)
		return error_set(err, SHARD_E_MEMORY, "no memory for a transform");
	l->kernel = k;
	k->rows = mem_array((size_t)steps_rows(&l->steps) * t->views, sizeof(*k->rows));
	if (!k->rows || !mul_fits(steps_rows(&l->steps), t->row_bytes, &k->slot_bytes))
		return error_set(err, SHARD_E_MEMORY, "no memory for rows of %u records", steps_rows(&l->steps));
	k->slot_bytes = align_up(k->slot_bytes, RESULTS_ALIGN);
	rc = batch_transform_of_plan(&k->transform, &t->plan, t->field, err);
	return rc ? rc : batch_transform_check_gpu(k->transform, l->cuda, err);
}

void loader_close_kernel(struct shard_loader *l, bool inherited)
{
	struct loader_kernel *k = l->kernel;

	if (!k)
		return;
	shard_transform_close(k->transform);
	if (!inherited && l->cuda)
		cuda_free(l->cuda, k->memory);
	mem_free(k->rows);
	mem_free(k);
	l->kernel = NULL;
}

int loader_run_kernel(struct shard_loader *l, struct shard_batch *batch, void *stream, struct shard_error *err)
{
	uint64_t to = l->kernel->memory + (batch->slot & ~DEVICE_BATCH) * l->kernel->slot_bytes;
	const struct transformed *t = l->transformed;
	int rc;

	transformed_draw_batch(t, batch, l->kernel->rows);
	rc = shard_transform_launch(l->kernel->transform, batch, l->kernel->rows,
				    (uint64_t)batch->record_count * t->views, stream, (void *)(uintptr_t)to, err);
	batch->field[t->field].data = (void *)(uintptr_t)to;
	batch->field[t->field].stride = t->row_bytes;
	return rc;
}
