/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_appended.c - a dataset that has grown finishes the epoch of an old token over the old records,
 * and goes on with all of them; or it refuses, if it did not begin as that dataset
 *
 * The old dataset is there, too, and its loader says what must come.  A loader that does not look
 * at the kept manifest must be noticed.
 *
 * LDFLAGS: -Wl,--wrap=dataset_records_before
 * TIMEOUT: 900
 */
#include "tests/load/batches.h"
#include "tests/load/kinds.h"

static const uint64_t sizes[] = {40, 1, 0, 22, 37, 3};
#define OLD_SHARDS  4u
#define OLD_RECORDS 63u
#define ALL_RECORDS 103u

static struct path old_folder;
static struct shard_dataset *old_ds, *new_ds;
static char old_id[65];
static struct wanted old_wanted, new_wanted;

/* ---- a broken twin: the token's dataset is believed to be the beginning of any other ---- */

static bool believes;

int __real_dataset_records_before(const struct shard_dataset *of, const char *id, uint64_t *records,
				  struct shard_error *err);
int __wrap_dataset_records_before(const struct shard_dataset *of, const char *id, uint64_t *records,
				  struct shard_error *err);

int __wrap_dataset_records_before(const struct shard_dataset *of, const char *id, uint64_t *records,
				  struct shard_error *err)
{
	*records = OLD_RECORDS;
	return believes ? SHARD_OK : __real_dataset_records_before(of, id, records, err);
}

/* ---- datasets ---- */

/* Keep the old manifest beside the new one, under this name. */
static void keep_manifest(const char *id)
{
	char from[600], to[700];

	snprintf(from, sizeof(from), "%s/dataset.manifest", old_folder.text);
	snprintf(to, sizeof(to), "%s/dataset.manifest.%s", folder.text, id);
	file_copy(from, to);
}

static void close_both(void)
{
	if (old_ds)
		shard_dataset_close(old_ds);
	old_ds = NULL;
}

/* The old dataset, and `ds`, which has its shards and more behind them. */
static void open_grown(uint32_t side, uint32_t codec)
{
	struct shard_dataset_info info;

	close_both();
	open_photos(side, codec, sizes, COUNT(sizes));
	new_folder(&old_folder, "old");
	write_dataset(old_folder.text, &schema, sizes, OLD_SHARDS);
	CHECK_OK(shard_dataset_open(&old_ds, old_folder.text, NULL, &fixture_err));
	shard_dataset_info(old_ds, &info);
	CHECK_EQ(info.record_count, OLD_RECORDS);
	memcpy(old_id, info.id, sizeof(old_id));
	keep_manifest(old_id);
	new_ds = ds;
}

/* What loaders of `from` must deliver with these options. */
static void want(struct wanted *w, struct shard_dataset *from, struct shard_loader_options o)
{
	ds = from;
	record_total = from == old_ds ? OLD_RECORDS : ALL_RECORDS;
	wanted_open(w, o);
	ds = new_ds;
	record_total = ALL_RECORDS;
}

static struct shard_loader *loader_on(struct shard_dataset *from, struct shard_loader_options o)
{
	struct shard_loader *l = NULL;

	CHECK_OK(shard_loader_open(&l, from, &o, &fixture_err));
	return l;
}

static void token_at(struct shard_dataset *from, struct shard_loader_options o, uint64_t epoch, uint64_t position,
		     char token[SHARD_TOKEN_BYTES])
{
	struct shard_loader *l = loader_on(from, o);

	CHECK_OK(shard_loader_seek(l, epoch, position, &fixture_err));
	shard_loader_token(l, token);
	shard_loader_close(l);
}

/* ---- going on ---- */

static const struct shape {
	uint32_t world, batch, threads, tail;
} shapes[] = {{1, 5, 1, SHARD_KEEP},
	      {2, 4, 3, SHARD_PAD},
	      {3, 7, 2, SHARD_DROP},
	      {8, 1, 1, SHARD_PAD},
	      {1, 60, 2, SHARD_DROP}};

