/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_verify.c - every problem is found and told once, however many threads look
 *
 * LDFLAGS: -Wl,--wrap=verify_units,--wrap=record_check_ragged,--wrap=LZ4_decompress_safe
 */
#include "libshard/base/error.h"
#include "tests/store/verifying.h"

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

/* A process may have only so many maps, and a dataset may have more shards. */
TEST(a_shard_is_closed_once_it_was_verified)
{
	struct shard_verify_options o = {.size = sizeof(o), .thread_count = 1};
	struct shard_dataset *ds;
	struct path p;

	make_dataset(SHARD_RAW);
	CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
	counting_maps = true;
	CHECK_OK(shard_dataset_verify(ds, &o, NULL, &fixture_err));
	counting_maps = false;
	CHECK_EQ(maps_most, 1);
	CHECK_EQ(maps_of(in_folder(&p, "x")), 0);
	shard_dataset_close(ds);
}

/* ---- damage ---- */

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
			CHECK_OK(shard_seal_add(s, "0.shard", NULL, sha256, &fixture_err));
			CHECK_OK(shard_seal_add(s, "1.shard", NULL, NULL, &fixture_err));
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
	CHECK_OK(shard_seal_add(s, "x.shard", NULL, wrong, &fixture_err));
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

int __real_LZ4_decompress_safe(const char *src, char *dst, int src_bytes, int dst_bytes);
int __wrap_LZ4_decompress_safe(const char *src, char *dst, int src_bytes, int dst_bytes);
int __wrap_LZ4_decompress_safe(const char *src, char *dst, int src_bytes, int dst_bytes)
{
	decoded++;
	return __real_LZ4_decompress_safe(src, dst, src_bytes, dst_bytes);
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

TEST_MAIN()
