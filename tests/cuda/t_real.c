/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_real.c - on the GPU of this machine: a trainer finds the bytes of the dataset, each transform
 * makes the numbers that the CPU makes, maps of files are copied from in place, and units have the
 * hashes that the CPU finds, also where a loader leaves that to the GPU
 *
 * The driver is the one that the system has; without one this skips.  tests/cuda/real.sh runs it on
 * the fake driver, to see that it notices what is wrong.  `make bench-gpu` runs it first.
 *
 * TIMEOUT: 600
 */
#include "libshard/gpu/gpu.h"
#include "shard_gpu.h"
#include "shard_transform.h"
#include "tests/cuda/trainer.h"
/* behind a function that has a local `content` */
#include "tests/cuda/checking.h"
#include "tests/load/batches.h"

#define ROWS	   16u
#define STEPS	   9u /* of 6 in an epoch */
#define TRANSFORMS 18u

static const uint64_t sizes[] = {40, 1, 0, 62};

struct job {
	void *context, *stream; /* the stream may be NULL */
	struct shard_loader *gpu, *host;
};

/* ---- the trainer ---- */

/* The host has such a loader without a pool. */
static void open_job_of(struct job *job, struct shard_loader_options o, bool own_stream)
{
	int device;

	o.size = sizeof(o);
	o.batch_records = ROWS;
	o.order.seed = 7;
	o.tail = SHARD_KEEP;
	o.gpu.device = SHARD_GPU(0);
	memset(job, 0, sizeof(*job));
	CU_OK(cu.cuDeviceGet(&device, 0));
	CU_OK(cu.cuDevicePrimaryCtxRetain(&job->context, device));
	CU_OK(cu.cuCtxPushCurrent(job->context));
	if (own_stream)
		CU_OK(cu.cuStreamCreate(&job->stream, 1));
	CHECK_OK(shard_loader_open(&job->gpu, ds, &o, &fixture_err));
	o.gpu.device = 0;
	o.gpu.pool_bytes = 0;
	CHECK_OK(shard_loader_open(&job->host, ds, &o, &fixture_err));
	living += 2;
}

static void open_job(struct job *job, unsigned pool, bool own_stream)
{
	open_job_of(job, (struct shard_loader_options){.gpu.pool_bytes = pool ? SHARD_POOL_ALL : 0}, own_stream);
}

static void close_job(struct job *job)
{
	void *popped;
	int device;

	close_loader(job->gpu);
	close_loader(job->host);
	if (job->stream)
		CU_OK(cu.cuStreamDestroy(job->stream));
	CU_OK(cu.cuCtxPopCurrent(&popped));
	CU_OK(cu.cuDeviceGet(&device, 0));
	CU_OK(cu.cuDevicePrimaryCtxRelease(device));
}

/* Start the driver.  If there is none, the test skips. */
static void need_gpu(void)
{
	const char *why = driver_find();
	int result, device;

	if (why)
		SKIP("no GPU: %s", why);
	result = cu.cuInit(0);
	if (!result)
		result = cu.cuDeviceGet(&device, 0);
	if (result)
		SKIP("no GPU: the driver says %d", result);
}

/* Copy from the GPU behind what is queued on the job's stream, and compare. */
static void check_copy(const struct job *job, const char *what, uint64_t step, uint64_t at, const void *want, void *got,
		       size_t bytes)
{
	const uint8_t *found = got, *wanted = want;
	size_t i = 0;

	CU_OK(cu.cuMemcpyDtoHAsync(got, at, bytes, job->stream));
	CU_OK(cu.cuStreamSynchronize(job->stream));
	while (i < bytes && found[i] == wanted[i])
		i++;
	if (i < bytes)
		test_fail(__FILE__, __LINE__, "%s, step %" PRIu64 ": byte %zu of %zu is %02x on the GPU, not %02x",
			  what, step, i, bytes, found[i], wanted[i]);
}

/* ---- what it finds ---- */

/* Every field of every row, as it was written. */
static void check_fields(const struct job *job, const struct shard_batch *b)
{
	uint8_t got[64 * 64 * 3];

	for (uint32_t f = 0; f < schema.field_count; f++) {
		const struct shard_field *field = &schema.field[f];
		uint64_t stride = schema.group[field->group].stride;

		CHECK(field->bytes <= sizeof(got));
		for (uint32_t i = 0; i < b->record_count; i++)
			check_copy(job, field->name, b->step, (uintptr_t)b->field[f].data + i * b->field[f].stride,
				   content[field->group] + b->record[i] * stride + field->offset, got, field->bytes);
	}
}

