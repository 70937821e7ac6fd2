/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_writer.c - what is written is what is read, for 300 random shards, and what a writer refuses
 *
 * cases.h draws a schema, records and everything else that a shard can hold from one seed, and
 * keeps its own model of what a reader must say; all of it is compared.
 *
 * TIMEOUT: 600
 */
#include "shard_pack.h"
#include "tests/store/cases.h"

#define CASES 300u

/* ---- reading it ---- */

static void check_info(struct shard_reader *r, const struct shard_written *written, const char *path)
{
	static const uint8_t zeros[32];
	struct shard_info info;
	uint8_t sha256[32];
	size_t bytes;
	uint8_t *file = file_bytes(path, &bytes);

	shard_sha256(file, bytes, sha256);
	free(file);
	shard_reader_info(r, &info);
	CHECK_MEM(written->sha256, sha256, 32);
	CHECK_MEM(written->root, info.root, 16);
	CHECK_EQ(written->file_bytes, bytes);
	CHECK_EQ(written->record_count, m.count);
	CHECK_EQ(written->miss_count, m.miss_count);
	CHECK_EQ(written->already, 0);
	CHECK_EQ(info.file_bytes, bytes);
	CHECK_EQ(info.record_count, m.count);
	CHECK_EQ(info.planned_records, m.planned);
	CHECK_EQ(info.plan_shard, m.o.plan_shard);
	CHECK_EQ(info.miss_count, m.miss_count);
	CHECK_EQ(info.key_count, m.keys ? m.count : 0);
	CHECK_EQ(info.section_align_log2, 12);
	CHECK_MEM(info.plan_digest, m.o.plan_digest ? m.plan : zeros, 32);
	CHECK_MEM(shard_reader_schema(r), &m.s, sizeof(m.s));
}

static void check_records(struct shard_reader *r, struct prng *p)
{
	for (uint32_t g = 0; g < m.s.group_count; g++) {
		uint64_t stride = m.s.group[g].stride;
		uint8_t *dst = malloc((size_t)(m.count + 1) * stride);

		for (int turn = 0; turn < 6; turn++) { /* random ranges first, all of it last */
			uint64_t first = turn < 5 ? prng_below(p, m.count + 1) : 0;
			uint64_t count = turn < 5 ? prng_below(p, m.count - first + 1) : m.count;

			memset(dst, 0xee, (size_t)(m.count + 1) * stride);
			CHECK_OK(shard_reader_read(r, g, first, count, dst, &fixture_err));
			CHECK_MEM(dst, m.group[g].stride_bytes + first * stride, (size_t)(count * stride));
			CHECK_EQ(dst[count * stride], 0xee);
		}
		for (uint64_t i = 0; i < m.count; i += 1 + m.count / 9) {
			struct shard_view v = {NULL, 0};
			int rc = shard_reader_view(r, g, i, &v, NULL);

			CHECK_EQ(rc, m.s.group[g].codec == SHARD_RAW ? SHARD_OK : SHARD_E_UNSUPPORTED);
			CHECK_EQ(v.bytes, rc ? 0 : stride);
			CHECK_MEM(v.data, m.group[g].stride_bytes + i * stride, v.bytes);
		}
		free(dst);
	}
}

static void check_inside(struct shard_reader *r)
{
	struct shard_view v;
	struct shard_miss miss;

	for (uint64_t i = 0; i < m.count; i++) {
		CHECK_OK(shard_reader_key(r, i, &v, &fixture_err));
		CHECK_EQ(v.bytes, m.keys ? m.key_bytes[i] : 0);
		CHECK_MEM(v.data, m.key[i], v.bytes);
	}
	for (uint32_t i = 0; i < m.miss_count; i++) {
		CHECK_OK(shard_reader_miss(r, i, &miss, &fixture_err));
		CHECK_MEM(&miss, &m.miss[i], sizeof(miss));
	}
	CHECK_EQ(shard_reader_miss(r, m.miss_count, &miss, NULL), SHARD_E_ARGUMENT);
	CHECK_OK(shard_reader_provenance(r, &v, &fixture_err));
	CHECK_EQ(v.bytes, m.provenance ? strlen(m.provenance) : 0);
	CHECK_MEM(v.data, m.provenance, v.bytes);
}

