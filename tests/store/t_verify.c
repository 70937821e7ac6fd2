/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_verify.c - every problem is found, however many threads look, whatever way the bytes are read
 *
 * LDFLAGS: -Wl,--wrap=verify_units,--wrap=file_seems_cached,--wrap=file_open_direct
 * LDFLAGS: -Wl,--wrap=file_read_at,--wrap=record_check_ragged,--wrap=reader_decode_chunk
 */
#include <fcntl.h>

#include "libshard/base/error.h"
#include "libshard/io/file.h"
#include "libshard/store/read/verify.h"
#include "shard_pack.h"
#include "tests/store/fixture.h"

/* ---- what the verifier asks of others ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* how often a unit was checked: of groups 0 and 1, in the order of shards in a file or not */
static unsigned seen[2][10000];
static bool counting;

/* How the page cache and O_DIRECT shall look. */
static enum { AS_IT_IS, HOT, COLD, COLD_WITHOUT_DIRECT, COLD_DIRECT_FAILS } cache;
static unsigned direct_reads, ordinary_reads;

/* Not 0: the shard is cut here after its tables were checked, before its first units are. */
static uint64_t cut_at;

int __real_verify_units(struct shard_reader *r, struct verify_room *room, uint32_t group, uint64_t unit, uint64_t count,
			uint64_t *bytes, void (*on_problem)(void *, const struct shard_error *), void *context,
			struct shard_error *err);
int __wrap_verify_units(struct shard_reader *r, struct verify_room *room, uint32_t group, uint64_t unit, uint64_t count,
			uint64_t *bytes, void (*on_problem)(void *, const struct shard_error *), void *context,
			struct shard_error *err);
bool __real_file_seems_cached(int fd, uint64_t bytes, bool *whole);
bool __wrap_file_seems_cached(int fd, uint64_t bytes, bool *whole);
int __real_file_open_direct(const char *path);
int __wrap_file_open_direct(const char *path);
int __real_file_read_at(int fd, void *out, size_t bytes, uint64_t offset, const char *path, struct shard_error *err);
int __wrap_file_read_at(int fd, void *out, size_t bytes, uint64_t offset, const char *path, struct shard_error *err);

int __wrap_verify_units(struct shard_reader *r, struct verify_room *room, uint32_t group, uint64_t unit, uint64_t count,
			uint64_t *bytes, void (*on_problem)(void *, const struct shard_error *), void *context,
			struct shard_error *err)
{
	if (counting) {
		pthread_mutex_lock(&lock);
		for (uint64_t u = unit; u < unit + count; u++)
			seen[group]
			    [r->pages->plan_shard + u]++; /* fixtures say there with which record a shard starts */
		pthread_mutex_unlock(&lock);
	}
	if (cut_at)
		CHECK_EQ(truncate(r->path, (off_t)cut_at), 0);
	return __real_verify_units(r, room, group, unit, count, bytes, on_problem, context, err);
}

bool __wrap_file_seems_cached(int fd, uint64_t bytes, bool *whole)
{
	return cache == AS_IT_IS ? __real_file_seems_cached(fd, bytes, whole) : cache == HOT;
}

int __wrap_file_open_direct(const char *path)
{
	return cache == COLD_WITHOUT_DIRECT ? -1 : __real_file_open_direct(path);
}

int __wrap_file_read_at(int fd, void *out, size_t bytes, uint64_t offset, const char *path, struct shard_error *err)
{
	bool direct = fcntl(fd, F_GETFL) & O_DIRECT; /* threads reuse the numbers of files that others closed */

	pthread_mutex_lock(&lock);
	*(direct ? &direct_reads : &ordinary_reads) += 1;
	pthread_mutex_unlock(&lock);
	if (direct && cache == COLD_DIRECT_FAILS)
		return SHARD_E_IO;
	return __real_file_read_at(fd, out, bytes, offset, path, err);
}

/* ---- fixtures ---- */

static struct path folder;
static struct shard_schema schema;
static const uint64_t sizes[] = {40, 7, 0, 100, 3, 50}; /* 200 records */

static const char *in_folder(struct path *p, const char *name)
{
	return tmp(p, "t_verify.%d/%s", (int)getpid(), name);
}

