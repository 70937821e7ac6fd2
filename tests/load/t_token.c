/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_token.c - a token brings a job back to its place: in another shape, in the same order, or not
 * at all
 *
 * What comes after resume is compared with the order at world 1, byte for byte.  A token that is
 * read carelessly, one that loses its position and one that loses its windows must be noticed.
 *
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=token_read
 * TIMEOUT: 300
 */
#include "libshard/format/format.h"
#include "libshard/loader/loader.h"
#include "tests/load/inject.h"

static const uint64_t sizes[] = {40, 1, 0, 62};
static struct wanted wanted;

/* The kinds of order; the last two are no defaults. */
static const struct shard_loader_options kinds[] = {
	{.order.shuffle = SHARD_SEQUENTIAL},
	{.order.shuffle = SHARD_SHUFFLE_GLOBAL},
	{.order.shuffle = SHARD_SHUFFLE_WINDOWS},
	{.order.shuffle = SHARD_SHUFFLE_WINDOWS,
	 .order.run_records = 5,
	 .order.window_runs = 2,
	 .order.lane_count = 3,
	 .order.phase_unit_records = 2},
	{.order.shuffle = SHARD_SHUFFLE_WINDOWS,
	 .order.run_records = 1,
	 .order.window_runs = 7,
	 .order.lane_count = 1,
	 .order.phase_unit_records = 9},
};

/* ---- broken twins ---- */

static enum { READS, READS_ANYTHING, LOSES_POSITION, LOSES_WINDOWS } reading;

bool __real_token_read(const char *text, struct token *t);
bool __wrap_token_read(const char *text, struct token *t);

bool __wrap_token_read(const char *text, struct token *t)
{
	bool good = __real_token_read(text, t);

	if (reading == LOSES_POSITION)
		t->position++;
	if (reading == LOSES_WINDOWS && t->params.kind == ORDER_TWO_LEVELS)
		t->params.lane_count++;
	return good || (reading == READS_ANYTHING && !strncmp(text, "shuffle-v1 ", 11) &&
			t->params.record_count == record_total);
}

/* ---- helpers ---- */

static struct shard_loader_options of_kind(size_t kind, uint32_t batch_records, uint64_t seed)
{
	struct shard_loader_options o = kinds[kind];

	o.size = sizeof(o);
	o.batch_records = batch_records;
	o.order.seed = seed;
	return o;
}

/* A token of this order, at this place. */
static void token_of(struct shard_loader_options o, uint64_t epoch, uint64_t position, char token[SHARD_TOKEN_BYTES])
{
	struct shard_loader *l;

	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	CHECK_OK(shard_loader_seek(l, epoch, position, &fixture_err));
	shard_loader_token(l, token);
	shard_loader_close(l);
}

/* Make a whole token of a text that ends before " check". */
static void seal(char *text)
{
	size_t used = strlen(text);

	snprintf(text + used, SHARD_TOKEN_BYTES - used, " check %016" PRIx64, checksum64(text, used));
}

/* ---- the text ---- */

TEST(a_token_is_this_text)
{
	struct shard_dataset_info info;
	char want[SHARD_TOKEN_BYTES], token[SHARD_TOKEN_BYTES];

	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	shard_dataset_info(ds, &info);
	token_of(of_kind(1, 5, 77), 3, 20, token);
	snprintf(want, sizeof(want),
		 "shuffle-v1 one_level N 103 r 0 w 0 L 0 u 0 seed 77 epoch 3 position 20 dataset %s subset all",
		 info.id);
	seal(want);
	CHECK_STR(token, want);
	token_of(of_kind(3, 5, UINT64_MAX), UINT64_MAX, 103, token);
	snprintf(want, sizeof(want),
		 "shuffle-v1 two_levels N 103 r 5 w 2 L 3 u 2 seed 18446744073709551615 epoch 0 position 0 dataset %s "
		 "subset all",
		 /*
		  * at the end of an epoch a token is of the next one, and behind the last one is
		  * the first
		  */
		 info.id);
	seal(want);
	CHECK_STR(token, want);
	for (const char *c = token; *c; c++)
		CHECK(*c >= ' ' && *c <= '~');
}

