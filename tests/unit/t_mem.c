/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_mem.c - sizes that wrap give NULL, sizes of nothing do not
 */
#include "libshard/base/mem.h"
#include "tests/test.h"

TEST(nothing_is_something_to_free)
{
	void *p[4] = {mem_alloc(0), mem_zalloc(0), mem_array(0, 8), mem_aligned(4096, 0)};

	for (int i = 0; i < 4; i++) {
		CHECK(p[i]);
		mem_free(p[i]);
	}
	mem_free(NULL);
}

TEST(products_that_wrap_are_refused)
{
	static const struct {
		const char *story;
		size_t count, item;
	} rows[] = {
		{"2^64", (size_t)1 << 32, (size_t)1 << 32},
		{"a little above 2^64, which wraps to 16", ((size_t)1 << 60) + 1, 16},
		{"all ones twice", SIZE_MAX, SIZE_MAX},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *old = mem_text("kept");

		STORY("%s", rows[i].story);
		CHECK(!mem_array(rows[i].count, rows[i].item));
		CHECK(!mem_resize(old, rows[i].count, rows[i].item));
		CHECK_STR(old, "kept"); /* a refused growth leaves the old block to its owner */
		mem_free(old);
	}
	CHECK(!mem_aligned(4096, SIZE_MAX));
	CHECK(!mem_aligned(4096, SIZE_MAX - 4095));
}

TEST(memory_is_as_it_was_asked_for)
{
	uint8_t *zero = mem_zalloc(1000), *array = mem_array(10, 100), *grown = mem_array(1, 3);

	for (int i = 0; i < 1000; i++)
		CHECK(!zero[i] && !array[i]);
	memcpy(grown, "abc", 3);
	grown = mem_resize(grown, 70, 1000);
	CHECK_MEM(grown, "abc", 3);
	memset(grown, 1, 70000);
	mem_free(zero);
	mem_free(array);
	mem_free(grown);
	for (size_t bytes = 1; bytes < 9000; bytes += 1021) {
		uint8_t *p = mem_aligned(4096, bytes);

		CHECK(p && (uintptr_t)p % 4096 == 0);
		memset(p, 1, (bytes + 4095) / 4096 * 4096); /* rounded up: the rest of the last page is ours */
		mem_free(p);
	}
}

TEST(an_array_grows_with_its_items)
{
	uint32_t *items = NULL, *before;
	size_t room = 0, moves = 0;

	for (uint32_t i = 0; i < 100000; i++) {
		before = items;
		CHECK(mem_grow(&items, &room, i + 1, sizeof(*items)));
		CHECK(room > i);
		CHECK_EQ(items[room - 1], 0);
		moves += items != before;
		items[i] = i;
	}
	CHECK(moves <= 12); /* 64 * 2^11 is more than 100,000 */
	for (uint32_t i = 0; i < 100000; i++)
		CHECK_EQ(items[i], i);
	before = items;
	CHECK(!mem_grow(&items, &room, (uint64_t)1 << 62, sizeof(*items)));
	CHECK(!mem_grow(&items, &room, UINT64_MAX, 1));
	CHECK(items == before && room >= 100000);
	mem_free(items);
}

TEST(paths_are_joined)
{
	char *text = mem_text(""), *path = mem_join("a/b", "c"), *empty = mem_join("", "");

	CHECK_STR(text, "");
	CHECK_STR(path, "a/b/c");
	CHECK_STR(empty, "/");
	mem_free(text);
	mem_free(path);
	mem_free(empty);
}

TEST_MAIN()