/* Units of 1 in group 0, of 4 in group 1. */
static void make_dataset(uint32_t codec)
{
	cache = AS_IT_IS;
	schema = photo_schema(20, codec);
	schema.group[0].unit_records = 1;
	schema.group[0].chunk_records = codec == SHARD_RAW ? 0 : 1;
	schema.group[1].unit_records = 4;
	new_folder(&folder, "t_verify");
	write_dataset(folder.text, &schema, sizes, COUNT(sizes));
}

static uint64_t units_of(uint64_t records)
{
	return records + (records + 3) / 4;
}

struct told {
	char message[400][200];
	unsigned count;
	int worst, slow;
	bool other_thread;
	pthread_t caller;
};

static void on_problem(void *context, const struct shard_error *problem)
{
	struct told *t = context;

	t->other_thread = t->other_thread || !pthread_equal(t->caller, pthread_self());
	snprintf(t->message[t->count++], sizeof(t->message[0]), "%d %.180s", problem->status,
		 problem->message + strlen(folder.text));
	if (t->slow)
		usleep((unsigned)t->slow);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Verify the dataset, all problems told and sorted. */
static int verify(uint32_t threads, struct told *t, struct shard_verify_report *report, struct shard_error *err)
{
	struct shard_verify_options o = {
		.size = sizeof(o), .thread_count = threads, .context = t, .problem = on_problem, .sha256 = 1};
	struct shard_dataset *ds;
	int rc;

	t->count = 0;
	t->caller = pthread_self();
	CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
	rc = shard_dataset_verify(ds, &o, report, err);
	shard_dataset_close(ds);
	qsort(t->message, t->count, sizeof(t->message[0]), by_text);
	CHECK(!t->other_thread);
	return rc;
}

/* ---- nothing wrong ---- */

TEST(a_good_dataset_gives_the_same_report_to_any_number_of_threads)
{
	static const uint32_t threads[] = {1, 2, 8, 0, 1000};
	static struct told told;

	for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++) {
		struct shard_verify_report first, report;

		make_dataset(codec);
		for (size_t i = 0; i < COUNT(threads); i++) {
			STORY("codec %u, %u threads", codec, threads[i]);
			CHECK_OK(verify(threads[i], &told, &report, &fixture_err));
			CHECK_EQ(told.count, 0);
			CHECK_EQ(report.shard_count, COUNT(sizes));
			CHECK_EQ(report.record_count, 200);
			CHECK_EQ(report.unit_count,
				 units_of(40) + units_of(7) + units_of(100) + units_of(3) + units_of(50));
			CHECK_EQ(report.problem_count, 0);
			CHECK(codec != SHARD_RAW ||
			      report.bytes == 200 * (schema.group[0].stride + schema.group[1].stride));
			CHECK(report.elapsed_ns > 0);
			report.elapsed_ns = 0;
			if (!i)
				first = report;
			CHECK_MEM(&report, &first, sizeof(report));
		}
	}
}

TEST(every_unit_is_checked_once)
{
	static const uint32_t threads[] = {1, 2, 8};
	struct shard_dataset *ds;

	make_dataset(SHARD_RAW);
	for (size_t i = 0; i < COUNT(threads); i++) {
		struct shard_verify_options o = {.size = sizeof(o), .thread_count = threads[i]};

		STORY("%u threads", threads[i]);
		memset(seen, 0, sizeof(seen));
		CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
		counting = true;
		CHECK_OK(shard_dataset_verify(ds, &o, NULL, &fixture_err));
		counting = false;
		shard_dataset_close(ds);
		for (unsigned u = 0; u < 200; u++)
			CHECK_EQ(seen[0][u], 1);
		for (unsigned u = 200; u < 10000; u++)
			CHECK_EQ(seen[0][u], 0);
	}
}

/* ---- damage ---- */

/* Flip a byte in each record of a shard. */
static void damage_records(const char *name, uint64_t first, uint64_t count)
{
	struct path p;
	uint64_t offset = section_of(in_folder(&p, name), 1, 0).offset;

	for (uint64_t i = first; i < first + count; i++)
		file_flip(p.text, offset + i * schema.group[0].stride + 77, 0x10);
}

static void damage_much(void)
{
	struct path p, q;

	damage_records("0.shard", 3, 20);
	damage_records("3.shard", 0, 100);
	damage_records("5.shard", 49, 1);
	in_folder(&p, "1.shard");
	/* a table: the shard goes no further */
	file_flip(p.text, section_of(p.text, 4, 0).offset + 8, 1);
	unlink(in_folder(&p, "4.shard"));				       /* D1 */
	file_copy(in_folder(&p, "2.shard"), in_folder(&q, "not named.shard")); /* D7 */
}

