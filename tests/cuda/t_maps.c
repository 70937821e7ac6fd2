/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_maps.c - records that a GPU which is not there reads out of the page cache: the same batches as
 * through the ring, within the limits
 *
 * That these tests would see memory that is given back too early, and a record in place of another,
 * the last one shows.
 *
 * LDFLAGS: -Wl,--disable-new-dtags,-rpath,$ORIGIN/../cuda/full
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=cuda_map_least_bytes,--wrap=cuda_map_piece_bytes
 * LDFLAGS: -Wl,--wrap=cuda_pin_map,--wrap=available_memory_bytes,--wrap=file_map_part
 * LDFLAGS: -Wl,--wrap=cuda_copy_pieces,--wrap=file_unmap,--wrap=file_seems_cached,--wrap=cuda_unpin
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "libshard/base/bytes.h"
#include "libshard/io/io.h"
#include "shard_gpu.h"
#include "tests/child.h"
#include "tests/cuda/check_twin.h"
#include "tests/cuda/deaf.h"
#include "tests/cuda/runs.h"

#if defined(__SANITIZE_THREAD__)
#define IS_TSAN 1 /* streams that are not joined race, as they should */
#else
#define IS_TSAN 0
#endif

static struct shard_error err;

/* ---- wraps ---- */

static uint64_t piece_bytes;
static _Atomic uint64_t available;	 /* 0: what the machine has */
static atomic_uint pin_count, pin_fails; /* page-locks of maps, and the one that fails; 0: none does */
static int pin_result;			 /* of the driver, then */
static uint8_t *neighbours;		 /* where the next map begins; NULL: anywhere */
static uint64_t shift;			 /* of each copy out of the page cache, for the control */
static bool joins_nothing;		 /* the streams that share such copies, for the control */
static bool has_batches = true;		 /* the driver has a call for many copies (CUDA 12.8) */
static atomic_bool stays;		 /* what is unmapped; the control would end the fake driver */
static uint64_t cold_bytes;		 /* files below this are not in memory */

uint64_t __wrap_cuda_map_least_bytes(void);
uint64_t __wrap_cuda_map_piece_bytes(void);
uint64_t __real_available_memory_bytes(void);
uint64_t __wrap_available_memory_bytes(void);
int __real_cuda_pin_map(const struct cuda_device *d, const void *map, uint64_t bytes, struct shard_error *e);
int __wrap_cuda_pin_map(const struct cuda_device *d, const void *map, uint64_t bytes, struct shard_error *e);
int __real_file_map_part(int fd, uint64_t offset, uint64_t bytes, const char *path, const void **out,
			 struct shard_error *e);
int __wrap_file_map_part(int fd, uint64_t offset, uint64_t bytes, const char *path, const void **out,
			 struct shard_error *e);
int __real_cuda_copy_pieces(const struct cuda_device *d, struct cuda_pieces *p, void *stream, struct shard_error *e);
int __wrap_cuda_copy_pieces(const struct cuda_device *d, struct cuda_pieces *p, void *stream, struct shard_error *e);

static bool counts_pages; /* of maps that are to be page-locked: */
static atomic_uint pages_there, pages_missing;

void __real_file_unmap(const void *map, uint64_t bytes);
void __wrap_file_unmap(const void *map, uint64_t bytes);

bool __real_file_seems_cached(int fd, uint64_t bytes, bool *whole);
bool __wrap_file_seems_cached(int fd, uint64_t bytes, bool *whole);

bool __wrap_file_seems_cached(int fd, uint64_t bytes, bool *whole)
{
	struct stat st;

	CHECK_EQ(fstat(fd, &st), 0);
	return __real_file_seems_cached(fd, bytes, whole) && (uint64_t)st.st_size >= cold_bytes;
}

void __wrap_file_unmap(const void *map, uint64_t bytes)
{
	if (!atomic_load(&stays))
		__real_file_unmap(map, bytes);
}

uint64_t __wrap_cuda_map_least_bytes(void)
{
	return 1;
}

uint64_t __wrap_cuda_map_piece_bytes(void)
{
	return piece_bytes;
}

uint64_t __wrap_available_memory_bytes(void)
{
	uint64_t bytes = atomic_load(&available);

	return bytes ? bytes : __real_available_memory_bytes();
}

/*
 * Pages that are page-locked stay in memory when their file is cut, although the process has them no
 * more: so it was seen on an H200.  The fake driver reads as a process does.  So for a test that cuts
 * files, the pages are copies, from where it reads.
 */
static struct kept {
	const uint8_t *map;
	uint8_t *pages;
	uint64_t bytes;
} kept[64];
static bool keeps;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

static int keep(const struct cuda_device *d, const void *map, uint64_t bytes, struct shard_error *e)
{
	struct kept *k = kept;
	int rc;

	pthread_mutex_lock(&kept_lock);
	while (k->map)
		k++;
	CHECK(k < kept + COUNT(kept));
	*k = (struct kept){map, aligned_alloc(4096, bytes), bytes};
	CHECK(k->pages);
	memcpy(k->pages, map, bytes);
	rc = cuda_pin(d, k->pages, bytes, e);
	pthread_mutex_unlock(&kept_lock);
	return rc;
}

static const void *kept_at(const uint8_t *at)
{
	const void *found = at;

	pthread_mutex_lock(&kept_lock);
	for (struct kept *k = kept; k < kept + COUNT(kept); k++)
		if (k->map && at >= k->map && at < k->map + k->bytes)
			found = k->pages + (at - k->map);
	pthread_mutex_unlock(&kept_lock);
	return found;
}

void __real_cuda_unpin(const struct cuda_device *d, const void *memory);
void __wrap_cuda_unpin(const struct cuda_device *d, const void *memory);
void __wrap_cuda_unpin(const struct cuda_device *d, const void *memory)
{
	__real_cuda_unpin(d, memory);
	pthread_mutex_lock(&kept_lock);
	for (struct kept *k = kept; k < kept + COUNT(kept); k++) {
		if (!k->map || k->map != memory)
			continue;
		__real_cuda_unpin(d, k->pages);
		free(k->pages);
		k->map = NULL;
	}
	pthread_mutex_unlock(&kept_lock);
}

/* The kernel says of each page of a process whether touching it is free of a fault. */
static void count_pages(const void *map, uint64_t bytes)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry;

	CHECK(fd >= 0);
	for (uint64_t at = 0; at < bytes; at += 4096) {
		CHECK_EQ(pread(fd, &entry, sizeof(entry), (off_t)(((uintptr_t)map + at) / 4096 * sizeof(entry))),
			 sizeof(entry));
		atomic_fetch_add(entry >> 63 ? &pages_there : &pages_missing, 1);
	}
	close(fd);
}

int __wrap_cuda_pin_map(const struct cuda_device *d, const void *map, uint64_t bytes, struct shard_error *e)
{
	int rc;

	if (counts_pages)
		count_pages(map, bytes);
	if (atomic_fetch_add(&pin_count, 1) + 1 == atomic_load(&pin_fails))
		return cuda_refused(d->api, pin_result, e, "cuMemHostRegister");
	rc = __real_cuda_pin_map(d, map, bytes, e);
	return !rc && keeps ? keep(d, map, bytes, e) : rc;
}

int __wrap_file_map_part(int fd, uint64_t offset, uint64_t bytes, const char *path, const void **out,
			 struct shard_error *e)
{
	if (!neighbours)
		return __real_file_map_part(fd, offset, bytes, path, out, e);
	*out = mmap(neighbours, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, (off_t)offset);
	CHECK(*out == neighbours);
	neighbours += bytes;
	return SHARD_OK;
}

int __wrap_cuda_copy_pieces(const struct cuda_device *d, struct cuda_pieces *p, void *stream, struct shard_error *e)
{
	struct deaf_device deaf;

	for (size_t i = 0; i < p->count; i++)
		p->from[i] = kept_at((const uint8_t *)p->from[i] + shift);
	return __real_cuda_copy_pieces(joins_nothing ? make_deaf(d, &deaf) : d, p, stream, e);
}

