/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_parts.c - somebody waits for the first batch, so all threads fill parts of it; later batches
 * are filled by a thread each
 *
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=transformed_fill
 */
#include "libshard/feed/feed.h"
#include "tests/load/inject.h"

#define THREADS 4u
#define BATCH	180u /* 22 rows for each of 8 parts, and 4 for another one */
#define PARTS	9u

static const uint64_t sizes[] = {120, 1, 0, 139};
static const struct shard_loader_options large = {.batch_records = BATCH,
						  .order.seed = 3,
						  .slot_count = THREADS + 2,
						  .thread_count = THREADS,
						  .tail = SHARD_KEEP};
static struct wanted wanted;

/* For the control: the last row of each part is left out. */
static bool drops_a_row;

int __real_transformed_fill(const struct transformed *t, struct row_source *source, struct scratch *scratch,
			    struct slot *s, const struct layout *to, struct fill_counts *counts,
			    struct shard_error *err);
int __wrap_transformed_fill(const struct transformed *t, struct row_source *source, struct scratch *scratch,
			    struct slot *s, const struct layout *to, struct fill_counts *counts,
			    struct shard_error *err);

int __wrap_transformed_fill(const struct transformed *t, struct row_source *source, struct scratch *scratch,
			    struct slot *s, const struct layout *to, struct fill_counts *counts,
			    struct shard_error *err)
{
	s->rows -= drops_a_row;
	return __real_transformed_fill(t, source, scratch, s, to, counts, err);
}

static struct shard_loader *open_gated(struct shard_loader_options o)
{
	struct shard_loader *l;

	inject_nothing();
	inject.shares = true;
	set_gate(false);
	inject.meanwhile = behind_gate;
	wanted_open(&wanted, o);
	l = loader_of(&wanted);
	inject_watch(l);
	return l;
}

static void await_threads(unsigned count)
{
	while (atomic_load(&behind) < count)
		usleep(500);
}

/* Begin to fill the next batch.  All threads stand in parts of it, behind the gate. */
static void begin(struct shard_loader *l)
{
	struct shard_error err;

	CHECK_EQ(shard_loader_wait(l, 0, &err), SHARD_E_TIMEOUT);
	await_threads(THREADS);
	CHECK_EQ(atomic_load(&together), THREADS - 1);
	CHECK_EQ(atomic_load(&fills), THREADS);
}

/* The batch comes, and so do those behind it, each filled by one thread. */
static void go_on(struct shard_loader *l)
{
	struct shard_batch b;

	inject.meanwhile = NULL;
	set_gate(true);
	CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
	CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	wait_until_full(l);
	atomic_store(&together, 0);
	for (unsigned i = 0; i < 12; i++)
		if (wanted_next(&wanted, l, &b) == SHARD_OK)
			CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	CHECK_EQ(atomic_load(&together), 0);
}

TEST(threads_share_the_first_batch)
{
	struct shard_loader_stats stats;
	struct shard_loader *l;

	open_photos(128, SHARD_RAW, sizes, COUNT(sizes));
	alarm(120);
	l = open_gated(large);
	begin(l);
	go_on(l);
	CHECK_NO_COMPLAINT(&wanted);
	STORY("after a seek");
	wait_until_full(l);
	atomic_store(&fills, 0);
	set_gate(false);
	inject.meanwhile = behind_gate;
	CHECK_OK(shard_loader_seek(l, 2, 7, &fixture_err));
	wanted_seek(&wanted, 2, 7);
	begin(l);
	go_on(l);
	CHECK_NO_COMPLAINT(&wanted);
	wait_until_full(l);
	shard_loader_stats(l, &stats);
	CHECK_EQ(stats.filled_bytes, stats.filled_record_count * l->layout.record_bytes);
	close_loader(l);
	alarm(0);
}

