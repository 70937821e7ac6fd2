/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_pool_in_place.c - batches whose large groups stay in the pool: the right rows for as long as
 * they are lent, and no longer
 *
 * A batch is looked at by the GPU when it comes and once more when it goes back, as late as its
 * trainer may.  That these tests would see a pool that is wrong, t_pool_broken shows; what
 * transforming makes of such batches is t_pool_transform's.
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=mem_alloc,--wrap=mem_zalloc,--wrap=mem_array
 * LDFLAGS: -Wl,--wrap=mem_aligned
 * TIMEOUT: 600
 */
#include "shard_gpu.h"
#include "tests/child.h"
#include "tests/cuda/counted.h"
#include "tests/cuda/pooling.h"

static struct shard_error err;

/* Bands of 6 records. */
static const struct shard_loader_options small_windows = {.batch_records = 5,
							  .shuffle = SHARD_SHUFFLE_WINDOWS,
							  .run_records = 3,
							  .window_runs = 1,
							  .lane_count = 2,
							  .pool_in_place = 1};

/*
 * Bands of 24, and few records in a batch: it seldom lies in two bands, and a pool has room for
 * that seldom enough.
 */
#define WIDE 24
static const struct shard_loader_options wide_windows = {.batch_records = 2,
							 .shuffle = SHARD_SHUFFLE_WINDOWS,
							 .run_records = 3,
							 .window_runs = 2,
							 .lane_count = 4,
							 .device_slot_count = 4,
							 .pool_in_place = 1};

/* ---- a trainer that keeps batches ---- */

static unsigned refused; /* calls of next, for want of room */

/*
 * The next one is lent behind the others.  ARGUMENT: it has no room, which was told at once, and by
 * wait as well.
 */
static int take(struct training *t)
{
	struct shard_batch *b = &t->lent.batch[t->lent.count];
	int rc = shard_loader_next_device(t->l, t->stream, b, &err);

	if (rc == SHARD_E_ARGUMENT && strstr(err.message, "the pool has no room for the next batch: ")) {
		CHECK_OK(shard_loader_wait(t->l, 60 * UINT64_C(1000000000), &err));
		refused++;
		return rc;
	}
	if (check_next(&wanted, b, rc, &err)) {
		launch_look(t, b, false);
		t->lent.count++;
	}
	return rc;
}

/* Looked at once more, and given back. */
static void give(struct training *t, unsigned which)
{
	struct shard_batch b = t->lent.batch[which];

	launch_look(t, &b, false);
	if (shard_loader_release_after(t->l, &b, t->stream, &err))
		complain(&wanted, "release_after: %s", err.message);
	t->lent.count--;
	memmove(&t->lent.batch[which], &t->lent.batch[which + 1], (t->lent.count - which) * sizeof(b));
}

/*
 * So many calls, with all slots lent but when the next one is asked for; `which` one goes back, or
 * the oldest in its place.
 */
static void keep_all(struct training *t, unsigned calls, unsigned (*which)(struct training *t))
{
	for (unsigned i = 0; i < calls && !wanted.complaint[0]; i++) {
		if (i % (LOOKS / 4) == 0)
			fake->settle();
		if (take(t) == SHARD_E_ARGUMENT)
			give(t, 0);
		else if (t->lent.count == t->l->o.device_slot_count) {
			CHECK_EQ(shard_loader_next_device(t->l, t->stream, &t->lent.batch[t->lent.count], &err),
				 steps_left(&wanted) ? SHARD_E_ARGUMENT : SHARD_END);
			if (!steps_left(&wanted))
				wanted_seek(&wanted, wanted.epoch + 1, 0);
			else
				CHECK(strstr(err.message, "slots of the device; release a batch"));
			give(t, which(t));
		}
	}
}

static unsigned oldest(struct training *t)
{
	(void)t;
	return 0;
}

static unsigned newest(struct training *t)
{
	return t->lent.count - 1;
}

static unsigned any(struct training *t)
{
	return (unsigned)prng_below(&t->p, t->lent.count);
}

static void end(struct training *t)
{
	while (t->lent.count)
		give(t, 0);
	fake->settle();
	finish(t);
}

/* ---- datasets ---- */

/*
 * Images of 40, 37 and 8: the last are small, and gathered, as are labels; or all is large, and
 * nothing gathered.
 */
static void open_kind(unsigned kind)
{
	if (kind == 3)
		open_large_photos();
	else
		open_photos((uint32_t[]){40, 37, 8}[kind], kind ? SHARD_LZ4 : SHARD_RAW, shards, COUNT(shards));
}

/*
 * One of many rounds, of any shape, in the smallest pool for that; `each` of them have one kind of
 * dataset.
 */