/* ---- the right bytes ---- */

/* Photographs, and pieces of four of them: 26 or 27. */
static void open_pieces(uint32_t side)
{
	open_photos(side, SHARD_RAW, sizes, COUNT(sizes));
	piece_bytes = 4 * schema.group[0].stride;
}

static void open_maps(struct training *t, struct shard_loader_options o, uint64_t seed)
{
	atomic_store(&pin_count, 0);
	training_open(t, o, NON_BLOCKING, seed);
	check_twin_open();
	fake->seed(seed, (unsigned[]){0, 100, 500}[seed % 3]);
}

static void close_maps(struct training *t)
{
	train_give_all(t);
	CHECK_SOUND_TRAINING();
	training_close(t);
	trainer_check_clean();
	CHECK_EQ(fake->sins(FAKE_COPIED_FILE), 0);
	CHECK_EQ(fake->sins(FAKE_UNMAPPED), 0);
}

/* Take a batch whose rows the host can look at.  Returns false at the end of an epoch. */
static bool next_here(struct shard_loader *l, void *stream, struct shard_batch *b)
{
	int rc = shard_loader_next_device(l, stream, b, &err);

	if (rc == SHARD_END)
		return false;
	CHECK_EQ(rc, SHARD_OK);
	fake->settle();
	for (uint32_t f = 0; f < schema.field_count; f++)
		b->field[f].data = fake->at((uintptr_t)b->field[f].data);
	return true;
}

static void check_records(void)
{
	struct training t;
	unsigned round = 0;

	for (uint32_t side = 40; side <= 100; side += 60)
		for (uint32_t shuffle = SHARD_SEQUENTIAL; shuffle <= SHARD_SHUFFLE_WINDOWS; shuffle++)
			for (uint32_t slots = 2; slots <= 4; slots++, round++) {
				struct shard_loader_stats begin, s;

				if (shuffle == SHARD_SHUFFLE_BY_SIZE)
					continue;
				STORY("side %u, shuffle %u, %u slots, round %u", side, shuffle, slots, round);
				open_pieces(side);
				open_maps(&t,
					  (struct shard_loader_options){.batch_records = 7,
									.slot_count = slots,
									.order.shuffle = shuffle,
									.gpu.slot_count = 2 + round % 3,
									.thread_count = 1 + round % 3,
									.tail = round % 2 ? SHARD_KEEP : SHARD_PAD},
					  round);
				train(&t, 16 * 4, 1); /* all pieces are page-locked then */
				begin = stats_of(&t);
				train(&t, 16 * 2, 1);
				s = stats_of(&t);
				CHECK(s.device_bytes > begin.device_bytes);
				/* All photographs of the batches that were sent, and no label or weight. */
				CHECK_EQ((s.cached_bytes - begin.cached_bytes) % schema.group[0].stride, 0);
				CHECK((s.cached_bytes - begin.cached_bytes) * 8 >
				      (s.device_bytes - begin.device_bytes) * 7);
				CHECK(s.registered_bytes >= record_total * schema.group[0].stride);
				CHECK_EQ(s.pageable_bytes, 0);
				CHECK_EQ(shard_loader_pin_problem(t.l, &err), SHARD_END);
				CHECK_EQ(fake->count("cuMemcpyBatchAsync") > 0, has_batches);
				close_maps(&t);
			}
}

static void check_pool(void)
{
	struct training t;

	open_photos(100, SHARD_RAW, shards, COUNT(shards));
	for (unsigned round = 0; round < 6; round++) {
		struct shard_loader_options o = {.batch_records = 5,
						 .order.shuffle = SHARD_SHUFFLE_WINDOWS,
						 .order.run_records = 2,
						 .order.window_runs = 1,
						 .order.lane_count = 2,
						 .order.seed = round,
						 .thread_count = 1 + round % 3,
						 .gpu.pool_bytes = round == 5 ? SHARD_POOL_ALL : dataset_bytes() / 10};
		struct shard_loader_stats s;

		STORY("round %u", round);
		piece_bytes = 100000;
		open_pool(&t, o, round);
		run(&t, 2 * calls_of(&t) + 7, 1);
		train_give_all(&t);
		s = stats_of(&t);
		/* A pool that holds everything reads each record once. */
		CHECK(round == 5 ? !s.cached_bytes : s.cached_bytes > s.device_bytes / 3);
		CHECK_EQ(s.pageable_bytes, 0);
		finish(&t);
	}
}

/* ---- a driver from before CUDA 12.8 ---- */

static struct shard_loader_options nines(void)
{
	return (struct shard_loader_options){.batch_records = 9};
}

/* Each of these calls fails once: that is told, and the job goes on behind it. */
static void fail_in_turn(void)
{
	static const char *const calls[] = {"cuStreamCreate", "cuEventCreate", "cuEventRecord", "cuStreamWaitEvent",
					    "cuMemcpyHtoDAsync"};
	unsigned all = 0;

	open_pieces(40);
	for (unsigned round = 0; round < 8 * COUNT(calls); round++) {
		const char *call = calls[round % COUNT(calls)];
		unsigned nth = 1 + round / COUNT(calls) * 11, failed = 0;
		uint64_t epoch, position;
		struct shard_batch b;
		struct training t;

		STORY("%s, number %u", call, nth);
		open_maps(&t, nines(), round);
		if (round % COUNT(calls)) /* streams are made once */
			train(&t, 12 * 4, 1);
		train_give_all(&t);
		fake->fail(call, round % COUNT(calls) ? nth : 1 + nth / 11, 2);
		for (unsigned i = 0; i < 40 && !wanted.complaint[0]; i++) {
			int rc = shard_loader_next_device(t.l, t.stream, &b, &err);

			if (rc < 0) {
				CHECK_EQ(rc, SHARD_E_DEVICE);
				CHECK_EQ(err.os_code, 2);
				failed++;
				shard_loader_tell(t.l, &epoch, &position);
				CHECK_OK(shard_loader_seek(t.l, epoch, position, &fixture_err));
				wanted_seek(&wanted, epoch, position);
				continue;
			}
			if (check_next(&wanted, &b, rc, &err))
				launch_look(&t, &b, false);
			if (rc == SHARD_OK && shard_loader_release_after(t.l, &b, t.stream, &err)) {
				failed++;
				CHECK_OK(shard_loader_release_after(t.l, &b, t.stream, &fixture_err));
			}
		}
		CHECK(failed <= 1);
		all += failed;
		fake->fail(NULL, 0, 0);
		close_maps(&t);
	}
	CHECK(all > 4 * COUNT(calls));
}

/* Copies are queued on all streams, and the loader closes. */
static void close_at_once(void)
{
	struct training t;
	uint64_t queued = 0;

	open_pieces(40);
	for (unsigned seed = 0; seed < 10; seed++) {
		STORY("seed %u", seed);
		open_maps(&t, nines(), seed);
		train(&t, 12 * 4 + seed, 1);
		train_give_all(&t);
		fake->seed(seed, 20000);
		train(&t, 3, 1);
		while (t.lent.count)
			train_give(&t, 0);
		queued += fake->pending(); /* a thread that is held up may find all of them done */
		training_close(&t);
		CHECK_SOUND_TRAINING();
		trainer_check_clean();
	}
	CHECK(queued > 0);
}

/* Nobody waits for the streams that share the copies. */
static void lose_joins(void)
{
	struct training t;
	bool noticed;

	open_pieces(40);
	reopen(&(struct shard_dataset_options){.size = sizeof(struct shard_dataset_options),
					       .check = SHARD_CHECK_FIRST});
	for (int broken = 0; broken < 2 - IS_TSAN; broken++) {
		STORY("%s", broken ? "broken" : "sound");
		open_maps(&t, nines(), 0);
		joins_nothing = broken;
		fake->seed(0, 2000);
		for (int i = 0; i < 20 + 500 * broken && !gpu.complaint[0]; i++)
			train(&t, 12, 1);
		fake->settle();
		noticed = gpu.complaint[0];
		CHECK_EQ(noticed, broken);
		joins_nothing = false;
		wanted.complaint[0] = gpu.complaint[0] = 0;
		while (t.lent.count)
			train_give(&t, 0);
		training_close(&t);
	}
}