static void take_both(const struct job *job, struct shard_batch *there, struct shard_batch *here)
{
	int rc = shard_loader_next_device(job->gpu, job->stream, there, &fixture_err);

	if (rc == SHARD_END) {
		CHECK_EQ(shard_loader_next(job->host, here, &fixture_err), SHARD_END);
		rc = shard_loader_next_device(job->gpu, job->stream, there, &fixture_err);
	}
	CHECK_OK(rc);
	CHECK_OK(shard_loader_next(job->host, here, &fixture_err));
	CHECK_EQ(there->record_count, here->record_count);
	CHECK_EQ(memcmp(there->record, here->record, there->record_count * sizeof(*there->record)), 0);
}

static void give_both(const struct job *job, const struct shard_batch *there, const struct shard_batch *here)
{
	CHECK_OK(shard_loader_release_after(job->gpu, there, job->stream, &fixture_err));
	CHECK_OK(shard_loader_release(job->host, here, &fixture_err));
}

TEST(batches_are_those_that_were_written)
{
	need_gpu();
	open_photos(64, SHARD_RAW, sizes, sizeof(sizes) / sizeof(sizes[0]));
	for (unsigned round = 0; round < 4; round++) {
		struct shard_batch there, here;
		struct job job;

		STORY("pool %u, %s stream", round % 2, round / 2 ? "own" : "default");
		open_job(&job, round % 2, round / 2);
		for (unsigned step = 0; step < STEPS; step++) {
			take_both(&job, &there, &here);
			check_fields(&job, &there);
			give_both(&job, &there, &here);
		}
		close_job(&job);
	}
}

/* ---- out of the page cache, where the system lets files be page-locked ---- */

/* All rows are those of the host's batch. */
static void check_rows_of_both(const struct job *job, const struct shard_batch *there, const struct shard_batch *here,
			       uint8_t *got)
{
	CHECK_EQ(memcmp(there->row_flags, here->row_flags, there->record_count), 0);
	for (uint32_t f = 0; f < schema.field_count; f++)
		for (uint32_t i = 0; i < there->record_count; i++)
			check_copy(job, schema.field[f].name, there->step,
				   (uintptr_t)there->field[f].data + i * there->field[f].stride,
				   (const uint8_t *)here->field[f].data + i * here->field[f].stride, got,
				   (size_t)schema.field[f].bytes);
}

/* Could nothing be page-locked, or checked by the GPU?  Says so. */
static bool is_refused(const struct job *job)
{
	struct shard_error why;

	if (shard_loader_pin_problem(job->gpu, &why) != SHARD_OK)
		return false;
	printf("not page-locked, or not checked by the GPU: %s\n", why.message);
	return true;
}

static void tell_checks(const struct job *job)
{
	struct shard_loader_stats s;

	shard_loader_stats(job->gpu, &s);
	CHECK_EQ(s.recopied_count, 0);
	CHECK(s.check_wait_count <= s.batch_count);
	if (is_refused(job))
		return;
	CHECK(s.cached_bytes > 0);
	CHECK(s.device_checked_count > 0);
	printf("the GPU checked %" PRIu64 " of %" PRIu64 " records; %" PRIu64 " of %" PRIu64
	       " batches waited for that, %.0f us in all\n",
	       s.device_checked_count, s.record_count, s.check_wait_count, s.batch_count,
	       (double)s.device_wait_ns / 1e3);
}

