/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_schema.c - each rule of groups and fields broken by hand, in a schema that is otherwise good
 *
 * A row pokes numbers into the good schema and says which rule of format/SHARD.md that breaks; NULL
 * says that it is still good, which shows on which side of a limit the limit lies.
 */
#include <stddef.h>

#include "libshard/format/format.h"
#include "tests/test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct shard_schema good(void)
{
	return (struct shard_schema){
		.group_count = 3,
		.field_count = 7,
		.group = {{.record_bytes = 3000, .stride = 4096, .align_log2 = 12, .unit_records = 1},
			  {.codec = SHARD_LZ4,
			   .record_bytes = 60,
			   .stride = 64,
			   .align_log2 = 6,
			   .unit_records = 16,
			   .chunk_records = 16},
			  {.record_bytes = 2, .stride = 16, .align_log2 = 4, .unit_records = 256}},
		.field = {{.name = "image",
			   .dtype = SHARD_U8,
			   .layout = SHARD_HWC,
			   .semantic = SHARD_IMAGE,
			   .ndim = 3,
			   .shape = {10, 100, 3},
			   .bytes = 3000},
			  {.name = "label", .dtype = SHARD_I64, .semantic = SHARD_LABEL, .group = 1, .bytes = 8},
			  {.name = "text",
			   .dtype = SHARD_U8,
			   .kind = SHARD_STRING,
			   .semantic = SHARD_TEXT,
			   .group = 1,
			   .ndim = 1,
			   .shape = {16},
			   .ragged_axes = 1,
			   .length_field = 3,
			   .offset = 8,
			   .bytes = 16},
			  {.name = "text_length",
			   .dtype = SHARD_U32,
			   .semantic = SHARD_LENGTH,
			   .group = 1,
			   .offset = 24,
			   .bytes = 4},
			  {.name = "boxes",
			   .dtype = SHARD_F32,
			   .kind = SHARD_RAGGED,
			   .semantic = SHARD_BOXES,
			   .group = 1,
			   .ndim = 2,
			   .shape = {2, 3},
			   .ragged_axes = 3,
			   .length_field = 5,
			   .offset = 36,
			   .bytes = 24},
			  {.name = "boxes_length",
			   .dtype = SHARD_U32,
			   .semantic = SHARD_LENGTH,
			   .group = 1,
			   .ndim = 1,
			   .shape = {2},
			   .offset = 28,
			   .bytes = 8},
			  {.name = "_x.Y-9", .dtype = SHARD_BOOL, .group = 2, .offset = 1, .bytes = 1}},
	};
}

enum { IMAGE, LABEL, TEXT, TEXT_LENGTH, BOXES, BOXES_LENGTH, X };

#define G(i, member) offsetof(struct shard_schema, group[i].member), sizeof(((struct shard_group *)0)->member)
#define F(i, member) offsetof(struct shard_schema, field[i].member), sizeof(((struct shard_field *)0)->member)
#define SHAPE(i, d)  offsetof(struct shard_schema, field[i].shape[d]), 4
#define NAME(i, c)   offsetof(struct shard_schema, field[i].name[c]), 1