/*
 * A process has one driver, and never another one.  So this is the first test, and its children start
 * theirs.
 */
TEST(without_the_call_for_many_copies)
{
	static void (*const parts[])(void) = {check_records, check_pool, fail_in_turn, close_at_once, lose_joins};
	pid_t pid;

	for (size_t i = 0; i < COUNT(parts); i++) {
		if (child_begin(&pid, 120)) {
			fake = fake_find();
			fake->hide("cuMemcpyBatchAsync");
			has_batches = false;
			parts[i]();
			_exit(0);
		}
		CHECK_EQ(child_end(pid), 0);
	}
}

/* Once, or each time; what comes behind it is another matter. */
TEST(a_driver_that_refuses_many_copies_gets_them_one_by_one)
{
	struct training t;

	open_pieces(40);
	for (unsigned nth = 1; nth <= 3; nth++) {
		STORY("the %uth call", nth);
		open_maps(&t, nines(), nth);
		fake->reset();
		fake->fail("cuMemcpyBatchAsync", nth, 801);
		train(&t, 12 * 6, 1);
		train_give_all(&t);
		CHECK_SOUND_TRAINING();
		CHECK_EQ(fake->count("cuMemcpyBatchAsync"), nth); /* it is not asked again */
		CHECK_OK(shard_loader_pin_problem(t.l, &err));
		CHECK_EQ(err.status, SHARD_E_DEVICE);
		CHECK_EQ(err.os_code, 801);
		CHECK(strstr(err.message, "the GPU driver has refused a call with many copies (a batch of "));
		fake->fail(NULL, 0, 0);
		close_maps(&t);
	}
}

/* Such a GPU would not find page-locked memory at the addresses of a batch. */
TEST(a_gpu_with_other_addresses_gets_copies_one_by_one)
{
	struct training t;

	open_pieces(40);
	for (int same = 0; same < 2; same++) {
		STORY("%s addresses", same ? "the same" : "other");
		fake = fake_find();
		fake->host_addresses(same);
		open_maps(&t, nines(), 1);
		fake->reset();
		train(&t, 12 * 6, 1);
		train_give_all(&t);
		CHECK_SOUND_TRAINING();
		CHECK_EQ(fake->count("cuMemcpyBatchAsync") > 0, same);
		CHECK_EQ(shard_loader_pin_problem(t.l, &err), SHARD_END);
		close_maps(&t);
	}
}

TEST(pages_are_in_a_map_before_it_is_page_locked)
{
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct training t;

	if (madvise(page, 4096, 22)) /* MADV_POPULATE_READ */
		SKIP("Linux is older than 5.14");
	CHECK_EQ(munmap(page, 4096), 0);
	open_pieces(40);
	counts_pages = true;
	open_maps(&t, nines(), 0);
	train(&t, 12 * 4, 1);
	train_give_all(&t);
	close_maps(&t);
	counts_pages = false;
	CHECK(atomic_load(&pages_there) > 0);
	CHECK_EQ(atomic_load(&pages_missing), 0);
}

TEST(records_come_out_of_the_page_cache)
{
	check_records();
}

TEST(runs_come_to_a_pool_out_of_the_page_cache)
{
	check_pool();
}

/* ---- the memory of the ring ---- */

/* The page cache then has what was just written past it. */
static void bring_to_memory(void)
{
	for (uint64_t i = 0; i < ds->m.shard_count; i++) {
		struct shard_reader *r;

		CHECK_OK(dataset_use_shard(ds, i, &r, &fixture_err));
		for (uint64_t at = 0; at < r->file_bytes; at += 4096)
			(void)*(const volatile uint8_t *)(r->map + at);
	}
}

/* Of the photographs in a slot, how many pages the system has given.  Huge pages reach beyond both ends. */
static uint64_t pages_of(const struct feed *f, uint32_t slot)
{
	uint64_t bytes = 16 * schema.group[0].stride, given = 0;
	uintptr_t at = (uintptr_t)f->ring.slot[slot].memory + f->layout.group_at[0];
	uintptr_t begin = align_up(at, HUGE_PAGE_BYTES), end = (at + bytes) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
	unsigned char *is_there = calloc((end - begin) / 4096, 1);

	CHECK(is_there && end > begin);
	CHECK_EQ(mincore((void *)begin, end - begin, is_there), 0);
	for (uint64_t i = 0; i < (end - begin) / 4096; i++)
		given += is_there[i] & 1;
	free(is_there);
	return given;
}

/*
 * The first slot is made ready before anything is known.  The others take memory when a thread
 * writes to them, and page-locks when the GPU reads them.
 */
TEST(the_ring_takes_no_memory_for_what_nobody_writes_there)
{
	static const uint64_t one[] = {40};

	open_photos(512, SHARD_RAW, one, 1);
	bring_to_memory();
	piece_bytes = UINT64_MAX / 2;
	for (int all = 0; all < 2; all++) {
		struct shard_loader_options o = {.batch_records = 16,
						 .thread_count = 1,
						 .slot_count = 4,
						 .gpu.pin_most = all ? SHARD_PIN_NOTHING : 0};
		struct shard_loader_stats s;
		struct training t;

		STORY("%s", all ? "through the ring" : "out of the page cache from the first batch on");
		open_maps(&t, o, 0);
		inject.meanwhile = behind_gate; /* until the loader knows of the GPU */
		set_gate(false);
		CHECK_OK(shard_loader_begin_device(t.l, t.stream, &fixture_err));
		set_gate(true);
		train(&t, 16, 1);
		train_give_all(&t);
		wait_until_full(t.l); /* each slot was used */
		s = stats_of(&t);
		CHECK_EQ(s.pageable_bytes, 0);
		CHECK_EQ(s.cached_bytes > 0, !all);
		CHECK_EQ(s.pinned_bytes > 16 * schema.group[0].stride, all);
		for (uint32_t slot = 1; slot < 4; slot++)
			CHECK_EQ(pages_of(t.l->feed, slot) > 0, all);
		close_maps(&t);
	}
	drop_dataset();
}

/* A piece ends where a neighbour begins, and a copy must not cross that. */
TEST(pieces_that_are_neighbours_in_memory_are_copied_apart)
{
	const uint64_t room = UINT64_C(64) << 20;
	uint8_t *memory = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct training t;

	CHECK(memory != MAP_FAILED);
	open_photos(128, SHARD_RAW, sizes, COUNT(sizes));
	CHECK_EQ(schema.group[0].stride % 4096, 0);
	piece_bytes = 2 * schema.group[0].stride;
	neighbours = memory;
	open_maps(&t, (struct shard_loader_options){.batch_records = 8, .thread_count = 1}, 0);
	train(&t, 16 * 4, 1);
	CHECK(stats_of(&t).cached_bytes > 0);
	close_maps(&t);
	neighbours = NULL;
	munmap(memory, room);
}

/* ---- limits ---- */

