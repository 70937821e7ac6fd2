/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_summary.c - a loader's counters as one line for a log
 */
#include <locale.h>

#include "tests/load/batches.h"

#define SECOND UINT64_C(1000000000)

static const struct {
	const char *story;
	struct shard_loader_stats now, before;
	const char *says;
} rows[] = {
	{"the line of shard.h and docs/TRAINING.md",
	 {.batch_count = 5000,
	  .record_count = 1023000,
	  .bytes = UINT64_C(154000000000),
	  .elapsed_ns = 15 * SECOND,
	  .next_wait_ns = SECOND * 39 / 1000},
	 {.batch_count = 1000,
	  .record_count = 200000,
	  .bytes = UINT64_C(30000000000),
	  .elapsed_ns = 5 * SECOND,
	  .next_wait_ns = SECOND * 9 / 1000},
	 "4000 batches in 10.0 s, 82300.0 records/s, 12400.0 MB/s; next waited 0.3 % of the time"},
	{"since open, and rounded",
	 {.batch_count = 3,
	  .record_count = 30,
	  .bytes = 3999999,
	  .elapsed_ns = 40 * SECOND - 1,
	  .next_wait_ns = 39 * SECOND},
	 {0},
	 "3 batches in 40.0 s, 0.8 records/s, 0.1 MB/s; next waited 97.5 % of the time"},
	{"a wait that began before the first look",
	 {.batch_count = 1, .record_count = 8, .bytes = 8000000, .elapsed_ns = SECOND, .next_wait_ns = 2 * SECOND},
	 {0},
	 "1 batch in 1.0 s, 8.0 records/s, 8.0 MB/s; next waited 100.0 % of the time"},
	{"nothing happened yet", {0}, {0}, "no batch was taken"},
	{"nothing happened since",
	 {.batch_count = 7, .elapsed_ns = 9},
	 {.batch_count = 7, .elapsed_ns = 5},
	 "no batch was taken"},
	{"counters of another loader",
	 {.batch_count = 7, .elapsed_ns = 9},
	 {.batch_count = 9, .elapsed_ns = 5},
	 "no batch was taken"},
};

static void check_lines(void)
{
	char text[SHARD_SUMMARY_BYTES + 1];

	for (size_t i = 0; i < COUNT(rows); i++) {
		STORY("%s", rows[i].story);
		memset(text, 'x', sizeof(text));
		shard_stats_summary(&rows[i].now, rows[i].before.batch_count ? &rows[i].before : NULL, text);
		CHECK_STR(text, rows[i].says);
		CHECK_EQ(text[SHARD_SUMMARY_BYTES], 'x');
	}
}

/* A machine without that locale runs the same twice. */
TEST(lines_are_the_same_in_each_locale)
{
	check_lines();
	setlocale(LC_ALL, "de_DE.UTF-8");
	check_lines();
	setlocale(LC_ALL, "C");
}

TEST(no_number_is_too_long)
{
	char text[SHARD_SUMMARY_BYTES + 1];
	struct shard_loader_stats most;

	memset(&most, 0xff, sizeof(most));
	for (most.elapsed_ns = 1; most.elapsed_ns < UINT64_MAX / 10; most.elapsed_ns *= 10) {
		memset(text, 'x', sizeof(text));
		shard_stats_summary(&most, NULL, text);
		CHECK(strlen(text) < SHARD_SUMMARY_BYTES - 1); /* not even cut */
		CHECK(strstr(text, "; next waited 100.0 % of the time"));
		CHECK_EQ(text[SHARD_SUMMARY_BYTES], 'x');
	}
}

TEST_MAIN()