TEST(all_problems_are_told_whoever_finds_them)
{
	static const uint32_t threads[] = {1, 2, 8};
	static struct told told, first;

	make_dataset(SHARD_RAW);
	damage_much();
	for (size_t i = 0; i < COUNT(threads); i++)
		for (int slow = 0; slow < 2; slow++) {
			struct shard_verify_report report;
			struct shard_error err = {.message = ""};

			STORY("%u threads, callback %s", threads[i], slow ? "slow" : "fast");
			told.slow = slow * 200;
			CHECK_EQ(verify(threads[i], &told, &report, &err), SHARD_E_CORRUPT);
			CHECK_EQ(err.status, SHARD_E_CORRUPT);
			CHECK_EQ(told.count, 20 + 100 + 1 + 1 + 1 + 1 + 3); /* and the SHA-256 of three shards */
			CHECK_EQ(report.problem_count, told.count);
			if (!i && !slow)
				first = told;
			for (unsigned k = 0; k < told.count; k++)
				CHECK_STR(told.message[k], first.message[k]);
		}
	told.slow = 0;
	CHECK(strstr(first.message[0], ": I44: ") || strstr(first.message[0], ": I43: "));
}

/* More shards that cannot be opened than the queue holds, and a caller who is slow to take them. */
TEST(two_hundred_missing_shards_are_two_hundred_problems)
{
	static const uint32_t threads[] = {1, 2, 8};
	static struct told told;
	uint64_t ones[200];
	struct path p;

	schema = photo_schema(8, SHARD_RAW);
	new_folder(&folder, "t_verify");
	for (size_t i = 0; i < COUNT(ones); i++)
		ones[i] = 1;
	write_dataset(folder.text, &schema, ones, COUNT(ones));
	for (size_t i = 0; i < COUNT(ones); i++) {
		char name[32];

		snprintf(name, sizeof(name), "%zu.shard", i);
		in_folder(&p, name);
		if (i % 3)
			unlink(p.text);
		else
			file_flip(p.text, section_of(p.text, 8, 0).offset, 1); /* opens, and its tables are damaged */
	}
	told.slow = 300;
	for (size_t i = 0; i < COUNT(threads); i++) {
		struct shard_verify_report report;

		STORY("%u threads", threads[i]);
		CHECK_EQ(verify(threads[i], &told, &report, NULL), SHARD_E_CORRUPT);
		CHECK_EQ(told.count, 200);
		CHECK_EQ(report.problem_count, 200);
		CHECK_EQ(report.shard_count, 0);
		CHECK_EQ(report.unit_count, 0);
		for (unsigned k = 1; k < told.count; k++)
			CHECK(strcmp(told.message[k - 1], told.message[k])); /* none of them twice */
	}
	told.slow = 0;
}

TEST(without_a_callback_it_stops_at_the_first)
{
	static const uint32_t threads[] = {1, 4};

	make_dataset(SHARD_RAW);
	damage_records("3.shard", 0, 100);
	for (size_t i = 0; i < COUNT(threads); i++) {
		struct shard_verify_options o = {.size = sizeof(o), .thread_count = threads[i]};
		struct shard_error err = {.message = ""};
		struct shard_verify_report report;
		struct shard_dataset *ds;

		STORY("%u threads", threads[i]);
		CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
		CHECK_EQ(shard_dataset_verify(ds, &o, &report, &err), SHARD_E_CORRUPT);
		CHECK(strstr(err.message, "3.shard: I44: unit "));
		CHECK(report.problem_count >= 1 && report.problem_count <= threads[i]);
		shard_dataset_close(ds);
	}
}