TEST(no_more_is_page_locked_than_was_asked)
{
	struct training t;

	open_pieces(40);
	for (uint32_t shuffle = SHARD_SEQUENTIAL; shuffle <= SHARD_SHUFFLE_GLOBAL; shuffle++)
		for (unsigned seed = 0; seed < 6; seed++) {
			uint64_t most = 100000; /* of 26 pieces some three or four */
			struct shard_loader_stats s;

			if (shuffle == SHARD_SHUFFLE_BY_SIZE)
				continue;
			STORY("shuffle %u, seed %u", shuffle, seed);
			open_maps(&t,
				  (struct shard_loader_options){.batch_records = 9,
								.order.shuffle = shuffle,
								.thread_count = 1 + seed % 3,
								.gpu.pin_most = most},
				  seed);
			for (int i = 0; i < 60; i++) {
				train(&t, 1, 1);
				CHECK(stats_of(&t).registered_bytes <= most);
			}
			s = stats_of(&t);
			CHECK(s.cached_bytes > 0 && s.cached_bytes < s.device_bytes);
			CHECK_EQ(s.pageable_bytes, 0);
			if (shuffle == SHARD_SEQUENTIAL) { /* the pieces behind us have made room */
				CHECK(atomic_load(&pin_count) > 20);
			} else {
				CHECK(atomic_load(&pin_count) <= 8); /* and not once for each record */
				CHECK_EQ(shard_loader_pin_problem(t.l, &err), SHARD_OK);
				CHECK_EQ(err.status, SHARD_E_MEMORY);
				CHECK(strstr(err.message, "gpu.pin_most is reached"));
			}
			close_maps(&t);
		}
	open_maps(&t, (struct shard_loader_options){.batch_records = 9, .gpu.pin_most = SHARD_PIN_NOTHING}, 0);
	train(&t, 30, 1);
	CHECK_EQ(atomic_load(&pin_count), 0);
	CHECK_EQ(shard_loader_pin_problem(t.l, &err), SHARD_END); /* as was asked */
	close_maps(&t);
}

/* By default: half of what is available, divided by the ranks that may be on this host. */
TEST(the_default_leaves_memory_to_others)
{
	struct training t;

	open_pieces(40);
	for (uint32_t world = 1; world <= 4; world += 3) {
		STORY("world %u", world);
		atomic_store(&available, 400000);
		open_maps(&t, (struct shard_loader_options){.batch_records = 3, .world = world}, 1);
		train(&t, 80, 1);
		CHECK(stats_of(&t).registered_bytes <= 200000);
		CHECK(world == 1 ? stats_of(&t).registered_bytes > 100000 : stats_of(&t).registered_bytes <= 200000);
		CHECK_EQ(shard_loader_pin_problem(t.l, &err), SHARD_OK);
		CHECK(strstr(err.message, "half of the memory that is available to this rank is reached"));
		close_maps(&t);
	}
	atomic_store(&available, 0);
}

TEST(memory_that_becomes_scarce_is_given_back)
{
	struct training t;

	open_pieces(40);
	open_maps(&t, (struct shard_loader_options){.batch_records = 9}, 2);
	train(&t, 60, 1);
	CHECK(stats_of(&t).registered_bytes > 300000);
	atomic_store(&available, 1);
	usleep(1100000); /* it looks once a second */
	for (int i = 0; i < 1000 && stats_of(&t).registered_bytes; i++) {
		train(&t, 10, 1);
		usleep(20000);
	}
	CHECK_EQ(stats_of(&t).registered_bytes, 0);
	CHECK_EQ(shard_loader_pin_problem(t.l, &err), SHARD_OK);
	train(&t, 30, 1);
	close_maps(&t);
	atomic_store(&available, 0);
}

/* All pieces were in use then, so they were to go. */
TEST(memory_that_was_scarce_for_a_moment_is_used_again)
{
	struct shard_loader_stats begin, s;
	struct training t;

	open_pieces(40);
	open_maps(&t, (struct shard_loader_options){.batch_records = 16, .slot_count = 4}, 0);
	train(&t, 60, 1);
	atomic_store(&available, 1);
	usleep(1100000);
	train(&t, 1, 1);
	atomic_store(&available, 0);
	CHECK(stats_of(&t).registered_bytes > 0);
	usleep(1100000);
	train(&t, 60, 1);
	begin = stats_of(&t);
	train(&t, 30, 1);
	s = stats_of(&t);
	CHECK((s.cached_bytes - begin.cached_bytes) * 8 > (s.device_bytes - begin.device_bytes) * 7);
	close_maps(&t);
}

/* ---- refusals ---- */

TEST(where_a_map_is_refused_all_goes_on_and_is_explained)
{
	struct training t;

	open_pieces(40);
	for (unsigned nth = 1; nth <= 5; nth += 2) {
		struct shard_loader_stats s;

		STORY("the page-lock of map %u", nth);
		atomic_store(&pin_fails, nth);
		pin_result = 801;
		open_maps(&t, (struct shard_loader_options){.batch_records = 9, .thread_count = 1}, nth);
		train(&t, 60, 1);
		s = stats_of(&t);
		CHECK_EQ(atomic_load(&pin_count), nth); /* one refusal is enough */
		CHECK((s.registered_bytes > 0) == (nth > 1));
		CHECK_EQ(s.pageable_bytes, 0);
		CHECK_EQ(shard_loader_pin_problem(t.l, &err), SHARD_OK);
		CHECK_EQ(err.status, SHARD_E_DEVICE);
		CHECK_EQ(err.os_code, 801);
		CHECK(strstr(err.message, "the page cache cannot be page-locked (cuMemHostRegister: "));
		close_maps(&t);
	}
	STORY("refused because a graph is captured: tried again");
	atomic_store(&pin_fails, 1);
	pin_result = 900;
	open_maps(&t, (struct shard_loader_options){.batch_records = 9, .thread_count = 1}, 0);
	train(&t, 60, 1);
	CHECK(stats_of(&t).registered_bytes > 0);
	CHECK_EQ(shard_loader_pin_problem(t.l, &err), SHARD_END);
	close_maps(&t);
	atomic_store(&pin_fails, 0);
}

/* The reader has the old file, and so has each batch, even if the new one has the same bytes. */
TEST(a_file_that_was_replaced_is_not_mapped_again)
{
	char path[PATH_MAX], other[PATH_MAX];
	struct training t;

	for (int copied = 0; copied < 2; copied++) {
		STORY("%s", copied ? "by its copy" : "by no file");
		open_pieces(40);
		open_maps(&t, (struct shard_loader_options){.batch_records = 9}, 0);
		for (size_t i = 0; i < COUNT(sizes); i++) {
			struct shard_reader *r;
			int fd;

			CHECK_OK(dataset_use_shard(ds, i, &r, &fixture_err));
			snprintf(path, sizeof(path), "%s", r->path);
			snprintf(other, sizeof(other), "%s.other", r->path);
			if (copied) {
				fd = open(other, O_WRONLY | O_CREAT, 0600);
				CHECK(fd >= 0);
				CHECK_EQ(write(fd, r->map, r->file_bytes), (ssize_t)r->file_bytes);
				close(fd);
			} else {
				CHECK_EQ(symlink("/dev/null", other), 0);
			}
			CHECK_EQ(rename(other, path), 0);
		}
		train(&t, 60, 1);
		CHECK_EQ(atomic_load(&pin_count), 0);
		CHECK_EQ(shard_loader_pin_problem(t.l, &err), copied ? SHARD_OK : SHARD_END);
		CHECK(!copied || strstr(err.message, "was replaced while in use"));
		close_maps(&t);
		drop_dataset();
	}
}

/* ---- damage ---- */

/* Write over a record of a group where it lies in its file. */
static void damage(uint32_t group, uint64_t record)
{
	uint64_t shard = dataset_shard_of(ds, record), at;
	struct shard_reader *r;
	int fd;

	CHECK_OK(dataset_use_shard(ds, shard, &r, &fixture_err));
	at = reader_raw_begin(r, group) + (record - ds->first_record[shard]) * schema.group[group].stride;
	fd = open(r->path, O_WRONLY);
	CHECK(fd >= 0);
	CHECK_EQ(pwrite(fd, "damage", 6, (off_t)at + (group ? 0 : 1000)), 6);
	close(fd);
}