static void check_stats(struct shard_reader *r)
{
	for (uint32_t i = 0; i <= m.s.field_count; i++) {
		const struct shard_field *f = &m.s.field[i];
		bool there = m.stats && i < m.s.field_count;
		uint64_t counts[6] = {0}, got;
		struct shard_moments sums;

		for (uint64_t c = 0; there && takes_moments(f) && c < channels(f); c++) {
			struct shard_moments want = moments_of(f, c);

			CHECK_OK(shard_reader_moments(r, i, (uint32_t)c, &sums, &fixture_err));
			CHECK_MEM(&sums, &want, sizeof(want));
		}
		CHECK_EQ(shard_reader_moments(r, i, there && takes_moments(f) ? (uint32_t)channels(f) : 0, &sums, NULL),
			 SHARD_END);
		there = there && takes_classes(f);
		for (uint64_t k = 0; k < m.count; k++)
			counts[k * k % 5]++;
		for (uint64_t c = 0; there && c < 6; c++) {
			CHECK_OK(shard_reader_class_records(r, i, c, &got, &fixture_err));
			CHECK_EQ(got, counts[c]);
		}
		CHECK_EQ(shard_reader_class_records(r, i, there ? 6 : 0, &got, NULL), SHARD_END);
	}
}

TEST(three_hundred_random_shards_come_back)
{
	uint64_t raw = 0, lz4 = 0, units = 0, records = 0;
	unsigned turns = getenv("VARIANT") && *getenv("VARIANT") ? CASES / 3 : CASES;
	struct path dir, path, second;

	new_folder(&dir, "t_writer");
	for (uint64_t seed = 0; seed < turns; seed++) {
		struct shard_verify_options o = {.size = sizeof(o), .thread_count = 1};
		struct shard_written written, again;
		struct shard_verify_report report;
		struct prng p = {seed};
		struct shard_reader *r;
		uint8_t *a, *b;
		size_t a_bytes, b_bytes;

		STORY("seed %" PRIu64, seed);
		tmp(&path, "t_writer.%d/a.shard", (int)getpid());
		tmp(&second, "t_writer.%d/b.shard", (int)getpid());
		draw(seed);
		CHECK_OK(write_case(seed, path.text, &written));
		CHECK_OK(shard_reader_open(&r, path.text, NULL, &fixture_err));
		CHECK_OK(shard_reader_verify(r, &o, &report, &fixture_err));
		CHECK_EQ(report.record_count, m.count);
		check_info(r, &written, path.text);
		check_records(r, &p);
		check_inside(r);
		check_stats(r);
		shard_reader_close(r);

		CHECK_OK(write_case(seed, second.text, &again)); /* the same bytes under another name */
		a = file_bytes(path.text, &a_bytes);
		b = file_bytes(second.text, &b_bytes);
		CHECK_EQ(a_bytes, b_bytes);
		CHECK_MEM(a, b, a_bytes);
		free(a);
		free(b);
		again.already = 77;
		CHECK_OK(write_case(seed, path.text, &again)); /* and the same shard under the same name */
		CHECK_EQ(again.already, 1);
		CHECK_MEM(again.sha256, written.sha256, 32);
		CHECK_EQ(entries(dir.text, ""), 2);
		unlink(path.text);
		unlink(second.text);
		for (uint32_t g = 0; g < m.s.group_count; g++)
			*(m.s.group[g].codec == SHARD_RAW ? &raw : &lz4) += 1;
		units += report.unit_count;
		records += m.count;
		undraw();
	}
	remove_tree(dir.text);
	printf("%u shards, %" PRIu64 " raw and %" PRIu64 " LZ4 groups, %" PRIu64 " records, %" PRIu64 " units\n", turns,
	       raw, lz4, records, units);
	CHECK(raw > turns / 2 && lz4 > turns / 2);
}

/*
 * More than spools hold in memory: a small group, its hashes and keys go through files without a
 * name.
 */
