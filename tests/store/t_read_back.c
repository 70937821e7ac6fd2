/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_read_back.c - what a read leaves behind does not reach the next one: errors, ranges that are
 * held in memory, and each byte of a table's hash
 *
 * LDFLAGS: -Wl,--wrap=checksum128,--wrap=engine_is_uring,--wrap=engine_put
 */
#include <fcntl.h>

#include "libshard/format/format.h"
#include "libshard/io/io.h"
#include "libshard/verify/verify.h"
#include "shard_pack.h"
#include "tests/store/fixture.h"

/* ---- one byte of a hash of 16 ---- */

static int wrong_byte = -1; /* of every hash that is made */

struct hash128 __real_checksum128(const void *data, size_t bytes);
struct hash128 __wrap_checksum128(const void *data, size_t bytes);

struct hash128 __wrap_checksum128(const void *data, size_t bytes)
{
	struct hash128 h = __real_checksum128(data, bytes);

	if (wrong_byte >= 0)
		h.b[wrong_byte] ^= 1;
	return h;
}

TEST(each_byte_of_a_hash_counts)
{
	struct shard_schema schema = photo_schema(8, SHARD_RAW);
	struct shard_error err = {.message = ""};
	struct shard_reader *r;
	struct path p;
	uint8_t dst[8 * 8 * 3];

	tmp(&p, "t_read_back.%d.shard", (int)getpid());
	unlink(p.text);
	write_photos(p.text, &schema, 0, 5, NULL);
	for (int at = 0; at < 16; at++) {
		STORY("byte %d", at);
		wrong_byte = at;
		CHECK_EQ(shard_reader_open(&r, p.text, NULL, &err), SHARD_E_CORRUPT); /* the hash of a page */
		wrong_byte = -1;
		CHECK_OK(shard_reader_open(&r, p.text, NULL, &fixture_err));
		wrong_byte = at;
		CHECK_EQ(shard_reader_read(r, 0, 0, 1, dst, &err), SHARD_E_CORRUPT); /* of the table HASH */
		CHECK(strstr(err.message, ": I43: "));
		wrong_byte = -1;
		shard_reader_close(r);
	}
	unlink(p.text);
}

/* ---- reading ahead, by io_uring and by a thread ---- */

static bool without_uring;

bool __real_engine_is_uring(const struct engine *e);
bool __wrap_engine_is_uring(const struct engine *e);

bool __wrap_engine_is_uring(const struct engine *e)
{
	return !without_uring && __real_engine_is_uring(e);
}

/* A job whose O_DIRECT was refused, as with too many open files, is read in advance all the same. */
void __real_engine_put(struct engine *e, struct engine_read *r);
void __wrap_engine_put(struct engine *e, struct engine_read *r);

void __wrap_engine_put(struct engine *e, struct engine_read *r)
{
	CHECK(r->fd >= 0);
	__real_engine_put(e, r);
}

#define AHEAD_BYTES (5 * READ_AHEAD_STEP_BYTES + 4096) /* of the file */

/* Jobs of either kind, in turn; which of them fail, and how much of them can be used all the same. */
static const struct {
	size_t offset, bytes, there;
	bool is_dropped; /* it is ended when its first bytes are there */
} ahead_jobs[] = {
	{0, 3 * READ_AHEAD_STEP_BYTES + 4096, 3 * READ_AHEAD_STEP_BYTES + 4096, false},
	{AHEAD_BYTES, READ_AHEAD_STEP_BYTES, 0, false}, /* behind the end of the file */
	{2 * READ_AHEAD_STEP_BYTES, 3 * READ_AHEAD_STEP_BYTES, 3 * READ_AHEAD_STEP_BYTES, true},
	{4096, 4096, 4096, false},
	{READ_AHEAD_STEP_BYTES, 6 * READ_AHEAD_STEP_BYTES, 4 * READ_AHEAD_STEP_BYTES, false}, /* over its end */
	{3 * READ_AHEAD_STEP_BYTES, 2 * READ_AHEAD_STEP_BYTES, 2 * READ_AHEAD_STEP_BYTES, false},
};

static void check_ahead_job(struct read_ahead *ahead, size_t i, const uint8_t *want, const uint8_t *got)
{
	struct shard_error err = {.message = ""};
	size_t bytes = ahead_jobs[i].bytes, there = ahead_jobs[i].there;

	for (size_t at = 0; at < there && !(at && ahead_jobs[i].is_dropped); at += READ_AHEAD_STEP_BYTES) {
		size_t end = there - at < READ_AHEAD_STEP_BYTES ? there : at + READ_AHEAD_STEP_BYTES;

		CHECK_OK(read_ahead_wait(ahead, i % 2, end, &err));
		CHECK_MEM(got + at, want + ahead_jobs[i].offset + at, end - at);
	}
	if (there < bytes) {
		CHECK_EQ(read_ahead_wait(ahead, i % 2, bytes, &err), SHARD_E_IO);
		CHECK(strstr(err.message, "t_read_back"));
		CHECK_EQ(read_ahead_wait(ahead, i % 2, bytes, NULL), SHARD_E_IO);
	}
	read_ahead_end(ahead, i % 2);
}