TEST(the_gravest_problem_decides)
{
	static const struct {
		const char *story;
		bool extra, compat, damaged;
		int want;
	} rows[] = {{"a file that is not named", true, false, false, SHARD_E_MISMATCH},
		    {"and a shard from the future", true, true, false, SHARD_E_UNSUPPORTED},
		    {"and damage", true, true, true, SHARD_E_CORRUPT}};
	static struct told told;

	for (size_t i = 0; i < COUNT(rows); i++) {
		const uint64_t two[] = {2, 2};
		struct shard_error err;
		struct path p, q;

		STORY("%s", rows[i].story);
		schema = photo_schema(8, SHARD_RAW);
		new_folder(&folder, "t_verify");
		write_dataset(folder.text, &schema, two, 2);
		if (rows[i].extra)
			file_copy(in_folder(&p, "0.shard"), in_folder(&q, "extra.shard"));
		if (rows[i].damaged)
			damage_records("1.shard", 0, 1);
		if (rows[i].compat) { /* put in the place of shard 0, and the manifest written for it */
			struct shard_seal_options o = {.size = sizeof(o), .replace = 1};
			struct shard_seal *s;
			uint8_t sha256[32] = {0};

			size_t bytes;
			uint8_t *file = file_bytes(in_folder(&p, "0.shard"), &bytes), hash[16];

			file[0x20] = 1;
			shard_xxh128(file, 4080, hash);
			memcpy(file + 4080, hash, 16);
			memcpy(file + bytes - 4096 + 0x28, hash, 16);
			shard_xxh128(file + bytes - 4096, 4080, hash);
			memcpy(file + bytes - 16, hash, 16);
			file_make(p.text, file, bytes);
			shard_sha256(file, bytes, sha256);
			free(file);
			CHECK_OK(shard_seal_open(&s, folder.text, &o, &fixture_err));
			CHECK_OK(shard_seal_add(s, "0.shard", sha256, &fixture_err));
			CHECK_OK(shard_seal_add(s, "1.shard", NULL, &fixture_err));
			CHECK_OK(shard_seal_finish(s, &fixture_err));
			shard_seal_close(s);
		}
		CHECK_EQ(verify(2, &told, NULL, &err), rows[i].want);
		CHECK_EQ(err.status, rows[i].want);
		CHECK_EQ(told.count, 1u + rows[i].compat + rows[i].damaged);
	}
}

TEST(the_sha256_is_checked_on_request)
{
	struct shard_verify_options o = {.size = sizeof(o), .thread_count = 1};
	static const uint8_t wrong[32] = {1, 2, 3};
	struct shard_error err;
	struct shard_dataset *ds;
	struct shard_seal *s;
	struct path p;

	schema = photo_schema(8, SHARD_RAW);
	new_folder(&folder, "t_verify");
	write_photos(in_folder(&p, "x.shard"), &schema, 0, 3, NULL);
	CHECK_OK(shard_seal_open(&s, folder.text, NULL, &fixture_err));
	CHECK_OK(shard_seal_add(s, "x.shard", wrong, &fixture_err));
	CHECK_OK(shard_seal_finish(s, &fixture_err));
	shard_seal_close(s);
	CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
	CHECK_OK(shard_dataset_verify(ds, &o, NULL, &fixture_err));
	o.sha256 = 1;
	CHECK_EQ(shard_dataset_verify(ds, &o, NULL, &err), SHARD_E_MISMATCH);
	CHECK(strstr(err.message, "x.shard: D6: its SHA-256 is "));
	CHECK(strstr(err.message, "the manifest says 010203000000"));
	o.sha256 = 2;
	CHECK_EQ(shard_dataset_verify(ds, &o, NULL, &err), SHARD_E_ARGUMENT);
	shard_dataset_close(ds);
}

/*
 * The stored hash of a chunk (I46) is a rule like others, whatever the reader was told to check
 * when it reads.
 */
TEST(readers_that_never_check_verify_all_the_same)
{
	struct shard_verify_options o = {.size = sizeof(o), .thread_count = 1};
	struct shard_reader_options never = {.size = sizeof(never), .check = SHARD_CHECK_NEVER};
	struct shard_error err = {.message = ""};
	struct shard_section index;
	struct shard_reader *r;
	uint8_t *file, hash[16];
	size_t bytes;
	struct path p;

	make_dataset(SHARD_LZ4);
	index = section_of(in_folder(&p, "0.shard"), 3, 0);
	file = file_bytes(p.text, &bytes);
	file[index.offset + 16] ^= 1; /* the stored hash of chunk 0; then all that covers it */
	shard_xxh128(file + index.offset, index.bytes, hash);
	for (size_t i = bytes - 4096 + 0x400; i < bytes - 1024; i += 64)
		if (!memcmp(file + i + 48, index.hash, 16))
			memcpy(file + i + 48, hash, 16);
	shard_xxh128(file + bytes - 4096, 4080, hash);
	memcpy(file + bytes - 16, hash, 16);
	file_make(p.text, file, bytes);
	free(file);
	CHECK_OK(shard_reader_open(&r, p.text, &never, &fixture_err));
	CHECK_EQ(shard_reader_verify(r, &o, NULL, &err), SHARD_E_CORRUPT);
	CHECK(strstr(err.message, "0.shard: I46: chunk 0 of group 0"));
	shard_reader_close(r);
}