static const struct {
	const char *story, *number;
	struct {
		size_t offset, bytes;
		uint64_t value;
	} poke[6];
} rows[] = {
	{"as it is", NULL, {{0, 0, 0}}},

	{"no record bytes", "I18", {{G(0, record_bytes), 0}}},
	{"record bytes above the stride", "I18", {{G(0, record_bytes), 4097}}},
	{"record bytes that fill the stride", NULL, {{G(0, record_bytes), 4096}}},
	{"stride of 1 GiB", NULL, {{G(0, stride), 1u << 30}}},
	{"stride above 1 GiB", "I18", {{G(0, stride), (1u << 30) + 4096}}},
	{"stride of 2^64 - 4096", "I18", {{G(0, stride), -(uint64_t)4096}}},

	{"align 13", "I19", {{G(0, align_log2), 13}, {G(0, stride), 8192}}},
	{"align of which 64 bits know nothing", "I19", {{G(0, align_log2), 64}}},
	{"align 2^32 - 1", "I19", {{G(0, align_log2), UINT32_MAX}}},
	{"align 1", NULL, {{G(0, align_log2), 0}}},
	{"stride that is no multiple of its align", "I19", {{G(0, stride), 4096 + 2048}}},

	{"no record in a unit", "I20", {{G(0, unit_records), 0}}},
	{"2^20 records in a unit", NULL, {{G(0, unit_records), 1u << 20}}},
	{"one more", "I20", {{G(0, unit_records), (1u << 20) + 1}}},

	{"codec 2", "I21", {{G(0, codec), 2}}},
	{"codec 2^32 - 1", "I21", {{G(1, codec), UINT32_MAX}}},

	{"chunks in a raw group", "I22", {{G(0, chunk_records), 1}}},
	{"no chunks in a compressed group", "I22", {{G(1, chunk_records), 0}}},
	{"chunks that are no units", "I22", {{G(1, chunk_records), 32}}},
	{"chunk of 64 MiB", NULL, {{G(1, chunk_records), 1u << 20}, {G(1, unit_records), 1u << 20}}},
	{"chunk of more",
	 "I22",
	 {{G(1, chunk_records), 1u << 20}, {G(1, unit_records), 1u << 20}, {G(1, stride), 128}}},
	{"chunk of 2^50 bytes",
	 "I22",
	 {{G(1, chunk_records), 1u << 20}, {G(1, unit_records), 1u << 20}, {G(1, stride), 1u << 30}}},

	{"empty name", "I23", {{NAME(X, 0), 0}}},
	{"name that begins with a digit", "I23", {{NAME(X, 0), '1'}}},
	{"name that begins with a dash", "I23", {{NAME(X, 0), '-'}}},
	{"space in a name", "I23", {{NAME(X, 2), ' '}}},
	{"slash in a name", "I23", {{NAME(X, 2), '/'}}},
	{"byte above ASCII in a name", "I23", {{NAME(X, 2), 0xe9}}},
	{"byte behind the name's end", "I23", {{NAME(X, 47), 'x'}}},
	{"name without an end",
	 "I23",
	 {{NAME(X, 6), 'a'}, {NAME(X, 7), 'a'}, {offsetof(struct shard_schema, field[X].name[8]), 40, 'a'}}},
	{"name of 47 bytes", NULL, {{offsetof(struct shard_schema, field[X].name[6]), 41, 'a'}}},
	{"same name twice", "I24", {{NAME(TEXT, 4), '_'}, {offsetof(struct shard_schema, field[TEXT].name[5]), 0, 1}}},

	{"dtype 0", "I25", {{F(X, dtype), 0}}},
	{"dtype 14", "I25", {{F(X, dtype), 14}}},
	{"kind 3", "I26", {{F(X, kind), 3}}},
	{"layout 5", "I26", {{F(X, layout), 5}}},
	{"semantic 8", "I26", {{F(X, semantic), 8}}},
	{"9 dimensions", "I26", {{F(X, ndim), 9}}},
	{"2^32 - 1 dimensions", "I26", {{F(X, ndim), UINT32_MAX}}},
	{"8 dimensions",
	 NULL,
	 {{F(X, ndim), 8},
	  {SHAPE(X, 0), 1},
	  {SHAPE(X, 1), 1},
	  {offsetof(struct shard_schema, field[X].shape[2]), 24, 1}}},

	{"dimension of 0", "I27", {{SHAPE(IMAGE, 1), 0}}},
	{"dimension behind the last", "I27", {{SHAPE(IMAGE, 3), 1}}},
	{"dimension of a scalar", "I27", {{SHAPE(LABEL, 0), 1}}},
	{"eighth dimension of a scalar", "I27", {{SHAPE(LABEL, 7), 1}}},

	{"one byte too few", "I28", {{F(IMAGE, bytes), 2999}}},
	{"one byte too many", "I28", {{F(IMAGE, bytes), 3001}}},
	{"2 GiB",
	 "I28",
	 {{SHAPE(IMAGE, 0), 1u << 31},
	  {SHAPE(IMAGE, 1), 1},
	  {SHAPE(IMAGE, 2), 1},
	  {F(IMAGE, bytes), UINT64_C(1) << 31}}},
	{"a product of 2^64, which wraps to 0",
	 "I28",
	 {{SHAPE(IMAGE, 0), 1u << 31}, {SHAPE(IMAGE, 1), 1u << 31}, {SHAPE(IMAGE, 2), 4}, {F(IMAGE, bytes), 0}}},
	{"a product of 2^64 + 2^32, which wraps to 2^32",
	 "I28",
	 {{SHAPE(IMAGE, 0), 1u << 31},
	  {SHAPE(IMAGE, 1), 2},
	  {F(IMAGE, ndim), 3},
	  {F(IMAGE, bytes), UINT64_C(1) << 32}}},
	/*
	 * 641 x 6700417 = 2^32 + 1: times 4294967295 it is 2^64 - 1, and 8 times that wraps to -8
	 */
	{"8 times 2^64 - 1",
	 "I28",
	 {{SHAPE(IMAGE, 0), 641},
	  {SHAPE(IMAGE, 1), 6700417},
	  {SHAPE(IMAGE, 2), UINT32_MAX},
	  {F(IMAGE, dtype), SHARD_F64},
	  {F(IMAGE, bytes), -(uint64_t)8}}},
	{"it wraps within the dimensions and back to zero",
	 "I28",
	 {{SHAPE(IMAGE, 0), 1u << 16},
	  {SHAPE(IMAGE, 1), 1u << 16},
	  {SHAPE(IMAGE, 2), 1u << 31},
	  {F(IMAGE, dtype), SHARD_U16},
	  {F(IMAGE, bytes), 0}}},

	{"group 3 of 3", "I29", {{F(X, group), 3}}},
	{"group 2^32 - 1", "I29", {{F(X, group), UINT32_MAX}}},
	{"one byte past the record", "I29", {{F(X, offset), 2}}},
	{"offset past the record", "I29", {{F(X, offset), 3}}},
	{"offset that wraps the sum to 0", "I29", {{F(X, offset), UINT64_MAX}}},
	{"offset that wraps the sum into the record", "I29", {{F(LABEL, offset), -(uint64_t)8}}},
	{"image moved past its record", "I29", {{F(IMAGE, offset), 1}}},

	{"f32 at 38", "I30", {{F(BOXES, offset), 38}, {G(1, record_bytes), 62}}},
	{"i64 at 4", "I30", {{F(LABEL, offset), 4}}},
	{"bool anywhere", NULL, {{F(X, offset), 0}}},

	{"two fields share their bytes", "I31", {{F(TEXT_LENGTH, offset), 28}}},
	{"one begins in the other", "I31", {{F(TEXT, offset), 9}}},
	{"one lies within the other", "I31", {{F(TEXT_LENGTH, offset), 12}}},
	{"same place in another group", NULL, {{F(X, offset), 0}}},

	{"tensor with varying axes", "I32", {{F(IMAGE, ragged_axes), 1}}},
	{"tensor with a length field", "I32", {{F(IMAGE, length_field), 3}}},
	{"ragged without axes", "I32", {{F(BOXES, ragged_axes), 0}}},
	{"an axis past ndim", "I32", {{F(BOXES, ragged_axes), 5}}},
	{"length field past the last", "I32", {{F(BOXES, length_field), 7}}},
	{"length field 2^32 - 1", "I32", {{F(BOXES, length_field), UINT32_MAX}}},
	{"lengths are i32", "I32", {{F(BOXES_LENGTH, dtype), SHARD_I32}}},
	{"more lengths than axes", "I32", {{F(BOXES, ragged_axes), 1}}},
	{"fewer lengths than axes", "I32", {{F(BOXES, length_field), TEXT_LENGTH}}},
	{"lengths that are ragged",
	 "I32",
	 {{F(BOXES_LENGTH, kind), SHARD_RAGGED},
	  {F(BOXES_LENGTH, ragged_axes), 1},
	  {F(BOXES_LENGTH, length_field), TEXT_LENGTH}}},
	{"its own length field", "I32", {{F(TEXT, length_field), TEXT}}},
	{"a string of i8", "I32", {{F(TEXT, dtype), SHARD_I8}}},
	{"a string of two axes", "I32", {{F(TEXT, ndim), 2}, {SHAPE(TEXT, 1), 1}}},
	{"the same as ragged", NULL, {{F(TEXT, ndim), 2}, {SHAPE(TEXT, 1), 1}, {F(TEXT, kind), SHARD_RAGGED}}},

	{"a group without a field", "I33", {{F(X, group), 0}, {F(X, offset), 3000}, {G(0, record_bytes), 3001}}},

	{"the lower number wins: I18 of the last group before I19 of the first",
	 "I18",
	 {{G(0, align_log2), 13}, {G(2, record_bytes), 0}}},
	{"the lower number wins: I25 of the last field before I26 of the first",
	 "I25",
	 {{F(IMAGE, kind), 9}, {F(X, dtype), 0}}},
};

