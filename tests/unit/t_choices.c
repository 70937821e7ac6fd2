/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_choices.c - what packers choose alike: groups, meanings of names, labels, sizes of shards
 */
#include "shard.h"
#include "shard_pack.h"
#include "tests/test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MIB	 (UINT64_C(1) << 20)
#define BY_SIZE	 SHARD_GROUP_BY_SIZE

static struct shard_field u8_field(uint32_t bytes, uint32_t group)
{
	return (struct shard_field){.dtype = SHARD_U8, .ndim = 1, .shape = {bytes}, .group = group};
}

TEST(groups_by_size)
{
	static const struct {
		const char *story;
		struct {
			uint32_t bytes, given, want;
		} field[4]; /* until bytes is 0 */
		uint32_t group_count;
	} rows[] = {
		{"a large one and a small one", {{3072, BY_SIZE, 0}, {8, BY_SIZE, 1}}, 2},
		{"the small one first", {{8, BY_SIZE, 1}, {3072, BY_SIZE, 0}}, 2},
		{"16 bytes are small", {{17, BY_SIZE, 0}, {16, BY_SIZE, 1}}, 2},
		{"all are small", {{8, BY_SIZE, 0}, {16, BY_SIZE, 0}}, 1},
		{"all are large", {{17, BY_SIZE, 0}, {100, BY_SIZE, 0}}, 1},
		{"group 0 has a field of its own", {{3, 0, 0}, {8, BY_SIZE, 1}, {16, BY_SIZE, 1}}, 2},
		{"the same, with a large one", {{3, 0, 0}, {8, 1, 1}, {16, BY_SIZE, 1}, {17, BY_SIZE, 0}}, 2},
		{"a group of one's choice", {{8, BY_SIZE, 0}, {9, 3, 3}}, 4},
		{"all are chosen", {{8, 2, 2}, {100, 1, 1}}, 3},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_schema s = {.group_count = 7};

		STORY("%s", rows[i].story);
		for (; s.field_count < 4 && rows[i].field[s.field_count].bytes; s.field_count++)
			s.field[s.field_count] =
				u8_field(rows[i].field[s.field_count].bytes, rows[i].field[s.field_count].given);
		shard_schema_group(&s);
		CHECK_EQ(s.group_count, rows[i].group_count);
		for (uint32_t f = 0; f < s.field_count; f++)
			CHECK_EQ(s.field[f].group, rows[i].field[f].want);
	}
}

/* What cannot be is left to shard_schema_lay_out(), which names it. */
TEST(groups_of_what_cannot_be)
{
	struct shard_schema s = {.field_count = UINT32_MAX};

	for (uint32_t i = 0; i < SHARD_FIELDS_MAX; i++)
		s.field[i] = (struct shard_field){.dtype = i,
						  .ndim = i % 2 ? UINT32_MAX : 8,
						  .group = BY_SIZE,
						  .shape = {1u << 31, 1u << 31, 1u << 31, 1u << 31, 4, 4, 4, 4}};
	shard_schema_group(&s);
	CHECK_EQ(s.group_count, 2);
	CHECK_EQ(s.field[1].group, 0);
	CHECK_EQ(s.field[0].group, 1); /* of no dtype, so of no bytes */
	CHECK_EQ(shard_schema_lay_out(&s, 0, NULL), SHARD_E_ARGUMENT);
}

TEST(groups_are_laid_out)
{
	struct shard_schema s = {
		.field_count = 2,
		.field = {{.name = "image", .dtype = SHARD_U8, .ndim = 3, .shape = {8, 8, 3}, .group = BY_SIZE},
			  {.name = "label", .dtype = SHARD_I64, .group = BY_SIZE}}};

	shard_schema_group(&s);
	CHECK_EQ(shard_schema_lay_out(&s, 0, NULL), SHARD_OK);
	CHECK_EQ(s.group[0].record_bytes, 192);
	CHECK_EQ(s.group[1].record_bytes, 8);
}

