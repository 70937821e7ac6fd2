/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_pool.c - a pool on a GPU that is not there delivers what a loader without one does, and copies
 * what it must
 *
 * Order and bytes are compared with arithmetic, and with a loader in host memory; the kernel is
 * gather.cu itself.  That these tests would see a pool that is wrong, t_pool_broken shows.
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=mem_alloc,--wrap=mem_zalloc,--wrap=mem_array
 * LDFLAGS: -Wl,--wrap=mem_aligned
 */
#include "shard_gpu.h"
#include "tests/child.h"
#include "tests/cuda/counted.h"
#include "tests/cuda/pooling.h"

static struct shard_error err;

/* ---- the right bytes ---- */

TEST(a_tenth_of_the_dataset_delivers_all_of_it)
{
	struct training t;
	unsigned round = 0;

	open_photos(100, SHARD_RAW, shards, COUNT(shards));
	for (uint32_t world = 1; world <= 4; world++)
		for (uint32_t tail = 0; tail < 3; tail++, round++) {
			struct shard_loader_options o = {.batch_records = world == 1 && tail != SHARD_PAD ? 5 : 2,
							 .world = world,
							 .rank = round % world,
							 .tail = tail,
							 .order.shuffle = SHARD_SHUFFLE_WINDOWS,
							 .order.run_records = 2,
							 .order.window_runs = 1,
							 .order.lane_count = 2,
							 .order.seed = round,
							 .thread_count = 1 + round % 3,
							 .gpu.slot_count = 2 + round % 3,
							 .gpu.pool_bytes = dataset_bytes() / 10};
			struct shard_loader_stats s;

			if (tail == SHARD_KEEP && world > 1)
				continue;
			STORY("world %u, tail %u", world, tail);
			open_pool(&t, o, round);
			CHECK(!t.l->pool->plan.is_held &&
			      t.l->pool->plan.slab_count * t.l->pool->plan.slab.slot_bytes <= dataset_bytes() / 10);
			CHECK_EQ(t.l->pool->plan.share.stride, 2 % world ? 1 : world);
			run(&t, 2 * calls_of(&t) + 7, 1);
			train_give_all(&t);
			shard_loader_stats(t.l, &s);
			CHECK_EQ(s.pageable_bytes, 0);
			CHECK_EQ(s.record_count,
				 s.batch_count * o.batch_records -
					 (tail == SHARD_KEEP
						  ? 2 * (o.batch_records - TOTAL % o.batch_records) % o.batch_records
						  : 0));
			finish(&t);
		}
}

TEST(windows_batches_and_records_of_all_kinds)
{
	static const uint32_t sides[] = {8, 40, 37};
	struct prng p = {5};
	struct training t;

	for (unsigned round = 0; round < 36; round++) {
		struct shard_loader_options o = {.batch_records = 1 + (uint32_t)prng_below(&p, LENT_CAP),
						 .order.shuffle = 2 + round % 2,
						 .order.seed = round,
						 .tail = round % 3,
						 .repair.on_corrupt = round % 3,
						 .thread_count = 1 + round % 2,
						 .gpu.slot_count = 2 + round % 2};

		if (round % 12 == 0)
			open_photos(sides[round / 12], round / 12 == 0 ? SHARD_LZ4 : SHARD_RAW, shards, COUNT(shards));
		if (o.order.shuffle == SHARD_SHUFFLE_WINDOWS) {
			o.order.run_records = 1 + prng_below(&p, 7);
			o.order.window_runs = 1 + (uint32_t)prng_below(&p, 4);
			o.order.lane_count = 1 + (uint32_t)prng_below(&p, 6);
		}
		if (o.tail != SHARD_KEEP) {
			o.world = 1 + (uint32_t)prng_below(&p, 3);
			o.rank = (uint32_t)prng_below(&p, o.world);
		}
		STORY("round %u: batches of %u, runs of %" PRIu64 ", windows of %u, %u lanes, world %u, tail %u", round,
		      o.batch_records, o.order.run_records, o.order.window_runs, o.order.lane_count, o.world, o.tail);
		o.gpu.pool_bytes = least_pool(o);
		open_pool(&t, o, round);
		run(&t, 2 * calls_of(&t) + 3, o.gpu.slot_count - 1);
		finish(&t);
	}
}

