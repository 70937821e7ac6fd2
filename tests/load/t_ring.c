/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_ring.c - the memory of a loader: lent by the caller, allocated once, and what is counted of it
 *
 * Lent memory stands between pages that nobody may touch.  A loader that says it needs less than it
 * writes to, and one that allocates while it fills, must be noticed.
 *
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=ring_bytes,--wrap=malloc,--wrap=calloc,--wrap=realloc
 * LDFLAGS: -Wl,--wrap=aligned_alloc,--wrap=buffer_clear_pages
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "libshard/base/mem.h"
#include "tests/load/inject.h"

#define PAGE 4096u

static const uint64_t sizes[] = {40, 1, 0, 62};
static struct wanted wanted;

/* ---- wraps ---- */

static bool says_too_little;
static atomic_bool counting;
static atomic_uint allocated;
static _Thread_local bool within; /* a sanitizer's aligned_alloc may come back through malloc */

uint64_t __real_ring_bytes(const struct ring *r);
uint64_t __wrap_ring_bytes(const struct ring *r);

uint64_t __wrap_ring_bytes(const struct ring *r)
{
	return __real_ring_bytes(r) - (says_too_little ? PAGE : 0);
}

static atomic_ulong cleared_bytes;
static _Atomic(uint8_t *) cleared_last;

void __real_buffer_clear_pages(void *buffer, size_t bytes);
void __wrap_buffer_clear_pages(void *buffer, size_t bytes);

void __wrap_buffer_clear_pages(void *buffer, size_t bytes)
{
	atomic_store(&cleared_last, buffer);
	atomic_fetch_add(&cleared_bytes, bytes);
	__real_buffer_clear_pages(buffer, bytes);
}

#define COUNTED(name_, types_, names_)                   \
	void *__real_##name_ types_;                     \
	void *__wrap_##name_ types_;                     \
	void *__wrap_##name_ types_                      \
	{                                                \
		bool outer = !within;                    \
		void *p;                                 \
                                                         \
		if (outer && atomic_load(&counting))     \
			atomic_fetch_add(&allocated, 1); \
		within = true;                           \
		p = __real_##name_ names_;               \
		within = !outer;                         \
		return p;                                \
	}

COUNTED(malloc, (size_t bytes), (bytes))
COUNTED(calloc, (size_t count, size_t bytes), (count, bytes))
COUNTED(realloc, (void *old, size_t bytes), (old, bytes))
COUNTED(aligned_alloc, (size_t align, size_t bytes), (align, bytes))

/* ---- lending ---- */

struct region {
	uint8_t *map, *memory;
	uint64_t bytes; /* of memory; a closed page stands on either side */
};