static void poke(struct shard_schema *s, size_t offset, size_t bytes, uint64_t value)
{
	if (bytes > 8) /* a run of the same value: characters, or entries of a shape */
		for (size_t i = 0; i < bytes; i += value == 1 ? 4 : 1)
			((char *)s)[offset + i] = (char)value;
	else
		memcpy((char *)s + offset, &value, bytes); /* little-endian, as the library demands */
}

TEST(each_rule_by_hand)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_schema s = good();
		struct shard_error err = {.message = "accepted"};
		char want[8] = "accepted";
		int rc;

		STORY("%s", rows[i].story);
		for (size_t k = 0; k < COUNT(rows[i].poke); k++)
			poke(&s, rows[i].poke[k].offset, rows[i].poke[k].bytes, rows[i].poke[k].value);
		if (rows[i].number && !strcmp(rows[i].number, "I24"))
			memcpy(s.field[TEXT].name, s.field[TEXT_LENGTH].name, SHARD_NAME_BYTES);
		rc = schema_check(&s, &err);
		if (rows[i].number)
			snprintf(want, sizeof(want), "%s:", rows[i].number);
		err.message[rows[i].number ? strlen(want) : strlen(err.message)] = 0;
		CHECK_STR(err.message, rows[i].number ? want : "accepted");
		CHECK_EQ(rc, !rows[i].number		      ? SHARD_OK
			     : !strcmp(rows[i].number, "I21") ? SHARD_E_UNSUPPORTED
							      : SHARD_E_CORRUPT);
	}
}