/* Parts that are stored alike; without a pool as well. */
TEST(several_datasets_one_behind_the_other)
{
	static const uint32_t first[] = {0, 91}, count[] = {3, 2};
	struct path name[2];
	struct shard_dataset *part[2];
	struct training t;

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	drop_dataset();
	for (unsigned p = 0; p < 2; p++) {
		new_folder(&name[p], p ? "behind" : "before");
		fixture_first = first[p];
		write_dataset(name[p].text, &schema, shards + 3 * p, count[p]);
		CHECK_OK(shard_dataset_open(&part[p], name[p].text, NULL, &err));
	}
	fixture_first = 0;
	CHECK_OK(shard_dataset_concat(&ds, part, 2, &err));
	for (unsigned round = 0; round < 18; round++) {
		struct shard_loader_options o = all_in_pool(round);

		STORY("round %u", round);
		if (round % 3 == 1) {
			o.order.shuffle = SHARD_SHUFFLE_WINDOWS;
			o.gpu.pool_bytes = least_pool(o);
		} else if (round % 3 == 2) {
			o.gpu.pool_bytes = 0;
		}
		open_pool(&t, o, round);
		run(&t, 2 * calls_of(&t) + 3, 1);
		finish(&t);
	}
	drop_dataset();
	shard_dataset_close(part[0]);
	shard_dataset_close(part[1]);
}

/*
 * A loader in host memory, with the same windows, has the same batch: rows, what became of them,
 * and all arrays.
 */
static void check_twin(struct shard_loader *host, struct training *t)
{
	struct shard_batch want, got;
	int rc = shard_loader_next(host, &want, &err);

	CHECK_EQ(shard_loader_next_device(t->l, t->stream, &got, &err), rc);
	if (rc)
		return;
	fake->settle();
	CHECK(got.epoch == want.epoch && got.position == want.position && got.step == want.step);
	CHECK_EQ(got.record_count, want.record_count);
	CHECK_MEM(got.record, want.record, want.record_count * sizeof(*want.record));
	CHECK_MEM(got.row_flags, want.row_flags, want.record_count);
	for (uint32_t f = 0; f < schema.field_count; f++)
		for (uint32_t i = 0; i < want.record_count; i++) {
			const uint8_t *at = fake->at((uintptr_t)got.field[f].data + i * got.field[f].stride);

			CHECK_EQ(got.field[f].stride, want.field[f].stride);
			CHECK(at);
			CHECK_MEM(at, (const uint8_t *)want.field[f].data + i * want.field[f].stride,
				  schema.field[f].bytes);
		}
	CHECK_OK(shard_loader_release(host, &want, &err));
	CHECK_OK(shard_loader_release_after(t->l, &got, t->stream, &err));
}

TEST(damaged_records_become_what_they_become_without_a_pool)
{
	struct shard_error last;
	struct shard_loader *host;
	struct training t;
	uint64_t flagged;

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	damage_record(&folder, 0, 0, 3 * schema.group[0].stride + 70);
	damage_record(&folder, 3, 0, 7 * schema.group[0].stride);
	/* the last of all: its substitute is the first */
	damage_record(&folder, 4, 0, 61 * schema.group[0].stride + 1);
	for (unsigned round = 0; round < 8; round++) {
		struct shard_loader_options o = {.size = sizeof(o),
						 .batch_records = 7,
						 .order.seed = round,
						 .tail = round % 2 ? SHARD_PAD : SHARD_KEEP,
						 .order.shuffle = SHARD_SHUFFLE_WINDOWS,
						 .order.run_records = 3,
						 .order.window_runs = 2,
						 .order.lane_count = 4,
						 .repair.on_corrupt =
							 round / 2 % 2 ? SHARD_CORRUPT_MASK : SHARD_CORRUPT_SUBSTITUTE};
		struct shard_loader_stats s;

		STORY("round %u", round);
		reopen(NULL);
		CHECK_OK(shard_loader_open(&host, ds, &o, &err));
		o.gpu.pool_bytes = round / 4 ? SHARD_POOL_ALL : dataset_bytes();
		open_pool(&t, o, round);
		for (unsigned i = 0; i < 2 * calls_of(&t); i++)
			check_twin(host, &t);
		shard_loader_stats(t.l, &s);
		flagged = s.substituted_count + s.masked_count;
		/* held: read once, but for what is ahead in host memory */
		CHECK(flagged >= 3 && (round / 4 ? flagged <= 5 : flagged >= 6));
		CHECK_EQ(shard_loader_last_damage(t.l, &last), SHARD_OK);
		CHECK(strstr(last.message, ".shard: I4"));
		shard_loader_close(host);
		finish(&t);
	}
}

