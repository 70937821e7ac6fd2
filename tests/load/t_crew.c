/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_crew.c - batches come in order from any number of threads, however long each takes; errors in
 * the middle; leaving early
 *
 * Filling is delayed at random.  A slot that is not filled, a row that is skipped, batches that
 * come out of order and a slot that is filled while it is lent show that the tests would notice.
 *
 * LDFLAGS: -Wl,--wrap=slot_fill,--wrap=pthread_create
 */
#include <errno.h>
#include <limits.h>

#include "tests/load/inject.h"

static const uint64_t sizes[] = {40, 1, 0, 62};

/* ---- threads that do not start ---- */

static unsigned starts, starts_fail_at; /* 0: never; else from that one on */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *context);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *context)
{
	if (starts_fail_at && ++starts >= starts_fail_at)
		return EAGAIN;
	return __real_pthread_create(thread, attr, run, context);
}

/* ---- order ---- */

static struct wanted wanted;

/*
 * Three epochs, END included, with at most slots - 1 batches lent; then what was seen in the slots.
 */
static void run(struct shard_loader_options o, unsigned calls)
{
	struct shard_loader *l;
	struct lent lent = {.count = 0};
	struct prng p = {o.thread_count * 100 + o.slot_count};

	wanted_open(&wanted, o);
	l = loader_of(&wanted);
	inject_watch(l);
	consume(&wanted, l, &lent, &p, calls ? calls : 3 * (unsigned)(shard_loader_step_count(l) + 1),
		o.slot_count - 1);
	close_loader(l);
	if (atomic_load(&together))
		complain(&wanted, "two threads in one slot");
	if (atomic_load(&while_lent))
		complain(&wanted, "a slot was filled while it was lent");
}

TEST(batches_come_in_order_whatever_the_timing)
{
	static const uint32_t threads[] = {1, 2, 3, 8}, slots[] = {2, 3, 4, 9};

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (size_t t = 0; t < COUNT(threads); t++)
		for (size_t s = 0; s < COUNT(slots); s++)
			for (uint32_t shuffle = SHARD_SEQUENTIAL; shuffle <= SHARD_SHUFFLE_WINDOWS; shuffle++) {
				STORY("%u threads, %u slots, shuffle %u", threads[t], slots[s], shuffle);
				inject_nothing();
				inject.delay_us = 200;
				run((struct shard_loader_options){.batch_records = 7,
								  .order.seed = 5,
								  .slot_count = slots[s],
								  .order.shuffle = shuffle,
								  .thread_count = threads[t],
								  .tail = SHARD_KEEP},
				    0);
				CHECK_NO_COMPLAINT(&wanted);
			}
}

/* Each step is an epoch, so threads need as many orders at once as there are threads. */
TEST(epochs_of_one_step)
{
	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	for (uint32_t threads = 1; threads <= 8; threads++) {
		STORY("%u threads", threads);
		inject_nothing();
		inject.delay_us = 300;
		run(
			(struct shard_loader_options){
				.batch_records = 103, .order.seed = 1, .slot_count = 9, .thread_count = threads},
			40);
		CHECK_NO_COMPLAINT(&wanted);
	}
}

TEST(what_is_wrong_is_noticed)
{
	static const struct {
		enum broken broken;
		const char *says;
	} rows[] = {{STALE_SLOT, "is not that of record"},
		    {SKIPS_A_ROW, "is not in its place"},
		    {WRITES_BESIDE, "is not that of record"}};
	const struct shard_loader_options o = {.batch_records = 7, .order.seed = 5, .slot_count = 4, .thread_count = 2};
	struct shard_loader *l;
	struct shard_batch b;

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (size_t i = 0; i < COUNT(rows); i++) {
		STORY("broken: %d", rows[i].broken);
#if defined(__SANITIZE_THREAD__)
		if (rows[i].broken == WRITES_BESIDE)
			continue; /* it would be told before we are */
#endif
		inject_nothing();
		inject.broken = rows[i].broken;
		run(o, 0);
		CHECK(strstr(wanted.complaint, rows[i].says));
	}
	STORY("the second batch in the place of the first");
	inject_nothing();
	wanted_open(&wanted, o);
	l = loader_of(&wanted);
	CHECK_OK(shard_loader_next(l, &b, &fixture_err));
	CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	wanted_next(&wanted, l, &b);
	close_loader(l);
	CHECK(strstr(wanted.complaint, "came instead of"));
}

