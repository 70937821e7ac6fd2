/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_finish_two.c - two shards that are finished together are those that are finished alone, and
 * each succeeds or fails by itself
 */
#include "shard_pack.h"
#include "tests/store/fixture.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct shard_writer *begin(const char *path, const struct shard_schema *s, uint64_t first, uint64_t count,
				  bool skip_read_back)
{
	struct shard_writer_options o = {
		.size = sizeof(o), .planned_records = count, .plan_shard = first, .skip_read_back = skip_read_back};
	struct shard_writer *w;
	uint8_t *record[2];

	for (int g = 0; g < 2; g++)
		record[g] = malloc((size_t)s->group[g].record_bytes);
	CHECK_OK(shard_writer_open(&w, path, s, &o, &fixture_err));
	for (uint64_t i = first; i < first + count; i++) {
		const void *group[2] = {record[0], record[1]};

		photo_record(s, 0, i, record[0]);
		photo_record(s, 1, i, record[1]);
		CHECK_OK(shard_writer_append(w, group, NULL, 0, &fixture_err));
	}
	free(record[0]);
	free(record[1]);
	return w;
}

static void check_same(const char *a, const char *b)
{
	size_t a_bytes, b_bytes;
	uint8_t *x = file_bytes(a, &a_bytes), *y = file_bytes(b, &b_bytes);

	CHECK_EQ(a_bytes, b_bytes);
	CHECK_MEM(x, y, a_bytes);
	free(x);
	free(y);
}

static const struct {
	const char *story;
	uint32_t side, codec;
	uint64_t records[2];
	bool skip_read_back;
} rows[] = {
	{"of equal size", 64, SHARD_RAW, {100, 100}, false},
	{"the second far shorter", 224, SHARD_RAW, {150, 3}, false},
	{"the first far shorter, one piece of it", 224, SHARD_RAW, {1, 130}, false},
	{"compressed, so that pieces are of all sizes", 64, SHARD_LZ4, {500, 321}, false},
	{"not read back", 64, SHARD_RAW, {100, 90}, true},
};

TEST(two_together_are_two_alone)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_schema schema = photo_schema(rows[i].side, rows[i].codec);
		struct path alone[2], together[2];
		struct shard_written want[2], is[2];
		struct shard_writer *w[2];
		struct shard_error err[2];

		STORY("%s", rows[i].story);
		for (int k = 0; k < 2; k++) {
			tmp(&alone[k], "t_two.%d.alone%d", (int)getpid(), k);
			tmp(&together[k], "t_two.%d.both%d", (int)getpid(), k);
			unlink(alone[k].text);
			unlink(together[k].text);
			w[k] = begin(alone[k].text, &schema, 1000 * (uint64_t)k, rows[i].records[k], false);
			CHECK_OK(shard_writer_finish(w[k], &want[k], &fixture_err));
			shard_writer_close(w[k]);
		}
		for (int k = 0; k < 2; k++)
			w[k] = begin(together[k].text, &schema, 1000 * (uint64_t)k, rows[i].records[k],
				     rows[i].skip_read_back);
		CHECK_EQ(shard_writer_finish_two(w, is, err), SHARD_OK);
		for (int k = 0; k < 2; k++) {
			CHECK_EQ(err[k].status, SHARD_OK);
			check_same(alone[k].text, together[k].text);
			CHECK_MEM(is[k].sha256, want[k].sha256, 32);
			CHECK_MEM(is[k].root, want[k].root, 16);
			CHECK_EQ(is[k].file_bytes, want[k].file_bytes);
			shard_writer_close(w[k]);
			unlink(alone[k].text);
			unlink(together[k].text);
		}
	}
}

TEST(the_same_shards_may_be_there)
{
	struct shard_schema schema = photo_schema(32, SHARD_RAW);
	struct path p[2];

	for (int k = 0; k < 2; k++) {
		tmp(&p[k], "t_two.%d.there%d", (int)getpid(), k);
		unlink(p[k].text);
	}
	for (int turn = 0; turn < 2; turn++) {
		struct shard_written is[2];
		struct shard_writer *w[2];
		struct shard_error err[2];

		STORY(turn ? "again" : "first");
		for (int k = 0; k < 2; k++)
			w[k] = begin(p[k].text, &schema, 7 * (uint64_t)k, 20, false);
		CHECK_EQ(shard_writer_finish_two(w, is, err), SHARD_OK);
		for (int k = 0; k < 2; k++) {
			CHECK_EQ(err[k].status, SHARD_OK);
			CHECK_EQ(is[k].already, turn);
			shard_writer_close(w[k]);
		}
	}
	for (int k = 0; k < 2; k++)
		unlink(p[k].text);
}

TEST(each_fails_by_itself)
{
	struct shard_schema schema = photo_schema(32, SHARD_RAW);

	for (int bad = 0; bad < 2; bad++) {
		struct shard_writer *w[2];
		struct shard_error err[2];
		struct path p[2];

		STORY("the name of shard %d is taken", bad);
		for (int k = 0; k < 2; k++) {
			tmp(&p[k], "t_two.%d.fails%d", (int)getpid(), k);
			unlink(p[k].text);
			w[k] = begin(p[k].text, &schema, 0, 20, false);
		}
		file_make(p[bad].text, "no shard", 8);
		CHECK_EQ(shard_writer_finish_two(w, NULL, err), SHARD_E_EXISTS);
		CHECK_EQ(err[bad].status, SHARD_E_EXISTS);
		CHECK_EQ(err[!bad].status, SHARD_OK);
		CHECK_EQ(access(p[!bad].text, F_OK), 0);
		/* Both are done with: nothing can follow. */
		CHECK_EQ(shard_writer_finish_two(w, NULL, err), SHARD_E_ARGUMENT);
		CHECK(err[0].status == SHARD_E_ARGUMENT && err[1].status == SHARD_E_ARGUMENT);
		for (int k = 0; k < 2; k++) {
			shard_writer_close(w[k]);
			unlink(p[k].text);
		}
	}
}

TEST_MAIN()
