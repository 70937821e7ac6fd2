/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_selection.c - selections by number, by value and by chance, in memory and in files
 *
 * A plain array of flags is the twin: each selection must name the records that it names, in
 * ascending order, whatever its form in memory.
 */
#include <limits.h>

#include "libshard/base/words.h"
#include "libshard/dataset/dataset.h"
#include "libshard/format/format.h"
#include "shard.h"
#include "tests/store/fixture.h"

#define MANY 20000u

static struct path folder;
static struct shard_dataset *ds;

static void open_photos(void)
{
	static const uint64_t sizes[] = {40, 1, 0, 62};
	struct shard_schema schema = photo_schema(8, SHARD_RAW);

	new_folder(&folder, "t_selection");
	write_dataset(folder.text, &schema, sizes, COUNT(sizes));
	CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
}

/* Does `s` select exactly the flagged records of n? */
static void check_is(const struct shard_selection *s, const bool *flag, uint64_t n)
{
	struct shard_selection_info info;
	uint64_t count = 0, all[MANY], next;

	for (uint64_t i = 0; i < n; i++)
		if (flag[i])
			all[count++] = i;
	shard_selection_info(s, &info);
	CHECK_EQ(info.record_count, count);
	CHECK_EQ(info.of_count, n);
	for (uint64_t i = 0; i < count; i++)
		CHECK_EQ(selection_at(s, i), all[i]);
	for (uint64_t record = 0, i = 0; record <= n; record++) {
		while (i < count && all[i] < record)
			i++;
		next = i < count ? all[i] : all[0];
		CHECK_EQ(selection_next(s, record), next);
	}
}

/* ---- forms in memory ---- */

/* As if the dataset had n records. */
static struct shard_selection *made_of(const bool *flag, uint64_t n)
{
	struct shard_selection *s = NULL;
	uint64_t had = ds->m.record_count, *bits;

	ds->m.record_count = n;
	CHECK_OK(selection_open_bits(ds, &bits, &fixture_err));
	for (uint64_t i = 0; i < n; i++)
		if (flag[i])
			selection_set_bit(bits, i);
	CHECK_OK(selection_make(&s, ds, bits, "a test", &fixture_err));
	ds->m.record_count = had;
	return s;
}

TEST(lists_and_bits_answer_as_an_array_does)
{
	static const uint64_t counts[] = {1, 2, 63, 64, 65, 511, 512, 513, 4096, 4097, MANY};
	static const unsigned shares[] = {1, 2, 3, 20, 31, 33, 50, 400, 5000};
	static bool flag[MANY];
	struct prng p = {1};
	unsigned lists = 0, bits = 0;

	open_photos();
	for (size_t c = 0; c < COUNT(counts); c++)
		for (size_t k = 0; k < COUNT(shares); k++) {
			struct shard_selection_info info;
			struct shard_selection *s;
			uint64_t n = counts[c];

			STORY("1 of %u of %u records", shares[k], (unsigned)n);
			for (uint64_t i = 0; i < n; i++)
				flag[i] = prng_below(&p, shares[k]) == 0;
			flag[prng_below(&p, n)] = true;
			s = made_of(flag, n);
			check_is(s, flag, n);
			lists += s->list32 != NULL;
			bits += s->bits != NULL;
			shard_selection_info(s, &info);
			CHECK(info.memory_bytes <= sizeof(*s) + 4 * s->count || s->bits);
			shard_selection_close(s);
		}
	CHECK(lists > 10 && bits > 10);
	shard_dataset_close(ds);
}

/* All selected records at one end, or in two clumps: the search between hints has far to go. */
TEST(clumps_are_found)
{
	static bool flag[MANY];

	open_photos();
	for (unsigned k = 0; k < 3; k++) {
		struct shard_selection *s;

		memset(flag, 0, sizeof(flag));
		for (unsigned i = 0; i < 6000; i++)
			flag[k == 0 ? i : k == 1 ? MANY - 1 - i : i < 3000 ? i : MANY - 1 - (i - 3000)] = true;
		s = made_of(flag, MANY);
		CHECK(s->bits);
		check_is(s, flag, MANY);
		shard_selection_close(s);
	}
	shard_dataset_close(ds);
}

TEST(the_units_of_a_selection)
{
	static bool flag[MANY];
	struct shard_selection *s;

	open_photos();
	for (unsigned i = 0; i < MANY; i += 100)
		flag[i] = true;
	s = made_of(flag, MANY);
	CHECK_EQ(selection_units(s, 1), 200);
	CHECK_EQ(selection_units(s, 100), 200);
	CHECK_EQ(selection_units(s, 200), 100);
	CHECK_EQ(selection_units(s, MANY), 1);
	shard_selection_close(s);
	shard_dataset_close(ds);
}

