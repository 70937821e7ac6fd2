/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_lay_out.c - strides, units, chunks and places as format/SHARD.md 2.9 advises
 */
#include "libshard/format/format.h"
#include "shard_pack.h"
#include "tests/test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct shard_schema one(uint32_t bytes, uint32_t codec)
{
	return (struct shard_schema){
		.group_count = 1,
		.field_count = 1,
		.group = {{.codec = codec}},
		.field = {{.name = "x", .dtype = SHARD_U8, .ndim = 1, .shape = {bytes}}},
	};
}

/*
 * Strides by hand: the next multiple of 16, 64, 128 or 512, and what makes 4 KiB or 64 KiB of it.
 */
static const struct {
	uint32_t bytes, codec, align;
	uint64_t stride;
	uint32_t align_log2, unit;
} rows[] = {
	{1, SHARD_RAW, 0, 16, 4, 256},
	{8, SHARD_RAW, 0, 16, 4, 256},
	{16, SHARD_RAW, 0, 16, 4, 256},
	{17, SHARD_RAW, 0, 32, 4, 128},
	{33, SHARD_RAW, 0, 48, 4, 128}, /* 64 of them make 3,072 */
	{1023, SHARD_RAW, 0, 1024, 4, 4},
	{1024, SHARD_RAW, 0, 1024, 6, 4},
	{1025, SHARD_RAW, 0, 1088, 6, 4},
	{4000, SHARD_RAW, 0, 4032, 6, 2}, /* just below 4,096: two */
	{4096, SHARD_RAW, 0, 4096, 6, 1},
	{16383, SHARD_RAW, 0, 16384, 6, 1},
	{16384, SHARD_RAW, 0, 16384, 9, 1},
	{16385, SHARD_RAW, 0, 16512, 7, 1},	  /* 511 more would be 3 % */
	{50689, SHARD_RAW, 0, 50816, 7, 1},	  /* 511 more is 1.008 % */
	{51200 - 507, SHARD_RAW, 0, 50816, 7, 1}, /* 507 > 50693 / 100 = 506 */
	{51200 - 506, SHARD_RAW, 0, 51200, 9, 1}, /* 506 <= 50694 / 100 = 506: at most 1 % */
	{150528, SHARD_RAW, 0, 150528, 9, 1},
	{150529, SHARD_RAW, 0, 151040, 9, 1},
	{8, SHARD_RAW, 4096, 4096, 12, 1},
	{150528, SHARD_RAW, 4096, 151552, 12, 1},
	{8, SHARD_LZ4, 0, 16, 4, 4096},
	{4000, SHARD_LZ4, 0, 4032, 6, 32}, /* 16 of them make 64,512 */
	{65535, SHARD_LZ4, 0, 65536, 9, 1},
	{65536, SHARD_LZ4, 0, 65536, 9, 1},
	{150528, SHARD_LZ4, 0, 150528, 9, 1},
	{65024, SHARD_LZ4, 0, 65024, 9, 2},
};

TEST(strides_units_and_chunks)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_schema s = one(rows[i].bytes, rows[i].codec);
		struct shard_error err;

		STORY("%u bytes, codec %u, align %u", rows[i].bytes, rows[i].codec, rows[i].align);
		CHECK_EQ(shard_schema_lay_out(&s, rows[i].align, &err), SHARD_OK);
		CHECK_EQ(s.group[0].record_bytes, rows[i].bytes);
		CHECK_EQ(s.group[0].stride, rows[i].stride);
		CHECK_EQ(s.field[0].stride, rows[i].stride);
		CHECK_EQ(s.group[0].align_log2, rows[i].align_log2);
		CHECK_EQ(s.group[0].unit_records, rows[i].unit);
		CHECK_EQ(s.group[0].chunk_records, rows[i].codec == SHARD_RAW ? 0 : rows[i].unit);
	}
}

