/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_device_ring.c - the ring that a GPU reads: page-locked by the loader or by its owner, or not at
 * all; and host batches that the trainer copies by itself
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full -Wl,--wrap=slot_fill
 * LDFLAGS: -Wl,--wrap=cuda_pin_most_bytes,--wrap=cuda_pin
 */
#include <sys/mman.h>

#include "shard_gpu.h"
#include "tests/cuda/training.h"

static struct shard_error err;
static uint64_t most_bytes; /* 0: what the product says */

uint64_t __real_cuda_pin_most_bytes(void);
uint64_t __wrap_cuda_pin_most_bytes(void);

static atomic_bool pin_stuck; /* all but the first wait until this is over */
static atomic_uint pin_count;
static atomic_uint pin_us; /* each takes that long */

int __real_cuda_pin(const struct cuda_device *d, void *memory, uint64_t bytes, struct shard_error *e);
int __wrap_cuda_pin(const struct cuda_device *d, void *memory, uint64_t bytes, struct shard_error *e);

int __wrap_cuda_pin(const struct cuda_device *d, void *memory, uint64_t bytes, struct shard_error *e)
{
	if (atomic_load(&pin_stuck) && atomic_fetch_add(&pin_count, 1))
		while (atomic_load(&pin_stuck))
			usleep(1000);
	usleep(atomic_load(&pin_us));
	return __real_cuda_pin(d, memory, bytes, e);
}

uint64_t __wrap_cuda_pin_most_bytes(void)
{
	return most_bytes ? most_bytes : __real_cuda_pin_most_bytes();
}

/* ---- page-locks ---- */

TEST(where_page_locks_are_refused_all_goes_on_and_is_explained)
{
	struct training t;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (unsigned nth = 1; nth <= 4; nth++) {
		struct shard_loader_stats s;
		char head[200];

		STORY("the page-lock of slot %u", nth - 1);
		training_open(&t, (struct shard_loader_options){.batch_records = 9}, NON_BLOCKING, nth);
		fake->fail("cuMemHostRegister", nth, 2);
		fake->seed(nth, 200);
		train(&t, 20, 1);
		train_give_all(&t);
		CHECK_SOUND_TRAINING();
		shard_loader_stats(t.l, &s);
		CHECK(s.pageable_bytes > 0 && s.pageable_bytes <= s.device_bytes);
		CHECK_EQ(s.pinned_bytes, (nth - 1) * shard_loader_ring_bytes(t.l) / 4);
		CHECK_EQ(fake->count("cuMemHostRegister"), nth); /* one refusal is enough */
		CHECK(fake->sins(FAKE_UNREGISTERED) > 0);
		CHECK_EQ(shard_loader_pin_problem(t.l, &err), SHARD_OK);
		CHECK_EQ(err.status, SHARD_E_DEVICE);
		CHECK_EQ(err.os_code, 2);
		snprintf(head, sizeof(head),
			 "slot %u of 4 of the ring cannot be page-locked (cuMemHostRegister of 0.1 MiB: "
			 "CUDA_ERROR_OUT_OF_MEMORY "
			 "(out of memory)).  This slot and all after it reach the GPU through pageable memory",
			 nth - 1);
		CHECK_EQ(strncmp(err.message, head, strlen(head)), 0);
		CHECK(strstr(err.message, "(ulimit -l), and this control group has "));
		CHECK(strstr(err.message, "ask for fewer slots, or for batches of less than 0.1 MiB"));
		training_close(&t);
		CHECK_STR(fake->leaks(), "");
	}
}

/*
 * Page-locking that does not come back, as drivers have been seen to do: nobody waits for it for
 * ever, nor again.
 */
