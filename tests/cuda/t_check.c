/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_check.c - a GPU that is not there checks the records that it reads in the page cache: what it
 * finds becomes what it would be in host memory, and no batch is lent before
 *
 * All photographs of a shard are page-locked at once, when the first of them is needed.  So no thread
 * ever hashes one, unless the GPU has found it damaged.
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=cuda_map_least_bytes,--wrap=cuda_event_ask
 * LDFLAGS: -Wl,--wrap=batch_check_finish,--wrap=cuda_pin,--wrap=cuda_alloc
 */
#include "shard_gpu.h"
#include "tests/child.h"
#include "tests/cuda/checking.h"
#include "tests/cuda/strange.h"
#include "tests/cuda/training.h"

static struct shard_error err;
static const uint64_t one_shard[] = {103};

/* ---- wraps ---- */

/* Of this thread: the loader's own locks the ring. */
static _Thread_local bool refuses_pins;

int __real_cuda_pin(const struct cuda_device *d, void *memory, uint64_t bytes, struct shard_error *e);
int __wrap_cuda_pin(const struct cuda_device *d, void *memory, uint64_t bytes, struct shard_error *e);

int __wrap_cuda_pin(const struct cuda_device *d, void *memory, uint64_t bytes, struct shard_error *e)
{
	return refuses_pins ? cuda_refused(d->api, 209, e, "cuMemHostRegister") : __real_cuda_pin(d, memory, bytes, e);
}

/* ---- a trainer ---- */

static void open_trainer(struct training *t, struct shard_loader_options o, uint64_t seed)
{
	training_open(t, o, NON_BLOCKING, seed);
	strange_open();
	fake->seed(seed, (unsigned[]){0, 100, 500}[seed % 3]);
}

static void open_checked(struct training *t, struct shard_loader_options o, uint64_t seed)
{
	open_trainer(t, o, seed);
	begin_checked(t->l, t->stream);
}

static void close_checked(struct training *t)
{
	train_give_all(t);
	training_close(t);
	trainer_check_clean();
}

static void reopen_as(uint32_t check)
{
	reopen(&(struct shard_dataset_options){.size = sizeof(struct shard_dataset_options), .check = check});
}

/* Compare the next batches with those in host memory.  Returns the last status. */
static int compare(struct training *t, struct shard_loader *here, int calls)
{
	int rc = SHARD_OK;

	while (calls-- && (!rc || rc == SHARD_END)) {
		struct shard_batch got, want;
		struct shard_error why;

		rc = shard_loader_next_device(t->l, t->stream, &got, &err);
		CHECK_EQ(shard_loader_next(here, &want, &why), rc);
		if (rc && rc != SHARD_END)
			CHECK_STR(err.message, why.message);
		if (rc)
			continue;
		fake->settle();
		CHECK_EQ(got.record_count, want.record_count);
		CHECK_EQ(got.epoch, want.epoch);
		CHECK_EQ(got.position, want.position);
		CHECK_MEM(got.record, want.record, want.record_count * sizeof(*want.record));
		CHECK_MEM(got.row_flags, want.row_flags, want.record_count);
		for (uint32_t f = 0; f < schema.field_count; f++)
			for (uint32_t i = 0; i < want.record_count; i++)
				CHECK_MEM((uint8_t *)fake->at((uintptr_t)got.field[f].data) + i * got.field[f].stride,
					  (const uint8_t *)want.field[f].data + i * want.field[f].stride,
					  schema.field[f].bytes);
		CHECK_OK(shard_loader_release_after(t->l, &got, t->stream, &fixture_err));
		CHECK_OK(shard_loader_release(here, &want, &fixture_err));
	}
	return rc;
}

/* The loader of the same batches in host memory. */
static struct shard_loader *open_here(void)
{
	struct shard_loader_options o = wanted.o;
	struct shard_loader *here;

	o.gpu.device = 0;
	o.gpu.stream = NULL;
	CHECK_OK(shard_loader_open(&here, o.mix ? NULL : ds, &o, &fixture_err));
	return here;
}

/* ---- damage ---- */

struct spot {
	uint32_t group;
	uint64_t record;
};

/* In batches of 7 in sequence, and labels of one record to a unit. */
static const struct {
	const char *what;
	struct spot spot[8];
} damages[] = {
	{"one photograph", {{0, 17}}},
	{"neighbours, and the last one", {{0, 60}, {0, 61}, {0, 102}}},
	{"a photograph, in front of a label of the same batch", {{0, 15}, {1, 18}}},
	{"a label, in front of a photograph of the same batch", {{1, 15}, {0, 18}}},
	{"both of one record", {{0, 30}, {1, 30}}},
	{"a label, and the photograph of its substitute", {{1, 40}, {0, 41}}},
	{"a photograph, and the label of its substitute", {{0, 40}, {1, 41}}},
	{"a label in the batch behind that of a photograph", {{0, 20}, {1, 21}}},
	{"many", {{0, 1}, {0, 3}, {1, 2}, {1, 50}, {0, 51}, {0, 77}, {0, 90}, {1, 91}}},
};

