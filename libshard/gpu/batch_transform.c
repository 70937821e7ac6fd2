/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_transform.c - the public calls that transform images of batches, on the CPU or by a kernel on the GPU
 *
 * libshard/transform defines what a transform does.  A handle brings its kernels and its table to
 * the context of the first batch that it gets, and keeps them there.
 */
#include "libshard/gpu/gpu.h"

#include <inttypes.h>
#include <unistd.h>

#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/base/options.h"

#define PAGE_BYTES	  4096u
#define SHARED_MOST_BYTES (227u * 1024) /* of shared memory for a block: no GPU of today has more */
#define BLOCKS_EACH	  4u		/* of a multiprocessor, at a time: see grid.c */

struct shard_transform {
	struct transform_plan plan;
	uint32_t field_idx;
	void *scratch; /* for rows on the CPU */

	/* For the GPU. */
	struct cuda_device *cuda; /* NULL: nothing was launched yet */
	pid_t owner;		  /* the process that launched a kernel first */
	void *module;
	uint64_t table; /* an address of the device */
	uint8_t *page;	/* the table is copied from here */
	bool page_locked;
	void *behind, *launched;		 /* a stream that waits for all launches, by this event */
	void *kernel[2];			 /* [is the output 16-aligned?] */
	struct transform_call call;		 /* without addresses and rows */
	uint32_t shape[2], shared_bytes, blocks; /* blocks: as many as keep the GPU at work */
};

/* ---- life ---- */

int batch_transform_plan(struct transform_plan *out, uint32_t *field_idx, const struct shard_schema *schema,
			 const char *name, const struct shard_transform_options *opt, const struct batch_draws *draws,
			 struct shard_error *err)
{
	const struct shard_field *field = shard_schema_find(schema, name);
	struct shard_transform_options o;
	struct shown shown;
	int rc = options_take(&o, sizeof(o), opt, err);

	if (rc)
		return rc;
	if (!field)
		return error_set(err, SHARD_E_ARGUMENT, "the dataset has no field %s", show(&shown, name));
	*field_idx = (uint32_t)(field - schema->field);
	if (field->kind == SHARD_RAGGED && shard_image_size_field(schema, *field_idx) >= schema->field_count)
		return error_set(err, SHARD_E_ARGUMENT,
				 "field %s is ragged, but not of whole images: those are u8 [pixels,channels] of "
				 "semantic image and layout hwc, with their sizes in a field u32 [2], here %s_size",
				 show(&shown, name), name);
	o.pixels = o.pixels ? o.pixels : draws->pixels;
	rc = transform_plan_make(out, field, &o, err);
	out->seed = draws->seed;
	out->rank = draws->rank;
	out->world = draws->world;
	out->rows = draws->rows;
	out->epoch_records = draws->epoch_records;
	return rc;
}

int batch_transform_of_plan(struct shard_transform **out, const struct transform_plan *plan, uint32_t field_idx,
			    struct shard_error *err)
{
	struct shard_transform *f = mem_zalloc(sizeof(*f));

	if (!f)
		return error_set(err, SHARD_E_MEMORY, "no memory to transform batches");
	f->plan = *plan;
	f->field_idx = field_idx;
	f->scratch = mem_aligned(TRANSFORM_CPU_ALIGN, (size_t)transform_cpu_bytes(plan));
	if (!f->scratch) {
		shard_transform_close(f);
		return error_set(err, SHARD_E_MEMORY, "no memory for images of %" PRIu32 " x %" PRIu32, plan->in_height,
				 plan->in_width);
	}
	*out = f;
	return SHARD_OK;
}

int batch_transform_open(struct shard_transform **out, const struct shard_schema *schema, const char *field,
			 const struct shard_transform_options *opt, const struct batch_draws *draws,
			 struct shard_error *err)
{
	struct transform_plan plan;
	uint32_t field_idx;
	int rc = batch_transform_plan(&plan, &field_idx, schema, field, opt, draws, err);

	return rc ? rc : batch_transform_of_plan(out, &plan, field_idx, err);
}