/* How many texts that differ from the token a little are taken for tokens. */
static unsigned taken(struct shard_loader *l, const char *token)
{
	char text[SHARD_TOKEN_BYTES + 8];
	size_t bytes = strlen(token);
	unsigned count = 0;

	for (size_t i = 0; i < bytes; i++)
		for (unsigned c = 0; c < 256; c += i % 8 ? 1 : 5) {
			memcpy(text, token, bytes + 1);
			text[i] = (char)c;
			count += (char)c != token[i] && shard_loader_resume(l, text, NULL) != SHARD_E_ARGUMENT;
		}
	for (size_t i = 0; i < bytes; i++) { /* cut, doubled, left out, swapped */
		memcpy(text, token, i);
		text[i] = 0;
		count += shard_loader_resume(l, text, NULL) != SHARD_E_ARGUMENT;
		snprintf(text, sizeof(text), "%.*s%s", (int)i + 1, token, token + i);
		count += shard_loader_resume(l, text, NULL) != SHARD_E_ARGUMENT;
		snprintf(text, sizeof(text), "%.*s%s", (int)i, token, token + i + 1);
		count += shard_loader_resume(l, text, NULL) != SHARD_E_ARGUMENT;
	}
	for (unsigned c = 1; c < 256; c++) {
		snprintf(text, sizeof(text), "%s%c", token, (char)c);
		count += shard_loader_resume(l, text, NULL) != SHARD_E_ARGUMENT;
		snprintf(text, sizeof(text), "%c%s", (char)c, token);
		count += shard_loader_resume(l, text, NULL) != SHARD_E_ARGUMENT;
	}
	return count;
}

TEST(a_changed_token_is_none)
{
	char token[SHARD_TOKEN_BYTES];
	struct shard_loader *l;

	inject_nothing();
	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	wanted_open(&wanted, of_kind(3, 5, 7));
	l = loader_of(&wanted);
	token_of(of_kind(3, 5, 7), 1, 35, token);
	CHECK_OK(shard_loader_resume(l, token, &fixture_err));
	CHECK_EQ(taken(l, token), 0);
	snprintf(strstr(token, " check"), 32, " pixels pillow-12");
	seal(token);
	CHECK_OK(shard_loader_resume(l, token, &fixture_err));
	CHECK_EQ(taken(l, token), 0);
	reading = READS_ANYTHING;
	CHECK(taken(l, token) > 100);
	reading = READS;
	close_loader(l);
}