static void damage_all(const struct spot spot[8])
{
	for (uint32_t i = 0; i < 8 && (spot[i].group || spot[i].record); i++)
		damage(spot[i].group, spot[i].record);
}

TEST(damage_that_the_gpu_finds_is_what_it_is_in_host_memory)
{
	unsigned round = 0;

	meta_unit = 1;
	for (size_t d = 0; d < COUNT(damages); d++)
		for (uint32_t how = SHARD_CORRUPT_FAIL; how <= SHARD_CORRUPT_MASK; how++)
			for (uint32_t check = SHARD_CHECK_DEVICE; check <= SHARD_CHECK_ALWAYS; check++, round++) {
				struct shard_loader_options o = {
					.batch_records = 7,
					.order.shuffle = round / 6 % 2 ? SHARD_SHUFFLE_GLOBAL : SHARD_SEQUENTIAL,
					.order.seed = round,
					.tail = SHARD_PAD,
					.thread_count = 1 + round % 3,
					.repair = {.on_corrupt = how, .corrupt_most = UINT64_MAX}};
				struct shard_loader *here;
				struct training t;
				int rc;

				STORY("%s, on_corrupt %u, check %u, shuffle %u", damages[d].what, how, check,
				      o.order.shuffle);
				open_photos(40, SHARD_RAW, one_shard, 1);
				damage_all(damages[d].spot);
				reopen_as(check);
				open_checked(&t, o, round);
				here = open_here();
				rc = compare(&t, here, 2 * 16);
				CHECK_EQ(rc, how == SHARD_CORRUPT_FAIL ? SHARD_E_CORRUPT : SHARD_END);
				CHECK_EQ(stats_of(&t).recopied_count, 0);
				CHECK_EQ(shard_loader_pin_problem(t.l, &err), SHARD_END);
				if (rc == SHARD_E_CORRUPT) { /* again and again, until somebody moves it */
					CHECK_EQ(compare(&t, here, 1), SHARD_E_CORRUPT);
					CHECK_OK(shard_loader_seek(t.l, 3, 91, &fixture_err));
					CHECK_OK(shard_loader_seek(here, 3, 91, &fixture_err));
					compare(&t, here, 1);
				} else {
					CHECK(stats_of(&t).device_checked_count > record_total);
					CHECK_EQ(shard_loader_last_damage(t.l, &err), SHARD_OK);
				}
				shard_loader_close(here);
				close_checked(&t);
			}
	meta_unit = 0;
	drop_dataset();
}

/*
 * A batch across two shards, of which the first cannot be page-locked.  A thread finds its damaged
 * record, behind which there is one that was left to the GPU.
 */
TEST(the_first_damaged_row_is_the_error_whoever_checks_it)
{
	static const uint64_t two_shards[] = {52, 51};

	for (uint64_t later = 52; later < 56; later += 3) {
		struct shard_loader_options o = {.batch_records = 7, .order.shuffle = SHARD_SEQUENTIAL};
		struct path aside = {""};
		struct shard_loader *here;
		struct shard_reader *r;
		struct training t;

		STORY("records 50 and %" PRIu64, later);
		open_photos(40, SHARD_RAW, two_shards, 2);
		reopen_as(SHARD_CHECK_DEVICE);
		damage(0, 50);
		damage(0, later);
		open_trainer(&t, o, 0);
		warm();
		CHECK_OK(dataset_use_shard(ds, 0, &r, &fixture_err));
		tmp(&aside, "t_check.aside.%d", (int)getpid());
		CHECK_EQ(rename(r->path, aside.text), 0);
		CHECK_OK(shard_loader_begin_device(t.l, t.stream, &fixture_err));
		CHECK_OK(shard_loader_seek(t.l, 0, 0, &fixture_err));
		here = open_here();
		CHECK_EQ(compare(&t, here, 15), SHARD_E_CORRUPT);
		CHECK(strstr(err.message, "(records 50 to 50)"));
		CHECK_EQ(stats_of(&t).device_checked_count, 0);
		CHECK_EQ(rename(aside.text, r->path), 0);
		shard_loader_close(here);
		close_checked(&t);
	}
	drop_dataset();
}