/*
 * Free what lies on the GPU, after waiting for kernels.  The context is entered.  A forked child,
 * with `inherited`, only frees memory.
 */
static void drop_device(struct shard_transform *f, bool inherited)
{
	if (!inherited) {
		if (f->behind)
			cuda_stream_finish(f->cuda, f->behind, NULL);
		cuda_event_drop(f->cuda, f->launched);
		cuda_stream_drop(f->cuda, f->behind);
		if (f->page_locked)
			cuda_unpin(f->cuda, f->page);
		cuda_free(f->cuda, f->table);
		cuda_module_drop(f->cuda, f->module);
	}
	mem_free(f->page);
	f->page = NULL;
	f->page_locked = false;
	f->table = 0;
	f->behind = f->launched = f->module = NULL;
}

void shard_transform_close(struct shard_transform *f)
{
	if (!f)
		return;
	if (f->cuda && f->owner != getpid()) {
		drop_device(f, true);
		cuda_forget(f->cuda);
	} else if (f->cuda) {
		int rc = cuda_enter(f->cuda, NULL);

		drop_device(f, false);
		if (!rc)
			cuda_leave(f->cuda, SHARD_OK, NULL);
		cuda_close(f->cuda);
	}
	mem_free(f->scratch);
	mem_free(f);
}

uint64_t shard_transform_row_bytes(const struct shard_transform *f)
{
	return f->plan.row_bytes;
}

/* ---- rows ---- */

/* The image of row i of a batch: its size and, in host memory, its bytes. */
static struct transform_image image_of(const struct shard_transform *f, const struct shard_batch *batch, uint32_t i)
{
	const struct shard_rows *field = &batch->field[f->field_idx];

	return transform_image_of(&f->plan, (const uint8_t *)field->data + i * field->stride, field->size, i);
}

void shard_transform_draw(const struct shard_transform *f, const struct shard_batch *batch, uint32_t view,
			  struct shard_transform_row *row)
{
	for (uint32_t i = 0; i < batch->record_count; i++) {
		struct transform_image image = image_of(f, batch, i);

		transform_draw_row(&f->plan, &image, batch, i, view, &row[i]);
	}
}

/*
 * Check that the batch is in the right memory, that the rows exist in it, and that images that
 * differ in size can be transformed.  Without rows, *row_count becomes that of the batch.
 */
static int check(const struct shard_transform *f, const struct shard_batch *batch,
		 const struct shard_transform_row *rows, uint64_t *row_count, bool on_device, struct shard_error *err)
{
	int rc = SHARD_OK;

	if (!(batch->slot & DEVICE_BATCH) == on_device)
		return error_set(err, SHARD_E_ARGUMENT,
				 on_device
					 ? "this batch is in host memory; transform it with shard_transform_host(), or "
					   "take it with shard_loader_next_device()"
					 : "this batch is on a GPU; transform it with shard_transform_launch()");
	*row_count = rows ? *row_count : batch->record_count;
	if (rows)
		rc = transform_rows_check(&f->plan, rows, *row_count, batch->record_count,
					  batch->field[f->field_idx].size, err);
	for (uint64_t i = 0; !rc && f->plan.is_whole && i < *row_count; i++) {
		uint32_t from = rows ? rows[i].from : (uint32_t)i;
		struct transform_image image = image_of(f, batch, from);

		rc = transform_image_check(&f->plan, &image, batch->record[from], err);
	}
	return rc;
}

int shard_transform_host(struct shard_transform *f, const struct shard_batch *batch,
			 const struct shard_transform_row *rows, uint64_t row_count, void *to, struct shard_error *err)
{
	int rc = check(f, batch, rows, &row_count, false, err);

	for (uint64_t i = 0; !rc && i < row_count; i++) {
		struct transform_image image = image_of(f, batch, rows ? rows[i].from : (uint32_t)i);
		struct shard_transform_row row;

		if (rows)
			row = rows[i];
		else
			transform_draw_row(&f->plan, &image, batch, (uint32_t)i, 0, &row);
		transform_cpu(&f->plan, &row, &image, (uint8_t *)to + i * f->plan.row_bytes, f->scratch);
	}
	return rc;
}