TEST(damage_is_what_it_is_without_a_gpu)
{
	for (uint32_t how = SHARD_CORRUPT_FAIL; how <= SHARD_CORRUPT_MASK; how++)
		for (uint32_t check = SHARD_CHECK_DEVICE; check <= SHARD_CHECK_ALWAYS; check++) {
			struct shard_dataset_options so = {.size = sizeof(so), .check = check};
			struct shard_loader_options o = {
				.batch_records = 7, .repair.on_corrupt = how, .repair.corrupt_most = UINT64_MAX};
			struct shard_loader_stats s;
			struct shard_loader *here;
			struct training t;
			unsigned failed = 0;

			if (check == SHARD_CHECK_NEVER)
				continue;
			STORY("on_corrupt %u, check %u", how, check);
			open_pieces(40);
			damage(0, 17);
			damage(0, 60);
			damage(0, 61);
			reopen(&so);
			open_maps(&t, o, how);
			o = wanted.o;
			o.gpu.device = 0;
			o.gpu.stream = NULL;
			CHECK_OK(shard_loader_open(&here, ds, &o, &fixture_err));
			for (int i = 0; i < 60; i++) {
				struct shard_batch got, want;
				struct shard_error why;
				int rc = shard_loader_next_device(t.l, t.stream, &got, &err);

				CHECK_EQ(shard_loader_next(here, &want, &why), rc);
				if (rc == SHARD_E_CORRUPT) {
					CHECK_STR(err.message, why.message);
					failed++;
					break;
				}
				if (rc == SHARD_END)
					continue;
				CHECK_EQ(rc, SHARD_OK);
				fake->settle();
				CHECK_EQ(got.record_count, want.record_count);
				CHECK_MEM(got.record, want.record, want.record_count * sizeof(*want.record));
				CHECK_MEM(got.row_flags, want.row_flags, want.record_count);
				for (uint32_t g = 0; g < schema.group_count; g++)
					CHECK_MEM(fake->at((uintptr_t)got.group[g].data), want.group[g].data,
						  want.record_count * want.group[g].stride);
				CHECK_OK(shard_loader_release_after(t.l, &got, t.stream, &fixture_err));
				CHECK_OK(shard_loader_release(here, &want, &fixture_err));
			}
			s = stats_of(&t);
			CHECK_EQ(failed, how == SHARD_CORRUPT_FAIL);
			CHECK(failed || s.cached_bytes > 0);
			CHECK((s.substituted_count > 0) == (how == SHARD_CORRUPT_SUBSTITUTE));
			CHECK((s.masked_count > 0) == (how == SHARD_CORRUPT_MASK));
			shard_loader_close(here);
			training_close(&t);
			trainer_check_clean();
		}
}

/* The GPU must not read the damaged file, which is still page-locked, when the reader has the new one. */
TEST(a_shard_that_was_restored_is_read_from_its_new_file)
{
	struct shard_loader_options o = {.batch_records = 7,
					 .thread_count = 1,
					 .order.shuffle = SHARD_SEQUENTIAL,
					 .repair.on_corrupt = SHARD_CORRUPT_SUBSTITUTE,
					 .repair.corrupt_most = UINT64_MAX};
	char path[PATH_MAX], other[PATH_MAX];
	unsigned substituted[2] = {0, 0};
	struct shard_reader *r;
	struct training t;
	int fd;

	open_pieces(40);
	CHECK_OK(dataset_use_shard(ds, 0, &r, &fixture_err));
	snprintf(path, sizeof(path), "%s", r->path);
	snprintf(other, sizeof(other), "%s.other", r->path);
	fd = open(other, O_WRONLY | O_CREAT, 0600);
	CHECK(fd >= 0);
	CHECK_EQ(write(fd, r->map, r->file_bytes), (ssize_t)r->file_bytes);
	close(fd);
	damage(0, 17);
	reopen(NULL);
	ds->readers.most = 1; /* readers come and go */
	open_maps(&t, o, 0);
	for (int i = 0; i < 120; i++) {
		struct shard_batch b;
		bool has = next_here(t.l, t.stream, &b);

		if (i == 60)
			CHECK_EQ(rename(other, path), 0);
		if (!has)
			continue;
		for (uint32_t row = 0; row < b.record_count; row++) {
			substituted[i > 90] += b.row_flags[row] & SHARD_ROW_SUBSTITUTED;
			check_bytes(&gpu, &b, row);
		}
		CHECK_OK(shard_loader_release_after(t.l, &b, t.stream, &fixture_err));
	}
	CHECK(substituted[0] && !substituted[1]);
	close_maps(&t);
	drop_dataset();
}

/* ---- files that change under the loader ---- */

enum deed { CUT, REPLACED, REMOVED, CHANGED };

static void do_deed(enum deed deed, const char *path)
{
	char other[PATH_MAX + 8];
	FILE *f;

	snprintf(other, sizeof(other), "%s.other", path);
	switch (deed) {
	case CUT:
		CHECK_EQ(truncate(path, 0), 0);
		break;
	case REPLACED:
		f = fopen(other, "w");
		CHECK(f && fputs("another file", f) >= 0 && !fclose(f));
		CHECK_EQ(rename(other, path), 0);
		break;
	case REMOVED:
		CHECK_EQ(unlink(path), 0);
		break;
	case CHANGED:
		damage(0, 17);
	}
}

/* Take so many batches.  Returns the first error, or SHARD_OK. */
static int take_some(struct training *t, int calls, uint32_t fields)
{
	struct shard_batch b;

	while (calls--) {
		int rc = shard_loader_next_device(t->l, t->stream, &b, &err);

		if (rc == SHARD_END)
			continue;
		if (rc)
			return rc;
		fake->settle();
		for (uint32_t row = 0; row < b.record_count; row++)
			for (uint32_t f = 0; f < schema.field_count; f++) {
				const struct shard_field *field = &schema.field[f];
				const uint8_t *want = content[field->group] + b.record[row] * field->stride;

				if (fields >> f & 1 &&
				    memcmp((uint8_t *)fake->at((uintptr_t)b.field[f].data) + row * b.field[f].stride,
					   want + field->offset, field->bytes))
					complain(&gpu, "%s of record %" PRIu64, field->name, b.record[row]);
			}
		CHECK_OK(shard_loader_release_after(t->l, &b, t->stream, &fixture_err));
	}
	return SHARD_OK;
}

TEST(a_file_that_is_cut_replaced_removed_or_changed_while_it_is_page_locked)
{
	static const uint64_t one[] = {40};
	static const struct {
		const char *story;
		enum deed deed;
		uint32_t fields, check;
		int want;
		bool wrong; /* other bytes may come */
	} rows[] = {
		{"cut: the GPU reads what was page-locked", CUT, 1, SHARD_CHECK_FIRST, SHARD_OK, false},
		{"cut: the hashes for the GPU are not page-locked", CUT, 1, SHARD_CHECK_DEVICE, SHARD_E_IO, false},
		{"cut: labels, which are not page-locked, are an error", CUT, 7, SHARD_CHECK_FIRST, SHARD_E_IO, false},
		{"replaced: the old file is read", REPLACED, 7, SHARD_CHECK_DEVICE, SHARD_OK, false},
		{"replaced, and hashed each time", REPLACED, 7, SHARD_CHECK_ALWAYS, SHARD_OK, false},
		{"removed", REMOVED, 7, SHARD_CHECK_DEVICE, SHARD_OK, false},
		{"changed: the GPU notices it", CHANGED, 7, SHARD_CHECK_DEVICE, SHARD_E_CORRUPT, false},
		{"changed, and labels are hashed each time, too", CHANGED, 7, SHARD_CHECK_ALWAYS, SHARD_E_CORRUPT,
		 false},
		{"changed, and hashed when it was page-locked", CHANGED, 7, SHARD_CHECK_FIRST, SHARD_OK, true},
		{"control: changed, and never hashed", CHANGED, 7, SHARD_CHECK_NEVER, SHARD_OK, true},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_dataset_options so = {.size = sizeof(so), .check = rows[i].check};
		struct shard_loader_options o = {.batch_records = 9, .thread_count = 1, .fields = rows[i].fields};
		uint64_t before;
		struct shard_reader *r;
		char path[PATH_MAX];
		struct training t;
		int rc;

		STORY("%s", rows[i].story);
		open_photos(40, SHARD_RAW, one, 1);
		CHECK_EQ(schema.field_count, 3);
		piece_bytes = 4 * schema.group[0].stride;
		reopen(&so);
		bring_to_memory();
		CHECK_OK(dataset_use_shard(ds, 0, &r, &fixture_err));
		snprintf(path, sizeof(path), "%s", r->path);
		keeps = rows[i].deed == CUT;
		open_maps(&t, o, 0);
		CHECK_EQ(take_some(&t, 60, rows[i].fields), SHARD_OK);
		CHECK_EQ(atomic_load(&pin_count), 10);
		before = stats_of(&t).cached_bytes;
		CHECK_SOUND_TRAINING();
		do_deed(rows[i].deed, path);
		rc = take_some(&t, 60, rows[i].fields);
		CHECK_EQ(rc, rows[i].want);
		if (rc == SHARD_E_IO)
			CHECK(strstr(err.message, "the file was cut while in use"));
		if (!rc && rows[i].deed == CUT) /* none of these went through the ring */
			CHECK(stats_of(&t).cached_bytes - before >= 40 * 9 * schema.group[0].stride);
		CHECK(rows[i].wrong || !gpu.complaint[0]);
		CHECK(!rows[i].wrong || gpu.complaint[0]);
		gpu.complaint[0] = 0;
		close_maps(&t);
		drop_dataset();
	}
	keeps = false;
}