TEST(a_shard_that_spills)
{
	struct shard_schema s = {.group_count = 2,
				 .field_count = 2,
				 .group = {{.codec = SHARD_RAW}, {.codec = SHARD_LZ4}},
				 .field = {{.name = "a", .dtype = SHARD_U64},
					   {.name = "b", .dtype = SHARD_U8, .group = 1, .ndim = 1, .shape = {100}}}};
	struct shard_writer_options o = {.size = sizeof(o), .planned_records = 200000, .keys = 1};
	struct shard_written written;
	struct shard_reader *r;
	struct shard_writer *w;
	struct path path;
	uint8_t wide[112], narrow[16];

	CHECK_OK(shard_schema_lay_out(&s, 0, &fixture_err));
	s.group[0].unit_records = 1;
	s.group[1].unit_records = s.group[1].chunk_records = 1;
	CHECK_OK(shard_writer_open(&w, tmp(&path, "t_writer.%d.shard", (int)getpid()), &s, &o, &fixture_err));
	for (uint64_t i = 0; i < o.planned_records; i++) {
		const void *group[2] = {narrow, wide};
		struct prng p = {i};
		char key[64];

		memcpy(narrow, &i, 8);
		prng_fill(&p, wide, 100);
		CHECK_OK(shard_writer_append(w, group, key, photo_key(i, key), &fixture_err));
	}
	CHECK_OK(shard_writer_finish(w, &written, &fixture_err)); /* which reads back and verifies */
	shard_writer_close(w);
	CHECK_OK(shard_reader_open(&r, path.text, NULL, &fixture_err));
	for (uint64_t i = 0; i < o.planned_records; i += 997) {
		struct prng p = {i};
		struct shard_view v;
		char key[64];
		uint8_t want[100];

		CHECK_OK(shard_reader_read(r, 0, i, 1, narrow, &fixture_err));
		CHECK_MEM(narrow, &i, 8);
		prng_fill(&p, want, 100);
		CHECK_OK(shard_reader_read(r, 1, i, 1, wide, &fixture_err));
		CHECK_MEM(wide, want, 100);
		CHECK_OK(shard_reader_key(r, i, &v, &fixture_err));
		CHECK_EQ(v.bytes, photo_key(i, key));
		CHECK_MEM(v.data, key, v.bytes);
	}
	shard_reader_close(r);
	unlink(path.text);
}

/*
 * Units of the first group are filled in the output, if it has room; those of others in memory of
 * their own.  The same records in both groups are the same bytes, whatever lies between fields.
 */
static void write_twice(uint32_t items, uint64_t count, const char *path)
{
	struct shard_schema s = {.group_count = 2, .field_count = 4};
	struct shard_writer_options o = {.size = sizeof(o), .planned_records = count};
	struct prng random = {items};
	uint8_t *record, *was[2];
	struct shard_reader *r;
	struct shard_writer *w;

	for (uint32_t f = 0; f < s.field_count; f++) {
		snprintf(s.field[f].name, sizeof(s.field[f].name), "f%u", f);
		s.field[f].group = f / 2;
		s.field[f].dtype = f % 2 ? SHARD_F64 : SHARD_U8; /* aligned: a hole is in front of it */
		s.field[f].ndim = 1;
		s.field[f].shape[0] = f % 2 ? 1 : items;
	}
	CHECK_OK(shard_schema_lay_out(&s, 0, &fixture_err));
	CHECK_EQ(s.group[0].stride, s.group[1].stride);
	CHECK_EQ(s.group[0].unit_records, s.group[1].unit_records);
	CHECK(s.field[1].offset > items && s.group[0].stride * count > 3 << 20); /* several buffers of output */
	record = malloc((size_t)s.group[0].record_bytes);
	unlink(path);
	CHECK_OK(shard_writer_open(&w, path, &s, &o, &fixture_err));
	for (uint64_t i = 0; i < count; i++) {
		const void *group[] = {record, record};

		prng_fill(&random, record, (size_t)s.group[0].record_bytes);
		CHECK_OK(shard_writer_append(w, group, NULL, 0, &fixture_err));
	}
	CHECK_OK(shard_writer_finish(w, NULL, &fixture_err)); /* which reads back: hashes and holes are right */
	shard_writer_close(w);
	CHECK_OK(shard_reader_open(&r, path, NULL, &fixture_err));
	for (uint32_t g = 0; g < 2; g++) {
		was[g] = malloc((size_t)(count * s.group[g].stride));
		CHECK_OK(shard_reader_read(r, g, 0, count, was[g], &fixture_err));
	}
	CHECK_MEM(was[0], was[1], (size_t)(count * s.group[0].stride));
	random.state = items;
	for (uint64_t i = 0; i < count; i++) {
		const uint8_t *is = was[0] + i * s.group[0].stride;

		prng_fill(&random, record, (size_t)s.group[0].record_bytes);
		CHECK_MEM(is, record, items);
		CHECK_MEM(is + s.field[1].offset, record + s.field[1].offset, 8);
	}
	shard_reader_close(r);
	unlink(path);
	free(was[0]);
	free(was[1]);
	free(record);
}

