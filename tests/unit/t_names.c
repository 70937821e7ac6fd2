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

static const char *const pixels[] = {NULL, "rows-first", "pillow-12", "pillow-13", NULL};
static const char *const reasons[] = {NULL,	    "empty",	    "not an image", "decoder failed", "damaged",
				      "truncated",  "over a limit", "unsupported",  "bad key",	      "missing",
				      "incomplete", "bad value",    "bad member",   "vanished",	      NULL};
static const char *const sections[] = {NULL, "DATA", "HASH", "CIDX", "KOFF", "KBLB", "STAT", "MISS", "PROV", NULL};

static const struct {
	const char *story;
	enum shard_name_of what;
	const char *const *want;
	uint32_t count; /* the last one is undefined */
} tables[] = {
	{"dtype", SHARD_NAME_DTYPE, dtypes, 15},	 {"kind", SHARD_NAME_KIND, kinds, 4},
	{"layout", SHARD_NAME_LAYOUT, layouts, 6},	 {"semantic", SHARD_NAME_SEMANTIC, semantics, 9},
	{"codec", SHARD_NAME_CODEC, codecs, 3},		 {"pixels", SHARD_NAME_PIXELS, pixels, 5},
	{"reason", SHARD_NAME_MISS_REASON, reasons, 15}, {"section", SHARD_NAME_SECTION, sections, 10},
};

TEST(names_and_back)
{
	for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
		for (uint32_t i = 0; i < tables[t].count; i++) {
			uint32_t back = 77;

			STORY("%s %u", tables[t].story, i);
			if (!tables[t].want[i]) {
				CHECK(!shard_name(tables[t].what, i));
				continue;
			}
			CHECK_STR(shard_name(tables[t].what, i), tables[t].want[i]);
			CHECK(name_find(tables[t].what, tables[t].want[i], strlen(tables[t].want[i]), &back));
			CHECK_EQ(back, i);
		}
		CHECK(!shard_name(tables[t].what, UINT32_MAX));
		CHECK(!shard_name(tables[t].what, 1000));
	}
}

TEST(only_the_exact_name_is_found)
{
	static const char *const wrong[] = {"", "u", "u88", "U8", "u8 ", "boolean", "none "};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		uint32_t out = 77;

		STORY("'%s'", wrong[i]);
		CHECK(!name_find(SHARD_NAME_DTYPE, wrong[i], strlen(wrong[i]), &out));
		CHECK_EQ(out, 77);
	}
}

TEST(bytes_of_an_element)
{
	for (uint32_t i = 0; i < 15; i++)
		CHECK_EQ(shard_dtype_bytes(i), dtype_bytes[i]);
	CHECK_EQ(shard_dtype_bytes(UINT32_MAX), 0);
}

TEST(what_is_not_defined_has_no_name)
{
	CHECK(!shard_name((enum shard_name_of)0, 1));
	CHECK(!shard_name((enum shard_name_of)(SHARD_NAME_SECTION + 1), 1));
	CHECK_STR(section_name(1), "DATA");
	CHECK_STR(section_name(0), "?");
	CHECK_STR(section_name(UINT32_MAX), "?");
}

TEST_MAIN()
