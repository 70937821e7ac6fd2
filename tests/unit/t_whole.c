/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_whole.c - whole images: which field has their sizes, and what a size in a record may be
 */
#include <stddef.h>

#include "libshard/base/bytes.h"
#include "shard.h"
#include "shard_pack.h"
#include "tests/test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Each row changes one thing of the image, number 1, or of its size, number 3. */
TEST(the_size_field_of_a_whole_image)
{
	static const struct shard_field image = {.name = "photo",
						 .dtype = SHARD_U8,
						 .kind = SHARD_RAGGED,
						 .layout = SHARD_HWC,
						 .semantic = SHARD_IMAGE,
						 .ndim = 2,
						 .shape = {49, 3},
						 .ragged_axes = 1};
	static const struct shard_field size = {.name = "photo_size", .dtype = SHARD_U32, .ndim = 1, .shape = {2}};
#define WITH(member, value) offsetof(struct shard_field, member), value
	static const struct {
		const char *story;
		uint32_t field;
		size_t at;
		uint32_t value;
		bool is;
	} rows[] = {
		{"nothing", 1, WITH(dtype, SHARD_U8), true},
		{"another area", 1, WITH(shape[0], 7), true},
		{"a grey one", 1, WITH(shape[1], 1), true},
		{"four channels", 1, WITH(shape[1], 4), true},
		{"five channels", 1, WITH(shape[1], 5), false},
		{"no u8", 1, WITH(dtype, SHARD_I8), false},
		{"a tensor", 1, WITH(kind, SHARD_TENSOR), false},
		{"planes", 1, WITH(layout, SHARD_CHW), false},
		{"a mask", 1, WITH(semantic, SHARD_MASK), false},
		{"three axes", 1, WITH(ndim, 3), false},
		{"one axis", 1, WITH(ndim, 1), false},
		{"another axis varies", 1, WITH(ragged_axes, 2), false},
		{"both axes vary", 1, WITH(ragged_axes, 3), false},
		{"a size of i32", 3, WITH(dtype, SHARD_I32), false},
		{"a ragged size", 3, WITH(kind, SHARD_RAGGED), false},
		{"a size of two axes", 3, WITH(ndim, 2), false},
		{"a size of three numbers", 3, WITH(shape[0], 3), false},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_schema s = {.field_count = 4,
					 .field = {{.name = "image_size"}, image, {.name = "photo_length"}, size}};

		STORY("%s", rows[i].story);
		memcpy((char *)&s.field[rows[i].field] + rows[i].at, &rows[i].value, sizeof(rows[i].value));
		CHECK_EQ(shard_image_size_field(&s, 1), rows[i].is ? 3 : SHARD_FIELDS_MAX);
		CHECK_EQ(shard_image_size_field(&s, 3), SHARD_FIELDS_MAX);
		CHECK_EQ(shard_image_size_field(&s, 4), SHARD_FIELDS_MAX);
		s.field_count = 3; /* no size field at all */
		CHECK_EQ(shard_image_size_field(&s, 1), SHARD_FIELDS_MAX);
	}
}

/* The longest name that a size field leaves room for has 42 bytes. */
TEST(the_size_field_of_a_long_name)
{
	for (int bytes = 41; bytes <= 47; bytes++) {
		struct shard_schema s = {.field_count = 2,
					 .field = {{.dtype = SHARD_U8,
						    .kind = SHARD_RAGGED,
						    .layout = SHARD_HWC,
						    .semantic = SHARD_IMAGE,
						    .ndim = 2,
						    .shape = {49, 3},
						    .ragged_axes = 1},
						   {.dtype = SHARD_U32, .ndim = 1, .shape = {2}}}};

		STORY("%d bytes", bytes);
		memset(s.field[0].name, 'a', (size_t)bytes);
		memset(s.field[1].name, 'a', (size_t)bytes);
		memcpy(s.field[1].name + bytes, "_size", (size_t)(bytes > 42 ? 47 - bytes : 5));
		CHECK_EQ(shard_image_size_field(&s, 0), bytes > 42 ? SHARD_FIELDS_MAX : 1);
	}
}

/* Each row is a record of an image of at most 12 pixels. */
TEST(the_size_of_a_record)
{
	static const struct {
		const char *story;
		uint32_t pixels, height, width;
		int want;
		const char *rule;
	} rows[] = {
		{"as it should be", 12, 3, 4, SHARD_OK, ""},
		{"one pixel", 1, 1, 1, SHARD_OK, ""},
		{"more pixels than the field has", 13, 13, 1, SHARD_E_CORRUPT, "I57: record 7"},
		{"the same, and no product of them", 13, 3, 4, SHARD_E_CORRUPT, "I57: record 7"},
		{"no pixels", 0, 0, 4, SHARD_E_CORRUPT, "I59: record 7"},
		{"another product", 11, 3, 4, SHARD_E_CORRUPT, "I59: record 7"},
		{"a product of 2^32", 0, 65536, 65536, SHARD_E_CORRUPT, "I59: record 7"},
	};
	struct shard_schema s = {
		.group_count = 2,
		.field_count = 4,
		.field = {{.name = "label", .dtype = SHARD_I64, .group = 1},
			  {.name = "image",
			   .dtype = SHARD_U8,
			   .kind = SHARD_RAGGED,
			   .layout = SHARD_HWC,
			   .semantic = SHARD_IMAGE,
			   .ndim = 2,
			   .shape = {12, 3},
			   .ragged_axes = 1,
			   .length_field = 2},
			  {.name = "n", .dtype = SHARD_U32, .ndim = 1, .shape = {1}, .group = 1},
			  {.name = "image_size", .dtype = SHARD_U32, .ndim = 1, .shape = {2}, .group = 1}}};
	uint8_t small[32] = {0};
	const void *group[SHARD_GROUPS_MAX] = {NULL, small};
	struct shard_error err;
	struct shard_size size;

	CHECK_EQ(shard_schema_lay_out(&s, 0, NULL), SHARD_OK);
	for (size_t i = 0; i < COUNT(rows); i++) {
		STORY("%s", rows[i].story);
		err.message[0] = '\0';
		size = (struct shard_size){77, 77};
		store32(small + s.field[2].offset, rows[i].pixels);
		store32(small + s.field[3].offset, rows[i].height);
		store32(small + s.field[3].offset + 4, rows[i].width);
		CHECK_EQ(shard_image_size(&s, 1, group, 7, &size, &err), rows[i].want);
		CHECK(!strncmp(err.message, rows[i].rule, strlen(rows[i].rule)));
		CHECK_EQ(size.height, rows[i].want ? 77 : rows[i].height);
		CHECK_EQ(size.width, rows[i].want ? 77 : rows[i].width);
	}
	CHECK_EQ(shard_image_size(&s, 0, group, 7, &size, &err), SHARD_E_ARGUMENT);
	CHECK_EQ(shard_image_size(&s, 4, group, 7, &size, &err), SHARD_E_ARGUMENT);
}

TEST_MAIN()