TEST(a_damaged_unit_of_a_ragged_shard_is_told_once)
{
	struct shard_schema s = {.group_count = 1,
				 .field_count = 2,
				 .field = {{.name = "text",
					    .kind = SHARD_STRING,
					    .dtype = SHARD_U8,
					    .ndim = 1,
					    .shape = {100},
					    .ragged_axes = 1,
					    .length_field = 1},
					   {.name = "length", .dtype = SHARD_U32}}};
	struct shard_writer_options wo = {.size = sizeof(wo), .planned_records = 200};
	static struct told told;
	struct shard_verify_options o = {.size = sizeof(o), .thread_count = 2, .context = &told, .problem = on_problem};
	struct shard_written written;
	struct shard_writer *w;
	struct shard_reader *r;
	uint8_t record[104] = {0};
	struct path p;

	new_folder(&folder, "t_verify");
	CHECK_OK(shard_schema_lay_out(&s, 0, &fixture_err));
	CHECK_OK(shard_writer_open(&w, in_folder(&p, "x.shard"), &s, &wo, &fixture_err));
	for (uint32_t i = 0; i < 200; i++) {
		const void *group[1] = {record};
		uint32_t length = i % 100;

		memset(record, 0, 100);
		memset(record, 't', length);
		memcpy(record + 100, &length, 4);
		CHECK_OK(shard_writer_append(w, group, NULL, 0, &fixture_err));
	}
	CHECK_OK(shard_writer_finish(w, &written, &fixture_err));
	shard_writer_close(w);
	file_flip(p.text, 4096 + 3, 1);
	told.count = 0;
	told.caller = pthread_self();
	CHECK_OK(shard_reader_open(&r, p.text, NULL, &fixture_err));
	CHECK_EQ(shard_reader_verify(r, &o, NULL, NULL), SHARD_E_CORRUPT);
	CHECK_EQ(told.count, 1);
	CHECK(strstr(told.message[0], "I44: unit 0"));
	shard_reader_close(r);
}

static atomic_uint checked[1000], decoded;
static bool refuse[1000];

int __real_record_check_ragged(const struct shard_field *f, const uint8_t *data, const uint8_t *lengths,
			       uint64_t record, struct shard_error *err);
int __wrap_record_check_ragged(const struct shard_field *f, const uint8_t *data, const uint8_t *lengths,
			       uint64_t record, struct shard_error *err);
int __wrap_record_check_ragged(const struct shard_field *f, const uint8_t *data, const uint8_t *lengths,
			       uint64_t record, struct shard_error *err)
{
	checked[record]++;
	if (refuse[record])
		return error_set(err, SHARD_E_CORRUPT, "I58: record %u", (unsigned)record);
	return __real_record_check_ragged(f, data, lengths, record, err);
}

int __real_reader_decode_chunk(const struct shard_reader *r, uint32_t group, uint64_t idx, const struct chunk *c,
			       const void *stored, bool check, void *dst, struct shard_error *err);
int __wrap_reader_decode_chunk(const struct shard_reader *r, uint32_t group, uint64_t idx, const struct chunk *c,
			       const void *stored, bool check, void *dst, struct shard_error *err);
int __wrap_reader_decode_chunk(const struct shard_reader *r, uint32_t group, uint64_t idx, const struct chunk *c,
			       const void *stored, bool check, void *dst, struct shard_error *err)
{
	decoded++;
	return __real_reader_decode_chunk(r, group, idx, c, stored, check, dst, err);
}

