/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_check_runs.c - a GPU that is not there checks the units of runs that come to a pool: a slab is used
 * when its check has come back, and damage is what it is in host memory
 *
 * All records of a shard are page-locked at once, when the first of them is needed, except where a test
 * has shorter pieces.
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=cuda_map_least_bytes,--wrap=cuda_event_ask
 * LDFLAGS: -Wl,--wrap=batch_check_finish,--wrap=cuda_alloc,--wrap=cuda_map_piece_bytes
 */
#include "shard_gpu.h"
#include "tests/child.h"
#include "tests/cuda/checking.h"
#include "tests/cuda/runs.h"
#include "tests/cuda/strange.h"

#define PENDING	  (-1) /* next has not returned */
#define A_SECOND  UINT64_C(1000000000)
#define ALL_CALLS UINT_MAX

#if defined(__SANITIZE_THREAD__)
#define ROUNDS 24 /* it is slow */
#define NTHS   2u
#else
#define ROUNDS 80
#define NTHS   8u
#endif

static struct shard_error err;

static uint64_t piece_bytes; /* 0: a shard is one piece */

uint64_t __real_cuda_map_piece_bytes(void);
uint64_t __wrap_cuda_map_piece_bytes(void);

uint64_t __wrap_cuda_map_piece_bytes(void)
{
	return piece_bytes ? piece_bytes : __real_cuda_map_piece_bytes();
}

/* ---- loaders ---- */

static void reopen_as(uint32_t check)
{
	reopen(&(struct shard_dataset_options){.size = sizeof(struct shard_dataset_options), .check = check});
}

static void open_checked(struct runs *r, struct shard_loader_options o, uint64_t seed)
{
	o.repair.corrupt_most = o.repair.corrupt_most ? o.repair.corrupt_most : UINT64_MAX;
	open_runs(r, o, seed);
	strange_open();
	begin_checked(r->maps.l, r->maps.stream);
}

static void close_checked(struct runs *r)
{
	train_give_all(&r->maps);
	shard_loader_close(r->ring);
	shard_loader_close(r->host);
	training_close(&r->maps);
	trainer_check_clean();
}

static const char *compare(struct runs *r, unsigned calls, int *failed)
{
	return compare_runs(r, calls, r->maps.l->layout.fields, failed, &err);
}

/* Damage a record of a group in its file, or repair what was damaged so. */
static void hit(uint32_t group, uint64_t record)
{
	uint64_t shard = dataset_shard_of(ds, record);
	uint64_t at = (record - ds->first_record[shard]) * schema.group[group].stride;

	damage_record(&folder, (unsigned)shard, group, at + schema.group[group].stride / 2);
}

/* Runs of 6 records, of which units have 3 or 2; the batch is put together from 4 slabs at most. */
static struct shard_loader_options sixes(void)
{
	return (struct shard_loader_options){.batch_records = 5,
					     .order.shuffle = SHARD_SHUFFLE_WINDOWS,
					     .order.run_records = 6,
					     .order.window_runs = 1,
					     .order.lane_count = 2,
					     .thread_count = 1};
}

static void open_sixes(uint32_t check)
{
	open_lines(200, 4, 3);
	reopen_as(check);
}

/* ---- waiting ---- */

/* Takes batches, and gives them back.  Returns the first status that is an error. */
static int take_some(struct runs *r, unsigned calls)
{
	struct shard_batch b;
	int rc = SHARD_OK;

	while (calls-- && (!rc || rc == SHARD_END)) {
		rc = shard_loader_next_device(r->maps.l, r->maps.stream, &b, &err);
		if (!rc)
			CHECK_OK(shard_loader_release_after(r->maps.l, &b, r->maps.stream, &fixture_err));
	}
	return rc == SHARD_END ? SHARD_OK : rc;
}

/* Waits for each batch, as long as it takes.  Returns the status of next that ends this. */
static int wait_for_all(struct runs *r, unsigned calls)
{
	int rc = SHARD_OK;

	while (calls-- && !rc) {
		CHECK_OK(shard_loader_wait(r->maps.l, UINT64_MAX, &err));
		rc = take_some(r, 1);
	}
	return rc;
}