TEST(a_page_lock_that_takes_too_long_holds_up_nobody)
{
	struct shard_loader_stats s;
	struct training t;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	training_open(&t, (struct shard_loader_options){.batch_records = 9}, NON_BLOCKING, 1);
	atomic_store(&pin_stuck, true);
	train(&t, 30, 1);
	CHECK(atomic_load(&pin_stuck)); /* it still was */
	CHECK_EQ(shard_loader_pin_problem(t.l, &err), SHARD_OK);
	CHECK_STR(err.message, "slot 1 of 4 of the ring is still being page-locked after 2 s.  Slots that are not "
			       "page-locked reach the GPU through pageable memory, which is slower; see the "
			       "kernel's log");
	shard_loader_stats(t.l, &s);
	CHECK(s.pageable_bytes > 0 && s.pageable_bytes < s.device_bytes);
	CHECK_EQ(s.pinned_bytes, shard_loader_ring_bytes(t.l) / 4);
	CHECK(s.elapsed_ns < 20 * UINT64_C(1000000000)); /* once 2 s, not for each batch */
	atomic_store(&pin_stuck, false);
	train_give_all(&t);
	CHECK_SOUND_TRAINING();
	training_close(&t);
	CHECK_STR(fake->leaks(), "");
}

/*
 * As one of several GiB is: no copy crosses the end of a page-lock, which the driver would refuse.
 */
TEST(a_large_slot_is_page_locked_in_chunks)
{
	struct training t;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (unsigned nth = 0; nth <= 20; nth += 5) {
		uint64_t slot_bytes, chunks;

		STORY("page-lock %u is refused", nth);
		most_bytes = 8192;
		training_open(&t, (struct shard_loader_options){.batch_records = 9}, NON_BLOCKING, nth);
		fake->fail("cuMemHostRegister", nth, 2);
		slot_bytes = shard_loader_ring_bytes(t.l) / 4;
		chunks = (slot_bytes + 8191) / 8192;
		CHECK_EQ(slot_bytes % 8192, 4096);
		train(&t, 20, 1);
		train_give_all(&t);
		CHECK_SOUND_TRAINING();
		CHECK_EQ(fake->count("cuMemHostRegister"), nth ? nth : 4 * chunks);
		/* of the slot that was refused half-way */
		CHECK_EQ(fake->count("cuMemHostUnregister"), nth ? (nth - 1) % chunks : 0);
		CHECK(nth || fake->count("cuMemcpyHtoDAsync") > 6 * 20);
		most_bytes = 0;
		training_close(&t);
		if (!nth)
			trainer_check_clean();
		CHECK_STR(fake->leaks(), "");
	}
}

/* In memory of the caller's, of which it page-locked so many bytes. */
static void run_in_lent_memory(uint64_t locked_slots, struct shard_loader_stats *s)
{
	struct training t;
	uint64_t bytes, locked;
	void *memory;

	training_open(&t, (struct shard_loader_options){.batch_records = 9}, NON_BLOCKING, 5);
	bytes = shard_loader_ring_bytes(t.l);
	locked = bytes / 4 * locked_slots;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED);
	if (locked)
		CU_OK(cu.cuMemHostRegister(memory, locked, 1));
	CHECK_OK(shard_loader_lend(t.l, memory, bytes, &fixture_err));
	fake->reset();
	fake->seed(1, 200);
	train(&t, 20, 1);
	train_give_all(&t);
	CHECK_SOUND_TRAINING();
	shard_loader_stats(t.l, s);
	CHECK_EQ(shard_loader_pin_problem(t.l, &err), locked < bytes ? SHARD_OK : SHARD_END);
	close_loader(t.l);
	CHECK_EQ(fake->count("cuMemHostRegister"), 0);
	CHECK_EQ(fake->count("cuMemHostUnregister"), 0);
	if (locked)
		CU_OK(cu.cuMemHostUnregister(memory));
	trainer_leave(&t);
	munmap(memory, bytes);
	CHECK_STR(fake->leaks(), "");
}

TEST(memory_that_was_lent_is_its_owners_to_page_lock)
{
	struct shard_loader_stats s;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	run_in_lent_memory(4, &s);
	CHECK_EQ(s.pageable_bytes, 0);
	CHECK_EQ(fake->sins(FAKE_UNREGISTERED), 0);
	run_in_lent_memory(0, &s);
	CHECK_EQ(s.pageable_bytes, s.device_bytes);
	CHECK_STR(err.message, "slot 0 of 4 of the ring is not page-locked, so it reaches the GPU through pageable "
			       "memory, which is slower; call cudaHostRegister() for all memory given to "
			       "shard_loader_lend() before the first batch");
	run_in_lent_memory(3, &s);
	CHECK(s.pageable_bytes > 0 && s.pageable_bytes < s.device_bytes);
	CHECK_EQ(strncmp(err.message, "slot 3 of 4 ", 12), 0);
}