/* Which rows are counted, in which batch, and what the error says. */
TEST(rows_that_the_gpu_has_found_count_as_others_do)
{
	meta_unit = 1;
	for (uint64_t most = 1; most <= 8; most++) {
		struct shard_loader_options o = {.batch_records = 7,
						 .order.shuffle = SHARD_SEQUENTIAL,
						 .repair = {.on_corrupt = 1 + most % 2, .corrupt_most = most}};
		struct shard_loader *here;
		struct training t;

		STORY("%" PRIu64 " rows at most", most);
		open_photos(40, SHARD_RAW, one_shard, 1);
		damage_all(damages[COUNT(damages) - 1].spot);
		reopen_as(SHARD_CHECK_DEVICE);
		open_checked(&t, o, most);
		here = open_here();
		CHECK_EQ(compare(&t, here, 15), most < 8 ? SHARD_E_CORRUPT : SHARD_END);
		shard_loader_close(here);
		close_checked(&t);
	}
	meta_unit = 0;
	drop_dataset();
}

/* A batch of more rows than a launch takes, and a part of it that a thread fills alone. */
TEST(large_batches_take_several_launches)
{
	meta_unit = 1;
	for (uint32_t how = SHARD_CORRUPT_FAIL; how <= SHARD_CORRUPT_MASK; how++) {
		struct shard_loader_options o = {.batch_records = 2 * CHECK_ROWS + 100,
						 .order.shuffle = SHARD_SEQUENTIAL,
						 .tail = SHARD_PAD,
						 .slot_count = 2,
						 .thread_count = 3,
						 .gpu.slot_count = 2,
						 .repair = {.on_corrupt = how, .corrupt_most = UINT64_MAX}};
		struct shard_loader *here;
		struct training t;

		STORY("on_corrupt %u", how);
		open_photos(40, SHARD_RAW, one_shard, 1);
		damage(0, 70);
		damage(1, 90);
		reopen_as(SHARD_CHECK_DEVICE);
		open_checked(&t, o, how);
		here = open_here();
		CHECK_EQ(compare(&t, here, 2), how == SHARD_CORRUPT_FAIL ? SHARD_E_CORRUPT : SHARD_END);
		shard_loader_close(here);
		close_checked(&t);
		drop_dataset();
	}
	meta_unit = 0;
}

/* Of two groups that the GPU checks.  A thread brings 64 rows at a time, group by group, and stops there. */
TEST(the_error_is_that_of_the_first_block_of_rows)
{
	static const uint64_t one[] = {200};
	static const struct spot spots[][3] = {{{1, 100}, {0, 130}}, {{0, 120}, {1, 70}}, {{1, 126}, {1, 65}}};

	schema = photo_schema(40, SHARD_RAW);
	schema.field[PHOTO_WEIGHT].shape[0] = 1200;
	CHECK_OK(shard_schema_lay_out(&schema, 0, &fixture_err));
	for (size_t i = 0; i < COUNT(spots); i++) {
		struct shard_loader_options o = {
			.batch_records = 180, .order.shuffle = SHARD_SEQUENTIAL, .thread_count = 1};
		struct shard_loader *here;
		struct training t;

		STORY("groups %u and %u", spots[i][0].group, spots[i][1].group);
		make_dataset("large", one, 1);
		damage(spots[i][0].group, spots[i][0].record);
		damage(spots[i][1].group, spots[i][1].record);
		reopen_as(SHARD_CHECK_DEVICE);
		open_checked(&t, o, i);
		here = open_here();
		CHECK_EQ(compare(&t, here, 1), SHARD_E_CORRUPT);
		CHECK(atomic_load(&damaged_count) >= 2); /* no thread has found them */
		shard_loader_close(here);
		close_checked(&t);
	}
	drop_dataset();
}

/* Of a megabyte at once. */
TEST(more_damage_than_is_copied_at_once)
{
	for (uint32_t how = SHARD_CORRUPT_SUBSTITUTE; how <= SHARD_CORRUPT_MASK; how++) {
		struct shard_loader_options o = {.batch_records = 280,
						 .order.shuffle = SHARD_SEQUENTIAL,
						 .thread_count = 1,
						 .repair = {.on_corrupt = how, .corrupt_most = UINT64_MAX}};
		static const uint64_t one[] = {290};
		struct shard_loader *here;
		struct training t;

		STORY("on_corrupt %u", how);
		open_photos(40, SHARD_RAW, one, 1);
		for (uint64_t record = 3; record < 277; record++)
			damage(0, record);
		reopen_as(SHARD_CHECK_DEVICE);
		open_checked(&t, o, how);
		CHECK(274 * schema.group[0].stride > 1 << 20);
		here = open_here();
		CHECK_EQ(compare(&t, here, 1), SHARD_OK);
		CHECK(atomic_load(&damaged_count) >= 274);
		CHECK_EQ(stats_of(&t).recopied_count, 0);
		shard_loader_close(here);
		close_checked(&t);
	}
	drop_dataset();
}