/* The GPU itself hashes records of 64 KiB and more.  Damage is what it is in host memory. */
TEST(records_in_the_page_cache_are_checked)
{
	static const uint64_t one_shard[] = {60};
	uint8_t *got;

	need_gpu();
	open_photos(160, SHARD_RAW, one_shard, 1);
	got = malloc((size_t)schema.field[PHOTO_IMAGE].bytes);
	for (uint32_t how = SHARD_CORRUPT_FAIL; how <= SHARD_CORRUPT_MASK; how++)
		for (int damaged = 0; damaged < 2; damaged++) {
			struct shard_error why = {.message = ""};
			struct shard_batch there, here;
			uint64_t repaired = 0;
			struct job job;
			int rc = SHARD_OK;

			STORY("on_corrupt %u, %s", how, damaged ? "a damaged record" : "sound records");
			if (damaged)
				damage(0, 17);
			reopen(NULL);
			open_job_of(&job,
				    (struct shard_loader_options){.repair.on_corrupt = how,
								  .repair.corrupt_most = UINT64_MAX},
				    true);
			begin_checked(job.gpu, job.stream);
			for (unsigned step = 0; step < STEPS && (!damaged || how != SHARD_CORRUPT_FAIL); step++) {
				take_both(&job, &there, &here);
				check_rows_of_both(&job, &there, &here, got);
				for (uint32_t i = 0; i < there.record_count; i++)
					repaired += there.row_flags[i] & (SHARD_ROW_SUBSTITUTED | SHARD_ROW_MASKED);
				give_both(&job, &there, &here);
			}
			while (damaged && how == SHARD_CORRUPT_FAIL && !rc) { /* within an epoch */
				rc = shard_loader_next_device(job.gpu, job.stream, &there, &why);
				CHECK_EQ(shard_loader_next(job.host, &here, &fixture_err), rc);
				if (!rc)
					give_both(&job, &there, &here);
			}
			if (damaged && how == SHARD_CORRUPT_FAIL) {
				CHECK_EQ(rc, SHARD_E_CORRUPT);
				CHECK_STR(why.message, fixture_err.message);
			}
			CHECK_EQ(repaired > 0, damaged && how != SHARD_CORRUPT_FAIL);
			tell_checks(&job);
			close_job(&job);
			if (damaged)
				damage(0, 17); /* repaired */
		}
	free(got);
	drop_dataset();
}

/*
 * A pool of a part of the dataset: runs of records that are too short by themselves.  In the second
 * dataset, two records are a unit.
 */
TEST(runs_come_to_a_pool_out_of_the_page_cache)
{
	static const uint64_t shards[] = {90, 1, 0, 120, 62};
	uint8_t got[64 * 64 * 3];

	need_gpu();
	for (unsigned round = 0; round < 4; round++) {
		struct shard_loader_options o = {.order.shuffle = SHARD_SHUFFLE_WINDOWS,
						 .order.run_records = round / 2 ? 33 : 6,
						 .order.window_runs = 1,
						 .order.lane_count = 2 - round / 2,
						 .gpu.pool_bytes = round / 2 ? 400000 : 2500000};
		struct shard_batch there, here;
		struct shard_loader_stats s;
		struct job job;

		STORY("%s stream, %u records in a unit", round % 2 ? "own" : "default", 1 + round / 2);
		if (round % 2 == 0)
			open_photos(round / 2 ? 26 : 64, SHARD_RAW, shards, sizeof(shards) / sizeof(shards[0]));
		CHECK_EQ(schema.group[0].unit_records, 1 + round / 2);
		open_job_of(&job, o, round % 2);
		begin_checked(job.gpu, job.stream);
		for (unsigned step = 0; step < 60; step++) { /* of 18 in an epoch */
			take_both(&job, &there, &here);
			check_rows_of_both(&job, &there, &here, got);
			give_both(&job, &there, &here);
		}
		shard_loader_stats(job.gpu, &s);
		CHECK(is_refused(&job) || s.cached_bytes > s.device_bytes / 2);
		CHECK(is_refused(&job) || s.device_checked_count > 100);
		CHECK_EQ(s.recopied_count, 0);
		close_job(&job);
	}
	drop_dataset();
}