/*
 * In a child, because it would be for ever.  A process has one driver, so this is the first test, and
 * its children start theirs.
 */
TEST(a_wait_ends_at_a_damaged_slab)
{
	for (int by_cpu = 0; by_cpu < 2; by_cpu++) {
		struct runs r;
		pid_t pid;

		STORY("found by %s", by_cpu ? "a thread" : "the GPU");
		open_lines(200, 4, 3);
		hit(0, 40);
		if (child_begin(&pid, 60)) {
			reopen_as(by_cpu ? SHARD_CHECK_FIRST : SHARD_CHECK_DEVICE);
			open_checked(&r, sixes(), 0);
			CHECK_EQ(wait_for_all(&r, ALL_CALLS), SHARD_E_CORRUPT);
			CHECK_EQ(atomic_load(&damaged_count) > 0, !by_cpu);
			CHECK_OK(shard_loader_wait(r.maps.l, UINT64_MAX, &err));
			close_checked(&r);
			_exit(0);
		}
		CHECK_EQ(child_end(pid), 0);
	}
	drop_dataset();
}

TEST(a_wait_for_a_check_has_a_limit)
{
	struct runs r;

	open_sixes(SHARD_CHECK_DEVICE);
	open_checked(&r, sixes(), 0);
	fake->settle();
	fake->hold(1);
	for (uint64_t ns = 0; ns <= A_SECOND / 10; ns += A_SECOND / 20)
		CHECK_EQ(shard_loader_wait(r.maps.l, ns, &err), SHARD_E_TIMEOUT);
	fake->hold(0);
	CHECK_OK(shard_loader_wait(r.maps.l, UINT64_MAX, &err));
	CHECK_EQ(stats_of(&r.maps).check_wait_count, 0);
	CHECK_EQ(wait_for_all(&r, 2 * calls_of(&r.maps)), SHARD_OK);
	close_checked(&r);
	drop_dataset();
}

/* ---- damage ---- */

/* Any runs and windows, of any records and units. */
static struct shard_loader_options any_runs(struct prng *p, unsigned round)
{
	struct shard_loader_options o = any_windows(p, round);

	o.batch_records += 4;
	if (round % 8 == 7) {
		o.order.shuffle = round % 16 == 7 ? SHARD_SEQUENTIAL : SHARD_SHUFFLE_GLOBAL;
		o.order.run_records = o.order.window_runs = o.order.lane_count = 0;
		return o;
	}
	o.order.run_records = 1 + prng_below(p, round % 3 ? 20 : 4);
	o.order.window_runs = 1 + (uint32_t)prng_below(p, round % 3 ? 2 : 12);
	o.order.phase_unit_records = round % 4 == 1 ? 1 : 0;
	return o;
}