static struct shard_loader_options open_round(struct training *t, struct prng *p, unsigned round, unsigned each)
{
	struct shard_loader_options o = any_in_place(p, round);

	if (round % each == 0)
		open_kind(round / each);
	tell_round(round, &o);
	o.pool_bytes = least_pool(o);
	open_pool(t, o, round);
	return o;
}

/* ---- the right rows, and never a batch that cannot come ---- */

TEST(the_smallest_pool_has_room_for_all_slots_in_their_order)
{
	struct prng p = {7};
	struct training t;
	unsigned parts = 0;

	for (unsigned round = 0; round < 48; round++) {
		open_round(&t, &p, round, 12);
		parts += !t.l->pool->plan.is_held;
		refused = 0;
		keep_all(&t, 2 * calls_of(&t) + 5, oldest);
		CHECK_EQ(refused, 0);
		end(&t);
	}
	CHECK(parts >= 30);
}

/* Which one goes back makes no difference to what comes. */
TEST(batches_go_back_in_any_order)
{
	unsigned (*const which[])(struct training * t) = {any, newest};
	struct prng p = {8};
	struct training t;

	for (unsigned round = 0; round < 24; round++) {
		struct shard_loader_options o = open_round(&t, &p, round, 6);
		uint64_t ample;

		keep_all(&t, calls_of(&t), which[round % 2]); /* some may have to go back first */
		ample = t.l->pool->plan.is_held ? o.pool_bytes : t.l->pool->plan.ample_bytes;
		end(&t);
		o.pool_bytes = ample > o.pool_bytes ? ample : o.pool_bytes;
		open_pool(&t, o, round);
		refused = 0;
		keep_all(&t, calls_of(&t), which[round % 2]);
		CHECK_EQ(refused, 0);
		end(&t);
	}
}

/* The oldest is kept for epochs, and its slabs with it; the others go round in what is left. */
TEST(one_batch_is_kept_and_the_others_go_on)
{
	struct shard_loader_options o = small_windows;
	struct training t;

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	for (unsigned seed = 0; seed < 6; seed++) {
		STORY("seed %u", seed);
		o.seed = seed;
		o.device_slot_count = 3;
		o.pool_bytes = least_pool(o);
		open_pool(&t, o, seed);
		o.pool_bytes = t.l->pool->plan.ample_bytes;
		CHECK(o.pool_bytes < dataset_bytes());
		training_close(&t);
		open_pool(&t, o, seed);
		refused = 0;
		while (!t.lent.count)
			take(&t);
		for (unsigned i = 0; i < 3 * calls_of(&t); i++) {
			if (take(&t) == SHARD_OK)
				give(&t, 1);
			if (i % (LOOKS / 4) == 0)
				fake->settle();
		}
		CHECK_EQ(refused, 0);
		end(&t);
	}
}

/* ---- moving about ---- */

/* To where a batch is in two bands: more than one of these the smallest pool has no room for. */
TEST(seeks_with_batches_lent)
{
	struct training t;
	struct prng p = {3};
	unsigned times = 0;

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	for (unsigned seed = 0; seed < 18; seed++) {
		struct shard_loader_options o = wide_windows;

		STORY("seed %u", seed);
		o.seed = seed;
		o.tail = seed % 3;
		o.pool_bytes = seed % 6 == 5 ? SHARD_POOL_ALL : least_pool(o);
		if (seed % 6 == 4) {
			open_pool(&t, o, seed);
			o.pool_bytes = t.l->pool->plan.ample_bytes;
			training_close(&t);
		}
		open_pool(&t, o, seed);
		refused = 0;
		for (unsigned i = 0; i < 16; i++) {
			uint64_t epoch = prng_below(&p, 4),
				 position = WIDE * (1 + prng_below(&p, TOTAL / WIDE - 1)) - 1;

			wanted_seek(&wanted, epoch, position);
			CHECK_OK(shard_loader_seek(t.l, epoch, position, &err));
			keep_all(&t, 1 + (unsigned)prng_below(&p, 3), any);
			fake->settle();
		}
		CHECK(seed % 6 < 4 || !refused);
		times += refused;
		end(&t);
	}
	CHECK(times > 20);
}