TEST(a_file_that_was_cut_is_not_page_locked)
{
	static const uint64_t one[] = {40};
	struct shard_reader *r;
	struct training t;

	for (int cut = 0; cut < 2; cut++) {
		STORY("%s", cut ? "cut" : "sound");
		open_photos(40, SHARD_RAW, one, 1);
		piece_bytes = 4 * schema.group[0].stride;
		bring_to_memory();
		open_maps(&t, (struct shard_loader_options){.batch_records = 9, .thread_count = 1, .fields = 1}, 0);
		CHECK_OK(dataset_use_shard(ds, 0, &r, &fixture_err));
		if (cut)
			CHECK_EQ(truncate(r->path, (off_t)r->file_bytes - 1), 0); /* all records are still there */
		CHECK_EQ(take_some(&t, 60, 1), SHARD_OK);
		CHECK_EQ(atomic_load(&pin_count) > 0, !cut);
		CHECK_EQ(shard_loader_pin_problem(t.l, &err), cut ? SHARD_OK : SHARD_END);
		CHECK(!cut || strstr(err.message, "was cut while in use"));
		CHECK_SOUND_TRAINING();
		close_maps(&t);
		drop_dataset();
	}
}

/*
 * All labels of the first shard are damaged.  So its photographs are taken in vain, one after the
 * other, until a record of the next shard takes their place, which is not in memory.
 */
TEST(a_substitute_leaves_nothing_of_those_before_it)
{
	struct shard_dataset_options so = {.size = sizeof(so), .check = SHARD_CHECK_FIRST};
	struct shard_loader_options o = {.batch_records = 7,
					 .thread_count = 2,
					 .order.shuffle = SHARD_SEQUENTIAL,
					 .path = SHARD_PATH_MAP,
					 .repair.on_corrupt = SHARD_CORRUPT_SUBSTITUTE,
					 .repair.corrupt_most = UINT64_MAX};
	struct training t;

	open_pieces(40);
	damage(1, 17);
	reopen(&so);
	cold_bytes = 60000;
	open_maps(&t, o, 0);
	for (int i = 0; i < 40; i++) {
		struct shard_batch b;

		if (!next_here(t.l, t.stream, &b))
			continue;
		for (uint32_t row = 0; row < b.record_count; row++) {
			CHECK(!(b.row_flags[row] & SHARD_ROW_SUBSTITUTED) || b.record[row] == 40);
			check_bytes(&gpu, &b, row);
		}
		CHECK_OK(shard_loader_release_after(t.l, &b, t.stream, &fixture_err));
	}
	CHECK_SOUND_TRAINING();
	STORY("nobody uses a piece any more, so each can be given back");
	atomic_store(&available, 1);
	usleep(1100000);
	for (int i = 0; i < 200 && stats_of(&t).registered_bytes; i++) {
		struct shard_batch b;

		if (shard_loader_next_device(t.l, t.stream, &b, &err) == SHARD_OK)
			CHECK_OK(shard_loader_release_after(t.l, &b, t.stream, &fixture_err));
		usleep(20000);
	}
	CHECK_EQ(stats_of(&t).registered_bytes, 0);
	training_close(&t);
	trainer_check_clean();
	atomic_store(&available, 0);
	cold_bytes = 0;
	drop_dataset();
}

/* ---- small records, whose runs come to a pool ---- */

static void open_mapped_runs(struct runs *r, struct shard_loader_options o, uint64_t seed)
{
	bring_to_memory();
	atomic_store(&pin_count, 0);
	open_runs(r, o, seed);
	check_twin_open();
}

static const char *compare_some(struct runs *r, unsigned calls, uint32_t fields, int *failed)
{
	return compare_runs(r, calls, fields, failed, &err);
}

static void close_runs(struct runs *r)
{
	fake->settle();
	shard_loader_close(r->ring);
	shard_loader_close(r->host);
	close_maps(&r->maps);
	drop_dataset();
}

TEST(small_records_come_to_a_pool_as_they_do_without_one)
{
	static const uint32_t units[] = {0, 1, 3, 8},
			      checks[] = {SHARD_CHECK_DEVICE, SHARD_CHECK_FIRST, SHARD_CHECK_NEVER, SHARD_CHECK_ALWAYS};
	struct prng p = {21};
	unsigned fed = 0, checked = 0;

	for (unsigned round = 0; round < 20; round++) {
		struct shard_dataset_options so = {.size = sizeof(so), .check = checks[round / 2 % 4]};
		struct shard_loader_options o = any_windows(&p, round);
		uint32_t width = 1 + (uint32_t)prng_below(&p, round % 3 ? 200 : 1666), damaged = round % 5 == 4;
		struct shard_loader_stats begin, s;
		struct runs r;
		bool is_run;
		int failed;

		open_lines(width, 3 + round % 2, units[prng_below(&p, 4)]);
		if (damaged && so.check != SHARD_CHECK_NEVER) {
			damage_record(&folder, 3, 0, (20 + round) * schema.group[0].stride + 1);
			damage_record(&folder, 0, round / 5 % 2, 7 * schema.group[round / 5 % 2].stride);
		}
		if (!damaged)
			o.repair.on_corrupt = SHARD_CORRUPT_FAIL;
		else if (!o.repair.on_corrupt)
			o.repair.on_corrupt = SHARD_CORRUPT_SUBSTITUTE;
		o.repair.corrupt_most = UINT64_MAX;
		o.fields = round % 7 == 6 ? 5 : 7;
		o.order.run_records = 1 + prng_below(&p, 20);
		piece_bytes = (1 + prng_below(&p, 70)) * schema.group[0].stride;
		tell_round(round, &o);
		reopen(&so);
		open_mapped_runs(&r, o, round);
		CHECK_STR(compare_some(&r, 2 * calls_of(&r.maps), o.fields, &failed), "");
		/* Whole records would be a waste if most of them were padding. */
		is_run = !r.is_held && schema.field[PHOTO_IMAGE].bytes * 4 >= schema.group[0].stride * 3;
		/* A thread that page-locks may come late, and then runs go through the ring for some epochs. */
		for (int k = 0; k < 50; k++) {
			begin = stats_of(&r.maps);
			CHECK_STR(compare_some(&r, calls_of(&r.maps), o.fields, &failed), "");
			s = stats_of(&r.maps);
			CHECK_EQ(failed, SHARD_OK);
			/* Pools are filled ahead, so not just what was delivered meanwhile came meanwhile. */
			if (!is_run || s.cached_bytes - begin.cached_bytes >=
					       (s.record_count - begin.record_count) * schema.group[0].stride / 2)
				break;
		}
		CHECK(s.cached_bytes <= s.device_bytes);
		CHECK_EQ(s.pageable_bytes, 0);
		CHECK_EQ(loader_stats(r.ring).cached_bytes, 0);
		CHECK(!s.device_checked_count ||
		      (is_run && so.check != SHARD_CHECK_FIRST && so.check != SHARD_CHECK_NEVER));
		checked += s.device_checked_count > 0;
		CHECK_EQ(s.recopied_count, 0);
		CHECK(!damaged || so.check == SHARD_CHECK_NEVER || s.substituted_count + s.masked_count > 0);
		CHECK_EQ(layout_is_block(&r.maps.l->pool->plan.slab, 0), is_run || width > 1360);
		if (is_run) {
			CHECK(s.cached_bytes - begin.cached_bytes >=
			      (s.record_count - begin.record_count) * schema.group[0].stride / 2);
			CHECK_EQ((s.cached_bytes - begin.cached_bytes) % 16, 0);
			CHECK(s.registered_bytes > 0);
		}
		CHECK(!r.is_held || !s.cached_bytes);
		fed += is_run;
		close_runs(&r);
	}
	CHECK(fed > 10);
	CHECK(checked > 3);
}