TEST(an_error_ends_with_its_read)
{
	static const char *const ways[] = {"as it can", "without io_uring", "without O_DIRECT"};
	uint8_t *want = malloc(AHEAD_BYTES), *got[2];
	struct path p;
	struct prng random = {7};
	int fd;

	CHECK(want);
	for (int i = 0; i < 2; i++)
		CHECK(!posix_memalign((void **)&got[i], 4096, READ_AHEAD_STEPS_MOST * READ_AHEAD_STEP_BYTES));
	prng_fill(&random, want, AHEAD_BYTES);
	tmp(&p, "t_read_back.%d.bytes", (int)getpid());
	file_make(p.text, want, AHEAD_BYTES);
	fd = open(p.text, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	for (int way = 0; way < 3; way++) {
		int direct_fd = way == 2 ? -1 : file_open_direct(p.text);
		struct read_ahead *ahead;

		without_uring = way == 1;
		ahead = read_ahead_open(direct_fd >= 0);
		CHECK(ahead);
		/* each is begun before the one before it is used, as verify does */
		for (size_t i = 0; i <= 3 * COUNT(ahead_jobs); i++) {
			size_t next = i % COUNT(ahead_jobs), now = (i + COUNT(ahead_jobs) - 1) % COUNT(ahead_jobs);
			struct read_ahead_job job = {.path = p.text,
						     .fd = fd,
						     .direct_fd = i % 4 ? direct_fd : -1,
						     .buffer = got[next % 2],
						     .offset = ahead_jobs[next].offset,
						     .bytes = ahead_jobs[next].bytes};

			STORY("%s, job %zu", ways[way], now);
			memset(got[next % 2], 0, job.bytes);
			read_ahead_start(ahead, next % 2, &job);
			if (i)
				check_ahead_job(ahead, now, want, got[now % 2]);
		}
		read_ahead_close(ahead); /* with a job that nobody has waited for */
		file_close(direct_fd);
	}
	without_uring = false;
	close(fd);
	unlink(p.text);
	free(want);
	free(got[0]);
	free(got[1]);
}

/* ---- units that fit the buffer, come to it in steps, or do not fit it ---- */

static void check_hash(uint32_t large_bytes)
{
	struct shard_schema schema = {
		.group_count = 2,
		.field_count = 2,
		.field = {{.name = "small", .dtype = SHARD_U8, .ndim = 1, .shape = {5000}},
			  {.name = "large", .dtype = SHARD_U8, .group = 1, .ndim = 1, .shape = {large_bytes}}},
	};
	struct shard_writer_options o = {.size = sizeof(o), .planned_records = 3};
	uint8_t *small = malloc(8192), *large = malloc(large_bytes + 4096), *file, sha256[32];
	const void *record[2] = {small, large};
	struct shard_written written;
	struct shard_writer *w;
	struct prng random = {9};
	struct path p;
	size_t bytes;

	CHECK(small && large);
	CHECK_OK(shard_schema_lay_out(&schema, 0, &fixture_err));
	tmp(&p, "t_read_back.%d.shard", (int)getpid());
	unlink(p.text);
	CHECK_OK(shard_writer_open(&w, p.text, &schema, &o, &fixture_err));
	for (int i = 0; i < 3; i++) {
		prng_fill(&random, small, 5000);
		prng_fill(&random, large, large_bytes);
		CHECK_OK(shard_writer_append(w, record, NULL, 0, &fixture_err));
	}
	CHECK_OK(shard_writer_finish(w, &written, &fixture_err)); /* which reads it back */
	shard_writer_close(w);
	file = file_bytes(p.text, &bytes);
	shard_sha256(file, bytes, sha256);
	CHECK_MEM(written.sha256, sha256, sizeof(sha256));
	free(file);
	free(small);
	free(large);
	unlink(p.text);
}

TEST(the_hash_of_a_file_is_that_of_all_its_bytes)
{
	for (uint32_t mib = 1; mib <= 17; mib += 8) { /* of 3 records, whose units are read into 16 MiB */
		STORY("units of %u MiB", mib);
		check_hash(mib << 20);
	}
}

TEST_MAIN()