/* Well sealed, and wrong all the same: what a token says is checked as a file's numbers are. */
TEST(sealed_nonsense_is_refused)
{
	static const struct {
		const char *text;
		int want;
	} rows[] = {
		{"shuffle-v1 two_levels N 103 r 5 w 2 L 3 u 2 seed 7 epoch 1 position 35", SHARD_OK},
		{"shuffle-v1 two_levels N 103 r 5 w 2 L 3 u 2 seed 7 epoch 1 position 103", SHARD_OK},
		{"shuffle-v1 two_levels N 103 r 5 w 2 L 3 u 2 seed 7 epoch 18446744073709551615 position 35", SHARD_OK},
		{"shuffle-v1 two_levels N 103 r 5 w 2 L 3 u 2 seed 7 epoch 1 position 104", SHARD_E_ARGUMENT},
		{"shuffle-v1 two_levels N 103 r 5 w 2 L 3 u 2 seed 7 epoch 1 position 18446744073709551615",
		 SHARD_E_ARGUMENT},
		/* 2^64 + 35 */
		{"shuffle-v1 two_levels N 103 r 5 w 2 L 3 u 2 seed 7 epoch 1 position 18446744073709551651",
		 SHARD_E_ARGUMENT},
		{"shuffle-v1 two_levels N 103 r 5 w 2 L 3 u 2 seed 7 epoch 1 position 035", SHARD_E_ARGUMENT},
		{"shuffle-v1 two_levels N 103 r 5 w 2 L 3 u 2 seed 7 epoch 1 position +35", SHARD_E_ARGUMENT},
		{"shuffle-v1 two_levels N 103 r 5 w 2 L 3 u 2 seed 7 epoch 1  position 35", SHARD_E_ARGUMENT},
		/* 2^32 + 2 */
		{"shuffle-v1 two_levels N 103 r 5 w 4294967298 L 3 u 2 seed 7 epoch 1 position 35", SHARD_E_ARGUMENT},
		{"shuffle-v1 two_levels N 103 r 0 w 2 L 3 u 2 seed 7 epoch 1 position 35", SHARD_E_ARGUMENT},
		{"shuffle-v1 two_levels N 103 r 5 w 0 L 3 u 2 seed 7 epoch 1 position 35", SHARD_E_ARGUMENT},
		{"shuffle-v1 two_levels N 103 r 5 w 2 L 0 u 2 seed 7 epoch 1 position 35", SHARD_E_ARGUMENT},
		{"shuffle-v1 two_levels N 103 r 9223372036854775808 w 2 L 3 u 2 seed 7 epoch 1 position 35",
		 SHARD_E_ARGUMENT},
		{"shuffle-v1 two_levels N 103 r 4611686018427387904 w 4294967295 L 4294967295 u 4611686018427387904 "
		 "seed 7 epoch 1 position 35",
		 SHARD_OK},
		{"shuffle-v1 two_levels N 104 r 5 w 2 L 3 u 2 seed 7 epoch 1 position 35", SHARD_E_MISMATCH},
		{"shuffle-v1 two_levels N 103 r 5 w 2 L 3 u 2 seed 8 epoch 1 position 35", SHARD_E_MISMATCH},
		{"shuffle-v1 three_levels N 103 r 5 w 2 L 3 u 2 seed 7 epoch 1 position 35", SHARD_E_ARGUMENT},
		{"shuffle-v2 two_levels N 103 r 5 w 2 L 3 u 2 seed 7 epoch 1 position 35", SHARD_E_ARGUMENT},
	};
	static const char *const ends[] = {
		" subset some",
		"",
		" subset all pixels",
		" subset all pixels ",
		" subset all pixels pillow",
		" subset all pixels pillow-14",
		" subset all pixels pillow-13 ",
		" subset all  pixels pillow-13",
		" subset all pixels pillow-12 pixels pillow-13",
		" pixels pillow-13 subset all",
	};
	struct shard_dataset_info info;
	char text[SHARD_TOKEN_BYTES];
	struct shard_error err;
	struct shard_loader *l;

	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	shard_dataset_info(ds, &info);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_batch b;
		struct shard_loader_options o = {.size = sizeof(o), .batch_records = 5, .order.seed = 7};

		STORY("%s", rows[i].text);
		snprintf(text, sizeof(text), "%s dataset %s subset all", rows[i].text, info.id);
		seal(text);
		CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
		CHECK_EQ(shard_loader_resume(l, text, &err), rows[i].want);
		CHECK(shard_loader_next(l, &b, NULL) >= 0); /* what was taken leads somewhere */
		shard_loader_close(l);
		for (size_t e = 0; e < COUNT(ends); e++) {
			snprintf(text, sizeof(text), "%s dataset %s%s", rows[i].text, info.id, ends[e]);
			seal(text);
			CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
			CHECK_EQ(shard_loader_resume(l, text, &err), SHARD_E_ARGUMENT);
			shard_loader_close(l);
		}
	}
}

/* ---- going on ---- */

static const struct shape {
	uint32_t world, batch, threads;
} shapes[] = {{1, 5, 1}, {2, 4, 3}, {3, 7, 2}, {8, 1, 1}, {1, 103, 2}};