/* The same error at the same batch: of the images, or of the other group. */
TEST(damage_in_a_run_is_the_same_error)
{
	for (uint32_t check = SHARD_CHECK_DEVICE; check <= SHARD_CHECK_ALWAYS; check++)
		for (uint32_t group = 0; group < 2; group++) {
			struct shard_dataset_options so = {.size = sizeof(so), .check = check};
			struct shard_loader_options o = {.batch_records = 5,
							 .order.shuffle = SHARD_SHUFFLE_WINDOWS,
							 .order.run_records = 6,
							 .order.window_runs = 1,
							 .order.lane_count = 2,
							 .thread_count = 1 + group};
			struct runs r;
			int failed;

			if (check == SHARD_CHECK_NEVER)
				continue;
			STORY("check %u, group %u", check, group);
			open_lines(200, 4, 0);
			piece_bytes = 5 * schema.group[0].stride;
			reopen(&so);
			open_mapped_runs(&r, o, check);
			CHECK(!r.is_held);
			CHECK_STR(compare_some(&r, calls_of(&r.maps), 7, &failed), "");
			CHECK_EQ(failed, SHARD_OK);
			damage_record(&folder, 3, group, 60 * schema.group[group].stride);
			shard_loader_close(r.ring); /* what is in memory was checked before: the file is opened again */
			shard_loader_close(r.host);
			training_close(&r.maps);
			reopen(&so);
			open_mapped_runs(&r, o, check);
			CHECK_STR(compare_some(&r, 2 * calls_of(&r.maps), 7, &failed), "");
			CHECK_EQ(failed, SHARD_E_CORRUPT);
			CHECK(strstr(err.message, "3.shard: I4"));
			shard_loader_close(r.ring);
			shard_loader_close(r.host);
			training_close(&r.maps);
			trainer_check_clean();
			drop_dataset();
		}
}

/* Rows of one piece have users together, and rows that are damaged lose theirs alone. */
TEST(runs_are_given_back_when_memory_becomes_scarce)
{
	struct shard_dataset_options so = {.size = sizeof(so), .check = SHARD_CHECK_DEVICE};
	struct shard_loader_options o = {.batch_records = 5,
					 .order.shuffle = SHARD_SHUFFLE_WINDOWS,
					 .order.run_records = 6,
					 .order.window_runs = 1,
					 .order.lane_count = 2,
					 .repair.on_corrupt = SHARD_CORRUPT_MASK,
					 .repair.corrupt_most = UINT64_MAX};
	struct runs r;
	int failed;

	open_lines(200, 4, 3);
	damage_record(&folder, 3, 0, 60 * schema.group[0].stride);
	piece_bytes = 5 * schema.group[0].stride;
	reopen(&so);
	open_mapped_runs(&r, o, 0);
	CHECK(!r.is_held);
	CHECK_STR(compare_some(&r, 2 * calls_of(&r.maps), 7, &failed), "");
	CHECK(stats_of(&r.maps).masked_count > 0);
	CHECK(stats_of(&r.maps).registered_bytes > 0);
	atomic_store(&available, 1);
	usleep(1100000); /* it looks once a second */
	for (int i = 0; i < 1000 && stats_of(&r.maps).registered_bytes; i++) {
		CHECK_STR(compare_some(&r, 10, 7, &failed), "");
		usleep(20000);
	}
	CHECK_EQ(stats_of(&r.maps).registered_bytes, 0);
	atomic_store(&available, 0);
	close_runs(&r);
}

/* Of images alone, all of which are page-locked and were hashed. */
TEST(a_shard_of_small_records_is_cut_while_it_is_page_locked)
{
	static const uint64_t one[] = {200};
	static const struct {
		uint32_t check;
		int want; /* with SHARD_CHECK_ALWAYS a thread reads what is gone */
	} rows[] = {{SHARD_CHECK_DEVICE, SHARD_OK}, {SHARD_CHECK_FIRST, SHARD_OK}, {SHARD_CHECK_ALWAYS, SHARD_E_IO}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_dataset_options so = {.size = sizeof(so), .check = rows[i].check};
		struct shard_loader_options o = {.size = sizeof(o),
						 .batch_records = 9,
						 .thread_count = 1,
						 .fields = 1,
						 .order.shuffle = SHARD_SHUFFLE_WINDOWS,
						 .order.run_records = 4,
						 .order.window_runs = 1,
						 .order.lane_count = 2};
		struct shard_reader *reader;
		struct training t;
		uint64_t before;
		int rc;

		STORY("check %u", rows[i].check);
		schema = photo_schema(8, SHARD_RAW);
		make_dataset("lines", one, 1);
		piece_bytes = 50 * schema.group[0].stride;
		reopen(&so);
		bring_to_memory();
		o.gpu.pool_bytes = least_pool(o);
		keeps = true;
		atomic_store(&pin_count, 0);
		open_pool(&t, o, 0);
		CHECK(!t.l->pool->plan.is_held);
		CHECK_EQ(take_some(&t, 60, 1), SHARD_OK);
		CHECK_EQ(atomic_load(&pin_count), 4);
		before = stats_of(&t).cached_bytes;
		CHECK_OK(dataset_use_shard(ds, 0, &reader, &fixture_err));
		CHECK_EQ(truncate(reader->path, 0), 0);
		rc = take_some(&t, 60, 1);
		CHECK_EQ(rc, rows[i].want);
		CHECK(rc || stats_of(&t).cached_bytes - before >= 40 * 9 * schema.group[0].stride);
		CHECK(!rc || strstr(err.message, "the file was cut while in use"));
		CHECK(!gpu.complaint[0]);
		close_maps(&t);
		drop_dataset();
	}
	keeps = false;
}

/* When all photographs are page-locked. */
TEST(what_is_hashed)
{
	static const struct {
		uint32_t check;
		bool by_gpu;	/* it hashes each photograph */
		bool by_thread; /* a thread hashes the unit of labels of each record */
	} rows[] = {{SHARD_CHECK_DEVICE, true, false},
		    {SHARD_CHECK_FIRST, false, false},
		    {SHARD_CHECK_NEVER, false, false},
		    {SHARD_CHECK_ALWAYS, true, true}};

	open_pieces(40);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_dataset_options so = {.size = sizeof(so), .check = rows[i].check};
		struct shard_loader_stats begin, s;
		struct training t;
		uint64_t filled, checked;

		STORY("check %u", rows[i].check);
		reopen(&so);
		open_maps(&t, (struct shard_loader_options){.batch_records = 9, .thread_count = 1}, i);
		for (int k = 0; k < 100 && stats_of(&t).registered_bytes < record_total * schema.group[0].stride; k++)
			train(&t, 12, 1);
		train(&t, 24, 1); /* what was filled before that is delivered then */
		begin = stats_of(&t);
		train(&t, 96, 1);
		s = stats_of(&t);
		filled = s.filled_record_count - begin.filled_record_count;
		checked = s.checked_unit_count - begin.checked_unit_count;
		CHECK(filled > 5 * record_total);
		/* a page that was read again, which hardly happens, is hashed again, too */
		CHECK(checked <= filled * rows[i].by_thread + filled / 4);
		CHECK(checked >= filled * rows[i].by_thread);
		CHECK_EQ(s.device_checked_count - begin.device_checked_count,
			 rows[i].by_gpu ? s.record_count - begin.record_count : 0);
		CHECK(s.check_wait_count <= s.batch_count);
		CHECK_EQ(s.recopied_count, 0);
		CHECK_EQ(fake->count("cuModuleLoadDataEx"), rows[i].by_gpu);
		close_maps(&t);
	}
}

