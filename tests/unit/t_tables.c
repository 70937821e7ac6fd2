/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_tables.c - chunk index, keys, statistics, left-out inputs and provenance: I45 and I51 to I56 by
 * hand
 */
#include "libshard/base/bytes.h"
#include "libshard/format/format.h"
#include "shard_inspect.h"
#include "tests/test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void check_number(int rc, const struct shard_error *err, const char *number)
{
	char want[8];

	CHECK_EQ(rc, number ? SHARD_E_CORRUPT : SHARD_OK);
	if (!number)
		return;
	snprintf(want, sizeof(want), "%s:", number);
	if (strncmp(err->message, want, strlen(want)))
		CHECK_STR(err->message, want);
}

/* ---- I45 ---- */

/* Ten records of 64 bytes, four to a chunk: chunks of 256, 256 and 128 bytes from 8192 on. */
static struct pages chunked(uint64_t data_bytes)
{
	return (struct pages){
		.record_count = 10,
		.section_count = 1,
		.schema = {.group_count = 1,
			   .field_count = 1,
			   .group = {{.codec = SHARD_LZ4,
				      .record_bytes = 64,
				      .stride = 64,
				      .unit_records = 4,
				      .chunk_records = 4}}},
		.section = {{SHARD_SECTION_DATA, 1, 0, 8192, data_bytes, 10, {0}}},
	};
}

static void entry(struct disk_chunk *e, uint64_t offset, uint32_t stored, uint32_t flags)
{
	memset(e, 0, sizeof(*e));
	store64(e->offset.b, offset);
	store32(e->stored_bytes.b, stored);
	store32(e->flags.b, flags);
	store64(e->stored_hash.b, 0x1122334455667788);
}

static const struct {
	const char *story;
	uint64_t data_bytes;
	struct {
		uint64_t offset;
		uint32_t stored, flags;
	} chunk[3];
	int bad; /* the chunk that is refused, -1 for none */
} chunk_rows[] = {
	{"raw, LZ4, raw", 256 + 128 + 128, {{8192, 256, 0}, {8448, 100, 1}, {8576, 128, 0}}, -1},
	{"least that LZ4 can be", 64 + 64 + 64, {{8192, 2, 1}, {8256, 2, 1}, {8320, 1, 1}}, -1},
	{"less than LZ4 can be", 64 + 64 + 64, {{8192, 1, 1}, {8256, 2, 1}, {8320, 1, 1}}, 0},
	{"nothing stored", 64 + 64 + 64, {{8192, 2, 1}, {8192, 0, 1}, {8192, 1, 1}}, 1},
	{"LZ4 that is not smaller", 256 + 256 + 128, {{8192, 256, 1}, {8448, 256, 0}, {8704, 128, 0}}, 0},
	{"LZ4 that is larger", 320 + 256 + 128, {{8192, 257, 1}, {8512, 256, 0}, {8768, 128, 0}}, 0},
	{"raw that is smaller", 256 + 256 + 128, {{8192, 255, 0}, {8448, 256, 0}, {8704, 128, 0}}, 0},
	{"the short last chunk as long as the others", 256 * 3, {{8192, 256, 0}, {8448, 256, 0}, {8704, 256, 0}}, 2},
	{"undefined flag", 256 + 256 + 128, {{8192, 256, 2}, {8448, 256, 0}, {8704, 128, 0}}, 0},
	{"first one late", 64 + 256 + 256 + 128, {{8256, 256, 0}, {8512, 256, 0}, {8768, 128, 0}}, 0},
	{"before DATA", 256 + 256 + 128, {{4096, 256, 0}, {8448, 256, 0}, {8704, 128, 0}}, 0},
	{"a gap", 256 + 64 + 256 + 128, {{8192, 256, 0}, {8512, 256, 0}, {8768, 128, 0}}, 1},
	{"an overlap", 256 + 256 + 128 - 64, {{8192, 256, 0}, {8384, 256, 0}, {8640, 128, 0}}, 1},
	{"not on 64", 64 + 256 + 128, {{8192, 60, 1}, {8252, 256, 0}, {8512, 128, 0}}, 1},
	{"DATA ends late", 256 + 256 + 128 + 64, {{8192, 256, 0}, {8448, 256, 0}, {8704, 128, 0}}, 2},
	{"DATA ends early", 256 + 256 + 64, {{8192, 256, 0}, {8448, 256, 0}, {8704, 128, 0}}, 2},
	{"DATA ends within the second", 256 + 64, {{8192, 256, 0}, {8448, 256, 0}, {8704, 128, 0}}, 1},
	{"at 2^64 - 64", 256 + 256 + 128, {{8192, 256, 0}, {-(uint64_t)64, 256, 0}, {8704, 128, 0}}, 1},
	{"behind one at 2^64 - 256, which ends at 0",
	 256 + 256 + 128,
	 {{-(uint64_t)256, 256, 0}, {0, 256, 0}, {256, 128, 0}},
	 0},
};