TEST(never_a_hang_when_all_slots_are_lent)
{
	struct shard_loader *l;
	struct shard_batch b[9], more;
	struct shard_error err;

	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	alarm(250);
	for (uint32_t slots = 2; slots <= 9; slots++) {
		inject_nothing();
		inject.delay_us = 500;
		wanted_open(&wanted,
			    (struct shard_loader_options){.batch_records = 7, .slot_count = slots, .thread_count = 3});
		l = loader_of(&wanted);
		for (uint32_t i = 0; i < slots; i++)
			CHECK_EQ(wanted_next(&wanted, l, &b[i]), SHARD_OK);
		CHECK_EQ(shard_loader_next(l, &more, &err), SHARD_E_ARGUMENT);
		CHECK(strstr(err.message, "the caller holds all "));
		CHECK_OK(shard_loader_seek(l, 1, 0, &fixture_err)); /* nothing to forget, nothing to claim */
		wanted_seek(&wanted, 1, 0);
		CHECK_EQ(shard_loader_next(l, &more, &err), SHARD_E_ARGUMENT);
		CHECK_OK(shard_loader_release(l, &b[slots / 2], &fixture_err));
		CHECK_EQ(wanted_next(&wanted, l, &more), SHARD_OK);
		CHECK_NO_COMPLAINT(&wanted);
		close_loader(l);
	}
	alarm(0);
}

/* Its slot holds another one by now, which somebody reads. */
TEST(a_batch_that_was_given_back_long_ago)
{
	struct shard_loader *l;
	struct shard_batch first, b;
	struct shard_error err;

	inject_nothing();
	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	wanted_open(&wanted, (struct shard_loader_options){.batch_records = 7, .slot_count = 3, .thread_count = 2});
	l = loader_of(&wanted);
	CHECK_EQ(wanted_next(&wanted, l, &first), SHARD_OK);
	CHECK_OK(shard_loader_release(l, &first, &fixture_err));
	for (int i = 0; i < 20; i++) { /* END among them */
		if (wanted_next(&wanted, l, &b) == SHARD_END)
			continue;
		CHECK_EQ(shard_loader_release(l, &first, &err), SHARD_E_ARGUMENT);
		CHECK(strstr(err.message, "the caller does not hold slot "));
		check_rows(&wanted, &b);
		CHECK_OK(shard_loader_release(l, &b, &fixture_err));
	}
	CHECK_NO_COMPLAINT(&wanted);
	close_loader(l);
}

/* ---- ahead ---- */

static bool come_to(atomic_uint *counter, unsigned count)
{
	for (int i = 0; i < 10000 && atomic_load(counter) < count; i++)
		usleep(1000);
	usleep(5000); /* more would come now */
	return atomic_load(counter) == count;
}