/* ---- several users ---- */

TEST(two_loaders_have_page_locks_of_their_own)
{
	struct shard_loader *other;
	struct shard_batch b;
	struct training t;

	open_pieces(40);
	open_maps(&t, (struct shard_loader_options){.batch_records = 9}, 0);
	CHECK_OK(shard_loader_open(&other, ds, &wanted.o, &fixture_err));
	for (int i = 0; i < 60; i++) {
		int rc = shard_loader_next_device(other, t.stream, &b, &fixture_err);

		train(&t, 1, 1);
		if (rc == SHARD_OK)
			CHECK_OK(shard_loader_release_after(other, &b, t.stream, &fixture_err));
	}
	train_give_all(&t);
	CHECK(atomic_load(&pin_count) >= 2 * 26);
	shard_loader_close(other);
	train(&t, 30, 1); /* its page-locks are still there */
	close_maps(&t);
}

TEST(two_gpus_have_page_locks_of_their_own)
{
	struct shard_loader_options o;
	struct shard_loader_stats s;
	struct shard_loader *other;
	struct training t;
	void *context, *stream, *popped;

	open_pieces(40);
	open_maps(&t, (struct shard_loader_options){.batch_records = 9}, 0); /* on GPU 1 */
	CU_OK(cu.cuDevicePrimaryCtxRetain(&context, 70));
	CU_OK(cu.cuCtxPushCurrent(context));
	CU_OK(cu.cuStreamCreate(&stream, 1));
	CU_OK(cu.cuCtxPopCurrent(&popped));
	o = wanted.o;
	o.gpu.device = SHARD_GPU(0);
	o.gpu.stream = NULL;
	CHECK_OK(shard_loader_open(&other, ds, &o, &fixture_err));
	for (int i = 0; i < 60; i++) {
		struct shard_batch b;

		train(&t, 1, 1);
		if (!next_here(other, stream, &b))
			continue;
		for (uint32_t row = 0; row < b.record_count; row++)
			check_bytes(&gpu, &b, row);
		CHECK_OK(shard_loader_release_after(other, &b, stream, &fixture_err));
	}
	train_give_all(&t);
	s = loader_stats(other);
	CHECK(s.cached_bytes > 0 && s.device_checked_count > 0);
	s = stats_of(&t);
	CHECK(s.cached_bytes > 0 && s.device_checked_count > 0);
	CHECK(atomic_load(&pin_count) >= 2 * 26);
	shard_loader_close(other);
	train(&t, 30, 1); /* its page-locks are still there */
	CU_OK(cu.cuCtxPushCurrent(context));
	CU_OK(cu.cuStreamDestroy(stream));
	CU_OK(cu.cuCtxPopCurrent(&popped));
	CU_OK(cu.cuDevicePrimaryCtxRelease(70));
	close_maps(&t);
}

TEST(a_child_has_no_part_in_it)
{
	struct training t;
	pid_t pid;

	open_pieces(40);
	open_maps(&t, (struct shard_loader_options){.batch_records = 9}, 2);
	train(&t, 40, 1);
	if (child_begin(&pid, 20))
		_exit(close_in_child(&t));
	CHECK_EQ(child_end(pid), 0);
	train(&t, 40, 1);
	close_maps(&t);
}

TEST(seek_with_records_under_way)
{
	struct training t;

	open_pieces(40);
	for (unsigned seed = 0; seed < 10; seed++) {
		STORY("seed %u", seed);
		open_maps(&t, (struct shard_loader_options){.batch_records = 10, .tail = SHARD_KEEP, .slot_count = 6},
			  seed);
		for (int i = 0; i < 8; i++) {
			train(&t, 6, 1);
			wanted_seek(&wanted, (uint64_t)i % 3, 31);
			CHECK_OK(shard_loader_seek(t.l, (uint64_t)i % 3, 31, &fixture_err));
		}
		train(&t, 20, 1);
		close_maps(&t);
	}
}

/* ---- controls ---- */

/* Returns what was noticed. */
static bool is_noticed(struct training *t)
{
	bool noticed;

	fake->settle();
	noticed = gpu.complaint[0] || wanted.complaint[0] || fake->sins(FAKE_FREED_IN_USE);
	gpu.complaint[0] = wanted.complaint[0] = 0;
	while (t->lent.count)
		train_give(t, 0);
	training_close(t);
	return noticed;
}

TEST(what_is_broken_is_noticed)
{
	struct training t;

	open_pieces(40);
	reopen(&(struct shard_dataset_options){.size = sizeof(struct shard_dataset_options),
					       .check = SHARD_CHECK_FIRST});
	for (int broken = 0; broken < 2; broken++) { /* the GPU would find that, and then it would be repaired */
		STORY("%s", broken ? "bytes from beside the record" : "sound");
		shift = broken ? 1 : 0;
		open_maps(&t, (struct shard_loader_options){.batch_records = 4, .thread_count = 1}, 0);
		train(&t, 100, 1);
		CHECK_EQ(is_noticed(&t), broken);
	}
	shift = 0;
	STORY("given back while it is used");
	atomic_store(&stays, true);
	inject_nothing();
	open_maps(&t,
		  (struct shard_loader_options){.batch_records = 9,
						.order.shuffle = SHARD_SEQUENTIAL,
						.thread_count = 1,
						.gpu.pin_most = 60000},
		  0);
	fake->seed(0, 20000); /* longer than this thread may come late, mostly */
	for (int i = 0; i < 500 && !fake->sins(FAKE_FREED_IN_USE); i++) {
		struct crew *c = &t.l->feed->crew;

		train(&t, 1, 1);
		pthread_mutex_lock(&c->lock);
		for (uint32_t k = 0; k < c->ring->slot_count; k++) { /* as if nobody used what is being copied */
			struct resident *r = slot_residents(&c->ring->slot[k], 0);

			for (uint32_t row = 0; c->claim[k].state == CLAIM_TAKEN && row < 9; row++)
				if (r[row].at)
					atomic_store(r[row].users, 0);
		}
		pthread_mutex_unlock(&c->lock);
	}
	CHECK(fake->sins(FAKE_FREED_IN_USE) > 0);
	is_noticed(&t);
	atomic_store(&stays, false);
}

/* Each copy out of the page cache takes the bytes from the next 16 on. */
TEST(runs_from_beside_their_place_are_noticed)
{
	struct shard_dataset_options so = {.size = sizeof(so), .check = SHARD_CHECK_FIRST};

	for (int broken = 0; broken < 2; broken++) {
		struct shard_loader_options o = {.batch_records = 5,
						 .order.shuffle = SHARD_SHUFFLE_WINDOWS,
						 .order.run_records = 6,
						 .order.window_runs = 1,
						 .order.lane_count = 2};
		struct runs r;
		int failed;

		STORY("%s", broken ? "broken" : "sound");
		open_lines(20, 3, 0);
		piece_bytes = 5 * schema.group[0].stride;
		reopen(&so);
		open_mapped_runs(&r, o, 0);
		CHECK(!r.is_held);
		shift = broken ? 16 : 0;
		CHECK_EQ(compare_some(&r, 3 * calls_of(&r.maps), 7, &failed)[0] != 0, broken);
		shift = 0;
		if (broken)
			train_give_all(&r.maps);
		close_runs(&r);
	}
}

TEST_MAIN()
