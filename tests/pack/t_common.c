/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_common.c - arrays that grow, and hashes in text
 */
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/shelf.h"
#include "tools/common/text.h"

TEST(an_array_grows_with_its_items)
{
	uint32_t *items = NULL, *before;
	uint64_t capacity = 0;
	size_t moves = 0;

	for (uint32_t i = 0; i < 100000; i++) {
		before = items;
		CHECK(grow(&items, &capacity, i + 1, sizeof(*items)));
		CHECK(capacity > i);
		moves += items != before;
		items[i] = i;
	}
	CHECK(moves <= 12); /* 64 * 2^11 is more than 100,000 */
	for (uint32_t i = 0; i < 100000; i++)
		CHECK_EQ(items[i], i);
	before = items;
	CHECK(!grow(&items, &capacity, UINT64_C(1) << 62, sizeof(*items)));
	CHECK(!grow(&items, &capacity, UINT64_MAX, 1));
	CHECK(items == before && capacity >= 100000);
	free(items);
}

TEST(a_hash_is_as_long_as_it_must_be)
{
	/* What is behind the shorter text is none of its bytes; the sanitizer looks at the copy. */
	static const char digits[] = "00ff7a";
	uint8_t out[4] = {0};

	for (size_t bytes = 0; bytes <= 6; bytes++) {
		char *in = malloc(bytes + !bytes);

		memcpy(in, digits, bytes);
		CHECK_EQ(text_unhex(in, bytes, out, 3), bytes == 6);
		free(in);
	}
	CHECK(out[0] == 0 && out[1] == 0xff && out[2] == 0x7a);
	CHECK(!text_unhex("00ff7a", 6, out, 2));
	CHECK(!text_unhex("00ff7a00", 8, out, 3));
}

TEST_MAIN()
