/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transforming.h - a trainer on the fake driver that transforms its batches, and the same batches
 * transformed on the host
 *
 * Kernels are those of libshard/gpu/transform.cu, run by emulate.h when the driver comes to it,
 * with the launch's own grid, parameters and shared memory.  Another kernel behind them on the
 * stream compares what is there with what the twin made of the host's batch.  Links with
 * -Wl,--wrap=slot_fill; compiled without fused arithmetic, see the Makefile.
 */
#ifndef TESTS_CUDA_FINISHING_H
#define TESTS_CUDA_FINISHING_H

#include "shard_gpu.h"
#include "shard_transform.h"
#include "tests/cuda/emulate.h"
#include "tests/cuda/training.h"

#define OUTPUTS 16u /* more than can be under way */

struct transforming {
	struct training t;
	struct shard_loader *host;
	struct shard_transform *here, *there; /* of the host's batches, and the GPU's */
	void *compare;
	uint64_t output[OUTPUTS]; /* device memory for so many rows: */
	uint32_t output_rows;
	unsigned launched;
};

#define TO(f_) ((void *)(uintptr_t)(f_).output[0])

static inline struct shard_transform_options imagenet(uint32_t crop, uint32_t dtype, uint32_t layout, uint32_t side)
{
	struct shard_transform_options o = {.size = sizeof(o),
					    .height = side,
					    .width = side,
					    .dtype = dtype,
					    .layout = layout,
					    .crop = crop,
					    .flip = 0.5};

	if (dtype != SHARD_U8) {
		memcpy(o.mean, (const float[]){0.485f, 0.456f, 0.406f}, 3 * sizeof(float));
		memcpy(o.std, (const float[]){0.229f, 0.224f, 0.225f}, 3 * sizeof(float));
	}
	return o;
}

static struct comparison {
	uint64_t at, bytes;
	uint8_t *want;
	uint64_t epoch, step;
} comparisons[OUTPUTS];

/* ---- the GPU's side ---- */

static inline void twin_transform(const struct fake_kernel_call *c)
{
	struct transform_call call;
	uint8_t *from, *to, *table;

	memcpy(&call, c->arguments[0], sizeof(call));
	from = fake->at(call.from);
	to = fake->at(call.to);
	table = fake->at(call.table);
	if (!from || !to || !table) {
		complain(&gpu, "%s is told of memory that is not there", c->name);
		return;
	}
	if (c->block[0] != TRANSFORM_THREADS || c->block[1] != 1 || c->block[2] != 1 || c->grid[2] != 1)
		complain(&gpu, "%s has blocks of %u x %u x %u threads", c->name, c->block[0], c->block[1], c->block[2]);
	if (c->shared_bytes < call.at_tile || c->grid[1] > TRANSFORM_ROWS) { /* a launch that would crash */
		complain(&gpu, "%s has %u bytes of shared memory, and %u rows", c->name, c->shared_bytes, c->grid[1]);
		return;
	}
	call.from_end = (uintptr_t)from + (call.from_end - call.from);
	call.from = (uintptr_t)from;
	call.to = (uintptr_t)to;
	call.table = (uintptr_t)table;
	emulate(c->name, &call, c->grid[0], c->grid[1], c->shared_bytes, 3);
}

static inline void twin_compare(const struct fake_kernel_call *c)
{
	const struct comparison *k;
	const uint8_t *got;

	memcpy(&k, c->arguments[0], sizeof(k));
	got = fake->at(k->at);
	if (!got || memcmp(got, k->want, k->bytes))
		complain(&gpu, "epoch %" PRIu64 ", step %" PRIu64 ": the GPU's numbers are not the host's", k->epoch,
			 k->step);
}

/* ---- the host's ---- */

static inline void transforming_open(struct transforming *f, struct shard_loader_options o,
				     const struct shard_transform_options *transform, uint32_t output_rows,
				     enum stream_kind kind, uint64_t seed)
{
	static const size_t call_bytes[] = {sizeof(struct transform_call)}, compare_bytes[] = {8, 8};
	struct wanted host;