/* ---- all of it ---- */

TEST(a_dataset_that_is_held_is_copied_once)
{
	struct training t;

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	for (unsigned round = 0; round < 24; round++) {
		struct shard_loader_options o = all_in_pool(round);
		struct shard_loader_stats before, after;
		uint64_t copies;

		if (o.order.shuffle == SHARD_SHUFFLE_WINDOWS) {
			o.order.run_records = 5;
			o.order.window_runs = 2;
			o.order.lane_count = 3;
		}
		STORY("round %u", round);
		open_pool(&t, o, round);
		CHECK(t.l->pool->plan.is_held);
		if (round >= 12) { /* a job that goes on */
			wanted_seek(&wanted, 1, 55);
			CHECK_OK(shard_loader_seek(t.l, 1, 55, &err));
			run(&t, 3, 1);
			wanted_seek(&wanted, 0, 100);
			CHECK_OK(shard_loader_seek(t.l, 0, 100, &err)); /* before all of it is there */
		}
		run(&t, calls_of(&t), 1);
		run(&t, 3, 1);
		train_give_all(&t);
		shard_loader_stats(t.l, &before);
		copies = fake->count("cuMemcpyHtoDAsync");
		run(&t, 2 * calls_of(&t), 1);
		train_give_all(&t);
		shard_loader_stats(t.l, &after);
		CHECK(before.device_bytes >= TOTAL * t.l->layout.record_bytes &&
		      before.device_bytes < TOTAL * (t.l->layout.record_bytes + 4096));
		CHECK_EQ(after.device_bytes, before.device_bytes);
		CHECK_EQ(fake->count("cuMemcpyHtoDAsync"), copies);
		CHECK(after.batch_count >= before.batch_count + 2 * (calls_of(&t) - 1));
		finish(&t);
	}
}

/* ---- what it costs ---- */

static const char *const waiting[] = {"cu*Synchronize", "cuMemAlloc",	  "cuMemFree",
				      "cuEventCreate",	"cuStreamCreate", "cuMemHostRegister",
				      "cuStreamQuery",	"cuEventQuery",	  "cuModuleLoadDataEx"};

TEST(once_it_runs_nothing_is_allocated_and_nobody_waits)
{
	struct training t;

	open_photos(100, SHARD_RAW, shards, COUNT(shards));
	for (unsigned seed = 0; seed < 6; seed++) {
		uint64_t before[COUNT(waiting)], copies, launches, ahead;
		const struct pool_plan *plan;

		STORY("seed %u", seed);
		open_pool(&t,
			  (struct shard_loader_options){.batch_records = 6,
							.order.shuffle = SHARD_SHUFFLE_WINDOWS,
							.order.run_records = 2,
							.order.window_runs = 1,
							.order.lane_count = 2,
							.thread_count = 2,
							.gpu.pool_bytes =
								seed % 2 ? SHARD_POOL_ALL : dataset_bytes() / 10},
			  seed);
		plan = &t.l->pool->plan;
		run(&t, calls_of(&t) + 8, 1);
		atomic_store(&allocated, 0);
		for (size_t i = 0; i < COUNT(waiting); i++)
			before[i] = fake->count(waiting[i]);
		copies = fake->count("cuMemcpyHtoDAsync");
		launches = fake->count("cuLaunchKernel");
		run(&t, calls_of(&t), 1);
		CHECK_EQ(atomic_load(&allocated), 0);
		for (size_t i = 0; i < COUNT(waiting); i++) {
			STORY("seed %u: %s", seed, waiting[i]);
			CHECK_EQ(fake->count(waiting[i]), before[i]);
		}
		/* one to gather, one of the trainer that looks */
		launches = fake->count("cuLaunchKernel") - launches;
		CHECK(launches >= 2 * (calls_of(&t) - 4) && launches <= 2 * (calls_of(&t) + 4));
		/* one a group and slab, and what is ahead: in the pool, and gathered */
		copies = fake->count("cuMemcpyHtoDAsync") - copies;
		ahead = plan->slab_count + t.l->o.gpu.slot_count * (t.l->o.batch_records / plan->slab_rows + 1);
		CHECK(seed % 2 ? !copies : copies <= 2 * (plan->epoch_slabs + ahead));
		finish(&t);
	}
}

