/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_record.c - bytes that no field covers, and elements past the lengths of ragged fields
 */
#include "libshard/base/bytes.h"
#include "libshard/format/format.h"
#include "tests/test.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

TEST(every_byte_of_a_hole_is_looked_at)
{
	const struct record_holes holes = {3, {{0, 1}, {5, 3}, {60, 40}}};
	uint8_t data[4 * 100];

	for (uint32_t record = 0; record < 4; record++)
		for (uint32_t at = 0; at < 100; at++) {
			struct shard_error err = {.message = ""};
			bool hole = at == 0 || (at >= 5 && at < 8) || at >= 60;
			char want[80];

			STORY("byte %u of record %u", at, record);
			memset(data, 0, sizeof(data));
			data[record * 100 + at] = 0x40;
			CHECK_EQ(record_check_holes(&holes, data, 100, 1000, 4, &err),
				 hole ? SHARD_E_CORRUPT : SHARD_OK);
			snprintf(want, sizeof(want), "I49: record %u: byte %u, ", 1000 + record, at);
			CHECK(!hole || !strncmp(err.message, want, strlen(want)));
			/* not behind the count */
			CHECK_EQ(record_check_holes(&holes, data, 100, 1000, record, &err), SHARD_OK);
		}
}

/*
 * Which elements a ragged field may use, computed in the way that SHARD.md says it: no index at or
 * above its axis's length.
 */
static bool may_be_set(const struct shard_field *f, const uint32_t *lengths, uint64_t element)
{
	uint32_t k = 0, idx[SHARD_DIMS_MAX];

	for (uint32_t d = f->ndim; d-- > 0;) {
		idx[d] = (uint32_t)(element % f->shape[d]);
		element /= f->shape[d];
	}
	for (uint32_t d = 0; d < f->ndim; d++)
		if ((f->ragged_axes >> d & 1) && idx[d] >= lengths[k++])
			return false;
	return true;
}

static const struct {
	const char *story;
	struct shard_field f;
	uint32_t lengths[8];
	int first_bad; /* length that is too large, -1 for none */
} rows[] = {
	{"string, empty",
	 {.name = "s", .dtype = SHARD_U8, .kind = SHARD_STRING, .ndim = 1, .shape = {9}, .ragged_axes = 1, .bytes = 9},
	 {0},
	 -1},
	{"string",
	 {.name = "s", .dtype = SHARD_U8, .kind = SHARD_STRING, .ndim = 1, .shape = {9}, .ragged_axes = 1, .bytes = 9},
	 {4},
	 -1},
	{"string, full",
	 {.name = "s", .dtype = SHARD_U8, .kind = SHARD_STRING, .ndim = 1, .shape = {9}, .ragged_axes = 1, .bytes = 9},
	 {9},
	 -1},
	{"string, one too long",
	 {.name = "s", .dtype = SHARD_U8, .kind = SHARD_STRING, .ndim = 1, .shape = {9}, .ragged_axes = 1, .bytes = 9},
	 {10},
	 0},
	{"string, much too long",
	 {.name = "s", .dtype = SHARD_U8, .kind = SHARD_STRING, .ndim = 1, .shape = {9}, .ragged_axes = 1, .bytes = 9},
	 {UINT32_MAX},
	 0},
	{"first of two axes",
	 {.name = "b",
	  .dtype = SHARD_F32,
	  .kind = SHARD_RAGGED,
	  .ndim = 2,
	  .shape = {5, 4},
	  .ragged_axes = 1,
	  .bytes = 80},
	 {2},
	 -1},
	{"second of two axes",
	 {.name = "b",
	  .dtype = SHARD_U16,
	  .kind = SHARD_RAGGED,
	  .ndim = 2,
	  .shape = {5, 4},
	  .ragged_axes = 2,
	  .bytes = 40},
	 {3},
	 -1},
	{"both axes",
	 {.name = "b",
	  .dtype = SHARD_U16,
	  .kind = SHARD_RAGGED,
	  .ndim = 2,
	  .shape = {5, 4},
	  .ragged_axes = 3,
	  .bytes = 40},
	 {3, 2},
	 -1},
	{"both axes, the second too long",
	 {.name = "b",
	  .dtype = SHARD_U16,
	  .kind = SHARD_RAGGED,
	  .ndim = 2,
	  .shape = {5, 4},
	  .ragged_axes = 3,
	  .bytes = 40},
	 {3, 5},
	 1},
	{"outer and inner of three",
	 {.name = "c",
	  .dtype = SHARD_I64,
	  .kind = SHARD_RAGGED,
	  .ndim = 3,
	  .shape = {3, 2, 4},
	  .ragged_axes = 5,
	  .bytes = 192},
	 {1, 3},
	 -1},
	{"eight axes",
	 {.name = "d",
	  .dtype = SHARD_U8,
	  .kind = SHARD_RAGGED,
	  .ndim = 8,
	  .shape = {2, 2, 2, 2, 2, 2, 2, 2},
	  .ragged_axes = 0xff,
	  .bytes = 256},
	 {1, 2, 2, 1, 2, 2, 2, 1},
	 -1},
};