/* Both page-lock the same pages, each through a map of its own. */
TEST(two_loaders_have_page_locks_of_their_own)
{
	static const uint64_t one_shard[] = {60};
	struct shard_loader_stats s;
	struct job job, other;
	bool refused;
	uint8_t *got;

	need_gpu();
	open_photos(160, SHARD_RAW, one_shard, 1);
	got = malloc((size_t)schema.field[PHOTO_IMAGE].bytes);
	open_job(&job, 0, true);
	open_job(&other, 0, true);
	begin_checked(job.gpu, job.stream);
	begin_checked(other.gpu, other.stream);
	for (unsigned step = 0; step < 2 * STEPS; step++) {
		struct job *of = step % 2 ? &other : &job;
		struct shard_batch there, here;

		take_both(of, &there, &here);
		check_rows_of_both(of, &there, &here, got);
		give_both(of, &there, &here);
	}
	refused = is_refused(&job);
	shard_loader_stats(other.gpu, &s);
	CHECK(refused || (!is_refused(&other) && s.cached_bytes > 0));
	close_job(&other);
	for (unsigned step = 0; step < STEPS; step++) { /* the page-locks of this one are still there */
		struct shard_batch there, here;

		take_both(&job, &there, &here);
		check_rows_of_both(&job, &there, &here, got);
		give_both(&job, &there, &here);
	}
	tell_checks(&job);
	close_job(&job);
	free(got);
	drop_dataset();
}

/*
 * The pages that are page-locked stay when their file is cut to nothing, and the GPU reads them.  The
 * fake driver reads as a process does, and would get SIGBUS.
 */
TEST(a_file_is_cut_while_it_is_page_locked)
{
	static const uint64_t one_shard[] = {60};
	struct shard_dataset_options so = {.size = sizeof(so), .check = SHARD_CHECK_FIRST};
	struct shard_loader_stats before, s;
	struct shard_reader *r;
	struct job job;
	size_t bytes;
	uint8_t *got;

	need_gpu();
	if (fake_find())
		return;
	open_photos(160, SHARD_RAW, one_shard, 1);
	bytes = (size_t)schema.field[PHOTO_IMAGE].bytes;
	got = malloc(bytes);
	reopen(&so);
	open_job_of(&job, (struct shard_loader_options){.fields = 1u << PHOTO_IMAGE, .thread_count = 1}, true);
	begin_checked(job.gpu, job.stream);
	for (unsigned step = 0; step < 6 * STEPS; step++) {
		struct shard_batch b;
		int rc = shard_loader_next_device(job.gpu, job.stream, &b, &fixture_err);

		if (step == 3 * STEPS && !is_refused(&job)) {
			shard_loader_stats(job.gpu, &before);
			CHECK(before.registered_bytes >= 60 * schema.group[0].stride);
			CHECK_OK(dataset_use_shard(ds, 0, &r, &fixture_err));
			CHECK_EQ(truncate(r->path, 0), 0);
		}
		if (rc == SHARD_END)
			continue;
		CHECK_OK(rc);
		for (uint32_t i = 0; i < b.record_count; i++)
			check_copy(&job, "image", b.step,
				   (uintptr_t)b.field[PHOTO_IMAGE].data + i * b.field[PHOTO_IMAGE].stride,
				   content[0] + b.record[i] * schema.group[0].stride, got, bytes);
		CHECK_OK(shard_loader_release_after(job.gpu, &b, job.stream, &fixture_err));
	}
	shard_loader_stats(job.gpu, &s);
	CHECK(is_refused(&job) || s.cached_bytes > before.cached_bytes);
	close_job(&job);
	free(got);
	drop_dataset();
}

/* Each kind of crop, type and layout; widths for the fast kernels, and one for the slow ones. */
static struct shard_transform_options transform_of(unsigned i)
{
	static const uint32_t dtypes[] = {SHARD_F16, SHARD_BF16, SHARD_F32, SHARD_U8};

	struct shard_transform_options o = {.size = sizeof(o),
					    .height = 56,
					    .width = i % 5 == 4 ? 61 : 56,
					    .dtype = dtypes[i % 4],
					    .layout = i / 3 % 2 ? SHARD_HWC : SHARD_CHW,
					    .crop = i / 6,
					    .flip = 0.5};

	if (o.dtype != SHARD_U8) {
		memcpy(o.mean, (const float[]){0.485f, 0.456f, 0.406f}, 3 * sizeof(float));
		memcpy(o.std, (const float[]){0.229f, 0.224f, 0.225f}, 3 * sizeof(float));
	}
	return o;
}

