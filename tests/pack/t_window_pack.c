/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_window_pack.c - packing by lengths, compared with best fit decreasing as one writes it down:
 * one piece after the other, and a look at every window for each
 */
#include "tests/test.h"
#include "tools/shardpack/plan/plan.h"

#define ROOM_MAX   300
#define PIECES_MAX 3000

static uint64_t state;

static uint32_t draw(uint32_t below)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)((state >> 33) % below);
}

/* How many windows end with each room, by the plain way. */
static uint32_t plain(const uint64_t *count, uint32_t room, uint32_t *ends)
{
	static uint32_t left[PIECES_MAX];
	uint32_t windows = 0;

	for (uint32_t length = room; length; length--)
		for (uint64_t k = 0; k < count[length]; k++) {
			uint32_t best = windows;

			for (uint32_t w = 0; w < windows; w++)
				if (left[w] >= length && (best == windows || left[w] < left[best]))
					best = w;
			if (best == windows)
				left[windows++] = room;
			left[best] -= length;
		}
	memset(ends, 0, (ROOM_MAX + 1) * sizeof(*ends));
	for (uint32_t w = 0; w < windows; w++)
		ends[left[w]]++;
	return windows;
}

/* Each piece is in one window, with its length, and no window is too full. */
static void check_windows(const struct window_pack *p, const uint64_t *count, uint32_t room, uint32_t *ends)
{
	static bool seen[PIECES_MAX];
	struct window_piece *piece = calloc(p->piece_max + 1, sizeof(*piece));
	uint64_t total = 0, most = 0;

	CHECK(piece);
	memset(seen, 0, sizeof(seen));
	memset(ends, 0, (ROOM_MAX + 1) * sizeof(*ends));
	for (uint64_t w = 0; w < p->window_count; w++) {
		uint32_t n = window_pack_pieces(p, w, piece), sum = 0;

		CHECK(n && n <= p->piece_max);
		most = n > most ? n : most;
		for (uint32_t i = 0; i < n; i++) {
			uint64_t first = 0;

			for (uint32_t length = room; length > piece[i].length; length--)
				first += count[length];
			CHECK(piece[i].place >= first && piece[i].place < first + count[piece[i].length]);
			CHECK(!i || piece[i].length <= piece[i - 1].length);
			CHECK(!seen[piece[i].place]);
			seen[piece[i].place] = true;
			sum += piece[i].length;
			total++;
		}
		CHECK(sum <= room);
		ends[room - sum]++;
	}
	for (uint32_t length = 1; length <= room; length++)
		total -= count[length];
	CHECK_EQ(total, 0);
	CHECK_EQ(most, p->piece_max);
	free(piece);
}

static void compare_within(const uint64_t *count, uint32_t room, uint32_t most)
{
	static uint32_t want[ROOM_MAX + 1], got[ROOM_MAX + 1];
	struct window_pack p = {0};

	CHECK(window_pack_make(&p, count, room, most));
	CHECK_EQ(p.window_count, plain(count, room, want));
	check_windows(&p, count, room, got);
	CHECK(!memcmp(want, got, sizeof(want)));
	window_pack_free(&p);
}

/* No window has more than `most` pieces.  A limit that no window reaches changes nothing. */
static void compare(const uint64_t *count, uint32_t room)
{
	static uint32_t ends[ROOM_MAX + 1];
	uint64_t pieces = 0;
	uint32_t reached;
	struct window_pack p = {0};

	for (uint32_t length = 1; length <= room; length++)
		pieces += count[length];
	compare_within(count, room, UINT32_MAX);
	CHECK(window_pack_make(&p, count, room, UINT32_MAX));
	reached = p.piece_max;
	window_pack_free(&p);
	compare_within(count, room, reached);
	for (uint32_t most = 1; most < reached; most += 1 + most / 3) {
		CHECK(window_pack_make(&p, count, room, most));
		check_windows(&p, count, room, ends);
		CHECK_EQ(p.piece_max, most);
		CHECK(p.window_count >= (pieces + most - 1) / most);
		CHECK(most > 1 || p.window_count == pieces);
		window_pack_free(&p);
	}
}