static struct shard_loader_options of_shape(size_t kind, const struct shape *shape, uint32_t rank)
{
	struct shard_loader_options o = of_kind(kind);

	o.batch_records = shape->batch;
	o.world = shape->world;
	o.rank = rank;
	o.thread_count = shape->threads;
	o.tail = shape->tail;
	o.resume_appended = 1;
	return o;
}

/* Of a job with steps of one record, so that a token of any position is of its epoch. */
static struct shard_loader_options of_kind_single(size_t kind)
{
	struct shard_loader_options o = of_kind(kind);

	o.batch_records = 1;
	return o;
}

/* Until the end of the epoch.  In an early one the token is at each step that of the old one. */
static void run_epoch(struct wanted *w, struct shard_loader *l, unsigned *seen)
{
	char token[SHARD_TOKEN_BYTES], old_token[SHARD_TOKEN_BYTES];
	struct shard_batch b;

	for (;;) {
		uint64_t epoch = w->epoch, position = w->first + w->step * step_records(w);
		int rc;

		if (steps_left(w) && position) {
			token_at(w == &old_wanted ? old_ds : new_ds, w->o, epoch, position, old_token);
			shard_loader_token(l, token);
			if (strcmp(token, old_token))
				complain(w, "the token is %s instead of %s", token, old_token);
		}
		rc = wanted_next(w, l, &b);
		if (rc || w->complaint[0])
			return;
		for (uint32_t i = 0; i < b.record_count; i++)
			seen[b.record[i]] += !b.row_flags[i];
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
}

/* One rank finishes the epoch of the token, and has all of the next one. */
static void go_on(const char *token, struct shard_loader_options o, uint64_t epoch, uint64_t position,
		  unsigned *old_seen, unsigned *new_seen)
{
	struct shard_loader *l;
	struct shard_batch b;

	want(&old_wanted, old_ds, o);
	want(&new_wanted, new_ds, o);
	l = loader_of(&new_wanted);
	if (position % 2 && shard_loader_next(l, &b, &fixture_err) == SHARD_OK) /* threads are ahead */
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	CHECK_OK(shard_loader_resume(l, token, &fixture_err));
	wanted_seek(&old_wanted, epoch, position);
	wanted_seek(&new_wanted, epoch + 1, 0);
	if (steps_left(&old_wanted)) /* else the epoch is over */
		run_epoch(&old_wanted, l, old_seen);
	if (!old_wanted.complaint[0])
		run_epoch(&new_wanted, l, new_seen);
	close_loader(l);
}

/* All ranks together: each record comes once, in both epochs. */
static void all_go_on(size_t kind, const struct shape *shape, const char *token, uint64_t epoch, uint64_t position)
{
	unsigned old_seen[RECORDS_CAP] = {0}, new_seen[RECORDS_CAP] = {0};
	uint64_t step = (uint64_t)shape->world * shape->batch, end[2] = {OLD_RECORDS, ALL_RECORDS};

	for (uint32_t rank = 0; rank < shape->world; rank++) {
		go_on(token, of_shape(kind, shape, rank), epoch, position, old_seen, new_seen);
		CHECK_NO_COMPLAINT(&old_wanted);
		CHECK_NO_COMPLAINT(&new_wanted);
	}
	if (shape->tail == SHARD_DROP) {
		end[0] -= (OLD_RECORDS - position) % step;
		end[1] -= ALL_RECORDS % step;
	}
	for (uint64_t p = 0; p < ALL_RECORDS; p++) {
		if (p < OLD_RECORDS)
			CHECK_EQ(old_seen[old_wanted.order[epoch][p]], p >= position && p < end[0]);
		else
			CHECK_EQ(old_seen[p], 0);
		CHECK_EQ(new_seen[new_wanted.order[epoch + 1][p]], p < end[1]);
	}
}

TEST(the_epoch_is_finished_over_the_old_records_and_the_next_has_all)
{
	static const uint64_t positions[] = {1, 6, 13, 40, 41, 59, 62};

	open_grown(8, SHARD_RAW);
	for (size_t kind = 0; kind < KINDS; kind++)
		for (size_t s = 0; s < COUNT(shapes); s++)
			for (size_t i = 0; i < COUNT(positions); i++) {
				char token[SHARD_TOKEN_BYTES];

				STORY("order %zu, shape %zu, position %" PRIu64, kind, s, positions[i]);
				token_at(old_ds, of_kind_single(kind), 2, positions[i], token);
				all_go_on(kind, &shapes[s], token, 2, positions[i]);
			}
}

/* Images that are aligned, and chunks: the crew keeps other things of the dataset. */
TEST(large_and_compressed_records)
{
	for (uint32_t codec = SHARD_RAW; codec <= SHARD_LZ4; codec++)
		for (size_t kind = 0; kind < KINDS; kind++) {
			char token[SHARD_TOKEN_BYTES];

			STORY("codec %u, order %zu", codec, kind);
			open_grown(48, codec);
			token_at(old_ds, of_kind(kind), 1, 21, token);
			all_go_on(kind, &shapes[1], token, 1, 21);
		}
}

TEST(an_epoch_that_was_not_begun_has_all_records)
{
	struct shard_loader_options o = of_shape(IN_WINDOWS, &shapes[0], 0);
	unsigned seen[RECORDS_CAP] = {0};

	open_grown(8, SHARD_RAW);
	for (uint64_t epoch = 0; epoch < 2; epoch++) {
		char token[SHARD_TOKEN_BYTES], again[SHARD_TOKEN_BYTES], all[SHARD_TOKEN_BYTES];
		struct shard_loader *l;

		token_at(old_ds, o, epoch, 0, token);
		want(&new_wanted, new_ds, o);
		l = loader_of(&new_wanted);
		CHECK_OK(shard_loader_resume(l, token, &fixture_err));
		shard_loader_token(l, again);
		token_at(new_ds, o, epoch, 0, all);
		CHECK_STR(again, all);
		wanted_seek(&new_wanted, epoch, 0);
		run_epoch(&new_wanted, l, seen);
		CHECK_NO_COMPLAINT(&new_wanted);
		close_loader(l);
	}
	for (uint64_t i = 0; i < ALL_RECORDS; i++)
		CHECK_EQ(seen[i], 2);
}

/* Epochs up to the token's have the old records, wherever the loader goes; until another resume. */
TEST(seek_and_order_know_the_early_epochs)
{
	struct shard_loader_options o = of_shape(GLOBALLY, &shapes[0], 0);
	char token[SHARD_TOKEN_BYTES], all[SHARD_TOKEN_BYTES];
	uint64_t got[ALL_RECORDS];
	struct shard_error err;
	struct shard_loader *l;

	open_grown(8, SHARD_RAW);
	want(&old_wanted, old_ds, o);
	want(&new_wanted, new_ds, o);
	token_at(old_ds, o, 2, 20, token);
	token_at(new_ds, o, 1, 80, all);
	l = loader_of(&new_wanted);
	for (int turn = 0; turn < 2; turn++) {
		CHECK_OK(shard_loader_resume(l, token, &fixture_err));
		for (uint64_t epoch = 0; epoch < 4; epoch++) {
			const struct wanted *w = epoch <= 2 ? &old_wanted : &new_wanted;

			CHECK_OK(shard_loader_order(l, epoch, 0, w->total, NULL, got, &fixture_err));
			CHECK_MEM(got, w->order[epoch], w->total * sizeof(*got));
			CHECK_EQ(shard_loader_order(l, epoch, 0, w->total + 1, NULL, got, &err), SHARD_E_ARGUMENT);
			CHECK_EQ(shard_loader_seek(l, epoch, w->total + 1, &err), SHARD_E_ARGUMENT);
			CHECK_OK(shard_loader_seek(l, epoch, w->total, &fixture_err));
		}
		CHECK_OK(shard_loader_seek(l, 1, 3, &fixture_err));
		wanted_seek(&old_wanted, 1, 3);
		run_epoch(&old_wanted, l, (unsigned[RECORDS_CAP]){0});
		CHECK_NO_COMPLAINT(&old_wanted);
		CHECK_OK(shard_loader_resume(l, all, &fixture_err));
		wanted_seek(&new_wanted, 1, 80);
		run_epoch(&new_wanted, l, (unsigned[RECORDS_CAP]){0});
		CHECK_NO_COMPLAINT(&new_wanted);
	}
	close_loader(l);
}

/* ---- damaged records ---- */

/* The last old record, in both datasets: its substitute is an old one. */
TEST(a_substitute_is_one_of_the_old_records)
{
	struct shard_loader_options o = of_shape(IN_SEQUENCE, &shapes[0], 0);
	struct shard_loader *l;
	struct shard_batch b;
	char token[SHARD_TOKEN_BYTES];

	open_grown(48, SHARD_RAW);
	o.repair.on_corrupt = SHARD_CORRUPT_SUBSTITUTE;
	o.batch_records = 1;
	damage_record(&folder, 3, 0, 21 * schema.group[0].stride);
	token_at(old_ds, o, 0, OLD_RECORDS - 1, token);
	for (int early = 0; early < 2; early++) {
		l = loader_on(new_ds, o);
		if (early)
			CHECK_OK(shard_loader_resume(l, token, &fixture_err));
		else
			CHECK_OK(shard_loader_seek(l, 0, OLD_RECORDS - 1, &fixture_err));
		CHECK_OK(shard_loader_next(l, &b, &fixture_err));
		CHECK_EQ(b.row_flags[0], SHARD_ROW_SUBSTITUTED);
		CHECK_EQ(b.record[0], early ? 0 : OLD_RECORDS);
		shard_loader_close(l);
	}
}

/* ---- selections ---- */

static struct shard_selection *labelled(struct shard_dataset *of, int64_t from)
{
	struct shard_selection *s;

	CHECK_OK(shard_select_where(&s, of, NULL, "label", (const int64_t[]){from, from + 1, from + 2}, 3,
				    &fixture_err));
	return s;
}

TEST(a_selection_that_was_the_tokens)
{
	struct shard_loader_options o = of_shape(IN_WINDOWS, &shapes[0], 0);
	char token[SHARD_TOKEN_BYTES];
	struct shard_selection *old, *grown, *other;
	struct shard_error err;
	struct shard_loader *l;
	unsigned seen[2][RECORDS_CAP] = {{0}};

	open_grown(8, SHARD_RAW);
	old = labelled(old_ds, 2);
	grown = labelled(new_ds, 2);
	other = labelled(new_ds, 3);
	o.selection = old;
	want(&old_wanted, old_ds, o);
	token_at(old_ds, o, 1, 5, token);
	o.selection = grown;
	want(&new_wanted, new_ds, o);
	CHECK(new_wanted.total > old_wanted.total);
	l = loader_of(&new_wanted);
	CHECK_OK(shard_loader_resume(l, token, &fixture_err));
	wanted_seek(&old_wanted, 1, 5);
	wanted_seek(&new_wanted, 2, 0);
	run_epoch(&old_wanted, l, seen[0]);
	CHECK_NO_COMPLAINT(&old_wanted);
	run_epoch(&new_wanted, l, seen[1]);
	CHECK_NO_COMPLAINT(&new_wanted);
	close_loader(l);
	for (uint64_t p = 0; p < new_wanted.total; p++)
		CHECK_EQ(seen[1][new_wanted.order[2][p]], 1);

	o.selection = other;
	l = loader_on(new_ds, o);
	CHECK_EQ(shard_loader_resume(l, token, &err), SHARD_E_MISMATCH);
	CHECK(strstr(err.message, "belongs to selection "));
	shard_loader_close(l);
	o.selection = NULL;
	l = loader_on(new_ds, o);
	CHECK_EQ(shard_loader_resume(l, token, &err), SHARD_E_MISMATCH);
	CHECK(strstr(err.message, "and the loader has all"));
	shard_loader_close(l);
	shard_selection_close(old);
	shard_selection_close(grown);
	shard_selection_close(other);
}

/* ---- refused ---- */

/* Resume on `ds`, which says this, and stays where it is. */
static void refused(const char *token, uint32_t resume_appended, int status, const char *says)
{
	struct shard_loader_options o = of_shape(GLOBALLY, &shapes[0], 0);
	uint64_t epoch, position;
	struct shard_error err;
	struct shard_loader *l;

	o.resume_appended = resume_appended;
	l = loader_on(ds, o);
	CHECK_OK(shard_loader_seek(l, 1, 10, &fixture_err));
	CHECK_EQ(shard_loader_resume(l, token, &err), status);
	if (!strstr(err.message, says))
		test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", err.message, says);
	shard_loader_tell(l, &epoch, &position);
	CHECK(epoch == 1 && position == 10);
	shard_loader_close(l);
}

TEST(what_is_refused)
{
	char token[SHARD_TOKEN_BYTES], kept[700], other[65];
	struct shard_loader_options o = of_shape(GLOBALLY, &shapes[0], 0);
	struct shard_loader *l;
	struct shard_error err;

	open_grown(8, SHARD_RAW);
	token_at(old_ds, of_kind(GLOBALLY), 2, 20, token);
	snprintf(kept, sizeof(kept), "%s/dataset.manifest.%s", folder.text, old_id);
	refused(token, 0, SHARD_E_MISMATCH, "open the loader with resume_appended to finish the epoch");

	CHECK_EQ(unlink(kept), 0);
	refused(token, 0, SHARD_E_MISMATCH, "belongs to dataset ");
	refused(token, 1, SHARD_E_MISMATCH, ", so this dataset was not made by appending to that one");

	file_make(kept, "shardset 1\n", 11);
	refused(token, 1, SHARD_E_CORRUPT, kept);

	/* Another manifest in its place: that of the new dataset. */
	snprintf(other, sizeof(other), "%s", old_id);
	{
		char from[600];

		snprintf(from, sizeof(from), "%s/dataset.manifest", folder.text);
		file_copy(from, kept);
	}
	refused(token, 1, SHARD_E_MISMATCH, "not of the one in its name; begin a new epoch");

	o.resume_appended = 2;
	CHECK_EQ(shard_loader_open(&l, ds, &o, &err), SHARD_E_ARGUMENT);
	CHECK(strstr(err.message, "resume_appended is 2"));
}

/* A dataset whose shards have the same names and numbers of records, but not those records. */
static void open_other(void)
{
	open_grown(8, SHARD_RAW);
	new_folder(&folder, "load");
	fixture_first = 200;
	write_dataset(folder.text, &schema, sizes, COUNT(sizes));
	fixture_first = 0;
	reopen(NULL);
	new_ds = ds;
	keep_manifest(old_id);
}

TEST(a_manifest_that_is_no_prefix)
{
	static const uint64_t less[] = {40, 1, 0};
	char token[SHARD_TOKEN_BYTES];

	open_other();
	token_at(old_ds, of_kind(GLOBALLY), 2, 20, token);
	refused(token, 1, SHARD_E_MISMATCH, "are not the first ones of");

	new_folder(&folder, "load"); /* fewer shards than the old one has */
	write_dataset(folder.text, &schema, less, COUNT(less));
	reopen(NULL);
	new_ds = ds;
	keep_manifest(old_id);
	refused(token, 1, SHARD_E_MISMATCH, "are not the first ones of");
}

/* The control: a build that believes any token delivers other records, and is noticed. */
TEST(a_build_that_does_not_look_is_noticed)
{
	struct shard_loader_options o = of_shape(GLOBALLY, &shapes[0], 0);
	char token[SHARD_TOKEN_BYTES];
	struct shard_loader *l;
	unsigned seen[RECORDS_CAP] = {0};

	open_other();
	want(&old_wanted, old_ds, o);
	token_at(old_ds, o, 2, 20, token);
	believes = true;
	l = loader_on(new_ds, o);
	CHECK_OK(shard_loader_resume(l, token, &fixture_err));
	believes = false;
	wanted_seek(&old_wanted, 2, 20);
	run_epoch(&old_wanted, l, seen);
	shard_loader_close(l);
	CHECK(old_wanted.complaint[0]);
	close_both();
}

TEST_MAIN()