TEST(every_ragged_record_is_checked_once_and_every_problem_told)
{
	for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++) {
		struct shard_schema s = {.group_count = 1,
					 .field_count = 2,
					 .group = {{.codec = codec}},
					 .field = {{.name = "text",
						    .kind = SHARD_STRING,
						    .dtype = SHARD_U8,
						    .ndim = 1,
						    .shape = {60000},
						    .ragged_axes = 1,
						    .length_field = 1},
						   {.name = "length", .dtype = SHARD_U32}}};
		struct shard_writer_options wo = {.size = sizeof(wo), .planned_records = 1000};
		static struct told told;
		static uint8_t record[60004];
		struct shard_verify_options o = {
			.size = sizeof(o), .thread_count = 3, .context = &told, .problem = on_problem};
		struct shard_written written;
		struct shard_writer *w;
		struct shard_reader *r;
		struct path p;

		STORY("codec %u", codec);
		new_folder(&folder, "t_verify");
		CHECK_OK(shard_schema_lay_out(&s, 0, &fixture_err));
		CHECK_OK(shard_writer_open(&w, in_folder(&p, "x.shard"), &s, &wo, &fixture_err));
		for (uint32_t i = 0; i < 1000; i++) {
			const void *group[1] = {record};

			memcpy(record + 60000, &(uint32_t){0}, 4);
			CHECK_OK(shard_writer_append(w, group, NULL, 0, &fixture_err));
		}
		CHECK_OK(shard_writer_finish(w, &written, &fixture_err));
		shard_writer_close(w);
		CHECK_OK(shard_reader_open(&r, p.text, NULL, &fixture_err));
		for (unsigned i = 0; i < 1000; i++)
			checked[i] = 0;
		decoded = told.count = 0;
		told.caller = pthread_self();
		refuse[0] = refuse[1] = refuse[500] = refuse[999] = true;
		CHECK_EQ(shard_reader_verify(r, &o, NULL, NULL), SHARD_E_CORRUPT);
		CHECK_EQ(told.count, 4);
		for (unsigned i = 0; i < 1000; i++)
			CHECK_EQ(checked[i], 1);
		CHECK_EQ(decoded, codec == SHARD_LZ4
					  ? 2 * ((1000 + s.group[0].chunk_records - 1) / s.group[0].chunk_records)
					  : 0);
		memset(refuse, 0, sizeof(refuse));
		shard_reader_close(r);
	}
}

/* ---- samples ---- */

TEST(a_sample_has_its_size_and_spreads)
{
	static const uint64_t samples[] = {1, 2, 3, 10, 49, 50, 249, 250, 1000, UINT64_MAX};
	uint64_t all = units_of(40) + units_of(7) + units_of(100) + units_of(3) + units_of(50);

	make_dataset(SHARD_RAW);
	CHECK_EQ(all, 251);
	for (size_t i = 0; i < COUNT(samples); i++) {
		struct shard_verify_options o = {.size = sizeof(o), .thread_count = 2, .sample_units = samples[i]};
		uint64_t want = samples[i] < all ? samples[i] : all;
		struct shard_verify_report report;
		struct shard_dataset *ds;
		unsigned longest = 0, gap = 0;

		STORY("%" PRIu64 " units", samples[i]);
		memset(seen, 0, sizeof(seen));
		CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
		counting = true;
		CHECK_OK(shard_dataset_verify(ds, &o, &report, &fixture_err));
		counting = false;
		shard_dataset_close(ds);
		CHECK_EQ(report.unit_count, want);
		CHECK_EQ(report.shard_count, COUNT(sizes)); /* the structure of all of them */
		/* no long stretch of group 0 without one; 26 units of group 1 lie between some */
		for (unsigned u = 0; u < 200; u++) {
			gap = seen[0][u] ? 0 : gap + 1;
			longest = gap > longest ? gap : longest;
			CHECK(seen[0][u] <= 1);
		}
		CHECK(longest <= 2 * all / want + 26);
	}
}

/* A shard that is missing does not move the sample of the others. */
TEST(a_missing_shard_does_not_move_the_sample)
{
	struct shard_verify_options o = {.size = sizeof(o), .thread_count = 1, .sample_units = 40};
	static struct told told;
	unsigned with[200], without[200];
	struct shard_dataset *ds;
	struct path p;

	make_dataset(SHARD_RAW);
	o.context = &told;
	o.problem = on_problem;
	told.caller = pthread_self();
	for (int turn = 0; turn < 2; turn++) {
		memset(seen, 0, sizeof(seen));
		told.count = 0;
		CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
		counting = true;
		CHECK_EQ(shard_dataset_verify(ds, &o, NULL, NULL), turn ? SHARD_E_MISMATCH : SHARD_OK);
		counting = false;
		shard_dataset_close(ds);
		memcpy(turn ? without : with, seen[0], sizeof(with));
		unlink(in_folder(&p, "0.shard"));
	}
	for (unsigned u = 40; u < 200; u++)
		CHECK_EQ(with[u], without[u]);
}