static const struct {
	const char *story;
	uint32_t room;
	struct {
		uint32_t length, count;
	} of[6];
} rows[] = {
	{"one piece", 10, {{7, 1}}},
	{"one piece fills the window", 10, {{10, 1}}},
	{"many windows that are full at once", 10, {{10, 500}}},
	{"three in each, and two left over", 10, {{3, 302}}},
	{"pieces of one token", 64, {{1, 129}}},
	{"the fullest window that has room is not the first", 10, {{7, 1}, {6, 1}, {4, 1}, {3, 1}}},
	{"room of one length is split among the next", 10, {{6, 5}, {2, 13}}},
	{"a window of two words of bits", 130, {{129, 1}, {66, 3}, {64, 3}, {1, 4}}},
	{"the room is a multiple of 64", 128, {{65, 2}, {63, 3}, {128, 1}}},
};

TEST(packs_as_one_piece_after_the_other)
{
	uint64_t count[ROOM_MAX + 1];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		STORY("%s", rows[i].story);
		memset(count, 0, sizeof(count));
		for (size_t k = 0; k < 6; k++)
			count[rows[i].of[k].length] += rows[i].of[k].count;
		count[0] = 0;
		compare(count, rows[i].room);
	}
}

TEST(packs_any_lengths_as_one_piece_after_the_other)
{
	uint64_t count[ROOM_MAX + 1];

	for (uint32_t i = 0; i < 300; i++) {
		uint32_t room = 2 + draw(ROOM_MAX - 1), pieces = 1 + draw(i < 250 ? 300 : PIECES_MAX - 1);
		uint32_t longest = 1 + draw(room), grain = 1 + draw(9);

		STORY("number %u: room %u, %u pieces", i, room, pieces);
		memset(count, 0, sizeof(count));
		for (uint32_t k = 0; k < pieces; k++) {
			uint32_t length = 1 + draw(longest) / grain * grain;

			count[length < room ? length : room]++;
		}
		compare(count, room);
	}
}

TEST(no_pieces_are_no_windows)
{
	uint64_t count[ROOM_MAX + 1] = {0};
	struct window_pack p = {0};

	CHECK(window_pack_make(&p, count, ROOM_MAX, UINT32_MAX));
	CHECK_EQ(p.window_count, 0);
	window_pack_free(&p);
}

TEST(memory_does_not_follow_the_number_of_pieces)
{
	static uint64_t count[4098];
	struct window_pack small = {0}, large = {0};
	struct window_piece *piece;
	uint64_t sum = 0;

	for (uint32_t length = 2; length < 4098; length++)
		count[length] = 1 + draw(1000);
	CHECK(window_pack_make(&small, count, 4097, UINT32_MAX));
	for (uint32_t length = 2; length < 4098; length++)
		count[length] *= 1000000;
	CHECK(window_pack_make(&large, count, 4097, UINT32_MAX));
	CHECK(large.window_count > 900000 * small.window_count);
	CHECK(large.step_count < 2 * 4097 * 20 && large.range_count < 2 * 4097 + 1);
	/* The last window of two thousand million. */
	piece = calloc(large.piece_max, sizeof(*piece));
	CHECK(piece);
	for (uint32_t n = window_pack_pieces(&large, large.window_count - 1, piece), i = 0; i < n; i++)
		sum += piece[i].length;
	CHECK(sum && sum <= 4097);
	free(piece);
	window_pack_free(&small);
	window_pack_free(&large);
}

static const struct {
	const char *story;
	uint64_t count;
	uint64_t pieces;
	uint32_t last;
} cuts[] = {
	{"none", 0, 0, 0},
	{"one has nothing to predict", 1, 0, 0},
	{"two", 2, 1, 2},
	{"fills a window", 11, 1, 11},
	{"one token more begins with the last of the window before", 12, 2, 2},
	{"two windows that share one token", 21, 2, 11},
	{"and one more", 22, 3, 2},
	{"2^50", UINT64_C(1) << 50, ((UINT64_C(1) << 50) - 1 + 9) / 10, 4},
};

TEST(documents_are_cut_so_that_each_token_is_predicted_once)
{
	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		uint32_t last;
		uint64_t pieces = token_pack_pieces(cuts[i].count, 11, &last);

		STORY("%s", cuts[i].story);
		CHECK_EQ(pieces, cuts[i].pieces);
		if (pieces)
			CHECK_EQ(last, cuts[i].last);
		/* Each piece predicts all its tokens but the first. */
		if (pieces)
			CHECK_EQ((pieces - 1) * 10 + last - 1, cuts[i].count - 1);
	}
}

TEST_MAIN()
