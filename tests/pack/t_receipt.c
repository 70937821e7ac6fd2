/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_receipt.c - which inputs vanished for one of two builds of a shard, as their receipts say
 */
#include "tools/shardpack/build/receipt.h"

#include "shard_pack.h"
#include "tests/test.h"

#define NONE UINT64_MAX

/* "3 v5": input 3 is damaged, 5 vanished. */
static void fill(struct receipt *r, const char *inputs)
{
	for (char *end; *inputs; inputs = end + (*end == ' ')) {
		bool gone = *inputs == 'v';
		struct shard_miss miss = {.ordinal = strtoull(inputs + gone, &end, 10),
					  .reason = gone ? SHARD_MISS_VANISHED : SHARD_MISS_DAMAGED,
					  .how = SHARD_SKIPPED};

		receipt_add_miss(&r->lines, &miss, "a message");
	}
	receipt_add_accepted(&r->lines, 99, SHARD_MISS_TRUNCATED, "vanished");
}

TEST(only_what_vanished_for_one_is_a_difference)
{
	static const struct {
		const char *story, *ours, *theirs;
		uint64_t want;
	} rows[] = {
		{"none did", "1 2", "2", NONE},
		{"one did, for this build", "1 v4", "1", 4},
		{"one did, for the other build", "1", "1 v4", NONE},
		{"the same did, so other bytes have another cause", "v4 5", "v4 6", NONE},
		{"the same did, and a later one", "v4 v7", "v4", 7},
		{"the same did, and an earlier one", "v2 v4", "v4 v9", 2},
		{"what is damaged here vanished there", "4", "v4", NONE},
		{"what is damaged there vanished here", "v4", "4", 4},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct receipt ours = {0}, theirs = {0};
		uint64_t ordinal = NONE;

		STORY("%s", rows[i].story);
		fill(&ours, rows[i].ours);
		fill(&theirs, rows[i].theirs);
		CHECK_EQ(receipt_vanished(&ours, &theirs, &ordinal), rows[i].want != NONE);
		if (rows[i].want != NONE)
			CHECK_EQ(ordinal, rows[i].want);
		receipt_free(&ours);
		receipt_free(&theirs);
	}
}

TEST_MAIN()
