/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_fetch.c - what of a map is fetched, by whom, and how often
 *
 * LDFLAGS: -Wl,--wrap=file_await,--wrap=file_will_need,--wrap=file_major_faults,--wrap=pthread_create
 */
#include "libshard/dataset/dataset.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libshard/base/bytes.h"
#include "libshard/base/thread.h"
#include "libshard/io/io.h"
#include "tests/store/fixture.h"

#define RECORDS	     700u
#define SIDE	     77u /* records across pages and regions */
#define REGIONS_MOST 16u
#define PATIENCE_MS  20000

/* ---- what is asked of the kernel ---- */

static const uint8_t *map;
static pid_t self;
static atomic_uint read_whole[REGIONS_MOST]; /* by a thread of the fetch */
static atomic_uint awaited[REGIONS_MOST];    /* a part of it, by the user of the record */
static atomic_ulong willed_bytes;
static atomic_ulong faults_each; /* that a region costs */
static _Thread_local uint64_t faults;
static bool no_threads;

void __wrap_file_await(const void *begin, size_t bytes);
void __wrap_file_will_need(const void *begin, size_t bytes);
uint64_t __wrap_file_major_faults(void);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *context), void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *context), void *context);

void __wrap_file_await(const void *begin, size_t bytes)
{
	uint64_t offset = (uint64_t)((const uint8_t *)begin - map);
	bool is_user = (pid_t)syscall(SYS_gettid) == self;

	CHECK(offset / READER_REGION_BYTES == (offset + bytes - 1) / READER_REGION_BYTES);
	CHECK(is_user || (offset % READER_REGION_BYTES == 0 && bytes == READER_REGION_BYTES));
	atomic_fetch_add(&(is_user ? awaited : read_whole)[offset / READER_REGION_BYTES], 1);
	faults += atomic_load(&faults_each);
}

void __wrap_file_will_need(const void *begin, size_t bytes)
{
	(void)begin;
	atomic_fetch_add(&willed_bytes, bytes);
}

uint64_t __wrap_file_major_faults(void)
{
	return faults;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *context), void *context)
{
	return no_threads ? EAGAIN : __real_pthread_create(thread, attr, run, context);
}

/* ---- a shard of some regions ---- */

static struct path folder;
static struct shard_schema schema;
static struct shard_dataset *ds;
static struct shard_reader *r;
static uint64_t begin, end; /* of the images */
static struct fetch *f;

static void open_all(bool fits)
{
	const uint64_t sizes[] = {RECORDS};
	struct shard_section s;
	struct path shard;

	schema = photo_schema(SIDE, SHARD_RAW);
	new_folder(&folder, "t_fetch");
	write_dataset(folder.text, &schema, sizes, 1);
	tmp(&shard, "t_fetch.%d/0.shard", (int)getpid());
	s = section_of(shard.text, 1, 0);
	CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
	CHECK_OK(shard_dataset_reader(ds, 0, &r, &fixture_err));
	begin = s.offset;
	end = s.offset + schema.group[0].stride * RECORDS;
	map = r->map;
	self = (pid_t)syscall(SYS_gettid);
	for (unsigned i = 0; i < REGIONS_MOST; i++)
		read_whole[i] = awaited[i] = 0;
	willed_bytes = faults_each = 0;
	f = fetch_open(1, schema.group[0].stride, fits, true);
	CHECK(f);
	fetch_expect(f, r);
	CHECK_EQ(atomic_load(&r->has_regions), fits);
}

static void close_all(void)
{
	fetch_close(f, false);
	shard_dataset_close(ds);
	remove_tree(folder.text);
}

static bool is_whole(uint64_t region)
{
	return region * READER_REGION_BYTES >= begin && (region + 1) * READER_REGION_BYTES <= end;
}

