/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_spool.c - what goes in comes out, in memory and beyond it
 */
#include "libshard/write/write.h"

#include "tests/store/fixture.h"

struct player {
	struct prng want;
	uint64_t bytes;
	unsigned pieces, stop_at;
	size_t smallest_but_last, last;
};

static int on_bytes(void *context, const uint8_t *data, size_t bytes, struct shard_error *err)
{
	struct player *p = context;

	(void)err;
	for (size_t i = 0; i < bytes; i++)
		if (data[i] != (uint8_t)(prng_next(&p->want) >> 40))
			return SHARD_E_CORRUPT;
	if (p->pieces && (!p->smallest_but_last || p->last < p->smallest_but_last))
		p->smallest_but_last = p->last;
	p->last = bytes;
	p->bytes += bytes;
	return ++p->pieces == p->stop_at ? SHARD_E_CANCELLED : SHARD_OK;
}

static const struct {
	const char *story;
	uint64_t bytes;
	size_t step;
	bool spilled;
} rows[] = {
	{"nothing", 0, 1, false},
	{"a byte", 1, 1, false},
	{"just what fits the first buffer", 4096, 8, false},
	{"a little more", 4097, 8, false},
	{"some growth, odd steps", 300000, 777, false},
	{"all that memory may hold, less one", (4u << 20) - 1, 65521, false},
	{"all that memory may hold", 4u << 20, 4096, true},
	{"one more", (4u << 20) + 1, 100000, true},
	{"three times that and something", 3 * (4u << 20) + 12345, 32, true},
	{"larger pieces than the buffer", 20000000, 9000001, true},
};

TEST(what_goes_in_comes_out)
{
	struct path beside;

	tmp(&beside, "beside");
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct player player = {.want = {i}};
		struct spool s = SPOOL_EMPTY;
		struct prng p = {i};
		uint8_t *piece = malloc(rows[i].step);

		STORY("%s", rows[i].story);
		for (uint64_t done = 0; done < rows[i].bytes;) {
			size_t n = rows[i].bytes - done < rows[i].step ? (size_t)(rows[i].bytes - done) : rows[i].step;

			prng_fill(&p, piece, n);
			CHECK_OK(spool_add(&s, piece, n, beside.text, &fixture_err));
			done += n;
			CHECK_EQ(spool_bytes(&s), done);
		}
		free(piece);
		CHECK_EQ(s.fd >= 0, rows[i].spilled);
		CHECK(s.room <= 4u << 20);
		CHECK_OK(spool_play(&s, on_bytes, &player, beside.text, &fixture_err));
		CHECK_EQ(player.bytes, rows[i].bytes);
		CHECK_EQ(player.smallest_but_last % 4096, 0); /* entries of tables are not cut */
		CHECK_EQ(spool_bytes(&s), rows[i].bytes);
		/* and once more, until the player has enough */
		player = (struct player){.want = {i}, .stop_at = 1};
		CHECK_EQ(spool_play(&s, on_bytes, &player, beside.text, NULL),
			 rows[i].bytes ? SHARD_E_CANCELLED : SHARD_OK);
		spool_free(&s);
		CHECK_EQ(spool_bytes(&s), 0);
	}
}

TEST(where_no_file_can_be_made_it_says_so)
{
	static uint8_t data[4u << 20];
	struct spool s = SPOOL_EMPTY;
	struct shard_error err;
	struct path p;

	tmp(&p, "no such folder/x");
	CHECK_OK(spool_add(&s, data, sizeof(data) - 1, p.text, &fixture_err));
	CHECK_EQ(spool_add(&s, data, 1, p.text, &err), SHARD_E_IO);
	CHECK(strstr(err.message, "no such folder/x"));
	spool_free(&s);
	spool_free(&s);
}

TEST_MAIN()