/* ---- progress ---- */

struct progress {
	unsigned calls, cancel_at;
	uint64_t last, total;
	bool odd;
	pthread_t caller;
};

static int on_progress(void *context, uint64_t done, uint64_t total)
{
	struct progress *p = context;

	p->odd = p->odd || done < p->last || done > total || (p->total && total != p->total) ||
		 !pthread_equal(p->caller, pthread_self());
	p->last = done;
	p->total = total;
	return ++p->calls == p->cancel_at ? 7 : 0;
}

TEST(progress_is_told_and_can_cancel)
{
	static const uint32_t threads[] = {1, 2, 8};

	for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++)
		for (size_t i = 0; i < COUNT(threads); i++)
			for (unsigned cancel = 0; cancel < 2; cancel++) {
				struct progress p = {.cancel_at = cancel, .caller = pthread_self()};
				struct shard_verify_options o = {.size = sizeof(o),
								 .thread_count = threads[i],
								 .context = &p,
								 .progress = on_progress};
				struct shard_error err = {.message = ""};
				struct shard_dataset *ds;

				STORY("codec %u, %u threads, cancel at %u", codec, threads[i], cancel);
				make_dataset(codec);
				CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
				/*
				 * a call before the threads are done is not promised for so small a
				 * dataset, so it may also complete
				 */
				if (shard_dataset_verify(ds, &o, NULL, &err)) {
					CHECK_EQ(err.status, SHARD_E_CANCELLED);
					CHECK(cancel && p.calls >= 1);
					CHECK_STR(err.message, "verification was cancelled");
				} else {
					CHECK(!cancel || !p.calls);
				}
				CHECK(!p.odd);
				CHECK(cancel || (p.calls >= 1 && p.last == p.total && p.total));
				shard_dataset_close(ds);
			}
}

static void wait_for_progress(void *context, const struct shard_error *problem)
{
	(void)context;
	(void)problem;
	usleep(2000);
}

/* Damage keeps the run busy long enough, so that cancelling it is certain. */
TEST(a_long_run_is_cancelled)
{
	struct progress p = {.cancel_at = 2, .caller = pthread_self()};
	struct shard_verify_options o = {.size = sizeof(o),
					 .thread_count = 2,
					 .context = &p,
					 .progress = on_progress,
					 .problem = wait_for_progress};
	struct shard_verify_report report;
	struct shard_error err;
	struct shard_dataset *ds;

	make_dataset(SHARD_RAW);
	damage_much();
	CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
	CHECK_EQ(shard_dataset_verify(ds, &o, &report, &err), SHARD_E_CANCELLED);
	CHECK_EQ(p.calls, 2);
	shard_dataset_close(ds);
}

/* ---- hot, cold, and file systems that know nothing of it ---- */

/* Some 14 MiB, so that there are several pieces; 20 records damaged. */
static void make_large(uint32_t codec)
{
	const uint64_t two[] = {60, 40};

	cache = AS_IT_IS;
	schema = photo_schema(224, codec);
	new_folder(&folder, "t_verify");
	write_dataset(folder.text, &schema, two, 2);
	if (codec == SHARD_RAW)
		damage_records("1.shard", 5, 20);
	else
		for (int i = 0; i < 20; i++) {
			struct path p;
			uint64_t offset = section_of(in_folder(&p, "1.shard"), 1, 0).offset;

			file_flip(p.text, offset + 100 + (uint64_t)i * 3000, 1);
		}
}

