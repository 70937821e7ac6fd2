/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_device.c - batches on a GPU that is not there: the right ones, in the right order, without a
 * wait or an allocation
 *
 * The driver is the fake of tests/cuda.  That these tests would see a loader that is wrong,
 * t_device_broken shows.
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=pthread_create,--wrap=mem_alloc,--wrap=mem_zalloc
 * LDFLAGS: -Wl,--wrap=mem_array,--wrap=mem_aligned
 */
#include <errno.h>

#include "shard_gpu.h"
#include "tests/child.h"
#include "tests/cuda/counted.h"
#include "tests/cuda/training.h"

static struct shard_error err;

/* ---- wraps ---- */

static bool no_threads;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	return no_threads ? EAGAIN : __real_pthread_create(thread, attr, start, arg);
}

/* ---- the right bytes ---- */

TEST(batches_are_on_the_gpu_when_its_kernels_run)
{
	struct training t;
	unsigned round = 0;

	for (uint32_t side = 8; side <= 40; side += 32) {
		open_photos(side, side == 8 ? SHARD_LZ4 : SHARD_RAW, sizes, COUNT(sizes));
		for (uint32_t slots = 2; slots <= 5; slots++)
			for (uint32_t device = 2; device <= 4; device++, round++) {
				struct shard_loader_stats s;

				STORY("side %u, %u slots, %u on the device, round %u", side, slots, device, round);
				training_open(&t,
					      (struct shard_loader_options){.batch_records = 7,
									    .slot_count = slots,
									    .gpu.slot_count = device,
									    .thread_count = 1 + round % 3,
									    .tail = round % 2 ? SHARD_KEEP : SHARD_PAD},
					      (enum stream_kind)(round % STREAM_KINDS), round);
				fake->seed(round, (unsigned[]){0, 100, 1000}[round % 3]);
				t.slow_us = round % 5 ? 0 : 300;
				train(&t, 40, device - 1);
				train_give_all(&t);
				CHECK_SOUND_TRAINING();
				shard_loader_stats(t.l, &s);
				CHECK(s.device_bytes >= s.bytes && s.batch_count == 38);
				CHECK_EQ(s.pageable_bytes, 0);
				CHECK_EQ(s.pinned_bytes, shard_loader_ring_bytes(t.l));
				CHECK_EQ(shard_loader_pin_problem(t.l, &err), SHARD_END);
				training_close(&t);
				trainer_check_clean();
			}
	}
}

/* A dataset of 30 records of many bytes, each with a list that has room for `room` numbers. */
static struct shard_dataset *open_lists(struct path *folder_of, const char *name, uint32_t room)
{
	const uint64_t records = 30;
	struct shard_schema s = {
		.group_count = 1,
		.field_count = 3,
		.field = {{.name = "front", .dtype = SHARD_U8, .ndim = 1, .shape = {5000}},
			  {.name = "list",
			   .dtype = SHARD_I32,
			   .kind = SHARD_RAGGED,
			   .ndim = 1,
			   .shape = {room},
			   .ragged_axes = 1,
			   .length_field = 2},
			  {.name = "count", .dtype = SHARD_U32, .semantic = SHARD_LENGTH, .ndim = 1, .shape = {1}}}};
	struct shard_seal_options so = {.size = sizeof(so), .replace = 1};
	struct shard_writer_options wo = {.size = sizeof(wo), .planned_records = records, .skip_read_back = 1};
	static uint8_t record[8192];
	const void *const group[] = {record};
	struct shard_written written;
	struct shard_dataset *out;
	struct shard_writer *w;
	struct shard_seal *seal;
	char path[600];

	CHECK_OK(shard_schema_lay_out(&s, 0, &fixture_err));
	snprintf(path, sizeof(path), "%s/0.shard", new_folder(folder_of, name));
	CHECK_OK(shard_seal_open(&seal, folder_of->text, &so, &fixture_err));
	CHECK_OK(shard_writer_open(&w, path, &s, &wo, &fixture_err));
	for (uint32_t i = 0; i < records; i++) {
		uint32_t count = 1 + i % room;

		memset(record, (int)(i + room), s.field[0].bytes);
		memset(record + s.field[1].offset, 0, s.field[1].bytes);
		memset(record + s.field[1].offset, (int)(i + 1), count * 4);
		memcpy(record + s.field[2].offset, &count, 4);
		CHECK_OK(shard_writer_append(w, group, NULL, 0, &fixture_err));
	}
	CHECK_OK(shard_writer_finish(w, &written, &fixture_err));
	shard_writer_close(w);
	CHECK_OK(shard_seal_add(seal, "0.shard", NULL, written.sha256, &fixture_err));
	CHECK_OK(shard_seal_finish(seal, &fixture_err));
	shard_seal_close(seal);
	CHECK_OK(shard_dataset_open(&out, folder_of->text, NULL, &fixture_err));
	return out;
}