/* Record numbers of the second dataset are not those of the joined one. */
TEST(damage_in_a_mixture)
{
	for (uint32_t how = SHARD_CORRUPT_FAIL; how <= SHARD_CORRUPT_MASK; how++) {
		struct shard_mix_options mo = {.size = sizeof(mo), .epoch_records = 200};
		struct shard_loader_options o = {.batch_records = 7,
						 .repair = {.on_corrupt = how, .corrupt_most = UINT64_MAX}};
		struct shard_dataset *second;
		struct shard_mix_source source[2];
		struct shard_loader *here;
		struct training t;
		struct shard_mix *mix;
		int rc;

		STORY("on_corrupt %u", how);
		open_photos(40, SHARD_RAW, one_shard, 1);
		damage(0, 17);
		damage(0, 100);
		reopen_as(SHARD_CHECK_DEVICE);
		CHECK_OK(shard_dataset_open(&second, folder.text, NULL, &fixture_err));
		source[0] = (struct shard_mix_source){.ds = ds, .weight = 1};
		source[1] = (struct shard_mix_source){.ds = second, .weight = 2};
		CHECK_OK(shard_mix_open(&mix, source, 2, &mo, &fixture_err));
		open_trainer(&t, o, how);
		wanted.o.mix = mix;
		close_loader(t.l);
		CHECK_OK(shard_loader_open(&t.l, NULL, &wanted.o, &fixture_err));
		living++;
		begin_checked(t.l, t.stream);
		here = open_here();
		rc = compare(&t, here, 60);
		CHECK_EQ(rc == SHARD_E_CORRUPT, how == SHARD_CORRUPT_FAIL);
		CHECK(stats_of(&t).device_checked_count > 0);
		CHECK_EQ(stats_of(&t).recopied_count, 0);
		shard_loader_close(here);
		close_checked(&t);
		shard_mix_close(mix);
		shard_dataset_close(second);
	}
	drop_dataset();
}

/* Rows of an epoch that are masked: records 17 and 60, or none. */
static unsigned masked_rows(struct training *t, struct shard_loader *here, uint64_t epoch)
{
	struct shard_loader *l = here ? here : t->l;
	unsigned masked = 0;
	struct shard_batch b;
	int rc;

	CHECK_OK(shard_loader_seek(l, epoch, 0, &fixture_err)); /* what is filled or copied ahead has the old bytes */
	while ((rc = here ? shard_loader_next(l, &b, &err) : shard_loader_next_device(l, t->stream, &b, &err)) == 0) {
		for (uint32_t i = 0; i < b.record_count; i++) {
			bool is = b.row_flags[i] & SHARD_ROW_MASKED;

			CHECK(!is || b.record[i] == 17 || b.record[i] == 60);
			masked += is;
		}
		if (here)
			CHECK_OK(shard_loader_release(l, &b, &fixture_err));
		else
			CHECK_OK(shard_loader_release_after(l, &b, t->stream, &fixture_err));
	}
	CHECK_EQ(rc, SHARD_END);
	return masked;
}

/*
 * Bytes that are changed in a file that is page-locked, of records that a CPU has found sound.  From
 * then on a CPU finds the damage, too.
 */
TEST(what_is_changed_later_is_found_in_each_epoch)
{
	for (uint32_t check = SHARD_CHECK_DEVICE; check <= SHARD_CHECK_ALWAYS; check++) {
		struct shard_loader_options o = {.batch_records = 7,
						 .tail = SHARD_KEEP,
						 .repair = {.on_corrupt = SHARD_CORRUPT_MASK, .corrupt_most = 2}};
		struct shard_loader *here;
		struct training t;

		STORY("check %u", check);
		open_photos(40, SHARD_RAW, one_shard, 1);
		reopen_as(check);
		open_checked(&t, o, check);
		here = open_here();
		for (uint64_t epoch = 0; epoch < 2; epoch++)
			CHECK_EQ(masked_rows(&t, epoch ? here : NULL, epoch), 0);
		damage(0, 17);
		damage(0, 60);
		for (uint64_t epoch = 2; epoch < 5; epoch++)
			CHECK_EQ(masked_rows(&t, epoch == 3 ? here : NULL, epoch), 2);
		damage(0, 17);
		damage(0, 60);
		for (uint64_t epoch = 5; epoch < 7; epoch++)
			CHECK_EQ(masked_rows(&t, NULL, epoch), 0);
		shard_loader_close(here);
		close_checked(&t);
	}
	drop_dataset();
}