TEST(damage_in_runs_is_what_it_is_in_host_memory)
{
	static const uint32_t units[] = {1, 2, 3, 4, 8, 0}, widths[] = {21, 64, 200, 333, 1300};
	unsigned fed = 0, checked = 0, several = 0, found = 0, stopped = 0, of_many_runs = 0;
	struct prng p = {4};

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct shard_loader_options o = any_runs(&p, round);
		uint32_t unit = units[prng_below(&p, COUNT(units))];
		struct shard_selection *selection = NULL;
		bool shows = true;
		struct shard_error why;
		struct runs r;
		int failed;

		open_lines(widths[round % 5], 3 + round % 2, unit);
		if (round % 4 == 2) { /* of labels, too, and of another number */
			drop_dataset();
			schema.group[1].unit_records = 1 + round % 5;
			make_dataset("lines", shards, COUNT(shards));
		}
		for (unsigned i = 0; i < 1 + round % 4; i++)
			hit(prng_below(&p, 4) == 0, prng_below(&p, TOTAL));
		reopen_as(round / 3 % 2 ? SHARD_CHECK_DEVICE : SHARD_CHECK_ALWAYS);
		o.fields = round % 7 == 6 ? 5 : 7;
		if (round % 9 == 8) {
			CHECK_OK(shard_select_fraction(&selection, ds, NULL, 0, 0.9, 11, &fixture_err));
			o.selection = selection;
			shows = false; /* it may have none of these */
		}
		tell_round(round, &o);
		piece_bytes = round % 3 ? 0 : (5 + prng_below(&p, 20)) * schema.group[0].stride;
		open_checked(&r, o, round);
		shows &= o.world <= 1 && o.fields == 7;
		CHECK_STR(compare(&r, 2 * calls_of(&r.maps), &failed), "");
		CHECK(!failed || o.repair.on_corrupt == SHARD_CORRUPT_FAIL);
		CHECK(!shows || (failed == SHARD_E_CORRUPT) == (o.repair.on_corrupt == SHARD_CORRUPT_FAIL));
		CHECK_EQ(stats_of(&r.maps).recopied_count, 0);
		CHECK_EQ(shard_loader_pin_problem(r.maps.l, &why), SHARD_END);
		if (failed) { /* again and again, until somebody moves it */
			CHECK_STR(compare(&r, 1, &failed), "");
			CHECK_EQ(failed, SHARD_E_CORRUPT);
			for (int i = 0; i < 3; i++)
				CHECK_OK(
					shard_loader_seek(i ? i == 1 ? r.ring : r.host : r.maps.l, 1, 0, &fixture_err));
			CHECK_STR(compare(&r, 3, &failed), "");
		}
		fed += stats_of(&r.maps).cached_bytes > 0;
		checked += stats_of(&r.maps).device_checked_count > 0;
		several += stats_of(&r.maps).device_checked_count > 0 && unit > 1;
		found += atomic_load(&damaged_count) > 0;
		stopped += atomic_load(&damaged_count) > 0 && failed;
		of_many_runs += !r.is_held && r.maps.l->pool->plan.slab_rows > 2 * o.order.run_records;
		close_checked(&r);
		shard_selection_close(selection);
	}
	CHECK(fed > ROUNDS / 2);
	CHECK(checked > ROUNDS / 3);
	CHECK(several > ROUNDS / 6);
	CHECK(found > ROUNDS / 6);
	CHECK(stopped > ROUNDS / 40);
	CHECK(of_many_runs > ROUNDS / 20);
	piece_bytes = 0;
	drop_dataset();
}

/* Records of a unit come out of the page cache and out of the ring: some pieces cannot be page-locked. */
TEST(units_that_are_page_locked_in_part)
{
	unsigned checked = 0, limited = 0;

	for (unsigned round = 0; round < 12; round++) {
		struct shard_loader_options o = sixes();
		struct shard_error why;
		struct runs r;
		int failed;

		STORY("round %u", round);
		open_lines(333, 4, 8);
		if (round % 3 == 2)
			hit(0, 40);
		reopen_as(round % 2 ? SHARD_CHECK_ALWAYS : SHARD_CHECK_DEVICE);
		o.fields = 1 << PHOTO_IMAGE;
		o.order.run_records = 16;
		o.order.lane_count = 1;
		o.order.seed = round;
		o.repair.on_corrupt = SHARD_CORRUPT_MASK;
		o.gpu.pin_most = (2 + round / 3) * UINT64_C(24576);
		piece_bytes = 20 * schema.group[0].stride;
		open_checked(&r, o, round);
		CHECK(!r.is_held);
		CHECK_STR(compare(&r, 4 * calls_of(&r.maps), &failed), "");
		CHECK_EQ(failed, SHARD_OK);
		CHECK_EQ(stats_of(&r.maps).recopied_count, 0);
		CHECK(round % 3 == 2 || !atomic_load(&damaged_count));
		checked += stats_of(&r.maps).device_checked_count > 0;
		limited += !shard_loader_pin_problem(r.maps.l, &why) && strstr(why.message, "gpu.pin_most is reached");
		close_checked(&r);
	}
	CHECK(checked > 6);
	CHECK(limited > 6);
	piece_bytes = 0;
	drop_dataset();
}