/* They equal those of a loader on the host, which tests/load/t_mix.c compares with a slow twin. */
TEST(a_mixture_of_lists_of_other_room_comes_to_the_gpu)
{
	struct path folder_of[2];
	struct shard_mix_source of[] = {{.ds = open_lists(&folder_of[0], "few", 3), .weight = 1},
					{.ds = open_lists(&folder_of[1], "many", 8), .weight = 2}};
	struct shard_mix_options mo = {.size = sizeof(mo), .epoch_records = 1000};
	struct shard_loader_options o;
	struct shard_loader *there, *here;
	unsigned rows[2] = {0, 0};
	struct shard_mix *m;
	struct training t;

	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	training_open(&t, (struct shard_loader_options){.batch_records = 7}, NON_BLOCKING, 1);
	CHECK_OK(shard_mix_open(&m, of, 2, &mo, &fixture_err));
	o = wanted.o;
	o.mix = m;
	CHECK_OK(shard_loader_open(&there, NULL, &o, &fixture_err));
	o.gpu.device = 0;
	o.gpu.stream = NULL;
	CHECK_OK(shard_loader_open(&here, NULL, &o, &fixture_err));
	for (int i = 0; i < 20; i++) {
		struct shard_batch got, want;

		CHECK_OK(shard_loader_next_device(there, t.stream, &got, &fixture_err));
		CHECK_OK(shard_loader_next(here, &want, &fixture_err));
		fake->settle();
		for (uint32_t f = 0; f < 3; f++) {
			static const size_t bytes[] = {5000, 32, 4};
			const uint8_t *data = fake->at((uintptr_t)got.field[f].data);

			CHECK_EQ(got.field[f].stride, bytes[f]);
			CHECK_MEM(data, want.field[f].data, want.record_count * bytes[f]);
		}
		for (uint32_t row = 0; row < got.record_count; row++) {
			CHECK_EQ(got.component[row], want.component[row]);
			CHECK_EQ(got.record[row], want.record[row]);
			rows[got.component[row]]++;
		}
		CHECK_OK(shard_loader_release_after(there, &got, t.stream, &fixture_err));
		CHECK_OK(shard_loader_release(here, &want, &fixture_err));
	}
	CHECK(rows[0] && rows[1]);
	shard_loader_close(there);
	shard_loader_close(here);
	training_close(&t);
	trainer_check_clean();
	shard_mix_close(m);
	for (int p = 0; p < 2; p++)
		shard_dataset_close(of[p].ds);
}

TEST(without_threads_it_is_slower_and_nothing_else)
{
	struct training t;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (uint32_t slots = 2; slots <= 4; slots++) {
		STORY("%u slots", slots);
		training_open(
			&t, (struct shard_loader_options){.batch_records = 9, .slot_count = slots, .gpu.slot_count = 4},
			NON_BLOCKING, 3);
		fake->seed(slots, 300);
		fake->settle();
		no_threads = true; /* the fake's run already */
		train(&t, 30, 2);
		no_threads = false;
		train_give_all(&t);
		CHECK_SOUND_TRAINING();
		training_close(&t);
		trainer_check_clean();
	}
}

/* ---- what it costs ---- */

static const char *const waiting[] = {"cu*Synchronize", "cuMemAlloc",	     "cuMemFree",    "cuEventCreate",
				      "cuStreamCreate", "cuMemHostRegister", "cuStreamQuery"};

TEST(once_it_runs_nothing_is_allocated_and_nobody_waits)
{
	struct training t;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (unsigned seed = 0; seed < 12; seed++) {
		uint64_t before[COUNT(waiting)], queries, copies, pushes;
		struct shard_loader_stats s[2];
		unsigned steps;

		STORY("seed %u", seed);
		training_open(&t, (struct shard_loader_options){.batch_records = 9, .thread_count = 2},
			      (enum stream_kind)(seed % STREAM_KINDS), seed);
		fake->seed(seed, seed % 2 ? 800 : 0);
		/* a trainer far ahead of its GPU, too: the ring is full of copies that wait */
		t.slow_us = seed % 4 == 3 ? 2000 : 0;
		train(&t, 12 + 8, 1); /* an epoch has opened what there is */
		atomic_store(&allocated, 0);
		for (size_t i = 0; i < COUNT(waiting); i++)
			before[i] = fake->count(waiting[i]);
		queries = fake->count("cuEventQuery");
		copies = fake->count("cuMemcpyHtoDAsync");
		pushes = fake->count("cuCtxPushCurrent");
		shard_loader_stats(t.l, &s[0]);
		train(&t, 30, 1);
		shard_loader_stats(t.l, &s[1]);
		steps = (unsigned)(s[1].batch_count - s[0].batch_count);
		CHECK_EQ(atomic_load(&allocated), 0);
		for (size_t i = 0; i < COUNT(waiting); i++)
			CHECK_EQ(fake->count(waiting[i]), before[i]);
		CHECK(fake->count("cuEventQuery") - queries <= 4 * steps);
		copies = fake->count("cuMemcpyHtoDAsync") - copies;
		/* one a group and batch, but for what was and is ahead */
		CHECK(copies >= 2 * (steps - 3) && copies <= 2 * (steps + 3));
		CHECK_EQ(copies % 2, 0);
		CHECK(fake->count("cuCtxPushCurrent") - pushes <= 2 * steps + 2);
		train_give_all(&t);
		CHECK_SOUND_TRAINING();
		training_close(&t);
		trainer_check_clean();
	}
}