TEST(a_token_of_another_order_waits_until_all_batches_are_back)
{
	struct shard_loader_options o = small_windows, same;
	char token[SHARD_TOKEN_BYTES];
	struct training t;

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	for (unsigned seed = 0; seed < 8; seed++) {
		STORY("seed %u", seed);
		o = small_windows;
		o.pool_bytes = seed % 2 ? SHARD_POOL_ALL : dataset_bytes();
		open_pool(&t, o, seed);
		keep_all(&t, 9, any);
		shard_loader_token(t.l, token);
		wanted_seek(&wanted, 2, 40);
		CHECK_OK(shard_loader_seek(t.l, 2, 40, &err));
		keep_all(&t, 5, any);
		wanted_seek(&wanted, 0, 45);
		CHECK_OK(shard_loader_resume(t.l, token, &err)); /* the same order: batches stay lent */
		keep_all(&t, 5, any);
		end(&t);
		same = o;
		o.shuffle = o.run_records = o.window_runs = o.lane_count = 0;
		o.pool_bytes = SHARD_POOL_ALL;
		open_pool(&t, o, seed);
		keep_all(&t, 7, any);
		CHECK_EQ(shard_loader_resume(t.l, token, &err), SHARD_E_ARGUMENT);
		CHECK(strstr(err.message, "batches in the pool, and the token's order needs a new pool"));
		keep_all(&t, 3, any); /* nothing has changed */
		fake->settle();
		fake->seed(seed, 200000); /* and only what looks at them */
		while (t.lent.count)
			give(&t, 0);
		CHECK_OK(shard_loader_resume(t.l, token, &err)); /* waits for what still looks at them */
		fake->seed(seed, 500);
		wanted_open(&wanted, same);
		gpu = wanted;
		wanted_seek(&wanted, 0, 45);
		keep_all(&t, 20, any);
		end(&t);
	}
}

TEST(an_error_comes_where_its_batch_would_and_a_seek_ends_it)
{
	struct shard_loader_options o = small_windows;
	struct shard_batch b;
	struct training t;
	int rc = SHARD_OK;

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	for (uint64_t at = 0; at < 12; at++) {
		STORY("slab %" PRIu64, at);
		o.pool_bytes = at % 2 ? SHARD_POOL_ALL : least_pool(o);
		open_pool(&t, o, at);
		inject.fails = true;
		inject.fail_step = at;
		for (unsigned i = 0; i < 80 && (rc = take(&t)) != SHARD_E_IO && !wanted.complaint[0]; i++) {
			if (t.lent.count == 3 || rc == SHARD_E_ARGUMENT)
				give(&t, 0);
			if (i % (LOOKS / 4) == 0)
				fake->settle();
		}
		CHECK(strstr(wanted.complaint, "is made to fail"));
		CHECK_EQ(shard_loader_next_device(t.l, t.stream, &b, &err), SHARD_E_IO);
		wanted.complaint[0] = 0;
		inject.fails = false;
		wanted_seek(&wanted, 1, 20);
		CHECK_OK(shard_loader_seek(t.l, 1, 20, &err)); /* with batches lent */
		keep_all(&t, calls_of(&t), oldest);
		end(&t);
	}
}

/* ---- what it costs ---- */

static const char *const waiting[] = {"cu*Synchronize", "cuMemAlloc",	  "cuMemFree",
				      "cuEventCreate",	"cuStreamCreate", "cuMemHostRegister",
				      "cuStreamQuery",	"cuEventQuery",	  "cuModuleLoadDataEx"};

TEST(once_it_runs_nothing_is_allocated_and_nobody_waits)
{
	struct training t;

	for (unsigned seed = 0; seed < 8; seed++) {
		struct shard_loader_options o = small_windows;
		uint64_t before[COUNT(waiting)], copies, launches, waits, steps, slabs;

		STORY("seed %u", seed);
		open_kind(seed < 4 ? 0 : 3);
		o.thread_count = 2;
		o.pool_bytes = seed % 2 ? SHARD_POOL_ALL : least_pool(o);
		open_pool(&t, o, seed);
		keep_all(&t, calls_of(&t) + 8, oldest);
		atomic_store(&allocated, 0);
		for (size_t i = 0; i < COUNT(waiting); i++)
			before[i] = fake->count(waiting[i]);
		copies = fake->count("cuMemcpyHtoDAsync");
		launches = fake->count("cuLaunchKernel");
		waits = fake->count("cuStreamWaitEvent");
		keep_all(&t, calls_of(&t), oldest);
		CHECK_EQ(atomic_load(&allocated), 0);
		for (size_t i = 0; i < COUNT(waiting); i++) {
			STORY("seed %u: %s", seed, waiting[i]);
			CHECK_EQ(fake->count(waiting[i]), before[i]);
		}
		steps = calls_of(&t) - 1;
		slabs = seed % 2 ? 0 : t.l->pool->plan.epoch_slabs + t.l->pool->plan.slab_count;
		/* the trainer's two, and one where there are small groups */
		launches = fake->count("cuLaunchKernel") - launches;
		CHECK(launches >= (seed < 4 ? 3 : 2) * (steps - 4) && launches <= (seed < 4 ? 3 : 2) * (steps + 4));
		/* one a group and slab, but for what was and is ahead */
		copies = fake->count("cuMemcpyHtoDAsync") - copies;
		CHECK(copies <= 2 * slabs && (seed % 2 || copies >= t.l->pool->plan.epoch_slabs));
		/* for a batch, and when it came back; for a slab three times */
		waits = fake->count("cuStreamWaitEvent") - waits;
		CHECK(waits <= 2 * (steps + 4) + 3 * slabs);
		end(&t);
	}
}

