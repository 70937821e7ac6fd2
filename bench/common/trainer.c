/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainer.c - open a dataset and a loader, and take batches
 */
#include "bench/common/trainer.h"

#include <stdlib.h>
#include <string.h>

#define KEPT_MOST 1000u /* a loader has at most 1024 slots */

uint32_t trainer_kept(uint64_t batch_bytes)
{
	uint64_t kept = (4 * bench_llc_bytes() + batch_bytes - 1) / batch_bytes;

	return kept > KEPT_MOST ? KEPT_MOST : (uint32_t)kept;
}

void trainer_open_dataset(struct trainer *t)
{
	struct shard_dataset_options o = {.size = sizeof(o), .check = t->check};
	struct shard_error err;

	if (shard_dataset_open(&t->ds, t->dir, &o, &err))
		bench_die("%s", err.message);
}

void trainer_open_loader(struct trainer *t)
{
	struct shard_error err;

	if (!t->ds)
		trainer_open_dataset(t);
	t->options.size = sizeof(t->options);
	if (shard_loader_open(&t->loader, t->ds, &t->options, &err))
		bench_die("%s", err.message);
	if (t->memory && shard_loader_lend(t->loader, t->memory, t->memory_bytes, &err))
		bench_die("%s", err.message);
}

void trainer_close_loader(struct trainer *t)
{
	shard_loader_close(t->loader);
	t->loader = NULL;
}

void trainer_close(struct trainer *t)
{
	trainer_close_loader(t);
	shard_dataset_close(t->ds);
	t->ds = NULL;
}

uint64_t trainer_take(struct trainer *t, uint64_t most, uint64_t *idx)
{
	uint32_t kept = t->kept_count ? t->kept_count : 1;
	struct shard_batch *batch = calloc(kept, sizeof(*batch));
	struct shard_error err;
	uint64_t n = 0, rows = 0;
	int rc = SHARD_OK;

	if (!batch)
		bench_die("out of memory");
	for (; !rc && n < most; n++) {
		struct shard_batch *b = &batch[n % kept];

		if (n >= kept && shard_loader_release(t->loader, b, &err))
			bench_die("%s", err.message);
		b->record_count = 0; /* which says that it is not lent */
		rc = shard_loader_next(t->loader, b, &err);
		if (rc < 0)
			bench_die("%s", err.message);
		if (rc == SHARD_END)
			b->record_count = 0;
		else if (idx)
			memcpy(idx + rows, b->record, b->record_count * sizeof(*idx));
		rows += b->record_count;
	}
	for (uint32_t i = 0; i < kept; i++)
		if (batch[i].record_count && shard_loader_release(t->loader, &batch[i], &err))
			bench_die("%s", err.message);
	free(batch);
	return rows;
}