TEST(units_in_the_output_are_those_in_memory)
{
	static const struct {
		const char *story;
		uint32_t items;
		uint64_t count;
	} row[] = {
		{"two records in a unit, the last one half full", 2050, 3001},
		{"hundreds in a unit", 11, 130001},
		{"one in a unit", 9001, 701},
		{"larger than what is written at once", (2u << 20) + 5, 5},
	};
	struct path p;

	tmp(&p, "t_writer.%d.shard", (int)getpid());
	for (size_t i = 0; i < COUNT(row); i++) {
		STORY("%s", row[i].story);
		write_twice(row[i].items, row[i].count, p.text);
	}
}

TEST(sections_of_large_shards_lie_on_64_KiB)
{
	struct shard_schema s = photo_schema(512, SHARD_RAW); /* 786,432 bytes and 32 of the small group */
	struct shard_writer_options o = {.size = sizeof(o), .planned_records = 85, .skip_read_back = 1};
	struct path path;

	tmp(&path, "t_writer.%d.shard", (int)getpid());
	for (uint32_t planned = 85; planned <= 86; planned++) { /* 64 MiB is 85.33 of these */
		struct shard_written written;
		struct shard_writer *w;
		struct shard_reader *r;
		struct shard_info info;

		o.planned_records = planned;
		CHECK_OK(shard_writer_open(&w, path.text, &s, &o, &fixture_err));
		CHECK_OK(shard_writer_finish(w, &written, &fixture_err));
		shard_writer_close(w);
		CHECK_OK(shard_reader_open(&r, path.text, NULL, &fixture_err));
		shard_reader_info(r, &info);
		CHECK_EQ(info.section_align_log2, planned == 85 ? 12 : 16);
		shard_reader_close(r);
		unlink(path.text);
	}
}

/*
 * The digest is made while the shard is read back, piece by piece, or else while it is written:
 * both are the file's.
 */
TEST(the_digest_is_that_of_the_file)
{
	static const struct {
		const char *story;
		uint32_t side, codec, records;
	} rows[] = {{"nothing but tables", 8, SHARD_RAW, 0},
		    {"less than a piece", 8, SHARD_RAW, 999},
		    {"pieces that end within pages", 333, SHARD_RAW, 40},
		    {"units larger than a piece", 1301, SHARD_RAW, 3},
		    {"chunks", 100, SHARD_LZ4, 500},
		    {"chunks larger than a piece", 1301, SHARD_LZ4, 2}};
	struct path path;

	tmp(&path, "t_writer.%d.shard", (int)getpid());
	for (size_t i = 0; i < 2 * COUNT(rows); i++) {
		struct shard_schema s = photo_schema(rows[i / 2].side, rows[i / 2].codec);
		struct shard_writer_options o = {
			.size = sizeof(o), .planned_records = rows[i / 2].records + 1, .skip_read_back = i % 2};
		uint8_t *image = malloc((size_t)s.group[0].record_bytes),
			*rest = malloc((size_t)s.group[1].record_bytes), *file;
		const void *group[2] = {image, rest};
		struct shard_written written;
		struct shard_writer *w;
		uint8_t sha256[32];
		size_t bytes;

		STORY("%s, %s", rows[i / 2].story, i % 2 ? "not read back" : "read back");
		CHECK_OK(shard_writer_open(&w, path.text, &s, &o, &fixture_err));
		for (uint32_t k = 0; k < rows[i / 2].records; k++) {
			photo_record(&s, 0, k, image);
			photo_record(&s, 1, k, rest);
			CHECK_OK(shard_writer_append(w, group, NULL, 0, &fixture_err));
		}
		CHECK_OK(shard_writer_finish(w, &written, &fixture_err));
		shard_writer_close(w);
		file = file_bytes(path.text, &bytes);
		shard_sha256(file, bytes, sha256);
		CHECK_EQ(written.file_bytes, bytes);
		CHECK_MEM(written.sha256, sha256, 32);
		unlink(path.text);
		free(file);
		free(image);
		free(rest);
	}
}

/* ---- the name ---- */