TEST(chunks_stand_in_line)
{
	for (size_t i = 0; i < COUNT(chunk_rows); i++) {
		struct pages p = chunked(chunk_rows[i].data_bytes);
		struct disk_chunk e[3];
		int bad = -1;

		STORY("%s", chunk_rows[i].story);
		for (int c = 0; c < 3; c++)
			entry(&e[c], chunk_rows[i].chunk[c].offset, chunk_rows[i].chunk[c].stored,
			      chunk_rows[i].chunk[c].flags);
		for (int c = 0; c < 3; c++) {
			struct shard_error err = {.message = ""};
			struct chunk out;
			int rc = chunk_decode(&p, &p.schema, 0, (uint64_t)c, &e[c], c ? &e[c - 1] : NULL, &out, &err);

			if (rc) {
				check_number(rc, &err, "I45");
				bad = bad < 0 ? c : bad;
				continue;
			}
			CHECK_EQ(out.offset, chunk_rows[i].chunk[c].offset);
			CHECK_EQ(out.stored_bytes, chunk_rows[i].chunk[c].stored);
			CHECK_EQ(out.padded_bytes, (chunk_rows[i].chunk[c].stored + 63) / 64 * 64);
			CHECK_EQ(out.decoded_bytes, c < 2 ? 256 : 128);
			CHECK_EQ(out.is_lz4, chunk_rows[i].chunk[c].flags);
			CHECK_EQ(out.stored_hash, 0x1122334455667788);
		}
		CHECK_EQ(bad, chunk_rows[i].bad);
	}
}

/* Wherever a hostile neighbour says that it lies: a chunk that is accepted lies within DATA. */
TEST(a_hostile_neighbour_leads_nowhere)
{
	static const uint64_t places[] = {
		0, 64, 4096, 8128, 8192, 8256, 9000, UINT64_C(1) << 44, UINT64_C(1) << 63, -(uint64_t)64, UINT64_MAX};
	static const uint32_t sizes[] = {0, 1, 64, 256, UINT32_MAX - 63, UINT32_MAX};
	struct pages p = chunked(640);
	unsigned accepted = 0;

	for (size_t a = 0; a < COUNT(places); a++)
		for (size_t b = 0; b < COUNT(sizes); b++)
			for (size_t c = 0; c < COUNT(places); c++)
				for (size_t d = 0; d < COUNT(sizes); d++) {
					struct disk_chunk before, e;
					struct chunk out;

					entry(&before, places[a], sizes[b], 0);
					entry(&e, places[c], sizes[d], 0);
					if (chunk_decode(&p, &p.schema, 0, 1, &e, &before, &out, NULL))
						continue;
					accepted++;
					CHECK(out.offset >= 8192 && out.offset + out.padded_bytes <= 8192 + 640);
				}
	CHECK(accepted > 0);
}

TEST(reserved_bytes_of_a_chunk)
{
	struct pages p = chunked(640);

	for (int i = 0; i < 8; i++) {
		struct shard_error err = {.message = ""};
		struct disk_chunk e;
		struct chunk out;

		entry(&e, 8192, 256, 0);
		e.reserved[i] = 1;
		check_number(chunk_decode(&p, &p.schema, 0, 0, &e, NULL, &out, &err), &err, "I45");
	}
}

/* ---- I51, I52 ---- */

