/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c - loaders as C uses them, called by sides.py in the process where Python uses them too
 *
 * A shared library with a libshard of its own.  Whatever fails is printed, and the answer is
 * negative.
 */
#include <stdint.h>
#include <stdio.h>

#include "bench/common/service.h"
#include "shard.h"

#define PUBLIC __attribute__((visibility("default")))

PUBLIC void *loop_dataset(const char *dir);
PUBLIC void *loop_loader(void *dataset, uint32_t batch_records, uint32_t slot_count);
PUBLIC double loop_epoch(void *loader);
PUBLIC double loop_step(void *loader);
PUBLIC void loop_close(void *loader);

static struct shard_batch held; /* what loop_step took last: one loader at a time does that */
static int has_held;

static double complain(const struct shard_error *err)
{
	fprintf(stderr, "loop: %s\n", err->message);
	return -1;
}

void *loop_dataset(const char *dir)
{
	struct shard_dataset *ds = NULL;
	struct shard_error err;

	if (shard_dataset_open(&ds, dir, NULL, &err))
		complain(&err);
	return ds;
}

void *loop_loader(void *dataset, uint32_t batch_records, uint32_t slot_count)
{
	struct shard_loader_options o = {.size = sizeof(o),
					 .batch_records = batch_records,
					 .slot_count = slot_count,
					 .order.seed = 1,
					 .tail = SHARD_KEEP};
	struct shard_loader *l = NULL;
	struct shard_error err;

	has_held = 0;
	if (shard_loader_open(&l, dataset, &o, &err))
		complain(&err);
	return l;
}

/* Seconds of a whole epoch. */
double loop_epoch(void *loader)
{
	double begin = bench_seconds();
	struct shard_batch batch;
	struct shard_error err;
	int rc;

	while ((rc = shard_loader_next(loader, &batch, &err)) == SHARD_OK)
		if (shard_loader_release(loader, &batch, &err))
			return complain(&err);
	return rc == SHARD_END ? bench_seconds() - begin : complain(&err);
}

/* Seconds to give a batch back and take the next, over the end of an epoch too. */
double loop_step(void *loader)
{
	double begin = bench_seconds();
	struct shard_error err;
	int rc;

	if (has_held && shard_loader_release(loader, &held, &err))
		return complain(&err);
	rc = shard_loader_next(loader, &held, &err);
	if (rc == SHARD_END)
		rc = shard_loader_next(loader, &held, &err);
	has_held = rc == SHARD_OK;
	return rc ? complain(&err) : bench_seconds() - begin;
}

void loop_close(void *loader)
{
	shard_loader_close(loader);
}