TEST(a_name_that_is_taken_keeps_what_it_has)
{
	static const struct {
		const char *story;
		int what; /* 0 another shard, 1 rubbish, 2 nothing at all, 3 the same but damaged */
		const char *says;
	} rows[] = {{"another shard", 0, "is another shard"},
		    {"rubbish", 1, "is not a valid shard"},
		    {"an empty file", 2, "is not a valid shard"},
		    {"the same shard with a damaged record", 3, "damaged"}};
	struct shard_schema s = photo_schema(8, SHARD_RAW);
	struct path dir, path;

	new_folder(&dir, "t_writer.taken");
	tmp(&path, "t_writer.taken.%d/x.shard", (int)getpid());
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_writer_options o = {.size = sizeof(o), .planned_records = 1};
		struct shard_error err = {.message = ""};
		uint8_t record[2][192] = {{0}}, *before, *after;
		const void *group[2] = {record[0], record[1]};
		struct shard_written written = {.already = 77};
		struct shard_writer *w;
		size_t bytes, after_bytes;

		STORY("%s", rows[i].story);
		unlink(path.text);
		for (int turn = 0; turn < 2; turn++) {
			if (turn == 0 && (rows[i].what == 1 || rows[i].what == 2)) {
				file_make(path.text, "rubbish", rows[i].what == 1 ? 7 : 0);
				continue;
			}
			record[0][0] = turn == 0 && rows[i].what == 0;
			CHECK_OK(shard_writer_open(&w, path.text, &s, &o, &fixture_err));
			CHECK_OK(shard_writer_append(w, group, NULL, 0, &fixture_err));
			if (turn == 0) {
				CHECK_OK(shard_writer_finish(w, &written, &fixture_err));
				shard_writer_close(w);
				if (rows[i].what == 3)
					file_flip(path.text, 4096 + 5, 4);
			}
		}
		before = file_bytes(path.text, &bytes);
		written.already = 77;
		CHECK_EQ(shard_writer_finish(w, &written, &err), SHARD_E_EXISTS);
		CHECK_EQ(written.already, 77);
		CHECK(strstr(err.message, "x.shard: already exists"));
		CHECK(strstr(err.message, rows[i].says));
		shard_writer_close(w);
		after = file_bytes(path.text, &after_bytes);
		CHECK_EQ(bytes, after_bytes);
		CHECK_MEM(before, after, bytes);
		CHECK_EQ(entries(dir.text, ""), 1);
		free(before);
		free(after);
	}
	remove_tree(dir.text);
}

TEST(nothing_has_the_name_until_finish)
{
	struct shard_schema s = photo_schema(8, SHARD_LZ4);
	struct shard_writer_options o = {.size = sizeof(o), .planned_records = 1};
	struct shard_writer *w;
	struct path dir, path;

	new_folder(&dir, "t_writer.name");
	tmp(&path, "t_writer.name.%d/x.shard", (int)getpid());
	CHECK_OK(shard_writer_open(&w, path.text, &s, &o, &fixture_err));
	CHECK(!file_there(path.text));
	CHECK_EQ(entries(dir.text, ".tmp."), 1);
	shard_writer_close(w);
	CHECK_EQ(entries(dir.text, ""), 0);
	shard_writer_close(NULL);
	remove_tree(dir.text);
}

/* ---- misuse ---- */

enum misuse {
	NO_PLAN,
	TOO_LARGE_PLAN,
	ODD_KEYS,
	BAD_PROVENANCE,
	LONG_PROVENANCE,
	BAD_SCHEMA,
	NO_GROUPS,
	MANY_FIELDS,
	NO_FOLDER,
	MANY_CLASSES,
	HUGE_DATA, /* at open until here */
	ONE_TOO_MANY,
	KEY_WITHOUT_KEYS,
	NO_KEY,
	LONG_KEY,
	NUL_KEY,
	BAD_KEY,
	AFTER_ERROR,
	AFTER_FINISH,
	MISS_REASON_0,
	MISS_HOW_3,
	MISS_DESCENDS,
	MISS_TOO_MANY,
	MISS_THEN_RECORD,
	MOMENTS_OF_LABEL,
	MOMENTS_CHANNEL_3,
	MOMENTS_FIELD_24,
	MOMENTS_MISSING,
	MOMENTS_TOO_MANY,
	MOMENTS_IMPOSSIBLE,
	NEGATIVE_CLASS,
	CLASS_PAST_COUNT,
	CLASS_FAR_OFF,
	AFTER_NO_CLASS,
	FINISH_TWICE,
};