TEST(a_name_has_a_meaning)
{
	static const struct {
		struct shard_field f;
		uint32_t dtype, layout, semantic;
	} rows[] = {
		{{.name = "label", .dtype = SHARD_U8}, SHARD_I64, 0, SHARD_LABEL},
		{{.name = "label", .dtype = SHARD_U64}, SHARD_I64, 0, SHARD_LABEL},
		{{.name = "label", .dtype = SHARD_F32}, SHARD_F32, 0, 0},
		{{.name = "label", .dtype = SHARD_BOOL}, SHARD_BOOL, 0, 0},
		{{.name = "label", .dtype = SHARD_I32, .ndim = 1, .shape = {1}}, SHARD_I32, 0, 0},
		{{.name = "labels", .dtype = SHARD_I64}, SHARD_I64, 0, 0},
		{{.name = "image", .dtype = SHARD_U8, .ndim = 3, .shape = {5, 7, 3}}, SHARD_U8, SHARD_HWC, SHARD_IMAGE},
		{{.name = "image", .dtype = SHARD_F32, .ndim = 3, .shape = {4, 7, 9}},
		 SHARD_F32,
		 SHARD_CHW,
		 SHARD_IMAGE},
		{{.name = "image", .dtype = SHARD_U8, .ndim = 3, .shape = {3, 7, 1}}, SHARD_U8, SHARD_HWC, SHARD_IMAGE},
		{{.name = "image", .dtype = SHARD_U8, .ndim = 3, .shape = {5, 7, 2}}, SHARD_U8, 0, 0},
		{{.name = "image", .dtype = SHARD_U8, .ndim = 2, .shape = {5, 3}}, SHARD_U8, 0, 0},
		{{.name = "picture", .dtype = SHARD_U8, .ndim = 3, .shape = {5, 7, 3}}, SHARD_U8, 0, 0},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_field f = rows[i].f;

		STORY("row %zu, %s", i, f.name);
		shard_field_infer(&f);
		CHECK_EQ(f.dtype, rows[i].dtype);
		CHECK_EQ(f.layout, rows[i].layout);
		CHECK_EQ(f.semantic, rows[i].semantic);
	}
}

TEST(channels_that_are_summed)
{
	static const struct {
		struct shard_field f;
		uint32_t channels;
	} rows[] = {
		{{.dtype = SHARD_U8, .semantic = SHARD_IMAGE, .layout = SHARD_HWC, .ndim = 3, .shape = {5, 7, 3}}, 3},
		{{.dtype = SHARD_U8, .semantic = SHARD_IMAGE, .layout = SHARD_CHW, .ndim = 3, .shape = {4, 7, 9}}, 4},
		{{.dtype = SHARD_U8, .semantic = SHARD_IMAGE, .layout = SHARD_HWC, .ndim = 3, .shape = {5, 7, 5}}, 0},
		{{.dtype = SHARD_U8,
		  .semantic = SHARD_IMAGE,
		  .layout = SHARD_LAYOUT_NONE,
		  .ndim = 3,
		  .shape = {5, 7, 3}},
		 0},
		{{.dtype = SHARD_U8, .semantic = SHARD_IMAGE, .layout = SHARD_HWC, .ndim = 4, .shape = {5, 7, 3, 3}},
		 0},
		{{.dtype = SHARD_U8, .semantic = SHARD_MASK, .layout = SHARD_HWC, .ndim = 3, .shape = {5, 7, 1}}, 0},
		{{.dtype = SHARD_F32, .semantic = SHARD_IMAGE, .layout = SHARD_HWC, .ndim = 3, .shape = {5, 7, 3}}, 0},
		{{.dtype = SHARD_U8,
		  .kind = SHARD_RAGGED,
		  .semantic = SHARD_IMAGE,
		  .layout = SHARD_HWC,
		  .ndim = 3,
		  .shape = {5, 7, 3}},
		 0},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		STORY("row %zu", i);
		CHECK_EQ(shard_field_channels(&rows[i].f), rows[i].channels);
	}
}

TEST(the_label_of_a_schema)
{
	struct shard_schema s = {
		.field_count = 5,
		.field = {{.name = "a", .dtype = SHARD_I64},
			  {.name = "b", .dtype = SHARD_I32, .semantic = SHARD_LABEL},
			  {.name = "c", .dtype = SHARD_I64, .semantic = SHARD_LABEL, .ndim = 1, .shape = {1}},
			  {.name = "d", .dtype = SHARD_I64, .semantic = SHARD_LABEL},
			  {.name = "e", .dtype = SHARD_I64, .semantic = SHARD_LABEL}}};

	CHECK(shard_schema_label(&s) == &s.field[3]);
	s.field_count = 3;
	CHECK(!shard_schema_label(&s));
}

