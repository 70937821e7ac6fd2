/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_names.c - the numbers and names of format/SHARD.md, written out once more
 */
#include "libshard/format/format.h"

#include "shard_inspect.h"
#include "tests/test.h"

static const char *const dtypes[] = {NULL,  "u8",  "i8",   "u16", "i16", "u32",	 "i32", "u64",
				     "i64", "f16", "bf16", "f32", "f64", "bool", NULL};
static const size_t dtype_bytes[] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1, 0};
static const char *const kinds[] = {"tensor", "ragged", "string", NULL};
static const char *const layouts[] = {"none", "hwc", "chw", "yuv420", "tokens", NULL};
static const char *const semantics[] = {"none", "image", "label", "length", "tokens", "mask", "boxes", "text", NULL};
static const char *const codecs[] = {"raw", "lz4", NULL};

static const struct {
	const char *what;
	const char *(*name_of)(uint32_t);
	const char *const *want;
	uint32_t count; /* the last one is undefined */
} tables[] = {
	{"dtype", shard_dtype_name, dtypes, 15},   {"kind", shard_kind_name, kinds, 4},
	{"layout", shard_layout_name, layouts, 6}, {"semantic", shard_semantic_name, semantics, 9},
	{"codec", shard_codec_name, codecs, 3},
};

TEST(names_and_back)
{
	for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
		for (uint32_t i = 0; i < tables[t].count; i++) {
			uint32_t back = 77;

			STORY("%s %u", tables[t].what, i);
			CHECK_STR(tables[t].name_of(i), tables[t].want[i]);
			if (!tables[t].want[i])
				continue;
			CHECK(name_find(tables[t].name_of, tables[t].want[i], strlen(tables[t].want[i]), &back));
			CHECK_EQ(back, i);
		}
		CHECK(!tables[t].name_of(UINT32_MAX));
		CHECK(!tables[t].name_of(1000));
	}
}

TEST(only_the_exact_name_is_found)
{
	static const char *const wrong[] = {"", "u", "u88", "U8", "u8 ", "boolean", "none "};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		uint32_t out = 77;

		STORY("'%s'", wrong[i]);
		CHECK(!name_find(shard_dtype_name, wrong[i], strlen(wrong[i]), &out));
		CHECK_EQ(out, 77);
	}
}

TEST(bytes_of_an_element)
{
	for (uint32_t i = 0; i < 15; i++)
		CHECK_EQ(shard_dtype_bytes(i), dtype_bytes[i]);
	CHECK_EQ(shard_dtype_bytes(UINT32_MAX), 0);
}

TEST(sections_and_reasons_always_have_a_word)
{
	static const char *const want[] = {"?", "DATA", "HASH", "CIDX", "KOFF", "KBLB", "STAT", "MISS", "PROV", "?"};

	for (uint32_t i = 0; i < 10; i++)
		CHECK_STR(shard_section_name(i), want[i]);
	CHECK_STR(shard_section_name(UINT32_MAX), "?");
	CHECK_STR(shard_miss_reason_name(SHARD_MISS_EMPTY), "empty");
	CHECK_STR(shard_miss_reason_name(SHARD_MISS_KEY), "bad key");
	CHECK_STR(shard_miss_reason_name(0), "other");
	CHECK_STR(shard_miss_reason_name(SHARD_MISS_MISSING), "missing");
	CHECK_STR(shard_miss_reason_name(SHARD_MISS_VANISHED), "vanished");
	CHECK_STR(shard_miss_reason_name(14), "other");
	CHECK_STR(shard_miss_reason_name(UINT32_MAX), "other");
}

TEST_MAIN()