/*
 * The page-locked bytes are still there, but the hashes are not.  The driver that is not there has
 * no page-locks, so nothing may be left to copy.
 */
TEST(a_shard_that_is_cut_is_an_error)
{
	struct shard_reader *r;
	struct shard_batch b;
	struct training t;

	open_photos(40, SHARD_RAW, one_shard, 1);
	open_checked(&t, (struct shard_loader_options){.batch_records = 9, .thread_count = 1}, 0);
	train(&t, 12, 1);
	train_give_all(&t);
	CHECK_SOUND_TRAINING();
	CHECK_OK(dataset_use_shard(ds, 0, &r, &fixture_err));
	CHECK_EQ(truncate(r->path, 0), 0);
	CHECK_OK(shard_loader_seek(t.l, 1, 0, &fixture_err));
	CHECK_EQ(shard_loader_next_device(t.l, t.stream, &b, &err), SHARD_E_IO);
	CHECK(strstr(err.message, "its bytes cannot be read any more (the file was cut while in use"));
	close_checked(&t);
	drop_dataset();
}

/* ---- faults of the GPU ---- */

TEST(a_copy_that_arrives_damaged_is_made_again)
{
	for (uint32_t how = SHARD_CORRUPT_FAIL; how <= SHARD_CORRUPT_MASK; how++) {
		struct shard_loader_options o = {.batch_records = 9,
						 .order.shuffle = SHARD_SEQUENTIAL,
						 .repair.on_corrupt = how,
						 .thread_count = 1};
		struct shard_loader *here;
		struct training t;

		STORY("on_corrupt %u", how);
		open_photos(40, SHARD_RAW, one_shard, 1);
		open_checked(&t, o, how);
		here = open_here();
		be_strange(FLIPS, 2, 3, 5); /* not the third one, which may be that of what was copied again */
		CHECK_EQ(compare(&t, here, 12), SHARD_END);
		CHECK_EQ(stats_of(&t).recopied_count, 1);
		CHECK_EQ(stats_of(&t).substituted_count + stats_of(&t).masked_count, 0);
		shard_loader_close(here);
		close_checked(&t);
	}
	drop_dataset();
}

/* What comes with the batch of launch `first`, and with all later calls. */
static void expect_failure(struct training *t, unsigned first, const char *message)
{
	struct shard_batch b;
	unsigned calls = 0;
	int rc = SHARD_OK;

	for (; !rc && calls < 11; calls++) {
		rc = shard_loader_next_device(t->l, t->stream, &b, &err);
		if (!rc)
			CHECK_OK(shard_loader_release_after(t->l, &b, t->stream, &fixture_err));
	}
	CHECK_EQ(calls, first);
	CHECK_EQ(rc, SHARD_E_DEVICE);
	CHECK(strstr(err.message, message));
	CHECK_EQ(shard_loader_next_device(t->l, t->stream, &b, &err), SHARD_E_DEVICE);
	CHECK(strstr(err.message, message));
}

/* The GPU is not strange any more, so the next epoch is sound. */
static void end_after_failure(struct training *t)
{
	fake->settle(); /* kernels of later batches look at what is strange */
	be_strange(FLIPS, 0, 0, 0);
	CHECK_OK(shard_loader_seek(t->l, 1, 0, &fixture_err));
	wanted_seek(&wanted, 1, 0);
	train(t, 24, 1);
	train_give_all(t);
	CHECK_SOUND_TRAINING();
	close_checked(t);
}

/* Of launch 5, the memory for the results has those of launch 2. */
TEST(a_gpu_that_does_not_do_its_work_is_an_error)
{
	static const struct {
		int how;
		unsigned first;
		const char *message;
	} rows[] = {{FLIPS, 3, " is sound in host memory, and is damaged on the GPU after a second copy, too"},
		    {LOST, 1, "the GPU has not checked row 0 of a batch: the result is that of launch 0, and not of "},
		    {LOST, 5, "row 0 of a batch: the result is that of launch 2, and not of launch 5; open "}};

	open_photos(40, SHARD_RAW, one_shard, 1);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct training t;

		STORY("%s", rows[i].message);
		open_checked(&t, (struct shard_loader_options){.batch_records = 9, .thread_count = 1}, i);
		be_strange(rows[i].how, rows[i].first, UINT_MAX, 2);
		expect_failure(&t, rows[i].first, rows[i].message);
		end_after_failure(&t);
	}
}