/* Chunks would be decoded for each part, and small batches are there at once. */
TEST(other_first_batches_are_filled_by_one_thread)
{
	static const struct {
		const char *story;
		uint32_t codec, batch;
	} rows[] = {{"compressed records", SHARD_LZ4, BATCH}, {"small batches", SHARD_RAW, 20}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct shard_loader_options o = large;
		struct shard_loader *l;
		struct shard_batch b;

		STORY("%s", rows[i].story);
		open_photos(128, rows[i].codec, sizes, COUNT(sizes));
		inject_nothing();
		o.batch_records = rows[i].batch;
		wanted_open(&wanted, o);
		l = loader_of(&wanted);
		inject_watch(l);
		inject.delay_us = 500;
		CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
		CHECK_EQ(atomic_load(&together), 0);
		CHECK_NO_COMPLAINT(&wanted);
		close_loader(l);
	}
}

/* Whoever has a part finishes it.  Nobody takes another one for a place that was left. */
TEST(a_seek_in_the_middle_drops_the_parts_that_are_left)
{
	struct shard_loader *l;
	struct shard_batch b;

	open_photos(128, SHARD_RAW, sizes, COUNT(sizes));
	alarm(120);
	l = open_gated(large);
	begin(l);
	CHECK_OK(shard_loader_seek(l, 1, 5, &fixture_err));
	wanted_seek(&wanted, 1, 5);
	inject.meanwhile = NULL;
	set_gate(true);
	CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
	CHECK_NO_COMPLAINT(&wanted);
	wait_until_full(l);
	CHECK_EQ(atomic_load(&fills_of[0]), THREADS);
	close_loader(l);
	alarm(0);
}

/* ---- the consumer is woken before threads go on ---- */

static atomic_bool stands;    /* a thread has the part that stands behind the gate */
static atomic_bool forgotten; /* the control: the crew does not know which slot is the first */
static atomic_bool sleeps;    /* parts wait until the consumer sleeps */

static bool is_asleep(struct crew *c)
{
	bool asleep;

	pthread_mutex_lock(&c->lock);
	if (atomic_load(&forgotten))
		c->first = NO_SLOT;
	asleep = c->is_asleep;
	pthread_mutex_unlock(&c->lock);
	return asleep;
}

/* For inject.meanwhile: one part of the first batch stands still, and the others are filled. */
static int one_behind_gate(struct feed *f)
{
	while (atomic_load(&sleeps) && !is_asleep(&f->crew))
		usleep(100);
	return atomic_exchange(&stands, true) ? SHARD_OK : behind_gate(f);
}

/* Another thread than the consumer opens the gate.  Returns how many parts and slots were filled then. */
static void *open_gate(void *unused)
{
	static unsigned filled;

	(void)unused;
	while (atomic_load(&fills) < PARTS + atomic_load(&forgotten))
		usleep(500);
	usleep(atomic_load(&forgotten) ? 0 : 20000);
	filled = atomic_load(&fills);
	set_gate(true);
	return &filled;
}

static struct shard_loader *open_standing(bool until_asleep, bool control)
{
	struct shard_loader *l = open_gated(large);

	inject.meanwhile = one_behind_gate;
	atomic_store(&stands, false);
	atomic_store(&sleeps, until_asleep);
	atomic_store(&forgotten, control);
	return l;
}

TEST(threads_do_not_go_on_while_the_consumer_sleeps)
{
	open_photos(128, SHARD_RAW, sizes, COUNT(sizes));
	for (int control = 0; control < 2; control++) {
		struct shard_loader *l;
		struct shard_batch b;
		pthread_t opener;
		void *filled;

		STORY("%s", control ? "control: they do not know that it waits for this slot" : "sound");
		alarm(120);
		l = open_standing(true, control);
		CHECK(!pthread_create(&opener, NULL, open_gate, NULL));
		CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
		atomic_store(&sleeps, false);
		CHECK(!pthread_join(opener, &filled));
		CHECK_EQ(*(unsigned *)filled > PARTS, control);
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
		wait_until_full(l); /* then they go on */
		CHECK_NO_COMPLAINT(&wanted);
		close_loader(l);
		alarm(0);
	}
}