static const struct {
	enum misuse what;
	const char *says;
	int want;
} misuses[] = {
	{NO_PLAN, "planned_records is 0", SHARD_E_ARGUMENT},
	{TOO_LARGE_PLAN, "planned_records is 1099511627777", SHARD_E_ARGUMENT},
	{ODD_KEYS, "options: keys is 2, skip_read_back 1; must be at most 1", SHARD_E_ARGUMENT},
	{BAD_PROVENANCE, "provenance has 3 bytes; must be UTF-8", SHARD_E_ARGUMENT},
	{LONG_PROVENANCE, "provenance has 1048577 bytes", SHARD_E_ARGUMENT},
	{BAD_SCHEMA, "I18", SHARD_E_ARGUMENT},
	{NO_GROUPS, "0 groups", SHARD_E_ARGUMENT},
	{MANY_FIELDS, "25 fields", SHARD_E_ARGUMENT},
	{NO_FOLDER, "the folder that holds it cannot be opened: No such file", SHARD_E_IO},
	{MANY_CLASSES, "options: class_count is 16777217; must be at most 16777216", SHARD_E_ARGUMENT},
	{HUGE_DATA, "do not fit a shard", SHARD_E_ARGUMENT},
	{ONE_TOO_MANY, "exceeds the 3 that were planned", SHARD_E_ARGUMENT},
	{KEY_WITHOUT_KEYS, "opened without keys", SHARD_E_ARGUMENT},
	{NO_KEY, "must be UTF-8", SHARD_E_ARGUMENT},
	{LONG_KEY, "(1025 bytes)", SHARD_E_ARGUMENT},
	{NUL_KEY, "'a\\x00b' (3 bytes)", SHARD_E_ARGUMENT},
	{BAD_KEY, "'\\xff' (1 bytes)", SHARD_E_ARGUMENT},
	{AFTER_ERROR, "failed earlier; close it", SHARD_E_ARGUMENT},
	{AFTER_FINISH, "finished", SHARD_E_ARGUMENT},
	{MISS_REASON_0, "reason 0", SHARD_E_ARGUMENT},
	{MISS_HOW_3, "how 3", SHARD_E_ARGUMENT},
	{MISS_DESCENDS, "ordinals must ascend", SHARD_E_ARGUMENT},
	{MISS_TOO_MANY, "planned", SHARD_E_ARGUMENT},
	{MISS_THEN_RECORD, "planned", SHARD_E_ARGUMENT},
	{MOMENTS_OF_LABEL, "must be a u8 tensor", SHARD_E_ARGUMENT},
	{MOMENTS_CHANNEL_3, "channel 3", SHARD_E_ARGUMENT},
	{MOMENTS_FIELD_24, "field 24", SHARD_E_ARGUMENT},
	{MOMENTS_MISSING, "channel 1", SHARD_E_ARGUMENT},
	{MOMENTS_TOO_MANY, "channel 0", SHARD_E_ARGUMENT},
	{MOMENTS_IMPOSSIBLE, "channel 2", SHARD_E_ARGUMENT},
	{NEGATIVE_CLASS,
	 "record 2: field 'label' is -1, which is not a class; must be 0 or more, and below the class_count of the "
	 "options, 3",
	 SHARD_E_ARGUMENT},
	{CLASS_PAST_COUNT, "record 2: field 'label' is 3, which is not a class", SHARD_E_ARGUMENT},
	{CLASS_FAR_OFF, "record 2: field 'label' is 9223372036854775807, which is not a class", SHARD_E_ARGUMENT},
	{AFTER_NO_CLASS, "failed earlier; close it", SHARD_E_ARGUMENT},
	{FINISH_TWICE, "finished", SHARD_E_ARGUMENT},
};