static void check_transform(const struct job *job, unsigned i, unsigned steps)
{
	struct shard_transform_options o = transform_of(i);
	struct shard_transform *on_gpu, *on_cpu;
	struct shard_batch there, here;
	uint64_t bytes, output;
	char what[32];
	uint8_t *want, *got;

	snprintf(what, sizeof(what), "transform %u", i);
	CHECK_OK(shard_transform_open(&on_gpu, job->gpu, "image", &o, &fixture_err));
	CHECK_OK(shard_transform_open(&on_cpu, job->host, "image", &o, &fixture_err));
	bytes = ROWS * shard_transform_row_bytes(on_cpu);
	want = malloc(bytes);
	got = malloc(bytes);
	CU_OK(cu.cuMemAlloc(&output, bytes + 4));
	for (unsigned step = 0; step < steps; step++) {
		uint64_t to = output + step % 2 * 4; /* 16-aligned, and not */

		take_both(job, &there, &here);
		CHECK_OK(shard_transform_host(on_cpu, &here, NULL, 0, want, &fixture_err));
		CHECK_OK(shard_transform_launch(on_gpu, &there, NULL, 0, job->stream, (void *)(uintptr_t)to,
						&fixture_err));
		check_copy(job, what, there.step, to, want, got,
			   there.record_count * shard_transform_row_bytes(on_cpu));
		give_both(job, &there, &here);
	}
	shard_transform_close(on_gpu);
	shard_transform_close(on_cpu);
	CU_OK(cu.cuMemFree(output));
	free(want);
	free(got);
}

TEST(transforms_make_the_numbers_of_the_cpu)
{
	need_gpu();
	open_photos(64, SHARD_RAW, sizes, sizeof(sizes) / sizeof(sizes[0]));
	for (unsigned round = 0; round < 4; round++) {
		struct job job;

		STORY("pool %u, %s stream", round % 2, round / 2 ? "own" : "default");
		open_job(&job, round % 2, round / 2);
		for (unsigned i = 0; i < TRANSFORMS; i++)
			check_transform(&job, i, 2);
		close_job(&job);
	}
}

/* ---- maps of files, and copies of many pieces ---- */

#define CHUNK_BYTES (4u << 20) /* that are page-locked at once, twice */
#define PIECES	    64u

/* Copy pieces from anywhere in the two chunks to a block, the first one to its end. */
static void check_pieces(const struct cuda_device *d, const struct job *job, void *copy_stream, void *const *side,
			 const uint8_t *map, size_t piece_bytes, uint64_t seed)
{
	struct prng p = {seed};
	struct cuda_pieces pieces = {.count = PIECES};
	uint64_t memory, to[PIECES];
	const void *from[PIECES];
	size_t bytes[PIECES];
	uint8_t *want = malloc(PIECES * piece_bytes), *got = malloc(PIECES * piece_bytes);
	char what[32];

	snprintf(what, sizeof(what), "pieces of %zu", piece_bytes);
	CHECK_OK(cuda_alloc(d, PIECES * piece_bytes, &memory, &fixture_err));
	for (unsigned i = 0; i < PIECES; i++) {
		const uint8_t *at = map + prng_below(&p, 2) * CHUNK_BYTES;

		at += prng_below(&p, CHUNK_BYTES - piece_bytes + 1);
		to[i] = memory + (PIECES - 1 - i) * piece_bytes;
		from[i] = at;
		bytes[i] = piece_bytes;
		memcpy(want + (PIECES - 1 - i) * piece_bytes, at, piece_bytes);
	}
	pieces.to = to;
	pieces.from = from;
	pieces.bytes = bytes;
	for (unsigned i = 0; side && i < CUDA_COPY_STREAMS - 1; i++)
		pieces.side[i] = side[i];
	CHECK_OK(cuda_copy_pieces(d, &pieces, copy_stream, &fixture_err));
	CHECK_OK(cuda_stream_finish(d, copy_stream, &fixture_err));
	check_copy(job, what, seed, memory, want, got, PIECES * piece_bytes);
	cuda_free(d, memory);
	free(want);
	free(got);
}