TEST(a_slot_that_is_page_locked_in_part_is_refused)
{
	struct training t;
	struct shard_batch b;
	uint64_t bytes;
	uint8_t *memory;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	training_open(&t, (struct shard_loader_options){.batch_records = 9}, NON_BLOCKING, 5);
	bytes = shard_loader_ring_bytes(t.l);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED);
	CU_OK(cu.cuMemHostRegister(memory, bytes - 4096, 1));
	CHECK_OK(shard_loader_lend(t.l, memory, bytes, &fixture_err));
	CHECK_EQ(shard_loader_next_device(t.l, t.stream, &b, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message,
		     "only a part of slot 3 of 4 of the ring is page-locked; call cudaHostRegister() once, "
		     "for all "));
	/* in two pieces, so that no copy may cross them */
	CU_OK(cu.cuMemHostRegister(memory + bytes - 4096, 4096, 1));
	CHECK_EQ(train_next(&t, &b), SHARD_OK);
	CHECK_OK(shard_loader_release_after(t.l, &b, t.stream, &fixture_err));
	fake->settle();
	CHECK_SOUND_TRAINING();
	close_loader(t.l);
	CU_OK(cu.cuMemHostUnregister(memory));
	CU_OK(cu.cuMemHostUnregister(memory + bytes - 4096));
	trainer_leave(&t);
	munmap(memory, bytes);
	trainer_check_clean();
}

/* ---- host batches that a GPU copies by itself ---- */

static bool gives_at_once; /* the control */

static void train_host(struct training *t, unsigned calls)
{
	struct shard_batch b;

	while (calls-- && !wanted.complaint[0]) {
		struct shard_error e = {.message = ""};
		int rc = shard_loader_next(t->l, &b, &e);

		if (!check_next(&wanted, &b, rc, &e))
			continue;
		launch_look(t, &b, true);
		rc = gives_at_once ? shard_loader_release(t->l, &b, &e)
				   : shard_loader_release_after(t->l, &b, t->stream, &e);
		if (rc)
			complain(&wanted, "release: %s", e.message);
	}
}

TEST(a_host_batch_is_free_when_the_stream_is_done_with_it)
{
	struct training t;
	unsigned caught = 0;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (unsigned seed = 0; seed < 16; seed++) {
		gives_at_once = seed >= 8;
#if defined(__SANITIZE_THREAD__)
		if (gives_at_once) /* it would be right to complain */
			break;
#endif
		STORY("seed %u", seed);
		training_open(&t, (struct shard_loader_options){.batch_records = 9, .slot_count = 2 + seed % 3},
			      (enum stream_kind)(seed % STREAM_KINDS), seed);
		fake->seed(seed, seed % 2 ? 500 : 0); /* 0: the crew fills the slot while it is being released */
		t.slow_us = seed % 2 ? 500 : 0;
		train_host(&t, 30);
		fake->settle();
		CHECK_NO_COMPLAINT(&wanted);
		if (!gives_at_once)
			CHECK_NO_COMPLAINT(&gpu);
		caught += gpu.complaint[0] != 0;
		training_close(&t);
		trainer_check_clean();
	}
#if !defined(__SANITIZE_THREAD__)
	CHECK(caught > 0);
#endif
	gives_at_once = false;
}

/* Returns how many batches of 30 lie in memory that the driver knows as page-locked when they come. */
static unsigned count_pinned(struct training *t, bool pin)
{
	struct shard_batch b;
	unsigned pinned = 0, count = 0;

	if (pin)
		CHECK_OK(shard_loader_pin(t->l, t->stream, &fixture_err));
	while (count < 30) {
		int rc = wanted_next(&wanted, t->l, &b);

		if (rc == SHARD_END)
			continue;
		CHECK_EQ(rc, SHARD_OK);
		count++;
		pinned += t->l->cuda && cuda_is_pinned(t->l->cuda, b.group[0].data);
		launch_look(t, &b, true);
		if (pin) {
			CHECK_OK(shard_loader_release_after(t->l, &b, t->stream, &fixture_err));
		} else {
			fake->settle();
			CHECK_OK(shard_loader_release(t->l, &b, &fixture_err));
		}
	}
	fake->settle();
	CHECK_SOUND_TRAINING();
	return pinned;
}