/*
 * What a pool of everything holds is copied once, and batches take no memory of the GPU but for
 * small groups.
 */
TEST(a_dataset_that_is_held_is_copied_once_and_lies_there_once)
{
	struct training t;

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	for (unsigned round = 0; round < 12; round++) {
		struct shard_loader_options o = all_in_pool(round);
		struct shard_loader_stats before, after;

		STORY("round %u", round);
		o.pool_in_place = 1;
		open_pool(&t, o, round);
		CHECK(t.l->pool->plan.is_held);
		CHECK_EQ(t.l->layout.slot_bytes, 2 * 4096); /* labels and weights */
		keep_all(&t, 2 * calls_of(&t), any);
		shard_loader_stats(t.l, &before);
		keep_all(&t, 2 * calls_of(&t), any);
		shard_loader_stats(t.l, &after);
		CHECK(before.device_bytes >= TOTAL * t.l->layout.record_bytes);
		CHECK_EQ(after.device_bytes, before.device_bytes);
		end(&t);
	}
}

/* ---- what is refused, and ends ---- */

TEST(calls_that_are_wrong_are_told_so)
{
	struct shard_loader_options o = small_windows;
	struct shard_loader *l;
	struct shard_batch b;
	struct training t;

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	o.size = sizeof(o);
	CHECK_EQ(shard_loader_open(&l, ds, &o, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "options: pool_in_place is 1 and pool_bytes 0; pool_in_place must be 0 or 1, and "
			       "0 if pool_bytes is 0");
	o.pool_bytes = 100000;
	o.pool_in_place = 2;
	CHECK_EQ(shard_loader_open(&l, ds, &o, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "options: pool_in_place is 2 and pool_bytes 100000; pool_in_place must be 0 or 1, and "
			       "0 if pool_bytes is 0");
	o.pool_in_place = 1;
	CHECK_EQ(shard_loader_open(&l, ds, &o, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "options: pool_bytes is 100000; with these windows and batches a pool needs 430080, or "
			       "2609152 to hold the whole dataset");
	o.pool_bytes = least_pool(o);
	o = wide_windows;
	o.pool_bytes = least_pool(o);
	open_pool(&t, o, 0);
	for (unsigned i = 0; i < 2; i++) {
		wanted_seek(&wanted, 0, WIDE * (1 + 2 * i) - 1);
		CHECK_OK(shard_loader_seek(t.l, 0, WIDE * (1 + 2 * i) - 1, &err));
		CHECK_EQ(take(&t), i ? SHARD_E_ARGUMENT : SHARD_OK);
	}
	CHECK_EQ(shard_loader_next_device(t.l, t.stream, &b, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "the pool has no room for the next batch: the 1 batches that the caller holds occupy "
			       "16 of its 26 slabs; release one, or open with pool_bytes of 2093056, which always "
			       "has room");
	give(&t, 0);
	CHECK_EQ(take(&t), SHARD_OK);
	end(&t);
}

static int close_in_child(struct training *t)
{
	shard_loader_close(t->l);
	return 0;
}

TEST(closed_with_batches_lent_and_by_a_child)
{
	struct shard_loader_options o = small_windows;
	struct training t;
	pid_t pid;

	open_photos(40, SHARD_RAW, shards, COUNT(shards));
	for (unsigned seed = 0; seed < 8; seed++) {
		STORY("seed %u", seed);
		o.pool_bytes = seed % 2 ? SHARD_POOL_ALL : least_pool(o);
		open_pool(&t, o, seed);
		keep_all(&t, 12, oldest);
		fake->settle();
		if (seed == 0) {
			if (child_begin(&pid, 20))
				_exit(close_in_child(&t));
			CHECK_EQ(child_end(pid), 0);
			keep_all(&t, 5, oldest);
		}
		fake->seed(seed, 3000);
		while (t.lent.count > 1)
			give(&t, 0); /* what still looks at them is waited for */
		fake->settle();
		t.lent.count = 0;
		CHECK_SOUND_TRAINING();
		training_close(&t);
		trainer_check_clean();
	}
}

TEST_MAIN()