TEST(the_label_of_a_record)
{
	static const struct {
		int64_t label;
		uint64_t class_count;
		int is_class;
	} rows[] = {{0, 1, 1},
		    {1, 1, 0},
		    {9, 10, 1},
		    {10, 10, 0},
		    {-1, 10, 0},
		    {INT64_MIN, UINT64_MAX, 0},
		    {INT64_MAX, UINT64_MAX, 1},
		    {0, 0, 0}};
	const struct shard_field f = {.dtype = SHARD_I64, .group = 1, .offset = 3};

	for (size_t i = 0; i < COUNT(rows); i++) {
		uint8_t record[11] = {0};
		const void *group[2] = {NULL, record};
		int64_t value = 77;

		STORY("%" PRId64 " of %" PRIu64, rows[i].label, rows[i].class_count);
		memcpy(record + 3, &rows[i].label, 8);
		CHECK_EQ(shard_label_read(&f, group, rows[i].class_count, &value), rows[i].is_class);
		CHECK_EQ(value, rows[i].label);
	}
}

static struct shard_schema of_stride(uint64_t stride)
{
	return (struct shard_schema){.group_count = 2, .group = {{.stride = stride - 16}, {.stride = 16}}};
}

TEST(records_of_a_shard)
{
	static const struct {
		const char *story;
		uint64_t stride, records, bytes, total, want;
	} rows[] = {
		{"an eighth, rounded up", MIB, 0, 0, 801, 101},
		{"64 MiB at least", MIB, 0, 0, 8, 64},
		{"64 MiB of nothing", MIB, 0, 0, 0, 64},
		{"1 GiB at most", MIB, 0, 0, 1000000, 1024},
		{"one record at least", 3072 * MIB, 0, 0, 1000, 1},
		{"the total is not known", MIB, 0, 0, SHARD_COUNT_UNKNOWN, 256},
		{"the largest total that is", 4096, 0, 0, UINT64_MAX - 1, 262144},
		{"so many records", MIB, 7, 0, 1000000, 7},
		{"so many bytes", MIB, 0, 10 * MIB - 1, 1000000, 9},
		{"fewer bytes than a record has", MIB, 0, 1, 1000000, 1},
		{"8 TiB", 4096, 0, UINT64_C(1) << 43, 1, UINT64_C(1) << 31},
		{"8 TiB of records", 4096, UINT64_C(1) << 31, 0, 1, UINT64_C(1) << 31},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_schema s = of_stride(rows[i].stride);
		uint64_t out = 0;

		STORY("%s", rows[i].story);
		CHECK_EQ(shard_schema_shard_records(&s, rows[i].records, rows[i].bytes, rows[i].total, &out, NULL),
			 SHARD_OK);
		CHECK_EQ(out, rows[i].want);
	}
}

TEST(shards_that_cannot_be)
{
	static const struct {
		uint64_t stride, records, bytes;
		const char *says;
	} rows[] = {
		{4096, (UINT64_C(1) << 31) + 1, 0,
		 "shards of 2147483649 records of 4096 bytes are too large; the limit is 8796093022208 bytes, which "
		 "is 2147483648 records"},
		{4096, UINT64_MAX, 0,
		 "shards of 18446744073709551615 records of 4096 bytes are too large; the limit is 8796093022208 "
		 "bytes, which is 2147483648 records"},
		{4096, 0, UINT64_MAX,
		 "shards of 4503599627370495 records of 4096 bytes are too large; the limit is 8796093022208 bytes, "
		 "which is 2147483648 records"},
		{4096, 1, 1, "the size of a shard is given both in records and in bytes; give one of them"},
		{0, 1, 0, "the size of a record is unknown; call shard_schema_lay_out() first"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_schema s = of_stride(rows[i].stride);
		struct shard_error err = {0};
		uint64_t out = 77;

		if (!rows[i].stride)
			memset(&s, 0, sizeof(s));
		STORY("%s", rows[i].says);
		CHECK_EQ(shard_schema_shard_records(&s, rows[i].records, rows[i].bytes, 1, &out, &err),
			 SHARD_E_ARGUMENT);
		CHECK_STR(err.message, rows[i].says);
		CHECK_EQ(err.status, SHARD_E_ARGUMENT);
		CHECK_EQ(out, 77);
	}
}

TEST_MAIN()
