/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_read_back.c - what a read leaves behind does not reach the next one: errors, ranges that are
 * held in memory, and each byte of a table's hash
 *
 * LDFLAGS: -Wl,--wrap=checksum128
 */
#include "libshard/format/format.h"
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

/* ---- a thread that reads ahead ---- */

TEST(an_error_ends_with_its_read)
{
	static const size_t bytes = 3 * READ_AHEAD_STEP_BYTES + 100;
	uint8_t *want = malloc(bytes), *got = malloc(bytes);
	struct read_ahead *ahead = read_ahead_open();
	struct shard_error err = {.message = ""};
	struct path p;
	struct prng random = {7};
	int fd;

	CHECK(want && got && ahead);
	prng_fill(&random, want, bytes);
	tmp(&p, "t_read_back.%d.bytes", (int)getpid());
	file_make(p.text, want, bytes);
	fd = open(p.text, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	for (int turn = 0; turn < 6; turn++) {
		bool fails = turn % 2 == 0;
		struct read_ahead_job job = {
			.path = p.text,
			.fd = fd,
			.direct_fd = -1,
			.buffer = got,
			.offset = fails ? bytes : 0, /* behind the end of the file */
			.bytes = bytes,
		};

		STORY("turn %d", turn);
		memset(got, 0, bytes);
		read_ahead_start(ahead, &job);
		CHECK_EQ(read_ahead_wait(ahead, bytes, &err), fails ? SHARD_E_IO : SHARD_OK);
		CHECK(fails || !memcmp(got, want, bytes));
	}
	read_ahead_close(ahead);
	close(fd);
	unlink(p.text);
	free(want);
	free(got);
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