/* ---- moving about ---- */

TEST(seek_resume_and_other_worlds)
{
	char token[SHARD_TOKEN_BYTES];
	struct training t;

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	for (unsigned seed = 0; seed < 16; seed++) {
		struct shard_loader_options o = {.batch_records = 10,
						 .tail = SHARD_KEEP,
						 .order.seed = 3,
						 .order.shuffle = SHARD_SHUFFLE_WINDOWS,
						 .order.run_records = 3,
						 .order.window_runs = 2,
						 .order.lane_count = 4,
						 .gpu.pool_bytes = seed % 4 == 3 ? SHARD_POOL_ALL : dataset_bytes()};
		uint64_t epoch, position;

		STORY("seed %u", seed);
		open_pool(&t, o, seed);
		run(&t, 5 + seed, 1);
		shard_loader_tell(t.l, &epoch, &position);
		CHECK(epoch == wanted.epoch && position == wanted.step * 10); /* not what was gathered ahead */
		shard_loader_token(t.l, token);
		wanted_seek(&wanted, 3, 131);
		CHECK_OK(shard_loader_seek(t.l, 3, 131, &err)); /* with batches lent, and copies under way */
		run(&t, 9, 1);
		wanted_seek(&wanted, epoch, position);
		CHECK_OK(shard_loader_resume(t.l, token, &err));
		run(&t, 9, 1);
		finish(&t);
		/* Another world goes on from there; what it delivers is checked by position. */
		o.tail = SHARD_PAD;
		o.world = 2 + seed % 2;
		o.rank = seed % o.world;
		o.batch_records = 7;
		if (seed % 4 == 2) { /* the token says what windows there are, and the pool is laid out again */
			o.order.run_records = o.order.window_runs = o.order.lane_count = o.order.shuffle = 0;
			o.gpu.pool_bytes = SHARD_POOL_ALL;
		}
		open_pool(&t, o, seed + 1);
		if (seed % 8 == 6)
			run(&t, 3, 1); /* while it is in use already */
		CHECK_OK(shard_loader_resume(t.l, token, &err));
		{
			struct shard_loader_options same = o;
			same.order.shuffle = SHARD_SHUFFLE_WINDOWS;
			same.order.run_records = 3;
			same.order.window_runs = 2;
			same.order.lane_count = 4;
			wanted_open(&wanted, same);
			gpu = wanted;
		}
		wanted_seek(&wanted, epoch, position);
		run(&t, 12, 1);
		CHECK_EQ(t.l->pool->plan.share.run_records, 3);
		CHECK_OK(shard_loader_resume(t.l, token, &err));
		wanted_seek(&wanted, epoch, position);
		run(&t, 5, 1);
		finish(&t);
	}
}

/* What a token of another order cannot change stays as it is, and the loader goes on. */
static void refuse_token(struct training *t, const char *token, int want, const char *words)
{
	struct shard_order_info before, after;
	const struct pool *pool = t->l->pool;

	shard_loader_order_info(t->l, &before);
	CHECK_EQ(shard_loader_resume(t->l, token, &err), want);
	CHECK(strstr(err.message, words));
	shard_loader_order_info(t->l, &after);
	CHECK_MEM(&after, &before, sizeof(before));
	CHECK(t->l->pool == pool);
	run(t, 7, 1);
}

static void token_of(struct shard_loader_options o, char token[SHARD_TOKEN_BYTES])
{
	struct training t;

	o.gpu.pool_bytes = SHARD_POOL_ALL;
	open_pool(&t, o, 1);
	shard_loader_token(t.l, token);
	finish(&t);
}