TEST(pieces_are_copied_from_a_map_in_place)
{
	static const size_t sizes_of_pieces[] = {150528, 65536, 28672, 4096, 999, 1};
	void *side[CUDA_COPY_STREAMS - 1];
	struct cuda_device *d;
	struct job job = {.context = NULL};
	uint8_t *map;
	int rc;

	need_gpu();
	map = trainer_map_file(2 * CHUNK_BYTES, PROT_READ, MAP_SHARED);
	CHECK_OK(cuda_open(&d, SHARD_GPU(0), NULL, &fixture_err));
	CHECK_OK(cuda_enter(d, &fixture_err));
	CHECK_OK(cuda_stream_make(d, &job.stream, &fixture_err));
	for (unsigned i = 0; i < CUDA_COPY_STREAMS - 1; i++)
		CHECK_OK(cuda_stream_make(d, &side[i], &fixture_err));
	rc = cuda_pin_map(d, map, CHUNK_BYTES, &fixture_err);
	if (rc && fixture_err.os_code == 801) {
		CHECK_OK(cuda_leave(d, 0, &fixture_err));
		SKIP("this GPU takes no read-only memory: %s", fixture_err.message);
	}
	CHECK_OK(rc);
	CHECK_OK(cuda_pin_map(d, map + CHUNK_BYTES, CHUNK_BYTES, &fixture_err));
	CHECK(cuda_is_pinned(d, map + 2 * CHUNK_BYTES - 1));
	for (size_t i = 0; i < sizeof(sizes_of_pieces) / sizeof(sizes_of_pieces[0]); i++) {
		STORY("%zu bytes, one call for all%s", sizes_of_pieces[i],
		      cu.cuMemcpyBatchAsync ? "" : ", which this driver does not have");
		check_pieces(d, &job, job.stream, NULL, map, sizes_of_pieces[i], i);
		STORY("%zu bytes, one call for each", sizes_of_pieces[i]); /* as on all default streams */
		check_pieces(d, &job, NULL, NULL, map, sizes_of_pieces[i], i);
		STORY("%zu bytes, on several streams", sizes_of_pieces[i]); /* as without a call for all */
		for (uint64_t again = 0; again < 8; again++)
			check_pieces(d, &job, job.stream, side, map, sizes_of_pieces[i], i + 100 * again);
	}
	cuda_unpin(d, map);
	cuda_unpin(d, map + CHUNK_BYTES);
	for (unsigned i = 0; i < CUDA_COPY_STREAMS - 1; i++)
		cuda_stream_drop(d, side[i]);
	cuda_stream_drop(d, job.stream);
	CHECK_OK(cuda_leave(d, 0, &fixture_err));
	cuda_close(d);
	CHECK(!munmap(map, 2 * CHUNK_BYTES));
}

/* What the fake driver refuses because the documentation or somebody's measurement says so. */
TEST(what_is_refused)
{
	uint64_t memory, from;
	size_t bytes = 4096, first = 0, failed = 0;
	int attributes[1][6] = {{1}};
	struct cuda_device *d;
	void *stream, *graph;
	uint8_t *map;
	int rc;

	need_gpu();
	map = trainer_map_file(bytes, PROT_READ, MAP_SHARED);
	from = (uintptr_t)map;
	CHECK_OK(cuda_open(&d, SHARD_GPU(0), NULL, &fixture_err));
	CHECK_OK(cuda_enter(d, &fixture_err));
	CU_OK(cu.cuStreamCreate(&stream, 1));
	CHECK_OK(cuda_alloc(d, bytes, &memory, &fixture_err));
	STORY("a read-only map, registered as if it could be written");
	CHECK_EQ(cu.cuMemHostRegister(map, bytes, 1), 1);
	rc = cuda_pin_map(d, map, bytes, &fixture_err);
	if (rc && fixture_err.os_code == 801) {
		CHECK_OK(cuda_leave(d, 0, &fixture_err));
		SKIP("this GPU takes no read-only memory: %s", fixture_err.message);
	}
	CHECK_OK(rc);
	STORY("the same memory again");
	CHECK_EQ(cuda_pin_map(d, map, bytes, &fixture_err), SHARD_E_DEVICE);
	CHECK_EQ(fixture_err.os_code, 712);
	if (cu.cuMemcpyBatchAsync) {
		STORY("a batch on the legacy default stream");
		CHECK_EQ(cu.cuMemcpyBatchAsync(&memory, &from, &bytes, 1, attributes, &first, 1, &failed, NULL), 1);
		STORY("a batch on a stream that captures");
		CU_OK(cu.cuStreamBeginCapture(stream, 2));
		CHECK_EQ(cu.cuMemcpyBatchAsync(&memory, &from, &bytes, 1, attributes, &first, 1, &failed, stream), 900);
		CU_OK(cu.cuStreamEndCapture(stream, &graph));
		CU_OK(cu.cuGraphDestroy(graph));
	}
	cuda_unpin(d, map);
	cuda_free(d, memory);
	CU_OK(cu.cuStreamDestroy(stream));
	CHECK_OK(cuda_leave(d, 0, &fixture_err));
	cuda_close(d);
	CHECK(!munmap(map, bytes));
}

