/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_many_problems.c - verify tells every problem once, even when they come faster than they are
 * taken
 *
 * A dataset of which every shard but a few is missing is verified with several threads and a
 * callback that dawdles, so that the threads must wait with a problem in hand, in the middle of
 * opening a shard.
 */
#include "shard.h"
#include "shard_pack.h"
#include "tests/fault/story.h"

#define SHARDS 150u

static char dir[4096];

static void write_tiny(uint64_t i)
{
	struct shard_writer_options o = {.size = sizeof(o), .planned_records = 1, .plan_shard = i, .skip_read_back = 1};
	struct shard_schema s = {.group_count = 1, .field_count = 1, .field[0] = {.name = "label", .dtype = SHARD_I64}};
	const void *group[1] = {&i};
	struct shard_writer *w = NULL;
	struct shard_written written;
	char path[8192];

	CHECK_EQ(shard_schema_lay_out(&s, 0, NULL), SHARD_OK);
	snprintf(path, sizeof(path), "%s/%05u.shard", dir, (unsigned)i);
	CHECK_EQ(shard_writer_open(&w, path, &s, &o, NULL), SHARD_OK);
	CHECK_EQ(shard_writer_append(w, group, NULL, 0, NULL), SHARD_OK);
	CHECK_EQ(shard_writer_finish(w, &written, NULL), SHARD_OK);
	shard_writer_close(w);
}

struct heard {
	unsigned count, of_shard[SHARDS];
};

static void on_problem(void *context, const struct shard_error *problem)
{
	struct heard *h = context;
	const char *name = strstr(problem->message, ".shard");

	usleep(500);
	h->count++;
	if (name && atoi(name - 5) < (int)SHARDS)
		h->of_shard[atoi(name - 5)]++;
}

TEST(every_missing_shard_is_told_once)
{
	struct shard_dataset *ds;
	struct shard_error err;
	char path[8192];

	story_folder(dir, "many");
	for (uint64_t i = 0; i < SHARDS; i++)
		write_tiny(i);
	CHECK_EQ(story_seal(dir, NULL, SHARDS, &err), SHARD_OK);
	for (unsigned i = 0; i < SHARDS; i++) {
		snprintf(path, sizeof(path), "%s/%05u.shard", dir, i);
		if (i % 10 != 5)
			CHECK_EQ(unlink(path), 0);
	}
	for (uint32_t threads = 1; threads <= 8; threads *= 2) {
		struct heard h = {0, {0}};
		struct shard_verify_options o = {
			.size = sizeof(o), .thread_count = threads, .context = &h, .problem = on_problem};
		struct shard_verify_report report;

		STORY("%u threads", threads);
		CHECK_EQ(shard_dataset_open(&ds, dir, NULL, &err), SHARD_OK);
		CHECK_EQ(shard_dataset_verify(ds, &o, &report, &err), SHARD_E_MISMATCH);
		shard_dataset_close(ds);
		for (unsigned i = 0; i < SHARDS; i++)
			CHECK_EQ(h.of_shard[i], i % 10 != 5);
		CHECK_EQ(report.problem_count, h.count);
		CHECK_EQ(report.shard_count, SHARDS / 10);
		CHECK_EQ(report.record_count, SHARDS / 10);
	}
	printf("%u problems told once each, with 1 to 8 threads\n", SHARDS - SHARDS / 10);
}

TEST_MAIN()