/* ---- the GPU ---- */

/* Bring the kernels, and all that launches need, to the GPU.  The context is entered. */
static int bring_all(struct shard_transform *f, struct shard_error *err)
{
	uint64_t table_bytes = f->plan.channels * 256 * f->plan.element_bytes;
	char name[TRANSFORM_NAME_BYTES];
	int rc = transform_grid(&f->plan, cuda_shared_most(f->cuda), &f->call, &f->shared_bytes, err);

	f->blocks = BLOCKS_EACH * cuda_multiprocessors(f->cuda);
	if (!rc)
		rc = cuda_module_get(f->cuda, transform_ptx, &f->module, err);
	for (int aligned = 0; !rc && aligned < 2; aligned++) {
		transform_shape(&f->plan, aligned, &f->call, name);
		f->shape[aligned] = f->call.shape;
		rc = cuda_kernel_find(f->cuda, f->module, name, &f->kernel[aligned], err);
		if (!rc && f->shared_bytes > TRANSFORM_SHARED_BYTES)
			rc = cuda_kernel_allow(f->cuda, f->kernel[aligned], err);
	}
	if (rc)
		return rc;
	/* The table comes from a page of its own, which is page-locked if that is allowed. */
	f->page = mem_aligned(PAGE_BYTES, PAGE_BYTES); /* 4 channels of f32 fill it */
	if (!f->page)
		return error_set(err, SHARD_E_MEMORY, "no memory for a table");
	for (uint32_t i = 0; i < f->plan.channels * 256; i++)
		memcpy(f->page + i * f->plan.element_bytes, &f->plan.bits[i / 256][i % 256], f->plan.element_bytes);
	f->page_locked = !cuda_pin(f->cuda, f->page, PAGE_BYTES, NULL);
	rc = cuda_alloc(f->cuda, table_bytes, &f->table, err);
	if (!rc)
		rc = cuda_stream_make(f->cuda, &f->behind, err);
	if (!rc)
		rc = cuda_event_make(f->cuda, &f->launched, err);
	if (!rc)
		rc = cuda_copy_in(f->cuda, f->table, f->page, table_bytes, f->behind, err);
	return rc ? rc : cuda_stream_finish(f->cuda, f->behind, err);
}

int batch_transform_begin(struct shard_transform *f, const void *memory, struct shard_error *err)
{
	int rc;

	if (f->cuda)
		return SHARD_OK;
	rc = cuda_open_at(&f->cuda, memory, err);
	if (rc)
		return rc;
	f->owner = getpid();
	rc = cuda_enter(f->cuda, err);
	if (!rc) {
		rc = bring_all(f, err);
		if (rc)
			drop_device(f, false);
		rc = cuda_leave(f->cuda, rc, err);
	}
	if (!f->module) {
		cuda_close(f->cuda);
		f->cuda = NULL;
	}
	return rc;
}

int batch_transform_check_gpu(const struct shard_transform *f, const struct cuda_device *cuda, struct shard_error *err)
{
	struct transform_call call;
	uint32_t shared_bytes;

	return transform_grid(&f->plan, cuda ? cuda_shared_most(cuda) : SHARED_MOST_BYTES, &call, &shared_bytes, err);
}

/* Put rows `first` and on into a launch.  Returns the height and width of the largest parts. */
static struct shard_size put_rows(const struct shard_transform *f, const struct shard_batch *batch,
				  const struct shard_transform_row *rows, uint64_t first, uint32_t count,
				  struct transform_call *call)
{
	struct shard_size most = {0, 0};

	for (uint32_t i = 0; i < count; i++) {
		uint32_t from = rows ? rows[first + i].from : (uint32_t)(first + i);
		struct transform_image image = image_of(f, batch, from);
		struct shard_transform_row row;

		if (rows)
			row = rows[first + i];
		else
			transform_draw_row(&f->plan, &image, batch, from, 0, &row);
		most.height = row.height > most.height ? row.height : most.height;
		most.width = row.width > most.width ? row.width : most.width;
		transform_put_row(&f->plan, call, i, &row, image.width, from);
	}
	return most;
}