/* Which rows are counted, in which slab, and what the error says. */
TEST(rows_of_slabs_count_as_others_do)
{
	unsigned stopped = 0, rounds = 0;

	for (uint64_t most = 1; most < 500; most = most * 2 + most % 3) {
		struct shard_loader_options o = sixes();
		struct runs r;
		int failed;

		STORY("%" PRIu64 " rows at most", most);
		open_lines(200, 4, 3);
		drop_dataset();
		schema.group[1].unit_records = 1;
		make_dataset("lines", shards, COUNT(shards));
		for (uint64_t record = 2; record < TOTAL; record += 15)
			hit(record % 4 == 0, record);
		reopen_as(SHARD_CHECK_ALWAYS);
		o.repair = (struct shard_loader_repair){.on_corrupt = 1 + most % 2, .corrupt_most = most};
		open_checked(&r, o, most);
		CHECK_STR(compare(&r, 2 * calls_of(&r.maps), &failed), "");
		CHECK(atomic_load(&damaged_count) > 0);
		stopped += failed == SHARD_E_CORRUPT;
		rounds++;
		close_checked(&r);
	}
	CHECK(stopped >= 3 && stopped < rounds);
	drop_dataset();
}

/*
 * A thread finds a damaged label, and repairs its row.  The unit of its image lies in the slab, with a
 * row of something else.
 */
TEST(a_unit_of_which_a_thread_has_repaired_a_row)
{
	for (unsigned round = 0; round < 8; round++) {
		struct shard_loader_options o = sixes();
		struct runs r;
		int failed;

		STORY("round %u", round);
		open_lines(200, 3, 3);
		drop_dataset();
		schema.group[1].unit_records = 1;
		make_dataset("lines", shards, COUNT(shards));
		hit(1, 40);
		if (round / 2 % 2) /* another row of its unit */
			hit(1, 41);
		if (round / 4) /* the same unit is damaged, too */
			hit(0, 39);
		reopen_as(round / 2 % 2 ? SHARD_CHECK_ALWAYS : SHARD_CHECK_DEVICE);
		o.repair = (struct shard_loader_repair){.on_corrupt = 1 + round % 2, .corrupt_most = round / 4 ? 3 : 2};
		open_checked(&r, o, round);
		CHECK_STR(compare(&r, 2 * calls_of(&r.maps), &failed), "");
		CHECK_EQ(failed, SHARD_OK);
		CHECK_EQ(stats_of(&r.maps).recopied_count, 0);
		CHECK_EQ(atomic_load(&damaged_count), 0);
		close_checked(&r);
	}
	drop_dataset();
}

/* What was sound when a CPU saw it: each slab is checked when it comes, in each epoch. */
TEST(what_is_changed_later_is_found_when_its_run_comes_again)
{
	struct shard_loader_options o = sixes();
	struct shard_loader_stats before, s;
	struct runs r;
	int failed;

	open_sixes(SHARD_CHECK_DEVICE);
	o.repair.on_corrupt = SHARD_CORRUPT_MASK;
	open_checked(&r, o, 0);
	CHECK_STR(compare(&r, 2 * calls_of(&r.maps), &failed), "");
	CHECK_EQ(atomic_load(&damaged_count), 0);
	before = stats_of(&r.maps);
	CHECK(before.device_checked_count > TOTAL / 3);
	hit(0, 40);
	CHECK_OK(shard_loader_seek(r.maps.l, 2, 0, &fixture_err));
	for (unsigned i = 0; i < calls_of(&r.maps); i++) {
		struct shard_batch b;
		int rc = shard_loader_next_device(r.maps.l, r.maps.stream, &b, &err);

		for (uint32_t row = 0; !rc && row < b.record_count; row++)
			CHECK_EQ(!!(b.row_flags[row] & SHARD_ROW_MASKED), b.record[row] >= 39 && b.record[row] < 42);
		if (!rc)
			CHECK_OK(shard_loader_release_after(r.maps.l, &b, r.maps.stream, &fixture_err));
	}
	s = stats_of(&r.maps);
	CHECK(atomic_load(&damaged_count) > 0);
	CHECK_EQ(s.masked_count % 3, 0);
	CHECK(s.masked_count > 0);
	close_checked(&r);
	drop_dataset();
}