TEST(what_is_laid_out_is_accepted_at_every_size)
{
	for (uint32_t bytes = 1; bytes < 70000; bytes += 1 + bytes / 37)
		for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++) {
			struct shard_schema s = one(bytes, codec);
			struct shard_group *g = &s.group[0];
			uint64_t goal = codec == SHARD_RAW ? 4096 : 65536;

			STORY("%u bytes, codec %u", bytes, codec);
			CHECK_EQ(shard_schema_lay_out(&s, 0, NULL), SHARD_OK);
			CHECK_EQ(schema_check(&s, NULL), SHARD_OK);
			CHECK(g->unit_records * g->stride >= goal &&
			      (g->unit_records == 1 || g->unit_records / 2 * g->stride < goal));
		}
}

TEST(fields_keep_their_order_and_are_aligned)
{
	struct shard_schema s = {
		.group_count = 2,
		.field_count = 6,
		.field = {{.name = "flag", .dtype = SHARD_U8},
			  {.name = "wide", .dtype = SHARD_F64, .group = 1},
			  {.name = "half", .dtype = SHARD_F16},
			  {.name = "label", .dtype = SHARD_I64},
			  {.name = "pixels", .dtype = SHARD_U8, .ndim = 2, .shape = {4, 4}},
			  {.name = "last", .dtype = SHARD_U8, .ndim = 1, .shape = {3}}},
	};
	static const uint64_t offset[] = {0, 0, 2, 8, 16, 32};

	CHECK_EQ(shard_schema_lay_out(&s, 0, NULL), SHARD_OK);
	for (uint32_t i = 0; i < 6; i++) {
		STORY("%s", s.field[i].name);
		CHECK_EQ(s.field[i].offset, offset[i]);
		CHECK_EQ(s.field[i].stride, s.group[s.field[i].group].stride);
	}
	CHECK_EQ(s.group[0].record_bytes, 35);
	CHECK_EQ(s.group[0].stride, 48);
	CHECK_EQ(s.group[1].record_bytes, 8);
}

TEST(sixteen_bytes_and_more_lie_on_sixteen)
{
	struct shard_schema s = one(1, SHARD_RAW);

	s.field_count = 2;
	s.field[1] = (struct shard_field){.name = "y", .dtype = SHARD_U8, .ndim = 1, .shape = {15}};
	CHECK_EQ(shard_schema_lay_out(&s, 0, NULL), SHARD_OK);
	CHECK_EQ(s.field[1].offset, 1);
	s.field[1].shape[0] = 16;
	CHECK_EQ(shard_schema_lay_out(&s, 0, NULL), SHARD_OK);
	CHECK_EQ(s.field[1].offset, 16);
}

TEST(holes_are_what_no_field_covers)
{
	struct shard_schema s = {
		.group_count = 2,
		.field_count = 4,
		.group = {{.record_bytes = 40, .stride = 48, .unit_records = 1},
			  {.record_bytes = 16, .stride = 16, .unit_records = 1}},
		.field = {{.name = "c", .dtype = SHARD_U8, .ndim = 1, .shape = {8}, .offset = 30, .bytes = 8},
			  {.name = "a", .dtype = SHARD_U16, .offset = 2, .bytes = 2},
			  {.name = "full", .dtype = SHARD_U8, .ndim = 1, .shape = {16}, .group = 1, .bytes = 16},
			  {.name = "b", .dtype = SHARD_U16, .offset = 4, .bytes = 2}},
	};
	struct record_holes h;
	static const uint32_t want[][2] = {{0, 2}, {6, 24}, {38, 10}};

	CHECK_EQ(schema_check(&s, NULL), SHARD_OK);
	record_holes(&s, 0, &h);
	CHECK_EQ(h.count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		CHECK_EQ(h.hole[i].offset, want[i][0]);
		CHECK_EQ(h.hole[i].bytes, want[i][1]);
	}
	record_holes(&s, 1, &h);
	CHECK_EQ(h.count, 0);
}

TEST(twenty_four_fields_leave_twenty_five_holes)
{
	struct shard_schema s = {.group_count = 1, .field_count = 24, .group = {{.record_bytes = 49, .stride = 64}}};
	struct record_holes h;

	for (uint32_t i = 0; i < 24; i++)
		s.field[i] = (struct shard_field){.dtype = SHARD_U8, .offset = 47 - 2 * i, .bytes = 1};
	record_holes(&s, 0, &h);
	CHECK_EQ(h.count, 25);
	for (uint32_t i = 0; i < 25; i++) {
		CHECK_EQ(h.hole[i].offset, 2 * i);
		CHECK_EQ(h.hole[i].bytes, i < 24 ? 1 : 16);
	}
}

