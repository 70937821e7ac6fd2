/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_transform.h - a trainer on the fake driver whose loader transforms batches by a kernel of its
 * own, compared with the same batches transformed on the host
 */
#ifndef TESTS_CUDA_OWN_TRANSFORM_H
#define TESTS_CUDA_OWN_TRANSFORM_H

#include "tests/cuda/pooling.h"
#include "tests/cuda/transforming.h"

#define VIEWS 2u

static struct shard_error err;

static inline void own_open(struct transforming *f, struct shard_loader_options o,
			    const struct shard_transform_options *transform, unsigned seed)
{
	struct shard_loader_transform own = {
		.size = sizeof(own), .views = VIEWS, .field = "image", .options = transform};

	transforming_open(f, o, transform, VIEWS * o.batch_records, (enum stream_kind)(seed % STREAM_KINDS), seed);
	shard_transform_close(f->there);
	f->there = NULL;
	close_loader(f->t.l);
	wanted.o.transform = &own;
	wanted.o.gpu.device = o.gpu.pool_bytes ? 0 : SHARD_GPU_OF_STREAM;
	wanted.o.gpu.stream = o.gpu.pool_bytes ? NULL : f->t.stream;
	f->t.l = loader_of(&wanted);
}

static inline int own_step(struct transforming *f)
{
	static struct shard_transform_row rows[VIEWS * LENT_CAP];
	struct shard_batch there, here;
	int rc = shard_loader_next_device(f->t.l, f->t.stream, &there, &err),
	    also = shard_loader_next(f->host, &here, &err);

	CHECK_EQ(rc, also);
	if (rc)
		return rc;
	CHECK_OK(shard_loader_drawn(f->t.l, &there, rows, &fixture_err));
	CHECK_EQ(there.field[PHOTO_IMAGE].stride, VIEWS * shard_transform_row_bytes(f->here));
	if (here.field[PHOTO_IMAGE].size) /* what is drawn there follows from it, so it would hide here */
		CHECK_MEM(there.field[PHOTO_IMAGE].size, here.field[PHOTO_IMAGE].size,
			  here.record_count * sizeof(struct shard_size));
	transforming_compare(f, &here, rows, (uint64_t)VIEWS * here.record_count,
			     (uintptr_t)there.field[PHOTO_IMAGE].data);
	CHECK_OK(shard_loader_release_after(f->t.l, &there, f->t.stream, &fixture_err));
	CHECK_OK(shard_loader_release(f->host, &here, &fixture_err));
	return rc;
}

static inline void own_steps(struct transforming *f, unsigned steps)
{
	for (unsigned i = 0; i < steps && !gpu.complaint[0]; i++) {
		if (i % (OUTPUTS / 2) == OUTPUTS / 2 - 1)
			fake->settle();
		own_step(f);
	}
	fake->settle();
}

static inline void own_close(struct transforming *f)
{
	transforming_close(f);
	wanted.o.transform = NULL;
	trainer_check_clean();
}

#endif