/* A job goes on where a token says, with the same order in another pool. */
TEST(a_resumed_job_sees_what_it_would_have_seen)
{
	char token[SHARD_TOKEN_BYTES];

	for (unsigned seed = 0; seed < 6; seed++) {
		struct shard_loader_options o = sixes();
		struct runs r;
		int failed;

		STORY("seed %u", seed);
		open_sixes(SHARD_CHECK_ALWAYS);
		hit(0, 40);
		hit(0, 200);
		reopen_as(SHARD_CHECK_ALWAYS);
		o.repair.on_corrupt = 1 + seed % 2;
		o.order.seed = seed;
		open_checked(&r, o, seed);
		CHECK_STR(compare(&r, 11 + 9 * seed, &failed), "");
		shard_loader_token(r.maps.l, token);
		CHECK_STR(compare(&r, 30, &failed), "");
		CHECK_OK(shard_loader_resume(r.maps.l, token, &fixture_err));
		CHECK_OK(shard_loader_resume(r.ring, token, &fixture_err));
		CHECK_OK(shard_loader_resume(r.host, token, &fixture_err));
		CHECK_STR(compare(&r, 2 * calls_of(&r.maps), &failed), "");
		close_checked(&r);
		/* Another process, which takes the windows from the token. */
		o.order = (struct shard_loader_order){.seed = seed};
		open_checked(&r, o, seed + 1);
		CHECK_OK(shard_loader_resume(r.maps.l, token, &fixture_err));
		CHECK_OK(shard_loader_resume(r.ring, token, &fixture_err));
		CHECK_OK(shard_loader_resume(r.host, token, &fixture_err));
		CHECK_STR(compare(&r, 2 * calls_of(&r.maps), &failed), "");
		CHECK(stats_of(&r.maps).substituted_count + stats_of(&r.maps).masked_count > 0);
		close_checked(&r);
	}
	drop_dataset();
}

/* ---- faults of the GPU ---- */

TEST(a_slab_that_arrives_damaged_is_copied_again)
{
	for (uint32_t how = SHARD_CORRUPT_FAIL; how <= SHARD_CORRUPT_MASK; how++)
		for (unsigned nth = 1; nth <= 9; nth += 4) {
			struct shard_loader_options o = sixes();
			struct runs r;
			int failed;

			STORY("on_corrupt %u, launch %u", how, nth);
			open_sixes(SHARD_CHECK_DEVICE);
			o.repair.on_corrupt = how;
			open_checked(&r, o, how);
			fake->settle();
			be_strange(FLIPS, nth, nth + 1, 1);
			CHECK_STR(compare(&r, 2 * calls_of(&r.maps), &failed), "");
			CHECK_EQ(failed, SHARD_OK);
			CHECK(atomic_load(&damaged_count) == 1);
			CHECK(stats_of(&r.maps).recopied_count % 3 == 0 && stats_of(&r.maps).recopied_count > 0);
			CHECK_EQ(stats_of(&r.maps).substituted_count + stats_of(&r.maps).masked_count, 0);
			close_checked(&r);
		}
	drop_dataset();
}

/* The GPU is as it should be again. */
static void end_after_failure(struct runs *r)
{
	int failed;

	fake->settle(); /* kernels of later slabs look at what is strange */
	be_strange(FLIPS, 0, 0, 0);
	for (int i = 0; i < 3; i++)
		CHECK_OK(shard_loader_seek(i ? i == 1 ? r->ring : r->host : r->maps.l, 1, 0, &fixture_err));
	CHECK_STR(compare(r, calls_of(&r->maps), &failed), "");
	CHECK_EQ(failed, SHARD_OK);
	close_checked(r);
}

TEST(a_gpu_that_does_not_check_slabs_is_an_error)
{
	static const struct {
		int how;
		unsigned first;
		const char *message;
	} rows[] = {
		{FLIPS, 3, ", or one in the rows behind it, is sound in host memory, and is damaged on the GPU after"},
		{LOST, 1, "of a slab of the pool: the result is that of launch 0, and not of launch "},
		{LOST, 40, "of a slab of the pool: the result is that of launch "}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_loader_options o = sixes();
		struct runs r;

		STORY("%s", rows[i].message);
		open_sixes(SHARD_CHECK_DEVICE);
		open_checked(&r, o, i);
		be_strange(rows[i].how, rows[i].first, UINT_MAX, 0);
		CHECK_EQ(take_some(&r, 300), SHARD_E_DEVICE);
		CHECK(strstr(err.message, rows[i].message));
		CHECK_EQ(take_some(&r, 1), SHARD_E_DEVICE); /* again and again */
		CHECK(strstr(err.message, rows[i].message));
		end_after_failure(&r);
	}
	drop_dataset();
}