/* With the GPU standing still: how far ahead copies are queued, and that next comes back. */
TEST(the_host_does_not_wait_for_copies)
{
	struct training t;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	training_open(&t, (struct shard_loader_options){.batch_records = 9, .slot_count = 6, .gpu.slot_count = 4},
		      NON_BLOCKING, 1);
	train(&t, 1, 0);
	train_give_all(&t);
	wait_until_full(t.l);
	while (!pins_knows(&t.l->copy->pins, t.l->o.slot_count - 1, 1)) /* a slot that is not is not sent ahead */
		usleep(1000);
	fake->reset();
	fake->hold(1);
	for (t.lent.count = 0; t.lent.count < 3; t.lent.count++)
		CHECK_EQ(train_next(&t, &t.lent.batch[t.lent.count]), SHARD_OK);
	CHECK_EQ(t.lent.count + t.l->device_slots.queue_count, 4);
	CHECK_EQ(fake->count("cu*Synchronize"), 0);
	CHECK_EQ(gpu.complaint[0], 0);
	fake->hold(0);
	train_give_all(&t);
	CHECK_SOUND_TRAINING();
	training_close(&t);
	trainer_check_clean();
}

/* The GPU is slow, or threads are slow: the statistics tell which one the host waited for. */
TEST(who_was_waited_for)
{
	struct shard_loader_stats before, s;
	uint64_t device_ns, next_ns;
	struct training t;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (int slow_threads = 0; slow_threads < 2; slow_threads++) {
		STORY("%s", slow_threads ? "slow threads" : "a slow GPU");
		training_open(&t, (struct shard_loader_options){.batch_records = 9, .slot_count = 2, .thread_count = 1},
			      NON_BLOCKING, 1);
		train(&t, 13, 0);
		train_give_all(&t);
		atomic_store(&inject.steady, true);
		atomic_store(&inject.delay_us, slow_threads ? 60000 : 0);
		t.slow_us = slow_threads ? 0 : 150000;
		shard_loader_stats(t.l, &before);
		train(&t, 10, 0);
		shard_loader_stats(t.l, &s);
		train_give_all(&t);
		device_ns = s.device_wait_ns - before.device_wait_ns;
		next_ns = s.next_wait_ns - before.next_wait_ns;
		CHECK(slow_threads ? next_ns > device_ns : device_ns > next_ns);
		CHECK((slow_threads ? next_ns : device_ns) > 20000000);
		CHECK_SOUND_TRAINING();
		training_close(&t);
		trainer_check_clean();
	}
}

/* ---- moving about ---- */

TEST(seek_resume_and_epochs)
{
	char token[SHARD_TOKEN_BYTES];
	struct training t;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (unsigned seed = 0; seed < 10; seed++) {
		uint64_t epoch, position;

		STORY("seed %u", seed);
		training_open(&t,
			      (struct shard_loader_options){
				      .batch_records = 10, .tail = SHARD_KEEP, .gpu.slot_count = 2 + seed % 3},
			      BLOCKING, seed);
		fake->seed(seed, 500);
		train(&t, 5, 1);
		shard_loader_tell(t.l, &epoch, &position);
		CHECK(epoch == wanted.epoch && position == wanted.step * 10); /* not what was copied ahead */
		shard_loader_token(t.l, token);
		wanted_seek(&wanted, 3, 31);
		CHECK_OK(shard_loader_seek(t.l, 3, 31, &fixture_err)); /* with batches lent, and copies under way */
		train(&t, 9, 1);
		wanted_seek(&wanted, epoch, position);
		CHECK_OK(shard_loader_resume(t.l, token, &fixture_err));
		train(&t, 9, 1);
		train_give_all(&t);
		CHECK_SOUND_TRAINING();
		training_close(&t);
		trainer_check_clean();
	}
}