	memset(f, 0, sizeof(*f));
	training_open(&f->t, o, kind, seed);
	host = wanted;
	host.o.gpu.pool_bytes = 0;
	host.o.gpu.device = 0;
	f->host = loader_of(&host);
	for (size_t i = 0; i < EMULATED_KERNELS; i++)
		fake->kernel(emulated_kernels[i].name, twin_transform, 1, call_bytes);
	fake->kernel("compare", twin_compare, 2, compare_bytes);
	CU_OK(cu.cuModuleGetFunction(&f->compare, f->t.module, "compare"));
	CHECK_OK(shard_transform_open(&f->here, f->host, "image", transform, &fixture_err));
	CHECK_OK(shard_transform_open(&f->there, f->t.l, "image", transform, &fixture_err));
	f->output_rows = output_rows;
	for (unsigned i = 0; i < OUTPUTS; i++) {
		comparisons[i].want = malloc(output_rows * shard_transform_row_bytes(f->here));
		CU_OK(cu.cuMemAlloc(&f->output[i], output_rows * shard_transform_row_bytes(f->here) + 16));
	}
}

/* Behind what is queued: is what lies at `at` what the host makes of its batch? */
static inline void transforming_compare(struct transforming *f, const struct shard_batch *b,
					const struct shard_transform_row *rows, uint64_t row_count, uint64_t at)
{
	struct comparison *k = &comparisons[f->launched++ % OUTPUTS];
	void *arguments[] = {&k, &at};
	struct shard_error err = {.message = ""};

	k->at = at;
	k->bytes = (rows ? row_count : b->record_count) * shard_transform_row_bytes(f->here);
	k->epoch = b->epoch;
	k->step = b->step;
	if (shard_transform_host(f->here, b, rows, row_count, k->want, &err))
		complain(&wanted, "host: %s", err.message);
	CU_OK(cu.cuLaunchKernel(f->compare, 1, 1, 1, 1, 1, 1, 0, f->t.stream, arguments, NULL));
}

/*
 * One step: both batches, transformed and compared.  `shift` bytes behind an address that is
 * 16-aligned.
 */
static inline int transforming_step(struct transforming *f, const struct shard_transform_row *rows, uint64_t row_count,
				    uint32_t shift)
{
	uint64_t to = f->output[f->launched % OUTPUTS] + shift;
	struct shard_error err = {.message = ""};
	struct shard_batch there, here;
	int rc = shard_loader_next_device(f->t.l, f->t.stream, &there, &err),
	    also = shard_loader_next(f->host, &here, &err);

	if (rc != also || rc < 0) {
		complain(&wanted, "next says %d and %d: %s", rc, also, err.message);
		return rc;
	}
	if (rc)
		return rc;
	if (shard_transform_launch(f->there, &there, rows, row_count, f->t.stream, (void *)(uintptr_t)to, &err))
		complain(&wanted, "launch: %s", err.message);
	transforming_compare(f, &here, rows, row_count, to);
	if (shard_loader_release_after(f->t.l, &there, f->t.stream, &err) || shard_loader_release(f->host, &here, &err))
		complain(&wanted, "release: %s", err.message);
	return SHARD_OK;
}

/* So many steps, whatever epochs they are of; not more under way than there are outputs. */
static inline void transforming_steps(struct transforming *f, unsigned steps)
{
	for (unsigned i = 0; i < steps && !wanted.complaint[0]; i++) {
		if (i % (OUTPUTS / 2) == OUTPUTS / 2 - 1)
			fake->settle();
		transforming_step(f, NULL, 0, 0);
	}
}

static inline void transforming_close(struct transforming *f)
{
	shard_transform_close(f->there);
	shard_transform_close(f->here);
	close_loader(f->host);
	close_loader(f->t.l);
	fake->settle();
	for (unsigned i = 0; i < OUTPUTS; i++) {
		CU_OK(cu.cuMemFree(f->output[i]));
		free(comparisons[i].want);
	}
	trainer_leave(&f->t);
}

#endif