/* The nth of these calls fails, while slabs are checked and one of the first is repaired. */
static bool fails_in_turn(const char *call, unsigned nth)
{
	struct shard_loader_options o = sixes();
	struct runs r;
	bool came;
	int rc;

	STORY("%s %u", call, nth);
	open_checked(&r, o, nth);
	fake->settle();
	be_strange(FLIPS, 1, 2, 0);
	fake->reset();
	fake->fail(call, nth, 719);
	rc = take_some(&r, 60);
	came = fake->count(call) >= nth;
	fake->fail(NULL, 0, 0);
	/* A slab or a batch is put together again later if that was ahead. */
	CHECK(rc == SHARD_E_DEVICE || !rc);
	CHECK(!rc || err.os_code == 719);
	end_after_failure(&r);
	return came;
}

TEST(a_call_that_fails_while_slabs_are_checked)
{
	open_sixes(SHARD_CHECK_DEVICE);
	for (size_t i = 0; i < COUNT(check_calls); i++) {
		unsigned nth = 1;

		dawdles = !strcmp(check_calls[i], "cuEventSynchronize"); /* so that it is called each time */
		while (nth <= NTHS && fails_in_turn(check_calls[i], nth))
			nth++;
		CHECK(nth > 1);
	}
	dawdles = false;
	drop_dataset();
}

/* ---- when a slab is used ---- */

static struct shard_batch lent;
static atomic_int lent_rc;

static void *take_one(void *context)
{
	struct runs *r = context;

	atomic_store(&lent_rc, shard_loader_next_device(r->maps.l, r->maps.stream, &lent, &fixture_err));
	return NULL;
}