/*
 * Of images that differ in size, few are as long as one may be.  So a launch is laid out for the
 * largest parts that it has, which need no more shared memory than the longest images.
 */
static int lay_out(const struct shard_transform *f, struct shard_size most, struct transform_call *call,
		   uint32_t *shared_bytes, struct shard_error *err)
{
	struct transform_plan plan;

	memcpy(call, &f->call, offsetof(struct transform_call, row));
	*shared_bytes = f->shared_bytes;
	if (!f->plan.is_whole || f->plan.crop != SHARD_CROP_RESIZED)
		return SHARD_OK;
	plan = f->plan;
	plan.in_height = most.height;
	plan.in_width = most.width;
	return transform_grid(&plan,
			      f->shared_bytes > TRANSFORM_SHARED_BYTES ? f->shared_bytes : TRANSFORM_SHARED_BYTES, call,
			      shared_bytes, err);
}

/* Launch a kernel for each 256 rows, because its parameter has room for that many. */
static int launch(struct shard_transform *f, const struct shard_batch *batch, const struct shard_transform_row *rows,
		  uint64_t row_count, void *stream, void *to, struct shard_error *err)
{
	const struct shard_rows *images = &batch->field[f->field_idx];
	bool aligned = (uintptr_t)to % 16 == 0;
	struct transform_call call;
	int rc = SHARD_OK;

	for (uint64_t first = 0, count; !rc && first < row_count; first += count) {
		struct shard_size most;
		uint32_t shared_bytes;

		count = row_count - first < TRANSFORM_ROWS ? row_count - first : TRANSFORM_ROWS;
		most = put_rows(f, batch, rows, first, (uint32_t)count, &call);
		rc = lay_out(f, most, &call, &shared_bytes, err);
		if (rc)
			return rc;
		call.shape = f->shape[aligned];
		call.from = (uintptr_t)images->data;
		call.from_end = call.from + (batch->record_count - UINT64_C(1)) * images->stride + f->plan.image_bytes;
		call.record_step = images->stride;
		call.table = f->table;
		call.to = (uintptr_t)to + first * f->plan.row_bytes;
		transform_spread(&call, (uint32_t)count, f->blocks);
		rc = cuda_launch(f->cuda, f->kernel[aligned], transform_blocks(&call), (uint32_t)count,
				 TRANSFORM_THREADS, shared_bytes, &call, stream, err);
	}
	return rc;
}

int shard_transform_launch(struct shard_transform *f, const struct shard_batch *batch,
			   const struct shard_transform_row *rows, uint64_t row_count, void *stream, void *to,
			   struct shard_error *err)
{
	const void *from = batch->field[f->field_idx].data;
	int rc = check(f, batch, rows, &row_count, true, err), noted;

	if (!rc && (uintptr_t)to % f->plan.element_bytes)
		rc = error_set(err, SHARD_E_ARGUMENT,
			       "the output is at %p; must be at a multiple of %" PRIu32 ", the bytes of a number", to,
			       f->plan.element_bytes);
	if (!rc)
		rc = batch_transform_begin(f, from, err);
	if (!rc)
		rc = cuda_enter(f->cuda, err);
	if (rc)
		return rc;
	rc = cuda_check_memory(f->cuda, from, err);
	if (!rc)
		rc = cuda_check_stream(f->cuda, stream, err);
	if (!rc) {
		rc = launch(f, batch, rows, row_count, stream, to, err);
		/*
		 * Some kernels may be queued all the same.  shard_transform_close() waits for them through
		 * `behind`: to wait for the whole context would break a capture of the trainer.
		 */
		noted = cuda_event_record(f->cuda, f->launched, stream, rc ? NULL : err);
		if (!noted)
			noted = cuda_stream_wait(f->cuda, f->behind, f->launched, rc ? NULL : err);
		rc = rc ? rc : noted;
	}
	return cuda_leave(f->cuda, rc, err);
}
