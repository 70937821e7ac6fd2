/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_options.c - callers compiled with an older or newer header
 */
#include "libshard/base/options.h"

#include "shard.h"
#include "tests/test.h"

struct ours { /* what this library knows */
	size_t size;
	uint32_t a, b;
};

struct newer { /* what a later header may have: the same, and more */
	size_t size;
	uint32_t a, b;
	uint64_t c;
	uint8_t d[8]; /* no padding behind it: its last byte is the struct's */
};

TEST(callers_of_every_age)
{
	static const struct newer full = {.size = sizeof(full), .a = 1, .b = 2};
	static const struct newer asks = {.size = sizeof(asks), .a = 1, .b = 2, .d = {[2] = 5}};
	static const struct newer asks_last = {.size = sizeof(asks_last), .a = 1, .b = 2, .d = {[7] = 1}};
	static const struct newer asks_first = {.size = sizeof(asks_first), .a = 1, .b = 2, .c = 1};
	/* behind it nobody looks */
	static const struct newer same = {.size = sizeof(struct ours), .a = 1, .b = 2, .c = 9, .d = {9}};
	static const struct newer older = {.size = sizeof(size_t) + 4, .a = 1, .b = 2, .c = 9};
	static const struct newer oldest = {.size = sizeof(size_t), .a = 1, .b = 2, .c = 9};
	static const struct newer none = {.size = 0, .a = 1}, seven = {.size = 7, .a = 1},
				  wild = {.size = 4097, .a = 1};
	static const struct {
		const char *story;
		const void *theirs;
		int want;
		uint32_t a, b;
	} rows[] = {
		{"no options at all", NULL, SHARD_OK, 0, 0},
		{"the same age", &same, SHARD_OK, 1, 2},
		{"older: what it does not know is zero", &older, SHARD_OK, 1, 0},
		{"so old that it has only a size", &oldest, SHARD_OK, 0, 0},
		{"newer, and what we do not know is zero", &full, SHARD_OK, 1, 2},
		{"newer, and it asks for something unknown", &asks, SHARD_E_UNSUPPORTED, 0, 0},
		{"the same in the first unknown byte", &asks_first, SHARD_E_UNSUPPORTED, 0, 0},
		{"the same in the last byte", &asks_last, SHARD_E_UNSUPPORTED, 0, 0},
		{"size was not set", &none, SHARD_E_ARGUMENT, 0, 0},
		{"size is no size", &seven, SHARD_E_ARGUMENT, 0, 0},
		{"size is garbage", &wild, SHARD_E_ARGUMENT, 0, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct shard_error err = {.status = 1};
		struct ours o = {7, 7, 7};

		STORY("%s", rows[i].story);
		CHECK_EQ(options_take(&o, sizeof(o), rows[i].theirs, &err), rows[i].want);
		CHECK_EQ(err.status, rows[i].want ? rows[i].want : 1);
		CHECK_EQ(o.a, rows[i].a);
		CHECK_EQ(o.b, rows[i].b);
	}
}

TEST(the_message_says_which_byte_and_which_version)
{
	struct newer asks = {.size = sizeof(asks), .d = {[1] = 1}};
	struct shard_error err;
	struct ours o;
	char byte[32];

	options_take(&o, sizeof(o), &asks, &err);
	snprintf(byte, sizeof(byte), "byte %zu ", offsetof(struct newer, d[1]));
	CHECK(strstr(err.message, byte));
	CHECK(strstr(err.message, shard_version()));
}

TEST_MAIN()