/* ---- hashes of units ---- */

#define UNITS	   4u
#define UNIT_MOST  602112u
#define UNITS_MOST (UNITS * (UNIT_MOST + 16) + 16)

/* A sound unit, a damaged one, one with another leaf hash, and one that is skipped. */
static void check_units(const struct job *job, const struct cuda_device *d, const struct cuda_check *kernels,
			uint64_t memory, uint8_t *units, uint64_t bytes, uint64_t step, uint64_t shift)
{
	struct check_call call = {.from = memory + shift,
				  .step = step,
				  .bytes = bytes,
				  .to = memory + UNITS_MOST / 16 * 16 + 16,
				  .row_count = UNITS,
				  .number = (uint32_t)bytes,
				  .skip = {8}};
	struct check_result want[UNITS] = {{.hash = 0}}, got[UNITS];
	char what[80];

	for (uint32_t i = 0; i < UNITS; i++) {
		uint8_t *unit = units + shift + i * step, *damaged = &unit[bytes * 7 / 11];

		want[i].hash = i < 3 ? checksum64(unit, bytes) : 0;
		want[i].verdict = i < 3 ? i == 0 ? CHECK_SOUND : CHECK_DAMAGED : CHECK_SKIPPED;
		want[i].number = call.number;
		*damaged ^= i == 1; /* what was written, when it was hashed for HASH */
		call.want[i] = checksum64(unit, bytes) + (i == 2);
		*damaged ^= i == 1;
	}
	CHECK_OK(cuda_check_launch(d, kernels, &call, job->stream, &fixture_err));
	snprintf(what, sizeof(what), "units, %" PRIu64 " apart, from %" PRIu64, step, shift);
	check_copy(job, what, bytes, call.to, want, got, sizeof(got));
}

TEST(units_have_the_hashes_of_the_cpu)
{
	static const uint64_t usual[] = {12288, 65536, 150528, 196608, 262144, UNIT_MOST};
	struct prng p = {9};
	struct cuda_device *d;
	struct cuda_check kernels;
	struct job job;
	uint64_t memory;
	uint8_t *units;

	need_gpu();
	open_photos(64, SHARD_RAW, sizes, sizeof(sizes) / sizeof(sizes[0]));
	open_job(&job, 0, true);
	units = malloc(UNITS_MOST);
	prng_fill(&p, units, UNITS_MOST);
	CHECK_OK(cuda_open(&d, SHARD_GPU_OF_STREAM, job.stream, &fixture_err));
	CHECK_OK(cuda_enter(d, &fixture_err));
	CHECK_OK(cuda_check_open(d, &kernels, &fixture_err));
	CHECK_OK(cuda_alloc(d, UNITS_MOST + 16 + UNITS * sizeof(struct check_result), &memory, &fixture_err));
	CHECK_OK(cuda_copy_in(d, memory, units, UNITS_MOST, job.stream, &fixture_err));
	for (uint64_t bytes = 1; bytes <= 5000; bytes++) {
		check_units(&job, d, &kernels, memory, units, bytes, bytes + bytes % 3, bytes % 17);
		check_units(&job, d, &kernels, memory, units, bytes, (bytes + 15) / 16 * 16, 0);
	}
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		for (uint64_t shift = 0; shift < 16; shift += shift + 1) { /* 0, 1, 3, 7, 15 */
			check_units(&job, d, &kernels, memory, units, usual[i], usual[i], shift);
			check_units(&job, d, &kernels, memory, units, usual[i] - shift, usual[i], 0);
		}
	cuda_check_close(d, &kernels);
	cuda_free(d, memory);
	CHECK_OK(cuda_leave(d, 0, &fixture_err));
	cuda_close(d);
	close_job(&job);
	free(units);
}

TEST_MAIN()