/* The nth of these calls fails, while batches are checked and the first one is repaired. */
static bool fails_in_turn(const char *call, unsigned nth)
{
	struct shard_batch b;
	struct training t;
	int rc = SHARD_OK;
	bool came = false, is_given_twice = false;

	STORY("%s %u", call, nth);
	open_checked(&t, (struct shard_loader_options){.batch_records = 9, .thread_count = 1}, nth);
	be_strange(FLIPS, 1, 2, 5);
	fake->reset();
	fake->fail(call, nth, 719);
	for (unsigned calls = 1; !rc && calls <= 10; calls++) {
		rc = shard_loader_next_device(t.l, t.stream, &b, &err);
		if (!rc && shard_loader_release_after(t.l, &b, t.stream, &err)) { /* it was told there */
			CHECK_OK(shard_loader_release_after(t.l, &b, t.stream, &fixture_err));
			is_given_twice = true;
		}
		came |= calls <= 5 && fake->count(call) >= nth; /* the batches ahead are lent within ten */
	}
	fake->fail(NULL, 0, 0);
	if (!strcmp(call, "cuMemcpyBatchAsync")) /* then each copy is a call of its own */
		CHECK(!rc && shard_loader_pin_problem(t.l, &err) == (fake->count(call) < nth ? SHARD_END : SHARD_OK));
	else
		CHECK(rc == SHARD_E_DEVICE || (!rc && (!came || is_given_twice)));
	CHECK(!rc || err.os_code == 719);
	end_after_failure(&t);
	return came;
}

TEST(a_call_that_fails_is_an_error)
{
	open_photos(40, SHARD_RAW, one_shard, 1);
	dawdles = true;
	for (size_t i = 0; i < COUNT(check_calls); i++) {
		unsigned nth = 1;

		while (nth <= 8 && fails_in_turn(check_calls[i], nth))
			nth++;
		CHECK(nth > 1);
	}
	dawdles = false;
}

TEST(where_the_gpu_cannot_check_a_thread_does)
{
	static const struct {
		const char *call;
		unsigned nth;
		const char *message;
	} rows[] = {{"cuModuleLoadDataEx", 1, "the GPU cannot check records (cuModuleLoadDataEx"},
		    {"cuModuleGetFunction", 1, "the GPU cannot check records (cuModuleGetFunction of check_long: "},
		    {"cuMemHostRegister", 0, "the GPU cannot check records (cuMemHostRegister"}, /* for the results */
		    {"cuCtxGetStreamPriorityRange", 1, "the GPU cannot check records (cuCtxGetStreamPriorityRange: "},
		    {"cuStreamCreateWithPriority", 1, "the GPU cannot check records (cuStreamCreateWithPriority: "},
		    {"cuMemAlloc", 2, "the GPU cannot check records (cuMemAlloc of "}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_loader_options o = {.batch_records = 7,
						 .repair = {.on_corrupt = SHARD_CORRUPT_SUBSTITUTE}};
		struct shard_loader *here;
		struct training t;

		STORY("%s", rows[i].call);
		open_photos(40, SHARD_RAW, one_shard, 1);
		damage(0, 17);
		reopen_as(SHARD_CHECK_ALWAYS);
		open_trainer(&t, o, i);
		fake->fail(rows[i].call, rows[i].nth, 209);
		refuses_pins = !rows[i].nth;
		begin_checked(t.l, t.stream);
		refuses_pins = false;
		here = open_here();
		CHECK_EQ(compare(&t, here, 15), SHARD_END);
		CHECK_EQ(shard_loader_pin_problem(t.l, &err), SHARD_OK);
		CHECK_EQ(err.status, SHARD_E_DEVICE);
		CHECK_EQ(err.os_code, 209);
		CHECK(strstr(err.message, rows[i].message) == err.message);
		CHECK_EQ(stats_of(&t).device_checked_count, 0);
		CHECK(stats_of(&t).checked_unit_count >= 2 * 98);
		CHECK(stats_of(&t).cached_bytes > 0);
		shard_loader_close(here);
		close_checked(&t);
	}
	drop_dataset();
}

/* ---- when a batch is lent ---- */

static struct shard_batch lent;
static atomic_int lent_rc; /* -1: next has not returned */

static void *take_one(void *context)
{
	struct training *t = context;

	atomic_store(&lent_rc, shard_loader_next_device(t->l, t->stream, &lent, &fixture_err));
	return NULL;
}

/* Take a batch in a thread of its own. */
static void start_taking(struct training *t, pthread_t *thread)
{
	atomic_store(&lent_rc, -1);
	CHECK_EQ(pthread_create(thread, NULL, take_one, t), 0);
}

static void end_taking(pthread_t thread)
{
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(atomic_load(&lent_rc), SHARD_OK);
}

