/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_kernel.c - a loader's own transform, by a kernel: where its results lie, and when it runs
 *
 * Each device slot has memory for results.  The kernel is queued on the trainer's stream when the
 * slot is lent.  That is behind the copies to the slot, which are behind the last borrower's work.
 * So nobody else reads or writes these results meanwhile.
 */
#include "libshard/base/bytes.h"
#include "libshard/base/error.h"
#include "libshard/base/mem.h"
#include "libshard/feed/feed.h"
#include "libshard/gpu/gpu.h"
#include "libshard/loader/loader.h"
#include "shard_gpu.h"

#define RESULTS_ALIGN 256u /* of the results of a batch */

int loader_open_kernel(struct shard_loader *l, struct shard_error *err)
{
	const struct transformed *t = l->transformed;
	struct loader_kernel *k = mem_zalloc(sizeof(*k));
	int rc;

	if (!k)
		return error_set(err, SHARD_E_MEMORY, "no memory for a transform");
	l->kernel = k;
	k->rows = mem_array((size_t)l->o.batch_records * t->views, sizeof(*k->rows));
	if (!k->rows || !mul_fits(l->o.batch_records, t->row_bytes, &k->slot_bytes))
		return error_set(err, SHARD_E_MEMORY, "no memory for rows of %u records", l->o.batch_records);
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

int loader_alloc_results(struct shard_loader *l, struct shard_error *err)
{
	struct loader_kernel *k = l->kernel;

	if (!k || k->memory)
		return SHARD_OK;
	return cuda_alloc(l->cuda, k->slot_bytes * l->device_slots.slot_count, &k->memory, err);
}

int loader_begin_kernel(struct shard_loader *l, struct shard_error *err)
{
	struct loader_kernel *k = l->kernel;

	return k ? batch_transform_begin(k->transform, (const void *)(uintptr_t)k->memory, err) : SHARD_OK;
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