TEST(an_error_comes_where_its_batch_would_and_a_seek_ends_it)
{
	struct training t;
	struct shard_batch b;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (uint64_t at = 0; at < 6; at++) {
		STORY("step %" PRIu64, at);
		training_open(&t, (struct shard_loader_options){.batch_records = 9, .slot_count = 6}, NON_BLOCKING, at);
		inject.fails = true;
		inject.fail_step = at;
		fake->seed(at, 300);
		train(&t, (unsigned)at, 1);
		for (int again = 0; again < 2; again++) {
			CHECK_EQ(shard_loader_next_device(t.l, t.stream, &b, &err), SHARD_E_IO);
			CHECK(strstr(err.message, "is made to fail"));
		}
		wanted_seek(&wanted, 1, 18);
		CHECK_OK(shard_loader_seek(t.l, 1, 18, &fixture_err));
		train(&t, 5, 1);
		train_give_all(&t);
		CHECK_SOUND_TRAINING();
		training_close(&t);
		trainer_check_clean();
	}
}

/* ---- what is refused ---- */

TEST(calls_that_are_wrong_are_told_so)
{
	struct shard_loader_options o = {.size = sizeof(o), .batch_records = 9, .gpu.slot_count = 5};
	struct shard_batch b[3], other;
	struct shard_loader *l;
	struct training t;
	void *context, *popped, *stream;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	CHECK_EQ(shard_loader_open(&l, ds, &o, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "options: gpu.slot_count is 5; must be 2 to 4");
	o.gpu.slot_count = 1;
	CHECK_EQ(shard_loader_open(&l, ds, &o, &err), SHARD_E_ARGUMENT);
	training_open(&t, (struct shard_loader_options){.batch_records = 9}, NON_BLOCKING, 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(train_next(&t, &b[i]), SHARD_OK);
	CHECK_EQ(shard_loader_next_device(t.l, t.stream, &other, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "the caller holds all 3 slots of the device; release a batch before taking the next");
	CHECK_EQ(shard_loader_next(t.l, &other, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "this loader has delivered to a GPU since shard_loader_next_device() was called; "
			       "open another loader for batches in host memory");
	CHECK_EQ(shard_loader_release(t.l, &b[0], &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "release a batch on a GPU with shard_loader_release_after(), because the GPU may "
			       "still read it");
	context = fake->context(0);
	CU_OK(cu.cuCtxPushCurrent(context));
	CU_OK(cu.cuStreamCreate(&stream, 0));
	CHECK_EQ(shard_loader_next_device(t.l, stream, &other, &err), SHARD_E_ARGUMENT);
	CHECK_EQ(shard_loader_release_after(t.l, &b[0], stream, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "belongs to another context than the batches of this loader"));
	CU_OK(cu.cuStreamDestroy(stream));
	CU_OK(cu.cuCtxPopCurrent(&popped));
	CHECK_OK(shard_loader_release_after(t.l, &b[0], t.stream, &fixture_err));
	CHECK_EQ(shard_loader_release_after(t.l, &b[0], t.stream, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "the caller does not hold slot 0 of the device: was this batch released before, or "
			       "does it belong to another loader?");
	other = b[1];
	other.slot = DEVICE_BATCH | 7;
	CHECK_EQ(shard_loader_release_after(t.l, &other, t.stream, &err), SHARD_E_ARGUMENT);
	other = b[1];
	other.position++;
	CHECK_EQ(shard_loader_release_after(t.l, &other, t.stream, &err), SHARD_E_ARGUMENT);
	fake->settle();
	CHECK_SOUND_TRAINING();
	training_close(&t); /* with two batches lent */
	fake->drop_context(context);
	trainer_check_clean();
}

static int next_in_child(struct training *t)
{
	struct shard_batch b;

	if (shard_loader_next_device(t->l, t->stream, &b, &err) != SHARD_E_ARGUMENT ||
	    !strstr(err.message, "this loader belongs to process"))
		return 1;
	if (shard_loader_release_after(t->l, &t->lent.batch[0], t->stream, &err) != SHARD_E_ARGUMENT)
		return 2;
	if (shard_loader_pin_problem(t->l, &err) != SHARD_END)
		return 3;
	shard_loader_close(t->l);
	return 0;
}

TEST(a_child_can_only_close)
{
	struct training t;
	pid_t pid;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	training_open(&t, (struct shard_loader_options){.batch_records = 9}, NON_BLOCKING, 0);
	fake->seed(0, 1000);
	train(&t, 3, 1);
	if (child_begin(&pid, 20))
		_exit(next_in_child(&t));
	CHECK_EQ(child_end(pid), 0);
	train(&t, 10, 1);
	train_give_all(&t);
	CHECK_SOUND_TRAINING();
	training_close(&t);
	trainer_check_clean();
}

TEST_MAIN()