TEST(every_element_past_a_length_is_looked_at)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct shard_field *f = &rows[i].f;
		size_t item = shard_dtype_bytes(f->dtype);
		uint8_t lengths[32], data[256];

		STORY("%s", rows[i].story);
		for (int k = 0; k < 8; k++)
			store32(lengths + 4 * k, rows[i].lengths[k]);
		for (uint64_t at = 0; at <= f->bytes; at++) { /* the last turn leaves all bytes zero */
			struct shard_error err = {.message = ""};
			int want = SHARD_E_CORRUPT;

			memset(data, 0, sizeof(data));
			if (at < f->bytes)
				data[at] = 1;
			if (rows[i].first_bad < 0)
				want = at == f->bytes || may_be_set(f, rows[i].lengths, at / item) ? SHARD_OK
												   : SHARD_E_CORRUPT;
			CHECK_EQ(record_check_ragged(f, data, lengths, 77, &err), want);
			CHECK(!want ||
			      !strncmp(err.message, rows[i].first_bad < 0 ? "I58: record 77" : "I57: record 77", 14));
		}
	}
}

TEST(the_size_of_an_image)
{
	static const struct {
		const char *story;
		uint32_t height, width, pixels;
		int want;
	} sizes[] = {
		{"as it should be", 3, 5, 15, SHARD_OK},
		{"a single pixel", 1, 1, 1, SHARD_OK},
		{"as many pixels as the length can say", UINT32_MAX, 1, UINT32_MAX, SHARD_OK},
		{"no pixels", 0, 0, 0, SHARD_E_CORRUPT},
		{"no height", 0, 5, 0, SHARD_E_CORRUPT},
		{"no width", 5, 0, 0, SHARD_E_CORRUPT},
		{"a pixel more", 3, 5, 16, SHARD_E_CORRUPT},
		{"a pixel less", 3, 5, 14, SHARD_E_CORRUPT},
		{"the product is 2^32", 65536, 65536, 0, SHARD_E_CORRUPT},
		{"the product is 2^32 + 65536", 65536, 65537, 65536, SHARD_E_CORRUPT},
		{"the greatest product, which is 1 in 32 bits", UINT32_MAX, UINT32_MAX, 1, SHARD_E_CORRUPT},
	};
	struct shard_field f = {.name = "picture"};

	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct shard_error err = {.message = ""};
		uint8_t size[8], length[4];

		STORY("%s", sizes[i].story);
		store32(size, sizes[i].height);
		store32(size + 4, sizes[i].width);
		store32(length, sizes[i].pixels);
		CHECK_EQ(record_check_size(&f, size, length, 77, &err), sizes[i].want);
		CHECK(!sizes[i].want || !strncmp(err.message, "I59: record 77: field 'picture'", 31));
	}
}

TEST_MAIN()