static const struct {
	const char *story;
	uint64_t koff[4];
	const char *kblb;
	uint64_t kblb_bytes;
	const char *offsets, *text; /* the rules that are broken */
} key_rows[] = {
	{"three keys", {0, 1, 3, 6}, "abbccc", 6, NULL, NULL},
	{"all empty", {0, 0, 0, 0}, "", 0, NULL, NULL},
	{"the longest", {0, 1024, 2048, 3072}, NULL, 3072, NULL, NULL},
	{"one byte more", {0, 1025, 1025, 1025}, NULL, 1025, "I51", NULL},
	{"does not start at 0", {1, 1, 3, 6}, "abbccc", 6, "I51", NULL},
	{"descends", {0, 3, 2, 6}, "abbccc", 6, "I51", NULL},
	{"ends early", {0, 1, 3, 5}, "abbccc", 6, "I51", NULL},
	{"ends late", {0, 1, 3, 7}, "abbccc", 6, "I51", NULL},
	{"far out", {0, 1, UINT64_MAX, 6}, "abbccc", 6, "I51", NULL},
	{"past the end and back", {0, 1, 1000, 6}, "abbccc", 6, "I51", NULL},
	{"NUL", {0, 1, 3, 6}, "ab\0ccc", 6, NULL, "I52"},
	{"a character cut by the next key",
	 {0, 1, 3, 6},
	 "\xc3\xa9"
	 "bccc",
	 6,
	 NULL,
	 "I52"},
	{"surrogate",
	 {0, 0, 3, 6},
	 "\xed\xa0\x80"
	 "ccc",
	 6,
	 NULL,
	 "I52"},
};

TEST(keys)
{
	static uint8_t letters[4096];

	memset(letters, 'k', sizeof(letters));
	for (size_t i = 0; i < COUNT(key_rows); i++) {
		const uint8_t *kblb = key_rows[i].kblb ? (const uint8_t *)key_rows[i].kblb : letters;
		struct shard_error err = {.message = ""};
		uint8_t koff[32];
		int rc;

		STORY("%s", key_rows[i].story);
		for (int k = 0; k < 4; k++)
			store64(koff + 8 * k, key_rows[i].koff[k]);
		rc = keys_check_offsets(koff, 3, key_rows[i].kblb_bytes, &err);
		check_number(rc, &err, key_rows[i].offsets);
		rc = keys_check_text(koff, kblb, key_rows[i].kblb_bytes, 3, &err);
		check_number(rc, &err, key_rows[i].text);
		/* who did not check the whole table is not led out of bounds either */
		for (uint64_t k = 0; k < 3; k++) {
			uint64_t at = key_rows[i].koff[k], end = key_rows[i].koff[k + 1], offset = 99;
			bool good = at <= end && end <= key_rows[i].kblb_bytes && end - at <= 1024;
			uint32_t bytes = 99;

			rc = key_find(koff, k, key_rows[i].kblb_bytes, &offset, &bytes, &err);
			check_number(rc, &err, good ? NULL : "I51");
			CHECK_EQ(offset, good ? at : 99);
			CHECK_EQ(bytes, good ? end - at : 99);
		}
	}
}

/* ---- I53, I54 ---- */

/* Field 0: u8 hwc [2,3,2], 1: i32 scalar, 2: f32 scalar, 3: u8 string, 4: u8 scalar. */
static struct shard_schema stat_schema(void)
{
	return (struct shard_schema){
		.group_count = 1,
		.field_count = 5,
		.field = {{.dtype = SHARD_U8, .layout = SHARD_HWC, .ndim = 3, .shape = {2, 3, 2}, .bytes = 12},
			  {.dtype = SHARD_I32, .bytes = 4},
			  {.dtype = SHARD_F32, .bytes = 4},
			  {.dtype = SHARD_U8,
			   .kind = SHARD_STRING,
			   .ndim = 1,
			   .shape = {4},
			   .ragged_axes = 1,
			   .bytes = 4},
			  {.dtype = SHARD_U8, .bytes = 1}},
	};
}