TEST(a_slab_waits_for_its_check)
{
	struct shard_loader_options o = sixes();
	pthread_t thread;
	struct runs r;

	open_sixes(SHARD_CHECK_DEVICE);
	open_checked(&r, o, 0);
	fake->settle();
	fake->reset();
	fake->hold(1);
	atomic_store(&lent_rc, PENDING);
	CHECK_EQ(pthread_create(&thread, NULL, take_one, &r), 0);
	while (!fake->count("cuEventSynchronize") && atomic_load(&lent_rc) == PENDING)
		usleep(1000);
	CHECK_EQ(atomic_load(&lent_rc), PENDING);
	fake->hold(0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(atomic_load(&lent_rc), SHARD_OK);
	CHECK(stats_of(&r.maps).check_wait_count > 0);
	CHECK(stats_of(&r.maps).device_checked_count > 0);
	CHECK(stats_of(&r.maps).device_wait_ns > 0);
	CHECK_OK(shard_loader_release_after(r.maps.l, &lent, r.maps.stream, &fixture_err));
	close_checked(&r);
	drop_dataset();
}

/* A window is one of the slabs that are there, and the next ones are not back. */
TEST(batches_of_slabs_that_are_there_wait_for_no_check)
{
	struct shard_loader_options o = sixes();
	struct shard_batch b[4];
	struct runs r;

	o.batch_records = 1;
	o.order.lane_count = 1;
	o.gpu.slot_count = 4;
	open_sixes(SHARD_CHECK_DEVICE);
	open_checked(&r, o, 0);
	CHECK_OK(shard_loader_next_device(r.maps.l, r.maps.stream, &b[0], &fixture_err));
	fake->settle();
	dawdles = true; /* anyone who asks is told to wait */
	fake->reset();
	for (int i = 1; i < 4; i++)
		CHECK_OK(shard_loader_next_device(r.maps.l, r.maps.stream, &b[i], &fixture_err));
	CHECK_EQ(fake->count("cuEventSynchronize"), 0);
	for (int i = 0; i < 4; i++)
		CHECK_OK(shard_loader_release_after(r.maps.l, &b[i], r.maps.stream, &fixture_err));
	for (int i = 4; i < 6; i++)
		CHECK_EQ(take_some(&r, 1), SHARD_OK);
	CHECK_EQ(fake->count("cuEventSynchronize"), 0);
	CHECK_EQ(take_some(&r, 6), SHARD_OK); /* of the next window */
	CHECK(fake->count("cuEventSynchronize") > 0);
	dawdles = false;
	close_checked(&r);
	drop_dataset();
}

/* A pool with room for many more slabs than there is room for checks.  All of it is filled ahead. */
TEST(many_slabs_are_checked_ahead)
{
	struct shard_loader_options o = sixes();
	struct shard_loader *host;
	struct device_slots *slabs;
	struct training t;

	for (int damaged = 0; damaged < 2; damaged++) {
		struct shard_batch got, want;
		int rc = SHARD_OK;

		STORY("%s", damaged ? "the middle one is damaged" : "sound");
		open_lines(200, 4, 3);
		if (damaged)
			hit(0, 135);
		reopen_as(SHARD_CHECK_DEVICE);
		o = sixes();
		o.size = sizeof(o);
		o.order.shuffle = SHARD_SHUFFLE_WINDOWS;
		o.order.seed = 5;
		o.repair.on_corrupt = SHARD_CORRUPT_SUBSTITUTE;
		o.repair.corrupt_most = UINT64_MAX;
		CHECK_OK(shard_loader_open(&host, ds, &o, &fixture_err));
		o.gpu.pool_bytes = 40 * (least_pool(o) / 6);
		open_pool(&t, o, 0);
		strange_open();
		begin_checked(t.l, t.stream);
		slabs = &t.l->pool->slabs.device_slots;
		CHECK(!t.l->pool->plan.is_held && slabs->slot_count > 30);
		fake->reset();
		for (unsigned i = 0; i < 2 * calls_of(&t); i++) {
			/* The feed is faster than the trainer, so all that there is room for is under way. */
			for (unsigned k = 0; i == 2 && !damaged && k < 200 && slabs->queue_count < 20; k++) {
				usleep(10000);
				fake->settle();
				CHECK_OK(cuda_enter(t.l->cuda, &fixture_err));
				device_copy_send_ahead(t.l->pool->slabs.copy);
				CHECK_OK(cuda_leave(t.l->cuda, SHARD_OK, &fixture_err));
			}
			CHECK(i != 2 || damaged || slabs->queue_count >= 20);
			rc = shard_loader_next_device(t.l, t.stream, &got, &err);
			CHECK_EQ(shard_loader_next(host, &want, &fixture_err), rc);
			CHECK(rc == SHARD_OK || rc == SHARD_END);
			if (rc)
				continue;
			CHECK_STR(difference(&got, &want, 7), "");
			CHECK_OK(shard_loader_release_after(t.l, &got, t.stream, &fixture_err));
			CHECK_OK(shard_loader_release(host, &want, &fixture_err));
		}
		CHECK_EQ(atomic_load(&damaged_count) > 0, damaged);
		shard_loader_close(host);
		finish(&t);
	}
	drop_dataset();
}

/* There is no room for another check, and the driver does not say whether the first one is back. */
TEST(results_are_looked_at_when_the_driver_says_that_they_are_there)
{
	struct shard_loader_options o = sixes();
	struct device_slots *slabs;
	struct device_copy *copy;
	struct shard_batch b;
	struct training t;
	bool has_room = true;

	open_sixes(SHARD_CHECK_DEVICE);
	o.size = sizeof(o);
	o.gpu.pool_bytes = 40 * (least_pool(o) / 6);
	open_pool(&t, o, 0);
	strange_open();
	begin_checked(t.l, t.stream);
	dawdles = true;
	CHECK_OK(shard_loader_next_device(t.l, t.stream, &b, &fixture_err));
	CHECK_OK(shard_loader_release_after(t.l, &b, t.stream, &fixture_err));
	slabs = &t.l->pool->slabs.device_slots;
	copy = t.l->pool->slabs.copy;
	for (unsigned k = 0; k < 500 && has_room; k++) {
		usleep(k ? 10000 : 0); /* until the feed has filled as many slabs as can be checked */
		fake->settle();
		CHECK_OK(cuda_enter(t.l->cuda, &fixture_err));
		device_copy_send_ahead(copy);
		has_room = batch_check_has_room(copy->check);
		CHECK_OK(cuda_leave(t.l->cuda, SHARD_OK, &fixture_err));
	}
	CHECK(!has_room);
	fake->settle();
	dawdles = false;
	CHECK_OK(cuda_enter(t.l->cuda, &fixture_err));
	gives_no_answer = true;
	CHECK(!batch_check_has_room(copy->check));
	gives_no_answer = false;
	CHECK(batch_check_has_room(copy->check));
	CHECK(slabs->slot[slabs->queue[0]].looked);
	CHECK_OK(cuda_leave(t.l->cuda, SHARD_OK, &fixture_err));
	finish(&t);
	drop_dataset();
}

/* ---- ends ---- */

TEST(a_pool_is_closed_while_checks_are_under_way)
{
	open_sixes(SHARD_CHECK_DEVICE);
	for (unsigned seed = 0; seed < 8; seed++) {
		struct shard_loader_options o = sixes();
		struct runs r;

		STORY("seed %u", seed);
		o.gpu.slot_count = 4;
		open_checked(&r, o, seed);
		fake->seed(seed, 3000);
		CHECK_EQ(take_some(&r, seed), SHARD_OK);
		if (seed % 2)
			CHECK_OK(shard_loader_seek(r.maps.l, 2, 30, &fixture_err));
		CHECK_EQ(take_some(&r, seed % 2), SHARD_OK);
		close_checked(&r);
	}
	drop_dataset();
}

/* A forked child has no part in it, even when rows were brought again. */
TEST(a_child_closes_what_it_inherits)
{
	struct runs r;
	pid_t pid;
	int failed;

	open_sixes(SHARD_CHECK_DEVICE);
	open_checked(&r, sixes(), 0);
	fake->settle();
	be_strange(FLIPS, 2, 3, 0);
	CHECK_STR(compare(&r, 50, &failed), "");
	CHECK(stats_of(&r.maps).recopied_count > 0);
	if (child_begin(&pid, 60))
		_exit(close_in_child(&r.maps));
	CHECK_EQ(child_end(pid), 0);
	CHECK_STR(compare(&r, calls_of(&r.maps), &failed), "");
	CHECK_EQ(failed, SHARD_OK);
	close_checked(&r);
	drop_dataset();
}

/* ---- controls ---- */

TEST(what_is_broken_is_noticed)
{
	static const char *const what[] = {"sound", "what was found is not looked at", "the kernel does not compare",
					   "the results are not waited for", "the kernel is lost"};

	for (int broken = 0; broken < 5; broken++) {
		struct shard_loader_options o = sixes();
		struct shard_batch got, want;
		bool noticed = false;
		struct runs r;
		int rc = SHARD_OK;

		STORY("%s", what[broken]);
		open_lines(200, 4, 3);
		hit(0, 20);
		hit(0, 210);
		reopen_as(SHARD_CHECK_DEVICE);
		o.repair.on_corrupt = SHARD_CORRUPT_MASK;
		open_checked(&r, o, 0);
		fake->settle();
		trusts = broken == 1;
		hurries = broken == 3;
		if (broken == 2 || broken == 4)
			be_strange(broken == 2 ? SAYS_SOUND : LOST, 1, UINT_MAX, 0);
		fake->hold(broken == 3); /* so that no result can be there */
		for (unsigned i = 0; !noticed && i < calls_of(&r.maps); i++) {
			rc = shard_loader_next_device(r.maps.l, r.maps.stream, &got, &err);
			fake->hold(0);
			noticed = rc && rc != SHARD_END;
			CHECK(!noticed || strstr(err.message, "the GPU has not checked row "));
			if (rc)
				continue;
			CHECK_OK(shard_loader_next(r.host, &want, &fixture_err));
			noticed = *difference(&got, &want, 7);
			CHECK_OK(shard_loader_release_after(r.maps.l, &got, r.maps.stream, &fixture_err));
			CHECK_OK(shard_loader_release(r.host, &want, &fixture_err));
		}
		CHECK_EQ(noticed, broken > 0);
		trusts = hurries = false;
		fake->settle();
		close_checked(&r);
	}
	drop_dataset();
}

TEST_MAIN()