static void region_open(struct region *r, uint64_t bytes)
{
	r->bytes = (bytes + PAGE - 1) / PAGE * PAGE;
	r->map = mmap(NULL, r->bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(r->map != MAP_FAILED);
	r->memory = r->map + PAGE;
	CHECK_EQ(mprotect(r->memory, r->bytes, PROT_READ | PROT_WRITE), 0);
	memset(r->memory, 0x5a, r->bytes);
}

static void region_close(struct region *r)
{
	munmap(r->map, r->bytes + 2 * PAGE);
}

TEST(memory_that_does_not_fit_is_refused)
{
	struct shard_error err;
	struct shard_loader *l;
	struct shard_batch b;
	struct region r;
	uint64_t bytes;

	inject_nothing();
	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	wanted_open(&wanted, (struct shard_loader_options){.batch_records = 10, .slot_count = 3});
	l = loader_of(&wanted);
	bytes = shard_loader_ring_bytes(l);
	/* 10 x 4,800 bytes, 10 labels, 10 weights, each on pages of its own */
	CHECK_EQ(bytes, 3 * (49152 + 4096 + 4096));
	region_open(&r, bytes + PAGE);
	for (uint64_t shift = 1; shift < PAGE; shift *= 2) {
		STORY("%" PRIu64 " behind a page", shift);
		CHECK_EQ(shard_loader_lend(l, r.memory + shift, bytes, &err), SHARD_E_ARGUMENT);
	}
	CHECK_EQ(shard_loader_lend(l, r.memory, bytes - 1, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "the ring needs 172032 bytes, at a multiple of 4096"));
	CHECK_EQ(shard_loader_lend(l, r.memory, 0, NULL), SHARD_E_ARGUMENT);
	CHECK_EQ(shard_loader_lend(l, NULL, bytes, NULL), SHARD_E_ARGUMENT);
	CHECK_OK(shard_loader_lend(l, r.memory, bytes, &fixture_err));
	CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
	CHECK_EQ(shard_loader_lend(l, r.memory, bytes, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "the ring exists already"));
	CHECK_NO_COMPLAINT(&wanted);
	close_loader(l);
	region_close(&r);
}

/* Is what a batch shows within the region, and in nobody else's part of it? */
static void check_inside(const struct region *r, const struct shard_batch *b, uint8_t *owner, uint8_t mark)
{
	for (uint32_t f = 0; f < schema.field_count; f++) {
		const uint8_t *at = b->field[f].data,
			      *end = at + (b->record_count - 1) * b->field[f].stride + schema.field[f].bytes;

		CHECK(at >= r->memory && end <= r->memory + r->bytes);
		for (uint64_t page = (uint64_t)(at - r->memory) / PAGE; page <= (uint64_t)(end - 1 - r->memory) / PAGE;
		     page++) {
			CHECK(!owner[page] || owner[page] == mark);
			owner[page] = mark;
		}
	}
	for (uint32_t g = 0; g < schema.group_count; g++)
		CHECK_EQ((uintptr_t)b->group[g].data % PAGE, 0);
}

/* Three epochs in lent memory, which is a page longer than it must be. */
static void run_in(struct region *r, uint32_t slots, uint32_t threads)
{
	struct lent lent = {.count = 0};
	struct shard_loader *l;
	struct prng p = {slots};
	struct shard_batch b[6];
	uint8_t owner[4000] = {0};
	uint64_t bytes;

	wanted_open(&wanted,
		    (struct shard_loader_options){
			    .batch_records = 10, .slot_count = slots, .thread_count = threads, .tail = SHARD_KEEP});
	l = loader_of(&wanted);
	bytes = shard_loader_ring_bytes(l);
	region_open(r, bytes);
	CHECK_OK(shard_loader_lend(l, r->memory, r->bytes, &fixture_err));
	consume(&wanted, l, &lent, &p, 25, slots - 1);
	give_all(&wanted, l, &lent);
	for (uint32_t i = 0; i < slots; i++) {
		CHECK_EQ(wanted_next(&wanted, l, &b[i]), SHARD_OK);
		check_inside(r, &b[i], owner, (uint8_t)(i + 1));
	}
	close_loader(l); /* it stays the caller's, and what the last batch held is still there */
	for (uint32_t i = 0; i < 10; i++)
		CHECK_MEM((const uint8_t *)b[0].group[0].data + i * 4800,
			  content[0] + wanted.order[b[0].epoch][b[0].position + i] * schema.group[0].stride, 4800);
	memset(r->memory, 1, r->bytes);
}

TEST(a_lent_ring_holds_all_batches_and_nothing_else_is_touched)
{
	struct region r;
	pid_t pid;
	int status;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (uint32_t slots = 2; slots <= 6; slots += 2)
		for (uint32_t threads = 1; threads <= 3; threads++) {
			STORY("%u slots, %u threads", slots, threads);
			inject_nothing();
			run_in(&r, slots, threads);
			CHECK_NO_COMPLAINT(&wanted);
			region_close(&r);
		}
	STORY("a loader that says too little");
	fflush(stdout);
	pid = fork();
	if (!pid) {
		says_too_little = true;
		if (!freopen("/dev/null", "w", stderr)) /* a sanitizer would tell of it at length */
			_exit(0);
		alarm(120);
		run_in(&r, 2, 1);
		_exit(wanted.complaint[0] ? 1 : 0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(status != 0);
}

/* ---- batches whose memory is kept ---- */

#define KEPT 25

static struct shard_loader *open_with_slots(void **memory, uint64_t *slot_bytes)
{
	struct shard_loader *l;

	wanted_open(&wanted, (struct shard_loader_options){
				     .batch_records = 10, .slot_count = 3, .thread_count = 2, .tail = SHARD_KEEP});
	l = loader_of(&wanted);
	*slot_bytes = shard_loader_ring_bytes(l) / 3;
	for (int i = 0; i < 3; i++)
		memory[i] = aligned_alloc(PAGE, *slot_bytes);
	CHECK_OK(shard_loader_lend_slots(l, memory, 3, &fixture_err));
	return l;
}

/* Returns how many batches of two epochs have other bytes at the end than they came with. */
static unsigned count_changed(bool swap)
{
	void *memory[3 + KEPT], *copy[KEPT];
	struct shard_batch b[KEPT];
	unsigned changed = 0, count = 0;
	struct shard_loader *l;
	uint64_t slot_bytes;
	int rc;

	l = open_with_slots(memory, &slot_bytes);
	for (int i = 0; i < KEPT; i++) {
		memory[3 + i] = aligned_alloc(PAGE, slot_bytes);
		copy[i] = aligned_alloc(PAGE, slot_bytes);
	}
	while (count < KEPT) {
		rc = wanted_next(&wanted, l, &b[count]);
		if (rc == SHARD_END)
			continue;
		CHECK_EQ(rc, SHARD_OK);
		memcpy(copy[count], b[count].group[0].data, b[count].record_count * 4800u);
		if (swap)
			CHECK_OK(shard_loader_swap(l, &b[count], memory[3 + count], &fixture_err));
		else
			CHECK_OK(shard_loader_release(l, &b[count], &fixture_err));
		count++;
	}
	CHECK_NO_COMPLAINT(&wanted);
	close_loader(l);
	for (int i = 0; i < KEPT; i++) {
		changed += memcmp(copy[i], b[i].group[0].data, b[i].record_count * 4800u) != 0;
		free(copy[i]);
	}
	for (int i = 0; i < 3 + KEPT; i++)
		free(memory[i]);
	return changed;
}

TEST(a_batch_that_was_swapped_keeps_its_bytes)
{
	inject_nothing();
	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	CHECK_EQ(count_changed(true), 0);
	CHECK(count_changed(false) > 0);
}

TEST(a_swap_that_cannot_be_is_refused)
{
	struct shard_error err;
	struct shard_loader *l;
	struct shard_batch b;
	void *memory[4], *odd[3];
	uint64_t slot_bytes;

	inject_nothing();
	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	l = open_with_slots(memory, &slot_bytes);
	memory[3] = aligned_alloc(PAGE, slot_bytes);
	CHECK_EQ(shard_loader_lend_slots(l, memory, 4, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "memory for 4 slots is lent; the ring has 3");
	memcpy(odd, memory, sizeof(odd));
	odd[2] = (uint8_t *)memory[2] + 64;
	CHECK_EQ(shard_loader_lend_slots(l, odd, 3, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "it needs 57344 bytes, at a multiple of 4096"));
	CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
	CHECK_EQ(shard_loader_lend_slots(l, memory, 3, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "the ring exists already; call shard_loader_lend_slots() before"));
	CHECK_EQ(shard_loader_swap(l, &b, NULL, &err), SHARD_E_ARGUMENT);
	CHECK_EQ(shard_loader_swap(l, &b, odd[2], &err), SHARD_E_ARGUMENT);
	CHECK_OK(shard_loader_swap(l, &b, memory[3], &fixture_err)); /* the caller held it all the time */
	CHECK_EQ(shard_loader_swap(l, &b, memory[3], &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "was this batch released before"));
	close_loader(l);
	for (int i = 0; i < 4; i++)
		free(memory[i]);

	STORY("the loader's own memory");
	l = loader_of(&wanted);
	wanted_seek(&wanted, 0, 0);
	CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
	CHECK_EQ(shard_loader_swap(l, &b, (void *)(uintptr_t)PAGE, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "which nobody can keep; lend memory with shard_loader_lend_slots()"));
	CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	close_loader(l);
}

/* Returns how much was cleared until the first batch was there. */
static uint64_t clear_once(bool lent, uint64_t *slot_bytes)
{
	struct shard_loader *l;
	struct shard_batch b;
	void *memory;

	wanted_open(&wanted, (struct shard_loader_options){.batch_records = 10, .slot_count = 2});
	l = loader_of(&wanted);
	*slot_bytes = shard_loader_ring_bytes(l) / 2;
	memory = aligned_alloc(PAGE, 2 * *slot_bytes);
	if (lent)
		CHECK_OK(shard_loader_lend(l, memory, 2 * *slot_bytes, &fixture_err));
	atomic_store(&cleared_bytes, 0);
	CHECK_OK(shard_loader_next(l, &b, &fixture_err));
	if (atomic_load(&cleared_bytes))
		CHECK((const uint8_t *)b.group[0].data - atomic_load(&cleared_last) < (ptrdiff_t)*slot_bytes);
	CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	close_loader(l);
	free(memory);
	return atomic_load(&cleared_bytes);
}

/* The slots are smaller than a huge page, so all of the first one is cleared at once. */
TEST(pages_of_the_first_slot_are_cleared_while_it_is_filled)
{
	uint64_t slot_bytes, cleared = 0;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	inject_nothing();
	inject.delay_us = 20000; /* up to that: a thread may be done before it is looked at */
	for (int i = 0; i < 100 && !cleared; i++)
		cleared = clear_once(false, &slot_bytes);
	CHECK_EQ(cleared, slot_bytes);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(clear_once(true, &slot_bytes), 0);
}

/* ---- what is allocated ---- */

/*
 * Allocations of a loader from its first next on, without those of its ring and threads, in so many
 * epochs.
 */
static unsigned allocations(struct shard_loader *l, unsigned epochs, bool from_the_start)
{
	struct lent lent = {.count = 0};
	struct prng p = {epochs};
	unsigned calls = epochs * (unsigned)(shard_loader_step_count(l) + 1);

	atomic_store(&allocated, 0);
	atomic_store(&counting, from_the_start);
	consume(&wanted, l, &lent, &p, 1, 2);
	atomic_store(&counting, true);
	consume(&wanted, l, &lent, &p, calls - 1, 2);
	give_all(&wanted, l, &lent);
	atomic_store(&counting, false);
	CHECK_NO_COMPLAINT(&wanted);
	return atomic_load(&allocated);
}

TEST(nothing_is_allocated_once_all_shards_are_open)
{
	for (uint32_t side = 8; side <= 40; side += 32)
		for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++) {
			open_photos(side, codec, sizes, COUNT(sizes));
			for (uint32_t threads = 1; threads <= 4; threads++) {
				struct shard_loader *l;
				unsigned count;

				STORY("side %u, codec %u, %u threads", side, codec, threads);
				inject_nothing();
				wanted_open(&wanted, (struct shard_loader_options){.batch_records = 9,
										   .tail = SHARD_KEEP,
										   .thread_count = threads});
				l = loader_of(&wanted);
				allocations(l, 1, false); /* opens what there is */
				count = allocations(l, 3, true);
				close_loader(l);
				CHECK_EQ(count, 0);
			}
		}
}

/*
 * A shard when it is first needed: its reader, its path twice, its pages, reader and pages once
 * more as they get shorter, and for each group which units were checked.
 */
TEST(what_a_new_shard_costs)
{
	struct shard_loader *l;
	unsigned first, again;

	inject_nothing();
	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	/* Direct, because a map allocates for what is not in memory. */
	wanted_open(&wanted,
		    (struct shard_loader_options){
			    .batch_records = 9, .tail = SHARD_KEEP, .thread_count = 1, .path = SHARD_PATH_DIRECT});
	l = loader_of(&wanted);
	first = allocations(l, 2, true);
	close_loader(l);
	l = loader_of(&wanted);
	wanted_seek(&wanted, 0, 0);
	again = allocations(l, 2, true);
	close_loader(l);
	CHECK_EQ(first - again, 3 * (6 + 2)); /* the empty shard is never opened */
}

static int fill_with_memory(struct feed *f)
{
	mem_free(mem_alloc(f->steps.rank.batch_records)); /* what a careless filler would do */
	return 0;
}

TEST(an_allocation_is_noticed)
{
	struct shard_loader *l;
	unsigned count;

	inject_nothing();
	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	wanted_open(&wanted, (struct shard_loader_options){.batch_records = 9, .slot_count = 4});
	l = loader_of(&wanted);
	allocations(l, 1, false);
	close_loader(l);
	inject.meanwhile = fill_with_memory;
	l = loader_of(&wanted);
	wanted_seek(&wanted, 0, 0);
	count = allocations(l, 2, false);
	close_loader(l);
	CHECK(count >= 2 * 11 - 5); /* one for each batch, but for those that were ready before it was counted */
}

/* ---- what is counted ---- */

static struct shard_loader_stats stats_after(const struct shard_dataset_options *d, struct shard_loader_options o,
					     unsigned epochs)
{
	struct shard_loader_stats s, zero;
	struct lent lent = {.count = 0};
	struct shard_loader *l;
	struct prng p = {0};

	reopen(d);
	wanted_open(&wanted, o);
	l = loader_of(&wanted);
	memset(&zero, 0, sizeof(zero));
	memset(&s, 0xff, sizeof(s));
	shard_loader_stats(l, &s);
	CHECK_MEM(&s, &zero, sizeof(s));
	consume(&wanted, l, &lent, &p, epochs * (unsigned)(shard_loader_step_count(l) + 1), 0);
	CHECK_NO_COMPLAINT(&wanted);
	shard_loader_stats(l, &s);
	close_loader(l);
	return s;
}

TEST(statistics_add_up)
{
	struct shard_loader_stats s;

	inject_nothing();
	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (uint32_t threads = 1; threads <= 4; threads++)
		for (uint32_t slots = 2; slots <= 5; slots++) {
			const struct shard_loader_options o = {
				.batch_records = 10, .slot_count = slots, .thread_count = threads, .tail = SHARD_KEEP};

			STORY("%u threads, %u slots", threads, slots);
			s = stats_after(NULL, o, 3);
			CHECK_EQ(s.batch_count, 33);
			CHECK_EQ(s.record_count, 309);
			CHECK_EQ(s.bytes, 309 * (4800 + 8 + 12));
			CHECK(s.filled_record_count >= s.record_count &&
			      s.filled_record_count <= s.record_count + slots * 10);
			CHECK_EQ(s.filled_bytes, s.filled_record_count * (4800 + 8 + 12));
			CHECK_EQ(s.thread_count, threads);
			CHECK(s.elapsed_ns && s.fill_ns && s.fill_cpu_ns && s.fill_ns <= threads * s.elapsed_ns);
			CHECK(s.next_wait_ns <= s.elapsed_ns && s.next_wait_count <= s.batch_count);
		}
}

static bool waits_for_slow_threads(struct shard_loader_options o)
{
	struct shard_loader_stats s;

	inject_nothing();
	inject.delay_us = 20000;
	s = stats_after(NULL, o, 1);
	return s.next_wait_ns > s.elapsed_ns / 2 && s.next_wait_count >= 8 && s.fill_ns > s.elapsed_ns / 2 &&
	       s.fill_cpu_ns < s.fill_ns / 2; /* asleep is not at work */
}

static bool waits_for_a_slow_consumer(void)
{
	struct shard_loader_stats s;
	struct shard_loader *l;
	struct shard_batch b;

	inject_nothing();
	l = loader_of(&wanted);
	for (int i = 0; i < 10; i++) {
		CHECK_OK(shard_loader_next(l, &b, &fixture_err));
		usleep(20000);
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
	shard_loader_stats(l, &s);
	close_loader(l);
	return s.slot_wait_ns > s.elapsed_ns / 2 && s.next_wait_ns < s.elapsed_ns / 4;
}

/*
 * Times show which side waits for the other, in one of twenty tries: other programs may delay a
 * thread.
 */
TEST(waiting_is_counted_on_the_right_side)
{
	const struct shard_loader_options o = {.batch_records = 10, .slot_count = 2, .thread_count = 1};
	bool threads = false, consumer = false;

	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	for (int i = 0; i < 20 && !threads; i++)
		threads = waits_for_slow_threads(o);
	CHECK(threads);
	for (int i = 0; i < 20 && !consumer; i++)
		consumer = waits_for_a_slow_consumer();
	CHECK(consumer);
}

/* 103 images are a unit each; their labels are in units of 4: 10 + 1 + 16. */
TEST(units_are_checked_once)
{
	const struct shard_loader_options one = {.batch_records = 10, .tail = SHARD_KEEP, .thread_count = 1};
	struct shard_dataset_options d = {.size = sizeof(d), .check = SHARD_CHECK_FIRST};
	struct shard_loader_stats s;

	inject_nothing();
	meta_unit = 4;
	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (unsigned epochs = 1; epochs <= 3; epochs++)
		CHECK_EQ(stats_after(&d, one, epochs).checked_unit_count, 103 + 27);
	d.check = SHARD_CHECK_NEVER;
	CHECK_EQ(stats_after(&d, one, 2).checked_unit_count, 0);
	d.check = SHARD_CHECK_ALWAYS; /* each time that a record is delivered */
	s = stats_after(&d, one, 2);
	CHECK_EQ(s.checked_unit_count, 2 * s.filled_record_count);
	d.check = SHARD_CHECK_FIRST;
	/* rows of a unit come to several at once: one hashes it */
	for (uint32_t threads = 2; threads <= 6; threads++) {
		struct shard_loader_options o = one;

		o.thread_count = threads;
		s = stats_after(&d, o, 2);
		CHECK_EQ(s.checked_unit_count, 103 + 27);
	}
	meta_unit = 0;
}

TEST_MAIN()