/* All records of an epoch, as a loader takes them. */
static void take_epoch(uint64_t epoch)
{
	for (uint64_t i = 0; i < RECORDS; i++) {
		if (!fetch_begin(f, 0, r, 0, i, epoch))
			continue;
		fetch_await(f, 0, r, 0, i, epoch);
		CHECK(!fetch_begin(f, 0, r, 0, i, epoch));
		CHECK(fetch_is_there(f, 0, r, 0, i, fetch_mark(epoch)));
		CHECK(!fetch_is_there(f, 0, r, 0, i, fetch_mark(epoch + 1)));
	}
}

/* Wait for threads, of which nobody is told that they are done. */
static bool was_read(uint64_t region, unsigned times)
{
	for (int i = 0; i < PATIENCE_MS && atomic_load(&read_whole[region]) < times; i++)
		usleep(1000);
	return atomic_load(&read_whole[region]) == times;
}

TEST(each_region_is_read_once_in_an_epoch)
{
	uint64_t edges = 0;

	open_all(true);
	for (unsigned epoch = 0; epoch < 3; epoch++)
		take_epoch(epoch);
	for (uint64_t k = 0; k < REGIONS_MOST; k++) {
		bool is_used = k * READER_REGION_BYTES < end && (k + 1) * READER_REGION_BYTES > begin;

		STORY("region %u", (unsigned)k);
		CHECK(was_read(k, is_whole(k) ? 3 : 0));
		CHECK_EQ(atomic_load(&awaited[k]), is_used ? 3 : 0);
		if (is_used && !is_whole(k))
			edges += min_u64((k + 1) * READER_REGION_BYTES, end) - max_u64(k * READER_REGION_BYTES, begin);
	}
	CHECK(edges);
	CHECK_EQ(atomic_load(&willed_bytes), 3 * edges);
	close_all();
}

/* A kernel that reads page by page is asked in its own way from then on. */
TEST(a_kernel_without_huge_pages_is_noticed)
{
	uint64_t first = 0;

	open_all(true);
	while (!is_whole((begin + first * schema.group[0].stride) / READER_REGION_BYTES))
		first++;
	atomic_store(&faults_each, 512);
	CHECK(fetch_begin(f, 0, r, 0, first, 0));
	for (int i = 0; i < PATIENCE_MS && !atomic_load(&f->reads_small); i++)
		usleep(1000);
	CHECK(atomic_load(&f->reads_small));
	CHECK_EQ(atomic_load(&willed_bytes), 0);
	take_epoch(1);
	CHECK_EQ(atomic_load(&willed_bytes), end - begin);
	close_all();
}

/* Then nothing is read ahead, but all is waited for. */
TEST(threads_that_cannot_start)
{
	no_threads = true;
	open_all(true);
	take_epoch(0);
	no_threads = false;
	for (uint64_t k = 0; k < REGIONS_MOST; k++) {
		CHECK_EQ(atomic_load(&read_whole[k]), 0);
		CHECK_EQ(atomic_load(&awaited[k]),
			 k * READER_REGION_BYTES < end && (k + 1) * READER_REGION_BYTES > begin);
	}
	close_all();
}

/* Runs that the order uses together, and not more: memory has no room for what is read beside. */
TEST(a_dataset_that_does_not_fit_is_fetched_in_runs)
{
	uint64_t stride, run;

	open_all(false);
	stride = schema.group[0].stride;
	run = FETCH_RUN_BYTES / stride;
	CHECK(fetch_begin(f, 0, r, 0, 3 * run, 0));
	CHECK_EQ(atomic_load(&willed_bytes), run * stride);
	CHECK(fetch_begin(f, 0, r, 0, 4 * run - 1, 0));
	CHECK_EQ(atomic_load(&willed_bytes), run * stride);
	CHECK(fetch_begin(f, 0, r, 0, 4 * run, 0));
	CHECK_EQ(atomic_load(&willed_bytes), 2 * run * stride);
	CHECK(!atomic_load(&f->thread));
	close_all();
}

TEST_MAIN()