/* ---- by number ---- */

TEST(records_by_number_come_in_order)
{
	static const uint64_t idx[] = {99, 3, 40, 0, 102}, twice[] = {1, 2, 1}, behind[] = {1, 103};
	bool flag[103] = {[0] = true, [3] = true, [40] = true, [99] = true, [102] = true};
	uint64_t got[5], want[] = {0, 3, 40, 99, 102};
	struct shard_selection *s;
	struct shard_error err;

	open_photos();
	CHECK_OK(shard_select_open(&s, ds, idx, COUNT(idx), &fixture_err));
	check_is(s, flag, 103);
	CHECK_OK(shard_selection_records(s, 0, 5, got, &fixture_err));
	CHECK_MEM(got, want, sizeof(want));
	CHECK_OK(shard_selection_records(s, 4, 1, got, &fixture_err));
	CHECK_EQ(got[0], 102);
	CHECK_EQ(shard_selection_records(s, 4, 2, got, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "places 4 to 5 were asked for; the selection has 5");
	shard_selection_close(s);
	CHECK_EQ(shard_select_open(&s, ds, twice, COUNT(twice), &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "idx[2] is 1, which was there before; a selection has a record once");
	CHECK_EQ(shard_select_open(&s, ds, behind, COUNT(behind), &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "idx[1] is 103; the dataset has 103 records");
	CHECK_EQ(shard_select_open(&s, ds, NULL, 0, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "the list: selects none of the 103 records");
	shard_selection_close(NULL);
	shard_dataset_close(ds);
}

/* ---- by value ---- */

TEST(records_by_label)
{
	static const int64_t values[] = {7, 3}, none[] = {10, -1};
	struct shard_selection *s, *both;
	struct shard_error err;
	bool flag[103] = {false};

	open_photos();
	for (uint64_t i = 0; i < 103; i++)
		flag[i] = i % PHOTO_CLASSES == 3 || i % PHOTO_CLASSES == 7;
	CHECK_OK(shard_select_where(&s, ds, NULL, "label", values, COUNT(values), &fixture_err));
	check_is(s, flag, 103);
	for (uint64_t i = 0; i < 103; i++)
		flag[i] = i % PHOTO_CLASSES == 7;
	CHECK_OK(shard_select_where(&both, ds, s, "label", values, 1, &fixture_err));
	check_is(both, flag, 103);
	shard_selection_close(both);
	CHECK_EQ(shard_select_where(&both, ds, s, "label", none, COUNT(none), &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message,
		  "where label is one of 2 values (the dataset has 0 to 9): selects none of the 103 records");
	CHECK_EQ(shard_select_where(&both, ds, NULL, "label", none, 1, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "where label is 10 (the dataset has 0 to 9): selects none of the 103 records");
	CHECK_EQ(shard_select_where(&both, ds, NULL, "weight", values, 1, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "field 'weight' is not an integer scalar, so records cannot be selected by its value");
	CHECK_EQ(shard_select_where(&both, ds, NULL, "cat", values, 1, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "field 'cat' is not in the dataset");
	shard_selection_close(s);
	shard_dataset_close(ds);
}

TEST(records_of_a_mask)
{
	uint8_t mask[103] = {[0] = 1, [41] = 255, [102] = 1};
	bool flag[103] = {[0] = true, [41] = true, [102] = true};
	struct shard_selection *s, *both;

	open_photos();
	CHECK_OK(shard_select_mask(&s, ds, NULL, mask, 103, &fixture_err));
	mask[1] = 1; /* not of s */
	mask[41] = flag[41] = 0;
	CHECK_OK(shard_select_mask(&both, ds, s, mask, 103, &fixture_err));
	check_is(both, flag, 103);
	CHECK_EQ(shard_select_mask(&s, ds, NULL, mask, 102, &fixture_err), SHARD_E_ARGUMENT);
	CHECK_STR(fixture_err.message, "the mask has 102 items; must be one for each of 103 records");
	shard_selection_close(both);
	shard_selection_close(s);
	shard_dataset_close(ds);
}

/* Of labels alone: a damaged image is not read. */
TEST(only_the_group_of_the_field_is_read)
{
	static const int64_t value = 3;
	struct shard_selection *s;
	int64_t label[103];

	open_photos();
	shard_dataset_close(ds);
	damage_record(&folder, 0, 0, 5);
	CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
	CHECK_OK(shard_select_where(&s, ds, NULL, "label", &value, 1, &fixture_err));
	shard_selection_close(s);
	CHECK_OK(shard_dataset_column(ds, shard_schema_find(shard_dataset_schema(ds), "label"), 0, 103, label,
				      &fixture_err));
	for (int i = 0; i < 103; i++)
		CHECK_EQ(label[i], i % PHOTO_CLASSES);
	shard_dataset_close(ds);
	damage_record(&folder, 3, 1, 0);
	CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
	CHECK_EQ(shard_select_where(&s, ds, NULL, "label", &value, 1, &fixture_err), SHARD_E_CORRUPT);
	CHECK_EQ(shard_dataset_column(ds, shard_schema_find(shard_dataset_schema(ds), "label"), 0, 103, label,
				      &fixture_err),
		 SHARD_E_CORRUPT);
	CHECK_OK(shard_dataset_column(ds, shard_schema_find(shard_dataset_schema(ds), "label"), 0, 41, label,
				      &fixture_err));
	shard_dataset_close(ds);
}

/* It asks the disk for pages ahead, so it cannot tell which of them came from there. */
TEST(a_column_that_is_read_again_is_hashed_again)
{
	static const struct {
		uint32_t check;
		int rc;
	} kinds[] = {{SHARD_CHECK_DEVICE, SHARD_E_CORRUPT}, {SHARD_CHECK_FIRST, SHARD_OK}};
	int64_t label[103];

	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct shard_dataset_options o = {.size = sizeof(o), .check = kinds[i].check};

		open_photos();
		shard_dataset_close(ds);
		CHECK_OK(shard_dataset_open(&ds, folder.text, &o, &fixture_err));
		CHECK_OK(shard_dataset_column(ds, shard_schema_find(shard_dataset_schema(ds), "label"), 0, 103, label,
					      &fixture_err));
		damage_record(&folder, 3, 1, 0);
		CHECK_EQ(shard_dataset_column(ds, shard_schema_find(shard_dataset_schema(ds), "label"), 0, 103, label,
					      NULL),
			 kinds[i].rc);
		shard_dataset_close(ds);
	}
}

/* Any part of a column, raw and compressed, equals what records say one by one. */
TEST(parts_of_a_column)
{
	static const uint64_t sizes[] = {40, 1, 0, 62};
	uint8_t weights[103 * 12];

	for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++) {
		struct shard_schema schema = photo_schema(8, SHARD_RAW);

		schema.group[1].codec = codec;
		schema.group[1].unit_records = 7;
		schema.group[1].chunk_records = codec == SHARD_RAW ? 0 : 7;
		new_folder(&folder, "t_selection");
		write_dataset(folder.text, &schema, sizes, COUNT(sizes));
		CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
		for (uint64_t first = 0; first <= 103; first += 3)
			for (uint64_t count = 0; first + count <= 103; count += 5) {
				STORY("codec %u, %u records from %u", codec, (unsigned)count, (unsigned)first);
				memset(weights, 0x5a, sizeof(weights));
				CHECK_OK(shard_dataset_column(ds, shard_schema_find(shard_dataset_schema(ds), "weight"),
							      first, count, weights, &fixture_err));
				for (uint64_t i = 0; i < count; i++) {
					uint8_t record[64];

					photo_record(&schema, 1, first + i, record);
					CHECK_MEM(weights + 12 * i, record + schema.field[PHOTO_WEIGHT].offset, 12);
				}
				CHECK(count == 103 || weights[12 * count] == 0x5a);
			}
		CHECK_EQ(shard_dataset_column(ds, shard_schema_find(shard_dataset_schema(ds), "weight"), 100, 4,
					      weights, &fixture_err),
			 SHARD_E_ARGUMENT);
		shard_dataset_close(ds);
	}
}

/* ---- by chance ---- */

static void add_to(const struct shard_selection *s, unsigned seen[103])
{
	struct shard_selection_info info;

	shard_selection_info(s, &info);
	for (uint64_t i = 0; i < info.record_count; i++)
		seen[selection_at(s, i)]++;
}

TEST(fractions_share_no_record_and_leave_none)
{
	static const double cuts[] = {0, 0.25, 0.9, 1};
	struct shard_selection *s;
	struct shard_error err;
	unsigned seen[103] = {0};

	open_photos();
	for (int i = 0; i < 3; i++) {
		struct shard_selection_info info;

		CHECK_OK(shard_select_fraction(&s, ds, NULL, cuts[i], cuts[i + 1], 5, &fixture_err));
		shard_selection_info(s, &info);
		CHECK_EQ(info.record_count, i == 0 ? 26 : i == 1 ? 93 - 26 : 10);
		add_to(s, seen);
		shard_selection_close(s);
	}
	for (int i = 0; i < 103; i++)
		CHECK_EQ(seen[i], 1);
	CHECK_EQ(shard_select_fraction(&s, ds, NULL, 0.5, 0.5, 1, &err), SHARD_E_ARGUMENT);
	CHECK_EQ(shard_select_fraction(&s, ds, NULL, 0.0 / 0.0, 1, 1, &err), SHARD_E_ARGUMENT);
	CHECK_EQ(shard_select_fraction(&s, ds, NULL, 0, 1.5, 1, &err), SHARD_E_ARGUMENT);
	CHECK_EQ(shard_select_fraction(&s, ds, NULL, 0, 0.001, 1, &err), SHARD_E_ARGUMENT);
	CHECK_STR(err.message, "the part from 0 to 0.001: selects none of the 103 records");
	shard_dataset_close(ds);
}

/* A fused multiply-add chooses no record here: format/ORDER.md, part 11. */
TEST(a_cut_is_rounded_after_each_operation)
{
	static const struct {
		uint64_t n, seed;
		double end;
		uint64_t record; /* the only one */
	} rows[] = {{100, 1, 0.004999999999999999, 50}, {11, 3, 0.045454545454545449, 8}};

	open_photos();
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_selection *s = NULL;

		STORY("%" PRIu64 " records", rows[i].n);
		ds->m.record_count = rows[i].n; /* as if it had so many */
		CHECK_OK(shard_select_fraction(&s, ds, NULL, 0, rows[i].end, rows[i].seed, &fixture_err));
		CHECK_EQ(s->count, 1);
		CHECK_EQ(selection_at(s, 0), rows[i].record);
		shard_selection_close(s);
	}
	ds->m.record_count = 103;
	shard_dataset_close(ds);
}

TEST(folds_of_a_selection)
{
	static const int64_t values[] = {0, 1, 2, 3};
	struct shard_selection *of, *part, *rest;
	struct shard_error err;
	unsigned seen[103] = {0}, of_seen[103] = {0};

	open_photos();
	CHECK_OK(shard_select_where(&of, ds, NULL, "label", values, COUNT(values), &fixture_err));
	add_to(of, of_seen);
	for (uint32_t fold = 0; fold < 5; fold++) {
		unsigned both[103] = {0};

		CHECK_OK(shard_select_fold(&part, ds, of, fold, 5, SHARD_FOLD_PART, 9, &fixture_err));
		CHECK_OK(shard_select_fold(&rest, ds, of, fold, 5, SHARD_FOLD_REST, 9, &fixture_err));
		CHECK(part->count == of->count / 5 || part->count == of->count / 5 + 1);
		add_to(part, seen);
		add_to(part, both);
		add_to(rest, both);
		CHECK_MEM(both, of_seen, sizeof(both));
		shard_selection_close(part);
		shard_selection_close(rest);
	}
	CHECK_MEM(seen, of_seen, sizeof(seen));
	CHECK_EQ(shard_select_fold(&part, ds, of, 5, 5, SHARD_FOLD_PART, 9, &err), SHARD_E_ARGUMENT);
	CHECK_EQ(shard_select_fold(&part, ds, of, 0, 0, SHARD_FOLD_PART, 9, &err), SHARD_E_ARGUMENT);
	CHECK_EQ(shard_select_fold(&rest, ds, of, 0, 1, SHARD_FOLD_REST, 9, &err), SHARD_E_ARGUMENT);
	shard_selection_close(of);
	shard_dataset_close(ds);
}

/* ---- files ---- */

TEST(a_file_brings_the_selection_back)
{
	struct shard_selection *s, *again;
	struct shard_error err;
	struct path file;

	open_photos();
	tmp(&file, "t_selection.%d.sel", (int)getpid());
	for (unsigned part = 1; part <= 100; part += 33) {
		unlink(file.text);
		CHECK_OK(shard_select_fraction(&s, ds, NULL, 0, part / 100.0, 3, &fixture_err));
		CHECK_OK(shard_selection_write(s, file.text, &fixture_err));
		CHECK_EQ(shard_selection_write(s, file.text, &err), SHARD_E_EXISTS);
		CHECK_OK(shard_selection_read(&again, ds, file.text, &fixture_err));
		CHECK_EQ(again->count, s->count);
		for (uint64_t i = 0; i < s->count; i++)
			CHECK_EQ(selection_at(again, i), selection_at(s, i));
		CHECK_STR(again->digest, s->digest);
		shard_selection_close(again);
		shard_selection_close(s);
	}
	unlink(file.text);
	shard_dataset_close(ds);
}

/* Each byte matters. */
TEST(a_damaged_file_is_refused)
{
	struct shard_selection *s;
	struct path file, bad;
	struct shard_error err;
	uint8_t *text;
	size_t bytes;

	open_photos();
	tmp(&file, "t_selection.%d.sel", (int)getpid());
	tmp(&bad, "t_selection.%d.bad", (int)getpid());
	CHECK_OK(shard_select_fraction(&s, ds, NULL, 0, 0.3, 3, &fixture_err));
	CHECK_OK(shard_selection_write(s, file.text, &fixture_err));
	shard_selection_close(s);
	text = file_bytes(file.text, &bytes);
	for (size_t i = 0; i < bytes; i++) {
		STORY("byte %u of %u", (unsigned)i, (unsigned)bytes);
		text[i] ^= 1;
		file_make(bad.text, text, bytes);
		CHECK_EQ(shard_selection_read(&s, ds, bad.text, &err), SHARD_E_CORRUPT);
		if (i < strlen("libshard selection"))
			CHECK(strstr(err.message, "is not a selection; make one with shardcat select"));
		text[i] ^= 1;
	}
	for (size_t n = 0; n < bytes; n++) {
		STORY("%u of %u bytes", (unsigned)n, (unsigned)bytes);
		file_make(bad.text, text, n);
		CHECK_EQ(shard_selection_read(&s, ds, bad.text, NULL), SHARD_E_CORRUPT);
	}
	unlink(bad.text);
	unlink(file.text);
	free(text);
	shard_dataset_close(ds);
}

/* A second text would give the same selection a second digest. */
TEST(a_text_that_libshard_would_not_write_is_refused)
{
	static const char *const gaps[] = {"\x05\n", "\x85\0\n", "\x05 "}; /* good, too long, no newline */
	static const uint8_t bytes[] = {1, 2, 1};
	struct shard_selection *s;
	struct path file;

	open_photos();
	tmp(&file, "t_selection.%d.sel", (int)getpid());
	for (size_t i = 0; i < COUNT(gaps); i++) {
		uint8_t digest[SHA256_BYTES];
		struct shard_error err = {.message = ""};
		char text[512], id[65];
		struct sha256 sha;
		size_t used;

		STORY("text %u", (unsigned)i);
		dataset_id(ds, id);
		used = (size_t)snprintf(text, sizeof(text),
					"libshard selection 1\ndataset %s\nrecords 103\nselected 1\ngaps %u\n", id,
					bytes[i]);
		memcpy(text + used, gaps[i], bytes[i] + 1u);
		used += bytes[i] + 1u;
		sha256_init(&sha);
		sha256_update(&sha, text, used);
		sha256_final(&sha, digest);
		used += (size_t)sprintf(text + used, "sha256 ");
		hex_from_bytes(text + used, digest, sizeof(digest));
		text[used + 64] = '\n';
		file_make(file.text, (const uint8_t *)text, used + 65);
		CHECK_EQ(shard_selection_read(&s, ds, file.text, &err), i ? SHARD_E_CORRUPT : SHARD_OK);
		if (i)
			CHECK(strstr(err.message, "not written as libshard writes it"));
		else
			shard_selection_close(s);
	}
	unlink(file.text);
	shard_dataset_close(ds);
}

TEST(a_file_of_another_dataset_is_refused)
{
	static const uint64_t sizes[] = {50};
	struct shard_schema schema = photo_schema(8, SHARD_RAW);
	struct shard_selection *s, *other;
	struct shard_error err;
	struct path file;

	open_photos();
	tmp(&file, "t_selection.%d.sel", (int)getpid());
	CHECK_OK(shard_select_fraction(&s, ds, NULL, 0, 0.3, 3, &fixture_err));
	CHECK_OK(shard_selection_write(s, file.text, &fixture_err));
	shard_dataset_close(ds);
	new_folder(&folder, "t_selection2");
	write_dataset(folder.text, &schema, sizes, COUNT(sizes));
	CHECK_OK(shard_dataset_open(&ds, folder.text, NULL, &fixture_err));
	CHECK_EQ(shard_selection_read(&other, ds, file.text, &err), SHARD_E_MISMATCH);
	CHECK(strstr(err.message, "selects records of dataset"));
	CHECK_EQ(shard_select_fold(&other, ds, s, 0, 2, SHARD_FOLD_PART, 1, &err), SHARD_E_MISMATCH);
	shard_selection_close(s);
	unlink(file.text);
	CHECK_EQ(shard_selection_read(&other, ds, file.text, &err), SHARD_E_IO);
	shard_dataset_close(ds);
}

TEST_MAIN()