#define WORDS 24
static const struct {
	const char *story;
	uint64_t blocks, word[WORDS]; /* a block's first word is kind | field << 32 */
	size_t words, extra;	      /* bytes behind the words */
	const char *number;
} stat_rows[] = {
	{"nothing", 0, {0}, 0, 0, NULL},
	{"both kinds", 2, {1, 2, 24, 100, 1000, 24, 0, 0, 2 | UINT64_C(1) << 32, 3, 1, 0, 3}, 13, 0, NULL},
	{"greatest sums", 1, {1, 2, 24, 24 * 255, 24 * 255 * 255, 24, 0, 0}, 8, 0, NULL},
	{"scalar: one channel", 1, {1 | UINT64_C(4) << 32, 1, 4, 1020, 260100}, 5, 0, NULL},
	{"no classes at all for 4 records", 1, {2 | UINT64_C(1) << 32, 0}, 2, 0, "I54"},
	{"fewer blocks than said", 2, {1, 2, 24, 100, 1000, 24, 0, 0}, 8, 0, "I53"},
	{"more blocks than said", 0, {1, 2, 24, 100, 1000, 24, 0, 0}, 8, 0, "I53"},
	{"kind 0", 1, {0, 2, 24, 0, 0, 24, 0, 0}, 8, 0, "I53"},
	{"kind 3", 1, {3, 2, 24, 0}, 4, 0, "I53"},
	{"the same block twice", 2, {1, 2, 24, 0, 0, 24, 0, 0, 1, 2, 24, 0, 0, 24, 0, 0}, 16, 0, "I53"},
	{"classes before moments", 2, {2 | UINT64_C(1) << 32, 1, 4, 1, 2, 24, 0, 0, 24, 0, 0}, 11, 0, "I53"},
	{"field 5 of 5", 1, {2 | UINT64_C(5) << 32, 1, 4}, 3, 0, "I53"},
	{"field 2^32 - 1", 1, {2 | UINT64_C(0xffffffff) << 32, 1, 4}, 3, 0, "I53"},
	{"moments of an i32", 1, {1 | UINT64_C(1) << 32, 1, 4, 0, 0}, 5, 0, "I53"},
	{"moments of a string", 1, {1 | UINT64_C(3) << 32, 1, 16, 0, 0}, 5, 0, "I53"},
	{"classes of an f32", 1, {2 | UINT64_C(2) << 32, 1, 4}, 3, 0, "I53"},
	{"classes of an image", 1, {2, 1, 4}, 3, 0, "I53"},
	{"a channel too few", 1, {1, 1, 48, 0, 0}, 5, 0, "I53"},
	{"2^24 + 1 classes", 1, {2 | UINT64_C(1) << 32, (1u << 24) + 1, 4}, 3, 0, "I53"},
	{"2^61 classes, which wrap to 0 bytes", 1, {2 | UINT64_C(1) << 32, UINT64_C(1) << 61}, 2, 0, "I53"},
	{"items past the end", 1, {2 | UINT64_C(1) << 32, 3, 4, 0}, 4, 0, "I53"},
	{"cut block", 2, {2 | UINT64_C(1) << 32, 1, 4, 2}, 4, 0, "I53"},
	{"bytes behind the last block", 1, {2 | UINT64_C(1) << 32, 1, 4}, 3, 1, "I53"},
	{"count one too small", 1, {1, 2, 24, 0, 0, 23, 0, 0}, 8, 0, "I54"},
	{"sum one too large", 1, {1, 2, 24, 24 * 255 + 1, 0, 24, 0, 0}, 8, 0, "I54"},
	{"squares one too large", 1, {1, 2, 24, 10, 2551, 24, 0, 0}, 8, 0, "I54"},
	{"sum of 2^64 - 1", 1, {1, 2, 24, UINT64_MAX, 0, 24, 0, 0}, 8, 0, "I54"},
	{"squares of 2^64 - 1", 1, {1, 2, 24, 10, UINT64_MAX, 24, 0, 0}, 8, 0, "I54"},
	{"classes one too few", 1, {2 | UINT64_C(1) << 32, 2, 1, 2}, 4, 0, "I54"},
	{"classes that wrap to the right sum", 1, {2 | UINT64_C(1) << 32, 2, UINT64_MAX, 5}, 4, 0, "I54"},
};