TEST(the_verdict_does_not_depend_on_where_the_bytes_are)
{
	static const char *const stories[] = {"as it is", "hot", "cold", "cold, no O_DIRECT", "cold, O_DIRECT fails"};
	static struct told told, first;

	for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++) {
		make_large(codec);
		for (int way = AS_IT_IS; way <= COLD_DIRECT_FAILS; way++) {
			struct shard_verify_report report;
			bool has_direct;
			int fd;
			struct path p;

			STORY("codec %u, %s", codec, stories[way]);
			cache = way;
			direct_reads = ordinary_reads = 0;
			CHECK_EQ(verify(2, &told, &report, NULL), SHARD_E_CORRUPT);
			if (way == AS_IT_IS)
				first = told;
			CHECK_EQ(report.problem_count, first.count);
			CHECK_EQ(told.count, first.count);
			for (unsigned k = 0; k < told.count; k++)
				CHECK_STR(told.message[k], first.message[k]);
			fd = __real_file_open_direct(in_folder(&p, "0.shard"));
			has_direct = fd >= 0;
			file_close(fd);
			CHECK(way != HOT || !direct_reads);
			CHECK(way != COLD_WITHOUT_DIRECT || !direct_reads);
			CHECK(!has_direct || (way != COLD && way != COLD_DIRECT_FAILS) || direct_reads >= 4);
		}
		CHECK(first.count >= (codec == SHARD_RAW ? 21 : 2)); /* units, and the SHA-256 */
	}
	cache = AS_IT_IS;
}

/*
 * The same with a page cache that really was emptied, where the file system lets us; and on a
 * tmpfs, which cannot.
 */
TEST(files_that_are_really_cold)
{
	static struct told told, first;
	const char *place[] = {NULL, "/dev/shm"}, *was = getenv("TMPDIR");
	char *keep = strdup(was ? was : "");
	unsigned cold = 0;

	cache = AS_IT_IS;
	for (int i = 0; i < 2; i++) {
		struct stat st;

		if (place[i] && (stat(place[i], &st) || access(place[i], W_OK)))
			continue;
		if (place[i])
			setenv("TMPDIR", place[i], 1);
		STORY("in %s", place[i] ? place[i] : "$TMPDIR");
		make_large(SHARD_RAW);
		CHECK_EQ(verify(1, &first, NULL, NULL), SHARD_E_CORRUPT);
		for (int k = 0; k < 2; k++) {
			struct path p;
			int fd = open(in_folder(&p, k ? "1.shard" : "0.shard"), O_RDWR);

			CHECK(fd >= 0 && !fsync(fd));
			CHECK_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
			cold += !file_is_cached(fd, 4096, 4096);
			close(fd);
		}
		direct_reads = 0;
		CHECK_EQ(verify(1, &told, NULL, NULL), SHARD_E_CORRUPT);
		CHECK_EQ(told.count, first.count);
		for (unsigned k = 0; k < told.count; k++)
			CHECK_STR(told.message[k], first.message[k]);
		printf("in %s: %u of 2 files were cold, %u reads past the page cache\n",
		       place[i] ? place[i] : "$TMPDIR", cold, direct_reads);
		cold = 0;
		remove_tree(folder.text);
	}
	if (*keep)
		setenv("TMPDIR", keep, 1);
	else
		unsetenv("TMPDIR");
	free(keep);
}

TEST(a_file_that_is_replaced_meanwhile_is_no_damage)
{
	struct shard_error err;
	struct shard_reader *r;
	struct path p, q;

	make_dataset(SHARD_RAW);
	CHECK_OK(shard_reader_open(&r, in_folder(&p, "0.shard"), NULL, &fixture_err));
	file_copy(p.text, in_folder(&q, "copy"));
	CHECK_EQ(rename(q.text, p.text), 0);
	CHECK_EQ(shard_reader_verify(r, NULL, NULL, &err), SHARD_E_IO);
	CHECK(strstr(err.message, "was replaced while it was being verified"));
	shard_reader_close(r);
	remove_tree(folder.text);
}

/* Records come through a buffer then; the hashes of units and the index of chunks are mapped. */
TEST(tables_that_are_cut_while_units_are_read_are_an_error)
{
	for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++)
		for (int how = HOT; how <= COLD_WITHOUT_DIRECT; how++) {
			uint32_t first = codec == SHARD_RAW ? SHARD_SECTION_HASH : SHARD_SECTION_CIDX;
			struct shard_error err = {.message = ""};
			struct shard_reader *r;
			struct path p;

			STORY("codec %u, cache %d", codec, how);
			make_dataset(codec);
			cache = how;
			in_folder(&p, "3.shard");
			cut_at = section_of(p.text, first, 0).offset;
			CHECK_OK(shard_reader_open(&r, p.text, NULL, &fixture_err));
			CHECK_EQ(shard_reader_verify(r, NULL, NULL, &err), SHARD_E_IO);
			CHECK(strstr(err.message, "3.shard: "));
			cut_at = 0;
			shard_reader_close(r);
		}
	cache = AS_IT_IS;
}

TEST_MAIN()