TEST(a_ring_for_copies_of_the_trainer_is_page_locked_from_the_first_batch_on)
{
	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (unsigned refused = 0; refused <= 4; refused++) {
		struct shard_loader_stats s;
		struct training t;

		STORY("page-lock %u is refused; 0 is none", refused);
		training_open(&t, (struct shard_loader_options){.batch_records = 9}, NON_BLOCKING, refused);
		fake->fail("cuMemHostRegister", refused, 2);
		fake->seed(refused, 200);
		atomic_store(&pin_us, refused ? 0 : 20000); /* longer than it takes to fill a slot */
		if (refused)
			CHECK(count_pinned(&t, true) < 30);
		else
			CHECK_EQ(count_pinned(&t, true), 30);
		CHECK_EQ(shard_loader_pin_problem(t.l, &err), refused ? SHARD_OK : SHARD_END);
		shard_loader_stats(t.l, &s);
		CHECK_EQ(s.pinned_bytes, (refused ? refused - 1 : 4) * shard_loader_ring_bytes(t.l) / 4);
		CHECK_EQ(s.device_bytes, 0);
		training_close(&t);
		CHECK_EQ(fake->count("cuMemHostUnregister"), refused ? refused - 1 : 4);
		CHECK_STR(fake->leaks(), "");
	}
	STORY("nobody asked for it");
	{
		struct training t;

		training_open(&t, (struct shard_loader_options){.batch_records = 9}, NON_BLOCKING, 1);
		CHECK_EQ(count_pinned(&t, false), 0);
		training_close(&t);
		trainer_check_clean();
	}
}

TEST(a_ring_of_batches_on_a_gpu_is_not_for_copies_of_the_trainer)
{
	struct shard_batch b;
	struct training t;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	training_open(&t, pool_options(1), NON_BLOCKING, 1);
	CHECK_EQ(shard_loader_pin(t.l, t.stream, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "this loader has a pool on a GPU"));
	training_close(&t);
	training_open(&t, pool_options(0), NON_BLOCKING, 1);
	CHECK_EQ(train_next(&t, &b), SHARD_OK);
	CHECK_EQ(shard_loader_pin(t.l, t.stream, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "this loader has delivered to a GPU"));
	CHECK_OK(shard_loader_release_after(t.l, &b, t.stream, &fixture_err));
	training_close(&t);
	trainer_check_clean();

	STORY("a batch whose slot is page-locked cannot be swapped");
	training_open(&t, pool_options(0), NON_BLOCKING, 1);
	CHECK_OK(shard_loader_pin(t.l, t.stream, &fixture_err));
	CHECK_EQ(wanted_next(&wanted, t.l, &b), SHARD_OK);
	CHECK_EQ(shard_loader_swap(t.l, &b, (void *)(uintptr_t)4096, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "this loader has a GPU, which knows the memory of each slot"));
	CHECK_OK(shard_loader_release_after(t.l, &b, t.stream, &fixture_err));
	training_close(&t);
	trainer_check_clean();
}

TEST(a_loader_may_begin_on_the_host)
{
	struct training t;
	struct shard_batch b;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	training_open(&t, (struct shard_loader_options){.batch_records = 9}, NON_BLOCKING, 4);
	CHECK_EQ(wanted_next(&wanted, t.l, &b), SHARD_OK);
	train(&t, 5, 1);
	check_rows(&wanted, &b); /* still lent */
	CHECK_OK(shard_loader_release(t.l, &b, &fixture_err));
	train(&t, 15, 1);
	train_give_all(&t);
	CHECK_SOUND_TRAINING();
	training_close(&t);
	trainer_check_clean();
}

TEST_MAIN()