TEST(a_batch_waits_for_its_check)
{
	struct training t;
	pthread_t thread;

	open_photos(40, SHARD_RAW, one_shard, 1);
	open_checked(&t, (struct shard_loader_options){.batch_records = 9, .thread_count = 1}, 0);
	fake->hold(1);
	start_taking(&t, &thread);
	while (!fake->count("cuEventSynchronize") && atomic_load(&lent_rc) == -1)
		usleep(1000);
	CHECK_EQ(atomic_load(&lent_rc), -1);
	fake->hold(0);
	end_taking(thread);
	CHECK_EQ(stats_of(&t).batch_count, 1);
	CHECK_EQ(stats_of(&t).check_wait_count, 1);
	CHECK_EQ(stats_of(&t).device_checked_count, 9);
	CHECK(stats_of(&t).device_wait_ns > 0);
	CHECK_OK(shard_loader_release_after(t.l, &lent, t.stream, &fixture_err));
	close_checked(&t);
}

/* Is all work of a stream done within this time? */
static bool ends_within(void *stream, unsigned ms)
{
	int result;

	while ((result = cu.cuStreamQuery(stream)) == 600 && ms--)
		usleep(1000);
	CHECK(!result || result == 600);
	return !result;
}

/* Batches of 9, of which the feed has filled as many as it can.  Launches wait from this one on. */
static void open_held(struct training *t, unsigned launch)
{
	struct shard_loader_options o = {.batch_records = 9, .thread_count = 1, .slot_count = 6, .gpu.slot_count = 4};

	open_checked(t, o, 0);
	wait_until_full(t->l);
	for (uint32_t i = 0; i < 6; i++) /* a slot that is not known to be page-locked is not sent ahead */
		device_copy_await_pins(t->l->copy, i);
	fake->reset();
	atomic_store(&held_launch, launch);
}

TEST(copies_do_not_wait_for_the_check_of_the_batch_before)
{
	struct training t;
	pthread_t thread;

	open_photos(40, SHARD_RAW, one_shard, 1);
	open_held(&t, 1);
	start_taking(&t, &thread);
	while (!atomic_load(&launch_waits) || fake->count("cuMemcpyBatchAsync") < 4)
		usleep(1000);
	CHECK(ends_within(t.l->device_slots.stream, 10000));
	CHECK(ends_within(t.l->copy->back, 10000)); /* the host slots are free, too */
	CHECK_EQ(atomic_load(&launch_count), 1);
	CHECK_EQ(atomic_load(&lent_rc), -1);
	atomic_store(&held_launch, 0);
	end_taking(thread);
	CHECK_OK(shard_loader_release_after(t.l, &lent, t.stream, &fixture_err));
	close_checked(&t);
}

/* Three batches are dropped while the first of their checks waits, and others come into their slots. */
TEST(a_slot_is_not_filled_again_before_its_check)
{
	struct training t;
	pthread_t thread;

	open_photos(40, SHARD_RAW, one_shard, 1);
	open_held(&t, 2);
	start_taking(&t, &thread);
	end_taking(thread);
	CHECK_EQ(t.l->device_slots.queue_count, 3);
	while (!atomic_load(&launch_waits))
		usleep(1000);
	CHECK(ends_within(t.l->device_slots.stream, 10000));
	CHECK_OK(shard_loader_release_after(t.l, &lent, t.stream, &fixture_err));
	CHECK_OK(shard_loader_seek(t.l, 0, 50, &fixture_err));
	wait_until_full(t.l); /* then several batches are sent at once: one of them to the slot that was lent */
	start_taking(&t, &thread);
	while (fake->count("cuMemcpyBatchAsync") < 6)
		usleep(1000);
	CHECK(!ends_within(t.l->device_slots.stream, 100));
	atomic_store(&held_launch, 0);
	end_taking(thread);
	CHECK_EQ(lent.position, 50);
	CHECK_OK(shard_loader_release_after(t.l, &lent, t.stream, &fixture_err));
	fake->settle();
	CHECK_EQ(atomic_load(&damaged_count), 0); /* each check has seen its own batch */
	close_checked(&t);
}

/* Checks of batches that nobody takes. */
TEST(a_loader_is_closed_while_checks_are_under_way)
{
	struct training t;

	open_photos(40, SHARD_RAW, one_shard, 1);
	for (unsigned seed = 0; seed < 6; seed++) {
		STORY("seed %u", seed);
		open_checked(&t, (struct shard_loader_options){.batch_records = 9, .gpu.slot_count = 4}, seed);
		fake->seed(seed, 3000);
		train(&t, 1 + seed, 1);
		close_checked(&t);
	}
}