TEST(a_token_that_cannot_be_adopted_changes_nothing)
{
	struct shard_loader_options o = {.batch_records = 6,
					 .order.seed = 3,
					 .order.shuffle = SHARD_SHUFFLE_WINDOWS,
					 .order.run_records = 2,
					 .order.window_runs = 1,
					 .order.lane_count = 2},
				    other = o;
	char large[SHARD_TOKEN_BYTES], fits[SHARD_TOKEN_BYTES];
	struct training t;

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	other.order.lane_count = 1;
	token_of(other, fits);
	other.order.window_runs = 20; /* such a window is much of the dataset */
	token_of(other, large);
	o.gpu.pool_bytes = least_pool(o);
	for (unsigned seed = 0; seed < 8; seed++) {
		STORY("seed %u", seed);
		open_pool(&t, o, seed);
		t.l->asked = (struct shard_loader_options){.batch_records = 6}; /* a token may bring any order */
		if (seed % 2)
			run(&t, 5 + seed, 1);
		refuse_token(&t, large, SHARD_E_ARGUMENT, "; with these windows and batches a pool needs ");
		fake->fail("cuStreamSynchronize", 1, 700);
		/* what is gathered is waited for */
		refuse_token(&t, fits, SHARD_E_DEVICE, "cuStreamSynchronize: ");
		fake->fail(NULL, 0, 0);
		run(&t, calls_of(&t), 1);
		finish(&t);
	}
}

TEST(an_error_comes_where_its_batch_would_and_a_seek_ends_it)
{
	struct shard_batch b;
	struct training t;

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	for (uint64_t at = 0; at < 12; at++) {
		STORY("slab %" PRIu64, at);
		open_pool(&t,
			  (struct shard_loader_options){.batch_records = 9,
							.slot_count = 6,
							.order.shuffle = SHARD_SHUFFLE_WINDOWS,
							.order.run_records = 3,
							.order.window_runs = 2,
							.order.lane_count = 4,
							.gpu.pool_bytes = at % 2 ? SHARD_POOL_ALL : dataset_bytes()},
			  at);
		inject.fails = true;
		inject.fail_step = at;
		for (unsigned i = 0; i < 40 && shard_loader_next_device(t.l, t.stream, &b, &err) != SHARD_E_IO; i++)
			CHECK_OK(shard_loader_release_after(t.l, &b, t.stream, &err));
		CHECK(strstr(err.message, "is made to fail"));
		CHECK_EQ(shard_loader_next_device(t.l, t.stream, &b, &err), SHARD_E_IO);
		inject.fails = false;
		wanted_seek(&wanted, 1, 18);
		CHECK_OK(shard_loader_seek(t.l, 1, 18, &err));
		run(&t, calls_of(&t), 1);
		finish(&t);
	}
}

/* ---- memory that was lent; children ---- */

TEST(a_ring_that_was_lent_is_what_slabs_come_through)
{
	struct shard_loader_options o = {.batch_records = 9,
					 .order.shuffle = SHARD_SHUFFLE_WINDOWS,
					 .order.run_records = 3,
					 .order.window_runs = 2,
					 .order.lane_count = 4};
	struct shard_loader_stats s;
	struct training t;
	uint64_t bytes;
	void *memory;

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	o.gpu.pool_bytes = dataset_bytes();
	open_pool(&t, o, 1);
	bytes = shard_loader_ring_bytes(t.l);
	memory = aligned_alloc(4096, bytes);
	CU_OK(cu.cuMemHostRegister(memory, bytes, 1));
	CHECK_EQ(shard_loader_lend(t.l, memory, bytes - 1, &err), SHARD_E_ARGUMENT);
	CHECK_OK(shard_loader_lend(t.l, memory, bytes, &err));
	run(&t, calls_of(&t) + 5, 1);
	train_give_all(&t);
	CHECK_EQ(fake->count("cuMemHostRegister"), 1);
	shard_loader_stats(t.l, &s);
	CHECK_EQ(s.pageable_bytes, 0);
	CHECK_EQ(s.pinned_bytes, bytes);
	CHECK_SOUND_TRAINING();
	close_loader(t.l);
	CU_OK(cu.cuMemHostUnregister(memory));
	trainer_leave(&t);
	free(memory);
	trainer_check_clean();
}