/*
 * All ranks of a shape go on from a token until the epoch ends: each position from there on once,
 * and none before.
 */
static void go_on(size_t kind, const struct shape *shape, const char *token, uint64_t epoch, uint64_t position)
{
	unsigned seen[RECORDS_CAP] = {0};

	for (uint32_t rank = 0; rank < shape->world; rank++) {
		struct shard_loader_options o = of_kind(kind, shape->batch, 5);
		struct shard_loader *l;
		struct shard_batch b;

		o.rank = rank;
		o.world = shape->world;
		o.thread_count = shape->threads;
		o.tail = SHARD_PAD;
		wanted_open(&wanted, o);
		l = loader_of(&wanted);
		wanted_seek(&wanted, epoch, position);
		CHECK_OK(shard_loader_resume(l, token, &fixture_err));
		while (!wanted.complaint[0] && wanted_next(&wanted, l, &b) == SHARD_OK) {
			for (uint32_t i = 0; i < b.record_count; i++)
				seen[b.record[i]] += !b.row_flags[i];
			CHECK_OK(shard_loader_release(l, &b, &fixture_err));
		}
		close_loader(l);
	}
	for (uint64_t p = 0; p < record_total; p++)
		if (seen[wanted.order[epoch][p]] != (p >= position))
			complain(&wanted, "position %" PRIu64 " came %u times", p, seen[wanted.order[epoch][p]]);
}