TEST(the_next_epoch_is_there_when_one_ends)
{
	struct shard_loader *l;
	struct lent lent = {.count = 0};
	struct prng p = {0};

	open_photos(8, SHARD_RAW, sizes, COUNT(sizes));
	for (uint32_t slots = 2; slots <= 6; slots++) {
		STORY("%u slots", slots);
		inject_nothing();
		wanted_open(&wanted,
			    (struct shard_loader_options){.batch_records = 20, .slot_count = slots, .thread_count = 2});
		l = loader_of(&wanted);
		consume(&wanted, l, &lent, &p, 5, 0);
		/* all slots, over the end of the epoch and no further than that */
		CHECK(come_to(&fills_of[1], slots < 5 ? slots : 5));
		CHECK(come_to(&fills_of[2], slots < 5 ? 0 : slots - 5));
		consume(&wanted, l, &lent, &p, 1, 0); /* END */
		CHECK_EQ(atomic_load(&fills), 5 + slots);
		CHECK_EQ(wanted.epoch, 1);
		consume(&wanted, l, &lent, &p, 8, 0);
		CHECK_NO_COMPLAINT(&wanted);
		close_loader(l);
	}
	STORY("without threads nothing is");
	inject_nothing();
	starts = 0;
	starts_fail_at = 1;
	l = loader_of(&wanted);
	wanted_seek(&wanted, 0, 0);
	consume(&wanted, l, &lent, &p, 6, 0);
	CHECK_EQ(atomic_load(&fills_of[1]), 0);
	CHECK_NO_COMPLAINT(&wanted);
	starts_fail_at = 0;
	close_loader(l);
}

TEST(threads_that_cannot_start)
{
	struct shard_loader_stats stats;
	struct lent lent = {.count = 0};
	struct prng p = {3};

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (unsigned fail_at = 1; fail_at <= 5; fail_at++) {
		struct shard_loader *l;

		STORY("thread %u does not start", fail_at);
		inject_nothing();
		wanted_open(&wanted, (struct shard_loader_options){
					     .batch_records = 10, .order.seed = 9, .slot_count = 3, .thread_count = 4});
		l = loader_of(&wanted);
		inject_watch(l);
		starts = 0;
		starts_fail_at = fail_at;
		consume(&wanted, l, &lent, &p, 25, 2);
		starts_fail_at = 0;
		shard_loader_stats(l, &stats);
		CHECK_EQ(stats.thread_count, fail_at - 1);
		give_all(&wanted, l, &lent);
		CHECK_OK(shard_loader_seek(l, 1, 33, &fixture_err));
		wanted_seek(&wanted, 1, 33);
		consume(&wanted, l, &lent, &p, 10, 0);
		CHECK_NO_COMPLAINT(&wanted);
		close_loader(l);
	}
}

/* ---- leaving ---- */

/*
 * The process's threads, of which a sanitizer may have one: `want`, or as many as there still are
 * after ten seconds.
 */
static unsigned thread_total(unsigned want)
{
	unsigned total = entries("/proc/self/task", "");

	for (int i = 0; i < 10000 && total != want; i++) {
		usleep(1000); /* a joined thread leaves the list a moment later */
		total = entries("/proc/self/task", "");
	}
	return total;
}

/*
 * When nobody else is at work: those that were joined by others before may still be there for a
 * while.
 */
static unsigned fewest_threads(void)
{
	unsigned fewest = UINT_MAX;

	for (int i = 0; i < 100; i++) {
		unsigned total = entries("/proc/self/task", "");

		fewest = total < fewest ? total : fewest;
		usleep(1000);
	}
	return fewest;
}

TEST(leaving_early)
{
	unsigned before;
	struct prng p = {1};

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	before = fewest_threads();
	alarm(250);
	for (unsigned calls = 0; calls <= 24; calls++)
		for (unsigned keep = 0; keep < 4; keep++) {
			struct lent lent = {.count = 0};
			struct shard_loader *l;

			STORY("after %u calls with %u batches lent", calls, keep);
			inject_nothing();
			inject.delay_us = calls % 2 ? 3000 : 0; /* most threads are in the middle of something */
			wanted_open(&wanted, (struct shard_loader_options){
						     .batch_records = 10, .slot_count = 4, .thread_count = 3});
			l = loader_of(&wanted);
			consume(&wanted, l, &lent, &p, calls, keep);
			CHECK_NO_COMPLAINT(&wanted);
			if (calls % 3 == 2)
				CHECK_OK(shard_loader_seek(l, 2, 50, &fixture_err));
			CHECK(!calls || thread_total(before + 3) == before + 3);
			close_loader(l);
			CHECK_EQ(thread_total(before), before);
		}
	alarm(0);
}