static int misuse_open(enum misuse what, const char *path, struct shard_writer **w, struct shard_error *err)
{
	static char long_text[1048578];
	struct shard_schema s = photo_schema(8, SHARD_RAW);
	struct shard_writer_options o = {.size = sizeof(o), .planned_records = 3, .skip_read_back = 1};
	struct path none;

	memset(long_text, 'p', sizeof(long_text) - 1);
	o.keys = what >= NO_KEY && what <= BAD_KEY;
	if (what == NO_PLAN || what == TOO_LARGE_PLAN)
		o.planned_records = what == NO_PLAN ? 0 : (UINT64_C(1) << 40) + 1;
	if (what == ODD_KEYS)
		o.keys = 2;
	if (what == BAD_PROVENANCE || what == LONG_PROVENANCE)
		o.provenance = what == BAD_PROVENANCE ? "ab\xff" : long_text;
	if (what == BAD_SCHEMA)
		s.group[0].record_bytes = 0;
	if (what == NO_GROUPS)
		s.group_count = 0;
	if (what == MANY_FIELDS)
		s.field_count = 25;
	if (what >= NEGATIVE_CLASS && what <= AFTER_NO_CLASS)
		o.class_count = 3;
	if (what == MANY_CLASSES)
		o.class_count = (1u << 24) + 1;
	if (what == HUGE_DATA)
		o.planned_records = UINT64_C(1) << 40;
	return shard_writer_open(w, what == NO_FOLDER ? tmp(&none, "t_writer.none/x") : path, &s, &o, err);
}

static int append_label(struct shard_writer *w, int64_t label, struct shard_error *err)
{
	struct shard_schema s = photo_schema(8, SHARD_RAW);
	uint8_t record[2][192] = {{0}};
	const void *const group[2] = {record[0], record[1]};

	memcpy(record[s.field[PHOTO_LABEL].group] + s.field[PHOTO_LABEL].offset, &label, sizeof(label));
	return shard_writer_append(w, group, NULL, 0, err);
}

static int misuse_call(enum misuse what, struct shard_writer *w, struct shard_error *err)
{
	static const uint8_t pixels[192], rest[64];
	static char long_key[1025];
	const void *const group[2] = {pixels, rest};
	const struct shard_moments two = {128, 0, 0, 0}, impossible = {128, 1, 256, 0};
	struct shard_miss miss = {5, 1, 1};
	struct shard_written written;
	bool keys = what >= NO_KEY && what <= BAD_KEY;
	int64_t label;
	int rc;

	memset(long_key, 'k', sizeof(long_key));
	for (int i = 0; i < 2; i++)
		CHECK_OK(shard_writer_append(w, group, keys ? "k" : NULL, keys, &fixture_err));
	switch (what) {
	case ONE_TOO_MANY:
		CHECK_OK(shard_writer_append(w, group, NULL, 0, &fixture_err));
		return shard_writer_append(w, group, NULL, 0, err);
	case KEY_WITHOUT_KEYS:
		return shard_writer_append(w, group, "k", 1, err);
	case NO_KEY:
		return shard_writer_append(w, group, NULL, 0, err);
	case LONG_KEY:
		return shard_writer_append(w, group, long_key, 1025, err);
	case NUL_KEY:
		return shard_writer_append(w, group, "a\0b", 3, err);
	case BAD_KEY:
		return shard_writer_append(w, group, "\xff", 1, err);
	case AFTER_ERROR:
		CHECK_EQ(shard_writer_append(w, group, "k", 1, NULL), SHARD_E_ARGUMENT);
		CHECK_EQ(shard_writer_miss(w, &miss, NULL), SHARD_E_ARGUMENT);
		CHECK_EQ(writer_add_moments(w, PHOTO_IMAGE, 0, &two, NULL), SHARD_E_ARGUMENT);
		CHECK_EQ(shard_writer_finish(w, &written, NULL), SHARD_E_ARGUMENT);
		return shard_writer_append(w, group, NULL, 0, err);
	case AFTER_FINISH:
		CHECK_OK(shard_writer_finish(w, &written, &fixture_err));
		return shard_writer_append(w, group, NULL, 0, err);
	case FINISH_TWICE:
		CHECK_OK(shard_writer_finish(w, &written, &fixture_err));
		return shard_writer_finish(w, &written, err);
	case MISS_REASON_0:
		miss.reason = 0;
		return shard_writer_miss(w, &miss, err);
	case MISS_HOW_3:
		miss.how = 3;
		return shard_writer_miss(w, &miss, err);
	case MISS_DESCENDS:
		miss.ordinal = 0;
		CHECK_OK(shard_writer_miss(w, &miss, &fixture_err));
		return shard_writer_miss(w, &miss, err);
	case MISS_TOO_MANY:
		CHECK_OK(shard_writer_miss(w, &miss, &fixture_err));
		miss.ordinal++;
		return shard_writer_miss(w, &miss, err);
	case MISS_THEN_RECORD:
		CHECK_OK(shard_writer_miss(w, &miss, &fixture_err));
		return shard_writer_append(w, group, NULL, 0, err);
	case MOMENTS_OF_LABEL:
		return writer_add_moments(w, PHOTO_LABEL, 0, &two, err);
	case MOMENTS_CHANNEL_3:
		return writer_add_moments(w, PHOTO_IMAGE, 3, &two, err);
	case MOMENTS_FIELD_24:
		return writer_add_moments(w, 24, 0, &two, err);
	case MOMENTS_MISSING:
		CHECK_OK(writer_add_moments(w, PHOTO_IMAGE, 0, &two, &fixture_err));
		return shard_writer_finish(w, &written, err);
	case MOMENTS_TOO_MANY:
	case MOMENTS_IMPOSSIBLE:
		for (uint32_t c = 0; c < 3; c++)
			CHECK_OK(writer_add_moments(w, PHOTO_IMAGE, c,
						    what == MOMENTS_IMPOSSIBLE && c == 2 ? &impossible : &two,
						    &fixture_err));
		if (what == MOMENTS_TOO_MANY)
			CHECK_OK(writer_add_moments(w, PHOTO_IMAGE, 0, &two, &fixture_err));
		return shard_writer_finish(w, &written, err);
	case NEGATIVE_CLASS:
	case CLASS_PAST_COUNT:
	case CLASS_FAR_OFF:
	case AFTER_NO_CLASS:
		label = what == CLASS_FAR_OFF ? INT64_MAX : what == CLASS_PAST_COUNT ? 3 : -1;
		rc = append_label(w, label, err);
		return what == AFTER_NO_CLASS ? append_label(w, 0, err) : rc;
	default:
		return SHARD_OK;
	}
}