static int next_in_child(struct training *t)
{
	struct shard_batch b;

	if (shard_loader_next_device(t->l, t->stream, &b, &err) != SHARD_E_ARGUMENT ||
	    !strstr(err.message, "this loader belongs to process"))
		return 1;
	if (shard_loader_seek(t->l, 0, 0, &err) != SHARD_E_ARGUMENT ||
	    shard_loader_pin_problem(t->l, &err) != SHARD_END)
		return 2;
	shard_loader_close(t->l);
	return 0;
}

TEST(a_child_can_only_close)
{
	struct training t;
	pid_t pid;

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	open_pool(&t, (struct shard_loader_options){.batch_records = 9, .gpu.pool_bytes = SHARD_POOL_ALL}, 1);
	run(&t, 3, 1);
	if (child_begin(&pid, 20))
		_exit(next_in_child(&t));
	CHECK_EQ(child_end(pid), 0);
	run(&t, 10, 1);
	finish(&t);
}

/* ---- what is refused ---- */

/* A block copies GATHER_PART bytes of a row, and a grid has 65535 blocks in y at most. */
TEST(the_longest_record_is_what_one_grid_reaches)
{
	const uint64_t most = UINT64_C(65535) * GATHER_PART;
	struct shard_schema longer;
	struct pool_plan plan;
	struct layout batch;
	struct training t;

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	open_pool(&t, (struct shard_loader_options){.batch_records = 9, .gpu.pool_bytes = SHARD_POOL_ALL}, 1);
	longer = *t.l->layout.schema;
	batch = t.l->layout;
	batch.schema = &longer;
	longer.group[0].stride = most + 16;
	CHECK_EQ(pool_plan(&plan, &t.l->o, &batch, &t.l->steps, &err), SHARD_E_UNSUPPORTED);
	CHECK_STR(err.message, "a record has 1073725456 bytes; a pool takes records of at most 1073725440");
	longer.group[0].stride = most;
	CHECK_OK(pool_plan(&plan, &t.l->o, &batch, &t.l->steps, &fixture_err));
	finish(&t);
}

TEST(calls_that_are_wrong_are_told_so)
{
	struct shard_loader_options o = {.size = sizeof(o),
					 .batch_records = 9,
					 .order.shuffle = SHARD_SHUFFLE_WINDOWS,
					 .order.run_records = 3,
					 .order.window_runs = 2,
					 .order.lane_count = 4,
					 .gpu.pool_bytes = 100000};
	struct shard_loader *l;
	struct shard_batch b;
	struct training t;

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	CHECK_EQ(shard_loader_open(&l, ds, &o, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message,
		  "options: gpu.pool_bytes is 100000; with these windows and batches a pool needs 638976, or "
		  "2236416 to hold the whole dataset");
	o.gpu.pool_bytes = SHARD_POOL_ALL;
	open_pool(&t, o, 0);
	CHECK_EQ(shard_loader_next(t.l, &b, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "this loader has a pool on a GPU and delivers batches there, with "
			       "shard_loader_next_device(); open another loader for batches in host memory");
	CHECK_EQ(shard_loader_wait(t.l, 0, &err), SHARD_OK);
	run(&t, 5, 0);
	CHECK_OK(shard_loader_wait(t.l, UINT64_MAX, &err));
	run(&t, 5, 0);
	finish(&t);
	open_pool(&t, o, 0);
	fake->fail("cuMemAlloc", 2, 2); /* the pool's */
	CHECK_EQ(shard_loader_next_device(t.l, t.stream, &b, &err), SHARD_E_DEVICE);
	CHECK(strstr(err.message,
		     "of 24576.0 MiB are free (take the first batch before a framework fills the GPU, give "
		     "back what it keeps with torch.cuda.empty_cache(), or "));
	CHECK(strstr(err.message, "a smaller pool): CUDA_ERROR_OUT_OF_MEMORY (out of memory)"));
	training_close(&t);
	trainer_check_clean();
}

TEST_MAIN()
