/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_residency.c - a shard that is said to lie in memory, and does not
 *
 * On a fast disk the look at a missing page may read it before it answers, so that a cold shard
 * counts as cached.  Its pages then come one by one, each a wait: 20 to 100 times slower.  And what
 * was just written must be read back from the disk, whatever the cache says.
 *
 * LDFLAGS: -Wl,--wrap=file_seems_cached,--wrap=file_major_faults,--wrap=file_read_at,--wrap=engine_put
 */
#include "libshard/io/io.h"
#include "shard_pack.h"
#include "tests/store/fixture.h"

#define RECORDS 400u /* of 147 KiB: eight pieces of work */

static bool frozen;	    /* nobody is told of faults */
static uint64_t data_bytes; /* asked of a disk, in pieces larger than any table */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool __real_file_seems_cached(int fd, uint64_t bytes, bool *whole);
bool __wrap_file_seems_cached(int fd, uint64_t bytes, bool *whole);
uint64_t __real_file_major_faults(void);
uint64_t __wrap_file_major_faults(void);
int __real_file_read_at(int fd, void *out, size_t bytes, uint64_t offset, const char *path, struct shard_error *err);
int __wrap_file_read_at(int fd, void *out, size_t bytes, uint64_t offset, const char *path, struct shard_error *err);

bool __wrap_file_seems_cached(int fd, uint64_t bytes, bool *whole)
{
	(void)fd;
	(void)bytes;
	(void)whole;
	return true;
}

uint64_t __wrap_file_major_faults(void)
{
	return frozen ? 0 : __real_file_major_faults();
}

int __wrap_file_read_at(int fd, void *out, size_t bytes, uint64_t offset, const char *path, struct shard_error *err)
{
	pthread_mutex_lock(&lock);
	data_bytes += bytes > (1u << 19) ? bytes : 0;
	pthread_mutex_unlock(&lock);
	return __real_file_read_at(fd, out, bytes, offset, path, err);
}

void __real_engine_put(struct engine *e, struct engine_read *r);
void __wrap_engine_put(struct engine *e, struct engine_read *r);

void __wrap_engine_put(struct engine *e, struct engine_read *r)
{
	pthread_mutex_lock(&lock);
	data_bytes += r->bytes > (1u << 19) ? r->bytes : 0;
	pthread_mutex_unlock(&lock);
	__real_engine_put(e, r);
}

/* Out of the page cache; false where the file lives nowhere else. */
static bool make_cold(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	bool warm;

	CHECK(fd >= 0);
	CHECK_EQ(fsync(fd), 0);
	file_drop_cache(fd);
	CHECK_EQ(fstat(fd, &st), 0);
	warm = __real_file_seems_cached(fd, (uint64_t)st.st_size, NULL);
	close(fd);
	return !warm;
}

static uint64_t verify_cold(const char *path)
{
	struct shard_verify_options o = {.size = sizeof(o), .thread_count = 1};
	struct shard_verify_report report;
	struct shard_reader *r;

	if (!make_cold(path))
		SKIP("$TMPDIR is on a file system that lives in memory");
	CHECK_OK(shard_reader_open(&r, path, NULL, &fixture_err));
	data_bytes = 0;
	CHECK_OK(shard_reader_verify(r, &o, &report, &fixture_err));
	CHECK_EQ(report.record_count, RECORDS);
	shard_reader_close(r);
	return data_bytes;
}

TEST(faults_end_the_belief_that_a_shard_is_cached)
{
	struct shard_schema s = photo_schema(224, SHARD_RAW);
	struct path dir, path;

	new_folder(&dir, "t_residency");
	tmp(&path, "t_residency.%d/cold.shard", (int)getpid());
	write_photos(path.text, &s, 0, RECORDS, NULL);
	frozen = true; /* the control: with nobody watching, all of it comes page by page */
	CHECK_EQ(verify_cold(path.text), 0);
	frozen = false; /* one piece of 8 MiB came so, the rest in large reads */
	CHECK(verify_cold(path.text) > RECORDS / 2 * s.group[0].stride);
	remove_tree(dir.text);
}

static void read_back(uint32_t side, uint64_t count)
{
	struct shard_schema s = photo_schema(side, SHARD_RAW);
	struct shard_writer_options o = {.size = sizeof(o), .planned_records = count};
	uint8_t *record[2] = {calloc(1, s.group[0].record_bytes), calloc(1, s.group[1].record_bytes)};
	const void *group[2] = {record[0], record[1]};
	struct shard_written written;
	struct shard_writer *w;
	struct path dir, path;

	new_folder(&dir, "t_residency");
	tmp(&path, "t_residency.%d/new.shard", (int)getpid());
	CHECK_OK(shard_writer_open(&w, path.text, &s, &o, &fixture_err));
	for (unsigned i = 0; i < o.planned_records; i++)
		CHECK_OK(shard_writer_append(w, group, NULL, 0, &fixture_err));
	data_bytes = 0;
	CHECK_OK(shard_writer_finish(w, &written, &fixture_err));
	CHECK(data_bytes > count * 9 / 10 * s.group[0].stride);
	shard_writer_close(w);
	remove_tree(dir.text);
	free(record[0]);
	free(record[1]);
}

TEST(what_was_written_is_read_back_from_the_disk)
{
	STORY("into the memory that it was written from");
	read_back(224, 100);
	STORY("units that do not fit there: of 3 MiB");
	read_back(1024, 10);
}

TEST_MAIN()