TEST(misuse_is_one_clear_line_and_leaves_nothing)
{
	struct path dir, path;

	new_folder(&dir, "t_writer.misuse");
	tmp(&path, "t_writer.misuse.%d/x.shard", (int)getpid());
	for (size_t i = 0; i < COUNT(misuses); i++) {
		struct shard_error err = {.message = ""};
		struct shard_writer *w = NULL;
		int rc;

		STORY("expecting '%s'", misuses[i].says);
		rc = misuse_open(misuses[i].what, path.text, &w, &err);
		CHECK_EQ(!w, misuses[i].what <= HUGE_DATA);
		if (w)
			rc = misuse_call(misuses[i].what, w, &err);
		CHECK_EQ(rc, misuses[i].want);
		CHECK_EQ(err.status, misuses[i].want);
		if (!strstr(err.message, misuses[i].says))
			CHECK_STR(err.message, misuses[i].says);
		shard_writer_close(w);
		CHECK_EQ(entries(dir.text, ""), misuses[i].what == AFTER_FINISH || misuses[i].what == FINISH_TWICE);
		unlink(path.text);
	}
	remove_tree(dir.text);
}

/*
 * A path far longer than a message, with control bytes, must neither hide the rest of the sentence
 * nor reach a terminal raw.
 */
TEST(messages_survive_long_and_odd_paths)
{
	struct shard_schema s = photo_schema(8, SHARD_RAW);
	struct shard_writer_options o = {.size = sizeof(o), .planned_records = 1};
	struct shard_written written;
	struct shard_error err;
	struct shard_writer *w;
	struct path dir;
	char path[3500];
	size_t used;

	new_folder(&dir, "t_writer.\x1b[31m");
	used = (size_t)snprintf(path, sizeof(path), "%s/", dir.text);
	while (used < 3000)
		used += (size_t)snprintf(path + used, sizeof(path) - used, "./");
	snprintf(path + used, sizeof(path) - used, "x.shard");
	CHECK_OK(shard_writer_open(&w, path, &s, &o, &fixture_err));
	CHECK_OK(shard_writer_finish(w, &written, &fixture_err));
	CHECK_EQ(shard_writer_finish(w, &written, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "x.shard: the writer is finished"));
	CHECK(!strchr(err.message, 0x1b));
	CHECK_EQ(shard_writer_append(w, NULL, NULL, 0, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "failed earlier; close it"));
	CHECK(!strchr(err.message, 0x1b));
	shard_writer_close(w);
	remove_tree(dir.text);
}

TEST_MAIN()
