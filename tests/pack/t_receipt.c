/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_receipt.c - what became of inputs in two builds of a shard, as their receipts say
 */
#include "tools/shardpack/receipt/receipt.h"

#include "shard_pack.h"
#include "tests/test.h"

#define NONE UINT64_MAX

/* "3 v5 e6 a7": input 3 is damaged, 5 vanished, 6 is empty, 7 is damaged and accepted. */
static void fill(struct receipt *r, const char *inputs)
{
	for (char *end; *inputs; inputs = end + (*end == ' ')) {
		char kind = strchr("vea", *inputs) ? *inputs++ : '\0';
		struct shard_miss miss = {.ordinal = strtoull(inputs, &end, 10),
					  .reason = kind == 'v'	  ? SHARD_MISS_VANISHED
						    : kind == 'e' ? SHARD_MISS_EMPTY
								  : SHARD_MISS_DAMAGED,
					  .how = SHARD_SKIPPED};

		if (kind == 'a')
			receipt_add_record(&r->lines, miss.ordinal, SHARD_MISS_DAMAGED, PROBLEM_ACCEPTED, "a message");
		else
			receipt_add_miss(&r->lines, &miss, "a message");
	}
	receipt_add_record(&r->lines, 99, SHARD_MISS_TRUNCATED, PROBLEM_ACCEPTED, "vanished");
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

TEST(all_but_what_vanished_must_agree)
{
	static const struct {
		const char *story, *ours, *theirs;
		bool want;
	} rows[] = {
		{"nothing is bad", "", "", true},
		{"one vanished, for this build", "1 v4", "1", true},
		{"one vanished, for the other build", "1", "1 v4", true},
		{"another one is damaged for this build alone", "1 v4 6", "1", false},
		{"another one is damaged for the other build alone", "1 v4", "1 6", false},
		{"another one is bad for another reason", "v4 6", "e6", false},
		{"what is damaged here vanished there", "4", "v4", true},
		{"another one was accepted by this build alone", "v4 a6", "", false},
		{"what was accepted here vanished there", "a2 a6", "v2 a6", true},
		{"misses come first in a receipt that was made again", "a2 v4 6", "6 a2", true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct receipt ours = {0}, theirs = {0};

		STORY("%s", rows[i].story);
		fill(&ours, rows[i].ours);
		fill(&theirs, rows[i].theirs);
		CHECK_EQ(receipt_agrees(&ours, &theirs), rows[i].want);
		CHECK_EQ(receipt_agrees(&theirs, &ours), rows[i].want);
		receipt_free(&ours);
		receipt_free(&theirs);
	}
}

TEST_MAIN()