TEST(bad_requests_are_one_clear_line_and_change_nothing)
{
	static const struct {
		const char *story;
		struct shard_field field;
		uint32_t groups, fields, align, codec;
		const char *says;
	} bad[] = {
		{"no such align", {.name = "x", .dtype = SHARD_U8}, 1, 1, 512, 0, "align is 512"},
		{"no group", {.name = "x", .dtype = SHARD_U8}, 0, 1, 0, 0, "0 groups"},
		{"9 groups", {.name = "x", .dtype = SHARD_U8}, 9, 1, 0, 0, "9 groups"},
		{"no field", {.name = "x", .dtype = SHARD_U8}, 1, 0, 0, 0, "0 fields"},
		{"25 fields", {.name = "x", .dtype = SHARD_U8}, 1, 25, 0, 0, "25 fields"},
		{"2^32 - 1 of both",
		 {.name = "x", .dtype = SHARD_U8},
		 UINT32_MAX,
		 UINT32_MAX,
		 0,
		 0,
		 "4294967295 groups"},
		{"no dtype", {.name = "x"}, 1, 1, 0, 0, "'x': dtype 0"},
		{"dtype 14", {.name = "x", .dtype = 14}, 1, 1, 0, 0, "'x': dtype 14"},
		{"9 dimensions", {.name = "x", .dtype = SHARD_U8, .ndim = 9}, 1, 1, 0, 0, "'x': 9 dimensions"},
		{"too large",
		 {.name = "x", .dtype = SHARD_U8, .ndim = 1, .shape = {(1u << 30) + 1}},
		 1,
		 1,
		 0,
		 0,
		 "1073741824"},
		{"2^64 bytes",
		 {.name = "x", .dtype = SHARD_U8, .ndim = 3, .shape = {1u << 31, 1u << 31, 4}},
		 1,
		 1,
		 0,
		 0,
		 "1073741824"},
		{"no such group",
		 {.name = "x", .dtype = SHARD_U8, .group = 1},
		 1,
		 1,
		 0,
		 0,
		 "'x': group is 1; must be below 1"},
		{"an empty dimension", {.name = "x", .dtype = SHARD_U8, .ndim = 1}, 1, 1, 0, 0, "'x': shape[0] is 0"},
		{"a group without a field", {.name = "x", .dtype = SHARD_U8}, 2, 1, 0, 0, "group 1"},
		{"a bad name", {.name = "1", .dtype = SHARD_U8}, 1, 1, 0, 0, "I23"},
		{"a shape behind its dimensions", {.name = "x", .dtype = SHARD_U8, .shape = {1}}, 1, 1, 0, 0, "I27"},
		{"an unknown codec", {.name = "x", .dtype = SHARD_U8}, 1, 1, 0, 2, "codec 2"},
		{"an LZ4 chunk above its limit",
		 {.name = "x", .dtype = SHARD_U8, .ndim = 1, .shape = {(1u << 26) + 1}},
		 1,
		 1,
		 0,
		 1,
		 "I22"},
		{"a name that would break the line", {.name = "a\nb\x1b"}, 1, 1, 0, 0, "'a\\x0ab\\x1b': dtype 0"},
	};

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct shard_schema s = {.group_count = bad[i].groups,
					 .field_count = bad[i].fields,
					 .group = {{.codec = bad[i].codec}}},
				    was;
		struct shard_error err = {.status = 0};

		STORY("%s", bad[i].story);
		s.field[0] = bad[i].field;
		was = s;
		CHECK_EQ(shard_schema_lay_out(&s, bad[i].align, &err), SHARD_E_ARGUMENT);
		CHECK_EQ(err.status, SHARD_E_ARGUMENT);
		if (!strstr(err.message, bad[i].says))
			CHECK_STR(err.message, bad[i].says);
		CHECK_EQ(shard_schema_lay_out(&s, bad[i].align, NULL), SHARD_E_ARGUMENT);
		CHECK_MEM(&s, &was, sizeof(s));
	}
}

TEST_MAIN()