/* Tokens of a job of two ranks at every step of two epochs. */
static void resume_everywhere(size_t kind, const struct shape *shape)
{
	struct shard_loader_options o = of_kind(kind, 4, 5);
	struct shard_loader *l;
	struct shard_batch b;

	o.world = 2;
	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	for (uint64_t call = 0; call < 2 * (shard_loader_step_count(l) + 1); call++) {
		char token[SHARD_TOKEN_BYTES];
		uint64_t epoch, position;

		STORY("kind %zu, world %u, call %" PRIu64, kind, shape->world, call);
		shard_loader_tell(l, &epoch, &position);
		shard_loader_token(l, token);
		go_on(kind, shape, token, epoch, position);
		if (wanted.complaint[0])
			break;
		if (shard_loader_next(l, &b, &fixture_err) == SHARD_OK)
			CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
	shard_loader_close(l);
}

TEST(a_job_goes_on_in_another_shape_from_every_step)
{
	inject_nothing();
	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	for (size_t kind = 0; kind < COUNT(kinds); kind++)
		for (size_t s = 0; s < COUNT(shapes); s++) {
			resume_everywhere(kind, &shapes[s]);
			CHECK_NO_COMPLAINT(&wanted);
		}
	reading = LOSES_POSITION;
	resume_everywhere(1, &shapes[1]);
	reading = READS;
	CHECK(wanted.complaint[0]);
}

/* What a larger step leaves out is left out, and no empty epoch comes for it. */
TEST(where_no_step_is_left_the_next_epoch_begins)
{
	inject_nothing();
	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	for (uint64_t left = 0; left <= 8; left++) {
		struct shard_loader_options o = of_kind(2, 4, 5);
		char token[SHARD_TOKEN_BYTES], again[SHARD_TOKEN_BYTES];
		uint64_t epoch, position;
		struct shard_loader *l;
		struct shard_batch b;

		STORY("%" PRIu64 " records are left for steps of 8", left);
		token_of(of_kind(2, 1, 5), 3, record_total - left, token);
		o.world = 2;
		o.tail = SHARD_DROP;
		wanted_open(&wanted, o);
		l = loader_of(&wanted);
		CHECK_OK(shard_loader_resume(l, token, &fixture_err));
		shard_loader_tell(l, &epoch, &position);
		CHECK_EQ(epoch, left < 8 ? 4 : 3);
		CHECK_EQ(position, left < 8 ? 0 : record_total - left);
		shard_loader_token(l, again);
		wanted_seek(&wanted, epoch, position);
		CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
		CHECK_OK(shard_loader_resume(l, again, &fixture_err)); /* a token of this place is one of it */
		wanted_seek(&wanted, epoch, position);
		CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
		CHECK_NO_COMPLAINT(&wanted);
		close_loader(l);
	}
}

/* Opened with defaults, or asked for windows without a word on which. */
TEST(the_tokens_order_is_taken_over)
{
	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	for (size_t kind = 0; kind < COUNT(kinds); kind++)
		for (int broken = 0; broken < 2; broken++) {
			struct shard_loader_options o = {
				.size = sizeof(o), .batch_records = 9, .order.seed = 5, .tail = SHARD_KEEP};
			char token[SHARD_TOKEN_BYTES], again[SHARD_TOKEN_BYTES];
			struct shard_order_info info;
			struct lent lent = {.count = 0};
			struct prng p = {kind};
			struct shard_loader *l;
			uint64_t told[103];

			STORY("kind %zu%s", kind, broken ? ", broken" : "");
			if (broken && kind < 3)
				continue;
			if (kinds[kind].order.shuffle == SHARD_SEQUENTIAL) /* which the default is not */
				o.order.shuffle = SHARD_SEQUENTIAL;
			inject_nothing();
			token_of(of_kind(kind, 4, 5), 1, 31, token);
			wanted_open(&wanted, of_kind(kind, 9, 5));
			wanted.o.tail = SHARD_KEEP;
			wanted_seek(&wanted, 1, 31);
			CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
			reading = broken ? LOSES_WINDOWS : READS;
			CHECK_OK(shard_loader_resume(l, token, &fixture_err));
			reading = READS;
			consume(&wanted, l, &lent, &p, 20, 2);
			CHECK(!broken == !wanted.complaint[0]);
			shard_loader_order_info(l, &info);
			CHECK_EQ(info.kind, kinds[kind].order.shuffle);
			if (!broken && kind >= 3)
				CHECK(info.run_records == kinds[kind].order.run_records &&
				      info.window_runs == kinds[kind].order.window_runs &&
				      info.lane_count == kinds[kind].order.lane_count &&
				      info.phase_unit_records == kinds[kind].order.phase_unit_records);
			CHECK_OK(shard_loader_order(l, 2, 0, 103, NULL, told, &fixture_err));
			CHECK(!broken == !memcmp(told, wanted.order[2], sizeof(told)));
			CHECK_OK(shard_loader_seek(l, 1, 31, &fixture_err));
			shard_loader_token(l, again);
			CHECK(!broken == !strcmp(token, again));
			shard_loader_close(l);
		}
}

TEST(tokens_that_belong_elsewhere)
{
	static const struct {
		struct shard_loader_options o;
		size_t kind;
		int want;
		const char *says;
	} rows[] = {
		{{.order.seed = 5}, 3, SHARD_OK, ""},
		{{.order.seed = 5}, 0, SHARD_E_MISMATCH, "without shuffle, and this loader shuffles"},
		{{.order.seed = 5, .order.shuffle = SHARD_SEQUENTIAL}, 0, SHARD_OK, ""},
		{{.order.seed = 6},
		 3,
		 SHARD_E_MISMATCH,
		 "belongs to 103 records and seed 5; the loader has 103 records and seed 6"},
		{{.order.seed = 5, .order.shuffle = SHARD_SHUFFLE_WINDOWS}, 3, SHARD_OK, ""},
		{{.order.seed = 5, .order.shuffle = SHARD_SEQUENTIAL}, 3, SHARD_E_MISMATCH, "belongs to another order"},
		{{.order.seed = 5, .order.shuffle = SHARD_SHUFFLE_GLOBAL},
		 3,
		 SHARD_E_MISMATCH,
		 "belongs to another order"},
		{{.order.seed = 5, .order.shuffle = SHARD_SHUFFLE_GLOBAL},
		 0,
		 SHARD_E_MISMATCH,
		 "belongs to another order"},
		{{.order.seed = 5, .order.shuffle = SHARD_SHUFFLE_WINDOWS},
		 1,
		 SHARD_E_MISMATCH,
		 "belongs to another order"},
		{{.order.seed = 5, .order.run_records = 5, .order.lane_count = 3}, 3, SHARD_OK, ""},
		{{.order.seed = 5, .order.run_records = 6}, 3, SHARD_E_MISMATCH, "belongs to another order"},
		{{.order.seed = 5, .order.window_runs = 3}, 3, SHARD_E_MISMATCH, "belongs to another order"},
		{{.order.seed = 5, .order.lane_count = 2}, 3, SHARD_E_MISMATCH, "belongs to another order"},
		{{.order.seed = 5, .order.phase_unit_records = 1}, 3, SHARD_E_MISMATCH, "belongs to another order"},
		{{.order.seed = 5, .order.run_records = 5}, 1, SHARD_E_MISMATCH, "belongs to another order"},
	};
	static const uint64_t others[] = {103};
	char token[SHARD_TOKEN_BYTES];
	struct shard_error err;
	struct shard_loader *l;
	struct shard_batch b;

	inject_nothing();
	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_loader_options o = rows[i].o;

		STORY("row %zu", i);
		token_of(of_kind(rows[i].kind, 4, 5), 1, 31, token);
		o.batch_records = 9;
		wanted_open(&wanted, o);
		l = loader_of(&wanted);
		CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
		CHECK_EQ(shard_loader_resume(l, token, &err), rows[i].want);
		if (rows[i].want) { /* and it stays where it is */
			CHECK(strstr(err.message, rows[i].says));
			CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
			CHECK_NO_COMPLAINT(&wanted);
		}
		close_loader(l);
	}
	STORY("of another dataset");
	open_photos(8, SHARD_RAW, others, 1);
	wanted_open(&wanted, of_kind(3, 9, 5));
	l = loader_of(&wanted);
	token_of(of_kind(3, 4, 5), 1, 31, token);
	CHECK_OK(shard_loader_resume(l, token, &fixture_err));
	close_loader(l);
	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	l = loader_of(&wanted);
	CHECK_EQ(shard_loader_resume(l, token, &err), SHARD_E_MISMATCH);
	CHECK(strstr(err.message, "the token belongs to dataset"));
	close_loader(l);
}