/* ---- two at once ---- */

struct consumer {
	pthread_t thread;
	struct wanted wanted;
	struct shard_loader *l;
};

static void *consumer_main(void *context)
{
	struct consumer *c = context;
	struct lent lent = {.count = 0};
	struct prng p = {c->wanted.o.order.seed};

	consume(&c->wanted, c->l, &lent, &p, 60, 2);
	give_all(&c->wanted, c->l, &lent);
	return NULL;
}

/*
 * On a dataset that nobody has read from, so that both open its shards and check its units at the
 * same time.
 */
TEST(two_loaders_on_one_dataset)
{
	static const uint64_t many[] = {5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 8};
	static struct consumer c[2];

	inject_nothing();
	open_photos(40, SHARD_RAW, many, COUNT(many));
	for (uint64_t round = 0; round < 10; round++) {
		STORY("round %" PRIu64, round);
		reopen(NULL);
		for (uint64_t i = 0; i < 2; i++) {
			wanted_open(&c[i].wanted, (struct shard_loader_options){.batch_records = 6,
										.order.seed = round + i,
										.thread_count = 2,
										.order.shuffle = SHARD_SHUFFLE_GLOBAL,
										.tail = SHARD_PAD});
			c[i].l = loader_of(&c[i].wanted);
			CHECK_EQ(pthread_create(&c[i].thread, NULL, consumer_main, &c[i]), 0);
		}
		for (int i = 0; i < 2; i++)
			pthread_join(c[i].thread, NULL);
		for (int i = 0; i < 2; i++) {
			CHECK_NO_COMPLAINT(&c[i].wanted);
			close_loader(c[i].l);
		}
	}
}

/* ---- errors ---- */

/*
 * Two steps fail, the later one first: what is before them comes, and then the error of the earlier
 * one.
 */
TEST(an_error_in_the_middle)
{
	struct shard_error err;
	struct shard_batch b;
	struct prng p = {1};

	open_photos(40, SHARD_RAW, sizes, COUNT(sizes));
	for (uint32_t threads = 1; threads <= 4; threads++)
		for (uint64_t step = 0; step < 9; step += 2) {
			struct lent lent = {.count = 0};
			struct shard_loader *l;
			uint64_t epoch, position;
			char says[64];

			STORY("%u threads, step %" PRIu64, threads, step);
			snprintf(says, sizeof(says), "step %" PRIu64 " is made to fail", step);
			inject_nothing();
			inject.fails = true;
			inject.fail_epoch = 1;
			inject.fail_step = step;
			wanted_open(&wanted, (struct shard_loader_options){
						     .batch_records = 10, .slot_count = 4, .thread_count = threads});
			l = loader_of(&wanted);
			inject_watch(l);
			consume(&wanted, l, &lent, &p, 11 + (unsigned)step, 2);
			CHECK_NO_COMPLAINT(&wanted);
			for (int i = 0; i < 6; i++) { /* more often than there are slots: none is lost */
				CHECK_EQ(shard_loader_next(l, &b, &err), SHARD_E_IO);
				CHECK_STR(err.message, says);
			}
			shard_loader_tell(l, &epoch, &position);
			CHECK(epoch == 1 && position == step * 10);
			CHECK_OK(shard_loader_seek(l, 1, (step + 2) * 10, &fixture_err)); /* behind both */
			wanted_seek(&wanted, 1, (step + 2) * 10);
			consume(&wanted, l, &lent, &p, 9, 3);
			CHECK_NO_COMPLAINT(&wanted);
			close_loader(l);
		}
	CHECK_EQ(atomic_load(&together) + atomic_load(&while_lent), 0);
}

TEST_MAIN()
