/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_selected.c - a loader of a selection delivers its records and no others: in the order of as
 * many records, for any world, on every path, resumed by tokens, and where records are damaged
 *
 * The slow twin is the order over the number of selected records, looked up in an array.
 *
 * LDFLAGS: -Wl,--wrap=slot_fill
 * TIMEOUT: 300
 */
#include "libshard/dataset/dataset.h"
#include "tests/load/inject.h"
#include "tests/load/kinds.h"

static const uint64_t sizes[] = {40, 1, 0, 62};
static struct wanted wanted;

static struct shard_selection *some(double begin, double end)
{
	struct shard_selection *s;

	CHECK_OK(shard_select_fraction(&s, ds, NULL, begin, end, 11, &fixture_err));
	return s;
}

static struct shard_loader_options selected(size_t kind, const struct shard_selection *s)
{
	struct shard_loader_options o = of_kind(kind);

	o.selection = s;
	return o;
}

/* ---- which records, and where ---- */

TEST(the_order_is_that_of_as_many_records)
{
	struct shard_selection *s;
	struct shard_loader *l;
	uint64_t got[RECORDS_CAP];

	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	s = some(0, 0.6);
	for (size_t kind = 0; kind < KINDS; kind++)
		for (uint64_t epoch = 0; epoch < 3; epoch++) {
			struct shard_loader_options o = selected(kind, s);
			struct order_params p = params_of_kind(&o, s->count, epoch);
			uint16_t *table = calloc(order_table_entries(&p) + 1, sizeof(*table));
			static struct order order;

			o.batch_records = 1;
			CHECK_EQ(order_init(&order, &p, table), SHARD_OK);
			CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
			CHECK_EQ(shard_loader_step_count(l), s->count);
			CHECK_OK(shard_loader_order(l, epoch, 0, s->count, NULL, got, &fixture_err));
			for (uint64_t i = 0; i < s->count; i++)
				CHECK_EQ(got[i], selection_at(s, order_at(&order, i)));
			shard_loader_close(l);
			free(table);
		}
	shard_selection_close(s);
}

/* Three epochs in the right order, byte for byte. */
static void run_epochs(struct shard_loader_options o)
{
	struct shard_loader *l;
	struct shard_batch b;

	wanted_open(&wanted, o);
	l = loader_of(&wanted);
	while (wanted.epoch < 3 && !wanted.complaint[0]) {
		if (wanted_next(&wanted, l, &b) == SHARD_OK)
			CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
	close_loader(l);
}

TEST(every_path_codec_rank_and_tail)
{
	for (uint32_t side = 8; side <= 48; side += 40)
		for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++) {
			struct shard_selection *s;

			open_photos(side, codec, sizes, COUNT(sizes));
			s = some(0.2, 0.9);
			for (size_t kind = 0; kind < KINDS; kind++)
				for (uint32_t rank = 0; rank < 4; rank++) {
					struct shard_loader_options o = selected(kind, s);

					o.world = rank < 3 ? 3 : 1;
					o.rank = rank < 3 ? rank : 0;
					o.tail = rank == 3 ? SHARD_KEEP : rank == 1 ? SHARD_PAD : SHARD_DROP;
					o.path = rank;
					STORY("side %u, codec %u, order %u, rank %u of %u, path %u", side, codec,
					      (unsigned)kind, o.rank, o.world, o.path);
					run_epochs(o);
					CHECK_NO_COMPLAINT(&wanted);
				}
			shard_selection_close(s);
		}
}

/* The control: a loader of all records is noticed. */
TEST(records_of_no_selection_are_noticed)
{
	struct shard_loader_options all = of_kind(GLOBALLY);
	struct shard_selection *s;
	struct shard_loader *l;
	struct shard_batch b;

	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	s = some(0.2, 0.9);
	wanted_open(&wanted, selected(GLOBALLY, s));
	CHECK_OK(shard_loader_open(&l, ds, &all, &fixture_err));
	CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
	shard_loader_close(l);
	CHECK(wanted.complaint[0]);
	shard_selection_close(s);
}

/* ---- tokens ---- */