/* ---- what resume reads ---- */

TEST(no_earlier_record_is_read)
{
	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	for (size_t kind = 0; kind < COUNT(kinds); kind++)
		for (int broken = 0; broken < 2; broken++)
			for (uint64_t position = 5; position < 103; position += 14) {
				struct shard_loader_options o = of_kind(kind, 5, 5);
				char token[SHARD_TOKEN_BYTES];
				struct shard_loader_stats s;
				struct shard_loader *l;
				struct shard_batch b;

				STORY("kind %zu, position %" PRIu64 ", broken %d", kind, position, broken);
				inject_nothing();
				o.slot_count = 3;
				o.thread_count = 2;
				o.tail = SHARD_PAD;
				wanted_open(&wanted, o);
				token_of(o, 1, position, token);
				l = loader_of(&wanted);
				/*
				 * from the beginning, and then there: what a loader does that
				 * replays
				 */
				if (broken)
					CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
				CHECK_OK(shard_loader_resume(l, token, &fixture_err));
				wanted_seek(&wanted, 1, position);
				CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
				usleep(3000);
				shard_loader_stats(l, &s);
				close_loader(l);
				CHECK_NO_COMPLAINT(&wanted);
				CHECK_EQ(s.record_count, broken ? 10 : 5);
				CHECK((atomic_load(&earliest) == (UINT64_C(1) << 32 | position)) == !broken);
				CHECK(broken || s.filled_record_count <= 3 * 5);
			}
}

TEST_MAIN()