TEST(statistics)
{
	struct shard_schema s = stat_schema();

	for (size_t i = 0; i < COUNT(stat_rows); i++) {
		size_t bytes = 8 * stat_rows[i].words + stat_rows[i].extra;
		struct shard_error err = {.message = ""};
		/* exactly as long as said, so that the sanitizer sees more */
		uint8_t *stat = malloc(bytes ? bytes : 1);

		STORY("%s", stat_rows[i].story);
		memset(stat, 0, bytes);
		for (size_t k = 0; k < stat_rows[i].words; k++)
			store64(stat + 8 * k, stat_rows[i].word[k]);
		check_number(stat_check(&s, stat, bytes, stat_rows[i].blocks, 4, &err), &err, stat_rows[i].number);
		for (uint32_t kind = 0; kind < 4; kind++) /* and nothing unchecked leads out of bounds */
			for (uint32_t field = 0; field < 6; field++) {
				uint64_t items = 0;
				const uint8_t *found = stat_find(stat, bytes, kind, field, &items);

				CHECK(!found ||
				      (found >= stat && found + items * (kind == 1 ? 24 : 8) <= stat + bytes));
			}
		free(stat);
	}
}

TEST(statistics_are_found)
{
	static const uint64_t word[] = {1, 2, 24, 100, 1000, 24, 0, 0, 2 | UINT64_C(1) << 32, 3, 1, 0, 3};
	uint8_t stat[8 * COUNT(word)];
	uint64_t items = 0;

	for (size_t k = 0; k < COUNT(word); k++)
		store64(stat + 8 * k, word[k]);
	CHECK(stat_find(stat, sizeof(stat), SHARD_STAT_MOMENTS, 0, &items) == stat + 16);
	CHECK_EQ(items, 2);
	CHECK(stat_find(stat, sizeof(stat), SHARD_STAT_CLASSES, 1, &items) == stat + 80);
	CHECK_EQ(items, 3);
	items = 77;
	CHECK(!stat_find(stat, sizeof(stat), SHARD_STAT_CLASSES, 0, &items));
	CHECK(!stat_find(stat, 0, SHARD_STAT_MOMENTS, 0, &items));
	CHECK_EQ(items, 77);
}

/* ---- I55, I56 ---- */

TEST(left_out_inputs)
{
	static const struct {
		const char *story;
		struct shard_miss miss[3];
		uint64_t records, planned;
		const char *number;
	} miss_rows[] = {
		{"good", {{0, 1, 1}, {5, 65535, 2}, {UINT64_MAX, 8, 1}}, 7, 10, NULL},
		{"one more than planned", {{0, 1, 1}, {5, 1, 2}, {6, 8, 1}}, 8, 10, "I55"},
		{"same ordinal", {{5, 1, 1}, {5, 1, 2}, {6, 8, 1}}, 0, 10, "I55"},
		{"descends", {{5, 1, 1}, {7, 1, 2}, {6, 8, 1}}, 0, 10, "I55"},
		{"no reason", {{5, 0, 1}, {6, 1, 2}, {7, 8, 1}}, 0, 10, "I55"},
		{"reason 65536", {{5, 1, 1}, {6, 1, 2}, {7, 65536, 1}}, 0, 10, "I55"},
		{"how 0", {{5, 1, 1}, {6, 1, 0}, {7, 8, 1}}, 0, 10, "I55"},
		{"how 3", {{5, 1, 1}, {6, 1, 2}, {7, 8, 3}}, 0, 10, "I55"},
	};

	for (size_t i = 0; i < COUNT(miss_rows); i++) {
		struct shard_error err = {.message = ""};
		uint8_t miss[48];

		STORY("%s", miss_rows[i].story);
		for (int k = 0; k < 3; k++) {
			store64(miss + 16 * k, miss_rows[i].miss[k].ordinal);
			store32(miss + 16 * k + 8, miss_rows[i].miss[k].reason);
			store32(miss + 16 * k + 12, miss_rows[i].miss[k].how);
		}
		check_number(miss_check(miss, 3, miss_rows[i].records, miss_rows[i].planned, &err), &err,
			     miss_rows[i].number);
	}
}

TEST(provenance)
{
	struct shard_error err = {.message = ""};

	check_number(provenance_check((const uint8_t *)"resize 256 \xe2\x86\x92 crop\n", 20, &err), &err, NULL);
	check_number(provenance_check((const uint8_t *)"", 0, &err), &err, NULL);
	check_number(provenance_check((const uint8_t *)"a\0b", 3, &err), &err, "I56");
	check_number(provenance_check((const uint8_t *)"a\xff", 2, &err), &err, "I56");
}

TEST_MAIN()