TEST(a_token_resumes_in_another_world_and_in_no_other_selection)
{
	struct shard_selection *s, *other;
	struct shard_loader_options o;
	char token[SHARD_TOKEN_BYTES];
	struct shard_loader *l;
	struct shard_batch b;

	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	s = some(0.2, 0.9);
	other = some(0.1, 0.8);
	CHECK_EQ(s->count, other->count);
	for (size_t kind = 0; kind < KINDS; kind++) {
		struct shard_error err;

		o = selected(kind, s);
		wanted_open(&wanted, o);
		l = loader_of(&wanted);
		for (int i = 0; i < 3; i++) {
			CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
			CHECK_OK(shard_loader_release(l, &b, &fixture_err));
		}
		shard_loader_token(l, token);
		close_loader(l);
		CHECK(strstr(token, s->digest));

		o.world = 2;
		o.rank = 1;
		o.batch_records = 5;
		wanted_open(&wanted, o);
		l = loader_of(&wanted);
		CHECK_OK(shard_loader_resume(l, token, &fixture_err));
		wanted_seek(&wanted, 0, 21);
		for (int i = 0; i < 8; i++)
			if (wanted_next(&wanted, l, &b) == SHARD_OK)
				CHECK_OK(shard_loader_release(l, &b, &fixture_err));
		CHECK_NO_COMPLAINT(&wanted);
		close_loader(l);

		o.selection = other;
		CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
		CHECK_EQ(shard_loader_resume(l, token, &err), SHARD_E_MISMATCH);
		CHECK(strstr(err.message, "the token belongs to selection "));
		shard_loader_close(l);
		o.selection = NULL;
		CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
		CHECK_EQ(shard_loader_resume(l, token, &err), SHARD_E_MISMATCH);
		shard_loader_token(l, token);
		CHECK(strstr(token, " subset all "));
		shard_loader_close(l);
		o.selection = s;
		CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
		CHECK_EQ(shard_loader_resume(l, token, &err), SHARD_E_MISMATCH);
		CHECK(strstr(err.message, "the token belongs to all of the dataset"));
		shard_loader_close(l);
	}
	shard_selection_close(s);
	shard_selection_close(other);
}

/* ---- damage ---- */

/* A record that was held out must not come in the place of a damaged one. */
TEST(a_substitute_is_of_the_selection)
{
	static const uint64_t idx[] = {3, 4, 17, 60, 102};
	static const uint64_t damaged[][2] = {{0, 3}, {0, 4}, {3, 61}}; /* shard, record in it: 3, 4, 102 */
	struct shard_selection *s;
	struct shard_loader_options o;
	struct shard_loader *l;
	struct shard_batch b;

	open_photos(48, SHARD_RAW, sizes, COUNT(sizes));
	for (size_t i = 0; i < COUNT(damaged); i++)
		damage_record(&folder, (unsigned)damaged[i][0], 0, damaged[i][1] * schema.group[0].stride + 9);
	reopen(NULL);
	CHECK_OK(shard_select_open(&s, ds, idx, COUNT(idx), &fixture_err));
	o = selected(IN_SEQUENCE, s);
	o.batch_records = 5;
	o.repair.on_corrupt = SHARD_CORRUPT_SUBSTITUTE;
	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	CHECK_OK(shard_loader_next(l, &b, &fixture_err));
	CHECK_EQ(b.record[0], 17); /* 4 is damaged, too */
	CHECK_EQ(b.record[1], 17);
	CHECK_EQ(b.record[2], 17);
	CHECK_EQ(b.record[3], 60);
	CHECK_EQ(b.record[4], 17); /* behind the last one, the first that is good */
	CHECK_EQ(b.row_flags[0], SHARD_ROW_SUBSTITUTED);
	CHECK_EQ(b.row_flags[3], 0);
	shard_loader_close(l);
	shard_selection_close(s);
}

TEST(a_selection_of_another_dataset_is_refused)
{
	static const uint64_t less[] = {50};
	struct shard_selection *s;
	struct shard_loader *l;
	struct shard_error err;
	struct shard_loader_options o;

	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	s = some(0, 0.5);
	open_photos(8, SHARD_RAW, less, COUNT(less));
	o = selected(IN_SEQUENCE, s);
	CHECK_EQ(shard_loader_open(&l, ds, &o, &err), SHARD_E_MISMATCH);
	CHECK(strstr(err.message, "options: the selection is of dataset"));
	shard_selection_close(s);
}

TEST_MAIN()