TEST(every_rule_has_a_row)
{
	for (int number = 18; number <= 33; number++) {
		bool there = false;
		char want[16];

		snprintf(want, sizeof(want), "I%d", number);
		for (size_t i = 0; i < COUNT(rows); i++)
			there = there || (rows[i].number && !strcmp(rows[i].number, want));
		STORY("%s", want);
		CHECK(there);
	}
}

/* Every member but the derived stride of fields makes two schemas differ. */
TEST(equal_means_every_number)
{
	static const struct {
		size_t offset, bytes;
	} members[] = {
		{offsetof(struct shard_schema, group_count), 4},
		{offsetof(struct shard_schema, field_count), 4},
		{G(2, codec)},
		{G(2, align_log2)},
		{G(2, unit_records)},
		{G(2, chunk_records)},
		{G(2, record_bytes)},
		{G(2, stride)},
		{NAME(X, 5)},
		{NAME(X, 47)},
		{F(X, dtype)},
		{F(X, kind)},
		{F(X, layout)},
		{F(X, semantic)},
		{F(X, group)},
		{F(X, ndim)},
		{SHAPE(X, 0)},
		{SHAPE(X, 7)},
		{F(X, ragged_axes)},
		{F(X, length_field)},
		{F(X, offset)},
		{F(X, bytes)},
	};
	struct shard_schema a = good(), b = good();

	CHECK(schema_equal(&a, &b));
	b.field[X].stride = 99;
	b.group[3].stride = 99; /* unused slots do not count */
	CHECK(schema_equal(&a, &b));
	for (size_t i = 0; i < COUNT(members); i++) {
		STORY("member %zu", i);
		b = good();
		((uint8_t *)&b)[members[i].offset] ^= 1;
		CHECK(!schema_equal(&a, &b));
		CHECK(!schema_equal(&b, &a));
	}
}

TEST(fields_are_found_by_name)
{
	struct shard_schema s = good();
	char longest[80];

	CHECK(shard_schema_find(&s, "image") == &s.field[IMAGE]);
	CHECK(shard_schema_find(&s, "_x.Y-9") == &s.field[X]);
	CHECK(!shard_schema_find(&s, "imag"));
	CHECK(!shard_schema_find(&s, "images"));
	CHECK(!shard_schema_find(&s, ""));
	memset(longest, 'a', sizeof(longest) - 1);
	longest[79] = longest[47] = 0;
	memcpy(s.field[X].name, longest, 48);
	CHECK(shard_schema_find(&s, longest) == &s.field[X]);
	longest[47] = 'a';
	CHECK(!shard_schema_find(&s, longest));
}

TEST(channels_and_elements)
{
	struct shard_schema s = good();
	struct shard_field f = s.field[IMAGE], scalar = s.field[LABEL];

	CHECK_EQ(schema_elements(&f), 3000);
	CHECK_EQ(schema_channels(&f), 3);
	f.layout = SHARD_CHW;
	CHECK_EQ(schema_channels(&f), 10);
	f.layout = SHARD_YUV420;
	CHECK_EQ(schema_channels(&f), 1);
	CHECK_EQ(schema_elements(&scalar), 1);
	scalar.layout = SHARD_HWC;
	CHECK_EQ(schema_channels(&scalar), 1);
	scalar.layout = SHARD_CHW;
	CHECK_EQ(schema_channels(&scalar), 1);
	CHECK(schema_is_integer_scalar(&scalar));
	for (uint32_t dtype = 0; dtype < 16; dtype++) {
		scalar.dtype = dtype;
		CHECK_EQ(schema_is_integer_scalar(&scalar), dtype >= 1 && dtype <= 8);
	}
	CHECK(!schema_is_integer_scalar(&f));
	CHECK(!schema_is_integer_scalar(&s.field[TEXT]));
	scalar.dtype = SHARD_I64;
	scalar.ndim = 1; /* one element is not a scalar */
	CHECK(!schema_is_integer_scalar(&scalar));
}

TEST_MAIN()