TEST(a_capture_goes_on_beside_checks)
{
	struct training t;
	void *stream, *graph;

	open_photos(40, SHARD_RAW, one_shard, 1);
	for (int mode = 0; mode < 3; mode++) {
		STORY("mode %d", mode);
		open_checked(&t, (struct shard_loader_options){.batch_records = 9, .thread_count = 1}, 2);
		CU_OK(cu.cuStreamCreate(&stream, 1));
		CU_OK(cu.cuStreamBeginCapture(stream, mode));
		train(&t, 30, 1); /* from the first batch on */
		CU_OK(cu.cuStreamEndCapture(stream, &graph));
		CU_OK(cu.cuGraphDestroy(graph));
		CU_OK(cu.cuStreamDestroy(stream));
		CHECK(stats_of(&t).device_checked_count > record_total);
		train_give_all(&t);
		CHECK_SOUND_TRAINING();
		close_checked(&t);
	}
}

/* A forked child has no part in it, even when rows were brought again. */
TEST(a_child_closes_what_it_inherits)
{
	struct training t;
	pid_t pid;

	open_photos(40, SHARD_RAW, one_shard, 1);
	open_checked(&t, (struct shard_loader_options){.batch_records = 9, .thread_count = 1}, 0);
	be_strange(FLIPS, 2, 3, 5);
	train(&t, 12, 1);
	CHECK_EQ(stats_of(&t).recopied_count, 1);
	if (child_begin(&pid, 20))
		_exit(close_in_child(&t));
	CHECK_EQ(child_end(pid), 0);
	train(&t, 24, 1);
	train_give_all(&t);
	CHECK_SOUND_TRAINING();
	close_checked(&t);
}

/* ---- controls ---- */

/* Would compare() have failed at this batch? */
static bool differs(const struct shard_batch *got, const struct shard_batch *want)
{
	bool is = memcmp(got->row_flags, want->row_flags, want->record_count) != 0;

	for (uint32_t i = 0; i < want->record_count; i++)
		is |= memcmp((uint8_t *)fake->at((uintptr_t)got->group[0].data) + i * got->group[0].stride,
			     (const uint8_t *)want->group[0].data + i * want->group[0].stride,
			     schema.group[0].stride) != 0;
	return is;
}

TEST(what_is_broken_is_noticed)
{
	static const char *const what[] = {"sound", "what was found is not looked at", "the kernel does not compare",
					   "the results are not waited for"};

	for (int broken = 0; broken < 4; broken++) {
		struct shard_loader_options o = {.batch_records = 9,
						 .order.shuffle = SHARD_SEQUENTIAL,
						 .thread_count = 1,
						 .repair.on_corrupt = SHARD_CORRUPT_MASK};
		struct shard_batch got, want;
		struct shard_loader *here;
		struct training t;
		int rc = SHARD_OK;
		bool noticed = false;

		STORY("%s", what[broken]);
		open_photos(40, SHARD_RAW, one_shard, 1);
		damage(0, 4);
		reopen_as(SHARD_CHECK_DEVICE);
		open_checked(&t, o, 0);
		here = open_here();
		trusts = broken == 1;
		hurries = broken == 3;
		if (broken == 2)
			be_strange(SAYS_SOUND, 1, UINT_MAX, 0);
		fake->hold(broken == 3); /* so that no result can be there */
		rc = shard_loader_next_device(t.l, t.stream, &got, &err);
		fake->hold(0);
		fake->settle();
		CHECK_OK(shard_loader_next(here, &want, &fixture_err));
		noticed = rc || differs(&got, &want);
		CHECK(rc == SHARD_OK || (broken == 3 && strstr(err.message, "the GPU has not checked row ")));
		CHECK_EQ(noticed, broken > 0);
		if (!rc)
			CHECK_OK(shard_loader_release_after(t.l, &got, t.stream, &fixture_err));
		trusts = hurries = false;
		shard_loader_close(here);
		close_checked(&t);
	}
	drop_dataset();
}

/* The last test, because such a driver takes no page-lock back. */
TEST(a_driver_that_breaks_down_lends_nothing)
{
	struct shard_batch b;
	struct training t;

	open_photos(40, SHARD_RAW, one_shard, 1);
	for (int pass = 0; pass < 2; pass++) {
		STORY("%s", pass ? "when a batch was lent" : "before the first batch");
		open_checked(&t, (struct shard_loader_options){.batch_records = 9, .thread_count = 1}, 1);
		if (pass) {
			train(&t, 1, 0);
			fake->settle();
		}
		fake->break_down(700);
		CHECK_EQ(shard_loader_next_device(t.l, t.stream, &b, &err), SHARD_E_DEVICE);
		close_loader(t.l);
		fake->break_down(0);
		trainer_leave(&t);
	}
}

TEST_MAIN()