/* It does not come back soon, so the other slots are filled meanwhile. */
TEST(threads_go_on_when_the_consumer_has_waited_in_vain)
{
	struct shard_error err;
	struct shard_loader *l;
	struct shard_batch b;

	open_photos(128, SHARD_RAW, sizes, COUNT(sizes));
	alarm(120);
	l = open_standing(false, false);
	while (atomic_load(&fills) < PARTS)
		CHECK_EQ(shard_loader_wait(l, 20000000, &err), SHARD_E_TIMEOUT);
	CHECK_EQ(shard_loader_wait(l, 20000000, &err), SHARD_E_TIMEOUT);
	while (atomic_load(&fills) < PARTS + large.slot_count - 1)
		usleep(500);
	set_gate(true);
	CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
	CHECK_NO_COMPLAINT(&wanted);
	close_loader(l);
	alarm(0);
}

/* ---- damage ---- */

/* Damage the images of two records that stand in different parts of the first batch. */
static void damage_two(void)
{
	for (unsigned i = 0; i < 2; i++) {
		uint64_t record = wanted.order[0][i ? 170 : 100], first = 0;
		unsigned shard = 0;

		while (record - first >= sizes[shard])
			first += sizes[shard++];
		damage_record(&folder, shard, 0, (record - first) * schema.group[0].stride + 99);
	}
}

/* The first batch of a loader.  Returns what next() returned. */
static int first_batch(struct shard_loader_options o, uint64_t record[BATCH], uint8_t flags[BATCH],
		       struct shard_loader_stats *stats, struct shard_error *err)
{
	struct shard_loader *l;
	struct shard_batch b;
	int rc;

	reopen(NULL); /* which forgets what was checked */
	o.size = sizeof(o);
	o.slot_count = 2;
	CHECK_OK(shard_loader_open(&l, ds, &o, &fixture_err));
	rc = shard_loader_next(l, &b, err);
	if (!rc) {
		memcpy(record, b.record, sizeof(*record) * BATCH);
		memcpy(flags, b.row_flags, BATCH);
		shard_loader_stats(l, stats);
	}
	shard_loader_close(l);
	return rc;
}

/* The first damaged record is the one that is told, whichever thread is the first to meet one. */
TEST(damage_is_told_and_repaired_as_by_one_thread)
{
	uint64_t record[2][BATCH];
	uint8_t flags[2][BATCH];
	struct shard_error err[2];

	open_photos(128, SHARD_RAW, sizes, COUNT(sizes));
	inject_nothing();
	inject.shares = true;
	wanted_open(&wanted, large);
	damage_two();
	for (unsigned i = 0; i < 30; i++) {
		struct shard_loader_stats stats[2];
		struct shard_loader_options o = large;

		o.repair.on_corrupt = i % 3;
		STORY("policy %u, time %u", o.repair.on_corrupt, i);
		o.thread_count = 1;
		inject.delay_us = 0;
		CHECK_EQ(first_batch(o, record[0], flags[0], &stats[0], &err[0]), i % 3 ? SHARD_OK : SHARD_E_CORRUPT);
		o.thread_count = THREADS;
		inject.delay_us = 2000;
		CHECK_EQ(first_batch(o, record[1], flags[1], &stats[1], &err[1]), i % 3 ? SHARD_OK : SHARD_E_CORRUPT);
		if (!o.repair.on_corrupt) {
			CHECK_STR(err[1].message, err[0].message);
			continue;
		}
		CHECK(!memcmp(record[0], record[1], sizeof(record[0])));
		CHECK(!memcmp(flags[0], flags[1], sizeof(flags[0])));
		CHECK(flags[0][100] && flags[0][170] && !flags[0][99]);
		for (unsigned k = 0; k < 2; k++)
			CHECK_EQ(stats[k].substituted_count + stats[k].masked_count, 2);
	}
}

/* ---- the control ---- */

TEST(a_row_that_no_part_has_is_noticed)
{
	struct shard_loader *l;
	struct shard_batch b;

	open_photos(128, SHARD_RAW, sizes, COUNT(sizes));
	inject_nothing();
	inject.shares = true;
	wanted_open(&wanted, large);
	l = loader_of(&wanted);
	drops_a_row = true;
	CHECK_EQ(wanted_next(&wanted, l, &b), SHARD_OK);
	CHECK(strstr(wanted.complaint, "is not that of record"));
	close_loader(l);
	drops_a_row = false;
}

TEST_MAIN()
